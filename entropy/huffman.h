/* Canonical, length-limited Huffman codes: construction, description in the file, put, get.
 * FORMAT.md section 7.6.
 *
 * Lengths come from the package-merge algorithm (Larmore and Hirschberg 1990), which is optimal under the
 * limit. Codes are canonical: shorter first, then by symbol, so that the lengths alone describe a table. A
 * table with one symbol spends no bits on it. */
#ifndef TSR_ENTROPY_HUFFMAN_H
#define TSR_ENTROPY_HUFFMAN_H

#include "steps.h"

enum {
    TSR_CODE_LIMIT = 12,      /* longest codeword in bits */
    TSR_ALPHABET_LIMIT = 512, /* most symbols of one table; 2^12 codewords leave room for all */
    TSR_DIRECT_BITS = 9       /* codewords up to here are decoded by one look-up */
};
static_assert(TSR_ALPHABET_LIMIT <= 1 << TSR_CODE_LIMIT, "every symbol must find a codeword");

/* Work space of the construction; the caller provides it (about 25 KB). */
struct tsr_huffman_work {
    uint64_t weight[2][2 * TSR_ALPHABET_LIMIT + 2]; /* one round's packages and leaves, in order */
    uint64_t leaf[TSR_ALPHABET_LIMIT + 1];          /* counts of used symbols, rarest first, and more than any */
    uint8_t is_leaf[TSR_CODE_LIMIT][2 * TSR_ALPHABET_LIMIT]; /* per round and place in that order */
    uint16_t order[TSR_ALPHABET_LIMIT];                      /* used symbols, rarest first */
};

/* counts[symbols] to lengths[symbols]: 0 for symbols that don't occur, else 1..TSR_CODE_LIMIT; a single symbol
 * gets length 1 here and no bits in the stream. */
TSR_HD void tsr_huffman_lengths(const uint32_t *counts, int symbols, uint8_t *lengths, struct tsr_huffman_work *work)
{
    int used = 0;
    for (int s = 0; s < symbols; s++) {
        lengths[s] = 0;
        if (counts[s] == 0) continue;
        int at = used++; /* insertion sort by count, then by symbol: stable, hence the same everywhere */
        for (; at > 0 && counts[work->order[at - 1]] > counts[s]; at--) work->order[at] = work->order[at - 1];
        work->order[at] = (uint16_t)s;
    }
    if (used == 0) return;
    if (used == 1) {
        lengths[work->order[0]] = 1;
        return;
    }
    for (int i = 0; i < used; i++) work->leaf[i] = counts[work->order[i]];
    work->leaf[used] = UINT64_MAX;
    /* Round 0 holds the leaves alone; each next one merges the leaves with the pairs of the round before, behind which
     * a pair stands that no leaf exceeds. */
    int size = 0;
    for (int round = 0; round < TSR_CODE_LIMIT; round++) {
        uint64_t *before = work->weight[(round + 1) & 1], *now = work->weight[round & 1];
        const int pairs = size / 2;
        int leaf = 0, pair = 0;
        before[2 * pairs] = before[2 * pairs + 1] = UINT64_MAX / 2;
        for (size = 0; size < used + pairs; size++) {
            const uint64_t package = before[2 * pair] + before[2 * pair + 1], one = work->leaf[leaf];
            const int take_leaf = one <= package;
            now[size] = take_leaf ? one : package;
            work->is_leaf[round][size] = (uint8_t)take_leaf;
            leaf += take_leaf;
            pair += !take_leaf;
        }
    }
    /* The cheapest 2 (used - 1) items of the last round are the solution; a leaf among them adds one to its
     * symbol's length, a package stands for its two items on the round before. The leaves taken on a round
     * are always the rarest ones. */
    int take = 2 * (used - 1);
    for (int round = TSR_CODE_LIMIT - 1; round >= 0 && take > 0; round--) {
        int leaves = 0;
        for (int i = 0; i < take; i++) leaves += work->is_leaf[round][i];
        for (int i = 0; i < leaves; i++) lengths[work->order[i]]++;
        take = 2 * (take - leaves);
    }
}

/* A codeword is the low length bits of bits. */
struct tsr_codeword {
    uint16_t bits;
    uint8_t length;
};

/* Number of used symbols; 0 if the lengths are not those of a complete prefix code (or of a single symbol). */
TSR_HD int tsr_huffman_check(const uint8_t *lengths, int symbols)
{
    int used = 0;
    uint32_t kraft = 0;
    for (int s = 0; s < symbols; s++) {
        if (lengths[s] == 0) continue;
        if (lengths[s] > TSR_CODE_LIMIT) return 0;
        used++;
        kraft += 1u << (TSR_CODE_LIMIT - lengths[s]);
    }
    return used == 1 || kraft == 1u << TSR_CODE_LIMIT ? used : 0;
}

/* lengths[symbols], checked, to codewords. */
TSR_HD void tsr_huffman_codewords(const uint8_t *lengths, int symbols, struct tsr_codeword *codewords)
{
    uint32_t next[TSR_CODE_LIMIT + 1];
    uint32_t count[TSR_CODE_LIMIT + 1];
    for (int n = 0; n <= TSR_CODE_LIMIT; n++) count[n] = 0;
    int used = 0;
    for (int s = 0; s < symbols; s++) {
        count[lengths[s]]++;
        used += lengths[s] != 0;
    }
    uint32_t code = 0;
    count[0] = 0;
    next[0] = 0;
    for (int n = 1; n <= TSR_CODE_LIMIT; n++) {
        code = (code + count[n - 1]) << 1;
        next[n] = code;
    }
    for (int s = 0; s < symbols; s++) {
        codewords[s].bits = (uint16_t)(lengths[s] ? next[lengths[s]]++ : 0);
        codewords[s].length = used == 1 ? 0 : lengths[s];
    }
}

/* Decoding table: codewords of up to TSR_DIRECT_BITS in one look-up, longer ones by their rank. */
struct tsr_huffman_decoder {
    uint16_t direct[1 << TSR_DIRECT_BITS]; /* symbol << 4 | length; length 15: a longer codeword */
    uint16_t first[TSR_CODE_LIMIT + 1];    /* first codeword of a length */
    uint16_t count[TSR_CODE_LIMIT + 1];    /* codewords of a length */
    uint16_t rank[TSR_CODE_LIMIT + 1];     /* place of its first symbol in symbol[] */
    uint16_t symbol[TSR_ALPHABET_LIMIT];   /* used symbols in the order of their codewords */
};

enum {
    TSR_LONGER_CODEWORD = 15,
    TSR_NO_CODE = TSR_ALPHABET_LIMIT /* the symbol that a table without symbols decodes to */
};

/* lengths[symbols]: checked, or all 0. */
TSR_HD void tsr_huffman_decoder_init(struct tsr_huffman_decoder *d, const uint8_t *lengths, int symbols)
{
    uint16_t next[TSR_CODE_LIMIT + 1]; /* of each length: how many symbols stand in their places */
    int used = 0, code = 0;
    for (int i = 0; i < 1 << TSR_DIRECT_BITS; i++) d->direct[i] = TSR_LONGER_CODEWORD;
    for (int n = 0; n <= TSR_CODE_LIMIT; n++) d->count[n] = next[n] = 0;
    for (int s = 0; s < symbols; s++) d->count[lengths[s]]++;
    d->count[0] = 0;
    for (int n = 1; n <= TSR_CODE_LIMIT; n++) {
        code <<= 1;
        d->first[n] = (uint16_t)code;
        d->rank[n] = (uint16_t)used;
        code += d->count[n];
        used += d->count[n];
    }
    for (int s = 0; s < symbols; s++) {
        const int n = lengths[s];
        if (n == 0) continue;
        const int place = next[n]++;
        d->symbol[d->rank[n] + place] = (uint16_t)s;
        if (n > TSR_DIRECT_BITS) continue;
        const int spread = 1 << (TSR_DIRECT_BITS - n);
        uint16_t *direct = d->direct + (d->first[n] + place) * spread;
        for (int i = 0; i < spread; i++) direct[i] = (uint16_t)(s << 4 | n);
    }
    if (used > 1) return;
    const int only = used == 1 ? d->symbol[0] : TSR_NO_CODE;
    for (int i = 0; i < 1 << TSR_DIRECT_BITS; i++) d->direct[i] = (uint16_t)(only << 4);
}

/* next: the next TSR_CODE_LIMIT bits of the string. Returns symbol << 4 | length. A complete code decodes any bits to
 * some symbol. */
TSR_HD uint32_t tsr_huffman_decode(const struct tsr_huffman_decoder *d, uint32_t next)
{
    uint32_t entry = d->direct[next >> (TSR_CODE_LIMIT - TSR_DIRECT_BITS)];
    if (entry != TSR_LONGER_CODEWORD) return entry;
    int n = TSR_DIRECT_BITS + 1;
    uint32_t at = 0;
    for (; n <= TSR_CODE_LIMIT; n++) {
        at = (next >> (TSR_CODE_LIMIT - n)) - d->first[n];
        if (at < d->count[n]) break;
    }
    assert(n <= TSR_CODE_LIMIT);
    return (uint32_t)d->symbol[d->rank[n] + at] << 4 | (uint32_t)n;
}

/* Description of a table: the highest used symbol, then a step from each length to the next. Lengths of
 * neighbouring symbols are close, so a step costs about two bits. */
TSR_HD void tsr_put_lengths(struct tsr_bit_writer *w, const uint8_t *lengths, int symbols)
{
    int highest = symbols - 1, previous = TSR_FIRST_STEP_FROM;
    while (highest > 0 && lengths[highest] == 0) highest--;
    tsr_put_ue(w, (uint32_t)highest);
    for (int s = 0; s <= highest; s++) {
        int length = lengths[s];
        if (length == 0) {
            int absent = 1;
            while (lengths[s + absent] == 0) absent++;
            tsr_put_absent(w, absent);
            s += absent - 1;
            continue;
        }
        tsr_put_step(w, length, &previous);
    }
}

/* Reads lengths[symbols]; false where they are no code of this alphabet. */
TSR_HD_CALL bool tsr_get_lengths(struct tsr_bit_reader *reader, uint8_t *lengths, int symbols)
{
    struct tsr_bit_reader own = *reader;
    uint32_t highest = tsr_get_ue(&own);
    int previous = TSR_FIRST_STEP_FROM;
    if (highest >= (uint32_t)symbols) return false;
    for (int s = 0; s < symbols; s++) lengths[s] = 0;
    for (uint32_t s = 0; s <= highest && !own.overrun; s++) {
        const uint64_t absent = tsr_get_step(&own, &previous);
        if (absent > highest - s) return false;
        if (absent > 0) {
            s += (uint32_t)absent - 1;
            continue;
        }
        if (previous < 1 || previous > TSR_CODE_LIMIT) return false;
        lengths[s] = (uint8_t)previous;
    }
    *reader = own;
    return !own.overrun && tsr_huffman_check(lengths, symbols) > 0;
}

#endif
