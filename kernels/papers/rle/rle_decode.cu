/* Ours: the RLE decoder in two kernels. The first balances its work by input, the second by output, so that one run of
 * 2^31 symbols takes no longer than 2^31 runs of one symbol.
 *
 * k_find_windows scans the counts in one pass (decoupled look-back). For each window of the output it finds the run
 * that covers the window's first symbol, and where that run begins. k_expand gives each window a block of threads. The
 * block scans the window's counts again, which is cheaper than to store and load an offset a run. At each run's first
 * symbol it stores, in shared memory, the exclusive or of the run's symbol and the one before; all other symbols are 0.
 * A running exclusive or over the window is then the output: a few shifts a word and one scan of the lanes' totals,
 * with no search, and at the same speed for all lengths of runs.
 *
 * Whatever the counts are, nothing is written out of bounds: if k_find_windows found an error, k_expand does
 * nothing. */
#include "rle.h"

#include "kernels/machine/look_back.cuh"

enum {
    FIND_THREADS = 256,
    FIND_RUNS = 16, /* of a thread */
    FIND_TILE = FIND_THREADS * FIND_RUNS,
    PIECE_BYTES = 16,
    GROUP = 4 /* runs that a thread of k_expand takes at once */
};

/* The run that covers a window's first symbol, and the position of that run's first symbol. */
struct alignas(8) window_start {
    uint32_t run, position;
};

/* ---- Windows ---------------------------------------------------------------------------------------------- */

/* Loads a thread's counts, from run first on. Counts after the last run are 0. */
static __device__ __forceinline__ void load_counts(uint32_t *c, const uint32_t *counts, uint32_t first, uint32_t runs)
{
#pragma unroll
    for (unsigned k = 0; k < FIND_RUNS; k += 4) {
        uint4 v = make_uint4(0, 0, 0, 0);
        if (first + k < runs) v = __ldg(reinterpret_cast<const uint4 *>(counts + first + k));
        c[k] = v.x, c[k + 1] = v.y, c[k + 2] = v.z, c[k + 3] = v.w;
    }
    if (runs - first < FIND_RUNS) {
#pragma unroll
        for (unsigned k = 0; k < FIND_RUNS; k++)
            if (first + k >= runs) c[k] = 0;
    }
}

/* The run that covers position at of the tile's output: finds the thread by its offset, then the thread's run. before:
 * the symbols before the tile. */
static __device__ __forceinline__ window_start find_run(const uint64_t *offset, const uint32_t *counts,
                                                        uint32_t tile_run, uint32_t before, uint32_t at)
{
    unsigned thread =
        0; /* the last thread whose offset is not above at: a thread without symbols has the offset of the next one */
#pragma unroll
    for (unsigned step = FIND_THREADS / 2; step > 0; step /= 2)
        if (offset[thread + step] <= at) thread += step;
    uint32_t run = tile_run + thread * FIND_RUNS, from = (uint32_t)offset[thread];
    while (at - from >= counts[run]) from += counts[run++]; /* ends, because at is below the tile's sum */
    return {run, before + from};
}

/* window: symbols of a window. starts: out; if the counts are right, one entry of each window is written. */
static __global__ void __launch_bounds__(FIND_THREADS)
    k_find_windows(const uint32_t *counts, uint32_t runs, unsigned tiles, uint64_t count, uint32_t window,
                   window_start *starts, uint32_t *error, tsr_look_back state)
{
    __shared__ uint64_t offset[FIND_THREADS], sums[FIND_THREADS / TSR_WARP], tile_before;
    __shared__ unsigned ticket;
    if (threadIdx.x == 0) ticket = tsr_take_ticket(state);
    __syncthreads();
    const unsigned tile = ticket;
    const uint32_t first = tile * FIND_TILE + threadIdx.x * FIND_RUNS;
    uint32_t c[FIND_RUNS];
    uint64_t own = 0, sum;
    bool none = false;
#pragma unroll
    for (unsigned k = 0; k < FIND_RUNS; k++) c[k] = 0;
    if (first < runs) {
        load_counts(c, counts, first, runs);
#pragma unroll
        for (unsigned k = 0; k < FIND_RUNS; k++) {
            own += c[k];
            none |= c[k] == 0 && first + k < runs;
        }
    }
    const uint64_t inside = tsr_block_scan<FIND_THREADS>(own, sums, &sum);
    offset[threadIdx.x] = first < runs ? inside : UINT64_MAX;
    if (threadIdx.x < TSR_WARP) {
        const uint64_t own_sum =
            sum <= count ? sum : count + 1u; /* count + 1 is wrong in any case, and sums of it cannot overflow */
        if (threadIdx.x == 0) tsr_publish_sum(state, tile, own_sum);
        const uint64_t before = tsr_look_back_sum<62>(state, tile, own_sum);
        if (threadIdx.x == 0) tile_before = before;
    }
    __syncthreads();
    const uint64_t before = tile_before, end = before + sum;
    if (none || end > count || (tile + 1 == tiles && end != count)) *error = 1; /* all writers write 1 */
    const uint64_t stop = end < count ? end : count;
    for (uint64_t at = (before + window - 1) / window * window + (uint64_t)threadIdx.x * window; at < stop;
         at += (uint64_t)FIND_THREADS * window)
        starts[at / window] = find_run(offset, counts, tile * FIND_TILE, (uint32_t)before, (uint32_t)(at - before));
}

/* ---- Expansion -------------------------------------------------------------------------------------------- */

template <typename T, unsigned THREADS, int PIECES> struct window_shape {
    static constexpr unsigned SYMBOLS = THREADS * PIECES * PIECE_BYTES / sizeof(T);
    static constexpr size_t SHARED_BYTES = (size_t)THREADS * PIECES * PIECE_BYTES;
};

/* The symbols of a group of runs, for one load of 4, 8 or 16 bytes, which are aligned. */
template <typename T> struct alignas(sizeof(T) * GROUP) symbol_group {
    T symbol[GROUP];
};

/* The running exclusive or of a word's symbols. The last symbol is the word's total. */
template <typename T> static __device__ __forceinline__ uint32_t running(uint32_t word)
{
    if (sizeof(T) == 1) word ^= word << 8;
    if (sizeof(T) <= 2) word ^= word << 16;
    return word;
}

/* A word whose symbols are all the last symbol of word. */
template <typename T> static __device__ __forceinline__ uint32_t spread_last(uint32_t word)
{
    if (sizeof(T) == 1) return __byte_perm(word, 0, 0x3333);
    if (sizeof(T) == 2) return __byte_perm(word, 0, 0x3232);
    return word;
}

/* Writes the differences of the window's runs to shared memory. */
template <typename T, unsigned THREADS, unsigned WINDOW>
static __device__ __forceinline__ void scatter_runs(T *difference, uint32_t *sums, const T *symbols,
                                                    const uint32_t *counts, window_start start, uint32_t end_run,
                                                    uint32_t window_position)
{
    const uint32_t aligned = start.run & ~(uint32_t)(GROUP - 1);
    uint32_t position = start.position - window_position; /* of the step's first run in the window; wraps around if the
                                                             first run begins before the window */
    for (uint32_t step = aligned; step < end_run; step += THREADS * GROUP) {
        const uint32_t first = step + threadIdx.x * GROUP;
        uint4 c = make_uint4(0, 0, 0, 0);
        symbol_group<T> group = {{0, 0, 0, 0}};
        T before = 0;
        if (first < end_run) {
            c = __ldg(reinterpret_cast<const uint4 *>(counts + first));
            group = *reinterpret_cast<const symbol_group<T> *>(symbols + first);
            if (first > start.run) before = symbols[first - 1];
        }
        uint32_t each[GROUP] = {c.x, c.y, c.z, c.w}, own = 0, sum;
#pragma unroll
        for (unsigned k = 0; k < GROUP; k++) {
            if (first + k < start.run || first + k >= end_run) each[k] = 0;
            own += each[k];
        }
        uint32_t at = position + tsr_block_scan<THREADS>(own, sums, &sum);
#pragma unroll
        for (unsigned k = 0; k < GROUP; k++) {
            const uint32_t run = first + k;
            /* the run that covers the window's start differs from 0 */
            const T other = run == start.run ? T(0) : k == 0 ? before : group.symbol[k > 0 ? k - 1 : 0];
            const uint32_t head = run == start.run ? 0u : at;
            if (run >= start.run && run < end_run && head < WINDOW) difference[head] = group.symbol[k] ^ other;
            at += each[k];
        }
        position += sum;
        __syncthreads();
    }
}

/* Over the warp: finds the exclusive or of all that comes before each piece, from the pieces' totals in own, TOGETHER
 * of them in a word. Returns the warp's total in the top symbol of a word. */
template <typename T, int PIECES, int TOGETHER, int WORDS>
static __device__ __forceinline__ uint32_t carry_over(const uint32_t (&own)[WORDS], unsigned lane, uint32_t *carry)
{
    constexpr int BITS = 8 * sizeof(T);
    uint32_t before = 0;
#pragma unroll
    for (int w = 0; w < WORDS; w++) {
        uint32_t scanned = own[w];
#pragma unroll
        for (unsigned delta = 1; delta < TSR_WARP; delta *= 2) {
            const uint32_t other = __shfl_up_sync(TSR_FULL_WARP, scanned, delta);
            if (lane >= delta) scanned ^= other;
        }
        const uint32_t total = __shfl_sync(TSR_FULL_WARP, scanned, TSR_WARP - 1), exclusive = scanned ^ own[w];
#pragma unroll
        for (int k = w * TOGETHER; k < PIECES && k < (w + 1) * TOGETHER; k++) {
            const int shift = 32 - BITS - BITS * (k % TOGETHER); /* to the top, where spread_last takes it from */
            carry[k] = spread_last<T>((exclusive << shift) ^ before);
            before ^= total << shift;
        }
    }
    return before;
}

template <typename T, unsigned THREADS, int PIECES>
static __global__ void __launch_bounds__(THREADS)
    k_expand(const T *symbols, const uint32_t *counts, uint32_t runs, T *out, uint32_t count, unsigned windows,
             const window_start *starts, const uint32_t *error)
{
    constexpr unsigned WINDOW = window_shape<T, THREADS, PIECES>::SYMBOLS, WARPS = THREADS / TSR_WARP;
    constexpr int TOGETHER = 4 / sizeof(T), WORDS = (PIECES + TOGETHER - 1) / TOGETHER, BITS = 8 * sizeof(T);
    TSR_DYNAMIC_SHARED(shared);
    __shared__ uint32_t sums[WARPS], totals[WARPS];
    if (*error) return;
    uint4 *vectors = reinterpret_cast<uint4 *>(shared);
    const unsigned lane = threadIdx.x % TSR_WARP, warp = threadIdx.x / TSR_WARP;
    const uint32_t from = blockIdx.x * WINDOW;
    const window_start start = starts[blockIdx.x];
    const uint32_t end_run = blockIdx.x + 1 < windows ? starts[blockIdx.x + 1].run + 1u : runs;
#pragma unroll
    for (int k = 0; k < PIECES; k++) vectors[threadIdx.x + THREADS * k] = make_uint4(0, 0, 0, 0);
    __syncthreads();
    scatter_runs<T, THREADS, WINDOW>(reinterpret_cast<T *>(shared), sums, symbols, counts, start, end_run, from);

    /* Inside a piece. The totals of a lane's pieces stand side by side, as many as a word holds. */
    uint4 v[PIECES];
    uint32_t own[WORDS] = {};
#pragma unroll
    for (int k = 0; k < PIECES; k++) {
        v[k] = vectors[(warp * PIECES + k) * TSR_WARP + lane];
        v[k].x = running<T>(v[k].x);
        v[k].y = running<T>(v[k].y) ^ spread_last<T>(v[k].x);
        v[k].z = running<T>(v[k].z) ^ spread_last<T>(v[k].y);
        v[k].w = running<T>(v[k].w) ^ spread_last<T>(v[k].z);
        own[k / TOGETHER] |= v[k].w >> (32 - BITS) << (BITS * (k % TOGETHER));
    }
    uint32_t carry[PIECES];
    const uint32_t before = carry_over<T, PIECES, TOGETHER, WORDS>(own, lane, carry);
    /* Over the block. before has the warp's total in its top symbol. */
    if (lane == 0) totals[warp] = before;
    __syncthreads();
    uint32_t warps_before = 0;
#pragma unroll
    for (unsigned w = 0; w + 1 < WARPS; w++)
        if (w < warp) warps_before ^= totals[w];
    warps_before = spread_last<T>(warps_before);
    uint4 *to = reinterpret_cast<uint4 *>(out + from);
#pragma unroll
    for (int k = 0; k < PIECES; k++) {
        const unsigned piece = (warp * PIECES + k) * TSR_WARP + lane;
        const uint32_t all = carry[k] ^ warps_before;
        if (from + piece * (PIECE_BYTES / (unsigned)sizeof(T)) < count)
            to[piece] = make_uint4(v[k].x ^ all, v[k].y ^ all, v[k].z ^ all, v[k].w ^ all);
    }
}

/* ---- Launches --------------------------------------------------------------------------------------------- */

/* Threads, pieces of 16 bytes a thread. */
#define POLICIES(_) _(256, 4) _(128, 4) _(64, 4) _(128, 8)

/* The work space holds the look-back's words, then the starts of the windows. These are the bytes of the former. */
static size_t look_back_bytes(const tsr_rle_decode_job *j)
{
    const size_t runs = j->runs <= j->count ? j->runs : 0;
    return (tsr_look_back_bytes((runs + FIND_TILE - 1) / FIND_TILE) + 15) / 16 * 16;
}

static window_start *starts_at(const tsr_rle_decode_job *j)
{
    return reinterpret_cast<window_start *>(static_cast<unsigned char *>(j->workspace) + look_back_bytes(j));
}

/* More runs than symbols, or no runs for some symbols, are an error without a look at the counts. */
static bool plainly_wrong(const tsr_rle_decode_job *j)
{
    return j->runs > j->count || (j->runs == 0 && j->count > 0);
}

static int find_windows(const tsr_rle_decode_job *j, uint32_t window)
{
    const cudaStream_t stream = static_cast<cudaStream_t>(j->stream);
    TSR_CUDA_TRY(cudaMemsetAsync(j->error, plainly_wrong(j) ? 1 : 0, sizeof *j->error, stream));
    if (plainly_wrong(j) || j->count == 0) return cudaSuccess;
    const unsigned tiles = (unsigned)((j->runs + FIND_TILE - 1) / FIND_TILE);
    TSR_CUDA_TRY(cudaMemsetAsync(j->workspace, 0, tsr_look_back_bytes(tiles), stream));
    return tsr_launch(k_find_windows, tiles, FIND_THREADS, 0, stream, j->counts, (uint32_t)j->runs, tiles,
                      (uint64_t)j->count, window, starts_at(j), j->error, tsr_look_back_at(j->workspace));
}

template <typename T, unsigned THREADS, int PIECES> static int expand_as(const tsr_rle_decode_job *j)
{
    typedef window_shape<T, THREADS, PIECES> shape;
    if (plainly_wrong(j)) return cudaSuccess;
    const unsigned windows = (unsigned)((j->count + shape::SYMBOLS - 1) / shape::SYMBOLS);
    return tsr_launch(k_expand<T, THREADS, PIECES>, windows, THREADS, shape::SHARED_BYTES,
                      static_cast<cudaStream_t>(j->stream), static_cast<const T *>(j->symbols), j->counts,
                      (uint32_t)j->runs, static_cast<T *>(j->out), (uint32_t)j->count, windows, starts_at(j), j->error);
}

#define POLICY_NAME(threads, pieces) #threads " threads x " #pieces " pieces",
#define POLICY_RUN(threads, pieces) \
    {expand_as<uint8_t, threads, pieces>, expand_as<uint16_t, threads, pieces>, expand_as<uint32_t, threads, pieces>},
#define POLICY_BYTES(threads, pieces) threads *pieces *PIECE_BYTES,
#define POLICY_ONE(threads, pieces) +1
enum { DECODERS = 0 POLICIES(POLICY_ONE) };

static unsigned window_symbols(const tsr_rle_decode_job *j, int policy)
{
    static const unsigned bytes[] = {POLICIES(POLICY_BYTES)};
    return bytes[policy] / (unsigned)j->symbol_bytes;
}

static const char *policy_name(int policy)
{
    static const char *const names[] = {POLICIES(POLICY_NAME)};
    return names[policy];
}

static size_t workspace_bytes(const void *job, int policy)
{
    const tsr_rle_decode_job *j = static_cast<const tsr_rle_decode_job *>(job);
    const size_t window = window_symbols(j, policy);
    return look_back_bytes(j) + (j->count + window - 1) / window * sizeof(window_start);
}

static int windows_phase(const void *job, int policy)
{
    const tsr_rle_decode_job *j = static_cast<const tsr_rle_decode_job *>(job);
    return find_windows(j, window_symbols(j, policy));
}

static int expand_phase(const void *job, int policy)
{
    static int (*const runs[][3])(const tsr_rle_decode_job *) = {POLICIES(POLICY_RUN)};
    const tsr_rle_decode_job *j = static_cast<const tsr_rle_decode_job *>(job);
    return runs[policy][j->symbol_bytes / 2](j);
}

extern const tsr_kernel_row tsr_rle_decode_cuda = {"Tessera",
                                                   "scan, then windows of output",
                                                   1,
                                                   DECODERS,
                                                   1,
                                                   policy_name,
                                                   workspace_bytes,
                                                   {{"windows", windows_phase}, {"expand", expand_phase}}};
