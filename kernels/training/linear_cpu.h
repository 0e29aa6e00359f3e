/* Linear predictors on the CPU: predictions of 16 samples at once, what blocks cost under each class, and the sums that
 * training needs. FORMAT.md section 7.1, transform/predict/predictor.h.
 *
 * Each routine has several forms: plain C in linear_cpu.c; vectors in linear_sse2.c, linear_avx2.c and linear_avx512.c,
 * which share their text, linear_vectors.h. tsr_linear_ops chooses, and test_linear_cpu holds them equal. */
#ifndef TSR_KERNELS_TRAINING_LINEAR_CPU_H
#define TSR_KERNELS_TRAINING_LINEAR_CPU_H

#include "entropy/predictor_model.h"
#include "kernels/machine/isa_cpu.h"

/* A tile of samples less 2^15, with TSR_GUARD columns on its left and at least 16 + TSR_GUARD after its width: on the
 * left, those of row r hold the first sample of row r - 1 (row 0: its own first); after, the row's last sample. */
struct tsr_padded_tile {
    const int16_t *first; /* row 0, column 0 */
    ptrdiff_t pitch;
    int32_t width, height;
};

/* Samples of the room that such a tile takes; the tile in its room; and a copy of one to its room. */
size_t tsr_padded_samples(int32_t width, int32_t height);
struct tsr_padded_tile tsr_padded_tile(const int16_t *room, int32_t width, int32_t height);
void tsr_pad_tile(const uint16_t *samples, size_t stride, int32_t width, int32_t height, int16_t *room);

/* The guards beside a row: on its left, which copy the first sample of the row above; and count of them at its end. */
static inline void tsr_guard_left(int16_t *row, int16_t above)
{
    for (int k = 1; k <= TSR_GUARD; k++) row[-k] = above;
}

static inline void tsr_guard_right(int16_t *end, int count)
{
    for (int k = 0; k < count; k++) end[k] = end[-1];
}

/* The sample at column 0 of row y (y > 0) of a tap in its plane's tile. */
static inline const int16_t *tsr_tap_at(const struct tsr_padded_tile *tile, struct tsr_tap_place place, int32_t y)
{
    const int32_t row =
        place.plane == 0 ? tsr_neighbour_row(y, place.up) : tsr_reference_row(y, place.up, tile->height);
    return tile->first + row * tile->pitch + place.right;
}

/* tap[k]: that of tap k. earlier: the tiles of the earlier planes, nearest first. */
void tsr_tap_row(struct tsr_predictor_shape shape, const struct tsr_padded_tile *tile,
                 const struct tsr_padded_tile *earlier, int32_t y, const int16_t *tap[TSR_TAPS_LIMIT]);

/* Up to 16 columns of some rows of a tile. The taps of each row lie pitch samples after those of the row before. */
struct tsr_tap_rows {
    const int16_t *tap[TSR_TAPS_LIMIT]; /* column 0 of the first row */
    const int16_t *samples;             /* the same of the samples themselves */
    ptrdiff_t pitch;
    int taps;
    int32_t column, columns, rows;
    int16_t highest; /* that a prediction may be, less 2^15 */
};

/* The block's rows from y on whose taps move with their rows: at least one, up to the row before end. Near the tile's
 * first and last row there are fewer. Sets tap, samples, pitch, taps and rows. */
void tsr_tap_rows(struct tsr_predictor_shape shape, const struct tsr_padded_tile *tile,
                  const struct tsr_padded_tile *earlier, int32_t y, int32_t end, struct tsr_tap_rows *rows);

/* A class's weights are TSR_TAPS_LIMIT numbers, of which the first taps count. */
struct tsr_linear_ops {
    /* Predictions of 16 samples from column on, less 2^15, at most highest. */
    void (*predict)(const int16_t *const *tap, int taps, const int16_t *weight, int32_t column, int16_t highest,
                    int16_t prediction[16]);
    /* The same, with their fractions (tsr_prediction_fraction). */
    void (*predict_finely)(const int16_t *const *tap, int taps, const int16_t *weight, int32_t column, int16_t highest,
                           int16_t prediction[16], int16_t fraction[16]);
    /* For each of count classes, adds min(|sample - prediction|, 2^15 - 1) of all samples of some rows to its cost: bit
     * r of which says whether row r counts. */
    void (*costs)(const struct tsr_tap_rows *rows, uint32_t which, const int16_t *const *weight, int count,
                  uint32_t *cost);
    /* The same of the median edge predictor, of which the taps are not needed; and adds how many it predicts. */
    void (*median_costs)(const struct tsr_tap_rows *rows, uint32_t *cost, int32_t *zeros);
    /* |sample - prediction| of row r under a class, or the median edge predictor if weight is NULL. Returns bit 2 c for
     * each of the columns c where it is not 0. */
    uint32_t (*magnitudes)(const struct tsr_tap_rows *rows, int32_t r, const int16_t *weight, uint16_t magnitude[16]);
    /* Each sample's tsr_fit_weight under a class, or the median edge predictor if weight is NULL: 16 numbers a row, 0
     * after the columns. */
    void (*fit_weights)(const struct tsr_tap_rows *rows, const int16_t *weight, int32_t mean, int16_t (*fit)[16]);
    /* For each feature and, as the last, the target (first[f] - second[f], at the rows' places): 16 differences
     * (tsr_difference) a row, and those times fit. The first at place at. */
    void (*differences)(const struct tsr_tap_rows *rows, const int16_t *const *first, const int16_t *const *second,
                        int count, int shift, const int16_t (*fit)[16], int16_t (*difference)[256],
                        int16_t (*weighted)[256], int at);
    /* sums[i (i+1)/2 + j] = sum over the samples (a multiple of 16) of weighted[i] x difference[j], j <= i < n. */
    void (*products)(const int16_t (*weighted)[256], const int16_t (*difference)[256], int n, int samples,
                     int32_t *sums);
};

/* The forms: plain C, and those that a compiler for x86 makes. */
extern const struct tsr_linear_ops tsr_linear_plain, tsr_linear_sse2, tsr_linear_avx2, tsr_linear_avx512;

/* The one to use. On x86-64 that of TSR_ISA_PLAIN is SSE2's, which every such machine has. */
const struct tsr_linear_ops *tsr_linear_ops(enum tsr_isa isa);

#endif
