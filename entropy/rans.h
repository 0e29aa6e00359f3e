/* rANS (Duda 2013): static frequencies of 12 bits, states of 32, renormalisation by words of 16. FORMAT.md
 * section 10.6.
 *
 * A symbol of frequency f costs log2(4096 / f) bits. What one step of the decoder takes, one step of the encoder puts
 * back: an encoder begins with a state agreed on, feeds the symbols last first, and a word that leaves a state is the
 * one that the decoder takes at that step; so several states may share one sequence of words, which is written
 * backwards. States are at least TSR_RANS_LOW; a string with one state of its own may begin lower (see the string). */
#ifndef TSR_ENTROPY_RANS_H
#define TSR_ENTROPY_RANS_H

#include "steps.h"
#include "code_cost.h"

enum {
    TSR_RANS_BITS = 12, /* frequencies of a table add up to 2^12 */
    TSR_RANS_TOTAL = 1 << TSR_RANS_BITS,
    TSR_RANS_ALPHABET = 256,    /* most symbols of a table: one byte a slot, so that 24 tables are 120 KiB */
    TSR_RANS_LOW = 1 << 16,     /* a state below this takes a word */
    TSR_RANS_MANTISSA_LIMIT = 7 /* a described frequency has at most this many bits after its first */
};

/* ---- Frequencies ------------------------------------------------------------------------------------------ */

/* counts[symbols] to frequency[symbols] that add up to TSR_RANS_TOTAL: 0 where the count is 0, else at least 1. What
 * rounding leaves over goes where it gains most: the gain of one more at f is count / (f + 1/2). All 0 if the counts
 * are. Sums of counts are below 2^32. */
TSR_HD void tsr_rans_normalise(const uint32_t *counts, int symbols, uint16_t *frequency)
{
    uint64_t total = 0;
    int32_t left = TSR_RANS_TOTAL;
    for (int s = 0; s < symbols; s++) total += counts[s];
    for (int s = 0; s < symbols; s++) {
        frequency[s] = 0;
        if (counts[s] == 0) continue;
        const uint64_t part = (uint64_t)counts[s] * TSR_RANS_TOTAL + total / 2;
        /* Numbers of 32 bits, which all are where the total is small, are divided faster. */
        const uint64_t share = part <= UINT32_MAX ? (uint32_t)part / (uint32_t)total : part / total;
        frequency[s] = (uint16_t)(share > 0 ? share : 1);
        left -= frequency[s];
    }
    if (total == 0) return;
    while (left != 0) {
        const int32_t step = left > 0 ? 1 : -1;
        int best = -1;
        for (int s = 0; s < symbols; s++) {
            if (counts[s] == 0 || (step < 0 && frequency[s] == 1)) continue;
            if (best < 0) {
                best = s;
                continue;
            }
            /* count / (2f + step), compared crosswise: below 2^32 * 2^14 */
            const uint64_t here = (uint64_t)counts[s] * (uint64_t)(2 * frequency[best] + step);
            const uint64_t there = (uint64_t)counts[best] * (uint64_t)(2 * frequency[s] + step);
            if (step > 0 ? here > there : here < there) best = s;
        }
        assert(best >= 0);
        frequency[best] = (uint16_t)(frequency[best] + step);
        left -= step;
    }
}

/* A table is described by weights: its frequencies with few bits each, from which the reader normalises frequencies
 * again. This one with mantissa bits after its first, rounded. */
TSR_HD uint32_t tsr_rans_round(uint32_t frequency, int mantissa)
{
    const int shift = tsr_bit_width(frequency) - 1 - mantissa;
    if (frequency == 0 || shift <= 0) return frequency;
    return ((frequency + (1u << (shift - 1))) >> shift) << shift;
}

/* weight[symbols] (at most TSR_RANS_ALPHABET), of a description, to frequencies. */
TSR_HD void tsr_rans_frequencies(const uint16_t *weight, int symbols, uint16_t *frequency)
{
    uint32_t counts[TSR_RANS_ALPHABET] = {0};
    for (int s = 0; s < symbols; s++) counts[s] = weight[s];
    tsr_rans_normalise(counts, symbols, frequency);
}

/* Bits of a weight's width, coded like Huffman lengths (FORMAT.md 7.6): against the width before. */
TSR_HD int tsr_rans_width_bits(int width, int previous)
{
    return width == previous ? 1 : width == previous + 1 ? 2 : width == previous - 1 ? 3 : 8;
}

/* What frequencies cost that are described with this many mantissa bits, in bits x 4096: description and symbols.
 * weight[symbols]: the description. */
TSR_HD uint64_t tsr_rans_rounded_cost(const uint32_t *counts, const uint16_t *exact, int symbols, int mantissa,
                                      uint16_t *weight)
{
    uint16_t frequency[TSR_RANS_ALPHABET];
    uint64_t cost = 0;
    int previous = TSR_FIRST_STEP_FROM;
    for (int s = 0; s < symbols; s++) weight[s] = (uint16_t)tsr_rans_round(exact[s], mantissa);
    tsr_rans_frequencies(weight, symbols, frequency);
    for (int s = 0; s < symbols; s++) {
        if (exact[s] == 0) continue;
        const int width = tsr_bit_width(weight[s]);
        const int bits = tsr_rans_width_bits(width, previous) + tsr_min(width - 1, mantissa);
        cost += (uint64_t)counts[s] * ((TSR_RANS_BITS << TSR_COST_SHIFT) - tsr_log2_cost(frequency[s]));
        cost += (uint64_t)bits << TSR_COST_SHIFT;
        previous = width;
    }
    return cost;
}

/* Symbols up to the last that occurs. */
TSR_HD int tsr_rans_used(const uint32_t *counts, int symbols)
{
    while (symbols > 0 && counts[symbols - 1] == 0) symbols--;
    return symbols;
}

/* Weights for these counts, with the number of mantissa bits that costs least, description and symbols together, the
 * first of equals; returns that number. All weights are 0 if the counts are. */
TSR_HD int tsr_rans_weights(const uint32_t *counts, int symbols, uint16_t *weight)
{
    uint16_t exact[TSR_RANS_ALPHABET], rounded[TSR_RANS_ALPHABET];
    uint64_t least = UINT64_MAX;
    int best = 0;
    const int used = tsr_rans_used(counts, symbols);
    for (int s = 0; s < symbols; s++) weight[s] = 0;
    tsr_rans_normalise(counts, used, exact);
    for (int mantissa = 0; mantissa <= TSR_RANS_MANTISSA_LIMIT; mantissa++) {
        const uint64_t cost = tsr_rans_rounded_cost(counts, exact, used, mantissa, rounded);
        if (cost >= least) continue;
        least = cost;
        best = mantissa;
        for (int s = 0; s < used; s++) weight[s] = rounded[s];
    }
    return best;
}

/* Description of a table: u(3) mantissa bits, ue highest symbol; then for each symbol the step of its weight's width
 * from the one before, and the bits after its first, at most this many. At least one weight is not 0. */
TSR_HD void tsr_put_weights(struct tsr_bit_writer *w, const uint16_t *weight, int symbols, int mantissa)
{
    int highest = symbols - 1, previous = TSR_FIRST_STEP_FROM;
    while (highest > 0 && weight[highest] == 0) highest--;
    tsr_put_bits(w, (uint32_t)mantissa, 3);
    tsr_put_ue(w, (uint32_t)highest);
    for (int s = 0; s <= highest; s++) {
        if (weight[s] == 0) {
            int absent = 1;
            while (weight[s + absent] == 0) absent++;
            tsr_put_absent(w, absent);
            s += absent - 1;
            continue;
        }
        const int width = tsr_bit_width(weight[s]), below = tsr_min(width - 1, mantissa);
        tsr_put_step(w, width, &previous);
        tsr_put_bits(w, (uint32_t)weight[s] >> (width - 1 - below), below);
    }
}

/* Reads weight[symbols]; false where they are no table. */
TSR_HD_CALL bool tsr_get_weights(struct tsr_bit_reader *reader, uint16_t *weight, int symbols)
{
    struct tsr_bit_reader own = *reader;
    const int mantissa = (int)tsr_get_bits(&own, 3);
    const uint32_t highest = tsr_get_ue(&own);
    int previous = TSR_FIRST_STEP_FROM;
    if (highest >= (uint32_t)symbols) return false;
    for (int s = 0; s < symbols; s++) weight[s] = 0;
    for (uint32_t s = 0; s <= highest && !own.overrun; s++) {
        const uint64_t absent = tsr_get_step(&own, &previous);
        if (absent > highest - s) return false;
        if (absent > 0) {
            s += (uint32_t)absent - 1;
            continue;
        }
        if (previous < 1 || previous > TSR_RANS_BITS + 1) return false;
        const int below = tsr_min(previous - 1, mantissa);
        const uint32_t rest = tsr_get_bits(&own, below);
        weight[s] = (uint16_t)((1u << below | rest) << (previous - 1 - below));
    }
    *reader = own;
    return !own.overrun;
}

/* ---- The encoder's step ------------------------------------------------------------------------------------ */

struct tsr_rans_symbol {
    uint32_t inverse; /* (2^32 - 1) / frequency: the quotient by it is exact or one too small */
    uint16_t frequency, start;
};

/* Of a table's weights. */
TSR_HD void tsr_rans_symbols(const uint16_t *weight, int symbols, struct tsr_rans_symbol *out)
{
    uint16_t frequency[TSR_RANS_ALPHABET];
    uint32_t start = 0;
    tsr_rans_frequencies(weight, symbols, frequency);
    for (int s = 0; s < symbols; s++) {
        out[s].inverse = frequency[s] ? UINT32_MAX / frequency[s] : 0;
        out[s].frequency = frequency[s];
        out[s].start = (uint16_t)start;
        start += frequency[s];
    }
}

/* Puts a symbol of frequency 1..4096 into the state. True if *word leaves it: it stands before all words that left
 * earlier. */
TSR_HD_INLINE bool tsr_rans_put(uint32_t *state, const struct tsr_rans_symbol *symbol, uint16_t *word)
{
    uint32_t x = *state;
    const uint32_t f = symbol->frequency;
    const bool leaves = x >> (32 - TSR_RANS_BITS) >= f;
    *word = (uint16_t)x;
    x = leaves ? x >> 16 : x;
    /* quotient * 2^12 + rest + start, with the quotient one more where the rest says so. */
    const uint32_t others = TSR_RANS_TOTAL - f, quotient = (uint32_t)((uint64_t)x * symbol->inverse >> 32);
    const uint32_t next = x + symbol->start + quotient * others;
    *state = x - quotient * f >= f ? next + others : next;
    return leaves;
}

/* Likewise the low bits (1..16) of value. */
TSR_HD_INLINE bool tsr_rans_put_raw(uint32_t *state, uint32_t value, int bits, uint16_t *word)
{
    uint32_t x = *state;
    const bool leaves = x >> (32 - bits) != 0;
    *word = (uint16_t)x;
    x = leaves ? x >> 16 : x;
    *state = x << bits | (value & ((1u << bits) - 1u));
    return leaves;
}

/* ---- The decoder's step ------------------------------------------------------------------------------------ */

struct tsr_rans_decoder {
    uint8_t symbol[TSR_RANS_TOTAL];    /* by slot */
    uint32_t place[TSR_RANS_ALPHABET]; /* by symbol: frequency << 16 | start */
};

/* Of a table's weights; a table of which all are 0 decodes to symbol 0. */
TSR_HD void tsr_rans_decoder_init(struct tsr_rans_decoder *d, const uint16_t *weight, int symbols)
{
    uint16_t frequency[TSR_RANS_ALPHABET];
    uint32_t start = 0;
    tsr_rans_frequencies(weight, symbols, frequency);
    for (int s = 0; s < symbols; s++) {
        d->place[s] = (uint32_t)frequency[s] << 16 | start;
        for (uint32_t i = 0; i < frequency[s]; i++) d->symbol[start + i] = (uint8_t)s;
        start += frequency[s];
    }
    if (start != 0) return;
    d->place[0] = (uint32_t)TSR_RANS_TOTAL << 16;
    for (int i = 0; i < TSR_RANS_TOTAL; i++) d->symbol[i] = 0;
}

/* Likewise by buckets of slots, in a sixth of the bytes: for decoders with many tables. A bucket tells its first two
 * symbols. Where it has more of them, which are rare symbols, all but the first are looked for. */
enum {
    TSR_RANS_BUCKET_BITS = 6,
    TSR_RANS_BUCKETS = TSR_RANS_TOTAL >> TSR_RANS_BUCKET_BITS,
    TSR_RANS_LOOK = (1 << 20) - 1 /* the low bits of a half that tells no symbol; its start is not 0 */
};

struct tsr_rans_buckets {
    /* In each half start << 20 | (frequency - 1) << 8 | symbol; the high one is for slots from its start on. */
    uint64_t bucket[TSR_RANS_BUCKETS];
    uint32_t place[TSR_RANS_ALPHABET]; /* by symbol: frequency << 16 | start */
    uint32_t more;                     /* what is added to symbols */
};

TSR_HD void tsr_rans_buckets_init(struct tsr_rans_buckets *d, const uint16_t *weight, int symbols, uint32_t more)
{
    uint16_t frequency[TSR_RANS_ALPHABET];
    uint32_t start = 0, filled = 0; /* buckets whose first symbol is known; the last of them may be in use by halves */
    bool second = false;            /* the last one has two symbols */
    d->more = more;
    tsr_rans_frequencies(weight, symbols, frequency);
    for (int s = 0; s < symbols; s++) {
        const uint32_t end = start + frequency[s];
        const uint64_t half = (uint64_t)start << 20 | (uint64_t)(frequency[s] - 1u) << 8 | ((uint32_t)s + more);
        d->place[s] = (uint32_t)frequency[s] << 16 | start;
        if (frequency[s] == 0) continue;
        if (filled << TSR_RANS_BUCKET_BITS > start) { /* after another symbol */
            uint64_t *bucket = &d->bucket[filled - 1];
            *bucket = second ? *bucket | (uint64_t)TSR_RANS_LOOK << 32 : half << 32 | (uint32_t)*bucket;
            second = true;
        }
        for (; filled << TSR_RANS_BUCKET_BITS < end; filled++, second = false) d->bucket[filled] = half << 32 | half;
        start = end;
    }
    if (start != 0) return;
    const uint64_t only = (TSR_RANS_TOTAL - 1u) << 8 | more;
    for (int i = 0; i < TSR_RANS_BUCKETS; i++) d->bucket[i] = only << 32 | only;
}

/* The half of a bucket that a slot wants; its low bits are TSR_RANS_LOOK and its start is not 0 if that tells none. */
TSR_HD_INLINE uint32_t tsr_rans_half(const struct tsr_rans_buckets *d, uint32_t slot)
{
    const uint64_t halves = d->bucket[slot >> TSR_RANS_BUCKET_BITS];
    return (uint32_t)(slot >= (uint32_t)(halves >> 52) ? halves >> 32 : halves);
}

/* Likewise where the half tells none. */
TSR_HD_INLINE uint32_t tsr_rans_look(const struct tsr_rans_buckets *d, uint32_t slot)
{
    uint32_t symbol = ((uint32_t)d->bucket[slot >> TSR_RANS_BUCKET_BITS] & 255u) - d->more;
    while (slot >= (d->place[symbol] >> 16) + (d->place[symbol] & 0xffffu)) symbol++;
    return (d->place[symbol] & 0xffffu) << 20 | ((d->place[symbol] >> 16) - 1u) << 8 | (symbol + d->more);
}

/* The state after a half's symbol. */
TSR_HD_INLINE uint32_t tsr_rans_after(uint32_t state, uint32_t half)
{
    return ((half >> 8 & 0xfffu) + 1u) * (state >> TSR_RANS_BITS) + (state & (TSR_RANS_TOTAL - 1)) - (half >> 20);
}

TSR_HD_INLINE int tsr_rans_get_bucket(uint32_t *state, const struct tsr_rans_buckets *d)
{
    const uint32_t slot = *state & (TSR_RANS_TOTAL - 1);
    uint32_t half = tsr_rans_half(d, slot);
    if ((half & TSR_RANS_LOOK) == TSR_RANS_LOOK && half >> 20 != 0) half = tsr_rans_look(d, slot);
    *state = tsr_rans_after(*state, half);
    return (int)(half & 255u);
}

/* Takes a symbol from the state, which may then want a word. */
TSR_HD_INLINE int tsr_rans_get(uint32_t *state, const struct tsr_rans_decoder *d)
{
    const uint32_t x = *state, slot = x & (TSR_RANS_TOTAL - 1);
    const int symbol = d->symbol[slot];
    const uint32_t place = d->place[symbol];
    *state = (place >> 16) * (x >> TSR_RANS_BITS) + slot - (place & 0xffffu);
    return symbol;
}

/* Likewise raw bits (0..16). */
TSR_HD_INLINE uint32_t tsr_rans_get_raw(uint32_t *state, int bits)
{
    const uint32_t value = *state & ((1u << bits) - 1u);
    *state >>= bits;
    return value;
}

TSR_HD_INLINE bool tsr_rans_wants_word(uint32_t state)
{
    return state < TSR_RANS_LOW;
}

TSR_HD_INLINE uint32_t tsr_rans_with_word(uint32_t state, uint32_t word)
{
    return state << 16 | word;
}

/* ---- Strings of one state ---------------------------------------------------------------------------------- */

/* A string of bytes with one state and its words. The encoder's state begins at 1, and no word can leave it below
 * TSR_RANS_LOW; the decoder takes none once all are taken, and ends with 1. So what a string costs beyond its symbols
 * is half a byte. The first bytes are the last state, least significant first: 4 of them, or 3 if their number is odd,
 * or all if there are fewer; the words follow, least significant byte first. */
struct tsr_rans_writer {
    uint8_t *bytes; /* filled from the end */
    size_t first;   /* first byte in use */
    uint32_t state;
    bool overflow;
};

TSR_HD struct tsr_rans_writer tsr_rans_writer(uint8_t *bytes, size_t capacity)
{
    struct tsr_rans_writer w;
    w.bytes = bytes;
    w.first = capacity;
    w.state = 1;
    w.overflow = false;
    return w;
}

/* Writes the word if it leaves a state; whether it does cannot be foreseen, so no branch: a word that stays is written
 * over by the next. */
TSR_HD_INLINE void tsr_rans_write_word(struct tsr_rans_writer *w, uint16_t word, bool leaves)
{
    if (w->first < 2) {
        w->overflow |= leaves;
        return;
    }
    w->bytes[w->first - 1] = (uint8_t)(word >> 8);
    w->bytes[w->first - 2] = (uint8_t)word;
    w->first -= leaves ? 2 : 0;
}

TSR_HD_INLINE void tsr_rans_write(struct tsr_rans_writer *w, const struct tsr_rans_symbol *symbol)
{
    uint16_t word;
    const bool leaves = tsr_rans_put(&w->state, symbol, &word);
    tsr_rans_write_word(w, word, leaves);
}

/* bits: 1..16. */
TSR_HD_INLINE void tsr_rans_write_raw(struct tsr_rans_writer *w, uint32_t value, int bits)
{
    uint16_t word;
    const bool leaves = tsr_rans_put_raw(&w->state, value, bits, &word);
    tsr_rans_write_word(w, word, leaves);
}

/* Writes the state; the string then begins at bytes[first]. */
TSR_HD void tsr_rans_finish(struct tsr_rans_writer *w)
{
    const int width = tsr_bit_width(w->state);
    const int count = width > 24 ? 4 : width > 16 ? 3 : width > 8 ? 2 : width > 1 ? 1 : 0;
    if (w->first < 4) {
        w->overflow = true;
        return;
    }
    for (int i = count - 1; i >= 0; i--) w->bytes[--w->first] = (uint8_t)(w->state >> 8 * i);
}

struct tsr_rans_reader {
    const uint8_t *bytes;
    size_t size, next;
    uint32_t state;
};

TSR_HD struct tsr_rans_reader tsr_rans_reader(const uint8_t *bytes, size_t size)
{
    struct tsr_rans_reader r;
    r.bytes = bytes;
    r.size = size;
    r.next = size < 4 ? size : 4 - (size & 1);
    r.state = size == 0 ? 1 : 0;
    for (size_t i = 0; i < r.next; i++) r.state |= (uint32_t)bytes[i] << 8 * i;
    return r;
}

TSR_HD_INLINE void tsr_rans_refill(struct tsr_rans_reader *r)
{
    if (r->next == r->size) return;
    /* Whether a word is wanted cannot be foreseen: no branch. */
    const uint32_t word = (uint32_t)r->bytes[r->next] | (uint32_t)r->bytes[r->next + 1] << 8;
    const bool wants = tsr_rans_wants_word(r->state);
    r->state = wants ? tsr_rans_with_word(r->state, word) : r->state;
    r->next += wants ? 2 : 0;
}

TSR_HD_INLINE int tsr_rans_read(struct tsr_rans_reader *r, const struct tsr_rans_buckets *d)
{
    const int symbol = tsr_rans_get_bucket(&r->state, d);
    tsr_rans_refill(r);
    return symbol;
}

TSR_HD_INLINE uint32_t tsr_rans_read_raw(struct tsr_rans_reader *r, int bits)
{
    const uint32_t value = tsr_rans_get_raw(&r->state, bits);
    tsr_rans_refill(r);
    return value;
}

/* True at the end of a string that an encoder wrote. */
TSR_HD bool tsr_rans_ended(const struct tsr_rans_reader *r)
{
    return r->next == r->size && r->state == 1;
}

#endif
