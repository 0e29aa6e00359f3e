/* Ours: the CAVLC family's GPU decoder, by the readers of cavlc_read.cuh.
 *
 * Slices do not depend on each other, so a thread decodes a slice. A row of macroblocks needs the totals of the row
 * above, so a block of threads decodes a frame as a wavefront: a thread a row, each row one macroblock later than the
 * row above it. An invalid string sets the error flag. A thread that met an error decodes nothing more; it only keeps
 * step with its block. */
#include "cavlc_frames.h"
#include "kernels/slices/cavlc_read.cuh"

namespace
{

enum { LONGEST_UNIT = 1 << 28 /* in bytes: rows of macroblocks are far shorter */ };

template <unsigned THREADS> struct decoder_shared {
    tsr_cavlc_reader tables;
    int16_t coefficients[16][THREADS]; /* of one block, the last in the scan first */
    tsr_raster_blocks<THREADS, int16_t> block;
    tsr_word_ring<THREADS> ring;
};

/* A reader of a unit. first: the bit of the whole string at which the reader begins. */
template <unsigned THREADS> struct unit_reader {
    tsr_word_reader<THREADS> reader;
    uint64_t first;

    __device__ __forceinline__ explicit unit_reader(tsr_word_ring<THREADS> &ring) : reader(ring)
    {
    }

    __device__ __forceinline__ uint64_t position() const
    {
        return first + reader.position();
    }
};

/* Decodes a block to global memory. Returns false if the string does not hold a valid block here. */
template <unsigned THREADS>
__device__ __forceinline__ bool decode_block(const tsr_cavlc_decode_job &job, decoder_shared<THREADS> &s,
                                             unit_reader<THREADS> &r, uint32_t block, int count, int context)
{
    uint32_t seen = 0;
    const int total =
        tsr_cavlc_read_block(r.reader, s.tables, s.coefficients, s.block, count, context, TSR_CAVLC_PAPER_LIMIT, &seen);
    if (total < 0) return false;
    static_cast<uint8_t *>(job.shape.workspace)[block] = (uint8_t)total;
    if (total > 0) s.block.store(threadIdx.x, reinterpret_cast<uint32_t *>(job.coefficients) + (size_t)block * 8u);
    return true;
}

/* Puts a reader at a unit's first bit. Returns false if that lies outside the string. */
template <unsigned THREADS>
__device__ __forceinline__ bool begin_unit(const tsr_cavlc_decode_job &job, uint32_t unit, unit_reader<THREADS> *r)
{
    const uint64_t offset = job.unit_offsets[unit], rest = (job.bits + 7u) / 8u - offset / 8u;
    if (offset > job.bits || (unit == 0 && offset != 0)) return false;
    r->first = offset / 8u * 8u;
    r->reader.begin(job.in + offset / 8u, (uint32_t)(rest < LONGEST_UNIT ? rest : LONGEST_UNIT));
    r->reader.skip((uint32_t)offset % 8u);
    return true;
}

/* The first bit of the next unit, or the end of the string. */
__device__ __forceinline__ uint64_t unit_end(const tsr_cavlc_decode_job &job, uint32_t unit, uint32_t units)
{
    return unit + 1u < units ? job.unit_offsets[unit + 1u] : job.bits;
}

template <unsigned THREADS>
__global__ void __launch_bounds__(THREADS) k_decode_slices(tsr_cavlc_decode_job job, uint32_t slices)
{
    __shared__ decoder_shared<THREADS> s;
    tsr_cavlc_fill_reader(s.tables, threadIdx.x, THREADS);
    __syncthreads();
    const uint32_t slice = blockIdx.x * THREADS + threadIdx.x;
    if (slice >= slices) return;
    const tsr_slice_size size = job.shape.slice_sizes[slice];
    const uint8_t *totals = static_cast<const uint8_t *>(job.shape.workspace);
    unit_reader<THREADS> r(s.ring);
    bool good = begin_unit(job, slice, &r);
    for (uint32_t place = 0; place < TSR_SLICE_PLACES && good; place++) {
        const uint32_t block = slice * TSR_SLICE_PLACES + place;
        if (place % 16u >= size.columns || place / 16u >= size.rows) continue; /* its coefficients are zero already */
        good = decode_block(job, s, r, block, 16, tsr_cavlc_slice_context(totals, block));
    }
    good = good && (r.position() + 7u) / 8u * 8u == unit_end(job, slice, slices);
    if (!good) atomicOr(job.error, 1u);
}

template <unsigned THREADS> __global__ void __launch_bounds__(THREADS) k_decode_frames(tsr_cavlc_decode_job job)
{
    __shared__ decoder_shared<THREADS> s;
    tsr_cavlc_fill_reader(s.tables, threadIdx.x, THREADS);
    __syncthreads();
    const uint32_t columns = job.shape.mb_columns, rows = job.shape.mb_rows;
    const uint8_t *totals = static_cast<const uint8_t *>(job.shape.workspace);
    bool good = true;
    for (uint32_t first = 0; first < rows; first += THREADS) {
        const uint32_t row = first + threadIdx.x, lines = rows - first < THREADS ? rows - first : THREADS;
        const uint32_t line = blockIdx.x * rows + row;
        unit_reader<THREADS> r(s.ring);
        for (uint32_t step = 0; step < columns + lines - 1u; step++) {
            const uint32_t column = step - threadIdx.x; /* wraps around before the row's turn */
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
    /* Places that are not coded, and blocks after an error, stay 0. */
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
