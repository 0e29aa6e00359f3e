/* Deflate streams with bytes around them as plain bytes and a residue, and back: gzip files. GZIP.md. */
#include "gzip.h"

#include <string.h>

#include "io/bytes/crc32.h"
#include "io/bytes/cursor.h"
#include "io/nodes/deflate/deflate.h"

/* ---- Members ------------------------------------------------------------------------------------------------ */

/* Passes a string that ends with 0. */
static bool pass_string(const uint8_t *file, size_t size, size_t *at)
{
    const uint8_t *const end = *at < size ? memchr(file + *at, 0, size - *at) : NULL;
    if (end) *at = (size_t)(end - file) + 1;
    return end != NULL;
}

bool tsr_gzip_stream(const uint8_t *file, size_t size, size_t *at)
{
    enum { CRC = 2, EXTRA = 4, NAME = 8, COMMENT = 16 }; /* RFC 1952, 2.3.1 */
    if (*at > size || size - *at < TSR_GZIP_HEAD + TSR_GZIP_TAIL) return false;
    const uint8_t *const head = file + *at, flags = head[3];
    if (head[0] != 0x1f || head[1] != 0x8b || head[2] != 8) return false;
    *at += TSR_GZIP_HEAD;
    if (flags & EXTRA) *at += 2 + (size_t)(file[*at] | file[*at + 1] << 8);
    if ((flags & NAME && !pass_string(file, size, at)) || (flags & COMMENT && !pass_string(file, size, at)))
        return false;
    if (flags & CRC) *at += 2;
    return *at < size && size - *at > TSR_GZIP_TAIL;
}

const char tsr_gzip_wrong_check[] = "its gzip member has a wrong check (CRC-32 or length)";

bool tsr_gzip_check(const struct tsr_crew *crew, const uint8_t *tail, const struct tsr_bytes *plain)
{
    return tsr_read_u32(tail) == tsr_crc32_by(crew, plain->bytes, plain->size) &&
           tsr_read_u32(tail + 4) == (uint32_t)plain->size;
}

size_t tsr_gzip_first(const uint8_t *file, size_t size, uint8_t *bytes, size_t room)
{
    struct tsr_bytes plain = {.limit = SIZE_MAX / 2};
    size_t at = 0, made = 0;
    if (tsr_gzip_stream(file, size, &at)) {
        tsr_deflate_first(file + at, size - at, room, &plain); /* after an error, what was made before it counts */
        made = plain.size < room ? plain.size : room;
    }
    if (made > 0) memcpy(bytes, plain.bytes, made);
    tsr_bytes_free(&plain);
    return made;
}

/* ---- Reading ------------------------------------------------------------------------------------------------ */

struct member {
    size_t start, stream, end; /* bytes of the file: after the stream before, the first of its stream, after that */
    struct tsr_bytes plain;    /* where it stands among the plain bytes of all */
    struct tsr_bytes residue;
};

/* Reads the first member of a file, or the one after a stream that ends at byte start. Its plain bytes go to the end of
 * all, where they have room. */
static enum tsr_status read_member(const struct tsr_deflate_way *way, const uint8_t *file, size_t size, size_t start,
                                   const struct tsr_bytes *all, struct member *m, struct tsr_error *error)
{
    const size_t room = all->capacity - all->size;
    size_t used = 0;
    *m = (struct member){.start = start,
                         .stream = start > 0 ? start + TSR_GZIP_TAIL : 0,
                         .plain = {.bytes = all->bytes + all->size, .capacity = room, .limit = room},
                         .residue.limit = size};
    if (!tsr_gzip_stream(file, size, &m->stream)) return tsr_fail(error, TSR_ERROR_CORRUPT, "it has no gzip member");
    TSR_TRY(tsr_deflate_read_by(way, file + m->stream, size - m->stream - TSR_GZIP_TAIL, &used, &m->plain, &m->residue,
                                error));
    m->end = m->stream + used;
    if (!tsr_gzip_check(&way->crew, file + m->end, &m->plain))
        tsr_fail_at(error, TSR_ERROR_CORRUPT, m->end, "%s, at byte %zu", tsr_gzip_wrong_check, m->end);
    return TSR_OK;
}

/* Appends the record of a member. */
static enum tsr_status put_member(const uint8_t *file, const struct member *m, bool is_last, struct tsr_bytes *residue,
                                  struct tsr_error *error)
{
    TSR_TRY(tsr_bytes_put_varint(residue, is_last ? 0 : m->plain.size, error));
    TSR_TRY(tsr_bytes_put_list(residue, file + m->start, m->stream - m->start, 0, error));
    return tsr_bytes_put_list(residue, m->residue.bytes, m->residue.size, 0, error);
}

/* Appends a member and those that follow it. *m is the last one that was read. */
static enum tsr_status put_members(const struct tsr_deflate_way *way, const uint8_t *file, size_t size,
                                   struct member *m, struct tsr_bytes *plain, struct tsr_bytes *residue,
                                   struct tsr_error *error)
{
    for (;;) {
        struct member next = {0};
        enum tsr_status status = TSR_ERROR_CORRUPT;
        plain->size += m->plain.size;
        struct tsr_error why = {.offset = TSR_NO_OFFSET};
        if (m->plain.size >= TSR_GZIP_LEAST) status = read_member(way, file, size, m->end, plain, &next, &why);
        if (error && (status == TSR_ERROR_LIMIT || why.offset != TSR_NO_OFFSET) && status != TSR_ERROR_CORRUPT)
            *error = why;
        const bool is_last = status == TSR_ERROR_CORRUPT; /* what follows, if anything, is the tail */
        if (is_last || status == TSR_OK) status = put_member(file, m, is_last, residue, error);
        if (is_last && status == TSR_OK) status = tsr_bytes_put(residue, file + m->end, size - m->end, error);
        tsr_bytes_free(is_last ? &next.residue : &m->residue);
        if (!is_last) *m = next;
        if (is_last || status != TSR_OK) return status;
    }
}

static enum tsr_status split(const struct tsr_node_work *work, const uint8_t *file, size_t size, size_t *used,
                             struct tsr_bytes *plain, struct tsr_bytes *residue, struct tsr_error *error)
{
    struct member m;
    struct deflate_coder *coder = NULL;
    struct tsr_deflate_way way = tsr_deflate_way_of(work);
    if (!way.kept) way.kept = &coder;
    *used = size;
    enum tsr_status status = tsr_bytes_reserve(plain, plain->limit, error);
    if (status != TSR_OK) return status;
    status = read_member(&way, file, size, 0, plain, &m, error);
    if (status == TSR_OK) status = put_members(&way, file, size, &m, plain, residue, error);
    tsr_bytes_free(&m.residue);
    tsr_deflate_forget(coder);
    return status;
}

/* ---- Writing ------------------------------------------------------------------------------------------------ */

static enum tsr_status fail_residue(struct tsr_error *error)
{
    return tsr_fail(error, TSR_ERROR_CORRUPT, "the residue of a deflated file is damaged");
}

/* Appends the next stream, and what stands before it. *at: of its plain bytes, and of those of the next one. */
static enum tsr_status write_stream(const struct tsr_deflate_way *way, struct tsr_cursor *c,
                                    const struct tsr_node_parts *parts, size_t *at, bool *is_last,
                                    struct tsr_bytes *file, struct tsr_error *error)
{
    size_t head_size = 0, residue_size = 0;
    const uint64_t wanted = tsr_get_varint(c);
    const uint8_t *const head = tsr_get_list(c, &head_size), *residue = tsr_get_list(c, &residue_size);
    *is_last = wanted == 0;
    if (c->bad || (!*is_last && (wanted < TSR_GZIP_LEAST || wanted > parts->plain_size - *at)))
        return fail_residue(error);
    const size_t size = *is_last ? parts->plain_size - *at : (size_t)wanted;
    TSR_TRY(tsr_bytes_put(file, head, head_size, error));
    *at += size;
    return tsr_deflate_write_by(way, parts->plain + *at - size, size, residue, residue_size, file, error);
}

static enum tsr_status join(const struct tsr_node_work *work, const struct tsr_node_parts *parts,
                            struct tsr_bytes *file, struct tsr_error *error)
{
    struct tsr_cursor c = {parts->residue, parts->residue_size, 0, false};
    struct deflate_coder *coder = NULL;
    struct tsr_deflate_way way = tsr_deflate_way_of(work);
    size_t at = 0;
    bool is_last = false;
    enum tsr_status status = TSR_OK;
    if (!way.kept) way.kept = &coder;
    while (!is_last && status == TSR_OK) status = write_stream(&way, &c, parts, &at, &is_last, file, error);
    tsr_deflate_forget(coder);
    return status == TSR_OK ? tsr_bytes_put(file, c.bytes + c.at, c.size - c.at, error) : status;
}

uint64_t tsr_gzip_memory(uint64_t plain, uint64_t file)
{
    static const uint64_t most = UINT64_MAX / 64;
    if (plain > most || file > most) return UINT64_MAX / 2;
    /* The plain bytes; residues of all members, and of one, twice while its pieces are joined; or those of all and the
     * file. */
    return plain + 3 * file + tsr_deflate_memory(plain);
}

uint64_t tsr_deflated_memory(uint64_t plain, uint64_t file, const struct tsr_bytes *residue, unsigned threads)
{
    struct tsr_cursor c = {residue ? residue->bytes : NULL, residue ? residue->size : 0, 0, false};
    uint64_t most = 0;
    for (bool is_last = !residue; !is_last;) {
        size_t head = 0, size = 0;
        is_last = tsr_get_varint(&c) == 0;
        tsr_get_list(&c, &head);
        const uint8_t *const coded = tsr_get_list(&c, &size);
        if (c.bad) break;
        const uint64_t bytes = tsr_deflate_writing_memory(plain, coded, size, threads);
        if (bytes > most) most = bytes;
    }
    if (!residue || c.bad) most = tsr_deflate_memory(plain);
    return file + most;
}

const struct tsr_node tsr_node_deflated = {.name = "deflate", .split = split, .join = join};
