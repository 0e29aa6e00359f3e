/* What the papers' coders share. A block's code goes to 64 bytes of its own, with its length. (The papers' 26 shorts
 * overflow on legal blocks: 16 coefficients of +-2047 take more.) A scan of the lengths and a kernel that packs make
 * one string of the codes. Seed 004 packs like this for Su et al. ("lag packing", section 3.3) and leaves CAVLCU's
 * output gapped; here both get the same packing. A block of threads packs 256 blocks: in slices order a slice, which
 * ends with a whole byte. */
#ifndef TSR_KERNELS_PAPERS_CAVLC_CAVLC_GAPPED_CUH
#define TSR_KERNELS_PAPERS_CAVLC_CAVLC_GAPPED_CUH

#include "kernels/slices/cavlc_blocks.cuh"
#include "cavlc_frames.h"
#include "kernels/machine/look_back.cuh"

namespace tsr_cavlc_gapped
{

enum { BLOCK_WORDS = 16, PACKED = 256, SCAN_WARPS = 8, SCANNED = PACKED * SCAN_WARPS };

/* Writes a block's code to global memory by whole words. */
struct word_output {
    uint32_t *next;
    uint32_t value, length; /* of the bits that wait, 0..31 between calls */

    __device__ __forceinline__ void put(uint32_t bits, uint32_t count) /* count: 0..32 */
    {
        const uint64_t joined = (uint64_t)value << count | bits;
        length += count;
        if (length >= 32u) {
            length -= 32u;
            *next++ = (uint32_t)(joined >> length);
        }
        value = (uint32_t)joined & ((1u << length) - 1u);
    }

    /* Writes the bits that wait. Returns the length of the code in bits. words: where the code begins. */
    __device__ __forceinline__ uint32_t end(const uint32_t *words)
    {
        if (length > 0) *next = value << (32u - length);
        return (uint32_t)(next - words) * 32u + length;
    }
};

/* Writes the coefficients that are not trailing ones, the last in the scan first. */
struct coefficient_output {
    uint32_t suffix, excluded;

    __device__ __forceinline__ coefficient_output(uint32_t total, uint32_t ones)
        : suffix(total > 10u && ones < 3u ? 1u : 0u), excluded(ones < 3u ? 4u : 2u)
    {
    }
    __device__ __forceinline__ void put(word_output &output, int32_t coefficient)
    {
        const uint32_t magnitude = (uint32_t)(coefficient < 0 ? -coefficient : coefficient);
        uint32_t bits, length;
        tsr_coefficient_codeword<false>(2u * magnitude - excluded + (coefficient < 0), suffix, &bits, &length);
        output.put(bits, length);
        excluded = 2u;
        suffix = (uint32_t)tsr_cavlc_next_suffix((int)suffix, magnitude);
    }
};

/* A job's blocks as kernels see them; cavlc_frames.h explains them. */
struct frame_shape {
    uint32_t blocks, mb_columns, mb_rows;
    const uint8_t *flags;
    const uint16_t *slices;
    const tsr_slice_size *sizes; /* NULL in macroblock order */
};

static inline frame_shape shape_of(const tsr_cavlc_job *job)
{
    const bool has_sizes = job->order == TSR_ORDER_SLICES;
    const frame_shape f = {job->blocks,   job->mb_columns, job->mb_rows,
                           job->mb_flags, job->mb_slices,  has_sizes ? job->slice_sizes : NULL};
    return f;
}

/* Finds the first bit of the string of each block of threads of k_pack. Zeroes the string's first and last word, into
 * which k_pack ors. */
static __global__ void __launch_bounds__(SCAN_WARPS *TSR_WARP)
    k_scan_lengths(const uint16_t *lengths, uint32_t blocks, uint32_t parts, bool whole_bytes, tsr_look_back state,
                   uint64_t *starts, uint32_t *out, uint64_t *bits)
{
    __shared__ uint64_t before_tile;
    __shared__ uint32_t tile_at, sums[SCAN_WARPS];
    const unsigned lane = threadIdx.x % TSR_WARP, warp = threadIdx.x / TSR_WARP;
    if (threadIdx.x == 0) tile_at = tsr_take_ticket(state);
    __syncthreads();
    const uint32_t tile = tile_at, part = tile * SCAN_WARPS + warp;
    uint32_t sum = 0;
    if (part < parts) {
        const size_t first = (size_t)part * PACKED + 8u * lane;
        if (first + 8u <= blocks) {
            const uint4 eight = __ldg(reinterpret_cast<const uint4 *>(lengths + first));
            const uint32_t pairs = eight.x + eight.y + eight.z + eight.w; /* two sums of lengths, each below 2^16 */
            sum = (pairs & 0xffffu) + (pairs >> 16);
        } else {
            for (size_t b = first; b < blocks && b < first + 8u; b++) sum += lengths[b];
        }
    }
    sum = tsr_warp_sum(sum);
    if (whole_bytes) sum = (sum + 7u) & ~7u;
    if (lane == 0) sums[warp] = sum;
    __syncthreads();
    uint32_t own = 0, before = 0;
    for (unsigned w = 0; w < SCAN_WARPS; w++) {
        if (w < warp) before += sums[w];
        own += sums[w];
    }
    if (threadIdx.x == 0) tsr_publish_sum(state, tile, own);
    if (warp == 0) {
        const uint64_t found = tsr_look_back_sum<32>(state, tile, own);
        if (lane == 0) before_tile = found;
    }
    __syncthreads();
    if (lane == 0 && part < parts) {
        const uint64_t start = before_tile + before, end = start + sum;
        starts[part] = start;
        out[start / 32u] = 0;
        if (sum > 0) out[(end - 1u) / 32u] = 0;
        if (part + 1u == parts) *bits = end;
    }
}

static __global__ void __launch_bounds__(PACKED)
    k_pack(const uint32_t *words, const uint16_t *lengths, uint32_t blocks, uint32_t blocks_a_unit,
           const uint64_t *starts, uint32_t *out, uint64_t *unit_offsets)
{
    __shared__ uint32_t window[PACKED * BLOCK_WORDS + 1], sums[TSR_WARP];
    const unsigned thread = threadIdx.x;
    const uint32_t block = blockIdx.x * PACKED + thread;
    const uint64_t start = starts[blockIdx.x];
    const uint4 *code = reinterpret_cast<const uint4 *>(words) + (size_t)block * (BLOCK_WORDS / 4);
    uint32_t length = 0;
    uint4 four = make_uint4(0, 0, 0, 0); /* words of code; the first ones are loaded while lengths are scanned */
    if (block < blocks) {
        length = __ldg(&lengths[block]);
        four = __ldg(code);
    }
    const uint32_t seam = (uint32_t)start % 32u;
    uint32_t total;
    const uint32_t offset = tsr_block_scan<PACKED>(length, sums, &total) + seam; /* from the string's first word on */
    const uint32_t end = seam + total, used = (end + 31u) / 32u;
    for (uint32_t i = thread; i <= used; i += PACKED) window[i] = 0;
    __syncthreads();
    if (block < blocks && block % blocks_a_unit == 0) unit_offsets[block / blocks_a_unit] = start - seam + offset;

    const uint32_t shift = offset % 32u, count = (length + 31u) / 32u;
    uint32_t before = 0, at = offset / 32u;
    for (uint32_t first = 0; first < count; first += 4u) {
        const uint32_t word_of[4] = {four.x, four.y, four.z, four.w};
        if (first + 4u < count) four = __ldg(&code[first / 4u + 1u]);
#pragma unroll
        for (uint32_t k = 0; k < 4; k++) {
            if (first + k >= count) break;
            uint32_t word = word_of[k];
            const bool ends = first + k + 1u == count;
            if (ends && length % 32u != 0) word &= ~0u << (32u - length % 32u);
            const uint32_t bits = __funnelshift_r(word, before, shift);
            if (first + k == 0 || ends)
                atomicOr(&window[at], bits);
            else
                window[at] = bits;
            before = word;
            at++;
        }
    }
    if (count > 0 && shift > 0) atomicOr(&window[at], __funnelshift_r(0u, before, shift));
    __syncthreads();
    out += start / 32u;
    for (uint32_t i = thread; i < used; i += PACKED) {
        const uint32_t word = tsr_big_endian(window[i]);
        if (i == 0 || i + 1u == used)
            atomicOr(&out[i], word);
        else
            out[i] = word;
    }
}

/* The pieces of the work space, 256-byte aligned. */
struct layout {
    uint32_t *words;   /* 16 a block */
    uint16_t *lengths; /* in bits */
    uint64_t *starts;  /* of each 256 blocks */
    tsr_look_back scan;
    size_t scan_bytes;
    unsigned char *end; /* where the row's own pieces begin */
};

static inline unsigned char *align_256(unsigned char *at)
{
    return at + (-reinterpret_cast<uintptr_t>(at) & 255u);
}

static inline layout layout_of(const tsr_cavlc_job *job)
{
    layout l;
    const size_t parts = ((size_t)job->blocks + PACKED - 1) / PACKED, tiles = (parts + SCAN_WARPS - 1) / SCAN_WARPS;
    unsigned char *at = static_cast<unsigned char *>(job->workspace);
    l.words = reinterpret_cast<uint32_t *>(at);
    at = align_256(at + (size_t)job->blocks * BLOCK_WORDS * sizeof(uint32_t));
    l.lengths = reinterpret_cast<uint16_t *>(at);
    at = align_256(at + (size_t)job->blocks * sizeof(uint16_t));
    l.starts = reinterpret_cast<uint64_t *>(at);
    at = align_256(at + parts * sizeof(uint64_t));
    l.scan = tsr_look_back_at(at);
    l.scan_bytes = tsr_look_back_bytes(tiles);
    l.end = align_256(at + l.scan_bytes);
    return l;
}

static inline int scan(const void *family_job, int)
{
    const tsr_cavlc_job *job = static_cast<const tsr_cavlc_job *>(family_job);
    const cudaStream_t stream = static_cast<cudaStream_t>(job->stream);
    if (job->blocks == 0) return cudaMemsetAsync(job->bits, 0, sizeof *job->bits, stream);
    const layout l = layout_of(job);
    const uint32_t parts = (job->blocks - 1u) / PACKED + 1u;
    TSR_CUDA_TRY(cudaMemsetAsync(l.scan.ticket, 0, l.scan_bytes, stream));
    return tsr_launch(k_scan_lengths, (parts - 1u) / SCAN_WARPS + 1u, SCAN_WARPS * TSR_WARP, 0, stream, l.lengths,
                      job->blocks, parts, job->order == TSR_ORDER_SLICES, l.scan, l.starts,
                      reinterpret_cast<uint32_t *>(job->out), job->bits);
}

static inline int pack(const void *family_job, int)
{
    const tsr_cavlc_job *job = static_cast<const tsr_cavlc_job *>(family_job);
    const layout l = layout_of(job);
    const uint32_t unit = job->order == TSR_ORDER_SLICES ? (uint32_t)TSR_SLICE_PLACES : job->mb_columns * TSR_MB_BLOCKS;
    const uint32_t parts = job->blocks == 0 ? 0 : (job->blocks - 1u) / PACKED + 1u;
    return tsr_launch(k_pack, parts, PACKED, 0, static_cast<cudaStream_t>(job->stream), l.words, l.lengths, job->blocks,
                      unit, l.starts, reinterpret_cast<uint32_t *>(job->out), job->unit_offsets);
}

} // namespace tsr_cavlc_gapped

#endif
