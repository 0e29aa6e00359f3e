/* The chains of the match finder, and what goes along them. deflate_fill.c makes them. */
#ifndef TSR_IO_NODES_DEFLATE_DEFLATE_CHAINS_H
#define TSR_IO_NODES_DEFLATE_DEFLATE_CHAINS_H

#include <string.h>

#include "deflate_parts.h"

static inline uint64_t eight(const uint8_t *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return value;
#else
    return __builtin_bswap64(value);
#endif
}

static inline uint32_t four(const uint8_t *bytes)
{
    uint32_t value; /* which is only compared with others */
    memcpy(&value, bytes, sizeof value);
    return value;
}

static inline uint32_t three(const uint8_t *bytes)
{
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16;
}

/* Steps from a position to the one before it in a chain; and its ordinal in that of three bytes. */
static inline uint32_t step3(const struct deflate_model *m, uint32_t at)
{
    return m->chain3[at % DEFLATE_RING] & 65535;
}

static inline uint16_t ordinal(const struct deflate_model *m, uint32_t at)
{
    return (uint16_t)(m->chain3[at % DEFLATE_RING] >> 16);
}

static inline uint32_t step4(const struct deflate_model *m, uint32_t at)
{
    return m->chain43[at % DEFLATE_RING] & 65535;
}

/* The same in the chain of three bytes by another hash, of which fewer bytes share a value than of zlib's. */
static inline uint32_t near_step3(const struct deflate_model *m, uint32_t at)
{
    return m->chain43[at % DEFLATE_RING] >> 16;
}

static inline uint32_t step6(const struct deflate_model *m, uint32_t at)
{
    return m->chain6[at % DEFLATE_RING];
}

static inline uint32_t step8(const struct deflate_model *m, uint32_t at)
{
    return m->chain8[at % DEFLATE_RING];
}

/* How far a walk would go to a position in the same chain. */
static inline uint32_t steps_to(const struct deflate_model *m, uint32_t p, uint32_t distance)
{
    return (uint16_t)(ordinal(m, p) - ordinal(m, p - distance));
}

/* Takes work down. */
static inline void spend(struct deflate_model *m, uint32_t cost)
{
    m->work -= m->work < cost ? m->work : cost;
}

enum {
    EPOCH = DEFLATE_WINDOW - 1,  /* positions between two slides of the heads: as many as 16 bits allow */
    NEWEST = DEFLATE_WINDOW + 1, /* a head holds NEWEST + position % EPOCH; 0: none. That is beyond the window */
};

static inline uint32_t newest(uint32_t at)
{
    return NEWEST + at % EPOCH;
}

static inline uint32_t hash3(const struct deflate_model *m, uint32_t three_bytes)
{
    const uint32_t s = m->hash_shift;
    return ((three_bytes & 255) << 2 * s ^ (three_bytes >> 8 & 255) << s ^ (three_bytes >> 16 & 255)) & m->hash_mask;
}

/* Inserts a position, whose place in the rings is slot, into the chain of three bytes. now: newest of the position.
 * Returns its step. */
static inline uint32_t insert3(struct deflate_model *m, uint32_t slot, uint32_t now, uint32_t hash)
{
    const uint32_t last = m->head3[hash], next = (last & 0xffff0000) + 0x10000, step = (uint16_t)(now - last);
    m->chain3[slot] = next | step;
    m->head3[hash] = next | now;
    return step;
}

/* Where chains are made ahead of the search: inserts positions up to p, and some more. */
void tsr_deflate_fill(struct deflate_model *model, uint32_t p);
/* The same of the chain of eight bytes, up to a match's bytes after p. Begins that chain. */
void tsr_deflate_fill_deep(struct deflate_model *model, uint32_t p);
void tsr_deflate_begin_deep(struct deflate_model *model, uint32_t p);

/* Whether there may be a match of four bytes or more: the first place of their chain is one, or there is a second. No
 * branch tells it, as no processor would predict that. */
static inline bool may_match4(const struct deflate_model *m, uint32_t p)
{
    const uint32_t step = step4(m, p), back = step & (0u - (step <= m->p.reach)), second = step + step4(m, p - back);
    const bool is_first = (eight(m->plain + p - back) ^ eight(m->plain + p)) << 32 == 0;
    return (step <= m->p.reach) & (is_first | (second <= m->p.reach));
}

/* Whether a longer match may be found. */
static inline bool has_candidate(const struct deflate_model *m, uint32_t p, uint32_t best)
{
    if (m->is_filtered) return m->hopes[p % DEFLATE_RING] != 0;
    if (best >= 5) return step6(m, p) <= m->p.reach;
    if (best == 2 && m->near == m->p.reach) return near_step3(m, p) <= m->near;
    const int is_near = (best == 2) & (near_step3(m, p) <= m->near);
    return ((int)may_match4(m, p) | is_near) != 0;
}

/* Searches for more than best bytes at p: as zlib walks; by chains of more bytes, and by a walk where that is no
 * longer. first: the first candidate's distance. 0: none. */
uint32_t tsr_deflate_search_by_walk(struct deflate_model *model, uint32_t p, uint32_t best);
uint32_t tsr_deflate_search_rich(struct deflate_model *model, uint32_t p, uint32_t best, uint32_t first);

/* The match at p of more than best bytes; 0: none. */
static inline uint32_t deflate_search(struct deflate_model *m, uint32_t p, uint32_t best)
{
    if (!m->is_rich || m->end - p < DEFLATE_TAIL) return tsr_deflate_search_by_walk(m, p, best);
    if (m->inserted <= p) tsr_deflate_fill(m, p);
    if (best >= DEFLATE_MOST || !has_candidate(m, p, best)) return 0;
    const uint32_t first = step3(m, p);
    return first > m->p.reach ? 0 : tsr_deflate_search_rich(m, p, best, first);
}

#endif
