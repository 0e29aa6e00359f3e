/* Samples to codes on the device: activities' and intensities' bins counted, symbols counted by cell, and the code of
 * each sample. FORMAT.md sections 7.2 to 7.6 and 7.10.
 *
 * Nothing but codes goes to memory: each pass walks the samples again (residual_walk.cuh), which takes less than
 * reading what another one has left. */
#include "residual_walk.cuh"

using namespace tsr_walk;

namespace
{

enum {
    WARPS = TSR_CODE_WARPS,
    THREADS = WARPS * TSR_WARP,
    CELL_WARPS = TSR_CELL_WARPS,
    CELL_THREADS = CELL_WARPS * TSR_WARP,
    BAND_ROWS = TSR_BAND_ROWS
};

/* Is a plane one of the kernels of this kind of residuals? The trial counts both kinds of planes that have both. */
template <bool ANCHORED> __device__ __forceinline__ bool is_ours(const tsr_predict_batch &p, uint32_t plane)
{
    if (tsr_plane_is_constant(p, plane)) return false;
    if (!p.tries_anchors) return true;
    const tsr_predictor_model &model = p.predictor[plane];
    return p.in_trial ? !ANCHORED || model.set != 0 : model.anchored == ANCHORED;
}

/* By how much what the walk gives in place of predictions is shifted to be a bin. */
template <bool ANCHORED> __device__ __forceinline__ int bin_shift(const tsr_predict_batch &p, uint32_t plane)
{
    return ANCHORED ? 0 : tsr_intensity_shift(tsr_plane_range(p, plane));
}

/* ---- Bins --------------------------------------------------------------------------------------------------- */

/* Where tokens are looked up: of small values by themselves, of others, whose tokens have this many of them and more,
 * by their higher bits. */
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
    INTERRUPTION = 32768,                        /* quiet, after a run */
    UNCODED = INTERRUPTION + (1 << COARSE_BITS), /* in a run, or outside */
    VALUE_PLACES = COARSE + (65536 >> COARSE_BITS),
    ACTIVITY_PLACES = COARSE + (UNCODED >> COARSE_BITS) + 1
};

/* The bin of column i's prediction. */
__device__ __forceinline__ uint32_t intensity_of(const walked_columns &c, int i, int shift)
{
    return i % 2 ? c.prediction[i / 2] >> (16 + shift) : low_half(c.prediction[i / 2]) >> shift;
}

/* Bits 2 j and 2 j + 1 as ones at the bottom of halves. */
__device__ __forceinline__ uint32_t bits_of_pair(uint32_t bits, int j)
{
    return (bits | bits << 15) >> 2 * j & 0x00010001u;
}

/* What a plane's samples are counted by: bin 0 is that of none that count; after the bins of intensity is a place
 * for those, too. */
struct bin_counts {
    tsr_device_bins bins;
    uint32_t none[4];
    uint8_t bin[(ACTIVITY_PLACES + 15) / 16 * 16]; /* of an activity, by place */
};

/* Of samples that are neither quiet nor in a run. */
template <bool ANCHORED>
__global__ void __launch_bounds__(THREADS) k_bins(const tsr_predict_batch p, const band_plan plan)
{
    TSR_DYNAMIC_SHARED(memory);
    bin_counts &counts = *reinterpret_cast<bin_counts *>(memory);
    uint32_t *const all = reinterpret_cast<uint32_t *>(memory);
    band_place at;
    const bool is_there = place_band(p, plan, WARPS, 0, &at);
    if (!is_ours<ANCHORED>(p, at.plane)) return;
    for (unsigned i = threadIdx.x; i < sizeof counts.bins / 4; i += THREADS) all[i] = 0;
    for (unsigned i = threadIdx.x; i < ACTIVITY_PLACES; i += THREADS)
        counts.bin[i] = (uint8_t)tsr_activity_bin((int32_t)value_at(i));
    __syncthreads();
    const int shift = bin_shift<ANCHORED>(p, at.plane);
    const uint32_t mask = (0xffffu >> shift) * 0x10001u;
    uint32_t *const by_intensity = all + offsetof(tsr_device_bins, intensity) / sizeof(uint32_t);
    if (is_there)
        walk_band<true, ANCHORED>(
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
                        intensity[j] = __vmaxu2(intensity[j], pair * TSR_INTENSITY_BINS);
                    }
                }
#pragma unroll
                for (int i = 0; i < COLUMNS; i++) {
                    atomicAdd(&counts.bins.activity[counts.bin[look_up_place(half_of(c.activity, i))]], 1u);
                    atomicAdd(&by_intensity[half_of(intensity, i)], 1u);
                }
            },
            [](int32_t, int32_t, int32_t) {}, [](int32_t) {});
    __syncthreads();
    uint32_t *sums = reinterpret_cast<uint32_t *>(&p.bins[at.plane]);
    for (unsigned i = threadIdx.x; i < sizeof counts.bins / 4; i += THREADS)
        if (i > 0 && all[i] != 0) atomicAdd(&sums[i], all[i]);
}
static_assert(sizeof(bin_counts) % 16 == 0, "rows of magnitudes lie after it");
static_assert(offsetof(tsr_device_bins, activity) == 0 && offsetof(bin_counts, none) == sizeof(tsr_device_bins) &&
                  offsetof(tsr_device_bins, intensity) + TSR_INTENSITY_BINS * sizeof(uint32_t) ==
                      sizeof(tsr_device_bins),
              "bins that count for nothing");

/* ---- Cells ---------------------------------------------------------------------------------------------------- */

/* Columns whose table does not go by neighbours have rows of cells of their own after the others: quiet ones, whose
 * activity is 0, INTERRUPTION and UNCODED. */
enum { SPECIAL_ROWS = 3, CELL_ROOM = TSR_CELL_LIMIT + SPECIAL_ROWS * TSR_INTENSITY_GROUPS };

/* What leads from values to symbols, and from activity and prediction to where the symbols of a cell lie. */
struct cell_lookup {
    uint16_t first[(CELL_ROOM + 7) / 8 * 8];            /* by cell */
    uint8_t symbol[(VALUE_PLACES + 15) / 16 * 16];      /* by place */
    uint8_t activity[(ACTIVITY_PLACES + 15) / 16 * 16]; /* by place: row of cells */
    uint8_t intensity[TSR_INTENSITY_BINS];              /* group */
    uint8_t run[TSR_TILE_WIDTH + 16];                   /* symbol of a run's length; 0: one to the end of its row */
};
static_assert(sizeof(cell_lookup) % 16 == 0, "counts or entries lie after it");

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
    for (unsigned i = threadIdx.x; i <= (unsigned)p.b.shape.tile_width; i += blockDim.x)
        lookup.run[i] = (uint8_t)(i == 0 ? (int)TSR_RUN_TO_END : (int)tsr_run_token(i).symbol);
    const uint32_t *from = reinterpret_cast<const uint32_t *>(groups.intensity);
    uint32_t *to = reinterpret_cast<uint32_t *>(lookup.intensity);
    for (unsigned i = threadIdx.x; i < TSR_INTENSITY_BINS / 4; i += blockDim.x) to[i] = from[i];
}
static_assert(sizeof(tsr_device_groups) % 4 == 0 && offsetof(tsr_device_groups, intensity) % 4 == 0, "copied by words");
static_assert((int)ACTIVITY_PLACES <= (int)VALUE_PLACES, "filled together");

/* Gives columns whose table does not go by neighbours the activities that lead to theirs. Returns bits by column of
 * those that have no symbol, whose values are 0. */
__device__ __forceinline__ uint32_t mark_special(walked_columns &c)
{
    const uint32_t outside = ~0u << c.count & 255u, interruptions = tsr_interruptions(c.quiet, c.was, c.run);
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
    const int cell = tsr_cell_of(lookup.activity[look_up_place(half_of(c.activity, i))],
                                 lookup.intensity[intensity_of(c, i, shift)], (int)across);
    return (uint32_t)lookup.first[cell] + lookup.symbol[look_up_place(half_of(c.value, i))];
}

/* Symbols by cell and of the special tables. room: bytes of lookups and counts. */
template <bool ANCHORED>
__global__ void __launch_bounds__(CELL_THREADS) k_cells(const tsr_predict_batch p, const band_plan plan, size_t room)
{
    TSR_DYNAMIC_SHARED(memory);
    cell_lookup &lookup = *reinterpret_cast<cell_lookup *>(memory);
    uint32_t *counts = reinterpret_cast<uint32_t *>(memory + sizeof lookup);
    const uint32_t plane = plane_of_block(plan);
    if (!is_ours<ANCHORED>(p, plane)) return;
    const int first_cell = TSR_FIRST_RESIDUAL_TABLE * TSR_RUN_ALPHABET;
    const int used = first_cell + tsr_model_cells(&p.residual[plane]) * TSR_RESIDUAL_SYMBOLS;
    load_lookup(
        p, plane, lookup, [&](int cell) { return first_cell + cell * TSR_RESIDUAL_SYMBOLS; },
        TSR_RUN_TABLE * TSR_RUN_ALPHABET, TSR_INTERRUPTION_TABLE * TSR_RUN_ALPHABET, used);
    for (int i = (int)threadIdx.x; i < used; i += CELL_THREADS) counts[i] = 0;
    __syncthreads();
    const int shift = bin_shift<ANCHORED>(p, plane);
    const uint32_t across = p.residual[plane].intensity_cuts + 1u;
#pragma unroll 1
    for (uint32_t turn = 0; turn < plan.each; turn++) {
        band_place at;
        if (!place_band(p, plan, CELL_WARPS, turn, &at)) continue;
        __syncwarp(); /* nobody is in the last band's rows of magnitudes */
        walk_band<false, ANCHORED>(
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
    const bool is_rans = tsr_is_rans(&p, plane);
    int table = (int)threadIdx.x / TSR_DEVICE_CODE_PITCH;
    if (table == AT_ONCE) return;
    for (; table < tables; table += AT_ONCE) {
        uint32_t entry;
        if (is_rans) {
            entry = tsr_device_symbol(table, symbol);
        } else {
            const uint32_t code = codes.huffman[table][symbol], raw_bits = code >> 8 & 255u;
            entry = (((code & 255u) + raw_bits) << TSR_DEVICE_LENGTH_SHIFT) + ((code >> 16) << raw_bits) - least;
        }
        lookup.entry[table * TSR_DEVICE_CODE_PITCH + symbol] = entry;
    }
}

/* Bits of a row's codes, and the column after the last code: of the row, and of the columns that its lane walks in one
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

/* A row's sums, of all lanes, to its place (NULL: nowhere), and clears them. */
__device__ __forceinline__ void put_row(row_sums &sums, int32_t cut, tsr_device_row *to, unsigned lane)
{
    const uint32_t bits = tsr_warp_sum(sums.bits), behind = tsr_warp_max(sums.behind);
    tsr_device_row row;
    row.bits[0] = tsr_warp_sum(sums.first_bits);
    row.bits[1] = bits - row.bits[0];
    row.behind[0] = (uint16_t)tsr_warp_max(sums.first_behind);
    row.behind[1] = (uint16_t)((int32_t)behind > cut ? behind : 0u);
    sums = {0, 0, 0, 0};
    if (lane == 0 && to) *to = row;
}

template <bool ANCHORED>
__global__ void __launch_bounds__(THREADS, 4) k_codes(const tsr_predict_batch p, const band_plan plan)
{
    TSR_DYNAMIC_SHARED(memory);
    code_lookup &lookup = *reinterpret_cast<code_lookup *>(memory);
    const unsigned lane = threadIdx.x % TSR_WARP;
    band_place at;
    const bool is_there = place_band(p, plan, WARPS, 0, &at);
    if (!is_ours<ANCHORED>(p, at.plane)) return;
    load_entries(p, at.plane, lookup);
    __syncthreads();
    if (!is_there) return;
    const int shift = bin_shift<ANCHORED>(p, at.plane);
    const uint32_t across = p.residual[at.plane].intensity_cuts + 1u;
    const int32_t period = tsr_lane_period(at.tile.width, p.lanes);
    uint32_t *const codes = p.code + (size_t)at.number * p.tile_places;
    tsr_device_row *const row_at =
        tsr_is_rans(&p, at.plane) ? NULL : p.rows + (size_t)at.number * (size_t)p.b.shape.tile_height;
    row_sums sums = {0, 0, 0, 0};
    const auto cut_of = [&](int32_t y) { return period - TSR_LANE_DELAY * (y & (p.lanes - 1)); };
    walk_band<false, ANCHORED>(
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
            /* Columns rise: what stands after a later one stands after all. */
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
        [&](int32_t y) { put_row(sums, cut_of(y), row_at ? row_at + y : NULL, lane); });
}
static_assert(sizeof(code_lookup) % 16 == 0, "rows of magnitudes lie after it");
static_assert(TSR_LANE_STEP == 4 && COLUMNS == 8, "a lane's period ends between two fours");

/* Launches the kernel for planes whose residuals are not anchored, and, where there may be any, that for others. */
template <typename Kernel, typename... More>
int launch_both(Kernel plain, Kernel anchored, const tsr_predict_batch &p, cudaStream_t stream, unsigned grid,
                unsigned threads, size_t bytes, const band_plan &plan, More... more)
{
    TSR_CUDA_TRY(tsr_allow_shared(plain, bytes));
    TSR_CUDA_TRY(tsr_launch(plain, grid, threads, bytes, stream, p, plan, more...));
    if (!p.tries_anchors) return cudaSuccess;
    tsr_predict_batch others = p;
    if (p.in_trial) { /* they count in sets of their own */
        others.bins += p.b.shape.planes;
        others.groups += p.b.shape.planes;
        others.counts += p.b.shape.planes * p.cell_counts;
        others.residual = p.anchored_residual;
    }
    TSR_CUDA_TRY(tsr_allow_shared(anchored, bytes));
    return tsr_launch(anchored, grid, threads, bytes, stream, others, plan, more...);
}

} // namespace

int tsr_predict_bins(const struct tsr_predict_batch *batch, cudaStream_t stream)
{
    const band_plan plan = plan_bands(*batch, batch->cuts_period, BAND_ROWS, WARPS, 1);
    const size_t bytes = sizeof(bin_counts) + walk_bytes(plan, WARPS);
    return launch_both(k_bins<false>, k_bins<true>, *batch, stream, batch->b.shape.planes * plan.blocks, THREADS, bytes,
                       plan);
}

int tsr_predict_cells(const struct tsr_predict_batch *batch, cudaStream_t stream)
{
    const band_plan plan = plan_bands(*batch, batch->period, BAND_ROWS, CELL_WARPS, batch->launch.cell_bands);
    const size_t room = (sizeof(cell_lookup) + (batch->cell_counts + 1) * sizeof(uint32_t) + 15) / 16 * 16;
    const size_t bytes = room + walk_bytes(plan, CELL_WARPS);
    return launch_both(k_cells<false>, k_cells<true>, *batch, stream, batch->b.shape.planes * plan.blocks, CELL_THREADS,
                       bytes, plan, room);
}

int tsr_predict_codes(const struct tsr_predict_batch *batch, cudaStream_t stream)
{
    const band_plan plan = plan_bands(*batch, 0, batch->launch.code_rows, WARPS, 1);
    const size_t bytes = sizeof(code_lookup) + walk_bytes(plan, WARPS);
    return launch_both(k_codes<false>, k_codes<true>, *batch, stream, batch->b.shape.planes * plan.blocks, THREADS,
                       bytes, plan);
}
