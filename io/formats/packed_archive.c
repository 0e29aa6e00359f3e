/* The members of archives: of ZIP (APPNOTE.TXT, 4.3) by its central directory, or where that is lost by the headers
 * before them; of TAR (POSIX.1, pax interchange format) by their headers. What they say is believed only as a bound. */
#include "packed_archive.h"

#include <stdlib.h>
#include <string.h>

#include "io/bytes/cursor.h"
#include "io/nodes/deflate/deflate.h"

enum { LOCAL = 30, CENTRAL = 46, END = 22, MOST_COMMENT = 0xffff, DEFLATED = 8, ENCRYPTED = 1 };
enum { LOCATOR = 20, END64 = 56, SIZES64 = 1 }; /* ZIP64: 4.3.14, 4.3.15, 4.5.3 */
enum { BLOCK = 512, SIZE_AT = 124, SIZE_DIGITS = 12, TYPE_AT = 156, MAGIC_AT = 257 };
enum { WINDOW = 1 << 16 };

/* An archive that is listed, and some of its bytes. */
struct listing {
    struct tsr_input *input;
    uint64_t size;
    struct tsr_archive *archive;
    uint64_t at;
    size_t held;
    uint8_t bytes[WINDOW];
    enum tsr_status status;
    struct tsr_error *error;
};

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

/* Bytes from an offset on, which stay until the next look; if they must be read, some more are. NULL: there are not so
 * many, or reading fails. */
static const uint8_t *look(struct listing *l, uint64_t at, size_t size, size_t more)
{
    if (l->status != TSR_OK || at > l->size || size > l->size - at) return NULL;
    if (at < l->at || at - l->at > l->held || size > l->held - (at - l->at)) {
        const uint64_t left = l->size - at;
        l->at = at;
        l->held = size + more > WINDOW ? WINDOW : size + more;
        if (l->held > left) l->held = (size_t)left;
        l->status = tsr_input_peek(l->input, at, l->bytes, l->held, l->error);
    }
    return l->status == TSR_OK ? l->bytes + (at - l->at) : NULL;
}

enum tsr_status tsr_list_member(struct tsr_input *input, struct tsr_archive *a, const struct tsr_archive_member *member,
                                struct tsr_error *error)
{
    enum { FIRST = 1024 };
    if (a->count == TSR_ARCHIVE_MEMBERS) return TSR_OK;
    if (a->count == a->capacity) {
        const size_t capacity = a->capacity > 0 ? 2 * a->capacity : FIRST;
        TSR_TRY(tsr_input_claim_header(input, capacity * sizeof *a->member, error));
        struct tsr_archive_member *const grown = realloc(a->member, capacity * sizeof *grown);
        if (!grown) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for the list of an archive's files");
        a->member = grown;
        a->capacity = capacity;
    }
    a->member[a->count++] = *member;
    return TSR_OK;
}

static void add(struct listing *l, const struct tsr_archive_member *member)
{
    if (l->status == TSR_OK) l->status = tsr_list_member(l->input, l->archive, member, l->error);
}

/* ---- ZIP ---------------------------------------------------------------------------------------------------- */

/* Numbers of 8 bytes in an extra field, instead of those of 4 bytes that are all ones, in this order. */
static void get_sizes64(struct listing *l, uint64_t at, size_t size, uint64_t *const number[3])
{
    const uint8_t *const extra = look(l, at, size, 0);
    struct tsr_cursor c = {extra, extra ? size : 0, 0, false};
    while (c.size - c.at >= 4 && get_u16(c.bytes + c.at) != SIZES64) {
        const size_t skipped = 4 + get_u16(c.bytes + c.at + 2);
        c.at += skipped < c.size - c.at ? skipped : c.size - c.at;
    }
    c.at += 4;
    for (int i = 0; i < 3 && c.at < c.size; i++) {
        if (!number[i] || *number[i] != UINT32_MAX) continue;
        const uint8_t *const bytes = tsr_get_bytes(&c, 8);
        if (bytes) *number[i] = tsr_read_u64(bytes);
    }
}

/* The member whose local header stands at a byte. told: what the directory tells of it; NULL: the local header does.
 * *end: after the member, or after its header where its size is not known. False: there is none. */
static bool get_local(struct listing *l, uint64_t at, const struct tsr_archive_member *told,
                      struct tsr_archive_member *member, uint64_t *end)
{
    const uint8_t *const h = look(l, at, LOCAL, told ? 0 : WINDOW);
    *end = at + 1;
    if (!h || !tsr_begins_zip(h, LOCAL)) return false;
    const unsigned flags = get_u16(h + 6), method = get_u16(h + 8), extra = get_u16(h + 28);
    const uint64_t names = at + LOCAL + get_u16(h + 26);
    struct tsr_archive_member m = {.start = names + extra,
                                   .kind = method == DEFLATED ? TSR_FOUND_DEFLATE : TSR_FOUND_FILE};
    m.size = told ? told->size : tsr_read_u32(h + 18);
    m.plain = told ? told->plain : tsr_read_u32(h + 22);
    if (m.start >= l->size || (flags & ENCRYPTED) || (method != DEFLATED && method != 0)) return false;
    if (!told && extra > 0) get_sizes64(l, names, extra, (uint64_t *const[]){&m.plain, &m.size, NULL});
    const bool is_told = m.size > 0 && m.size <= l->size - m.start && m.plain <= TSR_DEFLATE_RATIO * m.size;
    if (!is_told && method != DEFLATED) return false;
    if (!is_told) m.size = l->size - m.start;
    if (!is_told) m.plain = 0;
    *end = is_told ? m.start + m.size : m.start;
    *member = m;
    return true;
}

static int by_start(const void *a, const void *b)
{
    const uint64_t first = ((const struct tsr_archive_member *)a)->start,
                   second = ((const struct tsr_archive_member *)b)->start;
    return first < second ? -1 : first > second;
}

/* Where the central directory begins; the archive's size: there is none. */
static uint64_t directory_of(struct listing *l)
{
    for (uint64_t back = END; back <= l->size && back <= END + MOST_COMMENT; back++) {
        const uint64_t at = l->size - back;
        const uint64_t first = at > WINDOW / 2 ? at - WINDOW / 2 : 0; /* the window is filled backwards */
        if (at < l->at || at - l->at + END > l->held) look(l, first, (size_t)(at - first) + END, 0);
        const uint8_t *const end = look(l, at, END, 0);
        if (!end) return l->size;
        if (memcmp(end, "PK\5\6", 4) != 0 || get_u16(end + 20) > back - END) continue;
        const uint64_t begin = tsr_read_u32(end + 16);
        const uint8_t *const locator = begin == UINT32_MAX && at >= LOCATOR ? look(l, at - LOCATOR, LOCATOR, 0) : NULL;
        if (!locator || memcmp(locator, "PK\6\7", 4) != 0) return begin;
        const uint8_t *const end64 = look(l, tsr_read_u64(locator + 8), END64, 0);
        return end64 && memcmp(end64, "PK\6\6", 4) == 0 ? tsr_read_u64(end64 + 48) : begin;
    }
    return l->size;
}

/* Lists what the directory tells: each member where its local header is. Then looks at these, in their order. */
static void list_directory(struct listing *l)
{
    struct tsr_archive *const a = l->archive;
    const uint8_t *h;
    for (uint64_t at = directory_of(l); (h = look(l, at, CENTRAL, WINDOW)) && memcmp(h, "PK\1\2", 4) == 0;) {
        struct tsr_archive_member m = {
            .start = tsr_read_u32(h + 42), .size = tsr_read_u32(h + 20), .plain = tsr_read_u32(h + 24)};
        const unsigned name = get_u16(h + 28), extra = get_u16(h + 30), comment = get_u16(h + 32);
        if (extra > 0) get_sizes64(l, at + CENTRAL + name, extra, (uint64_t *const[]){&m.plain, &m.size, &m.start});
        if (m.start < l->size && m.size > 0) add(l, &m);
        at += CENTRAL + name + extra + comment;
    }
    if (a->count > 0) qsort(a->member, a->count, sizeof *a->member, by_start);
    const size_t count = a->count;
    a->count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct tsr_archive_member told = a->member[i];
        uint64_t end;
        if (get_local(l, told.start, &told, &a->member[a->count], &end)) a->count++;
    }
    if (a->count > 0) qsort(a->member, a->count, sizeof *a->member, by_start);
}

/* Lists members by their local headers, wherever they are. */
static void list_locals(struct listing *l)
{
    const uint8_t *bytes;
    for (uint64_t at = 0; (bytes = look(l, at, 4, WINDOW)) != NULL;) {
        const size_t there = l->held - (size_t)(at - l->at) - 3;
        const uint8_t *const found = memchr(bytes, 'P', there);
        struct tsr_archive_member m;
        at += found ? (size_t)(found - bytes) : there;
        if (found && get_local(l, at, NULL, &m, &at)) add(l, &m);
    }
}

static void list_zip(struct listing *l)
{
    list_directory(l);
    if (l->archive->count == 0) list_locals(l);
}

/* ---- TAR ---------------------------------------------------------------------------------------------------- */

/* The size of a member, in octal digits or, where the first bit is set, in binary; UINT64_MAX: it is not told so. */
static uint64_t tar_size(const uint8_t *header)
{
    const uint8_t *const digits = header + SIZE_AT;
    uint64_t size = 0;
    if (digits[0] == 0x80) {
        for (int i = 1; i < SIZE_DIGITS; i++) size = size >> 55 ? UINT64_MAX >> 8 : size << 8 | digits[i];
        return size;
    }
    for (int i = 0; i < SIZE_DIGITS; i++) {
        if (digits[i] == 0 || digits[i] == ' ') break;
        if (digits[i] < '0' || digits[i] > '7') return UINT64_MAX;
        size = size * 8 + (digits[i] - '0');
    }
    return size;
}

static void list_tar(struct listing *l)
{
    const uint8_t *header;
    for (uint64_t at = 0; (header = look(l, at, BLOCK, 0)) && tsr_begins_tar(header, BLOCK);) {
        const uint64_t bytes = tar_size(header), left = l->size - at - BLOCK;
        const uint8_t type = header[TYPE_AT];
        const struct tsr_archive_member m = {
            .start = at + BLOCK, .size = bytes, .plain = bytes, .kind = TSR_FOUND_FILE};
        if (bytes > left) break;
        if (bytes > 0 && (type == '0' || type == 0)) add(l, &m);
        const uint64_t blocks = (bytes + BLOCK - 1) / BLOCK * BLOCK;
        if (blocks >= left) break;
        at += BLOCK + blocks;
    }
}

enum tsr_status tsr_list_archive(struct tsr_input *input, struct tsr_archive *archive, struct tsr_error *error)
{
    struct listing *const l = calloc(1, sizeof *l);
    *archive = (struct tsr_archive){0};
    if (!l) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for the list of an archive's files");
    l->input = input;
    l->size = tsr_input_size(input);
    l->archive = archive;
    l->error = error;
    const size_t first = l->size < BLOCK ? (size_t)l->size : BLOCK;
    const uint8_t *const head = look(l, 0, first, 0);
    if (head && tsr_begins_zip(head, first))
        list_zip(l);
    else if (head && tsr_begins_tar(head, first))
        list_tar(l);
    const enum tsr_status status = l->status;
    free(l);
    if (status != TSR_OK) tsr_forget_archive(archive);
    return status;
}

void tsr_forget_archive(struct tsr_archive *archive)
{
    free(archive->member);
    *archive = (struct tsr_archive){0};
}
