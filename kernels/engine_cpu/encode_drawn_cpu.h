/* A frame that path P has coded, as drawn planes, if those take fewer bytes. DRAWN.md. */
#ifndef TSR_KERNELS_ENGINE_CPU_ENCODE_DRAWN_CPU_H
#define TSR_KERNELS_ENGINE_CPU_ENCODE_DRAWN_CPU_H

#include "plane_passes_cpu.h"

/* Codes all coded planes of a frame as drawn ones, in the room of symbols. Returns the bytes of the tiles' payloads;
 * UINT64_MAX where they have no room, and so are not fewer than those of path P. *blended: a piece is by blend. */
uint64_t tsr_code_drawn_planes(struct tsr_pool *pool, const struct tsr_image *image,
                               const struct tsr_encode_space *space, bool *blended);

/* Copies the pieces to the room of drawn pieces, if they fit there. */
void tsr_keep_drawn_planes(const struct tsr_image *image, const struct tsr_encode_space *space);

/* Makes the pieces, or those that were kept, the frame's tiles. */
void tsr_take_drawn_planes(const struct tsr_image *image, const struct tsr_encode_space *space, bool were_kept);

#endif
