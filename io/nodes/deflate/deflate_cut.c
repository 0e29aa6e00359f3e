/* Damaged deflate streams: what is before the fault is coded as the begin of a stream that is whole. DEFLATE.md 1. */
#include <stdlib.h>
#include <string.h>

#include "deflate_parts.h"

/* The tokens of a block that copy from no byte before the first one. at: plain bytes before the block. */
static void keep_good(struct deflate_tokens *tokens, uint64_t at)
{
    for (size_t i = 0; i < tokens->count; i++) {
        const uint32_t token = tokens->tokens[i], length = deflate_length(token);
        if (length > 0 && (token & 65535) > at) tokens->count = i;
        at += length > 0 ? length : 1;
    }
}

/* Reads up to the fault. *begin: where its block begins, which keeps the tokens before the fault. False: there is none.
 */
static bool find_fault(struct deflate_source *source, struct deflate_block *block, size_t limit,
                       struct deflate_source *begin)
{
    for (size_t at = 0, bytes = 0;; at += bytes) {
        const uint8_t *stored;
        *begin = *source;
        const enum tsr_status status = tsr_deflate_block(source, block, limit - at, &bytes, &stored, NULL);
        const size_t count = block->tokens.count;
        keep_good(&block->tokens, at);
        if (status == TSR_ERROR_CORRUPT || block->tokens.count < count) return true;
        if (status != TSR_OK || block->final) return false;
    }
}

/* Appends the stream before a block, the block's tokens, and an end. */
static enum tsr_status put_whole(const struct deflate_source *begin, struct deflate_block *block,
                                 struct tsr_bytes *whole, struct tsr_error *error)
{
    struct deflate_sink sink = {.stream = whole};
    const uint64_t bits = 8 * (uint64_t)begin->at - begin->count;
    const size_t bytes = (size_t)(bits / 8);
    sink.count = bits % 8;
    if (sink.count > 0) sink.bits = begin->stream[bytes] & ((1u << sink.count) - 1);
    TSR_TRY(tsr_bytes_put(whole, begin->stream, bytes, error));
    const bool has_tokens = block->tokens.count > 0;
    if (has_tokens) TSR_TRY(tsr_deflate_put_block(&sink, block, NULL, error));
    if (!has_tokens || !block->final) {
        block->type = DEFLATE_FIXED;
        block->final = true;
        block->tokens.count = 0;
        TSR_TRY(tsr_deflate_put_block(&sink, block, NULL, error));
    }
    return sink.count > 0 ? tsr_bytes_put_u8(whole, (uint8_t)sink.bits, error) : TSR_OK;
}

/* Bytes before zeros to the end: a disk's fault, or a file that was not written to its end. */
static size_t without_zeros(const uint8_t *stream, size_t size)
{
    enum { LEAST = 64 };
    size_t end = size;
    while (end > 0 && stream[end - 1] == 0) end--;
    return size - end < LEAST ? size : end;
}

/* A stream that is whole and begins as this one does, up to its fault. */
static enum tsr_status make_whole(const uint8_t *stream, size_t size, size_t limit, struct tsr_bytes *whole,
                                  struct tsr_error *error)
{
    struct deflate_source source = {.stream = stream, .size = without_zeros(stream, size)}, begin;
    struct deflate_block *const block = calloc(1, sizeof *block);
    if (!block) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a deflate stream");
    enum tsr_status status = TSR_ERROR_CORRUPT;
    if (find_fault(&source, block, limit, &begin)) status = put_whole(&begin, block, whole, error);
    free(block->tokens.tokens);
    free(block);
    return status;
}

enum tsr_status tsr_deflate_read_up_to(const struct tsr_deflate_way *way, const uint8_t *stream, size_t size,
                                       size_t *used, struct tsr_bytes *plain, struct tsr_bytes *residue,
                                       struct tsr_error *error)
{
    const size_t before = residue->size, limit = residue->limit;
    struct tsr_error fault = {.offset = TSR_NO_OFFSET};
    struct tsr_bytes whole = {.limit = size + DEFLATE_DROPPED};
    enum tsr_status status = tsr_deflate_read_by(way, stream, size, used, plain, residue, &fault);
    if (status != TSR_OK && error) *error = fault;
    if (status != TSR_ERROR_CORRUPT) return status;
    plain->size = 0;
    residue->size = before;
    status = make_whole(stream, size, plain->limit, &whole, NULL);
    for (*used = 0; *used < size && *used < whole.size && stream[*used] == whole.bytes[*used];) ++*used;
    const size_t dropped = whole.size - *used;
    if (status == TSR_OK && (dropped > DEFLATE_DROPPED || *used == 0)) status = TSR_ERROR_CORRUPT;
    if (status == TSR_OK) status = tsr_bytes_put_u8(residue, DEFLATE_CUT, NULL);
    if (status == TSR_OK) status = tsr_bytes_put_u8(residue, (uint8_t)dropped, NULL);
    size_t all;
    residue->limit = before + (limit - before) / 2; /* what it takes besides has the memory of this stream */
    if (status == TSR_OK) status = tsr_deflate_read_by(way, whole.bytes, whole.size, &all, plain, residue, NULL);
    residue->limit = limit;
    tsr_bytes_free(&whole);
    return status; /* the error tells of the fault */
}

enum tsr_status tsr_deflate_write_cut(const struct tsr_deflate_way *way, const uint8_t *plain, size_t plain_size,
                                      const uint8_t *residue, size_t size, struct tsr_bytes *stream,
                                      struct tsr_error *error)
{
    enum { HEAD = 2 };
    const size_t before = stream->size, limit = stream->limit, dropped = size >= HEAD ? residue[1] : 0;
    if (size <= HEAD || dropped > DEFLATE_DROPPED || residue[HEAD] == DEFLATE_CUT)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "the residue of a deflate stream is damaged");
    stream->limit = limit < SIZE_MAX - dropped ? limit + dropped : limit;
    enum tsr_status status = tsr_deflate_write_by(way, plain, plain_size, residue + HEAD, size - HEAD, stream, error);
    stream->limit = limit;
    if (status == TSR_OK && stream->size - before < dropped)
        status = tsr_fail(error, TSR_ERROR_CORRUPT, "a deflate stream that is cut has no begin");
    if (status == TSR_OK) stream->size -= dropped;
    return status;
}
