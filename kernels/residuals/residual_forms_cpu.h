/* The residuals of a row: what the plain form and the form for AVX2 share. Private to residual_rows_*.c. The rows hold
 * samples less 2^15. The forms may read and write up to 16 columns after a row. */
#ifndef TSR_KERNELS_RESIDUALS_RESIDUAL_FORMS_CPU_H
#define TSR_KERNELS_RESIDUALS_RESIDUAL_FORMS_CPU_H

#include "residual_rows_cpu.h"

struct tsr_residual_forms {
    /* Samples to a row, and their median edge predictions. up: the row above. row[-1] is known. */
    void (*predict)(const uint16_t *samples, const int16_t *up, int32_t width, int16_t *row, int16_t *prediction);
    /* Residuals, as contexts and codes see them, and intensities. */
    void (*describe)(const int16_t *row, const int16_t *prediction, int32_t width, int32_t range, int16_t *magnitude,
                     uint16_t *folded, uint16_t *intensity);
    /* The same of anchored residuals: bins of the anchors in place of intensities. up[width] is known. */
    void (*anchor)(const int16_t *row, const int16_t *up, const int16_t *prediction, const int16_t *fraction,
                   int32_t width, int32_t range, int16_t *magnitude, uint16_t *folded, uint16_t *bin);
    /* Activities from magnitudes, of which two on the left and one on the right are known. first: of a tile's rows. */
    void (*activity)(const int16_t *row, const int16_t *up, const int16_t *up2, int32_t width, bool first,
                     int16_t *activity);
};

const struct tsr_residual_forms *tsr_residual_forms(enum tsr_isa isa);
extern const struct tsr_residual_forms tsr_residual_forms_avx2; /* where the compiler has it */

#endif
