/* J2K.md 6: the passes of a block, T.800 annexes C and D. */
#include "ref_j2k.h"

#include <string.h>

/* ---- T.800 annex C: the MQ coder ---- */

struct row {
    unsigned qe, nmps, nlps, turn;
};

/* T.800 table C.2 */
static const struct row rows[47] = {
    {0x5601, 1, 1, 1},   {0x3401, 2, 6, 0},   {0x1801, 3, 9, 0},   {0x0ac1, 4, 12, 0},  {0x0521, 5, 29, 0},
    {0x0221, 38, 33, 0}, {0x5601, 7, 6, 1},   {0x5401, 8, 14, 0},  {0x4801, 9, 14, 0},  {0x3801, 10, 14, 0},
    {0x3001, 11, 17, 0}, {0x2401, 12, 18, 0}, {0x1c01, 13, 20, 0}, {0x1601, 29, 21, 0}, {0x5601, 15, 14, 1},
    {0x5401, 16, 14, 0}, {0x5101, 17, 15, 0}, {0x4801, 18, 16, 0}, {0x3801, 19, 17, 0}, {0x3401, 20, 18, 0},
    {0x3001, 21, 19, 0}, {0x2801, 22, 19, 0}, {0x2401, 23, 20, 0}, {0x2201, 24, 21, 0}, {0x1c01, 25, 22, 0},
    {0x1801, 26, 23, 0}, {0x1601, 27, 24, 0}, {0x1401, 28, 25, 0}, {0x1201, 29, 26, 0}, {0x1101, 30, 27, 0},
    {0x0ac1, 31, 28, 0}, {0x09c1, 32, 29, 0}, {0x08a1, 33, 30, 0}, {0x0521, 34, 31, 0}, {0x0441, 35, 32, 0},
    {0x02a1, 36, 33, 0}, {0x0221, 37, 34, 0}, {0x0141, 38, 35, 0}, {0x0111, 39, 36, 0}, {0x0085, 40, 37, 0},
    {0x0049, 41, 38, 0}, {0x0025, 42, 39, 0}, {0x0015, 43, 40, 0}, {0x0009, 44, 41, 0}, {0x0005, 45, 42, 0},
    {0x0001, 45, 43, 0}, {0x5601, 46, 46, 0}};

struct mq {
    uint32_t a, c;
    unsigned ct;
    uint8_t *b; /* the byte before the first one, and then what is written */
    size_t at;
    unsigned index[19], mps[19];
};

static void begin_contexts(struct mq *m)
{
    memset(m->index, 0, sizeof m->index);
    memset(m->mps, 0, sizeof m->mps);
    m->index[0] = 4;
    m->index[17] = 3;
    m->index[18] = 46;
}

static void byte_out(struct mq *m)
{
    if (m->b[m->at] != 0xff && m->c >= 0x8000000) {
        m->b[m->at]++;
        m->c &= 0x7ffffff;
    }
    if (m->b[m->at] == 0xff) {
        m->b[++m->at] = (uint8_t)(m->c >> 20);
        m->c &= 0xfffff;
        m->ct = 7;
    } else {
        m->b[++m->at] = (uint8_t)(m->c >> 19);
        m->c &= 0x7ffff;
        m->ct = 8;
    }
}

static void encode(struct mq *m, unsigned cx, unsigned d)
{
    const struct row *r = &rows[m->index[cx]];
    bool is_mps = d == m->mps[cx];
    m->a -= r->qe;
    if (is_mps && m->a >= 0x8000) {
        m->c += r->qe;
        return;
    }
    if (is_mps ? m->a < r->qe : m->a >= r->qe)
        m->a = r->qe;
    else
        m->c += r->qe;
    if (!is_mps && r->turn) m->mps[cx] = 1 - m->mps[cx];
    m->index[cx] = is_mps ? r->nmps : r->nlps;
    do {
        m->a <<= 1;
        m->c <<= 1;
        if (--m->ct == 0) byte_out(m);
    } while (m->a < 0x8000);
}

/* C.2.9 */
static void flush(struct mq *m)
{
    uint32_t temp = m->c + m->a;
    m->c |= 0xffff;
    if (m->c >= temp) m->c -= 0x8000;
    for (int i = 0; i < 2; i++) {
        m->c <<= m->ct;
        byte_out(m);
    }
    if (m->b[m->at] == 0xff) m->at--;
}

/* ---- T.800 annex D ---- */

struct work {
    const struct ref_j2k_block *block;
    const int32_t *value;
    uint8_t *significant, *visited, *refined;
    struct mq mq;
    unsigned plane;
};

/* Is the neighbour significant? 8: blocks with vertically causal contexts see nothing of the stripe below. */
static unsigned at(const struct work *w, uint32_t x, uint32_t y, int dx, int dy)
{
    const struct ref_j2k_block *b = w->block;
    int64_t nx = (int64_t)x + dx, ny = (int64_t)y + dy;
    if (nx < 0 || ny < 0 || nx >= b->width || ny >= b->height) return 0;
    if (b->style & 8 && dy > 0 && y % 4 == 3) return 0;
    return w->significant[(size_t)ny * b->width + (size_t)nx];
}

static int sign_at(const struct work *w, uint32_t x, uint32_t y, int dx, int dy)
{
    if (!at(w, x, y, dx, dy)) return 0;
    return w->value[((int64_t)y + dy) * w->block->width + (int64_t)x + dx] < 0 ? -1 : 1;
}

/* Table D.1 */
static unsigned zero_context(const struct work *w, uint32_t x, uint32_t y)
{
    unsigned h = at(w, x, y, -1, 0) + at(w, x, y, 1, 0), v = at(w, x, y, 0, -1) + at(w, x, y, 0, 1);
    unsigned d = at(w, x, y, -1, -1) + at(w, x, y, 1, -1) + at(w, x, y, -1, 1) + at(w, x, y, 1, 1);
    if (w->block->band == 3) {
        if (d >= 3) return 8;
        if (d == 2) return h + v >= 1 ? 7 : 6;
        if (d == 1) return h + v >= 2 ? 5 : 3 + h + v;
        return h + v >= 2 ? 2 : h + v;
    }
    if (w->block->band == 1) {
        unsigned t = h;
        h = v;
        v = t;
    }
    if (h == 2) return 8;
    if (h == 1) return v >= 1 ? 7 : d >= 1 ? 6 : 5;
    if (v > 0) return v == 2 ? 4 : 3;
    return d >= 2 ? 2 : d;
}

static int one(int v)
{
    return v > 0 ? 1 : v < 0 ? -1 : 0;
}

/* Tables D.2 and D.3 */
static void code_sign(struct work *w, uint32_t x, uint32_t y)
{
    static const unsigned context[3][3] = {{13, 12, 11}, {10, 9, 10}, {11, 12, 13}}; /* h + 1, v + 1 */
    int h = one(sign_at(w, x, y, -1, 0) + sign_at(w, x, y, 1, 0));
    int v = one(sign_at(w, x, y, 0, -1) + sign_at(w, x, y, 0, 1));
    unsigned turn = h < 0 || (h == 0 && v < 0), bit = w->value[(size_t)y * w->block->width + x] < 0;
    encode(&w->mq, context[h + 1][v + 1], bit ^ turn);
    w->significant[(size_t)y * w->block->width + x] = 1;
}

static unsigned bit_of(const struct work *w, uint32_t x, uint32_t y)
{
    int32_t v = w->value[(size_t)y * w->block->width + x];
    uint32_t magnitude = v < 0 ? 0 - (uint32_t)v : (uint32_t)v;
    return magnitude >> w->plane & 1;
}

static bool has_neighbours(const struct work *w, uint32_t x, uint32_t y)
{
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++)
            if ((dx != 0 || dy != 0) && at(w, x, y, dx, dy)) return true;
    return false;
}

/* D.3.1 and D.3.3: one sample of a pass. kind: 0 significance propagation, 1 magnitude refinement, 2 cleanup. */
static void code_sample(struct work *w, unsigned kind, uint32_t x, uint32_t y)
{
    size_t i = (size_t)y * w->block->width + x;
    if (kind == 1) {
        if (!w->significant[i] || w->visited[i]) return;
        encode(&w->mq, w->refined[i] ? 16 : has_neighbours(w, x, y) ? 15 : 14, bit_of(w, x, y));
        w->refined[i] = 1;
        return;
    }
    if (w->significant[i] || (kind == 0 ? !has_neighbours(w, x, y) : w->visited[i])) return;
    encode(&w->mq, zero_context(w, x, y), bit_of(w, x, y));
    if (bit_of(w, x, y)) code_sign(w, x, y);
    if (kind == 0) w->visited[i] = 1;
}

/* D.3.4: the run of a column of a cleanup pass. Returns the rows that it coded. */
static uint32_t code_run(struct work *w, uint32_t x, uint32_t y)
{
    uint32_t zeros = 0;
    if (w->block->height - y < 4) return 0;
    for (uint32_t i = 0; i < 4; i++)
        if (w->significant[(size_t)(y + i) * w->block->width + x] ||
            w->visited[(size_t)(y + i) * w->block->width + x] || has_neighbours(w, x, y + i))
            return 0;
    while (zeros < 4 && !bit_of(w, x, y + zeros)) zeros++;
    encode(&w->mq, 17, zeros < 4);
    if (zeros == 4) return 4;
    encode(&w->mq, 18, zeros >> 1);
    encode(&w->mq, 18, zeros & 1);
    code_sign(w, x, y + zeros);
    return zeros + 1;
}

static void code_pass(struct work *w, unsigned kind)
{
    const struct ref_j2k_block *b = w->block;
    for (uint32_t y = 0; y < b->height; y += 4)
        for (uint32_t x = 0; x < b->width; x++) {
            uint32_t i = kind == 2 ? code_run(w, x, y) : 0;
            for (; i < 4 && y + i < b->height; i++) code_sample(w, kind, x, y + i);
        }
    if (kind != 2) return;
    memset(w->visited, 0, (size_t)b->width * b->height);
    if (b->style & 32)
        for (unsigned i = 0; i < 4; i++) encode(&w->mq, 18, i % 2 == 0);
}

void ref_j2k_code_block(struct ref_j2k_block *block, struct ref_j2k_room *room)
{
    size_t samples = (size_t)block->width * block->height;
    struct work w = {.block = block, .value = room->value, .mq.b = room->bytes};
    w.significant = memset(room->significant, 0, samples);
    w.visited = memset(room->visited, 0, samples);
    w.refined = memset(room->refined, 0, samples);
    room->bytes[0] = 0;
    w.mq.a = 0x8000;
    w.mq.ct = 12;
    begin_contexts(&w.mq);
    block->written = ref_alloc(block->passes, sizeof *block->written);
    for (unsigned i = 0; i < block->passes; i++) {
        w.plane = block->planes - 1 - (i + 2) / 3;
        code_pass(&w, (i + 2) % 3);
        if (block->style & 2) begin_contexts(&w.mq);
        block->written[i] = (uint32_t)w.mq.at;
    }
    flush(&w.mq);
    block->size = (uint32_t)w.mq.at;
    block->bytes = ref_alloc(block->size + 1u, 1);
    memcpy(block->bytes, w.mq.b + 1, block->size);
}
