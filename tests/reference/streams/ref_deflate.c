/* DEFLATE.md: makes a deflate stream from its plain bytes and its residue. */
#include "ref_deflate.h"
#include "ref_range.h"

#include <string.h>

/* ---- GROUND.md 5 Range coder: numbers ---- */

static uint64_t number(struct ref_coder *c, struct ref_chance *t)
{
    unsigned n = 0;
    while (n < 31 && ref_bit(c, &t[n])) n++;
    unsigned f = n < 2 ? n : 2;
    uint64_t top = ref_tree(c, t + 32 + 4 * n, f), low = ref_even(c, n - f);
    return ((((uint64_t)1 << f) + top) << (n - f)) + low - 1;
}

/* ---- DEFLATE.md 4: chances and variables ---- */

struct chances {
    struct ref_chance marker[2], rest, segment_same, segment[160], end, stored, stored_same, count[160], piece, type[3],
        type_other[3], final[2], padding;
    struct ref_chance hit[12][16], literal[12], length[256], same[12], longer[12], delta[2][160], escape[2],
        hop[3][160];
    struct ref_chance head, sizes[3], same_length[16], code_length[16][16], op[4], op_symbol[4], op_extra[3][128],
        same_kind, kind[8];
};

struct deflating {
    struct ref_coder c;
    struct chances chances;
    struct ref_deflate_model m;
    struct ref_deflate_out *out;
    uint64_t history, last_segment;
    uint32_t last_stored;
    bool is_marker;
    struct ref_match last;        /* the block's last token that counts */
    uint64_t room;                /* of the block's tokens */
    uint64_t first_bit, bits, to; /* of a piece; bits 0: there are none */
};

static void begin_chances(struct chances *chances)
{
    struct ref_chance *c = (struct ref_chance *)chances;
    for (size_t i = 0; i < sizeof *chances / sizeof *c; i++) c[i] = (struct ref_chance){32768, 0};
}

/* ---- Tokens ---- */

static unsigned class_of(struct ref_match p)
{
    static const unsigned below[5] = {16, 32, 128, 258, 259};
    if (p.length == 0) return 0;
    if (p.length < 9) return p.length - 2;
    unsigned c = 0;
    while (p.length >= below[c]) c++;
    return 7 + c;
}

static bool read_other_token(struct deflating *d, struct ref_match p, struct ref_match *token)
{
    struct chances *h = &d->chances;
    struct ref_coder *c = &d->c;
    unsigned class = class_of(p);
    *token = (struct ref_match){0, 0};
    if (p.length > 0 && ref_bit(c, &h->literal[class])) return true;
    uint64_t length = p.length;
    if (p.length == 0) {
        length = 3 + ref_tree(c, h->length, 8);
    } else if (!ref_bit(c, &h->same[class])) {
        unsigned longer = ref_bit(c, &h->longer[class]);
        uint64_t delta = number(c, h->delta[longer]) + 1;
        if (!longer && delta > length) return false;
        length = longer ? length + delta : length - delta;
    }
    if (length < 3 || length > 258 || length > d->m.end - d->m.at) return false;
    token->length = (uint32_t)length;
    if (ref_bit(c, &h->escape[p.length > 0])) {
        token->distance = ref_even(c, 15) + 1;
    } else {
        unsigned s = p.length == 0 ? 0 : length == p.length ? 1 : 2;
        token->distance = ref_hop(&d->m, number(c, h->hop[s]), token->length);
    }
    return token->distance > 0 && token->distance <= d->m.at;
}

static bool read_token(struct deflating *d, struct ref_match *token)
{
    struct ref_match p = ref_predict(&d->m);
    unsigned hit = ref_bit(&d->c, &d->chances.hit[class_of(p)][d->history % 16]);
    d->history = 2 * d->history + 1 - hit;
    *token = p;
    return hit || read_other_token(d, p, token);
}

static void add_token(struct deflating *d, struct ref_block *block, struct ref_match token)
{
    if (block->token_count == d->room) {
        d->room = d->room * 2 + 1024;
        struct ref_match *more = ref_alloc((size_t)d->room, sizeof *more);
        if (block->token_count > 0) memcpy(more, block->tokens, (size_t)block->token_count * sizeof *more);
        block->tokens = more;
    }
    block->tokens[block->token_count++] = token;
    d->last = token;
    ref_advance(&d->m, token);
}

/* Steps 4 and 5. */
static bool read_tokens(struct deflating *d, struct ref_block *block, bool counted)
{
    struct ref_deflate_model *m = &d->m;
    uint64_t count = counted ? number(&d->c, d->chances.count) : m->f.symbols > 0 ? m->f.symbols : UINT64_MAX;
    bool corrected = false;
    while (block->token_count < count && (counted || m->at < m->end)) {
        if (d->c.bad || m->at >= m->end || block->token_count == (d->bits > 0 ? 1 << 18 : 1 << 22)) return false;
        if (block->token_count % 16384 == 0) corrected = ref_bit(&d->c, &d->chances.piece);
        struct ref_match token;
        if (corrected) {
            if (!read_token(d, &token)) return false;
        } else {
            token = ref_predict(m);
        }
        add_token(d, block, token);
    }
    return true;
}

/* Step 2. The tokens that are passed are counted. */
static bool pass_stored(struct deflating *d, struct ref_block *block)
{
    struct ref_deflate_model *m = &d->m;
    if (!ref_bit(&d->c, &d->chances.stored_same)) d->last_stored = ref_even(&d->c, 16);
    uint64_t end = m->at + d->last_stored;
    if (end > m->end) return false;
    if (m->f.finder == REF_STORED) ref_jump(m, end);
    while (m->at < end) {
        struct ref_match token = ref_predict(m);
        if (m->at + (token.length > 0 ? token.length : 1) > end)
            ref_jump(m, end);
        else
            add_token(d, block, token);
    }
    return true;
}

/* ---- Heads ---- */

static bool read_ops(struct deflating *d, struct ref_deflate_head *head)
{
    struct chances *h = &d->chances;
    struct ref_coder *c = &d->c;
    static const uint8_t bits[3] = {2, 3, 7}, least[3] = {3, 3, 11};
    unsigned count = head->literals + head->distances;
    for (unsigned i = 0; i < count;) {
        struct ref_op op = ref_usual_op(head, i);
        if (ref_bit(c, &h->op[op.symbol < 16 ? 0 : op.symbol - 15])) {
            unsigned j = ref_tree(c, h->op_symbol, 2);
            op = (struct ref_op){head->lengths[i], 0, 1};
            if (j > 0) {
                op.symbol = (uint8_t)(15 + j);
                op.extra = (uint8_t)ref_tree(c, h->op_extra[j - 1], bits[j - 1]);
                op.repeats = (uint8_t)(least[j - 1] + op.extra);
            }
        }
        if (i + op.repeats > count) return false;
        head->ops[head->op_count++] = op;
        i += op.repeats;
    }
    return true;
}

static bool read_head(struct deflating *d, const struct ref_deflate_head *usual, struct ref_deflate_head *head)
{
    struct chances *h = &d->chances;
    struct ref_coder *c = &d->c;
    *head = *usual;
    if (!ref_bit(c, &h->head)) return true;
    memset(head, 0, sizeof *head);
    head->literals = ref_bit(c, &h->sizes[0]) ? 257 + ref_even(c, 5) : usual->literals;
    head->distances = ref_bit(c, &h->sizes[1]) ? 1 + ref_even(c, 5) : usual->distances;
    if (head->literals > 286 || head->distances > 30) return false;
    for (unsigned i = 0; i < head->literals + head->distances; i++) {
        bool is_distance = i >= head->literals;
        unsigned s = is_distance ? i - head->literals : i, p = 0;
        if (s < (is_distance ? usual->distances : usual->literals))
            p = usual->lengths[is_distance ? usual->literals + s : s];
        head->lengths[i] = (uint8_t)(ref_bit(c, &h->same_length[p]) ? ref_tree(c, h->code_length[p], 4) : p);
    }
    if (!read_ops(d, head)) return false;
    ref_usual_kinds(head);
    head->kinds = ref_usual_kind_count(head); /* step 5: before other kinds */
    for (unsigned k = 0; k < 19; k++)
        if (ref_bit(c, &h->same_kind)) head->kind[k] = (uint8_t)ref_tree(c, h->kind, 3);
    if (ref_bit(c, &h->sizes[2])) head->kinds = 4 + ref_even(c, 4);
    return head->kinds <= 19;
}

/* ---- Blocks ---- */

static bool put_stored(struct deflating *d, const struct ref_block *block)
{
    uint64_t size = block->end - block->begin;
    unsigned left = (unsigned)(8 - d->out->bits % 8) % 8;
    uint32_t padding = ref_bit(&d->c, &d->chances.padding) ? ref_even(&d->c, 7) : 0;
    if (size > 65535 || padding >> left != 0) return false;
    ref_deflate_bits(d->out, padding, left);
    ref_deflate_bits(d->out, (uint32_t)size, 16);
    ref_deflate_bits(d->out, (uint32_t)size ^ 0xffff, 16);
    for (uint64_t i = block->begin; i < block->end; i++) ref_deflate_bits(d->out, d->m.x[i], 8);
    return true;
}

/* Steps 6 to 8. */
static bool put_block(struct deflating *d, struct ref_block *block, bool is_stored)
{
    struct chances *h = &d->chances;
    struct ref_deflate_model *m = &d->m;
    struct ref_deflate_head usual, head;
    unsigned type = 0;
    if (!is_stored) {
        ref_usual_head(m->x, block, &usual);
        if (m->f.finder != REF_STORED && !d->is_marker) type = ref_usual_type(m, block, &usual);
        if (ref_bit(&d->c, &h->type[type])) {
            unsigned lower = type == 0 ? 1 : 0, higher = type == 2 ? 1 : 2;
            type = ref_bit(&d->c, &h->type_other[type]) ? higher : lower;
        }
    }
    bool full = m->f.symbols > 0 && block->token_count == m->f.symbols;
    bool last_literal = m->f.finder == REF_LAZY && d->last.length == 0;
    unsigned f = m->at == m->size && !(full && !last_literal);
    block->final = f ^ ref_bit(&d->c, &h->final[f]);
    if (block->final && m->at != m->size) return false;
    ref_deflate_bits(d->out, block->final, 1);
    ref_deflate_bits(d->out, type, 2);
    if (type == 0) return put_stored(d, block);
    if (m->f.finder == REF_STORED && block->token_count == 0 && block->end > block->begin) return false;
    if (type == 1) return ref_put_compressed(d->out, m->x, block, NULL);
    return read_head(d, &usual, &head) && ref_put_compressed(d->out, m->x, block, &head);
}

static bool next_block(struct deflating *d, struct ref_block *block)
{
    struct ref_deflate_model *m = &d->m;
    *block = (struct ref_block){.begin = m->at};
    d->room = 0;
    d->last = (struct ref_match){0, 0};
    bool counted = ref_bit(&d->c, &d->chances.end), is_stored = false;
    if (counted && ref_bit(&d->c, &d->chances.stored)) {
        is_stored = true;
        if (!pass_stored(d, block)) return false;
    } else if (!counted && m->f.finder == REF_STORED) {
        ref_jump(m, m->end - m->at > 65535 ? m->at + 65535 : m->end);
    } else if (!read_tokens(d, block, counted)) {
        return false;
    }
    block->end = m->at;
    return put_block(d, block, is_stored) && !d->c.bad;
}

/* Step 1 of all blocks: markers and segments. */
static bool before_block(struct deflating *d)
{
    struct ref_deflate_model *m = &d->m;
    struct chances *h = &d->chances;
    if (m->at != m->end || m->at >= m->size) {
        d->is_marker = false;
        return true;
    }
    d->is_marker = ref_bit(&d->c, &h->marker[d->is_marker]);
    if (d->is_marker) return true;
    uint64_t length = m->size - m->at;
    if (ref_bit(&d->c, &h->rest)) {
        if (ref_bit(&d->c, &h->segment_same)) d->last_segment = number(&d->c, h->segment) + 1;
        if (d->last_segment > length) return false;
        length = d->last_segment;
    }
    ref_begin_segment(m, m->at + length);
    return true;
}

static bool all_blocks(struct deflating *d)
{
    struct ref_block block = {.final = false};
    while (!block.final && (d->bits == 0 || d->out->bits - d->first_bit < d->bits)) {
        void *mark = ref_mark();
        const uint8_t *bytes = d->out->bytes;
        if (!before_block(d) || !next_block(d, &block)) return false;
        if (d->out->bytes == bytes) ref_release(mark);
    }
    if (d->bits == 0) return true;
    return d->out->bits - d->first_bit == d->bits && d->m.at == d->to && block.final == (d->to == d->m.size);
}

static void begin_coding(struct deflating *d, const uint8_t *corrections, size_t size)
{
    d->c = (struct ref_coder){.b = {.data = corrections, .size = size}, .range = UINT32_MAX};
    for (int i = 0; i < 4; i++) ref_next_byte(&d->c);
    begin_chances(&d->chances);
    d->history = d->last_segment = d->last_stored = 0;
    d->is_marker = false;
}

static bool pad(struct ref_deflate_out *out, unsigned padding)
{
    unsigned left = (unsigned)(8 - out->bits % 8) % 8;
    if (padding >> left != 0) return ref_fail("the padding of a deflate stream is corrupt");
    ref_deflate_bits(out, padding, left);
    return true;
}

/* ---- DEFLATE.md 5 Pieces ---- */

struct piece {
    uint64_t bits, bytes, size;
};

static bool read_table(struct ref_bytes *b, struct piece *pieces, uint64_t count, uint64_t plain)
{
    for (uint64_t i = 0; i < count; i++) {
        bool is_last = i + 1 == count;
        pieces[i].bits = ref_varint(b);
        pieces[i].bytes = is_last ? plain : ref_varint(b);
        pieces[i].size = is_last ? 0 : ref_varint(b);
        if (b->bad || pieces[i].bits == 0 || pieces[i].bytes > plain || pieces[i].bytes < (is_last ? 1 : 65536))
            return false;
        plain -= pieces[i].bytes;
    }
    return true;
}

static bool all_pieces(struct deflating *d, struct ref_bytes *b, const uint8_t *plain, size_t size)
{
    ref_number(b, 1);
    uint64_t count = ref_varint(b), at = 0;
    if (b->bad || count < 2 || count > size / 65536 + 1) return false;
    struct piece *pieces = ref_alloc((size_t)count, sizeof *pieces);
    if (!read_table(b, pieces, count, size) || !ref_read_deflate_fields(b, &d->m.f)) return false;
    ref_start_model(&d->m, plain, size);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t coded = i + 1 == count ? ref_left(b) : pieces[i].size;
        if (coded > ref_left(b)) return false;
        begin_coding(d, b->data + b->at, (size_t)coded);
        b->at += (size_t)coded;
        ref_begin_piece(&d->m, at);
        d->first_bit = d->out->bits;
        d->bits = pieces[i].bits;
        d->to = at += pieces[i].bytes;
        if (!all_blocks(d)) return false;
    }
    return pad(d->out, d->m.f.padding);
}

/* A cut stream: the longer one without its last bytes. */
static bool cut_stream(const uint8_t *plain, size_t size, struct ref_bytes b, struct ref_deflate_out *out)
{
    uint64_t before = out->bits, dropped = ref_number(&b, 1) == 13 ? ref_number(&b, 1) : 16;
    const uint8_t *rest = b.data + b.at;
    if (b.bad || dropped > 15 || ref_left(&b) == 0 || *rest == 13) return ref_fail("a cut deflate stream is corrupt");
    if (!ref_deflate(plain, size, rest, ref_left(&b), out)) return false;
    if (out->bits - before < 8 * dropped) return ref_fail("a cut deflate stream is too short");
    out->bits -= 8 * dropped;
    memset(out->bytes + out->bits / 8, 0, (size_t)dropped); /* other bits may follow */
    return true;
}

bool ref_deflate(const uint8_t *plain, size_t size, const uint8_t *residue, size_t residue_size,
                 struct ref_deflate_out *out)
{
    struct deflating *d = ref_alloc(1, sizeof *d);
    struct ref_bytes b = {.data = residue, .size = residue_size};
    d->out = out;
    if (residue_size > 0 && residue[0] == 13) return cut_stream(plain, size, b, out);
    if (residue_size > 0 && residue[0] == 14)
        return all_pieces(d, &b, plain, size) || ref_fail("the pieces of a deflate stream are corrupt");
    if (!ref_read_deflate_fields(&b, &d->m.f)) return false;
    begin_coding(d, residue + b.at, residue_size - b.at);
    ref_start_model(&d->m, plain, size);
    if (!all_blocks(d)) return ref_fail("the residue of a deflate stream is corrupt");
    return pad(out, d->m.f.padding);
}
