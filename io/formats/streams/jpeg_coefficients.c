/* Codes quantised coefficients, block by block. FORMAT.md 4.10.3. One body codes and decodes. */
#include "jpeg_coefficients.h"

#include <stdlib.h>
#include <string.h>

#include "jpeg_coder.h"
#include "transform/status.h"

enum {
    SETS = 2,        /* of contexts: the first component, the others */
    INTERIOR = 49,   /* coefficients of neither the first row nor the first column */
    BINS = 12,       /* of magnitudes */
    LEFT_BINS = 10,  /* of coefficients that are to come */
    GUESS_BINS = 14, /* of guesses from borders */
    EDGE = 7,
    ESCAPE = 7
};

typedef struct tsr_jpeg_context context;

/* Three contexts for each kind of symbol: a, b, c. */
struct set {
    struct {
        context a[LEFT_BINS][8], b[100][8], c[100][8];
    } count;
    struct {
        context a[INTERIOR][LEFT_BINS][BINS], b[50][BINS][8], c[INTERIOR][25], escape[BINS][2];
    } interior;
    struct {
        context count_a[LEFT_BINS], count_b[8], count_c[8][LEFT_BINS];
        context a[EDGE][GUESS_BINS][8], b[BINS][8][LEFT_BINS], c[EDGE][8][25], escape[BINS][2];
        context sign[GUESS_BINS][3];
    } edge[2];
    struct {
        context a[BINS + 4], b[LEFT_BINS], c[BINS], escape[BINS][2];
        context sign[3][3];
    } dc;
};

/* What a block leaves to its neighbours to the right and below. */
struct border {
    int32_t profile[8]; /* its last column or row by the frequency along it */
    int16_t residual;   /* of the DC */
    uint8_t edges;      /* coefficients in the first column or row */
};

struct slice {
    struct tsr_jpeg_coder coder;
    struct tsr_bytes raw;
    struct set set[SETS];
    struct border *above; /* a row of blocks */
};

struct block {
    struct set *set;
    int16_t *own;
    const int16_t *left, *above, *corner, *other; /* neighbours; other: the same place of another component */
    struct border *from_left, *from_above;
    const uint16_t *quant;
    const uint16_t *inverse; /* 65536 / quant */
    bool has_left, has_above;
    int count_left, count_above, count_other;
    int count;
    uint16_t near[TSR_JPEG_BLOCK]; /* magnitudes of the neighbours, 4 times */
    uint16_t seen[TSR_JPEG_BLOCK]; /* magnitudes of the block's interior, as far as it is coded */
    int32_t begin[2][8], end[2][8]; /* profiles of the first and last column, of the first and last row */
};

/* Places in zigzag order: the column u and row v of coefficient k; and the opposite. */
static const uint8_t column[64] = {0, 1, 0, 0, 1, 2, 3, 2, 1, 0, 0, 1, 2, 3, 4, 5, 4, 3, 2, 1, 0, 0,
                                   1, 2, 3, 4, 5, 6, 7, 6, 5, 4, 3, 2, 1, 0, 1, 2, 3, 4, 5, 6, 7, 7,
                                   6, 5, 4, 3, 2, 3, 4, 5, 6, 7, 7, 6, 5, 4, 5, 6, 7, 7, 6, 7};
static const uint8_t row[64] = {0, 0, 1, 2, 1, 0, 0, 1, 2, 3, 4, 3, 2, 1, 0, 0, 1, 2, 3, 4, 5, 6,
                                5, 4, 3, 2, 1, 0, 0, 1, 2, 3, 4, 5, 6, 7, 7, 6, 5, 4, 3, 2, 1, 2,
                                3, 4, 5, 6, 7, 7, 6, 5, 4, 3, 4, 5, 6, 7, 7, 6, 5, 6, 7, 7};
static const uint8_t place[8][8] = {{0, 1, 5, 6, 14, 15, 27, 28},     {2, 4, 7, 13, 16, 26, 29, 42},
                                    {3, 8, 12, 17, 25, 30, 41, 43},   {9, 11, 18, 24, 31, 40, 44, 53},
                                    {10, 19, 23, 32, 39, 45, 52, 54}, {20, 22, 33, 38, 46, 51, 55, 60},
                                    {21, 34, 37, 47, 50, 56, 59, 61}, {35, 36, 48, 49, 57, 58, 62, 63}};
static const uint8_t interior[INTERIOR] = {4,  7,  8,  11, 12, 13, 16, 17, 18, 19, 22, 23, 24, 25, 26, 29, 30,
                                           31, 32, 33, 34, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48,
                                           49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
static const uint8_t left_bin[50] = {0, 1, 2, 3, 4, 5, 5, 6, 6, 6, 7, 7, 7, 7, 7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8,
                                     9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9};
/* 256 sqrt 2 (3 cos(u pi / 16) - cos(3 u pi / 16)) / 2: a cosine, carried on to the block's border. */
static const int32_t border_weight[8] = {256, 382, 432, 487, 512, 479, 375, 207};

static inline int magnitude(int value)
{
    return value < 0 ? -value : value;
}

static inline int between(int least, int value, int most)
{
    return value < least ? least : value > most ? most : value;
}

/* 0, 1 or 2 for zero, negative and positive numbers. */
static inline int side_of(int value)
{
    return value < 0 ? 1 : value > 0 ? 2 : 0;
}

/* Two bins an octave: 0, 1, 2, 3, 4..5, 6..7, 8..11, ... */
static inline int bin(uint32_t value, int limit)
{
    if (value < 2) return (int)value;
    const int length = tsr_jpeg_length(value), b = 2 * (length - 1) + (int)(value >> (length - 2) & 1);
    return b < limit ? b : limit - 1;
}

/* Two magnitudes up to 4. */
static inline int pair_of(int one, int other)
{
    return 5 * between(0, magnitude(one), 4) + between(0, magnitude(other), 4);
}

/* ---- Numbers ---------------------------------------------------------------------------------------------- */

/* The bits below a symbol of magnitudes near `expected`. */
static inline int shift_of(uint32_t expected)
{
    return expected < SH0 ? 0 : tsr_jpeg_length(expected) - SH1;
}

/* The part of a magnitude that goes beyond its symbol. */
TSR_HD_INLINE uint32_t code_escape(struct tsr_jpeg_coder *c, bool decode, uint32_t value, context *escape)
{
    int length = decode ? 0 : tsr_jpeg_length(value) - 1;
    const int first = tsr_jpeg_code_one(c, decode, length < ESCAPE ? length : ESCAPE, &escape[0]);
    int whole = first;
    if (first == ESCAPE) whole += tsr_jpeg_code_one(c, decode, length - ESCAPE, &escape[1]);
    return 1u << whole | tsr_jpeg_code_raw(c, decode, value & ((1u << whole) - 1), whole);
}

/* The rest of a magnitude that is not 0, whose symbol is known. */
TSR_HD_INLINE uint32_t code_rest(struct tsr_jpeg_coder *c, bool decode, int symbol, uint32_t value, int shift,
                                 context *escape)
{
    uint32_t above = (uint32_t)symbol;
    if (symbol == ESCAPE) above = ESCAPE - 1 + code_escape(c, decode, ((value - 1) >> shift) - (ESCAPE - 2), escape);
    return ((above - 1) << shift | tsr_jpeg_code_raw(c, decode, (value - 1) & ((1u << shift) - 1), shift)) + 1;
}

static inline int symbol_of(uint32_t value, int shift)
{
    if (value == 0) return 0;
    const uint32_t symbol = ((value - 1) >> shift) + 1;
    return symbol < ESCAPE ? (int)symbol : ESCAPE;
}

/* ---- A block's parts -------------------------------------------------------------------------------------- */

/* Adds a coefficient to the profiles of the block's borders. */
static inline void add_to_borders(struct block *b, int k, int value)
{
    const int u = column[k], v = row[k];
    int64_t wide = (int64_t)value * b->quant[k];
    wide = wide < -131072 ? -131072 : wide > 131071 ? 131071 : wide; /* so that sums fit */
    const int32_t across = (int32_t)wide * border_weight[u], down = (int32_t)wide * border_weight[v];
    if (u > 0) b->begin[0][v] += across;
    if (v > 0) b->begin[1][u] += down;
    b->end[0][v] += u & 1 ? -across : across;
    b->end[1][u] += v & 1 ? -down : down;
}

TSR_HD_INLINE void code_interior(struct slice *s, bool decode, struct block *b)
{
    struct tsr_jpeg_coder *c = &s->coder;
    struct set *set = b->set;
    int left = b->count;
    for (int i = 0; i < INTERIOR && left > 0; i++) {
        const int k = interior[i], lefts = left_bin[left];
        const int near = bin(b->near[k], BINS);
        const int u = column[k], v = row[k];
        const int inner = bin((uint32_t)b->seen[place[v - 1][u]] + b->seen[place[v][u - 1]], 8);
        const int pair = pair_of(b->other[k], b->above[k]);
        const uint32_t value = decode ? 0 : (uint32_t)magnitude(b->own[k]);
        const int shift = shift_of(b->near[k] >> 2);
        const int symbol =
            tsr_jpeg_code_three(c, decode, symbol_of(value, shift), &set->interior.a[i][lefts][near],
                                &set->interior.c[i][pair], &set->interior.b[left][near][inner]);
        if (symbol == 0) continue;
        left--;
        const int whole = (int)code_rest(c, decode, symbol, value, shift, set->interior.escape[near]);
        const bool negative = tsr_jpeg_code_raw(c, decode, b->own[k] < 0, 1);
        if (decode) b->own[k] = (int16_t)(negative ? -whole : whole);
        b->seen[k] = (uint16_t)whole;
        add_to_borders(b, k, b->own[k]);
    }
}

/* The first row (axis 1, guessed from above) or the first column (axis 0, guessed from the left). */
TSR_HD_INLINE int code_edge(struct slice *s, bool decode, struct block *b, int axis)
{
    struct tsr_jpeg_coder *c = &s->coder;
    const bool known = axis ? b->has_above : b->has_left;
    const struct border *from = axis ? b->from_above : b->from_left;
    int left = 0;
    for (int i = 1; i < 8 && !decode; i++) left += b->own[axis ? place[0][i] : place[i][0]] != 0;
    const int counts = left_bin[b->count], guessed = (b->from_left->edges & 15) + (b->from_above->edges >> 4);
    left = tsr_jpeg_code_three(c, decode, left, &b->set->edge[axis].count_a[counts],
                     &b->set->edge[axis].count_b[(axis ? b->from_above->edges : b->from_left->edges) >> 4 * axis & 7],
                     &b->set->edge[axis].count_c[guessed >> 1][counts]);
    const int edges = left;
    for (int i = 1; i < 8 && left > 0; i++) {
        const int k = axis ? place[0][i] : place[i][0];
        const int32_t guess = known ? from->profile[i] - b->begin[axis][i] : 0;
        const uint32_t size = (uint32_t)(guess < 0 ? -(int64_t)guess : guess) / (64u * b->quant[k]);
        const int guesses = known ? bin(size, GUESS_BINS - 1) : GUESS_BINS - 1;
        const int near = bin(b->near[k], BINS);
        const int pair = pair_of(b->other[k], axis ? b->left[k] : b->above[k]);
        const uint32_t value = decode ? 0 : (uint32_t)magnitude(b->own[k]);
        const int shift = shift_of(((uint32_t)b->near[k] + size) >> 3);
        const int symbol = tsr_jpeg_code_three(c, decode, symbol_of(value, shift), &b->set->edge[axis].c[i - 1][left][pair],
                                               &b->set->edge[axis].b[near][left][counts],
                                               &b->set->edge[axis].a[i - 1][guesses][left]);
        if (symbol == 0) continue;
        left--;
        const int whole = (int)code_rest(c, decode, symbol, value, shift, b->set->edge[axis].escape[near]);
        const int side = size == 0 ? 0 : side_of(guess);
        const bool negative = tsr_jpeg_code_one(c, decode, b->own[k] < 0, &b->set->edge[axis].sign[guesses][side]);
        if (decode) b->own[k] = (int16_t)(negative ? -whole : whole);
        add_to_borders(b, k, b->own[k]);
    }
    return edges;
}

/* The DC less what the borders of the neighbours make likely. */
TSR_HD_INLINE void code_dc(struct slice *s, bool decode, struct block *b)
{
    struct tsr_jpeg_coder *c = &s->coder;
    const int64_t scale = 256 * (int64_t)b->quant[0];
    const int64_t across = (int64_t)b->from_left->profile[0] - b->begin[0][0];
    const int64_t down = (int64_t)b->from_above->profile[0] - b->begin[1][0];
    const int64_t sum = b->has_left && b->has_above ? across + down
                        : b->has_left               ? 2 * across
                        : b->has_above              ? 2 * down
                                                    : 0;
    int64_t guess = ((sum < 0 ? -sum : sum) + scale) / (2 * scale);
    guess = guess > 32767 ? 32767 : guess;
    if (sum < 0) guess = -guess;
    int64_t apart = (across < down ? down - across : across - down) * 2 / scale;
    apart = apart > 65535 ? 65535 : apart;
    const int unsure = b->has_left && b->has_above ? bin((uint32_t)apart, BINS + 3) : BINS + 3;
    const int residual = (int16_t)(b->own[0] - (int)guess);
    const int before = magnitude(b->from_left->residual) + magnitude(b->from_above->residual);
    const uint32_t size = decode ? 0 : (uint32_t)magnitude(residual);
    const int shift = shift_of((uint32_t)before >> 1);
    const int befores = bin((uint32_t)before, BINS);
    const int symbol = tsr_jpeg_code_three(c, decode, symbol_of(size, shift), &b->set->dc.a[unsure],
                                           &b->set->dc.b[left_bin[b->count]], &b->set->dc.c[befores]);
    int value = 0;
    if (symbol > 0) {
        value = (int)code_rest(c, decode, symbol, size, shift, b->set->dc.escape[befores]);
        context *sign = &b->set->dc.sign[side_of(b->from_left->residual)][side_of(b->from_above->residual)];
        if (tsr_jpeg_code_one(c, decode, residual < 0, sign)) value = -value;
    }
    if (decode) b->own[0] = (int16_t)((int)guess + value);
    b->from_left->residual = b->from_above->residual = (int16_t)value;
    add_to_borders(b, 0, b->own[0]);
}

/* ---- Blocks and slices ------------------------------------------------------------------------------------ */

/* The magnitudes of the neighbours, and the empty borders. */
static void look_around(struct block *b)
{
    for (int k = 0; k < TSR_JPEG_BLOCK; k++) {
        const int near = 13 * (abs(b->left[k]) + abs(b->above[k])) + 6 * abs(b->corner[k]);
        b->near[k] = (uint16_t)((near > 65535 ? 65535 : near) >> 3);
    }
    memset(b->seen, 0, sizeof b->seen);
    memset(b->begin, 0, sizeof b->begin);
    memset(b->end, 0, sizeof b->end);
}

TSR_HD_INLINE void code_count(struct slice *s, bool decode, struct block *b)
{
    b->count = 0;
    for (int i = 0; i < INTERIOR && !decode; i++) b->count += b->own[interior[i]] != 0;
    const int l = b->count_left, a = b->count_above, o = b->count_other;
    const int around = b->has_left && b->has_above ? (l + a + 1) / 2 : b->has_left ? l : a;
    const int wide = left_bin[around];
    const int high = tsr_jpeg_code_three(&s->coder, decode, b->count >> 3, &b->set->count.a[wide][7],
                         &b->set->count.b[10 * left_bin[l] + left_bin[a]][7], &b->set->count.c[10 * left_bin[o] + wide][7]);
    const int low = tsr_jpeg_code_three(&s->coder, decode, b->count & 7, &b->set->count.a[wide][high],
                         &b->set->count.b[10 * left_bin[l] + left_bin[a]][high], &b->set->count.c[10 * left_bin[o] + wide][high]);
    b->count = 8 * high + low;
    if (b->count > INTERIOR) b->count = INTERIOR; /* of bytes that no encoder made */
}

TSR_HD_INLINE void code_block(struct slice *s, bool decode, struct block *b)
{
    look_around(b);
    code_count(s, decode, b);
    code_interior(s, decode, b);
    const int down = code_edge(s, decode, b, 0), across = code_edge(s, decode, b, 1);
    code_dc(s, decode, b);
    b->from_left->edges = b->from_above->edges = (uint8_t)(across << 4 | down);
    memcpy(b->from_left->profile, b->end[0], sizeof b->end[0]);
    memcpy(b->from_above->profile, b->end[1], sizeof b->end[1]);
}

static const int16_t no_block[TSR_JPEG_BLOCK];

/* Codes the rows of blocks from .. to - 1 of a component. */
TSR_HD_INLINE enum tsr_status code_rows(struct slice *s, bool decode, const struct tsr_jpeg *jpeg, int component,
                                        int16_t *coefficients, uint8_t *counts, size_t from, size_t to,
                                        struct tsr_error *error)
{
    const struct tsr_jpeg_component *own = &jpeg->component[component], *first = &jpeg->component[0];
    const struct tsr_jpeg_component *other = &jpeg->component[component > 0 ? component - 1 : 0];
    struct block b;
    b.set = &s->set[component > 0];
    b.quant = own->quant;
    const size_t stride = own->stride;
    const bool same = component > 0 && other->across == own->across && other->down == own->down;
    memset(s->above, 0, stride * sizeof *s->above);
    for (size_t y = from; y < to; y++) {
        struct border from_left = {.residual = 0};
        for (size_t x = 0; x < stride; x++) {
            const size_t at = own->first + y * stride + x;
            b.has_left = x > 0;
            b.has_above = y > from;
            b.own = coefficients + TSR_JPEG_BLOCK * at;
            b.left = b.has_left ? b.own - TSR_JPEG_BLOCK : no_block;
            b.above = b.has_above ? b.own - TSR_JPEG_BLOCK * stride : no_block;
            b.corner = b.has_left && b.has_above ? b.above - TSR_JPEG_BLOCK : no_block;
            b.other = same ? coefficients + TSR_JPEG_BLOCK * (other->first + y * stride + x) : b.left;
            b.count_left = b.has_left ? counts[at - 1] : 0;
            b.count_above = b.has_above ? counts[at - stride] : 0;
            const size_t there =
                first->first + y * first->down / own->down * first->stride + x * first->across / own->across;
            b.count_other = component > 0 ? counts[there] : b.has_above ? counts[at - stride + (x + 1 < stride)] : 0;
            b.from_left = &from_left;
            b.from_above = &s->above[x];
            if (!decode) {
                TSR_TRY(tsr_bytes_reserve(s->coder.out, TSR_JPEG_BLOCK_BYTES, error));
                TSR_TRY(tsr_bytes_reserve(s->coder.raw_out, TSR_JPEG_BLOCK_BYTES, error));
            }
            code_block(s, decode, &b);
            counts[at] = (uint8_t)b.count;
        }
        if (decode && tsr_jpeg_is_past(&s->coder))
            return tsr_fail(error, TSR_ERROR_CORRUPT, "the packed bytes of a JPEG stream are damaged");
    }
    return TSR_OK;
}

static size_t widest(const struct tsr_jpeg *jpeg)
{
    size_t stride = 0;
    for (int c = 0; c < jpeg->components; c++)
        if (jpeg->component[c].stride > stride) stride = jpeg->component[c].stride;
    return stride;
}

size_t tsr_jpeg_slice_memory(const struct tsr_jpeg *jpeg)
{
    return sizeof(struct slice) + widest(jpeg) * sizeof(struct border);
}

static struct slice *start_slice(const struct tsr_jpeg *jpeg)
{
    struct slice *s = malloc(tsr_jpeg_slice_memory(jpeg));
    if (!s) return NULL;
    s->above = (struct border *)(s + 1);
    s->raw = (struct tsr_bytes){.limit = SIZE_MAX / 4};
    context *contexts = (context *)s->set;
    for (size_t i = 0; i < sizeof s->set / sizeof *contexts; i++)
        contexts[i] = (context){{32768, 16384, 8192, 4096, 2048, 1024, 512, 0}};
    return s;
}

enum tsr_status tsr_jpeg_put_slice(const struct tsr_jpeg *jpeg, const int16_t *coefficients, uint8_t *counts,
                                   size_t from, size_t to, struct tsr_bytes *slice, struct tsr_error *error)
{
    struct slice *s = start_slice(jpeg);
    if (!s) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a coder of JPEG streams");
    enum tsr_status status = TSR_OK;
    tsr_jpeg_start_encoder(&s->coder, slice, &s->raw);
    for (int c = 0; c < jpeg->components && status == TSR_OK; c++) {
        const size_t rows = jpeg->component[c].down;
        /* the encoder writes no coefficient */
        status = code_rows(s, false, jpeg, c, (int16_t *)coefficients, counts, from * rows, to * rows, error);
    }
    if (status == TSR_OK) status = tsr_jpeg_finish_encoder(&s->coder, error);
    tsr_bytes_free(&s->raw);
    free(s);
    return status;
}

enum tsr_status tsr_jpeg_get_slice(const struct tsr_jpeg *jpeg, int16_t *coefficients, uint8_t *counts, size_t from,
                                   size_t to, const uint8_t *slice, size_t size, struct tsr_error *error)
{
    struct slice *s = start_slice(jpeg);
    if (!s) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a coder of JPEG streams");
    enum tsr_status status = TSR_OK;
    tsr_jpeg_start_decoder(&s->coder, slice, size);
    for (int c = 0; c < jpeg->components && status == TSR_OK; c++) {
        const size_t rows = jpeg->component[c].down;
        status = code_rows(s, true, jpeg, c, coefficients, counts, from * rows, to * rows, error);
    }
    free(s);
    return status;
}
