/* kernels/slices/coefficients_cpu.h, entropy/coefficient_rans.h, entropy/coefficient_pairs.h: coefficients to slices
 * and back. FORMAT.md 8.5, 10.5, 10.7. */
#include "tests/unit/support.h"

#include "kernels/slices/coefficients_cpu.h"
#include "kernels/tables/merge_cells_cpu.h"
#include "kernels/blocks/blocks_cpu.h"

enum { MOST = 150, COEFFICIENTS = (MOST + 3) * (MOST + 3), ROOM = 2 * COEFFICIENTS };

static int32_t coefficients[COEFFICIENTS], back[COEFFICIENTS];
static uint8_t payload[16 * COEFFICIENTS], again[16 * COEFFICIENTS];
static uint32_t kept[ROOM];
static union tsr_entry_counts counts;
static struct tsr_merge_work merge;
static struct tsr_huffman_work huffman;
static struct tsr_pair_model pair, pair_back;
static struct tsr_coefficient_model coefficient, coefficient_back;
static tsr_pair_codes pair_codes[TSR_PAIR_TABLES];
static tsr_coefficient_codes coefficient_codes[TSR_COEFFICIENT_TABLES];
static struct tsr_pair_decoder pair_decoder;
static struct tsr_coefficient_decoder coefficient_decoder;

static struct tsr_tile random_tile(struct rng *r)
{
    struct tsr_tile tile = {0};
    tile.width = rng_below(r, 4) ? rng_between(r, 1, MOST) : rng_between(r, 1, 9);
    tile.height = rng_below(r, 4) ? rng_between(r, 1, MOST) : rng_between(r, 1, 9);
    return tile;
}

/* Coefficients: sparse, dense, large, nearly all zero. */
static void fill(struct rng *r, size_t count, int content)
{
    for (size_t i = 0; i < count; i++) {
        const int width = content == 0 ? 2 : content == 1 ? 6 : content == 2 ? 22 : 3;
        const uint32_t rare = content == 0 ? 6 : content == 3 ? 400 : 2;
        coefficients[i] = rng_below(r, rare) ? 0 : (int32_t)rng_width(r, width);
        if (rng_below(r, 2)) coefficients[i] = -coefficients[i];
    }
    if (content == 2) coefficients[rng_below(r, (uint32_t)count)] = TSR_COEFFICIENT_LIMIT - 1;
}

/* Makes tables from counts, writes their description and reads it. */
static void train(bool pairs)
{
    static uint8_t bytes[TSR_FRAME_MODEL_LIMIT];
    struct tsr_bit_writer w = tsr_bit_writer(bytes, sizeof bytes);
    if (pairs) {
        for (int g = 0; g < TSR_PAIR_GROUPS; g++) {
            const int first = g * TSR_ENERGY_CLASSES;
            pair.tables[g] = (uint8_t)tsr_merge_contexts(counts.pair[first], TSR_ENERGY_CLASSES, TSR_PAIR_SYMBOLS,
                                                         pair.table_of + first, &merge);
            for (int t = first; t < first + pair.tables[g]; t++)
                tsr_huffman_lengths(counts.pair[t], TSR_PAIR_SYMBOLS, pair.lengths[t], &huffman);
        }
        tsr_put_pair_model(&w, &pair);
    } else {
        for (int g = 0; g < TSR_COEFFICIENT_GROUPS; g++) {
            const int first = g * TSR_ENERGY_CLASSES;
            coefficient.tables[g] =
                (uint8_t)tsr_merge_contexts(counts.coefficient[first], TSR_ENERGY_CLASSES, TSR_COEFFICIENT_SYMBOLS,
                                            coefficient.table_of + first, &merge);
            for (int t = first; t < first + coefficient.tables[g]; t++)
                coefficient.mantissa[t] =
                    (uint8_t)tsr_rans_weights(counts.coefficient[t], TSR_COEFFICIENT_SYMBOLS, coefficient.weight[t]);
        }
        tsr_put_coefficient_model(&w, &coefficient);
    }
    const size_t size = tsr_flush_bits(&w);
    assert_false(w.overflow);
    struct tsr_bit_reader reader = tsr_bit_reader(bytes, size);
    if (pairs) {
        assert_true(tsr_get_pair_model(&reader, &pair_back));
        for (int t = 0; t < TSR_PAIR_TABLES; t++)
            if (t % TSR_ENERGY_CLASSES < pair.tables[t / TSR_ENERGY_CLASSES])
                tsr_huffman_codewords(pair_back.lengths[t], TSR_PAIR_SYMBOLS, pair_codes[t]);
        tsr_pair_decoder_init(&pair_decoder, &pair_back);
    } else {
        assert_true(tsr_get_coefficient_model(&reader, &coefficient_back));
        for (int t = 0; t < TSR_COEFFICIENT_TABLES; t++)
            if (t % TSR_ENERGY_CLASSES < coefficient.tables[t / TSR_ENERGY_CLASSES])
                tsr_rans_symbols(coefficient_back.weight[t], TSR_COEFFICIENT_SYMBOLS, coefficient_codes[t]);
        tsr_coefficient_decoder_init(&coefficient_decoder, &coefficient_back);
    }
    assert_true(tsr_bits_ended(&reader));
}

TEST(round_trips_and_damage)
{
    struct rng r = {95};
    int refused = 0;
    struct tsr_coefficient_tables tables;
    tables.coefficient = &coefficient_back;
    tables.coefficient_codes = (const tsr_coefficient_codes *)coefficient_codes;
    tables.coefficient_decoder = &coefficient_decoder;
    tables.pair = &pair_back;
    tables.pair_codes = (const tsr_pair_codes *)pair_codes;
    tables.pair_decoder = &pair_decoder;
    for (int n = 0; n < 200; n++) {
        const struct tsr_tile tile = random_tile(&r);
        const struct tsr_coefficient_coding coding = {rng_between(&r, TSR_SLICE_BLOCKS_LEAST, TSR_SLICE_BLOCKS_LIMIT),
                                                      n % 3 ? 0 : rng_between(&r, 0, 15), n & 1};
        const size_t count = tsr_tile_coefficients(tile.width, tile.height);
        void *scratch = must(malloc(tsr_coefficients_scratch_bytes(coding.slice_side)));
        fill(&r, count, n / 2 % 4);
        memset(&counts, 0, sizeof counts);
        memset(&pair, 0, sizeof pair);
        memset(&coefficient, 0, sizeof coefficient);
        pair.magnitude_shift = coefficient.magnitude_shift = (uint8_t)coding.magnitude_shift;
        tsr_count_entries(coefficients, tile, coding, &counts, kept, n % 5 ? ROOM : 40, scratch);
        if (coding.pairs) assert_int_equal(counts.pair[tsr_pair_cell(TSR_PAIR_RUN, 1)][0], 0); /* no such runs */
        train(coding.pairs);
        const size_t size =
            tsr_code_coefficients(coefficients, tile, coding, &tables, kept, payload, sizeof payload, scratch);
        assert_true(size > 0);
        const uint32_t nothing = 0;
        assert_int_equal(
            size, tsr_code_coefficients(coefficients, tile, coding, &tables, &nothing, again, sizeof again, scratch));
        assert_memory_equal(payload, again, size);
        if (size > 4)
            assert_int_equal(tsr_code_coefficients(coefficients, tile, coding, &tables, kept, again, size - 1, scratch),
                             0);
        memset(back, 0x55, sizeof back);
        uint8_t *exact = must(malloc(size + 1));
        memcpy(exact, payload, size);
        assert_true(tsr_decode_coefficients(exact, size, tile, coding, &tables, back));
        assert_memory_equal(coefficients, back, count * sizeof *coefficients);
        for (int damage = 0; damage < 20; damage++) { /* refused, or other coefficients, nothing worse */
            memcpy(exact, payload, size);
            exact[rng_below(&r, (uint32_t)size)] ^= (uint8_t)(1u << rng_below(&r, 8));
            refused += !tsr_decode_coefficients(exact, size - (damage == 0), tile, coding, &tables, back);
        }
        free(exact);
        free(scratch);
    }
    assert_true(refused > 1000);
}

/* The lengths of runs of zero blocks, FORMAT.md 10.5. */
TEST(runs)
{
    for (uint32_t run = 0; run <= 4096; run++) {
        uint32_t entries[4];
        const int symbol = tsr_zero_run_symbol(run), raw_bits = tsr_zero_run_raw_bits(symbol);
        const int count = tsr_zero_run_entries(run, entries);
        assert_int_equal(entries[0] & 255u, symbol);
        assert_int_equal(count, 1 + (raw_bits > 0));
        if (run < 4) {
            assert_int_equal(symbol, run);
            continue;
        }
        const int k = plain_width(run) - 1;
        assert_int_equal(symbol, 4 + 2 * (k - 2) + (int)(run >> (k - 1) & 1));
        assert_int_equal(raw_bits, k - 1);
        assert_int_equal(entries[1] & 0xffffu, run % (1u << (k - 1)));
    }
}

/* The form for this machine's vectors against plain C: counts, payloads and what they decode to; whether damage is
 * seen. Magnitudes about those from which on digits, tokens and low bits are raw. */
TEST(forms)
{
    static union tsr_entry_counts other_counts;
    static int32_t other_back[COEFFICIENTS];
    const struct tsr_coefficient_form *a = tsr_coefficient_form(TSR_ISA_PLAIN),
                                      *b = tsr_coefficient_form(tsr_best_isa());
    const struct tsr_coefficient_tables tables = {&coefficient_back,
                                                  (const tsr_coefficient_codes *)coefficient_codes,
                                                  &coefficient_decoder,
                                                  &pair_back,
                                                  (const tsr_pair_codes *)pair_codes,
                                                  &pair_decoder};
    struct rng r = {102};
    for (int n = 0; n < 300; n++) {
        const struct tsr_tile tile = random_tile(&r);
        const struct tsr_coefficient_coding coding = {rng_between(&r, TSR_SLICE_BLOCKS_LEAST, TSR_SLICE_BLOCKS_LIMIT),
                                                      n % 3 ? 0 : rng_between(&r, 0, 15), n & 1};
        const size_t count = tsr_tile_coefficients(tile.width, tile.height);
        void *scratch = must(malloc(tsr_coefficients_scratch_bytes(coding.slice_side)));
        fill(&r, count, n / 2 % 4);
        for (size_t i = 0; i < count && n % 4 > 1; i++)
            if (rng_below(&r, 6) == 0) coefficients[i] = rng_between(&r, -18, 18);
        if (n % 9 == 0) coefficients[rng_below(&r, (uint32_t)count)] = rng_below(&r, 2) ? -32768 : 32767;
        memset(&counts, 0, sizeof counts);
        memset(&other_counts, 0, sizeof other_counts);
        memset(&pair, 0, sizeof pair);
        memset(&coefficient, 0, sizeof coefficient);
        pair.magnitude_shift = coefficient.magnitude_shift = (uint8_t)coding.magnitude_shift;
        b->count(coefficients, tile, coding, &other_counts, kept, ROOM, scratch);
        a->count(coefficients, tile, coding, &counts, kept, ROOM, scratch);
        expect(memcmp(&counts, &other_counts, sizeof counts) == 0, "try %d: other counts", n);
        train(coding.pairs); /* uses counts up */
        const size_t size = a->code(coefficients, tile, coding, &tables, kept, payload, sizeof payload, scratch);
        b->count(coefficients, tile, coding, &other_counts, kept, n % 5 ? ROOM : 40, scratch);
        memset(again, 0x5a, size + 64); /* exactly the size is enough for pairs, rANS wants 4 bytes more */
        const size_t capacity = size + (coding.pairs ? 0 : 8);
        assert_int_equal(size, b->code(coefficients, tile, coding, &tables, kept, again, capacity, scratch));
        assert_memory_equal(payload, again, size);
        for (size_t i = capacity; i < size + 64; i++) assert_int_equal(again[i], 0x5a);
        for (int damage = 0; damage < 10; damage++) {
            memset(back, 0x55, sizeof back);
            memset(other_back, 0x55, sizeof other_back);
            const bool good = a->decode(payload, size, tile, coding, &tables, back);
            assert_int_equal(good, b->decode(payload, size, tile, coding, &tables, other_back));
            if (good) assert_memory_equal(back, other_back, sizeof back);
            payload[rng_below(&r, (uint32_t)size)] ^= (uint8_t)(1u << rng_below(&r, 8));
        }
        free(scratch);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(round_trips_and_damage), cmocka_unit_test(runs),
                                       cmocka_unit_test(forms)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
