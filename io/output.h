/* Outputs: a file that appears only when it is complete, memory, or nothing. Bytes are appended, and every output
 * hashes them. */
#ifndef TSR_IO_OUTPUT_H
#define TSR_IO_OUTPUT_H

#include "input.h"

struct tsr_output;

/* How a file output gets its place: fields as of struct tsr_data_sink. */
struct tsr_output_options {
    bool overwrite, is_bounded;
    size_t root;
    struct tsr_file_set *written;
};

/* Creates a file output for path; missing folders are created. The file has no name until it is published. If the file
 * system has no files without a name, the file has the name of a part (tsr_is_unfinished) in the folder of path.
 * is_private: only the owner can read the file until tsr_output_inherit; else the file gets the permissions that the
 * process gives new files. Errors: TSR_ERROR_WRITE (also if path names something that is not a regular file, or a link
 * that may not be followed), TSR_ERROR_EXISTS (and options->overwrite is not set), TSR_ERROR_SAME_FILE (path leads to a
 * file of options->written), TSR_ERROR_LIMIT (no memory, too many open files). */
enum tsr_status tsr_output_create(const char *path, const struct tsr_output_options *options, bool is_private,
                                  struct tsr_output **output, struct tsr_error *error);

/* Gives a file output the input's permission bits and, when the output is finished, the input's time of modification,
 * as far as the file system allows. The output never gets more permissions than the input. */
void tsr_output_inherit(struct tsr_output *output, const struct tsr_input *input);

/* After tsr_output_inherit: gives the output this time of modification instead, and takes away the permissions that are
 * not among these. What origin does not say stays. */
void tsr_output_return_to(struct tsr_output *output, const struct tsr_origin *origin);

/* For an output that is made from several inputs: takes away the permissions that this input does not have. */
void tsr_output_restrict(struct tsr_output *output, const struct tsr_input *input);

/* Outputs to memory and to nothing; NULL if there is no memory. */
struct tsr_output *tsr_output_to_memory(void);
struct tsr_output *tsr_output_to_null(void);

/* Creates a file output without a name in a folder that exists; it is never published. Errors: TSR_ERROR_WRITE,
 * TSR_ERROR_LIMIT. */
enum tsr_status tsr_output_to_temporary(const char *folder, struct tsr_output **output, struct tsr_error *error);

/* Creates an output for what will be sealed or appended to a target: in memory if that is, else a file without a name
 * in the folder of the target. hides: nothing can be read in that file (tsr_scramble), as in that of a target that
 * hides. It is written, patched and read by the functions below, and never published or opened again. Errors:
 * TSR_ERROR_WRITE, TSR_ERROR_LIMIT. */
enum tsr_status tsr_output_create_spool(const struct tsr_output *target, bool hides, struct tsr_output **spool,
                                        struct tsr_error *error);

/* Encrypts all of an output that is not empty to another one, which is empty. Errors: TSR_ERROR_WRITE, TSR_ERROR_LIMIT,
 * also of Argon2id. */
enum tsr_status tsr_output_seal(struct tsr_output *plain, struct tsr_key *key, struct tsr_output *sealed,
                                struct tsr_error *error);

/* Limits the output to this number of bytes in all: writing more is TSR_ERROR_CORRUPT, as the restored file is then
 * longer than its .tsr file says. tsr_output_limit_of returns the limit; UINT64_MAX: no limit. */
void tsr_output_limit(struct tsr_output *output, uint64_t bytes);
uint64_t tsr_output_limit_of(const struct tsr_output *output);

/* Reserves bytes for an empty output to memory. Memory that is not written costs nothing. Errors: TSR_ERROR_LIMIT. */
enum tsr_status tsr_output_make_room(struct tsr_output *output, size_t bytes, struct tsr_error *error);

bool tsr_output_is_memory(const struct tsr_output *output);

/* Frees an output. A file that was not published is removed. */
void tsr_output_close(struct tsr_output *output);

/* Appends bytes. Errors: TSR_ERROR_WRITE, TSR_ERROR_LIMIT (memory), TSR_ERROR_CORRUPT (more than tsr_output_limit). */
enum tsr_status tsr_output_write(struct tsr_output *output, const void *bytes, size_t size, struct tsr_error *error);

/* Overwrite or read bytes that are written already. The hash of an output that was patched is not valid. Errors:
 * TSR_ERROR_WRITE. */
enum tsr_status tsr_output_patch(struct tsr_output *output, uint64_t offset, const void *bytes, size_t size,
                                 struct tsr_error *error);
enum tsr_status tsr_output_read(struct tsr_output *output, uint64_t offset, void *bytes, size_t size,
                                struct tsr_error *error);

/* Bytes written so far. */
uint64_t tsr_output_size(const struct tsr_output *output);

/* tsr_output_restart empties the output. tsr_output_return cuts the output, hash included, back to an earlier mark.
 * Errors: TSR_ERROR_WRITE. */
struct tsr_output_mark {
    uint64_t size;
    struct tsr_hasher hasher;
};
enum tsr_status tsr_output_restart(struct tsr_output *output, struct tsr_error *error);
struct tsr_output_mark tsr_output_mark(const struct tsr_output *output);
enum tsr_status tsr_output_return(struct tsr_output *output, const struct tsr_output_mark *mark,
                                  struct tsr_error *error);

/* Gives the buffered bytes of a file to the system. They need not be on the disk afterwards. */
enum tsr_status tsr_output_flush(struct tsr_output *output, struct tsr_error *error);

/* Call this when all bytes are written: a file's bytes are on the disk afterwards. Errors: TSR_ERROR_WRITE. */
enum tsr_status tsr_output_finish(struct tsr_output *output, struct tsr_error *error);

/* Drops the system's cache of a finished file, so that a later read comes from the disk. False: the cache was not
 * dropped, for example because the file lies in memory. */
bool tsr_output_drop_cache(struct tsr_output *output);

/* Stops hashing: tsr_output_hash must not be called. */
void tsr_output_forgo_hash(struct tsr_output *output);

/* Opens what was written to a file or to memory as an input. The input is valid until more is written or the output is
 * closed. Errors: TSR_ERROR_WRITE, TSR_ERROR_LIMIT. */
enum tsr_status tsr_output_reopen(struct tsr_output *output, struct tsr_input **input, struct tsr_error *error);

/* Gives a finished file its name. tsr_sync_folders then brings the name to the disk. Errors: TSR_ERROR_WRITE,
 * TSR_ERROR_EXISTS (a file of this name has appeared meanwhile), TSR_ERROR_SAME_FILE, TSR_ERROR_LIMIT. */
enum tsr_status tsr_output_publish(struct tsr_output *output, struct tsr_error *error);

/* What the file was when it had got its name. */
struct tsr_file_state tsr_output_published(const struct tsr_output *output);

/* Hash of all bytes that were written since the start or the last restart. */
struct tsr_hash128 tsr_output_hash(const struct tsr_output *output);

/* Bytes of an output to memory; the output owns them. */
const uint8_t *tsr_output_bytes(const struct tsr_output *output);

/* The same, to be freed by the caller; the output has nothing any more. NULL if nothing was written. */
uint8_t *tsr_output_take_bytes(struct tsr_output *output);

#endif
