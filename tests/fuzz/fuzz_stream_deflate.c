/* Deflate streams: what is read comes back; any residue does no harm. FORMAT.md 4.9. */
#include "fuzz_support.h"

#include <stdlib.h>
#include <string.h>

#include "io/formats/streams/deflate/deflate.h"

enum { LIMIT = 1 << 20 };

static void read_stream(const uint8_t *bytes, size_t size)
{
    struct tsr_bytes plain = {.limit = LIMIT}, residue = {.limit = LIMIT};
    size_t used = 0;
    if (tsr_deflate_read(bytes, size, &used, &plain, &residue, NULL) == TSR_OK) {
        struct tsr_bytes stream = {.limit = used};
        FUZZ_PROMISE(used <= size, "%zu bytes of %zu are used", used, size);
        FUZZ_PROMISE(tsr_deflate_write(plain.bytes, plain.size, residue.bytes, residue.size, &stream, NULL) == TSR_OK,
                     "a stream of %zu bytes does not come back", used);
        FUZZ_PROMISE(stream.size == used && memcmp(stream.bytes, bytes, used) == 0, "another stream comes back");
        tsr_bytes_free(&stream);
    }
    tsr_bytes_free(&plain);
    tsr_bytes_free(&residue);
}

/* The first two bytes: how many of the others are plain. They are repeated, so that there are matches. */
static void write_stream(const uint8_t *bytes, size_t size)
{
    if (size < 3) return;
    const size_t count = (bytes[0] | (size_t)bytes[1] << 8) % (size - 2), repeated = 4 * count;
    uint8_t *plain = fuzz_alloc(repeated);
    for (size_t i = 0; i < repeated; i++) plain[i] = bytes[2 + i % count];
    struct tsr_bytes stream = {.limit = LIMIT};
    if (tsr_deflate_write(plain, repeated, bytes + 2 + count, size - 2 - count, &stream, NULL) == TSR_OK)
        read_stream(stream.bytes, stream.size);
    tsr_bytes_free(&stream);
    free(plain);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    uint8_t *bytes = fuzz_alloc(size - 1);
    memcpy(bytes, data + 1, size - 1);
    if (data[0] & 1)
        write_stream(bytes, size - 1);
    else
        read_stream(bytes, size - 1);
    free(bytes);
    return 0;
}
