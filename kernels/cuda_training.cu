/* Training on the device: a plane's counts of run-level symbols to its code tables (cuda_merging.cuh). A block of
 * threads an alphabet of a plane, then a warp a table. */
#include "device.cuh"

#include "cuda_merging.cuh"
#include "cuda_stages.h"

namespace
{

using namespace tsr_training;

typedef merge_memory<TSR_AC_CELLS, TSR_AC_SYMBOLS> run_level_merging;

enum { CODE_WARPS = 4, CODE_TABLES = TSR_DC_CELLS + TSR_TABLE_LIMIT };

__global__ void __launch_bounds__(run_level_merging::THREADS)
    k_merge(uint32_t *counts, const tsr_plane_state *planes, tsr_coefficient_model *models)
{
    TSR_DYNAMIC_SHARED(memory);
    run_level_merging &m = *reinterpret_cast<run_level_merging *>(memory);
    const uint32_t plane = blockIdx.x / 2;
    if (tsr_state_span(planes[plane]) == 1) return;
    uint32_t *mine = counts + (size_t)plane * TSR_PLANE_COUNTS;
    tsr_coefficient_model &model = models[plane];
    if (blockIdx.x % 2 == 0) {
        const int tables = merge_cells(m, mine + TSR_DC_COUNTS, TSR_AC_CELLS, TSR_AC_SYMBOLS, model.ac_table_of);
        if (threadIdx.x == 0) model.ac_tables = (uint8_t)tables;
    } else {
        const int tables = merge_cells(m, mine, TSR_DC_CELLS, TSR_DC_SYMBOLS, model.dc_table_of);
        if (threadIdx.x == 0) model.dc_tables = (uint8_t)tables;
    }
}

__global__ void __launch_bounds__(CODE_WARPS *TSR_WARP) k_codes(const uint32_t *counts, const tsr_plane_state *planes,
                                                                tsr_coefficient_model *models, tsr_packed_codes *codes)
{
    __shared__ code_memory<TSR_AC_SYMBOLS> memory[CODE_WARPS];
    const unsigned lane = threadIdx.x % TSR_WARP, warp = threadIdx.x / TSR_WARP;
    const uint32_t plane = blockIdx.x / (CODE_TABLES / CODE_WARPS);
    const int number = (int)(blockIdx.x % (CODE_TABLES / CODE_WARPS) * CODE_WARPS + warp);
    code_memory<TSR_AC_SYMBOLS> &m = memory[warp];
    if (tsr_state_span(planes[plane]) == 1) return;
    tsr_coefficient_model &model = models[plane];
    const bool is_dc = number < TSR_DC_CELLS;
    const int table = is_dc ? number : number - TSR_DC_CELLS;
    if (table >= (is_dc ? model.dc_tables : model.ac_tables)) return;
    const int symbols = is_dc ? (int)TSR_DC_SYMBOLS : (int)TSR_AC_SYMBOLS;
    const uint32_t *mine = counts + (size_t)plane * TSR_PLANE_COUNTS + (is_dc ? 0 : TSR_DC_COUNTS) + table * symbols;
    uint8_t *lengths = is_dc ? model.dc_lengths[table] : model.ac_lengths[table];
    uint16_t *words = is_dc ? codes[plane].dc[table] : codes[plane].ac[table];

    const int used = sort_leaves(m, mine, symbols, lane);
    merge_levels(m, used, lane);
    take_lengths(m, used, lane);
    for (int s = (int)lane; s < symbols; s += TSR_WARP) {
        lengths[s] = 0;
        words[s] = 0;
    }
    __syncwarp();
    for (int i = (int)lane; i < used; i += TSR_WARP) lengths[m.order[i]] = m.length[i];
    __syncwarp();
    assign_codewords(m, lengths, used, words, lane);
}
static_assert(CODE_TABLES % CODE_WARPS == 0, "whole blocks of tables");

} // namespace

int tsr_cuda_train(uint32_t *d_counts, const struct tsr_plane_state *d_plane, uint32_t planes,
                   struct tsr_coefficient_model *d_model, struct tsr_packed_codes *d_codes, cudaStream_t stream)
{
    TSR_CUDA_TRY(tsr_allow_shared(k_merge, sizeof(run_level_merging)));
    TSR_CUDA_TRY(tsr_launch(k_merge, 2 * planes, run_level_merging::THREADS, sizeof(run_level_merging), stream,
                            d_counts, d_plane, d_model));
    return tsr_launch(k_codes, planes * (CODE_TABLES / CODE_WARPS), CODE_WARPS * TSR_WARP, 0, stream, d_counts, d_plane,
                      d_model, d_codes);
}
