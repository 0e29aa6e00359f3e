/* Launch policies of path P's encoder on the GPU, as data: how its kernels share a batch out among their threads. Bytes
 * never depend on them. */
#ifndef TSR_KERNELS_BATCH_POLICIES_CUDA_H
#define TSR_KERNELS_BATCH_POLICIES_CUDA_H

#include <stdint.h>

/* 0: chosen for each batch by tsr_choose_launches. */
struct tsr_launch_policy {
    const char *name;
    int32_t code_rows;     /* rows of a band: the part of a tile that a warp makes codes of */
    uint32_t cell_bands;   /* bands that a warp counts by cell, one after the other */
    int32_t lane_segments; /* the most segments that a tile's ticks are cut into, each for a warp */
    uint32_t length_warps; /* warps that make a plane's code lengths: 4 or 16 */
};

/* The first policy leaves all choices open. Each other one fixes one choice, so that `tessera-bench engine --policies`
 * shows what it is worth. */
enum { TSR_LAUNCH_POLICIES = 12 };

#ifdef __cplusplus
extern "C" {
#endif

extern const struct tsr_launch_policy tsr_launch_policies[TSR_LAUNCH_POLICIES];

/* The sizes that the choices depend on. */
struct tsr_launch_size {
    uint32_t processors;        /* of the device */
    uint32_t planes, tiles;     /* tiles: of a plane */
    int32_t tile_height, lanes; /* of a tile */
    int32_t period;             /* rows of which cells are counted in some, 0: in all */
};

/* Returns the policy wanted with its open choices made. */
struct tsr_launch_policy tsr_choose_launches(struct tsr_launch_policy wanted, struct tsr_launch_size size);

#ifdef __cplusplus
}
#endif

#endif
