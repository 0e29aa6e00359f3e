/* Mixed predictions of bits. FORMAT.md 4.11.2. */
#ifndef TSR_IO_FORMATS_PNG_MIX_H
#define TSR_IO_FORMATS_PNG_MIX_H

#include "io/formats/streams/deflate/deflate_parts.h"

enum {
    TSR_MIX_CONTEXTS = 8, /* at most */
    TSR_MIX_INPUTS = TSR_MIX_CONTEXTS + 1,
    TSR_MIX_SLOTS = 1 << 16,
    TSR_MIX_SEEN = 8, /* classes of how often a slot was seen */
    TSR_MIX_SETS = 2,
    TSR_MIX_NOTED = 1 << 13 /* bits of which the slots are noted */
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
    uint8_t seen_class[64];
    int32_t weight[TSR_MIX_SETS][TSR_MIX_INPUTS][TSR_MIX_SEEN];
    struct tsr_mix_slot match[TSR_MIX_SETS][16];
    /* What the slots differ in from those of the model that this one began as: as many bits have changed slots. The
     * slots of the last of them are noted; a context that a bit does not have has any. */
    const struct tsr_mix *origin;
    uint64_t bits;
    uint16_t noted[TSR_MIX_NOTED][TSR_MIX_CONTEXTS];
    struct tsr_mix_slot slot[TSR_MIX_CONTEXTS][TSR_MIX_SLOTS];
};

/* Returns a model whose range coder is not begun; NULL: no memory. */
struct tsr_mix *tsr_mix_create(void);

/* Makes a model the same as the origin, which does not change from then on. It is cheap for a model that began as the
 * same origin before, and has coded few bits since. */
void tsr_mix_begin(struct tsr_mix *mix, const struct tsr_mix *origin);

/* Codes a byte by the contexts; the value is used by a writer only. */
uint32_t tsr_mix_byte(struct tsr_mix *mix, uint32_t value);

#endif
