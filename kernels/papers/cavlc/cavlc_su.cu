/* CAVLC_SU, after Su et al. as seed 004 (section 3) describes them: a kernel a stage, with symbols in global memory
 * between stages.
 *
 *   forward scan    through shared memory: zigzag arrays and total coefficients of all blocks
 *   backward scan   nC from the totals of a region of 4 x 2 macroblocks, held in shared memory with its left and upper
 *                   border; trailing ones, coefficients, total zeros and runs of each block
 *   coding          code tables in shared memory; a block's code into memory of its own, and its length
 *   lag packing     kernels/papers/cavlc/cavlc_gapped.cuh: scan of the lengths, and packing
 *
 * Differences: A block's code has 32 shorts, stored two at a time, not 26, which legal blocks overflow. Symbols lie by
 * kind (the k-th coefficients of all blocks together), so that a warp's accesses are coalesced. Only luma blocks are
 * coded, as in the whole family. In slices order a region is 8 rows of a slice. */
#include "kernels/slices/cavlc_blocks.cuh"
#include "cavlc_gapped.cuh"

namespace
{

using tsr_cavlc_gapped::coefficient_output;
using tsr_cavlc_gapped::frame_shape;
using tsr_cavlc_gapped::layout;
using tsr_cavlc_gapped::shape_of;
using tsr_cavlc_gapped::word_output;

enum { REGION_COLUMNS = 16, REGION_ROWS = 8, REGION_BLOCKS = REGION_COLUMNS * REGION_ROWS };

/* A block's symbols, apart from its coefficients and runs. */
struct summary {
    uint8_t count; /* 15, 16, or 0: the block is not coded */
    uint8_t total, ones, signs, zeros, context;
    uint8_t unused[2];
};

struct pieces {
    uint32_t *zigzag; /* 8 words a block */
    uint8_t *totals;
    summary *summaries;
    int16_t *coefficients; /* the k-th is at k * blocks + block, the last in the scan first */
    uint8_t *runs;         /* in the same order */
};

__device__ __forceinline__ uint32_t places_of(const frame_shape &f, uint32_t block)
{
    if (!f.sizes) return f.flags[block / 16u] & TSR_MB_INTRA16X16 ? 15u : 16u;
    const tsr_slice_size size = f.sizes[block / TSR_SLICE_PLACES];
    return block % 16u < size.columns && block / 16u % 16u < size.rows ? 16u : 0u;
}

template <unsigned THREADS>
__global__ void __launch_bounds__(THREADS)
    k_forward_scan(const uint4 *coefficients, frame_shape f, uint32_t *zigzag, uint8_t *totals)
{
    enum { PITCH = 12 }; /* words a block in shared memory: 16-byte aligned, and 8 blocks lie in different banks */
    __shared__ __align__(16) uint32_t s[THREADS * PITCH];
    const unsigned thread = threadIdx.x;
    const uint32_t first = blockIdx.x * THREADS, block = first + thread;
    const uint32_t quarters = 2u * (f.blocks - first < THREADS ? f.blocks - first : THREADS); /* 16 bytes each */
    for (uint32_t i = thread; i < quarters; i += THREADS)
        *reinterpret_cast<uint4 *>(&s[i / 2u * PITCH + i % 2u * 4u]) = __ldg(&coefficients[2u * (size_t)first + i]);
    __syncthreads();
    if (block < f.blocks) {
        uint4 *mine = reinterpret_cast<uint4 *>(&s[thread * PITCH]);
        uint4 low = mine[0];
        const uint4 high = mine[1];
        const uint32_t places = places_of(f, block);
        if (places == 15u) low.x &= 0xffff0000u;
        uint32_t pairs[8];
        tsr_zigzag_pairs(low, high, pairs);
        totals[block] = places == 0 ? (uint8_t)0 : (uint8_t)__popc(tsr_nonzero_mask(pairs));
        mine[0] = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
        mine[1] = make_uint4(pairs[4], pairs[5], pairs[6], pairs[7]);
    }
    __syncthreads();
    for (uint32_t i = thread; i < quarters; i += THREADS)
        reinterpret_cast<uint4 *>(zigzag)[2u * (size_t)first + i] =
            *reinterpret_cast<const uint4 *>(&s[i / 2u * PITCH + i % 2u * 4u]);
}

/* The block at a place of a region, which may lie one step outside the region. -1 if there is no block. */
__device__ __forceinline__ int64_t block_at(const frame_shape &f, uint32_t region, int32_t row, int32_t column)
{
    if (f.sizes) {
        row += (int32_t)(region % 2u * REGION_ROWS);
        if (row < 0 || column < 0) return -1;
        return (int64_t)(region / 2u) * TSR_SLICE_PLACES + 16 * row + column;
    }
    const uint32_t across = (f.mb_columns + 3u) / 4u, down = (f.mb_rows + 1u) / 2u;
    row += (int32_t)(region / across % down * REGION_ROWS);
    column += (int32_t)(region % across * REGION_COLUMNS);
    if (row < 0 || column < 0 || row >= (int32_t)(4u * f.mb_rows) || column >= (int32_t)(4u * f.mb_columns)) return -1;
    const int64_t line = (int64_t)(region / across / down) * f.mb_rows + row / 4;
    return (line * f.mb_columns + column / 4) * TSR_MB_BLOCKS + row % 4 * 4 + column % 4;
}

/* Slice << 8 | total of the block at a place of a region, or -1. */
__device__ __forceinline__ int32_t neighbour_at(const frame_shape &f, const uint8_t *totals, uint32_t region,
                                                int32_t row, int32_t column)
{
    const int64_t block = block_at(f, region, row, column);
    if (block < 0) return -1;
    return (f.sizes ? 0 : (int32_t)f.slices[block / TSR_MB_BLOCKS] << 8) | totals[block];
}

__device__ __forceinline__ int total_of(int32_t neighbour, int32_t own)
{
    return neighbour >= 0 && neighbour >> 8 == own >> 8 ? neighbour & 255 : -1;
}

__global__ void __launch_bounds__(REGION_BLOCKS) k_backward_scan(frame_shape f, pieces p)
{
    enum { PITCH = REGION_COLUMNS + 1 };
    __shared__ int32_t s_totals[(REGION_ROWS + 1) * PITCH]; /* with the row above and the column to the left */
    __shared__ uint32_t s_coefficients[8 * REGION_BLOCKS];
    const unsigned thread = threadIdx.x, row = thread / REGION_COLUMNS, column = thread % REGION_COLUMNS;
    for (unsigned i = thread; i < (REGION_ROWS + 1) * PITCH; i += REGION_BLOCKS)
        s_totals[i] = neighbour_at(f, p.totals, blockIdx.x, (int32_t)(i / PITCH) - 1, (int32_t)(i % PITCH) - 1);
    __syncthreads();
    const int64_t at = block_at(f, blockIdx.x, (int32_t)row, (int32_t)column);
    if (at < 0) return;
    const uint32_t block = (uint32_t)at, places = places_of(f, block);
    summary symbols = {(uint8_t)places, 0, 0, 0, 0, 0, {0, 0}};
    if (places > 0) {
        const uint4 *zigzag = reinterpret_cast<const uint4 *>(p.zigzag) + 2u * (size_t)block;
        const uint4 low = __ldg(&zigzag[0]), high = __ldg(&zigzag[1]);
        const uint32_t pairs[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
        for (int k = 0; k < 8; k++) s_coefficients[k * REGION_BLOCKS + thread] = pairs[k];
        const int32_t own = s_totals[(row + 1u) * PITCH + column + 1u];
        symbols.context = (uint8_t)tsr_cavlc_context(total_of(s_totals[(row + 1u) * PITCH + column], own),
                                                     total_of(s_totals[row * PITCH + column + 1u], own));
        const uint32_t mask = tsr_nonzero_mask(pairs);
        symbols.total = (uint8_t)__popc(mask);
        if (mask != 0) symbols.zeros = (uint8_t)(tsr_highest_bit(mask) + 1u - (16u - places) - symbols.total);
        uint32_t rest = mask;
        bool trailing = true;
        for (size_t k = block; rest != 0; k += f.blocks) {
            const uint32_t place = tsr_highest_bit(rest);
            rest ^= 1u << place;
            const int16_t coefficient =
                reinterpret_cast<const int16_t *>(&s_coefficients[place / 2u * REGION_BLOCKS + thread])[place % 2u];
            trailing = trailing && symbols.ones < 3 && (coefficient == 1 || coefficient == -1);
            if (trailing) {
                symbols.ones++;
                symbols.signs = (uint8_t)(2 * symbols.signs + (coefficient < 0));
            }
            p.coefficients[k] = coefficient;
            if (rest != 0) p.runs[k] = (uint8_t)(place - tsr_highest_bit(rest) - 1u);
        }
    }
    reinterpret_cast<uint2 *>(p.summaries)[block] = *reinterpret_cast<const uint2 *>(&symbols);
}

template <unsigned THREADS>
__global__ void __launch_bounds__(THREADS) k_coding(uint32_t blocks, pieces p, uint32_t *words, uint16_t *lengths)
{
    __shared__ tsr_cavlc_tables tables;
    tables.fill(threadIdx.x, THREADS);
    __syncthreads();
    const uint32_t block = blockIdx.x * THREADS + threadIdx.x;
    if (block >= blocks) return;
    const uint2 packed = __ldg(reinterpret_cast<const uint2 *>(p.summaries) + block);
    const uint32_t count = packed.x & 255u, total = packed.x >> 8 & 255u, ones = packed.x >> 16 & 255u;
    const uint32_t signs = packed.x >> 24;
    uint32_t zeros = packed.y & 255u;
    const int context = (int)(packed.y >> 8 & 255u);
    if (count == 0) {
        lengths[block] = 0;
        return;
    }
    uint32_t *const code = words + (size_t)block * tsr_cavlc_gapped::BLOCK_WORDS;
    word_output output = {code, 0, 0};
    uint32_t entry = tables.token[68u * (uint32_t)tsr_coeff_token_table(context) + 4u * total + ones];
    output.put((entry & 255u) << ones | signs, (entry >> 8) + ones);
    coefficient_output coded(total, ones);
    for (uint32_t i = ones; i < total; i++) coded.put(output, __ldg(&p.coefficients[(size_t)i * blocks + block]));
    if (total != 0 && total != count) {
        entry = tables.zeros[16u * (total - 1u) + zeros];
        output.put(entry & 255u, entry >> 8);
        for (uint32_t i = 0; i + 1u < total && zeros != 0; i++) {
            const uint32_t run = __ldg(&p.runs[(size_t)i * blocks + block]);
            entry = tables.run[16u * (zeros < 7u ? zeros : 7u) + run];
            output.put(entry & 15u, entry >> 4);
            zeros -= run;
        }
    }
    lengths[block] = (uint16_t)output.end(code);
}

/* ---- The row -------------------------------------------------------------------------------------------------------
 */

pieces pieces_of(const tsr_cavlc_job *job, unsigned char **end)
{
    const size_t blocks = job->blocks;
    unsigned char *at = tsr_cavlc_gapped::layout_of(job).end;
    pieces p;
    p.zigzag = reinterpret_cast<uint32_t *>(at);
    at += 32 * blocks;
    p.coefficients = reinterpret_cast<int16_t *>(at);
    at += 32 * blocks;
    p.runs = at;
    at += 16 * blocks;
    p.summaries = reinterpret_cast<summary *>(at);
    at += sizeof(summary) * blocks;
    p.totals = at;
    *end = at + blocks;
    return p;
}

template <unsigned THREADS> int forward(const tsr_cavlc_job *job)
{
    unsigned char *end;
    const pieces p = pieces_of(job, &end);
    return tsr_launch(k_forward_scan<THREADS>, (unsigned)(((uint64_t)job->blocks + THREADS - 1u) / THREADS), THREADS, 0,
                      static_cast<cudaStream_t>(job->stream), reinterpret_cast<const uint4 *>(job->coefficients),
                      shape_of(job), p.zigzag, p.totals);
}

template <unsigned THREADS> int coding(const tsr_cavlc_job *job)
{
    unsigned char *end;
    const layout l = tsr_cavlc_gapped::layout_of(job);
    return tsr_launch(k_coding<THREADS>, (unsigned)(((uint64_t)job->blocks + THREADS - 1u) / THREADS), THREADS, 0,
                      static_cast<cudaStream_t>(job->stream), job->blocks, pieces_of(job, &end), l.words, l.lengths);
}

int forward_scan(const void *family_job, int policy)
{
    const tsr_cavlc_job *job = static_cast<const tsr_cavlc_job *>(family_job);
    return policy == 0 ? forward<128>(job) : forward<256>(job);
}

int backward_scan(const void *family_job, int)
{
    const tsr_cavlc_job *job = static_cast<const tsr_cavlc_job *>(family_job);
    unsigned char *end;
    const uint32_t regions = job->blocks == 0 ? 0
                             : job->order == TSR_ORDER_SLICES
                                 ? job->blocks / REGION_BLOCKS
                                 : (job->mb_columns + 3u) / 4u * ((job->mb_rows + 1u) / 2u) * job->frames;
    return tsr_launch(k_backward_scan, regions, REGION_BLOCKS, 0, static_cast<cudaStream_t>(job->stream), shape_of(job),
                      pieces_of(job, &end));
}

int code_blocks(const void *family_job, int policy)
{
    const tsr_cavlc_job *job = static_cast<const tsr_cavlc_job *>(family_job);
    return policy == 0 ? coding<128>(job) : coding<256>(job);
}

const char *policy_name(int policy)
{
    return policy == 0 ? "128 threads" : "256 threads";
}

size_t workspace_bytes(const void *family_job, int)
{
    tsr_cavlc_job job = *static_cast<const tsr_cavlc_job *>(family_job);
    job.workspace = NULL;
    unsigned char *end;
    pieces_of(&job, &end);
    return reinterpret_cast<uintptr_t>(end);
}

} // namespace

const tsr_kernel_row tsr_cavlc_su = {"after CAVLC_SU",
                                     "after Su et al., as seed 004 (section 3) has them",
                                     1,
                                     2,
                                     0,
                                     policy_name,
                                     workspace_bytes,
                                     {{"forward scan", forward_scan},
                                      {"backward scan", backward_scan},
                                      {"coding", code_blocks},
                                      {"scan", tsr_cavlc_gapped::scan},
                                      {"pack", tsr_cavlc_gapped::pack},
                                      {NULL, NULL}}};
