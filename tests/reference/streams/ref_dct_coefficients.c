/* JPEG.md 3 and 4: the coefficients of a slice of a JPEG stream. */
#include "ref_dct.h"

#include <stdlib.h>

/* ---- JPEG.md 4 The coder ---- */

struct context {
    uint16_t over[7];
    unsigned n;
};

struct chance {
    uint16_t one, rate;
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

static void narrow(struct coder *c, uint32_t lower, uint32_t upper)
{
    c->range = upper - lower;
    c->code -= lower;
    for (; c->range < 32768; c->range *= 2) c->code = 2 * c->code + next_bit(c);
}

static unsigned symbol(struct coder *c, struct context *const in[4])
{
    uint32_t lower[8] = {0};
    for (unsigned i = 0; i < 7; i++) {
        uint32_t ab = ((uint32_t)in[0]->over[i] + in[1]->over[i] + 1) >> 1;
        uint32_t cd = ((uint32_t)in[2]->over[i] + in[3]->over[i] + 1) >> 1;
        lower[i] = (((ab + cd + 1) >> 1) * (c->range - 8) >> 16) + 7 - i;
    }
    unsigned y = 0;
    while (lower[y] > c->code) y++;
    narrow(c, lower[y], y > 0 ? lower[y - 1] : c->range);
    for (unsigned i = 0; i < 4; i++) learn(in[i], y);
    return y;
}

static unsigned one_bit(struct coder *c, struct chance *chance)
{
    uint32_t split = c->range * chance->one >> 16, one = chance->one, rate = chance->rate;
    unsigned bit = c->code < split;
    narrow(c, bit ? 0 : split, bit ? split : c->range);
    if (bit)
        one += (65535 - one) * rate >> 16;
    else
        one -= one * rate >> 16;
    rate -= rate * rate >> 16;
    chance->one = (uint16_t)one;
    chance->rate = (uint16_t)(rate > 1200 ? rate : 1200);
    return bit;
}

/* ---- JPEG.md 3: contexts ---- */

/* The chances of a kind of numbers at a place. */
struct lows {
    struct chance low[8], lower[8][2];
};

struct contexts { /* for the first component, or for all others */
    /* Step 1. */
    struct context count_a[50], count_b[10][10], count_c[10][10], count_d[10][10];
    /* Step 2. */
    struct context inner_a[49][20], inner_b[49][50], inner_c[8][8][10], inner_d[49][10][12];
    /* Step 3. */
    struct context number_a[10][2], number_b[8][10], number_c[8][10], number_d[9][8][10];
    struct context edge_a[8][20][21], edge_b[8][8][21], edge_c[8][8][8][2], edge_d[8][8][12][2];
    /* Step 4. */
    struct context dc_a[20], dc_b[20][20], dc_c[10][8][8], dc_d[20][10];
};

struct chances {
    struct chance above[5][16];
    struct lows count, inner[49], number, edge[21], dc;
    struct chance edge_sign[21][2][8], dc_sign[2][8][8];
};

static void begin_contexts(struct contexts *contexts, struct chances *chances)
{
    static const struct context begin = {{40000, 20000, 10000, 5000, 2500, 1200, 600}, 0};
    struct context *c = (struct context *)contexts;
    struct chance *h = (struct chance *)chances;
    for (size_t i = 0; i < sizeof *contexts / sizeof *c; i++) c[i] = begin;
    for (size_t i = 0; i < sizeof *chances / sizeof *h; i++) h[i] = (struct chance){32768, 32767};
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

static unsigned length(uint32_t x)
{
    return x > 0 ? ref_bit_count(x) : 0;
}

static unsigned at_most_7(unsigned x)
{
    return x < 7 ? x : 7;
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

/* A number. */
static uint32_t number(struct coder *c, struct context *const in[4], struct chance above[16], struct lows *lows)
{
    unsigned t = symbol(c, in), n = t;
    if (t < 2) return t;
    while (t == 7 && n < 16 && one_bit(c, &above[n])) n++;
    unsigned first = one_bit(c, &lows->low[t]);
    uint32_t value = 2 + first;
    if (n > 2) value = 2 * value + one_bit(c, &lows->lower[t][first]);
    if (n > 3) value = (value << (n - 3)) + raw_number(c, n - 3);
    return value;
}

/* ---- JPEG.md 3: a block ---- */

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
    struct chances *chances;
    const struct ref_dct_component *component;
    struct ref_dct_block *block;
    const struct ref_dct_block *left, *above, *corner, *other; /* null: missing */
    unsigned o;                                                /* step 1 */
    uint32_t around[64], told[64];
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

static int32_t coefficient(const struct ref_dct_block *block, unsigned k)
{
    return block ? block->x[k] : 0;
}

static void look_around(struct place *p)
{
    for (unsigned k = 0; k < 64; k++) {
        unsigned l = mag(coefficient(p->left, k)), a = mag(coefficient(p->above, k));
        p->around[k] = (13 * (l + a) + 6 * mag(coefficient(p->corner, k)) + 4 * mag(coefficient(p->other, k))) >> 2;
        p->told[k] = 0;
    }
}

static unsigned near(const struct place *p, unsigned k)
{
    return bin(at_most_1023(p->told[k] + p->around[k]), 20);
}

static unsigned level(const struct ref_dct_block *block, unsigned k)
{
    return bin(mag(coefficient(block, k)), 8);
}

static void raise(struct place *p, unsigned u, unsigned v, uint32_t by)
{
    if (u < 8 && v < 8) p->told[zigzag[v][u]] += by;
}

/* Step 1. */
static void read_count(struct place *p)
{
    struct contexts *h = p->contexts;
    unsigned l = p->left ? p->left->cnt : 0, a = p->above ? p->above->cnt : 0;
    unsigned m = p->left && p->above ? (l + a + 1) / 2 : l + a; /* a missing one has 0 */
    unsigned corner = p->corner ? p->corner->cnt : 0;
    struct context *in[4] = {&h->count_a[m], &h->count_b[few(l)][few(a)], &h->count_c[few(p->o)][few(m)],
                             &h->count_d[few(corner)][few(m)]};
    uint32_t cnt = number(p->c, in, p->chances->above[0], &p->chances->count);
    p->block->cnt = cnt < 49 ? cnt : 49;
}

/* Step 2. */
static void read_interior(struct place *p)
{
    struct contexts *h = p->contexts;
    unsigned left = p->block->cnt, i = 0;
    for (unsigned k = 0; k < 64 && left > 0; k++) {
        unsigned u = column[k], v = row[k];
        if (u == 0 || v == 0) continue;
        struct context *in[4] = {&h->inner_a[i][near(p, k)], &h->inner_b[i][left],
                                 &h->inner_c[level(p->left, k)][level(p->above, k)][few(left)],
                                 &h->inner_d[i][few(left)][bin(p->told[k], 12)]};
        uint32_t m = number(p->c, in, p->chances->above[1], &p->chances->inner[i]);
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

static unsigned read_edge_count(struct place *p, unsigned axis)
{
    struct contexts *h = p->contexts;
    unsigned col = p->left ? p->left->col : 0, row_above = p->above ? p->above->row : 0, count = few(p->block->cnt);
    unsigned before = axis == 0 ? col : row_above, r = axis == 0 ? 8 : p->block->col;
    struct context *in[4] = {&h->number_a[count][axis], &h->number_b[before][count],
                             &h->number_c[(col + row_above) / 2][count], &h->number_d[r][before][count]};
    return at_most_7(number(p->c, in, p->chances->above[2], &p->chances->number));
}

static uint32_t interior_mag(const struct place *p, unsigned along, unsigned axis)
{
    if (along < 1 || along > 7) return 0;
    return mag(p->block->x[axis == 0 ? zigzag[along][1] : zigzag[1][along]]);
}

/* Step 3. */
static void read_edge(struct place *p, unsigned axis)
{
    struct contexts *h = p->contexts;
    const struct ref_dct_block *beside = axis == 0 ? p->left : p->above;
    unsigned left = read_edge_count(p, axis), w = 0;
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
        unsigned g = beside ? bin(z, 20) : 20;
        uint32_t s = interior_mag(p, i - 1, axis) + 2 * interior_mag(p, i, axis) + interior_mag(p, i + 1, axis);
        struct context *in[4] = {&h->edge_a[i][near(p, k)][g], &h->edge_b[bin(w, 8)][left][g],
                                 &h->edge_c[level(p->left, k)][level(p->above, k)][left][axis],
                                 &h->edge_d[i][left][bin(s, 12)][axis]};
        uint32_t m = number(p->c, in, p->chances->above[3], &p->chances->edge[g]);
        w = w / 2 + 2 * (m < 255 ? m : 255);
        if (m == 0) continue;
        left--;
        unsigned negative;
        if (z == 0)
            negative = raw_number(p->c, 1);
        else
            negative = one_bit(p->c, &p->chances->edge_sign[g][guess < 0][at_most_7(length(m))]);
        set(p, k, negative ? 0 - m : m);
    }
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
    unsigned f = both ? bin((uint32_t)apart, 19) : 19, count = few(p->block->cnt);
    struct context *in[4] = {&h->dc_a[f], &h->dc_b[f][bin(w, 20)], &h->dc_c[count][p->block->col][p->block->row],
                             &h->dc_d[f][count]};
    uint32_t m = number(p->c, in, p->chances->above[4], &p->chances->dc);
    if (m > 0) {
        int64_t part = (llabs(sum) + d / 2) % d / ((d + 7) / 8);
        if (one_bit(p->c, &p->chances->dc_sign[sum < 0][part][at_most_7(length(m))])) m = 0 - m;
    }
    p->block->d = to_signed(m);
    set(p, 0, (uint32_t)guess + m);
}

static void read_block(struct place *p)
{
    look_around(p);
    read_count(p);
    read_interior(p);
    read_edge(p, 0);
    read_edge(p, 1);
    read_dc(p);
}

/* ---- JPEG.md 3: a slice ---- */

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
    struct chances *chances = ref_alloc(2, sizeof *chances);
    begin_contexts(&contexts[0], &chances[0]);
    begin_contexts(&contexts[1], &chances[1]);
    make_zigzag();
    for (unsigned i = 0; i < 16; i++) coder.code = 2 * coder.code + next_bit(&coder);
    for (unsigned c = 0; c < dct->components; c++) {
        const struct ref_dct_component *component = &dct->component[c];
        for (uint32_t y = first * component->v; y < end * component->v; y++) {
            for (uint32_t x = 0; x < component->columns; x++) {
                struct place p = {.c = &coder, .contexts = &contexts[c > 0], .chances = &chances[c > 0]};
                find_neighbours(&p, dct, c, first * component->v, x, y);
                read_block(&p);
            }
        }
    }
    ref_release(mark);
    return true;
}
