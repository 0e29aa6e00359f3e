/* Which .tsr files of a folder hold one file, so that they need not be opened one after the other to be listed. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "inputs.h"

/* Opening takes memory, which nothing counts here: up to some three times the size of a file that is made to. Large
 * files are opened when their turn comes. */
enum { LEAST_FILES = 16, MOST_THREADS = 8, MOST_BYTES = 4 << 20 };

struct look {
    const struct walk *walk;
    const char *path, *prefix;
    char *const *names;
    size_t count;
    atomic_size_t next;
    bool *is_single;
};

static bool is_single(const struct look *l, const char *base)
{
    struct tsr_reader *reader = NULL;
    struct tsr_error ignored;
    struct stat status;
    char *const path = join(l->path, base), *const name = l->prefix[0] ? join(l->prefix, base) : NULL;
    const struct tsr_data_source source = from_tsr(path);
    const bool is_one = path && (name || !l->prefix[0]) &&
                        is_included(&l->walk->options->in, name ? name : base, false) && lstat(path, &status) == 0 &&
                        S_ISREG(status.st_mode) && status.st_size <= MOST_BYTES &&
                        tsr_open(l->walk->engine, &source, &reader, &ignored) == TSR_OK &&
                        tsr_reader_content(reader) == TSR_CONTENT_TSR;
    tsr_close(reader);
    free(path);
    free(name);
    return is_one;
}

static void *look(void *context)
{
    struct look *const l = context;
    for (size_t i; (i = atomic_fetch_add(&l->next, 1)) < l->count;)
        if (has_tsr_suffix(l->names[i])) l->is_single[i] = is_single(l, l->names[i]);
    return NULL;
}

bool *find_singles(const struct walk *walk, const char *path, const char *prefix, char *const *names, size_t count)
{
    const int threads = walk->engine ? tsr_engine_threads(walk->engine) : 1;
    const bool wants_members =
        walk->wanted || walk->options->in.member; /* of each file it is told whether it has them */
    size_t files = 0;
    for (size_t i = 0; i < count; i++) files += has_tsr_suffix(names[i]);
    if (threads < 2 || files < LEAST_FILES || wants_members) return NULL;
    struct look l = {walk, path, prefix, names, count, 0, calloc(count, sizeof *l.is_single)};
    if (!l.is_single) return NULL;
    pthread_t thread[MOST_THREADS];
    int started = 0;
    while (started + 1 < threads && started + 1 < MOST_THREADS && pthread_create(&thread[started], NULL, look, &l) == 0)
        started++;
    look(&l);
    for (int i = 0; i < started; i++) pthread_join(thread[i], NULL);
    return l.is_single;
}
