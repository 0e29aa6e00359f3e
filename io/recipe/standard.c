/* The table of standard recipes; see standard.h. */
#include "standard.h"

#include <stdio.h>
#include <string.h>

#include "io/nodes/elements/elements_mix.h"
#include "io/nodes/elements/elements_spell.h"
#include "io/nodes/small_png/png_mix.h"

/* By number. */
static const struct {
    enum tsr_kind kind;
    const char *reason;
    enum tsr_piece_kind piece;
    uint64_t room;
} recipes[TSR_STANDARD_RECIPES] = {
    {TSR_KIND_PNG, tsr_smaller_stored, TSR_PIECE_SMALL_PNG, TSR_PNG_MIX_ROOM},
    {TSR_KIND_DICOM, tsr_no_pixels, TSR_PIECE_ELEMENTS, TSR_ELEMENTS_ROOM},
};

struct tsr_header tsr_standard_header(int number)
{
    struct tsr_header header = {.kind = recipes[number].kind, .recipe = TSR_RECIPE_PACKED, .exact = true};
    header.room = recipes[number].room;
    snprintf(header.reason, sizeof header.reason, "%s", recipes[number].reason);
    return header;
}

size_t tsr_put_standard_head(int number, uint64_t content, uint64_t original, uint8_t head[TSR_PIECE_HEAD_LIMIT])
{
    const enum tsr_piece_kind kind = recipes[number].piece;
    return tsr_put_piece_head(head, &(struct tsr_piece_head){.kind = kind, .size = content, .whole = original});
}

int tsr_standard_recipe(const uint8_t *blob, size_t size, uint64_t original, size_t *head)
{
    struct tsr_piece_head piece;
    if (tsr_get_piece_head(blob, size, &piece, head, NULL) != TSR_OK || *head == 0 || *head >= size) return -1;
    for (int i = 0; i < TSR_STANDARD_RECIPES; i++) {
        uint8_t wanted[TSR_PIECE_HEAD_LIMIT];
        if (piece.kind == recipes[i].piece && piece.size == size - *head &&
            tsr_put_standard_head(i, piece.size, original, wanted) == *head && memcmp(blob, wanted, *head) == 0)
            return i;
    }
    return -1;
}

const uint8_t *tsr_standard_base(size_t *size)
{
    return tsr_known_headers(size);
}
