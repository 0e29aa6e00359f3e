/* Hostile inputs (tests/attack/hostile.h): what takes too many steps is stored, with its reason, and what does not is
 * coded; by any number of threads alike. Steps are counted here, not seconds. */
#include "tests/unit/support.h"

#include "app/tessera.h"
#include "io/formats/packed.h"
#include "io/nodes/deflate/deflate_parts.h"
#include "tests/attack/hostile.h"

enum { BYTES = 400000 };

static struct bytes make(const char *name, size_t size)
{
    struct bytes file = {.size = 0};
    for (const struct hostile *const *table = hostile_tables; *table; table++)
        for (const struct hostile *h = *table; h->name; h++)
            if (strcmp(h->name, name) == 0) h->make(&file, size, h->variant);
    expect(file.size > 0, "there is no input %s", name);
    return file;
}

static struct tsr_engine *engine_of(int threads)
{
    struct tsr_engine_options options = TSR_ENGINE_OPTIONS;
    struct tsr_engine *engine = NULL;
    struct tsr_error error = {0};
    options.threads = threads;
    expect(tsr_engine_create(&options, &engine, &error) == TSR_OK, "%s", error.text);
    return engine;
}

static struct tsr_buffer compress(struct tsr_engine *engine, const char *name, const struct bytes *file,
                                  struct tsr_report *report)
{
    const struct tsr_data_source source = tsr_from_memory(file->data, file->size);
    struct tsr_buffer made;
    const struct tsr_data_sink sink = tsr_to_memory(&made);
    struct tsr_error error = {0};
    expect(tsr_compress(engine, &source, &sink, NULL, report, &error) == TSR_OK, "%s: %s", name, error.text);
    expect(report->verified && report->promise == TSR_PROMISE_FILE, "%s: not proven", name);
    return made;
}

/* What becomes of an input by one thread and by three: the same bytes, for the same reason. */
static void check(const char *name, bool is_stored, const char *reason)
{
    struct bytes file = make(name, BYTES);
    struct tsr_buffer made[2];
    for (int i = 0; i < 2; i++) {
        struct tsr_engine *const engine = engine_of(1 + 2 * i);
        struct tsr_report report = TSR_REPORT;
        made[i] = compress(engine, name, &file, &report);
        expect((report.way == TSR_WAY_STORED) == is_stored, "%s: way %d, has an image %d: %s", name, (int)report.way,
               report.has_image, report.reason);
        expect(strstr(report.reason, reason) != NULL, "%s: the reason is \"%s\"", name, report.reason);
        tsr_engine_destroy(engine);
    }
    expect(made[0].count == made[1].count && memcmp(made[0].bytes, made[1].bytes, made[0].count) == 0,
           "%s: threads change bytes", name);
    tsr_buffer_free(&made[0]);
    tsr_buffer_free(&made[1]);
    free_bytes(&file);
}

static const char costly[] = "its deflate stream takes more than 64 steps a byte to make again";

/* Tables that are longer than what they code, and matches that no search finds. */
TEST(costly_streams_are_stored)
{
    static const char *const names[] = {"png-dynamic-0",   "gzip-dynamic-0",   "png-dynamic-1",
                                        "gzip-dynamic-1",  "png-alternating",  "gzip-far-matches",
                                        "png-far-matches", "gzip-two-matches", "png-two-one-block"};
    for (size_t i = 0; i < COUNT_OF(names); i++) check(names[i], true, costly);
}

/* What looks as hostile, but is not costly. The encoders are zlib, and one that ends a block or a member at each byte.
 */
TEST(other_streams_are_coded)
{
    static const char *const names[] = {"png-stored-1",        "png-stored-odd",    "png-fixed-0",
                                        "png-fixed-1",         "png-flushes",       "png-two-literals",
                                        "gzip-two-literals",   "png-zlib-9-period", "png-late-change",
                                        "gzip-members-of-16k", "png-idats-of-1"};
    for (size_t i = 0; i < COUNT_OF(names); i++) check(names[i], false, "");
}

/* A residue that is longer than its file is refused by who restores the file. */
TEST(long_residues)
{
    check("j2k-parts", true, "coded as samples it would be larger");
}

/* ---- Steps ------------------------------------------------------------------------------------------------ */

/* The stream of a gzip file, taken apart by a coder that is kept. */
struct split {
    struct bytes file;
    struct tsr_bytes plain, residue;
    struct deflate_coder *coder;
    size_t used;
};

enum { HEAD = 10, TAIL = 8 };

static struct split split_gzip(const char *name, size_t size, enum tsr_status wanted)
{
    struct split s = {make(name, size), {.limit = 1 << 24}, {.limit = 1 << 24}, NULL, 0};
    struct tsr_deflate_way way = TSR_DEFLATE_ALONE;
    struct tsr_error error = {0};
    way.kept = &s.coder;
    const enum tsr_status status =
        tsr_deflate_read_by(&way, s.file.data + HEAD, s.file.size - HEAD - TAIL, &s.used, &s.plain, &s.residue, &error);
    expect(status == wanted, "%s: %s", name, error.text);
    return s;
}

static void free_split(struct split *s)
{
    tsr_deflate_forget(s->coder);
    tsr_bytes_free(&s->plain);
    tsr_bytes_free(&s->residue);
    free_bytes(&s->file);
}

/* The steps that choosing parameters took. */
static uint64_t steps_of_choice(const char *name, size_t size, enum tsr_status wanted)
{
    struct split s = split_gzip(name, size, wanted);
    const uint64_t all = deflate_choice(s.plain.size), left = s.coder->choice;
    free_split(&s);
    return all - left;
}

/* Stored blocks that are longer than those of zlib's other levels need no search of levels. */
TEST(stored_streams_are_not_searched)
{
    enum { SIZE = 1000000 }; /* longer than what a trial reads */
    const uint64_t steps = steps_of_choice("gzip-stored-steps", SIZE, TSR_OK);
    expect(steps < 2 * SIZE, "stored blocks: %llu steps of choosing parameters", (unsigned long long)steps);
}

/* A stream that no parameters repeat: the search ends when its steps are spent. */
TEST(choices_are_bounded)
{
    const uint64_t all = deflate_choice(BYTES);
    assert_true(steps_of_choice("gzip-two-literals", BYTES, TSR_OK) >= all);
    assert_true(steps_of_choice("gzip-period-far", BYTES, TSR_OK) >= all);
    assert_true(steps_of_choice("gzip-far-matches", BYTES, TSR_ERROR_CORRUPT) >= all);
    assert_true(steps_of_choice("gzip-dynamic-0", BYTES, TSR_ERROR_CORRUPT) >= deflate_choice(0));
}

/* Bytes of two values, of which chains of equal strings are as long as the window: level 9 of zlib takes hundreds of
 * steps a byte. Chains of more bytes leave out those that can be no match. */
TEST(searches_leave_out_candidates)
{
    struct split s = split_gzip("gzip-zlib-9-two", BYTES, TSR_OK);
    struct tsr_bytes again = {.limit = 1 << 24};
    struct tsr_deflate_way way = TSR_DEFLATE_ALONE;
    way.kept = &s.coder;
    expect(s.residue.size < 16, "a residue of %zu bytes", s.residue.size);
    assert_int_equal(
        tsr_deflate_write_by(&way, s.plain.bytes, s.plain.size, s.residue.bytes, s.residue.size, &again, NULL), TSR_OK);
    assert_true(again.size == s.used && memcmp(again.bytes, s.file.data + HEAD, s.used) == 0);
    const uint64_t steps = DEFLATE_PATIENCE * deflate_work(s.plain.size) - s.coder->model.work;
    expect(steps < 48 * (uint64_t)s.plain.size, "%llu steps for %zu bytes", (unsigned long long)steps, s.plain.size);
    tsr_bytes_free(&again);
    free_split(&s);
}

/* Makes a stream again by at most so many steps. */
static enum tsr_status make_again(struct split *s, uint64_t steps, struct tsr_error *error)
{
    struct deflate_coder *const coder = s->coder;
    struct tsr_cursor in = {s->residue.bytes, s->residue.size, 0, false};
    struct tsr_bytes stream = {.limit = 1 << 24};
    struct deflate_sink sink = {.stream = &stream};
    struct deflate_parameters parameters;
    uint32_t padding = 0;
    memset(coder, 0, offsetof(struct deflate_coder, block));
    coder->block.most = 0;
    coder->run = DEFLATE_RUN;
    coder->stop = coder->most_residue = SIZE_MAX;
    coder->sink = &sink;
    coder->error = error;
    assert_true(tsr_deflate_get_parameters(&in, &parameters, &padding));
    tsr_deflate_begin(&coder->model, &parameters, s->plain.bytes, s->plain.size);
    coder->model.work = steps;
    tsr_range_begin_reading(&coder->range, in.bytes + in.at, in.size - in.at);
    const enum tsr_status status = tsr_deflate_code(coder);
    tsr_bytes_free(&stream);
    return status;
}

/* Making a stream again ends when its steps are spent. No input is known that spends DEFLATE_PATIENCE times those of
 * the encoder (18 a byte are the most here), so fewer are given. Noise, which is stored in long blocks, takes none. */
TEST(making_again_is_bounded)
{
    static const char *const names[] = {"gzip-zlib-9-two", "gzip-zlib-6-noise"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct split s = split_gzip(names[i], BYTES, TSR_OK);
        struct tsr_error error = {0};
        expect(make_again(&s, UINT64_MAX, &error) == TSR_OK, "%s: %s", names[i], error.text);
        const uint64_t spent = UINT64_MAX - s.coder->model.work;
        assert_int_equal(make_again(&s, spent + 1, &error), TSR_OK);
        expect((spent == 0) == (i == 1), "%s: %llu steps", names[i], (unsigned long long)spent);
        expect(spent == 0 || (make_again(&s, spent / 2, &error) == TSR_ERROR_CORRUPT && s.coder->is_costly),
               "%s: half of %llu steps", names[i], (unsigned long long)spent);
        expect(spent == 0 || s.coder->model.at < s.plain.size * 3 / 4, "%s: it went on", names[i]);
        free_split(&s);
    }
}

/* ---- What is tried in vain -------------------------------------------------------------------------------- */

/* Opens a packed source. most: what the input takes otherwise. */
static enum tsr_status open_packed(const struct bytes *file, enum tsr_kind kind, uint64_t most, struct tsr_error *error)
{
    struct tsr_input *const input = tsr_input_from_memory(file->data, file->size, "input");
    const struct tsr_packing packing = {.kind = kind, .reason = "it is a test", .coded = most};
    struct tsr_source *source = NULL;
    const enum tsr_status status = tsr_packed_open(input, &packing, &source, error);
    tsr_source_close(source);
    tsr_input_close(input);
    return status;
}

#if TSR_WITH_ZSTD
/* Elements of which zstd leaves less than a byte of 32 are not coded by mixed predictions; others are. */
TEST(few_bytes_are_not_mixed)
{
    struct bytes flat = make("dicom-sequences", BYTES), idle = make("rle-idle", BYTES);
    struct tsr_error error = {0};
    assert_int_equal(open_packed(&flat, TSR_KIND_DICOM, 0, &error), TSR_DECLINED);
    expect(open_packed(&idle, TSR_KIND_DICOM, 0, &error) == TSR_OK, "%s", error.text);
    free_bytes(&flat);
    free_bytes(&idle);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costly_streams_are_stored),
        cmocka_unit_test(other_streams_are_coded),
        cmocka_unit_test(long_residues),
        cmocka_unit_test(stored_streams_are_not_searched),
        cmocka_unit_test(choices_are_bounded),
        cmocka_unit_test(searches_leave_out_candidates),
        cmocka_unit_test(making_again_is_bounded),
#if TSR_WITH_ZSTD
        cmocka_unit_test(few_bytes_are_not_mixed),
#endif
    };
    return cmocka_run_group_tests_name("hostile inputs", tests, NULL, NULL);
}
