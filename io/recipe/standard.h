/* Standard recipes: what brief files leave out. FORMAT.md 3.10. */
#ifndef TSR_IO_RECIPE_STANDARD_H
#define TSR_IO_RECIPE_STANDARD_H

#include "header.h"
#include "pieces.h"

enum { TSR_STANDARD_RECIPES = 2 };

/* The header that a brief file with the number of a standard recipe stands for. */
struct tsr_header tsr_standard_header(int number);

/* The head of its only piece, of so much content and of a file of so many bytes. Returns its bytes. */
size_t tsr_put_standard_head(int number, uint64_t content, uint64_t original, uint8_t head[TSR_PIECE_HEAD_LIMIT]);

/* The standard recipe whose piece is all of a blob, of a file of so many bytes; -1: there is none. *head: bytes of the
 * piece's head. */
int tsr_standard_recipe(const uint8_t *blob, size_t size, uint64_t original, size_t *head);

/* Bytes that headers of images often have, which a blob may be compressed after: FORMAT.md 3.3, method 3. */
const uint8_t *tsr_standard_base(size_t *size);

#endif
