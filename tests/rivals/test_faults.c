/* Codecs that misbehave cost their result and nothing else: the next codec of the same rival works. Limits hold. */
#include "pictures.h"

#include <time.h>

#include "tests/unit/support.h"

/* PATIENCE: seconds, more than any codec takes on a slow machine that others use, too. */
enum { COLUMNS = 40, ROWS = 30, PATIENCE = 1200 };

static struct rivals *rivals;
static struct rival *rival;
static uint16_t *words;

static int set_up(void **state)
{
    struct tsr_error error;
    (void)state;
    setenv("TESSERA_RIVALS_FAKE", "1", 1);
    rivals = rivals_find();
    if (!rivals || rivals_take(rivals, "test", &rival, &error) != TSR_OK) return 1;
    words = make_words(TEXTURE, COLUMNS, ROWS, 1, 8);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rivals_give(rivals, rival);
    rivals_close(rivals);
    free(words);
    return 0;
}

static int set_picture(void **state)
{
    const struct rival_picture picture = describe_words(words, COLUMNS, ROWS, 1, 8);
    (void)state;
    rival_set_picture(rival, &picture);
    return 0;
}

static struct rival_result code(const char *key, const char *setting, double seconds, uint64_t bytes, uint8_t *decoded)
{
    const struct rival_limits limits = {seconds, bytes};
    struct tsr_error error = {0};
    struct rival_result result;
    memset(&result, 1, sizeof result);
    const enum tsr_status status = rival_code(rival, key, setting, &limits, &result, decoded, &error);
    expect(status == TSR_OK, "%s: %s", key, error.text);
    return result;
}

/* The same rival codes and decodes this picture as if nothing had been. */
static void expect_works(const char *after)
{
    uint8_t decoded[COLUMNS * ROWS];
    const struct rival_result r = code("tessera", "-5", PATIENCE, 0, decoded);
    expect(r.outcome == RIVAL_DONE && r.is_same, "after %s: %s", after, r.reason);
    for (size_t i = 0; i < COUNT_OF(decoded); i++) expect(decoded[i] == words[i], "after %s: sample %zu", after, i);
}

static void expect_failed(const struct rival_result *r, const char *reason)
{
    expect(r->outcome == RIVAL_FAILED && !strcmp(r->reason, reason), "outcome %d, '%s'", (int)r->outcome, r->reason);
    assert_int_equal(r->bytes, 0);
    assert_false(r->is_same);
}

TEST(a_crash_costs_one_result)
{
    for (int turn = 0; turn < 3; turn++) {
        const struct rival_result r = code("fake-crash", "", PATIENCE, 0, NULL);
        expect_failed(&r, "crashed: signal 11");
        expect_works("a crash");
    }
}

TEST(a_codec_that_hangs_costs_its_seconds)
{
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    const struct rival_result r = code("fake-hang", "", 1, 0, NULL);
    clock_gettime(CLOCK_MONOTONIC, &after);
    const double seconds = (double)(after.tv_sec - before.tv_sec) + 1e-9 * (double)(after.tv_nsec - before.tv_nsec);
    expect_failed(&r, "took more than 1 s");
    expect(seconds >= 1, "%g s", seconds);
    expect_works("a codec that hangs");
}

/* Sanitizers reserve more address space than any limit. */
static void skip_if_sanitized(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip();
#endif
}

TEST(memory_is_limited)
{
    skip_if_sanitized();
    const struct rival_result r = code("fake-memory", "", PATIENCE, (uint64_t)1 << 30, NULL);
    expect_failed(&r, "ran out of memory");
    expect_works("a codec without end");
}

/* All codecs of the table on a picture for which they have little memory: each ends with a result, and none harms the
 * next. */
TEST(every_codec_survives_too_little_memory)
{
    enum { SIDE = 2500 };
    skip_if_sanitized();
    const struct rival_codec *codecs;
    struct tsr_error error;
    size_t count, out = 0;
    assert_int_equal(rivals_list(rivals, &codecs, &count, &error), TSR_OK);
    uint16_t *const large = make_words(TEXTURE, SIDE, SIDE, 3, 8);
    const struct rival_picture picture = describe_words(large, SIDE, SIDE, 3, 8);
    rival_set_picture(rival, &picture);
    for (size_t i = 0; i < count; i++) {
        if (codecs[i].is_missing || !strncmp(codecs[i].key, "fake", 4)) continue;
        const struct rival_result r = code(codecs[i].key, codecs[i].settings[0], PATIENCE, (uint64_t)230 << 20, NULL);
        out += !strcmp(r.reason, "ran out of memory");
        expect(r.outcome == RIVAL_DONE || r.outcome == RIVAL_FAILED, "%s: %s", codecs[i].key, r.reason);
        expect(!strstr(r.reason, "crashed") && !strstr(r.reason, "took"), "%s: %s", codecs[i].key, r.reason);
    }
    expect(out >= 3, "%zu codecs ran out of memory", out);
    free(large);
    set_picture(NULL);
    expect_works("too little memory");
}

TEST(wrong_samples_are_a_failure)
{
    uint8_t decoded[COLUMNS * ROWS];
    const struct rival_result r = code("fake-wrong", "", PATIENCE, 0, decoded);
    expect_failed(&r, "the decoded samples differ");
    expect_works("wrong samples");
}

TEST(an_answer_that_is_not_valid_costs_one_result)
{
    const struct rival_result r = code("fake-garbage", "", PATIENCE, 0, NULL);
    expect_failed(&r, "the helper's answer is not valid");
    expect_works("an answer that is not valid");
}

TEST(what_the_table_does_not_have_fails)
{
    static const char *const requests[][2] = {{"no-such-codec", ""}, {"tessera", "-10"}, {"tessera", "-2.5"},
                                              {"tessera", ""},       {"zstd", "19"},     {"tessera-lossy", "QP x"}};
    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        const struct rival_result r = code(requests[i][0], requests[i][1], PATIENCE, 0, NULL);
        expect_failed(&r, "the helper ended with status 2");
        expect_works(requests[i][0]);
    }
}

TEST(requests_that_cannot_be_are_refused)
{
    static const char *const requests[][2] = {{"png\nversion", ""},
                                              {"", ""},
                                              {"tessera -5", ""},
                                              {"tessera", "-5\n"},
                                              {"tessera", "-00000000000000000000000000000000000005"}};
    struct rival_result result;
    struct tsr_error error;
    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        const enum tsr_status status = rival_code(rival, requests[i][0], requests[i][1], NULL, &result, NULL, &error);
        expect(status == TSR_ERROR_USAGE && error.status == status, "request %zu: %d", i, (int)status);
    }
    assert_int_equal(rival_code(NULL, "png", "", NULL, &result, NULL, &error), TSR_ERROR_USAGE);
    uint16_t deep[1] = {4095};
    uint8_t decoded[2];
    const struct rival_picture picture = describe_words(deep, 1, 1, 1, 12);
    rival_set_picture(rival, &picture);
    assert_int_equal(rival_code(rival, "tessera", "-5", NULL, &result, decoded, &error), TSR_ERROR_USAGE);
    set_picture(NULL);
    expect_works("requests that cannot be");
}

TEST(a_rival_that_was_given_back_has_no_picture)
{
    struct rival_result result;
    struct tsr_error error;
    rivals_give(rivals, rival);
    assert_int_equal(rivals_take(rivals, "test", &rival, &error), TSR_OK);
    assert_int_equal(rival_code(rival, "tessera", "-5", NULL, &result, NULL, &error), TSR_ERROR_USAGE);
    set_picture(NULL);
    expect_works("being given back");
}

/* A rival whose process has ended may be given back, and one that has not been started again. */
TEST(a_rival_without_a_process_can_be_given_back)
{
    struct tsr_error error;
    code("fake-crash", "", PATIENCE, 0, NULL);
    rivals_give(rivals, rival);
    assert_int_equal(rivals_take(rivals, "test", &rival, &error), TSR_OK);
    set_picture(NULL);
    expect_works("a rival without a process");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_crash_costs_one_result, set_picture),
        cmocka_unit_test_setup(a_codec_that_hangs_costs_its_seconds, set_picture),
        cmocka_unit_test_setup(memory_is_limited, set_picture),
        cmocka_unit_test_setup(every_codec_survives_too_little_memory, set_picture),
        cmocka_unit_test_setup(wrong_samples_are_a_failure, set_picture),
        cmocka_unit_test_setup(an_answer_that_is_not_valid_costs_one_result, set_picture),
        cmocka_unit_test_setup(what_the_table_does_not_have_fails, set_picture),
        cmocka_unit_test_setup(requests_that_cannot_be_are_refused, set_picture),
        cmocka_unit_test_setup(a_rival_that_was_given_back_has_no_picture, set_picture),
        cmocka_unit_test_setup(a_rival_without_a_process_can_be_given_back, set_picture),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
