/* The members of archives: of ZIP (APPNOTE.TXT, 4.3) by its central directory, or where that is lost by the headers
 * before them; of TAR (POSIX.1, pax interchange format) by their headers. What they say is believed only as a bound. */
#include "packed_archive.h"

#include <stdlib.h>
#include <string.h>

#include "io/bytes/cursor.h"
#include "io/nodes/deflate/deflate.h"

enum { LOCAL = 30, CENTRAL = 46, END = 22, MOST_COMMENT = 0xffff, DEFLATED = 8, ENCRYPTED = 1 };
enum { BLOCK = 512, SIZE_AT = 124, SIZE_DIGITS = 12, TYPE_AT = 156, MAGIC_AT = 257 };

static unsigned get_u16(const uint8_t *bytes)
{
    return (unsigned)bytes[0] | (unsigned)bytes[1] << 8;
}

bool tsr_begins_zip(const uint8_t *file, size_t size)
{
    return size >= 4 && memcmp(file, "PK\3\4", 4) == 0;
}

bool tsr_begins_tar(const uint8_t *file, size_t size)
{
    return size >= MAGIC_AT + 5 && memcmp(file + MAGIC_AT, "ustar", 5) == 0;
}

static enum tsr_status add(struct tsr_archive *a, const struct tsr_archive_member *member, struct tsr_error *error)
{
    if (a->count == TSR_ARCHIVE_MEMBERS) return TSR_OK;
    if (a->count % 256 == 0) {
        struct tsr_archive_member *const grown = realloc(a->member, (a->count + 256) * sizeof *grown);
        if (!grown) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for the list of an archive's files");
        a->member = grown;
    }
    a->member[a->count++] = *member;
    return TSR_OK;
}

/* ---- ZIP ---------------------------------------------------------------------------------------------------- */

/* Adds the member whose local header stands at a byte. stored: its bytes, as another header tells; 0: this one does, if
 * any. *end: after the member, or after its header where its size is not known. */
static enum tsr_status add_local(struct tsr_archive *a, const uint8_t *file, size_t size, size_t at, uint64_t stored,
                                 uint64_t plain, size_t *end, struct tsr_error *error)
{
    const uint8_t *const h = file + at;
    *end = at + 1;
    if (size - at < LOCAL || !tsr_begins_zip(h, size - at)) return TSR_OK;
    const unsigned flags = get_u16(h + 6), method = get_u16(h + 8);
    struct tsr_archive_member m = {.start = at + LOCAL + get_u16(h + 26) + get_u16(h + 28),
                                   .is_deflated = method == DEFLATED};
    if (m.start >= size || (flags & ENCRYPTED) || (method != DEFLATED && method != 0)) return TSR_OK;
    if (stored == 0) {
        stored = tsr_read_u32(h + 18);
        plain = tsr_read_u32(h + 22);
    }
    const bool is_told = stored > 0 && stored <= size - m.start && plain <= TSR_DEFLATE_RATIO * stored;
    if (!is_told && !m.is_deflated) return TSR_OK;
    m.size = is_told ? (size_t)stored : size - m.start;
    m.plain = is_told ? plain : 0;
    *end = is_told ? m.start + m.size : m.start;
    return add(a, &m, error);
}

static int by_start(const void *a, const void *b)
{
    const size_t first = ((const struct tsr_archive_member *)a)->start,
                 second = ((const struct tsr_archive_member *)b)->start;
    return first < second ? -1 : first > second;
}

/* The end of central directory record; NULL: there is none. */
static const uint8_t *zip_end(const uint8_t *file, size_t size)
{
    for (size_t back = END; back <= size && back <= END + MOST_COMMENT; back++) {
        const uint8_t *const end = file + size - back;
        if (memcmp(end, "PK\5\6", 4) == 0 && get_u16(end + 20) <= back - END) return end;
    }
    return NULL;
}

static enum tsr_status list_zip(struct tsr_archive *a, const uint8_t *file, size_t size, struct tsr_error *error)
{
    const uint8_t *const end = zip_end(file, size);
    size_t at = end ? tsr_read_u32(end + 16) : size, next;
    while (at < size && size - at >= CENTRAL && memcmp(file + at, "PK\1\2", 4) == 0) {
        const uint8_t *const h = file + at;
        const uint64_t stored = tsr_read_u32(h + 20), plain = tsr_read_u32(h + 24), local = tsr_read_u32(h + 42);
        if (local < size && stored > 0) TSR_TRY(add_local(a, file, size, (size_t)local, stored, plain, &next, error));
        at += CENTRAL + get_u16(h + 28) + get_u16(h + 30) + get_u16(h + 32);
    }
    if (a->count > 0) qsort(a->member, a->count, sizeof *a->member, by_start);
    if (a->count > 0) return TSR_OK;
    for (at = 0; at < size;) {
        const uint8_t *const found = memchr(file + at, 'P', size - at);
        if (!found) break;
        TSR_TRY(add_local(a, file, size, (size_t)(found - file), 0, 0, &next, error));
        at = next;
    }
    return TSR_OK;
}

/* ---- TAR ---------------------------------------------------------------------------------------------------- */

/* The size of a member, in octal digits; UINT64_MAX: it is not told so. */
static uint64_t tar_size(const uint8_t *header)
{
    uint64_t size = 0;
    for (int i = 0; i < SIZE_DIGITS; i++) {
        const uint8_t digit = header[SIZE_AT + i];
        if (digit == 0 || digit == ' ') break;
        if (digit < '0' || digit > '7') return UINT64_MAX;
        size = size * 8 + (digit - '0');
    }
    return size;
}

static enum tsr_status list_tar(struct tsr_archive *a, const uint8_t *file, size_t size, struct tsr_error *error)
{
    for (size_t at = 0; size - at > BLOCK && tsr_begins_tar(file + at, size - at);) {
        const uint64_t bytes = tar_size(file + at), left = size - at - BLOCK;
        const uint8_t type = file[at + TYPE_AT];
        const struct tsr_archive_member m = {.start = at + BLOCK, .size = (size_t)bytes, .plain = bytes};
        if (bytes > left) break;
        if (bytes > 0 && (type == '0' || type == 0)) TSR_TRY(add(a, &m, error));
        const uint64_t blocks = (bytes + BLOCK - 1) / BLOCK * BLOCK;
        if (blocks >= left) break;
        at += BLOCK + (size_t)blocks;
    }
    return TSR_OK;
}

enum tsr_status tsr_list_archive(const uint8_t *file, size_t size, struct tsr_archive *archive, struct tsr_error *error)
{
    *archive = (struct tsr_archive){0};
    const enum tsr_status status = tsr_begins_zip(file, size)   ? list_zip(archive, file, size, error)
                                   : tsr_begins_tar(file, size) ? list_tar(archive, file, size, error)
                                                                : TSR_OK;
    if (status != TSR_OK) tsr_forget_archive(archive);
    return status;
}

void tsr_forget_archive(struct tsr_archive *archive)
{
    free(archive->member);
    *archive = (struct tsr_archive){0};
}
