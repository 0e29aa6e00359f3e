/* Huffman codes and rANS tables: lengths, weights and models that are read from any bits are refused or safe to decode
 * with. Counts become complete codes. Written descriptions come back. */
#include "fuzz_support.h"

#include <stdlib.h>
#include <string.h>

#include "entropy/huffman.h"
#include "entropy/predictor_model.h"
#include "entropy/residual_model.h"
#include "entropy/run_level.h"

static const int alphabets[] = {
    TSR_RESIDUAL_SYMBOLS, TSR_RUN_ALPHABET, TSR_DC_SYMBOLS, TSR_AC_SYMBOLS, TSR_ALPHABET_LIMIT, 2, 1};

/* Checks all properties of a code's lengths. */
static void check_code(const uint8_t *lengths, int symbols)
{
    static struct tsr_huffman_decoder decoder;
    struct tsr_codeword codewords[TSR_ALPHABET_LIMIT];
    uint8_t bytes[2 * TSR_ALPHABET_LIMIT + 64], again[TSR_ALPHABET_LIMIT];
    const int used = tsr_huffman_check(lengths, symbols);
    FUZZ_PROMISE(used > 0, "no code");
    tsr_huffman_codewords(lengths, symbols, codewords);
    tsr_huffman_decoder_init(&decoder, lengths, symbols);
    uint32_t decoded = 0; /* how many of the 2^12 strings decode to the symbol of their codeword */
    for (uint32_t next = 0; next < 1u << TSR_CODE_LIMIT; next++) {
        const uint32_t entry = tsr_huffman_decode(&decoder, next), symbol = entry >> 4;
        FUZZ_PROMISE(symbol < (uint32_t)symbols && lengths[symbol] > 0, "%03x decodes to symbol %u", next, symbol);
        const int length = codewords[symbol].length;
        FUZZ_PROMISE((int)(entry & 15u) == length, "a codeword of %u bits instead of %d", entry & 15u, length);
        decoded += next >> (TSR_CODE_LIMIT - length) == codewords[symbol].bits;
    }
    FUZZ_PROMISE(decoded == 1u << TSR_CODE_LIMIT, "%u strings of 4096 decode", decoded);
    struct tsr_bit_writer writer = tsr_bit_writer(bytes, sizeof bytes);
    tsr_put_lengths(&writer, lengths, symbols);
    const size_t size = tsr_flush_bits(&writer);
    FUZZ_PROMISE(!writer.overflow, "a description of more than %zu bytes", sizeof bytes);
    struct tsr_bit_reader reader = tsr_bit_reader(bytes, size);
    FUZZ_PROMISE(tsr_get_lengths(&reader, again, symbols) && tsr_bits_ended(&reader), "the description is none");
    FUZZ_PROMISE(memcmp(lengths, again, (size_t)symbols) == 0, "other lengths");
}

static void read_lengths(struct tsr_bit_reader reader, int symbols)
{
    uint8_t lengths[TSR_ALPHABET_LIMIT];
    if (tsr_get_lengths(&reader, lengths, symbols)) check_code(lengths, symbols);
}

/* Counts of all sizes. The first two bits of each say how many more bytes it has. */
static void make_lengths(const uint8_t *data, size_t size, int symbols)
{
    static struct tsr_huffman_work work;
    uint32_t counts[TSR_ALPHABET_LIMIT] = {0};
    uint8_t lengths[TSR_ALPHABET_LIMIT];
    int used = 0;
    for (int s = 0; s < symbols && size > 0; s++) {
        const int bytes = *data >> 6;
        counts[s] = *data++ & 63u;
        size--;
        for (int k = 0; k < bytes && size > 0; k++, size--) counts[s] = counts[s] << 8 | *data++;
        used += counts[s] > 0;
    }
    tsr_huffman_lengths(counts, symbols, lengths, &work);
    if (used == 0) return;
    FUZZ_PROMISE(tsr_huffman_check(lengths, symbols) == used, "%d symbols are used", used);
    for (int s = 0; s < symbols; s++) {
        FUZZ_PROMISE((lengths[s] > 0) == (counts[s] > 0), "symbol %d: count %u, length %u", s, counts[s], lengths[s]);
        for (int t = 0; t < s; t++)
            FUZZ_PROMISE(counts[s] <= counts[t] || lengths[s] <= lengths[t] || counts[t] == 0,
                         "symbol %d is more frequent than %d and longer", s, t);
    }
    check_code(lengths, symbols);
}

/* Checks all properties of a table's weights. */
static void check_weights(const uint16_t *weight, int symbols)
{
    uint16_t frequency[TSR_RANS_ALPHABET];
    uint32_t sum = 0;
    tsr_rans_frequencies(weight, symbols, frequency);
    for (int s = 0; s < symbols; s++) {
        sum += frequency[s];
        FUZZ_PROMISE((weight[s] > 0) == (frequency[s] > 0), "symbol %d: weight %u, frequency %u", s, weight[s],
                     frequency[s]);
    }
    FUZZ_PROMISE(sum == TSR_RANS_TOTAL, "frequencies add up to %u", sum);
}

static void read_weights(struct tsr_bit_reader reader, int symbols)
{
    uint16_t weight[TSR_RANS_ALPHABET], again[TSR_RANS_ALPHABET];
    uint8_t bytes[4 * TSR_RANS_ALPHABET];
    if (symbols > TSR_RANS_ALPHABET || !tsr_get_weights(&reader, weight, symbols)) return;
    check_weights(weight, symbols);
    struct tsr_bit_writer writer = tsr_bit_writer(bytes, sizeof bytes);
    tsr_put_weights(&writer, weight, symbols, TSR_RANS_MANTISSA_LIMIT);
    const size_t size = tsr_flush_bits(&writer);
    reader = tsr_bit_reader(bytes, size);
    FUZZ_PROMISE(!writer.overflow && tsr_get_weights(&reader, again, symbols) && tsr_bits_ended(&reader),
                 "the description is none");
    FUZZ_PROMISE(memcmp(weight, again, (size_t)symbols * sizeof weight[0]) == 0, "other weights");
}

static void read_predictor_model(struct tsr_bit_reader reader, int earlier)
{
    static struct tsr_predictor_model model, again;
    static uint8_t bytes[1 << 16];
    memset(&model, 0, sizeof model);
    memset(&again, 0, sizeof again);
    if (!tsr_get_predictor_model(&reader, &model, earlier)) return;
    for (int c = 0; c < model.classes; c++) {
        int32_t magnitudes = 0;
        for (int k = 0; k < tsr_taps(model.shape); k++) magnitudes += tsr_abs(model.weight[c][k]);
        FUZZ_PROMISE(magnitudes <= 65535, "weights of %d", magnitudes);
    }
    for (int t = 0; t < model.label_tables && model.set; t++) check_code(model.label_lengths[t], model.classes + 1);
    struct tsr_bit_writer writer = tsr_bit_writer(bytes, sizeof bytes);
    tsr_put_predictor_model(&writer, &model);
    const size_t size = tsr_flush_bits(&writer);
    reader = tsr_bit_reader(bytes, size);
    FUZZ_PROMISE(!writer.overflow && tsr_get_predictor_model(&reader, &again, earlier) && tsr_bits_ended(&reader),
                 "a predictor model does not come back");
    FUZZ_PROMISE(memcmp(&model, &again, sizeof model) == 0, "another predictor model");
}

static void read_residual_model(struct tsr_bit_reader reader, bool rans)
{
    static struct tsr_residual_model model, again;
    static uint8_t bytes[1 << 16];
    memset(&model, 0, sizeof model);
    memset(&again, 0, sizeof again);
    if (!tsr_get_residual_model(&reader, &model, rans)) return;
    memset(model.mantissa, TSR_RANS_MANTISSA_LIMIT, sizeof model.mantissa);
    memset(again.mantissa, TSR_RANS_MANTISSA_LIMIT, sizeof again.mantissa);
    for (int t = 0; rans && t < TSR_FIRST_RESIDUAL_TABLE + model.tables; t++)
        if (tsr_table_is_used(&model, t, true)) check_weights(model.weights[t], TSR_RUN_ALPHABET);
    struct tsr_bit_writer writer = tsr_bit_writer(bytes, sizeof bytes);
    tsr_put_residual_model(&writer, &model, rans);
    const size_t size = tsr_flush_bits(&writer);
    reader = tsr_bit_reader(bytes, size);
    FUZZ_PROMISE(!writer.overflow && tsr_get_residual_model(&reader, &again, rans) && tsr_bits_ended(&reader),
                 "a residual model does not come back");
    FUZZ_PROMISE(memcmp(&model, &again, sizeof model) == 0, "another residual model");
}

static void read_coefficient_model(struct tsr_bit_reader reader)
{
    static struct tsr_run_level_model model, again;
    static struct tsr_run_level_decoder decoder;
    static uint8_t bytes[1 << 16];
    memset(&model, 0, sizeof model);
    memset(&again, 0, sizeof again);
    if (!tsr_get_run_level_model(&reader, &model)) return;
    struct tsr_bit_writer writer = tsr_bit_writer(bytes, sizeof bytes);
    tsr_put_run_level_model(&writer, &model);
    const size_t size = tsr_flush_bits(&writer);
    struct tsr_bit_reader second = tsr_bit_reader(bytes, size);
    FUZZ_PROMISE(!writer.overflow && tsr_get_run_level_model(&second, &again) && tsr_bits_ended(&second),
                 "a coefficient model does not come back");
    FUZZ_PROMISE(memcmp(&model, &again, sizeof model) == 0, "another coefficient model");
    tsr_run_level_decoder_init(&decoder, &model);
    int32_t rounds[TSR_BLOCK_SAMPLES];
    for (int i = 0; tsr_run_level_get(&reader, rounds, &decoder, &model, i % TSR_NEIGHBOUR_CLASSES,
                                      i / 3 % TSR_NEIGHBOUR_CLASSES);)
        if (++i == 4096) break; /* tables of single symbols read no bits */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    uint8_t *bytes = fuzz_alloc(size - 2);
    memcpy(bytes, data + 2, size - 2);
    const struct tsr_bit_reader reader = tsr_bit_reader(bytes, size - 2);
    const int symbols = alphabets[data[1] % (sizeof alphabets / sizeof alphabets[0])];
    switch (data[0] & 7) {
    case 0:
        read_lengths(reader, symbols);
        break;
    case 1:
        make_lengths(bytes, size - 2, symbols);
        break;
    case 2:
    case 3:
        read_residual_model(reader, data[0] & 1);
        break;
    case 4:
        read_weights(reader, symbols);
        break;
    case 5:
        read_predictor_model(reader, data[1] % 4);
        break;
    default:
        read_coefficient_model(reader);
    }
    free(bytes);
    return 0;
}

/* ---- The mutator ----------------------------------------------------------------------------------------- */

/* The lengths of a code for random counts of at least one symbol. */
static void random_lengths(struct fuzz_random *random, int symbols, uint8_t *lengths)
{
    static struct tsr_huffman_work work;
    uint32_t counts[TSR_ALPHABET_LIMIT] = {0};
    const uint32_t used = 1 + fuzz_below(random, fuzz_below(random, 2) ? 8 : (uint32_t)symbols);
    for (uint32_t i = 0; i < used; i++)
        counts[fuzz_below(random, (uint32_t)symbols)] = 1 + (fuzz_below(random, 1u << 16) >> fuzz_below(random, 16));
    tsr_huffman_lengths(counts, symbols, lengths, &work);
}

/* Random tables of cells. Returns the number of tables. */
static int random_tables(struct fuzz_random *random, uint8_t *table_of, int cells, int most)
{
    int known = 1;
    table_of[0] = 0;
    for (int c = 1; c < cells; c++) {
        const int table = (int)fuzz_below(random, (uint32_t)(known < most ? known + 1 : known));
        table_of[c] = (uint8_t)table;
        known += table == known;
    }
    return known;
}

static uint8_t random_cuts(struct fuzz_random *random, uint16_t *cuts, int most, int rounds)
{
    const uint32_t wanted = fuzz_below(random, (uint32_t)most + 1);
    uint8_t count = 0;
    for (uint32_t at = 0; count < wanted; count++) {
        at += 1 + fuzz_below(random, (uint32_t)(rounds / most));
        if (at >= (uint32_t)rounds) break;
        cuts[count] = (uint16_t)at;
    }
    return count;
}

static void random_table(struct fuzz_random *random, struct tsr_residual_model *model, int table, bool rans)
{
    const int symbols = table == TSR_RUN_TABLE ? TSR_RUN_ALPHABET : TSR_RESIDUAL_SYMBOLS;
    uint32_t counts[TSR_RUN_ALPHABET] = {0};
    if (!rans) {
        random_lengths(random, symbols, model->lengths[table]);
        return;
    }
    for (uint32_t used = 1 + fuzz_below(random, (uint32_t)symbols); used > 0; used--)
        counts[fuzz_below(random, (uint32_t)symbols)] = 1 + (fuzz_below(random, 1u << 16) >> fuzz_below(random, 16));
    model->mantissa[table] = (uint8_t)tsr_rans_weights(counts, symbols, model->weights[table]);
}

static void put_random_residual_model(struct fuzz_random *random, struct tsr_bit_writer *writer, bool rans)
{
    static struct tsr_residual_model model;
    memset(&model, 0, sizeof model);
    model.lanes = (uint8_t)(1 + fuzz_below(random, 32));
    model.refill_bits = 32;
    random_table(random, &model, TSR_RUN_TABLE, rans);
    if (fuzz_below(random, 2)) random_table(random, &model, TSR_INTERRUPTION_TABLE, rans);
    if (fuzz_below(random, 4)) {
        model.activity_cuts = random_cuts(random, model.activity_cut, TSR_ACTIVITY_GROUPS - 1, TSR_ACTIVITY_BINS);
        model.intensity_cuts = random_cuts(random, model.intensity_cut, TSR_INTENSITY_GROUPS - 1, TSR_INTENSITY_BINS);
        model.tables = (uint8_t)random_tables(random, model.table_of, tsr_model_cells(&model), TSR_TABLE_LIMIT);
    }
    for (int t = 0; t < model.tables; t++) random_table(random, &model, TSR_FIRST_RESIDUAL_TABLE + t, rans);
    tsr_put_residual_model(writer, &model, rans);
}

static void put_random_predictor_model(struct fuzz_random *random, struct tsr_bit_writer *writer, int earlier)
{
    static struct tsr_predictor_model model;
    memset(&model, 0, sizeof model);
    model.set = (uint8_t)(1 + fuzz_below(random, 3));
    model.shape.neighbours = tsr_neighbours_host[model.set];
    model.shape.references = (uint8_t)fuzz_below(random, (uint32_t)tsr_min(earlier, TSR_REFERENCES_LIMIT) + 1);
    model.anchored = fuzz_below(random, 2) != 0;
    model.classes = (uint8_t)(1 + fuzz_below(random, fuzz_below(random, 2) ? 3 : TSR_CLASS_LIMIT));
    for (int c = 0; c < model.classes; c++) {
        int16_t of_feature[TSR_FEATURES_LIMIT];
        for (int f = 0; f < tsr_features(model.shape); f++)
            of_feature[f] = (int16_t)((int)fuzz_below(random, 1601) - 800);
        tsr_complete_weights(model.shape, of_feature, model.weight[c]);
    }
    model.label_tables =
        (uint8_t)random_tables(random, model.label_table_of, model.classes + 2, TSR_LABEL_TABLES_LIMIT);
    for (int t = 0; t < model.label_tables; t++) random_lengths(random, model.classes + 1, model.label_lengths[t]);
    tsr_put_predictor_model(writer, &model);
}

static void put_random_run_level_model(struct fuzz_random *random, struct tsr_bit_writer *writer)
{
    static struct tsr_run_level_model model;
    memset(&model, 0, sizeof model);
    model.dc_tables = (uint8_t)random_tables(random, model.dc_table_of, TSR_DC_CELLS, TSR_DC_CELLS);
    model.ac_tables = (uint8_t)random_tables(random, model.ac_table_of, TSR_AC_CELLS, TSR_TABLE_LIMIT);
    for (int t = 0; t < model.dc_tables; t++) random_lengths(random, TSR_DC_SYMBOLS, model.dc_lengths[t]);
    for (int t = 0; t < model.ac_tables; t++) random_lengths(random, TSR_AC_SYMBOLS, model.ac_lengths[t]);
    tsr_put_run_level_model(writer, &model);
}

/* Chance makes too few descriptions of whole models, so now and then one is made here. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    struct fuzz_random random = {seed};
    if (max_size > 64 && fuzz_below(&random, 64) == 0) {
        struct tsr_bit_writer writer = tsr_bit_writer(data + 2, max_size - 2);
        static const uint8_t kinds[] = {2, 3, 5, 6};
        data[0] = kinds[fuzz_below(&random, 4)];
        data[1] = (uint8_t)fuzz_below(&random, 4);
        if (data[0] < 4)
            put_random_residual_model(&random, &writer, data[0] & 1);
        else if (data[0] == 5)
            put_random_predictor_model(&random, &writer, data[1] % 4);
        else
            put_random_run_level_model(&random, &writer);
        return 2 + tsr_flush_bits(&writer);
    }
    if (size > 2 && fuzz_below(&random, 2)) return 2 + fuzz_mutate_bits(data + 2, size - 2, max_size - 2, &random);
    return LLVMFuzzerMutate(data, size, max_size);
}
