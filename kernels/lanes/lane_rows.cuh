/* The rows above a lane of path P's decoder on a GPU: how their chunks travel from lane to lane, and what they give to
 * the prediction of a chunk. For decode_lanes_cuda.cu. */
#ifndef TSR_KERNELS_LANES_LANE_ROWS_CUH
#define TSR_KERNELS_LANES_LANE_ROWS_CUH

#include "lane_words.cuh"

#include <utility>

namespace
{

/* ---- Rows above ----------------------------------------------------------------------------------------- */

/* The rows above a lane, and its own; ROWS: rows above that predictors look at. */
template <int ROWS> struct rows_above {
    chunk left[ROWS + 1], here[ROWS + 1], right[ROWS + 1]; /* of the rows above, from 1 on; left[0]: of this row */
    chunk further, done;                                   /* two to the left, and the one at work */
    chunk mag_left[2], mag_here[3], mag_right[3], mag_done;
    uint4 waiting[3];
    int32_t slot, first_above;
};

template <int ROWS> __device__ __forceinline__ void clear_rows(rows_above<ROWS> &r)
{
    const chunk none = make_uint2(0, 0);
#pragma unroll
    for (int u = 0; u <= ROWS; u++) r.left[u] = r.here[u] = r.right[u] = none;
#pragma unroll
    for (int u = 0; u < 3; u++) {
        r.mag_here[u] = r.mag_right[u] = none;
        r.waiting[u] = make_uint4(0, 0, 0, 0);
    }
    r.mag_left[0] = r.mag_left[1] = r.mag_done = r.further = r.done = none;
    r.slot = r.first_above = 0;
}

/* Chunks on their way from the last lane to the first one, which reaches them delay steps later. */
template <int ROWS>
__device__ __forceinline__ void delay_chunks(const lane_job &job, const lane_frame &f, rows_above<ROWS> &r,
                                             uint32_t step)
{
    if (f.me == 0 && f.delay > 0) {
        r.right[1] = make_uint2(r.waiting[0].x, r.waiting[0].y);
        r.mag_right[1] = make_uint2(r.waiting[0].z, r.waiting[0].w);
        r.mag_right[2] = make_uint2(r.waiting[1].x, r.waiting[1].y);
        if (ROWS > 1) r.right[2 % (ROWS + 1)] = make_uint2(r.waiting[1].z, r.waiting[1].w);
        if (ROWS > 2) r.right[3 % (ROWS + 1)] = make_uint2(r.waiting[2].x, r.waiting[2].y);
        if (ROWS > 3) r.right[4 % (ROWS + 1)] = make_uint2(r.waiting[2].z, r.waiting[2].w);
    }
    if (f.is_last && f.delay > 0) {
        uint4 *const at = job.delayed + 3 * r.slot;
        at[0] = make_uint4(r.left[0].x, r.left[0].y, r.mag_left[0].x, r.mag_left[0].y);
        at[1] = make_uint4(r.mag_left[1].x, r.mag_left[1].y, r.left[1].x, r.left[1].y);
        if (ROWS > 2)
            at[2] = make_uint4(r.left[2 % (ROWS + 1)].x, r.left[2 % (ROWS + 1)].y, r.left[3 % (ROWS + 1)].x,
                               r.left[3 % (ROWS + 1)].y);
    }
    __syncwarp();
    r.slot = r.slot + 1 < f.delay ? r.slot + 1 : 0;
    if (f.me == 0 && f.delay > 0 && step + 1 >= (uint32_t)f.delay) {
        const uint4 *const at = job.delayed + 3 * r.slot;
        r.waiting[0] = at[0];
        r.waiting[1] = at[1];
        if (ROWS > 2) r.waiting[2] = at[2];
    }
    __syncwarp();
}

/* Chunks move on, and to the row below. Returns the first sample that the lane above has above its row. */
template <int ROWS>
__device__ __forceinline__ int32_t move_chunks(const lane_job &job, const lane_frame &f, rows_above<ROWS> &r,
                                               uint32_t step)
{
#pragma unroll
    for (int u = 1; u <= ROWS; u++) {
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
        for (int u = 1; u <= ROWS; u++) r.left[u] = r.left[0];
        r.mag_left[1] = r.mag_left[0];
    }
#pragma unroll
    for (int u = 1; u <= ROWS; u++) r.right[u] = take_chunk(r.left[u - 1], f.source);
    r.mag_right[1] = take_chunk(r.mag_left[0], f.source);
    r.mag_right[2] = take_chunk(r.mag_left[1], f.source);
    const int32_t first_left = __shfl_sync(TSR_FULL_WARP, r.first_above, f.source);
    if (f.any_delay) delay_chunks<ROWS>(job, f, r, step);
    return first_left;
}

/* A row begins: what is on its left, and on that of the rows above. */
template <int ROWS>
__device__ __forceinline__ void begin_row(rows_above<ROWS> &r, int32_t y, int32_t first_left, struct tsr_run &run)
{
    const chunk none = make_uint2(0, 0);
    const int32_t first = low_of(r.here[ROWS].x);
    r.left[0] = y == 0 ? make_uint2((uint32_t)BIAS_PAIR, (uint32_t)BIAS_PAIR) : all_first(r.here[1]);
    r.further = r.left[0];
#pragma unroll
    for (int u = 1; u < ROWS; u++) r.left[u] = all_first(r.here[u + 1]);
    r.left[ROWS] = all_first(make_uint2((uint32_t)(y <= ROWS ? first : first_left), 0));
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

template <int UP, int ROWS>
__device__ __forceinline__ void add_row_above(int32_t sum[CHUNK], const int4 *weights, const rows_above<ROWS> &r,
                                              bool is_end)
{
    int32_t v[3 * CHUNK];
    spread(r.left[UP], r.here[UP], is_end ? all_last(r.here[UP]) : r.right[UP], v);
    add_row<UP, TSR_CONSTANT(tsr_neighbours)[ROWS == 4 ? TSR_LANE_DEEP_SET : 2], CHUNK>(
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
    int32_t last_ne;         /* of anchored planes: NE of the last column */
    int4 near;
    uint32_t activity[2]; /* two columns in a number */
    struct tsr_left_activity weight;
};

/* What all taps but W, WW, WWW give to a chunk. */
template <int ROWS>
__device__ __forceinline__ void sum_above(const lane_job &job, const lane_walk &at, const rows_above<ROWS> &r,
                                          bool is_end, chunk_above &a)
{
    const int4 *const weights = at.weights;
    a.near = weights[0];
    add_row_above<1, ROWS>(a.sum, weights, r, is_end);
    add_row_above<2 % (ROWS + 1), ROWS>(a.sum, weights, r, is_end);
    add_row_above<3 % (ROWS + 1), ROWS>(a.sum, weights, r, is_end);
    if (ROWS > 3) {
        int32_t v[3 * CHUNK];
        add_row_above<4 % (ROWS + 1), ROWS>(a.sum, weights, r, is_end);
        spread(r.further, r.left[0], r.left[0], v); /* this row, from 8 columns to the left on */
        add_row<0, TSR_NEIGHBOURS_LIMIT, 2 * CHUNK>(a.sum, weights, v,
                                                    std::make_integer_sequence<int, TSR_LANE_REFERENCE_WEIGHTS>());
    }
    if (job.tables->references > 0)
        add_references(a.sum, job, weights, at.y, at.q * CHUNK, std::make_integer_sequence<int, TSR_REFERENCE_TAPS>());
}

/* N and NW for the median edge predictor, and for anchors. */
template <int ROWS> __device__ __forceinline__ void find_edges(const rows_above<ROWS> &r, chunk_above &a)
{
    a.edge[0] = high_of(r.left[1].y);
    a.edge[1] = low_of(r.here[1].x);
    a.edge[2] = high_of(r.here[1].x);
    a.edge[3] = low_of(r.here[1].y);
    a.edge[4] = high_of(r.here[1].y);
}

template <int ROWS, bool ANCHORED>
__device__ __forceinline__ chunk_above look_above(const lane_job &job, const lane_frame &f, const lane_walk &at,
                                                  const rows_above<ROWS> &r, bool active)
{
    const bool is_end = at.q == f.across - 1;
    chunk_above a;
    a.linear = ROWS > 1 && (at.y == 0 || at.weights != NULL); /* the first row: W alone */
    a.first_row = ROWS == 1 && at.y == 0;
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
    a.last_ne = -BIAS;
    if (ROWS > 1 && active && at.y > 0 && at.weights) {
        if constexpr (ROWS > 1) sum_above<ROWS>(job, at, r, is_end, a);
    } else if (!ANCHORED) {
        find_edges<ROWS>(r, a);
    }
    if constexpr (ANCHORED) {
        find_edges<ROWS>(r, a);
        a.last_ne = is_end ? a.edge[CHUNK] : low_of(r.right[1].x);
        if (at.y == 0) { /* what is above the first row */
#pragma unroll
            for (int j = 0; j <= CHUNK; j++) a.edge[j] = -BIAS;
            a.last_ne = -BIAS;
        }
    }
    return a;
}

} // namespace

#endif
