/* PGM and PPM: headers as other programs write them, every maximum, values above it. */
#include "one_engine.h"

static struct tsr_source *open_source(struct bytes b, struct tsr_input **input)
{
    const struct tsr_source_options options = {0};
    struct tsr_source *source;
    *input = must(tsr_input_from_memory(b.data, b.size, "pnm"));
    assert_int_equal(tsr_source_open(*input, &options, &source, NULL), TSR_OK);
    return source;
}

static void check_codings(struct bytes b, const char *what)
{
    for (int coding = 0; coding < 4; coding++) {
        const struct tsr_coding how = {.path = (enum tsr_path)(coding & 1), .coder = (enum tsr_coder)(coding >> 1)};
        check_there_and_back(b, &how, what);
    }
}

/* Headers, each followed by 24 bytes of samples: columns, rows and bits if they are coded; columns is 0 if the file is
 * kept verbatim. */
static const struct header_case {
    const char *head;
    uint32_t columns, rows;
    uint8_t components, bits_allocated, bits_stored;
} header_cases[] = {
    {"P5 3 2 255\n", 3, 2, 1, 8, 8},
    {"P5\n3\n2\n255\n", 3, 2, 1, 8, 8},
    {"P5\t3\v2\f255\r", 3, 2, 1, 8, 8},
    {"P5\r\n3 2\r\n255 ", 3, 2, 1, 8, 8},
    {"P5\n# a comment\n3 2\n255\n", 3, 2, 1, 8, 8},
    {"P5# right behind the magic\n3 2\n255\n", 3, 2, 1, 8, 8},
    {"P5\n#\n#\n  # 9 9 9\n3 # columns\n 2# rows\n255\n", 3, 2, 1, 8, 8},
    {"P5\n# ended by CR\r3 2 255\n", 3, 2, 1, 8, 8},
    {"P5 003 0002 00255\n", 3, 2, 1, 8, 8},
    {"P5 3 2 1\n", 3, 2, 1, 8, 1},
    {"P5 3 2 2\n", 3, 2, 1, 8, 2},
    {"P5 3 2 200\n", 3, 2, 1, 8, 8},
    {"P5 3 2 256\n", 3, 2, 1, 16, 9},
    {"P5 3 2 4095\n", 3, 2, 1, 16, 12},
    {"P5 3 2 65535\n", 3, 2, 1, 16, 16},
    {"P6 2 2 255\n", 2, 2, 3, 8, 8},
    {"P6 1 2 1023\n", 1, 2, 3, 16, 10},
    {"P5 24 1 255\n", 24, 1, 1, 8, 8},
    {"P5 1 24 255\n", 1, 24, 1, 8, 8},
    /* Kept verbatim. */
    {"P5 3 2 0\n", 0, 0, 0, 0, 0},
    {"P5 3 2 65536\n", 0, 0, 0, 0, 0},
    {"P5 0 2 255\n", 0, 0, 0, 0, 0},
    {"P5 3 0 255\n", 0, 0, 0, 0, 0},
    {"P5 -3 2 255\n", 0, 0, 0, 0, 0},
    {"P5 3 2 -255\n", 0, 0, 0, 0, 0},
    {"P5 3,2 255\n", 0, 0, 0, 0, 0},
    {"P5 3 2 255", 0, 0, 0, 0, 0}, /* no white space follows */
    {"P5 3 2 255#\n", 0, 0, 0, 0, 0},
    {"P5 3 2 0x1f\n", 0, 0, 0, 0, 0},
    {"P5 3 2 25a\n", 0, 0, 0, 0, 0},
    {"P5 5 5 255\n", 0, 0, 0, 0, 0}, /* 25 samples, but 24 bytes */
    {"P6 3 3 255\n", 0, 0, 0, 0, 0},
    {"P5 13 1 256\n", 0, 0, 0, 0, 0},
    {"P5 65536 1 255\n", 0, 0, 0, 0, 0},
    {"P5 1 65536 255\n", 0, 0, 0, 0, 0},
    {"P5 99999999999 1 255\n", 0, 0, 0, 0, 0},
    {"P5 4294967299 2 255\n", 0, 0, 0, 0, 0}, /* 2^32 + 3 */
    {"P5 3 18446744073709551618 255\n", 0, 0, 0, 0, 0},
    {"P5 3 2 4294967551\n", 0, 0, 0, 0, 0},
    {"P5 \n", 0, 0, 0, 0, 0},
    {"P5 3 2\n", 0, 0, 0, 0, 0},
    {"P4 3 2\n", 0, 0, 0, 0, 0},
    {"P2 3 2 255\n", 0, 0, 0, 0, 0},
    {"P7 3 2 255\n", 0, 0, 0, 0, 0},
    {"P53 2 255\n", 0, 0, 0, 0, 0},
    {"p5 3 2 255\n", 0, 0, 0, 0, 0},
    {" P5 3 2 255\n", 0, 0, 0, 0, 0},
};

static void check_header(struct rng *r, const struct header_case *c)
{
    struct bytes b = copy_bytes(c->head, strlen(c->head));
    for (int k = 0; k < 24; k++) {
        const uint8_t sample = (uint8_t)(128 + rng_below(r, 128));
        append(&b, &sample, 1);
    }
    struct tsr_input *input;
    struct tsr_source *source = open_source(b, &input);
    const struct tsr_header *h = &source->header;
    const bool coded = h->recipe != TSR_RECIPE_VERBATIM;
    expect(coded == (c->columns > 0), "'%s': %s", c->head, coded ? "coded" : h->reason);
    if (coded) {
        const struct tsr_image *image = &h->image;
        expect(h->recipe == TSR_RECIPE_SPLICE && h->kind == TSR_KIND_PNM && h->exact, "'%s'", c->head);
        expect(image->columns == c->columns && image->rows == c->rows && image->frames == 1 &&
                   image->components == c->components && image->bits_allocated == c->bits_allocated &&
                   image->bits_stored == c->bits_stored && image->high_bit == c->bits_stored - 1 &&
                   (image->big_endian || image->bits_allocated == 8),
               "'%s': %u x %u, %u of %u bits", c->head, image->columns, image->rows, image->bits_stored,
               image->bits_allocated);
        expect(source->blob_size[TSR_BLOB_PREFIX] == strlen(c->head), "'%s': a prefix of %llu bytes", c->head,
               (unsigned long long)source->blob_size[TSR_BLOB_PREFIX]);
    }
    tsr_source_close(source);
    tsr_input_close(input);
    check_codings(b, c->head);
    free(b.data);
}

TEST(headers)
{
    struct rng r = {31};
    for (size_t i = 0; i < COUNT_OF(header_cases); i++) check_header(&r, &header_cases[i]);
}

/* A header with 4 KiB of comments is read. A file with a longer one is kept verbatim. Both come back. */
TEST(long_comments)
{
    for (size_t comment = 4000; comment < 4200; comment++) {
        struct bytes b = copy_bytes("P5\n#", 4);
        for (size_t i = 0; i < comment; i++) append(&b, "c", 1);
        append(&b, "\n3 2 255\n\1\2\3\4\5\6", 15);
        struct tsr_input *input;
        struct tsr_source *source = open_source(b, &input);
        expect((source->header.recipe == TSR_RECIPE_SPLICE) == (b.size - 6 <= 4096), "a header of %zu bytes",
               b.size - 6);
        tsr_source_close(source);
        tsr_input_close(input);
        if (comment % 20 == 0) check_codings(b, "a long comment");
        free(b.data);
    }
}

/* Every maximum gets exactly the bits that it needs. */
TEST(every_maximum)
{
    for (uint32_t top = 1; top <= 65535; top++) {
        char head[40];
        struct bytes b = copy_bytes(head, (size_t)snprintf(head, sizeof head, "P5 3 2 %u\n", top));
        append(&b, "\0\0\0\0\0\0\0\0\0\0\0\0", 12);
        struct tsr_input *input;
        struct tsr_source *source = open_source(b, &input);
        const struct tsr_image *image = &source->header.image;
        expect(image->bits_stored == plain_width(top) && image->bits_allocated == (top > 255 ? 16 : 8),
               "maximum %u: %u of %u bits", top, image->bits_stored, image->bits_allocated);
        expect(source->blob_size[TSR_BLOB_SUFFIX] == (top > 255 ? 0 : 6), "maximum %u: a suffix of %llu bytes", top,
               (unsigned long long)source->blob_size[TSR_BLOB_SUFFIX]);
        tsr_source_close(source);
        tsr_input_close(input);
        free(b.data);
    }
}

/* Samples of any bits come back, also above the maximum. */
TEST(values_above_the_maximum)
{
    struct rng r = {32};
    for (int i = 0; i < 1500; i++) {
        char head[40];
        const uint32_t top = i < 60 ? (uint32_t)(1 << (i / 4 + 1)) + (uint32_t)(i % 4) - 2u : 1 + rng_width(&r, 16);
        const uint32_t maximum = top < 1 ? 1 : top > 65535 ? 65535 : top;
        const int columns = rng_between(&r, 1, 9), rows = rng_between(&r, 1, 9), colours = i % 2 ? 3 : 1;
        struct bytes b = copy_bytes(
            head, (size_t)snprintf(head, sizeof head, "P%d %d %d %u\n", colours == 3 ? 6 : 5, columns, rows, maximum));
        const int samples = columns * rows * colours * (maximum > 255 ? 2 : 1);
        const uint32_t above = rng_below(&r, 3); /* none, some or all of the samples */
        for (int k = 0; k < samples; k++) {
            const uint8_t byte =
                (uint8_t)(above == 2 || (above == 1 && rng_below(&r, 9) == 0) ? rng_next(&r) : rng_below(&r, 2));
            append(&b, &byte, 1);
        }
        if (i % 5 == 0) append(&b, "behind", 6);
        check_codings(b, head);
        free(b.data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(headers), cmocka_unit_test(long_comments),
                                       cmocka_unit_test(every_maximum), cmocka_unit_test(values_above_the_maximum)};
    return cmocka_run_group_tests(tests, create_engine, destroy_engine);
}
