/* How the launch policies are chosen. The figures are from an H200 (kernels/README.md), 256 MiB a batch.
 *
 * A band of codes first reads two rows that it does not code, and a block of either kernel first makes tables for its
 * plane. So larger shares are less work in all. But each multiprocessor needs several blocks, one after the other: else
 * waiting for the last block costs more than larger shares gain. */
#include "kernels/machine/device.cuh"

#include "kernels/batch/policies_cuda.h"
#include "kernels/batch/batch_predict_cuda.h"

namespace
{

enum {
    MOST_CODE_ROWS = 64,
    /* The fewest bands of codes for a multiprocessor: 14 blocks. With 32 rows 2048 planes of 256 x 256 gain 1 to 3 %,
     * and 512 planes of 512 x 512 lose 1 to 2 %. */
    FEWEST_CODE_BANDS = 14 * TSR_CODE_WARPS,
    /* Bands by cell for a multiprocessor, times each band that a warp takes: 3 blocks. With two bands a warp, those
     * planes gain a tenth and 4 % of the pass. */
    FEWEST_CELL_BANDS = 3 * TSR_CELL_WARPS,
    /* The warps of lanes that a multiprocessor holds. Eight segments a tile fill it. Where they would begin a second
     * round, and half as many let a whole batch run at once, half as many gain 3 % of the whole at effort 1, on 2048
     * and on 512 planes. */
    RESIDENT_LANE_WARPS = 42,
    LANE_SEGMENTS = 8
};

uint32_t bands_of(const tsr_launch_size &size, int32_t rows)
{
    return size.tiles * (((uint32_t)size.tile_height + (uint32_t)rows - 1) / (uint32_t)rows);
}

int32_t choose_code_rows(const tsr_launch_size &size)
{
    int32_t rows = TSR_BAND_ROWS;
    while (rows < MOST_CODE_ROWS) {
        const uint32_t bands = bands_of(size, 2 * rows);
        if (bands < TSR_CODE_WARPS) break; /* some warps of a block would have no band */
        if ((uint64_t)size.planes * bands < (uint64_t)FEWEST_CODE_BANDS * size.processors) break;
        rows *= 2;
    }
    return rows;
}

uint32_t choose_cell_bands(const tsr_launch_size &size)
{
    const uint32_t bands = bands_of(size, size.period > 0 ? size.period : (int32_t)TSR_BAND_ROWS);
    const uint64_t turns = (uint64_t)size.planes * bands / ((uint64_t)FEWEST_CELL_BANDS * size.processors);
    const uint32_t most = (bands + TSR_CELL_WARPS - 1) / TSR_CELL_WARPS; /* then one block takes a whole plane */
    return turns < 1 ? 1 : turns < most ? (uint32_t)turns : most;
}

int32_t choose_lane_segments(const tsr_launch_size &size)
{
    const uint64_t warps = ((uint64_t)size.planes * size.tiles * (uint32_t)size.lanes + TSR_WARP - 1) / TSR_WARP,
                   room = (uint64_t)RESIDENT_LANE_WARPS * size.processors;
    return warps * LANE_SEGMENTS > room && warps * (LANE_SEGMENTS / 2) <= room ? LANE_SEGMENTS / 2 : LANE_SEGMENTS;
}

} // namespace

const struct tsr_launch_policy tsr_launch_policies[TSR_LAUNCH_POLICIES] = {
    {"chosen", 0, 0, 0, 0},
    {"codes by 16 rows", 16, 0, 0, 0},
    {"codes by 32 rows", 32, 0, 0, 0},
    {"codes by 64 rows", 64, 0, 0, 0},
    {"cells by 1 band", 0, 1, 0, 0},
    {"cells by 2 bands", 0, 2, 0, 0},
    {"lanes in 1 segment", 0, 0, 1, 0},
    {"lanes in 4 segments", 0, 0, 4, 0},
    {"lanes in 8 segments", 0, 0, 8, 0},
    {"lanes in 16 segments", 0, 0, 16, 0},
    {"lengths by 4 warps", 0, 0, 0, 4},
    {"lengths by 16 warps", 0, 0, 0, 16},
};

struct tsr_launch_policy tsr_choose_launches(struct tsr_launch_policy policy, struct tsr_launch_size size)
{
    if (policy.code_rows == 0) policy.code_rows = choose_code_rows(size);
    if (policy.cell_bands == 0) policy.cell_bands = choose_cell_bands(size);
    if (policy.lane_segments == 0) policy.lane_segments = choose_lane_segments(size);
    /* If each plane has its own multiprocessor, tables need not wait for each other: 16 warps. With 16 warps, four
     * planes on one multiprocessor took 1.5 times as long. */
    if (policy.length_warps == 0) policy.length_warps = size.planes > size.processors ? 4 : 16;
    return policy;
}
