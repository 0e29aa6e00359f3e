/* The pieces of packed files; see pieces.h. */
#include "pieces.h"

#include "io/nodes/elements/elements_mix.h"
#include "io/nodes/png/png_chunks.h"
#include "io/nodes/small_png/png_mix.h"

static const struct tsr_node *const nodes[TSR_PIECE_KINDS] = {
    [TSR_PIECE_JPEG] = &tsr_node_jpeg,           [TSR_PIECE_DEFLATE] = &tsr_node_deflate,
    [TSR_PIECE_PNG_IDAT] = &tsr_node_png_chunks, [TSR_PIECE_SMALL_PNG] = &tsr_node_small_png,
    [TSR_PIECE_ELEMENTS] = &tsr_node_elements,
};

const struct tsr_node *tsr_piece_node(enum tsr_piece_kind kind)
{
    return nodes[kind];
}

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

const struct tsr_node *tsr_first_node(const uint8_t *bytes, size_t size)
{
    struct tsr_piece_head head;
    for (size_t at = 0, used; tsr_get_piece_head(bytes + at, size - at, &head, &used, NULL) == TSR_OK && used > 0;) {
        if (head.kind != TSR_PIECE_BYTES && head.kind != TSR_PIECE_PNG_START) return nodes[head.kind];
        at += used;
        if (head.size >= size - at) break;
        at += (size_t)head.size;
    }
    return NULL;
}

uint64_t tsr_unpacking_memory(uint64_t room, uint64_t made, const struct tsr_node *node)
{
    static const uint64_t most = UINT64_MAX / 16;
    const struct tsr_node_work work = {.room = room};
    if (room > most || made > most) return UINT64_MAX / 2;
    if (node) return node->memory(&work, made, true);
    const uint64_t jpeg = tsr_node_jpeg.memory(&work, made, true), deflate = tsr_node_deflate.memory(&work, made, true);
    return jpeg > deflate ? jpeg : deflate;
}
