/* Any bytes as a PGM, PPM or Y4M file are compressed and come back byte for byte. */
#include "fuzz_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_file(data, size, "pnm");
    return 0;
}
