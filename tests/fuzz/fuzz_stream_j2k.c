/* Streams of the kind "jpeg-2000". Any bytes as a stream are refused or read without harm, and what is read is written
 * or refused. Any bytes as a residue give a stream or TSR_ERROR_CORRUPT.
 *
 * The input: mode, columns, rows, components and bits, then the stream; or a number of bytes, a raster's beginning of
 * that many, and a residue. The size in a stream's SIZ is made to be the image's, where there is one tile. */
#include "fuzz_support.h"

#include <stdlib.h>
#include <string.h>

#include "io/nodes/node.h"

enum { HEAD = 4, STREAM_LIMIT = 1 << 20 };

/* Packet headers that are not those of FORMAT.md are read, but another stream comes back: the caller compares. */
static void read_any(const struct tsr_image *image, uint8_t *raster, const uint8_t *stream, size_t size)
{
    struct tsr_bytes residue = {.limit = STREAM_LIMIT}, again = {.limit = STREAM_LIMIT};
    struct tsr_error error;
    const enum tsr_status status = tsr_node_split(&tsr_node_j2k, image, stream, size, raster, &residue, &error);
    fuzz_expect_status(status, &error);
    if (status == TSR_OK) {
        uint8_t *copy = fuzz_copy(residue.bytes, residue.size);
        fuzz_expect_status(tsr_node_join(&tsr_node_j2k, image, raster, copy, residue.size, &again, &error), &error);
        free(copy);
    }
    tsr_bytes_free(&residue);
    tsr_bytes_free(&again);
}

static void write_any(const struct tsr_image *image, const uint8_t *raster, const uint8_t *residue, size_t size)
{
    struct tsr_bytes stream = {.limit = STREAM_LIMIT};
    struct tsr_error error;
    fuzz_expect_status(tsr_node_join(&tsr_node_j2k, image, raster, residue, size, &stream, &error), &error);
    FUZZ_PROMISE(stream.size <= stream.limit, "%zu bytes", stream.size);
    tsr_bytes_free(&stream);
}

/* Sets the size and the number of components where bytes begin with SOC and SIZ. */
static void fit_size(uint8_t *bytes, size_t size, const struct tsr_image *image)
{
    static const uint8_t begin[] = {0xff, 0x4f, 0xff, 0x51};
    if (size < 42 || memcmp(bytes, begin, sizeof begin) != 0) return;
    bytes[8] = bytes[9] = bytes[10] = bytes[12] = bytes[13] = bytes[14] = 0;
    memset(bytes + 16, 0, 8);
    bytes[11] = (uint8_t)image->columns;
    bytes[15] = (uint8_t)image->rows;
    bytes[40] = 0;
    bytes[41] = image->components;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < HEAD + 1) return 0;
    struct tsr_image image = {.columns = 1u + data[1] % 255,
                              .rows = 1u + data[2] % 64,
                              .frames = 1,
                              .components = (uint8_t)(1 + data[3] % 4),
                              .bits_allocated = data[3] & 4 ? 16 : 8,
                              .planar = data[3] & 8};
    image.bits_stored = image.bits_allocated;
    image.high_bit = (uint8_t)(image.bits_stored - 1);
    const size_t raster_size = (size_t)image.columns * image.rows * image.components * image.bits_allocated / 8;
    uint8_t *raster = fuzz_alloc(raster_size), *bytes = fuzz_copy(data + HEAD, size - HEAD);
    const size_t rest = size - HEAD;
    memset(raster, 0, raster_size);
    if (data[0] % 2 == 0) {
        if (data[0] % 4 == 0) fit_size(bytes, rest, &image);
        read_any(&image, raster, bytes, rest);
    } else {
        const size_t known = bytes[0] < rest ? bytes[0] : rest;
        memcpy(raster, bytes, known < raster_size ? known : raster_size);
        uint8_t *residue = fuzz_copy(bytes + known, rest - known);
        write_any(&image, raster, residue, rest - known);
        free(residue);
    }
    free(raster);
    free(bytes);
    return 0;
}
