/* The promise of all formats' readers: any file can be compressed, and comes back. */
#ifndef TSR_FUZZ_READER_H
#define TSR_FUZZ_READER_H

#include "fuzz_support.h"

/* Compresses a file of these size bytes, with a proof, and restores it. ending: of its name. The last byte chooses the
 * coding. */
void fuzz_file(const uint8_t *data, size_t size, const char *ending);

#endif
