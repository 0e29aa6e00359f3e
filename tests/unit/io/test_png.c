/* PNG: every colour type and depth, plain and interlaced, against libpng's own writing and reading; IDAT chunks of
 * every shape (io/formats/png/). PNG.md. */
#include "one_engine.h"

#include <png.h>
#include <zlib.h>

#include "io/formats/png/png_file.h"
#include "io/nodes/png/png_idat.h"
#include "streams/by_node.h"

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
    expect(h->recipe == TSR_RECIPE_PNG && h->kind == TSR_KIND_PNG && h->exact, "type %d, depth %d: %s", f->type,
           f->depth, h->reason);
    assert_true(image->columns == columns && image->rows == rows && image->frames == 1 &&
                image->components == f->channels);
    assert_true(image->bits_allocated == (f->depth == 16 ? 16 : 8) && image->bits_stored == f->depth &&
                !image->is_signed);
    assert_int_equal(image->exact_only, f->type == 3 || f->depth == 1);
    const size_t count = (size_t)columns * (size_t)f->channels, bytes = count * image->bits_allocated / 8;
    uint8_t *raster = must(malloc(bytes * rows));
    assert_int_equal(tsr_source_read_frame(source, 0, raster, NULL), TSR_OK);
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

/* The same file comes back. Returns whether it is coded. */
static bool comes_back(struct bytes file, const char *what, size_t number)
{
    const struct tsr_coding coding = {.path = TSR_PATH_PREDICT, .coder = TSR_CODER_HUFFMAN};
    const struct bytes tsr = compress_bytes(engine, file, &coding);
    struct sections s = split(tsr);
    const uint8_t *header = s.section[0].body.data;
    const bool coded = header[2] == TSR_RECIPE_PNG;
    expect(coded ? (header[3] & 3) == 1 : header[2] == TSR_RECIPE_VERBATIM, "%s %zu: restore %u, flags %u", what,
           number, header[2], header[3]);
    free_sections(&s);
    struct bytes restored;
    bool damaged;
    assert_int_equal(restore_bytes(engine, tsr.data, tsr.size, &restored, &damaged), TSR_OK);
    expect(equal(restored, file), "%s %zu: another file comes back", what, number);
    free(restored.data);
    free(tsr.data);
    return coded;
}

static void check_picture(struct rng *r, const struct form *f, uint32_t columns, uint32_t rows, bool interlaced)
{
    const size_t pitch = row_bytes(f, columns), bits = (size_t)columns * (size_t)(f->channels * f->depth);
    uint8_t *packed = must(malloc(pitch * rows));
    for (size_t i = 0; i < pitch * rows; i++) packed[i] = (uint8_t)(rng_below(r, 3) ? rng_next(r) : 0);
    for (uint32_t y = 0; y < rows && bits % 8; y++) packed[y * pitch + pitch - 1] &= (uint8_t)(0xff00 >> bits % 8);
    const struct bytes file = write_png(f, columns, rows, interlaced, packed);
    check_raster(file, f, columns, rows, packed);
    (void)comes_back(file, interlaced ? "interlaced form" : "form", (size_t)(f - forms));
    free(file.data);
    free(packed);
}

static struct bytes lossy_bytes(struct bytes file, const struct tsr_coding *coding)
{
    const struct tsr_source_options options = {.may_lose = true};
    struct tsr_input *input = must(tsr_input_from_memory(file.data, file.size, "png"));
    struct tsr_output *output = must(tsr_output_to_memory());
    struct tsr_source *source;
    struct tsr_proof proof = {0};
    struct tsr_encoded encoded = {0};
    assert_int_equal(tsr_source_open(input, &options, &source, NULL), TSR_OK);
    source->header.coding = *coding;
    source->header.exact = false;
    assert_int_equal(tsr_resolve_coding(&source->header.coding, NULL), TSR_OK);
    assert_int_equal(tsr_encode(engine, source, output, &proof, &encoded, NULL), TSR_OK);
    const struct bytes tsr = bytes_of(output);
    tsr_source_close(source);
    tsr_output_close(output);
    tsr_input_close(input);
    return tsr;
}

/* With loss, the file has the same form, and the samples are near. */
TEST(with_loss)
{
    const struct form *f = &forms[3];
    enum { SIDE = 64 };
    uint8_t packed[SIDE * SIDE];
    for (int i = 0; i < SIDE * SIDE; i++) packed[i] = (uint8_t)(i % SIDE * 3 + i / SIDE + i * 7 % 5);
    const struct bytes file = write_png(f, SIDE, SIDE, false, packed);
    const struct tsr_coding coding = {
        .path = TSR_PATH_PREDICT, .coder = TSR_CODER_HUFFMAN, .lossy = true, .max_error = 3};
    const struct bytes tsr = lossy_bytes(file, &coding);
    struct sections s = split(tsr);
    const uint8_t *header = s.section[0].body.data;
    expect(header[2] == TSR_RECIPE_PNG && (header[3] & 3) == 2, "restore %u, flags %u", header[2], header[3]);
    free_sections(&s);
    struct bytes restored;
    bool damaged;
    assert_int_equal(restore_bytes(engine, tsr.data, tsr.size, &restored, &damaged), TSR_OK);
    assert_false(equal(restored, file));
    uint8_t *again = read_png(restored, f, SIDE, SIDE);
    for (int i = 0; i < SIDE * SIDE; i++) expect(abs(again[i] - packed[i]) <= 3, "sample %d", i);
    free(again);
    free(restored.data);
    free(tsr.data);
    free(file.data);
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

/* A file that is cut anywhere, or has any byte changed, comes back. */
TEST(damaged)
{
    struct rng r = {53};
    static const uint8_t packed[7 * 5];
    const struct bytes file = write_png(&forms[3], 7, 5, false, packed);
    for (size_t i = 0; i < 2 * file.size; i++) {
        struct bytes b = copy_bytes(file.data, i < file.size ? i : file.size);
        if (i >= file.size) b.data[i - file.size] ^= (uint8_t)(1 + rng_below(&r, 255));
        (void)comes_back(b, "damaged", i);
        free(b.data);
    }
    free(file.data);
}

/* ---- Chunks and streams of every shape ---------------------------------------------------------------------- */

/* An image of 8-bit grey or of fewer bits, as the plain bytes of its stream. */
struct picture {
    uint32_t columns, rows;
    int depth;
    bool interlaced;
};
static const struct picture plain_picture = {96, 64, 8, false};

/* types: how many filter types the rows take in turn. spare: set spare bits in the last row. */
static struct bytes plain_of(const struct picture *p, int types, bool spare)
{
    static const uint32_t passes[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                          {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
    static const uint32_t whole[4] = {0, 0, 1, 1};
    struct bytes plain = {NULL, 0};
    uint32_t row = 0;
    size_t bits = 0;
    for (int i = 0; i < (p->interlaced ? 7 : 1); i++) {
        const uint32_t *const pass = p->interlaced ? passes[i] : whole;
        bits = (size_t)((p->columns + pass[2] - 1 - pass[0]) / pass[2]) * (size_t)p->depth;
        if (bits == 0) continue; /* a pass without columns has no rows */
        for (uint32_t y = pass[1]; y < p->rows; y += pass[3], row++) {
            const uint8_t type = (uint8_t)(row % (uint32_t)types);
            append(&plain, &type, 1);
            for (size_t x = 0; x < (bits + 7) / 8; x++) {
                uint8_t byte = type == 0 ? (uint8_t)(x * 2 + row) : (uint8_t)((x * 7 + row) % 3);
                if (x == bits / 8) byte &= (uint8_t)(0xff00 >> bits % 8);
                append(&plain, &byte, 1);
            }
        }
    }
    if (spare) plain.data[plain.size - 1] |= 1;
    return plain;
}

static struct bytes zlib_of(struct bytes plain, int level)
{
    uLongf size = compressBound(plain.size);
    struct bytes stream = {must(malloc(size)), 0}, copy;
    assert_int_equal(compress2(stream.data, &size, plain.data, plain.size, level), Z_OK);
    copy = copy_bytes(stream.data, size);
    free(stream.data);
    return copy;
}

static void put_u32(struct bytes *file, size_t value)
{
    const uint8_t bytes[4] = {(uint8_t)(value >> 24), (uint8_t)(value >> 16), (uint8_t)(value >> 8), (uint8_t)value};
    append(file, bytes, 4);
}

static void put_chunk(struct bytes *file, const char *type, const uint8_t *data, size_t size)
{
    put_u32(file, size);
    append(file, type, 4);
    if (size > 0) append(file, data, size);
    put_u32(file, crc32(0, file->data + file->size - size - 4, (uInt)size + 4));
}

/* A PNG with this stream in chunks of these sizes, and one with the rest. first: where the first IDAT chunk stands. */
static struct bytes png_of(const struct picture *p, struct bytes stream, const size_t *sizes, size_t count,
                           size_t *first)
{
    struct bytes file = copy_bytes("\x89PNG\r\n\x1a\n", 8);
    uint8_t head[13] = {0};
    head[2] = (uint8_t)(p->columns >> 8);
    head[3] = (uint8_t)p->columns;
    head[6] = (uint8_t)(p->rows >> 8);
    head[7] = (uint8_t)p->rows;
    head[8] = (uint8_t)p->depth;
    head[12] = p->interlaced;
    put_chunk(&file, "IHDR", head, sizeof head);
    if (first) *first = file.size;
    size_t at = 0;
    for (size_t i = 0; i < count; at += sizes[i++]) {
        assert_true(sizes[i] <= stream.size - at);
        put_chunk(&file, "IDAT", stream.data + at, sizes[i]);
    }
    put_chunk(&file, "IDAT", stream.data + at, stream.size - at);
    put_chunk(&file, "IEND", NULL, 0);
    append(&file, "behind", 6);
    return file;
}

/* Writes the chunks of a residue. If that is done, they are chunks, whole and with their CRCs. */
static bool write_chunks(const struct tsr_header *header, const uint8_t *raster, struct bytes residue, size_t limit)
{
    struct tsr_bytes chunks = {.limit = limit};
    /* A copy of this size shows reads past the end. */
    uint8_t *copy = must(malloc(residue.size + !residue.size));
    if (residue.size > 0) memcpy(copy, residue.data, residue.size);
    const enum tsr_status status = join_png(tsr_png_rows_of(header), NULL, raster, copy, residue.size, &chunks);
    free(copy);
    expect(status == TSR_OK || status == TSR_ERROR_CORRUPT, "status %d", status);
    for (size_t at = 0; status == TSR_OK && at < chunks.size;) {
        const uint8_t *b = chunks.bytes + at;
        assert_true(chunks.size - at >= 12);
        const size_t size = (size_t)b[0] << 24 | (size_t)b[1] << 16 | (size_t)b[2] << 8 | b[3];
        assert_true(size <= chunks.size - at - 12 && memcmp(b + 4, "IDAT", 4) == 0);
        const uint8_t *c = b + 8 + size;
        assert_int_equal(crc32(0, b + 4, (uInt)size + 4),
                         (uint32_t)c[0] << 24 | (uint32_t)c[1] << 16 | (uint32_t)c[2] << 8 | c[3]);
        at += size + 12;
    }
    assert_true(chunks.size <= limit);
    tsr_bytes_free(&chunks);
    return status == TSR_OK;
}

static const struct tsr_crew backwards = {run_backwards, NULL};

/* The chunks as pixels and a residue, and again. */
static void check_idat(struct bytes file, size_t first, size_t size, const char *what, size_t number)
{
    const struct tsr_source_options options = {0};
    struct tsr_source *source;
    struct tsr_input *input = must(tsr_input_from_memory(file.data, file.size, "png"));
    assert_int_equal(tsr_source_open(input, &options, &source, NULL), TSR_OK);
    expect(source->header.recipe == TSR_RECIPE_PNG, "%s %zu: %s", what, number, source->header.reason);
    uint8_t *raster = must(malloc(tsr_raster_bytes(&source->header.image)));
    struct tsr_bytes residue = {.limit = SIZE_MAX / 2}, again = {.limit = size}, by_crew = {.limit = size};
    assert_int_equal(split_png(tsr_png_rows_of(&source->header), file.data + first, size, raster, &residue), TSR_OK);
    assert_int_equal(join_png(tsr_png_rows_of(&source->header), NULL, raster, residue.bytes, residue.size, &again),
                     TSR_OK);
    assert_int_equal(
        join_png(tsr_png_rows_of(&source->header), &backwards, raster, residue.bytes, residue.size, &by_crew), TSR_OK);
    expect(by_crew.size == size && memcmp(by_crew.bytes, file.data + first, size) == 0, "%s %zu: others by a crew",
           what, number);
    tsr_bytes_free(&by_crew);
    /* If all rows have filter 0 and nothing follows the stream, the residue says so in byte 6: no other type is taken.
     */
    for (uint32_t type = 5; type < 255 && residue.bytes[2] == 0 && residue.bytes[5] == 0 && residue.bytes[6] == 0;
         type += 83) {
        residue.bytes[6] = (uint8_t)type;
        expect(!write_chunks(&source->header, raster, (struct bytes){residue.bytes, residue.size}, 2 * size),
               "%s %zu: filter type %u is taken", what, number, type);
        residue.bytes[6] = 0;
    }
    expect(again.size == size && memcmp(again.bytes, file.data + first, size) == 0, "%s %zu: other chunks", what,
           number);
    tsr_bytes_free(&again);
    tsr_bytes_free(&residue);
    free(raster);
    tsr_source_close(source);
    tsr_input_close(input);
}

/* big: the image is large enough to be coded. */
static void check_chunks(const struct picture *p, int types, int level, const size_t *sizes, size_t count, bool big,
                         const char *what)
{
    size_t first;
    const struct bytes plain = plain_of(p, types, false), stream = zlib_of(plain, level);
    const struct bytes file = png_of(p, stream, sizes, count, &first);
    check_idat(file, first, stream.size + 12 * (count + 1), what, count);
    expect(comes_back(file, what, count) || !big, "%s %zu: it is not coded", what, count);
    free(file.data);
    free(stream.data);
    free(plain.data);
}

/* Streams of which several threads check and copy the chunks. */
TEST(sizes_of_many_chunks)
{
    enum { MANY = 3000 };
    static const struct picture large = {1100, 1000, 8, false};
    static const size_t whole = 1100 * 1000, other[] = {3, 700 << 10, 0, 100, 200 << 10};
    size_t sizes[MANY];
    for (size_t i = 0; i < MANY; i++) sizes[i] = 300;
    check_chunks(&large, 1, 0, NULL, 0, true, "one large chunk");
    check_chunks(&large, 1, 0, &whole, 1, true, "a large chunk and a small one");
    check_chunks(&large, 1, 0, sizes, MANY, true, "many small chunks");
    check_chunks(&large, 1, 0, other, COUNT_OF(other), true, "large and small chunks");
}

static void expect_chunks(const struct tsr_bytes *plain, const struct tsr_bytes *residue, const uint8_t *chunks,
                          size_t size)
{
    const struct tsr_node_parts parts = {plain->bytes, residue->bytes, plain->size, residue->size};
    struct tsr_bytes again = {.limit = size};
    struct tsr_error error = {.text = ""};
    expect(join_by(&tsr_node_png_chunks, parts, size, &again, &error) == TSR_OK, "%s", error.text);
    expect(again.size == size && memcmp(again.bytes, chunks, size) == 0, "%zu other bytes", size);
    tsr_bytes_free(&again);
}

/* A wrong CRC is found by a crew, and is the error whatever else is wrong. It comes back. */
TEST(wrong_checks_of_large_chunks)
{
    static const struct picture large = {1100, 1000, 8, false};
    static const size_t sizes[] = {600 << 10, 1000};
    const struct bytes plain = plain_of(&large, 1, false), stream = zlib_of(plain, 0);
    size_t first;
    const struct bytes file = png_of(&large, stream, sizes, COUNT_OF(sizes), &first);
    const size_t size = stream.size + 12 * (COUNT_OF(sizes) + 1);
    const size_t crc[] = {first + 8 + sizes[0], first + 8 + sizes[0] + 12 + sizes[1], first + size - 4};
    for (size_t i = 0; i < 2 * COUNT_OF(crc); i++) {
        struct tsr_bytes got = {.limit = plain.size}, residue = {.limit = SIZE_MAX / 2};
        struct tsr_error error;
        if (i >= COUNT_OF(crc)) file.data[first + 8] = 0x79; /* no zlib stream */
        file.data[crc[i % COUNT_OF(crc)]] ^= 128;
        const struct tsr_node_work work = {.crew = i % 2 ? backwards : (struct tsr_crew){NULL, NULL}};
        size_t used;
        assert_int_equal(tsr_node_png_chunks.split(&work, file.data + first, size, &used, &got, &residue, &error),
                         i < COUNT_OF(crc) ? TSR_OK : TSR_ERROR_CORRUPT);
        assert_true(strstr(error.text, "wrong CRC") && error.offset != TSR_NO_OFFSET);
        if (i < COUNT_OF(crc)) expect_chunks(&got, &residue, file.data + first, size);
        file.data[crc[i % COUNT_OF(crc)]] ^= 128;
        tsr_bytes_free(&got);
        tsr_bytes_free(&residue);
    }
    free(file.data);
    free(stream.data);
    free(plain.data);
}

/* Chunks that end anywhere come back, if the head of the zlib stream and a token of it are there. */
TEST(cut_chunks)
{
    const struct bytes plain = plain_of(&plain_picture, 1, false), stream = zlib_of(plain, 1);
    size_t first, taken = 0;
    const struct bytes file = png_of(&plain_picture, stream, &stream.size, 1, &first); /* the last chunk is empty */
    const size_t whole = stream.size + 24;
    for (size_t size = 0; size <= whole; size++) {
        struct tsr_bytes got = {.limit = plain.size}, residue = {.limit = SIZE_MAX / 2};
        struct tsr_error error = {.offset = TSR_NO_OFFSET, .text = ""};
        uint8_t *const chunks = must(malloc(size > 0 ? size : 1));
        const bool is_whole = size == whole || size == whole - 12;
        memcpy(chunks, file.data + first, size);
        const enum tsr_status status = split_by(&tsr_node_png_chunks, chunks, size, &got, &residue, &error);
        expect(status == TSR_OK || (status == TSR_ERROR_CORRUPT && error.text[0]), "%zu of %zu bytes: %s", size, whole,
               tsr_status_name(status));
        expect(!is_whole || !error.text[0], "%zu of %zu bytes: %s", size, whole, error.text);
        if (status == TSR_OK) expect_chunks(&got, &residue, chunks, size);
        taken += status == TSR_OK;
        free(chunks);
        tsr_bytes_free(&got);
        tsr_bytes_free(&residue);
    }
    expect(taken * 10 > whole * 6, "%zu of %zu are taken", taken, whole);
    free(file.data);
    free(stream.data);
    free(plain.data);
}

TEST(sizes_of_chunks)
{
    static const size_t equal_sizes[] = {40, 40, 40, 40}, other[] = {40, 40, 41, 7}, none[] = {0, 0, 0},
                        some[] = {0, 40, 0, 1}, head[] = {1, 1}, late[] = {40, 0};
    check_chunks(&plain_picture, 1, 1, NULL, 0, true, "one chunk");
    check_chunks(&plain_picture, 1, 1, equal_sizes, COUNT_OF(equal_sizes), true, "equal chunks");
    check_chunks(&plain_picture, 1, 1, other, COUNT_OF(other), true, "other chunks");
    check_chunks(&plain_picture, 1, 1, none, COUNT_OF(none), true, "empty chunks");
    check_chunks(&plain_picture, 1, 1, some, COUNT_OF(some), true, "some empty chunks");
    check_chunks(&plain_picture, 1, 1, head, COUNT_OF(head), true, "chunks within the head");
    check_chunks(&plain_picture, 1, 1, late, COUNT_OF(late), true, "a late empty chunk");
    const struct bytes plain = plain_of(&plain_picture, 1, false), stream = zlib_of(plain, 1);
    check_chunks(&plain_picture, 1, 1, &stream.size, 1, true, "an empty last chunk");
    free(stream.data);
    free(plain.data);
}

/* Rows with spare bits have filter 0 here, as other filters would set these bits. */
TEST(filters)
{
    static const struct picture interlaced = {96, 64, 8, true}, thin = {1, 900, 8, true}, low = {3, 2, 8, true},
                                two_bits = {96, 70, 2, false}, spare_two = {99, 90, 2, true},
                                spare_one = {331, 70, 1, false};
    for (int level = 0; level < 10; level += 3) {
        for (int types = 1; types <= 5; types++) {
            check_chunks(&plain_picture, types, level, NULL, 0, false, "plain");
            check_chunks(&interlaced, types, level, NULL, 0, false, "interlaced");
            check_chunks(&thin, types, level, NULL, 0, false, "thin");
            check_chunks(&low, types, level, NULL, 0, false, "low");
            check_chunks(&two_bits, types, level, NULL, 0, false, "two bits");
        }
        check_chunks(&spare_two, 1, level, NULL, 0, false, "two bits with spare bits");
        check_chunks(&spare_one, 1, level, NULL, 0, false, "one bit with spare bits");
    }
}

/* The reader's limit of a residue has room for a listed filter of each row, even if the stream is tiny. */
TEST(many_filters)
{
    static const struct picture tall = {2, 3000, 8, false}, interlaced = {2, 3000, 8, true};
    check_chunks(&tall, 2, 9, NULL, 0, false, "tall");
    check_chunks(&interlaced, 2, 9, NULL, 0, false, "tall and interlaced");
}

/* Bytes after the zlib stream are kept, and so are wrong checks; spare bits that cannot be made again keep the file
 * verbatim. */
TEST(odd_streams)
{
    static const size_t sizes[] = {40, 40};
    static const struct picture bits = {331, 70, 1, false};
    const struct bytes plain = plain_of(&plain_picture, 5, false);
    struct bytes stream = zlib_of(plain, 6);
    size_t first;
    struct bytes file = png_of(&plain_picture, stream, sizes, 2, &first);
    for (size_t i = 0; i < 3; i++) { /* the CRC of each chunk */
        const size_t crc = first + 8 + (i < 2 ? 40 : stream.size - 80);
        file.data[crc + 3] ^= 1;
        expect(comes_back(file, "wrong CRC", i), "a wrong CRC: it is not coded");
        file.data[crc + 3] ^= 1;
        first = crc + 4;
    }
    assert_true(comes_back(file, "right CRC", 0));
    free(file.data);
    stream.data[stream.size - 1] ^= 1;
    file = png_of(&plain_picture, stream, NULL, 0, NULL);
    assert_true(comes_back(file, "wrong check", 0));
    stream.data[stream.size - 1] ^= 1;
    free(file.data);
    append(&stream, "after the zlib stream", 21);
    file = png_of(&plain_picture, stream, sizes, 2, NULL);
    assert_true(comes_back(file, "a tail", 0));
    free(file.data);
    free(stream.data);
    free(plain.data);
    for (int spare = 0; spare < 2; spare++) {
        const struct bytes rows = plain_of(&bits, 1, spare);
        stream = zlib_of(rows, 0);
        file = png_of(&bits, stream, NULL, 0, NULL);
        expect(comes_back(file, "spare bits", (size_t)spare) == !spare, "spare bits %d", spare);
        free(file.data);
        free(stream.data);
        free(rows.data);
    }
}

/* ---- Damaged residues --------------------------------------------------------------------------------------- */

static void damage_residue(const struct tsr_header *header, const uint8_t *raster, struct bytes residue, size_t limit)
{
    struct rng r = {54};
    assert_true(write_chunks(header, raster, residue, limit));
    assert_false(write_chunks(header, raster, residue, limit - 1));
    for (size_t i = 0; i < residue.size; i++) {
        (void)write_chunks(header, raster, (struct bytes){residue.data, i}, 2 * limit);
        for (int k = 0; k < 12; k++) {
            struct bytes b = copy_bytes(residue.data, residue.size);
            b.data[i] = (uint8_t)(k < 8 ? b.data[i] ^ 1u << k : k == 8 ? 255u : rng_below(&r, 256));
            (void)write_chunks(header, raster, b, 2 * limit);
            free(b.data);
        }
    }
    for (int i = 0; i < 2000; i++) { /* anything behind a beginning that is right */
        struct bytes b = copy_bytes(residue.data, rng_below(&r, (uint32_t)(residue.size < 90 ? residue.size : 90)));
        for (uint32_t left = rng_below(&r, 60); left > 0; left--) {
            const uint8_t byte = (uint8_t)(rng_next(&r) & (rng_below(&r, 2) ? 255 : 7));
            append(&b, &byte, 1);
        }
        (void)write_chunks(header, raster, b, 2 * limit);
        free(b.data);
    }
}

TEST(damaged_residues)
{
    static const size_t sizes[] = {40, 40, 13};
    static const struct picture small = {24, 18, 8, true};
    const struct tsr_source_options options = {0};
    const struct bytes plain = plain_of(&small, 5, false);
    struct bytes stream = zlib_of(plain, 6);
    append(&stream, "tail", 4);
    size_t first;
    const struct bytes file = png_of(&small, stream, sizes, 2, &first);
    const size_t size = stream.size + 3 * 12;
    struct tsr_source *source;
    struct tsr_input *input = must(tsr_input_from_memory(file.data, file.size, "png"));
    assert_int_equal(tsr_source_open(input, &options, &source, NULL), TSR_OK);
    uint8_t *raster = must(malloc(tsr_raster_bytes(&source->header.image)));
    struct tsr_bytes residue = {.limit = SIZE_MAX / 2};
    assert_int_equal(split_png(tsr_png_rows_of(&source->header), file.data + first, size, raster, &residue), TSR_OK);
    damage_residue(&source->header, raster, (struct bytes){residue.bytes, residue.size}, size);
    /* What is refused: no chunks, an unknown way to list sizes, a tail that is too long, unknown filters, too large a
     * chunk. */
    static const uint8_t changes[][2] = {{0, 0}, {2, 2}, {5, 127}, {10, 5}, {10, 254}, {11, 5}, {12, 255}, {1, 127}};
    assert_int_equal(residue.bytes[0], 3);
    assert_int_equal(residue.bytes[10], 255);
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        struct bytes b = copy_bytes(residue.bytes, residue.size);
        b.data[changes[i][0]] = changes[i][1];
        expect(!write_chunks(&source->header, raster, b, 2 * size), "byte %u is %u: it is taken", changes[i][0],
               changes[i][1]);
        free(b.data);
    }
    /* Numbers of chunks that no file has. */
    for (int i = 0; i < 2; i++) {
        static const uint8_t many[2][12] = {{255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0, 0},
                                            {255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0, 1}};
        struct bytes b = copy_bytes(many[i], 12);
        append(&b, residue.bytes + 3, residue.size - 3);
        assert_false(write_chunks(&source->header, raster, b, 1 << 20));
        free(b.data);
    }
    tsr_bytes_free(&residue);
    free(raster);
    tsr_source_close(source);
    tsr_input_close(input);
    free(file.data);
    free(stream.data);
    free(plain.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_form),
                                       cmocka_unit_test(several_chunks),
                                       cmocka_unit_test(with_loss),
                                       cmocka_unit_test(damaged),
                                       cmocka_unit_test(sizes_of_chunks),
                                       cmocka_unit_test(cut_chunks),
                                       cmocka_unit_test(sizes_of_many_chunks),
                                       cmocka_unit_test(wrong_checks_of_large_chunks),
                                       cmocka_unit_test(filters),
                                       cmocka_unit_test(many_filters),
                                       cmocka_unit_test(odd_streams),
                                       cmocka_unit_test(damaged_residues)};
    return cmocka_run_group_tests(tests, create_engine, destroy_engine);
}
