/* Predicted tiles of path T on the CPU: samples of a tile to coefficients, block after block, and back. INTRA.md. */
#ifndef TSR_KERNELS_BLOCKS_INTRA_CPU_H
#define TSR_KERNELS_BLOCKS_INTRA_CPU_H

#include "entropy/intra_modes.h"
#include "lapped_cpu.h"

/* Work space of the functions below. */
size_t tsr_intra_scratch_bytes(int32_t width, int32_t height);

/* Work space of the inverse alone. */
size_t tsr_intra_restored_bytes(int32_t width, int32_t height);

/* Bytes of a map of a tile's blocks. */
size_t tsr_intra_map_bytes(int32_t width, int32_t height);

/* Samples to coefficients of blocks, which lie as those of lapped tiles do, and to the map of their sizes and modes.
 * lambda: above 0. Returns about what the tile costs, rate and error together, in 1/16 bit. */
uint64_t tsr_intra_forward(const uint16_t *samples, struct tsr_tile tile, struct tsr_block_steps steps, uint32_t range,
                           int32_t lambda, int32_t *coefficients, uint8_t *map, void *scratch);

/* The same of coefficients that are chosen, the first of a block the DC's difference, and of what they are restored to,
 * samples of a tile without gaps; of a tile of means without the latter. */
uint64_t tsr_intra_rate_of_tile(const int32_t *coefficients, struct tsr_tile tile, void *scratch);
uint64_t tsr_intra_errors_of_tile(const uint16_t *samples, struct tsr_tile tile, struct tsr_block_steps steps,
                                  int32_t lambda, const uint16_t *restored);

/* Back to samples 0 .. range-1. */
void tsr_intra_inverse(const int32_t *coefficients, struct tsr_tile tile, struct tsr_block_steps steps, uint32_t range,
                       uint8_t *map, uint16_t *samples, void *scratch);

#endif
