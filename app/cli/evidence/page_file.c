/* Files that reports are written to; see page_file.h. */
#include "page_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What pages and tables of this program begin with. */
static bool is_ours(const char *path)
{
    static const char *const beginnings[] = {"<meta name=\"generator\" content=\"tessera", "image,codec,setting,"};
    char head[1024] = "";
    FILE *const file = fopen(path, "r");
    const size_t got = file ? fread(head, 1, sizeof head - 1, file) : 0;
    if (file) fclose(file);
    head[got] = '\0';
    return strstr(head, beginnings[0]) || strncmp(head, beginnings[1], strlen(beginnings[1])) == 0;
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
    else if (errno = 0, access(path, F_OK) == 0 && !overwrite && !is_ours(path))
        status = refuse(error, TSR_ERROR_EXISTS, "%s exists and is no report of tessera; -f overwrites it", path);
    if (status == TSR_OK && lstat(page->part, &there) == 0 && !S_ISREG(there.st_mode))
        status = refuse(error, TSR_ERROR_WRITE, "%s is not a regular file and is left as it is", page->part);
    if (status == TSR_OK && !(page->file = fopen(page->part, overwrite ? "w" : "wx")) && errno == EEXIST)
        status = refuse(error, TSR_ERROR_EXISTS, "%s exists: another run is writing it, or was killed; remove it",
                        page->part);
    else if (status == TSR_OK && !page->file)
        status = refuse(error, TSR_ERROR_WRITE, "cannot write %s: %s", page->part, strerror(errno));
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
    free(page->part);
    *page = (struct page_file){0};
}
