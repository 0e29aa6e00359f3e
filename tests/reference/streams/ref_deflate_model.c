/* DEFLATE.md 1 and 2: the model of zlib's encoder. */
#include "ref_deflate.h"

#include <string.h>

/* ---- DEFLATE.md 1 ---- */

static const uint16_t by_level[10][5] = {
    {4, 0, 0, 0, 0},    {1, 4, 4, 8, 4},      {1, 4, 5, 16, 8},     {1, 4, 6, 32, 32},       {2, 4, 4, 16, 16},
    {2, 8, 16, 32, 32}, {2, 8, 16, 128, 128}, {2, 8, 32, 128, 256}, {2, 32, 128, 258, 1024}, {2, 32, 258, 258, 4096}};

static uint32_t field(struct ref_bytes *b, uint32_t least, uint32_t most)
{
    uint64_t value = ref_varint(b);
    if (value < least || value > most) b->bad = true;
    return b->bad ? least : (uint32_t)value;
}

static void read_fields(struct ref_bytes *b, struct ref_deflate_fields *f)
{
    f->finder = field(b, 0, 3);
    f->flags = field(b, 0, 255);
    f->hash_bits = field(b, 8, 16);
    f->reach = field(b, 0, 32768);
    f->good = field(b, 0, INT32_MAX);
    f->lazy = field(b, 0, INT32_MAX);
    f->nice = field(b, 0, INT32_MAX);
    f->chain = field(b, 0, INT32_MAX);
    f->far = field(b, 0, INT32_MAX);
    f->symbols = field(b, 0, INT32_MAX);
}

bool ref_read_deflate_fields(struct ref_bytes *b, struct ref_deflate_fields *f)
{
    memset(f, 0, sizeof *f);
    unsigned first = (unsigned)ref_number(b, 1), second = (unsigned)ref_number(b, 1);
    unsigned level = first & 15, strategy = first >> 4 & 7, memory = second & 15, window = (second >> 4 & 7) + 8;
    f->n = window == 8 ? 512 : 1u << window;
    if (second >> 7) f->padding = field(b, 0, 127);
    if (level == 15) {
        read_fields(b, f);
    } else if (level > 9 || strategy > 4 || memory < 1 || memory > 9) {
        b->bad = true;
    } else {
        const uint16_t *row = by_level[level];
        f->finder = level > 0 && strategy == 2 ? REF_LITERALS : level > 0 && strategy == 3 ? REF_RUNS : row[0];
        f->flags = (strategy == 1 ? 1 : 0) | (strategy == 4 ? 2 : 0) | (first >> 7 ? 4 : 0);
        f->hash_bits = memory + 7;
        f->reach = f->n - 262;
        f->good = row[1];
        f->lazy = row[2];
        f->nice = row[3];
        f->chain = row[4];
        f->far = 4096;
        f->symbols = (1u << (memory + 6)) - 1;
    }
    return !b->bad || ref_fail("the parameters of a deflate stream are corrupt");
}

/* ---- DEFLATE.md 2 ---- */

static void forget(struct ref_deflate_model *m)
{
    for (size_t h = 0; h < 65536; h++) m->head[h] = m->long_head[h] = m->deep_head[h] = REF_NO_POSITION;
}

void ref_start_model(struct ref_deflate_model *m, const uint8_t *plain, size_t size)
{
    m->x = plain;
    m->size = size;
    m->work = 64 * ((uint64_t)size + (1 << 17));
    m->head = ref_alloc(65536, sizeof *m->head);
    m->long_head = ref_alloc(65536, sizeof *m->long_head);
    m->chain = ref_alloc(65536, sizeof *m->chain);
    m->long_chain = ref_alloc(65536, sizeof *m->long_chain);
    m->deep_head = ref_alloc(65536, sizeof *m->deep_head);
    m->deep_chain = ref_alloc(65536, sizeof *m->deep_chain);
    m->place = ref_alloc(65536, sizeof *m->place);
    m->long_place = ref_alloc(65536, sizeof *m->long_place);
    forget(m);
}

void ref_begin_segment(struct ref_deflate_model *m, uint64_t end)
{
    m->end = end;
    if (m->carried.length > end - m->at) m->carried = (struct ref_match){0, 0};
    if (m->at == 0 || !(m->f.flags & 4)) return;
    forget(m);
    m->inserted = m->at;
}

static void insert(struct ref_deflate_model *m, uint64_t behind)
{
    unsigned s = (m->f.hash_bits + 2) / 3;
    for (; m->inserted < behind && m->inserted + 2 < m->end; m->inserted++) {
        uint64_t p = m->inserted, i = p % 65536;
        const uint8_t *x = m->x + p;
        uint32_t h = ((uint32_t)x[0] << 2 * s ^ (uint32_t)x[1] << s ^ x[2]) & ((1u << m->f.hash_bits) - 1);
        m->chain[i] = m->head[h];
        m->head[h] = (uint32_t)p;
        /* A position that is 65536 bytes back has lost its place, but is not within reach either. */
        m->place[i] = m->chain[i] == REF_NO_POSITION ? 0 : m->place[m->chain[i] % 65536] + 1;
        if (p + 3 >= m->size) continue;
        uint32_t four = x[0] + ((uint32_t)x[1] << 8) + ((uint32_t)x[2] << 16) + ((uint32_t)x[3] << 24);
        uint32_t g = (uint32_t)(four * UINT64_C(2654435761)) >> 16;
        m->long_chain[i] = m->long_head[g];
        m->long_head[g] = (uint32_t)p;
        m->long_place[i] = m->long_chain[i] == REF_NO_POSITION ? 0 : m->long_place[m->long_chain[i] % 65536] + 1;
        if (p + 7 >= m->size) continue;
        uint64_t eight = 0;
        for (int b = 0; b < 8; b++) eight |= (uint64_t)x[b] << 8 * b;
        uint32_t d = (uint32_t)(eight * UINT64_C(11400714819323198485) >> 48);
        m->deep_chain[i] = m->deep_head[d];
        m->deep_head[d] = (uint32_t)p;
    }
}

/* False if there is no work left. */
static bool pay(struct ref_deflate_model *m, uint64_t cost)
{
    bool some = m->work > 0;
    m->work -= cost < m->work ? cost : m->work;
    return some;
}

static uint32_t equal_bytes(const uint8_t *a, const uint8_t *b, uint32_t most)
{
    uint32_t count = 0;
    while (count < most && a[count] == b[count]) count++;
    return count;
}

static uint32_t least(uint64_t a, uint64_t b)
{
    return (uint32_t)(a < b ? a : b);
}

struct ref_search {
    uint64_t p;
    uint32_t first, most, limit, steps, best;
    struct ref_match match;
};

static bool is_near(const struct ref_deflate_model *m, const struct ref_search *s, uint32_t q)
{
    return q != REF_NO_POSITION && s->p - q < m->f.reach && (q > 0 || m->f.flags & 8);
}

/* True: the search ends. */
static bool compare(struct ref_deflate_model *m, struct ref_search *s, uint32_t q)
{
    uint32_t length = equal_bytes(m->x + q, m->x + s->p, s->most);
    pay(m, length / 8);
    if (length <= s->best) return false;
    uint32_t k = m->place[s->p % 65536] - m->place[q % 65536] - 1;
    if (k > 0 && k >= s->steps) return true;
    s->best = length;
    s->match = (struct ref_match){length, (uint32_t)(s->p - q)};
    return length >= s->limit || length == s->most;
}

/* Step 4. True: the search ends. */
static bool search_short(struct ref_deflate_model *m, struct ref_search *s)
{
    uint32_t q = s->first;
    for (uint32_t done = 1;; done++) {
        if (!pay(m, 1)) return true;
        if (equal_bytes(m->x + q, m->x + s->p, 3) == 3) return compare(m, s, q);
        q = m->chain[q % 65536];
        if (!is_near(m, s, q) || done >= s->steps) return true;
    }
}

static bool has_four(const struct ref_deflate_model *m, const struct ref_search *s, uint32_t q)
{
    return equal_bytes(m->x + q + s->best - 3, m->x + s->p + s->best - 3, 4) == 4;
}

/* Step 6. */
static void search_deep(struct ref_deflate_model *m, struct ref_search *s, uint32_t from, uint32_t n)
{
    for (uint32_t q = m->deep_chain[from % 65536];; q = m->deep_chain[q % 65536]) {
        if (q == REF_NO_POSITION || (!is_near(m, s, q) && q != s->first) || !pay(m, 1)) return;
        if (equal_bytes(m->x + q, m->x + s->p, 8) < 8) continue;
        if (n > 0 && n >= s->steps) return;
        n++;
        if (!has_four(m, s, q)) continue;
        uint32_t k = m->long_place[s->p % 65536] - m->long_place[q % 65536] - 1;
        if ((k > 0 && k >= s->steps) || compare(m, s, q)) return;
    }
}

/* Step 5. */
static void search_long(struct ref_deflate_model *m, struct ref_search *s)
{
    uint32_t q = m->long_chain[s->p % 65536], compared = (uint32_t)s->p, n = 0;
    for (; s->best < 7; n++, q = m->long_chain[q % 65536]) {
        if (n > 0 && n >= s->steps) return;
        if (q == REF_NO_POSITION || (!is_near(m, s, q) && q != s->first) || !pay(m, 1)) return;
        if (!has_four(m, s, q)) continue;
        if (compare(m, s, q)) return;
        if (s->best > 7) compared = q;
    }
    search_deep(m, s, compared, n);
}

static struct ref_match search(struct ref_deflate_model *m, uint64_t p, uint32_t best)
{
    struct ref_search s = {.p = p, .best = best};
    const struct ref_deflate_fields *f = &m->f;
    insert(m, p + 1);
    if (m->end - p < 3 || p >= m->inserted) return s.match;
    s.first = m->chain[p % 65536];
    if (s.first == REF_NO_POSITION || (s.first == 0 && !(f->flags & 8)) || p - s.first > f->reach) return s.match;
    s.most = least(258, m->end - p);
    s.limit = least(f->nice, m->end - p);
    if (best >= s.most) return s.match;
    s.steps = best >= f->good ? f->chain / 4 : f->chain;
    if (best > 2 || !search_short(m, &s)) search_long(m, &s);
    bool dropped = (s.match.length <= 5 && f->flags & 1) || (s.match.length == 3 && s.match.distance > f->far);
    if (f->finder == REF_LAZY && dropped) s.match = (struct ref_match){0, 0};
    return s.match;
}

static struct ref_match predict_lazy(struct ref_deflate_model *m)
{
    struct ref_match literal = {0, 0}, first = m->carried.length ? m->carried : search(m, m->at, 2);
    m->carried = literal;
    if (first.length == 0 || first.length >= m->f.lazy) return first;
    struct ref_match second = search(m, m->at + 1, first.length);
    if (second.length == 0) return first;
    m->carried = second;
    return literal;
}

struct ref_match ref_predict(struct ref_deflate_model *m)
{
    struct ref_match token = {0, 0};
    if (m->f.finder == REF_RUNS) {
        if (m->at == 0) return token;
        uint32_t length = equal_bytes(m->x + m->at, m->x + m->at - 1, least(258, m->end - m->at));
        if (length >= 3) token = (struct ref_match){length, 1};
        return token;
    }
    if ((m->f.finder != REF_GREEDY && m->f.finder != REF_LAZY) || m->work == 0) return token;
    return m->f.finder == REF_GREEDY ? search(m, m->at, 2) : predict_lazy(m);
}

void ref_advance(struct ref_deflate_model *m, struct ref_match token)
{
    uint64_t d = m->f.finder == REF_LAZY, n = m->f.n;
    while (m->at + d - m->base + 262 > 2 * n && m->size - m->base > 2 * n) m->base += n;
    if (token.length == 0) {
        m->at++;
        return;
    }
    m->at += token.length;
    m->carried = (struct ref_match){0, 0};
    if (m->f.finder == REF_GREEDY && (token.length > m->f.lazy || m->end - m->at < 3)) {
        insert(m, m->at - token.length + 1);
        m->inserted = m->at;
    } else if (m->f.finder == REF_GREEDY || m->f.finder == REF_LAZY) {
        insert(m, m->at);
    }
}

void ref_jump(struct ref_deflate_model *m, uint64_t at)
{
    m->at = at;
    m->carried = (struct ref_match){0, 0};
}

void ref_begin_piece(struct ref_deflate_model *m, uint64_t b, uint64_t bytes)
{
    uint64_t lead = m->f.finder == REF_GREEDY ? 65536 : m->f.finder == REF_LAZY ? 512 : 0;
    forget(m);
    m->base = 0;
    m->carried = (struct ref_match){0, 0};
    m->work = 64 * (bytes + (1 << 17));
    m->at = b > lead ? b - lead : 0;
    m->inserted = m->at > 32768 ? m->at - 32768 : 0;
    m->end = m->size;
    while (m->at < b) {
        struct ref_match token = ref_predict(m);
        if (m->at + (token.length > 0 ? token.length : 1) > b)
            ref_jump(m, b);
        else
            ref_advance(m, token);
    }
    m->end = b;
}

uint32_t ref_hop(struct ref_deflate_model *m, uint64_t k, uint32_t length)
{
    if (m->f.finder != REF_GREEDY && m->f.finder != REF_LAZY) return 0;
    insert(m, m->at + 1);
    if (m->at >= m->inserted) return 0;
    const uint32_t *chain = length > 7 ? m->deep_chain : length > 3 ? m->long_chain : m->chain;
    uint32_t q = chain[m->at % 65536];
    for (int step = 0; step < 4096 && q != REF_NO_POSITION && m->at - q <= 32768; step++) {
        if (!pay(m, 1)) return 0;
        if (memcmp(m->x + q, m->x + m->at, length) == 0) {
            if (length > 3 && m->long_place[m->at % 65536] - m->long_place[q % 65536] > 4096) return 0;
            pay(m, length / 8);
            if (k-- == 0) return (uint32_t)(m->at - q);
        }
        q = chain[q % 65536];
    }
    return 0;
}
