/* What Tessera is compared with: PNG, JPEG-LS and JPEG files of the same pictures, through libpng, CharLS and
 * libjpeg-turbo. */
#ifndef TSR_APP_RIVALS_RIVALS_H
#define TSR_APP_RIVALS_RIVALS_H

#include "app/tessera.h"

/* A picture: interleaved samples of 2 to 16 bits in 16-bit words. */
struct picture {
    int columns, rows, channels, bits;
    const uint16_t *samples;
};

/* Bytes of the file; 0 if this build has no such coder or it cannot hold such a picture. */
uint64_t png_bytes(const struct picture *picture);
uint64_t jpeg_ls_bytes(const struct picture *picture);

/* What JPEG files of an 8-bit picture of 1 or 3 channels, 4:4:4, would weigh at a PSNR. */
struct jpeg_size {
    uint64_t bytes;           /* with the default Huffman tables; 0: no JPEG reaches the PSNR, or this build has none */
    uint64_t optimised_bytes; /* with tables made for the picture */
};

/* libjpeg's quantisation comes in steps (of 1 % of the standard tables): between the two whose PSNRs enclose psnr_db,
 * the logarithm of the size is interpolated. */
struct jpeg_size jpeg_at_psnr(const uint8_t *samples, int columns, int rows, int channels, double psnr_db);

#endif
