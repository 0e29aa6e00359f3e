/* Writing blobs: a chunk is compressed where that makes it smaller. FORMAT.md 3.3. */
#include <stdlib.h>
#include <string.h>

#include "container_writer.h"
#include "long_blob.h"
#include "io/bytes/tables.h"
#include "io/bytes/zstd_contexts.h"
#include "io/recipe/standard.h"

/* Metadata of a few kilobytes is worth zstd's best level; large verbatim files are not worth its time. Neither is the
 * header of a large image below effort 7: 555 real DICOM headers, 6.9 KB on average, take 1.32 ms each at zstd level
 * 19, as long as decoding the pixels of a CT slice, and 0.1 ms at level 6, which makes a header 94 bytes longer. After
 * known bytes, level 19 takes 0.9 ms more than level 6 and makes 2 % less: that pays where the header is long beside
 * the image. */
enum { WAITING_BLOB = 1 << 20, LARGE_IMAGE_BYTES = 1 << 18, LONG_BESIDE = 8, THOROUGH_CODING = 7 };

static bool is_large_image(const struct tsr_header *header, size_t than)
{
    return tsr_has_frames(header) && tsr_frame_bits(&header->image) / 8 * header->image.frames >= than;
}

static int level_of(const struct tsr_container_writer *w, size_t size, size_t large)
{
    const struct tsr_header *const header = &w->header;
    const bool is_quick = is_large_image(header, large) && header->coding.effort < THOROUGH_CODING;
    return is_quick ? TSR_LOW_LEVEL : tsr_zstd_level(tsr_has_rows(header), size);
}

int tsr_container_level(const struct tsr_container_writer *w, size_t size)
{
    return level_of(w, size, LARGE_IMAGE_BYTES);
}

/* Compresses a chunk after a base, or alone. Of 100 headers of large images one to six are longer at the best level,
 * by up to eight bytes: both levels are tried, so that no file is longer because of a higher effort. */
static enum tsr_status compress_chunk(struct tsr_container_writer *w, const struct tsr_piece *base,
                                      const uint8_t *bytes, size_t size, size_t *made, struct tsr_error *error)
{
    const size_t beside = LONG_BESIDE * size,
                 large = base->size > 0 && beside < LARGE_IMAGE_BYTES ? beside : LARGE_IMAGE_BYTES;
    const int level = level_of(w, size, large);
    const bool tries_both = level == TSR_HIGH_LEVEL && is_large_image(&w->header, large);
    const size_t bound = tsr_zstd_bound(size);
    TSR_TRY(tsr_grow_buffer(&w->compressed, &w->compressed_capacity, tries_both ? 2 * bound : bound, error));
    *made = tsr_zstd_compress(base->bytes, base->size, bytes, size, level, w->compressed, bound);
    if (tries_both && *made > 0) {
        uint8_t *const other = w->compressed + bound;
        const size_t made_other = tsr_zstd_compress(base->bytes, base->size, bytes, size, TSR_LOW_LEVEL, other, bound);
        if (made_other < *made) memcpy(w->compressed, other, made_other);
        if (made_other < *made) *made = made_other;
    }
    return *made > 0 ? TSR_OK : tsr_fail(error, TSR_ERROR_LIMIT, "no memory to compress %zu bytes", size);
}

enum tsr_status tsr_container_put_stored(struct tsr_container_writer *w, enum tsr_blob blob,
                                         enum tsr_blob_method method, uint64_t size, struct tsr_piece stored,
                                         struct tsr_error *error)
{
    uint8_t head[2 + TSR_VARINT_LIMIT] = {(uint8_t)blob, (uint8_t)method};
    const struct tsr_piece pieces[2] = {{head, 2 + tsr_put_varint(head + 2, size)}, stored},
                           part[2] = {{head + 2, method == TSR_BLOB_RAW ? 0 : pieces[0].size - 2}, stored};
    TSR_TRY(tsr_keep_part(w, tsr_small_blob(blob, method), part, 2, error));
    return tsr_put_section(w, TSR_SECTION_BLOB, pieces, 2, error);
}

enum tsr_status tsr_container_put_chunk(struct tsr_container_writer *w, enum tsr_blob blob, struct tsr_piece plain,
                                        struct tsr_piece compressed, struct tsr_error *error)
{
    const bool is_smaller = compressed.size < plain.size;
    return tsr_container_put_stored(w, blob, is_smaller ? TSR_BLOB_ZSTD : TSR_BLOB_RAW, plain.size,
                                    is_smaller ? compressed : plain, error);
}

/* What the beginning of a blob is compressed after: nothing, but of a DICOM header bytes that most headers have. Those
 * of 575 headers of 16 KB on average take 11 % less at level 6. */
static struct tsr_piece known_of(const struct tsr_container_writer *w, enum tsr_blob blob)
{
    struct tsr_piece known = {NULL, 0};
    const struct tsr_header *const header = &w->header;
    if (blob == TSR_BLOB_PREFIX && header->kind == TSR_KIND_DICOM && !w->is_member && !tsr_has_pieces(header))
        known.bytes = tsr_standard_base(&known.size);
    return known;
}

/* The chunk with its tables as differences, behind a list of these: *made of *bytes, which the caller frees. 0: it has
 * no tables, or is too long to look. */
static enum tsr_status compress_tables(struct tsr_container_writer *w, const struct tsr_piece *base,
                                       const uint8_t *chunk, size_t size, uint8_t **bytes, size_t *made,
                                       struct tsr_error *error)
{
    enum { LONGEST = 1 << 20 };
    struct tsr_tables tables = {.count = 0};
    *bytes = NULL;
    *made = 0;
    if (base->size > 0 && size <= LONGEST) tsr_find_tables(chunk, size, &tables);
    if (tables.count == 0) return TSR_OK;
    const size_t bound = tsr_zstd_bound(size);
    *bytes = malloc(TSR_TABLES_HEAD + (bound > size ? bound : size));
    if (!*bytes) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to compress %zu bytes", size);
    memcpy(*bytes, chunk, size);
    tsr_tables_split(&tables, *bytes);
    size_t compressed;
    TSR_TRY(compress_chunk(w, base, *bytes, size, &compressed, error));
    const size_t head = tsr_put_tables(*bytes, &tables);
    memcpy(*bytes + head, w->compressed, compressed);
    *made = head + compressed;
    return TSR_OK;
}

/* The first chunk of a DICOM header, or another one, in the shortest way. */
static enum tsr_status put_chunk(struct tsr_container_writer *w, enum tsr_blob blob, const struct tsr_piece *base,
                                 struct tsr_piece plain, struct tsr_error *error)
{
    enum { LEAST_GAIN = 32 };
    uint8_t *other;
    size_t made = 0, made_other;
    enum tsr_status status = compress_tables(w, base, plain.bytes, plain.size, &other, &made_other, error);
    if (status == TSR_OK) status = compress_chunk(w, base, plain.bytes, plain.size, &made, error);
    const struct tsr_piece compressed = {w->compressed, made}, tables = {other, made_other};
    const size_t least = made < plain.size ? made : plain.size;
    if (status == TSR_OK && made_other > 0 && made_other + LEAST_GAIN < least)
        status = tsr_container_put_stored(w, blob, TSR_BLOB_TABLES, plain.size, tables, error);
    else if (status == TSR_OK && base->size > 0 && made < plain.size)
        status = tsr_container_put_stored(w, blob, TSR_BLOB_ZSTD_KNOWN, plain.size, compressed, error);
    else if (status == TSR_OK)
        status = tsr_container_put_chunk(w, blob, plain, compressed, error);
    free(other);
    return status;
}

enum tsr_status tsr_put_alone(struct tsr_container_writer *w, enum tsr_blob blob, const void *bytes, size_t size,
                              struct tsr_error *error)
{
    const uint8_t *at = bytes;
    struct tsr_piece base = known_of(w, blob);
    for (size_t now; size > 0; at += now, size -= now) {
        now = size < TSR_BLOB_CHUNK ? size : TSR_BLOB_CHUNK;
        TSR_TRY(put_chunk(w, blob, &base, (struct tsr_piece){at, now}, error));
        base = (struct tsr_piece){NULL, 0};
    }
    return TSR_OK;
}

/* Of a member: a blob is too long to wait. The bytes that wait are written first. */
static enum tsr_status end_waiting(struct tsr_container_writer *w, enum tsr_blob blob, struct tsr_error *error)
{
    struct tsr_waiting *const waiting = &w->waiting[blob];
    waiting->started = true;
    TSR_TRY(tsr_put_alone(w, blob, waiting->bytes, waiting->size, error));
    waiting->size = 0;
    return TSR_OK;
}

enum tsr_status tsr_container_put_blob(struct tsr_container_writer *w, enum tsr_blob blob, const void *bytes,
                                       size_t size, struct tsr_error *error)
{
    if (!w->is_member || size == 0) return tsr_put_alone(w, blob, bytes, size, error);
    struct tsr_waiting *waiting = &w->waiting[blob];
    if (!waiting->started && size <= WAITING_BLOB) {
        waiting->bytes = malloc(size);
        if (!waiting->bytes) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu bytes of metadata", size);
        memcpy(waiting->bytes, bytes, size);
        waiting->size = size;
        waiting->started = true;
        return TSR_OK;
    }
    TSR_TRY(end_waiting(w, blob, error));
    return tsr_put_alone(w, blob, bytes, size, error);
}

enum tsr_status tsr_container_put_long_blob(struct tsr_container_writer *w, enum tsr_blob blob, uint64_t size,
                                            struct tsr_blob_source source, unsigned lanes, struct tsr_crew crew,
                                            struct tsr_error *error)
{
    if (w->is_member) TSR_TRY(end_waiting(w, blob, error));
    return tsr_put_long_blob(w, blob, size, source, lanes, crew, error);
}

uint64_t tsr_container_guess_blob(const struct tsr_container_writer *w, const uint8_t *bytes, size_t size)
{
    enum { GUESSING_LEVEL = 3 };
    const size_t guess = w->is_member ? 0 : tsr_zstd_size(bytes, size, GUESSING_LEVEL);
    return guess > 0 || w->is_member ? guess : size;
}
