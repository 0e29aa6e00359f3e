/* A lane of path P's decoder on a GPU: its tile, its chunks of four columns, and the words that it takes. For
 * decode_lanes_cuda.cu, whose top says how lanes go. */
#ifndef TSR_KERNELS_LANES_LANE_WORDS_CUH
#define TSR_KERNELS_LANES_LANE_WORDS_CUH

#include "lane_tables.cuh"

#include "entropy/lane_sample.h"

namespace
{

/* ---- Chunks --------------------------------------------------------------------------------------------- */

enum {
    CHUNK = TSR_LANE_STEP,
    AHEAD = 8,       /* words a lane that a step may take: 2 a tick */
    LOADED = 4,      /* words that a lane loads at once */
    RING_WORDS = 16, /* of the shared ring, a lane */
    BIAS = TSR_SAMPLE_BIAS,
    BIAS_PAIR = (int32_t)0x80008000
};
static_assert(TSR_LANE_DELAY == 2 * CHUNK, "a row is two chunks behind the one above");

/* Four neighbouring samples or magnitudes. */
typedef uint2 chunk;

__device__ __forceinline__ int32_t low_of(uint32_t pair)
{
    return (int16_t)pair;
}

__device__ __forceinline__ int32_t high_of(uint32_t pair)
{
    return (int32_t)pair >> 16;
}

__device__ __forceinline__ chunk all_first(chunk c)
{
    const uint32_t pair = __byte_perm(c.x, 0, 0x1010);
    return make_uint2(pair, pair);
}

__device__ __forceinline__ chunk all_last(chunk c)
{
    const uint32_t pair = __byte_perm(c.y, 0, 0x3232);
    return make_uint2(pair, pair);
}

/* The pair between two pairs. */
__device__ __forceinline__ uint32_t between(uint32_t left, uint32_t right)
{
    return __byte_perm(left, right, 0x5432);
}

__device__ __forceinline__ chunk take_chunk(chunk c, int source)
{
    return make_uint2(__shfl_sync(TSR_FULL_WARP, c.x, source), __shfl_sync(TSR_FULL_WARP, c.y, source));
}

/* Column number j of a chunk; j is known to the compiler. The columns after it get no number yet. */
__device__ __forceinline__ void put_column(chunk &c, int j, int32_t value)
{
    if (j == 0) c.x = (uint32_t)value & 0xffffu;
    if (j == 1) c.x |= (uint32_t)value << 16;
    if (j == 2) c.y = (uint32_t)value & 0xffffu;
    if (j == 3) c.y |= (uint32_t)value << 16;
}

/* The samples around four columns in a row above: 4 to the left, 4 more to the right. */
__device__ __forceinline__ void spread(chunk left, chunk here, chunk right, int32_t v[12])
{
    const uint32_t pair[6] = {left.x, left.y, here.x, here.y, right.x, right.y};
#pragma unroll
    for (int i = 0; i < 6; i++) {
        v[2 * i] = low_of(pair[i]);
        v[2 * i + 1] = high_of(pair[i]);
    }
}

/* ---- What a lane works on ------------------------------------------------------------------------------- */

/* What a warp's thread works on. */
struct lane_job {
    bool is_there;
    const tsr_lane_tables *tables;
    int32_t width, height, lanes;
    uint16_t *samples; /* of the tile */
    size_t pitch;
    const uint8_t *label;
    const uint8_t *words;
    uint32_t word_count, state;
    uint16_t *ring; /* of the group's words, shared */
    uint4 *delayed;
    const uint16_t *earlier[TSR_REFERENCES_LIMIT]; /* the tile in the planes that predictors refer to */
};

/* What does not change while a tile is decoded; of threads without a tile, what lets them tick along. */
struct lane_frame {
    uint32_t group, me, of_group, before, ring_mask;
    int32_t lanes, width, height, across, period, delay, range, refill_bits, shift, blocks, classes;
    int source;                                            /* the lane of the row above */
    uint32_t is_last, any_delay, has_intensities, aligned; /* flags: nvcc keeps bool in structures as bytes */
    const tsr_lane_tables *tables;
    const uint8_t *codes, *label;
    uint32_t steps;
};

__device__ __forceinline__ lane_frame frame_of(const lane_job &job, uint32_t group)
{
    const uint32_t lane = threadIdx.x % TSR_WARP, me = lane % group, base = lane - me;
    const tsr_lane_tables *const t = job.tables;
    lane_frame f;
    f.group = group;
    f.me = me;
    f.of_group = (group == TSR_WARP ? TSR_FULL_WARP : (1u << group) - 1u) << base;
    f.before = f.of_group & ((1u << lane) - 1u);
    f.ring_mask = RING_WORDS * group - 1;
    f.lanes = job.is_there ? job.lanes : 1;
    f.width = job.is_there ? job.width : 0;
    f.height = job.is_there ? job.height : 0;
    f.across = (f.width + CHUNK - 1) / CHUNK;
    f.period = tsr_max(f.across, 2 * f.lanes);
    f.delay = f.period - 2 * f.lanes;
    f.source = (int)base + (me == 0 ? f.lanes - 1 : (int)me - 1);
    f.is_last = job.is_there && (int32_t)me == f.lanes - 1;
    f.any_delay = __any_sync(TSR_FULL_WARP, f.delay > 0);
    f.tables = t;
    f.codes = reinterpret_cast<const uint8_t *>(t) + (job.is_there ? t->codes_at : 0);
    f.range = job.is_there ? (int32_t)t->range : 1;
    f.refill_bits = job.is_there ? t->refill_bits : 0;
    f.shift = job.is_there ? t->shift : 0;
    f.has_intensities = job.is_there && t->has_intensities;
    f.aligned = reinterpret_cast<uintptr_t>(job.samples) % 8 == 0; /* pitches are */
    f.blocks = (f.width + TSR_PREDICTOR_BLOCK - 1) / TSR_PREDICTOR_BLOCK;
    f.steps = tsr_warp_max(
        job.is_there ? (uint32_t)(f.period * ((f.height + f.lanes - 1) / f.lanes - 1) + f.across + 2 * (f.lanes - 1))
                     : 0u);
    f.label = job.is_there && t->set ? job.label : NULL;
    f.classes = f.label ? t->classes : 0;
    return f;
}

/* Where a lane is, in chunks, and the predictor of the block there. */
struct lane_walk {
    int32_t y, q;
    int32_t next_label;
    const int4 *weights; /* of the class; NULL: the median edge predictor */
};

__device__ __forceinline__ bool is_active(const lane_frame &f, const lane_walk &at)
{
    return at.y < f.height && at.q >= 0 && at.q < f.across;
}

/* The weights of the block that the lane enters, and the label of the one after it. */
__device__ __forceinline__ void enter_block(const lane_frame &f, lane_walk &at)
{
    const tsr_lane_tables *const t = f.tables;
    at.weights = at.next_label < f.classes
                     ? reinterpret_cast<const int4 *>(reinterpret_cast<const uint8_t *>(t) + t->weights_at +
                                                      (uint32_t)at.next_label * t->weights * 4)
                     : NULL;
    int32_t block = at.q / (TSR_PREDICTOR_BLOCK / CHUNK) + 1, row = at.y;
    if (block == f.blocks) {
        block = 0;
        row += f.lanes;
    }
    if (row < f.height) at.next_label = f.label[(row / TSR_PREDICTOR_BLOCK) * f.blocks + block];
}

/* ---- Words ---------------------------------------------------------------------------------------------- */

/* A lane's string, and its group's words. */
struct lane_words {
    uint32_t high, low; /* Huffman: bits, left-aligned */
    int32_t count;
    uint32_t state;          /* rANS */
    uint32_t next, supplied; /* words taken, and in the ring, of the group */
    uint2 loaded;
};

/* This many words from the lane's share of the stream on; zeros after the last. */
__device__ __forceinline__ uint2 load_words(const lane_job &job, uint32_t first)
{
    uint2 words = make_uint2(0, 0);
    if (!job.is_there || first >= job.word_count) return words;
    const uint8_t *const at = job.words + 2 * (size_t)first;
    const uint32_t *const from = reinterpret_cast<const uint32_t *>(reinterpret_cast<uintptr_t>(at) & ~(uintptr_t)3);
    const uint32_t shift = 8u * (uint32_t)(reinterpret_cast<uintptr_t>(at) & 3), middle = from[1];
    words.x = __funnelshift_r(from[0], middle, shift);
    words.y = __funnelshift_r(middle, from[2], shift);
    const uint32_t left = job.word_count - first;
    if (left < 2) words.x &= 0xffffu;
    if (left < 3) words.y = 0;
    if (left == 3) words.y &= 0xffffu;
    return words;
}

/* Fills the rings up for a step. */
__device__ __forceinline__ void supply_words(const lane_job &job, const lane_frame &f, lane_words &w)
{
    while (__any_sync(TSR_FULL_WARP, w.supplied - w.next < AHEAD * f.group)) {
        if (w.supplied - w.next < AHEAD * f.group) {
            *reinterpret_cast<uint2 *>(&job.ring[(w.supplied + LOADED * f.me) & f.ring_mask]) = w.loaded;
            w.supplied += LOADED * f.group;
            w.loaded = load_words(job, w.supplied + LOADED * f.me);
        }
    }
    __syncwarp();
}

/* Place of the lane's first word, where the lanes of first take one and those of second another one. */
__device__ __forceinline__ uint32_t place_of_words(const lane_frame &f, const lane_words &w, uint32_t first,
                                                   uint32_t second)
{
    return w.next + (uint32_t)__popc(first & f.before) + (uint32_t)__popc(second & f.before);
}

/* Takes a symbol by its code; the whole warp, of which some lanes do: its entry and the raw bits. */
__device__ __forceinline__ void take_rans(const lane_job &job, const lane_frame &f, lane_words &w, bool coding,
                                          uint32_t code, uint32_t &entry, uint32_t &value)
{
    uint32_t raw = 0;
    if (coding) {
        const uint32_t *const words = reinterpret_cast<const uint32_t *>(f.codes) + (code & 0xffffu);
        const uint32_t at = w.state & (TSR_RANS_TOTAL - 1);
        const uint32_t *symbol =
            words + TSR_LANE_SLOT_INDICES / 4 + reinterpret_cast<const uint8_t *>(words)[at >> TSR_LANE_SLOT_BITS];
        uint32_t word = *symbol;
        while (at - (word >> 8 & 0xfffu) > word >> 20) word = *++symbol;
        w.state = ((word >> 20) + 1) * (w.state >> TSR_RANS_BITS) + at - (word >> 8 & 0xfffu);
        entry = f.tables->of_symbol[word & 255u];
        raw = entry >> TSR_LANE_ENTRY_RAW & 15u;
    }
    const bool wants = coding && tsr_rans_wants_word(w.state);
    const bool more = coding && (wants ? w.state >> raw == 0 : w.state >> raw < TSR_RANS_LOW);
    const uint32_t first = __ballot_sync(TSR_FULL_WARP, wants), second = __ballot_sync(TSR_FULL_WARP, more);
    if (coding) {
        uint32_t at = place_of_words(f, w, first, second);
        if (wants) w.state = tsr_rans_with_word(w.state, job.ring[at++ & f.ring_mask]);
        value = tsr_rans_get_raw(&w.state, (int)raw);
        if (more) w.state = tsr_rans_with_word(w.state, job.ring[at & f.ring_mask]);
    }
    w.next += (uint32_t)__popc(first & f.of_group) + (uint32_t)__popc(second & f.of_group);
}

__device__ __forceinline__ void take_huffman(const lane_job &job, const lane_frame &f, lane_words &w, bool coding,
                                             uint32_t code, uint32_t &entry, uint32_t &value)
{
    const bool wants = coding && tsr_lane_wants_word(w.count, f.refill_bits);
    const bool more = coding && tsr_lane_wants_word(w.count + TSR_LANE_WORD_BITS, f.refill_bits);
    const uint32_t first = __ballot_sync(TSR_FULL_WARP, wants), second = __ballot_sync(TSR_FULL_WARP, more);
    if (wants) {
        const uint32_t at = place_of_words(f, w, first, second);
        uint32_t word = (uint32_t)job.ring[at & f.ring_mask] << 16;
        int32_t bits = TSR_LANE_WORD_BITS;
        if (more) {
            word |= job.ring[(at + 1) & f.ring_mask];
            bits = 2 * TSR_LANE_WORD_BITS;
        }
        /* count is 0..31 here */
        w.high |= word >> w.count;
        w.low |= __funnelshift_r(0, word, (uint32_t)w.count);
        w.count += bits;
    }
    w.next += (uint32_t)__popc(first & f.of_group) + (uint32_t)__popc(second & f.of_group);
    if (coding) {
        const uint32_t bits = w.high >> (32 - TSR_CODE_LIMIT), longs = code >> 16 & 0x1fffu;
        const uint32_t at = bits >= longs ? TSR_LANE_DIRECT_ENTRIES + bits - longs : bits >> TSR_LANE_LONG_BITS;
        entry = reinterpret_cast<const uint16_t *>(f.codes)[(code & 0xffffu) + at];
        const uint32_t length = entry & 15u, raw = entry >> TSR_LANE_ENTRY_RAW & 15u, both = length + raw;
        value = __funnelshift_l(w.low, w.high, length) >> 1 >> (31 - raw);
        w.high = __funnelshift_lc(w.low, w.high, both);
        w.low = __funnelshift_lc(0, w.low, both);
        w.count -= (int32_t)both;
    }
}

} // namespace

#endif
