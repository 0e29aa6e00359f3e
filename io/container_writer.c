/* Writing a .tsr file. FORMAT.md sections 3 to 5. */
#include <stdlib.h>
#include <string.h>

#if TSR_WITH_ZSTD
#include <zstd.h>
#endif

#include "section.h"

/* A section in the index: its type and its whole length. */
struct entry {
    uint64_t length;
    uint8_t type;
};

struct tsr_container_writer {
    struct tsr_output *output;
    struct tsr_header header;
    struct entry *entries;
    size_t entry_count, entry_capacity;
    uint64_t blob_bytes;
    uint32_t frames;     /* put so far */
    uint32_t tiles;      /* of the last frame, put so far */
    uint8_t *compressed; /* a blob's chunk */
    size_t compressed_capacity;
};

/* Writes a section of pieces. */
static enum tsr_status put_section(struct tsr_container_writer *w, enum tsr_section_type type,
                                   const struct tsr_piece *pieces, int count, struct tsr_error *error)
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
    tsr_put_u64(check, tsr_hasher_result64(&hasher));
    TSR_TRY(tsr_output_write(w->output, check, sizeof check, error));

    const uint64_t length = head_size + body + sizeof check;
    if (type == TSR_SECTION_BLOB) w->blob_bytes += length;
    if (w->entry_count == w->entry_capacity) {
        const size_t capacity = w->entry_capacity ? 2 * w->entry_capacity : 64;
        struct entry *grown = realloc(w->entries, capacity * sizeof *grown);
        if (!grown) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for an index of %zu sections", capacity);
        w->entries = grown;
        w->entry_capacity = capacity;
    }
    w->entries[w->entry_count++] = (struct entry){length, (uint8_t)type};
    return TSR_OK;
}

enum tsr_status tsr_container_begin(struct tsr_output *output, const struct tsr_header *header,
                                    struct tsr_container_writer **writer, struct tsr_error *error)
{
    struct tsr_container_writer *w = calloc(1, sizeof *w);
    *writer = w;
    if (!w) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a container");
    w->output = output;
    w->header = *header;
    uint8_t body[TSR_HEADER_LIMIT];
    const struct tsr_piece piece = {body, tsr_put_header(body, header)};
    TSR_TRY(tsr_output_write(output, TSR_SIGNATURE, TSR_SIGNATURE_BYTES, error));
    TSR_TRY(put_section(w, TSR_SECTION_HEADER, &piece, 1, error));
    w->entry_count = 0; /* the index begins behind the header */
    return TSR_OK;
}

void tsr_container_writer_free(struct tsr_container_writer *writer)
{
    if (!writer) return;
    free(writer->entries);
    free(writer->compressed);
    free(writer);
}

/* Metadata of a few kilobytes is worth the best level; large verbatim files are not worth its time. */
#if TSR_WITH_ZSTD
enum { SMALL_BLOB = 1 << 16, SMALL_LEVEL = 19, LARGE_LEVEL = 6 };

static enum tsr_status compress_chunk(struct tsr_container_writer *w, const void *bytes, size_t size,
                                      size_t *compressed, struct tsr_error *error)
{
    const size_t bound = ZSTD_compressBound(size);
    if (bound > w->compressed_capacity) {
        free(w->compressed);
        w->compressed_capacity = 0;
        w->compressed = malloc(bound);
        if (!w->compressed) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to compress %zu bytes", size);
        w->compressed_capacity = bound;
    }
    const size_t result =
        ZSTD_compress(w->compressed, bound, bytes, size, size <= SMALL_BLOB ? SMALL_LEVEL : LARGE_LEVEL);
    if (ZSTD_isError(result))
        return tsr_fail(error, TSR_ERROR_LIMIT, "zstd: %s, on %zu bytes", ZSTD_getErrorName(result), size);
    *compressed = result;
    return TSR_OK;
}
#endif

enum tsr_status tsr_container_put_blob(struct tsr_container_writer *w, enum tsr_blob blob, const void *bytes,
                                       size_t size, struct tsr_error *error)
{
    const uint8_t *at = bytes;
    while (size > 0) {
        const size_t chunk = size < TSR_BLOB_CHUNK ? size : TSR_BLOB_CHUNK;
        uint8_t head[2 + TSR_VARINT_LIMIT] = {(uint8_t)blob, TSR_BLOB_RAW};
        struct tsr_piece pieces[2] = {{head, 2 + tsr_put_varint(head + 2, chunk)}, {at, chunk}};
#if TSR_WITH_ZSTD
        size_t compressed = 0;
        TSR_TRY(compress_chunk(w, at, chunk, &compressed, error));
        if (compressed < chunk) {
            head[1] = TSR_BLOB_ZSTD;
            pieces[1] = (struct tsr_piece){w->compressed, compressed};
        }
#endif
        TSR_TRY(put_section(w, TSR_SECTION_BLOB, pieces, 2, error));
        at += chunk;
        size -= chunk;
    }
    return TSR_OK;
}

enum tsr_status tsr_container_put_frame(struct tsr_container_writer *w, const void *model, size_t size,
                                        struct tsr_error *error)
{
    uint8_t number[TSR_VARINT_LIMIT];
    const struct tsr_piece pieces[2] = {{number, tsr_put_varint(number, w->frames)}, {model, size}};
    w->frames++;
    w->tiles = 0;
    return put_section(w, TSR_SECTION_FRAME, pieces, 2, error);
}

enum tsr_status tsr_container_put_tile(struct tsr_container_writer *w, const struct tsr_piece *payload, int count,
                                       struct tsr_error *error)
{
    enum { PIECES = 16 };
    uint8_t numbers[2 * TSR_VARINT_LIMIT];
    struct tsr_piece pieces[PIECES + 1];
    if (count > PIECES || w->frames == 0) return tsr_fail(error, TSR_ERROR_INTERNAL, "a tile of %d pieces", count);
    size_t used = tsr_put_varint(numbers, w->frames - 1);
    used += tsr_put_varint(numbers + used, w->tiles++);
    pieces[0] = (struct tsr_piece){numbers, used};
    for (int i = 0; i < count; i++) pieces[1 + i] = payload[i];
    return put_section(w, TSR_SECTION_TILE, pieces, count + 1, error);
}

/* The index's body: number of sections, then type and length of each. */
static size_t put_index(const struct tsr_container_writer *w, size_t entries, uint8_t *out)
{
    size_t used = tsr_put_varint(out, entries);
    for (size_t i = 0; i < entries; i++) {
        out[used++] = w->entries[i].type;
        used += tsr_put_varint(out + used, w->entries[i].length);
    }
    return used;
}

enum tsr_status tsr_container_end(struct tsr_container_writer *w, const struct tsr_proof *proof,
                                  struct tsr_error *error)
{
    uint8_t proof_body[128], header_body[TSR_HEADER_LIMIT], header_size[TSR_VARINT_LIMIT], footer[TSR_FOOTER_BYTES];
    const struct tsr_piece proof_piece = {proof_body, tsr_put_proof(proof_body, proof, &w->header)};
    TSR_TRY(put_section(w, TSR_SECTION_PROOF, &proof_piece, 1, error));

    const size_t entries = w->entry_count;
    uint8_t *index = malloc(TSR_VARINT_LIMIT + entries * (1 + TSR_VARINT_LIMIT));
    if (!index) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for an index of %zu sections", entries);
    const struct tsr_piece index_piece = {index, put_index(w, entries, index)};
    const uint64_t index_offset = tsr_output_size(w->output);
    enum tsr_status status = put_section(w, TSR_SECTION_INDEX, &index_piece, 1, error);
    const uint64_t copy_offset = tsr_output_size(w->output);
    if (status == TSR_OK) {
        const size_t size = tsr_put_header(header_body, &w->header);
        const struct tsr_piece copy[3] = {
            {header_size, tsr_put_varint(header_size, size)}, {header_body, size}, index_piece};
        status = put_section(w, TSR_SECTION_COPY, copy, 3, error);
    }
    free(index);
    TSR_TRY(status);
    tsr_put_u64(footer, index_offset);
    tsr_put_u64(footer + 8, copy_offset);
    tsr_put_u32(footer + 16, (uint32_t)tsr_hash64_of(footer, 16));
    memcpy(footer + 20, TSR_END_MARK, 4);
    return tsr_output_write(w->output, footer, sizeof footer, error);
}

uint64_t tsr_container_payload_bytes(const struct tsr_container_writer *writer)
{
    return tsr_output_size(writer->output) - writer->blob_bytes;
}
