/* entropy/huffman.h: optimal lengths, canonical codewords, decoding, descriptions. FORMAT.md 7.6. */
#include "tests/unit/support.h"

#include "entropy/huffman.h"

enum { FEW = 40 };

/* The least cost of a complete code of at most 12 bits. Tries all numbers of codewords of each length. The counts of
 * symbols fall; after[i] is the sum of counts i, i + 1 ... An open node of a round becomes a codeword or two nodes of
 * the next round. */
static uint64_t least_cost(const uint32_t *falling, int n)
{
    static uint64_t cost[TSR_CODE_LIMIT + 2][FEW + 1][FEW + 1];
    uint64_t behind[FEW + 1];
    behind[n] = 0;
    for (int i = n - 1; i >= 0; i--) behind[i] = behind[i + 1] + falling[i];
    for (int round = TSR_CODE_LIMIT + 1; round > 0; round--)
        for (int done = 0; done <= n; done++)
            for (int open = 0; open <= n; open++) {
                uint64_t best = UINT64_MAX;
                if (done == n) {
                    if (open == 0) best = 0;
                } else if (round <= TSR_CODE_LIMIT) {
                    for (int take = 0; take <= open && take <= n - done; take++) {
                        const int next = 2 * (open - take);
                        if (next > n) continue;
                        const uint64_t rest = cost[round + 1][done + take][next];
                        if (rest != UINT64_MAX && behind[done] + rest < best) best = behind[done] + rest;
                    }
                }
                cost[round][done][open] = best;
            }
    return cost[1][0][2];
}

static int compare_falling(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x < y) - (x > y);
}

static void check_optimal(const uint32_t *counts, int symbols)
{
    static struct tsr_huffman_work work;
    uint8_t lengths[FEW];
    uint32_t falling[FEW];
    uint64_t cost = 0;
    int used = 0, kraft = 0;
    tsr_huffman_lengths(counts, symbols, lengths, &work);
    for (int s = 0; s < symbols; s++) {
        assert_int_equal(lengths[s] > 0, counts[s] > 0);
        assert_true(lengths[s] <= TSR_CODE_LIMIT);
        if (counts[s] == 0) continue;
        falling[used++] = counts[s];
        cost += (uint64_t)counts[s] * lengths[s];
        kraft += 4096 >> lengths[s];
    }
    assert_int_equal(tsr_huffman_check(lengths, symbols), used);
    if (used < 2) return;
    assert_int_equal(kraft, 4096);
    qsort(falling, (size_t)used, sizeof falling[0], compare_falling);
    expect(cost == least_cost(falling, used), "%d symbols cost %llu", used, (unsigned long long)cost);
}

TEST(lengths_are_optimal)
{
    struct rng r = {19};
    uint32_t counts[FEW];
    for (int n = 0; n < 400; n++) {
        const int symbols = rng_between(&r, 1, n < 300 ? 16 : FEW);
        for (int s = 0; s < symbols; s++) counts[s] = n % 5 == 0 ? rng_below(&r, 3) : rng_width(&r, 2 + n % 24);
        check_optimal(counts, symbols);
    }
}

/* Fibonacci numbers make the deepest trees: here the limit of 12 bits takes effect. */
TEST(lengths_at_the_limit)
{
    uint32_t counts[FEW] = {1, 1};
    for (int s = 2; s < FEW; s++) counts[s] = counts[s - 1] + counts[s - 2];
    for (int symbols = 2; symbols <= FEW; symbols++) check_optimal(counts, symbols);
    for (int s = 0; s < FEW; s++) counts[s] = s < 31 ? 1u << s : 1u;
    for (int symbols = 2; symbols <= FEW; symbols++) check_optimal(counts, symbols);
}

/* Random lengths of a complete code. Some of the symbols have no codeword (length 0). */
static void random_code(struct rng *r, uint8_t *lengths, int symbols)
{
    static struct tsr_huffman_work work;
    uint32_t counts[TSR_ALPHABET_LIMIT];
    const uint32_t density = rng_below(r, 5);
    const int width = rng_between(r, 1, 24);
    for (int s = 0; s < symbols; s++) counts[s] = rng_below(r, 5) < density ? 0 : 1u + rng_width(r, width);
    counts[rng_below(r, (uint32_t)symbols)] = 1;
    tsr_huffman_lengths(counts, symbols, lengths, &work);
    assert_true(tsr_huffman_check(lengths, symbols) > 0);
}

/* FORMAT.md 7.6: in order of length, then of symbol, each codeword is the previous one plus 1, shifted. */
TEST(codewords_and_decoding)
{
    static struct tsr_huffman_decoder decoder;
    struct tsr_codeword words[TSR_ALPHABET_LIMIT];
    uint8_t lengths[TSR_ALPHABET_LIMIT];
    struct rng r = {20};
    for (int n = 0; n < 300; n++) {
        const int symbols = n < 10 ? TSR_ALPHABET_LIMIT : rng_between(&r, 1, TSR_ALPHABET_LIMIT);
        random_code(&r, lengths, symbols);
        tsr_huffman_codewords(lengths, symbols, words);
        tsr_huffman_decoder_init(&decoder, lengths, symbols);
        const int used = tsr_huffman_check(lengths, symbols);
        uint32_t code = 0, before = 0, next = 0; /* next: the 12 bits where the codeword's strings begin */
        for (unsigned length = 1; length <= TSR_CODE_LIMIT; length++)
            for (int s = 0; s < symbols; s++) {
                if (lengths[s] != length) continue;
                if (used == 1) { /* its codeword is empty */
                    assert_int_equal(words[s].length, 0);
                    for (uint32_t bits = 0; bits < 4096; bits++)
                        assert_int_equal(tsr_huffman_decode(&decoder, bits), s << 4);
                    continue;
                }
                if (before) code = (code + 1) << (length - before);
                before = length;
                assert_int_equal(words[s].length, length);
                assert_int_equal(words[s].bits, code);
                assert_int_equal(next, code << (12 - length));
                for (; next < (code + 1) << (12 - length); next++)
                    assert_int_equal(tsr_huffman_decode(&decoder, next), s << 4 | (int)length);
            }
        if (used > 1) assert_int_equal(next, 4096);
    }
}

TEST(no_symbols)
{
    static struct tsr_huffman_decoder decoder;
    static struct tsr_huffman_work work;
    uint8_t lengths[8];
    static const uint32_t counts[8];
    tsr_huffman_lengths(counts, 8, lengths, &work);
    assert_int_equal(tsr_huffman_check(lengths, 8), 0);
    tsr_huffman_decoder_init(&decoder, lengths, 8);
    for (uint32_t bits = 0; bits < 4096; bits++) assert_int_equal(tsr_huffman_decode(&decoder, bits), TSR_NO_CODE << 4);
}

TEST(descriptions)
{
    uint8_t lengths[TSR_ALPHABET_LIMIT], back[TSR_ALPHABET_LIMIT], bytes[2048];
    struct rng r = {21};
    for (int n = 0; n < 1000; n++) {
        const int symbols = rng_between(&r, 1, TSR_ALPHABET_LIMIT);
        random_code(&r, lengths, symbols);
        struct tsr_bit_writer w = tsr_bit_writer(bytes, sizeof bytes);
        tsr_put_lengths(&w, lengths, symbols);
        const size_t size = tsr_flush_bits(&w);
        assert_false(w.overflow);
        struct tsr_bit_reader reader = tsr_bit_reader(bytes, size);
        memset(back, 0xa5, sizeof back);
        assert_true(tsr_get_lengths(&reader, back, symbols));
        assert_true(tsr_bits_ended(&reader));
        assert_memory_equal(back, lengths, (size_t)symbols);
        if (symbols < TSR_ALPHABET_LIMIT) assert_int_equal(back[symbols], 0xa5);
        const size_t cut = rng_below(&r, (uint32_t)size); /* a string that ends too early is invalid */
        reader = tsr_bit_reader(bytes, cut);
        if (tsr_get_lengths(&reader, back, symbols)) fail_case(__FILE__, __LINE__, "refused", "cut at %zu", cut);
    }
}

static size_t parse_bits(const char *text, uint8_t *bytes, size_t capacity)
{
    struct tsr_bit_writer w = tsr_bit_writer(bytes, capacity);
    for (; *text; text++)
        if (*text != ' ') tsr_put_bits(&w, *text == '1', 1);
    return tsr_flush_bits(&w);
}

/* Strings written by hand after FORMAT.md 7.6. */
TEST(descriptions_by_hand)
{
    static const struct {
        const char *bits;
        int symbols;
        bool good;
        uint8_t lengths[8];
    } cases[] = {
        {"00100 001 001 0000 0001 1", 8, false, {0}},               /* 3 2 1 1: over-full */
        {"00100 001 1 01 01", 8, false, {0}},                       /* 3 3 4 5: incomplete */
        {"00100 0000 0001 01 01 1", 8, true, {1, 2, 3, 3}},         /* highest 3: 1, +1, +1, same */
        {"00101 0001 1 0000 0010 1 001 01", 8, false, {0}},         /* highest 4: gap, 2 2 1 2: over-full */
        {"00101 0001 1 0000 0010 1 1 1", 8, true, {0, 2, 2, 2, 2}}, /* highest 4: gap, 2 2 2 2 */
        {"1 1", 8, true, {4}},                                      /* a single symbol of any length */
        {"011 0001 010 1", 8, true, {0, 0, 4}},                     /* highest 2: two without, then length 4 */
        {"011 0001 011 1", 8, false, {0}},                          /* three without: the highest has one */
        {"011 0000 0001 0001 010", 8, false, {0}}, /* length 1, then two without: the highest is one of them */
        {"1 0000 0000", 8, false, {0}},            /* length 0 */
        {"1 0000 1101", 8, false, {0}},            /* length 13 */
        {"010 0000 1100 01", 8, false, {0}},       /* 12, then 13 */
        {"010 0000 0001 001", 8, false, {0}},      /* 1, then 0 */
        {"0001000 1", 7, false, {0}},              /* highest 7 of 7 symbols */
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        uint8_t bytes[16], lengths[8] = {0};
        const size_t size = parse_bits(cases[i].bits, bytes, sizeof bytes);
        struct tsr_bit_reader reader = tsr_bit_reader(bytes, size);
        const bool good = tsr_get_lengths(&reader, lengths, cases[i].symbols);
        expect(good == cases[i].good, "case %zu", i);
        if (good) assert_memory_equal(lengths, cases[i].lengths, (size_t)cases[i].symbols);
    }
}

/* Of random bytes, only complete codes are accepted. */
TEST(garbage)
{
    struct rng r = {22};
    for (int n = 0; n < 20000; n++) {
        uint8_t lengths[TSR_ALPHABET_LIMIT];
        const size_t size = 1 + rng_below(&r, 60);
        uint8_t *bytes = must(malloc(size));
        for (size_t i = 0; i < size; i++) bytes[i] = (uint8_t)rng_next(&r);
        const int symbols = rng_between(&r, 1, TSR_ALPHABET_LIMIT);
        struct tsr_bit_reader reader = tsr_bit_reader(bytes, size);
        if (tsr_get_lengths(&reader, lengths, symbols)) assert_true(tsr_huffman_check(lengths, symbols) > 0);
        free(bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lengths_are_optimal),
                                       cmocka_unit_test(lengths_at_the_limit),
                                       cmocka_unit_test(codewords_and_decoding),
                                       cmocka_unit_test(no_symbols),
                                       cmocka_unit_test(descriptions),
                                       cmocka_unit_test(descriptions_by_hand),
                                       cmocka_unit_test(garbage)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
