/* What training a plane's linear predictors decides, from sums over its blocks; both engines call this. FORMAT.md
 * section 7.1 (its encoder), transform/predict/predictor.h for the arithmetic, kernels/training/train_cpu.h for the
 * order of the steps.
 */
#ifndef TSR_ENTROPY_PREDICTOR_TRAINING_H
#define TSR_ENTROPY_PREDICTOR_TRAINING_H

#include "code_cost.h"
#include "predictor_model.h"

enum {
    TSR_COST_BINS = 320,           /* of a block's mean magnitude, for the first labels */
    TSR_DESCRIBED_WEIGHT = 9,      /* bits that a weight's description is taken to cost */
    TSR_COST_MOST = (1 << 15) - 1, /* magnitudes of residuals saturate here in costs of blocks */
    TSR_FLAT_SHARP = 4,
    TSR_BLOCK_COST_BITS = 24,
    TSR_COARSE_STRIDE = 4, /* of the blocks that other rounds look at, coarse ones look at one in n */
    TSR_FEW_CLASSES = 16,
    TSR_SHORTLIST = 4,      /* classes of few; of more twice that */
    TSR_SHORTLIST_ROW = 4,  /* of each eight rows the first of two */
    TSR_TILE_DIAGONALS = 61 /* about: 1024 x 64 samples have 73, 512 x 128 have 53, 256 x 256 have 61 */
};
static_assert(TSR_PREDICTOR_BLOCK * TSR_PREDICTOR_BLOCK * TSR_COST_MOST < 1 << TSR_BLOCK_COST_BITS,
              "the flag stands above the cost");

/* What is known of a block: the sum of the median edge predictor's |residual|, each at most TSR_COST_MOST; above it,
 * whether the block is flat: of its samples half or more are what that predictor says, and the others differ by more
 * than TSR_FLAT_SHARP on average: text, lines, test patterns. Such a block takes no part in the fits, which its few
 * edges would spoil, and gets its label by another measure (the sum of tsr_magnitude_cost: there a residual of 0 costs
 * next to nothing, and a linear predictor that leaves less of a sharp edge rings around it); EFFORT.md has what that
 * gives. */
TSR_HD uint32_t tsr_median_block(uint32_t cost, int32_t zeros, int32_t samples)
{
    const bool flat = 2 * zeros >= samples && cost > TSR_FLAT_SHARP * (uint32_t)(samples - zeros);
    return cost | (flat ? 1u << TSR_BLOCK_COST_BITS : 0u);
}

TSR_HD uint32_t tsr_median_block_cost(uint32_t block)
{
    return block & ((1u << TSR_BLOCK_COST_BITS) - 1u);
}

TSR_HD bool tsr_median_block_is_flat(uint32_t block)
{
    return block >> TSR_BLOCK_COST_BITS != 0;
}

/* What training is told, by bin and size of the plane. */
struct tsr_training_plan {
    uint8_t set;           /* of neighbours, 1..3 */
    uint8_t classes;       /* 1..TSR_CLASS_LIMIT */
    uint8_t rounds;        /* 1.. */
    uint8_t coarse_rounds; /* of these, the first ones, which look at fewer blocks */
    uint32_t block_stride; /* one block in n is looked at */
};

/* One block in n is looked at in this round. Where classes are far from their blocks, few blocks tell the way. */
TSR_HD uint32_t tsr_round_stride(struct tsr_training_plan plan, int round)
{
    return round < plan.coarse_rounds ? TSR_COARSE_STRIDE * plan.block_stride : plan.block_stride;
}

TSR_HD int32_t tsr_blocks_across(int32_t width)
{
    return (width + TSR_PREDICTOR_BLOCK - 1) / TSR_PREDICTOR_BLOCK;
}

/* A block's place in its tile. Row 0 of a tile is predicted by W whatever the label, so it does not count. */
struct tsr_block_span {
    int32_t column, columns, row, end;
};

TSR_HD struct tsr_block_span tsr_block_span(int32_t width, int32_t height, int32_t x, int32_t y)
{
    struct tsr_block_span b;
    b.column = x * TSR_PREDICTOR_BLOCK;
    b.columns = tsr_min(TSR_PREDICTOR_BLOCK, width - b.column);
    b.row = tsr_max(1, y * TSR_PREDICTOR_BLOCK);
    b.end = tsr_min(height, (y + 1) * TSR_PREDICTOR_BLOCK);
    return b;
}

/* Blocks that take part: every stride-th, along diagonals, so that no column of blocks is left out; a tile's diagonals
 * follow those of the tile before, so that no tile is, where the stride is longer than a tile has diagonals. tile: its
 * number. The first of a row of blocks. */
TSR_HD int32_t tsr_first_training_block(uint32_t stride, uint32_t tile, int32_t y)
{
    const uint32_t before = (3u * (uint32_t)y + (uint32_t)TSR_TILE_DIAGONALS * tile) % stride;
    return (int32_t)(before == 0 ? 0 : stride - before);
}

TSR_HD bool tsr_block_takes_part(uint32_t stride, uint32_t tile, int32_t x, int32_t y)
{
    return (uint32_t)x % stride == (uint32_t)tsr_first_training_block(stride, tile, y);
}

/* A block is tried with all classes on some of its rows alone, and with the few that leave least of those on the
 * others. This many of classes; which rows (all where the last are missing). */
TSR_HD int tsr_shortlist(int classes)
{
    return tsr_min(classes, classes <= TSR_FEW_CLASSES ? TSR_SHORTLIST : 2 * TSR_SHORTLIST);
}

TSR_HD bool tsr_is_shortlist_row(struct tsr_block_span block, int32_t row)
{
    return block.end % TSR_PREDICTOR_BLOCK != 0 || row % 8 / 2 == TSR_SHORTLIST_ROW / 2;
}

/* The bin of a block's median edge cost over this many samples. */
TSR_HD int tsr_block_cost_bin(uint32_t cost, int32_t samples)
{
    const uint32_t v = samples > 0 ? (uint32_t)((uint64_t)cost * 16 / (uint64_t)samples) : 0;
    if (v < 64) return (int)v;
    const int exponent = tsr_floor_log2(v);
    return tsr_min(TSR_COST_BINS - 1, 64 + (exponent - 6) * 16 + (int)((v >> (exponent - 4)) & 15u));
}

/* The first label of a bin with here blocks of all total, after before blocks of lower bins: classes get equal
 * shares. */
TSR_HD uint8_t tsr_first_label(uint64_t before, uint64_t here, uint64_t total, int classes)
{
    if (total == 0) return 0;
    return (uint8_t)tsr_min(classes - 1, (int32_t)((2 * before + here) * (uint64_t)classes / (2 * total)));
}

/* Weights of a class from those of its features: W alone where they are out of all bounds. */
TSR_HD void tsr_take_weights(struct tsr_predictor_shape shape, int16_t of_feature[TSR_FEATURES_LIMIT], int16_t *weight)
{
    if (tsr_complete_weights(shape, of_feature, weight)) return;
    for (int f = 0; f < TSR_FEATURES_LIMIT; f++) of_feature[f] = 0;
    (void)tsr_complete_weights(shape, of_feature, weight);
}

/* |residual| of a class's samples, from the sums of their costs. */
TSR_HD int32_t tsr_class_mean(uint64_t cost, uint64_t samples)
{
    return samples ? (int32_t)(cost / samples) : 0;
}

/* What residuals, weights and labels of these sums by label seem to cost, in bits x 4096: to compare plans. */
TSR_HD uint64_t tsr_cost_of_training(const uint64_t *cost, const uint64_t *samples, int classes, int features)
{
    const uint64_t block = TSR_PREDICTOR_BLOCK * TSR_PREDICTOR_BLOCK;
    uint64_t bits = 0, all = 0;
    for (int c = 0; c <= classes; c++) {
        const uint64_t n = samples[c];
        if (n == 0) continue;
        all += n;
        bits += n * tsr_log2_cost((uint32_t)((2 * cost[c] + n) * 256 / n)); /* log2(1 + 2 mean), and 8 */
        if (c < classes) bits += (uint64_t)features * TSR_DESCRIBED_WEIGHT * TSR_COST_BIT;
    }
    for (int c = 0; c <= classes; c++) {
        const uint64_t n = samples[c] / block;
        if (n > 0) bits += n * (tsr_log2_cost((uint32_t)(all / block)) - tsr_log2_cost((uint32_t)n));
    }
    return bits;
}

/* Classes without samples go; new numbers of all labels. */
TSR_HD void tsr_drop_empty_classes(struct tsr_predictor_model *model, const uint64_t *samples, int classes,
                                   uint8_t renumbered[TSR_LABELS_LIMIT])
{
    int kept = 0;
    for (int c = 0; c < classes; c++) {
        renumbered[c] = (uint8_t)kept;
        if (samples[c] == 0) continue;
        for (int k = 0; kept != c && k < TSR_TAPS_LIMIT; k++) model->weight[kept][k] = model->weight[c][k];
        kept++;
    }
    renumbered[classes] = (uint8_t)kept;
    model->classes = (uint8_t)kept;
}

#endif
