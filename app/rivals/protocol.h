/* The protocol between tessera and its helper program tessera-rivals, on the helper's standard input and output. The
 * codecs that Tessera is compared with run only in the helper: tessera links none of them.
 *
 * A request is one line of words with a space between them. An answer is one line.
 *
 *   request                               answer
 *   version                               tessera-rivals VERSION
 *   picture COLUMNS ROWS CHANNELS BITS    no answer. The interleaved samples follow the line: a byte each up to 8 bits,
 *                                         else two bytes in the machine's order. The requests below are about this
 *                                         picture until the next one comes.
 *   png                                   BYTES of the PNG file
 *   jpeg-ls                               BYTES of the JPEG-LS file
 *   jpeg PSNR                             BYTES OPTIMISED of JPEG files of this PSNR in dB: with the default Huffman
 *                                         tables, and with tables made for the picture
 *
 * BYTES is 0 if the helper was built without this codec, the codec cannot hold such a picture, or no file has this
 * PSNR. The helper ends with status 0 at the end of its input. It ends with the status TSR_ERROR_USAGE and a sentence
 * on stderr after a line that is not a request, and with TSR_ERROR_LIMIT if it has no memory for a picture. */
#ifndef TSR_APP_RIVALS_PROTOCOL_H
#define TSR_APP_RIVALS_PROTOCOL_H

#include "app/tessera.h"

#define RIVALS_NAME "tessera-rivals"
#define RIVALS_VERSION_LINE RIVALS_NAME " " TSR_VERSION_STRING

enum { RIVALS_LINE = 128 /* most characters of a line, its end and a NUL included */ };

/* Bytes of JPEG files of a picture at a PSNR. */
struct jpeg_size {
    uint64_t bytes;           /* with the default Huffman tables; 0: no JPEG reaches the PSNR */
    uint64_t optimised_bytes; /* with tables made for the picture */
};

#endif
