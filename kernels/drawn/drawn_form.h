/* The text that drawn_cpu.c compiles as plain C and drawn_avx2.c for AVX2: tiles of drawn planes by the steps of
 * entropy/drawn.h. TSR_FORM names it. */
#include <string.h>

#include "drawn_forms_cpu.h"
#include "entropy/drawn.h"

static void *take(uint8_t **at, size_t bytes)
{
    void *const taken = *at;
    *at += (bytes + TSR_DRAWN_ALIGNMENT - 1) / TSR_DRAWN_ALIGNMENT * TSR_DRAWN_ALIGNMENT;
    return taken;
}

static bool is_by_blend(enum tsr_drawn_kind kind)
{
    return kind == TSR_DRAWN_BY_BLEND || kind == TSR_DRAWN_BY_BLEND_ALONE;
}

/* Lays the scratch of blends out. */
static void take_blend(struct tsr_blend *blend, int32_t width, uint8_t **at)
{
    uint8_t *const begin = *at;
    for (int i = 0; i < 2; i++)
        blend->misses[i] = (uint16_t *)take(at, tsr_misses_row_bytes(width)) + TSR_DRAWN_LEFT * TSR_BLEND_GUESSES;
    for (int i = 0; i < 3; i++) blend->missed[i] = (uint16_t *)take(at, tsr_drawn_row_bytes(width)) + TSR_DRAWN_LEFT;
    memset(begin, 0, (size_t)(*at - begin));
}

/* Lays the scratch out, which may begin anywhere, and begins a tile of which all but the kind is set. */
static void begin_tile(struct tsr_drawn *d, struct tsr_tile tile, enum tsr_drawn_kind kind, void *scratch)
{
    uint8_t *at = (uint8_t *)scratch + (-(uintptr_t)scratch & (TSR_DRAWN_ALIGNMENT - 1));
    d->width = tile.width;
    d->kind = kind;
    d->value_bits = tsr_bit_width(d->range - 1);
    d->slot_bits = tsr_drawn_slot_bits(tile.width, tile.height);
    for (int i = 0; i < TSR_DRAWN_ROWS; i++)
        d->row[i] = (uint16_t *)take(&at, tsr_drawn_row_bytes(tile.width)) + TSR_DRAWN_LEFT;
    for (int i = 0; i < 2; i++) d->error[i] = (uint16_t *)take(&at, tsr_drawn_row_bytes(tile.width)) + TSR_DRAWN_LEFT;
    for (int level = 0; level < TSR_DRAWN_LEVELS && kind != TSR_DRAWN_OF_TWO; level++)
        d->slot[level] = take(&at, sizeof(struct tsr_drawn_slot) << d->slot_bits);
    for (int level = 0; level < TSR_MIX_CHANCES && kind == TSR_DRAWN_OF_TWO; level++)
        d->bit_slot[level] = take(&at, sizeof(struct tsr_drawn_bit_slot) << d->slot_bits);
    memset(d->row[0] - TSR_DRAWN_LEFT, 0, (size_t)(at - (uint8_t *)(d->row[0] - TSR_DRAWN_LEFT)));
    d->chances = take(&at, sizeof *d->chances);
    if (is_by_blend(kind)) take_blend(&d->blend, tile.width, &at);
    d->mix.input[TSR_MIX_CHANCES] = TSR_MIX_CONSTANT;
    tsr_drawn_begin_chances(d);
}

/* Ends a string. Returns its bytes; 0: there is no room. */
static size_t end_string(struct tsr_range_writer *writer)
{
    size_t size = tsr_range_end(writer);
    if (writer->overflow) return 0;
    if (size == 0) writer->bytes[size++] = 0; /* no piece is empty */
    return size;
}

static inline void code_rows(struct tsr_drawn *d, const uint16_t *samples, struct tsr_tile tile,
                             const enum tsr_drawn_way way)
{
    for (int32_t y = 0; y < tile.height && !d->writer.overflow; y++) {
        tsr_drawn_row(d, samples + tile.first + (size_t)y * tile.stride, way);
        tsr_drawn_end_row(d, way);
    }
}

static size_t code_tile(const uint16_t *samples, struct tsr_tile tile, uint32_t range, enum tsr_drawn_kind kind,
                        uint8_t *payload, size_t capacity, uint32_t *others, void *scratch)
{
    struct tsr_drawn d = {.range = range};
    if (capacity == 0) return 0;
    begin_tile(&d, tile, kind, scratch);
    d.writer = tsr_range_writer(payload, capacity);
    if (kind != TSR_DRAWN_OF_TWO) tsr_range_put_even(&d.writer, (uint32_t)kind, 2);
    if (kind == TSR_DRAWN_OF_TWO)
        code_rows(&d, samples, tile, TSR_DRAWN_WRITES_TWO);
    else if (is_by_blend(kind))
        code_rows(&d, samples, tile, TSR_DRAWN_WRITES_BLEND);
    else
        code_rows(&d, samples, tile, TSR_DRAWN_WRITES);
    *others = d.others;
    return end_string(&d.writer);
}

/* The string by values stands in the second half until it is known to be the shorter one. */
static size_t code_tile_both(const uint16_t *samples, struct tsr_tile tile, uint32_t range, uint8_t *payload,
                             size_t capacity, uint32_t *others, void *scratch)
{
    struct tsr_drawn d = {.range = range};
    const size_t half = capacity / 2;
    if (half == 0) return 0;
    begin_tile(&d, tile, TSR_DRAWN_BY_VALUE, scratch);
    d.writer = tsr_range_writer(payload, half);
    d.by_value = tsr_range_writer(payload + half, half);
    tsr_range_put_even(&d.writer, TSR_DRAWN_BY_RESIDUAL, 2);
    tsr_range_put_even(&d.by_value, TSR_DRAWN_BY_VALUE, 2);
    for (int32_t y = 0; y < tile.height && !(d.writer.overflow && d.by_value.overflow); y++) {
        tsr_drawn_row(&d, samples + tile.first + (size_t)y * tile.stride, TSR_DRAWN_WRITES_BOTH);
        tsr_drawn_end_row(&d, TSR_DRAWN_WRITES_BOTH);
    }
    *others = d.others;
    const size_t by_residual = end_string(&d.writer), by_value = end_string(&d.by_value);
    if (by_value == 0 || (by_residual > 0 && by_residual <= by_value)) return by_residual;
    memmove(payload, payload + half, by_value);
    return by_value;
}

static inline bool decode_rows(struct tsr_drawn *d, uint16_t *samples, struct tsr_tile tile,
                               const enum tsr_drawn_way way)
{
    for (int32_t y = 0; y < tile.height; y++) {
        if (!tsr_drawn_row(d, NULL, way) || d->reader.overrun) return false;
        memcpy(samples + tile.first + (size_t)y * tile.stride, d->row[0], (size_t)tile.width * sizeof *samples);
        tsr_drawn_end_row(d, way);
    }
    return d->reader.at >= d->reader.size;
}

static bool decode_tile(const uint8_t *payload, size_t size, uint32_t range, uint16_t *samples, struct tsr_tile tile,
                        void *scratch)
{
    struct tsr_drawn d = {.range = range, .reader = tsr_range_reader(payload, size)};
    const bool two = range == 2;
    begin_tile(&d, tile, two ? TSR_DRAWN_OF_TWO : (enum tsr_drawn_kind)tsr_range_get_even(&d.reader, 2), scratch);
    return two                   ? decode_rows(&d, samples, tile, TSR_DRAWN_READS_TWO)
           : is_by_blend(d.kind) ? decode_rows(&d, samples, tile, TSR_DRAWN_READS_BLEND)
                                 : decode_rows(&d, samples, tile, TSR_DRAWN_READS);
}

const struct tsr_drawn_form TSR_FORM = {code_tile, code_tile_both, decode_tile};
