/* Code tables as zlib makes them, and blocks as bits. DEFLATE.md 3. RFC 1951. */
#include "deflate_parts.h"

#include <string.h>

const uint8_t tsr_deflate_kind_order[DEFLATE_KINDS] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                       11, 4,  12, 3, 13, 2, 14, 1, 15};

enum { NODES = 2 * DEFLATE_LITERALS + 1 };

struct tree {
    uint32_t weight[NODES];
    uint16_t parent[NODES], heap[NODES + 1];
    uint8_t depth[NODES], length[NODES];
    uint32_t count; /* in the heap */
    uint32_t taken; /* heap[taken ..]: nodes that left it, the lightest last */
};

static bool lighter(const struct tree *t, uint32_t a, uint32_t b)
{
    return t->weight[a] < t->weight[b] || (t->weight[a] == t->weight[b] && t->depth[a] <= t->depth[b]);
}

static void sink_down(struct tree *t, uint32_t k)
{
    const uint16_t node = t->heap[k];
    for (uint32_t j = 2 * k; j <= t->count; j *= 2) {
        if (j < t->count && lighter(t, t->heap[j + 1], t->heap[j])) j++;
        if (lighter(t, node, t->heap[j])) break;
        t->heap[k] = t->heap[j];
        k = j;
    }
    t->heap[k] = node;
}

static uint16_t take(struct tree *t)
{
    const uint16_t node = t->heap[1];
    t->heap[1] = t->heap[t->count--];
    sink_down(t, 1);
    t->heap[--t->taken] = node;
    return node;
}

/* Joins the two lightest nodes until one is left. */
static void join(struct tree *t, uint32_t node)
{
    for (; t->count > 1; node++) {
        const uint16_t a = take(t), b = t->heap[1];
        t->heap[--t->taken] = b;
        t->weight[node] = t->weight[a] + t->weight[b];
        t->depth[node] = (uint8_t)((t->depth[a] > t->depth[b] ? t->depth[a] : t->depth[b]) + 1);
        t->parent[a] = t->parent[b] = (uint16_t)node;
        t->heap[1] = (uint16_t)node;
        sink_down(t, 1);
    }
    t->heap[--t->taken] = t->heap[1];
}

/* Lengths from parents, none above most. */
static void limit_lengths(struct tree *t, uint32_t symbols, uint32_t most)
{
    uint32_t count[17] = {0};
    int over = 0;
    t->length[t->heap[t->taken]] = 0;
    for (uint32_t h = t->taken + 1; h < NODES; h++) {
        const uint32_t node = t->heap[h];
        uint32_t length = t->length[t->parent[node]] + 1u;
        if (length > most) {
            length = most;
            over++;
        }
        t->length[node] = (uint8_t)length;
        if (node < symbols) count[length]++;
    }
    if (over == 0) return;
    for (; over > 0; over -= 2) {
        uint32_t n = most - 1;
        while (count[n] == 0) n--;
        count[n]--;
        count[n + 1] += 2;
        count[most]--;
    }
    uint32_t h = NODES;
    for (uint32_t n = most; n > 0; n--)
        while (count[n] > 0) {
            const uint32_t node = t->heap[--h];
            if (node >= symbols) continue;
            t->length[node] = (uint8_t)n;
            count[n]--;
        }
}

/* Returns the number of symbols up to the last that has a code. */
static uint32_t build(const uint32_t *counts, uint32_t symbols, uint32_t most, uint8_t *lengths)
{
    struct tree t;
    uint32_t last = 0, used = 0;
    memset(&t, 0, sizeof t);
    t.taken = NODES;
    for (uint32_t s = 0; s < symbols; s++) {
        t.weight[s] = counts[s];
        if (counts[s] == 0) continue;
        t.heap[++t.count] = (uint16_t)s;
        last = s;
        used++;
    }
    for (; used < 2; used++) { /* two codes at least */
        const uint32_t s = used == 0 ? 0 : last < 2 ? ++last : 0;
        t.heap[++t.count] = (uint16_t)s;
        t.weight[s] = 1;
    }
    for (uint32_t k = t.count / 2; k > 0; k--) sink_down(&t, k);
    join(&t, symbols);
    limit_lengths(&t, symbols, most);
    for (uint32_t s = 0; s < symbols; s++) lengths[s] = t.weight[s] ? t.length[s] : 0;
    return last + 1;
}

/* Literals are counted in two arrays by turns: an equal one that follows need not wait. */
static void count_tokens(struct deflate_counts *counts, const struct deflate_tokens *tokens)
{
    uint32_t lengths[DEFLATE_MOST + 1] = {0}, odd[256] = {0}, extra;
    const uint32_t *const token = tokens->tokens;
    memset(counts, 0, sizeof *counts);
    for (size_t i = 0; i < tokens->count; i++) {
        if (token[i] < 256) {
            uint32_t *const literals = i % 2 ? odd : counts->literals;
            literals[token[i]]++;
        } else {
            lengths[deflate_length(token[i])]++;
            counts->distances[deflate_distance_symbol(token[i] & 65535, &extra)]++;
        }
    }
    for (uint32_t s = 0; s < 256; s++) counts->literals[s] += odd[s];
    counts->literals[256] = 1;
    for (uint32_t n = DEFLATE_LEAST; n <= DEFLATE_MOST; n++)
        counts->literals[deflate_length_symbol(n, &extra)] += lengths[n];
}

void tsr_deflate_fixed(uint8_t *literals, uint8_t *distances)
{
    for (uint32_t s = 0; s < 288; s++) literals[s] = s < 144 ? 8 : s < 256 ? 9 : s < 280 ? 7 : 8;
    memset(distances, 5, 32);
}

/* zlib's choice at lengths[at]: runs do not go from literals to distances. */
struct deflate_op tsr_deflate_op(const struct deflate_head *head, uint32_t at)
{
    const uint32_t part = at < head->literals ? 0 : head->literals;
    const uint32_t end = part ? head->literals + head->distances : head->literals;
    const uint8_t length = head->lengths[at];
    const bool repeats = at > part && head->lengths[at - 1] == length;
    const uint32_t most = length == 0 ? 138 : 6;
    uint32_t run = 1;
    while (run < most && at + run < end && head->lengths[at + run] == length) run++;
    if (length == 0 && run >= 11) return (struct deflate_op){18, (uint8_t)(run - 11)};
    if (length == 0 && run >= 3) return (struct deflate_op){17, (uint8_t)(run - 3)};
    if (length != 0 && run >= 3 && repeats) return (struct deflate_op){16, (uint8_t)(run - 3)};
    return (struct deflate_op){length, 0};
}

uint32_t tsr_deflate_kinds(const struct deflate_head *head, uint8_t *lengths)
{
    uint32_t counts[DEFLATE_KINDS] = {0}, kinds = DEFLATE_KINDS;
    for (uint32_t i = 0; i < head->op_count; i++) counts[head->ops[i].symbol]++;
    build(counts, DEFLATE_KINDS, 7, lengths);
    while (kinds > 4 && lengths[tsr_deflate_kind_order[kinds - 1]] == 0) kinds--;
    return kinds;
}

static uint32_t op_run(struct deflate_op op)
{
    return op.symbol < 16 ? 1 : op.symbol == 18 ? op.extra + 11u : op.extra + 3u;
}

static const uint8_t literal_extra[288] = {[265] = 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5},
                     distance_extra[32] = {[4] = 1, 1, 2, 2, 3, 3,  4,  4,  5,  5,  6,  6,  7,
                                           7,       8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13};

/* Bits of all tokens and the end: fewer than 2^29, of at most 2^22 tokens. */
static uint32_t body_bits(const struct deflate_counts *counts, const uint8_t *literals, const uint8_t *distances)
{
    uint32_t bits = 0;
    for (uint32_t s = 0; s < DEFLATE_LITERALS; s++) bits += counts->literals[s] * (literals[s] + literal_extra[s]);
    for (uint32_t s = 0; s < DEFLATE_DISTANCES; s++) bits += counts->distances[s] * (distances[s] + distance_extra[s]);
    return bits;
}

static uint64_t head_bits(const struct deflate_head *head)
{
    uint64_t bits = 14 + 3 * head->kinds;
    for (uint32_t i = 0; i < head->op_count; i++) {
        const uint32_t symbol = head->ops[i].symbol;
        bits += head->kind_lengths[symbol] + (symbol == 16 ? 2u : symbol == 17 ? 3u : symbol == 18 ? 7u : 0u);
    }
    return bits;
}

static void make_head(const struct deflate_counts *counts, struct deflate_head *head)
{
    uint8_t literals[288], distances[32];
    head->literals = build(counts->literals, DEFLATE_LITERALS, 15, literals);
    head->distances = build(counts->distances, DEFLATE_DISTANCES, 15, distances);
    memset(head->lengths, 0, sizeof head->lengths);
    memcpy(head->lengths, literals, head->literals);
    memcpy(head->lengths + head->literals, distances, head->distances);
    head->op_count = 0;
    for (uint32_t at = 0; at < head->literals + head->distances;) {
        const struct deflate_op op = tsr_deflate_op(head, at);
        /* The rest of a run that is too short to repeat is sent length by length. */
        head->ops[head->op_count++] = op;
        at += op_run(op);
    }
    head->kinds = tsr_deflate_kinds(head, head->kind_lengths);
}

void tsr_deflate_head(const struct deflate_tokens *tokens, struct deflate_head *head)
{
    struct deflate_counts counts;
    count_tokens(&counts, tokens);
    make_head(&counts, head);
}

enum deflate_type tsr_deflate_type(const struct deflate_tokens *tokens, size_t stored, bool may_store, bool only_fixed,
                                   struct deflate_head *head, bool *has_head)
{
    /* A head has its sizes, and runs of at most 138 in 8 bits for 257 lengths. Each token and the end have a bit. */
    enum { LEAST_HEAD = 14 + 3 * 4 + 15 };
    uint8_t literals[288], distances[32];
    struct deflate_counts counts;
    count_tokens(&counts, tokens);
    tsr_deflate_fixed(literals, distances);
    const uint64_t fixed = (body_bits(&counts, literals, distances) + 10) / 8;
    uint64_t best = (LEAST_HEAD + tokens->count + 1 + 10) / 8;
    *has_head = fixed > best && !only_fixed;
    if (*has_head) {
        make_head(&counts, head);
        /* symbols without a length have no count */
        best = (head_bits(head) + body_bits(&counts, head->lengths, head->lengths + head->literals) + 10) / 8;
    }
    if (fixed <= best || only_fixed) best = fixed;
    if (may_store && stored + 4 <= best) return DEFLATE_STORED;
    return fixed == best ? DEFLATE_FIXED : DEFLATE_DYNAMIC;
}

/* The lowest bits of a code, so many, in the other order. */
static uint16_t reverse(uint32_t code, uint32_t length)
{
    code = (code & 0x5555) << 1 | (code >> 1 & 0x5555);
    code = (code & 0x3333) << 2 | (code >> 2 & 0x3333);
    code = (code & 0x0f0f) << 4 | (code >> 4 & 0x0f0f);
    code = (code & 0x00ff) << 8 | (code >> 8 & 0x00ff);
    return (uint16_t)(code >> (16 - length));
}

static void put_bits(struct deflate_sink *sink, uint32_t value, uint32_t bits)
{
    sink->bits |= (uint64_t)value << sink->count;
    sink->count += bits;
    while (sink->count >= 8) {
        sink->stream->bytes[sink->stream->size++] = (uint8_t)sink->bits;
        sink->bits >>= 8;
        sink->count -= 8;
    }
}

/* Codes with their first bit lowest. */
static void make_codes(const uint8_t *lengths, uint32_t symbols, uint16_t *codes)
{
    uint32_t count[17] = {0}, next[17] = {0};
    for (uint32_t s = 0; s < symbols; s++) count[lengths[s]]++;
    count[0] = 0;
    for (uint32_t n = 1; n < 16; n++) next[n + 1] = (next[n] + count[n]) << 1;
    for (uint32_t s = 0; s < symbols; s++) codes[s] = lengths[s] ? reverse(next[lengths[s]]++, lengths[s]) : 0;
}

static void put_head(struct deflate_sink *sink, const struct deflate_head *head)
{
    uint16_t codes[DEFLATE_KINDS];
    make_codes(head->kind_lengths, DEFLATE_KINDS, codes);
    put_bits(sink, (head->literals - 257) | (head->distances - 1) << 5 | (head->kinds - 4) << 10, 14);
    for (uint32_t i = 0; i < head->kinds; i++) put_bits(sink, head->kind_lengths[tsr_deflate_kind_order[i]], 3);
    for (uint32_t i = 0; i < head->op_count; i++) {
        const struct deflate_op op = head->ops[i];
        put_bits(sink, codes[op.symbol], head->kind_lengths[op.symbol]);
        if (op.symbol >= 16) put_bits(sink, op.extra, op.symbol == 16 ? 2 : op.symbol == 17 ? 3 : 7);
    }
}

/* Bits that are not written yet. */
struct waiting {
    uint64_t bits;
    uint32_t count;
};

/* At most 32 bits more, of which whole words are written. What is next is kept in registers. */
static inline void put_some(struct waiting *s, uint8_t **to, uint32_t value, uint32_t bits)
{
    s->bits |= (uint64_t)value << s->count;
    s->count += bits;
    if (s->count < 32) return;
    tsr_put_u32(*to, (uint32_t)s->bits);
    *to += 4;
    s->bits >>= 32;
    s->count -= 32;
}

/* What a length is written as. */
struct length_code {
    uint32_t bits; /* the code, and the extra bits after it */
    uint8_t count; /* 0: there is none */
};

static void make_length_codes(const struct deflate_written_codes *codes, struct length_code *made)
{
    for (uint32_t length = DEFLATE_LEAST; length <= DEFLATE_MOST; length++) {
        uint32_t extra;
        const uint32_t symbol = deflate_length_symbol(length, &extra), count = codes->lengths[symbol];
        made[length] =
            (struct length_code){codes->literals[symbol] | ((length - DEFLATE_LEAST) & ((1u << extra) - 1)) << count,
                                 (uint8_t)(count ? count + extra : 0)};
    }
}

static inline void put_word(uint8_t *to, uint64_t bits)
{
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    bits = __builtin_bswap64(bits);
#endif
    memcpy(to, &bits, sizeof bits);
}

/* The same of a token for which there is room in any case: one store each, of which whole bytes stay. */
static bool put_tokens_fast(struct deflate_sink *sink, const struct deflate_tokens *tokens,
                            const struct deflate_written_codes *codes)
{
    struct length_code lengths[DEFLATE_MOST + 1];
    uint64_t bits = sink->bits;
    uint32_t count = sink->count;
    uint8_t *to = sink->stream->bytes + sink->stream->size;
    make_length_codes(codes, lengths);
    for (size_t i = 0; i < tokens->count; i++) {
        const uint32_t token = tokens->tokens[i];
        if (token < 256) {
            if (codes->lengths[token] == 0) return false;
            bits |= (uint64_t)codes->literals[token] << count;
            count += codes->lengths[token];
        } else {
            uint32_t extra;
            const struct length_code length = lengths[deflate_length(token)];
            const uint32_t distance = token & 65535, far = deflate_distance_symbol(distance, &extra),
                           code = codes->far_lengths[far];
            if (length.count == 0 || code == 0) return false;
            bits |= (uint64_t)length.bits << count;
            count += length.count;
            bits |= (uint64_t)(codes->distances[far] | ((distance - 1) & ((1u << extra) - 1)) << code) << count;
            count += code + extra;
        }
        put_word(to, bits);
        to += count / 8;
        bits >>= count / 8 * 8;
        count %= 8;
    }
    sink->stream->size = (size_t)(to - sink->stream->bytes);
    sink->bits = bits;
    sink->count = count;
    return true;
}

static bool put_tokens_closely(struct deflate_sink *sink, const struct deflate_tokens *tokens,
                               const struct deflate_written_codes *codes)
{
    const uint8_t *const literals = codes->lengths, *const distances = codes->far_lengths;
    struct waiting s = {sink->bits, sink->count};
    uint8_t *to = sink->stream->bytes + sink->stream->size;
    for (size_t i = 0; i < tokens->count; i++) {
        const uint32_t token = tokens->tokens[i];
        if (token < 256) {
            if (literals[token] == 0) return false;
            put_some(&s, &to, codes->literals[token], literals[token]);
            continue;
        }
        uint32_t extra, far_extra;
        const uint32_t length = deflate_length(token), symbol = deflate_length_symbol(length, &extra);
        const uint32_t distance = token & 65535, far = deflate_distance_symbol(distance, &far_extra);
        if (literals[symbol] == 0 || distances[far] == 0) return false;
        put_some(&s, &to,
                 codes->literals[symbol] | ((length - DEFLATE_LEAST) & ((1u << extra) - 1)) << literals[symbol],
                 literals[symbol] + extra);
        put_some(&s, &to, codes->distances[far] | ((distance - 1) & ((1u << far_extra) - 1)) << distances[far],
                 distances[far] + far_extra);
    }
    sink->stream->size = (size_t)(to - sink->stream->bytes);
    sink->bits = s.bits;
    sink->count = s.count;
    return true;
}

enum { TOKEN_BYTES = 6, HEAD_BYTES = 1024 }; /* at most. The head's are more than a block needs */

static bool put_tokens(struct deflate_sink *sink, const struct deflate_tokens *tokens,
                       const struct deflate_written_codes *codes, bool is_roomy)
{
    if (!(is_roomy ? put_tokens_fast : put_tokens_closely)(sink, tokens, codes)) return false;
    put_bits(sink, codes->literals[256], codes->lengths[256]);
    return codes->lengths[256] > 0;
}

static enum tsr_status put_stored(struct deflate_sink *sink, const struct deflate_block *block, const uint8_t *stored,
                                  struct tsr_error *error)
{
    TSR_TRY(tsr_bytes_reserve(sink->stream, (sink->count + 3 + 7) / 8 + 4 + block->stored, error));
    put_bits(sink, block->final, 3);
    put_bits(sink, block->padding, -sink->count & 7);
    put_bits(sink, (uint32_t)block->stored, 16);
    put_bits(sink, (uint32_t)block->stored ^ 65535, 16);
    return tsr_bytes_put(sink->stream, stored, block->stored, error);
}

/* Makes room for a block: where there is room for more bits than tokens can have, without a look at them. *is_roomy: a
 * word may be stored where the last token begins. */
static enum tsr_status reserve(struct deflate_sink *sink, const struct deflate_block *block,
                               const struct deflate_written_codes *codes, bool *is_roomy, struct tsr_error *error)
{
    enum { FEW = 256 };
    struct deflate_counts counts;
    const size_t count = block->tokens.count, most = HEAD_BYTES + TOKEN_BYTES * count;
    const struct tsr_bytes *const stream = sink->stream;
    *is_roomy = stream->limit - stream->size > most;
    if (*is_roomy && (count < FEW || stream->capacity - stream->size > most))
        return tsr_bytes_reserve(sink->stream, most, error);
    count_tokens(&counts, &block->tokens);
    const uint64_t head = block->type == DEFLATE_DYNAMIC ? head_bits(&block->head) : 0,
                   bits = sink->count + 3 + head + body_bits(&counts, codes->lengths, codes->far_lengths);
    const size_t bytes = (size_t)(bits / 8);
    *is_roomy = stream->limit - stream->size > bytes + sizeof(uint64_t);
    return tsr_bytes_reserve(sink->stream, *is_roomy ? bytes + sizeof(uint64_t) + 1 : bytes, error);
}

enum tsr_status tsr_deflate_put_block(struct deflate_sink *sink, const struct deflate_block *block,
                                      const uint8_t *stored, struct tsr_error *error)
{
    const bool is_dynamic = block->type == DEFLATE_DYNAMIC;
    struct deflate_written_codes *const c = is_dynamic ? &sink->dynamic : &sink->fixed;
    if (block->type == DEFLATE_STORED) return put_stored(sink, block, stored, error);
    if (is_dynamic) {
        memset(c, 0, sizeof *c);
        memcpy(c->lengths, block->head.lengths, block->head.literals);
        memcpy(c->far_lengths, block->head.lengths + block->head.literals, block->head.distances);
    } else if (!c->are_made) {
        tsr_deflate_fixed(c->lengths, c->far_lengths);
    }
    if (!c->are_made) {
        make_codes(c->lengths, 288, c->literals);
        make_codes(c->far_lengths, 32, c->distances);
        c->are_made = true;
    }
    bool is_roomy;
    TSR_TRY(reserve(sink, block, c, &is_roomy, error));
    put_bits(sink, (block->final ? 1u : 0u) | (uint32_t)block->type << 1, 3);
    if (is_dynamic) put_head(sink, &block->head);
    if (!put_tokens(sink, &block->tokens, c, is_roomy))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "a deflate block has a token without a code");
    return TSR_OK;
}

enum tsr_status tsr_deflate_finish(struct deflate_sink *sink, uint32_t padding, struct tsr_error *error)
{
    if (sink->count == 0) return TSR_OK;
    const uint8_t last = (uint8_t)(sink->bits | (uint64_t)padding << sink->count);
    sink->bits = sink->count = 0;
    return tsr_bytes_put_u8(sink->stream, last, error);
}
