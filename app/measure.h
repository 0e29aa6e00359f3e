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

/* All samples of a frame as their values, interleaved; signed ones biased by 2^(bits_stored-1), so that their order
 * stays. Not for 32 bits allocated. */
void tsr_unpack_samples(const struct tsr_image *image, const uint8_t *raster, uint16_t *samples);

/* Mean structural similarity of two 8-bit pictures, channel by channel, over windows of 8 x 8 samples 4 apart; of
 * smaller pictures, one window of all (Wang et al. 2004, with uniform windows as x264 has them). 1: equal. */
double tsr_ssim(const uint8_t *a, const uint8_t *b, int columns, int rows, int channels);

/* PSNR in dB with the peak 2^bits_stored - 1; infinity where nothing differs. */
double tsr_psnr_db(const struct tsr_image *image, uint64_t samples, uint64_t squared_error);

#endif
