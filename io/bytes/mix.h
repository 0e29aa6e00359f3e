/* Mixed predictions of bits. GROUND.md 6 and 7. */
#ifndef TSR_IO_BYTES_MIX_H
#define TSR_IO_BYTES_MIX_H

#include "range_bytes.h"

enum {
    TSR_MIX_CONTEXTS = 16, /* at most */
    TSR_MIX_FEW = 5,       /* of a symbol */
    TSR_MIX_MATCHES = 2,   /* at most */
    TSR_MIX_INPUTS = TSR_MIX_CONTEXTS + TSR_MIX_MATCHES,
    TSR_MIX_SLOTS = 1 << 16,
    TSR_MIX_SEEN = 8,       /* classes of how often a slot was seen */
    TSR_MIX_SETS = 11,      /* at most */
    TSR_MIX_NOTED = 1 << 13 /* bits of which the slots are noted */
};

struct tsr_mix_slot {
    uint16_t chance; /* of a one, xor 32768: a slot of zeros is a new one */
    uint16_t seen;
};

/* What a match says. */
struct tsr_mix_match {
    int32_t expected; /* the byte that comes, or -1 */
    uint32_t length;
};

struct tsr_mix {
    struct tsr_range_coder range;
    bool is_learning; /* bits are known, and not coded */
    int set, contexts, matches;
    uint32_t context[TSR_MIX_CONTEXTS]; /* hashes, of the byte that comes */
    struct tsr_mix_match match[TSR_MIX_MATCHES];
    int16_t stretch[4096];
    uint32_t reciprocal[64];
    uint8_t seen_class[64];
    int32_t weight[TSR_MIX_SETS][TSR_MIX_INPUTS][TSR_MIX_SEEN];
    struct tsr_mix_slot match_slot[TSR_MIX_MATCHES][TSR_MIX_SETS][16];
    /* What the slots differ in from those of the model that this one began as: as many bits have changed slots. The
     * slots of the last of them are noted; a context that a bit does not have has any. */
    const struct tsr_mix *origin;
    uint64_t bits;
    uint16_t noted[TSR_MIX_NOTED][TSR_MIX_CONTEXTS];
    int most_contexts;          /* that slots are for */
    struct tsr_mix_slot slot[]; /* TSR_MIX_SLOTS of each context */
};

/* Returns a model of so many contexts at most, and of one match. Its range coder is not begun. weights: what those of
 * each set are at first. NULL: no memory. */
struct tsr_mix *tsr_mix_create(int contexts, const int32_t weights[TSR_MIX_SETS]);

/* Makes a model the same as the origin, which does not change from then on, and has as many contexts at most. It is
 * cheap for a model that began as the same origin before, and has coded few bits since. */
void tsr_mix_begin(struct tsr_mix *mix, const struct tsr_mix *origin);

/* Codes a byte by the contexts; the value is used by a writer only. */
uint32_t tsr_mix_byte(struct tsr_mix *mix, uint32_t value);

/* Codes a symbol of four bits by the first TSR_MIX_FEW contexts: by one bit if it is the expected one, -1 for none,
 * which a match of this length predicts. Then there is no match. */
uint32_t tsr_mix_symbol(struct tsr_mix *mix, uint32_t value, int32_t expected, uint32_t length);

uint32_t tsr_mix_hash(uint32_t h, uint32_t v);
uint32_t tsr_mix_hash_of(uint32_t h, const uint8_t *bytes, size_t size);

/* All bytes that were coded, and where those last stood that end them now. */
enum { TSR_MIX_PLACES = 1 << 14 };
struct tsr_mix_history {
    uint8_t *bytes;
    uint32_t size, from; /* bytes; where the match is */
    uint32_t place[TSR_MIX_PLACES];
};

/* A byte joins the history, for which there is room; the first match goes on or is sought anew. */
void tsr_mix_remember(struct tsr_mix *mix, struct tsr_mix_history *history, uint32_t byte);

/* Makes a history the same as the origin's, for whose bytes there is room. */
void tsr_mix_history_begin(struct tsr_mix_history *history, const struct tsr_mix_history *origin);

/* The byte so far back, from 1; 0 if there is none. */
static inline uint32_t tsr_mix_last(const struct tsr_mix_history *history, uint32_t back)
{
    return history->size >= back ? history->bytes[history->size - back] : 0;
}

#endif
