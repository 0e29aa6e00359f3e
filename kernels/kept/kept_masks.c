/* Masks of tiles to bytes and back; see the header. FORMAT.md section 6.7. */
#include "kept_masks.h"

#include "entropy/frame_model.h"
#include "kept_words.h"
#include "mask_coder.h"

/* The highest number that a sample has in a mask: it moves the sample to the farther side. */
static uint32_t farther(const struct tsr_kept_ranges *kept)
{
    return tsr_kept_total(kept) + 1;
}

/* Bytes of a mask whose numbers stand as they are. */
size_t tsr_raw_mask_bytes(uint64_t samples, const struct tsr_kept_ranges *kept)
{
    return (size_t)((samples * (unsigned)tsr_bit_width(farther(kept)) + 7) / 8);
}

/* The number of a sample that is not kept: not 0 if it would leave a kept range for a value that differs too much. */
static uint32_t number_outside(const struct tsr_masked *m, uint32_t value)
{
    const uint32_t decoded = tsr_near_lossless_sample(tsr_near_lossless_index(value, m->near), m->near);
    if (tsr_kept_range_of(m->kept, decoded) < 0) return 0;
    const uint32_t nearer = tsr_leave_kept(m->kept, decoded, m->image->bits_stored, false),
                   error = nearer < value ? value - nearer : nearer - value;
    return error > m->near.max_error ? farther(m->kept) : 0;
}

/* The numbers of count samples from word number i on. Returns whether one is not 0. */
static bool get_numbers(const struct tsr_masked *m, size_t i, size_t step, int count, uint16_t numbers[TSR_STRETCH])
{
    uint16_t values[TSR_STRETCH];
    tsr_stretch_values(m->image, m->layout, m->raster, i, step, count, values);
    bool any = tsr_stretch_numbers(m->kept, values, count, numbers);
    for (int k = 0; k < count && m->near.max_error > 0; k++) {
        if (numbers[k] == 0) numbers[k] = (uint16_t)number_outside(m, values[k]);
        any |= numbers[k] > 0;
    }
    return any;
}

/* Calls visit for each stretch of a tile: components, rows, stretches of a row. Stops where it returns false. */
struct stretch {
    int group, samples; /* the number of its first group, and its samples */
    size_t first, step; /* of its words */
    bool begins_plane, ends_row;
};

typedef bool visit_stretch(void *context, const struct stretch *stretch);

static bool walk_tile(const struct tsr_image *image, struct tsr_tile tile, visit_stretch *visit, void *context)
{
    const size_t top = tile.first / image->columns, left = tile.first % image->columns;
    for (unsigned c = 0; c < image->components; c++) {
        const struct tsr_raster_component at = tsr_component_of(image, c);
        for (int32_t y = 0; y < tile.height; y++)
            for (int32_t x = 0; x < tile.width; x += TSR_STRETCH) {
                const int32_t samples = tsr_min(tile.width - x, TSR_STRETCH);
                const struct stretch stretch = {
                    .group = x / TSR_MASK_GROUP,
                    .samples = samples,
                    .first = at.first + (top + (size_t)y) * at.row + (left + (size_t)x) * at.step,
                    .step = at.step,
                    .begins_plane = y == 0 && x == 0,
                    .ends_row = x + samples == tile.width,
                };
                if (!visit(context, &stretch)) return false;
            }
    }
    return true;
}

/* Codes a mask, or finds its highest number. */
struct writing {
    const struct tsr_masked *masked;
    uint32_t most;
    struct tsr_mask mask;
    struct tsr_range_writer writer;
    struct tsr_bit_writer raw;
    int bits;
};

static bool find_most(void *context, const struct stretch *stretch)
{
    struct writing *const w = context;
    uint16_t numbers[TSR_STRETCH];
    if (!get_numbers(w->masked, stretch->first, stretch->step, stretch->samples, numbers)) return true;
    for (int i = 0; i < stretch->samples; i++)
        if (numbers[i] > w->most) w->most = numbers[i];
    return true;
}

static bool put_coded(void *context, const struct stretch *stretch)
{
    struct writing *const w = context;
    uint16_t numbers[TSR_STRETCH];
    get_numbers(w->masked, stretch->first, stretch->step, stretch->samples, numbers);
    if (stretch->begins_plane) tsr_mask_begin_plane(&w->mask);
    for (int i = 0; i < stretch->samples; i += TSR_MASK_GROUP)
        tsr_mask_put(&w->mask, &w->writer, stretch->group + i / TSR_MASK_GROUP, numbers + i);
    if (stretch->ends_row) tsr_mask_end_row(&w->mask);
    return !w->writer.overflow;
}

static bool put_raw(void *context, const struct stretch *stretch)
{
    struct writing *const w = context;
    uint16_t numbers[TSR_STRETCH];
    get_numbers(w->masked, stretch->first, stretch->step, stretch->samples, numbers);
    for (int i = 0; i < stretch->samples; i++) tsr_put_bits(&w->raw, numbers[i], w->bits);
    return true;
}

/* Codes the mask of a tile; returns its bytes, at most those of a raw one. */
size_t tsr_code_mask(const struct tsr_masked *m, struct tsr_tile tile, uint8_t *bytes)
{
    const uint64_t samples = (uint64_t)tile.width * (uint64_t)tile.height * m->image->components;
    const size_t raw_bytes = tsr_raw_mask_bytes(samples, m->kept);
    struct writing w = {.masked = m, .bits = tsr_bit_width(farther(m->kept))};
    walk_tile(m->image, tile, find_most, &w);
    if (w.most == 0) return 0;
    tsr_mask_begin(&w.mask, tile.width, farther(m->kept), w.most > 1);
    w.writer = tsr_range_writer(bytes, raw_bytes - 1);
    tsr_range_put_even(&w.writer, w.most > 1, 1);
    if (walk_tile(m->image, tile, put_coded, &w)) {
        const size_t size = tsr_range_end(&w.writer);
        if (!w.writer.overflow && size > 0) return size;
    }
    w.raw = tsr_bit_writer(bytes, raw_bytes);
    walk_tile(m->image, tile, put_raw, &w);
    return tsr_flush_bits(&w.raw);
}

struct reading {
    const struct tsr_mask_target *target;
    struct tsr_mask mask;
    struct tsr_range_reader reader;
    struct tsr_bit_reader raw;
    int bits;
    uint32_t most;
};

/* Gives the samples of a stretch the values that their numbers say. */
static bool join_samples(const struct reading *r, const struct stretch *stretch, const uint16_t *numbers, bool any)
{
    const struct tsr_mask_target *const d = r->target;
    uint16_t values[TSR_STRETCH], inside[TSR_STRETCH];
    size_t at = stretch->first;
    tsr_stretch_values(d->image, d->layout, d->raster, at, stretch->step, stretch->samples, values);
    if (!tsr_stretch_numbers(d->kept, values, stretch->samples, inside) && !any) return true;
    for (int i = 0; i < stretch->samples; i++, at += stretch->step) {
        const uint32_t number = any ? numbers[i] : 0;
        uint32_t joined;
        if (number >= 1 && number < r->most) {
            joined = tsr_kept_value(d->kept, number);
        } else if (inside[i] > 0) {
            joined = tsr_leave_kept(d->kept, values[i], d->image->bits_stored, number > 0);
        } else if (number > 0) {
            return false; /* there is nothing to leave */
        } else {
            continue;
        }
        const uint32_t word = tsr_raster_word(d->image, d->raster, at);
        tsr_set_raster_word(d->image, d->raster, at,
                            tsr_join_word(joined, tsr_word_outside(word, d->layout), d->layout));
    }
    return true;
}

static bool get_coded(void *context, const struct stretch *stretch)
{
    struct reading *const r = context;
    uint16_t numbers[TSR_STRETCH];
    bool any = false;
    if (stretch->begins_plane) tsr_mask_begin_plane(&r->mask);
    for (int i = 0; i < stretch->samples; i += TSR_MASK_GROUP)
        if (!tsr_mask_get(&r->mask, &r->reader, stretch->group + i / TSR_MASK_GROUP, numbers + i, &any)) return false;
    if (stretch->ends_row) tsr_mask_end_row(&r->mask);
    return join_samples(r, stretch, numbers, any);
}

static bool get_raw(void *context, const struct stretch *stretch)
{
    struct reading *const r = context;
    uint16_t numbers[TSR_STRETCH];
    for (int i = 0; i < stretch->samples; i++) {
        const uint32_t number = tsr_get_bits(&r->raw, r->bits);
        if (number > r->most) return false;
        numbers[i] = (uint16_t)number;
    }
    return join_samples(r, stretch, numbers, true);
}

static bool get_none(void *context, const struct stretch *stretch)
{
    return join_samples(context, stretch, NULL, false);
}

/* Decodes the mask of a tile into the raster of its base. */
bool tsr_join_mask(const struct tsr_mask_target *d, struct tsr_tile tile, struct tsr_segment mask)
{
    const uint64_t samples = (uint64_t)tile.width * (uint64_t)tile.height * d->image->components;
    const size_t raw_bytes = tsr_raw_mask_bytes(samples, d->kept);
    struct reading r = {.target = d, .most = farther(d->kept)};
    if (mask.size > raw_bytes) return false;
    if (mask.size == 0) return walk_tile(d->image, tile, get_none, &r);
    if (mask.size == raw_bytes) {
        r.bits = tsr_bit_width(r.most);
        r.raw = tsr_bit_reader(mask.bytes, mask.size);
        return walk_tile(d->image, tile, get_raw, &r) && tsr_bits_ended(&r.raw);
    }
    r.reader = tsr_range_reader(mask.bytes, mask.size);
    tsr_mask_begin(&r.mask, tile.width, r.most, tsr_range_get_even(&r.reader, 1));
    return walk_tile(d->image, tile, get_coded, &r) && !r.reader.overrun;
}
