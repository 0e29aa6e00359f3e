/* The attack on calls. The program runs on small inputs while one call of libc fails, or the process is killed at it,
 * or another file takes an input's place before it. After each run the folder must hold what it held before, or what a
 * run without a fault leaves, and nothing else. With status 0 it must hold all of the latter.
 *
 * usage: tsr_attack_faults TESSERA SHIM DATA WORK COUNT [seed=N] [jobs=N] [scenario=TEXT] [call=NAME] [at=N]
 *        [deed=NAME]
 *   TESSERA   the program
 *   SHIM      tsr_attack_shim.so
 *   DATA      the synthetic set
 *   WORK      a folder, best one in memory
 *   COUNT     runs, spread over all calls
 *
 * A finding names the arguments that repeat it. Exit status: 0; 1 if something was found; 2 if it cannot work. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim.h"

enum {
    PATH_LIMIT = 1024,
    FILES_LIMIT = 64,
    WORDS_LIMIT = 24,
    SECONDS_LIMIT = 100,
    JOBS_LIMIT = 64,
    FINDINGS_LIMIT = 20
};

#define TSR_SHIM_TEXT(name) #name,
static const char *const call_name[SHIM_CALLS] = {TSR_SHIM_CALLS(TSR_SHIM_TEXT)};
static const char *const deed_name[] = {"fail", "short", "kill", "kill_behind", "exchange", "overwrite", "cut"};
enum { DEEDS = 7 };

static void stop(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("tsr_attack_faults: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(2);
}

/* ---- Scenarios -------------------------------------------------------------------------------------------- */

/* A command, run in a folder, the box. files: "NAME=FILE", files of the set and their names in the box. A name that
 * begins with @ is beside the box; that file may take an input's place. */
struct scenario {
    const char *name;
    const char *files[8];
    const char *prepare[WORDS_LIMIT]; /* a command that runs first, without faults */
    const char *command[WORDS_LIMIT];
    const char *victim; /* the input whose place the file `other` beside the box takes; NULL: none */
};

#define DCM "dicom/mr/small_01.dcm"
#define DCM2 "dicom/mr/small_02.dcm"
#define PNG "png/formats/rgb8.png"
#define PGM "pnm/texture_200.pgm"
#define PGM2 "odd/63x65_16bit.pgm"
#define DRAWN "pnm/extremes_8bit.pgm"
#define RLE "dicom/forms/rle_8bit.dcm"
#define TXT "other/text.txt"

static const struct scenario scenarios[] = {
    {"dicom", {"a.dcm=" DCM, "@other=" DCM2}, {NULL}, {"compress", "-q", "a.dcm"}, "a.dcm"},
    {"dicom_lossy", {"a.dcm=" DCM, "@other=" DCM2}, {NULL}, {"compress", "-q", "--qp", "20", "a.dcm"}, "a.dcm"},
    {"dicom_error", {"a.dcm=" DCM, "@other=" DCM2}, {NULL}, {"compress", "-q", "--max-error", "2", "a.dcm"}, "a.dcm"},
    {"deflated", {"a.dcm=dicom/forms/deflated.dcm"}, {NULL}, {"compress", "-q", "a.dcm"}, NULL},
    {"rle", {"a.dcm=" RLE}, {NULL}, {"compress", "-q", "a.dcm"}, NULL},
    {"jpeg_lossless", {"a.dcm=dicom/forms/jpeg_lossless_16bit.dcm"}, {NULL}, {"compress", "-q", "a.dcm"}, NULL},
    {"jpeg_ls", {"a.dcm=dicom/forms/jpeg_ls_fragments.dcm"}, {NULL}, {"compress", "-q", "a.dcm"}, NULL},
    {"png", {"a.png=" PNG, "@other=png/interlaced/rgb8.png"}, {NULL}, {"compress", "-q", "a.png"}, "a.png"},
    {"png_lossy", {"a.png=" PNG}, {NULL}, {"compress", "-q", "--psnr", "40", "a.png"}, NULL},
    {"pnm", {"a.pgm=" PGM, "@other=" PGM2}, {NULL}, {"compress", "-q", "-T", "2", "a.pgm"}, "a.pgm"},
    {"verbatim", {"a.txt=" TXT, "@other=" PGM}, {NULL}, {"compress", "-q", "a.txt"}, "a.txt"},
    {"drawn", {"a.pgm=" DRAWN, "@other=" PGM2}, {NULL}, {"compress", "-q", "a.pgm"}, "a.pgm"},
    {"predicted", {"a.png=" PNG}, {NULL}, {"compress", "-q", "-8", "--qp", "20", "a.png"}, NULL},
    {"size", {"a.dcm=" DCM}, {NULL}, {"compress", "-q", "--size", "2k", "a.dcm"}, NULL},
    {"over", {"a.pgm=" PGM, "a.pgm.tsr=" TXT}, {NULL}, {"compress", "-q", "-f", "a.pgm"}, NULL},
    {"folder",
     {"in/a.dcm=" DCM, "in/x/b.pgm=" PGM2, "in/x/y/c.png=" PNG, "in/d.txt=" TXT},
     {NULL},
     {"compress", "-q", "-r", "in", "-o", "out"},
     NULL},
    {"in_place", {"in/a.dcm=" DCM, "in/x/b.pgm=" PGM2, "in/d.txt=" TXT}, {NULL}, {"compress", "-q", "-r", "in"}, NULL},
    {"series",
     {"in/a.dcm=" DCM, "in/b.dcm=" DCM2, "in/x/c.png=" PNG, "in/d.txt=" TXT, "@other=" PGM2},
     {NULL},
     {"compress", "-q", "-r", "--no-times", "--series", "out.tsr", "in"},
     "in/a.dcm"},
    {"restore_dicom",
     {"a.dcm=" DCM},
     {"compress", "-q", "a.dcm", "-o", "s.tsr"},
     {"decompress", "-q", "s.tsr", "-o", "back"},
     NULL},
    {"restore_lossy",
     {"a.dcm=" DCM, "@other=" TXT},
     {"compress", "-q", "--qp", "20", "a.dcm", "-o", "s.tsr"},
     {"decompress", "-q", "s.tsr", "-o", "back"},
     "s.tsr"},
    {"restore_png",
     {"a.png=" PNG},
     {"compress", "-q", "a.png", "-o", "s.tsr"},
     {"decompress", "-q", "s.tsr", "-o", "back"},
     NULL},
    {"restore_over",
     {"a.pgm=" PGM, "back=" TXT},
     {"compress", "-q", "a.pgm", "-o", "s.tsr"},
     {"decompress", "-q", "-f", "s.tsr", "-o", "back"},
     NULL},
    {"restore_folder",
     {"in/a.dcm=" DCM, "in/x/b.pgm=" PGM2, "in/d.txt=" TXT},
     {"compress", "-q", "-r", "in", "-o", "tsr"},
     {"decompress", "-q", "-r", "tsr", "-o", "back"},
     NULL},
    {"restore_series",
     {"in/a.dcm=" DCM, "in/b.dcm=" DCM2, "in/x/c.png=" PNG},
     {"compress", "-q", "-r", "--no-times", "--series", "s.tsr", "in"},
     {"decompress", "-q", "s.tsr", "-o", "back"},
     NULL},
    {"test", {"a.dcm=" DCM}, {"compress", "-q", "--qp", "20", "a.dcm", "-o", "s.tsr"}, {"test", "-q", "s.tsr"}, NULL},
    {"restore_drawn",
     {"a.pgm=" DRAWN},
     {"compress", "-q", "a.pgm", "-o", "s.tsr"},
     {"decompress", "-q", "s.tsr", "-o", "back"},
     NULL},
    {"restore_predicted",
     {"a.png=" PNG},
     {"compress", "-q", "-8", "--qp", "20", "a.png", "-o", "s.tsr"},
     {"decompress", "-q", "s.tsr", "-o", "back"},
     NULL},
    {"test_series",
     {"in/a.dcm=" DCM, "in/b.dcm=" DCM2},
     {"compress", "-q", "-r", "--no-times", "--series", "s.tsr", "in"},
     {"test", "-q", "s.tsr"},
     NULL},
    {"region",
     {"a.dcm=" DCM, "@other=" TXT},
     {"compress", "-q", "a.dcm", "-o", "s.tsr"},
     {"decompress", "-q", "--region", "9,9,99,99", "s.tsr", "-o", "back.npy"},
     "s.tsr"},
    {"info", {"a.dcm=" DCM}, {"compress", "-q", "--qp", "20", "a.dcm", "-o", "s.tsr"}, {"info", "s.tsr"}, NULL},
};
enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };

/* ---- Pictures of a folder --------------------------------------------------------------------------------- */

struct picture {
    int count;
    struct file {
        char path[PATH_LIMIT];
        mode_t kind;
        uint64_t hash;
    } file[FILES_LIMIT];
};

/* FNV-1a: enough to tell the files of a test from each other. */
static uint64_t hash_of(const char *path)
{
    uint64_t hash = 0xcbf29ce484222325u;
    unsigned char bytes[4096];
    const int file = open(path, O_RDONLY);
    for (ssize_t got; file >= 0 && (got = read(file, bytes, sizeof bytes)) > 0;)
        for (ssize_t i = 0; i < got; i++) hash = (hash ^ bytes[i]) * 0x100000001b3u;
    if (file >= 0) close(file);
    return hash;
}

/* Adds all files below a folder, but not the folders. */
static void add_files(struct picture *p, const char *folder, const char *name)
{
    char path[2 * PATH_LIMIT];
    struct stat s;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    DIR *all = opendir(path);
    for (struct dirent *e; all && (e = readdir(all));) {
        char below[PATH_LIMIT];
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        snprintf(below, sizeof below, "%.500s%s%.500s", name, *name ? "/" : "", e->d_name);
        snprintf(path, sizeof path, "%.500s/%.1000s", folder, below);
        if (lstat(path, &s) != 0) continue;
        if (S_ISDIR(s.st_mode)) {
            add_files(p, folder, below);
        } else if (p->count < FILES_LIMIT) {
            struct file *f = &p->file[p->count++];
            snprintf(f->path, sizeof f->path, "%s", below);
            f->kind = s.st_mode & S_IFMT;
            f->hash = hash_of(path);
        }
    }
    if (all) closedir(all);
}

static const struct file *find(const struct picture *p, const char *path)
{
    for (int i = 0; i < p->count; i++)
        if (strcmp(p->file[i].path, path) == 0) return &p->file[i];
    return NULL;
}

static bool has(const struct picture *p, const struct file *f)
{
    const struct file *other = find(p, f->path);
    return other && other->hash == f->hash && other->kind == f->kind;
}

static bool same(const struct picture *a, const struct picture *b)
{
    for (int i = 0; i < a->count; i++)
        if (!has(b, &a->file[i])) return false;
    return a->count == b->count;
}

static bool is_part(const struct file *f)
{
    return strstr(f->path, ".tessera-") != NULL;
}

static void remove_all(const char *folder)
{
    DIR *all = opendir(folder);
    for (struct dirent *e; all && (e = readdir(all));) {
        char path[2 * PATH_LIMIT];
        struct stat s;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        snprintf(path, sizeof path, "%.1000s/%.500s", folder, e->d_name);
        if (lstat(path, &s) == 0 && S_ISDIR(s.st_mode))
            remove_all(path);
        else
            unlink(path);
    }
    if (all) closedir(all);
    rmdir(folder);
}

/* ---- Runs ------------------------------------------------------------------------------------------------- */

struct attack {
    const char *program, *shim, *data, *work;
    char box[PATH_LIMIT], side[PATH_LIMIT], board_path[PATH_LIMIT], out[PATH_LIMIT], err[PATH_LIMIT];
    struct shim_board *board;
    struct tally *tally;
    int job, jobs, findings;
    long count;
    uint64_t random;
    const char *scenario, *call; /* if set, only this is tried */
    long at;
    int deed;
};

/* Shared by all processes: the number of runs by result. */
struct tally {
    atomic_long right, refused, killed, wrong, of_call[SHIM_CALLS];
};

static void copy_file(const char *from, const char *to)
{
    char path[2 * PATH_LIMIT], bytes[4096];
    snprintf(path, sizeof path, "%s", to);
    for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    const int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (in < 0 || out < 0) stop("cannot copy %s to %s", from, to);
    for (ssize_t got; (got = read(in, bytes, sizeof bytes)) > 0;)
        if (write(out, bytes, (size_t)got) != got) stop("cannot write %s", to);
    close(in);
    close(out);
}

/* Runs the program with these words. Returns its status, or -1 if the signal *by_signal ended it (SIGALRM: it hung). */
static int run(struct attack *a, const char *const *words, bool with_shim, int *by_signal)
{
    const char *argv[WORDS_LIMIT + 2] = {a->program};
    for (int i = 0; words[i]; i++) argv[i + 1] = words[i];
    fflush(NULL);
    const pid_t child = fork();
    if (child < 0) stop("no process");
    if (child == 0) {
        const int out = open(a->out, O_WRONLY | O_CREAT | O_TRUNC, 0600), null = open("/dev/null", O_RDONLY),
                  err = open(a->err, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(null, 0);
        dup2(out, 1);
        dup2(err, 2);
        close(out);
        close(err);
        close(null);
        if (chdir(a->box) != 0) _exit(126);
        if (with_shim) setenv("LD_PRELOAD", a->shim, 1);
        if (with_shim) setenv(TSR_SHIM_BOARD, a->board_path, 1);
        alarm(SECONDS_LIMIT);
        execv(a->program, (char *const *)argv);
        _exit(127);
    }
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    *by_signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Fills the box, as it is before the command, and the folder beside it. */
static void fill_box(struct attack *a, const struct scenario *s)
{
    int by_signal;
    remove_all(a->box);
    remove_all(a->side);
    mkdir(a->box, 0700);
    mkdir(a->side, 0700);
    for (int i = 0; i < 8 && s->files[i]; i++) {
        const char *const equals = strchr(s->files[i], '='), *const name = s->files[i];
        char from[PATH_LIMIT], to[2 * PATH_LIMIT];
        const bool beside = name[0] == '@';
        snprintf(from, sizeof from, "%s/%s", a->data, equals + 1);
        snprintf(to, sizeof to, "%s/%.*s", beside ? a->side : a->box, (int)(equals - name) - beside, name + beside);
        copy_file(from, to);
    }
    if (s->prepare[0] && run(a, s->prepare, false, &by_signal) != 0) stop("%s cannot be prepared", s->name);
}

static void take_picture(const struct attack *a, struct picture *p)
{
    p->count = 0;
    add_files(p, a->box, "");
}

/* The files of the box before a run, and those that it must hold after a run that succeeds. */
struct wanted {
    struct picture before, after;
    char said[4096]; /* what the run prints */
    long count[SHIM_CALLS];
};

static void read_text(const char *path, char *text, size_t room)
{
    const int file = open(path, O_RDONLY);
    const ssize_t got = file >= 0 ? read(file, text, room - 1) : 0;
    text[got > 0 ? got : 0] = '\0';
    if (file >= 0) close(file);
}

static void make_wanted(struct attack *a, const struct scenario *s, struct wanted *w)
{
    int by_signal;
    memset(w, 0, sizeof *w);
    fill_box(a, s);
    take_picture(a, &w->before);
    memset(a->board, 0, sizeof *a->board);
    a->board->call = -1;
    const int status = run(a, s->command, true, &by_signal);
    if (status != 0) stop("%s without a fault: exit status %d, signal %d, see %s", s->name, status, by_signal, a->err);
    for (int c = 0; c < SHIM_CALLS; c++) w->count[c] = a->board->count[c];
    read_text(a->out, w->said, sizeof w->said);
    take_picture(a, &w->after);
}

/* ---- Judgement -------------------------------------------------------------------------------------------- */

static bool is_documented(int status)
{
    static const int statuses[] = {20, 21, 22, 40, 41, 60, 61, 62, 70, 75};
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i] == status) return true;
    return false;
}

static bool changes_input(enum shim_deed deed)
{
    return deed >= SHIM_EXCHANGE;
}

/* Says what is wrong with the box. NULL: each file is as before or as it should be, and all inputs are there. */
static const char *fault_of_box(const struct picture *before, const struct picture *after, const struct picture *now,
                                bool parts_may_stay)
{
    static char what[PATH_LIMIT + 64];
    for (int i = 0; i < now->count; i++) {
        const struct file *f = &now->file[i];
        if (parts_may_stay && is_part(f)) continue;
        if (!is_part(f) && (has(before, f) || has(after, f))) continue;
        snprintf(what, sizeof what, "%s is %s", f->path, is_part(f) ? "left behind" : "neither old nor right");
        return what;
    }
    for (int i = 0; i < before->count; i++)
        if (!find(now, before->file[i].path)) {
            snprintf(what, sizeof what, "%s is gone", before->file[i].path);
            return what;
        }
    return NULL;
}

/* Runs the command once more, with -f and without a fault. Returns its status; then: what the box holds after it. */
static int run_again(struct attack *a, const struct scenario *s, struct picture *then)
{
    const char *words[WORDS_LIMIT + 1] = {s->command[0], "-f"};
    const bool writes = strcmp(s->command[0], "test") != 0 && strcmp(s->command[0], "info") != 0;
    int by_signal;
    for (int i = 1; s->command[i]; i++) words[i + writes] = s->command[i];
    const int status = run(a, words, false, &by_signal);
    take_picture(a, then);
    return status;
}

/* Judges a run in which the input was changed. Outputs must be those of the one or the other input, and with status 0
 * they must be there. */
static const char *judge_changed(struct attack *a, const struct scenario *s, const struct wanted *w, int status,
                                 const struct picture *now)
{
    struct picture then;
    const int again = run_again(a, s, &then);
    bool has_old = true, has_new = again == 0;
    for (int i = 0; i < now->count; i++) {
        const struct file *const f = &now->file[i];
        if (is_part(f)) return "a part is left behind";
        if (strcmp(f->path, s->victim) != 0 && !has(&w->before, f) && !has(&w->after, f) &&
            !(again == 0 && has(&then, f)))
            return "an output is what neither input gives";
    }
    for (int i = 0; i < w->after.count; i++) {
        const struct file *const f = &w->after.file[i];
        if (!find(now, f->path) && find(&w->before, f->path)) return "an input is gone";
        if (strcmp(f->path, s->victim) == 0) continue;
        has_old &= has(now, f);
        has_new &= find(&then, f->path) && find(now, f->path) && find(&then, f->path)->hash == find(now, f->path)->hash;
    }
    return status != 0 || has_old || has_new ? NULL : "status 0, and not all of what should be there";
}

/* Whether it says the same as without a fault. It may add that a part that stands twice is damaged. */
static bool says_as_much(const struct attack *a, const struct wanted *w)
{
    char said[sizeof w->said] = "";
    const size_t length = strlen(w->said);
    read_text(a->out, said, sizeof said);
    return strncmp(said, w->said, length) == 0 && (!said[length] || strncmp(said + length, "  DAMAGED", 9) == 0);
}

static const char *judge(struct attack *a, const struct scenario *s, const struct wanted *w, int status, int by_signal)
{
    struct picture now, then;
    const enum shim_deed deed = a->board->deed;
    const bool is_killed = by_signal == SIGKILL && (deed == SHIM_KILL || deed == SHIM_KILL_BEHIND);
    take_picture(a, &now);
    if (by_signal == SIGALRM) return "it hangs";
    if (by_signal && !is_killed) return "a signal ends it";
    if (!is_killed && status != 0 && !is_documented(status)) return "an undocumented status";
    if (changes_input(deed)) return judge_changed(a, s, w, status, &now);
    const bool cannot_remove = deed == SHIM_FAIL && (a->board->call == SHIM_unlinkat || a->board->call == SHIM_unlink);
    const char *const fault = fault_of_box(&w->before, &w->after, &now, is_killed || cannot_remove);
    if (fault) return fault;
    if (cannot_remove) return NULL; /* a program that cannot remove files leaves a part */
    if (is_killed)
        return run_again(a, s, &then) == 0 && same(&then, &w->after) ? NULL
                                                                     : "a run behind the killed one is not complete";
    if (status == 0 && !same(&now, &w->after)) return "status 0, and not all of what should be there";
    if (status == 0 && strcmp(s->name, "info") == 0 && !says_as_much(a, w)) return "it says something else";
    return NULL;
}

/* ---- The attack ------------------------------------------------------------------------------------------- */

/* splitmix64 */
static uint64_t next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static int error_of(int call, uint64_t choice)
{
    static const int of_files[] = {EIO, EACCES, ENOMEM}, of_writes[] = {EIO, ENOSPC, EDQUOT};
    switch (call) {
    case SHIM_malloc:
    case SHIM_calloc:
    case SHIM_realloc:
    case SHIM_aligned_alloc:
        return ENOMEM;
    case SHIM_pthread_create:
        return EAGAIN;
    case SHIM_open:
    case SHIM_openat:
    case SHIM_opendir:
    case SHIM_fopen:
        return choice % 2 ? EMFILE : of_files[choice / 2 % 3];
    case SHIM_write:
    case SHIM_pwrite:
    case SHIM_writev:
    case SHIM_linkat:
    case SHIM_renameat:
    case SHIM_renameat2:
    case SHIM_mkdirat:
    case SHIM_ftruncate:
    case SHIM_fsync:
        return of_writes[choice % 3];
    default:
        return EIO;
    }
}

static void plan(struct attack *a, const struct scenario *s, int call, long at, int deed, uint64_t choice)
{
    memset(a->board, 0, sizeof *a->board);
    a->board->call = call;
    a->board->at = at;
    a->board->deed = (enum shim_deed)deed;
    a->board->error = error_of(call, choice);
    if (!s->victim) return;
    snprintf(a->board->from, sizeof a->board->from, "%.490s/other", a->side);
    snprintf(a->board->to, sizeof a->board->to, "%.250s/%.250s", a->box, s->victim);
}

static void attack_once(struct attack *a, const struct scenario *s, const struct wanted *w, int call, long at, int deed)
{
    const uint64_t choice = (uint64_t)(at + call);
    int by_signal;
    fill_box(a, s);
    plan(a, s, call, at, deed, choice);
    const int status = run(a, s->command, true, &by_signal);
    const char *const fault = judge(a, s, w, status, by_signal);
    atomic_fetch_add(&a->tally->of_call[call], 1);
    atomic_fetch_add(fault                  ? &a->tally->wrong
                     : by_signal == SIGKILL ? &a->tally->killed
                     : status == 0          ? &a->tally->right
                                            : &a->tally->refused,
                     1);
    if (fault && a->findings++ < FINDINGS_LIMIT)
        fprintf(stderr, "WRONG: %s; scenario=%s call=%s at=%ld deed=%s (status %d, signal %d)\n", fault, s->name,
                call_name[call], at, deed_name[deed], status, by_signal);
}

/* Chooses a deed for a call, mostly that the call fails. */
static int some_deed(const struct scenario *s, int call, uint64_t *random)
{
    const bool moves = call == SHIM_read || call == SHIM_pread || call == SHIM_write || call == SHIM_pwrite;
    const uint64_t choice = next(random) % 16;
    if (choice < 2) return SHIM_KILL + (int)choice;
    if (choice < 6 && s->victim) return SHIM_EXCHANGE + (int)(choice - 2) % 3;
    return choice < 8 && moves ? SHIM_SHORT : SHIM_FAIL;
}

/* The runs of one scenario. Kinds of calls take turns. Of each kind the first 40 calls are tried one after the other,
 * then random ones, until there were four times as many tries as calls. */
static void attack_scenario(struct attack *a, const struct scenario *s, long runs)
{
    static struct wanted w;
    make_wanted(a, s, &w);
    for (long done = 0, turn = 0, last = -1; done < runs && done > last && a->at == 0; turn++) {
        last = done;
        for (int c = 0; c < SHIM_CALLS && done < runs; c++) {
            const long number = turn * a->jobs + a->job; /* the number of the try, over all processes */
            if ((a->call && strcmp(a->call, call_name[c]) != 0) || number >= 4 * w.count[c]) continue;
            const bool is_early = number < w.count[c] && number < 40;
            const long at = is_early ? number + 1 : 1 + (long)(next(&a->random) % (uint64_t)w.count[c]);
            attack_once(a, s, &w, c, at, a->deed >= 0 ? a->deed : some_deed(s, c, &a->random));
            done++;
        }
    }
    for (int c = 0; c < SHIM_CALLS && a->at > 0; c++)
        if (strcmp(call_name[c], a->call) == 0) attack_once(a, s, &w, c, a->at, a->deed);
}

static int work(struct attack *a)
{
    snprintf(a->box, sizeof a->box, "%.900s/%d.box", a->work, a->job);
    snprintf(a->side, sizeof a->side, "%.900s/%d.side", a->work, a->job);
    snprintf(a->out, sizeof a->out, "%.900s/%d.stdout", a->work, a->job);
    snprintf(a->err, sizeof a->err, "%.900s/%d.stderr", a->work, a->job);
    snprintf(a->board_path, sizeof a->board_path, "%.900s/%d.board", a->work, a->job);
    const int file = open(a->board_path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || ftruncate(file, sizeof *a->board) != 0) stop("cannot write below %s", a->work);
    a->board = mmap(NULL, sizeof *a->board, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (a->board == MAP_FAILED) stop("no memory");
    a->random += (uint64_t)a->job << 32;
    int chosen = 0;
    for (int i = 0; i < SCENARIOS; i++) chosen += !a->scenario || strstr(scenarios[i].name, a->scenario);
    for (int i = 0; i < SCENARIOS; i++)
        if (!a->scenario || strstr(scenarios[i].name, a->scenario))
            attack_scenario(a, &scenarios[i], a->count / a->jobs / chosen + 1);
    if (a->at > 0) return a->findings > 0; /* a single run: its files stay for inspection */
    remove_all(a->box);
    remove_all(a->side);
    unlink(a->board_path);
    unlink(a->out);
    unlink(a->err);
    return a->findings > 0;
}

static bool read_option(struct attack *a, const char *text)
{
    const char *const value = strchr(text, '=') ? strchr(text, '=') + 1 : "";
    if (strncmp(text, "seed=", 5) == 0)
        a->random = strtoull(value, NULL, 10) * 0x9e3779b97f4a7c15u;
    else if (strncmp(text, "jobs=", 5) == 0)
        a->jobs = atoi(value);
    else if (strncmp(text, "scenario=", 9) == 0)
        a->scenario = value;
    else if (strncmp(text, "call=", 5) == 0)
        a->call = value;
    else if (strncmp(text, "at=", 3) == 0)
        a->at = strtol(value, NULL, 10);
    else if (strncmp(text, "deed=", 5) == 0) {
        for (a->deed = 0; a->deed < DEEDS && strcmp(deed_name[a->deed], value) != 0;) a->deed++;
        return a->deed < DEEDS;
    } else
        return false;
    return a->jobs >= 1 && a->jobs <= JOBS_LIMIT;
}

static void print_tally(const struct tally *t)
{
    const long all = t->right + t->refused + t->killed + t->wrong;
    printf("%ld runs with a fault: %ld right all the same, %ld refused, %ld killed and complete behind it, %ld WRONG\n",
           all, t->right, t->refused, t->killed, t->wrong);
    for (int c = 0, column = 0; c < SHIM_CALLS; c++)
        if (t->of_call[c] > 0)
            printf("%s%s %ld", column++ % 8 ? ", " : column > 1 ? "\n  " : "  ", call_name[c], t->of_call[c]);
    printf("\n");
}

int main(int argc, char **argv)
{
    struct attack a = {.jobs = (int)sysconf(_SC_NPROCESSORS_ONLN), .random = 1, .deed = -1};
    char program[PATH_LIMIT * 4], shim[PATH_LIMIT * 4];
    bool good = argc >= 6;
    for (int i = 6; i < argc; i++) good = good && read_option(&a, argv[i]);
    good = good && (strtol(argv[5], NULL, 10) > 0 || a.at > 0);
    if (!good || !realpath(argv[1], program) || !realpath(argv[2], shim)) {
        fprintf(stderr, "usage: tsr_attack_faults TESSERA SHIM DATA WORK COUNT [seed=N] [jobs=N] [scenario=TEXT]"
                        " [call=NAME] [at=N] [deed=NAME]\n");
        return 2;
    }
    a.program = program;
    a.shim = shim;
    a.data = argv[3];
    a.work = argv[4];
    a.count = strtol(argv[5], NULL, 10);
    if (a.at > 0) a.jobs = 1;
    a.tally = mmap(NULL, sizeof *a.tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (a.tally == MAP_FAILED) return 2;
    int worst = 0;
    for (a.job = 0; a.job < a.jobs; a.job++) {
        fflush(NULL);
        const pid_t child = fork();
        if (child < 0) return 2;
        if (child == 0) exit(work(&a));
    }
    for (int status; wait(&status) > 0;) {
        const int is = WIFEXITED(status) ? WEXITSTATUS(status) : 3;
        if (is > worst) worst = is;
    }
    print_tally(a.tally);
    return worst;
}
