/* Training a plane's predictors on the CPU. FORMAT.md section 7.1; transform/predict/predictor.h has the arithmetic.
 *
 * Blocks of 16 x 16 samples are first dealt to the classes by what the median edge predictor leaves of them. Then, a
 * few rounds: each class is fitted to its blocks, and each block goes to the class that leaves least of it (sums of
 * magnitudes: choosing by log2(1 + 2 |e|) was 0.25 % larger). A subset of the blocks, defined by position, takes part;
 * all are labelled in the end, and then the median edge predictor competes too. */
#ifndef TSR_KERNELS_TRAINING_TRAIN_CPU_H
#define TSR_KERNELS_TRAINING_TRAIN_CPU_H

#include "entropy/predictor_training.h"
#include "kernels/effort.h"
#include "linear_cpu.h"

/* The plans that an effort compares for a plane with this number of samples. Returns their number; 0 if the effort has
 * no linear predictors. */
enum { TSR_TRAINING_PLANS = 3 };
int tsr_training_plans(struct tsr_effort_plan effort, uint64_t samples,
                       struct tsr_training_plan plans[TSR_TRAINING_PLANS]);

enum { TSR_SMALL_MAGNITUDES = 256 };

/* A plane in training. Arrays by block: tile_blocks for each tile. */
struct tsr_training {
    struct tsr_training_plan plan;
    struct tsr_predictor_model *model;
    const struct tsr_linear_ops *ops;
    uint32_t range;
    uint32_t tile_blocks; /* of a full tile */
    uint8_t *label;
    uint32_t *median_cost; /* by block: tsr_median_block */
    uint8_t first_label[TSR_COST_BINS];
    uint16_t magnitude_cost[TSR_SMALL_MAGNITUDES]; /* tsr_magnitude_cost */
    int32_t mean[TSR_CLASS_LIMIT];                 /* |residual| of a class's samples */
};

/* Sums of one part of the tiles, unsigned 64-bit numbers throughout (products modulo 2^64): those of all are added up.
 */
struct tsr_training_sums {
    uint64_t cost[TSR_LABELS_LIMIT], samples[TSR_LABELS_LIMIT];
    uint64_t bins[TSR_COST_BINS];
    uint64_t products[TSR_CLASS_LIMIT][TSR_SUMS_LIMIT]; /* last: of the classes in use alone */
};

/* Scratch of a part. */
struct tsr_training_scratch {
    int16_t weighted[TSR_FEATURES_LIMIT + 1][256], difference[TSR_FEATURES_LIMIT + 1][256];
    int32_t products[TSR_SUMS_LIMIT];
};

/* A tile and its earlier planes' tiles. */
struct tsr_training_tile {
    struct tsr_padded_tile own, earlier[TSR_REFERENCES_LIMIT];
    uint32_t number;
};

/* Passes over tiles (they add to sums) and what is done with the sums of all, in this order: */
void tsr_median_costs(const struct tsr_training *t, const struct tsr_training_tile *tile,
                      struct tsr_training_sums *sums);
void tsr_take_first_labels(struct tsr_training *t, const struct tsr_training_sums *sums);
/* for each round: */
void tsr_sum_tile(const struct tsr_training *t, const struct tsr_training_tile *tile, int round,
                  struct tsr_training_sums *sums, struct tsr_training_scratch *scratch);
void tsr_fit_classes(struct tsr_training *t, const struct tsr_training_sums *sums, struct tsr_solver *solver);
/* of the blocks that the next round looks at, and in the last round of all */
void tsr_label_tile(const struct tsr_training *t, const struct tsr_training_tile *tile, int round,
                    struct tsr_training_sums *sums);
void tsr_take_means(struct tsr_training *t, const struct tsr_training_sums *sums);
/* What residuals, weights and labels seem to cost, in bits x 4096, from the sums of the last labels: to compare plans.
 */
uint64_t tsr_training_cost(const struct tsr_training *t, const struct tsr_training_sums *sums);
/* in the end, with the sums of the last labels: classes without blocks go, the others are numbered anew. */
void tsr_drop_classes(struct tsr_training *t, const struct tsr_training_sums *sums,
                      uint8_t renumbered[TSR_LABELS_LIMIT]);

#endif
