/* The pieces of packed files, and how they become the file again. FORMAT.md 4.11. */
#include <stdlib.h>
#include <string.h>

#include "packed.h"
#include "io/container/section.h"
#include "io/container/small.h"
#include "io/nodes/elements/elements_mix.h"
#include "io/formats/png/png_file.h"
#include "io/nodes/png/png_idat.h"
#include "io/nodes/small_png/png_mix.h"
#include "io/nodes/deflate/deflate.h"
#include "io/nodes/jpeg/jpeg.h"

struct tsr_unpacker {
    struct tsr_output *output;
    struct tsr_crew crew;
    uint64_t room;
    uint8_t head_bytes[TSR_PIECE_HEAD_LIMIT];
    size_t head_size;           /* bytes of a head that is not complete */
    struct tsr_piece_head head; /* of the piece whose content comes */
    uint64_t left;              /* bytes of its content that are to come */
    bool is_reserved;           /* there is room for them */
    struct tsr_bytes content, stream;
    struct deflate_coder *coder; /* of deflate streams, or NULL */
};

/* ---- Heads ------------------------------------------------------------------------------------------------- */

static bool has_residue(enum tsr_piece_kind kind)
{
    return kind == TSR_PIECE_DEFLATE || kind == TSR_PIECE_PNG_IDAT;
}

size_t tsr_put_piece_head(uint8_t *out, const struct tsr_piece_head *head)
{
    size_t used = 0;
    out[used++] = (uint8_t)head->kind;
    used += tsr_put_varint(out + used, head->size);
    if (has_residue(head->kind)) used += tsr_put_varint(out + used, head->residue);
    if (head->kind == TSR_PIECE_ELEMENTS) used += tsr_put_varint(out + used, head->plain);
    return used;
}

static bool is_good_size(const struct tsr_piece_head *head)
{
    static const uint64_t most = (uint64_t)1 << 60;
    return head->kind == TSR_PIECE_PNG_START   ? head->size == TSR_PNG_IHDR_BYTES
           : head->kind == TSR_PIECE_PNG_END   ? head->size == 0
           : head->kind == TSR_PIECE_SMALL_PNG ? head->size > 0 && head->size <= TSR_PNG_MIX_CODE
           : head->kind == TSR_PIECE_ELEMENTS
               ? head->size > 0 && head->size <= TSR_ELEMENTS_CODE && head->plain > 0 &&
                     head->plain <= TSR_ELEMENTS_PLAIN
               : head->size < most && head->residue < most && (head->size > 0 || has_residue(head->kind));
}

enum tsr_status tsr_get_piece_head(const uint8_t *bytes, size_t size, struct tsr_piece_head *head, size_t *used,
                                   struct tsr_error *error)
{
    struct tsr_cursor c = {bytes, size, 0, false};
    const uint8_t kind = tsr_get_u8(&c);
    *head = (struct tsr_piece_head){.kind = (enum tsr_piece_kind)kind};
    head->size = tsr_get_varint(&c);
    if (has_residue(head->kind)) head->residue = tsr_get_varint(&c);
    if (head->kind == TSR_PIECE_ELEMENTS) head->plain = tsr_get_varint(&c);
    *used = c.bad ? 0 : c.at;
    if (kind < TSR_PIECE_KINDS && (!c.bad || size < TSR_PIECE_HEAD_LIMIT) && (c.bad || is_good_size(head)))
        return TSR_OK;
    return tsr_fail(error, TSR_ERROR_CORRUPT, "the head of a piece of the file is not valid");
}

uint64_t tsr_piece_room(const struct tsr_piece_head *head, uint64_t blocks)
{
    return head->kind == TSR_PIECE_JPEG        ? 2 * head->size + 132 * blocks
           : head->kind == TSR_PIECE_SMALL_PNG ? TSR_SMALL_PNG_ROOM
           : head->kind == TSR_PIECE_ELEMENTS  ? TSR_SMALL_ELEMENTS_ROOM
           : has_residue(head->kind)           ? 2 * head->size + 2 * head->residue
                                               : 0;
}

enum tsr_piece_kind tsr_first_stream(const uint8_t *bytes, size_t size)
{
    struct tsr_piece_head head;
    for (size_t at = 0, used; tsr_get_piece_head(bytes + at, size - at, &head, &used, NULL) == TSR_OK && used > 0;) {
        if (head.kind != TSR_PIECE_BYTES && head.kind != TSR_PIECE_PNG_START) return head.kind;
        at += used;
        if (head.size >= size - at) break;
        at += (size_t)head.size;
    }
    return TSR_PIECE_KINDS;
}

/* The content of a piece, its stream while it grows, and the coder; of a JPEG stream its head, too. */
uint64_t tsr_unpacking_memory(uint64_t room, uint64_t restored, enum tsr_piece_kind kind)
{
    enum { CODER = 2 << 20 };
    static const uint64_t most = UINT64_MAX / 16;
    if (room > most || restored > most) return UINT64_MAX / 2;
    const uint64_t as_jpeg = room + 2 * restored + CODER,
                   as_deflate = room / 2 + restored + tsr_deflate_memory(room / 2);
    switch (kind) {
    case TSR_PIECE_JPEG:
        return as_jpeg;
    case TSR_PIECE_DEFLATE:
    case TSR_PIECE_PNG_IDAT:
        return as_deflate;
    case TSR_PIECE_SMALL_PNG:
        return room + 2 * restored + TSR_PNG_MIX_MEMORY + tsr_deflate_memory(TSR_PNG_MIX_PLAIN);
    case TSR_PIECE_ELEMENTS:
        return room + 2 * restored + TSR_ELEMENTS_MEMORY;
    default:
        return as_jpeg > as_deflate ? as_jpeg : as_deflate;
    }
}

/* ---- Content ----------------------------------------------------------------------------------------------- */

struct tsr_unpacker *tsr_unpacker_create(uint64_t room, struct tsr_output *output)
{
    struct tsr_unpacker *const u = calloc(1, sizeof *u);
    if (!u) return NULL;
    u->output = output;
    u->room = room;
    return u;
}

void tsr_unpacker_set_crew(struct tsr_unpacker *unpacker, struct tsr_crew crew)
{
    unpacker->crew = crew;
}

void tsr_unpacker_free(struct tsr_unpacker *unpacker)
{
    if (!unpacker) return;
    tsr_bytes_free(&unpacker->content);
    tsr_bytes_free(&unpacker->stream);
    tsr_deflate_forget(unpacker->coder);
    free(unpacker);
}

static enum tsr_status fail_room(struct tsr_error *error)
{
    return tsr_fail(error, TSR_ERROR_CORRUPT, "a piece of the file takes more memory than its header says");
}

/* Writes the file's bytes of a piece whose content is complete. */
static enum tsr_status write_stream(struct tsr_unpacker *u, struct tsr_error *error)
{
    const uint64_t limit = tsr_output_limit_of(u->output), done = tsr_output_size(u->output),
                   left = limit > done ? limit - done : 0;
    const uint8_t *const content = u->content.bytes ? u->content.bytes : (const uint8_t *)"";
    u->stream.size = 0;
    u->stream.limit = left < SIZE_MAX / 4 ? (size_t)left : SIZE_MAX / 4;
    if (u->head.kind == TSR_PIECE_PNG_END) return tsr_output_write(u->output, tsr_png_end, TSR_PNG_END_BYTES, error);
    if (u->head.kind == TSR_PIECE_PNG_START) {
        uint8_t start[TSR_PNG_START_BYTES];
        tsr_png_start_of(content, start);
        return tsr_output_write(u->output, start, sizeof start, error);
    }
    if (u->head.kind == TSR_PIECE_JPEG) {
        if (tsr_piece_room(&u->head, tsr_jpeg_blocks(content, u->content.size, u->stream.limit)) > u->room)
            return fail_room(error);
        TSR_TRY(tsr_jpeg_unpack(content, u->content.size, &u->stream, error));
    } else if (u->head.kind == TSR_PIECE_SMALL_PNG) {
        TSR_TRY(tsr_png_unmix(content, u->content.size, &u->stream, error));
    } else if (u->head.kind == TSR_PIECE_ELEMENTS) {
        TSR_TRY(tsr_elements_unmix(content, u->content.size, (size_t)u->head.plain, &u->stream, error));
    } else {
        struct tsr_deflate_way way = tsr_deflate_with(&u->crew);
        way.kept = &u->coder;
        const size_t size = (size_t)u->head.size, residue = (size_t)u->head.residue;
        TSR_TRY(u->head.kind == TSR_PIECE_DEFLATE
                    ? tsr_deflate_write_by(&way, content, size, content + size, residue, &u->stream, error)
                    : tsr_png_write_chunks(&u->crew, content, size, content + size, residue, &u->stream, error));
    }
    return tsr_output_write(u->output, u->stream.bytes, u->stream.size, error);
}

/* Begins the content of a piece. */
static enum tsr_status begin_piece(struct tsr_unpacker *u, struct tsr_error *error)
{
    u->left = u->head.size + u->head.residue;
    u->head_size = 0;
    if (u->head.kind == TSR_PIECE_BYTES) return TSR_OK;
    if (tsr_piece_room(&u->head, 0) > u->room || u->left > SIZE_MAX / 4) return fail_room(error);
    tsr_bytes_free(&u->content);
    u->content.limit = (size_t)u->left;
    u->is_reserved = false;
    return u->left == 0 ? write_stream(u, error) : TSR_OK;
}

/* Takes bytes of a content. When a sixteenth of it is there, all has its room: a head alone may say anything. */
static enum tsr_status take_content(struct tsr_unpacker *u, const uint8_t *bytes, size_t size, struct tsr_error *error)
{
    TSR_TRY(tsr_bytes_put(&u->content, bytes, size, error));
    u->left -= size;
    if (u->left == 0) return write_stream(u, error);
    if (u->is_reserved || u->left / 16 > u->content.size) return TSR_OK;
    u->is_reserved = true;
    return tsr_bytes_reserve_by(&u->crew, &u->content, (size_t)u->left, error);
}

/* Takes bytes of a head. *used: those of them that are taken. */
static enum tsr_status take_head(struct tsr_unpacker *u, const uint8_t *bytes, size_t size, size_t *used,
                                 struct tsr_error *error)
{
    const size_t had = u->head_size, room = sizeof u->head_bytes - had, now = size < room ? size : room;
    size_t whole = 0;
    memcpy(u->head_bytes + had, bytes, now);
    TSR_TRY(tsr_get_piece_head(u->head_bytes, had + now, &u->head, &whole, error));
    *used = whole > 0 ? whole - had : now;
    u->head_size = had + now;
    return whole > 0 ? begin_piece(u, error) : TSR_OK;
}

enum tsr_status tsr_unpacker_put(struct tsr_unpacker *u, const uint8_t *bytes, size_t size, struct tsr_error *error)
{
    while (size > 0) {
        size_t now = u->left < size ? (size_t)u->left : size;
        if (u->left == 0) {
            TSR_TRY(take_head(u, bytes, size, &now, error));
        } else if (u->head.kind == TSR_PIECE_BYTES) {
            TSR_TRY(tsr_output_write(u->output, bytes, now, error));
            u->left -= now;
        } else {
            TSR_TRY(take_content(u, bytes, now, error));
        }
        bytes += now;
        size -= now;
    }
    return TSR_OK;
}

enum tsr_status tsr_unpacker_end(const struct tsr_unpacker *u, struct tsr_error *error)
{
    return u->left == 0 && u->head_size == 0 ? TSR_OK
                                             : tsr_fail(error, TSR_ERROR_CORRUPT, "the file ends within a piece");
}
