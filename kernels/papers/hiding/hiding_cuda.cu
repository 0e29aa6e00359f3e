/* The hiding family on a GPU: a thread a block of coefficients, 16 bytes a load.
 *
 * The key stream is the cost: 20 rounds give the words of 32 blocks. The first threads of each block of threads compute
 * those of its tile into shared memory while the other ones' coefficients are on their way. */
#include "hiding_blocks.h"
#include "kernels/machine/device.cuh"

namespace
{

enum {
    THREADS = 256,
    EACH = 4, /* blocks of a thread */
    TILE = THREADS * EACH,
    COUNTERS = TILE / TSR_CHACHA20_WORDS /* of a tile's words, at most: parity with a word a block */
};

/* A block's coefficients as they are loaded. */
union block_vectors {
    uint4 vector[2];
    int16_t coefficient[TSR_BLOCK_SAMPLES];
};

struct tile_words {
    uint32_t first; /* a multiple of 16 */
    uint32_t word[COUNTERS * TSR_CHACHA20_WORDS];
};

/* Computes the key stream's words that the tile's blocks use. By all threads of the block; a barrier follows. */
__device__ __forceinline__ void fill_words(const tsr_hiding_job &job, tile_words &s)
{
    if (!tsr_hiding_needs_words(&job)) return;
    const uint32_t begin = blockIdx.x * (uint32_t)TILE, end = begin + TILE < job.blocks ? begin + TILE : job.blocks;
    const uint32_t first = tsr_hiding_word(&job, begin) / TSR_CHACHA20_WORDS;
    const uint32_t last = tsr_hiding_word(&job, end - 1u) / TSR_CHACHA20_WORDS;
    if (threadIdx.x == 0) s.first = first * TSR_CHACHA20_WORDS;
    if (threadIdx.x > last - first) return;
    uint32_t out[TSR_CHACHA20_WORDS];
    tsr_chacha20_block(&job.key, first + threadIdx.x, out);
#pragma unroll
    for (int i = 0; i < TSR_CHACHA20_WORDS; i++) s.word[threadIdx.x * TSR_CHACHA20_WORDS + i] = out[i];
}

__device__ __forceinline__ uint32_t word_of(const tsr_hiding_job &job, const tile_words &s, uint32_t block)
{
    return tsr_hiding_needs_words(&job) ? s.word[tsr_hiding_word(&job, block) - s.first] : 0u;
}

__device__ __forceinline__ void load(const tsr_hiding_job &job, uint32_t block, block_vectors &b)
{
    const uint4 *in = reinterpret_cast<const uint4 *>(job.coefficients) + (size_t)block * 2u;
    b.vector[0] = in[0];
    b.vector[1] = in[1];
}

/* out may be the coefficients: a thread loads its block, and what tsr_hiding_change reads, before it stores it. */
__global__ void __launch_bounds__(THREADS) k_hide(tsr_hiding_job job)
{
    __shared__ tile_words s;
    block_vectors b[EACH];
    const uint32_t first = blockIdx.x * (uint32_t)TILE + threadIdx.x;
#pragma unroll
    for (uint32_t k = 0; k < EACH; k++)
        if (first + k * THREADS < job.blocks) load(job, first + k * THREADS, b[k]);
    fill_words(job, s);
    __syncthreads();
#pragma unroll
    for (uint32_t k = 0; k < EACH; k++) {
        const uint32_t block = first + k * THREADS;
        if (block >= job.blocks) break;
        const tsr_block_signs signs = tsr_signs_of_block(b[k].coefficient, tsr_hiding_first_place(&job, block));
        tsr_change_block(b[k].coefficient,
                         tsr_hiding_change(&job, block, word_of(job, s, block),
                                           job.coefficients + (size_t)block * TSR_BLOCK_SAMPLES, signs));
        uint4 *out = reinterpret_cast<uint4 *>(job.out) + (size_t)block * 2u;
        out[0] = b[k].vector[0];
        out[1] = b[k].vector[1];
    }
}

__device__ __forceinline__ uint32_t or_of_warp(uint32_t bits)
{
#pragma unroll
    for (int step = TSR_WARP / 2; step > 0; step /= 2) bits |= __shfl_xor_sync(TSR_FULL_WARP, bits, step);
    return bits;
}

/* The units of a warp's 32 blocks are bits of one word, which other warps share in parity. */
__global__ void __launch_bounds__(THREADS) k_read(tsr_hiding_job job)
{
    __shared__ tile_words s;
    fill_words(job, s);
    __syncthreads();
    const uint32_t first = blockIdx.x * (uint32_t)TILE + threadIdx.x;
#pragma unroll
    for (uint32_t k = 0; k < EACH; k++) {
        const uint32_t block = first + k * THREADS;
        tsr_carried c = {0, 0, 0};
        if (block < job.blocks) {
            block_vectors b;
            load(job, block, b);
            c = tsr_hiding_carried(&job, block, word_of(job, s, block),
                                   tsr_signs_of_block(b.coefficient, tsr_hiding_first_place(&job, block)));
        }
        const uint32_t found = or_of_warp(c.bit << c.unit % 32u), carries = or_of_warp(c.carries << c.unit % 32u);
        if (threadIdx.x % TSR_WARP != 0 || carries == 0) continue;
        atomicOr(&job.found[c.unit / 32u], found);
        atomicOr(&job.carries[c.unit / 32u], carries);
    }
}

unsigned tiles_of(const tsr_hiding_job *job)
{
    return (unsigned)(((uint64_t)job->blocks + TILE - 1u) / TILE);
}

int hide(const void *family_job, int)
{
    const tsr_hiding_job *job = static_cast<const tsr_hiding_job *>(family_job);
    return tsr_launch(k_hide, tiles_of(job), THREADS, 0, static_cast<cudaStream_t>(job->stream), *job);
}

int read_carried(const void *family_job, int)
{
    const tsr_hiding_job *job = static_cast<const tsr_hiding_job *>(family_job);
    const cudaStream_t stream = static_cast<cudaStream_t>(job->stream);
    const size_t bytes = ((size_t)tsr_hiding_units(job) + 31u) / 32u * sizeof(uint32_t);
    TSR_CUDA_TRY(cudaMemsetAsync(job->found, 0, bytes, stream));
    TSR_CUDA_TRY(cudaMemsetAsync(job->carries, 0, bytes, stream));
    return tsr_launch(k_read, tiles_of(job), THREADS, 0, stream, *job);
}

const char *policy_name(int)
{
    return "256 threads x 4 blocks";
}

size_t no_workspace(const void *, int)
{
    return 0;
}

} // namespace

const tsr_kernel_row tsr_hiding_cuda = {"Tessera",    "ours: a thread a block",      1, 1, 0, policy_name,
                                        no_workspace, {{"hide", hide}, {NULL, NULL}}};

const tsr_kernel_row tsr_hiding_read_cuda = {
    "Tessera", "ours: a thread a block", 1, 1, 0, policy_name, no_workspace, {{"read", read_carried}, {NULL, NULL}}};
