/* The residuals of a tile, row by row: prediction, residual, and what the contexts need, each a loop over independent
 * columns. FORMAT.md sections 7.1 to 7.3. */
#ifndef TSR_KERNELS_RESIDUALS_RESIDUAL_ROWS_CPU_H
#define TSR_KERNELS_RESIDUALS_RESIDUAL_ROWS_CPU_H

#include <string.h>

#include "entropy/frame_model.h"
#include "entropy/runs.h"
#include "kernels/training/train_cpu.h"

/* The linear predictors of a tile. */
struct tsr_tile_predictors {
    const struct tsr_predictor_model *model;
    const struct tsr_linear_ops *ops;
    const uint8_t *label; /* of its blocks, row by row */
    struct tsr_training_tile tile;
};

struct tsr_residual_rows {
    const uint16_t *samples;
    struct tsr_tile tile;
    uint32_t range;
    const struct tsr_tile_predictors *predictors; /* NULL: the median edge predictor alone */
    int32_t y;                                    /* the next row */
    int16_t *sample[2], *magnitude[3];
    int16_t *prediction;
    /* of the last row: */
    uint16_t *folded, *intensity;
    int16_t *activity;
};

size_t tsr_residual_rows_bytes(int32_t tile_width);
struct tsr_residual_rows tsr_residual_rows(const uint16_t *samples, struct tsr_tile tile, uint32_t range,
                                           const struct tsr_tile_predictors *predictors, void *scratch);

/* Works out row y and steps to the next. */
void tsr_next_row(struct tsr_residual_rows *rows);

/* Goes on at row y instead, farther down. Activities are right from the third row on. */
void tsr_skip_to_row(struct tsr_residual_rows *rows, int32_t y);

/* Returns the first column from c on whose bit is set, bit c % 32 of word c / 32; if there is none, a number that is
 * not less than width. */
TSR_HD_INLINE int32_t tsr_next_bit(const uint32_t *words, int32_t c, int32_t width)
{
    if (c >= width) return width;
    uint32_t word = words[c / 32] >> c % 32 << c % 32;
    while (word == 0) {
        c = c / 32 * 32 + 32;
        if (c >= width) return width;
        word = words[c / 32];
    }
    return c / 32 * 32 + tsr_floor_log2(word & (0u - word));
}

/* tsr_run_end, sixteen columns at once while they are 0. */
static inline int32_t tsr_long_run_end(const uint16_t *folded, int32_t first, int32_t width)
{
    int32_t end = first + 1;
    for (; end + 16 <= width; end += 16) {
        uint64_t four[4];
        memcpy(four, folded + end, sizeof four);
        if (four[0] | four[1] | four[2] | four[3]) break;
    }
    return tsr_run_end(folded, end - 1, width);
}

#endif
