/* The codecs that Tessera is compared with: sizes of PNG, JPEG-LS and JPEG files of a picture, by libpng, CharLS and
 * libjpeg-turbo. */
#ifndef TSR_APP_RIVALS_RIVALS_H
#define TSR_APP_RIVALS_RIVALS_H

#include "protocol.h"

/* A picture: interleaved samples of 1 to 16 bits. A sample of up to 8 bits takes a byte, others two bytes in the
 * machine's order. */
struct picture {
    int columns, rows, channels, bits;
    uint8_t *samples;
    size_t bytes; /* of the samples */
};

/* Bytes of the file; 0: this build does not have the codec, or the codec cannot hold such a picture. */
uint64_t png_bytes(const struct picture *picture);
uint64_t jpeg_ls_bytes(const struct picture *picture);

/* Sizes of JPEG files, 4:4:4, of a picture of at most 8 bits and 1 or 3 channels. libjpeg's quantisation has steps of 1
 * % of the standard tables. The logarithm of the size is interpolated between the two steps whose PSNRs enclose
 * psnr_db. */
struct jpeg_size jpeg_at_psnr(const struct picture *picture, double psnr_db);

#endif
