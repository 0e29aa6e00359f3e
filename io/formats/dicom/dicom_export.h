/* Exporting: the parts of a .tsr of DICOM become a file in another transfer syntax. PS3.5 A.4 and 8.2. */
#ifndef TSR_IO_FORMATS_DICOM_DICOM_EXPORT_H
#define TSR_IO_FORMATS_DICOM_DICOM_EXPORT_H

#include "io/recipe/recipe.h"
#include "io/recipe/recipe.h"

struct tsr_exporter;

/* TSR_OK if a file with this header can be written in that transfer syntax, else TSR_ERROR_USAGE with half a sentence
 * about "it". */
enum tsr_status tsr_can_export(const struct tsr_header *header, enum tsr_export_syntax to, struct tsr_error *error);

/* all_bits: streams are of all bits that are allocated, not only of those that are stored. Errors: TSR_ERROR_LIMIT. */
enum tsr_status tsr_exporter_create(const struct tsr_header *header, enum tsr_export_syntax to, bool all_bits,
                                    struct tsr_output *output, struct tsr_exporter **exporter, struct tsr_error *error);
void tsr_exporter_free(struct tsr_exporter *exporter);

/* After that, how many bytes of prefix and suffix will come. Errors: TSR_ERROR_LIMIT. */
enum tsr_status tsr_exporter_foresee(struct tsr_exporter *exporter, uint64_t prefix, uint64_t suffix,
                                     struct tsr_error *error);

/* The next bytes of the prefix; then each frame, in order; then the next bytes of the suffix. Errors:
 * TSR_ERROR_CORRUPT, TSR_ERROR_LIMIT, those of the output. */
enum tsr_status tsr_exporter_put_blob(struct tsr_exporter *exporter, enum tsr_blob blob, const void *bytes, size_t size,
                                      struct tsr_error *error);
enum tsr_status tsr_exporter_put_frame(struct tsr_exporter *exporter, const uint8_t *raster, struct tsr_error *error);
enum tsr_status tsr_exporter_end(struct tsr_exporter *exporter, struct tsr_error *error);

/* Whether a frame had samples with bits above those that are stored: it must all be done again with all_bits. */
bool tsr_exporter_needs_all_bits(const struct tsr_exporter *exporter);

/* The tag of the first sequence of the header that was left out, since its pixel data is in items; 0: none was. */
uint32_t tsr_exporter_left_out(const struct tsr_exporter *exporter);

/* Bytes of memory that an exporter takes, by those of prefix and suffix; and that a file takes whose bytes are in
 * memory, about. */
struct tsr_restoring tsr_export_memory(const struct tsr_header *header, enum tsr_export_syntax to, uint64_t prefix,
                                       uint64_t suffix);
uint64_t tsr_exported_bytes(const struct tsr_header *header, enum tsr_export_syntax to, uint64_t prefix,
                            uint64_t suffix);

/* Reads what was written and compares all samples with those that a .tsr promises (struct tsr_proof). Besides the
 * source, two rasters are in memory. Errors: TSR_ERROR_CORRUPT, TSR_ERROR_LIMIT, TSR_ERROR_READ. */
enum tsr_status tsr_exporter_check(const struct tsr_exporter *exporter, struct tsr_input *written,
                                   const struct tsr_hash128 *samples, struct tsr_error *error);

#endif
