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

/* What the model learns first: lines of elements, each of which ends with a bar. NULL ends them. ELEMENTS.md 4. */
extern const char *const tsr_elements_seen[];

#endif
