/* entropy/rans.h: frequencies, their description, states that share words, strings of one state. FORMAT.md 10.6. */
#include "tests/unit/support.h"

#include "entropy/rans.h"

enum { SYMBOLS = 200, LANES = 8, LENGTH = 3000 };

static void random_counts(struct rng *rng, uint32_t *counts, int symbols, uint32_t sparse, int width)
{
    for (int s = 0; s < symbols; s++) counts[s] = rng_below(rng, sparse) ? 0 : rng_width(rng, width);
}

TEST(frequencies_add_up)
{
    struct rng rng = {1};
    for (int i = 0; i < 400; i++) {
        uint32_t counts[TSR_RANS_ALPHABET];
        uint16_t frequency[TSR_RANS_ALPHABET];
        const int symbols = 1 + (int)rng_below(&rng, TSR_RANS_ALPHABET);
        uint32_t sum = 0, any = 0;
        random_counts(&rng, counts, symbols, 1 + rng_below(&rng, 20), 22);
        tsr_rans_normalise(counts, symbols, frequency);
        for (int s = 0; s < symbols; s++) {
            expect((frequency[s] > 0) == (counts[s] > 0), "try %d symbol %d", i, s);
            sum += frequency[s];
            any |= counts[s];
        }
        expect(sum == (any ? 4096u : 0u), "try %d", i);
    }
}

/* It never saves bits to move one of the 4096ths from a symbol to another. */
TEST(frequencies_are_the_best)
{
    struct rng rng = {2};
    for (int i = 0; i < 100; i++) {
        uint32_t counts[12];
        uint16_t frequency[12];
        random_counts(&rng, counts, 12, 2, 16);
        tsr_rans_normalise(counts, 12, frequency);
        for (int a = 0; a < 12; a++)
            for (int b = 0; b < 12; b++) {
                if (a == b || frequency[a] < 2 || frequency[b] == 0) continue;
                /* count[b] / (2 f[b] + 1) <= count[a] / (2 f[a] - 1): nearly the optimum, so with some slack */
                const double gain = (double)counts[b] / (2 * frequency[b] + 1);
                const double loss = (double)counts[a] / (2 * frequency[a] - 1);
                expect(gain <= loss * 1.5 + 1, "try %d: %d to %d", i, a, b);
            }
    }
}

TEST(descriptions_come_back)
{
    struct rng rng = {3};
    for (int i = 0; i < 400; i++) {
        uint32_t counts[SYMBOLS];
        uint16_t weight[SYMBOLS], again[SYMBOLS];
        uint8_t bytes[1024];
        random_counts(&rng, counts, SYMBOLS, 1 + rng_below(&rng, 30), 20);
        counts[rng_below(&rng, SYMBOLS)]++;
        const int mantissa = tsr_rans_weights(counts, SYMBOLS, weight);
        struct tsr_bit_writer writer = tsr_bit_writer(bytes, sizeof bytes);
        tsr_put_weights(&writer, weight, SYMBOLS, mantissa);
        const size_t size = tsr_flush_bits(&writer);
        assert_false(writer.overflow);
        struct tsr_bit_reader reader = tsr_bit_reader(bytes, size);
        assert_true(tsr_get_weights(&reader, again, SYMBOLS));
        assert_true(tsr_bits_ended(&reader));
        assert_memory_equal(weight, again, sizeof weight);
    }
}

TEST(bad_descriptions_are_refused)
{
    struct rng rng = {4};
    int taken = 0;
    for (int i = 0; i < 20000; i++) {
        uint8_t bytes[64];
        uint16_t weight[SYMBOLS], frequency[SYMBOLS];
        for (size_t j = 0; j < sizeof bytes; j++) bytes[j] = (uint8_t)rng_next(&rng);
        struct tsr_bit_reader reader = tsr_bit_reader(bytes, sizeof bytes);
        if (!tsr_get_weights(&reader, weight, SYMBOLS)) continue;
        uint32_t sum = 0;
        tsr_rans_frequencies(weight, SYMBOLS, frequency);
        for (int s = 0; s < SYMBOLS; s++) sum += frequency[s];
        expect(sum == 4096, "try %d", i);
        taken++;
    }
    assert_true(taken > 0);
    const uint8_t beyond[2] = {0x00, 0x40}; /* mantissa 0, highest symbol 511 and no more */
    uint16_t weight[SYMBOLS];
    struct tsr_bit_reader reader = tsr_bit_reader(beyond, 2);
    assert_false(tsr_get_weights(&reader, weight, SYMBOLS));
}

struct step {
    uint8_t symbol, raw_bits;
    uint16_t raw;
};

static void random_steps(struct rng *rng, const uint32_t *counts, struct step *steps, int length)
{
    for (int i = 0; i < length; i++) {
        int s = (int)rng_below(rng, SYMBOLS);
        while (counts[s] == 0) s = (s + 1) % SYMBOLS;
        steps[i].symbol = (uint8_t)s;
        steps[i].raw_bits = (uint8_t)(rng_below(rng, 3) ? 0 : rng_below(rng, 17));
        steps[i].raw = (uint16_t)(rng_next(rng) & ((1u << steps[i].raw_bits) - 1u));
    }
}

/* Lanes take turns on one sequence of words. */
TEST(lanes_share_words)
{
    struct rng rng = {5};
    static struct step steps[LENGTH];
    static uint16_t words[2 * LENGTH + 2];
    static struct tsr_rans_decoder decoder;
    for (int i = 0; i < 60; i++) {
        uint32_t counts[SYMBOLS];
        uint16_t weight[SYMBOLS];
        struct tsr_rans_symbol symbols[SYMBOLS];
        uint32_t state_of[LANES];
        random_counts(&rng, counts, SYMBOLS, i < 10 ? 1000 : 1 + rng_below(&rng, 30), 20);
        counts[rng_below(&rng, SYMBOLS)]++;
        tsr_rans_weights(counts, SYMBOLS, weight);
        tsr_rans_symbols(weight, SYMBOLS, symbols);
        tsr_rans_decoder_init(&decoder, weight, SYMBOLS);
        random_steps(&rng, counts, steps, LENGTH);
        int first = COUNT_OF(words);
        for (int l = 0; l < LANES; l++) state_of[l] = TSR_RANS_LOW;
        for (int k = LENGTH - 1; k >= 0; k--) {
            uint32_t *lane = &state_of[k % LANES];
            uint16_t word;
            if (steps[k].raw_bits > 0 && tsr_rans_put_raw(lane, steps[k].raw, steps[k].raw_bits, &word))
                words[--first] = word;
            if (tsr_rans_put(lane, &symbols[steps[k].symbol], &word)) words[--first] = word;
        }
        for (int k = 0; k < LENGTH; k++) {
            uint32_t *lane = &state_of[k % LANES];
            expect(*lane >= TSR_RANS_LOW, "step %d", k);
            expect(tsr_rans_get(lane, &decoder) == steps[k].symbol, "try %d step %d", i, k);
            if (tsr_rans_wants_word(*lane)) *lane = tsr_rans_with_word(*lane, words[first++]);
            expect(tsr_rans_get_raw(lane, steps[k].raw_bits) == steps[k].raw, "try %d step %d", i, k);
            if (tsr_rans_wants_word(*lane)) *lane = tsr_rans_with_word(*lane, words[first++]);
        }
        for (int l = 0; l < LANES; l++) assert_int_equal(state_of[l], TSR_RANS_LOW);
        assert_int_equal(first, COUNT_OF(words));
    }
}

/* The decoder's buckets give the same symbols as its slots. */
TEST(buckets)
{
    struct rng rng = {7};
    static struct tsr_rans_decoder decoder;
    static struct tsr_rans_buckets buckets;
    for (int i = 0; i < 200; i++) {
        uint32_t counts[SYMBOLS];
        uint16_t weight[SYMBOLS];
        random_counts(&rng, counts, SYMBOLS, i < 10 ? 1000 : 1 + rng_below(&rng, 30), 20);
        if (i > 0) counts[rng_below(&rng, SYMBOLS)]++;
        if (i == 0) memset(counts, 0, sizeof counts);
        if (i == 0)
            memset(weight, 0, sizeof weight);
        else
            tsr_rans_weights(counts, SYMBOLS, weight);
        tsr_rans_decoder_init(&decoder, weight, SYMBOLS);
        tsr_rans_buckets_init(&buckets, weight, SYMBOLS, 0);
        for (uint32_t slot = 0; slot < TSR_RANS_TOTAL; slot++) {
            uint32_t by_slot = rng_below(&rng, 1 << 20) << TSR_RANS_BITS | slot, by_bucket = by_slot;
            expect(tsr_rans_get(&by_slot, &decoder) == tsr_rans_get_bucket(&by_bucket, &buckets), "try %d slot %u", i,
                   slot);
            assert_int_equal(by_slot, by_bucket);
        }
    }
}

TEST(strings_come_back)
{
    struct rng rng = {6};
    static struct step steps[LENGTH];
    static uint8_t bytes[4 * LENGTH + 4];
    static struct tsr_rans_buckets decoder;
    for (int i = 0; i < 600; i++) {
        uint32_t counts[SYMBOLS];
        uint16_t weight[SYMBOLS], frequency[SYMBOLS];
        struct tsr_rans_symbol symbols[SYMBOLS];
        const int length = i < 300 ? i % 30 : (int)rng_below(&rng, LENGTH);
        double bits = 0;
        random_counts(&rng, counts, SYMBOLS, 1 + rng_below(&rng, 60), 20);
        counts[rng_below(&rng, SYMBOLS)]++;
        tsr_rans_weights(counts, SYMBOLS, weight);
        tsr_rans_symbols(weight, SYMBOLS, symbols);
        tsr_rans_frequencies(weight, SYMBOLS, frequency);
        tsr_rans_buckets_init(&decoder, weight, SYMBOLS, 0);
        random_steps(&rng, counts, steps, length);
        struct tsr_rans_writer writer = tsr_rans_writer(bytes, sizeof bytes);
        for (int k = length - 1; k >= 0; k--) {
            if (steps[k].raw_bits > 0) tsr_rans_write_raw(&writer, steps[k].raw, steps[k].raw_bits);
            tsr_rans_write(&writer, &symbols[steps[k].symbol]);
            bits += steps[k].raw_bits + (12 * 4096 - (double)tsr_log2_cost(frequency[steps[k].symbol])) / 4096;
        }
        tsr_rans_finish(&writer);
        assert_false(writer.overflow);
        const size_t size = sizeof bytes - writer.first;
        expect((double)size * 8 <= bits * 1.002 + 20, "try %d: %zu bytes for %.1f bits", i, size, bits);
        struct tsr_rans_reader reader = tsr_rans_reader(bytes + writer.first, size);
        for (int k = 0; k < length; k++) {
            expect(tsr_rans_read(&reader, &decoder) == steps[k].symbol, "try %d step %d", i, k);
            expect(tsr_rans_read_raw(&reader, steps[k].raw_bits) == steps[k].raw, "try %d step %d", i, k);
        }
        assert_true(tsr_rans_ended(&reader));
    }
}

TEST(one_symbol_costs_nothing)
{
    const uint32_t counts[3] = {0, 77, 0};
    uint16_t weight[3];
    struct tsr_rans_symbol symbols[3];
    static struct tsr_rans_buckets decoder;
    uint8_t bytes[8];
    tsr_rans_weights(counts, 3, weight);
    tsr_rans_symbols(weight, 3, symbols);
    tsr_rans_buckets_init(&decoder, weight, 3, 0);
    struct tsr_rans_writer writer = tsr_rans_writer(bytes, sizeof bytes);
    for (int i = 0; i < 1000; i++) tsr_rans_write(&writer, &symbols[1]);
    tsr_rans_finish(&writer);
    assert_int_equal(writer.first, sizeof bytes);
    struct tsr_rans_reader reader = tsr_rans_reader(bytes, 0);
    for (int i = 0; i < 1000; i++) assert_int_equal(tsr_rans_read(&reader, &decoder), 1);
    assert_true(tsr_rans_ended(&reader));
}

TEST(a_full_writer_says_so)
{
    uint8_t bytes[3];
    struct tsr_rans_writer writer = tsr_rans_writer(bytes, sizeof bytes);
    for (int i = 0; i < 10; i++) tsr_rans_write_raw(&writer, (uint32_t)i * 7919u, 16);
    tsr_rans_finish(&writer);
    assert_true(writer.overflow);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frequencies_add_up),     cmocka_unit_test(frequencies_are_the_best),
        cmocka_unit_test(descriptions_come_back), cmocka_unit_test(bad_descriptions_are_refused),
        cmocka_unit_test(lanes_share_words),      cmocka_unit_test(buckets),
        cmocka_unit_test(strings_come_back),      cmocka_unit_test(one_symbol_costs_nothing),
        cmocka_unit_test(a_full_writer_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
