/* Streams of JPEG-LS (io/nodes/jpeg_ls/) become samples and a residue, and come back. The generator makes
 * headers of all parameters, and residues without deviations; the writer makes their streams. That these are JPEG-LS is
 * shown by T.87's example and a stream of CharLS; tests/bench/jpeg_ls_agreement.c compares many. JPEG_LS.md. */
#include "tests/unit/support.h"

#include "io/nodes/jpeg_ls/jpeg_ls.h"

enum { STREAM_LIMIT = 1 << 22 };

struct trial {
    struct tsr_image image;
    uint32_t maximum;
    size_t raster_size;
    uint8_t *raster;
    struct tsr_bytes residue, stream;
};

static struct tsr_image image_of(uint32_t columns, uint32_t rows, uint8_t components, uint8_t bits, bool planar)
{
    return (struct tsr_image){.columns = columns,
                              .rows = rows,
                              .frames = 1,
                              .components = components,
                              .bits_allocated = bits,
                              .bits_stored = bits,
                              .high_bit = (uint8_t)(bits - 1),
                              .planar = planar};
}

static void put(struct tsr_bytes *bytes, const void *more, size_t size)
{
    struct tsr_error error;
    assert_int_equal(tsr_bytes_put(bytes, more, size, &error), TSR_OK);
}

static void put_byte(struct tsr_bytes *bytes, uint32_t value)
{
    const uint8_t byte = (uint8_t)value;
    put(bytes, &byte, 1);
}

static void put_number(struct tsr_bytes *bytes, uint32_t value, int size)
{
    while (size-- > 0) put_byte(bytes, value >> 8 * size);
}

static void put_marker(struct tsr_bytes *bytes, uint32_t marker, uint32_t length)
{
    put_byte(bytes, 0xff);
    put_byte(bytes, marker);
    if (length > 0) put_number(bytes, length, 2);
}

static struct tsr_bytes new_bytes(void)
{
    return (struct tsr_bytes){.limit = STREAM_LIMIT};
}

/* Residue of a header: its size first. */
static void keep_header(struct tsr_bytes *residue, struct tsr_bytes *header)
{
    struct tsr_error error;
    assert_int_equal(tsr_bytes_put_varint(residue, header->size, &error), TSR_OK);
    put(residue, header->bytes, header->size);
    header->size = 0;
}

struct choice {
    int precision, components, interleave, transform;
    uint32_t t1, t2, t3, reset, restart_lines;
    bool has_preset;
};

static void put_frame(struct rng *r, struct tsr_bytes *h, const struct trial *t, const struct choice *c)
{
    put_marker(h, 0xd8, 0);
    if (rng_below(r, 4) == 0) { /* a comment after fill bytes */
        put_number(h, 0xffff, 2);
        put_marker(h, 0xfe, 5);
        put(h, "abc", 3);
    }
    if (c->transform > 0 || rng_below(r, 8) == 0) {
        put_marker(h, 0xe8, 7);
        put(h, "mrfx", 4);
        put_byte(h, (uint32_t)c->transform);
    }
    put_marker(h, 0xf7, 8 + 3 * (uint32_t)c->components);
    put_byte(h, (uint32_t)c->precision);
    put_number(h, t->image.rows, 2);
    put_number(h, t->image.columns, 2);
    put_byte(h, (uint32_t)c->components);
    for (uint32_t i = 0; i < (uint32_t)c->components; i++) put_number(h, (i + 1) << 16 | 0x1100, 3);
    if (c->has_preset) {
        put_marker(h, 0xf8, 13);
        put_byte(h, 1);
        put_number(h, t->maximum == (1u << c->precision) - 1 && rng_below(r, 2) ? 0 : t->maximum, 2);
        put_number(h, c->t1, 2);
        put_number(h, c->t2, 2);
        put_number(h, c->t3, 2);
        put_number(h, c->reset, 2);
    }
    if (c->restart_lines > 0) {
        const int size = rng_between(r, 2, 4);
        put_marker(h, 0xdd, 2 + (uint32_t)size);
        put_number(h, c->restart_lines, size);
    }
}

/* Residue without deviations: components in scans of c->interleave, or of one each. */
static void make_residue(struct rng *r, struct trial *t, const struct choice *c)
{
    struct tsr_bytes header = new_bytes();
    const int in_scan = c->interleave > 0 ? c->components : 1;
    put_frame(r, &header, t, c);
    for (int first = 0; first < c->components; first += in_scan) {
        put_marker(&header, 0xda, 6 + 2 * (uint32_t)in_scan);
        put_byte(&header, (uint32_t)in_scan);
        for (int i = 0; i < in_scan; i++) put_number(&header, ((uint32_t)(first + i) + 1) << 8, 2);
        put_number(&header, (uint32_t)c->interleave << 8, 3);
        keep_header(&t->residue, &header);
        const uint32_t step = c->restart_lines > 0 ? c->restart_lines : t->image.rows;
        for (uint32_t y = 0; y < t->image.rows; y += step) put_byte(&t->residue, 0);
    }
    put_byte(&t->residue, rng_below(r, 2));
    tsr_bytes_free(&header);
}

static struct choice choose(struct rng *r, struct trial *t)
{
    struct choice c = {.precision = rng_between(r, 2, 16)};
    c.components = rng_between(r, 1, 4);
    c.interleave = (int)rng_below(r, 3);
    if (c.components == 3 && rng_below(r, 3) == 0) {
        c.transform = rng_between(r, 0, 3);
        c.precision = rng_below(r, 2) ? 8 : 16;
    }
    c.has_preset = c.transform == 0 && rng_below(r, 2);
    t->maximum = (1u << c.precision) - 1;
    if (c.has_preset) {
        if (rng_below(r, 2)) t->maximum = 1 + rng_below(r, t->maximum);
        if (rng_below(r, 2)) {
            c.t1 = 1 + rng_below(r, t->maximum);
            c.t2 = c.t1 + rng_below(r, t->maximum - c.t1 + 1);
            c.t3 = c.t2 + rng_below(r, t->maximum - c.t2 + 1);
        }
        if (rng_below(r, 2)) c.reset = 3 + rng_below(r, (t->maximum > 255 ? t->maximum : 255) - 2);
    }
    const uint32_t side = rng_below(r, 8) ? 20 : 200;
    const uint8_t bits = c.precision > 8 || rng_below(r, 3) == 0 ? 16 : 8;
    const uint32_t columns = 1 + rng_below(r, side), rows = 1 + rng_below(r, side);
    t->image = image_of(columns, rows, (uint8_t)c.components, bits, rng_below(r, 2));
    if (rng_below(r, 2)) c.restart_lines = 1 + rng_below(r, t->image.rows + 3);
    t->raster_size = (size_t)t->image.columns * t->image.rows * t->image.components * t->image.bits_allocated / 8;
    return c;
}

/* Noise, steps, flat stretches, and extremes. */
static void draw(struct rng *r, struct trial *t)
{
    const uint32_t style = rng_below(r, 5), top = t->maximum, step = 1 + rng_below(r, top / 16 + 1);
    const size_t bytes = t->image.bits_allocated / 8;
    uint32_t value = rng_below(r, top + 1);
    t->raster = must(malloc(t->raster_size + 1));
    for (size_t i = 0; i < t->raster_size; i += bytes) {
        if (style == 0 || (style == 1 && rng_below(r, 12) == 0) || (style == 2 && rng_below(r, 300) == 0))
            value = (value + rng_below(r, 2 * step + 1) + (top + 1) - step % (top + 1)) % (top + 1);
        if (style == 3) value = rng_below(r, top + 1);
        if (style == 4) value = rng_below(r, 3) ? top : rng_below(r, 2) ? 0 : rng_below(r, top + 1);
        t->raster[i] = (uint8_t)value;
        if (bytes == 2) t->raster[i + 1] = (uint8_t)(value >> 8);
    }
}

static void make_trial(struct rng *r, struct trial *t)
{
    struct tsr_error error = {0};
    *t = (struct trial){.residue = new_bytes(), .stream = new_bytes()};
    const struct choice c = choose(r, t);
    draw(r, t);
    make_residue(r, t, &c);
    const enum tsr_status status =
        tsr_node_join(&tsr_node_jpeg_ls, &t->image, t->raster, t->residue.bytes, t->residue.size, &t->stream, &error);
    expect(status == TSR_OK, "%s: %u x %u x %d, %d bits, MAXVAL %u", error.text, t->image.columns, t->image.rows,
           c.components, c.precision, t->maximum);
}

static void free_trial(struct trial *t)
{
    tsr_bytes_free(&t->residue);
    tsr_bytes_free(&t->stream);
    free(t->raster);
}

/* Reads a copy in a room of its exact size, for ASan. */
static enum tsr_status read_stream(const struct tsr_image *image, const uint8_t *stream, size_t size, uint8_t *raster,
                                   struct tsr_bytes *residue, struct tsr_error *error)
{
    uint8_t *copy = must(malloc(size > 0 ? size : 1));
    memcpy(copy, stream, size);
    const enum tsr_status status = tsr_node_split(&tsr_node_jpeg_ls, image, copy, size, raster, residue, error);
    free(copy);
    return status;
}

/* Whether the stream is read, and comes back. */
static bool comes_back(const struct tsr_image *image, const uint8_t *stream, size_t size, uint8_t *raster)
{
    struct tsr_bytes residue = new_bytes(), again = new_bytes();
    struct tsr_error error = {0};
    enum tsr_status status = read_stream(image, stream, size, raster, &residue, &error);
    assert_true(status == TSR_OK || status == TSR_ERROR_CORRUPT);
    if (status == TSR_OK) {
        status = tsr_node_join(&tsr_node_jpeg_ls, image, raster, residue.bytes, residue.size, &again, &error);
        assert_true(status == TSR_OK || status == TSR_ERROR_CORRUPT);
    }
    const bool same = status == TSR_OK && again.size == size && memcmp(again.bytes, stream, size) == 0;
    tsr_bytes_free(&residue);
    tsr_bytes_free(&again);
    return same;
}

/* ---- Known streams --------------------------------------------------------------------------------------- */

/* T.87 H.3. */
static const uint8_t example[] = {
    0xff, 0xd8, 0xff, 0xf7, 0x00, 0x0b, 0x08, 0x00, 0x04, 0x00, 0x04, 0x01, 0x01, 0x11, 0x00, 0xff, 0xda, 0x00, 0x08,
    0x01, 0x01, 0x00, 0x00, 0x00, 0x00, 0xc0, 0x00, 0x00, 0x6c, 0x80, 0x20, 0x8e, 0x01, 0xc0, 0x00, 0x00, 0x57, 0x40,
    0x00, 0x00, 0x6e, 0xe6, 0x00, 0x00, 0x01, 0xbc, 0x18, 0x00, 0x00, 0x05, 0xd8, 0x00, 0x00, 0x91, 0x60, 0xff, 0xd9};
static const uint8_t example_samples[16] = {0, 0, 90, 74, 68, 50, 43, 205, 64, 145, 145, 145, 100, 145, 145, 145};

TEST(the_example_of_the_standard)
{
    const struct tsr_image image = image_of(4, 4, 1, 8, false);
    uint8_t raster[16];
    assert_true(comes_back(&image, example, sizeof example, raster));
    assert_memory_equal(raster, example_samples, 16);
    const struct tsr_image wide = image_of(4, 4, 1, 16, false);
    uint8_t wide_raster[32];
    assert_true(comes_back(&wide, example, sizeof example, wide_raster));
    for (int i = 0; i < 16; i++) assert_int_equal(wide_raster[2 * i] | wide_raster[2 * i + 1] << 8, example_samples[i]);
}

/* ---- All parameters -------------------------------------------------------------------------------------- */

/* The streams have the bytes that they had when CharLS and libjpeg agreed on them (tests/bench/streams_jpeg_ls.py):
 * what reader and writer do wrong together is seen. */
TEST(streams_come_back)
{
    struct rng r = {1};
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (int i = 0; i < 600; i++) {
        struct trial t;
        struct tsr_error error = {0};
        make_trial(&r, &t);
        struct tsr_bytes residue = new_bytes();
        uint8_t *raster = must(malloc(t.raster_size + 1));
        const enum tsr_status status = read_stream(&t.image, t.stream.bytes, t.stream.size, raster, &residue, &error);
        expect(status == TSR_OK, "trial %d: %s", i, error.text);
        expect(memcmp(raster, t.raster, t.raster_size) == 0, "trial %d: other samples", i);
        expect(residue.size == t.residue.size && memcmp(residue.bytes, t.residue.bytes, residue.size) == 0,
               "trial %d: another residue", i);
        for (size_t at = 0; at < t.stream.size; at++) hash = (hash ^ t.stream.bytes[at]) * 0x100000001b3u;
        free(raster);
        tsr_bytes_free(&residue);
        free_trial(&t);
    }
    expect(hash == 0xdd47a6af7fc336b0u, "the streams are others: %llx", (unsigned long long)hash);
}

/* The example with other bytes after the sample's last bit: other padding, more bytes, no EOI, another tail. */
TEST(ends_come_back)
{
    const struct tsr_image image = image_of(4, 4, 1, 8, false);
    static const uint8_t ends[][8] = {{0x7f, 0xff, 0xd9},    {0x60, 0, 0, 0xff, 0xd9},    {0x60},
                                      {0x60, 0xff},          {0x60, 0xff, 0xff, 0xd9, 0}, {0x60, 0xff, 0xd9, 0},
                                      {0x60, 0xff, 0xd9, 1}, {0x60, 0xff, 0xd9, 0, 0},    {0x60, 0xff, 0}};
    static const size_t sizes[] = {3, 5, 1, 2, 5, 4, 4, 5, 3};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        uint8_t stream[80], raster[16];
        const size_t kept = sizeof example - 3;
        memcpy(stream, example, kept);
        memcpy(stream + kept, ends[i], sizes[i]);
        expect(comes_back(&image, stream, kept + sizes[i], raster), "end %zu", i);
        assert_memory_equal(raster, example_samples, 16);
    }
}

/* Restart markers with fill bytes, with another number, with more bytes before them. */
TEST(restart_markers_come_back)
{
    struct rng r = {7};
    int changed = 0;
    for (int i = 0; i < 150; i++) {
        struct trial t;
        make_trial(&r, &t);
        uint8_t *raster = must(malloc(t.raster_size + 1)), *stream = must(malloc(t.stream.size + 2));
        for (size_t at = 0; at + 1 < t.stream.size; at++) {
            const uint8_t *bytes = t.stream.bytes + at;
            if (bytes[0] != 0xff || bytes[1] < 0xd0 || bytes[1] > 0xd7) continue;
            const size_t more = rng_below(&r, 3);
            memcpy(stream, t.stream.bytes, at);
            memset(stream + at, rng_below(&r, 2) ? 0xff : 0, more);
            memcpy(stream + at + more, bytes, t.stream.size - at);
            stream[at + more + 1] = (uint8_t)(0xd0 + rng_below(&r, 8));
            expect(comes_back(&t.image, stream, t.stream.size + more, raster), "trial %d, byte %zu", i, at);
            assert_memory_equal(raster, t.raster, t.raster_size);
            changed++;
            if (changed % 4 == 0) break;
        }
        free(raster);
        free(stream);
        free_trial(&t);
    }
    assert_true(changed > 40);
}

/* ---- Refusals and damage --------------------------------------------------------------------------------- */

static void check_refusal(size_t at, uint8_t byte, const char *why)
{
    const struct tsr_image image = image_of(4, 4, 1, 8, false);
    struct tsr_bytes residue = new_bytes();
    struct tsr_error error = {0};
    uint8_t stream[sizeof example], raster[16];
    memcpy(stream, example, sizeof example);
    stream[at] = byte;
    if (at == 39) stream[40] = 0x80;
    assert_int_equal(read_stream(&image, stream, sizeof stream, raster, &residue, &error), TSR_ERROR_CORRUPT);
    expect(strstr(error.text, why), "byte %zu = %02x: %s", at, byte, error.text);
    tsr_bytes_free(&residue);
}

TEST(refusals_say_why)
{
    check_refusal(1, 0xd9, "SOI");
    check_refusal(3, 0xc3, "another process");
    check_refusal(3, 0xdc, "lines late");
    check_refusal(6, 9, "9 bits");
    check_refusal(6, 1, "1 bits");
    check_refusal(8, 5, "4 x 5");
    check_refusal(13, 0x10, "subsampled");
    check_refusal(20, 2, "unknown component");
    check_refusal(22, 3, "near-lossless");
    check_refusal(23, 3, "interleave");
    check_refusal(24, 1, "point transform");
    check_refusal(39, 0xff, "ends early"); /* a marker among the codes */
}

TEST(truncated_and_flipped_streams_do_no_harm)
{
    struct rng r = {3};
    for (int i = 0; i < 120; i++) {
        struct trial t;
        make_trial(&r, &t);
        if (t.stream.size > 600) {
            free_trial(&t);
            continue;
        }
        uint8_t *raster = must(malloc(t.raster_size + 1));
        for (size_t size = 0; size < t.stream.size; size++) comes_back(&t.image, t.stream.bytes, size, raster);
        for (int j = 0; j < 100; j++) {
            const size_t at = rng_below(&r, (uint32_t)t.stream.size);
            const uint8_t flip = (uint8_t)(1u << rng_below(&r, 8));
            t.stream.bytes[at] ^= flip;
            comes_back(&t.image, t.stream.bytes, t.stream.size, raster);
            t.stream.bytes[at] ^= flip;
        }
        free(raster);
        free_trial(&t);
    }
}

TEST(damaged_residues_do_no_harm)
{
    struct rng r = {4};
    for (int i = 0; i < 120; i++) {
        struct trial t;
        struct tsr_error error = {0};
        make_trial(&r, &t);
        for (size_t size = 0; size < t.residue.size; size++) {
            uint8_t *cut = must(malloc(size > 0 ? size : 1));
            memcpy(cut, t.residue.bytes, size);
            t.stream.size = 0;
            assert_int_equal(tsr_node_join(&tsr_node_jpeg_ls, &t.image, t.raster, cut, size, &t.stream, &error),
                             TSR_ERROR_CORRUPT);
            free(cut);
        }
        for (int j = 0; j < 40; j++) {
            const size_t at = rng_below(&r, (uint32_t)t.residue.size);
            const uint8_t flip = (uint8_t)(1u << rng_below(&r, 8));
            t.residue.bytes[at] ^= flip;
            t.stream.size = 0;
            const enum tsr_status status = tsr_node_join(&tsr_node_jpeg_ls, &t.image, t.raster, t.residue.bytes,
                                                         t.residue.size, &t.stream, &error);
            assert_true(status == TSR_OK || status == TSR_ERROR_CORRUPT);
            t.residue.bytes[at] ^= flip;
        }
        free_trial(&t);
    }
}

/* A sample above MAXVAL, and a stream above its limit. */
TEST(writing_refuses_what_does_not_fit)
{
    const struct tsr_image image = image_of(4, 4, 1, 16, false);
    struct tsr_bytes residue = new_bytes(), stream = new_bytes();
    struct tsr_error error = {0};
    uint8_t raster[32];
    assert_int_equal(read_stream(&image, example, sizeof example, raster, &residue, &error), TSR_OK);
    stream.limit = sizeof example;
    assert_int_equal(tsr_node_join(&tsr_node_jpeg_ls, &image, raster, residue.bytes, residue.size, &stream, &error),
                     TSR_OK);
    stream.size = 0;
    stream.limit = sizeof example - 1;
    assert_int_equal(tsr_node_join(&tsr_node_jpeg_ls, &image, raster, residue.bytes, residue.size, &stream, &error),
                     TSR_ERROR_CORRUPT);
    stream.size = 0;
    stream.limit = STREAM_LIMIT;
    raster[1] = 1;
    assert_int_equal(tsr_node_join(&tsr_node_jpeg_ls, &image, raster, residue.bytes, residue.size, &stream, &error),
                     TSR_ERROR_CORRUPT);
    tsr_bytes_free(&residue);
    tsr_bytes_free(&stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_of_the_standard),
        cmocka_unit_test(streams_come_back),
        cmocka_unit_test(ends_come_back),
        cmocka_unit_test(restart_markers_come_back),
        cmocka_unit_test(refusals_say_why),
        cmocka_unit_test(truncated_and_flipped_streams_do_no_harm),
        cmocka_unit_test(damaged_residues_do_no_harm),
        cmocka_unit_test(writing_refuses_what_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
