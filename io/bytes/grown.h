/* Bytes that grow. */
#ifndef TSR_IO_BYTES_GROWN_H
#define TSR_IO_BYTES_GROWN_H

#include <stddef.h>
#include <stdint.h>

#include "crew.h"
#include "cursor.h"
#include "transform/status.h"

/* Bytes that grow up to a limit. All zero but the limit: empty. */
struct tsr_bytes {
    uint8_t *bytes; /* allocated */
    size_t size, capacity, limit;
};

/* Makes room for size more bytes: the first time for no more than these, then for twice as many as before, and more
 * if need be. Errors: TSR_ERROR_CORRUPT (over the limit), TSR_ERROR_LIMIT (memory). */
enum tsr_status tsr_bytes_reserve(struct tsr_bytes *bytes, size_t size, struct tsr_error *error);

/* The same, of bytes that are about to be used: the crew's threads have their pages cleared. crew may be NULL. */
enum tsr_status tsr_bytes_reserve_by(const struct tsr_crew *crew, struct tsr_bytes *bytes, size_t size,
                                     struct tsr_error *error);
enum tsr_status tsr_bytes_put(struct tsr_bytes *bytes, const void *more, size_t size, struct tsr_error *error);
enum tsr_status tsr_bytes_put_u8(struct tsr_bytes *bytes, uint8_t value, struct tsr_error *error);
enum tsr_status tsr_bytes_put_varint(struct tsr_bytes *bytes, uint64_t value, struct tsr_error *error);
/* Puts bytes after their number, to which offset is added. */
enum tsr_status tsr_bytes_put_list(struct tsr_bytes *bytes, const uint8_t *more, size_t size, unsigned offset,
                                   struct tsr_error *error);
/* Puts other bytes before all that are there. */
enum tsr_status tsr_bytes_put_before(struct tsr_bytes *bytes, const struct tsr_bytes *first, struct tsr_error *error);
/* Gives back room that is not used. */
void tsr_bytes_fit(struct tsr_bytes *bytes);
void tsr_bytes_free(struct tsr_bytes *bytes);

#endif
