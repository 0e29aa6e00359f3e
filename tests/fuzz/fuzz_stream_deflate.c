/* Deflate streams: what is read comes back; any residue does no harm. DEFLATE.md. */
#include "fuzz_support.h"

#include <stdlib.h>
#include <string.h>

#include "io/nodes/deflate/deflate.h"

enum { LIMIT = 1 << 20, LONG_LIMIT = 1 << 22, LEAST_PIECE = 1 << 16 };

/* Any residue like one that is right. */
static void write_damaged(const struct tsr_bytes *plain, struct tsr_bytes *residue, const uint8_t *bytes, size_t size)
{
    struct tsr_bytes stream = {.limit = LIMIT};
    for (size_t i = 0; i + 3 <= size && i < 9; i += 3)
        residue->bytes[(bytes[i] | (size_t)bytes[i + 1] << 8) % residue->size] ^= bytes[i + 2];
    const enum tsr_status status =
        tsr_deflate_write(plain->bytes, plain->size, residue->bytes, residue->size, &stream, NULL);
    FUZZ_PROMISE(status == TSR_OK || status == TSR_ERROR_CORRUPT, "status %d", (int)status);
    tsr_bytes_free(&stream);
}

/* is_long: in pieces, if there are so many bytes. */
static void read_stream(const uint8_t *bytes, size_t size, bool is_long)
{
    const struct tsr_deflate_way way = {.piece = is_long ? LEAST_PIECE : TSR_DEFLATE_USUAL_PIECE};
    struct tsr_bytes plain = {.limit = is_long ? LONG_LIMIT : LIMIT}, residue = {.limit = LIMIT};
    size_t used = 0;
    if (tsr_deflate_read_up_to(&way, bytes, size, &used, &plain, &residue, NULL) == TSR_OK) {
        struct tsr_bytes stream = {.limit = used};
        FUZZ_PROMISE(used <= size, "%zu bytes of %zu are used", used, size);
        FUZZ_PROMISE(tsr_deflate_write(plain.bytes, plain.size, residue.bytes, residue.size, &stream, NULL) == TSR_OK,
                     "a stream of %zu bytes does not come back", used);
        FUZZ_PROMISE(stream.size == used && memcmp(stream.bytes, bytes, used) == 0, "another stream comes back");
        tsr_bytes_free(&stream);
        if (is_long) write_damaged(&plain, &residue, bytes + used, size - used);
    }
    tsr_bytes_free(&plain);
    tsr_bytes_free(&residue);
}

/* The first two bytes: how many of the others are plain. They are repeated, so that there are matches. */
static void write_stream(const uint8_t *bytes, size_t size, bool is_long)
{
    if (size < 3) return;
    const size_t count = (bytes[0] | (size_t)bytes[1] << 8) % (size - 2), repeated = (is_long ? 64 : 4) * count;
    uint8_t *plain = fuzz_alloc(repeated);
    for (size_t i = 0; i < repeated; i++) plain[i] = bytes[2 + i % count];
    struct tsr_bytes stream = {.limit = LIMIT};
    if (tsr_deflate_write(plain, repeated, bytes + 2 + count, size - 2 - count, &stream, NULL) == TSR_OK)
        read_stream(stream.bytes, stream.size, is_long);
    tsr_bytes_free(&stream);
    free(plain);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    uint8_t *bytes = fuzz_alloc(size - 1);
    memcpy(bytes, data + 1, size - 1);
    if (data[0] & 1)
        write_stream(bytes, size - 1, data[0] & 2);
    else
        read_stream(bytes, size - 1, data[0] & 2);
    free(bytes);
    return 0;
}
