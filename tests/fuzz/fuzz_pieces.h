/* Pieces of packed files (PACKED.md) from a fuzz target's bytes. */
#ifndef TSR_FUZZ_PIECES_H
#define TSR_FUZZ_PIECES_H

#include "fuzz_support.h"
#include "io/bytes/grown.h"
#include "io/output.h"

enum { FUZZ_PIECES_HEAD = 5, FUZZ_PIECES_LIMIT = 1 << 20 };

/* The first byte chooses, four bytes are a seed, the rest is what it is chosen to be: pieces; or a JPEG stream or a raw
 * deflate stream, which is packed, and then damaged by chance. False: it cannot be packed. The caller frees. */
bool fuzz_pieces(const uint8_t *data, size_t size, struct fuzz_random *random, struct tsr_bytes *pieces);

/* Makes the file of pieces, which come in parts of by bytes. *status is that of tsr_make. The caller closes the output.
 */
struct tsr_output *fuzz_unpack(const struct tsr_bytes *pieces, uint64_t room, size_t by, enum tsr_status *status);

#endif
