/* entropy/lanes.h: lanes that share one stream of words, against a literal reading of FORMAT.md 7.7. */
#include "tests/unit/support.h"

#include "entropy/lanes.h"

TEST(numbers_of_lanes)
{
    struct rng r = {27};
    for (int n = 0; n < 100000; n++) {
        const int32_t width = n < 10000 ? 1 + n % 100 : rng_between(&r, 1, 65535);
        const int32_t height = n < 10000 ? 1 + n / 100 : rng_between(&r, 1, 1 + (1 << 20) / width);
        int lanes = 1;
        for (int more = 2; more <= 32; more *= 2) {
            const bool pays = more <= 4 || (int64_t)more <= (int64_t)width * height / 4096;
            if (pays && more <= height && more <= width / 8) lanes = more;
        }
        expect(tsr_lanes_for_tile(width, height) == lanes, "%d x %d", width, height);
        for (int any = 1; any <= 32; any += 1 + n % 5) {
            const int32_t whole = width + (4 - width % 4) % 4; /* rounded up to a multiple of 4 */
            assert_int_equal(tsr_lane_period(width, any), whole > 8 * any ? whole : 8 * any);
        }
    }
}

/* A symbol of a lane in a tick. */
struct item {
    int lane, bits;
    uint32_t value;
};

enum { ITEMS = 3000, STRING_BITS = ITEMS * 32 + 64 };

/* FORMAT.md 7.7: before a symbol of a lane, while the lane holds fewer than refill bits, the stream's next word is the
 * next 16 bits of the lane's string. Returns the number of words. */
static uint32_t write_plainly(const struct item *items, int count, int lanes, int refill, uint8_t *words)
{
    static uint8_t string[TSR_LANE_LIMIT][STRING_BITS];
    size_t end[TSR_LANE_LIMIT] = {0}, sent[TSR_LANE_LIMIT] = {0}, taken[TSR_LANE_LIMIT] = {0};
    uint32_t next = 0;
    for (int l = 0; l < lanes; l++) memset(string[l], 0, sizeof string[l]);
    for (int i = 0; i < count; i++)
        for (int b = items[i].bits - 1; b >= 0; b--)
            string[items[i].lane][end[items[i].lane]++] = items[i].value >> b & 1u;
    for (int i = 0; i < count; i++) {
        const int l = items[i].lane;
        while (sent[l] - taken[l] < (size_t)refill) {
            uint32_t word = 0;
            for (int b = 0; b < 16; b++) word = word << 1 | string[l][sent[l]++];
            words[2 * next] = (uint8_t)word;
            words[2 * next++ + 1] = (uint8_t)(word >> 8);
        }
        taken[l] += (size_t)items[i].bits;
    }
    return next;
}

static void check_items(const struct item *items, int count, int lanes, int refill)
{
    static uint8_t words[ITEMS * 8];
    struct tsr_lane_reader reader[TSR_LANE_LIMIT];
    uint32_t bits[TSR_LANE_LIMIT] = {0}, taken[TSR_LANE_LIMIT] = {0};
    memset(reader, 0, sizeof reader);
    const uint32_t word_count = write_plainly(items, count, lanes, refill, words);
    uint32_t next = 0;
    for (int i = 0; i < count; i++) { /* the encoder's count of the lanes' words */
        const int l = items[i].lane;
        const uint32_t here = tsr_lane_words(bits[l], refill);
        assert_in_range(here, taken[l], taken[l] + 2);
        next += here - taken[l];
        taken[l] = here;
        bits[l] += (uint32_t)items[i].bits;
    }
    assert_int_equal(next, word_count);

    uint8_t *exact = must(malloc(2 * (size_t)word_count + 1));
    memcpy(exact, words, 2 * (size_t)word_count);
    next = 0;
    for (int i = 0; i < count; i++) {
        struct tsr_lane_reader *lane = &reader[items[i].lane];
        tsr_lane_refill(lane, refill, exact, word_count, &next);
        assert_true(lane->count >= refill && lane->count < 48);
        const uint32_t ahead = tsr_lane_peek(lane, 12);
        if (items[i].bits >= 12) assert_int_equal(ahead, items[i].value >> (items[i].bits - 12));
        if (i % 2) {
            assert_int_equal(tsr_lane_take(lane, items[i].bits), items[i].value);
            continue;
        }
        assert_int_equal(tsr_lane_peek(lane, items[i].bits), items[i].value);
        tsr_lane_skip(lane, items[i].bits);
    }
    assert_int_equal(next, word_count);
    for (int l = 0; l < lanes; l++) assert_int_equal(reader[l].bits, 0); /* the bits that are left are 0 */
    while (reader[0].count >= 16) tsr_lane_skip(&reader[0], 16);
    tsr_lane_refill(&reader[0], 32, exact, word_count, &next); /* after the end: zeros, and next shows it */
    assert_true(next > word_count);
    assert_int_equal(tsr_lane_peek(&reader[0], 32), 0);
    free(exact);
}

TEST(round_trips)
{
    static struct item items[ITEMS];
    struct rng r = {28};
    for (int n = 0; n < 330; n++) {
        const int lanes = n < 32 ? n + 1 : rng_between(&r, 1, TSR_LANE_LIMIT), refill = n % 33;
        const int count = rng_between(&r, 1, ITEMS), idle = rng_between(&r, 0, 9);
        int used = 0;
        for (int tick = 0; used < count && tick < 100 * count; tick++)
            for (int l = 0; l < lanes && used < count; l++) {
                if ((int)rng_below(&r, 10) < idle) continue;
                struct item *item = &items[used++];
                item->lane = l;
                item->bits = rng_below(&r, 4) ? rng_between(&r, 0, refill) : refill;
                item->value = item->bits ? (uint32_t)(rng_next(&r) >> (64 - item->bits)) : 0;
            }
        check_items(items, used, lanes, refill);
    }
}

/* Zeros follow if fewer bits are left than asked for: a decoder peeks 12 bits at its string's end, too. */
TEST(peeking_past_the_end)
{
    struct tsr_lane_reader lane = {(uint64_t)0x2d << 58, 6}; /* 101101 */
    assert_int_equal(tsr_lane_peek(&lane, 12), 0x2d << 6);
    assert_int_equal(tsr_lane_take(&lane, 4), 0xb);
    assert_int_equal(tsr_lane_peek(&lane, 3), 2);
    assert_int_equal(tsr_lane_peek(&lane, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(numbers_of_lanes), cmocka_unit_test(round_trips),
                                       cmocka_unit_test(peeking_past_the_end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
