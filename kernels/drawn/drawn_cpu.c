/* Tiles of drawn planes; see the header. */
#include "drawn_cpu.h"

#include <string.h>

#include "entropy/drawn.h"
#include "entropy/frame_model.h"

enum { ALIGNMENT = 64 };

/* Of a row's bytes, the words that differ from that of the pixel before and from that above; pixel: bytes. The row has
 * a row of bytes above it. */
static uint64_t new_words(const uint8_t *row, size_t bytes, size_t pixel, size_t word)
{
    const uint8_t *const above = row - bytes;
    uint64_t count = 0;
    for (size_t i = pixel; i < bytes && word == 1; i++)
        count += (uint64_t)((row[i] != row[i - pixel]) & (row[i] != above[i]));
    for (size_t i = pixel; i + 1 < bytes && word == 2; i += 2)
        count += (uint64_t)((((row[i] ^ row[i - pixel]) | (row[i + 1] ^ row[i + 1 - pixel])) != 0) &
                            (((row[i] ^ above[i]) | (row[i + 1] ^ above[i + 1])) != 0));
    return count;
}

/* How many of the 256 values are noted. */
static int noted(const uint8_t note[256])
{
    int count = 0;
    for (int i = 0; i < 256; i++) count += note[i];
    return count;
}

bool tsr_may_be_drawn(const struct tsr_image *image, const uint8_t *raster)
{
    enum { SAMPLES = 4096, LEAST_STEP = 4, SHARE = 4, FEW_VALUES = 48 }; /* a share of 1/SHARE may be new */
    if (image->bits_allocated < 8) return true;
    const size_t word = image->bits_allocated == 8 ? 1 : 2,
                 pixel = image->bits_allocated / 8u * (image->planar ? 1u : image->components),
                 bytes = pixel * image->columns;
    const uint32_t most = tsr_choice_step(image->columns, image->rows, SAMPLES),
                   step = most > LEAST_STEP ? most : LEAST_STEP;
    uint64_t words = 0, fresh = 0;
    uint8_t note[256] = {0};
    for (uint32_t r = 1; r < image->rows; r += step) {
        words += bytes / word;
        fresh += new_words(raster + r * bytes, bytes, pixel, word);
        for (size_t i = 0; i < bytes && word == 1; i++) note[raster[r * bytes + i]] = 1;
    }
    return fresh * SHARE <= words || (word == 1 && noted(note) <= FEW_VALUES);
}

static void *take(uint8_t **at, size_t bytes)
{
    void *const taken = *at;
    *at += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return taken;
}

static size_t row_bytes(int32_t width)
{
    return ((size_t)width + TSR_DRAWN_LEFT + TSR_DRAWN_RIGHT) * sizeof(uint16_t);
}

size_t tsr_drawn_scratch_bytes(int32_t width, int32_t height)
{
    const size_t slots = (size_t)1 << tsr_drawn_slot_bits(width, height);
    size_t used = sizeof(struct tsr_drawn_chances) + (TSR_DRAWN_ROWS + 2) * row_bytes(width) +
                  TSR_DRAWN_LEVELS * slots * sizeof(struct tsr_drawn_slot);
    return used + (TSR_DRAWN_ROWS + 2 + TSR_DRAWN_LEVELS + 2) * ALIGNMENT;
}

/* Lays the scratch out, which may begin anywhere, and begins a tile. */
static struct tsr_drawn begin_tile(struct tsr_tile tile, uint32_t range, void *scratch)
{
    struct tsr_drawn d = {.width = tile.width, .range = range};
    uint8_t *at = (uint8_t *)scratch + (-(uintptr_t)scratch & (ALIGNMENT - 1));
    d.value_bits = tsr_bit_width(range - 1);
    d.slot_bits = tsr_drawn_slot_bits(tile.width, tile.height);
    for (int i = 0; i < TSR_DRAWN_ROWS; i++) d.row[i] = (uint16_t *)take(&at, row_bytes(tile.width)) + TSR_DRAWN_LEFT;
    for (int i = 0; i < 2; i++) d.error[i] = (uint16_t *)take(&at, row_bytes(tile.width)) + TSR_DRAWN_LEFT;
    for (int level = 0; level < TSR_DRAWN_LEVELS; level++)
        d.slot[level] = take(&at, sizeof(struct tsr_drawn_slot) << d.slot_bits);
    memset(d.row[0] - TSR_DRAWN_LEFT, 0, (size_t)(at - (uint8_t *)(d.row[0] - TSR_DRAWN_LEFT)));
    d.chances = take(&at, sizeof *d.chances);
    tsr_drawn_begin_chances(&d);
    return d;
}

size_t tsr_code_drawn_tile(const uint16_t *samples, struct tsr_tile tile, uint32_t range, bool by_residual,
                           uint8_t *payload, size_t capacity, uint32_t *others, void *scratch)
{
    struct tsr_drawn d = begin_tile(tile, range, scratch);
    if (capacity == 0) return 0;
    d.by_residual = by_residual;
    d.writer = tsr_range_writer(payload, capacity);
    tsr_range_put_even(&d.writer, by_residual, 1);
    for (int32_t y = 0; y < tile.height && !d.writer.overflow; y++) {
        tsr_drawn_row(&d, samples + tile.first + (size_t)y * tile.stride, false);
        tsr_drawn_end_row(&d);
    }
    size_t size = tsr_range_end(&d.writer);
    if (others) *others = d.others;
    if (d.writer.overflow) return 0;
    if (size == 0) payload[size++] = 0; /* no piece is empty */
    return size;
}

bool tsr_decode_drawn_tile(const uint8_t *payload, size_t size, uint32_t range, uint16_t *samples, struct tsr_tile tile,
                           void *scratch)
{
    struct tsr_drawn d = begin_tile(tile, range, scratch);
    d.reader = tsr_range_reader(payload, size);
    d.by_residual = tsr_range_get_even(&d.reader, 1) != 0;
    for (int32_t y = 0; y < tile.height; y++) {
        if (!tsr_drawn_row(&d, NULL, true) || d.reader.overrun) return false;
        memcpy(samples + tile.first + (size_t)y * tile.stride, d.row[0], (size_t)tile.width * sizeof *samples);
        tsr_drawn_end_row(&d);
    }
    return d.reader.at >= size;
}
