/* entropy/bits.h: strings of bits, Exp-Golomb codes, ends and overruns. GROUND.md 3. */
#include "tests/unit/support.h"

#include "entropy/bits.h"

enum { STRING_BYTES = 4096 };

/* A string of bits, one array element a bit. */
struct plain_string {
    uint8_t bit[8 * STRING_BYTES];
    size_t count;
};

static void append(struct plain_string *s, uint32_t value, int count)
{
    for (int i = count - 1; i >= 0; i--) s->bit[s->count++] = value >> i & 1u;
}

static void check_bytes(const struct plain_string *s, const uint8_t *bytes, size_t size)
{
    assert_int_equal(size, (s->count + 7) / 8);
    for (size_t i = 0; i < 8 * size; i++)
        assert_int_equal(bytes[i / 8] >> (7 - i % 8) & 1, i < s->count ? s->bit[i] : 0);
}

TEST(every_width)
{
    static struct plain_string plain;
    static uint8_t bytes[STRING_BYTES];
    static uint32_t values[2000];
    static int widths[2000];
    struct rng r = {15};
    for (int n = 0; n < 300; n++) {
        const int count = rng_between(&r, 0, 900);
        struct tsr_bit_writer w = tsr_bit_writer(bytes, sizeof bytes);
        plain.count = 0;
        for (int i = 0; i < count; i++) {
            widths[i] = n < 33 ? n : rng_between(&r, 0, 32);
            values[i] = (uint32_t)rng_next(&r); /* bits above the width are not written */
            tsr_put_bits(&w, values[i], widths[i]);
            append(&plain, values[i], widths[i]);
        }
        const size_t size = tsr_flush_bits(&w);
        assert_false(w.overflow);
        check_bytes(&plain, bytes, size);

        struct tsr_bit_reader reader = tsr_bit_reader(bytes, size);
        size_t at = 0;
        for (int i = 0; i < count; i++) {
            const uint32_t expected = widths[i] == 32 ? values[i] : values[i] & ((1u << widths[i]) - 1u);
            if (widths[i] > 0) assert_int_equal(tsr_peek_bits(&reader, widths[i]), expected);
            assert_int_equal(tsr_get_bits(&reader, widths[i]), expected);
            at += (size_t)widths[i];
            assert_int_equal(tsr_bits_read(&reader), at);
            if (plain.count - at >= 8) assert_false(tsr_bits_ended(&reader));
        }
        assert_true(tsr_bits_ended(&reader));
    }
}

/* The writer never writes past its capacity. It reports an overflow exactly when the bits do not fit. */
TEST(capacity)
{
    uint8_t bytes[80];
    struct rng r = {16};
    for (int n = 0; n < 5000; n++) {
        const size_t capacity = rng_below(&r, 70);
        struct tsr_bit_writer w = tsr_bit_writer(bytes, capacity);
        size_t bits = 0;
        memset(bytes, 0xa5, sizeof bytes);
        for (const size_t goal = rng_below(&r, 600); bits < goal;) {
            const int width = rng_between(&r, 1, 32);
            tsr_put_bits(&w, 0xffffffffu, width);
            bits += (size_t)width;
        }
        const size_t size = tsr_flush_bits(&w);
        assert_true(size <= capacity);
        assert_int_equal(w.overflow, (bits + 7) / 8 > capacity);
        for (size_t i = capacity; i < sizeof bytes; i++) assert_int_equal(bytes[i], 0xa5);
    }
}

/* After its end a string reads as zeros. Reading there is reported as an overrun; peeking is not. */
TEST(overrun)
{
    struct rng r = {17};
    for (size_t size = 0; size < 20; size++) {
        uint8_t *bytes = must(malloc(size + !size)); /* of the exact size: a sanitizer reports reads past it */
        memset(bytes, 0xff, size);
        for (int n = 0; n < 200; n++) {
            struct tsr_bit_reader reader = tsr_bit_reader(bytes, size);
            size_t left = 8 * size;
            for (;;) {
                const int width = rng_between(&r, 1, 32);
                const uint32_t ones = width == 32 ? UINT32_MAX : (1u << width) - 1u;
                if ((size_t)width > left) {
                    assert_int_equal(tsr_peek_bits(&reader, width), ones - (ones >> left));
                    assert_false(reader.overrun);
                    tsr_get_bits(&reader, width);
                    assert_true(reader.overrun);
                    assert_false(tsr_bits_ended(&reader));
                    assert_int_equal(tsr_get_bits(&reader, 32), 0);
                    break;
                }
                assert_int_equal(tsr_get_bits(&reader, width), ones);
                assert_false(reader.overrun);
                left -= (size_t)width;
            }
        }
        free(bytes);
    }
}

TEST(ends)
{
    static const struct {
        uint8_t bytes[3];
        size_t size;
        int read;
        bool ended;
    } cases[] = {
        {{0}, 0, 0, true},           {{0}, 1, 0, false},
        {{0}, 1, 1, true},           {{0xe0}, 1, 3, true},
        {{0xe1}, 1, 3, false},       {{0xe1}, 1, 8, true},
        {{0xff, 0}, 2, 8, false},    {{0xff, 0x80}, 2, 9, true},
        {{0xff, 0x81}, 2, 9, false}, {{0xff, 0x80, 0}, 3, 9, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct tsr_bit_reader reader = tsr_bit_reader(cases[i].bytes, cases[i].size);
        tsr_get_bits(&reader, cases[i].read);
        expect(tsr_bits_ended(&reader) == cases[i].ended, "case %zu", i);
    }
}

static void check_ue(uint32_t value)
{
    static struct plain_string plain;
    uint8_t bytes[16];
    struct tsr_bit_writer w = tsr_bit_writer(bytes, sizeof bytes);
    tsr_put_ue(&w, value);
    const size_t size = tsr_flush_bits(&w);
    const int zeros = plain_width((uint64_t)value + 1) - 1;
    plain.count = 0;
    append(&plain, 0, zeros);
    append(&plain, 1, 1);
    append(&plain, (uint32_t)((uint64_t)value + 1 - ((uint64_t)1 << zeros)), zeros);
    check_bytes(&plain, bytes, size);
    struct tsr_bit_reader reader = tsr_bit_reader(bytes, size);
    assert_int_equal(tsr_get_ue(&reader), value);
    assert_int_equal(tsr_bits_read(&reader), 2 * zeros + 1);
    assert_true(tsr_bits_ended(&reader));
    for (size_t cut = 0; cut < size; cut++) { /* a code that is cut off is reported */
        reader = tsr_bit_reader(bytes, cut);
        tsr_get_ue(&reader);
        assert_true(reader.overrun);
    }
}

TEST(exp_golomb)
{
    struct rng r = {18};
    for (uint32_t v = 0; v < 5000; v++) check_ue(v);
    for (int k = 2; k < 32; k++)
        for (uint32_t d = 0; d < 5; d++) check_ue((1u << k) - 3u + d);
    check_ue(UINT32_MAX - 1);
    for (int n = 0; n < 5000; n++) check_ue(rng_width(&r, 31));
}

TEST(exp_golomb_of_32_zeros)
{
    static const uint8_t bytes[] = {0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff};
    struct tsr_bit_reader reader = tsr_bit_reader(bytes, sizeof bytes);
    tsr_get_ue(&reader);
    assert_true(reader.overrun);
}

/* Unchecked reading between two fills, to the end and past it. */
TEST(drops)
{
    static uint8_t bytes[64];
    struct rng r = {16};
    for (int n = 0; n < 5000; n++) {
        const size_t size = rng_below(&r, 40);
        for (size_t i = 0; i < size; i++) bytes[i] = (uint8_t)rng_next(&r);
        struct tsr_bit_reader checked = tsr_bit_reader(bytes, size), reader = checked;
        size_t at = 0;
        while (at < 8 * size + 60) {
            int room = 56;
            tsr_fill_window(&reader);
            while (room > 0) {
                const int count = rng_between(&r, 1, tsr_min(room, 32));
                const uint32_t got = (uint32_t)(reader.window >> (64 - count));
                tsr_drop_bits(&reader, count);
                at += (size_t)count;
                room -= count;
                if (at <= 8 * size) {
                    assert_int_equal(got, tsr_get_bits(&checked, count));
                    assert_int_equal(tsr_bits_read(&reader), at);
                }
                if (rng_below(&r, 4) == 0) break;
            }
            assert_int_equal(tsr_dropped_too_much(&reader), at > 8 * size);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(drops),
                                       cmocka_unit_test(every_width),
                                       cmocka_unit_test(capacity),
                                       cmocka_unit_test(overrun),
                                       cmocka_unit_test(ends),
                                       cmocka_unit_test(exp_golomb),
                                       cmocka_unit_test(exp_golomb_of_32_zeros)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
