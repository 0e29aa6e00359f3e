/* A range coder whose bytes grow: one coder for both directions. GROUND.md 5. */
#ifndef TSR_IO_BYTES_RANGE_BYTES_H
#define TSR_IO_BYTES_RANGE_BYTES_H

#include "entropy/range_coder.h"
#include "grown.h"

struct tsr_range_coder {
    struct tsr_bytes *out; /* encodes, if not NULL */
    uint64_t low;
    uint32_t range, code, held;
    uint8_t cache;
    bool started, failed, no_memory; /* no_memory: why it failed */
    const uint8_t *in;
    size_t size, at;
};
void tsr_range_begin_writing(struct tsr_range_coder *range, struct tsr_bytes *out);
void tsr_range_begin_reading(struct tsr_range_coder *range, const uint8_t *in, size_t size);
void tsr_range_finish(struct tsr_range_coder *range); /* of writing */
/* Each codes a value, and returns it; a reader's value is not used. bit_of: a bit that is 0 with a chance of zero /
 * 65536, 1 .. 65535. */
uint32_t tsr_range_bit_of(struct tsr_range_coder *range, uint32_t zero, uint32_t bit);
uint32_t tsr_range_bit(struct tsr_range_coder *range, struct tsr_chance *chance, uint32_t bit);
uint32_t tsr_range_even(struct tsr_range_coder *range, uint32_t value, uint32_t bits);
uint32_t tsr_range_tree(struct tsr_range_coder *range, struct tsr_chance *tree, uint32_t value, uint32_t bits);
uint32_t tsr_range_number(struct tsr_range_coder *range, struct tsr_chance *chances, uint32_t value);

#endif
