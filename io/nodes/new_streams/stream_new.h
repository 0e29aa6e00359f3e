/* New streams: a stream that was never there is made from a residue, too. RLE.md, JPEG_LOSSLESS.md, JPEG_LS.md. */
#ifndef TSR_IO_NODES_NEW_STREAMS_STREAM_NEW_H
#define TSR_IO_NODES_NEW_STREAMS_STREAM_NEW_H

#include "io/nodes/node.h"

/* Appends the residue of a stream as encoders write it by default: RLE by DCMTK's rule; lossless JPEG of selection
 * value 1 with the shortest Huffman codes of at most 16 bits, all components in one scan; JPEG-LS, all components in
 * one scan, sample by sample. The raster's samples have at most so many bits (of RLE all that are allocated), 2 .. 16.
 * The kind's write makes the stream. Errors: TSR_ERROR_LIMIT. */
enum tsr_status tsr_new_rle(const struct tsr_image *image, struct tsr_bytes *residue, struct tsr_error *error);
enum tsr_status tsr_new_jpeg_lossless(const struct tsr_image *image, const uint8_t *raster, int bits,
                                      struct tsr_bytes *residue, struct tsr_error *error);
enum tsr_status tsr_new_jpeg_ls(const struct tsr_image *image, int bits, struct tsr_bytes *residue,
                                struct tsr_error *error);

#endif
