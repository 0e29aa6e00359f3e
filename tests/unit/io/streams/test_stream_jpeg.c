/* Lossy JPEG streams, packed and unpacked (io/nodes/jpeg/jpeg.h). JPEG.md. The streams are made here from
 * random coefficients; tests/bench/jpeg_streams.py takes libjpeg's. */
#include "tests/unit/support.h"

#include "by_reference.h"
#include "io/nodes/jpeg/jpeg.h"
#include "io/nodes/jpeg/jpeg_coder.h"
#include "io/nodes/jpeg/jpeg_coefficients.h"
#include "io/nodes/jpeg/jpeg_pack.h"
#include "io/nodes/jpeg/jpeg_scan.h"
#include "by_node.h"

enum { LIMIT = 1 << 24 };

static void put(struct tsr_bytes *b, const void *bytes, size_t size)
{
    assert_int_equal(tsr_bytes_put(b, bytes, size, NULL), TSR_OK);
}

static void put_u8(struct tsr_bytes *b, unsigned byte)
{
    put(b, &(uint8_t){(uint8_t)byte}, 1);
}

static void put_marker(struct tsr_bytes *b, unsigned marker, unsigned size)
{
    const uint8_t bytes[4] = {0xff, (uint8_t)marker, (uint8_t)(size >> 8), (uint8_t)size};
    put(b, bytes, sizeof bytes);
}

/* A code of all 256 symbols. */
static void put_codes(struct tsr_bytes *b, unsigned number)
{
    static const uint8_t counts[16] = {[8] = 255, [9] = 1};
    put_marker(b, 0xc4, 2 + 1 + 16 + 256);
    put_u8(b, number);
    put(b, counts, sizeof counts);
    for (unsigned i = 0; i < 256; i++) put_u8(b, i);
}

static void put_scan(struct tsr_bytes *b, int from, int to, int first, int last, int high, int low)
{
    put_marker(b, 0xda, 6u + 2u * (unsigned)(to - from));
    put_u8(b, (unsigned)(to - from));
    for (int c = from; c < to; c++) {
        put_u8(b, (unsigned)c + 1);
        put_u8(b, 0);
    }
    put_u8(b, (unsigned)first);
    put_u8(b, (unsigned)last);
    put_u8(b, (unsigned)(high << 4 | low));
}

struct shape {
    bool progressive;
    unsigned precision, width, height, interval;
    int components;
    unsigned sampling[4];
    bool apart; /* a scan for each component */
};

static void put_progressive(struct tsr_bytes *b, const struct shape *s, struct rng *r)
{
    const int low = (int)rng_below(r, 3), cut = rng_between(r, 1, 62);
    put_scan(b, 0, s->apart ? 1 : s->components, 0, 0, 0, low);
    for (int c = 1; c < s->components && s->apart; c++) put_scan(b, c, c + 1, 0, 0, 0, low);
    for (int c = 0; c < s->components; c++) {
        put_scan(b, c, c + 1, 1, cut, 0, low);
        put_scan(b, c, c + 1, cut + 1, 63, 0, low);
    }
    for (int l = low; l > 0; l--) {
        put_scan(b, 0, s->apart ? 1 : s->components, 0, 0, l, l - 1);
        for (int c = 1; c < s->components && s->apart; c++) put_scan(b, c, c + 1, 0, 0, l, l - 1);
        for (int c = 0; c < s->components; c++) put_scan(b, c, c + 1, 1, 63, l, l - 1);
    }
}

static struct tsr_bytes make_head(const struct shape *s, struct rng *r)
{
    struct tsr_bytes b = {.limit = LIMIT};
    put(&b, "\xff\xd8", 2);
    put_marker(&b, 0xdb, 67);
    put_u8(&b, 0);
    for (int k = 0; k < 64; k++) put_u8(&b, 1 + rng_below(r, 60));
    put_marker(&b, s->progressive ? 0xc2 : s->precision > 8 ? 0xc1 : 0xc0, 8u + 3u * (unsigned)s->components);
    put_u8(&b, s->precision);
    put_u8(&b, s->height >> 8);
    put_u8(&b, s->height & 255);
    put_u8(&b, s->width >> 8);
    put_u8(&b, s->width & 255);
    put_u8(&b, (unsigned)s->components);
    for (int c = 0; c < s->components; c++) {
        put_u8(&b, (unsigned)c + 1);
        put_u8(&b, s->sampling[c]);
        put_u8(&b, 0);
    }
    put_codes(&b, 0x00);
    put_codes(&b, 0x10);
    if (s->interval > 0) {
        put_marker(&b, 0xdd, 4);
        put_u8(&b, s->interval >> 8);
        put_u8(&b, s->interval & 255);
    }
    if (s->progressive)
        put_progressive(&b, s, r);
    else
        for (int c = 0; c < (s->apart ? s->components : 1); c++)
            put_scan(&b, c, s->apart ? c + 1 : s->components, 0, 63, 0, 0);
    put(&b, "\xff\xd9", 2);
    if (rng_below(r, 2)) put(&b, "the tail", 8);
    return b;
}

/* Sparse coefficients, now and then large ones. Blocks that no scan of one component has stay empty, as AC must. */
static void fill(int16_t *coefficients, const struct tsr_jpeg *jpeg, bool padding, struct rng *r)
{
    const uint32_t density = rng_below(r, 40);
    for (int c = 0; c < jpeg->components; c++) {
        const struct tsr_jpeg_component *own = &jpeg->component[c];
        for (size_t i = 0; i < own->stride * own->height; i++)
            for (int k = 0; k < 64; k++) {
                const bool inside = i % own->stride < own->columns && i / own->stride < own->rows;
                if ((!inside && !padding) || rng_below(r, 64) >= density) continue;
                const int top = rng_below(r, 50) ? 3 : 1023;
                coefficients[64 * (own->first + i) + (size_t)k] = (int16_t)rng_between(r, -top, top);
            }
    }
}

/* Writes the stream of a head and of random coefficients. padding: a kind of padding. */
static struct tsr_bytes make_stream(const struct shape *s, int padding, struct rng *r)
{
    struct tsr_bytes head = make_head(s, r), stream = {.limit = LIMIT};
    struct tsr_jpeg jpeg = {.bytes = head.bytes, .size = head.size, .stream_size = 1 << 20};
    uint8_t bits[64];
    for (size_t i = 0; i < sizeof bits; i++) bits[i] = (uint8_t)rng_next(r);
    struct tsr_jpeg_oddities o = {.padding_kind = padding, .padding = {.bytes = bits, .size = sizeof bits}};
    int16_t *coefficients = NULL;
    for (bool found = true; found;) {
        const size_t from = jpeg.at;
        struct tsr_error error;
        expect(tsr_jpeg_next_scan(&jpeg, &found, &error) == TSR_OK, "%s", error.text);
        put(&stream, head.bytes + from, (found ? jpeg.at : head.size) - from);
        if (!found) break;
        if (!coefficients) {
            coefficients = calloc(jpeg.blocks, 64 * sizeof *coefficients);
            assert_non_null(coefficients);
            fill(coefficients, &jpeg, !s->progressive && !s->apart, r);
        }
        assert_int_equal(tsr_jpeg_write_scan(&jpeg, coefficients, &o, &stream, NULL), TSR_OK);
    }
    free(coefficients);
    tsr_bytes_free(&head);
    return stream;
}

static struct shape any_shape(struct rng *r)
{
    struct shape s = {.progressive = rng_below(r, 2), .precision = rng_below(r, 4) ? 8 : 12};
    s.width = 1 + rng_below(r, 70);
    s.height = 1 + rng_below(r, 70);
    s.interval = rng_below(r, 3) ? 0 : 1 + rng_below(r, 6);
    s.components = 1 + (int)rng_below(r, 4);
    s.apart = rng_below(r, 3) == 0;
    unsigned blocks = 0;
    for (int c = 0; c < s.components; c++) {
        const unsigned across = 1 + rng_below(r, 3), down = 1 + rng_below(r, 3);
        s.sampling[c] = across << 4 | down;
        blocks += across * down;
    }
    for (int c = 0; c < s.components && blocks > 10; c++) s.sampling[c] = 0x11;
    return s;
}

static void check_there_and_back(struct tsr_bytes stream, const char *what, int number)
{
    struct tsr_bytes packed = {.limit = LIMIT}, again = {.limit = stream.size};
    struct tsr_error error = {.status = TSR_OK};
    expect(split_by(&tsr_node_jpeg, stream.bytes, stream.size, &packed, NULL, &error) == TSR_OK, "%s %d: %s", what,
           number, error.text);
    uint64_t memory = 0;
    expect(tsr_jpeg_memory(stream.bytes, stream.size, &memory, &error) == TSR_OK && memory > 0, "%s %d", what, number);
    expect(join_by(&tsr_node_jpeg, (struct tsr_node_parts){.plain = packed.bytes, .plain_size = packed.size}, 0, &again,
                   &error) == TSR_OK,
           "%s %d: %s", what, number, error.text);
    expect(again.size == stream.size && memcmp(again.bytes, stream.bytes, stream.size) == 0, "%s %d", what, number);
    expect_from_reference(&packed, NULL, &stream, what);
    tsr_bytes_free(&packed);
    tsr_bytes_free(&again);
}

TEST(all_shapes)
{
    struct rng r = {1};
    for (int i = 0; i < 400; i++) {
        const struct shape s = any_shape(&r);
        struct tsr_bytes stream = make_stream(&s, i % 5 < 3 ? 1 : i % 5 - 3 + (i % 5 == 4), &r);
        check_there_and_back(stream, s.progressive ? "progressive" : "sequential", i);
        tsr_bytes_free(&stream);
    }
}

/* A progressive stream of side x side blocks comes back. breaks: varints of blocks against the rule, or empty. */
static void check_runs(size_t side, int16_t *coefficients, const struct tsr_bytes *breaks, struct rng *r, int number)
{
    struct shape s = {.progressive = true, .precision = 8, .width = (unsigned)side * 8, .height = (unsigned)side * 8};
    s.components = 1;
    s.sampling[0] = 0x11;
    struct tsr_bytes head = make_head(&s, r), stream = {.limit = LIMIT};
    struct tsr_jpeg jpeg = {.bytes = head.bytes, .size = head.size, .stream_size = 1 << 20};
    struct tsr_jpeg_oddities o = {.padding_kind = 1};
    o.runs.at = breaks->bytes;
    o.runs.end = breaks->bytes ? breaks->bytes + breaks->size : NULL;
    for (bool found = true; found;) {
        const size_t from = jpeg.at;
        assert_int_equal(tsr_jpeg_next_scan(&jpeg, &found, NULL), TSR_OK);
        put(&stream, head.bytes + from, (found ? jpeg.at : head.size) - from);
        if (!found) break;
        assert_int_equal(tsr_jpeg_write_scan(&jpeg, coefficients, &o, &stream, NULL), TSR_OK);
    }
    check_there_and_back(stream, "runs", number);
    tsr_bytes_free(&head);
    tsr_bytes_free(&stream);
}

TEST(runs_against_the_rule)
{
    struct rng r = {2};
    for (int i = 0; i < 40; i++) {
        struct tsr_bytes list = {.limit = LIMIT};
        for (uint64_t n = 0; n < 9000;) {
            const uint64_t step = 1 + rng_below(&r, 40);
            assert_int_equal(tsr_bytes_put_varint(&list, step, NULL), TSR_OK);
            n += step;
        }
        int16_t *coefficients = calloc(38 * 38, 128);
        assert_non_null(coefficients);
        for (int k = 0; k < 300; k++) coefficients[rng_below(&r, 38 * 38 * 64)] = (int16_t)rng_between(&r, -5, 5);
        check_runs(38, coefficients, &list, &r, i);
        free(coefficients);
        tsr_bytes_free(&list);
    }
}

/* Runs that end by the rule: by their blocks (185 * 185 is more than 32767), and by their correction bits. */
TEST(runs_by_the_rule)
{
    struct rng r = {12};
    const struct tsr_bytes none = {.limit = LIMIT};
    for (int i = 0; i < 6; i++) {
        const size_t side = i == 0 ? 185 : 40;
        int16_t *coefficients = calloc(side * side, 128);
        assert_non_null(coefficients);
        for (size_t k = 0; k < side * side * 64 && i > 0; k++)
            if (rng_below(&r, 12) == 0) coefficients[k] = (int16_t)(rng_below(&r, 2) ? 4 + i : -4 - i);
        check_runs(side, coefficients, &none, &r, i);
        free(coefficients);
    }
}

/* What the node takes comes back, whatever was done to the stream; and nothing else happens. */
TEST(damaged_streams)
{
    struct rng r = {3};
    int taken = 0;
    for (int i = 0; i < 60; i++) {
        const struct shape s = any_shape(&r);
        struct tsr_bytes stream = make_stream(&s, 1, &r);
        for (int k = 0; k < 60; k++) {
            struct tsr_bytes bad = {.limit = LIMIT}, packed = {.limit = LIMIT}, again = {.limit = LIMIT};
            put(&bad, stream.bytes, k < 30 ? rng_below(&r, (uint32_t)stream.size) : stream.size);
            for (int f = 0; f < 1 + k % 3 && k >= 30; f++)
                bad.bytes[rng_below(&r, (uint32_t)bad.size)] ^= (uint8_t)(1u << rng_below(&r, 8));
            if (split_by(&tsr_node_jpeg, bad.bytes, bad.size, &packed, NULL, NULL) == TSR_OK) {
                taken +=
                    join_by(&tsr_node_jpeg, (struct tsr_node_parts){.plain = packed.bytes, .plain_size = packed.size},
                            0, &again, NULL) == TSR_OK &&
                    again.size <= bad.size && memcmp(again.bytes, bad.bytes, again.size) == 0;
            }
            tsr_bytes_free(&bad);
            tsr_bytes_free(&packed);
            tsr_bytes_free(&again);
        }
        tsr_bytes_free(&stream);
    }
    assert_true(taken > 0);
}

/* A stream is packed up to its fault, which the error tells. MCUs have at most 10 blocks of 64 coefficients. */
TEST(up_to_a_fault)
{
    enum { MCU_BYTES = 10 * 64 * 4 };
    struct rng r = {13};
    int taken = 0, inside = 0;
    for (int i = 0; i < 1200; i++) {
        const struct shape s = any_shape(&r);
        struct tsr_bytes stream = make_stream(&s, i % 5 < 3 ? 1 : i % 5 - 3 + (i % 5 == 4), &r);
        struct tsr_bytes packed = {.limit = LIMIT}, again = {.limit = LIMIT};
        const struct tsr_node_work work = {.room = 0};
        struct tsr_error error = {.offset = TSR_NO_OFFSET};
        size_t used, cut = stream.size / 4 + rng_below(&r, (uint32_t)stream.size * 3 / 4);
        if (i % 3 == 0) memset(stream.bytes + cut, 0xff, stream.size - cut); /* no codes */
        if (i % 3 == 1) memset(stream.bytes + cut, 0, stream.size - cut);
        const struct tsr_bytes cut_stream = {.bytes = stream.bytes, .size = i % 3 == 2 ? cut : stream.size};
        const enum tsr_status status =
            tsr_node_jpeg.split(&work, cut_stream.bytes, cut_stream.size, &used, &packed, NULL, &error);
        if (status == TSR_OK && used < cut_stream.size) {
            taken++;
            inside += error.offset != TSR_NO_OFFSET;
            expect(used <= cut + 2 && (s.progressive || used + MCU_BYTES >= cut), "%d: %zu of %zu", i, used, cut);
            const struct tsr_node_parts parts = {.plain = packed.bytes, .plain_size = packed.size};
            expect(join_by(&tsr_node_jpeg, parts, 0, &again, &error) == TSR_OK, "%d: %s", i, error.text);
            expect(again.size == used && memcmp(again.bytes, stream.bytes, used) == 0, "%d: other bytes", i);
            expect_from_reference(&packed, NULL, &again, "cut");
        }
        tsr_bytes_free(&stream);
        tsr_bytes_free(&packed);
        tsr_bytes_free(&again);
    }
    expect(taken > 300 && inside > 200, "%d streams are cut, %d within a scan", taken, inside);
}

/* JPEG.md 1: a cut scan lacks an MCU at least, and no more than all; the head ends with it. */
TEST(cut_where_it_cannot_be)
{
    struct rng r = {14};
    const struct shape s = {.precision = 8, .width = 32, .height = 32, .components = 1, .sampling = {0x11}};
    for (unsigned whole = 1; whole < 40; whole++) {
        struct tsr_bytes stream = make_stream(&s, 1, &r), packed = {.limit = LIMIT}, again = {.limit = LIMIT};
        stream.size -= 20; /* its size is a varint of two bytes */
        assert_int_equal(split_by(&tsr_node_jpeg, stream.bytes, stream.size, &packed, NULL, NULL), TSR_OK);
        assert_int_equal(packed.bytes[2] & ~1, 8);
        packed.bytes[3] = (uint8_t)(whole + 10);
        const struct tsr_node_parts parts = {.plain = packed.bytes, .plain_size = packed.size};
        const enum tsr_status status = join_by(&tsr_node_jpeg, parts, 0, &again, NULL);
        assert_true(status == TSR_OK || status == TSR_ERROR_CORRUPT);
        if (whole + 10 >= 16) assert_int_equal(status, TSR_ERROR_CORRUPT);
        struct tsr_bytes piece = {.limit = LIMIT};
        uint8_t head[TSR_PIECE_HEAD_LIMIT];
        put(&piece, head,
            tsr_put_piece_head(head, &(struct tsr_piece_head){.kind = TSR_PIECE_JPEG, .size = packed.size}));
        put(&piece, packed.bytes, packed.size);
        expect_by_reference(unpack_piece, &piece, 0, status, &again, "whole");
        tsr_bytes_free(&stream);
        tsr_bytes_free(&packed);
        tsr_bytes_free(&again);
        tsr_bytes_free(&piece);
    }
}

TEST(damaged_packed_bytes)
{
    struct rng r = {4};
    for (int i = 0; i < 40; i++) {
        const struct shape s = any_shape(&r);
        struct tsr_bytes stream = make_stream(&s, 1, &r), packed = {.limit = LIMIT};
        assert_int_equal(split_by(&tsr_node_jpeg, stream.bytes, stream.size, &packed, NULL, NULL), TSR_OK);
        for (size_t k = 0; k < 100; k++) {
            struct tsr_bytes again = {.limit = stream.size + 1000};
            const size_t at = k < 50 ? k : rng_below(&r, (uint32_t)packed.size);
            const uint8_t kept = packed.bytes[at];
            packed.bytes[at] ^= (uint8_t)(1u << rng_below(&r, 8));
            const enum tsr_status status = join_by(
                &tsr_node_jpeg,
                (struct tsr_node_parts){.plain = packed.bytes,
                                        .plain_size = k % 2 ? packed.size : rng_below(&r, (uint32_t)packed.size)},
                0, &again, NULL);
            expect(status == TSR_OK || status == TSR_ERROR_CORRUPT, "status %d", (int)status);
            assert_true(again.size <= again.limit);
            packed.bytes[at] = kept;
            tsr_bytes_free(&again);
        }
        tsr_bytes_free(&stream);
        tsr_bytes_free(&packed);
    }
}

/* JPEG.md: the stream has the size that is said. */
TEST(other_sizes)
{
    struct rng r = {9};
    for (int i = 0; i < 40; i++) {
        const struct shape s = any_shape(&r);
        struct tsr_bytes stream = make_stream(&s, 1, &r), packed = {.limit = LIMIT};
        struct tsr_bytes other = {.limit = LIMIT}, again = {.limit = LIMIT};
        assert_int_equal(split_by(&tsr_node_jpeg, stream.bytes, stream.size, &packed, NULL, NULL), TSR_OK);
        size_t head = 1;
        while (packed.bytes[head - 1] & 128) head++;
        tsr_bytes_put_varint(&other, stream.size + 1, NULL);
        tsr_bytes_put(&other, packed.bytes + head, packed.size - head, NULL);
        assert_int_equal(join_by(&tsr_node_jpeg,
                                 (struct tsr_node_parts){.plain = other.bytes, .plain_size = other.size}, 0, &again,
                                 NULL),
                         TSR_ERROR_CORRUPT);
        tsr_bytes_free(&stream);
        tsr_bytes_free(&packed);
        tsr_bytes_free(&other);
        tsr_bytes_free(&again);
    }
}

static void expect_refused(struct tsr_bytes stream, const char *why)
{
    struct tsr_bytes packed = {.limit = LIMIT};
    struct tsr_error error = {.status = TSR_OK};
    expect(split_by(&tsr_node_jpeg, stream.bytes, stream.size, &packed, NULL, &error) == TSR_ERROR_CORRUPT, "%s", why);
    expect(strstr(error.text, why) != NULL, "%s: %s", why, error.text);
    tsr_bytes_free(&packed);
}

TEST(refused)
{
    struct rng r = {5};
    const struct shape s = {.precision = 8, .width = 9, .height = 9, .components = 1, .sampling = {0x11}};
    struct tsr_bytes stream = make_stream(&s, 1, &r);
    uint8_t *frame = stream.bytes + 2 + 69; /* its header */
    assert_int_equal(frame[1], 0xc0);
    frame[1] = 0xc3;
    expect_refused(stream, "lossless");
    frame[1] = 0xc9;
    expect_refused(stream, "arithmetic");
    frame[1] = 0xc5;
    expect_refused(stream, "hierarchical");
    frame[1] = 0xc0;
    frame[5] = frame[7] = 0xff;
    expect_refused(stream, "claims");
    uint64_t memory;
    assert_int_equal(tsr_jpeg_memory(stream.bytes, stream.size, &memory, NULL), TSR_ERROR_CORRUPT);
    frame[5] = frame[7] = 0x1f; /* 10^6 blocks, of few bytes */
    expect_refused(stream, "claims");
    frame[5] = frame[6] = 0;
    expect_refused(stream, "pixels");
    stream.bytes[0] = 0;
    expect_refused(stream, "SOI");
    tsr_bytes_free(&stream);
}

TEST(heads)
{
    struct rng r = {6};
    for (int i = 0; i < 200; i++) {
        const size_t size = rng_below(&r, 600);
        uint8_t *head = malloc(TSR_JPEG_KNOWN + size), *again = malloc(TSR_JPEG_KNOWN + size);
        assert_true(head && again);
        tsr_jpeg_put_known(head);
        tsr_jpeg_put_known(again);
        for (size_t k = 0; k < size; k++)
            head[TSR_JPEG_KNOWN + k] = i % 2 ? (uint8_t)rng_below(&r, 3) : head[(size_t)i * 60 + k];
        struct tsr_bytes packed = {.limit = LIMIT};
        assert_int_equal(tsr_jpeg_put_head(head + TSR_JPEG_KNOWN, TSR_JPEG_KNOWN, size, &packed, NULL), TSR_OK);
        assert_true(i % 2 || packed.size <= size / 4 + 8);
        struct tsr_cursor cursor = {packed.bytes, packed.size, 0, false};
        assert_true(tsr_jpeg_get_head(&cursor, again + TSR_JPEG_KNOWN, TSR_JPEG_KNOWN, size));
        assert_int_equal(cursor.at, packed.size);
        assert_memory_equal(again, head, TSR_JPEG_KNOWN + size);
        free(head);
        free(again);
        tsr_bytes_free(&packed);
    }
}

TEST(copies_from_ahead)
{
    static uint8_t head[TSR_JPEG_KNOWN + 4];
    struct tsr_bytes packed = {.limit = LIMIT};
    for (uint64_t from = TSR_JPEG_KNOWN - 1; from <= TSR_JPEG_KNOWN; from++) {
        packed.size = 0;
        put_u8(&packed, 1);
        assert_int_equal(tsr_bytes_put_varint(&packed, from, NULL), TSR_OK);
        struct tsr_cursor cursor = {packed.bytes, packed.size, 0, false};
        assert_int_equal(tsr_jpeg_get_head(&cursor, head + TSR_JPEG_KNOWN, TSR_JPEG_KNOWN, 4), from < TSR_JPEG_KNOWN);
    }
    tsr_bytes_free(&packed);
}

/* Symbols by four contexts and bits by a chance, now and then unlikely ones, so that carries run far; raw bits between
 * them. */
static void code_symbols(struct tsr_jpeg_coder *coder, bool decode, struct rng *r, int symbols, uint32_t skew)
{
    struct tsr_jpeg_context contexts[5] = {
        {{0}}, {{40000, 20000, 300, 200, 100, 0, 0, 0}}, {{65535, 65535, 9, 9}}, {{9, 8, 7}}, {{32768}}};
    struct tsr_jpeg_chance chances[2] = {{32768, 30000}, {65535, 2000}};
    for (int k = 0; k < symbols; k++) {
        const int symbol = rng_below(r, 65536) < skew ? 0 : (int)rng_below(r, 8), bits = (int)rng_below(r, 17);
        const uint32_t raw = rng_below(r, 65536) & ((1u << bits) - 1);
        struct tsr_jpeg_context *const in[TSR_JPEG_CONTEXTS] = {contexts + k % 2, contexts + 2, contexts + 3,
                                                                contexts + 4};
        const int bit = symbol > 3;
        if (k % 3)
            assert_int_equal(tsr_jpeg_code_symbol(coder, decode, symbol, in), symbol);
        else
            assert_int_equal(tsr_jpeg_code_bit(coder, decode, bit, chances + k % 2), bit);
        assert_int_equal(tsr_jpeg_code_raw(coder, decode, raw, bits), raw);
    }
}

TEST(range_coder)
{
    static struct tsr_jpeg_rates rates;
    static uint8_t out[1 << 15], raw[1 << 15];
    tsr_jpeg_make_rates(&rates);
    struct rng r = {7};
    for (int i = 0; i < 300; i++) {
        const struct rng seed = r;
        const int symbols = (int)rng_below(&r, 5000);
        const uint32_t skew = i % 3 == 0 ? 65530 : i % 3 == 1 ? 65536 : 30000;
        struct tsr_jpeg_coder coder = {.out = out, .raw_out = raw, .rates = &rates};
        tsr_jpeg_start_encoder(&coder);
        code_symbols(&coder, false, &r, symbols, skew);
        tsr_jpeg_finish_encoder(&coder);
        size_t size = (size_t)(coder.out - out);
        while (coder.raw_out > raw) out[size++] = *--coder.raw_out;
        r = seed;
        tsr_jpeg_start_decoder(&coder, out, size);
        assert_int_equal(rng_below(&r, 5000), symbols);
        code_symbols(&coder, true, &r, symbols, skew);
        assert_false(tsr_jpeg_is_past(&coder));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_shapes),
        cmocka_unit_test(runs_against_the_rule),
        cmocka_unit_test(runs_by_the_rule),
        cmocka_unit_test(damaged_streams),
        cmocka_unit_test(up_to_a_fault),
        cmocka_unit_test(cut_where_it_cannot_be),
        cmocka_unit_test(damaged_packed_bytes),
        cmocka_unit_test(other_sizes),
        cmocka_unit_test(refused),
        cmocka_unit_test(heads),
        cmocka_unit_test(copies_from_ahead),
        cmocka_unit_test(range_coder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
