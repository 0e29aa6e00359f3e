/* Linear predictors of path P: their neighbours, their arithmetic, and how they are trained. FORMAT.md section 7.1.
 *
 * Each block of 16 x 16 samples names one predictor of its plane: a class of linear predictors, or the median edge
 * predictor. A linear one takes 10, 18 or 30 causal neighbours, and in later planes of a frame also samples of earlier
 * planes at and around the place. Its weights are integers, in 1024ths; those of the neighbours add up to 1024, those
 * of an earlier plane to 0, so that a constant added to a plane changes no residual.
 *
 * Training (not part of the format, but equal bytes need that every engine does exactly this) is least squares of the
 * differences to W, reweighted by the last fit's residuals: sums of products of small integers, exact in any order, and
 * a fixed-point solution. */
#ifndef TSR_TRANSFORM_PREDICT_PREDICTOR_H
#define TSR_TRANSFORM_PREDICT_PREDICTOR_H

#include "transform/hd.h"

enum {
    TSR_PREDICTOR_BLOCK = 16, /* side of the blocks that name a predictor; 8 cost 0.2 % */
    TSR_NEIGHBOURS_LIMIT = 30,
    TSR_REFERENCES_LIMIT = 2, /* earlier planes */
    TSR_REFERENCE_TAPS = 5,
    TSR_TAPS_LIMIT = TSR_NEIGHBOURS_LIMIT + TSR_REFERENCES_LIMIT * TSR_REFERENCE_TAPS,
    TSR_FEATURES_LIMIT = TSR_TAPS_LIMIT - 1 - TSR_REFERENCES_LIMIT, /* taps without those that follow from the others */
    TSR_CLASS_LIMIT = 24,
    TSR_WEIGHT_SHIFT = 10, /* 8 bits cost 0.05 %, 6 bits 0.35 % */
    TSR_WEIGHT_HALF = 1 << (TSR_WEIGHT_SHIFT - 1),
    TSR_SAMPLE_BIAS = 1 << 15, /* sums of weighted samples are of samples less this */
    TSR_WEIGHT_LIMIT = 8191,   /* largest magnitude of a weight that the file holds */
    TSR_GUARD = 8              /* columns beside a row that taps may reach: 6 to the left, 4 to the right */
};

/* Sets of neighbours by the number in the file; 0 is the median edge predictor alone. */
TSR_TABLE(uint8_t, tsr_neighbours, 4, 0, 10, 18, 30);

/* Rows up and columns to the right of each neighbour; the first is W, whose weight follows from the others. */
TSR_TABLE(int8_t, tsr_tap_up, TSR_NEIGHBOURS_LIMIT, 0, 1, 1, 1, 0, 2, 2, 1, 2, 1, 0, 3, 2, 2, 1, 1, 3, 3, 0, 4, 0, 2, 2,
          3, 3, 1, 1, 4, 4, 0);
TSR_TABLE(int8_t, tsr_tap_right, TSR_NEIGHBOURS_LIMIT, -1, 0, -1, 1, -2, 0, 1, -2, -1, 2, -3, 0, 2, -2, 3, -3, 1, -1,
          -4, 0, -5, 3, -3, 2, -2, 4, -4, 1, -1, -6);

/* The same of an earlier plane's taps: W, whose weight follows from the others, the place itself, N, E, S. */
TSR_TABLE(int8_t, tsr_reference_up, TSR_REFERENCE_TAPS, 0, 0, 1, 0, -1);
TSR_TABLE(int8_t, tsr_reference_right, TSR_REFERENCE_TAPS, -1, 0, 0, 1, 0);

/* The shape of a plane's predictors. Taps are numbered: neighbours, then the taps of each earlier plane. */
struct tsr_predictor_shape {
    uint8_t neighbours; /* 10, 18, 30; 0: none */
    uint8_t references; /* earlier planes, 0..2 */
};

TSR_HD int tsr_taps(struct tsr_predictor_shape shape)
{
    return shape.neighbours + shape.references * TSR_REFERENCE_TAPS;
}

/* Where a tap lies: in the plane itself (0) or an earlier one (1, 2), rows up, and columns to the right. */
struct tsr_tap_place {
    int plane, up, right;
};

TSR_HD struct tsr_tap_place tsr_neighbour_place(int k)
{
    struct tsr_tap_place place;
    place.plane = 0;
    place.up = TSR_AT(tsr_tap_up)[k];
    place.right = TSR_AT(tsr_tap_right)[k];
    return place;
}

TSR_HD struct tsr_tap_place tsr_reference_place(int earlier, int i)
{
    struct tsr_tap_place place;
    place.plane = 1 + earlier;
    place.up = TSR_AT(tsr_reference_up)[i];
    place.right = TSR_AT(tsr_reference_right)[i];
    return place;
}

TSR_HD struct tsr_tap_place tsr_tap_place(int neighbours, int tap)
{
    if (tap < neighbours) return tsr_neighbour_place(tap);
    return tsr_reference_place((tap - neighbours) / TSR_REFERENCE_TAPS, (tap - neighbours) % TSR_REFERENCE_TAPS);
}

/* The row that holds a neighbour of row y, which lies up rows above it: the first row stands for those above it. */
TSR_HD int32_t tsr_neighbour_row(int32_t y, int up)
{
    return tsr_max(0, y - up);
}

/* The same of an earlier plane's taps: the last row stands for those below it, too. */
TSR_HD int32_t tsr_reference_row(int32_t y, int up, int32_t height)
{
    return tsr_max(0, tsr_min(height - 1, y - up));
}

TSR_HD int tsr_features(struct tsr_predictor_shape shape)
{
    return shape.neighbours - 1 + shape.references * (TSR_REFERENCE_TAPS - 1);
}

/* The tap of feature number f, and the tap that it is the difference to. */
TSR_HD int tsr_feature_tap(struct tsr_predictor_shape shape, int f)
{
    if (f < shape.neighbours - 1) return f + 1;
    const int r = f - (shape.neighbours - 1);
    return shape.neighbours + r / (TSR_REFERENCE_TAPS - 1) * TSR_REFERENCE_TAPS + r % (TSR_REFERENCE_TAPS - 1) + 1;
}

TSR_HD int tsr_feature_base(struct tsr_predictor_shape shape, int f)
{
    if (f < shape.neighbours - 1) return 0;
    return shape.neighbours + (f - (shape.neighbours - 1)) / (TSR_REFERENCE_TAPS - 1) * TSR_REFERENCE_TAPS;
}

/* Weights of all taps from those of the features; false if their magnitudes add up to more than 65535, so that sums of
 * products with samples less 2^15 fit 32 bits. */
TSR_HD bool tsr_complete_weights(struct tsr_predictor_shape shape, const int16_t *of_feature, int16_t *weight)
{
    int32_t base[1 + TSR_REFERENCES_LIMIT] = {1 << TSR_WEIGHT_SHIFT, 0, 0}, sum = 0;
    for (int f = 0; f < tsr_features(shape); f++) {
        const int from = tsr_feature_base(shape, f);
        weight[tsr_feature_tap(shape, f)] = of_feature[f];
        base[from == 0 ? 0 : 1 + (from - shape.neighbours) / TSR_REFERENCE_TAPS] -= of_feature[f];
        sum += tsr_abs(of_feature[f]);
    }
    for (int b = 0; b <= shape.references; b++) {
        if (tsr_abs(base[b]) > INT16_MAX) return false;
        weight[b == 0 ? 0 : shape.neighbours + (b - 1) * TSR_REFERENCE_TAPS] = (int16_t)base[b];
        sum += tsr_abs(base[b]);
    }
    return sum <= 65535;
}

/* One half and the sum of weight x (sample - 2^15) to a prediction in 0 .. range-1. */
TSR_HD int32_t tsr_weighted_prediction(int32_t sum_from_half, int32_t range)
{
    return tsr_max(0, tsr_min(range - 1, tsr_asr(sum_from_half, TSR_WEIGHT_SHIFT) + TSR_SAMPLE_BIAS));
}

TSR_HD int32_t tsr_linear_prediction(int32_t sum, int32_t range)
{
    return tsr_weighted_prediction(sum + TSR_WEIGHT_HALF, range);
}

/* ---- Training ------------------------------------------------------------------------------------------------- */

enum {
    TSR_DIFFERENCE_LIMIT = 1023, /* differences saturate here: edges say little about the predictor */
    TSR_FIT_WEIGHT_LIMIT = 7,
    TSR_SUMS_LIMIT = (TSR_FEATURES_LIMIT + 1) * (TSR_FEATURES_LIMIT + 2) / 2
};
/* The products of a block's samples add up in 32 bits. */
static_assert((int64_t)TSR_FIT_WEIGHT_LIMIT * TSR_DIFFERENCE_LIMIT * TSR_DIFFERENCE_LIMIT * TSR_PREDICTOR_BLOCK *
                      TSR_PREDICTOR_BLOCK <=
                  INT32_MAX,
              "a block's sums must fit 32 bits");

/* Differences of samples are shifted right by this before they saturate. */
TSR_HD int tsr_difference_shift(uint32_t range)
{
    return tsr_max(0, tsr_bit_width(range - 1) - 13);
}

TSR_HD int32_t tsr_difference(int32_t difference, int shift)
{
    return tsr_max(-TSR_DIFFERENCE_LIMIT, tsr_min(TSR_DIFFERENCE_LIMIT, tsr_asr(difference, shift)));
}

/* Weight of a sample in a fit: the quotient of two numbers, at most TSR_FIT_WEIGHT_LIMIT. It falls as the magnitude of
 * the sample's residual grows over the class's mean, and is 0 from 3.5 times the mean on. With 0 from 2.5 times on,
 * -5 lost 0.2 % and -9 0.3 % (tests/bench/decisions/062). */
TSR_HD int32_t tsr_fit_dividend(int32_t mean)
{
    return 8 * (mean + 5);
}

TSR_HD int tsr_fit_weight(int32_t magnitude, int32_t mean)
{
    return tsr_min(TSR_FIT_WEIGHT_LIMIT, tsr_fit_dividend(mean) / (2 * magnitude + mean + 10));
}

/* The largest magnitude of which that is at least weight, 1 .. TSR_FIT_WEIGHT_LIMIT; -1: there is none. */
TSR_HD int32_t tsr_fit_magnitude(int weight, int32_t mean)
{
    return tsr_max(-1, tsr_asr(tsr_fit_dividend(mean) / weight - mean - 10, 1));
}

/* Work space of the solution: the matrix of the features and, as its last row, the target. */
struct tsr_solver {
    int64_t c[TSR_FEATURES_LIMIT + 1][TSR_FEATURES_LIMIT + 1]; /* lower triangle, scaled: |c| <= 2^30 */
    int64_t l[TSR_FEATURES_LIMIT + 1][TSR_FEATURES_LIMIT + 1]; /* in 2^22ths: |l| <= 2^30 */
    int8_t shift[TSR_FEATURES_LIMIT + 1];                      /* of each row: left if positive */
};

enum { TSR_SOLVER_SHIFT = 22 };

TSR_HD int64_t tsr_shift_sum(int64_t value, int left)
{
    return left >= 0 ? value * ((int64_t)1 << tsr_min(left, 60)) : tsr_asr64(value, tsr_min(-left, 62));
}

/* To -2^30 .. 2^30. */
TSR_HD int64_t tsr_clamp_30(int64_t value)
{
    const int64_t most = (int64_t)1 << 30;
    return value < -most ? -most : value > most ? most : value;
}

/* Half the shift, rounded down, that brings value (> 0, below 2^62) to 2^28 .. 2^30. */
TSR_HD int tsr_half_shift(int64_t value)
{
    const uint32_t high = (uint32_t)((uint64_t)value >> 32);
    const int width = high != 0 ? 32 + tsr_bit_width(high) : tsr_bit_width((uint32_t)value);
    return tsr_asr(30 - width, 1);
}

/* The steps of the solution, one number each; tsr_solve_predictor has their order. Steps of rows are independent. */
TSR_HD int64_t tsr_solver_entry(int64_t sum, int shift, bool is_diagonal)
{
    return tsr_clamp_30(tsr_shift_sum(sum, shift)) + (is_diagonal ? 1 << 14 : 0);
}

TSR_HD int64_t tsr_solver_pivot(int64_t c)
{
    return c < 1 << 14 ? 1 << 14 : c;
}

TSR_HD int64_t tsr_solver_quotient(int64_t c, int64_t pivot)
{
    return tsr_clamp_30(c * (1 << TSR_SOLVER_SHIFT) / pivot);
}

TSR_HD int64_t tsr_solver_step(int64_t c_ij, int64_t c_ik, int64_t l_jk)
{
    return tsr_clamp_30(c_ij - tsr_asr64(c_ik * l_jk, TSR_SOLVER_SHIFT));
}

/* From 2^22ths of scaled units to 1024ths; shift: the feature's less the target's. */
TSR_HD int16_t tsr_solver_weight(int64_t solution, int shift)
{
    const int right = TSR_SOLVER_SHIFT - TSR_WEIGHT_SHIFT - shift;
    const int64_t w = right > 0 ? tsr_asr64(tsr_asr64(solution, tsr_min(right, 40) - 1) + 1, 1)
                                : tsr_shift_sum(solution, tsr_min(-right, 20));
    return (int16_t)(w < -TSR_WEIGHT_LIMIT ? -TSR_WEIGHT_LIMIT : w > TSR_WEIGHT_LIMIT ? TSR_WEIGHT_LIMIT : w);
}

/* sums: lower triangle row by row, of the features 0..n-1 and then the target: sums[i (i+1)/2 + j] = sum of w d_i d_j.
 * The weights of the features, in 1024ths; all 0 where nothing was summed up.
 *
 * Rows are scaled so that squares lie in 2^28 .. 2^30, and 2^14 is added to them: features that follow from others get
 * no weight to speak of. By Cauchy and Schwarz every entry of every remainder then stays within 2^30, and L and the
 * solution within 2^8, but for rounding, whose errors (2^8 a step) are small beside 2^14. The clamps keep the bounds
 * where they add up all the same. */
TSR_HD void tsr_solve_predictor(const int64_t *sums, int n, int16_t *of_feature, struct tsr_solver *s)
{
    for (int i = 0; i <= n; i++) {
        const int64_t square = sums[i * (i + 1) / 2 + i];
        s->shift[i] = (int8_t)(square > 0 ? tsr_half_shift(square) : 0);
    }
    for (int i = 0; i <= n; i++) {
        for (int j = 0; j <= i; j++)
            s->c[i][j] = tsr_solver_entry(sums[i * (i + 1) / 2 + j], s->shift[i] + s->shift[j], i == j);
    }
    for (int k = 0; k < n; k++) {
        const int64_t pivot = tsr_solver_pivot(s->c[k][k]);
        for (int i = k + 1; i <= n; i++) s->l[i][k] = tsr_solver_quotient(s->c[i][k], pivot);
        for (int i = k + 1; i <= n; i++)
            for (int j = k + 1; j <= i; j++) s->c[i][j] = tsr_solver_step(s->c[i][j], s->c[i][k], s->l[j][k]);
    }
    int64_t solution[TSR_FEATURES_LIMIT];
    for (int i = n - 1; i >= 0; i--) {
        int64_t v = s->l[n][i];
        for (int k = i + 1; k < n; k++) v -= tsr_asr64(s->l[k][i] * solution[k], TSR_SOLVER_SHIFT);
        solution[i] = tsr_clamp_30(v);
        of_feature[i] = tsr_solver_weight(solution[i], s->shift[i] - s->shift[n]);
    }
}

#endif
