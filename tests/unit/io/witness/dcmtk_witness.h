/* DCMTK as the witness: what it reads of headers, for tests to compare with what io/formats/dicom reads. */
#ifndef TSR_TESTS_IO_DCMTK_WITNESS_H
#define TSR_TESTS_IO_DCMTK_WITNESS_H

#include "io/formats/dicom/dicom_file.h"

#ifdef __cplusplus
extern "C" {
#endif

/* DCMTK reads the beginning of a file, meta header included, up to the value of its pixel data; or the same of a data
 * set in explicit little endian without a meta header. *value_offset: where it stops. Errors: TSR_ERROR_CORRUPT with
 * the reason why it cannot be read as DICOM. */
enum tsr_status dcmtk_describe(const uint8_t *bytes, size_t size, struct tsr_dicom *dicom, uint64_t *value_offset,
                               struct tsr_error *error);
enum tsr_status dcmtk_describe_dataset(const uint8_t *bytes, size_t size, struct tsr_dicom *dicom,
                                       uint64_t *value_offset, struct tsr_error *error);

/* What tsr_dicom_compare_headers does. */
enum tsr_status dcmtk_compare_headers(const struct tsr_dicom_bytes *original, const struct tsr_dicom_bytes *derived,
                                      const uint32_t *tags, int tag_count, struct tsr_error *error);

#ifdef __cplusplus
}
#endif

#endif
