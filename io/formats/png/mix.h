/* Mixed predictions of bits. FORMAT.md 4.11.2. */
#ifndef TSR_IO_FORMATS_PNG_MIX_H
#define TSR_IO_FORMATS_PNG_MIX_H

#include "io/formats/streams/deflate/deflate_parts.h"

enum {
    TSR_MIX_CONTEXTS = 8, /* at most */
    TSR_MIX_INPUTS = TSR_MIX_CONTEXTS + 1,
    TSR_MIX_SLOTS = 1 << 16,
    TSR_MIX_SEEN = 8, /* classes of how often a slot was seen */
    TSR_MIX_SETS = 2
};

struct tsr_mix_slot {
    uint16_t chance; /* of a one, xor 32768: a slot of zeros is a new one */
    uint16_t seen;
};

struct tsr_mix {
    struct deflate_range range;
    bool is_learning; /* bits are known, and not coded */
    int set, contexts;
    uint32_t context[TSR_MIX_CONTEXTS]; /* hashes, of the byte that comes */
    int32_t expected;                   /* the byte that the match expects, or -1 */
    uint32_t length;                    /* of the match */
    int16_t stretch[4096];
    uint32_t reciprocal[64];
    int32_t weight[TSR_MIX_SETS][TSR_MIX_INPUTS][TSR_MIX_SEEN];
    struct tsr_mix_slot match[TSR_MIX_SETS][16];
    struct tsr_mix_slot slot[TSR_MIX_CONTEXTS][TSR_MIX_SLOTS];
};

/* Returns a model whose range coder is not begun; NULL: no memory. */
struct tsr_mix *tsr_mix_create(void);

/* Codes a byte by the contexts; the value is used by a writer only. */
uint32_t tsr_mix_byte(struct tsr_mix *mix, uint32_t value);

#endif
