/* Outputs and inputs that are files. A run makes the finished file, or nothing if a call fails: every write, read,
 * open, sync and rename of a run fails in turn (io/output.c, io/input.c, app/library/compress_file.c and
 * restore_file.c). */
#include "in_memory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "failing_calls.h"
#include "io/folder.h"
#include "io/output_parts.h"
#include "io/part.h"
#include "io/nodes/node.h"

static struct tsr_engine *engine;

static int set_up(void **state)
{
    engine = make_engine(TSR_ENGINE_CPU, 1);
    plan_no_failures();
    return engine ? make_folder(state) : -1;
}

static int tear_down(void **state)
{
    tsr_engine_destroy(engine);
    return remove_folder(state);
}

static enum tsr_status try_create(const char *path, bool overwrite, struct tsr_output **output, struct tsr_error *error)
{
    const struct tsr_output_options options = {.overwrite = overwrite};
    return tsr_output_create(path, &options, true, output, error);
}

static struct tsr_output *create(const char *name, bool overwrite)
{
    struct tsr_output *output;
    struct tsr_error error = {0};
    const enum tsr_status status = try_create(path_in_folder(name), overwrite, &output, &error);
    expect(status == TSR_OK, "%s", error.text);
    return output;
}

static void expect_content(const char *name, const char *content)
{
    const struct bytes b = read_bytes(path_in_folder(name));
    expect(b.size == strlen(content) && memcmp(b.data, content, b.size) == 0, "%s is not '%s'", name, content);
    free(b.data);
}

/* Each test runs with files that have no name until they are published, where they can be, and with part files, which
 * have a name. */
TEST(appears_only_when_published)
{
    for (int named = !files_can_lack_names(); named < 2; named++) {
        files_need_names = named;
        struct tsr_output *output = create("a", false);
        struct tsr_input *input;
        uint8_t bytes[5];
        assert_int_equal(count_files(), named);
        assert_int_equal(tsr_output_write(output, "bytes", 5, NULL), TSR_OK);
        assert_int_not_equal(access(path_in_folder("a"), F_OK), 0);
        assert_int_equal(tsr_output_finish(output, NULL), TSR_OK);
        assert_int_not_equal(access(path_in_folder("a"), F_OK), 0);
        assert_int_equal(tsr_output_reopen(output, &input, NULL), TSR_OK); /* whole on the disk */
        assert_int_equal(tsr_input_read(input, 0, bytes, 5, NULL), TSR_OK);
        assert_true(tsr_input_size(input) == 5 && memcmp(bytes, "bytes", 5) == 0);
        tsr_input_close(input);
        assert_int_equal(tsr_output_publish(output, NULL), TSR_OK);
        assert_int_equal(count_files(), 1);
        tsr_output_close(output);
        assert_int_equal(count_files(), 1);
        expect_content("a", "bytes");
        empty_folder();
    }
    files_need_names = false;
}

TEST(disappears_when_not_published)
{
    for (int way = 0; way < 4; way++) {
        files_need_names = way % 2 || !files_can_lack_names();
        struct tsr_output *output = create("a", false);
        assert_int_equal(tsr_output_write(output, "bytes", 5, NULL), TSR_OK);
        if (way / 2) assert_int_equal(tsr_output_finish(output, NULL), TSR_OK);
        tsr_output_close(output);
        assert_int_equal(count_files(), 0);
    }
    files_need_names = false;
}

TEST(exists)
{
    for (int named = !files_can_lack_names(); named < 2; named++) {
        files_need_names = named;
        struct tsr_output *output;
        write_bytes(path_in_folder("a"), (struct bytes){(uint8_t *)"old", 3});
        assert_int_equal(try_create(path_in_folder("a"), false, &output, NULL), TSR_ERROR_EXISTS);
        assert_null(output);
        assert_int_equal(count_files(), 1);
        /* The file appears while the output is written: it stays, unless it may be overwritten. */
        for (int overwrite = 0; overwrite < 2; overwrite++) {
            output = create("b", overwrite);
            assert_int_equal(tsr_output_write(output, "output", 6, NULL), TSR_OK);
            write_bytes(path_in_folder("b"), (struct bytes){(uint8_t *)"new", 3});
            assert_int_equal(tsr_output_finish(output, NULL), TSR_OK);
            assert_int_equal(tsr_output_publish(output, NULL), overwrite ? TSR_OK : TSR_ERROR_EXISTS);
            tsr_output_close(output);
            expect_content("b", overwrite ? "output" : "new");
            unlink(path_in_folder("b"));
        }
        /* With overwriting; the file that is to be overwritten may go meanwhile. */
        for (int goes = 0; goes < 2; goes++) {
            output = create("a", true);
            assert_int_equal(tsr_output_write(output, "other", 5, NULL), TSR_OK);
            assert_int_equal(tsr_output_finish(output, NULL), TSR_OK);
            expect_content("a", goes ? "other" : "old");
            if (goes) unlink(path_in_folder("a"));
            assert_int_equal(tsr_output_publish(output, NULL), TSR_OK);
            tsr_output_close(output);
            expect_content("a", "other");
            assert_int_equal(count_files(), 1);
        }
        empty_folder();
    }
    files_need_names = false;
}

/* What exists and is not a regular file stays unchanged, even if it appears while the output is written. */
TEST(no_regular_files)
{
    struct tsr_output *output;
    struct stat status;
    for (int way = 0; way < 4; way++) {
        const bool overwrite = way % 2;
        files_need_names = way / 2 || !files_can_lack_names();
        assert_int_equal(mkfifo(path_in_folder("pipe"), 0600), 0);
        assert_int_equal(try_create(path_in_folder("pipe"), overwrite, &output, NULL), TSR_ERROR_WRITE);
        unlink(path_in_folder("pipe"));
        assert_int_equal(try_create(folder, overwrite, &output, NULL), TSR_ERROR_WRITE);
        assert_int_equal(try_create("/dev/null", overwrite, &output, NULL), TSR_ERROR_WRITE);
        output = create("late", overwrite);
        assert_int_equal(mkfifo(path_in_folder("late"), 0600), 0);
        assert_int_equal(tsr_output_finish(output, NULL), TSR_OK);
        assert_int_equal(tsr_output_publish(output, NULL), overwrite ? TSR_ERROR_WRITE : TSR_ERROR_EXISTS);
        tsr_output_close(output);
        assert_true(lstat(path_in_folder("late"), &status) == 0 && S_ISFIFO(status.st_mode));
        assert_int_equal(count_files(), 1);
        empty_folder();
    }
    files_need_names = false;
}

/* A link that the user names stands for its file. Below a folder that the user names, no link is followed, to a file or
 * a folder. */
TEST(links)
{
    struct tsr_output *output;
    struct stat status;
    char inside[128], outside[128];
    write_bytes(path_in_folder("real"), (struct bytes){(uint8_t *)"old", 3});
    assert_int_equal(symlink("real", path_in_folder("link")), 0);
    assert_int_equal(symlink("nowhere", path_in_folder("dangling")), 0);
    assert_int_equal(symlink("link", path_in_folder("chain")), 0);
    assert_int_equal(mkdir(path_in_folder("other"), 0700), 0);
    assert_int_equal(symlink("other", path_in_folder("folder")), 0);
    struct tsr_output_options options = {.overwrite = true};
    for (int bounded = 0; bounded < 2; bounded++) {
        options.is_bounded = bounded;
        options.root = strlen(folder);
        assert_int_equal(tsr_output_create(path_in_folder("dangling"), &options, true, &output, NULL), TSR_ERROR_WRITE);
        const enum tsr_status wanted = bounded ? TSR_ERROR_WRITE : TSR_OK;
        assert_int_equal(tsr_output_create(path_in_folder("chain"), &options, true, &output, NULL), wanted);
        if (output) {
            assert_int_equal(tsr_output_write(output, "through", 7, NULL), TSR_OK);
            assert_int_equal(tsr_output_finish(output, NULL), TSR_OK);
            assert_int_equal(tsr_output_publish(output, NULL), TSR_OK);
        }
        tsr_output_close(output);
        snprintf(inside, sizeof inside, "%s/folder/a", folder);
        assert_int_equal(tsr_output_create(inside, &options, true, &output, NULL), wanted);
        tsr_output_close(output);
    }
    expect_content("real", "through");
    assert_true(lstat(path_in_folder("link"), &status) == 0 && S_ISLNK(status.st_mode));
    /* The folder that the user names may be a link. */
    options.root = strlen(folder) + 7;
    assert_int_equal(tsr_output_create(inside, &options, true, &output, NULL), TSR_OK);
    assert_int_equal(tsr_output_publish(output, NULL), TSR_OK);
    tsr_output_close(output);
    snprintf(outside, sizeof outside, "%s/other/a", folder);
    assert_int_equal(unlink(outside), 0);
    assert_int_equal(rmdir(path_in_folder("other")), 0);
    empty_folder();
}

/* A folder is exchanged for a link while the output is written: the output goes to the folder that was there. */
TEST(exchanged_folders)
{
    char path[128], moved[128];
    struct tsr_output *output;
    const struct tsr_output_options options = {.is_bounded = true, .root = strlen(folder)};
    snprintf(path, sizeof path, "%s/x/y/out", folder); /* both folders are made */
    assert_int_equal(tsr_output_create(path, &options, true, &output, NULL), TSR_OK);
    assert_int_equal(rename(path_in_folder("x"), path_in_folder("moved")), 0);
    assert_int_equal(symlink("/tmp", path_in_folder("x")), 0);
    assert_int_equal(tsr_output_write(output, "bytes", 5, NULL), TSR_OK);
    assert_int_equal(tsr_output_finish(output, NULL), TSR_OK);
    assert_int_equal(tsr_output_publish(output, NULL), TSR_OK);
    tsr_output_close(output);
    expect_content("moved/y/out", "bytes");
    snprintf(moved, sizeof moved, "%s/moved/y/out", folder);
    unlink(moved);
    moved[strlen(moved) - 4] = '\0';
    rmdir(moved);
    rmdir(path_in_folder("moved"));
    empty_folder();
}

/* Group and others get no more permissions for a copy than they had for the original, whatever group the copy gets. */
TEST(permissions)
{
    static const mode_t modes[] = {0600, 0640, 0644, 0604, 0660, 0666, 04755};
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        struct tsr_input *input;
        struct stat status;
        write_bytes(path_in_folder("in"), (struct bytes){(uint8_t *)"x", 1});
        assert_int_equal(chmod(path_in_folder("in"), modes[i]), 0);
        assert_int_equal(tsr_input_open(path_in_folder("in"), &input, NULL), TSR_OK);
        struct tsr_output *output = create("out", true);
        assert_true(fstat(output->file, &status) == 0 && (status.st_mode & 07777) == 0600);
        tsr_output_inherit(output, input);
        assert_int_equal(tsr_output_finish(output, NULL), TSR_OK);
        assert_int_equal(tsr_output_publish(output, NULL), TSR_OK);
        tsr_output_close(output);
        tsr_input_close(input);
        assert_int_equal(stat(path_in_folder("out"), &status), 0);
        expect((status.st_mode & 07777) == (modes[i] & 0777), "%o became %o", modes[i], status.st_mode & 07777);
    }
    empty_folder();
}

/* Patches, read back from the file and from the buffer. */
TEST(patches)
{
    struct rng r = {64};
    static uint8_t bytes[300000], got[300000];
    for (int round = 0; round < 20; round++) {
        struct tsr_output *outputs[2] = {create("a", true), must(tsr_output_to_memory())};
        size_t size = 0;
        for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)rng_next(&r);
        while (size < 100000) {
            const size_t now = 1 + (rng_below(&r, 2) ? rng_below(&r, 200) : rng_below(&r, 40000));
            for (int k = 0; k < 2; k++) assert_int_equal(tsr_output_write(outputs[k], bytes + size, now, NULL), TSR_OK);
            size += now;
        }
        for (int i = 0; i < 30; i++) {
            const size_t at = rng_below(&r, (uint32_t)size), most = size - at,
                         now = rng_below(&r, (uint32_t)(most < 3000 ? most : 3000) + 1);
            for (size_t k = 0; k < now; k++) bytes[at + k] = (uint8_t)rng_next(&r);
            for (int k = 0; k < 2; k++)
                assert_int_equal(tsr_output_patch(outputs[k], at, bytes + at, now, NULL), TSR_OK);
            for (int k = 0; k < 2; k++) {
                assert_int_equal(tsr_output_read(outputs[k], 0, got, size, NULL), TSR_OK);
                assert_memory_equal(got, bytes, size);
            }
        }
        for (int k = 0; k < 2; k++) tsr_output_close(outputs[k]);
    }
    empty_folder();
}

/* Pieces of all sizes around the buffer's give the same bytes and the same hash, from file and memory. */
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
TEST(parts_at_the_end)
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
    files_need_names = true;
    for (int i = 0; i < 20; i++) {
        char name[20];
        snprintf(name, sizeof name, "out%d", i);
        outputs[i] = create(name, false);
    }
    const bool good = tsr_output_finish(outputs[3], NULL) == TSR_OK && tsr_output_publish(outputs[3], NULL) == TSR_OK &&
                      count_files() == 20;
    tsr_output_close(outputs[4]);
    tsr_parts_end_process(good ? 71 : 1);
}

/* ---- Failing calls ------------------------------------------------------------------------------------------ */

/* Inputs: 0 coded; 1 coded, larger than the output's buffer; 2 verbatim; PNG, if this build has it. */
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
    struct tsr_compress_options options = TSR_COMPRESS_OPTIONS;
    struct tsr_report report;
    options.verify = verify;
    return compress_path(engine, path_in_folder(in), path_in_folder(out), &options, &report, error);
}

static enum tsr_status decompress(const char *in, const char *out, struct tsr_error *error)
{
    struct tsr_report report;
    return restore_path(engine, path_in_folder(in), out ? path_in_folder(out) : NULL, &report, error);
}

/* Runs compress or decompress with each call of a kind failing in turn. harmless: the run must succeed all the same.
 * allowed: the statuses that it may return, up to TSR_OK. Returns the number of calls. */
static long fail_each(enum call_kind kind, enum call_fault fault, bool decompresses, int number, bool harmless,
                      const enum tsr_status *allowed)
{
    const struct bytes original = input_of(number);
    long calls = 0, tried_again = 0;
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
        assert_int_equal(count_files(), 3); /* no temporary file */
        const struct bytes out = read_bytes(path_in_folder("out"));
        if (!failed || harmless) {
            expect(status == TSR_OK, "call %ld of kind %d: %s: %s", n, (int)kind, tsr_status_name(status), error.text);
            expect(equal(out, decompresses ? original : tsr), "call %ld of kind %d: the output is not whole", n,
                   (int)kind);
        } else if ((fault == FAULT_END || kind == CALL_OPEN) && status == TSR_OK) {
            /* The call looked for the end, which was there; or for parts that others have left, which may stay. */
            expect(equal(out, decompresses ? original : tsr), "call %ld of kind %d: the output is not whole", n,
                   (int)kind);
        } else if (kind == CALL_READ && status == TSR_OK) {
            /* It would have held what stands at an end of the .tsr, which was read again in smaller parts; or the first
             * bytes of the file that is replaced, by which its part would be known. */
            expect(++tried_again <= 3, "call %ld: %ld reads that fail do no harm", n, tried_again);
            expect(equal(out, decompresses ? original : tsr), "call %ld of kind %d: the output is not whole", n,
                   (int)kind);
        } else {
            bool is_allowed = false;
            for (int i = 0; allowed[i] != TSR_OK; i++) is_allowed |= status == allowed[i];
            expect(is_allowed, "call %ld of kind %d: %s: %s", n, (int)kind, tsr_status_name(status), error.text);
            expect(error.status == status && error.text[0], "call %ld of kind %d: '%s'", n, (int)kind, error.text);
            /* If a call after the renaming fails, the new output stays, whole. */
            const bool may_be_named = (kind == CALL_SYNC || kind == CALL_OPEN) && n > 1;
            expect(out.size == 3 || (may_be_named && equal(out, decompresses ? original : tsr)),
                   "call %ld of kind %d: the old output is gone", n, (int)kind);
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
        const long least = decompresses ? 1 : 2; /* a raster is written together with what is before it */
        assert_true(fail_each(CALL_WRITE, FAULT_SHORT, decompresses, 1, true, NULL) >= least);
        assert_true(fail_each(CALL_WRITE, FAULT_INTERRUPTED, decompresses, 1, true, NULL) >= least);
    }
}

/* Every piece that is put into an output: a file, or the memory to which verification restores. */
TEST(puts_that_fail)
{
    static const enum tsr_status allowed[] = {TSR_ERROR_WRITE, TSR_ERROR_VERIFY, TSR_OK};
    assert_true(fail_each(CALL_PUT, FAULT_ERROR, false, 0, false, allowed) > 20);
    assert_true(fail_each(CALL_PUT, FAULT_ERROR, true, 0, false, write_errors) >= 2);
    assert_true(fail_each(CALL_PUT, FAULT_ERROR, false, 2, false, allowed) > 10);
}

TEST(syncs_and_renames_that_fail)
{
    for (int way = 0; way < 4; way++) {
        const bool decompresses = way % 2;
        files_need_names = way / 2;
        assert_int_equal(fail_each(CALL_SYNC, FAULT_ERROR, decompresses, 0, false, write_errors), 2);
        assert_true(fail_each(CALL_RENAME, FAULT_ERROR, decompresses, 0, false, write_errors) >= 2);
    }
    /* A file system that lacks one of the calls: another call does the work. */
    for (int way = 0; way < 4; way++) {
        const bool overwrite = way % 2;
        files_need_names = way / 2;
        for (long lacks = 1; lacks < 4; lacks++) {
            empty_folder();
            if (overwrite) write_bytes(path_in_folder("a"), (struct bytes){(uint8_t *)"old", 3});
            struct tsr_output *output = create("a", overwrite);
            assert_int_equal(tsr_output_write(output, "bytes", 5, NULL), TSR_OK);
            assert_int_equal(tsr_output_finish(output, NULL), TSR_OK);
            plan_calls(CALL_RENAME, lacks, false, FAULT_SHORT);
            const enum tsr_status status = tsr_output_publish(output, NULL);
            plan_no_failures();
            tsr_output_close(output);
            assert_int_equal(count_files(), status == TSR_OK || overwrite ? 1 : 0);
            if (status == TSR_OK) expect_content("a", "bytes");
            /* Only a file without a name cannot get its first name in another way. */
            expect(status == TSR_OK || (!files_need_names && lacks < 3), "way %d, call %ld: %s", way, lacks,
                   tsr_status_name(status));
        }
    }
    files_need_names = false;
    empty_folder();
}

/* The sync of the folder fails: the output has its name, but is not reported as lasting. */
TEST(folders_that_are_not_synced)
{
    const struct bytes original = input_of(0);
    struct tsr_error error = {0};
    write_bytes(path_in_folder("in"), original);
    plan_calls(CALL_SYNC, 2, false, FAULT_ERROR);
    assert_int_equal(compress("in", "out", TSR_VERIFY_CPU, &error), TSR_ERROR_WRITE);
    assert_non_null(strstr(error.text, "folder"));
    plan_no_failures();
    assert_int_equal(compress("in", "out", TSR_VERIFY_CPU, &error), TSR_OK);
    free(original.data);
    empty_folder();
}

TEST(opens_that_fail)
{
    static const enum tsr_status allowed[] = {TSR_ERROR_LIMIT, TSR_OK}; /* no more files may be open */
    for (int way = 0; way < 4; way++) {
        files_need_names = way / 2;
        assert_true(fail_each(CALL_OPEN, FAULT_ERROR, way % 2, 0, false, allowed) >= 2);
    }
    files_need_names = false;
}

/* An input that cannot be read is an input error. If the finished file cannot be read, verification fails. */
TEST(reads_that_fail)
{
    static const enum tsr_status compressing[] = {TSR_ERROR_READ, TSR_ERROR_VERIFY, TSR_OK};
    static const enum tsr_status decompressing[] = {TSR_ERROR_READ, TSR_ERROR_CORRUPT, TSR_OK};
    for (int number = 0; number < 3; number++) {
        assert_true(fail_each(CALL_READ, FAULT_ERROR, false, number, false, compressing) >= 4);
        assert_true(fail_each(CALL_READ, FAULT_END, false, number, false, compressing) >= 4);
        assert_true(fail_each(CALL_READ, FAULT_INTERRUPTED, false, number, true, NULL) >= 4);
        assert_true(fail_each(CALL_READ, FAULT_SHORT, false, number, true, NULL) >= 4);
        assert_true(fail_each(CALL_READ, FAULT_SHORT, true, number, true, NULL) >= (number ? 3 : 1));
    }
    (void)decompressing;
}

/* A .tsr that cannot be read at some place is repaired if the place stands twice, and read again if it was to be held.
 * Otherwise it is an input error. */
TEST(reads_of_a_tsr_that_fail)
{
    const struct bytes original = input_of(1);
    int errors[2] = {0};
    write_bytes(path_in_folder("in"), original);
    assert_int_equal(compress("in", "tsr", TSR_VERIFY_CPU, NULL), TSR_OK);
    for (int lasts = 0; lasts < 2; lasts++)
        for (long n = 1;; n++) {
            struct tsr_error error = {0};
            plan_calls(CALL_READ, n, lasts, FAULT_ERROR);
            const enum tsr_status status = decompress("tsr", "out", &error);
            const bool failed = call_plans[CALL_READ].failed > 0;
            plan_no_failures();
            expect(status == (lasts && failed ? TSR_ERROR_READ : TSR_OK) || (!lasts && status == TSR_ERROR_READ),
                   "read %ld: %s: %s", n, tsr_status_name(status), error.text);
            if (status == TSR_OK) {
                const struct bytes out = read_bytes(path_in_folder("out"));
                assert_true(equal(out, original));
                free(out.data);
                unlink(path_in_folder("out"));
            }
            errors[lasts] += status != TSR_OK;
            assert_int_equal(count_files(), 2);
            if (!failed) break;
        }
    expect(errors[0] >= 1 && errors[1] >= 3, "%d and %d errors", errors[0], errors[1]);
    free(original.data);
    empty_folder();
}

struct place_that_fails {
    struct bytes file;
    uint64_t from, to;
};

static int64_t read_elsewhere(void *context, uint64_t offset, void *bytes, size_t count)
{
    const struct place_that_fails *const p = context;
    if (offset < p->to && offset + count > p->from) return -1;
    memcpy(bytes, p->file.data + offset, count);
    return (int64_t)count;
}

/* Of a .tsr that functions read, too, a place that stands twice may fail; what stands once may not. */
TEST(places_that_fail)
{
    struct rng r = {66};
    struct bytes original = make_pgm(&r, 900, 900, 65535); /* noise: its .tsr is no small file */
    for (size_t i = 20; i < original.size; i++) original.data[i] = (uint8_t)rng_next(&r);
    write_bytes(path_in_folder("in"), original);
    assert_int_equal(compress("in", "tsr", TSR_VERIFY_CPU, NULL), TSR_OK);
    struct place_that_fails p = {.file = read_bytes(path_in_folder("tsr"))};
    const uint64_t size = p.file.size,
                   places[][2] = {{9, 20}, {size - 40, size - 30}, {size, size}, {size / 2, size / 2 + 1}};
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        struct tsr_error error = {0};
        struct tsr_buffer buffer = {0};
        const struct tsr_data_source source = tsr_from_calls(read_elsewhere, &p, size);
        const struct tsr_data_sink sink = tsr_to_memory(&buffer);
        p.from = places[i][0];
        p.to = places[i][1];
        const enum tsr_status status = tsr_restore(engine, &source, &sink, NULL, &error);
        expect(status == (i == 3 ? TSR_ERROR_READ : TSR_OK), "place %zu: %s: %s", i, tsr_status_name(status),
               error.text);
        if (status == TSR_OK)
            assert_true(buffer.count == original.size && memcmp(buffer.bytes, original.data, buffer.count) == 0);
        tsr_buffer_free(&buffer);
    }
    free(p.file.data);
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
            if (rng_below(&r, 3) == 0) tsr_input_hash_late(inputs[k]);
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

static unsigned crew_pieces;

/* Reads in parts, and buffers that are hashed later: the bytes and the hash are those of reads by one thread. */
TEST(inputs_that_several_threads_read)
{
    enum { SIZE = (3 << 20) + 77 };
    struct rng r = {64};
    uint8_t *const bytes = must(malloc(SIZE)), *const got[2] = {must(malloc(SIZE)), must(malloc(SIZE))};
    for (size_t i = 0; i < SIZE; i++) bytes[i] = (uint8_t)(rng_next(&r) >> 32);
    const struct tsr_hash128 wanted = tsr_hash128_of(bytes, SIZE);
    write_bytes(path_in_folder("in"), (struct bytes){bytes, SIZE});
    for (int i = 0; i < 40; i++) {
        struct tsr_input *input = must(tsr_input_from_memory(bytes, SIZE, "memory"));
        struct tsr_hash128 hash;
        const uint8_t *held;
        size_t next = rng_below(&r, 100), hashed = next; /* lasting reads come one after the other */
        if (i % 4) {
            tsr_input_close(input);
            assert_int_equal(tsr_input_open(path_in_folder("in"), &input, NULL), TSR_OK);
            assert_int_equal(tsr_input_hold(input, i % 3 ? 4096 : 2 << 20, &held, NULL), TSR_OK);
            if (i % 2) assert_int_equal(tsr_input_hold_end(input, i % 3 ? 4096 : 2 << 20, NULL), TSR_OK);
        }
        if (i % 5) tsr_input_set_crew(input, (struct tsr_crew){run_backwards, &crew_pieces});
        assert_int_equal(tsr_input_read(input, 0, got[0], next, NULL), TSR_OK);
        while (next < SIZE) {
            const size_t left = SIZE - next, count = 1 + rng_below(&r, (uint32_t)(left < 2 << 20 ? left : 2 << 20));
            uint8_t *const to = got[rng_below(&r, 4) == 0] + next;
            memset(to, 0xa5, count);
            assert_int_equal(tsr_input_read_lasting(input, next, to, count, NULL), TSR_OK);
            assert_memory_equal(to, bytes + next, count);
            next += count;
            if (rng_below(&r, 3) == 0) {
                tsr_input_hash_read(input);
                hashed = next;
            }
            if (rng_below(&r, 3) == 0 && hashed + 100 < SIZE) { /* elsewhere, or bytes that wait to be hashed */
                uint8_t other[100];
                const size_t at = rng_below(&r, 2) ? rng_below(&r, SIZE - 100) : hashed;
                assert_int_equal(tsr_input_read(input, at, other, sizeof other, NULL), TSR_OK);
                assert_memory_equal(other, bytes + at, sizeof other);
            }
        }
        tsr_input_hash_read(input);
        assert_int_equal(tsr_input_hash(input, &hash, NULL), TSR_OK);
        assert_true(tsr_hash128_equal(&hash, &wanted));
        tsr_input_close(input);
    }
    expect(crew_pieces > 100, "%u pieces", crew_pieces);
    free(bytes);
    free(got[0]);
    free(got[1]);
    empty_folder();
}

/* Bytes that are reserved by a crew: it has work from 4 MiB on, what is there stays, and the limit holds. */
TEST(bytes_that_a_crew_reserves)
{
    enum { LARGE = 2 << 20 };
    const struct tsr_crew crew = {run_backwards, &crew_pieces};
    for (size_t had = 0; had < 9 << 20; had = 3 * had + 12345)
        for (size_t more = 1; more < 20 << 20; more = 3 * more + 1) {
            struct tsr_bytes bytes = {.limit = had + more};
            assert_int_equal(tsr_bytes_reserve(&bytes, had, NULL), TSR_OK);
            for (; bytes.size < had; bytes.size++) bytes.bytes[bytes.size] = (uint8_t)(bytes.size % 251);
            crew_pieces = 0;
            assert_int_equal(tsr_bytes_reserve_by(more % 2 ? &crew : NULL, &bytes, more, NULL), TSR_OK);
            const size_t pieces = more % 2 == 0 || more < 2 * LARGE ? 0 : more / LARGE; /* and one more or less */
            expect(pieces ? crew_pieces + 1 >= pieces && crew_pieces <= pieces + 1 : crew_pieces == 0,
                   "%u pieces for %zu bytes", crew_pieces, more);
            memset(bytes.bytes + had, 7, more);
            for (size_t i = 0; i < had; i++)
                if (bytes.bytes[i] != (uint8_t)(i % 251)) fail();
            bytes.size = had + more;
            assert_int_equal(tsr_bytes_reserve_by(&crew, &bytes, 1, NULL), TSR_ERROR_CORRUPT);
            tsr_bytes_free(&bytes);
        }
    struct tsr_bytes none = {.limit = 5 * LARGE};
    plan_calls(CALL_ALLOCATE, 1, false, FAULT_ERROR);
    assert_int_equal(tsr_bytes_reserve_by(&crew, &none, 5 * LARGE, NULL), TSR_ERROR_LIMIT);
    plan_no_failures();
    tsr_bytes_free(&none);
}

/* A file that becomes shorter: the error is the same as without a crew. */
TEST(parts_that_cannot_be_read)
{
    enum { SIZE = 2 << 20 };
    uint8_t *const bytes = must(calloc(1, SIZE)), *const got = must(malloc(SIZE));
    struct tsr_error errors[2] = {{0}};
    for (int crew = 0; crew < 2; crew++) {
        struct tsr_input *input;
        write_bytes(path_in_folder("in"), (struct bytes){bytes, SIZE});
        assert_int_equal(tsr_input_open(path_in_folder("in"), &input, NULL), TSR_OK);
        if (crew) tsr_input_set_crew(input, (struct tsr_crew){run_backwards, &crew_pieces});
        assert_int_equal(truncate(path_in_folder("in"), SIZE / 3), 0);
        assert_int_equal(tsr_input_read(input, 0, got, SIZE, &errors[crew]), TSR_ERROR_READ);
        tsr_input_close(input);
    }
    assert_string_equal(errors[0].text, errors[1].text);
    assert_true(errors[0].offset == errors[1].offset);
    free(bytes);
    free(got);
    empty_folder();
}

/* What is held at the end is delivered even if the file has changed; the bytes before it are the file's. */
TEST(an_end_that_is_held)
{
    uint8_t bytes[5000], other[5000], got[5000];
    for (int i = 0; i < 5000; i++) bytes[i] = (uint8_t)i, other[i] = (uint8_t)(i + 1);
    for (size_t held = 1; held < 6000; held += held < 4990 ? 499 : 3) {
        struct tsr_input *input;
        const size_t kept = held < 5000 ? held : 5000;
        write_bytes(path_in_folder("in"), (struct bytes){bytes, 5000});
        assert_int_equal(tsr_input_open(path_in_folder("in"), &input, NULL), TSR_OK);
        assert_int_equal(tsr_input_hold_end(input, held, NULL), TSR_OK);
        FILE *file = must(fopen(path_in_folder("in"), "r+b"));
        assert_int_equal(fwrite(other, 1, 5000, file), 5000);
        assert_int_equal(fclose(file), 0);
        assert_int_equal(tsr_input_read(input, 5000 - kept, got, kept, NULL), TSR_OK);
        assert_memory_equal(got, bytes + 5000 - kept, kept);
        if (kept < 5000) {
            assert_int_equal(tsr_input_read(input, 0, got, 5000 - kept, NULL), TSR_OK);
            assert_memory_equal(got, other, 5000 - kept);
        }
        tsr_input_drop_held(input);
        assert_int_equal(tsr_input_read(input, 0, got, 5000, NULL), TSR_OK);
        assert_memory_equal(got, other, 5000);
        tsr_input_close(input);
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
    assert_int_equal(tsr_input_open(path_in_folder("pipe"), &input, NULL),
                     TSR_ERROR_READ); /* does not wait for a writer */
    assert_int_equal(tsr_input_open("/dev/zero", &input, NULL), TSR_ERROR_READ);
    empty_folder();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(appears_only_when_published),
                                       cmocka_unit_test(disappears_when_not_published),
                                       cmocka_unit_test(exists),
                                       cmocka_unit_test(no_regular_files),
                                       cmocka_unit_test(links),
                                       cmocka_unit_test(exchanged_folders),
                                       cmocka_unit_test(permissions),
                                       cmocka_unit_test(patches),
                                       cmocka_unit_test(sizes),
                                       cmocka_unit_test(parts_at_the_end),
                                       cmocka_unit_test(writes_that_fail),
                                       cmocka_unit_test(writes_that_are_short_or_interrupted),
                                       cmocka_unit_test(puts_that_fail),
                                       cmocka_unit_test(syncs_and_renames_that_fail),
                                       cmocka_unit_test(folders_that_are_not_synced),
                                       cmocka_unit_test(opens_that_fail),
                                       cmocka_unit_test(reads_that_fail),
                                       cmocka_unit_test(reads_of_a_tsr_that_fail),
                                       cmocka_unit_test(places_that_fail),
                                       cmocka_unit_test(inputs_hash_what_they_deliver),
                                       cmocka_unit_test(inputs_that_several_threads_read),
                                       cmocka_unit_test(bytes_that_a_crew_reserves),
                                       cmocka_unit_test(parts_that_cannot_be_read),
                                       cmocka_unit_test(an_end_that_is_held),
                                       cmocka_unit_test(inputs_that_are_none)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
