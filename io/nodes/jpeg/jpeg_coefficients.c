/* Codes quantised coefficients, block by block. JPEG.md 3. One body codes and decodes. */
#include "jpeg_coefficients.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "jpeg_coder.h"
#include "transform/status.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* Kinds of numbers. */
enum { COUNT, WITHIN, EDGES, EDGE, DC, KINDS };

enum {
    SETS = 2,      /* of contexts: the first component, the others */
    INTERIOR = 49, /* coefficients of neither the first row nor the first column */
    BINS = 20,     /* of magnitudes */
    FEW = 10,      /* of numbers of coefficients */
    NEXT = 5,      /* places that a coefficient tells of */
    NOWHERE = 64,
    SIZES = 9,         /* in a row, with those beyond the block */
    KNOWN_LIMIT = 255, /* of a magnitude that is known */
    NEAR_LIMIT = 1023, /* of what is expected, 18 times */
    TOLD_LIMIT = 10 * KNOWN_LIMIT,
    LEVELS = 8,  /* bins of a neighbour's magnitude */
    TOLD = 12,   /* bins of what the block itself tells */
    LENGTHS = 8, /* the length of a number, up to 7 and above */
    HALF = 32768,
    LOWS = INTERIOR + BINS + 1 + 3,
};

typedef struct tsr_jpeg_context context;
typedef struct tsr_jpeg_chance chance;

/* Four contexts for each kind of number's length; then those of the bits below its highest one, and of a length above.
 */
struct set {
    struct {
        context a[INTERIOR + 1], b[FEW * FEW], c[FEW * FEW], d[FEW * FEW];
    } count;
    struct {
        context a[INTERIOR][32], b[INTERIOR][64], c[LEVELS * LEVELS][16], d[INTERIOR][16][16];
    } interior;
    struct edge_set {
        context count_a[FEW * 2], count_b[8 * FEW], count_c[8 * FEW], count_d[9 * 8 * FEW];
        context a[8][BINS][32], b[LEVELS][8][32], c[LEVELS * LEVELS][8][2], d[8][8][16][2];
    } edge;
    struct {
        context a[BINS], b[BINS * BINS], c[FEW * 8 * 8], d[BINS * FEW];
    } dc;
    chance above[KINDS][LENGTHS + 1], low[LOWS][LENGTHS][4]; /* of both bits: by the length, and the first one */
    chance edge_sign[2 * BINS + 1][LENGTHS], dc_sign[16][LENGTHS];
};

/* What a block leaves to its neighbours to the right and below. */
struct border {
    int32_t profile[8]; /* its last column or row by the frequency along it */
    int16_t residual;   /* of the DC */
    uint8_t edges;      /* coefficients in the first column or row */
};

struct slice {
    struct set set[SETS];
    struct tsr_jpeg_rates rates;
    struct tsr_jpeg_coder coder;
    uint8_t next[TSR_JPEG_BLOCK][NEXT]; /* NOWHERE: none */
    uint8_t bin[NEAR_LIMIT + 1];        /* of what is expected */
    uint8_t told[TOLD_LIMIT + 1];       /* bins of what the block itself tells */
    uint8_t level[4 * KNOWN_LIMIT + 1]; /* bins of magnitudes */
    uint16_t inverse[2][8];             /* of the component's quantisers */
    struct border *above;               /* a row of blocks */
    uint8_t (*levels)[TSR_JPEG_BLOCK];  /* the same, after one that is missing: bins of their magnitudes */
};

struct block {
    struct set *set;
    int16_t *own;
    const int16_t *left, *above, *corner, *other; /* neighbours; other: the same place of another component */
    struct border *from_left, *from_above;
    const uint16_t *quant;
    bool has_left, has_above;
    int count_left, count_above, count_corner, count_other;
    int count;
    uint16_t near[TSR_JPEG_BLOCK];     /* what neighbours tell of magnitudes */
    uint8_t size[9][SIZES];            /* magnitudes of the interior, by row and column */
    uint16_t told[TSR_JPEG_BLOCK + 1]; /* what the block itself tells; after it NOWHERE */
    uint8_t levels[TSR_JPEG_BLOCK];    /* of the blocks to the left and above */
    uint8_t (*level)[TSR_JPEG_BLOCK];  /* of the block above, and then of this one; before it, of the one to the left */
    /* Coefficients times quantisers: of the first column and row; sums of the interior's along rows and columns, of
     * even and of odd frequencies. */
    int32_t edge[2][8], sum[2][2][8];
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
static const uint8_t few[50] = {0, 1, 2, 3, 4, 5, 5, 6, 6, 6, 7, 7, 7, 7, 7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8,
                                9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9};
/* 256 sqrt 2 (3 cos(u pi / 16) - cos(3 u pi / 16)) / 2: a cosine, carried on to the block's border. */
static const int16_t border_weight[8] = {256, 382, 432, 487, 512, 479, 375, 207};

#if !defined(__SSE2__)
static const uint8_t is_interior[64] = {0, 0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1, 0, 0,
                                        1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1,
                                        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
#endif

static inline int magnitude(int value)
{
    return value < 0 ? -value : value;
}

/* Two bins an octave: 0, 1, 2, 3, 4..5, 6..7, 8..11, ... */
static inline int bin(uint32_t value, int limit)
{
    if (value < 2) return (int)value;
    const int length = tsr_bit_width(value), b = 2 * (length - 1) + (int)(value >> (length - 2) & 1);
    return b < limit ? b : limit - 1;
}

/* ---- Numbers ---------------------------------------------------------------------------------------------- */

/* What one number needs. */
struct asked {
    context *in[TSR_JPEG_CONTEXTS];
    chance (*low)[4], *above;
};

/* Codes a number below 65536. */
TSR_HD_INLINE uint32_t code_number(struct tsr_jpeg_coder *c, bool decode, uint32_t value, const struct asked *ask)
{
    const int known = decode ? 0 : tsr_bit_width(value);
    const int symbol = tsr_jpeg_code_symbol(c, decode, known < LENGTHS ? known : LENGTHS - 1, ask->in);
    if (symbol < 2) return (uint32_t)symbol;
    int length = symbol;
    if (symbol == LENGTHS - 1)
        while (length < 16 && tsr_jpeg_code_bit(c, decode, known > length, &ask->above[length - symbol])) length++;
    int low = length - 2;
    uint32_t whole = 2 | (uint32_t)tsr_jpeg_code_bit(c, decode, (int)(value >> low & 1), &ask->low[symbol][1]);
    if (low == 0) return whole;
    low--;
    whole = 2 * whole | (uint32_t)tsr_jpeg_code_bit(c, decode, (int)(value >> low & 1), &ask->low[symbol][whole]);
    if (low == 0) return whole;
    return whole << low | tsr_jpeg_code_raw(c, decode, value & ((1u << low) - 1), low);
}

/* ---- A block's parts -------------------------------------------------------------------------------------- */

static inline uint32_t near_of(const struct block *b, int k)
{
    const uint32_t near = (uint32_t)b->near[k] + b->told[k];
    return near < NEAR_LIMIT ? near : NEAR_LIMIT;
}

static inline void add_up(struct block *b, int k, int value)
{
    const int u = column[k], v = row[k], scaled = (int16_t)(value * b->quant[k]); /* modulo 2^16 */
    b->sum[0][u & 1][v] += scaled * border_weight[u];
    b->sum[1][v & 1][u] += scaled * border_weight[v];
}

TSR_HD_INLINE void code_interior(const struct slice *s, struct tsr_jpeg_coder *c, bool decode, struct block *b)
{
    struct set *set = b->set;
    int left = b->count, fewer = few[left];
    for (int i = 0; left > 0 && i < INTERIOR; i++) {
        const int k = interior[i];
        const struct asked ask = {{&set->interior.a[i][s->bin[near_of(b, k)]], &set->interior.b[i][left],
                                   &set->interior.c[b->levels[k]][fewer],
                                   &set->interior.d[i][fewer][s->told[b->told[k]]]},
                                  set->low[i],
                                  set->above[WITHIN]};
        const int whole = (int)code_number(c, decode, decode ? 0 : (uint32_t)magnitude(b->own[k]), &ask);
        if (whole == 0) continue;
        fewer = few[--left];
        const bool negative = tsr_jpeg_code_raw(c, decode, b->own[k] < 0, 1);
        if (decode) b->own[k] = (int16_t)(negative ? -whole : whole);
        const unsigned tells = whole < KNOWN_LIMIT ? (unsigned)whole : KNOWN_LIMIT;
        b->size[row[k]][column[k]] = (uint8_t)tells;
        const uint8_t *next = s->next[k];
        b->told[next[0]] = (uint16_t)(b->told[next[0]] + 3 * tells);
        b->told[next[1]] = (uint16_t)(b->told[next[1]] + 3 * tells);
        b->told[next[2]] = (uint16_t)(b->told[next[2]] + 2 * tells);
        b->told[next[3]] = (uint16_t)(b->told[next[3]] + tells);
        b->told[next[4]] = (uint16_t)(b->told[next[4]] + tells);
        add_up(b, k, b->own[k]);
    }
}

/* What a neighbour's border makes likely of place i of the first row (axis 1, of the block above) or the first column
 * (axis 0, of the block to the left): 4 times the magnitude. */
static inline int guess_edge(const struct slice *s, const struct block *b, int axis, int i, bool *negative)
{
    const struct border *from = axis ? b->from_above : b->from_left;
    const int32_t guess = from->profile[i] - b->sum[axis][0][i] - b->sum[axis][1][i];
    const int32_t away = (guess < 0 ? -guess : guess) >> 5;
    const uint32_t size = (uint32_t)(away < 65535 ? away : 65535) * s->inverse[axis][i] >> 16;
    *negative = guess < 0;
    return (int)(size < NEAR_LIMIT ? size : NEAR_LIMIT);
}

/* Codes the number of coefficients of the edge that are not 0. other: that of the other edge; 8: not yet known. */
TSR_HD_INLINE int code_edge_count(struct tsr_jpeg_coder *c, bool decode, struct block *b, int axis, int other)
{
    struct edge_set *set = &b->set->edge;
    int edges = 0;
    for (int i = 1; i < 8 && !decode; i++) edges += b->own[axis ? place[0][i] : place[i][0]] != 0;
    const int counts = few[b->count], across = b->from_above->edges >> 4, down = b->from_left->edges & 15;
    const int before = axis ? across : down;
    const struct asked ask = {{&set->count_a[2 * counts + axis], &set->count_b[before * FEW + counts],
                               &set->count_c[(across + down) / 2 * FEW + counts],
                               &set->count_d[(other * 8 + before) * FEW + counts]},
                              b->set->low[LOWS - 2],
                              b->set->above[EDGES]};
    const int coded = (int)code_number(c, decode, (uint32_t)edges, &ask);
    return coded < 7 ? coded : 7; /* of bytes that no encoder made */
}

/* Magnitudes of the interior beside place i of an edge. */
static inline unsigned beside_edge(const struct block *b, int axis, int i)
{
    const uint8_t *size = axis ? b->size[1] : &b->size[0][1];
    const int step = axis ? 1 : SIZES;
    return 2u * size[i * step] + size[(i - 1) * step] + size[(i + 1) * step];
}

/* Returns the number of coefficients of the edge that are not 0. */
TSR_HD_INLINE int code_edge(const struct slice *s, struct tsr_jpeg_coder *c, bool decode, struct block *b, int axis,
                            int other)
{
    const bool known = axis ? b->has_above : b->has_left;
    struct edge_set *set = &b->set->edge;
    const int edges = code_edge_count(c, decode, b, axis, other);
    unsigned before = 0;
    for (int i = 1, left = edges; left > 0 && i < 8; i++) {
        const int k = axis ? place[0][i] : place[i][0];
        bool negative = false;
        const int near = s->bin[near_of(b, k)], size = known ? guess_edge(s, b, axis, i, &negative) : 0;
        const int guess = known ? s->bin[size] : BINS;
        const struct asked ask = {{&set->a[i][near][guess], &set->b[s->level[before]][left][guess],
                                   &set->c[b->levels[k]][left][axis],
                                   &set->d[i][left][s->told[beside_edge(b, axis, i)]][axis]},
                                  b->set->low[INTERIOR + guess],
                                  b->set->above[EDGE]};
        int whole = (int)code_number(c, decode, decode ? 0 : (uint32_t)magnitude(b->own[k]), &ask);
        before = before / 2 + 2 * (unsigned)(whole < KNOWN_LIMIT ? whole : KNOWN_LIMIT);
        if (whole == 0) continue;
        left--;
        const int length = tsr_bit_width((uint32_t)whole);
        chance *sign = b->set->edge_sign[guess + (negative ? BINS : 0)];
        if (size == 0)
            negative = tsr_jpeg_code_raw(c, decode, b->own[k] < 0, 1);
        else
            negative = tsr_jpeg_code_bit(c, decode, b->own[k] < 0, &sign[length < LENGTHS ? length : LENGTHS - 1]);
        if (negative) whole = -whole;
        if (decode) b->own[k] = (int16_t)whole;
        b->edge[axis][i] = (int16_t)(b->own[k] * b->quant[k]);
    }
    return edges;
}

/* The DC less what the borders of the neighbours make likely. */
TSR_HD_INLINE int code_dc(struct tsr_jpeg_coder *c, bool decode, struct block *b, int32_t across, int32_t down,
                          int edges)
{
    const uint32_t scale = 256 * (uint32_t)b->quant[0];
    const int32_t sum = b->has_left && b->has_above ? across / 2 + down / 2
                        : b->has_left               ? across
                        : b->has_above              ? down
                                                    : 0;
    int guess = (int)(((uint32_t)magnitude(sum) + scale / 2) / scale);
    const int over = (int)(((uint32_t)magnitude(sum) + scale / 2) % scale / ((scale + 7) / 8)); /* what it leaves out */
    guess = guess > 32767 ? 32767 : guess;
    if (sum < 0) guess = -guess;
    const uint32_t apart = (uint32_t)magnitude(across / 2 - down / 2) * 4 / scale;
    const int unsure = b->has_left && b->has_above ? bin(apart, BINS - 1) : BINS - 1;
    const int residual = (int16_t)(b->own[0] - guess), counts = few[b->count];
    const uint32_t before = (uint32_t)(magnitude(b->from_left->residual) + magnitude(b->from_above->residual));
    const struct asked ask = {{&b->set->dc.a[unsure], &b->set->dc.b[unsure * BINS + bin(before, BINS)],
                               &b->set->dc.c[counts * 64 + edges], &b->set->dc.d[unsure * FEW + counts]},
                              b->set->low[LOWS - 1],
                              b->set->above[DC]};
    int value = (int)code_number(c, decode, decode ? 0 : (uint32_t)magnitude(residual), &ask);
    if (value > 0) {
        const int length = tsr_bit_width((uint32_t)value);
        chance *sign = &b->set->dc_sign[over + (sum < 0 ? 8 : 0)][length < LENGTHS ? length : LENGTHS - 1];
        if (tsr_jpeg_code_bit(c, decode, residual < 0, sign)) value = -value;
    }
    if (decode) b->own[0] = (int16_t)(guess + value);
    return value;
}

/* The coefficients of the interior that are not 0. */
static inline int count_interior(const int16_t *block)
{
#if defined(__SSE2__)
    /* The edges' places are bits 0, 1, 2, 3, 5, 6, 9, 10, 14, 15, 20, 21, 27, 28 and 35. */
    uint64_t zeros = 0;
    const __m128i *at = (const __m128i *)(const void *)block, none = _mm_setzero_si128();
    for (int i = 0; i < 4; i++) {
        const __m128i one = _mm_cmpeq_epi16(_mm_loadu_si128(at + 2 * i), none);
        const __m128i two = _mm_cmpeq_epi16(_mm_loadu_si128(at + 2 * i + 1), none);
        zeros |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_packs_epi16(one, two)) << 16 * i;
    }
    int count = 0;
    for (uint64_t found = ~zeros & ~(uint64_t)0x81830c66f; found; found &= found - 1) count++;
    return count;
#else
    int count = 0;
    for (int k = 0; k < TSR_JPEG_BLOCK; k++) count += (block[k] != 0) & is_interior[k];
    return count;
#endif
}

TSR_HD_INLINE void code_count(struct tsr_jpeg_coder *c, bool decode, struct block *b)
{
    const int count = decode ? 0 : count_interior(b->own);
    const int l = b->count_left, a = b->count_above;
    const int around = b->has_left && b->has_above ? (l + a + 1) / 2 : b->has_left ? l : a;
    struct set *set = b->set;
    const struct asked ask = {{&set->count.a[around], &set->count.b[FEW * few[l] + few[a]],
                               &set->count.c[FEW * few[b->count_other] + few[around]],
                               &set->count.d[FEW * few[b->count_corner] + few[around]]},
                              set->low[LOWS - 3],
                              set->above[COUNT]};
    b->count = (int)code_number(c, decode, (uint32_t)count, &ask);
    if (b->count > INTERIOR) b->count = INTERIOR; /* of bytes that no encoder made */
}

/* ---- Blocks and slices ------------------------------------------------------------------------------------ */

#if defined(__SSE2__)

static inline __m128i known_magnitudes(const int16_t *values)
{
    const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)values);
    return _mm_min_epi16(_mm_max_epi16(v, _mm_subs_epi16(_mm_setzero_si128(), v)), _mm_set1_epi16(KNOWN_LIMIT));
}

static inline void look_around(struct block *b)
{
    for (int k = 0; k < TSR_JPEG_BLOCK; k += 8) {
        const __m128i beside = _mm_add_epi16(known_magnitudes(b->left + k), known_magnitudes(b->above + k));
        const __m128i across = known_magnitudes(b->corner + k), other = known_magnitudes(b->other + k);
        const __m128i sum =
            _mm_add_epi16(_mm_mullo_epi16(beside, _mm_set1_epi16(13)),
                          _mm_add_epi16(_mm_mullo_epi16(across, _mm_set1_epi16(6)), _mm_slli_epi16(other, 2)));
        _mm_storeu_si128((__m128i *)(void *)(b->near + k), _mm_srli_epi16(sum, 2));
    }
}

#else

static inline unsigned known_magnitude(int16_t value)
{
    const int size = magnitude(value);
    return (unsigned)(size < KNOWN_LIMIT ? size : KNOWN_LIMIT);
}

static inline void look_around(struct block *b)
{
    for (int k = 0; k < TSR_JPEG_BLOCK; k++) {
        const unsigned beside = known_magnitude(b->left[k]) + known_magnitude(b->above[k]);
        const unsigned across = known_magnitude(b->corner[k]), other = known_magnitude(b->other[k]);
        b->near[k] = (uint16_t)((13 * beside + 6 * across + 4 * other) >> 2);
    }
}

#endif

/* The levels that the neighbours will see. */
static inline void make_levels(struct block *b)
{
    uint8_t *level = b->level[0];
#if defined(__SSE2__)
    static const uint8_t limits[LEVELS - 1] = {1, 2, 3, 4, 6, 8, 12};
    for (int k = 0; k < TSR_JPEG_BLOCK; k += 16) {
        const __m128i sizes = _mm_packus_epi16(known_magnitudes(b->own + k), known_magnitudes(b->own + k + 8));
        __m128i levels = _mm_setzero_si128();
        for (int i = 0; i < LEVELS - 1; i++)
            levels = _mm_sub_epi8(levels, _mm_cmpeq_epi8(_mm_max_epu8(sizes, _mm_set1_epi8((char)limits[i])), sizes));
        _mm_storeu_si128((__m128i *)(void *)(level + k), levels);
    }
#else
    for (int k = 0; k < TSR_JPEG_BLOCK; k++) level[k] = (uint8_t)bin((uint32_t)magnitude(b->own[k]), LEVELS);
#endif
}

/* The profiles that the neighbours will see. */
static void make_border(const struct block *b, int axis, struct border *border)
{
    const int32_t *along = b->edge[1 - axis];
    int32_t first = 0;
    for (int i = 0; i < 8; i++) border->profile[i] = 256 * b->edge[axis][i] + b->sum[axis][0][i] - b->sum[axis][1][i];
    for (int n = 0; n < 8; n += 2) first += along[n] * border_weight[n] - along[n + 1] * border_weight[n + 1];
    border->profile[0] = first;
}

/* The DC's part of the profile: all but the DC. */
static int32_t begin_of(const struct block *b, int axis)
{
    int32_t sum = 0;
    for (int n = 1; n < 8; n++) sum += b->edge[1 - axis][n] * border_weight[n];
    return sum;
}

TSR_HD_INLINE void code_block(struct slice *s, bool decode, struct block *b)
{
    struct tsr_jpeg_coder c = s->coder;
    look_around(b);
    memset(b->told, 0, sizeof b->told);
    memset(b->size, 0, sizeof b->size);
    for (int k = 0; k < TSR_JPEG_BLOCK; k++) b->levels[k] = (uint8_t)(8 * b->level[-1][k] + b->level[0][k]);
    for (int i = 0; i < 8; i++) {
        b->edge[0][i] = b->edge[1][i] = 0;
        b->sum[0][0][i] = b->sum[0][1][i] = b->sum[1][0][i] = b->sum[1][1][i] = 0;
    }
    code_count(&c, decode, b);
    code_interior(s, &c, decode, b);
    const int down = code_edge(s, &c, decode, b, 0, 8), across = code_edge(s, &c, decode, b, 1, down);
    const int residual = code_dc(&c, decode, b, b->from_left->profile[0] - begin_of(b, 0),
                                 b->from_above->profile[0] - begin_of(b, 1), 8 * down + across);
    s->coder = c;
    b->edge[0][0] = b->edge[1][0] = (int16_t)(b->own[0] * b->quant[0]);
    make_levels(b);
    make_border(b, 0, b->from_left);
    make_border(b, 1, b->from_above);
    b->from_left->residual = b->from_above->residual = (int16_t)residual;
    b->from_left->edges = b->from_above->edges = (uint8_t)(across << 4 | down);
}

static const int16_t no_block[TSR_JPEG_BLOCK];

/* The two strings of an encoder. */
struct output {
    struct tsr_bytes *symbols, raw;
};

static enum tsr_status make_room_in(struct tsr_bytes *bytes, uint8_t **at, struct tsr_error *error)
{
    bytes->size = *at ? (size_t)(*at - bytes->bytes) : 0;
    if (*at && bytes->capacity - bytes->size >= TSR_JPEG_BLOCK_BYTES) return TSR_OK;
    TSR_TRY(tsr_bytes_reserve(bytes, TSR_JPEG_BLOCK_BYTES, error));
    *at = bytes->bytes + bytes->size;
    return TSR_OK;
}

/* For one more block. */
static enum tsr_status make_room(struct slice *s, struct output *output, struct tsr_error *error)
{
    TSR_TRY(make_room_in(output->symbols, &s->coder.out, error));
    return make_room_in(&output->raw, &s->coder.raw_out, error);
}

/* Codes the rows of blocks from .. to - 1 of a component. */
TSR_HD_INLINE enum tsr_status code_rows(struct slice *s, bool decode, const struct tsr_jpeg *jpeg, int component,
                                        int16_t *coefficients, uint8_t *counts, size_t from, size_t to,
                                        struct output *output, struct tsr_error *error)
{
    const struct tsr_jpeg_component *own = &jpeg->component[component], *first = &jpeg->component[0];
    const struct tsr_jpeg_component *other = &jpeg->component[component > 0 ? component - 1 : 0];
    struct block b;
    b.set = &s->set[component > 0];
    b.quant = own->quant;
    const size_t stride = own->stride;
    for (int i = 0; i < 8; i++) {
        s->inverse[0][i] = (uint16_t)(32768 / own->quant[place[i][0]]);
        s->inverse[1][i] = (uint16_t)(32768 / own->quant[place[0][i]]);
    }
    const bool same = component > 0 && other->across == own->across && other->down == own->down;
    memset(s->above, 0, stride * sizeof *s->above);
    memset(s->levels, 0, (stride + 1) * sizeof *s->levels);
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
            b.other = same ? coefficients + TSR_JPEG_BLOCK * (other->first + y * stride + x) : no_block;
            b.count_left = b.has_left ? counts[at - 1] : 0;
            b.count_above = b.has_above ? counts[at - stride] : 0;
            b.count_corner = b.has_left && b.has_above ? counts[at - stride - 1] : 0;
            const size_t there =
                first->first + y * first->down / own->down * first->stride + x * first->across / own->across;
            b.count_other = component > 0 ? counts[there] : b.has_above ? counts[at - stride + (x + 1 < stride)] : 0;
            b.from_left = &from_left;
            b.from_above = &s->above[x];
            b.level = &s->levels[x + 1];
            if (!decode) TSR_TRY(make_room(s, output, error));
            code_block(s, decode, &b);
            counts[at] = (uint8_t)b.count;
        }
        if (decode && tsr_jpeg_is_past(&s->coder))
            return tsr_fail(error, TSR_ERROR_CORRUPT, "the coded bytes of a JPEG stream are damaged");
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
    return sizeof(struct slice) + widest(jpeg) * (sizeof(struct border) + TSR_JPEG_BLOCK) + TSR_JPEG_BLOCK;
}

static void make_places(struct slice *s)
{
    static const uint8_t steps[NEXT][2] = {{1, 0}, {0, 1}, {1, 1}, {2, 0}, {0, 2}};
    for (int k = 0; k < TSR_JPEG_BLOCK; k++)
        for (int n = 0; n < NEXT; n++) {
            const int u = column[k] + steps[n][0], v = row[k] + steps[n][1];
            s->next[k][n] = u > 7 || v > 7 ? NOWHERE : place[v][u];
        }
    for (uint32_t near = 0; near <= NEAR_LIMIT; near++) s->bin[near] = (uint8_t)bin(near, BINS);
    for (uint32_t told = 0; told <= TOLD_LIMIT; told++) s->told[told] = (uint8_t)bin(told, TOLD);
    for (uint32_t size = 0; size <= 4 * KNOWN_LIMIT; size++) s->level[size] = (uint8_t)bin(size, LEVELS);
}

static void set_contexts(void *contexts, size_t size, context to)
{
    for (size_t i = 0; i < size / sizeof to; i++) ((context *)contexts)[i] = to;
}

static struct slice *start_slice(const struct tsr_jpeg *jpeg)
{
    static const context first = {{40000, 20000, 10000, 5000, 2500, 1200, 600, 0}};
    struct slice *s = malloc(tsr_jpeg_slice_memory(jpeg));
    if (!s) return NULL;
    s->above = (struct border *)(s + 1);
    s->levels = (uint8_t(*)[TSR_JPEG_BLOCK])(void *)(s->above + widest(jpeg));
    tsr_jpeg_make_rates(&s->rates);
    s->coder = (struct tsr_jpeg_coder){.rates = &s->rates};
    make_places(s);
    for (int i = 0; i < (jpeg->components > 1 ? SETS : 1); i++) {
        struct set *set = &s->set[i];
        set_contexts(set, offsetof(struct set, above), first);
        chance *const chances = &set->above[0][0];
        const size_t count = (sizeof *set - offsetof(struct set, above)) / sizeof *chances;
        for (size_t n = 0; n < count; n++) chances[n] = (chance){HALF, HALF - 1};
    }
    return s;
}

/* Ends the slice: the raw bits follow backwards. */
static enum tsr_status finish(struct slice *s, struct output *output, struct tsr_error *error)
{
    TSR_TRY(make_room(s, output, error));
    tsr_jpeg_finish_encoder(&s->coder);
    output->symbols->size = (size_t)(s->coder.out - output->symbols->bytes);
    output->raw.size = (size_t)(s->coder.raw_out - output->raw.bytes);
    for (size_t i = 0, j = output->raw.size; i + 1 < j; i++) {
        const uint8_t swapped = output->raw.bytes[i];
        output->raw.bytes[i] = output->raw.bytes[--j];
        output->raw.bytes[j] = swapped;
    }
    return tsr_bytes_put(output->symbols, output->raw.bytes, output->raw.size, error);
}

enum tsr_status tsr_jpeg_put_slice(const struct tsr_jpeg *jpeg, const int16_t *coefficients, uint8_t *counts,
                                   size_t from, size_t to, struct tsr_bytes *slice, struct tsr_error *error)
{
    struct slice *s = start_slice(jpeg);
    if (!s) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a coder of JPEG streams");
    struct output output = {slice, {.limit = SIZE_MAX / 4}};
    enum tsr_status status = TSR_OK;
    tsr_jpeg_start_encoder(&s->coder);
    for (int c = 0; c < jpeg->components && status == TSR_OK; c++) {
        const size_t rows = jpeg->component[c].down;
        /* the encoder writes no coefficient */
        status = code_rows(s, false, jpeg, c, (int16_t *)coefficients, counts, from * rows, to * rows, &output, error);
    }
    if (status == TSR_OK) status = finish(s, &output, error);
    tsr_bytes_free(&output.raw);
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
        status = code_rows(s, true, jpeg, c, coefficients, counts, from * rows, to * rows, NULL, error);
    }
    free(s);
    return status;
}
