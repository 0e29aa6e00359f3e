/* Masks: which samples of a tile are kept, as bytes. FORMAT.md section 6.7. */
#ifndef TSR_KERNELS_KEPT_KEPT_MASKS_H
#define TSR_KERNELS_KEPT_KEPT_MASKS_H

#include "kernels/engine.h"
#include "transform/planes/kept_ranges.h"

/* A raster whose masks are coded. */
struct tsr_masked {
    const struct tsr_image *image;
    const struct tsr_kept_ranges *kept;
    struct tsr_word_layout layout;
    struct tsr_near_lossless near; /* by which the base is quantised */
    const uint8_t *raster;
};

/* A decoded base, of which masks make what it stands for. */
struct tsr_mask_target {
    const struct tsr_image *image;
    const struct tsr_kept_ranges *kept;
    struct tsr_word_layout layout; /* of the base's words */
    uint8_t *raster;
};

/* Bytes of a mask of so many samples whose numbers stand as they are, which is the longest. */
size_t tsr_raw_mask_bytes(uint64_t samples, const struct tsr_kept_ranges *kept);

/* Codes the mask of a tile; returns its bytes. */
size_t tsr_code_mask(const struct tsr_masked *m, struct tsr_tile tile, uint8_t *bytes);

/* Applies the mask of a tile. False: it is damaged. */
bool tsr_join_mask(const struct tsr_mask_target *target, struct tsr_tile tile, struct tsr_segment mask);

#endif
