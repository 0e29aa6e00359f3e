/* The raster of one frame of encapsulated pixel data, by the codec of its stream: of frames that are units, and of
 * readers of originals. */
#ifndef TSR_IO_FORMATS_DICOM_FRAME_STREAM_H
#define TSR_IO_FORMATS_DICOM_FRAME_STREAM_H

#include "io/recipe/header.h"

/* The codec is the one that the stream begins as: lossy or lossless JPEG, JPEG-LS, JPEG 2000 or HTJ2K, RLE; else that
 * of the header's kind of streams. Errors: TSR_ERROR_CORRUPT (no codec, or it cannot be decoded, or is of another
 * image), TSR_ERROR_VERSION (this build lacks the codec), TSR_ERROR_LIMIT. The text says which frame it is. */
enum tsr_status tsr_dicom_decode_stream(const struct tsr_header *header, uint32_t frame, const uint8_t *stream,
                                        size_t size, uint8_t *raster, struct tsr_error *error);

/* Whether frames have lost something, as the head of the first stream says, so that they cannot be made again: no file
 * is held then to see whether it can. value: the byte of the pixel data's value, where the offset table stands. */
bool tsr_dicom_frames_lose(struct tsr_input *input, uint64_t value);

#endif
