/* How outputs get their names: parts, and what outputs of one run do to each other (io/part.c, io/publish.c,
 * io/file_set.c). */
#include "in_memory.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "failing_calls.h"
#include "io/file_set.h"
#include "io/output_parts.h"
#include "io/part.h"

static struct tsr_output *create(const char *name, struct tsr_file_set *run)
{
    const struct tsr_output_options options = {.overwrite = true, .written = run};
    struct tsr_output *output;
    struct tsr_error error = {0};
    const enum tsr_status status = tsr_output_create(path_in_folder(name), &options, true, &output, &error);
    expect(status == TSR_OK, "%s", error.text);
    return output;
}

static void expect_content(const char *name, const char *content)
{
    const struct bytes b = read_bytes(path_in_folder(name));
    expect(b.size == strlen(content) && memcmp(b.data, content, b.size) == 0, "%s is not '%s'", name, content);
    free(b.data);
}

/* Finds the name of the part in the folder; empty: there is none. */
static void find_part(char name[300])
{
    DIR *dir = must(opendir(folder));
    name[0] = '\0';
    for (struct dirent *entry; (entry = readdir(dir));)
        if (tsr_is_unfinished(entry->d_name)) strcpy(name, entry->d_name);
    closedir(dir);
}

/* ---- Parts ------------------------------------------------------------------------------------------------ */

/* Names of parts: their processes' own, and what only looks like one. */
TEST(names_of_parts)
{
    struct tsr_part one, other;
    tsr_part_label(&one);
    tsr_part_label(&other);
    assert_true(strcmp(one.label, other.label) != 0);
    tsr_part_name(one.label, 0, NULL, one.name);
    tsr_part_name(other.label, 3, (const uint8_t *)"old", other.name);
    assert_true(tsr_is_unfinished(one.name) && tsr_is_unfinished(other.name));
    static const char *const none[] = {".tessera-12345678-1-1.part",
                                       ".tessera-12345678-1--0123456789abcdef.part",
                                       ".tessera-1234567-1-1-0123456789abcdef.part",
                                       "tessera-12345678-1-1-0123456789abcdef.part",
                                       ".tessera-12345678-1-1-0123456789abcdef.part~",
                                       ".tessera-1234567G-1-1-0123456789abcdef.part",
                                       ".tessera-1234567A-1-1-0123456789abcdef.part",
                                       ".tessera-12345678--1-0123456789abcdef.part",
                                       ".tessera-12345678-1-1-0123456789abcde.part",
                                       ".tessera-12345678-1-1-0123456789abcdeF.part",
                                       ".tessera-12345678-11111111111111111111-11111111111-0123456789abcdef.part"};
    for (size_t i = 0; i < COUNT_OF(none); i++) expect(!tsr_is_unfinished(none[i]), "%s", none[i]);
}

/* A part begins with its mark until it is finished, whatever is written, patched, read or taken back meanwhile. Then it
 * has a name that says what it holds. */
TEST(marks_of_parts)
{
    static const size_t sizes[] = {0, 1, 63, 64, 65, 1000, 70000};
    static uint8_t bytes[70000], got[70000], begin[TSR_PART_MARK], mark[TSR_PART_MARK];
    struct rng r = {65};
    files_need_names = true;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct tsr_output *const output = create("a", NULL);
        const size_t size = sizes[i];
        char part[300], label[TSR_PART_LABEL], name[TSR_PART_NAME];
        find_part(part);
        snprintf(label, sizeof label, "%.*s", (int)(strrchr(part, '-') - part - 9), part + 9);
        tsr_part_mark(label, mark);
        for (size_t k = 0; k < size; k++) bytes[k] = (uint8_t)rng_next(&r);
        assert_int_equal(tsr_output_write(output, "what is taken back", 18, NULL), TSR_OK);
        assert_int_equal(tsr_output_flush(output, NULL), TSR_OK);
        assert_int_equal(tsr_output_restart(output, NULL), TSR_OK);
        for (size_t at = 0, now; at < size; at += now) {
            now = 1 + rng_below(&r, (uint32_t)(size - at < 40 ? size - at : 40));
            if (at > 200) now = size - at;
            assert_int_equal(tsr_output_write(output, bytes + at, now, NULL), TSR_OK);
        }
        for (size_t k = 0; k < size && k < 100; k += 7) {
            bytes[k] ^= 1;
            assert_int_equal(tsr_output_patch(output, k, bytes + k, 1, NULL), TSR_OK);
        }
        assert_int_equal(tsr_output_flush(output, NULL), TSR_OK);
        assert_true(pread(output->file, begin, sizeof begin, 0) == sizeof begin);
        assert_memory_equal(begin, mark, sizeof mark);
        assert_int_equal(tsr_output_read(output, 0, got, size, NULL), TSR_OK);
        if (size > 0) assert_memory_equal(got, bytes, size);
        if (i % 2) { /* who reads the file again, before it is finished, finds what was written */
            struct tsr_input *input;
            assert_int_equal(tsr_output_reopen(output, &input, NULL), TSR_OK);
            assert_int_equal(tsr_input_size(input), size);
            assert_int_equal(tsr_input_read(input, 0, got, size, NULL), TSR_OK);
            assert_memory_equal(got, bytes, size);
            tsr_input_close(input);
        }
        assert_int_equal(tsr_output_finish(output, NULL), TSR_OK);
        tsr_part_name(label, size, bytes, name);
        find_part(part);
        assert_string_equal(part, name);
        assert_int_equal(tsr_output_publish(output, NULL), TSR_OK);
        tsr_output_close(output);
        const struct bytes b = read_bytes(path_in_folder("a"));
        assert_true(b.size == size && (size == 0 || memcmp(b.data, bytes, size) == 0));
        free(b.data);
        assert_int_equal(count_files(), 1);
    }
    files_need_names = false;
    empty_folder();
}

/* ---- Runs ------------------------------------------------------------------------------------------------- */

/* Outputs of one run: none replaces another, by whatever path. */
TEST(outputs_of_one_run)
{
    struct tsr_file_set *const run = must(tsr_file_set_create());
    const struct tsr_output_options options = {.overwrite = true, .written = run};
    static const char *const content[] = {"first", "second"};
    for (int way = 0; way < 4; way++) {
        struct tsr_error error = {0};
        struct tsr_output *outputs[2];
        char name[16];
        files_need_names = way % 2;
        snprintf(name, sizeof name, "out%d", way);
        if (way >= 2)
            write_bytes(path_in_folder(name), (struct bytes){(uint8_t *)"old", 3}); /* which may be replaced */
        for (int i = 0; i < 2; i++) {
            assert_int_equal(tsr_output_create(path_in_folder(name), &options, true, &outputs[i], NULL), TSR_OK);
            assert_int_equal(tsr_output_write(outputs[i], content[i], strlen(content[i]), NULL), TSR_OK);
            assert_int_equal(tsr_output_finish(outputs[i], NULL), TSR_OK);
        }
        assert_int_equal(tsr_output_publish(outputs[0], NULL), TSR_OK);
        const struct tsr_file_state its = tsr_output_published(outputs[0]);
        struct stat status;
        assert_true(stat(path_in_folder(name), &status) == 0 && its.inode == status.st_ino && its.bytes == 5 &&
                    its.changed_ns == (uint32_t)status.st_ctim.tv_nsec);
        assert_int_equal(tsr_output_publish(outputs[1], &error), TSR_ERROR_SAME_FILE);
        assert_non_null(strstr(error.text, "this run has written"));
        for (int i = 0; i < 2; i++) tsr_output_close(outputs[i]);
        expect_content(name, "first");
        /* By another path: a hard link, and a link to the folder. Then the output is not even begun. */
        char path[300];
        snprintf(path, sizeof path, "%s/./%s", folder, name);
        assert_int_equal(tsr_output_create(path, &options, true, &outputs[0], &error), TSR_ERROR_SAME_FILE);
        assert_true(strstr(error.text, "are one file here") && strstr(error.text, path));
        assert_int_equal(link(path_in_folder(name), path_in_folder("link")), 0);
        assert_int_equal(tsr_output_create(path_in_folder("link"), &options, true, &outputs[0], &error),
                         TSR_ERROR_SAME_FILE);
        unlink(path_in_folder("link"));
        assert_int_equal(count_files(), way + 1);
    }
    files_need_names = false;
    tsr_file_set_destroy(run);
    /* Another run may replace it. */
    struct tsr_output *const output = create("out0", NULL);
    assert_int_equal(tsr_output_finish(output, NULL), TSR_OK);
    assert_int_equal(tsr_output_publish(output, NULL), TSR_OK);
    tsr_output_close(output);
    expect_content("out0", "");
    empty_folder();
}

/* An output that does not get its name leaves the set: the file that takes its inode's number is none of the run's. */
TEST(outputs_that_leave_their_run)
{
    struct tsr_file_set *const run = must(tsr_file_set_create());
    const struct tsr_output_options options = {.overwrite = true, .written = run};
    struct tsr_output *output;
    assert_int_equal(tsr_output_create(path_in_folder("a"), &options, true, &output, NULL), TSR_OK);
    assert_int_equal(tsr_output_finish(output, NULL), TSR_OK);
    plan_calls(CALL_RENAME, 1, true, FAULT_ERROR);
    assert_int_equal(tsr_output_publish(output, NULL), TSR_ERROR_WRITE);
    plan_no_failures();
    struct stat status;
    assert_int_equal(fstat(output->file, &status), 0);
    const struct tsr_file_state its = tsr_state_of(&status);
    assert_null(tsr_file_set_find(run, path_in_folder("a"), &its));
    tsr_output_close(output);
    tsr_file_set_destroy(run);
    empty_folder();
}

/* What another process puts in an output's place after the last look goes back, and the output fails; whether there was
 * a file before or none. */
static void put_another(void)
{
    write_bytes(path_in_folder("new"), (struct bytes){(uint8_t *)"of another process", 18});
    assert_int_equal(rename(path_in_folder("new"), path_in_folder("a")), 0);
}

static void remove_it(void)
{
    assert_int_equal(unlink(path_in_folder("a")), 0);
}

TEST(files_that_appear_meanwhile)
{
    for (int way = 0; way < 4; way++) {
        struct tsr_error error = {0};
        files_need_names = way % 2;
        write_bytes(path_in_folder("a"), (struct bytes){(uint8_t *)"old", 3});
        struct tsr_output *const output = create("a", NULL);
        assert_int_equal(tsr_output_write(output, "new", 3, NULL), TSR_OK);
        assert_int_equal(tsr_output_finish(output, NULL), TSR_OK);
        before_exchange = way < 2 ? put_another : remove_it;
        const enum tsr_status status = tsr_output_publish(output, &error);
        assert_null(before_exchange);
        tsr_output_close(output);
        assert_int_equal(status, way < 2 ? TSR_ERROR_EXISTS : TSR_OK);
        if (way < 2) assert_non_null(strstr(error.text, "was replaced by another process meanwhile"));
        expect_content("a", way < 2 ? "of another process" : "new");
        assert_int_equal(count_files(), 1);
        empty_folder();
    }
    files_need_names = false;
}

/* A run that is killed between the exchange and the removal of the old file leaves that under the part's name, which
 * has its check: the next run removes it. A file that is neither stays. */
TEST(killed_after_the_exchange)
{
    static const char *const left[] = {"old", "new", "nul", ""};
    for (size_t i = 0; i < COUNT_OF(left); i++) {
        struct tsr_part part = {.folder = open(folder, O_RDONLY | O_DIRECTORY)};
        char first[TSR_PART_NAME];
        write_bytes(path_in_folder("a"), (struct bytes){(uint8_t *)"old", 3});
        tsr_part_label(&part);
        tsr_part_name(part.label, 3, (const uint8_t *)"new", part.name);
        strcpy(first, part.name);
        write_bytes(path_in_folder(part.name), (struct bytes){(uint8_t *)"new", 3});
        assert_true(tsr_part_expect(&part, "a"));
        assert_true(strcmp(first, part.name) != 0 && access(path_in_folder(first), F_OK) != 0);
        write_bytes(path_in_folder(part.name), (struct bytes){(uint8_t *)left[i], strlen(left[i])});
        expect(tsr_is_unfinished(path_in_folder(part.name)) == (i < 2), "a part that holds '%s'", left[i]);
        close(part.folder);
        empty_folder();
    }
}

/* Threads of one run write to one name: one of them wins, and the others are told. */
enum { THREADS = 8, ROUNDS = 2000 };
struct racer {
    struct tsr_file_set *run;
    const char *path;
    atomic_int *won;
};

static void *race(void *context)
{
    const struct racer *const racer = context;
    const struct tsr_output_options options = {.overwrite = true, .written = racer->run};
    struct tsr_output *output = NULL;
    enum tsr_status status = tsr_output_create(racer->path, &options, true, &output, NULL);
    if (status == TSR_OK) status = tsr_output_finish(output, NULL);
    if (status == TSR_OK) status = tsr_output_publish(output, NULL);
    tsr_output_close(output);
    if (status == TSR_OK) atomic_fetch_add(racer->won, 1);
    return (void *)(status == TSR_OK || status == TSR_ERROR_SAME_FILE ? NULL : "another status");
}

TEST(threads_of_one_run)
{
    for (int round = 0; round < ROUNDS; round++) {
        atomic_int won = 0;
        pthread_t threads[THREADS];
        void *bad = NULL;
        struct racer racer = {must(tsr_file_set_create()), path_in_folder("a"), &won};
        if (round % 2) write_bytes(racer.path, (struct bytes){(uint8_t *)"old", 3});
        for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, race, &racer), 0);
        for (int i = 0; i < THREADS; i++) assert_true(pthread_join(threads[i], &bad) == 0 && !bad);
        assert_int_equal(atomic_load(&won), 1);
        assert_int_equal(count_files(), 1);
        tsr_file_set_destroy(racer.run);
        empty_folder();
    }
}

/* ---- Sets ------------------------------------------------------------------------------------------------- */

/* What is added is found, by each of its paths, and by nothing else; also after the set has grown. */
TEST(sets_of_files)
{
    struct tsr_file_set *const set = must(tsr_file_set_create());
    struct tsr_file_state its = {.device = 1, .bytes = 5, .modified_s = 1000, .changed_s = 1000, .changed_ns = 1};
    char path[64];
    assert_null(tsr_file_set_find(set, "nothing", &its));
    for (unsigned i = 1; i <= 5000; i++) {
        snprintf(path, sizeof path, "files/%u", i);
        its.inode = i;
        assert_int_equal(tsr_file_set_add(set, path, &its, NULL), TSR_OK);
    }
    for (unsigned i = 1; i <= 5001; i++) {
        snprintf(path, sizeof path, "files/%u", i);
        its.inode = i;
        its.bytes = i; /* it has changed */
        const char *const found = tsr_file_set_find(set, "another", &its);
        expect(i <= 5000 ? found && strcmp(found, path) == 0 : !found, "%u: %s", i, found ? found : "none");
        its.device = 2;
        assert_null(tsr_file_set_find(set, path, &its));
        its.device = 1;
    }
    struct tsr_error error;
    assert_int_equal(tsr_file_set_add(set, path_in_folder("none"), NULL, &error), TSR_ERROR_READ);
    assert_int_equal(tsr_file_set_add(NULL, "x", &its, &error), TSR_ERROR_USAGE);
    assert_int_equal(tsr_file_set_add(set, NULL, &its, &error), TSR_ERROR_USAGE);
    assert_null(tsr_file_set_find(set, path_in_folder("none"), NULL));
    tsr_file_set_destroy(set);
    tsr_file_set_destroy(NULL);
}

/* Where there are no numbers of inodes, paths that may be one, size and times decide. */
TEST(files_without_numbers)
{
    static const struct {
        const char *path;
        uint64_t bytes;
        int64_t modified_s, changed_s;
        uint32_t changed_ns;
        bool is_same;
    } others[] = {
        {"out/X.TXT.tsr", 5, 1000, 2000, 300, true},        {"out/x.txt.tsr", 5, 1000, 2000, 300, true},
        {"OUT/x.txt.tsr", 5, 1000, 2000, 300, true},        {"out/x.txt.tsr", 5, 1001, 2000, 300, true},
        {"out/X.TXT.tsr", 5, 1000, 2001, 0, true},          {"out/X.TXT.tsr", 5, 1000, 2000, 0, true},
        {"out/X.TXT.tsr", 5, 1000, 2000, 200, false},       {"out/X.TXT.tsr", 5, 1000, 1999, 900, false},
        {"out/X.TXT.tsr", 6, 1000, 2000, 300, false},       {"out/X.TXT.tsr", 5, 1002, 2000, 300, false},
        {"out/y.txt.tsr", 5, 1000, 2000, 300, false},       {"out2/x.txt.tsr", 5, 1000, 2000, 300, false},
        {"out/x\u0301.txt.tsr", 5, 1000, 2000, 300, false}, {"out/x.txt.ts\u0155", 5, 1000, 2000, 300, false},
    };
    struct tsr_file_set *const set = must(tsr_file_set_create());
    struct tsr_file_state its = {.device = 1, .bytes = 5, .modified_s = 1000, .changed_s = 2000, .changed_ns = 300};
    assert_int_equal(tsr_file_set_add(set, "out/x.txt.tsr", &its, NULL), TSR_OK);
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        its.bytes = others[i].bytes;
        its.modified_s = others[i].modified_s;
        its.changed_s = others[i].changed_s;
        its.changed_ns = others[i].changed_ns;
        expect(!tsr_file_set_find(set, others[i].path, &its) == !others[i].is_same, "%s", others[i].path);
    }
    tsr_file_set_destroy(set);
}

/* Paths that some file system takes for one, and others. */
TEST(folded_paths)
{
    static const struct {
        const char *one, *other;
        bool is_same;
    } pairs[] = {
        {"a/x.TXT", "A/X.txt", true},
        {"m\u00e4r", "ma\u0308r", true},
        {"M\u00e4r", "ma\u0308r", true},
        {"\u00e4", "a\u0308", true},
        {"a/x", "a/y", false},
        {"a/x", "a/xx", false},
        {"mar", "m\u00e4r", false},
        {"ab", "a\u0308b", false},
        {"a/b", "ab", false},
        {"\u00d6l", "o\u0308L", true},
        {"", "", true},
        {"x ", "x", false},
    };
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        const int order = tsr_compare_folded(pairs[i].one, pairs[i].other);
        expect((order == 0) == pairs[i].is_same, "%s, %s", pairs[i].one, pairs[i].other);
        assert_true((tsr_compare_folded(pairs[i].other, pairs[i].one) > 0) == (order < 0));
    }
}

/* Each allocation fails in turn: the set stays whole. */
TEST(sets_without_memory)
{
    const struct tsr_file_state its = {.device = 1, .inode = 1};
    long total = 0;
    const long blocks = live_blocks();
    for (long at = 0; at <= total; at++) {
        plan_calls(CALL_ALLOCATE, at, false, FAULT_ERROR);
        struct tsr_file_set *const set = tsr_file_set_create();
        const enum tsr_status added = set ? tsr_file_set_add(set, "a", &its, NULL) : TSR_ERROR_LIMIT;
        if (at == 0) total = call_plans[CALL_ALLOCATE].count;
        plan_no_failures();
        assert_int_equal(added, at == 0 ? TSR_OK : TSR_ERROR_LIMIT);
        if (set) {
            assert_true(!tsr_file_set_find(set, "a", &its) == (at != 0));
            assert_int_equal(tsr_file_set_add(set, "b", &its, NULL), TSR_OK);
            assert_non_null(tsr_file_set_find(set, "b", &its));
        }
        tsr_file_set_destroy(set);
        assert_int_equal(live_blocks(), blocks);
    }
    assert_true(total >= 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_of_parts),
                                       cmocka_unit_test(marks_of_parts),
                                       cmocka_unit_test(outputs_of_one_run),
                                       cmocka_unit_test(outputs_that_leave_their_run),
                                       cmocka_unit_test(files_that_appear_meanwhile),
                                       cmocka_unit_test(killed_after_the_exchange),
                                       cmocka_unit_test(threads_of_one_run),
                                       cmocka_unit_test(sets_of_files),
                                       cmocka_unit_test(files_without_numbers),
                                       cmocka_unit_test(folded_paths),
                                       cmocka_unit_test(sets_without_memory)};
    plan_no_failures();
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
