/* Reads the blocks of a deflate stream as tokens. RFC 1951. See deflate_parts.h. */
#include "deflate_parts.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { FAST_BITS = DEFLATE_FAST_BITS, CODE_BITS = DEFLATE_CODE_BITS };

enum tsr_status tsr_deflate_grow(struct deflate_tokens *tokens, struct tsr_error *error)
{
    static_assert((TSR_DEFLATE_TOKENS & (TSR_DEFLATE_TOKENS - 1)) == 0, "the capacity becomes the limit itself");
    if (tokens->count == TSR_DEFLATE_TOKENS)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "a block of a deflate stream has more than 2^22 tokens");
    const size_t capacity = tokens->capacity ? 2 * tokens->capacity : 4096;
    uint32_t *grown = realloc(tokens->tokens, capacity * sizeof *grown);
    if (!grown) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu tokens", capacity);
    tokens->tokens = grown;
    tokens->capacity = capacity;
    return TSR_OK;
}

static uint32_t reverse(uint32_t code, uint32_t length)
{
    uint32_t reversed = 0;
    for (; length > 0; length--, code >>= 1) reversed = reversed << 1 | (code & 1);
    return reversed;
}

/* False if there are more codes than bits allow. */
static bool make_code(struct deflate_code *code, const uint8_t *lengths, uint32_t symbols)
{
    uint16_t offset[CODE_BITS + 2] = {0};
    uint32_t first[CODE_BITS + 2] = {0}, longest = 1;
    memset(code->count, 0, sizeof code->count);
    for (uint32_t s = 0; s < symbols; s++) code->count[lengths[s]]++;
    code->count[0] = 0;
    int32_t left = 1;
    for (uint32_t n = 1; n <= CODE_BITS; n++) {
        left = 2 * left - code->count[n];
        if (left < 0) return false;
        first[n + 1] = (first[n] + code->count[n]) << 1;
        offset[n + 1] = (uint16_t)(offset[n] + code->count[n]);
        if (code->count[n] > 0) longest = n;
    }
    const uint32_t bits = longest < FAST_BITS ? longest : FAST_BITS; /* the table repeats itself after so many */
    memset(code->fast, 0, sizeof *code->fast << bits);
    for (uint32_t s = 0; s < symbols; s++) {
        const uint32_t length = lengths[s];
        if (length == 0) continue;
        code->sorted[offset[length]++] = (uint16_t)s;
        const uint32_t begin = reverse(first[length]++, length);
        if (length <= bits)
            for (uint32_t k = begin; k < 1u << bits; k += 1u << length) code->fast[k] = (uint16_t)(s << 4 | length);
    }
    for (uint32_t n = bits; n < FAST_BITS; n++) memcpy(code->fast + (1u << n), code->fast, sizeof *code->fast << n);
    return true;
}

static inline uint64_t next_eight(const struct deflate_source *source)
{
    uint64_t bytes;
    memcpy(&bytes, source->stream + source->at, sizeof bytes);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return bytes;
#else
    return __builtin_bswap64(bytes);
#endif
}

/* Takes bytes as long as one fits. */
static inline void refill(struct deflate_source *source)
{
    if (source->size - source->at >= sizeof(uint64_t)) {
        const uint32_t bytes = (64 - source->count) / 8;
        if (bytes == 0) return;
        source->bits |= (next_eight(source) & UINT64_MAX >> (64 - 8 * bytes)) << source->count;
        source->at += bytes;
        source->count += 8 * bytes;
        return;
    }
    while (source->count <= 56 && source->at < source->size) {
        source->bits |= (uint64_t)source->stream[source->at++] << source->count;
        source->count += 8;
    }
}

static inline void drop_bits(struct deflate_source *source, uint32_t bits)
{
    source->bits >>= bits;
    source->count -= bits;
}

/* At most 32 bits. False if the stream ends before. */
static inline bool get_bits(struct deflate_source *source, uint32_t bits, uint32_t *value)
{
    if (source->count < bits) refill(source);
    if (source->count < bits) return false;
    *value = (uint32_t)(source->bits & (((uint64_t)1 << bits) - 1));
    drop_bits(source, bits);
    return true;
}

enum { NO_SYMBOL = 65535 };

/* The symbol that the first of count bits are, whose code is longer than FAST_BITS: symbol << 4 | length. 0: none. */
static uint32_t find_long(const struct deflate_code *code, uint64_t bits, uint32_t count)
{
    uint32_t value = 0, first = 0, index = 0;
    for (uint32_t n = 1; n <= CODE_BITS && n <= count; n++) {
        value |= (uint32_t)(bits >> (n - 1)) & 1;
        if (value - first < code->count[n]) return (uint32_t)code->sorted[index + value - first] << 4 | n;
        index += code->count[n];
        first = (first + code->count[n]) << 1;
        value <<= 1;
    }
    return 0;
}

/* The next symbol; NO_SYMBOL: no such code, or the end. */
static inline uint32_t get_symbol(struct deflate_source *source, const struct deflate_code *code)
{
    uint32_t found = code->fast[source->bits & ((1 << FAST_BITS) - 1)];
    if (found == 0) found = find_long(code, source->bits, source->count);
    if (found == 0 || (found & 15) > source->count) return NO_SYMBOL;
    drop_bits(source, found & 15);
    return found >> 4;
}

/* The stream ends, or has bits that cannot be. With bits enough for any code left, it does not end there. */
static enum tsr_status ends(const struct deflate_source *source, struct tsr_error *error)
{
    if (source->at == source->size && source->count < CODE_BITS + 13)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, source->size, "a deflate stream ends too early");
    return tsr_fail_at(error, TSR_ERROR_CORRUPT, source->at, "a deflate stream has an unknown code near its byte %zu",
                       source->at);
}

static enum tsr_status grows(struct tsr_error *error)
{
    return tsr_fail(error, TSR_ERROR_CORRUPT, "a deflate stream becomes more bytes than it may");
}

static enum tsr_status get_lengths(struct deflate_source *source, struct deflate_head *head, struct tsr_error *error)
{
    static const uint8_t extra[] = {2, 3, 7}, least[] = {3, 3, 11};
    struct deflate_code kinds;
    if (!make_code(&kinds, head->kind_lengths, DEFLATE_KINDS)) return ends(source, error);
    const uint32_t all = head->literals + head->distances;
    head->op_count = 0;
    for (uint32_t i = 0; i < all;) {
        refill(source);
        const uint32_t symbol = get_symbol(source, &kinds);
        if (symbol > 18 || (symbol == 16 && i == 0)) return ends(source, error);
        uint32_t value = 0, run = 1;
        if (symbol >= 16) {
            if (!get_bits(source, extra[symbol - 16], &value)) return ends(source, error);
            run = value + least[symbol - 16];
            if (run > all - i) return ends(source, error);
        }
        head->ops[head->op_count++] = (struct deflate_op){(uint8_t)symbol, (uint8_t)value};
        memset(head->lengths + i, symbol < 16 ? (int)symbol : symbol == 16 ? head->lengths[i - 1] : 0, run);
        i += run;
    }
    return TSR_OK;
}

static enum tsr_status get_head(struct deflate_source *source, struct deflate_head *head, struct tsr_error *error)
{
    uint32_t sizes = 0;
    if (!get_bits(source, 14, &sizes)) return ends(source, error);
    head->literals = 257 + (sizes & 31);
    head->distances = 1 + (sizes >> 5 & 31);
    head->kinds = 4 + (sizes >> 10);
    if (head->literals > DEFLATE_LITERALS || head->distances > DEFLATE_DISTANCES)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, source->at, "a deflate stream has a block of too many codes");
    memset(head->lengths, 0, sizeof head->lengths);
    memset(head->kind_lengths, 0, sizeof head->kind_lengths);
    for (uint32_t i = 0; i < head->kinds; i++) {
        uint32_t length = 0;
        if (!get_bits(source, 3, &length)) return ends(source, error);
        head->kind_lengths[tsr_deflate_kind_order[i]] = (uint8_t)length;
    }
    return get_lengths(source, head, error);
}

/* The length or distance that a symbol begins. */
static inline bool get_value(struct deflate_source *source, uint32_t v, uint32_t per, uint32_t *value)
{
    if (v < 2 * per) {
        *value = v;
        return true;
    }
    const uint32_t bits = v / per - 1;
    uint32_t extra = 0;
    if (!get_bits(source, bits, &extra)) return false;
    *value = ((per + v % per) << bits) + extra;
    return true;
}

/* A match, of which symbol was the first. 0: the stream ends, or has an unknown code. */
static inline uint32_t get_match(struct deflate_source *source, uint32_t symbol, const struct deflate_code *distances)
{
    uint32_t length = DEFLATE_MOST - DEFLATE_LEAST, distance = 0;
    if (symbol > 285 || (symbol < 285 && !get_value(source, symbol - 257, 4, &length))) return 0;
    const uint32_t far = get_symbol(source, distances);
    if (far >= DEFLATE_DISTANCES || !get_value(source, far, 2, &distance)) return 0;
    return deflate_match(length + DEFLATE_LEAST, distance + 1);
}

/* What is next in the stream is kept in registers. */
static enum tsr_status get_tokens(struct deflate_source *source, struct deflate_block *block,
                                  const struct deflate_codes *codes, size_t limit, size_t *bytes,
                                  struct tsr_error *error)
{
    enum { TOKEN_BITS = 2 * CODE_BITS + 5 + 13 }; /* at most */
    struct deflate_tokens *const tokens = &block->tokens;
    struct deflate_source s = *source;
    const size_t most = block->most > 0 ? block->most : SIZE_MAX;
    size_t made = 0, count = tokens->count;
    for (;;) {
        if (s.count < TOKEN_BITS) refill(&s);
        const uint32_t symbol = get_symbol(&s, &codes->literals);
        uint32_t token = symbol, length = 1;
        if (symbol == 256 || count == most) break;
        if (symbol > 256) {
            token = get_match(&s, symbol, &codes->distances);
            length = deflate_length(token);
        }
        made += length;
        tokens->count = count; /* before a fault */
        if (token == 0 && symbol > 0) {
            *source = s;
            return ends(source, error);
        }
        if (symbol < 285 && length == DEFLATE_MOST)
            return tsr_fail(error, TSR_ERROR_CORRUPT, "a deflate stream has a length of 258 in the longer form");
        if (made > limit) return grows(error);
        if (count == tokens->capacity) TSR_TRY(tsr_deflate_grow(tokens, error));
        tokens->tokens[count++] = token;
    }
    tokens->count = count;
    *source = s;
    *bytes = made;
    return TSR_OK;
}

static enum tsr_status get_stored(struct deflate_source *source, struct deflate_block *block, size_t limit,
                                  size_t *bytes, const uint8_t **stored, struct tsr_error *error)
{
    uint32_t sizes = 0;
    refill(source);
    if (!get_bits(source, source->count & 7, &block->padding) || !get_bits(source, 32, &sizes))
        return ends(source, error);
    size_t size = sizes & 65535;
    if (size != (sizes >> 16 ^ 65535))
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, source->at,
                           "a deflate stream has a stored block whose size is damaged near its byte %zu", source->at);
    source->at -= source->count / 8;
    source->bits = 0;
    source->count = 0;
    if (block->is_cut && size > source->size - source->at) size = source->size - source->at;
    if (size > source->size - source->at)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, source->size, "a deflate stream ends too early");
    if (size > limit) return grows(error);
    *stored = source->stream + source->at;
    source->at += size;
    block->stored = *bytes = size;
    return TSR_OK;
}

/* The codes of a block of tokens, whose head comes; NULL after an error. */
static const struct deflate_codes *get_codes(struct deflate_source *source, struct deflate_block *block,
                                             struct tsr_error *error)
{
    const bool is_dynamic = block->type == DEFLATE_DYNAMIC;
    struct deflate_codes *const codes = is_dynamic ? &block->dynamic : &block->fixed;
    const struct deflate_head *const head = &block->head;
    uint8_t fixed[288 + 32];
    if (is_dynamic) {
        if (get_head(source, &block->head, error) != TSR_OK) return NULL;
        codes->are_made = make_code(&codes->literals, head->lengths, head->literals) &&
                          make_code(&codes->distances, head->lengths + head->literals, head->distances);
    } else if (!codes->are_made) {
        tsr_deflate_fixed(fixed, fixed + 288);
        codes->are_made = make_code(&codes->literals, fixed, 288) && make_code(&codes->distances, fixed + 288, 32);
    }
    if (!codes->are_made) ends(source, error);
    return codes->are_made ? codes : NULL;
}

enum tsr_status tsr_deflate_block(struct deflate_source *source, struct deflate_block *block, size_t limit,
                                  size_t *bytes, const uint8_t **stored, struct tsr_error *error)
{
    uint32_t bits = 0;
    block->tokens.count = 0;
    block->padding = 0;
    if (!get_bits(source, 3, &bits)) return ends(source, error);
    block->final = bits & 1;
    if (bits >> 1 == 3)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, source->at,
                           "a deflate stream has a block of an unknown type near its byte %zu", source->at);
    block->type = (enum deflate_type)(bits >> 1);
    if (block->type == DEFLATE_STORED) return get_stored(source, block, limit, bytes, stored, error);
    const struct deflate_codes *const codes = get_codes(source, block, error);
    if (!codes) return TSR_ERROR_CORRUPT;
    return get_tokens(source, block, codes, limit, bytes, error);
}

/* ---- Plain bytes alone: no tokens are kept ------------------------------------------------------------------- */

/* Copies a match. There are WORD bytes more in the buffer, or it is copied byte by byte. */
static inline void copy_match(uint8_t *to, uint32_t length, uint32_t distance, size_t left)
{
    enum { WORD = 8 };
    if (distance >= WORD && left >= length + WORD) {
        for (uint32_t k = 0; k < length; k += WORD) memcpy(to + k, to + k - distance, WORD);
    } else if (distance == 1) {
        memset(to, to[-1], length);
    } else {
        for (uint32_t k = 0; k < length; k++) to[k] = to[(ptrdiff_t)k - (ptrdiff_t)distance];
    }
}

/* As get_tokens, which it must take and refuse the same of. */
static bool inflate_tokens(struct deflate_source *source, const struct deflate_codes *codes, uint8_t *plain,
                           size_t size, size_t *at, size_t *tokens)
{
    enum { REST_BITS = 5 + CODE_BITS + 13 }; /* of a match after its first symbol, at most */
    struct deflate_source s = *source;
    size_t to = *at, count = 0;
    for (;; count++) {
        if (s.count < CODE_BITS) refill(&s);
        const uint32_t symbol = get_symbol(&s, &codes->literals);
        if (symbol < 256) {
            if (to == size) return false;
            plain[to++] = (uint8_t)symbol;
            continue;
        }
        if (symbol == 256) break;
        if (s.count < REST_BITS) refill(&s);
        const uint32_t token = get_match(&s, symbol, &codes->distances), length = deflate_length(token),
                       distance = token & 65535;
        if (length == 0 || (symbol < 285 && length == DEFLATE_MOST) || length > size - to || distance > to)
            return false;
        copy_match(plain + to, length, distance, size - to);
        to += length;
    }
    *source = s;
    *at = to;
    *tokens = count;
    return count <= TSR_DEFLATE_TOKENS;
}

bool tsr_deflate_inflate(struct deflate_source *source, struct deflate_block *block, uint8_t *plain, size_t size,
                         size_t *at)
{
    uint32_t bits = 0;
    block->tokens.count = 0;
    block->padding = 0;
    if (!get_bits(source, 3, &bits) || bits >> 1 == 3) return false;
    block->final = bits & 1;
    block->type = (enum deflate_type)(bits >> 1);
    if (block->type == DEFLATE_STORED) {
        const uint8_t *stored;
        size_t bytes;
        if (get_stored(source, block, size - *at, &bytes, &stored, NULL) != TSR_OK) return false;
        memcpy(plain + *at, stored, bytes);
        *at += bytes;
        return true;
    }
    const struct deflate_codes *const codes = get_codes(source, block, NULL);
    return codes && inflate_tokens(source, codes, plain, size, at, &block->tokens.count);
}
