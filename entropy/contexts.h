/* Contexts of path P: activity around a sample x its predicted value, cut at quantiles, merged by cost into code
 * tables. FORMAT.md section 7.3. The merging also serves the coefficient tables of path T.
 *
 * Static contexts need no state that adapts, so every sample's context is known from its neighbours alone: an
 * encoder codes all samples at once. */
#ifndef TSR_ENTROPY_CONTEXTS_H
#define TSR_ENTROPY_CONTEXTS_H

#include "code_cost.h"
#include "token.h"

enum {
    TSR_MAGNITUDE_LIMIT = 4095,       /* residual magnitudes saturate here: eight of them fit 16 bits */
    TSR_ACTIVITY_BINS = 60,           /* tokens of 0 .. 8 x 4095 */
    TSR_ACTIVITY_GROUPS = 10,         /* most groups, each of equally many samples */
    TSR_INTENSITY_BINS = 4096,        /* the predicted value's top 12 bits within the plane's range; 8 cost 0.7 % */
    TSR_INTENSITY_GROUPS = 25,        /* 8 cost 0.2 %, 16 gained 0.1 % */
    TSR_SAMPLED_ROWS = 2,             /* effort 1 looks at these rows of a period */
    TSR_SAMPLED_INTENSITY_GROUPS = 8, /* the groups that it then has */
    TSR_CELL_LIMIT = TSR_ACTIVITY_GROUPS * TSR_INTENSITY_GROUPS,
    TSR_TABLE_LIMIT = 24, /* code tables of a plane; 12 cost 0.2 %, 32 gained 0.02 % */
    TSR_MERGE_WINDOW = 8  /* cells merge with one of the next 8; no limit gained 0.01 % */
};

/* |residual| as the contexts see it. */
TSR_HD int32_t tsr_context_magnitude(int32_t residual)
{
    return tsr_min(tsr_abs(residual), TSR_MAGNITUDE_LIMIT);
}

/* What the magnitudes N, NW, NE, NN give to the activity; also of some magnitudes in a word each. */
TSR_HD uint32_t tsr_activity_above(uint32_t n, uint32_t nw, uint32_t ne, uint32_t nn)
{
    return 2 * n + nw + ne + nn;
}

/* The weights of the magnitudes W and WW. In a tile's first row there is nothing above: W stands for N, NW, NE, too,
 * and WW for NN. */
struct tsr_left_activity {
    int32_t w, ww;
};

TSR_HD struct tsr_left_activity tsr_left_activity(bool first_row)
{
    struct tsr_left_activity weight;
    weight.w = first_row ? 6 : 2;
    weight.ww = first_row ? 2 : 1;
    return weight;
}

/* Activity from the magnitudes W, N, NW, NE, WW, NN: 0 .. 8 x 4095. Weights by least squares per image gain 0.2 to
 * 0.4 %; other fixed weights tried, 3 3 1 2 1 1 and 1 1 1 1 0 0, are within 0.15 %. */
TSR_HD int32_t tsr_activity(int32_t w, int32_t n, int32_t nw, int32_t ne, int32_t ww, int32_t nn)
{
    const struct tsr_left_activity weight = tsr_left_activity(false);
    return weight.w * w + weight.ww * ww +
           (int32_t)tsr_activity_above((uint32_t)n, (uint32_t)nw, (uint32_t)ne, (uint32_t)nn);
}

TSR_HD int32_t tsr_activity_first_row(int32_t w, int32_t ww)
{
    const struct tsr_left_activity weight = tsr_left_activity(true);
    return weight.w * w + weight.ww * ww;
}

TSR_HD int tsr_activity_bin(int32_t activity)
{
    return tsr_token_symbol((uint32_t)activity);
}

/* Predictions 0 .. range-1 are shifted right by this to become intensity bins. */
TSR_HD int tsr_intensity_shift(uint32_t range)
{
    return tsr_max(0, tsr_bit_width(range - 1) - 12);
}

/* The group of a bin that has count of all total samples, when lower bins have before of them: the group in which the
 * middle of the bin's samples falls. */
TSR_HD int tsr_quantile_group(uint64_t before, uint32_t count, uint64_t total, int groups)
{
    return (int)((2 * before + count) * (uint64_t)groups / (2 * total));
}

/* Does training look at row y of a tile? period: 0, or that of effort 1. */
TSR_HD bool tsr_row_is_sampled(int32_t y, int32_t period)
{
    return period == 0 || y % period < TSR_SAMPLED_ROWS;
}

/* Cuts bins into at most groups runs of about equal counts. cuts[i] is the first bin of group i + 1; returns
 * the number of cuts, at most groups - 1. A bin belongs where the middle of its samples falls. */
TSR_HD int tsr_cut_quantiles(const uint32_t *counts, int bins, int groups, uint16_t *cuts)
{
    uint64_t total = 0, before = 0;
    int cut_count = 0, group = 0;
    bool first = true;
    for (int bin = 0; bin < bins; bin++) total += counts[bin];
    for (int bin = 0; bin < bins; bin++) {
        if (counts[bin] == 0) continue;
        const int here = tsr_quantile_group(before, counts[bin], total, groups);
        if (!first && here != group) cuts[cut_count++] = (uint16_t)bin;
        group = here;
        first = false;
        before += counts[bin];
    }
    return cut_count;
}

/* The cell of a group of activity and one of intensity. */
TSR_HD int tsr_cell_of(int activity_group, int intensity_group, int intensity_groups)
{
    return activity_group * intensity_groups + intensity_group;
}

/* A bin's group. */
TSR_HD uint8_t tsr_group_of(const uint16_t *cuts, int cut_count, int bin)
{
    int group = 0;
    while (group < cut_count && bin >= cuts[group]) group++;
    return (uint8_t)group;
}

/* group_of[bin] from cuts. */
TSR_HD void tsr_group_bins(const uint16_t *cuts, int cut_count, int bins, uint8_t *group_of)
{
    int group = 0;
    for (int bin = 0; bin < bins; bin++) {
        while (group < cut_count && bin >= cuts[group]) group++;
        group_of[bin] = (uint8_t)group;
    }
}

/* Merging. Cells stand in a line, activity-major; each pair of cells at most TSR_MERGE_WINDOW places apart
 * may become one table. The pair that saves most goes first, until none saves and at most
 * TSR_TABLE_LIMIT tables are left. */
enum { TSR_MERGE_SYMBOLS = 384 }; /* most symbols of a cell */

/* A count times its logarithm. The symbols of a table cost this of their total, less this of each of them. */
TSR_HD uint64_t tsr_count_cost(uint32_t count)
{
    return (uint64_t)count * tsr_log2_cost(count);
}

TSR_HD uint64_t tsr_symbols_cost(uint64_t of_total, uint64_t of_symbols)
{
    return of_total > of_symbols ? of_total - of_symbols : 0;
}

/* The estimated size of a table's description, in bits: by its used symbols and the gaps between them. */
enum { TSR_DESCRIBED_TABLE = 8, TSR_DESCRIBED_SYMBOL = 2, TSR_DESCRIBED_GAP = 6 };

TSR_HD uint32_t tsr_description_cost(uint32_t used, uint32_t gaps)
{
    return (TSR_DESCRIBED_TABLE + TSR_DESCRIBED_SYMBOL * used + TSR_DESCRIBED_GAP * gaps) * TSR_COST_BIT;
}

/* Is another pair of tables merged, where the best pair saves something, or does not? */
TSR_HD bool tsr_merges_on(int tables, bool saves)
{
    return tables > 1 && (saves || tables > TSR_TABLE_LIMIT);
}

#endif
