/* The IDAT chunks of a PNG as pixels and a residue, and the same chunks again. */
#include "png_idat.h"

#include <stdlib.h>
#include <string.h>

#include "io/nodes/deflate/deflate.h"
#include "png_checks.h"
#include "png_chunks.h"
#include "png_plain.h"

enum {
    LENGTH_BYTES = 4,
    SEQUENCE_BYTES = 4, /* of chunks fdAT, before their data */
    ZLIB_HEAD = 2,
    ZLIB_CHECK = 4,
    LISTED = 255 /* instead of a filter type: each row's type is listed */
};
enum { SIZES = 1, WRONG = 2, NO_CHECK = 4, LAST_CUT = 8, FRAME = 16, ALL_FLAGS = 31 }; /* of a residue */

uint64_t tsr_png_idat_memory(struct tsr_png_rows of, uint64_t size)
{
    const struct tsr_png_form r = tsr_png_form_of(of);
    /* Filters; a stream and, twice while pieces are joined, a residue; or the residue and the stream. */
    return tsr_png_form_memory(&r) + r.all + 3 * size + tsr_deflate_memory(r.plain_bytes);
}

uint64_t tsr_png_reading_memory(struct tsr_png_rows of, uint64_t size)
{
    enum { ZLIB_TOKENS = 1 << 15 }; /* of a block */
    const struct tsr_png_form r = tsr_png_form_of(of);
    return tsr_png_form_memory(&r) + r.all + 2 * size + tsr_deflate_memory(ZLIB_TOKENS);
}

/* ---- Reading ------------------------------------------------------------------------------------------------ */

/* The next chunk of some that follow each other, of which the last one may be cut; data and size without a sequence
 * number, which takes so many bytes. */
static bool next_chunk(const uint8_t *chunks, size_t size, size_t *at, size_t sequence, struct tsr_png_chunk *chunk,
                       bool *is_cut)
{
    const bool is_whole = tsr_png_next(chunks, size, at, chunk);
    *is_cut = !is_whole && tsr_png_cut(chunks, size, *at, chunk) && chunk->data + chunk->size == chunks + size;
    if (*is_cut) *at = size;
    if ((!is_whole && !*is_cut) || chunk->size < sequence) return false;
    chunk->data += sequence;
    chunk->size -= (uint32_t)sequence;
    return true;
}

/* Joins the data of chunks, and puts their sizes: their number, the size of the first, flags, and if not all but the
 * last have that size, their sizes but that of the last. *flags: the byte of the residue that has them. */
static enum tsr_status join_chunks(const struct tsr_crew *crew, const uint8_t *chunks, size_t size,
                                   struct tsr_bytes *stream, struct tsr_bytes *residue, size_t *flags,
                                   struct tsr_error *error)
{
    uint64_t count = 0;
    uint32_t first = 0, said = 0, number = 0;
    size_t at = 0;
    bool equal = true, is_last_cut, is_cut = false;
    const bool is_frame = size >= 2 * SEQUENCE_BYTES + 4 && memcmp(chunks + LENGTH_BYTES, "fdAT", 4) == 0;
    const size_t sequence = is_frame ? SEQUENCE_BYTES : 0;
    TSR_TRY(tsr_bytes_reserve_by(crew, stream, size, error));
    struct tsr_png_chunk chunk;
    for (; next_chunk(chunks, size, &at, sequence, &chunk, &is_last_cut); count++) {
        if (count == 0) first = chunk.size;
        if (count == 0 && is_frame) number = tsr_read_u32_be(chunk.data - sequence);
        if (is_frame && tsr_read_u32_be(chunk.data - sequence) != (uint32_t)(number + count))
            return tsr_fail(error, TSR_ERROR_CORRUPT, "its fdAT chunks are not in order");
        TSR_TRY(tsr_bytes_put(stream, chunk.data, chunk.size, error));
        if (at < size && chunk.size != first) equal = false;
        if (is_last_cut) said = tsr_read_u32_be(chunk.type - LENGTH_BYTES);
        is_cut = is_last_cut;
    }
    if (at != size || count == 0) return tsr_fail_at(error, TSR_ERROR_CORRUPT, at, "its IDAT chunks are cut");
    TSR_TRY(tsr_bytes_put_varint(residue, count, error));
    TSR_TRY(tsr_bytes_put_varint(residue, count > 1 ? first : 0, error));
    *flags = residue->size;
    TSR_TRY(tsr_bytes_put_u8(residue, (uint8_t)((equal ? 0 : SIZES) | (is_cut ? LAST_CUT : 0) | (is_frame ? FRAME : 0)),
                             error));
    for (at = 0; !equal && count-- > 1 && next_chunk(chunks, size, &at, sequence, &chunk, &is_last_cut);)
        TSR_TRY(tsr_bytes_put_varint(residue, chunk.size, error));
    if (is_cut) TSR_TRY(tsr_bytes_put_varint(residue, said, error));
    uint8_t bytes[SEQUENCE_BYTES];
    tsr_put_u32(bytes, number);
    return is_frame ? tsr_bytes_put(residue, bytes, sizeof bytes, error) : TSR_OK;
}

static enum tsr_status put_types(const uint8_t *types, size_t count, struct tsr_bytes *residue, struct tsr_error *error)
{
    bool equal = true;
    for (size_t i = 1; i < count; i++) equal = equal && types[i] == types[0];
    if (equal) return tsr_bytes_put_u8(residue, types[0], error);
    TSR_TRY(tsr_bytes_put_u8(residue, LISTED, error));
    return tsr_bytes_put(residue, types, count, error);
}

/* What is checked and taken while the plain bytes are coded. */
struct reading {
    const uint8_t *chunks;
    size_t size;
    bool is_checked;
    size_t wrong;                 /* the number of a chunk */
    const struct tsr_png_form *r; /* or NULL */
    const struct tsr_bytes *plain;
    uint8_t *types, *raster;
    uint32_t adler;
    enum tsr_status status;
    struct tsr_error error;
};

static void check_chunks(struct reading *g)
{
    if (!g->is_checked) g->wrong = tsr_png_find_wrong(g->chunks, g->size);
    g->is_checked = true;
}

static const char pixels_end[] = "its pixels end early";

static void read_plain(void *context)
{
    struct reading *const g = context;
    check_chunks(g);
    g->adler = tsr_png_adler(g->plain->bytes, g->plain->size);
    if (!g->r) return;
    g->status = g->plain->size == g->r->plain_bytes
                    ? tsr_png_take_plain(g->r, g->plain->bytes, g->types, g->raster, &g->error)
                    : tsr_fail_at(&g->error, TSR_ERROR_CORRUPT, 0, "%s", pixels_end);
}

static bool is_zlib(const uint8_t *z, size_t size)
{
    return size >= ZLIB_HEAD && (z[0] & 15) == 8 && (z[0] << 8 | z[1]) % 31 == 0 && !(z[1] & 32);
}

/* Inflates the zlib stream of chunks. The residue gets all but what the deflate stream's own residue says. What looks
 * damaged is told by the error, after TSR_OK, too. */
static enum tsr_status read_stream(const struct tsr_deflate_way *way, const uint8_t *chunks, size_t size,
                                   struct tsr_bytes *stream, struct tsr_bytes *plain, struct tsr_bytes *deflated,
                                   struct tsr_bytes *residue, struct tsr_error *error)
{
    struct reading *const g = way->context;
    size_t used = 0, flags = 0;
    TSR_TRY(join_chunks(&way->crew, chunks, size, stream, residue, &flags, error));
    const uint8_t *const z = stream->bytes;
    if (!is_zlib(z, stream->size)) return tsr_fail(error, TSR_ERROR_CORRUPT, "its IDAT chunks hold no zlib stream");
    const uint64_t most = TSR_DEFLATE_RATIO * (uint64_t)stream->size;
    const size_t plain_bytes = g->r ? g->r->plain_bytes : 0, room = most < plain_bytes ? (size_t)most : plain_bytes;
    const bool is_likely = room / 64 <= stream->size; /* that all will be used: a header alone may say anything */
    TSR_TRY(tsr_bytes_reserve_by(is_likely ? &way->crew : NULL, plain, room, error));
    struct tsr_error fault = {.offset = TSR_NO_OFFSET};
    const enum tsr_status status = (g->r ? tsr_deflate_read_by : tsr_deflate_read_up_to)(
        way, z + ZLIB_HEAD, stream->size - ZLIB_HEAD, &used, plain, deflated, &fault);
    if (error && (status != TSR_OK || fault.text[0])) *error = fault;
    TSR_TRY(status);
    const size_t end = ZLIB_HEAD + used;
    const bool has_check = !fault.text[0] && stream->size - end >= ZLIB_CHECK,
               is_right = has_check && g->adler == tsr_read_u32_be(z + end);
    if (!has_check && !fault.text[0]) tsr_fail_at(error, TSR_ERROR_CORRUPT, end, "%s", pixels_end);
    if (has_check && !is_right)
        tsr_fail_at(error, TSR_ERROR_CORRUPT, end, "its zlib stream has a wrong check (Adler-32)");
    if (!has_check) residue->bytes[flags] |= NO_CHECK;
    const size_t tail = end + (has_check ? ZLIB_CHECK : 0);
    TSR_TRY(tsr_bytes_put(residue, z, ZLIB_HEAD, error));
    TSR_TRY(tsr_bytes_put_list(residue, z + tail, stream->size - tail, 0, error));
    check_chunks(g);
    if (g->wrong == 0 && (is_right || !has_check)) return TSR_OK;
    residue->bytes[flags] |= WRONG;
    return tsr_png_put_wrong(chunks, size, has_check && !is_right ? z + end : NULL, residue, error);
}

/* Reads chunks, and their rows if r is not NULL. */
static enum tsr_status read_chunks(const struct tsr_png_form *r, const struct tsr_node_work *work,
                                   const uint8_t *chunks, size_t size, struct tsr_bytes *plain, uint8_t *types,
                                   uint8_t *raster, struct tsr_bytes *residue, struct tsr_error *error)
{
    struct tsr_bytes stream = {.limit = size}, head = {.limit = residue->limit};
    struct reading g = {.chunks = chunks, .size = size, .r = r, .plain = plain, .types = types, .raster = raster};
    struct tsr_deflate_way way = tsr_deflate_way_of(work);
    const size_t limit = residue->limit;
    way.meanwhile = read_plain;
    way.context = &g;
    residue->limit = size + 64;
    enum tsr_status status = read_stream(&way, chunks, size, &stream, plain, residue, &head, error);
    residue->limit = limit;
    tsr_bytes_free(&stream);
    check_chunks(&g); /* whatever else is wrong */
    if (status == TSR_OK && g.status != TSR_OK)
        status = tsr_fail_at(error, g.status, g.error.offset, "%s", g.error.text);
    if (g.wrong > 0 && status != TSR_ERROR_LIMIT)
        tsr_fail_at(error, TSR_ERROR_CORRUPT, 0, "its IDAT chunk number %zu has a wrong CRC", g.wrong);
    if (status == TSR_OK && r) status = put_types(types, r->all, &head, error);
    if (status == TSR_OK) status = tsr_bytes_put_before(residue, &head, error);
    tsr_bytes_free(&head);
    return status;
}

static enum tsr_status split_raster(const struct tsr_node_work *work, const uint8_t *chunks, size_t size, size_t *used,
                                    struct tsr_bytes *plain, struct tsr_bytes *residue, struct tsr_error *error)
{
    const struct tsr_png_form r = tsr_png_form_of((struct tsr_png_rows){work->image, work->interlaced});
    struct tsr_bytes rows = {.limit = r.plain_bytes};
    uint8_t *const types = malloc(r.all);
    *used = size;
    plain->size = plain->capacity;
    const enum tsr_status status = types
                                       ? read_chunks(&r, work, chunks, size, &rows, types, plain->bytes, residue, error)
                                       : tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu filters", r.all);
    free(types);
    tsr_bytes_free(&rows);
    return status;
}

static enum tsr_status split_chunks(const struct tsr_node_work *work, const uint8_t *chunks, size_t size, size_t *used,
                                    struct tsr_bytes *plain, struct tsr_bytes *residue, struct tsr_error *error)
{
    *used = size;
    return read_chunks(NULL, work, chunks, size, plain, NULL, NULL, residue, error);
}

/* ---- Pixels alone ------------------------------------------------------------------------------------------- */

/* The zlib stream of chunks without a fault, in memory of joined if there are several. NULL: they have one. */
static const uint8_t *stream_of(const uint8_t *chunks, size_t size, struct tsr_bytes *joined, size_t *bytes)
{
    struct tsr_png_chunk chunk, first;
    size_t at = 0;
    joined->limit = size;
    if (!tsr_png_next(chunks, size, &at, &first) || !tsr_png_checks(&first)) return NULL;
    *bytes = first.size;
    if (at == size) return first.data;
    if (tsr_bytes_reserve(joined, size, NULL) != TSR_OK) return NULL;
    memcpy(joined->bytes, first.data, first.size);
    for (; at < size; *bytes += chunk.size) {
        if (!tsr_png_next(chunks, size, &at, &chunk) || !tsr_png_checks(&chunk)) return NULL;
        memcpy(joined->bytes + *bytes, chunk.data, chunk.size);
    }
    return joined->bytes;
}

/* Inflates a zlib stream that becomes just so many bytes. False: it does not, or has a fault, or memory is missing. */
static bool inflate(const uint8_t *z, size_t size, uint8_t *plain, size_t plain_bytes)
{
    size_t used = 0;
    return is_zlib(z, size) && tsr_deflate_plain(z + ZLIB_HEAD, size - ZLIB_HEAD, plain, plain_bytes, &used) &&
           size - ZLIB_HEAD - used >= ZLIB_CHECK &&
           tsr_png_adler(plain, plain_bytes) == tsr_read_u32_be(z + ZLIB_HEAD + used);
}

enum tsr_status tsr_png_read_raster(struct tsr_png_rows of, const struct tsr_crew *crew, const uint8_t *chunks,
                                    size_t size, uint8_t *raster, struct tsr_error *error)
{
    const struct tsr_png_form form = tsr_png_form_of(of);
    const struct tsr_node_work work = {
        .image = of.image, .interlaced = of.interlaced, .crew = crew ? *crew : (struct tsr_crew){NULL, NULL}};
    struct tsr_bytes joined = {0}, plain = {.limit = form.plain_bytes};
    size_t bytes = 0, used;
    const uint8_t *const z = stream_of(chunks, size, &joined, &bytes);
    const bool may_be = z && form.plain_bytes / TSR_DEFLATE_RATIO <= bytes; /* a header alone may say anything */
    const bool is_good = may_be && tsr_bytes_reserve_by(crew, &plain, form.plain_bytes, NULL) == TSR_OK &&
                         inflate(z, bytes, plain.bytes, form.plain_bytes) &&
                         tsr_png_take_plain(&form, plain.bytes, NULL, raster, NULL) == TSR_OK;
    tsr_bytes_free(&joined);
    tsr_bytes_free(&plain);
    if (is_good) return TSR_OK;
    /* The node tells what is wrong. */
    struct tsr_bytes residue = {.limit = size + 64 + 2 * form.all};
    struct tsr_bytes pixels = {.bytes = raster, .capacity = tsr_raster_bytes(of.image)};
    pixels.limit = pixels.capacity;
    const enum tsr_status status = split_raster(&work, chunks, size, &used, &pixels, &residue, error);
    tsr_bytes_free(&residue);
    return status;
}

/* ---- Writing ------------------------------------------------------------------------------------------------ */

/* A residue that was read, but for the sizes of chunks and what deflate needs. */
struct parts {
    struct tsr_cursor sizes;     /* of all chunks but the last, if they are listed */
    uint64_t chunks, size, said; /* said: by the last chunk, if it is cut */
    uint32_t sequence;           /* of the first chunk, if they have numbers */
    unsigned flags;
    struct tsr_png_wrong wrong;
    const uint8_t *head, *tail, *types; /* types: of all rows, or NULL: each has type */
    size_t tail_size;
    int type;
    size_t rows_at; /* where type and types stand */
    const uint8_t *deflated;
    size_t deflated_size;
};

/* r: NULL if it has no rows. */
static enum tsr_status read_parts(const struct tsr_png_form *r, const uint8_t *residue, size_t size, struct parts *p,
                                  struct tsr_error *error)
{
    struct tsr_cursor c = {residue, size, 0, false};
    memset(p, 0, sizeof *p);
    p->chunks = tsr_get_varint(&c);
    p->size = tsr_get_varint(&c);
    p->flags = tsr_get_u8(&c);
    p->sizes = c;
    for (uint64_t i = 1; p->flags & SIZES && i < p->chunks && !c.bad; i++) tsr_get_varint(&c);
    if (p->flags & LAST_CUT) p->said = tsr_get_varint(&c);
    const uint8_t *const sequence = p->flags & FRAME ? tsr_get_bytes(&c, SEQUENCE_BYTES) : NULL;
    if (sequence) p->sequence = tsr_read_u32(sequence);
    p->head = tsr_get_bytes(&c, ZLIB_HEAD);
    p->tail = tsr_get_list(&c, &p->tail_size);
    if (p->flags & WRONG) p->wrong.count = tsr_get_varint(&c);
    p->wrong.checks = c;
    for (uint64_t i = 0; i < p->wrong.count && !c.bad; i++) {
        tsr_get_varint(&c);
        tsr_get_bytes(&c, ZLIB_CHECK);
    }
    p->rows_at = c.at;
    if (r) p->type = tsr_get_u8(&c);
    if (r && p->type == LISTED) p->types = tsr_get_bytes(&c, r->all);
    if (c.bad || p->chunks == 0 || p->flags > ALL_FLAGS || (p->type != LISTED && p->type >= TSR_PNG_FILTERS))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "the residue of a PNG is damaged");
    for (size_t i = 0; p->types && i < r->all; i++)
        if (p->types[i] >= TSR_PNG_FILTERS)
            return tsr_fail(error, TSR_ERROR_CORRUPT, "the residue of a PNG has an unknown filter");
    p->deflated = residue + c.at;
    p->deflated_size = size - c.at;
    return TSR_OK;
}

/* Bytes of a chunk, and of all chunks, besides their data. */
static size_t bytes_of_chunk(const struct parts *p)
{
    return TSR_PNG_CHUNK_BYTES + (p->flags & FRAME ? SEQUENCE_BYTES : 0);
}

static size_t bytes_of_heads(const struct parts *p)
{
    return (size_t)p->chunks * bytes_of_chunk(p) - (p->flags & LAST_CUT ? LENGTH_BYTES : 0);
}

/* Splits a zlib stream, the last bytes of all from byte start on, into chunks. Their heads and checks have room before
 * the stream, so that each chunk moves to a lower place. */
static enum tsr_status put_chunks(struct parts *p, const struct tsr_crew *crew, size_t start, struct tsr_bytes *chunks,
                                  struct tsr_error *error)
{
    const size_t heads = bytes_of_heads(p), size = chunks->size - start - heads,
                 sequence = bytes_of_chunk(p) - TSR_PNG_CHUNK_BYTES;
    size_t at = 0, whole = chunks->size - start;
    for (uint64_t i = 0; i < p->chunks; i++) {
        const bool is_last = i + 1 == p->chunks, is_cut = is_last && p->flags & LAST_CUT;
        const uint64_t left = size - at,
                       wanted = is_last            ? left
                                : p->flags & SIZES ? tsr_get_varint(&p->sizes)
                                                   : p->size,
                       said = is_cut ? p->said : wanted + sequence;
        if (wanted > left || said < wanted + sequence || said > INT32_MAX)
            return tsr_fail(error, TSR_ERROR_CORRUPT, "the chunks of a PNG exceed its stream");
        uint8_t *const chunk = chunks->bytes + start + at + (size_t)i * bytes_of_chunk(p), *const data =
                                                                                               chunk + LENGTH_BYTES + 4;
        memmove(data + sequence, chunks->bytes + start + heads + at, (size_t)wanted);
        tsr_put_u32_be(chunk, (uint32_t)said);
        memcpy(chunk + LENGTH_BYTES, sequence ? "fdAT" : "IDAT", 4);
        if (sequence) tsr_put_u32_be(data, (uint32_t)(p->sequence + i));
        at += (size_t)wanted;
        if (is_cut) whole = (size_t)(chunk - chunks->bytes) - start;
    }
    tsr_png_put_checks(crew, chunks->bytes + start, whole);
    return tsr_png_put_wrong_checks(&p->wrong, chunks->bytes + start, whole, error);
}

/* The check of plain bytes, made while they are coded. */
struct checked {
    const uint8_t *plain;
    size_t size;
    uint32_t adler;
};

static void check_plain(void *context)
{
    struct checked *const c = context;
    c->adler = tsr_png_adler(c->plain, c->size);
}

static enum tsr_status make_chunks(struct parts *p, const struct tsr_node_work *work, const uint8_t *plain, size_t size,
                                   struct tsr_bytes *chunks, struct tsr_error *error)
{
    const size_t start = chunks->size;
    struct checked checked = {plain, size, 0};
    struct tsr_deflate_way way = tsr_deflate_way_of(work);
    way.meanwhile = check_plain;
    way.context = &checked;
    uint8_t check[ZLIB_CHECK];
    if (p->chunks > chunks->limit / bytes_of_chunk(p) + 1)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "more than %zu bytes are to be made", chunks->limit);
    TSR_TRY(tsr_bytes_reserve(chunks, bytes_of_heads(p), error));
    chunks->size += bytes_of_heads(p);
    TSR_TRY(tsr_bytes_put(chunks, p->head, ZLIB_HEAD, error));
    TSR_TRY(tsr_deflate_write_by(&way, plain, size, p->deflated, p->deflated_size, chunks, error));
    tsr_put_u32_be(check, checked.adler);
    if (!(p->flags & NO_CHECK)) tsr_png_wrong_adler(&p->wrong, check);
    if (!(p->flags & NO_CHECK)) TSR_TRY(tsr_bytes_put(chunks, check, sizeof check, error));
    TSR_TRY(tsr_bytes_put(chunks, p->tail, p->tail_size, error));
    return put_chunks(p, &work->crew, start, chunks, error);
}

uint64_t tsr_png_making_memory(struct tsr_png_rows of, uint64_t size, const struct tsr_bytes *residue, unsigned threads)
{
    const struct tsr_png_form r = tsr_png_form_of(of);
    struct parts p;
    const bool is_known = residue && read_parts(&r, residue->bytes, residue->size, &p, NULL) == TSR_OK;
    return tsr_png_form_memory(&r) + size +
           (is_known ? tsr_deflate_writing_memory(r.plain_bytes, p.deflated, p.deflated_size, threads)
                     : tsr_deflate_memory(r.plain_bytes));
}

static enum tsr_status join_raster(const struct tsr_node_work *work, const struct tsr_node_parts *parts,
                                   struct tsr_bytes *chunks, struct tsr_error *error)
{
    const struct tsr_png_form r = tsr_png_form_of((struct tsr_png_rows){work->image, work->interlaced});
    struct parts p;
    TSR_TRY(read_parts(&r, parts->residue, parts->residue_size, &p, error));
    struct tsr_bytes plain = {.limit = r.plain_bytes};
    enum tsr_status status = tsr_bytes_reserve_by(&work->crew, &plain, r.plain_bytes, error);
    if (status == TSR_OK)
        status = tsr_png_make_plain(&r, &work->crew, parts->plain, p.type, p.types, plain.bytes, error);
    if (status == TSR_OK) status = make_chunks(&p, work, plain.bytes, r.plain_bytes, chunks, error);
    tsr_bytes_free(&plain);
    return status;
}

static enum tsr_status make_all_chunks(const struct tsr_node_work *work, const struct tsr_node_parts *parts,
                                       struct tsr_bytes *chunks, struct tsr_error *error)
{
    struct parts p;
    TSR_TRY(read_parts(NULL, parts->residue, parts->residue_size, &p, error));
    return make_chunks(&p, work, parts->plain, parts->plain_size, chunks, error);
}

enum tsr_status tsr_png_rows_to_chunks(struct tsr_png_rows of, const struct tsr_crew *crew, const uint8_t *raster,
                                       const uint8_t *residue, size_t size, struct tsr_bytes *plain,
                                       struct tsr_bytes *without_rows, struct tsr_error *error)
{
    const struct tsr_png_form r = tsr_png_form_of(of);
    struct parts parts;
    TSR_TRY(read_parts(&r, residue, size, &parts, error));
    TSR_TRY(tsr_bytes_reserve(plain, r.plain_bytes, error));
    TSR_TRY(tsr_png_make_plain(&r, crew, raster, parts.type, parts.types, plain->bytes, error));
    plain->size = r.plain_bytes;
    TSR_TRY(tsr_bytes_put(without_rows, residue, parts.rows_at, error));
    return tsr_bytes_put(without_rows, parts.deflated, parts.deflated_size, error);
}

const struct tsr_node tsr_node_png = {.name = "png", .split = split_raster, .join = join_raster};
const struct tsr_node tsr_node_png_chunks = {.name = "png-chunks",
                                             .split = split_chunks,
                                             .join = make_all_chunks,
                                             .memory = tsr_deflate_node_memory,
                                             .room = tsr_deflate_node_room,
                                             .has_residue = true};
