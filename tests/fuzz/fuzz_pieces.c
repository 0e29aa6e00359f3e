/* See the header. */
#include "fuzz_pieces.h"

#include <stdlib.h>
#include <string.h>

#include "io/nodes/elements/elements_mix.h"
#include "io/formats/packed.h"
#include "io/formats/png/png_file.h"
#include "io/nodes/png/png_idat.h"
#include "io/nodes/small_png/png_mix.h"
#include "io/nodes/deflate/deflate.h"
#include "io/nodes/jpeg/jpeg.h"
#include "io/recipe/pieces.h"
#include "io/recipe/recipe.h"
#include "tests/unit/io/streams/by_node.h"

enum { PIECES, JPEG, DEFLATE, SMALL_PNG, ELEMENTS, WAYS };

static void put_piece(struct tsr_bytes *pieces, const struct tsr_piece_head *head, const struct tsr_bytes *content,
                      const struct tsr_bytes *residue)
{
    uint8_t bytes[TSR_PIECE_HEAD_LIMIT];
    tsr_bytes_put(pieces, bytes, tsr_put_piece_head(bytes, head), NULL);
    tsr_bytes_put(pieces, content->bytes, content->size, NULL);
    tsr_bytes_put(pieces, residue->bytes, residue->size, NULL);
}

/* Changes up to 3 bytes after the first few, as often as not. */
static void damage(struct tsr_bytes *pieces, struct fuzz_random *random)
{
    for (uint32_t n = fuzz_below(random, 4); n > 0 && pieces->size > 0 && fuzz_below(random, 2); n--) {
        const uint32_t at = fuzz_below(random, (uint32_t)pieces->size);
        pieces->bytes[at] = (uint8_t)(pieces->bytes[at] ^ 1u << fuzz_below(random, 8));
    }
}

/* Codes a PNG whose first IDAT chunks follow each other. */
static bool mix(const uint8_t *file, size_t size, struct tsr_bytes *code)
{
    struct tsr_bytes plain = {.limit = FUZZ_PIECES_LIMIT}, residue = {.limit = FUZZ_PIECES_LIMIT};
    struct tsr_png_parts parts = {file, size, 0, 0, &plain, &residue};
    for (size_t at = 8; at < size && size - at >= 12;) {
        const uint32_t length = tsr_read_u32_be(file + at);
        if (length > size - at - 12) break;
        const bool is_idat = memcmp(file + at + 4, "IDAT", 4) == 0;
        if (!is_idat && parts.end > 0) break;
        if (is_idat && parts.end == 0) parts.start = at;
        at += 12 + (size_t)length;
        if (is_idat) parts.end = at;
    }
    const bool good =
        parts.end > 0 &&
        split_by(&tsr_node_png_chunks, file + parts.start, parts.end - parts.start, &plain, &residue, NULL) == TSR_OK &&
        tsr_png_mix(&parts, code, NULL) == TSR_OK;
    tsr_bytes_free(&plain);
    tsr_bytes_free(&residue);
    return good;
}

bool fuzz_pieces(const uint8_t *data, size_t size, struct fuzz_random *random, struct tsr_bytes *pieces)
{
    struct tsr_bytes content = {.limit = FUZZ_PIECES_LIMIT}, residue = {.limit = FUZZ_PIECES_LIMIT};
    if (size < FUZZ_PIECES_HEAD) return false;
    for (int i = 1; i < FUZZ_PIECES_HEAD; i++) random->state = random->state << 8 | data[i];
    *pieces = (struct tsr_bytes){.limit = 4 * FUZZ_PIECES_LIMIT};
    const uint8_t *const rest = data + FUZZ_PIECES_HEAD;
    size_t left = size - FUZZ_PIECES_HEAD, used = 0;
    bool good = true;
    switch ((data[0] & 127) % WAYS) {
    case JPEG:
        good = split_by(&tsr_node_jpeg, rest, left, &content, NULL, NULL) == TSR_OK;
        if (good)
            put_piece(pieces, &(struct tsr_piece_head){.kind = TSR_PIECE_JPEG, .size = content.size}, &content,
                      &residue);
        break;
    case DEFLATE:
        good = tsr_deflate_read(rest, left, &used, &content, &residue, NULL) == TSR_OK;
        if (good)
            put_piece(
                pieces,
                &(struct tsr_piece_head){.kind = TSR_PIECE_DEFLATE, .size = content.size, .residue = residue.size},
                &content, &residue);
        break;
    case SMALL_PNG:
        good = mix(rest, left, &content);
        if (good)
            put_piece(pieces, &(struct tsr_piece_head){.kind = TSR_PIECE_SMALL_PNG, .size = content.size}, &content,
                      &residue);
        break;
    case ELEMENTS:
        good = left > 0 && left <= FUZZ_PIECES_LIMIT &&
               split_by(&tsr_node_elements, rest, left, &content, NULL, NULL) == TSR_OK;
        if (good)
            put_piece(pieces, &(struct tsr_piece_head){.kind = TSR_PIECE_ELEMENTS, .size = content.size, .whole = left},
                      &content, &residue);
        break;
    default:
        tsr_bytes_put(pieces, rest, left, NULL);
    }
    if (good && (data[0] & 127) % WAYS != PIECES) damage(pieces, random);
    tsr_bytes_free(&content);
    tsr_bytes_free(&residue);
    return good;
}

struct leaf {
    const struct tsr_bytes *pieces;
    size_t at, by;
    uint8_t *part; /* memory of its own shows reads beyond its end */
};

static enum tsr_status read_leaf(void *context, enum tsr_blob blob, const uint8_t **bytes, size_t *size,
                                 struct tsr_error *error)
{
    struct leaf *const l = context;
    const size_t left = blob == TSR_BLOB_PREFIX ? l->pieces->size - l->at : 0;
    (void)error;
    *size = left < l->by ? left : l->by;
    free(l->part);
    l->part = fuzz_alloc(*size);
    if (*size > 0) memcpy(l->part, l->pieces->bytes + l->at, *size);
    l->at += *size;
    *bytes = l->part;
    return TSR_OK;
}

struct tsr_output *fuzz_unpack(const struct tsr_bytes *pieces, uint64_t room, size_t by, enum tsr_status *status)
{
    const struct tsr_header header = {.recipe = TSR_RECIPE_PACKED, .exact = true, .room = room};
    struct leaf leaf = {.pieces = pieces, .by = by};
    const struct tsr_making making = {.leaves = {.read = read_leaf, .context = &leaf}};
    struct tsr_output *output = tsr_output_to_memory();
    FUZZ_PROMISE(output, "no output");
    tsr_output_limit(output, FUZZ_PIECES_LIMIT);
    *status = tsr_make(&header, &making, output, NULL);
    free(leaf.part);
    FUZZ_PROMISE(*status == TSR_OK || *status == TSR_ERROR_CORRUPT, "status %d", (int)*status);
    FUZZ_PROMISE(tsr_output_size(output) <= FUZZ_PIECES_LIMIT, "too many bytes");
    return output;
}
