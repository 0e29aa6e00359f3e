/* Outputs: where bytes go, one after the other: a file that appears only when it is complete, memory, or nowhere. All
 * of them hash what they are given. */
#ifndef TSR_IO_OUTPUT_H
#define TSR_IO_OUTPUT_H

#include "input.h"

struct tsr_output;

/* A file under a temporary name in the folder of path. Errors: TSR_ERROR_WRITE, TSR_ERROR_EXISTS (and overwrite is not
 * set), TSR_ERROR_LIMIT (memory). */
enum tsr_status tsr_output_create(const char *path, bool overwrite, struct tsr_output **output,
                                  struct tsr_error *error);

/* A file output gets the permissions and, when it is published, the time of the input that it is made from, as far as
 * the file system lets it: who could not read a scan cannot read its copy. */
void tsr_output_inherit(struct tsr_output *output, const struct tsr_input *input);

/* Of one that is made from several inputs: nobody may do with a file output what he may not do with this input, too. */
void tsr_output_restrict(struct tsr_output *output, const struct tsr_input *input);

/* NULL if there is no memory. */
struct tsr_output *tsr_output_to_memory(void);
struct tsr_output *tsr_output_to_null(void);

/* Frees an output; a file that was not published disappears. */
void tsr_output_close(struct tsr_output *output);

enum tsr_status tsr_output_write(struct tsr_output *output, const void *bytes, size_t size, struct tsr_error *error);

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

/* Nobody will ask for the hash of what is written. */
void tsr_output_forgo_hash(struct tsr_output *output);

/* Name of a file's temporary, for reading it back after tsr_output_finish. */
const char *tsr_output_temporary(const struct tsr_output *output);

/* Gives a finished file its name. Errors: TSR_ERROR_WRITE, TSR_ERROR_EXISTS (it came to be meanwhile). */
enum tsr_status tsr_output_publish(struct tsr_output *output, struct tsr_error *error);

/* Hash of all bytes since the start or the restart. */
struct tsr_hash128 tsr_output_hash(const struct tsr_output *output);

/* What a memory output received; it is the output's. */
const uint8_t *tsr_output_bytes(const struct tsr_output *output);

/* Ends the process with a status, after removing the temporary files of all outputs, while other threads work. No
 * signal handler may call it. */
void tsr_output_end_process(int status);

#endif
