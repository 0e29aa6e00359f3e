/* Any bytes as a DICOM file are compressed and come back byte for byte; lossy copies are DICOM files again. The mutator
 * also mutates inside deflated data sets. */
#include "fuzz_reader.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "io/nodes/deflate/deflate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_file(data, size, "dcm");
    return 0;
}

#define INFLATED_LIMIT ((size_t)1 << 18)

/* The offset after the meta header, whose group length stands at byte 140. 0: not a file with a deflated data set. */
static size_t deflated_start(const uint8_t *data, size_t size)
{
    if (size < 144 || memcmp(data + 128, "DICM", 4) != 0) return 0;
    const size_t start = 144 + (data[140] | (size_t)data[141] << 8);
    if (start >= size) return 0;
    for (size_t i = 144; i + 22 <= start; i++)
        if (memcmp(data + i, "1.2.840.10008.1.2.1.99", 22) == 0) return start;
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    struct fuzz_random random = {seed};
    const size_t start = deflated_start(data, size);
    struct tsr_bytes plain = {.limit = SIZE_MAX / 2};
    const bool is_stream = start > 0 && fuzz_below(&random, 8) > 0 &&
                           tsr_deflate_first(data + start, size - start, INFLATED_LIMIT, &plain) == TSR_OK;
    uint8_t *const dataset = plain.bytes;
    size_t dataset_size = plain.size < INFLATED_LIMIT ? plain.size : INFLATED_LIMIT;
    if (!is_stream || dataset_size == 0) {
        free(dataset);
        return LLVMFuzzerMutate(data, size, max_size);
    }
    uint8_t *changed = fuzz_alloc(dataset_size + 256);
    memcpy(changed, dataset, dataset_size);
    dataset_size = LLVMFuzzerMutate(changed, dataset_size, dataset_size + 256);
    z_stream z = {0};
    const int coefficient = fuzz_below(&random, 4) ? 6 : (int)fuzz_below(&random, 10);
    bool good = deflateInit2(&z, coefficient, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) == Z_OK;
    if (good) {
        z.next_in = changed;
        z.avail_in = (uInt)dataset_size;
        z.next_out = data + start;
        z.avail_out = (uInt)(max_size - start);
        good = deflate(&z, Z_FINISH) == Z_STREAM_END;
        size = start + z.total_out;
        deflateEnd(&z);
    }
    if (size % 2 != 0 && size < max_size) data[size++] = (uint8_t)fuzz_below(&random, 256);
    free(dataset);
    free(changed);
    return size;
}
