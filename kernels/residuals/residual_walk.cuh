/* The walk that counting and coding samples share: a warp goes down a band of a tile's rows, eight columns a lane, and
 * keeps the magnitudes of the last two rows in shared memory. FORMAT.md sections 7.2 to 7.4, and 7.10.
 *
 * Everything up to activities is done with two columns a word: 16 bits are enough for samples, predictions, folded
 * residuals and activities, and sums and differences of such words carry nothing from half to half that they do not
 * take back. */
#ifndef TSR_KERNELS_RESIDUALS_RESIDUAL_WALK_CUH
#define TSR_KERNELS_RESIDUALS_RESIDUAL_WALK_CUH

#include "kernels/machine/device.cuh"

#include "transform/predict/residual.h"
#include "entropy/runs.h"
#include "kernels/training/predict_blocks.cuh"
#include "kernels/planes/sample_pairs.cuh"

namespace tsr_walk
{

enum {
    COLUMNS = 8, /* of a lane */
    PAIRS = COLUMNS / 2,
    CHUNK = COLUMNS * TSR_WARP,
    WARM_ROWS = 2, /* above a band: their magnitudes are needed */
    GUARD = 8      /* samples before a row of magnitudes, of which two are used; one after */
};

/* Bands of a tile: of this many rows, or of the rows that are looked at alone. */
struct band_plan {
    uint32_t bands;     /* of a tile */
    int32_t step, rows; /* from band to band; of a band */
    uint32_t each;      /* bands that a warp takes, one after the other */
    uint32_t blocks;    /* of a plane */
    int32_t pitch;      /* of a row of magnitudes */
};

static inline band_plan plan_bands(const tsr_predict_batch &p, int32_t period, int32_t rows, unsigned warps,
                                   uint32_t each)
{
    band_plan plan;
    plan.step = period > 0 ? period : rows;
    plan.rows = period > 0 ? (int32_t)TSR_SAMPLED_ROWS : rows;
    plan.bands = ((uint32_t)p.b.shape.tile_height + (uint32_t)plan.step - 1) / (uint32_t)plan.step;
    plan.each = each;
    plan.blocks = (p.b.shape.tiles * plan.bands + warps * each - 1) / (warps * each);
    plan.pitch = GUARD + ((int32_t)p.tile_pitch + CHUNK - 1) / CHUNK * CHUNK + GUARD; /* lanes outside read, too */
    return plan;
}

static inline size_t walk_bytes(const band_plan &plan, unsigned warps)
{
    return warps * WARM_ROWS * (size_t)plan.pitch * sizeof(uint16_t);
}

/* A warp's band. */
struct band_place {
    uint32_t plane, number; /* number: of the tile, of all */
    tsr_tile tile;
    int32_t first, end; /* rows */
};

static __device__ __forceinline__ uint32_t plane_of_block(const band_plan &plan)
{
    return blockIdx.x / plan.blocks;
}

/* turn: which of the warp's bands. False: there is none. */
static __device__ __forceinline__ bool place_band(const tsr_predict_batch &p, const band_plan &plan, unsigned warps,
                                                  uint32_t turn, band_place *at)
{
    at->plane = plane_of_block(plan);
    const uint32_t unit = ((blockIdx.x - at->plane * plan.blocks) * plan.each + turn) * warps + threadIdx.x / TSR_WARP;
    const uint32_t tile = unit / plan.bands;
    if (tile >= p.b.shape.tiles) return false;
    at->number = at->plane * p.b.shape.tiles + tile;
    at->tile = tsr_tile_place(&p.b, tile).tile;
    at->first = (int32_t)(unit - tile * plan.bands) * plan.step;
    at->end = tsr_min(at->tile.height, at->first + plan.rows);
    return at->first < at->end;
}

/* Eight columns of a lane as the passes see them, two a word. */
struct walked_columns {
    int32_t row, column, count; /* count: of columns inside the tile, 1 to 8 */
    uint32_t value[PAIRS];      /* folded residuals */
    uint32_t prediction[PAIRS]; /* of anchored planes: bins of anchors, in place of the predictions' bins */
    uint32_t activity[PAIRS];
    bool is_plain;            /* all eight of each lane are inside, and none is in a run, or quiet if that matters */
    uint32_t quiet, run, was; /* bits by column: activity 0, where not is_plain; in a run; the column before is */
};

static __device__ __forceinline__ uint32_t low_half(uint32_t pair)
{
    return pair & 0xffffu;
}

static __device__ __forceinline__ uint32_t high_half(uint32_t pair)
{
    return pair >> 16;
}

/* Column i of some pairs; i is known to the compiler. */
static __device__ __forceinline__ uint32_t half_of(const uint32_t *pair, int i)
{
    return i % 2 ? high_half(pair[i / 2]) : low_half(pair[i / 2]);
}

/* The second of one pair and the first of the next. */
static __device__ __forceinline__ uint32_t between(uint32_t pair, uint32_t next)
{
    return __byte_perm(pair, next, 0x5432);
}

/* Two values up to 2^15: bits 15 and 31 say which of them are not 0. */
static __device__ __forceinline__ uint32_t nonzero_halves(uint32_t pair)
{
    return pair + 0x7fff7fffu;
}

/* Bits by column of those below count that are 0; what others hold does not matter. */
static __device__ __forceinline__ uint32_t zero_columns(const uint32_t pair[PAIRS], int32_t count)
{
    uint32_t top[2]; /* bits of four bytes */
#pragma unroll
    for (int h = 0; h < 2; h++)
        top[h] = ~__byte_perm(nonzero_halves(pair[2 * h]), nonzero_halves(pair[2 * h + 1]), 0x7531) & 0x80808080u;
    return __dp4a(top[1], 0x80402010u, __dp4a(top[0], 0x08040201u, 0u)) >> 7 & ((1u << count) - 1u);
}

/* Ones at the bottom of fewer than 32 bits. */
static __device__ __forceinline__ int trailing_ones(uint32_t bits)
{
    return __ffs((int)~bits) - 1;
}

/* Runs of a row so far. */
struct row_runs {
    bool goes_on;  /* over the end of the last chunk */
    int32_t start; /* of that run, in the lane where it begins; -1 in others */
};

/* Sets the flags of runs in a chunk of a row: they begin at the first quiet one of a stretch of zeros, and end with the
 * stretch. zeros, begin: bits by column. One of them begins a run, or runs.goes_on. */
static __device__ __forceinline__ void find_runs(walked_columns &c, bool *goes_on, uint32_t zeros, uint32_t begin,
                                                 unsigned lane)
{
    const uint32_t alone = zeros + begin;
    const uint32_t generates = __ballot_sync(TSR_FULL_WARP, alone >> COLUMNS != 0),
                   passes = __ballot_sync(TSR_FULL_WARP, zeros == 255u) | generates;
    const uint64_t into = ((uint64_t)passes + generates + *goes_on) ^ passes ^ generates; /* bit i: into lane i */
    const uint32_t carries = (alone + ((uint32_t)(into >> lane) & 1u)) ^ zeros ^ begin;   /* bit i: into column i */
    c.run = carries >> 1 & 255u;
    c.was = carries & 255u;
    *goes_on = into >> TSR_WARP & 1u;
}

/* Calls run(column, length) for each run of a chunk whose length is known now, in the lane where it begins; length 0:
 * it reaches the row's end. went_on: a run came in. */
template <typename Run>
static __device__ __forceinline__ void end_runs(const walked_columns &c, row_runs &runs, bool went_on, int32_t chunk,
                                                int32_t width, unsigned lane, Run run)
{
    /* The column after the run that the lane's last column is in: the chunk's end where that is in the run, too. */
    const int32_t own_end = c.column + trailing_ones(c.run);
    int32_t end = c.column + COLUMNS;
    const uint32_t full = __ballot_sync(TSR_FULL_WARP, c.run == 255u);
    if (__any_sync(TSR_FULL_WARP, (c.run >> (COLUMNS - 1)) != 0)) {
        const uint32_t behind = full >> lane >> 1;
        const int next = (int)lane + __ffs((int)~behind); /* the first lane after that is not full */
        const int32_t its_end = __shfl_sync(TSR_FULL_WARP, own_end, next & (TSR_WARP - 1));
        end = next < TSR_WARP ? its_end : chunk + CHUNK;
    }
    if (went_on) {
        const int first = trailing_ones(full); /* of all lanes: -1 */
        const int32_t its_end = __shfl_sync(TSR_FULL_WARP, own_end, first & (TSR_WARP - 1));
        const int32_t stop = first < 0 ? chunk + CHUNK : its_end;
        if (stop >= width || first >= 0) {
            if (runs.start >= 0) run(runs.start, stop >= width ? 0 : stop - runs.start);
            runs.start = -1;
        }
    }
    for (uint32_t starts = c.run & ~c.was; starts != 0; starts &= starts - 1) {
        const int i = __ffs((int)starts) - 1;
        const int32_t start = c.column + i, own = start + trailing_ones(c.run >> i);
        const int32_t stop = own == c.column + COLUMNS ? end : own;
        if (stop == chunk + CHUNK && stop < width)
            runs.start = start;
        else
            run(start, stop >= width ? 0 : stop - start);
    }
}

/* Folded residuals of two columns, and their magnitudes; of differences that do not wrap, as long as magnitudes are
 * below half the range. */
static __device__ __forceinline__ void fold_pair(uint32_t x, uint32_t prediction, uint32_t *value, uint32_t *magnitude)
{
    const uint32_t high = __vmaxu2(x, prediction), low = __vminu2(x, prediction);
    *magnitude = high - low;
    *value = 2 * *magnitude - __vminu2(high - x, 0x00010001u); /* 2 |e|, less 1 where e < 0 */
}

/* The same of any differences. */
static __device__ __forceinline__ void wrap_pair(uint32_t x, uint32_t prediction, int32_t range, uint32_t *value,
                                                 uint32_t *magnitude)
{
    const int32_t low = tsr_residual((int32_t)low_half(x), (int32_t)low_half(prediction), range),
                  high = tsr_residual((int32_t)high_half(x), (int32_t)high_half(prediction), range);
    *magnitude = (uint32_t)tsr_abs(low) | (uint32_t)tsr_abs(high) << 16;
    *value = tsr_fold(low) | tsr_fold(high) << 16;
}

/* Magnitudes of anchored planes: those of differences to the prediction, which never wrap. */
static __device__ __forceinline__ void subtract_predictions(const uint32_t x_pair[PAIRS],
                                                            const uint32_t prediction[PAIRS], uint32_t m_pair[PAIRS])
{
#pragma unroll
    for (int j = 0; j < PAIRS; j++) {
        const uint32_t magnitude = __vmaxu2(x_pair[j], prediction[j]) - __vminu2(x_pair[j], prediction[j]);
        m_pair[j] = __vminu2(magnitude, TSR_MAGNITUDE_LIMIT * 0x10001u);
    }
}

/* What anchored planes have at the places of a lane's codes: residuals and bins. It is read by the lane that puts the
 * codes there, before it does. zero_pair: 0 where a residual is 0, and no more than a magnitude. */
static __device__ __forceinline__ void take_anchored(walked_columns &c, const uint32_t *entry,
                                                     uint32_t zero_pair[PAIRS])
{
    uint32_t of_column[COLUMNS];
    if (c.count == COLUMNS) {
        const uint4 low = *reinterpret_cast<const uint4 *>(entry), high = *reinterpret_cast<const uint4 *>(entry + 4);
        const uint32_t all[COLUMNS] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
        for (int i = 0; i < COLUMNS; i++) of_column[i] = all[i];
    } else { /* nothing is behind a row */
#pragma unroll
        for (int i = 0; i < COLUMNS; i++) of_column[i] = i < c.count ? entry[i] : 0u;
    }
#pragma unroll
    for (int j = 0; j < PAIRS; j++) {
        c.value[j] = __byte_perm(of_column[2 * j], of_column[2 * j + 1], 0x5410);
        c.prediction[j] = __byte_perm(of_column[2 * j], of_column[2 * j + 1], 0x7632);
        zero_pair[j] = __vminu2(c.value[j], TSR_MAGNITUDE_LIMIT * 0x10001u);
    }
}
static_assert(TSR_DEVICE_ANCHOR_SHIFT == 16, "the upper half");

/* The last pair of the lane before; of lane 0, what is left of its chunk, which this replaces for the next one. */
static __device__ __forceinline__ uint32_t pair_before(uint32_t last, uint32_t &left, unsigned lane)
{
    uint32_t pair = __shfl_sync(TSR_FULL_WARP, last, (int)((lane + TSR_WARP - 1) % TSR_WARP));
    if (lane == 0) {
        const uint32_t next = pair;
        pair = left;
        left = next;
    }
    return pair;
}

/* Median edge predictions. x, n: the columns' samples and those above them; x_left, n_left: of lane 0, what is left of
 * its chunk. */
static __device__ __forceinline__ void predict_edges(walked_columns &c, const uint32_t x_pair[PAIRS],
                                                     const uint32_t n_pair[PAIRS], int32_t chunk, uint32_t &x_left,
                                                     uint32_t &n_left, unsigned lane)
{
    const unsigned before = (lane + TSR_WARP - 1) % TSR_WARP;
    uint32_t xw = __shfl_sync(TSR_FULL_WARP, x_pair[PAIRS - 1], (int)before),
             nw = __shfl_sync(TSR_FULL_WARP, n_pair[PAIRS - 1], (int)before);
    if (lane == 0) {
        const uint32_t next_x = xw, next_n = nw;
        xw = chunk > 0 ? x_left : n_pair[0] << 16;
        nw = chunk > 0 ? n_left : n_pair[0] << 16;
        x_left = next_x;
        n_left = next_n;
    }
    if (c.count == 0) xw = nw = 0;
#pragma unroll
    for (int j = 0; j < PAIRS; j++) /* in the first row all that is above is 0, so that this is W */
        c.prediction[j] = tsr_median_edges(between(j == 0 ? xw : x_pair[j - 1], x_pair[j]), n_pair[j],
                                           between(j == 0 ? nw : n_pair[j - 1], n_pair[j]));
}

/* Folded residuals, and their magnitudes as contexts see them. */
static __device__ __forceinline__ void fold_columns(walked_columns &c, const uint32_t x_pair[PAIRS],
                                                    uint32_t m_pair[PAIRS], int32_t range)
{
    const uint32_t most = (uint32_t)((range - 1) >> 1) * 0x10001u; /* magnitudes that surely do not wrap */
    uint32_t largest = 0;
#pragma unroll
    for (int j = 0; j < PAIRS; j++) {
        fold_pair(x_pair[j], c.prediction[j], &c.value[j], &m_pair[j]);
        largest = __vmaxu2(largest, m_pair[j]);
    }
    if (__vmaxu2(largest, most) != most) { /* rarely */
#pragma unroll
        for (int j = 0; j < PAIRS; j++) wrap_pair(x_pair[j], c.prediction[j], range, &c.value[j], &m_pair[j]);
    }
#pragma unroll
    for (int j = 0; j < PAIRS; j++) m_pair[j] = __vminu2(m_pair[j], TSR_MAGNITUDE_LIMIT * 0x10001u);
}

/* Predictions, folded residuals and their magnitudes. n_pair: the predictions, or the samples above. */
static __device__ __forceinline__ void find_residuals(walked_columns &c, const uint32_t x_pair[PAIRS],
                                                      const uint32_t n_pair[PAIRS], uint32_t m_pair[PAIRS],
                                                      bool predicts, int32_t chunk, int32_t range, uint32_t &x_left,
                                                      uint32_t &n_left, unsigned lane)
{
    if (predicts) {
#pragma unroll
        for (int j = 0; j < PAIRS; j++) c.prediction[j] = n_pair[j];
    } else {
        predict_edges(c, x_pair, n_pair, chunk, x_left, n_left, lane);
    }
    fold_columns(c, x_pair, m_pair, range);
}

/* Activities. m_pair: the columns' magnitudes; ww: the pair before them; nn: two rows above; above: the row above, w
 * columns wide. */
static __device__ __forceinline__ void find_activities(walked_columns &c, const uint32_t m_pair[PAIRS], uint32_t ww,
                                                       const uint4 &nn, const uint16_t *above, int32_t w)
{
    const struct tsr_left_activity of_left = tsr_left_activity(false), of_first = tsr_left_activity(true);
    const uint32_t before = ww;
    const uint4 n = *reinterpret_cast<const uint4 *>(above + c.column);
    uint32_t nw = *reinterpret_cast<const uint32_t *>(above + c.column - 2);
    uint32_t n_behind = *reinterpret_cast<const uint32_t *>(above + c.column + COLUMNS);
    if (c.column + COLUMNS >= w) n_behind = high_half(n.w);
    const uint32_t above_pair[PAIRS + 1] = {n.x, n.y, n.z, n.w, n_behind},
                                      above2_pair[PAIRS] = {nn.x, nn.y, nn.z, nn.w};
#pragma unroll
    for (int j = 0; j < PAIRS; j++) {
        const uint32_t west = between(ww, m_pair[j]), ne = between(above_pair[j], above_pair[j + 1]);
        c.activity[j] = (uint32_t)of_left.w * west + (uint32_t)of_left.ww * ww +
                        tsr_activity_above(above_pair[j], between(nw, above_pair[j]), ne, above2_pair[j]);
        ww = m_pair[j];
        nw = above_pair[j];
    }
    if (__builtin_expect(c.row == 0, 0)) {
        ww = before;
#pragma unroll
        for (int j = 0; j < PAIRS; j++) {
            c.activity[j] = (uint32_t)of_first.w * between(ww, m_pair[j]) + (uint32_t)of_first.ww * ww;
            ww = m_pair[j];
        }
    }
}

/* Says which of the columns are plain, quiet and in runs. zero_pair: 0 where a residual is 0, and no more than a
 * magnitude. Returns whether some are in runs. */
template <bool QUIET>
static __device__ __forceinline__ bool mark_runs(walked_columns &c, const uint32_t zero_pair[PAIRS], bool *goes_on,
                                                 unsigned lane)
{
    uint32_t least = UINT32_MAX; /* of what makes columns not plain */
#pragma unroll
    for (int j = 0; j < PAIRS; j++) least = __vminu2(least, QUIET ? c.activity[j] : c.activity[j] | zero_pair[j]);
    if (c.count < COLUMNS) least = (uint32_t)c.count - 1u; /* all are outside, or some */
    const bool is_plain = (nonzero_halves(least) & 0x80008000u) == 0x80008000u;
    c.is_plain = !*goes_on && __all_sync(TSR_FULL_WARP, is_plain);
    c.quiet = c.run = c.was = 0;
    bool has_runs = false;
    if (!c.is_plain) {
        c.quiet = zero_columns(c.activity, c.count);
        const uint32_t zeros = zero_columns(zero_pair, c.count);
        has_runs = *goes_on || __any_sync(TSR_FULL_WARP, tsr_run_starts(zeros, c.quiet) != 0);
        if (has_runs) find_runs(c, goes_on, zeros, tsr_run_starts(zeros, c.quiet), lane);
    }
    return has_runs;
}

/* Walks a band: see(columns) for eight columns a lane of each chunk of each row, but not where all are outside; after
 * it run(row, column, length) for each run that ends in the chunk; end_row(row) after each row. rows: the warp's, of
 * shared memory. QUIET: quiet columns are not plain. ANCHORED: residuals are. */
template <bool QUIET, bool ANCHORED, typename See, typename Run, typename EndRow>
static __device__ __forceinline__ void walk_band(const tsr_predict_batch &p, const band_place &at, uint16_t *rows,
                                                 int32_t pitch, See see, Run run, EndRow end_row)
{
    const unsigned lane = threadIdx.x % TSR_WARP;
    const int32_t w = at.tile.width, range = (int32_t)tsr_plane_range(p, at.plane);
    const bool is_linear = ANCHORED || (p.plan_count > 0 && p.predictor[at.plane].set != 0);
    const int32_t from = tsr_max(0, at.first - WARM_ROWS);
    const size_t first_sample =
        at.plane * p.b.shape.plane_samples + at.tile.first + (size_t)from * at.tile.stride + lane * COLUMNS;
    const bool is_aligned = (first_sample | at.tile.stride) % COLUMNS == 0;
    const uint16_t *x = p.b.shared.samples + first_sample,
                   *up = is_linear ? p.prediction + first_sample : x - at.tile.stride;
    const uint32_t *const entry =
        ANCHORED ? p.code + (size_t)at.number * p.tile_places + lane * COLUMNS : NULL; /* of the tile's first row */
    for (int32_t y = from; y < at.end; y++, x += at.tile.stride, up += at.tile.stride) {
        uint16_t *const here = rows + (y & 1) * pitch + GUARD;
        uint16_t *const above = rows + (~y & 1) * pitch + GUARD;
        const uint16_t *const two_up = y == 1 ? above : here; /* where NN still lies; of the second row it is N */
        const bool predicts = ANCHORED || (is_linear && y > 0), is_wanted = y >= at.first;
        row_runs runs = {false, -1};
        __syncwarp(); /* the row above is complete */
        /* Of lane 0: what is left of its chunk. */
        uint32_t m_left = y > from ? above[0] * 0x10001u : 0u, x_left = 0, n_left = 0;
        if (lane == 0) *reinterpret_cast<uint32_t *>(here - 2) = m_left;
        for (int32_t chunk = 0; chunk < w; chunk += CHUNK) {
            walked_columns c;
            c.row = y;
            c.column = chunk + (int32_t)lane * COLUMNS;
            c.count = tsr_max(0, tsr_min((int32_t)COLUMNS, w - c.column));
            uint4 xs = make_uint4(0, 0, 0, 0), ns = xs;
            if (c.count > 0) {
                xs = tsr_load_samples(x + chunk, c.count, is_aligned);
                if (ANCHORED || y > 0)
                    ns = tsr_load_samples(up + chunk, c.count, is_aligned); /* N, or the prediction */
            }
            const uint32_t x_pair[PAIRS] = {xs.x, xs.y, xs.z, xs.w}, n_pair[PAIRS] = {ns.x, ns.y, ns.z, ns.w};
            uint32_t m_pair[PAIRS];
            if constexpr (ANCHORED)
                subtract_predictions(x_pair, n_pair, m_pair);
            else
                find_residuals(c, x_pair, n_pair, m_pair, predicts, chunk, range, x_left, n_left, lane);
            const uint4 nn = *reinterpret_cast<const uint4 *>(two_up + c.column);
            if (c.count > 0) {
                const uint4 m = make_uint4(m_pair[0], m_pair[1], m_pair[2], m_pair[3]);
                *reinterpret_cast<uint4 *>(here + c.column) = m;
                /* The column after a row repeats its last; where that is another lane's, the reader sees to it. */
                if (c.count < COLUMNS) here[w] = here[w - 1];
            }
            if (!is_wanted) continue;
            const uint32_t ww = pair_before(m_pair[PAIRS - 1], m_left, lane);
            find_activities(c, m_pair, ww, nn, above, w);
            if constexpr (ANCHORED) take_anchored(c, entry + (uint32_t)y * p.tile_pitch + (uint32_t)chunk, m_pair);
            const bool went_on = runs.goes_on, has_runs = mark_runs<QUIET>(c, m_pair, &runs.goes_on, lane);
            if (c.count > 0) see(c);
            if (has_runs)
                end_runs(c, runs, went_on, chunk, w, lane,
                         [&](int32_t column, int32_t length) { run(y, column, length); });
        }
        if (is_wanted) end_row(y);
    }
}
static_assert(8 * TSR_MAGNITUDE_LIMIT <= 1 << 15, "two activities fit 32 bits, and one is not 0 if its top bit is not");

/* The warp's rows of magnitudes, after used bytes of dynamic shared memory. */
static __device__ __forceinline__ uint16_t *warp_rows(unsigned char *memory, size_t used, int32_t pitch)
{
    return reinterpret_cast<uint16_t *>(memory + used) + (size_t)(threadIdx.x / TSR_WARP) * WARM_ROWS * (size_t)pitch;
}

} // namespace tsr_walk

#endif
