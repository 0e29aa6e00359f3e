/* What the files of this folder share. The verb lists the .tsr files of an archive, makes a tree of their originals'
 * names, and serves the tree through FUSE; contents are decoded when they are read. */
#ifndef TSR_APP_CLI_MOUNT_MOUNT_H
#define TSR_APP_CLI_MOUNT_MOUNT_H

#include "app/cli/cli.h"

/* Bytes of decoded files that are kept, unless --cache says otherwise. */
#define DEFAULT_CACHE ((uint64_t)256000000)

/* mount.c: a line for what cannot be shown: on stderr in the foreground, else in the system's log. */
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
void mount_log(const char *format, ...);

/* ---- tree.c ------------------------------------------------------------------------------------------------- */

#define NO_FILE UINT32_MAX

/* A file or a folder. Those of one folder stand one after the other, by name. */
struct node {
    const char *name; /* its first length bytes, in a path of the tree */
    size_t length;
    uint32_t file;      /* its number among the contents; NO_FILE: it is a folder */
    bool is_incomplete; /* a folder: files that belong there are not shown, so that reading it fails */
    uint32_t parent, first, count;
};

struct tree {
    struct node *nodes; /* the first one is the root, its own parent */
    uint32_t count;
    size_t capacity;
    struct tree_place {
        char *path;
        const struct task *task; /* NULL: a folder */
    } * places;
    size_t place_count;
    const struct task **files;
    uint32_t file_count;
};

/* Of the tasks of an archive, a path without a slash at its end. A name that two of them have is the first one's.
 * False: no memory. The list must stay. */
bool tree_make(const char *archive, const struct task_list *list, struct tree *tree);
void tree_free(struct tree *tree);

/* A name in a folder, of so many bytes; NULL: it is not there. */
const struct node *tree_find(const struct tree *tree, const struct node *folder, const char *name, size_t length);

/* ---- series.c ----------------------------------------------------------------------------------------------- */

struct archive_series;
struct series_file;
struct shared_reader;

/* The series of a list, which are its own no longer; NULL: no memory. And that of a task; NULL: it is in none. */
struct archive_series *series_take(struct task_list *list, struct tsr_engine *engine);
void series_free(struct archive_series *series);
struct series_file *series_of(const struct archive_series *series, const struct task *task);

/* Whether a .tsr is the same file as it was, of which nothing was changed, as far as its status tells. */
bool is_same_status(const struct stat *a, const struct stat *b);

/* The .tsr of a task that is there under its name now, open. Any thread may call these. Errors: as tsr_open;
 * TSR_ERROR_READ also where the series or the .tsr has become another one, without the file. */
struct opened_tsr {
    struct tsr_reader *reader;
    uint32_t member;
    struct shared_reader *shared;
};
enum tsr_status open_tsr(struct archive_series *archive, struct series_file *series, const struct task *task,
                         struct opened_tsr *opened, struct tsr_error *error);
void close_tsr(struct archive_series *archive, struct opened_tsr *opened);

/* ---- contents.c --------------------------------------------------------------------------------------------- */

struct contents;
struct version;

/* NULL: no memory. Takes the list's series. What is decoded takes up to cache_bytes. */
struct contents *contents_create(const struct tree *tree, struct task_list *list, struct tsr_engine *engine,
                                 uint64_t cache_bytes);
void contents_destroy(struct contents *contents);

/* A file has versions, numbered from 0: each is one original, and there is another one when the .tsr has another id.
 * Any thread may call these. Each returns 0 or an errno, and logs why.
 *   look_up  the version that is there now, with its size, time and permissions, without decoding if the original comes
 *            back. A file that cannot be opened has the size of its .tsr. The version lasts until it is forgotten as
 *            often
 *   stat     the same of any version
 *   open     ESTALE: the version is no longer there. After it the version stays decoded, once it is, until close
 *   decoded  all of a version, whose bytes are there until it is closed once more: each success needs a close. ESTALE:
 *            it was replaced before it was read */
struct decoded_file {
    const uint8_t *bytes; /* NULL: they are in the file of the descriptor */
    int descriptor;
    uint64_t size;
};
int contents_look_up(struct contents *contents, uint32_t file, uint32_t *version, struct stat *status);
void contents_forget(struct contents *contents, uint32_t file, uint32_t version, uint64_t lookups);
int contents_stat(struct contents *contents, uint32_t file, uint32_t version, struct stat *status);
int contents_open(struct contents *contents, uint32_t file, uint32_t version, struct version **opened);
void contents_close(struct contents *contents, struct version *opened);
int contents_decoded(struct contents *contents, struct version *opened, struct decoded_file *decoded);

/* ---- serve.c ------------------------------------------------------------------------------------------------ */

/* Mounts the tree, calls ready, and serves until the folder is unmounted or a signal comes. Errors: TSR_ERROR_USAGE (it
 * cannot be mounted), TSR_ERROR_LIMIT. */
enum tsr_status serve_tree(const struct tree *tree, struct contents *contents, const char *archive, const char *folder,
                           void (*ready)(void *context), void *context, struct tsr_error *error);

#endif
