/* Ours: RLE in one pass. A block takes a tile of symbols, finds its heads in registers as bit masks, and ranks them by
 * a scan inside the block and a decoupled look-back over the tiles. It lays their positions out in shared memory in
 * order of rank, and then writes run after run, coalesced. The input is read once, each output word is written once,
 * and only the tiles' words are zeroed.
 *
 * A run's length is the distance to the next head. The next tile that has a head knows the length of a tile's last run,
 * so the look-back carries the last head's position together with the number of heads (rle_heads.cuh).
 *
 * A warp takes PIECES times 512 bytes, a lane 16 bytes of each, so that loads are coalesced and one scan of packed
 * counts ranks the heads of all pieces. What lost on an H200 with 8-bit symbols and a mean run of 8, against 1327 GB/s:
 * Blocks that stay and load their next tile while they write one, 1140 GB/s. One more warp that only looks back, 1134
 * GB/s. Room for half as many heads and two rounds for tiles with more, together with what this needed: 1342 GB/s, but
 * 337 instead of 493 GB/s at run 1; which of these changes did that was not measured. */
#include "rle.h"

#include "rle_heads.cuh"

enum { PIECE_BYTES = 16 };

/* Sizes that follow from the policy. */
template <typename T, unsigned THREADS, int PIECES> struct tile_shape {
    static constexpr unsigned SYMBOLS = PIECE_BYTES / sizeof(T); /* of a piece */
    static constexpr unsigned ROW = TSR_WARP * SYMBOLS;          /* of a warp's piece */
    static constexpr unsigned TILE = THREADS * SYMBOLS * PIECES;
    static constexpr unsigned WARPS = THREADS / TSR_WARP;
    static constexpr size_t TILE_BYTES = TILE * sizeof(T);
    static constexpr unsigned SPARSE = TILE / 4; /* with at most this many heads, lanes rarely meet in a bank */
    /* positions of heads, the end of the last run, and what the swizzle rounds up to */
    static constexpr size_t SHARED_BYTES = TILE_BYTES + (TILE + 64) * sizeof(uint16_t);
    static_assert(TILE <= 1u << 15, "positions and the end behind them fit 16 bits");
};

/* Where the position of the head of rank r stands. In a dense tile lanes write ranks that are 4, 8 or 16 apart; the
 * swizzle puts these into different banks. */
template <bool DENSE> static __device__ __forceinline__ unsigned place(unsigned r)
{
    return DENSE ? r ^ (r >> 5 & 14u) : r;
}

/* What a lane holds of a tile. */
template <int PIECES> struct tile_part {
    uint4 piece[PIECES];
    uint32_t before; /* in lane 0: the word before the warp's symbols */
};

template <typename T, unsigned THREADS, int PIECES>
static __device__ __forceinline__ void load(tile_part<PIECES> *part, const T *in, uint32_t count, uint32_t start)
{
    typedef tile_shape<T, THREADS, PIECES> shape;
    const unsigned lane = threadIdx.x % TSR_WARP, warp = threadIdx.x / TSR_WARP;
    const uint32_t first = start + warp * (shape::ROW * PIECES) + lane * shape::SYMBOLS;
    const uint4 *from = reinterpret_cast<const uint4 *>(in + first);
    if (count - start >= shape::TILE) {
#pragma unroll
        for (int k = 0; k < PIECES; k++) part->piece[k] = __ldg(from + TSR_WARP * k);
    } else {
#pragma unroll
        for (int k = 0; k < PIECES; k++) {
            part->piece[k] = make_uint4(0, 0, 0, 0);
            if (first + shape::ROW * k < count) part->piece[k] = __ldg(from + TSR_WARP * k);
        }
    }
    part->before = 0;
    if (lane == 0 && first > 0 && first < count) part->before = __ldg(reinterpret_cast<const uint32_t *>(from) - 1);
}

/* Finds the heads of each piece, as masks. */
template <typename T, unsigned THREADS, int PIECES>
static __device__ __forceinline__ void find_heads(uint32_t *mask, const tile_part<PIECES> *part, uint32_t count,
                                                  uint32_t start)
{
    typedef tile_shape<T, THREADS, PIECES> shape;
    const unsigned lane = threadIdx.x % TSR_WARP, warp = threadIdx.x / TSR_WARP;
#pragma unroll
    for (int k = 0; k < PIECES; k++) {
        /* lane 31 passes the end of the piece before to lane 0 */
        const uint32_t end = k > 0 && lane == TSR_WARP - 1 ? part->piece[k > 0 ? k - 1 : 0].w : part->piece[k].w;
        uint32_t before = __shfl_sync(TSR_FULL_WARP, end, (int)((lane + TSR_WARP - 1) % TSR_WARP));
        if (k == 0 && lane == 0) before = part->before;
        mask[k] = tsr_heads<T>(part->piece[k], before);
    }
    if (start == 0 && threadIdx.x == 0) mask[0] |= 1u;
    if (count - start < shape::TILE) { /* the last tile may be shorter */
#pragma unroll
        for (int k = 0; k < PIECES; k++) {
            const uint32_t first = start + (warp * PIECES + k) * shape::ROW + lane * shape::SYMBOLS;
            const uint32_t valid = first < count ? count - first : 0u;
            if (valid < shape::SYMBOLS) mask[k] &= (1u << valid) - 1u;
        }
    }
}

/* Ranks inside the warp: rank[k] receives the number of the warp's heads before the lane's piece k. Returns the number
 * of the warp's heads. Counts of several pieces are scanned side by side in one word: a row has at most 512, 256 or 128
 * heads. */
template <typename T, int PIECES>
static __device__ __forceinline__ uint32_t rank_in_warp(uint32_t *rank, const uint32_t *mask, unsigned lane)
{
    constexpr int TOGETHER = sizeof(T) == 4 ? 4 : 2, FIELD = 32 / TOGETHER;
    uint32_t before = 0;
#pragma unroll
    for (int k = 0; k < PIECES; k += TOGETHER) {
        uint32_t own = 0;
#pragma unroll
        for (int i = 0; i < TOGETHER && k + i < PIECES; i++) own |= (uint32_t)__popc(mask[k + i]) << (FIELD * i);
        const uint32_t inclusive = tsr_warp_scan(own, lane), exclusive = inclusive - own;
        const uint32_t total = __shfl_sync(TSR_FULL_WARP, inclusive, TSR_WARP - 1);
#pragma unroll
        for (int i = 0; i < TOGETHER && k + i < PIECES; i++) {
            rank[k + i] = before + (exclusive >> (FIELD * i) & ((1u << FIELD) - 1u));
            before += total >> (FIELD * i) & ((1u << FIELD) - 1u);
        }
    }
    return before;
}

/* The position after the warp's last head, within the tile; 0 if the warp has no head. */
template <typename T, unsigned THREADS, int PIECES>
static __device__ __forceinline__ uint32_t behind_last_head(const uint32_t *mask)
{
    typedef tile_shape<T, THREADS, PIECES> shape;
    const unsigned lane = threadIdx.x % TSR_WARP, warp = threadIdx.x / TSR_WARP;
    uint32_t behind = 0;
#pragma unroll
    for (int k = 0; k < PIECES; k++)
        if (mask[k]) behind = (warp * PIECES + k) * shape::ROW + lane * shape::SYMBOLS + tsr_highest_bit(mask[k]) + 1u;
    return tsr_warp_max(behind);
}

/* Writes the positions of all heads, each at its rank, the highest first: the highest bit is one instruction to find,
 * the lowest bit two. All pieces share one loop, which ends when the piece with the most heads is done. */
template <typename T, unsigned THREADS, int PIECES, bool DENSE>
static __device__ __forceinline__ void lay_out(uint16_t *position, uint32_t *mask, const uint32_t *rank,
                                               uint32_t warp_rank)
{
    typedef tile_shape<T, THREADS, PIECES> shape;
    const unsigned lane = threadIdx.x % TSR_WARP, warp = threadIdx.x / TSR_WARP;
    const uint32_t first = warp * PIECES * shape::ROW + lane * shape::SYMBOLS;
    uint32_t at[PIECES], left = 0;
#pragma unroll
    for (int k = 0; k < PIECES; k++) {
        at[k] = warp_rank + rank[k] + (uint32_t)__popc(mask[k]);
        left |= mask[k];
    }
    while (left) {
        left = 0;
#pragma unroll
        for (int k = 0; k < PIECES; k++) {
            if (mask[k]) {
                const unsigned bit = tsr_highest_bit(mask[k]);
                mask[k] ^= 1u << bit;
                position[place<DENSE>(--at[k])] = (uint16_t)(first + k * shape::ROW + bit);
            }
            left |= mask[k];
        }
    }
}

/* Writes the tile's runs from shared memory to their places, from base on. heads: the number of runs, counted: of those
 * whose length is known. */
template <typename T, unsigned THREADS, bool DENSE>
static __device__ __forceinline__ void write_runs(const T *tile, const uint16_t *position, uint32_t base,
                                                  uint32_t heads, uint32_t counted, T *symbols, uint32_t *counts)
{
    /* each warp begins at a sector; the first threads may have no run */
    const uint32_t skip = base % TSR_WARP;
    symbols += base - skip;
    counts += base - skip;
    for (uint32_t i = threadIdx.x; i < heads + skip; i += THREADS) {
        if (i < skip) continue;
        const uint32_t at = position[place<DENSE>(i - skip)];
        symbols[i] = tile[at];
        if (i < counted + skip) counts[i] = position[place<DENSE>(i - skip + 1u)] - at;
    }
}

/* The sum of the counts of the warps up to the lane's number, this one included. */
template <unsigned WARPS> static __device__ __forceinline__ uint32_t add_warps(uint32_t count, unsigned lane)
{
#pragma unroll
    for (unsigned delta = 1; delta < WARPS; delta *= 2) {
        const uint32_t other = __shfl_up_sync(TSR_FULL_WARP, count, delta);
        if (lane >= delta) count += other;
    }
    return count;
}

/* Blocks of a multiprocessor for which the registers must suffice: 40 registers a thread, 80 with many pieces. */
static constexpr unsigned blocks_wanted(unsigned threads, int pieces)
{
    return (pieces > 4 ? 768 : 1536) / threads;
}

template <typename T, unsigned THREADS, int PIECES>
static __global__ void __launch_bounds__(THREADS, blocks_wanted(THREADS, PIECES))
    k_encode(const T *in, uint32_t count, unsigned tiles, T *symbols, uint32_t *counts, uint64_t *runs,
             tsr_look_back state)
{
    typedef tile_shape<T, THREADS, PIECES> shape;
    TSR_DYNAMIC_SHARED(shared);
    T *copy = reinterpret_cast<T *>(shared);
    uint16_t *position = reinterpret_cast<uint16_t *>(shared + shape::TILE_BYTES);
    __shared__ uint32_t warp_heads[shape::WARPS]; /* lower half: heads; upper: the position after the last one */
    __shared__ unsigned ticket;
    __shared__ uint64_t heads_before;
    const unsigned lane = threadIdx.x % TSR_WARP, warp = threadIdx.x / TSR_WARP;
    if (threadIdx.x == 0) ticket = tsr_take_ticket(state);
    __syncthreads();
    const unsigned tile = ticket;
    const uint32_t start = tile * shape::TILE;
    uint32_t mask[PIECES], rank[PIECES];
    {
        tile_part<PIECES> part;
        load<T, THREADS, PIECES>(&part, in, count, start);
        find_heads<T, THREADS, PIECES>(mask, &part, count, start);
#pragma unroll
        for (int k = 0; k < PIECES; k++)
            reinterpret_cast<uint4 *>(copy)[(warp * PIECES + k) * TSR_WARP + lane] = part.piece[k];
    }
    const uint32_t mine = rank_in_warp<T, PIECES>(rank, mask, lane);
    const uint32_t behind = behind_last_head<T, THREADS, PIECES>(mask);
    if (lane == 0) warp_heads[warp] = behind << 16 | mine;
    __syncthreads();
    const uint32_t each = lane < shape::WARPS ? warp_heads[lane] : 0u;
    const uint32_t upto = add_warps<shape::WARPS>(each & 0xffffu, lane);
    const uint32_t heads = __shfl_sync(TSR_FULL_WARP, upto, shape::WARPS - 1);
    const uint32_t warp_rank = __shfl_sync(TSR_FULL_WARP, upto, (int)warp) - mine;
    uint64_t own = 0;
    if (warp == 0) {
        const uint32_t behind_all = tsr_warp_max(each >> 16);
        own = tsr_pack_heads(heads, behind_all > 0 ? start + behind_all - 1u : 0u);
        if (lane == 0) tsr_publish_sum(state, tile, own);
    }
    const bool dense = heads > shape::SPARSE, last_tile = tile + 1 == tiles;
    if (dense)
        lay_out<T, THREADS, PIECES, true>(position, mask, rank, warp_rank);
    else
        lay_out<T, THREADS, PIECES, false>(position, mask, rank, warp_rank);
    const uint32_t tile_symbols = last_tile ? count - start : shape::TILE;
    if (warp == 0) {
        const uint64_t before = tsr_look_back_by<tsr_add_heads>(state, tile, own);
        if (lane == 0) {
            heads_before = before;
            position[dense ? place<true>(heads) : heads] = (uint16_t)tile_symbols; /* the end of the last run */
            if (last_tile) *runs = tsr_heads_of(before) + heads;
        }
    }
    __syncthreads();

    const uint32_t base = tsr_heads_of(heads_before), open = heads > 0 && !last_tile ? 1u : 0u;
    if (threadIdx.x == 0 && base > 0 && (heads > 0 || last_tile)) /* the run that began in an earlier tile */
        counts[base - 1u] = start + (heads > 0 ? position[0] : tile_symbols) - tsr_last_head_of(heads_before);
    if (dense)
        write_runs<T, THREADS, true>(copy, position, base, heads, heads - open, symbols, counts);
    else
        write_runs<T, THREADS, false>(copy, position, base, heads, heads - open, symbols, counts);
}

/* ---- Launches --------------------------------------------------------------------------------------------- */

template <typename T, unsigned THREADS, int PIECES> static int encode_as(const tsr_rle_job *j)
{
    typedef tile_shape<T, THREADS, PIECES> shape;
    const cudaStream_t stream = static_cast<cudaStream_t>(j->stream);
    const unsigned tiles = (unsigned)((j->count + shape::TILE - 1) / shape::TILE);
    if (tiles == 0) return cudaMemsetAsync(j->runs, 0, sizeof *j->runs, stream);
    unsigned blocks = 0;
    TSR_CUDA_TRY(tsr_resident_blocks(k_encode<T, THREADS, PIECES>, THREADS, shape::SHARED_BYTES, &blocks));
    TSR_CUDA_TRY(cudaMemsetAsync(j->workspace, 0, tsr_look_back_bytes(tiles), stream));
    return tsr_launch(k_encode<T, THREADS, PIECES>, tiles, THREADS, shape::SHARED_BYTES, stream,
                      static_cast<const T *>(j->in), (uint32_t)j->count, tiles, static_cast<T *>(j->symbols), j->counts,
                      j->runs, tsr_look_back_at(j->workspace));
}

/* Threads, pieces of 16 bytes a thread. */
#define POLICIES(_) _(256, 2) _(256, 4) _(512, 2) _(128, 4) _(192, 4) _(128, 6) _(192, 6) _(128, 8)
#define POLICY_NAME(threads, pieces) #threads " threads x " #pieces " pieces",
#define POLICY_RUN(threads, pieces) \
    {encode_as<uint8_t, threads, pieces>, encode_as<uint16_t, threads, pieces>, encode_as<uint32_t, threads, pieces>},
#define POLICY_BYTES(threads, pieces) threads *pieces *PIECE_BYTES,
#define POLICY_ONE(threads, pieces) +1
enum { ENCODERS = 0 POLICIES(POLICY_ONE) };

static const char *policy_name(int policy)
{
    static const char *const names[] = {POLICIES(POLICY_NAME)};
    return names[policy];
}

static size_t workspace_bytes(const void *job, int policy)
{
    static const unsigned tile_bytes[] = {POLICIES(POLICY_BYTES)};
    const tsr_rle_job *j = static_cast<const tsr_rle_job *>(job);
    const size_t tile = tile_bytes[policy] / (unsigned)j->symbol_bytes;
    return tsr_look_back_bytes((j->count + tile - 1) / tile);
}

static int encode(const void *job, int policy)
{
    static int (*const runs[][3])(const tsr_rle_job *) = {POLICIES(POLICY_RUN)};
    const tsr_rle_job *j = static_cast<const tsr_rle_job *>(job);
    return runs[policy][j->symbol_bytes / 2](j);
}

extern const tsr_kernel_row tsr_rle_single_pass = {
    "Tessera", "single pass, decoupled look-back", 1, ENCODERS, 4, policy_name, workspace_bytes, {{"encode", encode}}};
