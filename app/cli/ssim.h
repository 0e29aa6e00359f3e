/* How alike two pictures look. */
#ifndef TSR_APP_CLI_SSIM_H
#define TSR_APP_CLI_SSIM_H

#include <stdint.h>

/* Mean structural similarity of two 8-bit pictures, channel by channel, over windows of 8 x 8 samples 4 apart; of
 * smaller pictures, one window of all (Wang et al. 2004, with uniform windows as x264 has them). 1: equal. */
double ssim(const uint8_t *a, const uint8_t *b, int columns, int rows, int channels);

#endif
