/* Streams of lossless JPEG and JPEG-LS for DICOM files. */
#ifndef TESTDATA_JPEG_H
#define TESTDATA_JPEG_H

#include "testdata_bytes.h"
#include "testdata_shapes.h"

/* Writes planes of one image as a stream of process 14 with predictor 1 (ITU-T T.81, annex H). Samples have the given
 * number of bits. All codes are of 5 bits. */
void jpeg_put_lossless(struct bytes *out, const struct canvas *planes, int components, int bits);

/* Writes the example of ITU-T T.87, H.3: 4 x 4 samples of 8 bits. */
void jpeg_put_ls_example(struct bytes *out);

#endif
