/* Levels by Huffman codes of pairs on the device: FORMAT.md sections 8.6 and 10.5, the behaviour of
 * kernels/levels_cpu.c with pairs.
 *
 * A thread a block, twice: a block of threads a tile counts symbols, and the frame of block_coder.cuh writes their
 * codes. Runs of zero blocks need no walk along the slice: a slice's zero blocks between two others are one stretch,
 * the first of them with energy level 0 begins the run, and all that follow in the stretch belong to it, so two masks
 * of the slice's blocks tell each its part. What a block finds there is kept for the second time. */
#include "device.cuh"

#include "block_coder.cuh"
#include "cuda_energies.cuh"
#include "cuda_levels.cuh"

#include "../entropy/level_pairs.h"

namespace
{

enum { THREADS = TSR_SLICE_PLACE_COUNT, MASK_WORDS = THREADS / TSR_WARP };

typedef tsr_seen_blocks<TSR_SLICE_BLOCKS> slice_seen;

/* ---- Runs of zero blocks -------------------------------------------------------------------------------- */

/* A block's part in them: the energy level that codes its number of places, whether it belongs to the run of a block
 * before it and so is not coded, whether a run stands in front of it, and its length. */
struct block_run {
    uint32_t level;
    bool is_inside, begins;
    uint32_t length;
};

__device__ __forceinline__ uint16_t pack_run(block_run run)
{
    return (uint16_t)(run.level | (run.is_inside ? 32u : 0u) | (run.begins ? 64u : 0u) | run.length << 7);
}

__device__ __forceinline__ block_run unpack_run(uint32_t packed)
{
    block_run run;
    run.level = packed & 31u;
    run.is_inside = packed & 32u;
    run.begins = packed & 64u;
    run.length = packed >> 7;
    return run;
}

/* Masks of a slice's blocks, by place: those that are not 0, and the zero ones whose energy is of level 0. */
struct zero_masks {
    uint32_t coded[MASK_WORDS], quiet[MASK_WORDS];
};

__device__ __forceinline__ block_run find_run(const zero_masks &masks, const struct tsr_slice &slice, unsigned thread,
                                              int level, bool is_zero)
{
    block_run run = {(uint32_t)level, false, false, 0};
    bool is_behind_quiet = false; /* with nothing but zero blocks between */
    const uint32_t below = (1u << thread % TSR_WARP) - 1u;
    for (int w = (int)(thread / TSR_WARP); w >= 0; w--) {
        const uint32_t before = w == (int)(thread / TSR_WARP) ? below : ~0u;
        const uint32_t coded = masks.coded[w] & before, quiet = masks.quiet[w] & before;
        if ((coded | quiet) == 0) continue;
        is_behind_quiet = quiet > coded; /* by the highest bit: none is in both */
        break;
    }
    if (is_zero && is_behind_quiet) {
        run.is_inside = true;
        return run;
    }
    if (is_behind_quiet) { /* behind a run */
        run.level = 0;
        return run;
    }
    run.begins = level == 0;
    if (!run.begins || !is_zero) return run;
    uint32_t end = (uint32_t)(slice.rows * TSR_SLICE_BLOCKS);
    for (uint32_t w = thread / TSR_WARP; w < MASK_WORDS; w++) {
        const uint32_t coded = masks.coded[w] & (w == thread / TSR_WARP ? ~below : ~0u);
        if (coded == 0) continue;
        end = w * TSR_WARP + (uint32_t)__ffs((int)coded) - 1u;
        break;
    }
    const uint32_t columns = (uint32_t)slice.columns;
    run.length = (end / TSR_SLICE_BLOCKS - thread / TSR_SLICE_BLOCKS) * columns + end % TSR_SLICE_BLOCKS -
                 thread % TSR_SLICE_BLOCKS;
    return run;
}

/* ---- A block's symbols ---------------------------------------------------------------------------------- */

/* What the pair of place p and p - 1 expects; at 0 the energy of place 0. Of thread t: places 2k and 2k + 1 at [k][t].
 */
typedef uint32_t pair_energies[TSR_PLACE_WORDS][THREADS];

__device__ __forceinline__ void set_expected(pair_energies &expected, unsigned thread,
                                             const uint32_t seen[TSR_PLACE_WORDS], uint32_t energy[TSR_PLACE_WORDS])
{
    tsr_add_own_energies(seen, energy);
    uint32_t at[TSR_BLOCK_SAMPLES];
    at[0] = tsr_half(energy, 0);
#pragma unroll
    for (int p = 1; p < TSR_BLOCK_SAMPLES; p++)
        at[p] = (tsr_half(energy, p) + tsr_half(energy, p - 1) -
                 tsr_half(seen, p) * TSR_AT(tsr_weight_inside)[TSR_BLOCK_SAMPLES * p + p - 1]) >>
                1;
#pragma unroll
    for (int k = 0; k < TSR_PLACE_WORDS; k++) expected[k][thread] = at[2 * k + 1] << 16 | at[2 * k];
}

__device__ __forceinline__ uint32_t expected_at(const pair_energies &expected, unsigned thread, int place)
{
    return expected[place / 2][thread] >> (place % 2 ? 16 : 0) & 0xffffu;
}

/* tsr_pair_rest. */
template <typename Sink> __device__ __forceinline__ void put_rest(Sink &sink, uint32_t value, int low_bits)
{
    const uint32_t high = value >> low_bits;
    if (high >= TSR_PAIR_DIGITS - 1) {
        const uint32_t rest = high - (TSR_PAIR_DIGITS - 1);
        const int width = tsr_bit_width(rest);
        sink.raw((uint32_t)width << width | rest, 5 + width);
    }
    if (low_bits > 0) sink.raw(value & ((1u << low_bits) - 1u), low_bits);
}

/* The run in front of a block and tsr_pair_entries, into a sink that takes symbols of cells, followed by raw bits, and
 * raw bits. level_at(p): the level at place p. */
template <typename Sink, typename LevelAt>
__device__ __forceinline__ void visit_pairs(Sink &sink, const block_run &run, int places, int shift,
                                            const pair_energies &expected, unsigned thread, LevelAt level_at)
{
    const uint32_t top = TSR_PAIR_DIGITS - 1;
    if (run.is_inside) return;
    if (run.begins) {
        const int symbol = tsr_zero_run_symbol(run.length), raw_bits = tsr_zero_run_raw_bits(symbol);
        sink.symbol(tsr_pair_cell(TSR_PAIR_RUN, 0), symbol, run.length & ((1u << raw_bits) - 1u), raw_bits);
        if (run.length > 0) return;
    }
    sink.symbol(tsr_pair_cell(TSR_PAIR_PLACES, (int)run.level), places, 0, 0);
    int group = TSR_PAIR_HIGHEST;
    uint32_t less = 1;
    for (int p = places - 1; p > 0; p -= 2) {
        if (p == 1) {
            group = TSR_PAIR_DC;
            less = 0;
        }
        const uint32_t energy = expected_at(expected, thread, p);
        const int low_bits = tsr_pair_raw_bits(energy, shift), cell = tsr_pair_cell(group, tsr_energy_level(energy));
        const int32_t a_level = level_at(p), b_level = level_at(p - 1);
        const uint32_t a = (uint32_t)tsr_abs(a_level) - less, b = (uint32_t)tsr_abs(b_level);
        const uint32_t first = a >> low_bits, second = b >> low_bits;
        const int a_sign = a_level != 0, b_sign = b_level != 0;
        if (first < top && second < top && low_bits == 0) {
            const uint32_t signs = (uint32_t)(a_level < 0) << b_sign | (uint32_t)(b_level < 0);
            sink.symbol(cell, (int)(first * TSR_PAIR_DIGITS + second), signs, a_sign + b_sign);
        } else {
            sink.symbol(cell, (int)(min(first, top) * TSR_PAIR_DIGITS + min(second, top)), 0, 0);
            put_rest(sink, a, low_bits);
            sink.raw(a_level < 0, a_sign);
            put_rest(sink, b, low_bits);
            sink.raw(b_level < 0, b_sign);
        }
        group = TSR_PAIR_OTHERS;
        less = 0;
    }
    if (places % 2 == 0) return;
    const int32_t level = level_at(0);
    const uint32_t magnitude = (uint32_t)tsr_abs(level);
    const struct tsr_token token = tsr_token(magnitude - (places == 1));
    const int sign = magnitude != 0;
    sink.symbol(tsr_pair_cell(places == 1 ? TSR_PAIR_DC_ALONE : TSR_PAIR_LONE,
                              tsr_energy_level(expected_at(expected, thread, 0))),
                token.symbol, token.raw << sign | (uint32_t)(level < 0), token.raw_bits + sign);
}

/* ---- Counting ------------------------------------------------------------------------------------------- */

enum { COUNTS = TSR_PAIR_CELLS * TSR_PAIR_SYMBOLS };

/* Counts of a tile fit 16 bits, two in a word: 4096 blocks of at most 7 pairs of a cell. */
static_assert(TSR_TILE_SLICES * TSR_SLICE_PLACE_COUNT * 7 < 65536, "a tile's counts must fit 16 bits");

template <typename Level> struct count_memory {
    slice_seen seen;
    pair_energies expected;
    zero_masks masks;
    Level level[TSR_BLOCK_SAMPLES][THREADS];
    tsr_tile_counts<COUNTS> counts;
};

struct count_sink {
    tsr_tile_counts<COUNTS> &counts;

    __device__ __forceinline__ void symbol(int cell, int symbol, uint32_t, int)
    {
        counts.add((uint32_t)(cell * TSR_PAIR_SYMBOLS + symbol));
    }
    __device__ __forceinline__ void raw(uint32_t, int)
    {
    }
};

/* A block of threads a tile of a plane. */
template <typename Level> __global__ void __launch_bounds__(THREADS) k_count_pairs(const tsr_cuda_batch b)
{
    TSR_DYNAMIC_SHARED(memory);
    count_memory<Level> &m = *reinterpret_cast<count_memory<Level> *>(memory);
    const unsigned thread = threadIdx.x;
    const uint32_t number = blockIdx.x / b.tiles;
    if (tsr_state_span(b.plane[number]) == 1) return;
    const struct tsr_tile_place place = tsr_tile_place(&b, blockIdx.x - number * b.tiles);
    const int shift = tsr_plane_shift(b, number);
    m.seen.clear(thread, THREADS);
    m.counts.clear(thread, THREADS);
    __syncthreads();
    const int32_t c = (int32_t)(thread % TSR_SLICE_BLOCKS), r = (int32_t)(thread / TSR_SLICE_BLOCKS);
    for (uint32_t s = 0; s < place.slice_columns * place.slice_rows; s++) {
        const size_t at = (size_t)number * b.slices + place.first_slice + s;
        const struct tsr_slice slice = tsr_plane_slice(&b, place.first_slice + s);
        const bool is_block = c < slice.columns && r < slice.rows;
        uint32_t seen[TSR_PLACE_WORDS] = {0}, energy[TSR_PLACE_WORDS];
        int places = 0;
        if (is_block) {
            int32_t block[TSR_BLOCK_SAMPLES];
            tsr_load_block(static_cast<const Level *>(b.levels), at, thread, block);
            tsr_see_words(block, shift, seen);
            places = tsr_places_of(block);
#pragma unroll
            for (int p = 0; p < TSR_BLOCK_SAMPLES; p++) m.level[p][thread] = (Level)block[p];
        }
        m.seen.set(slice_seen::at(thread), seen);
        __syncthreads();
        m.seen.energies(slice_seen::at(thread), energy);
        const int level = tsr_level_of_block(energy);
        const uint32_t coded = __ballot_sync(TSR_FULL_WARP, places > 0),
                       quiet = __ballot_sync(TSR_FULL_WARP, is_block && places == 0 && level == 0);
        if (thread % TSR_WARP == 0) m.masks.coded[thread / TSR_WARP] = coded;
        if (thread % TSR_WARP == 0) m.masks.quiet[thread / TSR_WARP] = quiet;
        __syncthreads();
        if (!is_block) continue;
        const block_run run = find_run(m.masks, slice, thread, level, places == 0);
        b.runs[at * THREADS + thread] = pack_run(run);
        if (run.is_inside) continue;
        set_expected(m.expected, thread, seen, energy);
        count_sink sink = {m.counts};
        visit_pairs(sink, run, places, shift, m.expected, thread, [&](int p) { return (int32_t)m.level[p][thread]; });
    }
    __syncthreads();
    m.counts.add_to(b.counts + (size_t)number * COUNTS, thread, THREADS);
}

template <typename Level> cudaError_t count_pairs(const tsr_cuda_batch *b, cudaStream_t stream)
{
    void (*const kernel)(tsr_cuda_batch) = k_count_pairs<Level>;
    const size_t shared_bytes = sizeof(count_memory<Level>);
    TSR_CUDA_TRY(tsr_allow_shared(kernel, shared_bytes));
    return tsr_launch(kernel, b->planes * b->tiles, THREADS, shared_bytes, stream, *b);
}

/* ---- Coding --------------------------------------------------------------------------------------------- */

struct writer_sink {
    tsr_code_writer<THREADS> &writer;
    const tsr_cell_codes &codes;

    __device__ __forceinline__ void symbol(int cell, int symbol, uint32_t raw_value, int raw_bits)
    {
        const uint32_t word = __ldg(&codes.cell[cell][symbol]), bits = word & 0xfffu, length = word >> 12;
        if (length + (uint32_t)raw_bits <= 32u) {
            writer.put(bits << raw_bits | raw_value, length + (uint32_t)raw_bits);
        } else {
            writer.put(bits, length);
            writer.put(raw_value, (uint32_t)raw_bits);
        }
    }
    __device__ __forceinline__ void raw(uint32_t value, int bits)
    {
        writer.put(value, (uint32_t)bits);
    }
};

template <typename Level> struct pair_coder {
    /* A run of 12 + 7 bits, 12 for the places, 8 pairs of 12 and twice 5 + 23 + 1 bits, or 5 + 15 + 1 where levels are
     * narrow. */
    enum { WORDS = sizeof(Level) == 2 ? 16 : 20, WHOLE_BYTES = 1 };
    struct shared {
        slice_seen seen;
        pair_energies expected;
        Level level[TSR_BLOCK_SAMPLES][THREADS];
    };
    struct block {
        uint32_t plane;
        uint32_t run; /* packed */
        int places;
        bool is_block;
    };
    tsr_cuda_batch b;

    __device__ void prepare(shared &s) const
    {
        s.seen.clear(threadIdx.x, THREADS);
    }

    __device__ __forceinline__ void load(shared &s, unsigned tile, unsigned thread, block &own) const
    {
        own.plane = tile / b.slices;
        const struct tsr_slice slice = tsr_plane_slice(&b, tile - own.plane * b.slices);
        own.is_block = tsr_state_span(b.plane[own.plane]) > 1 && (int32_t)(thread % TSR_SLICE_BLOCKS) < slice.columns &&
                       (int32_t)(thread / TSR_SLICE_BLOCKS) < slice.rows;
        uint32_t seen[TSR_PLACE_WORDS] = {0};
        if (own.is_block) {
            int32_t levels[TSR_BLOCK_SAMPLES];
            tsr_load_block(static_cast<const Level *>(b.levels), tile, thread, levels);
            own.run = b.runs[(size_t)tile * THREADS + thread];
            own.places = tsr_places_of(levels);
            tsr_see_words(levels, tsr_plane_shift(b, own.plane), seen);
#pragma unroll
            for (int p = 0; p < TSR_BLOCK_SAMPLES; p++) s.level[p][thread] = (Level)levels[p];
        }
        s.seen.set(slice_seen::at(thread), seen);
    }

    __device__ __forceinline__ void put(shared &s, unsigned thread, const block &own,
                                        tsr_code_writer<THREADS> &writer) const
    {
        const block_run run = unpack_run(own.run);
        if (!own.is_block || run.is_inside) return;
        if (own.places > 0) {
            uint32_t seen[TSR_PLACE_WORDS], energy[TSR_PLACE_WORDS];
#pragma unroll
            for (int k = 0; k < TSR_PLACE_WORDS; k++) seen[k] = s.seen.words[k][slice_seen::at(thread)];
            s.seen.energies(slice_seen::at(thread), energy);
            set_expected(s.expected, thread, seen, energy);
        }
        writer_sink sink = {writer, b.pair_codes[own.plane]};
        visit_pairs(sink, run, own.places, tsr_plane_shift(b, own.plane), s.expected, thread,
                    [&](int p) { return (int32_t)s.level[p][thread]; });
    }

    __device__ __forceinline__ int64_t unit(unsigned tile, unsigned thread, const block &) const
    {
        return thread == 0 ? (int64_t)tile : -1;
    }
};

template <typename Level> int code_pairs(const tsr_cuda_batch &b, cudaStream_t stream)
{
    tsr_block_string string;
    string.tiles = b.planes * b.slices;
    string.out = b.strings;
    string.unit_offsets = b.slice_offsets;
    string.bits = b.slice_offsets + string.tiles;
    string.workspace = b.coder;
    pair_coder<Level> coder;
    coder.b = b;
    return tsr_code_blocks<THREADS, 4>(coder, string, stream);
}

} // namespace

int tsr_cuda_count_pairs(const struct tsr_cuda_batch *batch, cudaStream_t stream)
{
    return batch->narrow ? count_pairs<int16_t>(batch, stream) : count_pairs<int32_t>(batch, stream);
}

int tsr_cuda_code_pairs(const struct tsr_cuda_batch *batch, cudaStream_t stream)
{
    return batch->narrow ? code_pairs<int16_t>(*batch, stream) : code_pairs<int32_t>(*batch, stream);
}
