/* Long strings of elements in blocks, each of which is a code of its own: several threads code them. ELEMENTS.md 5. */
#ifndef TSR_IO_NODES_ELEMENTS_ELEMENTS_BLOCKS_H
#define TSR_IO_NODES_ELEMENTS_ELEMENTS_BLOCKS_H

#include "elements_mix.h"

enum {
    TSR_ELEMENTS_LONG = 64 << 20, /* bytes of a string that is cut into blocks, at most: half a minute of a thread */
    TSR_ELEMENTS_BLOCKS = 256     /* at most */
};

struct tsr_elements_block {
    const uint8_t *bytes;
    size_t size;
    unsigned form;          /* as tsr_elements_mix_block takes it */
    struct tsr_bytes code;  /* to be freed by the caller; its limit is set before */
    enum tsr_status status; /* TSR_ERROR_CORRUPT: the code would be longer than its limit */
};

/* Cuts a string of 1 .. TSR_ELEMENTS_LONG bytes into blocks of at most TSR_ELEMENTS_PLAIN bytes, which begin where
 * elements do, unless an element is longer than a block. Errors: TSR_ERROR_LIMIT. */
enum tsr_status tsr_elements_cut(const uint8_t *bytes, size_t size,
                                 struct tsr_elements_block block[TSR_ELEMENTS_BLOCKS], unsigned *count,
                                 struct tsr_error *error);

/* Codes blocks that have no code yet on so many threads of a crew, and sets the status of each. */
void tsr_elements_mix_blocks(struct tsr_elements_block *block, unsigned count, const struct tsr_crew *crew,
                             unsigned threads);

#endif
