/* Several files in one (app/library/series/, io/container/container.h): every file comes back, and a file that is
 * whole and invalid is refused. FORMAT.md 3.7. */
#include "one_engine.h"
#include "tests/large_files.h"

#include <fcntl.h>

enum { FILES = 6 };

/* Files with small heads that are alike; three of them share a model. One is not an image, one is empty. */
static struct bytes originals[FILES];
static const char *const names[FILES] = {"a.pgm", "below/b.pgm", "below/c.pgm", "below/deeper/d", "e", "f.pgm"};
static struct bytes series;

/* A series holds the times of its files. */
static void set_time(const char *path)
{
    const struct timespec times[2] = {{1000000000, 1}, {1000000000, 1}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static struct bytes make_original(struct rng *r, int i)
{
    char comment[1200];
    struct bytes b = make_pgm(r, 40, 30, 255);
    if (i == 3) {
        free(b.data);
        return copy_bytes("this is no image at all", 23);
    }
    if (i == 4) {
        free(b.data);
        return copy_bytes("", 0);
    }
    /* A comment after P5 that is nearly the same in all of them. */
    size_t used = (size_t)snprintf(comment, sizeof comment, "P5\n");
    for (int k = 0; k < 30; k++)
        used += (size_t)snprintf(comment + used, sizeof comment - used, "#%d.%d\n", k * k * 7919, k == 17 ? i : 0);
    struct bytes with = copy_bytes(comment, used);
    append(&with, b.data + 3, b.size - 3);
    free(b.data);
    return with;
}

static enum tsr_status write_series(struct tsr_engine *by, const char *output, const struct tsr_series_file *files,
                                    uint32_t count, uint32_t *failed, struct tsr_error *error)
{
    const struct tsr_data_sink sink = overwritten(output);
    struct tsr_report report[2 * FILES] = {TSR_REPORT};
    uint64_t bytes, sum = 0;
    const enum tsr_status status = tsr_compress_series(by, files, count, &sink, NULL, report, &bytes, failed, error);
    for (uint32_t k = 0; k < count && status == TSR_OK; k++) {
        assert_true(report[k].verified && report[k].bytes_out > 0);
        sum += report[k].bytes_out;
    }
    if (status == TSR_OK) assert_true(sum < bytes);
    return status;
}

static int set_up(void **state)
{
    struct rng r = {73};
    struct tsr_series_file files[FILES];
    struct tsr_error error;
    uint32_t failed;
    char paths[FILES][128];
    if (create_engine(state) != 0 || make_folder(state) != 0) return -1;
    for (int i = 0; i < FILES; i++) {
        originals[i] = make_original(&r, i);
        snprintf(paths[i], sizeof paths[i], "%s/in%d", folder, i);
        write_bytes(paths[i], originals[i]);
        set_time(paths[i]);
        files[i] = (struct tsr_series_file){tsr_from_path(paths[i]), names[i]};
    }
    if (write_series(engine, path_in_folder("s.tsr"), files, FILES, &failed, &error) != TSR_OK || failed != FILES)
        return -1;
    series = read_bytes(path_in_folder("s.tsr"));
    empty_folder();
    return 0;
}

static int tear_down(void **state)
{
    for (int i = 0; i < FILES; i++) free(originals[i].data);
    free(series.data);
    remove_folder(state);
    return destroy_engine(state);
}

/* The outcome of each file of a series: TSR_OK if it is the right file. */
struct outcomes {
    enum tsr_status opened, file[2 * FILES];
    uint32_t count;
};

static struct outcomes restore_all(struct bytes file)
{
    struct outcomes o = {.count = 0};
    struct tsr_reader *s = NULL;
    struct tsr_error error = {0};
    struct tsr_report report;
    write_bytes(path_in_folder("s.tsr"), file);
    o.opened = open_series(engine, path_in_folder("s.tsr"), &s, &error);
    if (o.opened == TSR_OK) assert_non_null(s);
    o.count = s ? tsr_reader_members(s) : 0;
    assert_true(o.count <= COUNT_OF(o.file));
    for (uint32_t k = 0; k < o.count; k++) {
        o.file[k] = restore_member_path(s, k, path_in_folder("out"), &report, &error);
        if (o.file[k] == TSR_OK) {
            const struct bytes back = read_bytes(path_in_folder("out"));
            bool known = false;
            for (int i = 0; i < FILES; i++)
                known |= strcmp(tsr_reader_name(s, k), names[i]) == 0 && equal(back, originals[i]);
            expect(known, "file %u, called %s, is another", k, tsr_reader_name(s, k));
            free(back.data);
        } else {
            expect(error.status == o.file[k] && error.text[0] && !strstr(error.text, "(null)"), "'%s'", error.text);
        }
    }
    tsr_close(s);
    empty_folder();
    return o;
}

static uint32_t good_files(const struct outcomes *o)
{
    uint32_t good = 0;
    for (uint32_t k = 0; k < o->count; k++) good += o->file[k] == TSR_OK;
    return good;
}

static bool may_be(enum tsr_status status)
{
    return status == TSR_OK || status == TSR_ERROR_CORRUPT || status == TSR_ERROR_VERSION;
}

/* Joins, restores and frees the sections. Every file that is not good must be corrupt, or have something unknown. */
static struct outcomes try_sections(struct sections *s)
{
    const struct bytes file = join(s);
    const struct outcomes o = restore_all(file);
    for (uint32_t k = 0; k < o.count; k++) expect(may_be(o.file[k]), "file %u: %s", k, tsr_status_name(o.file[k]));
    expect(may_be(o.opened), "%s", tsr_status_name(o.opened));
    free(file.data);
    free_sections(s);
    return o;
}

/* ---- Names ------------------------------------------------------------------------------------------------ */

TEST(member_names)
{
    static const char *const good[] = {"a",    "a/b",      ".hidden",  "..a",     "a..",   "a/...", "a/.b/..c",
                                       " ",    "\xc3\xbc", "\x80\xff", "a\\b",    "-x",    "~",     "\n",
                                       "a\nb", "a\tb",     "\x7f",     "\x1b[2J", "a/\x01"};
    static const char *const bad[] = {"",    "/",    "/a",  "a/",   "a//b",  ".",     "..",
                                      "./a", "../a", "a/.", "a/..", "a/./b", "a/../b"};
    for (size_t i = 0; i < COUNT_OF(good); i++) expect(tsr_is_member_name(good[i], strlen(good[i])), "'%s'", good[i]);
    for (size_t i = 0; i < COUNT_OF(bad); i++) expect(!tsr_is_member_name(bad[i], strlen(bad[i])), "'%s'", bad[i]);
    assert_false(tsr_is_member_name("a\0b", 3));
    char *longest = must(malloc(TSR_NAME_LIMIT + 1));
    memset(longest, 'x', TSR_NAME_LIMIT + 1);
    assert_true(tsr_is_member_name(longest, TSR_NAME_LIMIT));
    assert_false(tsr_is_member_name(longest, TSR_NAME_LIMIT + 1));
    free(longest);
}

/* ---- Round trips ------------------------------------------------------------------------------------------ */

TEST(all_come_back)
{
    const struct outcomes o = restore_all(series);
    assert_true(o.opened == TSR_OK && o.count == FILES && good_files(&o) == FILES);
    struct sections s = split(series);
    const struct outcomes again = try_sections(&s);
    assert_int_equal(good_files(&again), FILES);
}

/* The same bytes with any number of threads. With more threads, files are ready before their turn. */
TEST(same_bytes)
{
    char paths[FILES][128];
    struct tsr_series_file files[FILES];
    struct tsr_error error;
    uint32_t failed;
    for (int i = 0; i < FILES; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/in%d", folder, i);
        write_bytes(paths[i], originals[i]);
        set_time(paths[i]);
        files[i] = (struct tsr_series_file){tsr_from_path(paths[i]), names[i]};
    }
    for (int threads = 2; threads <= 7; threads += 5) {
        struct tsr_engine *many = must(make_engine(TSR_ENGINE_CPU, threads));
        assert_int_equal(write_series(many, path_in_folder("s.tsr"), files, FILES, &failed, &error), TSR_OK);
        const struct bytes b = read_bytes(path_in_folder("s.tsr"));
        expect(equal(b, series), "%d threads: other bytes", threads);
        free(b.data);
        tsr_engine_destroy(many);
    }
    empty_folder();
}

/* Heads that are alike are stored as differences from the first one. */
TEST(blobs_behind_others)
{
    struct sections s = split(series);
    int behind = 0;
    for (int i = 0; i < s.count; i++)
        if (s.section[i].type == TSR_SECTION_BLOB && s.section[i].body.data[1] == TSR_BLOB_ZSTD_AFTER) {
            assert_true(s.section[i].body.size < 60);
            behind++;
        }
#if TSR_WITH_ZSTD
    assert_int_equal(behind, 3); /* the second picture, the third and the last; the first is the base */
#else
    assert_int_equal(behind, 0);
#endif
    free_sections(&s);
}

/* Which images share a model; a stack must be cut into the same tiles as each of its images. */
TEST(stacks)
{
    static const struct {
        uint32_t columns, rows;
        uint8_t components, bits;
        bool planar;
        struct tsr_coding coding;
        uint32_t limit;
    } cases[] = {
        {64, 64, 1, 16, false, {.effort = 5}, 32},
        {64, 64, 3, 8, false, {.effort = 5}, 32},
        {64, 64, 3, 8, true, {.effort = 5}, 0},
        {64, 64, 1, 16, false, {.effort = 5, .coder = TSR_CODER_CAVLC}, 0},
        {64, 64, 1, 16, false, {.effort = 9, .coder = TSR_CODER_RANS}, 32},
        {64, 64, 1, 16, false, {.path = TSR_PATH_TRANSFORM}, 0},
        {64, 64, 1, 16, false, {.lossy = true, .max_error = 1}, 0},
        {384, 274, 1, 16, false, {.effort = 5}, 19}, /* two tiles of 137 rows */
        {300, 433, 1, 16, false, {.effort = 5}, 0},  /* of 217 and 216 rows */
        {512, 512, 1, 16, false, {.effort = 5}, 0},
        {2, 65535, 1, 16, false, {.effort = 5}, 0},
        {5, 3, 1, 8, false, {.effort = 5}, 0}, /* of an odd number of bytes */
        {2, 3, 1, 8, false, {.effort = 5}, 32},
        {4, 4, 1, 8, false, {.effort = 5}, 32},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct tsr_image image = {.columns = cases[i].columns, .rows = cases[i].rows, .frames = 1};
        image.components = cases[i].components;
        image.bits_allocated = image.bits_stored = cases[i].bits;
        image.high_bit = (uint8_t)(cases[i].bits - 1);
        image.planar = cases[i].planar;
        const uint32_t limit = tsr_stack_limit(&image, &cases[i].coding);
        expect(limit == cases[i].limit, "case %zu: %u", i, limit);
        if (limit == 0) continue;
        const struct tsr_image stack = tsr_stack(&image, limit);
        assert_int_equal(tsr_check_image(&stack, NULL), TSR_OK);
        const struct tsr_tiling one = tsr_cut_tiles(&image, 1), all = tsr_cut_tiles(&stack, 1);
        expect(one.tile_width == all.tile_width && one.tile_height == all.tile_height, "case %zu: cut otherwise", i);
    }
}

/* Frames with the model of another frame, within a file: which models come back, and which are refused. */
TEST(models_of_others)
{
    enum { FRAMES = 6 };
    static const uint32_t distances[FRAMES] = {0, 1, 0, 1, 3, 5}; /* 0: a model of its own */
    static const int model_of[FRAMES] = {0, 0, 2, 2, -1, 0};      /* the fifth refers to a frame without a model */
    struct tsr_output *output = must(tsr_output_to_memory());
    struct tsr_container_writer *writer;
    struct tsr_container_reader *reader;
    struct tsr_header header;
    struct tsr_proof proof = {0};
    memset(&header, 0, sizeof header);
    header.recipe = TSR_RECIPE_SPLICE;
    header.coding.coder = TSR_CODER_HUFFMAN;
    header.image = (struct tsr_image){.columns = 1, .rows = 1, .frames = FRAMES, .components = 1};
    header.image.bits_allocated = header.image.bits_stored = 8;
    header.image.high_bit = 7;
    assert_int_equal(tsr_container_begin(output, &header, &writer, NULL), TSR_OK);
    for (int f = 0; f < FRAMES; f++) {
        const char model[2] = {'a', (char)('0' + f)};
        const struct tsr_piece piece = {model, 2};
        assert_int_equal(distances[f] ? tsr_container_put_frame_like(writer, distances[f], NULL)
                                      : tsr_container_put_frame(writer, model, 2, NULL),
                         TSR_OK);
        assert_int_equal(tsr_container_put_tile(writer, &piece, 1, NULL), TSR_OK);
    }
    assert_int_equal(tsr_container_end(writer, &proof, NULL), TSR_OK);
    tsr_container_writer_free(writer);
    struct tsr_input *input =
        must(tsr_input_from_memory(tsr_output_bytes(output), (size_t)tsr_output_size(output), "s"));
    assert_int_equal(tsr_container_open(input, &reader, NULL), TSR_OK);
    for (uint32_t f = FRAMES; f-- > 0;) {
        struct tsr_piece model, tile;
        uint8_t *buffer = must(malloc(tsr_container_frame_bytes(reader, f)));
        const enum tsr_status status = tsr_container_get_frame(reader, f, buffer, &model, &tile, NULL);
        expect(status == (model_of[f] < 0 ? TSR_ERROR_CORRUPT : TSR_OK), "frame %u: %s", f, tsr_status_name(status));
        if (status == TSR_OK) {
            const char wanted[2] = {'a', (char)('0' + model_of[f])}, own[2] = {'a', (char)('0' + f)};
            expect(model.size == 2 && memcmp(model.bytes, wanted, 2) == 0, "frame %u: another's model", f);
            expect(tile.size == 2 && memcmp(tile.bytes, own, 2) == 0, "frame %u: another's tile", f);
        }
        free(buffer);
    }
    tsr_container_close(reader);
    tsr_input_close(input);
    tsr_output_close(output);
}

static void remove_twins(struct sections *s)
{
    for (int at; (at = find_section(s, TSR_SECTION_TWIN, 0)) > 0;) remove_section(s, at);
}

TEST(wrong_distances)
{
    static const uint8_t bodies[][4] = {{0, 0}, {0, 2}, {0, 0xff, 1}, {0, 0x80, 2}, {1, 1}, {0, 1, 0}, {0}};
    static const size_t sizes[] = {2, 2, 3, 3, 2, 3, 1};
    struct sections s = split(series);
    assert_true(find_section(&s, TSR_SECTION_LIKE, 1) > 0); /* the second and third picture's, after the first one's */
    assert_int_equal(find_section(&s, TSR_SECTION_LIKE, 2), -1);
    free_sections(&s);
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        s = split(series);
        const int at = find_section(&s, TSR_SECTION_LIKE, 0);
        free(s.section[at].body.data);
        s.section[at].body = copy_bytes(bodies[i], sizes[i]);
        const struct outcomes o = try_sections(&s);
        expect(o.opened == TSR_OK && o.file[1] == TSR_ERROR_CORRUPT && good_files(&o) == FILES - 1, "case %zu", i);
    }
    /* The first frame of all, with the model of another. */
    s = split(series);
    remove_twins(&s);
    const int at = find_section(&s, TSR_SECTION_FRAME, 0);
    s.section[at].type = TSR_SECTION_LIKE;
    free(s.section[at].body.data);
    s.section[at].body = copy_bytes("\0\1", 2);
    const struct outcomes o = try_sections(&s);
    for (int k = 0; k < 3; k++) assert_int_equal(o.file[k], TSR_ERROR_CORRUPT);
    assert_int_equal(good_files(&o), FILES - 3);
}

/* A member that writes to the series' own output, and one that restarts in the middle of it. */
TEST(direct_members)
{
    struct tsr_output *output = must(tsr_output_to_memory());
    struct tsr_container_writer *writer, *member;
    struct tsr_container_reader *reader;
    struct tsr_header header, verbatim;
    struct tsr_proof proof = {.original_size = 100000};
    uint64_t bytes, payload_bytes;
    static uint8_t content[100000];
    struct rng r = {72};
    for (size_t i = 0; i < sizeof content; i++) content[i] = (uint8_t)rng_next(&r);
    memset(&header, 0, sizeof header);
    memset(&verbatim, 0, sizeof verbatim);
    header.recipe = TSR_RECIPE_SERIES;
    header.members = 2;
    verbatim.exact = true;
    assert_int_equal(tsr_container_begin(output, &header, &writer, NULL), TSR_OK);
    for (int i = 0; i < 2; i++) {
        const uint64_t before = tsr_output_size(output);
        const struct tsr_output_mark mark = tsr_output_mark(output);
        assert_int_equal(tsr_container_begin_member(output, &verbatim, &member, NULL), TSR_OK);
        assert_int_equal(tsr_container_put_frame(member, "left behind", 11, NULL), TSR_OK);
        tsr_container_writer_free(member);
        assert_int_equal(tsr_output_return(output, &mark, NULL), TSR_OK);
        assert_int_equal(tsr_container_begin_member(output, &verbatim, &member, NULL), TSR_OK);
        for (size_t at = 0; at < sizeof content; at += 25000)
            assert_int_equal(tsr_container_put_blob(member, TSR_BLOB_PREFIX, content + at, 25000, NULL), TSR_OK);
        assert_int_equal(tsr_container_add_member(writer, member, i ? "b" : "a", &proof, &bytes, &payload_bytes, NULL),
                         TSR_OK);
        assert_int_equal(tsr_output_size(output) - before, bytes);
        assert_true(payload_bytes < 100);
        tsr_container_writer_free(member);
    }
    assert_int_equal(tsr_container_end(writer, NULL, NULL), TSR_OK);
    tsr_container_writer_free(writer);
    struct tsr_input *input =
        must(tsr_input_from_memory(tsr_output_bytes(output), (size_t)tsr_output_size(output), "s"));
    assert_int_equal(tsr_container_open(input, &reader, NULL), TSR_OK);
    assert_int_equal(tsr_container_members(reader), 2);
    for (uint32_t k = 2; k-- > 0;) {
        uint64_t cursor = 0;
        size_t at = 0, size;
        const uint8_t *piece;
        assert_int_equal(tsr_container_choose(reader, k, NULL), TSR_OK);
        assert_string_equal(tsr_container_name(reader), k ? "b" : "a");
        for (;; at += size) {
            assert_int_equal(tsr_container_get_blob(reader, TSR_BLOB_PREFIX, &cursor, &piece, &size, NULL), TSR_OK);
            if (size == 0) break;
            assert_memory_equal(piece, content + at, size);
        }
        assert_int_equal(at, sizeof content);
    }
    assert_int_equal(tsr_container_choose(reader, 2, NULL), TSR_ERROR_USAGE);
    tsr_container_close(reader);
    tsr_input_close(input);
    tsr_output_close(output);
}

/* ---- What cannot be made ---------------------------------------------------------------------------------- */

TEST(refused_inputs)
{
    struct tsr_error error;
    uint32_t failed;
    write_bytes(path_in_folder("in"), originals[0]);
    char in[128], missing[128];
    snprintf(in, sizeof in, "%s", path_in_folder("in"));
    snprintf(missing, sizeof missing, "%s", path_in_folder("missing"));
    const struct {
        const char *file[3][2]; /* path and name */
        enum tsr_status status;
        uint32_t failed;
    } cases[] = {
        {{{in, "a"}, {in, "../b"}, {in, "c"}}, TSR_ERROR_USAGE, 1},
        {{{in, "a"}, {in, "b"}, {in, "a"}}, TSR_ERROR_EXISTS, 2},
        {{{in, "a"}, {in, "b"}, {in, "c/"}}, TSR_ERROR_USAGE, 2},
        {{{in, "a"}, {missing, "b"}, {in, "c"}}, TSR_ERROR_READ, 1},
        {{{in, "a"}, {in, "b"}, {folder, "c"}}, TSR_ERROR_READ, 2},
    };
    struct tsr_series_file files[3];
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        for (int k = 0; k < 3; k++)
            files[k] = (struct tsr_series_file){tsr_from_path(cases[i].file[k][0]), cases[i].file[k][1]};
        const enum tsr_status status = write_series(engine, path_in_folder("s.tsr"), files, 3, &failed, &error);
        expect(status == cases[i].status && failed == cases[i].failed, "case %zu: %s, file %u", i,
               tsr_status_name(status), failed);
        expect(count_files() == 1, "case %zu left files", i);
    }
    const struct tsr_data_sink sink = overwritten(path_in_folder("s.tsr"));
    struct tsr_compress_options compress = TSR_COMPRESS_OPTIONS;
    struct tsr_series_options options = TSR_SERIES_OPTIONS;
    struct tsr_report report = TSR_REPORT;
    compress.loss = TSR_LOSS_BYTES;
    compress.byte_limit = 100;
    options.compress = &compress;
    uint64_t bytes;
    assert_int_equal(tsr_compress_series(engine, files, 1, &sink, &options, &report, &bytes, &failed, &error),
                     TSR_ERROR_USAGE);
    assert_int_equal(tsr_compress_series(engine, files, 0, &sink, &options, &report, &bytes, &failed, &error),
                     TSR_ERROR_USAGE);
    empty_folder();
}

/* ---- Files that are whole and invalid ----------------------------------------------------------------------- */

TEST(each_section_removed)
{
    struct sections s = split(series);
    const int count = s.count;
    free_sections(&s);
    for (int i = 1; i < count; i++) {
        s = split(series);
        const uint8_t type = s.section[i].type;
        remove_twins(&s); /* they name sections by number */
        if (i < s.count) remove_section(&s, i);
        const struct outcomes o = try_sections(&s);
        if (type == TSR_SECTION_MEMBER)
            expect(o.opened == TSR_ERROR_CORRUPT, "section %d", i);
        else if (type == TSR_SECTION_TWIN)
            expect(o.opened == TSR_OK && good_files(&o) == FILES, "twin %d: %u good", i, good_files(&o));
        else /* files stay good, except those whose blobs need the section */
            expect(o.opened == TSR_OK && good_files(&o) < FILES && good_files(&o) >= 2, "section %d: %u good", i,
                   good_files(&o));
    }
}

TEST(each_section_twice)
{
    struct sections s = split(series);
    const int count = s.count, like = find_section(&s, TSR_SECTION_LIKE, 0);
    free_sections(&s);
    for (int i = 1; i < count; i++) {
        s = split(series);
        const uint8_t type = s.section[i].type;
        const uint32_t lost = i == like ? 2 : 1; /* the third picture's model is then one frame further away */
        const struct bytes body = copy_bytes(s.section[i].body.data, s.section[i].body.size);
        if (type != TSR_SECTION_TWIN) remove_twins(&s);
        insert_section(&s, i + 1, type, body.data, body.size);
        const struct outcomes o = try_sections(&s);
        expect(o.opened == TSR_ERROR_CORRUPT || good_files(&o) == FILES - lost, "section %d: %u good", i,
               good_files(&o));
        free(body.data);
    }
}

/* Sections at places where they may not stand. */
TEST(sections_out_of_place)
{
    static const uint8_t types[] = {'P', 'H', 'A', 0};
    struct sections s = split(series);
    const int count = s.count;
    free_sections(&s);
    for (size_t t = 0; t < COUNT_OF(types); t++) {
        for (int at = 1; at <= count; at++) {
            s = split(series);
            remove_twins(&s);
            insert_section(&s, at < s.count ? at : s.count, types[t], "\0\0\1x", 4);
            const struct outcomes o = try_sections(&s);
            expect(o.opened != TSR_OK || good_files(&o) == FILES - 1, "type %u at %d", types[t], at);
        }
    }
    /* A member in a file that is not a series. */
    static const struct tsr_coding coding = {.coder = TSR_CODER_HUFFMAN};
    struct bytes single = compress_bytes(engine, originals[0], &coding), restored;
    struct sections one = split(single);
    s = split(series);
    const int from = find_section(&s, TSR_SECTION_MEMBER, 0);
    for (int at = 1; at <= one.count; at++) {
        struct sections with = split(single);
        bool damaged;
        insert_section(&with, at, TSR_SECTION_MEMBER, s.section[from].body.data, s.section[from].body.size);
        const struct bytes file = join(&with);
        assert_int_equal(restore_bytes(engine, file.data, file.size, &restored, &damaged), TSR_ERROR_CORRUPT);
        free(file.data);
        free_sections(&with);
    }
    free_sections(&one);
    free_sections(&s);
    free(single.data);
}

/* The number of files is not the one in the header. */
TEST(wrong_number_of_files)
{
    static const uint8_t counts[][5] = {{0}, {1}, {FILES - 1}, {FILES + 1}, {127}, {0xff, 0xff, 0xff, 0xff, 0x07}};
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        struct sections s = split(series);
        struct bytes *header = &s.section[0].body;
        header->size = TSR_ID_OFFSET + TSR_ID_BYTES;
        append(header, counts[i], i == 5 ? 5 : 1);
        struct bytes cut = join(&s);
        cut.size -= 2; /* no index: files may be lost */
        const struct outcomes o = try_sections(&s), without_index = restore_all(cut);
        expect(o.opened == TSR_ERROR_CORRUPT, "case %zu", i);
        if (i < 3) {
            expect(without_index.opened == TSR_ERROR_CORRUPT, "case %zu", i);
        } else { /* one number more stands for all that are lost, however many they are */
            expect(without_index.count == FILES + 1 && good_files(&without_index) == FILES, "case %zu: %u", i,
                   without_index.count);
        }
        free(cut.data);
    }
}

/* Gives the member of a section M another name. */
static void rename_member(struct sections *s, int number, const char *name, size_t length)
{
    struct bytes *body = &s->section[find_section(s, TSR_SECTION_MEMBER, number)].body;
    struct tsr_cursor c = {body->data, body->size, 0, false};
    tsr_get_bytes(&c, (size_t)tsr_get_varint(&c));
    uint8_t varint[TSR_VARINT_LIMIT];
    struct bytes other = copy_bytes(varint, tsr_put_varint(varint, length));
    append(&other, name, length);
    append(&other, body->data + c.at, body->size - c.at);
    free(body->data);
    *body = other;
}

TEST(hostile_names)
{
    static const char *const bad[] = {"", "/etc/passwd", "../x", "a/../../x", ".", "..", "a//b", "x/"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        for (int member = 0; member < FILES; member += 2) {
            struct sections s = split(series);
            rename_member(&s, member, bad[i], strlen(bad[i]));
            const struct outcomes o = try_sections(&s);
            expect(o.opened == TSR_OK && o.file[member] == TSR_ERROR_CORRUPT && good_files(&o) == FILES - 1, "'%s'",
                   bad[i]);
        }
    }
    char *long_name = must(malloc(TSR_NAME_LIMIT + 1));
    memset(long_name, 'x', TSR_NAME_LIMIT + 1);
    struct sections s = split(series);
    rename_member(&s, 1, long_name, TSR_NAME_LIMIT + 1);
    const struct outcomes o = try_sections(&s);
    assert_true(o.file[1] == TSR_ERROR_CORRUPT && good_files(&o) == FILES - 1);
    free(long_name);
    s = split(series);
    rename_member(&s, 1, "a\0b", 3);
    const struct outcomes zero = try_sections(&s);
    assert_true(zero.file[1] == TSR_ERROR_CORRUPT && good_files(&zero) == FILES - 1);
    /* Two of the same name: one of them keeps it. */
    s = split(series);
    rename_member(&s, 5, names[0], strlen(names[0]));
    struct bytes file = join(&s);
    struct tsr_reader *open = NULL;
    write_bytes(path_in_folder("s.tsr"), file);
    assert_int_equal(open_series(engine, path_in_folder("s.tsr"), &open, NULL), TSR_OK);
    assert_true((tsr_reader_name(open, 0) == NULL) != (tsr_reader_name(open, 5) == NULL));
    tsr_close(open);
    free(file.data);
    free_sections(&s);
    empty_folder();
}

/* Members whose fields are wrong. */
TEST(wrong_members)
{
    for (int way = 0; way < 6; way++) {
        struct sections s = split(series);
        struct bytes *body = &s.section[find_section(&s, TSR_SECTION_MEMBER, 0)].body;
        const size_t header_at = 1 + strlen(names[0]) + 1;
        switch (way) {
        case 0: /* a byte more, a byte less */
            append(body, "x", 1);
            break;
        case 1:
            body->size--;
            break;
        case 2: /* a series in a series */
            body->size = header_at;
            body->data[header_at - 1] = 13;
            append(body,
                   "\4\0\5\0"
                   "eight id"
                   "\1",
                   13);
            append(body, "\0sixteen bytes hash", 17);
            break;
        case 3: /* the header ends beyond the section */
            body->data[header_at - 1] = 127;
            break;
        case 4: /* the name ends beyond the section */
            body->data[0] = 127;
            break;
        default: /* another hash */
            body->data[body->size - 20] ^= 1;
            break;
        }
        const struct outcomes o = try_sections(&s);
        expect(o.opened == TSR_OK && o.file[0] == TSR_ERROR_CORRUPT && good_files(&o) == FILES - 1, "way %d: %s", way,
               tsr_status_name(o.file[0]));
    }
}

#if TSR_WITH_ZSTD
/* Blobs whose base does not exist, is not a base, or is another one. */
TEST(wrong_bases)
{
    for (int distance = 0; distance <= 255; distance += distance < 6 ? 1 : 83) {
        struct sections s = split(series);
        /* The last picture's prefix. Its distance stands after a size of two bytes. */
        int at = s.count - 1;
        while (s.section[at].type != TSR_SECTION_BLOB) at--;
        struct bytes *body = &s.section[at].body;
        assert_true(body->data[1] == TSR_BLOB_ZSTD_AFTER && body->data[4] == 5);
        body->data[4] = (uint8_t)distance;
        const struct outcomes o = try_sections(&s);
        /* 5 is the first file. 4 and 3 are the next ones, which have a base themselves. 2 and 1 are other blobs. */
        expect(o.opened == TSR_OK && good_files(&o) == (distance == 5 ? FILES : FILES - 1u), "distance %d", distance);
    }
    /* In a file that is not a series. */
    struct sections s = split(series), alone;
    static const struct tsr_coding coding = {.coder = TSR_CODER_HUFFMAN};
    struct bytes single = compress_bytes(engine, originals[5], &coding), restored;
    int at = s.count - 1;
    while (s.section[at].type != TSR_SECTION_BLOB) at--;
    alone = split(single);
    insert_section(&alone, 1, TSR_SECTION_BLOB, s.section[at].body.data, s.section[at].body.size);
    remove_section(&alone, 2);
    const struct bytes file = join(&alone);
    bool damaged;
    assert_int_equal(restore_bytes(engine, file.data, file.size, &restored, &damaged), TSR_ERROR_CORRUPT);
    free(file.data);
    free(single.data);
    free_sections(&alone);
    free_sections(&s);
}
#endif

/* Any one bit: only files whose own bytes are hit may be lost, and no file if the part stands twice. */
TEST(damage)
{
    uint64_t lost = 0, flips = 0;
    struct sections s = split(series);
    const int twins = find_section(&s, TSR_SECTION_TWIN, 0);
    free_sections(&s);
#if TSR_WITH_ZSTD
    assert_true(twins > 0);
#endif
    (void)twins;
    for (size_t i = 4; i < series.size; i += 3) { /* every third byte, because all of them take long on slow disks */
        struct bytes file = copy_bytes(series.data, series.size);
        file.data[i] ^= (uint8_t)(1 << i % 8);
        const struct outcomes o = restore_all(file);
        expect(o.opened == TSR_OK && o.count == FILES, "byte %zu: %s", i, tsr_status_name(o.opened));
        expect(good_files(&o) >= FILES - 1, "byte %zu: %u good", i, good_files(&o));
        lost += FILES - good_files(&o);
        flips++;
        free(file.data);
    }
    assert_true(lost <= flips);
}

/* The status of a test of the first file, which also covers the series' own sections. No file may be lost. */
static enum tsr_status test_twins(struct sections *s, const char *what)
{
    const struct bytes file = join(s);
    const struct outcomes o = restore_all(file);
    struct tsr_reader *series_of = NULL;
    struct tsr_report report;
    struct tsr_error error = {0};
    write_bytes(path_in_folder("s.tsr"), file);
    expect(o.opened == TSR_OK && good_files(&o) == FILES, "%s: %u files", what, good_files(&o));
    assert_int_equal(open_series(engine, path_in_folder("s.tsr"), &series_of, &error), TSR_OK);
    const enum tsr_status status = restore_member_path(series_of, 0, NULL, &report, &error);
    tsr_close(series_of);
    empty_folder();
    free(file.data);
    free_sections(s);
    return status;
}

/* Twins that repair nothing are reported by a test. */
TEST(wrong_twins)
{
    struct sections s = split(series);
    const int first = find_section(&s, TSR_SECTION_TWIN, 0), count = s.count;
    assert_true(first > 0 && first < count);
    assert_int_equal(test_twins(&s, "all"), TSR_OK);
    for (int at = first; at < count; at++) {
        s = split(series);
        remove_section(&s, at);
        expect(test_twins(&s, "missing") == TSR_ERROR_CORRUPT, "without twin %d", at);
        s = split(series);
        s.section[at].body.data[s.section[at].body.size - 1] ^= 1;
        expect(test_twins(&s, "another") == TSR_ERROR_CORRUPT, "another twin %d", at);
    }
    /* A twin of a section that belongs to one file only. */
    s = split(series);
    const int last = find_section(&s, TSR_SECTION_MEMBER, FILES - 1);
    int own = last;
    while (s.section[own].type != TSR_SECTION_BLOB) own--;
    struct bytes body = {NULL, 0};
    uint8_t number[10];
    append(&body, number, put_number(number, (uint64_t)own - 1));
    append(&body, s.section[own].body.data, s.section[own].body.size);
    insert_section(&s, s.count, TSR_SECTION_TWIN, body.data, body.size);
    free(body.data);
    assert_int_equal(test_twins(&s, "one too many"), TSR_ERROR_CORRUPT);
}

/* A stretch of damage anywhere: files whose own bytes it does not hit come back. */
TEST(damaged_pages)
{
    enum { PAGE = 512 };
    /* Where each file's sections end: after its section M. */
    size_t ends[FILES], at = TSR_SIGNATURE_BYTES, file_number = 0;
    while (file_number < FILES) {
        struct tsr_cursor c = {series.data, series.size, at + 1, false};
        const uint8_t type = series.data[at];
        const size_t size = (size_t)tsr_get_varint(&c);
        at = c.at + size + TSR_CHECK_BYTES;
        if (type == TSR_SECTION_MEMBER) ends[file_number++] = at;
    }
    for (size_t page = 0; page < series.size; page += PAGE) {
        struct bytes file = copy_bytes(series.data, series.size);
        const size_t end = page + PAGE < series.size ? page + PAGE : series.size;
        memset(file.data + page, 0, end - page);
        const struct outcomes o = restore_all(file);
        expect(o.opened == TSR_OK, "page at %zu: %s", page, tsr_status_name(o.opened));
        for (uint32_t k = 0; k < o.count; k++) {
            const size_t start = k == 0 ? TSR_SIGNATURE_BYTES : ends[k - 1];
            const bool is_hit = page < ends[k] && end > start;
            expect(is_hit || o.file[k] == TSR_OK, "page at %zu: file %u is lost", page, k);
        }
        free(file.data);
    }
}

/* Calls that take single files refuse a series and say so. */
TEST(no_single_file)
{
    struct tsr_report report;
    struct tsr_error error;
    struct tsr_info info;
    write_bytes(path_in_folder("s.tsr"), series);
    assert_int_equal(restore_path(engine, path_in_folder("s.tsr"), NULL, &report, &error), TSR_ERROR_USAGE);
    assert_int_equal(read_path_info(engine, path_in_folder("s.tsr"), &info, &error), TSR_OK);
    uint64_t bytes = 0;
    for (int i = 0; i < FILES; i++) bytes += originals[i].size;
    assert_true(info.members == FILES && info.original_bytes == bytes && info.file_bytes == series.size);
    empty_folder();
}

int main(void)
{
    large_files = true;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(member_names),
        cmocka_unit_test(all_come_back),
        cmocka_unit_test(same_bytes),
        cmocka_unit_test(blobs_behind_others),
        cmocka_unit_test(stacks),
        cmocka_unit_test(models_of_others),
        cmocka_unit_test(wrong_distances),
        cmocka_unit_test(direct_members),
        cmocka_unit_test(refused_inputs),
        cmocka_unit_test(each_section_removed),
        cmocka_unit_test(each_section_twice),
        cmocka_unit_test(sections_out_of_place),
        cmocka_unit_test(wrong_number_of_files),
        cmocka_unit_test(hostile_names),
        cmocka_unit_test(wrong_members),
#if TSR_WITH_ZSTD
        cmocka_unit_test(wrong_bases),
#endif
        cmocka_unit_test(damage),
        cmocka_unit_test(wrong_twins),
        cmocka_unit_test(damaged_pages),
        cmocka_unit_test(no_single_file)
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
