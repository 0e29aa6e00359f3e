/* Path T, and CAVLC of path P's residuals: a plane's blocks to coefficients and code tables, and its tiles to payloads.
 * FORMAT.md sections 8 to 10; what is done with a tile is in blocks_cpu.h, lapped_cpu.h and coefficients_cpu.h. */
#ifndef TSR_KERNELS_ENGINE_CPU_ENCODE_BLOCKS_CPU_H
#define TSR_KERNELS_ENGINE_CPU_ENCODE_BLOCKS_CPU_H

#include "plane_passes_cpu.h"

/* Coefficients of all tiles, and from them the tables of the plane's coder. */
void tsr_make_coefficients(struct tsr_plane_work *work);

/* A tile's payload. Returns its bytes, 0 if it would exceed capacity. */
size_t tsr_code_tile_coefficients(struct tsr_plane_work *work, uint32_t part, uint32_t number, uint8_t *payload,
                                  size_t capacity);

#endif
