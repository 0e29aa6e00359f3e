/* kernels/blocks/lapped_cpu.h: tiles of samples with fraction bits, lapped and not, against plain blocks.
 * FORMAT.md 8.7. */
#include "tests/unit/support.h"

#include "kernels/blocks/lapped_cpu.h"
#include "kernels/blocks/blocks_cpu.h"
#include "entropy/rate_distortion.h"
#include "entropy/textures.h"
#include "transform/block/core4x4.h"
#include "transform/block/dc_plane.h"

enum {
    MOST = 70,
    STRIDE = MOST + 5,
    SAMPLES = STRIDE * (MOST + 1),
    SIDE = (MOST + 3) / 4 * 4,
    COEFFICIENTS = SIDE * SIDE
};

static uint16_t samples[SAMPLES], back[SAMPLES];
static uint8_t classes[(MOST + 15) / 16 * ((MOST + 15) / 16) + TSR_CLASSES_MORE];
static int32_t units[COEFFICIENTS], plain[COEFFICIENTS], fine[SIDE][SIDE];

static struct tsr_tile random_tile(struct rng *r)
{
    struct tsr_tile tile;
    tile.width = rng_below(r, 4) ? rng_between(r, 1, MOST) : rng_between(r, 1, 9);
    tile.height = rng_below(r, 4) ? rng_between(r, 1, MOST) : rng_between(r, 1, 9);
    tile.stride = (size_t)rng_between(r, tile.width, STRIDE);
    tile.first = rng_below(r, 4);
    return tile;
}

/* Samples of all sizes, or of two; in some tries flat ground from one row of blocks to another. */
static void fill_samples(struct rng *r, uint32_t range, int n)
{
    const size_t from = rng_below(r, SAMPLES), end = n / 4 % 2 ? from + rng_below(r, SAMPLES) : 0;
    for (size_t i = 0; i < SAMPLES; i++) {
        samples[i] = (uint16_t)(n % 4 ? rng_below(r, range) : rng_below(r, 2) * (range - 1));
        if (i > from && i < end) samples[i] = samples[from];
    }
}

static void lap(int32_t *at, ptrdiff_t step, bool forward)
{
    if (forward)
        tsr_lap_forward(at - 2 * step, at - step, at, at + step);
    else
        tsr_lap_inverse(at - 2 * step, at - step, at, at + step);
}

static void lap_all(int32_t width, int32_t height, bool forward)
{
    for (int pass = 0; pass < 2; pass++) {
        if (forward == (pass == 0)) { /* vertically */
            for (int32_t y = 4; y < height; y += 4)
                for (int32_t x = 0; x < width; x++) lap(&fine[y][x], SIDE, forward);
        } else {
            for (int32_t y = 0; y < height; y++)
                for (int32_t x = 4; x < width; x += 4) lap(&fine[y][x], 1, forward);
        }
    }
}

/* Classes of a tile's squares, or none; in some tries all alike. */
static const uint8_t *random_classes(struct rng *r, int n)
{
    for (size_t i = 0; i < sizeof classes; i++)
        classes[i] = (uint8_t)(i > 0 && n % 3 == 0 ? classes[0] : rng_below(r, TSR_STEP_CLASSES));
    return n % 4 < 2 ? classes : NULL;
}

/* The class of block b in place i of the zigzag. */
static int class_of(const uint8_t *of_tile, int32_t b, int32_t columns, int i)
{
    const int32_t square = b / columns / 4 * ((columns + 3) / 4) + b % columns / 4;
    return of_tile && i > 0 ? of_tile[square] : TSR_PLAIN_CLASS;
}

/* The first sample of block b. */
static size_t begin_of(struct tsr_tile tile, int32_t b, int32_t columns)
{
    return tile.first + (size_t)(b / columns * 4) * tile.stride + (size_t)(b % columns * 4);
}

/* Turns the plain coefficients into fine samples, block by block, before lapping is undone. */
static void restore_plainly(struct tsr_tile tile, struct tsr_block_steps steps, int32_t low, int32_t width,
                            int32_t height)
{
    const int32_t columns = width / 4;
    for (int32_t b = 0; b < columns * height / 4; b++) {
        int32_t block[16];
        const int32_t step = low + (begin_of(tile, b, columns) >= steps.coarser_from ? steps.coarser_by : 0);
        for (int i = 0; i < 16; i++) {
            const int at = tsr_zigzag(i), norm_class = tsr_norm_class(at / 4, at % 4);
            const int32_t by = tsr_class_step(step, norm_class, class_of(steps.classes, b, columns, i));
            block[at] = tsr_scale_fine(plain[16 * b + i], by, step, at);
        }
        if (steps.dcs) block[0] = steps.dcs[b] * (steps.dc_fraction == TSR_LAP_BITS ? 8 : 2);
        for (int j = 0; j < 4; j++) {
            int32_t v[4] = {block[j], block[4 + j], block[8 + j], block[12 + j]};
            tsr_core_inverse_32_1d(v);
            for (int i = 0; i < 4; i++) block[4 * i + j] = v[i];
        }
        for (int i = 0; i < 4; i++) tsr_core_inverse_32_1d(block + 4 * i);
        for (int i = 0; i < 16; i++) fine[b / columns * 4 + i / 4][b % columns * 4 + i % 4] = tsr_lap_settle(block[i]);
    }
}

TEST(against_plain_blocks)
{
    struct rng r = {96};
    for (int n = 0; n < 400; n++) {
        const struct tsr_tile tile = random_tile(&r);
        const int32_t width = (tile.width + 3) / 4 * 4, height = (tile.height + 3) / 4 * 4, columns = width / 4;
        const uint32_t range = n % 3 == 0 ? 256 : n % 3 == 1 ? 4096 : 65536;
        const int32_t q = rng_between(&r, 0, TSR_QP_INDEX_LIMIT);
        const bool lapped = n & 1;
        const int32_t low = q + (lapped ? TSR_LAP_QP : 0);
        struct tsr_block_steps steps = {.q = q, .classes = random_classes(&r, n)};
        if (n % 3) steps.coarser_by = rng_between(&r, 0, TSR_QP_INDEX_LIMIT - q);
        steps.coarser_from = rng_below(&r, SAMPLES);
        void *scratch = must(malloc(tsr_lapped_scratch_bytes(tile.width)));
        fill_samples(&r, range, n);
        tsr_lapped_forward(samples, tile, steps, lapped, units, scratch);
        for (int32_t y = 0; y < height; y++)
            for (int32_t x = 0; x < width; x++)
                fine[y][x] = samples[tile.first + (size_t)tsr_min(y, tile.height - 1) * tile.stride +
                                     (size_t)tsr_min(x, tile.width - 1)] *
                             16;
        if (lapped) lap_all(width, height, true);
        for (int32_t b = 0; b < columns * height / 4; b++) {
            int32_t block[16];
            const int32_t step = low + (begin_of(tile, b, columns) >= steps.coarser_from ? steps.coarser_by : 0);
            for (int i = 0; i < 16; i++) block[i] = fine[b / columns * 4 + i / 4][b % columns * 4 + i % 4];
            tsr_core_forward(block);
            for (int i = 0; i < 16; i++)
                expect(units[16 * b + i] == tsr_class_units(block[tsr_zigzag(i)], step,
                                                            tsr_norm_class(tsr_zigzag(i) / 4, tsr_zigzag(i) % 4),
                                                            class_of(steps.classes, b, columns, i)),
                       "try %d block %d place %d", n, b, i);
        }
        /* The inverse, from these coefficients or from random ones. */
        for (int32_t i = 0; i < width * height; i++) {
            plain[i] = (units[i] + 128) >> 8;
            if (n % 5 == 0) plain[i] = rng_between(&r, -1, 1) * (int32_t)rng_width(&r, 23);
            if (tsr_abs(plain[i]) >= TSR_COEFFICIENT_LIMIT) plain[i] = 0;
        }
        for (size_t i = 0; i < SAMPLES; i++) back[i] = 0xa5a5;
        tsr_difference_dcs(plain, tsr_block_grid(tile.width, tile.height, 1));
        assert_true(tsr_lapped_inverse(plain, tile, steps, lapped, range, back, scratch)); /* plain has DCs again */
        restore_plainly(tile, steps, low, width, height);
        if (lapped) lap_all(width, height, false);
        size_t touched = 0;
        for (int32_t y = 0; y < tile.height; y++)
            for (int32_t x = 0; x < tile.width; x++, touched++)
                expect(back[tile.first + (size_t)y * tile.stride + (size_t)x] ==
                           tsr_lap_sample(fine[y][x], (int32_t)range - 1),
                       "try %d row %d column %d", n, y, x);
        for (size_t i = 0; i < tile.first; i++) assert_int_equal(back[i], 0xa5a5);
        free(scratch);
    }
}

/* With fine steps, samples come back nearly as they were, however the coefficients are chosen. */
TEST(small_errors)
{
    struct rng r = {97};
    for (int n = 0; n < 60; n++) {
        const struct tsr_tile tile = random_tile(&r);
        const bool lapped = n & 1;
        void *scratch = must(malloc(tsr_lapped_scratch_bytes(tile.width)));
        const struct tsr_block_steps steps = {.q = 0};
        void *choice = must(malloc(tsr_choose_scratch_bytes(tile.width)));
        for (size_t i = 0; i < SAMPLES; i++) samples[i] = (uint16_t)(i * 3 % 200 + rng_below(&r, 30));
        tsr_lapped_forward(samples, tile, steps, lapped, units, scratch);
        tsr_choose_coefficients(units, tile, lapped, n % 3 ? 1000 : 0, n % 3 == 2, choice);
        assert_true(tsr_lapped_inverse(units, tile, steps, lapped, 256, back, scratch));
        for (int32_t y = 0; y < tile.height; y++)
            for (int32_t x = 0; x < tile.width; x++) {
                const size_t at = tile.first + (size_t)y * tile.stride + (size_t)x;
                expect(tsr_abs(back[at] - samples[at]) <= 4, "try %d: %d", n, back[at] - samples[at]);
            }
        free(choice);
        free(scratch);
    }
}

/* Units of all sizes. Many blocks quantise to zeros, some beside each other. */
static void random_units(struct rng *r, int32_t blocks)
{
    int32_t quiet = 0; /* blocks without a place but the DC */
    for (int32_t b = 0; b < blocks; b++, quiet--) {
        const int width = (int)rng_below(r, 4) ? rng_between(r, 6, 12) : rng_between(r, 1, 29);
        if (quiet <= 0 && rng_below(r, 16) == 0) quiet = rng_between(r, 8, 30);
        for (int p = 0; p < 16; p++) {
            const bool large = p == 0 || (quiet <= 0 && rng_below(r, 3) == 0);
            units[16 * b + p] = (int32_t)rng_width(r, large ? width : 7);
            if (rng_below(r, 2)) units[16 * b + p] = -units[16 * b + p];
        }
    }
}

/* The choice of least cost for a block by brute force: tries each last place, and the nearest value or one less at each
 * place up to it. */
static void choose_plainly(int32_t block[16], const uint16_t energy[16], int block_class, bool lapped, int32_t lambda)
{
    const int32_t *weight = tsr_error_weight_host + (lapped ? 16 : 0);
    int32_t best[16] = {0};
    int64_t least = INT64_MAX;
    int top = 0;
    for (int p = 1; p < 16; p++)
        if ((tsr_abs(block[p]) + 128) >> 8 > 0) top = p;
    for (int last = 0; last <= top; last++) {
        int32_t chosen[16] = {0};
        int64_t cost = lambda * tsr_rate_of_places_host[17 * block_class + (last > 0 ? last + 1 : block[0] != 0)];
        for (int p = 1; p < 16; p++) {
            const int32_t size = tsr_abs(block[p]), nearest = (size + 128) >> 8, capped = tsr_min(size, 1024);
            const uint8_t *others = tsr_rate_of_others_host + 16 * tsr_energy_class(energy[p]);
            const uint8_t *highest = tsr_rate_of_highest_host + 16 * tsr_energy_class(energy[p]);
            int64_t of_place = INT64_MAX;
            if (p > last || (p < last && nearest == 0))
                of_place = capped * capped * weight[p] + (p < last ? lambda * others[0] : 0);
            for (int32_t less = 0; p <= last && less <= 1 && nearest - less >= (p == last || less == 0); less++) {
                const int32_t magnitude = nearest - less, error = size - 256 * magnitude;
                const int rate = tsr_min(nearest, 15) - less;
                const int of = p == last ? highest[rate - 1] + 16 : others[rate] + (rate > 0 ? 16 : 0);
                const int64_t as = (int64_t)error * error * weight[p] + lambda * of;
                if (as >= of_place) continue;
                of_place = as;
                chosen[p] = magnitude;
            }
            cost = of_place == INT64_MAX ? INT64_MAX / 2 : cost + of_place;
        }
        if (cost >= least) continue;
        least = cost;
        memcpy(best, chosen, sizeof best);
    }
    for (int p = 1; p < 16; p++) block[p] = block[p] < 0 ? -best[p] : best[p];
}

/* The choice for a tile against the brute-force choice for each block. */
TEST(choices)
{
    static struct tsr_magnitudes seen[SIDE / 4 + 2][SIDE / 4 + 2];
    struct rng r = {98};
    for (int n = 0; n < 300; n++) {
        const struct tsr_tile tile = random_tile(&r);
        const struct tsr_block_grid grid = tsr_block_grid(tile.width, tile.height, 1);
        const bool lapped = n & 1;
        const int32_t lambda = n % 5 == 0 ? 1 : TSR_RATE_LAMBDA;
        random_units(&r, grid.columns * grid.rows);
        memcpy(plain, units, sizeof plain);
        void *choice = must(malloc(tsr_choose_scratch_bytes(tile.width)));
        tsr_choose_coefficients(units, tile, lapped, lambda, false, choice);
        free(choice);
        memset(seen, 0, sizeof seen);
        for (int32_t b = 0; b < grid.columns * grid.rows; b++) {
            const int32_t dc = (tsr_abs(plain[16 * b]) + 128) >> 8;
            plain[16 * b] = plain[16 * b] < 0 ? -dc : dc;
        }
        tsr_difference_dcs(plain, grid);
        for (int32_t b = 0; b < grid.columns * grid.rows; b++) {
            const int32_t y = b / grid.columns + 1, x = b % grid.columns + 1;
            uint16_t energy[16];
            for (int p = 0; p < 16; p++)
                seen[y][x].at[p] = (uint16_t)tsr_seen_magnitude(
                    (uint32_t)(p == 0 ? tsr_abs(plain[16 * b]) : (tsr_abs(plain[16 * b + p]) + 85) >> 8), 0);
            tsr_energies_around(&seen[y][x - 1], &seen[y - 1][x], &seen[y - 1][x - 1], &seen[y - 1][x + 1], energy);
            const int energy_class = tsr_block_energy_class(energy);
            tsr_add_energies(&seen[y][x], energy);
            choose_plainly(plain + 16 * b, energy, energy_class, lapped, lambda);
            for (int p = 0; p < 16; p++)
                expect(units[16 * b + p] == plain[16 * b + p], "try %d block %d place %d: %d, %d", n, b, p,
                       units[16 * b + p], plain[16 * b + p]);
        }
    }
}

/* The tile's rough cost without lapping, from samples and from units. */
TEST(rough_costs)
{
    struct rng r = {99};
    for (int n = 0; n < 300; n++) {
        const struct tsr_tile tile = random_tile(&r);
        const struct tsr_block_grid grid = tsr_block_grid(tile.width, tile.height, 1);
        const uint32_t range = n % 3 == 0 ? 256 : n % 3 == 1 ? 4096 : 65536;
        struct tsr_block_steps steps = {.q = rng_between(&r, 0, TSR_QP_INDEX_LIMIT), .classes = random_classes(&r, n)};
        if (n % 2) steps.coarser_by = rng_between(&r, 0, TSR_QP_INDEX_LIMIT - steps.q);
        steps.coarser_from = rng_below(&r, SAMPLES);
        fill_samples(&r, range, n);
        void *scratch = must(malloc(tsr_lapped_scratch_bytes(tile.width)));
        tsr_lapped_forward(samples, tile, steps, false, units, scratch);
        free(scratch);
        uint64_t cost = 0;
        for (int32_t b = 0; b < grid.columns * grid.rows; b += 8)
            for (int p = 1; p < 16; p++) cost += tsr_rough_cost((uint32_t)tsr_abs(units[16 * b + p]));
        assert_true(tsr_rough_tile_cost(units, tile) == cost);
        assert_true(tsr_rough_plain_cost(samples, tile, steps) == cost);
    }
}

/* The form for this machine's vectors against plain C: samples and units of all sizes, guards after what is written. */
TEST(forms)
{
    static int32_t others[COEFFICIENTS];
    static uint16_t other_back[SAMPLES];
    const struct tsr_lapped_form *a = tsr_lapped_form(TSR_ISA_PLAIN), *b = tsr_lapped_form(tsr_best_isa());
    struct rng r = {100};
    for (int n = 0; n < 600; n++) {
        const struct tsr_tile tile = random_tile(&r);
        const struct tsr_block_grid grid = tsr_block_grid(tile.width, tile.height, 1);
        const size_t count = tsr_tile_coefficients(tile.width, tile.height);
        const uint32_t range = n % 3 == 0 ? 256 : n % 3 == 1 ? 4096 : 65536;
        const bool lapped = n & 1;
        struct tsr_block_steps steps = {.q = rng_between(&r, 0, TSR_QP_INDEX_LIMIT),
                                        .coarser_from = rng_below(&r, SAMPLES)};
        steps.classes = random_classes(&r, n / 2);
        if (n % 3) steps.coarser_by = rng_between(&r, 0, TSR_QP_INDEX_LIMIT - steps.q);
        fill_samples(&r, range, n);
        void *scratch = must(malloc(tsr_lapped_scratch_bytes(tile.width)));
        void *choice = must(malloc(tsr_choose_scratch_bytes(tile.width)));
        memset(units, 0x5a, sizeof units);
        memset(others, 0x5a, sizeof others);
        a->forward(samples, tile, steps, lapped, units, scratch);
        b->forward(samples, tile, steps, lapped, others, scratch);
        assert_memory_equal(units, others, sizeof units);
        uint32_t texture[2][(MOST + 15) / 16 * ((MOST + 15) / 16)];
        memset(texture, 0x5a, sizeof texture);
        a->textures(samples, tile, range, texture[0]);
        b->textures(samples, tile, range, texture[1]);
        assert_memory_equal(texture[0], texture[1], sizeof texture[0]);
        assert_true(a->rough_tile_cost(units, tile) == b->rough_tile_cost(units, tile));
        assert_true(a->rough_plain_cost(samples, tile, steps) == b->rough_plain_cost(samples, tile, steps));
        if (n % 2) random_units(&r, grid.columns * grid.rows);
        memcpy(others, units, sizeof units);
        const int32_t lambda = n % 5 == 0 ? 0 : n % 5 == 1 ? 1 : TSR_RATE_LAMBDA;
        a->choose(units, tile, lapped, lambda, n % 7 == 0, choice);
        b->choose(others, tile, lapped, lambda, n % 7 == 0, choice);
        assert_memory_equal(units, others, sizeof units);
        for (size_t i = 0; i < count; i++)
            if (tsr_abs(units[i]) >= TSR_COEFFICIENT_LIMIT) units[i] = TSR_COEFFICIENT_LIMIT - 1;
        if (n % 8) tsr_difference_dcs(units, grid); /* else DCs may leave their limit */
        memcpy(others, units, sizeof units);
        memset(back, 0xa5, sizeof back);
        memset(other_back, 0xa5, sizeof other_back);
        const bool good = a->inverse(units, tile, steps, lapped, range, back, scratch);
        assert_int_equal(good, b->inverse(others, tile, steps, lapped, range, other_back, scratch));
        if (good) assert_memory_equal(back, other_back, sizeof back);
        free(choice);
        free(scratch);
    }
}

/* Textures by the mean and the variance of each part, with samples beyond the tile as its last ones. */
TEST(textures)
{
    struct rng r = {102};
    for (int n = 0; n < 200; n++) {
        const struct tsr_tile tile = random_tile(&r);
        const uint32_t range = n % 4 == 0 ? 256 : n % 4 == 1 ? 4096 : n % 4 == 2 ? 65536 : 5;
        const int bits = tsr_max(8, tsr_bit_width(range - 1));
        uint32_t texture[(MOST + 15) / 16 * ((MOST + 15) / 16)], *at = texture;
        fill_samples(&r, range, n);
        tsr_tile_textures(samples, tile, range, texture);
        for (int32_t y = 0; y < tile.height; y += 16)
            for (int32_t x = 0; x < tile.width; x += 16) {
                uint64_t sum = 0, parts = 0;
                for (int k = 0; k < 4; k++) {
                    const int32_t row = y + k / 2 * 8, column = x + k % 2 * 8;
                    uint64_t all = 0, squares = 0;
                    if (row >= tile.height || column >= tile.width) continue;
                    for (int i = 0; i < 64; i++) {
                        const int32_t v = tsr_min(row + i / 8, tile.height - 1),
                                      u = tsr_min(column + i % 8, tile.width - 1);
                        const uint64_t sample = samples[tile.first + (size_t)v * tile.stride + (size_t)u],
                                       scaled = sample * 1024 >> bits;
                        all += scaled;
                        squares += scaled * scaled;
                    }
                    sum += tsr_log2_cost((uint32_t)((64 * squares - all * all) / 4096) + 464);
                    parts++;
                }
                expect(*at++ == sum / parts, "try %d, row %d, column %d", n, y, x);
            }
    }
    assert_int_equal(tsr_class_of_texture(20 * 4096 + 2047, 20 * 4096), TSR_PLAIN_CLASS);
    assert_int_equal(tsr_class_of_texture(20 * 4096 + 2048, 20 * 4096), TSR_PLAIN_CLASS + 1);
    assert_int_equal(tsr_class_of_texture(20 * 4096 - 2049, 20 * 4096), TSR_PLAIN_CLASS - 1);
    assert_int_equal(tsr_class_of_texture(0, 30 * 4096), 0);
    assert_int_equal(tsr_class_of_texture(30 * 4096, 0), TSR_STEP_CLASSES - 1);
}

/* FORMAT.md 8.4: a DC stays below the limit, in every row. */
TEST(dc_beyond_the_limit)
{
    const struct tsr_tile tile = {0, 40, 24, STRIDE};
    const struct tsr_block_steps steps = {.q = 0};
    void *scratch = must(malloc(tsr_lapped_scratch_bytes(tile.width)));
    for (int n = 0; n < 2; n++) {
        const struct tsr_lapped_form *form = tsr_lapped_form(n ? tsr_best_isa() : TSR_ISA_PLAIN);
        for (int row = 0; row < 6; row++) {
            memset(units, 0, sizeof units);
            units[16 * (10 * row + 3)] = TSR_COEFFICIENT_LIMIT - 1;
            assert_true(form->inverse(units, tile, steps, false, 256, back, scratch));
            memset(units, 0, sizeof units);
            units[16 * (10 * row + 3)] = TSR_COEFFICIENT_LIMIT - 1;
            units[16 * (10 * row + 4)] = 1;
            assert_false(form->inverse(units, tile, steps, false, 256, back, scratch));
        }
    }
    free(scratch);
}

/* A row of more blocks than are sorted at once. */
TEST(a_wide_row)
{
    enum { COLUMNS = 2500 };
    static int32_t wide[16 * COLUMNS], wide_too[16 * COLUMNS];
    const struct tsr_tile tile = {0, 4 * COLUMNS, 4, 4 * COLUMNS};
    struct rng r = {101};
    for (size_t i = 0; i < 16 * COLUMNS; i++) {
        wide[i] = (int32_t)rng_width(&r, rng_between(&r, 1, 11));
        if (rng_below(&r, 2)) wide[i] = -wide[i];
    }
    memcpy(wide_too, wide, sizeof wide);
    void *choice = must(malloc(tsr_choose_scratch_bytes(tile.width)));
    tsr_lapped_form(TSR_ISA_PLAIN)->choose(wide, tile, true, TSR_RATE_LAMBDA, false, choice);
    tsr_lapped_form(tsr_best_isa())->choose(wide_too, tile, true, TSR_RATE_LAMBDA, false, choice);
    assert_memory_equal(wide, wide_too, sizeof wide);
    free(choice);
}

/* The units of a DC at q 0 and its mean are one value. Leaves plain changed. */
static void expect_means(struct tsr_tile tile, bool lapped, const int32_t *mean, int fraction, void *scratch)
{
    const struct tsr_block_grid grid = tsr_block_grid(tile.width, tile.height, 1);
    const double step = tsr_quantiser_step(lapped ? TSR_LAP_QP : 0, 0) / 65536.0;
    tsr_lapped_form(TSR_ISA_PLAIN)->forward(samples, tile, (struct tsr_block_steps){.q = 0}, lapped, plain, scratch);
    for (int32_t b = 0; b < grid.columns * grid.rows; b++) {
        const double core = plain[16 * b] * step, error = core - mean[b] * (double)(256 >> fraction);
        const double most = 24 + (core < 0 ? -core : core) / 4096;
        expect(error <= most && error >= -most, "%f, %f away", core, error);
    }
}

/* With DCs apart: the forward way gives the means of the lapped blocks and all else as without, the inverse takes these
 * means as the transform's DCs; both forms. Coefficients in the places of DCs are refused. FORMAT.md 8.9. */
TEST(dcs_apart)
{
    static int32_t others[COEFFICIENTS], dcs[2][COEFFICIENTS / 16 + 1];
    static uint16_t other_back[SAMPLES];
    const struct tsr_lapped_form *form[2] = {tsr_lapped_form(TSR_ISA_PLAIN), tsr_lapped_form(tsr_best_isa())};
    struct rng r = {101};
    for (int n = 0; n < 300; n++) {
        const struct tsr_tile tile = random_tile(&r);
        const struct tsr_block_grid grid = tsr_block_grid(tile.width, tile.height, 1);
        const size_t blocks = (size_t)grid.columns * (size_t)grid.rows;
        const uint32_t range = n % 3 == 0 ? 256 : n % 3 == 1 ? 4096 : 65536;
        const bool lapped = n & 1;
        struct tsr_block_steps steps = {.q = rng_between(&r, 0, TSR_QP_INDEX_LIMIT), .coarser_from = SIZE_MAX};
        steps.classes = random_classes(&r, n);
        void *scratch = must(malloc(tsr_lapped_scratch_bytes(tile.width)));
        fill_samples(&r, range, n);
        form[0]->forward(samples, tile, steps, lapped, plain, scratch);
        steps.dc_fraction = tsr_dc_fraction(range);
        const int32_t low = steps.q + (lapped ? TSR_LAP_QP : 0);
        for (int f = 0; f < 2; f++) {
            dcs[f][blocks] = 0x5a5a5a;
            steps.dcs = dcs[f];
            form[f]->forward(samples, tile, steps, lapped, units, scratch);
            assert_int_equal(dcs[f][blocks], 0x5a5a5a);
            for (size_t b = 0; b < blocks; b++) {
                assert_int_equal(units[16 * b], 0);
                assert_memory_equal(units + 16 * b + 1, plain + 16 * b + 1, 15 * sizeof *units);
            }
        }
        assert_memory_equal(dcs[0], dcs[1], blocks * sizeof dcs[0][0]);
        expect_means(tile, lapped, dcs[0], steps.dc_fraction, scratch);
        /* Back: means of all sizes, and coefficients. */
        for (size_t i = 0; i < 16 * blocks; i++) units[i] = i % 16 ? rng_between(&r, -2, 2) : 0;
        for (size_t b = 0; b < blocks && n % 2; b++)
            dcs[0][b] = dcs[1][b] = rng_between(&r, -1, 1) * (int32_t)rng_width(&r, n % 4 == 1 ? 23 : 20);
        memcpy(others, units, sizeof units);
        for (int f = 0; f < 2; f++) {
            steps.dcs = dcs[f];
            uint16_t *to = f ? other_back : back;
            memset(to, 0xa5, sizeof back);
            assert_true(form[f]->inverse(f ? others : units, tile, steps, lapped, range, to, scratch));
        }
        assert_memory_equal(back, other_back, sizeof back);
        memcpy(plain, others, sizeof plain);
        restore_plainly(tile, steps, low, 4 * grid.columns, 4 * grid.rows);
        if (lapped) lap_all(4 * grid.columns, 4 * grid.rows, false);
        for (int32_t y = 0; y < tile.height; y++)
            for (int32_t x = 0; x < tile.width; x++)
                assert_int_equal(back[tile.first + (size_t)y * tile.stride + (size_t)x],
                                 tsr_lap_sample(fine[y][x], (int32_t)range - 1));
        units[16 * rng_below(&r, (uint32_t)blocks)] = 1;
        for (int f = 0; f < 2; f++) {
            memcpy(others, units, sizeof units);
            assert_false(form[f]->inverse(others, tile, steps, lapped, range, back, scratch));
        }
        free(scratch);
    }
}

/* A tile of means there and back, by both forms; with fine steps they come back nearly as they were. */
TEST(means)
{
    static int32_t others[COEFFICIENTS], mean[COEFFICIENTS], to[2][COEFFICIENTS];
    const struct tsr_lapped_form *form[2] = {tsr_lapped_form(TSR_ISA_PLAIN), tsr_lapped_form(tsr_best_isa())};
    struct rng r = {102};
    for (int n = 0; n < 200; n++) {
        const struct tsr_tile tile = tsr_tile_of_dcs(rng_between(&r, 1, 4 * MOST), rng_between(&r, 1, 4 * MOST));
        const size_t count = (size_t)tile.width * (size_t)tile.height,
                     coefficients = tsr_tile_coefficients(tile.width, tile.height);
        const int32_t q = n % 2 ? rng_between(&r, 0, TSR_QP_INDEX_LIMIT) : 0;
        void *scratch = must(malloc(tsr_lapped_scratch_bytes(tile.width)));
        for (size_t i = 0; i < count; i++)
            mean[i] = n % 2 ? rng_between(&r, -734000, 1783000) /* dc_plane.h */ : rng_between(&r, 0, 1 << 20);
        form[0]->forward_dcs(mean, tile, q, units, scratch);
        form[1]->forward_dcs(mean, tile, q, others, scratch);
        assert_memory_equal(units, others, coefficients * sizeof *units);
        for (size_t i = 0; i < coefficients; i++) others[i] = units[i] = (units[i] + 128) >> 8;
        tsr_difference_dcs(units, tsr_block_grid(tile.width, tile.height, 1));
        memcpy(others, units, sizeof units);
        for (int f = 0; f < 2; f++) assert_true(form[f]->inverse_dcs(f ? others : units, tile, q, to[f], scratch));
        assert_memory_equal(to[0], to[1], count * sizeof to[0][0]);
        for (size_t i = 0; i < count && q == 0; i++)
            expect(tsr_abs(to[0][i] - mean[i]) < 80, "%d %d", to[0][i], mean[i]);
        free(scratch);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(against_plain_blocks),
                                       cmocka_unit_test(small_errors),
                                       cmocka_unit_test(choices),
                                       cmocka_unit_test(rough_costs),
                                       cmocka_unit_test(forms),
                                       cmocka_unit_test(textures),
                                       cmocka_unit_test(dc_beyond_the_limit),
                                       cmocka_unit_test(a_wide_row),
                                       cmocka_unit_test(dcs_apart),
                                       cmocka_unit_test(means)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
