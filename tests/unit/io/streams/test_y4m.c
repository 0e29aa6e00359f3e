/* Y4M: samplings, depths, odd sides, lines of frames, ends; and planes in a raster, by a second reading of PLANES.md.
 */
#include "../one_engine.h"

#include "io/nodes/planes/planes.h"
#include "io/recipe/recipe.h"

static struct tsr_source *open_source(struct bytes b, struct tsr_input **input)
{
    const struct tsr_source_options options = {0};
    struct tsr_source *source;
    *input = must(tsr_input_from_memory(b.data, b.size, "y4m"));
    assert_int_equal(tsr_source_open(*input, &options, &source, NULL), TSR_OK);
    return source;
}

/* A sampling's name, and what its raster is like for luma of 7 x 5. */
static const struct sampling {
    const char *name;
    uint32_t columns, rows;
    uint8_t form, components, bits;
    size_t samples; /* of a frame in the file */
} samplings[] = {
    {"", 8, 8, 5, 1, 8, 35 + 2 * 12},
    {" C420", 8, 8, 5, 1, 8, 35 + 2 * 12},
    {" C420jpeg", 8, 8, 5, 1, 8, 35 + 2 * 12},
    {" C420mpeg2", 8, 8, 5, 1, 8, 35 + 2 * 12},
    {" C420paldv", 8, 8, 5, 1, 8, 35 + 2 * 12},
    {" C420p9", 8, 8, 5, 1, 9, 35 + 2 * 12},
    {" C420p16", 8, 8, 5, 1, 16, 35 + 2 * 12},
    {" C422", 8, 10, 6, 1, 8, 35 + 2 * 20},
    {" C422p10", 8, 10, 6, 1, 10, 35 + 2 * 20},
    {" C444", 7, 5, 0, 3, 8, 3 * 35},
    {" C444p12", 7, 5, 0, 3, 12, 3 * 35},
    {" C444alpha", 7, 5, 0, 4, 8, 4 * 35},
    {" Cmono", 7, 5, 0, 1, 8, 35},
    {" Cmono14", 7, 5, 0, 1, 14, 35},
    /* Stored. */
    {" C411", 0, 0, 0, 0, 0, 60},
    {" C420p7", 0, 0, 0, 0, 0, 60},
    {" C420p17", 0, 0, 0, 0, 0, 60},
    {" C420pp8", 0, 0, 0, 0, 0, 60},
    {" C420P10", 0, 0, 0, 0, 0, 60},
    {" C420jpeg ", 8, 8, 5, 1, 8, 35 + 2 * 12},
    {" C0123456789abcdefgh", 0, 0, 0, 0, 0, 60},
    {" C", 0, 0, 0, 0, 0, 60},
    {" W0", 0, 0, 0, 0, 0, 60},
    {" W65536", 0, 0, 0, 0, 0, 60},
    {" W99999999999999999999", 0, 0, 0, 0, 0, 60},
    {" H-5", 0, 0, 0, 0, 0, 60},
    {" H5x", 0, 0, 0, 0, 0, 60},
    {" H", 0, 0, 0, 0, 0, 60},
};

static struct bytes begin(const char *chroma)
{
    struct bytes b = copy_bytes("YUV4MPEG2 W7 H5 F25:1", 21);
    append(&b, chroma, strlen(chroma));
    append(&b, "\n", 1);
    return b;
}

static void put_frame(struct bytes *b, const char *mark, size_t bytes, struct rng *r)
{
    append(b, mark, strlen(mark));
    for (size_t i = 0; i < bytes; i++) {
        const uint8_t byte = (uint8_t)(60 + rng_below(r, 9));
        append(b, &byte, 1);
    }
}

static void check_codings(struct bytes b, const char *what)
{
    for (int coding = 0; coding < 4; coding++) {
        const struct tsr_coding how = {.path = (enum tsr_path)(coding & 1), .coder = (enum tsr_coder)(coding >> 1)};
        check_there_and_back(b, &how, what);
    }
}

TEST(every_sampling)
{
    struct rng r = {51};
    for (const struct sampling *s = samplings; s < samplings + COUNT_OF(samplings); s++) {
        struct bytes b = begin(s->name);
        const size_t head = b.size, frame = s->samples * (s->bits > 8 ? 2 : 1);
        for (int f = 0; f < 3; f++) put_frame(&b, "FRAME\n", frame, &r);
        struct tsr_input *input;
        struct tsr_source *const source = open_source(b, &input);
        const struct tsr_header *const h = &source->header;
        const struct tsr_image *const i = &h->image;
        expect(h->kind == TSR_KIND_Y4M && tsr_has_planes(h) == (s->columns > 0), "'%s': %s", s->name, h->reason);
        if (s->columns > 0)
            expect(h->exact && i->columns == s->columns && i->rows == s->rows && i->frames == 3 &&
                       i->components == s->components && i->bits_stored == s->bits &&
                       i->bits_allocated == (s->bits > 8 ? 16 : 8) && !i->big_endian &&
                       i->planar == (s->components > 1) && h->parameter_count == 7 && h->parameters[0] == s->form &&
                       memcmp(h->parameters + 1, "FRAME\n", 6) == 0 && source->blob_size[TSR_BLOB_PREFIX] == head &&
                       source->blob_size[TSR_BLOB_SUFFIX] == 0 && tsr_planes_bytes(i, s->form) == frame,
                   "'%s': %u x %u", s->name, i->columns, i->rows);
        tsr_source_close(source);
        tsr_input_close(input);
        check_codings(b, s->name);
        free(b.data);
    }
}

/* What stands where a second frame may begin, and how many frames are coded. Only an end within a frame, and what
 * begins no frame, look damaged. */
TEST(ends)
{
    static const struct end_case {
        const char *mark;
        size_t bytes;
        uint32_t frames;
        bool is_damaged;
    } cases[] = {
        {"FRAME\n", 59, 2, false},    {"FRAME\n", 58, 1, true},  {"FRAME\n", 0, 1, true},  {"FRAME", 0, 1, true},
        {"FRAME Ip\n", 59, 1, false}, {"FRAMES\n", 59, 1, true}, {"frame\n", 59, 1, true}, {"", 0, 1, false},
        {"FRAME\n", 60, 2, true},
    };
    struct rng r = {52};
    for (const struct end_case *c = cases; c < cases + COUNT_OF(cases); c++) {
        struct bytes b = begin("");
        put_frame(&b, "FRAME\n", 59, &r);
        put_frame(&b, c->mark, c->bytes, &r);
        struct tsr_input *input;
        struct tsr_source *const source = open_source(b, &input);
        expect(tsr_has_planes(&source->header) && source->header.image.frames == c->frames &&
                   (source->header.damage[0] != '\0') == c->is_damaged,
               "'%s' and %zu bytes: %u frames, %s", c->mark, c->bytes, source->header.image.frames,
               source->header.damage);
        tsr_source_close(source);
        tsr_input_close(input);
        check_codings(b, c->mark);
        free(b.data);
    }
}

/* Lines of up to 63 bytes before a frame are taken. */
TEST(long_marks)
{
    struct rng r = {53};
    for (size_t length = 50; length < 80; length++) {
        char mark[100] = "FRAME ";
        memset(mark + 6, 'X', length - 7);
        memcpy(mark + length - 1, "\n", 2);
        struct bytes b = begin(" Cmono");
        for (int f = 0; f < 2; f++) put_frame(&b, mark, 35, &r);
        struct tsr_input *input;
        struct tsr_source *const source = open_source(b, &input);
        expect(tsr_has_planes(&source->header) == (length <= 63), "a line of %zu bytes", length);
        tsr_source_close(source);
        tsr_input_close(input);
        check_codings(b, "a long mark");
        free(b.data);
    }
}

struct gathered {
    uint8_t bytes[4096];
    size_t size;
};

static void take(void *context, const uint8_t *bytes, size_t size)
{
    struct gathered *const g = context;
    memcpy(g->bytes + g->size, bytes, size);
    g->size += size;
}

/* Each sample of a plane stands where PLANES.md says. */
static void check_planes(struct rng *r, uint32_t columns, uint32_t rows, unsigned sampling, size_t sample)
{
    const unsigned form = sampling | (columns % 2 ? TSR_PLANES_ODD : 0);
    struct tsr_image image = {.frames = 1, .components = 1, .bits_allocated = (uint8_t)(8 * sample)};
    const uint32_t half = (columns + 1) / 2, low = sampling == TSR_PLANES_420 ? (rows + 1) / 2 : rows;
    uint8_t planes[4096], raster[4096] = {0};
    struct gathered again = {.size = 0};
    tsr_planes_size(sampling, columns, rows, &image);
    const size_t bytes = ((size_t)columns * rows + 2 * (size_t)half * low) * sample;
    expect(image.columns == 2 * half && image.rows == rows + low && tsr_planes_fit(&image, form) &&
               tsr_planes_bytes(&image, form) == bytes,
           "%u x %u, sampling %u", columns, rows, sampling);
    for (size_t i = 0; i < bytes; i++) planes[i] = (uint8_t)rng_next(r);
    tsr_planes_gather(&image, form, planes, raster);
    for (uint32_t y = 0; y < image.rows; y++)
        for (uint32_t x = 0; x < image.columns; x++) {
            const size_t at = y < rows ? (size_t)y * columns + (x < columns ? x : columns - 1)
                                       : (size_t)columns * rows + (x < half ? 0 : (size_t)half * low) +
                                             (size_t)(y - rows) * half + x % half;
            expect(memcmp(raster + ((size_t)y * image.columns + x) * sample, planes + at * sample, sample) == 0,
                   "%u x %u, sampling %u: the sample at %u, %u", columns, rows, sampling, x, y);
        }
    tsr_planes_each(&image, form, raster, take, &again);
    expect(again.size == bytes && memcmp(again.bytes, planes, bytes) == 0, "%u x %u comes back", columns, rows);
}

TEST(planes)
{
    struct rng r = {54};
    for (uint32_t columns = 1; columns < 10; columns++)
        for (uint32_t rows = 1; rows < 10; rows++)
            for (unsigned k = 0; k < 4; k++)
                check_planes(&r, columns, rows, k % 2 ? TSR_PLANES_420 : TSR_PLANES_422, 1 + k / 2);
}

/* Which images may have which form: all of them, by the tables of PLANES.md. */
TEST(forms)
{
    for (unsigned form = 0; form < 256; form++)
        for (uint32_t rows = 1; rows < 12; rows++)
            for (uint32_t columns = 1; columns < 5; columns++)
                for (int bits = 8; bits <= 32; bits += 8) {
                    const struct tsr_image image = {.columns = columns,
                                                    .rows = rows,
                                                    .frames = 1,
                                                    .components = form & 8 ? 3 : 1,
                                                    .bits_allocated = (uint8_t)bits};
                    const uint32_t luma = 2 * rows / 3;
                    const bool is_known = form == 0 || (form < 7 && form % 4 != 0 && form % 4 != 3),
                               has_rows = form == 0 ||
                                          (form % 4 == 1 ? luma > 0 && luma + (luma + 1) / 2 == rows : rows % 2 == 0),
                               fits = bits <= 16 && is_known && has_rows && (form == 0 || columns % 2 == 0);
                    expect(tsr_planes_fit(&image, form) == fits, "form %u, %u x %u of %d bits", form, columns, rows,
                           bits);
                }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_sampling), cmocka_unit_test(ends),
                                       cmocka_unit_test(long_marks), cmocka_unit_test(planes), cmocka_unit_test(forms)};
    return cmocka_run_group_tests(tests, create_engine, destroy_engine);
}
