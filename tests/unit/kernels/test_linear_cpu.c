/* kernels/training/linear_cpu.h: the fast routines against plain C, plain C against the definition, and padded tiles.
 * kernels/training/train_cpu.h: first labels, flat blocks, dropped classes. FORMAT.md 7.1. */
#include "tests/unit/support.h"

#include "kernels/training/linear_cpu.h"
#include "kernels/training/train_cpu.h"

enum { BIAS = 1 << 15, ROOM = 256 };

static const uint32_t ranges[] = {2, 3, 16, 255, 256, 4096, 8192, 8193, 32768, 32769, 65535, 65536};
static int16_t rooms[TSR_TAPS_LIMIT][ROOM];
static const int16_t *taps[TSR_TAPS_LIMIT];

/* Rows of taps with samples 0 .. range-1, which are noise, extremes, or near each other. */
static void random_taps(struct rng *r, int count, uint32_t range)
{
    const uint32_t kind = rng_below(r, 3), base = rng_below(r, range);
    for (int k = 0; k < count; k++) {
        taps[k] = rooms[k] + 8 + rng_below(r, 9);
        for (int i = 0; i < ROOM; i++) {
            const uint32_t x = kind == 0   ? rng_below(r, range)
                               : kind == 1 ? rng_below(r, 2) * (range - 1)
                                           : (base + rng_below(r, 1 + range / 50)) % range;
            rooms[k][i] = (int16_t)((int32_t)x - BIAS);
        }
    }
}

/* Weights whose magnitudes add up to at most 65535, as in any file, and now and then to exactly that. */
static void random_weights(struct rng *r, int count, int16_t *weight)
{
    int32_t left = 65535;
    const int32_t most = rng_below(r, 3) ? 400 : 32767;
    for (int k = 0; k < count; k++) {
        const int32_t magnitude = rng_between(r, 0, tsr_min(left, most));
        weight[k] = (int16_t)(rng_below(r, 2) ? magnitude : -magnitude);
        left -= magnitude;
    }
    if (rng_below(r, 4) == 0 && left <= 32767 - abs(weight[0]))
        weight[0] = (int16_t)(weight[0] < 0 ? weight[0] - left : weight[0] + left);
}

/* Calls check for plain C, and for the form of each instruction set that this machine has. */
static void for_each_form(void (*check)(const struct tsr_linear_ops *, struct rng *), uint64_t seed)
{
    struct rng r = {seed};
    check(&tsr_linear_plain, &r);
    for (int isa = TSR_ISA_PLAIN; isa <= (int)tsr_best_isa(); isa++) {
        r = (struct rng){seed};
        check(tsr_linear_ops((enum tsr_isa)isa), &r);
    }
}

static void check_predictions(const struct tsr_linear_ops *ops, struct rng *r)
{
    for (int n = 0; n < 10000; n++) {
        const uint32_t range = ranges[rng_below(r, COUNT_OF(ranges))];
        const int count = n % 4 ? rng_between(r, 1, TSR_TAPS_LIMIT) : tsr_neighbours_host[1 + n / 4 % 3];
        const int column = rng_between(r, 0, 100);
        int16_t weight[TSR_TAPS_LIMIT], prediction[18], finely[18], fraction[18];
        random_taps(r, count, range);
        random_weights(r, count, weight);
        for (int k = count; k < TSR_TAPS_LIMIT; k++) weight[k] = (int16_t)rng_next(r); /* these do not count */
        memset(prediction, 0x5a, sizeof prediction);
        memset(finely, 0x5a, sizeof finely);
        memset(fraction, 0x5a, sizeof fraction);
        ops->predict(taps, count, weight, column, (int16_t)((int32_t)range - 1 - BIAS), prediction + 1);
        ops->predict_finely(taps, count, weight, column, (int16_t)((int32_t)range - 1 - BIAS), finely + 1,
                            fraction + 1);
        assert_memory_equal(finely, prediction, sizeof prediction);
        for (int c = 0; c < 16; c++) {
            int64_t sum = 512;
            for (int k = 0; k < count; k++) sum += (int64_t)weight[k] * taps[k][column + c];
            const int64_t whole = floor_shift(sum, 10) + BIAS;
            assert_int_equal(prediction[1 + c] + BIAS, clamp_to(whole, 0, range - 1));
            assert_int_equal(fraction[1 + c],
                             whole < 0 || whole >= (int64_t)range ? 0 : (floor_shift(sum, 4) & 63) - 32); /* 7.10 */
        }
        assert_int_equal(fraction[0], 0x5a5a);
        assert_int_equal(fraction[17], 0x5a5a);
        assert_int_equal(prediction[0], 0x5a5a);
        assert_int_equal(prediction[17], 0x5a5a);
    }
}

TEST(predictions_are_the_definition)
{
    for_each_form(check_predictions, 80);
}

/* Rows of a block: taps and samples anywhere in their rooms. Every other call has 16 columns and 16 rows. */
static void random_rows(struct rng *r, int n, struct tsr_tap_rows *rows, uint32_t range)
{
    static int16_t samples[ROOM];
    const bool all = n % 2 != 0;
    rows->taps = n % 4 ? rng_between(r, 1, TSR_TAPS_LIMIT) : tsr_neighbours_host[1 + n / 4 % 3];
    random_taps(r, rows->taps, range);
    memcpy(samples, rooms[0], sizeof samples);
    for (int i = 0; i < ROOM; i++)
        if (n % 3) samples[i] = (int16_t)((int32_t)rng_below(r, range) - BIAS);
    memcpy(rows->tap, taps, sizeof taps);
    rows->samples = samples + 30;
    rows->pitch = rng_between(r, 1, 7); /* rows may overlap: they are only read */
    rows->column = rng_between(r, 0, 50);
    rows->columns = all ? 16 : rng_between(r, 1, 16);
    rows->rows = all ? 16 : rng_between(r, 1, 16);
    rows->highest = (int16_t)((int32_t)range - 1 - BIAS);
}

/* |sample - prediction| in row y and column c, under weights or the median edge predictor. */
static int32_t magnitude_at(const struct tsr_tap_rows *rows, const int16_t *weight, int y, int c)
{
    const ptrdiff_t at = rows->column + y * rows->pitch + c;
    const int16_t *x = rows->samples + at;
    const int w = x[-1], n = x[-rows->pitch], nw = x[-rows->pitch - 1];
    int64_t prediction = clamp_to(w + n - nw, w < n ? w : n, w < n ? n : w), sum = 512;
    if (weight) {
        for (int k = 0; k < rows->taps; k++) sum += (int64_t)weight[k] * rows->tap[k][at];
        prediction = clamp_to(floor_shift(sum, 10), -BIAS, rows->highest);
    }
    return (int32_t)(*x < prediction ? prediction - *x : *x - prediction);
}

static void check_costs(const struct tsr_linear_ops *ops, struct rng *r)
{
    for (int n = 0; n < 1500; n++) {
        struct tsr_tap_rows rows;
        const int classes = rng_between(r, 1, TSR_CLASS_LIMIT);
        int16_t weight[TSR_CLASS_LIMIT][TSR_TAPS_LIMIT];
        const int16_t *of[TSR_CLASS_LIMIT];
        uint32_t cost[TSR_CLASS_LIMIT + 1], wanted[TSR_CLASS_LIMIT + 1], median = rng_below(r, 1000);
        int32_t zeros = 5, wanted_zeros = 5;
        random_rows(r, n, &rows, ranges[rng_below(r, COUNT_OF(ranges))]);
        for (int i = 0; i <= classes; i++) cost[i] = wanted[i] = rng_below(r, 1 << 20);
        for (int i = 0; i < classes; i++) {
            of[i] = weight[i];
            random_weights(r, rows.taps, weight[i]);
            for (int k = rows.taps; k < TSR_TAPS_LIMIT; k++) weight[i][k] = (int16_t)rng_next(r);
        }
        const uint32_t which = n % 3 ? UINT32_MAX : (uint32_t)rng_next(r);
        ops->costs(&rows, which, of, classes, cost);
        uint32_t wanted_median = median;
        ops->median_costs(&rows, &median, &zeros);
        for (int y = 0; y < rows.rows; y++)
            for (int c = 0; c < rows.columns; c++) {
                for (int i = 0; i < classes && (which >> y & 1) != 0; i++)
                    wanted[i] += (uint32_t)tsr_min(magnitude_at(&rows, weight[i], y, c), 32767);
                wanted_median += (uint32_t)tsr_min(magnitude_at(&rows, NULL, y, c), 32767);
                wanted_zeros += magnitude_at(&rows, NULL, y, c) == 0;
            }
        for (int i = 0; i <= classes; i++) assert_int_equal(cost[i], wanted[i]);
        assert_int_equal(median, wanted_median);
        assert_int_equal(zeros, wanted_zeros);
        uint16_t magnitude[17];
        const int row = rng_between(r, 0, rows.rows - 1);
        const int16_t *one = n % 4 ? weight[0] : NULL;
        uint32_t wanted_bits = 0;
        magnitude[16] = 0x5a5a;
        const uint32_t bits = ops->magnitudes(&rows, row, one, magnitude);
        for (int c = 0; c < rows.columns; c++) {
            assert_int_equal(magnitude[c], magnitude_at(&rows, one, row, c));
            wanted_bits |= (uint32_t)(magnitude[c] != 0) << 2 * c;
        }
        assert_int_equal(bits, wanted_bits);
        assert_int_equal(magnitude[16], 0x5a5a);
    }
}

TEST(costs)
{
    for_each_form(check_costs, 81);
}

static void check_fit_weights(const struct tsr_linear_ops *ops, struct rng *r)
{
    for (int n = 0; n < 5000; n++) {
        struct tsr_tap_rows rows;
        int16_t weight[TSR_TAPS_LIMIT], fit[17][16];
        const int32_t mean = (int32_t)rng_below(r, n % 5 ? 1 + (uint32_t)n : 32768);
        random_rows(r, n, &rows, ranges[rng_below(r, COUNT_OF(ranges))]);
        random_weights(r, rows.taps, weight);
        memset(fit, 0x5a, sizeof fit);
        ops->fit_weights(&rows, n % 3 ? weight : NULL, mean, fit);
        for (int y = 0; y < rows.rows; y++)
            for (int c = 0; c < 16; c++)
                assert_int_equal(fit[y][c], c < rows.columns
                                                ? tsr_fit_weight(magnitude_at(&rows, n % 3 ? weight : NULL, y, c), mean)
                                                : 0);
        for (int c = 0; c < 16; c++) assert_int_equal(fit[rows.rows][c], 0x5a5a);
    }
}

TEST(weights_of_fits)
{
    for_each_form(check_fit_weights, 88);
}

static int16_t differences[TSR_FEATURES_LIMIT + 2][256], weighted[TSR_FEATURES_LIMIT + 2][256];

static void check_differences(const struct tsr_linear_ops *ops, struct rng *r)
{
    for (int n = 0; n < 1500; n++) {
        struct tsr_tap_rows rows;
        const uint32_t range = ranges[rng_below(r, COUNT_OF(ranges))];
        const int shift = tsr_difference_shift(range);
        const int16_t *second[TSR_TAPS_LIMIT];
        int16_t fit[16][16];
        random_rows(r, n, &rows, range);
        const int count = tsr_min(rows.taps, TSR_FEATURES_LIMIT + 1), place = rng_between(r, 0, 16 - rows.rows);
        for (int f = 0; f < count; f++) second[f] = rows.tap[rng_below(r, (uint32_t)count)];
        for (int i = 0; i < 256; i++) fit[i / 16][i % 16] = (int16_t)rng_between(r, 0, TSR_FIT_WEIGHT_LIMIT);
        memset(differences, 0x5a, sizeof differences);
        memset(weighted, 0x5a, sizeof weighted);
        ops->differences(&rows, rows.tap, second, count, shift, (const int16_t(*)[16])fit, differences, weighted,
                         16 * place);
        for (int f = 0; f < TSR_FEATURES_LIMIT + 2; f++)
            for (int s = 0; s < 256; s++) {
                const int y = s / 16 - place;
                const ptrdiff_t at = rows.column + y * rows.pitch + s % 16;
                const bool is_touched = f < count && y >= 0 && y < rows.rows;
                const int64_t d =
                    is_touched ? clamp_to(floor_shift(rows.tap[f][at] - second[f][at], shift), -1023, 1023) : 0;
                assert_int_equal(differences[f][s], is_touched ? d : 0x5a5a);
                assert_int_equal(weighted[f][s], is_touched ? d * fit[y][s % 16] : 0x5a5a);
            }
    }
}

TEST(differences_of_rows)
{
    for_each_form(check_differences, 82);
}

static void check_products(const struct tsr_linear_ops *ops, struct rng *r)
{
    for (int n = 0; n < 600; n++) {
        const int count = rng_between(r, 1, TSR_FEATURES_LIMIT + 1), samples = n % 2 ? 256 : 16 * rng_between(r, 1, 16);
        const bool extremes = n % 4 == 3; /* the largest that a block can give */
        int32_t sums[TSR_SUMS_LIMIT + 1];
        for (int f = 0; f < TSR_FEATURES_LIMIT + 2; f++)
            for (int s = 0; s < 256; s++) {
                const int d = extremes ? (f % 3 ? 1023 : -1023) : rng_between(r, -1023, 1023);
                differences[f][s] = (int16_t)d;
                weighted[f][s] = (int16_t)(d * (extremes ? 7 : rng_between(r, 0, 7)));
            }
        memset(sums, 0x5a, sizeof sums);
        ops->products((const int16_t(*)[256])weighted, (const int16_t(*)[256])differences, count, samples, sums);
        int k = 0;
        for (int i = 0; i < count; i++)
            for (int j = 0; j <= i; j++, k++) {
                int64_t sum = 0;
                for (int s = 0; s < samples; s++) sum += (int64_t)weighted[i][s] * differences[j][s];
                assert_int_equal(sums[k], sum);
            }
        for (; k <= TSR_SUMS_LIMIT; k++) assert_int_equal(sums[k], 0x5a5a5a5a);
    }
}

TEST(products)
{
    for_each_form(check_products, 89);
}

/* The virtual samples are those of FORMAT.md 7.1, and nothing outside the room is touched. */
TEST(padded_tiles)
{
    struct rng r = {83};
    for (int n = 0; n < 500; n++) {
        const int32_t width = n < 40 ? n + 1 : rng_between(&r, 1, 100), height = rng_between(&r, 1, 30);
        const size_t stride = (size_t)rng_between(&r, width, 120), room_samples = tsr_padded_samples(width, height);
        uint16_t *samples = must(malloc(stride * (size_t)height * sizeof *samples));
        int16_t *room = must(malloc(room_samples * sizeof *room)); /* a sanitizer reports use outside it */
        for (size_t i = 0; i < stride * (size_t)height; i++) samples[i] = (uint16_t)rng_next(&r);
        tsr_pad_tile(samples, stride, width, height, room);
        const struct tsr_padded_tile tile = tsr_padded_tile(room, width, height);
        assert_int_equal(tile.width, width);
        assert_int_equal(tile.height, height);
        for (int32_t y = 0; y < height; y++)
            for (int32_t c = -TSR_GUARD; c < width + 16 + TSR_GUARD; c++) {
                const uint16_t wanted = c < 0 ? samples[stride * (size_t)(y > 0 ? y - 1 : 0)]
                                              : samples[stride * (size_t)y + (size_t)(c < width ? c : width - 1)];
                assert_int_equal(tile.first[y * tile.pitch + c], (int32_t)wanted - BIAS);
            }
        free(room);
        free(samples);
    }
}

/* Rows of taps are at the places of FORMAT.md 7.1. */
TEST(rows_of_taps)
{
    struct rng r = {84};
    int16_t room[3] = {0};
    for (int n = 0; n < 500; n++) {
        struct tsr_padded_tile own, earlier[TSR_REFERENCES_LIMIT];
        const int32_t height = rng_between(&r, 2, 40), y = rng_between(&r, 1, height - 1);
        const struct tsr_predictor_shape shape = {tsr_neighbours_host[1 + n % 3], (uint8_t)rng_below(&r, 3)};
        const int16_t *tap[TSR_TAPS_LIMIT];
        own = tsr_padded_tile(room, 50, height);
        for (int i = 0; i < TSR_REFERENCES_LIMIT; i++) earlier[i] = tsr_padded_tile(room + 1 + i, 50, height);
        tsr_tap_row(shape, &own, earlier, y, tap);
        struct tsr_tap_rows rows;
        const int32_t end = rng_between(&r, y + 1, height);
        tsr_tap_rows(shape, &own, earlier, y, end, &rows);
        assert_in_range(rows.rows, 1, end - y);
        assert_true(rows.rows >= end - y - 1 || y < 4);
        for (int32_t i = 0; i < rows.rows; i++) {
            const int16_t *of_row[TSR_TAPS_LIMIT];
            tsr_tap_row(shape, &own, earlier, y + i, of_row);
            for (int k = 0; k < rows.taps; k++) assert_true(rows.tap[k] + i * rows.pitch == of_row[k]);
            assert_true(rows.samples + i * rows.pitch == own.first + (y + i) * own.pitch);
        }
        for (int k = 0; k < shape.neighbours; k++) {
            const int32_t row = y > tsr_tap_up_host[k] ? y - tsr_tap_up_host[k] : 0;
            assert_true(tap[k] == own.first + row * own.pitch + tsr_tap_right_host[k]);
        }
        for (int i = 0; i < shape.references; i++) {
            const int16_t *const *of = tap + shape.neighbours + 5 * i, *at = earlier[i].first + y * own.pitch;
            assert_true(of[0] == at - 1 && of[1] == at && of[2] == at - own.pitch && of[3] == at + 1);
            assert_true(of[4] == at + (y + 1 < height ? own.pitch : 0));
        }
    }
}

/* ---- Training ------------------------------------------------------------------------------------------------- */

/* Plans have at most as many classes as a plane of that size can pay for, and train with one block in block_stride.
 * Their sets go down from the effort's. */
TEST(plans)
{
    for (int effort = 0; effort <= 9; effort++) {
        const struct tsr_effort_plan plan = tsr_effort_plan(effort);
        struct tsr_training_plan plans[TSR_TRAINING_PLANS];
        assert_in_range(plan.neighbours_set, 0, 3);
        assert_in_range(plan.classes, plan.neighbours_set > 0, TSR_CLASS_LIMIT);
        for (uint64_t samples = 1; samples <= (uint64_t)1 << 27; samples = samples * 3 + 1) {
            const int count = tsr_training_plans(plan, samples, plans);
            assert_in_range(count, plan.neighbours_set > 0, plan.neighbours_set);
            for (int i = 0; i < count; i++) {
                assert_int_equal(plans[i].set, plan.neighbours_set - i);
                assert_in_range(plans[i].classes, 1, plan.classes);
                assert_true(plans[i].classes == 1 || plans[i].classes * 8u * 256u <= samples);
                assert_int_equal(plans[i].rounds, plan.rounds);
                assert_int_equal(plans[i].coarse_rounds, plan.coarse_rounds);
                assert_true(plan.rounds == 0 || plan.coarse_rounds < plan.rounds);
                assert_true(plans[i].block_stride >= 1 && samples / plans[i].block_stride <= plan.training_samples);
            }
        }
    }
}

/* First labels: blocks in the order of their costs, in equal shares for the classes. */
TEST(first_labels)
{
    static struct tsr_training t;
    static struct tsr_training_sums sums;
    for (int classes = 1; classes <= TSR_CLASS_LIMIT; classes++) {
        memset(&sums, 0, sizeof sums);
        for (int l = 0; l < 12 * classes; l++) sums.bins[l] = 5;
        t.plan.classes = (uint8_t)classes;
        tsr_take_first_labels(&t, &sums);
        for (int l = 0; l < TSR_COST_BINS; l++) assert_int_equal(t.first_label[l], tsr_min(l / 12, classes - 1));
        memset(&sums, 0, sizeof sums);
        tsr_take_first_labels(&t, &sums); /* no blocks at all */
        for (int l = 0; l < TSR_COST_BINS; l++) assert_int_equal(t.first_label[l], 0);
    }
}

/* Training finds the predictors from which a tile was made: two halves, two sets of weights. Except on the seam, blocks
 * rarely get another label than their half's (the median edge predictor may win some of the left half). */
TEST(classes_are_found)
{
    enum { WIDTH = 256, HEIGHT = 256, BLOCKS = WIDTH / 16 * HEIGHT / 16 };
    static uint16_t samples[WIDTH * HEIGHT];
    static int16_t room[(WIDTH + 64) * HEIGHT];
    static struct tsr_training t;
    static struct tsr_training_sums sums;
    static struct tsr_training_scratch scratch;
    static struct tsr_solver solver;
    static struct tsr_predictor_model model;
    uint8_t label[BLOCKS], renumbered[TSR_LABELS_LIMIT];
    uint32_t median_cost[BLOCKS];
    struct rng r = {85};
    /* left: each sample within 3 of N; right: each sample within 90 of W */
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            const bool left = x < WIDTH / 2;
            const int n = y > 0 ? samples[(y - 1) * WIDTH + x] : 2000 + (int)rng_below(&r, 60),
                      w = x > 0 ? samples[y * WIDTH + x - 1] : 2000;
            const int from = left ? n : w;
            samples[y * WIDTH + x] =
                (uint16_t)clamp_to(from + rng_between(&r, left ? -3 : -90, left ? 3 : 90), 0, 4095);
        }
    assert_true(tsr_padded_samples(WIDTH, HEIGHT) <= COUNT_OF(room));
    tsr_pad_tile(samples, WIDTH, WIDTH, HEIGHT, room);
    const struct tsr_training_tile tile = {.own = tsr_padded_tile(room, WIDTH, HEIGHT), .number = 0};
    t.plan = (struct tsr_training_plan){1, 2, 4, 0, 1};
    t.model = &model;
    t.ops = tsr_linear_ops(tsr_best_isa());
    t.range = 4096;
    t.tile_blocks = BLOCKS;
    t.label = label;
    t.median_cost = median_cost;
    model.set = 1;
    model.shape.neighbours = 10;
    tsr_median_costs(&t, &tile, &sums);
    tsr_take_first_labels(&t, &sums);
    for (int round = 0; round < 4; round++) {
        memset(&sums, 0, sizeof sums);
        tsr_sum_tile(&t, &tile, round, &sums, &scratch);
        tsr_fit_classes(&t, &sums, &solver);
        memset(&sums, 0, sizeof sums);
        tsr_label_tile(&t, &tile, round, &sums);
        tsr_take_means(&t, &sums);
    }
    tsr_drop_classes(&t, &sums, renumbered);
    assert_int_equal(model.classes, 2);
    int wrong = 0;
    for (int b = 0; b < BLOCKS; b++) wrong += b % 16 != 8 && label[b] == label[b % 16 < 8 ? 31 : 16];
    assert_true(label[16] != label[31]);
    assert_in_range(wrong, 0, 4);
    const int16_t *left = model.weight[renumbered[label[16]]], *right = model.weight[renumbered[label[31]]];
    assert_in_range(left[1], 850, 1100);  /* N */
    assert_in_range(right[0], 850, 1100); /* W */
}

enum { WIDTH = 256, HEIGHT = 32, BLOCKS = WIDTH / 16 * (HEIGHT / 16) };

/* Columns of blocks: a noisy ramp; flat ground; ground with samples 1 off. In the second turn all blocks are flat. */
static void fill_ground(uint16_t *samples, int turn)
{
    struct rng r = {87};
    for (int i = 0; i < WIDTH * HEIGHT; i++) {
        const int x = i % WIDTH, kind = turn ? 1 : x / 16 % 3;
        const bool seldom = rng_below(&r, 32) == 0;
        const uint32_t noise = rng_below(&r, 100);
        samples[i] = (uint16_t)(kind == 0   ? 1000 + noise + 2 * (uint32_t)x
                                : kind == 1 ? 500 + 900 * (uint32_t)seldom
                                            : 500 + (uint32_t)seldom);
    }
}

/* A block's sums of logarithms of residuals, with its two classes and with the median edge predictor, and the latter's
 * residuals: how many are 0, how many there are, the sum of their magnitudes. */
struct block_costs {
    uint64_t cost[3];
    uint32_t zeros, count, sum;
};

static struct block_costs costs_of_block(const struct tsr_training *t, const struct tsr_training_tile *tile, int b)
{
    const int left = b % (WIDTH / 16) * 16, top = b / (WIDTH / 16) * 16 + (b < WIDTH / 16);
    struct block_costs found = {0};
    for (int y = top; y < (top + 16) / 16 * 16; y++) {
        const int16_t *tap[TSR_TAPS_LIMIT], *row = tile->own.first + y * tile->own.pitch, *up = row - tile->own.pitch;
        int16_t prediction[16];
        tsr_tap_row(t->model->shape, &tile->own, tile->earlier, y, tap);
        for (int l = 0; l < 3; l++) {
            if (l < 2) t->ops->predict(tap, 10, t->model->weight[l], left, 4095 - 32768, prediction);
            for (int x = left; x < left + 16; x++) {
                const int w = row[x - 1], n = up[x], low = w < n ? w : n, high = w < n ? n : w;
                const int median = (int)clamp_to(w + n - up[x - 1], low, high);
                const int e = abs(row[x] - (l < 2 ? prediction[x - left] : median));
                found.cost[l] += tsr_magnitude_cost((uint32_t)e);
                found.zeros += l == 2 && e == 0;
                found.sum += l == 2 ? (uint32_t)e : 0u;
                found.count += l == 2;
            }
        }
    }
    return found;
}

/* Blocks of even ground with a few sharp samples are flat: they add nothing to the sums, and their label is that of the
 * least sum of logarithms. Blocks of even ground with a few samples 1 off are not flat. */
TEST(flat_blocks)
{
    static uint16_t samples[WIDTH * HEIGHT];
    static int16_t room[(WIDTH + 64) * HEIGHT];
    static struct tsr_training t;
    static struct tsr_training_sums sums;
    static struct tsr_training_scratch scratch;
    static struct tsr_solver solver;
    static struct tsr_predictor_model model[2];
    uint8_t label[BLOCKS];
    uint32_t median_cost[BLOCKS];
    int flat[2] = {0, 0};
    assert_true(tsr_padded_samples(WIDTH, HEIGHT) <= COUNT_OF(room));
    for (int turn = 0; turn < 2; turn++) { /* in the second turn all blocks are flat */
        fill_ground(samples, turn);
        tsr_pad_tile(samples, WIDTH, WIDTH, HEIGHT, room);
        const struct tsr_training_tile tile = {.own = tsr_padded_tile(room, WIDTH, HEIGHT), .number = 0};
        memset(&t, 0, sizeof t);
        memset(&sums, 0, sizeof sums);
        t.plan = (struct tsr_training_plan){1, 2, 1, 0, 1};
        t.model = &model[turn];
        t.ops = tsr_linear_ops(tsr_best_isa());
        t.range = 4096;
        t.tile_blocks = BLOCKS;
        t.label = label;
        t.median_cost = median_cost;
        model[turn].set = 1;
        model[turn].shape.neighbours = 10;
        tsr_median_costs(&t, &tile, &sums);
        tsr_take_first_labels(&t, &sums);
        memset(&sums, 0, sizeof sums);
        tsr_sum_tile(&t, &tile, 0, &sums, &scratch);
        uint64_t any = 0;
        for (int c = 0; c < 2; c++)
            for (int s = 0; s < TSR_SUMS_LIMIT; s++) any |= sums.products[c][s];
        assert_int_equal(any == 0, turn);
        tsr_fit_classes(&t, &sums, &solver);
        tsr_label_tile(&t, &tile, 0, &sums);
        for (int b = 0; b < BLOCKS; b++) {
            const struct block_costs found = costs_of_block(&t, &tile, b);
            const uint64_t *cost = found.cost;
            const bool is_flat = 2 * found.zeros >= found.count && found.sum > 4 * (found.count - found.zeros);
            assert_int_equal(median_cost[b] >> 24, is_flat);
            assert_int_equal(median_cost[b] & 0xffffff, found.sum);
            flat[turn] += is_flat;
            if (!is_flat) continue;
            const int best = cost[1] < cost[0];
            assert_int_equal(label[b], cost[2] < cost[best] ? 2 : best);
        }
    }
    assert_in_range(flat[0], BLOCKS / 4, BLOCKS * 3 / 4);
    assert_int_equal(flat[1], BLOCKS);
}

/* A coarse round looks at one in four of the blocks that others look at. Labels are those of the blocks that the next
 * round looks at, and in the end of all. */
TEST(coarse_rounds)
{
    enum { NONE = 99, ROUNDS = 4, COARSE = 2, STRIDE = 2 };
    static uint16_t samples[WIDTH * HEIGHT];
    static int16_t room[(WIDTH + 64) * HEIGHT];
    static struct tsr_training t;
    static struct tsr_training_sums sums;
    static struct tsr_training_scratch scratch;
    static struct tsr_solver solver;
    static struct tsr_predictor_model model;
    uint8_t label[BLOCKS];
    uint32_t median_cost[BLOCKS];
    struct rng r = {93};
    for (int i = 0; i < WIDTH * HEIGHT; i++) samples[i] = (uint16_t)(1000 + rng_below(&r, 100));
    tsr_pad_tile(samples, WIDTH, WIDTH, HEIGHT, room);
    const struct tsr_training_tile tile = {.own = tsr_padded_tile(room, WIDTH, HEIGHT), .number = 0};
    t.plan = (struct tsr_training_plan){1, 2, ROUNDS, COARSE, STRIDE};
    t.model = &model;
    t.ops = tsr_linear_ops(tsr_best_isa());
    t.range = 4096;
    t.tile_blocks = BLOCKS;
    t.label = label;
    t.median_cost = median_cost;
    model.set = 1;
    model.shape.neighbours = 10;
    tsr_median_costs(&t, &tile, &sums);
    tsr_take_first_labels(&t, &sums);
    memset(label, NONE, sizeof label);
    for (int round = 0; round < ROUNDS; round++) {
        memset(&sums, 0, sizeof sums);
        tsr_sum_tile(&t, &tile, round, &sums, &scratch);
        for (int b = 0; b < BLOCKS && round == 0; b++)
            assert_int_equal(label[b] != NONE, tsr_block_takes_part(4 * STRIDE, 0, b % (WIDTH / 16), b / (WIDTH / 16)));
        tsr_fit_classes(&t, &sums, &solver);
        memset(&sums, 0, sizeof sums);
        memset(label, NONE, sizeof label);
        tsr_label_tile(&t, &tile, round, &sums);
        const uint32_t next = round + 1 == ROUNDS ? 1 : round + 1 < COARSE ? 4 * STRIDE : STRIDE;
        for (int b = 0; b < BLOCKS; b++)
            assert_int_equal(label[b] != NONE, tsr_block_takes_part(next, 0, b % (WIDTH / 16), b / (WIDTH / 16)));
        tsr_take_means(&t, &sums);
    }
}

/* All taps count; those of class 0 count more. */
static void set_two_classes(struct tsr_predictor_model *model)
{
    for (int c = 0; c < 2; c++) {
        int16_t of_feature[TSR_FEATURES_LIMIT];
        for (int f = 0; f < TSR_FEATURES_LIMIT; f++) of_feature[f] = (int16_t)(c ? 1 : 520);
        assert_true(tsr_complete_weights(model->shape, of_feature, model->weight[c]));
    }
}

/* Blocks whose samples and neighbours are all equal are not tried. Labels and sums are those of trials: the same tile
 * once more, without the flags. Single samples that differ lie anywhere, so also just within a tap's reach. */
TEST(even_blocks)
{
    static uint16_t samples[WIDTH * HEIGHT];
    int16_t *room[2];
    static struct tsr_training t;
    static struct tsr_training_sums sums[2];
    static struct tsr_training_scratch scratch;
    static struct tsr_predictor_model model;
    uint8_t label[2][BLOCKS];
    uint32_t median_cost[BLOCKS];
    struct rng r = {90};
    int even = 0, blocks = 0, first = 0;
    for (int n = 0; n < 400; n++) {
        struct tsr_training_tile tile = {.number = 0};
        const int32_t width = n % 2 ? WIDTH : rng_between(&r, 1, WIDTH),
                      height = n % 2 ? HEIGHT : rng_between(&r, 1, HEIGHT);
        memset(&t, 0, sizeof t);
        memset(&model, 0, sizeof model);
        memset(median_cost, 0, sizeof median_cost);
        for (int plane = 0; plane < 2; plane++) {
            for (int i = 0; i < WIDTH * HEIGHT; i++) samples[i] = 700;
            for (uint32_t k = rng_below(&r, 6); k > 0; k--) samples[rng_below(&r, WIDTH * HEIGHT)] = 701;
            for (int x = (int)rng_below(&r, WIDTH), y = 0; n % 5 == 0 && y < HEIGHT; y++) samples[y * WIDTH + x] = 701;
            room[plane] = must(malloc(tsr_padded_samples(width, height) * sizeof *room[plane])); /* a sanitizer looks */
            tsr_pad_tile(samples, WIDTH, width, height, room[plane]);
        }
        tile.own = tsr_padded_tile(room[0], width, height);
        tile.earlier[0] = tsr_padded_tile(room[1], width, height);
        t.plan = (struct tsr_training_plan){3, 2, n % 3 != 0 ? 1 : 2, 0, 1};
        t.model = &model;
        t.ops = tsr_linear_ops(tsr_best_isa());
        t.range = 4096;
        t.tile_blocks = BLOCKS;
        t.median_cost = median_cost;
        model.set = 3;
        model.shape.neighbours = 30;
        model.shape.references = (uint8_t)(n / 2 % 2);
        set_two_classes(&model);
        tsr_median_costs(&t, &tile, &sums[0]);
        for (int turn = 0; turn < 2; turn++) {
            t.label = label[turn];
            memset(label[turn], 0, sizeof label[turn]);
            memset(&sums[turn], 0, sizeof sums[turn]);
            for (int b = 0; b < BLOCKS && turn; b++) {
                even += median_cost[b] >> 31 != 0;
                median_cost[b] &= UINT32_MAX >> 1;
            }
            tsr_sum_tile(&t, &tile, 0, &sums[turn], &scratch);
            tsr_label_tile(&t, &tile, 0, &sums[turn]);
        }
        assert_memory_equal(label[0], label[1], sizeof label[0]);
        assert_memory_equal(&sums[0], &sums[1], sizeof sums[0]);
        for (int b = 0; b < BLOCKS; b++) blocks++, first += label[0][b] == 0;
        for (int plane = 0; plane < 2; plane++) free(room[plane]);
    }
    assert_in_range(even, blocks / 10, blocks - blocks / 10);
    assert_in_range(first, blocks / 10, blocks - blocks / 20);
}

/* Classes without blocks are dropped. The others keep their order; the median edge predictor comes after them. */
TEST(dropped_classes)
{
    struct rng r = {86};
    static struct tsr_training t;
    static struct tsr_training_sums sums;
    static struct tsr_predictor_model model;
    for (int n = 0; n < 500; n++) {
        uint8_t renumbered[TSR_LABELS_LIMIT];
        memset(&sums, 0, sizeof sums);
        t.model = &model;
        t.plan.classes = (uint8_t)rng_between(&r, 1, TSR_CLASS_LIMIT);
        for (int c = 0; c < t.plan.classes; c++) {
            for (int k = 0; k < TSR_TAPS_LIMIT; k++) model.weight[c][k] = (int16_t)c;
            sums.samples[c] = n == 0 ? 0 : rng_below(&r, 3);
        }
        tsr_drop_classes(&t, &sums, renumbered);
        int kept = 0;
        for (int c = 0; c < t.plan.classes; c++) {
            if (sums.samples[c] == 0) continue;
            assert_int_equal(renumbered[c], kept);
            for (int k = 0; k < TSR_TAPS_LIMIT; k++) assert_int_equal(model.weight[kept][k], c);
            kept++;
        }
        assert_int_equal(model.classes, kept);
        assert_int_equal(renumbered[t.plan.classes], kept);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(predictions_are_the_definition),
                                       cmocka_unit_test(costs),
                                       cmocka_unit_test(weights_of_fits),
                                       cmocka_unit_test(differences_of_rows),
                                       cmocka_unit_test(products),
                                       cmocka_unit_test(padded_tiles),
                                       cmocka_unit_test(rows_of_taps),
                                       cmocka_unit_test(plans),
                                       cmocka_unit_test(first_labels),
                                       cmocka_unit_test(classes_are_found),
                                       cmocka_unit_test(flat_blocks),
                                       cmocka_unit_test(coarse_rounds),
                                       cmocka_unit_test(even_blocks),
                                       cmocka_unit_test(dropped_classes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
