/* Coefficients by Huffman codes of pairs on the device: FORMAT.md sections 8.6 and 10.5, the behaviour of
 * kernels/slices/coefficients_cpu.c with pairs.
 *
 * A thread a block, twice: a block of threads a tile counts symbols, and the frame of block_coder.cuh writes their
 * codes. Runs of zero blocks need no walk along the slice: a slice's zero blocks between two others are one stretch,
 * the first of them with energy class 0 begins the run, and all that follow in the stretch belong to it, so two masks
 * of the slice's blocks tell each its part. What a block finds there, and what its pairs expect, is kept for the second
 * time, which so needs no neighbours. */
#include "kernels/machine/device.cuh"

#include "block_coder.cuh"
#include "energies.cuh"
#include "coefficients.cuh"

#include "entropy/coefficient_pairs.h"

namespace
{

enum { THREADS = TSR_SLICE_PLACE_COUNT, MASK_WORDS = THREADS / TSR_WARP };

typedef tsr_seen_blocks<TSR_SLICE_BLOCKS> slice_seen;

/* ---- Runs of zero blocks -------------------------------------------------------------------------------- */

/* A block's part in them: the energy class that codes its number of places, whether it belongs to the run of a block
 * before it and so is not coded, whether a run stands in front of it, and its length. */
struct block_run {
    uint32_t energy_class;
    bool is_inside, begins;
    uint32_t length;
};

__device__ __forceinline__ uint16_t pack_run(block_run run)
{
    return (uint16_t)(run.energy_class | (run.is_inside ? 32u : 0u) | (run.begins ? 64u : 0u) | run.length << 7);
}

__device__ __forceinline__ block_run unpack_run(uint32_t packed)
{
    block_run run;
    run.energy_class = packed & 31u;
    run.is_inside = packed & 32u;
    run.begins = packed & 64u;
    run.length = packed >> 7;
    return run;
}

/* Masks of a slice's blocks, by place: those that are not 0, and the zero ones whose energy is of class 0. */
struct zero_masks {
    uint32_t coded[MASK_WORDS], quiet[MASK_WORDS];
};

__device__ __forceinline__ block_run find_run(const zero_masks &masks, const struct tsr_slice &slice, unsigned thread,
                                              int energy_class, bool is_zero)
{
    block_run run = {(uint32_t)energy_class, false, false, 0};
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
    if (is_behind_quiet) { /* after a run */
        run.energy_class = 0;
        return run;
    }
    run.begins = energy_class == 0;
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

/* A block's coefficients, and two of them: of pair k, counted from below. Of an odd number of places the pairs begin at
 * place 1, and pair 0 is place 0 alone, as the first of two. */
template <typename Coefficient> struct block_coefficients {
    int32_t at[TSR_BLOCK_SAMPLES];

    __device__ __forceinline__ void load(const Coefficient *coefficients, size_t slice, uint32_t place)
    {
        tsr_load_block(coefficients, slice, place, at);
    }
    /* To what neighbours see; returns the places up to the last coefficient that is not 0. */
    __device__ __forceinline__ int see(int shift, uint32_t seen[TSR_PLACE_WORDS]) const
    {
        tsr_see_words(at, shift, seen);
        return tsr_places_of(at);
    }
    __device__ __forceinline__ void pair(int k, bool is_odd, int32_t *first, int32_t *second) const
    {
        *first = is_odd ? at[2 * k] : at[2 * k + 1];
        *second = !is_odd ? at[2 * k] : k > 0 ? at[2 * k - 1] : 0;
    }
};

/* Two in a word, as they lie in memory. */
template <> struct block_coefficients<int16_t> {
    uint32_t words[TSR_PLACE_WORDS];

    __device__ __forceinline__ void load(const int16_t *coefficients, size_t slice, uint32_t place)
    {
#pragma unroll
        for (int quarter = 0; quarter < 4; quarter++) {
            const uint2 four = __ldcs(
                reinterpret_cast<const uint2 *>(coefficients + tsr_coefficient_place(slice, (uint32_t)quarter, place)));
            words[2 * quarter] = four.x;
            words[2 * quarter + 1] = four.y;
        }
    }
    __device__ __forceinline__ int see(int shift, uint32_t seen[TSR_PLACE_WORDS]) const
    {
        const uint32_t kept = (0x7fffu >> shift) * 0x10001u, cap = TSR_MAGNITUDE_CAP * 0x10001u;
        uint32_t used = 0; /* bit k: place 2k; bit 16 + k: 2k + 1 */
#pragma unroll
        for (int k = 0; k < TSR_PLACE_WORDS; k++) {
            const uint32_t magnitudes = __viaddmax_s16x2(~words[k], 0x00010001u, words[k]);
            used |= ((magnitudes + 0x7fff7fffu) & 0x80008000u) >> (15 - k);
            seen[k] = __vminu2(magnitudes >> shift & kept, cap);
        }
        return tsr_max(2 * tsr_bit_width(used & 0xffu) - 1, 2 * tsr_bit_width(used >> 16));
    }
    __device__ __forceinline__ void pair(int k, bool is_odd, int32_t *first, int32_t *second) const
    {
        const uint32_t two = __funnelshift_lc(k > 0 ? words[k - 1] : 0u, words[k], is_odd ? 16u : 0u);
        *first = (int32_t)two >> 16;
        *second = (int16_t)two;
    }
};

/* What counting finds out of a block and coding goes by: its part in runs, its places, and by pairs, from below, the
 * coefficients of what they expect; for place 0 alone its own. */
enum { PLACES_AT = 16, CLASSES_AT = 21, CLASS_BITS = 5 };

/* Nothing is coded of it. */
static const uint64_t NO_BLOCK = 32;

__device__ __forceinline__ uint64_t pack_block(const block_run &run, int places, uint64_t coefficients)
{
    return pack_run(run) | (uint32_t)places << PLACES_AT | coefficients << CLASSES_AT;
}

/* The coefficients of energy of a block's pairs. */
__device__ __forceinline__ uint64_t expected_coefficients(const uint32_t seen[TSR_PLACE_WORDS],
                                                          uint32_t energy[TSR_PLACE_WORDS], bool is_odd)
{
    uint64_t coefficients = 0;
    const uint32_t shift = is_odd ? 16u : 0u;
    tsr_add_own_energies(seen, energy);
#pragma unroll
    for (int k = TSR_PLACE_WORDS - 1; k >= 0; k--) {
        const uint32_t two = __funnelshift_lc(k > 0 ? energy[k - 1] : 0u, energy[k], shift),
                       first = seen[k] >> (16u - shift) & 0xffffu;
        const uint32_t weight_even = TSR_AT(tsr_weight_inside)[TSR_BLOCK_SAMPLES * (2 * k + 1) + 2 * k],
                       weight_odd = k > 0 ? TSR_AT(tsr_weight_inside)[TSR_BLOCK_SAMPLES * 2 * k + 2 * k - 1] : 0u;
        const uint32_t sum = (two >> 16) + (two & 0xffffu) - first * (is_odd ? weight_odd : weight_even);
        coefficients = coefficients << CLASS_BITS | (uint32_t)tsr_class_of_energy(k == 0 && is_odd ? sum : sum >> 1);
    }
    return coefficients;
}

/* tsr_pair_raw_bits by the class of the energy. */
__device__ __forceinline__ int raw_bits_of(int energy_class, int shift)
{
    return tsr_max(0, tsr_min(15, tsr_max(0, (energy_class >> 1) - 5) + shift - 1));
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
 * raw bits. packed: see pack_block. */
template <typename Sink, typename Coefficient>
__device__ __forceinline__ void visit_pairs(Sink &sink, uint64_t packed, int shift,
                                            const block_coefficients<Coefficient> &coefficients)
{
    const uint32_t top = TSR_PAIR_DIGITS - 1;
    const block_run run = unpack_run((uint32_t)packed & 0xffffu);
    if (run.is_inside) return;
    if (run.begins) {
        const int symbol = tsr_zero_run_symbol(run.length), raw_bits = tsr_zero_run_raw_bits(symbol);
        sink.symbol(tsr_pair_cell(TSR_PAIR_RUN, 0), symbol, run.length & ((1u << raw_bits) - 1u), raw_bits);
        if (run.length > 0) return;
    }
    const int places = (int)((uint32_t)packed >> PLACES_AT & 31u), highest = (places - 1) >> 1;
    const bool is_odd = places & 1;
    sink.symbol(tsr_pair_cell(TSR_PAIR_PLACES, (int)run.energy_class), places, 0, 0);
#pragma unroll
    for (int k = TSR_PLACE_WORDS - 1; k >= 0; k--) {
        if (k > highest) continue;
        const int energy_class = (int)((uint32_t)(packed >> (CLASSES_AT + CLASS_BITS * k)) & 31u);
        int32_t a_coefficient, b_coefficient;
        coefficients.pair(k, is_odd, &a_coefficient, &b_coefficient);
        if (k == 0 && is_odd) {
            const uint32_t magnitude = (uint32_t)tsr_abs(a_coefficient);
            const struct tsr_token token = tsr_token(magnitude - (places == 1));
            const int sign = magnitude != 0;
            sink.symbol_and_long(tsr_pair_cell(places == 1 ? TSR_PAIR_DC_ALONE : TSR_PAIR_LONE, energy_class),
                                 token.symbol, token.raw << sign | (uint32_t)(a_coefficient < 0),
                                 token.raw_bits + sign);
            continue;
        }
        const bool is_highest = k > 0 && k == highest;
        const int group = k == 0 ? TSR_PAIR_DC : is_highest ? TSR_PAIR_HIGHEST : TSR_PAIR_OTHERS;
        const int low_bits = raw_bits_of(energy_class, shift), cell = tsr_pair_cell(group, energy_class);
        const uint32_t a = (uint32_t)tsr_abs(a_coefficient) - is_highest, b = (uint32_t)tsr_abs(b_coefficient);
        const uint32_t first = a >> low_bits, second = b >> low_bits;
        const int a_sign = a_coefficient != 0, b_sign = b_coefficient != 0;
        if (first < top && second < top && low_bits == 0) {
            const uint32_t signs = (uint32_t)(a_coefficient < 0) << b_sign | (uint32_t)(b_coefficient < 0);
            sink.symbol(cell, (int)(first * TSR_PAIR_DIGITS + second), signs, a_sign + b_sign);
        } else {
            sink.symbol(cell, (int)(min(first, top) * TSR_PAIR_DIGITS + min(second, top)), 0, 0);
            put_rest(sink, a, low_bits);
            sink.raw(a_coefficient < 0, a_sign);
            put_rest(sink, b, low_bits);
            sink.raw(b_coefficient < 0, b_sign);
        }
    }
}

/* ---- Counting ------------------------------------------------------------------------------------------- */

enum { COUNTS = TSR_PAIR_CELLS * TSR_PAIR_SYMBOLS };

/* Counts of a tile fit 16 bits, two in a word: 4096 blocks of at most 7 pairs of a cell. */
static_assert(TSR_TILE_SLICES * TSR_SLICE_PLACE_COUNT * 7 < 65536, "a tile's counts must fit 16 bits");

struct count_memory {
    slice_seen seen;
    zero_masks masks;
    tsr_cell_counts<TSR_PAIR_GROUPS, TSR_PAIR_SYMBOLS> counts;
};

struct count_sink {
    tsr_tile_counts<COUNTS> &counts;

    __device__ __forceinline__ void symbol(int cell, int symbol, uint32_t, int)
    {
        counts.add((uint32_t)(cell * TSR_PAIR_SYMBOLS + symbol));
    }
    __device__ __forceinline__ void symbol_and_long(int cell, int symbol_of, uint32_t, int)
    {
        symbol(cell, symbol_of, 0, 0);
    }
    __device__ __forceinline__ void raw(uint32_t, int)
    {
    }
};

/* A block of threads a tile of a plane. */
template <typename Coefficient> __global__ void __launch_bounds__(THREADS, 4) k_count_pairs(const tsr_cuda_batch b)
{
    TSR_DYNAMIC_SHARED(memory);
    count_memory &m = *reinterpret_cast<count_memory *>(memory);
    const unsigned thread = threadIdx.x;
    const uint32_t number = blockIdx.x / b.shape.tiles;
    if (tsr_state_span(b.shared.plane[number]) == 1) return;
    const struct tsr_tile_place place = tsr_tile_place(&b, blockIdx.x - number * b.shape.tiles);
    const int32_t columns = (place.tile.width + 3) / 4, rows = (place.tile.height + 3) / 4;
    const int shift = tsr_plane_shift(b, number);
    m.seen.clear(thread, THREADS);
    m.counts.clear(thread, THREADS);
    __syncthreads();
    const int32_t c = (int32_t)(thread % TSR_SLICE_BLOCKS), r = (int32_t)(thread / TSR_SLICE_BLOCKS);
    struct tsr_slice slice = {0};
    for (size_t at = (size_t)number * b.shape.slices + place.first_slice; slice.row < rows; at++) {
        slice.columns = tsr_min(TSR_SLICE_BLOCKS, columns - slice.column);
        slice.rows = tsr_min(TSR_SLICE_BLOCKS, rows - slice.row);
        const bool is_block = c < slice.columns && r < slice.rows;
        uint32_t seen[TSR_PLACE_WORDS] = {0}, energy[TSR_PLACE_WORDS];
        block_coefficients<Coefficient> coefficients;
        int places = 0;
        if (is_block) {
            coefficients.load(static_cast<const Coefficient *>(b.transform.coefficients), at, thread);
            places = coefficients.see(shift, seen);
        }
        m.seen.set(slice_seen::at(thread), seen);
        __syncthreads();
        m.seen.energies(slice_seen::at(thread), energy);
        const int energy_class = tsr_class_of_block(energy);
        const uint32_t coded = __ballot_sync(TSR_FULL_WARP, places > 0),
                       quiet = __ballot_sync(TSR_FULL_WARP, is_block && places == 0 && energy_class == 0);
        if (thread % TSR_WARP == 0) m.masks.coded[thread / TSR_WARP] = coded;
        if (thread % TSR_WARP == 0) m.masks.quiet[thread / TSR_WARP] = quiet;
        __syncthreads();
        if (is_block) {
            const block_run run = find_run(m.masks, slice, thread, energy_class, places == 0);
            const uint64_t packed =
                pack_block(run, places, places > 0 ? expected_coefficients(seen, energy, places & 1) : 0u);
            b.transform.pair_blocks[at * THREADS + thread] = packed;
            count_sink sink = {m.counts};
            visit_pairs(sink, packed, shift, coefficients);
        }
        slice.column += TSR_SLICE_BLOCKS;
        if (slice.column >= columns) {
            slice.column = 0;
            slice.row += TSR_SLICE_BLOCKS;
        }
    }
    __syncthreads();
    m.counts.add_to_cells(b.transform.counts + (size_t)number * COUNTS,
                          b.transform.cells_in_use + number * TSR_PAIR_GROUPS, b.shape.tiles == 1, thread, THREADS);
}

template <typename Coefficient> cudaError_t count_pairs(const tsr_cuda_batch *b, cudaStream_t stream)
{
    void (*const kernel)(tsr_cuda_batch) = k_count_pairs<Coefficient>;
    const size_t shared_bytes = sizeof(count_memory);
    TSR_CUDA_TRY(tsr_allow_shared(kernel, shared_bytes));
    return tsr_launch(kernel, b->shape.planes * b->shape.tiles, THREADS, shared_bytes, stream, *b);
}

/* ---- Coding --------------------------------------------------------------------------------------------- */

struct writer_sink {
    tsr_code_writer<THREADS> &writer;
    const tsr_cell_codes &codes;

    /* With few raw bits: a codeword has at most 12. */
    __device__ __forceinline__ void symbol(int cell, int symbol, uint32_t raw_value, int raw_bits)
    {
        const uint32_t word = __ldg(&codes.cell[cell][symbol]), bits = word & 0xfffu, length = word >> 12;
        writer.put(bits << raw_bits | raw_value, length + (uint32_t)raw_bits);
    }
    __device__ __forceinline__ void symbol_and_long(int cell, int symbol_of, uint32_t raw_value, int raw_bits)
    {
        if (raw_bits <= 20) {
            symbol(cell, symbol_of, raw_value, raw_bits);
        } else {
            symbol(cell, symbol_of, 0, 0);
            writer.put(raw_value, (uint32_t)raw_bits);
        }
    }
    __device__ __forceinline__ void raw(uint32_t value, int bits)
    {
        writer.put(value, (uint32_t)bits);
    }
};

template <typename Coefficient> struct pair_coder {
    /* A run of 12 + 7 bits, 12 for the places, 8 pairs of 12 and twice 5 + 23 + 1 bits, or 5 + 15 + 1 where
     * coefficients are narrow. */
    enum { WORDS = sizeof(Coefficient) == 2 ? 16 : 20, WHOLE_BYTES = 1 };
    struct shared {
    };
    struct block {
        uint32_t plane;
        uint64_t packed; /* see pack_block */
        block_coefficients<Coefficient> coefficients;
    };
    tsr_cuda_batch b;

    __device__ void prepare(shared &) const
    {
    }

    __device__ __forceinline__ void load(shared &, unsigned tile, unsigned thread, block &own) const
    {
        own.plane = tile / b.shape.slices;
        const struct tsr_slice slice = tsr_plane_slice(&b, tile - own.plane * b.shape.slices);
        own.packed = NO_BLOCK;
        if (tsr_state_span(b.shared.plane[own.plane]) > 1 && (int32_t)(thread % TSR_SLICE_BLOCKS) < slice.columns &&
            (int32_t)(thread / TSR_SLICE_BLOCKS) < slice.rows) {
            own.packed = b.transform.pair_blocks[(size_t)tile * THREADS + thread];
            own.coefficients.load(static_cast<const Coefficient *>(b.transform.coefficients), tile, thread);
        }
    }

    __device__ __forceinline__ void put(shared &, unsigned, const block &own, tsr_code_writer<THREADS> &writer) const
    {
        writer_sink sink = {writer, b.transform.pair_codes[own.plane]};
        visit_pairs(sink, own.packed, tsr_plane_shift(b, own.plane), own.coefficients);
    }

    __device__ __forceinline__ int64_t unit(unsigned tile, unsigned thread, const block &) const
    {
        return thread == 0 ? (int64_t)tile : -1;
    }
};

template <typename Coefficient> int code_pairs(const tsr_cuda_batch &b, cudaStream_t stream)
{
    tsr_block_string string;
    string.tiles = b.shape.planes * b.shape.slices;
    string.out = b.transform.strings;
    string.unit_offsets = b.transform.slice_offsets;
    string.bits = b.transform.slice_offsets + string.tiles;
    string.workspace = b.transform.coder;
    pair_coder<Coefficient> coder;
    coder.b = b;
    return tsr_code_blocks<THREADS, 5>(coder, string, stream);
}

} // namespace

int tsr_cuda_count_pairs(const struct tsr_cuda_batch *batch, cudaStream_t stream)
{
    return batch->transform.narrow ? count_pairs<int16_t>(batch, stream) : count_pairs<int32_t>(batch, stream);
}

int tsr_cuda_code_pairs(const struct tsr_cuda_batch *batch, cudaStream_t stream)
{
    return batch->transform.narrow ? code_pairs<int16_t>(*batch, stream) : code_pairs<int32_t>(*batch, stream);
}
