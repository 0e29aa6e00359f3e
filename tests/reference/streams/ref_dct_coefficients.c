/* FORMAT.md 4.10.3 and 4.10.4: the coefficients of a slice of a JPEG stream. */
#include "ref_dct.h"

#include <stdlib.h>

/* ---- 4.10.4 The coder ---- */

struct context {
    uint16_t over[7];
    unsigned n;
};

struct coder {
    const uint8_t *data;
    uint64_t bits;              /* of the slice */
    uint64_t symbol_at, raw_at; /* bits that were read from the beginning and from the end */
    uint32_t range, code;
};

static unsigned next_bit(struct coder *c)
{
    uint64_t at = c->symbol_at++;
    return at < c->bits ? (unsigned)c->data[at / 8] >> (7 - at % 8) & 1 : 0;
}

static uint32_t raw_number(struct coder *c, unsigned n)
{
    uint32_t value = 0;
    for (unsigned i = 0; i < n; i++) {
        uint64_t at = c->raw_at++;
        if (at < c->bits) value |= (uint32_t)(c->data[(c->bits - 1 - at) / 8] >> at % 8 & 1) << i;
    }
    return value;
}

static void learn(struct context *context, unsigned y)
{
    uint32_t r = 65536 / (context->n + 2);
    for (unsigned i = 0; i < 7; i++) {
        uint32_t over = context->over[i];
        if (i < y)
            over += (65535 - over) * r >> 16;
        else
            over -= over * r >> 16;
        context->over[i] = (uint16_t)over;
    }
    if (context->n < 63) context->n++;
}

/* y and z are null if the symbol has one context. */
static unsigned symbol(struct coder *c, struct context *x, struct context *y, struct context *z)
{
    uint32_t lower[8] = {0};
    for (unsigned i = 0; i < 7; i++) {
        uint32_t over = x->over[i];
        if (y) over = (((over + y->over[i] + 1) >> 1) + z->over[i] + 1) >> 1;
        lower[i] = (over * (c->range - 8) >> 16) + 7 - i;
    }
    unsigned value = 0;
    while (lower[value] > c->code) value++;
    c->range = (value > 0 ? lower[value - 1] : c->range) - lower[value];
    c->code -= lower[value];
    for (; c->range < 32768; c->range *= 2) c->code = 2 * c->code + next_bit(c);
    learn(x, value);
    if (y) learn(y, value);
    if (z) learn(z, value);
    return value;
}

/* ---- 4.10.3: contexts ---- */

struct contexts { /* for the first component, or for all others */
    /* Step 1. */
    struct context count_a[10][8], count_b[10][10][8], count_c[10][10][8];
    /* Step 2. */
    struct context inner_a[13][10][20], inner_b[49][20], inner_c[20][20], inner_escape[20][2];
    /* Step 3. */
    struct context number_a[10], number_b[8], number_c[8][10];
    struct context edge_a[8][8][20], edge_b[8][10][20], edge_c[8][8][21], edge_escape[20][2];
    /* Step 4. */
    struct context dc_a[20], dc_b[10], dc_c[20], dc_escape[20][2];
    struct context edge_sign[21], dc_sign[3][3];
};

static void begin_contexts(struct contexts *contexts)
{
    static const struct context begin = {{44000, 30000, 20000, 14000, 9000, 6000, 3500}, 0}, sign = {{32768}, 0};
    struct context *c = (struct context *)contexts;
    for (size_t i = 0; i < sizeof *contexts / sizeof *c; i++) c[i] = begin;
    for (unsigned i = 0; i < 21; i++) contexts->edge_sign[i] = sign;
    for (unsigned i = 0; i < 9; i++) contexts->dc_sign[i / 3][i % 3] = sign;
}

static unsigned bin(uint32_t x, unsigned n)
{
    if (x < 2) return x;
    unsigned high = ref_log2(x), b = 2 * high + (x >> (high - 1) & 1);
    return b < n ? b : n - 1;
}

static unsigned few(unsigned n)
{
    if (n < 5) return n;
    return n < 7 ? 5 : n < 10 ? 6 : n < 15 ? 7 : n < 25 ? 8 : 9;
}

static unsigned shift(uint32_t e)
{
    return e < 9 ? 0 : ref_bit_count(e) - 3;
}

static unsigned mag(int32_t x)
{
    return abs(x) < 255 ? (unsigned)abs(x) : 255;
}

static unsigned at_most_1023(uint32_t x)
{
    return x < 1023 ? x : 1023;
}

static int16_t to_signed(uint32_t x)
{
    x &= 65535;
    return (int16_t)(x < 32768 ? (int32_t)x : (int32_t)x - 65536);
}

/* size(s) */
static uint32_t magnitude(struct coder *c, unsigned s, struct context *x, struct context *y, struct context *z,
                          struct context escape[2])
{
    uint32_t above = symbol(c, x, y, z); /* ((m - 1) >> s) + 1 */
    if (above == 0) return 0;
    if (above == 7) {
        unsigned n = symbol(c, &escape[0], NULL, NULL);
        if (n == 7) n += symbol(c, &escape[1], NULL, NULL);
        above = ((uint32_t)1 << n) + raw_number(c, n) + 6;
    }
    return ((above - 1) << s) + raw_number(c, s) + 1;
}

/* ---- 4.10.3: a block ---- */

/* zigzag[v][u] is the place of a coefficient. */
static unsigned zigzag[8][8], column[64], row[64];

static void make_zigzag(void)
{
    unsigned k = 0;
    for (unsigned sum = 0; sum < 15; sum++) {
        for (unsigned i = 0; i <= sum; i++) {
            unsigned u = sum % 2 == 0 ? i : sum - i, v = sum - u;
            if (u > 7 || v > 7) continue;
            zigzag[v][u] = k;
            column[k] = u;
            row[k++] = v;
        }
    }
}

struct place { /* a block that is decoded */
    struct coder *c;
    struct contexts *contexts;
    const struct ref_dct_component *component;
    struct ref_dct_block *block;
    const struct ref_dct_block *left, *above, *corner, *other; /* null: missing */
    unsigned o;                                                /* step 1 */
    uint32_t near[64];
    int32_t b0[8], b1[8]; /* of what is decoded so far */
};

/* Keeps a coefficient, and adds it to the borders. */
static void set(struct place *p, unsigned k, uint32_t x)
{
    static const int32_t weight[8] = {256, 382, 432, 487, 512, 479, 375, 207};
    struct ref_dct_block *block = p->block;
    unsigned u = column[k], v = row[k];
    block->x[k] = to_signed(x);
    int32_t t = to_signed((uint32_t)block->x[k] * p->component->q[k]);
    if (u > 0) p->b0[v] += t * weight[u];
    if (v > 0) p->b1[u] += t * weight[v];
    block->e0[v] += u % 2 == 0 ? t * weight[u] : -t * weight[u];
    block->e1[u] += v % 2 == 0 ? t * weight[v] : -t * weight[v];
}

static void begin_near(struct place *p)
{
    for (unsigned k = 0; k < 64; k++) {
        unsigned l = p->left ? mag(p->left->x[k]) : 0, a = p->above ? mag(p->above->x[k]) : 0;
        unsigned c = p->corner ? mag(p->corner->x[k]) : 0, o = p->other ? mag(p->other->x[k]) : 0;
        p->near[k] = (13 * (l + a) + 6 * c + 4 * o) >> 2;
    }
}

static void raise(struct place *p, unsigned u, unsigned v, uint32_t by)
{
    if (u < 8 && v < 8) p->near[zigzag[v][u]] += by;
}

/* Step 1. */
static void read_count(struct place *p)
{
    struct contexts *h = p->contexts;
    unsigned l = p->left ? p->left->cnt : 0, a = p->above ? p->above->cnt : 0;
    unsigned m = p->left && p->above ? (l + a + 1) / 2 : l + a; /* a missing one has 0 */
    unsigned part[2], x = 7;
    for (unsigned i = 0; i < 2; i++) {
        part[i] =
            symbol(p->c, &h->count_a[few(m)][x], &h->count_b[few(l)][few(a)][x], &h->count_c[few(p->o)][few(m)][x]);
        x = part[0];
    }
    p->block->cnt = 8 * part[0] + part[1];
    if (p->block->cnt > 49) p->block->cnt = 49;
}

/* Step 2. */
static void read_interior(struct place *p)
{
    struct contexts *h = p->contexts;
    unsigned left = p->block->cnt, i = 0;
    for (unsigned k = 0; k < 64 && left > 0; k++) {
        unsigned u = column[k], v = row[k];
        if (u == 0 || v == 0) continue;
        unsigned near = at_most_1023(p->near[k]), g = bin(near, 20), share = bin(256 * left / (49 - i), 20);
        uint32_t m = magnitude(p->c, shift(near >> 4), &h->inner_a[i / 4][few(left)][g], &h->inner_b[i][g],
                               &h->inner_c[share][g], h->inner_escape[g]);
        i++;
        if (m == 0) continue;
        left--;
        set(p, k, raw_number(p->c, 1) ? 0 - m : m);
        uint32_t by = m < 255 ? m : 255;
        raise(p, u + 1, v, 3 * by);
        raise(p, u, v + 1, 3 * by);
        raise(p, u + 1, v + 1, 2 * by);
        raise(p, u + 2, v, by);
        raise(p, u, v + 2, by);
    }
}

/* Step 3. */
static void read_edge(struct place *p, unsigned axis)
{
    struct contexts *h = p->contexts;
    const struct ref_dct_block *beside = axis == 0 ? p->left : p->above;
    unsigned col = p->left ? p->left->col : 0, row_above = p->above ? p->above->row : 0, count = few(p->block->cnt);
    unsigned left = symbol(p->c, &h->number_a[count], &h->number_b[axis == 0 ? col : row_above],
                           &h->number_c[(col + row_above) / 2][count]);
    if (axis == 0)
        p->block->col = left;
    else
        p->block->row = left;
    for (unsigned i = 1; i < 8 && left > 0; i++) {
        unsigned k = axis == 0 ? zigzag[i][0] : zigzag[0][i];
        int32_t guess = 0;
        if (beside) guess = axis == 0 ? beside->e0[i] - p->b0[i] : beside->e1[i] - p->b1[i];
        uint32_t size = (uint32_t)abs(guess) >> 5;
        uint32_t z = at_most_1023((size < 65535 ? size : 65535) * (32768 / p->component->q[k]) >> 16);
        unsigned near = at_most_1023(p->near[k]), g = bin(near, 20), e = beside ? bin(z, 20) : 20;
        uint32_t m = magnitude(p->c, shift(at_most_1023(near + 4 * z) >> 4), &h->edge_a[i][left][g],
                               &h->edge_b[left][count][g], &h->edge_c[i][left][e], h->edge_escape[g]);
        if (m == 0) continue;
        left--;
        unsigned negative;
        if (z == 0)
            negative = raw_number(p->c, 1);
        else
            negative = (symbol(p->c, &h->edge_sign[e], NULL, NULL) != 0) != (guess < 0);
        set(p, k, negative ? 0 - m : m);
    }
}

static unsigned side(int32_t x)
{
    return x == 0 ? 0 : x < 0 ? 1 : 2;
}

/* Step 4. */
static void read_dc(struct place *p)
{
    struct contexts *h = p->contexts;
    int64_t x = p->left ? p->left->e0[0] - p->b0[0] : 0, y = p->above ? p->above->e1[0] - p->b1[0] : 0;
    bool both = p->left && p->above;
    int64_t sum = both ? x / 2 + y / 2 : x + y, d = (int64_t)256 * p->component->q[0];
    int64_t guess = (llabs(sum) + d / 2) / d;
    if (guess > 32767) guess = 32767;
    if (sum < 0) guess = -guess;
    int32_t left = p->left ? p->left->d : 0, above = p->above ? p->above->d : 0;
    uint32_t w = (uint32_t)(abs(left) + abs(above));
    int64_t apart = 4 * llabs(x / 2 - y / 2) / d;
    unsigned f = both ? bin((uint32_t)apart, 19) : 19, g = bin(w, 20);
    uint32_t m =
        magnitude(p->c, shift(w >> 1), &h->dc_a[f], &h->dc_b[few(p->block->cnt)], &h->dc_c[g], h->dc_escape[g]);
    if (m > 0 && symbol(p->c, &h->dc_sign[side(left)][side(above)], NULL, NULL)) m = 0 - m;
    p->block->d = to_signed(m);
    set(p, 0, (uint32_t)guess + m);
}

static void read_block(struct place *p)
{
    begin_near(p);
    read_count(p);
    read_interior(p);
    read_edge(p, 0);
    read_edge(p, 1);
    read_dc(p);
}

/* ---- 4.10.3: a slice ---- */

/* Finds the neighbours of a block. Rows before first are not of this slice. */
static void find_neighbours(struct place *p, const struct ref_dct *dct, unsigned c, uint32_t first, uint32_t x,
                            uint32_t y)
{
    const struct ref_dct_component *component = &dct->component[c], *luma = &dct->component[0];
    size_t at = (size_t)y * component->columns + x;
    p->component = component;
    p->block = &component->blocks[at];
    if (x > 0) p->left = p->block - 1;
    if (y > first) p->above = p->block - component->columns;
    if (x > 0 && y > first) p->corner = p->above - 1;
    if (c > 0 && component[-1].h == component->h && component[-1].v == component->v)
        p->other = &component[-1].blocks[at];
    if (c > 0)
        p->o = luma->blocks[(size_t)(y * luma->v / component->v) * luma->columns + x * luma->h / component->h].cnt;
    else if (y > first)
        p->o = x + 1 < component->columns ? p->above[1].cnt : p->above->cnt;
}

bool ref_dct_slice(struct ref_dct *dct, const uint8_t *slice, size_t size, uint32_t first, uint32_t end)
{
    void *mark = ref_mark();
    struct contexts *contexts = ref_alloc(2, sizeof *contexts);
    struct coder coder = {.data = slice, .bits = (uint64_t)size * 8, .range = 65535};
    begin_contexts(&contexts[0]);
    begin_contexts(&contexts[1]);
    make_zigzag();
    for (unsigned i = 0; i < 16; i++) coder.code = 2 * coder.code + next_bit(&coder);
    for (unsigned c = 0; c < dct->components; c++) {
        const struct ref_dct_component *component = &dct->component[c];
        for (uint32_t y = first * component->v; y < end * component->v; y++) {
            for (uint32_t x = 0; x < component->columns; x++) {
                struct place p = {.c = &coder, .contexts = &contexts[c > 0]};
                find_neighbours(&p, dct, c, first * component->v, x, y);
                read_block(&p);
            }
        }
    }
    ref_release(mark);
    return true;
}
