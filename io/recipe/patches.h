/* Patches: rectangles of an image, alike in size, whose samples a file with loss gives back as they are. Below each
 * other they are the image whose frames the file codes beside its base. BASE.md 4. */
#ifndef TSR_IO_RECIPE_PATCHES_H
#define TSR_IO_RECIPE_PATCHES_H

#include "app/tessera.h"

enum { TSR_PATCHES_LIMIT = 4096, TSR_PATCH_BITS = TSR_PATCHES_LIMIT / 8 };
#define TSR_PATCH_SAMPLES ((uint64_t)1 << 20) /* of a component, at most */

/* A grid of across x down places, of which those with a bit have a patch. Patches may reach out of the image. */
struct tsr_patches {
    uint32_t count;               /* of patches; 0: there is no grid */
    uint32_t left, top;           /* the grid's first sample */
    uint32_t width, height;       /* of a patch */
    uint32_t across, down;        /* places */
    uint8_t bits[TSR_PATCH_BITS]; /* by place, row by row, the first one in the least significant bit */
};

static inline bool tsr_has_patch(const struct tsr_patches *patches, uint32_t place)
{
    return patches->bits[place / 8] >> (place % 8) & 1;
}

/* Whether an image can have them, with count set from the bits; the image need not be valid. */
bool tsr_patches_fit(struct tsr_patches *patches, const struct tsr_image *image);

/* The part of the patch at a place that lies in the image. */
struct tsr_region tsr_patch_at(const struct tsr_patches *patches, const struct tsr_image *image, uint32_t place);

/* The patches below each other as an image: interleaved, not swapped. */
struct tsr_image tsr_patches_image(const struct tsr_patches *patches, const struct tsr_image *image);

/* Copies patches first to first + count - 1 of a frame, counted from 0: out of its raster to one of tsr_patches_image,
 * in which samples outside of the frame are those next to them. Or back, what lies in a window of the frame: its raster
 * is not swapped; NULL: all of the frame. Samples have 8 or 16 bits allocated. */
void tsr_take_patches(const struct tsr_patches *patches, const struct tsr_image *image, uint32_t first, uint32_t count,
                      const uint8_t *raster, uint8_t *samples);
void tsr_put_patches(const struct tsr_patches *patches, const struct tsr_image *image, const struct tsr_region *window,
                     uint32_t first, uint32_t count, uint8_t *raster, const uint8_t *samples);

/* Patches as rectangles of the image that do not overlap: neighbours of a row, and equal rows, in one. Returns how many
 * they are; the first room of them are written. *samples: those of a component in all. */
size_t tsr_list_patches(const struct tsr_patches *patches, const struct tsr_image *image, struct tsr_region *list,
                        size_t room, uint64_t *samples);

#endif
