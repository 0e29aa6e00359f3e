/* Streams of the kinds "rle" and "jpeg-lossless". Any bytes as a stream are refused or read without harm, and what is
 * read comes back. Any bytes as a residue give a stream or TSR_ERROR_CORRUPT.
 *
 * The input: kind and mode, columns, rows, components and bits, then the stream; or the bytes of a raster's beginning,
 * their number before them, and then the residue. */
#include "fuzz_support.h"

#include <stdlib.h>
#include <string.h>

#include "io/nodes/node.h"

enum { HEAD = 4, STREAM_LIMIT = 1 << 20 };

/* A JPEG stream may have two codes for a category; then another stream comes back, and the caller finds it. */
static bool must_come_back(const struct tsr_node *kind)
{
    return kind == &tsr_node_rle;
}

static void read_any(const struct tsr_node *kind, const struct tsr_image *image, uint8_t *raster,
                     const uint8_t *stream, size_t size)
{
    struct tsr_bytes residue = {.limit = STREAM_LIMIT}, again = {.limit = size};
    struct tsr_error error;
    const enum tsr_status status = tsr_node_split(kind, image, stream, size, raster, &residue, &error);
    fuzz_expect_status(status, &error);
    if (status == TSR_OK) {
        uint8_t *copy = fuzz_copy(residue.bytes, residue.size);
        const enum tsr_status written = tsr_node_join(kind, image, raster, copy, residue.size, &again, &error);
        fuzz_expect_status(written, &error);
        const bool is_same =
            written == TSR_OK && again.size == size && (size == 0 || memcmp(again.bytes, stream, size) == 0);
        FUZZ_PROMISE(is_same || !must_come_back(kind), "another stream came back");
        free(copy);
    }
    tsr_bytes_free(&residue);
    tsr_bytes_free(&again);
}

static void write_any(const struct tsr_node *kind, const struct tsr_image *image, const uint8_t *raster,
                      const uint8_t *residue, size_t size)
{
    struct tsr_bytes stream = {.limit = STREAM_LIMIT};
    struct tsr_error error;
    const enum tsr_status status = tsr_node_join(kind, image, raster, residue, size, &stream, &error);
    fuzz_expect_status(status, &error);
    FUZZ_PROMISE(stream.size <= stream.limit, "%zu bytes", stream.size);
    tsr_bytes_free(&stream);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t bits[] = {8, 16, 32, 1};
    if (size < HEAD) return 0;
    const struct tsr_node *kind = data[0] & 1 ? &tsr_node_jpeg_lossless : &tsr_node_rle;
    struct tsr_image image = {.columns = 1u + data[1],
                              .rows = 1u + data[2] % 64,
                              .frames = 1,
                              .components = (uint8_t)(1 + data[3] % 4),
                              .bits_allocated = bits[data[3] / 4 % 4],
                              .planar = data[3] & 16};
    image.bits_stored = image.bits_allocated;
    image.high_bit = (uint8_t)(image.bits_stored - 1);
    const size_t raster_size = ((size_t)image.columns * image.rows * image.components * image.bits_allocated + 7) / 8;
    uint8_t *raster = fuzz_alloc(raster_size), *bytes = fuzz_copy(data + HEAD, size - HEAD);
    memset(raster, 0, raster_size);
    if (data[0] & 2) {
        size_t known = size - HEAD > 0 ? bytes[0] : 0;
        if (known > size - HEAD) known = size - HEAD;
        memcpy(raster, bytes, known < raster_size ? known : raster_size);
        uint8_t *residue = fuzz_copy(bytes + known, size - HEAD - known);
        write_any(kind, &image, raster, residue, size - HEAD - known);
        free(residue);
    } else {
        read_any(kind, &image, raster, bytes, size - HEAD);
    }
    free(bytes);
    free(raster);
    return 0;
}

/* Seeds do not fit an image by chance: now and then the image is what the stream says. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    struct fuzz_random random = {seed};
    size = LLVMFuzzerMutate(data, size, max_size);
    if (size < HEAD + 16 || fuzz_below(&random, 2)) return size;
    const uint8_t *stream = data + HEAD;
    if (data[0] & 2) return size;
    if (data[0] & 1) { /* the frame header */
        for (size_t i = 0; i + 10 < size - HEAD; i++) {
            if (stream[i] != 0xff || stream[i + 1] != 0xc3) continue;
            data[1] = (uint8_t)(stream[i + 8] - 1);
            data[2] = (uint8_t)(stream[i + 6] - 1) % 64;
            data[3] = (uint8_t)((data[3] & 16) | ((stream[i + 9] - 1) & 3) | (stream[i + 4] > 8 ? 4 : 0));
            break;
        }
    } else if (stream[0] >= 1 && stream[0] <= 4) {
        data[3] = (uint8_t)((data[3] & 16) | (stream[0] - 1));
    }
    return size;
}
