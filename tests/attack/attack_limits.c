/* The attack with limits and hostile inputs: little address space, few descriptors, small files, a small --memory;
 * inputs that declare much and hold little, or on which a reader could spend much time; outputs that are not regular
 * files.
 *
 * usage: tsr_attack_limits TESSERA SHIM DATA WORK
 * Exit status: 0; 1 if something was found; 2 if it cannot work. */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "hostile.h"
#include "shim.h"

enum { WORDS_LIMIT = 24, SECONDS_LIMIT = 100 };

static const char *program, *shim, *data;
static int findings, checks;

static void stop(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("tsr_attack_limits: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(2);
}

static void expect(bool holds, const char *format, ...)
{
    va_list arguments;
    checks++;
    if (holds) return;
    findings++;
    va_start(arguments, format);
    fputs("WRONG: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

/* ---- Files ------------------------------------------------------------------------------------------------ */

static void write_and_free(const char *path, struct bytes b)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || write(file, b.data, b.size) != (ssize_t)b.size || close(file) != 0) stop("cannot write %s", path);
    free_bytes(&b);
}

static void copy_file(const char *name, const char *to)
{
    char path[4096], bytes[4096];
    struct bytes b = {.size = 0};
    snprintf(path, sizeof path, "%s/%s", data, name);
    const int file = open(path, O_RDONLY);
    if (file < 0) stop("there is no %s", path);
    for (ssize_t got; (got = read(file, bytes, sizeof bytes)) > 0;) put(&b, bytes, (size_t)got);
    close(file);
    write_and_free(to, b);
}

static long size_of(const char *path)
{
    struct stat s;
    return lstat(path, &s) == 0 ? (long)s.st_size : -1;
}

static bool has_kind(const char *path, mode_t kind)
{
    struct stat s;
    return lstat(path, &s) == 0 && (s.st_mode & S_IFMT) == kind;
}

/* Whether the folder has no unfinished outputs. Removes those, so that each is reported once. */
static bool has_no_parts(const char *folder)
{
    bool none = true;
    DIR *all = opendir(folder);
    for (struct dirent *e; all && (e = readdir(all));) {
        if (strncmp(e->d_name, ".tessera-", 9) != 0 && !strstr(e->d_name, ".tmp")) continue;
        none = false;
        unlinkat(dirfd(all), e->d_name, 0);
    }
    if (all) closedir(all);
    return none;
}

/* ---- Runs ------------------------------------------------------------------------------------------------- */

struct result {
    int status, by_signal; /* status -1: by_signal ended it */
    long peak_kib;
};

static const int no_limit = -1;
static int given = -1; /* what the program reads as stdin; -1: what this one has */

/* Runs the program with words as of printf, split at blanks. resource: limited to `limit`, unless it is no_limit. */
static struct result run(int resource, unsigned long limit, const char *format, ...)
{
    char text[4096], *argv[WORDS_LIMIT + 1] = {NULL};
    struct rusage usage;
    va_list arguments;
    int count = 1, status;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    argv[0] = (char *)(uintptr_t)program;
    for (char *word = strtok(text, " "); word && count < WORDS_LIMIT; word = strtok(NULL, " ")) argv[count++] = word;
    fflush(NULL);
    const pid_t child = fork();
    if (child < 0) stop("no process");
    if (child == 0) {
        const int out = open("stdout", O_WRONLY | O_CREAT | O_TRUNC, 0600),
                  err = open("stderr", O_WRONLY | O_CREAT | O_TRUNC, 0600);
        const struct rlimit r = {limit, limit};
        if (given >= 0) dup2(given, 0);
        dup2(out, 1);
        dup2(err, 2);
        close(out);
        close(err);
        alarm(SECONDS_LIMIT);
        if (resource != no_limit && setrlimit((__rlimit_resource_t)resource, &r) != 0) _exit(126);
        execv(program, argv);
        _exit(127);
    }
    while (wait4(child, &status, 0, &usage) < 0 && errno == EINTR) continue;
    return (struct result){WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0,
                           usage.ru_maxrss};
}

/* ---- What is tried ---------------------------------------------------------------------------------------- */

/* The bytes of address space that the program's own image takes. If it cannot have them, the kernel ends the process by
 * SIGSEGV before its first instruction. */
static unsigned long image_size(void)
{
    ElfW(Ehdr) header;
    unsigned long end = 0;
    FILE *f = fopen(program, "rb");
    if (!f || fread(&header, sizeof header, 1, f) != 1) stop("%s cannot be read", program);
    for (int i = 0; i < header.e_phnum; i++) {
        ElfW(Phdr) part;
        if (fseek(f, (long)(header.e_phoff + (unsigned long)i * header.e_phentsize), SEEK_SET) != 0 ||
            fread(&part, sizeof part, 1, f) != 1)
            stop("%s cannot be read", program);
        if (part.p_type == PT_LOAD && part.p_vaddr + part.p_memsz > end) end = part.p_vaddr + part.p_memsz;
    }
    fclose(f);
    return end;
}

/* Each limit gives success, the status `wanted`, or 127 (the loader fails), and leaves no parts. The last limit gives
 * success. */
static void squeeze(int resource, unsigned long from, unsigned long to, unsigned long step, int wanted,
                    const char *what, const char *words)
{
    int last = -1;
    for (unsigned long limit = from; limit <= to; limit += step) {
        unlink("out");
        const struct result r = run(resource, limit, "%s", words);
        last = r.status;
        expect(r.status == 0 || r.status == wanted || r.status == 127, "%s of %lu: status %d, signal %d of %s", what,
               limit, r.status, r.by_signal, words);
        expect(has_no_parts("."), "%s of %lu: a part is left behind by %s", what, limit, words);
        expect(r.status == 0 || size_of("out") < 0, "%s of %lu: an output all the same of %s", what, limit, words);
    }
    expect(last == 0 || resource == RLIMIT_FSIZE, "%s of %lu: status %d of %s", what, to, last, words);
}

static void limit_resources(void)
{
    const unsigned long mega = 1 << 20, first = image_size() + mega;
    copy_file("dicom/mr/small_01.dcm", "a.dcm");
    copy_file("png/formats/rgb8.png", "a.png");
    copy_file("pnm/landscape_grey_8bit.pgm", "a.pgm");
    run(no_limit, 0, "compress -q --qp 20 a.dcm -o a.tsr");
    static const char *const commands[] = {"compress -q a.dcm -o out",   "compress -q -T 8 --qp 20 a.dcm -o out",
                                           "compress -q a.png -o out",   "compress -q -T 8 a.pgm -o out",
                                           "decompress -q a.tsr -o out", "test -q -T 4 a.tsr"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        squeeze(RLIMIT_AS, first, first + 128 * mega, 4 * mega, 62, "address space", commands[i]);
        squeeze(RLIMIT_NOFILE, 3, 14, 1, 62, "descriptors", commands[i]);
        if (i < 5) squeeze(RLIMIT_FSIZE, 0, 512, 256, 40, "file size", commands[i]);
    }
}

/* Threads of a small stack, the first one included. Sanitizers make frames several times as large. */
static void limit_stack(void)
{
#if defined(__SANITIZE_ADDRESS__)
    const unsigned long bytes = 1 << 20;
#else
    const unsigned long bytes = 128 << 10;
#endif
    run(no_limit, 0, "compress -q -f a.dcm -o b.tsr");
    run(no_limit, 0, "export -q -f --to j2k b.tsr -o j.dcm");
    run(no_limit, 0, "export -q -f --to htj2k b.tsr -o ht.dcm");
    static const char *const commands[] = {"compress -q -f -9 a.dcm -o out",
                                           "compress -q -f --qp 20 a.dcm -o out",
                                           "compress -q -f --psnr 40 a.png -o out",
                                           "compress -q -f --samples-only ht.dcm -o out",
                                           "compress -q -f -T 4 --series out a.dcm j.dcm a.png",
                                           "decompress -q -f a.tsr -o out",
                                           "test -q -T 4 a.tsr",
                                           "export -q -f --to j2k b.tsr -o out",
                                           "export -q -f --to htj2k b.tsr -o out",
                                           "info --dicom a.tsr",
                                           "compare -q a.png a.pgm"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        const struct result r = run(RLIMIT_STACK, bytes, "%s", commands[i]);
        expect(r.status == 0, "a stack of %lu bytes: status %d, signal %d of %s", bytes, r.status, r.by_signal,
               commands[i]);
        unlink("out");
    }
    static const char *const made[] = {"b.tsr", "j.dcm", "ht.dcm"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) unlink(made[i]);
}

static void fill_disk(void)
{
    mkdir("disk", 0700);
    if (mount("none", "disk", "tmpfs", 0, "size=16k") != 0) {
        printf("skipped: a full disk (mount: %s)\n", strerror(errno));
        return;
    }
    const struct result r = run(no_limit, 0, "compress -q --verify none a.pgm -o disk/out");
    expect(r.status == 40 && size_of("disk/out") < 0 && has_no_parts("disk"), "a full disk: status %d", r.status);
    umount("disk");
}

static void bound_memory(void)
{
    for (int i = 0; i < 4; i++) {
        char path[16];
        struct bytes bomb = {.size = 0};
        snprintf(path, sizeof path, "bomb%d.png", i);
        make_png_bomb(&bomb, 4000);
        write_and_free(path, bomb);
    }
    for (int threads = 1; threads <= 8; threads *= 2)
        for (int mega = 200; mega <= 800; mega *= 2) {
            const struct result r = run(no_limit, 0,
                                        "compress -q -f -T %d --memory %dM bomb0.png bomb1.png bomb2.png"
                                        " bomb3.png -o bombs/",
                                        threads, mega);
            expect(r.status == 0 || r.status == 62 || r.status == 75, "bombs in %d MB: status %d, signal %d", mega,
                   r.status, r.by_signal);
            expect(r.peak_kib / 1024 <= mega, "bombs in %d MB with %d threads take %ld MiB", mega, threads,
                   r.peak_kib / 1024);
        }
}

static void bound_work(void)
{
    struct bytes words = {.size = 0}, bits = {.size = 0};
    make_frames(&words, 2000000, 16);
    make_frames(&bits, 8000000, 1);
    write_and_free("words.dcm", words);
    write_and_free("bits.dcm", bits);
    static const char *const inputs[] = {"words.dcm", "bits.dcm"};
    for (int i = 0; i < 2; i++) {
        const struct result r = run(no_limit, 0, "compress -q -f %s -o out", inputs[i]);
        expect(r.status == 0 && size_of("out") <= size_of(inputs[i]) + 400, "%s: status %d, %ld bytes become %ld",
               inputs[i], r.status, size_of(inputs[i]), size_of("out"));
        unlink("out");
    }
    for (int in_order = 0; in_order < 2; in_order++) {
        struct bytes many = {.size = 0};
        make_elements(&many, 200000, in_order);
        write_and_free("many.dcm", many);
        const struct result r = run(RLIMIT_CPU, 60, "compress -q -f many.dcm -o out");
        expect(r.status == 0, "200000 elements take too long%s: status %d, signal %d", in_order ? " in order" : "",
               r.status, r.by_signal);
    }
    unlink("out");
}

/* Each hostile input comes back, and takes no more CPU seconds than this, which is far more than it should: what takes
 * time without bound is found, and no machine is too slow. */
static void bound_hostile_inputs(void)
{
    enum { BYTES = 100000, SECONDS = 20 };
    for (const struct hostile *const *table = hostile_tables; *table; table++)
        for (const struct hostile *h = *table; h->name; h++) {
            struct bytes file = {.size = 0};
            h->make(&file, BYTES, h->variant);
            const long size = (long)file.size;
            write_and_free("hostile", file);
            struct result r = run(RLIMIT_CPU, SECONDS, "compress -q -f hostile -o out");
            expect(r.status == 0 && size_of("out") <= size + 400, "%s: status %d, signal %d, %ld bytes become %ld",
                   h->name, r.status, r.by_signal, size, size_of("out"));
            r = run(RLIMIT_CPU, SECONDS, "info out");
            expect(r.status == 0, "info of %s: status %d, signal %d", h->name, r.status, r.by_signal);
            r = run(RLIMIT_CPU, SECONDS, "decompress -q -f out -o back");
            expect(r.status == 0 && size_of("back") == size, "%s comes back: status %d, signal %d, %ld of %ld bytes",
                   h->name, r.status, r.by_signal, size_of("back"), size);
            unlink("out");
            unlink("back");
        }
    unlink("hostile");
}

static void give_no_files(void)
{
    copy_file("other/text.txt", "text");
    mkfifo("fifo", 0600);
    const bool has_device = mknod("null", S_IFCHR | 0600, makedev(1, 3)) == 0;
    static const char *const force[] = {"", "-f"};
    for (int i = 0; i < 2; i++) {
        struct result r = run(no_limit, 0, "compress -q %s a.pgm -o fifo", force[i]);
        expect(r.status == 40 && has_kind("fifo", S_IFIFO), "a FIFO as output: status %d", r.status);
        r = run(no_limit, 0, "decompress -q %s a.tsr -o fifo", force[i]);
        expect(r.status == 40 && has_kind("fifo", S_IFIFO), "a FIFO as output: status %d", r.status);
        if (!has_device) continue;
        r = run(no_limit, 0, "compress -q %s a.pgm -o null", force[i]);
        expect(r.status == 40 && has_kind("null", S_IFCHR), "a device as output: status %d", r.status);
    }
    mkdir("tree", 0700);
    if (symlink("../text", "tree/a.pgm.tsr") != 0) stop("no link");
    const long before = size_of("text");
    const struct result r = run(no_limit, 0, "compress -q -f a.pgm -o tree");
    expect(r.status == 40 && has_kind("tree/a.pgm.tsr", S_IFLNK) && size_of("text") == before,
           "a link below -o: status %d", r.status);
}

/* Names are printed without control characters. */
static void give_wild_names(void)
{
    char said[4096] = "";
    run(no_limit, 0, "compress -q no\x1b[31m\afile");
    const int file = open("stderr", O_RDONLY);
    if (file < 0 || read(file, said, sizeof said - 1) <= 0) stop("nothing is said");
    close(file);
    expect(!strchr(said, 0x1b) && !strchr(said, '\a'), "a name's control characters are printed");
}

/* Starts a process that writes a text without end to what the program reads as stdin. */
static pid_t give_endless(const char *text)
{
    int ends[2];
    if (pipe(ends) != 0) stop("no pipe");
    const pid_t writer = fork();
    if (writer < 0) stop("no process");
    if (writer == 0) {
        char block[1 << 16];
        const size_t length = strlen(text);
        for (size_t at = 0; at < sizeof block; at++) block[at] = text[at % length];
        close(ends[0]);
        alarm(SECONDS_LIMIT);
        for (;;)
            if (write(ends[1], block, sizeof block / length * length) < 0) _exit(0);
    }
    close(ends[1]);
    given = ends[0];
    return writer;
}

/* Lists of names, and lines of JSON, that have no end or are none. What takes all that there is, is stopped at some
 * times as much. */
static void give_endless_lists(void)
{
    enum { MEGABYTES = 200, STOP_MEGABYTES = 1200 };
    static const struct {
        const char *text, *words;
    } lists[] = {{"a\n", "compress -q --memory 200M --files-from - -o listed"},
                 {"a", "compress -q --memory 200M --files-from - -o listed"},
                 {"a\n", "test -q --memory 200M -0 --files-from -"},
                 {"a", "summary -"},
                 {"[", "summary -"},
                 {NULL, "compress -q --memory 200M --files-from /dev/zero -o listed"},
                 {NULL, "compress -q --memory 200M -0 --files-from /dev/zero -o listed"},
                 {NULL, "summary /dev/zero"}};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        const pid_t writer = lists[i].text ? give_endless(lists[i].text) : -1;
        const struct result r = run(RLIMIT_AS, (unsigned long)STOP_MEGABYTES << 20, "%s", lists[i].words);
        if (writer >= 0) {
            close(given);
            given = -1;
            kill(writer, SIGKILL);
            waitpid(writer, NULL, 0);
        }
        expect(r.status == 62 || r.status == 20, "an endless list, %s: status %d, signal %d", lists[i].words, r.status,
               r.by_signal);
        expect(r.peak_kib / 1024 <= MEGABYTES, "an endless list, %s: %ld MiB", lists[i].words, r.peak_kib / 1024);
    }
    expect(!has_kind("listed", S_IFDIR), "an endless list leaves an output");
}

/* An output and its folder are synced to the disk, and the output is read back from there. */
static void count_syncs(void)
{
    const int file = open("board", O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || ftruncate(file, sizeof(struct shim_board)) != 0) stop("no board");
    struct shim_board *board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (board == MAP_FAILED) stop("no board");
    close(file);
    board->call = -1;
    setenv("LD_PRELOAD", shim, 1);
    setenv(TSR_SHIM_BOARD, "board", 1);
    const struct result r = run(no_limit, 0, "compress -q -f a.pgm -o out");
    unsetenv("LD_PRELOAD");
    expect(r.status == 0 && board->count[SHIM_fsync] >= 2, "%ld calls of fsync, for the file and its folder",
           (long)board->count[SHIM_fsync]);
    expect(board->count[SHIM_posix_fadvise] >= 1, "what is read back may come from the page cache");
    unlink("out");
}

int main(int argc, char **argv)
{
    static char paths[3][4096];
    if (argc != 5) stop("usage: tsr_attack_limits TESSERA SHIM DATA WORK");
    for (int i = 0; i < 3; i++)
        if (!realpath(argv[i + 1], paths[i])) stop("there is no %s", argv[i + 1]);
    program = paths[0];
    shim = paths[1];
    data = paths[2];
    if (chdir(argv[4]) != 0 || mkdir("limits", 0700) != 0 || chdir("limits") != 0)
        stop("%s must be a folder without a folder \"limits\"", argv[4]);
    limit_resources();
    limit_stack();
    fill_disk();
    bound_memory();
    bound_work();
    bound_hostile_inputs();
    give_no_files();
    give_wild_names();
    give_endless_lists();
    count_syncs();
    printf("%d checks of limits, %d findings\n", checks, findings);
    return findings > 0;
}
