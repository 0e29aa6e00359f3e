/* Pieces of blocks to slices, and models to decoding tables. FORMAT.md 8.5, 8.6 and 10, CAVLC.md. */
#include "slice_tables.cuh"

#include "entropy/step_classes.h"

namespace
{

enum {
    CUT_THREADS = 64, /* of which each cuts a piece */
    SCAN_THREADS = 1024,
    TABLE_THREADS = 256
};

__device__ __forceinline__ bool is_large(const tsr_plane_model &model)
{
    const tsr_slice_kind kind = tsr_slice_kind_of(model);
    return (kind == TSR_SLICES_CAVLC || kind == TSR_SLICES_RUN_LEVEL) && model.slice_side > TSR_SLICE_ROW_BLOCKS;
}

/* Where the strings of a piece begin, from the lengths at bytes[at] on, which end with the strings at end. False if the
 * lengths are not valid. */
__device__ __forceinline__ bool cut_strings(const uint8_t *bytes, size_t at, size_t end, uint32_t count,
                                            uint32_t *start)
{
    const size_t front = tsr_get_lengths_in_front(bytes + at, end - at, start, (int32_t)count);
    if (front == 0) return false;
    uint64_t next = at + front;
    for (uint32_t s = 0; s < count; s++) {
        const uint32_t length = start[s];
        start[s] = (uint32_t)next;
        next += length;
    }
    start[count] = (uint32_t)next;
    return next == end;
}

/* What is found out of a piece and its DC plane's. */
struct cut_piece {
    tsr_sliced_piece own;
    uint32_t slices, dc_slices;
    bool has_dcs;
};

/* Cuts a piece that is not raw: what is in front of its slices, and them. */
__device__ __forceinline__ cut_piece cut_slices(const struct tsr_cuda_decode_batch &b, const tsr_decode_coefficients &w,
                                                uint32_t number, const tsr_plane_model &model, const tsr_tile &tile)
{
    const tsr_cuda_piece piece = b.piece[number];
    const uint8_t *bytes = b.payloads + piece.offset;
    const struct tsr_block_grid grid = tsr_block_grid(tile.width, tile.height, model.slice_side);
    cut_piece cut = {{1, (uint8_t)tsr_slice_kind_of(model), 0, 1}, 0, 0, false};
    size_t at = model.lapping ? 1 : 0;
    if (model.lapping) cut.own.lapped = bytes[0];
    if (cut.own.lapped > 1) return cut;
    if (model.classes && !tsr_get_class_string(bytes, piece.size, &at, w.classes + (size_t)number * w.tile_squares,
                                               tsr_squares_along(tile.width), tsr_squares_along(tile.height)))
        return cut;
    if (model.dc_plane) {
        const tsr_tile dcs = tsr_tile_of_dcs(tile.width, tile.height);
        const struct tsr_block_grid dc_grid = tsr_block_grid(dcs.width, dcs.height, model.slice_side);
        uint64_t size;
        if (!tsr_read_varint(bytes, piece.size, &at, TSR_PIECE_SIZE_LIMIT, &size) || size > piece.size - at) return cut;
        cut.has_dcs = true;
        cut.dc_slices = (uint32_t)(dc_grid.slice_columns * dc_grid.slice_rows);
        if (!cut_strings(bytes, at, at + size, cut.dc_slices, tsr_slice_starts(w, number + w.pieces))) return cut;
        at += size;
    }
    cut.slices = (uint32_t)(grid.slice_columns * grid.slice_rows);
    cut.own.is_bad = !cut_strings(bytes, at, piece.size, cut.slices, tsr_slice_starts(w, number));
    return cut;
}

/* A thread a piece and its DC plane's: where their strings begin. first_slice becomes how many slices there are. */
__global__ void __launch_bounds__(CUT_THREADS)
    k_cut_slices(const struct tsr_cuda_decode_batch b, const tsr_decode_coefficients w)
{
    const uint32_t number = blockIdx.x * CUT_THREADS + threadIdx.x;
    if (number >= w.pieces) return;
    const uint32_t plane = number / b.tiles, tile_number = number - plane * b.tiles;
    cut_piece cut = {{0, 0, 0, 0}, 0, 0, false};
    const tsr_cuda_piece piece = b.piece[number];
    if (piece.is_there && tsr_is_sliced(b, plane)) {
        const tsr_plane_model &model = tsr_slice_model(b, plane);
        const tsr_tile tile = tsr_decode_tile_at(&b, tile_number);
        if (piece.size != tsr_raw_tile_bytes(model.range, tile.width, tile.height))
            cut = cut_slices(b, w, number, model, tile);
        if (cut.own.is_bad) {
            tsr_note_bad_tile(b, plane / b.frame_planes, tile_number);
            cut.slices = cut.dc_slices = 0;
        }
    }
    const tsr_sliced_piece nothing = {0, 0, 0, 0};
    w.piece[number] = cut.own;
    w.piece[number + w.pieces] = cut.has_dcs ? cut.own : nothing;
    for (uint32_t kind = 0; kind < TSR_SLICE_KINDS; kind++) {
        uint32_t *const counts = tsr_first_slices(w, kind);
        counts[number] = kind == cut.own.kind ? cut.slices : 0u;
        counts[number + w.pieces] = kind == cut.own.kind ? cut.dc_slices : 0u;
    }
}

/* A block a kind: counts of slices to numbers of first ones. */
__global__ void __launch_bounds__(SCAN_THREADS) k_number_slices(const tsr_decode_coefficients w)
{
    __shared__ uint32_t sums[SCAN_THREADS / TSR_WARP];
    uint32_t *counts = tsr_first_slices(w, blockIdx.x), start = 0;
    for (uint32_t first = 0; first < 2 * w.pieces; first += SCAN_THREADS) {
        const uint32_t number = first + threadIdx.x;
        uint32_t total;
        const uint32_t before = tsr_block_scan<SCAN_THREADS>(number < 2 * w.pieces ? counts[number] : 0u, sums, &total);
        if (number < 2 * w.pieces) counts[number] = start + before;
        start += total;
        __syncthreads();
    }
    if (threadIdx.x == 0) counts[2 * w.pieces] = start;
}

/* ---- Tables ----------------------------------------------------------------------------------------------- */

__device__ uint32_t tables_of(const struct tsr_cuda_decode_batch &b, uint32_t plane)
{
    const tsr_plane_model &model = tsr_slice_model(b, plane);
    uint32_t count = 0;
    switch (tsr_slice_kind_of(model)) {
    case TSR_SLICES_RUN_LEVEL:
        return (uint32_t)model.run_level.dc_tables + model.run_level.ac_tables;
    case TSR_SLICES_PAIRS:
        for (int g = 0; g < TSR_PAIR_GROUPS; g++) count += tsr_slice_pairs(b, plane).tables[g];
        return count;
    case TSR_SLICES_RANS:
        for (int g = 0; g < TSR_COEFFICIENT_GROUPS; g++) count += tsr_slice_coefficients(b, plane).tables[g];
        return count;
    default:
        return 0;
    }
}

/* One block: places of the planes' tables. A frame whose tables have no room, or whose slices are too large, is decoded
 * elsewhere. */
__global__ void __launch_bounds__(SCAN_THREADS)
    k_place_tables(const struct tsr_cuda_decode_batch b, const tsr_decode_coefficients w)
{
    __shared__ uint32_t sums[SCAN_THREADS / TSR_WARP];
    uint64_t start = 0;
    for (uint32_t first = 0; first < 2 * b.planes; first += SCAN_THREADS) {
        const uint32_t plane = first + threadIdx.x;
        const bool here = plane < 2 * b.planes && tsr_is_sliced(b, plane);
        uint32_t count = 0, units = 0, total;
        if (here) {
            count = tables_of(b, plane);
            units =
                count * (tsr_slice_table_bytes(tsr_slice_kind_of(tsr_slice_model(b, plane))) / TSR_SLICE_TABLE_UNIT);
        }
        const uint64_t at = start + tsr_block_scan<SCAN_THREADS>(units, sums, &total);
        start += total;
        __syncthreads(); /* all have read the frames' states */
        if (here && ((units > 0 && at + units > w.table_room) || is_large(tsr_slice_model(b, plane)))) {
            b.frame[plane % b.planes / b.frame_planes].state = TSR_DECODE_ELSEWHERE;
            count = 0;
        }
        if (plane < 2 * b.planes) {
            w.plane[plane].first = (uint32_t)at;
            w.plane[plane].count = count;
        }
    }
}

/* The table of lengths[symbols] by a warp: tsr_huffman_decoder_init, where each lane takes its symbols. */
__device__ void build_huffman(tsr_huffman_decoder *d, const uint8_t *lengths, int symbols, unsigned lane)
{
    uint32_t next[TSR_CODE_LIMIT + 1]; /* first by length: how many there are, then how many were entered */
    uint32_t used = 0, code = 0;
#pragma unroll
    for (int n = 0; n <= TSR_CODE_LIMIT; n++) next[n] = 0;
    for (int first = 0; first < symbols; first += TSR_WARP) {
        const int length = first + (int)lane < symbols ? lengths[first + lane] : 0;
#pragma unroll
        for (int n = 1; n <= TSR_CODE_LIMIT; n++)
            next[n] += (uint32_t)__popc(__ballot_sync(TSR_FULL_WARP, length == n));
    }
    for (unsigned i = lane; i < 1u << TSR_DIRECT_BITS; i += TSR_WARP) d->direct[i] = TSR_LONGER_CODEWORD;
#pragma unroll
    for (int n = 1; n <= TSR_CODE_LIMIT; n++) {
        code <<= 1;
        if (lane == 0) {
            d->first[n] = (uint16_t)code;
            d->rank[n] = (uint16_t)used;
            d->count[n] = (uint16_t)next[n];
        }
        used += next[n];
        code += next[n];
        next[n] = 0;
    }
    __syncwarp();
    for (int first = 0; first < symbols; first += TSR_WARP) {
        const int symbol = first + (int)lane, length = symbol < symbols ? lengths[symbol] : 0;
#pragma unroll
        for (int n = 1; n <= TSR_CODE_LIMIT; n++) {
            const uint32_t all = __ballot_sync(TSR_FULL_WARP, length == n);
            if (length == n) {
                const uint32_t place = next[n] + (uint32_t)__popc(all & ((1u << lane) - 1u));
                d->symbol[d->rank[n] + place] = (uint16_t)symbol;
                if (n <= TSR_DIRECT_BITS) {
                    const uint32_t spread = 1u << (TSR_DIRECT_BITS - n), from = (d->first[n] + place) * spread;
                    for (uint32_t i = 0; i < spread; i++) d->direct[from + i] = (uint16_t)(symbol << 4 | n);
                }
            }
            next[n] += (uint32_t)__popc(all);
        }
    }
    __syncwarp();
    if (used > 1) return;
    const int only = used == 1 ? d->symbol[0] : TSR_NO_CODE;
    __syncwarp();
    for (unsigned i = lane; i < 1u << TSR_DIRECT_BITS; i += TSR_WARP) d->direct[i] = (uint16_t)(only << 4);
}

/* Likewise of weights, tsr_rans_decoder_init's: one lane normalises, all enter buckets. */
__device__ void build_rans(tsr_slice_rans_table *table, const uint16_t *weight, unsigned lane)
{
    if (lane == 0) {
        uint16_t frequency[TSR_RANS_ALPHABET];
        uint32_t start = 0;
        tsr_rans_frequencies(weight, TSR_COEFFICIENT_SYMBOLS, frequency);
        for (int s = 0; s < TSR_COEFFICIENT_SYMBOLS; s++) {
            table->place[s] = start | (start + frequency[s]) << 16;
            start += frequency[s];
        }
        if (start == 0) table->place[0] = (uint32_t)TSR_RANS_TOTAL << 16;
    }
    __syncwarp();
    for (uint32_t bucket = lane; bucket < TSR_RANS_TOTAL >> tsr_slice_rans_table::BUCKET_BITS; bucket += TSR_WARP) {
        uint32_t symbol = 0;
        while (table->place[symbol] >> 16 <= bucket << tsr_slice_rans_table::BUCKET_BITS) symbol++;
        table->first[bucket] = (uint8_t)symbol;
    }
}

/* Number of the table of a cell, where groups have tables each. */
__device__ uint8_t grouped_table(const uint8_t *tables, const uint8_t *table_of, uint32_t cell)
{
    const uint32_t group = cell / TSR_ENERGY_CLASSES;
    uint32_t before = 0;
    if (tables[group] == 0) return TSR_NO_TABLE;
    for (uint32_t g = 0; g < group; g++) before += tables[g];
    return (uint8_t)(before + table_of[cell]);
}

/* What describes table t of groups that have tables each, of which the model has TSR_ENERGY_CLASSES places a group. */
__device__ uint32_t grouped_place(const uint8_t *tables, uint32_t t)
{
    uint32_t group = 0;
    for (; t >= tables[group]; group++) t -= tables[group];
    return group * TSR_ENERGY_CLASSES + t;
}

/* A block a plane or DC plane, a warp a table. */
__global__ void __launch_bounds__(TABLE_THREADS)
    k_build_tables(const struct tsr_cuda_decode_batch b, const tsr_decode_coefficients w)
{
    const uint32_t plane = blockIdx.x;
    if (!tsr_is_sliced(b, plane)) return;
    const tsr_plane_model &model = tsr_slice_model(b, plane);
    const tsr_pair_model &pairs = tsr_slice_pairs(b, plane);
    const tsr_coefficient_model &coefficients = tsr_slice_coefficients(b, plane);
    const tsr_slice_kind kind = tsr_slice_kind_of(model);
    tsr_slice_tables &own = w.plane[plane];
    if (kind == TSR_SLICES_CAVLC) return;
    for (uint32_t c = threadIdx.x; c < TSR_PAIR_CELLS; c += TABLE_THREADS) {
        uint8_t table = TSR_NO_TABLE;
        if (kind == TSR_SLICES_PAIRS)
            table = grouped_table(pairs.tables, pairs.table_of, c);
        else if (kind == TSR_SLICES_RANS && c < TSR_COEFFICIENT_CELLS)
            table = grouped_table(coefficients.tables, coefficients.table_of, c);
        else if (kind == TSR_SLICES_RUN_LEVEL && c < TSR_DC_CELLS)
            table = model.run_level.dc_table_of[c];
        else if (kind == TSR_SLICES_RUN_LEVEL && c < TSR_DC_CELLS + TSR_AC_CELLS)
            table = (uint8_t)(model.run_level.dc_tables + model.run_level.ac_table_of[c - TSR_DC_CELLS]);
        own.of_cell[c] = table;
    }
    const unsigned lane = threadIdx.x % TSR_WARP;
    for (uint32_t t = threadIdx.x / TSR_WARP; t < own.count; t += TABLE_THREADS / TSR_WARP) {
        uint8_t *at =
            w.tables + ((size_t)own.first + (size_t)t * (tsr_slice_table_bytes(kind) / TSR_SLICE_TABLE_UNIT)) *
                           TSR_SLICE_TABLE_UNIT;
        tsr_huffman_decoder *huffman = reinterpret_cast<tsr_huffman_decoder *>(at);
        const uint32_t dc_tables = model.run_level.dc_tables;
        if (kind == TSR_SLICES_RANS)
            build_rans(reinterpret_cast<tsr_slice_rans_table *>(at),
                       coefficients.weight[grouped_place(coefficients.tables, t)], lane);
        else if (kind == TSR_SLICES_PAIRS)
            build_huffman(huffman, pairs.lengths[grouped_place(pairs.tables, t)], TSR_PAIR_SYMBOLS, lane);
        else if (t < dc_tables)
            build_huffman(huffman, model.run_level.dc_lengths[t], TSR_DC_SYMBOLS, lane);
        else
            build_huffman(huffman, model.run_level.ac_lengths[t - dc_tables], TSR_AC_SYMBOLS, lane);
    }
}

} // namespace

cudaError_t tsr_cut_slices(const tsr_cuda_decode_batch &b, const tsr_decode_coefficients &w, cudaStream_t stream)
{
    TSR_CUDA_TRY(tsr_launch(k_place_tables, 1, SCAN_THREADS, 0, stream, b, w));
    TSR_CUDA_TRY(tsr_launch(k_build_tables, 2 * b.planes, TABLE_THREADS, 0, stream, b, w));
    TSR_CUDA_TRY(tsr_launch(k_cut_slices, (w.pieces + CUT_THREADS - 1) / CUT_THREADS, CUT_THREADS, 0, stream, b, w));
    return tsr_launch(k_number_slices, TSR_SLICE_KINDS, SCAN_THREADS, 0, stream, w);
}
