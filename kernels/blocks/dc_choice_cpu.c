/* What a plane's DCs cost about; see the header. */
#include "dc_choice_cpu.h"

#include <string.h>

/* The rows at work: sums of blocks, of four rows of blocks; quantised DCs and their differences' magnitudes, of two;
 * what neighbours see of blocks of means, of two. Rows of magnitudes have a zero before and after. */
struct dc_rows {
    int32_t columns, across; /* blocks, and blocks of means that are whole */
    int32_t *sum, *dc;
    uint32_t *seen;
    struct tsr_magnitudes *of_plane;
};

static struct dc_rows rows_at(int32_t tile_width, void *scratch)
{
    struct dc_rows r;
    r.columns = (tile_width + 3) / 4;
    r.across = r.columns / 4;
    r.sum = scratch;
    r.dc = r.sum + 4 * (size_t)r.columns;
    r.seen = (uint32_t *)(r.dc + 2 * (size_t)r.columns);
    r.of_plane = (struct tsr_magnitudes *)(r.seen + 2 * ((size_t)r.columns + 2));
    return r;
}

size_t tsr_dc_choice_scratch_bytes(int32_t tile_width)
{
    const size_t columns = (size_t)(tile_width + 3) / 4;
    return (6 * columns + 2 * (columns + 2)) * sizeof(int32_t) + 2 * (columns / 4 + 2) * sizeof(struct tsr_magnitudes);
}

/* Sums of the samples of a row's blocks, with their fraction: what the core transform gives. Columns and rows beyond
 * the tile repeat its last ones. */
static void sum_blocks(const uint16_t *samples, struct tsr_tile tile, int32_t row, int32_t columns, int32_t *sum)
{
    const int32_t whole = tile.width / 4;
    memset(sum, 0, (size_t)columns * sizeof *sum);
    for (int i = 0; i < 4; i++) {
        const uint16_t *line = samples + tile.first + (size_t)tsr_min(4 * row + i, tile.height - 1) * tile.stride;
        for (int32_t c = 0; c < whole; c++)
            sum[c] += (line[4 * c] + line[4 * c + 1] + line[4 * c + 2] + line[4 * c + 3]) << TSR_LAP_BITS;
        for (int j = 0; j < 4 && whole < columns; j++)
            sum[whole] += line[tsr_min(4 * whole + j, tile.width - 1)] << TSR_LAP_BITS;
    }
}

/* A row of DCs one by one. odd: which of the two rows it is; first: no row is above it. */
static uint64_t cost_apart(const struct dc_rows *r, const int32_t *sum, int odd, bool first, int32_t q)
{
    const size_t pitch = (size_t)r->columns;
    int32_t *dc = r->dc + (odd ? pitch : 0);
    const int32_t *up = r->dc + (odd ? 0 : pitch);
    uint32_t *seen = r->seen + 1 + (odd ? pitch + 2 : 0), *above = r->seen + 1 + (odd ? 0 : pitch + 2);
    uint64_t cost = 0;
    for (int32_t c = 0; c < r->columns; c++) {
        const int32_t units = tsr_quantiser_units(sum[c], q, 0), rounded = tsr_round_units(units, TSR_ROUND_DC);
        const int32_t w = c > 0   ? dc[c - 1]
                          : first ? 0
                                  : up[c],
                      n = first ? w : up[c], nw = first || c == 0 ? n : up[c - 1];
        dc[c] = units < 0 ? -rounded : rounded;
        seen[c] = tsr_seen_magnitude((uint32_t)tsr_abs(dc[c] - tsr_median_edge(w, n, nw)), 0);
        cost += tsr_dc_cost_apart(tsr_abs(units) - rounded * TSR_UNIT, seen[c], seen[c - 1], above[c],
                                  above[c - 1] + above[c + 1]);
    }
    return cost;
}

/* A row of blocks of means. */
static uint64_t cost_plane(const struct dc_rows *r, int odd, int32_t q, int fraction)
{
    const size_t pitch = (size_t)r->across + 2;
    struct tsr_magnitudes *seen = r->of_plane + 1 + (odd ? pitch : 0);
    const struct tsr_magnitudes *above = r->of_plane + 1 + (odd ? 0 : pitch);
    int32_t block[TSR_BLOCK_SAMPLES], units[TSR_BLOCK_SAMPLES], left = 0;
    uint64_t cost = 0;
    for (int32_t c = 0; c < r->across; c++) {
        for (int i = 0; i < TSR_BLOCK_SAMPLES; i++)
            block[i] = tsr_dc_mean(r->sum[i / 4 * r->columns + 4 * c + i % 4], fraction);
        tsr_core_forward(block);
        for (int p = 0; p < TSR_BLOCK_SAMPLES; p++) {
            const int at = tsr_zigzag(p);
            units[p] = tsr_quantiser_units(block[at], q, tsr_norm_class(at / 4, at % 4));
        }
        int places;
        cost += tsr_dc_see_plane(units, left, seen + c, &places);
        cost += tsr_dc_rate_of_plane(seen + c, above + c, places);
        left = units[0];
    }
    return cost;
}

struct tsr_dc_costs tsr_tile_dc_costs(const uint16_t *samples, struct tsr_tile tile, uint32_t above, int32_t q,
                                      int fraction, void *scratch)
{
    const struct dc_rows r = rows_at(tile.width, scratch);
    const int32_t rows = (tile.height + 3) / 4 / 4;
    struct tsr_dc_costs costs = {0, 0, 0};
    bool first = true;
    memset(scratch, 0, tsr_dc_choice_scratch_bytes(tile.width));
    for (int32_t row = 0; row < rows; row++) {
        if (!tsr_dc_row_counts(row, rows, r.columns, above)) {
            first = true; /* the row after it has none above that is known */
            continue;
        }
        for (int i = 0; i < 4; i++, first = false) {
            int32_t *sum = r.sum + (size_t)i * (size_t)r.columns;
            sum_blocks(samples, tile, 4 * row + i, r.columns, sum);
            costs.apart += cost_apart(&r, sum, i & 1, first, q + TSR_LAP_QP);
        }
        costs.plane += cost_plane(&r, row & 1, tsr_dc_choice_q(q + TSR_LAP_QP, fraction), fraction);
        costs.blocks += 4 * (uint64_t)r.columns;
    }
    return costs;
}
