/* Frames with kept ranges, by any engine: the engine codes the base, and what is kept stands before it in each tile.
 * FORMAT.md section 6.7.
 *
 * The functions do what the operations of their names do (kernels/engine.h). If nothing is kept, they call these. */
#ifndef TSR_KERNELS_KEPT_KEPT_FRAMES_H
#define TSR_KERNELS_KEPT_KEPT_FRAMES_H

#include "kernels/engine.h"
#include "transform/planes/kept_ranges.h"

size_t tsr_kept_encode_workspace(const struct tsr_engine *engine, const struct tsr_image *image,
                                 const struct tsr_kept_ranges *kept, const struct tsr_coding *coding, uint32_t frames);
size_t tsr_kept_decode_workspace(const struct tsr_engine *engine, const struct tsr_image *image,
                                 const struct tsr_kept_ranges *kept, const struct tsr_decode_job *jobs,
                                 uint32_t frames);
size_t tsr_kept_decode_bound(const struct tsr_engine *engine, const struct tsr_image *image,
                             const struct tsr_kept_ranges *kept, uint32_t tiles, uint32_t frames);

/* If something is kept, the image has samples of 8 or 16 bits allocated, and the coding has loss. Then no tile is given
 * away while others are coded, nor bytes of a raster while others are decoded, and nothing is lent. */
enum tsr_status tsr_kept_encode(struct tsr_engine *engine, const struct tsr_image *image,
                                const struct tsr_kept_ranges *kept, const struct tsr_coding *coding,
                                struct tsr_encode_job *jobs, uint32_t frames, void *workspace);
enum tsr_status tsr_kept_decode(struct tsr_engine *engine, const struct tsr_image *image,
                                const struct tsr_kept_ranges *kept, struct tsr_decode_job *jobs, uint32_t frames,
                                void *workspace);

/* Most bytes of all masks of a frame of so many tiles. */
uint64_t tsr_mask_bound(const struct tsr_image *image, const struct tsr_kept_ranges *kept, uint64_t tiles);

#endif
