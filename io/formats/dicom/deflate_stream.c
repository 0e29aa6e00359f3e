/* Raw deflate streams through zlib. */
#include "deflate_stream.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { RAW_WINDOW = -15, MEMORY_LEVEL = 8, CHUNK = 1 << 16 };

/* Bytes of a z_stream's next piece. */
static uInt piece(uint64_t left)
{
    return left < CHUNK ? (uInt)left : CHUNK;
}

static enum tsr_status fail_stream(int result, struct tsr_error *error)
{
    if (result == Z_MEM_ERROR) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to inflate");
    return tsr_fail(error, TSR_ERROR_CORRUPT,
                    result == Z_BUF_ERROR ? "its deflate stream ends early" : "its deflate stream is damaged");
}

struct measuring {
    z_stream z;
    uint8_t in[CHUNK], out[CHUNK];
};

static enum tsr_status measure(struct measuring *m, struct tsr_input *input, uint64_t start, uint64_t limit,
                               uint8_t *first, size_t *first_size, struct tsr_stream_size *size,
                               struct tsr_error *error)
{
    const uint64_t left = tsr_input_size(input) - start;
    const size_t room = *first_size;
    uint64_t read = 0;
    int result = Z_OK;
    *size = (struct tsr_stream_size){0, 0};
    *first_size = 0;
    while (result != Z_STREAM_END) {
        if (m->z.avail_in == 0) {
            m->z.next_in = m->in;
            m->z.avail_in = piece(left - read);
            TSR_TRY(tsr_input_read(input, start + read, m->in, m->z.avail_in, error));
            read += m->z.avail_in;
        }
        m->z.next_out = m->out;
        m->z.avail_out = CHUNK;
        result = inflate(&m->z, Z_NO_FLUSH);
        const size_t gave = CHUNK - m->z.avail_out, kept = gave < room - *first_size ? gave : room - *first_size;
        if (result != Z_OK && result != Z_STREAM_END) return fail_stream(result, error);
        if (kept > 0) memcpy(first + *first_size, m->out, kept);
        *first_size += kept;
        size->inflated += gave;
        if (size->inflated > limit)
            return tsr_fail(error, TSR_ERROR_CORRUPT, "it inflates to more than %llu bytes", (unsigned long long)limit);
    }
    size->stream = read - m->z.avail_in;
    return TSR_OK;
}

enum tsr_status tsr_measure_stream(struct tsr_input *input, uint64_t start, uint64_t limit, uint8_t *first,
                                   size_t *first_size, struct tsr_stream_size *size, struct tsr_error *error)
{
    struct measuring *m = calloc(1, sizeof *m);
    if (!m || inflateInit2(&m->z, RAW_WINDOW) != Z_OK) {
        free(m);
        return fail_stream(Z_MEM_ERROR, error);
    }
    const enum tsr_status status = measure(m, input, start, limit, first, first_size, size, error);
    inflateEnd(&m->z);
    free(m);
    return status;
}

enum tsr_status tsr_inflate_stream(const uint8_t *stream, const struct tsr_stream_size *size, uint8_t *inflated,
                                   struct tsr_error *error)
{
    z_stream z = {0};
    uint64_t read = 0, filled = 0;
    uint8_t end; /* the place after the last byte, with room for 0 bytes */
    int result = Z_OK;
    if (inflateInit2(&z, RAW_WINDOW) != Z_OK) return fail_stream(Z_MEM_ERROR, error);
    while (result == Z_OK) {
        const uInt in = piece(size->stream - read), out = piece(size->inflated - filled);
        z.next_in = (Bytef *)(uintptr_t)(stream + read);
        z.avail_in = in;
        z.next_out = out > 0 ? inflated + filled : &end;
        z.avail_out = out;
        result = inflate(&z, Z_NO_FLUSH);
        read += in - z.avail_in;
        filled += out - z.avail_out;
    }
    inflateEnd(&z);
    if (result == Z_STREAM_END && read == size->stream && filled == size->inflated) return TSR_OK;
    return fail_stream(result, error);
}

static enum tsr_status try_level(int level, const uint8_t *bytes, size_t size, const uint8_t *stream,
                                 size_t stream_size, bool *reproduces, struct tsr_error *error)
{
    uint8_t chunk[CHUNK];
    z_stream z = {0};
    size_t read = 0, same = 0;
    int result = Z_OK;
    if (deflateInit2(&z, level, Z_DEFLATED, RAW_WINDOW, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
        return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to deflate");
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
    *reproduces = result == Z_STREAM_END && same == stream_size;
    return TSR_OK;
}

enum tsr_status tsr_find_deflate_level(const uint8_t *bytes, size_t size, const uint8_t *stream, size_t stream_size,
                                       int *level, struct tsr_error *error)
{
    static const int levels[] = {6, 9, 1, 5, 7, 8, 4, 3, 2}; /* the most frequent levels first */
    bool reproduces = false;
    *level = 0;
    for (size_t i = 0; i < sizeof levels / sizeof levels[0] && !reproduces; i++) {
        TSR_TRY(try_level(levels[i], bytes, size, stream, stream_size, &reproduces, error));
        if (reproduces) *level = levels[i];
    }
    return TSR_OK;
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
            return tsr_fail(error, TSR_ERROR_INTERNAL, "zlib failed with error %d", result);
        at += in - d->z.avail_in;
        size -= in - d->z.avail_in;
        TSR_TRY(tsr_output_write(d->output, chunk, CHUNK - d->z.avail_out, error));
    } while (size > 0 || d->z.avail_out == 0 || (end && result != Z_STREAM_END));
    return TSR_OK;
}
