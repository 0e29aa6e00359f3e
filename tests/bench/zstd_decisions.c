/* What the decisions of zstd cost, if its plain bytes are known: decision 066. Codes each sequence of
 * ZSTD_generateSequences by adaptive bits, from candidates that a reader of the plain bytes has, too: the repeated
 * offsets, and the last places with the same 8, 5, 4 and 3 bytes. Tables of codes are taken as 200 bytes a block.
 * Prints bytes.
 *
 * cc -O2 zstd_decisions.c -lzstd -lm -o zstd_decisions; usage: zstd_decisions FILE LEVEL (1 to 19)
 * It needs the experimental functions of libzstd, and no build makes it. Level 16 and above: the strategy is btultra,
 * blocks are not split, since sequences of other strategies are given twice. */
#define ZSTD_STATIC_LINKING_ONLY
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum { REPEATS = 3, HASHES = 4, CANDIDATES = REPEATS + HASHES, HASH_BITS = 22, TABLES = 200, LONGEST = 1 << 17 };
enum { START, OFFSET, LENGTH, PARTS };

struct bit {
    float fast, slow; /* chances of a one, less a half */
};

struct estimate {
    const uint8_t *bytes;
    size_t size;
    uint32_t *last[HASHES]; /* the last place of each hash, and 1 */
    uint32_t repeat[REPEATS];
    struct bit start[1 << 15], which[1 << 13], full[64], number[2][64];
    double bits[PARTS];
    size_t strays; /* offsets that are none of the candidates */
};

static void code(struct estimate *e, struct bit *bit, int value, int part)
{
    const double one = (bit->fast + bit->slow) / 2, chance = value ? 0.5 + one : 0.5 - one;
    e->bits[part] -= log2(chance < 1e-4 ? 1e-4 : chance);
    bit->fast += ((float)value - 0.5f - bit->fast) / 16;
    bit->slow += ((float)value - 0.5f - bit->slow) / 128;
}

static void code_number(struct estimate *e, struct bit *bits, uint32_t value, int part)
{
    int width = 0, node = 1;
    while (((uint64_t)value + 1) >> (width + 1)) width++;
    for (int i = 4; i >= 0; i--) {
        code(e, bits + node, width >> i & 1, part);
        node = node * 2 + (width >> i & 1);
    }
    e->bits[part] += width;
}

static uint32_t *place(struct estimate *e, size_t at, int i)
{
    static const size_t least[HASHES] = {8, 5, 4, 3};
    uint64_t word = 0;
    memcpy(&word, e->bytes + at, least[i]);
    return e->last[i] + ((word * 0x9e3779b185ebca87u) >> (64 - HASH_BITS));
}

static size_t length_of(const struct estimate *e, size_t at, uint32_t offset)
{
    size_t n = 0;
    if (offset == 0 || offset > at) return 0;
    while (at + n < e->size && n < LONGEST && e->bytes[at + n] == e->bytes[at + n - offset]) n++;
    return n;
}

static uint32_t bin(size_t length)
{
    return length < 3 ? 0 : length < 6 ? (uint32_t)length - 2 : length < 8 ? 4 : length < 12 ? 5 : length < 24 ? 6 : 7;
}

/* A byte: a literal, or the first one of the sequence's match. */
static void step(struct estimate *e, size_t at, const ZSTD_Sequence *sequence, uint32_t literal)
{
    uint32_t offset[CANDIDATES], length[CANDIDATES], which = CANDIDATES;
    const int is_match = sequence->matchLength > 0 && literal == sequence->litLength;
    for (int i = 0; i < CANDIDATES; i++) {
        const uint32_t last = i < REPEATS ? 0 : *place(e, at, i - REPEATS);
        offset[i] = i < REPEATS ? e->repeat[i] : last ? (uint32_t)at + 1 - last : 0;
        length[i] = bin(length_of(e, at, offset[i]));
        if (which == CANDIDATES && offset[i] == sequence->offset) which = (uint32_t)i;
    }
    const uint32_t longer = length[3] > length[4] ? length[3] : length[4],
                   shorter = length[5] > length[6] ? length[5] : length[6];
    const uint32_t run = literal == 0 ? 0 : literal < 4 ? 1 : literal < 64 ? 2 : 3;
    const uint32_t next = bin(length_of(e, at + 1, e->repeat[0]));
    code(e,
         e->start + (length[0] | longer << 3 | shorter << 6 | next << 9 | run << 12 | (uint32_t)(length[1] > 0) << 14),
         is_match, START);
    if (!is_match) return;
    struct bit *const bits =
        e->which + (length[0] | length[3] << 3 | length[4] << 6 | (uint32_t)(literal == 0) << 9) * 8;
    for (int i = 2, node = 1; i >= 0; node = node * 2 + (int)(which >> i & 1), i--)
        code(e, bits + node, which >> i & 1, OFFSET);
    e->strays += which == CANDIDATES;
    if (which == CANDIDATES) code_number(e, e->number[0], sequence->offset, OFFSET);
    const size_t all = length_of(e, at, sequence->offset);
    code(e, e->full + which * 8 + bin(all), all == sequence->matchLength, LENGTH);
    if (all != sequence->matchLength) code_number(e, e->number[1], (uint32_t)(all - sequence->matchLength), LENGTH);
    if (sequence->offset == e->repeat[0]) return;
    if (sequence->offset != e->repeat[1]) e->repeat[2] = e->repeat[1];
    e->repeat[1] = e->repeat[0];
    e->repeat[0] = sequence->offset;
}

int main(int argc, char **argv)
{
    FILE *const file = argc == 3 ? fopen(argv[1], "rb") : NULL;
    if (!file || fseek(file, 0, SEEK_END) != 0) return fprintf(stderr, "usage: zstd_decisions FILE LEVEL\n"), 2;
    const size_t size = (size_t)ftell(file), bound = ZSTD_compressBound(size), room = size / 2 + 100000;
    const int level = atoi(argv[2]);
    uint8_t *const bytes = calloc(size + 16, 1), *const made = malloc(bound);
    ZSTD_Sequence *const all = malloc(room * sizeof *all);
    struct estimate *const e = calloc(1, sizeof *e);
    ZSTD_CCtx *const context = ZSTD_createCCtx();
    rewind(file);
    if (!bytes || !made || !all || !e || !context || fread(bytes, 1, size, file) != size) return 2;
    *e = (struct estimate){.bytes = bytes, .size = size, .repeat = {1, 4, 8}};
    for (int i = 0; i < HASHES; i++)
        if (!(e->last[i] = calloc((size_t)1 << HASH_BITS, sizeof *e->last[i]))) return 2;
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level);
    if (level >= 16) ZSTD_CCtx_setParameter(context, ZSTD_c_strategy, ZSTD_btultra);
    if (level >= 16) ZSTD_CCtx_setParameter(context, ZSTD_c_useBlockSplitter, ZSTD_ps_disable);
    const size_t compressed = ZSTD_compress2(context, made, bound, bytes, size);
    ZSTD_CCtx_reset(context, ZSTD_reset_session_only);
    const size_t count = ZSTD_generateSequences(context, all, room, bytes, size);
    if (ZSTD_isError(count) || ZSTD_isError(compressed)) return fprintf(stderr, "%s\n", ZSTD_getErrorName(count)), 2;
    size_t at = 0, blocks = 0, sequences = 0;
    for (size_t k = 0; k < count; k++) {
        const uint32_t literals = all[k].litLength, matched = all[k].matchLength;
        for (uint32_t i = 0; i < literals + (matched > 0); i++) {
            step(e, at, &all[k], i);
            for (const size_t end = at + (matched > 0 && i == literals ? matched : 1); at < end; at++)
                for (int h = 0; h < HASHES; h++) *place(e, at, h) = (uint32_t)at + 1;
        }
        blocks += matched == 0;
        sequences += matched > 0;
    }
    if (at != size) return fprintf(stderr, "the sequences are of %zu bytes, not %zu\n", at, size), 2;
    printf("%s -%d: plain %zu, zst %zu, %zu sequences, %zu strays; decisions %.0f (starts %.0f, offsets %.0f, lengths "
           "%.0f), "
           "tables %zu\n",
           argv[1], level, size, compressed, sequences, e->strays, (e->bits[0] + e->bits[1] + e->bits[2]) / 8,
           e->bits[0] / 8, e->bits[1] / 8, e->bits[2] / 8, blocks * TABLES);
    return 0;
}
