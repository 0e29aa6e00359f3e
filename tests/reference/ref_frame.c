/* FORMAT.md 5 and 6: tiles, planes, frame models. */
#include "ref.h"

#include <string.h>

/* ---- 6.4 Plane model ---- */

/* 6.5: Z, J and M. */
static void quantised_range(const struct ref_header *h, uint32_t n, int64_t *z, int64_t *j, int64_t *m)
{
    int64_t d = 2 * (int64_t)n + 1;
    *z = h->is_signed ? (int64_t)1 << (h->stored - 1) : 0;
    *j = (*z + n) / d;
    *m = (((int64_t)1 << h->stored) - 1 - *z + n + *j * d) / d;
}

/* b of 6.2, without packed colours and colour transform. */
static unsigned own_bits(const struct ref_header *h, unsigned plane, uint32_t max_error)
{
    unsigned b;
    if (plane >= h->components) {
        b = h->allocated == 32 ? 16 : h->allocated - h->stored;
    } else if (max_error > 0) {
        int64_t z, j, m;
        quantised_range(h, max_error, &z, &j, &m);
        b = ref_bit_count((uint64_t)m) > 1 ? ref_bit_count((uint64_t)m) : 1;
    } else {
        b = h->allocated == 32 ? 16 : h->stored;
    }
    return b;
}

/* b of 6.2. */
static unsigned plane_bits(const struct ref_frame *frame, const struct ref_header *h, unsigned plane)
{
    unsigned b = own_bits(h, plane, frame->max_error);
    if (frame->packing != 0 && plane < 3) {
        uint32_t most = 2;
        for (unsigned c = 0; c < 3; c++)
            if (frame->listed[c] > most) most = frame->listed[c];
        b = ref_bit_count(most - 1);
    }
    if (frame->colour != 0 && (plane == 1 || plane == 2)) b = b + 1 < 16 ? b + 1 : 16;
    return b;
}

/* The values in use among first .. first + span - 1. */
static bool read_stretches(struct ref_bits *b, uint32_t first, uint32_t span, uint16_t **values, uint32_t *count)
{
    *values = ref_alloc(span, sizeof **values);
    *count = 0;
    uint32_t at = 0;
    for (bool in_use = true;; in_use = !in_use) {
        uint64_t length = (uint64_t)ref_ue(b) + 1;
        if (b->bad || length > span - at) return ref_fail("the stretches of a histogram are corrupt");
        for (; length > 0; length--, at++)
            if (in_use) (*values)[(*count)++] = (uint16_t)(first + at);
        if (at == span) return in_use || ref_fail("the last stretch of a histogram is not in use");
    }
}

/* 10.5, 10.7 */
static bool read_levels_model(struct ref_bits *b, struct ref_plane_model *plane, bool pairs)
{
    if (pairs) {
        plane->pairs = ref_alloc(1, sizeof *plane->pairs);
        return ref_read_pair_model(b, plane->pairs);
    }
    plane->levels = ref_alloc(1, sizeof *plane->levels);
    return ref_read_level_model(b, plane->levels);
}

static bool read_plane(struct ref_bits *b, struct ref_plane_model *plane, unsigned value_bits)
{
    plane->present = true;
    plane->minimum = ref_ue(b);
    uint64_t span = (uint64_t)ref_ue(b) + 1;
    if (b->bad || plane->minimum + span > (uint64_t)1 << value_bits) return ref_fail("a plane's values are too large");
    plane->range = (uint32_t)span;
    if (span == 1) return true;
    if (ref_u(b, 1) && !read_stretches(b, 0, (uint32_t)span, &plane->offset, &plane->range)) return false;
    plane->path = ref_u(b, 1);
    plane->coder = ref_u(b, 2);
    if (plane->path == 0 && plane->coder == 3) return !b->bad || ref_fail("a frame's model is too short");
    bool more = plane->coder == 3;
    if (more) {
        plane->classes = ref_u(b, 1);
        plane->dc_plane = ref_u(b, 1);
        plane->intra = !plane->classes && !plane->dc_plane;
        if (plane->intra) plane->classes = ref_u(b, 1);
        if (plane->intra) plane->dc_plane = ref_u(b, 1);
        plane->coder = ref_u(b, 2);
    }
    if (plane->coder > 2) return ref_fail("a coder is unknown");
    bool pairs = false;
    if (plane->path == 0) {
        plane->predictor = ref_alloc(1, sizeof *plane->predictor);
        if (!ref_read_predictor_model(b, plane->predictor, plane->earlier_count)) return false;
        if (plane->coder == 1 && plane->predictor->neighbours > 0) return ref_fail("CAVLC has predictors");
    } else {
        plane->lossy = ref_u(b, 1);
        if (plane->lossy) plane->q = ref_u(b, 10);
        if (plane->lossy) plane->coarser_by = ref_ue(b);
        if (plane->coarser_by > 0) plane->coarser_from = ref_ue(b);
        if (plane->q > 792 || plane->coarser_by > 792 - plane->q) return ref_fail("a step is out of range");
        if (plane->lossy) plane->lapping = ref_u(b, 1);
        if (more && !plane->lapping) return ref_fail("a plane without lapping has classes of steps or a DC plane");
        if (plane->coder == 0) pairs = ref_u(b, 1);
        if (plane->dc_plane && !pairs && plane->coder != 2) return ref_fail("a coder has no DC plane");
    }
    if (plane->path == 0 && plane->coder != 1) {
        plane->residual = ref_alloc(1, sizeof *plane->residual);
        return ref_read_residual_model(b, plane->residual, plane->coder == 2);
    }
    uint64_t side = (uint64_t)ref_ue(b) + 1;
    if (b->bad || side < 4 || side > 64) return ref_fail("the side of slices is out of range");
    plane->slice_side = (unsigned)side;
    if (plane->coder == 2 || pairs) {
        if (!read_levels_model(b, plane, pairs)) return false;
        if (!plane->dc_plane) return true;
        plane->dcs = ref_alloc(1, sizeof *plane->dcs);
        plane->dcs->slice_side = plane->slice_side;
        plane->dcs->q = ref_u(b, 10);
        if (plane->dcs->q > 792) return ref_fail("a step is out of range");
        return read_levels_model(b, plane->dcs, pairs);
    }
    if (plane->coder == 0) {
        plane->coefficients = ref_alloc(1, sizeof *plane->coefficients);
        return ref_read_coefficient_model(b, plane->coefficients);
    }
    return true;
}

/* ---- 6.6 Packed colours ---- */

static bool read_palette(struct ref_bits *b, struct ref_frame *frame, unsigned bits)
{
    static const unsigned orders[3][3] = {{0, 1, 2}, {1, 0, 2}, {2, 0, 1}};
    unsigned leading = ref_u(b, 2);
    uint64_t colours = (uint64_t)ref_ue(b) + 1;
    if (b->bad || leading > 2 || colours > 1024) return ref_fail("a palette is out of range");
    for (unsigned c = 0; c < 3; c++) {
        frame->listed[c] = (uint32_t)colours;
        frame->list[c] = ref_alloc((size_t)colours, sizeof *frame->list[c]);
    }
    int64_t colour[3] = {0, 0, 0};
    for (uint64_t i = 0; i < colours; i++) {
        int64_t before[3] = {colour[0], colour[1], colour[2]};
        uint32_t number[3];
        for (unsigned k = 0; k < 3; k++) number[k] = ref_ue(b);
        colour[0] = before[0] + number[0];
        bool same = i > 0 && colour[0] == before[0];
        colour[1] = same ? before[1] + number[1] : colour[0] + ref_unfold(number[1]);
        same = same && colour[1] == before[1];
        colour[2] = same ? before[2] + 1 + number[2] : colour[1] + ref_unfold(number[2]);
        for (unsigned k = 0; k < 3; k++) {
            if (b->bad || colour[k] < 0 || colour[k] >= (int64_t)1 << bits) return ref_fail("a colour is out of range");
            frame->list[orders[leading][k]][i] = (uint16_t)colour[k];
        }
    }
    return true;
}

static bool read_packing(struct ref_bits *b, struct ref_frame *frame, unsigned bits)
{
    frame->packing = ref_u(b, 2);
    if (frame->packing == 0) return true;
    if (frame->packing == 2) return read_palette(b, frame, bits);
    if (frame->packing != 1) return ref_fail("a packing of colours is unknown");
    for (unsigned c = 0; c < 3; c++) {
        uint64_t lowest = ref_ue(b), span = (uint64_t)ref_ue(b) + 1;
        if (b->bad || lowest + span > (uint64_t)1 << bits) return ref_fail("a component's values are too large");
        if (!read_stretches(b, (uint32_t)lowest, (uint32_t)span, &frame->list[c], &frame->listed[c])) return false;
    }
    return true;
}

static void unpack_colours(struct ref_frame *frame, size_t pixels)
{
    for (size_t i = 0; i < pixels; i++) {
        if (frame->packing == 2) frame->values[1][i] = frame->values[2][i] = frame->values[0][i];
        for (unsigned c = 0; c < 3; c++) {
            uint32_t number = frame->values[c][i], last = frame->listed[c] - 1;
            frame->values[c][i] = frame->list[c][number < last ? number : last];
        }
    }
}

/* ---- 6. Frame model ---- */

bool ref_frame_begin(struct ref_frame *frame, const struct ref_header *h, const uint8_t *model, size_t size)
{
    memset(frame, 0, sizeof *frame);
    struct ref_bits b = ref_string(model, size);
    uint64_t width = (uint64_t)ref_ue(&b) + 1, height = (uint64_t)ref_ue(&b) + 1;
    if (b.bad || width > h->columns || height > h->rows || width * height > (uint64_t)1 << 20)
        return ref_fail("the size of tiles is out of range");
    frame->tile_width = (uint32_t)width;
    frame->tile_height = (uint32_t)height;
    frame->tile_count = (uint32_t)(((h->columns + width - 1) / width) * ((h->rows + height - 1) / height));
    if (h->has_base || h->linked) frame->refers = ref_u(&b, 1); /* BASE.md 2, 5 */
    if (h->components >= 3) frame->colour = ref_u(&b, 2);
    bool spare_bits = h->stored < h->allocated;
    if (h->allocated <= 16 && spare_bits) frame->extends_sign = ref_u(&b, 1);
    if ((h->allocated == 8 || h->allocated == 16) && ref_u(&b, 1)) {
        frame->max_error = ref_u(&b, 15);
        if (frame->max_error == 0) return ref_fail("samples are quantised without an error");
    }
    if (h->components >= 3 && !read_packing(&b, frame, own_bits(h, 0, frame->max_error))) return false;
    if (frame->packing == 2 && frame->colour != 0) return ref_fail("a palette has a colour transform");
    frame->planes = h->components;
    if (h->allocated == 32 || spare_bits) frame->planes *= 2;
    for (unsigned p = 0; p < frame->planes; p++) {
        if (p >= h->components && h->allocated <= 16 && !ref_u(&b, 1)) continue;
        struct ref_plane_model *plane = &frame->plane[p];
        bool on_base = frame->refers && frame->packing == 0 && p < h->components; /* BASE.md 3 */
        if (on_base) plane->earlier[plane->earlier_count++] = &frame->base_plane[p];
        for (unsigned q = p; q > 0 && p < h->components; q--)
            if (frame->plane[q - 1].range > 1) plane->earlier[plane->earlier_count++] = &frame->plane[q - 1];
        if (on_base && plane->earlier_count == 1) plane->earlier[plane->earlier_count++] = &frame->means_plane[p];
        if (!read_plane(&b, &frame->plane[p], plane_bits(frame, h, p))) return false;
        if (frame->packing != 0 && p < 3 && frame->plane[p].lossy) return ref_fail("packed colours are lossy");
        if (frame->packing == 2 && (p == 1 || p == 2) && frame->plane[p].minimum + frame->plane[p].range != 1)
            return ref_fail("a palette has a second plane of numbers");
        frame->values[p] = ref_alloc((size_t)h->columns * h->rows, sizeof *frame->values[p]);
    }
    return ref_ended(&b) || ref_fail("a frame model does not end where it should");
}

/* ---- 5.3 Tile payload ---- */

static bool is_coded(const struct ref_plane_model *plane)
{
    return plane->present && plane->range > 1;
}

static bool read_raw(const struct ref_plane_model *plane, size_t count, const uint8_t *piece, size_t size, uint16_t *x)
{
    struct ref_bits b = ref_string(piece, size);
    unsigned n = ref_bit_count(plane->range - 1);
    for (size_t i = 0; i < count; i++) {
        uint32_t v = ref_u(&b, n);
        if (v >= plane->range) return ref_fail("a raw sample is out of range");
        x[i] = (uint16_t)v;
    }
    return ref_ended(&b) || ref_fail("a raw piece does not end where it should");
}

static bool read_piece(const struct ref_plane_model *plane, uint32_t width, uint32_t height, uint32_t columns,
                       uint32_t first, const uint8_t *piece, size_t size, uint16_t *x)
{
    uint64_t raw = ((uint64_t)width * height * ref_bit_count(plane->range - 1) + 7) / 8;
    if (size == 0 || size > raw) return ref_fail("a piece's size is out of range");
    if (size == raw) return read_raw(plane, (size_t)width * height, piece, size, x);
    if (plane->path == 0 && plane->coder == 3) return ref_drawn_tile(plane, width, height, piece, size, x);
    if (plane->path == 0) return ref_predictive_tile(plane, width, height, piece, size, x);
    return ref_transform_tile(plane, width, height, columns, first, piece, size, x);
}

bool ref_frame_tile(struct ref_frame *frame, const struct ref_header *h, uint32_t tile, const uint8_t *payload,
                    size_t size)
{
    uint32_t across = (h->columns + frame->tile_width - 1) / frame->tile_width;
    uint32_t left = tile % across * frame->tile_width, top = tile / across * frame->tile_height;
    uint32_t width = h->columns - left < frame->tile_width ? h->columns - left : frame->tile_width;
    uint32_t height = h->rows - top < frame->tile_height ? h->rows - top : frame->tile_height;
    unsigned last = frame->planes;
    for (unsigned p = 0; p < frame->planes; p++)
        if (is_coded(&frame->plane[p])) last = p;
    if (last == frame->planes && size > 0) return ref_fail("a tile without coded planes has a payload");

    uint64_t sizes[8] = {0}, sum = 0;
    struct ref_bytes b = {.data = payload, .size = size};
    for (unsigned p = 0; p < last; p++)
        if (is_coded(&frame->plane[p])) {
            sizes[p] = ref_short_varint(&b, 5);
            if (b.bad || sizes[p] > size - sum) return ref_fail("the sizes of a tile's pieces are corrupt");
            sum += sizes[p];
        }
    if (last < frame->planes) {
        if (sum > ref_left(&b)) return ref_fail("the sizes of a tile's pieces are corrupt");
        sizes[last] = ref_left(&b) - sum;
    }

    for (unsigned p = 0; p < frame->planes; p++) {
        struct ref_plane_model *plane = &frame->plane[p];
        if (!plane->present) continue;
        uint16_t *x = plane->x = ref_alloc((size_t)width * height, sizeof *x);
        if (is_coded(plane)) {
            const uint8_t *piece = ref_take(&b, sizes[p]);
            if (!piece) return ref_fail("a tile is too short");
            void *mark = ref_mark();
            ref_base_tile(frame, h, p, left, top, width, height);
            bool good =
                read_piece(plane, width, height, h->columns, top * h->columns + left, piece, (size_t)sizes[p], x);
            ref_release(mark);
            if (!good) return false;
        }
        /* 6.2: indices become values. */
        for (uint32_t r = 0; r < height; r++)
            for (uint32_t c = 0; c < width; c++) {
                uint32_t index = x[(size_t)r * width + c];
                uint32_t value = plane->minimum + (plane->offset ? plane->offset[index] : index);
                frame->values[p][(size_t)(top + r) * h->columns + left + c] = (uint16_t)value;
            }
    }
    return true;
}

/* ---- 6.3 Colour transform ---- */

static uint16_t into_range(int32_t v, unsigned b, bool clamps)
{
    int32_t top = (int32_t)(((uint32_t)1 << b) - 1);
    if (!clamps) return (uint16_t)(v & top);
    return (uint16_t)(v < 0 ? 0 : v > top ? top : v);
}

static void invert_colour(struct ref_frame *frame, const struct ref_header *h)
{
    unsigned b = plane_bits(frame, h, 0), c = plane_bits(frame, h, 1);
    bool clamps = false;
    for (unsigned p = 0; p < frame->planes; p++)
        if (frame->plane[p].lossy) clamps = true;
    for (size_t i = 0; i < (size_t)h->columns * h->rows; i++) {
        int32_t y = frame->values[0][i];
        int32_t u = (int32_t)frame->values[1][i] - ((int32_t)1 << (c - 1));
        int32_t v = (int32_t)frame->values[2][i] - ((int32_t)1 << (c - 1));
        int32_t red, green, blue;
        if (frame->colour == 1) {
            green = y;
            blue = v + green;
            red = u + green;
        } else if (frame->colour == 2) {
            green = y - ((u + v) >> 2);
            red = v + green;
            blue = u + green;
        } else {
            int32_t t = y - (v >> 1);
            green = v + t;
            blue = t - (u >> 1);
            red = blue + u;
        }
        frame->values[0][i] = into_range(red, b, clamps);
        frame->values[1][i] = into_range(green, b, clamps);
        frame->values[2][i] = into_range(blue, b, clamps);
    }
}

/* ---- 6.5 Quantised samples ---- */

static void restore_quantised(struct ref_frame *frame, const struct ref_header *h)
{
    int64_t z, j, m, d = 2 * (int64_t)frame->max_error + 1, top = ((int64_t)1 << h->stored) - 1;
    quantised_range(h, frame->max_error, &z, &j, &m);
    for (unsigned c = 0; c < h->components; c++)
        for (size_t i = 0; i < (size_t)h->columns * h->rows; i++) {
            int64_t sample = z + ((int64_t)frame->values[c][i] - j) * d;
            frame->values[c][i] = (uint16_t)(sample < 0 ? 0 : sample > top ? top : sample);
        }
}

/* ---- 6.1 Words, 3.2 Rasters ---- */

static uint32_t make_word(const struct ref_frame *frame, const struct ref_header *h, uint32_t s, uint32_t o)
{
    if (h->allocated == 32) return (s ^ (h->is_signed ? 0x8000u : 0u)) << 16 | o;
    unsigned below = h->high + 1 - h->stored, above = h->allocated - 1 - h->high;
    uint32_t f = s ^ (h->is_signed ? (uint32_t)1 << (h->stored - 1) : 0u);
    uint32_t expected = 0;
    if (frame->extends_sign && f >> (h->stored - 1)) expected = ((uint32_t)1 << above) - 1;
    return ((o >> below) ^ expected) << (h->high + 1) | f << below | (o & (((uint32_t)1 << below) - 1));
}

bool ref_frame_end(struct ref_frame *frame, const struct ref_header *h, uint8_t *raster)
{
    if (frame->colour != 0) invert_colour(frame, h);
    if (frame->packing != 0) unpack_colours(frame, (size_t)h->columns * h->rows);
    if (frame->max_error > 0) restore_quantised(frame, h);
    if (h->kept_count > 0 && !ref_apply_masks(frame, h)) return false;
    size_t pixels = (size_t)h->columns * h->rows, raster_size = ref_raster_size(h);
    unsigned bytes = h->allocated / 8;
    memset(raster, 0, raster_size);
    for (unsigned c = 0; c < h->components; c++) {
        const uint16_t *first = frame->values[c];
        const uint16_t *second = c + h->components < frame->planes ? frame->values[c + h->components] : NULL;
        for (size_t i = 0; i < pixels; i++) {
            uint32_t word = make_word(frame, h, first[i], second ? second[i] : 0);
            size_t place = h->planar ? c * pixels + i : i * h->components + c;
            if (h->allocated == 1) raster[place / 8] |= (uint8_t)(word << (place % 8));
            for (unsigned k = 0; k < bytes; k++)
                raster[place * bytes + k] = (uint8_t)(word >> 8 * (h->big_endian ? bytes - 1 - k : k));
        }
    }
    for (size_t i = 0; h->swapped && i + 1 < raster_size; i += 2) {
        uint8_t byte = raster[i];
        raster[i] = raster[i + 1];
        raster[i + 1] = byte;
    }
    return true;
}
