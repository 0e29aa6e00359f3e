/* Training on the device: a plane's counts of run-level symbols to its code tables, a block of threads an alphabet of a
 * plane: its cells merge (merge_tables.cuh), then tables get codes (code_lengths.cuh). */
#include "device.cuh"

#include "code_lengths.cuh"
#include "cuda_stages.h"
#include "merge_tables.cuh"

namespace
{

/* Each plane has two blocks of threads, the first of them for its ACs. */
enum { MERGE_THREADS = 128, MERGE_LANES = 4, CODE_WARPS = 4 };

/* Room for counts in shared memory: those of some 128 symbols a cell, which most planes do not reach; more stay in
 * global memory. Gains have 64 bits: planes may be large. */
enum {
    MERGE_QUADS = TSR_AC_CELLS * 32,
    MERGE_BYTES = tsr_merge_bytes<int64_t, TSR_AC_PITCH>(TSR_AC_CELLS, MERGE_QUADS) / 16 * 16
};
static_assert((int)TSR_DC_CELLS * (int)TSR_DC_SYMBOLS <= MERGE_QUADS * (int)TSR_QUAD_COUNTS, "DCs' counts have room");

__global__ void __launch_bounds__(MERGE_THREADS)
    k_merge(uint32_t *counts, const tsr_plane_state *planes, tsr_coefficient_model *models)
{
    __shared__ tsr_kept_symbols<TSR_AC_SYMBOLS> kept;
    TSR_DYNAMIC_SHARED(memory);
    const uint32_t plane = blockIdx.x / 2;
    const auto nothing = [](int) { return 0u; };
    if (tsr_state_span(planes[plane]) == 1) return;
    uint32_t *dc = counts + (size_t)plane * TSR_PLANE_COUNTS, *ac = dc + TSR_DC_COUNTS;
    tsr_coefficient_model &model = models[plane];
    if (blockIdx.x % 2 == 0) {
        tsr_close_gaps<TSR_AC_SYMBOLS, TSR_AC_PITCH, MERGE_THREADS>(kept, ac, TSR_AC_CELLS);
        const int tables = tsr_merge_cells<TSR_AC_CELLS, TSR_AC_PITCH, MERGE_THREADS, MERGE_LANES, int64_t>(
            memory, MERGE_BYTES, ac, TSR_AC_CELLS, model.ac_table_of, nothing);
        tsr_open_gaps<TSR_AC_SYMBOLS, TSR_AC_PITCH, MERGE_THREADS>(kept, ac, tables);
        if (threadIdx.x == 0) model.ac_tables = (uint8_t)tables;
    } else {
        const int tables = tsr_merge_cells<TSR_DC_CELLS, TSR_DC_SYMBOLS, MERGE_THREADS, MERGE_LANES, int64_t>(
            memory, MERGE_BYTES, dc, TSR_DC_CELLS, model.dc_table_of, nothing);
        if (threadIdx.x == 0) model.dc_tables = (uint8_t)tables;
    }
}

typedef tsr_tables_memory<TSR_TABLE_LIMIT, TSR_AC_SYMBOLS, CODE_WARPS> ac_codes;
typedef tsr_tables_memory<TSR_DC_CELLS, TSR_DC_SYMBOLS, CODE_WARPS> dc_codes;
static_assert(sizeof(dc_codes) <= sizeof(ac_codes), "they share memory");

__global__ void __launch_bounds__(CODE_WARPS *TSR_WARP) k_codes(const uint32_t *counts, const tsr_plane_state *planes,
                                                                tsr_coefficient_model *models, tsr_packed_codes *codes)
{
    TSR_DYNAMIC_SHARED(memory);
    const uint32_t plane = blockIdx.x / 2;
    if (tsr_state_span(planes[plane]) == 1) return;
    const uint32_t *dc = counts + (size_t)plane * TSR_PLANE_COUNTS, *ac = dc + TSR_DC_COUNTS;
    tsr_coefficient_model &model = models[plane];
    tsr_packed_codes &own = codes[plane];
    if (blockIdx.x % 2 == 0)
        tsr_code_tables(
            *reinterpret_cast<ac_codes *>(memory), model.ac_tables, [&](int t) { return ac + t * TSR_AC_PITCH; },
            [](int) { return (int)TSR_AC_SYMBOLS; },
            [&](int t, int s, uint8_t length, uint32_t bits, int coded) {
                model.ac_lengths[t][s] = length;
                own.ac[t][s] = (uint16_t)((uint32_t)coded << 12 | bits);
            });
    else
        tsr_code_tables(
            *reinterpret_cast<dc_codes *>(memory), model.dc_tables, [&](int t) { return dc + t * TSR_DC_SYMBOLS; },
            [](int) { return (int)TSR_DC_SYMBOLS; },
            [&](int t, int s, uint8_t length, uint32_t bits, int coded) {
                model.dc_lengths[t][s] = length;
                own.dc[t][s] = (uint16_t)((uint32_t)coded << 12 | bits);
            });
}

} // namespace

int tsr_cuda_train(uint32_t *d_counts, const struct tsr_plane_state *d_plane, uint32_t planes,
                   struct tsr_coefficient_model *d_model, struct tsr_packed_codes *d_codes, cudaStream_t stream)
{
    TSR_CUDA_TRY(tsr_allow_shared(k_merge, MERGE_BYTES));
    TSR_CUDA_TRY(tsr_launch(k_merge, 2 * planes, MERGE_THREADS, MERGE_BYTES, stream, d_counts, d_plane, d_model));
    TSR_CUDA_TRY(tsr_allow_shared(k_codes, sizeof(ac_codes)));
    return tsr_launch(k_codes, 2 * planes, CODE_WARPS * TSR_WARP, sizeof(ac_codes), stream, d_counts, d_plane, d_model,
                      d_codes);
}
