/* kernels/blocks/blocks_cpu.h: blocks of a tile, their slices, both coders. FORMAT.md 8 to 10, 7.8. */
#include "tests/unit/support.h"

#include "kernels/blocks/blocks_cpu.h"
#include "kernels/slices/cavlc_tables_avx2.h"
#include "kernels/tables/merge_cells_cpu.h"
#include "transform/block/core4x4.h"
#include "transform/predict/residual.h"
#include "transform/block/reversible4x4.h"

enum {
    MOST = 150,
    STRIDE = MOST + 5,
    SAMPLES = STRIDE * (MOST + 1),
    COEFFICIENTS = (MOST + 3) * (MOST + 3),
    GUARD = 0xa5a5
};

static uint16_t samples[SAMPLES], back[SAMPLES];
static int32_t coefficients[COEFFICIENTS], coefficients_back[COEFFICIENTS];
static uint8_t payload[8 * COEFFICIENTS];

static struct tsr_tile random_tile(struct rng *r)
{
    struct tsr_tile tile;
    tile.width = rng_below(r, 4) ? rng_between(r, 1, MOST) : rng_between(r, 1, 9);
    tile.height = rng_below(r, 4) ? rng_between(r, 1, MOST) : rng_between(r, 1, 9);
    tile.stride = (size_t)rng_between(r, tile.width, STRIDE);
    tile.first = rng_below(r, 4);
    return tile;
}

static size_t place(struct tsr_tile tile, int32_t row, int32_t column)
{
    return tile.first + (size_t)row * tile.stride + (size_t)column;
}

/* The kinds of samples: noise, smooth with noise, extremes, all equal. */
enum { CONTENTS = 4 };

static void fill(struct rng *r, struct tsr_tile tile, uint32_t range, int content)
{
    const uint32_t base = rng_below(r, range);
    memset(samples, 0, sizeof samples);
    for (int32_t y = 0; y < tile.height; y++)
        for (int32_t x = 0; x < tile.width; x++) {
            const uint32_t ramp = base + (uint32_t)(x + y) + rng_below(r, 1 + range / 50);
            samples[place(tile, y, x)] = (uint16_t)(content == 0   ? rng_below(r, range)
                                                    : content == 1 ? ramp % range
                                                    : content == 2 ? rng_below(r, 2) * (range - 1)
                                                                   : base);
        }
}

static struct tsr_block_coding random_coding(struct rng *r, enum tsr_block_kind kind, uint32_t range)
{
    const int32_t q = rng_between(r, 0, TSR_QP_INDEX_LIMIT);
    const struct tsr_block_coding coding = {kind,
                                            q,
                                            rng_between(r, 0, TSR_QP_INDEX_LIMIT - q),
                                            rng_below(r, SAMPLES),
                                            range,
                                            rng_between(r, TSR_SLICE_BLOCKS_LEAST, TSR_SLICE_BLOCKS_LIMIT)};
    return coding;
}

/* The coefficients of the block at row, column (in blocks), from the samples alone. The DC is not yet a residual. */
static void block_plainly(struct tsr_tile tile, struct tsr_block_coding coding, int32_t row, int32_t column,
                          int32_t out[16])
{
    int32_t block[16];
    for (int i = 0; i < 16; i++) {
        const int32_t y = 4 * row + i / 4, x = 4 * column + i % 4;
        const int32_t in_y = tsr_min(y, tile.height - 1), in_x = tsr_min(x, tile.width - 1);
        block[i] = samples[place(tile, in_y, in_x)];
        if (coding.kind != TSR_BLOCKS_RESIDUAL) continue;
        const int32_t n = y > 0 ? samples[place(tile, in_y - (in_y > 0), in_x)] : 0;
        const int32_t w = x > 0 ? samples[place(tile, in_y, in_x - (in_x > 0))] : n;
        const int32_t nw = x > 0 && y > 0 ? samples[place(tile, in_y - (in_y > 0), in_x - (in_x > 0))] : x > 0 ? 0 : n;
        const int32_t nw_virtual = x == 0 ? (y > 1 ? samples[place(tile, in_y - (in_y > 1 ? 2 : 0), 0)] : 0) : nw;
        block[i] = y >= tile.height || x >= tile.width
                       ? 0
                       : tsr_residual(block[i], tsr_median_edge(w, n, nw_virtual), (int32_t)coding.range);
    }
    if (coding.kind == TSR_BLOCKS_REVERSIBLE) tsr_reversible_forward(block);
    if (coding.kind == TSR_BLOCKS_QUANTISED) {
        const int32_t coarser = place(tile, 4 * row, 4 * column) >= coding.coarser_from ? coding.coarser_by : 0;
        tsr_core_forward(block);
        for (int i = 0; i < 16; i++)
            block[i] = tsr_quantise(block[i], coding.qp_index + coarser, tsr_norm_class(i / 4, i % 4),
                                    i == 0 ? TSR_ROUND_DC : TSR_ROUND_AC);
    }
    for (int i = 0; i < 16; i++) out[i] = block[tsr_zigzag(i)];
}

static const enum tsr_block_kind kinds[] = {TSR_BLOCKS_RESIDUAL, TSR_BLOCKS_REVERSIBLE, TSR_BLOCKS_QUANTISED};

TEST(blocks)
{
    static const uint32_t ranges[] = {2, 255, 4096, 65535, 65536};
    struct rng r = {56};
    for (int n = 0; n < 240; n++) {
        const struct tsr_tile tile = random_tile(&r);
        const enum tsr_block_kind kind = kinds[n % 3];
        const uint32_t range = ranges[rng_below(&r, COUNT_OF(ranges))];
        struct tsr_block_coding coding = random_coding(&r, kind, range);
        const int32_t columns = (tile.width + 3) / 4, rows = (tile.height + 3) / 4;
        if (n % 2) /* from a block of this tile to the end */
            coding.coarser_from =
                (uint32_t)place(tile, 4 * rng_between(&r, 0, rows - 1), 4 * rng_between(&r, 0, columns - 1));
        fill(&r, tile, range, n % CONTENTS);
        assert_int_equal(tsr_tile_coefficients(tile.width, tile.height), 16 * columns * rows);
        tsr_blocks_forward(samples, tile, coding, coefficients);

        int32_t *dcs = must(calloc((size_t)(columns * rows), sizeof *dcs));
        for (int32_t b = 0; b < columns * rows; b++) {
            int32_t block[16];
            const int32_t row = b / columns, column = b % columns;
            block_plainly(tile, coding, row, column, block);
            dcs[b] = block[0];
            if (kind != TSR_BLOCKS_RESIDUAL)
                block[0] -= tsr_predict_dc(&dcs[b], 1, (size_t)columns, column == 0, row == 0);
            assert_memory_equal(block, coefficients + 16 * b, sizeof block);
        }
        free(dcs);

        for (size_t i = 0; i < SAMPLES; i++) back[i] = GUARD;
        assert_true(tsr_blocks_inverse(coefficients, coding, back, tile));
        for (int32_t y = 0; y < tile.height; y++)
            for (int32_t x = 0; x < tile.width; x++) {
                const uint16_t a = samples[place(tile, y, x)], b = back[place(tile, y, x)];
                if (kind != TSR_BLOCKS_QUANTISED) assert_int_equal(a, b);
                assert_true(b < range);
                back[place(tile, y, x)] = GUARD;
            }
        for (size_t i = 0; i < SAMPLES; i++) assert_int_equal(back[i], GUARD); /* nothing outside the tile is written */
    }
}

/* Any quantised coefficients against the definition of a block's inverse. Sums fit 32 bits or exceed them. */
TEST(quantised_inverse)
{
    static const uint32_t ranges[] = {256, 4096, 65536};
    struct rng r = {58};
    for (int n = 0; n < 400; n++) {
        const struct tsr_tile tile = random_tile(&r);
        struct tsr_block_coding coding = random_coding(&r, TSR_BLOCKS_QUANTISED, ranges[n % 3]);
        const struct tsr_block_grid grid = tsr_block_grid(tile.width, tile.height, 1);
        /* coefficients whose sums have about `bits` bits */
        const int step = coding.qp_index / TSR_QP_OCTAVE + 13, bits = n % 2 ? 31 : rng_between(&r, 17, 36);
        const int width = tsr_max(1, tsr_min(22, bits - step - (int)rng_below(&r, 6)));
        if (n % 4) coding.coarser_by = tsr_min(coding.coarser_by, 48);
        for (int32_t i = 0; i < grid.columns * grid.rows * 16; i++) {
            coefficients[i] = rng_below(&r, 3) ? (int32_t)rng_width(&r, width) : 0;
            if (rng_below(&r, 2)) coefficients[i] = -coefficients[i];
        }
        memcpy(coefficients_back, coefficients, sizeof coefficients);
        if (!tsr_blocks_inverse(coefficients, coding, back, tile)) continue;
        assert_true(tsr_restore_dcs(coefficients_back, grid));
        for (int32_t b = 0; b < grid.columns * grid.rows; b++) {
            const int32_t row = b / grid.columns, column = b % grid.columns;
            const int32_t coarser = place(tile, 4 * row, 4 * column) >= coding.coarser_from ? coding.coarser_by : 0;
            int64_t scaled[16];
            int32_t block[16];
            for (int i = 0; i < 16; i++)
                scaled[i] = tsr_dequantise(coefficients_back[16 * b + tsr_zigzag_place(i)], coding.qp_index + coarser,
                                           tsr_norm_class(i / 4, i % 4));
            tsr_core_inverse(scaled, block);
            for (int32_t i = 0; i < 16; i++) {
                const int32_t y = 4 * row + i / 4, x = 4 * column + i % 4;
                if (y >= tile.height || x >= tile.width) continue;
                const int32_t sample = tsr_max(0, tsr_min((int32_t)coding.range - 1, block[i]));
                expect(back[place(tile, y, x)] == sample, "try %d block %d place %d: %d for %d", n, b, i,
                       back[place(tile, y, x)], sample);
            }
        }
    }
}

/* Coefficients that a corrupt file may hold are refused, or give samples within their range. */
TEST(corrupt_coefficients)
{
    struct rng r = {57};
    for (int n = 0; n < 600; n++) {
        const struct tsr_tile tile = random_tile(&r);
        const uint32_t range = n % 2 ? 65536 : 1000;
        const struct tsr_block_coding coding = random_coding(&r, kinds[n % 3], range);
        const size_t count = tsr_tile_coefficients(tile.width, tile.height);
        const int width = rng_between(&r, 1, 22);
        for (size_t i = 0; i < count; i++) {
            coefficients[i] = rng_below(&r, 4) ? (int32_t)rng_width(&r, width) : 0;
            if (n % 5 == 0) coefficients[i] = TSR_COEFFICIENT_LIMIT - 1;
            if (rng_below(&r, 2)) coefficients[i] = -coefficients[i];
        }
        memset(back, 0, sizeof back);
        if (!tsr_blocks_inverse(coefficients, coding, back, tile)) continue;
        for (int32_t y = 0; y < tile.height; y++)
            for (int32_t x = 0; x < tile.width; x++) assert_true(back[place(tile, y, x)] < range);
    }
}

/* FORMAT.md 7.2: a residual is right where the sample is within range after one correction, whatever the residual. */
TEST(residuals_beyond_range)
{
    static const struct {
        int32_t residual; /* after a sample of 500 */
        bool good;
        uint16_t sample;
    } cases[] = {{499, true, 999},  {500, true, 0},    {-501, true, 999}, {-1500, true, 0},
                 {1499, true, 999}, {-1501, false, 0}, {1500, false, 0}};
    const struct tsr_tile tile = {.width = 2, .height = 1, .stride = 2};
    const struct tsr_block_coding coding = {.kind = TSR_BLOCKS_RESIDUAL, .range = 1000, .slice_side = TSR_SLICE_BLOCKS};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        memset(coefficients, 0, TSR_BLOCK_SAMPLES * sizeof *coefficients);
        coefficients[0] = 500;
        coefficients[tsr_zigzag_place(1)] = cases[i].residual;
        expect(tsr_blocks_inverse(coefficients, coding, back, tile) == cases[i].good, "case %zu", i);
        if (cases[i].good) assert_int_equal(back[1], cases[i].sample);
    }
}

static struct tsr_cavlc_reader cavlc;
static struct tsr_run_level_model model;
static struct tsr_run_level_codes codes;
static struct tsr_run_level_decoder decoder;

/* Tables in which every symbol has a codeword, trained on the coefficients. */
static void train(struct tsr_tile tile, int32_t slice_side)
{
    static struct tsr_block_counts counts;
    static struct tsr_merge_work merge;
    static struct tsr_huffman_work work;
    memset(&counts, 0, sizeof counts);
    memset(&model, 0, sizeof model);
    tsr_count_blocks(coefficients, tile, slice_side, &counts);
    model.dc_tables =
        (uint8_t)tsr_merge_contexts(&counts.dc[0][0], TSR_DC_CELLS, TSR_DC_SYMBOLS, model.dc_table_of, &merge);
    model.ac_tables =
        (uint8_t)tsr_merge_contexts(&counts.ac[0][0], TSR_AC_CELLS, TSR_AC_SYMBOLS, model.ac_table_of, &merge);
    for (int t = 0; t < model.dc_tables; t++) {
        tsr_huffman_lengths(counts.dc[t], TSR_DC_SYMBOLS, model.dc_lengths[t], &work);
        tsr_huffman_codewords(model.dc_lengths[t], TSR_DC_SYMBOLS, codes.dc[t]);
    }
    for (int t = 0; t < model.ac_tables; t++) {
        tsr_huffman_lengths(counts.ac[t], TSR_AC_SYMBOLS, model.ac_lengths[t], &work);
        tsr_huffman_codewords(model.ac_lengths[t], TSR_AC_SYMBOLS, codes.ac[t]);
    }
    tsr_run_level_decoder_init(&decoder, &model);
}

static size_t code(struct tsr_tile tile, int32_t side, bool huffman, size_t capacity)
{
    return tsr_code_slices(coefficients, tile, side, huffman ? &codes : NULL, huffman ? &model : NULL, payload,
                           capacity);
}

static bool decode(const uint8_t *bytes, size_t size, struct tsr_tile tile, int32_t side, bool huffman)
{
    uint8_t *exact = must(malloc(size + !size));
    memcpy(exact, bytes, size);
    const bool good = tsr_decode_slices(exact, size, tile, side, huffman ? &decoder : NULL, huffman ? &model : NULL,
                                        &cavlc, coefficients_back);
    free(exact);
    return good;
}

/* Random coefficients of a tile. */
static void random_coefficients(struct rng *r, size_t count)
{
    const int width = rng_between(r, 1, 10);
    const uint32_t zeros = rng_below(r, 9);
    for (size_t i = 0; i < count; i++) {
        coefficients[i] = rng_below(r, 8) < zeros ? 0 : (int32_t)rng_width(r, width);
        if (rng_below(r, 5000) == 0) coefficients[i] = TSR_COEFFICIENT_LIMIT - 1;
        if (rng_below(r, 2)) coefficients[i] = -coefficients[i];
    }
}

TEST(slices)
{
    struct rng r = {58};
    tsr_cavlc_reader_init(&cavlc);
    for (int n = 0; n < 120; n++) {
        const struct tsr_tile tile = random_tile(&r);
        const int32_t side = rng_between(&r, TSR_SLICE_BLOCKS_LEAST, n % 3 ? 16 : TSR_SLICE_BLOCKS_LIMIT);
        const size_t count = tsr_tile_coefficients(tile.width, tile.height);
        random_coefficients(&r, count);
        train(tile, side);
        for (int huffman = 0; huffman < 2; huffman++) {
            const size_t size = code(tile, side, huffman, sizeof payload);
            assert_true(size > 0);
            memset(coefficients_back, 0xa5, sizeof coefficients_back);
            assert_true(decode(payload, size, tile, side, huffman));
            assert_memory_equal(coefficients_back, coefficients, count * sizeof coefficients[0]);
            for (size_t i = count; i < COEFFICIENTS; i++) assert_int_equal((uint32_t)coefficients_back[i], 0xa5a5a5a5u);
            /* a string that is cut off or too long is refused */
            assert_false(decode(payload, size - 1, tile, side, huffman));
            payload[size] = 0;
            assert_false(decode(payload, size + 1, tile, side, huffman));
            /* the capacity is kept, and exactly the size is enough */
            const size_t capacity = n % 4 ? rng_below(&r, (uint32_t)size) : size;
            memset(payload, 0xa5, size + 64);
            assert_int_equal(code(tile, side, huffman, capacity), capacity < size ? 0 : size);
            for (size_t i = capacity; i < size + 64; i++) assert_int_equal(payload[i], 0xa5);
        }
    }
}

TEST(damaged_slices)
{
    struct rng r = {59};
    int refused = 0, taken = 0;
    tsr_cavlc_reader_init(&cavlc);
    for (int n = 0; n < 60; n++) {
        const struct tsr_tile tile = random_tile(&r);
        const int32_t side = rng_between(&r, TSR_SLICE_BLOCKS_LEAST, 16);
        const size_t count = tsr_tile_coefficients(tile.width, tile.height);
        random_coefficients(&r, count);
        train(tile, side);
        for (int huffman = 0; huffman < 2; huffman++) {
            const size_t size = code(tile, side, huffman, sizeof payload);
            for (int k = 0; k < 20; k++) {
                payload[rng_below(&r, (uint32_t)size)] ^= (uint8_t)(1u << rng_below(&r, 8));
                if (decode(payload, size, tile, side, huffman)) {
                    taken++;
                    for (size_t i = 0; i < count; i++) assert_true(abs(coefficients_back[i]) < TSR_COEFFICIENT_LIMIT);
                } else {
                    refused++;
                }
            }
        }
    }
    assert_true(refused > 0 && taken > 0);
}

/* FORMAT.md 8.4: coefficients stay below the limit. Run-level symbols can express more; a decoder refuses that. */
TEST(coefficients_beyond_the_limit)
{
    struct rng r = {77};
    const struct tsr_tile tile = {0, 20, 20, 20};
    const size_t count = tsr_tile_coefficients(tile.width, tile.height);
    for (int n = 0; n < 200; n++) {
        const int32_t coefficient = TSR_COEFFICIENT_LIMIT - 2 + n % 4;
        memset(coefficients, 0, sizeof coefficients);
        coefficients[rng_below(&r, (uint32_t)count)] = n % 8 < 4 ? coefficient : -coefficient;
        train(tile, 4);
        const size_t size = code(tile, 4, true, sizeof payload);
        assert_true(size > 0);
        assert_int_equal(decode(payload, size, tile, 4, true), coefficient < TSR_COEFFICIENT_LIMIT);
    }
}

/* GROUND.md 3: a string ends in zeros up to a whole byte. Readers check that for the string of slice lengths and for
 * each slice's. */
TEST(padding_is_checked)
{
    struct rng r = {60};
    int lengths_padding = 0;
    tsr_cavlc_reader_init(&cavlc);
    for (int n = 0; n < 30; n++) {
        const struct tsr_tile tile = random_tile(&r);
        const int32_t side = TSR_SLICE_BLOCKS_LEAST;
        uint32_t lengths[COEFFICIENTS / 256 + 100];
        random_coefficients(&r, tsr_tile_coefficients(tile.width, tile.height));
        const size_t size = code(tile, side, false, sizeof payload);
        const struct tsr_block_grid grid = tsr_block_grid(tile.width, tile.height, side);
        struct tsr_bit_reader reader = tsr_bit_reader(payload, size);
        assert_true(tsr_get_slice_lengths(&reader, lengths, grid.slice_columns * grid.slice_rows));
        const size_t bits = tsr_bits_read(&reader);
        for (size_t bit = bits; bit % 8 != 0; bit++) {
            payload[bit / 8] ^= (uint8_t)(0x80u >> bit % 8);
            lengths_padding += decode(payload, size, tile, side, false);
            payload[bit / 8] ^= (uint8_t)(0x80u >> bit % 8);
        }
    }
    expect(lengths_padding == 0, "%d padding bits behind the lengths were not looked at", lengths_padding);
}

/* Every entry of the tables of AVX2's reader against the reader of the definition. */
TEST(cavlc_tables)
{
    tsr_cavlc_reader_init(&cavlc);
    for (uint32_t i = 0; i < CAVLC_LEVEL_ROWS * 256; i++) {
        const uint8_t bytes[8] = {(uint8_t)i, 0xa5, 0xa5, 0xa5, 0xa5, 0xa5, 0xa5, 0xa5};
        struct tsr_bit_reader reader = tsr_bit_reader(bytes, sizeof bytes);
        const int row = (int)(i >> 8), entry = cavlc_levels[i];
        int32_t level = 0;
        int suffix_length = row < 7 ? row : row - 7;
        assert_true(tsr_cavlc_get_coefficient(&reader, &suffix_length, row < 7 ? 0 : 2, &level) > 0);
        const int bits = (int)tsr_bits_read(&reader);
        if (bits > 8)
            assert_int_equal(entry, 0);
        else
            assert_int_equal(entry, ((uint32_t)level << 8 | (uint32_t)suffix_length << 4 | (uint32_t)bits) & 0xffffu);
    }
    for (uint32_t i = 0; i < 64; i++) {
        struct tsr_bit_reader reader = {NULL, 0, 0, (uint64_t)i << 58, 64, false};
        int total, ones;
        const bool good = tsr_cavlc_get_token(&reader, &cavlc, 8, &total, &ones);
        assert_int_equal(cavlc_fixed_tokens[i], good ? 6 << 8 | total << 2 | ones : 0);
    }
    for (uint32_t i = 0; i < 3 * 6 * 64; i++) {
        const int most = (int)(i / 384) + 1;
        int zeros = (int)(i / 64 % 6) + 1, used = 0, runs = 0, length = 0;
        uint32_t pattern = 0;
        while (runs < most && zeros > 0) {
            const uint32_t next = (i % 64 << 3 << used & 511u) >> 6, entry = cavlc.run[zeros - 1][next];
            const int run = (int)(entry & 15u), bits = (int)(entry >> 4);
            if (used + bits > 6) break;
            used += bits;
            zeros -= run;
            runs++;
            length += run + 1;
            pattern = pattern << (run + 1) | 1u;
        }
        assert_true(runs > 0);
        assert_int_equal(cavlc_runs[i], pattern << 16 | (uint32_t)(length << 12 | zeros << 8 | runs << 4 | used));
    }
    for (uint32_t places = 0; places < 256; places++)
        for (uint32_t p = 0, number = 0; p < 8; p++)
            assert_int_equal(cavlc_spread[places] >> 8 * p & 255u, places >> p & 1u ? number++ : 128u);
}

/* The form for this machine's vectors against plain C. */
TEST(forms)
{
    static int32_t others[COEFFICIENTS];
    static uint16_t other_back[SAMPLES];
    static uint8_t other_payload[8 * COEFFICIENTS];
    static struct tsr_block_counts counts, other_counts;
    const struct tsr_block_form *a = tsr_block_form(TSR_ISA_PLAIN), *b = tsr_block_form(tsr_best_isa());
    struct rng r = {61};
    tsr_cavlc_reader_init(&cavlc);
    for (int n = 0; n < 200; n++) {
        const struct tsr_tile tile = random_tile(&r);
        const size_t count = tsr_tile_coefficients(tile.width, tile.height);
        const uint32_t range = n % 4 < 2 ? 256 : 65536;
        struct tsr_block_coding coding = {
            n % 3 == 0 ? TSR_BLOCKS_REVERSIBLE : TSR_BLOCKS_QUANTISED, 0, 0, 0, range, 16};
        coding.qp_index = rng_between(&r, 0, 300);
        coding.coarser_by = rng_between(&r, 0, 50);
        coding.coarser_from = rng_below(&r, SAMPLES);
        fill(&r, tile, range, n % CONTENTS);
        memset(coefficients, 0x5a, sizeof coefficients);
        memset(others, 0x5a, sizeof others);
        a->forward(samples, tile, coding, coefficients);
        b->forward(samples, tile, coding, others);
        assert_memory_equal(coefficients, others, sizeof others);
        if (n % 5 == 0) random_coefficients(&r, count);
        train(tile, 16);
        memset(&counts, 0, sizeof counts);
        memset(&other_counts, 0, sizeof other_counts);
        a->count(coefficients, tile, 16, &counts);
        b->count(coefficients, tile, 16, &other_counts);
        assert_memory_equal(&counts, &other_counts, sizeof counts);
        for (int huffman = 0; huffman < 2; huffman++) {
            const struct tsr_run_level_codes *c = huffman ? &codes : NULL;
            const struct tsr_run_level_model *m = huffman ? &model : NULL;
            const struct tsr_run_level_decoder *d = huffman ? &decoder : NULL;
            const size_t size = a->code(coefficients, tile, 16, c, m, payload, sizeof payload);
            memset(other_payload, 0xa5, size + 64);
            assert_int_equal(b->code(coefficients, tile, 16, c, m, other_payload, size), size);
            assert_memory_equal(payload, other_payload, size);
            for (size_t i = size; i < size + 64; i++) assert_int_equal(other_payload[i], 0xa5);
            for (int damage = 0; damage < 8; damage++) {
                const bool good = a->decode(payload, size, tile, 16, d, m, &cavlc, coefficients_back);
                assert_int_equal(good, b->decode(payload, size, tile, 16, d, m, &cavlc, others));
                if (good) assert_memory_equal(coefficients_back, others, count * sizeof *others);
                payload[rng_below(&r, (uint32_t)size)] ^= (uint8_t)(1u << rng_below(&r, 8));
            }
        }
        memcpy(others, coefficients, sizeof others);
        memset(back, 0xa5, sizeof back);
        memset(other_back, 0xa5, sizeof other_back);
        const bool good = a->inverse(coefficients, coding, back, tile);
        assert_int_equal(good, b->inverse(others, coding, other_back, tile));
        if (good) assert_memory_equal(back, other_back, sizeof back);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(blocks),
                                       cmocka_unit_test(quantised_inverse),
                                       cmocka_unit_test(corrupt_coefficients),
                                       cmocka_unit_test(residuals_beyond_range),
                                       cmocka_unit_test(slices),
                                       cmocka_unit_test(damaged_slices),
                                       cmocka_unit_test(coefficients_beyond_the_limit),
                                       cmocka_unit_test(padding_is_checked),
                                       cmocka_unit_test(cavlc_tables),
                                       cmocka_unit_test(forms)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
