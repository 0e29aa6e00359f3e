/* app/library/loss: limits of the error and ranges of values as numbers, and where the error is.
 * (tests/cli/test_targets.sh tests that targets are met.) */
#include "tests/unit/images.h"

#include <math.h>

#include "app/library/flow.h"
#include "app/library/loss/measure.h"
#include "app/library/loss/range.h"
#include "io/cipher/cipher.h"

static struct tsr_image some_image(int bits, uint32_t columns, uint32_t rows, uint32_t frames)
{
    struct tsr_image image = plain_image(columns, rows, 1, bits);
    image.frames = frames;
    return image;
}

TEST(limits_of_the_squared_error)
{
    struct rng r = {92};
    for (int n = 0; n < 20000; n++) {
        const struct tsr_image image = some_image(rng_between(&r, 2, 16), 1 + rng_below(&r, 65535),
                                                  1 + rng_below(&r, 2000), 1 + rng_below(&r, n % 2 ? 1 : 3000));
        const uint64_t samples = (uint64_t)image.columns * image.rows * image.frames;
        const uint32_t psnr = 100 + rng_below(&r, 19900);
        const uint32_t range = 1 + rng_below(&r, (1u << image.bits_stored) - 1);
        const uint64_t limit = tsr_squared_error_limit(range, samples, psnr);
        if (limit == UINT64_MAX) continue;
        if (limit > 0)
            expect(tsr_psnr_db(range, samples, limit) >= psnr / 100.0, "%u/100 dB: limit %llu", psnr,
                   (unsigned long long)limit);
        if (limit < 100000000) /* and limit + 2 misses the target */
            expect(tsr_psnr_db(range, samples, limit + 2) < psnr / 100.0, "%u/100 dB: limit %llu", psnr,
                   (unsigned long long)limit);
        else
            expect(tsr_psnr_db(range, samples, limit) < psnr / 100.0 + 1e-6, "%u/100 dB: limit %llu", psnr,
                   (unsigned long long)limit);
    }
    /* By hand: 20 dB at 8 bits are a hundredth of 255^2. */
    assert_in_range(tsr_squared_error_limit(255, 100, 2000), 65024, 65025);
}

TEST(limits_of_the_size)
{
    struct tsr_wanted wanted = {.target = TSR_TARGET_NONE};
    assert_true(tsr_size_limit(&wanted, 1000) == UINT64_MAX);
    wanted.target = TSR_TARGET_BYTES;
    wanted.target_value = 12345;
    assert_int_equal(tsr_size_limit(&wanted, 1000), 12345);
    wanted.target = TSR_TARGET_RATIO;
    wanted.target_value = 3000;
    assert_int_equal(tsr_size_limit(&wanted, 1000), 333);
    wanted.target_value = 2500;
    assert_int_equal(tsr_size_limit(&wanted, (uint64_t)1 << 60), ((uint64_t)1 << 60) / 2500 * 1000 + 790);
    wanted.target = TSR_TARGET_BYTES; /* what is encrypted has a head and tags besides */
    wanted.key = (struct tsr_key *)(uintptr_t)1;
    for (uint64_t bytes = 100; bytes < 100000; bytes += 333) {
        wanted.target_value = bytes;
        const uint64_t plain = tsr_size_limit(&wanted, 1000);
        expect(tsr_sealed_size(plain) <= bytes && tsr_sealed_size(plain + 1) > bytes, "%llu bytes: %llu plain ones",
               (unsigned long long)bytes, (unsigned long long)plain);
    }
}

/* The same profile, a sample at a time. */
static void add_profile_plainly(const struct tsr_image *image, const struct tsr_measured *what, uint32_t frame,
                                const uint8_t *a, const uint8_t *b, uint64_t profile[TSR_PROFILE_PARTS])
{
    const uint64_t of_frame = tsr_frame_blocks(image), blocks = image->frames * of_frame;
    for (size_t i = 0; i < (size_t)image->columns * image->rows; i++)
        for (int c = 0; c < image->components; c++) {
            const size_t at = word_place(image, c, i), x = i % image->columns, y = i / image->columns;
            const uint64_t block = frame * of_frame + y / 4 * ((image->columns + 3) / 4) + x / 4;
            struct tsr_difference sum = {0};
            tsr_add_sample_difference(what ? what : &tsr_measure_all, tsr_raster_value(image, a, at),
                                      tsr_raster_value(image, b, at), &sum);
            profile[tsr_profile_part(blocks, block)] += sum.squared_error;
        }
}

/* The parts of the profile hold the whole error, in the order of the blocks. */
TEST(profile_of_the_error)
{
    struct rng r = {93};
    static uint64_t profile[TSR_PROFILE_PARTS], plain[TSR_PROFILE_PARTS];
    const struct tsr_measured kept = {.kept = 1, .kept_range = {{-10, 30}}, .weight = TSR_WHOLE_WEIGHT};
    for (int n = 0; n < 60; n++) {
        struct tsr_image image = random_image(&r, n % 10 ? 40 : 400);
        if (image.bits_allocated == 32) continue;
        image.frames = n % 3 ? 3 : 3000; /* the first three of them: a row of blocks in one part */
        const size_t bytes = raster_bytes(&image);
        const struct tsr_measured *what = n % 2 ? &kept : NULL;
        uint8_t *a = must(malloc(bytes)), *b = must(malloc(bytes));
        struct tsr_difference all = {0};
        memset(profile, 0, sizeof profile);
        memset(plain, 0, sizeof plain);
        for (uint32_t frame = 0; frame < 3; frame++) {
            fill_raster(&r, &image, 5, a);
            memcpy(b, a, bytes);
            for (int k = 0; k < 10; k++) b[rng_below(&r, (uint32_t)bytes)] ^= (uint8_t)rng_next(&r);
            tsr_add_difference(&image, what, a, b, &all);
            tsr_add_error_profile(&image, what, frame, a, b, profile);
            add_profile_plainly(&image, what, frame, a, b, plain);
        }
        uint64_t sum = 0;
        for (int p = 0; p < TSR_PROFILE_PARTS; p++) sum += profile[p];
        assert_true(sum == all.squared_error);
        assert_memory_equal(profile, plain, sizeof profile);
        free(a);
        free(b);
    }
    /* One sample in the last block of frame 1. */
    const struct tsr_image image = some_image(8, 10, 6, 2);
    uint8_t a[60] = {0}, b[60] = {0};
    b[59] = 7;
    memset(profile, 0, sizeof profile);
    tsr_add_error_profile(&image, NULL, 1, a, b, profile);
    assert_int_equal(tsr_frame_blocks(&image), 6);
    assert_int_equal(profile[tsr_profile_part(12, 11)], 49);
    for (uint32_t p = 0; p < TSR_PROFILE_PARTS; p++) assert_true(p == tsr_profile_part(12, 11) || profile[p] == 0);
}

/* The range: without one sample of 10,000 at either end, at least 255. */
TEST(ranges_of_values)
{
    struct tsr_value_counts *const c = must(calloc(1, sizeof *c));
    assert_int_equal(tsr_range_of_counts(c, 4095), 4095); /* of nothing */
    c->samples = 9999;
    c->count[100] = 9998;
    c->count[831] = 1;
    assert_int_equal(tsr_range_of_counts(c, 4095), 731);
    c->count[100] = 0;
    c->count[831] = 9999;
    assert_int_equal(tsr_range_of_counts(c, 4095), 255); /* one value */
    /* 20,000 samples: two of them count at neither end, three do. */
    c->samples = 20000;
    c->count[0] = 2;
    c->count[100] = 9998;
    c->count[831] = 9998;
    c->count[4095] = 2;
    assert_int_equal(tsr_range_of_counts(c, 4095), 731);
    c->count[4095] = 3;
    c->count[831] = 9997;
    assert_int_equal(tsr_range_of_counts(c, 4095), 3995);
    /* Halves at both ends of all that 16 bits hold. */
    memset(c, 0, sizeof *c);
    c->samples = 65536;
    c->count[0] = c->count[65535] = 32768;
    assert_int_equal(tsr_range_of_counts(c, 65535), 65535);
    free(c);
}

/* A background: the lowest value, 1/16 of the samples, and 1/32 of the range of the others below them. */
TEST(backgrounds)
{
    struct tsr_value_counts *const c = must(calloc(1, sizeof *c));
    uint32_t value = 77;
    assert_false(tsr_find_background(c, 65535, &value)); /* of nothing */
    c->samples = 16000;
    c->count[48] = 1000;
    c->count[1000] = c->count[4199] = 7500; /* a range of 3199 */
    assert_true(tsr_find_background(c, 65535, &value));
    assert_int_equal(value, 48);
    assert_true(c->samples == 16000 && c->count[48] == 1000);
    c->count[48] = 999;
    c->count[1000] = 7501;
    assert_false(tsr_find_background(c, 65535, &value)); /* too few */
    c->count[48] = 1000;
    c->count[1000] = 7499;
    c->count[146] = 1; /* 98 above, 99 are 1/32 */
    assert_false(tsr_find_background(c, 65535, &value));
    c->count[146] = 0;
    c->count[148] = 1;
    assert_true(tsr_find_background(c, 65535, &value));
    memset(c, 0, sizeof *c);
    c->samples = c->count[9] = 100;
    assert_false(tsr_find_background(c, 65535, &value)); /* one value alone */
    free(c);
}

/* QP by the range and QP by the bits: the same where the range is whole; an octave of the range is 6 QPs; and back. */
TEST(qps_of_ranges)
{
    struct tsr_header header = {.image = some_image(8, 4, 4, 1)};
    struct tsr_image *const image = &header.image;
    for (int bits = 2; bits <= 16; bits++) {
        *image = some_image(bits, 4, 4, 1);
        for (int32_t qp = tsr_lowest_qp(bits); qp <= TSR_HIGHEST_QP; qp++)
            assert_int_equal(tsr_qp_of_samples(image, tsr_whole_range(image), qp), qp);
    }
    assert_int_equal(tsr_qp_of_samples(image, 65535 / 2, 160), 160 - 48);
    assert_int_equal(tsr_qp_of_samples(image, 255, 160), 160 - 8 * 48);
    assert_int_equal(tsr_qp_of_samples(image, 255, -1), tsr_lowest_qp(16)); /* finer than 0.63 */
    for (uint32_t range = 255; range < 65536; range += 101)
        for (int32_t qp = 0; qp <= TSR_HIGHEST_QP; qp += 51) {
            header.range = range;
            header.coding.qp_eighths = tsr_qp_of_samples(image, range, qp);
            assert_int_equal(tsr_qp_of_range(&header), qp);
        }
}

/* Defaults that stand for an effort's choice, and codings that are refused. */
TEST(resolved_codings)
{
    struct tsr_error error;
    struct tsr_coding coding = {.coder = TSR_CODER_BY_EFFORT};
    assert_int_equal(tsr_resolve_coding(&coding, &error), TSR_OK);
    assert_int_equal(coding.effort, TSR_EFFORT_DEFAULT);
    for (int path = 0; path < 2; path++)
        for (int effort = 1; effort <= 9; effort++) {
            coding = (struct tsr_coding){
                .path = path ? TSR_PATH_TRANSFORM : TSR_PATH_PREDICT, .coder = TSR_CODER_BY_EFFORT, .effort = effort};
            assert_int_equal(tsr_resolve_coding(&coding, &error), TSR_OK);
            assert_int_equal(coding.effort, effort);
            assert_in_range(coding.coder, TSR_CODER_HUFFMAN, TSR_CODER_RANS);
            coding.coder = TSR_CODER_CAVLC; /* a coder that was asked for stays */
            assert_int_equal(tsr_resolve_coding(&coding, &error), TSR_OK);
            assert_int_equal(coding.coder, TSR_CODER_CAVLC);
        }
    coding.effort = 10;
    assert_int_equal(tsr_resolve_coding(&coding, &error), TSR_ERROR_USAGE);
    coding.effort = -1;
    assert_int_equal(tsr_resolve_coding(&coding, NULL), TSR_ERROR_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(limits_of_the_squared_error),
                                       cmocka_unit_test(limits_of_the_size),
                                       cmocka_unit_test(profile_of_the_error),
                                       cmocka_unit_test(ranges_of_values),
                                       cmocka_unit_test(backgrounds),

                                       cmocka_unit_test(qps_of_ranges),
                                       cmocka_unit_test(resolved_codings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
