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

/* Lays the scratch out, which may begin anywhere, and begins a tile. */
static struct tsr_drawn begin_tile(struct tsr_tile tile, uint32_t range, void *scratch)
{
    struct tsr_drawn d = {.width = tile.width, .range = range};
    uint8_t *at = (uint8_t *)scratch + (-(uintptr_t)scratch & (TSR_DRAWN_ALIGNMENT - 1));
    d.value_bits = tsr_bit_width(range - 1);
    d.slot_bits = tsr_drawn_slot_bits(tile.width, tile.height);
    for (int i = 0; i < TSR_DRAWN_ROWS; i++)
        d.row[i] = (uint16_t *)take(&at, tsr_drawn_row_bytes(tile.width)) + TSR_DRAWN_LEFT;
    for (int i = 0; i < 2; i++) d.error[i] = (uint16_t *)take(&at, tsr_drawn_row_bytes(tile.width)) + TSR_DRAWN_LEFT;
    for (int level = 0; level < TSR_DRAWN_LEVELS; level++)
        d.slot[level] = take(&at, sizeof(struct tsr_drawn_slot) << d.slot_bits);
    memset(d.row[0] - TSR_DRAWN_LEFT, 0, (size_t)(at - (uint8_t *)(d.row[0] - TSR_DRAWN_LEFT)));
    d.chances = take(&at, sizeof *d.chances);
    tsr_drawn_begin_chances(&d);
    return d;
}

/* Ends a string. Returns its bytes; 0: there is no room. */
static size_t end_string(struct tsr_range_writer *writer)
{
    size_t size = tsr_range_end(writer);
    if (writer->overflow) return 0;
    if (size == 0) writer->bytes[size++] = 0; /* no piece is empty */
    return size;
}

static size_t code_tile(const uint16_t *samples, struct tsr_tile tile, uint32_t range, bool by_residual,
                        uint8_t *payload, size_t capacity, void *scratch)
{
    struct tsr_drawn d = begin_tile(tile, range, scratch);
    if (capacity == 0) return 0;
    d.by_residual = by_residual;
    d.writer = tsr_range_writer(payload, capacity);
    tsr_range_put_even(&d.writer, by_residual, 1);
    for (int32_t y = 0; y < tile.height && !d.writer.overflow; y++) {
        tsr_drawn_row(&d, samples + tile.first + (size_t)y * tile.stride, TSR_DRAWN_WRITES);
        tsr_drawn_end_row(&d);
    }
    return end_string(&d.writer);
}

/* The string by values stands in the second half until it is known to be the shorter one. */
static size_t code_tile_both(const uint16_t *samples, struct tsr_tile tile, uint32_t range, uint8_t *payload,
                             size_t capacity, void *scratch)
{
    struct tsr_drawn d = begin_tile(tile, range, scratch);
    const size_t half = capacity / 2;
    if (half == 0) return 0;
    d.writer = tsr_range_writer(payload, half);
    d.by_value = tsr_range_writer(payload + half, half);
    tsr_range_put_even(&d.writer, 1, 1);
    tsr_range_put_even(&d.by_value, 0, 1);
    for (int32_t y = 0; y < tile.height && !(d.writer.overflow && d.by_value.overflow); y++) {
        tsr_drawn_row(&d, samples + tile.first + (size_t)y * tile.stride, TSR_DRAWN_WRITES_BOTH);
        tsr_drawn_end_row(&d);
    }
    const size_t by_residual = end_string(&d.writer), by_value = end_string(&d.by_value);
    if (by_value == 0 || (by_residual > 0 && by_residual <= by_value)) return by_residual;
    memmove(payload, payload + half, by_value);
    return by_value;
}

static bool decode_tile(const uint8_t *payload, size_t size, uint32_t range, uint16_t *samples, struct tsr_tile tile,
                        void *scratch)
{
    struct tsr_drawn d = begin_tile(tile, range, scratch);
    d.reader = tsr_range_reader(payload, size);
    d.by_residual = tsr_range_get_even(&d.reader, 1) != 0;
    for (int32_t y = 0; y < tile.height; y++) {
        if (!tsr_drawn_row(&d, NULL, TSR_DRAWN_READS) || d.reader.overrun) return false;
        memcpy(samples + tile.first + (size_t)y * tile.stride, d.row[0], (size_t)tile.width * sizeof *samples);
        tsr_drawn_end_row(&d);
    }
    return d.reader.at >= size;
}

const struct tsr_drawn_form TSR_FORM = {code_tile, code_tile_both, decode_tile};
