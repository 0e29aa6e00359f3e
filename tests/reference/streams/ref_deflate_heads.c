/* DEFLATE.md 3: heads as zlib makes them; the bits of blocks (RFC 1951). */
#include "ref_deflate.h"

#include <string.h>

/* ---- Bits, least significant first ---- */

void ref_deflate_bits(struct ref_deflate_out *out, uint32_t value, unsigned count)
{
    if (out->bits / 8 + 8 > out->room) {
        out->room = out->room * 2 + 4096;
        uint8_t *more = ref_alloc((size_t)out->room, 1);
        if (out->bits > 0) memcpy(more, out->bytes, (size_t)(out->bits + 7) / 8);
        out->bytes = more;
    }
    for (unsigned i = 0; i < count; i++, out->bits++)
        out->bytes[out->bits / 8] |= (uint8_t)((value >> i & 1) << out->bits % 8);
}

/* ---- RFC 1951 3.2.5: symbols ---- */

struct part { /* a symbol with its extra bits */
    unsigned symbol, extra_bits, extra;
};

static struct part length_part(uint32_t length)
{
    if (length == 258) return (struct part){285, 0, 0};
    unsigned base = 3, symbol = 257;
    for (;; symbol++) {
        unsigned bits = symbol < 265 ? 0 : (symbol - 261) / 4;
        if (length < base + (1u << bits)) return (struct part){symbol, bits, length - base};
        base += 1u << bits;
    }
}

static struct part distance_part(uint32_t distance)
{
    unsigned base = 1;
    for (unsigned symbol = 0;; symbol++) {
        unsigned bits = symbol < 4 ? 0 : symbol / 2 - 1;
        if (distance < base + (1u << bits)) return (struct part){symbol, bits, distance - base};
        base += 1u << bits;
    }
}

/* ---- Lengths (DEFLATE.md 3) ---- */

#define MOST_NODES (2 * 288)
struct tree {
    uint64_t weight[MOST_NODES]; /* symbols, then inner nodes */
    unsigned depth[MOST_NODES], parent[MOST_NODES], length[MOST_NODES];
    unsigned h[MOST_NODES + 1], n, list[MOST_NODES], listed;
};

static bool is_lighter(const struct tree *t, unsigned a, unsigned b)
{
    return t->weight[a] < t->weight[b] || (t->weight[a] == t->weight[b] && t->depth[a] <= t->depth[b]);
}

static void sink(struct tree *t, unsigned k)
{
    unsigned v = t->h[k];
    for (unsigned j = 2 * k; j <= t->n; j *= 2) {
        if (j < t->n && is_lighter(t, t->h[j + 1], t->h[j])) j++;
        if (is_lighter(t, v, t->h[j])) break;
        t->h[k] = t->h[j];
        k = j;
    }
    t->h[k] = v;
}

/* Steps 1 to 3. */
static void build_tree(struct tree *t, const uint64_t *counts, unsigned symbols)
{
    memset(t, 0, sizeof *t);
    for (unsigned s = 0; s < symbols; s++) {
        t->weight[s] = counts[s];
        if (counts[s] > 0) t->h[++t->n] = s;
    }
    while (t->n < 2) {
        unsigned last = t->h[t->n], number = t->n == 0 ? 0 : last < 2 ? last + 1 : 0;
        t->weight[number] = 1;
        t->h[++t->n] = number;
    }
    for (unsigned k = t->n / 2; k > 0; k--) sink(t, k);
    unsigned node = symbols;
    while (t->n > 1) {
        unsigned a = t->h[1];
        t->h[1] = t->h[t->n--];
        sink(t, 1);
        unsigned b = t->h[1];
        t->list[t->listed++] = a;
        t->list[t->listed++] = b;
        t->weight[node] = t->weight[a] + t->weight[b];
        t->depth[node] = (t->depth[a] > t->depth[b] ? t->depth[a] : t->depth[b]) + 1;
        t->parent[a] = t->parent[b] = node;
        t->h[1] = node++;
        sink(t, 1);
    }
    t->list[t->listed++] = t->h[1];
}

/* lengths: of each symbol, 0 if it has no code. Returns the number of the last symbol that has one. */
static unsigned make_lengths(const uint64_t *counts, unsigned symbols, unsigned largest, uint8_t *lengths)
{
    struct tree t;
    build_tree(&t, counts, symbols);
    unsigned c[17] = {0}, over = 0;
    for (unsigned i = t.listed - 1; i-- > 0;) {
        unsigned node = t.list[i], length = t.length[t.parent[node]] + 1;
        if (length > largest) {
            length = largest;
            over++;
        }
        t.length[node] = length;
        if (node < symbols) c[length]++;
    }
    bool cut = over > 0;
    for (int left = (int)over; left > 0; left -= 2) {
        unsigned l = largest - 1;
        while (c[l] == 0) l--;
        c[l]--;
        c[l + 1] += 2;
        c[largest]--;
    }
    unsigned l = largest, last = 0;
    memset(lengths, 0, symbols);
    for (unsigned i = 0; i < t.listed; i++) {
        unsigned s = t.list[i];
        if (s >= symbols) continue;
        while (cut && c[l] == 0) l--;
        if (cut) c[l]--;
        lengths[s] = (uint8_t)(cut ? l : t.length[s]);
        if (s > last) last = s;
    }
    return last;
}

/* ---- Heads ---- */

static const uint8_t order[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};

struct ref_op ref_usual_op(const struct ref_deflate_head *head, unsigned i)
{
    const uint8_t *lengths = head->lengths;
    bool is_first = i == 0 || i == head->literals;
    unsigned end = i < head->literals ? head->literals : head->literals + head->distances;
    unsigned v = lengths[i], run = 1, most = v == 0 ? 138 : 6;
    while (run < most && i + run < end && lengths[i + run] == v) run++;
    if (v == 0 && run >= 11) return (struct ref_op){18, (uint8_t)(run - 11), (uint8_t)run};
    if (v == 0 && run >= 3) return (struct ref_op){17, (uint8_t)(run - 3), (uint8_t)run};
    if (v > 0 && run >= 3 && !is_first && lengths[i - 1] == v)
        return (struct ref_op){16, (uint8_t)(run - 3), (uint8_t)run};
    return (struct ref_op){(uint8_t)v, 0, 1};
}

void ref_usual_kinds(struct ref_deflate_head *head)
{
    uint64_t counts[19] = {0};
    for (unsigned i = 0; i < head->op_count; i++) counts[head->ops[i].symbol]++;
    (void)make_lengths(counts, 19, 7, head->kind);
}

unsigned ref_usual_kind_count(const struct ref_deflate_head *head)
{
    unsigned count = 19;
    while (count > 4 && head->kind[order[count - 1]] == 0) count--;
    return count;
}

void ref_usual_head(const uint8_t *x, const struct ref_block *block, struct ref_deflate_head *head)
{
    uint64_t counts[286] = {0}, distances[30] = {0}, at = block->begin;
    for (uint64_t i = 0; i < block->token_count; i++) {
        struct ref_match token = block->tokens[i];
        if (token.length == 0) {
            counts[x[at++]]++;
        } else {
            counts[length_part(token.length).symbol]++;
            distances[distance_part(token.distance).symbol]++;
            at += token.length;
        }
    }
    counts[256] = 1;
    memset(head, 0, sizeof *head);
    uint8_t distance_lengths[30];
    head->literals = make_lengths(counts, 286, 15, head->lengths) + 1;
    head->distances = make_lengths(distances, 30, 15, distance_lengths) + 1;
    memcpy(head->lengths + head->literals, distance_lengths, head->distances);
    for (unsigned i = 0; i < head->literals + head->distances;) {
        struct ref_op op = ref_usual_op(head, i);
        head->ops[head->op_count++] = op;
        i += op.repeats;
    }
    ref_usual_kinds(head);
    head->kinds = ref_usual_kind_count(head);
}

/* ---- Codes and bits ---- */

struct code { /* of lengths, then of distances */
    uint8_t length[320];
    uint16_t word[320]; /* to be written from its least significant bit */
};

/* RFC 1951 3.2.2 */
static void make_words(struct code *code, unsigned symbols)
{
    unsigned count[16] = {0}, next[17] = {0};
    for (unsigned s = 0; s < symbols; s++) count[code->length[s]]++;
    count[0] = 0;
    for (unsigned l = 1; l < 16; l++) next[l] = (next[l - 1] + count[l - 1]) << 1;
    for (unsigned s = 0; s < symbols; s++) {
        unsigned l = code->length[s], word = l == 0 ? 0 : next[l]++, turned = 0;
        for (unsigned i = 0; i < l; i++) turned |= (word >> i & 1) << (l - 1 - i);
        code->word[s] = (uint16_t)turned;
    }
}

static void codes_of_head(const struct ref_deflate_head *head, struct code *literals, struct code *distances)
{
    memset(literals, 0, sizeof *literals);
    memset(distances, 0, sizeof *distances);
    memcpy(literals->length, head->lengths, head->literals);
    memcpy(distances->length, head->lengths + head->literals, head->distances);
    make_words(literals, 286);
    make_words(distances, 30);
}

static void fixed_codes(struct code *literals, struct code *distances)
{
    for (unsigned s = 0; s < 288; s++) literals->length[s] = s < 144 ? 8 : s < 256 ? 9 : s < 280 ? 7 : 8;
    for (unsigned s = 0; s < 32; s++) distances->length[s] = 5;
    make_words(literals, 288);
    make_words(distances, 32);
}

/* Writes a symbol and its extra bits; if out is null, only counts the bits. False: the symbol has no code. */
static bool put_part(struct ref_deflate_out *out, const struct code *code, struct part part, uint64_t *bits)
{
    unsigned length = code->length[part.symbol];
    *bits += length + part.extra_bits;
    if (!out) return true;
    ref_deflate_bits(out, code->word[part.symbol], length);
    ref_deflate_bits(out, part.extra, part.extra_bits);
    return length > 0;
}

static bool put_tokens(struct ref_deflate_out *out, const uint8_t *x, const struct ref_block *block,
                       const struct code *literals, const struct code *distances, uint64_t *bits)
{
    uint64_t at = block->begin;
    bool good = true;
    for (uint64_t i = 0; i < block->token_count; i++) {
        struct ref_match token = block->tokens[i];
        if (token.length == 0) {
            good &= put_part(out, literals, (struct part){x[at++], 0, 0}, bits);
        } else {
            good &= put_part(out, literals, length_part(token.length), bits);
            good &= put_part(out, distances, distance_part(token.distance), bits);
            at += token.length;
        }
    }
    return put_part(out, literals, (struct part){256, 0, 0}, bits) && good;
}

/* The head without the block's first 3 bits. */
static void put_head(struct ref_deflate_out *out, const struct ref_deflate_head *head, uint64_t *bits)
{
    struct code code = {{0}, {0}};
    memcpy(code.length, head->kind, 19);
    make_words(&code, 19);
    *bits += 14 + 3 * head->kinds;
    if (out) {
        ref_deflate_bits(out, head->literals - 257, 5);
        ref_deflate_bits(out, head->distances - 1, 5);
        ref_deflate_bits(out, head->kinds - 4, 4);
        for (unsigned i = 0; i < head->kinds; i++) ref_deflate_bits(out, head->kind[order[i]], 3);
    }
    for (unsigned i = 0; i < head->op_count; i++) {
        struct ref_op op = head->ops[i];
        struct part part = {op.symbol, op.symbol < 16 ? 0 : op.symbol == 16 ? 2 : op.symbol == 17 ? 3 : 7, op.extra};
        (void)put_part(out, &code, part, bits); /* DEFLATE.md 4: an op that has no code has only its extra bits */
    }
}

unsigned ref_usual_type(const struct ref_deflate_model *m, const struct ref_block *block,
                        const struct ref_deflate_head *head)
{
    struct code literals, distances;
    uint64_t dynamic = 10, fixed = 10;
    codes_of_head(head, &literals, &distances);
    put_head(NULL, head, &dynamic);
    (void)put_tokens(NULL, m->x, block, &literals, &distances, &dynamic);
    fixed_codes(&literals, &distances);
    (void)put_tokens(NULL, m->x, block, &literals, &distances, &fixed);
    dynamic /= 8;
    fixed /= 8;
    if (fixed <= dynamic || m->f.flags & 2) dynamic = fixed;
    if (block->begin >= m->base && block->end - block->begin + 4 <= dynamic) return 0;
    return fixed == dynamic ? 1 : 2;
}

bool ref_put_compressed(struct ref_deflate_out *out, const uint8_t *x, const struct ref_block *block,
                        const struct ref_deflate_head *head)
{
    struct code literals, distances;
    uint64_t bits = 0;
    if (head)
        codes_of_head(head, &literals, &distances);
    else
        fixed_codes(&literals, &distances);
    if (head) put_head(out, head, &bits);
    return put_tokens(out, x, block, &literals, &distances, &bits) ||
           ref_fail("a token of a deflate stream has no code");
}
