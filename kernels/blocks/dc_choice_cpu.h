/* What a plane's DCs cost about, one by one or as a plane of their own (FORMAT.md 8.9), from its samples alone. */
#ifndef TSR_KERNELS_BLOCKS_DC_CHOICE_CPU_H
#define TSR_KERNELS_BLOCKS_DC_CHOICE_CPU_H

#include "entropy/dc_choice.h"
#include "transform/tiling.h"

/* Of a tile, with so many tiles above it. q: of the plane. fraction: tsr_dc_fraction. scratch:
 * tsr_dc_choice_scratch_bytes. */
size_t tsr_dc_choice_scratch_bytes(int32_t tile_width);
struct tsr_dc_costs tsr_tile_dc_costs(const uint16_t *samples, struct tsr_tile tile, uint32_t above, int32_t q,
                                      int fraction, void *scratch);

#endif
