/* Bytes that grow, and the table of streams. See stream.h. */
#define _DEFAULT_SOURCE /* madvise */
#include "stream.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "io/container/section.h"
#include "io/input.h"

enum { SMALL_PAGE = 4 << 10, LARGE_PAGE = 2 << 20, MANY_BYTES = 2 * LARGE_PAGE };

/* Many bytes have large pages where Linux gives them: page faults every 4 KiB, of one thread while the others had no
 * work, took 3 % of the time of testing a PNG. */
static void prefer_large_pages(uint8_t *bytes, size_t size)
{
#if defined(MADV_HUGEPAGE)
    const uintptr_t start = ((uintptr_t)bytes + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE,
                    end = ((uintptr_t)bytes + size) / LARGE_PAGE * LARGE_PAGE;
    if (size >= MANY_BYTES && end > start) /* if this fails, the pages are small */
        madvise((void *)start, end - start, MADV_HUGEPAGE);
#else
    (void)bytes, (void)size;
#endif
}

struct fresh {
    uintptr_t start, end;
};

/* Linux clears the pages of a part now, and not at their first touch. What is in them stays. */
static void populate(void *context, unsigned index)
{
#if defined(MADV_POPULATE_WRITE)
    const struct fresh *const f = context;
    const uintptr_t start = f->start + (uintptr_t)index * LARGE_PAGE, left = f->end - start;
    madvise((void *)start, left < LARGE_PAGE ? left : LARGE_PAGE, MADV_POPULATE_WRITE); /* or at their first touch */
#else
    (void)context, (void)index;
#endif
}

enum tsr_status tsr_bytes_reserve(struct tsr_bytes *bytes, size_t size, struct tsr_error *error)
{
    if (size > bytes->limit - bytes->size)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "more than %zu bytes are to be made", bytes->limit);
    if (size <= bytes->capacity - bytes->size) return TSR_OK;
    size_t capacity = bytes->capacity ? bytes->capacity : 256;
    while (capacity - bytes->size < size) capacity = capacity > bytes->limit / 2 ? bytes->limit : 2 * capacity;
    uint8_t *grown = realloc(bytes->bytes, capacity);
    if (!grown) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu bytes", capacity);
    prefer_large_pages(grown, capacity);
    bytes->bytes = grown;
    bytes->capacity = capacity;
    return TSR_OK;
}

enum tsr_status tsr_bytes_reserve_by(const struct tsr_crew *crew, struct tsr_bytes *bytes, size_t size,
                                     struct tsr_error *error)
{
    TSR_TRY(tsr_bytes_reserve(bytes, size, error));
    if (size < MANY_BYTES || size / LARGE_PAGE >= UINT_MAX || !crew || !crew->run) return TSR_OK;
    struct fresh f = {(uintptr_t)(bytes->bytes + bytes->size) / LARGE_PAGE * LARGE_PAGE + LARGE_PAGE,
                      (uintptr_t)(bytes->bytes + bytes->size + size) / SMALL_PAGE * SMALL_PAGE};
    crew->run(crew->pool, populate, &f, (unsigned)((f.end - f.start + LARGE_PAGE - 1) / LARGE_PAGE));
    return TSR_OK;
}

enum tsr_status tsr_bytes_put(struct tsr_bytes *bytes, const void *more, size_t size, struct tsr_error *error)
{
    TSR_TRY(tsr_bytes_reserve(bytes, size, error));
    if (size > 0) memcpy(bytes->bytes + bytes->size, more, size);
    bytes->size += size;
    return TSR_OK;
}

enum tsr_status tsr_bytes_put_varint(struct tsr_bytes *bytes, uint64_t value, struct tsr_error *error)
{
    uint8_t varint[TSR_VARINT_LIMIT];
    return tsr_bytes_put(bytes, varint, tsr_put_varint(varint, value), error);
}

void tsr_bytes_free(struct tsr_bytes *bytes)
{
    free(bytes->bytes);
    *bytes = (struct tsr_bytes){.limit = bytes->limit};
}

const struct tsr_stream_kind *const tsr_stream_kinds[] = {
    [TSR_STREAM_RLE] = &tsr_stream_rle,         [TSR_STREAM_JPEG_LOSSLESS] = &tsr_stream_jpeg_lossless,
    [TSR_STREAM_JPEG_LS] = &tsr_stream_jpeg_ls, [TSR_STREAM_DEFLATE] = &tsr_stream_deflate,
    [TSR_STREAM_J2K] = &tsr_stream_j2k,
};
const int tsr_stream_kind_count = sizeof tsr_stream_kinds / sizeof tsr_stream_kinds[0];
