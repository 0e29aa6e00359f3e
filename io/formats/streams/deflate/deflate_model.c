/* The model of zlib's match finder. FORMAT.md 4.9.3. */
#include "deflate_parts.h"

#include <string.h>

enum { MARGIN = 262, HOP_STEPS = 4096 };

static const struct {
    uint8_t finder;
    uint16_t good, lazy, nice, chain;
} levels[10] = {{DEFLATE_COPY, 0, 0, 0, 0},        {DEFLATE_GREEDY, 4, 4, 8, 4},    {DEFLATE_GREEDY, 4, 5, 16, 8},
                {DEFLATE_GREEDY, 4, 6, 32, 32},    {DEFLATE_LAZY, 4, 4, 16, 16},    {DEFLATE_LAZY, 8, 16, 32, 32},
                {DEFLATE_LAZY, 8, 16, 128, 128},   {DEFLATE_LAZY, 8, 32, 128, 256}, {DEFLATE_LAZY, 32, 128, 258, 1024},
                {DEFLATE_LAZY, 32, 258, 258, 4096}};

bool tsr_deflate_derive(struct deflate_parameters *p)
{
    if (p->level == DEFLATE_OTHER)
        return p->finder <= DEFLATE_RUNS && p->hash_bits >= 8 && p->hash_bits <= 16 && p->reach <= DEFLATE_WINDOW &&
               p->window >= 8 && p->window <= 15;
    if (p->level > 9 || p->strategy > STRATEGY_FIXED || p->memory < 1 || p->memory > 9 || p->window < 8 ||
        p->window > 15)
        return false;
    p->finder = levels[p->level].finder;
    if (p->finder != DEFLATE_COPY && p->strategy == STRATEGY_LITERALS) p->finder = DEFLATE_NONE;
    if (p->finder != DEFLATE_COPY && p->strategy == STRATEGY_RUNS) p->finder = DEFLATE_RUNS;
    p->flags &= DEFLATE_FORGETS;
    if (p->strategy == STRATEGY_FILTERED) p->flags |= DEFLATE_FILTERED;
    if (p->strategy == STRATEGY_FIXED) p->flags |= DEFLATE_ONLY_FIXED;
    p->hash_bits = (uint8_t)(p->memory + 7);
    p->reach = (1u << (p->window == 8 ? 9 : p->window)) - MARGIN;
    p->good = levels[p->level].good;
    p->lazy = levels[p->level].lazy;
    p->nice = levels[p->level].nice;
    p->chain = levels[p->level].chain;
    p->far = 4096;
    p->symbols = (1u << (p->memory + 6)) - 1;
    return true;
}

void tsr_deflate_begin(struct deflate_model *m, const struct deflate_parameters *parameters, const uint8_t *plain,
                       size_t size)
{
    m->p = *parameters;
    m->plain = plain ? plain : (const uint8_t *)""; /* no bytes may stand nowhere */
    m->size = (uint32_t)size;
    m->at = m->end = m->inserted = m->base = m->carried = 0;
    m->work = (uint64_t)DEFLATE_WORK * (size + 4096);
    m->hash_shift = (m->p.hash_bits + 2u) / 3;
    m->hash_mask = (1u << m->p.hash_bits) - 1;
    memset(m->head, 0, sizeof m->head);
    memset(m->chain, 0, sizeof m->chain);
}

void tsr_deflate_segment(struct deflate_model *m, uint32_t end)
{
    if (m->at > 0 && (m->p.flags & DEFLATE_FORGETS)) {
        memset(m->head, 0, sizeof m->head);
        m->inserted = m->at;
    }
    m->end = end;
}

static void insert(struct deflate_model *m, uint32_t before)
{
    const uint8_t *plain = m->plain;
    const uint32_t shift = m->hash_shift, mask = m->hash_mask;
    if (m->end < DEFLATE_LEAST) return;
    if (before > m->end - 2) before = m->end - 2;
    for (uint32_t i = m->inserted; i < before; i++) {
        const uint32_t hash = ((uint32_t)plain[i] << 2 * shift ^ (uint32_t)plain[i + 1] << shift ^ plain[i + 2]) & mask;
        m->chain[i % DEFLATE_RING] = m->head[hash];
        m->head[hash] = i + 1;
    }
    if (before > m->inserted) m->inserted = before;
}

static uint32_t common(const uint8_t *a, const uint8_t *b, uint32_t most)
{
    uint32_t n = 0;
    while (n + 8 <= most) {
        uint64_t x, y;
        memcpy(&x, a + n, 8);
        memcpy(&y, b + n, 8);
        if (x != y) break;
        n += 8;
    }
    while (n < most && a[n] == b[n]) n++;
    return n;
}

/* The longest match at p of more than best bytes, from the candidate on. 0: none. */
static uint32_t longest(struct deflate_model *m, uint32_t p, uint32_t candidate, uint32_t best)
{
    const uint8_t *plain = m->plain, *here = plain + p;
    const uint32_t room = m->end - p, most = room < DEFLATE_MOST ? room : DEFLATE_MOST;
    const uint32_t nice = m->p.nice < room ? m->p.nice : room;
    const uint32_t least = p >= m->p.reach ? p - m->p.reach + 2 : m->p.flags & DEFLATE_FROM_FIRST ? 1 : 2;
    uint32_t chain = best >= m->p.good ? m->p.chain >> 2 : m->p.chain, found = 0;
    uint64_t work = m->work;
    if (best >= most) return 0;
    do {
        const uint8_t *there = plain + candidate - 1;
        work -= work > 0;
        if (there[best] == here[best] && there[best - 1] == here[best - 1]) {
            const uint32_t length = common(there, here, most);
            work -= work < length / 8 ? work : length / 8;
            if (length > best) {
                best = length;
                found = deflate_match(length, p + 1 - candidate);
                if (length >= nice || length == most) break;
            }
        }
        candidate = m->chain[(candidate - 1) % DEFLATE_RING];
    } while (candidate >= least && chain-- > 1 && work > 0);
    m->work = work;
    return found;
}

/* The match at p of more than best bytes; 0: none. */
static uint32_t search(struct deflate_model *m, uint32_t p, uint32_t best)
{
    insert(m, p + 1);
    if (m->end - p < DEFLATE_LEAST || p >= m->inserted) return 0;
    const uint32_t candidate = m->chain[p % DEFLATE_RING], first = m->p.flags & DEFLATE_FROM_FIRST ? 1 : 2;
    if (candidate < first || p + 1 - candidate > m->p.reach) return 0;
    const uint32_t found = longest(m, p, candidate, best), length = deflate_length(found);
    if (m->p.finder == DEFLATE_LAZY && length <= 5 &&
        ((m->p.flags & DEFLATE_FILTERED) || (length == 3 && (found & 65535) > m->p.far)))
        return 0;
    return found;
}

static uint32_t run(const struct deflate_model *m)
{
    const uint32_t p = m->at, room = m->end - p;
    if (p == 0 || room < DEFLATE_LEAST) return 0;
    const uint32_t length = common(m->plain + p - 1, m->plain + p, room < DEFLATE_MOST ? room : DEFLATE_MOST);
    return length < DEFLATE_LEAST ? 0 : deflate_match(length, 1);
}

uint32_t tsr_deflate_predict(struct deflate_model *m)
{
    if (m->p.finder == DEFLATE_RUNS) return run(m);
    if ((m->p.finder != DEFLATE_GREEDY && m->p.finder != DEFLATE_LAZY) || m->work == 0) return 0;
    if (m->p.finder == DEFLATE_GREEDY) return search(m, m->at, 2);
    const uint32_t match = m->carried ? m->carried : search(m, m->at, 2), length = deflate_length(match);
    m->carried = 0;
    if (length == 0 || length >= m->p.lazy) return match;
    const uint32_t next = search(m, m->at + 1, length);
    if (next == 0) return match;
    m->carried = next;
    return 0;
}

void tsr_deflate_advance(struct deflate_model *m, uint32_t token)
{
    const uint32_t length = deflate_length(token), window = 1u << (m->p.window == 8 ? 9 : m->p.window);
    const uint32_t seen = m->at + (m->p.finder == DEFLATE_LAZY); /* zlib's position when it writes the token */
    while (seen - m->base > 2 * window - MARGIN && m->size - m->base > 2 * window) m->base += window;
    if (length == 0) {
        m->at++;
        return;
    }
    m->at += length;
    m->carried = 0;
    if (m->p.finder == DEFLATE_GREEDY && (length > m->p.lazy || m->end - m->at < DEFLATE_LEAST)) {
        insert(m, m->at - length + 1);
        m->inserted = m->at;
    } else if (m->p.finder == DEFLATE_GREEDY || m->p.finder == DEFLATE_LAZY) {
        insert(m, m->at);
    }
}

void tsr_deflate_jump(struct deflate_model *m, uint32_t at)
{
    m->at = at;
    m->carried = 0;
}

/* The hop of a distance, or, if distance is 0, the distance of a hop, among matches of at least length. */
static uint32_t walk(struct deflate_model *m, uint32_t length, uint32_t distance, uint32_t hop)
{
    const uint32_t none = distance ? DEFLATE_NO_HOP : 0, p = m->at;
    if (m->p.finder != DEFLATE_GREEDY && m->p.finder != DEFLATE_LAZY) return none;
    insert(m, p + 1);
    if (p >= m->inserted || m->work == 0) return none;
    uint32_t candidate = m->chain[p % DEFLATE_RING], hops = 0;
    for (uint32_t step = 0; candidate > 0 && p + 1 - candidate <= DEFLATE_WINDOW && step < HOP_STEPS; step++) {
        const uint8_t *there = m->plain + candidate - 1, *here = m->plain + p;
        m->work -= m->work > 0;
        if (there[length - 1] == here[length - 1] && common(there, here, length) == length) {
            m->work -= m->work < length / 8 ? m->work : length / 8;
            if (distance == p + 1 - candidate) return hops;
            if (distance == 0 && hops == hop) return p + 1 - candidate;
            hops++;
        }
        if (m->work == 0) return none;
        candidate = m->chain[(candidate - 1) % DEFLATE_RING];
    }
    return none;
}

uint32_t tsr_deflate_hop(struct deflate_model *m, uint32_t token)
{
    return walk(m, deflate_length(token), token & 65535, 0);
}

uint32_t tsr_deflate_unhop(struct deflate_model *m, uint32_t length, uint32_t hop)
{
    return walk(m, length, 0, hop);
}
