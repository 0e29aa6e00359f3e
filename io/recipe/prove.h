/* The one place where bytes are unwrapped, made again and compared. */
#ifndef TSR_IO_RECIPE_PROVE_H
#define TSR_IO_RECIPE_PROVE_H

#include "io/nodes/node.h"

/* Splits bytes by a node, joins the parts again, and compares: appends plain bytes and residue, which give the same
 * bytes. If the node guesses (tsr_input_set_guessed), it is left to the written file to show that. *used: the bytes
 * that the node has taken. Errors: TSR_DECLINED (the bytes are not of this kind, or do not come
 * back; the text says why, as half a sentence; with an offset if they look damaged there, after TSR_OK, too),
 * TSR_ERROR_LIMIT (memory). After an error, the caller still frees plain bytes and residue. */
enum tsr_status tsr_prove(const struct tsr_node *node, const struct tsr_node_work *work, const uint8_t *bytes,
                          size_t size, size_t *used, struct tsr_bytes *plain, struct tsr_bytes *residue,
                          struct tsr_error *error);

/* The same of bytes that are split already. again: room that is used again, or NULL. */
enum tsr_status tsr_prove_parts(const struct tsr_node *node, const struct tsr_node_work *work,
                                const struct tsr_node_parts *parts, const uint8_t *bytes, size_t size,
                                struct tsr_bytes *again, struct tsr_error *error);

#endif
