/* Files that reports are written to; see page_file.h. */
#include "page_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "app/cli/inputs/inputs.h"

/* The parts of this process, which a signal removes. A part stands here while it has its name. */
enum { PARTS = 4 };
static pthread_mutex_t parts_lock = PTHREAD_MUTEX_INITIALIZER;
static const char *parts[PARTS];

static void replace_part(const char *old, const char *new)
{
    pthread_mutex_lock(&parts_lock);
    for (int i = 0; i < PARTS; i++) {
        if (parts[i] != old) continue;
        parts[i] = new;
        break;
    }
    pthread_mutex_unlock(&parts_lock);
}

void remove_page_parts(void)
{
    pthread_mutex_lock(&parts_lock);
    for (int i = 0; i < PARTS; i++)
        if (parts[i]) unlink(parts[i]);
}

/* The part is locked while a run is at work, so one that a killed run has left is taken over. Another file of that name
 * stays. */
static enum tsr_status open_part(struct page_file *page, struct tsr_error *error)
{
    struct stat there;
    const int file = open(page->part, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0 || fstat(file, &there) != 0) {
        const int reason = errno;
        if (file >= 0) close(file);
        return refuse(error, TSR_ERROR_WRITE, "cannot write %s: %s", page->part, strerror(reason));
    }
    enum tsr_status status = TSR_OK;
    if (!S_ISREG(there.st_mode) || (there.st_size > 0 && !begins_as_report(page->part)))
        status = refuse(error, TSR_ERROR_EXISTS, "%s exists and is no unfinished report: rename it", page->part);
    else if (flock(file, LOCK_EX | LOCK_NB) != 0)
        status = refuse(error, TSR_ERROR_EXISTS, "another run is writing %s: each run needs a report of its own",
                        page->part);
    else if (ftruncate(file, 0) != 0 || !(page->file = fdopen(file, "w")))
        status = refuse(error, TSR_ERROR_WRITE, "cannot write %s: %s", page->part, strerror(errno));
    if (status == TSR_OK)
        replace_part(NULL, page->part);
    else
        close(file);
    return status;
}

enum tsr_status open_page(const char *path, bool overwrite, struct page_file *page, struct tsr_error *error)
{
    struct stat there;
    *page = (struct page_file){.path = path};
    if (asprintf(&page->part, "%s.part", path) < 0) {
        page->part = NULL;
        return refuse(error, TSR_ERROR_LIMIT, "no memory for %s", path);
    }
    enum tsr_status status = TSR_OK;
    if (lstat(path, &there) == 0 && !S_ISREG(there.st_mode))
        status = refuse(error, TSR_ERROR_WRITE, "%s is not a regular file and is left as it is", path);
    else if (errno = 0, access(path, F_OK) == 0 && !overwrite && !begins_as_report(path))
        status = refuse(error, TSR_ERROR_EXISTS, "%s exists and is no report of tessera: name another file", path);
    if (status == TSR_OK) status = open_part(page, error);
    if (status != TSR_OK) {
        free(page->part);
        page->part = NULL;
    }
    return status;
}

enum tsr_status close_page(struct page_file *page, bool is_good, struct tsr_error *error)
{
    if (!page->file) return TSR_OK;
    bool good = is_good && fflush(page->file) == 0 && !ferror(page->file) && fsync(fileno(page->file)) == 0;
    good &= fclose(page->file) == 0;
    page->file = NULL;
    good = good && rename(page->part, page->path) == 0;
    const enum tsr_status status =
        good ? TSR_OK : refuse(error, TSR_ERROR_WRITE, "cannot write %s: %s", page->path, strerror(errno));
    drop_page(page);
    return status;
}

void drop_page(struct page_file *page)
{
    if (page->file) fclose(page->file);
    if (page->part) unlink(page->part); /* gone already where it has its name */
    if (page->part) replace_part(page->part, NULL);
    free(page->part);
    *page = (struct page_file){0};
}
