/* Regions as pictures (tsr_write_region), and what is left of damaged files (tsr_salvage): images of all depths and
 * layouts, each section damaged in turn, cuts, lost and forged indexes. Samples are compared one by one. */
#include "tests/unit/images.h"

#include "app/tessera_cli.h"
#include "tests/sections/sections.h"

enum { MOST_BYTES = 1 << 21 };

static struct tsr_engine *engine;
static struct tsr_error error;
static uint8_t raster[MOST_BYTES], frame[MOST_BYTES];

#define DO(call) expect((call) == TSR_OK, "%s: %s", #call, error.text)

static int start(void **state)
{
    (void)state;
    engine = make_engine(TSR_ENGINE_CPU, 2);
    return engine ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    tsr_engine_destroy(engine);
    return 0;
}

static struct tsr_buffer compress(const struct tsr_image *image, const struct tsr_compress_options *options)
{
    struct tsr_buffer made = {NULL, 0};
    const struct tsr_data_source source =
        tsr_from_memory(raster, (size_t)((tsr_frame_bits(image) * image->frames + 7) / 8));
    const struct tsr_data_sink sink = tsr_to_memory(&made);
    DO(tsr_compress_raster(engine, image, &source, &sink, options, NULL, &error));
    return made;
}

/* ---- Pictures, read by these pages' own code ------------------------------------------------------------------- */

/* A picture's numbers in their order, and its shape. */
struct shape {
    uint32_t frames, rows, columns, components;
    size_t bytes; /* of a number */
    const uint8_t *values;
    bool is_big; /* big-endian */
};

static struct shape read_npy(const struct tsr_buffer *file)
{
    struct shape s = {.components = 1};
    char text[256] = "", order, kind;
    assert_true(file->count >= 64 && memcmp(file->bytes, "\x93NUMPY\1\0", 8) == 0);
    const size_t head = 10u + file->bytes[8] + 256u * file->bytes[9];
    assert_true(head % 64 == 0 && head < sizeof text && head <= file->count && file->bytes[head - 1] == '\n');
    memcpy(text, file->bytes + 10, head - 10);
    const int found = sscanf(text, "{'descr': '%c%c%zu', 'fortran_order': False, 'shape': (%u, %u, %u, %u)", &order,
                             &kind, &s.bytes, &s.frames, &s.rows, &s.columns, &s.components);
    assert_true(found >= 6 && order == (s.bytes > 1 ? '<' : '|') && strchr("iuf", kind));
    s.values = file->bytes + head;
    assert_int_equal(file->count - head, (size_t)s.frames * s.rows * s.columns * s.components * s.bytes);
    return s;
}

static struct shape read_pnm(const struct tsr_buffer *file)
{
    struct shape s = {.frames = 1, .is_big = true};
    char kind, text[64] = "";
    unsigned most;
    int used;
    memcpy(text, file->bytes, file->count < sizeof text - 1 ? file->count : sizeof text - 1);
    assert_int_equal(sscanf(text, "P%c\n%u %u\n%u%n", &kind, &s.columns, &s.rows, &most, &used), 4);
    s.components = kind == '6' ? 3 : 1;
    s.bytes = most > 255 ? 2 : 1;
    s.values = file->bytes + used + 1;
    assert_int_equal(file->count - (size_t)used - 1, (size_t)s.rows * s.columns * s.components * s.bytes);
    return s;
}

/* A number's low 32 bits. */
static uint32_t number_at(const struct shape *s, size_t i)
{
    uint32_t number = 0;
    for (size_t k = 0; k < s->bytes; k++)
        number |= (uint32_t)s->values[i * s->bytes + (s->is_big ? s->bytes - 1 - k : k)] << 8 * k;
    return number;
}

/* What a picture must have of a sample, as number_at gives it. */
static uint32_t wanted_at(const struct tsr_image *image, const uint8_t *of_frame, int component, size_t sample,
                          size_t bytes)
{
    const uint32_t value = (uint32_t)get_value(image, of_frame, word_place(image, component, sample));
    return bytes < 4 ? value & ((1u << 8 * bytes) - 1) : value;
}

static void compare_picture(const struct tsr_image *image, const struct shape *s, uint32_t f,
                            const struct tsr_region *part)
{
    for (size_t y = 0; y < part->rows; y++)
        for (size_t x = 0; x < part->columns; x++)
            for (int c = 0; c < image->components; c++) {
                const size_t there = (part->row + y) * image->columns + part->column + x,
                             here = ((f * part->rows + y) * part->columns + x) * image->components + (size_t)c;
                expect(number_at(s, here) == wanted_at(image, frame, c, there, s->bytes),
                       "sample %zu, %zu of component %d is another", part->column + x, part->row + y, c);
            }
}

/* ---- Regions --------------------------------------------------------------------------------------------------- */

/* One region of all frames, or of one of them; it may reach out of the image. */
static void try_region(struct tsr_reader *reader, const struct tsr_image *image, const struct tsr_region *asked,
                       uint32_t first, uint32_t frames)
{
    struct tsr_buffer npy = {NULL, 0}, other = {NULL, 0};
    const struct tsr_data_sink sink = tsr_to_memory(&npy), to_other = tsr_to_memory(&other);
    struct tsr_region part = *asked;
    if (part.columns > image->columns - part.column) part.columns = image->columns - part.column;
    if (part.rows > image->rows - part.row) part.rows = image->rows - part.row;
    DO(tsr_write_region(reader, 0, asked, first, frames, TSR_PICTURE_NPY, &sink, NULL, &error));
    const struct shape s = read_npy(&npy);
    const uint32_t count = frames > 0 ? frames : image->frames - first;
    assert_true(s.frames == count && s.rows == part.rows && s.columns == part.columns &&
                s.components == image->components);
    for (uint32_t f = 0; f < count; f++) {
        DO(tsr_read_frame(reader, 0, first + f, frame, sizeof frame, 0, &error));
        compare_picture(image, &s, f, &part);
    }
    const bool fits = image->bits_allocated <= 16 && !image->is_signed;
    const enum tsr_status pnm =
        tsr_write_region(reader, 0, asked, first, frames, TSR_PICTURE_PNM, &to_other, NULL, &error);
    assert_int_equal(pnm, fits && image->components % 2 == 1 ? TSR_OK : TSR_ERROR_USAGE);
    if (pnm == TSR_OK) {
        const struct shape of_pnm = read_pnm(&other);
        assert_int_equal(of_pnm.rows, count * part.rows);
        for (size_t i = 0; i < (size_t)of_pnm.rows * of_pnm.columns * of_pnm.components; i++)
            assert_int_equal(number_at(&of_pnm, i), number_at(&s, i));
    }
    tsr_buffer_free(&other);
    const enum tsr_status png =
        tsr_write_region(reader, 0, asked, first, frames, TSR_PICTURE_PNG, &to_other, NULL, &error);
    assert_int_equal(png, fits && count == 1 ? TSR_OK : TSR_ERROR_USAGE);
    if (png == TSR_OK) { /* read by our own reader, which other tests compare with libpng */
        const struct tsr_data_source file = tsr_from_memory(other.bytes, other.count);
        struct tsr_reader *of_png;
        struct tsr_image read;
        DO(tsr_open(engine, &file, &of_png, &error));
        DO(tsr_reader_image(of_png, 0, &read, &error));
        assert_true(read.columns == part.columns && read.rows == part.rows && read.components == image->components);
        DO(tsr_read_frame(of_png, 0, 0, frame, sizeof frame, 0, &error));
        for (size_t i = 0; i < (size_t)part.rows * part.columns; i++)
            for (int c = 0; c < read.components; c++)
                assert_int_equal(get_value(&read, frame, word_place(&read, c, i)),
                                 number_at(&s, i * read.components + (size_t)c));
        tsr_close(of_png);
    }
    tsr_buffer_free(&other);
    tsr_buffer_free(&npy);
}

static void try_regions(const struct tsr_image *image, const struct tsr_compress_options *options, struct rng *r)
{
    struct tsr_buffer file = compress(image, options);
    const struct tsr_data_source source = tsr_from_memory(file.bytes, file.count);
    const struct tsr_region corner = {image->columns - 1, image->rows - 1, 1, 1}, all = {0, 0, 65535, 65535};
    struct tsr_reader *reader;
    struct tsr_buffer none = {NULL, 0};
    const struct tsr_data_sink sink = tsr_to_memory(&none);
    DO(tsr_open(engine, &source, &reader, &error));
    try_region(reader, image, &corner, 0, 0);
    try_region(reader, image, &all, image->frames - 1, 1);
    for (int i = 0; i < 3; i++) {
        const struct tsr_region drawn = {rng_below(r, image->columns), rng_below(r, image->rows),
                                         1 + rng_below(r, image->columns), 1 + rng_below(r, image->rows)};
        try_region(reader, image, &drawn, rng_below(r, image->frames), i % 2 ? 0 : 1);
    }
    const struct tsr_region outside[] = {{image->columns, 0, 5, 5}, {0, image->rows, 5, 5}, {0, 0, 0, 5}};
    for (size_t i = 0; i < COUNT_OF(outside); i++)
        assert_int_equal(tsr_write_region(reader, 0, &outside[i], 0, 0, TSR_PICTURE_NPY, &sink, NULL, &error),
                         TSR_ERROR_USAGE);
    assert_int_equal(tsr_write_region(reader, 0, &corner, image->frames, 1, TSR_PICTURE_NPY, &sink, NULL, &error),
                     TSR_ERROR_USAGE);
    assert_null(none.bytes);
    tsr_close(reader);
    tsr_buffer_free(&file);
}

TEST(regions_of_all_images)
{
    struct rng r = {48};
    for (int i = 0; i < 120; i++) {
        const bool is_large = i % 3 == 0; /* it may have several tiles */
        struct tsr_image image = random_image(&r, is_large ? 340 : 200);
        struct tsr_compress_options options = TSR_COMPRESS_OPTIONS;
        image.frames = is_large || image.swapped ? 1 : 1 + rng_below(&r, 3);
        if (skip_case()) continue;
        for (size_t k = 0; k < sizeof raster; k++) raster[k] = (uint8_t)(rng_below(&r, 9) * (k >> 6));
        options.effort = 1 + (int)rng_below(&r, 9);
        const bool may_lose = image.bits_allocated == 8 || image.bits_allocated == 16;
        if (may_lose && i % 4 > 0) {
            options.loss = TSR_LOSS_QP;
            options.qp_eighths = 200;
        }
        options.lossless_rest = options.loss != TSR_LOSSLESS && i % 4 == 2;
        try_regions(&image, &options, &r);
    }
}

/* ---- What a region reads ---------------------------------------------------------------------------------------- */

struct server {
    const struct tsr_buffer *file;
    uint64_t bytes;
    int requests;
};

static int64_t serve(void *context, uint64_t offset, void *bytes, size_t count)
{
    struct server *const s = context;
    memcpy(bytes, s->file->bytes + offset, count);
    s->requests++;
    s->bytes += count;
    return (int64_t)count;
}

static const struct tsr_image tiled = {.columns = 1100,
                                       .rows = 250,
                                       .frames = 2,
                                       .components = 1,
                                       .bits_allocated = 16,
                                       .bits_stored = 12,
                                       .high_bit = 11};

/* Frames of noise before a slope: 550 x 84 or 83 samples a tile, none of which is small. */
static void draw_tiled(void)
{
    struct rng r = {7};
    for (size_t i = 0; i < (size_t)tiled.columns * tiled.rows * tiled.frames; i++) {
        const uint32_t value = (uint32_t)(i % tiled.columns) + rng_below(&r, 64);
        raster[2 * i] = (uint8_t)value;
        raster[2 * i + 1] = (uint8_t)(value >> 8);
    }
}

/* In an open file, a region within a row of tiles costs two requests, and 1.3 times the bytes of its units at most. */
TEST(bytes_of_a_region)
{
    struct tsr_compress_options options = TSR_COMPRESS_OPTIONS;
    draw_tiled();
    for (int lossy = 0; lossy < 2; lossy++) {
        options.loss = lossy ? TSR_LOSS_QP : TSR_LOSSLESS;
        options.qp_eighths = lossy ? 100 : 0;
        struct tsr_buffer file = compress(&tiled, &options), npy = {NULL, 0};
        struct server server = {&file, 0, 0};
        const struct tsr_data_source source = tsr_from_calls(serve, &server, file.count);
        const struct tsr_data_sink sink = tsr_to_memory(&npy);
        const struct tsr_region region = {600, 90, 300, 30};
        struct tsr_reader *reader;
        struct sections s;
        assert_true(split_sections(file.bytes, file.count, &s));
        const int model = find_section(&s, 'F', 1) >= 0 ? find_section(&s, 'F', 1) : find_section(&s, 'F', 0);
        const int tiles = find_section(&s, 'T', 0);
        assert_true(tiles > 0);
        int count = 0;
        while (s.section[tiles + count].type == 'T') count++;
        DO(tsr_open(engine, &source, &reader, &error));
        server.bytes = 0;
        server.requests = 0;
        DO(tsr_write_region(reader, 0, &region, 1, 1, TSR_PICTURE_NPY, &sink, NULL, &error));
        size_t units = s.section[model].body.size + 12, longest = 0;
        for (int t = 0; t < s.count; t++)
            if (s.section[t].type == 'T' && s.section[t].body.size > longest) longest = s.section[t].body.size;
        units += longest;
        expect(server.requests <= 2, "%d requests", server.requests);
        expect(10 * server.bytes <= 13 * units, "%llu bytes for units of %zu", (unsigned long long)server.bytes, units);
        expect(10 * server.bytes < 4 * (file.count / 2), "%llu bytes of a file of %zu",
               (unsigned long long)server.bytes, file.count);
        tsr_close(reader);
        free_sections(&s);
        tsr_buffer_free(&npy);
        tsr_buffer_free(&file);
    }
}

/* ---- Salvage ------------------------------------------------------------------------------------------------------
 */

struct told {
    uint64_t held, lost;
};

static void count_region(void *context, uint32_t number, const struct tsr_region *region, bool is_held)
{
    struct told *const t = context;
    (void)number;
    *(is_held ? &t->held : &t->lost) += (uint64_t)region->columns * region->rows;
}

/* The samples of a file that is whole, as numbers of a picture. */
static uint32_t expected[MOST_BYTES / 2];
static void expect_samples(const struct tsr_image *image, const uint8_t *whole)
{
    const size_t pixels = (size_t)image->columns * image->rows, bytes = image->bits_allocated / 8;
    for (size_t i = 0; i < pixels * image->frames; i++)
        for (int c = 0; c < image->components; c++)
            expected[i * image->components + (size_t)c] =
                wanted_at(image, whole + i / pixels * raster_bytes(image), c, i % pixels, bytes);
}

/* Salvages bytes of a file of an image. Checks that each sample is that of the whole file, or 0 and marked as lost.
 * Returns how many pixels are held; -1: none, with the status. */
static int64_t salvage(const struct tsr_image *image, const void *bytes, size_t size, enum tsr_status *status)
{
    struct tsr_buffer picture = {NULL, 0}, mask = {NULL, 0};
    const struct tsr_data_source source = tsr_from_memory(bytes, size);
    const struct tsr_data_sink sink = tsr_to_memory(&picture), of_mask = tsr_to_memory(&mask);
    struct tsr_salvage_sinks sinks = TSR_SALVAGE_SINKS;
    struct tsr_salvaged found = TSR_SALVAGED;
    struct told told = {0, 0};
    sinks.mask = &of_mask;
    sinks.tell = count_region;
    sinks.context = &told;
    *status = tsr_salvage(engine, &source, 0, &sink, &sinks, &found, &error);
    if (*status != TSR_OK) {
        assert_true(!picture.bytes && !mask.bytes && error.text[0]);
        return -1;
    }
    const struct shape s = read_npy(&picture), m = read_pnm(&mask);
    const size_t pixels = (size_t)image->columns * image->rows;
    int64_t held = 0;
    assert_true(s.frames == found.frames && s.frames <= image->frames && m.rows == s.frames * image->rows);
    for (size_t i = 0; i < s.frames * pixels; i++) {
        const bool is_held = m.values[i] == 255;
        assert_true(is_held || m.values[i] == 0);
        held += is_held;
        for (int c = 0; c < image->components; c++) {
            const uint32_t wanted = is_held ? expected[i * image->components + (size_t)c] : 0;
            expect(number_at(&s, i * image->components + (size_t)c) == wanted, "sample %zu is another", i);
        }
    }
    assert_int_equal(told.held, held);
    assert_int_equal(told.held + told.lost, pixels * image->frames);
    assert_int_equal(found.samples_held, (uint64_t)held * image->components);
    assert_int_equal(found.bytes, picture.count);
    tsr_buffer_free(&picture);
    tsr_buffer_free(&mask);
    return held;
}

/* The first byte of section i, of the file that was split. */
static size_t section_start(const struct sections *s, int i)
{
    size_t at = 4;
    uint8_t number[10];
    for (int k = 0; k < i; k++) at += 1 + put_number(number, s->section[k].body.size) + s->section[k].body.size + 8;
    return at;
}

/* The tiles of the image that is tiled: by default, and squares of 128. */
struct grid {
    uint32_t width, height;
};
static const struct grid usual = {550, 84}, squares = {123, 125};

static uint32_t less_of(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t parts_of(uint32_t side, uint32_t part)
{
    return (side + part - 1) / part;
}

/* The pixels of the tile of section i. */
static uint32_t tile_pixels(const struct sections *s, int i, const struct grid *g)
{
    size_t at = 0;
    read_number(s->section[i].body.data, s->section[i].body.size, &at);
    const uint32_t tile = (uint32_t)read_number(s->section[i].body.data, s->section[i].body.size, &at),
                   across = parts_of(tiled.columns, g->width), x = tile % across * g->width,
                   y = tile / across * g->height;
    return less_of(g->width, tiled.columns - x) * less_of(g->height, tiled.rows - y);
}

enum { FOOTER = 24 };

/* Whether the index is lost, too: all after the proof is cut. */
static void damage_each(const struct tsr_buffer *file, const struct grid *grid, bool is_cut)
{
    struct sections s;
    assert_true(split_sections(file->bytes, file->count, &s));
    const size_t end = section_start(&s, s.count);
    const int64_t all = (int64_t)tiled.columns * tiled.rows * tiled.frames;
    uint8_t *const copy = malloc(file->count);
    int tiles = 0;
    for (int i = 0; i < s.count; i++) {
        for (int head = 0; head < 2; head++) { /* its head, after which no walk goes on; its body */
            enum tsr_status status;
            memcpy(copy, file->bytes, file->count);
            const size_t at = section_start(&s, i), size = section_start(&s, i + 1) - at;
            if (head)
                memset(copy + at, 0xff, 3);
            else
                copy[at + size / 2] ^= 0x10;
            const int64_t held = salvage(&tiled, copy, is_cut ? end : file->count, &status);
            const uint8_t type = s.section[i].type;
            if (type == 'H') { /* its copy tells the same */
                expect(is_cut ? status == TSR_ERROR_CORRUPT || status == TSR_ERROR_NOT_TSR : held == all,
                       "header: %lld pixels", (long long)held);
            } else if (type == 'T') {
                expect(held == all - tile_pixels(&s, i, grid), "tile at %zu: %lld pixels are lost", at,
                       (long long)(all - held));
                tiles++;
            } else if (type == 'F') {
                expect(held >= 0 && held < all && held % (tiled.columns * tiled.rows) == 0, "model: %lld pixels",
                       (long long)held);
            } else if (type == 'B' || type == 'P') {
                expect(held == all, "section %c: %lld pixels", type, (long long)held);
            }
        }
    }
    assert_int_equal(tiles / 2,
                     tiled.frames * parts_of(tiled.columns, grid->width) * parts_of(tiled.rows, grid->height));
    free(copy);
    free_sections(&s);
}

TEST(each_section_damaged)
{
    struct tsr_compress_options options = TSR_COMPRESS_OPTIONS;
    draw_tiled();
    expect_samples(&tiled, raster);
    for (int effort = 2; effort < 9; effort += 6) {
        options.effort = effort;
        struct tsr_buffer file = compress(&tiled, &options);
        damage_each(&file, &usual, false);
        damage_each(&file, &usual, true);
        tsr_buffer_free(&file);
    }
}

/* ---- Tiles that come first: ORDER.md ----------------------------------------------------------------------------- */

/* Tiles 2, 3, 11, 12 of two rows of 9: two runs. */
static const struct tsr_region wanted_first = {300, 100, 150, 80};

static struct tsr_buffer compress_ordered(int effort)
{
    struct tsr_compress_options options = TSR_COMPRESS_OPTIONS;
    struct tsr_roi first = TSR_ROI;
    first.rectangles = &wanted_first;
    first.rectangle_count = 1;
    options.first = &first;
    options.tile_side = 128;
    options.effort = effort;
    draw_tiled();
    return compress(&tiled, &options);
}

/* Each section is lost in turn; and the region is there as soon as its tiles are, of all frames. */
TEST(ordered_sections)
{
    const int64_t of_first = 2 * (2 * 123 * 125 + 2 * 123 * 125);
    for (int effort = 2; effort < 9; effort += 6) {
        struct tsr_buffer file = compress_ordered(effort);
        struct sections s;
        enum tsr_status status;
        expect_samples(&tiled, raster);
        damage_each(&file, &squares, false);
        damage_each(&file, &squares, true);
        assert_true(split_sections(file.bytes, file.count, &s));
        int seen = 0, end = 0;
        for (; seen < 8; end++) seen += s.section[end].type == 'T';
        assert_true(s.section[end].type == 'T');
        assert_int_equal(salvage(&tiled, file.bytes, section_start(&s, end), &status), of_first);
        assert_true(10 * section_start(&s, end) < 3 * file.count);
        assert_true(salvage(&tiled, file.bytes, section_start(&s, end) - 1, &status) < of_first);
        free_sections(&s);
        tsr_buffer_free(&file);
    }
}

/* The region costs two requests, though it lies in two rows of tiles. */
TEST(requests_of_first_tiles)
{
    struct tsr_buffer file = compress_ordered(5), npy = {NULL, 0};
    struct server server = {&file, 0, 0};
    const struct tsr_data_source source = tsr_from_calls(serve, &server, file.count);
    const struct tsr_data_sink sink = tsr_to_memory(&npy);
    struct tsr_reader *reader;
    struct tsr_info info = TSR_INFO;
    DO(tsr_open(engine, &source, &reader, &error));
    DO(tsr_read_info(reader, 0, &info, &error));
    assert_int_equal(info.tiles, 18);
    assert_int_equal(info.first_tiles, 4);
    server.requests = 0;
    DO(tsr_write_region(reader, 0, &wanted_first, 1, 1, TSR_PICTURE_NPY, &sink, NULL, &error));
    expect(server.requests <= 2, "%d requests", server.requests);
    tsr_close(reader);
    tsr_buffer_free(&npy);
    tsr_buffer_free(&file);
}

/* Items that lie. All checks of the files hold. */
TEST(hostile_orders)
{
    static const struct {
        uint8_t value[16];
        size_t size;
        enum tsr_status status;
    } values[] = {
        {{18, 2, 2, 7, 2}, 5, TSR_OK}, /* the file's own */
        {{18}, 1, TSR_ERROR_CORRUPT},
        {{18, 2, 2, 7, 3}, 5, TSR_ERROR_CORRUPT}, /* more first tiles than the file has */
        {{18, 2, 3, 6, 2}, 5, TSR_ERROR_CORRUPT}, /* the same */
        {{18, 3, 2, 6, 2}, 5, TSR_ERROR_CORRUPT}, /* others */
        {{18, 2, 2, 0, 2}, 5, TSR_ERROR_CORRUPT}, /* runs that touch */
        {{18, 2, 0, 7, 2}, 5, TSR_ERROR_CORRUPT}, /* an empty one */
        {{18, 2, 2, 7, 8}, 5, TSR_ERROR_CORRUPT}, /* beyond the last tile */
        {{18, 19, 2}, 3, TSR_ERROR_CORRUPT},
        {{18, 0, 18}, 3, TSR_ERROR_CORRUPT},      /* all tiles */
        {{17, 2, 2, 7, 2}, 5, TSR_ERROR_CORRUPT}, /* other numbers of tiles */
        {{19, 2, 2, 7, 2}, 5, TSR_ERROR_CORRUPT},
        {{0xff, 0xff, 3, 2, 2, 7, 2}, 7, TSR_ERROR_CORRUPT},
        {{0x80, 0x80, 4, 2, 2, 7, 2}, 7, TSR_ERROR_CORRUPT}, /* 65536 tiles */
        {{18, 2, 0xff, 0xff, 0xff, 0xff, 15}, 7, TSR_ERROR_CORRUPT},
        {{18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 2}, 11, TSR_ERROR_CORRUPT},
        {{18, 2, 2, 7}, 4, TSR_ERROR_CORRUPT}, /* cut */
        {{0}, 1, TSR_ERROR_CORRUPT},
    };
    struct tsr_buffer file = compress_ordered(5);
    enum tsr_status status;
    expect_samples(&tiled, raster);
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        struct sections s;
        assert_true(split_sections(file.bytes, file.count, &s));
        struct bytes header = copy_bytes(s.section[0].body.data, s.section[0].body.size - values[0].size - 1);
        const uint8_t length = (uint8_t)values[i].size;
        append(&header, &length, 1);
        append(&header, values[i].value, values[i].size);
        replace_body(&s, 0, header.data, header.size);
        struct bytes made = join_sections(&s, NEW_IDS);
        const struct tsr_data_source hostile = tsr_from_memory(made.data, made.size);
        status = tsr_test(engine, &hostile, NULL, &error);
        expect(status == values[i].status, "value %zu: %s", i, status == TSR_OK ? "taken" : error.text);
        salvage(&tiled, made.data, made.size, &status); /* which compares what it gives */
        free(made.data);
        free(header.data);
        free_sections(&s);
    }
    tsr_buffer_free(&file);
}

static const struct tsr_image colours = {
    .columns = 1030, .rows = 64, .frames = 2, .components = 3, .bits_allocated = 8, .bits_stored = 8, .high_bit = 7};

/* One change of a copy of a file: a bit, zeros, bytes from elsewhere in it, bytes left out or doubled. Returns its
 * size. */
static size_t mutate(uint8_t *copy, size_t size, size_t most, struct rng *r)
{
    const uint32_t at = rng_below(r, (uint32_t)size - 300), from = rng_below(r, (uint32_t)size - 300),
                   length = 1 + rng_below(r, 300);
    switch (rng_below(r, 5)) {
    case 0:
        copy[at] ^= (uint8_t)(1u << rng_below(r, 8));
        return size;
    case 1:
        memset(copy + at, 0, length);
        return size;
    case 2:
        memmove(copy + at, copy + from, length);
        return size;
    case 3:
        memmove(copy + at, copy + at + length, size - at - length);
        return size - length;
    default:
        if (size + length > most) return size;
        memmove(copy + at + length, copy + at, size - at);
        return size + length;
    }
}

/* One to six changes: whatever is held is as it was. */
TEST(mutants)
{
    struct tsr_compress_options options = TSR_COMPRESS_OPTIONS;
    struct rng r = {13};
    enum tsr_status status;
    int saved = 0;
    for (size_t i = 0; i < raster_bytes(&colours) * colours.frames; i++)
        raster[i] = (uint8_t)(i / 97 + rng_below(&r, 3));
    expect_samples(&colours, raster);
    struct tsr_buffer file = compress(&colours, &options);
    uint8_t *const copy = malloc(2 * file.count);
    for (int i = 0; i < 400; i++) {
        size_t size = file.count;
        memcpy(copy, file.bytes, size);
        for (uint32_t k = 1 + rng_below(&r, 6); k > 0; k--) size = mutate(copy, size, 2 * file.count, &r);
        if (!skip_case()) saved += salvage(&colours, copy, size, &status) > 0;
    }
    expect(saved > 100 || getenv("TSR_TEST_SMALL"), "of only %d mutants anything is saved", saved);
    free(copy);
    tsr_buffer_free(&file);
}

/* Cut at every 97th byte: what is held grows, and all is there in the end. */
TEST(cuts)
{
    const struct tsr_image image = colours;
    struct tsr_compress_options options = TSR_COMPRESS_OPTIONS;
    struct rng r = {11};
    enum tsr_status status;
    for (size_t i = 0; i < raster_bytes(&image) * image.frames; i++) raster[i] = (uint8_t)(i / 97 + rng_below(&r, 3));
    expect_samples(&image, raster);
    options.effort = 1;
    struct tsr_buffer file = compress(&image, &options);
    int64_t last = -1;
    int steps = 0;
    for (size_t size = 1; size < file.count; size += 97) {
        if (skip_case()) continue;
        const int64_t held = salvage(&image, file.bytes, size, &status);
        expect(held >= last, "%zu bytes hold less than fewer of them", size);
        steps += held > last;
        last = held;
    }
    expect(last == (int64_t)image.columns * image.rows * image.frames || getenv("TSR_TEST_SMALL"), "%lld pixels",
           (long long)last);
    expect(steps >= 4 || getenv("TSR_TEST_SMALL"), "only %d steps", steps);
    tsr_buffer_free(&file);
}

/* Neither header nor footer, but the copy of both; an index that lies; sections that come twice, or of another file. */
TEST(other_damage)
{
    struct tsr_compress_options options = TSR_COMPRESS_OPTIONS;
    const int64_t all = (int64_t)tiled.columns * tiled.rows * tiled.frames;
    enum tsr_status status;
    struct sections s;
    draw_tiled();
    expect_samples(&tiled, raster);
    struct tsr_buffer file = compress(&tiled, &options);
    uint8_t *const copy = malloc(2 * file.count);
    memcpy(copy, file.bytes, file.count);
    memset(copy, 0, 20);
    memset(copy + file.count - FOOTER, 0, FOOTER);
    assert_int_equal(salvage(&tiled, copy, file.count, &status), all);
    memcpy(copy, file.bytes, 4); /* with its signature */
    assert_int_equal(salvage(&tiled, copy, file.count, &status), all);

    /* The first half twice, and then the rest: what stands at a wrong place is found, and counts once. */
    memcpy(copy, file.bytes, file.count / 2);
    memcpy(copy + file.count / 2, file.bytes, file.count);
    const int64_t twice = salvage(&tiled, copy, file.count / 2 + file.count, &status);
    expect(twice > all * 8 / 10, "%lld of %lld pixels", (long long)twice, (long long)all);

    /* An index with a right check that calls the model of a frame another type of section. */
    assert_true(split_sections(file.bytes, file.count, &s));
    s.other_index = make_index(&s);
    s.other_index.data[s.other_index.size / 2] ^= 1;
    struct bytes lying = join_sections(&s, NEW_IDS);
    const int64_t found = salvage(&tiled, lying.data, lying.size, &status);
    assert_int_equal(found, all / 2);
    free(lying.data);

    /* One that has a length which cannot be. */
    s.other_index.data[s.other_index.size / 2] ^= 1;
    s.other_index.data[s.other_index.size / 2 + 1] ^= 1;
    lying = join_sections(&s, NEW_IDS);
    assert_int_equal(salvage(&tiled, lying.data, lying.size, &status), all);
    free(lying.data);
    free_sections(&s);

    /* The tiles of another file of the same shape do not fit. */
    raster[5] ^= 1;
    struct tsr_buffer other = compress(&tiled, &options);
    raster[5] ^= 1;
    memcpy(copy, file.bytes, file.count);
    memcpy(copy + file.count / 2, other.bytes + file.count / 2, file.count / 2 - 2000);
    memset(copy + file.count - 2000, 0, 2000);
    const int64_t mixed = salvage(&tiled, copy, file.count, &status);
    expect(mixed > 0 && mixed < all * 6 / 10, "%lld of %lld pixels", (long long)mixed, (long long)all);
    free(copy);
    tsr_buffer_free(&other);
    tsr_buffer_free(&file);
}

/* Bytes that all look like heads of long sections: the search reads each byte of the file so many times at most. */
TEST(endless_heads)
{
    enum { HEADS = 1 << 20, MOST_READS = 40 };
    static const uint8_t head[] = {'T', 0xff, 0xff, 0x1f, 0, 0};
    struct tsr_compress_options options = TSR_COMPRESS_OPTIONS;
    struct tsr_salvage_sinks sinks = TSR_SALVAGE_SINKS;
    struct tsr_salvaged found = TSR_SALVAGED;
    struct tsr_buffer none = {NULL, 0};
    const struct tsr_data_sink sink = tsr_to_memory(&none);
    draw_tiled();
    struct tsr_buffer file = compress(&tiled, &options);
    struct sections s;
    assert_true(split_sections(file.bytes, file.count, &s));
    struct tsr_buffer hostile = {malloc(2 * HEADS), section_start(&s, 1)};
    memcpy(hostile.bytes, file.bytes, hostile.count);
    for (; hostile.count + sizeof head < HEADS; hostile.count += sizeof head)
        memcpy(hostile.bytes + hostile.count, head, sizeof head);
    struct server server = {&hostile, 0, 0};
    const struct tsr_data_source source = tsr_from_calls(serve, &server, hostile.count);
    sinks.mask = &sink;
    assert_int_equal(tsr_salvage(engine, &source, 0, &sink, &sinks, &found, &error), TSR_ERROR_CORRUPT);
    assert_null(none.bytes);
    expect(server.bytes < MOST_READS * (uint64_t)hostile.count, "%llu bytes of a file of %zu are read",
           (unsigned long long)server.bytes, hostile.count);
    free(hostile.bytes);
    free_sections(&s);
    tsr_buffer_free(&file);
}

/* Frames with the model of another one: a region costs two requests. Such frames count those between: a frame between
 * whose own section is lost is known by its tiles. If these are lost, too, the frames behind it are, since their models
 * are not certain. */
TEST(models_of_other_frames)
{
    const struct tsr_image image = {.columns = 300,
                                    .rows = 300,
                                    .frames = 5,
                                    .components = 1,
                                    .bits_allocated = 16,
                                    .bits_stored = 12,
                                    .high_bit = 11};
    struct tsr_compress_options options = TSR_COMPRESS_OPTIONS;
    const int64_t each = (int64_t)image.columns * image.rows;
    struct rng r = {5};
    struct sections s;
    enum tsr_status status;
    for (size_t i = 0; i < (size_t)each * image.frames; i++) {
        const uint32_t value = (uint32_t)(i % image.columns) + rng_below(&r, 64);
        raster[2 * i] = (uint8_t)value;
        raster[2 * i + 1] = (uint8_t)(value >> 8);
    }
    expect_samples(&image, raster);
    struct tsr_buffer file = compress(&image, &options);
    assert_true(split_sections(file.bytes, file.count, &s));
    assert_true(find_section(&s, 'G', 3) > 0 && find_section(&s, 'F', 1) < 0); /* all have the model of the first one */
    const int second = find_section(&s, 'G', 0), third = find_section(&s, 'G', 1);
    struct tsr_buffer npy = {NULL, 0};
    struct server server = {&file, 0, 0};
    const struct tsr_data_source source = tsr_from_calls(serve, &server, file.count);
    const struct tsr_data_sink sink = tsr_to_memory(&npy);
    const struct tsr_region region = {9, 9, 99, 99};
    struct tsr_reader *reader;
    DO(tsr_open(engine, &source, &reader, &error));
    server.requests = 0;
    DO(tsr_write_region(reader, 0, &region, 3, 1, TSR_PICTURE_NPY, &sink, NULL, &error));
    expect(server.requests <= 2, "%d requests for a region with another frame's model", server.requests);
    tsr_close(reader);
    tsr_buffer_free(&npy);
    const size_t at = section_start(&s, second), tiles = section_start(&s, second + 1),
                 end = section_start(&s, s.count);
    memset(file.bytes + at, 0, tiles - at);
    assert_int_equal(salvage(&image, file.bytes, end, &status), each * (image.frames - 1));
    memset(file.bytes + at, 0, section_start(&s, third) - at);
    assert_int_equal(salvage(&image, file.bytes, end, &status), each);
    assert_int_equal(salvage(&image, file.bytes, file.count, &status), each * (image.frames - 1)); /* by the index */
    free_sections(&s);
    tsr_buffer_free(&file);
}

/* The same, where a wrong model could be taken: frames 2 and 3 are made to be frame 1 again, with its model. Where
 * frame 2 is lost, two frames back from frame 3 could be frame 0, whose model is another. */
TEST(wrong_models)
{
    struct tsr_image image = tiled;
    struct tsr_compress_options options = TSR_COMPRESS_OPTIONS;
    const size_t first = (size_t)tiled.columns * 80;
    struct rng r = {6};
    struct sections s;
    enum tsr_status status;
    image.rows = 80;
    image.frames = 4;
    for (size_t i = 0; i < 4 * first; i++) {
        const uint32_t value = i < first ? rng_below(&r, 4000) : (uint32_t)(i % 1100) + rng_below(&r, 64);
        raster[2 * i] = (uint8_t)value;
        raster[2 * i + 1] = (uint8_t)(value >> 8);
    }
    struct tsr_buffer file = compress(&image, &options);
    assert_true(split_sections(file.bytes, file.count, &s));
    const size_t frame_bytes = raster_bytes(&image);
    const int one = find_section(&s, 'F', 1), two = find_section(&s, 'F', 2), three = find_section(&s, 'F', 3);
    assert_true(one > 0 && two > one && three - two == two - one);
    for (uint8_t f = 2; f < 4; f++) {
        const uint8_t like[] = {f, (uint8_t)(f - 1)};
        const int at = f == 2 ? two : three;
        memcpy(raster + f * frame_bytes, raster + frame_bytes, frame_bytes);
        s.section[at].type = 'G';
        replace_body(&s, at, like, sizeof like);
        for (int t = 1; t < two - one; t++) {
            replace_body(&s, at + t, s.section[one + t].body.data, s.section[one + t].body.size);
            s.section[at + t].body.data[0] = f;
        }
    }
    struct bytes made = join_sections(&s, NEW_IDS);
    const size_t lost = section_start(&s, two), next = section_start(&s, three), end = section_start(&s, s.count);
    expect_samples(&image, raster);
    assert_int_equal(salvage(&image, made.data, made.size, &status), 4 * frame_bytes / 2);
    assert_int_equal(salvage(&image, made.data, end, &status), 4 * frame_bytes / 2);
    memset(made.data + lost, 0, next - lost);
    assert_int_equal(salvage(&image, made.data, end, &status), 2 * frame_bytes / 2);
    free(made.data);
    free_sections(&s);
    tsr_buffer_free(&file);
}

/* Floating-point numbers that whole numbers stand for: what is lost is 0, and not the number that 0 stands for. */
TEST(values)
{
    const struct tsr_image image = {.columns = 700,
                                    .rows = 500,
                                    .frames = 1,
                                    .components = 1,
                                    .bits_allocated = 32,
                                    .bits_stored = 32,
                                    .high_bit = 31,
                                    .is_float = true};
    struct tsr_compress_options options = TSR_COMPRESS_OPTIONS;
    const int64_t all = (int64_t)image.columns * image.rows;
    enum tsr_status status;
    struct rng r = {17};
    for (size_t i = 0; i < (size_t)all; i++) {
        const float value = 1000.25f + 0.25f * (float)((i % image.columns) / 4 + rng_below(&r, 16));
        memcpy(raster + 4 * i, &value, sizeof value);
    }
    expect_samples(&image, raster);
    struct tsr_buffer file = compress(&image, &options);
    assert_int_equal(salvage(&image, file.bytes, file.count, &status), all);
    file.bytes[file.count / 2] ^= 1;
    const int64_t held = salvage(&image, file.bytes, file.count, &status);
    expect(held > 0 && held < all, "%lld pixels", (long long)held);
    tsr_buffer_free(&file);
}

/* With a base, with patches, with loss by path T, units in small squares: cuts and holes at drawn places. */
TEST(other_files)
{
    struct rng r = {21};
    for (int i = 0; i < 40; i++) {
        struct tsr_compress_options options = TSR_COMPRESS_OPTIONS;
        struct tsr_image image = tiled;
        const struct tsr_region rectangle = {400, 70, 300, 80};
        struct tsr_roi roi = TSR_ROI;
        struct tsr_buffer restored = {NULL, 0};
        enum tsr_status status;
        if (skip_case()) continue;
        draw_tiled();
        image.frames = 1 + (uint32_t)i % 2;
        roi.rectangles = &rectangle;
        roi.rectangle_count = 1;
        options.loss = i % 4 ? TSR_LOSS_QP : TSR_LOSSLESS;
        options.qp_eighths = i % 4 ? 120 : 0;
        options.lossless_rest = i % 4 == 2;
        if (i % 4 == 3) options.roi = &roi;
        struct tsr_buffer file = compress(&image, &options);
        const struct tsr_data_source source = tsr_from_memory(file.bytes, file.count);
        const struct tsr_data_sink sink = tsr_to_memory(&restored);
        DO(tsr_restore(engine, &source, &sink, NULL, &error));
        expect_samples(&image, restored.bytes);
        const size_t hole = rng_below(&r, (uint32_t)file.count), length = 1 + rng_below(&r, 3000);
        const int64_t all = (int64_t)image.columns * image.rows * image.frames;
        assert_int_equal(salvage(&image, file.bytes, file.count, &status), all);
        memset(file.bytes + hole, 0, length < file.count - hole ? length : file.count - hole);
        const int64_t held = salvage(&image, file.bytes, i % 3 ? file.count : file.count - file.count / 10, &status);
        expect(held > 0 || status == TSR_ERROR_CORRUPT || status == TSR_ERROR_NOT_TSR, "status %d", (int)status);
        tsr_buffer_free(&restored);
        tsr_buffer_free(&file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regions_of_all_images), cmocka_unit_test(bytes_of_a_region),
        cmocka_unit_test(each_section_damaged),  cmocka_unit_test(cuts),
        cmocka_unit_test(other_damage),          cmocka_unit_test(mutants),
        cmocka_unit_test(endless_heads),         cmocka_unit_test(values),
        cmocka_unit_test(wrong_models),          cmocka_unit_test(models_of_other_frames),
        cmocka_unit_test(other_files),           cmocka_unit_test(ordered_sections),
        cmocka_unit_test(hostile_orders),        cmocka_unit_test(requests_of_first_tiles),
    };
    return cmocka_run_group_tests(tests, start, end);
}
