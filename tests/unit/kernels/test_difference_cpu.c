/* kernels/measure/difference_cpu.h: the sums of all forms against sums that are made here, bit by bit, over all
 * layouts; weights; counts of values. */
#include "tests/unit/images.h"

#include "kernels/measure/difference_cpu.h"

static bool is_inside(const struct tsr_value_range *ranges, uint32_t count, int64_t value)
{
    for (uint32_t i = 0; i < count; i++)
        if (ranges[i].low <= value && value <= ranges[i].high) return true;
    return false;
}

static uint64_t added(uint64_t sum, uint64_t more)
{
    return sum + more < sum ? UINT64_MAX : sum + more;
}

static void add_plainly(const struct tsr_image *image, const struct tsr_measured *what, const uint8_t *a,
                        const uint8_t *b, size_t first, size_t count, struct tsr_difference *sum)
{
    for (size_t i = first; i < first + count; i++) {
        const int64_t original = get_value(image, a, i), d = original - get_value(image, b, i);
        const uint64_t magnitude = (uint64_t)(d < 0 ? -d : d);
        if (magnitude > sum->max_error) sum->max_error = (uint32_t)magnitude;
        if (is_inside(what->kept_range, what->kept, original)) continue;
        sum->samples++;
        sum->squared_error = added(sum->squared_error, magnitude * magnitude);
        for (uint32_t w = 0; w < what->windows; w++)
            if (is_inside(&what->window[w], 1, original)) {
                sum->window[w].samples++;
                if (magnitude > sum->window[w].max_error) sum->window[w].max_error = (uint32_t)magnitude;
                sum->window[w].squared_error = added(sum->window[w].squared_error, magnitude * magnitude);
            }
    }
}

static void expect_equal(const struct tsr_difference *is, const struct tsr_difference *wanted, int n)
{
    expect(is->max_error == wanted->max_error, "case %d: %u, %u", n, is->max_error, wanted->max_error);
    expect(is->samples == wanted->samples, "case %d", n);
    expect(is->squared_error == wanted->squared_error, "case %d", n);
    for (int w = 0; w < TSR_MEASURED_WINDOWS; w++) {
        expect(is->window[w].max_error == wanted->window[w].max_error, "case %d, window %d", n, w);
        expect(is->window[w].samples == wanted->window[w].samples, "case %d, window %d", n, w);
        expect(is->window[w].squared_error == wanted->window[w].squared_error, "case %d, window %d", n, w);
    }
}

/* Ranges around values of the image, at the ends of all values, beyond them, of one value, and empty ones. */
static struct tsr_value_range random_range(struct rng *r, const struct tsr_image *image, const uint8_t *raster)
{
    static const int32_t ends[] = {INT32_MIN, -65536, -32769, -32768, -1,    0,     1,     127,
                                   128,       255,    256,    32767,  32768, 65535, 65536, INT32_MAX};
    const size_t words = (size_t)image->columns * image->rows * image->components;
    const int64_t here = get_value(image, raster, rng_below(r, (uint32_t)words)),
                  wide = rng_width(r, image->bits_stored > 16 ? 16 : image->bits_stored);
    struct tsr_value_range range = {(int32_t)clamp_to(here - wide, INT32_MIN, INT32_MAX),
                                    (int32_t)clamp_to(here + wide / 2, INT32_MIN, INT32_MAX)};
    if (rng_below(r, 4) == 0) range.low = ends[rng_below(r, COUNT_OF(ends))];
    if (rng_below(r, 4) == 0) range.high = ends[rng_below(r, COUNT_OF(ends))];
    return range;
}

static struct tsr_measured random_what(struct rng *r, const struct tsr_image *image, const uint8_t *raster)
{
    struct tsr_measured what = {.weight = TSR_WHOLE_WEIGHT};
    what.windows = rng_below(r, TSR_MEASURED_WINDOWS + 1);
    what.kept = rng_below(r, 2) ? rng_below(r, TSR_KEPT_RANGES + 1) : 0;
    for (int i = 0; i < TSR_MEASURED_WINDOWS; i++) what.window[i] = random_range(r, image, raster);
    for (int i = 0; i < TSR_KEPT_RANGES; i++) what.kept_range[i] = random_range(r, image, raster);
    if (what.kept > 0 && what.windows > 0 && rng_below(r, 3) == 0) what.kept_range[0] = what.window[0];
    return what;
}

/* Small differences in most words, in some places larger ones or any, which few blocks have. */
static void disturb(struct rng *r, const struct tsr_image *image, const uint8_t *a, uint8_t *b)
{
    const size_t words = (size_t)image->columns * image->rows * image->components;
    const uint32_t kind = rng_below(r, 5), rare = 1 + rng_below(r, 4000);
    memcpy(b, a, raster_bytes(image));
    for (size_t i = 0; i < words && kind > 0; i++) {
        uint32_t word = get_word(image, a, i);
        if (kind == 1 || kind == 2) word += rng_below(r, 1u << (kind == 1 ? 3 : 13)) - (1u << (kind == 1 ? 2 : 12));
        if (kind > 2 && rng_below(r, kind == 3 ? rare : 1) == 0) word = (uint32_t)rng_next(r);
        put_word(image, b, i, word);
    }
}

TEST(forms_are_the_definition)
{
    struct rng r = {201};
    for (int n = 0; n < 1200; n++) {
        const struct tsr_image image = random_image(&r, n % 40 ? 40 : 120);
        const size_t words = (size_t)image.columns * image.rows * image.components, bytes = raster_bytes(&image);
        uint8_t *a = must(malloc(bytes)), *b = must(malloc(bytes)); /* a sanitizer reports use outside them */
        fill_raster(&r, &image, n % CONTENTS, a);
        disturb(&r, &image, a, b);
        const struct tsr_measured what = random_what(&r, &image, a);
        const size_t first = n % 3 ? 0 : rng_below(&r, (uint32_t)words),
                     count = n % 3 ? words : rng_below(&r, (uint32_t)(words - first)) + 1;
        const struct tsr_difference before = {.max_error = rng_below(&r, 300),
                                              .squared_error = n % 7 ? 12345 : UINT64_MAX - rng_width(&r, 30),
                                              .samples = 9};
        struct tsr_difference wanted = before;
        add_plainly(&image, &what, a, b, first, count, &wanted);
        for (int isa = TSR_ISA_PLAIN; isa <= (int)tsr_best_isa(); isa++) {
            struct tsr_difference sum = before;
            tsr_add_words((enum tsr_isa)isa, &image, &what, a, b, first, count, &sum);
            expect_equal(&sum, &wanted, n);
        }
        free(a);
        free(b);
    }
}

/* Every value of 16 bits as an original, at every place of a vector. All samples differ by the same: by what lanes of
 * 32 bits just hold the squares of, by 1 more, by the most; upwards where that is a value, too, else downwards. */
TEST(every_value)
{
    static uint16_t original[65536 + 64], decoded[65536 + 64];
    static const uint16_t shifts[] = {0, 1, TSR_SMALL_DIFFERENCE, TSR_SMALL_DIFFERENCE + 1, 32767, 32768, 65535};
    struct rng r = {202};
    for (int n = 0; n < 84; n++) {
        struct tsr_image image = plain_image(65536 / 8, 8, 1, 16);
        const uint32_t from = rng_below(&r, 64);
        image.is_signed = n % 2;
        image.big_endian = n % 3 == 0;
        const uint32_t shift = shifts[n / 2 % (int)COUNT_OF(shifts)], sign = image.is_signed ? 0x8000 : 0;
        for (size_t i = 0; i < COUNT_OF(original); i++) {
            const uint32_t v = i * 40503 % 65536, other = v + shift < 65536 ? v + shift : v - shift;
            put_word(&image, (uint8_t *)original, i, v ^ sign);
            put_word(&image, (uint8_t *)decoded, i, other % 65536 ^ sign);
        }
        const uint8_t *a = (const uint8_t *)(original + from), *b = (const uint8_t *)(decoded + from);
        const struct tsr_measured what = random_what(&r, &image, a);
        struct tsr_difference wanted = {0};
        add_plainly(&image, &what, a, b, 0, 65536, &wanted);
        for (int isa = TSR_ISA_PLAIN; isa <= (int)tsr_best_isa(); isa++) {
            struct tsr_difference sum = {0};
            tsr_add_words((enum tsr_isa)isa, &image, &what, a, b, 0, 65536, &sum);
            expect_equal(&sum, &wanted, n);
        }
    }
}

/* Frames that differ nowhere, with all forms' shortcuts; frames in two parts; NULL; and the sums of frames. */
TEST(frames)
{
    struct rng r = {203};
    for (int n = 0; n < 300; n++) {
        const struct tsr_image image = random_image(&r, 60);
        const size_t words = (size_t)image.columns * image.rows * image.components, bytes = raster_bytes(&image);
        uint8_t *a = must(malloc(bytes)), *b = must(malloc(bytes));
        struct tsr_difference sum = {0}, wanted = {0};
        for (int frame = 0; frame < 3; frame++) {
            fill_raster(&r, &image, n % CONTENTS, a);
            disturb(&r, &image, a, b);
            struct tsr_measured what = n % 4 ? random_what(&r, &image, a) : tsr_measure_all;
            struct tsr_difference here = {0};
            what.weight = n % 2 ? rng_below(&r, TSR_WHOLE_WEIGHT + 1) : TSR_WHOLE_WEIGHT;
            for (int w = 0; w < TSR_MEASURED_WINDOWS && n % 2; w++)
                what.window_weight[w] = rng_below(&r, TSR_WHOLE_WEIGHT + 1);
            add_plainly(&image, &what, a, b, 0, words, &here);
            wanted.max_error = here.max_error > wanted.max_error ? here.max_error : wanted.max_error;
            wanted.samples += here.samples;
            wanted.squared_error = added(wanted.squared_error, tsr_weigh_squares(here.squared_error, what.weight));
            for (int w = 0; w < TSR_MEASURED_WINDOWS; w++) {
                if (here.window[w].max_error > wanted.window[w].max_error)
                    wanted.window[w].max_error = here.window[w].max_error;
                wanted.window[w].samples += here.window[w].samples;
                const uint32_t weight = what.window_weight[w] ? what.window_weight[w] : TSR_WHOLE_WEIGHT;
                const uint64_t squares = tsr_weigh_squares(here.window[w].squared_error, weight);
                wanted.window[w].squared_error = added(wanted.window[w].squared_error, squares);
            }
            tsr_add_difference(&image, n % 8 ? &what : NULL, a, b, &sum);
        }
        expect_equal(&sum, &wanted, n);
        free(a);
        free(b);
    }
}

/* sum x weight^2 / 2^32, by parts of 16 bits on paper. */
TEST(weights)
{
    assert_true(tsr_weigh_squares(UINT64_MAX, TSR_WHOLE_WEIGHT) == UINT64_MAX);
    assert_true(tsr_weigh_squares(UINT64_MAX, 0) == 0);
    assert_true(tsr_weigh_squares(12345, TSR_WHOLE_WEIGHT) == 12345);
    assert_true(tsr_weigh_squares(10, 32768) == 3); /* 2.5 */
    assert_true(tsr_weigh_squares(9, 32768) == 2);  /* 2.25 */
    assert_true(tsr_weigh_squares(UINT64_MAX, 32768) == (uint64_t)1 << 62);
    assert_true(tsr_weigh_squares(1, 46340) == 0); /* 46341^2 is above 2^31, 46340^2 is below */
    assert_true(tsr_weigh_squares(1, 46341) == 1);
    struct rng r = {204};
    for (int n = 0; n < 20000; n++) {
        const uint64_t sum = rng_next(&r) >> rng_below(&r, 64);
        const uint32_t weight = rng_below(&r, TSR_WHOLE_WEIGHT + 1);
        const uint64_t square = (uint64_t)weight * weight;
        uint64_t low = 0, high = 0; /* the product: high x 2^64 + low */
        for (int bit = 0; bit < 33; bit++)
            if (square >> bit & 1) {
                const uint64_t part = sum << bit;
                high += (bit > 0 ? sum >> (64 - bit) : 0) + (low + part < low);
                low += part;
            }
        high += low + ((uint64_t)1 << 31) < low;
        low += (uint64_t)1 << 31;
        assert_true(tsr_weigh_squares(sum, weight) == (high << 32 | low >> 32));
    }
}

TEST(counts_of_values)
{
    static uint64_t counts[TSR_VALUE_COUNTS], wanted[TSR_VALUE_COUNTS];
    struct rng r = {205};
    for (int n = 0; n < 300; n++) {
        const struct tsr_image image = random_image(&r, 60);
        if (image.bits_allocated > 16) continue;
        const size_t words = (size_t)image.columns * image.rows * image.components, bytes = raster_bytes(&image);
        const int64_t least = image.is_signed ? -((int64_t)1 << (image.bits_stored - 1)) : 0;
        uint8_t *a = must(malloc(bytes));
        memset(counts, 0, sizeof counts);
        memset(wanted, 0, sizeof wanted);
        for (int frame = 0; frame < 2; frame++) {
            fill_raster(&r, &image, n % CONTENTS, a);
            for (size_t i = 0; i < words; i++) wanted[get_value(&image, a, i) - least]++;
            tsr_count_values(&image, a, counts);
        }
        assert_memory_equal(counts, wanted, sizeof counts);
        free(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(forms_are_the_definition), cmocka_unit_test(every_value),
                                       cmocka_unit_test(frames), cmocka_unit_test(weights),
                                       cmocka_unit_test(counts_of_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
