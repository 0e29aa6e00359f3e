/* Units to coefficients by rate and distortion on the device: the choice of entropy/rate_distortion.h, the behaviour of
 * tsr_choose_coefficients in kernels/blocks/lapped_cpu.c.
 *
 * A thread a block, a block of threads the slices beside each other in a tile. Magnitudes by plain rounding lie in
 * shared memory, those of the blocks around the slice, too, which are rounded anew. What a place costs is one look-up
 * of four numbers, by its energy and its magnitude, and every place of a block is as good as any other: what has no
 * coefficient at a place pays for it like the others. So no lane waits for another one, and a place at which no block
 * of the warp has anything to choose is passed by as a whole; at QP 20 that is half of them on CT. */
#include "kernels/machine/device.cuh"

#include "kernels/slices/energies.cuh"
#include "kernels/slices/coefficients.cuh"

#include "entropy/rate_distortion.h"

namespace
{

enum { THREADS = TSR_SLICE_PLACE_COUNT, SIDE = TSR_SLICE_BLOCKS };

typedef tsr_seen_blocks<SIDE> slice_seen;

/* ---- Rates ---------------------------------------------------------------------------------------------- */

/* Rows are those of tsr_energy_row. One has a magnitude more than is used, so that neighbouring rows lie in different
 * banks. */
enum { ROWS = TSR_ENERGY_CLASSES + 2, ROW_PITCH = TSR_RATE_MAGNITUDES + 1, PLACES_PITCH = TSR_BLOCK_SAMPLES + 1 };

struct rate_tables {
    alignas(16) tsr_magnitude_rates of[ROWS * ROW_PITCH];
    int32_t places[TSR_ENERGY_CLASSES * PLACES_PITCH];
};

/* By all threads. */
__device__ void fill_rates(rate_tables &rates, int32_t lambda, unsigned thread)
{
    for (unsigned i = thread; i < ROWS * TSR_RATE_MAGNITUDES; i += THREADS) {
        const int row = (int)(i / TSR_RATE_MAGNITUDES), rate = (int)(i % TSR_RATE_MAGNITUDES);
        rates.of[row * ROW_PITCH + rate] = tsr_rates_of_magnitude(tsr_max(0, row - 2), rate, lambda);
    }
    for (unsigned i = thread; i < TSR_ENERGY_CLASSES * PLACES_PITCH; i += THREADS)
        rates.places[i] = tsr_places_rate(0, (int)i, lambda); /* rows follow each other there, too */
}

/* ---- A block -------------------------------------------------------------------------------------------- */

/* The choice of entropy/rate_distortion.h for a warp, each block by its thread; all of them are here. in_use: places
 * at which a block of the warp has something to choose. */
template <bool LAPPED>
__device__ __forceinline__ void choose(int32_t block[TSR_BLOCK_SAMPLES], const uint32_t energy[TSR_PLACE_WORDS],
                                       uint32_t in_use, int block_class, const rate_tables &rates)
{
    const int32_t *places = rates.places + PLACES_PITCH * block_class;
    tsr_block_choice choice = tsr_begin_choice(places[block[0] != 0]);
#pragma unroll
    for (int p = 1; p < TSR_BLOCK_SAMPLES; p++) {
        if (in_use >> p == 0) break;
        const uint32_t row = tsr_energy_row(tsr_half(energy, p));
        const tsr_magnitude_rates *rate = rates.of + row * ROW_PITCH;
        if (!(in_use >> p & 1u)) { /* what tsr_choose_place makes of a zero */
            choice.below += rate->here;
            continue;
        }
        const tsr_place_errors errors = tsr_errors_of_place(block[p], tsr_place_weight(p, LAPPED));
        const int4 four = *reinterpret_cast<const int4 *>(rate + tsr_min(errors.nearest, TSR_RATE_MAGNITUDES - 1));
        tsr_choose_place(&choice, p, errors, {four.x, four.y, four.z, four.w}, places[p + 1]);
    }
    const uint32_t less_at = tsr_places_of_less(&choice);
#pragma unroll
    for (int p = 1; p < TSR_BLOCK_SAMPLES; p++)
        block[p] = in_use >> p & 1u ? tsr_chosen_coefficient(block[p], p, choice.last, less_at) : 0;
}

/* Units to magnitudes that neighbours see, by plain rounding; the first place is a coefficient. */
__device__ __forceinline__ void round_words(const int32_t units[TSR_BLOCK_SAMPLES], uint32_t seen[TSR_PLACE_WORDS])
{
    enum { MOST = TSR_MAGNITUDE_CAP * TSR_UNIT + TSR_UNIT - 1, ROUND = TSR_ROUND_AC / (65536 >> TSR_UNIT_BITS) };
    static_assert(MOST < 1 << 24, "bytes 1 and 2 are the magnitude");
#pragma unroll
    for (int k = 0; k < TSR_PLACE_WORDS; k++) {
        const int32_t low = k == 0 ? tsr_min(tsr_abs(units[0]), TSR_MAGNITUDE_CAP) << TSR_UNIT_BITS
                                   : tsr_min(tsr_abs(units[2 * k]) + ROUND, MOST);
        const int32_t high = tsr_min(tsr_abs(units[2 * k + 1]) + ROUND, MOST);
        seen[k] = __byte_perm((uint32_t)low, (uint32_t)high, 0x6521);
    }
}

/* Places but the first at which the nearest coefficient is not 0. */
__device__ __forceinline__ uint32_t places_in_use(const int32_t units[TSR_BLOCK_SAMPLES])
{
    uint32_t places = 0;
#pragma unroll
    for (int p = TSR_BLOCK_SAMPLES - 1; p >= 0; p--)
        places = __funnelshift_l(p == 0 ? 0u : (uint32_t)(TSR_UNIT / 2 - 1 - tsr_abs(units[p])), places, 1);
    return places;
}

__device__ __forceinline__ int total_at(const slice_seen &around, uint32_t place)
{
    int total = 0;
#pragma unroll
    for (int k = 0; k < TSR_PLACE_WORDS; k++) {
        const uint32_t word = around.words[k][place];
        total += ((word & 0xffffu) != 0) + (word >> 16 != 0);
    }
    return total;
}

/* ---- Slices --------------------------------------------------------------------------------------------- */

/* A block of magnitudes above or to the right of a slice at column, row of the tile, by the threads of the first warp:
 * where it lies. Those to the left are the slice's before. */
struct side_block {
    int32_t x, y; /* from the slice's first block */
    bool is_there;

    __device__ __forceinline__ side_block(int32_t lane)
    {
        const bool is_above = lane <= SIDE;
        x = is_above ? lane : SIDE;
        y = is_above ? -1 : lane - SIDE - 1;
        is_there = false;
    }
    __device__ __forceinline__ uint32_t at() const
    {
        return (uint32_t)((y + 1) * slice_seen::PITCH + x + 1);
    }
    /* slice: of the batch. */
    __device__ __forceinline__ void load(const tsr_cuda_batch &b, size_t slice, uint32_t slice_columns, int32_t column,
                                         int32_t row, int32_t columns, int32_t rows, int32_t units[TSR_BLOCK_SAMPLES])
    {
        is_there = column + x < columns && row + y >= 0 && row + y < rows;
        if (!is_there) return;
        const size_t other = slice - (y < 0 ? slice_columns : 0u) + (x < SIDE ? 0u : 1u);
        tsr_load_block(b.transform.units, other, (uint32_t)((y & (SIDE - 1)) * SIDE + (x & (SIDE - 1))), units);
    }
};
static_assert(SIDE + 1 + SIDE - 1 == TSR_WARP, "those above, one more, and those to the right but the last");

/* Units, but the first place, to coefficients, without a choice. */
__device__ __forceinline__ void round_plainly(int32_t block[TSR_BLOCK_SAMPLES])
{
#pragma unroll
    for (int p = 1; p < TSR_BLOCK_SAMPLES; p++) {
        const int32_t coefficient = tsr_round_units(block[p], TSR_ROUND_AC);
        block[p] = block[p] < 0 ? -coefficient : coefficient;
    }
}

/* The choice by the energies around the block at this place, and its own. By a whole warp. */
__device__ __forceinline__ void choose_by_energies(int32_t block[TSR_BLOCK_SAMPLES], const slice_seen &around,
                                                   uint32_t at, const uint32_t seen[TSR_PLACE_WORDS], bool lapped,
                                                   const rate_tables &rates)
{
    const uint32_t in_use = __reduce_or_sync(TSR_FULL_WARP, places_in_use(block));
    uint32_t energy[TSR_PLACE_WORDS] = {0};
    int block_class = 0;
    if (in_use != 0) {
        around.energies(at, energy);
        block_class = tsr_class_of_block(energy);
        tsr_add_own_energies(seen, energy);
    }
    if (lapped)
        choose<true>(block, energy, in_use, block_class, rates);
    else
        choose<false>(block, energy, in_use, block_class, rates);
}

/* A block of threads a row of slices of a tile. */
template <typename Coefficient, bool CAVLC>
__global__ void __launch_bounds__(THREADS, 4) k_choose_coefficients(const tsr_cuda_batch b)
{
    __shared__ slice_seen around;
    __shared__ rate_tables rates;
    const unsigned thread = threadIdx.x;
    const uint32_t of_plane = b.shape.tiles * b.shape.tile_slice_rows, number = blockIdx.x / of_plane;
    const uint32_t in_plane = blockIdx.x - number * of_plane, tile = in_plane / b.shape.tile_slice_rows;
    const uint32_t slice_row = in_plane - tile * b.shape.tile_slice_rows;
    if (tsr_state_span(b.shared.plane[number]) == 1) return;
    const struct tsr_tile_place place = tsr_tile_place(&b, tile);
    if (slice_row >= place.slice_rows) return;
    const struct tsr_transform_plan plan = tsr_plane_plan(&b, number);
    const bool chooses = plan.chooses,
               lapped = b.transform.lapped && b.transform.lapped[number * b.shape.tiles + tile] != 0;
    const int32_t columns = (place.tile.width + 3) / 4, rows = (place.tile.height + 3) / 4;
    const int32_t c = (int32_t)(thread % SIDE), r = (int32_t)(thread / SIDE), row = (int32_t)slice_row * SIDE;
    const uint32_t at = slice_seen::at(thread);
    size_t slice = (size_t)number * b.shape.slices + place.first_slice + slice_row * place.slice_columns;
    if (!CAVLC && chooses) fill_rates(rates, tsr_plan_lambda(&plan), thread);
    uint32_t seen[TSR_PLACE_WORDS] = {0};
    side_block side((int32_t)thread % TSR_WARP);
    uint32_t magnitudes = 0; /* of one block in TSR_MAGNITUDE_STEP along the tile's rows */
    for (int32_t column = 0; column < columns; column += SIDE, slice++) {
        const bool is_block = column + c < columns && row + r < rows;
        const bool is_counted = is_block && ((row + r) * columns + column + c) % TSR_MAGNITUDE_STEP == 0;
        int32_t block[TSR_BLOCK_SAMPLES] = {0}, side_units[TSR_BLOCK_SAMPLES];
        if (is_block) tsr_load_block(b.transform.units, slice, thread, block);
        if (!chooses) { /* the same for the whole plane */
            round_plainly(block);
            if (is_block) tsr_store_block(static_cast<Coefficient *>(b.transform.coefficients), slice, thread, block);
            if (is_counted) magnitudes += tsr_magnitudes_of(block);
            continue;
        }
        if (thread < TSR_WARP) side.load(b, slice, place.slice_columns, column, row, columns, rows, side_units);
        if (thread == 0 && column + SIDE < columns)
            tsr_prefetch(b.transform.units + tsr_coefficient_place(slice + 1, 0, 0),
                         TSR_SLICE_PLACE_COUNT * TSR_BLOCK_SAMPLES * sizeof(int32_t));
        if (column > 0) __syncthreads(); /* the slice before is done with the memory */
        if (c == SIDE - 1) around.set(at - SIDE, seen);
        round_words(block, seen);
        around.set(at, seen);
        if (thread < TSR_WARP) {
            uint32_t side_seen[TSR_PLACE_WORDS] = {0};
            if (thread < TSR_PLACE_WORDS) around.words[thread][0] = column > 0 ? around.words[thread][SIDE] : 0;
            if (side.is_there) round_words(side_units, side_seen);
            __syncwarp();
            around.set(side.at(), side_seen);
        }
        __syncthreads();
        if (CAVLC) {
            const int left = column + c > 0 ? total_at(around, at - 1u) : -1;
            const int up = row + r > 0 ? total_at(around, at - slice_seen::PITCH) : -1;
            if (is_block) tsr_optimise_cavlc(block, tsr_cavlc_context(left, up), lapped, TSR_RATE_LAMBDA);
        } else {
            choose_by_energies(block, around, at, seen, lapped, rates);
        }
        if (is_block) tsr_store_block(static_cast<Coefficient *>(b.transform.coefficients), slice, thread, block);
        if (is_counted) magnitudes += tsr_magnitudes_of(block);
    }
    if (b.transform.magnitudes) tsr_add_magnitudes(b, number, magnitudes);
}

template <typename Coefficient> cudaError_t choose_coefficients(const tsr_cuda_batch *b, cudaStream_t stream)
{
    void (*const kernel)(tsr_cuda_batch) = b->transform.plan.cavlc_bits ? k_choose_coefficients<Coefficient, true>
                                                                        : k_choose_coefficients<Coefficient, false>;
    return tsr_launch(kernel, b->shape.planes * b->shape.tiles * b->shape.tile_slice_rows, THREADS, 0, stream, *b);
}

} // namespace

int tsr_cuda_choose(const struct tsr_cuda_batch *batch, cudaStream_t stream)
{
    return batch->transform.narrow ? choose_coefficients<int16_t>(batch, stream)
                                   : choose_coefficients<int32_t>(batch, stream);
}
