/* Makes the 4x4 coefficients that the CAVLC family codes of pictures, in macroblock order
 * (kernels/papers/cavlc/cavlc_frames.h). */
#ifndef TSR_APP_BENCH_BENCH_COEFFICIENTS_H
#define TSR_APP_BENCH_BENCH_COEFFICIENTS_H

#include "kernels/papers/cavlc/cavlc_frames.h"
#include "bench.h"

struct bench_coefficients {
    uint32_t mb_columns, mb_rows, frames, blocks;
    int16_t *values; /* 16 a block */
    uint8_t *mb_flags;
    uint16_t *mb_slices;
};

/* Makes four slices a frame, as equal as rows of macroblocks allow. The memory is from bench_take(ON_HOST). */
struct bench_coefficients bench_make_coefficients(struct bench *bench, const struct bench_pictures *pictures, int qp);
void bench_free_coefficients(struct bench_coefficients *coefficients);

/* Mean squared errors of samples: of the decoded picture, of the picture that is decoded from marked coefficients, and
 * of these two from each other. Predictions are those of bench_make_coefficients, from the original. So an error stays
 * in its block; in a decoder it would drift into all that is predicted from the block. */
struct bench_distortion {
    double plain, marked, between;
};
/* marked: as many values as the coefficients of the pictures at the QP. */
struct bench_distortion bench_find_distortion(struct bench *bench, const struct bench_pictures *pictures, int qp,
                                              struct bench_coefficients *coefficients, const int16_t *marked);

/* Statistics of the symbols and tables that coefficients need. */
struct bench_coefficient_statistics {
    double tables[4];          /* share of blocks by table of coeff_token: nC 0-1, 2-3, 4-7, 8 and more */
    double total, ones, zeros; /* means over all blocks: coefficients, trailing ones, total_zeros */
    double empty;              /* share of blocks without coefficients */
    double intra16x16;         /* share of macroblocks */
    int largest;               /* largest magnitude */
};
struct bench_coefficient_statistics bench_count_coefficients(struct bench *bench,
                                                             const struct bench_coefficients *coefficients);

#endif
