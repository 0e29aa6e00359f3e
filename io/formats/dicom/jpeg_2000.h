/* JPEG 2000 and HTJ2K by OpenJPEG and OpenJPH, which are in the module of DCMTK (dicom_module.h). */
#ifndef TSR_IO_FORMATS_DICOM_JPEG_2000_H
#define TSR_IO_FORMATS_DICOM_JPEG_2000_H

#include "dicom_file.h"
#include "io/nodes/node.h"

/* Streams of either kind that are read and never made again: they have no write, and no residue. Errors:
 * TSR_ERROR_CORRUPT (also: the stream's transform loses something, or the build has no library), TSR_ERROR_LIMIT. */
extern const struct tsr_node tsr_node_jpeg_2000;

bool tsr_begins_jpeg_2000(const uint8_t *stream, size_t size);

/* Whether the first bytes of a stream say that its transform is irreversible. */
bool tsr_jpeg_2000_loses(const uint8_t *stream, size_t size);

/* The raster of a stream of either kind, also of one that has lost something. Errors: TSR_ERROR_CORRUPT (it cannot be
 * decoded, or is of another image), TSR_ERROR_VERSION (this build has no library), TSR_ERROR_LIMIT. */
enum tsr_status tsr_jpeg_2000_read(const struct tsr_image *image, const uint8_t *stream, size_t size, uint8_t *raster,
                                   struct tsr_error *error);

/* Bytes of memory that writing such a stream takes: numbers of samples, and what they become. */
uint64_t tsr_jpeg_2000_memory(const struct tsr_image *image, bool is_ht);

/* Why this build cannot code such streams, as half a sentence; NULL: it can. */
const char *tsr_jpeg_2000_lacks(bool is_ht);

/* Makes a stream of a raster (FORMAT.md 3.2, samples little endian), of samples of so many bits. Colours are mixed if
 * is_rgb. */
enum tsr_status tsr_jpeg_2000_write(const struct tsr_image *image, const uint8_t *raster, int bits, bool is_ht,
                                    bool is_rgb, struct tsr_bytes *stream, struct tsr_error *error);

#endif
