/* Differences between two rasters of an image. */
#ifndef TSR_APP_MEASURE_H
#define TSR_APP_MEASURE_H

#include "tessera.h"

struct tsr_difference {
    uint32_t max_error;     /* largest difference of two samples */
    uint64_t squared_error; /* sum of squares, saturated */
};

/* Adds the differences between the samples of two frames, whole or in part alike. */
void tsr_add_difference(const struct tsr_image *image, const uint8_t *a, const uint8_t *b, struct tsr_difference *sum);

/* PSNR in dB with the peak 2^bits_stored - 1; infinity where nothing differs. */
double tsr_psnr_db(const struct tsr_image *image, uint64_t samples, uint64_t squared_error);

#endif
