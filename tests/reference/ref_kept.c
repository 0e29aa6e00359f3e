/* FORMAT.md 6.7: kept ranges. */
#include "ref.h"
#include "ref_range.h"

/* n: how many values are kept. */
static uint32_t kept_values(const struct ref_header *h)
{
    uint32_t n = 0;
    for (unsigned i = 0; i < h->kept_count; i++) n += h->kept_high[i] - h->kept_low[i] + 1;
    return n;
}

/* ---- The bytes of a mask ---- */

struct mask {
    struct ref_coder c;
    bool numbered;
    uint32_t n, last;
    struct ref_chance flat[2], sample[1024], number[256], same;
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

static bool read_group(struct mask *k, uint32_t r, uint32_t c0)
{
    uint32_t end = c0 + 16 < k->width ? c0 + 16 : k->width;
    uint16_t *m = k->m + (size_t)r * k->stride;
    unsigned v = flat_value(k, r, c0);
    bool one_by_one = v == 2 || ref_bit(&k->c, &k->flat[v]);
    for (uint32_t c = c0; c < end; c++) {
        if (one_by_one) v = ref_bit(&k->c, &k->sample[context_at(k, r, c)]);
        m[c] = (uint16_t)v;
    }
    for (uint32_t c = c0; c < end; c++)
        if (m[c] > 0 && !read_number(k, &m[c])) return false;
    return true;
}

static void begin_chances(struct ref_chance *chances, unsigned count)
{
    for (unsigned i = 0; i < count; i++) chances[i] = (struct ref_chance){32768, 0};
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
        for (uint32_t r = 0; good && r < height; r++)
            for (uint32_t c0 = 0; good && c0 < width; c0 += 16) good = read_group(k, r, c0);
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
