/* app/library/budget.h, tsr_engine_limit_memory: claims wait for each other and stay within the budget. What never fits
 * is refused with the budget that would do, and succeeds with it. */
#define _GNU_SOURCE /* gettid */
#include "tests/unit/support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "app/library/budget.h"

#define MEGABYTE ((uint64_t)1000000)

static void sleep_ms(long ms)
{
    const struct timespec time = {0, ms * 1000000};
    nanosleep(&time, NULL);
}

static void await(const atomic_int *count, int least)
{
    while (atomic_load(count) < least) sleep_ms(1);
}

static struct tsr_engine *engine_of(int threads)
{
    return must(make_engine(TSR_ENGINE_CPU, threads));
}

/* The number that follows words in a sentence. */
static uint64_t number_after(const char *text, const char *words)
{
    const char *at = strstr(text, words);
    expect(at != NULL, "'%s' is not said in: %s", words, text);
    return strtoull(at + strlen(words), NULL, 10);
}

/* The least budget of an engine, from its error message. */
static uint64_t least_budget(struct tsr_engine *engine)
{
    struct tsr_error error = {0};
    assert_int_equal(tsr_engine_limit_memory(engine, 1, &error), TSR_ERROR_USAGE);
    assert_int_equal(error.status, TSR_ERROR_USAGE);
    return number_after(error.text, "they take ") * MEGABYTE;
}

static size_t lot(const struct tsr_engine *engine, enum tsr_memory_lot which)
{
    return tsr_pool_memory(engine->pool, which);
}

static size_t all_lots(const struct tsr_engine *engine)
{
    return lot(engine, TSR_MEMORY_OF_FILES) + lot(engine, TSR_MEMORY_OF_HEADERS) + lot(engine, TSR_MEMORY_OF_RESULTS);
}

/* ---- The budget --------------------------------------------------------------------------------------------- */

TEST(too_little_for_the_threads)
{
    uint64_t before = 0;
    for (int threads = 1; threads <= 8; threads++) {
        struct tsr_error error = {0};
        struct tsr_engine *engine = engine_of(threads);
        const uint64_t least = least_budget(engine);
        const size_t usual = all_lots(engine);
        assert_int_equal(tsr_engine_limit_memory(engine, least - 1, &error), TSR_ERROR_USAGE);
        assert_int_equal(number_after(error.text, "for "), tsr_engine_threads(engine));
        assert_int_equal(number_after(error.text, "they take "), least / MEGABYTE);
        assert_int_equal(tsr_engine_limit_memory(engine, least - MEGABYTE, NULL), TSR_ERROR_USAGE);
        assert_int_equal(all_lots(engine), usual); /* a refused budget changes nothing */
        assert_int_equal(tsr_engine_limit_memory(engine, least, &error), TSR_OK);
        expect(least > before || tsr_engine_threads(engine) < threads, "%d threads take no more", threads);
        before = least;
        tsr_engine_destroy(engine);
    }
}

/* More memory enlarges every lot. The lots together are less than the budget, by the same amount for each thread. */
TEST(lots_of_the_budget)
{
    struct tsr_engine *one = engine_of(1), *many = engine_of(4);
    size_t files = 0;
    assert_true(all_lots(one) < SIZE_MAX); /* an engine has a budget from its creation */
    for (uint64_t bytes = least_budget(many); bytes < (uint64_t)1 << 40; bytes += bytes / 3) {
        if (bytes > SIZE_MAX / 2) break;
        assert_int_equal(tsr_engine_limit_memory(one, bytes, NULL), TSR_OK);
        assert_int_equal(tsr_engine_limit_memory(many, bytes, NULL), TSR_OK);
        assert_true(one->memory_bytes == bytes && one->cpu->memory_bytes == bytes);
        expect(all_lots(one) < bytes, "%zu of %llu", all_lots(one), (unsigned long long)bytes);
        if (tsr_engine_threads(many) > 1) assert_true(all_lots(many) < all_lots(one));
        expect(lot(one, TSR_MEMORY_OF_FILES) > files, "no more for files of %llu bytes", (unsigned long long)bytes);
        files = lot(one, TSR_MEMORY_OF_FILES);
        for (int which = 0; which < TSR_MEMORY_LOTS; which++) assert_true(lot(many, which) >= (size_t)1 << 20);
    }
    assert_int_equal(tsr_engine_limit_memory(one, UINT64_MAX, NULL), TSR_OK);
    assert_true(lot(one, TSR_MEMORY_OF_FILES) > files && all_lots(one) < SIZE_MAX);
    tsr_engine_destroy(one);
    tsr_engine_destroy(many);
}

/* 0 restores the budget that an engine has at first. */
TEST(usual_budget)
{
    struct tsr_engine *engine = engine_of(2);
    const size_t usual = all_lots(engine), bytes = engine->memory_bytes;
    assert_int_equal(tsr_engine_limit_memory(engine, least_budget(engine), NULL), TSR_OK);
    assert_int_equal(tsr_engine_limit_memory(engine, 0, NULL), TSR_OK);
    assert_true(all_lots(engine) == usual && engine->memory_bytes == bytes);
    tsr_engine_destroy(engine);
}

/* ---- Accounts ----------------------------------------------------------------------------------------------- */

/* An engine with the least budget, and an input without bytes that has an account there. */
struct claiming {
    struct tsr_engine *engine;
    struct tsr_input *input;
    struct tsr_account account;
};

static void open_account(struct claiming *c, struct tsr_engine *engine, const char *name)
{
    c->engine = engine;
    c->input = must(tsr_input_from_memory("", 0, name));
    tsr_account_open(&c->account, engine, c->input, &(struct tsr_coding){0});
}

static void close_account(struct claiming *c)
{
    tsr_input_close(c->input);
    tsr_account_close(&c->account);
}

/* Whether all of every lot is free, so that nothing of earlier claims is left. */
static bool is_free(const struct tsr_engine *engine)
{
    for (int which = 0; which < TSR_MEMORY_LOTS; which++) {
        if (!tsr_pool_reserve(engine->pool, which, lot(engine, which))) return false;
        tsr_pool_release(engine->pool, which, lot(engine, which));
    }
    return true;
}

typedef enum tsr_status claim_function(struct claiming *c, uint64_t bytes, struct tsr_error *error);

static enum tsr_status claim_files(struct claiming *c, uint64_t bytes, struct tsr_error *error)
{
    return tsr_account_claim(&c->account, bytes, false, error);
}

static enum tsr_status claim_header(struct claiming *c, uint64_t bytes, struct tsr_error *error)
{
    return tsr_input_claim_header(c->input, bytes, error);
}

static enum tsr_status claim_results(struct claiming *c, uint64_t bytes, struct tsr_error *error)
{
    if (!tsr_pool_reserve(c->engine->pool, TSR_MEMORY_OF_RESULTS, (size_t)bytes))
        return tsr_fail_memory(c->engine, TSR_MEMORY_OF_RESULTS, tsr_input_name(c->input), bytes, error);
    tsr_pool_release(c->engine->pool, TSR_MEMORY_OF_RESULTS, (size_t)bytes);
    return TSR_OK;
}

/* Claims one byte too much of a lot, and far more. The budget in the error message suffices; one megabyte less does
 * not. */
static void check_refusals(claim_function *claim, enum tsr_memory_lot which)
{
    struct tsr_engine *engine = engine_of(2);
    const uint64_t least = least_budget(engine);
    for (uint64_t times = 0; times < 40; times = 3 * times + 1) {
        struct tsr_error error = {0};
        struct claiming c;
        assert_int_equal(tsr_engine_limit_memory(engine, least, NULL), TSR_OK);
        const uint64_t most = which == TSR_MEMORY_OF_FILES ? tsr_all_memory(engine) : lot(engine, which),
                       bytes = most * (times > 0 ? times : 1) + 1;
        if (which == TSR_MEMORY_OF_RESULTS && times > 10) break; /* there never are more than 256 MiB of them */
        open_account(&c, engine, "scan.dcm");
        assert_int_equal(claim(&c, bytes, &error), TSR_ERROR_LIMIT);
        assert_int_equal(error.status, TSR_ERROR_LIMIT);
        assert_true(strncmp(error.text, "scan.dcm takes ", 15) == 0);
        assert_int_equal(number_after(error.text, "takes "), (bytes + MEGABYTE - 1) / MEGABYTE);
        const uint64_t would_do = number_after(error.text, "memory_bytes of ") * MEGABYTE;
        assert_non_null(strstr(error.text, "M would do"));
        assert_true(would_do > least);
        close_account(&c);
        assert_true(is_free(engine));
        for (int less = 0; less < 2; less++) {
            assert_int_equal(tsr_engine_limit_memory(engine, would_do - (uint64_t)less * MEGABYTE, NULL), TSR_OK);
            open_account(&c, engine, "scan.dcm");
            expect(claim(&c, bytes, &error) == (less ? TSR_ERROR_LIMIT : TSR_OK), "%llu bytes of %llu, less %d",
                   (unsigned long long)bytes, (unsigned long long)would_do, less);
            if (less) assert_int_equal(number_after(error.text, "memory_bytes of ") * MEGABYTE, would_do);
            close_account(&c);
            assert_true(is_free(engine));
        }
    }
    tsr_engine_destroy(engine);
}

TEST(what_never_fits)
{
    check_refusals(claim_files, TSR_MEMORY_OF_FILES);
    check_refusals(claim_header, TSR_MEMORY_OF_HEADERS);
    check_refusals(claim_results, TSR_MEMORY_OF_RESULTS);
    struct claiming c;
    struct tsr_error error = {0};
    struct tsr_engine *engine = engine_of(1);
    for (int unlimited = 0; unlimited < 2; unlimited++) {
        if (unlimited) assert_int_equal(tsr_engine_limit_memory(engine, UINT64_MAX, NULL), TSR_OK);
        open_account(&c, engine, "scan.dcm");
        assert_int_equal(tsr_account_claim(&c.account, UINT64_MAX, false, &error), TSR_ERROR_LIMIT);
        close_account(&c);
    }
    tsr_engine_destroy(engine);
}

/* A file claims its memory once. Then its header's memory is free for others, and its own when its account is
 * closed. */
TEST(one_account)
{
    struct claiming c;
    struct tsr_engine *engine = engine_of(1);
    assert_int_equal(tsr_engine_limit_memory(engine, least_budget(engine), NULL), TSR_OK);
    open_account(&c, engine, "it");
    for (int round = 0; round < 3; round++) {
        assert_int_equal(tsr_input_claim_header(c.input, TSR_UNCLAIMED_BYTES + 1, NULL), TSR_OK);
        assert_int_equal(c.account.headers, lot(engine, TSR_MEMORY_OF_HEADERS));
    }
    assert_int_equal(tsr_account_claim(&c.account, 5000000, false, NULL), TSR_OK);
    assert_int_equal(c.account.headers, 0);
    assert_true(tsr_pool_reserve(engine->pool, TSR_MEMORY_OF_HEADERS, lot(engine, TSR_MEMORY_OF_HEADERS)));
    assert_int_equal(tsr_input_claim_header(c.input, TSR_UNCLAIMED_BYTES + 1, NULL),
                     TSR_OK); /* read again: it does not wait */
    tsr_pool_release(engine->pool, TSR_MEMORY_OF_HEADERS, lot(engine, TSR_MEMORY_OF_HEADERS));
    assert_int_equal(tsr_account_claim(&c.account, 5000000, false, NULL), TSR_OK);
    assert_int_equal(tsr_account_claim(&c.account, 0, false, NULL), TSR_OK);
    assert_int_equal(tsr_account_claim(&c.account, 5000001, false, NULL), TSR_ERROR_CORRUPT);
    assert_int_equal(c.account.files, 5000000);
    tsr_input_give_back(c.input); /* the file is read in another way, which may take more */
    assert_int_equal(tsr_account_claim(&c.account, 5000001, false, NULL), TSR_OK);
    assert_int_equal(tsr_account_claim(&c.account, 5000002, false, NULL), TSR_ERROR_CORRUPT);
    close_account(&c);
    assert_true(is_free(engine));
    /* Only a header; nothing. */
    open_account(&c, engine, "it");
    assert_int_equal(tsr_input_claim_header(c.input, TSR_UNCLAIMED_BYTES + 1, NULL), TSR_OK);
    close_account(&c);
    open_account(&c, engine, "it");
    close_account(&c);
    assert_true(is_free(engine));
    tsr_engine_destroy(engine);
}

/* A file that takes more than the lot of files gets all lots, and so it is alone. Not one whose header takes memory,
 * and no file of a series: who waits for it may hold what it waits for. */
TEST(large_files)
{
    struct claiming c;
    struct tsr_error error = {0};
    struct tsr_engine *engine = engine_of(2);
    assert_int_equal(tsr_engine_limit_memory(engine, least_budget(engine), NULL), TSR_OK);
    const uint64_t large = lot(engine, TSR_MEMORY_OF_FILES) + 1, most = tsr_all_memory(engine);
    assert_true(most > large && most >= all_lots(engine) && most < engine->memory_bytes);
    for (uint64_t bytes = large; bytes <= most; bytes += most - large) {
        open_account(&c, engine, "it");
        assert_int_equal(tsr_account_claim(&c.account, bytes, false, NULL), TSR_OK);
        for (int which = 0; which < TSR_MEMORY_LOTS; which++)
            assert_false(tsr_pool_try_reserve(engine->pool, (enum tsr_memory_lot)which, 1));
        assert_int_equal(tsr_account_claim(&c.account, large, false, NULL), TSR_OK);
        assert_int_equal(tsr_account_claim(&c.account, bytes + 1, false, NULL), TSR_ERROR_CORRUPT);
        tsr_input_give_back(c.input);
        assert_true(is_free(engine));
        assert_int_equal(tsr_account_claim(&c.account, 5, false, NULL), TSR_OK);
        close_account(&c);
        assert_true(is_free(engine));
    }
    for (int i = 0; i < 2; i++) {
        open_account(&c, engine, "it");
        c.account.is_member = i == 0;
        if (i == 1) assert_int_equal(tsr_input_claim_header(c.input, TSR_UNCLAIMED_BYTES + 1, NULL), TSR_OK);
        assert_int_equal(tsr_account_claim(&c.account, large, false, &error), TSR_ERROR_LIMIT);
        assert_true(number_after(error.text, "memory_bytes of ") * MEGABYTE > engine->memory_bytes);
        close_account(&c);
    }
    open_account(&c, engine, "it");
    c.account.only_checks = true;
    assert_int_equal(tsr_account_claim(&c.account, most, false, NULL), TSR_OK);
    assert_true(is_free(engine));
    assert_int_equal(tsr_account_claim(&c.account, most + 1, false, NULL), TSR_ERROR_LIMIT);
    close_account(&c);
    assert_true(is_free(engine));
    tsr_engine_destroy(engine);
}

static struct tsr_header header_of(uint32_t columns, uint32_t rows, uint32_t frames)
{
    return (struct tsr_header){.image = {.columns = columns,
                                         .rows = rows,
                                         .frames = frames,
                                         .components = 1,
                                         .bits_allocated = 16,
                                         .bits_stored = 12,
                                         .high_bit = 11}};
}

/* The memory that coding an image takes is claimed together with that for reading it. An image whose frames are smaller
 * than the cost of a frame is not coded. */
TEST(claims_of_images)
{
    struct tsr_engine *engine = engine_of(1);
    const struct tsr_header image = header_of(500, 400, 3), tiny = header_of(3, 4, 1000000),
                            least = header_of(13, 1, 1);
    const struct tsr_need need = {.opening = 12345}, nothing = {0};
    struct tsr_error error = {0};
    struct claiming c;
    open_account(&c, engine, "it");
    assert_int_equal(tsr_input_claim(c.input, &image, &need, NULL), TSR_OK);
    assert_true(c.account.files > tsr_raster_bytes(&image.image) + 12345);
    assert_int_equal(tsr_input_claim(c.input, &image, &need, NULL), TSR_OK); /* opened again */
    close_account(&c);
    open_account(&c, engine, "it");
    assert_int_equal(tsr_input_claim(c.input, &tiny, &nothing, &error), TSR_ERROR_CORRUPT);
    assert_string_equal(error.text, tsr_smaller_stored);
    assert_int_equal(tsr_input_claim(c.input, &least, &nothing, &error), TSR_OK);
    close_account(&c);
    open_account(&c, engine, "it");
    assert_int_equal(tsr_input_claim(c.input, NULL, &nothing, NULL), TSR_OK);
    close_account(&c);
    assert_true(is_free(engine));
    tsr_engine_destroy(engine);
}

/* What a file of an image may claim under a budget: memory to code it, and to verify the result. */
static enum tsr_status claim_image(struct tsr_engine *engine, const struct tsr_header *header, bool may_lose,
                                   uint64_t budget, struct tsr_error *error)
{
    struct claiming c;
    const struct tsr_need need = {0};
    assert_int_equal(tsr_engine_limit_memory(engine, budget, NULL), TSR_OK);
    open_account(&c, engine, "it");
    if (may_lose)
        c.account.coding = (struct tsr_coding){TSR_PATH_TRANSFORM, .lossy = true, .qp_eighths = 160, .effort = 5};
    c.account.base.is_verified = true;
    const enum tsr_status status = tsr_input_claim(c.input, header, &need, error);
    close_account(&c);
    return status;
}

static void check_budgets_of(struct tsr_engine *engine, const struct tsr_header *header, bool may_lose)
{
    const struct tsr_image *const image = &header->image;
    const uint64_t least = least_budget(engine);
    uint64_t fits = 0;
    for (uint64_t budget = least; budget < 3000 * MEGABYTE; budget += 10 * MEGABYTE + budget / 50) {
        struct tsr_error error = {0};
        const enum tsr_status status = claim_image(engine, header, may_lose, budget, &error);
        if (status == TSR_OK && fits == 0) fits = budget;
        expect(status == TSR_OK || fits == 0, "%u frames of %u columns, loss %d: %llu bytes do, and %llu do not",
               image->frames, image->columns, may_lose, (unsigned long long)fits, (unsigned long long)budget);
        if (status == TSR_OK) continue;
        assert_int_equal(status, TSR_ERROR_LIMIT);
        const uint64_t would_do = number_after(error.text, "memory_bytes of ") * MEGABYTE;
        assert_true(would_do > budget);
        expect(claim_image(engine, header, may_lose, would_do, &error) == TSR_OK,
               "%u frames of %u columns, loss %d, under %llu bytes: %llu should do, but: %s", image->frames,
               image->columns, may_lose, (unsigned long long)budget, (unsigned long long)would_do, error.text);
    }
    assert_true(fits > 0);
}

/* What fits a budget fits every larger one. The budget in an error message suffices, even if more frames are coded at
 * once because there is more memory. */
TEST(budgets_that_would_do)
{
    const struct tsr_header images[] = {header_of(4000, 4000, 1), header_of(1200, 1200, 10), header_of(512, 512, 30),
                                        header_of(64, 64, 2000), header_of(16, 16, 20000)};
    for (int threads = 1; threads <= 4; threads += 3) {
        struct tsr_engine *engine = engine_of(threads);
        for (size_t i = 0; i < COUNT_OF(images); i++)
            for (int may_lose = 0; may_lose < 2; may_lose++) check_budgets_of(engine, &images[i], may_lose);
        tsr_engine_destroy(engine);
    }
}

/* ---- Several at once ---------------------------------------------------------------------------------------- */

enum { CLAIMANTS = 4, CLAIMS = 60 };

struct sharing {
    struct tsr_engine *engine;
    atomic_size_t files;
    atomic_int headers, begun, done, too_much;
};

/* Claims for the header, then for the file, as a reader does. One in eight is so large that it must be alone. */
static void claim_and_hold(struct sharing *s, struct rng *r)
{
    struct claiming c;
    const bool is_large = rng_below(r, 8) == 0;
    const size_t lot_bytes = lot(s->engine, TSR_MEMORY_OF_FILES),
                 bytes = is_large ? lot_bytes + 1 : lot_bytes / 8 + rng_below(r, (uint32_t)(lot_bytes / 2)),
                 limit = is_large ? bytes : lot_bytes;
    int faults = 0;
    open_account(&c, s->engine, "it");
    if (!is_large && rng_below(r, 2)) {
        faults += tsr_input_claim_header(c.input, TSR_UNCLAIMED_BYTES + 1, NULL) != TSR_OK;
        faults += atomic_fetch_add(&s->headers, 1) != 0; /* one header at a time */
        sleep_ms(1);
        atomic_fetch_sub(&s->headers, 1);
    }
    faults += tsr_account_claim(&c.account, bytes, false, NULL) != TSR_OK;
    faults += atomic_fetch_add(&s->files, bytes) + bytes > limit;
    if (rng_below(r, 2)) sleep_ms(1);
    atomic_fetch_sub(&s->files, bytes);
    close_account(&c);
    atomic_fetch_add(&s->too_much, faults);
    atomic_fetch_add(&s->done, 1);
}

static void *claim_often(void *context)
{
    struct sharing *s = context;
    struct rng r = {(uint64_t)atomic_fetch_add(&s->begun, 1)};
    for (int i = 0; i < CLAIMS; i++) claim_and_hold(s, &r);
    return NULL;
}

static void claim_as_task(void *context, unsigned index)
{
    struct rng r = {index};
    claim_and_hold(context, &r);
}

/* Threads of the engine's pool and others. */
TEST(claims_stay_within_the_budget)
{
    struct sharing s = {.engine = engine_of(3)};
    pthread_t thread[CLAIMANTS];
    assert_int_equal(tsr_engine_limit_memory(s.engine, least_budget(s.engine), NULL), TSR_OK);
    for (int i = 0; i < CLAIMANTS; i++) assert_int_equal(pthread_create(&thread[i], NULL, claim_often, &s), 0);
    tsr_pool_run_tasks(s.engine->pool, claim_as_task, &s, CLAIMS);
    for (int i = 0; i < CLAIMANTS; i++) pthread_join(thread[i], NULL);
    assert_int_equal(s.done, (CLAIMANTS + 1) * CLAIMS);
    assert_int_equal(s.too_much, 0);
    assert_true(is_free(s.engine));
    tsr_engine_destroy(s.engine);
}

struct waiting {
    struct tsr_engine *engine;
    uint64_t bytes;
    atomic_int begun, has_it;
};

static void *claim_and_tell(void *context)
{
    struct waiting *w = context;
    struct claiming c;
    open_account(&c, w->engine, "it");
    atomic_store(&w->begun, 1);
    tsr_account_claim(&c.account, w->bytes, false, NULL);
    atomic_store(&w->has_it, 1);
    close_account(&c);
    return NULL;
}

/* Two claims that do not fit together: the second gets its memory when the first account is closed. */
TEST(claims_wait)
{
    struct waiting w = {.engine = engine_of(1)};
    struct claiming first;
    pthread_t second;
    assert_int_equal(tsr_engine_limit_memory(w.engine, least_budget(w.engine), NULL), TSR_OK);
    w.bytes = lot(w.engine, TSR_MEMORY_OF_FILES) / 5 * 3;
    for (int round = 0; round < 10; round++) {
        atomic_store(&w.begun, 0);
        atomic_store(&w.has_it, 0);
        open_account(&first, w.engine, "it");
        assert_int_equal(tsr_account_claim(&first.account, w.bytes, false, NULL), TSR_OK);
        assert_int_equal(pthread_create(&second, NULL, claim_and_tell, &w), 0);
        await(&w.begun, 1);
        sleep_ms(5);
        assert_int_equal(w.has_it, 0);
        close_account(&first);
        pthread_join(second, NULL);
        assert_int_equal(w.has_it, 1);
    }
    assert_true(is_free(w.engine));
    tsr_engine_destroy(w.engine);
}

/* ---- Files -------------------------------------------------------------------------------------------------- */

static char folder[] = "tsr_budget_test.XXXXXX";
static char large[64], small[64], tsr[64], again[64], restored[64];

static void write_pgm(const char *path, uint32_t columns, uint32_t rows)
{
    static const uint8_t row[20000];
    FILE *file = must(fopen(path, "wb"));
    assert_true(fprintf(file, "P5\n%u %u\n65535\n", columns, rows) > 0);
    for (uint32_t y = 0; y < rows; y++) assert_int_equal(fwrite(row, 1, 2 * columns, file), 2 * columns);
    assert_int_equal(fclose(file), 0);
}

static int make_files(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) return -1;
    char *const paths[] = {large, small, tsr, again, restored};
    static const char *const names[] = {"large.pgm", "small.pgm", "tsr", "again", "restored"};
    for (size_t i = 0; i < COUNT_OF(names); i++) snprintf(paths[i], sizeof large, "%s/%s", folder, names[i]);
    write_pgm(large, 4000, 4000);
    write_pgm(small, 100, 100);
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    const char *const paths[] = {large, small, tsr, again, restored};
    for (size_t i = 0; i < COUNT_OF(paths); i++) unlink(paths[i]);
    return rmdir(folder);
}

static enum tsr_status compress(struct tsr_engine *engine, const char *input, const char *output,
                                struct tsr_error *error)
{
    struct tsr_report report;
    return compress_path(engine, input, output, NULL, &report, error);
}

static enum tsr_status decompress(struct tsr_engine *engine, const char *input, const char *output,
                                  struct tsr_error *error)
{
    struct tsr_report report;
    return restore_path(engine, input, output, &report, error);
}

static void expect_same(const char *path, const char *other)
{
    FILE *one = must(fopen(path, "rb")), *two = must(fopen(other, "rb"));
    static char a[1 << 16], b[1 << 16];
    size_t got;
    do {
        got = fread(a, 1, sizeof a, one);
        assert_int_equal(fread(b, 1, sizeof b, two), got);
        assert_memory_equal(a, b, got);
    } while (got > 0);
    fclose(one);
    fclose(two);
}

/* A file does not fit: the engine still works, the budget in the message suffices, and the bytes are the same. */
TEST(files_that_never_fit)
{
    struct tsr_error error = {0};
    struct tsr_engine *engine = engine_of(1);
    const uint64_t least = least_budget(engine);
    assert_int_equal(tsr_engine_limit_memory(engine, (uint64_t)1 << 30, NULL), TSR_OK);
    assert_int_equal(compress(engine, large, tsr, &error), TSR_OK);
    assert_int_equal(tsr_engine_limit_memory(engine, least, NULL), TSR_OK);
    assert_int_equal(compress(engine, large, again, &error), TSR_ERROR_LIMIT);
    assert_true(strncmp(error.text, large, strlen(large)) == 0);
    const uint64_t to_compress = number_after(error.text, "memory_bytes of ") * MEGABYTE;
    assert_int_not_equal(access(again, F_OK), 0);
    assert_int_equal(decompress(engine, tsr, restored, &error), TSR_ERROR_LIMIT);
    const uint64_t to_restore = number_after(error.text, "memory_bytes of ") * MEGABYTE;
    assert_int_not_equal(access(restored, F_OK), 0);
    assert_int_equal(decompress(engine, tsr, NULL, NULL), TSR_ERROR_LIMIT);
    assert_true(is_free(engine));
    assert_int_equal(compress(engine, small, again, &error), TSR_OK);
    assert_int_equal(decompress(engine, again, restored, &error), TSR_OK);
    expect_same(restored, small);
    /* And not less than the message says. */
    assert_int_equal(tsr_engine_limit_memory(engine, to_compress, NULL), TSR_OK);
    expect(compress(engine, large, again, &error) == TSR_OK, "%s", error.text);
    expect_same(again, tsr);
    assert_int_equal(tsr_engine_limit_memory(engine, to_restore, NULL), TSR_OK);
    expect(decompress(engine, tsr, restored, &error) == TSR_OK, "%s", error.text);
    expect_same(restored, large);
    assert_true(is_free(engine));
    tsr_engine_destroy(engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(too_little_for_the_threads),
                                       cmocka_unit_test(lots_of_the_budget),
                                       cmocka_unit_test(usual_budget),
                                       cmocka_unit_test(what_never_fits),
                                       cmocka_unit_test(one_account),
                                       cmocka_unit_test(large_files),
                                       cmocka_unit_test(claims_of_images),
                                       cmocka_unit_test(budgets_that_would_do),
                                       cmocka_unit_test(claims_stay_within_the_budget),
                                       cmocka_unit_test(claims_wait),
                                       cmocka_unit_test(files_that_never_fit)};
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
