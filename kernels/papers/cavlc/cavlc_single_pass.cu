/* Ours: CAVLC of frames and slices in one pass: kernels/slices/block_coder.cuh with the coders of
 * kernels/slices/cavlc_blocks.cuh.
 *
 * A block needs the numbers of coefficients of its left and upper neighbour. Inside a tile they come through shared
 * memory. Of the macroblock above, and of the macroblock left of the tile, the nearest blocks are read and counted
 * again (a quarter more input, from the cache), so that no tile waits for another before the length of its code is
 * known. */
#include "kernels/slices/cavlc_blocks.cuh"
#include "cavlc_frames.h"

namespace
{

enum { COEFFICIENT_WORDS = 8 }; /* of a block in shared memory; word k of thread t is at k * THREADS + t */

/* For n / d and n % d by one multiplication. reciprocal: floor(2^32 / d), or 2^32 - 1 if d is 1. */
struct divisor {
    uint32_t by, reciprocal;
};

divisor divisor_of(uint32_t by)
{
    const divisor d = {by, by < 2u ? UINT32_MAX : (uint32_t)(((uint64_t)1 << 32) / by)};
    return d;
}

__device__ __forceinline__ uint32_t divide(uint32_t n, divisor d, uint32_t *remainder)
{
    uint32_t quotient = __umulhi(n, d.reciprocal); /* too small by at most 1 */
    uint32_t rest = n - quotient * d.by;
    if (rest >= d.by) {
        rest -= d.by;
        quotient++;
    }
    *remainder = rest;
    return quotient;
}

/* What both orders share: the coefficients and totals of a tile in shared memory, and how a code is made from them. */
template <unsigned THREADS_> struct frame_coder {
    enum { THREADS = THREADS_, WORDS = 16 };
    struct shared {
        tsr_cavlc_tables tables;
        uint32_t coefficients[COEFFICIENT_WORDS * THREADS];
        uint8_t totals[THREADS];
    };

    __device__ void prepare(shared &s) const
    {
        s.tables.fill(threadIdx.x, THREADS);
    }

    /* Scans a block into shared memory. Returns its mask of coefficients that are not 0. */
    static __device__ __forceinline__ uint32_t scan_block(shared &s, unsigned thread, uint4 low, uint4 high)
    {
        uint32_t pairs[COEFFICIENT_WORDS];
        tsr_zigzag_pairs(low, high, pairs);
#pragma unroll
        for (int k = 0; k < COEFFICIENT_WORDS; k++) s.coefficients[k * THREADS + thread] = pairs[k];
        const uint32_t mask = tsr_nonzero_mask(pairs);
        s.totals[thread] = (uint8_t)__popc(mask);
        return mask;
    }

    static __device__ __forceinline__ void write(const shared &s, unsigned thread, uint32_t mask, uint32_t count,
                                                 int context, tsr_code_writer<THREADS> &writer)
    {
        const unsigned char *coefficients = reinterpret_cast<const unsigned char *>(s.coefficients);
        tsr_cavlc_write<false>(writer, s.tables, mask, count, context, [=](uint32_t place) {
            /* Word place / 2 of the thread, half place % 2. These bits do not overlap those of 4 * thread. */
            const uint32_t at = (place * (2u * THREADS + 2u) & (14u * 2u * THREADS | 2u)) | 4u * thread;
            return (int32_t) * reinterpret_cast<const int16_t *>(coefficients + at);
        });
    }
};

/* H.264's order. A tile is THREADS / 16 macroblocks of the raster. */
template <unsigned THREADS_> struct macroblock_coder : frame_coder<THREADS_> {
    typedef frame_coder<THREADS_> base;
    enum { THREADS = THREADS_, WHOLE_BYTES = 0 };
    typedef typename base::shared shared;
    struct block {
        uint32_t mask, count;
        int context_left, context_up; /* total of a block outside the tile; -1: unavailable; -2: it is in the tile */
        int32_t unit;
        uint32_t present;
    };

    const uint4 *coefficients; /* two vectors a block */
    uint32_t macroblocks;
    divisor columns, rows;
    const uint8_t *flags;
    const uint16_t *slices;

    /* Counts coefficients of neighbours outside the tile. In each half-warp 8 lanes count the 4 lowest blocks of the
     * macroblock above. In the first half-warp of the tile the other 8 lanes count the 4 rightmost blocks of the
     * macroblock before. A lane counts half a block. Returns the total of the block that the lane and its partner
     * counted. */
    __device__ __forceinline__ uint32_t count_outside(uint32_t macroblock, unsigned lane, uint32_t wanted) const
    {
        const uint32_t half = lane % 16u, pair = half / 2u;
        uint32_t count = 0;
        if (wanted) {
            const uint32_t from = macroblock - (half < 8u ? columns.by : 1u);
            const uint32_t place = half < 8u ? 12u + pair : 4u * pair - 13u;
            uint4 loaded = __ldg(&coefficients[(size_t)(16u * from + place) * 2u + half % 2u]);
            if (half % 2u == 0 && (__ldg(&flags[from]) & TSR_MB_INTRA16X16)) loaded.x &= 0xffff0000u;
            count = tsr_count_half(loaded);
        }
        return count + __shfl_xor_sync(TSR_FULL_WARP, count, 1);
    }

    __device__ __forceinline__ void load(shared &s, uint32_t tile, unsigned thread, block &b) const
    {
        const unsigned lane = thread % TSR_WARP;
        const uint32_t wanted = tile * (THREADS / 16u) + thread / 16u;
        const uint32_t macroblock =
            wanted < macroblocks ? wanted : macroblocks - 1u; /* threads past the end take the last one */
        b.present = wanted < macroblocks;
        const size_t at = (size_t)(16u * macroblock + thread % 16u) * 2u;
        uint4 low = __ldg(&coefficients[at]);
        const uint4 high = __ldg(&coefficients[at + 1]);
        uint32_t mb_column, mb_row;
        const uint32_t line = divide(macroblock, columns, &mb_column);
        divide(line, rows, &mb_row);
        const uint32_t slice = __ldg(&slices[macroblock]);
        const uint32_t has_left = mb_column > 0 && __ldg(&slices[macroblock - 1u]) == slice ? 1u : 0u;
        const uint32_t has_up = mb_row > 0 && __ldg(&slices[macroblock - columns.by]) == slice ? 1u : 0u;
        const uint32_t outside =
            count_outside(macroblock, lane, lane % 16u < 8u ? has_up : has_left & (thread < 16u ? 1u : 0u));

        const uint32_t skip = __ldg(&flags[macroblock]) & TSR_MB_INTRA16X16;
        if (skip) low.x &= 0xffff0000u;
        b.count = 16u - skip;
        b.mask = base::scan_block(s, thread, low, high);
        b.unit = b.present && mb_column == 0 && thread % 16u == 0 ? (int32_t)line : -1;

        const uint32_t above = __shfl_sync(TSR_FULL_WARP, outside, (int)((lane & 16u) | (2u * lane & 6u)));
        const uint32_t before = __shfl_sync(TSR_FULL_WARP, outside, (int)(8u | (lane / 2u & 6u)));
        b.context_up = lane & 12u ? -2 : has_up ? (int)above : -1;
        b.context_left = (lane & 3u) != 0 || (has_left && thread >= 16u) ? -2 : has_left ? (int)before : -1;
    }

    __device__ __forceinline__ void put(const shared &s, unsigned thread, const block &b,
                                        tsr_code_writer<THREADS> &writer) const
    {
        if (!b.present) return;
        int left = b.context_left, up = b.context_up;
        if (left == -2) left = s.totals[thread - (thread % 4u > 0 ? 1u : 13u)];
        if (up == -2) up = s.totals[thread - 4u];
        base::write(s, thread, b.mask, b.count, tsr_cavlc_context(left, up), writer);
    }

    __device__ __forceinline__ int64_t unit(uint32_t, unsigned, const block &b) const
    {
        return (int64_t)b.unit;
    }
};

/* The product's order: a tile is a slice. */
struct slice_coder : frame_coder<TSR_SLICE_PLACES> {
    typedef frame_coder<TSR_SLICE_PLACES> base;
    enum { WHOLE_BYTES = 1 };
    struct block {
        uint32_t mask;
        bool present;
    };

    const uint4 *coefficients;
    const tsr_slice_size *sizes;

    __device__ __forceinline__ void load(shared &s, uint32_t tile, unsigned thread, block &b) const
    {
        const tsr_slice_size size = sizes[tile];
        b.present = thread % 16u < size.columns && thread / 16u < size.rows;
        uint4 low = make_uint4(0, 0, 0, 0), high = low;
        if (b.present) {
            const size_t at = ((size_t)tile * THREADS + thread) * 2u;
            low = __ldg(&coefficients[at]);
            high = __ldg(&coefficients[at + 1]);
        }
        b.mask = base::scan_block(s, thread, low, high);
    }

    __device__ __forceinline__ void put(const shared &s, unsigned thread, const block &b,
                                        tsr_code_writer<THREADS> &writer) const
    {
        if (!b.present) return;
        const int left = thread % 16u > 0 ? s.totals[thread - 1u] : -1,
                  up = thread >= 16u ? s.totals[thread - 16u] : -1;
        base::write(s, thread, b.mask, 16, tsr_cavlc_context(left, up), writer);
    }

    __device__ __forceinline__ int64_t unit(uint32_t tile, unsigned thread, const block &) const
    {
        return thread == 0 ? (int64_t)tile : -1;
    }
};

uint32_t tiles_of(const tsr_cavlc_job *job, unsigned threads)
{
    return (uint32_t)(((uint64_t)job->blocks + threads - 1u) / threads);
}

tsr_block_string string_of(const tsr_cavlc_job *job, unsigned threads)
{
    tsr_block_string string;
    string.tiles = tiles_of(job, threads);
    string.out = job->out;
    string.bits = job->bits;
    string.unit_offsets = job->unit_offsets;
    string.workspace = job->workspace;
    return string;
}

/* THREADS: the blocks of a tile in macroblock order. In slices order a tile is a slice. */
template <unsigned THREADS, unsigned RESIDENT> int encode(const tsr_cavlc_job *job)
{
    const cudaStream_t stream = static_cast<cudaStream_t>(job->stream);
    if (job->order == TSR_ORDER_SLICES) {
        slice_coder coder;
        coder.coefficients = reinterpret_cast<const uint4 *>(job->coefficients);
        coder.sizes = job->slice_sizes;
        constexpr unsigned resident = RESIDENT * THREADS / TSR_SLICE_PLACES;
        return tsr_code_blocks<TSR_SLICE_PLACES, resident>(coder, string_of(job, TSR_SLICE_PLACES), stream);
    }
    macroblock_coder<THREADS> coder;
    coder.coefficients = reinterpret_cast<const uint4 *>(job->coefficients);
    coder.macroblocks = job->blocks / TSR_MB_BLOCKS;
    coder.columns = divisor_of(job->mb_columns);
    coder.rows = divisor_of(job->mb_rows);
    coder.flags = job->mb_flags;
    coder.slices = job->mb_slices;
    return tsr_code_blocks<THREADS, RESIDENT>(coder, string_of(job, THREADS), stream);
}

/* Threads that code + threads that look back, x the blocks of threads that share a multiprocessor. On an H200, 4 of
 * them are up to 5 % faster at QP 0 to 20, and 5 are up to 10 % faster at QP 30 and 40. Tiles of 512 blocks were never
 * the fastest. */
const struct policy {
    const char *name;
    int (*encode)(const tsr_cavlc_job *job);
} policies[] = {
    {"128 + 32 threads x 9", encode<128, 9>},
    {"256 + 32 threads x 4", encode<256, 4>},
    {"256 + 32 threads x 5", encode<256, 5>},
};

const char *policy_name(int policy)
{
    return policies[policy].name;
}

size_t workspace_bytes(const void *job, int)
{
    return tsr_code_blocks_workspace(tiles_of(static_cast<const tsr_cavlc_job *>(job), 128));
}

int run(const void *job, int policy)
{
    return policies[policy].encode(static_cast<const tsr_cavlc_job *>(job));
}

} // namespace

const tsr_kernel_row tsr_cavlc_single_pass = {"Tessera",
                                              "ours: single pass, contiguous, look-back, neighbours counted again",
                                              1,
                                              sizeof policies / sizeof policies[0],
                                              2,
                                              policy_name,
                                              workspace_bytes,
                                              {{"encode", run}, {NULL, NULL}}};
