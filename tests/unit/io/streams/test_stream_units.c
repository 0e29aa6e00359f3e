/* Units: kinds of them, and files that lie about them (io/recipe/unit.h). recipe/ENCAPSULATED.md 2.
 * usage: test_stream_units FOLDER, that of the golden files */
#include "tests/unit/io/one_engine.h"

#include "io/recipe/unit.h"

static const char *golden;

/* A golden file: frames of lossy JPEG, of which one cannot be packed; or frames of RLE, of which one is a unit. */
static struct bytes file_of(const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.tsr", golden, name);
    return read_bytes(path);
}

static struct sections sections_of(const char *name)
{
    const struct bytes file = file_of(name);
    const struct sections s = split(file);
    free(file.data);
    return s;
}

/* Restores a file, and reads each frame of it. */
static enum tsr_status restored(struct bytes file)
{
    struct bytes made;
    bool damaged;
    const enum tsr_status status = restore_bytes(engine, file.data, file.size, &made, &damaged);
    free(made.data);
    free(file.data);
    return status;
}

static void expect_status(struct sections *s, enum tsr_status wanted, const char *what)
{
    const enum tsr_status status = restored(join(s));
    expect(status == wanted, "%s: %s", what, tsr_status_name(status));
    free_sections(s);
}

enum { UNIT = TSR_SECTION_UNIT, FRAME = TSR_SECTION_FRAME, TILE = TSR_SECTION_TILE };

TEST(golden_files)
{
    static const struct {
        const char *name;
        int units, kind; /* of the first unit, or of the one with a fault */
    } files[] = {{"jpeg_frames", 5, TSR_UNIT_JPEG},
                 {"stream_bad_frame", 1, TSR_UNIT_BYTES},
                 {"fault_frames", 5, TSR_UNIT_FAULTY_JPEG},
                 {"alike_frames", 4, TSR_UNIT_HEADED}};
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        struct sections s = sections_of(files[i].name);
        const int fault = find_section(&s, UNIT, files[i].kind == TSR_UNIT_FAULTY_JPEG ? 3 : 0);
        assert_true(fault > 0 && find_section(&s, UNIT, files[i].units - 1) > 0);
        assert_int_equal(s.section[fault].body.data[1], files[i].kind);
        assert_int_equal(find_section(&s, UNIT, files[i].units), -1);
        expect_status(&s, TSR_OK, files[i].name);
    }
}

/* Bodies of a unit: of frame 0 of JPEG, or of frame 1 of RLE. */
TEST(lies_in_bodies)
{
    static const struct {
        const char *what;
        size_t size; /* before the rest of the body, which stands there if has_rest is set */
        uint8_t bytes[12];
        bool has_rest;
        enum tsr_status status;
    } cases[] = {
        {"no kind", 0, {0}, false, TSR_ERROR_CORRUPT},
        {"kind 5", 1, {5}, true, TSR_ERROR_VERSION},
        {"kind 255", 1, {255}, true, TSR_ERROR_VERSION},
        {"other bytes", 3, {0, 1, 2}, false, TSR_ERROR_CORRUPT},
        {"zstd without bytes", 2, {1, 0}, false, TSR_ERROR_CORRUPT},
        {"zstd without a size", 1, {1}, false, TSR_ERROR_CORRUPT},
        {"zstd of 2^48 bytes", 8, {1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40}, true, TSR_ERROR_CORRUPT},
        {"no zstd", 2, {1, 100}, true, TSR_ERROR_CORRUPT},
        {"no packed JPEG", 1, {2}, false, TSR_ERROR_CORRUPT},
        {"packed JPEG of 2^39 bytes", 8, {2, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40, 0}, true, TSR_ERROR_CORRUPT},
        {"packed JPEG that is none", 6, {2, 40, 0, 30, 2, 7}, true, TSR_ERROR_CORRUPT},
        {"packed JPEG with a fault, without a size", 1, {3}, false, TSR_ERROR_CORRUPT},
        {"packed JPEG with a fault, of no bytes", 2, {3, 0}, true, TSR_ERROR_CORRUPT},
        {"packed JPEG with a fault, longer than the unit", 5, {3, 0xff, 0xff, 0xff, 0x7f}, true, TSR_ERROR_CORRUPT},
        {"packed JPEG with a fault that is none", 9, {3, 5, 40, 0, 30, 2, 7, 1, 2}, true, TSR_ERROR_CORRUPT},
        {"a shared head of unknown size", 1, {4}, false, TSR_ERROR_CORRUPT},
        {"most of the shared head", 2, {4, 1}, true, TSR_ERROR_CORRUPT},
        {"more than the shared head", 3, {4, 0xff, 0x7f}, true, TSR_ERROR_CORRUPT},
        {"2^60 less than the shared head",
         10,
         {4, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10},
         true,
         TSR_ERROR_CORRUPT},
    };
    for (int i = 0; i < 2; i++)
        for (size_t c = 0; c < COUNT_OF(cases); c++) {
            struct sections s = sections_of(i == 0 ? "jpeg_frames" : "stream_bad_frame");
            const int at = find_section(&s, UNIT, 0);
            const struct bytes old = s.section[at].body;
            struct bytes body = copy_bytes(old.data, 1); /* the frame's number */
            append(&body, cases[c].bytes, cases[c].size);
            if (cases[c].has_rest) append(&body, old.data + 2, old.size - 2);
            replace_body(&s, at, body.data, body.size);
            free(body.data);
            expect_status(&s, cases[c].status, cases[c].what);
        }
}

/* Units at other places. */
TEST(lies_of_places)
{
    for (int i = 0; i < 9; i++) {
        struct sections s = sections_of(i < 4 ? "jpeg_frames" : "stream_bad_frame");
        const int at = find_section(&s, UNIT, 0);
        const struct bytes body = copy_bytes(s.section[at].body.data, s.section[at].body.size);
        if (i == 0) s.section[at].body.data[0] = 1; /* another frame's number */
        if (i == 1) remove_section(&s, at);
        if (i == 2) insert_section(&s, at, UNIT, body.data, body.size);
        if (i == 3 || i == 4) s.section[at].type = FRAME;
        if (i == 5) s.section[at].type = TILE;
        if (i == 6) insert_section(&s, at + 1, TILE, "\1\0x", 3);
        if (i == 7) insert_section(&s, find_section(&s, FRAME, 0) + 1, UNIT, "\0\0x", 3); /* of a frame that is coded */
        if (i == 8) insert_section(&s, find_section(&s, FRAME, 0), UNIT, "\0\0x", 3);
        free(body.data);
        char what[16];
        snprintf(what, sizeof what, "case %d", i);
        expect_status(&s, TSR_ERROR_CORRUPT, what);
    }
}

/* Headers of other files. */
TEST(lies_in_headers)
{
    static const struct tsr_coding coding = {.path = TSR_PATH_PREDICT};
    struct rng r = {5};
    for (int i = 0; i < 2; i++) { /* the stream kind is that of the other file */
        struct sections s = sections_of(i == 0 ? "jpeg_frames" : "stream_bad_frame");
        struct tsr_header header;
        uint8_t body[TSR_HEADER_LIMIT];
        assert_int_equal(tsr_get_header(s.section[0].body.data, s.section[0].body.size, &header, NULL), TSR_OK);
        header.parameters[0] = i == 0 ? TSR_NODE_RLE : TSR_STREAMS_OF_UNITS;
        header.shared_head_size = 0;
        replace_body(&s, 0, body, tsr_put_header(body, &header));
        expect_status(&s, TSR_ERROR_CORRUPT, "another kind of streams");
    }
    for (size_t i = 0; i < 3; i++) { /* the shared head */
        struct sections s = sections_of("jpeg_frames");
        struct tsr_header header;
        uint8_t body[TSR_HEADER_LIMIT];
        assert_int_equal(tsr_get_header(s.section[0].body.data, s.section[0].body.size, &header, NULL), TSR_OK);
        assert_true(header.shared_head_size > 8);
        if (i == 0) header.shared_head_size--;
        if (i == 1) memcpy(header.shared_head, "\xff\xff\xff\x7f", 4); /* of 2^28 bytes */
        if (i == 2) header.shared_head[header.shared_head_size++] = 0;
        replace_body(&s, 0, body, tsr_put_header(body, &header));
        expect_status(&s, TSR_ERROR_CORRUPT, "another shared head");
    }
    const struct bytes pgm = make_pgm(&r, 300, 500, 255), tsr = compress_bytes(engine, pgm, &coding);
    struct sections s = split(tsr);
    const int frame = find_section(&s, FRAME, 0);
    while (find_section(&s, TILE, 0) >= 0) remove_section(&s, find_section(&s, TILE, 0));
    s.section[frame].type = UNIT;
    expect_status(&s, TSR_ERROR_CORRUPT, "a unit in a PGM");
    free(pgm.data);
    free(tsr.data);
}

/* A proof says what looked damaged, in at most 159 bytes, where each frame is a unit. */
TEST(lies_in_proofs)
{
    static const struct {
        const char *name;
        size_t more;
        enum tsr_status status;
    } cases[] = {{"jpeg_frames", 1, TSR_OK},
                 {"jpeg_frames", 159, TSR_OK},
                 {"jpeg_frames", 160, TSR_ERROR_CORRUPT},
                 {"stream_bad_frame", 1, TSR_ERROR_CORRUPT}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct sections s = sections_of(cases[i].name);
        const int at = find_section(&s, TSR_SECTION_PROOF, 0);
        struct bytes body = copy_bytes(s.section[at].body.data, s.section[at].body.size);
        for (size_t k = 0; k < cases[i].more; k++) append(&body, "x", 1);
        replace_body(&s, at, body.data, body.size);
        free(body.data);
        expect_status(&s, cases[i].status, cases[i].name);
    }
}

/* Any other bytes: they are refused, and nothing breaks. */
TEST(noise)
{
    struct rng r = {77};
    static const char *const names[] = {"jpeg_frames", "stream_bad_frame", "fault_frames", "alike_frames"};
    for (int i = 0; i < 1200; i++) {
        struct sections s = sections_of(names[i % 4]);
        struct bytes *const body = &s.section[find_section(&s, UNIT, i % 4 == 2 ? 3 : 0)].body;
        for (uint32_t n = 1 + rng_below(&r, 4); n > 0; n--)
            body->data[1 + rng_below(&r, (uint32_t)body->size - 1)] = (uint8_t)rng_next(&r);
        const enum tsr_status status = restored(join(&s));
        expect(status == TSR_OK || status == TSR_ERROR_CORRUPT || status == TSR_ERROR_VERSION, "trial %d: %s", i,
               tsr_status_name(status));
        free_sections(&s);
    }
}

/* What is made of a stream, and comes back. */
TEST(kinds)
{
    struct tsr_header header = {.recipe = TSR_RECIPE_ENCAPSULATED,
                                .image = {.columns = 64, .rows = 64, .frames = 2, .components = 1, .bits_allocated = 8},
                                .parameters = {TSR_STREAMS_OF_UNITS},
                                .parameter_count = 1};
    struct rng r = {3};
    uint8_t stream[3000];
    for (int i = 0; i < 60; i++) {
        const size_t size = i < 20 ? (size_t)i : rng_below(&r, sizeof stream);
        struct tsr_bytes unit = {.limit = SIZE_MAX / 4}, back = {.limit = SIZE_MAX / 4};
        enum tsr_unit_kind kind;
        for (size_t k = 0; k < size; k++) stream[k] = (uint8_t)(i % 2 ? k / 50 : rng_next(&r));
        assert_int_equal(tsr_unit_make(&header, stream, size, &unit, &kind, NULL), TSR_OK);
        assert_true(unit.size <= size + 1 && kind != TSR_UNIT_JPEG);
        if (TSR_WITH_ZSTD && size > 200) assert_int_equal(kind, i % 2 ? TSR_UNIT_ZSTD : TSR_UNIT_BYTES);
        assert_int_equal(tsr_unit_open(&header, unit.bytes, unit.size, &back, NULL), TSR_OK);
        assert_true(back.size == size && (size == 0 || memcmp(back.bytes, stream, size) == 0));
        tsr_bytes_free(&unit);
        tsr_bytes_free(&back);
    }
}

/* Streams that begin alike, but for the last. */
TEST(shared_heads)
{
    struct tsr_header header = {.recipe = TSR_RECIPE_ENCAPSULATED,
                                .image = {.columns = 64, .rows = 64, .frames = 2, .components = 1, .bits_allocated = 8},
                                .parameters = {TSR_STREAMS_OF_UNITS},
                                .parameter_count = 1};
    struct rng r = {4};
    uint8_t streams[4][900];
    for (int i = 0; i < 4; i++)
        for (size_t k = 0; k < sizeof streams[0]; k++)
            streams[i][k] = i > 0 && k < 200 ? streams[0][k] : (uint8_t)rng_next(&r);
    for (size_t k = 150; k < 200; k++) streams[2][k] ^= 1;
    streams[3][3] ^= 1;
    const struct tsr_bytes two[2] = {{.bytes = streams[0], .size = 900}, {.bytes = streams[1], .size = 900}};
    tsr_unit_share_head(&two[0], &two[1], true, &header);
    assert_true(header.shared_head_size >= 200 && header.shared_head_size < 220);
    for (int i = 0; i < 4; i++) {
        const size_t left_out[4] = {200, 200, 150, 0};
        struct tsr_bytes unit = {.limit = SIZE_MAX / 4}, back = {.limit = SIZE_MAX / 4};
        enum tsr_unit_kind kind;
        assert_int_equal(tsr_unit_make(&header, streams[i], 900, &unit, &kind, NULL), TSR_OK);
        assert_int_equal(kind, left_out[i] > 0 ? TSR_UNIT_HEADED : TSR_UNIT_BYTES);
        assert_int_equal(unit.size, 900 + 1 - left_out[i] + (left_out[i] > 0));
        assert_int_equal(tsr_unit_open(&header, unit.bytes, unit.size, &back, NULL), TSR_OK);
        assert_true(back.size == 900 && memcmp(back.bytes, streams[i], 900) == 0);
        tsr_bytes_free(&unit);
        tsr_bytes_free(&back);
    }
    tsr_unit_share_head(&two[0], &(struct tsr_bytes){.bytes = streams[3], .size = 900}, true, &header);
    assert_int_equal(header.shared_head_size, 0); /* three bytes are too few */
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_files),    cmocka_unit_test(lies_in_bodies), cmocka_unit_test(lies_of_places),
        cmocka_unit_test(lies_in_headers), cmocka_unit_test(noise),          cmocka_unit_test(kinds),
        cmocka_unit_test(shared_heads),    cmocka_unit_test(lies_in_proofs),
    };
    if (argc != 2) return 2;
    golden = argv[1];
    return cmocka_run_group_tests(tests, create_engine, destroy_engine);
}
