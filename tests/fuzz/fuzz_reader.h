/* The promise that all readers stand for: any file compresses, and comes back. */
#ifndef TSR_FUZZ_READER_H
#define TSR_FUZZ_READER_H

#include "fuzz_support.h"

/* Compresses a file of these bytes with proof and restores it. The last byte chooses the coding. */
void fuzz_file(const uint8_t *data, size_t size, const char *ending);

#endif
