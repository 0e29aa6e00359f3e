/* Lossy JPEG streams (io/formats/streams/jpeg.h). The first byte chooses: the rest is a stream, which comes back if it
 * is packed; or packed bytes, which do no harm. */
#include <stdlib.h>
#include <string.h>

#include "fuzz_support.h"
#include "io/formats/streams/jpeg/jpeg.h"

enum { LIMIT = 1 << 20 };

/* Zeros after a block's last coefficient and the like are refused; what is taken comes back, unless one symbol has two
 * codes or the like: then the bytes differ, which the caller sees. */
static void pack(const uint8_t *stream, size_t size)
{
    struct tsr_bytes packed = {.limit = LIMIT}, again = {.limit = size};
    struct tsr_error error;
    const uint64_t memory = tsr_jpeg_memory(stream, size);
    const enum tsr_status status = tsr_jpeg_pack(stream, size, &packed, &error);
    FUZZ_PROMISE(status == TSR_OK || status == TSR_ERROR_CORRUPT, "status %d: %s", (int)status, error.text);
    FUZZ_PROMISE(status != TSR_OK || memory > 0, "packed without memory");
    if (status == TSR_OK) {
        const enum tsr_status back = tsr_jpeg_unpack(packed.bytes, packed.size, &again, &error);
        FUZZ_PROMISE(back == TSR_OK || back == TSR_ERROR_CORRUPT, "status %d: %s", (int)back, error.text);
    }
    tsr_bytes_free(&packed);
    tsr_bytes_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    uint8_t *bytes = fuzz_alloc(size - 1);
    memcpy(bytes, data + 1, size - 1);
    if (data[0] & 1) {
        struct tsr_bytes stream = {.limit = LIMIT};
        const enum tsr_status status = tsr_jpeg_unpack(bytes, size - 1, &stream, NULL);
        FUZZ_PROMISE(status == TSR_OK || status == TSR_ERROR_CORRUPT, "status %d", (int)status);
        FUZZ_PROMISE(stream.size <= LIMIT, "%zu bytes", stream.size);
        tsr_bytes_free(&stream);
    } else {
        pack(bytes, size - 1);
    }
    free(bytes);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    struct fuzz_random random = {seed};
    if (size > 1 && fuzz_below(&random, 2)) return 1 + fuzz_mutate_bits(data + 1, size - 1, max_size - 1, &random);
    return LLVMFuzzerMutate(data, size, max_size);
}
