/* Inputs: bytes that can be read at any place, from a file, from memory or by a function of the caller's. */
#ifndef TSR_IO_INPUT_H
#define TSR_IO_INPUT_H

#include "io/container/checksum.h"
#include "transform/status.h"
#include "app/tessera.h"

struct tsr_input;

/* Errors: TSR_ERROR_READ (not there, not readable, a folder or a device), TSR_ERROR_LIMIT (memory, open files). */
enum tsr_status tsr_input_open(const char *path, struct tsr_input **input, struct tsr_error *error);

/* Of a file that is open: takes the descriptor over, also where it fails. name stands in error texts. */
enum tsr_status tsr_input_from_descriptor(int file, const char *name, struct tsr_input **input,
                                          struct tsr_error *error);

/* Bytes in memory, which must stay there; NULL if there is no memory. */
struct tsr_input *tsr_input_from_memory(const void *bytes, size_t size, const char *name);

/* Bytes that a function reads; context stays the caller's. NULL if there is no memory. */
struct tsr_input_calls {
    int64_t (*read)(void *context, uint64_t offset, void *bytes, size_t count); /* as in struct tsr_data_source */
    void *context;
    uint64_t size;
};
struct tsr_input *tsr_input_from_calls(const struct tsr_input_calls *calls, const char *name);

void tsr_input_close(struct tsr_input *input);

/* Who is asked before a reader of an input takes much memory, first for a header that is large itself, then, once, for
 * the file: so many bytes to read it, and what coding such an image takes on top (NULL: nothing). A header's memory
 * goes over into the file's. Errors: TSR_ERROR_LIMIT (there will never be so much), TSR_ERROR_CORRUPT (a second claim
 * for the file is above the first). */
struct tsr_memory_account {
    enum tsr_status (*claim_header)(struct tsr_memory_account *account, uint64_t bytes, struct tsr_error *error);
    enum tsr_status (*claim)(struct tsr_memory_account *account, const struct tsr_image *image, uint64_t bytes,
                             struct tsr_error *error);
};
void tsr_input_set_account(struct tsr_input *input, struct tsr_memory_account *account);

/* Of an input without an account all is granted. Up to TSR_UNCLAIMED_BYTES need no claim_header. */
enum { TSR_UNCLAIMED_BYTES = 4 << 20 };
enum tsr_status tsr_input_claim_header(const struct tsr_input *input, uint64_t bytes, struct tsr_error *error);
enum tsr_status tsr_input_claim(struct tsr_input *input, const struct tsr_image *image, uint64_t bytes,
                                struct tsr_error *error);

/* What the last claim for the file was, besides what coding takes. */
uint64_t tsr_input_claimed(const struct tsr_input *input);

/* The file's descriptor, -1 of others. */
int tsr_input_descriptor(const struct tsr_input *input);

uint64_t tsr_input_size(const struct tsr_input *input);
const char *tsr_input_name(const struct tsr_input *input);

/* Reads exactly size bytes at offset; anything less is TSR_ERROR_READ. */
enum tsr_status tsr_input_read(struct tsr_input *input, uint64_t offset, void *buffer, size_t size,
                               struct tsr_error *error);

/* The first size bytes of the input, read once and held from now on: whoever reads them again gets what is held, not
 * what the file has become. *bytes are the input's; more may be held later, at another address. Errors: TSR_ERROR_READ
 * (the input has fewer bytes), TSR_ERROR_LIMIT. */
enum tsr_status tsr_input_hold(struct tsr_input *input, size_t size, const uint8_t **bytes, struct tsr_error *error);

/* Nothing is held any more. */
void tsr_input_drop_held(struct tsr_input *input);

/* Hash of all bytes, as tsr_input_read delivered them: bytes are hashed once, when they are first read behind those
 * already hashed, so an input that is read from its start to its end is not read twice for it. What was skipped is read
 * now. A file must be what it was when it was opened: TSR_ERROR_READ if its size, its times or its name's file have
 * changed. */
enum tsr_status tsr_input_hash(struct tsr_input *input, struct tsr_hash128 *hash, struct tsr_error *error);

/* Who reads all of it again has the hash of that. */
void tsr_input_restart_hash(struct tsr_input *input);

#endif
