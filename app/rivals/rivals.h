/* What Tessera is compared with: PNG, JPEG-LS and JPEG files of the same pictures, through libpng, CharLS and
 * libjpeg-turbo. */
#ifndef TSR_APP_RIVALS_RIVALS_H
#define TSR_APP_RIVALS_RIVALS_H

#include "protocol.h"

/* A picture: interleaved samples of 1 to 16 bits, a byte each up to 8 bits, else two in the machine's order. */
struct picture {
    int columns, rows, channels, bits;
    uint8_t *samples;
    size_t bytes; /* of the samples */
};

/* Bytes of the file; 0 if this build has no such coder or it cannot hold such a picture. */
uint64_t png_bytes(const struct picture *picture);
uint64_t jpeg_ls_bytes(const struct picture *picture);

/* JPEG files of a picture of at most 8 bits and 1 or 3 channels, 4:4:4. libjpeg's quantisation comes in steps (of 1 %
 * of the standard tables): between the two whose PSNRs enclose psnr_db, the logarithm of the size is interpolated. */
struct jpeg_size jpeg_at_psnr(const struct picture *picture, double psnr_db);

#endif
