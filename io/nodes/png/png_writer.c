/* IDAT chunks of a raster that are written anew. PNG.md 3 defines each of their bytes. */
#include "png_writer.h"

#include <stdlib.h>
#include <string.h>

#include "io/bytes/crc32.h"
#include "io/nodes/deflate/deflate_parts.h"
#include "png_checks.h"
#include "png_chunks.h"
#include "png_plain.h"

enum {
    TABLE_BITS = 15,
    LEAST = 6,       /* bytes of a match */
    WORD = 8,        /* bytes that a search reads */
    PATIENCE = 16,   /* searches without a match, after which one more byte is not looked at each time */
    MOST_STEP = 16,  /* bytes at most from one search to the next */
    TOKENS = 1 << 15 /* of a block */
};
enum { CHUNK_DATA = 1 << 20, CHUNK_HEAD = 8, CHECK_BYTES = 4, ZLIB_BYTES = 2 };
/* Room for a chunk's data, of which a block's tokens are the last: 48 bits each at most. */
enum { STREAM_ROOM = CHUNK_HEAD + CHUNK_DATA + 6 * TOKENS + 4096 };

struct writing {
    const uint8_t *plain;
    size_t size, at;         /* at: bytes of plain that are tokens */
    uint32_t misses;         /* searches since the last match */
    uint32_t step;           /* literals before the next search */
    struct tsr_bytes stream; /* a chunk's head and its data so far */
    struct deflate_block block;
    struct deflate_sink sink;
    uint32_t tokens[TOKENS];
    uint32_t table[1 << TABLE_BITS]; /* a position + 1, by its hash */
};

static inline uint64_t word_at(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word << 8 * (WORD - LEAST);
}

static inline uint32_t hash_of(uint64_t word)
{
    return (uint32_t)(word * 0x9e3779b185ebca87u >> (64 - TABLE_BITS));
}

/* Equal bytes from two places on. */
static inline uint32_t alike(const uint8_t *a, const uint8_t *b, uint32_t most)
{
    uint32_t n = LEAST;
    while (n < most && a[n] == b[n]) n++;
    return n;
}

/* The match at a position, which is put into the table; 0: there is none. */
static inline uint32_t search(struct writing *w, size_t at)
{
    const uint64_t word = word_at(w->plain + at);
    uint32_t *const entry = &w->table[hash_of(word)];
    const uint32_t found = *entry;
    *entry = (uint32_t)at + 1;
    if (found == 0 || at + 1 - found > DEFLATE_WINDOW || word_at(w->plain + found - 1) != word) return 0;
    const size_t left = w->size - at;
    const uint32_t most = left < DEFLATE_MOST ? (uint32_t)left : DEFLATE_MOST;
    return deflate_match(alike(w->plain + found - 1, w->plain + at, most), (uint32_t)at + 1 - found);
}

/* Puts the positions after the first one of a match into the table. */
static void pass(struct writing *w, size_t from, size_t to)
{
    if (to + WORD > w->size + 1) to = w->size < WORD ? 0 : w->size - WORD + 1;
    for (size_t at = from; at < to; at++) w->table[hash_of(word_at(w->plain + at))] = (uint32_t)at + 1;
}

/* The tokens of the next block. Returns its plain bytes. */
static size_t find_tokens(struct writing *w)
{
    const size_t begin = w->at, size = w->size;
    const uint8_t *const plain = w->plain;
    uint32_t *const tokens = w->tokens;
    size_t at = begin, count = 0;
    while (at < size && count < TOKENS) {
        if (w->step == 0) {
            const uint32_t match = at + WORD <= size ? search(w, at) : 0;
            if (match > 0) {
                tokens[count++] = match;
                pass(w, at + 1, at + deflate_length(match));
                at += deflate_length(match);
                w->misses = 0;
                continue;
            }
            w->step = 1 + w->misses++ / PATIENCE;
            if (w->step > MOST_STEP) w->step = MOST_STEP;
        }
        for (; w->step > 0 && at < size && count < TOKENS; w->step--) tokens[count++] = plain[at++];
    }
    w->block.tokens.count = count;
    w->at = at;
    return at - begin;
}

/* Writes the first bytes of the stream, so many, as a chunk. */
static enum tsr_status put_chunk(struct writing *w, size_t size, struct tsr_output *output, struct tsr_error *error)
{
    uint8_t check[CHECK_BYTES], *const chunk = w->stream.bytes;
    tsr_put_u32_be(chunk, (uint32_t)size);
    memcpy(chunk + 4, "IDAT", 4);
    tsr_put_u32_be(check, tsr_crc32(chunk + 4, 4 + size));
    TSR_TRY(tsr_output_write(output, chunk, CHUNK_HEAD + size, error));
    TSR_TRY(tsr_output_write(output, check, sizeof check, error));
    w->stream.size -= size;
    memmove(chunk + CHUNK_HEAD, chunk + CHUNK_HEAD + size, w->stream.size - CHUNK_HEAD);
    return TSR_OK;
}

static enum tsr_status put_blocks(struct writing *w, struct tsr_output *output, struct tsr_error *error)
{
    while (w->at < w->size) {
        const uint8_t *const begin = w->plain + w->at;
        const size_t bytes = find_tokens(w);
        bool has_head; /* more than 65535 bytes are never stored: a match of six or more takes 31 bits at most */
        w->block.final = w->at == w->size;
        w->block.stored = bytes;
        w->block.type = tsr_deflate_type(&w->block.tokens, bytes, true, false, &w->block.head, &has_head);
        TSR_TRY(tsr_deflate_put_block(&w->sink, &w->block, begin, error));
        while (w->stream.size - CHUNK_HEAD > CHUNK_DATA) TSR_TRY(put_chunk(w, CHUNK_DATA, output, error));
    }
    return TSR_OK;
}

/* Plain bytes as chunks. */
static enum tsr_status put_stream(struct writing *w, struct tsr_output *output, struct tsr_error *error)
{
    static const uint8_t head[CHUNK_HEAD + ZLIB_BYTES] = {[CHUNK_HEAD] = 0x78, 0x01};
    uint8_t check[CHECK_BYTES];
    TSR_TRY(tsr_bytes_reserve(&w->stream, STREAM_ROOM, error));
    TSR_TRY(tsr_bytes_put(&w->stream, head, sizeof head, error));
    TSR_TRY(put_blocks(w, output, error));
    TSR_TRY(tsr_deflate_finish(&w->sink, 0, error));
    tsr_put_u32_be(check, tsr_png_adler(w->plain, w->size));
    TSR_TRY(tsr_bytes_put(&w->stream, check, sizeof check, error));
    while (w->stream.size - CHUNK_HEAD > CHUNK_DATA) TSR_TRY(put_chunk(w, CHUNK_DATA, output, error));
    return put_chunk(w, w->stream.size - CHUNK_HEAD, output, error);
}

uint64_t tsr_png_writing_memory(struct tsr_png_rows of)
{
    const struct tsr_png_form form = tsr_png_form_of(of);
    return tsr_png_form_memory(&form) + sizeof(struct writing) + STREAM_ROOM;
}

enum tsr_status tsr_png_write_raster(struct tsr_png_rows of, int colour_type, const struct tsr_crew *crew,
                                     const uint8_t *raster, struct tsr_output *output, struct tsr_error *error)
{
    const struct tsr_png_form form = tsr_png_form_of(of);
    const bool chooses = of.image->bits_stored >= 8 && colour_type != TSR_PNG_PALETTE;
    struct tsr_bytes plain = {.limit = form.plain_bytes};
    struct writing *const w = calloc(1, sizeof *w);
    enum tsr_status status = w ? TSR_OK : tsr_fail(error, TSR_ERROR_LIMIT, "no memory to write a PNG");
    if (status == TSR_OK) status = tsr_bytes_reserve_by(crew, &plain, form.plain_bytes, error);
    if (status == TSR_OK)
        status = tsr_png_make_plain(&form, crew, raster, chooses ? TSR_PNG_CHOSEN : 0, NULL, plain.bytes, error);
    if (status == TSR_OK) {
        w->plain = plain.bytes;
        w->size = form.plain_bytes;
        w->stream.limit = SIZE_MAX / 2;
        w->block.tokens.tokens = w->tokens;
        w->sink.stream = &w->stream;
        status = put_stream(w, output, error);
    }
    if (w) tsr_bytes_free(&w->stream);
    free(w);
    tsr_bytes_free(&plain);
    return status;
}

enum tsr_status tsr_png_write_samples(const uint8_t *raster, size_t size, struct tsr_output *output,
                                      struct tsr_error *error)
{
    static const uint8_t check[CHECK_BYTES];
    uint8_t head[CHUNK_HEAD] = {[4] = 'I', 'D', 'A', 'T'};
    tsr_put_u32_be(head, (uint32_t)size);
    TSR_TRY(tsr_output_write(output, head, sizeof head, error));
    TSR_TRY(tsr_output_write(output, raster, size, error));
    return tsr_output_write(output, check, sizeof check, error);
}
