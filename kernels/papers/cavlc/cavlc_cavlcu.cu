/* CAVLCU (seed 004, section 4): one kernel, with a thread a 4x4 block and a block of threads a region of REG_SIZE
 * macroblocks.
 *
 * As in the paper: the block comes by a vector load. Zigzag and symbols stay in registers. Masks of coefficients are
 * taken apart by ffs and counted by popc. nA comes by shuffle or through shared memory; nA and nB of other regions come
 * through d_info_A and d_info_B, on which the reader waits and from which it takes them by atomicExch. Tables come by
 * read-only loads, codewords of coefficients are computed. Each block has 16 words of output.
 *
 * Wrong or dated in the paper, and corrected here: Regions take their numbers from an atomic ticket, because they wait
 * for earlier regions, and a block's own number does not promise that blocks with lower numbers have begun.
 * __shfl_up_sync replaces __shfl_up.
 *
 * Our choices: Infos and the ticket are zeroed before each run (phase "fill"). In the paper infos are zeroed once, and
 * then by their readers, which works only if every run ends. Masks are made from two coefficients at a time; a
 * coefficient is chosen from registers by selects. In slices order, which the paper does not have, a region is REG_SIZE
 * rows of 16 blocks, and nB comes from the row above through shared memory, or from another region through d_info_B.
 * Phases scan and pack make one string of the gapped output; the paper leaves the gaps. */
#include "kernels/slices/cavlc_blocks.cuh"
#include "cavlc_gapped.cuh"

namespace
{

using tsr_cavlc_gapped::coefficient_output;
using tsr_cavlc_gapped::frame_shape;
using tsr_cavlc_gapped::layout;
using tsr_cavlc_gapped::word_output;

/* What a block tells its neighbours: its slice and total coefficients. Never 0. */
__device__ __forceinline__ uint32_t info_of(uint32_t slice, uint32_t total)
{
    return slice << 16 | 32u | total;
}

/* nA or nB from a neighbour's info; -1 if the neighbour is in another slice. */
__device__ __forceinline__ int total_of(uint32_t info, uint32_t slice)
{
    return info >> 16 == slice ? (int)(info & 31u) : -1;
}

/* Waits until another region has written its info, and takes it: 0 is left there. */
__device__ __forceinline__ uint32_t take_info(uint32_t *at)
{
    uint32_t info;
    while ((info = atomicExch(at, 0u)) == 0) tsr_wait_a_little();
    return info;
}

/* The coefficient at a place of the scan, chosen from registers. */
__device__ __forceinline__ int32_t coefficient_of(const uint32_t pairs[8], uint32_t place)
{
    const uint32_t a = place & 8u ? pairs[4] : pairs[0], b = place & 8u ? pairs[5] : pairs[1];
    const uint32_t c = place & 8u ? pairs[6] : pairs[2], d = place & 8u ? pairs[7] : pairs[3];
    const uint32_t even = place & 4u ? c : a, odd = place & 4u ? d : b;
    const uint32_t pair = place & 2u ? odd : even;
    return place & 1u ? (int32_t)pair >> 16 : (int32_t)(int16_t)(uint16_t)pair;
}

/* Returns the bit of the last coefficient and clears it. In masks, as in the paper's, bit 15 - p stands for place p, so
 * that ffs finds the last coefficient first. */
__device__ __forceinline__ uint32_t take_last(uint32_t *mask)
{
    const uint32_t at = (uint32_t)__ffs((int)*mask) - 1u;
    *mask &= *mask - 1u;
    return at;
}

/* Section 4.6. Writes a block's code and returns its length in bits. mask: the paper's ZigzagArrayMask of count places,
 * with the last place in bit 0. skip: 16 - count, the places of the scan before the first. */
__device__ __forceinline__ uint32_t encode_block(const uint32_t pairs[8], uint32_t mask, uint32_t count, uint32_t skip,
                                                 int context, uint32_t *words)
{
    const uint32_t total = (uint32_t)__popc(mask);
    word_output output = {words, 0, 0};
    uint32_t coefficients = mask, ones = 0, signs = 0;
    while (coefficients != 0 && ones < 3u) {
        uint32_t rest = coefficients;
        const int32_t coefficient = coefficient_of(pairs, count - 1u - take_last(&rest) + skip);
        if (coefficient != 1 && coefficient != -1) break;
        coefficients = rest;
        ones++;
        signs = 2u * signs + (coefficient < 0);
    }
    const int table = tsr_coeff_token_table(context);
    uint32_t entry;
    if (table == 3)
        entry = 6u << 8 | (total == 0 ? 3u : (total - 1u) << 2 | ones);
    else {
        entry = __ldg(&TSR_AT(tsr_coeff_token_codewords)[68 * table + 4 * (int)total + (int)ones]);
        entry = (entry >> 4) << 8 | (entry & 15u);
    }
    output.put((entry & 255u) << ones | signs, (entry >> 8) + ones);
    coefficient_output coded(total, ones);
    while (coefficients != 0) coded.put(output, coefficient_of(pairs, count - 1u - take_last(&coefficients) + skip));
    if (total != 0 && total != count) {
        uint32_t last = take_last(&mask), zeros = count - total - last;
        entry = __ldg(&TSR_AT(tsr_total_zeros_codewords)[16u * (total - 1u) + zeros]);
        output.put(entry & 15u, entry >> 4);
        while (zeros != 0 && mask != 0) {
            const uint32_t at = take_last(&mask), run = at - last - 1u;
            last = at;
            entry = __ldg(&TSR_AT(tsr_run_before_codewords)[15u * ((zeros < 7u ? zeros : 7u) - 1u) + run]);
            output.put(entry & 15u, entry >> 4);
            zeros -= run;
        }
    }
    return output.end(words);
}

/* Section 4.5, in the paper's order of blocks. */
template <unsigned REG_SIZE>
__device__ __forceinline__ int macroblock_context(const frame_shape &f, uint32_t region, uint32_t block, uint32_t total,
                                                  uint32_t *s_info, uint32_t *d_info_a, uint32_t *d_info_b)
{
    const unsigned thread = threadIdx.x, x = thread % 4u, y = thread / 4u % 4u, z = thread / 16u;
    const uint32_t macroblock = block / 16u, macroblocks = f.blocks / 16u;
    const bool present = block < f.blocks;
    const uint32_t column = macroblock % f.mb_columns, row = macroblock / f.mb_columns % f.mb_rows;
    const uint32_t slice = present ? __ldg(&f.slices[macroblock]) : 0u, info = info_of(slice, total);
    if (present && x == 3u) {
        if (z + 1u < REG_SIZE)
            s_info[4u * z + y] = info;
        else if (macroblock + 1u < macroblocks && column + 1u < f.mb_columns)
            atomicExch(&d_info_a[4u * region + y], info);
    }
    if (present && y == 3u && row + 1u < f.mb_rows) atomicExch(&d_info_b[4u * macroblock + x], info);
    const uint32_t left = __shfl_up_sync(TSR_FULL_WARP, info, 1), up = __shfl_up_sync(TSR_FULL_WARP, info, 4);
    __syncthreads();
    if (!present) return 0;
    int a = -1, b = -1;
    if (x > 0)
        a = total_of(left, slice);
    else if (column > 0)
        a = total_of(z > 0 ? s_info[4u * (z - 1u) + y] : take_info(&d_info_a[4u * (region - 1u) + y]), slice);
    if (y > 0)
        b = total_of(up, slice);
    else if (row > 0)
        b = total_of(take_info(&d_info_b[4u * (macroblock - f.mb_columns) + x]), slice);
    return tsr_cavlc_context(a, b);
}

/* The same in slices order; the thread has block x of row z of the region. */
template <unsigned REG_SIZE>
__device__ __forceinline__ int slice_context(uint32_t region, uint32_t block, uint32_t total, uint32_t *s_info,
                                             uint32_t *d_info_b)
{
    const unsigned thread = threadIdx.x, x = thread % 16u, z = thread / 16u;
    const uint32_t row = block / 16u % 16u, info = info_of(0, total);
    if (z + 1u < REG_SIZE)
        s_info[thread] = info;
    else if (row + 1u < 16u)
        atomicExch(&d_info_b[16u * region + x], info);
    const uint32_t left = __shfl_up_sync(TSR_FULL_WARP, info, 1);
    __syncthreads();
    int a = -1, b = -1;
    if (x > 0) a = total_of(left, 0);
    if (row > 0) b = total_of(z > 0 ? s_info[thread - 16u] : take_info(&d_info_b[16u * (region - 1u) + x]), 0);
    return tsr_cavlc_context(a, b);
}

template <unsigned REG_SIZE, bool SLICES>
__global__ void __launch_bounds__(16 * REG_SIZE)
    k_cavlcu(const uint4 *coefficients, frame_shape f, unsigned *ticket, uint32_t *d_info_a, uint32_t *d_info_b,
             uint32_t *words, uint16_t *lengths)
{
    __shared__ uint32_t s_region, s_info[16 * REG_SIZE];
    if (threadIdx.x == 0) s_region = atomicAdd(ticket, 1u);
    __syncthreads();
    const uint32_t region = s_region, block = region * 16u * REG_SIZE + threadIdx.x;
    bool present = block < f.blocks;
    uint32_t skip = 0;
    if (present && SLICES) {
        const tsr_slice_size size = f.sizes[block / TSR_SLICE_PLACES];
        present = block % 16u < size.columns && block / 16u % 16u < size.rows;
    } else if (present) {
        skip = __ldg(&f.flags[block / 16u]) & TSR_MB_INTRA16X16;
    }
    uint4 low = make_uint4(0, 0, 0, 0), high = low;
    if (present) {
        low = __ldg(&coefficients[2u * (size_t)block]);
        high = __ldg(&coefficients[2u * (size_t)block + 1u]);
    }
    if (skip) low.x &= 0xffff0000u;
    uint32_t pairs[8];
    tsr_zigzag_pairs(low, high, pairs);
    const uint32_t mask = __brev(tsr_nonzero_mask(pairs)) >> 16, total = (uint32_t)__popc(mask);
    const int context = SLICES ? slice_context<REG_SIZE>(region, block, total, s_info, d_info_b)
                               : macroblock_context<REG_SIZE>(f, region, block, total, s_info, d_info_a, d_info_b);
    __syncwarp();
    if (present)
        lengths[block] = (uint16_t)encode_block(pairs, mask, 16u - skip, skip, context,
                                                words + (size_t)block * tsr_cavlc_gapped::BLOCK_WORDS);
    else if (block < f.blocks)
        lengths[block] = 0;
}

/* ---- The row -------------------------------------------------------------------------------------------------------
 */

const unsigned region_sizes[] = {2, 4, 8, 16, 32};

/* The zeroed pieces after the gapped output: the ticket, d_info_A, d_info_B. */
struct zeroed {
    unsigned *ticket;
    uint32_t *info_a, *info_b;
    size_t bytes;
};

uint32_t regions_of(const tsr_cavlc_job *job, unsigned region_size)
{
    return (uint32_t)(((uint64_t)job->blocks + 16u * region_size - 1u) / (16u * region_size));
}

zeroed zeroed_of(const tsr_cavlc_job *job, unsigned region_size)
{
    const size_t regions = regions_of(job, region_size);
    zeroed z;
    z.ticket = reinterpret_cast<unsigned *>(tsr_cavlc_gapped::layout_of(job).end);
    z.info_a = z.ticket + 4;
    z.info_b = z.info_a + 4 * regions;
    const size_t infos_b = job->order == TSR_ORDER_SLICES ? 16 * regions : (size_t)job->blocks / 4;
    z.bytes = 4 * (4 + 4 * regions + infos_b);
    return z;
}

int fill(const void *family_job, int policy)
{
    const tsr_cavlc_job *job = static_cast<const tsr_cavlc_job *>(family_job);
    const zeroed z = zeroed_of(job, region_sizes[policy]);
    return cudaMemsetAsync(z.ticket, 0, z.bytes, static_cast<cudaStream_t>(job->stream));
}

template <unsigned REG_SIZE> int encode(const tsr_cavlc_job *job)
{
    const layout l = tsr_cavlc_gapped::layout_of(job);
    const zeroed z = zeroed_of(job, REG_SIZE);
    return tsr_launch(job->order == TSR_ORDER_SLICES ? k_cavlcu<REG_SIZE, true> : k_cavlcu<REG_SIZE, false>,
                      regions_of(job, REG_SIZE), 16 * REG_SIZE, 0, static_cast<cudaStream_t>(job->stream),
                      reinterpret_cast<const uint4 *>(job->coefficients), tsr_cavlc_gapped::shape_of(job), z.ticket,
                      z.info_a, z.info_b, l.words, l.lengths);
}

int encode_policy(const void *family_job, int policy)
{
    static int (*const encoders[])(const tsr_cavlc_job *) = {encode<2>, encode<4>, encode<8>, encode<16>, encode<32>};
    return encoders[policy](static_cast<const tsr_cavlc_job *>(family_job));
}

const char *policy_name(int policy)
{
    static const char *const names[] = {"REG_SIZE 2", "REG_SIZE 4", "REG_SIZE 8", "REG_SIZE 16", "REG_SIZE 32"};
    return names[policy];
}

size_t workspace_bytes(const void *family_job, int policy)
{
    tsr_cavlc_job job = *static_cast<const tsr_cavlc_job *>(family_job);
    job.workspace = NULL;
    const zeroed z = zeroed_of(&job, region_sizes[policy]);
    return reinterpret_cast<uintptr_t>(z.ticket) + z.bytes;
}

} // namespace

const tsr_kernel_row tsr_cavlc_cavlcu = {"CAVLCU",
                                         "seed 004, section 4; packing ours",
                                         1,
                                         sizeof region_sizes / sizeof region_sizes[0],
                                         3,
                                         policy_name,
                                         workspace_bytes,
                                         {{"fill", fill},
                                          {"encode", encode_policy},
                                          {"scan", tsr_cavlc_gapped::scan},
                                          {"pack", tsr_cavlc_gapped::pack},
                                          {NULL, NULL}}};
