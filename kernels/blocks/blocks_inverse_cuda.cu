/* Coefficients to samples: the behaviour of tsr_restore_dcs, tsr_blocks_inverse and tsr_lapped_inverse. FORMAT.md
 * sections 8.2 to 8.4 and 8.7. Coefficients lie as decode_slices_cuda.h says.
 *
 * What depends on what was decoded before, DCs on DCs and residuals' samples on samples, goes through a tile as a
 * wavefront: a warp a tile, a lane a row, each a step behind the row above, whose last value comes by a shuffle. Blocks
 * are then free of each other but for lapping, where a warp walks down a strip of a tile. */
#include "kernels/machine/device.cuh"

#include "kernels/slices/decode_slices_cuda.h"

#include "transform/block/core4x4.h"
#include "transform/predict/residual.h"
#include "transform/block/reversible4x4.h"
#include "transform/block/step_classes.h"

namespace
{

enum {
    WARP_THREADS = 128,  /* where a warp has a tile */
    BLOCK_THREADS = 256, /* where a thread has a block, and then the next: */
    PART_BLOCKS = 4 * BLOCK_THREADS,
    STRIP_THREADS = 128,          /* where a warp has a strip */
    STRIP_BORDERS = TSR_WARP - 1, /* between the 32 blocks across a strip */
    UNROLLED = 16
};

/* A piece that is to be inverted. */
struct inverse_work {
    uint32_t number, frame, tile_number;
    tsr_tile tile;
    int32_t columns, rows; /* of blocks */
    size_t first_block;
    uint16_t *samples; /* of the tile */
    uint32_t origin;   /* the tile's first sample among the image's, by which steps are chosen */
};

__device__ __forceinline__ const tsr_plane_model &plane_of(const struct tsr_cuda_decode_batch &b, uint32_t number)
{
    const uint32_t plane = number / b.tiles % b.planes;
    return tsr_decode_model(&b, plane / b.frame_planes)->plane[plane % b.frame_planes];
}

__device__ __forceinline__ inverse_work piece_at(const struct tsr_cuda_decode_batch &b,
                                                 const tsr_decode_coefficients &w, uint32_t number)
{
    inverse_work work;
    const uint32_t plane = number / b.tiles % b.planes;
    work.number = number;
    work.tile_number = number % b.tiles;
    work.frame = plane / b.frame_planes;
    work.tile = tsr_piece_tile(&b, &w, number);
    work.columns = (work.tile.width + 3) / 4;
    work.rows = (work.tile.height + 3) / 4;
    work.first_block = tsr_first_block(&w, number);
    work.samples = b.samples + (size_t)plane * b.plane_samples + work.tile.first;
    work.origin = work.tile_number / b.tiles_across * (uint32_t)b.tile_height * b.image.columns +
                  work.tile_number % b.tiles_across * (uint32_t)b.tile_width;
    return work;
}

__device__ __forceinline__ bool is_to_do(const tsr_decode_coefficients &w, uint32_t number)
{
    return number < 2 * w.pieces && w.piece[number].is_sliced && !w.piece[number % w.pieces].is_bad;
}

/* ---- Wavefronts ------------------------------------------------------------------------------------------- */

/* By a warp: whether the piece's places of DCs, which are in a plane of their own, are all 0. */
__device__ __forceinline__ bool are_dcs_apart(const tsr_decode_coefficients &w, const inverse_work &work)
{
    const size_t blocks = (size_t)work.columns * (size_t)work.rows;
    int32_t any = 0;
    for (size_t i = threadIdx.x % TSR_WARP; i < blocks; i += TSR_WARP) any |= w.dcs[work.first_block + i];
    return !__any_sync(TSR_FULL_WARP, any != 0);
}

/* A warp a piece or a DC plane's: differences of DCs to DCs. The wavefront's next 32 steps of each row are in shared
 * memory: of single loads along the rows nearly each step would wait for one. */
__global__ void __launch_bounds__(WARP_THREADS)
    k_restore_dcs(const struct tsr_cuda_decode_batch b, const tsr_decode_coefficients w)
{
    __shared__ int32_t rows_of_steps[WARP_THREADS / TSR_WARP][TSR_WARP][TSR_WARP + 1];
    const int32_t lane = (int32_t)(threadIdx.x % TSR_WARP);
    const uint32_t number = blockIdx.x * (WARP_THREADS / TSR_WARP) + threadIdx.x / TSR_WARP;
    if (!is_to_do(w, number) || plane_of(b, number).path == TSR_PATH_PREDICT) return;
    const inverse_work work = piece_at(b, w, number);
    if (number < w.pieces && plane_of(b, number).dc_plane) {
        if (are_dcs_apart(w, work) || threadIdx.x % TSR_WARP != 0) return;
        w.piece[number].is_bad = 1;
        tsr_note_bad_tile(b, work.frame, work.tile_number);
        return;
    }
    int32_t(*held)[TSR_WARP + 1] = rows_of_steps[threadIdx.x / TSR_WARP];
    bool is_bad = false;
    for (int32_t first = 0; first < work.rows; first += TSR_WARP) {
        const int32_t rows = tsr_min(TSR_WARP, work.rows - first), steps = work.columns + rows - 1;
        int32_t *dcs = w.dcs + work.first_block + (size_t)first * (size_t)work.columns;
        int32_t own = 0, up = 0;
        for (int32_t base = 0; base < steps; base += TSR_WARP) {
            const bool has_above = first > 0 && base + lane < work.columns;
            const int32_t above = has_above ? *(dcs - work.columns + base + lane) : 0;
#pragma unroll 8
            for (int32_t i = 0; i < rows; i++) {
                const int32_t x = base - i + lane;
                if (x >= 0 && x < work.columns) held[i][lane] = dcs[(size_t)i * (size_t)work.columns + (size_t)x];
            }
            __syncwarp();
#pragma unroll 4
            for (int32_t step = 0; step < TSR_WARP; step++) {
                const int32_t x = base + step - lane, y = first + lane, up_left = up;
                const int32_t from_band = __shfl_sync(TSR_FULL_WARP, above, step);
                up = __shfl_up_sync(TSR_FULL_WARP, own, 1);
                if (lane == 0) up = from_band;
                if (x < 0 || x >= work.columns || lane >= rows) continue;
                const int32_t prediction = y == 0 ? (x > 0 ? own : 0) : x == 0 ? up : tsr_median_edge(own, up, up_left);
                own = held[lane][step] + prediction;
                if (tsr_abs(own) >= TSR_COEFFICIENT_LIMIT) {
                    is_bad = true;
                    own = 0;
                }
                held[lane][step] = own;
            }
            __syncwarp();
#pragma unroll 8
            for (int32_t i = 0; i < rows; i++) {
                const int32_t x = base - i + lane;
                if (x >= 0 && x < work.columns) dcs[(size_t)i * (size_t)work.columns + (size_t)x] = held[i][lane];
            }
            __syncwarp(); /* also for what the next rows see of these */
        }
    }
    if (!is_bad) return;
    w.piece[number].is_bad = 1;
    tsr_note_bad_tile(b, work.frame, work.tile_number);
}

/* A warp a piece of path P: residuals of the median edge predictor. */
template <typename Coefficient>
__global__ void __launch_bounds__(WARP_THREADS)
    k_restore_residuals(const struct tsr_cuda_decode_batch b, const tsr_decode_coefficients w)
{
    const uint32_t number = blockIdx.x * (WARP_THREADS / TSR_WARP) + threadIdx.x / TSR_WARP;
    if (!is_to_do(w, number) || plane_of(b, number).path != TSR_PATH_PREDICT) return;
    const inverse_work work = piece_at(b, w, number);
    const Coefficient *coefficients =
        static_cast<const Coefficient *>(w.coefficients) + work.first_block * TSR_BLOCK_SAMPLES;
    const int32_t range = (int32_t)plane_of(b, number).range;
    const int32_t lane = (int32_t)(threadIdx.x % TSR_WARP), width = work.tile.width, height = work.tile.height;
    bool is_bad = false;
    for (int32_t first = 0; first < height; first += TSR_WARP) {
        const int32_t y = first + lane, steps = width + tsr_min(TSR_WARP, height - first) - 1;
        uint16_t *row = work.samples + (size_t)y * work.tile.stride;
        int32_t own = 0, up = 0;
        for (int32_t step = 0; step < steps; step++) {
            const int32_t x = step - lane, up_left = up;
            up = __shfl_up_sync(TSR_FULL_WARP, own, 1);
            if (x < 0 || x >= width || y >= height) continue;
            if (lane == 0) up = y > 0 ? *(row - work.tile.stride + x) : 0;
            const size_t block = (size_t)(y / 4) * (size_t)work.columns + (size_t)(x / 4);
            const int32_t residual = coefficients[block * TSR_BLOCK_SAMPLES + (size_t)(4 * (y % 4) + x % 4)];
            const int32_t prediction = y == 0 ? (x > 0 ? own : 0) : x == 0 ? up : tsr_median_edge(own, up, up_left);
            own = tsr_abs(residual) > range ? -1 : tsr_residual_inverse(residual, prediction, range);
            if (own < 0 || own >= range) {
                is_bad = true;
                own = 0;
            }
            row[x] = (uint16_t)own;
        }
        __syncwarp(); /* the last row has been written */
    }
    if (is_bad) tsr_note_bad_tile(b, work.frame, work.tile_number);
}

/* ---- Blocks ----------------------------------------------------------------------------------------------- */

/* A block's coefficients, row by row. */
__device__ __forceinline__ void load_coefficients(const int16_t *from, int32_t coefficient[16])
{
    const uint4 *halves = reinterpret_cast<const uint4 *>(from);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const uint4 eight = __ldcs(&halves[i]);
        const uint32_t word[4] = {eight.x, eight.y, eight.z, eight.w};
#pragma unroll
        for (int k = 0; k < 4; k++) {
            coefficient[8 * i + 2 * k] = (int16_t)(word[k] & 0xffffu);
            coefficient[8 * i + 2 * k + 1] = (int32_t)word[k] >> 16;
        }
    }
}

__device__ __forceinline__ void load_coefficients(const int32_t *from, int32_t coefficient[16])
{
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int4 four = __ldcs(reinterpret_cast<const int4 *>(from) + i);
        coefficient[4 * i] = four.x;
        coefficient[4 * i + 1] = four.y;
        coefficient[4 * i + 2] = four.z;
        coefficient[4 * i + 3] = four.w;
    }
}

template <typename Coefficient>
__device__ __forceinline__ void load_block(const tsr_decode_coefficients &w, size_t block, int32_t coefficient[16])
{
    load_coefficients(static_cast<const Coefficient *>(w.coefficients) + block * TSR_BLOCK_SAMPLES, coefficient);
    coefficient[0] = w.dcs[block];
}

/* The q of the block at this place. */
__device__ __forceinline__ int32_t block_q(const tsr_plane_model &plane, const tsr_image &image,
                                           const inverse_work &work, int32_t column, int32_t row)
{
    const uint32_t first = work.origin + 4u * (uint32_t)row * image.columns + 4u * (uint32_t)column;
    return plane.qp_index + (first >= plane.coarser_from ? (int32_t)plane.coarser_by : 0);
}

/* Of all four columns, then of all four rows, in 32 bits. */
__device__ __forceinline__ void inverse_32(int32_t x[16])
{
#pragma unroll
    for (int j = 0; j < 4; j++) {
        int32_t v[4] = {x[j], x[4 + j], x[8 + j], x[12 + j]};
        tsr_core_inverse_32_1d(v);
        x[j] = v[0];
        x[4 + j] = v[1];
        x[8 + j] = v[2];
        x[12 + j] = v[3];
    }
#pragma unroll
    for (int i = 0; i < 4; i++) tsr_core_inverse_32_1d(x + 4 * i);
}

__device__ __forceinline__ uint32_t sum_of_magnitudes(const int32_t x[16])
{
    uint32_t sum = 0;
#pragma unroll
    for (int i = 0; i < UNROLLED; i++) sum += (uint32_t)tsr_abs(x[i]);
    return sum;
}

/* Coefficients to samples 0 .. range-1. */
__device__ __forceinline__ void inverse_quantised(int32_t x[16], int32_t q, int32_t top)
{
    const int octave = q / TSR_QP_OCTAVE;
    /* Class 0 has the largest factors; results and all on the way to them are at most 4 times the sum of what is
     * scaled. */
    if (((uint64_t)sum_of_magnitudes(x) * (uint32_t)tsr_quantiser_step(q, 0) << octave) < 1u << 28) {
        int32_t step[3];
#pragma unroll
        for (int k = 0; k < 3; k++) step[k] = tsr_quantiser_step(q, k) << octave;
#pragma unroll
        for (int i = 0; i < UNROLLED; i++) x[i] *= step[tsr_norm_class(i / 4, i % 4)];
        inverse_32(x);
#pragma unroll
        for (int i = 0; i < UNROLLED; i++) x[i] = tsr_asr(x[i] + (1 << (TSR_INVERSE_SHIFT - 1)), TSR_INVERSE_SHIFT);
    } else {
        int64_t scaled[16];
#pragma unroll
        for (int i = 0; i < UNROLLED; i++) scaled[i] = tsr_dequantise(x[i], q, tsr_norm_class(i / 4, i % 4));
        tsr_core_inverse(scaled, x);
    }
#pragma unroll
    for (int i = 0; i < UNROLLED; i++) x[i] = tsr_max(0, tsr_min(top, x[i]));
}

/* Four samples of a row, as far as they are in the tile. */
__device__ __forceinline__ void store_four(uint16_t *to, const int32_t x[4], int32_t count, bool aligned)
{
    if (aligned && count >= 4) {
        *reinterpret_cast<uint2 *>(to) =
            make_uint2((uint32_t)x[0] | (uint32_t)x[1] << 16, (uint32_t)x[2] | (uint32_t)x[3] << 16);
        return;
    }
#pragma unroll
    for (int j = 0; j < 4; j++)
        if (j < count) to[j] = (uint16_t)x[j];
}

/* Restores the block at a place of its tile; false where that leaves the range. */
template <typename Coefficient>
__device__ __forceinline__ bool invert_block(const struct tsr_cuda_decode_batch &b, const tsr_decode_coefficients &w,
                                             const tsr_plane_model &plane, const inverse_work &work, uint32_t place)
{
    const int32_t row = (int32_t)(place / (uint32_t)work.columns), column = (int32_t)place - row * work.columns;
    const int32_t range = (int32_t)plane.range;
    int32_t x[16];
    load_block<Coefficient>(w, work.first_block + place, x);
    bool is_good = true;
    if (plane.lossy) {
        inverse_quantised(x, block_q(plane, b.image, work, column, row), range - 1);
    } else {
#pragma unroll
        for (int i = 0; i < UNROLLED; i++) is_good &= tsr_abs(x[i]) < TSR_REVERSIBLE_LIMIT;
        if (!is_good) return false;
        tsr_reversible_inverse(x);
    }
    const bool aligned = work.tile.first % 4 == 0;
    const int32_t across = work.tile.width - 4 * column;
    uint16_t *to = work.samples + (size_t)(4 * row) * work.tile.stride + (size_t)(4 * column);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (4 * row + i >= work.tile.height) break;
#pragma unroll
        for (int j = 0; j < 4; j++) is_good &= j >= across || (uint32_t)x[4 * i + j] < (uint32_t)range;
        if (is_good) store_four(to + (size_t)i * work.tile.stride, x + 4 * i, across, aligned);
    }
    return is_good;
}

/* A thread a block, and then the next: planes without lapping, with loss or without. */
template <typename Coefficient>
__global__ void __launch_bounds__(BLOCK_THREADS)
    k_inverse_blocks(const struct tsr_cuda_decode_batch b, const tsr_decode_coefficients w, uint32_t parts)
{
    const uint32_t number = blockIdx.x / parts, part = blockIdx.x - number * parts;
    if (!is_to_do(w, number)) return;
    const tsr_plane_model &plane = plane_of(b, number);
    if (plane.lapping || plane.path == TSR_PATH_PREDICT) return;
    const inverse_work work = piece_at(b, w, number);
    const uint32_t blocks = (uint32_t)(work.columns * work.rows), first = part * PART_BLOCKS;
    bool is_bad = false;
    for (uint32_t place = first + threadIdx.x; place < blocks && place - first < PART_BLOCKS; place += BLOCK_THREADS)
        is_bad |= !invert_block<Coefficient>(b, w, plane, work, place);
    if (is_bad) tsr_note_bad_tile(b, work.frame, work.tile_number);
}

/* ---- Lapping ---------------------------------------------------------------------------------------------- */

/* Coefficients to samples with their fraction, as the filter takes them. has_mean: the first is scaled already. */
__device__ __forceinline__ void inverse_fine(int32_t x[16], int32_t q, int step_class, bool has_mean)
{
    const int32_t mean = x[0];
    if (has_mean) x[0] = 0;
    const int octave = q / TSR_QP_OCTAVE, shift = TSR_FINE_DROP - octave;
    uint32_t most = 0;
#pragma unroll
    for (int i = 0; i < UNROLLED; i++) most |= (uint32_t)tsr_abs(x[i]);
    int32_t step[3];
#pragma unroll
    for (int k = 0; k < 3; k++) step[k] = tsr_class_step(q, k, step_class);
    const int32_t dc_step = tsr_quantiser_step(q, 0);
    const int step_bits = step_class == TSR_PLAIN_CLASS ? TSR_STEP_BITS : TSR_CLASS_STEP_BITS;
    if (shift >= 0 && most >> (30 - step_bits) == 0 && most << step_bits >> shift < TSR_FINE_LIMIT) {
        const int32_t half = shift > 0 ? 1 << (shift - 1) : 0;
#pragma unroll
        for (int i = 0; i < UNROLLED; i++)
            x[i] = tsr_asr(x[i] * (i == 0 ? dc_step : step[tsr_norm_class(i / 4, i % 4)]) + half, shift);
    } else {
#pragma unroll
        for (int i = 0; i < UNROLLED; i++)
            x[i] = tsr_scale_fine(x[i], i == 0 ? dc_step : step[tsr_norm_class(i / 4, i % 4)], q, i);
    }
    if (has_mean) x[0] = mean;
    inverse_32(x);
#pragma unroll
    for (int i = 0; i < UNROLLED; i++) x[i] = tsr_lap_settle(x[i]);
}

/* A thread a block of a DC plane, and then the next: means to the blocks that they are of. */
template <typename Coefficient>
__global__ void __launch_bounds__(BLOCK_THREADS)
    k_inverse_dcs(const struct tsr_cuda_decode_batch b, const tsr_decode_coefficients w)
{
    const uint32_t number = w.pieces + blockIdx.x;
    if (!is_to_do(w, number)) return;
    const tsr_plane_model &plane = plane_of(b, number);
    const inverse_work work = piece_at(b, w, number);
    const int fraction = tsr_dc_fraction(plane.range);
    int32_t *const dcs = w.dcs + tsr_first_block(&w, number - w.pieces);
    for (int32_t place = (int32_t)threadIdx.x; place < work.columns * work.rows; place += BLOCK_THREADS) {
        const int32_t row = place / work.columns, column = place - row * work.columns;
        int32_t x[16];
        load_block<Coefficient>(w, work.first_block + (size_t)place, x);
        inverse_fine(x, plane.dc_qp_index, TSR_PLAIN_CLASS, false);
#pragma unroll
        for (int i = 0; i < UNROLLED; i++) {
            const int32_t at_x = 4 * column + i % 4, at_y = 4 * row + i / 4;
            if (at_x < work.tile.width && at_y < work.tile.height)
                dcs[(size_t)at_y * (size_t)work.tile.width + (size_t)at_x] =
                    tsr_dc_scaled(tsr_dc_settle(x[i]), fraction);
        }
    }
}

/* Four samples of a row around a border between blocks, of which those at from .. end - 1 are in the tile. */
__device__ __forceinline__ void store_around(uint16_t *to, const int32_t x[4], int32_t from, int32_t end, int32_t top,
                                             bool aligned)
{
    uint32_t sample[4];
#pragma unroll
    for (int j = 0; j < 4; j++) sample[j] = (uint32_t)tsr_lap_sample(x[j], top);
#pragma unroll
    for (int j = 0; j < 4; j += 2) {
        if (aligned && j >= from && j + 2 <= end) {
            *reinterpret_cast<uint32_t *>(to + j) = sample[j] | sample[j + 1] << 16;
            continue;
        }
        if (j >= from && j < end) to[j] = (uint16_t)sample[j];
        if (j + 1 >= from && j + 1 < end) to[j + 1] = (uint16_t)sample[j + 1];
    }
}

/* A warp walks down a strip of 32 blocks across; lane l writes the samples around the border between blocks l and
 * l + 1, and between rows. The tile's left and right edges are borders, too, with blocks on one side. */
template <typename Coefficient>
__global__ void __launch_bounds__(STRIP_THREADS)
    k_inverse_lapped(const struct tsr_cuda_decode_batch b, const tsr_decode_coefficients w, uint32_t parts)
{
    const int32_t lane = (int32_t)(threadIdx.x % TSR_WARP);
    const uint32_t number = blockIdx.x / parts,
                   strip = (blockIdx.x - number * parts) * (STRIP_THREADS / TSR_WARP) + threadIdx.x / TSR_WARP;
    if (!is_to_do(w, number)) return;
    const tsr_plane_model &plane = plane_of(b, number);
    if (!plane.lapping) return;
    const inverse_work work = piece_at(b, w, number);
    const int32_t column = (int32_t)strip * STRIP_BORDERS - 1 + lane;
    if (column - lane >= work.columns) return; /* the whole warp */
    const bool is_lapped = w.piece[number].lapped != 0, is_block = column >= 0 && column < work.columns;
    const bool is_border = is_lapped && column >= 0 && column + 1 < work.columns;
    const bool aligned = work.tile.first % 2 == 0;
    const int32_t top = (int32_t)plane.range - 1, across = tsr_squares_along(work.tile.width);
    const uint8_t *classes = plane.classes ? w.classes + (size_t)number * w.tile_squares : NULL;
    /* Samples around the border, from the block's third column on, that are in the tile. */
    const int32_t from = lane == STRIP_BORDERS ? 4 : column < 0 ? 2 : 0;
    const int32_t end = tsr_max(from, tsr_min(4, work.tile.width - (4 * column + 2)));
    uint16_t *to = work.samples + (ptrdiff_t)(4 * column + 2);
    int32_t held[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}}; /* the last two rows of the blocks above, around the border */
    for (int32_t row = 0; row <= work.rows; row++) {
        int32_t x[16], around[4][4];
#pragma unroll
        for (int i = 0; i < UNROLLED; i++) x[i] = 0;
        if (is_block && row < work.rows) {
            load_block<Coefficient>(w, work.first_block + (size_t)row * (size_t)work.columns + (size_t)column, x);
            const int step_class =
                classes ? classes[row / TSR_CLASS_BLOCKS * across + column / TSR_CLASS_BLOCKS] : TSR_PLAIN_CLASS;
            inverse_fine(x, block_q(plane, b.image, work, column, row) + (is_lapped ? TSR_LAP_QP : 0), step_class,
                         plane.dc_plane);
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            around[i][0] = x[4 * i + 2];
            around[i][1] = x[4 * i + 3];
            around[i][2] = __shfl_down_sync(TSR_FULL_WARP, x[4 * i], 1);
            around[i][3] = __shfl_down_sync(TSR_FULL_WARP, x[4 * i + 1], 1);
            if (is_border) tsr_lap_inverse(&around[i][0], &around[i][1], &around[i][2], &around[i][3]);
        }
        if (is_lapped && row > 0 && row < work.rows) {
#pragma unroll
            for (int j = 0; j < 4; j++) tsr_lap_inverse(&held[0][j], &held[1][j], &around[0][j], &around[1][j]);
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int32_t y = 4 * row - 2 + i;
            if (y >= 0 && y < work.tile.height && (i < 2 || row < work.rows))
                store_around(to + (size_t)y * work.tile.stride, i < 2 ? held[i] : around[i - 2], from, end, top,
                             aligned);
        }
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) held[i][j] = around[2 + i][j];
    }
}

template <typename Coefficient>
int inverse(const struct tsr_cuda_decode_batch &b, const tsr_decode_coefficients &w, cudaStream_t stream)
{
    const unsigned warps = WARP_THREADS / TSR_WARP, strip_warps = STRIP_THREADS / TSR_WARP;
    const uint32_t columns = (uint32_t)tsr_full_tile_blocks(&b).columns;
    const uint32_t strips = (columns + STRIP_BORDERS) / STRIP_BORDERS; /* of columns + 1 borders */
    const uint32_t block_parts = (w.tile_blocks + PART_BLOCKS - 1) / PART_BLOCKS;
    const uint32_t strip_parts = (strips + strip_warps - 1) / strip_warps;
    TSR_CUDA_TRY(tsr_launch(k_restore_dcs, (2 * w.pieces + warps - 1) / warps, WARP_THREADS, 0, stream, b, w));
    TSR_CUDA_TRY(tsr_launch(k_inverse_dcs<Coefficient>, w.pieces, BLOCK_THREADS, 0, stream, b, w));
    TSR_CUDA_TRY(
        tsr_launch(k_restore_residuals<Coefficient>, (w.pieces + warps - 1) / warps, WARP_THREADS, 0, stream, b, w));
    TSR_CUDA_TRY(
        tsr_launch(k_inverse_blocks<Coefficient>, w.pieces * block_parts, BLOCK_THREADS, 0, stream, b, w, block_parts));
    return tsr_launch(k_inverse_lapped<Coefficient>, w.pieces * strip_parts, STRIP_THREADS, 0, stream, b, w,
                      strip_parts);
}

} // namespace

int tsr_cuda_inverse(const struct tsr_cuda_decode_batch *batch, const struct tsr_decode_coefficients *coefficients,
                     cudaStream_t stream)
{
    return coefficients->narrow ? inverse<int16_t>(*batch, *coefficients, stream)
                                : inverse<int32_t>(*batch, *coefficients, stream);
}
