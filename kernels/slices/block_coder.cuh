/* Ours: the single pass of every coder of 4x4 blocks, coefficients in, one contiguous bit string out, no zeroed output,
 * no second kernel. CAVLC of frames and slices (cavlc_single_pass.cu) and the CUDA engine's coders run in this frame.
 *
 * A tile is THREADS blocks, a thread each. A block of threads takes tile after tile from a ticket, and for each:
 *
 *   load     the coder reads its block's coefficients and shows in shared memory what its neighbours need of it;
 *   put      the coder writes the block's code once: into a 64-bit register, from there by whole words into the
 *            thread's own words in shared memory (word k of thread t at k * THREADS + t: no bank conflicts);
 *   scan     of the codes' lengths; the tile's length is published;
 *   deposit  each thread shifts its words to their place in the tile's string, staged in shared memory;
 *   copy     the staged string goes out by coalesced words, shifted by the place of the tile.
 *
 * A warp of its own looks back for a tile's place while the THREADS others code the next tile; only then they copy
 * the first one, which was held back in the other of two windows. Without that all warps waited for one, and a
 * quarter of the time went there (CAVLC at QP 20 on an H200: 506 GB/s, with it 617; 593 since both roles meet at one
 * barrier, for compute-sanitizer could not follow two).
 *
 * A word of the output that two or more tiles share is written whole by the tile that holds its last bit: each tile
 * publishes its last 32 bits, so nothing needs zeroing and no atomic touches the output. A window has 4 words a
 * thread; longer tiles are copied at once, window by window.
 *
 * What a coder is: a class of kernel parameters, passed by value, with
 *
 *   enum { WORDS, WHOLE_BYTES };
 *       most 32-bit words of a block's code, rounded up; 1: each tile's string is filled up to a whole byte
 *   struct shared { ... };
 *       its part of shared memory, 16-byte aligned, garbage at first; the same for all tiles of a block of threads:
 *       tables stay from tile to tile
 *   struct block { ... };
 *       what a thread keeps in registers of its block, between load and put
 *   prepare(shared &)
 *       once, by all threads: tables; a barrier follows
 *   load(shared &, unsigned tile, unsigned thread, block &)
 *       by all threads, between barriers: may read global memory, write shared, use shuffles. May also exchange
 *       tables (say of another plane): nobody reads them then
 *   put(shared &, unsigned thread, const block &, tsr_code_writer<THREADS> &)
 *       by all threads: writes the code, nothing where the place holds no block; of shared only what is the thread's
 *       own
 *   int64_t unit(unsigned tile, unsigned thread, const block &)
 *       index among unit_offsets where this block begins a unit of the decoder's index, or -1
 *
 * all of them const __device__. "All threads" are threads 0 .. THREADS-1 of blocks of THREADS + 32: no
 * __syncthreads() in them, no blockDim. Host: tsr_code_blocks<THREADS, RESIDENT>(coder, string, stream) with work
 * space of tsr_code_blocks_workspace(tiles). */
#ifndef TSR_KERNELS_SLICES_BLOCK_CODER_CUH
#define TSR_KERNELS_SLICES_BLOCK_CODER_CUH

#include "kernels/machine/look_back.cuh"

/* Where the string of a launch goes. */
struct tsr_block_string {
    uint32_t tiles;
    uint8_t *out;           /* 16-byte aligned; up to 3 bytes after the string are spoilt */
    uint64_t *bits;         /* out: length of the string; device memory (may be &unit_offsets[units]) */
    uint64_t *unit_offsets; /* out: first bit of each unit */
    void *workspace;        /* tsr_code_blocks_workspace(tiles) bytes, 16-byte aligned */
};

/* A block's code on its way out: most significant bit first. */
template <unsigned THREADS> struct tsr_code_writer {
    uint32_t *code; /* shared: the thread's words, THREADS apart */
    uint32_t at;    /* where among them the next whole word goes */
    uint32_t count; /* 0..31 between calls */
    uint64_t held;  /* its low count bits wait */

    /* Appends the low length (0..32) bits of value, whose others must be 0. */
    __device__ __forceinline__ void put(uint32_t value, uint32_t length)
    {
        held = held << length | value;
        count += length;
        if (count >= 32u) {
            count -= 32u;
            code[at] = (uint32_t)(held >> count);
            at += THREADS;
        }
    }

    /* The same for length up to 63 where value still has at most 32 bits. */
    __device__ __forceinline__ void put_wide(uint32_t value, uint32_t length)
    {
        if (length > 32u) put(0, length - 32u);
        put(value, length > 32u ? 32u : length);
    }

    __device__ __forceinline__ uint32_t bits() const
    {
        return at / THREADS * 32u + count;
    }
};

static constexpr int TSR_TILE_BITS = 20; /* a tile's length is below 2^20 bits */

static inline size_t tsr_code_blocks_workspace(size_t tiles)
{
    return tsr_look_back_bytes(tiles) + tiles * sizeof(uint64_t);
}

namespace tsr_block_coder
{

/* Words of the staging window, 4 a thread: one 16-byte store a thread clears it. */
template <unsigned THREADS> constexpr uint32_t WINDOW_WORDS = 4u * THREADS;

/* Barriers of the coding warps alone; the emulation keeps count itself. */
struct barriers {
    uint32_t arrived, generation;
};

static __device__ __forceinline__ void init_barriers(barriers &meet)
{
    if (threadIdx.x == 0) meet.arrived = meet.generation = 0;
}

/* A barrier of the coding warps alone. */
template <unsigned THREADS> static __device__ __forceinline__ void coding_barrier(barriers &meet)
{
#if defined(TSR_CUDA_EMULATED)
    const uint32_t generation = meet.generation;
    if (++meet.arrived == THREADS) {
        meet.arrived = 0;
        meet.generation++;
    }
    while (meet.generation == generation) tsr_emulated_yield();
#else
    (void)meet;
    asm volatile("bar.sync 1, %0;" : : "n"(THREADS) : "memory");
#endif
}

template <typename Coder, unsigned THREADS> struct frame_shared {
    alignas(16) uint32_t window[2][WINDOW_WORDS<THREADS>];
    uint32_t code[Coder::WORDS * THREADS];
    alignas(16) uint32_t sums[32];
    uint64_t start[2]; /* of a tile's string, in bits */
    uint32_t tile, coded_tile[2], coded_bits[2];
    unsigned long long handed[2]; /* the same, to the look-back warp: tile << 32 | bits */
    barriers meet;
    alignas(16) typename Coder::shared coder;
};

/* A tile's last bits, for the tiles after it: TSR_KNOWN | how many (at most 32) << 32 | the bits, the last one lowest.
 */
static __device__ __forceinline__ void publish_tail(uint64_t *tails, uint32_t tile, uint32_t tile_bits, uint32_t tail)
{
    const uint64_t valid = tile_bits < 32u ? tile_bits : 32u;
    tsr_store_relaxed(&tails[tile], TSR_KNOWN | valid << 32 | tail);
}

/* The needed (0..31) bits before a tile in the low bits of the result; what stands above them is of no account. */
static __device__ __forceinline__ uint32_t bits_before(const uint64_t *tails, uint32_t tile, uint32_t needed)
{
    uint32_t found = 0, bits = 0;
    while (found < needed) { /* more than once only after tiles of fewer than 32 bits */
        tile--;
        uint64_t tail;
        while (!((tail = tsr_load_relaxed(&tails[tile])) & TSR_KNOWN)) tsr_wait_a_little();
        bits |= (uint32_t)tail << found;
        found += (uint32_t)(tail >> 32) & 63u;
    }
    return bits;
}

/* The part of a thread's code that lies in the window of the tile's string that starts at word base. offset: of the
 * code, in bits from the tile's start. Words that are the thread's own are stored, those that it shares are ored. */
template <unsigned THREADS>
static __device__ __forceinline__ void deposit(uint32_t *window, uint32_t base, const tsr_code_writer<THREADS> &writer,
                                               uint32_t offset)
{
    const uint32_t shift = offset % 32u;
    uint32_t at = offset / 32u - base; /* wraps below the window, so that one comparison serves both ends */
    uint32_t before = 0;
    if (writer.at > 0) {
        before = writer.code[0];
        if (at < WINDOW_WORDS<THREADS>) atomicOr(&window[at], before >> shift);
        at++;
        for (uint32_t k = THREADS; k < writer.at; k += THREADS, at++) {
            const uint32_t word = writer.code[k];
            if (at < WINDOW_WORDS<THREADS>) window[at] = __funnelshift_r(word, before, shift);
            before = word;
        }
    }
    const uint32_t last = __funnelshift_l(0u, (uint32_t)writer.held, 32u - writer.count) & (writer.count ? ~0u : 0u);
    const uint32_t bits = __funnelshift_r(last, before, shift), over = __funnelshift_r(0u, last, shift);
    if (bits != 0 && at < WINDOW_WORDS<THREADS>) atomicOr(&window[at], bits);
    if (over != 0 && at + 1u < WINDOW_WORDS<THREADS>) atomicOr(&window[at + 1u], over);
}

/* Exclusive sum over the threads of a block, with one barrier inside; sums: one a warp, 16-byte aligned. Every thread
 * adds the warps' sums itself: they are few, and that is a shorter wait than a second scan. */
template <unsigned THREADS>
static __device__ __forceinline__ uint32_t sum_before(uint32_t value, uint32_t *sums, uint32_t *total, barriers &meet)
{
    const unsigned lane = threadIdx.x % TSR_WARP, warp = threadIdx.x / TSR_WARP;
    const uint32_t inclusive = tsr_warp_scan(value, lane);
    if (lane == TSR_WARP - 1) sums[warp] = inclusive;
    coding_barrier<THREADS>(meet);
    uint32_t before = inclusive - value, all = 0;
#pragma unroll
    for (unsigned w = 0; w < THREADS / TSR_WARP; w++) {
        if (w == warp) before += all;
        all += sums[w];
    }
    *total = all;
    return before;
}

/* Where a tile's string goes, once its place is known. */
struct tile_place {
    uint32_t tile, bits; /* which, and its length */
    uint64_t start;
    bool ends; /* the string's last tile */

    /* Words of the output that are its to write: those whose last bit it holds; the string's last one in any case. */
    __device__ __forceinline__ uint32_t words() const
    {
        return ((uint32_t)start % 32u + bits + (ends ? 31u : 0u)) / 32u;
    }
    /* Word of its last bit, among its own. */
    __device__ __forceinline__ uint32_t last() const
    {
        return bits == 0 ? 0 : (bits - 1u) / 32u;
    }
};

/* Publishes the tile's tail if the window from word base on holds its last bit; carried: the word before the window. */
template <unsigned THREADS>
static __device__ __forceinline__ void publish_from(const uint32_t *window, uint32_t base, uint32_t carried,
                                                    uint64_t *tails, const tile_place &place)
{
    const uint32_t at = place.last() - base;
    if (threadIdx.x != THREADS - 1 || at >= WINDOW_WORDS<THREADS>) return;
    const uint32_t high = at == 0 ? carried : window[at - 1u];
    publish_tail(tails, place.tile, place.bits, __funnelshift_r(window[at], high, (0u - place.bits) % 32u));
}

/* Copies the window from word base on out. */
template <unsigned THREADS>
static __device__ __forceinline__ void copy_window(const uint32_t *window, uint32_t base, uint32_t carried,
                                                   const uint64_t *tails, const tile_place &place, uint8_t *string)
{
    const uint32_t shift = (uint32_t)place.start % 32u, left = place.words() - base;
    uint32_t *out = reinterpret_cast<uint32_t *>(string) + place.start / 32u + base;
    const uint32_t here = left < WINDOW_WORDS<THREADS> ? left : WINDOW_WORDS<THREADS>;
    for (uint32_t at = threadIdx.x + 1u; at < here; at += THREADS)
        out[at] = tsr_big_endian(__funnelshift_r(window[at], window[at - 1u], shift));
    if (threadIdx.x == THREADS - TSR_WARP && left > 0) {
        const uint32_t before = base == 0 ? bits_before(tails, place.tile, shift) : carried;
        out[0] = tsr_big_endian(__funnelshift_r(window[0], before, shift));
    }
}

template <unsigned THREADS> static __device__ __forceinline__ void clear_window(uint32_t *window)
{
    reinterpret_cast<uint4 *>(window)[threadIdx.x] = make_uint4(0, 0, 0, 0);
}

/* The windows of a long tile after the first one. */
template <unsigned THREADS>
static __device__ void copy_further(uint32_t *window, const tsr_code_writer<THREADS> &writer, uint32_t offset,
                                    uint64_t *tails, const tile_place &place, uint8_t *string, barriers &meet)
{
    for (uint32_t base = WINDOW_WORDS<THREADS>; base <= place.last() || base < place.words();
         base += WINDOW_WORDS<THREADS>) {
        const uint32_t carried = window[WINDOW_WORDS<THREADS> - 1u];
        coding_barrier<THREADS>(meet);
        clear_window<THREADS>(window);
        coding_barrier<THREADS>(meet);
        deposit<THREADS>(window, base, writer, offset);
        coding_barrier<THREADS>(meet);
        publish_from<THREADS>(window, base, carried, tails, place);
        copy_window<THREADS>(window, base, carried, tails, place, string);
    }
}

/* Of a tile that is coded and not yet copied: the unit that the thread's block begins, or that there is no tile. One
 * register says both: with 40 of them, one more spills. */
enum { NOTHING_HELD = -2, NO_UNIT = -1 };

/* Codes a tile into the writers and the window, and publishes its length, place.bits. Returns where the thread's code
 * begins. */
template <typename Coder, unsigned THREADS>
static __device__ __forceinline__ uint32_t code_tile(const Coder &coder, frame_shared<Coder, THREADS> &s,
                                                     const tsr_look_back &state, uint32_t *window,
                                                     typename Coder::block &block, tsr_code_writer<THREADS> &writer,
                                                     tile_place &place)
{
    clear_window<THREADS>(window);
    coder.load(s.coder, place.tile, threadIdx.x, block);
    coding_barrier<THREADS>(s.meet);
    coder.put(s.coder, threadIdx.x, block, writer);
    const uint32_t offset = sum_before<THREADS>(writer.bits(), s.sums, &place.bits, s.meet);
    if (Coder::WHOLE_BYTES) place.bits = (place.bits + 7u) & ~7u;
    if (threadIdx.x == 0) tsr_publish_sum(state, place.tile, place.bits);
    deposit<THREADS>(window, 0, writer, offset);
    return offset;
}

/* To the look-back warp, and to the coding warps' next turn: the tile that is coded into this window. */
template <typename Coder, unsigned THREADS>
static __device__ __forceinline__ void hand_over(frame_shared<Coder, THREADS> &s, unsigned window,
                                                 const tile_place &place)
{
    s.coded_tile[window] = place.tile;
    s.coded_bits[window] = place.bits;
    atomicExch(&s.handed[window], (unsigned long long)place.tile << 32 | place.bits);
}

/* Which tile the coding warps handed to the look-back warp. Read by an atomic, as it was written: racecheck counts
 * barriers by warp, and the coding warps' own ones make it take plain accesses for a race. */
template <unsigned THREADS> static __device__ __forceinline__ tile_place handed_place(unsigned long long *at)
{
    unsigned long long handed = 0;
    if (threadIdx.x == THREADS) handed = atomicOr(at, 0ull);
    handed = __shfl_sync(TSR_FULL_WARP, handed, 0);
    const tile_place place = {(uint32_t)(handed >> 32), (uint32_t)handed, 0, false};
    return place;
}

/* The place of the tile that was coded into this window, once the look-back warp has found it. */
template <typename Coder, unsigned THREADS>
static __device__ __forceinline__ tile_place coded_place(const frame_shared<Coder, THREADS> &s, unsigned window,
                                                         uint32_t tiles)
{
    tile_place place;
    place.tile = s.coded_tile[window];
    place.bits = s.coded_bits[window];
    place.start = s.start[window];
    place.ends = place.tile + 1u == tiles;
    return place;
}

/* Says where a unit begins, and how long the string is. offset: of the thread's code in its tile. */
static __device__ __forceinline__ void publish_place(const tsr_block_string &string, const tile_place &place,
                                                     int32_t unit, uint32_t offset)
{
    if (unit > NO_UNIT) string.unit_offsets[unit] = place.start + offset;
    if (place.ends && threadIdx.x == 0) *string.bits = place.start + place.bits;
}

template <typename Coder, unsigned THREADS, unsigned RESIDENT>
static __global__ void __launch_bounds__(THREADS + TSR_WARP, RESIDENT)
    k_code_blocks(Coder coder, tsr_block_string string, tsr_look_back state, uint64_t *tails)
{
    TSR_DYNAMIC_SHARED(memory);
    frame_shared<Coder, THREADS> &s = *reinterpret_cast<frame_shared<Coder, THREADS> *>(memory);
    const unsigned thread = threadIdx.x;
    constexpr uint32_t LONG = 32u * WINDOW_WORDS<THREADS> - 32u; /* tiles of more bits may not fit: not held back */
    const bool codes = thread < THREADS;                         /* the last warp looks back */
    init_barriers(s.meet);
    __syncthreads();
    if (codes) coder.prepare(s.coder);
    if (thread == 0) s.tile = tsr_take_ticket(state);
    int32_t held_unit = NOTHING_HELD;
    uint32_t held_offset = 0;
    for (unsigned turn = 0;; turn ^= 1u) {
        tile_place place = {0, 0, 0, false};
        uint32_t offset = 0, next = 0;
        typename Coder::block block;
        tsr_code_writer<THREADS> writer = {s.code + thread, 0, 0, 0};
        if (codes) {
            coding_barrier<THREADS>(s.meet);
            place.tile = s.tile;
            if (place.tile < string.tiles)
                offset = code_tile<Coder, THREADS>(coder, s, state, s.window[turn], block, writer, place);
            if (thread == 0) hand_over(s, turn, place);
        }
        /* A tile is coded, and the place of the one before is known. Both roles come here, to one barrier. */
        __syncthreads();
        if (!codes) {
            place = handed_place<THREADS>(&s.handed[turn]);
            if (place.tile >= string.tiles) return;
            const uint64_t before = tsr_look_back_sum<TSR_TILE_BITS>(state, place.tile, place.bits);
            if (thread == THREADS) s.start[turn] = before;
        } else {
            const bool more = place.tile < string.tiles;
            if (more) publish_from<THREADS>(s.window[turn], 0, 0, tails, place);
            if (more && thread == 0) next = tsr_take_ticket(state);
            if (held_unit != NOTHING_HELD) {
                const tile_place before = coded_place(s, turn ^ 1u, string.tiles);
                publish_place(string, before, held_unit, held_offset);
                copy_window<THREADS>(s.window[turn ^ 1u], 0, 0, tails, before, string.out);
            }
            if (!more) return;
            held_unit = (int32_t)coder.unit(place.tile, thread, block);
            held_offset = offset;
        }
        if (place.bits > LONG) {
            __syncthreads(); /* its place is known */
            if (codes) {
                place.start = s.start[turn];
                place.ends = place.tile + 1u == string.tiles;
                publish_place(string, place, held_unit, held_offset);
                copy_window<THREADS>(s.window[turn], 0, 0, tails, place, string.out);
                copy_further<THREADS>(s.window[turn], writer, held_offset, tails, place, string.out, s.meet);
                held_unit = NOTHING_HELD;
            }
        }
        if (thread == 0) s.tile = next;
    }
}

} // namespace tsr_block_coder

/* Codes string.tiles tiles. RESIDENT: blocks of THREADS + 32 threads that a multiprocessor shall hold at once; it caps
 * registers. With no tile, *string.bits becomes 0. */
template <unsigned THREADS, unsigned RESIDENT, typename Coder>
static cudaError_t tsr_code_blocks(const Coder &coder, const tsr_block_string &string, cudaStream_t stream)
{
    static_assert(32u * Coder::WORDS * THREADS < 1u << TSR_TILE_BITS, "a tile is too long");
    const size_t shared_bytes = sizeof(tsr_block_coder::frame_shared<Coder, THREADS>);
    void (*const kernel)(Coder, tsr_block_string, tsr_look_back, uint64_t *) =
        tsr_block_coder::k_code_blocks<Coder, THREADS, RESIDENT>;
    if (string.tiles == 0) return cudaMemsetAsync(string.bits, 0, sizeof *string.bits, stream);
    unsigned processors;
    TSR_CUDA_TRY(tsr_device_processors(&processors));
    if (shared_bytes > 48u << 10) TSR_CUDA_TRY(tsr_allow_shared(kernel, shared_bytes));
    TSR_CUDA_TRY(cudaMemsetAsync(string.workspace, 0, tsr_code_blocks_workspace(string.tiles), stream));
    const tsr_look_back state = tsr_look_back_at(string.workspace);
    uint64_t *tails = reinterpret_cast<uint64_t *>(state.tiles + string.tiles);
    const uint32_t resident = processors * RESIDENT;
    return tsr_launch(kernel, string.tiles < resident ? string.tiles : resident, THREADS + TSR_WARP, shared_bytes,
                      stream, coder, string, state, tails);
}

#endif
