/* entropy/residual_model.h: runs, cuts, tables of cells, and the whole model's description. FORMAT.md 7.4, 7.5. */
#include "tests/unit/support.h"

#include "entropy/residual_model.h"

TEST(runs)
{
    for (uint32_t n = 1; n <= 65535; n++) {
        const struct tsr_token token = tsr_run_token(n);
        const int k = plain_width(n) - 1;
        assert_int_equal(token.symbol, n < 4 ? 63 + (int)n : 67 + 2 * (k - 2) + (int)(n >> (k - 1)) % 2);
        assert_int_equal(token.raw_bits, n < 4 ? 0 : k - 1);
        assert_int_equal(token.raw, n < 4 ? 0 : n % (1u << (k - 1)));
        assert_int_equal(tsr_symbol_raw_bits(token.symbol), token.raw_bits);
        assert_int_equal(tsr_run_length(token.symbol, token.raw), n);
    }
    assert_int_equal(tsr_run_token(65535).symbol, TSR_RUN_TO_END - 1);
    for (int s = 0; s < TSR_RUN_SYMBOL; s++) assert_int_equal(tsr_symbol_raw_bits(s), tsr_token_raw_bits(s));
    for (uint32_t n = 1; n <= 65535; n++) {
        const struct tsr_token within = tsr_row_run_token(n, false), to_end = tsr_row_run_token(n, true);
        assert_int_equal(within.symbol, tsr_run_token(n).symbol);
        assert_int_equal(within.raw, tsr_run_token(n).raw);
        assert_int_equal(to_end.symbol, 95);
        assert_int_equal(to_end.raw_bits, 0);
        assert_int_equal(to_end.raw, 0);
    }
    assert_int_equal(tsr_symbol_raw_bits(95), 0);
    assert_int_equal(tsr_run_length(95, 0), 65535);
}

static struct tsr_bit_reader finish(struct tsr_bit_writer *w)
{
    const size_t size = tsr_flush_bits(w);
    assert_false(w->overflow);
    return tsr_bit_reader(w->bytes, size);
}

TEST(cuts)
{
    struct rng r = {32};
    uint8_t bytes[256], count;
    uint16_t cuts[16], back[16];
    for (int n = 0; n < 5000; n++) {
        const int bins = n % 2 ? TSR_ACTIVITY_BINS : TSR_INTENSITY_BINS;
        int wanted = rng_between(&r, 0, 15), used = 0;
        for (int at = 1; used < wanted && at < bins; at++)
            if (n % 7 == 0 || rng_below(&r, (uint32_t)(bins / 20)) == 0) cuts[used++] = (uint16_t)at;
        if (used > 0 && n % 3 == 0) cuts[used - 1] = (uint16_t)(bins - 1);
        struct tsr_bit_writer w = tsr_bit_writer(bytes, sizeof bytes);
        tsr_put_cuts(&w, cuts, used);
        struct tsr_bit_reader reader = finish(&w), again = reader, third = reader;
        assert_true(tsr_get_cuts(&reader, back, &count, 15, bins));
        assert_true(tsr_bits_ended(&reader));
        assert_int_equal(count, used);
        assert_memory_equal(back, cuts, (size_t)used * sizeof cuts[0]);
        if (used == 0) continue;
        assert_false(tsr_get_cuts(&again, back, &count, used - 1, bins));     /* one too many */
        assert_false(tsr_get_cuts(&third, back, &count, 15, cuts[used - 1])); /* the last cut is not a bin */
    }
}

/* Fills table_of[cells]: tables are numbered in the order of their first use. Returns the number of tables. */
static int random_tables(struct rng *r, uint8_t *table_of, int cells, int most)
{
    int known = 1;
    table_of[0] = 0;
    for (int c = 1; c < cells; c++) {
        const uint32_t kind = rng_below(r, 3);
        table_of[c] = kind == 0                   ? table_of[c - 1]
                      : kind == 1 && known < most ? (uint8_t)known++
                                                  : (uint8_t)rng_below(r, (uint32_t)known);
    }
    return known;
}

TEST(tables_of_cells)
{
    struct rng r = {33};
    uint8_t bytes[256], table_of[TSR_CELL_LIMIT], back[TSR_CELL_LIMIT];
    for (int n = 0; n < 5000; n++) {
        const int cells = rng_between(&r, 1, TSR_CELL_LIMIT);
        const int known = random_tables(&r, table_of, cells, rng_between(&r, 1, TSR_TABLE_LIMIT));
        struct tsr_bit_writer w = tsr_bit_writer(bytes, sizeof bytes);
        tsr_put_cell_tables(&w, table_of, cells);
        struct tsr_bit_reader reader = finish(&w), again = reader;
        assert_int_equal(tsr_get_cell_tables(&reader, back, cells, TSR_TABLE_LIMIT), known);
        assert_true(tsr_bits_ended(&reader));
        assert_memory_equal(back, table_of, (size_t)cells);
        if (known > 1) assert_int_equal(tsr_get_cell_tables(&again, back, cells, known - 1), 0); /* one too many */
    }
    /* 01 01, then 00 and the number 3, though only tables 0 .. 2 exist */
    static const uint8_t unknown[] = {0x53};
    struct tsr_bit_reader reader = tsr_bit_reader(unknown, 1);
    assert_int_equal(tsr_get_cell_tables(&reader, back, 4, TSR_TABLE_LIMIT), 0);
    static const uint8_t known[] = {0x52};
    reader = tsr_bit_reader(known, 1);
    assert_int_equal(tsr_get_cell_tables(&reader, back, 4, TSR_TABLE_LIMIT), 3);
    assert_int_equal(back[3], 2);
}

static void random_lengths(struct rng *r, uint8_t *lengths, int symbols)
{
    static struct tsr_huffman_work work;
    uint32_t counts[TSR_RUN_ALPHABET];
    const uint32_t density = rng_below(r, 6);
    for (int s = 0; s < symbols; s++) counts[s] = rng_below(r, 5) < density ? 1u + rng_width(r, 20) : 0;
    counts[rng_below(r, (uint32_t)symbols)] = 1;
    tsr_huffman_lengths(counts, symbols, lengths, &work);
}

static void random_table(struct rng *r, struct tsr_residual_model *model, int table, bool rans)
{
    const int symbols = table == TSR_RUN_TABLE ? TSR_RUN_ALPHABET : TSR_RESIDUAL_SYMBOLS;
    uint32_t counts[TSR_RUN_ALPHABET];
    if (!rans) {
        random_lengths(r, model->lengths[table], symbols);
        return;
    }
    for (int s = 0; s < symbols; s++) counts[s] = rng_below(r, 3) ? rng_width(r, 20) : 0;
    counts[rng_below(r, (uint32_t)symbols)] = 1;
    model->mantissa[table] = (uint8_t)tsr_rans_weights(counts, symbols, model->weights[table]);
}

static void random_model(struct rng *r, struct tsr_residual_model *model, bool rans)
{
    memset(model, 0, sizeof *model);
    model->lanes = (uint8_t)rng_between(r, 1, 32);
    random_table(r, model, TSR_RUN_TABLE, rans);
    if (rng_below(r, 2)) random_table(r, model, TSR_INTERRUPTION_TABLE, rans);
    if (rng_below(r, 8)) {
        model->activity_cuts = (uint8_t)rng_between(r, 0, TSR_ACTIVITY_GROUPS - 1);
        model->intensity_cuts = (uint8_t)rng_between(r, 0, TSR_INTENSITY_GROUPS - 1);
        for (int i = 0; i < model->activity_cuts; i++) model->activity_cut[i] = (uint16_t)(3 * i + 1 + i % 2);
        for (int i = 0; i < model->intensity_cuts; i++) model->intensity_cut[i] = (uint16_t)(170 * i + 1 + i % 2);
        model->tables = (uint8_t)random_tables(r, model->table_of, tsr_model_cells(model), TSR_TABLE_LIMIT);
        for (int t = 0; t < model->tables; t++) random_table(r, model, TSR_FIRST_RESIDUAL_TABLE + t, rans);
    }
    if (!rans) model->refill_bits = (uint8_t)rng_between(r, tsr_model_refill_bits(model), TSR_REFILL_LIMIT);
}

/* It is the largest sum of a symbol's codeword length and raw bits. */
TEST(refill_bits)
{
    static struct tsr_residual_model model;
    struct rng r = {34};
    for (int n = 0; n < 300; n++) {
        random_model(&r, &model, false);
        int most = 0;
        for (int t = 0; t < TSR_FIRST_RESIDUAL_TABLE + model.tables; t++) {
            struct tsr_codeword words[TSR_RUN_ALPHABET];
            tsr_huffman_codewords(model.lengths[t], TSR_RUN_ALPHABET, words);
            for (int s = 0; s < TSR_RUN_ALPHABET; s++)
                if (model.lengths[t][s]) most = tsr_max(most, words[s].length + tsr_symbol_raw_bits(s));
        }
        assert_int_equal(tsr_model_refill_bits(&model), most);
    }
}

static const uint8_t *put_model(const struct tsr_residual_model *model, bool rans, size_t *size)
{
    static uint8_t bytes[TSR_MODEL_TABLES * (TSR_RUN_ALPHABET + 16) + 512];
    struct tsr_bit_writer w = tsr_bit_writer(bytes, sizeof bytes);
    tsr_put_residual_model(&w, model, rans);
    *size = tsr_flush_bits(&w);
    assert_false(w.overflow);
    return bytes;
}

TEST(models)
{
    static struct tsr_residual_model model, back;
    struct rng r = {35};
    for (int n = 0; n < 500; n++) {
        size_t size;
        const bool rans = n % 2;
        random_model(&r, &model, rans);
        const uint8_t *bytes = put_model(&model, rans, &size);
        memset(&back, 0, sizeof back);
        struct tsr_bit_reader reader = tsr_bit_reader(bytes, size);
        assert_true(tsr_get_residual_model(&reader, &back, rans));
        assert_true(tsr_bits_ended(&reader));
        memcpy(back.mantissa, model.mantissa, sizeof model.mantissa); /* a description's alone: it is not read back */
        assert_memory_equal(&back, &model, sizeof model);
        for (size_t cut = 0; cut < size; cut += 1 + size / 8) {
            reader = tsr_bit_reader(bytes, cut);
            assert_false(tsr_get_residual_model(&reader, &back, rans));
        }
    }
}

TEST(models_out_of_range)
{
    static struct tsr_residual_model model, back;
    struct rng r = {36};
    for (int n = 0; n < 200; n++) {
        random_model(&r, &model, false);
        const int least = tsr_model_refill_bits(&model);
        struct tsr_residual_model bad[2] = {model, model};
        bad[0].refill_bits = (uint8_t)(least - 1);
        bad[1].refill_bits = TSR_REFILL_LIMIT + 1;
        for (int i = least > 0 ? 0 : 1; i < 2; i++) {
            size_t size;
            const uint8_t *bytes = put_model(&bad[i], false, &size);
            struct tsr_bit_reader reader = tsr_bit_reader(bytes, size);
            expect(!tsr_get_residual_model(&reader, &back, false), "case %d", i);
        }
    }
}

/* A damaged description is refused, or describes a model that is safe to decode with. */
TEST(damaged_models)
{
    static struct tsr_residual_model model, back;
    struct rng r = {37};
    int taken = 0;
    for (int n = 0; n < 5000; n++) {
        size_t size;
        const bool rans = n % 2;
        random_model(&r, &model, rans);
        const uint8_t *whole = put_model(&model, rans, &size);
        uint8_t *bytes = must(malloc(size));
        memcpy(bytes, whole, size);
        for (uint32_t flips = 1 + rng_below(&r, 3); flips > 0; flips--)
            bytes[rng_below(&r, (uint32_t)size)] ^= (uint8_t)(1u << rng_below(&r, 8));
        struct tsr_bit_reader reader = tsr_bit_reader(bytes, size);
        if (tsr_get_residual_model(&reader, &back, rans)) {
            taken++;
            assert_true(tsr_model_refill_bits(&back) <= back.refill_bits && back.refill_bits <= TSR_REFILL_LIMIT);
            assert_in_range(back.lanes, 1, TSR_LANE_LIMIT);
            for (int t = 0; rans && t < TSR_FIRST_RESIDUAL_TABLE + back.tables; t++) {
                uint16_t frequency[TSR_RUN_ALPHABET];
                uint32_t sum = 0;
                tsr_rans_frequencies(back.weights[t], TSR_RUN_ALPHABET, frequency);
                for (int s = 0; s < TSR_RUN_ALPHABET; s++) sum += frequency[s];
                assert_true(sum == TSR_RANS_TOTAL || (t == TSR_INTERRUPTION_TABLE && sum == 0));
            }
            assert_in_range(back.tables, 0, TSR_TABLE_LIMIT);
            for (int c = 0; back.tables > 0 && c < tsr_model_cells(&back); c++)
                assert_true(back.table_of[c] < back.tables);
        }
        free(bytes);
    }
    assert_true(taken > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs),          cmocka_unit_test(cuts),   cmocka_unit_test(tables_of_cells),
        cmocka_unit_test(refill_bits),   cmocka_unit_test(models), cmocka_unit_test(models_out_of_range),
        cmocka_unit_test(damaged_models)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
