/* Units of a tile to coefficients, and its rough costs: the text of both forms. Part of lapped_form.h. */

enum {
    ROUGH_BLOCKS = 8, /* this many of them at once */
    ROUGH_COSTS = 128 /* of magnitudes below 8 steps, which are looked up */
};

struct rough_costs {
    uint8_t of[ROUGH_COSTS]; /* by 1/16 of a step */
};

static struct rough_costs rough_costs(void)
{
    struct rough_costs costs;
    for (uint32_t t = 0; t < ROUGH_COSTS; t++) costs.of[t] = (uint8_t)tsr_rough_cost(t << 4);
    return costs;
}

TSR_HD_INLINE uint32_t rough_cost(const struct rough_costs *costs, int32_t units)
{
    const uint32_t magnitude = (uint32_t)tsr_abs(units);
    return magnitude >> 4 < ROUGH_COSTS ? costs->of[magnitude >> 4] : tsr_rough_cost(magnitude);
}

/* Some blocks, at most ROUGH_BLOCKS: four lines of their samples, and each one's q and class. */
struct rough_blocks {
    uint16_t at[4][ROUGH_BLOCKS][4];
    int32_t q[ROUGH_BLOCKS];
    uint8_t of_class[ROUGH_BLOCKS];
    int count;
};

#if defined(TSR_EIGHT_BLOCKS)
#include "rough_avx2.h"
#else
static uint64_t rough_tile_cost(const int32_t *units, struct tsr_tile tile)
{
    const struct rough_costs costs = rough_costs();
    const size_t count = tsr_tile_coefficients(tile.width, tile.height);
    uint64_t cost = 0;
    /* The DC's cost is that of its difference, which both have alike. */
    for (size_t i = 0; i < count; i += TSR_ROUGH_STEP * TSR_BLOCK_SAMPLES)
        for (size_t p = 1; p < TSR_BLOCK_SAMPLES; p++) cost += rough_cost(&costs, units[i + p]);
    return cost;
}
#endif

static uint64_t rough_blocks_cost(const struct rough_blocks *blocks, const struct rough_costs *costs)
{
    int32_t at[16][ROUGH_BLOCKS];
    uint64_t cost = 0;
#if defined(TSR_EIGHT_BLOCKS)
    if (blocks->count == ROUGH_BLOCKS && blocks->q[0] == blocks->q[ROUGH_BLOCKS - 1] && has_eight_units(blocks->q[0]))
        return rough_eight_cost(blocks, costs);
#endif
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < ROUGH_BLOCKS; k++) at[i][k] = blocks->at[i / 4][k][i % 4] << TSR_LAP_BITS;
    for (int i = 0; i < 4; i++)
        core_lines_forward(at[4 * i], at[4 * i + 1], at[4 * i + 2], at[4 * i + 3], ROUGH_BLOCKS);
    for (int j = 0; j < 4; j++) core_lines_forward(at[j], at[4 + j], at[8 + j], at[12 + j], ROUGH_BLOCKS);
    for (int i = 1; i < 16; i++)
        for (int k = 0; k < blocks->count; k++)
            cost += rough_cost(
                costs, tsr_class_units(at[i][k], blocks->q[k], tsr_norm_class(i / 4, i % 4), blocks->of_class[k]));
    return cost;
}

static uint64_t rough_plain_cost(const uint16_t *samples, struct tsr_tile tile, struct tsr_block_steps steps)
{
    const struct tsr_block_grid grid = tsr_block_grid(tile.width, tile.height, 1);
    const struct rough_costs costs = rough_costs();
    struct rough_blocks blocks = {.count = 0};
    int32_t row = 0, column = 0;
    uint64_t cost = 0;
    while (row < grid.rows) {
        const size_t first = tile.first + 4 * (size_t)row * tile.stride + 4 * (size_t)column;
        const uint8_t *classes = classes_of_blocks(steps.classes, grid, row);
        blocks.q[blocks.count] = steps.q + (first >= steps.coarser_from ? steps.coarser_by : 0);
        blocks.of_class[blocks.count] = classes ? classes[column / TSR_CLASS_BLOCKS] : TSR_PLAIN_CLASS;
        for (int i = 0; i < 4; i++) {
            const uint16_t *line = samples + tile.first + (size_t)tsr_min(4 * row + i, tile.height - 1) * tile.stride;
            uint16_t *to = blocks.at[i][blocks.count];
            if (4 * column + 4 <= tile.width)
                memcpy(to, line + 4 * column, 4 * sizeof *to);
            else
                for (int j = 0; j < 4; j++) to[j] = line[tsr_min(4 * column + j, tile.width - 1)];
        }
        for (column += TSR_ROUGH_STEP; column >= grid.columns && row < grid.rows; row++) column -= grid.columns;
        if (++blocks.count < ROUGH_BLOCKS) continue;
        cost += rough_blocks_cost(&blocks, &costs);
        blocks.count = 0;
    }
    return blocks.count > 0 ? cost + rough_blocks_cost(&blocks, &costs) : cost;
}

/* Magnitudes with a dead zone; those of the DCs are mended by the caller. */
static void round_row(const int32_t *restrict block, size_t count, uint16_t *restrict out)
{
    for (size_t i = 0; i < count * TSR_BLOCK_SAMPLES; i++) {
        const uint32_t magnitude = (uint32_t)tsr_round_units(block[i], TSR_ROUND_AC);
        out[i] = (uint16_t)(magnitude < TSR_MAGNITUDE_CAP ? magnitude : TSR_MAGNITUDE_CAP);
    }
}

static void round_dead_zone(int32_t *units, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (i % TSR_BLOCK_SAMPLES == 0) continue;
        const int32_t coefficient = tsr_round_units(units[i], TSR_ROUND_AC);
        units[i] = units[i] < 0 ? -coefficient : coefficient;
    }
}

static int total_of(const struct tsr_magnitudes *block)
{
    int total = 0;
    for (int p = 0; p < TSR_BLOCK_SAMPLES; p++) total += block->at[p] != 0;
    return total;
}

/* Rates by class and magnitude (15: or more), and of the number of places. */
struct choice_rates {
    struct tsr_magnitude_rates of[TSR_ENERGY_CLASSES][TSR_RATE_MAGNITUDES];
    int32_t places[TSR_ENERGY_CLASSES][TSR_BLOCK_SAMPLES + 1];
};

static void fill_rates(struct choice_rates *rates, int32_t lambda)
{
    for (int l = 0; l < TSR_ENERGY_CLASSES; l++) {
        for (int m = 0; m < TSR_RATE_MAGNITUDES; m++) rates->of[l][m] = tsr_rates_of_magnitude(l, m, lambda);
        for (int n = 0; n <= TSR_BLOCK_SAMPLES; n++) rates->places[l][n] = tsr_places_rate(l, n, lambda);
    }
}

/* The DCs of all blocks: units, in place, to what their coefficients differ from their predictions by. */
static void round_dcs(int32_t *units, struct tsr_block_grid grid)
{
    for (size_t b = 0; b < (size_t)grid.columns * (size_t)grid.rows; b++) {
        int32_t *dc = units + b * TSR_BLOCK_SAMPLES;
        const int32_t coefficient = tsr_round_units(*dc, TSR_ROUND_DC);
        *dc = *dc < 0 ? -coefficient : coefficient;
    }
    tsr_difference_dcs(units, grid);
}

/* A row's blocks as their neighbours see them before the choice. */
static void see_row(const int32_t *row, size_t columns, struct tsr_magnitudes *here)
{
    round_row(row, columns, here->at);
    for (size_t c = 0; c < columns; c++) /* now: a block that is loaded as a whole just after it would wait */
        here[c].at[0] = (uint16_t)tsr_seen_magnitude((uint32_t)tsr_abs(row[c * TSR_BLOCK_SAMPLES]), 0);
}

#if defined(TSR_CHOOSE_TILE)
#include TSR_CHOOSE_TILE
#else
/* The choice of a block's coefficients by the energies around it. Nothing is done above the highest place that could
 * be coded. */
TSR_HD_INLINE void choose_block(int32_t block[TSR_BLOCK_SAMPLES], const struct tsr_magnitudes *seen,
                                const struct tsr_magnitudes *left, const struct tsr_magnitudes *above, bool lapped,
                                const struct choice_rates *rates)
{
    struct tsr_place_errors errors[TSR_BLOCK_SAMPLES];
    uint16_t energy[TSR_BLOCK_SAMPLES];
    int32_t nearest[TSR_BLOCK_SAMPLES];
    for (int p = 0; p < TSR_BLOCK_SAMPLES; p++) {
        errors[p] = tsr_errors_of_place(block[p], tsr_place_weight(p, lapped));
        nearest[p] = errors[p].nearest;
    }
    const int top = tsr_coded_places(nearest) - 1;
    if (top <= 0) {
        memset(block + 1, 0, (TSR_BLOCK_SAMPLES - 1) * sizeof *block);
        return;
    }
    tsr_energies_around(left, above, above - 1, above + 1, energy);
    const int32_t *places = rates->places[tsr_block_energy_class(energy)];
    tsr_add_energies(seen, energy);
    struct tsr_block_choice choice = tsr_begin_choice(places[block[0] != 0]);
    for (int p = 1; p <= top; p++) {
        const int rate = tsr_min(nearest[p], TSR_RATE_MAGNITUDES - 1);
        tsr_choose_place(&choice, p, errors[p], rates->of[tsr_energy_class(energy[p])][rate], places[p + 1]);
    }
    const uint32_t less_at = tsr_places_of_less(&choice);
    for (int p = 1; p < TSR_BLOCK_SAMPLES; p++) block[p] = tsr_chosen_coefficient(block[p], p, choice.last, less_at);
}

static void choose_by_energies(int32_t *units, struct tsr_block_grid grid, bool lapped, int32_t lambda, void *scratch)
{
    struct choice_rates rates;
    const size_t columns = (size_t)grid.columns;
    struct tsr_magnitudes *above = (struct tsr_magnitudes *)scratch + 1, *here = above + columns + 2;
    fill_rates(&rates, lambda);
    round_dcs(units, grid);
    for (int32_t r = 0; r < grid.rows; r++) {
        int32_t *row = units + (size_t)r * columns * TSR_BLOCK_SAMPLES;
        see_row(row, columns, here);
        for (size_t c = 0; c < columns; c++)
            choose_block(row + TSR_BLOCK_SAMPLES * c, here + c, here + c - 1, above + c, lapped, &rates);
        struct tsr_magnitudes *swap = above;
        above = here;
        here = swap;
    }
}
#endif

static void choose_by_cavlc(int32_t *units, struct tsr_block_grid grid, bool lapped, int32_t lambda, void *scratch)
{
    const size_t columns = (size_t)grid.columns;
    struct tsr_magnitudes *above = (struct tsr_magnitudes *)scratch + 1, *here = above + columns + 2;
    round_dcs(units, grid);
    for (int32_t r = 0; r < grid.rows; r++) {
        int32_t *block = units + (size_t)r * columns * TSR_BLOCK_SAMPLES;
        see_row(block, columns, here);
        for (size_t c = 0; c < columns; c++, block += TSR_BLOCK_SAMPLES) {
            const int left = c > 0 ? total_of(&here[c - 1]) : -1, up = r > 0 ? total_of(&above[c]) : -1;
            tsr_optimise_cavlc(block, tsr_cavlc_context(left, up), lapped, lambda);
        }
        struct tsr_magnitudes *swap = above;
        above = here;
        here = swap;
    }
}

static void choose_coefficients(int32_t *units, struct tsr_tile tile, bool lapped, int32_t lambda, bool cavlc,
                                void *scratch)
{
    const struct tsr_block_grid grid = tsr_block_grid(tile.width, tile.height, 1);
    if (lambda == 0) {
        round_dcs(units, grid);
        round_dead_zone(units, (size_t)grid.columns * (size_t)grid.rows * TSR_BLOCK_SAMPLES);
        return;
    }
    memset(scratch, 0, tsr_choose_scratch_bytes(tile.width));
    (cavlc ? choose_by_cavlc : choose_by_energies)(units, grid, lapped, lambda, scratch);
}
