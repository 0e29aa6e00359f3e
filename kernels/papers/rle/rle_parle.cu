/* PARLE: run-length coding in four kernels (seed 003, after Balevic): a mask of the heads of runs, its inclusive scan,
 * the compacted positions of heads, and scattered runs. And the variant with shared-memory atomics, of which the seed
 * has one sentence.
 *
 * Corrected and chosen: Counts and positions have 32 bits, as in the source, for symbols of 8, 16 or 32 bits. An empty
 * input has no runs. The mask may be bytes instead of the source's words (a policy), which moves less. The scan is
 * CUB's. The source tests whether the scan changed at i; this is the mask itself, but its kernel does not read the
 * mask.
 *
 * Of the atomic variant only the idea is known: A block finds the heads of its tile and ranks them by a scan. Its
 * threads add their symbols of each run to the run's count in shared memory. Blocks leave their runs in gapped buffers.
 * A scan of the blocks' numbers of heads and a packing kernel follow, as PAVLE has them for codes. The length of a run
 * that goes on over several blocks is the distance from its head to the next head. */
#include "rle.h"

#include "rle_heads.cuh"

#if !defined(TSR_CUDA_EMULATED)
#include <cub/device/device_scan.cuh>
#include <thrust/iterator/transform_iterator.h>
#endif

static size_t round_up(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

static cudaStream_t stream_of(const tsr_rle_job *j)
{
    return static_cast<cudaStream_t>(j->stream);
}

/* ---- A scan of records ------------------------------------------------------------------------------------ */

enum { SCAN_THREADS = 256 };

/* Adds up Records::value(i) for i < count by tsr_add_heads. Records::put(i, before, own) receives the results. */
template <typename Records>
static __global__ void __launch_bounds__(SCAN_THREADS) k_scan(Records records, uint32_t count, tsr_look_back state)
{
    __shared__ uint64_t warps[SCAN_THREADS / TSR_WARP], tile_before;
    __shared__ unsigned ticket;
    const unsigned lane = threadIdx.x % TSR_WARP, warp = threadIdx.x / TSR_WARP;
    if (threadIdx.x == 0) ticket = tsr_take_ticket(state);
    __syncthreads();
    const unsigned tile = ticket;
    const uint32_t i = tile * SCAN_THREADS + threadIdx.x;
    const uint64_t own = i < count ? records.value(i) : 0u;
    uint64_t upto = own;
#pragma unroll
    for (unsigned delta = 1; delta < TSR_WARP; delta *= 2) {
        const uint64_t other = __shfl_up_sync(TSR_FULL_WARP, upto, delta);
        if (lane >= delta) upto = tsr_add_heads::both(other, upto);
    }
    if (lane == TSR_WARP - 1) warps[warp] = upto;
    __syncthreads();
    uint64_t all = 0, before = 0;
    for (unsigned w = 0; w < SCAN_THREADS / TSR_WARP; w++) {
        if (w == warp) before = all;
        all = tsr_add_heads::both(all, warps[w]);
    }
    const uint64_t earlier = __shfl_up_sync(TSR_FULL_WARP, upto, 1);
    if (lane > 0) before = tsr_add_heads::both(before, earlier);
    if (warp == 0) {
        if (lane == 0) tsr_publish_sum(state, tile, all);
        const uint64_t tiles_before = tsr_look_back_by<tsr_add_heads>(state, tile, all);
        if (lane == 0) tile_before = tiles_before;
    }
    __syncthreads();
    if (i < count) records.put(i, tsr_add_heads::both(tile_before, before), own);
}

static size_t scan_bytes(size_t count)
{
    return round_up(tsr_look_back_bytes((count + SCAN_THREADS - 1) / SCAN_THREADS));
}

template <typename Records> static int scan(Records records, size_t count, void *workspace, cudaStream_t stream)
{
    const unsigned tiles = (unsigned)((count + SCAN_THREADS - 1) / SCAN_THREADS);
    TSR_CUDA_TRY(cudaMemsetAsync(workspace, 0, tsr_look_back_bytes(tiles), stream));
    return tsr_launch(k_scan<Records>, tiles, SCAN_THREADS, 0, stream, records, (uint32_t)count,
                      tsr_look_back_at(workspace));
}

/* ---- PARLE ------------------------------------------------------------------------------------------------ */

template <typename T, typename Mask> static __global__ void k_mask(const T *in, Mask *mask, uint32_t count)
{
    const uint32_t stride = gridDim.x * blockDim.x;
    for (uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride)
        mask[i] = i == 0 || in[i] != in[i - 1] ? 1 : 0;
}

static __global__ void k_compact(const uint32_t *scanned, uint32_t *compacted, uint64_t *runs, uint32_t count)
{
    const uint32_t stride = gridDim.x * blockDim.x;
    for (uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
        const uint32_t rank = scanned[i];
        if (i == count - 1) {
            compacted[rank] = count;
            *runs = rank;
        }
        if (i == 0)
            compacted[0] = 0;
        else if (rank != scanned[i - 1])
            compacted[rank - 1] = (uint32_t)i;
    }
}

template <typename T>
static __global__ void k_scatter(const uint32_t *compacted, const uint64_t *runs, const T *in, T *symbols,
                                 uint32_t *counts)
{
    const uint64_t all = *runs, stride = gridDim.x * blockDim.x;
    for (uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < all; i += stride) {
        const uint32_t head = compacted[i];
        symbols[i] = in[head];
        counts[i] = compacted[i + 1] - head;
    }
}

/* Finds the number of blocks. Every kernel strides over the input with as many blocks as the device holds. */
template <typename Kernel>
static cudaError_t stride_blocks(Kernel kernel, unsigned threads, size_t count, unsigned *blocks)
{
    TSR_CUDA_TRY(tsr_resident_blocks(kernel, threads, 0, blocks));
    const size_t enough = (count + threads - 1) / threads;
    if (enough < *blocks) *blocks = (unsigned)enough;
    return cudaSuccess;
}

struct parle_policy {
    const char *name;
    unsigned threads;
    size_t mask_bytes;
};

static const parle_policy parle_policies[] = {
    {"128 threads, mask of words", 128, 4}, {"256 threads, mask of words", 256, 4},
    {"512 threads, mask of words", 512, 4}, {"1024 threads, mask of words", 1024, 4},
    {"256 threads, mask of bytes", 256, 1}, {"512 threads, mask of bytes", 512, 1},
};

#if defined(TSR_CUDA_EMULATED)
template <typename Mask> struct mask_records {
    const Mask *mask;
    uint32_t *scanned;
    __device__ uint64_t value(uint32_t i) const
    {
        return tsr_pack_heads(mask[i], 0);
    }
    __device__ void put(uint32_t i, uint64_t before, uint64_t own) const
    {
        scanned[i] = tsr_heads_of(before) + tsr_heads_of(own);
    }
};

template <typename Mask> static size_t inclusive_scan_bytes(size_t count)
{
    return scan_bytes(count);
}

template <typename Mask>
static int inclusive_scan(void *workspace, const Mask *mask, uint32_t *scanned, size_t count, cudaStream_t stream)
{
    return scan(mask_records<Mask>{mask, scanned}, count, workspace, stream);
}
#else
struct widen {
    template <typename Mask> __host__ __device__ uint32_t operator()(Mask mask) const
    {
        return mask;
    }
};

template <typename Mask> static size_t inclusive_scan_bytes(size_t count)
{
    size_t bytes = 0;
    const thrust::transform_iterator<widen, const Mask *, uint32_t> wide(nullptr, widen());
    return cub::DeviceScan::InclusiveSum(nullptr, bytes, wide, static_cast<uint32_t *>(nullptr), (int)count) ==
                   cudaSuccess
               ? bytes
               : 0;
}

template <typename Mask>
static int inclusive_scan(void *workspace, const Mask *mask, uint32_t *scanned, size_t count, cudaStream_t stream)
{
    size_t bytes = inclusive_scan_bytes<Mask>(count);
    const thrust::transform_iterator<widen, const Mask *, uint32_t> wide(mask, widen());
    return cub::DeviceScan::InclusiveSum(workspace, bytes, wide, scanned, (int)count, stream);
}
#endif

/* The work space: the mask, the scanned mask, the compacted mask (with one entry more, the end), the scan's own. */
struct parle_buffers {
    void *mask, *scan;
    uint32_t *scanned, *compacted;
    size_t bytes;
};

static parle_buffers parle_at(const tsr_rle_job *j, int policy)
{
    const size_t mask_bytes = parle_policies[policy].mask_bytes;
    unsigned char *const at = static_cast<unsigned char *>(j->workspace);
    size_t used = 0;
    parle_buffers b;
    b.mask = at;
    used += round_up(j->count * mask_bytes);
    b.scanned = reinterpret_cast<uint32_t *>(at + used);
    used += round_up(j->count * sizeof(uint32_t));
    b.compacted = reinterpret_cast<uint32_t *>(at + used);
    used += round_up((j->count + 1) * sizeof(uint32_t));
    b.scan = at + used;
    used += mask_bytes == 1 ? inclusive_scan_bytes<uint8_t>(j->count) : inclusive_scan_bytes<uint32_t>(j->count);
    b.bytes = used;
    return b;
}

static size_t parle_bytes(const void *job, int policy)
{
    const tsr_rle_job *j = static_cast<const tsr_rle_job *>(job);
    return j->count > 0 ? parle_at(j, policy).bytes : 0;
}

static const char *parle_name(int policy)
{
    return parle_policies[policy].name;
}

template <typename T, typename Mask> static int mask_as(const tsr_rle_job *j, int policy)
{
    const unsigned threads = parle_policies[policy].threads;
    unsigned blocks = 0;
    TSR_CUDA_TRY(stride_blocks(k_mask<T, Mask>, threads, j->count, &blocks));
    return tsr_launch(k_mask<T, Mask>, blocks, threads, 0, stream_of(j), static_cast<const T *>(j->in),
                      static_cast<Mask *>(parle_at(j, policy).mask), (uint32_t)j->count);
}

static int parle_mask(const void *job, int policy)
{
    static int (*const masks[][2])(const tsr_rle_job *,
                                   int) = {{mask_as<uint8_t, uint8_t>, mask_as<uint8_t, uint32_t>},
                                           {mask_as<uint16_t, uint8_t>, mask_as<uint16_t, uint32_t>},
                                           {mask_as<uint32_t, uint8_t>, mask_as<uint32_t, uint32_t>}};
    const tsr_rle_job *j = static_cast<const tsr_rle_job *>(job);
    if (j->count == 0) return cudaMemsetAsync(j->runs, 0, sizeof *j->runs, stream_of(j));
    return masks[j->symbol_bytes / 2][parle_policies[policy].mask_bytes / 4](j, policy);
}

static int parle_scan(const void *job, int policy)
{
    const tsr_rle_job *j = static_cast<const tsr_rle_job *>(job);
    if (j->count == 0) return cudaSuccess;
    const parle_buffers b = parle_at(j, policy);
    return parle_policies[policy].mask_bytes == 1
               ? inclusive_scan(b.scan, static_cast<const uint8_t *>(b.mask), b.scanned, j->count, stream_of(j))
               : inclusive_scan(b.scan, static_cast<const uint32_t *>(b.mask), b.scanned, j->count, stream_of(j));
}

static int parle_compact(const void *job, int policy)
{
    const tsr_rle_job *j = static_cast<const tsr_rle_job *>(job);
    if (j->count == 0) return cudaSuccess;
    const parle_buffers b = parle_at(j, policy);
    const unsigned threads = parle_policies[policy].threads;
    unsigned blocks = 0;
    TSR_CUDA_TRY(stride_blocks(k_compact, threads, j->count, &blocks));
    return tsr_launch(k_compact, blocks, threads, 0, stream_of(j), b.scanned, b.compacted, j->runs, (uint32_t)j->count);
}

template <typename T> static int scatter_as(const tsr_rle_job *j, int policy)
{
    const unsigned threads = parle_policies[policy].threads;
    unsigned blocks = 0;
    TSR_CUDA_TRY(stride_blocks(k_scatter<T>, threads, j->count, &blocks));
    return tsr_launch(k_scatter<T>, blocks, threads, 0, stream_of(j), parle_at(j, policy).compacted, j->runs,
                      static_cast<const T *>(j->in), static_cast<T *>(j->symbols), j->counts);
}

static int parle_scatter(const void *job, int policy)
{
    static int (*const scatters[])(const tsr_rle_job *, int) = {scatter_as<uint8_t>, scatter_as<uint16_t>,
                                                                scatter_as<uint32_t>};
    const tsr_rle_job *j = static_cast<const tsr_rle_job *>(job);
    return j->count == 0 ? cudaSuccess : scatters[j->symbol_bytes / 2](j, policy);
}

extern const tsr_kernel_row tsr_rle_parle = {
    "PARLE",     "four kernels, after Balevic 2009 as seed 003 has it",
    1,           (int)(sizeof parle_policies / sizeof parle_policies[0]),
    4,           parle_name,
    parle_bytes, {{"mask", parle_mask}, {"scan", parle_scan}, {"compact", parle_compact}, {"scatter", parle_scatter}}};

/* ---- With shared-memory atomics --------------------------------------------------------------------------- */

enum { VECTOR_BYTES = 16 };

template <typename T, unsigned THREADS> struct block_shape {
    static constexpr unsigned SYMBOLS = VECTOR_BYTES / sizeof(T); /* of a thread */
    static constexpr unsigned TILE = THREADS * SYMBOLS;
    static constexpr size_t SHARED_BYTES = (TILE + 4) * sizeof(uint32_t) + TILE * sizeof(T);
};

/* The gapped buffers. Tile b's runs stand from b * TILE on. heads: of each tile, the number and the last one's
 * position; heads_before: the same of all tiles before; lead: symbols before the tile's first head. */
struct gapped {
    void *symbols;
    uint32_t *counts;
    uint64_t *heads, *heads_before;
    uint32_t *lead;
};

template <typename T>
static __device__ __forceinline__ T symbol_of(uint4 v, unsigned s) /* s is a constant when compiled */
{
    const uint32_t word[4] = {v.x, v.y, v.z, v.w};
    return (T)(word[s * sizeof(T) / 4] >> (8 * (s * sizeof(T) % 4)));
}

template <typename T, unsigned THREADS>
static __global__ void __launch_bounds__(THREADS) k_block_runs(const T *in, uint32_t count, gapped to)
{
    typedef block_shape<T, THREADS> shape;
    constexpr unsigned TILE = shape::TILE, SYMBOLS = shape::SYMBOLS;
    TSR_DYNAMIC_SHARED(shared);
    uint32_t *run_count = reinterpret_cast<uint32_t *>(
        shared); /* 0: symbols of the run that began before the tile; 1..: of the tile's runs */
    T *run_symbol = reinterpret_cast<T *>(run_count + TILE + 4);
    __shared__ uint32_t sums[THREADS / TSR_WARP], behind_last;
    const unsigned lane = threadIdx.x % TSR_WARP;
    const uint32_t start = blockIdx.x * TILE, first = start + threadIdx.x * SYMBOLS;
    const uint32_t valid = first >= count ? 0u : count - first < SYMBOLS ? count - first : SYMBOLS;
    uint4 v = make_uint4(0, 0, 0, 0);
    if (valid > 0) v = __ldg(reinterpret_cast<const uint4 *>(in + first));
    uint32_t before = __shfl_up_sync(TSR_FULL_WARP, v.w, 1);
    if (lane == 0 && valid > 0 && first > 0) before = __ldg(reinterpret_cast<const uint32_t *>(in + first) - 1);
    uint32_t mask = tsr_heads<T>(v, before);
    if (first == 0) mask |= 1u;
    mask &= (1u << valid) - 1u;
    for (unsigned i = threadIdx.x; i <= TILE; i += THREADS) run_count[i] = 0;
    if (threadIdx.x == 0) behind_last = 0;
    uint32_t heads, rank = tsr_block_scan<THREADS>((uint32_t)__popc(mask), sums, &heads); /* has a barrier */
    uint32_t length = 0;
#pragma unroll
    for (unsigned s = 0; s < SYMBOLS; s++) {
        if (mask >> s & 1u) {
            if (length > 0) atomicAdd(&run_count[rank], length);
            length = 0;
            run_symbol[rank++] = symbol_of<T>(v, s);
        }
        if (s < valid) length++;
    }
    if (length > 0) atomicAdd(&run_count[rank], length);
    if (mask != 0 && rank == heads) atomicMax(&behind_last, first + 32u - (uint32_t)__clz((int)mask));
    __syncthreads();
    T *symbols = static_cast<T *>(to.symbols) + start;
    uint32_t *counts = to.counts + start;
    for (unsigned i = threadIdx.x; i < heads; i += THREADS) {
        symbols[i] = run_symbol[i];
        counts[i] = run_count[i + 1];
    }
    if (threadIdx.x == 0) {
        to.heads[blockIdx.x] = tsr_pack_heads(heads, heads > 0 ? behind_last - 1u : 0u);
        to.lead[blockIdx.x] = run_count[0];
    }
}

template <typename T, unsigned THREADS>
static __global__ void __launch_bounds__(THREADS)
    k_pack_runs(gapped from, T *all_symbols, uint32_t *all_counts, uint64_t *runs)
{
    constexpr unsigned TILE = block_shape<T, THREADS>::TILE;
    const uint32_t start = blockIdx.x * TILE;
    const uint64_t before = from.heads_before[blockIdx.x];
    const uint32_t heads = tsr_heads_of(from.heads[blockIdx.x]), base = tsr_heads_of(before);
    const bool last_tile = blockIdx.x + 1 == gridDim.x;
    const T *symbols = static_cast<const T *>(from.symbols) + start;
    const uint32_t *counts = from.counts + start;
    for (unsigned i = threadIdx.x; i < heads; i += THREADS) {
        all_symbols[base + i] = symbols[i];
        if (last_tile || i + 1 < heads) all_counts[base + i] = counts[i];
    }
    if (threadIdx.x == 0) {
        if (base > 0 && (heads > 0 || last_tile))
            all_counts[base - 1] = start + from.lead[blockIdx.x] - tsr_last_head_of(before);
        if (last_tile) *runs = base + heads;
    }
}

struct block_records {
    const uint64_t *heads;
    uint64_t *heads_before;
    __device__ uint64_t value(uint32_t i) const
    {
        return heads[i];
    }
    __device__ void put(uint32_t i, uint64_t before, uint64_t) const
    {
        heads_before[i] = before;
    }
};

#define ATOMICS_POLICIES(_) _(128) _(256) _(512)
#define ATOMICS_THREADS(threads) threads,
#define ATOMICS_NAME(threads) #threads " threads x 16 bytes",
#define ATOMICS_ONE(threads) +1
enum { ATOMICS = 0 ATOMICS_POLICIES(ATOMICS_ONE) };

static const char *atomics_name(int policy)
{
    static const char *const names[] = {ATOMICS_POLICIES(ATOMICS_NAME)};
    return names[policy];
}

static size_t atomics_tiles(const tsr_rle_job *j, int policy)
{
    static const unsigned threads[] = {ATOMICS_POLICIES(ATOMICS_THREADS)};
    const size_t tile = threads[policy] * VECTOR_BYTES / (unsigned)j->symbol_bytes;
    return (j->count + tile - 1) / tile;
}

/* The gapped buffers in the work space. *scan receives the place of the scan's work space, *bytes the size of all, if
 * it is not NULL. */
static gapped gapped_at(const tsr_rle_job *j, int policy, void **scan, size_t *bytes)
{
    const size_t tiles = atomics_tiles(j, policy);
    unsigned char *const at = static_cast<unsigned char *>(j->workspace);
    size_t used = 0;
    gapped g;
    g.symbols = at;
    used += round_up(j->count * (size_t)j->symbol_bytes);
    g.counts = reinterpret_cast<uint32_t *>(at + used);
    used += round_up(j->count * sizeof(uint32_t));
    g.heads = reinterpret_cast<uint64_t *>(at + used);
    used += round_up(tiles * sizeof(uint64_t));
    g.heads_before = reinterpret_cast<uint64_t *>(at + used);
    used += round_up(tiles * sizeof(uint64_t));
    g.lead = reinterpret_cast<uint32_t *>(at + used);
    used += round_up(tiles * sizeof(uint32_t));
    if (scan) *scan = at + used;
    if (bytes) *bytes = used + scan_bytes(tiles);
    return g;
}

static size_t atomics_bytes(const void *job, int policy)
{
    size_t bytes = 0;
    gapped_at(static_cast<const tsr_rle_job *>(job), policy, nullptr, &bytes);
    return bytes;
}

template <typename T, unsigned THREADS> static int block_runs(const tsr_rle_job *j, int policy)
{
    constexpr size_t shared = block_shape<T, THREADS>::SHARED_BYTES;
    unsigned blocks = 0;
    TSR_CUDA_TRY(tsr_resident_blocks(k_block_runs<T, THREADS>, THREADS, shared, &blocks));
    return tsr_launch(k_block_runs<T, THREADS>, (unsigned)atomics_tiles(j, policy), THREADS, shared, stream_of(j),
                      static_cast<const T *>(j->in), (uint32_t)j->count, gapped_at(j, policy, nullptr, nullptr));
}

template <typename T, unsigned THREADS> static int pack_runs(const tsr_rle_job *j, int policy)
{
    return tsr_launch(k_pack_runs<T, THREADS>, (unsigned)atomics_tiles(j, policy), THREADS, 0, stream_of(j),
                      gapped_at(j, policy, nullptr, nullptr), static_cast<T *>(j->symbols), j->counts, j->runs);
}

#define ATOMICS_RUNS(threads) \
    {block_runs<uint8_t, threads>, block_runs<uint16_t, threads>, block_runs<uint32_t, threads>},
#define ATOMICS_PACK(threads) {pack_runs<uint8_t, threads>, pack_runs<uint16_t, threads>, pack_runs<uint32_t, threads>},

static int atomics_runs(const void *job, int policy)
{
    static int (*const runs[][3])(const tsr_rle_job *, int) = {ATOMICS_POLICIES(ATOMICS_RUNS)};
    const tsr_rle_job *j = static_cast<const tsr_rle_job *>(job);
    if (j->count == 0) return cudaMemsetAsync(j->runs, 0, sizeof *j->runs, stream_of(j));
    return runs[policy][j->symbol_bytes / 2](j, policy);
}

static int atomics_scan(const void *job, int policy)
{
    const tsr_rle_job *j = static_cast<const tsr_rle_job *>(job);
    if (j->count == 0) return cudaSuccess;
    void *workspace = nullptr;
    const gapped g = gapped_at(j, policy, &workspace, nullptr);
    return scan(block_records{g.heads, g.heads_before}, atomics_tiles(j, policy), workspace, stream_of(j));
}

static int atomics_pack(const void *job, int policy)
{
    static int (*const packs[][3])(const tsr_rle_job *, int) = {ATOMICS_POLICIES(ATOMICS_PACK)};
    const tsr_rle_job *j = static_cast<const tsr_rle_job *>(job);
    return j->count == 0 ? cudaSuccess : packs[policy][j->symbol_bytes / 2](j, policy);
}

extern const tsr_kernel_row tsr_rle_parle_atomics = {
    "after PARLE, shared atomics",
    "after a sentence on Balevic 2009 in seed 003",
    1,
    ATOMICS,
    1,
    atomics_name,
    atomics_bytes,
    {{"encode", atomics_runs}, {"scan", atomics_scan}, {"pack", atomics_pack}}};
