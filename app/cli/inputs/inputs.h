/* What the files of this folder share: the list that grows while inputs are walked through. */
#ifndef TSR_APP_CLI_INPUTS_INPUTS_H
#define TSR_APP_CLI_INPUTS_INPUTS_H

#include "app/cli/cli.h"
#include "names.h"

struct ancestor;

/* A folder that is named among other inputs, and its path in the layout. */
struct named_folder {
    char *place, *input;
};

struct walk {
    const struct options *options;
    struct tsr_engine *engine; /* that opens what may be a series, or NULL */
    struct task_list *list;
    size_t root;        /* of the outputs' names: a folder that the user has named */
    size_t names;       /* in folders, of anything but folders and the run's own files */
    bool is_output;     /* what is looked at lies in OUT: .tsr files are outputs there */
    bool is_single;     /* it is known to be a .tsr of one file */
    const char *wanted; /* the file of a series that the input names after ::, or NULL */
    struct named_folder *folders;
    size_t folder_count, folder_capacity;
    bool no_memory;
};

/* tasks.c */

/* A task; takes over input, output and name. With a reason it has failed already. NULL: no memory, which walk notes. */
struct task *add_task(struct walk *walk, char *input, char *output, char *name, enum tsr_status status,
                      const char *reason);

/* The same of files that cannot be taken, and whose names are not known. folder: as lost_in of the task. */
void add_lost(struct walk *walk, const char *path, const char *folder, enum tsr_status status, const char *reason);

extern const char without_files[]; /* the reason of a folder */

/* A name that is not worked on; reason is static. */
void add_skipped(struct walk *walk, const char *path, const char *reason);

/* inputs.c: a file. name: its path in the layout. folder: where the layout begins; NULL: the output is beside the
 * input. status: the file's; NULL where it is not known. */
void add_file(struct walk *walk, const char *path, const char *name, const char *folder, const struct stat *status);

/* checks.c: outputs that would overwrite an input or each other; their tasks have failed then. Says in each task
 * whether its output exists. Errors: TSR_ERROR_SAME_FILE (the manifest is an input or an output), TSR_ERROR_LIMIT. */
enum tsr_status check_names(const struct options *options, struct task_list *list, struct tsr_error *error);

/* All files that the tasks of a list read; NULL: no memory. With --rm, tasks that read a file by a second path have
 * failed. */
struct tsr_file_set *collect_inputs(const struct options *options, struct task_list *list);

/* twins.c, for --rm: which outputs may be one file though their names differ. False: no memory. */
bool find_twins(struct task_list *list);

/* Whether the output of a task, which is there, is that of another task, too. */
bool has_twin(const struct task_list *list, const struct task *task);

/* A file that the run is to write beside its outputs: TSR_ERROR_SAME_FILE if it is another one that it has written. */
enum tsr_status check_not_written(const struct options *options, const char *path, struct tsr_error *error);

/* The files that a run with --manifest writes: it, and i of 1 and 2, what it is called until it is complete. To be
 * freed; NULL: no memory. */
#define MANIFEST_FIRST_LINE "# tessera manifest 1\n"
#define MANIFEST_UNFINISHED "# unfinished           \n" /* as long as what replaces it */
enum { MANIFEST_NAMES = 3 };
char *manifest_name(const char *path, size_t i);

/* Whether a file begins as the pages and tables of this program do. */
bool begins_as_report(const char *path);

/* Whether a file begins as manifests do; is_unfinished: as one that a run is writing, or was killed over. */
bool begins_as_manifest(const char *path, bool is_unfinished);

/* Whether two paths are one name in one folder, though nothing need be there; or one file by names that some file
 * systems do not tell apart. */
bool is_same_name(const char *one, const char *other);

/* A folder whose output is to be made. */
void add_empty_folder(struct walk *walk, const char *output);

/* walk.c: a folder and all below it. prefix: its path in the layout, "" for its beginning. folder as in add_file. */
void walk_folder(struct walk *walk, const char *path, const char *prefix, const char *folder,
                 const struct ancestor *above);

/* singles.c: of the names in a folder, those of .tsr files that hold one file each, which several threads find out. To
 * be freed; NULL: it is not known of any. */
bool *find_singles(const struct walk *walk, const char *path, const char *prefix, char *const *names, size_t count);

/* filter.c */

/* Whether --include and --exclude let a path of the layout through. */
bool is_included(const struct input_options *in, const char *name, bool is_folder);

/* lists.c: lines of a file. Each has a zero in place of its end, and length bytes before that. */
struct lines {
    FILE *file;
    const char *path; /* as sentences say it */
    char *line;
    size_t length, capacity, number; /* number: from 1 */
    size_t most;                     /* bytes that a line may have */
    const char *advice;              /* the end of the sentence on one that has more */
    int end;                         /* the byte that ends lines: a newline, until the caller says another */
    bool has_end;                    /* the last line may have none */
};

/* path: "-" is stdin. Errors: TSR_ERROR_READ. */
enum tsr_status open_lines(const char *path, size_t most, struct lines *lines, struct tsr_error *error);
void close_lines(struct lines *lines);

/* *is_line false: there are no more. Errors: TSR_ERROR_READ, TSR_ERROR_LIMIT (also: the line is longer). */
enum tsr_status next_line(struct lines *lines, bool *is_line, struct tsr_error *error);

/* Takes bytes of those that are left. False: there are not so many. */
bool take_share(uint64_t *left, uint64_t bytes);

/* Calls take for each name in --files-from, in their order, until that is false. Together the names take at most a
 * quarter of the memory. Errors: TSR_ERROR_READ, TSR_ERROR_LIMIT (also: that is too little, a name is too long). */
enum { NAME_LIMIT = 1 << 16 }; /* bytes, which is above the longest path, with a name in a series */
enum tsr_status read_names(const struct options *options, bool (*take)(void *context, const char *name), void *context,
                           struct tsr_error *error);

/* Where the files of a series are: their outputs below folder ("": the working folder), their places in the layout
 * below prefix. name: the place of what cannot be opened; NULL: it has none. */
struct place {
    const char *folder, *prefix, *name;
};

/* series_inputs.c: the files of an input that is a series; or the only one that is wanted, to output (NULL: as the
 * others). False: it is not a series. */
bool add_series(struct walk *walk, const char *path, const struct place *place, const char *output);

/* Whether a place of the layout can be that of a file whose name is lost. */
bool may_be_lost(const struct task_list *list, const char *name);

/* pipes.c: bytes of a pipe to a file without a name, whose descriptor it returns. path: "-" is stdin. Errors:
 * TSR_ERROR_READ, TSR_ERROR_WRITE. */
enum tsr_status spool(const char *path, int *descriptor, struct tsr_error *error);

/* Whether an input that the user has named is a pipe, which can be read once and in order. */
bool is_pipe(const char *path);

/* shard.c: FNV-1a, then mixed, so that the low bits depend on all of the name. */
uint64_t hash_name(const char *name);

/* Leaves the tasks that are marked, in their order; the others count as excluded. */
void keep_marked(struct task_list *list, const bool *marked);

/* Leaves the tasks of the shard or of the sample in the list. Errors: TSR_ERROR_LIMIT, TSR_ERROR_READ. */
enum tsr_status take_shard(const struct input_options *in, struct task_list *list, struct tsr_error *error);
enum tsr_status take_sample(const struct sample_options *sample, struct task_list *list, struct tsr_error *error);

#endif
