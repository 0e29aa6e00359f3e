/* The model of zlib's match finder. DEFLATE.md 2. */
#include "deflate_parts.h"

#include <string.h>

enum {
    MARGIN = 262,
    HOP_STEPS = 4096,
    /* Of a piece: bytes before it through which the model goes. */
    LAZY_LEAD = 1 << 9,
    GREEDY_LEAD = 1 << 16
};

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
    m->origin += m->size + 1;
    m->size = (uint32_t)size;
    m->at = m->end = m->inserted = m->deep_inserted = m->base = m->carried = 0;
    m->work = deflate_work(size);
    m->hash_shift = (m->p.hash_bits + 2u) / 3;
    m->hash_mask = (1u << m->p.hash_bits) - 1;
    if (m->origin > UINT32_MAX - m->size - 1) {
        memset(m->head, 0, sizeof m->head);
        memset(m->long_head, 0, sizeof m->long_head);
        memset(m->deep_head, 0, sizeof m->deep_head);
        m->origin = 0;
    }
    m->floor = m->origin;
}

void tsr_deflate_segment(struct deflate_model *m, uint32_t end)
{
    if (m->at > 0 && (m->p.flags & DEFLATE_FORGETS)) {
        m->floor = m->origin + m->at;
        m->inserted = m->deep_inserted = m->at;
    }
    m->end = end;
    if (deflate_length(m->carried) > end - m->at) m->carried = 0;
}

static uint32_t four(const uint8_t *bytes)
{
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static uint64_t eight(const uint8_t *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return value;
#else
    return __builtin_bswap64(value);
#endif
}

/* Puts a position into a head. Returns how far the one before is; 0: there is none within reach. */
static uint32_t link(const struct deflate_model *m, uint32_t *head, uint32_t position)
{
    const uint32_t now = m->origin + position + 1, before = *head;
    *head = now;
    return before > m->floor && now - before <= DEFLATE_WINDOW ? now - before : 0;
}

static void insert(struct deflate_model *m, uint32_t before)
{
    const uint8_t *const plain = m->plain;
    const uint32_t shift = m->hash_shift, mask = m->hash_mask;
    if (m->end < DEFLATE_LEAST) return;
    if (before > m->end - 2) before = m->end - 2;
    for (uint32_t i = m->inserted; i < before; i++) {
        const uint32_t hash = ((uint32_t)plain[i] << 2 * shift ^ (uint32_t)plain[i + 1] << shift ^ plain[i + 2]) & mask;
        const uint32_t step = link(m, &m->head[hash], i);
        m->chain[i % DEFLATE_RING] = (uint16_t)step;
        m->rank[i % DEFLATE_RING] = (uint16_t)(m->rank[(i - step) % DEFLATE_RING] + 1);
        if (i + DEFLATE_LONG > m->size) continue;
        const uint32_t long_hash = four(plain + i) * 0x9e3779b1u >> 16;
        m->long_chain[i % DEFLATE_RING] = (uint16_t)link(m, &m->long_head[long_hash], i);
    }
    if (before > m->inserted) m->inserted = before;
}

/* Puts the positions that are in the other chains into the deep one, and counts their places in the long one, when they
 * are asked for. Many at once take less time than one after the other, and noise hardly ever asks. */
static void insert_deep(struct deflate_model *m)
{
    const uint32_t end = m->size < DEFLATE_DEEP ? 0 : m->size - DEFLATE_DEEP + 1,
                   before = m->inserted < end ? m->inserted : end;
    uint32_t i = m->deep_inserted;
    if (before > DEFLATE_WINDOW && i < before - DEFLATE_WINDOW) i = before - DEFLATE_WINDOW; /* none sees others */
    for (; i < before; i++) {
        const uint32_t hash = (uint32_t)(eight(m->plain + i) * 0x9e3779b97f4a7c15u >> 48);
        const uint32_t before_it = i - m->long_chain[i % DEFLATE_RING];
        m->deep_chain[i % DEFLATE_RING] = (uint16_t)link(m, &m->deep_head[hash], i);
        m->long_rank[i % DEFLATE_RING] = (uint16_t)(m->long_rank[before_it % DEFLATE_RING] + 1);
    }
    m->deep_inserted = m->inserted;
}

/* The positions before this one that have not been inserted never are. */
static void skip_to(struct deflate_model *m, uint32_t at)
{
    insert_deep(m);
    m->inserted = m->deep_inserted = at;
}

static uint32_t common(const uint8_t *a, const uint8_t *b, uint32_t most)
{
    uint32_t n = 0;
    while (n + 8 <= most) {
        uint64_t x, y;
        memcpy(&x, a + n, 8);
        memcpy(&y, b + n, 8);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        if (x != y) return n + (uint32_t)__builtin_ctzll(x ^ y) / 8;
#else
        if (x != y) break;
#endif
        n += 8;
    }
    while (n < most && a[n] == b[n]) n++;
    return n;
}

/* Takes work down; false if there is none. */
static bool spend(struct deflate_model *m, uint32_t cost)
{
    const bool some = m->work > 0;
    m->work -= m->work < cost ? m->work : cost;
    return some;
}

/* What a search looks for. */
struct quest {
    uint32_t p, best;
    uint32_t first, lowest; /* the nearest candidate; how far back the others may stand */
    uint32_t most, nice, steps;
    uint32_t found; /* a match, or 0 */
};

/* Compares a candidate. Returns whether the search ends with it. */
static bool compare(struct deflate_model *m, struct quest *q, uint32_t candidate)
{
    const uint32_t length = common(m->plain + candidate, m->plain + q->p, q->most);
    spend(m, length / 8);
    if (length <= q->best) return false;
    const uint32_t nearer = (uint16_t)(m->rank[q->p % DEFLATE_RING] - m->rank[candidate % DEFLATE_RING] - 1);
    if (nearer > 0 && nearer >= q->steps) return true;
    q->best = length;
    q->found = deflate_match(length, q->p - candidate);
    return length >= q->nice || length == q->most;
}

/* The nearest match of three bytes. Returns whether the search ends there. */
static bool seek_short(struct deflate_model *m, struct quest *q)
{
    const uint8_t *const here = m->plain + q->p;
    uint32_t candidate = q->first;
    for (uint32_t visited = 1;; visited++) {
        const uint8_t *const there = m->plain + candidate;
        if (!spend(m, 1)) return true;
        if (there[2] == here[2] && there[1] == here[1] && there[0] == here[0]) return compare(m, q, candidate);
        const uint32_t step = m->chain[candidate % DEFLATE_RING];
        if (step == 0 || candidate < q->lowest + step || visited >= q->steps) return true;
        candidate -= step;
    }
}

/* Whether a chain goes on from a candidate to one that may be compared. *candidate moves there. */
static inline bool go_on(struct deflate_model *m, const struct quest *q, const uint16_t *chain, uint32_t *candidate)
{
    const uint32_t step = chain[*candidate % DEFLATE_RING];
    if (step == 0 || *candidate < step) return false;
    *candidate -= step;
    return (*candidate >= q->lowest || *candidate == q->first) && spend(m, 1);
}

/* How many steps of the long chain lead from a position to another one of that chain. */
static uint32_t long_steps(const struct deflate_model *m, uint32_t from, uint32_t to)
{
    return (uint16_t)(m->long_rank[from % DEFLATE_RING] - m->long_rank[to % DEFLATE_RING]);
}

/* Longer matches, which must share eight bytes. candidate: of those in the long chain, of which so many were visited,
 * the first one that does; or the place that is searched for. */
static void seek_deep(struct deflate_model *m, struct quest *q, uint32_t candidate, uint32_t visited)
{
    const uint8_t *const here = m->plain + q->p;
    const uint64_t begin = eight(here);
    uint32_t end = four(here + q->best - 3);
    insert_deep(m);
    while (go_on(m, q, m->deep_chain, &candidate)) {
        if (eight(m->plain + candidate) != begin) continue;
        if (visited > 0 && visited >= q->steps) return;
        visited++;
        if (four(m->plain + candidate + q->best - 3) != end) continue;
        const uint32_t steps = long_steps(m, q->p, candidate);
        if ((steps > 1 && steps > q->steps) || compare(m, q, candidate)) return;
        end = four(here + q->best - 3);
    }
}

/* Longer matches, which share four bytes; as soon as they must share eight, in the chain of those. */
static void seek_long(struct deflate_model *m, struct quest *q)
{
    const uint8_t *const here = m->plain + q->p;
    uint32_t candidate = q->p, visited = 0;
    for (; q->best < DEFLATE_DEEP - 1; visited++) {
        if ((visited > 0 && visited >= q->steps) || !go_on(m, q, m->long_chain, &candidate)) return;
        if (four(m->plain + candidate + q->best - 3) == four(here + q->best - 3) && compare(m, q, candidate)) return;
    }
    seek_deep(m, q, q->best < DEFLATE_DEEP ? q->p : candidate, visited);
}

/* The match at p of more than best bytes; 0: none. */
static uint32_t search(struct deflate_model *m, uint32_t p, uint32_t best)
{
    insert(m, p + 1);
    const uint32_t room = m->end - p, step = m->chain[p % DEFLATE_RING], reach = m->p.reach;
    if (room < DEFLATE_LEAST || p >= m->inserted || step == 0 || step > reach) return 0;
    const uint32_t lowest = m->p.flags & DEFLATE_FROM_FIRST ? 0 : 1;
    struct quest q = {.p = p,
                      .best = best,
                      .first = p - step,
                      .lowest = p >= reach && p - reach + 1 > lowest ? p - reach + 1 : lowest,
                      .most = room < DEFLATE_MOST ? room : DEFLATE_MOST,
                      .nice = m->p.nice < room ? m->p.nice : room,
                      .steps = best >= m->p.good ? m->p.chain >> 2 : m->p.chain};
    if (q.first < lowest || best >= q.most) return 0;
    if (best > 2 || !seek_short(m, &q)) seek_long(m, &q);
    const uint32_t length = deflate_length(q.found);
    if (m->p.finder == DEFLATE_LAZY && length <= 5 &&
        ((m->p.flags & DEFLATE_FILTERED) || (length == 3 && (q.found & 65535) > m->p.far)))
        return 0;
    return q.found;
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
        skip_to(m, m->at);
    } else if (m->p.finder == DEFLATE_GREEDY || m->p.finder == DEFLATE_LAZY) {
        insert(m, m->at);
    }
}

void tsr_deflate_jump(struct deflate_model *m, uint32_t at)
{
    m->at = at;
    m->carried = 0;
}

void tsr_deflate_lead(struct deflate_model *m, uint32_t at, uint32_t bytes)
{
    const uint32_t lead = m->p.finder == DEFLATE_GREEDY ? GREEDY_LEAD : m->p.finder == DEFLATE_LAZY ? LAZY_LEAD : 0;
    m->work = deflate_work(bytes);
    m->at = at > lead ? at - lead : 0;
    m->inserted = m->deep_inserted = m->at > DEFLATE_WINDOW ? m->at - DEFLATE_WINDOW : 0;
    m->end = m->size;
    while (m->at < at) {
        const uint32_t token = tsr_deflate_predict(m), length = token ? deflate_length(token) : 1;
        if (length > at - m->at)
            tsr_deflate_jump(m, at);
        else
            tsr_deflate_advance(m, token);
    }
    m->end = at;
}

/* The hop of a distance, or, if distance is 0, the distance of a hop, among matches of at least length. */
static uint32_t walk(struct deflate_model *m, uint32_t length, uint32_t distance, uint32_t hop)
{
    const uint32_t none = distance ? DEFLATE_NO_HOP : 0, p = m->at;
    const bool is_deep = length >= DEFLATE_DEEP;
    const uint16_t *const chain = is_deep ? m->deep_chain : length < DEFLATE_LONG ? m->chain : m->long_chain;
    if (m->p.finder != DEFLATE_GREEDY && m->p.finder != DEFLATE_LAZY) return none;
    insert(m, p + 1);
    if (p >= m->inserted || length > m->end - p) return none;
    if (is_deep) insert_deep(m);
    uint32_t candidate = p, hops = 0;
    for (uint32_t visited = 0; visited < HOP_STEPS; visited++) {
        const uint32_t step = chain[candidate % DEFLATE_RING];
        if (step == 0 || candidate < step || p - (candidate - step) > DEFLATE_WINDOW || !spend(m, 1)) return none;
        candidate -= step;
        const uint8_t *const there = m->plain + candidate, *const here = m->plain + p;
        if (there[length - 1] != here[length - 1] || common(there, here, length) != length) continue;
        if (is_deep && long_steps(m, p, candidate) > HOP_STEPS) return none;
        spend(m, length / 8);
        if (distance ? distance == p - candidate : hops == hop) return distance ? hops : p - candidate;
        hops++;
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
