/* Symbols to payloads on the device: FORMAT.md section 7.7.
 *
 * A warp walks the ticks of a tile as the tile's decoder does, one thread a lane. If a tile has fewer than 32 lanes,
 * the warp walks several tiles at once. The place of a word follows from the number of words that are taken in earlier
 * ticks and by lower lanes.
 *
 * With Huffman the lengths of the codes alone say when a lane takes its words. So one scan over the lanes counts the
 * words of four ticks, and a tile can be cut into segments of ticks, one a warp. The place of a word is known before
 * the word is complete, so a lane keeps the places of its next words.
 *
 * With rANS the ticks are walked backwards, with two ballots a tick, and words are written from the end of their room
 * down. */
#include "kernels/machine/device.cuh"

#include "kernels/batch/batch_predict_cuda.h"
#include "kernels/slices/raw_tiles.cuh"

namespace
{

enum { THREADS = 64, WARPS = THREADS / TSR_WARP, STEP = TSR_LANE_STEP };

/* A lane and its tile; a warp has 32 / lanes tiles. */
struct lane_place {
    bool is_there;
    uint32_t number, plane; /* of the tile, among all tiles; of its plane */
    int32_t l, lanes, width, height, period;
    unsigned shift; /* number of the tile's first lane in the warp; rANS */
    uint32_t group; /* the bits of the tile's lanes in a ballot, shifted down; rANS */
};

/* rans: whose planes are meant; tiles of others are not there. */
__device__ __forceinline__ lane_place place_lane(const tsr_predict_batch &p, uint32_t warp, bool rans)
{
    lane_place at;
    const unsigned lane = threadIdx.x % TSR_WARP;
    at.lanes = p.lanes;
    at.l = (int32_t)(lane % (unsigned)p.lanes);
    at.shift = lane - (unsigned)at.l;
    at.group = UINT32_MAX >> (TSR_WARP - p.lanes);
    at.number = warp * (uint32_t)(TSR_WARP / p.lanes) + lane / (unsigned)p.lanes;
    at.is_there = at.number < p.b.shape.planes * p.b.shape.tiles;
    if (!at.is_there) at.number = 0;
    at.plane = at.number / p.b.shape.tiles;
    const tsr_tile tile = tsr_tile_place(&p.b, at.number - at.plane * p.b.shape.tiles).tile;
    at.width = tile.width;
    at.height = tile.height;
    at.period = tsr_lane_period(tile.width, at.lanes);
    if (p.b.shared.plane[at.plane].range < 2 || tsr_is_rans(&p, at.plane) != rans) at.is_there = false;
    return at;
}

/* The number of periods in the lane's tile: rows of its first lane. */
__device__ __forceinline__ int32_t periods_of(const lane_place &at)
{
    return (at.height + at.lanes - 1) / at.lanes;
}

__device__ __forceinline__ const uint32_t *tile_codes(const tsr_predict_batch &p, const lane_place &at)
{
    return p.code + (size_t)at.number * p.tile_places;
}

/* The codes of four columns of row y, from column c on; outside the tile there is no code. */
__device__ __forceinline__ uint4 load_codes(const uint32_t *codes, uint32_t pitch, const lane_place &at, int32_t y,
                                            int32_t c)
{
    if ((uint32_t)c >= (uint32_t)at.width || y >= at.height)
        return make_uint4(TSR_DEVICE_NO_CODE, TSR_DEVICE_NO_CODE, TSR_DEVICE_NO_CODE, TSR_DEVICE_NO_CODE);
    return *reinterpret_cast<const uint4 *>(codes + ((uint32_t)y * pitch + (uint32_t)c));
}

__device__ __forceinline__ uint32_t code_of(uint4 four, int i)
{
    return i == 0 ? four.x : i == 1 ? four.y : i == 2 ? four.z : four.w;
}

/* ---- Huffman -------------------------------------------------------------------------------------------------- */

/* Returns the number of periods in a segment. The ticks of a tile are cut into segments, one a warp. The bits that a
 * lane has coded before its segment, and so the words that it has taken, are known from sums over rows. */
int32_t segment_periods(const tsr_predict_batch &p)
{
    const int32_t periods = (p.b.shape.tile_height + p.lanes - 1) / p.lanes;
    return (periods + p.launch.lane_segments - 1) / p.launch.lane_segments;
}

/* A lane keeps the places of its next words in a ring in shared memory. A block's rings are interleaved: a lane has
 * every THREADS-th place. The ring's address is held in a register; the compiler would compute it each time. */
enum { RING = 8, RING_STEP = THREADS * (int)sizeof(uint32_t), RING_BYTES = RING * RING_STEP };

struct place_ring {
#if defined(TSR_CUDA_EMULATED)
    unsigned char *base;
#else
    uint32_t base;
#endif
};

__device__ __forceinline__ place_ring ring_at(uint32_t *places)
{
    place_ring ring;
#if defined(TSR_CUDA_EMULATED)
    ring.base = reinterpret_cast<unsigned char *>(places);
#else
    ring.base = (uint32_t)__cvta_generic_to_shared(places);
    asm volatile("" : "+r"(ring.base));
#endif
    return ring;
}

__device__ __forceinline__ void store_place(place_ring ring, uint32_t at, uint32_t place)
{
#if defined(TSR_CUDA_EMULATED)
    *reinterpret_cast<uint32_t *>(ring.base + at % RING_BYTES) = place;
#else
    asm volatile("st.shared.u32 [%0], %1;" : : "r"(ring.base + at % RING_BYTES), "r"(place) : "memory");
#endif
}

__device__ __forceinline__ uint32_t load_place(place_ring ring, uint32_t at)
{
    uint32_t place;
#if defined(TSR_CUDA_EMULATED)
    place = *reinterpret_cast<const uint32_t *>(ring.base + at % RING_BYTES);
#else
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(place) : "r"(ring.base + at % RING_BYTES) : "memory");
#endif
    return place;
}

/* A lane's string while it becomes words. in, out: byte offsets of the ring's next places to fill and to empty; they
 * count on and are taken modulo RING_BYTES. */
struct lane_string {
    uint64_t bits;
    int32_t held;     /* low bits of bits that are in no word yet */
    uint32_t deficit; /* 15 + refill_bits - bits that the decoder holds here; 16 or more: it takes words */
    uint32_t in, out;
};

/* Puts the place of a word to come into the ring. */
__device__ __forceinline__ void expect_word(lane_string &s, place_ring ring, uint32_t place)
{
    store_place(ring, s.in, place);
    s.in += RING_STEP;
}

__device__ __forceinline__ uint32_t code_length(uint32_t code)
{
    return code >> TSR_DEVICE_LENGTH_SHIFT;
}

__device__ __forceinline__ void append_code(lane_string &s, uint32_t code)
{
    s.bits = s.bits << code_length(code) | (code & ((1u << TSR_DEVICE_LENGTH_SHIFT) - 1u));
    s.held += (int32_t)code_length(code);
}

/* Writes the next 16 bits to the next place of the ring. */
__device__ __forceinline__ void put_word(lane_string &s, place_ring ring, uint16_t *words)
{
    s.held -= TSR_LANE_WORD_BITS;
    words[load_place(ring, s.out)] = (uint16_t)(s.bits >> s.held);
    s.out += RING_STEP;
}

/* The place for words that this warp need not write: another warp writes them, or they are too many. A payload that
 * reaches this place is larger than the raw samples, and is not used. */
__device__ __forceinline__ uint32_t nowhere(const tsr_predict_batch &p)
{
    return p.tile_words - 1;
}

/* Inclusive sum over the lanes of each tile. l: number of the lane in its tile. Tiles have at most 2^STEPS lanes. */
template <int STEPS> __device__ __forceinline__ uint32_t scan_lanes(uint32_t value, int32_t l, int32_t lanes)
{
#pragma unroll
    for (int step = 0; step < STEPS; step++) {
        const uint32_t other = __shfl_up_sync(TSR_FULL_WARP, value, 1u << step, lanes);
        if (l >= 1 << step) value += other;
    }
    return value;
}

/* Returns the lane's string where a segment begins; *next gets the number of words that all lanes of the tile have
 * taken before. Some of these words end with bits of this segment. The warp of the earlier segment writes them, so here
 * their place is nowhere(). */
__device__ __forceinline__ lane_string begin_segment(const tsr_predict_batch &p, const lane_place &at,
                                                     int32_t refill_bits, int32_t periods_before, place_ring ring,
                                                     uint32_t *next)
{
    const uint32_t place = threadIdx.x * (uint32_t)sizeof(uint32_t);
    lane_string s = {0, 0, 0, place, place};
    const tsr_device_row *rows = p.rows + (size_t)at.number * (size_t)p.b.shape.tile_height;
    const uint32_t *codes = tile_codes(p, at);
    uint32_t all = 0, taken = 0;
    int32_t last_row = -1, behind = 0;
    for (int32_t k = 0; at.is_there && k < periods_before; k++) {
        const int32_t y = at.l + k * at.lanes;
        if (y >= at.height) break;
        const tsr_device_row row = rows[y];
        const bool both = k + 1 < periods_before;
        all += row.bits[0] + (both ? row.bits[1] : 0u);
        const int32_t here = both && row.behind[1] ? row.behind[1] : row.behind[0];
        if (here == 0) continue;
        last_row = y;
        behind = here;
    }
    if (last_row >= 0) {
        const uint32_t last = codes[(size_t)last_row * p.tile_pitch + (size_t)(behind - 1)];
        taken = tsr_lane_words(all - code_length(last), refill_bits);
    }
    s.held = (int32_t)(all % TSR_LANE_WORD_BITS);
    s.deficit = (uint32_t)refill_bits + (TSR_LANE_WORD_BITS - 1) + all - taken * TSR_LANE_WORD_BITS;
    for (uint32_t word = all / TSR_LANE_WORD_BITS; word < taken; word++) expect_word(s, ring, nowhere(p));
    for (int32_t lanes = at.lanes / 2; lanes > 0; lanes /= 2) taken += __shfl_xor_sync(TSR_FULL_WARP, taken, lanes);
    *next = taken;
    return s;
}

/* Counts the words that the lane takes in each tick of a step: taken[]; also returned, one byte a tick. A column
 * without a code gets code 0, which has no bits. */
__device__ __forceinline__ uint32_t count_words(lane_string &s, uint32_t code[STEP], uint32_t taken[STEP])
{
    uint32_t packed = 0;
#pragma unroll
    for (int i = 0; i < STEP; i++) {
        const bool is_coded = code[i] != TSR_DEVICE_NO_CODE;
        if (!is_coded) code[i] = 0;                                /* no bits */
        taken[i] = is_coded ? s.deficit / TSR_LANE_WORD_BITS : 0u; /* 0 to 2 */
        s.deficit += code_length(code[i]) - taken[i] * TSR_LANE_WORD_BITS;
        packed += taken[i] << 8 * i;
    }
    return packed;
}

/* Appends the codes of a step and writes the words that are complete. places: one byte a tick, the place of the first
 * word that the lane takes in it, less next. limit: the greatest place. */
__device__ __forceinline__ void put_codes(lane_string &s, place_ring ring, uint16_t *words, const uint32_t code[STEP],
                                          const uint32_t taken[STEP], uint32_t next, uint32_t places, uint32_t limit)
{
#pragma unroll
    for (int i = 0; i < STEP; i++) {
        const uint32_t place = next + (places >> 8 * i & 255u);
        if (taken[i] != 0) {
            expect_word(s, ring, min(place, limit));
            if (taken[i] > 1) expect_word(s, ring, min(place + 1u, limit));
        }
        append_code(s, code[i]);
        if (i % 2 == 0) { /* makes room for the next code */
            if (s.held >= 2 * TSR_LANE_WORD_BITS) put_word(s, ring, words);
        } else if (s.held >= TSR_LANE_WORD_BITS) {
            put_word(s, ring, words);
#pragma unroll 1
            while (s.held >= TSR_LANE_WORD_BITS) put_word(s, ring, words);
        }
    }
}

/* Completes the words that this segment took, with bits of the next segments. The lane is in row y and column c. */
__device__ __forceinline__ void end_segment(lane_string &s, place_ring ring, uint16_t *words, const lane_place &at,
                                            const uint32_t *all_codes, uint32_t pitch, int32_t y, int32_t c)
{
    while (at.is_there && s.in != s.out && y < at.height) {
        const uint4 four = load_codes(all_codes, pitch, at, y, c);
#pragma unroll
        for (int i = 0; i < STEP; i++) {
            const uint32_t code = code_of(four, i);
            if (code == TSR_DEVICE_NO_CODE || s.in == s.out) continue;
            append_code(s, code);
#pragma unroll 1
            while (s.held >= TSR_LANE_WORD_BITS && s.in != s.out) put_word(s, ring, words);
        }
        c += STEP;
        if (c >= at.width) {
            c = 0;
            y += at.lanes;
        }
    }
    if (s.in != s.out) s.bits <<= TSR_LANE_WORD_BITS - s.held; /* the tile's end: zeros fill the word up */
    for (; s.in != s.out; s.bits = 0) {
        s.held = TSR_LANE_WORD_BITS;
        put_word(s, ring, words);
    }
}

/* Codes to words with Huffman. Each warp takes one segment of one or more tiles; each: periods a segment. FULL: tiles
 * have 32 lanes. */
template <bool FULL>
__global__ void __launch_bounds__(THREADS) k_huffman_lanes(const tsr_predict_batch p, uint32_t segments, int32_t each)
{
    __shared__ uint32_t places_to_come[RING * THREADS];
    const place_ring ring = ring_at(places_to_come);
    const uint32_t warp = blockIdx.x * WARPS + threadIdx.x / TSR_WARP;
    const int32_t segment = (int32_t)(warp % segments);
    lane_place at = place_lane(p, warp / segments, false);
    const int32_t periods = periods_of(at), before = segment * each;
    if (before >= periods) at.is_there = false;
    const bool is_last = before + each >= periods;
    int32_t ticks = 0;
    if (at.is_there) ticks = is_last ? at.period * (periods - before) + TSR_LANE_DELAY * at.lanes : at.period * each;
    const int32_t most = (int32_t)tsr_warp_max((uint32_t)ticks), refill_bits = p.residual[at.plane].refill_bits;
    if (most == 0) return;
    uint16_t *words = p.words + (size_t)at.number * p.tile_words;
    const uint32_t limit = nowhere(p);
    const int32_t lanes = FULL ? (int32_t)TSR_WARP : at.lanes;
    uint32_t next;
    lane_string s = begin_segment(p, at, refill_bits, before, ring, &next);
    /* The lane's column and row: in the first segment up to 8 * l columns before its row, later in its previous row. */
    int32_t c = -TSR_LANE_DELAY * at.l, y = at.l + before * at.lanes;
    if (before > 0 && c < 0) {
        c += at.period;
        y -= at.lanes;
    }
    const uint4 none = make_uint4(TSR_DEVICE_NO_CODE, TSR_DEVICE_NO_CODE, TSR_DEVICE_NO_CODE, TSR_DEVICE_NO_CODE);
    const uint32_t *const all_codes = tile_codes(p, at);
    const uint32_t pitch = p.tile_pitch;
    uint4 codes = ticks > 0 ? load_codes(all_codes, pitch, at, y, c) : none;
    for (int32_t tick = 0; tick < most; tick += STEP) {
        uint32_t code[STEP] = {codes.x, codes.y, codes.z, codes.w}, taken[STEP];
        if (tick < ticks) {
            c += STEP;
            if (c == at.period) {
                c = 0;
                y += at.lanes;
            }
        }
        codes = tick + STEP < ticks ? load_codes(all_codes, pitch, at, y, c) : none;
        const uint32_t packed = count_words(s, code, taken);
        /* One byte a tick: the words that lower lanes take in it plus those that all lanes take in the step's earlier
         * ticks. Four ticks of 32 lanes take fewer than 256 words: codes are shorter than two words, and lanes do not
         * begin together. */
        constexpr int STEPS = FULL ? 5 : 4;
        const uint32_t scanned = scan_lanes<STEPS>(packed, at.l, lanes),
                       all = __shfl_sync(TSR_FULL_WARP, scanned, lanes - 1, lanes),
                       places = scanned - packed + all * 0x01010100u;
        put_codes(s, ring, words, code, taken, next, places, limit);
        next += all * 0x01010101u >> 24;
    }
    end_segment(s, ring, words, at, all_codes, pitch, y, c);
    if (at.is_there && is_last && at.l == 0) p.word_count[at.number] = next;
}
static_assert(2 * TSR_LANE_WORD_BITS - 1 + TSR_DEVICE_LENGTH_SHIFT <= 64, "two codes' bits fit the lane's");
static_assert((RING & (RING - 1)) == 0 && (THREADS & (THREADS - 1)) == 0, "rings wrap");

/* ---- rANS ----------------------------------------------------------------------------------------------------- */

/* The most ticks of any of the warp's tiles: a multiple of STEP. */
__device__ __forceinline__ int32_t warp_ticks(const lane_place &at)
{
    const int32_t ticks = at.is_there ? at.period * periods_of(at) + TSR_LANE_DELAY * at.lanes : 0;
    return (int32_t)tsr_warp_max((uint32_t)ticks);
}

/* Symbols to words and states with rANS, last tick first. */
__global__ void __launch_bounds__(THREADS) k_rans_lanes(const tsr_predict_batch p)
{
    const lane_place at = place_lane(p, blockIdx.x * WARPS + threadIdx.x / TSR_WARP, true);
    const int32_t ticks = warp_ticks(at);
    const tsr_device_codes &codes = p.codes[at.plane];
    uint16_t *words = p.words + (size_t)(at.number + 1) * p.tile_words - 1; /* the last one */
    const uint32_t above = at.group & ~(at.l == TSR_WARP - 1 ? UINT32_MAX : (2u << at.l) - 1u);
    uint32_t state = TSR_RANS_LOW, taken = 0;
    const int32_t since = ticks - STEP - TSR_LANE_DELAY * at.l; /* ticks since the lane's first sample */
    int32_t row = since >= 0 ? since / at.period : -1;
    int32_t c = since - row * at.period;
    for (int32_t tick = ticks - STEP; tick >= 0; tick -= STEP) {
        uint4 four = make_uint4(TSR_DEVICE_NO_CODE, TSR_DEVICE_NO_CODE, TSR_DEVICE_NO_CODE, TSR_DEVICE_NO_CODE);
        if (at.is_there && row >= 0) four = load_codes(tile_codes(p, at), p.tile_pitch, at, at.l + row * at.lanes, c);
#pragma unroll
        for (int i = STEP - 1; i >= 0; i--) {
            const uint32_t code = code_of(four, i), value = code & 0xffffu;
            uint16_t word = 0, raw_word = 0;
            bool leaves = false, raw_leaves = false;
            if (code != TSR_DEVICE_NO_CODE) {
                const int symbol = (int)(code >> 16 & 255u), raw_bits = tsr_symbol_raw_bits(symbol);
                if (raw_bits) raw_leaves = tsr_rans_put_raw(&state, value, raw_bits, &raw_word);
                leaves = tsr_rans_put(&state, &codes.rans[code >> 24][symbol], &word);
            }
            const uint32_t all = __ballot_sync(TSR_FULL_WARP, leaves) >> at.shift & at.group,
                           raws = __ballot_sync(TSR_FULL_WARP, raw_leaves) >> at.shift & at.group;
            uint32_t back = taken + (uint32_t)(__popc(all & above) + __popc(raws & above));
            taken += (uint32_t)(__popc(all) + __popc(raws));
            if (raw_leaves && back < p.tile_words) *(words - back) = raw_word;
            back += raw_leaves;
            if (leaves && back < p.tile_words) *(words - back) = word;
        }
        c -= STEP;
        if (c < 0) {
            c += at.period;
            row--;
        }
    }
    if (!at.is_there) return;
    p.states[(size_t)at.number * TSR_LANE_LIMIT + (size_t)at.l] = state;
    if (at.l == 0) p.word_count[at.number] = taken;
}

/* ---- Payloads ------------------------------------------------------------------------------------------------- */

enum { TILE_THREADS = 64, ASSEMBLE_THREADS = 256 };

/* The most bytes that a tile's coded payload may take: one less than its raw samples. */
__device__ __forceinline__ size_t coded_limit(const tsr_predict_batch &p, uint32_t plane, const tsr_tile &tile)
{
    const size_t raw = tsr_raw_tile_bytes(p.b.shared.plane[plane].range, tile.width, tile.height);
    return raw > 0 ? raw - 1 : 0;
}

/* Codes the labels of a tile to its string of labels. One thread a tile. */
__global__ void __launch_bounds__(TILE_THREADS) k_label_strings(const tsr_predict_batch p)
{
    const uint32_t number = blockIdx.x * TILE_THREADS + threadIdx.x, plane = number / p.b.shape.tiles;
    if (number >= p.b.shape.planes * p.b.shape.tiles) return;
    p.label_size[number] = 0;
    const tsr_predictor_model *model = &p.predictor[plane];
    if (p.b.shared.plane[plane].range < 2 || model->set == 0) return;
    const tsr_tile tile = tsr_tile_place(&p.b, number - plane * p.b.shape.tiles).tile;
    struct tsr_bit_writer writer =
        tsr_bit_writer(p.label_string + (size_t)number * p.label_bytes, coded_limit(p, plane, tile));
    tsr_put_labels(&writer, model, p.label_code + (size_t)plane * TSR_LABEL_TABLES_LIMIT,
                   p.final_label + (size_t)number * p.tile_blocks, tsr_blocks_across(tile.width),
                   tsr_blocks_across(tile.height));
    const size_t size = tsr_end_labels(&writer);
    p.label_size[number] = size == SIZE_MAX ? UINT32_MAX : (uint32_t)size;
}

/* The bytes that a tile's labels and its lanes' states take. */
struct fronts {
    uint32_t labels, states;
};

__device__ __forceinline__ fronts fronts_of(const tsr_predict_batch &p, uint32_t number, uint32_t plane,
                                            const tsr_tile &tile)
{
    fronts f;
    f.labels = p.plan_count > 0 ? p.label_size[number] : 0u;
    f.states = tsr_is_rans(&p, plane) ? 4u * (uint32_t)tsr_min(p.lanes, tile.height) : 0u;
    return f;
}

/* Computes the sizes of the payloads. One thread a tile. */
__global__ void __launch_bounds__(TILE_THREADS) k_sizes(const tsr_predict_batch p)
{
    const uint32_t number = blockIdx.x * TILE_THREADS + threadIdx.x, plane = number / p.b.shape.tiles;
    if (number >= p.b.shape.planes * p.b.shape.tiles) return;
    p.b.shared.payload_size[number] = 0;
    const uint32_t range = p.b.shared.plane[plane].range;
    if (range < 2) return;
    const tsr_tile tile = tsr_tile_place(&p.b, number - plane * p.b.shape.tiles).tile;
    const size_t raw = tsr_raw_tile_bytes(range, tile.width, tile.height);
    const fronts f = fronts_of(p, number, plane, tile);
    const uint64_t words = p.word_count[number], coded = (uint64_t)f.labels + f.states + 2 * words;
    const bool fits = f.labels != UINT32_MAX && coded <= coded_limit(p, plane, tile) && (f.states || words > 0);
    p.b.shared.payload_size[number] = (uint32_t)(fits ? coded : raw);
}

/* Writes the payloads by words of 32 bits, and zeros up to the next payload's place. One block a tile. */
__global__ void __launch_bounds__(ASSEMBLE_THREADS) k_assemble(const tsr_predict_batch p)
{
    const uint32_t number = blockIdx.x, plane = number / p.b.shape.tiles, size = p.b.shared.payload_size[number];
    if (size == 0) return;
    const tsr_tile tile = tsr_tile_place(&p.b, number - plane * p.b.shape.tiles).tile;
    const uint32_t range = p.b.shared.plane[plane].range;
    uint32_t *out = reinterpret_cast<uint32_t *>(p.b.shared.payloads + p.b.shared.payload_offset[number]);
    const uint32_t count = (size + 3) / 4;
    if (threadIdx.x < (0u - count) % 4u) out[count + threadIdx.x] = 0;
    if (size == tsr_raw_tile_bytes(range, tile.width, tile.height)) {
        const uint16_t *samples = p.b.shared.samples + plane * p.b.shape.plane_samples + tile.first;
        for (uint32_t w = threadIdx.x; w < count; w += ASSEMBLE_THREADS)
            out[w] = tsr_big_endian(tsr_raw_word(
                (uint32_t)tsr_bit_width(range - 1), (uint32_t)(tile.width * tile.height), w, [&](uint32_t i) {
                    const uint32_t row = i / (uint32_t)tile.width;
                    return (uint32_t)samples[row * tile.stride + i - row * (uint32_t)tile.width];
                }));
        return;
    }
    const fronts f = fronts_of(p, number, plane, tile);
    const uint32_t units = size / 2, labels = f.labels / 2, behind = labels + f.states / 2;
    const uint16_t *label = reinterpret_cast<const uint16_t *>(p.label_string + (size_t)number * p.label_bytes);
    const uint16_t *state = reinterpret_cast<const uint16_t *>(p.states + (size_t)number * TSR_LANE_LIMIT);
    const uint16_t *words = p.words + (size_t)number * p.tile_words + (f.states ? p.tile_words - (units - behind) : 0u);
    if (behind == 0) { /* only words: these and the payload begin at multiples of 16 bytes */
        const uint32_t whole = size / 16, *const pairs = reinterpret_cast<const uint32_t *>(words);
        const uint4 *const from = reinterpret_cast<const uint4 *>(words);
#pragma unroll 4
        for (uint32_t w = threadIdx.x; w < whole; w += ASSEMBLE_THREADS) reinterpret_cast<uint4 *>(out)[w] = from[w];
        const uint32_t w = 4 * whole + threadIdx.x;
        if (w < size / 4) out[w] = pairs[w];
        if (size % 4 != 0 && w == size / 4) out[w] = words[size / 2 - 1];
        return;
    }
    const auto unit = [&](uint32_t i) -> uint32_t {
        return i < labels ? label[i] : i < behind ? state[i - labels] : i < units ? words[i - behind] : 0u;
    };
    for (uint32_t w = threadIdx.x; w < count; w += ASSEMBLE_THREADS) out[w] = unit(2 * w) | unit(2 * w + 1) << 16;
}

} // namespace

int tsr_predict_lanes(const struct tsr_predict_batch *batch, cudaStream_t stream)
{
    const unsigned tiles = batch->b.shape.planes * batch->b.shape.tiles, each = (unsigned)(TSR_WARP / batch->lanes);
    const unsigned warps = (tiles + each - 1) / each;
    if (batch->rans_components)
        TSR_CUDA_TRY(tsr_launch(k_rans_lanes, (warps + WARPS - 1) / WARPS, THREADS, 0, stream, *batch));
    if (!batch->huffman) return cudaSuccess;
    const int32_t periods = segment_periods(*batch);
    const uint32_t rows = (uint32_t)(periods * batch->lanes),
                   segments = ((uint32_t)batch->b.shape.tile_height + rows - 1) / rows;
    return tsr_launch(batch->lanes == TSR_WARP ? k_huffman_lanes<true> : k_huffman_lanes<false>,
                      (warps * segments + WARPS - 1) / WARPS, THREADS, 0, stream, *batch, segments, periods);
}

int tsr_predict_assemble(const struct tsr_predict_batch *batch, cudaStream_t stream)
{
    const unsigned tiles = batch->b.shape.planes * batch->b.shape.tiles,
                   blocks = (tiles + TILE_THREADS - 1) / TILE_THREADS;
    if (batch->plan_count > 0) TSR_CUDA_TRY(tsr_launch(k_label_strings, blocks, TILE_THREADS, 0, stream, *batch));
    TSR_CUDA_TRY(tsr_launch(k_sizes, blocks, TILE_THREADS, 0, stream, *batch));
    TSR_CUDA_TRY((cudaError_t)tsr_cuda_scan_payloads(&batch->b, stream));
    return tsr_launch(k_assemble, tiles, ASSEMBLE_THREADS, 0, stream, *batch);
}
