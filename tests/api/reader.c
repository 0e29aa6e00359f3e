/* Readers of .tsr files, series and originals: frames, regions, headers and bytes of the original. */
#include <pthread.h>

#include "check.h"

static struct tsr_engine *engine;
static struct tsr_error error;

/* Bit number i of a raster. is_swapped: its bytes are exchanged in pairs. */
static int bit_at(const uint8_t *raster, uint64_t i, bool is_swapped)
{
    return raster[(size_t)(i / 8) ^ (size_t)is_swapped] >> (i % 8) & 1;
}

/* Compares a region bit by bit with the frame that contains it. */
static void check_region(const struct tsr_image *image, const uint8_t *frame, const struct tsr_region *region,
                         const uint8_t *got)
{
    const uint64_t planes = image->planar ? image->components : 1,
                   bits = image->components / planes * image->bits_allocated;
    uint64_t to = 0;
    for (uint64_t p = 0; p < planes; p++)
        for (uint64_t y = 0; y < region->rows; y++)
            for (uint64_t i = 0; i < region->columns * bits; i++, to++) {
                const uint64_t at = ((p * image->rows + region->row + y) * image->columns + region->column) * bits + i;
                CHECK(bit_at(got, to, false) == bit_at(frame, at, image->swapped),
                      "%u x %u at %u, %u of %u x %u: bit %llu differs", region->columns, region->rows, region->column,
                      region->row, image->columns, image->rows, (unsigned long long)to);
            }
    for (; to % 8; to++) CHECK(bit_at(got, to, false) == 0, "a spare bit is set");
}

/* Reads a frame, or a region of it, with gaps between its rows, which stay as they are. raster: it without gaps. */
static void check_gaps(struct tsr_reader *reader, uint32_t member, const struct tsr_image *image, uint32_t frame,
                       const struct tsr_region *region, const uint8_t *raster)
{
    enum { GAP = 5, PAINT = 0xa5 };
    const size_t planes = image->planar ? image->components : 1, columns = region ? region->columns : image->columns,
                 count = (region ? region->rows : image->rows) * planes,
                 row = columns * (image->components / planes) * image->bits_allocated / 8, distance = row + GAP,
                 bytes = (count - 1) * distance + row;
    uint8_t *const got = must(malloc(bytes + GAP));
    memset(got, PAINT, bytes + GAP);
#define READ(room, row_bytes)                                                              \
    (region ? tsr_read_region(reader, member, frame, region, got, room, row_bytes, &error) \
            : tsr_read_frame(reader, member, frame, got, room, row_bytes, &error))
    if (image->bits_allocated == 1 || (image->swapped && !region)) {
        FAILS(TSR_ERROR_USAGE, READ(SIZE_MAX, distance));
    } else {
        DO(READ(bytes, distance));
        for (size_t i = 0; i < count; i++)
            CHECK(memcmp(got + i * distance, raster + i * row, row) == 0, "row %zu is another", i);
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; k < GAP; k++) CHECK(got[i * distance + row + k] == PAINT, "a gap is written to");
        DO(READ(count * row, row)); /* none */
        CHECK(memcmp(got, raster, count * row) == 0, "another raster");
        if (row > 1) FAILS(TSR_ERROR_USAGE, READ(bytes, row - 1));
        if (count > 1) FAILS(TSR_ERROR_USAGE, READ(bytes - 1, distance));
        if (count > 1) FAILS(TSR_ERROR_USAGE, READ(SIZE_MAX / 2, SIZE_MAX));
    }
#undef READ
    free(got);
}

static void check_regions(struct tsr_reader *reader, uint32_t member, const struct tsr_image *image, uint32_t frame,
                          const uint8_t *raster)
{
    const uint32_t w = image->columns, h = image->rows;
    const struct tsr_region regions[] = {
        {0, 0, w, h},
        {0, 0, 1, 1},
        {w - 1, h - 1, 1, 1},
        {w / 2, 0, 1, h},
        {0, h / 2, w, 1},
        {w / 3, h / 3, w / 2, h / 2 + 1},
        {w / 2, h / 2, w - w / 2, h - h / 2},
    };
    uint8_t *const got = must(malloc(((size_t)tsr_frame_bits(image) + 7) / 8));
    for (size_t i = 0; i < sizeof regions / sizeof regions[0]; i++) {
        const struct tsr_region *const r = &regions[i];
        const size_t bytes =
            (size_t)(((uint64_t)r->columns * r->rows * image->components * image->bits_allocated + 7) / 8);
        DO(tsr_read_region(reader, member, frame, r, got, bytes, 0, &error));
        check_region(image, raster, r, got);
        check_gaps(reader, member, image, frame, r, got);
        FAILS(TSR_ERROR_USAGE, tsr_read_region(reader, member, frame, r, got, bytes - 1, 0, &error));
    }
    const struct tsr_region outside[] = {{0, 0, w + 1, 1}, {w, 0, 1, 1}, {0, h, 1, 1},         {1, 0, w, 1},
                                         {0, 0, 0, 1},     {0, 0, 1, 0}, {UINT32_MAX, 0, 2, 1}};
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++)
        FAILS(TSR_ERROR_USAGE, tsr_read_region(reader, member, frame, &outside[i], got, SIZE_MAX, 0, &error));
    free(got);
}

/* Compares all frames of a member, and regions, with a raster of all frames. */
static void check_frames(struct tsr_reader *reader, uint32_t member, const uint8_t *rasters)
{
    struct tsr_image image;
    DO(tsr_reader_image(reader, member, &image, &error));
    const size_t bytes = (size_t)((tsr_frame_bits(&image) + 7) / 8);
    uint8_t *const frame = must(malloc(bytes));
    for (uint32_t i = 0; i < image.frames; i++) {
        const uint32_t f = image.frames - 1 - i; /* in any order */
        DO(tsr_read_frame(reader, member, f, frame, bytes, 0, &error));
        if (rasters) CHECK(memcmp(frame, rasters + f * bytes, bytes) == 0, "frame %u is another", f);
        check_gaps(reader, member, &image, f, NULL, frame);
        check_regions(reader, member, &image, f, frame);
    }
    FAILS(TSR_ERROR_USAGE, tsr_read_frame(reader, member, image.frames, frame, bytes, 0, &error));
    FAILS(TSR_ERROR_USAGE, tsr_read_frame(reader, member, 0, frame, bytes - 1, 0, &error));
    FAILS(TSR_ERROR_USAGE, tsr_read_frame(reader, tsr_reader_members(reader), 0, frame, bytes, 0, &error));
    free(frame);
}

/* Reads ranges of the original with all kinds of ends. */
static void check_original(struct tsr_reader *reader, uint32_t member, const struct bytes *original)
{
    uint8_t *const got = must(malloc(original->count + 10));
    size_t count;
    DO(tsr_read_original(reader, member, 0, got, original->count + 10, &count, &error));
    CHECK(count == original->count && memcmp(got, original->data, count) == 0, "the original is another");
    for (size_t i = 0; i < 50; i++) {
        const size_t offset = i * 7919 * 31 % (original->count + 5), wanted = i * i * 37 % 5000;
        const size_t left = offset < original->count ? original->count - offset : 0;
        const size_t there = left < wanted ? left : wanted;
        memset(got, 0, there);
        DO(tsr_read_original(reader, member, offset, got, wanted, &count, &error));
        CHECK(count == there && (!there || memcmp(got, original->data + offset, there) == 0), "%zu from %zu on", wanted,
              offset);
    }
    free(got);
}

static struct tsr_reader *open_bytes(const void *bytes, size_t count, enum tsr_content content)
{
    const struct tsr_data_source source = tsr_from_memory(bytes, count);
    struct tsr_reader *reader;
    DO(tsr_open(engine, &source, &reader, &error));
    CHECK(tsr_reader_content(reader) == content, "it is another content");
    return reader;
}

static const struct tsr_element *find(const struct tsr_metadata *metadata, uint32_t tag)
{
    for (size_t i = 0; i < metadata->element_count; i++)
        if (metadata->elements[i].tag == tag) return &metadata->elements[i];
    return NULL;
}

static void check_listings(struct tsr_reader *reader, uint32_t member)
{
    struct tsr_buffer listed;
    DO(tsr_list_header(reader, member, TSR_LISTING_TEXT, &listed, &error));
    const char *text = (const char *)listed.bytes;
    CHECK(strlen(text) == listed.count, "no zero after the listing");
    CHECK(strstr(text, "(0010,0010) PN [Doe^Jane]") && strstr(text, "UI [1.2.3.4]"), "elements in the listing");
    CHECK(strstr(text, "(7fe0,0010) OW (not read)"), "the pixel data in the listing");
    tsr_buffer_free(&listed);
    DO(tsr_list_header(reader, member, TSR_LISTING_JSON, &listed, &error));
    text = (const char *)listed.bytes;
    CHECK(strlen(text) == listed.count && text[0] == '{' && text[listed.count - 1] == '}', "no object of JSON");
    CHECK(strstr(text, "\"00280010\":{\"vr\":\"US\",\"Value\":[48]}") && !strstr(text, "7FE00010"), "rows in JSON");
    tsr_buffer_free(&listed);
}

static void check_dicom_header(struct tsr_reader *reader, uint32_t member, const struct bytes *original)
{
    struct tsr_metadata *m;
    DO(tsr_read_header(reader, member, &m, &error));
    CHECK(m->kind == TSR_KIND_DICOM && !m->big_endian && m->byte_count < original->count, "another header");
    CHECK(memcmp(m->bytes, original->data, m->byte_count) == 0, "other bytes");
    const struct tsr_element *const name = find(m, 0x00100010), *const inner = find(m, 0x00081150);
    const struct tsr_element *const sequence = find(m, 0x00081140), *const rows = find(m, 0x00280010);
    CHECK(name && name->count == 8 && memcmp(name->value, "Doe^Jane", 8) == 0 && strcmp(name->vr, "PN") == 0, "name");
    CHECK(sequence && !sequence->value && sequence->depth == 0 && sequence[1].tag == 0xfffee000u, "a sequence");
    CHECK(inner && inner->depth == 2 && inner->count == 8 && memcmp(inner->value, "1.2.3.4", 8) == 0, "an inner one");
    CHECK(rows && rows->count == 2 && rows->value[0] == 48, "rows");
    CHECK(!find(m, 0x7fe00010), "the pixel data is among the elements");
    tsr_metadata_free(m);
    check_listings(reader, member);
}

/* Checks readers of a file as an original, and as a .tsr file. */
static void check_file(const struct bytes *original, size_t header, const struct tsr_compress_options *options)
{
    const bool is_dicom = original->count > 132 && memcmp(original->data + 128, "DICM", 4) == 0;
    struct tsr_buffer tsr = compress_bytes(engine, original->data, original->count, options);
    for (int coded = 0; coded < 2; coded++) {
        struct tsr_info info = TSR_INFO;
        struct tsr_reader *reader = coded ? open_bytes(tsr.bytes, tsr.count, TSR_CONTENT_TSR)
                                          : open_bytes(original->data, original->count, TSR_CONTENT_ORIGINAL);
        DO(tsr_read_info(reader, 0, &info, &error));
        CHECK(info.has_image && info.original_bytes == original->count && tsr_reader_members(reader) == 1, "info");
        const bool is_exact = !coded || !options || options->loss == TSR_LOSSLESS;
        check_frames(reader, 0, is_exact ? original->data + header : NULL);
        if (is_exact) check_original(reader, 0, original);
        if (is_exact && is_dicom) check_dicom_header(reader, 0, original);
        if (!is_dicom) {
            struct tsr_metadata *m;
            DO(tsr_read_header(reader, 0, &m, &error));
            CHECK(m->byte_count == header && memcmp(m->bytes, original->data, header) == 0, "another header");
            tsr_metadata_free(m);
        }
        if (!coded) FAILS(TSR_ERROR_USAGE, tsr_test_member(reader, 0, NULL, &error));
        if (coded) DO(tsr_test_member(reader, 0, NULL, &error));
        tsr_close(reader);
    }
    tsr_buffer_free(&tsr);
}

/* Checks readers of an image with this layout, from a raster, and with this coding. */
static void check_layout(struct tsr_image image, const struct tsr_compress_options *options)
{
    image.frames = image.frames ? image.frames : 1;
    const size_t count = (size_t)((tsr_frame_bits(&image) * image.frames + 7) / 8);
    struct bytes raster = {must(malloc(count)), count};
    draw(raster.data, count, image.columns);
    const struct tsr_data_source source = tsr_from_memory(raster.data, count);
    struct tsr_buffer tsr;
    const struct tsr_data_sink sink = tsr_to_memory(&tsr);
    DO(tsr_compress_raster(engine, &image, &source, &sink, options, NULL, &error));
    struct tsr_reader *reader = open_bytes(tsr.bytes, tsr.count, TSR_CONTENT_TSR);
    const bool is_exact = !options || options->loss == TSR_LOSSLESS;
    check_frames(reader, 0, is_exact && tsr_frame_bits(&image) % 8 == 0 ? raster.data : NULL);
    if (is_exact) check_original(reader, 0, &raster);
    tsr_close(reader);
    tsr_buffer_free(&tsr);
    free(raster.data);
}

static void check_layouts(void)
{
    static const struct tsr_image images[] = {
        {.columns = 1500, .rows = 140, .components = 1, .bits_allocated = 16, .bits_stored = 16, .high_bit = 15},
        {.columns = 301, .rows = 500, .components = 1, .bits_allocated = 8, .bits_stored = 8, .high_bit = 7},
        {.columns = 1100, .rows = 90, .components = 3, .bits_allocated = 8, .bits_stored = 8, .high_bit = 7},
        {.columns = 200,
         .rows = 400,
         .components = 3,
         .bits_allocated = 8,
         .bits_stored = 8,
         .high_bit = 7,
         .planar = true},
        {.columns = 500,
         .rows = 200,
         .components = 1,
         .bits_allocated = 8,
         .bits_stored = 8,
         .high_bit = 7,
         .swapped = true},
        {.columns = 33, .rows = 17, .frames = 3, .components = 1, .bits_allocated = 1, .bits_stored = 1},
        {.columns = 1040, .rows = 200, .components = 1, .bits_allocated = 1, .bits_stored = 1, .swapped = true},
        {.columns = 100, .rows = 80, .components = 1, .bits_allocated = 32, .bits_stored = 32, .high_bit = 31},
        {.columns = 90,
         .rows = 80,
         .components = 1,
         .bits_allocated = 16,
         .bits_stored = 16,
         .high_bit = 15,
         .is_signed = true,
         .big_endian = true},
    };
    for (size_t i = 0; i < sizeof images / sizeof images[0]; i++) {
        struct tsr_compress_options options = TSR_COMPRESS_OPTIONS;
        check_layout(images[i], NULL);
        options.coder = TSR_CODER_CAVLC;
        check_layout(images[i], &options);
        options.path = TSR_PATH_TRANSFORM;
        options.coder = TSR_CODER_HUFFMAN;
        check_layout(images[i], &options);
        options.coder = TSR_CODER_RANS;
        check_layout(images[i], &options);
        if (images[i].bits_allocated == 1 || images[i].bits_allocated == 32) continue;
        options.loss = TSR_LOSS_QP;
        options.qp_eighths = 20 * TSR_QP_UNIT;
        check_layout(images[i], &options);
        options.loss = TSR_LOSS_PSNR; /* with blocks of two QPs */
        options.qp_eighths = 0;
        options.psnr_hundredths = 4000;
        options.coder = TSR_CODER_BY_EFFORT;
        check_layout(images[i], &options);
        options.path = TSR_PATH_PREDICT;
        options.loss = TSR_LOSS_MAX_ERROR;
        options.psnr_hundredths = 0;
        options.max_error = 2;
        check_layout(images[i], &options);
    }
}

static void check_series(void)
{
    static const char *const names[] = {"a.dcm", "b/c.dcm", "b/d.pgm", "e"};
    static const char text[] = "no image";
    const struct bytes originals[] = {make_dicom(64, 48, 1, 1), make_dicom(64, 48, 1, 2), make_pnm(80, 60, 1, 8, 3)};
    struct tsr_series_file files[4];
    struct tsr_buffer tsr;
    const struct tsr_data_sink sink = tsr_to_memory(&tsr);
    for (int i = 0; i < 3; i++)
        files[i] = (struct tsr_series_file){tsr_from_memory(originals[i].data, originals[i].count), names[i]};
    files[3] = (struct tsr_series_file){tsr_from_memory(text, sizeof text), names[3]};
    DO(tsr_compress_series(engine, files, 4, &sink, NULL, NULL, NULL, NULL, &error));
    struct tsr_reader *reader = open_bytes(tsr.bytes, tsr.count, TSR_CONTENT_SERIES);
    struct tsr_info info = TSR_INFO;
    struct tsr_image image;
    CHECK(tsr_reader_members(reader) == 4, "members");
    DO(tsr_read_info(reader, TSR_ALL_MEMBERS, &info, &error));
    CHECK(info.members == 4, "info of all");
    for (uint32_t k = 0; k < 3; k++) {
        CHECK(strcmp(tsr_reader_name(reader, k), names[k]) == 0, "names");
        check_frames(reader, k, NULL);
        check_original(reader, k, &originals[k]);
        if (k < 2) check_dicom_header(reader, k, &originals[k]);
        DO(tsr_test_member(reader, k, NULL, &error));
        free(originals[k].data);
    }
    FAILS(TSR_ERROR_USAGE, tsr_reader_image(reader, 3, &image, &error));
    const struct bytes last = {(uint8_t *)text, sizeof text};
    check_original(reader, 3, &last);
    struct tsr_metadata *metadata;
    FAILS(TSR_ERROR_USAGE, tsr_read_header(reader, 3, &metadata, &error));
    struct tsr_buffer listed;
    FAILS(TSR_ERROR_USAGE, tsr_list_header(reader, 3, TSR_LISTING_TEXT, &listed, &error));
    CHECK(!tsr_reader_name(reader, 4), "a name of a member that there is not");
    const struct tsr_data_source source = tsr_from_memory(tsr.bytes, tsr.count);
    FAILS(TSR_ERROR_USAGE, tsr_test(engine, &source, NULL, &error));
    tsr_close(reader);
    tsr_buffer_free(&tsr);
    tsr_close(NULL);
}

/* The first section of this type from offset on (GROUND.md and io/FORMAT.md 3: type, length, body, 8 bytes); and where
 * it ends.
 */
static size_t find_section(const struct tsr_buffer *tsr, size_t offset, char type, size_t *end)
{
    for (size_t at = offset;; at = *end) {
        uint64_t length = 0;
        int shift = 0;
        *end = at + 1;
        do length |= (uint64_t)(tsr->bytes[*end] & 127) << shift;
        while (shift += 7, tsr->bytes[(*end)++] > 127);
        *end += (size_t)length + 8;
        CHECK(*end < tsr->count, "there is no section %c", type);
        if (tsr->bytes[at] == (uint8_t)type) return at;
    }
}

static void check_names(const struct tsr_buffer *tsr, uint32_t members, const char *const *names)
{
    struct tsr_reader *const reader = open_bytes(tsr->bytes, tsr->count, TSR_CONTENT_SERIES);
    CHECK(tsr_reader_members(reader) == members, "%u members", tsr_reader_members(reader));
    for (uint32_t k = 0; k < members; k++) {
        const char *const name = tsr_reader_name(reader, k);
        CHECK(names[k] ? name && strcmp(name, names[k]) == 0 : !name, "the name of member %u is %s", k, name);
    }
    tsr_close(reader);
}

/* A file of a series whose bytes are damaged keeps its name, as long as the section that has it is whole. What stands
 * for lost files has none. */
static void check_lost(void)
{
    static const char *const names[] = {"one.dcm", "two.dcm", "three.dcm", NULL};
    struct bytes originals[] = {make_dicom(300, 300, 1, 1), make_dicom(300, 300, 1, 2), make_dicom(300, 300, 1, 3)};
    struct tsr_series_file files[3];
    struct tsr_buffer tsr;
    const struct tsr_data_sink sink = tsr_to_memory(&tsr);
    size_t first_end, end;
    for (int i = 0; i < 3; i++)
        files[i] = (struct tsr_series_file){tsr_from_memory(originals[i].data, originals[i].count), names[i]};
    DO(tsr_compress_series(engine, files, 3, &sink, NULL, NULL, NULL, NULL, &error));
    check_names(&tsr, 3, names);
    find_section(&tsr, 4, 'M', &first_end);
    const size_t tile = find_section(&tsr, first_end, 'T', &end);
    const uint8_t type = tsr.bytes[tile];
    tsr.bytes[tile] = 'x';                     /* found where the file is read without its index */
    memset(tsr.bytes + tsr.count - 24, 0, 24); /* which the footer finds */
    check_names(&tsr, 3, names);
    struct tsr_reader *const reader = open_bytes(tsr.bytes, tsr.count, TSR_CONTENT_SERIES);
    FAILS(TSR_ERROR_CORRUPT, tsr_test_member(reader, 1, NULL, &error));
    DO(tsr_test_member(reader, 2, NULL, &error));
    tsr_close(reader);
    tsr.bytes[tile] = type;
    tsr.count = end;
    static const char *const some[] = {"one.dcm", NULL};
    check_names(&tsr, 2, some);
    tsr_buffer_free(&tsr);
    for (int i = 0; i < 3; i++) free(originals[i].data);
}

/* Metadata of several pieces, one of which is damaged: reading it fails again and again, and what stands behind it
 * keeps its place. */
static void check_damaged_piece(void)
{
    enum { COUNT = 10000000, PIECE = 1 << 22, PART = 1000 };
    struct bytes original = {must(malloc(COUNT)), COUNT};
    uint8_t got[PART];
    size_t count;
    uint32_t seed = 1;
    for (size_t i = 0; i < COUNT; i++) original.data[i] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
    struct tsr_buffer tsr = compress_bytes(engine, original.data, COUNT, NULL);
    tsr.bytes[PIECE + PIECE / 2] ^= 1;
    struct tsr_reader *reader = open_bytes(tsr.bytes, tsr.count, TSR_CONTENT_TSR);
    for (int i = 0; i < 3; i++) {
        FAILS(TSR_ERROR_CORRUPT, tsr_read_original(reader, 0, PIECE + 10, got, PART, &count, &error));
        FAILS(TSR_ERROR_CORRUPT, tsr_read_original(reader, 0, COUNT - PART, got, PART, &count, &error));
        DO(tsr_read_original(reader, 0, 10, got, PART, &count, &error));
        CHECK(count == PART && memcmp(got, original.data + 10, PART) == 0, "the piece before a damaged one");
    }
    tsr_close(reader);
    tsr_buffer_free(&tsr);
    free(original.data);
}

/* ---- At once ---------------------------------------------------------------------------------------------- */

/* A source whose reads wait for each other: each of two frame reads is in it before either goes on. */
struct meeting {
    struct tsr_buffer tsr;
    pthread_mutex_t lock;
    pthread_cond_t change;
    bool is_on;
    int inside;
};

struct visitor {
    struct meeting *meeting;
    struct tsr_reader *reader;
    uint32_t member, frame;
    struct bytes raster;
    bool is_counted;
};

static _Thread_local struct visitor *visiting;

static int64_t read_together(void *context, uint64_t offset, void *bytes, size_t count)
{
    struct meeting *const m = context;
    pthread_mutex_lock(&m->lock);
    if (m->is_on && visiting && !visiting->is_counted) {
        visiting->is_counted = true;
        m->inside++;
        pthread_cond_broadcast(&m->change);
    }
    while (m->is_on && m->inside < 2) pthread_cond_wait(&m->change, &m->lock); /* for ever, where reads take turns */
    pthread_mutex_unlock(&m->lock);
    memcpy(bytes, m->tsr.bytes + offset, count);
    return (int64_t)count;
}

static void *visit(void *context)
{
    struct tsr_error why;
    const struct tsr_region whole = {0, 0, 64, 48};
    struct visitor *const v = visiting = context;
    v->is_counted = false;
    const enum tsr_status status =
        v->frame % 2 ? tsr_read_region(v->reader, v->member, v->frame, &whole, v->raster.data, v->raster.count, 0, &why)
                     : tsr_read_frame(v->reader, v->member, v->frame, v->raster.data, v->raster.count, 0, &why);
    CHECK(status == TSR_OK, "%s", why.text);
    return NULL;
}

/* Two frames of one file, and of two files of a series, twice: the second time by what the first has left. */
static void check_at_once(struct tsr_buffer tsr, uint32_t member, const struct bytes *one, const struct bytes *other)
{
    enum { RASTER = 64 * 48 * 2 };
    struct meeting m = {.tsr = tsr, .lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER};
    const struct tsr_data_source source = tsr_from_calls(read_together, &m, tsr.count);
    uint8_t rasters[2][RASTER];
    struct tsr_reader *reader;
    DO(tsr_open(engine, &source, &reader, &error));
    struct visitor visitors[2] = {{&m, reader, 0, 4, {rasters[0], RASTER}, false},
                                  {&m, reader, member, 1, {rasters[1], RASTER}, false}};
    for (int turn = 0; turn < 2; turn++) {
        pthread_t threads[2];
        memset(rasters, 0, sizeof rasters);
        m.inside = 0;
        m.is_on = true;
        for (int i = 0; i < 2; i++) CHECK(!pthread_create(&threads[i], NULL, visit, &visitors[i]), "no thread");
        for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
        m.is_on = false;
        CHECK(memcmp(rasters[0], one->data + one->count - RASTER, RASTER) == 0, "frame 4 is another");
        CHECK(memcmp(rasters[1], other->data + other->count - 4 * RASTER, RASTER) == 0, "frame 1 is another");
    }
    tsr_close(reader);
}

static void check_frames_at_once(void)
{
    const struct bytes one = make_dicom(64, 48, 5, 3), other = make_dicom(64, 48, 5, 4);
    struct tsr_series_file files[] = {{tsr_from_memory(one.data, one.count), "one"},
                                      {tsr_from_memory(other.data, other.count), "other"}};
    struct tsr_buffer tsr = compress_bytes(engine, one.data, one.count, NULL);
    const struct tsr_data_sink sink = tsr_to_memory(&tsr);
    check_at_once(tsr, 0, &one, &one);
    tsr_buffer_free(&tsr);
    DO(tsr_compress_series(engine, files, 2, &sink, NULL, NULL, NULL, NULL, &error));
    check_at_once(tsr, 1, &one, &other);
    tsr_buffer_free(&tsr);
    free(one.data);
    free(other.data);
}

int main(void)
{
    engine = make_engine(2);
    struct bytes pgm = make_pnm(1300, 300, 1, 12, 1), ppm = make_pnm(500, 300, 3, 8, 2),
                 dicom = make_dicom(64, 48, 5, 3);
    struct tsr_compress_options lossy = TSR_COMPRESS_OPTIONS;
    lossy.loss = TSR_LOSS_QP;
    lossy.qp_eighths = 24 * TSR_QP_UNIT;
    check_file(&pgm, pgm.count - 1300 * 300 * 2, NULL);
    check_file(&pgm, pgm.count - 1300 * 300 * 2, &lossy);
    check_file(&ppm, ppm.count - 500 * 300 * 3, NULL);
    check_file(&dicom, dicom.count - 64 * 48 * 5 * 2, NULL);
    check_layouts();
    check_series();
    check_damaged_piece();
    check_lost();
    check_frames_at_once();
    free(pgm.data);
    free(ppm.data);
    free(dicom.data);
    tsr_engine_destroy(engine);
    return 0;
}
