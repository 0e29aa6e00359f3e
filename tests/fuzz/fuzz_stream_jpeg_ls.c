/* Streams of the kind "jpeg-ls". Any bytes as a stream are refused or read without harm, and what is read is written or
 * refused. Any bytes as a residue give a stream or TSR_ERROR_CORRUPT. Any samples with any valid parameters become a
 * stream that is read again as these samples and this residue.
 *
 * The input: mode, columns, rows, components and bits, then the stream; or a number of bytes, a raster's beginning of
 * that many, and a residue; or parameters (PARAMETERS bytes) and a raster's beginning. */
#include "fuzz_support.h"

#include <stdlib.h>
#include <string.h>

#include "io/nodes/jpeg_ls/jpeg_ls.h"

enum { HEAD = 4, STREAM_LIMIT = 1 << 20, PARAMETERS = 11, HEADER_ROOM = 128 };

/* Bytes that are no canonical codes are read, but another stream comes back: the caller compares. */
static void read_any(const struct tsr_image *image, uint8_t *raster, const uint8_t *stream, size_t size)
{
    struct tsr_bytes residue = {.limit = STREAM_LIMIT}, again = {.limit = STREAM_LIMIT};
    struct tsr_error error;
    const enum tsr_status status = tsr_node_split(&tsr_node_jpeg_ls, image, stream, size, raster, &residue, &error);
    fuzz_expect_status(status, &error);
    if (status == TSR_OK) {
        uint8_t *copy = fuzz_copy(residue.bytes, residue.size);
        const enum tsr_status written = tsr_node_join(&tsr_node_jpeg_ls, image, raster, copy, residue.size, &again, &error);
        FUZZ_PROMISE(written == TSR_OK, "what was read is not written: %s", error.text);
        free(copy);
    }
    tsr_bytes_free(&residue);
    tsr_bytes_free(&again);
}

static void write_any(const struct tsr_image *image, const uint8_t *raster, const uint8_t *residue, size_t size)
{
    struct tsr_bytes stream = {.limit = STREAM_LIMIT};
    struct tsr_error error;
    fuzz_expect_status(tsr_node_join(&tsr_node_jpeg_ls, image, raster, residue, size, &stream, &error), &error);
    FUZZ_PROMISE(stream.size <= stream.limit, "%zu bytes", stream.size);
    tsr_bytes_free(&stream);
}

/* A header with the parameters, and no deviations. Returns the residue's size. */
static size_t make_residue(const struct tsr_image *image, const uint8_t *p, uint8_t *out)
{
    const uint8_t n = image->components, precision = (uint8_t)(2 + p[0] % (image->bits_allocated - 1));
    const uint8_t head[] = {0xff,
                            0xd8,
                            0xff,
                            0xdd,
                            0,
                            4,
                            0,
                            p[1],
                            0xff,
                            0xf8,
                            0,
                            13,
                            1,
                            p[2],
                            p[3],
                            0,
                            p[4],
                            0,
                            p[5],
                            0,
                            p[6],
                            0,
                            p[7],
                            0xff,
                            0xf7,
                            0,
                            (uint8_t)(8 + 3 * n),
                            precision,
                            0,
                            (uint8_t)image->rows,
                            (uint8_t)(image->columns >> 8),
                            (uint8_t)image->columns,
                            n};
    size_t used = 1;
    memcpy(out + used, head, sizeof head);
    used += sizeof head;
    for (uint8_t i = 0; i < n; i++, used += 3) memcpy(out + used, (uint8_t[3]){i, 0x11, 0}, 3);
    memcpy(out + used, (uint8_t[5]){0xff, 0xda, 0, (uint8_t)(6 + 2 * n), n}, 5);
    used += 5;
    for (uint8_t i = 0; i < n; i++, used += 2) memcpy(out + used, (uint8_t[2]){i, 0}, 2);
    memcpy(out + used, (uint8_t[3]){0, (uint8_t)(n == 1 ? 0 : 1 + p[8] % 2), 0}, 3);
    used += 3;
    out[0] = (uint8_t)(used - 1);
    const size_t step = p[1] > 0 ? p[1] : image->rows, zeros = (image->rows + step - 1) / step + 1;
    memset(out + used, 0, zeros);
    return used + zeros;
}

/* Samples above MAXVAL are refused. All others come back. */
static void go_round(const struct tsr_image *image, const uint8_t *p, uint8_t *raster, size_t raster_size)
{
    uint8_t residue[2 * HEADER_ROOM];
    struct tsr_bytes stream = {.limit = STREAM_LIMIT}, again = {.limit = STREAM_LIMIT};
    struct tsr_error error;
    const size_t size = make_residue(image, p, residue);
    const enum tsr_status status = tsr_node_join(&tsr_node_jpeg_ls, image, raster, residue, size, &stream, &error);
    fuzz_expect_status(status, &error);
    if (status == TSR_OK) {
        uint8_t *copy = fuzz_copy(stream.bytes, stream.size), *other = fuzz_alloc(raster_size);
        const enum tsr_status read = tsr_node_split(&tsr_node_jpeg_ls, image, copy, stream.size, other, &again, &error);
        FUZZ_PROMISE(read == TSR_OK, "its own stream is not read: %s", error.text);
        FUZZ_PROMISE(memcmp(raster, other, raster_size) == 0, "other samples");
        FUZZ_PROMISE(again.size == size && memcmp(again.bytes, residue, size) == 0, "another residue");
        free(copy);
        free(other);
    }
    tsr_bytes_free(&stream);
    tsr_bytes_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < HEAD + PARAMETERS) return 0;
    struct tsr_image image = {.columns = 1u + data[1],
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
    if (data[0] % 3 == 0) {
        read_any(&image, raster, bytes, rest);
    } else if (data[0] % 3 == 1) {
        const size_t known = bytes[0] < rest ? bytes[0] : rest;
        memcpy(raster, bytes, known < raster_size ? known : raster_size);
        uint8_t *residue = fuzz_copy(bytes + known, rest - known);
        write_any(&image, raster, residue, rest - known);
        free(residue);
    } else {
        for (size_t i = 0; i < raster_size && i < rest - PARAMETERS; i++) raster[i] = bytes[PARAMETERS + i];
        go_round(&image, bytes, raster, raster_size);
    }
    free(raster);
    free(bytes);
    return 0;
}
