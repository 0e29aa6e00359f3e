/* DICOM files without pixels, of which all bytes are coded by mixed predictions. ELEMENTS.md. */
#ifndef TSR_IO_NODES_ELEMENTS_ELEMENTS_MIX_H
#define TSR_IO_NODES_ELEMENTS_ELEMENTS_MIX_H

#include "io/nodes/node.h"

enum {
    TSR_ELEMENTS_PLAIN = 1 << 20,  /* plain bytes, at most */
    TSR_ELEMENTS_CODE = 1 << 21,   /* bytes of a code, at most */
    TSR_ELEMENTS_ROOM = 1 << 20,   /* that a file tells */
    TSR_ELEMENTS_MEMORY = 10 << 20 /* that coding takes besides the arguments */
};

/* Appends the code of a block of 1 .. TSR_ELEMENTS_PLAIN bytes of a longer string, with the form of its elements.
 * Errors: TSR_ERROR_CORRUPT (over the limit of the code), TSR_ERROR_LIMIT (memory). */
enum tsr_status tsr_elements_mix_block(const uint8_t *bytes, size_t size, unsigned form, struct tsr_bytes *code,
                                       struct tsr_error *error);

/* What the model learns first: lines of elements, each of which ends with a bar. NULL ends them. ELEMENTS.md 4. */
extern const char *const tsr_elements_seen[];

#endif
