/* The pieces of packed files, and their heads. PACKED.md. */
#ifndef TSR_IO_RECIPE_PIECES_H
#define TSR_IO_RECIPE_PIECES_H

#include "io/nodes/node.h"

/* A piece's kind and sizes, which stand before its content. */
enum { TSR_PIECE_HEAD_LIMIT = 1 + 3 * 10, TSR_PIECE_OF_FILE = 16 };
struct tsr_piece_head {
    enum tsr_piece_kind kind;
    uint64_t size;    /* of bytes, or of a node's plain bytes */
    uint64_t inner;   /* not 0: the piece has, instead of these, so many bytes of a .tsr, which restores them */
    uint64_t residue; /* its size, of a node that has one */
    uint64_t whole;   /* bytes that the node makes of them, where it is told */
};
size_t tsr_put_piece_head(uint8_t *out, const struct tsr_piece_head *head);

/* The same from the bytes of a blob. *used: bytes of the head. *used 0: more bytes are needed. Errors:
 * TSR_ERROR_CORRUPT. */
enum tsr_status tsr_get_piece_head(const uint8_t *bytes, size_t size, struct tsr_piece_head *head, size_t *used,
                                   struct tsr_error *error);

/* Bytes of memory that a piece takes which is a file, as the room of a header counts them; the sum does not overflow.
 */
uint64_t tsr_inner_room(const struct tsr_piece_head *head);

/* The node of the first stream of a file whose blob begins with these bytes; NULL: they do not tell. */
const struct tsr_node *tsr_first_node(const uint8_t *bytes, size_t size);

/* All that making a file of this many bytes takes, whose streams are of this node; NULL: of any. */
uint64_t tsr_unpacking_memory(uint64_t room, uint64_t made, const struct tsr_node *node);

#endif
