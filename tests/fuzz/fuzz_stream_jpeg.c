/* Lossy JPEG streams (io/nodes/jpeg/jpeg.h). The first byte chooses what is behind the head: a stream, which comes
 * back if it is packed; packed bytes, which do no harm; or a stream whose packed bytes are damaged, which do no harm.
 * The other bytes of the head choose the damage. */
#include <stdlib.h>
#include <string.h>

#include "fuzz_support.h"
#include "io/nodes/jpeg/jpeg.h"
#include "tests/unit/io/streams/by_node.h"

enum { LIMIT = 1 << 20, HEAD = 5 };
enum way { PACKED, STREAM, DAMAGED, WAYS };

static void unpack(const uint8_t *packed, size_t size, size_t limit)
{
    struct tsr_bytes stream = {.limit = limit};
    struct tsr_error error;
    const enum tsr_status status =
        join_by(&tsr_node_jpeg, (struct tsr_node_parts){.plain = packed, .plain_size = size}, 0, &stream, &error);
    FUZZ_PROMISE(status == TSR_OK || status == TSR_ERROR_CORRUPT, "status %d: %s", (int)status, error.text);
    FUZZ_PROMISE(stream.size <= limit, "%zu bytes", stream.size);
    tsr_bytes_free(&stream);
}

/* Zeros after a block's last coefficient and the like are refused; what is taken comes back, unless one symbol has two
 * codes or the like: then the bytes differ, which the caller sees. */
static void pack(const uint8_t *stream, size_t size, struct fuzz_random *damage)
{
    struct tsr_bytes packed = {.limit = LIMIT};
    struct tsr_error error;
    uint64_t memory;
    const bool has_scan = tsr_jpeg_memory(stream, size, &memory, &error) == TSR_OK;
    const enum tsr_status status = split_by(&tsr_node_jpeg, stream, size, &packed, NULL, &error);
    FUZZ_PROMISE(status == TSR_OK || status == TSR_ERROR_CORRUPT, "status %d: %s", (int)status, error.text);
    FUZZ_PROMISE(status != TSR_OK || has_scan, "packed without a scan");
    for (uint32_t n = damage ? 1 + fuzz_below(damage, 4) : 0; status == TSR_OK && n > 0; n--) {
        /* Most of the damage is at the beginning, where the headers are. */
        const uint32_t range = fuzz_below(damage, 2) || packed.size < 64 ? (uint32_t)packed.size : 64;
        packed.bytes[fuzz_below(damage, range)] ^= (uint8_t)(1u << fuzz_below(damage, 8));
    }
    if (status == TSR_OK) unpack(packed.bytes, packed.size, damage ? LIMIT : size);
    tsr_bytes_free(&packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < HEAD) return 0;
    struct fuzz_random random = {0};
    for (int i = 1; i < HEAD; i++) random.state = random.state << 8 | data[i];
    uint8_t *bytes = fuzz_copy(data + HEAD, size - HEAD);
    switch ((enum way)(data[0] % WAYS)) {
    case PACKED:
        unpack(bytes, size - HEAD, LIMIT);
        break;
    case STREAM:
        pack(bytes, size - HEAD, NULL);
        break;
    default:
        pack(bytes, size - HEAD, &random);
    }
    free(bytes);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    struct fuzz_random random = {seed};
    if (size > HEAD && fuzz_below(&random, 2))
        return HEAD + fuzz_mutate_bits(data + HEAD, size - HEAD, max_size - HEAD, &random);
    return LLVMFuzzerMutate(data, size, max_size);
}
