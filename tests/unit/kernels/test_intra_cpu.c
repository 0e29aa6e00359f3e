/* kernels/blocks/intra_cpu.h: tiles there and back, and what restoring makes of any coefficients. INTRA.md. */
#include <math.h>

#include "tests/unit/support.h"

#include "kernels/blocks/intra_choice.h"
#include "kernels/blocks/blocks_cpu.h"
#include "kernels/blocks/intra_cpu.h"

enum { MOST = 70, STRIDE = MOST + 5, SAMPLES = STRIDE * (MOST + 1), SIDE = (MOST + 3) / 4 * 4, SQUARES = 25 };

static uint16_t samples[SAMPLES], back[SAMPLES];
static uint8_t classes[SQUARES + TSR_CLASSES_MORE], map[SIDE * SIDE / 16];
static int32_t coefficients[SIDE * SIDE];

static struct tsr_tile random_tile(struct rng *r)
{
    struct tsr_tile tile;
    tile.width = rng_below(r, 4) ? rng_between(r, 1, MOST) : rng_between(r, 1, 9);
    tile.height = rng_below(r, 4) ? rng_between(r, 1, MOST) : rng_between(r, 1, 9);
    tile.stride = (size_t)rng_between(r, tile.width, STRIDE);
    tile.first = rng_below(r, 4);
    return tile;
}

static struct tsr_block_steps random_steps(struct rng *r, int n, int32_t most)
{
    struct tsr_block_steps steps = {rng_between(r, 0, most), 0, SIZE_MAX, n % 4 < 2 ? classes : NULL, NULL, 0};
    for (size_t i = 0; i < sizeof classes; i++) classes[i] = (uint8_t)rng_below(r, TSR_STEP_CLASSES);
    if (n % 3 == 0) {
        steps.coarser_by = rng_between(r, 0, TSR_QP_INDEX_LIMIT - steps.q);
        steps.coarser_from = rng_below(r, SAMPLES);
    }
    return steps;
}

/* Noise, extremes, or slopes with noise. */
static void fill_samples(struct rng *r, uint32_t range, int n)
{
    for (size_t i = 0; i < SAMPLES; i++) {
        const uint32_t slope =
            (uint32_t)(i % STRIDE * (range - 1) / (2 * STRIDE) + i / STRIDE * (range - 1) / (2 * STRIDE));
        samples[i] = (uint16_t)(n % 3 == 0 ? rng_below(r, range) : n % 3 == 1 ? rng_below(r, 2) * (range - 1) : slope);
    }
}

static void *scratch_of(struct tsr_tile tile)
{
    return must(malloc(tsr_intra_scratch_bytes(tile.width, tile.height)));
}

/* The decoder restores what the encoder saw, with errors that the steps allow, and touches nothing else. */
TEST(there_and_back)
{
    struct rng r = {431};
    for (int n = 0; n < 500; n++) {
        const struct tsr_tile tile = random_tile(&r);
        const struct tsr_block_grid grid = tsr_block_grid(tile.width, tile.height, 1);
        const uint32_t range = n % 2 ? 256 : 65536;
        struct tsr_block_steps steps = random_steps(&r, n, n % 2 ? 300 : TSR_QP_INDEX_LIMIT);
        if (n % 3 == 0) steps.coarser_by = tsr_min(steps.coarser_by, 16);
        uint16_t *scratch = scratch_of(tile);
        fill_samples(&r, range, n);
        const uint64_t cost =
            tsr_intra_forward(samples, tile, steps, range, TSR_RATE_LAMBDA, coefficients, map, scratch);
        uint16_t *seen = must(malloc(sizeof *seen * 16 * (size_t)grid.columns * (size_t)grid.rows));
        memcpy(seen, scratch, sizeof *seen * 16 * (size_t)grid.columns * (size_t)grid.rows);
        memset(scratch, 77, tsr_intra_restored_bytes(tile.width, tile.height));
        memset(back, 99, sizeof back);
        tsr_intra_inverse(coefficients, tile, steps, range, map, back, scratch);
        double errors = 0;
        for (size_t i = 0; i < SAMPLES; i++) {
            const size_t row = (i - tile.first) / tile.stride, column = (i - tile.first) % tile.stride;
            if (i < tile.first || row >= (size_t)tile.height || column >= (size_t)tile.width) {
                assert_int_equal(back[i], 99 * 257);
                continue;
            }
            assert_int_equal(back[i], seen[row * 4 * (size_t)grid.columns + column]);
            errors += (double)(back[i] - samples[i]) * (back[i] - samples[i]);
        }
        /* Steps and factors of classes agree to 0.3 %. */
        const double step = 2 * exp2(((steps.q + steps.coarser_by + TSR_INTRA_QP) / 8.0 - 4) / 6);
        const double most = 2 * step * step + 1 + (steps.classes ? pow(range / 300.0, 2) : 0);
        const double mean = errors / tile.width / tile.height;
        expect(mean < most, "try %d, q %d: %f above %f", n, steps.q, mean, most);
        assert_true(cost > 0);
        free(seen);
        free(scratch);
    }
}

/* Costs rise with coefficients and with errors, each by itself. */
TEST(costs)
{
    const struct tsr_tile tile = {0, 64, 64, 64};
    const struct tsr_block_steps steps = {160, 0, SIZE_MAX, NULL, NULL, 0};
    void *scratch = scratch_of(tile);
    static uint16_t flat[64 * 64], other[64 * 64];
    uint64_t before = 0;
    memset(coefficients, 0, sizeof coefficients);
    for (int n = 0; n < 10; n++) {
        for (int i = 0; i < 64 * 64; i++) other[i] = (uint16_t)n;
        const uint64_t of_errors = tsr_intra_errors_of_tile(flat, tile, steps, TSR_RATE_LAMBDA, other);
        const double step = exp2((160 / 8.0 - 4) / 6), wanted = 4096.0 * n * n / (step * step) / 0.11 * 16;
        expect(fabs((double)of_errors - wanted) <= wanted / 50 + 4096, "%d: %llu, %f", n, (unsigned long long)of_errors,
               wanted);
        for (int p = 0; p < n; p++) coefficients[16 * 5 * n + p] = 3;
        const uint64_t rate = tsr_intra_rate_of_tile(coefficients, tile, scratch);
        assert_true(rate > before);
        before = rate;
    }
    free(scratch);
}

static int64_t clamped_rest(int64_t value, uint32_t range)
{
    return clamp_to(range / 2 + value, 0, (int64_t)range - 1);
}

/* One block, whose edges are all alike: its samples are the middle and the rest, by the page's formulas. */
TEST(one_block)
{
    static const int core[4][4] = {{1, 1, 1, 1}, {2, 1, -1, -2}, {1, -1, -1, 1}, {1, -2, 2, -1}};
    struct rng r = {432};
    for (int n = 0; n < 3000; n++) {
        const int side = n % 2 ? 4 : 8, blocks = side * side / 16;
        const struct tsr_tile tile = {0, side, side, STRIDE};
        const struct tsr_block_steps steps = random_steps(&r, n, TSR_QP_INDEX_LIMIT);
        const uint32_t range = (uint32_t)rng_between(&r, 2, 65536);
        const int32_t q =
            tsr_min(TSR_QP_INDEX_LIMIT, steps.q + (steps.coarser_from == 0 ? steps.coarser_by : 0) + TSR_INTRA_QP);
        const int step_class = steps.classes ? classes[0] : TSR_PLAIN_CLASS;
        const int32_t limit = n % 5 ? 1 << rng_below(&r, 12) : TSR_COEFFICIENT_LIMIT - 1;
        int32_t rest[64];
        void *scratch = scratch_of(tile);
        for (int i = 0; i < 16 * blocks; i++) coefficients[i] = rng_below(&r, 3) ? 0 : rng_between(&r, -limit, limit);
        for (int b = 0; b < blocks; b++)
            map[b] = (uint8_t)((unsigned)(n / 2 % TSR_INTRA_MODES) + (side == 8 ? TSR_INTRA_EIGHT : 0u));
        if (side == 8) {
            for (int k = 0; k < 64; k++) {
                const int at = tsr_eight_scan_host[k];
                rest[at] = tsr_eight_scale(coefficients[k % 4 * 16 + k / 4],
                                           tsr_eight_step(q, step_class, tsr_eight_norm(at)), q);
            }
            tsr_eight_inverse(rest);
            for (int i = 0; i < 64; i++) rest[i] = (int32_t)floor_shift(rest[i] + 64, 7);
        } else {
            for (int i = 0; i < 16; i++) {
                int64_t sum = 64;
                for (int p = 0; p < 16; p++) {
                    const int at = tsr_zigzag(p), k = at / 4, l = at % 4;
                    sum += (int64_t)core[k][i / 4] * core[l][i % 4] *
                           tsr_scale_fine(coefficients[p], tsr_class_step(q, tsr_norm_class(k, l), step_class), q, at);
                }
                rest[i] = (int32_t)floor_shift(sum, 7);
            }
        }
        tsr_intra_inverse(coefficients, tile, steps, range, map, back, scratch);
        for (int i = 0; i < side * side; i++)
            expect(back[i / side * STRIDE + i % side] == clamped_rest(rest[i], range), "try %d, sample %d", n, i);
        free(scratch);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(there_and_back), cmocka_unit_test(costs),
                                       cmocka_unit_test(one_block)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
