/* Inputs: bytes that can be read at any place, from a file or from memory. */
#ifndef TSR_IO_INPUT_H
#define TSR_IO_INPUT_H

#include "checksum.h"
#include "status.h"

struct tsr_input;

/* Errors: TSR_ERROR_READ (not there, not readable, a folder or a device), TSR_ERROR_LIMIT (memory). */
enum tsr_status tsr_input_open(const char *path, struct tsr_input **input, struct tsr_error *error);

/* Bytes in memory, which must stay there; NULL if there is no memory. name stands in error texts. */
struct tsr_input *tsr_input_from_memory(const void *bytes, size_t size, const char *name);

void tsr_input_close(struct tsr_input *input);

/* The file's descriptor, -1 for memory. */
int tsr_input_descriptor(const struct tsr_input *input);

uint64_t tsr_input_size(const struct tsr_input *input);
const char *tsr_input_name(const struct tsr_input *input);

/* Reads exactly size bytes at offset; anything less is TSR_ERROR_READ. */
enum tsr_status tsr_input_read(struct tsr_input *input, uint64_t offset, void *buffer, size_t size,
                               struct tsr_error *error);

/* Hash of all bytes, as tsr_input_read delivered them: bytes are hashed once, when they are first read behind those
 * already hashed, so an input that is read from its start to its end is not read twice for it. What was skipped is read
 * now. */
enum tsr_status tsr_input_hash(struct tsr_input *input, struct tsr_hash128 *hash, struct tsr_error *error);

#endif
