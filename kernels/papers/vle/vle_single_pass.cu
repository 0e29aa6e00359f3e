/* Ours: bytes to one contiguous bit string in a single pass, without zeroing and without atomics on the output.
 *
 * Persistent blocks take tiles of WORKERS x 32 symbols in order. A worker thread looks its 32 symbols up and keeps
 * their codes in registers, joined by fours. After a scan over the block it appends them to a copy of the tile's string
 * in shared memory. Meanwhile one more warp, the scout, publishes the tile's length and looks back for the tile's place
 * (look_back.cuh). A turn later the workers copy the words of the output out, coalesced and shifted by the place mod
 * 32, while the next tile's symbols are loaded.
 *
 * No two threads or tiles write the same word. A thread begins with the last 32 bits of the thread before it, a tile
 * with those of the tile before it, which are part of the word that publishes that tile's length. 32 symbols of at
 * least one bit always have 32 bits. So the thread that completes a word has all of it. Short codes (14 bits,
 * vle_device.cuh) take the fast way; longer codes and the last tile go symbol by symbol. */
#include "kernels/machine/look_back.cuh"
#include "vle_device.cuh"

namespace
{

enum {
    SYMBOLS = 32,
    WORDS = SYMBOLS / 4,
    LENGTH_BITS = 20 /* of a tile */,
    FRONT = 4 /* words before the staged string */
};
static_assert(TSR_VLE_SEGMENT % SYMBOLS == 0 && TSR_VLE_SEGMENT <= SYMBOLS * TSR_WARP,
              "a segment is some lanes of a warp");

struct arguments : vle::encoder_arguments {
    uint16_t *segment_bits;
    tsr_look_back state;
    unsigned stage_words;
};

/* What the warps of a tile tell each other. */
template <unsigned WORKERS> struct exchange {
    uint32_t length[WORKERS / TSR_WARP], tail[WORKERS / TSR_WARP]; /* of a warp's codes: the length, the last 32 bits */
    unsigned long long place[2];                                   /* of the last two tiles in the string */
    unsigned tile;                                                 /* the next one */
};

/* Words of a staged string: those before it, the longest string, two more that end it. A multiple of 4. */
static unsigned stage_words(unsigned workers, int longest)
{
    return (FRONT + workers * SYMBOLS / 32 * (unsigned)longest + 2 + 3) / 4 * 4;
}

static __device__ __forceinline__ uint32_t *stage_of(unsigned char *stages, unsigned words, unsigned turn)
{
    return reinterpret_cast<uint32_t *>(stages) + turn * words + FRONT;
}

/* A worker's share of a tile: 32 symbols, and their codes by fours once measure_words has run. */
struct share {
    uint32_t words[WORDS];
    vle::short_group quads[WORDS];
    uint32_t length, tail; /* tail: the last 32 bits of its codes */
    bool joined;           /* each of the quads of all lanes has at most 31 bits */
};

/* Whether the tile has all its symbols. */
template <unsigned WORKERS> static __device__ __forceinline__ bool is_whole(const arguments &a, unsigned tile)
{
    return ((uint64_t)tile + 1) * WORKERS * SYMBOLS <= a.count;
}

template <unsigned WORKERS> static __device__ __forceinline__ uint64_t first_symbol(unsigned tile)
{
    return ((uint64_t)tile * WORKERS + threadIdx.x) * SYMBOLS;
}

static __device__ __forceinline__ void load_words(share &s, const uint8_t *from)
{
    const uint4 *in = reinterpret_cast<const uint4 *>(from);
#pragma unroll
    for (int i = 0; i < WORDS / 4; i++) {
        const uint4 four = __ldg(in + i);
        s.words[4 * i] = four.x;
        s.words[4 * i + 1] = four.y;
        s.words[4 * i + 2] = four.z;
        s.words[4 * i + 3] = four.w;
    }
}

/* Finds the length and the last 32 bits of the codes of a whole share with short codes. */
template <typename Table> static __device__ __forceinline__ void measure_words(share &s, const Table &table)
{
    uint32_t wide = 0;
    s.length = 0;
    s.tail = 0;
#pragma unroll
    for (int i = 0; i < WORDS; i++) {
        vle::short_group first, second;
        vle::look_up_pairs(table, s.words[i], &first, &second);
        s.tail = __funnelshift_l(first.code, s.tail, first.length);
        s.tail = __funnelshift_l(second.code, s.tail, second.length);
        s.quads[i] = vle::join(first, second);
        wide |= s.quads[i].length; /* at most 56: bit 5 says 32 or more */
        s.length += s.quads[i].length;
    }
    s.length &= vle::SHORT_SUM;
    s.joined = __all_sync(TSR_FULL_WARP, (wide & 32u) == 0) != 0;
}

/* Appends the codes of a whole share with short codes. end receives the string's end. */
template <typename Table>
static __device__ __forceinline__ void append_words(const share &s, const Table &table, vle::bit_tail &end,
                                                    uint32_t *&next)
{
    const auto completed = [&](uint32_t word) { *next++ = word; };
    if (s.joined) {
#pragma unroll
        for (int i = 0; i < WORDS; i++) end.template put<true>(s.quads[i].code, s.quads[i].length, completed);
        return;
    }
#pragma unroll
    for (int i = 0; i < WORDS; i++) {
        vle::short_group first, second;
        vle::look_up_pairs(table, s.words[i], &first, &second);
        end.template put<true>(first.code, first.length, completed);
        end.template put<true>(second.code, second.length, completed);
    }
}

/* Writes the bits of the segments that a warp's lanes hold. */
static __device__ __forceinline__ void put_segment_bits(const arguments &a, uint64_t begin, uint32_t inclusive)
{
    enum { LANES = TSR_VLE_SEGMENT / SYMBOLS };
    const unsigned lane = threadIdx.x % TSR_WARP;
    const uint32_t before = __shfl_up_sync(TSR_FULL_WARP, inclusive, LANES);
    const uint64_t segment = begin / TSR_VLE_SEGMENT;
    if (lane % LANES == LANES - 1 && segment * TSR_VLE_SEGMENT < a.count)
        a.segment_bits[segment] = (uint16_t)(inclusive - (lane < LANES ? 0u : before));
}

/* The scout's first part: publishes the tile's length and last bits for the tiles after it. */
static __device__ __forceinline__ void tell(const arguments &a, unsigned tile, uint32_t length, uint32_t tail)
{
    if (threadIdx.x % TSR_WARP == 0) tsr_publish_sum(a.state, tile, (uint64_t)tail << LENGTH_BITS | length);
}

/* The scout's second part: finds the tile's place for its own block, and the last bits of the tile before. */
static __device__ __forceinline__ void find_place(const arguments &a, unsigned tile, uint32_t length,
                                                  unsigned long long *place, uint32_t *seam)
{
    const bool leads = threadIdx.x % TSR_WARP == 0;
    uint64_t sum_before = TSR_KNOWN;
    if (leads && tile > 0) sum_before = tsr_load_relaxed(&a.state.tiles[tile - 1].sum);
    const uint64_t before = tsr_look_back_sum<LENGTH_BITS>(a.state, tile, length);
    if (!leads) return;
    while (!(sum_before & TSR_KNOWN)) {
        sum_before = tsr_load_relaxed(&a.state.tiles[tile - 1].sum);
        tsr_wait_a_little();
    }
    *seam = (uint32_t)(sum_before >> LENGTH_BITS);
    *place = before;
    if (tile + 1 == a.tiles) *a.bits = before + length;
}

/* Writes the words of the output that the tile completes. The last tile fills its last word with zeros. */
template <unsigned WORKERS>
static __device__ __forceinline__ void copy_out(const arguments &a, const uint32_t *stage, uint64_t place,
                                                uint32_t length, bool last)
{
    const unsigned shift = (unsigned)(place & 31u), words = (shift + length + (last ? 31u : 0u)) / 32u;
    uint32_t *out = a.out + (place >> 5);
#pragma unroll 4
    for (unsigned i = threadIdx.x; i < words; i += WORKERS)
        out[i] = tsr_big_endian(__funnelshift_r(stage[i], stage[(int)i - 1], shift));
}

/* Finds the length and the last bits of the codes of a worker's symbols. whole: the fast way may be taken, and the
 * words are loaded. */
template <unsigned WORKERS, typename Table>
static __device__ __forceinline__ void measure(const arguments &a, const Table &table, unsigned tile, bool whole,
                                               share &s)
{
    if constexpr (Table::SHORT)
        if (whole) measure_words(s, table);
    if (whole) return;
    const uint64_t begin = first_symbol<WORKERS>(tile);
    s.length = 0;
    s.tail = 0;
    vle::for_codes(table, a.in + begin, vle::bytes_of_tile(a.count, begin, SYMBOLS),
                   [&](uint32_t code, uint32_t length) {
                       s.tail = __funnelshift_lc(code, s.tail, length);
                       s.length += length;
                   });
}

/* Appends the codes of a worker's symbols to the staged string, from bit begin_bit on. tail: the last bits of the
 * worker before it. */
template <unsigned WORKERS, typename Table>
static __device__ __forceinline__ void append(const arguments &a, const Table &table, unsigned tile, bool whole,
                                              share &s, uint32_t tail, uint32_t begin_bit, uint32_t *stage)
{
    vle::bit_tail end = {tail, begin_bit};
    uint32_t *next = stage + begin_bit / 32u;
    bool last = threadIdx.x == WORKERS - 1;
    if constexpr (Table::SHORT)
        if (whole) append_words(s, table, end, next);
    if (!whole) {
        const uint64_t begin = first_symbol<WORKERS>(tile);
        const unsigned count = vle::bytes_of_tile(a.count, begin, SYMBOLS);
        vle::for_codes(table, a.in + begin, count, [&](uint32_t code, uint32_t code_length) {
            end.template put<false>(code, code_length, [&](uint32_t word) { *next++ = word; });
        });
        last = count > 0 && (last || begin + count == a.count);
    }
    if (last) { /* the tile's string ends here */
        next[0] = end.rest();
        next[1] = 0;
    }
}

/* Tells the block the length and the last bits of a warp's codes. Returns the length up to and with this lane's. */
template <unsigned WORKERS>
static __device__ __forceinline__ uint32_t tell_warp(const arguments &a, unsigned tile, const share &s,
                                                     exchange<WORKERS> &told)
{
    const unsigned lane = threadIdx.x % TSR_WARP, warp = threadIdx.x / TSR_WARP;
    const uint32_t inclusive = tsr_warp_scan(s.length, lane);
    if (lane == TSR_WARP - 1) {
        told.length[warp] = inclusive;
        told.tail[warp] = s.tail;
    }
    if (a.segment_bits) put_segment_bits(a, first_symbol<WORKERS>(tile), inclusive);
    return inclusive;
}

/* The last bits of the worker before this one. */
template <unsigned WORKERS>
static __device__ __forceinline__ uint32_t tail_before(const share &s, const exchange<WORKERS> &told)
{
    const unsigned lane = threadIdx.x % TSR_WARP, warp = threadIdx.x / TSR_WARP;
    const uint32_t tail = __shfl_up_sync(TSR_FULL_WARP, s.tail, 1);
    if (lane > 0) return tail;
    return warp == 0 ? 0u : told.tail[warp - 1];
}

/* A block takes tile after tile. Between the two barriers of a turn the workers append their codes to the staged
 * string. After the second one they copy out the string that was staged a turn before, while the scout looks for this
 * tile's place; the scout has time until the first barrier of the next turn. If the workers copied a string out in its
 * own turn, the block would wait for its place half of the time: 693 GB/s at 4 bits a byte, against 1276, both with 960
 * threads. Two parts of a tile, measured one after the other, lost (1177), and so did four words of a thread in flight
 * in copy_out (1239, against 1287 with 864 threads). */
template <unsigned WORKERS, unsigned BLOCKS, typename Table>
__global__ void __launch_bounds__(WORKERS + TSR_WARP, BLOCKS) k_vle_single_pass(arguments a)
{
    constexpr unsigned WARPS = WORKERS / TSR_WARP;
    TSR_DYNAMIC_SHARED(shared);
    __shared__ exchange<WORKERS> told;
    const unsigned lane = threadIdx.x % TSR_WARP, warp = threadIdx.x / TSR_WARP;
    const bool worker = warp < WARPS;
    Table::template fill<WORKERS + TSR_WARP>(shared, a.code);
    if (threadIdx.x == 0) told.tile = tsr_take_ticket(a.state);
    __syncthreads();
    const Table table(shared);
    unsigned tile = told.tile;
    share s = {};
    bool whole = false; /* this tile takes the fast way */
    const auto load = [&] {
        whole = Table::SHORT && is_whole<WORKERS>(a, tile);
        if (whole) load_words(s, a.in + first_symbol<WORKERS>(tile));
    };
    if (worker && tile < a.tiles) load();

    unsigned before = a.tiles; /* the tile whose string is staged and not copied out yet; its length */
    uint32_t before_length = 0;
    unsigned last_turn = 0;
    for (unsigned turn = 0; tile < a.tiles; turn ^= 1u) {
        uint32_t *stage = stage_of(shared + Table::BYTES, a.stage_words, turn);
        uint32_t inclusive = 0;
        if (worker) {
            measure<WORKERS>(a, table, tile, whole, s);
            inclusive = tell_warp(a, tile, s, told);
        }
        __syncthreads();
        const uint32_t others = lane < WARPS ? told.length[lane] : 0u;
        const uint32_t length = tsr_warp_sum(others);
        if (worker) {
            const uint32_t begin_bit = tsr_warp_sum(lane < warp ? others : 0u) + inclusive - s.length;
            append<WORKERS>(a, table, tile, whole, s, tail_before(s, told), begin_bit, stage);
        } else {
            tell(a, tile, length, told.tail[WARPS - 1]);
            if (lane == 0) told.tile = tsr_take_ticket(a.state);
        }
        __syncthreads();
        const unsigned now = tile;
        tile = told.tile;
        if (worker) {
            if (tile < a.tiles) load();
            if (before < a.tiles)
                copy_out<WORKERS>(a, stage_of(shared + Table::BYTES, a.stage_words, turn ^ 1u), told.place[turn ^ 1u],
                                  before_length, before + 1 == a.tiles);
        } else {
            find_place(a, now, length, &told.place[turn], stage - 1);
        }
        before = now;
        before_length = length;
        last_turn = turn;
    }
    if (before == a.tiles) return;
    __syncthreads();
    if (worker)
        copy_out<WORKERS>(a, stage_of(shared + Table::BYTES, a.stage_words, last_turn), told.place[last_turn],
                          before_length, before + 1 == a.tiles);
}

/* ---- Policies ------------------------------------------------------------------------------------------------ */

/* With 28 warps a multiprocessor each thread has 72 registers, which the fast way needs. Tiles of less than 27 KB lose,
 * because the look-back takes 15 to 19 ns a tile of any size. On an H200 with 256 MiB at entropy 4: 864 threads x 1
 * block 1287 GB/s (1454 at entropy 1, 1017 at 7.5), 416 x 2 907, 256 x 3 480. */
#define POLICIES(P)                                           \
    P(0, 864, 1, 256, "864 threads x 1 block, 64 KiB table")  \
    P(1, 864, 1, 128, "864 threads x 1 block, 32 KiB table")  \
    P(2, 416, 2, 256, "416 threads x 2 blocks, 64 KiB table") \
    P(3, 256, 3, 128, "256 threads x 3 blocks, 32 KiB table")

enum {
    LONG_WORKERS = 96,  /* if codes are longer than the fast way takes */
    SMALL_WORKERS = 256 /* if the device has less shared memory than the policy needs: 64 KiB suffice */
};

#define NAME(number, workers, blocks, stride, name) name,
static const char *const names[] = {POLICIES(NAME)};
#undef NAME

static bool is_short(const tsr_vle_job *job)
{
    return job->longest <= vle::SHORT_LIMIT;
}

static cudaError_t fits(size_t shared_bytes, bool *does)
{
    enum { STATIC_BYTES = 512 }; /* at most, in addition */
    int device = 0, limit = 0;
    TSR_CUDA_TRY(cudaGetDevice(&device));
    TSR_CUDA_TRY(cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    *does = shared_bytes + STATIC_BYTES <= (size_t)limit;
    return cudaSuccess;
}

template <unsigned WORKERS, unsigned BLOCKS, typename Table> static int encode_with(const tsr_vle_job *job)
{
    const cudaStream_t stream = vle::stream_of(job);
    arguments a = vle::arguments_of<arguments>(job, WORKERS * SYMBOLS);
    a.segment_bits = job->segment_bits;
    a.state = tsr_look_back_at(job->workspace);
    a.stage_words = stage_words(WORKERS, job->longest);
    const size_t shared = Table::BYTES + 2 * a.stage_words * sizeof(uint32_t);
    if constexpr (WORKERS > SMALL_WORKERS) {
        bool does = false;
        TSR_CUDA_TRY(fits(shared, &does));
        if (!does) return encode_with<SMALL_WORKERS, 3, vle::short_table<128>>(job);
    }
    if (a.tiles > 0) TSR_CUDA_TRY(cudaMemsetAsync(job->workspace, 0, tsr_look_back_bytes(a.tiles), stream));
    return vle::launch_persistent(k_vle_single_pass<WORKERS, BLOCKS, Table>, WORKERS + TSR_WARP, shared, a, stream);
}

static int encode(const void *job_, int policy)
{
    const tsr_vle_job *job = static_cast<const tsr_vle_job *>(job_);
    if (!is_short(job)) return encode_with<LONG_WORKERS, 1, vle::long_table>(job);
    switch (policy) {
#define CASE(number, workers, blocks, stride, name) \
    case number:                                    \
        return encode_with<workers, blocks, vle::short_table<stride>>(job);
        POLICIES(CASE)
#undef CASE
    default:
        return cudaErrorInvalidValue;
    }
}

static const char *policy_name(int policy)
{
    return names[policy];
}

/* Enough for the smallest tiles. */
static size_t workspace_bytes(const void *job_, int policy)
{
    (void)policy;
    const tsr_vle_job *job = static_cast<const tsr_vle_job *>(job_);
    return tsr_look_back_bytes(vle::tiles_of(job, (is_short(job) ? SMALL_WORKERS : LONG_WORKERS) * SYMBOLS));
}

} // namespace

extern "C" const struct tsr_kernel_row tsr_vle_single_pass = {
    "Tessera",       "single pass, decoupled look-back",      1, sizeof names / sizeof names[0], 0, policy_name,
    workspace_bytes, {{"encode", encode}, {nullptr, nullptr}}};
