/* The limits of the machine, as rows. Copy, read and fill move 16-byte vectors; a thread has several in flight at once.
 *
 * Look-up: lane l of a warp takes the vectors l, 32 + l, 64 + l and 96 + l of a chunk, 64 bytes in all. The lane adds
 * the table's word of byte n to sum n % (2k), and writes the 2k sums as vectors, in the same order of lanes. In one
 * shape a block has one table, as the coders have: up to 32 lanes compete for its banks. In the other shapes a block
 * has a table a bank, 32 KiB in all, and no look-up waits for another. These give the real limit. */
#include "limits.h"

#include "kernels/machine/device.cuh"

enum { VECTORS = 4, VECTOR_WORDS = 4, BYTE_VALUES = 256 };
enum { CHUNK_VECTORS = TSR_LIMITS_CHUNK / 16 };
static_assert(CHUNK_VECTORS == TSR_WARP * VECTORS, "a warp takes a chunk");

TSR_HD uint32_t table_word(uint32_t byte)
{
    return (byte + 1u) * 0x9e3779b1u;
}

/* ---- Copy, read, fill ------------------------------------------------------------------------------------- */

enum limit { COPY, READ, FILL };

template <enum limit LIMIT, unsigned THREADS, unsigned EACH>
static __global__ void __launch_bounds__(THREADS) k_move(const uint4 *in, uint4 *out, size_t vectors)
{
    const size_t first = (size_t)blockIdx.x * (THREADS * EACH) + threadIdx.x;
    uint4 v[EACH];
#pragma unroll
    for (unsigned k = 0; k < EACH; k++) {
        const size_t at = first + k * THREADS;
        v[k] = make_uint4(0, 0, 0, 0);
        if (LIMIT != FILL && at < vectors) v[k] = __ldg(in + at);
    }
    if constexpr (LIMIT == READ) { /* the comparison needs the sum; it is almost never true */
        uint32_t sum = 0;
#pragma unroll
        for (unsigned k = 0; k < EACH; k++) sum += (v[k].x ^ v[k].y) + (v[k].z ^ v[k].w);
        if (sum == 0x9e3779b1u) out[0] = make_uint4(sum, sum, sum, sum);
    } else {
#pragma unroll
        for (unsigned k = 0; k < EACH; k++) {
            const size_t at = first + k * THREADS;
            if (at < vectors) out[at] = LIMIT == FILL ? make_uint4(0, 0, 0, 0) : v[k];
        }
    }
}

template <enum limit LIMIT, unsigned THREADS, unsigned EACH> static int move(const tsr_limits_job *j)
{
    const size_t vectors = j->bytes / TSR_LIMITS_CHUNK * CHUNK_VECTORS, each = THREADS * EACH;
    return tsr_launch(k_move<LIMIT, THREADS, EACH>, (unsigned)((vectors + each - 1) / each), THREADS, 0,
                      static_cast<cudaStream_t>(j->stream), static_cast<const uint4 *>(j->in),
                      static_cast<uint4 *>(j->out), vectors);
}

#define MOVE_POLICIES(_) _(256, 1) _(512, 1) _(1024, 1) _(256, 4) _(1024, 2) _(256, 8)
#define MOVE_NAME(threads, each) #threads " threads x " #each " vectors",
#define MOVE_RUN(threads, each) move<LIMIT, threads, each>,

static const char *move_name(int policy)
{
    static const char *const names[] = {MOVE_POLICIES(MOVE_NAME)};
    return names[policy];
}

template <enum limit LIMIT> static int run_move(const void *job, int policy)
{
    static int (*const runs[])(const tsr_limits_job *) = {MOVE_POLICIES(MOVE_RUN)};
    return runs[policy](static_cast<const tsr_limits_job *>(job));
}

#define MOVE_ONE(threads, each) +1
enum { MOVES = 0 MOVE_POLICIES(MOVE_ONE) };

/* ---- Look-up ---------------------------------------------------------------------------------------------- */

/* Writes the sums of one lane and one chunk as vectors of up to 4. */
template <int WORDS> static __device__ __forceinline__ void put_words(uint32_t *out, const uint32_t *sum, unsigned lane)
{
    if constexpr (WORDS == 2) {
        reinterpret_cast<uint2 *>(out)[lane] = make_uint2(sum[0], sum[1]);
    } else {
#pragma unroll
        for (int v = 0; v < WORDS / VECTOR_WORDS; v++)
            reinterpret_cast<uint4 *>(out)[TSR_WARP * v + lane] =
                make_uint4(sum[4 * v], sum[4 * v + 1], sum[4 * v + 2], sum[4 * v + 3]);
    }
}

/* COPIES tables side by side: word b of copy c is at COPIES * b + c. A warp takes each chunk whose number is the warp's
 * plus a multiple of the number of warps. */
template <int BITS, unsigned COPIES, unsigned THREADS>
static __global__ void __launch_bounds__(THREADS) k_look_up(const uint4 *in, uint32_t *out, unsigned chunks)
{
    constexpr int WORDS = 2 * BITS;
    TSR_DYNAMIC_SHARED(shared);
    uint32_t *table = reinterpret_cast<uint32_t *>(shared);
    for (unsigned i = threadIdx.x; i < BYTE_VALUES * COPIES; i += THREADS) table[i] = table_word(i / COPIES);
    __syncthreads();
    const unsigned lane = threadIdx.x % TSR_WARP, copy = lane % COPIES;
    const unsigned warps = gridDim.x * (THREADS / TSR_WARP);
    for (unsigned c = (blockIdx.x * THREADS + threadIdx.x) / TSR_WARP; c < chunks; c += warps) {
        uint32_t word[VECTORS * VECTOR_WORDS], sum[WORDS];
#pragma unroll
        for (int v = 0; v < VECTORS; v++) {
            const uint4 four = __ldg(in + (size_t)c * CHUNK_VECTORS + TSR_WARP * v + lane);
            word[4 * v] = four.x, word[4 * v + 1] = four.y, word[4 * v + 2] = four.z, word[4 * v + 3] = four.w;
        }
#pragma unroll
        for (int i = 0; i < WORDS; i++) sum[i] = 0;
#pragma unroll
        for (int n = 0; n < VECTORS * 16; n++)
            sum[n % WORDS] += table[(word[n / 4] >> (8 * (n % 4)) & 255u) * COPIES + copy];
        put_words<WORDS>(out + (size_t)c * (TSR_WARP * WORDS), sum, lane);
    }
}

template <int BITS, unsigned COPIES, unsigned THREADS> static int look_up(const tsr_limits_job *j)
{
    const size_t chunks = j->bytes / TSR_LIMITS_CHUNK, shared = sizeof(uint32_t) * BYTE_VALUES * COPIES;
    const size_t enough = (chunks + THREADS / TSR_WARP - 1) / (THREADS / TSR_WARP);
    unsigned blocks = 0;
    TSR_CUDA_TRY(tsr_resident_blocks(k_look_up<BITS, COPIES, THREADS>, THREADS, shared, &blocks));
    if (enough < blocks) blocks = (unsigned)enough;
    return tsr_launch(k_look_up<BITS, COPIES, THREADS>, blocks, THREADS, shared, static_cast<cudaStream_t>(j->stream),
                      static_cast<const uint4 *>(j->in), static_cast<uint32_t *>(j->out), (unsigned)chunks);
}

/* k, tables of a block, threads of a block. */
#define LOOK_UP_SHAPES(_, k) _(k, 1, 256) _(k, 32, 512) _(k, 32, 1024)
#define LOOK_UP_POLICIES(_) \
    LOOK_UP_SHAPES(_, 1) LOOK_UP_SHAPES(_, 2) LOOK_UP_SHAPES(_, 4) LOOK_UP_SHAPES(_, 6) LOOK_UP_SHAPES(_, 8)
#define LOOK_UP_NAME(k, copies, threads) "k = " #k ", " #threads " threads, " #copies " tables",
#define LOOK_UP_RUN(k, copies, threads) look_up<k, copies, threads>,
#define LOOK_UP_BITS(k, copies, threads) k,
#define LOOK_UP_ONE(k, copies, threads) +1
enum { LOOK_UPS = 0 LOOK_UP_POLICIES(LOOK_UP_ONE) };

static const char *look_up_name(int policy)
{
    static const char *const names[] = {LOOK_UP_POLICIES(LOOK_UP_NAME)};
    return names[policy];
}

static int run_look_up(const void *job, int policy)
{
    static int (*const runs[])(const tsr_limits_job *) = {LOOK_UP_POLICIES(LOOK_UP_RUN)};
    return runs[policy](static_cast<const tsr_limits_job *>(job));
}

int tsr_limit_look_up_bits(int policy)
{
    static const int bits[] = {LOOK_UP_POLICIES(LOOK_UP_BITS)};
    return bits[policy];
}

void tsr_limit_look_up_cpu(const void *in, size_t bytes, int bits, void *out)
{
    const uint8_t *from = static_cast<const uint8_t *>(in);
    uint32_t *to = static_cast<uint32_t *>(out);
    const int words = 2 * bits,
              together = words < VECTOR_WORDS ? words : VECTOR_WORDS; /* words of one lane that are adjacent */
    for (size_t c = 0; c < bytes / TSR_LIMITS_CHUNK; c++, from += TSR_LIMITS_CHUNK, to += TSR_WARP * words) {
        for (int i = 0; i < TSR_WARP * words; i++) to[i] = 0;
        for (int at = 0; at < TSR_LIMITS_CHUNK; at++) {
            const int lane = at / 16 % TSR_WARP, sum = (at / (16 * TSR_WARP) * 16 + at % 16) % words;
            to[(sum / together * TSR_WARP + lane) * together + sum % together] += table_word(from[at]);
        }
    }
}

/* ---- Comparison --------------------------------------------------------------------------------------------- */

enum { COMPARE_THREADS = 512, COMPARE_BLOCKS = 2048, VECTOR_BYTES = 16 };

static __global__ void __launch_bounds__(COMPARE_THREADS)
    k_differs(const uint4 *a, const uint4 *b, size_t vectors, unsigned rest, uint32_t *result)
{
    const size_t first = (size_t)blockIdx.x * COMPARE_THREADS + threadIdx.x;
    uint32_t differs = 0;
    for (size_t at = first; at < vectors; at += (size_t)gridDim.x * COMPARE_THREADS) {
        const uint4 x = __ldg(a + at), y = __ldg(b + at);
        differs |= (x.x ^ y.x) | (x.y ^ y.y) | (x.z ^ y.z) | (x.w ^ y.w);
    }
    if (first < rest) /* the bytes after the last whole vector */
        differs |= (uint32_t)(reinterpret_cast<const uint8_t *>(a + vectors)[first] ^
                              reinterpret_cast<const uint8_t *>(b + vectors)[first]);
    if (differs) atomicOr(result, 1u);
}

int tsr_device_differs(const void *a, const void *b, size_t bytes, uint32_t *d_result, void *stream_)
{
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_);
    const size_t vectors = bytes / VECTOR_BYTES, enough = vectors / COMPARE_THREADS + 1;
    if (((uintptr_t)a | (uintptr_t)b) % VECTOR_BYTES != 0) return cudaErrorInvalidValue;
    TSR_CUDA_TRY(cudaMemsetAsync(d_result, 0, sizeof *d_result, stream));
    return tsr_launch(k_differs, (unsigned)(enough < COMPARE_BLOCKS ? enough : COMPARE_BLOCKS), COMPARE_THREADS, 0,
                      stream, static_cast<const uint4 *>(a), static_cast<const uint4 *>(b), vectors,
                      (unsigned)(bytes % VECTOR_BYTES), d_result);
}

/* ---- Rows ------------------------------------------------------------------------------------------------- */

static size_t no_workspace(const void *, int)
{
    return 0;
}

extern const tsr_kernel_row tsr_limit_copy = {
    "copy", "limit", 1, MOVES, 0, move_name, no_workspace, {{"copy", run_move<COPY>}}};
extern const tsr_kernel_row tsr_limit_read = {
    "read", "limit", 1, MOVES, 0, move_name, no_workspace, {{"read", run_move<READ>}}};
extern const tsr_kernel_row tsr_limit_fill = {
    "fill", "limit", 1, MOVES, 0, move_name, no_workspace, {{"fill", run_move<FILL>}}};
extern const tsr_kernel_row tsr_limit_look_up = {
    "look-up", "limit", 1, LOOK_UPS, 7, look_up_name, no_workspace, {{"look up", run_look_up}}};
