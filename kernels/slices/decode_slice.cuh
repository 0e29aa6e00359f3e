/* A slice as a thread of a GPU decodes it, and the energies around its blocks. For decode_slices_cuda.cu. */
#ifndef TSR_KERNELS_SLICES_DECODE_SLICE_CUH
#define TSR_KERNELS_SLICES_DECODE_SLICE_CUH

#include "slice_tables.cuh"

#include "energies.cuh"

namespace
{

enum {
    THREADS = 128, /* of which each decodes a slice */
    ROW_BLOCKS = TSR_SLICE_ROW_BLOCKS
};

/* ---- A slice ---------------------------------------------------------------------------------------------- */

/* A slice as its thread sees it. */
struct slice_work {
    uint32_t frame, plane, tile, piece; /* plane: or DC plane */
    uint32_t columns, rows;             /* of its blocks */
    uint32_t pitch;                     /* of the tile's rows of blocks */
    size_t first;                       /* block, in the lists of all blocks */
    const uint8_t *bytes;
    uint32_t size;
};

__device__ __forceinline__ slice_work slice_at(const struct tsr_cuda_decode_batch &b, const tsr_decode_coefficients &w,
                                               const uint32_t *first_slice, uint32_t number)
{
    slice_work work;
    uint32_t low = 0, high = 2 * w.pieces; /* first_slice[low] <= number < first_slice[high] */
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (__ldg(&first_slice[middle]) <= number)
            low = middle;
        else
            high = middle;
    }
    const uint32_t index = number - first_slice[low];
    work.piece = low;
    work.plane = low / b.tiles;
    work.tile = low - work.plane * b.tiles;
    work.frame = work.plane % b.planes / b.frame_planes;
    const tsr_tile tile = tsr_piece_tile(&b, &w, low);
    const struct tsr_block_grid grid =
        tsr_block_grid(tile.width, tile.height, tsr_slice_model(b, work.plane).slice_side);
    const tsr_slice slice = tsr_slice_at(grid, (int32_t)index);
    work.columns = (uint32_t)slice.columns;
    work.rows = (uint32_t)slice.rows;
    work.pitch = (uint32_t)grid.columns;
    work.first = tsr_first_block(&w, low) + (size_t)slice.row * work.pitch + (size_t)slice.column;
    const uint32_t *start = tsr_slice_starts(w, low) + index;
    work.bytes = b.payloads + b.piece[low % w.pieces].offset + start[0];
    work.size = start[1] - start[0];
    return work;
}

/* Notes how a slice ended; seen: the bits of its magnitudes. */
template <typename Coefficient>
__device__ __forceinline__ void end_slice(const struct tsr_cuda_decode_batch &b, const tsr_decode_coefficients &w,
                                          const slice_work &work, bool is_good, uint32_t seen)
{
    if (!is_good) {
        w.piece[work.piece % w.pieces].is_bad = 1; /* and the DC plane is nobody's */
        tsr_note_bad_tile(b, work.frame, work.tile);
    }
    if (sizeof(Coefficient) == 2 && seen >> 15 != 0) b.frame[work.frame].state = TSR_DECODE_ELSEWHERE;
}

/* Where a block's coefficients go. */
template <typename Coefficient>
__device__ __forceinline__ uint32_t *coefficients_at(const tsr_decode_coefficients &w, size_t block)
{
    return reinterpret_cast<uint32_t *>(static_cast<Coefficient *>(w.coefficients) + block * TSR_BLOCK_SAMPLES);
}

/* The kernels take the slices of their kind. Each thread's decode_slice returns whether the string is one. Where slices
 * are few, those of neighbouring threads would wait for each other at each branch: they are w.apart threads apart. */
template <typename Coefficient, typename Decode>
__device__ __forceinline__ void decode_slices(const struct tsr_cuda_decode_batch &b, const tsr_decode_coefficients &w,
                                              tsr_slice_kind kind, Decode decode_slice)
{
    const uint32_t *first_slice = tsr_first_slices(w, kind);
    const uint32_t slices = first_slice[2 * w.pieces];
    if (threadIdx.x % w.apart != 0) return;
    const uint32_t first = (blockIdx.x * THREADS + threadIdx.x) / w.apart, step = gridDim.x * THREADS / w.apart;
    for (uint32_t number = first; number < slices; number += step) {
        const slice_work work = slice_at(b, w, first_slice, number);
        uint32_t seen = 0;
        const bool is_good = decode_slice(work, &seen);
        end_slice<Coefficient>(b, w, work, is_good, seen);
    }
}

/* True if there is nothing for this block of threads. */
__device__ __forceinline__ bool is_idle(const tsr_decode_coefficients &w, tsr_slice_kind kind)
{
    return blockIdx.x * THREADS / w.apart >= tsr_first_slices(w, kind)[2 * w.pieces];
}

/* ---- Energies --------------------------------------------------------------------------------------------- */

/* tsr_see_words of coefficients in raster order. */
__device__ __forceinline__ void see_raster(const int32_t raster[TSR_BLOCK_SAMPLES], int shift,
                                           uint32_t seen[TSR_PLACE_WORDS])
{
    int32_t block[TSR_BLOCK_SAMPLES];
#pragma unroll
    for (int p = 0; p < TSR_BLOCK_SAMPLES; p++) block[p] = raster[tsr_zigzag(p)];
    tsr_see_words(block, shift, seen);
}

__device__ __forceinline__ void see_stored(const int16_t *coefficients, int shift, uint32_t seen[TSR_PLACE_WORDS])
{
    int32_t block[TSR_BLOCK_SAMPLES];
    const uint4 *from = reinterpret_cast<const uint4 *>(coefficients);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const uint4 eight = from[i];
        const uint32_t word[4] = {eight.x, eight.y, eight.z, eight.w};
#pragma unroll
        for (int k = 0; k < 8; k++) block[8 * i + k] = (int16_t)(word[k / 2] >> 16 * (k % 2) & 0xffffu);
    }
    see_raster(block, shift, seen);
}

__device__ __forceinline__ void see_stored(const int32_t *coefficients, int shift, uint32_t seen[TSR_PLACE_WORDS])
{
    int32_t block[TSR_BLOCK_SAMPLES];
    const int4 *from = reinterpret_cast<const int4 *>(coefficients);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int4 four = from[i];
        block[4 * i] = four.x;
        block[4 * i + 1] = four.y;
        block[4 * i + 2] = four.z;
        block[4 * i + 3] = four.w;
    }
    see_raster(block, shift, seen);
}

/* Energies of the block at work, by place of the scan. */
typedef uint16_t block_energies[TSR_BLOCK_SAMPLES][THREADS];

/* Energies from the blocks around the one in column c, row r of the slice; returns the block's energy class. */
template <typename Coefficient>
__device__ __forceinline__ int energies_around(const tsr_decode_coefficients &w, const slice_work &work, uint32_t r,
                                               uint32_t c, int shift, const uint32_t left[TSR_PLACE_WORDS],
                                               block_energies &energy)
{
    const Coefficient *at = static_cast<const Coefficient *>(w.coefficients) +
                            (work.first + (size_t)(r - (r > 0)) * work.pitch + c) * TSR_BLOCK_SAMPLES;
    uint32_t above[TSR_PLACE_WORDS] = {0}, corners[TSR_PLACE_WORDS] = {0}, own[TSR_PLACE_WORDS];
    if (r > 0) {
        see_stored(at, shift, above);
        if (c > 0) see_stored(at - TSR_BLOCK_SAMPLES, shift, corners);
        if (c + 1 < work.columns) {
            uint32_t right[TSR_PLACE_WORDS];
            see_stored(at + TSR_BLOCK_SAMPLES, shift, right);
#pragma unroll
            for (int k = 0; k < TSR_PLACE_WORDS; k++) corners[k] += right[k];
        }
    }
    tsr_word_energies(left, above, corners, own);
#pragma unroll
    for (int p = 0; p < TSR_BLOCK_SAMPLES; p++) energy[p][threadIdx.x] = (uint16_t)tsr_half(own, p);
    return tsr_class_of_block(own);
}

/* Adds what the magnitude at this place says of those below it. */
__device__ __forceinline__ void add_energy(block_energies &energy, int place, uint32_t seen)
{
    if (seen == 0) return;
    const uint16_t *weight = TSR_AT(tsr_weight_inside) + TSR_BLOCK_SAMPLES * place;
    for (int p = 0; p < place; p++)
        energy[p][threadIdx.x] = (uint16_t)(energy[p][threadIdx.x] + seen * __ldg(&weight[p]));
}

/* The table of a cell; null in a group without tables. */
template <tsr_slice_kind KIND, typename Table>
__device__ __forceinline__ const Table *cell_table(const tsr_decode_coefficients &w, const tsr_slice_tables &of_plane,
                                                   int cell)
{
    const uint32_t number = of_plane.of_cell[cell];
    if (number == TSR_NO_TABLE) return NULL;
    return reinterpret_cast<const Table *>(w.tables + (size_t)of_plane.first * TSR_SLICE_TABLE_UNIT +
                                           number * tsr_slice_table_bytes(KIND));
}

} // namespace

#endif
