/* The match finder of the model: zlib's matches, mostly without a walk through zlib's chain. DEFLATE.md 2.
 *
 * Where every position is inserted, chains depend on the plain bytes alone, and are made ahead of the search. A
 * position has its ordinal in the chain of its hash, so that a difference of two ordinals tells how many positions a
 * walk takes to get from one to the other. A match of k bytes stands in the chain of positions that share k bytes, the
 * nearest first: the first one there is the one that a walk finds, if its ordinal is near enough. A longer match than
 * one of eight bytes or more is also in the chain of eight bytes of each place within it: the chain with the farthest
 * step is taken.
 *
 * Chains of other bytes than zlib's three have better hashes. In that of three bytes, the first place is nearly always
 * a match. Where only matches of six bytes count, most places in the chain of six are none, which is seen when a
 * position is inserted: such positions are literals without a search. The chain of eight bytes is made where long
 * matches have cost many looks into that of six.
 *
 * Easy bytes are walked through faster than five chains are made. So there are two ways, which find the same. */
#include <string.h>

#include "deflate_chains.h"

enum {
    DEEP_LOOKS = 1 << 12 /* places looked at for long matches, after which the deep chain is made */
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

/* Takes a match of four bytes or more, which is longer. other: the eight bytes of both, one xor the other. */
static inline enum brought take(struct quest *q, uint32_t distance, uint64_t other)
{
    q->best = other ? (uint32_t)__builtin_ctzll(other) / 8
                    : 8 + tsr_deflate_common(q->here + 8 - distance, q->here + 8, DEFLATE_MOST - 8);
    q->looks += q->best / 8;
    q->found = deflate_match(q->best, distance);
    return q->best >= q->limit ? ENOUGH : LONGER;
}

/* The nearest match of more than best bytes, which are so many or more, in the chain of those, from a distance on. */
static inline enum brought seek(const struct deflate_model *m, struct quest *q, uint32_t bytes, uint32_t distance)
{
    const uint64_t begin = eight(q->here);
    const uint32_t wanted = q->best + 1 > bytes ? q->best + 1 : bytes, shift = 64 - 8 * wanted;
    for (uint32_t at; distance <= q->reach; distance += bytes == 4 ? step4(m, at) : step6(m, at)) {
        const uint64_t other = begin ^ eight(q->here - distance);
        at = q->p - distance;
        if (other << shift == 0) {
            if (steps_to(m, q->p, distance) > q->steps) return NOTHING;
            return take(q, distance, other);
        }
        if (++q->looks >= q->steps) return TOO_LONG;
    }
    return NOTHING;
}

/* The nearest match of three bytes or more. If it has four, no other one of four is nearer; else they are sought. */
static inline enum brought seek_three(const struct deflate_model *m, struct quest *q)
{
    const uint64_t begin = eight(q->here);
    for (uint32_t distance = near_step3(m, q->p); distance <= q->reach; distance += near_step3(m, q->p - distance)) {
        const uint64_t other = begin ^ eight(q->here - distance);
        if (other << 40 == 0) {
            if (steps_to(m, q->p, distance) > q->steps) return NOTHING;
            if (other << 32 == 0) return take(q, distance, other);
            const enum brought brought = seek(m, q, 4, step4(m, q->p));
            if (brought == NOTHING) q->found = deflate_match(DEFLATE_LEAST, distance);
            return brought;
        }
        if (++q->looks >= q->steps) return TOO_LONG;
    }
    return NOTHING;
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

/* Longer matches, where best is eight or more, by the chain of six bytes. False: a walk is shorter. */
static bool seek_long(struct deflate_model *m, struct quest *q)
{
    const uint8_t *const here = q->here;
    uint32_t distance = q->found & 65535, end = four(here + q->best - 3), looked = 0;
    distance += step6(m, q->p - distance);
    for (; distance <= q->reach; distance += step6(m, q->p - distance)) {
        if (four(here - distance + q->best - 3) == end) {
            const uint32_t before = q->best, found = q->found;
            const bool ends = compare(q, distance);
            if (q->best > before) {
                if (steps_to(m, q->p, distance) > q->steps) q->found = found;
                if (ends || q->found == found) break;
                end = four(here + q->best - 3);
                continue;
            }
        }
        q->looks++;
        if (++looked >= q->steps) break;
    }
    m->deep_looks += looked;
    return looked < q->steps;
}

/* The same by chains of eight bytes. */
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
static inline bool seek_rich(struct deflate_model *m, struct quest *q)
{
    enum brought brought = LONGER;
    if (q->best == 2) brought = seek_three(m, q);
    while (brought == LONGER && q->best < 5) {
        const uint32_t distance = q->found & 65535;
        brought = seek(m, q, 4, distance + step4(m, q->p - distance));
    }
    while (brought == LONGER && q->best < DEFLATE_DEEP) {
        const uint32_t distance = q->best > 5 ? q->found & 65535 : 0;
        brought = seek(m, q, 6, distance + step6(m, q->p - distance));
    }
    if (brought == LONGER) return m->is_deep ? seek_deep(m, q) : seek_long(m, q);
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

/* What the search has found, if a token is made of it. */
static inline uint32_t used(const struct deflate_model *m, uint32_t found)
{
    const uint32_t length = deflate_length(found), distance = found & 65535;
    if (m->p.finder != DEFLATE_LAZY) return found;
    if (m->is_filtered) return length <= 5 ? 0 : found;
    return length == DEFLATE_LEAST && distance > m->p.far ? 0 : found;
}

uint32_t tsr_deflate_search_rich(struct deflate_model *m, uint32_t p, uint32_t best, uint32_t first)
{
    struct quest q = begin_quest(m, p, best, DEFLATE_MOST, first);
    if (!m->is_deep && m->deep_looks > DEEP_LOOKS + (p - m->deep_free)) tsr_deflate_begin_deep(m, p);
    if (m->is_deep) tsr_deflate_fill_deep(m, p);
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

/* Most bytes of noise have no match of three, which is seen first. */
uint32_t tsr_deflate_search_by_walk(struct deflate_model *m, uint32_t p, uint32_t best)
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

/* ---- Positions without a match ------------------------------------------------------------------------------- */

/* Of runs alone. */
static uint32_t without_runs(const struct deflate_model *m, uint32_t most)
{
    const uint8_t *x = m->plain + m->at + (m->at == 0);
    const uint8_t *const end = m->plain + m->at + most;
    while (x < end && ((x[-1] ^ x[0]) | (x[0] ^ x[1]) | (x[1] ^ x[2]))) x++;
    return x < end ? (uint32_t)(x - (m->plain + m->at)) : most;
}

/* The first places of zlib's chain, of a position: whether one of them is a match that may be used, or there are more
 * places. Of noise, both are rare. No branch tells it, and a place before the window counts as one in it. */
static inline bool may_match3(const struct deflate_model *m, uint32_t p, uint32_t step)
{
    enum { PLACES = 3, OTHER_3 = 40 };
    const uint8_t *const here = m->plain + p;
    const uint64_t begin = eight(here);
    const uint32_t shift = m->is_filtered ? 16 : 32, near = m->near;
    uint32_t distance = step;
    bool found = false;
    for (int i = 0; i < PLACES; i++) {
        const uint32_t back = distance < p ? distance : p;
        const uint64_t other = eight(here - back) ^ begin;
        found |= (other << shift == 0) | ((other << OTHER_3 == 0) & (back <= near));
        distance += step3(m, p - back);
    }
    return found | (distance <= m->p.reach);
}

/* The same where chains are made by what is passed: positions are inserted one by one. */
static uint32_t insert_unmatched(struct deflate_model *m, uint32_t most)
{
    const uint8_t *const plain = m->plain;
    const uint32_t at = m->at, factor = 1u << m->hash_shift, mask = m->hash_mask, slot = at % DEFLATE_RING,
                   left = EPOCH - at % EPOCH, room = DEFLATE_RING - slot, now = newest(at);
    if (at / EPOCH != m->epoch3 || m->inserted != at) tsr_deflate_insert(m, at + 1);
    if (m->inserted != at) return may_match3(m, at, step3(m, at)) ? 0 : 1;
    if (most > left) most = left;
    if (most > room) most = room;
    uint32_t hash = plain[at] * factor ^ plain[at + 1], n = 0;
    for (; n < most; n++) {
        hash = (hash * factor ^ plain[at + n + 2]) & mask;
        const uint32_t step = insert3(m, slot + n, now + n, hash);
        if (may_match3(m, at + n, step)) break;
    }
    m->inserted = at + (n < most ? n + 1 : n);
    return n;
}

static uint32_t without_match3(struct deflate_model *m, uint32_t most)
{
    uint32_t n = 0;
    if (!m->is_ahead) n = insert_unmatched(m, most);
    for (; m->is_ahead && n < most; n++) {
        if (m->inserted <= m->at + n) tsr_deflate_fill(m, m->at + n);
        if (may_match3(m, m->at + n, step3(m, m->at + n))) break;
    }
    m->looks += n;
    spend(m, n);
    return n;
}

uint32_t tsr_deflate_unmatched(struct deflate_model *m, uint32_t most)
{
    if (m->p.finder == DEFLATE_NONE || m->p.finder == DEFLATE_COPY) return most;
    const uint32_t left = m->end - m->at;
    if (left <= DEFLATE_TAIL || m->at < m->start) return 0;
    if (most > left - DEFLATE_TAIL) most = left - DEFLATE_TAIL;
    return m->p.finder == DEFLATE_RUNS ? without_runs(m, most) : without_match3(m, most);
}

uint32_t tsr_deflate_hopeless(const struct deflate_model *m, uint32_t most)
{
    const uint32_t end = m->end > DEFLATE_TAIL ? m->end - DEFLATE_TAIL : 0,
                   to = end < m->rich_inserted ? end : m->rich_inserted, slot = m->at % DEFLATE_RING,
                   room = DEFLATE_RING - slot;
    if (m->at >= to) return 0;
    if (most > to - m->at) most = to - m->at;
    if (most > room) most = room;
    const uint8_t *const hopes = m->hopes + slot;
    uint32_t n = 0;
    while (n + 8 <= most && eight(hopes + n) == 0) n += 8;
    while (n < most && hopes[n] == 0) n++;
    return n;
}
