/* entropy/cavlc.h against a decoder that follows H.264 9.2 literally, with the codewords of CAVLC.md 2. */
#include "tests/unit/support.h"

#include "entropy/cavlc.h"

/* clang-format off */
static const char *const coeff_tokens[3][17][4] = {
    {
        {"1"},
        {"000101", "01"},
        {"00000111", "000100", "001"},
        {"000000111", "00000110", "0000101", "00011"},
        {"0000000111", "000000110", "00000101", "000011"},
        {"00000000111", "0000000110", "000000101", "0000100"},
        {"0000000001111", "00000000110", "0000000101", "00000100"},
        {"0000000001011", "0000000001110", "00000000101", "000000100"},
        {"0000000001000", "0000000001010", "0000000001101", "0000000100"},
        {"00000000001111", "00000000001110", "0000000001001", "00000000100"},
        {"00000000001011", "00000000001010", "00000000001101", "0000000001100"},
        {"000000000001111", "000000000001110", "00000000001001", "00000000001100"},
        {"000000000001011", "000000000001010", "000000000001101", "00000000001000"},
        {"0000000000001111", "000000000000001", "000000000001001", "000000000001100"},
        {"0000000000001011", "0000000000001110", "0000000000001101", "000000000001000"},
        {"0000000000000111", "0000000000001010", "0000000000001001", "0000000000001100"},
        {"0000000000000100", "0000000000000110", "0000000000000101", "0000000000001000"},
    },
    {
        {"11"},
        {"001011", "10"},
        {"000111", "00111", "011"},
        {"0000111", "001010", "001001", "0101"},
        {"00000111", "000110", "000101", "0100"},
        {"00000100", "0000110", "0000101", "00110"},
        {"000000111", "00000110", "00000101", "001000"},
        {"00000001111", "000000110", "000000101", "000100"},
        {"00000001011", "00000001110", "00000001101", "0000100"},
        {"000000001111", "00000001010", "00000001001", "000000100"},
        {"000000001011", "000000001110", "000000001101", "00000001100"},
        {"000000001000", "000000001010", "000000001001", "00000001000"},
        {"0000000001111", "0000000001110", "0000000001101", "000000001100"},
        {"0000000001011", "0000000001010", "0000000001001", "0000000001100"},
        {"0000000000111", "00000000001011", "0000000000110", "0000000001000"},
        {"00000000001001", "00000000001000", "00000000001010", "0000000000001"},
        {"00000000000111", "00000000000110", "00000000000101", "00000000000100"},
    },
    {
        {"1111"},
        {"001111", "1110"},
        {"001011", "01111", "1101"},
        {"001000", "01100", "01110", "1100"},
        {"0001111", "01010", "01011", "1011"},
        {"0001011", "01000", "01001", "1010"},
        {"0001001", "001110", "001101", "1001"},
        {"0001000", "001010", "001001", "1000"},
        {"00001111", "0001110", "0001101", "01101"},
        {"00001011", "00001110", "0001010", "001100"},
        {"000001111", "00001010", "00001101", "0001100"},
        {"000001011", "000001110", "00001001", "00001100"},
        {"000001000", "000001010", "000001101", "00001000"},
        {"0000001101", "000000111", "000001001", "000001100"},
        {"0000001001", "0000001100", "0000001011", "0000001010"},
        {"0000000101", "0000001000", "0000000111", "0000000110"},
        {"0000000001", "0000000100", "0000000011", "0000000010"},
    },
};
static const char *const total_zeros[15] = {
    "1 011 010 0011 0010 00011 00010 000011 000010 0000011 0000010 00000011 00000010 000000011 000000010 000000001",
    "111 110 101 100 011 0101 0100 0011 0010 00011 00010 000011 000010 000001 000000",
    "0101 111 110 101 0100 0011 100 011 0010 00011 00010 000001 00001 000000",
    "00011 111 0101 0100 110 101 100 0011 011 0010 00010 00001 00000",
    "0101 0100 0011 111 110 101 100 011 0010 00001 0001 00000",
    "000001 00001 111 110 101 100 011 010 0001 001 000000",
    "000001 00001 101 100 011 11 010 0001 001 000000",
    "000001 0001 00001 011 11 10 010 001 000000",
    "000001 000000 0001 11 10 001 01 00001",
    "00001 00000 001 11 10 01 0001",
    "0000 0001 001 010 1 011",
    "0000 0001 01 1 001",
    "000 001 1 01",
    "00 01 1",
    "0 1",
};
static const char *const run_befores[7] = {
    "1 0",
    "1 01 00",
    "11 10 01 00",
    "11 10 01 001 000",
    "11 10 011 010 001 000",
    "11 000 001 011 010 101 100",
    "111 110 101 100 011 010 001 0001 00001 000001 0000001 00000001 000000001 0000000001 00000000001",
};
/* clang-format on */

/* Word number n of a list, and its length. */
static const char *word_at(const char *list, int n, int *length)
{
    for (; n > 0; n--) {
        list = strchr(list, ' ');
        if (!list) return NULL;
        list++;
    }
    *length = (int)strcspn(list, " ");
    return list;
}

/* ---- A plain decoder --------------------------------------------------------------------------------------- */

/* A string of bits as digits '0' and '1'. */
struct digits {
    char digit[8192];
    int count, at;
};

static void digits_of(struct digits *d, const uint8_t *bytes, size_t bits)
{
    assert_true(bits < sizeof d->digit);
    for (size_t i = 0; i < bits; i++) d->digit[i] = bytes[i / 8] >> (7 - i % 8) & 1 ? '1' : '0';
    d->digit[bits] = '\0';
    d->count = (int)bits;
    d->at = 0;
}

static uint32_t take(struct digits *d, int count)
{
    uint32_t value = 0;
    for (; count > 0; count--) {
        assert_true(d->at < d->count);
        value = value << 1 | (d->digit[d->at++] == '1');
    }
    return value;
}

static bool take_word(struct digits *d, const char *word, int length)
{
    if (!word || strncmp(d->digit + d->at, word, (size_t)length) != 0) return false;
    d->at += length;
    return true;
}

static int take_from(struct digits *d, const char *list)
{
    const char *word;
    int length;
    for (int n = 0; (word = word_at(list, n, &length)); n++)
        if (take_word(d, word, length)) return n;
    fail_case(__FILE__, __LINE__, "a codeword", "at bit %d of %s", d->at, d->digit);
    return -1;
}

static void take_token(struct digits *d, int context, int *total, int *ones)
{
    if (context >= 8) {
        const uint32_t fixed = take(d, 6);
        *total = fixed == 3 ? 0 : (int)(fixed / 4) + 1;
        *ones = fixed == 3 ? 0 : (int)(fixed % 4);
        return;
    }
    for (*total = 0; *total <= 16; ++*total)
        for (*ones = 0; *ones <= 3 && *ones <= *total; ++*ones) {
            const char *word = coeff_tokens[context < 2 ? 0 : context < 4 ? 1 : 2][*total][*ones];
            if (take_word(d, word, (int)strlen(word))) return;
        }
    fail_case(__FILE__, __LINE__, "a coeff_token", "at bit %d of %s", d->at, d->digit);
}

/* 9.2.2.1, with prefixes up to 26: one coefficient code. */
static int64_t take_coefficient_code(struct digits *d, int suffix_length)
{
    int prefix = 0;
    while (take(d, 1) == 0) prefix++;
    assert_true(prefix <= 26);
    int64_t code = (int64_t)(prefix < 15 ? prefix : 15) << suffix_length;
    const int size = prefix == 14 && suffix_length == 0 ? 4 : prefix >= 15 ? prefix - 3 : suffix_length;
    if (size > 0) code += take(d, size);
    if (prefix >= 15 && suffix_length == 0) code += 15;
    if (prefix >= 16) code += ((int64_t)1 << (prefix - 3)) - 4096;
    return code;
}

/* 9.2: a block of count coefficients. Returns the number of those that are not 0. */
static int take_block(struct digits *d, int32_t *coefficients, int count, int context)
{
    int total, ones, zeros_left = 0, run[16];
    int64_t coefficient[16];
    take_token(d, context, &total, &ones);
    int suffix_length = total > 10 && ones < 3 ? 1 : 0;
    for (int i = 0; i < total; i++) {
        if (i < ones) {
            coefficient[i] = 1 - 2 * (int)take(d, 1);
            continue;
        }
        int64_t code = take_coefficient_code(d, suffix_length);
        if (i == ones && ones < 3) code += 2;
        coefficient[i] = code % 2 == 0 ? (code + 2) >> 1 : (-code - 1) / 2;
        if (suffix_length == 0) suffix_length = 1;
        if (llabs(coefficient[i]) > 3 << (suffix_length - 1) && suffix_length < 6) suffix_length++;
    }
    if (total > 0 && total < count) zeros_left = take_from(d, total_zeros[total - 1]);
    for (int i = 0; i < total; i++) {
        run[i] = 0;
        if (i + 1 == total)
            run[i] = zeros_left;
        else if (zeros_left > 0)
            run[i] = take_from(d, run_befores[(zeros_left < 7 ? zeros_left : 7) - 1]);
        zeros_left -= run[i];
    }
    for (int i = 0; i < count; i++) coefficients[i] = 0;
    int place = -1;
    for (int i = total - 1; i >= 0; i--) {
        place += run[i] + 1;
        coefficients[place] = (int32_t)coefficient[i];
    }
    return total;
}

/* ---- Blocks ------------------------------------------------------------------------------------------------ */

static struct tsr_cavlc_reader tables;

static int make_tables(void **state)
{
    (void)state;
    tsr_cavlc_reader_init(&tables);
    return 0;
}

/* Codes a block, checks its measured size, reads it back with both decoders. Its bits come back as digits. */
static void check(const int32_t *coefficients, int count, int context, struct digits *digits)
{
    uint8_t bytes[128];
    int32_t back[16];
    int total = 0;
    for (int i = 0; i < count; i++) total += coefficients[i] != 0;
    struct tsr_bit_writer w = tsr_bit_writer(bytes, sizeof bytes);
    assert_int_equal(tsr_cavlc_put(&w, coefficients, count, context), total);
    const size_t bits = 8 * w.used + (size_t)w.held_bits, size = tsr_flush_bits(&w);
    assert_false(w.overflow);
    assert_int_equal(tsr_cavlc_measure(coefficients, count, context), bits);

    digits_of(digits, bytes, bits);
    assert_int_equal(take_block(digits, back, count, context), total);
    assert_int_equal(digits->at, bits);
    assert_memory_equal(back, coefficients, (size_t)count * sizeof back[0]);

    struct tsr_bit_reader r = tsr_bit_reader(bytes, size);
    memset(back, 0xa5, sizeof back);
    assert_int_equal(tsr_cavlc_get(&r, &tables, back, count, context), total);
    assert_int_equal(tsr_bits_read(&r), bits);
    assert_memory_equal(back, coefficients, (size_t)count * sizeof back[0]);
    if (bits % 8 == 0 && size > 0) { /* a byte less is refused */
        r = tsr_bit_reader(bytes, size - 1);
        assert_int_equal(tsr_cavlc_get(&r, &tables, back, count, context), -1);
    }
}

TEST(worked_example)
{
    static const int32_t coefficients[16] = {5, 1, 0, -1, 1, 0, 1};
    struct digits d;
    const int context = tsr_cavlc_context(4, 6);
    assert_int_equal(context, 5);
    check(coefficients, 16, context, &d);
    assert_string_equal(d.digit, "1010"   /* 5 coefficients, 3 trailing ones */
                                 "001"    /* their signs, last first: + + - */
                                 "1"      /* 1 */
                                 "000010" /* 5: prefix 4, suffix 0 of 1 bit */
                                 "0011"   /* 2 zeros */
                                 "01"     /* a run of 1 with 2 left */
                                 "1"      /* a run of 0 with 1 left */
                                 "0");    /* a run of 1 */
}

TEST(contexts)
{
    for (int a = -1; a <= 16; a++)
        for (int b = -1; b <= 16; b++) {
            const int sum = (a < 0 ? 0 : a) + (b < 0 ? 0 : b);
            assert_int_equal(tsr_cavlc_context(a, b), a >= 0 && b >= 0 ? (sum + 1) / 2 : sum);
        }
    for (int context = 0; context <= 16; context++)
        assert_int_equal(tsr_coeff_token_table(context), context < 2 ? 0 : context < 4 ? 1 : context < 8 ? 2 : 3);
}

/* ---- Tables ------------------------------------------------------------------------------------------------ */

/* Codewords of a table. None is the beginning of another. Of the 2^16 strings of 16 bits, `missing` begin with no
 * codeword; these strings begin with zeros. */
struct code {
    const char *word[68];
    int length[68], count;
};

static void check_code(const struct code *code, int missing, const char *name, int number)
{
    int covered = 0;
    for (int i = 0; i < code->count; i++) {
        covered += 65536 >> code->length[i];
        expect(memchr(code->word[i], '1', (size_t)code->length[i]) || missing == 0, "%s %d", name, number);
        for (int j = 0; j < code->count; j++) {
            const int shorter = tsr_min(code->length[i], code->length[j]);
            expect(i == j || strncmp(code->word[i], code->word[j], (size_t)shorter) != 0, "%s %d: words %d, %d", name,
                   number, i, j);
        }
    }
    expect(covered + missing == 65536, "%s %d covers %d", name, number, covered);
}

static bool equals(const char *word, int length, uint32_t bits, int bit_count)
{
    uint32_t value = 0;
    for (int i = 0; i < length; i++) value = 2 * value + (word[i] == '1');
    return length == bit_count && value == bits;
}

TEST(tables_of_tokens)
{
    static const int contexts_of[3] = {0, 2, 4}, missing[3] = {2, 8, 64};
    for (int t = 0; t < 3; t++) {
        struct code code = {.count = 0};
        for (int total = 0; total <= 16; total++)
            for (int ones = 0; ones <= 3 && ones <= total; ones++) {
                const char *word = coeff_tokens[t][total][ones];
                uint32_t bits;
                int length;
                code.word[code.count] = word;
                code.length[code.count++] = (int)strlen(word);
                tsr_coeff_token(contexts_of[t], total, ones, &bits, &length);
                expect(equals(word, (int)strlen(word), bits, length), "table %d, total %d, ones %d", t, total, ones);
            }
        check_code(&code, missing[t], "coeff_token", t);
    }
    for (int total = 0; total <= 16; total++)
        for (int ones = 0; ones <= 3 && ones <= total; ones++) {
            uint32_t bits;
            int length;
            tsr_coeff_token(8, total, ones, &bits, &length);
            assert_int_equal(length, 6);
            assert_int_equal(bits, total == 0 ? 3 : 4 * (total - 1) + ones);
        }
}

static void check_list(const char *list, const uint16_t *entries, int expected, int missing, const char *name,
                       int number)
{
    struct code code = {.count = 0};
    const char *word;
    int length;
    for (int n = 0; (word = word_at(list, n, &length)); n++) {
        code.word[code.count] = word;
        code.length[code.count++] = length;
        expect(equals(word, length, entries[n] & 15u, entries[n] >> 4), "%s %d, word %d", name, number, n);
    }
    assert_int_equal(code.count, expected);
    check_code(&code, missing, name, number);
}

TEST(tables_of_zeros_and_runs)
{
    for (int t = 0; t < 15; t++)
        check_list(total_zeros[t], tsr_total_zeros_codewords_host + 16 * t, 16 - t, t == 0 ? 128 : 0, "total_zeros",
                   t + 1);
    for (int t = 0; t < 7; t++)
        check_list(run_befores[t], tsr_run_before_codewords_host + 15 * t, t < 6 ? t + 2 : 15, t < 6 ? 0 : 32,
                   "run_before", t + 1);
}

/* ---- Exhaustive tests --------------------------------------------------------------------------------------- */

TEST(every_token)
{
    struct digits d;
    for (int context = 0; context <= 16; context++)
        for (int count = 15; count <= 16; count++)
            for (int total = 0; total <= count; total++)
                for (int ones = 0; ones <= 3 && ones <= total; ones++) {
                    int32_t coefficients[16] = {0}; /* from the last coefficient to the first: ones, then twos */
                    int read_total, read_ones;
                    for (int i = 0; i < total; i++) coefficients[total - 1 - i] = (i % 2 ? -1 : 1) * (i < ones ? 1 : 2);
                    check(coefficients, count, context, &d);
                    d.at = 0;
                    take_token(&d, context, &read_total, &read_ones);
                    assert_int_equal(read_total, total);
                    assert_int_equal(read_ones, ones);
                }
}

/* All patterns of zeros in 15 or 16 coefficients: they contain every total_zeros and every run_before in every state.
 */
TEST(every_pattern)
{
    static bool zeros_seen[16][17], run_seen[16][17];
    struct digits d;
    for (uint32_t pattern = 0; pattern < 65536; pattern++) {
        int32_t coefficients[16];
        int total = 0, zeros = 0;
        for (int i = 0; i < 16; i++)
            coefficients[i] = pattern >> i & 1u ? ((pattern * 2654435761u) >> i & 64u ? -1 : 2) : 0;
        check(coefficients, 16, (int)(pattern % 17), &d);
        if (pattern < 32768) check(coefficients, 15, (int)(pattern % 17), &d);
        for (int i = 0; i < 16; i++) total += coefficients[i] != 0;
        for (int i = 0, left = total; left > 0; i++) {
            left -= coefficients[i] != 0;
            zeros += coefficients[i] == 0;
        }
        if (total == 0) continue;
        if (total < 16) zeros_seen[total][zeros] = true;
        int place = 15, runs = total; /* runs, from the last coefficient to the first */
        while (coefficients[place] == 0) place--;
        for (; runs > 1 && zeros > 0; runs--) {
            int run = 0;
            for (place--; coefficients[place] == 0; place--) run++;
            run_seen[zeros][run] = true;
            zeros -= run;
        }
    }
    for (int total = 1; total < 16; total++)
        for (int zeros = 0; zeros <= 16 - total; zeros++) assert_true(zeros_seen[total][zeros]);
    for (int left = 1; left <= 14; left++)
        for (int run = 0; run <= left; run++) assert_true(run_seen[left][run]);
}

/* Every coefficient code of the shorter prefixes and the ends of the longer ones, with every suffix length. */
TEST(coefficient_codes)
{
    for (int suffix_length = 0; suffix_length <= 6; suffix_length++) {
        for (int prefix = 0; prefix <= TSR_CAVLC_PREFIX_LIMIT; prefix++) {
            struct digits d;
            for (int n = 0; n < 5000; n++) {
                uint32_t code;
                if (prefix == 0) {
                    code = (uint32_t)n;
                } else { /* around powers of two, and the largest */
                    code = (1u << (prefix - 2 < 0 ? 0 : prefix - 2)) + (uint32_t)n - 2500u;
                    if (code >= 2u * TSR_COEFFICIENT_LIMIT - 2u) code = 2u * TSR_COEFFICIENT_LIMIT - 3u;
                }
                uint8_t bytes[16];
                struct tsr_bit_writer w = tsr_bit_writer(bytes, sizeof bytes);
                struct tsr_cavlc_sink sink = {&w, 0};
                tsr_cavlc_emit_coefficient(&sink, code, suffix_length);
                tsr_flush_bits(&w);
                expect(sink.bits <= 50, "code %u, suffix length %d: %u bits", code, suffix_length, sink.bits);
                digits_of(&d, bytes, sink.bits);
                expect(take_coefficient_code(&d, suffix_length) == code, "code %u, suffix length %d", code,
                       suffix_length);
                assert_int_equal(d.at, d.count);
            }
        }
    }
}

/* Coefficients of all sizes after coefficients of all sizes: escapes in every state. */
TEST(escapes)
{
    static const int32_t edges[] = {1,
                                    2,
                                    3,
                                    4,
                                    7,
                                    8,
                                    15,
                                    16,
                                    17,
                                    24,
                                    48,
                                    96,
                                    480,
                                    481,
                                    2063,
                                    2064,
                                    4111,
                                    8191,
                                    8192,
                                    8193,
                                    16384,
                                    32768,
                                    65536,
                                    1 << 20,
                                    1 << 22,
                                    TSR_COEFFICIENT_LIMIT - 2,
                                    TSR_COEFFICIENT_LIMIT - 1};
    struct digits d;
    for (size_t i = 0; i < COUNT_OF(edges); i++)
        for (size_t j = 0; j < COUNT_OF(edges); j++)
            for (int total = 2; total <= 16; total += 7) {
                int32_t coefficients[16] = {0};
                for (int k = 0; k < total; k++) coefficients[k] = k % 2 ? edges[i] : -edges[j];
                check(coefficients, 16, (int)(i + j) % 17, &d);
            }
}

static void random_coefficients(struct rng *r, int32_t *coefficients, int count)
{
    const uint32_t zeros = rng_below(r, 8);
    const int width = rng_below(r, 4) ? rng_between(r, 1, 4) : rng_between(r, 1, 23);
    for (int i = 0; i < count; i++) {
        coefficients[i] =
            rng_below(r, 8) < zeros ? 0 : tsr_min((int32_t)rng_width(r, width), TSR_COEFFICIENT_LIMIT - 1);
        if (rng_below(r, 2)) coefficients[i] = -coefficients[i];
    }
}

TEST(random_blocks)
{
    struct rng r = {42};
    struct digits d;
    for (int n = 0; n < 60000; n++) {
        int32_t coefficients[16];
        const int count = 15 + n % 2;
        random_coefficients(&r, coefficients, count);
        check(coefficients, count, (int)rng_below(&r, 17), &d);
    }
}

/* ---- Corrupt strings ---------------------------------------------------------------------------------------- */

/* Invalid strings are refused: zeros that are not a codeword, more ones than coefficients, more coefficients than
 * places, too many zeros. */
TEST(refusals)
{
    static const struct {
        const char *bits;
        int count, context;
    } cases[] = {
        {"0000000000000000 11111111", 16, 0}, /* the strings that are not in the tables */
        {"0000000000000 1111111111", 16, 2},
        {"0000000000 1111111111111", 16, 4},
        {"000010 1111111111111111", 16, 8},                    /* 1 coefficient, 2 ones */
        {"000111 1111111111111111", 16, 8},                    /* 2 coefficients, 3 ones */
        {"111111 0001111111111111", 15, 8},                    /* 16 of 15 */
        {"01 0 000000000 11111111", 16, 0},                    /* total_zeros of 9 zeros */
        {"01 0 000000001 11111111", 15, 0},                    /* 15 zeros beside 1 of 15 coefficients */
        {"001 00 000001 00000000000 1111", 16, 0},             /* 13 zeros before 2 coefficients; a run of 11 zeros */
        {"000101 000000000000000000000000000 1111111", 16, 0}, /* a prefix of 27 */
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        uint8_t bytes[16];
        int32_t coefficients[16];
        struct tsr_bit_writer w = tsr_bit_writer(bytes, sizeof bytes);
        for (const char *c = cases[i].bits; *c; c++)
            if (*c != ' ') tsr_put_bits(&w, *c == '1', 1);
        const size_t size = tsr_flush_bits(&w);
        struct tsr_bit_reader r = tsr_bit_reader(bytes, size);
        const int total = tsr_cavlc_get(&r, &tables, coefficients, cases[i].count, cases[i].context);
        expect(total == -1, "case %zu: %d", i, total);
    }
}

/* Random bytes, and blocks that are cut off or damaged, are refused or give a block. Buffers have the exact size. */
TEST(garbage)
{
    struct rng r = {43};
    for (int n = 0; n < 100000; n++) {
        uint8_t bytes[64];
        int32_t coefficients[16];
        size_t size = rng_below(&r, 24);
        const int count = 15 + n % 2, context = (int)rng_below(&r, 17);
        for (size_t i = 0; i < size; i++) bytes[i] = (uint8_t)(rng_next(&r) & (n % 3 ? 0xffu : rng_next(&r)));
        if (n % 2) {
            random_coefficients(&r, coefficients, count);
            struct tsr_bit_writer w = tsr_bit_writer(bytes, sizeof bytes);
            tsr_cavlc_put(&w, coefficients, count, context);
            size = tsr_flush_bits(&w);
            bytes[rng_below(&r, (uint32_t)size)] ^= (uint8_t)(1u << rng_below(&r, 8));
            size = rng_below(&r, (uint32_t)size + 1);
        }
        uint8_t *exact = must(malloc(size + !size));
        memcpy(exact, bytes, size);
        struct tsr_bit_reader reader = tsr_bit_reader(exact, size);
        int32_t guarded[18];
        memset(guarded, 0xa5, sizeof guarded);
        const int total = tsr_cavlc_get(&reader, &tables, guarded, count, context);
        assert_in_range(total + 1, 0, count + 1);
        for (int i = count; i < 18; i++) assert_int_equal((uint32_t)guarded[i], 0xa5a5a5a5u);
        if (total >= 0) {
            int used = 0;
            for (int i = 0; i < count; i++) used += guarded[i] != 0;
            assert_int_equal(used, total);
            assert_false(reader.overrun);
            assert_true(tsr_bits_read(&reader) <= 8 * size);
        }
        free(exact);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(worked_example),
                                       cmocka_unit_test(contexts),
                                       cmocka_unit_test(tables_of_tokens),
                                       cmocka_unit_test(tables_of_zeros_and_runs),
                                       cmocka_unit_test(every_token),
                                       cmocka_unit_test(every_pattern),
                                       cmocka_unit_test(coefficient_codes),
                                       cmocka_unit_test(escapes),
                                       cmocka_unit_test(random_blocks),
                                       cmocka_unit_test(refusals),
                                       cmocka_unit_test(garbage)};
    return cmocka_run_group_tests(tests, make_tables, NULL);
}
