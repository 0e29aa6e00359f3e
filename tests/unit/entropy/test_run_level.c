/* entropy/run_level.h: blocks as run-level symbols, their contexts, and their model. FORMAT.md 10. */
#include "tests/unit/support.h"

#include "entropy/run_level.h"

static void random_block(struct rng *r, int32_t coefficients[16], int kind)
{
    const int width = kind % 4 == 0 ? 22 : 1 + kind % 8;
    for (int i = 0; i < 16; i++) {
        coefficients[i] = kind % 3 && rng_below(r, 3) ? 0 : (int32_t)rng_width(r, width);
        if (kind % 16 == 8 && i % 5 == 0) coefficients[i] = TSR_COEFFICIENT_LIMIT - 1;
        if (rng_below(r, 2)) coefficients[i] = -coefficients[i];
    }
    if (kind % 11 == 0) memset(coefficients + 1, 0, 15 * sizeof coefficients[0]);
}

/* FORMAT.md 10.1: the symbols as a decoder reads them. */
TEST(symbols)
{
    struct rng r = {38};
    for (int n = 0; n < 100000; n++) {
        int32_t coefficients[16], back[16] = {0};
        struct tsr_block_symbol out[TSR_BLOCK_SYMBOLS_LIMIT];
        random_block(&r, coefficients, n);
        const int count = tsr_block_symbols(coefficients, out);
        const uint32_t folded = tsr_token_value(out[0].symbol, out[0].raw);
        assert_int_equal(out[0].raw_bits, tsr_token_raw_bits(out[0].symbol));
        back[0] = folded % 2 ? -(int32_t)(folded / 2) - 1 : (int32_t)(folded / 2);
        int start = 1, i = 1;
        for (; i < count && out[i].symbol != 0; i++) {
            const int run = (out[i].symbol - 1) / 24, bits = (out[i].symbol - 1) % 24;
            assert_int_equal(out[i].place_class, start == 1 ? 0 : start <= 3 ? 1 : start <= 6 ? 2 : 3);
            assert_true(start + run < 16);
            uint32_t beyond = 0;
            int raw_bits = 1;
            if (bits > 0) beyond = 1;
            if (bits > 1) {
                beyond = 1u << (bits - 1) | out[i].raw >> 1;
                raw_bits = bits;
            }
            assert_int_equal(out[i].raw_bits, raw_bits);
            assert_int_equal(out[i].raw >> raw_bits, 0);
            back[start + run] = (out[i].raw & 1u ? -1 : 1) * (int32_t)(beyond + 1);
            start += run + 1;
        }
        assert_int_equal(i, start < 16 ? count - 1 : count); /* the end of block, unless the block is full */
        if (start < 16) {
            assert_int_equal(out[i].place_class, tsr_place_class(start));
            assert_int_equal(out[i].raw_bits, 0);
        }
        assert_memory_equal(back, coefficients, sizeof back);
    }
}

TEST(classes)
{
    struct rng r = {39};
    for (int n = 0; n < 20000; n++) {
        int32_t coefficients[16];
        uint32_t ac = 0;
        random_block(&r, coefficients, n);
        const struct tsr_block_energy energy = tsr_block_energy(coefficients);
        for (int i = 1; i < 16; i++) ac += (uint32_t)abs(coefficients[i]);
        assert_int_equal(energy.dc, abs(coefficients[0]));
        assert_int_equal(energy.ac, ac);
        const uint32_t left = rng_width(&r, 27), up = rng_width(&r, 27);
        const int both = plain_width(left + up), l = plain_width(2 * left), u = plain_width(2 * up);
        assert_int_equal(tsr_neighbour_class(left, true, up, true), both < 15 ? both : 15);
        assert_int_equal(tsr_neighbour_class(left, true, up, false), l < 15 ? l : 15);
        assert_int_equal(tsr_neighbour_class(left, false, up, true), u < 15 ? u : 15);
        assert_int_equal(tsr_neighbour_class(left, false, up, false), 0);
    }
}

static void random_lengths(struct rng *r, uint8_t *lengths, int symbols, bool all)
{
    static struct tsr_huffman_work work;
    uint32_t counts[TSR_AC_SYMBOLS] = {0};
    for (int s = 0; s < symbols; s++) counts[s] = all || rng_below(r, 3) == 0 ? 1u + rng_width(r, 16) : 0;
    counts[0] += !all;
    tsr_huffman_lengths(counts, symbols, lengths, &work);
}

static void random_cells(struct rng *r, uint8_t *table_of, int cells, uint8_t *tables, int most)
{
    *tables = 1;
    table_of[0] = 0;
    for (int c = 1; c < cells; c++)
        table_of[c] = *tables < most && rng_below(r, 2) ? (*tables)++ : (uint8_t)rng_below(r, *tables);
}

static void random_model(struct rng *r, struct tsr_run_level_model *model, bool all)
{
    memset(model, 0, sizeof *model);
    random_cells(r, model->dc_table_of, TSR_DC_CELLS, &model->dc_tables, rng_between(r, 1, TSR_DC_CELLS));
    random_cells(r, model->ac_table_of, TSR_AC_CELLS, &model->ac_tables, rng_between(r, 1, TSR_TABLE_LIMIT));
    for (int t = 0; t < model->dc_tables; t++) random_lengths(r, model->dc_lengths[t], TSR_DC_SYMBOLS, all);
    for (int t = 0; t < model->ac_tables; t++) random_lengths(r, model->ac_lengths[t], TSR_AC_SYMBOLS, all);
}

static void build_codes(const struct tsr_run_level_model *model, struct tsr_run_level_codes *codes)
{
    for (int t = 0; t < model->dc_tables; t++)
        tsr_huffman_codewords(model->dc_lengths[t], TSR_DC_SYMBOLS, codes->dc[t]);
    for (int t = 0; t < model->ac_tables; t++)
        tsr_huffman_codewords(model->ac_lengths[t], TSR_AC_SYMBOLS, codes->ac[t]);
}

TEST(blocks_round_trip)
{
    enum { BLOCKS = 200 };
    static struct tsr_run_level_model model;
    static struct tsr_run_level_codes codes;
    static struct tsr_run_level_decoder decoder;
    static int32_t coefficients[BLOCKS][16];
    static uint8_t bytes[BLOCKS * 128];
    int dc_class[BLOCKS], ac_class[BLOCKS];
    struct rng r = {40};
    for (int n = 0; n < 60; n++) {
        random_model(&r, &model, true);
        build_codes(&model, &codes);
        tsr_run_level_decoder_init(&decoder, &model);
        struct tsr_bit_writer w = tsr_bit_writer(bytes, sizeof bytes);
        size_t bits = 0;
        for (int b = 0; b < BLOCKS; b++) {
            random_block(&r, coefficients[b], b);
            dc_class[b] = (int)rng_below(&r, TSR_NEIGHBOUR_CLASSES);
            ac_class[b] = (int)rng_below(&r, TSR_NEIGHBOUR_CLASSES);
            struct tsr_block_symbol symbols[TSR_BLOCK_SYMBOLS_LIMIT];
            const int count = tsr_block_symbols(coefficients[b], symbols);
            for (int i = 0; i < count; i++)
                bits +=
                    (size_t)symbols[i].raw_bits +
                    tsr_block_codeword(&codes, &model, &symbols[i], i == 0, i == 0 ? dc_class[b] : ac_class[b])->length;
            tsr_run_level_put(&w, coefficients[b], &codes, &model, dc_class[b], ac_class[b]);
            assert_int_equal(8 * w.used + (size_t)w.held_bits, bits);
        }
        const size_t size = tsr_flush_bits(&w);
        assert_false(w.overflow);
        uint8_t *exact = must(malloc(size));
        memcpy(exact, bytes, size);
        struct tsr_bit_reader reader = tsr_bit_reader(exact, size);
        int32_t back[16];
        for (int b = 0; b < BLOCKS; b++) {
            assert_true(tsr_run_level_get(&reader, back, &decoder, &model, dc_class[b], ac_class[b]));
            assert_memory_equal(back, coefficients[b], sizeof back);
        }
        assert_true(tsr_bits_ended(&reader));
        /* a string that is cut off: refused at the latest where its bits end */
        reader = tsr_bit_reader(exact, rng_below(&r, (uint32_t)size));
        bool good = true;
        for (int b = 0; b < BLOCKS && good; b++)
            good = tsr_run_level_get(&reader, back, &decoder, &model, dc_class[b], ac_class[b]);
        assert_false(good);
        /* a damaged string: any answer, but coefficients stay near their limit */
        for (int flips = 0; flips < 200; flips++)
            exact[rng_below(&r, (uint32_t)size)] ^= (uint8_t)(1u << rng_below(&r, 8));
        reader = tsr_bit_reader(exact, size);
        for (int b = 0; b < BLOCKS; b++) {
            if (!tsr_run_level_get(&reader, back, &decoder, &model, dc_class[b], ac_class[b])) continue;
            for (int i = 0; i < 16; i++) assert_true(abs(back[i]) <= 1 << 23);
        }
        free(exact);
    }
}

/* Runs that leave the block. Symbol 1 + 24 * 14 at place 1 reaches place 15; from place 2 on it does not fit. */
TEST(runs_out_of_the_block)
{
    static struct tsr_run_level_model model;
    static struct tsr_run_level_decoder decoder;
    int32_t coefficients[16];
    static const uint8_t zeros[4];
    memset(&model, 0, sizeof model);
    model.dc_tables = model.ac_tables = 1;
    model.dc_lengths[0][0] = 1; /* single symbols, with empty codewords */
    model.ac_lengths[0][1 + 24 * 14] = 1;
    tsr_run_level_decoder_init(&decoder, &model);
    struct tsr_bit_reader reader = tsr_bit_reader(zeros, sizeof zeros);
    assert_true(tsr_run_level_get(&reader, coefficients, &decoder, &model, 0, 0));
    assert_int_equal(coefficients[15], 1);
    memset(&model.ac_lengths, 0, sizeof model.ac_lengths);
    model.ac_lengths[0][1 + 24 * 7] = 1; /* two of these fill place 8 and place 16, which does not exist */
    tsr_run_level_decoder_init(&decoder, &model);
    reader = tsr_bit_reader(zeros, sizeof zeros);
    assert_false(tsr_run_level_get(&reader, coefficients, &decoder, &model, 0, 0));
}

TEST(models)
{
    static struct tsr_run_level_model model, back;
    static uint8_t bytes[(TSR_DC_CELLS + TSR_TABLE_LIMIT) * (TSR_AC_SYMBOLS + 16) + 256];
    struct rng r = {41};
    int taken = 0;
    for (int n = 0; n < 400; n++) {
        random_model(&r, &model, n % 2);
        struct tsr_bit_writer w = tsr_bit_writer(bytes, sizeof bytes);
        tsr_put_run_level_model(&w, &model);
        const size_t size = tsr_flush_bits(&w);
        assert_false(w.overflow);
        struct tsr_bit_reader reader = tsr_bit_reader(bytes, size);
        memset(&back, 0, sizeof back);
        assert_true(tsr_get_run_level_model(&reader, &back));
        assert_true(tsr_bits_ended(&reader));
        assert_memory_equal(&back, &model, sizeof back);
        reader = tsr_bit_reader(bytes, rng_below(&r, (uint32_t)size));
        assert_false(tsr_get_run_level_model(&reader, &back));
        for (int flip = 0; flip < 10; flip++) { /* a damaged model is refused, or has complete codes */
            bytes[rng_below(&r, (uint32_t)size)] ^= (uint8_t)(1u << rng_below(&r, 8));
            reader = tsr_bit_reader(bytes, size);
            if (!tsr_get_run_level_model(&reader, &back)) continue;
            taken++;
            assert_in_range(back.dc_tables, 1, TSR_DC_CELLS);
            assert_in_range(back.ac_tables, 1, TSR_TABLE_LIMIT);
            for (int c = 0; c < TSR_DC_CELLS; c++) assert_true(back.dc_table_of[c] < back.dc_tables);
            for (int c = 0; c < TSR_AC_CELLS; c++) assert_true(back.ac_table_of[c] < back.ac_tables);
            for (int t = 0; t < back.dc_tables; t++)
                assert_true(tsr_huffman_check(back.dc_lengths[t], TSR_DC_SYMBOLS) > 0);
            for (int t = 0; t < back.ac_tables; t++)
                assert_true(tsr_huffman_check(back.ac_lengths[t], TSR_AC_SYMBOLS) > 0);
        }
    }
    assert_true(taken > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(symbols), cmocka_unit_test(classes),
                                       cmocka_unit_test(blocks_round_trip), cmocka_unit_test(runs_out_of_the_block),
                                       cmocka_unit_test(models)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
