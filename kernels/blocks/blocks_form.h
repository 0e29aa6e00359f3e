/* Path T on the CPU: the text of both forms, which blocks_cpu.c compiles as plain C and blocks_avx2.c for AVX2, where
 * the same loops have twice the lanes. TSR_FORM is the form's name. FORMAT.md sections 8 to 10. */
#include "blocks_cpu.h"

#include "block_lines_cpu.h"

#include <string.h>

#include "transform/block/core4x4.h"
#include "transform/predict/median_edge.h"
#include "transform/predict/residual.h"
#include "transform/block/reversible4x4.h"

enum {
    MAX_SLICES = 1 << 14, /* of a tile: 2^20 samples in the thinnest shape, see FORMAT.md 5.2 */
    ENERGY_ROW = TSR_SLICE_BLOCKS_LIMIT,
    LINE_BLOCKS = 16 /* quantised blocks beside each other that are transformed at once */
};

/* ---- Samples to coefficients ---------------------------------------------------------------------------------- */

/* The block's samples; columns and rows beyond the tile repeat its last ones. */
static void load_block(const uint16_t *samples, struct tsr_tile tile, int32_t column, int32_t row, int32_t block[16])
{
    for (int i = 0; i < 4; i++) {
        const size_t line = tile.first + (size_t)tsr_min(4 * row + i, tile.height - 1) * tile.stride;
        for (int j = 0; j < 4; j++) block[4 * i + j] = samples[line + (size_t)tsr_min(4 * column + j, tile.width - 1)];
    }
}

/* Residuals of the median edge predictor; 0 beyond the tile. */
static void load_residuals(const uint16_t *samples, struct tsr_tile tile, int32_t range, int32_t column, int32_t row,
                           int32_t block[16])
{
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 4; j++) {
            const int32_t y = 4 * row + i, x = 4 * column + j;
            if (y >= tile.height || x >= tile.width) {
                block[4 * i + j] = 0;
                continue;
            }
            const uint16_t *at = samples + tile.first + (size_t)y * tile.stride + (size_t)x;
            const int32_t n = y > 0 ? at[-(ptrdiff_t)tile.stride] : 0;
            const int32_t w = x > 0 ? at[-1] : n;
            const int32_t nw = y > 0 && x > 0 ? at[-(ptrdiff_t)tile.stride - 1] : n;
            const int32_t prediction = y == 0 ? (x > 0 ? w : 0) : tsr_median_edge(w, n, nw);
            block[4 * i + j] = tsr_residual(*at, prediction, range);
        }
    }
}

static void quantise_block(int32_t block[16], int32_t q)
{
    tsr_core_forward(block);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            block[4 * i + j] =
                tsr_quantise(block[4 * i + j], q, tsr_norm_class(i, j), i + j == 0 ? TSR_ROUND_DC : TSR_ROUND_AC);
}

/* The q of a block. */
static int32_t block_q(struct tsr_block_coding coding, struct tsr_tile tile, int32_t column, int32_t row)
{
    const size_t first = tile.first + (size_t)(4 * row) * tile.stride + (size_t)(4 * column);
    return coding.qp_index + (first >= coding.coarser_from ? coding.coarser_by : 0);
}

/* How many whole blocks from this one on, at most LINE_BLOCKS, have one q and no column beyond the tile. */
static size_t equal_blocks(struct tsr_block_coding coding, struct tsr_tile tile, int32_t column, int32_t row)
{
    const int32_t whole = tile.width / 4 - column;
    if (coding.kind != TSR_BLOCKS_QUANTISED || whole <= 0) return 0;
    const int32_t count = tsr_min(whole, LINE_BLOCKS);
    return block_q(coding, tile, column, row) == block_q(coding, tile, column + count - 1, row) ? (size_t)count : 0;
}

/* Blocks as lines, see block_lines_cpu.h; places after those in use hold anything. */
struct lined_blocks {
    int32_t at[16][LINE_BLOCKS];
};

static inline void point_at_lines(struct lined_blocks *blocks, int32_t *line[16])
{
    for (int i = 0; i < 16; i++) line[i] = blocks->at[i];
}

/* quantise_block for count blocks; samples: their four lines; coefficients: in the order of the scan. */
static void quantise_lines(const uint16_t *const samples[4], size_t count, int32_t q, int32_t *coefficients)
{
    struct lined_blocks b = {{{0}}};
    int32_t *line[16];
    point_at_lines(&b, line);
    for (int i = 0; i < 4; i++) tsr_samples_to_lines(samples[i], count, 0, line + 4 * i);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < LINE_BLOCKS; k++) {
            int32_t v[4] = {b.at[4 * i][k], b.at[4 * i + 1][k], b.at[4 * i + 2][k], b.at[4 * i + 3][k]};
            tsr_core_forward_1d(v, 1);
            for (int j = 0; j < 4; j++) b.at[4 * i + j][k] = v[j];
        }
    for (int j = 0; j < 4; j++)
        for (int k = 0; k < LINE_BLOCKS; k++) {
            int32_t v[4] = {b.at[j][k], b.at[4 + j][k], b.at[8 + j][k], b.at[12 + j][k]};
            tsr_core_forward_1d(v, 1);
            for (int i = 0; i < 4; i++) b.at[4 * i + j][k] = v[i];
        }
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < LINE_BLOCKS; k++)
            b.at[i][k] =
                tsr_quantise(b.at[i][k], q, tsr_norm_class(i / 4, i % 4), i == 0 ? TSR_ROUND_DC : TSR_ROUND_AC);
    tsr_lines_to_blocks(line, count, coefficients);
}

static void blocks_forward(const uint16_t *samples, struct tsr_tile tile, struct tsr_block_coding coding,
                           int32_t *coefficients)
{
    const struct tsr_block_grid grid = tsr_block_grid(tile.width, tile.height, coding.slice_side);
    int32_t *out = coefficients;
    for (int32_t row = 0; row < grid.rows; row++) {
        for (int32_t column = 0; column < grid.columns; column++, out += TSR_BLOCK_SAMPLES) {
            int32_t block[16];
            const size_t equal = equal_blocks(coding, tile, column, row);
            if (equal > 0) {
                const uint16_t *line[4];
                for (int i = 0; i < 4; i++)
                    line[i] = samples + tile.first + (size_t)tsr_min(4 * row + i, tile.height - 1) * tile.stride +
                              4 * (size_t)column;
                quantise_lines(line, equal, block_q(coding, tile, column, row), out);
                column += (int32_t)equal - 1;
                out += (equal - 1) * TSR_BLOCK_SAMPLES;
                continue;
            }
            if (coding.kind == TSR_BLOCKS_RESIDUAL) {
                load_residuals(samples, tile, (int32_t)coding.range, column, row, block);
            } else {
                load_block(samples, tile, column, row, block);
                if (coding.kind == TSR_BLOCKS_REVERSIBLE)
                    tsr_reversible_forward(block);
                else
                    quantise_block(block, block_q(coding, tile, column, row));
            }
            for (int i = 0; i < TSR_BLOCK_SAMPLES; i++) out[i] = block[tsr_zigzag(i)];
        }
    }
    if (coding.kind == TSR_BLOCKS_RESIDUAL) return;
    tsr_difference_dcs(coefficients, grid);
}

/* ---- Coefficients to samples ---------------------------------------------------------------------------------- */

/* Samples of a block whose raster coefficients are known; false where they leave the plane's range without loss. */
static bool invert_block(int32_t block[16], struct tsr_block_coding coding, int32_t q)
{
    if (coding.kind == TSR_BLOCKS_REVERSIBLE) {
        for (int i = 0; i < 16; i++)
            if (tsr_abs(block[i]) >= TSR_REVERSIBLE_LIMIT) return false;
        tsr_reversible_inverse(block);
        return true;
    }
    int64_t scaled[16];
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) scaled[4 * i + j] = tsr_dequantise(block[4 * i + j], q, tsr_norm_class(i, j));
    tsr_core_inverse(scaled, block);
    for (int i = 0; i < 16; i++) block[i] = tsr_max(0, tsr_min((int32_t)coding.range - 1, block[i]));
    return true;
}

#if defined(TSR_EIGHT_BLOCKS)
#include "eight_avx2.h"
#include "kernels/slices/cavlc_read_avx2.h"

/* invert_lines for eight blocks. */
static inline bool invert_eight(const int32_t *coefficients, int32_t q, uint32_t range, uint16_t *const samples[4],
                                size_t at, int lines)
{
    const int octave = q / TSR_QP_OCTAVE;
    const int32_t step[3] = {tsr_quantiser_step(q, 0), tsr_quantiser_step(q, 1), tsr_quantiser_step(q, 2)};
    const uint32_t half = 1u << (TSR_INVERSE_SHIFT - 1);
    uint32_t dc, ac;
    __m256i v[8], line[TSR_BLOCK_SAMPLES];
    if (!load_eight(coefficients, v, &dc, &ac)) return false;
    if (((uint64_t)(dc + 35 * ac) * (uint32_t)step[0] + (half >> octave)) >> (31 - octave) != 0) return false;
    scale_eight(v, step, line);
    const __m128i shift = _mm_cvtsi32_si128(octave);
    for (int i = 0; i < TSR_BLOCK_SAMPLES; i++) line[i] = _mm256_sll_epi32(line[i], shift);
    line[0] = _mm256_add_epi32(line[0], _mm256_set1_epi32((int32_t)half)); /* every sample has it once */
    for (int j = 0; j < 4; j++) inverse_eight(line + j, 4);
    const __m256i top = _mm256_set1_epi16((short)(range - 1));
    for (int i = 0; i < lines; i++) {
        inverse_eight(line + 4 * i, 1);
        for (int j = 0; j < 4; j++) line[4 * i + j] = _mm256_srai_epi32(line[4 * i + j], TSR_INVERSE_SHIFT);
        store_eight(line + 4 * i, top, samples[i] + 4 * at);
    }
    return true;
}
#endif

/* The same for count quantised blocks, to this many lines of samples; false, and nothing done, where the sums could
 * leave 32 bits. Each sum is the DC's coefficient and at most 35 times the largest other one, in steps. */
static bool invert_lines(const int32_t *coefficients, size_t count, int32_t q, uint32_t range,
                         uint16_t *const samples[4], int lines)
{
#if defined(TSR_EIGHT_BLOCKS)
    size_t done = count < EIGHT_BLOCKS ? count : 0;
    while (done < count) { /* some of the last eight may be done already */
        done = done + EIGHT_BLOCKS <= count ? done : count - EIGHT_BLOCKS;
        if (!invert_eight(coefficients + done * TSR_BLOCK_SAMPLES, q, range, samples, done, lines)) break;
        done += EIGHT_BLOCKS;
    }
    if (done == count && count >= EIGHT_BLOCKS) return true;
#endif
    struct lined_blocks b = {{{0}}};
    int32_t *line[16];
    uint32_t dc = 0, ac = 0; /* at least the largest magnitudes */
    point_at_lines(&b, line);
    tsr_blocks_to_lines(coefficients, count, line);
    for (int i = 0; i < 16; i++) {
        uint32_t any = 0;
        for (int k = 0; k < LINE_BLOCKS; k++) any |= (uint32_t)tsr_abs(b.at[i][k]);
        *(i == 0 ? &dc : &ac) |= any;
    }
    const int octave = q / TSR_QP_OCTAVE;
    const int64_t half = (int64_t)1 << (TSR_INVERSE_SHIFT - 1), most = (int64_t)dc + 35 * (int64_t)ac;
    if ((most * tsr_quantiser_step(q, 0) + (half >> octave)) >> (31 - octave) != 0) return false;
    for (int i = 0; i < 16; i++) {
        const int32_t step = tsr_quantiser_step(q, tsr_norm_class(i / 4, i % 4)) << octave;
        for (int k = 0; k < LINE_BLOCKS; k++) b.at[i][k] *= step;
    }
    for (int j = 0; j < 4; j++)
        for (int k = 0; k < LINE_BLOCKS; k++) {
            int32_t v[4] = {b.at[j][k], b.at[4 + j][k], b.at[8 + j][k], b.at[12 + j][k]};
            tsr_core_inverse_32_1d(v);
            for (int i = 0; i < 4; i++) b.at[4 * i + j][k] = v[i];
        }
    for (int i = 0; i < lines; i++) {
        for (int k = 0; k < LINE_BLOCKS; k++) {
            int32_t v[4] = {b.at[4 * i][k], b.at[4 * i + 1][k], b.at[4 * i + 2][k], b.at[4 * i + 3][k]};
            tsr_core_inverse_32_1d(v);
            for (int j = 0; j < 4; j++) {
                const int32_t sample = tsr_asr(v[j] + (int32_t)half, TSR_INVERSE_SHIFT);
                b.at[4 * i + j][k] = tsr_max(0, tsr_min((int32_t)range - 1, sample));
            }
        }
        tsr_lines_to_samples(line + 4 * i, count, samples[i]);
    }
    return true;
}

static bool invert_residuals(const int32_t *coefficients, struct tsr_block_coding coding, uint16_t *samples,
                             struct tsr_tile tile)
{
    const struct tsr_block_grid grid = tsr_block_grid(tile.width, tile.height, coding.slice_side);
    const int32_t range = (int32_t)coding.range;
    for (int32_t y = 0; y < tile.height; y++) {
        for (int32_t x = 0; x < tile.width; x++) {
            const int32_t *block =
                coefficients + ((size_t)(y / 4) * (size_t)grid.columns + (size_t)(x / 4)) * TSR_BLOCK_SAMPLES;
            uint16_t *at = samples + tile.first + (size_t)y * tile.stride + (size_t)x;
            const int32_t n = y > 0 ? at[-(ptrdiff_t)tile.stride] : 0;
            const int32_t w = x > 0 ? at[-1] : n;
            const int32_t nw = y > 0 && x > 0 ? at[-(ptrdiff_t)tile.stride - 1] : n;
            const int32_t prediction = y == 0 ? (x > 0 ? w : 0) : tsr_median_edge(w, n, nw);
            const int32_t residual = block[tsr_zigzag_place(4 * (y % 4) + x % 4)];
            const int32_t sample = tsr_residual_inverse(residual, prediction, range);
            if (sample < 0 || sample >= range) return false;
            *at = (uint16_t)sample;
        }
    }
    return true;
}

static bool blocks_inverse(int32_t *coefficients, struct tsr_block_coding coding, uint16_t *samples,
                           struct tsr_tile tile)
{
    if (coding.kind == TSR_BLOCKS_RESIDUAL) return invert_residuals(coefficients, coding, samples, tile);
    const struct tsr_block_grid grid = tsr_block_grid(tile.width, tile.height, coding.slice_side);
    const int32_t *in = coefficients;
    for (int32_t row = 0; row < grid.rows; row++) {
        if (!tsr_restore_dc_row(coefficients, grid, row)) return false;
        for (int32_t column = 0; column < grid.columns; column++, in += TSR_BLOCK_SAMPLES) {
            int32_t block[16];
            const size_t equal = column % LINE_BLOCKS == 0 ? equal_blocks(coding, tile, column, row) : 0;
            if (equal > 0) {
                uint16_t *line[4];
                const int32_t lines = tsr_min(4, tile.height - 4 * row);
                for (int32_t i = 0; i < lines; i++)
                    line[i] = samples + tile.first + (size_t)(4 * row + i) * tile.stride + 4 * (size_t)column;
                if (invert_lines(in, equal, block_q(coding, tile, column, row), coding.range, line, lines)) {
                    column += (int32_t)equal - 1;
                    in += (equal - 1) * TSR_BLOCK_SAMPLES;
                    continue;
                }
            }
            for (int i = 0; i < TSR_BLOCK_SAMPLES; i++) block[tsr_zigzag(i)] = in[i];
            if (!invert_block(block, coding, block_q(coding, tile, column, row))) return false;
            for (int i = 0; i < 4 && 4 * row + i < tile.height; i++) {
                uint16_t *line = samples + tile.first + (size_t)(4 * row + i) * tile.stride + 4 * (size_t)column;
                for (int j = 0; j < 4 && 4 * column + j < tile.width; j++) {
                    if ((uint32_t)block[4 * i + j] >= coding.range) return false;
                    line[j] = (uint16_t)block[4 * i + j];
                }
            }
        }
    }
    return true;
}

/* ---- Slices --------------------------------------------------------------------------------------------- */

/* What the blocks of a slice know of the blocks before them: the last row of counts and energies. */
struct slice_state {
    int8_t total[ENERGY_ROW]; /* total coefficients, -1 above the first row */
    struct tsr_block_energy energy[ENERGY_ROW];
};

static const int32_t *block_at(const int32_t *coefficients, struct tsr_block_grid grid, int32_t column, int32_t row)
{
    return coefficients + ((size_t)row * (size_t)grid.columns + (size_t)column) * TSR_BLOCK_SAMPLES;
}

/* Neighbour classes of the block in column c, row r of its slice. */
static void classes_at(const struct slice_state *state, int32_t c, int32_t r, int *dc_class, int *ac_class)
{
    const struct tsr_block_energy none = {0, 0};
    const struct tsr_block_energy left = c > 0 ? state->energy[c - 1] : none, up = r > 0 ? state->energy[c] : none;
    *dc_class = tsr_neighbour_class(left.dc, c > 0, up.dc, r > 0);
    *ac_class = tsr_neighbour_class(left.ac, c > 0, up.ac, r > 0);
}

static void count_blocks(const int32_t *coefficients, struct tsr_tile tile, int32_t slice_side,
                         struct tsr_block_counts *counts)
{
    const struct tsr_block_grid grid = tsr_block_grid(tile.width, tile.height, slice_side);
    for (int32_t s = 0; s < grid.slice_columns * grid.slice_rows; s++) {
        const struct tsr_slice slice = tsr_slice_at(grid, s);
        struct slice_state state;
        for (int32_t r = 0; r < slice.rows; r++) {
            for (int32_t c = 0; c < slice.columns; c++) {
                struct tsr_block_symbol symbols[TSR_BLOCK_SYMBOLS_LIMIT];
                const int32_t *block = block_at(coefficients, grid, slice.column + c, slice.row + r);
                int dc_class, ac_class;
                classes_at(&state, c, r, &dc_class, &ac_class);
                const int count = tsr_block_symbols(block, symbols);
                counts->dc[dc_class][symbols[0].symbol]++;
                for (int i = 1; i < count; i++)
                    counts->ac[tsr_ac_cell(symbols[i].place_class, ac_class)][symbols[i].symbol]++;
                state.energy[c] = tsr_block_energy(block);
            }
        }
    }
}

/* One slice's bit string; returns its bytes. */
static size_t code_slice(const int32_t *coefficients, struct tsr_block_grid grid, struct tsr_slice slice,
                         const struct tsr_run_level_codes *codes, const struct tsr_run_level_model *model,
                         uint8_t *bytes, size_t capacity, bool *overflow)
{
    struct tsr_bit_writer writer = tsr_bit_writer(bytes, capacity);
    struct slice_state state;
    memset(state.total, -1, sizeof state.total);
    for (int32_t r = 0; r < slice.rows; r++) {
        for (int32_t c = 0; c < slice.columns; c++) {
            const int32_t *block = block_at(coefficients, grid, slice.column + c, slice.row + r);
            if (codes) {
                int dc_class, ac_class;
                classes_at(&state, c, r, &dc_class, &ac_class);
                tsr_run_level_put(&writer, block, codes, model, dc_class, ac_class);
                state.energy[c] = tsr_block_energy(block);
            } else {
                const int context = tsr_cavlc_context(c > 0 ? state.total[c - 1] : -1, state.total[c]);
                state.total[c] = (int8_t)tsr_cavlc_put(&writer, block, TSR_BLOCK_SAMPLES, context);
            }
        }
    }
    const size_t size = tsr_flush_bits(&writer);
    *overflow |= writer.overflow;
    return size;
}

static size_t code_slices(const int32_t *coefficients, struct tsr_tile tile, int32_t slice_side,
                          const struct tsr_run_level_codes *codes, const struct tsr_run_level_model *model,
                          uint8_t *payload, size_t capacity)
{
    uint32_t lengths[MAX_SLICES];
    const struct tsr_block_grid grid = tsr_block_grid(tile.width, tile.height, slice_side);
    const int32_t count = grid.slice_columns * grid.slice_rows;
    assert(count <= MAX_SLICES);
    bool overflow = false;
    size_t size = 0;
    for (int32_t s = 0; s < count; s++) {
        const size_t length = code_slice(coefficients, grid, tsr_slice_at(grid, s), codes, model, payload + size,
                                         capacity - size, &overflow);
        lengths[s] = (uint32_t)length;
        size += length;
    }
    return overflow ? 0 : tsr_put_lengths_in_front(lengths, count, payload, size, capacity);
}

static bool decode_run_level_slice(const uint8_t *bytes, size_t size, struct tsr_block_grid grid,
                                   struct tsr_slice slice, const struct tsr_run_level_decoder *decoder,
                                   const struct tsr_run_level_model *model, int32_t *coefficients)
{
    struct tsr_bit_reader reader = tsr_bit_reader(bytes, size);
    struct slice_state state;
    for (int32_t r = 0; r < slice.rows; r++) {
        for (int32_t c = 0; c < slice.columns; c++) {
            int32_t *block =
                coefficients + (block_at(coefficients, grid, slice.column + c, slice.row + r) - coefficients);
            int dc_class, ac_class;
            classes_at(&state, c, r, &dc_class, &ac_class);
            if (!tsr_run_level_get(&reader, block, decoder, model, dc_class, ac_class)) return false;
            state.energy[c] = tsr_block_energy(block);
            for (int i = 0; i < TSR_BLOCK_SAMPLES; i++)
                if (tsr_abs(block[i]) >= TSR_COEFFICIENT_LIMIT) return false;
        }
    }
    return tsr_bits_ended(&reader);
}

/* A function of its own: as part of its caller it is 3 % slower. */
static __attribute__((noinline)) bool decode_cavlc_slice(const uint8_t *bytes, size_t size, struct tsr_block_grid grid,
                                                         struct tsr_slice slice, const struct tsr_cavlc_reader *cavlc,
                                                         int32_t *coefficients)
{
    struct tsr_bit_reader reader = tsr_bit_reader(bytes, size);
    int8_t above[ENERGY_ROW]; /* total coefficients, -1 above the first row */
    memset(above, -1, sizeof above);
    for (int32_t r = 0; r < slice.rows; r++) {
        int32_t *block = coefficients + (block_at(coefficients, grid, slice.column, slice.row + r) - coefficients);
        int total = -1;
        for (int32_t c = 0; c < slice.columns; c++, block += TSR_BLOCK_SAMPLES) {
            const int context = tsr_cavlc_context(total, above[c]);
#if defined(TSR_EIGHT_BLOCKS)
            total = cavlc_get_block(&reader, cavlc, block, context);
#else
            total = tsr_cavlc_get(&reader, cavlc, block, TSR_BLOCK_SAMPLES, context);
#endif
            if (total < 0) return false;
            above[c] = (int8_t)total;
        }
    }
    return tsr_bits_ended(&reader);
}

static bool decode_slices(const uint8_t *payload, size_t size, struct tsr_tile tile, int32_t slice_side,
                          const struct tsr_run_level_decoder *decoder, const struct tsr_run_level_model *model,
                          const struct tsr_cavlc_reader *cavlc, int32_t *coefficients)
{
    uint32_t lengths[MAX_SLICES];
    const struct tsr_block_grid grid = tsr_block_grid(tile.width, tile.height, slice_side);
    const int32_t count = grid.slice_columns * grid.slice_rows;
    if (count > MAX_SLICES) return false;
    size_t at = tsr_get_lengths_in_front(payload, size, lengths, count);
    if (at == 0) return false;
    for (int32_t s = 0; s < count; s++) {
        if (lengths[s] > size - at) return false;
        const struct tsr_slice slice = tsr_slice_at(grid, s);
        const bool good =
            decoder ? decode_run_level_slice(payload + at, lengths[s], grid, slice, decoder, model, coefficients)
                    : decode_cavlc_slice(payload + at, lengths[s], grid, slice, cavlc, coefficients);
        if (!good) return false;
        at += lengths[s];
    }
    return at == size;
}

const struct tsr_block_form TSR_FORM = {blocks_forward, blocks_inverse, count_blocks, code_slices, decode_slices};
