/* Restoring: blobs and rasters back to the file that they came from, or to its lossy counterpart. FORMAT.md section 4.
 */
#ifndef TSR_IO_FORMATS_RESTORE_H
#define TSR_IO_FORMATS_RESTORE_H

#include "io/container/container.h"

struct tsr_restorer;

/* The output stays the caller's. Errors: TSR_ERROR_LIMIT (memory), TSR_ERROR_VERSION (this build cannot restore such
 * files), TSR_ERROR_CORRUPT (the header's parameters are none). */
enum tsr_status tsr_restorer_create(const struct tsr_header *header, struct tsr_output *output,
                                    struct tsr_restorer **restorer, struct tsr_error *error);
void tsr_restorer_free(struct tsr_restorer *restorer);

/* In this order: the prefix in pieces, the residues in pieces, all frames' rasters, the suffix in pieces, the end. */
enum tsr_status tsr_restore_blob(struct tsr_restorer *restorer, enum tsr_blob blob, const void *bytes, size_t size,
                                 struct tsr_error *error);
enum tsr_status tsr_restore_frame(struct tsr_restorer *restorer, const uint8_t *raster, struct tsr_error *error);
enum tsr_status tsr_restore_end(struct tsr_restorer *restorer, struct tsr_error *error);

#endif
