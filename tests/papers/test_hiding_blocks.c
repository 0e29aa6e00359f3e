/* The hiding family's definitions against slow ones that are written from the words of hiding.h and of RFC 8439, on
 * lists of coefficients in the scan's order; and whole jobs of the CPU's rows through CAVLC. */
#include "hiding_cases.h"
#include "kernels/papers/hiding/hiding_blocks.h"

/* ---- Slow definitions -------------------------------------------------------------------------------------------- */

/* The last coefficient that is not 0; -1: none. */
static int slow_last(const int *scan, int first)
{
    int last = 15;
    while (last >= first && scan[last] == 0) last--;
    return last < first ? -1 : last;
}

static int slow_ones(const int *scan, int first)
{
    int ones = 0;
    for (int p = 15; p >= first && ones < 3; p--) {
        if (scan[p] == 0) continue;
        if (scan[p] != 1 && scan[p] != -1) break;
        ones++;
    }
    return ones;
}

/* Bit n of the key stream, whose bytes have their lowest bit first. The bytes are RFC 8439's, by its 2.1 and 2.3. */
static unsigned slow_stream_bit(const struct tsr_chacha20 *key, uint64_t n)
{
    static const uint8_t rounds[8][4] = {{0, 4, 8, 12},  {1, 5, 9, 13},  {2, 6, 10, 14}, {3, 7, 11, 15},
                                         {0, 5, 10, 15}, {1, 6, 11, 12}, {2, 7, 8, 13},  {3, 4, 9, 14}};
    static const uint8_t turns[4] = {16, 12, 8, 7};
    uint32_t start[16], w[16];
    memcpy(start, "expand 32-byte k", 16);
    memcpy(start + 4, key->key, 32);
    start[12] = (uint32_t)(n / 512);
    memcpy(start + 13, key->nonce, 12);
    memcpy(w, start, sizeof w);
    for (int i = 0; i < 80; i++)
        for (int step = 0; step < 4; step++) {
            const uint8_t *const q = rounds[i % 8];
            const int to = step % 2 ? 2 : 0, by = step % 2 ? 3 : 1, turned = step % 2 ? 1 : 3;
            w[q[to]] += w[q[by]];
            w[q[turned]] ^= w[q[to]];
            w[q[turned]] = (uint32_t)((uint64_t)w[q[turned]] << turns[step] | w[q[turned]] >> (32 - turns[step]));
        }
    const uint32_t word = w[n % 512 / 32] + start[n % 512 / 32];
    return word >> n % 32 & 1u;
}

static void to_raster(const int *scan, int16_t *block)
{
    for (int p = 0; p < 16; p++) block[tsr_zigzag(p)] = (int16_t)scan[p];
}

static void to_scan(const int16_t *block, int *scan)
{
    for (int p = 0; p < 16; p++) scan[p] = block[tsr_zigzag(p)];
}

/* Bits of a block's code. */
static uint32_t code_length(const int *scan, int first, int context)
{
    struct tsr_cavlc_sink sink = {NULL, 0};
    int32_t coefficients[16];
    for (int p = first; p < 16; p++) coefficients[p - first] = scan[p];
    tsr_cavlc_emit_block(&sink, coefficients, 16 - first, context);
    return sink.bits;
}

/* ---- Key stream -------------------------------------------------------------------------------------------------- */

/* RFC 8439, 2.3.2 and A.1, test vector 1. */
TEST(key_stream_of_the_rfc)
{
    static const uint32_t first[16] = {0xe4e7f110, 0x15593bd1, 0x1fdd0f50, 0xc47120a3, 0xc7f4d1c7, 0x0368c033,
                                       0x9aaa2204, 0x4e6cd4c3, 0x466482d2, 0x09aa9f07, 0x05d7c214, 0xa2028bd9,
                                       0xd19c12b5, 0xb94e16de, 0xe883d0cb, 0x4e3c50a2};
    static const uint32_t second[16] = {0xade0b876, 0x903df1a0, 0xe56a5d40, 0x28bd8653, 0xb819d2bd, 0x1aed8da0,
                                        0xccef36a8, 0xc70d778b, 0x7c5941da, 0x8d485751, 0x3fe02477, 0x374ad8b8,
                                        0xf4b8436a, 0x1ca11815, 0x69b687c3, 0x8665eeb2};
    struct tsr_chacha20 key = {.nonce = {0x09000000, 0x4a000000, 0}};
    uint32_t words[16];
    for (uint32_t i = 0; i < 8; i++) key.key[i] = 0x03020100u + 0x04040404u * i;
    tsr_chacha20_block(&key, 1, words);
    assert_memory_equal(words, first, sizeof first);
    for (uint64_t n = 0; n < 512; n++)
        expect(slow_stream_bit(&key, 512 + n) == (first[n / 32] >> n % 32 & 1u), "bit %llu", (unsigned long long)n);
    memset(&key, 0, sizeof key);
    tsr_chacha20_block(&key, 0, words);
    assert_memory_equal(words, second, sizeof second);
}

/* ---- Blocks ------------------------------------------------------------------------------------------------------ */

/* Calls try for each set of places, or one in every so many, with 1 and 2 as magnitudes of the last six coefficients in
 * all ways, in blocks of 16 and of 15 coefficients. Signs and other magnitudes are random. */
static void for_blocks(uint32_t every, void (*try)(const int *scan, int first, struct rng *r))
{
    struct rng r = {1};
    for (uint32_t places = 0; places < 65536; places += every) {
        if (skip_case()) continue;
        for (uint32_t ways = 0; ways < 64; ways++) {
            int scan[16], seen = 0;
            for (int p = 15; p >= 0; p--) {
                const int magnitude = seen >= 6                ? 1 + (int)rng_below(&r, 12)
                                      : !(ways >> seen & 1u)   ? 1
                                      : rng_below(&r, 4) == 0u ? 2 + (int)rng_below(&r, 2000)
                                                               : 2;
                scan[p] = places >> p & 1u ? rng_below(&r, 2) ? magnitude : -magnitude : 0;
                seen += scan[p] != 0;
            }
            try(scan, (int)(ways % 2), &r); /* both, since ways repeat where there are fewer coefficients */
            if (seen >= 6) try(scan, 1 - (int)(ways % 2), &r);
            if (seen < 6 && ways >> seen != 0) break; /* the other ways are the same blocks */
        }
    }
}

static struct tsr_block_signs signs_of(const int *scan, int first)
{
    int16_t block[16];
    to_raster(scan, block);
    return tsr_signs_of_block(block, first);
}

static void try_ones(const int *scan, int first, struct rng *r)
{
    (void)r;
    const struct tsr_block_signs s = signs_of(scan, first);
    const int ones = slow_ones(scan, first), last = slow_last(scan, first);
    expect(tsr_trailing_ones(s) == ones, "%d trailing ones, not %d", tsr_trailing_ones(s), ones);
    expect(tsr_first_one(s) == (ones > 0 ? last : -1), "first one at %d", tsr_first_one(s));
}

TEST(trailing_ones)
{
    for_blocks(1, try_ones);
}

/* Whatever the block, one coefficient changes, by 1 where place 15 is not in the way, and the parity with it. */
static void try_parity(const int *scan, int first, struct rng *r)
{
    (void)r;
    const int before = slow_ones(scan, first), last = slow_last(scan, first);
    int16_t block[16];
    int after[16], changed = 0, difference = 0, at = -1;
    to_raster(scan, block);
    tsr_change_block(block, tsr_parity_change(tsr_signs_of_block(block, first)));
    to_scan(block, after);
    for (int p = 0; p < 16; p++) {
        if (scan[p] == after[p]) continue;
        changed++;
        at = p;
        difference = abs(after[p] - scan[p]);
    }
    expect(changed == 1 && at >= first, "%d coefficients changed, one at %d", changed, at);
    expect((slow_ones(after, first) - before) % 2 != 0, "%d trailing ones after %d", slow_ones(after, first), before);
    if (before > 0 || last < 15)
        expect(difference == 1, "coefficient %d became %d", scan[at], after[at]);
    else
        expect(at == 15 && abs(after[15]) == (slow_ones(after, first) == 1 && abs(after[15]) == 0 ? 0 : 1),
               "coefficient %d became %d", scan[at], after[at]);
    if (before == 0 && last < 15) expect(at == (last < 0 ? first : last + 1) && after[at] == 1, "added at %d", at);
    if (scan[at] != 0 && after[at] != 0) expect((scan[at] < 0) == (after[at] < 0), "another sign at %d", at);
}

TEST(parity_of_all_blocks)
{
    for_blocks(1, try_parity);
}

/* Of all signs of a block, only that of tsr_length_sign changes the length, in each context. */
static void try_lengths(const int *scan, int first, struct rng *r)
{
    int16_t block[16];
    int other[16];
    const int context = (int)rng_below(r, 10);
    to_raster(scan, block);
    const int place = tsr_length_sign(block, tsr_signs_of_block(block, first));
    const uint32_t length = code_length(scan, first, context);
    memcpy(other, scan, sizeof other);
    for (int p = first; p < 16; p++) {
        if (scan[p] == 0) continue;
        other[p] = -scan[p];
        expect((code_length(other, first, context) != length) == (p == place), "the sign of %d at %d", scan[p], p);
        other[p] = scan[p];
    }
    expect(place < 0 || scan[place] != 0, "no coefficient at %d", place);
}

TEST(signs_that_change_lengths)
{
    for_blocks(13, try_lengths);
}

/* ---- Jobs -------------------------------------------------------------------------------------------------------- */

static void hide(const struct tsr_hiding_job *job)
{
    assert_int_equal(tsr_hiding_cpu.phase[0].run(job, 0), 0);
}

/* Reads a job's coefficients. found and carries belong to the job, and are freed by free_found(). */
static void read_job(struct tsr_hiding_job *job)
{
    job->found = must(malloc(hiding_words(job) * sizeof(uint32_t) + 1));
    job->carries = must(malloc(hiding_words(job) * sizeof(uint32_t) + 1));
    assert_int_equal(tsr_hiding_read_cpu.phase[0].run(job, 0), 0);
}

static void free_found(struct tsr_hiding_job *job)
{
    free(job->found);
    free(job->carries);
}

static unsigned bit_of(const uint32_t *words, uint32_t bit)
{
    return words[bit / 32] >> bit % 32 & 1u;
}

/* Codes coefficients by the CPU's CAVLC row, one frame of one row of macroblocks, and decodes them into back. Returns
 * the bits of the code. The DCs of Intra16x16 macroblocks come back as in coefficients. */
static uint64_t through_cavlc(const struct tsr_hiding_job *shape, const int16_t *coefficients, int16_t *back)
{
    const uint32_t macroblocks = shape->blocks / TSR_MB_BLOCKS;
    uint64_t bits = 0, offset = 0;
    uint32_t error = 1;
    struct tsr_cavlc_decode_job job = {.shape = {.order = TSR_ORDER_MACROBLOCKS,
                                                 .coefficients = coefficients,
                                                 .blocks = shape->blocks,
                                                 .mb_columns = macroblocks,
                                                 .mb_rows = 1,
                                                 .frames = 1,
                                                 .mb_flags = shape->mb_flags,
                                                 .bits = &bits,
                                                 .unit_offsets = &offset},
                                       .unit_offsets = &offset,
                                       .coefficients = back,
                                       .error = &error};
    uint16_t *slices = must(calloc(macroblocks + 1, sizeof *slices));
    job.shape.mb_slices = slices;
    job.shape.workspace = must(malloc(shape->blocks + 1));
    job.shape.out = must(malloc(tsr_cavlc_bound(&job.shape)));
    assert_int_equal(tsr_cavlc_cpu.phase[0].run(&job.shape, 0), 0);
    job.in = job.shape.out;
    job.bits = bits;
    assert_int_equal(tsr_cavlc_decode_cpu.phase[0].run(&job, 0), 0);
    assert_int_equal(error, 0);
    for (uint32_t b = 0; b < shape->blocks; b++)
        if (shape->mb_flags[b / TSR_MB_BLOCKS]) back[b * 16] = coefficients[b * 16];
    free(job.shape.out);
    free(job.shape.workspace);
    free(slices);
    return bits;
}

static int16_t *copy_of(const struct hiding_case *c)
{
    int16_t *copy = must(malloc((size_t)c->job.blocks * 32 + 1));
    memcpy(copy, c->coefficients, (size_t)c->job.blocks * 32);
    return copy;
}

/* Each sign is flipped by the bit of its block and place, through CAVLC and back. With kept lengths, one sign a block
 * may stay, and the code keeps its length to the bit. */
static void try_signs(enum tsr_hiding_method method, enum hiding_contents contents)
{
    struct hiding_case c = hiding_case(method, 0, 97, contents, true);
    const size_t bytes = (size_t)c.job.blocks * 32;
    int16_t *hidden = copy_of(&c), *back = copy_of(&c);
    c.job.out = hidden;
    hide(&c.job);
    int kept = 0, flipped = 0;
    for (uint32_t b = 0; b < c.job.blocks; b++) {
        const int first = c.flags[b / 16] ? 1 : 0;
        int plain[16], scan[16];
        to_scan(c.coefficients + b * 16, plain);
        to_scan(hidden + b * 16, scan);
        int stayed = 0;
        for (int p = 0; p < 16; p++) {
            const bool flips =
                p >= first && plain[p] != 0 && slow_stream_bit(&c.job.key, 16 * (uint64_t)b + (uint64_t)p);
            expect(scan[p] == plain[p] || (flips && scan[p] == -plain[p]), "%s: block %u, place %d", c.name, b, p);
            stayed += flips && scan[p] == plain[p];
            flipped += flips;
        }
        expect(stayed <= (method == TSR_HIDING_KEPT_LENGTHS), "%s: block %u: %d signs stayed", c.name, b, stayed);
        kept += stayed;
    }
    const uint64_t plain_bits = through_cavlc(&c.job, c.coefficients, back);
    const uint64_t bits = through_cavlc(&c.job, hidden, back);
    if (method == TSR_HIDING_KEPT_LENGTHS)
        expect(bits == plain_bits, "%s: %llu bits, not %llu", c.name, (unsigned long long)bits,
               (unsigned long long)plain_bits);
    if (contents >= HIDING_SMALL)
        expect(flipped > kept && (kept > 0) == (method != 0), "%s: %d of %d", c.name, kept, flipped);
    c.job.coefficients = c.job.out = back;
    hide(&c.job);
    expect(memcmp(back, c.coefficients, bytes) == 0, "%s: other coefficients", c.name);
    free(hidden);
    free(back);
    free_hiding_case(&c);
}

TEST(signs_through_cavlc)
{
    for (enum hiding_contents contents = HIDING_EMPTY; contents < HIDING_CONTENTS; contents++) {
        try_signs(TSR_HIDING_SIGNS, contents);
        try_signs(TSR_HIDING_KEPT_LENGTHS, contents);
    }
}

/* A bit a block with a trailing one, through CAVLC, with the same length. */
static void try_first_ones(enum hiding_contents contents)
{
    struct hiding_case c = hiding_case(TSR_HIDING_FIRST_ONE, 0, 61, contents, true);
    int16_t *hidden = copy_of(&c), *back = copy_of(&c);
    c.job.out = hidden;
    hide(&c.job);
    expect(through_cavlc(&c.job, hidden, back) == through_cavlc(&c.job, c.coefficients, back), "%s: length", c.name);
    through_cavlc(&c.job, hidden, back);
    c.job.coefficients = back;
    read_job(&c.job);
    for (uint32_t b = 0; b < c.job.blocks; b++) {
        int plain[16], scan[16];
        const int first = c.flags[b / 16] ? 1 : 0;
        to_scan(c.coefficients + b * 16, plain);
        to_scan(back + b * 16, scan);
        const bool carries = slow_ones(plain, first) > 0;
        const int at = carries ? slow_last(plain, first) : -1;
        for (int p = 0; p < 16; p++)
            expect(scan[p] == (p == at ? bit_of(c.data, b) ? -1 : 1 : plain[p]), "%s: block %u, place %d", c.name, b,
                   p);
        expect(bit_of(c.job.carries, b) == (unsigned)carries, "%s: block %u", c.name, b);
        expect(bit_of(c.job.found, b) == (carries ? bit_of(c.data, b) : 0), "%s: block %u", c.name, b);
    }
    assert_int_equal(tsr_hiding_broken(&c.job, NULL, 0), 0);
    free_found(&c.job);
    free(hidden);
    free(back);
    free_hiding_case(&c);
}

TEST(first_ones_through_cavlc)
{
    for (enum hiding_contents contents = HIDING_EMPTY; contents < HIDING_CONTENTS; contents++) try_first_ones(contents);
}

/* ---- What a fragile mark sees ------------------------------------------------------------------------------------ */

enum change { SIGN_OF_THE_LAST, ONE_AFTER_THE_LAST, OTHER_SIGNS, OTHER_MAGNITUDES, LAST_OF_TWO, ALL_GONE, CHANGES };

/* Changes a block with a trailing one that is not at place 15. Returns whether its mark breaks, from the mark's bit. */
static bool change_block(enum change change, int *scan, int first, unsigned bit)
{
    const int last = slow_last(scan, first);
    if (change == SIGN_OF_THE_LAST) {
        scan[last] = -scan[last];
        return true;
    }
    if (change == ONE_AFTER_THE_LAST) { /* seen where its sign is not the mark's */
        scan[last + 1] = 1;
        return bit == 1;
    }
    for (int p = first; p < last && change == OTHER_SIGNS; p++) scan[p] = -scan[p];
    for (int p = first; p < last && change == OTHER_MAGNITUDES; p++) scan[p] *= 3;
    if (change == LAST_OF_TWO) scan[last] *= 2; /* the block has no trailing one now, and carries nothing */
    for (int p = first; p < 16 && change == ALL_GONE; p++) scan[p] = 0;
    return false;
}

/* The mark sees a change of the sign that carries it. It sees no change of another sign or magnitude, and no block that
 * loses its trailing ones. */
TEST(what_a_fragile_mark_sees)
{
    for (enum change change = 0; change < CHANGES; change++) {
        struct hiding_case c = hiding_case(TSR_HIDING_FIRST_ONE, 0, 40, HIDING_SPARSE, true);
        uint32_t broken = 0, listed[640];
        uint8_t is_broken[640] = {0};
        c.job.out = c.coefficients;
        hide(&c.job);
        for (uint32_t b = 0; b < c.job.blocks; b += 3) {
            int scan[16];
            const int first = c.flags[b / 16] ? 1 : 0;
            to_scan(c.coefficients + b * 16, scan);
            if (slow_ones(scan, first) == 0 || slow_last(scan, first) == 15) continue;
            is_broken[b] = change_block(change, scan, first, bit_of(c.data, b));
            broken += is_broken[b];
            to_raster(scan, c.coefficients + b * 16);
        }
        read_job(&c.job);
        const uint32_t count = tsr_hiding_broken(&c.job, listed, COUNT_OF(listed));
        expect(count == broken && (broken > 20) == (change <= ONE_AFTER_THE_LAST), "change %d: %u blocks, not %u",
               (int)change, count, broken);
        for (uint32_t i = 0; i < count; i++)
            expect(is_broken[listed[i]], "change %d: block %u", (int)change, listed[i]);
        free_found(&c.job);
        free_hiding_case(&c);
    }
}

/* ---- Data by parity ---------------------------------------------------------------------------------------------- */

/* Each unit carries its bit, through CAVLC, in the block that the key stream chooses; no other block changes. */
static void try_parity_job(int sparse, enum hiding_contents contents)
{
    struct hiding_case c = hiding_case(TSR_HIDING_PARITY, sparse, 133, contents, true);
    int16_t *hidden = copy_of(&c), *back = copy_of(&c);
    c.job.out = hidden;
    hide(&c.job);
    through_cavlc(&c.job, hidden, back);
    const uint32_t units = tsr_hiding_units(&c.job);
    assert_int_equal(units, c.job.blocks >> sparse);
    for (uint32_t b = 0; b < c.job.blocks; b++) {
        const uint32_t unit = b >> sparse;
        uint32_t chosen = 0;
        for (int i = 0; i < sparse; i++) chosen |= slow_stream_bit(&c.job.key, 32 * (uint64_t)unit + (uint64_t)i) << i;
        const int first = c.flags[b / 16] ? 1 : 0;
        int scan[16];
        to_scan(back + b * 16, scan);
        if (unit >= units || (unit << sparse) + chosen != b)
            expect(memcmp(back + b * 16, c.coefficients + b * 16, 32) == 0, "%s: block %u changed", c.name, b);
        else
            expect((unsigned)slow_ones(scan, first) % 2 == bit_of(c.data, unit), "%s: unit %u", c.name, unit);
        if (first) expect(back[b * 16] == c.coefficients[b * 16], "%s: block %u, DC", c.name, b);
    }
    c.job.coefficients = back;
    read_job(&c.job);
    for (uint32_t u = 0; u < units; u++) {
        expect(bit_of(c.job.carries, u) == 1, "%s: unit %u carries nothing", c.name, u);
        expect(bit_of(c.job.found, u) == bit_of(c.data, u), "%s: unit %u", c.name, u);
    }
    if (units % 32) assert_int_equal(c.job.carries[units / 32] >> units % 32, 0);
    free_found(&c.job);
    free(hidden);
    free(back);
    free_hiding_case(&c);
}

TEST(parity_through_cavlc)
{
    for (int sparse = 0; sparse <= TSR_HIDING_SPARSE_LIMIT; sparse++)
        for (enum hiding_contents contents = HIDING_EMPTY; contents < HIDING_CONTENTS; contents++)
            try_parity_job(sparse, contents);
}

int main(void)
{
    cmocka_set_test_filter(getenv("TSR_TEST")); /* a name, in which * is allowed; without it all tests run */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(key_stream_of_the_rfc),    cmocka_unit_test(trailing_ones),
        cmocka_unit_test(parity_of_all_blocks),     cmocka_unit_test(signs_that_change_lengths),
        cmocka_unit_test(signs_through_cavlc),      cmocka_unit_test(first_ones_through_cavlc),
        cmocka_unit_test(what_a_fragile_mark_sees), cmocka_unit_test(parity_through_cavlc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
