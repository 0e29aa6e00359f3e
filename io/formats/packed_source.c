/* Packs files that are not coded as samples: finds streams in them, makes them smaller, and proves that they come back.
 * FORMAT.md 4.11. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "packed.h"
#include "io/bytes/crc32.h"
#include "io/container/section.h"
#include "io/bytes/zstd_contexts.h"
#include "io/nodes/deflate/deflate.h"
#include "io/nodes/elements/elements_mix.h"
#include "io/formats/nifti/nifti_header.h"
#include "io/nodes/gzip/gzip.h"
#include "io/formats/png/png_file.h"
#include "io/nodes/png/png_idat.h"
#include "io/nodes/small_png/png_mix.h"
#include "io/nodes/jpeg/jpeg.h"

enum {
    LEAST_STREAM = 256,  /* bytes of a stream that is looked at: smaller ones do not pay */
    LEAST_PNG = 57,      /* bytes of a PNG */
    LEAST_GAIN = 64,     /* bytes that a file becomes smaller by at least, but for a PNG */
    MOST_FAILURES = 64,  /* streams that cannot be packed: then no more are tried, of a file that has many by design */
    ITEM_HEAD = 8,       /* of DICOM */
    PIECES = 32,         /* bytes of heads of a PNG's pieces and of its residue, at least */
    DEFLATE_RATIO = 1032 /* plain bytes of a byte, at most */
};

enum { SMALL = 1 << 16, SMALL_LEVEL = 19, LARGE_LEVEL = 6, QUICK_LEVEL = 7 }; /* as the container's writer has them */

/* What a gzip file may unfold to. */
#define PLAIN_FREE ((uint64_t)64 << 20)
#define PLAIN_RATIO ((uint64_t)64)
#define PLAIN_LIMIT ((uint64_t)1 << 30)
#define UNLIKELY_RATIO ((uint64_t)16)

/* Larger files, and those that take more memory, are not packed on any machine: else bytes would depend on memory. */
#define FILE_LIMIT ((uint64_t)1 << 28)
#define MEMORY_LIMIT ((uint64_t)1 << 30)

struct piece {
    struct tsr_piece_head head;
    uint8_t head_bytes[TSR_PIECE_HEAD_LIMIT];
    size_t head_size;
    size_t start;                    /* of bytes: in the file */
    struct tsr_bytes first, residue; /* of a stream: packed or plain bytes, and the residue */
    uint64_t at;                     /* of its head in the blob */
};

struct packed_source {
    struct tsr_source base;
    const struct tsr_packing *packing; /* while it is opened */
    struct tsr_crew crew;
    enum tsr_kind kind;
    const uint8_t *file; /* the whole file, held by the input */
    size_t size, done;   /* bytes of the file, and those that pieces have */
    struct piece *pieces;
    size_t count, capacity;
    uint64_t room, blob_size;
    uint64_t verbatim; /* what the file takes verbatim; 0: not known */
};

/* ---- Pieces ------------------------------------------------------------------------------------------------ */

static struct piece *add_piece(struct packed_source *s, struct tsr_error *error)
{
    if (s->count == s->capacity) {
        const size_t capacity = s->capacity ? 2 * s->capacity : 16;
        struct piece *grown = realloc(s->pieces, capacity * sizeof *grown);
        if (!grown) {
            tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu pieces", capacity);
            return NULL;
        }
        s->pieces = grown;
        s->capacity = capacity;
    }
    struct piece *const piece = &s->pieces[s->count++];
    *piece = (struct piece){.at = s->blob_size};
    return piece;
}

static void finish_piece(struct packed_source *s, struct piece *piece)
{
    piece->head_size = tsr_put_piece_head(piece->head_bytes, &piece->head);
    s->blob_size += piece->head_size + piece->head.size + piece->head.residue;
}

/* The bytes of the file up to this one, which no piece has yet, become a piece. */
static enum tsr_status put_bytes(struct packed_source *s, size_t end, struct tsr_error *error)
{
    if (end == s->done) return TSR_OK;
    struct piece *const piece = add_piece(s, error);
    if (!piece) return TSR_ERROR_LIMIT;
    piece->head = (struct tsr_piece_head){.kind = TSR_PIECE_BYTES, .size = end - s->done};
    piece->start = s->done;
    s->done = end;
    finish_piece(s, piece);
    return TSR_OK;
}

/* The stream from one byte of the file to another becomes a piece, which takes over first and residue, also after an
 * error. */
static enum tsr_status put_stream(struct packed_source *s, size_t start, size_t end, enum tsr_piece_kind kind,
                                  struct tsr_bytes *first, struct tsr_bytes *residue,
                                  struct tsr_error *error)
{
    enum tsr_status status = put_bytes(s, start, error);
    struct piece *const piece = status == TSR_OK ? add_piece(s, error) : NULL;
    if (!piece) {
        tsr_bytes_free(first);
        tsr_bytes_free(residue);
        return TSR_ERROR_LIMIT;
    }
    tsr_bytes_fit(first);
    tsr_bytes_fit(residue);
    piece->first = *first;
    piece->residue = *residue;
    piece->head = (struct tsr_piece_head){.kind = kind,
                                          .size = first->size,
                                          .residue = residue->size,
                                          .plain = kind == TSR_PIECE_ELEMENTS ? end - start : 0};
    const struct tsr_node_parts parts = {piece->first.bytes, piece->residue.bytes, piece->first.size, piece->residue.size};
    const uint64_t room = tsr_piece_node(kind)->room(&parts, end - start);
    if (room > s->room) s->room = room;
    s->done = end;
    finish_piece(s, piece);
    return TSR_OK;
}

/* ---- JPEG -------------------------------------------------------------------------------------------------- */

static bool begins_jpeg(const uint8_t *bytes)
{
    return bytes[0] == 0xff && bytes[1] == 0xd8 && bytes[2] == 0xff;
}

/* What becomes of an error that means that a stream stays bytes: why, which is half a sentence, gets a beginning. */
static enum tsr_status refuse(enum tsr_status status, const char *begin, const struct tsr_error *why,
                              struct tsr_error *error)
{
    return tsr_fail_at(error, status, why->offset, "%s%.400s", status == TSR_ERROR_CORRUPT ? begin : "", why->text);
}

static const char cannot_jpeg[] = "its JPEG stream cannot be coded: it ",
                  cannot_gzip[] = "its gzip stream cannot be coded: ",
                  no_gain[] = "coded it would not be smaller by 64 bytes";

/* Packs a stream, unpacks it, and compares. TSR_ERROR_CORRUPT: it stays bytes. */
static enum tsr_status pack_jpeg(const uint8_t *stream, size_t size, struct tsr_bytes *packed, struct tsr_error *error)
{
    struct tsr_bytes again = {.limit = size};
    packed->limit = size > LEAST_GAIN ? size - LEAST_GAIN : 0;
    TSR_TRY(tsr_jpeg_pack(stream, size, packed, error));
    enum tsr_status status = tsr_jpeg_unpack(packed->bytes, packed->size, &again, error);
    if (status == TSR_OK && (again.size != size || memcmp(again.bytes, stream, size) != 0)) status = TSR_ERROR_CORRUPT;
    if (status == TSR_ERROR_CORRUPT) tsr_fail(error, status, "would not come back as it is");
    tsr_bytes_free(&again);
    return status;
}

static enum tsr_status put_jpeg(struct packed_source *s, size_t start, size_t size, struct tsr_error *error)
{
    struct tsr_bytes packed = {0}, none = {0};
    struct tsr_error why;
    const enum tsr_status status = pack_jpeg(s->file + start, size, &packed, &why);
    if (status == TSR_OK) return put_stream(s, start, start + size, TSR_PIECE_JPEG, &packed, &none, error);
    tsr_bytes_free(&packed);
    return refuse(status, cannot_jpeg, &why, error);
}

/* The next item of DICOM from a byte on that begins as JPEG does. Where items are is not read from the file's header,
 * which may be one that cannot be read: whatever looks like an item is tried, and proven. */
static bool next_item(const struct packed_source *s, size_t at, size_t *start, size_t *size)
{
    enum { SOF_JPEG_LS = 0xf7 }; /* with which its streams begin */
    static const uint8_t tag[4] = {0xfe, 0xff, 0x00, 0xe0};
    while (s->size - at > ITEM_HEAD) {
        const uint8_t *const found = memchr(s->file + at, tag[0], s->size - at - ITEM_HEAD);
        if (!found) return false;
        *start = (size_t)(found - s->file) + ITEM_HEAD;
        *size = tsr_read_u32(found + 4);
        if (memcmp(found, tag, sizeof tag) == 0 && *size <= s->size - *start && *size >= LEAST_STREAM &&
            begins_jpeg(found + ITEM_HEAD) && found[ITEM_HEAD + 3] != SOF_JPEG_LS)
            return true;
        at = *start - ITEM_HEAD + 1;
    }
    return false;
}

/* Whether an item that begins as JPEG and ends before a byte holds a whole frame: the next one begins another, or there
 * is none. */
static bool is_frame(const struct packed_source *s, size_t end)
{
    static const uint8_t item[4] = {0xfe, 0xff, 0x00, 0xe0}, last[4] = {0xfe, 0xff, 0xdd, 0xe0};
    const uint8_t *const next = s->file + end;
    if (s->size - end < ITEM_HEAD) return false;
    return memcmp(next, last, sizeof last) == 0 ||
           (memcmp(next, item, sizeof item) == 0 && s->size - end > ITEM_HEAD + 3 && begins_jpeg(next + ITEM_HEAD));
}

/* TSR_ERROR_CORRUPT: none can be packed. */
static enum tsr_status put_items(struct packed_source *s, struct tsr_error *error)
{
    size_t start, size;
    int failures = 0;
    for (size_t at = 0; failures < MOST_FAILURES && next_item(s, at, &start, &size); at = start + size) {
        const enum tsr_status status = put_jpeg(s, start, size, error);
        if (status == TSR_ERROR_CORRUPT) failures++;
        if (status != TSR_OK && status != TSR_ERROR_CORRUPT) return status;
        if (!is_frame(s, start + size))
            error->offset = TSR_NO_OFFSET; /* a part ends within a scan */
        else if (status == TSR_ERROR_CORRUPT && error->offset != TSR_NO_OFFSET)
            tsr_input_note_damage(s->base.input, "its JPEG stream at byte %zu %.80s", start,
                                  error->text + sizeof cannot_jpeg - 1);
        else if (!tsr_jpeg_has_end(s->file + start, size))
            tsr_input_note_damage(s->base.input, "its JPEG stream at byte %zu has no end: EOI is missing", start);
    }
    return s->count > 0 ? TSR_OK : TSR_ERROR_CORRUPT;
}

/* What packing JPEG streams takes, at most: memory, which is of blocks and of what stands between the stream and what
 * it becomes; and the numbers that decide, see jpeg_cost. */
struct jpeg_work {
    uint64_t memory, cost;
};

static enum tsr_status add_stream(const uint8_t *stream, size_t size, struct jpeg_work *work, struct tsr_error *error)
{
    struct tsr_error why;
    uint64_t blocks = 0;
    const enum tsr_status status = tsr_jpeg_memory(stream, size, &blocks, &why);
    if (status != TSR_OK) return refuse(status, cannot_jpeg, &why, error);
    const uint64_t memory = blocks + 6 * (uint64_t)size, cost = blocks + 9 * (uint64_t)size + (1 << 18);
    if (memory > work->memory) work->memory = memory;
    if (cost > work->cost) work->cost = cost;
    return TSR_OK;
}

/* Of all streams of a DICOM file. TSR_ERROR_CORRUPT: none can be packed; the text is empty if there is none. */
static enum tsr_status add_items(const struct packed_source *s, struct jpeg_work *work, struct tsr_error *error)
{
    enum tsr_status status = tsr_fail(error, TSR_ERROR_CORRUPT, "%s", "");
    for (size_t at = 0, start, size; status != TSR_ERROR_LIMIT && next_item(s, at, &start, &size); at = start + size)
        status = add_stream(s->file + start, size, work, error);
    return status != TSR_ERROR_LIMIT && work->memory > 0 ? TSR_OK : status;
}

/* ---- gzip -------------------------------------------------------------------------------------------------- */

static bool begins_gzip(const uint8_t *bytes)
{
    return bytes[0] == 0x1f && bytes[1] == 0x8b;
}

/* Inflates a stream, makes it again, and compares. *used: its bytes. */
static enum tsr_status unfold(const struct tsr_deflate_way *way, const uint8_t *stream, size_t size, size_t *used,
                              struct tsr_bytes *plain, struct tsr_bytes *residue, struct tsr_error *error)
{
    residue->limit = size;
    TSR_TRY(tsr_deflate_read_by(way, stream, size, used, plain, residue, error));
    struct tsr_bytes again = {.limit = *used};
    enum tsr_status status =
        tsr_deflate_write_by(way, plain->bytes, plain->size, residue->bytes, residue->size, &again, error);
    if (status == TSR_OK && (again.size != *used || memcmp(again.bytes, stream, *used) != 0))
        status = tsr_fail(error, TSR_ERROR_CORRUPT, "it would not come back as it is");
    tsr_bytes_free(&again);
    return status;
}

/* The most plain bytes that are made of a gzip file: of all members, and of one. */
struct gzip_limits {
    uint64_t plain, largest;
    bool doubts; /* what the file says of them would take too much memory, and is unlikely */
};

/* Whether another member seems to begin at a byte, after one from byte start on. Headers are those of usual programs,
 * and the last bytes before it say no more plain bytes than deflate can hold. */
static bool may_begin(const uint8_t *file, size_t start, size_t at)
{
    enum { OTHER_FLAGS = 0xe0, MOST_RATIO = 1032 };
    const uint8_t *const head = file + at;
    return begins_gzip(head) && head[2] == 8 && (head[3] & OTHER_FLAGS) == 0 &&
           (head[8] == 0 || head[8] == 2 || head[8] == 4) && at - start >= TSR_GZIP_HEAD + TSR_GZIP_TAIL &&
           tsr_read_u32(head - 4) <= MOST_RATIO * (uint64_t)(at - start);
}

/* The last four bytes of a member say how many plain bytes it has. Bytes may look like another member's: then the
 * limits are too high, and only memory is claimed for nothing. Where the members do not seem to be all of the file, the
 * limits may be too low, and some members stay bytes. A member may have a little more than it says, so that a wrong
 * length is noticed. The last bytes of a file that is cut say anything: what is unlikely and would take too much memory
 * is not believed. */
static struct gzip_limits plain_limits(const struct packed_source *s)
{
    const uint64_t size = s->size, ratio = PLAIN_FREE + PLAIN_RATIO * size,
                   most = ratio < PLAIN_LIMIT ? ratio : PLAIN_LIMIT;
    struct gzip_limits l = {0};
    for (size_t start = 0, at = 1; start < s->size; at++) {
        const uint8_t *const found = s->size - at > TSR_GZIP_HEAD + TSR_GZIP_TAIL
                                         ? memchr(s->file + at, 0x1f, s->size - at - TSR_GZIP_HEAD - TSR_GZIP_TAIL)
                                         : NULL;
        at = found ? (size_t)(found - s->file) : s->size;
        if (found && !may_begin(s->file, start, at)) continue;
        const uint64_t said = tsr_read_u32(s->file + at - 4);
        l.plain += said;
        if (said > l.largest) l.largest = said;
        start = at;
    }
    const uint64_t more = 1 << 16, least = 4 * size;
    l.doubts = l.largest > UNLIKELY_RATIO * size && 3 * (l.largest < most ? l.largest : most) > MEMORY_LIMIT;
    if (l.plain < size || l.doubts) l.plain = l.largest = least;
    l.plain += more;
    l.largest += more;
    if (l.plain > most) l.plain = most;
    if (l.largest > most) l.largest = most;
    return l;
}

/* Notes a wrong check at the end of a member. */
static void note_check(const struct packed_source *s, const uint8_t *tail, const struct tsr_bytes *plain)
{
    if (tsr_read_u32(tail) != tsr_crc32_by(&s->crew, plain->bytes, plain->size) ||
        tsr_read_u32(tail + 4) != (uint32_t)plain->size)
        tsr_input_note_damage(s->base.input, "its gzip member has a wrong check (CRC-32 or length), at byte %zu",
                              (size_t)(tail - s->file));
}

/* Members become pieces, until one cannot; it and what follows stays bytes. TSR_ERROR_CORRUPT: the first one cannot. */
static enum tsr_status put_members(struct packed_source *s, const struct tsr_deflate_way *way,
                                   struct gzip_limits *limits, struct tsr_error *error)
{
    size_t at = 0, end = 0; /* end: after the members so far */
    if (!tsr_gzip_stream(s->file, s->size, &at))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "%sits header is not valid", cannot_gzip);
    struct tsr_nifti nifti = {.end = 0};
    uint64_t all = 0; /* plain bytes so far */
    do {
        const uint64_t limit = limits->largest < limits->plain ? limits->largest : limits->plain;
        struct tsr_bytes plain = {.limit = (size_t)limit}, residue = {0};
        struct tsr_error why;
        size_t used = 0;
        const enum tsr_status status =
            unfold(way, s->file + at, s->size - at - TSR_GZIP_TAIL, &used, &plain, &residue, &why);
        limits->plain -= plain.size;
        if (status != TSR_OK) {
            tsr_bytes_free(&plain);
            tsr_bytes_free(&residue);
            if (status != TSR_ERROR_CORRUPT || s->count == 0) return refuse(status, cannot_gzip, &why, error);
            if (why.offset != TSR_NO_OFFSET)
                tsr_input_note_damage(s->base.input, "its gzip member at byte %zu is damaged: %s", at, why.text);
            return TSR_OK;
        }
        note_check(s, s->file + at + used, &plain);
        if (all == 0 && s->kind == TSR_KIND_NIFTI) tsr_read_nifti(plain.bytes, plain.size, &nifti, NULL);
        all += plain.size;
        TSR_TRY(put_stream(s, at, at + used, TSR_PIECE_DEFLATE, &plain, &residue, error));
        end = at += used + TSR_GZIP_TAIL;
    } while (tsr_gzip_stream(s->file, s->size, &at));
    if (s->size - end > 2 && begins_gzip(s->file + end) && s->file[end + 2] == 8)
        tsr_input_note_damage(s->base.input, "its gzip member at byte %zu is cut", end);
    if (nifti.end > all)
        tsr_input_note_damage(s->base.input, "it ends before its last sample: %llu of %llu bytes are in it",
                              (unsigned long long)all, (unsigned long long)nifti.end);
    return TSR_OK;
}

/* ---- PNG --------------------------------------------------------------------------------------------------- */

enum { PNG_HEAD = 8 + 8 + 13 };

/* The most plain bytes of a PNG, by its header: all rows and their filters, of interlaced ones in up to seven passes.
 */
static uint64_t png_plain_limit(const struct packed_source *s)
{
    static const uint8_t channels[8] = {1, 0, 3, 1, 2, 0, 4, 0};
    if (s->size < PNG_HEAD) return 0;
    const uint64_t columns = tsr_png_get_u32(s->file + 16), rows = tsr_png_get_u32(s->file + 20),
                   bits = (uint64_t)s->file[24] * channels[s->file[25] & 7];
    const uint64_t row = columns * bits / 8 + 2;
    return row > PLAIN_LIMIT || rows > PLAIN_LIMIT / 2 / row ? 0 : 2 * row * rows + 64;
}

/* Plain bytes of a PNG of the usual form, and a few more of an interlaced one. */
static uint64_t png_plain_bytes(const struct packed_source *s)
{
    enum { PASS_ROWS = 2, FEW = 16 }; /* rows of all passes are less than twice those of the image, and some */
    if (s->packing->opened) return tsr_png_plain_bytes(tsr_png_rows_of(&s->packing->opened->header));
    const uint64_t limit = png_plain_limit(s), rows = limit > 0 ? tsr_png_get_u32(s->file + 20) : 0,
                   row = rows > 0 ? (limit - 64) / 2 / rows : 0, /* with its filter, and perhaps a byte more */
        more = s->size > PNG_HEAD && s->file[PNG_HEAD - 1] > 0 ? PASS_ROWS * rows + FEW : 0;
    return rows * row + more;
}

/* A piece of the file's bytes from start to end, of which the content is size bytes from content on. */
static enum tsr_status put_known(struct packed_source *s, enum tsr_piece_kind kind, size_t content, size_t size,
                                 size_t end, struct tsr_error *error)
{
    struct piece *const piece = add_piece(s, error);
    if (!piece) return TSR_ERROR_LIMIT;
    piece->head = (struct tsr_piece_head){.kind = kind, .size = size};
    piece->start = content;
    s->done = end;
    finish_piece(s, piece);
    return TSR_OK;
}

/* Reads the chunks, makes them again, and compares, unless that was done before. */
static enum tsr_status read_png(const struct packed_source *s, size_t start, size_t end, struct tsr_bytes *plain,
                                struct tsr_bytes *residue, struct tsr_error *error)
{
    const uint8_t *const chunks = s->file + start;
    const size_t size = end - start;
    struct tsr_bytes again = {.limit = size};
    if (s->packing->opened) return tsr_png_chunks_of(s->packing->opened, &s->crew, plain, residue, error);
    TSR_TRY(tsr_png_read_chunks(&s->crew, chunks, size, plain, residue, error));
    enum tsr_status status =
        tsr_png_write_chunks(&s->crew, plain->bytes, plain->size, residue->bytes, residue->size, &again, error);
    if (status == TSR_OK && (again.size != size || memcmp(again.bytes, chunks, size) != 0))
        status = tsr_fail(error, TSR_ERROR_CORRUPT, "its IDAT chunks do not come back");
    tsr_bytes_free(&again);
    return status;
}

/* Whether zstd, by a quick look, makes less of the plain bytes than this. */
static bool zstd_is_better(const struct tsr_bytes *plain, size_t than)
{
#if TSR_WITH_ZSTD
    const size_t bound = ZSTD_compressBound(plain->size);
    uint8_t *const made = malloc(bound);
    ZSTD_CCtx *const context = tsr_take_compressor();
    const size_t size =
        made && context ? ZSTD_compressCCtx(context, made, bound, plain->bytes, plain->size, QUICK_LEVEL) : than;
    tsr_give_compressor(context);
    free(made);
    return !ZSTD_isError(size) && size < than;
#else
    (void)plain;
    (void)than;
    return false;
#endif
}

/* A small PNG becomes one piece. TSR_ERROR_CORRUPT: it has not the form for that, or does not become smaller. */
static enum tsr_status put_small_png(struct packed_source *s, const struct tsr_png_parts *parts,
                                     struct tsr_error *error)
{
    struct tsr_bytes code = {.limit = s->size}, again = {.limit = s->size}, none = {0};
    if (parts->plain->size > TSR_PNG_MIX_PLAIN)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "it is not a small PNG of the usual form");
    enum tsr_status status = tsr_png_mix(parts, &code, error);
    const size_t beside = s->size - (parts->end - parts->start) + PIECES; /* what zstd would still have to say */
    if (status == TSR_OK && code.size > beside && zstd_is_better(parts->plain, code.size - beside))
        status = tsr_fail(error, TSR_ERROR_CORRUPT, "zstd makes less of it");
    if (status == TSR_OK) status = tsr_png_unmix(code.bytes, code.size, &again, error);
    if (status == TSR_OK && (again.size != s->size || memcmp(again.bytes, s->file, s->size) != 0))
        status = tsr_fail(error, TSR_ERROR_CORRUPT, "its rows do not come back");
    tsr_bytes_free(&again);
    if (status == TSR_OK) return put_stream(s, 0, s->size, TSR_PIECE_SMALL_PNG, &code, &none, error);
    tsr_bytes_free(&code);
    return status;
}

static enum tsr_status put_png(struct packed_source *s, uint64_t limit, struct tsr_error *error)
{
    const uint64_t usual = png_plain_bytes(s), most = DEFLATE_RATIO * (uint64_t)s->size;
    struct tsr_bytes plain = {.limit = (size_t)limit}, residue = {.limit = s->size + 64};
    uint8_t begin[TSR_PNG_START_BYTES];
    size_t start = 0, end = 0;
    if (!tsr_png_find_idat(s->file, s->size, &start, &end) || start < TSR_PNG_START_BYTES)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "it has no IDAT chunks that follow each other");
    if (usual <= most && usual <= limit) TSR_TRY(tsr_bytes_reserve(&plain, (size_t)usual, error));
    enum tsr_status status = read_png(s, start, end, &plain, &residue, error);
    const struct tsr_png_parts parts = {s->file, s->size, start, end, &plain, &residue};
    const bool was_read = status == TSR_OK;
    if (was_read) status = put_small_png(s, &parts, error);
    if (!was_read || status != TSR_ERROR_CORRUPT) {
        tsr_bytes_free(&plain);
        tsr_bytes_free(&residue);
        return status;
    }
    tsr_png_start_of(s->file + PNG_HEAD - TSR_PNG_IHDR_BYTES, begin);
    if (memcmp(s->file, begin, sizeof begin) == 0)
        TSR_TRY(
            put_known(s, TSR_PIECE_PNG_START, PNG_HEAD - TSR_PNG_IHDR_BYTES, TSR_PNG_IHDR_BYTES, sizeof begin, error));
    TSR_TRY(put_stream(s, start, end, TSR_PIECE_PNG_IDAT, &plain, &residue, error));
    const size_t last = s->size - TSR_PNG_END_BYTES;
    if (last < s->done || memcmp(s->file + last, tsr_png_end, TSR_PNG_END_BYTES) != 0) return TSR_OK;
    TSR_TRY(put_bytes(s, last, error));
    return put_known(s, TSR_PIECE_PNG_END, last, 0, s->size, error);
}

/* ---- The source -------------------------------------------------------------------------------------------- */

/* Copies of a string of bytes that stands in the blob from byte start on: those that are wanted, from byte offset on.
 */
static void copy_part(const uint8_t *bytes, uint64_t size, uint64_t start, uint64_t offset, uint8_t *buffer,
                      size_t wanted)
{
    const uint64_t from = offset > start ? offset - start : 0, to = offset + wanted;
    if (from >= size || to <= start) return;
    const uint64_t end = to - start < size ? to - start : size;
    memcpy(buffer + (start + from - offset), bytes + from, (size_t)(end - from));
}

static enum tsr_status read_blob(struct tsr_source *source, enum tsr_blob blob, uint64_t offset, void *buffer,
                                 size_t size, struct tsr_error *error)
{
    const struct packed_source *s = (const struct packed_source *)source;
    (void)blob;
    (void)error;
    size_t first = 0;
    for (size_t after = s->count; after - first > 1;) { /* the last piece that begins at the offset or before it */
        const size_t middle = first + (after - first) / 2;
        if (s->pieces[middle].at <= offset)
            first = middle;
        else
            after = middle;
    }
    for (size_t i = first; i < s->count && s->pieces[i].at < offset + size; i++) {
        const struct piece *const p = &s->pieces[i];
        const uint64_t content = p->at + p->head_size;
        const uint8_t *const bytes = p->first.bytes ? p->first.bytes : s->file + p->start;
        copy_part(p->head_bytes, p->head_size, p->at, offset, buffer, size);
        copy_part(bytes, p->head.size, content, offset, buffer, size);
        copy_part(p->residue.bytes, p->head.residue, content + p->head.size, offset, buffer, size);
    }
    return TSR_OK;
}

static enum tsr_status no_frame(struct tsr_source *source, uint32_t frame, uint8_t *raster, struct tsr_error *error)
{
    (void)source;
    (void)raster;
    return tsr_fail(error, TSR_ERROR_INTERNAL, "a packed source has no frame %u", frame);
}

static void close_packed(struct tsr_source *source)
{
    struct packed_source *s = (struct packed_source *)source;
    for (size_t i = 0; i < s->count; i++) {
        tsr_bytes_free(&s->pieces[i].first);
        tsr_bytes_free(&s->pieces[i].residue);
    }
    free(s->pieces);
    free(s);
}

static const struct tsr_source_ops packed_ops = {read_blob, no_frame, NULL, close_packed, NULL};

/* Reads bytes of the blob or, verbatim, of the file. */
static void read_form(struct packed_source *s, bool verbatim, uint64_t offset, uint8_t *bytes, size_t size)
{
    if (verbatim)
        memcpy(bytes, s->file + offset, size);
    else
        read_blob(&s->base, TSR_BLOB_PREFIX, offset, bytes, size, NULL);
}

#if TSR_WITH_ZSTD
/* Chunks of what is measured. Each lane takes the next one. */
struct measuring {
    struct packed_source *source;
    bool verbatim, quick;
    uint64_t whole, limit; /* no more than limit is looked at */
    atomic_size_t next;
    atomic_size_t size;
    atomic_bool failed;
};
enum { LANES = 4 };
#define LANE_BYTES (3 * (uint64_t)TSR_BLOB_CHUNK) /* a chunk, and a compressor that holds twice as much */

/* A quick look: adds what a chunk becomes, or the chunk's own size if that is less, as it becomes that. Of a chunk that
 * makes the sum larger than the limit the rest is not compressed. Streamed, a chunk may take some bytes more or less
 * than by one call. False: zstd failed. */
static bool look_at_chunk(struct measuring *m, ZSTD_CCtx *compressor, const uint8_t *chunk, size_t size)
{
    uint8_t made[1 << 14];
    ZSTD_inBuffer in = {chunk, size, 0};
    size_t sum = 0, left = 1;
    ZSTD_CCtx_reset(compressor, ZSTD_reset_session_only);
    if (ZSTD_isError(ZSTD_CCtx_setParameter(compressor, ZSTD_c_compressionLevel, QUICK_LEVEL)) ||
        ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(compressor, size)))
        return false;
    while (left > 0 && atomic_load(&m->size) <= m->limit) {
        ZSTD_outBuffer out = {made, sizeof made, 0};
        left = ZSTD_compressStream2(compressor, &out, &in, ZSTD_e_end);
        if (ZSTD_isError(left)) return false;
        const size_t more = sum + out.pos < size ? out.pos : size - sum;
        atomic_fetch_add(&m->size, more);
        sum += more;
    }
    return true;
}

/* Adds exactly what a chunk takes in a container. made: room for it. */
static void measure_chunk(struct measuring *m, ZSTD_CCtx *compressor, const uint8_t *chunk, size_t size, int level,
                          uint8_t *made)
{
    const size_t taken = ZSTD_compressCCtx(compressor, made, ZSTD_compressBound(size), chunk, size, level);
    atomic_fetch_add(&m->size, ZSTD_isError(taken) || taken > size ? size : taken);
}

static void measure_lane(void *context, unsigned lane)
{
    struct measuring *const m = context;
    const bool rows = !m->verbatim && m->source->kind == TSR_KIND_PNG;
    const size_t chunks = (size_t)((m->whole - 1) / TSR_BLOB_CHUNK + 1),
                 most = m->whole < TSR_BLOB_CHUNK ? (size_t)m->whole : TSR_BLOB_CHUNK;
    uint8_t *const chunk = malloc(most + (m->quick ? 0 : ZSTD_compressBound(most)));
    ZSTD_CCtx *const compressor = tsr_take_compressor();
    (void)lane;
    if (!chunk || !compressor) atomic_store(&m->failed, true);
    while (!atomic_load(&m->failed) && atomic_load(&m->size) <= m->limit) {
        const size_t i = atomic_fetch_add(&m->next, 1);
        if (i >= chunks) break;
        const uint64_t at = (uint64_t)i * TSR_BLOB_CHUNK;
        const size_t now = m->whole - at < TSR_BLOB_CHUNK ? (size_t)(m->whole - at) : TSR_BLOB_CHUNK;
        read_form(m->source, m->verbatim, at, chunk, now);
        if (!m->quick)
            measure_chunk(m, compressor, chunk, now, now <= SMALL || rows ? SMALL_LEVEL : LARGE_LEVEL, chunk + most);
        else if (!look_at_chunk(m, compressor, chunk, now))
            atomic_store(&m->failed, true);
    }
    tsr_give_compressor(compressor);
    free(chunk);
}
#endif

/* What the blob takes in a container, or the file would; if that is more than limit, a size that is. 0: no memory. Only
 * a quick look is taken by several threads: others hold more memory. */
static uint64_t stored_size(struct packed_source *s, bool verbatim, bool quick, uint64_t limit)
{
    const uint64_t whole = verbatim ? s->size : s->blob_size;
#if TSR_WITH_ZSTD
    struct measuring m = {.source = s, .verbatim = verbatim, .quick = quick, .whole = whole, .limit = limit};
    const uint64_t chunks = whole / TSR_BLOB_CHUNK;
    unsigned lanes = 1;
    if (whole == 0) return 0;
    while (quick && s->crew.run && lanes < LANES && lanes < chunks && tsr_input_take_spare(s->base.input, LANE_BYTES))
        lanes++;
    if (lanes > 1)
        s->crew.run(s->crew.pool, measure_lane, &m, lanes);
    else
        measure_lane(&m, 0);
    if (lanes > 1) tsr_input_return_spare(s->base.input, (lanes - 1) * LANE_BYTES);
    return atomic_load(&m.failed) ? 0 : atomic_load(&m.size);
#else
    (void)limit;
    (void)quick;
    (void)read_form;
    return whole;
#endif
}

/* Of a PNG that is stored otherwise already: whether it is worth to be packed and measured. The best compressor takes
 * long (34 files: 42 times as long), and makes of what a quick one made rarely less than four fifths; of a small file
 * that is tried anyway. */
static enum tsr_status check_quickly(struct packed_source *s, struct tsr_error *error)
{
    if (s->count == 1 && s->pieces[0].head.kind == TSR_PIECE_SMALL_PNG)
        return TSR_OK; /* which no compressor shortens */
    const uint64_t tenths = s->blob_size <= SMALL ? 5 : 8, most = s->packing->most;
    const uint64_t quick = stored_size(s, false, true, (most / tenths + 1) * 10);
    if (quick == 0) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to compress");
    return quick / 10 * tenths <= most ? TSR_OK : tsr_fail(error, TSR_ERROR_CORRUPT, no_gain);
}

static enum tsr_status check_gain(struct packed_source *s, struct tsr_error *error)
{
    enum { CLEARLY = 64 }; /* what a quick look shortens by one byte of as many, any level shortens */
    const bool is_png = s->kind == TSR_KIND_PNG; /* verbatim, it stays as long as it is */
    if (s->packing->most > 0 && is_png) return check_quickly(s, error);
    const uint64_t clear = s->size - s->size / CLEARLY, quick = is_png ? stored_size(s, false, true, clear) : 0;
    if (quick > 0 && quick < clear) return TSR_OK; /* the best compressor, which takes long, makes no more of it */
    const uint64_t verbatim = is_png        ? s->size
                              : s->verbatim ? s->verbatim
                                            : stored_size(s, true, false, UINT64_MAX),
                   packed = stored_size(s, false, false, verbatim);
    if (verbatim == 0 || packed == 0) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to compress");
    return packed + (is_png ? 1 : LEAST_GAIN) <= verbatim ? TSR_OK : tsr_fail(error, TSR_ERROR_CORRUPT, no_gain);
}

/* ---- What packing takes ------------------------------------------------------------------------------------ */

/* Whether a file is worth its memory is decided by these numbers of bytes, the same on all machines. They are above
 * what packing takes. A file of which they are above MEMORY_LIMIT is not packed. */
static uint64_t unpacking_cost(uint64_t room, uint64_t restored, uint64_t tokens)
{
    static const uint64_t coders = (uint64_t)8 << 20;
    return room + 4 * restored + coders + 8 * (tokens < TSR_DEFLATE_TOKENS ? tokens : TSR_DEFLATE_TOKENS);
}

static uint64_t more_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* work: the most of one stream. */
static uint64_t jpeg_cost(uint64_t size, uint64_t work)
{
    const uint64_t room = 2 * size + work + work / 32;
    return more_of(5 * size + work, unpacking_cost(room, size, room / 2));
}

/* plain: bytes of all streams; largest: of the largest one. */
static uint64_t deflate_cost(uint64_t size, uint64_t plain, uint64_t largest)
{
    const uint64_t tokens = largest < TSR_DEFLATE_TOKENS ? largest : TSR_DEFLATE_TOKENS,
                   packing = 5 * size + 3 * plain + ((uint64_t)3 << 20) + 8 * tokens;
    return more_of(packing, unpacking_cost(2 * largest + 2 * size, size, largest + size));
}

static uint64_t png_cost(uint64_t size, uint64_t plain)
{
    return deflate_cost(size, plain, plain) + TSR_PNG_MIX_MEMORY;
}

/* The file; streams that are packed already; the work on one, or a chunk that is measured. */
static uint64_t jpeg_memory_of(const struct packed_source *s, uint64_t work)
{
    return 2 * (uint64_t)s->size + more_of(work, tsr_chunk_memory(false, s->size));
}

/* The file; plain bytes, of which a stream's may have more room than it needs; residues, twice while those of pieces
 * are joined, or with a stream that is made again. */
static uint64_t deflate_memory_of(const struct packed_source *s, uint64_t plain, uint64_t largest)
{
    const uint64_t others = plain - largest, held = 2 * (uint64_t)s->size + plain;
    return held + more_of((others < largest ? others : largest) + s->size + tsr_deflate_memory(largest),
                          tsr_chunk_memory(s->kind == TSR_KIND_PNG, plain));
}

uint64_t tsr_packing_read_png_memory(uint64_t size, uint64_t plain)
{
    return plain + 2 * size + (1 << 17) + tsr_chunk_memory(true, plain) +
           (plain <= TSR_PNG_MIX_PLAIN ? TSR_PNG_MIX_MEMORY : 0);
}

static enum tsr_status fail_memory(struct tsr_error *error)
{
    return tsr_fail(error, TSR_ERROR_CORRUPT, "it is not coded: that would take more than %llu MiB of memory",
                    (unsigned long long)(MEMORY_LIMIT >> 20));
}

/* cost: as above; 0: it does not matter. */
static enum tsr_status claim(struct packed_source *s, uint64_t cost, uint64_t bytes, uint64_t held,
                             struct tsr_error *error)
{
    const struct tsr_need need = {.opening = bytes, .held = held, .blob = held};
    if (cost > MEMORY_LIMIT) return fail_memory(error);
    return tsr_input_claim(s->base.input, NULL, &need, error);
}

/* Claims what a gzip file takes, and packs its members. */
static enum tsr_status put_gzip(struct packed_source *s, struct tsr_error *error)
{
    struct gzip_limits limits = plain_limits(s);
    const uint64_t size = s->size;
    uint64_t cost = deflate_cost(size, limits.plain, limits.largest);
    for (; cost > MEMORY_LIMIT && limits.plain / 2 >= limits.largest; limits.plain /= 2)
        cost = deflate_cost(size, limits.plain / 2, limits.largest); /* some members stay bytes */
    TSR_TRY(claim(s, cost, deflate_memory_of(s, limits.plain, limits.largest), 2 * size + limits.plain, error));
    struct deflate_coder *coder = NULL;
    struct tsr_deflate_way way = tsr_deflate_with(&s->crew);
    way.kept = &coder;
    const enum tsr_status status = put_members(s, &way, &limits, error);
    tsr_deflate_forget(coder);
    if (status == TSR_ERROR_CORRUPT && limits.doubts && error->offset == TSR_NO_OFFSET) return fail_memory(error);
    return status;
}

/* A DICOM file becomes one piece. TSR_ERROR_CORRUPT: it does not become smaller by an eighth than it is verbatim. Then
 * it stays so, and parts of it can be read without the others: streams of pixels, mostly. The code takes a thousand
 * times longer than zstd. It is not tried on what zstd does not shorten, nor where all that it could save is nearly
 * nothing. */
static enum tsr_status put_elements(struct packed_source *s, struct tsr_error *error)
{
    enum { LITTLE = 32 }; /* one byte of as many */
    struct tsr_bytes code = {0}, none = {0};
    if (s->size > TSR_ELEMENTS_PLAIN) return tsr_fail(error, TSR_ERROR_CORRUPT, "it has too many bytes");
    TSR_TRY(claim(s, 0, 4 * (uint64_t)s->size + TSR_ELEMENTS_MEMORY, 2 * (uint64_t)s->size, error));
    s->verbatim = stored_size(s, true, false, UINT64_MAX);
    if (s->verbatim == 0) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to compress");
    if (s->verbatim < s->size / LITTLE || s->verbatim > s->size - s->size / LITTLE)
        return tsr_fail(error, TSR_ERROR_CORRUPT, no_gain);
    code.limit = (size_t)(s->verbatim - s->verbatim / 8);
    const enum tsr_status status = tsr_elements_mix(s->file, s->size, &code, error);
    if (status == TSR_OK) return put_stream(s, 0, s->size, TSR_PIECE_ELEMENTS, &code, &none, error);
    tsr_bytes_free(&code);
    return status;
}

/* Packs a JPEG file, or the streams of a DICOM file. TSR_ERROR_CORRUPT: none can be packed. */
static enum tsr_status put_jpegs(struct packed_source *s, struct tsr_error *error)
{
    const bool is_whole = begins_jpeg(s->file);
    struct jpeg_work work = {0};
    TSR_TRY(is_whole ? add_stream(s->file, s->size, &work, error) : add_items(s, &work, error));
    const uint64_t before = is_whole ? work.memory - s->size : work.memory; /* there is no other stream */
    TSR_TRY(claim(s, jpeg_cost(s->size, work.cost), jpeg_memory_of(s, before), 2 * (uint64_t)s->size, error));
    return is_whole ? put_jpeg(s, 0, s->size, error) : put_items(s, error);
}

/* Packs the streams of a DICOM file; if none can be, its elements. The error is about the streams. */
static enum tsr_status put_dicom(struct packed_source *s, struct tsr_error *error)
{
    struct tsr_error why;
    enum tsr_status status = put_jpegs(s, error);
    if (status != TSR_ERROR_CORRUPT) return status;
    status = put_elements(s, &why);
    if (status != TSR_OK && status != TSR_ERROR_CORRUPT) *error = why;
    return status;
}

/* What looks damaged, if that is why nothing was packed. */
static void note_damage(struct tsr_input *input, enum tsr_status status, const struct tsr_error *why)
{
    if (status == TSR_ERROR_CORRUPT && why->offset != TSR_NO_OFFSET) tsr_input_note_damage(input, "%s", why->text);
}

/* Claims what packing takes, and packs. */
static enum tsr_status pack(struct packed_source *s, enum tsr_kind kind, struct tsr_error *error)
{
    const uint64_t size = s->size;
    if (begins_jpeg(s->file)) {
        const enum tsr_status status = put_jpegs(s, error);
        note_damage(s->base.input, status, error);
        if (!tsr_jpeg_has_end(s->file, s->size))
            tsr_input_note_damage(s->base.input, "its JPEG stream has no end: the marker EOI is missing");
        TSR_TRY(status);
    } else if (kind == TSR_KIND_DICOM) {
        TSR_TRY(put_dicom(s, error));
    } else if (begins_gzip(s->file)) {
        if (size < TSR_GZIP_HEAD + TSR_GZIP_TAIL)
            return tsr_fail_at(error, TSR_ERROR_CORRUPT, size, "%sit ends too early", cannot_gzip);
        TSR_TRY(put_gzip(s, error));
    } else if (kind == TSR_KIND_PNG) {
        const uint64_t limit = png_plain_limit(s), plain = png_plain_bytes(s);
        if (!s->packing->opened) tsr_png_note_chunks(s->base.input, s->file, s->size);
        if (!s->packing->opened || png_cost(size, limit) > MEMORY_LIMIT) /* else what it took to be opened is enough */
            TSR_TRY(claim(s, png_cost(size, limit), deflate_memory_of(s, plain, plain), 2 * size + plain, error));
        TSR_TRY(put_png(s, limit, error));
    }
    if (s->room == 0) return tsr_fail(error, TSR_ERROR_CORRUPT, "none of its streams can be coded");
    TSR_TRY(put_bytes(s, s->size, error));
    return check_gain(s, error);
}

/* TSR_ERROR_CORRUPT: a look at the first bytes and the size says that the file is not packed. */
static enum tsr_status check_begin(struct tsr_input *input, const struct tsr_packing *packing, struct tsr_error *error)
{
    const uint64_t size = tsr_input_size(input);
    const bool is_png = packing->kind == TSR_KIND_PNG;
    uint8_t head[3] = {0};
    if (size >= sizeof head) TSR_TRY(tsr_input_read(input, 0, head, sizeof head, error));
    if (packing->kind != TSR_KIND_DICOM && !is_png && !begins_jpeg(head) && !begins_gzip(head))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "%s", "");
    if (size > FILE_LIMIT)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "it is not coded: it has more than %llu MiB",
                        (unsigned long long)(FILE_LIMIT >> 20));
    return TSR_OK;
}

static enum tsr_status open_packed(struct tsr_input *input, const struct tsr_packing *packing,
                                   struct tsr_source **source, struct tsr_error *error)
{
    const uint64_t size = tsr_input_size(input);
    const enum tsr_kind kind = packing->kind;
    *source = NULL;
    TSR_TRY(check_begin(input, packing, error));
    TSR_TRY(tsr_input_claim_header(input, size, error));
    struct packed_source *s = calloc(1, sizeof *s);
    if (!s) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a source");
    s->base.ops = &packed_ops;
    s->base.input = input;
    s->crew = tsr_input_crew(input);
    s->packing = packing;
    s->kind = kind;
    s->size = (size_t)size;
    enum tsr_status status = tsr_input_hold(input, s->size, &s->file, error);
    const bool is_small = size < (kind == TSR_KIND_PNG ? LEAST_PNG : LEAST_STREAM),
               may_be_cut = kind != TSR_KIND_PNG && kind != TSR_KIND_DICOM; /* others have looked at their own */
    if (status == TSR_OK && (!is_small || may_be_cut)) status = pack(s, kind, error);
    if (is_small && (status == TSR_OK || status == TSR_ERROR_CORRUPT)) {
        note_damage(input, status, error);
        status =
            tsr_fail(error, TSR_ERROR_CORRUPT, "it is not coded: it has only %llu bytes", (unsigned long long)size);
    }
    s->packing = NULL;
    if (status != TSR_OK) {
        close_packed(&s->base);
        return status;
    }
    s->base.header = (struct tsr_header){.kind = kind, .recipe = TSR_RECIPE_PACKED, .exact = true, .room = s->room};
    snprintf(s->base.header.reason, sizeof s->base.header.reason, "%.*s", TSR_REASON_LIMIT, packing->reason);
    s->base.blob_size[TSR_BLOB_PREFIX] = s->blob_size;
    *source = &s->base;
    return TSR_OK;
}

enum tsr_status tsr_packed_open(struct tsr_input *input, const struct tsr_packing *packing, struct tsr_source **source,
                                struct tsr_error *error)
{
    struct tsr_error why;
    const enum tsr_status status = open_packed(input, packing, source, &why);
    note_damage(input, status, &why);
    const bool says_all = status != TSR_ERROR_CORRUPT || (packing->kind == TSR_KIND_OTHER && why.text[0]) ||
                          strstr(why.text, packing->reason); /* it is said once */
    if (status != TSR_OK && says_all)
        *error = why;
    else if (status != TSR_OK && (!why.text[0] || packing->kind == TSR_KIND_PNG))
        tsr_fail(error, status, "%s", packing->reason);
    else if (status != TSR_OK)
        tsr_fail(error, status, "%.200s, and %.250s", packing->reason, why.text);
    return status;
}
