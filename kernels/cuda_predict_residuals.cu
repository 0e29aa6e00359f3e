/* Samples to symbols on the device: indices, predictions, residuals, activities, runs, contexts, and their counts.
 * FORMAT.md sections 7.1 to 7.4. */
#include "device.cuh"

#include "../transform/residual.h"
#include "predict_blocks.cuh"

namespace
{

enum { THREADS = 256, WARPS = THREADS / TSR_WARP };

__device__ __forceinline__ bool is_constant(const tsr_predict_batch &p, uint32_t plane)
{
    return tsr_plane_range(p, plane) < 2;
}

/* ---- Indices ------------------------------------------------------------------------------------------------ */

enum { INDEX_GROUP = 8 };

__global__ void __launch_bounds__(THREADS) k_indices(const tsr_predict_batch p, unsigned blocks)
{
    const uint32_t plane = blockIdx.x / blocks;
    const size_t group = (size_t)(blockIdx.x - plane * blocks) * THREADS + threadIdx.x;
    if (group >= p.b.plane_samples / INDEX_GROUP) return;
    const tsr_plane_state state = p.b.plane[plane];
    const uint16_t *index = p.b.index + (size_t)plane * p.b.values;
    uint4 *at = reinterpret_cast<uint4 *>(p.b.samples + plane * p.b.plane_samples) + group;
    uint4 four = *at;
    uint32_t *pair = &four.x;
#pragma unroll
    for (int i = 0; i < 4; i++)
        pair[i] = ((uint32_t)tsr_sample_index(state, index, pair[i] & 0xffffu) & 0xffffu) |
                  (uint32_t)tsr_sample_index(state, index, pair[i] >> 16) << 16;
    *at = four;
}

/* ---- Predictions -------------------------------------------------------------------------------------------- */

enum { BLOCK_WARPS = 4, BLOCK_THREADS = BLOCK_WARPS * TSR_WARP, BLOCK_GROUP = 4 };

/* A warp a block, of planes that have linear predictors: what its label's predictor says of its samples. */
template <int NEIGHBOURS>
__global__ void __launch_bounds__(BLOCK_THREADS) k_predictions(const tsr_predict_batch p, unsigned groups)
{
    constexpr int TAPS = NEIGHBOURS + TSR_REFERENCES_LIMIT * TSR_REFERENCE_TAPS;
    __shared__ int16_t regions[BLOCK_WARPS][TSR_REGION_ROOM];
    const unsigned lane = threadIdx.x % TSR_WARP, warp = threadIdx.x / TSR_WARP;
    const uint32_t plane = blockIdx.x / groups;
    const tsr_predictor_model &model = p.predictor[plane];
    if (is_constant(p, plane) || model.set == 0 || TSR_AT(tsr_neighbours)[model.set] != NEIGHBOURS) return;
    const tsr_plane_view view = tsr_view_plane(p, plane);
    int16_t *region = regions[warp];
    const uint32_t first = ((blockIdx.x - plane * groups) * BLOCK_WARPS + warp) * BLOCK_GROUP;
    for (uint32_t number = first; number < first + BLOCK_GROUP && number < p.b.tiles * p.tile_blocks; number++) {
        const tsr_block_place block = tsr_any_block(p, plane, number);
        if (!block.is_there) continue;
        tsr_stage_block(view, block, view.references, region, lane);
        const int label = p.final_label[block.at];
        const int column = (int)(lane % TSR_PREDICTOR_BLOCK);
        int32_t sum[TSR_PREDICTOR_BLOCK / 2];
#pragma unroll
        for (int round = 0; round < TSR_PREDICTOR_BLOCK / 2; round++) sum[round] = 0;
        if (label < model.classes) {
#pragma unroll
            for (int k = 0; k < TAPS; k++) {
                if (k >= NEIGHBOURS + view.references * TSR_REFERENCE_TAPS) break;
                const int32_t weight = model.weight[label][k];
                const int16_t *at = region + tsr_tap_offset(NEIGHBOURS, k) + column;
#pragma unroll
                for (int round = 0; round < TSR_PREDICTOR_BLOCK / 2; round++)
                    sum[round] += weight * at[(2 * round + (int)(lane / TSR_PREDICTOR_BLOCK)) * TSR_REGION_PITCH];
            }
        }
#pragma unroll
        for (int round = 0; round < TSR_PREDICTOR_BLOCK / 2; round++) {
            const int row = 2 * round + (int)(lane / TSR_PREDICTOR_BLOCK);
            const int32_t y = block.y * TSR_PREDICTOR_BLOCK + row;
            if (column >= block.span.columns || y >= block.tile.height) continue;
            const int32_t prediction =
                label < model.classes
                    ? tsr_linear_prediction(sum[round], (int32_t)view.range)
                    : tsr_region_median(region + TSR_REGION_FIRST + row * TSR_REGION_PITCH + column) + TSR_SAMPLE_BIAS;
            p.prediction[plane * p.b.plane_samples + block.tile.first + (size_t)y * block.tile.stride +
                         (size_t)(block.span.column + column)] = (uint16_t)prediction;
        }
    }
}

/* ---- Residuals ------------------------------------------------------------------------------------------------ */

enum {
    BAND_SAMPLES = 8192, /* of a band of rows, which a block of threads takes; about */
    BAND_LEAST = 16,
    BAND_MOST = 512,
    GUARD = 2, /* columns beside the magnitudes of a row; 1 on the right */
    ROW_WORDS = TSR_TILE_WIDTH / TSR_WARP
};
static_assert(ROW_WORDS == TSR_WARP, "a warp takes a row, each lane 32 columns' flags");

/* What a context byte says until cells are known. */
enum { INTERRUPTION_LEVEL = TSR_ACTIVITY_LEVELS };

int32_t band_rows(const tsr_predict_batch &p)
{
    return tsr_min(BAND_MOST, tsr_max(BAND_LEAST, BAND_SAMPLES / p.b.tile_width));
}

int32_t magnitude_pitch(const tsr_predict_batch &p)
{
    return p.b.tile_width + GUARD + 2;
}

/* Flags of a row's 1024 columns, 32 a lane: begins, or goes on where go is set; bit i of the result: it is going on at
 * column i. That is a carry: the sum of go and begin says where. begin is a subset of go. */
__device__ __forceinline__ uint32_t spread_row(uint32_t go, uint32_t begin, unsigned lane)
{
    const uint64_t alone = (uint64_t)go + begin;
    const uint32_t generates = __ballot_sync(TSR_FULL_WARP, alone >> 32 != 0),
                   passes = __ballot_sync(TSR_FULL_WARP, go == UINT32_MAX);
    const uint64_t into = ((uint64_t)(passes | generates) + generates) ^ (passes | generates) ^ generates;
    const uint64_t sum = alone + (into >> lane & 1u);
    const uint64_t carries = sum ^ go ^ begin; /* bit i: into column i */
    return (uint32_t)(carries >> 1);
}

__global__ void __launch_bounds__(THREADS)
    k_residuals(const tsr_predict_batch p, unsigned bands, int32_t rows, int32_t pitch)
{
    TSR_DYNAMIC_SHARED(memory);
    uint32_t *activity_count = reinterpret_cast<uint32_t *>(memory), *intensity_count = activity_count + 64;
    uint16_t *magnitudes = reinterpret_cast<uint16_t *>(intensity_count + TSR_INTENSITY_LEVELS);
    const unsigned lane = threadIdx.x % TSR_WARP, warp = threadIdx.x / TSR_WARP;
    const uint32_t number = blockIdx.x / bands, plane = number / p.b.tiles;
    if (is_constant(p, plane)) return;
    const tsr_tile tile = tsr_tile_place(&p.b, number - plane * p.b.tiles).tile;
    const int32_t w = tile.width, y0 = (int32_t)(blockIdx.x - number * bands) * rows;
    const int32_t end = tsr_min(tile.height, y0 + rows), from = tsr_max(0, y0 - 2);
    if (y0 >= tile.height) return;
    const int32_t range = (int32_t)tsr_plane_range(p, plane);
    const int shift = tsr_intensity_shift((uint32_t)range);
    const uint16_t *samples = p.b.samples + plane * p.b.plane_samples + tile.first;
    const bool is_linear = p.plan_count > 0 && p.predictor[plane].set != 0;
    const uint16_t *predictions = is_linear ? p.prediction + plane * p.b.plane_samples + tile.first : NULL;
    const size_t places = (size_t)number * p.tile_places;
    uint16_t *value = p.value + places, *intensity = p.intensity + places;
    uint8_t *context = p.context + places;
    for (int i = (int)threadIdx.x; i < 64 + TSR_INTENSITY_LEVELS; i += THREADS) activity_count[i] = 0;

    for (int32_t y = from + (int32_t)warp; y < end; y += WARPS) {
        uint16_t *row = magnitudes + (y - from) * pitch + GUARD;
        const uint16_t *x = samples + (size_t)y * tile.stride;
        for (int32_t c = (int32_t)lane; c < (int32_t)p.tile_pitch; c += TSR_WARP) {
            const size_t at = (size_t)y * p.tile_pitch + (size_t)c;
            if (c >= w) {
                if (y >= y0) value[at] = 0;
                continue;
            }
            int32_t prediction;
            if (y == 0)
                prediction = c > 0 ? x[c - 1] : 0;
            else if (is_linear)
                prediction = predictions[(size_t)y * tile.stride + (size_t)c];
            else {
                const uint16_t *up = x - tile.stride;
                const int32_t corner = c > 0 ? up[c - 1] : y > 1 ? up[-(ptrdiff_t)tile.stride] : up[0];
                prediction = tsr_median_edge(c > 0 ? x[c - 1] : up[0], up[c], corner);
            }
            const int32_t e = tsr_residual(x[c], prediction, range);
            row[c] = (uint16_t)tsr_context_magnitude(e);
            if (y < y0) continue;
            value[at] = (uint16_t)tsr_fold(e);
            intensity[at] = (uint16_t)(prediction >> shift);
        }
    }
    __syncthreads();
    for (int32_t y = from + (int32_t)threadIdx.x; y < end; y += THREADS) {
        uint16_t *row = magnitudes + (y - from) * pitch + GUARD;
        row[-1] = row[-2] = y == 0 || y == from ? (uint16_t)0 : row[-pitch]; /* those of the row from are not read */
        row[w] = row[w - 1];
    }
    __syncthreads();

    for (int32_t y = y0 + (int32_t)warp; y < end; y += WARPS) {
        const uint16_t *row = magnitudes + (y - from) * pitch + GUARD;
        const uint16_t *up = row - pitch, *up2 = y > 1 ? up - pitch : up;
        const size_t first = (size_t)y * p.tile_pitch;
        const bool is_counted = tsr_row_is_sampled(y, p.period);
        const auto level_at = [&](int32_t c) {
            const int32_t activity = y == 0 ? tsr_activity_first_row(row[c - 1], row[c - 2])
                                            : tsr_activity(row[c - 1], up[c], up[c - 1], up[c + 1], row[c - 2], up2[c]);
            return tsr_activity_level(activity);
        };
        uint32_t zeros = 0, quiet = 0; /* of lane's columns: residual 0; activity 0 */
        for (int32_t word = 0; word * TSR_WARP < (int32_t)p.tile_pitch; word++) {
            const int32_t c = word * TSR_WARP + (int32_t)lane;
            const bool is_in = c < w;
            const int level = is_in ? level_at(c) : 0;
            const uint32_t z = __ballot_sync(TSR_FULL_WARP, is_in && row[c] == 0),
                           q = __ballot_sync(TSR_FULL_WARP, is_in && level == 0);
            if ((int)lane == word) zeros = z, quiet = q;
            if (c >= (int32_t)p.tile_pitch) continue;
            context[first + (size_t)c] = is_in ? (uint8_t)level : (uint8_t)TSR_DEVICE_COVERED;
            if (!is_counted || !is_in || level == 0) continue;
            atomicAdd(&activity_count[level], 1u);
            atomicAdd(&intensity_count[intensity[first + (size_t)c]], 1u);
        }
        if (__ballot_sync(TSR_FULL_WARP, (zeros & quiet) != 0) == 0 && __ballot_sync(TSR_FULL_WARP, quiet != 0) == 0)
            continue;
        /* Runs begin at the first quiet one of a stretch of zeros, and end with the stretch. */
        const uint32_t run = spread_row(zeros, zeros & quiet, lane);
        uint32_t before = __shfl_up_sync(TSR_FULL_WARP, run >> 31, 1);
        if (lane == 0) before = 0;
        const uint32_t after = run << 1 | before; /* the column before is in a run */
        const uint32_t full = __ballot_sync(TSR_FULL_WARP, run == UINT32_MAX);
        for (int word = 0; word * TSR_WARP < w; word++) {
            const uint32_t r = __shfl_sync(TSR_FULL_WARP, run, word), a = __shfl_sync(TSR_FULL_WARP, after, word),
                           q = __shfl_sync(TSR_FULL_WARP, quiet, word);
            if ((r | q) == 0) continue;
            const uint32_t not_full = word + 1 < TSR_WARP ? ~(full >> (word + 1)) : 0u;
            const int more = not_full ? __ffs((int)not_full) - 1 : TSR_WARP - 1 - word; /* whole words behind this */
            const uint32_t last = __shfl_sync(TSR_FULL_WARP, run, word + 1 + more < TSR_WARP ? word + 1 + more : 0);
            const int32_t c = word * TSR_WARP + (int32_t)lane;
            if (c >= w) continue;
            const bool in_run = r >> lane & 1u, was_in_run = a >> lane & 1u, is_quiet = q >> lane & 1u;
            const size_t at = first + (size_t)c;
            if (in_run && !was_in_run) {
                const uint32_t rest = ~(r >> lane); /* bits behind the word are ones */
                uint32_t length = (uint32_t)__ffs((int)rest) - 1u;
                if (rest == 0) length = TSR_WARP; /* lane 0 of a whole word */
                if (length == TSR_WARP - lane && word + 1 < TSR_WARP) {
                    length += (uint32_t)more * TSR_WARP;
                    if (word + 1 + more < TSR_WARP) length += (uint32_t)__ffs((int)~last) - 1u;
                }
                value[at] = (uint16_t)(c + (int32_t)length < w ? length : (uint32_t)TSR_DEVICE_TO_END);
                context[at] = TSR_DEVICE_RUN;
            } else if (in_run) {
                if (is_counted && !is_quiet) {
                    atomicSub(&activity_count[context[at]], 1u);
                    atomicSub(&intensity_count[intensity[at]], 1u);
                }
                context[at] = TSR_DEVICE_COVERED;
            } else if (is_quiet && was_in_run) {
                context[at] = INTERRUPTION_LEVEL;
            }
        }
    }
    __syncthreads();
    uint32_t *sums = p.levels[plane].activity;
    for (int i = (int)threadIdx.x; i < 64 + TSR_INTENSITY_LEVELS; i += THREADS)
        if (activity_count[i] != 0) atomicAdd(&sums[i], activity_count[i]);
}

/* ---- Cuts --------------------------------------------------------------------------------------------------- */

enum { CUT_THREADS = 256, CUT_EACH = TSR_INTENSITY_LEVELS / CUT_THREADS };

/* tsr_cut_quantiles by a block: each thread has CUT_EACH levels. Groups rise with the levels. sums: shared; tops:
 * shared, a value a thread. Returns the number of cuts. */
__device__ __forceinline__ int cut_quantiles(const uint32_t *counts, int levels, int groups, uint16_t *cuts,
                                             uint64_t *sums, int *tops)
{
    const int thread = (int)threadIdx.x, first = thread * CUT_EACH;
    uint64_t here = 0, total;
    for (int i = first; i < first + CUT_EACH && i < levels; i++) here += counts[i];
    uint64_t before = tsr_block_scan<CUT_THREADS>(here, sums, &total);
    const uint64_t start = before;
    int top = -1; /* the highest group of this thread's levels */
    for (int i = first; i < first + CUT_EACH && i < levels; i++) {
        if (counts[i] == 0) continue;
        top = tsr_quantile_group(before, counts[i], total, groups);
        before += counts[i];
    }
    __syncthreads();
    tops[thread] = top;
    __syncthreads();
    int group = -1;
    for (int t = thread - 1; t >= 0 && group < 0; t--) group = tops[t];
    int own = 0, found = group;
    before = start;
    for (int i = first; i < first + CUT_EACH && i < levels; i++) {
        if (counts[i] == 0) continue;
        const int level_group = tsr_quantile_group(before, counts[i], total, groups);
        own += found >= 0 && level_group != found;
        found = level_group;
        before += counts[i];
    }
    __syncthreads();
    uint64_t all;
    uint64_t place = tsr_block_scan<CUT_THREADS>((uint64_t)own, sums, &all);
    before = start;
    found = group;
    for (int i = first; i < first + CUT_EACH && i < levels; i++) {
        if (counts[i] == 0) continue;
        const int level_group = tsr_quantile_group(before, counts[i], total, groups);
        if (found >= 0 && level_group != found) cuts[place++] = (uint16_t)i;
        found = level_group;
        before += counts[i];
    }
    __syncthreads();
    return (int)all;
}

/* A block a plane. */
__global__ void __launch_bounds__(CUT_THREADS) k_cuts(const tsr_predict_batch p)
{
    __shared__ uint64_t sums[CUT_THREADS / TSR_WARP];
    __shared__ int tops[CUT_THREADS];
    const uint32_t plane = blockIdx.x;
    if (is_constant(p, plane)) return;
    tsr_residual_model &model = p.residual[plane]; /* all zero */
    tsr_device_levels &levels = p.levels[plane];
    if (p.period > 0 && threadIdx.x == 0) levels.activity[1]++, levels.intensity[0]++; /* there may be none */
    __syncthreads();
    tsr_device_groups &groups = p.groups[plane];
    const int activity_cuts =
        cut_quantiles(levels.activity, TSR_ACTIVITY_LEVELS, p.activity_groups, model.activity_cut, sums, tops);
    const int intensity_cuts =
        cut_quantiles(levels.intensity, TSR_INTENSITY_LEVELS, p.intensity_groups, model.intensity_cut, sums, tops);
    if (threadIdx.x == 0) {
        model.lanes = (uint8_t)p.lanes;
        model.activity_cuts = (uint8_t)activity_cuts;
        model.intensity_cuts = (uint8_t)intensity_cuts;
    }
    for (int l = (int)threadIdx.x; l < TSR_ACTIVITY_LEVELS; l += CUT_THREADS)
        groups.activity[l] = tsr_group_of(model.activity_cut, activity_cuts, l);
    for (int l = (int)threadIdx.x; l < TSR_INTENSITY_LEVELS; l += CUT_THREADS)
        groups.intensity[l] = tsr_group_of(model.intensity_cut, intensity_cuts, l);
}

/* ---- Contexts ------------------------------------------------------------------------------------------------- */

enum { COUNT_THREADS = 512, COUNT_SAMPLES = 65536, COUNT_EACH = 4 };

/* A block some rows of a tile: contexts from levels, and symbols counted. */
__global__ void __launch_bounds__(COUNT_THREADS) k_contexts(const tsr_predict_batch p, unsigned bands, int32_t rows)
{
    TSR_DYNAMIC_SHARED(memory);
    tsr_device_groups &groups = *reinterpret_cast<tsr_device_groups *>(memory);
    uint32_t *counts = reinterpret_cast<uint32_t *>(memory + sizeof groups);
    const uint32_t number = blockIdx.x / bands, plane = number / p.b.tiles;
    if (is_constant(p, plane)) return;
    const tsr_tile tile = tsr_tile_place(&p.b, number - plane * p.b.tiles).tile;
    const int32_t y0 = (int32_t)(blockIdx.x - number * bands) * rows, end = tsr_min(tile.height, y0 + rows);
    if (y0 >= end) return;
    const int across = p.residual[plane].intensity_cuts + 1, cells = across * (p.residual[plane].activity_cuts + 1);
    const int used = TSR_FIRST_RESIDUAL_TABLE * TSR_RUN_ALPHABET + cells * TSR_RESIDUAL_SYMBOLS;
    const uint32_t *all = reinterpret_cast<const uint32_t *>(&p.groups[plane]);
    for (unsigned i = threadIdx.x; i < sizeof groups / 4; i += COUNT_THREADS)
        reinterpret_cast<uint32_t *>(memory)[i] = all[i];
    for (int i = (int)threadIdx.x; i < used; i += COUNT_THREADS) counts[i] = 0;
    __syncthreads();
    uint32_t *cell_counts = counts + TSR_FIRST_RESIDUAL_TABLE * TSR_RUN_ALPHABET;
    const size_t first = (size_t)number * p.tile_places + (size_t)y0 * p.tile_pitch;
    const size_t groups_of_samples = (size_t)(end - y0) * p.tile_pitch / COUNT_EACH;
    for (size_t g = threadIdx.x; g < groups_of_samples; g += COUNT_THREADS) {
        const size_t at = first + g * COUNT_EACH;
        uint32_t four = *reinterpret_cast<const uint32_t *>(p.context + at);
        if (four == 0xffffffffu) continue;
        const uint2 values = *reinterpret_cast<const uint2 *>(p.value + at);
        const bool is_counted =
            p.period == 0 || tsr_row_is_sampled(y0 + (int32_t)(g * COUNT_EACH / p.tile_pitch), p.period);
#pragma unroll
        for (int i = 0; i < COUNT_EACH; i++) {
            const uint32_t level = four >> (8 * i) & 255u;
            const uint32_t value = (i < 2 ? values.x : values.y) >> (16 * (i & 1)) & 0xffffu;
            if (level == TSR_DEVICE_COVERED) continue;
            if (level == TSR_DEVICE_RUN) {
                if (is_counted) atomicAdd(&counts[TSR_RUN_TABLE * TSR_RUN_ALPHABET + tsr_device_run_symbol(value)], 1u);
                continue;
            }
            const int symbol = tsr_token_symbol(value);
            if (level == 0 || level == INTERRUPTION_LEVEL) {
                const uint32_t table = level == 0 ? TSR_RUN_TABLE : TSR_INTERRUPTION_TABLE;
                if (is_counted) atomicAdd(&counts[table * TSR_RUN_ALPHABET + (uint32_t)symbol], 1u);
                four = (four & ~(255u << (8 * i))) | table << (8 * i);
                continue;
            }
            const int cell = groups.activity[level] * across + groups.intensity[p.intensity[at + (size_t)i]];
            if (is_counted) atomicAdd(&cell_counts[cell * TSR_RESIDUAL_SYMBOLS + symbol], 1u);
            four = (four & ~(255u << (8 * i))) | (uint32_t)(TSR_DEVICE_FIRST_CELL + cell) << (8 * i);
        }
        *reinterpret_cast<uint32_t *>(p.context + at) = four;
    }
    __syncthreads();
    uint32_t *sums = p.counts + plane * p.cell_counts;
    for (int i = (int)threadIdx.x; i < used; i += COUNT_THREADS)
        if (counts[i] != 0) atomicAdd(&sums[i], counts[i]);
}
static_assert(sizeof(tsr_device_groups) % 4 == 0, "groups are copied by words");

} // namespace

int tsr_predict_indices(const struct tsr_predict_batch *batch, cudaStream_t stream)
{
    const unsigned blocks = (unsigned)((batch->b.plane_samples / INDEX_GROUP + THREADS - 1) / THREADS);
    return tsr_launch(k_indices, batch->b.planes * blocks, THREADS, 0, stream, *batch, blocks);
}

int tsr_predict_samples(const struct tsr_predict_batch *batch, cudaStream_t stream)
{
    const uint32_t blocks = batch->b.tiles * batch->tile_blocks, each = BLOCK_WARPS * BLOCK_GROUP;
    const unsigned groups = (blocks + each - 1) / each, grid = batch->b.planes * groups;
    for (int i = 0; i < batch->plan_count; i++) {
        const int set = batch->plan[i].set;
        TSR_CUDA_TRY(tsr_launch(set == 1   ? k_predictions<10>
                                : set == 2 ? k_predictions<18>
                                           : k_predictions<30>,
                                grid, BLOCK_THREADS, 0, stream, *batch, groups));
    }
    return cudaSuccess;
}

int tsr_predict_residuals(const struct tsr_predict_batch *batch, cudaStream_t stream)
{
    const int32_t rows = band_rows(*batch), pitch = magnitude_pitch(*batch);
    const unsigned bands = (unsigned)((batch->b.tile_height + rows - 1) / rows);
    const size_t bytes =
        (64 + TSR_INTENSITY_LEVELS) * sizeof(uint32_t) + (size_t)(rows + 2) * (size_t)pitch * sizeof(uint16_t);
    TSR_CUDA_TRY(cudaFuncSetAttribute(k_residuals, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    return tsr_launch(k_residuals, batch->b.planes * batch->b.tiles * bands, THREADS, bytes, stream, *batch, bands,
                      rows, pitch);
}

int tsr_predict_contexts(const struct tsr_predict_batch *batch, cudaStream_t stream)
{
    const int32_t rows = tsr_max(1, COUNT_SAMPLES / (int32_t)batch->tile_pitch);
    const unsigned bands = (unsigned)((batch->b.tile_height + rows - 1) / rows);
    const size_t bytes = sizeof(tsr_device_groups) + batch->cell_counts * sizeof(uint32_t);
    TSR_CUDA_TRY(tsr_launch(k_cuts, batch->b.planes, CUT_THREADS, 0, stream, *batch));
    TSR_CUDA_TRY(cudaFuncSetAttribute(k_contexts, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    return tsr_launch(k_contexts, batch->b.planes * batch->b.tiles * bands, COUNT_THREADS, bytes, stream, *batch, bands,
                      rows);
}
