/* xxHash with vectors that not every CPU has: the same hashes, two to three times as fast. */
#ifndef TSR_IO_CONTAINER_CHECKSUM_WIDE_H
#define TSR_IO_CONTAINER_CHECKSUM_WIDE_H

#include <stdbool.h>
#include <stddef.h>

/* Whether this CPU has them; if not, nothing below may be called. */
bool tsr_checksum_has_wide(void);

/* Adds bytes to a hasher's state, as checksum.c has it. */
void tsr_checksum_add_wide(void *state, const void *bytes, size_t size);

#endif
