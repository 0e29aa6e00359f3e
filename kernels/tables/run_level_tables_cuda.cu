/* Training on the device: a plane's counts of run-level symbols to its code tables. A block of threads an alphabet of a
 * plane merges its cells (merge_tables.cuh), then a warp a table makes its codes (code_lengths.cuh). */
#include "kernels/machine/device.cuh"

#include "code_lengths.cuh"
#include "kernels/batch/batch_transform_cuda.h"
#include "merge_tables.cuh"

namespace
{

/* Room for counts in shared memory: those of some 128 symbols a cell, which most planes do not reach; more stay in
 * global memory. Gains have 64 bits: planes may be large. */
enum {
    MERGE_QUADS = TSR_AC_CELLS * 32,
    MERGE_BYTES = tsr_merge_bytes<int64_t, TSR_AC_PITCH>(TSR_AC_CELLS, MERGE_QUADS) / 16 * 16
};
static_assert((int)TSR_DC_CELLS * (int)TSR_DC_SYMBOLS <= MERGE_QUADS * (int)TSR_QUAD_COUNTS, "DCs' counts have room");

/* Each plane has two blocks of threads, the first of them for its ACs. */
template <int THREADS, int LANES>
__global__ void __launch_bounds__(THREADS)
    k_merge(uint32_t *counts, const tsr_plane_state *planes, tsr_run_level_model *models)
{
    __shared__ tsr_kept_symbols<TSR_AC_SYMBOLS> kept;
    TSR_DYNAMIC_SHARED(memory);
    const uint32_t plane = blockIdx.x / 2;
    const auto nothing = [](int) { return 0u; };
    if (tsr_state_span(planes[plane]) == 1) return;
    uint32_t *dc = counts + (size_t)plane * TSR_PLANE_COUNTS, *ac = dc + TSR_DC_COUNTS;
    tsr_run_level_model &model = models[plane];
    if (blockIdx.x % 2 == 0) {
        tsr_close_gaps<TSR_AC_SYMBOLS, TSR_AC_PITCH, THREADS>(kept, ac, TSR_AC_CELLS);
        const int tables = tsr_merge_cells<TSR_AC_CELLS, TSR_AC_PITCH, THREADS, LANES, int64_t>(
            memory, MERGE_BYTES, ac, TSR_AC_CELLS, model.ac_table_of, nothing);
        tsr_open_gaps<TSR_AC_SYMBOLS, TSR_AC_PITCH, THREADS>(kept, ac, tables);
        if (threadIdx.x == 0) model.ac_tables = (uint8_t)tables;
    } else {
        const int tables = tsr_merge_cells<TSR_DC_CELLS, TSR_DC_SYMBOLS, THREADS, LANES, int64_t>(
            memory, MERGE_BYTES, dc, TSR_DC_CELLS, model.dc_table_of, nothing);
        if (threadIdx.x == 0) model.dc_tables = (uint8_t)tables;
    }
}

/* Tables of a block of threads, a warp each; blocks of a plane, first those of ACs. With a block an alphabet, and trees
 * by threads, 1024 planes took 288 us instead of 264. */
enum {
    CODE_TABLES = 4,
    AC_BLOCKS = TSR_TABLE_LIMIT / CODE_TABLES,
    CODE_BLOCKS = AC_BLOCKS + TSR_DC_CELLS / CODE_TABLES
};
static_assert(TSR_TABLE_LIMIT % CODE_TABLES == 0 && TSR_DC_CELLS % CODE_TABLES == 0, "whole blocks of tables");

__global__ void __launch_bounds__(CODE_TABLES *TSR_WARP)
    k_codes(const uint32_t *counts, const tsr_plane_state *planes, tsr_run_level_model *models, tsr_packed_codes *codes)
{
    __shared__ tsr_tables_memory<CODE_TABLES, TSR_AC_SYMBOLS, CODE_TABLES> memory;
    const uint32_t plane = blockIdx.x / CODE_BLOCKS;
    const int block = (int)(blockIdx.x % CODE_BLOCKS);
    if (tsr_state_span(planes[plane]) == 1) return;
    tsr_run_level_model &model = models[plane];
    const bool is_dc = block >= AC_BLOCKS;
    const int first = (is_dc ? block - AC_BLOCKS : block) * CODE_TABLES,
              tables = tsr_min((is_dc ? model.dc_tables : model.ac_tables) - first, (int)CODE_TABLES);
    if (tables <= 0) return;
    const uint32_t *own = counts + (size_t)plane * TSR_PLANE_COUNTS + (is_dc ? 0 : TSR_DC_COUNTS);
    const int pitch = is_dc ? (int)TSR_DC_SYMBOLS : (int)TSR_AC_PITCH,
              symbols = is_dc ? (int)TSR_DC_SYMBOLS : (int)TSR_AC_SYMBOLS;
    tsr_code_tables<false>(
        memory, tables, [&](int t) { return own + (first + t) * pitch; }, [&](int) { return symbols; },
        [&](int t, int s, uint8_t length, uint32_t bits, int coded) {
            (is_dc ? model.dc_lengths[first + t] : model.ac_lengths[first + t])[s] = length;
            (is_dc ? codes[plane].dc[first + t] : codes[plane].ac[first + t])[s] =
                (uint16_t)((uint32_t)coded << 12 | bits);
        });
}

template <int THREADS, int LANES>
cudaError_t merge(uint32_t *d_counts, const struct tsr_plane_state *d_plane, uint32_t planes,
                  struct tsr_run_level_model *d_model, cudaStream_t stream)
{
    TSR_CUDA_TRY(tsr_allow_shared(k_merge<THREADS, LANES>, MERGE_BYTES));
    return tsr_launch(k_merge<THREADS, LANES>, 2 * planes, THREADS, MERGE_BYTES, stream, d_counts, d_plane, d_model);
}

} // namespace

int tsr_cuda_train(uint32_t *d_counts, const struct tsr_plane_state *d_plane, uint32_t planes,
                   struct tsr_run_level_model *d_model, struct tsr_packed_codes *d_codes, cudaStream_t stream)
{
    unsigned processors;
    TSR_CUDA_TRY(tsr_device_processors(&processors));
    /* Few planes do not fill the GPU: more threads each. */
    const auto merging = planes > processors ? merge<128, 4> : merge<512, 16>;
    TSR_CUDA_TRY(merging(d_counts, d_plane, planes, d_model, stream));
    return tsr_launch(k_codes, planes * CODE_BLOCKS, CODE_TABLES * TSR_WARP, 0, stream, d_counts, d_plane, d_model,
                      d_codes);
}
