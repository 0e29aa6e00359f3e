/* Deflate streams come back exactly, and zlib's cost nearly nothing. DEFLATE.md. */
#include <pthread.h>
#include <zlib.h>

#include "by_reference.h"
#include "io/nodes/deflate/deflate_parts.h"
#include "tests/unit/support.h"

enum { LIMIT = 1 << 22 };

struct made {
    uint8_t bytes[LIMIT];
    size_t size;
};

/* Text-like, image-like, random, constant, mixed. */
static void fill(uint8_t *plain, size_t size, uint32_t kind, struct rng *r)
{
    for (size_t i = 0; i < size; i++) {
        switch (kind) {
        case 0:
            plain[i] =
                i >= 100 && rng_below(r, 12) ? plain[i - 1 - rng_below(r, 4) * 24] : (uint8_t)(97 + rng_below(r, 20));
            break;
        case 1:
            plain[i] = (uint8_t)((i > 0 ? plain[i - 1] : 0) + rng_below(r, 8) * rng_below(r, 2) / 6);
            break;
        case 2:
            plain[i] = (uint8_t)rng_next(r);
            break;
        case 3:
            plain[i] = 7;
            break;
        default:
            plain[i] = i / 9000 % 2               ? (uint8_t)rng_next(r)
                       : i > 5000 && i % 700 > 40 ? plain[i - 5000]
                                                  : (uint8_t)rng_below(r, 9);
        }
    }
}

/* size bytes by zlib; every flush_at bytes (if not 0) a flush. */
static void deflate_by_zlib(const uint8_t *plain, size_t size, int level, int strategy, int memory, int window,
                            size_t flush_at, int flush, struct made *made)
{
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, level, Z_DEFLATED, -window, memory, strategy), Z_OK);
    z.next_out = made->bytes;
    z.avail_out = LIMIT;
    for (size_t at = 0; at < size && flush_at > 0; at += flush_at) {
        z.next_in = (Bytef *)(uintptr_t)(plain + at);
        z.avail_in = (uInt)(size - at < flush_at ? size - at : flush_at);
        assert_int_equal(deflate(&z, flush), Z_OK);
    }
    z.next_in = flush_at ? Z_NULL : (Bytef *)(uintptr_t)plain;
    z.avail_in = flush_at ? 0 : (uInt)size;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    made->size = z.total_out;
    deflateEnd(&z);
}

/* Returns the residue's size. The stream is followed by other bytes. */
static size_t comes_back(const uint8_t *plain, size_t size, struct made *made, const char *what)
{
    struct tsr_bytes found = {.limit = size}, residue = {.limit = LIMIT}, again = {.limit = made->size};
    struct tsr_error error = {0};
    size_t used = 0;
    memset(made->bytes + made->size, 0x5a, 9);
    expect(tsr_deflate_read(made->bytes, made->size + 9, &used, &found, &residue, &error) == TSR_OK, "%s: %s", what,
           error.text);
    expect(used == made->size, "%s: %zu bytes of %zu", what, used, made->size);
    expect(found.size == size && (size == 0 || memcmp(found.bytes, plain, size) == 0), "%s: other bytes", what);
    expect(tsr_deflate_write(plain, size, residue.bytes, residue.size, &again, &error) == TSR_OK, "%s: %s", what,
           error.text);
    expect(again.size == made->size && memcmp(again.bytes, made->bytes, made->size) == 0, "%s: another stream", what);
    const struct tsr_bytes wanted = {.bytes = made->bytes, .size = made->size};
    expect_from_reference(&found, &residue, &wanted, what);
    const size_t result = residue.size;
    tsr_bytes_free(&found);
    tsr_bytes_free(&residue);
    tsr_bytes_free(&again);
    return result;
}

static struct made made;
static uint8_t plain[LIMIT];

TEST(all_parameters_of_zlib)
{
    struct rng r = {1};
    for (int level = 0; level <= 9; level++)
        for (int strategy = 0; strategy <= 4; strategy++)
            for (int memory = 1; memory <= 9; memory += level % 2 + 1)
                for (int window = 9; window <= 15; window += 3) {
                    if (skip_case()) continue;
                    const size_t size = 1 + rng_below(&r, 60000);
                    const uint32_t kind = rng_below(&r, 5);
                    char what[120];
                    snprintf(what, sizeof what, "level %d strategy %d memory %d window %d kind %u size %zu", level,
                             strategy, memory, window, kind, size);
                    fill(plain, size, kind, &r);
                    deflate_by_zlib(plain, size, level, strategy, memory, window, 0, 0, &made);
                    const size_t residue = comes_back(plain, size, &made, what);
                    expect(residue <= 300, "%s: a residue of %zu bytes", what, residue);
                }
}

TEST(small_and_flushed)
{
    struct rng r = {2};
    static const int flushes[] = {Z_SYNC_FLUSH, Z_FULL_FLUSH, Z_PARTIAL_FLUSH, Z_BLOCK};
    for (size_t size = 0; size < 40; size++) {
        fill(plain, size, (uint32_t)(size % 5), &r);
        deflate_by_zlib(plain, size, (int)(size % 10), 0, 8, 15, 0, 0, &made);
        const size_t residue = comes_back(plain, size, &made, "small");
        expect(residue <= 6, "%zu bytes: a residue of %zu", size, residue);
    }
    for (int i = 0; i < 60; i++) {
        const size_t size = 1 + rng_below(&r, 50000);
        const int flush = flushes[i % 4];
        fill(plain, size, rng_below(&r, 5), &r);
        deflate_by_zlib(plain, size, 1 + i % 9, 0, 8, 15, 1000 + rng_below(&r, 20000), flush, &made);
        const size_t residue = comes_back(plain, size, &made, "flushed");
        expect(residue <= 300, "flush %d: a residue of %zu bytes", flush, residue);
    }
}

TEST(long_streams)
{
    struct rng r = {3};
    for (uint32_t kind = 0; kind < 5; kind++) {
        const size_t size = 1500000;
        fill(plain, size, kind, &r);
        deflate_by_zlib(plain, size, kind == 2 ? 6 : 9 - (int)kind, 0, 9, 15, 0, 0, &made);
        const size_t residue = comes_back(plain, size, &made, "long"), blocks = kind == 2 ? size >> 15 : 0;
        expect(residue <= 64 + 4 * blocks, "kind %u: a residue of %zu bytes", kind,
               residue); /* stored ones have sizes */
    }
}

/* Of what is stored in long blocks, the sizes are kept. Where it ends to be stored, the model is zlib's all the same.
 */
TEST(stored_at_first)
{
    enum { NOISE = 1200000, SIZE = NOISE + 200000 }; /* more than parameters are chosen by */
    struct rng r = {17};
    fill(plain, NOISE, 2, &r);
    fill(plain + NOISE, SIZE - NOISE, 0, &r);
    for (int level = 1; level <= 6; level += 5) {
        deflate_by_zlib(plain, NOISE, level, 0, 8, 15, 0, 0, &made);
        const size_t stored = comes_back(plain, NOISE, &made, "stored");
        expect(stored <= 64 + 4 * NOISE / 16384, "level %d: a residue of %zu bytes", level, stored);
        deflate_by_zlib(plain, SIZE, level, 0, 8, 15, 0, 0, &made);
        const size_t residue = comes_back(plain, SIZE, &made, "stored at first");
        expect(residue <= 200, "level %d, stored at first: a residue of %zu bytes", level, residue);
    }
}

/* Inputs that are hard to search in: long matches at many distances, periods with a fault in each, few values, values
 * that share hashes, zeros with other bytes in them. */
static void fill_hard(uint8_t *bytes, size_t size, uint32_t kind, struct rng *r)
{
    static const uint32_t lengths[] = {3, 4, 5, 6, 7, 8, 9, 12, 20, 50, 257, 258, 259, 300, 1000},
                          distances[] = {1, 2, 3, 100, 4095, 4096, 4097, 20000, 32505, 32506, 32507, 32768};
    uint8_t period[200];
    for (size_t i = 0; i < sizeof period; i++) period[i] = (uint8_t)rng_next(r);
    for (size_t i = 0, k = 0; i < size;) {
        const size_t begin = i, length = lengths[rng_below(r, COUNT_OF(lengths))],
                     distance = distances[rng_below(r, COUNT_OF(distances))];
        switch (kind) {
        case 0:
            for (k = 0; k < length && i < size && distance <= begin; k++, i++) bytes[i] = bytes[i - distance];
            for (k = rng_below(r, 4) + (distance > begin); k > 0 && i < size; k--) bytes[i++] = (uint8_t)rng_next(r);
            break;
        case 1:
            for (k = 0; k < sizeof period && i < size; k++) bytes[i++] = period[k];
            bytes[begin + rng_below(r, (uint32_t)(i - begin))] ^= (uint8_t)(1 + rng_below(r, 255));
            break;
        case 2:
            bytes[i++] = (uint8_t)rng_below(r, 2);
            break;
        case 3:
            bytes[i++] = (uint8_t)(rng_below(r, 8) << 5);
            break;
        default:
            bytes[i++] = rng_below(r, 50) ? 0 : (uint8_t)rng_next(r);
        }
    }
}

/* How the model is asked: token by token; for those of a stream as long as they are its own; for what it has. */
enum way { EACH, AS_STREAM, ALONE, WAYS };

/* The tokens of a block that the model does not repeat. */
static size_t wrong_in_block(struct deflate_model *model, const struct deflate_tokens *tokens, enum way way)
{
    static uint32_t own[LIMIT];
    const uint32_t *const stream = way == AS_STREAM ? tokens->tokens : NULL;
    size_t wrong = 0;
    for (size_t i = 0; i < tokens->count; i++) {
        const uint32_t token = tokens->tokens[i] < 256 ? 0 : tokens->tokens[i];
        if (way == EACH) {
            wrong += tsr_deflate_predict(model) != token;
            tsr_deflate_advance(model, token);
            continue;
        }
        const size_t begin = i, most = tokens->count - i;
        i += tsr_deflate_go_on(model, stream ? stream + i : NULL, own + i, most, model->size);
        wrong += i < tokens->count || memcmp(own + begin, tokens->tokens + begin, 4 * (i - begin)) != 0;
        if (i < tokens->count) tsr_deflate_advance(model, token);
    }
    return wrong;
}

/* The tokens of zlib's stream that the model does not repeat, up to a stored block, which has none. */
static size_t wrong_tokens(size_t size, const struct deflate_parameters *parameters, enum way way)
{
    static struct deflate_model model;
    struct deflate_source source = {.stream = made.bytes, .size = made.size};
    struct deflate_block *const block = calloc(1, sizeof *block);
    size_t wrong = 0, bytes = 0;
    const uint8_t *stored;
    uint8_t *const exactly = malloc(size); /* so that a read beyond the end is seen */
    assert_true(block && exactly);
    memcpy(exactly, plain, size);
    tsr_deflate_begin(&model, parameters, exactly, size);
    tsr_deflate_segment(&model, (uint32_t)size);
    do {
        assert_int_equal(tsr_deflate_block(&source, block, LIMIT, &bytes, &stored, NULL), TSR_OK);
        wrong += wrong_in_block(&model, &block->tokens, way);
    } while (!block->final && block->type != DEFLATE_STORED);
    expect(model.work > 0, "the search has ended");
    free(block->tokens.tokens);
    free(block);
    free(exactly);
    return wrong;
}

/* Noise, whose values near the middle are frequent: matches of three bytes are, too. */
static void fill_bell(uint8_t *bytes, size_t size, struct rng *r)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(100 + rng_below(r, 16) + rng_below(r, 16) + rng_below(r, 16) + rng_below(r, 16));
}

/* DEFLATE.md 2: the model is zlib's finder, at all levels, memories, windows and strategies. */
TEST(tokens_of_zlib)
{
    enum { KINDS = 11, BELL = KINDS - 1 };
    static const int strategies[] = {Z_DEFAULT_STRATEGY, Z_FILTERED, Z_FIXED, Z_HUFFMAN_ONLY, Z_RLE};
    struct rng r = {11};
    size_t count = 0;
    for (int level = 1; level <= 9; level++)
        for (int window = 9; window <= 15; window++)
            for (uint32_t kind = 0; kind < KINDS; kind++, count++) {
                const int strategy = strategies[count % 8 < 6 ? count % 3 : count % 5],
                          memory = 1 + (int)rng_below(&r, 9);
                const size_t size = 1 + rng_below(&r, window < 15 ? 60000 : 200000);
                struct deflate_parameters p = {.level = (uint8_t)level,
                                               .strategy = (uint8_t)strategy,
                                               .memory = (uint8_t)memory,
                                               .window = (uint8_t)window};
                if (kind < 5)
                    fill(plain, size, kind, &r);
                else if (kind < BELL)
                    fill_hard(plain, size, kind - 5, &r);
                else
                    fill_bell(plain, size, &r);
                deflate_by_zlib(plain, size, level, strategy, memory, window, 0, 0, &made);
                assert_true(tsr_deflate_derive(&p));
                for (int way = 0; way < WAYS; way++) {
                    const size_t wrong = wrong_tokens(size, &p, (enum way)way);
                    expect(wrong == 0,
                           "level %d window %d memory %d strategy %d kind %u size %zu way %d: %zu wrong tokens", level,
                           window, memory, strategy, kind, size, way, wrong);
                }
            }
}

struct bits {
    struct made *made;
    uint32_t count;
};

static void put(struct bits *b, uint32_t value, uint32_t bits)
{
    for (uint32_t i = 0; i < bits; i++, b->count++) {
        if (b->count % 8 == 0) b->made->bytes[b->count / 8] = 0;
        b->made->bytes[b->count / 8] |= (uint8_t)((value >> i & 1) << b->count % 8);
    }
    b->made->size = (b->count + 7) / 8;
}

/* Padding that is not zero, empty blocks, sizes of stored blocks that zlib does not choose. */
TEST(padding_and_empty_blocks)
{
    struct bits b = {&made, 0};
    put(&b, 2, 3); /* fixed, empty: before the first byte */
    put(&b, 0, 7);
    for (uint32_t i = 0; i < 3; i++) {
        put(&b, 0, 3);
        put(&b, 0x15, -b.count & 7);
        put(&b, i, 16);
        put(&b, ~i & 65535, 16);
        for (uint32_t k = 0; k < i; k++) put(&b, 65 + k, 8);
    }
    put(&b, 0, 3);
    put(&b, 0, -b.count & 7);
    put(&b, 0xffff0000, 32);
    put(&b, 3, 3);
    put(&b, 0x8e, 8); /* the literal A, its bits reversed */
    put(&b, 0, 7);
    put(&b, 0x2b, -b.count & 7);
    comes_back((const uint8_t *)"AABA", 4, &made, "padding");
}

/* DEFLATE.md 1: padding of more than 7 bits is refused, and what does not fit. */
TEST(padding_of_residues)
{
    static const struct {
        uint8_t bytes[2];
        size_t size;
        enum tsr_status status;
    } paddings[] = {
        {{3}, 1, TSR_OK}, {{63}, 1, TSR_OK}, {{64}, 1, TSR_ERROR_CORRUPT}, {{0x83, 1}, 2, TSR_ERROR_CORRUPT}};
    struct tsr_bytes found = {.limit = LIMIT}, residue = {.limit = LIMIT};
    size_t used;
    deflate_by_zlib(plain, 0, 6, 0, 8, 15, 0, 0, &made); /* 10 bits */
    assert_int_equal(tsr_deflate_read(made.bytes, made.size, &used, &found, &residue, NULL), TSR_OK);
    for (size_t i = 0; i < sizeof paddings / sizeof *paddings; i++) {
        struct tsr_bytes other = {.limit = LIMIT}, again = {.limit = LIMIT};
        const uint8_t head[2] = {residue.bytes[0], residue.bytes[1] | 128};
        tsr_bytes_put(&other, head, 2, NULL);
        tsr_bytes_put(&other, paddings[i].bytes, paddings[i].size, NULL);
        tsr_bytes_put(&other, residue.bytes + 2, residue.size - 2, NULL);
        expect(tsr_deflate_write(plain, 0, other.bytes, other.size, &again, NULL) == paddings[i].status, "padding %zu",
               i);
        tsr_bytes_free(&other);
        tsr_bytes_free(&again);
    }
    tsr_bytes_free(&found);
    tsr_bytes_free(&residue);
}

/* The tokens of some plain bytes from *at on: matches and literals at random. */
static void any_tokens(size_t *at, size_t end, uint32_t often, struct deflate_tokens *tokens, struct rng *r)
{
    static uint32_t last[4096];
    if (*at == 0) memset(last, 0, sizeof last);
    while (*at < end) {
        uint32_t length = 0, from = 0;
        if (*at + 3 <= end) {
            uint32_t *slot = &last[(plain[*at] * 7u + plain[*at + 1] * 61u + plain[*at + 2] * 523u) % 4096];
            from = *slot;
            if (rng_below(r, 4)) *slot = (uint32_t)*at;
            if (from < *at && *at - from <= 32768)
                while (length < 258 && *at + length < end && plain[from + length] == plain[*at + length]) length++;
        }
        if (length >= 3 && rng_below(r, often)) {
            if (rng_below(r, 8) == 0) length = 3 + rng_below(r, length - 2);
            assert_int_equal(tsr_deflate_push(tokens, deflate_match(length, (uint32_t)*at - from), NULL), TSR_OK);
            *at += length;
        } else {
            assert_int_equal(tsr_deflate_push(tokens, plain[(*at)++], NULL), TSR_OK);
        }
    }
}

/* Heads that zlib does not write: runs sent one by one, all kinds sent, codes without use. */
static void vary_head(struct deflate_head *head, struct rng *r)
{
    struct deflate_head other = *head;
    other.op_count = 0;
    for (uint32_t at = 0; at < head->literals + head->distances;) {
        struct deflate_op op = tsr_deflate_op(head, at);
        if (rng_below(r, 3) == 0) op = (struct deflate_op){head->lengths[at], 0};
        other.ops[other.op_count++] = op;
        at += op.symbol < 16 ? 1u : op.extra + (op.symbol == 18 ? 11u : 3u);
    }
    other.kinds = tsr_deflate_kinds(&other, other.kind_lengths);
    if (rng_below(r, 2)) other.kinds = DEFLATE_KINDS;
    *head = other;
}

TEST(streams_of_other_encoders)
{
    struct rng r = {4};
    for (int i = 0; i < 300; i++) {
        if (skip_case()) continue;
        const size_t size = 1 + rng_below(&r, 40000);
        struct tsr_bytes stream = {.limit = LIMIT};
        struct deflate_sink sink = {.stream = &stream};
        struct deflate_block block = {0};
        fill(plain, size, rng_below(&r, 5), &r);
        for (size_t at = 0; !block.final;) {
            const size_t begin = at, end = at + rng_below(&r, 9000) > size ? size : at + rng_below(&r, 9000);
            block.tokens.count = 0;
            any_tokens(&at, end < at ? at : end > size ? size : end, 2 + (uint32_t)i % 30, &block.tokens, &r);
            block.type = (enum deflate_type)rng_below(&r, 3);
            block.stored = at - begin;
            block.final = at == size && rng_below(&r, 2);
            tsr_deflate_head(&block.tokens, &block.head);
            if (i % 2) vary_head(&block.head, &r);
            assert_int_equal(tsr_deflate_put_block(&sink, &block, plain + begin, NULL), TSR_OK);
        }
        const uint8_t last = (uint8_t)sink.bits;
        if (sink.count > 0) assert_int_equal(tsr_bytes_put(&stream, &last, 1, NULL), TSR_OK);
        memcpy(made.bytes, stream.bytes, stream.size);
        made.size = stream.size;
        comes_back(plain, size, &made, "another encoder's");
        free(block.tokens.tokens);
        tsr_bytes_free(&stream);
    }
}

/* Any residue does no harm; a stream that comes of it is read again, or is refused. */
TEST(damaged_residues)
{
    struct rng r = {7};
    for (int i = 0; i < 600; i++) {
        const size_t size = 1 + rng_below(&r, 6000);
        struct tsr_bytes found = {.limit = size}, residue = {.limit = LIMIT}, other = {.limit = LIMIT};
        struct tsr_bytes whole = {.limit = size}, second = {.limit = LIMIT};
        size_t used;
        fill(plain, size, rng_below(&r, 5), &r);
        deflate_by_zlib(plain, size, 1 + i % 9, 0, 8, 15, 0, 0, &made);
        assert_int_equal(tsr_deflate_read(made.bytes, made.size, &used, &found, &residue, NULL), TSR_OK);
        if (i % 3 == 0) residue.bytes[0] |= 15;
        uint8_t more[60];
        for (size_t k = 0; k < sizeof more; k++) more[k] = (uint8_t)rng_next(&r) & (i % 2 ? 255 : 15);
        assert_int_equal(tsr_bytes_put(&residue, more, rng_below(&r, sizeof more), NULL), TSR_OK);
        residue.bytes[rng_below(&r, (uint32_t)residue.size)] ^= (uint8_t)(1 << rng_below(&r, 8));
        if (tsr_deflate_write(plain, size, residue.bytes, residue.size, &other, NULL) == TSR_OK &&
            tsr_deflate_read(other.bytes, other.size, &used, &whole, &second, NULL) == TSR_OK) {
            expect(used == other.size, "%zu bytes of %zu", used, other.size);
            memcpy(made.bytes, other.bytes, other.size);
            made.size = other.size;
            comes_back(whole.bytes, whole.size, &made, "of a damaged residue");
        }
        tsr_bytes_free(&found);
        tsr_bytes_free(&residue);
        tsr_bytes_free(&other);
        tsr_bytes_free(&whole);
        tsr_bytes_free(&second);
    }
}

static void read_any(const uint8_t *bytes, size_t size)
{
    uint8_t *exact = malloc(size + 1);
    struct tsr_bytes found = {.limit = 100000}, residue = {.limit = LIMIT}, again = {.limit = LIMIT};
    size_t used;
    assert_non_null(exact);
    memcpy(exact, bytes, size);
    if (tsr_deflate_read(exact, size, &used, &found, &residue, NULL) == TSR_OK) {
        assert_int_equal(tsr_deflate_write(found.bytes, found.size, residue.bytes, residue.size, &again, NULL), TSR_OK);
        assert_true(again.size == used && memcmp(again.bytes, exact, used) == 0);
    }
    free(exact);
    tsr_bytes_free(&found);
    tsr_bytes_free(&residue);
    tsr_bytes_free(&again);
}

TEST(hostile_streams)
{
    struct rng r = {5};
    fill(plain, 3000, 4, &r);
    deflate_by_zlib(plain, 3000, 6, 0, 1, 15, 0, 0, &made);
    struct tsr_bytes found = {.limit = LIMIT}, residue = {.limit = LIMIT};
    size_t used;
    for (size_t cut = 0; cut < made.size; cut++)
        expect(tsr_deflate_read(made.bytes, cut, &used, &found, &residue, NULL) == TSR_ERROR_CORRUPT, "cut at %zu",
               cut),
            found.size = residue.size = 0;
    tsr_bytes_free(&found);
    tsr_bytes_free(&residue);
    static uint8_t other[8192];
    for (int i = 0; i < 1500; i++) {
        memcpy(other, made.bytes, made.size);
        for (int k = rng_between(&r, 1, 3); k > 0; k--)
            other[rng_below(&r, (uint32_t)(i % 2 ? made.size : 100))] ^= (uint8_t)(1 << rng_below(&r, 8));
        read_any(other, made.size);
    }
}

TEST(limits)
{
    struct tsr_bytes found = {.limit = 99999}, residue = {.limit = LIMIT}, again = {.limit = 50};
    struct rng r = {6};
    size_t used;
    fill(plain, 100000, 0, &r);
    deflate_by_zlib(plain, 100000, 6, 0, 8, 15, 0, 0, &made);
    assert_int_equal(tsr_deflate_read(made.bytes, made.size, &used, &found, &residue, NULL), TSR_ERROR_CORRUPT);
    found.limit++;
    found.size = residue.size = 0;
    assert_int_equal(tsr_deflate_read(made.bytes, made.size, &used, &found, &residue, NULL), TSR_OK);
    assert_int_equal(tsr_deflate_write(plain, 100000, residue.bytes, residue.size, &again, NULL), TSR_ERROR_CORRUPT);
    for (size_t cut = 0; cut < 2; cut++)
        assert_int_equal(tsr_deflate_write(plain, 100000, residue.bytes, cut, &again, NULL), TSR_ERROR_CORRUPT);
    tsr_bytes_free(&found);
    tsr_bytes_free(&residue);
    tsr_bytes_free(&again);
}

/* One fixed block of so many literals, each of the 8 bits 10010001: the letter a. */
static enum tsr_status read_letters(size_t count, struct tsr_error *error)
{
    const size_t size = count + 2;
    uint8_t *const stream = must(malloc(size));
    struct tsr_bytes found = {.limit = count}, residue = {.limit = size};
    size_t used = 0;
    stream[0] = (0x89 << 3 & 255) | 3; /* the bits come from the lowest of each byte */
    for (size_t i = 1; i < count; i++) stream[i] = (0x89 << 3 & 255) | 0x89 >> 5;
    stream[count] = 0x89 >> 5;
    stream[count + 1] = 0;
    const enum tsr_status status = tsr_deflate_read(stream, size, &used, &found, &residue, error);
    assert_true(status != TSR_OK || (found.size == count && found.bytes[count - 1] == 'a'));
    tsr_bytes_free(&found);
    tsr_bytes_free(&residue);
    free(stream);
    return status;
}

/* So many tokens of a block are held that memory does not grow with the stream. */
TEST(longest_block)
{
    struct tsr_error error = {0};
    expect(read_letters(1 << 12, &error) == TSR_OK, "%s", error.text);
    assert_int_equal(read_letters((1 << 22) + 1, &error), TSR_ERROR_CORRUPT);
    assert_non_null(strstr(error.text, "2^22 tokens"));
}

/* ---- Pieces ------------------------------------------------------------------------------------------------- */

struct call {
    void (*work)(void *context, unsigned index);
    void *context;
    unsigned index;
};

static void *do_call(void *call)
{
    const struct call *const c = call;
    c->work(c->context, c->index);
    return NULL;
}

static void run_threads(void *pool, void (*work)(void *context, unsigned index), void *context, unsigned count)
{
    pthread_t threads[16];
    struct call calls[16];
    (void)pool;
    assert_true(count <= 16);
    for (unsigned i = 0; i < count; i++) {
        calls[i] = (struct call){work, context, i};
        assert_int_equal(pthread_create(&threads[i], NULL, do_call, &calls[i]), 0);
    }
    for (unsigned i = 0; i < count; i++) pthread_join(threads[i], NULL);
}

static void count_call(void *context)
{
    ++*(int *)context;
}

/* By one thread and by two crews: the same residue, the same stream. Returns what the residue takes more than that of
 * the stream in one piece; *pieces: their number, 0 for a stream without any. */
static long divided(const uint8_t *bytes, size_t size, const char *what, uint64_t *pieces)
{
    static void (*const runs[])(void *, void (*)(void *, unsigned), void *, unsigned) = {NULL, run_backwards,
                                                                                         run_threads};
    struct tsr_bytes whole = {.limit = size}, single = {.limit = LIMIT}, first = {.limit = LIMIT};
    size_t used = 0;
    assert_int_equal(tsr_deflate_read(made.bytes, made.size, &used, &whole, &single, NULL), TSR_OK);
    for (size_t i = 0; i < 3; i++) {
        int calls = 0;
        const struct tsr_deflate_way way = {
            .crew = {runs[i], NULL}, .piece = 1 << 16, .meanwhile = count_call, .context = &calls};
        struct tsr_bytes found = {.limit = size}, residue = {.limit = LIMIT}, again = {.limit = made.size + 3};
        struct tsr_error error = {0};
        expect(tsr_deflate_read_by(&way, made.bytes, made.size, &used, &found, &residue, &error) == TSR_OK, "%s: %s",
               what, error.text);
        expect(calls == 1, "%s: %d calls while it is read", what, calls);
        expect(found.size == size && memcmp(found.bytes, bytes, size) == 0, "%s: other bytes", what);
        if (i == 0) tsr_bytes_put(&first, residue.bytes, residue.size, NULL);
        expect(residue.size == first.size && memcmp(residue.bytes, first.bytes, first.size) == 0,
               "%s: threads change the residue", what);
        assert_int_equal(tsr_bytes_put(&again, "abc", 3, NULL), TSR_OK);
        expect(tsr_deflate_write_by(&way, bytes, size, residue.bytes, residue.size, &again, &error) == TSR_OK, "%s: %s",
               what, error.text);
        expect(calls == 2, "%s: %d calls while it is written, too", what, calls);
        expect(again.size == made.size + 3 && memcmp(again.bytes + 3, made.bytes, made.size) == 0, "%s: another stream",
               what);
        tsr_bytes_free(&found);
        tsr_bytes_free(&residue);
        tsr_bytes_free(&again);
    }
    const struct tsr_bytes wanted = {.bytes = made.bytes, .size = made.size};
    expect_from_reference(&whole, &first, &wanted, what);
    struct tsr_cursor in = {first.bytes, first.size, 1, false};
    *pieces = first.bytes[0] == 14 ? tsr_get_varint(&in) : 0;
    const long more = (long)first.size - (long)single.size;
    tsr_bytes_free(&whole);
    tsr_bytes_free(&single);
    tsr_bytes_free(&first);
    return more;
}

TEST(streams_in_pieces)
{
    static const int flushes[] = {Z_SYNC_FLUSH, Z_FULL_FLUSH, Z_PARTIAL_FLUSH, Z_BLOCK};
    struct rng r = {8};
    for (int i = 0; i < 40; i++) {
        const int level = i % 10, strategy = i % 3 ? 0 : i / 3 % 5, memory = i % 4 ? 8 : 1 + i % 9;
        const size_t size = 150000 + rng_below(&r, 100000), flush_at = i % 5 ? 0 : 3000 + rng_below(&r, 90000);
        const uint32_t kind = rng_below(&r, 5);
        uint64_t pieces = 0;
        char what[160];
        snprintf(what, sizeof what, "level %d strategy %d memory %d kind %u size %zu flush %zu", level, strategy,
                 memory, kind, size, flush_at);
        fill(plain, size, kind, &r);
        deflate_by_zlib(plain, size, level, strategy, memory, 15, flush_at, flushes[i / 5 % 4], &made);
        const long more = divided(plain, size, what, &pieces);
        expect(more <= 4 + 60 * (long)pieces, "%s: %ld bytes more of %d pieces", what, more, (int)pieces);
        const bool is_long = level > 0 && (kind == 0 || kind == 4) && memory == 8 && !flush_at;
        expect(!is_long || pieces > 1, "%s: not in pieces", what);
    }
}

/* Reads the stream that was made by a way. room: of the plain bytes; there from the begin on, if the way has a crew. */
static enum tsr_status read_by(const struct tsr_deflate_way *way, size_t room, struct tsr_bytes *found,
                               struct tsr_bytes *residue, struct tsr_error *error)
{
    size_t used = 0;
    *found = (struct tsr_bytes){.limit = room};
    *residue = (struct tsr_bytes){.limit = LIMIT};
    if (way->crew.run) assert_int_equal(tsr_bytes_reserve(found, room, NULL), TSR_OK);
    return tsr_deflate_read_by(way, made.bytes, made.size, &used, found, residue, error);
}

/* What crews give that code pieces while the stream is read is what one thread gives, also if it is damaged. *pieces:
 * their number. */
static void followed_by(size_t size, size_t room, size_t piece, const char *what, uint64_t *pieces)
{
    const struct tsr_deflate_way alone = {.piece = piece}, crews[] = {{.crew = {run_backwards, NULL}, .piece = piece},
                                                                      {.crew = {run_threads, NULL}, .piece = piece}};
    struct tsr_bytes plain_alone, residue_alone, found, residue, again = {.limit = made.size};
    struct tsr_error error = {0}, other = {0};
    const enum tsr_status status = read_by(&alone, room, &plain_alone, &residue_alone, &error);
    for (size_t i = 0; i < 2; i++) {
        expect(read_by(&crews[i], room, &found, &residue, &other) == status, "%s: %s, not %s", what, other.text,
               error.text);
        expect(status != TSR_OK || (found.size == plain_alone.size && residue.size == residue_alone.size &&
                                    memcmp(residue.bytes, residue_alone.bytes, residue.size) == 0),
               "%s: crew %zu changes the residue", what, i);
        expect(status != TSR_OK || memcmp(found.bytes, plain_alone.bytes, found.size) == 0, "%s: other bytes", what);
        tsr_bytes_free(&found);
        tsr_bytes_free(&residue);
    }
    expect(size == 0 || status == TSR_OK, "%s: %s", what, error.text);
    if (status == TSR_OK && size > 0) {
        struct tsr_cursor in = {residue_alone.bytes, residue_alone.size, 1, false};
        *pieces = residue_alone.bytes[0] == 14 ? tsr_get_varint(&in) : 0;
        expect(tsr_deflate_write_by(&crews[1], plain_alone.bytes, size, residue_alone.bytes, residue_alone.size, &again,
                                    &error) == TSR_OK,
               "%s: %s", what, error.text);
        expect(again.size == made.size && memcmp(again.bytes, made.bytes, made.size) == 0, "%s: another stream", what);
    }
    tsr_bytes_free(&plain_alone);
    tsr_bytes_free(&residue_alone);
    tsr_bytes_free(&again);
}

static void followed(size_t size, size_t room, const char *what)
{
    uint64_t pieces = 0;
    followed_by(size, room, 1 << 16, what, &pieces);
    expect(size == 0 || pieces > 3, "%s: not in pieces", what);
}

/* Content, then a block of many bytes, then content: two pieces, of which the second begins when parameters are chosen.
 */
static void followed_in_two(struct rng *r)
{
    enum { FIRST = 300000, SIZE = 2200000, PIECE = 1 << 19 };
    uint64_t pieces = 0;
    for (size_t last = 36000; last <= 90000 && pieces != 2; last += 2000) {
        fill(plain, SIZE, 0, r);
        memset(plain + FIRST, 0, SIZE - FIRST - last);
        deflate_by_zlib(plain, SIZE, 6, 0, 8, 15, 0, 0, &made);
        followed_by(SIZE, SIZE, PIECE, "two pieces", &pieces);
    }
    expect(pieces == 2, "%d pieces, not two", (int)pieces);
}

static void put_bits(struct made *m, uint64_t *at, uint32_t value, uint32_t bits)
{
    for (; bits-- > 0; ++*at) {
        if (*at % 8 == 0) m->bytes[*at / 8] = 0;
        m->bytes[*at / 8] |= (uint8_t)((value >> bits & 1) << *at % 8);
    }
}

/* Fixed blocks of letters. Returns their number. */
static size_t make_letters(size_t blocks, size_t each, size_t last, struct rng *r)
{
    uint64_t at = 0;
    size_t all = 0;
    for (size_t b = 0; b <= blocks; b++) {
        put_bits(&made, &at, b == blocks ? 6 : 2, 3); /* the bits of a number come from the lowest: the last, type 1 */
        for (size_t i = 0; i < (b < blocks ? each : last); i++, all++)
            put_bits(&made, &at, 0x30 + 97 + rng_below(r, 26), 8);
        put_bits(&made, &at, 0, 7);
    }
    made.size = (size_t)(at + 7) / 8;
    return all;
}

TEST(pieces_while_read)
{
    enum { SIZE = 1450000, TOO_LONG = (1 << 18) + 5, MANY = 4100000 };
    struct rng r = {10};
    struct tsr_bytes found, residue;
    fill(plain, SIZE, 0, &r);
    deflate_by_zlib(plain, SIZE, 6, 0, 8, 15, 0, 0, &made);
    followed(SIZE, SIZE, "level 6");
    followed(SIZE, SIZE + 1, "of unknown size");
    followed(0, SIZE - 1, "too long");
    for (int i = 0; i < 3; i++) {
        const size_t at = i == 0 ? made.size - 9 : made.size / 2 + rng_below(&r, (uint32_t)made.size / 2);
        const uint8_t was = made.bytes[at];
        made.bytes[at] ^= (uint8_t)(1 << rng_below(&r, 8));
        followed(0, SIZE, "damaged");
        made.bytes[at] = was;
    }
    made.size /= 2;
    followed(0, SIZE, "cut");
    deflate_by_zlib(plain, SIZE, 1, 0, 8, 15, 0, 0, &made);
    followed(SIZE, SIZE, "level 1");
    const struct tsr_deflate_way alone = {.piece = 1 << 19};
    for (size_t i = 0; i < MANY; i++) plain[i] = (uint8_t)rng_below(&r, i < MANY / 2 ? 256 : 4);
    deflate_by_zlib(plain, MANY, 4, 0, 1, 15, 0, 0, &made);
    assert_int_equal(read_by(&alone, MANY, &found, &residue, NULL), TSR_OK);
    expect(residue.size < 600, "small blocks: a residue of %zu bytes", residue.size);
    tsr_bytes_free(&found);
    tsr_bytes_free(&residue);
    followed_in_two(&r);
    fill(plain, SIZE, 0, &r);
    deflate_by_zlib(plain, SIZE, 6, 0, 8, 15, SIZE - 100000, Z_SYNC_FLUSH, &made);
    followed(SIZE, SIZE, "flushed late");
    const size_t letters = make_letters(125, 10000, 10000, &r);
    followed(letters, letters, "letters");
    const size_t more = make_letters(125, 10000, TOO_LONG, &r);
    const struct tsr_deflate_way crew = {.crew = {run_threads, NULL}, .piece = 1 << 16};
    assert_int_equal(read_by(&crew, more, &found, &residue, NULL), TSR_OK);
    expect(found.size == more && residue.bytes[0] != 14, "a long block: in pieces");
    tsr_bytes_free(&found);
    tsr_bytes_free(&residue);
}

/* Where the second piece of a stream of zlib's begins. */
static uint32_t second_piece(size_t size)
{
    const struct tsr_deflate_way way = {.piece = 1 << 16};
    struct tsr_bytes found = {.limit = size}, residue = {.limit = LIMIT};
    size_t used = 0;
    assert_int_equal(tsr_deflate_read_by(&way, made.bytes, made.size, &used, &found, &residue, NULL), TSR_OK);
    struct tsr_cursor in = {residue.bytes, residue.size, 1, false};
    assert_true(residue.bytes[0] == 14 && tsr_get_varint(&in) > 1 && tsr_get_varint(&in) > 0);
    const uint32_t begin = (uint32_t)tsr_get_varint(&in);
    tsr_bytes_free(&found);
    tsr_bytes_free(&residue);
    return begin;
}

/* A piece begins with the match that the model carries to it from before: it looks for longer ones less far than a
 * search there. A flush within the match, at which a segment ends, takes it away. Bytes are of two values, so that
 * chains are long, and several bytes of them match everywhere. */
TEST(begin_of_pieces)
{
    enum { SIZE = 150000, WANTED = 6, SEEDS = 300 };
    static struct deflate_model model;
    int found = 0;
    for (uint32_t seed = 1; seed <= SEEDS && found < WANTED; seed++) {
        struct rng r = {seed};
        const int level = 5 + (int)seed % 2;
        struct deflate_parameters parameters = {.level = (uint8_t)level, .memory = 6, .window = 15};
        for (size_t k = 0; k < SIZE; k++) plain[k] = (uint8_t)rng_below(&r, 2);
        deflate_by_zlib(plain, SIZE, level, 0, 6, 15, 0, 0, &made);
        const uint32_t begin = second_piece(SIZE);
        assert_true(tsr_deflate_derive(&parameters));
        tsr_deflate_begin(&model, &parameters, plain, SIZE);
        tsr_deflate_lead(&model, begin, SIZE - begin);
        const uint32_t length = deflate_length(model.carried);
        for (uint32_t flush = 0; length > 0 && flush <= length; flush += length / 2) {
            uint64_t pieces = 0;
            char what[80];
            snprintf(what, sizeof what, "level %d, a piece at %u, a flush %u after it", level, begin, flush);
            deflate_by_zlib(plain, SIZE, level, 0, 6, 15, flush ? begin + flush : 0, Z_SYNC_FLUSH, &made);
            divided(plain, SIZE, what, &pieces);
            expect(pieces > 1, "%s: not in pieces", what);
        }
        found += length > 0;
    }
    expect(found == WANTED, "only %d pieces begin with a carried match", found);
}

/* The table of a residue. */
struct table {
    uint64_t count, bits[40], bytes[40], coded[40];
    const uint8_t *rest;
    size_t rest_size;
};

static void get_table(const struct tsr_bytes *residue, struct table *t)
{
    struct tsr_cursor in = {residue->bytes, residue->size, 1, false};
    t->count = tsr_get_varint(&in);
    assert_true(residue->bytes[0] == 14 && t->count >= 2 && t->count < 40);
    for (uint64_t i = 0; i < t->count; i++) {
        t->bits[i] = tsr_get_varint(&in);
        t->bytes[i] = i + 1 < t->count ? tsr_get_varint(&in) : 0;
        t->coded[i] = i + 1 < t->count ? tsr_get_varint(&in) : 0;
    }
    t->rest = residue->bytes + in.at;
    t->rest_size = residue->size - in.at;
}

static enum tsr_status write_table(const struct table *t, size_t size, struct tsr_bytes *stream)
{
    struct tsr_bytes residue = {.limit = LIMIT};
    tsr_bytes_put(&residue, "\16", 1, NULL);
    tsr_bytes_put_varint(&residue, t->count, NULL);
    for (uint64_t i = 0; i < t->count && i < 40; i++) {
        tsr_bytes_put_varint(&residue, t->bits[i], NULL);
        if (i + 1 == t->count) break;
        tsr_bytes_put_varint(&residue, t->bytes[i], NULL);
        tsr_bytes_put_varint(&residue, t->coded[i], NULL);
    }
    tsr_bytes_put(&residue, t->rest, t->rest_size, NULL);
    stream->size = 0;
    const enum tsr_status status = tsr_deflate_write(plain, size, residue.bytes, residue.size, stream, NULL);
    tsr_bytes_free(&residue);
    return status;
}

/* Numbers that are not those of pieces. */
TEST(damaged_tables)
{
    enum { SIZE = 400000, CASES = 15 };
    static const char *const cases[CASES] = {"none",      "one",      "many",      "no bits",     "less bits",
                                             "more bits", "all bits", "last bits", "short",       "shorter",
                                             "longer",    "too long", "all bytes", "corrections", "cut"};
    struct rng r = {9};
    struct tsr_bytes found = {.limit = SIZE}, residue = {.limit = LIMIT}, stream = {.limit = LIMIT};
    const struct tsr_deflate_way way = {.piece = 1 << 16};
    struct table good;
    size_t used = 0;
    fill(plain, SIZE, 0, &r);
    deflate_by_zlib(plain, SIZE, 6, 0, 8, 15, 0, 0, &made);
    assert_int_equal(tsr_deflate_read_by(&way, made.bytes, made.size, &used, &found, &residue, NULL), TSR_OK);
    get_table(&residue, &good);
    for (int i = 0; i < CASES; i++) {
        struct table t = good;
        const uint64_t last = t.count - 1;
        if (i == 1) t.count = 1;
        if (i == 2) t.count = UINT64_MAX / 2;
        if (i == 3) t.bits[0] = 0;
        if (i == 4) t.bits[1]--;
        if (i == 5) t.bits[1]++;
        if (i == 6) t.bits[0] = UINT64_MAX / 2;
        if (i == 7) t.bits[last] += 8;
        if (i == 8) t.bytes[0] = (1 << 16) - 1;
        if (i == 9) t.bytes[1]--;
        if (i == 10) t.bytes[1]++;
        if (i == 11) t.bytes[0] = UINT64_MAX / 2;
        if (i == 12) {
            t.bytes[last - 1] = SIZE;
            for (uint64_t k = 0; k + 1 < last; k++) t.bytes[last - 1] -= t.bytes[k];
        }
        if (i == 13) t.coded[0] = SIZE;
        if (i == 14) t.rest_size = 1;
        const enum tsr_status status = write_table(&t, SIZE, &stream);
        expect(status == (i == 0 ? TSR_OK : TSR_ERROR_CORRUPT), "%s: status %d", cases[i], (int)status);
    }
    for (int i = 0; i < 300; i++) { /* any byte */
        if (skip_case()) continue;
        const size_t at = rng_below(&r, (uint32_t)residue.size);
        const uint8_t was = residue.bytes[at];
        residue.bytes[at] ^= (uint8_t)(1 << rng_below(&r, 8));
        stream.size = 0;
        const enum tsr_status status = tsr_deflate_write(plain, SIZE, residue.bytes, residue.size, &stream, NULL);
        assert_true(status == TSR_OK || status == TSR_ERROR_CORRUPT);
        residue.bytes[at] = was;
    }
    tsr_bytes_free(&found);
    tsr_bytes_free(&residue);
    tsr_bytes_free(&stream);
}

/* A stream is read up to its fault, which the error tells. Kinds above 1 may have stored blocks, of which none
 * is cut, or zeros at the end. */
TEST(up_to_a_fault)
{
    struct rng r = {31};
    int taken = 0, whole = 0;
    for (int i = 0; i < 400; i++) {
        if (skip_case()) continue;
        const size_t size = 1000 + rng_below(&r, 120000);
        const uint32_t kind = (uint32_t)i % 5;
        fill(plain, size, kind, &r);
        deflate_by_zlib(plain, size, i % 10, i / 10 % 5, 8, 15, i % 7 ? 0 : 5000, Z_SYNC_FLUSH, &made);
        const size_t cut = rng_below(&r, (uint32_t)made.size), end = i % 3 ? cut : made.size;
        if (i % 3 == 0) memset(made.bytes + cut, i % 2 ? 0 : 0xff, made.size - cut);
        struct tsr_bytes found = {.limit = size}, residue = {.limit = LIMIT}, again = {.limit = made.size};
        struct tsr_error error = {.text = ""};
        size_t used = 0;
        if (tsr_deflate_read_up_to(&TSR_DEFLATE_ALONE, made.bytes, end, &used, &found, &residue, &error) == TSR_OK) {
            const struct tsr_bytes wanted = {.bytes = made.bytes, .size = used};
            expect(used <= end && (i % 3 == 0 || memcmp(found.bytes, plain, found.size) == 0), "%d", i);
            whole += !error.text[0];
            taken += error.text[0] != 0;
            if (i % 3 && kind < 2 && i % 10 > 0)
                expect(used + 300 >= cut, /* the head of a block */ "%d: %zu of %zu bytes", i, used, cut);
            again.limit = used;
            expect(tsr_deflate_write(found.bytes, found.size, residue.bytes, residue.size, &again, &error) == TSR_OK,
                   "%d: %s", i, error.text);
            expect(again.size == used && memcmp(again.bytes, made.bytes, used) == 0, "%d: another stream", i);
            expect_from_reference(&found, &residue, &wanted, "cut");
        }
        tsr_bytes_free(&found);
        tsr_bytes_free(&residue);
        tsr_bytes_free(&again);
    }
    expect((taken > 200 && whole < 60) || getenv("TSR_TEST_SMALL"), "%d are cut, %d whole", taken, whole);
}

/* DEFLATE.md 1: the residue of a cut stream. */
TEST(residues_of_cut_streams)
{
    struct rng r = {32};
    fill(plain, 3000, 0, &r);
    deflate_by_zlib(plain, 3000, 6, 0, 8, 15, 0, 0, &made);
    struct tsr_bytes found = {.limit = 3000}, residue = {.limit = LIMIT};
    size_t used;
    assert_int_equal(
        tsr_deflate_read_up_to(&TSR_DEFLATE_ALONE, made.bytes, made.size / 2, &used, &found, &residue, NULL), TSR_OK);
    assert_int_equal(residue.bytes[0], DEFLATE_CUT);
    for (unsigned dropped = 0; dropped < 40; dropped++)
        for (int inner = 0; inner < 3; inner++) {
            struct tsr_bytes bad = {.limit = LIMIT}, again = {.limit = made.size};
            const uint8_t head[] = {DEFLATE_CUT, (uint8_t)dropped};
            tsr_bytes_put(&bad, head, 2, NULL);
            if (inner < 2) tsr_bytes_put(&bad, residue.bytes + (inner ? 0 : 2), residue.size - (inner ? 0 : 2), NULL);
            const enum tsr_status status =
                tsr_deflate_write(found.bytes, found.size, bad.bytes, bad.size, &again, NULL);
            assert_int_equal(status, dropped <= 15 && inner == 0 ? TSR_OK : TSR_ERROR_CORRUPT);
            const struct tsr_piece_head piece_head = {
                .kind = TSR_PIECE_DEFLATE, .size = found.size, .residue = bad.size};
            uint8_t bytes[TSR_PIECE_HEAD_LIMIT];
            struct tsr_bytes piece = {.limit = LIMIT};
            tsr_bytes_put(&piece, bytes, tsr_put_piece_head(bytes, &piece_head), NULL);
            tsr_bytes_put(&piece, found.bytes, found.size, NULL);
            tsr_bytes_put(&piece, bad.bytes, bad.size, NULL);
            expect_by_reference(unpack_piece, &piece, 0, status, &again, "dropped");
            tsr_bytes_free(&piece);
            tsr_bytes_free(&bad);
            tsr_bytes_free(&again);
        }
    tsr_bytes_free(&found);
    tsr_bytes_free(&residue);
}

/* Reads made's stream by a coder that recalls. */
static void read_to_recall(const struct tsr_deflate_way *way, struct tsr_bytes *found, struct tsr_bytes *residue)
{
    size_t used;
    found->size = residue->size = 0;
    assert_int_equal(tsr_deflate_read_by(way, made.bytes, made.size, &used, found, residue, NULL), TSR_OK);
    assert_int_equal(used, made.size);
}

/* Joins, and compares with made. Returns whether nothing was searched for. */
static bool joins_without_search(const struct tsr_deflate_way *way, const struct tsr_bytes *found,
                                 const struct tsr_bytes *residue, const char *what)
{
    struct tsr_bytes again = {.limit = LIMIT};
    const enum tsr_status status =
        tsr_deflate_write_by(way, found->bytes, found->size, residue->bytes, residue->size, &again, NULL);
    expect(status == TSR_OK && again.size == made.size && memcmp(again.bytes, made.bytes, made.size) == 0,
           "%s: not the same", what);
    tsr_bytes_free(&again);
    expect((*way->kept)->recall.count == 0, "%s: it still recalls", what);
    return (*way->kept)->model.work == DEFLATE_PATIENCE * deflate_work(found->size);
}

/* A record that ended early: after a match. */
static void cut_record(struct deflate_record *record, struct rng *r)
{
    record->count = rng_below(r, (uint32_t)record->count + 1);
    while (record->count > 0 && (record->entries[record->count - 1] & 0xffff) == 0xffff) record->count--;
}

/* Who proves a stream does not search again for what was found while it was read; of other parts, or of more than was
 * noted, it does. */
TEST(what_is_recalled)
{
    static uint8_t other[LIMIT];
    struct rng r = {21};
    uint32_t recalled = 0, in_pieces = 0;
    for (int i = 0; i < 60; i++) {
        const int level = i % 10, strategy = i % 3 ? 0 : i / 3 % 5, memory = i % 4 ? 8 : 1 + i % 9;
        const bool is_long = i % 6 == 5;
        const size_t size = (is_long ? 180000 : 1000) + rng_below(&r, 60000), flush_at = i % 5 ? 0 : 20000;
        struct deflate_coder *coder = NULL;
        const struct tsr_deflate_way way = {.piece = is_long ? 1 << 16 : 1 << 20, .kept = &coder, .recalls = true};
        struct tsr_bytes found = {.limit = LIMIT}, residue = {.limit = LIMIT}, lone = {.limit = LIMIT},
                         again = {.limit = LIMIT};
        size_t used;
        char what[120];
        snprintf(what, sizeof what, "level %d strategy %d memory %d size %zu", level, strategy, memory, size);
        fill(plain, size, rng_below(&r, 5), &r);
        deflate_by_zlib(plain, size, level, strategy, memory, 15, flush_at, Z_SYNC_FLUSH, &made);
        read_to_recall(&way, &found, &residue);
        const bool are_pieces = coder->recall.count > 1;
        const struct tsr_deflate_way alone = {.piece = way.piece};
        assert_int_equal(tsr_deflate_read_by(&alone, made.bytes, made.size, &used, &again, &lone, NULL), TSR_OK);
        expect(lone.size == residue.size && memcmp(lone.bytes, residue.bytes, lone.size) == 0, "%s: residue", what);
        const bool knows = coder->recall.count > 0;
        const bool spares = joins_without_search(&way, &found, &residue, what);
        const bool has_hops = residue.size > 10; /* which are looked for */
        expect(spares || !knows || are_pieces || has_hops, "%s: it searched", what);
        recalled += knows && spares && level > 0;
        in_pieces += are_pieces;
        read_to_recall(&way, &found, &residue); /* records that ended early */
        for (size_t k = 0; k < coder->recall.count; k++) cut_record(&coder->recall.records[k], &r);
        joins_without_search(&way, &found, &residue, what);
        read_to_recall(&way, &found, &residue); /* other plain bytes, to which the residue fits, too */
        memcpy(other, found.bytes, size);
        for (size_t k = 0; k < size; k++) other[k] ^= 85;
        again.size = lone.size = 0;
        const enum tsr_status status =
            tsr_deflate_write_by(&way, other, size, residue.bytes, residue.size, &again, NULL);
        assert_int_equal(tsr_deflate_write_by(&alone, other, size, residue.bytes, residue.size, &lone, NULL), status);
        expect(again.size == lone.size && (lone.size == 0 || memcmp(again.bytes, lone.bytes, lone.size) == 0),
               "%s: other bytes", what);
        tsr_bytes_free(&found);
        tsr_bytes_free(&residue);
        tsr_bytes_free(&lone);
        tsr_bytes_free(&again);
        tsr_deflate_forget(coder);
    }
    expect(recalled > 20 && in_pieces > 4, "%u streams, and %u in pieces, are recalled", recalled, in_pieces);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_parameters_of_zlib),
        cmocka_unit_test(small_and_flushed),
        cmocka_unit_test(long_streams),
        cmocka_unit_test(stored_at_first),
        cmocka_unit_test(tokens_of_zlib),
        cmocka_unit_test(padding_and_empty_blocks),
        cmocka_unit_test(padding_of_residues),
        cmocka_unit_test(streams_of_other_encoders),
        cmocka_unit_test(damaged_residues),
        cmocka_unit_test(hostile_streams),
        cmocka_unit_test(limits),
        cmocka_unit_test(longest_block),
        cmocka_unit_test(streams_in_pieces),
        cmocka_unit_test(pieces_while_read),
        cmocka_unit_test(begin_of_pieces),
        cmocka_unit_test(damaged_tables),
        cmocka_unit_test(up_to_a_fault),
        cmocka_unit_test(residues_of_cut_streams),
        cmocka_unit_test(what_is_recalled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
