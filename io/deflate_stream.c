/* Raw deflate streams through zlib. */
#include "deflate_stream.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { RAW_WINDOW = -15, MEMORY_LEVEL = 8, CHUNK = 1 << 16 };

enum tsr_status tsr_inflate_stream(const uint8_t *stream, size_t size, size_t limit, uint8_t **inflated,
                                   size_t *inflated_size, size_t *used, struct tsr_error *error)
{
    z_stream z = {0};
    size_t capacity = size < limit / 4 ? 4 * size + CHUNK : limit, filled = 0, read = 0;
    *inflated = NULL;
    if (inflateInit2(&z, RAW_WINDOW) != Z_OK) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to inflate");
    uint8_t *bytes = malloc(capacity);
    int result = Z_OK;
    enum tsr_status status = bytes ? TSR_OK : tsr_fail(error, TSR_ERROR_LIMIT, "no memory to inflate");
    while (status == TSR_OK && result != Z_STREAM_END) {
        if (filled == capacity && capacity < limit) {
            capacity = capacity < limit / 2 ? 2 * capacity : limit;
            uint8_t *grown = realloc(bytes, capacity);
            if (!grown)
                status = tsr_fail(error, TSR_ERROR_LIMIT, "no memory to inflate %zu bytes", capacity);
            else
                bytes = grown;
        } else if (filled == capacity) {
            status = tsr_fail(error, TSR_ERROR_CORRUPT, "it inflates to more than %zu bytes", limit);
        }
        if (status != TSR_OK) break;
        const size_t in = size - read < UINT32_MAX ? size - read : UINT32_MAX;
        const size_t out = capacity - filled < UINT32_MAX ? capacity - filled : UINT32_MAX;
        z.next_in = (Bytef *)(uintptr_t)(stream + read);
        z.avail_in = (uInt)in;
        z.next_out = bytes + filled;
        z.avail_out = (uInt)out;
        result = inflate(&z, Z_NO_FLUSH);
        const size_t took = in - z.avail_in, gave = out - z.avail_out;
        read += took;
        filled += gave;
        if (result != Z_OK && result != Z_STREAM_END && !(result == Z_BUF_ERROR && filled == capacity))
            status = tsr_fail(error, TSR_ERROR_CORRUPT, "its deflate stream is damaged");
        else if (result == Z_OK && took == 0 && gave == 0)
            status = tsr_fail(error, TSR_ERROR_CORRUPT, "its deflate stream ends early");
    }
    inflateEnd(&z);
    if (status != TSR_OK) {
        free(bytes);
        return status;
    }
    *inflated = bytes;
    *inflated_size = filled;
    *used = read;
    return TSR_OK;
}

static bool level_reproduces(int level, const uint8_t *bytes, size_t size, const uint8_t *stream, size_t stream_size)
{
    uint8_t chunk[CHUNK];
    z_stream z = {0};
    size_t read = 0, same = 0;
    int result = Z_OK;
    if (deflateInit2(&z, level, Z_DEFLATED, RAW_WINDOW, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK) return false;
    while (result == Z_OK) {
        const size_t in = size - read < CHUNK ? size - read : CHUNK;
        z.next_in = (Bytef *)(uintptr_t)(bytes + read);
        z.avail_in = (uInt)in;
        z.next_out = chunk;
        z.avail_out = CHUNK;
        result = deflate(&z, read + in == size ? Z_FINISH : Z_NO_FLUSH);
        read += in - z.avail_in;
        const size_t out = CHUNK - z.avail_out;
        if (out > stream_size - same || memcmp(chunk, stream + same, out) != 0) break;
        same += out;
    }
    deflateEnd(&z);
    return result == Z_STREAM_END && same == stream_size;
}

int tsr_find_deflate_level(const uint8_t *bytes, size_t size, const uint8_t *stream, size_t stream_size)
{
    static const int levels[] = {6, 9, 1, 5, 7, 8, 4, 3, 2}; /* the usual ones first */
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++)
        if (level_reproduces(levels[i], bytes, size, stream, stream_size)) return levels[i];
    return 0;
}

struct tsr_deflater {
    z_stream z;
    struct tsr_output *output;
};

struct tsr_deflater *tsr_deflater_create(int level, struct tsr_output *output)
{
    struct tsr_deflater *d = calloc(1, sizeof *d);
    if (!d) return NULL;
    d->output = output;
    if (level < 1 || level > 9 ||
        deflateInit2(&d->z, level, Z_DEFLATED, RAW_WINDOW, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK) {
        free(d);
        return NULL;
    }
    return d;
}

void tsr_deflater_free(struct tsr_deflater *deflater)
{
    if (!deflater) return;
    deflateEnd(&deflater->z);
    free(deflater);
}

enum tsr_status tsr_deflater_put(struct tsr_deflater *d, const void *bytes, size_t size, bool end,
                                 struct tsr_error *error)
{
    uint8_t chunk[CHUNK];
    const uint8_t *at = bytes;
    int result = Z_OK;
    do {
        const size_t in = size < CHUNK ? size : CHUNK;
        d->z.next_in = (Bytef *)(uintptr_t)at;
        d->z.avail_in = (uInt)in;
        d->z.next_out = chunk;
        d->z.avail_out = CHUNK;
        result = deflate(&d->z, end && in == size ? Z_FINISH : Z_NO_FLUSH);
        if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
            return tsr_fail(error, TSR_ERROR_INTERNAL, "zlib: error %d", result);
        at += in - d->z.avail_in;
        size -= in - d->z.avail_in;
        TSR_TRY(tsr_output_write(d->output, chunk, CHUNK - d->z.avail_out, error));
    } while (size > 0 || d->z.avail_out == 0 || (end && result != Z_STREAM_END));
    return TSR_OK;
}
