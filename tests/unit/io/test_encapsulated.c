/* Encapsulated pixel data (io/formats/dicom/encapsulated_source.c): which fragments are a frame's, and files that say
 * so badly; and back (io/recipe/make.c). Frames have 4 x 4 samples of 8 bits. FORMAT.md 4.4, PS3.5 A.4. */
#include "in_memory.h"
#include "tests/unit/leaves.h"
#include "io/formats/dicom/encapsulated_source.h"
#include "io/nodes/node.h"

enum { SIDE = 4, SAMPLES = SIDE * SIDE, FRAMES = 4, BEFORE = 10 };

/* ---- Streams and files ------------------------------------------------------------------------------------- */

/* A stream of RLE: one segment, a literal for each row. The samples are seed, seed + 1, ... */
static struct bytes rle_of(int seed)
{
    uint8_t head[64] = {1, 0, 0, 0, 64};
    struct bytes stream = copy_bytes(head, sizeof head);
    for (int row = 0; row < SIDE; row++) {
        uint8_t packet[1 + SIDE] = {SIDE - 1};
        for (int i = 0; i < SIDE; i++) packet[1 + i] = (uint8_t)(seed + row * SIDE + i);
        append(&stream, packet, sizeof packet);
    }
    return stream;
}

/* The example of ITU-T T.87, H.3, and a black image: runs alone. */
static const uint8_t example[] = {0xff, 0xd8, 0xff, 0xf7, 0x00, 0x0b, 0x08, 0x00, 0x04, 0x00, 0x04, 0x01,
                                  0x01, 0x11, 0x00, 0xff, 0xda, 0x00, 0x08, 0x01, 0x01, 0x00, 0x00, 0x00,
                                  0x00, 0xc0, 0x00, 0x00, 0x6c, 0x80, 0x20, 0x8e, 0x01, 0xc0, 0x00, 0x00,
                                  0x57, 0x40, 0x00, 0x00, 0x6e, 0xe6, 0x00, 0x00, 0x01, 0xbc, 0x18, 0x00,
                                  0x00, 0x05, 0xd8, 0x00, 0x00, 0x91, 0x60, 0xff, 0xd9, 0x00};
static const uint8_t example_samples[SAMPLES] = {0, 0, 90, 74, 68, 50, 43, 205, 64, 145, 145, 145, 100, 145, 145, 145};
static const uint8_t black[] = {0xff, 0xd8, 0xff, 0xf7, 0x00, 0x0b, 0x08, 0x00, 0x04, 0x00,
                                0x04, 0x01, 0x01, 0x11, 0x00, 0xff, 0xda, 0x00, 0x08, 0x01,
                                0x01, 0x00, 0x00, 0x00, 0x00, 0xff, 0x40, 0xff, 0xd9, 0x00};

static void samples_of(int kind, int frame, uint8_t samples[SAMPLES])
{
    memset(samples, 0, SAMPLES);
    for (int i = 0; i < SAMPLES && kind == 0; i++) samples[i] = (uint8_t)(10 * frame + i);
    if (kind != 0 && frame % 2 == 0) memcpy(samples, example_samples, SAMPLES);
}

static struct bytes stream_of(int kind, int frame)
{
    uint8_t samples[SAMPLES];
    samples_of(kind, frame, samples);
    if (kind == TSR_NODE_UNCOMPRESSED) return copy_bytes(samples, SAMPLES);
    if (kind == 0) return rle_of(10 * frame);
    return frame % 2 ? copy_bytes(black, sizeof black) : copy_bytes(example, sizeof example);
}

static struct tsr_image image_of(uint32_t frames)
{
    return (struct tsr_image){.columns = SIDE,
                              .rows = SIDE,
                              .frames = frames,
                              .components = 1,
                              .bits_allocated = 8,
                              .bits_stored = 8,
                              .high_bit = 7};
}

static void put_u32(struct bytes *b, uint32_t value)
{
    const uint8_t word[4] = {(uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16), (uint8_t)(value >> 24)};
    append(b, word, sizeof word);
}

static void put_item(struct bytes *file, const void *bytes, size_t size, uint32_t said)
{
    append(file, "\xfe\xff\x00\xe0", 4);
    put_u32(file, said);
    append(file, bytes, size);
}

/* A file to be made: the fragments of each frame are as long as said, and the last one has the rest of the stream. */
struct plan {
    int kind, frames;
    int fragments[FRAMES]; /* of a frame; 0: one */
    size_t first;          /* the size of each fragment but a frame's last */
    uint32_t table[8];     /* offsets */
    int table_count;
};

static struct bytes file_of(const struct plan *plan)
{
    uint8_t table[32];
    struct bytes file = copy_bytes("0123456789", BEFORE);
    for (int i = 0; i < 4 * plan->table_count; i++) table[i] = (uint8_t)(plan->table[i / 4] >> i % 4 * 8);
    put_item(&file, table, 4 * (size_t)plan->table_count, 4 * (uint32_t)plan->table_count);
    for (int f = 0; f < plan->frames; f++) {
        struct bytes stream = stream_of(plan->kind, f);
        size_t at = 0;
        for (int i = 1; i < plan->fragments[f]; i++, at += plan->first)
            put_item(&file, stream.data + at, plan->first, (uint32_t)plan->first);
        put_item(&file, stream.data + at, stream.size - at, (uint32_t)(stream.size - at));
        free(stream.data);
    }
    return file;
}

static void put_end(struct bytes *file)
{
    append(file, "\xfe\xff\xdd\xe0\0\0\0\0", 8);
}

/* ---- Opening ------------------------------------------------------------------------------------------------ */

/* A copy that ends where the file does, so that the sanitizer sees each byte read behind it. */
struct opened {
    uint8_t *file;
    size_t size;
    struct tsr_input *input;
    struct tsr_source *source;
    struct tsr_error error;
    enum tsr_status status;
};

static void open_file(struct opened *o, struct bytes file, const struct tsr_image *image, int kind)
{
    *o = (struct opened){.file = must(malloc(file.size + !file.size)), .size = file.size};
    memcpy(o->file, file.data, file.size);
    o->input = must(tsr_input_from_memory(o->file, o->size, "encapsulated"));
    o->status = tsr_encapsulated_open(o->input, image, BEFORE, tsr_raster_node(kind), false, &o->source, &o->error);
}

static void close_file(struct opened *o)
{
    if (o->source) tsr_source_close(o->source);
    tsr_input_close(o->input);
    free(o->file);
}

static struct bytes blob_of(struct tsr_source *source, enum tsr_blob blob)
{
    struct bytes bytes = {must(malloc((size_t)source->blob_size[blob] + 1)), (size_t)source->blob_size[blob]};
    assert_int_equal(tsr_source_read_blob(source, blob, 0, bytes.data, bytes.size, NULL), TSR_OK);
    return bytes;
}

/* The number of fragments that each frame's record has. */
static void check_records(struct bytes residues, const struct plan *plan)
{
    struct tsr_cursor c = {residues.data, residues.size, 0, false};
    for (int f = 0; f < plan->frames; f++) {
        const uint64_t wanted = plan->fragments[f] ? (uint64_t)plan->fragments[f] : 1, count = tsr_get_varint(&c);
        expect(count == wanted, "frame %d has %llu fragments, not %llu", f, (unsigned long long)count,
               (unsigned long long)wanted);
        for (uint64_t i = 1; i < count; i++) assert_int_equal(tsr_get_varint(&c), plan->first);
        const uint64_t size = tsr_get_varint(&c);
        assert_true(size == 0 || tsr_get_bytes(&c, (size_t)size));
    }
    assert_true(!c.bad && c.at == c.size);
}

static char said[1024]; /* by the last restore */

/* Restores a file from its parts. Any error but TSR_ERROR_CORRUPT fails the test. */
static enum tsr_status restore(const struct tsr_header *header, struct bytes prefix, struct bytes residues,
                               const uint8_t *rasters, size_t raster_bytes, struct bytes suffix, struct bytes *file)
{
    struct tsr_output *output = must(tsr_output_to_memory());
    struct tsr_error error = {0};
    struct test_leaves leaves = {
        .blob = {{prefix.data, prefix.size, 0}, {suffix.data, suffix.size, 0}, {residues.data, residues.size, 0}},
        .step = 3,
        .rasters = rasters,
        .raster_bytes = raster_bytes,
        .frames = header->image.frames};
    tsr_output_limit(output, 1 << 20);
    const enum tsr_status status = make_of(&leaves, header, output, &error);
    expect(status == TSR_OK || (status == TSR_ERROR_CORRUPT && error.text[0]), "%s: %s", tsr_status_name(status),
           error.text);
    snprintf(said, sizeof said, "%s", error.text);
    if (file) *file = bytes_of(output);
    tsr_output_close(output);
    return status;
}

/* The file becomes the frames of the plan in the fragments of the plan, and comes back. */
static void check_file(const char *what, const struct plan *plan, struct bytes file, size_t suffix_size)
{
    struct opened o;
    uint8_t raster[FRAMES * SAMPLES], wanted[SAMPLES];
    const struct tsr_image image = image_of((uint32_t)plan->frames);
    open_file(&o, file, &image, plan->kind);
    expect(o.status == TSR_OK, "%s: %s", what, o.error.text);
    for (int f = plan->frames; f-- > 0;) {
        samples_of(plan->kind, f, wanted);
        assert_int_equal(tsr_source_read_frame(o.source, (uint32_t)f, raster + f * SAMPLES, NULL), TSR_OK);
        expect(memcmp(raster + f * SAMPLES, wanted, SAMPLES) == 0, "%s: frame %d has other samples", what, f);
    }
    struct bytes prefix = blob_of(o.source, TSR_BLOB_PREFIX), residues = blob_of(o.source, TSR_BLOB_RESIDUES),
                 suffix = blob_of(o.source, TSR_BLOB_SUFFIX), again;
    expect(suffix.size == suffix_size, "%s: a suffix of %zu bytes", what, suffix.size);
    expect(prefix.size == BEFORE + 8 + 4 * (size_t)plan->table_count, "%s: a prefix of %zu bytes", what, prefix.size);
    check_records(residues, plan);
    expect(restore(&o.source->header, prefix, residues, raster, SAMPLES, suffix, &again) == TSR_OK, "%s", what);
    expect(equal(again, file), "%s: another file comes back", what);
    free(prefix.data);
    free(residues.data);
    free(suffix.data);
    free(again.data);
    close_file(&o);
}

static void check_plan(const char *what, const struct plan *plan)
{
    struct bytes file = file_of(plan);
    put_end(&file);
    check_file(what, plan, file, 8);
    free(file.data);
}

static void check_refused(const char *what, struct bytes file, uint32_t frames, int kind, const char *why)
{
    struct opened o;
    const struct tsr_image image = image_of(frames);
    open_file(&o, file, &image, kind);
    expect(o.status == TSR_ERROR_CORRUPT && !o.source && strstr(o.error.text, why), "%s: %s, %s", what,
           tsr_status_name(o.status), o.error.text);
    close_file(&o);
}

static void check_refused_plan(const char *what, const struct plan *plan, const char *why)
{
    struct bytes file = file_of(plan);
    put_end(&file);
    check_refused(what, file, (uint32_t)plan->frames, plan->kind, why);
    free(file.data);
}

/* ---- Fragments of frames ------------------------------------------------------------------------------------ */

#define RLE 0
#define LS TSR_NODE_JPEG_LS
enum { RLE_SIZE = 64 + SIDE * (SIDE + 1) };

TEST(a_fragment_each)
{
    check_plan("one frame", &(struct plan){.kind = RLE, .frames = 1});
    check_plan("with a table", &(struct plan){RLE, 3, {1, 1, 1}, 0, {0, RLE_SIZE + 8, 2 * (RLE_SIZE + 8)}, 3});
    check_plan("JPEG-LS", &(struct plan){.kind = LS, .frames = 4});
    check_plan("an odd table", &(struct plan){RLE, 3, {1, 1, 1}, 0, {2 * (RLE_SIZE + 8), 1, UINT32_MAX}, 3});
    check_plan("a table of another size", &(struct plan){RLE, 2, {1, 1}, 0, {0, 0, 0, 0, 0}, 5});
}

TEST(equal_counts)
{
    check_plan("all of one frame", &(struct plan){RLE, 1, {7}, 12, {0}, 0});
    check_plan("two each", &(struct plan){RLE, 2, {2, 2}, 30, {0}, 0});
    check_plan("three each", &(struct plan){RLE, 4, {3, 3, 3, 3}, 20, {0}, 0});
    check_plan("a table that lies", &(struct plan){RLE, 2, {2, 2}, 30, {0, 1}, 2});
    check_refused_plan("other counts", &(struct plan){RLE, 2, {1, 3}, 20, {0}, 0}, "frame 2 cannot be made again");
    check_refused_plan("three for two", &(struct plan){RLE, 2, {1, 2}, 20, {0}, 0}, "nothing says which");
}

TEST(tables_of_offsets)
{
    check_plan("two and one", &(struct plan){RLE, 2, {2, 1}, 20, {0, RLE_SIZE + 16}, 2});
    check_plan("one and two", &(struct plan){RLE, 2, {1, 2}, 20, {0, RLE_SIZE + 8}, 2});
    check_plan("one and three", &(struct plan){RLE, 2, {1, 3}, 20, {0, RLE_SIZE + 8}, 2});
    check_plan("four frames",
               &(struct plan){RLE, 4, {1, 3, 1, 2}, 10, {0, RLE_SIZE + 8, 2 * RLE_SIZE + 32, 3 * RLE_SIZE + 40}, 4});
    check_plan("before markers", &(struct plan){LS, 2, {1, 2}, 20, {0, sizeof example + 8}, 2});
}

/* Three fragments of two frames, and tables that do not lead to their items. */
TEST(tables_that_lie)
{
    static const uint32_t tables[][2] = {
        {0, RLE_SIZE + 15},
        {0, RLE_SIZE + 17},
        {0, 0},
        {0, UINT32_MAX},
        {28, RLE_SIZE + 16},
        {8, RLE_SIZE + 24},
        {RLE_SIZE + 16, RLE_SIZE + 16},
        {RLE_SIZE + 16, 0},
        {0, 2 * RLE_SIZE + 24},
    };
    for (size_t i = 0; i < COUNT_OF(tables); i++)
        check_refused_plan("it lies", &(struct plan){RLE, 2, {2, 1}, 20, {tables[i][0], tables[i][1]}, 2},
                           "nothing says which");
    check_refused_plan("another fragment", &(struct plan){RLE, 2, {2, 1}, 20, {0, 28}, 2}, "cannot be made again");
    check_refused_plan("an offset less", &(struct plan){RLE, 2, {2, 1}, 20, {0}, 1}, "nothing says which");
    check_refused_plan("an offset more", &(struct plan){RLE, 2, {2, 1}, 20, {0, RLE_SIZE + 16, 0}, 3}, "nothing says");
    check_plan("markers instead", &(struct plan){LS, 2, {2, 1}, 20, {0, 1}, 2});
    check_refused_plan("rather than markers", &(struct plan){LS, 2, {2, 1}, 20, {0, 28}, 2}, "cannot be made again");
}

TEST(markers)
{
    check_plan("two and one", &(struct plan){LS, 2, {2, 1}, 2, {0}, 0});
    check_plan("one and two", &(struct plan){LS, 2, {1, 2}, 20, {0}, 0});
    check_plan("one and three", &(struct plan){LS, 2, {1, 3}, 10, {0}, 0});
    check_plan("all four", &(struct plan){LS, 4, {3, 1, 2, 4}, 7, {0}, 0});
    check_refused_plan("cut", &(struct plan){LS, 2, {2, 1}, 1, {0}, 0}, "nothing says which");
    /* a marker within a stream */
    struct bytes file = copy_bytes("0123456789", BEFORE);
    put_item(&file, "", 0, 0);
    put_item(&file, example, sizeof example, sizeof example);
    put_item(&file, example, 2, 2);
    put_item(&file, black, sizeof black, sizeof black);
    check_refused("three markers", file, 2, LS, "nothing says which");
    /* no marker first */
    file.data[BEFORE + 8 + 8] = 0;
    check_refused("the first has none", file, 2, LS, "nothing says which");
    free(file.data);
}

/* Frames of samples end with the fragment that completes them. */
TEST(sizes)
{
    static const struct {
        uint32_t size[3];
        bool is_told;
    } cases[] = {{{SAMPLES, 8, 8}, true}, {{8, 8, SAMPLES}, true},      {{SAMPLES, SAMPLES - 1, 1}, true},
                 {{8, 8, 15}, false},     {{SAMPLES + 4, 8, 4}, false}, {{SAMPLES, SAMPLES, SAMPLES}, false},
                 {{4, 4, SAMPLES}, false}};
    enum { RAW = TSR_NODE_UNCOMPRESSED };
    check_plan("one each", &(struct plan){.kind = RAW, .frames = 4});
    check_plan("two and one", &(struct plan){RAW, 2, {2, 1}, 6, {0}, 0});
    check_plan("one and three", &(struct plan){RAW, 2, {1, 3}, 5, {0}, 0});
    check_plan("all four", &(struct plan){RAW, 4, {3, 1, 2, 4}, 4, {0}, 0});
    check_plan("by offset", &(struct plan){RAW, 2, {1, 2}, 8, {0, SAMPLES + 8}, 2});
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        static const uint8_t bytes[2 * SAMPLES];
        struct bytes file = copy_bytes("0123456789", BEFORE);
        struct opened o;
        const struct tsr_image image = image_of(2);
        put_item(&file, "", 0, 0);
        for (int k = 0; k < 3; k++) put_item(&file, bytes, cases[i].size[k], cases[i].size[k]);
        put_end(&file);
        open_file(&o, file, &image, RAW);
        expect((o.status == TSR_OK) == cases[i].is_told, "case %zu: %s", i, o.error.text);
        close_file(&o);
        free(file.data);
    }
}

TEST(more_frames_than_fragments)
{
    static const uint32_t frames[] = {4, 5, 1 << 20, INT32_MAX};
    struct bytes file = file_of(&(struct plan){.kind = RLE, .frames = 3});
    for (size_t i = 0; i < COUNT_OF(frames); i++) check_refused("few", file, frames[i], RLE, "are in 3 fragments");
    file.size = BEFORE + 8;
    check_refused("none", file, 1, RLE, "its 1 frames are in 0 fragments");
    free(file.data);
}

/* ---- Sizes of items ------------------------------------------------------------------------------------------ */

TEST(empty_fragments)
{
    check_plan("in front", &(struct plan){RLE, 2, {3, 3}, 0, {0}, 0});
    check_plan("at the end", &(struct plan){RLE, 2, {2, 2}, RLE_SIZE, {0}, 0});
    check_plan("by offset", &(struct plan){RLE, 2, {2, 1}, 0, {0, RLE_SIZE + 16}, 2});
    check_plan("after a marker", &(struct plan){LS, 2, {1, 2}, sizeof black, {0}, 0});
    check_refused_plan("before a marker", &(struct plan){LS, 2, {2, 1}, 0, {0}, 0}, "nothing says which");
    struct bytes file = copy_bytes("0123456789", BEFORE);
    for (int i = 0; i < 4; i++) {
        put_item(&file, "", 0, 0);
        if (i > 0) check_refused("empty frames", file, 1, RLE, i > 1 ? "no stream" : "frame 1 cannot be made again");
        if (i > 0) check_refused("empty frames", file, (uint32_t)i, LS, "frame 1 cannot be made again");
    }
    free(file.data);
}

/* A file that ends anywhere: after the last fragment it is whole, and before that it is refused. */
TEST(truncated_items)
{
    static const struct plan plans[] = {
        {RLE, 2, {2, 2}, 30, {0}, 0}, {RLE, 2, {2, 1}, 20, {0, RLE_SIZE + 16}, 2}, {LS, 2, {1, 2}, 20, {0}, 0}};
    for (size_t i = 0; i < COUNT_OF(plans); i++) {
        struct bytes file = file_of(&plans[i]);
        const size_t end = file.size;
        put_end(&file);
        append(&file, "behind", 6);
        for (size_t size = BEFORE; size <= end + 14; size++) {
            const struct bytes cut = {file.data, size};
            if (size < end)
                check_refused("cut", cut, 2, plans[i].kind, "");
            else
                check_file("whole", &plans[i], cut, size - end); /* with or without a delimiter, and bytes behind it */
        }
        free(file.data);
    }
}

TEST(items_beyond_the_end)
{
    static const uint32_t sizes[] = {RLE_SIZE + 1, RLE_SIZE + 8, INT32_MAX, UINT32_MAX - 8, UINT32_MAX};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct bytes table = copy_bytes("0123456789", BEFORE), last = copy_bytes("0123456789", BEFORE);
        struct bytes stream = rle_of(0), more = file_of(&(struct plan){.kind = RLE, .frames = 1});
        put_item(&table, stream.data, stream.size, sizes[i]);
        check_refused("a table", table, 1, RLE, "no offset table");
        put_item(&last, "", 0, 0);
        put_item(&last, stream.data, stream.size, sizes[i]);
        check_refused("a fragment", last, 1, RLE, "its 1 frames are in 0 fragments");
        /* after the frames, it is part of the suffix */
        put_item(&more, stream.data, stream.size, sizes[i]);
        check_file("behind", &(struct plan){.kind = RLE, .frames = 1}, more, 8 + stream.size);
        free(table.data);
        free(last.data);
        free(stream.data);
        free(more.data);
    }
}

/* Items that stand behind another element are no fragments. */
TEST(bytes_behind)
{
    struct bytes file = file_of(&(struct plan){.kind = RLE, .frames = 2});
    append(&file, "\xfe\xff\x0d\xe0\0\0\0\0", 8); /* not an item */
    put_item(&file, "x", 1, 1);
    put_end(&file);
    check_file("an item behind", &(struct plan){.kind = RLE, .frames = 2}, file, 8 + 9 + 8);
    free(file.data);
}

/* Rasters of more than 64 MiB are not kept: frames are decoded again. */
TEST(rasters_that_are_not_kept)
{
    enum { LARGE = 4096, COUNT = 5, PACKETS = LARGE / 128 };
    const size_t raster_bytes = (size_t)LARGE * LARGE;
    struct tsr_image image = image_of(COUNT);
    struct opened o;
    image.columns = image.rows = LARGE;
    struct bytes file = copy_bytes("0123456789", BEFORE);
    put_item(&file, "", 0, 0);
    for (int f = 0; f < COUNT; f++) {
        struct bytes stream = copy_bytes("\1\0\0\0\100", 5);
        for (int i = 5; i < 64; i++) append(&stream, "", 1);
        for (int i = 0; i < LARGE * PACKETS; i++) append(&stream, (uint8_t[]){0x81, (uint8_t)(f + i % 3)}, 2);
        put_item(&file, stream.data, 100, 100);
        put_item(&file, stream.data + 100, stream.size - 100, (uint32_t)stream.size - 100);
        free(stream.data);
    }
    open_file(&o, file, &image, RLE);
    expect(o.status == TSR_OK, "%s", o.error.text);
    uint8_t *raster = must(malloc(raster_bytes));
    for (int f = COUNT; f-- > 0;) {
        assert_int_equal(tsr_source_read_frame(o.source, (uint32_t)f, raster, NULL), TSR_OK);
        for (size_t i = 0; i < raster_bytes; i += 128)
            expect(raster[i] == f + (int)(i / 128 % 3), "frame %d, sample %zu", f, i);
    }
    free(raster);
    free(file.data);
    close_file(&o);
    /* a small file with a large image */
    file = file_of(&(struct plan){.kind = RLE, .frames = 1});
    image = image_of(1);
    image.columns = image.rows = 3 * LARGE;
    open_file(&o, file, &image, RLE);
    expect(o.status == TSR_ERROR_CORRUPT && strstr(o.error.text, "too many for a file of its size"), "%s",
           o.error.text);
    close_file(&o);
    free(file.data);
}

/* ---- Records that are damaged ------------------------------------------------------------------------------- */

/* The parts of a good file, and a record for each frame. */
struct parts {
    struct tsr_header header;
    uint8_t rasters[FRAMES * SAMPLES];
    struct bytes prefix, residues, suffix, file;
};

static struct parts parts_of(const struct plan *plan)
{
    struct opened o;
    struct parts p = {.file = file_of(plan)};
    const struct tsr_image image = image_of((uint32_t)plan->frames);
    put_end(&p.file);
    open_file(&o, p.file, &image, plan->kind);
    expect(o.status == TSR_OK, "%s", o.error.text);
    p.header = o.source->header;
    p.prefix = blob_of(o.source, TSR_BLOB_PREFIX);
    p.residues = blob_of(o.source, TSR_BLOB_RESIDUES);
    p.suffix = blob_of(o.source, TSR_BLOB_SUFFIX);
    for (int f = 0; f < plan->frames; f++) samples_of(plan->kind, f, p.rasters + f * SAMPLES);
    close_file(&o);
    return p;
}

static void free_parts(struct parts *p)
{
    free(p->prefix.data);
    free(p->residues.data);
    free(p->suffix.data);
    free(p->file.data);
}

static enum tsr_status restore_with(const struct parts *p, struct bytes residues, struct bytes *file)
{
    return restore(&p->header, p->prefix, residues, p->rasters, SAMPLES, p->suffix, file);
}

/* One frame of RLE in two fragments: its record with other numbers. The stream's own residue stays. */
TEST(records_with_other_numbers)
{
    struct parts p = parts_of(&(struct plan){RLE, 1, {2}, 20, {0}, 0});
    const size_t own = p.residues.size - 3; /* 2 fragments, 20 bytes, the residue's size: a byte each */
    assert_true(own < 0x7f && p.residues.data[0] == 2 && p.residues.data[1] == 20 && p.residues.data[2] == own);
    const uint8_t size = (uint8_t)own;
    static const uint8_t none;
    static const char exceeds[] = "exceed its stream", no_residue[] = "no valid residue", left[] = "belong to no frame";
    const struct {
        uint8_t bytes[16];
        size_t count;
        const char *why; /* NULL: it is good */
    } heads[] = {
        {{2, 20, size}, 3, NULL},
        {{1, size}, 2, NULL},
        {{2, RLE_SIZE, size}, 3, NULL}, /* the last fragment is empty */
        {{3, 20, 30, size}, 4, NULL},
        {{2, RLE_SIZE + 1, size}, 3, exceeds},
        {{3, 60, 60, size}, 4, exceeds},
        {{3, RLE_SIZE, 1, size}, 4, exceeds},
        {{2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, size}, 11, exceeds},
        {{0, size}, 2, no_residue},
        {{0, 20, size}, 3, no_residue},
        {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, size}, 10, no_residue}, /* sizes are missing */
        {{2, 20, (uint8_t)(size + 1)}, 3, no_residue},
        {{2, 20, 0x7f}, 3, no_residue},
        {{2, 20, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, 11, no_residue},
        {{2, 20, (uint8_t)(size - 1)}, 3, ""}, /* a residue that is too short */
        {{2, 20, 0}, 3, ""},
    };
    for (size_t i = 0; i < COUNT_OF(heads); i++) {
        const char *const why = heads[i].why;
        struct bytes residues = copy_bytes(heads[i].bytes, heads[i].count);
        append(&residues, p.residues.data + 3, own);
        const enum tsr_status status = restore_with(&p, residues, NULL);
        expect(status == (why ? TSR_ERROR_CORRUPT : TSR_OK) && (!why || strstr(said, why)), "case %zu: %s", i, said);
        append(&residues, &none, 1);
        if (!why) expect(restore_with(&p, residues, NULL) && strstr(said, left), "case %zu, a byte more: %s", i, said);
        free(residues.data);
    }
    free_parts(&p);
}

/* The records end anywhere, a bit of them is another, or their frames have other samples. */
TEST(damaged_records_do_no_harm)
{
    static const struct plan plans[] = {{RLE, 3, {3, 3, 3}, 20, {0}, 0}, {LS, 4, {3, 1, 2, 4}, 7, {0}, 0}};
    struct rng r = {44};
    for (size_t i = 0; i < COUNT_OF(plans); i++) {
        struct parts p = parts_of(&plans[i]);
        struct bytes file;
        assert_int_equal(restore_with(&p, p.residues, &file), TSR_OK);
        assert_true(equal(file, p.file));
        free(file.data);
        for (size_t size = 0; size < p.residues.size; size++)
            expect(restore_with(&p, (struct bytes){p.residues.data, size}, NULL) == TSR_ERROR_CORRUPT,
                   "%zu of %zu bytes", size, p.residues.size);
        for (size_t bit = 0; bit < 8 * p.residues.size; bit++) {
            p.residues.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
            restore_with(&p, p.residues, NULL); /* bits of a stream's residue may mean nothing */
            p.residues.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        for (int trial = 0; trial < 2000; trial++) {
            struct bytes residues = copy_bytes(p.residues.data, p.residues.size);
            for (uint32_t n = 1 + rng_below(&r, 4); n > 0; n--)
                residues.data[rng_below(&r, (uint32_t)residues.size)] = (uint8_t)rng_next(&r);
            if (trial % 2) p.rasters[rng_below(&r, SAMPLES)] = (uint8_t)rng_next(&r);
            restore_with(&p, residues, NULL);
            free(residues.data);
        }
        p.header.image.frames++;
        expect(restore_with(&p, p.residues, NULL) == TSR_ERROR_CORRUPT, "a frame without a record");
        p.header.image.frames -= 2;
        expect(restore_with(&p, p.residues, NULL) == TSR_ERROR_CORRUPT, "a record without a frame");
        free_parts(&p);
    }
}

/* Headers that no encapsulated file has. */
TEST(wrong_headers)
{
    for (int i = 0; i < 8; i++) {
        struct tsr_recipe recipe;
        struct tsr_header header = {.recipe = TSR_RECIPE_ENCAPSULATED, .image = image_of(1), .parameter_count = 1};
        if (i == 1) header.parameter_count = 0;
        if (i == 2) header.parameter_count = 2;
        if (i == 3) header.image.big_endian = true;
        if (i == 4) header.image.swapped = true;
        if (i == 5) header.image.bits_allocated = header.image.bits_stored = 1;
        if (i == 5) header.parameters[0] = TSR_NODE_JPEG_LS;
        if (i >= 6) header.parameters[0] = (uint8_t)(i == 6 ? TSR_STREAMS_OF_UNITS + 1 : 255);
        const enum tsr_status status = tsr_recipe_of(&header, 0, &recipe, NULL);
        const enum tsr_status wanted = i == 0 ? TSR_OK : i < 6 ? TSR_ERROR_CORRUPT : TSR_ERROR_VERSION;
        expect(status == wanted, "case %d: %s", i, tsr_status_name(status));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fragment_each),
        cmocka_unit_test(equal_counts),
        cmocka_unit_test(tables_of_offsets),
        cmocka_unit_test(tables_that_lie),
        cmocka_unit_test(markers),
        cmocka_unit_test(sizes),
        cmocka_unit_test(more_frames_than_fragments),
        cmocka_unit_test(empty_fragments),
        cmocka_unit_test(truncated_items),
        cmocka_unit_test(items_beyond_the_end),
        cmocka_unit_test(bytes_behind),
        cmocka_unit_test(rasters_that_are_not_kept),
        cmocka_unit_test(records_with_other_numbers),
        cmocka_unit_test(damaged_records_do_no_harm),
        cmocka_unit_test(wrong_headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
