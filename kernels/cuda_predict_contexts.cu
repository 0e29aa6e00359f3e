/* Samples to codes on the device: residuals, activities, runs, contexts, their counts, and the code of each sample.
 * FORMAT.md sections 7.2 to 7.6.
 *
 * What counting and coding share is one walk: a warp goes down a band of a tile's rows, eight columns a lane, and keeps
 * the magnitudes of the last two rows in shared memory. Nothing but codes goes to memory: each pass (counts of levels,
 * counts of symbols by cell, codes) walks again, which takes less than reading what another one has left. Magnitudes
 * are 16 bits and eight of them fit 16 bits, so that activities are summed up two at a time. */
#include "device.cuh"

#include "../transform/residual.h"
#include "predict_blocks.cuh"

namespace
{

enum {
    WARPS = 8,
    THREADS = WARPS * TSR_WARP,
    CELL_WARPS = 16, /* of the pass that counts by cell, whose counts are many */
    CELL_THREADS = CELL_WARPS * TSR_WARP,
    COLUMNS = 8, /* of a lane */
    PAIRS = COLUMNS / 2,
    CHUNK = COLUMNS * TSR_WARP,
    BAND_ROWS = 16,
    WARM_ROWS = 2, /* above a band: their magnitudes are needed */
    GUARD = 8      /* samples before a row of magnitudes, of which two are used; one behind */
};

__device__ __forceinline__ bool is_constant(const tsr_predict_batch &p, uint32_t plane)
{
    return tsr_plane_range(p, plane) < 2;
}

/* ---- The walk ----------------------------------------------------------------------------------------------- */

/* Bands of a tile: of BAND_ROWS rows, or of the rows that are looked at alone. */
struct band_plan {
    uint32_t bands;     /* of a tile */
    int32_t step, rows; /* from band to band; of a band */
    uint32_t blocks;    /* of a plane */
    int32_t pitch;      /* of a row of magnitudes */
};

band_plan plan_bands(const tsr_predict_batch &p, int32_t period, unsigned warps)
{
    band_plan plan;
    plan.step = period > 0 ? period : (int32_t)BAND_ROWS;
    plan.rows = period > 0 ? (int32_t)TSR_SAMPLED_ROWS : (int32_t)BAND_ROWS;
    plan.bands = ((uint32_t)p.b.tile_height + (uint32_t)plan.step - 1) / (uint32_t)plan.step;
    plan.blocks = (p.b.tiles * plan.bands + warps - 1) / warps;
    plan.pitch = GUARD + (int32_t)p.tile_pitch + GUARD;
    return plan;
}

size_t walk_bytes(const band_plan &plan, unsigned warps)
{
    return warps * WARM_ROWS * (size_t)plan.pitch * sizeof(uint16_t);
}

/* A warp's band. */
struct band_place {
    uint32_t plane, number; /* number: of the tile, of all */
    tsr_tile tile;
    int32_t first, end; /* rows */
};

/* False: there is none. */
__device__ __forceinline__ bool place_band(const tsr_predict_batch &p, const band_plan &plan, unsigned warps,
                                           band_place *at)
{
    at->plane = blockIdx.x / plan.blocks;
    const uint32_t unit = (blockIdx.x - at->plane * plan.blocks) * warps + threadIdx.x / TSR_WARP;
    const uint32_t tile = unit / plan.bands;
    if (tile >= p.b.tiles) return false;
    at->number = at->plane * p.b.tiles + tile;
    at->tile = tsr_tile_place(&p.b, tile).tile;
    at->first = (int32_t)(unit - tile * plan.bands) * plan.step;
    at->end = tsr_min(at->tile.height, at->first + plan.rows);
    return at->first < at->end;
}

/* Eight columns of a lane as the passes see them. */
struct walked_columns {
    int32_t row, column, count; /* count: of columns inside the tile, 0 to 8 */
    uint32_t value[COLUMNS];    /* folded residuals */
    uint32_t prediction[COLUMNS];
    uint32_t activity[PAIRS];
    uint32_t quiet, run, was; /* bits by column: activity 0; in a run; the column before is */
};

/* Told with columns: all eight of them are inside, and none is quiet or in a run. */
struct plain_columns {
    static constexpr bool value = true;
};
struct any_columns {
    static constexpr bool value = false;
};

__device__ __forceinline__ uint32_t low_half(uint32_t pair)
{
    return pair & 0xffffu;
}

__device__ __forceinline__ uint32_t high_half(uint32_t pair)
{
    return pair >> 16;
}

/* The second of one pair and the first of the next. */
__device__ __forceinline__ uint32_t between(uint32_t pair, uint32_t next)
{
    return __byte_perm(pair, next, 0x5432);
}

__device__ __forceinline__ uint32_t activity_of(const walked_columns &c, int i)
{
    return i % 2 ? high_half(c.activity[i / 2]) : low_half(c.activity[i / 2]);
}

/* Two values below 2^15: bits 15 and 31 say which of them are not 0. */
__device__ __forceinline__ uint32_t nonzero_halves(uint32_t pair)
{
    return (pair + 0x7fff7fffu) & 0x80008000u;
}

/* The top bits of four bytes, the lowest first. */
__device__ __forceinline__ uint32_t top_bits(uint32_t bytes)
{
    return (bytes >> 7 & 0x01010101u) * 0x10204080u >> 28;
}

/* Bits by column of those below count that are 0. */
__device__ __forceinline__ uint32_t zero_columns(const uint32_t pair[PAIRS], int32_t count)
{
    uint32_t four[2];
#pragma unroll
    for (int h = 0; h < 2; h++)
        four[h] = top_bits(~__byte_perm(nonzero_halves(pair[2 * h]), nonzero_halves(pair[2 * h + 1]), 0x7531));
    return (four[0] | four[1] << 4) & ((1u << count) - 1u);
}

__device__ __forceinline__ int trailing_ones(uint32_t bits)
{
    return __ffs((int)~bits) - 1; /* of fewer than 32 */
}

/* Runs of a row so far. */
struct row_runs {
    bool goes_on;  /* over the end of the last chunk */
    int32_t start; /* of that run */
};

/* Sets the flags of runs in a chunk of a row: they begin at the first quiet one of a stretch of zeros, and end with the
 * stretch. zeros, begin: bits by column. Calls run(column, length) for each run whose length is known now, in one lane;
 * length 0: it reaches the row's end. */
template <typename Run>
__device__ __forceinline__ void find_runs(walked_columns &c, row_runs &runs, uint32_t zeros, uint32_t begin,
                                          int32_t chunk, int32_t width, unsigned lane, Run run)
{
    c.run = c.was = 0;
    if (__ballot_sync(TSR_FULL_WARP, begin != 0) == 0 && !runs.goes_on) return;
    const uint32_t alone = zeros + begin;
    const uint32_t generates = __ballot_sync(TSR_FULL_WARP, alone >> COLUMNS != 0),
                   passes = __ballot_sync(TSR_FULL_WARP, zeros == 255u) | generates;
    const uint64_t into = ((uint64_t)passes + generates + runs.goes_on) ^ passes ^ generates; /* bit i: into lane i */
    const uint32_t carries = (alone + ((uint32_t)(into >> lane) & 1u)) ^ zeros ^ begin;       /* bit i: into column i */
    c.run = carries >> 1 & 255u;
    c.was = carries & 255u;
    /* How far a run goes on behind this lane's last column, inside the chunk. */
    const uint32_t full = __ballot_sync(TSR_FULL_WARP, c.run == 255u);
    const uint32_t behind = lane == TSR_WARP - 1 ? 0u : full >> (lane + 1);
    const int more = trailing_ones(behind), next = (int)lane + 1 + more;
    const uint32_t last = __shfl_sync(TSR_FULL_WARP, c.run, next & (TSR_WARP - 1));
    const int32_t further = COLUMNS * more + (next < TSR_WARP ? trailing_ones(last) : 0);
    if (runs.goes_on) { /* the run that came in */
        const int ahead = full == UINT32_MAX ? (int)TSR_WARP : trailing_ones(full);
        const uint32_t partial = __shfl_sync(TSR_FULL_WARP, c.run, ahead & (TSR_WARP - 1));
        const int32_t stop = chunk + COLUMNS * ahead + (ahead < TSR_WARP ? trailing_ones(partial) : 0);
        if (lane == 0 && (stop >= width || ahead < TSR_WARP)) run(runs.start, stop >= width ? 0 : stop - runs.start);
    }
    runs.goes_on = into >> TSR_WARP & 1u;
    int32_t open = -1;
    for (uint32_t starts = c.run & ~c.was; starts != 0; starts &= starts - 1) {
        const int i = __ffs((int)starts) - 1;
        int32_t length = trailing_ones(c.run >> i);
        bool stays_open = false;
        if (i + length == COLUMNS) {
            length += further;
            stays_open = next >= TSR_WARP;
        }
        const int32_t start = c.column + i;
        const bool to_end = start + length >= width;
        if (stays_open && !to_end)
            open = start;
        else
            run(start, to_end ? 0 : length);
    }
    const uint32_t opens = __ballot_sync(TSR_FULL_WARP, open >= 0); /* one at most */
    if (opens) runs.start = __shfl_sync(TSR_FULL_WARP, open, __ffs((int)opens) - 1);
}

/* Eight samples of a row, as pairs. Tiles may begin at any column; rows are filled up to whole eights. */
__device__ __forceinline__ uint4 load_columns(const uint16_t *at, int32_t count, bool is_aligned)
{
    if (is_aligned && count == COLUMNS) return *reinterpret_cast<const uint4 *>(at);
    uint32_t pair[PAIRS] = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < COLUMNS; i++)
        if (i < count) pair[i / 2] |= (uint32_t)at[i] << (16 * (i % 2));
    return make_uint4(pair[0], pair[1], pair[2], pair[3]);
}

/* Walks a band: see(columns, are they plain?) for eight columns a lane of each chunk of each row, but not where all are
 * outside; run(row, column, length) for each run; end_row(row) behind each row. rows: the warp's, of shared memory. */
template <typename See, typename Run, typename EndRow>
__device__ __forceinline__ void walk_band(const tsr_predict_batch &p, const band_place &at, uint16_t *rows,
                                          int32_t pitch, See see, Run run, EndRow end_row)
{
    const unsigned lane = threadIdx.x % TSR_WARP;
    const int32_t w = at.tile.width, range = (int32_t)tsr_plane_range(p, at.plane);
    const size_t first_sample = at.plane * p.b.plane_samples + at.tile.first;
    const bool is_linear = p.plan_count > 0 && p.predictor[at.plane].set != 0, is_aligned = first_sample % COLUMNS == 0;
    const int32_t from = tsr_max(0, at.first - WARM_ROWS);
    for (int32_t y = from; y < at.end; y++) {
        uint16_t *const here = rows + (y & 1) * pitch + GUARD;
        const uint16_t *const above = rows + (~y & 1) * pitch + GUARD;
        const uint16_t *const x = p.b.samples + first_sample + (size_t)y * at.tile.stride, *const up =
                                                                                               x - at.tile.stride;
        const uint16_t *const predictions = is_linear ? p.prediction + first_sample + (size_t)y * at.tile.stride : x;
        row_runs runs = {false, 0};
        __syncwarp();                                        /* the row above is complete */
        uint32_t left = y > from ? above[0] * 0x10001u : 0u; /* magnitudes of the two columns before the chunk */
        if (lane == 0) *reinterpret_cast<uint32_t *>(here - 2) = left;
        for (int32_t chunk = 0; chunk < w; chunk += CHUNK) {
            walked_columns c;
            c.row = y;
            c.column = chunk + (int32_t)lane * COLUMNS;
            c.count = tsr_max(0, tsr_min((int32_t)COLUMNS, w - c.column));
            uint4 xs = make_uint4(0, 0, 0, 0), ns = xs;
            int32_t west = 0, corner = 0;
            if (c.count > 0) {
                xs = load_columns(x + c.column, c.count, is_aligned);
                if (c.column > 0) west = x[c.column - 1];
                if (y > 0 && is_linear) {
                    ns = load_columns(predictions + c.column, c.count, is_aligned);
                } else if (y > 0) {
                    ns = load_columns(up + c.column, c.count, is_aligned);
                    if (c.column > 0)
                        corner = up[c.column - 1];
                    else
                        west = corner = (int32_t)low_half(ns.x);
                }
            }
            const uint32_t x_pair[PAIRS] = {xs.x, xs.y, xs.z, xs.w}, n_pair[PAIRS] = {ns.x, ns.y, ns.z, ns.w};
            uint32_t m_pair[PAIRS];
            int32_t e[COLUMNS];
            bool wraps = false;
            const bool predicts = is_linear && y > 0;
#pragma unroll
            for (int i = 0; i < COLUMNS; i++) {
                const int32_t sample = (int32_t)(i % 2 ? high_half(x_pair[i / 2]) : low_half(x_pair[i / 2]));
                const int32_t north = (int32_t)(i % 2 ? high_half(n_pair[i / 2]) : low_half(n_pair[i / 2]));
                /* In the first row all that is above is 0, so that this is W. */
                const int32_t prediction = predicts ? north : tsr_median_edge(west, north, corner);
                e[i] = sample - prediction;
                wraps |= (uint32_t)(e[i] + (range >> 1)) >= (uint32_t)range;
                c.prediction[i] = (uint32_t)prediction;
                west = sample;
                corner = north;
            }
            if (wraps) { /* rarely */
#pragma unroll
                for (int i = 0; i < COLUMNS; i++) e[i] = tsr_residual(e[i], 0, range);
            }
#pragma unroll
            for (int i = 0; i < COLUMNS; i++) {
                const uint32_t magnitude = (uint32_t)tsr_context_magnitude(e[i]);
                m_pair[i / 2] = i % 2 ? m_pair[i / 2] | magnitude << 16 : magnitude;
                c.value[i] = tsr_fold(e[i]);
            }
            const uint32_t before = __shfl_up_sync(TSR_FULL_WARP, m_pair[PAIRS - 1], 1);
            const uint32_t left_pair = lane == 0 ? left : before;
            left = __shfl_sync(TSR_FULL_WARP, m_pair[PAIRS - 1], TSR_WARP - 1);
            const bool is_wanted = y >= at.first;
            uint4 nn = make_uint4(0, 0, 0, 0), n = nn;
            uint32_t n_left = 0, n_right = 0;
            if (c.count > 0) {
                if (is_wanted && y > 0) {
                    nn = *reinterpret_cast<const uint4 *>(here + c.column); /* two rows up, still */
                    n = *reinterpret_cast<const uint4 *>(above + c.column);
                    n_left = *reinterpret_cast<const uint32_t *>(above + c.column - 2);
                    n_right = *reinterpret_cast<const uint32_t *>(above + c.column + COLUMNS);
                }
                *reinterpret_cast<uint4 *>(here + c.column) = make_uint4(m_pair[0], m_pair[1], m_pair[2], m_pair[3]);
                if (c.column + COLUMNS >= w) here[w] = here[w - 1]; /* the column behind the row repeats the last */
            }
            if (!is_wanted) continue;
            if (y == 1) nn = n;
            const uint32_t above_pair[PAIRS + 1] = {n.x, n.y, n.z, n.w, n_right},
                                              above2_pair[PAIRS] = {nn.x, nn.y, nn.z, nn.w};
            uint32_t nonzero = UINT32_MAX;
#pragma unroll
            for (int j = 0; j < PAIRS; j++) {
                const uint32_t ww = j == 0 ? left_pair : m_pair[j - 1], wp = between(ww, m_pair[j]);
                const uint32_t nw = between(j == 0 ? n_left : above_pair[j - 1], above_pair[j]),
                               ne = between(above_pair[j], above_pair[j + 1]);
                c.activity[j] =
                    y == 0 ? 6 * wp + 2 * ww : 2 * (wp + above_pair[j]) + nw + ne + ww + above2_pair[j]; /* two sums */
                nonzero &= nonzero_halves(c.activity[j]);
            }
            const bool is_plain = c.count == 0 || (c.count == COLUMNS && nonzero == 0x80008000u);
            c.quiet = c.run = c.was = 0;
            if (!runs.goes_on && __all_sync(TSR_FULL_WARP, is_plain)) {
                if (c.count > 0) see(c, plain_columns());
                continue;
            }
#pragma unroll
            for (int j = 0; j < PAIRS; j++)
                c.activity[j] &= 0x7fff7fffu; /* columns outside may have any; others are below */
            c.quiet = zero_columns(c.activity, c.count);
            const uint32_t zeros = zero_columns(m_pair, c.count);
            find_runs(c, runs, zeros, zeros & c.quiet, chunk, w, lane,
                      [&](int32_t column, int32_t length) { run(y, column, length); });
            if (c.count > 0) see(c, any_columns());
        }
        if (y >= at.first) end_row(y);
    }
}
static_assert(8 * TSR_MAGNITUDE_LIMIT < 65536, "two activities fit 32 bits");

/* The warp's rows of magnitudes, behind used bytes of dynamic shared memory. */
__device__ __forceinline__ uint16_t *warp_rows(unsigned char *memory, size_t used, int32_t pitch)
{
    return reinterpret_cast<uint16_t *>(memory + used) + (size_t)(threadIdx.x / TSR_WARP) * WARM_ROWS * (size_t)pitch;
}

/* ---- Counts of levels ----------------------------------------------------------------------------------------- */

/* Of samples that are neither quiet nor in a run. */
__global__ void __launch_bounds__(THREADS) k_levels(const tsr_predict_batch p, const band_plan plan)
{
    TSR_DYNAMIC_SHARED(memory);
    tsr_device_levels &counts = *reinterpret_cast<tsr_device_levels *>(memory);
    uint32_t *const all = reinterpret_cast<uint32_t *>(memory);
    band_place at;
    const bool is_there = place_band(p, plan, WARPS, &at);
    if (is_constant(p, at.plane)) return;
    for (unsigned i = threadIdx.x; i < sizeof counts / 4; i += THREADS) all[i] = 0;
    __syncthreads();
    const int shift = tsr_intensity_shift(tsr_plane_range(p, at.plane));
    if (is_there)
        walk_band(
            p, at, warp_rows(memory, sizeof counts, plan.pitch), plan.pitch,
            [&](const walked_columns &c, auto plain) {
                const uint32_t other = c.quiet | c.run;
#pragma unroll
                for (int i = 0; i < COLUMNS; i++) {
                    if (!plain.value && (i >= c.count || other >> i & 1u)) continue;
                    atomicAdd(&counts.activity[tsr_activity_level((int32_t)activity_of(c, i))], 1u);
                    atomicAdd(&counts.intensity[c.prediction[i] >> shift], 1u);
                }
            },
            [](int32_t, int32_t, int32_t) {}, [](int32_t) {});
    __syncthreads();
    uint32_t *sums = reinterpret_cast<uint32_t *>(&p.levels[at.plane]);
    for (unsigned i = threadIdx.x; i < sizeof counts / 4; i += THREADS)
        if (all[i] != 0) atomicAdd(&sums[i], all[i]);
}
static_assert(sizeof(tsr_device_levels) % 16 == 0, "rows of magnitudes lie behind it");

/* ---- Cuts --------------------------------------------------------------------------------------------------- */

enum { CUT_THREADS = 256, CUT_EACH = TSR_INTENSITY_LEVELS / CUT_THREADS };

/* tsr_quantile_group; 32 bits are mostly enough, and divide in a third of the time. */
__device__ __forceinline__ int quantile_group(uint64_t before, uint32_t count, uint64_t total, int groups)
{
    if (total * 2 * (uint64_t)groups <= UINT32_MAX)
        return (int)((2 * (uint32_t)before + count) * (uint32_t)groups / (2 * (uint32_t)total));
    return tsr_quantile_group(before, count, total, groups);
}

/* tsr_cut_quantiles by a block: each thread has CUT_EACH levels. Groups rise with the levels. sums: shared; tops:
 * shared, a value a thread. Returns the number of cuts. */
__device__ __forceinline__ int cut_quantiles(const uint32_t *counts, int levels, int groups, uint16_t *cuts,
                                             uint64_t *sums, int *tops)
{
    const int thread = (int)threadIdx.x, first = thread * CUT_EACH;
    uint64_t here = 0, total;
    for (int i = first; i < first + CUT_EACH && i < levels; i++) here += counts[i];
    uint64_t before = tsr_block_scan<CUT_THREADS>(here, sums, &total);
    int group[CUT_EACH], top = -1; /* -1: no samples; top: the highest group of this thread's levels */
#pragma unroll
    for (int k = 0; k < CUT_EACH; k++) {
        const uint32_t count = first + k < levels ? counts[first + k] : 0u;
        group[k] = count ? quantile_group(before, count, total, groups) : -1;
        before += count;
        top = max(top, group[k]);
    }
    __syncthreads();
    tops[thread] = top;
    __syncthreads();
    int below = -1;
    for (int t = thread - 1; t >= 0 && below < 0; t--) below = tops[t];
    int own = 0, found = below;
#pragma unroll
    for (int k = 0; k < CUT_EACH; k++) {
        if (group[k] < 0) continue;
        own += found >= 0 && group[k] != found;
        found = group[k];
    }
    uint64_t all;
    uint64_t place = tsr_block_scan<CUT_THREADS>((uint64_t)own, sums, &all);
    found = below;
#pragma unroll
    for (int k = 0; k < CUT_EACH; k++) {
        if (group[k] < 0) continue;
        if (found >= 0 && group[k] != found) cuts[place++] = (uint16_t)(first + k);
        found = group[k];
    }
    __syncthreads();
    return (int)all;
}

/* A block a plane. */
__global__ void __launch_bounds__(CUT_THREADS) k_cuts(const tsr_predict_batch p)
{
    __shared__ uint64_t sums[CUT_THREADS / TSR_WARP];
    __shared__ int tops[CUT_THREADS];
    const uint32_t plane = blockIdx.x;
    if (is_constant(p, plane)) return;
    tsr_residual_model &model = p.residual[plane]; /* all zero */
    tsr_device_levels &levels = p.levels[plane];
    if (threadIdx.x == 0) levels.activity[1]++, levels.intensity[0]++; /* there may be none */
    __syncthreads();
    tsr_device_groups &groups = p.groups[plane];
    const int activity_cuts =
        cut_quantiles(levels.activity, TSR_ACTIVITY_LEVELS, p.activity_groups, model.activity_cut, sums, tops);
    const int intensity_cuts =
        cut_quantiles(levels.intensity, TSR_INTENSITY_LEVELS, p.intensity_groups, model.intensity_cut, sums, tops);
    if (threadIdx.x == 0) {
        model.lanes = (uint8_t)p.lanes;
        model.activity_cuts = (uint8_t)activity_cuts;
        model.intensity_cuts = (uint8_t)intensity_cuts;
    }
    for (int l = (int)threadIdx.x; l < TSR_ACTIVITY_LEVELS; l += CUT_THREADS)
        groups.activity[l] = tsr_group_of(model.activity_cut, activity_cuts, l);
    for (int l = (int)threadIdx.x; l < TSR_INTENSITY_LEVELS; l += CUT_THREADS)
        groups.intensity[l] = tsr_group_of(model.intensity_cut, intensity_cuts, l);
}

/* ---- Cells ---------------------------------------------------------------------------------------------------- */

/* Tokens are looked up: of values up to DIRECT + 15 by themselves, of others, whose tokens have 256 of them and more,
 * by their higher bits. */
enum { DIRECT = 1024, BEHIND_BITS = 6, FIRST_BEHIND = DIRECT + (DIRECT >> BEHIND_BITS) };

__device__ __forceinline__ uint32_t look_up_place(uint32_t value)
{
    return min(value, DIRECT + (value >> BEHIND_BITS));
}

__device__ __forceinline__ uint32_t value_at(uint32_t place)
{
    return place < FIRST_BEHIND ? place : (place - DIRECT) << BEHIND_BITS;
}

/* What leads from values to symbols, and from activity and prediction to a cell. */
struct cell_lookup {
    uint8_t symbol[DIRECT + (65536 >> BEHIND_BITS)];
    uint8_t activity[DIRECT + (32768 >> BEHIND_BITS)]; /* group x groups of intensity */
    uint8_t intensity[TSR_INTENSITY_LEVELS];           /* group */
    uint8_t run[TSR_TILE_WIDTH + 16];                  /* symbol of a run's length; 0: one to the end of its row */
};
static_assert(sizeof(cell_lookup) % 16 == 0, "counts lie behind it");

/* All threads; a barrier follows. */
__device__ __forceinline__ void load_lookup(const tsr_predict_batch &p, uint32_t plane, cell_lookup &lookup)
{
    const tsr_device_groups &groups = p.groups[plane];
    const int across = p.residual[plane].intensity_cuts + 1;
    for (unsigned i = threadIdx.x; i < sizeof lookup.symbol; i += blockDim.x) {
        const int symbol = tsr_token_symbol(value_at(i));
        lookup.symbol[i] = (uint8_t)symbol;
        if (i < sizeof lookup.activity) lookup.activity[i] = (uint8_t)(groups.activity[symbol] * across);
    }
    for (unsigned i = threadIdx.x; i < sizeof lookup.run; i += blockDim.x)
        lookup.run[i] = (uint8_t)(i == 0 ? (int)TSR_RUN_TO_END : (int)tsr_run_token(i).symbol);
    const uint32_t *from = reinterpret_cast<const uint32_t *>(groups.intensity);
    uint32_t *to = reinterpret_cast<uint32_t *>(lookup.intensity);
    for (unsigned i = threadIdx.x; i < TSR_INTENSITY_LEVELS / 4; i += blockDim.x) to[i] = from[i];
}
static_assert(sizeof(tsr_device_groups) % 4 == 0 && offsetof(tsr_device_groups, intensity) % 4 == 0, "copied by words");

__device__ __forceinline__ uint32_t symbol_of(const cell_lookup &lookup, uint32_t value)
{
    return lookup.symbol[look_up_place(value)];
}

__device__ __forceinline__ uint32_t cell_of(const cell_lookup &lookup, uint32_t activity, uint32_t intensity)
{
    return (uint32_t)lookup.activity[look_up_place(activity)] + lookup.intensity[intensity];
}

/* Symbols by cell and of the special tables. */
__global__ void __launch_bounds__(CELL_THREADS) k_cells(const tsr_predict_batch p, const band_plan plan, size_t room)
{
    TSR_DYNAMIC_SHARED(memory);
    cell_lookup &lookup = *reinterpret_cast<cell_lookup *>(memory);
    uint32_t *counts = reinterpret_cast<uint32_t *>(memory + sizeof lookup);
    band_place at;
    const bool is_there = place_band(p, plan, CELL_WARPS, &at);
    if (is_constant(p, at.plane)) return;
    const int used =
        TSR_FIRST_RESIDUAL_TABLE * TSR_RUN_ALPHABET + tsr_model_cells(&p.residual[at.plane]) * TSR_RESIDUAL_SYMBOLS;
    load_lookup(p, at.plane, lookup);
    for (int i = (int)threadIdx.x; i < used; i += CELL_THREADS) counts[i] = 0;
    __syncthreads();
    const int shift = tsr_intensity_shift(tsr_plane_range(p, at.plane));
    uint32_t *const cell_counts = counts + TSR_FIRST_RESIDUAL_TABLE * TSR_RUN_ALPHABET;
    if (is_there)
        walk_band(
            p, at, warp_rows(memory, room, plan.pitch), plan.pitch,
            [&](const walked_columns &c, auto plain) {
#pragma unroll
                for (int i = 0; i < COLUMNS; i++) {
                    if (!plain.value && (i >= c.count || c.run >> i & 1u)) continue;
                    const uint32_t symbol = symbol_of(lookup, c.value[i]);
                    const uint32_t cell = cell_of(lookup, activity_of(c, i), c.prediction[i] >> shift);
                    uint32_t *to = &cell_counts[cell * TSR_RESIDUAL_SYMBOLS + symbol];
                    if (!plain.value && c.quiet >> i & 1u)
                        to = &counts[(c.was >> i & 1u ? TSR_INTERRUPTION_TABLE : TSR_RUN_TABLE) * TSR_RUN_ALPHABET +
                                     symbol];
                    atomicAdd(to, 1u);
                }
            },
            [&](int32_t, int32_t, int32_t length) {
                atomicAdd(&counts[TSR_RUN_TABLE * TSR_RUN_ALPHABET + lookup.run[length]], 1u);
            },
            [](int32_t) {});
    __syncthreads();
    uint32_t *sums = p.counts + at.plane * p.cell_counts;
    for (int i = (int)threadIdx.x; i < used; i += CELL_THREADS)
        if (counts[i] != 0) atomicAdd(&sums[i], counts[i]);
}

/* ---- Codes ---------------------------------------------------------------------------------------------------- */

/* What makes codes of values: a symbol's entry plus the value is its code. */
struct code_lookup {
    cell_lookup cells;
    uint16_t table_at[256]; /* by cell: first entry of its table */
    uint32_t entry[TSR_MODEL_TABLES * TSR_DEVICE_CODE_PITCH];
};

/* The least value that a symbol stands for; of a run to the end of its row, whose length needs no bits: 0. */
__device__ __forceinline__ uint32_t least_value(int symbol)
{
    return symbol < TSR_RUN_SYMBOL   ? tsr_token_value(symbol, 0)
           : symbol < TSR_RUN_TO_END ? tsr_run_length(symbol, 0)
                                     : 0;
}

__device__ __forceinline__ void load_entries(const tsr_predict_batch &p, uint32_t plane, code_lookup &lookup)
{
    const tsr_device_codes &codes = p.codes[plane];
    const int cells = tsr_model_cells(&p.residual[plane]),
              entries = (TSR_FIRST_RESIDUAL_TABLE + p.residual[plane].tables) * TSR_DEVICE_CODE_PITCH;
    for (int c = (int)threadIdx.x; c < cells; c += THREADS)
        lookup.table_at[c] = (uint16_t)(codes.table_of[c] * TSR_DEVICE_CODE_PITCH);
    for (int i = (int)threadIdx.x; i < entries; i += THREADS) {
        const int table = i / TSR_DEVICE_CODE_PITCH, symbol = i % TSR_DEVICE_CODE_PITCH;
        if (p.rans) {
            lookup.entry[i] = tsr_device_symbol(table, symbol);
        } else {
            const uint32_t code = codes.huffman[table][symbol], raw_bits = code >> 8 & 255u;
            lookup.entry[i] = (((code & 255u) + raw_bits) << TSR_DEVICE_LENGTH_SHIFT) + ((code >> 16) << raw_bits) -
                              least_value(symbol);
        }
    }
}

/* Bits of a row's codes, and where its last code stands: in the columns that its lane walks in one of its periods, and
 * in those of the next. */
struct row_sums {
    uint32_t bits[2], behind[2];
};

__device__ __forceinline__ void add_code(row_sums &sums, int part, uint32_t code, int32_t column)
{
    sums.bits[part] += code >> TSR_DEVICE_LENGTH_SHIFT;
    sums.behind[part] = max(sums.behind[part], (uint32_t)column + 1u);
}

__global__ void __launch_bounds__(THREADS, 4) k_codes(const tsr_predict_batch p, const band_plan plan)
{
    TSR_DYNAMIC_SHARED(memory);
    code_lookup &lookup = *reinterpret_cast<code_lookup *>(memory);
    const unsigned lane = threadIdx.x % TSR_WARP;
    band_place at;
    const bool is_there = place_band(p, plan, WARPS, &at);
    if (is_constant(p, at.plane)) return;
    load_lookup(p, at.plane, lookup.cells);
    load_entries(p, at.plane, lookup);
    __syncthreads();
    if (!is_there) return;
    const int shift = tsr_intensity_shift(tsr_plane_range(p, at.plane));
    const int32_t period = tsr_lane_period(at.tile.width, p.lanes);
    uint32_t *const codes = p.code + (size_t)at.number * p.tile_places;
    tsr_device_row *const row_at = p.rans ? NULL : p.rows + (size_t)at.number * (size_t)p.b.tile_height;
    row_sums sums = {{0, 0}, {0, 0}};
    const auto cut_of = [&](int32_t y) { return period - TSR_LANE_DELAY * (y % p.lanes); };
    walk_band(
        p, at, warp_rows(memory, sizeof lookup, plan.pitch), plan.pitch,
        [&](const walked_columns &c, auto plain) {
            uint32_t code[COLUMNS];
            uint32_t lengths[2] = {0, 0};
            const uint32_t coded = plain.value ? 255u : ((1u << c.count) - 1u) & ~c.run;
#pragma unroll
            for (int i = 0; i < COLUMNS; i++) {
                uint32_t table = lookup.table_at[cell_of(lookup.cells, activity_of(c, i), c.prediction[i] >> shift)];
                if (!plain.value && c.quiet >> i & 1u)
                    table = (c.was >> i & 1u ? TSR_INTERRUPTION_TABLE : TSR_RUN_TABLE) * TSR_DEVICE_CODE_PITCH;
                code[i] = lookup.entry[table + symbol_of(lookup.cells, c.value[i])] + c.value[i];
                if (!plain.value && !(coded >> i & 1u))
                    code[i] = TSR_DEVICE_NO_CODE;
                else
                    lengths[i / 4] += code[i] >> TSR_DEVICE_LENGTH_SHIFT;
            }
            uint32_t *const to = codes + (size_t)c.row * p.tile_pitch + (size_t)c.column;
            /* The first of a run may have its code already. */
            const uint32_t starts = c.run & ~c.was;
            if (plain.value || starts == 0) {
                *reinterpret_cast<uint4 *>(to) = make_uint4(code[0], code[1], code[2], code[3]);
                *reinterpret_cast<uint4 *>(to + 4) = make_uint4(code[4], code[5], code[6], code[7]);
            } else {
#pragma unroll
                for (int i = 0; i < COLUMNS; i++)
                    if (!(starts >> i & 1u)) to[i] = code[i];
            }
            const int32_t cut = cut_of(c.row);
            sums.bits[c.column >= cut] += lengths[0];
            sums.bits[c.column + 4 >= cut] += lengths[1];
            const uint32_t own = c.column >= cut ? 0u : c.column + 4 >= cut ? coded & 15u : coded, other = coded & ~own;
            if (own) sums.behind[0] = max(sums.behind[0], (uint32_t)c.column + (tsr_highest_bit(own) + 1u));
            if (other) sums.behind[1] = max(sums.behind[1], (uint32_t)c.column + (tsr_highest_bit(other) + 1u));
        },
        [&](int32_t y, int32_t column, int32_t length) {
            const uint32_t code =
                lookup.entry[TSR_RUN_TABLE * TSR_DEVICE_CODE_PITCH + lookup.cells.run[length]] + (uint32_t)length;
            codes[(size_t)y * p.tile_pitch + (size_t)column] = code;
            add_code(sums, column >= cut_of(y), code, column);
        },
        [&](int32_t y) {
            tsr_device_row row;
#pragma unroll
            for (int part = 0; part < 2; part++) {
                row.bits[part] = tsr_warp_sum(sums.bits[part]);
                row.behind[part] = (uint16_t)tsr_warp_max(sums.behind[part]);
                sums.bits[part] = sums.behind[part] = 0;
            }
            if (lane == 0 && row_at) row_at[y] = row;
        });
}
static_assert(sizeof(code_lookup) % 16 == 0, "rows of magnitudes lie behind it");
static_assert(TSR_LANE_STEP == 4 && COLUMNS == 8, "a lane's period ends between two fours");

} // namespace

int tsr_predict_counts(const struct tsr_predict_batch *batch, cudaStream_t stream)
{
    const band_plan plan = plan_bands(*batch, batch->cuts_period, WARPS);
    const size_t level_bytes = sizeof(tsr_device_levels) + walk_bytes(plan, WARPS);
    TSR_CUDA_TRY(tsr_allow_shared(k_levels, level_bytes));
    TSR_CUDA_TRY(tsr_launch(k_levels, batch->b.planes * plan.blocks, THREADS, level_bytes, stream, *batch, plan));
    TSR_CUDA_TRY(tsr_launch(k_cuts, batch->b.planes, CUT_THREADS, 0, stream, *batch));
    const band_plan cells = plan_bands(*batch, batch->period, CELL_WARPS);
    const size_t room = (sizeof(cell_lookup) + batch->cell_counts * sizeof(uint32_t) + 15) / 16 * 16;
    const size_t bytes = room + walk_bytes(cells, CELL_WARPS);
    TSR_CUDA_TRY(tsr_allow_shared(k_cells, bytes));
    return tsr_launch(k_cells, batch->b.planes * cells.blocks, CELL_THREADS, bytes, stream, *batch, cells, room);
}

int tsr_predict_codes(const struct tsr_predict_batch *batch, cudaStream_t stream)
{
    const band_plan plan = plan_bands(*batch, 0, WARPS);
    const size_t bytes = sizeof(code_lookup) + walk_bytes(plan, WARPS);
    TSR_CUDA_TRY(tsr_allow_shared(k_codes, bytes));
    return tsr_launch(k_codes, batch->b.planes * plan.blocks, THREADS, bytes, stream, *batch, plan);
}
