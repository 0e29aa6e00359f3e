/* Pieces of blocks in slices to coefficients, and on to samples: the behaviour of tsr_decode_slices and
 * tsr_decode_coefficients. FORMAT.md 8.5, 8.6 and 10, CAVLC.md.
 *
 * The lengths in front of a piece say where each slice begins; from there on slices are free of each other, and a
 * thread decodes one. What is coded how stands in the models on the device alone, so all slices of a kind are numbered
 * by a scan (slice_tables_cuda.cu), and each kind's kernel takes its own, neighbours of a piece in neighbouring
 * threads: they share tables. Coefficients of a block come together in shared memory and leave it as a whole. */
#include "decode_slice.cuh"

#include "cavlc_read.cuh"
#include "kernels/batch/batch_transform_cuda.h"

namespace
{

/* Room for a plane's tables: all that run-level symbols and rANS may need. Pairs may need a third of it more, but small
 * planes have few tables, and large ones have more room. */
enum {
    PLANE_TABLE_BYTES = 104 * 1024,
    SAMPLES_A_TABLE_BYTE = 2,
    PLANE_TABLE_LIMIT = TSR_PAIR_TABLES * tsr_slice_huffman_bytes(TSR_PAIR_SYMBOLS)
};
static_assert(TSR_COEFFICIENT_TABLES * tsr_slice_table_bytes(TSR_SLICES_RANS) <= PLANE_TABLE_BYTES &&
                  (TSR_DC_CELLS + TSR_TABLE_LIMIT) * tsr_slice_table_bytes(TSR_SLICES_RUN_LEVEL) <= PLANE_TABLE_BYTES,
              "tables of run-level symbols and of rANS always have room");

/* ---- The work space --------------------------------------------------------------------------------------- */

template <typename T> void take(T *&array, uint8_t *base, size_t &used, size_t count)
{
    const size_t bytes = count * sizeof(T);
    size_t room = (bytes + 255) / 256 * 256;
    array = base ? reinterpret_cast<T *>(base + used) : NULL;
#if defined(TSR_CUDA_EMULATED)
    room += 256;
    if (base) tsr_emulated_array(array, bytes, room - bytes);
#endif
    used += room;
}

/* Room for the tables of a plane or DC plane of this many samples, in whole units. */
size_t table_bytes(size_t samples)
{
    const size_t bytes = PLANE_TABLE_BYTES + samples / SAMPLES_A_TABLE_BYTE;
    return (bytes < PLANE_TABLE_LIMIT ? bytes : PLANE_TABLE_LIMIT) / TSR_SLICE_TABLE_UNIT * TSR_SLICE_TABLE_UNIT;
}

size_t lay_out(const struct tsr_cuda_decode_batch &b, tsr_decode_coefficients &w, uint8_t *base)
{
    size_t used = 0;
    const struct tsr_block_grid most = tsr_block_grid(b.tile_width, b.tile_height, TSR_SLICE_BLOCKS_LEAST);
    const int sample_bits = tsr_sample_bits(&b.image), outside_bits = tsr_image_outside_bits(&b.image);
    const int bits = b.image.components >= 3 ? tsr_chroma_bits(sample_bits) : sample_bits;
    w.narrow = tsr_max(bits, outside_bits) <= TSR_NARROW_BITS;
    w.pieces = b.planes * b.tiles;
    w.most_slices = (uint32_t)(most.slice_columns * most.slice_rows);
    w.tile_blocks = (uint32_t)(most.columns * most.rows);
    const struct tsr_tile dcs = tsr_tile_of_dcs(b.tile_width, b.tile_height);
    const struct tsr_block_grid dc_blocks = tsr_block_grid(dcs.width, dcs.height, TSR_SLICE_BLOCKS_LEAST);
    w.dc_tile_blocks = (uint32_t)(dc_blocks.columns * dc_blocks.rows);
    w.table_room = (table_bytes(b.plane_samples) + table_bytes(b.plane_samples / TSR_BLOCK_SAMPLES)) /
                   TSR_SLICE_TABLE_UNIT * b.planes;
    take(w.piece, base, used, 2 * (size_t)w.pieces);
    take(w.start, base, used, 2 * (size_t)w.pieces * (w.most_slices + 1));
    take(w.first_slice, base, used, (size_t)TSR_SLICE_KINDS * (2 * (size_t)w.pieces + 1));
    take(w.plane, base, used, 2 * (size_t)b.planes);
    take(w.tables, base, used, w.table_room * TSR_SLICE_TABLE_UNIT);
    const size_t blocks = tsr_first_block(&w, 2 * w.pieces);
    uint8_t *coefficients;
    take(coefficients, base, used, blocks * TSR_BLOCK_SAMPLES * (w.narrow ? sizeof(int16_t) : sizeof(int32_t)));
    w.coefficients = coefficients;
    take(w.dcs, base, used, blocks);
    w.tile_squares = (uint32_t)tsr_squares_along(b.tile_width) * (uint32_t)tsr_squares_along(b.tile_height);
    take(w.classes, base, used, (size_t)w.pieces * w.tile_squares);
    return used;
}

typedef tsr_word_reader<THREADS> word_reader;

/* ---- CAVLC ------------------------------------------------------------------------------------------------ */

template <typename Coefficient>
__global__ void __launch_bounds__(THREADS)
    k_decode_cavlc(const struct tsr_cuda_decode_batch b, const tsr_decode_coefficients w)
{
    __shared__ tsr_cavlc_reader tables;
    __shared__ Coefficient coefficients[16][THREADS]; /* of the block at work, the last one first */
    __shared__ tsr_word_ring<THREADS> ring;
    __shared__ tsr_raster_blocks<THREADS, Coefficient> block;
    __shared__ int8_t totals[ROW_BLOCKS][THREADS]; /* of the last block of each column */
    if (is_idle(w, TSR_SLICES_CAVLC)) return;
    tsr_cavlc_fill_reader(tables, threadIdx.x, THREADS);
    __syncthreads();
    const unsigned thread = threadIdx.x;
    decode_slices<Coefficient>(b, w, TSR_SLICES_CAVLC, [&](const slice_work &work, uint32_t *seen) {
        word_reader reader(ring);
        reader.begin(work.bytes, work.size);
        for (uint32_t r = 0; r < work.rows; r++) {
            int left = -1;
            for (uint32_t c = 0; c < work.columns; c++) {
                const int context = tsr_cavlc_context(left, r > 0 ? totals[c][thread] : -1);
                const int total = tsr_cavlc_read_block(reader, tables, coefficients, block, TSR_BLOCK_SAMPLES, context,
                                                       TSR_COEFFICIENT_LIMIT - 1u, seen);
                if (total < 0) return false;
                const size_t at = work.first + (size_t)r * work.pitch + c;
                if (total > 0)
                    block.store(thread, coefficients_at<Coefficient>(w, at));
                else
                    block.store_zeros(coefficients_at<Coefficient>(w, at));
                w.dcs[at] = total > 0 ? block.dc(thread) : 0;
                totals[c][thread] = (int8_t)total;
                left = total;
            }
        }
        return reader.ended();
    });
}

/* ---- Run-level symbols ------------------------------------------------------------------------------------ */

/* A symbol of a table; its codeword is skipped. */
__device__ __forceinline__ uint32_t read_symbol(word_reader &r, const tsr_huffman_decoder *table)
{
    const uint32_t entry = tsr_huffman_decode(table, r.top() >> (32 - TSR_CODE_LIMIT));
    r.skip(entry & 15u);
    return entry >> 4;
}

/* Reads a block's places but the first: set(place, magnitude, negative) takes those that are not 0. False where the
 * symbols are not a valid block's. table_at(number): a table, by_place_class: their numbers, a byte each. */
template <typename TableAt, typename Set>
__device__ __forceinline__ bool read_places(word_reader &reader, uint32_t by_place_class, TableAt table_at, Set set)
{
    for (int place = 1; place < TSR_BLOCK_SAMPLES;) {
        const uint32_t number = by_place_class >> (8 * tsr_place_class(place)) & 255u;
        const uint32_t symbol = read_symbol(reader, table_at(number));
        if (symbol == TSR_END_OF_BLOCK) break;
        const uint32_t run = (symbol - 1u) / TSR_WIDTH_CLASSES, width = (symbol - 1u) - run * TSR_WIDTH_CLASSES;
        place += (int)run;
        if (place >= TSR_BLOCK_SAMPLES) return false;
        const uint32_t rest = width > 1u ? width - 1u : 0u, raw = reader.get(rest + 1u);
        const uint32_t magnitude = (width > 0u ? 1u << (width - 1u) : 0u) + (raw >> 1) + 1u;
        if (magnitude >= TSR_COEFFICIENT_LIMIT) return false;
        set(place++, magnitude, (raw & 1u) != 0);
    }
    return true;
}

template <typename Coefficient>
__global__ void __launch_bounds__(THREADS)
    k_decode_run_level(const struct tsr_cuda_decode_batch b, const tsr_decode_coefficients w)
{
    enum { ENOUGH = 1 << (TSR_NEIGHBOUR_CLASSES - 2) }; /* from here on, energies give the same class */
    __shared__ tsr_word_ring<THREADS> ring;
    __shared__ tsr_raster_blocks<THREADS, Coefficient> block;
    __shared__ uint32_t energies[ROW_BLOCKS][THREADS]; /* of the last block of each column: dc, and ac << 16 */
    if (is_idle(w, TSR_SLICES_RUN_LEVEL)) return;
    const unsigned thread = threadIdx.x;
    decode_slices<Coefficient>(b, w, TSR_SLICES_RUN_LEVEL, [&](const slice_work &work, uint32_t *seen) {
        const tsr_slice_tables &of_plane = w.plane[work.plane];
        const uint8_t *tables = w.tables + (size_t)of_plane.first * TSR_SLICE_TABLE_UNIT;
        const auto table_at = [&](uint32_t number) {
            return reinterpret_cast<const tsr_huffman_decoder *>(tables +
                                                                 number * tsr_slice_table_bytes(TSR_SLICES_RUN_LEVEL));
        };
        word_reader reader(ring);
        reader.begin(work.bytes, work.size);
        for (uint32_t r = 0; r < work.rows; r++) {
            uint32_t left = 0;
            for (uint32_t c = 0; c < work.columns; c++) {
                reader.prepare();
                const uint32_t up = r > 0 ? energies[c][thread] : 0u;
                const int dc_class = tsr_neighbour_class(left & 0xffffu, c > 0, up & 0xffffu, r > 0);
                const int ac_class = tsr_neighbour_class(left >> 16, c > 0, up >> 16, r > 0);
                uint32_t by_place_class = 0; /* numbers of tables, a byte each */
#pragma unroll
                for (int place_class = 0; place_class < TSR_PLACE_CLASSES; place_class++)
                    by_place_class |= (uint32_t)of_plane.of_cell[TSR_DC_CELLS + tsr_ac_cell(place_class, ac_class)]
                                      << (8 * place_class);
                const int token = (int)read_symbol(reader, table_at(of_plane.of_cell[dc_class]));
                const int32_t dc = tsr_unfold(tsr_token_value(token, reader.get((uint32_t)tsr_token_raw_bits(token))));
                const uint32_t dc_magnitude = (uint32_t)tsr_abs(dc);
                uint32_t ac_energy = 0;
                if (dc_magnitude >= TSR_COEFFICIENT_LIMIT) return false;
                block.clear(thread);
                block.set(thread, 0, dc);
                *seen |= dc_magnitude;
                const auto set = [&](int place, uint32_t magnitude, bool negative) {
                    *seen |= magnitude;
                    ac_energy += magnitude;
                    block.set(thread, place, negative ? -(int32_t)magnitude : (int32_t)magnitude);
                };
                if (!read_places(reader, by_place_class, table_at, set) || reader.overrun()) return false;
                const size_t at = work.first + (size_t)r * work.pitch + c;
                block.store(thread, coefficients_at<Coefficient>(w, at));
                w.dcs[at] = dc;
                left = min(dc_magnitude, (uint32_t)ENOUGH) | min(ac_energy, (uint32_t)ENOUGH) << 16;
                energies[c][thread] = left;
            }
        }
        return reader.ended();
    });
}

/* ---- Pairs ------------------------------------------------------------------------------------------------ */

/* A symbol of this cell; TSR_NO_CODE where the group has no tables. */
__device__ __forceinline__ uint32_t read_pair_symbol(word_reader &r, const tsr_decode_coefficients &w,
                                                     const tsr_slice_tables &of_plane, int group, int energy_class)
{
    const tsr_huffman_decoder *table =
        cell_table<TSR_SLICES_PAIRS, tsr_huffman_decoder>(w, of_plane, tsr_pair_cell(group, energy_class));
    return table ? read_symbol(r, table) : (uint32_t)TSR_NO_CODE;
}

/* The length of a run of zero blocks; UINT32_MAX where the bits are invalid. */
__device__ __forceinline__ uint32_t read_zero_run(word_reader &r, const tsr_decode_coefficients &w,
                                                  const tsr_slice_tables &of_plane)
{
    const uint32_t symbol = read_pair_symbol(r, w, of_plane, TSR_PAIR_RUN, 0);
    if (symbol < 4u) return symbol;
    if (symbol >= 4u + 2u * 12u) return UINT32_MAX;
    const uint32_t raw_bits = (uint32_t)tsr_zero_run_raw_bits((int)symbol);
    return (2u + (symbol & 1u)) << raw_bits | r.get(raw_bits);
}

__device__ __forceinline__ uint32_t read_pair_value(word_reader &r, uint32_t digit, uint32_t low_bits)
{
    if (digit == TSR_PAIR_DIGITS - 1u) digit += r.get(r.get(5));
    return digit << low_bits | r.get(low_bits);
}

/* Reads a block as tsr_pair_get does; false where the bits are no block. */
template <typename Coefficient>
__device__ __forceinline__ bool read_pairs(word_reader &r, const tsr_decode_coefficients &w,
                                           const tsr_slice_tables &of_plane, int energy_class, int shift,
                                           tsr_raster_blocks<THREADS, Coefficient> &block, block_energies &energy,
                                           int32_t *dc, uint32_t *seen)
{
    const unsigned thread = threadIdx.x;
    const int places = (int)read_pair_symbol(r, w, of_plane, TSR_PAIR_PLACES, energy_class);
    int group = TSR_PAIR_HIGHEST;
    uint32_t less = 1;
    *dc = 0;
    block.clear(thread);
    if (places > TSR_BLOCK_SAMPLES) return false;
    const auto take = [&](int place, uint32_t magnitude) {
        const bool is_negative = magnitude != 0 && r.get(1) != 0;
        *seen |= magnitude;
        const int32_t value = is_negative ? -(int32_t)magnitude : (int32_t)magnitude;
        block.set(thread, place, value);
        if (place == 0) *dc = value;
    };
    for (int p = places - 1; p > 0; p -= 2) {
        const uint32_t expected = ((uint32_t)energy[p][thread] + energy[p - 1][thread]) >> 1;
        const uint32_t low_bits = (uint32_t)tsr_pair_raw_bits(expected, shift);
        if (p == 1) {
            group = TSR_PAIR_DC;
            less = 0;
        }
        const uint32_t symbol = read_pair_symbol(r, w, of_plane, group, tsr_energy_class(expected));
        if (symbol >= TSR_PAIR_SYMBOLS) return false;
        const uint32_t first = symbol / TSR_PAIR_DIGITS, second = symbol - first * TSR_PAIR_DIGITS;
        const uint32_t a = read_pair_value(r, first, low_bits) + less;
        if (a >= TSR_COEFFICIENT_LIMIT) return false;
        take(p, a);
        const uint32_t b = read_pair_value(r, second, low_bits);
        if (b >= TSR_COEFFICIENT_LIMIT) return false;
        take(p - 1, b);
        add_energy(energy, p, tsr_seen_magnitude(a, shift));
        add_energy(energy, p - 1, tsr_seen_magnitude(b, shift));
        group = TSR_PAIR_OTHERS;
        less = 0;
    }
    if (places & 1) {
        group = places == 1 ? TSR_PAIR_DC_ALONE : TSR_PAIR_LONE;
        const int symbol = (int)read_pair_symbol(r, w, of_plane, group, tsr_energy_class(energy[0][thread]));
        if (symbol >= TSR_TOKENS_24_BITS) return false;
        const uint32_t magnitude =
            tsr_token_value(symbol, r.get((uint32_t)tsr_token_raw_bits(symbol))) + (places == 1 ? 1u : 0u);
        if (magnitude >= TSR_COEFFICIENT_LIMIT) return false;
        take(0, magnitude);
    }
    return !r.overrun();
}

template <typename Coefficient>
__global__ void __launch_bounds__(THREADS)
    k_decode_pairs(const struct tsr_cuda_decode_batch b, const tsr_decode_coefficients w)
{
    __shared__ tsr_word_ring<THREADS> ring;
    __shared__ tsr_raster_blocks<THREADS, Coefficient> block;
    __shared__ block_energies energy;
    if (is_idle(w, TSR_SLICES_PAIRS)) return;
    const unsigned thread = threadIdx.x;
    decode_slices<Coefficient>(b, w, TSR_SLICES_PAIRS, [&](const slice_work &work, uint32_t *seen) {
        const tsr_slice_tables &of_plane = w.plane[work.plane];
        const int shift = tsr_slice_pairs(b, work.plane).magnitude_shift;
        word_reader reader(ring);
        reader.begin(work.bytes, work.size);
        bool in_run = false;
        uint32_t run = 0;
        for (uint32_t r = 0; r < work.rows; r++) {
            uint32_t left[TSR_PLACE_WORDS] = {0};
            for (uint32_t c = 0; c < work.columns; c++) {
                const size_t at = work.first + (size_t)r * work.pitch + c;
                int energy_class = 0;
                if (run == 0) {
                    reader.prepare();
                    const int own = energies_around<Coefficient>(w, work, r, c, shift, left, energy);
                    energy_class = in_run ? 0 : own;
                    if (energy_class == 0 && !in_run) {
                        run = read_zero_run(reader, w, of_plane);
                        if (run > (work.rows - r) * work.columns - c) return false;
                        in_run = true;
                    }
                }
                if (run > 0) {
                    run--;
                    block.store_zeros(coefficients_at<Coefficient>(w, at));
                    w.dcs[at] = 0;
#pragma unroll
                    for (int k = 0; k < TSR_PLACE_WORDS; k++) left[k] = 0;
                    continue;
                }
                in_run = false;
                int32_t dc;
                if (!read_pairs(reader, w, of_plane, energy_class, shift, block, energy, &dc, seen)) return false;
                block.store(thread, coefficients_at<Coefficient>(w, at));
                w.dcs[at] = dc;
                see_stored(static_cast<const Coefficient *>(w.coefficients) + at * TSR_BLOCK_SAMPLES, shift, left);
            }
        }
        return reader.ended();
    });
}

/* ---- rANS ------------------------------------------------------------------------------------------------- */

/* struct tsr_rans_reader (entropy/rans.h), which takes its words from a reader of words. */
struct rans_reader {
    word_reader words;
    uint32_t state;

    __device__ __forceinline__ explicit rans_reader(tsr_word_ring<THREADS> &ring) : words(ring)
    {
    }
    __device__ __forceinline__ void begin(const uint8_t *bytes, uint32_t size)
    {
        const uint32_t first = size < 4u ? size : 4u - (size & 1u); /* bytes of the state */
        words.begin(bytes, size);
        state = size == 0 ? 1u : 0u;
        for (uint32_t i = 0; i < first; i++) state |= words.get(8) << 8u * i;
    }
    __device__ __forceinline__ void refill()
    {
        if (!tsr_rans_wants_word(state) || words.unread() == 0) return;
        const uint32_t swapped = words.get(16);
        state = tsr_rans_with_word(state, swapped >> 8 | (swapped & 255u) << 8);
    }
    __device__ __forceinline__ int symbol(const tsr_slice_rans_table *table)
    {
        const uint32_t slot = state & (TSR_RANS_TOTAL - 1u);
        uint32_t s = table->first[slot >> tsr_slice_rans_table::BUCKET_BITS], place = table->place[s];
        while (place >> 16 <= slot) place = table->place[++s];
        const uint32_t start = place & 0xffffu;
        state = ((place >> 16) - start) * (state >> TSR_RANS_BITS) + slot - start;
        refill();
        return (int)s;
    }
    __device__ __forceinline__ uint32_t raw(int bits)
    {
        const uint32_t value = tsr_rans_get_raw(&state, bits);
        refill();
        return value;
    }
    __device__ __forceinline__ bool ended() const
    {
        return words.unread() == 0 && state == 1u;
    }
};

/* Reads a block as tsr_coefficient_get does; false where the string holds none. */
template <typename Coefficient>
__device__ __forceinline__ bool
read_coefficients(rans_reader &r, const tsr_decode_coefficients &w, const tsr_slice_tables &of_plane, int energy_class,
                  int shift, tsr_raster_blocks<THREADS, Coefficient> &block, block_energies &energy,
                  int32_t (&coefficients)[TSR_BLOCK_SAMPLES][THREADS], int32_t *dc, uint32_t *seen)
{
    const unsigned thread = threadIdx.x;
    *dc = 0;
    block.clear(thread);
    const tsr_slice_rans_table *table = cell_table<TSR_SLICES_RANS, tsr_slice_rans_table>(
        w, of_plane, tsr_coefficient_cell(TSR_COEFFICIENT_PLACES, energy_class));
    if (!table) return false;
    const int places = r.symbol(table);
    if (places > TSR_BLOCK_SAMPLES) return false;
    int group = places == 1 ? TSR_COEFFICIENT_DC_ALONE : TSR_COEFFICIENT_HIGHEST, sign_bits = 0;
    uint32_t less = 1;
    for (int p = places - 1; p >= 0; p--) {
        if (p == 0 && places > 1) group = TSR_COEFFICIENT_DC;
        table = cell_table<TSR_SLICES_RANS, tsr_slice_rans_table>(
            w, of_plane, tsr_coefficient_cell(group, tsr_energy_class(energy[p][thread])));
        if (!table) return false;
        const int symbol = r.symbol(table);
        uint32_t magnitude = (uint32_t)symbol;
        if (symbol >= 16) {
            const int raw_bits = tsr_token_raw_bits(symbol);
            uint32_t raw = raw_bits > 16 ? r.raw(raw_bits - 16) << 16 : 0;
            raw |= r.raw(tsr_min(raw_bits, 16));
            magnitude = tsr_token_value(symbol, raw);
        }
        magnitude += less;
        group = TSR_COEFFICIENT_OTHERS;
        less = 0;
        if (magnitude >= TSR_COEFFICIENT_LIMIT) return false;
        *seen |= magnitude;
        coefficients[p][thread] = (int32_t)magnitude;
        sign_bits += magnitude != 0;
        add_energy(energy, p, tsr_seen_magnitude(magnitude, shift));
    }
    if (places == 0) return true;
    const uint32_t signs = r.raw(sign_bits);
    for (int p = places - 1; p >= 0; p--) {
        int32_t value = coefficients[p][thread];
        if (value == 0) continue;
        if (signs >> --sign_bits & 1u) value = -value;
        block.set(thread, p, value);
        if (p == 0) *dc = value;
    }
    return true;
}

template <typename Coefficient>
__global__ void __launch_bounds__(THREADS)
    k_decode_rans(const struct tsr_cuda_decode_batch b, const tsr_decode_coefficients w)
{
    __shared__ tsr_word_ring<THREADS> ring;
    __shared__ tsr_raster_blocks<THREADS, Coefficient> block;
    __shared__ block_energies energy;
    __shared__ int32_t coefficients[TSR_BLOCK_SAMPLES][THREADS];
    if (is_idle(w, TSR_SLICES_RANS)) return;
    const unsigned thread = threadIdx.x;
    decode_slices<Coefficient>(b, w, TSR_SLICES_RANS, [&](const slice_work &work, uint32_t *seen) {
        const tsr_slice_tables &of_plane = w.plane[work.plane];
        const int shift = tsr_slice_coefficients(b, work.plane).magnitude_shift;
        rans_reader reader(ring);
        reader.begin(work.bytes, work.size);
        for (uint32_t r = 0; r < work.rows; r++) {
            uint32_t left[TSR_PLACE_WORDS] = {0};
            for (uint32_t c = 0; c < work.columns; c++) {
                const size_t at = work.first + (size_t)r * work.pitch + c;
                reader.words.prepare();
                const int energy_class = energies_around<Coefficient>(w, work, r, c, shift, left, energy);
                int32_t dc;
                if (!read_coefficients(reader, w, of_plane, energy_class, shift, block, energy, coefficients, &dc,
                                       seen))
                    return false;
                block.store(thread, coefficients_at<Coefficient>(w, at));
                w.dcs[at] = dc;
                see_stored(static_cast<const Coefficient *>(w.coefficients) + at * TSR_BLOCK_SAMPLES, shift, left);
            }
        }
        return reader.ended();
    });
}

/* Slices as encoders make them; kernels loop where a model names smaller ones. */
size_t usual_slices(const struct tsr_cuda_decode_batch &b, const tsr_decode_coefficients &w)
{
    const struct tsr_block_grid usual = tsr_full_tile_blocks(&b);
    return (size_t)w.pieces * (size_t)(usual.slice_columns * usual.slice_rows);
}

/* A power of two: as many threads as a GPU has room for, twice, of which some have a slice. 28 CT slices of 512 x 512
 * take 3.3 ms with 1, 1.1 to 1.6 with 8. */
cudaError_t choose_apart(size_t slices, uint32_t *apart)
{
    enum { MOST = 16, SCHEDULERS = 4, WARPS = 2 };
    unsigned processors;
    TSR_CUDA_TRY(tsr_device_processors(&processors));
    const size_t threads = (size_t)processors * SCHEDULERS * WARPS * TSR_WARP;
    for (*apart = 1; *apart < MOST && slices * *apart * 2 <= threads;) *apart *= 2;
    return cudaSuccess;
}

template <typename Coefficient>
int coefficients_of_slices(const struct tsr_cuda_decode_batch &b, const tsr_decode_coefficients &w, cudaStream_t stream)
{
    const unsigned blocks = (unsigned)((usual_slices(b, w) * w.apart + THREADS - 1) / THREADS);
    TSR_CUDA_TRY(tsr_launch(k_decode_cavlc<Coefficient>, blocks, THREADS, 0, stream, b, w));
    TSR_CUDA_TRY(tsr_launch(k_decode_run_level<Coefficient>, blocks, THREADS, 0, stream, b, w));
    TSR_CUDA_TRY(tsr_launch(k_decode_pairs<Coefficient>, blocks, THREADS, 0, stream, b, w));
    return tsr_launch(k_decode_rans<Coefficient>, blocks, THREADS, 0, stream, b, w);
}

} // namespace

size_t tsr_cuda_decode_transform_workspace(const struct tsr_cuda_decode_batch *batch)
{
    tsr_decode_coefficients coefficients;
    return lay_out(*batch, coefficients, NULL);
}

int tsr_cuda_decode_transform_tiles(const struct tsr_cuda_decode_batch *batch, cudaStream_t stream)
{
    if (!batch->has_transform) return cudaSuccess;
    tsr_decode_coefficients w;
    lay_out(*batch, w, batch->transform);
    TSR_CUDA_TRY(choose_apart(usual_slices(*batch, w), &w.apart));
    TSR_CUDA_TRY(tsr_cut_slices(*batch, w, stream));
    TSR_CUDA_TRY((cudaError_t)(w.narrow ? coefficients_of_slices<int16_t>(*batch, w, stream)
                                        : coefficients_of_slices<int32_t>(*batch, w, stream)));
    return tsr_cuda_inverse(batch, &w, stream);
}
