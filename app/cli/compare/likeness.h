/* How alike two pictures of 8 bits are. */
#ifndef TSR_APP_CLI_COMPARE_LIKENESS_H
#define TSR_APP_CLI_COMPARE_LIKENESS_H

#include <stdbool.h>
#include <stdint.h>

/* SSIM: Wang et al. 2004, a Gaussian window of 11 x 11 samples with sigma 1.5, over all windows that lie within the
 * picture. MS-SSIM: Wang et al. 2003, five scales, each from the one before by means of 2 x 2 samples. Of several
 * channels the mean. */
struct likeness {
    double psnr_db; /* infinite: equal */
    double ssim;    /* NaN: a side has fewer than 11 samples */
    double ms_ssim; /* NaN: a side has fewer than 161 samples */
    uint32_t max_error;
};

/* Interleaved samples. False: no memory. */
bool measure_likeness(const uint8_t *a, const uint8_t *b, uint32_t columns, uint32_t rows, int channels,
                      struct likeness *likeness);

#endif
