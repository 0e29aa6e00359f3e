/* Any bytes as a PNG file are compressed and come back with the same samples and the same other chunks. The mutator
 * mutates chunks and the inflated bytes of IDAT, and makes the checksums anew. */
#include "fuzz_reader.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_file(data, size, "png");
    return 0;
}

enum { SIGNATURE = 8, CHUNKS_LIMIT = 64 };
#define INFLATED_LIMIT ((size_t)1 << 18)

struct chunk {
    size_t at, length; /* of the body */
};

static uint32_t get_u32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void put_u32(uint8_t *bytes, uint32_t value)
{
    for (int i = 0; i < 4; i++) bytes[i] = (uint8_t)(value >> (24 - 8 * i));
}

static int find_chunks(const uint8_t *data, size_t size, struct chunk *chunks)
{
    int count = 0;
    for (size_t at = SIGNATURE; count < CHUNKS_LIMIT && size >= 12 && at <= size - 12;) {
        const size_t length = get_u32(data + at);
        if (length > size - at - 12) break;
        chunks[count++] = (struct chunk){at + 8, length};
        at += length + 12;
    }
    return count;
}

/* Puts a chunk's new body in place, with its length and its CRC. Returns the file's new size, 0 if it is too long. */
static size_t put_body(uint8_t *data, size_t size, size_t max_size, struct chunk chunk, const uint8_t *body,
                       size_t length)
{
    const size_t behind = chunk.at + chunk.length + 4;
    if (size - chunk.length + length > max_size) return 0;
    memmove(data + chunk.at + length + 4, data + behind, size - behind);
    memcpy(data + chunk.at, body, length);
    put_u32(data + chunk.at - 8, (uint32_t)length);
    put_u32(data + chunk.at + length, (uint32_t)crc32(0, data + chunk.at - 4, (uInt)(length + 4)));
    return size - chunk.length + length;
}

/* Mutates the inflated bytes of an IDAT chunk, if it holds the whole stream. Returns its new length, or 0 if it does
 * not.
 */
static size_t mutate_pixels(const uint8_t *body, size_t length, uint8_t *out, size_t room, struct fuzz_random *random)
{
    uint8_t *raw = fuzz_alloc(INFLATED_LIMIT);
    uLongf raw_size = INFLATED_LIMIT, out_size = room;
    size_t result = 0;
    if (uncompress(raw, &raw_size, body, length) == Z_OK && raw_size > 0) {
        const size_t most = raw_size + 64 < INFLATED_LIMIT ? raw_size + 64 : INFLATED_LIMIT;
        const size_t changed = LLVMFuzzerMutate(raw, raw_size, most);
        if (compress2(out, &out_size, raw, changed, (int)fuzz_below(random, 10)) == Z_OK) result = out_size;
    }
    free(raw);
    return result;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    struct fuzz_random random = {seed};
    struct chunk chunks[CHUNKS_LIMIT];
    const int count = size > SIGNATURE ? find_chunks(data, size, chunks) : 0;
    if (count == 0 || fuzz_below(&random, 16) == 0) return LLVMFuzzerMutate(data, size, max_size);
    struct chunk chunk = chunks[fuzz_below(&random, (uint32_t)count)];
    if (fuzz_below(&random, 3) == 0) chunk = chunks[0];
    const size_t room = max_size + 64;
    uint8_t *body = fuzz_alloc(room);
    size_t length = 0;
    if (memcmp(data + chunk.at - 4, "IDAT", 4) == 0 && fuzz_below(&random, 4) != 0)
        length = mutate_pixels(data + chunk.at, chunk.length, body, room, &random);
    if (length == 0) {
        memcpy(body, data + chunk.at, chunk.length);
        length = LLVMFuzzerMutate(body, chunk.length, chunk.length + 64 < room ? chunk.length + 64 : room);
    }
    if (fuzz_below(&random, 32) == 0) LLVMFuzzerMutate(data + chunk.at - 4, 4, 4); /* another type */
    const size_t used = put_body(data, size, max_size, chunk, body, length);
    free(body);
    return used > 0 ? used : LLVMFuzzerMutate(data, size, max_size);
}
