/* How alike two pictures of 8 bits are. */
#ifndef TSR_APP_CLI_COMPARE_LIKENESS_H
#define TSR_APP_CLI_COMPARE_LIKENESS_H

#include <stdbool.h>
#include <stdint.h>

/* Two pictures, interleaved, and what of them counts. */
struct likeness_of {
    const uint8_t *original, *decoded;
    uint32_t columns, rows;
    int channels;
    const uint8_t *inside; /* 1: the sample counts, else 0; of one channel. NULL: all count */
    double peak;           /* of PSNR: the width of the window in steps of the picture; 255: all that 8 bits hold */
};

/* SSIM: Wang et al. 2004, a Gaussian window of 11 x 11 samples with sigma 1.5, L = 255, the mean over all such windows
 * that lie within the picture and whose middle sample counts. MS-SSIM: Wang et al. 2003, five scales, each from the one
 * before by means of 2 x 2 samples, which count if two of them do. Of several channels the mean. */
struct likeness {
    double psnr_db;     /* over what counts; infinite: equal; NaN: nothing counts */
    double ssim;        /* NaN: a side has fewer than 11 samples, or nothing counts */
    double ms_ssim;     /* NaN: a side has fewer than 161 samples, or nothing counts */
    uint32_t max_error; /* of all samples */
};

/* False: no memory. */
bool measure_likeness(const struct likeness_of *of, struct likeness *likeness);

#endif
