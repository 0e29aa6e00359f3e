/* DICOM files without pixels as one piece: they come back, the reference decoder makes the same of them, and damage is
 * bounded. ELEMENTS.md. */
#include <pthread.h>

#include "dicom_bytes.h"
#include "tests/unit/leaves.h"
#include "one_engine.h"
#include "tests/large_files.h"
#include "io/nodes/elements/elements_blocks.h"
#include "io/nodes/elements/elements_spell.h"
#include "io/formats/packed.h"
#include "streams/by_node.h"
#include "streams/by_reference.h"

enum { LIMIT = 1 << 22, FILES = 24, THREADS = 4, FILES_AT_ONCE = 12 };

static const struct tsr_dicom_form *const forms[] = {&explicit_little, &implicit_little, &explicit_big};

/* Elements of an item, and of items within it. */
static void put_item(struct dicom_bytes *d, struct rng *r, int depth)
{
    static const char *const vrs[] = {"UI", "DA", "CS", "PN", "LO", "US", "UT", "OB", "DS", "UN"};
    for (uint32_t i = 0, n = 1 + rng_below(r, 6); i < n; i++) {
        char text[40];
        const uint32_t which = rng_below(r, COUNT_OF(vrs)), tag = 0x00080000 + i * 0x00080000 + which * 0x11;
        snprintf(text, sizeof text, "1.2.%u.%u", rng_below(r, 9), rng_below(r, 1000000));
        put_value(d, tag, vrs[which], text, strlen(text) & ~(size_t)1);
    }
    for (uint32_t i = 0; depth > 0 && i < 2; i++) {
        const bool has_length = rng_below(r, 2);
        const size_t sequence = begin_sequence(d, 0x00400275 + i, "SQ", has_length);
        for (uint32_t n = rng_below(r, 3); n > 0; n--) {
            const bool item_has_length = rng_below(r, 2);
            const size_t item = begin_sequence(d, TAG_ITEM, "", item_has_length);
            put_item(d, r, depth - 1);
            end_sequence(d, item, TAG_ITEM_END, item_has_length);
        }
        end_sequence(d, sequence, TAG_SEQUENCE_END, has_length);
    }
}

/* A file of a form, with or without meta header; every fourth is cut, every sixth is noise after some bytes. */
static struct bytes make_file(unsigned i, struct rng *r)
{
    struct dicom_bytes d = {.form = *forms[i % COUNT_OF(forms)]};
    if (i % 2 == 0) put_meta(&d, syntax_of(d.form));
    put_item(&d, r, 3);
    if (i % 4 == 3) d.all.size = 1 + rng_below(r, (uint32_t)d.all.size);
    for (size_t k = d.all.size / 2; i % 6 == 5 && k < d.all.size; k++) d.all.data[k] = (uint8_t)rng_next(r);
    return d.all;
}

static struct tsr_bytes mix(struct bytes file)
{
    struct tsr_bytes code = {.limit = LIMIT};
    assert_int_equal(split_by(&tsr_node_elements, file.data, file.size, &code, NULL, NULL), TSR_OK);
    return code;
}

static enum tsr_status by_product(const struct tsr_bytes *code, size_t plain_size, struct tsr_bytes *file,
                                  struct tsr_error *error)
{
    return join_by(&tsr_node_elements, (struct tsr_node_parts){.plain = code->bytes, .plain_size = code->size},
                   plain_size, file, error);
}

static bool by_reference(const struct tsr_bytes *code, size_t plain_size, ref_sink *put, void *to)
{
    return ref_elements(code->bytes, code->size, plain_size, TSR_ELEMENTS_ROOM, put, to);
}

static void expect_back(struct bytes file, const char *what)
{
    struct tsr_bytes code = mix(file), again;
    assert_int_equal(unmix(by_product, by_reference, &code, file.size, &again, what), TSR_OK);
    expect(again.size == file.size && memcmp(again.bytes, file.data, file.size) == 0, "%s: other bytes", what);
    tsr_bytes_free(&code);
    tsr_bytes_free(&again);
}

/* Samples of channels by turns, which all go up and down. Big endian ones have no contexts of their own. */
TEST(waves)
{
    for (unsigned i = 0; i < 2; i++) {
        struct dicom_bytes d = {.form = i ? explicit_big : explicit_little};
        put_meta(&d, syntax_of(d.form));
        put_us(&d, 0x003a0005, 3);
        put_head(&d, 0x54001010, "OW", 6000);
        for (int k = 0; k < 3000; k++)
            put_word(&d, (uint32_t)((k % 3 * 5000 + (k / 3 % 200 - 100) * (k / 3 % 200 - 100)) & 0xffff), 2);
        struct tsr_bytes code = mix(d.all);
        expect(i > 0 || code.size < d.all.size / 6, "%zu bytes", code.size);
        expect_back(d.all, i ? "big waves" : "waves");
        tsr_bytes_free(&code);
        free_dicom(&d);
    }
}

/* Items of bytes, which are no elements, as encapsulated pixels have them. */
TEST(items_of_bytes)
{
    struct dicom_bytes d = {.form = explicit_little};
    struct rng r = {57};
    put_meta(&d, syntax_of(d.form));
    const size_t start = begin_sequence(&d, 0x00420011, "OB", false);
    for (int i = 0; i < 3; i++) {
        put_head(&d, TAG_ITEM, "", 300);
        for (int k = 0; k < 75; k++) put_word(&d, rng_below(&r, 9) * 0x00080005, 4);
    }
    end_sequence(&d, start, TAG_SEQUENCE_END, false);
    put_item(&d, &r, 1);
    expect_back(d.all, "items of bytes");
    free_dicom(&d);
}

TEST(come_back)
{
    struct rng r = {51};
    for (unsigned i = 0; i < FILES; i++) {
        char what[32];
        const struct bytes file = make_file(i, &r);
        snprintf(what, sizeof what, "file %u", i);
        expect_back(file, what);
        free(file.data);
    }
}

struct work {
    struct bytes file[FILES_AT_ONCE];
    struct tsr_bytes code[FILES_AT_ONCE], again[FILES_AT_ONCE];
    pthread_t thread;
};

static void *mix_all(void *context)
{
    struct work *const w = context;
    for (unsigned i = 0; i < FILES_AT_ONCE; i++) {
        w->code[i].limit = w->again[i].limit = LIMIT;
        (void)split_by(&tsr_node_elements, w->file[i].data, w->file[i].size, &w->code[i], NULL, NULL);
        (void)by_product(&w->code[i], w->file[i].size, &w->again[i], NULL);
    }
    return NULL;
}

/* Threads that begin at once, with no coder made yet, share none. What they write is what one thread writes. */
TEST(at_once)
{
    static struct work work[THREADS];
    struct rng r = {58};
    for (unsigned t = 0; t < THREADS; t++)
        for (unsigned i = 0; i < FILES_AT_ONCE; i++) work[t].file[i] = make_file(i, &r);
    for (unsigned t = 0; t < THREADS; t++)
        assert_int_equal(pthread_create(&work[t].thread, NULL, mix_all, &work[t]), 0);
    for (unsigned t = 0; t < THREADS; t++) assert_int_equal(pthread_join(work[t].thread, NULL), 0);
    for (unsigned t = 0; t < THREADS; t++) {
        for (unsigned i = 0; i < FILES_AT_ONCE; i++) {
            const struct bytes file = work[t].file[i];
            struct tsr_bytes *const code = &work[t].code[i], *const again = &work[t].again[i], alone = mix(file);
            expect(again->size == file.size && memcmp(again->bytes, file.data, file.size) == 0, "file %u: other bytes",
                   i);
            expect(code->size == alone.size && memcmp(code->bytes, alone.bytes, alone.size) == 0,
                   "file %u: another code", i);
            free(file.data);
            tsr_bytes_free(code);
            tsr_bytes_free(again);
            tsr_bytes_free(&alone);
        }
    }
}

/* Bytes that are no elements: each of them alone, noise, and items within items without an end. */
TEST(any_bytes)
{
    static const uint8_t item[8] = {0xfe, 0xff, 0x00, 0xe0, 0xff, 0xff, 0xff, 0xff};
    struct rng r = {52};
    struct bytes noise = {NULL, 0}, deep = {NULL, 0};
    for (int i = 0; i < 3000; i++) {
        const uint8_t byte = (uint8_t)rng_next(&r);
        append(&noise, &byte, 1);
        append(&deep, item, sizeof item);
    }
    expect_back(noise, "noise");
    expect_back(deep, "items");
    noise.size = 1;
    for (unsigned i = 0; i < 256; i += 51) {
        noise.data[0] = (uint8_t)i;
        expect_back(noise, "a byte");
    }
    free(noise.data);
    free(deep.data);
}

/* What a file becomes does not depend on what was coded before it. */
TEST(same_code)
{
    struct rng r = {53};
    const struct bytes one = make_file(0, &r), other = make_file(7, &r);
    struct tsr_bytes first = mix(one), between = mix(other), second = mix(one);
    expect(first.size == second.size && memcmp(first.bytes, second.bytes, first.size) == 0, "another code");
    tsr_bytes_free(&first);
    tsr_bytes_free(&between);
    tsr_bytes_free(&second);
    free(one.data);
    free(other.data);
}

TEST(damaged)
{
    struct rng r = {54};
    const struct bytes file = make_file(0, &r);
    struct tsr_bytes code = mix(file), again;
    unsigned other = 0;
    for (size_t at = 0; at < code.size; at++) {
        code.bytes[at] ^= (uint8_t)(1u << rng_below(&r, 8));
        const bool good = unmix(by_product, by_reference, &code, file.size, &again, "a damaged code") == TSR_OK;
        other += !good || memcmp(again.bytes, file.data, file.size) != 0;
        tsr_bytes_free(&again);
        tsr_bytes_free(&code);
        code = mix(file);
    }
    expect(other + 1 >= code.size, "%u of %zu damages change the file", other,
           code.size); /* the last bits may be free */
    for (size_t size = 0; size < code.size; size += 7) {
        const struct tsr_bytes cut = {.bytes = code.bytes, .size = size};
        (void)unmix(by_product, by_reference, &cut, file.size, &again, "a cut code");
        tsr_bytes_free(&again);
    }
    tsr_bytes_free(&code);
    free(file.data);
}

/* The bytes of text of which the model has learned, at most: it has room for 2^14. */
TEST(room_for_what_is_learned)
{
    size_t bytes = 0;
    for (const char *const *line = tsr_elements_seen; *line; line++)
        for (const char *at = *line; *at; at = strchr(at, '|') + 1)
            bytes += at[1] != '|' ? (size_t)(strchr(at, '|') - at) + 1 : *at == '0' ? 132 : 8;
    expect(bytes <= 1 << 14, "%zu bytes", bytes);
}

/* A piece with this head, of which the first bytes of content follow. */
static enum tsr_status unpack(const struct tsr_piece_head *head, const struct tsr_bytes *content, uint64_t room)
{
    struct bytes blob = {NULL, 0};
    uint8_t bytes[TSR_PIECE_HEAD_LIMIT];
    struct tsr_output *output = must(tsr_output_to_memory());
    append(&blob, bytes, tsr_put_piece_head(bytes, head));
    append(&blob, content->bytes, content->size);
    const struct tsr_header header = {.recipe = TSR_RECIPE_PACKED, .exact = true, .room = room};
    struct test_leaves leaves = {.blob = {{blob.data, blob.size, 0}}, .step = 1000};
    const enum tsr_status status = make_of(&leaves, &header, output, NULL);
    tsr_output_close(output);
    free(blob.data);
    return status;
}

TEST(limits)
{
    static const struct {
        uint64_t size, plain, room; /* 0: as it is */
        enum tsr_status status;
    } cases[] = {{0, 0, 0, TSR_OK},
                 {TSR_ELEMENTS_CODE + 1, 0, 0, TSR_ERROR_CORRUPT},
                 {0, TSR_ELEMENTS_PLAIN + 1, 0, TSR_ERROR_CORRUPT},
                 {0, 0, TSR_ELEMENTS_ROOM - 1, TSR_ERROR_CORRUPT},
                 {1 << 20, 0, 0, TSR_ERROR_CORRUPT}}; /* the content ends early */
    struct rng r = {55};
    const struct bytes file = make_file(0, &r);
    struct tsr_bytes code = mix(file), none = {.limit = LIMIT};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct tsr_piece_head head = {.kind = TSR_PIECE_ELEMENTS,
                                            .size = cases[i].size ? cases[i].size : code.size,
                                            .whole = cases[i].plain ? cases[i].plain : file.size};
        const enum tsr_status status = unpack(&head, &code, cases[i].room ? cases[i].room : TSR_ELEMENTS_ROOM);
        expect(status == cases[i].status, "case %zu: %s", i, tsr_status_name(status));
    }
    const struct tsr_piece_head empty = {.kind = TSR_PIECE_ELEMENTS, .size = code.size, .whole = 0};
    expect(unpack(&empty, &code, TSR_ELEMENTS_ROOM) == TSR_ERROR_CORRUPT, "no plain bytes");
    expect(split_by(&tsr_node_elements, file.data, 0, &none, NULL, NULL) == TSR_ERROR_CORRUPT, "an empty file");
    expect(split_by(&tsr_node_elements, file.data, TSR_ELEMENTS_PLAIN + 1, &none, NULL, NULL) == TSR_ERROR_CORRUPT,
           "too large a file");
    expect(join_by(&tsr_node_elements, (struct tsr_node_parts){.plain = code.bytes, .plain_size = code.size},
                   TSR_ELEMENTS_PLAIN + 1, &none, NULL) == TSR_ERROR_CORRUPT,
           "too many bytes");
    none.limit = code.size / 2;
    expect(split_by(&tsr_node_elements, file.data, file.size, &none, NULL, NULL) == TSR_ERROR_CORRUPT,
           "a code over its limit");
    tsr_bytes_free(&code);
    tsr_bytes_free(&none);
    free(file.data);
}

/* The largest file that is taken: zeros, and a value in them. */
TEST(largest)
{
    struct bytes file = {calloc(TSR_ELEMENTS_PLAIN, 1), TSR_ELEMENTS_PLAIN};
    struct tsr_bytes again = {.limit = LIMIT};
    memcpy((uint8_t *)must(file.data) + 300000, "a text", 6);
    struct tsr_bytes code = mix(file);
    assert_int_equal(join_by(&tsr_node_elements, (struct tsr_node_parts){.plain = code.bytes, .plain_size = code.size},
                             file.size, &again, NULL),
                     TSR_OK);
    expect(again.size == file.size && memcmp(again.bytes, file.data, file.size) == 0, "other bytes");
    expect(code.size < 4000, "%zu bytes", code.size);
    tsr_bytes_free(&code);
    tsr_bytes_free(&again);
    free(file.data);
}

/* ---- Lists of numbers ----------------------------------------------------------------------------------------- */

/* A list of points that go on as they did before, but for a little. */
static void put_points(struct dicom_bytes *d, struct rng *r, uint32_t points)
{
    char text[32 * 200];
    int used = 0, at[2] = {(int)rng_below(r, 20000) - 10000, (int)rng_below(r, 20000) - 10000}, step[2] = {60, -70};
    for (uint32_t i = 0; i < points; i++) {
        for (int k = 0; k < 2; k++) {
            step[k] += (int)rng_below(r, 5) - 2;
            at[k] += step[k];
            used += snprintf(text + used, sizeof text - (size_t)used, "%s%s%d.%02d", i + (uint32_t)k ? "\\" : "",
                             at[k] < 0 ? "-" : "", abs(at[k]) / 100, abs(at[k]) % 100);
        }
        used += snprintf(text + used, sizeof text - (size_t)used, "\\-12.5");
    }
    put_text(d, 0x30060050, "DS", text);
}

TEST(points)
{
    for (size_t f = 0; f < COUNT_OF(forms); f++) {
        struct dicom_bytes d = {.form = *forms[f]};
        struct rng r = {60};
        put_meta(&d, syntax_of(d.form));
        put_text(&d, 0x00080016, "UI", "1.2.840.10008.5.1.4.1.1.481.3");
        for (int i = 0; i < 20; i++) put_points(&d, &r, 150);
        struct tsr_bytes code = mix(d.all);
        expect(code.size < d.all.size / 11, "form %zu: %zu of %zu bytes", f, code.size, d.all.size);
        expect_back(d.all, "points");
        tsr_bytes_free(&code);
        free_dicom(&d);
    }
}

/* Numbers of up to 23 characters, and what is none. */
static size_t put_odd_number(char *text, struct rng *r)
{
    static const char any[] = "0123456789.-\\ e+E,\x7f\xff";
    const uint32_t kind = rng_below(r, 4), size = rng_below(r, 24), point = rng_below(r, size + 2);
    for (uint32_t i = 0; i < size; i++)
        text[i] = kind == 0             ? any[rng_below(r, sizeof any)]
                  : i == 0 && kind == 1 ? '-'
                  : i == point          ? '.'
                                        : (char)('0' + rng_below(r, 10));
    return size;
}

/* As many bytes as the strings that are learned, one more, and many; lists of 62 bytes, 64 and more. */
TEST(odd_lists)
{
    enum { SEEN = 1 << 14 };
    static const size_t sizes[] = {SEEN, SEEN + 1, 3 * SEEN};
    static const uint32_t lengths[] = {62, 64, 66, 700, 5000};
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        struct dicom_bytes d = {.form = *forms[s]};
        struct rng r = {61};
        char text[6000];
        put_meta(&d, syntax_of(d.form));
        for (uint32_t i = 0; d.all.size < sizes[s]; i++) {
            const uint32_t length = lengths[rng_below(&r, COUNT_OF(lengths))];
            for (size_t used = 0; used < length; text[used++] = '\\') used += put_odd_number(text + used, &r);
            if (i % 5 == 4) memset(text + 20, 0, 3);
            put_value(&d, i % 3 ? 0x30060050 : 0x30040058, i % 7 == 6 ? "IS" : "DS", text, length);
        }
        d.all.size = sizes[s];
        expect_back(d.all, "odd lists");
        free_dicom(&d);
    }
}

/* A list whose code would be too long, which is noticed soon, leaves nothing to the next file. */
TEST(after_a_list_that_fails)
{
    struct rng r = {62};
    const struct bytes file = make_file(0, &r);
    struct dicom_bytes d = {.form = explicit_little};
    for (int i = 0; i < 20; i++) put_points(&d, &r, 150);
    struct tsr_bytes before = mix(file), none = {.limit = 100};
    assert_int_equal(split_by(&tsr_node_elements, d.all.data, d.all.size, &none, NULL, NULL), TSR_ERROR_CORRUPT);
    struct tsr_bytes after = mix(file);
    expect(before.size == after.size && memcmp(before.bytes, after.bytes, after.size) == 0, "another code");
    tsr_bytes_free(&before);
    tsr_bytes_free(&none);
    tsr_bytes_free(&after);
    free_dicom(&d);
    free(file.data);
}

/* ---- Long files ----------------------------------------------------------------------------------------------- */

enum { LONG = TSR_ELEMENTS_PLAIN + 100000 };

/* A list of contours, and where its elements and items begin. */
struct contours {
    struct dicom_bytes d;
    bool *begins; /* of each byte */
};

static void begin_here(struct contours *c)
{
    c->begins[c->d.all.size] = true;
}

static struct contours make_contours(struct tsr_dicom_form form, size_t size)
{
    struct contours c = {{.form = form}, must(calloc(size + (1 << 17), 1))};
    struct rng r = {59};
    put_meta(&c.d, syntax_of(form));
    begin_here(&c);
    put_text(&c.d, 0x00080016, "UI", "1.2.840.10008.5.1.4.1.1.481.3");
    begin_here(&c);
    const size_t sequence = begin_sequence(&c.d, 0x30060040, "SQ", true);
    for (uint32_t n = 0; c.d.all.size < size; n++) {
        char text[4000];
        int used = 0;
        for (uint32_t i = 0; i < 150; i++)
            used += snprintf(text + used, sizeof text - (size_t)used, "%s%u.%02u\\-%u.%u\\%u", i ? "\\" : "",
                             90 + n % 40, rng_below(&r, 100), 30 + i / 9, rng_below(&r, 10), n);
        begin_here(&c);
        const size_t item = begin_sequence(&c.d, TAG_ITEM, "", true);
        begin_here(&c);
        put_text(&c.d, 0x30060042, "CS", "CLOSED_PLANAR");
        begin_here(&c);
        put_text(&c.d, 0x30060050, "DS", text);
        end_sequence(&c.d, item, TAG_ITEM_END, true);
    }
    end_sequence(&c.d, sequence, TAG_SEQUENCE_END, true);
    return c;
}

struct cuts {
    struct bytes file;
    struct tsr_elements_block *block;
    unsigned count;
};

static void add_cut(void *context, uint64_t start, uint64_t end, unsigned form)
{
    struct cuts *const c = context;
    assert_true(c->count < TSR_ELEMENTS_BLOCKS);
    c->block[c->count++] =
        (struct tsr_elements_block){.bytes = c->file.data + start, .size = (size_t)(end - start), .form = form};
}

/* Cuts a file that comes in parts of so many bytes. */
static unsigned cut_parts(struct bytes file, size_t part, struct tsr_elements_block block[TSR_ELEMENTS_BLOCKS])
{
    struct cuts cuts = {.file = file, .block = block};
    struct tsr_elements_cut *const cut = tsr_elements_begin_cut(file.data, (uint32_t)file.size);
    assert_non_null(cut);
    for (size_t at = 0; at < file.size; at += part)
        tsr_elements_cut(cut, file.data + at, file.size - at < part ? file.size - at : part, add_cut, &cuts);
    free(cut);
    return cuts.count;
}

static unsigned cut(struct bytes file, struct tsr_elements_block block[TSR_ELEMENTS_BLOCKS], const char *what)
{
    static struct tsr_elements_block again[TSR_ELEMENTS_BLOCKS];
    const unsigned count = cut_parts(file, file.size, block);
    size_t at = 0;
    expect(cut_parts(file, TSR_ELEMENTS_FIRST + 1, again) == count, "%s: other blocks in parts", what);
    for (unsigned i = 0; i < count; i++)
        expect(block[i].bytes == again[i].bytes && block[i].form == again[i].form, "%s: block %u in parts", what, i);
    for (unsigned i = 0; i < count; i++) {
        expect(block[i].bytes == file.data + at && block[i].size > 0 && block[i].size <= TSR_ELEMENTS_PLAIN,
               "%s: block %u has %zu bytes", what, i, block[i].size);
        at += block[i].size;
    }
    expect(at == file.size, "%s: blocks of %zu of %zu bytes", what, at, file.size);
    return count;
}

/* Blocks begin where elements do; in a value that is longer than a block, they begin within it. */
TEST(blocks)
{
    static struct tsr_elements_block block[TSR_ELEMENTS_BLOCKS];
    for (size_t f = 0; f < COUNT_OF(forms); f++) {
        struct contours c = make_contours(*forms[f], 3 * (size_t)TSR_ELEMENTS_PLAIN);
        const unsigned count = cut(c.d.all, block, "contours");
        expect(count == 7, "%u blocks", count);
        for (unsigned i = 1; i < count; i++)
            expect(c.begins[block[i].bytes - c.d.all.data], "form %zu: block %u begins within an element", f, i);
        free(c.begins);
        free_dicom(&c.d);
    }
    struct dicom_bytes d = {.form = explicit_little};
    put_meta(&d, syntax_of(d.form));
    put_head(&d, 0x54001010, "OW", 5 << 19);
    for (int i = 0; i < 5 << 17; i++) put_word(&d, (uint32_t)i, 4);
    put_text(&d, 0x54001012, "LO", "behind");
    expect(cut(d.all, block, "a long value") >= 3, "too few blocks");
    free_dicom(&d);
}

/* The pieces of a long file: their number, and what both decoders make of them. */
static unsigned check_pieces(struct bytes tsr_blob, struct bytes file)
{
    struct tsr_output *output = must(tsr_output_to_memory());
    const struct tsr_header header = {.recipe = TSR_RECIPE_PACKED, .exact = true, .room = TSR_ELEMENTS_ROOM};
    struct test_leaves leaves = {.blob = {{tsr_blob.data, tsr_blob.size, 0}}, .step = 100000};
    const struct tsr_making making = {.leaves = {read_test_leaf, put_test_frames, NULL, &leaves},
                                      .crew = {run_backwards, NULL}};
    unsigned count = 0;
    assert_int_equal(tsr_make(&header, &making, output, NULL), TSR_OK);
    free(leaves.part);
    struct bytes made = bytes_of(output);
    expect(equal(made, file), "another file");
    struct tsr_piece_head head;
    for (size_t at = 0, used; at < tsr_blob.size; at += used + (size_t)head.size, count++)
        assert_int_equal(tsr_get_piece_head(tsr_blob.data + at, tsr_blob.size - at, &head, &used, NULL), TSR_OK);
    const struct tsr_bytes pieces = {.bytes = tsr_blob.data, .size = tsr_blob.size},
                           expected = {.bytes = file.data, .size = file.size};
    expect_by_reference(unpack_piece, &pieces, 0, TSR_OK, &expected, "a long file");
    free(made.data);
    tsr_output_close(output);
    return count;
}

/* A file of more than a block: pieces that follow each other, the same by any number of threads. Fewer bytes may come
 * of them than the file has. */
TEST(long_files)
{
    struct contours c = make_contours(explicit_little, LONG);
    const struct tsr_crew crews[] = {{NULL, NULL}, {run_backwards, NULL}};
    struct bytes blob[2];
    for (int i = 0; i < 2; i++) {
        struct tsr_input *const input = must(tsr_input_from_memory(c.d.all.data, c.d.all.size, "contours"));
        struct tsr_source *source = NULL;
        const struct tsr_source_options options = {.packs = true};
        tsr_input_set_crew(input, crews[i]);
        assert_int_equal(tsr_source_open(input, &options, &source, NULL), TSR_OK);
        expect(source->header.recipe == TSR_RECIPE_PACKED, "it is not coded: %s", source->header.reason);
        blob[i].size = (size_t)source->blob_size[TSR_BLOB_PREFIX];
        blob[i].data = must(malloc(blob[i].size));
        assert_int_equal(tsr_source_read_blob(source, TSR_BLOB_PREFIX, 0, blob[i].data, blob[i].size, NULL), TSR_OK);
        tsr_source_close(source);
        tsr_input_close(input);
    }
    expect(equal(blob[0], blob[1]), "threads change bytes");
    expect(blob[0].size < c.d.all.size / 4, "%zu of %zu bytes", blob[0].size, c.d.all.size);
    expect(check_pieces(blob[0], c.d.all) == 3, "not three pieces");
    struct tsr_output *const output = must(tsr_output_to_memory());
    const struct tsr_header header = {.recipe = TSR_RECIPE_PACKED, .exact = true, .room = TSR_ELEMENTS_ROOM};
    struct test_leaves leaves = {.blob = {{blob[0].data, blob[0].size, 0}}, .step = 100000};
    const struct tsr_making making = {.leaves = {read_test_leaf, put_test_frames, NULL, &leaves},
                                      .crew = {run_backwards, NULL}};
    tsr_output_limit(output, c.d.all.size - 1);
    assert_int_equal(tsr_make(&header, &making, output, NULL), TSR_ERROR_CORRUPT);
    free(leaves.part);
    tsr_output_close(output);
    for (int i = 0; i < 2; i++) free(blob[i].data);
    free(c.begins);
    free_dicom(&c.d);
}

/* A whole .tsr: a brief one if the file has no pixel data, and one of many sections. Damage is refused. */
TEST(whole_files)
{
    struct dicom_bytes d = {.form = explicit_little};
    struct rng r = {56};
    put_meta(&d, syntax_of(d.form));
    put_text(&d, 0x00080016, "UI", "1.2.840.10008.5.1.4.1.1.88.11");
    put_item(&d, &r, 1);
    const struct tsr_source_options options = {.packs = true};
    const struct bytes small = compress_bytes_by(engine, d.all, &options, NULL);
    expect(small.data[4] == TSR_SECTION_SMALL && small.data[5] == 1, "the form");
    for (size_t at = TSR_SIGNATURE_BYTES; at <= small.size; at++) {
        struct bytes restored = {NULL, 0};
        bool damaged;
        if (at < small.size) small.data[at] ^= 1;
        const enum tsr_status status = restore_bytes(engine, small.data, small.size, &restored, &damaged);
        expect((status == TSR_OK) == (at == small.size), "byte %zu: %s", at, tsr_status_name(status));
        expect(status != TSR_OK || equal(restored, d.all), "other bytes");
        if (at < small.size) small.data[at] ^= 1;
        free(restored.data);
    }
    large_files = true;
    const struct bytes large = compress_bytes_by(engine, d.all, &options, NULL);
    large_files = false;
    struct bytes restored;
    bool damaged;
    expect(large.data[4] == TSR_SECTION_HEADER, "the large form");
    assert_int_equal(restore_bytes(engine, large.data, large.size, &restored, &damaged), TSR_OK);
    expect(equal(restored, d.all), "other bytes of the large form");
    free(restored.data);
    free(large.data);
    free(small.data);
    free_dicom(&d);
}

/* What headers are compressed after is what the page says, as the reference decoder reads it. */
TEST(known_bytes)
{
    size_t size, other_size;
    const uint8_t *const known = tsr_known_headers(&size), *const other = ref_known_bytes(&other_size);
    expect(size == other_size && memcmp(known, other, size) == 0, "%zu known bytes, %zu by the page", size, other_size);
    expect(size > 10000 && size < 16384, "%zu known bytes", size);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(known_bytes),
                                       cmocka_unit_test(at_once),
                                       cmocka_unit_test(come_back),
                                       cmocka_unit_test(any_bytes),
                                       cmocka_unit_test(waves),
                                       cmocka_unit_test(items_of_bytes),
                                       cmocka_unit_test(same_code),
                                       cmocka_unit_test(damaged),
                                       cmocka_unit_test(limits),
                                       cmocka_unit_test(room_for_what_is_learned),
                                       cmocka_unit_test(largest),
                                       cmocka_unit_test(whole_files),
                                       cmocka_unit_test(blocks),
                                       cmocka_unit_test(long_files),
                                       cmocka_unit_test(points),
                                       cmocka_unit_test(odd_lists),
                                       cmocka_unit_test(after_a_list_that_fails)};
    return cmocka_run_group_tests(tests, create_engine, destroy_engine);
}
