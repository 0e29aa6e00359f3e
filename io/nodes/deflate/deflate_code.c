/* Codes blocks as deviations from the model, in both directions. DEFLATE.md 4. */
#include "deflate_parts.h"

#include <string.h>

static enum tsr_status damaged(const struct deflate_coder *c)
{
    return tsr_fail(c->error, TSR_ERROR_CORRUPT, "the residue of a deflate stream is damaged");
}

static bool reads_stream(const struct deflate_coder *c)
{
    return c->source != NULL;
}

const char tsr_deflate_costly[] = "its deflate stream takes more than 64 steps a byte to make again";
static_assert(DEFLATE_WORK == 64, "the text has the number");

static enum tsr_status costly(struct deflate_coder *c)
{
    c->is_costly = true;
    return tsr_fail(c->error, TSR_ERROR_CORRUPT, "%s", tsr_deflate_costly);
}

/* Where the plain bytes end that are coded. */
static uint32_t end_of(const struct deflate_coder *c)
{
    return c->end > 0 ? c->to : c->model.size;
}

/* Bits of the stream so far. */
static uint64_t bits_of(const struct deflate_coder *c)
{
    return reads_stream(c) ? 8 * (uint64_t)c->source->at - c->source->count
                           : 8 * (uint64_t)c->sink->stream->size + c->sink->count;
}

/* What the model makes of lengths, for chances: 0 literal, 1 .. 11 matches. */
static uint32_t length_class(uint32_t length)
{
    if (length == 0) return 0;
    if (length < 9) return length - 2;
    return length < 16 ? 7 : length < 32 ? 8 : length < 128 ? 9 : length < DEFLATE_MOST ? 10 : 11;
}

/* A length that differs from the predicted one. 0: not valid. */
static uint32_t code_length(struct deflate_coder *c, uint32_t predicted, uint32_t length)
{
    struct tsr_range_coder *r = &c->range;
    struct deflate_chances *x = &c->chances;
    const uint32_t class = length_class(predicted);
    if (predicted == 0) return DEFLATE_LEAST + tsr_range_tree(r, x->length, length - DEFLATE_LEAST, 8);
    if (tsr_range_bit(r, &x->same[class], length == predicted)) return predicted;
    const uint32_t longer = tsr_range_bit(r, &x->longer[class], length > predicted);
    const uint32_t delta = longer ? length - predicted : predicted - length;
    const uint32_t coded = tsr_range_number(r, x->delta[longer], delta - 1);
    if (coded >= DEFLATE_MOST || (!longer && coded + 1 + DEFLATE_LEAST > predicted)) return 0;
    return longer ? predicted + 1 + coded : predicted - 1 - coded;
}

/* A token that the model does not have. hop: of the token, if it is known. False: the residue is damaged. */
static bool code_other(struct deflate_coder *c, uint32_t predicted, uint32_t *token, uint32_t hop)
{
    struct tsr_range_coder *r = &c->range;
    struct deflate_chances *x = &c->chances;
    const uint32_t from = deflate_length(predicted), class = length_class(from);
    if (from > 0 && tsr_range_bit(r, &x->literal[class], deflate_length(*token) == 0)) {
        *token = 0;
        return true;
    }
    const uint32_t length = code_length(c, from, deflate_length(*token));
    if (length < DEFLATE_LEAST || length > DEFLATE_MOST) return false;
    if (!reads_stream(c) && length > c->model.end - c->model.at) return false;
    const uint32_t state = from == 0 ? 0 : length == from ? 1 : 2;
    uint32_t distance = *token & 65535;
    if (tsr_range_bit(r, &x->escape[state > 0], hop == DEFLATE_NO_HOP)) {
        distance = 1 + tsr_range_even(r, distance - 1, 15);
    } else {
        hop = tsr_range_number(r, x->hop[state], hop);
        if (!reads_stream(c)) distance = tsr_deflate_unhop(&c->model, length, hop);
    }
    *token = deflate_match(length, distance);
    return distance > 0 && (reads_stream(c) || distance <= c->model.at);
}

static inline bool code_token(struct deflate_coder *c, uint32_t predicted, uint32_t *token, uint32_t hop)
{
    struct tsr_chance *hit = &c->chances.hit[length_class(deflate_length(predicted))][c->history & 15];
    const uint32_t same = tsr_range_bit(&c->range, hit, *token == predicted);
    c->history = c->history << 1 | !same;
    if (!same) return code_other(c, predicted, token, hop);
    *token = predicted;
    return true;
}

/* The model's token, of which a literal is its byte. */
static uint32_t without_byte(uint32_t token)
{
    return token < 256 ? 0 : token;
}

/* Goes over a token that is not the model's. */
static enum tsr_status put_other(struct deflate_coder *c, uint32_t token, uint32_t *hop)
{
    const uint64_t work = c->model.work;
    *hop = token ? tsr_deflate_hop(&c->model, token) : 0;
    if (*hop == DEFLATE_NO_HOP) { /* who reads does not look for it */
        c->spent += work - c->model.work;
        c->model.work = work;
        if (c->spent > c->most_spent) return costly(c);
    }
    tsr_deflate_advance(&c->model, token);
    return TSR_OK;
}

/* Whether the model is guessed to have the tokens that are next: it had all so far, in few steps. */
static bool guesses(const struct deflate_coder *c)
{
    enum { TOKENS = 3 << 14, STEPS = 8 }; /* tokens that tell it; steps a byte */
    const struct deflate_model *const m = &c->model;
    return c->guessed ||
           (c->may_guess && c->right >= TOKENS && deflate_work(m->size) - m->work <= STEPS * (uint64_t)m->at);
}

/* Writing the residue: count tokens of the block from first on. */
static enum tsr_status put_run(struct deflate_coder *c, const uint32_t *tokens, size_t count)
{
    struct deflate_model *const m = &c->model;
    bool exact = true;
    if (guesses(c)) {
        c->guessed = true;
        tsr_deflate_pass(m, tokens, count);
        tsr_range_bit(&c->range, &c->chances.run, 0);
        return TSR_OK;
    }
    for (size_t i = 0;; i++) {
        i += tsr_deflate_go_on(m, tokens + i, c->predicted + i, count - i, m->end);
        if (m->work == 0) return costly(c);
        if (i == count) break;
        exact = false;
        TSR_TRY(put_other(c, without_byte(tokens[i]), &c->hops[i]));
    }
    c->may_guess &= exact;
    c->right += count;
    if (tsr_range_bit(&c->range, &c->chances.run, !exact) == 0) return TSR_OK;
    for (size_t i = 0; i < count; i++) {
        uint32_t token = without_byte(tokens[i]);
        if (!code_token(c, without_byte(c->predicted[i]), &token, c->hops[i])) return damaged(c);
    }
    return TSR_OK;
}

/* The symbols after which the model ends a block. */
static bool is_full(const struct deflate_coder *c, size_t count)
{
    return count > 0 && count == c->model.p.symbols;
}

/* The tokens before something may have to be looked at again: a bit of a run, the end of a block, of a piece, of plain
 * bytes. */
static size_t tokens_ahead(const struct deflate_coder *c, bool as_model, size_t count)
{
    const struct deflate_model *const m = &c->model;
    const size_t made = c->block.tokens.count, run = c->run - made % c->run,
                 block = as_model ? m->p.symbols > made ? m->p.symbols - made : SIZE_MAX : count - made,
                 piece = c->end > 0 ? DEFLATE_PIECE_TOKENS - made : SIZE_MAX;
    const uint32_t end = m->end < end_of(c) ? m->end : end_of(c);
    size_t most = end - m->at;
    if (run < most) most = run;
    if (block < most) most = block;
    return piece < most ? piece : most;
}

/* Tokens that are the model's. */
static enum tsr_status get_run(struct deflate_coder *c, bool as_model, size_t count)
{
    struct deflate_tokens *const tokens = &c->block.tokens;
    struct deflate_model *const m = &c->model;
    const uint32_t end = m->end < end_of(c) ? m->end : end_of(c);
    size_t most = tokens_ahead(c, as_model, count);
    if (tokens->count == tokens->capacity) TSR_TRY(tsr_deflate_grow(tokens, c->error));
    if (most > tokens->capacity - tokens->count) most = tokens->capacity - tokens->count;
    const size_t made = tsr_deflate_go_on(m, NULL, tokens->tokens + tokens->count, most, end);
    tokens->count += made;
    if (m->work == 0) return costly(c);
    return made < most && m->at < end ? damaged(c) : TSR_OK;
}

static enum tsr_status get_tokens(struct deflate_coder *c, bool as_model, size_t count)
{
    struct deflate_tokens *tokens = &c->block.tokens;
    struct deflate_model *m = &c->model;
    uint32_t deviates = 0;
    tokens->count = 0;
    while (as_model ? m->at < m->end && !is_full(c, tokens->count) : tokens->count < count) {
        if (m->at >= m->end || m->at >= end_of(c)) return damaged(c);
        if (c->end > 0 && tokens->count == DEFLATE_PIECE_TOKENS) return damaged(c);
        if (tokens->count % c->run == 0) deviates = tsr_range_bit(&c->range, &c->chances.run, 0);
        if (c->range.failed) return damaged(c);
        if (!deviates) {
            TSR_TRY(get_run(c, as_model, count));
            continue;
        }
        uint32_t token = 0;
        if (!code_token(c, tsr_deflate_predict(m), &token, 0)) return damaged(c);
        if (c->range.failed) return damaged(c);
        if (m->work == 0) return costly(c);
        TSR_TRY(tsr_deflate_push(tokens, token ? token : m->plain[m->at], c->error));
        tsr_deflate_advance(m, token);
    }
    return TSR_OK;
}

/* Lets the model go through stored bytes; its tokens go to the block's. *as_model: the model's block would end there.
 */
static enum tsr_status pass_stored(struct deflate_coder *c, uint32_t end, bool *as_model)
{
    struct deflate_model *m = &c->model;
    struct deflate_tokens *tokens = &c->block.tokens;
    const size_t symbols = m->p.symbols;
    tokens->count = 0;
    if (m->p.finder == DEFLATE_COPY) {
        *as_model = end - m->at == (m->end - m->at < 65535 ? m->end - m->at : 65535);
        tsr_deflate_jump(m, end);
        return TSR_OK;
    }
    *as_model = true;
    while (m->at < end) {
        if (tokens->count == tokens->capacity) TSR_TRY(tsr_deflate_grow(tokens, c->error));
        const size_t room = tokens->capacity - tokens->count,
                     made = tsr_deflate_go_on(m, NULL, tokens->tokens + tokens->count, room, end);
        tokens->count += made;
        if (m->work == 0) return costly(c);
        if (made == room || m->at == end) continue;
        tsr_deflate_jump(m, end); /* amid a match */
        *as_model = false;
        return TSR_OK;
    }
    const bool within = symbols == 0 || tokens->count <= symbols;
    *as_model = within && (is_full(c, tokens->count) || m->at == m->end);
    return TSR_OK;
}

static uint32_t code_stored_size(struct deflate_coder *c, uint32_t size)
{
    if (!tsr_range_bit(&c->range, &c->chances.stored_same, size == c->stored_last))
        c->stored_last = tsr_range_even(&c->range, size, 16);
    return c->stored_last;
}

/* The type of a block that is not said to be stored. */
static void code_type(struct deflate_coder *c, enum deflate_type predicted)
{
    struct tsr_chance *same = &c->chances.type[predicted], *other = &c->chances.type_other[predicted];
    struct deflate_block *b = &c->block;
    if (tsr_range_bit(&c->range, same, b->type != predicted) == 0) {
        b->type = predicted;
        return;
    }
    const enum deflate_type low = predicted == DEFLATE_STORED ? DEFLATE_FIXED : DEFLATE_STORED;
    const enum deflate_type high = predicted == DEFLATE_DYNAMIC ? DEFLATE_FIXED : DEFLATE_DYNAMIC;
    b->type = tsr_range_bit(&c->range, other, b->type == high) ? high : low;
}

static void code_size(struct deflate_coder *c, struct tsr_chance *chance, uint32_t predicted, uint32_t least,
                      uint32_t bits, uint32_t *value)
{
    if (tsr_range_bit(&c->range, chance, *value != predicted) == 0)
        *value = predicted;
    else
        *value = least + tsr_range_even(&c->range, *value - least, bits);
}

static bool code_ops(struct deflate_coder *c)
{
    static const uint8_t bits[] = {2, 3, 7}, least[] = {3, 3, 11};
    struct deflate_head *h = &c->block.head;
    struct deflate_chances *x = &c->chances;
    const uint32_t all = h->literals + h->distances, count = h->op_count;
    uint32_t n = 0;
    for (uint32_t at = 0; at < all; n++) {
        const struct deflate_op predicted = tsr_deflate_op(h, at);
        struct deflate_op op = n < count && reads_stream(c) ? h->ops[n] : predicted;
        const uint32_t class = predicted.symbol < 16 ? 0 : predicted.symbol - 15u;
        if (tsr_range_bit(&c->range, &x->op[class], op.symbol != predicted.symbol || op.extra != predicted.extra)) {
            const uint32_t kind = tsr_range_tree(&c->range, x->op_symbol, op.symbol < 16 ? 0 : op.symbol - 15u, 2);
            op.symbol = kind ? (uint8_t)(kind + 15) : h->lengths[at];
            if (kind)
                op.extra = (uint8_t)tsr_range_tree(&c->range, x->op_extra[kind - 1], op.extra, bits[kind - 1]);
            else
                op.extra = 0;
        } else {
            op = predicted;
        }
        const uint32_t run = op.symbol < 16 ? 1 : op.extra + (uint32_t)least[op.symbol - 16];
        if (run > all - at) return false;
        h->ops[n] = op;
        at += run;
    }
    h->op_count = n;
    return true;
}

/* The head of a dynamic block, against the one that zlib would make. */
static bool code_head(struct deflate_coder *c, const struct deflate_head *predicted)
{
    struct deflate_head *h = &c->block.head;
    struct deflate_chances *x = &c->chances;
    struct tsr_range_coder *r = &c->range;
    const bool same = reads_stream(c) && h->literals == predicted->literals && h->distances == predicted->distances &&
                      h->kinds == predicted->kinds && h->op_count == predicted->op_count &&
                      memcmp(h->lengths, predicted->lengths, sizeof h->lengths) == 0 &&
                      memcmp(h->kind_lengths, predicted->kind_lengths, sizeof h->kind_lengths) == 0 &&
                      memcmp(h->ops, predicted->ops, h->op_count * sizeof *h->ops) == 0;
    if (tsr_range_bit(r, &x->head, !same) == 0) {
        *h = *predicted;
        return true;
    }
    code_size(c, &x->head_sizes[0], predicted->literals, 257, 5, &h->literals);
    code_size(c, &x->head_sizes[1], predicted->distances, 1, 5, &h->distances);
    if (h->literals > DEFLATE_LITERALS || h->distances > DEFLATE_DISTANCES) return false;
    for (uint32_t i = 0; i < h->literals + h->distances; i++) {
        const uint32_t s = i < h->literals ? i : i - h->literals;
        const bool known = s < (i < h->literals ? predicted->literals : predicted->distances);
        const uint8_t p = known ? predicted->lengths[i < h->literals ? s : s + predicted->literals] : 0;
        if (tsr_range_bit(r, &x->same_length[p], h->lengths[i] != p) == 0)
            h->lengths[i] = p;
        else
            h->lengths[i] = (uint8_t)tsr_range_tree(r, x->code_length[p], h->lengths[i], 4);
    }
    if (!code_ops(c)) return false;
    uint8_t kinds[DEFLATE_KINDS];
    const uint32_t sent = tsr_deflate_kinds(h, kinds);
    for (uint32_t i = 0; i < DEFLATE_KINDS; i++) {
        if (tsr_range_bit(r, &x->same_kind, h->kind_lengths[i] != kinds[i]) == 0)
            h->kind_lengths[i] = kinds[i];
        else
            h->kind_lengths[i] = (uint8_t)tsr_range_tree(r, x->kind, h->kind_lengths[i], 3);
    }
    code_size(c, &x->head_sizes[2], sent, 4, 4, &h->kinds);
    return true;
}

/* The padding before the size of a stored block. False: the residue is damaged. */
static bool code_padding(struct deflate_coder *c)
{
    struct deflate_block *b = &c->block;
    if (tsr_range_bit(&c->range, &c->chances.padding, b->padding != 0) == 0)
        b->padding = 0;
    else
        b->padding = tsr_range_even(&c->range, b->padding, 7);
    return reads_stream(c) || b->padding >> (-(c->sink->count + 3) & 7) == 0;
}

/* What stands after the tokens of a block: type, end of the stream, table, padding. */
static enum tsr_status code_rest(struct deflate_coder *c, bool said_stored, uint32_t begin, bool marker)
{
    struct deflate_block *b = &c->block;
    struct deflate_model *m = &c->model;
    struct deflate_head predicted;
    bool has_head = false;
    const size_t count = b->tokens.count;
    const bool last_literal =
        count > 0 && m->p.finder == DEFLATE_LAZY && deflate_length(b->tokens.tokens[count - 1]) == 0;
    const bool final = m->at == m->size && !(is_full(c, count) && !last_literal);
    if (said_stored) {
        b->type = DEFLATE_STORED;
    } else if (m->p.finder == DEFLATE_COPY || marker) {
        code_type(c, DEFLATE_STORED);
    } else {
        code_type(c, tsr_deflate_type(&b->tokens, m->at - begin, begin >= m->base, m->p.flags & DEFLATE_ONLY_FIXED,
                                      &predicted, &has_head));
    }
    b->final = tsr_range_bit(&c->range, &c->chances.final[final], b->final != final) ? !final : final;
    if (b->type == DEFLATE_DYNAMIC && !has_head) tsr_deflate_head(&b->tokens, &predicted);
    if (b->type == DEFLATE_DYNAMIC && !code_head(c, &predicted)) return damaged(c);
    if (b->type == DEFLATE_STORED) {
        b->stored = m->at - begin;
        if (b->stored > 65535 || !code_padding(c)) return damaged(c);
    }
    return c->range.failed ? damaged(c) : TSR_OK;
}

/* A stored block of the stream. */
static enum tsr_status put_stored(struct deflate_coder *c, uint32_t bytes, bool marker)
{
    const uint32_t begin = c->model.at;
    bool as_model = false;
    TSR_TRY(pass_stored(c, begin + bytes, &as_model));
    tsr_range_bit(&c->range, &c->chances.end, !as_model);
    if (as_model) {
        for (size_t i = 0; i < c->block.tokens.count; i += c->run) tsr_range_bit(&c->range, &c->chances.run, 0);
    } else {
        tsr_range_bit(&c->range, &c->chances.stored, 1);
        code_stored_size(c, bytes);
    }
    return code_rest(c, !as_model, begin, marker);
}

/* Reads the next block of the stream. */
static enum tsr_status next_block(struct deflate_coder *c, size_t *bytes, const uint8_t **stored)
{
    struct deflate_block *const b = &c->block;
    TSR_TRY(tsr_deflate_block(c->source, b, c->model.size - c->model.at, bytes, stored, c->error));
    c->spent += b->type == DEFLATE_DYNAMIC ? DEFLATE_TABLE_STEPS : DEFLATE_BLOCK_STEPS;
    return c->spent > c->most_spent ? costly(c) : TSR_OK;
}

/* A block of the stream: to the residue. */
static enum tsr_status put_block(struct deflate_coder *c, bool marker)
{
    struct deflate_block *b = &c->block;
    struct deflate_model *m = &c->model;
    const uint32_t begin = m->at;
    const uint8_t *stored = NULL;
    size_t bytes = 0;
    TSR_TRY(next_block(c, &bytes, &stored));
    if (b->type == DEFLATE_STORED) return put_stored(c, (uint32_t)bytes, marker);
    const size_t count = b->tokens.count;
    const bool as_model = begin + bytes == m->end
                              ? m->p.finder == DEFLATE_COPY ? bytes == 0 : m->p.symbols == 0 || count <= m->p.symbols
                              : m->p.finder != DEFLATE_COPY && is_full(c, count);
    tsr_range_bit(&c->range, &c->chances.end, !as_model);
    if (!as_model) {
        tsr_range_bit(&c->range, &c->chances.stored, 0);
        tsr_range_number(&c->range, c->chances.count, (uint32_t)count);
    }
    for (size_t i = 0; i < count; i += c->run) {
        TSR_TRY(put_run(c, b->tokens.tokens + i, count - i < c->run ? count - i : c->run));
        if (c->range.failed || m->at >= c->stop) return TSR_OK;
        if (m->work == 0) return costly(c);
    }
    return code_rest(c, false, begin, marker);
}

/* A block of the residue: to the stream. */
static enum tsr_status get_block(struct deflate_coder *c, bool marker)
{
    struct deflate_model *m = &c->model;
    const uint32_t begin = m->at;
    bool said = false, as_model = !tsr_range_bit(&c->range, &c->chances.end, 0);
    c->block.tokens.count = 0;
    c->block.padding = 0;
    if (!as_model && tsr_range_bit(&c->range, &c->chances.stored, 0)) {
        const uint32_t size = code_stored_size(c, 0);
        if (size > m->end - begin) return damaged(c);
        TSR_TRY(pass_stored(c, begin + size, &as_model));
        said = true;
    } else if (as_model && m->p.finder == DEFLATE_COPY) {
        tsr_deflate_jump(m, begin + (m->end - begin < 65535 ? m->end - begin : 65535));
    } else {
        const uint32_t count = as_model ? 0 : tsr_range_number(&c->range, c->chances.count, 0);
        TSR_TRY(get_tokens(c, as_model, count));
    }
    TSR_TRY(code_rest(c, said, begin, marker));
    if (c->block.type != DEFLATE_STORED && m->p.finder == DEFLATE_COPY && c->block.tokens.count == 0 && m->at > begin)
        return damaged(c);
    return tsr_deflate_put_block(c->sink, &c->block, m->plain + begin, c->error);
}

/* Whether an empty block stands here, at the end of a segment. If not, the next segment begins. */
static enum tsr_status code_segment(struct deflate_coder *c, uint32_t markers, bool *marker)
{
    struct deflate_model *m = &c->model;
    uint32_t end = m->size;
    const bool more = c->segment_at < c->segment_count;
    if (tsr_range_bit(&c->range, &c->chances.marker[markers > 0], more && c->segments[c->segment_at] == m->at)) {
        c->segment_at++;
        *marker = true;
        return TSR_OK;
    }
    if (more) end = c->segments[c->segment_at];
    if (tsr_range_bit(&c->range, &c->chances.segment_rest, end != m->size)) {
        if (tsr_range_bit(&c->range, &c->chances.segment_same, end - m->at != c->segment_last))
            c->segment_last = 1 + tsr_range_number(&c->range, c->chances.segment, end - m->at - 1);
        if (c->segment_last > m->size - m->at) return damaged(c);
        end = m->at + c->segment_last;
    } else {
        end = m->size;
    }
    tsr_deflate_segment(m, end);
    return TSR_OK;
}

enum tsr_status tsr_deflate_warm(struct deflate_coder *c, size_t from, size_t to)
{
    struct deflate_model *m = &c->model;
    if (to == 0) return TSR_OK;
    m->at = (uint32_t)from;
    tsr_deflate_start(m, m->at);
    m->end = m->size;
    while (m->at < to) {
        const uint8_t *stored = NULL;
        size_t bytes = 0;
        TSR_TRY(next_block(c, &bytes, &stored));
        if (c->block.type == DEFLATE_STORED) tsr_deflate_jump(m, m->at + (uint32_t)bytes);
        for (size_t i = 0; i < c->block.tokens.count; i++)
            tsr_deflate_advance(m, c->block.tokens.tokens[i] < 256 ? 0 : c->block.tokens.tokens[i]);
    }
    return TSR_OK;
}

/* Whether parameters that seemed right are seen to be wrong: of stored blocks, by another one. */
static bool strays(const struct deflate_coder *c)
{
    const bool copies = c->model.p.finder == DEFLATE_COPY && c->block.type == DEFLATE_STORED;
    return c->range.out->size > c->most_residue && !copies;
}

enum tsr_status tsr_deflate_code(struct deflate_coder *c)
{
    struct deflate_model *m = &c->model;
    uint32_t markers = 0;
    tsr_init_chances((struct tsr_chance *)&c->chances, sizeof c->chances / sizeof(struct tsr_chance));
    c->segment_at = c->segment_first;
    c->segment_last = c->stored_last = c->history = 0;
    do {
        bool marker = false;
        const size_t begin = m->at;
        if (m->at == m->end && m->at < m->size) TSR_TRY(code_segment(c, markers, &marker));
        markers = marker ? markers + 1 : 0;
        TSR_TRY(reads_stream(c) ? put_block(c, marker) : get_block(c, marker));
        if (c->range.failed) return damaged(c);
        if (c->range.out && c->most_residue < SIZE_MAX && strays(c)) {
            c->strayed = begin + 1;
            return TSR_OK;
        }
    } while (m->at < c->stop && !c->block.final && (c->end == 0 || bits_of(c) < c->end));
    if (c->end > 0 && (bits_of(c) != c->end || m->at != c->to || c->block.final != (c->to == m->size)))
        return damaged(c);
    return m->at < end_of(c) && m->at < c->stop ? damaged(c) : TSR_OK;
}
