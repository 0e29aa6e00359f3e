/* FORMAT.md 6.7: kept ranges. */
#include "ref.h"
#include "ref_range.h"

#include <string.h>

/* n: how many values are kept. */
static uint32_t kept_values(const struct ref_header *h)
{
    uint32_t n = 0;
    for (unsigned i = 0; i < h->kept_count; i++) n += h->kept_high[i] - h->kept_low[i] + 1;
    return n;
}

/* ---- The bytes of a mask ---- */

struct edge {
    int64_t x, move, held, before, way, twin;
};

struct edges {
    unsigned count;
    struct edge edge[255];
};

struct mask {
    struct ref_coder c;
    bool by_edges, numbered;
    uint32_t n, last;
    struct ref_chance flat[2], sample[1024], number[256], same;
    struct ref_chance moved[12], back[12], passes, far[2], near[6][160], run[2][160];
    struct edges above;
    /* of one component */
    uint32_t width;
    uint16_t *m; /* the number of the tile's first sample */
    size_t stride;
};

static unsigned is_set(const struct mask *k, int64_t r, int64_t c)
{
    return r >= 0 && k->m[(size_t)r * k->stride + (size_t)c] > 0;
}

/* s[r][c]; row: the row that is decoded. */
static unsigned set_at(const struct mask *k, int64_t row, int64_t r, int64_t c)
{
    if (c < 0) return is_set(k, r == row ? r - 1 : r, 0);
    return is_set(k, r, c < k->width ? c : (int64_t)k->width - 1);
}

/* The value that all surroundings have; 2: they have both. */
static unsigned flat_value(const struct mask *k, int64_t r, int64_t c0)
{
    unsigned v = set_at(k, r, r, c0 - 1);
    bool same = set_at(k, r, r, c0 - 2) == v;
    for (int64_t c = c0 - 2; c <= c0 + 17; c++) same = same && set_at(k, r, r - 1, c) == v;
    for (int64_t c = c0 - 1; c <= c0 + 16; c++) same = same && set_at(k, r, r - 2, c) == v;
    return same ? v : 2;
}

static unsigned context_at(const struct mask *k, int64_t r, int64_t c)
{
    unsigned context = set_at(k, r, r, c - 2) | set_at(k, r, r, c - 1) << 1, bit = 2;
    for (int64_t i = c - 2; i <= c + 2; i++) context |= set_at(k, r, r - 1, i) << bit++;
    for (int64_t i = c - 1; i <= c + 1; i++) context |= set_at(k, r, r - 2, i) << bit++;
    return context;
}

static bool read_number(struct mask *k, uint16_t *m)
{
    if (k->numbered && !ref_bit(&k->c, &k->same)) {
        unsigned l = ref_bit_count(k->n), t = l < 8 ? l : 8;
        uint32_t top = ref_tree(&k->c, k->number, t);
        k->last = (top << (l - t)) + ref_even(&k->c, l - t) + 1;
        if (k->last > k->n + 1) return ref_fail("a number in a mask is out of range");
    }
    *m = (uint16_t)k->last;
    return true;
}

static void read_group(struct mask *k, uint32_t r, uint32_t c0)
{
    uint32_t end = c0 + 16 < k->width ? c0 + 16 : k->width;
    uint16_t *m = k->m + (size_t)r * k->stride;
    unsigned v = flat_value(k, r, c0);
    bool one_by_one = v == 2 || ref_bit(&k->c, &k->flat[v]);
    for (uint32_t c = c0; c < end; c++) {
        if (one_by_one) v = ref_bit(&k->c, &k->sample[context_at(k, r, c)]);
        m[c] = (uint16_t)v;
    }
}

static int64_t sign(int64_t value)
{
    return value > 0 ? 1 : value < 0 ? -1 : 0;
}

/* Step 2: the class and the expected move. */
static unsigned classify(const struct edge *e, bool has_hint, int64_t hint, int64_t *p)
{
    *p = 0;
    if (!e) return 0;
    if (e->x == 0) return 1;
    if (has_hint && e->twin != 0) {
        *p = e->twin > 0 ? -hint : hint;
        return 2;
    }
    if (e->move < -1 || e->move > 1) {
        *p = e->move;
        int64_t size = e->move < 0 ? -e->move : e->move;
        return 1 + (unsigned)(size < 4 ? size : 4);
    }
    if (e->way == 0 || e->before == 0) return 6;
    int64_t more = e->held + 1 - e->before;
    return (unsigned)(9 + (more < -2 ? -2 : more > 2 ? 2 : more));
}

/* Steps 5 and 6. */
static int64_t read_moved(struct mask *k, const struct edge *e, unsigned class, int64_t last, unsigned v, int64_t p,
                          bool *is_far)
{
    *is_far = ref_bit(&k->c, &k->far[class >= 2]);
    if (*is_far) return last + 1 + ref_any_number(&k->c, k->run[v]);
    int64_t g = !e ? -1 : p != 0 ? sign(p) : e->way != 0 ? e->way : 1, x = e ? e->x : k->width;
    if (class > 0 && ref_bit(&k->c, &k->back[class])) g = -g;
    unsigned j = class < 2 ? 0 : class == 2 ? 1 : class < 5 ? 2 : class == 5 ? 3 : e->move == 0 ? 4 : 5;
    return x + p + g * (1 + ref_any_number(&k->c, k->near[j]));
}

static struct edge follow(const struct edge *e, int64_t x, bool *has_hint, int64_t *hint)
{
    struct edge n = {.x = x, .move = x - e->x};
    n.way = n.move ? sign(n.move) : e->way;
    n.held = n.move ? 0 : e->held + 1;
    n.before = !n.move ? e->before : e->way ? e->held + 1 : 0;
    if (e->x == 0) return n;
    int64_t t = n.twin = e->twin;
    if (*has_hint && n.move != 0 && n.move == -*hint)
        n.twin = t < 0 ? 1 : t < 3 ? t + 1 : 3;
    else if (*has_hint && n.move != 0 && n.move == *hint)
        n.twin = t > 0 ? -1 : t > -3 ? t - 1 : -3;
    else if (*has_hint && (n.move != 0 || *hint != 0))
        n.twin = t - sign(t);
    *has_hint = true;
    *hint = n.move;
    return n;
}

static bool read_edges(struct mask *k, uint32_t r)
{
    struct edges row = {.count = 0};
    int64_t last = -1, hint = 0;
    bool has_hint = false;
    if (r == 0) k->above.count = 0;
    for (unsigned v = 0;;) {
        unsigned at = 0;
        while (at < k->above.count && (k->above.edge[at].x <= last || at % 2 != v)) at++;
        const struct edge *e = at < k->above.count ? &k->above.edge[at] : NULL;
        int64_t p, x = e ? e->x : k->width;
        unsigned class = classify(e, has_hint, hint, &p);
        bool is_far = false;
        if (x + p <= last || x + p > k->width) p = 0;
        if (!ref_bit(&k->c, &k->moved[class])) {
            x += p;
        } else if (at + 1 < k->above.count && ref_bit(&k->c, &k->passes)) {
            last = k->above.edge[at + 1].x;
            has_hint = false;
            continue;
        } else {
            x = read_moved(k, e, class, last, v, p, &is_far);
        }
        if (x <= last || x > k->width) return ref_fail("an edge of a mask is out of range");
        if (x == k->width) break;
        if (row.count == 255) return ref_fail("a row of a mask has too many edges");
        if (!e || is_far) has_hint = false;
        row.edge[row.count++] = e && !is_far ? follow(e, x, &has_hint, &hint) : (struct edge){.x = x};
        last = x;
        v = 1 - v;
    }
    uint16_t *m = k->m + (size_t)r * k->stride;
    for (uint32_t c = 0, i = 0; c < k->width; c++) {
        if (i < row.count && row.edge[i].x == c) i++;
        m[c] = i % 2;
    }
    k->above = row;
    return true;
}

static bool read_row(struct mask *k, uint32_t r)
{
    uint16_t *m = k->m + (size_t)r * k->stride;
    if (k->by_edges && !read_edges(k, r)) return false;
    for (uint32_t c0 = 0; !k->by_edges && c0 < k->width; c0 += 16) read_group(k, r, c0);
    for (uint32_t c = 0; c < k->width; c++)
        if (m[c] > 0 && !read_number(k, &m[c])) return false;
    return true;
}

static void begin_chances(struct ref_chance *chances, unsigned count)
{
    for (unsigned i = 0; i < count; i++) chances[i] = (struct ref_chance){32768, 0};
}

static void begin_edges(struct mask *k)
{
    static const struct ref_chance moved[12] = {{64000, 9}, {64000, 9}, {53248, 3}, {32768, 0}, {32768, 0}, {32768, 0},
                                                {49152, 2}, {57344, 2}, {40960, 2}, {24576, 2}, {16384, 2}, {32768, 2}};
    memcpy(k->moved, moved, sizeof moved);
    begin_chances(k->back, 6);
    begin_chances(k->near[0], 6 * 160);
    begin_chances(k->run[0], 2 * 160);
    for (unsigned i = 0; i < 6; i++) k->near[i][0] = k->back[6 + i] = (struct ref_chance){57344, 3};
    k->passes = k->far[1] = (struct ref_chance){61440, 4};
    k->far[0] = (struct ref_chance){16384, 2};
}

static struct mask *begin_mask(const uint8_t *bytes, size_t size, uint32_t n)
{
    struct mask *k = ref_alloc(1, sizeof *k);
    k->c = (struct ref_coder){.b = {.data = bytes, .size = size}, .range = UINT32_MAX};
    for (int i = 0; i < 4; i++) ref_next_byte(&k->c);
    k->n = n;
    k->last = 1;
    begin_chances(k->flat, 2);
    begin_chances(k->sample, 1024);
    begin_chances(k->number, 256);
    begin_chances(&k->same, 1);
    begin_edges(k);
    k->by_edges = ref_even(&k->c, 1);
    k->numbered = ref_even(&k->c, 1);
    return k;
}

static bool read_raw(struct ref_bits *b, uint32_t n, uint32_t width, uint32_t height, size_t stride, uint16_t *m)
{
    for (uint32_t r = 0; r < height; r++)
        for (uint32_t c = 0; c < width; c++) {
            uint32_t number = ref_u(b, ref_bit_count(n + 1));
            if (number > n + 1) return ref_fail("a number in a mask is out of range");
            m[r * stride + c] = (uint16_t)number;
        }
    return true;
}

bool ref_frame_mask(struct ref_frame *frame, const struct ref_header *h, uint32_t tile, const uint8_t *bytes,
                    size_t size)
{
    uint32_t across = (h->columns + frame->tile_width - 1) / frame->tile_width, n = kept_values(h);
    uint32_t left = tile % across * frame->tile_width, top = tile / across * frame->tile_height;
    uint32_t width = h->columns - left < frame->tile_width ? h->columns - left : frame->tile_width;
    uint32_t height = h->rows - top < frame->tile_height ? h->rows - top : frame->tile_height;
    uint64_t raw = ((uint64_t)width * height * h->components * ref_bit_count(n + 1) + 7) / 8;
    for (unsigned c = 0; c < h->components && !frame->mask[c]; c++)
        frame->mask[c] = ref_alloc((size_t)h->columns * h->rows, sizeof *frame->mask[c]);
    if (size > raw) return ref_fail("a mask is too long");
    if (size == 0) return true;
    void *mark = ref_mark();
    struct ref_bits b = ref_string(bytes, size);
    struct mask *k = size < raw ? begin_mask(bytes, size, n) : NULL;
    bool good = true;
    for (unsigned c = 0; good && c < h->components; c++) {
        uint16_t *m = frame->mask[c] + (size_t)top * h->columns + left;
        if (!k) {
            good = read_raw(&b, n, width, height, h->columns, m);
            continue;
        }
        k->width = width;
        k->stride = h->columns;
        k->m = m;
        for (uint32_t r = 0; good && r < height; r++) good = read_row(k, r);
    }
    if (good && k && k->c.bad) good = ref_fail("a mask is too short");
    if (good && !k && !ref_ended(&b)) good = ref_fail("a mask does not end where it should");
    ref_release(mark);
    return good;
}

/* ---- What the numbers do ---- */

static bool replace(const struct ref_header *h, uint32_t n, uint32_t m, uint16_t *x)
{
    uint32_t top = ((uint32_t)1 << h->stored) - 1;
    if (m >= 1 && m <= n) {
        unsigned i = 0;
        for (m--; m > h->kept_high[i] - h->kept_low[i]; i++) m -= h->kept_high[i] - h->kept_low[i] + 1;
        *x = (uint16_t)(h->kept_low[i] + m);
        return true;
    }
    for (unsigned i = 0; i < h->kept_count; i++) {
        uint32_t a = h->kept_low[i], b = h->kept_high[i];
        if (*x < a || *x > b) continue;
        uint32_t down = *x - (a - 1), up = b + 1 - *x;
        bool goes_down = m == 0 ? down < up : down >= up;
        if (a == 0) goes_down = false;
        if (b == top) goes_down = true;
        *x = (uint16_t)(goes_down ? a - 1 : b + 1);
        return true;
    }
    return m == 0 || ref_fail("a sample leaves a kept range in which it is not");
}

bool ref_apply_masks(struct ref_frame *frame, const struct ref_header *h)
{
    uint32_t n = kept_values(h);
    for (unsigned c = 0; c < h->components; c++)
        for (size_t i = 0; i < (size_t)h->columns * h->rows; i++)
            if (!replace(h, n, frame->mask[c][i], &frame->values[c][i])) return false;
    return true;
}
