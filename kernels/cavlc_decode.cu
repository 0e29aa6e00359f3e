/* Ours: the CAVLC family's GPU decoder, tsr_cavlc_get (entropy/cavlc.h) with its look-up tables, levels and results in
 * shared memory and a reader that takes words.
 *
 * Slices are free of each other: a thread decodes a slice. Rows of macroblocks need the totals of the row above: a
 * block of threads decodes a frame as a wavefront, a thread a row, each row one macroblock behind the row above it. A
 * string that is none sets the error flag; a thread that met an error stops decoding and walks on only to keep its
 * block in step. */
#include "cavlc_frames.h"
#include "device.cuh"

namespace
{

/* Reads a string of so many bytes, as tsr_bit_reader does: zeros behind its end, and the position tells. */
struct word_reader {
    const uint32_t *words;
    uint64_t bytes;
    uint64_t window; /* the next bits, left-aligned */
    uint32_t held;   /* how many of them; more than 32 between calls */
    uint32_t next;   /* word */

    __device__ __forceinline__ void refill()
    {
        if (held > 32u) return;
        const uint64_t at = (uint64_t)next * 4u;
        uint32_t word = 0;
        if (at < bytes) {
            word = tsr_big_endian(__ldg(&words[next]));
            if (bytes - at < 4u) word &= ~0u << (32u - 8u * (uint32_t)(bytes - at));
        }
        window |= (uint64_t)word << (32u - held);
        held += 32u;
        next++;
    }
    __device__ __forceinline__ void begin(uint64_t bit)
    {
        next = (uint32_t)(bit / 32u);
        window = 0;
        held = 0;
        refill();
        refill();
        skip((uint32_t)bit % 32u);
    }
    __device__ __forceinline__ uint32_t top() const /* the next 32 bits */
    {
        return (uint32_t)(window >> 32);
    }
    __device__ __forceinline__ void skip(uint32_t bits) /* 0..32 */
    {
        window <<= bits;
        held -= bits;
        refill();
    }
    __device__ __forceinline__ uint32_t get(uint32_t bits) /* 0..31 */
    {
        const uint32_t value = top() >> 1 >> (31u - bits);
        skip(bits);
        return value;
    }
    __device__ __forceinline__ uint64_t position() const
    {
        return (uint64_t)next * 32u - held;
    }
    __device__ __forceinline__ bool overrun() const
    {
        return position() > 8u * bytes;
    }
};

template <unsigned THREADS> struct decoder_shared {
    tsr_cavlc_reader tables;
    int16_t levels[16][THREADS]; /* of the block at hand, the last one first */
    uint32_t block[8][THREADS];  /* its coefficients in raster order, two a word */
};

/* coeff_token: total coefficients, trailing ones in *ones; -1 for none. */
__device__ __forceinline__ int read_token(word_reader &r, const tsr_cavlc_reader &tables, int context, uint32_t *ones)
{
    const int table = tsr_coeff_token_table(context);
    if (table == 3) {
        const uint32_t fixed = r.get(6);
        *ones = fixed == 3u ? 0u : fixed & 3u;
        const int total = fixed == 3u ? 0 : (int)(fixed >> 2) + 1;
        return (int)*ones > total ? -1 : total;
    }
    const uint32_t leading = (uint32_t)__clz((int)r.top());
    if (leading > 15u) return -1;
    const uint32_t entry = tables.token[table][leading][r.top() >> (28u - leading) & 7u];
    if (entry == 0) return -1;
    r.skip(entry >> 8);
    *ones = entry & 3u;
    return (int)(entry >> 2 & 31u);
}

/* One level; false for none, or beyond the family's limit. */
__device__ __forceinline__ bool read_level(word_reader &r, uint32_t *suffix, uint32_t excluded, int16_t *level)
{
    const uint32_t prefix = (uint32_t)__clz((int)r.top());
    if (prefix > 15u) return false; /* in the paper's range none is longer */
    r.skip(prefix + 1u);
    uint32_t code = (prefix << *suffix) + r.get(prefix == 15u ? 12u : prefix == 14u && *suffix == 0 ? 4u : *suffix);
    if (prefix == 15u && *suffix == 0) code += 15u;
    code += excluded;
    const uint32_t magnitude = (code >> 1) + 1u;
    *suffix = (uint32_t)tsr_cavlc_next_suffix((int)*suffix, magnitude);
    *level = (int16_t)(code & 1u ? -(int32_t)magnitude : (int32_t)magnitude);
    return magnitude <= TSR_CAVLC_PAPER_LIMIT;
}

/* run_before; -1 for none. */
__device__ __forceinline__ int read_run(word_reader &r, const tsr_cavlc_reader &tables, int zeros)
{
    if (zeros > 6) {
        const uint32_t leading = (uint32_t)__clz((int)r.top());
        if (leading > 10u) return -1;
        const int run = leading < 3u ? 7 - (int)(r.top() >> 29) : (int)leading + 4;
        r.skip(leading < 3u ? 3u : leading + 1u);
        return run;
    }
    const uint32_t entry = tables.run[zeros - 1][r.top() >> 29];
    r.skip(entry >> 4);
    return entry == 0 ? -1 : (int)(entry & 15u);
}

/* A block of count places into s.block; its total coefficients, -1 where the string holds none. */
template <unsigned THREADS>
__device__ __forceinline__ int read_block(word_reader &r, decoder_shared<THREADS> &s, int count, int context)
{
    const unsigned thread = threadIdx.x;
#pragma unroll
    for (int k = 0; k < 8; k++) s.block[k][thread] = 0;
    uint32_t ones = 0;
    const int total = read_token(r, s.tables, context, &ones);
    if (total < 0 || total > count) return -1;
    if (total == 0) return r.overrun() ? -1 : 0;
    for (uint32_t i = 0; i < ones; i++) s.levels[i][thread] = r.get(1) ? (int16_t)-1 : (int16_t)1;
    uint32_t suffix = total > 10 && ones < 3u ? 1u : 0u, excluded = ones < 3u ? 2u : 0u;
    for (int i = (int)ones; i < total; i++) {
        int16_t level;
        if (!read_level(r, &suffix, excluded, &level)) return -1;
        s.levels[i][thread] = level;
        excluded = 0;
    }
    int zeros = 0;
    if (total < count) {
        const uint32_t entry = s.tables.zeros[total - 1][r.top() >> 23];
        r.skip(entry >> 4);
        zeros = (int)(entry & 15u);
        if (entry == 0 || zeros > count - total) return -1;
    }
    int place = total + zeros - 1 + 16 - count;
    for (int i = 0;; i++) {
        const uint32_t raster = (uint32_t)(0xfeb7adc963258410u >> (4 * place)) & 15u; /* the zigzag scan */
        reinterpret_cast<int16_t *>(&s.block[raster / 2u][thread])[raster % 2u] = s.levels[i][thread];
        if (i + 1 == total) break;
        const int run = zeros > 0 ? read_run(r, s.tables, zeros) : 0;
        if (run < 0 || run > zeros) return -1;
        zeros -= run;
        place -= run + 1;
    }
    return r.overrun() ? -1 : total;
}

/* Decodes a block to global memory; false where the string holds none. */
template <unsigned THREADS>
__device__ __forceinline__ bool decode_block(const tsr_cavlc_decode_job &job, decoder_shared<THREADS> &s,
                                             word_reader &r, uint32_t block, int count, int context)
{
    const unsigned thread = threadIdx.x;
    const int total = read_block(r, s, count, context);
    if (total < 0) return false;
    static_cast<uint8_t *>(job.shape.workspace)[block] = (uint8_t)total;
    uint4 *out = reinterpret_cast<uint4 *>(job.coefficients) + (size_t)block * 2u;
    out[0] = make_uint4(s.block[0][thread], s.block[1][thread], s.block[2][thread], s.block[3][thread]);
    out[1] = make_uint4(s.block[4][thread], s.block[5][thread], s.block[6][thread], s.block[7][thread]);
    return true;
}

/* A reader at a unit's first bit; false where that lies outside the string. */
__device__ __forceinline__ bool begin_unit(const tsr_cavlc_decode_job &job, uint32_t unit, word_reader *r)
{
    const uint64_t offset = job.unit_offsets[unit];
    r->words = reinterpret_cast<const uint32_t *>(job.in);
    r->bytes = (job.bits + 7u) / 8u;
    if (offset > job.bits || (unit == 0 && offset != 0)) return false;
    r->begin(offset);
    return true;
}

/* Where the unit behind this one begins. */
__device__ __forceinline__ uint64_t unit_end(const tsr_cavlc_decode_job &job, uint32_t unit, uint32_t units)
{
    return unit + 1u < units ? job.unit_offsets[unit + 1u] : job.bits;
}

template <unsigned THREADS>
__global__ void __launch_bounds__(THREADS) k_decode_slices(tsr_cavlc_decode_job job, uint32_t slices)
{
    __shared__ decoder_shared<THREADS> s;
    if (threadIdx.x == 0) tsr_cavlc_reader_init(&s.tables);
    __syncthreads();
    const uint32_t slice = blockIdx.x * THREADS + threadIdx.x;
    if (slice >= slices) return;
    const tsr_slice_size size = job.shape.slice_sizes[slice];
    const uint8_t *totals = static_cast<const uint8_t *>(job.shape.workspace);
    word_reader r;
    bool good = begin_unit(job, slice, &r);
    for (uint32_t place = 0; place < TSR_SLICE_PLACES && good; place++) {
        const uint32_t block = slice * TSR_SLICE_PLACES + place;
        if (place % 16u >= size.columns || place / 16u >= size.rows) continue; /* zeroed before */
        good = decode_block(job, s, r, block, 16, tsr_cavlc_slice_context(totals, block));
    }
    good = good && (r.position() + 7u) / 8u * 8u == unit_end(job, slice, slices);
    if (!good) atomicOr(job.error, 1u);
}

template <unsigned THREADS> __global__ void __launch_bounds__(THREADS) k_decode_frames(tsr_cavlc_decode_job job)
{
    __shared__ decoder_shared<THREADS> s;
    if (threadIdx.x == 0) tsr_cavlc_reader_init(&s.tables);
    __syncthreads();
    const uint32_t columns = job.shape.mb_columns, rows = job.shape.mb_rows;
    const uint8_t *totals = static_cast<const uint8_t *>(job.shape.workspace);
    bool good = true;
    for (uint32_t first = 0; first < rows; first += THREADS) {
        const uint32_t row = first + threadIdx.x, lines = rows - first < THREADS ? rows - first : THREADS;
        const uint32_t line = blockIdx.x * rows + row;
        word_reader r = {NULL, 0, 0, 0, 0};
        for (uint32_t step = 0; step < columns + lines - 1u; step++) {
            const uint32_t column = step - threadIdx.x; /* wraps before the row's turn */
            if (row < rows && column < columns) {
                if (column == 0) good = begin_unit(job, line, &r);
                const uint32_t macroblock = line * columns + column;
                const int count = job.shape.mb_flags[macroblock] & TSR_MB_INTRA16X16 ? 15 : 16;
                for (uint32_t place = 0; place < TSR_MB_BLOCKS && good; place++) {
                    const uint32_t block = macroblock * TSR_MB_BLOCKS + place;
                    good =
                        decode_block(job, s, r, block, count, tsr_cavlc_macroblock_context(&job.shape, totals, block));
                }
                if (column + 1u == columns) {
                    good = good && r.position() == unit_end(job, line, rows * job.shape.frames);
                    if (!good) atomicOr(job.error, 1u);
                }
            }
            __syncthreads();
        }
    }
}

size_t workspace_bytes(const void *family_job, int)
{
    return static_cast<const tsr_cavlc_decode_job *>(family_job)->shape.blocks; /* totals */
}

template <unsigned THREADS> int decode_by(const tsr_cavlc_decode_job &job, cudaStream_t stream)
{
    if (job.shape.order == TSR_ORDER_MACROBLOCKS)
        return tsr_launch(k_decode_frames<THREADS>, job.shape.frames, THREADS, 0, stream, job);
    const uint32_t slices = job.shape.blocks / TSR_SLICE_PLACES;
    return tsr_launch(k_decode_slices<THREADS>, (slices + THREADS - 1u) / THREADS, THREADS, 0, stream, job, slices);
}

int decode(const void *family_job, int policy)
{
    const tsr_cavlc_decode_job *job = static_cast<const tsr_cavlc_decode_job *>(family_job);
    const cudaStream_t stream = static_cast<cudaStream_t>(job->shape.stream);
    TSR_CUDA_TRY(cudaMemsetAsync(job->error, 0, sizeof *job->error, stream));
    if (job->shape.blocks == 0) return cudaSuccess;
    /* Places that are not coded, and blocks behind an error, are 0. */
    TSR_CUDA_TRY(cudaMemsetAsync(job->coefficients, 0, (size_t)job->shape.blocks * 32u, stream));
    TSR_CUDA_TRY(cudaMemsetAsync(job->shape.workspace, 0, job->shape.blocks, stream));
    return policy == 0   ? decode_by<32>(*job, stream)
           : policy == 1 ? decode_by<64>(*job, stream)
                         : decode_by<128>(*job, stream);
}

const char *policy_name(int policy)
{
    static const char *const names[] = {"32 threads", "64 threads", "128 threads"};
    return names[policy];
}

} // namespace

const tsr_kernel_row tsr_cavlc_decode_cuda = {"Tessera",
                                              "ours: a thread a slice, or a wavefront of rows",
                                              1,
                                              3,
                                              2,
                                              policy_name,
                                              workspace_bytes,
                                              {{"decode", decode}, {NULL, NULL}}};
