/* Samples to codes on the device: residuals, activities, runs, contexts, their counts, and the code of each sample.
 * FORMAT.md sections 7.2 to 7.6.
 *
 * What counting and coding share is one walk: a warp goes down a band of a tile's rows, eight columns a lane, and keeps
 * the magnitudes of the last two rows in shared memory. Nothing but codes goes to memory: each pass (counts of levels,
 * counts of symbols by cell, codes) walks again, which takes less than reading what another one has left. Everything up
 * to activities is done with two columns a word: 16 bits are enough for samples, predictions, folded residuals and
 * activities, and sums and differences of such words carry nothing from half to half that they do not take back. */
#include "device.cuh"

#include "../transform/residual.h"
#include "predict_blocks.cuh"
#include "sample_pairs.cuh"

namespace
{

enum {
    WARPS = TSR_CODE_WARPS,
    THREADS = WARPS * TSR_WARP,
    CELL_WARPS = TSR_CELL_WARPS,
    CELL_THREADS = CELL_WARPS * TSR_WARP,
    COLUMNS = 8, /* of a lane */
    PAIRS = COLUMNS / 2,
    CHUNK = COLUMNS * TSR_WARP,
    BAND_ROWS = TSR_BAND_ROWS,
    WARM_ROWS = 2, /* above a band: their magnitudes are needed */
    GUARD = 8      /* samples before a row of magnitudes, of which two are used; one behind */
};

/* ---- The walk ----------------------------------------------------------------------------------------------- */

/* Bands of a tile: of so many rows, or of the rows that are looked at alone. */
struct band_plan {
    uint32_t bands;     /* of a tile */
    int32_t step, rows; /* from band to band; of a band */
    uint32_t each;      /* bands that a warp takes, one after the other */
    uint32_t blocks;    /* of a plane */
    int32_t pitch;      /* of a row of magnitudes */
};

band_plan plan_bands(const tsr_predict_batch &p, int32_t period, int32_t rows, unsigned warps, uint32_t each)
{
    band_plan plan;
    plan.step = period > 0 ? period : rows;
    plan.rows = period > 0 ? (int32_t)TSR_SAMPLED_ROWS : rows;
    plan.bands = ((uint32_t)p.b.tile_height + (uint32_t)plan.step - 1) / (uint32_t)plan.step;
    plan.each = each;
    plan.blocks = (p.b.tiles * plan.bands + warps * each - 1) / (warps * each);
    plan.pitch = GUARD + ((int32_t)p.tile_pitch + CHUNK - 1) / CHUNK * CHUNK + GUARD; /* lanes outside read, too */
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

__device__ __forceinline__ uint32_t plane_of_block(const band_plan &plan)
{
    return blockIdx.x / plan.blocks;
}

/* turn: which of the warp's bands. False: there is none. */
__device__ __forceinline__ bool place_band(const tsr_predict_batch &p, const band_plan &plan, unsigned warps,
                                           uint32_t turn, band_place *at)
{
    at->plane = plane_of_block(plan);
    const uint32_t unit = ((blockIdx.x - at->plane * plan.blocks) * plan.each + turn) * warps + threadIdx.x / TSR_WARP;
    const uint32_t tile = unit / plan.bands;
    if (tile >= p.b.tiles) return false;
    at->number = at->plane * p.b.tiles + tile;
    at->tile = tsr_tile_place(&p.b, tile).tile;
    at->first = (int32_t)(unit - tile * plan.bands) * plan.step;
    at->end = tsr_min(at->tile.height, at->first + plan.rows);
    return at->first < at->end;
}

/* Eight columns of a lane as the passes see them, two a word. */
struct walked_columns {
    int32_t row, column, count; /* count: of columns inside the tile, 1 to 8 */
    uint32_t value[PAIRS];      /* folded residuals */
    uint32_t prediction[PAIRS];
    uint32_t activity[PAIRS];
    bool is_plain;            /* all eight of each lane are inside, and none is in a run, or quiet if that matters */
    uint32_t quiet, run, was; /* bits by column: activity 0, where not is_plain; in a run; the column before is */
};

__device__ __forceinline__ uint32_t low_half(uint32_t pair)
{
    return pair & 0xffffu;
}

__device__ __forceinline__ uint32_t high_half(uint32_t pair)
{
    return pair >> 16;
}

/* Column i of some pairs; i is known to the compiler. */
__device__ __forceinline__ uint32_t half_of(const uint32_t *pair, int i)
{
    return i % 2 ? high_half(pair[i / 2]) : low_half(pair[i / 2]);
}

/* The second of one pair and the first of the next. */
__device__ __forceinline__ uint32_t between(uint32_t pair, uint32_t next)
{
    return __byte_perm(pair, next, 0x5432);
}

/* Two values up to 2^15: bits 15 and 31 say which of them are not 0. */
__device__ __forceinline__ uint32_t nonzero_halves(uint32_t pair)
{
    return pair + 0x7fff7fffu;
}

/* Bits by column of those below count that are 0; what others hold does not matter. */
__device__ __forceinline__ uint32_t zero_columns(const uint32_t pair[PAIRS], int32_t count)
{
    uint32_t top[2]; /* bits of four bytes */
#pragma unroll
    for (int h = 0; h < 2; h++)
        top[h] = ~__byte_perm(nonzero_halves(pair[2 * h]), nonzero_halves(pair[2 * h + 1]), 0x7531) & 0x80808080u;
    return __dp4a(top[1], 0x80402010u, __dp4a(top[0], 0x08040201u, 0u)) >> 7 & ((1u << count) - 1u);
}

/* Ones at the bottom of fewer than 32 bits. */
__device__ __forceinline__ int trailing_ones(uint32_t bits)
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
__device__ __forceinline__ void find_runs(walked_columns &c, bool *goes_on, uint32_t zeros, uint32_t begin,
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
__device__ __forceinline__ void end_runs(const walked_columns &c, row_runs &runs, bool went_on, int32_t chunk,
                                         int32_t width, unsigned lane, Run run)
{
    /* The column behind the run that the lane's last column is in: the chunk's end where that is in the run, too. */
    const int32_t own_end = c.column + trailing_ones(c.run);
    int32_t end = c.column + COLUMNS;
    const uint32_t full = __ballot_sync(TSR_FULL_WARP, c.run == 255u);
    if (__any_sync(TSR_FULL_WARP, (c.run >> (COLUMNS - 1)) != 0)) {
        const uint32_t behind = full >> lane >> 1;
        const int next = (int)lane + __ffs((int)~behind); /* the first lane behind that is not full */
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
__device__ __forceinline__ void fold_pair(uint32_t x, uint32_t prediction, uint32_t *value, uint32_t *magnitude)
{
    const uint32_t high = __vmaxu2(x, prediction), low = __vminu2(x, prediction);
    *magnitude = high - low;
    *value = 2 * *magnitude - __vminu2(high - x, 0x00010001u); /* 2 |e|, less 1 where e < 0 */
}

/* The same of any differences. */
__device__ __forceinline__ void wrap_pair(uint32_t x, uint32_t prediction, int32_t range, uint32_t *value,
                                          uint32_t *magnitude)
{
    const int32_t low = tsr_residual((int32_t)low_half(x), (int32_t)low_half(prediction), range),
                  high = tsr_residual((int32_t)high_half(x), (int32_t)high_half(prediction), range);
    *magnitude = (uint32_t)tsr_abs(low) | (uint32_t)tsr_abs(high) << 16;
    *value = tsr_fold(low) | tsr_fold(high) << 16;
}

/* Walks a band: see(columns) for eight columns a lane of each chunk of each row, but not where all are outside; behind
 * it run(row, column, length) for each run that ends in the chunk; end_row(row) behind each row. rows: the warp's, of
 * shared memory. QUIET: quiet columns are not plain. */
template <bool QUIET, typename See, typename Run, typename EndRow>
__device__ __forceinline__ void walk_band(const tsr_predict_batch &p, const band_place &at, uint16_t *rows,
                                          int32_t pitch, See see, Run run, EndRow end_row)
{
    const unsigned lane = threadIdx.x % TSR_WARP;
    const int32_t w = at.tile.width, range = (int32_t)tsr_plane_range(p, at.plane);
    const uint32_t most = (uint32_t)((range - 1) >> 1) * 0x10001u; /* magnitudes that surely do not wrap */
    const bool is_linear = p.plan_count > 0 && p.predictor[at.plane].set != 0;
    const int32_t from = tsr_max(0, at.first - WARM_ROWS);
    const size_t first_sample =
        at.plane * p.b.plane_samples + at.tile.first + (size_t)from * at.tile.stride + lane * COLUMNS;
    const bool is_aligned = (first_sample | at.tile.stride) % COLUMNS == 0;
    const uint16_t *x = p.b.samples + first_sample, *up = is_linear ? p.prediction + first_sample : x - at.tile.stride;
    for (int32_t y = from; y < at.end; y++, x += at.tile.stride, up += at.tile.stride) {
        uint16_t *const here = rows + (y & 1) * pitch + GUARD;
        uint16_t *const above = rows + (~y & 1) * pitch + GUARD;
        const uint16_t *const two_up = y == 1 ? above : here; /* where NN still lies; of the second row it is N */
        const bool predicts = is_linear && y > 0, is_wanted = y >= at.first;
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
                if (y > 0) ns = tsr_load_samples(up + chunk, c.count, is_aligned); /* N, or the prediction */
            }
            const uint32_t x_pair[PAIRS] = {xs.x, xs.y, xs.z, xs.w}, n_pair[PAIRS] = {ns.x, ns.y, ns.z, ns.w};
            uint32_t m_pair[PAIRS], largest = 0;
            if (predicts) {
#pragma unroll
                for (int j = 0; j < PAIRS; j++) c.prediction[j] = n_pair[j];
            } else {
                const unsigned before = (lane + TSR_WARP - 1) % TSR_WARP;
                uint32_t xw = __shfl_sync(TSR_FULL_WARP, xs.w, (int)before),
                         nw = __shfl_sync(TSR_FULL_WARP, ns.w, (int)before);
                if (lane == 0) {
                    const uint32_t next_x = xw, next_n = nw;
                    xw = chunk > 0 ? x_left : ns.x << 16;
                    nw = chunk > 0 ? n_left : ns.x << 16;
                    x_left = next_x;
                    n_left = next_n;
                }
                if (c.count == 0) xw = nw = 0;
#pragma unroll
                for (int j = 0; j < PAIRS; j++) /* in the first row all that is above is 0, so that this is W */
                    c.prediction[j] = tsr_median_edges(between(j == 0 ? xw : x_pair[j - 1], x_pair[j]), n_pair[j],
                                                       between(j == 0 ? nw : n_pair[j - 1], n_pair[j]));
            }
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
            const uint4 nn = *reinterpret_cast<const uint4 *>(two_up + c.column);
            if (c.count > 0) {
                const uint4 m = make_uint4(m_pair[0], m_pair[1], m_pair[2], m_pair[3]);
                *reinterpret_cast<uint4 *>(here + c.column) = m;
                /* The column behind a row repeats its last; where that is another lane's, the reader sees to it. */
                if (c.count < COLUMNS) here[w] = here[w - 1];
            }
            if (!is_wanted) continue;
            uint32_t ww = __shfl_sync(TSR_FULL_WARP, m_pair[PAIRS - 1], (int)((lane + TSR_WARP - 1) % TSR_WARP));
            if (lane == 0) {
                const uint32_t next = ww;
                ww = m_left;
                m_left = next;
            }
            const uint32_t before = ww;
            const uint4 n = *reinterpret_cast<const uint4 *>(above + c.column);
            uint32_t nw = *reinterpret_cast<const uint32_t *>(above + c.column - 2);
            uint32_t n_behind = *reinterpret_cast<const uint32_t *>(above + c.column + COLUMNS);
            if (c.column + COLUMNS >= w) n_behind = high_half(n.w);
            const uint32_t above_pair[PAIRS + 1] = {n.x, n.y, n.z, n.w, n_behind},
                                              above2_pair[PAIRS] = {nn.x, nn.y, nn.z, nn.w};
            uint32_t least = UINT32_MAX; /* of what makes columns not plain */
#pragma unroll
            for (int j = 0; j < PAIRS; j++) {
                const uint32_t west = between(ww, m_pair[j]), ne = between(above_pair[j], above_pair[j + 1]);
                c.activity[j] = 2 * (west + above_pair[j]) + (between(nw, above_pair[j]) + ne + ww) + above2_pair[j];
                ww = m_pair[j];
                nw = above_pair[j];
            }
            if (__builtin_expect(y == 0, 0)) {
                ww = before;
#pragma unroll
                for (int j = 0; j < PAIRS; j++) {
                    c.activity[j] = 6 * between(ww, m_pair[j]) + 2 * ww;
                    ww = m_pair[j];
                }
            }
#pragma unroll
            for (int j = 0; j < PAIRS; j++) least = __vminu2(least, QUIET ? c.activity[j] : c.activity[j] | m_pair[j]);
            if (c.count < COLUMNS) least = (uint32_t)c.count - 1u; /* all are outside, or some */
            const bool is_plain = (nonzero_halves(least) & 0x80008000u) == 0x80008000u;
            c.is_plain = !runs.goes_on && __all_sync(TSR_FULL_WARP, is_plain);
            c.quiet = c.run = c.was = 0;
            const bool went_on = runs.goes_on;
            bool has_runs = false;
            if (!c.is_plain) {
                c.quiet = zero_columns(c.activity, c.count);
                const uint32_t zeros = zero_columns(m_pair, c.count);
                has_runs = went_on || __any_sync(TSR_FULL_WARP, (zeros & c.quiet) != 0);
                if (has_runs) find_runs(c, &runs.goes_on, zeros, zeros & c.quiet, lane);
            }
            if (c.count > 0) see(c);
            if (has_runs)
                end_runs(c, runs, went_on, chunk, w, lane,
                         [&](int32_t column, int32_t length) { run(y, column, length); });
        }
        if (is_wanted) end_row(y);
    }
}
static_assert(8 * TSR_MAGNITUDE_LIMIT <= 1 << 15, "two activities fit 32 bits, and one is not 0 if its top bit is not");

/* The warp's rows of magnitudes, behind used bytes of dynamic shared memory. */
__device__ __forceinline__ uint16_t *warp_rows(unsigned char *memory, size_t used, int32_t pitch)
{
    return reinterpret_cast<uint16_t *>(memory + used) + (size_t)(threadIdx.x / TSR_WARP) * WARM_ROWS * (size_t)pitch;
}

/* ---- Levels --------------------------------------------------------------------------------------------------- */

/* Where tokens are looked up: of small values by themselves, of others, whose tokens have so many of them and more, by
 * their higher bits. */
enum {
    FINE_BITS = 4,
    FINE = 64, /* the first place of values by all but 4 bits */
    COARSE_BITS = 8,
    COARSE = 124 /* by all but 8 */
};

__device__ __forceinline__ uint32_t look_up_place(uint32_t value)
{
    return min(min(value, FINE + (value >> FINE_BITS)), COARSE + (value >> COARSE_BITS));
}

/* The least value of a place. */
__device__ __forceinline__ uint32_t value_at(uint32_t place)
{
    return place < FINE + (FINE >> FINE_BITS)       ? place
           : place < COARSE + (1024 >> COARSE_BITS) ? (place - FINE) << FINE_BITS
                                                    : (place - COARSE) << COARSE_BITS;
}
static_assert(FINE == 4 << FINE_BITS && 1024 == 4 << COARSE_BITS && FINE + (1024 >> FINE_BITS) == COARSE + 4,
              "tokens of 2^(b + 2) have 2^b values, and places rise");

/* Activities that no sample has, of columns whose table does not go by neighbours. */
enum {
    INTERRUPTION = 32768,                        /* quiet, behind a run */
    UNCODED = INTERRUPTION + (1 << COARSE_BITS), /* in a run, or outside */
    VALUE_PLACES = COARSE + (65536 >> COARSE_BITS),
    ACTIVITY_PLACES = COARSE + (UNCODED >> COARSE_BITS) + 1
};

/* The level of column i's prediction. */
__device__ __forceinline__ uint32_t intensity_of(const walked_columns &c, int i, int shift)
{
    return i % 2 ? c.prediction[i / 2] >> (16 + shift) : low_half(c.prediction[i / 2]) >> shift;
}

/* Bits 2 j and 2 j + 1 as ones at the bottom of halves. */
__device__ __forceinline__ uint32_t bits_of_pair(uint32_t bits, int j)
{
    return (bits | bits << 15) >> 2 * j & 0x00010001u;
}

/* What a plane's samples are counted by: level 0 is that of none that count; behind the levels of intensity is a place
 * for those, too. */
struct level_counts {
    tsr_device_levels levels;
    uint32_t none[4];
    uint8_t level[(ACTIVITY_PLACES + 15) / 16 * 16]; /* of an activity, by place */
};

/* Of samples that are neither quiet nor in a run. */
__global__ void __launch_bounds__(THREADS) k_levels(const tsr_predict_batch p, const band_plan plan)
{
    TSR_DYNAMIC_SHARED(memory);
    level_counts &counts = *reinterpret_cast<level_counts *>(memory);
    uint32_t *const all = reinterpret_cast<uint32_t *>(memory);
    band_place at;
    const bool is_there = place_band(p, plan, WARPS, 0, &at);
    if (tsr_plane_is_constant(p, at.plane)) return;
    for (unsigned i = threadIdx.x; i < sizeof counts.levels / 4; i += THREADS) all[i] = 0;
    for (unsigned i = threadIdx.x; i < ACTIVITY_PLACES; i += THREADS)
        counts.level[i] = (uint8_t)tsr_activity_level((int32_t)value_at(i));
    __syncthreads();
    const int shift = tsr_intensity_shift(tsr_plane_range(p, at.plane));
    const uint32_t mask = (0xffffu >> shift) * 0x10001u;
    uint32_t *const by_intensity = all + offsetof(tsr_device_levels, intensity) / sizeof(uint32_t);
    if (is_there)
        walk_band<true>(
            p, at, warp_rows(memory, sizeof counts, plan.pitch), plan.pitch,
            [&](walked_columns &c) {
                uint32_t intensity[PAIRS];
#pragma unroll
                for (int j = 0; j < PAIRS; j++) intensity[j] = c.prediction[j] >> shift & mask;
                if (!c.is_plain) {
                    const uint32_t other = (c.quiet | c.run | ~0u << c.count) & 255u;
#pragma unroll
                    for (int j = 0; j < PAIRS; j++) {
                        const uint32_t pair = bits_of_pair(other, j);
                        c.activity[j] &= ~(pair * 0xffffu);
                        intensity[j] = __vmaxu2(intensity[j], pair * TSR_INTENSITY_LEVELS);
                    }
                }
#pragma unroll
                for (int i = 0; i < COLUMNS; i++) {
                    atomicAdd(&counts.levels.activity[counts.level[look_up_place(half_of(c.activity, i))]], 1u);
                    atomicAdd(&by_intensity[half_of(intensity, i)], 1u);
                }
            },
            [](int32_t, int32_t, int32_t) {}, [](int32_t) {});
    __syncthreads();
    uint32_t *sums = reinterpret_cast<uint32_t *>(&p.levels[at.plane]);
    for (unsigned i = threadIdx.x; i < sizeof counts.levels / 4; i += THREADS)
        if (i > 0 && all[i] != 0) atomicAdd(&sums[i], all[i]);
}
static_assert(sizeof(level_counts) % 16 == 0, "rows of magnitudes lie behind it");
static_assert(offsetof(tsr_device_levels, activity) == 0 && offsetof(level_counts, none) == sizeof(tsr_device_levels) &&
                  offsetof(tsr_device_levels, intensity) + TSR_INTENSITY_LEVELS * sizeof(uint32_t) ==
                      sizeof(tsr_device_levels),
              "levels that count for nothing");

/* ---- Cuts --------------------------------------------------------------------------------------------------- */

enum { CUT_THREADS = 256 };

/* What threads of a block tell each other. */
struct cut_memory {
    uint32_t sums[CUT_THREADS / TSR_WARP], tops[CUT_THREADS / TSR_WARP];
};

/* tsr_quantile_group; where 32 bits are enough, and they mostly are, by a reciprocal: inverse is 2^32 / (2 total). */
__device__ __forceinline__ int quantile_group(uint32_t before, uint32_t count, uint32_t total, uint32_t inverse,
                                              int groups)
{
    if (inverse == 0) return tsr_quantile_group(before, count, total, groups);
    const uint32_t wanted = (2 * before + count) * (uint32_t)groups, group = __umulhi(wanted, inverse);
    return (int)(group + (wanted - group * 2 * total >= 2 * total)); /* one too few at most */
}

/* A thread's levels from first on: sixteen, or one where there is one. */
template <int EACH>
__device__ __forceinline__ void load_counts(const uint32_t *counts, int first, int levels, uint32_t count[EACH])
{
    if constexpr (EACH == 1) {
        count[0] = first < levels ? counts[first] : 0u;
    } else {
#pragma unroll
        for (int k = 0; k < EACH; k += 4) {
            const uint4 four = *reinterpret_cast<const uint4 *>(counts + first + k);
            count[k] = four.x;
            count[k + 1] = four.y;
            count[k + 2] = four.z;
            count[k + 3] = four.w;
        }
    }
}

template <int EACH>
__device__ __forceinline__ void store_groups(uint8_t *group_of, int first, int levels, const uint32_t group[EACH])
{
    if constexpr (EACH == 1) {
        if (first < levels) group_of[first] = (uint8_t)group[0];
    } else {
#pragma unroll
        for (int k = 0; k < EACH; k += 4)
            *reinterpret_cast<uint32_t *>(group_of + first + k) =
                group[k] | group[k + 1] << 8 | group[k + 2] << 16 | group[k + 3] << 24;
    }
}

/* tsr_cut_quantiles by a block, and the levels' groups, which rise: each thread has EACH levels, of all that counts and
 * group_of have. Returns the number of cuts. */
template <int EACH>
__device__ __forceinline__ int cut_quantiles(const uint32_t *counts, int levels, int groups, uint16_t *cuts,
                                             uint8_t *group_of, cut_memory &memory)
{
    const unsigned lane = threadIdx.x % TSR_WARP, warp = threadIdx.x / TSR_WARP;
    const int first = (int)threadIdx.x * EACH;
    uint32_t count[EACH], here = 0, total;
    load_counts<EACH>(counts, first, levels, count);
#pragma unroll
    for (int k = 0; k < EACH; k++) here += count[k];
    __syncthreads();
    uint32_t before = tsr_block_scan<CUT_THREADS>(here, memory.sums, &total);
    const uint32_t inverse =
        (uint64_t)total * 2 * (uint64_t)groups <= UINT32_MAX && total > 0 ? UINT32_MAX / (2 * total) : 0u;
    /* Groups plus one; 0: of a level without samples. */
    uint32_t group[EACH], top = 0;
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        group[k] = 0;
        if (count[k] != 0) top = group[k] = 1u + (uint32_t)quantile_group(before, count[k], total, inverse, groups);
        before += count[k];
    }
    /* The highest one of lower threads. */
    uint32_t below = top;
#pragma unroll
    for (unsigned delta = 1; delta < TSR_WARP; delta *= 2) {
        const uint32_t other = __shfl_up_sync(TSR_FULL_WARP, below, delta);
        if (lane >= delta) below = max(below, other);
    }
    if (lane == TSR_WARP - 1) memory.tops[warp] = below;
    below = __shfl_up_sync(TSR_FULL_WARP, below, 1);
    if (lane == 0) below = 0;
    __syncthreads();
    for (unsigned w = 0; w < warp; w++) below = max(below, memory.tops[w]);
    uint32_t own = 0, found = below, all;
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        if (group[k] == 0) continue;
        own += found != 0 && group[k] != found;
        found = group[k];
    }
    uint32_t place = tsr_block_scan<CUT_THREADS>(own, memory.sums, &all), groups_here[EACH];
    found = below;
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        if (group[k] != 0) {
            if (found != 0 && group[k] != found) cuts[place++] = (uint16_t)(first + k);
            found = group[k];
        }
        groups_here[k] = place;
    }
    store_groups<EACH>(group_of, first, levels, groups_here);
    return (int)all;
}

/* A block a plane. */
__global__ void __launch_bounds__(CUT_THREADS) k_cuts(const tsr_predict_batch p)
{
    __shared__ cut_memory memory;
    const uint32_t plane = blockIdx.x;
    if (tsr_plane_is_constant(p, plane)) return;
    tsr_residual_model &model = p.residual[plane]; /* all zero */
    tsr_device_levels &levels = p.levels[plane];
    if (threadIdx.x == 0) levels.activity[1]++, levels.intensity[0]++; /* there may be none */
    __syncthreads();
    tsr_device_groups &groups = p.groups[plane];
    const int activity_cuts = cut_quantiles<1>(levels.activity, TSR_ACTIVITY_LEVELS, p.activity_groups,
                                               model.activity_cut, groups.activity, memory);
    const int intensity_cuts = cut_quantiles<TSR_INTENSITY_LEVELS / CUT_THREADS>(
        levels.intensity, TSR_INTENSITY_LEVELS, p.intensity_groups, model.intensity_cut, groups.intensity, memory);
    if (threadIdx.x == 0) {
        model.lanes = (uint8_t)p.lanes;
        model.activity_cuts = (uint8_t)activity_cuts;
        model.intensity_cuts = (uint8_t)intensity_cuts;
    }
}
static_assert((int)TSR_ACTIVITY_LEVELS <= (int)CUT_THREADS && (int)TSR_INTENSITY_LEVELS % (int)CUT_THREADS == 0,
              "each level has a thread");

/* ---- Cells ---------------------------------------------------------------------------------------------------- */

/* Columns whose table does not go by neighbours have rows of cells of their own behind the others: quiet ones, whose
 * activity is 0, INTERRUPTION and UNCODED. */
enum { SPECIAL_ROWS = 3, CELL_ROOM = TSR_CELL_LIMIT + SPECIAL_ROWS * TSR_INTENSITY_GROUPS };

/* What leads from values to symbols, and from activity and prediction to where the symbols of a cell lie. */
struct cell_lookup {
    uint16_t first[(CELL_ROOM + 7) / 8 * 8];            /* by cell */
    uint8_t symbol[(VALUE_PLACES + 15) / 16 * 16];      /* by place */
    uint8_t activity[(ACTIVITY_PLACES + 15) / 16 * 16]; /* by place: row of cells */
    uint8_t intensity[TSR_INTENSITY_LEVELS];            /* group */
    uint8_t run[TSR_TILE_WIDTH + 16];                   /* symbol of a run's length; 0: one to the end of its row */
};
static_assert(sizeof(cell_lookup) % 16 == 0, "counts or entries lie behind it");

/* All threads; a barrier follows. first_of(cell), quiet, interruption, uncoded: where the symbols of cells lie that go
 * by neighbours, and of others; in symbols, which are words. */
template <typename FirstOf>
__device__ __forceinline__ void load_lookup(const tsr_predict_batch &p, uint32_t plane, cell_lookup &lookup,
                                            FirstOf first_of, int quiet, int interruption, int uncoded)
{
    const tsr_device_groups &groups = p.groups[plane];
    const int rows = p.residual[plane].activity_cuts + 1, across = p.residual[plane].intensity_cuts + 1,
              cells = rows * across;
    for (int c = (int)threadIdx.x; c < cells + SPECIAL_ROWS * across; c += (int)blockDim.x)
        lookup.first[c] = (uint16_t)(c < cells                ? first_of(c)
                                     : c < cells + across     ? quiet
                                     : c < cells + 2 * across ? interruption
                                                              : uncoded);
    for (unsigned i = threadIdx.x; i < VALUE_PLACES; i += blockDim.x) {
        const int symbol = tsr_token_symbol(value_at(i));
        lookup.symbol[i] = (uint8_t)symbol;
        if (i < ACTIVITY_PLACES)
            lookup.activity[i] = (uint8_t)(i == 0                             ? rows
                                           : i == look_up_place(INTERRUPTION) ? rows + 1
                                           : i == look_up_place(UNCODED)      ? rows + 2
                                                                              : groups.activity[symbol]);
    }
    for (unsigned i = threadIdx.x; i <= (unsigned)p.b.tile_width; i += blockDim.x)
        lookup.run[i] = (uint8_t)(i == 0 ? (int)TSR_RUN_TO_END : (int)tsr_run_token(i).symbol);
    const uint32_t *from = reinterpret_cast<const uint32_t *>(groups.intensity);
    uint32_t *to = reinterpret_cast<uint32_t *>(lookup.intensity);
    for (unsigned i = threadIdx.x; i < TSR_INTENSITY_LEVELS / 4; i += blockDim.x) to[i] = from[i];
}
static_assert(sizeof(tsr_device_groups) % 4 == 0 && offsetof(tsr_device_groups, intensity) % 4 == 0, "copied by words");
static_assert((int)ACTIVITY_PLACES <= (int)VALUE_PLACES, "filled together");

/* Gives columns whose table does not go by neighbours the activities that lead to theirs. Returns bits by column of
 * those that have no symbol, whose values are 0. */
__device__ __forceinline__ uint32_t mark_special(walked_columns &c)
{
    const uint32_t outside = ~0u << c.count & 255u, interruptions = c.quiet & c.was & ~c.run;
#pragma unroll
    for (int j = 0; j < PAIRS; j++)
        c.activity[j] =
            __vmaxu2(c.activity[j], bits_of_pair(c.run, j) * UNCODED + bits_of_pair(interruptions, j) * INTERRUPTION);
    if (outside) {
#pragma unroll
        for (int j = 0; j < PAIRS; j++) {
            const uint32_t pair = bits_of_pair(outside, j);
            c.value[j] &= ~(pair * 0xffffu);
            c.activity[j] = (c.activity[j] & ~(pair * 0xffffu)) | pair * UNCODED;
        }
    }
    return c.run | outside;
}

/* Where column i's symbol lies. across: groups of intensity. */
__device__ __forceinline__ uint32_t symbol_place(const cell_lookup &lookup, const walked_columns &c, int i,
                                                 uint32_t across, int shift)
{
    const uint32_t cell =
        lookup.activity[look_up_place(half_of(c.activity, i))] * across + lookup.intensity[intensity_of(c, i, shift)];
    return (uint32_t)lookup.first[cell] + lookup.symbol[look_up_place(half_of(c.value, i))];
}

/* Symbols by cell and of the special tables. room: bytes of lookups and counts. */
__global__ void __launch_bounds__(CELL_THREADS) k_cells(const tsr_predict_batch p, const band_plan plan, size_t room)
{
    TSR_DYNAMIC_SHARED(memory);
    cell_lookup &lookup = *reinterpret_cast<cell_lookup *>(memory);
    uint32_t *counts = reinterpret_cast<uint32_t *>(memory + sizeof lookup);
    const uint32_t plane = plane_of_block(plan);
    if (tsr_plane_is_constant(p, plane)) return;
    const int first_cell = TSR_FIRST_RESIDUAL_TABLE * TSR_RUN_ALPHABET;
    const int used = first_cell + tsr_model_cells(&p.residual[plane]) * TSR_RESIDUAL_SYMBOLS;
    load_lookup(
        p, plane, lookup, [&](int cell) { return first_cell + cell * TSR_RESIDUAL_SYMBOLS; },
        TSR_RUN_TABLE * TSR_RUN_ALPHABET, TSR_INTERRUPTION_TABLE * TSR_RUN_ALPHABET, used);
    for (int i = (int)threadIdx.x; i < used; i += CELL_THREADS) counts[i] = 0;
    __syncthreads();
    const int shift = tsr_intensity_shift(tsr_plane_range(p, plane));
    const uint32_t across = p.residual[plane].intensity_cuts + 1u;
#pragma unroll 1
    for (uint32_t turn = 0; turn < plan.each; turn++) {
        band_place at;
        if (!place_band(p, plan, CELL_WARPS, turn, &at)) continue;
        __syncwarp(); /* nobody is in the last band's rows of magnitudes */
        walk_band<false>(
            p, at, warp_rows(memory, room, plan.pitch), plan.pitch,
            [&](walked_columns &c) {
                if (!c.is_plain) mark_special(c);
#pragma unroll
                for (int i = 0; i < COLUMNS; i++) atomicAdd(&counts[symbol_place(lookup, c, i, across, shift)], 1u);
            },
            [&](int32_t, int32_t, int32_t length) {
                atomicAdd(&counts[TSR_RUN_TABLE * TSR_RUN_ALPHABET + lookup.run[length]], 1u);
            },
            [](int32_t) {});
    }
    __syncthreads();
    uint32_t *sums = p.counts + plane * p.cell_counts;
    for (int i = (int)threadIdx.x; i < used; i += CELL_THREADS)
        if (counts[i] != 0) atomicAdd(&sums[i], counts[i]);
}
static_assert(TSR_FIRST_RESIDUAL_TABLE * TSR_RUN_ALPHABET + (int)TSR_CELL_LIMIT * (int)TSR_RESIDUAL_SYMBOLS < 65536,
              "places of counts are 16 bits");

/* ---- Codes ---------------------------------------------------------------------------------------------------- */

/* What makes codes of values: a symbol's entry plus the value is its code. */
struct code_lookup {
    cell_lookup cells;
    uint32_t entry[TSR_MODEL_TABLES * TSR_DEVICE_CODE_PITCH + 4]; /* the last ones: of what has no code */
};
enum { NO_ENTRY = TSR_MODEL_TABLES * TSR_DEVICE_CODE_PITCH };

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
    load_lookup(
        p, plane, lookup.cells, [&](int cell) { return codes.table_of[cell] * TSR_DEVICE_CODE_PITCH; },
        TSR_RUN_TABLE * TSR_DEVICE_CODE_PITCH, TSR_INTERRUPTION_TABLE * TSR_DEVICE_CODE_PITCH, NO_ENTRY);
    if (threadIdx.x == 0) lookup.entry[NO_ENTRY] = TSR_DEVICE_NO_CODE; /* value 0 is added to it */
    /* A thread a symbol, some tables at once. */
    constexpr int AT_ONCE = THREADS / TSR_DEVICE_CODE_PITCH;
    const int symbol = (int)threadIdx.x % TSR_DEVICE_CODE_PITCH,
              tables = TSR_FIRST_RESIDUAL_TABLE + p.residual[plane].tables;
    const uint32_t least = least_value(symbol);
    int table = (int)threadIdx.x / TSR_DEVICE_CODE_PITCH;
    if (table == AT_ONCE) return;
    for (; table < tables; table += AT_ONCE) {
        uint32_t entry;
        if (p.rans) {
            entry = tsr_device_symbol(table, symbol);
        } else {
            const uint32_t code = codes.huffman[table][symbol], raw_bits = code >> 8 & 255u;
            entry = (((code & 255u) + raw_bits) << TSR_DEVICE_LENGTH_SHIFT) + ((code >> 16) << raw_bits) - least;
        }
        lookup.entry[table * TSR_DEVICE_CODE_PITCH + symbol] = entry;
    }
}

/* Bits of a row's codes, and the column behind the last code: of the row, and of the columns that its lane walks in one
 * of its periods. */
struct row_sums {
    uint32_t bits, behind, first_bits, first_behind;
};

/* cut: the first column of the next period. */
__device__ __forceinline__ void add_code(row_sums &sums, uint32_t code, int32_t column, int32_t cut)
{
    const uint32_t length = code >> TSR_DEVICE_LENGTH_SHIFT, behind = (uint32_t)column + 1u;
    sums.bits += length;
    sums.behind = max(sums.behind, behind);
    if (column >= cut) return;
    sums.first_bits += length;
    sums.first_behind = max(sums.first_behind, behind);
}

__global__ void __launch_bounds__(THREADS, 4) k_codes(const tsr_predict_batch p, const band_plan plan)
{
    TSR_DYNAMIC_SHARED(memory);
    code_lookup &lookup = *reinterpret_cast<code_lookup *>(memory);
    const unsigned lane = threadIdx.x % TSR_WARP;
    band_place at;
    const bool is_there = place_band(p, plan, WARPS, 0, &at);
    if (tsr_plane_is_constant(p, at.plane)) return;
    load_entries(p, at.plane, lookup);
    __syncthreads();
    if (!is_there) return;
    const int shift = tsr_intensity_shift(tsr_plane_range(p, at.plane));
    const uint32_t across = p.residual[at.plane].intensity_cuts + 1u;
    const int32_t period = tsr_lane_period(at.tile.width, p.lanes);
    uint32_t *const codes = p.code + (size_t)at.number * p.tile_places;
    tsr_device_row *const row_at = p.rans ? NULL : p.rows + (size_t)at.number * (size_t)p.b.tile_height;
    row_sums sums = {0, 0, 0, 0};
    const auto cut_of = [&](int32_t y) { return period - TSR_LANE_DELAY * (y & (p.lanes - 1)); };
    walk_band<false>(
        p, at, warp_rows(memory, sizeof lookup, plan.pitch), plan.pitch,
        [&](walked_columns &c) {
            uint32_t code[COLUMNS], lengths[2] = {0, 0};
            const uint32_t uncoded = c.is_plain ? 0u : mark_special(c), coded = uncoded ^ 255u;
#pragma unroll
            for (int i = 0; i < COLUMNS; i++) {
                code[i] = lookup.entry[symbol_place(lookup.cells, c, i, across, shift)] + half_of(c.value, i);
                lengths[i / 4] += code[i] >> TSR_DEVICE_LENGTH_SHIFT;
            }
            if (uncoded) {
                lengths[0] -= (uint32_t)__popc(uncoded & 15u) * (TSR_DEVICE_NO_CODE >> TSR_DEVICE_LENGTH_SHIFT);
                lengths[1] -= (uint32_t)__popc(uncoded >> 4) * (TSR_DEVICE_NO_CODE >> TSR_DEVICE_LENGTH_SHIFT);
            }
            uint32_t *const to = codes + ((uint32_t)c.row * p.tile_pitch + (uint32_t)c.column);
            *reinterpret_cast<uint4 *>(to) = make_uint4(code[0], code[1], code[2], code[3]);
            *reinterpret_cast<uint4 *>(to + 4) = make_uint4(code[4], code[5], code[6], code[7]);
            /* Columns rise: what is behind a later one is behind all. */
            const int32_t cut = cut_of(c.row);
            sums.bits += lengths[0] + lengths[1];
            if (coded) sums.behind = (uint32_t)c.column + (tsr_highest_bit(coded) + 1u);
            if (c.column >= cut) return;
            const bool is_whole = c.column + 4 < cut;
            const uint32_t first = is_whole ? coded : coded & 15u;
            sums.first_bits += lengths[0] + (is_whole ? lengths[1] : 0u);
            if (first) sums.first_behind = (uint32_t)c.column + (tsr_highest_bit(first) + 1u);
        },
        [&](int32_t y, int32_t column, int32_t length) {
            const uint32_t code =
                lookup.entry[TSR_RUN_TABLE * TSR_DEVICE_CODE_PITCH + lookup.cells.run[length]] + (uint32_t)length;
            codes[(uint32_t)y * p.tile_pitch + (uint32_t)column] = code;
            add_code(sums, code, column, cut_of(y));
        },
        [&](int32_t y) {
            const uint32_t bits = tsr_warp_sum(sums.bits), behind = tsr_warp_max(sums.behind);
            tsr_device_row row;
            row.bits[0] = tsr_warp_sum(sums.first_bits);
            row.bits[1] = bits - row.bits[0];
            row.behind[0] = (uint16_t)tsr_warp_max(sums.first_behind);
            row.behind[1] = (uint16_t)((int32_t)behind > cut_of(y) ? behind : 0u);
            sums = {0, 0, 0, 0};
            if (lane == 0 && row_at) row_at[y] = row;
        });
}
static_assert(sizeof(code_lookup) % 16 == 0, "rows of magnitudes lie behind it");
static_assert(TSR_LANE_STEP == 4 && COLUMNS == 8, "a lane's period ends between two fours");

} // namespace

int tsr_predict_counts(const struct tsr_predict_batch *batch, cudaStream_t stream)
{
    const band_plan plan = plan_bands(*batch, batch->cuts_period, BAND_ROWS, WARPS, 1);
    const size_t level_bytes = sizeof(level_counts) + walk_bytes(plan, WARPS);
    TSR_CUDA_TRY(tsr_allow_shared(k_levels, level_bytes));
    TSR_CUDA_TRY(tsr_launch(k_levels, batch->b.planes * plan.blocks, THREADS, level_bytes, stream, *batch, plan));
    TSR_CUDA_TRY(tsr_launch(k_cuts, batch->b.planes, CUT_THREADS, 0, stream, *batch));
    const band_plan cells = plan_bands(*batch, batch->period, BAND_ROWS, CELL_WARPS, batch->launch.cell_bands);
    const size_t room = (sizeof(cell_lookup) + (batch->cell_counts + 1) * sizeof(uint32_t) + 15) / 16 * 16;
    const size_t bytes = room + walk_bytes(cells, CELL_WARPS);
    TSR_CUDA_TRY(tsr_allow_shared(k_cells, bytes));
    return tsr_launch(k_cells, batch->b.planes * cells.blocks, CELL_THREADS, bytes, stream, *batch, cells, room);
}

int tsr_predict_codes(const struct tsr_predict_batch *batch, cudaStream_t stream)
{
    const band_plan plan = plan_bands(*batch, 0, batch->launch.code_rows, WARPS, 1);
    const size_t bytes = sizeof(code_lookup) + walk_bytes(plan, WARPS);
    TSR_CUDA_TRY(tsr_allow_shared(k_codes, bytes));
    return tsr_launch(k_codes, batch->b.planes * plan.blocks, THREADS, bytes, stream, *batch, plan);
}
