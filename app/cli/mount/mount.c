/* tessera mount ARCHIVE DIR: the originals of .tsr files as files that can be read. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#include "mount.h"

#if TSR_WITH_FUSE

/* ---- Log -------------------------------------------------------------------------------------------------- */

static bool logs_to_system; /* in the background, once it is mounted */

void mount_log(const char *format, ...)
{
    va_list arguments;
    char line[1200];
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (logs_to_system)
        syslog(LOG_ERR, "%s", line);
    else
        fprintf(stderr, "tessera: %s\n", line);
}

/* ---- What is to be mounted, and where --------------------------------------------------------------------- */

static enum tsr_status check_folder(const char *path, struct tsr_error *error)
{
    struct stat status;
    if (stat(path, &status) != 0 && errno == ENOTCONN)
        return refuse(error, TSR_ERROR_USAGE, "%s is a mount whose program has ended: fusermount3 -u %s frees it", path,
                      path);
    if (stat(path, &status) != 0)
        return refuse(error, TSR_ERROR_USAGE, "cannot mount on %s: %s", path, strerror(errno));
    if (!S_ISDIR(status.st_mode)) return refuse(error, TSR_ERROR_USAGE, "cannot mount on %s: it is no folder", path);
    DIR *const folder = opendir(path);
    if (!folder) return refuse(error, TSR_ERROR_USAGE, "cannot mount on %s: %s", path, strerror(errno));
    const struct dirent *entry;
    while ((entry = readdir(folder)) && (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))) continue;
    const bool is_empty = entry == NULL;
    closedir(folder);
    if (is_empty) return TSR_OK;
    return refuse(error, TSR_ERROR_USAGE, "cannot mount on %s: it is not empty", path);
}

static enum tsr_status check_device(struct tsr_error *error)
{
    const int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (device >= 0) {
        close(device);
        return TSR_OK;
    }
    return refuse(error, TSR_ERROR_USAGE, "this system cannot mount: /dev/fuse cannot be opened: %s", strerror(errno));
}

/* ---- The work --------------------------------------------------------------------------------------------- */

/* Signals come to the thread that serves, whose handlers end the session: threads that are created here have them
 * blocked. */
static struct tsr_engine *create_engine(const struct options *options, struct tsr_error *error)
{
    struct tsr_engine_options wanted = TSR_ENGINE_OPTIONS;
    struct tsr_engine *engine = NULL;
    sigset_t all, before;
    reserve_descriptors();
    wanted.choice = TSR_ENGINE_CPU;
    wanted.threads = options->machine.threads;
    wanted.memory_bytes = options->machine.memory;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    tsr_engine_create(&wanted, &engine, error);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return engine;
}

/* What waits for the mount to be there. */
struct waiting {
    int descriptor; /* of a pipe to the process that was called; -1: it is this one */
};

/* From now on the terminal is free. */
static void say_ready(void *context)
{
    const struct waiting *const waiting = context;
    if (waiting->descriptor < 0) return;
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    openlog("tessera", LOG_PID, LOG_DAEMON);
    logs_to_system = true;
    for (int i = STDIN_FILENO; nothing >= 0 && i <= STDERR_FILENO; i++) dup2(nothing, i);
    if (nothing > STDERR_FILENO) close(nothing);
    if (chdir("/") != 0) mount_log("cannot leave the working folder: %s", strerror(errno));
    if (write(waiting->descriptor, "", 1) != 1) mount_log("nobody has waited for the mount");
    close(waiting->descriptor);
}

static enum tsr_status mount_list(const struct options *options, struct tsr_engine *engine, struct task_list *list,
                                  const char *archive, const char *folder, struct waiting *waiting,
                                  struct tsr_error *error)
{
    struct tree tree;
    struct contents *contents = NULL;
    for (size_t i = 0; i < list->skipped_count; i++)
        mount_log("%s is not shown: %s", shown(list->skipped[i].path), list->skipped[i].reason);
    const bool is_made = tree_make(archive, list, &tree);
    if (is_made)
        contents =
            contents_create(&tree, list, engine, options->mount.cache > 0 ? options->mount.cache : DEFAULT_CACHE);
    enum tsr_status status = TSR_OK;
    if (contents)
        status = serve_tree(&tree, contents, archive, folder, say_ready, waiting, error);
    else
        status = refuse(error, TSR_ERROR_LIMIT, "no memory for a tree of %zu files", list->count);
    contents_destroy(contents);
    tree_free(&tree);
    return status;
}

/* There is something to show: a file that was named is a .tsr. A folder has one, or list_tasks fails. */
static enum tsr_status check_archive(struct tsr_engine *engine, const struct task_list *list, const char *archive,
                                     struct tsr_error *error)
{
    const struct tsr_data_source source = from_tsr(archive);
    struct tsr_reader *reader = NULL;
    struct stat status_of_archive;
    if (stat(archive, &status_of_archive) != 0)
        return refuse(error, TSR_ERROR_READ, "cannot open %s: %s", archive, strerror(errno));
    if (S_ISDIR(status_of_archive.st_mode)) return TSR_OK;
    if (list->count > 0 && list->tasks[0].series) return TSR_OK;
    if (list->count > 0 && list->tasks[0].status != TSR_OK) return refuse_task(error, &list->tasks[0]);
    enum tsr_status status = tsr_open(engine, &source, &reader, error);
    if (status == TSR_OK && tsr_reader_content(reader) == TSR_CONTENT_ORIGINAL)
        status = refuse(error, TSR_ERROR_NOT_TSR, "%s is not a .tsr file", archive);
    tsr_close(reader);
    return status;
}

static int mount_archive(const struct options *options, const char *archive, const char *folder,
                         struct waiting *waiting)
{
    struct options one = *options;
    struct task_list list = {0};
    struct tsr_error error = {TSR_OK, TSR_NO_OFFSET, "", 0};
    const char *const inputs[] = {archive};
    one.in.names = inputs;
    one.in.count = 1;
    one.in.recursive = true;
    struct tsr_engine *const engine = create_engine(options, &error);
    enum tsr_status status = engine ? list_tasks(&one, engine, &list, &error) : error.status;
    if (status == TSR_OK) status = check_archive(engine, &list, archive, &error);
    if (status == TSR_OK) status = mount_list(&one, engine, &list, archive, folder, waiting, &error);
    if (status != TSR_OK) {
        name_flags(&error);
        say_error(&error);
    }
    free_tasks(&list);
    tsr_engine_destroy(engine);
    return (int)status;
}

/* Mounts in a process of its own, and returns when the mount is there, or with the status of that process. */
static int mount_in_background(const struct options *options, const char *archive, const char *folder)
{
    int ends[2], status = 0;
    char byte;
    const pid_t child = pipe2(ends, O_CLOEXEC) == 0 ? fork() : -1;
    if (child < 0) {
        fprintf(stderr, "tessera: no process can be started for the mount: %s; -f mounts without one\n",
                strerror(errno));
        return TSR_ERROR_LIMIT;
    }
    if (child == 0) {
        struct waiting waiting = {ends[1]};
        close(ends[0]);
        setsid();
        return mount_archive(options, archive, folder, &waiting);
    }
    close(ends[1]);
    ssize_t got;
    while ((got = read(ends[0], &byte, 1)) < 0 && errno == EINTR) continue;
    close(ends[0]);
    if (got == 1) return TSR_OK;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : TSR_ERROR_INTERNAL;
}

int mount_verb(const struct options *options)
{
    struct tsr_error error = {TSR_OK, TSR_NO_OFFSET, "", 0};
    struct waiting nobody = {-1};
    if (options->in.count != 2)
        return (int)usage("%s", "mount wants two names: a .tsr file or a folder of them, and an empty folder");
    char *const archive = realpath(options->in.names[0], NULL);
    enum tsr_status status =
        archive ? TSR_OK : refuse(&error, TSR_ERROR_READ, "cannot open %s: %s", options->in.names[0], strerror(errno));
    if (status == TSR_OK) status = check_folder(options->in.names[1], &error);
    if (status == TSR_OK) status = check_device(&error);
    char *const folder = status == TSR_OK ? realpath(options->in.names[1], NULL) : NULL;
    if (status == TSR_OK && !folder)
        status = refuse(&error, TSR_ERROR_READ, "cannot open %s: %s", options->in.names[1], strerror(errno));
    if (status != TSR_OK)
        say_error(&error);
    else if (options->mount.foreground)
        status = (enum tsr_status)mount_archive(options, archive, folder, &nobody);
    else
        status = (enum tsr_status)mount_in_background(options, archive, folder);
    free(archive);
    free(folder);
    return (int)status;
}

#else

int mount_verb(const struct options *options)
{
    (void)options;
    return (int)usage("%s", "this build cannot mount: it was made without libfuse3 (Debian: libfuse3-dev)");
}

#endif
