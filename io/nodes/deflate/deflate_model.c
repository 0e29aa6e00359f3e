/* The model of zlib's match finder. DEFLATE.md 2. */
#include <string.h>

#include "deflate_chains.h"

enum {
    MARGIN = 262,
    /* Of a piece: bytes before it through which the model goes. */
    LAZY_LEAD = 1 << 9,
    GREEDY_LEAD = 1 << 16,
    LEAD_TOKENS = 1 << 10 /* at once */
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

/* Where the window is to slide again. */
static void find_slide(struct deflate_model *m)
{
    const uint32_t window = 1u << (m->p.window == 8 ? 9 : m->p.window);
    m->slide_at = m->size - m->base > 2 * window ? m->base + 2 * window - MARGIN : UINT32_MAX;
}

void tsr_deflate_begin(struct deflate_model *m, const struct deflate_parameters *parameters, const uint8_t *plain,
                       size_t size)
{
    m->p = *parameters;
    m->plain = plain ? plain : (const uint8_t *)""; /* no bytes may stand nowhere */
    m->size = (uint32_t)size;
    m->at = m->end = m->base = m->carried = 0;
    m->record = m->replay = NULL;
    m->work = deflate_work(size);
    m->hash_shift = (m->p.hash_bits + 2u) / 3;
    m->hash_mask = (1u << m->p.hash_bits) - 1;
    m->is_ahead = m->p.finder == DEFLATE_LAZY || (m->p.finder == DEFLATE_GREEDY && m->p.lazy >= DEFLATE_MOST);
    find_slide(m);
    tsr_deflate_start(m, 0);
}

void tsr_deflate_segment(struct deflate_model *m, uint32_t end)
{
    if (m->at > 0 && (m->p.flags & DEFLATE_FORGETS)) tsr_deflate_start(m, m->at);
    m->end = end;
    if (deflate_length(m->carried) > end - m->at) m->carried = 0;
}

static uint32_t run(const struct deflate_model *m)
{
    const uint32_t p = m->at, room = m->end - p;
    if (p == 0 || room < DEFLATE_LEAST) return 0;
    const uint32_t length =
        tsr_deflate_common(m->plain + p - 1, m->plain + p, room < DEFLATE_MOST ? room : DEFLATE_MOST);
    return length < DEFLATE_LEAST ? 0 : deflate_match(length, 1);
}

/* What the lazy finder makes of a match at the next position. */
static inline uint32_t choose_lazily(struct deflate_model *m, uint32_t match)
{
    const uint32_t length = deflate_length(match);
    m->carried = 0;
    if (length == 0 || length >= m->p.lazy) return match;
    const uint32_t next = deflate_search(m, m->at + 1, length);
    if (next == 0) return match;
    m->carried = next;
    return 0;
}

static inline uint32_t predict(struct deflate_model *m)
{
    if (m->at >= m->turn) tsr_deflate_turn(m);
    if (m->p.finder == DEFLATE_LAZY) return choose_lazily(m, m->carried ? m->carried : deflate_search(m, m->at, 2));
    if (m->p.finder == DEFLATE_GREEDY) return deflate_search(m, m->at, 2);
    return m->p.finder == DEFLATE_RUNS ? run(m) : 0;
}

uint32_t tsr_deflate_predict(struct deflate_model *m)
{
    uint32_t token;
    if (m->replay && tsr_deflate_replay(m, &token)) return token;
    token = predict(m);
    if (m->record) tsr_deflate_note(m, token);
    return token;
}

/* zlib's window slides where zlib is beyond a position when it writes a token. */
static inline void slide_window(struct deflate_model *m)
{
    const uint32_t seen = m->at + (m->p.finder == DEFLATE_LAZY);
    while (seen > m->slide_at) {
        m->base += 1u << (m->p.window == 8 ? 9 : m->p.window);
        find_slide(m);
    }
}

static inline void advance(struct deflate_model *m, uint32_t length)
{
    slide_window(m);
    if (length == 0) {
        m->at++;
        return;
    }
    m->at += length;
    m->carried = 0;
    if (m->p.finder != DEFLATE_GREEDY || m->is_ahead) return;
    const bool skips = length > m->p.lazy || m->end - m->at < DEFLATE_LEAST;
    tsr_deflate_insert(m, skips ? m->at - length + 1 : m->at);
    if (skips) m->inserted = m->at;
}

void tsr_deflate_advance(struct deflate_model *m, uint32_t token)
{
    advance(m, deflate_length(token));
}

/* Goes over literals, so many. made: their bytes. */
static inline void pass_literals(struct deflate_model *m, uint32_t *made, uint32_t count)
{
    const uint8_t *const plain = m->plain + m->at;
    if (m->record) tsr_deflate_note_literals(m, count);
    for (uint32_t i = 0; i < count; i++) made[i] = plain[i];
    m->at += count - 1;
    m->carried = 0;
    advance(m, 0);
}

/* Says what was noted, as tsr_deflate_go_on. It ends where nothing more was noted, too. */
static size_t say_again(struct deflate_model *m, uint32_t *made, size_t most, uint32_t stop)
{
    size_t count = 0;
    while (count < most && m->at < stop) {
        const uint32_t left = stop - m->at, room = most - count < left ? (uint32_t)(most - count) : left,
                       noted = tsr_deflate_noted_literals(m), literals = noted < room ? noted : room;
        if (literals > 0) {
            m->replay->literals -= literals;
            pass_literals(m, made + count, literals);
            count += literals;
            continue;
        }
        uint32_t token;
        if (!tsr_deflate_replay(m, &token)) break;
        made[count] = token;
        if (deflate_length(token) > left) break;
        advance(m, deflate_length(token));
        count++;
    }
    return count;
}

/* Literals that a stream has from a token on, up to most. */
static inline uint32_t stream_literals(const uint32_t *stream, uint32_t most)
{
    uint32_t count = 0;
    while (count < most && stream[count] < 256) count++;
    return count;
}

/* Goes over literals that are certainly next, at most so many, and as long as the stream has literals, too. */
static __attribute__((noinline)) uint32_t pass_hopeless(struct deflate_model *m, const uint32_t *stream, uint32_t *made,
                                                        uint32_t most)
{
    const uint32_t turn = m->turn - m->at;
    uint32_t literals = tsr_deflate_hopeless(m, most < turn ? most : turn);
    if (stream) literals = stream_literals(stream, literals);
    if (literals > 0) pass_literals(m, made, literals);
    return literals;
}

/* The same by walks, which insert positions: it must be known before how many literals the stream has. end: the first
 * match of the stream from where it was looked for on. Where matches are many, that is no gain: then it waits. */
static __attribute__((noinline)) uint32_t pass_unmatched(struct deflate_model *m, size_t *end, const uint32_t *stream,
                                                         uint32_t *made, size_t count, uint32_t most)
{
    enum { MOST = 1 << 10, FEW = 6, MOST_WAIT = 31 };
    const uint32_t turn = m->turn - m->at;
    if (m->wait > 0) {
        m->wait--;
        return 0;
    }
    if (most > MOST) most = MOST;
    if (most > turn) most = turn;
    if (*end < count) *end = count;
    if (stream && *end < count + most) *end += stream_literals(stream + *end, (uint32_t)(count + most - *end));
    if (stream && *end < count + most) most = (uint32_t)(*end - count);
    const uint32_t literals = most > 0 ? tsr_deflate_unmatched(m, most) : 0;
    if (literals >= FEW)
        m->last_wait = 0;
    else if (most >= FEW)
        m->wait = m->last_wait = m->last_wait < MOST_WAIT ? 2 * m->last_wait + 1 : MOST_WAIT;
    if (literals > 0) pass_literals(m, made + count, literals);
    return literals;
}

size_t tsr_deflate_go_on(struct deflate_model *m, const uint32_t *stream, uint32_t *made, size_t most, uint32_t stop)
{
    size_t count = m->replay ? say_again(m, made, most, stop) : 0, literals_end = 0;
    if (m->replay) return count;
    while (count < most && m->at < stop && m->work > 0) {
        const uint32_t left = stop - m->at;
        if ((m->is_filtered || !m->is_rich) && m->carried == 0 && m->at < m->turn) {
            const uint32_t room = most - count < left ? (uint32_t)(most - count) : left,
                           passed = m->is_rich ? pass_hopeless(m, stream ? stream + count : NULL, made + count, room)
                                               : pass_unmatched(m, &literals_end, stream, made, count, room);
            count += passed;
            if (passed > 0) continue;
        }
        const uint32_t token = predict(m), length = deflate_length(token);
        if (m->record) tsr_deflate_note(m, token);
        made[count] = token ? token : m->plain[m->at];
        if (length > left || (stream && made[count] != stream[count])) break;
        advance(m, length);
        count++;
    }
    return count;
}

void tsr_deflate_pass(struct deflate_model *m, const uint32_t *stream, size_t count)
{
    uint32_t last = 0;
    m->carried = 0;
    m->record = NULL;
    for (size_t i = 0; i < count; i++) {
        const uint32_t length = deflate_length(stream[i]);
        last = length > 0 ? length : 1;
        m->at += last;
    }
    m->at -= last;
    slide_window(m);
    m->at += last;
}

void tsr_deflate_jump(struct deflate_model *m, uint32_t at)
{
    m->at = at;
    m->carried = 0;
}

void tsr_deflate_lead(struct deflate_model *m, uint32_t at, uint64_t work)
{
    const uint32_t lead = m->p.finder == DEFLATE_GREEDY ? GREEDY_LEAD : m->p.finder == DEFLATE_LAZY ? LAZY_LEAD : 0;
    m->work = work;
    m->at = at > lead ? at - lead : 0;
    tsr_deflate_start(m, m->at > DEFLATE_WINDOW ? m->at - DEFLATE_WINDOW : 0);
    m->end = m->size;
    while (m->at < at) {
        uint32_t made[LEAD_TOKENS];
        const size_t count = tsr_deflate_go_on(m, NULL, made, LEAD_TOKENS, at);
        if (count < LEAD_TOKENS && m->at < at) tsr_deflate_jump(m, at); /* amid a match, or without work */
    }
    m->end = at;
}
