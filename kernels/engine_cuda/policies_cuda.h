/* Launch policies of path P's encoder on the GPU, as data: how its kernels share a batch out among their threads. Bytes
 * never depend on them. */
#ifndef TSR_KERNELS_ENGINE_CUDA_POLICIES_CUDA_H
#define TSR_KERNELS_ENGINE_CUDA_POLICIES_CUDA_H

#include <stdint.h>

/* 0: chosen for each batch by tsr_choose_launches. */
struct tsr_launch_policy {
    const char *name;
    int32_t code_rows;     /* of the band of a tile that a warp makes codes of */
    uint32_t cell_bands;   /* that a warp counts by cell, one after the other */
    int32_t lane_segments; /* that a tile's ticks are cut into at most, each for a warp */
    uint32_t length_warps; /* of a plane's code lengths: 4 or 16 */
};

/* The first one chooses all; each other holds one of them, so that `tessera-bench engine --policies` shows what a
 * choice is worth. */
enum { TSR_LAUNCH_POLICIES = 12 };

#ifdef __cplusplus
extern "C" {
#endif

extern const struct tsr_launch_policy tsr_launch_policies[TSR_LAUNCH_POLICIES];

/* What a choice is made by. */
struct tsr_launch_size {
    uint32_t processors;        /* of the device */
    uint32_t planes, tiles;     /* tiles: of a plane */
    int32_t tile_height, lanes; /* of a tile */
    int32_t period;             /* rows of which cells are counted in some, 0: in all */
};

/* The policy with nothing left open. */
struct tsr_launch_policy tsr_choose_launches(struct tsr_launch_policy wanted, struct tsr_launch_size size);

#ifdef __cplusplus
}
#endif

#endif
