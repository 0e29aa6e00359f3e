/* Masks of tiles to bytes and back; see the header. FORMAT.md section 6.7. */
#include "kept_masks.h"

#include "edge_coder.h"
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

/* Whether one of the values is at most the largest error away from a kept one: only such a value may become one. */
static bool are_near(const struct tsr_masked *m, const uint16_t *values, int count)
{
    uint32_t any = 0;
    for (int i = 0; i < m->kept->count; i++) {
        const uint32_t error = m->near.max_error, lowest = m->kept->range[i].lowest,
                       low = lowest < error ? 0 : lowest - error, span = m->kept->range[i].highest + error - low;
        for (int k = 0; k < count; k++) any |= (uint32_t)(values[k] - low <= span);
    }
    return any != 0;
}

/* Samples of a row of a tile, from word number first on. */
struct row {
    size_t first, step;
    int samples;
};

/* The numbers of count samples of a row from sample x on. Returns whether one is not 0. */
static bool get_numbers(const struct tsr_masked *m, const struct row *row, int x, int count,
                        uint16_t numbers[TSR_STRETCH])
{
    uint16_t values[TSR_STRETCH];
    tsr_stretch_values(m->image, m->layout, m->raster, row->first + (size_t)x * row->step, row->step, count, values);
    bool any = tsr_stretch_numbers(m->kept, values, count, numbers);
    if (m->near.max_error == 0 || !are_near(m, values, count)) return any;
    for (int k = 0; k < count; k++) {
        if (numbers[k] == 0) numbers[k] = (uint16_t)number_outside(m, values[k]);
        any |= numbers[k] > 0;
    }
    return any;
}

static int stretch_at(const struct row *row, int x)
{
    return tsr_min(row->samples - x, TSR_STRETCH);
}

/* Calls visit for each row of a tile, of one component after the other, and stops where it returns false. */
typedef bool visit_row(void *context, const struct row *row, bool begins_plane);

static bool walk_tile(const struct tsr_image *image, struct tsr_tile tile, visit_row *visit, void *context)
{
    const size_t top = tile.first / image->columns, left = tile.first % image->columns;
    for (unsigned c = 0; c < image->components; c++) {
        const struct tsr_raster_component at = tsr_component_of(image, c);
        for (int32_t y = 0; y < tile.height; y++) {
            const struct row row = {at.first + (top + (size_t)y) * at.row + left * at.step, at.step, tile.width};
            if (!visit(context, &row, y == 0)) return false;
        }
    }
    return true;
}

/* ---- Writing ------------------------------------------------------------------------------------------------ */

struct writing {
    const struct tsr_masked *masked;
    uint32_t most;  /* the highest number */
    uint64_t edges; /* of all rows: where samples begin or end to be kept */
    union {
        struct tsr_edges edges;
        struct tsr_mask groups;
    } set;
    struct tsr_mask_numbers numbers;
    struct tsr_range_writer writer;
    struct tsr_bit_writer raw;
    int bits;
};

/* Adds the edges of a stretch to those of a row, of which there may be more than have a place. is_set: whether the
 * sample before is kept. */
static uint32_t find_edges(const uint16_t *numbers, int x, int count, uint32_t *is_set, int32_t *columns,
                           uint32_t edges)
{
    for (int k = 0; k < count;) {
        const uint64_t all = *is_set ? (uint64_t)0x0001000100010001 : 0;
        if (k + 4 <= count && memcmp(numbers + k, &all, sizeof all) == 0) {
            k += 4;
            continue;
        }
        for (const int end = tsr_min(k + 4, count); k < end; k++) {
            if ((numbers[k] > 0) == *is_set) continue;
            *is_set = !*is_set;
            if (edges < TSR_EDGES_LIMIT) columns[edges] = x + k;
            edges++;
        }
    }
    return edges;
}

static bool find_most(void *context, const struct row *row, bool begins_plane)
{
    struct writing *const w = context;
    (void)begins_plane;
    for (int x = 0; x < row->samples; x += TSR_STRETCH) {
        uint16_t numbers[TSR_STRETCH];
        const int count = stretch_at(row, x);
        if (!get_numbers(w->masked, row, x, count, numbers)) continue;
        for (int k = 0; k < count; k++)
            if (numbers[k] > w->most) w->most = numbers[k];
    }
    return true;
}

static void put_numbers(struct writing *w, const struct row *row)
{
    for (int x = 0; x < row->samples && w->numbers.has_numbers; x += TSR_STRETCH) {
        uint16_t numbers[TSR_STRETCH];
        const int count = stretch_at(row, x);
        if (get_numbers(w->masked, row, x, count, numbers)) tsr_numbers_put(&w->numbers, &w->writer, numbers, count);
    }
}

static bool put_edges(void *context, const struct row *row, bool begins_plane)
{
    struct writing *const w = context;
    int32_t columns[TSR_EDGES_LIMIT];
    uint32_t edges = 0, is_set = 0;
    for (int x = 0; x < row->samples; x += TSR_STRETCH) {
        uint16_t numbers[TSR_STRETCH];
        const int count = stretch_at(row, x);
        if (get_numbers(w->masked, row, x, count, numbers) || is_set)
            edges = find_edges(numbers, x, count, &is_set, columns, edges);
    }
    w->edges += edges;
    if (edges > TSR_EDGES_LIMIT) return false;
    if (begins_plane) tsr_edges_begin_plane(&w->set.edges);
    tsr_edges_put(&w->set.edges, &w->writer, columns, (int)edges);
    put_numbers(w, row);
    return !w->writer.overflow;
}

static bool put_groups(void *context, const struct row *row, bool begins_plane)
{
    struct writing *const w = context;
    if (begins_plane) tsr_mask_begin_plane(&w->set.groups);
    for (int x = 0; x < row->samples; x += TSR_STRETCH) {
        uint16_t numbers[TSR_STRETCH];
        const int count = stretch_at(row, x);
        get_numbers(w->masked, row, x, count, numbers);
        for (int i = 0; i < count; i += TSR_MASK_GROUP) {
            uint32_t bits = 0;
            for (int k = 0; k < tsr_min(count - i, TSR_MASK_GROUP); k++) bits |= (uint32_t)(numbers[i + k] > 0) << k;
            tsr_mask_put(&w->set.groups, &w->writer, (x + i) / TSR_MASK_GROUP, bits);
        }
    }
    tsr_mask_end_row(&w->set.groups);
    put_numbers(w, row);
    return !w->writer.overflow;
}

static bool put_raw(void *context, const struct row *row, bool begins_plane)
{
    struct writing *const w = context;
    (void)begins_plane;
    for (int x = 0; x < row->samples; x += TSR_STRETCH) {
        uint16_t numbers[TSR_STRETCH];
        const int count = stretch_at(row, x);
        get_numbers(w->masked, row, x, count, numbers);
        for (int i = 0; i < count; i++) tsr_put_bits(&w->raw, numbers[i], w->bits);
    }
    return true;
}

/* Codes a mask by edges or by groups. Returns its bytes; 0: they would be more than most. */
static size_t put_form(struct writing *w, struct tsr_tile tile, bool by_edges, uint8_t *bytes, size_t most)
{
    w->writer = tsr_range_writer(bytes, most);
    tsr_range_put_even(&w->writer, by_edges, 1);
    tsr_range_put_even(&w->writer, w->most > 1, 1);
    tsr_numbers_begin(&w->numbers, farther(w->masked->kept), w->most > 1);
    if (by_edges)
        tsr_edges_begin(&w->set.edges, tile.width);
    else
        tsr_mask_begin(&w->set.groups, tile.width);
    if (!walk_tile(w->masked->image, tile, by_edges ? put_edges : put_groups, w)) return 0;
    const size_t size = tsr_range_end(&w->writer);
    return w->writer.overflow ? 0 : size;
}

/* Codes the mask of a tile; returns its bytes, at most those of a raw one. Of masks with few edges a row, which those
 * of padding are, groups are not tried: they would take twice as many bytes. */
size_t tsr_code_mask(const struct tsr_masked *m, struct tsr_tile tile, uint8_t *bytes)
{
    enum { FEW_EDGES = 4 };
    const uint64_t rows = (uint64_t)tile.height * m->image->components, samples = (uint64_t)tile.width * rows;
    const size_t raw_bytes = tsr_raw_mask_bytes(samples, m->kept);
    struct writing w = {.masked = m, .most = 1, .bits = tsr_bit_width(farther(m->kept))};
    if (farther(m->kept) > 2 || m->near.max_error > 0) walk_tile(m->image, tile, find_most, &w);
    const size_t by_edges = put_form(&w, tile, true, bytes, raw_bytes - 1);
    if (by_edges > 0 && w.edges <= FEW_EDGES * rows) return w.edges > 0 ? by_edges : 0;
    const size_t by_groups = put_form(&w, tile, false, bytes, by_edges > 0 ? by_edges - 1 : raw_bytes - 1);
    if (by_groups > 0) return by_groups;
    if (by_edges > 0) return put_form(&w, tile, true, bytes, raw_bytes - 1);
    w.raw = tsr_bit_writer(bytes, raw_bytes);
    walk_tile(m->image, tile, put_raw, &w);
    return tsr_flush_bits(&w.raw);
}

/* ---- Reading ------------------------------------------------------------------------------------------------ */

struct reading {
    const struct tsr_mask_target *target;
    union {
        struct tsr_edges edges;
        struct tsr_mask groups;
    } set;
    struct tsr_mask_numbers numbers;
    struct tsr_range_reader reader;
    struct tsr_bit_reader raw;
    int bits;
    uint32_t most;
};

/* Samples that their numbers, or the kept range that they are in, change. Values become what they change to; changed:
 * not 0 of a sample in a kept range, and then of those that change. False: damage. */
static bool change_values(const struct reading *r, int count, const uint16_t *numbers, uint16_t *values,
                          uint16_t *changed)
{
    uint32_t last = 0, value = 0;
    for (int i = 0; i < count; i++) {
        const uint32_t number = numbers ? numbers[i] : 0;
        if (number >= 1 && number < r->most) {
            if (number != last) value = tsr_kept_value(r->target->kept, last = number);
            values[i] = (uint16_t)value;
            changed[i] = 1;
        } else if (changed[i] > 0) {
            values[i] = (uint16_t)tsr_leave_kept(r->target->kept, values[i], r->target->image->bits_stored, number > 0);
        } else if (number > 0) {
            return false; /* there is nothing to leave */
        }
    }
    return true;
}

/* Gives count samples of a row from sample x on the values that their numbers say; NULL: they have none. */
static bool join_samples(const struct reading *r, const struct row *row, int x, int count, const uint16_t *numbers)
{
    const struct tsr_mask_target *const d = r->target;
    const size_t at = row->first + (size_t)x * row->step;
    uint16_t values[TSR_STRETCH], changed[TSR_STRETCH];
    tsr_stretch_values(d->image, d->layout, d->raster, at, row->step, count, values);
    const bool has_inside = tsr_stretch_numbers(d->kept, values, count, changed);
    if (!has_inside && !numbers) return true;
    if (!has_inside && !r->numbers.has_numbers) { /* the usual case, as vectors: all get one value */
        const uint16_t value = (uint16_t)tsr_kept_value(d->kept, 1);
        for (int i = 0; i < count; i++) values[i] = value;
        tsr_put_stretch(d->image, d->layout, values, numbers, at, row->step, count, d->raster);
        return true;
    }
    if (!change_values(r, count, numbers, values, changed)) return false;
    tsr_put_stretch(d->image, d->layout, values, changed, at, row->step, count, d->raster);
    return true;
}

/* Reads the numbers of samples that are kept, if there are some, and joins. */
static bool join_set(struct reading *r, const struct row *row, int x, int count, uint16_t *numbers, bool any)
{
    if (any && !tsr_numbers_get(&r->numbers, &r->reader, numbers, count)) return false;
    return join_samples(r, row, x, count, any ? numbers : NULL);
}

static bool get_edges(void *context, const struct row *row, bool begins_plane)
{
    struct reading *const r = context;
    int32_t columns[TSR_EDGES_LIMIT];
    int edges, next = 0;
    if (begins_plane) tsr_edges_begin_plane(&r->set.edges);
    if (!tsr_edges_get(&r->set.edges, &r->reader, columns, &edges)) return false;
    for (int x = 0; x < row->samples; x += TSR_STRETCH) {
        uint16_t numbers[TSR_STRETCH];
        const int count = stretch_at(row, x);
        bool any = false;
        for (int k = 0; k < count;) {
            const bool is_set = next & 1;
            const int end = next < edges && columns[next] < x + count ? columns[next++] - x : count;
            any |= is_set && k < end;
            for (; k < end; k++) numbers[k] = is_set;
        }
        if (!join_set(r, row, x, count, numbers, any)) return false;
    }
    return true;
}

static bool get_groups(void *context, const struct row *row, bool begins_plane)
{
    struct reading *const r = context;
    struct tsr_mask *const mask = &r->set.groups;
    if (begins_plane) tsr_mask_begin_plane(mask);
    for (int g = 0; g < mask->groups; g++) tsr_mask_get(mask, &r->reader, g);
    for (int x = 0; x < row->samples; x += TSR_STRETCH) {
        uint16_t numbers[TSR_STRETCH];
        const int count = stretch_at(row, x);
        bool any = false;
        for (int k = 0; k < count; k++) {
            numbers[k] = mask->row[1 + (x + k) / TSR_MASK_GROUP] >> (k % TSR_MASK_GROUP) & 1;
            any |= numbers[k] > 0;
        }
        if (!join_set(r, row, x, count, numbers, any)) return false;
    }
    tsr_mask_end_row(mask);
    return true;
}

static bool get_raw(void *context, const struct row *row, bool begins_plane)
{
    struct reading *const r = context;
    (void)begins_plane;
    for (int x = 0; x < row->samples; x += TSR_STRETCH) {
        uint16_t numbers[TSR_STRETCH];
        const int count = stretch_at(row, x);
        for (int i = 0; i < count; i++) {
            const uint32_t number = tsr_get_bits(&r->raw, r->bits);
            if (number > r->most) return false;
            numbers[i] = (uint16_t)number;
        }
        if (!join_samples(r, row, x, count, numbers)) return false;
    }
    return true;
}

static bool get_none(void *context, const struct row *row, bool begins_plane)
{
    (void)begins_plane;
    for (int x = 0; x < row->samples; x += TSR_STRETCH)
        if (!join_samples(context, row, x, stretch_at(row, x), NULL)) return false;
    return true;
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
        r.numbers.has_numbers = true;
        r.bits = tsr_bit_width(r.most);
        r.raw = tsr_bit_reader(mask.bytes, mask.size);
        return walk_tile(d->image, tile, get_raw, &r) && tsr_bits_ended(&r.raw);
    }
    r.reader = tsr_range_reader(mask.bytes, mask.size);
    const bool by_edges = tsr_range_get_even(&r.reader, 1);
    tsr_numbers_begin(&r.numbers, r.most, tsr_range_get_even(&r.reader, 1));
    if (by_edges)
        tsr_edges_begin(&r.set.edges, tile.width);
    else
        tsr_mask_begin(&r.set.groups, tile.width);
    return walk_tile(d->image, tile, by_edges ? get_edges : get_groups, &r) && !r.reader.overrun;
}
