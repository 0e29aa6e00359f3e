/* Folders that are searched for inputs (app/cli/inputs) and that receive outputs (io/folder.h). What a failing call
 * hides is reported, links are not followed, and what killed runs have left is skipped and removed. */
#include "in_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "app/cli/cli.h"
#include "failing_calls.h"
#include "io/folder.h"
#include "io/part.h"

const char *verb_name(enum verb verb)
{
    return verb == VERB_COMPRESS ? "compress" : "another verb";
}

/* ---- Calls that fail -------------------------------------------------------------------------------------- */

/* Call number fails (from 1; 0: none) fails with this error. GHOST: readdir finds a name that does not exist. */
enum { GHOST = -1 };
struct plan {
    long count, fails;
    int error;
};
static struct plan opendirs, fdopendirs, readdirs, strndups;

static bool fails(struct plan *p)
{
    p->count++;
    if (p->count != p->fails) return false;
    errno = p->error;
    return true;
}

DIR *__real_opendir(const char *path);
DIR *__wrap_opendir(const char *path);
DIR *__real_fdopendir(int file);
DIR *__wrap_fdopendir(int file);
#if __SIZEOF_POINTER__ == 4 /* the name of the call with a 64-bit off_t */
#define __real_readdir __real_readdir64
#define __wrap_readdir __wrap_readdir64
#endif
struct dirent *__real_readdir(DIR *stream);
struct dirent *__wrap_readdir(DIR *stream);
char *__wrap_strndup(const char *text, size_t length);

DIR *__wrap_opendir(const char *path)
{
    return fails(&opendirs) ? NULL : __real_opendir(path);
}

DIR *__wrap_fdopendir(int file)
{
    return fails(&fdopendirs) ? NULL : __real_fdopendir(file);
}

/* If readdir succeeds, errno may have any value. */
struct dirent *__wrap_readdir(DIR *stream)
{
    static struct dirent ghost = {.d_name = "ghost"};
    if (fails(&readdirs)) return readdirs.error == GHOST ? &ghost : NULL;
    struct dirent *const entry = __real_readdir(stream);
    if (entry) errno = EIO;
    return entry;
}

char *__wrap_strndup(const char *text, size_t length)
{
    if (fails(&strndups)) return NULL;
    const size_t size = strnlen(text, length);
    char *const copy = malloc(size + 1); /* counted and freed as all others */
    if (!copy) return NULL;
    memcpy(copy, text, size);
    copy[size] = '\0';
    return copy;
}

static void plan_none(void)
{
    opendirs = fdopendirs = readdirs = strndups = (struct plan){0};
    plan_no_failures();
}

/* The number that the next descriptor will have: it changes if a descriptor is left open. */
static int next_descriptor(void)
{
    const int file = dup(STDERR_FILENO);
    close(file);
    return file;
}

/* ---- A tree ----------------------------------------------------------------------------------------------- */

static void make_at(const char *name)
{
    write_bytes(path_in_folder(name), (struct bytes){(uint8_t *)"P5 1 1 255\nx", 12});
}

static void make_folder_at(const char *name)
{
    assert_int_equal(mkdir(path_in_folder(name), 0700), 0);
}

/* More names than the first allocation has room for, in three folders, of which one is empty. */
enum { MANY = 70, FILES = MANY + 3 };
static void make_tree(const char *suffix)
{
    static const char *const others[] = {"in/sub/b", "in/sub/a", "in/zz"};
    char name[32];
    make_folder_at("in");
    make_folder_at("in/empty");
    make_folder_at("in/sub");
    for (int i = 0; i < FILES; i++) {
        if (i < MANY)
            snprintf(name, sizeof name, "in/%02d%s", i, suffix);
        else
            snprintf(name, sizeof name, "%s%s", others[i - MANY], suffix);
        make_at(name);
    }
}

static void remove_tree(const char *path)
{
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char below[512];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
        struct stat status;
        if (lstat(below, &status) == 0 && S_ISDIR(status.st_mode))
            remove_tree(below);
        else
            unlink(below);
    }
    if (dir) closedir(dir);
    rmdir(path);
}

static int clear(void **state)
{
    (void)state;
    plan_none();
    files_need_names = false;
    remove_tree(folder);
    return mkdir(folder, 0700);
}

static enum tsr_status list(enum verb verb, const char *input, const char *output, struct task_list *tasks,
                            struct tsr_error *error)
{
    const struct options options = {
        .verb = verb, .in = {.names = &input, .count = 1, .recursive = true}, .out = {.path = output}};
    *error = (struct tsr_error){TSR_OK, TSR_NO_OFFSET, "", 0};
    return list_tasks(&options, NULL, tasks, error);
}

/* The task for an input in the folder; NULL if there is no such task. */
static const struct task *find_task(const struct task_list *tasks, const char *name)
{
    for (size_t i = 0; i < tasks->count; i++)
        if (strcmp(tasks->tasks[i].input, path_in_folder(name)) == 0) return &tasks->tasks[i];
    return NULL;
}

static size_t count_failed(const struct task_list *tasks)
{
    size_t count = 0;
    for (size_t i = 0; i < tasks->count; i++) {
        count += tasks->tasks[i].status != TSR_OK;
        assert_true((tasks->tasks[i].status != TSR_OK) == (tasks->tasks[i].reason != NULL));
    }
    return count;
}

/* ---- The walk for inputs ---------------------------------------------------------------------------------- */

TEST(walks_in_order)
{
    struct task_list tasks;
    struct tsr_error error;
    make_tree(".pgm");
    assert_int_equal(list(VERB_COMPRESS, path_in_folder("in"), path_in_folder("out"), &tasks, &error), TSR_OK);
    assert_true(tasks.count == FILES && tasks.skipped_count == 0 && tasks.others == 0 && tasks.unfinished == 0 &&
                count_failed(&tasks) == 0);
    for (size_t i = 1; i < tasks.count; i++) assert_true(strcmp(tasks.tasks[i - 1].input, tasks.tasks[i].input) < 0);
    assert_string_equal(tasks.tasks[MANY + 1].input, path_in_folder("in/sub/b.pgm"));
    assert_string_equal(tasks.tasks[MANY + 1].output, path_in_folder("out/sub/b.pgm.tsr"));
    free_tasks(&tasks);
}

/* Each allocation of the search fails in turn: there is no list then. */
TEST(memory_that_is_missing)
{
    static const enum verb verbs[] = {VERB_COMPRESS, VERB_DECOMPRESS, VERB_TEST};
    for (size_t v = 0; v < COUNT_OF(verbs); v++) {
        long total = 0;
        make_tree(v == 0 ? ".pgm" : ".tsr");
        for (long at = 0; at <= total; at++) {
            struct task_list tasks;
            struct tsr_error error;
            const long blocks = live_blocks();
            const int descriptor = next_descriptor();
            plan_calls(CALL_ALLOCATE, at, at % 2, FAULT_ERROR);
            const enum tsr_status status = list(verbs[v], path_in_folder("in"), path_in_folder("out"), &tasks, &error);
            if (at == 0) total = call_plans[CALL_ALLOCATE].count;
            plan_none();
            /* If memory is missing to see whether a file is a series, that file's task reports it. */
            const bool is_told = verbs[v] != VERB_COMPRESS && status == TSR_OK && count_failed(&tasks) > 0;
            expect(at == 0 ? status == TSR_OK : status == TSR_ERROR_LIMIT || is_told,
                   "verb %d, allocation %ld of %ld: %s, %zu tasks", (int)verbs[v], at, total, tsr_status_name(status),
                   tasks.count);
            if (status == TSR_OK) expect(tasks.count == FILES, "%zu of %d files", tasks.count, FILES);
            free_tasks(&tasks);
            assert_int_equal(live_blocks(), blocks);
            assert_int_equal(next_descriptor(), descriptor);
        }
        assert_true(total > 2 * FILES);
        remove_tree(path_in_folder("in"));
    }
}

/* A name without .tsr is a copy, too. */
TEST(names_that_are_cut)
{
    struct task_list tasks;
    struct tsr_error error;
    make_tree(".tsr");
    for (long at = 1; at <= FILES; at++) {
        strndups = (struct plan){0, at, ENOMEM};
        assert_int_equal(list(VERB_DECOMPRESS, path_in_folder("in"), NULL, &tasks, &error), TSR_ERROR_LIMIT);
        plan_none();
        free_tasks(&tasks);
    }
}

/* Each readdir of the search fails in turn: a task reports the folder, and the names that were found before are
 * kept. */
TEST(folders_that_end_in_an_error)
{
    static const struct {
        int error;
        enum tsr_status status;
    } errors[] = {{EIO, TSR_ERROR_READ}, {EBADF, TSR_ERROR_READ}, {ENOENT, TSR_ERROR_READ}, {EMFILE, TSR_ERROR_LIMIT}};
    static const char *const folders[] = {"in", "in/empty", "in/sub"};
    make_tree(".pgm");
    for (size_t e = 0; e < COUNT_OF(errors); e++) {
        size_t told[COUNT_OF(folders)] = {0};
        long total = 0;
        for (long at = 0; at <= total; at++) {
            struct task_list tasks;
            struct tsr_error error;
            const int descriptor = next_descriptor();
            readdirs = (struct plan){0, at, errors[e].error};
            const enum tsr_status status = list(VERB_COMPRESS, path_in_folder("in"), NULL, &tasks, &error);
            if (at == 0) total = readdirs.count;
            plan_none();
            expect(status == TSR_OK, "readdir %ld: %s", at, error.text);
            expect(count_failed(&tasks) == (at > 0), "readdir %ld of %ld: %zu tasks", at, total, tasks.count);
            for (size_t f = 0; f < COUNT_OF(folders); f++) {
                const struct task *const task = find_task(&tasks, folders[f]);
                if (task) expect(task->status == errors[e].status, "%s", task->reason);
                if (task) assert_string_equal(task->reason, strerror(errors[e].error));
                told[f] += task != NULL;
            }
            if (at == 0) assert_int_equal(tasks.count, FILES);
            free_tasks(&tasks);
            assert_int_equal(next_descriptor(), descriptor);
        }
        /* One for each name, for each folder and its parent, and for the end. */
        assert_int_equal(total, FILES + 2 + 3 * 3);
        assert_true(told[0] == MANY + 6 && told[1] == 3 && told[2] == 5);
    }
}

TEST(folders_that_do_not_open)
{
    static const struct {
        int error;
        enum tsr_status list, task;
    } errors[] = {{EACCES, TSR_OK, TSR_ERROR_READ},
                  {EIO, TSR_OK, TSR_ERROR_READ},
                  {EMFILE, TSR_OK, TSR_ERROR_LIMIT},
                  {ENOMEM, TSR_ERROR_LIMIT, TSR_ERROR_LIMIT}};
    static const char *const folders[] = {"in", "in/empty", "in/sub"};
    make_tree(".pgm");
    for (size_t e = 0; e < COUNT_OF(errors); e++) {
        for (long at = 1; at <= 3; at++) {
            struct task_list tasks;
            struct tsr_error error;
            opendirs = (struct plan){0, at, errors[e].error};
            const enum tsr_status status = list(VERB_COMPRESS, path_in_folder("in"), NULL, &tasks, &error);
            plan_none();
            assert_int_equal(status, errors[e].list);
            const struct task *const task = find_task(&tasks, folders[at - 1]);
            assert_true(task && task->status == errors[e].task);
            free_tasks(&tasks);
        }
    }
    /* Memory runs out between two names. */
    for (long at = 1; at < 10; at++) {
        struct task_list tasks;
        struct tsr_error error;
        readdirs = (struct plan){0, at, ENOMEM};
        assert_int_equal(list(VERB_COMPRESS, path_in_folder("in"), NULL, &tasks, &error), TSR_ERROR_LIMIT);
        plan_none();
        free_tasks(&tasks);
    }
}

/* A name whose file is gone before it is examined. */
TEST(names_that_are_gone)
{
    struct task_list tasks;
    struct tsr_error error;
    make_folder_at("in");
    make_at("in/a.pgm");
    for (long at = 1; at <= 3; at++) {
        readdirs = (struct plan){0, at, GHOST};
        assert_int_equal(list(VERB_COMPRESS, path_in_folder("in"), NULL, &tasks, &error), TSR_OK);
        plan_none();
        const struct task *const task = find_task(&tasks, "in/ghost");
        assert_true(task && task->status == TSR_ERROR_READ && find_task(&tasks, "in/a.pgm") && tasks.count == 2);
        free_tasks(&tasks);
    }
}

/* The folder that the user names may be a link. Below it links of all kinds are skipped, and pipes, too. */
TEST(links_among_inputs)
{
    static const char *const links[][2] = {{"../outside", "in/folder"},
                                           {"../outside/b.pgm", "in/file.pgm"},
                                           {"nowhere", "in/dangling.pgm"},
                                           {".", "in/circle"},
                                           {"..", "in/sub/up"},
                                           {"loop", "in/loop"},
                                           {"in", "root"}};
    make_folder_at("in");
    make_folder_at("in/sub");
    make_folder_at("outside");
    make_at("in/sub/a.pgm");
    make_at("outside/b.pgm");
    for (size_t i = 0; i < COUNT_OF(links); i++) assert_int_equal(symlink(links[i][0], path_in_folder(links[i][1])), 0);
    assert_int_equal(mkfifo(path_in_folder("in/pipe.pgm"), 0600), 0);
    for (int linked = 0; linked < 2; linked++) {
        struct task_list tasks;
        struct tsr_error error;
        const char *const root = linked ? "root" : "in", *const file = linked ? "root/sub/a.pgm" : "in/sub/a.pgm";
        assert_int_equal(list(VERB_COMPRESS, path_in_folder(root), NULL, &tasks, &error), TSR_OK);
        assert_true(tasks.count == 1 && find_task(&tasks, file));
        assert_int_equal(tasks.skipped_count, 7);
        assert_int_equal(tasks.tasks[0].root, strlen(path_in_folder(root)));
        free_tasks(&tasks);
    }
}

/* ---- What killed runs have left ---------------------------------------------------------------------------- */

enum { PATIENCE = 100 }; /* seconds until a process that waits is ended */

/* A process that holds what it has begun until it is killed, or until the test ends. */
struct owner {
    pid_t process;
    int wire;
};

static struct owner start_owner(void (*begin)(const char *path), const char *path)
{
    int wire[2];
    char ready;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, wire), 0);
    const struct owner owner = {fork(), wire[0]};
    assert_true(owner.process >= 0);
    if (owner.process == 0) {
        alarm(PATIENCE);
        close(wire[0]);
        begin(path);
        if (write(wire[1], "+", 1) != 1 || read(wire[1], &ready, 1) >= 0) _exit(0);
        _exit(1);
    }
    close(wire[1]);
    assert_int_equal(read(owner.wire, &ready, 1), 1);
    return owner;
}

static void kill_owner(struct owner owner)
{
    assert_int_equal(kill(owner.process, SIGKILL), 0);
    assert_int_equal(waitpid(owner.process, NULL, 0), owner.process);
    close(owner.wire);
}

static void lock_file(const char *path)
{
    const int file = open(path, O_RDONLY);
    if (file < 0 || flock(file, LOCK_EX | LOCK_NB) != 0) _exit(1);
}

static struct tsr_output *begin(const char *path)
{
    struct tsr_output *output;
    const struct tsr_output_options options = {0};
    files_need_names = true;
    if (tsr_output_create(path, &options, true, &output, NULL) != TSR_OK) _exit(1);
    if (tsr_output_write(output, "half", 4, NULL) != TSR_OK) _exit(1);
    return output;
}

static void begin_output(const char *path)
{
    begin(path);
}

static void write_output(const char *path)
{
    if (tsr_output_flush(begin(path), NULL) != TSR_OK) _exit(1);
}

static void finish_output(const char *path)
{
    if (tsr_output_finish(begin(path), NULL) != TSR_OK) _exit(1);
}

/* Opens the folder of a path in a new process, which has not seen it before. Returns the status, or 99 if a descriptor
 * is left open. */
static int open_elsewhere(const char *path)
{
    int status;
    const pid_t process = fork();
    if (process == 0) {
        alarm(PATIENCE);
        struct tsr_spot spot;
        const int descriptor = next_descriptor();
        const enum tsr_status result = tsr_spot_open(path, 0, &spot, NULL);
        tsr_spot_close(&spot);
        _exit(next_descriptor() == descriptor ? (int)result : 99);
    }
    assert_true(process > 0 && waitpid(process, &status, 0) == process && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static bool is_there(const char *name)
{
    struct stat status;
    return lstat(path_in_folder(name), &status) == 0;
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

static void kill_run(void (*at_work)(const char *path))
{
    char part[300];
    struct task_list tasks;
    struct tsr_error error;
    make_at("a.pgm");
    const struct owner owner = start_owner(at_work, path_in_folder("a.tsr"));
    find_part(part);
    assert_true(part[0]);
    for (int killed = 0; killed < 2; killed++) {
        assert_int_equal(list(VERB_COMPRESS, folder, NULL, &tasks, &error), TSR_OK);
        assert_true(tasks.count == 1 && tasks.unfinished == 1);
        free_tasks(&tasks);
        if (killed) break;
        assert_int_equal(open_elsewhere(path_in_folder("b.tsr")), TSR_OK);
        assert_true(is_there(part));
        kill_owner(owner);
    }
    /* If the folder cannot be read, the part stays, and nothing else happens. */
    fdopendirs = (struct plan){0, 1, ENOMEM};
    assert_int_equal(open_elsewhere(path_in_folder("b.tsr")), TSR_OK);
    plan_none();
    readdirs = (struct plan){0, 1, EIO};
    assert_int_equal(open_elsewhere(path_in_folder("b.tsr")), TSR_OK);
    plan_none();
    assert_true(is_there(part));
    assert_int_equal(open_elsewhere(path_in_folder("b.tsr")), TSR_OK);
    assert_true(!is_there(part) && is_there("a.pgm"));
}

/* A killed run leaves a part. The next run removes it, but not before the run is dead, and never takes it for an
 * input. */
TEST(parts_of_killed_runs)
{
    kill_run(begin_output);
    kill_run(write_output);
    kill_run(finish_output);
}

/* What a file with the name of a part holds. The name says what a part holds, but for its mark; HEAD: of that. */
enum holds { MARK, ALL, NOTHING, OTHERS, CUT_MARK, OTHER_MARK, OTHERS_HEAD };

static void make_part(const struct tsr_part *part, enum holds holds)
{
    uint8_t mark[TSR_PART_MARK + 10] = {0};
    struct tsr_part other = *part;
    other.label[0] = other.label[0] == '0' ? '1' : '0';
    tsr_part_mark(holds == OTHER_MARK ? other.label : part->label, mark);
    const struct bytes content = holds == NOTHING       ? (struct bytes){mark, 0}
                                 : holds == CUT_MARK    ? (struct bytes){mark, TSR_PART_MARK - 1}
                                 : holds == ALL         ? (struct bytes){(uint8_t *)"P5 1 1 255\nx", 12}
                                 : holds == OTHERS      ? (struct bytes){(uint8_t *)"P5 1 1 255\ny", 12}
                                 : holds == OTHERS_HEAD ? (struct bytes){(uint8_t *)"P5 1 1 255\nxy", 13}
                                                        : (struct bytes){mark, sizeof mark};
    write_bytes(path_in_folder(part->name), content);
}

enum kind { REGULAR, FOLDER, LINK, PIPE };
struct part_case {
    const char *name; /* NULL: a name that this process makes; "another": of another machine */
    enum kind kind;
    enum holds holds;
    int hours;
    bool is_locked, stays;
};

/* Makes a file of a part's name. Returns the name, to be freed. */
static char *make_case(const struct part_case *c)
{
    enum { HOUR = 3600 };
    const struct timespec then = {time(NULL) - (time_t)c->hours * HOUR, 0}, times[2] = {then, then};
    const bool has_bytes = c->holds == ALL || c->holds == OTHERS || c->holds == OTHERS_HEAD;
    struct tsr_part part;
    tsr_part_label(&part);
    if (c->name) part.label[0] = part.label[0] == '0' ? '1' : '0'; /* a digit of the machine's number */
    tsr_part_name(part.label, has_bytes ? 12 : 0, (const uint8_t *)"P5 1 1 255\nx", part.name);
    if (c->name && strcmp(c->name, "another") != 0) strcpy(part.name, c->name);
    const char *const path = path_in_folder(part.name);
    if (c->kind == REGULAR) make_part(&part, c->holds);
    if (c->kind == FOLDER) assert_int_equal(mkdir(path, 0700), 0);
    if (c->kind == LINK) assert_int_equal(symlink("target", path), 0);
    if (c->kind == PIPE) assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW), 0);
    return must(strdup(part.name));
}

/* No verb takes a file that a run has not finished for an input; it is counted. A file whose name alone is a part's is
 * an input. */
TEST(unfinished_files)
{
    static const enum holds held[] = {MARK, ALL, NOTHING, OTHERS, OTHERS_HEAD, OTHER_MARK};
    static const char *const names[] = {"in/.tessera-deadbeef-1-1.part",
                                        "in/.tessera-0123abcd-1-1-0123456789abcdef.part.pgm"};
    static const enum verb verbs[] = {VERB_COMPRESS, VERB_COMPARE};
    char *made[COUNT_OF(held)];
    make_folder_at("in");
    make_folder_at("in/.tessera-0123abcd-1-1-0123456789abcdef.part"); /* a folder is searched, whatever its name is */
    make_at("in/.tessera-0123abcd-1-1-0123456789abcdef.part/a.pgm");
    for (size_t i = 0; i < COUNT_OF(names); i++) make_at(names[i]);
    for (size_t i = 0; i < COUNT_OF(held); i++) {
        char name[160];
        made[i] = make_case(&(struct part_case){.holds = held[i]});
        snprintf(name, sizeof name, "in/%s", made[i]);
        assert_int_equal(rename(path_in_folder(made[i]), path_in_folder(name)), 0);
    }
    for (size_t v = 0; v < COUNT_OF(verbs); v++) {
        struct task_list tasks;
        struct tsr_error error;
        assert_int_equal(list(verbs[v], path_in_folder("in"), path_in_folder("out"), &tasks, &error), TSR_OK);
        expect(tasks.unfinished == 3 && tasks.skipped_count == 0 && tasks.others == 0 && tasks.count == 6,
               "%zu unfinished, %zu inputs", tasks.unfinished, tasks.count);
        assert_true(find_task(&tasks, names[0]) && find_task(&tasks, names[1]));
        free_tasks(&tasks);
    }
    for (size_t i = 0; i < COUNT_OF(made); i++) free(made[i]);
}

/* A part of this machine stays while it is locked. A part of another machine, which may not share locks, also stays for
 * a day. What does not hold what its name says is somebody's, and stays. */
TEST(parts_of_all_kinds)
{
    static const struct part_case cases[] = {
        {NULL, REGULAR, MARK, 0, false, false},
        {NULL, REGULAR, ALL, 0, false, false},
        {NULL, REGULAR, NOTHING, 0, false, false},
        {NULL, REGULAR, MARK, 1000, false, false},
        {NULL, REGULAR, OTHERS, 1000, false, true},
        {NULL, REGULAR, OTHERS_HEAD, 1000, false, true},
        {NULL, REGULAR, CUT_MARK, 1000, false, true},
        {NULL, REGULAR, OTHER_MARK, 1000, false, true},
        {NULL, REGULAR, MARK, 0, true, true},
        {NULL, REGULAR, ALL, 1000, true, true},
        {NULL, FOLDER, MARK, 1000, false, true},
        {NULL, LINK, MARK, 1000, false, true},
        {NULL, PIPE, MARK, 1000, false, true},
        {"another", REGULAR, MARK, 0, false, true},
        {"another", REGULAR, ALL, 23, false, true},
        {"another", REGULAR, MARK, -25, false, true}, /* by a clock that is ahead */
        {"another", REGULAR, MARK, 25, false, false},
        {"another", REGULAR, ALL, 25, false, false},
        {"another", REGULAR, OTHERS, 25, false, true},
        {"another", REGULAR, MARK, 25, true, true},
        {"another", LINK, MARK, 25, false, true},
        {".tessera-deadbeef-1-1.part", REGULAR, OTHERS, 25, false, true},
        {".tessera-deadbeef-1-1-0123456789abcdef.part", REGULAR, OTHERS, 25, false, true},
        {".tessera-deadbeef-1-1-0123456789abcdef.part.tsr", REGULAR, ALL, 1000, false, true},
    };
    struct owner owners[COUNT_OF(cases)];
    char *names[COUNT_OF(cases)];
    make_at("target");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        names[i] = make_case(&cases[i]);
        if (cases[i].is_locked) owners[i] = start_owner(lock_file, path_in_folder(names[i]));
    }
    assert_int_equal(open_elsewhere(path_in_folder("out")), TSR_OK);
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        expect(is_there(names[i]) == cases[i].stays, "part %zu, %s", i, names[i]);
    assert_true(is_there("target"));
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        if (cases[i].is_locked) kill_owner(owners[i]);
    assert_int_equal(open_elsewhere(path_in_folder("out")), TSR_OK);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        expect(is_there(names[i]) == (cases[i].stays && !cases[i].is_locked), "part %zu, %s", i, names[i]);
        free(names[i]);
    }
}

/* ---- The way to an output ----------------------------------------------------------------------------------- */

static bool leads_to(const struct tsr_spot *spot, const char *path)
{
    struct stat one, two;
    return fstat(spot->folder, &one) == 0 && stat(path, &two) == 0 && one.st_dev == two.st_dev &&
           one.st_ino == two.st_ino;
}

/* Below the folder that the user names, folders are made. Links and files on the way are errors. */
TEST(ways)
{
    static const struct {
        const char *path, *root, *leads_to; /* NULL: an error */
        const char *reason;
    } ways[] = {
        {"x", "", "", NULL},
        {"a/x", "", "a", NULL},
        {"a/b/c/x", "", "a/b/c", NULL},
        {"a//b///c/x", "", "a/b/c", NULL},
        {"new/root/c/x", "new/root", "new/root/c", NULL},
        {"file/x", "", NULL, "is not a folder"},
        {"a/file/b/x", "", NULL, "is not a folder"},
        {"link/x", "", NULL, "is a symbolic link"},
        {"a/link/x", "", NULL, "is a symbolic link"},
        {"a/link/deeper/x", "", NULL, "is a symbolic link"},
        {"a/link/deeper/x", "a", NULL, "is a symbolic link"},
        {"dangling/x", "", NULL, "is a symbolic link"},
        {"loop/x", "", NULL, "is a symbolic link"},
        {"a/to_file/x", "", NULL, "is a symbolic link"},
        {"link/x", "link", "other", NULL},
        {"a/link/x", "a/link", "other", NULL},
        {"a/link/made/x", "a/link", "other/made", NULL},
        {"a/link/up/x", "a/link", NULL, "is a symbolic link"},
        {"dangling/x", "dangling", NULL, "cannot open the folder"},
        {"loop/x", "loop", NULL, ""},
        {"file/x", "file", NULL, "is not a folder"},
    };
    make_folder_at("a");
    make_folder_at("other");
    make_at("file");
    make_at("a/file");
    static const char *const links[][2] = {{"other", "link"}, {"../other", "a/link"}, {"nowhere", "dangling"},
                                           {"loop", "loop"},  {"file", "a/to_file"},  {"../a", "other/up"}};
    for (size_t i = 0; i < COUNT_OF(links); i++) assert_int_equal(symlink(links[i][0], path_in_folder(links[i][1])), 0);
    const int descriptor = next_descriptor();
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        struct tsr_spot spot;
        struct tsr_error error = {0};
        const char *const path = path_in_folder(ways[i].path);
        const size_t root = strlen(path_in_folder(ways[i].root));
        const enum tsr_status status = tsr_spot_open(path, root, &spot, &error);
        if (ways[i].leads_to) {
            expect(status == TSR_OK, "%s: %s", path, error.text);
            expect(leads_to(&spot, path_in_folder(ways[i].leads_to)), "%s", path);
            assert_string_equal(spot.name, "x");
        } else {
            expect(status == TSR_ERROR_WRITE && strstr(error.text, ways[i].reason), "%s: %s", path, error.text);
            assert_true(spot.folder == -1 && !spot.name);
            assert_int_equal(tsr_spot_open(path, root, &spot, NULL), status);
        }
        tsr_spot_close(&spot);
        assert_int_equal(tsr_sync_folders(NULL), TSR_OK); /* closes the folders that were made */
        assert_int_equal(next_descriptor(), descriptor);
    }
    assert_false(is_there("nowhere") || is_there("other/deeper"));
}

/* Each allocation and each open on the way fails in turn: this is reported, or the way is right all the same. */
TEST(ways_that_fail)
{
    static const enum call_kind kinds[] = {CALL_ALLOCATE, CALL_OPEN};
    struct tsr_spot spot;
    make_folder_at("a");
    make_folder_at("a/b");
    const char *const path = path_in_folder("a/b/x");
    assert_int_equal(tsr_spot_open(path, strlen(folder), &spot, NULL), TSR_OK); /* the folder is known from now on */
    tsr_spot_close(&spot);
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        long total = 0, told = 0;
        for (long at = 0; at <= total; at++) {
            struct tsr_error error = {0};
            const long blocks = live_blocks();
            const int descriptor = next_descriptor();
            plan_calls(kinds[k], at, false, FAULT_ERROR);
            const enum tsr_status status = tsr_spot_open(path, strlen(folder), &spot, &error);
            if (at == 0) total = call_plans[kinds[k]].count;
            plan_none();
            if (status == TSR_OK)
                assert_true(leads_to(&spot, path_in_folder("a/b")) && strcmp(spot.name, "x") == 0);
            else
                expect(status == TSR_ERROR_LIMIT && spot.folder == -1 && !spot.name, "%ld: %s", at, error.text);
            told += status != TSR_OK;
            tsr_spot_close(&spot);
            assert_int_equal(live_blocks(), blocks);
            assert_int_equal(next_descriptor(), descriptor);
        }
        assert_int_equal(told, 2); /* both copies of a name; both folders below the root */
    }
}

static void *sync_elsewhere(void *failed)
{
    *(bool *)failed = tsr_sync_folders(NULL) == TSR_ERROR_WRITE;
    return NULL;
}

/* A folder that cannot be synced is told to the thread that has noted it, although another one's call has synced it and
 * was told, too; and to nobody twice. */
TEST(failures_of_another_call)
{
    struct tsr_spot spot;
    bool failed = false;
    pthread_t other;
    assert_int_equal(tsr_sync_folders(NULL), TSR_OK);
    assert_int_equal(tsr_spot_open(path_in_folder("x"), strlen(folder), &spot, NULL), TSR_OK);
    assert_int_equal(tsr_folder_changed(spot.folder, "x", NULL), TSR_OK);
    tsr_spot_close(&spot);
    plan_calls(CALL_SYNC, 1, false, FAULT_ERROR);
    assert_int_equal(pthread_create(&other, NULL, sync_elsewhere, &failed), 0);
    assert_int_equal(pthread_join(other, NULL), 0);
    plan_none();
    assert_true(failed);
    struct tsr_error error = {0};
    assert_int_equal(tsr_sync_folders(&error), TSR_ERROR_WRITE);
    assert_non_null(strstr(error.text, "cannot sync the folder of x"));
    assert_int_equal(tsr_sync_folders(NULL), TSR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_teardown(walks_in_order, clear),
                                       cmocka_unit_test_teardown(memory_that_is_missing, clear),
                                       cmocka_unit_test_teardown(names_that_are_cut, clear),
                                       cmocka_unit_test_teardown(folders_that_end_in_an_error, clear),
                                       cmocka_unit_test_teardown(folders_that_do_not_open, clear),
                                       cmocka_unit_test_teardown(names_that_are_gone, clear),
                                       cmocka_unit_test_teardown(links_among_inputs, clear),
                                       cmocka_unit_test_teardown(parts_of_killed_runs, clear),
                                       cmocka_unit_test_teardown(unfinished_files, clear),
                                       cmocka_unit_test_teardown(parts_of_all_kinds, clear),
                                       cmocka_unit_test_teardown(ways, clear),
                                       cmocka_unit_test_teardown(ways_that_fail, clear),
                                       cmocka_unit_test_teardown(failures_of_another_call, clear)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
