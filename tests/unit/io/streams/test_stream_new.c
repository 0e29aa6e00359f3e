/* Residues of new streams: what is made of them is read again, with the same samples and the same residue. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "io/nodes/new_streams/stream_new.h"

enum { KINDS = 3 };

static enum tsr_status make_residue(int kind, const struct tsr_image *image, const uint8_t *raster, int bits,
                                    struct tsr_bytes *residue)
{
    return kind == 0   ? tsr_new_rle(image, residue, NULL)
           : kind == 1 ? tsr_new_jpeg_lossless(image, raster, bits, residue, NULL)
                       : tsr_new_jpeg_ls(image, bits, residue, NULL);
}

/* The first table's codes leave that of all ones free: T.81 annex C. */
static void check_table(const struct tsr_bytes *residue, int components)
{
    const uint8_t *const dht = residue->bytes + 2 + 10 + 3 * components;
    uint32_t used = 0;
    assert_int_equal(dht[0], 0xff);
    assert_int_equal(dht[1], 0xc4);
    for (int n = 1; n <= 16; n++) used += (uint32_t)dht[4 + n] << (16 - n);
    assert_true(used < 1 << 16);
}

/* Makes a stream, reads it, and compares. */
static void try_kind(int kind, const struct tsr_image *image, const uint8_t *raster, int bits)
{
    const size_t size = (size_t)(tsr_frame_bits(image) / 8);
    struct tsr_bytes residue = {.limit = 1 << 20}, stream = {.limit = 1 << 24}, again = {.limit = 1 << 24};
    struct tsr_error error = {0};
    uint8_t *const found = calloc(1, size);
    assert_non_null(found);
    assert_int_equal(make_residue(kind, image, raster, bits, &residue), TSR_OK);
    if (kind == TSR_NODE_JPEG_LOSSLESS) check_table(&residue, image->components);
    if (tsr_node_join(tsr_raster_node(kind), image, raster, residue.bytes, residue.size, &stream, &error) != TSR_OK)
        fail_msg("%s", error.text);
    if (tsr_node_split(tsr_raster_node(kind), image, stream.bytes, stream.size, found, &again, &error) != TSR_OK)
        fail_msg("%s", error.text);
    assert_memory_equal(found, raster, size);
    assert_int_equal(again.size, residue.size);
    assert_memory_equal(again.bytes, residue.bytes, residue.size);
    tsr_bytes_free(&residue);
    tsr_bytes_free(&stream);
    tsr_bytes_free(&again);
    free(found);
}

static struct tsr_image image_of(uint32_t columns, uint32_t rows, int components, int allocated)
{
    return (struct tsr_image){.columns = columns,
                              .rows = rows,
                              .frames = 1,
                              .components = (uint8_t)components,
                              .bits_allocated = (uint8_t)allocated,
                              .bits_stored = (uint8_t)allocated,
                              .high_bit = (uint8_t)(allocated - 1)};
}

/* Samples of so many bits: noise that grows to the right, one value at the left. */
static void fill(uint8_t *raster, const struct tsr_image *image, int bits)
{
    const size_t samples = (size_t)image->columns * image->rows * image->components;
    uint32_t state = 1;
    for (size_t i = 0; i < samples; i++) {
        state = state * 1664525u + 1013904223u;
        const uint32_t noise = (state >> 16) % (uint32_t)(i % 17 + 1), value = (noise * noise + 3) & ((1u << bits) - 1);
        if (image->bits_allocated == 8) {
            raster[i] = (uint8_t)value;
        } else {
            raster[2 * i] = (uint8_t)value;
            raster[2 * i + 1] = (uint8_t)(value >> 8);
        }
    }
}

static void shapes(void **state)
{
    static const uint32_t sides[][2] = {{1, 1}, {1, 9}, {9, 1}, {37, 23}, {130, 5}};
    static uint8_t raster[130 * 23 * 4 * 2];
    (void)state;
    for (size_t s = 0; s < sizeof sides / sizeof sides[0]; s++)
        for (int components = 1; components <= 4; components++)
            for (int bits = 2; bits <= 16; bits++)
                for (int planar = 0; planar < 2; planar++) {
                    struct tsr_image image = image_of(sides[s][0], sides[s][1], components, bits > 8 ? 16 : 8);
                    image.planar = planar == 1 && components > 1;
                    fill(raster, &image, bits);
                    for (int kind = 0; kind < KINDS; kind++) try_kind(kind, &image, raster, bits);
                }
}

/* A single value: a Huffman table of one code. */
static void one_value(void **state)
{
    static uint8_t raster[64 * 64 * 2];
    const struct tsr_image image = image_of(64, 64, 1, 16);
    (void)state;
    for (size_t i = 0; i < sizeof raster; i += 2) raster[i] = 0, raster[i + 1] = 0x80;
    for (int kind = 0; kind < KINDS; kind++) try_kind(kind, &image, raster, 16);
}

/* Categories whose numbers grow so fast that the shortest code of some would have more than 16 bits. */
static void long_codes(void **state)
{
    enum { COLUMNS = 4180 };
    static uint8_t raster[2 * COLUMNS];
    const struct tsr_image image = image_of(COLUMNS, 1, 1, 16);
    size_t at = 0, count = 1, before = 1;
    uint32_t sample = 0x8000;
    (void)state;
    for (int category = 16; category >= 0; category--) {
        const uint32_t difference = category == 0 ? 0 : 1u << (category - 1);
        for (size_t i = 0; i < count && at < COLUMNS; i++, at++) {
            sample = (sample + (i % 2 && category < 16 ? 0u - difference : difference)) & 0xffff;
            raster[2 * at] = (uint8_t)sample;
            raster[2 * at + 1] = (uint8_t)(sample >> 8);
        }
        const size_t next = count + before;
        before = count;
        count = next;
    }
    for (; at < COLUMNS; at++) memcpy(raster + 2 * at, raster + 2 * at - 2, 2);
    try_kind(TSR_NODE_JPEG_LOSSLESS, &image, raster, 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(shapes), cmocka_unit_test(one_value),
                                       cmocka_unit_test(long_codes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
