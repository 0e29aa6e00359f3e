/* kernels/planes/colours_cpu.h and entropy/colour_model.h: packed colours. FORMAT.md 6.6. */
#include "tests/unit/support.h"

#include "kernels/planes/colours_cpu.h"

enum { COLUMNS = 90, ROWS = 70, COUNT = COLUMNS * ROWS };

static uint16_t plane[3][COUNT], before[3][COUNT];
static uint16_t *const planes[3] = {plane[0], plane[1], plane[2]};
static uint16_t lists[3][65536], lists_back[3][65536];
static struct tsr_colour_work work;
static uint8_t bytes[TSR_COLOUR_MODEL_LIMIT];

static struct tsr_colour_model room(uint16_t (*list)[65536])
{
    struct tsr_colour_model m = {0};
    for (int c = 0; c < 3; c++) m.list[c] = list[c];
    return m;
}

static size_t put(const struct tsr_colour_model *m)
{
    struct tsr_bit_writer w = tsr_bit_writer(bytes, sizeof bytes);
    tsr_put_colour_model(&w, m);
    const size_t size = tsr_flush_bits(&w);
    assert_false(w.overflow);
    return size;
}

static bool get(size_t size, int bits, struct tsr_colour_model *back)
{
    struct tsr_bit_reader r = tsr_bit_reader(bytes, size);
    *back = room(lists_back);
    return tsr_get_colour_model(&r, back, bits) && tsr_bits_ended(&r);
}

/* Packs, writes the description, reads it, and unpacks with it. */
static enum tsr_colour_packing round_trip(int bits)
{
    struct tsr_colour_model m = room(lists), back;
    memcpy(before, plane, sizeof plane);
    tsr_pack_colours(planes, COLUMNS, ROWS, bits, &m, &work);
    if (m.packing == TSR_COLOURS_PLAIN) assert_memory_equal(plane, before, sizeof plane);
    const int packed_bits = tsr_packed_colour_bits(&m, bits);
    assert_true(packed_bits <= bits);
    for (int c = 0; c < 3; c++)
        for (size_t i = 0; i < COUNT; i++) {
            assert_true(plane[c][i] >> packed_bits == 0);
            if (m.packing == TSR_COLOURS_PALETTE && c > 0) assert_int_equal(plane[c][i], 0);
        }
    assert_true(get(put(&m), bits, &back));
    assert_int_equal(back.packing, m.packing);
    for (int c = 0; c < 3 && m.packing != TSR_COLOURS_PLAIN; c++) {
        assert_int_equal(back.count[c], m.count[c]);
        assert_memory_equal(back.list[c], m.list[c], m.count[c] * sizeof(uint16_t));
    }
    tsr_unpack_colours(planes, COUNT, &back);
    assert_memory_equal(plane, before, sizeof plane);
    return m.packing;
}

/* A number that changes slowly over the plane. */
static uint32_t smooth(struct rng *r, size_t i, uint32_t values)
{
    return (uint32_t)(i % COLUMNS / 3 + i / COLUMNS / 2 + rng_below(r, 2)) % values;
}

TEST(packing)
{
    struct rng r = {91};
    for (int n = 0; n < 40; n++) {
        const int bits = n % 2 ? 16 : 8;
        const uint32_t values = 1u << bits, colours = 3 + rng_below(&r, 60);
        static uint16_t colour[3][64];
        for (uint32_t k = 0; k < colours;
             k++) /* few colours, whose neighbours in the list are often near each other in the plane */
            for (int c = 0; c < 3; c++) colour[c][k] = (uint16_t)rng_below(&r, values);
        for (size_t i = 0; i < COUNT; i++) {
            const uint32_t k = smooth(&r, i / 7 * 7, colours);
            for (int c = 0; c < 3; c++) plane[c][i] = colour[c][k];
        }
        assert_int_equal(round_trip(bits), TSR_COLOURS_PALETTE);
        for (size_t i = 0; i < COUNT; i++) { /* two components with steps of 8, one that is dense */
            const uint32_t v = smooth(&r, i, 32);
            plane[0][i] = (uint16_t)(8 * v);
            plane[1][i] = (uint16_t)(8 * ((v + rng_below(&r, 2)) % 32));
            plane[2][i] = (uint16_t)(v + rng_below(&r, values / 2));
        }
        assert_int_equal(round_trip(bits), TSR_COLOURS_BY_COMPONENT);
        for (size_t i = 0; i < COUNT; i++) /* a photograph: all values, many colours */
            for (int c = 0; c < 3; c++) plane[c][i] = (uint16_t)rng_below(&r, 256);
        assert_int_equal(round_trip(bits), TSR_COLOURS_PLAIN);
        for (size_t i = 0; i < COUNT; i++) /* greys: the colour transform leaves one plane as it is */
            plane[0][i] = plane[1][i] = plane[2][i] = (uint16_t)smooth(&r, i, 200);
        assert_int_equal(round_trip(bits), TSR_COLOURS_PLAIN);
    }
    memset(plane, 3, sizeof plane); /* one colour: all planes are constant already */
    for (size_t i = 0; i < COUNT; i++) plane[1][i] = 5;
    assert_int_equal(round_trip(16), TSR_COLOURS_PLAIN);
}

/* 1024 colours make a palette, 1025 do not. */
TEST(limit_of_palettes)
{
    struct rng r = {93};
    struct tsr_colour_model m = room(lists);
    for (uint32_t colours = 1024; colours <= 1025; colours++) {
        for (size_t i = 0; i < COUNT; i++) {
            const uint32_t k = (uint32_t)i < colours ? (uint32_t)i : rng_below(&r, colours);
            plane[0][i] = (uint16_t)(60 * (k % 7));
            plane[1][i] = (uint16_t)(k / 7 * 400);
            plane[2][i] = (uint16_t)(65535 - k * 31);
        }
        tsr_pack_colours(planes, COLUMNS, ROWS, 16, &m, &work);
        assert_int_equal(m.packing == TSR_COLOURS_PALETTE, colours == 1024);
    }
}

/* Sizes that are too small for the choice to compare samples. */
TEST(tiny_planes)
{
    for (uint32_t columns = 1; columns < 4; columns++)
        for (uint32_t rows = 1; rows < 4; rows++) {
            struct tsr_colour_model m = room(lists);
            for (size_t i = 0; i < COUNT; i++)
                for (size_t c = 0; c < 3; c++) plane[c][i] = (uint16_t)(i * (c + 1) % 2 * 200);
            memcpy(before, plane, sizeof plane);
            tsr_pack_colours(planes, columns, rows, 8, &m, &work);
            tsr_unpack_colours(planes, (size_t)columns * rows, &m);
            assert_memory_equal(plane, before, sizeof plane);
        }
}

/* Random palettes and lists come back. Those outside the values or the limits are refused. */
TEST(descriptions)
{
    struct rng r = {92};
    struct tsr_colour_model m = room(lists), back;
    for (int n = 0; n < 2000; n++) {
        const int bits = rng_between(&r, 1, 16);
        m.packing = n % 2 ? TSR_COLOURS_PALETTE : TSR_COLOURS_BY_COMPONENT;
        m.leading = (uint8_t)rng_below(&r, 3);
        if (m.packing == TSR_COLOURS_PALETTE) {
            const int other = m.leading == 0 ? 1 : 0, last = 3 - m.leading - other;
            uint32_t at = rng_below(&r, 5), count = 0; /* colours as rising numbers, some bits each */
            const int each = bits < 5 ? bits : 5;
            for (; count < TSR_PALETTE_LIMIT && at >> (3 * each) == 0; count++, at += 1 + rng_width(&r, 9)) {
                lists[m.leading][count] = (uint16_t)(at >> (2 * each) << (bits - each));
                lists[other][count] = (uint16_t)((at >> each) % (1u << each) << (bits - each));
                lists[last][count] = (uint16_t)(at % (1u << each) << (bits - each));
            }
            for (int c = 0; c < 3; c++) m.count[c] = count;
        } else {
            for (int c = 0; c < 3; c++) {
                m.count[c] = 0;
                for (uint32_t v = rng_below(&r, 2); v < 1u << bits && m.count[c] < 3000; v += 1 + rng_width(&r, 8))
                    lists[c][m.count[c]++] = (uint16_t)v;
            }
        }
        const size_t size = put(&m);
        assert_true(get(size, bits, &back));
        assert_int_equal(back.packing, m.packing);
        for (int c = 0; c < 3; c++) {
            assert_int_equal(back.count[c], m.count[c]);
            assert_memory_equal(back.list[c], m.list[c], m.count[c] * sizeof(uint16_t));
            const uint32_t last = m.count[c] - 1;
            assert_int_equal(tsr_listed_value(&back, c, last), m.list[c][last]);
            assert_int_equal(tsr_listed_value(&back, c, 65535),
                             m.list[c][last]); /* an index after the list gives its last value */
        }
        uint32_t most = 0;
        for (int c = 0; c < 3; c++)
            for (uint32_t i = 0; i < m.count[c]; i++) most = m.list[c][i] > most ? m.list[c][i] : most;
        if (most > 0) assert_false(get(size, plain_width(most) - 1, &back));
        assert_false(get(size / 2, bits, &back));
    }
    memset(bytes, 0xff, sizeof bytes); /* packing 3 */
    assert_false(get(sizeof bytes, 16, &back));
    struct tsr_bit_writer w = tsr_bit_writer(bytes, sizeof bytes);
    tsr_put_bits(&w, TSR_COLOURS_PALETTE, 2);
    tsr_put_bits(&w, 0, 2);
    tsr_put_ue(&w, TSR_PALETTE_LIMIT); /* one colour more than the limit */
    for (int i = 0; i <= TSR_PALETTE_LIMIT; i++)
        for (int c = 0; c < 3; c++) tsr_put_ue(&w, 0);
    assert_false(get(tsr_flush_bits(&w), 16, &back));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(packing), cmocka_unit_test(limit_of_palettes),
                                       cmocka_unit_test(tiny_planes), cmocka_unit_test(descriptions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
