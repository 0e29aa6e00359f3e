/* The levels of --quality; see the header. app/cli/LOSS.md has what they give. */
#include "levels.h"

#include <stddef.h>

#include "transform/planes/ssim.h"

/* 1 - SSIM from hundredths of a percent. */
#define LOSS(parts) ((uint32_t)((uint64_t)TSR_SSIM_ONE * (parts) / 10000))

static const struct tsr_level levels[] = {
    [TSR_QUALITY_DIAGNOSTIC] = {4500, LOSS(50), 3},
    [TSR_QUALITY_VISUALLY_LOSSLESS] = {4000, LOSS(100), 6},
    [TSR_QUALITY_WEB] = {3500, LOSS(300), 0},
};

const struct tsr_level *tsr_level_of(enum tsr_quality quality)
{
    const size_t number = (size_t)quality;
    return number >= 1 && number < sizeof levels / sizeof *levels ? &levels[number] : NULL;
}

uint32_t tsr_quality_floor(enum tsr_quality quality)
{
    const struct tsr_level *const level = tsr_level_of(quality);
    return level ? level->psnr : 0;
}
