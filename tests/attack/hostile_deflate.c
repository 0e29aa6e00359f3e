/* Hostile deflate streams (RFC 1951), as the content of PNG and gzip files. See the header. */
#include "hostile.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { ROW = 4096, LONGEST = 258, SHORTEST = 3, FARTHEST = 32768, BOMB_RATIO = 128 };

/* A stream, and the plain bytes that it becomes. They are rows of a PNG: each ROW bytes begin with a filter type. */
struct stream {
    struct bytes out, plain;
    uint64_t pending;
    int count;
    const uint8_t *lengths, *far; /* of the block's codes; 288 and 30 */
    uint16_t codes[288], far_codes[30];
};

static void put_bits(struct stream *s, uint32_t value, int bits)
{
    s->pending |= (uint64_t)value << s->count;
    for (s->count += bits; s->count >= 8; s->count -= 8) {
        put_byte(&s->out, s->pending & 255);
        s->pending >>= 8;
    }
}

static void fill_byte(struct stream *s)
{
    if (s->count > 0) put_bits(s, 0, 8 - s->count);
}

/* ---- Codes ------------------------------------------------------------------------------------------------ */

static void make_codes(const uint8_t *lengths, int symbols, uint16_t *codes)
{
    uint32_t code = 0;
    for (int n = 1; n < 16; n++, code <<= 1)
        for (int i = 0; i < symbols; i++) {
            if (lengths[i] != n) continue;
            uint16_t reversed = 0;
            for (int k = 0; k < n; k++) reversed = (uint16_t)(reversed | (code >> k & 1) << (n - 1 - k));
            codes[i] = reversed;
            code++;
        }
}

static void use_codes(struct stream *s, const uint8_t *lengths, const uint8_t *far)
{
    s->lengths = lengths;
    s->far = far;
    make_codes(lengths, 288, s->codes);
    make_codes(far, 30, s->far_codes);
}

static void begin_fixed(struct stream *s, bool final)
{
    static uint8_t lengths[288], far[30];
    for (int i = 0; i < 288; i++) lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    memset(far, 5, sizeof far);
    put_bits(s, final ? 3 : 2, 3);
    use_codes(s, lengths, far);
}

/* Codes of all symbols: of 8 and 9 bits, and of 4 and 5. */
static void begin_dynamic(struct stream *s, bool final)
{
    static uint8_t lengths[288], far[30];
    enum { OF_EIGHT = 226, OF_FOUR = 2 };
    for (int i = 0; i < 286; i++) lengths[i] = i < OF_EIGHT ? 8 : 9;
    for (int i = 0; i < 30; i++) far[i] = i < OF_FOUR ? 4 : 5;
    put_bits(s, final ? 5 : 4, 3);
    put_bits(s, 286 - 257, 5);
    put_bits(s, 30 - 1, 5);
    put_bits(s, 12 - 4, 4); /* lengths up to that of symbol 4, in their order */
    static const uint8_t of_kinds[12] = {0, 0, 0, 0, 2, 0, 2, 0, 0, 2, 0, 2};
    for (int i = 0; i < 12; i++) put_bits(s, of_kinds[i], 3); /* 16 17 18 0 8 7 9 6 10 5 11 4 */
    for (int i = 0; i < 286 + 30; i++) {
        const unsigned n = i < 286 ? lengths[i] : far[i - 286]; /* 4, 5, 8, 9: codes 0 to 3 */
        const unsigned code = n == 4 ? 0 : n == 5 ? 1 : n == 8 ? 2 : 3;
        put_bits(s, code >> 1, 1);
        put_bits(s, code & 1, 1);
    }
    use_codes(s, lengths, far);
}

/* Codes of one literal, 0, and the end. */
static void begin_tiny_dynamic(struct stream *s, bool final)
{
    static uint8_t lengths[288], far[30];
    lengths[0] = lengths[256] = 1;
    put_bits(s, final ? 5 : 4, 3);
    put_bits(s, 0, 5);
    put_bits(s, 0, 5);
    put_bits(s, 18 - 4, 4);
    static const uint8_t of_kinds[18] = {0, 0, 1, 2, [17] = 2}; /* 18, 0 and 1 */
    for (int i = 0; i < 18; i++) put_bits(s, of_kinds[i], 3);
    put_bits(s, 3, 2); /* 1: of literal 0 */
    put_bits(s, 0, 1); /* 18: 138 zeros */
    put_bits(s, 138 - 11, 7);
    put_bits(s, 0, 1); /* 18: 117 zeros */
    put_bits(s, 117 - 11, 7);
    put_bits(s, 3, 2); /* 1: of the end */
    put_bits(s, 1, 2); /* 0: no distance */
    use_codes(s, lengths, far);
}

static void put_symbol(struct stream *s, unsigned symbol)
{
    put_bits(s, s->codes[symbol], s->lengths[symbol]);
}

static void end_block(struct stream *s)
{
    put_symbol(s, 256);
}

/* ---- Tokens ----------------------------------------------------------------------------------------------- */

static void put_literal(struct stream *s, unsigned byte)
{
    if (s->plain.size % ROW == 0) byte %= 5;
    put_byte(&s->plain, byte);
    put_symbol(s, byte);
}

static void put_class(unsigned value, int steps, unsigned *class, int *extra)
{
    *extra = 0;
    while (value >> *extra >= 2u << steps) ++*extra;
    *class = ((unsigned)*extra << steps) + (value >> *extra);
}

static void put_match(struct stream *s, unsigned length, unsigned distance)
{
    const size_t at = s->plain.size;
    unsigned fit = 0, class;
    int extra;
    for (; fit < length; fit++) { /* up to a row's begin that would have no filter type */
        const uint8_t byte = s->plain.data[at + fit - distance];
        if ((at + fit) % ROW == 0 && byte > 4) break;
        put_byte(&s->plain, byte);
    }
    if (fit < SHORTEST) {
        s->plain.size = at;
        put_literal(s, s->plain.data[at - distance]);
        return;
    }
    put_class(fit - SHORTEST, 2, &class, &extra);
    if (fit == LONGEST) class = 28, extra = 0;
    put_symbol(s, 257 + class);
    put_bits(s, (fit - SHORTEST) & ((1u << extra) - 1), extra);
    put_class(distance - 1, 1, &class, &extra);
    put_bits(s, s->far_codes[class], s->far[class]);
    put_bits(s, (distance - 1) & ((1u << extra) - 1), extra);
}

static void put_stored(struct stream *s, bool final, const uint8_t *bytes, size_t size)
{
    put_bits(s, final, 3);
    fill_byte(s);
    put_number(&s->out, (uint32_t)size, 2, false);
    put_number(&s->out, (uint32_t)~size, 2, false);
    put(&s->out, bytes, size);
    put(&s->plain, bytes, size);
}

/* Fills up the last row, and ends the stream. */
static void end_stream(struct stream *s)
{
    begin_fixed(s, true);
    while (s->plain.size == 0 || s->plain.size % ROW > 0) put_literal(s, 0);
    end_block(s);
    fill_byte(s);
}

/* ---- Plain bytes ------------------------------------------------------------------------------------------ */

enum { NOISE, TWO, ZEROS, STEPS, PERIOD, DEBRUIJN, PLAINS };

static void fill_plain(struct bytes *b, size_t size, int kind)
{
    struct chance c = {88172645463325252u};
    unsigned value = 0;
    for (size_t i = 0; i < size; i++) {
        if (kind == NOISE) value = next_of(&c, 256);
        if (kind == TWO) value = 65 + next_of(&c, 2);
        if (kind == ZEROS) value = 0;
        if (kind == STEPS) value = (value + next_of(&c, 13) + 250) & 255;
        if (kind == PERIOD) value = (unsigned)(i % 7) + (i % 997 == 0 ? next_of(&c, 9) : 0);
        if (kind == DEBRUIJN) value = i % 64 < 60 ? (unsigned)(i % 64 / 15) : next_of(&c, 4);
        put_byte(b, i % ROW == 0 ? value % 5 : value);
    }
}

/* ---- Streams ---------------------------------------------------------------------------------------------- */

enum kind {
    STORED_EMPTY,
    STORED_ONE,
    STORED_FEW,
    STORED_THOUSAND,
    STORED_FULL,
    STORED_ODD,
    STORED_STEPS,
    FIXED_EMPTY,
    FIXED_ONE,
    DYNAMIC_EMPTY,
    DYNAMIC_ONE,
    DYNAMIC_FULL_EMPTY,
    ALTERNATING,
    RANDOM_MATCHES,
    RANDOM_LONG,
    SHORT_MATCHES,
    FAR_MATCHES,
    TWO_LITERALS,
    TWO_MATCHES,
    TWO_ONE_BLOCK,
    ZERO_LITERALS,
    PERIOD_FAR,
    BOMB,
    LATE_CHANGE,
    MANY_CHANGES,
    FLUSHES,
    FROM_ZLIB
};

static void make_blocks(struct stream *s, size_t size, enum kind kind)
{
    struct chance c = {77};
    struct bytes noise = {.size = 0};
    uint8_t few[1000] = {0};
    fill_plain(&noise, 65535, kind == STORED_STEPS ? STEPS : NOISE);
    for (unsigned i = 0; s->out.size < size && s->plain.size < size; i++) {
        size_t now = kind == STORED_EMPTY ? 0 : kind == STORED_ONE ? 1 : kind == STORED_FEW ? 5 : 1000;
        if (kind == STORED_ODD) now = 1 + next_of(&c, 999);
        const bool is_full = kind == STORED_FULL || kind == STORED_STEPS;
        if (kind <= STORED_STEPS) {
            if (is_full) now = kind == STORED_FULL ? 65535 : 65535 - next_of(&c, 20000); /* zlib's level 0 */
            if (is_full) /* filter types, wherever rows begin */
                for (size_t k = -s->plain.size % ROW; k < now; k += ROW) noise.data[k] %= 5;
            put_stored(s, false, is_full ? noise.data : few, now);
            continue;
        }
        if (kind == FIXED_EMPTY || kind == FIXED_ONE) begin_fixed(s, false);
        if (kind == DYNAMIC_EMPTY || kind == DYNAMIC_ONE) begin_tiny_dynamic(s, false);
        if (kind == DYNAMIC_FULL_EMPTY) begin_dynamic(s, false);
        if (kind == ALTERNATING && i % 3 == 0) {
            put_stored(s, false, few, 2);
            continue;
        }
        if (kind == ALTERNATING && i % 3 == 1) begin_fixed(s, false);
        if (kind == ALTERNATING && i % 3 == 2) begin_tiny_dynamic(s, false);
        if (kind == FIXED_ONE || kind == DYNAMIC_ONE || kind == ALTERNATING) put_literal(s, 0);
        end_block(s);
    }
    if (kind == STORED_STEPS) put_stored(s, true, noise.data, -s->plain.size % ROW); /* stored up to its end */
    free_bytes(&noise);
}

/* A match of any length at any distance, or as the kind says. */
static void put_any_match(struct stream *s, enum kind kind, struct chance *c)
{
    const size_t at = s->plain.size, reach = at < FARTHEST ? at : FARTHEST;
    unsigned length = SHORTEST + next_of(c, kind == RANDOM_LONG ? LONGEST - SHORTEST + 1 : 10),
             distance = 1 + next_of(c, (uint32_t)reach);
    if (kind == SHORT_MATCHES) length = SHORTEST;
    if (kind == FAR_MATCHES) distance = (unsigned)reach;
    put_match(s, length, distance);
}

static void make_tokens(struct stream *s, size_t size, enum kind kind)
{
    enum { TOKENS = 16000 };
    struct chance c = {99};
    while (s->plain.size < size) {
        begin_dynamic(s, false);
        for (int i = 0; i < TOKENS && s->plain.size < size; i++) {
            if (s->plain.size < 600 || (kind != FAR_MATCHES && next_of(&c, 8) == 0))
                put_literal(s, next_of(&c, 256));
            else
                put_any_match(s, kind, &c);
        }
        end_block(s);
    }
}

/* Tokens of known plain bytes: literals alone, or matches of any that fit. */
static void make_of_plain(struct stream *s, size_t size, enum kind kind)
{
    const size_t tokens = kind == TWO_ONE_BLOCK ? SIZE_MAX : 16000;
    struct bytes plain = {.size = 0};
    struct chance c = {55};
    fill_plain(&plain, size, kind == ZERO_LITERALS ? ZEROS : kind == PERIOD_FAR ? PERIOD : TWO);
    while (s->plain.size < size) {
        begin_dynamic(s, false);
        for (size_t i = 0; i < tokens && s->plain.size < size; i++) {
            const size_t at = s->plain.size, reach = at < FARTHEST ? at : FARTHEST, left = size - at;
            const bool matches = kind == TWO_MATCHES || kind == TWO_ONE_BLOCK || kind == PERIOD_FAR;
            unsigned distance = reach > 0 ? 1 + next_of(&c, (uint32_t)reach) : 0, length = 0;
            if (kind == PERIOD_FAR) distance = (unsigned)(reach / 7 * 7);
            while (matches && distance > 0 && length < LONGEST && length < left &&
                   plain.data[at + length] == plain.data[at + length - distance])
                length++;
            if (length >= SHORTEST)
                put_match(s, SHORTEST + next_of(&c, length - SHORTEST + 1), distance);
            else
                put_literal(s, plain.data[at]);
        }
        end_block(s);
    }
    free_bytes(&plain);
}

/* zlib's stream of known plain bytes. flush: bytes between two flushes; 0: none. */
static void put_by_zlib(struct stream *s, const struct bytes *plain, int level, int strategy, size_t flush, bool ends)
{
    z_stream z = {.avail_in = 0};
    uint8_t out[16384];
    if (deflateInit2(&z, level, Z_DEFLATED, -15, 8, strategy) != Z_OK) give_up("zlib");
    fill_byte(s);
    for (size_t at = 0; at < plain->size || ends;) {
        const size_t left = plain->size - at, now = flush > 0 && left > flush ? flush : left;
        const bool is_last = now == left && ends;
        z.next_in = plain->data + at;
        z.avail_in = (uInt)now;
        do {
            z.next_out = out;
            z.avail_out = sizeof out;
            deflate(&z, is_last ? Z_FINISH : Z_FULL_FLUSH);
            put(&s->out, out, sizeof out - z.avail_out);
        } while (z.avail_out == 0);
        at += now;
        if (is_last) break;
    }
    deflateEnd(&z);
    put(&s->plain, plain->data, plain->size);
}

/* Streams whose parameters change: once, in the middle, or all the time. */
static void make_changes(struct stream *s, size_t size, enum kind kind)
{
    const size_t step = kind == LATE_CHANGE ? size / 2 / ROW * ROW : 16 * ROW;
    for (int i = 0; s->plain.size < size; i++) {
        struct bytes part = {.size = 0};
        fill_plain(&part, step, i % 2 == 0 ? STEPS : TWO);
        put_by_zlib(s, &part, 1 + i * 5 % 9, i % 3 == 2 ? Z_FILTERED : Z_DEFAULT_STRATEGY, 0, false);
        free_bytes(&part);
    }
}

static void make_stream(struct stream *s, size_t size, int variant)
{
    const enum kind kind = variant < FROM_ZLIB ? (enum kind)variant : FROM_ZLIB;
    if (kind <= ALTERNATING) {
        make_blocks(s, size, kind);
        if (kind == STORED_STEPS) return;
    } else if (kind <= FAR_MATCHES) {
        make_tokens(s, size, kind);
    } else if (kind <= PERIOD_FAR) {
        make_of_plain(s, size, kind);
    } else if (kind == LATE_CHANGE || kind == MANY_CHANGES) {
        make_changes(s, size, kind);
    } else { /* plain bytes of a kind by a level, or flushes, or a bomb */
        struct bytes plain = {.size = 0};
        const int at = variant - FROM_ZLIB;
        const size_t bytes = kind == BOMB ? BOMB_RATIO * size : size;
        fill_plain(&plain, (bytes + ROW - 1) / ROW * ROW, kind == FROM_ZLIB ? at % PLAINS : kind == BOMB ? ZEROS : TWO);
        put_by_zlib(s, &plain, kind == FROM_ZLIB && at < PLAINS ? 6 : 9, Z_DEFAULT_STRATEGY, kind == FLUSHES ? 16 : 0,
                    true);
        free_bytes(&plain);
        return;
    }
    end_stream(s);
}

static void make_png(struct bytes *file, size_t size, int variant)
{
    struct stream s = {.count = 0};
    struct bytes zlib = {.size = 0};
    make_stream(&s, size, variant);
    put(&zlib, "\x78\x9c", 2);
    put(&zlib, s.out.data, s.out.size);
    put_number(&zlib, (uint32_t)adler32_z(1, s.plain.data, s.plain.size), 4, true);
    begin_png(file, ROW - 1, (uint32_t)(s.plain.size / ROW), 8, 0, false);
    put_png_chunk(file, "IDAT", zlib.data, zlib.size);
    end_png(file);
    file->content = s.plain.size;
    free_bytes(&zlib);
    free_bytes(&s.out);
    free_bytes(&s.plain);
}

static void make_gzip(struct bytes *file, size_t size, int variant)
{
    struct stream s = {.count = 0};
    make_stream(&s, size, variant);
    begin_gzip(file);
    put(file, s.out.data, s.out.size);
    end_gzip(file, s.plain.data, s.plain.size);
    file->content = s.plain.size;
    free_bytes(&s.out);
    free_bytes(&s.plain);
}

#define BOTH(name, variant)                    \
    {"png-" name, "png", make_png, variant},   \
    {                                          \
        "gzip-" name, "gz", make_gzip, variant \
    }
const struct hostile hostile_deflate[] = {BOTH("stored-0", STORED_EMPTY),
                                          BOTH("stored-1", STORED_ONE),
                                          BOTH("stored-5", STORED_FEW),
                                          BOTH("stored-1000", STORED_THOUSAND),
                                          BOTH("stored-65535", STORED_FULL),
                                          BOTH("stored-odd", STORED_ODD),
                                          BOTH("stored-steps", STORED_STEPS),
                                          BOTH("fixed-0", FIXED_EMPTY),
                                          BOTH("fixed-1", FIXED_ONE),
                                          BOTH("dynamic-0", DYNAMIC_EMPTY),
                                          BOTH("dynamic-1", DYNAMIC_ONE),
                                          BOTH("dynamic-long-heads", DYNAMIC_FULL_EMPTY),
                                          BOTH("alternating", ALTERNATING),
                                          BOTH("random-matches", RANDOM_MATCHES),
                                          BOTH("random-long-matches", RANDOM_LONG),
                                          BOTH("matches-of-3", SHORT_MATCHES),
                                          BOTH("far-matches", FAR_MATCHES),
                                          BOTH("two-literals", TWO_LITERALS),
                                          BOTH("two-matches", TWO_MATCHES),
                                          BOTH("two-one-block", TWO_ONE_BLOCK),
                                          BOTH("zero-literals", ZERO_LITERALS),
                                          BOTH("period-far", PERIOD_FAR),
                                          BOTH("bomb", BOMB),
                                          BOTH("late-change", LATE_CHANGE),
                                          BOTH("many-changes", MANY_CHANGES),
                                          BOTH("flushes", FLUSHES),
                                          BOTH("zlib-6-noise", FROM_ZLIB + NOISE),
                                          BOTH("zlib-6-two", FROM_ZLIB + TWO),
                                          BOTH("zlib-6-zeros", FROM_ZLIB + ZEROS),
                                          BOTH("zlib-6-steps", FROM_ZLIB + STEPS),
                                          BOTH("zlib-6-period", FROM_ZLIB + PERIOD),
                                          BOTH("zlib-6-debruijn", FROM_ZLIB + DEBRUIJN),
                                          BOTH("zlib-9-noise", FROM_ZLIB + PLAINS + NOISE),
                                          BOTH("zlib-9-two", FROM_ZLIB + PLAINS + TWO),
                                          BOTH("zlib-9-steps", FROM_ZLIB + PLAINS + STEPS),
                                          BOTH("zlib-9-period", FROM_ZLIB + PLAINS + PERIOD),
                                          BOTH("zlib-9-debruijn", FROM_ZLIB + PLAINS + DEBRUIJN),
                                          {NULL, NULL, NULL, 0}};
