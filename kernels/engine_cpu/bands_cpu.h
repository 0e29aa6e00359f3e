/* Steps of a whole frame that take each pixel on its own, on several bands of rows at once. */
#ifndef TSR_KERNELS_ENGINE_CPU_BANDS_CPU_H
#define TSR_KERNELS_ENGINE_CPU_BANDS_CPU_H

#include "entropy/frame_model.h"
#include "kernels/planes/ranges_cpu.h"
#include "kernels/pool/thread_pool.h"

/* tsr_split_raster (planes_cpu.h). The raster of an image with planes in its raster, of one component, may be
 * planes[0]; spare: room for it. */
void tsr_split_frame(struct tsr_pool *pool, const struct tsr_image *image, const uint8_t *raster,
                     uint16_t *const *planes, struct tsr_frame_model *model, void *spare);

/* tsr_apply_colour (ranges_cpu.h) with the model's transform. bits: of a value. */
void tsr_transform_colours(struct tsr_pool *pool, const struct tsr_image *image, uint16_t *const *planes,
                           const struct tsr_frame_model *model, int bits);

/* tsr_choose_range (ranges_cpu.h) of plane p. */
struct tsr_range_work;
void tsr_choose_plane_range(struct tsr_pool *pool, const struct tsr_image *image, uint16_t *const *planes, int p,
                            enum tsr_packing packing, struct tsr_plane_model *plane, struct tsr_range_work *range);

/* Decoded planes, which are used up, to a raster: ranges, colours, near-lossless samples, words. Of rows first to
 * end - 1, which are all rows if tsr_has_bands is false. */
void tsr_finish_rows(const struct tsr_image *image, const struct tsr_frame_model *model, uint16_t *const *planes,
                     uint8_t *raster, uint32_t first, uint32_t end);

/* Whether rows have whole bytes, and all components of their pixels; then, bytes of this many rows. */
bool tsr_has_bands(const struct tsr_image *image);
size_t tsr_bytes_of_rows(const struct tsr_image *image, uint32_t rows);

#endif
