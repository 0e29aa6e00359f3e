/* Deflate streams (RFC 1951) of two simple kinds. */
#ifndef TESTDATA_DEFLATE_H
#define TESTDATA_DEFLATE_H

#include "testdata_bytes.h"

/* Stored blocks. */
void deflate_stored(struct bytes *out, const struct bytes *in);

/* One block of fixed Huffman codes, with the matches that zlib finds at level 1. For input of up to 16 kB that no
 * dynamic code makes shorter, the stream equals zlib's. Input of more than 2^20 bytes becomes many blocks, so that it
 * can be coded in pieces (DEFLATE.md 5). */
void deflate_fixed(struct bytes *out, const struct bytes *in);

/* A zlib stream (RFC 1950) around deflate_fixed. */
void zlib_fixed(struct bytes *out, const struct bytes *in);

#endif
