/* Streams of JPEG and JPEG-LS. */
#ifndef TESTDATA_JPEG_H
#define TESTDATA_JPEG_H

#include "testdata_bytes.h"
#include "testdata_shapes.h"

/* Writes planes of one image as a stream of process 14 with predictor 1 (ITU-T T.81, annex H). Samples have the given
 * number of bits. All codes are of 5 bits. */
void jpeg_put_lossless(struct bytes *out, const struct canvas *planes, int components, int bits);

/* Writes planes of one image as a stream of JPEG-LS without loss (ITU-T T.87). Samples have 8 to 16 bits. The lines of
 * several components, four at most, are interleaved. */
void jpeg_put_ls(struct bytes *out, const struct canvas *planes, int components, int bits);

/* Writes a baseline image of this many blocks of 8 x 8 samples (T.81, annex F): a few coefficients in each, by chance.
 * All codes are of 5 bits. */
void jpeg_put_lossy(struct bytes *out, int across, int down, uint64_t seed);

/* Writes SOI and a frame header, of this marker, for planes of one size (T.81, B.2.2). */
void jpeg_put_frame(struct bytes *out, unsigned marker, const struct canvas *plane, int components, int bits);

/* Writes a scan header of all components but its last three bytes (T.81, B.2.3). */
void jpeg_put_scan(struct bytes *out, int components);

#endif
