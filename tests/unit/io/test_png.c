/* PNG: every colour type and depth, plain and interlaced, against libpng's own writing and reading
 * (io/formats/png/png_source.c, io/formats/png/png_writer.c). FORMAT.md 4.3. */
#include "one_engine.h"

#include <png.h>

struct form {
    int type, depth, channels;
};
static const struct form forms[] = {{0, 1, 1}, {0, 2, 1},  {0, 4, 1},  {0, 8, 1}, {0, 16, 1},
                                    {2, 8, 3}, {2, 16, 3}, {3, 1, 1},  {3, 2, 1}, {3, 4, 1},
                                    {3, 8, 1}, {4, 8, 2},  {4, 16, 2}, {6, 8, 4}, {6, 16, 4}};

/* ---- libpng in memory ------------------------------------------------------------------------------------- */

struct reading {
    struct bytes file;
    size_t at;
};

static void give_bytes(png_structp png, png_bytep out, size_t size)
{
    struct reading *r = png_get_io_ptr(png);
    if (size > r->file.size - r->at) png_error(png, "end");
    memcpy(out, r->file.data + r->at, size);
    r->at += size;
}

static void take_bytes(png_structp png, png_bytep bytes, size_t size)
{
    append(png_get_io_ptr(png), bytes, size);
}

static void flush_nothing(png_structp png)
{
    (void)png;
}

static void ignore_warning(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

static size_t row_bytes(const struct form *f, uint32_t columns)
{
    return ((size_t)columns * (size_t)(f->channels * f->depth) + 7) / 8;
}

/* Writes rows that are packed as in PNG. */
static struct bytes write_png(const struct form *f, uint32_t columns, uint32_t rows, bool interlaced,
                              const uint8_t *packed)
{
    struct bytes file = {NULL, 0};
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, ignore_warning);
    png_infop info = png_create_info_struct(png);
    if (setjmp(png_jmpbuf(png))) fail_msg("libpng cannot write");
    png_set_write_fn(png, &file, take_bytes, flush_nothing);
    png_set_IHDR(png, info, columns, rows, f->depth, f->type, interlaced, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    if (f->type == PNG_COLOR_TYPE_PALETTE) {
        static png_color palette[256];
        for (int i = 0; i < 256; i++) palette[i] = (png_color){(png_byte)i, (png_byte)(255 - i), 7};
        png_set_PLTE(png, info, palette, 1 << f->depth);
    }
    png_set_gAMA(png, info, 0.45455);
    png_write_info(png, info);
    png_bytepp lines = must(malloc(rows * sizeof *lines));
    for (uint32_t y = 0; y < rows; y++) lines[y] = (png_bytep)(uintptr_t)(packed + y * row_bytes(f, columns));
    png_write_image(png, lines);
    png_text text;
    memset(&text, 0, sizeof text);
    text.compression = PNG_TEXT_COMPRESSION_NONE;
    text.key = (png_charp)(uintptr_t) "Comment";
    text.text = (png_charp)(uintptr_t) "behind the pixels";
    text.text_length = 17;
    png_set_text(png, info, &text, 1);
    png_write_end(png, info);
    append(&file, "trailing", 8);
    png_destroy_write_struct(&png, &info);
    free(lines);
    return file;
}

/* Reads the rows of a file, packed as in PNG; spare bits are 0. */
static uint8_t *read_png(struct bytes file, const struct form *f, uint32_t columns, uint32_t rows)
{
    struct reading r = {file, 0};
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, ignore_warning);
    png_infop info = png_create_info_struct(png);
    if (setjmp(png_jmpbuf(png))) fail_msg("libpng cannot read what was restored");
    png_set_read_fn(png, &r, give_bytes);
    png_read_png(png, info, PNG_TRANSFORM_IDENTITY, NULL);
    assert_int_equal(png_get_image_width(png, info), columns);
    assert_int_equal(png_get_image_height(png, info), rows);
    assert_int_equal(png_get_color_type(png, info), f->type);
    assert_int_equal(png_get_bit_depth(png, info), f->depth);
    const size_t pitch = row_bytes(f, columns), bits = (size_t)columns * (size_t)(f->channels * f->depth);
    uint8_t *packed = must(malloc(pitch * rows));
    for (uint32_t y = 0; y < rows; y++) {
        memcpy(packed + y * pitch, png_get_rows(png, info)[y], pitch);
        if (bits % 8) packed[y * pitch + pitch - 1] &= (uint8_t)(0xff00 >> bits % 8);
    }
    png_destroy_read_struct(&png, &info, NULL);
    return packed;
}

/* ---- One picture ------------------------------------------------------------------------------------------ */

/* Sample i of a packed row. */
static uint32_t sample_at(const uint8_t *row, size_t i, int depth)
{
    if (depth == 16) return (uint32_t)row[2 * i] << 8 | row[2 * i + 1];
    return (uint32_t)row[i * (size_t)depth / 8] >> (8 - depth - (int)(i * (size_t)depth % 8)) & ((1u << depth) - 1u);
}

static void check_raster(struct bytes file, const struct form *f, uint32_t columns, uint32_t rows,
                         const uint8_t *packed)
{
    const struct tsr_source_options options = {0};
    struct tsr_source *source;
    struct tsr_input *input = must(tsr_input_from_memory(file.data, file.size, "png"));
    assert_int_equal(tsr_source_open(input, &options, &source, NULL), TSR_OK);
    const struct tsr_header *h = &source->header;
    const struct tsr_image *image = &h->image;
    expect(h->restore == TSR_RESTORE_PNG && h->kind == TSR_KIND_PNG && !h->exact, "type %d, depth %d: %s", f->type,
           f->depth, h->reason);
    assert_true(image->columns == columns && image->rows == rows && image->frames == 1 &&
                image->components == f->channels);
    assert_true(image->bits_allocated == (f->depth == 16 ? 16 : 8) && image->bits_stored == f->depth &&
                !image->is_signed);
    assert_int_equal(image->exact_only, f->type == 3 || f->depth == 1);
    const size_t count = (size_t)columns * (size_t)f->channels, bytes = count * image->bits_allocated / 8;
    uint8_t *raster = must(malloc(bytes * rows));
    assert_int_equal(source->ops->read_frame(source, 0, raster, NULL), TSR_OK);
    for (uint32_t y = 0; y < rows; y++)
        for (size_t i = 0; i < count; i++) {
            const uint8_t *at = raster + y * bytes + i * image->bits_allocated / 8;
            const uint32_t value =
                f->depth == 16 ? (image->big_endian ? 256u * at[0] + at[1] : 256u * at[1] + at[0]) : *at;
            expect(value == sample_at(packed + y * row_bytes(f, columns), i, f->depth),
                   "type %d, depth %d, row %u, sample %zu", f->type, f->depth, y, i);
        }
    free(raster);
    tsr_source_close(source);
    tsr_input_close(input);
}

/* The bytes outside the IDAT chunks. */
static struct bytes rest_of(struct bytes file)
{
    struct bytes rest = copy_bytes(file.data, 8);
    for (size_t at = 8; at < file.size;) {
        if (file.size - at == 8) {
            append(&rest, file.data + at, 8); /* after IEND */
            break;
        }
        const uint8_t *b = file.data + at;
        const size_t length = 12 + ((size_t)b[0] << 24 | (size_t)b[1] << 16 | (size_t)b[2] << 8 | b[3]);
        assert_true(length <= file.size - at);
        if (memcmp(b + 4, "IDAT", 4) != 0) append(&rest, b, length);
        at += length;
    }
    return rest;
}

static void check_picture(struct rng *r, const struct form *f, uint32_t columns, uint32_t rows, bool interlaced)
{
    const size_t pitch = row_bytes(f, columns), bits = (size_t)columns * (size_t)(f->channels * f->depth);
    uint8_t *packed = must(malloc(pitch * rows));
    for (size_t i = 0; i < pitch * rows; i++) packed[i] = (uint8_t)(rng_below(r, 3) ? rng_next(r) : 0);
    for (uint32_t y = 0; y < rows && bits % 8; y++) packed[y * pitch + pitch - 1] &= (uint8_t)(0xff00 >> bits % 8);
    const struct bytes file = write_png(f, columns, rows, interlaced, packed);
    check_raster(file, f, columns, rows, packed);

    const struct tsr_coding coding = {.path = TSR_PATH_PREDICT, .coder = TSR_CODER_HUFFMAN};
    const struct bytes tsr = compress_bytes(engine, file, &coding);
    struct bytes restored;
    bool damaged;
    assert_int_equal(restore_bytes(engine, tsr.data, tsr.size, &restored, &damaged), TSR_OK);
    const struct bytes rest = rest_of(file), rest_restored = rest_of(restored);
    expect(equal(rest, rest_restored), "type %d, depth %d: other chunks", f->type, f->depth);
    uint8_t *again = read_png(restored, f, columns, rows);
    expect(memcmp(again, packed, pitch * rows) == 0, "type %d, depth %d, %u x %u%s: other pixels", f->type, f->depth,
           columns, rows, interlaced ? ", interlaced" : "");
    free(again);
    free(rest.data);
    free(rest_restored.data);
    free(restored.data);
    free(tsr.data);
    free(file.data);
    free(packed);
}

TEST(every_form)
{
    struct rng r = {51};
    for (size_t i = 0; i < COUNT_OF(forms); i++)
        for (int interlaced = 0; interlaced < 2; interlaced++) {
            check_picture(&r, &forms[i], 33, 21, interlaced);
            check_picture(&r, &forms[i], 1, 1, interlaced);
            check_picture(&r, &forms[i], 1 + rng_below(&r, 20), 1 + rng_below(&r, 20), interlaced);
            check_picture(&r, &forms[i], 1 + rng_below(&r, 9), 1 + rng_below(&r, 9), interlaced);
        }
}

/* Larger than zlib's window and libpng's buffers: several IDAT chunks. */
TEST(several_chunks)
{
    struct rng r = {52};
    check_picture(&r, &forms[6], 300, 200, false);
    check_picture(&r, &forms[13], 257, 129, true);
}

/* A file that is cut anywhere, or has any byte changed, is kept verbatim, or comes back as a picture with the bytes
 * around it. */
TEST(damaged)
{
    struct rng r = {53};
    static const uint8_t packed[7 * 5];
    const struct bytes file = write_png(&forms[3], 7, 5, false, packed);
    const struct tsr_coding coding = {.path = TSR_PATH_PREDICT, .coder = TSR_CODER_HUFFMAN};
    int kept = 0;
    for (size_t i = 0; i < 2 * file.size; i++) {
        struct bytes b = copy_bytes(file.data, i < file.size ? i : file.size), restored;
        bool damaged;
        if (i >= file.size) b.data[i - file.size] ^= (uint8_t)(1 + rng_below(&r, 255));
        const struct bytes tsr = compress_bytes(engine, b, &coding);
        assert_int_equal(restore_bytes(engine, tsr.data, tsr.size, &restored, &damaged), TSR_OK);
        const bool same = equal(restored, b);
        kept += same;
        if (!same) {
            const struct bytes rest = rest_of(b), rest_restored = rest_of(restored);
            expect(equal(rest, rest_restored), "case %zu: other chunks", i);
            free(rest.data);
            free(rest_restored.data);
        }
        expect(same || i > file.size, "cut after %zu bytes: neither kept nor whole", i);
        free(restored.data);
        free(tsr.data);
        free(b.data);
    }
    assert_true(kept > (int)file.size);
    free(file.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_form), cmocka_unit_test(several_chunks),
                                       cmocka_unit_test(damaged)};
    return cmocka_run_group_tests(tests, create_engine, destroy_engine);
}
