/* Packs files that are not coded as samples: finds streams in them, makes them smaller, and proves that they come back.
 * FORMAT.md 4.6. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "packed.h"
#include "io/bytes/crc32.h"
#include "io/bytes/zstd_contexts.h"
#include "io/recipe/price.h"
#include "io/recipe/prove.h"
#include "io/nodes/deflate/deflate.h"
#include "io/nodes/elements/elements_blocks.h"
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

/* What a gzip file may unfold to. */
#define PLAIN_FREE ((uint64_t)64 << 20)
#define PLAIN_RATIO ((uint64_t)64)
#define PLAIN_LIMIT ((uint64_t)1 << 30)
#define UNLIKELY_RATIO ((uint64_t)16)

/* Larger files, and those that take more memory, are not packed on any machine: else bytes would depend on memory. */
#define FILE_LIMIT ((uint64_t)1 << 28)
#define MEMORY_LIMIT ((uint64_t)1 << 30)

/* A file that is being packed. */
struct packing {
    struct tsr_source *source;
    const struct tsr_packing *packing;
    struct tsr_crew crew;
    enum tsr_kind kind;
    const uint8_t *file; /* the whole file, held by the input */
    size_t size, done;   /* bytes of the file, and those that pieces have */
    uint64_t verbatim;   /* what the file takes stored; 0: not known */
    bool is_one_code;    /* all of it is a code that no compressor shortens */
};

/* ---- Pieces ------------------------------------------------------------------------------------------------ */

static enum tsr_status put_head(struct packing *p, const struct tsr_piece_head *head, struct tsr_error *error)
{
    uint8_t bytes[TSR_PIECE_HEAD_LIMIT];
    return tsr_source_put_small(p->source, TSR_BLOB_PREFIX, bytes, tsr_put_piece_head(bytes, head), error);
}

/* A piece of a kind whose content is size bytes of the file from a byte on, and that ends before byte end. */
static enum tsr_status put_known(struct packing *p, enum tsr_piece_kind kind, size_t content, size_t size, size_t end,
                                 struct tsr_error *error)
{
    p->done = end;
    TSR_TRY(put_head(p, &(struct tsr_piece_head){.kind = kind, .size = size}, error));
    return tsr_source_put(p->source, TSR_BLOB_PREFIX, p->file + content, size, false, error);
}

/* The bytes of the file up to this one, which no piece has yet, become a piece. */
static enum tsr_status put_bytes(struct packing *p, size_t end, struct tsr_error *error)
{
    return end == p->done ? TSR_OK : put_known(p, TSR_PIECE_BYTES, p->done, end - p->done, end, error);
}

/* The stream from one byte of the file to another becomes a piece, which takes over plain bytes and residue, also after
 * an error. */
static enum tsr_status put_stream(struct packing *p, size_t start, size_t end, enum tsr_piece_kind kind,
                                  struct tsr_bytes *plain, struct tsr_bytes *residue, struct tsr_error *error)
{
    tsr_bytes_fit(plain);
    tsr_bytes_fit(residue);
    const struct tsr_node_parts parts = {plain->bytes, residue->bytes, plain->size, residue->size};
    const struct tsr_piece_head head = {.kind = kind,
                                        .size = plain->size,
                                        .residue = residue->size,
                                        .plain = kind == TSR_PIECE_ELEMENTS ? end - start : 0};
    const uint64_t room = tsr_piece_node(kind)->room(&parts, end - start);
    if (room > p->source->header.room) p->source->header.room = room;
    enum tsr_status status = put_bytes(p, start, error);
    if (status == TSR_OK) status = put_head(p, &head, error);
    p->done = end;
    const enum tsr_status first = tsr_source_put(p->source, TSR_BLOB_PREFIX, plain->bytes, plain->size, true, error),
                          last = tsr_source_put(p->source, TSR_BLOB_PREFIX, residue->bytes, residue->size, true, error);
    return status != TSR_OK ? status : first != TSR_OK ? first : last;
}

/* ---- JPEG -------------------------------------------------------------------------------------------------- */

static bool begins_jpeg(const uint8_t *bytes)
{
    return bytes[0] == 0xff && bytes[1] == 0xd8 && bytes[2] == 0xff;
}

/* A stream stays bytes: why, which is half a sentence, gets a beginning. Other errors stay as they are. */
static enum tsr_status refuse(enum tsr_status status, const char *begin, const struct tsr_error *why,
                              struct tsr_error *error)
{
    const bool is_refusal = status == TSR_DECLINED || status == TSR_ERROR_CORRUPT;
    return tsr_fail_at(error, is_refusal ? TSR_DECLINED : status, why->offset, "%s%.400s", is_refusal ? begin : "",
                       why->text);
}

static const char cannot_jpeg[] = "its JPEG stream cannot be coded: it ",
                  cannot_gzip[] = "its gzip stream cannot be coded: ",
                  no_gain[] = "coded it would not be smaller by 64 bytes";

/* TSR_DECLINED: it stays bytes. */
static enum tsr_status put_jpeg(struct packing *p, size_t start, size_t size, struct tsr_error *error)
{
    struct tsr_bytes packed = {.limit = size > LEAST_GAIN ? size - LEAST_GAIN : 0}, none = {0};
    const struct tsr_node_work work = {.crew = p->crew};
    struct tsr_error why;
    size_t used;
    const enum tsr_status status = tsr_prove(&tsr_node_jpeg, &work, p->file + start, size, &used, &packed, &none, &why);
    if (status == TSR_OK) return put_stream(p, start, start + size, TSR_PIECE_JPEG, &packed, &none, error);
    tsr_bytes_free(&packed);
    return refuse(status, cannot_jpeg, &why, error);
}

/* The next item of DICOM from a byte on that begins as JPEG does. Where items are is not read from the file's header,
 * which may be one that cannot be read: whatever looks like an item is tried, and proven. */
static bool next_item(const struct packing *p, size_t at, size_t *start, size_t *size)
{
    enum { SOF_JPEG_LS = 0xf7 }; /* with which its streams begin */
    static const uint8_t tag[4] = {0xfe, 0xff, 0x00, 0xe0};
    while (p->size - at > ITEM_HEAD) {
        const uint8_t *const found = memchr(p->file + at, tag[0], p->size - at - ITEM_HEAD);
        if (!found) return false;
        *start = (size_t)(found - p->file) + ITEM_HEAD;
        *size = tsr_read_u32(found + 4);
        if (memcmp(found, tag, sizeof tag) == 0 && *size <= p->size - *start && *size >= LEAST_STREAM &&
            begins_jpeg(found + ITEM_HEAD) && found[ITEM_HEAD + 3] != SOF_JPEG_LS)
            return true;
        at = *start - ITEM_HEAD + 1;
    }
    return false;
}

/* Whether an item that begins as JPEG and ends before a byte holds a whole frame: the next one begins another, or there
 * is none. */
static bool is_frame(const struct packing *p, size_t end)
{
    static const uint8_t item[4] = {0xfe, 0xff, 0x00, 0xe0}, last[4] = {0xfe, 0xff, 0xdd, 0xe0};
    const uint8_t *const next = p->file + end;
    if (p->size - end < ITEM_HEAD) return false;
    return memcmp(next, last, sizeof last) == 0 ||
           (memcmp(next, item, sizeof item) == 0 && p->size - end > ITEM_HEAD + 3 && begins_jpeg(next + ITEM_HEAD));
}

/* TSR_DECLINED: none can be packed. */
static enum tsr_status put_items(struct packing *p, struct tsr_error *error)
{
    size_t start, size;
    int failures = 0;
    for (size_t at = 0; failures < MOST_FAILURES && next_item(p, at, &start, &size); at = start + size) {
        const enum tsr_status status = put_jpeg(p, start, size, error);
        if (status == TSR_DECLINED) failures++;
        if (status != TSR_OK && status != TSR_DECLINED) return status;
        if (!is_frame(p, start + size))
            error->offset = TSR_NO_OFFSET; /* a part ends within a scan */
        else if (status == TSR_DECLINED && error->offset != TSR_NO_OFFSET)
            tsr_input_note_damage(p->source->input, "its JPEG stream at byte %zu %.80s", start,
                                  error->text + sizeof cannot_jpeg - 1);
        else if (!tsr_jpeg_has_end(p->file + start, size))
            tsr_input_note_damage(p->source->input, "its JPEG stream at byte %zu has no end: EOI is missing", start);
    }
    return p->done > 0 ? TSR_OK : TSR_DECLINED;
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

/* Of all streams of a DICOM file. TSR_DECLINED: none can be packed; the text is empty if there is none. */
static enum tsr_status add_items(const struct packing *p, struct jpeg_work *work, struct tsr_error *error)
{
    enum tsr_status status = tsr_fail(error, TSR_DECLINED, "%s", "");
    for (size_t at = 0, start, size; status != TSR_ERROR_LIMIT && next_item(p, at, &start, &size); at = start + size)
        status = add_stream(p->file + start, size, work, error);
    return status != TSR_ERROR_LIMIT && work->memory > 0 ? TSR_OK : status;
}

/* ---- gzip -------------------------------------------------------------------------------------------------- */

static bool begins_gzip(const uint8_t *bytes)
{
    return bytes[0] == 0x1f && bytes[1] == 0x8b;
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
static struct gzip_limits plain_limits(const struct packing *p)
{
    const uint64_t size = p->size, ratio = PLAIN_FREE + PLAIN_RATIO * size,
                   most = ratio < PLAIN_LIMIT ? ratio : PLAIN_LIMIT;
    struct gzip_limits l = {0};
    for (size_t start = 0, at = 1; start < p->size; at++) {
        const uint8_t *const found = p->size - at > TSR_GZIP_HEAD + TSR_GZIP_TAIL
                                         ? memchr(p->file + at, 0x1f, p->size - at - TSR_GZIP_HEAD - TSR_GZIP_TAIL)
                                         : NULL;
        at = found ? (size_t)(found - p->file) : p->size;
        if (found && !may_begin(p->file, start, at)) continue;
        const uint64_t said = tsr_read_u32(p->file + at - 4);
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
static void note_check(const struct packing *p, const uint8_t *tail, const struct tsr_bytes *plain)
{
    if (tsr_read_u32(tail) != tsr_crc32_by(&p->crew, plain->bytes, plain->size) ||
        tsr_read_u32(tail + 4) != (uint32_t)plain->size)
        tsr_input_note_damage(p->source->input, "its gzip member has a wrong check (CRC-32 or length), at byte %zu",
                              (size_t)(tail - p->file));
}

/* Members become pieces, until one cannot; it and what follows stays bytes. TSR_DECLINED: the first one cannot. */
static enum tsr_status put_members(struct packing *p, const struct tsr_node_work *work, struct gzip_limits *limits,
                                   struct tsr_error *error)
{
    size_t at = 0, end = 0; /* end: after the members so far */
    if (!tsr_gzip_stream(p->file, p->size, &at))
        return tsr_fail(error, TSR_DECLINED, "%sits header is not valid", cannot_gzip);
    struct tsr_nifti nifti = {.end = 0};
    uint64_t all = 0; /* plain bytes so far */
    do {
        const uint64_t limit = limits->largest < limits->plain ? limits->largest : limits->plain;
        const size_t left = p->size - at - TSR_GZIP_TAIL;
        struct tsr_bytes plain = {.limit = (size_t)limit}, residue = {.limit = left};
        struct tsr_error why;
        size_t used = 0;
        const enum tsr_status status =
            tsr_prove(&tsr_node_deflate, work, p->file + at, left, &used, &plain, &residue, &why);
        limits->plain -= plain.size;
        if (status != TSR_OK) {
            tsr_bytes_free(&plain);
            tsr_bytes_free(&residue);
            if (status != TSR_DECLINED || p->done == 0) return refuse(status, cannot_gzip, &why, error);
            if (why.offset != TSR_NO_OFFSET)
                tsr_input_note_damage(p->source->input, "its gzip member at byte %zu is damaged: %s", at, why.text);
            return TSR_OK;
        }
        note_check(p, p->file + at + used, &plain);
        if (all == 0 && p->kind == TSR_KIND_NIFTI) tsr_read_nifti(plain.bytes, plain.size, &nifti, NULL);
        all += plain.size;
        TSR_TRY(put_stream(p, at, at + used, TSR_PIECE_DEFLATE, &plain, &residue, error));
        end = at += used + TSR_GZIP_TAIL;
    } while (tsr_gzip_stream(p->file, p->size, &at));
    if (p->size - end > 2 && begins_gzip(p->file + end) && p->file[end + 2] == 8)
        tsr_input_note_damage(p->source->input, "its gzip member at byte %zu is cut", end);
    if (nifti.end > all)
        tsr_input_note_damage(p->source->input, "it ends before its last sample: %llu of %llu bytes are in it",
                              (unsigned long long)all, (unsigned long long)nifti.end);
    return TSR_OK;
}

/* ---- PNG --------------------------------------------------------------------------------------------------- */

enum { PNG_HEAD = 8 + 8 + 13 };

/* The most plain bytes of a PNG, by its header: all rows and their filters, of interlaced ones in up to seven passes.
 */
static uint64_t png_plain_limit(const struct packing *p)
{
    static const uint8_t channels[8] = {1, 0, 3, 1, 2, 0, 4, 0};
    if (p->size < PNG_HEAD) return 0;
    const uint64_t columns = tsr_png_get_u32(p->file + 16), rows = tsr_png_get_u32(p->file + 20),
                   bits = (uint64_t)p->file[24] * channels[p->file[25] & 7];
    const uint64_t row = columns * bits / 8 + 2;
    return row > PLAIN_LIMIT || rows > PLAIN_LIMIT / 2 / row ? 0 : 2 * row * rows + 64;
}

/* Plain bytes of a PNG of the usual form, and a few more of an interlaced one. */
static uint64_t png_plain_bytes(const struct packing *p)
{
    enum { PASS_ROWS = 2, FEW = 16 }; /* rows of all passes are less than twice those of the image, and some */
    if (p->packing->opened) return tsr_png_plain_bytes(tsr_png_rows_of(&p->packing->opened->header));
    const uint64_t limit = png_plain_limit(p), rows = limit > 0 ? tsr_png_get_u32(p->file + 20) : 0,
                   row = rows > 0 ? (limit - 64) / 2 / rows : 0, /* with its filter, and perhaps a byte more */
        more = p->size > PNG_HEAD && p->file[PNG_HEAD - 1] > 0 ? PASS_ROWS * rows + FEW : 0;
    return rows * row + more;
}

/* Reads the chunks, makes them again, and compares, unless that was done before. */
static enum tsr_status read_png(const struct packing *p, size_t start, size_t end, struct tsr_bytes *plain,
                                struct tsr_bytes *residue, struct tsr_error *error)
{
    const struct tsr_node_work work = {.crew = p->crew};
    size_t used;
    if (p->packing->opened) return tsr_png_chunks_of(p->packing->opened, &p->crew, plain, residue, error);
    return tsr_prove(&tsr_node_png_chunks, &work, p->file + start, end - start, &used, plain, residue, error);
}

/* A small PNG becomes one piece. TSR_DECLINED: it has not the form for that, or does not become smaller. */
static enum tsr_status put_small_png(struct packing *p, const struct tsr_png_parts *parts, struct tsr_error *error)
{
    struct tsr_bytes code = {.limit = p->size}, none = {0};
    const struct tsr_node_work work = {.crew = p->crew};
    if (parts->plain->size > TSR_PNG_MIX_PLAIN)
        return tsr_fail(error, TSR_DECLINED, "it is not a small PNG of the usual form");
    enum tsr_status status = tsr_png_mix(parts, &code, error);
    if (status == TSR_ERROR_CORRUPT) status = tsr_decline(error);
    const size_t beside = p->size - (parts->end - parts->start) + PIECES; /* what zstd would still have to say */
    if (status == TSR_OK && code.size > beside &&
        tsr_is_cheaper(parts->plain->bytes, parts->plain->size, code.size - beside))
        status = tsr_fail(error, TSR_DECLINED, "zstd makes less of it");
    const struct tsr_node_parts made = {.plain = code.bytes, .plain_size = code.size};
    if (status == TSR_OK) status = tsr_prove_parts(&tsr_node_small_png, &work, &made, p->file, p->size, NULL, error);
    p->is_one_code = status == TSR_OK;
    if (status == TSR_OK) return put_stream(p, 0, p->size, TSR_PIECE_SMALL_PNG, &code, &none, error);
    tsr_bytes_free(&code);
    return status;
}

static enum tsr_status put_png(struct packing *p, uint64_t limit, struct tsr_error *error)
{
    const uint64_t usual = png_plain_bytes(p), most = DEFLATE_RATIO * (uint64_t)p->size;
    struct tsr_bytes plain = {.limit = (size_t)limit}, residue = {.limit = p->size + 64};
    uint8_t begin[TSR_PNG_START_BYTES];
    size_t start = 0, end = 0;
    if (!tsr_png_find_idat(p->file, p->size, &start, &end) || start < TSR_PNG_START_BYTES)
        return tsr_fail(error, TSR_DECLINED, "it has no IDAT chunks that follow each other");
    if (usual <= most && usual <= limit) TSR_TRY(tsr_bytes_reserve(&plain, (size_t)usual, error));
    enum tsr_status status = read_png(p, start, end, &plain, &residue, error);
    const struct tsr_png_parts parts = {p->file, p->size, start, end, &plain, &residue};
    const bool was_read = status == TSR_OK;
    if (was_read) status = put_small_png(p, &parts, error);
    if (!was_read || status != TSR_DECLINED) {
        tsr_bytes_free(&plain);
        tsr_bytes_free(&residue);
        return status;
    }
    tsr_png_start_of(p->file + PNG_HEAD - TSR_PNG_IHDR_BYTES, begin);
    if (memcmp(p->file, begin, sizeof begin) == 0)
        TSR_TRY(
            put_known(p, TSR_PIECE_PNG_START, PNG_HEAD - TSR_PNG_IHDR_BYTES, TSR_PNG_IHDR_BYTES, sizeof begin, error));
    TSR_TRY(put_stream(p, start, end, TSR_PIECE_PNG_IDAT, &plain, &residue, error));
    const size_t last = p->size - TSR_PNG_END_BYTES;
    if (last < p->done || memcmp(p->file + last, tsr_png_end, TSR_PNG_END_BYTES) != 0) return TSR_OK;
    TSR_TRY(put_bytes(p, last, error));
    return put_known(p, TSR_PIECE_PNG_END, last, 0, p->size, error);
}

/* ---- Prices ------------------------------------------------------------------------------------------------ */

static enum tsr_status read_file(void *context, uint64_t offset, void *buffer, size_t size, struct tsr_error *error)
{
    const struct packing *const p = context;
    (void)error;
    memcpy(buffer, p->file + offset, size);
    return TSR_OK;
}

static enum tsr_status read_blob(void *context, uint64_t offset, void *buffer, size_t size, struct tsr_error *error)
{
    const struct packing *const p = context;
    return tsr_source_read_blob(p->source, TSR_BLOB_PREFIX, offset, buffer, size, error);
}

/* The file as it is, and packed. */
static struct tsr_priced stored(struct packing *p)
{
    return (struct tsr_priced){read_file, p, p->size, false};
}

static struct tsr_priced packed(struct packing *p)
{
    return (struct tsr_priced){read_blob, p, p->source->blob_size[TSR_BLOB_PREFIX], p->kind == TSR_KIND_PNG};
}

/* Of a PNG that is stored otherwise already: whether it is worth to be packed and measured. The best compressor takes
 * long (34 files: 42 times as long), and makes of what a quick one made rarely less than four fifths; of a small file
 * that is tried anyway. */
static enum tsr_status check_quickly(struct packing *p, struct tsr_error *error)
{
    const struct tsr_priced blob = packed(p);
    if (p->is_one_code) return TSR_OK;
    const uint64_t tenths = blob.size <= TSR_SMALL_BLOB ? 5 : 8, most = p->packing->most;
    const uint64_t quick = tsr_price_quickly(&blob, (most / tenths + 1) * 10, p->source->input);
    if (quick == 0) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to compress");
    return quick / 10 * tenths <= most ? TSR_OK : tsr_fail(error, TSR_DECLINED, no_gain);
}

static enum tsr_status check_gain(struct packing *p, struct tsr_error *error)
{
    enum { CLEARLY = 64 }; /* what a quick look shortens by one byte of as many, any level shortens */
    const struct tsr_priced blob = packed(p), file = stored(p);
    const bool is_png = p->kind == TSR_KIND_PNG; /* stored, it stays as long as it is */
    if (p->packing->most > 0 && is_png) return check_quickly(p, error);
    const uint64_t clear = p->size - p->size / CLEARLY,
                   quick = is_png ? tsr_price_quickly(&blob, clear, p->source->input) : 0;
    if (quick > 0 && quick < clear) return TSR_OK; /* the best compressor, which takes long, makes no more of it */
    const uint64_t verbatim = is_png        ? p->size
                              : p->verbatim ? p->verbatim
                                            : tsr_price(&file, UINT64_MAX),
                   coded = tsr_price(&blob, verbatim);
    if (verbatim == 0 || coded == 0) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to compress");
    return coded + (is_png ? 1 : LEAST_GAIN) <= verbatim ? TSR_OK : tsr_fail(error, TSR_DECLINED, no_gain);
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
static uint64_t jpeg_memory_of(const struct packing *p, uint64_t work)
{
    return 2 * (uint64_t)p->size + more_of(work, tsr_chunk_memory(false, p->size));
}

/* The file; plain bytes, of which a stream's may have more room than it needs; residues, twice while those of pieces
 * are joined, or with a stream that is made again. */
static uint64_t deflate_memory_of(const struct packing *p, uint64_t plain, uint64_t largest)
{
    const uint64_t others = plain - largest, held = 2 * (uint64_t)p->size + plain;
    return held + more_of((others < largest ? others : largest) + p->size + tsr_deflate_memory(largest),
                          tsr_chunk_memory(p->kind == TSR_KIND_PNG, plain));
}

uint64_t tsr_packing_read_png_memory(uint64_t size, uint64_t plain)
{
    return plain + 2 * size + (1 << 17) + tsr_chunk_memory(true, plain) +
           (plain <= TSR_PNG_MIX_PLAIN ? TSR_PNG_MIX_MEMORY : 0);
}

static enum tsr_status fail_memory(struct tsr_error *error)
{
    return tsr_fail(error, TSR_DECLINED, "it is not coded: that would take more than %llu MiB of memory",
                    (unsigned long long)(MEMORY_LIMIT >> 20));
}

/* cost: as above; 0: it does not matter. */
static enum tsr_status claim(struct packing *p, uint64_t cost, uint64_t bytes, uint64_t held, struct tsr_error *error)
{
    const struct tsr_need need = {.opening = bytes, .held = held, .blob = held};
    if (cost > MEMORY_LIMIT) return fail_memory(error);
    const enum tsr_status status = tsr_input_claim(p->source->input, NULL, &need, error);
    return status == TSR_ERROR_CORRUPT ? tsr_decline(error) : status; /* more than was claimed before */
}

/* Claims what a gzip file takes, and packs its members. */
static enum tsr_status put_gzip(struct packing *p, struct tsr_error *error)
{
    struct gzip_limits limits = plain_limits(p);
    const uint64_t size = p->size;
    uint64_t cost = deflate_cost(size, limits.plain, limits.largest);
    for (; cost > MEMORY_LIMIT && limits.plain / 2 >= limits.largest; limits.plain /= 2)
        cost = deflate_cost(size, limits.plain / 2, limits.largest); /* some members stay bytes */
    TSR_TRY(claim(p, cost, deflate_memory_of(p, limits.plain, limits.largest), 2 * size + limits.plain, error));
    struct deflate_coder *coder = NULL;
    const struct tsr_node_work work = {.crew = p->crew, .kept = &coder};
    const enum tsr_status status = put_members(p, &work, &limits, error);
    tsr_deflate_forget(coder);
    if (status == TSR_DECLINED && limits.doubts && error->offset == TSR_NO_OFFSET) return fail_memory(error);
    return status;
}

enum { LITTLE = 32 }; /* one byte of as many */

/* Codes a block as a try. TSR_DECLINED: it does not become smaller by an eighth. */
static enum tsr_status try_block(struct tsr_elements_block *block, struct tsr_error *error)
{
    struct packing of_block = {.file = block->bytes};
    const struct tsr_priced priced = {read_file, &of_block, block->size, false};
    const uint64_t price = tsr_price(&priced, UINT64_MAX);
    if (price == 0) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to compress");
    block->code.limit = (size_t)(price - price / 8);
    const enum tsr_status status = tsr_elements_mix_block(block->bytes, block->size, block->form, &block->code, error);
    return status == TSR_ERROR_CORRUPT ? tsr_decline(error) : status;
}

/* The threads that help, each in memory that is spare. */
static void mix_blocks(struct packing *p, struct tsr_elements_block *block, unsigned count)
{
    unsigned threads = 1;
    while (p->crew.run && threads < count && tsr_input_take_spare(p->source->input, TSR_ELEMENTS_MEMORY)) threads++;
    tsr_elements_mix_blocks(block, count, &p->crew, threads);
    if (threads > 1) tsr_input_return_spare(p->source->input, (threads - 1) * (uint64_t)TSR_ELEMENTS_MEMORY);
}

/* Blocks that become smaller become pieces; the others stay bytes. TSR_DECLINED: together they do not become smaller by
 * an eighth. */
static enum tsr_status put_block_codes(struct packing *p, struct tsr_elements_block *block, unsigned count,
                                       struct tsr_error *error)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < count; i++) {
        if (block[i].status != TSR_OK && block[i].status != TSR_ERROR_CORRUPT)
            return tsr_fail(error, block[i].status, "no memory to code elements");
        sum += block[i].status == TSR_OK ? block[i].code.size : block[i].size;
    }
    if (sum > p->verbatim - p->verbatim / 8) return tsr_fail(error, TSR_DECLINED, no_gain);
    for (unsigned i = 0; i < count; i++) {
        const size_t start = (size_t)(block[i].bytes - p->file);
        struct tsr_bytes code = block[i].code, none = {0};
        if (block[i].status != TSR_OK) continue;
        block[i].code = (struct tsr_bytes){0};
        TSR_TRY(put_stream(p, start, start + block[i].size, TSR_PIECE_ELEMENTS, &code, &none, error));
    }
    return TSR_OK;
}

/* A long DICOM file, in blocks. The one in the middle is coded first, as a try. */
static enum tsr_status put_blocks(struct packing *p, struct tsr_error *error)
{
    unsigned count = 0;
    struct tsr_elements_block *const block = calloc(TSR_ELEMENTS_BLOCKS, sizeof *block);
    if (!block) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to code elements");
    enum tsr_status status = tsr_elements_cut(p->file, p->size, block, &count, error);
    if (status == TSR_OK) status = try_block(&block[count / 2], error);
    if (status == TSR_OK) {
        for (unsigned i = 0; i < count; i++) {
            tsr_bytes_free(&block[i].code);
            block[i].code.limit = block[i].size;
        }
        mix_blocks(p, block, count);
        status = put_block_codes(p, block, count, error);
    }
    for (unsigned i = 0; i < count; i++) tsr_bytes_free(&block[i].code);
    free(block);
    return status;
}

/* A DICOM file becomes one piece, or several. TSR_DECLINED: it does not become smaller by an eighth than it is
 * verbatim. Then it stays so, and parts of it can be read without the others: streams of pixels, mostly. The code takes
 * a thousand times longer than zstd. It is not tried on what zstd does not shorten, nor where all that it could save is
 * nearly nothing. */
static enum tsr_status put_elements(struct packing *p, struct tsr_error *error)
{
    struct tsr_bytes code = {0}, none = {0};
    if (p->size > TSR_ELEMENTS_LONG) return tsr_fail(error, TSR_DECLINED, "it has too many bytes");
    TSR_TRY(claim(p, 0, 4 * (uint64_t)p->size + TSR_ELEMENTS_MEMORY, 2 * (uint64_t)p->size, error));
    const struct tsr_priced file = stored(p);
    p->verbatim = tsr_price(&file, UINT64_MAX);
    if (p->verbatim == 0) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to compress");
    if (p->verbatim < p->size / LITTLE || p->verbatim > p->size - p->size / LITTLE)
        return tsr_fail(error, TSR_DECLINED, no_gain);
    if (p->size > TSR_ELEMENTS_PLAIN) return put_blocks(p, error);
    code.limit = (size_t)(p->verbatim - p->verbatim / 8);
    const enum tsr_status status = tsr_elements_mix(p->file, p->size, &code, error);
    if (status == TSR_OK) return put_stream(p, 0, p->size, TSR_PIECE_ELEMENTS, &code, &none, error);
    tsr_bytes_free(&code);
    return status == TSR_ERROR_CORRUPT ? tsr_decline(error) : status;
}

/* Packs a JPEG file, or the streams of a DICOM file. TSR_DECLINED: none can be packed. */
static enum tsr_status put_jpegs(struct packing *p, struct tsr_error *error)
{
    const bool is_whole = begins_jpeg(p->file);
    struct jpeg_work work = {0};
    TSR_TRY(is_whole ? add_stream(p->file, p->size, &work, error) : add_items(p, &work, error));
    const uint64_t before = is_whole ? work.memory - p->size : work.memory; /* there is no other stream */
    TSR_TRY(claim(p, jpeg_cost(p->size, work.cost), jpeg_memory_of(p, before), 2 * (uint64_t)p->size, error));
    return is_whole ? put_jpeg(p, 0, p->size, error) : put_items(p, error);
}

/* Packs the streams of a DICOM file; if none can be, its elements. The error is about the streams. */
static enum tsr_status put_dicom(struct packing *p, struct tsr_error *error)
{
    struct tsr_error why;
    enum tsr_status status = put_jpegs(p, error);
    if (status != TSR_DECLINED) return status;
    status = put_elements(p, &why);
    if (status != TSR_OK && status != TSR_DECLINED) *error = why;
    return status;
}

/* What looks damaged, if that is why nothing was packed. */
static void note_damage(struct tsr_input *input, enum tsr_status status, const struct tsr_error *why)
{
    if (status == TSR_DECLINED && why->offset != TSR_NO_OFFSET) tsr_input_note_damage(input, "%s", why->text);
}

/* Claims what packing takes, and packs. */
static enum tsr_status pack(struct packing *p, enum tsr_kind kind, struct tsr_error *error)
{
    const uint64_t size = p->size;
    if (begins_jpeg(p->file)) {
        const enum tsr_status status = put_jpegs(p, error);
        note_damage(p->source->input, status, error);
        if (!tsr_jpeg_has_end(p->file, p->size))
            tsr_input_note_damage(p->source->input, "its JPEG stream has no end: the marker EOI is missing");
        TSR_TRY(status);
    } else if (kind == TSR_KIND_DICOM) {
        TSR_TRY(put_dicom(p, error));
    } else if (begins_gzip(p->file)) {
        if (size < TSR_GZIP_HEAD + TSR_GZIP_TAIL)
            return tsr_fail_at(error, TSR_DECLINED, size, "%sit ends too early", cannot_gzip);
        TSR_TRY(put_gzip(p, error));
    } else if (kind == TSR_KIND_PNG) {
        const uint64_t limit = png_plain_limit(p), plain = png_plain_bytes(p);
        if (!p->packing->opened) tsr_png_note_chunks(p->source->input, p->file, p->size);
        if (!p->packing->opened || png_cost(size, limit) > MEMORY_LIMIT) /* else what it took to be opened is enough */
            TSR_TRY(claim(p, png_cost(size, limit), deflate_memory_of(p, plain, plain), 2 * size + plain, error));
        TSR_TRY(put_png(p, limit, error));
    }
    if (p->source->header.room == 0) return tsr_fail(error, TSR_DECLINED, "none of its streams can be coded");
    TSR_TRY(put_bytes(p, p->size, error));
    return check_gain(p, error);
}

/* TSR_DECLINED: a look at the first bytes and the size says that the file is not packed. */
static enum tsr_status check_begin(struct tsr_input *input, const struct tsr_packing *packing, struct tsr_error *error)
{
    const uint64_t size = tsr_input_size(input);
    const bool is_png = packing->kind == TSR_KIND_PNG;
    uint8_t head[3] = {0};
    if (size >= sizeof head) TSR_TRY(tsr_input_read(input, 0, head, sizeof head, error));
    if (packing->kind != TSR_KIND_DICOM && !is_png && !begins_jpeg(head) && !begins_gzip(head))
        return tsr_fail(error, TSR_DECLINED, "%s", "");
    if (size > FILE_LIMIT)
        return tsr_fail(error, TSR_DECLINED, "it is not coded: it has more than %llu MiB",
                        (unsigned long long)(FILE_LIMIT >> 20));
    return TSR_OK;
}

static enum tsr_status open_packed(struct tsr_input *input, const struct tsr_packing *packing,
                                   struct tsr_source **source, struct tsr_error *error)
{
    const uint64_t size = tsr_input_size(input);
    const enum tsr_kind kind = packing->kind;
    struct tsr_header header = {.kind = kind, .recipe = TSR_RECIPE_PACKED, .exact = true};
    struct packing p = {.packing = packing, .crew = tsr_input_crew(input), .kind = kind, .size = (size_t)size};
    *source = NULL;
    TSR_TRY(check_begin(input, packing, error));
    TSR_TRY(tsr_input_claim_header(input, size, error));
    snprintf(header.reason, sizeof header.reason, "%.*s", TSR_REASON_LIMIT, packing->reason);
    p.source = tsr_source_create(sizeof *p.source, input, &header, NULL, error);
    if (!p.source) return TSR_ERROR_LIMIT;
    enum tsr_status status = tsr_input_hold(input, p.size, &p.file, error);
    const bool is_small = size < (kind == TSR_KIND_PNG ? LEAST_PNG : LEAST_STREAM),
               may_be_cut = kind != TSR_KIND_PNG && kind != TSR_KIND_DICOM; /* others have looked at their own */
    if (status == TSR_OK && (!is_small || may_be_cut)) status = pack(&p, kind, error);
    if (is_small && (status == TSR_OK || status == TSR_DECLINED)) {
        note_damage(input, status, error);
        status = tsr_fail(error, TSR_DECLINED, "it is not coded: it has only %llu bytes", (unsigned long long)size);
    }
    if (status == TSR_OK)
        *source = p.source;
    else
        tsr_source_close(p.source);
    return status;
}

enum tsr_status tsr_packed_open(struct tsr_input *input, const struct tsr_packing *packing, struct tsr_source **source,
                                struct tsr_error *error)
{
    struct tsr_error why;
    const enum tsr_status status = open_packed(input, packing, source, &why);
    note_damage(input, status, &why);
    const bool says_all = status != TSR_DECLINED || (packing->kind == TSR_KIND_OTHER && why.text[0]) ||
                          strstr(why.text, packing->reason); /* it is said once */
    if (status != TSR_OK && says_all)
        *error = why;
    else if (status != TSR_OK && (!why.text[0] || packing->kind == TSR_KIND_PNG))
        tsr_fail(error, status, "%s", packing->reason);
    else if (status != TSR_OK)
        tsr_fail(error, status, "%.200s, and %.250s", packing->reason, why.text);
    return status;
}
