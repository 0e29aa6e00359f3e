/* Coefficients by rANS on the device: FORMAT.md sections 8.6 and 10.7, the behaviour of
 * kernels/slices/coefficients_cpu.c without pairs.
 *
 * A block of threads a tile makes entries of its slices' blocks and counts them, a thread a block; once the tables are
 * known, a thread a slice puts its entries into one state, last first. That is a long way for a thread, but a batch has
 * tens of thousands of slices, and what a step waits for (its entry and its symbol's frequency) does not depend on the
 * state: it is asked for four entries ahead. */
#include "kernels/machine/device.cuh"

#include "energies.cuh"
#include "coefficients.cuh"

#include "entropy/coefficient_rans.h"

namespace
{

/* ---- Entries -------------------------------------------------------------------------------------------- */

enum { THREADS = TSR_SLICE_PLACE_COUNT, COUNTS = TSR_COEFFICIENT_CELLS * TSR_COEFFICIENT_SYMBOLS };

/* Counts of a tile fit 16 bits, two in a word: 4096 blocks of at most 14 magnitudes of a cell. */
static_assert(TSR_TILE_SLICES * TSR_SLICE_PLACE_COUNT * 14 < 65536, "a tile's counts must fit 16 bits");

template <int SIDE> struct entry_memory {
    tsr_seen_blocks<SIDE> seen;
    uint32_t sums[THREADS / TSR_WARP];
    tsr_cell_counts<TSR_COEFFICIENT_GROUPS, TSR_COEFFICIENT_SYMBOLS> counts;
};

/* Entries of a block: tsr_coefficient_entries. */
struct entry_sink {
    tsr_tile_counts<COUNTS> &counts;
    uint32_t *out;

    __device__ __forceinline__ void symbol(int cell, int symbol)
    {
        counts.add((uint32_t)(cell * TSR_COEFFICIENT_SYMBOLS + symbol));
        *out++ = (uint32_t)cell << 8 | (uint32_t)symbol;
    }
    __device__ __forceinline__ void raw(uint32_t value, int bits)
    {
        *out++ = tsr_raw_entry(value, bits);
    }
};

/* Their number. */
__device__ __forceinline__ uint32_t count_of(const int32_t block[TSR_BLOCK_SAMPLES], int places)
{
    uint32_t count = 1u + (uint32_t)places + (places > 0);
#pragma unroll
    for (int p = 0; p < TSR_BLOCK_SAMPLES; p++) {
        const uint32_t magnitude = (uint32_t)tsr_abs(block[p]) - (p == places - 1);
        if (p < places && magnitude >= 16) count += tsr_floor_log2(magnitude) > 18 ? 2u : 1u; /* 16 raw bits: 18 */
    }
    return count;
}

__device__ __forceinline__ void put_entries(entry_sink &sink, const int32_t block[TSR_BLOCK_SAMPLES], int places,
                                            const uint32_t seen[TSR_PLACE_WORDS], uint32_t energy[TSR_PLACE_WORDS])
{
    sink.symbol(tsr_coefficient_cell(TSR_COEFFICIENT_PLACES, tsr_class_of_block(energy)), places);
    if (places == 0) return;
    tsr_add_own_energies(seen, energy);
    uint32_t signs = 0;
    int sign_bits = 0;
#pragma unroll
    for (int p = TSR_BLOCK_SAMPLES - 1; p >= 0; p--) {
        if (p >= places) continue;
        const bool is_first = p == places - 1;
        const int group = p == 0 ? (is_first ? TSR_COEFFICIENT_DC_ALONE : TSR_COEFFICIENT_DC)
                                 : (is_first ? TSR_COEFFICIENT_HIGHEST : TSR_COEFFICIENT_OTHERS);
        const uint32_t magnitude = (uint32_t)tsr_abs(block[p]);
        const struct tsr_token token = tsr_token(magnitude - is_first);
        sink.symbol(tsr_coefficient_cell(group, tsr_energy_class(tsr_half(energy, p))), token.symbol);
        if (token.raw_bits > 0) {
            if (token.raw_bits > 16) sink.raw(token.raw >> 16, token.raw_bits - 16);
            sink.raw(token.raw & 0xffffu, tsr_min(token.raw_bits, 16));
        }
        signs = signs << (magnitude != 0) | (uint32_t)(block[p] < 0);
        sign_bits += magnitude != 0;
    }
    sink.raw(signs, sign_bits);
}

/* The last row of a part of a slice is the one above the next part. */
template <int SIDE> __device__ __forceinline__ void keep_last_row(tsr_seen_blocks<SIDE> &seen)
{
    typedef tsr_seen_blocks<SIDE> seen_blocks;
    for (uint32_t i = threadIdx.x; i < (uint32_t)(TSR_PLACE_WORDS * seen_blocks::PITCH); i += THREADS) {
        uint32_t *row = seen.words[i / seen_blocks::PITCH];
        row[i % seen_blocks::PITCH] = row[seen_blocks::ROWS * seen_blocks::PITCH + i % seen_blocks::PITCH];
    }
}

/* A block of threads a tile of a plane, its slices by parts of 256 blocks. SIDE: of a slice, in blocks. */
template <typename Coefficient, int SIDE> __global__ void __launch_bounds__(THREADS) k_entries(const tsr_cuda_batch b)
{
    typedef tsr_seen_blocks<SIDE> seen_blocks;
    TSR_DYNAMIC_SHARED(memory);
    entry_memory<SIDE> &m = *reinterpret_cast<entry_memory<SIDE> *>(memory);
    const unsigned thread = threadIdx.x;
    const uint32_t number = blockIdx.x / b.shape.tiles;
    const struct tsr_tile_place place = tsr_tile_place(&b, blockIdx.x - number * b.shape.tiles);
    const size_t first = (size_t)number * b.shape.slices + place.first_slice;
    if (thread < place.slice_columns * place.slice_rows)
        b.transform.entry_count[first + thread] = 0; /* no slice there */
    if (tsr_state_span(b.shared.plane[number]) == 1) return;
    const int shift = tsr_plane_shift(b, number);
    const struct tsr_block_grid grid = tsr_block_grid(place.tile.width, place.tile.height, SIDE);
    m.counts.clear(thread, THREADS);
    for (int32_t s = 0; s < grid.slice_columns * grid.slice_rows; s++) {
        const struct tsr_slice slice = tsr_slice_at(grid, s);
        const size_t room = first + tsr_slice_room(&place, SIDE, s);
        uint32_t *out = b.transform.entries + room * TSR_SLICE_PLACE_COUNT * b.transform.block_entries;
        uint32_t used = 0;
        __syncthreads();
        m.seen.clear(thread, THREADS);
        for (int32_t part = 0; part < slice.rows; part += seen_blocks::ROWS) {
            const int32_t c = (int32_t)(thread % SIDE), r = part + (int32_t)(thread / SIDE);
            const bool is_block = c < slice.columns && r < slice.rows;
            int32_t block[TSR_BLOCK_SAMPLES];
            uint32_t seen[TSR_PLACE_WORDS] = {0}, energy[TSR_PLACE_WORDS], total;
            int places = 0;
            if (is_block) {
                const uint32_t column = (uint32_t)(slice.column + c), row = (uint32_t)(slice.row + r);
                tsr_load_block(static_cast<const Coefficient *>(b.transform.coefficients),
                               first + row / TSR_SLICE_BLOCKS * place.slice_columns + column / TSR_SLICE_BLOCKS,
                               row % TSR_SLICE_BLOCKS * TSR_SLICE_BLOCKS + column % TSR_SLICE_BLOCKS, block);
                tsr_see_words(block, shift, seen);
                places = tsr_places_of(block);
            }
            __syncthreads(); /* the part before, or the clearing, is done */
            if (part > 0) {
                keep_last_row<SIDE>(m.seen);
                __syncthreads();
            }
            m.seen.set(seen_blocks::at(thread), seen);
            const uint32_t count = is_block ? count_of(block, places) : 0u;
            const uint32_t before = tsr_block_scan<THREADS>(count, m.sums, &total); /* a barrier */
            if (is_block) {
                m.seen.energies(seen_blocks::at(thread), energy);
                entry_sink sink = {m.counts, out + used + before};
                put_entries(sink, block, places, seen, energy);
            }
            used += total;
        }
        if (thread == 0) b.transform.entry_count[room] = used;
        if (used + thread < (used + 3) / 4 * 4) out[used + thread] = 0; /* they are read by fours */
    }
    __syncthreads();
    m.counts.add_to_cells(b.transform.counts + (size_t)number * COUNTS,
                          b.transform.cells_in_use + number * TSR_COEFFICIENT_GROUPS, b.shape.tiles == 1, thread,
                          THREADS);
}

template <typename Coefficient, int SIDE> cudaError_t count_entries(const tsr_cuda_batch *b, cudaStream_t stream)
{
    void (*const kernel)(tsr_cuda_batch) = k_entries<Coefficient, SIDE>;
    const size_t shared_bytes = sizeof(entry_memory<SIDE>);
    TSR_CUDA_TRY(tsr_allow_shared(kernel, shared_bytes));
    return tsr_launch(kernel, b->shape.planes * b->shape.tiles, THREADS, shared_bytes, stream, *b);
}

/* ---- Strings -------------------------------------------------------------------------------------------- */

enum { CODE_THREADS = 64 };

/* A thread a slice: tsr_coefficient_put and tsr_rans_finish. */
__global__ void __launch_bounds__(CODE_THREADS) k_code_entries(const tsr_cuda_batch b)
{
    const uint32_t room = blockIdx.x * CODE_THREADS + threadIdx.x;
    if (room >= b.shape.planes * b.shape.slices) return;
    const uint32_t count = b.transform.entry_count[room], plane = room / b.shape.slices;
    if (count == 0) return;
    const tsr_coefficient_model &model = b.transform.coefficient_model[plane];
    const tsr_coefficient_codes *codes = b.transform.coefficient_codes + (size_t)plane * TSR_COEFFICIENT_TABLES;
    const uint4 *entries = reinterpret_cast<const uint4 *>(b.transform.entries + (size_t)room * TSR_SLICE_PLACE_COUNT *
                                                                                     b.transform.block_entries);
    uint8_t *const end = b.transform.strings + tsr_string_end(&b, room, count);
    uint16_t *at = reinterpret_cast<uint16_t *>(end);
    uint32_t state = 1;
    uint32_t group = (count - 1) / 4;
    uint4 next = entries[group];
    for (uint32_t left = count - 4 * group;; group--, left = 4) { /* the last group may be of fewer */
        const uint32_t entry[4] = {next.x, next.y, next.z, next.w};
        if (group > 0) next = entries[group - 1];
        struct tsr_rans_symbol symbol[4];
#pragma unroll
        for (uint32_t i = 0; i < 4; i++) {
            if (i >= left || (entry[i] & TSR_RAW_ENTRY)) continue;
            const uint2 two = __ldg(reinterpret_cast<const uint2 *>(
                &codes[tsr_coefficient_table(&model, (int)(entry[i] >> 8))][entry[i] & 255u]));
            symbol[i].inverse = two.x;
            symbol[i].frequency = (uint16_t)two.y;
            symbol[i].start = (uint16_t)(two.y >> 16);
        }
#pragma unroll
        for (int i = 3; i >= 0; i--) {
            if ((uint32_t)i >= left) continue;
            uint16_t word;
            const bool leaves = entry[i] & TSR_RAW_ENTRY
                                    ? tsr_rans_put_raw(&state, entry[i] & 0xffffu, (int)(entry[i] >> 16 & 31u), &word)
                                    : tsr_rans_put(&state, &symbol[i], &word);
            if (leaves) *--at = word;
        }
        if (group == 0) break;
    }
    const int width = tsr_bit_width(state);
    const uint32_t state_bytes = width > 24 ? 4u : width > 16 ? 3u : width > 8 ? 2u : width > 1 ? 1u : 0u;
    uint8_t *begin = reinterpret_cast<uint8_t *>(at) - state_bytes;
    for (uint32_t i = 0; i < state_bytes; i++) begin[i] = (uint8_t)(state >> 8 * i);
    for (uint8_t *pad = begin; reinterpret_cast<uintptr_t>(pad) % 4 != 0;) *--pad = 0; /* strings are read by words */
    b.transform.slice_string[room].bytes = (uint32_t)(end - begin);
    b.transform.slice_string[room].state_bytes = state_bytes;
}
static_assert(sizeof(struct tsr_rans_symbol) == sizeof(uint2), "two words");

} // namespace

int tsr_cuda_count_entries(const struct tsr_cuda_batch *batch, cudaStream_t stream)
{
    if (batch->transform.plan.slice_side == TSR_LARGE_SLICE_BLOCKS)
        return batch->transform.narrow ? count_entries<int16_t, TSR_LARGE_SLICE_BLOCKS>(batch, stream)
                                       : count_entries<int32_t, TSR_LARGE_SLICE_BLOCKS>(batch, stream);
    return batch->transform.narrow ? count_entries<int16_t, TSR_SLICE_BLOCKS>(batch, stream)
                                   : count_entries<int32_t, TSR_SLICE_BLOCKS>(batch, stream);
}

int tsr_cuda_code_entries(const struct tsr_cuda_batch *batch, cudaStream_t stream)
{
    const uint32_t rooms = batch->shape.planes * batch->shape.slices;
    return tsr_launch(k_code_entries, (rooms + CODE_THREADS - 1) / CODE_THREADS, CODE_THREADS, 0, stream, *batch);
}
