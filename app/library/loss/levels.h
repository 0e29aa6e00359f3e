/* What the levels of --quality promise. */
#ifndef TSR_APP_LIBRARY_LEVELS_H
#define TSR_APP_LIBRARY_LEVELS_H

#include "tessera_cli.h"

/* In each window that is judged, and over all samples: the least PSNR, and of SSIM most that may be lost. Of all
 * samples the largest error, by the width of the narrowest window that is judged, or where none is by the range. */
struct tsr_level {
    uint32_t psnr;          /* hundredths of a dB */
    uint32_t ssim_loss;     /* most of 1 - SSIM, in 1/TSR_SSIM_ONE */
    uint32_t error_percent; /* 0: it has no bound */
};

/* NULL: there is none. */
const struct tsr_level *tsr_level_of(enum tsr_quality quality);

#endif
