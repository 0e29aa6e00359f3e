/* What tessera and its helper program tessera-rivals say to each other, on the helper's standard input and output. The
 * codecs that Tessera is compared with run in the helper alone: the program that is installed links none of them.
 *
 * A request is one line of words with a space between them, an answer is one line.
 *
 *   request                               answer
 *   version                               tessera-rivals VERSION
 *   picture COLUMNS ROWS CHANNELS BITS    none; the samples follow the line, interleaved: a byte each up to 8 bits, two
 *                                         in the machine's order above. The requests below are about this picture, as
 *                                         often as wanted, until the next one.
 *   png                                   BYTES of the PNG file
 *   jpeg-ls                               BYTES of the JPEG-LS file
 *   jpeg PSNR                             BYTES OPTIMISED: what JPEG files of this PSNR in dB take, with the default
 *                                         Huffman tables and with tables made for the picture
 *
 * BYTES of 0: the helper was built without this codec, the codec cannot hold such a picture, or no file has this PSNR.
 * The helper ends with status 0 at the end of its input. It ends with the status TSR_ERROR_USAGE and a sentence on
 * stderr after a line that is not a request, and with TSR_ERROR_LIMIT where it has no memory for a picture. */
#ifndef TSR_APP_RIVALS_PROTOCOL_H
#define TSR_APP_RIVALS_PROTOCOL_H

#include "app/tessera.h"

#define RIVALS_NAME "tessera-rivals"
#define RIVALS_VERSION_LINE RIVALS_NAME " " TSR_VERSION_STRING

enum { RIVALS_LINE = 128 /* characters of a line at most, its end and a NUL included */ };

/* What JPEG files of a picture weigh at a PSNR. */
struct jpeg_size {
    uint64_t bytes;           /* with the default Huffman tables; 0: no JPEG reaches the PSNR */
    uint64_t optimised_bytes; /* with tables made for the picture */
};

#endif
