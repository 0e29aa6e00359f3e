/* Streams of deflate that hold a frame: deflate_frame.c. DEFLATE.md 6. */
#include <zlib.h>

#include "stream_trial.h"

enum { PLAIN = 90 * 60 * 3 * 2 };

static uint8_t plain[PLAIN];
static struct {
    uint8_t bytes[2 * PLAIN];
    size_t size;
} made;

/* Noise, few shades, a constant, and slopes. */
static void fill(uint8_t *bytes, size_t size, uint32_t kind, struct rng *r)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(kind == 0   ? rng_next(r)
                             : kind == 1 ? rng_below(r, 3) * 80
                             : kind == 2 ? 9
                                         : i / 7 + rng_below(r, 8) / 7);
}

static void deflate_by_zlib(const uint8_t *bytes, size_t size, int level, int strategy)
{
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, level, Z_DEFLATED, -15, 8, strategy), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)bytes;
    z.avail_in = (uInt)size;
    z.next_out = made.bytes;
    z.avail_out = sizeof made.bytes;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    made.size = z.total_out;
    deflateEnd(&z);
}

/* Streams that hold a frame, of bits and of bytes, and what follows them. DEFLATE.md 6. */
TEST(frames_come_back)
{
    static const struct {
        const char *tail;
        size_t size;
    } tails[] = {{"", 0}, {"\0", 1}, {"\0\0", 2}, {"xyz", 3}};
    struct rng r = {77};
    for (int i = 0; i < 400; i++) {
        const bool is_bits = i % 3 == 0;
        const struct tsr_image image =
            image_of(1 + rng_below(&r, 90), 1 + rng_below(&r, 60), is_bits ? 1 : 1 + (int)rng_below(&r, 3),
                     is_bits      ? 1
                     : i % 3 == 1 ? 8
                                  : 16,
                     false);
        const size_t size = raster_bytes(&image), tail = (size_t)i % COUNT_OF(tails);
        const unsigned used = image.columns * image.rows % 8;
        fill(plain, size, rng_below(&r, 4), &r);
        if (is_bits && used) plain[size - 1] &= (uint8_t)((1u << used) - 1);
        deflate_by_zlib(plain, size, i % 10, i % 5);
        const size_t stream = made.size;
        memcpy(made.bytes + stream, tails[tail].tail, tails[tail].size);
        struct trial t = try_stream(&tsr_node_deflate_frame, &image, made.bytes, stream + tails[tail].size);
        expect(t.status == TSR_OK && t.is_exact, "case %d: %s", i, t.error.text);
        expect(memcmp(t.raster, plain, size) == 0, "case %d: other samples", i);
        const bool usual = tails[tail].size == stream % 2 && (tails[tail].size == 0 || tails[tail].tail[0] == 0);
        expect((t.residue.bytes[0] == 0) == usual, "case %d: a tail code of %d", i, t.residue.bytes[0]);
        end_trial(&t);
        struct tsr_image other = image; /* of another size */
        other.rows++;
        t = try_stream(&tsr_node_deflate_frame, &other, made.bytes, stream);
        expect(t.status == TSR_ERROR_CORRUPT || (is_bits && raster_bytes(&other) == size), "case %d: a row more", i);
        end_trial(&t);
    }
}

/* Bits after the last sample that are not 0 are not in the raster. */
TEST(frames_with_spare_bits_are_refused)
{
    const struct tsr_image image = image_of(3, 3, 1, 1, false);
    for (unsigned last = 0; last < 256; last++) {
        const uint8_t bits[2] = {0x5a, (uint8_t)last};
        deflate_by_zlib(bits, 2, 6, 0);
        struct trial t = try_stream(&tsr_node_deflate_frame, &image, made.bytes, made.size);
        expect((t.status == TSR_OK) == (last < 2), "last byte %u: %s", last, tsr_status_name(t.status));
        end_trial(&t);
    }
}

/* Damaged residues of frames: an error, or other bytes. */
TEST(damaged_residues_of_frames)
{
    struct rng r = {78};
    const struct tsr_image image = image_of(40, 20, 1, 8, false);
    fill(plain, 800, 1, &r);
    deflate_by_zlib(plain, 800, 6, 0);
    struct trial t = try_stream(&tsr_node_deflate_frame, &image, made.bytes, made.size);
    assert_true(t.status == TSR_OK && t.is_exact);
    for (size_t size = 0; size < t.residue.size; size++) {
        struct tsr_bytes again = {.limit = 1 << 16};
        uint8_t *copy = copy_of(t.residue.bytes, size);
        const enum tsr_status status = tsr_node_join(&tsr_node_deflate_frame, &image, plain, copy, size, &again, NULL);
        expect(status == TSR_OK || status == TSR_ERROR_CORRUPT, "%zu bytes: %s", size, tsr_status_name(status));
        free(copy);
        tsr_bytes_free(&again);
    }
    const uint8_t beyond[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
    struct tsr_bytes again = {.limit = 1 << 16};
    assert_int_equal(tsr_node_join(&tsr_node_deflate_frame, &image, plain, beyond, sizeof beyond, &again, NULL),
                     TSR_ERROR_CORRUPT);
    tsr_bytes_free(&again);
    end_trial(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(frames_come_back),
                                       cmocka_unit_test(frames_with_spare_bits_are_refused),
                                       cmocka_unit_test(damaged_residues_of_frames)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
