/* The match finder of the model: zlib's matches, mostly without a walk through zlib's chain. DEFLATE.md 2.
 *
 * Where every position is inserted, chains depend on the plain bytes alone, and are made ahead of the search. A
 * position has its ordinal in the chain of its hash, so that a difference of two ordinals tells how many positions a
 * walk takes to get from one to the other. A match of k bytes stands in the chain of positions that share k bytes, the
 * nearest first: the first one there is the one that a walk finds, if its ordinal is near enough. A longer match than
 * one of eight bytes or more is also in the chain of eight bytes of each place within it: the chain with the farthest
 * step is taken.
 *
 * Easy bytes are walked through faster than five chains are made. So there are two ways, which find the same. */
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "deflate_chains.h"

enum {
    EPOCH = 1 << 14,          /* positions between two slides of the heads */
    NEWEST = 3 * EPOCH,       /* a head holds NEWEST + position % EPOCH; 0: none. That is beyond the window */
    BATCH = 1 << 8,           /* positions that are inserted at once */
    AHEAD = DEFLATE_MOST + 2, /* positions up to here have their deep chain */
    TAIL = 300,               /* bytes at the end of a segment which are walked through */
    SECTION = 1 << 13,        /* bytes of which it is seen which way is faster */
    TRIAL = 1 << 11,          /* and of a trial of the other way */
    EASY = 4,                 /* positions looked at for a byte, up to which a walk is faster */
    HOLD = 1 << 15,           /* bytes before the first trial */
    HOLD_MOST = 1 << 19
};

uint32_t tsr_deflate_common(const uint8_t *a, const uint8_t *b, uint32_t most)
{
    uint32_t n = 0;
    for (; n + 8 <= most; n += 8) {
        const uint64_t other = eight(a + n) ^ eight(b + n);
        if (other) return n + (uint32_t)__builtin_ctzll(other) / 8;
    }
    while (n < most && a[n] == b[n]) n++;
    return n;
}

/* ---- Chains ------------------------------------------------------------------------------------------------- */

static inline uint32_t hash3(const struct deflate_model *m, uint32_t three_bytes)
{
    const uint32_t s = m->hash_shift;
    return ((three_bytes & 255) << 2 * s ^ (three_bytes >> 8 & 255) << s ^ (three_bytes >> 16 & 255)) & m->hash_mask;
}

/* Hashes of the first so many bytes of eight. */
static inline uint32_t hash_of(uint64_t bytes, uint32_t count)
{
    return (uint32_t)((bytes << (64 - 8 * count)) * 0x9e3779b97f4a7c15u >> 48);
}

static inline uint32_t newest(uint32_t at)
{
    return NEWEST + at % EPOCH;
}

static void slide(uint16_t *heads)
{
#if defined(__SSE2__)
    for (uint32_t i = 0; i < DEFLATE_HEADS; i += 8) {
        __m128i *const eight_heads = (__m128i *)(void *)(heads + i);
        _mm_storeu_si128(eight_heads, _mm_subs_epu16(_mm_loadu_si128(eight_heads), _mm_set1_epi16(EPOCH)));
    }
#else
    for (uint32_t i = 0; i < DEFLATE_HEADS; i++) heads[i] = (uint16_t)(heads[i] > EPOCH ? heads[i] - EPOCH : 0);
#endif
}

/* Slides the heads of three bytes to where a position is to be inserted. */
static void slide_heads(struct deflate_model *m, uint32_t at)
{
    for (uint32_t n = at / EPOCH - m->epoch3; n > 0; n--)
        for (uint32_t i = 0; i <= m->hash_mask; i++) {
            const uint32_t head = m->head3[i];
            m->head3[i] = (head & 65535) > EPOCH ? head - EPOCH : head & 0xffff0000;
        }
    m->epoch3 = at / EPOCH;
}

static void slide_rich(struct deflate_model *m, uint32_t at)
{
    if (at / EPOCH == m->epoch6) return;
    if (m->has_four) slide(m->head4);
    if (m->has_four) slide(m->head5);
    slide(m->head6);
    m->epoch6 = at / EPOCH;
}

/* Inserts a position, whose place in the rings is slot, into the chains of some bytes. now: newest of the position. */
static inline void insert3(struct deflate_model *m, uint32_t slot, uint32_t now, uint32_t hash)
{
    const uint32_t last = m->head3[hash], next = (last & 0xffff0000) + 0x10000;
    m->chain3[slot] = next | (uint16_t)(now - last);
    m->head3[hash] = next | now;
}

static inline void insert45(struct deflate_model *m, uint32_t slot, uint32_t now, uint64_t bytes)
{
    uint16_t *const h4 = &m->head4[hash_of(bytes, 4)], *const h5 = &m->head5[hash_of(bytes, 5)];
    m->chain45[slot] = (now - *h4) | (now - *h5) << 16;
    *h4 = *h5 = (uint16_t)now;
}

static inline void insert6(struct deflate_model *m, uint32_t slot, uint32_t now, uint64_t bytes)
{
    uint16_t *const head = &m->head6[hash_of(bytes, 6)];
    m->chain6[slot] = (uint16_t)(now - *head);
    *head = (uint16_t)now;
}

/* Chains into which positions are inserted. */
enum { OF_3 = 1, OF_45 = 2, OF_6 = 4 };

/* Positions that begin with the same eight bytes as the one before: all chains go back one. */
static inline uint32_t insert_run(struct deflate_model *m, uint32_t at, uint32_t to, uint64_t bytes, int chains)
{
    uint32_t *const head = &m->head3[hash3(m, (uint32_t)bytes)];
    uint32_t last = *head >> 16;
    do {
        last++;
        if (chains & OF_3) m->chain3[at % DEFLATE_RING] = last << 16 | 1;
        if (chains & OF_45) m->chain45[at % DEFLATE_RING] = 0x10001;
        if (chains & OF_6) m->chain6[at % DEFLATE_RING] = 1;
        at++;
    } while (at < to && eight(m->plain + at) == bytes);
    const uint32_t now = newest(at - 1);
    if (chains & OF_3) *head = last << 16 | now;
    if (chains & OF_45) m->head4[hash_of(bytes, 4)] = m->head5[hash_of(bytes, 5)] = (uint16_t)now;
    if (chains & OF_6) m->head6[hash_of(bytes, 6)] = (uint16_t)now;
    return at;
}

/* Inserts positions of one epoch, which have eight bytes. start: the first position of these chains. */
static inline void insert_some(struct deflate_model *m, uint32_t start, uint32_t at, uint32_t to, int chains)
{
    const uint8_t *const plain = m->plain;
    const uint32_t factor = 1u << m->hash_shift, mask = m->hash_mask;
    uint64_t before = at > start ? eight(plain + at - 1) : ~eight(plain + at);
    uint32_t hash = plain[at] * factor ^ plain[at + 1];  /* of three bytes: each is shifted out in the end */
    uint32_t slot = at % DEFLATE_RING, now = newest(at); /* they run on: neither the ring nor the epoch ends before */
    while (at < to) {
        const uint64_t bytes = eight(plain + at);
        if (bytes == before) {
            const uint32_t end = insert_run(m, at, to, bytes, chains);
            slot += end - at;
            now += end - at;
            at = end;
            hash = ((uint32_t)bytes >> 8 & 255) * factor ^ ((uint32_t)bytes >> 16 & 255);
            continue;
        }
        before = bytes;
        hash = (hash * factor ^ plain[at + 2]) & mask;
        if (chains & OF_3) insert3(m, slot, now, hash);
        if (chains & OF_45) insert45(m, slot, now, bytes);
        if (chains & OF_6) insert6(m, slot, now, bytes);
        at++;
        slot++;
        now++;
    }
}

/* Where a batch ends that begins at a position: in its epoch. */
static uint32_t batch_end(uint32_t at, uint32_t end)
{
    const uint32_t epoch_end = at - at % EPOCH + EPOCH, to = at + BATCH < end ? at + BATCH : end;
    return to < epoch_end ? to : epoch_end;
}

/* Positions up to here have so many bytes or more. */
static inline uint32_t last_with(const struct deflate_model *m, uint32_t bytes)
{
    return m->size < bytes ? 0 : m->size - bytes + 1;
}

void tsr_deflate_fill(struct deflate_model *m, uint32_t p)
{
    const uint32_t end3 = last_with(m, DEFLATE_LEAST), end8 = last_with(m, DEFLATE_DEEP);
    while (m->inserted <= p && m->inserted < end3) {
        const uint32_t at = m->inserted, to = batch_end(at, at < end8 ? end8 : end3);
        if (at / EPOCH != m->epoch3) slide_heads(m, at);
        if (at >= end8) {
            for (uint32_t i = at; i < to; i++) insert3(m, i % DEFLATE_RING, newest(i), hash3(m, three(m->plain + i)));
        } else if (m->is_rich) {
            slide_rich(m, at);
            if (m->has_four)
                insert_some(m, m->start, at, to, OF_3 | OF_45 | OF_6);
            else
                insert_some(m, m->start, at, to, OF_3 | OF_6);
            m->rich_inserted = to;
        } else {
            insert_some(m, m->start, at, to, OF_3);
        }
        m->inserted = to;
    }
}

static void fill_deep(struct deflate_model *m, uint32_t p)
{
    const uint32_t end = last_with(m, DEFLATE_DEEP);
    while (m->deep_inserted <= p + AHEAD && m->deep_inserted < end) {
        const uint32_t to = batch_end(m->deep_inserted, end);
        if (m->deep_inserted / EPOCH != m->epoch8) slide(m->head8);
        m->epoch8 = m->deep_inserted / EPOCH;
        const uint8_t *const plain = m->plain;
        const uint32_t first = m->deep_inserted % DEFLATE_RING, count = to - m->deep_inserted;
        uint16_t *const chain = m->chain8 + first, *const heads = m->head8;
        for (uint32_t i = 0, now = newest(m->deep_inserted); i < count; i++, now++) {
            uint16_t *const head = &heads[hash_of(eight(plain + m->deep_inserted + i), DEFLATE_DEEP)];
            chain[i] = (uint16_t)(now - *head);
            *head = (uint16_t)now;
        }
        for (uint32_t i = first; i < DEFLATE_MIRROR && i < first + count; i++)
            m->chain8[DEFLATE_RING + i] = m->chain8[i];
        m->deep_inserted = to;
    }
}

/* Makes the other chains of the positions that the window may hold. */
static void enrich(struct deflate_model *m)
{
    const uint32_t end8 = last_with(m, DEFLATE_DEEP), end = m->inserted < end8 ? m->inserted : end8;
    const uint32_t window = m->at > DEFLATE_WINDOW ? m->at - DEFLATE_WINDOW : 0,
                   first = window > m->start ? window : m->start;
    if (!m->has_rich || m->rich_inserted < first) {
        if (m->has_four) memset(m->head4, 0, sizeof m->head4);
        if (m->has_four) memset(m->head5, 0, sizeof m->head5);
        memset(m->head6, 0, sizeof m->head6);
        m->rich_inserted = m->rich_start = first;
        m->epoch6 = first / EPOCH;
    }
    if (!m->has_rich || m->deep_inserted < first) {
        memset(m->head8, 0, sizeof m->head8);
        m->deep_inserted = first;
        m->epoch8 = first / EPOCH;
    }
    m->has_rich = true;
    while (m->rich_inserted < end) {
        const uint32_t to = batch_end(m->rich_inserted, end);
        slide_rich(m, m->rich_inserted);
        if (m->has_four) insert_some(m, m->rich_start, m->rich_inserted, to, OF_45);
        insert_some(m, m->rich_start, m->rich_inserted, to, OF_6);
        m->rich_inserted = to;
    }
}

/* Takes the other way, if that may be faster: after some bytes, or too many positions looked at. */
void tsr_deflate_turn(struct deflate_model *m)
{
    const bool is_hard = m->looks > m->most_looks;
    uint32_t bytes = SECTION;
    if (m->is_rich) { /* a trial of the other way */
        m->is_rich = false;
        m->is_trial = true;
        bytes = TRIAL;
        m->most_looks = EASY * TRIAL / 2;
    } else if (is_hard && m->p.nice >= DEFLATE_DEEP) {
        if (!m->is_trial) m->hold = HOLD;
        if (m->is_trial && m->hold < HOLD_MOST) m->hold *= 2;
        bytes = m->hold;
        m->is_rich = true;
        m->is_trial = false;
        m->most_looks = UINT32_MAX;
        enrich(m);
    } else {
        m->is_trial = false;
        m->most_looks = EASY * SECTION;
    }
    m->looks = 0;
    m->turn = m->at + bytes;
}

void tsr_deflate_start(struct deflate_model *m, uint32_t at)
{
    const bool has_first = (m->p.flags & DEFLATE_FROM_FIRST) || at > 0;
    if (m->clear <= m->hash_mask) memset(m->head3, 0, sizeof *m->head3 * (m->hash_mask + 1));
    m->clear = 0;
    m->start = m->inserted = has_first ? at : 1;
    m->epoch3 = m->start / EPOCH;
    m->is_filtered = m->p.finder == DEFLATE_LAZY && (m->p.flags & DEFLATE_FILTERED);
    m->has_four = !m->is_filtered;
    m->least_best = m->is_filtered && m->p.nice > 5 ? 5 : 0; /* shorter ones are not used */
    m->reach_three = m->p.finder == DEFLATE_LAZY ? m->p.far : DEFLATE_WINDOW;
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t steps = i ? m->p.chain / 4 : m->p.chain;
        m->steps[i] = steps < 1 ? 1 : steps < DEFLATE_WINDOW ? steps : DEFLATE_WINDOW;
    }
    m->has_rich = m->is_rich = m->is_trial = false;
    m->looks = 0;
    m->most_looks = EASY * SECTION;
    m->turn = m->is_ahead ? m->start + SECTION : UINT32_MAX;
}

void tsr_deflate_clear(struct deflate_model *m)
{
    enum { FEW = 1 << 12 };
    if (m->inserted - m->start > FEW || m->clear > 0) return;
    for (uint32_t i = m->start; i < m->inserted && i + DEFLATE_LEAST <= m->size; i++)
        m->head3[hash3(m, three(m->plain + i))] = 0;
    m->clear = m->hash_mask + 1;
}

void tsr_deflate_insert(struct deflate_model *m, uint32_t before)
{
    if (m->end < DEFLATE_LEAST) return;
    if (before > m->end - 2) before = m->end - 2;
    for (; m->inserted < before; m->inserted++) {
        if (m->inserted / EPOCH != m->epoch3) slide_heads(m, m->inserted);
        insert3(m, m->inserted % DEFLATE_RING, newest(m->inserted), hash3(m, three(m->plain + m->inserted)));
    }
}

/* ---- Search ------------------------------------------------------------------------------------------------- */

/* What a search looks for. */
struct quest {
    const uint8_t *here;
    uint32_t p, best, found;     /* found: a match, or 0 */
    uint32_t most, limit, reach; /* most bytes; bytes that are enough; the largest distance */
    uint32_t steps;              /* positions that a walk looks at, at most */
    uint32_t looks;              /* positions looked at, and words compared */
};

/* Takes a candidate if it is longer. Returns whether the search ends with it. */
static inline bool compare(struct quest *q, uint32_t distance)
{
    const uint32_t length = tsr_deflate_common(q->here - distance, q->here, q->most);
    q->looks += length / 8;
    if (length <= q->best) return false;
    q->best = length;
    q->found = deflate_match(length, distance);
    return length >= q->limit;
}

/* As zlib does it, from a position on, with so many steps left. */
static void walk(const struct deflate_model *m, struct quest *q, uint32_t distance, uint32_t left)
{
    const uint8_t *const here = q->here;
    const uint32_t begin = three(here);
    for (; q->best == 2; left--, distance += step3(m, q->p - distance)) {
        if (left == 0 || distance > q->reach) return;
        q->looks++;
        if (three(here - distance) == begin && compare(q, distance)) return;
    }
    if (left == 0 || distance > q->reach) return; /* where best is not below most, nothing may be read at its end */
    for (uint32_t end = four(here + q->best - 3); left > 0 && distance <= q->reach; left--) {
        q->looks++;
        if (four(here - distance + q->best - 3) == end) {
            if (compare(q, distance)) return;
            end = four(here + q->best - 3);
        }
        distance += step3(m, q->p - distance);
    }
}

/* What a look into another chain brings: nothing; a longer match, or one that is enough; or a walk is shorter. */
enum brought { NOTHING, LONGER, ENOUGH, TOO_LONG };

/* The nearest match of more than best bytes, which are so many or more, in the chain of those, from a distance on. */
static inline enum brought seek(const struct deflate_model *m, struct quest *q, uint32_t bytes, uint32_t distance)
{
    const uint64_t begin = eight(q->here);
    const uint32_t wanted = q->best + 1 > bytes ? q->best + 1 : bytes, shift = 64 - 8 * wanted;
    for (uint32_t at; distance <= q->reach; distance += bytes == 4   ? step4(m, at)
                                                        : bytes == 5 ? step5(m, at)
                                                                     : step6(m, at)) {
        const uint64_t other = begin ^ eight(q->here - distance);
        at = q->p - distance;
        if (other << shift == 0) {
            if (steps_to(m, q->p, distance) > q->steps) return NOTHING;
            q->best = other ? (uint32_t)__builtin_ctzll(other) / 8
                            : 8 + tsr_deflate_common(q->here + 8 - distance, q->here + 8, DEFLATE_MOST - 8);
            q->looks += q->best / 8;
            q->found = deflate_match(q->best, distance);
            return q->best >= q->limit ? ENOUGH : LONGER;
        }
        if (++q->looks >= q->steps) return TOO_LONG;
    }
    return NOTHING;
}

/* The nearest match of three bytes, if there is none of four. */
static inline void seek_three(const struct deflate_model *m, struct quest *q)
{
    const uint32_t reach = m->reach_three < q->reach ? m->reach_three : q->reach;
    const uint64_t begin = eight(q->here);
    uint32_t distance = step3(m, q->p);
    for (uint32_t left = q->steps; left > 0 && distance <= reach; left--, q->looks++) {
        if ((begin ^ eight(q->here - distance)) << 40 == 0) {
            q->found = deflate_match(DEFLATE_LEAST, distance);
            return;
        }
        distance += step3(m, q->p - distance);
    }
}

/* The place after p, up to count bytes away, whose chain of eight bytes has the longest first step. */
static inline uint32_t find_rarest(const struct deflate_model *m, uint32_t p, uint32_t count, uint32_t *step)
{
    const uint16_t *const steps = m->chain8 + p % DEFLATE_RING;
    uint16_t most = 0;
    uint32_t at = 0;
    for (uint32_t i = 0; i <= count; i++) most = steps[i] > most ? steps[i] : most;
    while (steps[at] != most) at++;
    *step = most;
    return at;
}

/* Longer matches, where best is eight or more. False: a walk is shorter. */
static bool seek_deep(const struct deflate_model *m, struct quest *q)
{
    const uint8_t *const here = q->here;
    const uint32_t begin = four(here);
    uint32_t distance = q->found & 65535, end = four(here + q->best - 3), place = 0, first;
    uint32_t rarest = find_rarest(m, q->p, q->best - (DEFLATE_DEEP - 1), &first);
    distance += step8(m, q->p - distance);
    if (first > distance) {
        place = rarest;
        distance = first;
    }
    for (uint32_t looked = 0; distance <= q->reach;) {
        if (four(here - distance + q->best - 3) == end && four(here - distance) == begin) {
            const uint32_t before = q->best, found = q->found;
            const bool ends = compare(q, distance);
            if (q->best > before) {
                if (steps_to(m, q->p, distance) > q->steps) q->found = found;
                if (ends || q->found == found) return true;
                end = four(here + q->best - 3);
                rarest = find_rarest(m, q->p, q->best - (DEFLATE_DEEP - 1), &first);
                distance += step8(m, q->p + place - distance);
                if (first > distance) {
                    place = rarest;
                    distance = first;
                }
                continue;
            }
        }
        q->looks++;
        if (++looked >= q->steps) return false;
        if (looked % 16 == 0 && three(here - distance) == three(here) && steps_to(m, q->p, distance) >= q->steps)
            return true;
        distance += step8(m, q->p + place - distance);
    }
    return true;
}

/* By chains of more bytes. False: what was not found yet is found by a walk. */
static inline bool seek_rich(const struct deflate_model *m, struct quest *q)
{
    enum brought brought = LONGER;
    if (q->best < 4) {
        brought = seek(m, q, 4, step4(m, q->p));
        if (brought == NOTHING && q->best == 2) seek_three(m, q);
    }
    if (brought == LONGER && q->best == 4) brought = seek(m, q, 5, step5(m, q->p));
    while (brought == LONGER && q->best < DEFLATE_DEEP) {
        const uint32_t distance = q->best > 5 ? q->found & 65535 : 0;
        brought = seek(m, q, 6, distance + step6(m, q->p - distance));
    }
    if (brought == LONGER) return seek_deep(m, q);
    return brought != TOO_LONG;
}

/* What a search looks for at p, whose first candidate is so far away. */
static inline struct quest begin_quest(const struct deflate_model *m, uint32_t p, uint32_t best, uint32_t most,
                                       uint32_t first)
{
    const uint32_t far = first == m->p.reach ? first : m->p.reach - 1;
    return (struct quest){.here = m->plain + p,
                          .p = p,
                          .best = best < m->least_best && most > 5 ? m->least_best : best,
                          .most = most,
                          .limit = m->p.nice < most ? m->p.nice : most,
                          .reach = far < p - m->start ? far : p - m->start,
                          .steps = m->steps[best >= m->p.good]};
}

/* Whether the chain of longer matches has a candidate. That of three bytes counts, too, where it is asked. */
static inline bool has_candidate(const struct deflate_model *m, uint32_t p, uint32_t best)
{
    if (best >= 5 || m->is_filtered) return step6(m, p) <= m->p.reach;
    return best == 2 || (best == 3 ? step4(m, p) : step5(m, p)) <= m->p.reach;
}

/* What the search has found, if a token is made of it. */
static inline uint32_t used(const struct deflate_model *m, uint32_t found)
{
    const uint32_t length = deflate_length(found), distance = found & 65535;
    if (m->p.finder != DEFLATE_LAZY) return found;
    if (m->is_filtered) return length <= 5 ? 0 : found;
    return length == DEFLATE_LEAST && distance > m->p.far ? 0 : found;
}

/* By chains of more bytes, and by a walk where that is no longer. first: the first candidate's distance. */
static __attribute__((noinline)) uint32_t search_rich(struct deflate_model *m, uint32_t p, uint32_t best,
                                                      uint32_t first)
{
    struct quest q = begin_quest(m, p, best, DEFLATE_MOST, first);
    if (m->deep_inserted <= p + AHEAD) fill_deep(m, p);
    if (!seek_rich(m, &q)) {
        const uint32_t distance = q.found & 65535, passed = distance ? steps_to(m, p, distance) : 0;
        walk(m, &q, distance ? distance + step3(m, p - distance) : first, q.steps - passed);
    }
    spend(m, q.looks);
    return used(m, q.found);
}

/* Where every position is inserted by the search itself: up to p. */
static inline void insert_up_to(struct deflate_model *m, uint32_t p)
{
    if (m->inserted != p || p / EPOCH != m->epoch3) {
        tsr_deflate_insert(m, p + 1);
        return;
    }
    insert3(m, p % DEFLATE_RING, newest(p), hash3(m, three(m->plain + p)));
    m->inserted++;
}

/* As zlib does it. Most bytes of noise have no match of three, which is seen first. */
static __attribute__((noinline)) uint32_t search_by_walk(struct deflate_model *m, uint32_t p, uint32_t best)
{
    const uint32_t room = m->end - p, most = room < DEFLATE_MOST ? room : DEFLATE_MOST;
    if (room < DEFLATE_LEAST || best >= most || p < m->start) return 0;
    if (!m->is_ahead) insert_up_to(m, p);
    if (m->is_ahead && m->inserted <= p) tsr_deflate_fill(m, p);
    uint32_t distance = step3(m, p), left = m->steps[best >= m->p.good];
    if (distance > m->p.reach) return 0;
    const uint8_t *const here = m->plain + p;
    const uint32_t far = distance == m->p.reach ? distance : m->p.reach - 1,
                   reach = far < p - m->start ? far : p - m->start, begin = three(here), all = left;
    uint32_t looks = 0;
    struct quest q = {.found = 0};
    while (left > 0 && distance <= reach && three(here - distance) != begin) {
        left--;
        distance += step3(m, p - distance);
    }
    looks = all - left;
    if (left > 0 && distance <= reach) {
        q = begin_quest(m, p, best, most, distance);
        q.reach = reach;
        walk(m, &q, distance, left);
        looks += q.looks;
    }
    m->looks += looks;
    if (m->looks > m->most_looks && m->is_ahead) m->turn = 0;
    spend(m, looks);
    return used(m, q.found);
}

uint32_t tsr_deflate_search(struct deflate_model *m, uint32_t p, uint32_t best)
{
    if (!m->is_rich || m->end - p < TAIL) return search_by_walk(m, p, best);
    if (m->inserted <= p) tsr_deflate_fill(m, p);
    if (best >= DEFLATE_MOST || !has_candidate(m, p, best)) return 0;
    const uint32_t first = step3(m, p);
    return first > m->p.reach ? 0 : search_rich(m, p, best, first);
}
