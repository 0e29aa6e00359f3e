/* Bytes that grow; see grown.h. */
#include "grown.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "transform/large_pages.h"

/* Many bytes have large pages: page faults every 4 KiB, of one thread while the others had no work, took 3 % of the
 * time of testing a PNG. */
enum { MANY_BYTES = 2 * TSR_LARGE_PAGE };

struct fresh {
    uint8_t *start, *end;
};

static void clear_part(void *context, unsigned index)
{
    const struct fresh *const f = context;
    uint8_t *const start = f->start + (size_t)index * TSR_LARGE_PAGE;
    const size_t left = (size_t)(f->end - start);
    tsr_clear_pages(start, left < TSR_LARGE_PAGE ? left : TSR_LARGE_PAGE);
}

enum tsr_status tsr_bytes_reserve(struct tsr_bytes *bytes, size_t size, struct tsr_error *error)
{
    if (size > bytes->limit - bytes->size)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "it takes more than %zu bytes", bytes->limit);
    if (size <= bytes->capacity - bytes->size) return TSR_OK;
    enum { FIRST = 256 };
    size_t capacity = bytes->capacity ? bytes->capacity : size > FIRST ? size : FIRST;
    while (capacity - bytes->size < size) capacity = capacity > bytes->limit / 2 ? bytes->limit : 2 * capacity;
    uint8_t *grown = realloc(bytes->bytes, capacity);
    if (!grown) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu bytes", capacity);
    if (capacity >= MANY_BYTES) tsr_prefer_large_pages(grown, capacity);
    bytes->bytes = grown;
    bytes->capacity = capacity;
    return TSR_OK;
}

enum tsr_status tsr_bytes_reserve_by(const struct tsr_crew *crew, struct tsr_bytes *bytes, size_t size,
                                     struct tsr_error *error)
{
    TSR_TRY(tsr_bytes_reserve(bytes, size, error));
    if (size < MANY_BYTES || size / TSR_LARGE_PAGE >= UINT_MAX || !crew || !crew->run) return TSR_OK;
    uint8_t *const at = bytes->bytes + bytes->size;
    struct fresh f = {at + (TSR_LARGE_PAGE - (uintptr_t)at % TSR_LARGE_PAGE), at + size};
    crew->run(crew->pool, clear_part, &f, (unsigned)((size_t)(f.end - f.start - 1) / TSR_LARGE_PAGE + 1));
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

enum tsr_status tsr_bytes_put_u8(struct tsr_bytes *bytes, uint8_t value, struct tsr_error *error)
{
    return tsr_bytes_put(bytes, &value, 1, error);
}

enum tsr_status tsr_bytes_put_list(struct tsr_bytes *bytes, const uint8_t *more, size_t size, unsigned offset,
                                   struct tsr_error *error)
{
    TSR_TRY(tsr_bytes_put_varint(bytes, (uint64_t)size + offset, error));
    return tsr_bytes_put(bytes, more, size, error);
}

enum tsr_status tsr_bytes_put_before(struct tsr_bytes *bytes, const struct tsr_bytes *first, struct tsr_error *error)
{
    TSR_TRY(tsr_bytes_reserve(bytes, first->size, error));
    if (first->size == 0) return TSR_OK;
    if (bytes->size > 0) memmove(bytes->bytes + first->size, bytes->bytes, bytes->size);
    memcpy(bytes->bytes, first->bytes, first->size);
    bytes->size += first->size;
    return TSR_OK;
}

void tsr_bytes_fit(struct tsr_bytes *bytes)
{
    uint8_t *const fit = bytes->size > 0 ? realloc(bytes->bytes, bytes->size) : NULL;
    if (!fit) return;
    bytes->bytes = fit;
    bytes->capacity = bytes->size;
}

void tsr_bytes_free(struct tsr_bytes *bytes)
{
    free(bytes->bytes);
    *bytes = (struct tsr_bytes){.limit = bytes->limit};
}
