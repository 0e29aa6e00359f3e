/* Any bytes as a NIfTI file, or its gzip, are compressed and come back byte for byte. The mutator mutates headers and,
 * of a gzip file of one member, the inflated bytes. */
#include "fuzz_reader.h"

#include <stdlib.h>
#include <string.h>
#ifdef FUZZ_WITH_ZLIB
#include <zlib.h>
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_file(data, size, "nii");
    return 0;
}

/* Fields of NIfTI-1 and NIfTI-2 that are read: where they are, and their sizes in bytes. */
static const struct field {
    uint16_t at, size;
} fields[] = {{40, 16}, {68, 4}, {108, 4}, {344, 4}, {4, 8}, {12, 2}, {16, 64}, {168, 8}, {504, 4}, {0, 4}};

static size_t mutate_plain(uint8_t *data, size_t size, size_t max_size, struct fuzz_random *random)
{
    const struct field f = fields[fuzz_below(random, sizeof fields / sizeof fields[0])];
    if (fuzz_below(random, 3) == 0 || size < (size_t)f.at + f.size) return LLVMFuzzerMutate(data, size, max_size);
    const size_t at = f.at + fuzz_below(random, f.size);
    data[at] = (uint8_t)(fuzz_below(random, 2) ? fuzz_below(random, 256) : data[at] + fuzz_below(random, 3) - 1);
    return size;
}

#ifdef FUZZ_WITH_ZLIB
enum { HEAD = 10, TAIL = 8, PLAIN_LIMIT = 1 << 17 };

/* Inflates, mutates and deflates. Returns the file's new size; 0 if it is no gzip file, or too long. */
static size_t mutate_gzip(uint8_t *data, size_t size, size_t max_size, struct fuzz_random *random)
{
    if (size < HEAD + TAIL || data[0] != 0x1f || data[1] != 0x8b || data[3] != 0) return 0;
    uint8_t *const plain = fuzz_alloc(PLAIN_LIMIT);
    z_stream in = {
        .next_in = data + HEAD, .avail_in = (uInt)(size - HEAD), .next_out = plain, .avail_out = PLAIN_LIMIT};
    size_t used = 0;
    if (inflateInit2(&in, -15) == Z_OK && inflate(&in, Z_FINISH) == Z_STREAM_END && max_size > HEAD + TAIL) {
        const size_t changed = mutate_plain(plain, in.total_out, PLAIN_LIMIT, random);
        z_stream out = {.next_in = plain,
                        .avail_in = (uInt)changed,
                        .next_out = data + HEAD,
                        .avail_out = (uInt)(max_size - HEAD - TAIL)};
        if (deflateInit2(&out, (int)fuzz_below(random, 10), Z_DEFLATED, -15, 1 + (int)fuzz_below(random, 9),
                         (int)fuzz_below(random, 5)) == Z_OK &&
            deflate(&out, Z_FINISH) == Z_STREAM_END) {
            const uint32_t check = (uint32_t)crc32(crc32(0, NULL, 0), plain, (uInt)changed);
            used = HEAD + out.total_out + TAIL;
            for (int i = 0; i < 4; i++) data[used - TAIL + (size_t)i] = (uint8_t)(check >> 8 * i);
            for (int i = 0; i < 4; i++) data[used - 4 + (size_t)i] = (uint8_t)(changed >> 8 * i);
        }
        deflateEnd(&out);
    }
    inflateEnd(&in);
    free(plain);
    return used;
}
#endif

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    struct fuzz_random random = {seed};
#ifdef FUZZ_WITH_ZLIB
    uint8_t *const copy = fuzz_alloc(max_size);
    memcpy(copy, data, size);
    const size_t used = fuzz_below(&random, 8) ? mutate_gzip(copy, size, max_size, &random) : 0;
    if (used > 0) memcpy(data, copy, used);
    free(copy);
    if (used > 0) return used;
#endif
    return mutate_plain(data, size, max_size, &random);
}
