/* DRAWN.md: drawn planes. */
#include <stdlib.h>
#include <string.h>

#include "ref_range.h"

struct slot {
    uint16_t value;
    uint8_t check;
    unsigned count;
    struct ref_chance right;
};

struct drawn {
    struct ref_coder c;
    uint32_t width, height, range;
    unsigned way, s, b;
    uint16_t *x, *errors;
    uint32_t row, column; /* of the sample that is decoded */
    uint32_t factor[62];
    unsigned blank, last; /* 3 */
    struct slot *memory[6];
    struct set *sets[2]; /* 8 */
    struct ref_chance flat[64], flatter[4], *general, *coarse, *different, *pattern, *value, *after;
    struct ref_chance residual[16][160];
    struct blend *blend; /* 7: of ways 2 and 3 */
};

/* 8: seven weights, and bits that they have learnt from. */
struct set {
    int64_t weight[7];
    unsigned bits;
};

/* A question that was not asked (4): its two chances, and the value that it is about. */
struct unasked {
    struct ref_chance *chance[2];
    uint32_t value;
};

struct unasked_list {
    unsigned count;
    struct unasked item[7];
};

struct blend {
    uint16_t *miss[8], *lost;
    int64_t guess[8], tap[10], factor[10], expected;
    unsigned activity;
    struct ref_chance by_activity[32][160], by_height[256][160];
};

static struct ref_chance *make_chances(size_t count)
{
    struct ref_chance *chances = ref_alloc(count, sizeof *chances);
    for (size_t i = 0; i < count; i++) chances[i].z = 32768;
    return chances;
}

/* 1: adapt, and quick bits. */
static void adapt_up_to(struct ref_chance *chance, unsigned bit, unsigned most)
{
    unsigned n = chance->n, r = n < 2 ? 1 : n < 4 ? 2 : n < 10 ? 3 : n < 21 ? 4 : n < 42 ? 5 : 6;
    if (n < most) chance->n++;
    chance->z = (uint16_t)(bit ? chance->z - ((chance->z - 32) >> r) : chance->z + ((65504 - chance->z) >> r));
}

static void adapt(struct ref_chance *chance, unsigned bit)
{
    adapt_up_to(chance, bit, 42);
}

static unsigned bit_by(struct ref_coder *c, uint32_t z)
{
    struct ref_chance copy = {(uint16_t)z, 0};
    return ref_bit(c, &copy);
}

static unsigned quick_bit(struct drawn *d, struct ref_chance *chance)
{
    unsigned bit = bit_by(&d->c, chance->z);
    adapt(chance, bit);
    return bit;
}

static unsigned fine_bit(struct drawn *d, struct ref_chance *fine, struct ref_chance *coarse)
{
    if (fine->n == 0) fine->z = coarse->z;
    unsigned bit = quick_bit(d, fine);
    adapt(coarse, bit);
    return bit;
}

/* 2: what stands u rows up and v columns to the right, of samples or of errors. */
static uint32_t at(const struct drawn *d, const uint16_t *of, int u, int v)
{
    int64_t r = (int64_t)d->row - u, c = (int64_t)d->column + v;
    if (c < 0 && u == 0) r--;
    if (r < 0) return 0;
    if (c < 0) c = 0;
    if (c >= d->width) c = d->width - 1;
    return of[(size_t)r * d->width + (size_t)c];
}

static uint32_t apart(uint32_t a, uint32_t b)
{
    return a > b ? a - b : b - a;
}

static uint32_t median(uint32_t w, uint32_t n, uint32_t nw)
{
    int64_t low = w < n ? w : n, high = w < n ? n : w, sum = (int64_t)w + n - nw;
    return (uint32_t)(sum < low ? low : sum > high ? high : sum);
}

/* 4 and 8: the places. */
static const int8_t places[62][2] = {
    {0, -1}, {0, -2}, {1, 0},  {1, -1}, {1, 1},  {1, -2}, {1, 2}, {2, 0},  {2, -1}, {2, 1},  {0, -3}, {0, -4}, {1, -3},
    {1, 3},  {2, -2}, {2, 2},  {3, 0},  {3, -1}, {3, 1},  {4, 0}, {3, -2}, {3, 2},  {4, -1}, {4, 1},  {5, 0},  {5, 1},
    {5, -1}, {6, 0},  {1, 4},  {1, -4}, {2, -3}, {2, 3},  {4, 2}, {4, -2}, {6, 1},  {6, -1}, {7, 0},  {7, 1},  {5, 2},
    {5, -2}, {3, 3},  {3, -3}, {0, -5}, {0, -6}, {1, 5},  {2, 4}, {2, -4}, {3, 4},  {3, -4}, {6, 2},  {6, -2}, {7, -1},
    {7, 2},  {7, -2}, {4, 3},  {4, -3}, {5, 3},  {5, -3}, {6, 3}, {7, 3},  {1, -5}, {2, -5},
};

static struct slot *find_slot(struct drawn *d, unsigned level, uint8_t *check)
{
    static const unsigned counts[3] = {10, 20, 42}, of_two[6] = {5, 10, 20, 31, 48, 62};
    uint32_t key = 0, end = d->range == 2 ? of_two[level] : counts[level];
    for (unsigned i = 0; i < end; i++) key += d->factor[i] * at(d, d->x, places[i][0], places[i][1]);
    uint32_t h = key * 0x85ebca6bu, g = h ^ (h >> 15), f = g * 0x2c1b3c6du;
    *check = (uint8_t)f;
    return &d->memory[level][f >> (32 - d->s)];
}

/* 7: 16 times a sample */
static int64_t scaled(const struct drawn *d, int u, int v)
{
    return 16 * (int64_t)at(d, d->x, u, v);
}

static int64_t blend_guesses(struct drawn *d)
{
    int64_t w = scaled(d, 0, -1), ww = scaled(d, 0, -2), n = scaled(d, 1, 0), nw = scaled(d, 1, -1),
            ne = scaled(d, 1, 1), nn = scaled(d, 2, 0), nne = scaled(d, 2, 1);
    int64_t guesses[8] = {w + ne - n,
                          n + (n - nn) / 2 + (w - nw) / 2,
                          w + n - nw,
                          (w + n) / 2,
                          w + (w - ww) / 2 + (ne - n) / 2,
                          16 * (int64_t)median(at(d, d->x, 0, -1), at(d, d->x, 1, 0), at(d, d->x, 1, -1)),
                          (2 * w + 2 * n + ne - nw) / 4,
                          n + ne - nne};
    int64_t sum = 0, weights = 0;
    for (unsigned i = 0; i < 8; i++) {
        const uint16_t *m = d->blend->miss[i];
        uint32_t u = 2 * at(d, m, 1, 0) + at(d, m, 1, 1) + at(d, m, 1, -1) + 2 * at(d, m, 0, -1) + at(d, m, 0, -2) + 96;
        unsigned s = ref_bit_count(u) - 7;
        int64_t top = u >> s, weight = (((int64_t)1 << 43) / (top * top)) >> 2 * s;
        d->blend->guess[i] = guesses[i];
        sum += weight * (guesses[i] - n);
        weights += weight;
    }
    return n + sum / weights;
}

static void blend(struct drawn *d)
{
    struct blend *b = d->blend;
    int64_t mean = blend_guesses(d), sum = 0, most = 16 * ((int64_t)d->range - 1);
    for (unsigned k = 0; k < 10; k++) {
        b->tap[k] = scaled(d, places[k][0], places[k][1]) - mean;
        sum += b->factor[k] * b->tap[k];
    }
    int64_t e = mean + (sum >> 16);
    b->expected = e < 0 ? 0 : e > most ? most : e;
    uint32_t s = 2 * at(d, b->lost, 0, -1) + 2 * at(d, b->lost, 1, 0) + at(d, b->lost, 1, -1) + at(d, b->lost, 1, 1) +
                 at(d, b->lost, 0, -2) + at(d, b->lost, 2, 0);
    unsigned l = s < 4 ? 0 : ref_bit_count(s) - 1;
    b->activity = s < 4 ? 0 : 2 * l + (s >> (l - 1)) % 2 - 3;
}

static void learn_blend(struct drawn *d, size_t i, uint32_t x)
{
    struct blend *b = d->blend;
    int64_t v = 16 * (int64_t)x, m = v - b->expected, energy = 16384;
    for (unsigned k = 0; k < 8; k++) {
        int64_t miss = v < b->guess[k] ? b->guess[k] - v : v - b->guess[k];
        b->miss[k][i] = (uint16_t)(miss < 65535 ? miss : 65535);
    }
    int64_t lost = m < 0 ? -m : m;
    b->lost[i] = (uint16_t)(lost < 16383 ? lost : 16383);
    if (m == 0) return;
    for (unsigned k = 0; k < 10; k++) energy += b->tap[k] * b->tap[k];
    int64_t step = m * (1 << 28) / energy;
    for (unsigned k = 0; k < 10; k++) {
        int64_t f = b->factor[k] + ((step * b->tap[k] + 65536) >> 17), one = 1 << 20;
        b->factor[k] = f < -one ? -one : f > one ? one : f;
    }
}

static unsigned double_bit(struct drawn *d, struct ref_chance *a, struct ref_chance *b)
{
    unsigned bit = bit_by(&d->c, ((uint32_t)a->z + b->z) / 2);
    adapt(a, bit);
    adapt(b, bit);
    return bit;
}

/* A number of GROUND.md 5 by two arrays. */
static int64_t double_number(struct drawn *d, struct ref_chance *a, struct ref_chance *b)
{
    unsigned n = 0, f, node = 1;
    while (n < 31 && double_bit(d, &a[n], &b[n])) n++;
    f = n < 2 ? n : 2;
    for (unsigned i = 0; i < f; i++) node = 2 * node + double_bit(d, &a[32 + 4 * n + node], &b[32 + 4 * n + node]);
    return (int64_t)node * ((int64_t)1 << (n - f)) + ref_even(&d->c, n - f) - 1;
}

static bool read_blended(struct drawn *d, uint32_t m, uint32_t *x)
{
    struct blend *b = d->blend;
    unsigned height = ref_bit_count((uint32_t)(b->expected >> 4));
    int64_t folded =
        double_number(d, b->by_activity[b->activity], b->by_height[b->activity / 2 * 16 + (height < 15 ? height : 15)]);
    if (folded > d->range) return ref_fail("a residual of a drawn plane is out of range");
    int64_t e = folded % 2 ? -(folded / 2) - 1 : folded / 2;
    if (b->expected < 16 * (int64_t)m) e = -e;
    *x = (uint32_t)((m + e + d->range) % d->range);
    return true;
}

/* 4: whether a question by a chance is asked. */
static bool is_asked(const struct drawn *d, uint32_t z)
{
    return d->way < 2 || z >= (d->way == 2 ? 24576u : 57344u);
}

static void leave(struct unasked_list *list, struct ref_chance *one, struct ref_chance *other, uint32_t value)
{
    list->item[list->count++] = (struct unasked){{one, other}, value};
}

struct around {
    uint32_t w, n, nw, ne, ww, nn, m;
    unsigned activity;
};

static struct around look_around(const struct drawn *d)
{
    struct around a = {at(d, d->x, 0, -1),
                       at(d, d->x, 1, 0),
                       at(d, d->x, 1, -1),
                       at(d, d->x, 1, 1),
                       at(d, d->x, 0, -2),
                       at(d, d->x, 2, 0),
                       0,
                       0};
    a.m = median(a.w, a.n, a.nw);
    a.activity = ref_bit_count(2 * at(d, d->errors, 0, -1) + 2 * at(d, d->errors, 1, 0) + at(d, d->errors, 1, -1) +
                               at(d, d->errors, 1, 1) + at(d, d->errors, 0, -2));
    if (a.activity > 15) a.activity = 15;
    if (d->way >= 2) {
        a.m = (uint32_t)((d->blend->expected + 8) / 16);
        a.activity = d->blend->activity / 2;
    }
    return a;
}

static unsigned bit_if(bool holds)
{
    return holds ? 1 : 0;
}

/* 5 */
static bool is_neighbour(struct drawn *d, const struct around *a, bool asked, uint32_t v, uint32_t *x,
                         struct unasked_list *unasked)
{
    uint32_t candidates[6] = {a->w, a->n, a->nw, a->ne, a->ww, a->nn};
    unsigned above = bit_if(a->n == a->nw) | bit_if(a->n == a->ne) << 1 | bit_if(a->nw == a->ne) << 2;
    unsigned beside =
        bit_if(a->w == a->n) | bit_if(a->w == a->nw) << 1 | bit_if(a->w == a->ne) << 2 | bit_if(a->w == a->ww) << 3;
    unsigned pattern = above | bit_if(a->n == a->nn) << 3 | beside << 4 | bit_if(a->ww == a->nw) << 8 |
                       bit_if(a->ww == a->n) << 9 | bit_if(a->w == a->nn) << 10;
    bool differ = above == 0 && beside % 8 == 0;
    for (unsigned k = 0; k < (differ ? 4 : 6); k++) {
        bool skipped = asked && candidates[k] == v;
        for (unsigned j = 0; j < k; j++)
            if (candidates[j] == candidates[k]) skipped = true;
        if (skipped) continue;
        unsigned far = ref_bit_count(apart(candidates[k], a->m));
        if (far > 5) far = 5;
        struct ref_chance *fine = differ ? &d->different[((a->activity * 8 + far) * 8 + k) * 2 + asked]
                                         : &d->pattern[(pattern * 8 + k) * 2 + asked];
        struct ref_chance *coarse = &d->coarse[((beside * 8 + k) * 2 + asked) * 8 + above];
        if (fine->n == 0) fine->z = coarse->z;
        *x = candidates[k];
        if (!is_asked(d, fine->z))
            leave(unasked, fine, coarse, *x);
        else if (fine_bit(d, fine, coarse) == 0)
            return true;
    }
    return false;
}

/* 6 */
static bool read_other(struct drawn *d, const struct around *a, uint32_t *x)
{
    if (d->way >= 2) return read_blended(d, a->m, x);
    if (d->way == 1) {
        int64_t folded = ref_any_number(&d->c, d->residual[a->activity]);
        if (folded >= d->range) return ref_fail("a residual of a drawn plane is out of range");
        int64_t e = folded % 2 ? -(folded / 2) - 1 : folded / 2, sum = (int64_t)a->m + e;
        if (sum < 0) sum += d->range;
        if (sum >= d->range) sum -= d->range;
        *x = (uint32_t)sum;
        return true;
    }
    uint32_t node = 1;
    for (unsigned i = 0; i < d->b; i++) {
        unsigned bit = d->b <= 8 ? fine_bit(d, &d->after[(a->w << d->b) + node], &d->value[node])
                       : i < 10  ? quick_bit(d, &d->value[node])
                                 : ref_even(&d->c, 1);
        node = 2 * node + bit;
    }
    *x = node - (1u << d->b);
    return *x < d->range || ref_fail("a value of a drawn plane is out of range");
}

/* 4 to 7 */
static bool read_sample(struct drawn *d)
{
    if (d->way >= 2) blend(d);
    struct around a = look_around(d);
    struct unasked_list unasked = {0};
    struct slot *slot[3];
    uint8_t check[3];
    bool known[3];
    int level = -1;
    for (unsigned l = 0; l < 3; l++) {
        slot[l] = find_slot(d, l, &check[l]);
        known[l] = slot[l]->count > 0 && slot[l]->check == check[l];
        if (known[l]) level = (int)l;
    }
    if (level == 2 && slot[2]->count == 1 && known[1] && slot[1]->count > 2) level = 1;
    uint32_t v = 0, x = 0;
    bool found = false;
    if (level >= 0) {
        struct slot *s = slot[level];
        v = s->value;
        unsigned same =
            bit_if(v == a.w) | bit_if(v == a.n) << 1 | bit_if(v == a.nw || v == a.ne || v == a.ww || v == a.nn) << 2;
        unsigned simple = a.w == a.n && a.n == a.nw && a.nw == a.ne, count = s->count < 15 ? s->count : 15;
        struct ref_chance *general = &d->general[((count * 3 + (unsigned)level) * 8 + same) * 2 + simple];
        if (s->right.n == 0) s->right.z = general->z;
        uint32_t z = s->right.n < 2 ? general->z : (3u * s->right.z + general->z) / 4;
        if (is_asked(d, z)) {
            unsigned bit = bit_by(&d->c, z);
            adapt(general, bit);
            adapt(&s->right, bit);
            found = bit == 0;
            x = v;
        } else {
            leave(&unasked, general, &s->right, v);
            level = -1;
        }
    }
    if (!found && !is_neighbour(d, &a, level >= 0, v, &x, &unasked) && !read_other(d, &a, &x)) return false;
    for (unsigned i = 0; i < unasked.count; i++)
        for (unsigned k = 0; k < 2; k++) adapt(unasked.item[i].chance[k], x != unasked.item[i].value);
    for (unsigned l = 0; l < 3; l++) {
        struct slot *s = slot[l];
        if (!known[l])
            *s = (struct slot){(uint16_t)x, check[l], 1, {0, 0}};
        else if (s->value == x)
            s->count += s->count < 60;
        else if (s->count > 4)
            s->count /= 4;
        else
            s->value = (uint16_t)x, s->count = 1;
    }
    size_t i = (size_t)d->row * d->width + d->column;
    uint32_t error = apart(x, a.m);
    d->x[i] = (uint16_t)x;
    if (d->way >= 2) learn_blend(d, i, x);
    d->errors[i] = (uint16_t)(error < 4095 ? error : 4095);
    return true;
}

/* 8 */
static int64_t log_of(uint32_t v)
{
    unsigned l = ref_bit_count(v) - 1;
    return 256 * ((int64_t)l - 1) + (256 * (int64_t)v >> l);
}

static int64_t chance_of(int64_t y)
{
    int64_t t = y < 0 ? -y : y;
    if (t > 3071) t = 3071;
    int64_t q = (1 << 24) / (256 + ((256 + t % 256) << t / 256));
    return y < 0 ? q : 65536 - q;
}

static int64_t clamp(int64_t v, int64_t most)
{
    return v < -most ? -most : v > most ? most : v;
}

static void learn_set(struct set *set, const int64_t t[7], int64_t y, unsigned bit)
{
    unsigned f = set->bits < 200 ? 13 : 14;
    int64_t e = bit ? -chance_of(y) : 65536 - chance_of(y);
    for (unsigned i = 0; i < 7; i++)
        set->weight[i] = clamp(set->weight[i] + ((e * t[i] + ((int64_t)1 << (f - 1))) >> f), 1 << 20);
    set->bits++;
}

static void read_of_two(struct drawn *d)
{
    struct slot *slot[6];
    int64_t t[7] = {0, 0, 0, 0, 0, 0, 256}, y[2] = {0, 0};
    unsigned k = 0, number[2] = {0, 0};
    for (unsigned l = 0; l < 6; l++) {
        uint8_t check;
        slot[l] = find_slot(d, l, &check);
        if (slot[l]->right.n == 0 || slot[l]->check != check)
            *slot[l] = (struct slot){0, check, 0, {32768, 0}};
        else
            k = l + 1;
        t[l] = log_of(slot[l]->right.z) - log_of(65536u - slot[l]->right.z);
    }
    if (k > 0) {
        const struct ref_chance *high = &slot[k - 1]->right, *low = k > 1 ? &slot[k - 2]->right : NULL;
        unsigned m = high->n < 2 ? 1 : high->n < 4 ? 2 : high->n < 10 ? 3 : 4, a = 0;
        if (low && (high->z > 32768) == (low->z > 32768)) a = low->n < 3 ? 1 : 2;
        number[0] = 15 * k + 3 * m + a;
    }
    for (unsigned i = 0; i < 10; i++) number[1] += at(d, d->x, places[i][0], places[i][1]) << i;
    for (unsigned s = 0; s < 2; s++) {
        for (unsigned i = 0; i < 7; i++) y[s] += d->sets[s][number[s]].weight[i] * t[i];
        y[s] = clamp(y[s] >> 16, 3071);
    }
    unsigned bit = bit_by(&d->c, (uint32_t)chance_of((y[0] + y[1]) >> 1));
    for (unsigned s = 0; s < 2; s++) learn_set(&d->sets[s][number[s]], t, y[s], bit);
    for (unsigned l = 0; l < 6; l++) adapt_up_to(&slot[l]->right, bit, 41);
    d->x[(size_t)d->row * d->width + d->column] = (uint16_t)bit;
}

/* 3 */
static bool read_flat_bit(struct drawn *d)
{
    unsigned bit = fine_bit(d, &d->flat[4 * d->blank + d->last], &d->flatter[d->last]);
    d->last = (2 * d->last + bit) % 4;
    return bit == 0;
}

static bool read_group(struct drawn *d, uint32_t c, bool *copied)
{
    uint32_t end = c + 16 < d->width ? c + 16 : d->width;
    d->column = c;
    uint32_t w = at(d, d->x, 0, -1);
    bool flat = w == at(d, d->x, 0, -2);
    for (int k = -1; k <= (int)(end - c); k++)
        if (at(d, d->x, 1, k) != w) flat = false;
    *copied = flat && read_flat_bit(d);
    if (*copied) {
        for (; d->column < end; d->column++) d->x[(size_t)d->row * d->width + d->column] = (uint16_t)w;
        return true;
    }
    for (; d->column < end; d->column++) {
        if (d->range == 2)
            read_of_two(d);
        else if (!read_sample(d))
            return false;
    }
    return true;
}

static bool read_row(struct drawn *d)
{
    unsigned blank = d->blank < 15 ? d->blank + 1 : 15;
    d->last = 0;
    for (uint32_t c = 0; c < d->width; c += 16) {
        bool copied;
        if (!read_group(d, c, &copied)) return false;
        if (!copied) blank = 0;
    }
    d->blank = blank;
    return true;
}

static void begin_two(struct drawn *d)
{
    static const unsigned counts[2] = {105, 1024};
    for (unsigned l = 0; l < 6; l++) d->memory[l] = ref_alloc((size_t)1 << d->s, sizeof *d->memory[l]);
    for (unsigned s = 0; s < 2; s++) {
        d->sets[s] = ref_alloc(counts[s], sizeof *d->sets[s]);
        for (unsigned i = 0; i < 6 * counts[s]; i++) d->sets[s][i / 6].weight[i % 6] = 30000;
    }
}

static void begin(struct drawn *d)
{
    uint32_t q = 0x9e3779b1u;
    for (unsigned i = 0; i < 62; i++) {
        d->factor[i] = q | 1;
        q *= 0x9e3779b1u;
        q ^= q >> 15;
    }
    unsigned bits = ref_bit_count(d->width * d->height);
    d->s = bits < 10 ? 8 : bits > 18 ? 16 : bits - 2;
    d->b = ref_bit_count(d->range - 1);
    for (unsigned i = 0; i < 64; i++) d->flat[i].z = d->flatter[i % 4].z = 32768;
    if (d->range == 2) {
        begin_two(d);
        return;
    }
    for (unsigned l = 0; l < 3; l++) d->memory[l] = ref_alloc((size_t)1 << d->s, sizeof *d->memory[l]);
    for (unsigned i = 0; i < 16 * 160; i++) d->residual[i / 160][i % 160].z = 32768;
    d->general = make_chances(16 * 3 * 8 * 2);
    d->coarse = make_chances(16 * 8 * 2 * 8);
    d->different = make_chances(16 * 8 * 8 * 2);
    d->pattern = make_chances(2048 * 8 * 2);
    d->value = make_chances(1024);
    d->after = make_chances(65536);
    d->errors = ref_alloc((size_t)d->width * d->height, sizeof *d->errors);
    if (d->way < 2) return;
    d->blend = ref_alloc(1, sizeof *d->blend);
    for (unsigned i = 0; i < 8; i++)
        d->blend->miss[i] = ref_alloc((size_t)d->width * d->height, sizeof *d->blend->miss[i]);
    d->blend->lost = ref_alloc((size_t)d->width * d->height, sizeof *d->blend->lost);
    for (unsigned i = 0; i < 32 * 160; i++) d->blend->by_activity[i / 160][i % 160].z = 32768;
    for (unsigned i = 0; i < 256 * 160; i++) d->blend->by_height[i / 160][i % 160].z = 32768;
}

bool ref_drawn_tile(const struct ref_plane_model *plane, uint32_t width, uint32_t height, const uint8_t *piece,
                    size_t size, uint16_t *x)
{
    struct drawn *d = ref_alloc(1, sizeof *d);
    d->c = (struct ref_coder){.b = {.data = piece, .size = size}, .range = UINT32_MAX};
    d->width = width;
    d->height = height;
    d->range = plane->range;
    d->x = x;
    for (unsigned i = 0; i < 4; i++) ref_next_byte(&d->c);
    if (d->range != 2) d->way = ref_even(&d->c, 2);
    begin(d);
    for (d->row = 0; d->row < height; d->row++)
        if (!read_row(d)) return false;
    if (d->c.bad) return ref_fail("a drawn piece is too short");
    return ref_left(&d->c.b) == 0 || ref_fail("a drawn piece is too long");
}
