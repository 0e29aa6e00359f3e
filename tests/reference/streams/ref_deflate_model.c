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
    for (size_t h = 0; h < 65536; h++) m->head[h] = REF_NO_POSITION;
}

void ref_start_model(struct ref_deflate_model *m, const uint8_t *plain, size_t size)
{
    m->x = plain;
    m->size = size;
    m->head = ref_alloc(65536, sizeof *m->head);
    m->chain = ref_alloc(65536, sizeof *m->chain);
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
        if (p == 0 && !(m->f.flags & 8)) continue;
        m->chain[i] = m->head[h];
        m->head[h] = (uint32_t)p;
    }
}

/* Inserts p, too. False: it was passed over. */
static bool insert_with(struct ref_deflate_model *m, uint64_t p)
{
    insert(m, p + 1);
    return m->end - p >= 3 && p < m->inserted && (p > 0 || m->f.flags & 8);
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

static struct ref_match search(struct ref_deflate_model *m, uint64_t p, uint32_t best)
{
    const struct ref_deflate_fields *f = &m->f;
    struct ref_match match = {0, 0};
    if (!insert_with(m, p)) return match;
    uint32_t most = least(258, m->end - p), limit = least(f->nice, most), looked = 0;
    uint32_t steps = best >= f->good ? f->chain / 4 : f->chain, q = m->chain[p % 65536];
    if (best >= most || q == REF_NO_POSITION || p - q > f->reach) return match;
    do {
        uint32_t length = equal_bytes(m->x + q, m->x + p, most);
        looked++;
        if (length > best) {
            best = length;
            match = (struct ref_match){length, (uint32_t)(p - q)};
            if (length >= limit) break;
        }
        q = m->chain[q % 65536];
    } while (looked < steps && q != REF_NO_POSITION && p - q < f->reach);
    bool dropped = (match.length <= 5 && f->flags & 1) || (match.length == 3 && match.distance > f->far);
    if (f->finder == REF_LAZY && dropped) match = (struct ref_match){0, 0};
    return match;
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
    if (m->f.finder != REF_GREEDY && m->f.finder != REF_LAZY) return token;
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
    if (m->f.finder == REF_GREEDY && m->f.lazy < 258 && (token.length > m->f.lazy || m->end - m->at < 3)) {
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

void ref_begin_piece(struct ref_deflate_model *m, uint64_t b)
{
    uint64_t lead = m->f.finder == REF_GREEDY ? 65536 : m->f.finder == REF_LAZY ? 512 : 0;
    forget(m);
    m->base = 0;
    m->carried = (struct ref_match){0, 0};
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
    if (!insert_with(m, m->at)) return 0;
    uint32_t q = m->chain[m->at % 65536];
    for (uint32_t step = 1; step <= 4096 && q != REF_NO_POSITION && m->at - q <= 32768; step++) {
        if (memcmp(m->x + q, m->x + m->at, length) == 0 && k-- == 0) return (uint32_t)(m->at - q);
        q = m->chain[q % 65536];
    }
    return 0;
}
