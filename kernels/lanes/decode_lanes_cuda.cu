/* Path P's decoder: the lanes of tiles. FORMAT.md sections 7.1 to 7.9; what a lane does with a sample is
 * entropy/lane_sample.h. Tables: lane_tables_cuda.cu.
 *
 * A tile is a group of as many threads of a warp as its lanes are by rule; all groups of a warp tick together. Lanes go
 * four columns, a *chunk*, at a step. In every step a lane passes the chunk that it has just left, of its own row and
 * of the rows above it, to the lane of the row below, which is two chunks behind: so it finds the chunk to its right
 * there, and all that prediction needs of the rows above travels in registers. The last lane's chunks wait in a ring in
 * memory until the first lane comes there in the next band of rows. Samples are less 2^15, as predictors want them.
 *
 * What a group does not know (the words' number, symbols that cannot stand) is checked by each lane and told at the
 * end: until then a corrupt tile goes on within its geometry, with samples that are forced into their range. */
#include "lane_tables.cuh"

#include <utility>

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

/* ---- Rows above ----------------------------------------------------------------------------------------- */

/* The rows above a lane, and its own; BINS: rows above that predictors look at. */
template <int BINS> struct rows_above {
    chunk left[BINS + 1], here[BINS + 1], right[BINS + 1]; /* of the rows above, from 1 on; left[0]: of this row */
    chunk further, done;                                   /* two to the left, and the one at work */
    chunk mag_left[2], mag_here[3], mag_right[3], mag_done;
    uint4 waiting[3];
    int32_t slot, first_above;
};

template <int BINS> __device__ __forceinline__ void clear_rows(rows_above<BINS> &r)
{
    const chunk none = make_uint2(0, 0);
#pragma unroll
    for (int u = 0; u <= BINS; u++) r.left[u] = r.here[u] = r.right[u] = none;
#pragma unroll
    for (int u = 0; u < 3; u++) {
        r.mag_here[u] = r.mag_right[u] = none;
        r.waiting[u] = make_uint4(0, 0, 0, 0);
    }
    r.mag_left[0] = r.mag_left[1] = r.mag_done = r.further = r.done = none;
    r.slot = r.first_above = 0;
}

/* Chunks on their way from the last lane to the first one, which reaches them delay steps later. */
template <int BINS>
__device__ __forceinline__ void delay_chunks(const lane_job &job, const lane_frame &f, rows_above<BINS> &r,
                                             uint32_t step)
{
    if (f.me == 0 && f.delay > 0) {
        r.right[1] = make_uint2(r.waiting[0].x, r.waiting[0].y);
        r.mag_right[1] = make_uint2(r.waiting[0].z, r.waiting[0].w);
        r.mag_right[2] = make_uint2(r.waiting[1].x, r.waiting[1].y);
        if (BINS > 1) r.right[2 % (BINS + 1)] = make_uint2(r.waiting[1].z, r.waiting[1].w);
        if (BINS > 2) r.right[3 % (BINS + 1)] = make_uint2(r.waiting[2].x, r.waiting[2].y);
        if (BINS > 3) r.right[4 % (BINS + 1)] = make_uint2(r.waiting[2].z, r.waiting[2].w);
    }
    if (f.is_last && f.delay > 0) {
        uint4 *const at = job.delayed + 3 * r.slot;
        at[0] = make_uint4(r.left[0].x, r.left[0].y, r.mag_left[0].x, r.mag_left[0].y);
        at[1] = make_uint4(r.mag_left[1].x, r.mag_left[1].y, r.left[1].x, r.left[1].y);
        if (BINS > 2)
            at[2] = make_uint4(r.left[2 % (BINS + 1)].x, r.left[2 % (BINS + 1)].y, r.left[3 % (BINS + 1)].x,
                               r.left[3 % (BINS + 1)].y);
    }
    __syncwarp();
    r.slot = r.slot + 1 < f.delay ? r.slot + 1 : 0;
    if (f.me == 0 && f.delay > 0 && step + 1 >= (uint32_t)f.delay) {
        const uint4 *const at = job.delayed + 3 * r.slot;
        r.waiting[0] = at[0];
        r.waiting[1] = at[1];
        if (BINS > 2) r.waiting[2] = at[2];
    }
    __syncwarp();
}

/* Chunks move on, and to the row below. Returns the first sample that the lane above has above its row. */
template <int BINS>
__device__ __forceinline__ int32_t move_chunks(const lane_job &job, const lane_frame &f, rows_above<BINS> &r,
                                               uint32_t step)
{
#pragma unroll
    for (int u = 1; u <= BINS; u++) {
        r.left[u] = r.here[u];
        r.here[u] = r.right[u];
    }
    r.further = r.left[0];
    r.left[0] = r.done;
    r.mag_left[1] = r.mag_here[1];
    r.mag_here[1] = r.mag_right[1];
    r.mag_here[2] = r.mag_right[2];
    r.mag_left[0] = r.mag_done;
    if (f.me == 0 && step <= (uint32_t)f.period) { /* there is nothing above row 0: it stands for what would be */
#pragma unroll
        for (int u = 1; u <= BINS; u++) r.left[u] = r.left[0];
        r.mag_left[1] = r.mag_left[0];
    }
#pragma unroll
    for (int u = 1; u <= BINS; u++) r.right[u] = take_chunk(r.left[u - 1], f.source);
    r.mag_right[1] = take_chunk(r.mag_left[0], f.source);
    r.mag_right[2] = take_chunk(r.mag_left[1], f.source);
    const int32_t first_left = __shfl_sync(TSR_FULL_WARP, r.first_above, f.source);
    if (f.any_delay) delay_chunks<BINS>(job, f, r, step);
    return first_left;
}

/* A row begins: what is on its left, and on that of the rows above. */
template <int BINS>
__device__ __forceinline__ void begin_row(rows_above<BINS> &r, int32_t y, int32_t first_left, struct tsr_run &run)
{
    const chunk none = make_uint2(0, 0);
    const int32_t first = low_of(r.here[BINS].x);
    r.left[0] = y == 0 ? make_uint2((uint32_t)BIAS_PAIR, (uint32_t)BIAS_PAIR) : all_first(r.here[1]);
    r.further = r.left[0];
#pragma unroll
    for (int u = 1; u < BINS; u++) r.left[u] = all_first(r.here[u + 1]);
    r.left[BINS] = all_first(make_uint2((uint32_t)(y <= BINS ? first : first_left), 0));
    r.first_above = first;
    r.mag_left[0] = y == 0 ? none : all_first(r.mag_here[1]);
    r.mag_left[1] = y <= 1 ? none : all_first(r.mag_here[2]);
    tsr_run_begin_row(&run);
}

/* ---- Prediction ----------------------------------------------------------------------------------------- */

__device__ __forceinline__ void add_tap(int32_t sum[CHUNK], int32_t weight, const int32_t *v)
{
#pragma unroll
    for (int j = 0; j < CHUNK; j++) sum[j] += weight * v[j];
}

/* Part I % 4 of the weights, which are loaded in fours. */
template <int I> __device__ __forceinline__ int32_t weight_of(const int4 *weights)
{
    const int4 four = weights[I / 4];
    return I % 4 == 0 ? four.x : I % 4 == 1 ? four.y : I % 4 == 2 ? four.z : four.w;
}

/* Adds weight I if its tap lies UP rows above and is one of the TAPS first. v: the row from REACH columns to the left
 * on. */
template <int UP, int TAPS, int REACH, int I>
__device__ __forceinline__ void add_weight(int32_t sum[CHUNK], const int4 *weights, const int32_t *v)
{
    constexpr int tap = TSR_CONSTANT(tsr_lane_tap)[I];
    if constexpr (tap >= 0 && tap < TAPS) {
        constexpr int up = TSR_CONSTANT(tsr_tap_up)[tap], right = TSR_CONSTANT(tsr_tap_right)[tap];
        if constexpr (up == UP && !(up == 0 && right >= -3)) add_tap(sum, weight_of<I>(weights), v + REACH + right);
    }
}

/* Those of a row. */
template <int UP, int TAPS, int REACH, int... I>
__device__ __forceinline__ void add_row(int32_t sum[CHUNK], const int4 *weights, const int32_t *v,
                                        std::integer_sequence<int, I...>)
{
    (add_weight<UP, TAPS, REACH, I>(sum, weights, v), ...);
}

template <int UP, int BINS>
__device__ __forceinline__ void add_row_above(int32_t sum[CHUNK], const int4 *weights, const rows_above<BINS> &r,
                                              bool is_end)
{
    int32_t v[3 * CHUNK];
    spread(r.left[UP], r.here[UP], is_end ? all_last(r.here[UP]) : r.right[UP], v);
    add_row<UP, TSR_CONSTANT(tsr_neighbours)[BINS == 4 ? TSR_LANE_DEEP_SET : 2], CHUNK>(
        sum, weights, v, std::make_integer_sequence<int, TSR_LANE_REFERENCE_WEIGHTS>());
}

/* A row of an earlier plane, and those above and below it. */
struct reference_rows {
    const uint16_t *here, *up, *down;
};

/* Tap I of a column's. */
template <int I>
__device__ __forceinline__ int32_t reference_sample(const reference_rows &rows, int32_t column, int32_t width)
{
    constexpr int UP = TSR_CONSTANT(tsr_reference_up)[I], RIGHT = TSR_CONSTANT(tsr_reference_right)[I];
    static_assert(UP >= -1 && UP <= 1 && RIGHT >= -1, "rows above and below; and one column on the left");
    const uint16_t *const row = UP > 0 ? rows.up : UP < 0 ? rows.down : rows.here;
    const int32_t c = tsr_min(column + RIGHT, width - 1);
    return (RIGHT >= 0 || column > 0 ? row[c] : rows.up[0]) - BIAS;
}

template <int... I>
__device__ __forceinline__ void add_references(int32_t sum[CHUNK], const lane_job &job, const int4 *weights, int32_t y,
                                               int32_t column, std::integer_sequence<int, I...>)
{
    const int32_t *weight = reinterpret_cast<const int32_t *>(weights + TSR_LANE_REFERENCE_WEIGHTS / 4);
#pragma unroll
    for (int r = 0; r < TSR_REFERENCES_LIMIT; r++, weight += TSR_REFERENCE_TAPS) {
        if (r >= job.tables->references) break;
        reference_rows rows;
        rows.here = job.earlier[r] + (size_t)y * job.pitch;
        rows.up = rows.here - job.pitch;
        rows.down = y + 1 < job.height ? rows.here + job.pitch : rows.here;
#pragma unroll
        for (int j = 0; j < CHUNK; j++)
            sum[j] += (... + (weight[I] * reference_sample<I>(rows, column + j, job.width)));
    }
}

/* What lies above a chunk, and W, WW and WWW's weights. */
struct chunk_above {
    uint32_t linear, first_row;
    int32_t sum[CHUNK];
    int32_t edge[CHUNK + 1]; /* NW, N of the columns */
    int4 near;
    uint32_t activity[2]; /* two columns in a number */
    struct tsr_left_activity weight;
};

/* What all taps but W, WW, WWW give to a chunk. */
template <int BINS>
__device__ __forceinline__ void sum_above(const lane_job &job, const lane_walk &at, const rows_above<BINS> &r,
                                          bool is_end, chunk_above &a)
{
    const int4 *const weights = at.weights;
    a.near = weights[0];
    add_row_above<1, BINS>(a.sum, weights, r, is_end);
    add_row_above<2 % (BINS + 1), BINS>(a.sum, weights, r, is_end);
    add_row_above<3 % (BINS + 1), BINS>(a.sum, weights, r, is_end);
    if (BINS > 3) {
        int32_t v[3 * CHUNK];
        add_row_above<4 % (BINS + 1), BINS>(a.sum, weights, r, is_end);
        spread(r.further, r.left[0], r.left[0], v); /* this row, from 8 columns to the left on */
        add_row<0, TSR_NEIGHBOURS_LIMIT, 2 * CHUNK>(a.sum, weights, v,
                                                    std::make_integer_sequence<int, TSR_LANE_REFERENCE_WEIGHTS>());
    }
    if (job.tables->references > 0)
        add_references(a.sum, job, weights, at.y, at.q * CHUNK, std::make_integer_sequence<int, TSR_REFERENCE_TAPS>());
}

template <int BINS>
__device__ __forceinline__ chunk_above look_above(const lane_job &job, const lane_frame &f, const lane_walk &at,
                                                  const rows_above<BINS> &r, bool active)
{
    const bool is_end = at.q == f.across - 1;
    chunk_above a;
    a.linear = BINS > 1 && (at.y == 0 || at.weights != NULL); /* the first row: W alone */
    a.first_row = BINS == 1 && at.y == 0;
    a.activity[0] = a.activity[1] = 0;
    a.weight = tsr_left_activity(at.y == 0);
    if (at.y > 0) {
        const chunk m = r.mag_here[1], to_right = is_end ? all_last(m) : r.mag_right[1];
        const uint32_t middle = between(m.x, m.y);
        a.activity[0] = tsr_activity_above(m.x, between(r.mag_left[1].y, m.x), middle, r.mag_here[2].x);
        a.activity[1] = tsr_activity_above(m.y, middle, between(m.y, to_right.x), r.mag_here[2].y);
    }
    a.near = make_int4(1 << TSR_WEIGHT_SHIFT, 0, 0, 0);
#pragma unroll
    for (int j = 0; j < CHUNK; j++) a.sum[j] = TSR_WEIGHT_HALF;
#pragma unroll
    for (int j = 0; j <= CHUNK; j++) a.edge[j] = 0;
    if (BINS > 1 && active && at.y > 0 && at.weights) {
        if constexpr (BINS > 1) sum_above<BINS>(job, at, r, is_end, a);
    } else { /* N and NW for the median edge predictor */
        a.edge[0] = high_of(r.left[1].y);
        a.edge[1] = low_of(r.here[1].x);
        a.edge[2] = high_of(r.here[1].x);
        a.edge[3] = low_of(r.here[1].y);
        a.edge[4] = high_of(r.here[1].y);
    }
    return a;
}

/* ---- A tick --------------------------------------------------------------------------------------------- */

/* The code by an activity above 0 and the prediction. */
__device__ __forceinline__ uint32_t find_code(const lane_frame &f, int32_t activity, int32_t prediction)
{
    const tsr_lane_tables *const t = f.tables;
    uint32_t cell = t->row_of_bin[tsr_activity_bin(activity)];
    if (f.has_intensities) {
        const uint32_t bin = (uint32_t)prediction >> f.shift;
        uint32_t g = t->group_of[bin >> TSR_LANE_BUCKET_BITS];
        while (bin >= t->cut[g]) g++;
        cell += g;
    }
    return t->cell[cell];
}

/* Column number j of a chunk: decodes its sample, if it is live. bad: a symbol that cannot stand there has come. */
template <int BINS, bool RANS>
__device__ __forceinline__ void decode_sample(const lane_job &job, const lane_frame &f, const chunk_above &a, int j,
                                              bool live, struct tsr_lane_left &left, lane_words &w, uint32_t &bad)
{
    struct tsr_lane_above above;
    above.linear = a.linear;
    above.first_row = a.first_row;
    above.sum = a.sum[j];
    above.of_w = a.near.x;
    above.of_ww = a.near.y;
    above.of_www = a.near.z;
    above.n = a.edge[j + 1];
    above.nw = a.edge[j];
    above.activity = (int32_t)(j % 2 ? a.activity[j / 2] >> 16 : a.activity[j / 2] & 0xffffu);
    above.weight = a.weight;
    const int32_t prediction = tsr_lane_prediction(&left, &above, f.range);
    const bool coding = live && left.run.left == 0;
    uint32_t code = 0, entry = 0, value = 0, may_run = 0;
    if (coding) {
        const int32_t activity = tsr_lane_activity(&left, &above);
        if (activity == 0) {
            may_run = tsr_quiet_table(left.run.after) == TSR_RUN_TABLE;
            code = may_run ? f.tables->run : f.tables->interruption;
        } else {
            code = find_code(f, activity, prediction);
        }
        if (code & TSR_LANE_NO_CODE) {
            bad = 1;
            code = f.tables->run;
        }
    }
    if (RANS)
        take_rans(job, f, w, coding, code, entry, value);
    else
        take_huffman(job, f, w, coding, code, entry, value);
    int32_t residual = 0;
    if (coding) {
        value |= (entry >> TSR_LANE_ENTRY_VALUE & 15u) << (entry >> TSR_LANE_ENTRY_RAW & 15u);
        if (entry & TSR_LANE_ENTRY_RUN) {
            if (!may_run) bad = 1;
            left.run.left = (int32_t)(value | (entry & (uint32_t)TSR_LANE_ENTRY_TO_END) << TSR_LANE_TO_END_SHIFT);
        } else {
            residual = tsr_unfold(value);
        }
    }
    int32_t sample = tsr_residual_inverse(residual, prediction, f.range);
    if ((uint32_t)sample >= (uint32_t)f.range) {
        if (live) bad = 1;
        sample = live ? prediction : 0;
    }
    if (live) tsr_lane_step(&left, sample, residual);
}

/* Four ticks. */
template <int BINS, bool RANS>
__device__ __forceinline__ void decode_chunk(const lane_job &job, const lane_frame &f, const chunk_above &a,
                                             int32_t in_row, rows_above<BINS> &r, struct tsr_run &run, lane_words &w,
                                             uint32_t &bad)
{
    struct tsr_lane_left left;
    left.w = high_of(r.left[0].y);
    left.ww = low_of(r.left[0].y);
    left.www = high_of(r.left[0].x);
    left.magnitude_w = high_of(r.mag_left[0].y);
    left.magnitude_ww = low_of(r.mag_left[0].y);
    left.run = run;
#pragma unroll
    for (int j = 0; j < CHUNK; j++) {
        decode_sample<BINS, RANS>(job, f, a, j, j < in_row, left, w, bad);
        /* Behind a row's end the last ones are repeated. */
        put_column(r.done, j, left.w);
        put_column(r.mag_done, j, left.magnitude_w);
    }
    run = left.run;
}

__device__ __forceinline__ void store_chunk(const lane_job &job, const lane_frame &f, const lane_walk &at, chunk done,
                                            int32_t in_row)
{
    uint16_t *const out = job.samples + (size_t)at.y * job.pitch + at.q * CHUNK;
    const chunk store = make_uint2(done.x ^ (uint32_t)BIAS_PAIR, done.y ^ (uint32_t)BIAS_PAIR);
    if (f.aligned && in_row >= CHUNK) {
        *reinterpret_cast<uint2 *>(out) = store;
        return;
    }
    out[0] = (uint16_t)store.x;
    if (in_row > 1) out[1] = (uint16_t)(store.x >> 16);
    if (in_row > 2) out[2] = (uint16_t)store.y;
    if (in_row > 3) out[3] = (uint16_t)(store.y >> 16);
}

/* ---- Tiles ---------------------------------------------------------------------------------------------- */

/* Decodes the tiles of a warp; BINS: rows above that predictors look at. False where a lane has seen that its tile is
 * corrupt. */
template <int BINS, bool RANS> __device__ __forceinline__ bool decode_tiles(const lane_job &job, uint32_t group)
{
    const lane_frame f = frame_of(job, group);
    rows_above<BINS> r;
    clear_rows(r);
    lane_words w = {0, 0, 0, job.state, 0, 0, load_words(job, LOADED * f.me)};
    lane_walk at = {job.is_there && (int32_t)f.me < f.lanes ? (int32_t)f.me : f.height, -2 * (int32_t)f.me, 0, NULL};
    if (f.label && at.y < f.height) at.next_label = f.label[(at.y / TSR_PREDICTOR_BLOCK) * f.blocks];
    struct tsr_run run = {0, false};
    uint32_t bad = 0;

    for (uint32_t step = 0; step < f.steps; step++) {
        supply_words(job, f, w);
        const int32_t first_left = move_chunks<BINS>(job, f, r, step);
        if (at.q == 0) begin_row<BINS>(r, at.y, first_left, run);
        const bool active = is_active(f, at);
        if (active && f.label && at.q % (TSR_PREDICTOR_BLOCK / CHUNK) == 0) enter_block(f, at);
        const chunk_above a = look_above<BINS>(job, f, at, r, active);
        const int32_t in_row = active ? f.width - at.q * CHUNK : 0;
        decode_chunk<BINS, RANS>(job, f, a, in_row, r, run, w, bad);
        if (active) store_chunk(job, f, at, r.done, in_row);
        if (++at.q == f.period) {
            at.q = 0;
            at.y += f.lanes;
        }
    }
    if (!job.is_there) return true;
    if (w.next != job.word_count) return false;
    if (RANS ? (int32_t)f.me < tsr_min(f.lanes, f.height) && w.state != TSR_RANS_LOW : (w.high | w.low) != 0)
        return false;
    return !bad;
}

enum { WARPS_LIMIT = 4, WARPS_AT_ONCE = 16 }; /* of a block, and of a multiprocessor */

/* How tiles are dealt to blocks. */
struct lane_policy {
    uint32_t group;           /* threads a tile: lanes */
    uint32_t warps;           /* of a block */
    uint32_t frames_of_block; /* in the one warp that it then has; or 1 */
    uint32_t blocks_of_frame; /* if frames_of_block is 1 */
    uint32_t room;            /* bytes of shared memory for a plane's tables */
};

/* The tile of a thread. place: that of its frame among those of its block. */
struct dealt_tile {
    uint32_t frame, number, place, is_dealt;
};

__device__ __forceinline__ dealt_tile deal_tile(const tsr_cuda_decode_batch &b, const lane_policy &policy)
{
    const uint32_t of_warp = TSR_WARP / policy.group, warp = threadIdx.x / TSR_WARP;
    const uint32_t in_warp = threadIdx.x % TSR_WARP / policy.group;
    dealt_tile tile;
    tile.place = 0;
    if (policy.frames_of_block == 1) {
        tile.frame = blockIdx.x / policy.blocks_of_frame;
        tile.number = ((blockIdx.x - tile.frame * policy.blocks_of_frame) * policy.warps + warp) * of_warp + in_warp;
    } else {
        tile.place = in_warp / b.tiles;
        tile.frame = blockIdx.x * policy.frames_of_block + tile.place;
        tile.number = in_warp - tile.place * b.tiles;
    }
    tile.is_dealt = tile.place < policy.frames_of_block && tile.frame < b.frames && tile.number < b.tiles;
    return tile;
}

/* Are a plane's tables those of this kernel? */
template <bool DEEP, bool RANS> __device__ __forceinline__ bool is_ours(const tsr_lane_tables *t)
{
    return (t->set == TSR_LANE_DEEP_SET) == DEEP && t->rans == RANS;
}

/* Copies the tables that fit to shared memory, to be looked up there. False if the block has no tables. */
template <bool DEEP, bool RANS>
__device__ __forceinline__ bool copy_tables(const tsr_cuda_decode_batch &b, const lane_policy &policy, uint32_t number,
                                            uint32_t frame, uint8_t *rooms)
{
    bool any = false;
    for (uint32_t i = 0; i < policy.frames_of_block; i++) {
        const uint32_t f = policy.frames_of_block == 1 ? frame : blockIdx.x * policy.frames_of_block + i;
        if (f >= b.frames || !tsr_lane_model(b, f, number)) continue;
        const tsr_lane_tables *const t = tsr_lane_tables_of(b, f * b.frame_planes + number);
        if (!is_ours<DEEP, RANS>(t)) continue;
        any = true;
        if (t->bytes > policy.room) continue;
        const uint4 *const from = reinterpret_cast<const uint4 *>(t);
        uint4 *const to = reinterpret_cast<uint4 *>(rooms + i * policy.room);
        for (uint32_t k = threadIdx.x; k < t->bytes / sizeof(uint4); k += blockDim.x) to[k] = from[k];
    }
    return any;
}

/* The tile in the planes that predictors refer to, as tsr_reference_planes() has them. */
__device__ __forceinline__ void find_earlier(const tsr_cuda_decode_batch &b, uint32_t frame, uint32_t number,
                                             size_t first, lane_job &job)
{
    const tsr_frame_model *const model = tsr_decode_model(&b, frame);
    int wanted = job.tables->references;
    for (int q = (int)number - 1; q >= 0 && wanted > 0; q--) {
        if (model->plane[q].range < 2) continue;
        const uint16_t *const earlier = b.samples + (frame * b.frame_planes + (uint32_t)q) * b.plane_samples + first;
        if (wanted == job.tables->references)
            job.earlier[0] = earlier;
        else
            job.earlier[1] = earlier;
        wanted--;
    }
}

/* Fills in what the thread works on: its tile, if that is there and of this kernel's kind. job: all 0. A job that is
 * returned instead costs 3 % of the decoder's time: nvcc then takes the global pointers in it for generic ones. */
template <bool DEEP, bool RANS>
__device__ __forceinline__ void fill_job(const tsr_cuda_decode_batch &b, uint32_t number, const tsr_lane_space &s,
                                         const lane_policy &policy, const dealt_tile &dealt, uint8_t *rooms,
                                         lane_job &job)
{
    const uint32_t tile_index = dealt.frame * b.tiles + dealt.number;
    const uint32_t plane = dealt.frame * b.frame_planes + number;
    if (!dealt.is_dealt || !s.stream[tile_index].is_there || !tsr_lane_model(b, dealt.frame, number) ||
        !is_ours<DEEP, RANS>(tsr_lane_tables_of(b, plane))) {
        job.lanes = 1;
        job.tables = tsr_lane_tables_of(b, 0);
        return;
    }
    const tsr_lane_stream stream = s.stream[tile_index];
    const tsr_tile tile = tsr_decode_tile_at(&b, dealt.number);
    job.is_there = true;
    job.tables = tsr_lane_tables_of(b, plane);
    if (job.tables->bytes <= policy.room)
        job.tables = reinterpret_cast<tsr_lane_tables *>(rooms + dealt.place * policy.room);
    job.width = tile.width;
    job.height = tile.height;
    job.lanes = job.tables->lanes;
    job.samples = b.samples + plane * b.plane_samples + tile.first;
    job.pitch = b.pitch;
    job.label = s.label + (size_t)tile_index * s.labels;
    job.words = b.payloads + stream.at;
    job.word_count = stream.words;
    if (RANS) {
        const int32_t states = tsr_min(job.lanes, tile.height);
        const int32_t me = (int32_t)(threadIdx.x % TSR_WARP % policy.group);
        for (int i = 3; i >= 0 && me < states; i--) job.state = job.state << 8 | job.words[4 * me + i];
        job.words += 4 * states;
    }
    job.delayed = s.delayed + (size_t)tile_index * s.slots * 3;
    find_earlier(b, dealt.frame, number, tile.first, job);
}

/* Planes whose predictors look at four rows above (DEEP) or those of all others: the former's registers would cost the
 * latter. */
template <bool DEEP, bool RANS>
__global__ void __launch_bounds__(WARPS_LIMIT *TSR_WARP, WARPS_AT_ONCE / WARPS_LIMIT)
    k_lanes(const tsr_cuda_decode_batch b, uint32_t number, const tsr_lane_space s, const lane_policy policy)
{
    TSR_DYNAMIC_SHARED(memory);
    const uint32_t group = policy.group, first = threadIdx.x / group * group; /* thread of the group */
    uint16_t *const rings = reinterpret_cast<uint16_t *>(memory);
    uint8_t *const rooms = memory + blockDim.x * RING_WORDS * sizeof(uint16_t);
    const dealt_tile dealt = deal_tile(b, policy);
    const bool any = copy_tables<DEEP, RANS>(b, policy, number, dealt.frame, rooms);
    __syncthreads();
    if (!any) return;
    lane_job job = {};
    fill_job<DEEP, RANS>(b, number, s, policy, dealt, rooms, job);
    job.ring = rings + first * RING_WORDS;
    const bool good = DEEP ? decode_tiles<4, RANS>(job, group)
                      : __any_sync(TSR_FULL_WARP, job.is_there && job.tables->set > 0)
                          ? decode_tiles<3, RANS>(job, group)
                          : decode_tiles<1, RANS>(job, group);
    if (!good) tsr_note_bad_tile(b, dealt.frame, dealt.number);
}

/* ---- Launches ------------------------------------------------------------------------------------------- */

tsr_lane_space lay_space_out(const tsr_cuda_decode_batch &b, uint32_t lanes)
{
    const size_t tiles = (size_t)b.frames * b.tiles;
    tsr_lane_space s;
    s.labels = (uint32_t)((b.tile_width + TSR_PREDICTOR_BLOCK - 1) / TSR_PREDICTOR_BLOCK) *
               (uint32_t)((b.tile_height + TSR_PREDICTOR_BLOCK - 1) / TSR_PREDICTOR_BLOCK);
    s.slots = (uint32_t)tsr_max((b.tile_width + 3) / 4, 2 * (int32_t)lanes);
    const size_t stream_bytes = tiles * sizeof(tsr_lane_stream), label_bytes = (tiles * s.labels + 15) / 16 * 16;
    s.stream = reinterpret_cast<tsr_lane_stream *>(b.lanes);
    s.label = b.lanes + stream_bytes;
    s.delayed = reinterpret_cast<uint4 *>(b.lanes + stream_bytes + label_bytes);
    s.bytes = stream_bytes + label_bytes + tiles * s.slots * 3 * sizeof(uint4);
    return s;
}

uint32_t group_of(const tsr_cuda_decode_batch &b)
{
    return (uint32_t)tsr_lanes_for_tile(b.tile_width, b.tile_height);
}

/* Blocks of one plane, so that its tables are there once; where a warp takes the tiles of several, a block is a warp.
 */
lane_policy choose_policy(const tsr_cuda_decode_batch &b)
{
    enum { SHARED_BYTES = 216 << 10, LEAST_ROOM = 6 << 10 };
    lane_policy p;
    p.group = group_of(b);
    const uint32_t of_warp = TSR_WARP / p.group;
    p.frames_of_block = tsr_max(1, (int32_t)(of_warp / b.tiles));
    const uint32_t warps = (b.tiles + of_warp - 1) / of_warp; /* of a plane */
    p.warps = warps >= WARPS_LIMIT ? WARPS_LIMIT : warps >= 2 ? 2 : 1;
    p.blocks_of_frame = (warps + p.warps - 1) / p.warps;
    const uint32_t ring_bytes = p.warps * TSR_WARP * RING_WORDS * (uint32_t)sizeof(uint16_t);
    const uint32_t room = (SHARED_BYTES / (WARPS_AT_ONCE / p.warps) - ring_bytes) / p.frames_of_block / 16 * 16;
    p.room = (uint32_t)tsr_max(LEAST_ROOM, (int32_t)room);
    return p;
}

cudaError_t launch_lanes(const tsr_cuda_decode_batch &b, uint32_t number, const tsr_lane_space &s, const lane_policy &p,
                         cudaStream_t stream)
{
    const uint32_t threads = p.warps * TSR_WARP;
    const size_t shared = threads * RING_WORDS * sizeof(uint16_t) + (size_t)p.frames_of_block * p.room;
    const uint32_t blocks =
        p.frames_of_block == 1 ? b.frames * p.blocks_of_frame : (b.frames + p.frames_of_block - 1) / p.frames_of_block;
    const auto launch = [&](auto kernel) -> cudaError_t {
        TSR_CUDA_TRY(tsr_allow_shared(kernel, shared));
        return tsr_launch(kernel, blocks, threads, shared, stream, b, number, s, p);
    };
    TSR_CUDA_TRY(launch(k_lanes<false, false>));
    TSR_CUDA_TRY(launch(k_lanes<true, false>));
    TSR_CUDA_TRY(launch(k_lanes<false, true>));
    return launch(k_lanes<true, true>);
}

} // namespace

size_t tsr_cuda_decode_lanes_workspace(const struct tsr_cuda_decode_batch *batch)
{
    return lay_space_out(*batch, group_of(*batch)).bytes;
}

int tsr_cuda_decode_lanes(const struct tsr_cuda_decode_batch *batch, cudaStream_t stream)
{
    const lane_policy p = choose_policy(*batch);
    const tsr_lane_space s = lay_space_out(*batch, p.group);
    for (uint32_t number = 0; number < batch->frame_planes; number++) { /* later planes refer to earlier ones */
        TSR_CUDA_TRY(tsr_make_lane_tables(*batch, number, p.group, s, stream));
        TSR_CUDA_TRY(launch_lanes(*batch, number, s, p, stream));
    }
    return cudaSuccess;
}
