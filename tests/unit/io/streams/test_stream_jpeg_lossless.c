/* Streams of the kind "jpeg-lossless": what an encoder of all parameters writes is read and comes back. The encoder
 * here is written from T.81, a bit at a time. */
#include "stream_trial.h"

static const struct tsr_node *const kind = &tsr_node_jpeg_lossless;

/* What a stream is made with. */
struct setting {
    uint32_t columns, rows, restart_rows;
    int components, bits_allocated, precision, selection, shift, padding, table_count;
    bool planar, apart, whole; /* apart: a scan for each component; whole: category 16 has extra bits */
    int odd_interval;          /* number of one with something before its marker; 0: none */
    const char *odd;           /* what that is; sizes below */
    size_t odd_size, tail_size;
    const char *tail;
};

/* A code: 17 categories of equal or rising lengths, none of them all ones. */
struct plain_code {
    uint8_t counts[16], symbols[17];
    unsigned code[17], length[17];
};

struct bit_text {
    struct text *text;
    unsigned byte, held;
};

static void put_bit(struct bit_text *b, unsigned bit)
{
    b->byte = b->byte << 1 | bit;
    if (++b->held < 8) return;
    put(b->text, b->byte);
    if (b->byte == 0xff) put(b->text, 0);
    b->byte = b->held = 0;
}

static void put_bits(struct bit_text *b, unsigned value, unsigned count)
{
    while (count-- > 0) put_bit(b, value >> count & 1);
}

/* Categories in a random order; lengths are 2, 3, 4, ... 15 and then 16, or nearly equal. */
static struct plain_code make_code(struct rng *r)
{
    struct plain_code code = {.counts = {0}};
    const bool is_steep = rng_below(r, 2);
    unsigned next = 0, length = is_steep ? 2 : 5;
    for (int i = 0; i < 17; i++) code.symbols[i] = (uint8_t)i;
    for (uint32_t i = 16; i > 0; i--) {
        const uint32_t other = rng_below(r, i + 1);
        const uint8_t symbol = code.symbols[i];
        code.symbols[i] = code.symbols[other];
        code.symbols[other] = symbol;
    }
    for (int i = 0; i < 17; i++) {
        code.counts[length - 1]++;
        code.code[code.symbols[i]] = next;
        code.length[code.symbols[i]] = length;
        next++;
        if (is_steep && length < 16) {
            next <<= 1;
            length++;
        }
    }
    return code;
}

static void put_u16(struct text *t, unsigned value)
{
    put(t, value >> 8);
    put(t, value & 255);
}

static void put_segment(struct text *t, unsigned marker, unsigned size)
{
    put(t, 0xff);
    put(t, marker);
    put_u16(t, size + 2);
}

static void put_table(struct text *t, const struct plain_code *code, unsigned number)
{
    put_segment(t, 0xc4, 17 + 17);
    put(t, number);
    put_all(t, code->counts, 16);
    put_all(t, code->symbols, 17);
}

static void put_difference(struct bit_text *b, const struct plain_code *code, int difference, bool whole)
{
    if (!whole) difference = (int)(((unsigned)difference + 32767u) % 65536u) - 32767; /* -32767 .. 32768 */
    const unsigned magnitude = (unsigned)abs(difference);
    unsigned category = 0;
    while (magnitude >> category) category++;
    put_bits(b, code->code[category], code->length[category]);
    const unsigned extra = difference < 0 ? (unsigned)difference - 1u : (unsigned)difference;
    if (category < 16 || whole) put_bits(b, extra & ((1u << category) - 1), category);
}

/* T.81 H.1.2.1, sample by sample. s: of the component, after the point transform. */
static int prediction(const struct setting *o, const uint16_t *s, uint32_t x, uint32_t y)
{
    const bool is_first_row = o->restart_rows > 0 ? y % o->restart_rows == 0 : y == 0;
    const uint16_t *at = s + (size_t)y * o->columns + x;
    if (is_first_row) return x == 0 ? 1 << (o->precision - o->shift - 1) : at[-1];
    const int above = at[-(ptrdiff_t)o->columns];
    if (x == 0) return above;
    const int left = at[-1], corner = at[-(ptrdiff_t)o->columns - 1];
    switch (o->selection) {
    case 1:
        return left;
    case 2:
        return above;
    case 3:
        return corner;
    case 4:
        return left + above - corner;
    case 5:
        return left + (int)floor_shift(above - corner, 1);
    case 6:
        return above + (int)floor_shift(left - corner, 1);
    default:
        return (left + above) / 2;
    }
}

static void put_scan(struct text *t, const struct setting *o, uint16_t *const *samples, int first, int count,
                     const struct plain_code *codes)
{
    put_segment(t, 0xda, 4 + 2 * (unsigned)count);
    put(t, (unsigned)count);
    for (int c = first; c < first + count; c++) {
        put(t, 10u * (unsigned)c + 1);
        put(t, (unsigned)(c % o->table_count) << 4);
    }
    put(t, (unsigned)o->selection);
    put(t, 0);
    put(t, (unsigned)o->shift);
    struct bit_text b = {t, 0, 0};
    int interval = 1;
    for (uint32_t y = 0; y < o->rows; y++) {
        for (uint32_t x = 0; x < o->columns; x++)
            for (int c = first; c < first + count; c++)
                put_difference(&b, &codes[c % o->table_count],
                               samples[c][(size_t)y * o->columns + x] - prediction(o, samples[c], x, y), o->whole);
        const bool is_last = y + 1 == o->rows;
        if (!is_last && (o->restart_rows == 0 || (y + 1) % o->restart_rows != 0)) continue;
        while (b.held > 0) put_bit(&b, (unsigned)o->padding);
        if (interval == o->odd_interval) put_all(t, o->odd, o->odd_size);
        if (!is_last) {
            put(t, 0xff);
            put(t, 0xd0u + (unsigned)(interval - 1) % 8);
        }
        interval++;
    }
}

static void put_stream(struct text *t, const struct setting *o, uint16_t *const *samples, struct rng *r)
{
    struct plain_code codes[4];
    put(t, 0xff);
    put(t, 0xd8);
    put_segment(t, 0xe0, 3);
    put_all(t, "abc", 3);
    for (int i = 0; i < o->table_count; i++) codes[i] = make_code(r);
    put_table(t, &codes[0], 0);
    put_segment(t, 0xc3, 6 + 3 * (unsigned)o->components);
    put(t, (unsigned)o->precision);
    put_u16(t, o->rows);
    put_u16(t, o->columns);
    put(t, (unsigned)o->components);
    for (int c = 0; c < o->components; c++) {
        put(t, 10u * (unsigned)c + 1);
        put(t, 0x11);
        put(t, 0);
    }
    put(t, 0xff); /* a fill byte */
    put_segment(t, 0xdd, 2);
    put_u16(t, o->restart_rows * o->columns);
    for (int i = 1; i < o->table_count; i++) put_table(t, &codes[i], (unsigned)i);
    for (int c = 0; o->apart && c < o->components; c++) {
        if (c > 0) put_table(t, &codes[c % o->table_count], (unsigned)(c % o->table_count));
        put_scan(t, o, samples, c, 1, codes);
    }
    if (!o->apart) put_scan(t, o, samples, 0, o->components, codes);
    put_all(t, o->tail, o->tail_size);
}

/* Samples that take all ways: smooth, constant, noise of all bits. */
static void draw(const struct setting *o, uint16_t *const *samples, uint8_t *raster, struct rng *r)
{
    const size_t count = (size_t)o->columns * o->rows;
    const uint32_t range = 1u << (o->precision - o->shift);
    for (int c = 0; c < o->components; c++) {
        const uint32_t way = rng_below(r, 3);
        uint32_t last = rng_below(r, range);
        for (size_t i = 0; i < count; i++) {
            if (way == 0) last = rng_below(r, range);
            if (way == 1) last = (uint32_t)clamp_to((int)last + rng_between(r, -3, 3), 0, range - 1);
            samples[c][i] = (uint16_t)last;
            const unsigned value = last << o->shift;
            const size_t components = (size_t)o->components, channel = (size_t)c;
            const size_t at = o->planar ? channel * count + i : i * components + channel;
            if (o->bits_allocated == 8) {
                raster[at] = (uint8_t)value;
            } else {
                raster[2 * at] = (uint8_t)value;
                raster[2 * at + 1] = (uint8_t)(value >> 8);
            }
        }
    }
}

static struct setting plain_setting(void)
{
    return (struct setting){.columns = 9,
                            .rows = 7,
                            .components = 1,
                            .bits_allocated = 16,
                            .precision = 12,
                            .selection = 1,
                            .padding = 1,
                            .table_count = 1,
                            .tail = "\xff\xd9",
                            .tail_size = 2};
}

static struct setting random_setting(struct rng *r)
{
    struct setting o = plain_setting();
    o.columns = 1 + rng_below(r, 40);
    o.rows = 1 + rng_below(r, 20);
    o.components = rng_between(r, 1, 4);
    o.bits_allocated = rng_below(r, 2) ? 8 : 16;
    o.precision = rng_between(r, 2, o.bits_allocated);
    o.shift = rng_below(r, 3) ? 0 : rng_between(r, 0, o.precision - 1);
    o.selection = rng_between(r, 1, 7);
    o.restart_rows = rng_below(r, 3) ? 0 : 1 + rng_below(r, o.rows + 2);
    o.table_count = rng_between(r, 1, o.components);
    o.padding = rng_below(r, 4) > 0;
    o.planar = rng_below(r, 2);
    o.apart = rng_below(r, 2);
    return o;
}

/* A stream of a setting and the raster that it has. */
struct drawing {
    struct tsr_image image;
    struct text text;
    uint8_t raster[2 * 4 * 64 * 64];
};

static struct drawing *draw_stream(const struct setting *o, struct rng *r)
{
    struct drawing *d = must(calloc(1, sizeof *d));
    uint16_t *samples[4];
    for (int c = 0; c < 4; c++) samples[c] = must(calloc((size_t)o->columns * o->rows, 2));
    d->image = image_of(o->columns, o->rows, o->components, o->bits_allocated, o->planar);
    draw(o, samples, d->raster, r);
    put_stream(&d->text, o, samples, r);
    for (int c = 0; c < 4; c++) free(samples[c]);
    return d;
}

static void check(const struct setting *o, size_t most, const char *name, struct rng *r)
{
    struct drawing *d = draw_stream(o, r);
    expect_exact(kind, &d->image, &d->text, d->raster, most, name);
    free(d);
}

/* The bytes before the coded samples and between scans, flags and deviations of 4 scans, and the tail. */
static size_t headers(const struct setting *o)
{
    const size_t scans = o->apart ? (size_t)o->components : 1;
    return 2 + 7 + 38 * (size_t)o->table_count + 10 + 3 * (size_t)o->components + 7 + 8 * scans +
           2 * (size_t)o->components + 38 * (scans - 1) + 2 * scans;
}

TEST(all_parameters_come_back)
{
    struct rng r = {1};
    for (int i = 0; i < 3000; i++) {
        const struct setting o = random_setting(&r);
        char name[120];
        snprintf(name, sizeof name, "case %d: %u x %u of %d, P %d, Pt %d, selection %d, restart %u", i, o.columns,
                 o.rows, o.components, o.precision, o.shift, o.selection, o.restart_rows);
        check(&o, headers(&o) + 4, name, &r);
    }
}

/* T.81 process 14 in the smallest form, coded by hand: two rows of two samples 130, 131, 129, 131. Predictions are 128,
 * 130, 130, 131 (selection 2): differences 2, 1, -1, 0. Categories 0, 1, 2 have the codes 0, 10, 110. */
TEST(a_stream_made_by_hand)
{
    static const uint8_t bytes[] = {
        0xff, 0xd8, 0xff, 0xc3, 0, 11,   8,    0, 2,  0,
        2,    1,    1,    0x11, 0, 0xff, 0xc4, 0, 22, 0,
        1,    1,    1,    0,    0, 0,    0,    0, 0,  0,
        0,    0,    0,    0,    0, 0,    0,    1, 2,  0xff,
        0xda, 0,    8,    1,    1, 0,    2,    0, 0,  /* 110 10, 10 1, 10 0, 0, padding */ 0xd5,
        0x8f, 0xff, 0xd9, 0};
    static const uint8_t samples[] = {130, 131, 129, 131}; /* one by one */
    static const uint8_t wide[] = {130, 0, 131, 0, 129, 0, 131, 0};
    struct text *t = must(calloc(1, sizeof *t));
    put_all(t, bytes, sizeof bytes);
    struct tsr_image image = image_of(2, 2, 1, 8, false);
    expect_exact(kind, &image, t, samples, sizeof bytes - 2 - 3 + 3, "8 bits allocated");
    image = image_of(2, 2, 1, 16, false);
    expect_exact(kind, &image, t, wide, sizeof bytes - 2 - 3 + 3, "16 bits allocated");
    free(t);
}

TEST(what_follows_the_samples_comes_back)
{
    static const struct {
        const char *tail;
        size_t size;
    } tails[] = {{"", 0},
                 {"\xff\xd9", 2},
                 {"\xff\xd9\0", 3},
                 {"\xff\xd9\0\0", 4},
                 {"\xff", 1},
                 {"xyz", 3},
                 {"\xff\xff\xff\xd9"
                  "ab",
                  6},
                 {"\0\0\xff\xd9", 4}};
    struct rng r = {2};
    for (size_t i = 0; i < COUNT_OF(tails); i++) {
        struct setting o = plain_setting();
        o.tail = tails[i].tail;
        o.tail_size = tails[i].size;
        check(&o, headers(&o) + 16, "tail", &r);
    }
}

TEST(what_stands_before_restart_markers_comes_back)
{
    struct rng r = {3};
    for (int interval = 1; interval <= 12; interval++) {
        struct setting o = plain_setting();
        o.rows = 12;
        o.restart_rows = 1;
        o.odd_interval = interval;
        o.odd = interval % 2 ? "\xff\xff" : "\x12\xff\0\x34";
        o.odd_size = interval % 2 ? 2 : 4;
        check(&o, headers(&o) + 12, "fill bytes, or bytes that are too many", &r);
    }
}

TEST(padding_of_zeros_and_ones_comes_back)
{
    struct rng r = {4};
    for (int i = 0; i < 50; i++) {
        struct setting o = random_setting(&r);
        o.padding = i % 2;
        o.restart_rows = 1 + rng_below(&r, 3);
        check(&o, headers(&o) + 4, "padding", &r);
        struct drawing *d = draw_stream(&o, &r); /* and a last byte of other bits, if its bits are padding */
        d->text.bytes[d->text.size - 3] ^= 1;
        struct trial t = try_stream(kind, &d->image, d->text.bytes, d->text.size);
        expect(t.status != TSR_OK || t.is_exact, "case %d does not come back", i);
        end_trial(&t);
        free(d);
    }
}

TEST(differences_of_17_bits_come_back)
{
    struct rng r = {5};
    int whole = 0;
    for (int i = 0; i < 200; i++) {
        struct setting o = random_setting(&r);
        o.bits_allocated = o.precision = 16;
        o.shift = 0;
        o.whole = true;
        o.columns += 20;
        o.selection = 1 + i % 3; /* others have predictions out of 0 .. 65535, and differences of 17 bits */
        struct drawing *d = draw_stream(&o, &r);
        struct trial t = try_stream(kind, &d->image, d->text.bytes, d->text.size);
        expect(t.status == TSR_OK && t.is_exact, "case %d: %s", i, t.error.text);
        whole += memcmp(t.raster, d->raster, raster_bytes(&d->image)) == 0;
        end_trial(&t);
        free(d);
    }
    expect(whole == 200, "only %d of 200 have the samples", whole);
}

/* The last sample of each interval has a difference of 16 bits: read as modulo, its extra bits would be left. */
TEST(whole_differences_at_the_end_are_not_modulo)
{
    for (int last = 33000; last < 65536; last += 801) {
        struct rng r = {(uint64_t)last};
        struct setting o = plain_setting();
        o.precision = 16;
        o.whole = true;
        o.selection = 1;
        o.restart_rows = last % 2 ? o.rows : 2;
        struct drawing *d = must(calloc(1, sizeof *d));
        uint16_t samples[7 * 9], *const planes[4] = {samples};
        assert_true(COUNT_OF(samples) == (size_t)o.columns * o.rows);
        for (size_t i = 0; i < COUNT_OF(samples); i++) {
            const size_t row = i / o.columns;
            const bool ends = row + 1 == o.rows || (row + 1) % o.restart_rows == 0;
            samples[i] = (uint16_t)(ends && i % o.columns + 1 == o.columns ? last : 10);
            d->raster[2 * i] = (uint8_t)samples[i];
            d->raster[2 * i + 1] = (uint8_t)(samples[i] >> 8);
        }
        d->image = image_of(o.columns, o.rows, 1, 16, false);
        put_stream(&d->text, &o, planes, &r);
        expect_exact(kind, &d->image, &d->text, d->raster, 400, "whole differences");
        free(d);
    }
}

/* A byte of the header becomes another one. */
static void expect_other(size_t at, unsigned byte, const char *why)
{
    struct rng r = {6};
    struct setting o = plain_setting();
    struct drawing *d = draw_stream(&o, &r);
    assert_true(at < d->text.size);
    d->text.bytes[at] = (uint8_t)byte;
    expect_refused(kind, &d->image, &d->text, why);
    free(d);
}

TEST(what_is_not_lossless_jpeg_of_the_image_is_refused)
{
    const size_t frame = 2 + 7 + 38, scan = frame + 13 + 7;
    expect_other(1, 0xd9, "does not begin as a JPEG stream");
    expect_other(frame + 1, 0xc0, "not lossless with Huffman codes (FFC0)");
    expect_other(frame + 1, 0xcb, "not lossless with Huffman codes (FFCB)");
    expect_other(frame + 1, 0xdc, "a marker FFDC");
    expect_other(frame + 4, 17, "have 17 bits");
    expect_other(frame + 4, 1, "have 1 bits");
    expect_other(frame + 6, 0, "number of rows stands after");
    expect_other(frame + 6, 8, "9 x 8 samples");
    expect_other(frame + 8, 8, "8 x 7 samples");
    expect_other(frame + 8, 0, "no columns");
    expect_other(scan - 1, 10, "no number of rows");
    expect_other(scan + 5, 2, "a component that the frame has not");
    expect_other(scan + 6, 0x10, "a Huffman table that the stream has not");
    expect_other(scan + 7, 0, "predictor has the number 0");
    expect_other(scan + 7, 8, "predictor has the number 8");
    expect_other(scan + 9, 12, "point transform is 12");
    expect_other(2 + 7 + 4, 0x04, "no valid number");
    expect_other(2 + 7 + 3, 16, "cut short");
}

TEST(samples_out_of_range_are_refused)
{
    struct rng r = {7};
    struct setting o = plain_setting();
    o.columns = o.rows = 40;
    struct drawing *d = draw_stream(&o, &r);
    d->text.bytes[2 + 7 + 38 + 4] = 2; /* of 2 bits, in place of 12 */
    expect_refused(kind, &d->image, &d->text, "more than 2 bits");
    d->text.bytes[2 + 7 + 38 + 4] = 12;
    struct tsr_image narrow = image_of(40, 40, 1, 8, false);
    expect_refused(kind, &narrow, &d->text, "12 bits, and 8 are allocated");
    free(d);
}

TEST(damage_does_no_harm)
{
    struct rng r = {8};
    int read = 0;
    for (int i = 0; i < 12; i++) {
        struct setting o = random_setting(&r);
        o.columns = 1 + rng_below(&r, 12);
        o.rows = 1 + rng_below(&r, 6);
        struct drawing *d = draw_stream(&o, &r);
        read += attack_stream(kind, &d->image, &d->text, false, &r);
        attack_residue(kind, &d->image, &d->text, &r);
        free(d);
    }
    expect(read > 100, "only %d damaged streams were read", read);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_parameters_come_back),
        cmocka_unit_test(a_stream_made_by_hand),
        cmocka_unit_test(what_follows_the_samples_comes_back),
        cmocka_unit_test(what_stands_before_restart_markers_comes_back),
        cmocka_unit_test(padding_of_zeros_and_ones_comes_back),
        cmocka_unit_test(differences_of_17_bits_come_back),
        cmocka_unit_test(whole_differences_at_the_end_are_not_modulo),
        cmocka_unit_test(what_is_not_lossless_jpeg_of_the_image_is_refused),
        cmocka_unit_test(samples_out_of_range_are_refused),
        cmocka_unit_test(damage_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
