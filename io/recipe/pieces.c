/* The pieces of packed files; see pieces.h. */
#include "pieces.h"

#include "io/nodes/png/png_chunks.h"

size_t tsr_put_piece_head(uint8_t *out, const struct tsr_piece_head *head)
{
    const struct tsr_node *const node = tsr_piece_node(head->kind);
    size_t used = 0;
    out[used++] = (uint8_t)(head->kind + (head->inner > 0 ? TSR_PIECE_OF_FILE : 0));
    used += tsr_put_varint(out + used, head->size);
    if (head->inner > 0) used += tsr_put_varint(out + used, head->inner);
    if (node && node->has_residue) used += tsr_put_varint(out + used, head->residue);
    if (node && node->most_whole > 0) used += tsr_put_varint(out + used, head->whole);
    return used;
}

static bool is_good_size(const struct tsr_piece_head *head, const struct tsr_node *node)
{
    static const uint64_t most = (uint64_t)1 << 60;
    if (head->kind == TSR_PIECE_PNG_START) return head->size == TSR_PNG_IHDR_BYTES;
    if (head->kind == TSR_PIECE_PNG_END) return head->size == 0;
    if (head->size >= most || head->residue >= most || head->inner >= most) return false;
    if (!node) return head->size > 0;
    const bool is_size =
        (head->size > 0 || node->has_residue) && (node->most_plain == 0 || head->size <= node->most_plain);
    return is_size && (node->most_whole == 0 || (head->whole > 0 && head->whole <= node->most_whole));
}

enum tsr_status tsr_get_piece_head(const uint8_t *bytes, size_t size, struct tsr_piece_head *head, size_t *used,
                                   struct tsr_error *error)
{
    struct tsr_cursor c = {bytes, size, 0, false};
    const uint8_t number = tsr_get_u8(&c);
    const bool is_file =
        number == TSR_PIECE_OF_FILE + TSR_PIECE_BYTES || number == TSR_PIECE_OF_FILE + TSR_PIECE_DEFLATE;
    const uint8_t kind = is_file ? number - TSR_PIECE_OF_FILE : number;
    const struct tsr_node *const node = tsr_piece_node((enum tsr_piece_kind)kind);
    *head = (struct tsr_piece_head){.kind = (enum tsr_piece_kind)kind};
    head->size = tsr_get_varint(&c);
    if (is_file) head->inner = tsr_get_varint(&c);
    if (node && node->has_residue) head->residue = tsr_get_varint(&c);
    if (node && node->most_whole > 0) head->whole = tsr_get_varint(&c);
    *used = c.bad ? 0 : c.at;
    if (kind < TSR_PIECE_KINDS && (!c.bad || size < TSR_PIECE_HEAD_LIMIT) &&
        (c.bad || (is_good_size(head, node) && (!is_file || (head->inner > 0 && head->size > 0)))))
        return TSR_OK;
    return tsr_fail(error, TSR_ERROR_CORRUPT, "the head of a piece of the file is not valid");
}

uint64_t tsr_inner_room(const struct tsr_piece_head *head)
{
    const uint64_t each = head->kind == TSR_PIECE_BYTES ? 1 : 2;
    return each * (head->size + head->residue) + head->inner; /* each below 2^60 */
}

const struct tsr_node *tsr_first_node(const uint8_t *bytes, size_t size)
{
    struct tsr_piece_head head;
    for (size_t at = 0, used; tsr_get_piece_head(bytes + at, size - at, &head, &used, NULL) == TSR_OK && used > 0;) {
        if (head.inner > 0) return NULL;
        if (head.kind != TSR_PIECE_BYTES && head.kind != TSR_PIECE_PNG_START) return tsr_piece_node(head.kind);
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
