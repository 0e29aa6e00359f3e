/* Streams of the kind "rle": packets of any choice come back, and those of known encoders cost nothing. The encoders
 * here are written from what those do, a byte at a time. */
#include "stream_trial.h"

static const struct tsr_node *const kind = &tsr_node_rle;

enum { HEAD = 5 }; /* bytes of the residue before those of segments, which are 2 each if nothing deviates */

static void put_literal(struct text *t, const uint8_t *bytes, size_t count)
{
    put(t, (unsigned)count - 1);
    put_all(t, bytes, count);
}

static void put_run(struct text *t, uint8_t byte, size_t count)
{
    put(t, 257 - (unsigned)count);
    put(t, byte);
}

static size_t run_at(const uint8_t *bytes, size_t at, size_t end)
{
    size_t count = 1;
    while (at + count < end && bytes[at + count] == bytes[at]) count++;
    return count;
}

/* ---- Encoders -------------------------------------------------------------------------------------------- */

struct literal {
    uint8_t bytes[1 << 14];
    size_t count;
};

static void flush_literal(struct text *t, struct literal *l)
{
    for (size_t at = 0; at < l->count; at += 128)
        put_literal(t, l->bytes + at, l->count - at < 128 ? l->count - at : 128);
    l->count = 0;
}

/* As pydicom: each pair is a run. */
static void put_row_pairs(struct text *t, const uint8_t *row, size_t count)
{
    struct literal *l = must(calloc(1, sizeof *l));
    for (size_t at = 0, run; at < count; at += run) {
        run = run_at(row, at, count);
        if (run == 1) {
            l->bytes[l->count++] = row[at];
            continue;
        }
        flush_literal(t, l);
        size_t left = run;
        for (; left >= 128; left -= 128) put_run(t, row[at], 128);
        if (left > 1) put_run(t, row[at], left);
        if (left == 1) put_literal(t, row + at, 1);
    }
    flush_literal(t, l);
    free(l);
}

/* As DCMTK: runs of 3, and of 2 where a row ends. */
static void put_row_triples(struct text *t, const uint8_t *row, size_t count)
{
    struct literal *l = must(calloc(1, sizeof *l));
    for (size_t at = 0, run; at < count; at += run) {
        run = run_at(row, at, count);
        if (run < 3 && (run == 1 || at + run < count)) {
            for (size_t i = 0; i < run; i++) l->bytes[l->count++] = row[at];
            continue;
        }
        flush_literal(t, l);
        size_t left = run;
        for (; left > 128; left -= 128) put_run(t, row[at], 128);
        if (left == 1)
            put_literal(t, row + at, 1);
        else
            put_run(t, row[at], left);
    }
    flush_literal(t, l);
    free(l);
}

/* As TIFF's PackBits: a run of 2 is one, unless a literal goes before. */
static void put_row_packbits(struct text *t, const uint8_t *row, size_t count)
{
    for (size_t at = 0; at < count;) {
        const size_t run = run_at(row, at, count);
        if (run >= 2) {
            const size_t some = run < 128 ? run : 128;
            put_run(t, row[at], some);
            at += some;
            continue;
        }
        size_t end = at + 1;
        while (end < count && end - at < 128 && run_at(row, end, count) < 3) end++;
        put_literal(t, row + at, end - at);
        at = end;
    }
}

/* Packets of any kind and length, and no operations. */
static void put_row_any(struct text *t, const uint8_t *row, size_t count, struct rng *r)
{
    for (size_t at = 0; at < count;) {
        size_t most = run_at(row, at, count);
        if (rng_below(r, 20) == 0) put(t, 128);
        if (most > 1 && rng_below(r, 4) > 0) {
            most = most < 128 ? most : 128;
            const size_t some = rng_below(r, 2) ? most : 2 + rng_below(r, (uint32_t)most - 1);
            put_run(t, row[at], some);
            at += some;
            continue;
        }
        most = count - at < 128 ? count - at : 128;
        const size_t some = 1 + rng_below(r, (uint32_t)most);
        put_literal(t, row + at, some);
        at += some;
    }
}

/* ---- Streams --------------------------------------------------------------------------------------------- */

enum encoder { PAIRS, TRIPLES, PACKBITS, ANY };

struct setting {
    struct tsr_image image;
    enum encoder encoder;
    bool crosses, pads_stream;
    size_t gap, tail;         /* bytes before the first segment, and after each */
    unsigned unused;          /* a number in the place of an offset that no segment has */
    size_t missing, too_many; /* the last segment lacks bytes, or its plane ends within its last packet */
};

static void put_u32(uint8_t *bytes, size_t value)
{
    for (int i = 0; i < 4; i++) bytes[i] = (uint8_t)(value >> 8 * i);
}

static void put_row(struct text *t, const struct setting *o, const uint8_t *row, size_t count, struct rng *r)
{
    if (o->encoder == PAIRS) put_row_pairs(t, row, count);
    if (o->encoder == TRIPLES) put_row_triples(t, row, count);
    if (o->encoder == PACKBITS) put_row_packbits(t, row, count);
    if (o->encoder == ANY) put_row_any(t, row, count, r);
}

static void put_stream(struct text *t, const struct setting *o, const uint8_t *raster, struct rng *r)
{
    const struct tsr_image *image = &o->image;
    const size_t count = (size_t)image->columns * image->rows, bytes = image->bits_allocated / 8;
    const size_t segments = image->components * bytes, columns = o->crosses ? count : image->columns;
    uint8_t *plane = must(malloc(count));
    for (int i = 0; i < 64; i++) put(t, 0);
    put_u32(t->bytes, segments);
    if (o->unused) put_u32(t->bytes + 60, o->unused);
    for (size_t i = 0; i < o->gap; i++) put(t, 7);
    for (size_t s = 0; s < segments; s++) {
        const size_t component = s / bytes, byte = bytes - 1 - s % bytes, begin = t->size;
        for (size_t i = 0; i < count; i++) {
            const size_t sample = image->planar ? component * count + i : i * image->components + component;
            plane[i] = raster[sample * bytes + byte];
        }
        put_u32(t->bytes + 4 + 4 * s, t->size);
        for (size_t at = 0; at < count; at += columns) put_row(t, o, plane + at, columns, r);
        for (size_t i = 0; i < o->tail; i++) put(t, 0x31);
        if (!o->pads_stream && (t->size - begin) % 2) put(t, 0);
    }
    if (o->pads_stream && t->size % 2) put(t, 0);
    free(plane);
}

static uint8_t *draw(const struct tsr_image *image, struct rng *r)
{
    const size_t size = raster_bytes(image);
    uint8_t *raster = must(malloc(size));
    const uint32_t longest = 1 + rng_width(r, 9), values = 2 + rng_below(r, 250);
    uint8_t value = 0;
    for (size_t i = 0, left = 0; i < size; i++, left--) {
        if (left == 0) {
            left = 1 + (rng_below(r, 3) > 0 ? 0 : rng_below(r, longest));
            value = (uint8_t)rng_below(r, values);
        }
        raster[i] = value;
    }
    return raster;
}

static struct setting random_setting(struct rng *r)
{
    static const int bits[] = {8, 16, 32};
    struct setting o = {.encoder = (enum encoder)rng_below(r, 4)};
    const int components = rng_between(r, 1, 3);
    o.image = image_of(1 + rng_below(r, rng_below(r, 2) ? 400 : 20), 1 + rng_below(r, 12), components,
                       bits[rng_below(r, 3)], rng_below(r, 2));
    o.pads_stream = rng_below(r, 3) == 0;
    return o;
}

TEST(all_packets_come_back)
{
    struct rng r = {1};
    struct text *t = must(malloc(sizeof *t));
    for (int i = 0; i < 2000; i++) {
        struct setting o = random_setting(&r);
        if (raster_bytes(&o.image) > 20000) o.image.rows = 1;
        o.crosses = o.encoder == ANY && rng_below(&r, 2);
        if (rng_below(&r, 8) == 0) o.gap = rng_below(&r, 9);
        if (rng_below(&r, 8) == 0) o.tail = rng_below(&r, 9);
        if (rng_below(&r, 8) == 0) o.unused = 77;
        uint8_t *raster = draw(&o.image, &r);
        const bool is_plain = o.encoder != ANY && o.gap == 0 && o.tail == 0 && o.unused == 0;
        char name[100];
        snprintf(name, sizeof name, "case %d: %u x %u of %d of %d bits, encoder %d", i, o.image.columns, o.image.rows,
                 o.image.components, o.image.bits_allocated, (int)o.encoder);
        t->size = 0;
        put_stream(t, &o, raster, &r);
        expect_exact(kind, &o.image, t, raster, is_plain ? HEAD + 12 * 2 + 40 : SIZE_MAX, name);
        free(raster);
    }
    free(t);
}

/* Large enough that another rule than the encoder's would deviate. */
TEST(packets_of_known_encoders_cost_nothing)
{
    struct rng r = {2};
    struct text *t = must(malloc(sizeof *t));
    for (int i = 0; i < 120; i++) {
        struct setting o = {.encoder = (enum encoder)(i % 3), .pads_stream = i % 4 > 1};
        const int bits = o.pads_stream ? 16 : 8; /* padding of segments and of streams differs if there are several */
        o.image = image_of(i % 5 == 0 ? 128 : 300 + (uint32_t)i, 40, 1, bits, false);
        o.crosses = o.encoder == PACKBITS && i % 2;
        uint8_t *raster = draw(&o.image, &r);
        if (i % 5 == 0) memset(raster, 9, raster_bytes(&o.image) / 4); /* runs that end with rows */
        if (i % 5 == 0) raster[raster_bytes(&o.image) / 4] = 9;
        t->size = 0;
        put_stream(t, &o, raster, &r);
        expect_exact(kind, &o.image, t, raster, HEAD + 2 * (size_t)bits / 8, "a known encoder");
        free(raster);
    }
    free(t);
}

/* 2 x 3 samples of 16 bits: 0x0102 0x0102 0x0102, 0x0103 0x0204 0x0305. */
TEST(a_stream_made_by_hand)
{
    static const uint8_t bytes[] = {2, 0, 0, 0, 64, 0, 0, 0, 70, 0, 0, 0, 0,   0, 0, 0, 0, 0, 0,   0, 0, 0, 0, 0, 0, 0,
                                    0, 0, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0, 0,   0, 0, 0, 0, 0, 0,   0, 0, 0, 0, 0, 0, 0,
                                    0, 0, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0, 254, 1, 2, 1, 2, 3, 254, 2, 2, 3, 4, 5};
    static const uint8_t raster[] = {2, 1, 2, 1, 2, 1, 3, 1, 4, 2, 5, 3};
    struct text *t = must(calloc(1, sizeof *t));
    put_all(t, bytes, sizeof bytes);
    const struct tsr_image image = image_of(3, 2, 1, 16, false);
    expect_exact(kind, &image, t, raster, HEAD + 4, "by hand");
    free(t);
}

/* Samples of one bit, and segments that do not fit: what they have is used, and the stream comes back. */
TEST(segments_of_another_size_come_back)
{
    static const struct {
        uint8_t bytes[8];
        size_t size;
        uint8_t raster[6];
    } cases[] = {{{5, 1, 2, 3, 4, 5, 6}, 7, {1, 2, 3, 4, 5, 6}},
                 {{7, 1, 2, 3, 4, 5, 6, 7}, 8, {1, 2, 3, 4, 5, 6}},
                 {{3, 1, 2, 3, 4}, 5, {1, 2, 3, 4, 0, 0}},
                 {{247, 9, 1, 1, 1}, 5, {9, 9, 9, 9, 9, 9}},
                 {{3, 1, 2}, 3, {1, 2, 0, 0, 0, 0}},
                 {{253, 9, 253}, 3, {9, 9, 9, 9, 0, 0}},
                 {{128, 128, 0, 8, 128}, 5, {8, 0, 0, 0, 0, 0}},
                 {{0}, 0, {0}}};
    struct text *t = must(calloc(1, sizeof *t));
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        memset(t, 0, sizeof *t);
        t->size = 64;
        put_u32(t->bytes, 1);
        put_u32(t->bytes + 4, 64);
        put_all(t, cases[i].bytes, cases[i].size);
        char name[20];
        snprintf(name, sizeof name, "case %zu", i);
        struct tsr_image image = image_of(3, 2, 1, 8, false);
        expect_exact(kind, &image, t, cases[i].raster, HEAD + 30, name);
        image = image_of(12, 4, 1, 1, false);
        expect_exact(kind, &image, t, cases[i].raster, HEAD + 30, name);
    }
    free(t);
}

TEST(what_is_not_rle_of_the_image_is_refused)
{
    struct rng r = {3};
    const struct tsr_image image = image_of(20, 10, 3, 16, false), gray = image_of(20, 10, 1, 16, false),
                           many = image_of(20, 10, 4, 32, false), bits = image_of(3, 3, 1, 1, false);
    const struct setting o = {.encoder = PAIRS, .image = image};
    uint8_t *raster = draw(&image, &r);
    struct text *t = must(calloc(1, sizeof *t));
    put_stream(t, &o, raster, &r);
    expect_refused(kind, &gray, t, "6 segments, not 2");
    struct text *other = (struct text *)(void *)copy_of(t, sizeof *t);
    put_u32(other->bytes + 4, 63);
    expect_refused(kind, &image, other, "segment 1");
    *other = *t;
    put_u32(other->bytes + 8, 63);
    expect_refused(kind, &image, other, "segment 1");
    *other = *t;
    put_u32(other->bytes + 24, t->size + 1);
    expect_refused(kind, &image, other, "segment 5");
    *other = *t;
    put_u32(other->bytes, 16);
    expect_refused(kind, &many, other, "16 segments");
    other->size = 63;
    expect_refused(kind, &image, other, "63 bytes");
    memset(other, 0, sizeof *other);
    put_u32(other->bytes, 1);
    put_u32(other->bytes + 4, 64);
    other->size = 64;
    put_all(other, (const uint8_t[]){1, 255, 3}, 3);
    expect_refused(kind, &bits, other, "bits after its last sample");
    free(other);
    free(t);
    free(raster);
}

TEST(damage_does_no_harm)
{
    struct rng r = {4};
    struct text *t = must(malloc(sizeof *t));
    int read = 0;
    for (int i = 0; i < 24; i++) {
        struct setting o = random_setting(&r);
        o.image.columns = 1 + rng_below(&r, 150);
        o.image.rows = 1 + rng_below(&r, 3);
        o.gap = rng_below(&r, 3);
        o.tail = rng_below(&r, 3);
        uint8_t *raster = draw(&o.image, &r);
        t->size = 0;
        put_stream(t, &o, raster, &r);
        read += attack_stream(kind, &o.image, t, true, &r);
        attack_residue(kind, &o.image, t, &r);
        free(raster);
    }
    expect(read > 1000, "only %d damaged streams were read", read);
    free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_packets_come_back),
        cmocka_unit_test(packets_of_known_encoders_cost_nothing),
        cmocka_unit_test(a_stream_made_by_hand),
        cmocka_unit_test(segments_of_another_size_come_back),
        cmocka_unit_test(what_is_not_rle_of_the_image_is_refused),
        cmocka_unit_test(damage_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
