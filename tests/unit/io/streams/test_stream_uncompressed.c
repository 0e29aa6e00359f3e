/* Streams that are the samples of a frame: uncompressed.c. UNCOMPRESSED.md. */
#include "stream_trial.h"

static void put_noise(struct text *t, size_t size, struct rng *r)
{
    for (size_t i = 0; i < size; i++) put(t, rng_below(r, 256));
}

/* Frames of all numbers of bits, with the usual padding and with others. */
TEST(frames_come_back)
{
    static const struct {
        const char *tail;
        size_t size;
    } tails[] = {{"", 0}, {"\0", 1}, {"\0\0", 2}, {"x", 1}, {"xyz", 3}};
    static const int bits[] = {1, 8, 16, 32};
    struct rng r = {91};
    for (int i = 0; i < 400; i++) {
        static struct text stream;
        const int depth = bits[i % 4];
        const struct tsr_image image = image_of(1 + rng_below(&r, 19), 1 + rng_below(&r, 19),
                                                depth == 1 ? 1 : 1 + (int)rng_below(&r, 4), depth, i % 3 == 0);
        const size_t size = raster_bytes(&image), tail = rng_below(&r, COUNT_OF(tails));
        const unsigned used = depth == 1 ? image.columns * image.rows % 8 : 0;
        stream.size = 0;
        put_noise(&stream, size, &r);
        if (i % 5 > 0 && used > 0) stream.bytes[size - 1] &= (uint8_t)((1u << used) - 1);
        const uint8_t last = stream.bytes[size - 1], mask = (uint8_t)(used > 0 ? (1u << used) - 1 : 255);
        put_all(&stream, tails[tail].tail, tails[tail].size);
        struct trial t = try_stream(&tsr_node_uncompressed, &image, stream.bytes, stream.size);
        expect(t.status == TSR_OK && t.is_exact, "case %d: %s", i, t.error.text);
        expect(memcmp(t.raster, stream.bytes, size - 1) == 0 && t.raster[size - 1] == (last & mask),
               "case %d: other samples", i);
        const bool is_usual =
            (last & ~mask) == 0 && tails[tail].size == size % 2 && (tails[tail].size == 0 || tails[tail].tail[0] == 0);
        expect((t.residue.size == 0) == is_usual, "case %d: a residue of %zu bytes", i, t.residue.size);
        end_trial(&t);
    }
}

TEST(short_streams_are_refused)
{
    static struct text stream;
    const struct tsr_image image = image_of(5, 7, 3, 16, false);
    struct rng r = {92};
    stream.size = 0;
    put_noise(&stream, raster_bytes(&image) - 1, &r);
    expect_refused(&tsr_node_uncompressed, &image, &stream, "it has 209 bytes of samples, not 210");
    stream.size = 0;
    expect_refused(&tsr_node_uncompressed, &image, &stream, "it has 0 bytes of samples, not 210");
}

/* A residue says no more spare bits than there are. */
TEST(residues)
{
    static const struct {
        uint32_t columns;
        int bits;
        uint8_t spare;
        bool is_good;
    } cases[] = {{3, 1, 31, true}, {3, 1, 32, false}, {8, 1, 0, true},
                 {8, 1, 1, false}, {3, 8, 0, true},   {3, 8, 1, false}};
    const uint8_t raster[3] = {5, 6, 7};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct tsr_image image = image_of(cases[i].columns, 1, 1, cases[i].bits, false);
        const uint8_t residue[] = {cases[i].spare, 'a', 'b'};
        struct tsr_bytes stream = {.limit = 100};
        const enum tsr_status status =
            tsr_node_join(&tsr_node_uncompressed, &image, raster, residue, sizeof residue, &stream, NULL);
        expect(status == (cases[i].is_good ? TSR_OK : TSR_ERROR_CORRUPT), "case %zu: %s", i, tsr_status_name(status));
        expect(!cases[i].is_good || stream.size == raster_bytes(&image) + 2, "case %zu: %zu bytes", i, stream.size);
        tsr_bytes_free(&stream);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(frames_come_back), cmocka_unit_test(short_streams_are_refused),
                                       cmocka_unit_test(residues)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
