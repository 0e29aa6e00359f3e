/* Writing a .tsr file. FORMAT.md sections 3 to 5. */
#include <stdlib.h>
#include <string.h>

#include "long_blob.h"
#include "small.h"
#include "io/bytes/zstd_contexts.h"

/* A section in the index: its type and its whole length. Until the id is known, the section's check is the hash alone;
 * then the section is sealed. */
struct entry {
    uint64_t length;
    uint64_t hash; /* of all bytes before the check */
    uint8_t type;
    uint8_t distance;  /* of a frame with another frame's model: how many frames before that one stands */
    bool is_shared;    /* in a series: sections of other members need this one */
    bool is_of_member; /* in a series: the section belongs to a member and is sealed */
};

struct tsr_container_writer {
    struct tsr_output *output;
    struct tsr_header header; /* its id is 0 until the end */
    struct entry *entries;
    size_t entry_count, entry_capacity;
    uint64_t listed_bytes, line_bytes; /* of all entries: their sections, and their lines of the index */
    bool is_trial;                     /* entries are counted, not listed: tsr_container_begin_trial */
    uint64_t blob_bytes;
    uint32_t frames;     /* put so far */
    uint32_t tiles;      /* of the last frame, put so far */
    uint8_t *compressed; /* a chunk of a blob, or a section that is read again */
    size_t compressed_capacity;
    /* Place in the output: of a file its first byte, of a member its first section. */
    uint64_t start;
    struct tsr_small *small; /* the parts so far; NULL: the file does not become a small one */
    struct tsr_output_mark begin;
    /* Of a member: blobs that wait for the content that they are compressed with. */
    bool is_member;
    struct waiting {
        uint8_t *bytes;
        size_t size;
        bool started; /* the blob has sections already, or waits */
    } waiting[TSR_BLOB_COUNT];
    /* Of a series: members so far, and for each blob the last one that was compressed alone. */
    uint32_t members;
    struct base {
        uint8_t *bytes;
        size_t size;
        uint64_t alone; /* bytes of its section */
        uint32_t member;
        size_t entry; /* number of its section */
    } base[TSR_BLOB_COUNT];
};

static enum tsr_status add_entry(struct tsr_container_writer *w, struct entry entry, struct tsr_error *error)
{
    uint8_t varint[TSR_VARINT_LIMIT];
    w->listed_bytes += entry.length;
    w->line_bytes += 1 + tsr_put_varint(varint, entry.length);
    if (w->is_trial) {
        w->entry_count++;
        return TSR_OK;
    }
    if (w->entry_count == w->entry_capacity) {
        const size_t capacity = w->entry_capacity ? 2 * w->entry_capacity : 64;
        struct entry *grown = realloc(w->entries, capacity * sizeof *grown);
        if (!grown) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for an index of %zu sections", capacity);
        w->entries = grown;
        w->entry_capacity = capacity;
    }
    w->entries[w->entry_count++] = entry;
    return TSR_OK;
}

/* Writes a section of pieces. Its check is the sum of its hash and the seal. */
static enum tsr_status write_section(struct tsr_container_writer *w, enum tsr_section_type type,
                                     const struct tsr_piece *pieces, int count, uint64_t seal, struct entry *entry,
                                     struct tsr_error *error)
{
    uint8_t head[TSR_SECTION_HEAD_LIMIT], check[TSR_CHECK_BYTES];
    uint64_t body = 0;
    struct tsr_hasher hasher;
    for (int i = 0; i < count; i++) body += pieces[i].size;
    head[0] = (uint8_t)type;
    const size_t head_size = 1 + tsr_put_varint(head + 1, body);
    tsr_hasher_init(&hasher);
    tsr_hasher_add(&hasher, head, head_size);
    TSR_TRY(tsr_output_write(w->output, head, head_size, error));
    for (int i = 0; i < count; i++) {
        tsr_hasher_add(&hasher, pieces[i].bytes, pieces[i].size);
        TSR_TRY(tsr_output_write(w->output, pieces[i].bytes, pieces[i].size, error));
    }
    *entry = (struct entry){
        .length = head_size + body + sizeof check, .hash = tsr_hasher_result64(&hasher), .type = (uint8_t)type};
    tsr_put_u64(check, entry->hash + seal);
    return tsr_output_write(w->output, check, sizeof check, error);
}

/* Writes a section that the index lists and that is sealed at the end. */
static enum tsr_status put_section(struct tsr_container_writer *w, enum tsr_section_type type,
                                   const struct tsr_piece *pieces, int count, struct tsr_error *error)
{
    struct entry entry;
    TSR_TRY(write_section(w, type, pieces, count, 0, &entry, error));
    if (type == TSR_SECTION_BLOB) w->blob_bytes += entry.length;
    return add_entry(w, entry, error);
}

void tsr_container_stay_large(struct tsr_container_writer *w)
{
    tsr_small_free(w->small);
    w->small = NULL;
}

/* Collects a part, as long as the file may be a small one. */
static enum tsr_status keep_part(struct tsr_container_writer *w, uint8_t type, const struct tsr_piece *pieces,
                                 int count, struct tsr_error *error)
{
    const size_t limit = tsr_has_frames(&w->header) ? TSR_SMALL_CODED : TSR_SMALL_STORED;
    bool fits = true;
    if (!w->small) return TSR_OK;
    TSR_TRY(tsr_small_add(w->small, type, pieces, count, limit, &fits, error));
    if (!fits) tsr_container_stay_large(w);
    return TSR_OK;
}

/* Seals the section that ends at byte end: adds the seal to its check. */
static enum tsr_status seal_section(struct tsr_output *output, uint64_t end, uint64_t hash, uint64_t seal,
                                    struct tsr_error *error)
{
    uint8_t check[TSR_CHECK_BYTES];
    tsr_put_u64(check, hash + seal);
    return tsr_output_patch(output, end - sizeof check, check, sizeof check, error);
}

enum tsr_status tsr_container_begin(struct tsr_output *output, const struct tsr_header *header,
                                    struct tsr_container_writer **writer, struct tsr_error *error)
{
    struct tsr_container_writer *w = calloc(1, sizeof *w);
    *writer = w;
    if (!w) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a container");
    w->output = output;
    w->header = *header;
    w->header.id = 0;
    w->start = tsr_output_size(output);
    w->begin = tsr_output_mark(output);
    const bool may_be_small = tsr_small_files && header->recipe != TSR_RECIPE_SERIES;
    w->small = may_be_small ? calloc(1, sizeof *w->small) : NULL;
    if (may_be_small && !w->small) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a container");
    uint8_t body[TSR_HEADER_LIMIT];
    struct entry unlisted;
    const struct tsr_piece piece = {body, tsr_put_header(body, &w->header)};
    TSR_TRY(tsr_output_write(output, TSR_SIGNATURE, TSR_SIGNATURE_BYTES, error));
    return write_section(w, TSR_SECTION_HEADER, &piece, 1, 0, &unlisted, error);
}

void tsr_container_writer_free(struct tsr_container_writer *writer)
{
    if (!writer) return;
    for (int blob = 0; blob < TSR_BLOB_COUNT; blob++) {
        free(writer->waiting[blob].bytes);
        free(writer->base[blob].bytes);
    }
    tsr_small_free(writer->small);
    free(writer->entries);
    free(writer->compressed);
    free(writer);
}

/* Metadata of a few kilobytes is worth zstd's best level; large verbatim files are not worth its time. Neither is the
 * header of a large image below effort 7: 555 real DICOM headers, 6.9 KB on average, take 1.32 ms each at zstd level
 * 19, as long as decoding the pixels of a CT slice, and 0.1 ms at level 6, which makes a header 94 bytes longer. */
enum {
    SMALL_BLOB = 1 << 16,
    WAITING_BLOB = 1 << 20,
    LARGE_IMAGE_BYTES = 1 << 18,
    THOROUGH_CODING = 7,
    SMALL_LEVEL = 19,
    LARGE_LEVEL = 6
};

static bool is_large_image(const struct tsr_header *header)
{
    return tsr_has_frames(header) && tsr_frame_bits(&header->image) / 8 * header->image.frames >= LARGE_IMAGE_BYTES;
}

int tsr_container_level(const struct tsr_container_writer *w, size_t size)
{
    const struct tsr_header *const header = &w->header;
    if (header->kind == TSR_KIND_PNG && header->recipe == TSR_RECIPE_PACKED) return SMALL_LEVEL; /* rows of a PNG */
    const bool is_quick = is_large_image(header) && header->coding.effort < THOROUGH_CODING;
    return size <= SMALL_BLOB && !is_quick ? SMALL_LEVEL : LARGE_LEVEL;
}

#if TSR_WITH_ZSTD
/* Makes room for that many compressed bytes. */
static enum tsr_status make_room(struct tsr_container_writer *w, size_t size, struct tsr_error *error)
{
    if (size <= w->compressed_capacity) return TSR_OK;
    free(w->compressed);
    w->compressed_capacity = 0;
    w->compressed = malloc(size);
    if (!w->compressed) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu compressed bytes", size);
    w->compressed_capacity = size;
    return TSR_OK;
}

/* Compresses a chunk alone. Of 100 headers of large images one to six are longer at the best level, by up to eight
 * bytes: both levels are tried, so that no file is longer because of a higher effort. */
static enum tsr_status compress_chunk(struct tsr_container_writer *w, const uint8_t *bytes, size_t size, size_t *made,
                                      struct tsr_error *error)
{
    const int level = tsr_container_level(w, size);
    const bool tries_both = level == SMALL_LEVEL && is_large_image(&w->header);
    const size_t bound = ZSTD_compressBound(size);
    TSR_TRY(make_room(w, tries_both ? 2 * bound : bound, error));
    ZSTD_CCtx *const compressor = tsr_take_compressor();
    if (!compressor) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to compress %zu bytes", size);
    *made = ZSTD_compressCCtx(compressor, w->compressed, bound, bytes, size, level);
    if (tries_both && !ZSTD_isError(*made)) {
        uint8_t *const other = w->compressed + bound;
        const size_t made_other = ZSTD_compressCCtx(compressor, other, bound, bytes, size, LARGE_LEVEL);
        if (made_other < *made) memcpy(w->compressed, other, made_other);
        if (made_other < *made || ZSTD_isError(made_other)) *made = made_other;
    }
    tsr_give_compressor(compressor);
    if (ZSTD_isError(*made))
        return tsr_fail(error, TSR_ERROR_LIMIT, "zstd: %s, on %zu bytes", ZSTD_getErrorName(*made), size);
    return TSR_OK;
}

/* Compresses bytes as a continuation of the base. */
static enum tsr_status compress_after(struct tsr_container_writer *w, const struct base *base, const void *bytes,
                                      size_t size, size_t *compressed, struct tsr_error *error)
{
    TSR_TRY(make_room(w, ZSTD_compressBound(size), error));
    ZSTD_CCtx *context = tsr_take_compressor();
    if (!context) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to compress %zu bytes", size);
    size_t result = ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, tsr_container_level(w, size));
    if (!ZSTD_isError(result)) result = ZSTD_CCtx_refPrefix(context, base->bytes, base->size);
    if (!ZSTD_isError(result)) result = ZSTD_compress2(context, w->compressed, w->compressed_capacity, bytes, size);
    tsr_give_compressor(context);
    if (ZSTD_isError(result))
        return tsr_fail(error, TSR_ERROR_LIMIT, "zstd: %s, on %zu bytes", ZSTD_getErrorName(result), size);
    *compressed = result;
    return TSR_OK;
}
#endif

enum tsr_status tsr_container_put_stored(struct tsr_container_writer *w, enum tsr_blob blob,
                                         enum tsr_blob_method method, uint64_t size, struct tsr_piece stored,
                                         struct tsr_error *error)
{
    uint8_t head[2 + TSR_VARINT_LIMIT] = {(uint8_t)blob, (uint8_t)method};
    const struct tsr_piece pieces[2] = {{head, 2 + tsr_put_varint(head + 2, size)}, stored},
                           part[2] = {{head + 2, method == TSR_BLOB_RAW ? 0 : pieces[0].size - 2}, stored};
    TSR_TRY(keep_part(w, tsr_small_blob(blob, method), part, 2, error));
    return put_section(w, TSR_SECTION_BLOB, pieces, 2, error);
}

enum tsr_status tsr_container_put_chunk(struct tsr_container_writer *w, enum tsr_blob blob, struct tsr_piece plain,
                                        struct tsr_piece compressed, struct tsr_error *error)
{
    const bool is_smaller = compressed.size < plain.size;
    return tsr_container_put_stored(w, blob, is_smaller ? TSR_BLOB_ZSTD : TSR_BLOB_RAW, plain.size,
                                    is_smaller ? compressed : plain, error);
}

/* Writes a blob in chunks, each compressed alone if that is smaller. */
static enum tsr_status put_alone(struct tsr_container_writer *w, enum tsr_blob blob, const void *bytes, size_t size,
                                 struct tsr_error *error)
{
    const uint8_t *at = bytes;
    for (size_t now; size > 0; at += now, size -= now) {
        now = size < TSR_BLOB_CHUNK ? size : TSR_BLOB_CHUNK;
        size_t made = now;
#if TSR_WITH_ZSTD
        TSR_TRY(compress_chunk(w, at, now, &made, error));
#endif
        TSR_TRY(tsr_container_put_chunk(w, blob, (struct tsr_piece){at, now}, (struct tsr_piece){w->compressed, made},
                                        error));
    }
    return TSR_OK;
}

/* Of a member: a blob is too long to wait. The bytes that wait are written first. */
static enum tsr_status end_waiting(struct tsr_container_writer *w, enum tsr_blob blob, struct tsr_error *error)
{
    struct waiting *const waiting = &w->waiting[blob];
    waiting->started = true;
    TSR_TRY(put_alone(w, blob, waiting->bytes, waiting->size, error));
    waiting->size = 0;
    return TSR_OK;
}

enum tsr_status tsr_container_put_blob(struct tsr_container_writer *w, enum tsr_blob blob, const void *bytes,
                                       size_t size, struct tsr_error *error)
{
    if (!w->is_member || size == 0) return put_alone(w, blob, bytes, size, error);
    struct waiting *waiting = &w->waiting[blob];
    if (!waiting->started && size <= WAITING_BLOB) {
        waiting->bytes = malloc(size);
        if (!waiting->bytes) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu bytes of metadata", size);
        memcpy(waiting->bytes, bytes, size);
        waiting->size = size;
        waiting->started = true;
        return TSR_OK;
    }
    TSR_TRY(end_waiting(w, blob, error));
    return put_alone(w, blob, bytes, size, error);
}

enum tsr_status tsr_container_put_long_blob(struct tsr_container_writer *w, enum tsr_blob blob, uint64_t size,
                                            struct tsr_blob_source source, unsigned lanes, struct tsr_crew crew,
                                            struct tsr_error *error)
{
    if (w->is_member) TSR_TRY(end_waiting(w, blob, error));
    return tsr_put_long_blob(w, blob, size, source, lanes, crew, error);
}

enum tsr_status tsr_container_put_frame(struct tsr_container_writer *w, const void *model, size_t size,
                                        struct tsr_error *error)
{
    uint8_t number[TSR_VARINT_LIMIT];
    const struct tsr_piece pieces[2] = {{number, tsr_put_varint(number, w->frames)}, {model, size}};
    w->frames++;
    w->tiles = 0;
    TSR_TRY(keep_part(w, TSR_SECTION_FRAME, pieces + 1, 1, error));
    return put_section(w, TSR_SECTION_FRAME, pieces, 2, error);
}

enum tsr_status tsr_container_put_frame_like(struct tsr_container_writer *w, uint32_t distance, struct tsr_error *error)
{
    uint8_t numbers[2 * TSR_VARINT_LIMIT];
    size_t used = tsr_put_varint(numbers, w->frames);
    const size_t length = tsr_put_varint(numbers + used, distance);
    const struct tsr_piece part = {numbers + used, length}, piece = {numbers, used + length};
    TSR_TRY(keep_part(w, TSR_SECTION_LIKE, &part, 1, error));
    w->frames++;
    w->tiles = 0;
    TSR_TRY(put_section(w, TSR_SECTION_LIKE, &piece, 1, error));
    if (!w->is_trial) w->entries[w->entry_count - 1].distance = (uint8_t)distance;
    return TSR_OK;
}

enum tsr_status tsr_container_put_tile(struct tsr_container_writer *w, const struct tsr_piece *payload, int count,
                                       struct tsr_error *error)
{
    enum { PIECES = 16 };
    uint8_t numbers[2 * TSR_VARINT_LIMIT];
    struct tsr_piece pieces[PIECES + 1];
    if (count > PIECES || w->frames == 0)
        return tsr_fail(error, TSR_ERROR_INTERNAL, "a tile cannot have %d pieces", count);
    size_t used = tsr_put_varint(numbers, w->frames - 1);
    used += tsr_put_varint(numbers + used, w->tiles++);
    pieces[0] = (struct tsr_piece){numbers, used};
    for (int i = 0; i < count; i++) pieces[1 + i] = payload[i];
    TSR_TRY(keep_part(w, TSR_SECTION_TILE, payload, count, error));
    return put_section(w, TSR_SECTION_TILE, pieces, count + 1, error);
}

/* Writes the index's body: the number of sections, then type and length of each. */
static size_t put_index(const struct tsr_container_writer *w, size_t entries, uint8_t *out)
{
    size_t used = tsr_put_varint(out, entries);
    for (size_t i = 0; i < entries; i++) {
        out[used++] = w->entries[i].type;
        used += tsr_put_varint(out + used, w->entries[i].length);
    }
    return used;
}

/* Writes the header again, with its id and its seal. */
static enum tsr_status seal_header(struct tsr_container_writer *w, struct tsr_error *error)
{
    uint8_t section[TSR_SECTION_HEAD_LIMIT + TSR_HEADER_LIMIT + TSR_CHECK_BYTES], body[TSR_HEADER_LIMIT];
    const size_t size = tsr_put_header(body, &w->header);
    section[0] = TSR_SECTION_HEADER;
    size_t used = 1 + tsr_put_varint(section + 1, size);
    memcpy(section + used, body, size);
    used += size;
    tsr_put_u64(section + used, tsr_hash64_of(section, used) + tsr_seal(w->header.id, 0));
    return tsr_output_patch(w->output, w->start + TSR_SIGNATURE_BYTES, section, used + TSR_CHECK_BYTES, error);
}

/* Seals the file's own sections, not those of members. *count: their number. */
static enum tsr_status seal_own(struct tsr_container_writer *w, uint64_t first, uint64_t *count,
                                struct tsr_error *error)
{
    uint64_t end = first;
    *count = 0;
    for (size_t i = 0; i < w->entry_count; i++) {
        end += w->entries[i].length;
        if (w->entries[i].is_of_member) continue;
        TSR_TRY(seal_section(w->output, end, w->entries[i].hash, tsr_seal(w->header.id, ++*count), error));
    }
    return TSR_OK;
}

/* Computes an id. FORMAT.md 3.1. proof: of a member; NULL for a file, whose proof is a section. */
static uint64_t make_id(const struct tsr_header *header, const struct entry *entries, size_t count,
                        const struct tsr_proof *proof)
{
    uint8_t body[TSR_HEADER_LIMIT];
    struct tsr_hasher id;
    tsr_id_begin(&id, tsr_header_hash(body, tsr_put_header(body, header)));
    for (size_t i = 0; i < count; i++)
        if (!entries[i].is_of_member) tsr_id_add(&id, entries[i].hash);
    if (proof) tsr_id_add(&id, tsr_hash64_of(body, tsr_put_proof(body, proof, header)));
    return tsr_hasher_result64(&id);
}

/* Writes index, copies and footer of a file whose id is known. own: the number of the file's own sections. */
static enum tsr_status put_end(struct tsr_container_writer *w, uint64_t own, struct tsr_error *error)
{
    uint8_t header_body[TSR_HEADER_LIMIT], header_size[TSR_VARINT_LIMIT], footer[TSR_FOOTER_BYTES];
    struct entry unlisted;
    uint8_t *index = malloc(TSR_VARINT_LIMIT + w->entry_count * (1 + TSR_VARINT_LIMIT));
    if (!index) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for an index of %zu sections", w->entry_count);
    const struct tsr_piece index_piece = {index, put_index(w, w->entry_count, index)};
    const uint64_t index_offset = tsr_output_size(w->output);
    enum tsr_status status =
        write_section(w, TSR_SECTION_INDEX, &index_piece, 1, tsr_seal(w->header.id, own + 1), &unlisted, error);
    const uint64_t copy_offset = tsr_output_size(w->output);
    if (status == TSR_OK) {
        const size_t size = tsr_put_header(header_body, &w->header);
        const struct tsr_piece copy[3] = {
            {header_size, tsr_put_varint(header_size, size)}, {header_body, size}, index_piece};
        status = write_section(w, TSR_SECTION_COPY, copy, 3, tsr_seal(w->header.id, own + 2), &unlisted, error);
    }
    free(index);
    TSR_TRY(status);
    tsr_put_u64(footer, index_offset);
    tsr_put_u64(footer + 8, copy_offset);
    tsr_put_u32(footer + 16, (uint32_t)tsr_hash64_of(footer, 16));
    memcpy(footer + 20, TSR_END_MARK, 4);
    return tsr_output_write(w->output, footer, sizeof footer, error);
}

static enum tsr_status put_twins(struct tsr_container_writer *w, uint64_t first, struct tsr_error *error);

enum tsr_status tsr_container_end(struct tsr_container_writer *w, const struct tsr_proof *proof,
                                  struct tsr_error *error)
{
    uint8_t body[TSR_PROOF_LIMIT], header_body[TSR_HEADER_LIMIT], varint[TSR_VARINT_LIMIT];
    const size_t header_size = tsr_put_header(header_body, &w->header);
    const uint64_t first =
        w->start + TSR_SIGNATURE_BYTES + 1 + tsr_put_varint(varint, header_size) + header_size + TSR_CHECK_BYTES;
    uint64_t own = 0;
    if (w->small) {
        TSR_TRY(tsr_output_return(w->output, &w->begin, error));
        return tsr_small_write(w->small, &w->header, proof, w->output, error);
    }
    if (w->header.recipe != TSR_RECIPE_SERIES) {
        const struct tsr_piece proof_piece = {body, tsr_put_proof(body, proof, &w->header)};
        TSR_TRY(put_section(w, TSR_SECTION_PROOF, &proof_piece, 1, error));
    } else if (w->members != w->header.members) {
        return tsr_fail(error, TSR_ERROR_INTERNAL, "the series has only %u of its %u files", w->members,
                        w->header.members);
    } else {
        TSR_TRY(put_twins(w, first, error));
    }
    w->header.id = make_id(&w->header, w->entries, w->entry_count, NULL);
    TSR_TRY(seal_header(w, error));
    TSR_TRY(seal_own(w, first, &own, error));
    return put_end(w, own, error);
}

uint64_t tsr_container_written(const struct tsr_container_writer *writer)
{
    return tsr_output_size(writer->output) - writer->start;
}

uint64_t tsr_container_payload_bytes(const struct tsr_container_writer *writer)
{
    if (writer->small) return tsr_small_payload(writer->small);
    return tsr_output_size(writer->output) - writer->start - writer->blob_bytes;
}

/* ---- Other frames ------------------------------------------------------------------------------------------- */

uint64_t tsr_container_bytes_to_be(const struct tsr_container_writer *w)
{
    enum { PROOF_LINE = 2 };
    uint8_t varint[TSR_VARINT_LIMIT], body[TSR_HEADER_LIMIT];
    if (w->small) return tsr_small_bytes(w->small);
    if (w->is_member) return w->listed_bytes + 2 * w->line_bytes;
    const uint64_t index = tsr_put_varint(varint, w->entry_count + 1) + w->line_bytes + PROOF_LINE;
    return w->listed_bytes + 2 * index + tsr_put_varint(varint, index) +
           tsr_put_varint(varint, index + tsr_put_header(body, &w->header) + 1);
}

uint64_t tsr_container_twin_bytes(size_t model)
{
    enum { SECTION_NUMBER = 3, FRAME_NUMBER = 1 };
    uint8_t varint[TSR_VARINT_LIMIT];
    const uint64_t body = SECTION_NUMBER + FRAME_NUMBER + model,
                   length = 1 + tsr_put_varint(varint, body) + body + TSR_CHECK_BYTES;
    return length + 2 * (1 + tsr_put_varint(varint, length));
}

uint64_t tsr_container_guess_blob(const struct tsr_container_writer *w, const uint8_t *bytes, size_t size)
{
    if (w->is_member) return 0;
#if TSR_WITH_ZSTD
    enum { GUESSING_LEVEL = 3 };
    const size_t bound = ZSTD_compressBound(size);
    uint8_t *const made = malloc(bound);
    ZSTD_CCtx *const compressor = made ? tsr_take_compressor() : NULL;
    const size_t guess = compressor ? ZSTD_compressCCtx(compressor, made, bound, bytes, size, GUESSING_LEVEL) : size;
    tsr_give_compressor(compressor);
    free(made);
    return ZSTD_isError(guess) ? size : guess;
#else
    (void)bytes;
    return size;
#endif
}

/* The blobs among the parts of a small file. */
static enum tsr_status copy_parts(const struct tsr_small *from, struct tsr_small *to, struct tsr_error *error)
{
    struct tsr_piece part = {from->bytes, 0};
    for (int i = 0; i < from->count; i++, part.bytes = (const uint8_t *)part.bytes + part.size) {
        bool fits;
        part.size = from->part_size[i];
        if (from->type[i] < 2 * TSR_BLOB_COUNT)
            TSR_TRY(tsr_small_add(to, from->type[i], &part, 1, TSR_SMALL_CODED, &fits, error));
    }
    return TSR_OK;
}

enum tsr_status tsr_container_begin_trial(const struct tsr_container_writer *writer, struct tsr_output *nothing,
                                          struct tsr_container_writer **trial, struct tsr_error *error)
{
    struct tsr_container_writer *w = calloc(1, sizeof *w);
    *trial = w;
    if (!w) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a container");
    w->output = nothing;
    w->is_trial = true;
    w->header = writer->header;
    w->is_member = writer->is_member;
    for (size_t i = 0; i < writer->entry_count; i++)
        if (writer->entries[i].type == TSR_SECTION_BLOB) TSR_TRY(add_entry(w, writer->entries[i], error));
    if (!writer->small) return TSR_OK;
    w->small = calloc(1, sizeof *w->small);
    if (!w->small) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a container");
    return copy_parts(writer->small, w->small, error);
}

/* ---- Members of a series ---------------------------------------------------------------------------------- */

enum tsr_status tsr_container_begin_member(struct tsr_output *output, const struct tsr_header *header,
                                           struct tsr_container_writer **writer, struct tsr_error *error)
{
    struct tsr_container_writer *w = calloc(1, sizeof *w);
    *writer = w;
    if (!w) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a container");
    w->output = output;
    w->header = *header;
    w->header.id = 0;
    w->is_member = true;
    w->start = tsr_output_size(output);
    return TSR_OK;
}

enum tsr_status tsr_container_begin_again(const struct tsr_container_writer *member, struct tsr_output *output,
                                          struct tsr_container_writer **again, struct tsr_error *error)
{
    *again = NULL;
    if (member->blob_bytes > 0) return TSR_OK;
    TSR_TRY(tsr_container_begin_member(output, &member->header, again, error));
    for (int blob = 0; blob < TSR_BLOB_COUNT; blob++) {
        const struct waiting *waiting = &member->waiting[blob];
        if (waiting->size > 0)
            TSR_TRY(tsr_container_put_blob(*again, (enum tsr_blob)blob, waiting->bytes, waiting->size, error));
    }
    return TSR_OK;
}

/* Puts a small blob. The DICOM headers of a series are nearly equal, so all of them are compressed as a continuation of
 * one of them, the base. If that is not at least a quarter smaller, in proportion, than the base alone, the blob is
 * compressed alone and is the next base. */
static enum tsr_status put_with_base(struct tsr_container_writer *series, enum tsr_blob blob,
                                     const struct waiting *waiting, struct tsr_error *error)
{
    enum { BASE_LEAST = 64, BASE_REACH = 255 };
    struct base *base = &series->base[blob];
#if TSR_WITH_ZSTD
    const uint32_t distance = series->members - base->member;
    if (base->size >= BASE_LEAST && distance <= BASE_REACH) {
        size_t after = 0;
        TSR_TRY(compress_after(series, base, waiting->bytes, waiting->size, &after, error));
        if (4 * (uint64_t)after * base->size < 3 * base->alone * waiting->size) { /* each factor is below 2^21 */
            series->entries[base->entry].is_shared = true;
            uint8_t head[3 + TSR_VARINT_LIMIT] = {(uint8_t)blob, TSR_BLOB_ZSTD_AFTER};
            size_t used = 2 + tsr_put_varint(head + 2, waiting->size);
            head[used++] = (uint8_t)distance;
            const struct tsr_piece pieces[2] = {{head, used}, {series->compressed, after}};
            return put_section(series, TSR_SECTION_BLOB, pieces, 2, error);
        }
    }
#endif
    const bool is_base = waiting->size >= BASE_LEAST;
    if (is_base) {
        uint8_t *bytes = malloc(waiting->size);
        if (!bytes) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu bytes of metadata", waiting->size);
        memcpy(bytes, waiting->bytes, waiting->size);
        free(base->bytes);
        *base = (struct base){bytes, waiting->size, 0, series->members, series->entry_count};
    }
    const uint64_t before = series->blob_bytes;
    const enum tsr_status status = put_alone(series, blob, waiting->bytes, waiting->size, error);
    if (is_base) base->alone = series->blob_bytes - before;
    return status;
}

/* Marks the models of other members that a member's frames need. from: the member's first section in the index of the
 * series. */
static void mark_models(struct tsr_container_writer *series, size_t from)
{
    for (size_t i = from; i < series->entry_count; i++) {
        uint8_t left = series->entries[i].type == TSR_SECTION_LIKE ? series->entries[i].distance : 0;
        for (size_t k = i; left > 0 && k-- > 0;) {
            const uint8_t type = series->entries[k].type;
            if (type != TSR_SECTION_FRAME && type != TSR_SECTION_LIKE) continue;
            if (--left == 0 && k < from) series->entries[k].is_shared = true;
        }
    }
}

static enum tsr_status add_entries(struct tsr_container_writer *series, const struct tsr_container_writer *member,
                                   struct tsr_error *error)
{
    for (size_t i = 0; i < member->entry_count; i++) TSR_TRY(add_entry(series, member->entries[i], error));
    series->blob_bytes += member->blob_bytes;
    return TSR_OK;
}

static enum tsr_status put_waiting(struct tsr_container_writer *series, const struct tsr_container_writer *member,
                                   struct tsr_error *error)
{
    for (int blob = 0; blob < TSR_BLOB_COUNT; blob++)
        if (member->waiting[blob].size > 0)
            TSR_TRY(put_with_base(series, (enum tsr_blob)blob, &member->waiting[blob], error));
    return TSR_OK;
}

/* Seals count sections of a member. entry: the first one in the index of the series; n: its number in the member;
 * offset: its place in the output. */
static enum tsr_status seal_entries(struct tsr_container_writer *series, uint64_t id, struct tsr_output *output,
                                    uint64_t offset, size_t entry, size_t count, uint64_t n, struct tsr_error *error)
{
    for (size_t i = entry; i < entry + count; i++, n++) {
        offset += series->entries[i].length;
        series->entries[i].is_of_member = true;
        TSR_TRY(seal_section(output, offset, series->entries[i].hash, tsr_seal(id, n), error));
    }
    return TSR_OK;
}

/* Puts the sections of a member. A member in memory is sealed before it is copied, and its blobs stand before it. A
 * member that was written to the output of the series stands before its blobs. */
static enum tsr_status put_sections(struct tsr_container_writer *series, struct tsr_container_writer *member,
                                    const struct tsr_proof *proof, uint64_t offset, struct tsr_error *error)
{
    const bool is_direct = member->output == series->output;
    const size_t first = series->entry_count;
    if (is_direct) TSR_TRY(add_entries(series, member, error));
    TSR_TRY(put_waiting(series, member, error));
    const size_t blobs = series->entry_count - first;
    if (!is_direct) TSR_TRY(add_entries(series, member, error));
    mark_models(series, first);
    const uint64_t id = make_id(&member->header, series->entries + first, series->entry_count - first, proof);
    member->header.id = id;
    if (is_direct)
        return seal_entries(series, id, series->output, offset, first, series->entry_count - first, 1, error);
    TSR_TRY(seal_entries(series, id, series->output, offset, first, blobs, 1, error));
    TSR_TRY(seal_entries(series, id, member->output, 0, first + blobs, member->entry_count, blobs + 1, error));
    return tsr_output_write(series->output, tsr_output_bytes(member->output), (size_t)tsr_output_size(member->output),
                            error);
}

enum tsr_status tsr_container_add_member(struct tsr_container_writer *series, struct tsr_container_writer *member,
                                         const char *name, const struct tsr_proof *proof, uint64_t *bytes,
                                         uint64_t *payload_bytes, struct tsr_error *error)
{
    const uint64_t blob_bytes = series->blob_bytes;
    if (!tsr_is_member_name(name, strlen(name)) || series->members == series->header.members)
        return tsr_fail(error, TSR_ERROR_INTERNAL, "the series cannot have a file %u called '%s'", series->members,
                        name);
    const uint64_t offset = member->output == series->output ? member->start : tsr_output_size(series->output);
    TSR_TRY(put_sections(series, member, proof, offset, error));
    uint8_t *body = malloc(TSR_MEMBER_LIMIT);
    if (!body) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a file of the series");
    const struct tsr_piece piece = {body, tsr_put_member(body, name, &member->header, proof)};
    const enum tsr_status status = put_section(series, TSR_SECTION_MEMBER, &piece, 1, error);
    free(body);
    series->members++;
    *bytes = tsr_output_size(series->output) - offset;
    *payload_bytes = *bytes - (series->blob_bytes - blob_bytes);
    return status;
}

/* ---- Twins: a section that several members need stands again after all members. FORMAT.md 3.8 -------------- */

static enum tsr_status put_twin(struct tsr_container_writer *w, size_t entry, uint64_t offset, struct tsr_error *error)
{
    const size_t length = (size_t)w->entries[entry].length;
    uint8_t number[TSR_VARINT_LIMIT];
    if (length > w->compressed_capacity) {
        free(w->compressed);
        w->compressed_capacity = 0;
        w->compressed = malloc(length);
        if (!w->compressed) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a section of %zu bytes", length);
        w->compressed_capacity = length;
    }
    TSR_TRY(tsr_output_read(w->output, offset, w->compressed, length, error));
    struct tsr_cursor c = {w->compressed, length, 1, false};
    const size_t size = (size_t)tsr_get_varint(&c);
    const struct tsr_piece pieces[2] = {{number, tsr_put_varint(number, entry)}, {w->compressed + c.at, size}};
    return put_section(w, TSR_SECTION_TWIN, pieces, 2, error);
}

static enum tsr_status put_twins(struct tsr_container_writer *w, uint64_t first, struct tsr_error *error)
{
    const size_t count = w->entry_count;
    uint64_t offset = first;
    for (size_t i = 0; i < count; i++) {
        if (w->entries[i].is_shared) TSR_TRY(put_twin(w, i, offset, error));
        offset += w->entries[i].length;
    }
    return TSR_OK;
}
