/* A long blob, of which several threads compress chunks at once. */
#ifndef TSR_IO_CONTAINER_LONG_BLOB_H
#define TSR_IO_CONTAINER_LONG_BLOB_H

#include "container.h"

/* The zstd level for so many bytes of a blob. */
int tsr_container_level(const struct tsr_container_writer *writer, size_t size);

/* Puts a chunk, as it is where it does not become smaller. */
enum tsr_status tsr_container_put_chunk(struct tsr_container_writer *writer, enum tsr_blob blob, struct tsr_piece plain,
                                        struct tsr_piece compressed, struct tsr_error *error);

/* Appends size bytes of a blob that has no bytes waiting; otherwise as tsr_container_put_long_blob. */
enum tsr_status tsr_put_long_blob(struct tsr_container_writer *writer, enum tsr_blob blob, uint64_t size,
                                  struct tsr_blob_source source, unsigned lanes, struct tsr_crew crew,
                                  struct tsr_error *error);

#endif
