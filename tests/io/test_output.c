/* Outputs and inputs that are files: the temporary name, the finished file, and nothing left where a call fails: every
 * write, read, open, sync and rename of a run is made to fail in turn (io/output.c, io/input.c, app/files.c). */
#include "in_memory.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "failing_calls.h"

static struct tsr_engine *engine;

static int set_up(void **state)
{
    engine = tsr_engine_create(TSR_ENGINE_CPU, 1, NULL);
    plan_no_failures();
    return engine ? make_folder(state) : -1;
}

static int tear_down(void **state)
{
    tsr_engine_destroy(engine);
    return remove_folder(state);
}

static struct tsr_output *create(const char *name, bool overwrite)
{
    struct tsr_output *output;
    struct tsr_error error = {0};
    const enum tsr_status status = tsr_output_create(path_in_folder(name), overwrite, &output, &error);
    expect(status == TSR_OK, "%s", error.text);
    return output;
}

TEST(appears_only_when_published)
{
    struct tsr_output *output = create("a", false);
    const char *temporary = tsr_output_temporary(output);
    assert_true(strncmp(temporary, folder, strlen(folder)) == 0 && strstr(temporary, "/.a.") &&
                strstr(temporary, ".tmp"));
    assert_int_equal(access(temporary, F_OK), 0);
    assert_int_equal(tsr_output_write(output, "bytes", 5, NULL), TSR_OK);
    assert_int_not_equal(access(path_in_folder("a"), F_OK), 0);
    assert_int_equal(tsr_output_finish(output, NULL), TSR_OK);
    assert_int_not_equal(access(path_in_folder("a"), F_OK), 0);
    struct bytes b = read_bytes(tsr_output_temporary(output)); /* whole on the disk */
    assert_true(b.size == 5 && memcmp(b.data, "bytes", 5) == 0);
    free(b.data);
    assert_int_equal(tsr_output_publish(output, NULL), TSR_OK);
    assert_int_equal(count_files(), 1);
    tsr_output_close(output);
    assert_int_equal(count_files(), 1);
    b = read_bytes(path_in_folder("a"));
    assert_true(b.size == 5 && memcmp(b.data, "bytes", 5) == 0);
    free(b.data);
    empty_folder();
}

TEST(disappears_when_not_published)
{
    for (int finished = 0; finished < 2; finished++) {
        struct tsr_output *output = create("a", false);
        assert_int_equal(tsr_output_write(output, "bytes", 5, NULL), TSR_OK);
        if (finished) assert_int_equal(tsr_output_finish(output, NULL), TSR_OK);
        tsr_output_close(output);
        assert_int_equal(count_files(), 0);
    }
}

TEST(exists)
{
    struct tsr_output *output;
    write_bytes(path_in_folder("a"), (struct bytes){(uint8_t *)"old", 3});
    assert_int_equal(tsr_output_create(path_in_folder("a"), false, &output, NULL), TSR_ERROR_EXISTS);
    assert_null(output);
    assert_int_equal(count_files(), 1);
    /* It comes to be while the output is written. */
    output = create("b", false);
    write_bytes(path_in_folder("b"), (struct bytes){(uint8_t *)"new", 3});
    assert_int_equal(tsr_output_finish(output, NULL), TSR_OK);
    assert_int_equal(tsr_output_publish(output, NULL), TSR_ERROR_EXISTS);
    tsr_output_close(output);
    struct bytes b = read_bytes(path_in_folder("b"));
    assert_true(b.size == 3 && memcmp(b.data, "new", 3) == 0);
    free(b.data);
    /* Overwriting. */
    output = create("a", true);
    assert_int_equal(tsr_output_write(output, "other", 5, NULL), TSR_OK);
    assert_int_equal(tsr_output_finish(output, NULL), TSR_OK);
    b = read_bytes(path_in_folder("a"));
    assert_true(b.size == 3);
    free(b.data);
    assert_int_equal(tsr_output_publish(output, NULL), TSR_OK);
    tsr_output_close(output);
    b = read_bytes(path_in_folder("a"));
    assert_true(b.size == 5);
    free(b.data);
    assert_int_equal(count_files(), 2);
    empty_folder();
}

/* Pieces of all sizes around the buffer's: the same bytes and the same hash, from file and memory. */
TEST(sizes)
{
    struct rng r = {61};
    static uint8_t bytes[900000];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)rng_next(&r);
    for (int i = 0; i < 40; i++) {
        struct tsr_output *outputs[3] = {create("a", true), must(tsr_output_to_memory()), must(tsr_output_to_null())};
        size_t size = 0;
        if (i % 4 == 0) { /* a restart forgets what was written */
            for (int k = 0; k < 3; k++) {
                assert_int_equal(tsr_output_write(outputs[k], bytes, (size_t)i * 20000, NULL), TSR_OK);
                assert_int_equal(tsr_output_restart(outputs[k], NULL), TSR_OK);
                assert_int_equal(tsr_output_size(outputs[k]), 0);
            }
        }
        while (size < sizeof bytes && rng_below(&r, 12)) {
            const size_t most = sizeof bytes - size;
            size_t now = i < 10 ? 1 + rng_below(&r, 100) : (size_t)(1 << (i < 20 ? 13 : 16)) - 2 + rng_below(&r, 5);
            if (rng_below(&r, 2)) now = rng_width(&r, 19);
            if (now > most) now = most;
            for (int k = 0; k < 3; k++) assert_int_equal(tsr_output_write(outputs[k], bytes + size, now, NULL), TSR_OK);
            size += now;
        }
        const struct tsr_hash128 wanted = tsr_hash128_of(bytes, size);
        for (int k = 0; k < 3; k++) {
            const struct tsr_hash128 hash = tsr_output_hash(outputs[k]);
            assert_true(tsr_output_size(outputs[k]) == size && tsr_hash128_equal(&hash, &wanted));
            assert_int_equal(tsr_output_finish(outputs[k], NULL), TSR_OK);
            assert_int_equal(tsr_output_publish(outputs[k], NULL), TSR_OK);
        }
        const struct bytes b = read_bytes(path_in_folder("a"));
        assert_true(b.size == size && memcmp(b.data, bytes, size) == 0);
        if (size > 0) assert_memory_equal(tsr_output_bytes(outputs[1]), bytes, size);
        free(b.data);
        for (int k = 0; k < 3; k++) tsr_output_close(outputs[k]);
    }
    assert_int_equal(count_files(), 1);
    empty_folder();
}

/* In a process of its own. */
TEST(temporaries_at_the_end)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child > 0) {
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 71);
        assert_int_equal(count_files(), 1); /* the published one */
        empty_folder();
        return;
    }
    struct tsr_output *outputs[20];
    for (int i = 0; i < 20; i++) {
        char name[20];
        snprintf(name, sizeof name, "out%d", i);
        outputs[i] = create(name, false);
    }
    const bool good = tsr_output_finish(outputs[3], NULL) == TSR_OK && tsr_output_publish(outputs[3], NULL) == TSR_OK &&
                      count_files() == 20;
    tsr_output_close(outputs[4]);
    tsr_output_end_process(good ? 71 : 1);
}

/* ---- Failing calls ------------------------------------------------------------------------------------------ */

/* Inputs: coded, coded of more than the output's buffer, verbatim, and, where this build has it, PNG. */
static struct bytes input_of(int number)
{
    struct rng r = {62};
    struct bytes b = {NULL, 0};
    switch (number) {
    case 0:
        return make_pgm(&r, 40, 30, 255);
    case 1:
        b = make_pgm(&r, 400, 400, 65535);
        for (size_t i = 20; i < b.size; i++) b.data[i] = (uint8_t)rng_next(&r);
        return b;
    default:
        for (int i = 0; i < 280000; i++) {
            const uint8_t byte = (uint8_t)rng_next(&r);
            append(&b, &byte, 1);
        }
        return b;
    }
}

static enum tsr_status compress(const char *in, const char *out, enum tsr_verify verify, struct tsr_error *error)
{
    struct tsr_compress_options options = {0};
    struct tsr_file_report report;
    options.verify = verify;
    options.overwrite = true;
    return tsr_compress_file(engine, path_in_folder(in), path_in_folder(out), &options, &report, error);
}

static enum tsr_status decompress(const char *in, const char *out, struct tsr_error *error)
{
    struct tsr_file_report report;
    return tsr_decompress_file(engine, path_in_folder(in), out ? path_in_folder(out) : NULL, true, &report, error);
}

/* Runs compress or decompress with each call of a kind failing in turn. Returns how many calls there were. */
static long fail_each(enum call_kind kind, enum call_fault fault, bool decompresses, int number, bool harmless,
                      const enum tsr_status *allowed)
{
    const struct bytes original = input_of(number);
    long calls = 0;
    empty_folder();
    write_bytes(path_in_folder("in"), original);
    plan_no_failures();
    assert_int_equal(compress("in", "tsr", TSR_VERIFY_CPU, NULL), TSR_OK);
    const struct bytes tsr = read_bytes(path_in_folder("tsr"));
    for (long n = 1;; n++) {
        struct tsr_error error = {0};
        write_bytes(path_in_folder("out"), (struct bytes){(uint8_t *)"old", 3});
        plan_no_failures();
        plan_calls(kind, n, false, fault);
        const enum tsr_status status =
            decompresses ? decompress("tsr", "out", &error) : compress("in", "out", TSR_VERIFY_CPU, &error);
        const bool failed = call_plans[kind].failed > 0;
        plan_no_failures();
        assert_int_equal(count_files(), 3); /* no temporary */
        const struct bytes out = read_bytes(path_in_folder("out"));
        if (!failed || harmless) {
            expect(status == TSR_OK, "call %ld of kind %d: %s: %s", n, (int)kind, tsr_status_name(status), error.text);
            expect(equal(out, decompresses ? original : tsr), "call %ld of kind %d: the output is not whole", n,
                   (int)kind);
        } else if (fault == FAULT_END && status == TSR_OK) { /* the end was looked for, and there it was */
            expect(equal(out, decompresses ? original : tsr), "call %ld of kind %d: the output is not whole", n,
                   (int)kind);
        } else {
            bool is_allowed = false;
            for (int i = 0; allowed[i] != TSR_OK; i++) is_allowed |= status == allowed[i];
            expect(is_allowed, "call %ld of kind %d: %s: %s", n, (int)kind, tsr_status_name(status), error.text);
            expect(error.status == status && error.text[0], "call %ld of kind %d: '%s'", n, (int)kind, error.text);
            expect(out.size == 3, "call %ld of kind %d: the old output is gone", n, (int)kind);
        }
        free(out.data);
        if (!failed) break;
        calls = n;
    }
    free(original.data);
    free(tsr.data);
    empty_folder();
    return calls;
}

static const enum tsr_status write_errors[] = {TSR_ERROR_WRITE, TSR_OK};

TEST(writes_that_fail)
{
    assert_true(fail_each(CALL_WRITE, FAULT_ERROR, false, 0, false, write_errors) >= 1);
    assert_true(fail_each(CALL_WRITE, FAULT_ERROR, false, 1, false, write_errors) >= 2);
    assert_true(fail_each(CALL_WRITE, FAULT_ERROR, false, 2, false, write_errors) >= 2);
    for (int number = 0; number < 3; number++)
        assert_true(fail_each(CALL_WRITE, FAULT_ERROR, true, number, false, write_errors) >= 1);
}

TEST(writes_that_are_short_or_interrupted)
{
    for (int decompresses = 0; decompresses < 2; decompresses++) {
        const long least = decompresses ? 1 : 2; /* a raster is written with what is before it */
        assert_true(fail_each(CALL_WRITE, FAULT_SHORT, decompresses, 1, true, NULL) >= least);
        assert_true(fail_each(CALL_WRITE, FAULT_INTERRUPTED, decompresses, 1, true, NULL) >= least);
    }
}

/* Every piece that is put into an output, a file or the memory that verification restores to. */
TEST(puts_that_fail)
{
    static const enum tsr_status allowed[] = {TSR_ERROR_WRITE, TSR_ERROR_VERIFY, TSR_OK};
    assert_true(fail_each(CALL_PUT, FAULT_ERROR, false, 0, false, allowed) > 20);
    assert_true(fail_each(CALL_PUT, FAULT_ERROR, true, 0, false, write_errors) >= 2);
    assert_true(fail_each(CALL_PUT, FAULT_ERROR, false, 2, false, allowed) > 10);
}

TEST(syncs_and_renames_that_fail)
{
    for (int decompresses = 0; decompresses < 2; decompresses++) {
        assert_int_equal(fail_each(CALL_SYNC, FAULT_ERROR, decompresses, 0, false, write_errors), 1);
        assert_int_equal(fail_each(CALL_RENAME, FAULT_ERROR, decompresses, 0, false, write_errors), 1);
    }
    /* A file system without RENAME_NOREPLACE: the plain rename does it. */
    for (int known = 0; known < 2; known++) {
        empty_folder();
        struct tsr_output *output = create("a", false);
        assert_int_equal(tsr_output_finish(output, NULL), TSR_OK);
        plan_calls(CALL_RENAME, 1, false, known ? FAULT_ERROR : FAULT_SHORT);
        assert_int_equal(tsr_output_publish(output, NULL), known ? TSR_ERROR_WRITE : TSR_OK);
        tsr_output_close(output);
        assert_int_equal(count_files(), known ? 0 : 1);
        plan_no_failures();
    }
    empty_folder();
}

TEST(opens_that_fail)
{
    static const enum tsr_status allowed[] = {TSR_ERROR_READ, TSR_ERROR_WRITE, TSR_ERROR_VERIFY, TSR_OK};
    for (int decompresses = 0; decompresses < 2; decompresses++)
        assert_true(fail_each(CALL_OPEN, FAULT_ERROR, decompresses, 0, false, allowed) >= 2);
}

/* What cannot be read is an error of the input; where it is the finished file, verification fails. */
TEST(reads_that_fail)
{
    static const enum tsr_status compressing[] = {TSR_ERROR_READ, TSR_ERROR_VERIFY, TSR_OK};
    static const enum tsr_status decompressing[] = {TSR_ERROR_READ, TSR_ERROR_CORRUPT, TSR_OK};
    for (int number = 0; number < 3; number++) {
        assert_true(fail_each(CALL_READ, FAULT_ERROR, false, number, false, compressing) >= 4);
        assert_true(fail_each(CALL_READ, FAULT_END, false, number, false, compressing) >= 4);
        assert_true(fail_each(CALL_READ, FAULT_INTERRUPTED, false, number, true, NULL) >= 4);
        assert_true(fail_each(CALL_READ, FAULT_SHORT, false, number, true, NULL) >= 4);
        assert_true(fail_each(CALL_READ, FAULT_SHORT, true, number, true, NULL) >= 4);
    }
    (void)decompressing;
}

/* A .tsr that cannot be read at some place is repaired where the place stands twice, and an error of the input
 * otherwise. */
TEST(reads_of_a_tsr_that_fail)
{
    const struct bytes original = input_of(0);
    int errors = 0;
    write_bytes(path_in_folder("in"), original);
    assert_int_equal(compress("in", "tsr", TSR_VERIFY_CPU, NULL), TSR_OK);
    for (long n = 1;; n++) {
        struct tsr_error error = {0};
        plan_calls(CALL_READ, n, false, FAULT_ERROR);
        const enum tsr_status status = decompress("tsr", "out", &error);
        const bool failed = call_plans[CALL_READ].failed > 0;
        plan_no_failures();
        expect(status == TSR_OK || status == TSR_ERROR_READ, "read %ld: %s: %s", n, tsr_status_name(status),
               error.text);
        if (status == TSR_OK) {
            const struct bytes out = read_bytes(path_in_folder("out"));
            assert_true(equal(out, original));
            free(out.data);
            unlink(path_in_folder("out"));
        }
        errors += status != TSR_OK;
        assert_int_equal(count_files(), 2);
        if (!failed) break;
    }
    assert_true(errors >= 3);
    free(original.data);
    empty_folder();
}

/* ---- Inputs ------------------------------------------------------------------------------------------------- */

TEST(inputs_hash_what_they_deliver)
{
    struct rng r = {63};
    static uint8_t bytes[200000];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)rng_next(&r);
    for (int i = 0; i < 200; i++) {
        const size_t size = i == 0 ? 0 : rng_width(&r, 17);
        struct tsr_input *inputs[2] = {NULL, must(tsr_input_from_memory(bytes, size, "memory"))};
        write_bytes(path_in_folder("in"), (struct bytes){bytes, size});
        assert_int_equal(tsr_input_open(path_in_folder("in"), &inputs[0], NULL), TSR_OK);
        const struct tsr_hash128 wanted = tsr_hash128_of(bytes, size);
        const uint64_t seed = r.state;
        for (int k = 0; k < 2; k++) {
            static uint8_t got[sizeof bytes + 1];
            struct tsr_hash128 hash;
            r.state = seed;
            assert_int_equal(tsr_input_size(inputs[k]), size);
            assert_true((tsr_input_descriptor(inputs[k]) >= 0) == (k == 0));
            for (uint32_t reads = rng_below(&r, 6); reads > 0; reads--) { /* anywhere, overlapping, backwards */
                const size_t at = rng_below(&r, (uint32_t)size + 1), count = rng_below(&r, (uint32_t)(size - at) + 1);
                assert_int_equal(tsr_input_read(inputs[k], at, got, count, NULL), TSR_OK);
                assert_memory_equal(got, bytes + at, count);
            }
            struct tsr_error error = {0};
            assert_int_equal(tsr_input_read(inputs[k], size, got, 1, &error), TSR_ERROR_READ);
            assert_int_equal(tsr_input_read(inputs[k], UINT64_MAX, got, 2, &error), TSR_ERROR_READ);
            assert_int_equal(tsr_input_hash(inputs[k], &hash, NULL), TSR_OK);
            assert_true(tsr_hash128_equal(&hash, &wanted));
            tsr_input_close(inputs[k]);
        }
    }
    empty_folder();
}

TEST(inputs_that_are_none)
{
    struct tsr_input *input;
    assert_int_equal(tsr_input_open(folder, &input, NULL), TSR_ERROR_READ);
    assert_null(input);
    assert_int_equal(tsr_input_open(path_in_folder("none"), &input, NULL), TSR_ERROR_READ);
    assert_int_equal(mkfifo(path_in_folder("pipe"), 0600), 0);
    assert_int_equal(tsr_input_open(path_in_folder("pipe"), &input, NULL), TSR_ERROR_READ); /* and does not wait */
    assert_int_equal(tsr_input_open("/dev/zero", &input, NULL), TSR_ERROR_READ);
    empty_folder();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(appears_only_when_published),
                                       cmocka_unit_test(disappears_when_not_published),
                                       cmocka_unit_test(exists),
                                       cmocka_unit_test(sizes),
                                       cmocka_unit_test(temporaries_at_the_end),
                                       cmocka_unit_test(writes_that_fail),
                                       cmocka_unit_test(writes_that_are_short_or_interrupted),
                                       cmocka_unit_test(puts_that_fail),
                                       cmocka_unit_test(syncs_and_renames_that_fail),
                                       cmocka_unit_test(opens_that_fail),
                                       cmocka_unit_test(reads_that_fail),
                                       cmocka_unit_test(reads_of_a_tsr_that_fail),
                                       cmocka_unit_test(inputs_hash_what_they_deliver),
                                       cmocka_unit_test(inputs_that_are_none)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
