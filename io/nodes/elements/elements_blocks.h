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

/* Cuts a string into blocks of at most TSR_ELEMENTS_PLAIN bytes, which begin where elements do, unless an element is
 * longer than a block. The string comes in parts: the first one has the first TSR_ELEMENTS_FIRST bytes, or all. add
 * gets each block when its end is known: byte start of the string to byte end, and its form. */
enum { TSR_ELEMENTS_FIRST = 1 << 16 };
struct tsr_elements_cut;
struct tsr_elements_cut *tsr_elements_begin_cut(const uint8_t *first,
                                                uint32_t size); /* NULL: no memory; freed by free */
void tsr_elements_cut(struct tsr_elements_cut *cut, const uint8_t *bytes, size_t count,
                      void (*add)(void *context, uint64_t start, uint64_t end, unsigned form), void *context);

/* Codes blocks that have no code yet on so many threads of a crew, and sets the status of each. */
void tsr_elements_mix_blocks(struct tsr_elements_block *block, unsigned count, const struct tsr_crew *crew,
                             unsigned threads);

#endif
