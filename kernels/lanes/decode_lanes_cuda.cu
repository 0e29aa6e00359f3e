/* Path P's decoder: the lanes of tiles. FORMAT.md sections 7.1 to 7.9; the definition of what a lane does is
 * decode_sample() of decode_lanes_cpu.c. Tables: lane_tables_cuda.cu.
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

#include "transform/predict/median_edge.h"

namespace
{

/* ---- Lanes ---------------------------------------------------------------------------------------------- */

enum {
    CHUNK = TSR_LANE_STEP,
    AHEAD = 8,       /* words a lane that a step may take: 2 a tick */
    LOADED = 4,      /* words that a lane loads at once */
    RING_WORDS = 16, /* of the shared ring, a lane */
    BIAS = 1 << 15,
    BIAS_PAIR = (int32_t)0x80008000,
    HALF = 1 << (TSR_WEIGHT_SHIFT - 1)
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

__device__ __forceinline__ void add_tap(int32_t sum[CHUNK], int32_t weight, const int32_t *v)
{
#pragma unroll
    for (int j = 0; j < CHUNK; j++) sum[j] += weight * v[j];
}

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

/* Taps of earlier planes: W, the place, N, E, S. */
__device__ __forceinline__ void add_references(int32_t sum[CHUNK], const lane_job &job, const int32_t *weight,
                                               int32_t y, int32_t column)
{
#pragma unroll
    for (int r = 0; r < TSR_REFERENCES_LIMIT; r++, weight += TSR_REFERENCE_TAPS) {
        if (r >= job.tables->references) break;
        const uint16_t *const here = job.earlier[r] + (size_t)y * job.pitch, *const up = here - job.pitch;
        const uint16_t *const down = y + 1 < job.height ? here + job.pitch : here;
#pragma unroll
        for (int j = 0; j < CHUNK; j++) {
            const int32_t c = tsr_min(column + j, job.width - 1), right = tsr_min(column + j + 1, job.width - 1);
            const int32_t w = column + j > 0 ? here[tsr_min(column + j - 1, job.width - 1)] : up[0];
            sum[j] += weight[0] * (w - BIAS) + weight[1] * (here[c] - BIAS) + weight[2] * (up[c] - BIAS) +
                      weight[3] * (here[right] - BIAS) + weight[4] * (down[c] - BIAS);
        }
    }
}

/* So many words from the lane's share of the stream on; zeros behind the last. */
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

/* Decodes the tiles of a warp; BINS: rows above that predictors look at. False where a lane has seen that its tile is
 * corrupt. */
template <int BINS, bool RANS> __device__ __forceinline__ bool decode_tiles(const lane_job &job, uint32_t group)
{
    const uint32_t lane = threadIdx.x % TSR_WARP, me = lane % group, base = lane - me;
    const uint32_t of_group = (group == TSR_WARP ? TSR_FULL_WARP : (1u << group) - 1u) << base;
    const uint32_t before = of_group & ((1u << lane) - 1u), ring_mask = RING_WORDS * group - 1;
    const int32_t lanes = job.is_there ? job.lanes : 1, width = job.is_there ? job.width : 0;
    const int32_t height = job.is_there ? job.height : 0;
    const int32_t across = (width + CHUNK - 1) / CHUNK, period = tsr_max(across, 2 * lanes), delay = period - 2 * lanes;
    const int source = (int)base + (me == 0 ? lanes - 1 : (int)me - 1);
    const bool is_last = job.is_there && (int32_t)me == lanes - 1, any_delay = __any_sync(TSR_FULL_WARP, delay > 0);
    const tsr_lane_tables *const t = job.tables;
    const uint8_t *const codes = reinterpret_cast<const uint8_t *>(t) + (job.is_there ? t->codes_at : 0);
    const int32_t range = job.is_there ? (int32_t)t->range : 1;
    const int32_t refill_bits = job.is_there ? t->refill_bits : 0, shift = job.is_there ? t->shift : 0;
    const bool has_intensities = job.is_there && t->has_intensities;
    const bool aligned = reinterpret_cast<uintptr_t>(job.samples) % 8 == 0; /* pitches are */
    const int32_t blocks = (width + TSR_PREDICTOR_BLOCK - 1) / TSR_PREDICTOR_BLOCK;
    const uint32_t steps = tsr_warp_max(
        job.is_there ? (uint32_t)(period * ((height + lanes - 1) / lanes - 1) + across + 2 * (lanes - 1)) : 0u);

    const chunk none = make_uint2(0, 0);
    chunk left[BINS + 1], here[BINS + 1], right[BINS + 1]; /* of the rows above, from 1 on; left[0]: of this row */
    chunk further = none, done = none;                     /* two to the left, and the one at work */
    chunk mag_left[2], mag_here[3], mag_right[3], mag_done = none;
#pragma unroll
    for (int u = 0; u <= BINS; u++) left[u] = here[u] = right[u] = none;
#pragma unroll
    for (int u = 0; u < 3; u++) mag_here[u] = mag_right[u] = none;
    mag_left[0] = mag_left[1] = none;
    uint4 waiting[3] = {make_uint4(0, 0, 0, 0), make_uint4(0, 0, 0, 0), make_uint4(0, 0, 0, 0)};
    int32_t slot = 0;
    uint32_t high = 0, low = 0, state = job.state; /* of bits, left-aligned; rANS */
    int32_t count = 0;
    uint32_t next = 0, supplied = 0; /* words taken, and in the ring, of the group */
    uint2 loaded = load_words(job, LOADED * me);
    int32_t y = job.is_there && (int32_t)me < lanes ? (int32_t)me : height, q = -2 * (int32_t)me;
    int32_t run = 0, first_above = 0;
    bool after_run = false, bad = false;
    const uint8_t *const label = job.is_there && t->set ? job.label : NULL;
    const int32_t classes = label ? t->classes : 0;
    int32_t next_label = label && y < height ? label[(y / TSR_PREDICTOR_BLOCK) * blocks] : 0;
    const int4 *weights = NULL; /* of the class; NULL: the median edge predictor */

    for (uint32_t step = 0; step < steps; step++) {
        /* Words. */
        while (__any_sync(TSR_FULL_WARP, supplied - next < AHEAD * group)) {
            if (supplied - next < AHEAD * group) {
                *reinterpret_cast<uint2 *>(&job.ring[(supplied + LOADED * me) & ring_mask]) = loaded;
                supplied += LOADED * group;
                loaded = load_words(job, supplied + LOADED * me);
            }
        }
        __syncwarp();

        /* Chunks move on, and to the row below. */
#pragma unroll
        for (int u = 1; u <= BINS; u++) {
            left[u] = here[u];
            here[u] = right[u];
        }
        further = left[0];
        left[0] = done;
        mag_left[1] = mag_here[1];
        mag_here[1] = mag_right[1];
        mag_here[2] = mag_right[2];
        mag_left[0] = mag_done;
        if (me == 0 && step <= (uint32_t)period) { /* there is nothing above row 0: it stands for what would be */
#pragma unroll
            for (int u = 1; u <= BINS; u++) left[u] = left[0];
            mag_left[1] = mag_left[0];
        }
#pragma unroll
        for (int u = 1; u <= BINS; u++) right[u] = take_chunk(left[u - 1], source);
        mag_right[1] = take_chunk(mag_left[0], source);
        mag_right[2] = take_chunk(mag_left[1], source);
        const int32_t first_left = __shfl_sync(TSR_FULL_WARP, first_above, source);
        if (any_delay) {
            if (me == 0 && delay > 0) {
                right[1] = make_uint2(waiting[0].x, waiting[0].y);
                mag_right[1] = make_uint2(waiting[0].z, waiting[0].w);
                mag_right[2] = make_uint2(waiting[1].x, waiting[1].y);
                if (BINS > 1) right[2 % (BINS + 1)] = make_uint2(waiting[1].z, waiting[1].w);
                if (BINS > 2) right[3 % (BINS + 1)] = make_uint2(waiting[2].x, waiting[2].y);
                if (BINS > 3) right[4 % (BINS + 1)] = make_uint2(waiting[2].z, waiting[2].w);
            }
            if (is_last && delay > 0) {
                uint4 *const at = job.delayed + 3 * slot;
                at[0] = make_uint4(left[0].x, left[0].y, mag_left[0].x, mag_left[0].y);
                at[1] = make_uint4(mag_left[1].x, mag_left[1].y, left[1].x, left[1].y);
                if (BINS > 2)
                    at[2] = make_uint4(left[2 % (BINS + 1)].x, left[2 % (BINS + 1)].y, left[3 % (BINS + 1)].x,
                                       left[3 % (BINS + 1)].y);
            }
            __syncwarp();
            slot = slot + 1 < delay ? slot + 1 : 0;
            if (me == 0 && delay > 0 && step + 1 >= (uint32_t)delay) {
                const uint4 *const at = job.delayed + 3 * slot;
                waiting[0] = at[0];
                waiting[1] = at[1];
                if (BINS > 2) waiting[2] = at[2];
            }
            __syncwarp();
        }

        /* A row begins. */
        if (q == 0) {
            const int32_t first = low_of(here[BINS].x);
            left[0] = y == 0 ? make_uint2((uint32_t)BIAS_PAIR, (uint32_t)BIAS_PAIR) : all_first(here[1]);
            further = left[0];
#pragma unroll
            for (int u = 1; u < BINS; u++) left[u] = all_first(here[u + 1]);
            left[BINS] = all_first(make_uint2((uint32_t)(y <= BINS ? first : first_left), 0));
            first_above = first;
            mag_left[0] = y == 0 ? none : all_first(mag_here[1]);
            mag_left[1] = y <= 1 ? none : all_first(mag_here[2]);
            run = 0;
            after_run = false;
        }
        const bool active = y < height && q >= 0 && q < across;
        if (active && label && q % (TSR_PREDICTOR_BLOCK / CHUNK) == 0) {
            weights = next_label < classes
                          ? reinterpret_cast<const int4 *>(reinterpret_cast<const uint8_t *>(t) + t->weights_at +
                                                           (uint32_t)next_label * t->weights * 4)
                          : NULL;
            int32_t block = q / (TSR_PREDICTOR_BLOCK / CHUNK) + 1, row = y;
            if (block == blocks) {
                block = 0;
                row += lanes;
            }
            if (row < height) next_label = label[(row / TSR_PREDICTOR_BLOCK) * blocks + block];
        }

        /* What the rows above give. */
        const bool is_end = q == across - 1, linear = y == 0 || weights != NULL;
        int32_t sum[CHUNK] = {HALF, HALF, HALF, HALF}, above[CHUNK + 1] = {0, 0, 0, 0, 0};
        int4 near = make_int4(1 << TSR_WEIGHT_SHIFT, 0, 0, 0);
        if (BINS > 1 && active && y > 0 && weights) {
            int32_t v[12];
            near = weights[0];
            spread(left[1], here[1], is_end ? all_last(here[1]) : right[1], v);
            int4 w = weights[1];
            add_tap(sum, w.x, v + 1);
            add_tap(sum, w.y, v + 2);
            add_tap(sum, w.z, v + 3);
            add_tap(sum, w.w, v + 4);
            w = weights[2];
            add_tap(sum, w.x, v + 5);
            add_tap(sum, w.y, v + 6);
            add_tap(sum, w.z, v + 7);
            int4 wide = make_int4(0, 0, 0, 0), last = wide;
            if (BINS > 3) {
                wide = weights[5];
                last = weights[6];
                add_tap(sum, w.w, v + 8);
                add_tap(sum, wide.x, v);
            }
            spread(left[2 % (BINS + 1)], here[2 % (BINS + 1)],
                   is_end ? all_last(here[2 % (BINS + 1)]) : right[2 % (BINS + 1)], v);
            w = weights[3];
            add_tap(sum, w.x, v + 2);
            add_tap(sum, w.y, v + 3);
            add_tap(sum, w.z, v + 4);
            add_tap(sum, w.w, v + 5);
            w = weights[4];
            add_tap(sum, w.x, v + 6);
            if (BINS > 3) {
                add_tap(sum, wide.y, v + 1);
                add_tap(sum, wide.z, v + 7);
            }
            spread(left[3 % (BINS + 1)], here[3 % (BINS + 1)],
                   is_end ? all_last(here[3 % (BINS + 1)]) : right[3 % (BINS + 1)], v);
            add_tap(sum, w.y, v + 3);
            add_tap(sum, w.z, v + 4);
            add_tap(sum, w.w, v + 5);
            if (BINS > 3) {
                add_tap(sum, last.x, v + 2);
                add_tap(sum, last.y, v + 6);
                spread(left[4 % (BINS + 1)], here[4 % (BINS + 1)],
                       is_end ? all_last(here[4 % (BINS + 1)]) : right[4 % (BINS + 1)], v);
                add_tap(sum, last.z, v + 3);
                add_tap(sum, last.w, v + 4);
                w = weights[7];
                add_tap(sum, w.x, v + 5);
                spread(further, left[0], left[0], v); /* this row, from 8 columns to the left on */
                add_tap(sum, w.y, v + 2);
                add_tap(sum, wide.w, v + 3);
                add_tap(sum, near.w, v + 4);
            }
            if (t->references > 0)
                add_references(sum, job, reinterpret_cast<const int32_t *>(weights + TSR_LANE_REFERENCE_WEIGHTS / 4), y,
                               q * CHUNK);
        } else { /* N and NW for the median edge predictor */
            above[0] = high_of(left[1].y);
            above[1] = low_of(here[1].x);
            above[2] = high_of(here[1].x);
            above[3] = low_of(here[1].y);
            above[4] = high_of(here[1].y);
        }
        uint32_t quiet[2] = {0, 0}; /* what magnitudes above give to the activity, two columns in a number */
        if (y > 0) {
            const chunk m = mag_here[1], to_right = is_end ? all_last(m) : mag_right[1];
            const uint32_t middle = between(m.x, m.y);
            quiet[0] = 2 * m.x + between(mag_left[1].y, m.x) + middle + mag_here[2].x;
            quiet[1] = 2 * m.y + middle + between(m.y, to_right.x) + mag_here[2].y;
        }

        /* Four ticks. */
        int32_t w1 = high_of(left[0].y), w2 = low_of(left[0].y), w3 = high_of(left[0].x);
        int32_t m1 = high_of(mag_left[0].y), m2 = low_of(mag_left[0].y);
        const int32_t of_m1 = y == 0 ? 6 : 2, of_m2 = y == 0 ? 2 : 1, in_row = active ? width - q * CHUNK : 0;
#pragma unroll
        for (int j = 0; j < CHUNK; j++) {
            int32_t prediction;
            if (BINS == 1) {
                prediction = (y == 0 ? w1 : tsr_median_edge(w1, above[j + 1], above[j])) + BIAS;
            } else {
                prediction = ((sum[j] + near.x * w1 + near.y * w2 + near.z * w3) >> TSR_WEIGHT_SHIFT) + BIAS;
                if (!linear) prediction = tsr_median_edge(w1, above[j + 1], above[j]) + BIAS;
                prediction = max(0, min(range - 1, prediction));
            }
            const bool live = j < in_row, coding = live && run == 0;
            const int32_t activity =
                (int32_t)(j % 2 ? quiet[j / 2] >> 16 : quiet[j / 2] & 0xffffu) + of_m1 * m1 + of_m2 * m2;
            uint32_t code = 0, entry = 0, value = 0;
            bool may_run = false;
            if (coding) {
                if (activity == 0) {
                    may_run = !after_run;
                    code = after_run ? t->interruption : t->run;
                } else {
                    uint32_t cell = t->row_of_bin[tsr_activity_bin(activity)];
                    if (has_intensities) {
                        const uint32_t bin = (uint32_t)prediction >> shift;
                        uint32_t g = t->group_of[bin >> TSR_LANE_BUCKET_BITS];
                        while (bin >= t->cut[g]) g++;
                        cell += g;
                    }
                    code = t->cell[cell];
                }
                bad = bad || (code & TSR_LANE_NO_CODE);
                if (code & TSR_LANE_NO_CODE) code = t->run;
            }
            if (RANS) {
                uint32_t raw = 0;
                if (coding) {
                    const uint32_t *const words = reinterpret_cast<const uint32_t *>(codes) + (code & 0xffffu);
                    const uint32_t at = state & (TSR_RANS_TOTAL - 1);
                    const uint32_t *symbol = words + TSR_LANE_SLOT_INDICES / 4 +
                                             reinterpret_cast<const uint8_t *>(words)[at >> TSR_LANE_SLOT_BITS];
                    uint32_t word = *symbol;
                    while (at - (word >> 8 & 0xfffu) > word >> 20) word = *++symbol;
                    state = ((word >> 20) + 1) * (state >> TSR_RANS_BITS) + at - (word >> 8 & 0xfffu);
                    entry = t->of_symbol[word & 255u];
                    raw = entry >> TSR_LANE_ENTRY_RAW & 15u;
                }
                const bool wants = coding && tsr_rans_wants_word(state);
                const bool more = coding && (wants ? state >> raw == 0 : state >> raw < TSR_RANS_LOW);
                const uint32_t first = __ballot_sync(TSR_FULL_WARP, wants), second = __ballot_sync(TSR_FULL_WARP, more);
                if (coding) {
                    uint32_t at = next + (uint32_t)__popc(first & before) + (uint32_t)__popc(second & before);
                    if (wants) state = tsr_rans_with_word(state, job.ring[at++ & ring_mask]);
                    value = tsr_rans_get_raw(&state, (int)raw);
                    if (more) state = tsr_rans_with_word(state, job.ring[at & ring_mask]);
                }
                next += (uint32_t)__popc(first & of_group) + (uint32_t)__popc(second & of_group);
            } else {
                const bool wants = coding && count < refill_bits;
                const bool more = coding && count + TSR_LANE_WORD_BITS < refill_bits;
                const uint32_t first = __ballot_sync(TSR_FULL_WARP, wants), second = __ballot_sync(TSR_FULL_WARP, more);
                if (wants) {
                    const uint32_t at = next + (uint32_t)__popc(first & before) + (uint32_t)__popc(second & before);
                    uint32_t word = (uint32_t)job.ring[at & ring_mask] << 16;
                    int32_t bits = TSR_LANE_WORD_BITS;
                    if (more) {
                        word |= job.ring[(at + 1) & ring_mask];
                        bits = 2 * TSR_LANE_WORD_BITS;
                    }
                    /* count is 0..31 here */
                    high |= word >> count;
                    low |= __funnelshift_r(0, word, (uint32_t)count);
                    count += bits;
                }
                next += (uint32_t)__popc(first & of_group) + (uint32_t)__popc(second & of_group);
                if (coding) {
                    const uint32_t bits = high >> (32 - TSR_CODE_LIMIT), longs = code >> 16 & 0x1fffu;
                    const uint32_t at =
                        bits >= longs ? TSR_LANE_DIRECT_ENTRIES + bits - longs : bits >> TSR_LANE_LONG_BITS;
                    entry = reinterpret_cast<const uint16_t *>(codes)[(code & 0xffffu) + at];
                    const uint32_t length = entry & 15u, raw = entry >> TSR_LANE_ENTRY_RAW & 15u, both = length + raw;
                    value = __funnelshift_l(low, high, length) >> 1 >> (31 - raw);
                    high = __funnelshift_lc(low, high, both);
                    low = __funnelshift_lc(0, low, both);
                    count -= (int32_t)both;
                }
            }
            int32_t residual = 0;
            if (coding) {
                value |= (entry >> TSR_LANE_ENTRY_VALUE & 15u) << (entry >> TSR_LANE_ENTRY_RAW & 15u);
                if (entry & TSR_LANE_ENTRY_RUN) {
                    bad = bad || !may_run;
                    run = (int32_t)(value | (entry & (uint32_t)TSR_LANE_ENTRY_TO_END) << TSR_LANE_TO_END_SHIFT);
                } else {
                    residual = tsr_unfold(value);
                }
            }
            int32_t sample = tsr_residual_inverse(residual, prediction, range);
            if ((uint32_t)sample >= (uint32_t)range) {
                bad = bad || live;
                sample = live ? prediction : 0;
            }
            const bool in_run = run > 0;
            if (live) {
                run -= in_run;
                after_run = in_run && run == 0;
                w3 = w2;
                w2 = w1;
                w1 = sample - BIAS;
                m2 = m1;
                m1 = tsr_context_magnitude(residual);
            }
            /* Behind a row's end the last ones are repeated. */
            if (j == 0) done.x = (uint32_t)w1 & 0xffffu, mag_done.x = (uint32_t)m1;
            if (j == 1) done.x |= (uint32_t)w1 << 16, mag_done.x |= (uint32_t)m1 << 16;
            if (j == 2) done.y = (uint32_t)w1 & 0xffffu, mag_done.y = (uint32_t)m1;
            if (j == 3) done.y |= (uint32_t)w1 << 16, mag_done.y |= (uint32_t)m1 << 16;
        }
        if (active) {
            uint16_t *const out = job.samples + (size_t)y * job.pitch + q * CHUNK;
            const chunk store = make_uint2(done.x ^ (uint32_t)BIAS_PAIR, done.y ^ (uint32_t)BIAS_PAIR);
            if (aligned && in_row >= CHUNK) {
                *reinterpret_cast<uint2 *>(out) = store;
            } else {
                out[0] = (uint16_t)store.x;
                if (in_row > 1) out[1] = (uint16_t)(store.x >> 16);
                if (in_row > 2) out[2] = (uint16_t)store.y;
                if (in_row > 3) out[3] = (uint16_t)(store.y >> 16);
            }
        }
        if (++q == period) {
            q = 0;
            y += lanes;
        }
    }
    if (!job.is_there) return true;
    if (next != job.word_count) return false;
    if (RANS ? (int32_t)me < tsr_min(lanes, height) && state != TSR_RANS_LOW : (high | low) != 0) return false;
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

/* Planes whose predictors look at four rows above (DEEP) or those of all others: the former's registers would cost the
 * latter. */
template <bool DEEP, bool RANS>
__global__ void __launch_bounds__(WARPS_LIMIT *TSR_WARP, WARPS_AT_ONCE / WARPS_LIMIT)
    k_lanes(const tsr_cuda_decode_batch b, uint32_t number, const tsr_lane_space s, const lane_policy policy)
{
    TSR_DYNAMIC_SHARED(memory);
    const uint32_t lane = threadIdx.x % TSR_WARP, warp = threadIdx.x / TSR_WARP, group = policy.group;
    const uint32_t of_warp = TSR_WARP / group, in_warp = lane / group;
    uint16_t *const rings = reinterpret_cast<uint16_t *>(memory);
    uint8_t *const rooms = memory + blockDim.x * RING_WORDS * sizeof(uint16_t);
    uint32_t frame, tile_number, place = 0;
    if (policy.frames_of_block == 1) {
        frame = blockIdx.x / policy.blocks_of_frame;
        tile_number = ((blockIdx.x - frame * policy.blocks_of_frame) * policy.warps + warp) * of_warp + in_warp;
    } else {
        place = in_warp / b.tiles;
        frame = blockIdx.x * policy.frames_of_block + place;
        tile_number = in_warp - place * b.tiles;
    }
    const bool is_dealt = place < policy.frames_of_block && frame < b.frames && tile_number < b.tiles;

    /* Tables that fit are looked up in shared memory. */
    bool any = false;
    for (uint32_t i = 0; i < policy.frames_of_block; i++) {
        const uint32_t f = policy.frames_of_block == 1 ? frame : blockIdx.x * policy.frames_of_block + i;
        if (f >= b.frames || !tsr_lane_model(b, f, number)) continue;
        const tsr_lane_tables *const t = tsr_lane_tables_of(b, f * b.frame_planes + number);
        if ((t->set == TSR_LANE_DEEP_SET) != DEEP || t->rans != RANS) continue;
        any = true;
        if (t->bytes > policy.room) continue;
        const uint4 *const from = reinterpret_cast<const uint4 *>(t);
        uint4 *const to = reinterpret_cast<uint4 *>(rooms + i * policy.room);
        for (uint32_t k = threadIdx.x; k < t->bytes / sizeof(uint4); k += blockDim.x) to[k] = from[k];
    }
    __syncthreads();
    if (!any) return;

    lane_job job = {};
    const uint32_t tile_index = frame * b.tiles + tile_number;
    const uint32_t plane = frame * b.frame_planes + number;
    if (is_dealt && s.stream[tile_index].is_there && tsr_lane_model(b, frame, number) &&
        (tsr_lane_tables_of(b, plane)->set == TSR_LANE_DEEP_SET) == DEEP &&
        tsr_lane_tables_of(b, plane)->rans == RANS) {
        const tsr_lane_stream stream = s.stream[tile_index];
        const tsr_tile tile = tsr_decode_tile_at(&b, tile_number);
        const tsr_frame_model *const model = tsr_decode_model(&b, frame);
        job.is_there = true;
        job.tables = tsr_lane_tables_of(b, plane);
        if (job.tables->bytes <= policy.room)
            job.tables = reinterpret_cast<tsr_lane_tables *>(rooms + place * policy.room);
        job.width = tile.width;
        job.height = tile.height;
        job.lanes = job.tables->lanes;
        job.samples = b.samples + plane * b.plane_samples + tile.first;
        job.pitch = b.pitch;
        job.label = s.label + (size_t)tile_index * s.labels;
        job.words = b.payloads + stream.at;
        job.word_count = stream.words;
        if (RANS) {
            const int32_t states = tsr_min(job.lanes, tile.height), me = (int32_t)(lane % group);
            for (int i = 3; i >= 0 && me < states; i--) job.state = job.state << 8 | job.words[4 * me + i];
            job.words += 4 * states;
        }
        job.delayed = s.delayed + (size_t)tile_index * s.slots * 3;
        /* As tsr_reference_planes() has them. */
        int wanted = job.tables->references;
        for (int q = (int)number - 1; q >= 0 && wanted > 0; q--) {
            if (model->plane[q].range < 2) continue;
            const uint16_t *const earlier = b.samples + (plane - number + (uint32_t)q) * b.plane_samples + tile.first;
            if (wanted == job.tables->references)
                job.earlier[0] = earlier;
            else
                job.earlier[1] = earlier;
            wanted--;
        }
    } else {
        job.lanes = 1;
        job.tables = tsr_lane_tables_of(b, 0);
    }
    job.ring = rings + (warp * TSR_WARP + in_warp * group) * RING_WORDS;
    const bool good = DEEP ? decode_tiles<4, RANS>(job, group)
                      : __any_sync(TSR_FULL_WARP, job.is_there && job.tables->set > 0)
                          ? decode_tiles<3, RANS>(job, group)
                          : decode_tiles<1, RANS>(job, group);
    if (!good) tsr_note_bad_tile(b, frame, tile_number);
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
