/* Outputs: where bytes go, one after the other: a file that appears only when it is complete, memory, or nowhere. All
 * of them hash what they are given. */
#ifndef TSR_IO_OUTPUT_H
#define TSR_IO_OUTPUT_H

#include "input.h"

struct tsr_output;

/* How a file output gets its place: fields as of struct tsr_data_sink. */
struct tsr_output_options {
    bool overwrite, is_bounded;
    size_t root;
};

/* A file that has no name until it is published, or, where a file system has no such files, one of a part
 * (tsr_is_unfinished) in the folder of path, which is made if it is missing. It is its owner's alone; is_private says
 * whether it stays so (tsr_output_inherit) or gets what the process gives new files. Errors: TSR_ERROR_WRITE (also:
 * what exists is no regular file, or a link that may not be followed), TSR_ERROR_EXISTS (and options->overwrite is not
 * set), TSR_ERROR_LIMIT (memory, open files). */
enum tsr_status tsr_output_create(const char *path, const struct tsr_output_options *options, bool is_private,
                                  struct tsr_output **output, struct tsr_error *error);

/* A file output gets the permissions and, when it is finished, the time of the input that it is made from, as far as
 * the file system lets it: who could not read a scan cannot read its copy. */
void tsr_output_inherit(struct tsr_output *output, const struct tsr_input *input);

/* Of one that is made from several inputs: it gets this input's permissions, too, where they are fewer. */
void tsr_output_restrict(struct tsr_output *output, const struct tsr_input *input);

/* NULL if there is no memory. */
struct tsr_output *tsr_output_to_memory(void);
struct tsr_output *tsr_output_to_null(void);

/* More than so many bytes are damage in what is restored; and how many that are, UINT64_MAX: any. */
void tsr_output_limit(struct tsr_output *output, uint64_t bytes);
uint64_t tsr_output_limit_of(const struct tsr_output *output);

/* An output in memory has room for so many bytes, at no cost until they are written. */
enum tsr_status tsr_output_make_room(struct tsr_output *output, size_t bytes, struct tsr_error *error);

bool tsr_output_is_memory(const struct tsr_output *output);

/* Frees an output; a file that was not published disappears. */
void tsr_output_close(struct tsr_output *output);

enum tsr_status tsr_output_write(struct tsr_output *output, const void *bytes, size_t size, struct tsr_error *error);

/* Bytes that are written already: other ones instead of them, and what they are. Nobody asks for the hash of an output
 * that was patched. */
enum tsr_status tsr_output_patch(struct tsr_output *output, uint64_t offset, const void *bytes, size_t size,
                                 struct tsr_error *error);
enum tsr_status tsr_output_read(struct tsr_output *output, uint64_t offset, void *bytes, size_t size,
                                struct tsr_error *error);

/* Bytes written so far. */
uint64_t tsr_output_size(const struct tsr_output *output);

/* Goes back to the empty output; or to what it was at a mark, of which it has written more since. */
struct tsr_output_mark {
    uint64_t size;
    struct tsr_hasher hasher;
};
enum tsr_status tsr_output_restart(struct tsr_output *output, struct tsr_error *error);
struct tsr_output_mark tsr_output_mark(const struct tsr_output *output);
enum tsr_status tsr_output_return(struct tsr_output *output, const struct tsr_output_mark *mark,
                                  struct tsr_error *error);

/* What is held of a file goes to the system, which has yet to bring it to the disk. */
enum tsr_status tsr_output_flush(struct tsr_output *output, struct tsr_error *error);

/* Everything is written: it reaches the disk now (files), errors included. */
enum tsr_status tsr_output_finish(struct tsr_output *output, struct tsr_error *error);

/* Lets go of what the system holds of a finished file, so that who reads it reads the disk. False: it did not, as where
 * files lie in memory. */
bool tsr_output_drop_cache(struct tsr_output *output);

/* Nobody will ask for the hash of what is written. */
void tsr_output_forgo_hash(struct tsr_output *output);

/* An input of what was written to a file or to memory, which outlives neither the output nor more writing. Errors:
 * TSR_ERROR_WRITE, TSR_ERROR_LIMIT. */
enum tsr_status tsr_output_reopen(struct tsr_output *output, struct tsr_input **input, struct tsr_error *error);

/* The file's descriptor, -1 of others. */
int tsr_output_descriptor(const struct tsr_output *output);

/* Gives a finished file its name, which its folder has yet to bring to the disk (tsr_sync_folders). Errors:
 * TSR_ERROR_WRITE, TSR_ERROR_EXISTS (it came to be meanwhile). */
enum tsr_status tsr_output_publish(struct tsr_output *output, struct tsr_error *error);

/* Hash of all bytes since the start or the restart. */
struct tsr_hash128 tsr_output_hash(const struct tsr_output *output);

/* What a memory output received; it is the output's. */
const uint8_t *tsr_output_bytes(const struct tsr_output *output);

/* The same, to be freed by the caller; the output has nothing any more. NULL if nothing was written. */
uint8_t *tsr_output_take_bytes(struct tsr_output *output);

/* Ends the process with a status, after removing the parts of all outputs, while other threads work. No signal handler
 * may call it. */
void tsr_output_end_process(int status);

#endif
