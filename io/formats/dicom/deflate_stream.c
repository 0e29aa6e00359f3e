/* The size of raw deflate streams, by zlib. What makes their bytes again is ours: io/nodes/deflate. */
#include "deflate_stream.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { RAW_WINDOW = -15, CHUNK = 1 << 16 };

/* Bytes of a z_stream's next piece. */
static uInt piece(uint64_t left)
{
    return left < CHUNK ? (uInt)left : CHUNK;
}

/* at: the byte of the input. */
static enum tsr_status fail_stream(int result, uint64_t at, struct tsr_error *error)
{
    if (result == Z_MEM_ERROR) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to inflate");
    return tsr_fail_at(error, TSR_ERROR_CORRUPT, at, "its deflate stream %s byte %llu",
                       result == Z_BUF_ERROR ? "ends early, at" : "is damaged near", (unsigned long long)at);
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
        if (result != Z_OK && result != Z_STREAM_END) return fail_stream(result, start + read - m->z.avail_in, error);
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
        return fail_stream(Z_MEM_ERROR, 0, error);
    }
    const enum tsr_status status = measure(m, input, start, limit, first, first_size, size, error);
    inflateEnd(&m->z);
    free(m);
    return status;
}
