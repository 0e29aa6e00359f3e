/* Units: frames of an encapsulated file that are not coded as samples. The stream of such a frame stands in the file,
 * as it is or smaller, and is found and read alone. FORMAT.md 4.4. */
#ifndef TSR_IO_RECIPE_UNIT_H
#define TSR_IO_RECIPE_UNIT_H

#include "header.h"
#include "io/nodes/node.h"

enum tsr_unit_kind { TSR_UNIT_BYTES, TSR_UNIT_ZSTD, TSR_UNIT_JPEG, TSR_UNIT_FAULTY_JPEG, TSR_UNIT_HEADED };

/* Appends the unit of a stream, the smallest that is tried and that gives the same stream again. *kind: which one.
 * After TSR_OK the error has an offset if the stream looks damaged there; the text says how, as half a sentence.
 * Errors: TSR_ERROR_LIMIT (memory). */
enum tsr_status tsr_unit_make(const struct tsr_header *header, const uint8_t *stream, size_t size,
                              struct tsr_bytes *unit, enum tsr_unit_kind *kind, struct tsr_error *error);

/* Appends the stream of a unit, at most to the limit of stream. Errors: TSR_ERROR_CORRUPT, TSR_ERROR_VERSION (a kind of
 * unit that is not known), TSR_ERROR_LIMIT. */
enum tsr_status tsr_unit_open(const struct tsr_header *header, const uint8_t *unit, size_t size,
                              struct tsr_bytes *stream, struct tsr_error *error);

/* Most bytes of memory that making a unit takes, or opening one, with the stream and the unit, of which one has so many
 * bytes. */
uint64_t tsr_unit_memory(const struct tsr_header *header, uint64_t bytes);

/* The head that the units of a file share, for the header: of a stream of JPEG that is packed; or, is_plain, the first
 * bytes that a stream and another one have in common. Not set: there is none. */
void tsr_unit_share_head(const struct tsr_bytes *stream, const struct tsr_bytes *other, bool is_plain,
                         struct tsr_header *header);

#endif
