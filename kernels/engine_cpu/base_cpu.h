/* The base of a frame, as predictors refer to it: planes of indices, and their tiles with guards. BASE.md 3. */
#ifndef TSR_KERNELS_ENGINE_CPU_BASE_CPU_H
#define TSR_KERNELS_ENGINE_CPU_BASE_CPU_H

#include "kernels/engine.h"
#include "kernels/training/linear_cpu.h"

/* In the room of a base. */
struct tsr_base_planes {
    uint16_t *plane[TSR_PLANES_LIMIT]; /* of components: values, then indices */
    int16_t *padded[2];                /* of the plane at work, by tile: the base, and its means */
};

struct tsr_base_planes tsr_base_planes(const struct tsr_image *image, void *room);

/* The raster to planes of values under the model's colour transform, if its predictors refer to it; then those of a
 * plane that is coded to indices, once. */
void tsr_split_base(const struct tsr_image *image, const struct tsr_base *base, const struct tsr_frame_model *model,
                    struct tsr_base_planes *planes);
void tsr_base_to_indices(const struct tsr_image *image, const struct tsr_plane_model *plane, uint16_t *values);

/* Copies a tile of means to its room, from a tile of the base. */
void tsr_pad_means(const struct tsr_padded_tile *base, int16_t *room);

#endif
