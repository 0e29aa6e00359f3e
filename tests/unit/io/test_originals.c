/* Originals that look damaged: they come back, and the report, the .tsr and a reader say what looks damaged. What real
 * archives have is no damage. And streams that cannot be made again, of which the samples are wanted. */
#include <zlib.h>

#include "dicom_bytes.h"
#include "one_engine.h"
#include "io/nodes/gzip/gzip.h"

enum { COLUMNS = 40, ROWS = 30 };

/* ---- Expectations ------------------------------------------------------------------------------------------- */

static struct tsr_info info_of(struct tsr_data_source source)
{
    struct tsr_info info = TSR_INFO;
    struct tsr_reader *reader;
    assert_int_equal(tsr_open(engine, &source, &reader, NULL), TSR_OK);
    assert_int_equal(tsr_read_info(reader, 0, &info, NULL), TSR_OK);
    tsr_close(reader);
    return info;
}

/* The file comes back, and its damage has these words; NULL: it has none. A .tsr
 * without an image may have no room for the words. Frees the file. */
static void expect_damage(const char *what, struct bytes file, const char *words)
{
    struct tsr_buffer tsr, back;
    struct tsr_report report = TSR_REPORT, tested = TSR_REPORT;
    struct tsr_error error = {0};
    const struct tsr_data_source original = tsr_from_memory(file.data, file.size);
    const struct tsr_data_sink to_tsr = tsr_to_memory(&tsr), to_back = tsr_to_memory(&back);
    expect(tsr_compress(engine, &original, &to_tsr, NULL, &report, &error) == TSR_OK, "%s: %s", what, error.text);
    expect(report.verified && report.promise == TSR_PROMISE_FILE, "%s: not proven", what);
    expect((words != NULL) == (report.damage[0] != '\0') && (!words || strstr(report.damage, words)),
           "%s: '%s' instead of '%s' (%s)", what, report.damage, words ? words : "", report.reason);
    const struct tsr_data_source made = tsr_from_memory(tsr.bytes, tsr.count);
    assert_int_equal(tsr_test(engine, &made, &tested, NULL), TSR_OK);
    const struct tsr_info info = info_of(made);
    expect((words != NULL) == (info.original_damage[0] != '\0'), "%s: its .tsr says '%s'", what, info.original_damage);
    expect(strcmp(tested.damage, info.original_damage) == 0, "%s: a test says '%s'", what, tested.damage);
    expect(!words || !info.has_image || strstr(info.original_damage, words), "%s: its .tsr says '%s'", what,
           info.original_damage);
    assert_int_equal(tsr_restore(engine, &made, &to_back, NULL, NULL), TSR_OK);
    expect(back.count == file.size && memcmp(back.bytes, file.data, file.size) == 0, "%s does not come back", what);
    tsr_buffer_free(&tsr);
    tsr_buffer_free(&back);
    free(file.data);
}

/* The first bytes of a file, which is freed. */
static struct bytes cut(struct bytes file, size_t size)
{
    assert_true(size <= file.size);
    file.size = size;
    return file;
}

/* The size of a file, which is freed. */
static size_t size_of(struct bytes file)
{
    free(file.data);
    return file.size;
}

static struct bytes with(struct bytes file, const void *more, size_t size)
{
    append(&file, more, size);
    return file;
}

static struct bytes change(struct bytes file, size_t at)
{
    assert_true(at < file.size);
    file.data[at] ^= 0x10;
    return file;
}

/* ---- DICOM -------------------------------------------------------------------------------------------------- */

struct scan {
    const char *syntax;
    uint32_t frames;
};

/* A header up to the pixel data's element. */
static struct dicom_bytes begin_scan(const struct scan *s)
{
    char frames[16];
    struct dicom_bytes d = {.form = strcmp(s->syntax, "1.2.840.10008.1.2") == 0 ? implicit_little : explicit_little};
    put_meta(&d, s->syntax);
    put_text(&d, 0x00080060, "CS", "CT");
    const size_t sequence = begin_sequence(&d, 0x00081140, "SQ", true), item = begin_sequence(&d, TAG_ITEM, "", true);
    put_text(&d, 0x00081150, "UI", "1.2.3");
    end_sequence(&d, item, TAG_ITEM_END, true);
    end_sequence(&d, sequence, TAG_SEQUENCE_END, true);
    put_text(&d, 0x00090010, "LO", "SOMEBODY");
    put_value(&d, 0x00091001, "UN", "whatever", 8);
    put_us(&d, 0x00280002, 1);
    put_text(&d, 0x00280004, "CS", "MONOCHROME2");
    snprintf(frames, sizeof frames, "%u", s->frames);
    put_text(&d, 0x00280008, "IS", frames);
    put_us(&d, 0x00280010, ROWS);
    put_us(&d, 0x00280011, COLUMNS);
    put_us(&d, 0x00280100, 16);
    put_us(&d, 0x00280101, 12);
    put_us(&d, 0x00280102, 11);
    put_us(&d, 0x00280103, 0);
    return d;
}

static void put_samples(struct bytes *b, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) append(b, &(uint8_t){(uint8_t)(i % 2 ? 1 : i / 7 * 3)}, 1);
}

static struct bytes native(const char *syntax, uint32_t frames)
{
    const size_t bytes = (size_t)2 * ROWS * COLUMNS * frames;
    struct dicom_bytes d = begin_scan(&(struct scan){syntax, frames});
    put_head(&d, TSR_TAG_PIXEL_DATA, "OW", (uint32_t)bytes);
    put_samples(&d.all, bytes);
    return d.all;
}

#define EXPLICIT "1.2.840.10008.1.2.1"
#define IMPLICIT "1.2.840.10008.1.2"

TEST(native_dicom)
{
    const size_t frame = 2 * ROWS * COLUMNS;
    static const uint8_t zeros[200];
    for (int form = 0; form < 2; form++) {
        const char *const syntax = form ? IMPLICIT : EXPLICIT;
        const size_t size = size_of(native(syntax, 3));
        expect_damage("whole", native(syntax, 3), NULL);
        expect_damage("a byte missing", cut(native(syntax, 3), size - 1), "2 of 3 frames");
        expect_damage("a frame missing", cut(native(syntax, 3), size - frame), "4800 of 7200 bytes are there");
        expect_damage("a row missing", cut(native(syntax, 1), size - 2 * frame - 2 * COLUMNS), "29 of 30 rows");
        expect_damage("nearly all missing", cut(native(syntax, 1), size - 3 * frame + 2), "ends early");
        expect_damage("all missing", cut(native(syntax, 1), size - 3 * frame), "ends early");
        expect_damage("zeros behind", with(native(syntax, 1), zeros, sizeof zeros), NULL);
        expect_damage("text behind", with(native(syntax, 1), "and this is what a program left here\n", 37), NULL);
    }
    const size_t header = size_of(native(EXPLICIT, 1)) - frame - 12;
    for (size_t at = 141; at < header; at += 6) /* elements end at even bytes */
        expect_damage("cut in its header", cut(native(EXPLICIT, 1), at), "");
}

/* Elements after the pixel data. */
TEST(elements_behind)
{
    for (int which = 0; which < 4; which++) {
        static const struct {
            const char *what, *vr;
            uint32_t tag, length, there;
            const char *damage;
        } cases[] = {
            {"padding", "OB", 0xfffcfffc, 100, 100, NULL},
            {"padding that is cut", "OB", 0xfffcfffc, 100, 99, "(fffc,fffc)"},
            {"private elements", "LO", 0x7fe10010, 20, 20, NULL},
            {"private elements that are cut", "LO", 0x7fe10010, 20, 3, "has 20 bytes, and 3 are there"},
        };
        struct dicom_bytes d = {native(EXPLICIT, 1), explicit_little, 0};
        put_head(&d, cases[which].tag, cases[which].vr, cases[which].length);
        for (uint32_t i = 0; i < cases[which].there; i++) append(&d.all, "x", 1);
        expect_damage(cases[which].what, d.all, cases[which].damage);
    }
}

/* What the pixel data's length says, and what the header does. */
TEST(lengths_of_pixels)
{
    static const struct {
        const char *what, *damage;
        int length, there; /* more than all samples */
    } cases[] = {
        {"a pad", NULL, 1, 1},
        {"a pad that is not there", NULL, 1, 0},
        {"more padding", NULL, 64, 64},
        {"padding that is cut", "it ends within its pixel data", 64, 10},
        {"a length that is too short", "1200 of 2400 bytes are there, 15 of 30 rows", -1200, 0},
        {"samples that are cut", "2398 of 2400 bytes are there", 0, -2},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const int bytes = 2 * ROWS * COLUMNS;
        struct dicom_bytes d = begin_scan(&(struct scan){EXPLICIT, 1});
        put_head(&d, TSR_TAG_PIXEL_DATA, "OW", (uint32_t)(bytes + cases[i].length));
        put_samples(&d.all, (size_t)(bytes + cases[i].there));
        expect_damage(cases[i].what, d.all, cases[i].damage);
    }
}

/* Headers that are odd. */
TEST(odd_elements)
{
    for (int which = 0; which < 7; which++) {
        static const char *const words[] = {NULL,
                                            "has an odd number of bytes: 3",
                                            "has more bytes than are there",
                                            "is in no sequence",
                                            NULL,
                                            "its header is that of an image",
                                            "has no data set"};
        struct dicom_bytes d = begin_scan(&(struct scan){EXPLICIT, 1});
        if (which == 1) {
            put_head(&d, 0x00281050, "DS", 3);
            append(&d.all, "100", 3);
        }
        if (which == 2) { /* an item that is longer than its sequence */
            put_head(&d, 0x00283000, "SQ", 16);
            put_head(&d, TAG_ITEM, "", 12);
            put_us(&d, 0x00280010, 1);
            append(&d.all, "\0\0", 2);
        }
        if (which == 3) put_head(&d, TAG_ITEM, "", 0);
        if (which == 4) { /* an implicit sequence that only seems to be one, with an odd number in it */
            put_head(&d, 0x00291010, "UN", 14);
            append(&d.all, "\xfe\xff\0\xe0\6\0\0\0\1\0\2\0\3\0", 14);
        }
        if (which < 5) {
            put_head(&d, TSR_TAG_PIXEL_DATA, "OW", 2 * ROWS * COLUMNS);
            put_samples(&d.all, 2 * ROWS * COLUMNS);
        }
        if (which == 6) d.all.size = 132 + 12 + 4;
        expect_damage(words[which] ? words[which] : "nothing", d.all, words[which]);
    }
    /* Bytes that only look like the begin of DICOM. */
    struct bytes text = copy_bytes("\x08\0\x05\0", 4);
    for (int i = 0; i < 500; i++) append(&text, "no image ", 9);
    expect_damage("another file", text, NULL);
}

/* Pixel data in fragments of RLE: a stream of two segments for each frame, the first of which ends with no
 * operations. */
static struct bytes encapsulated_with(uint32_t frames, uint32_t fragments, bool ends, size_t nothing)
{
    uint8_t *const noops = must(malloc(nothing + 1));
    memset(noops, 128, nothing + 1);
    struct dicom_bytes d = begin_scan(&(struct scan){"1.2.840.10008.1.2.5", frames});
    put_head(&d, TSR_TAG_PIXEL_DATA, "OB", TSR_UNDEFINED_LENGTH);
    put_head(&d, TAG_ITEM, "", 0);
    for (uint32_t f = 0; f < fragments; f++) {
        uint8_t head[64] = {2, 0, 0, 0, 64};
        struct bytes stream = {NULL, 0};
        for (int plane = 0; plane < 2; plane++) {
            if (plane == 1) head[8] = (uint8_t)(64 + stream.size), head[9] = (uint8_t)((64 + stream.size) >> 8);
            append(&stream, noops, plane == 0 ? nothing : 0);
            for (int row = 0; row < ROWS; row++) {
                append(&stream, &(uint8_t){COLUMNS - 1}, 1);
                for (int x = 0; x < COLUMNS; x++)
                    append(&stream, &(uint8_t){(uint8_t)(plane ? row * x * (int)(f + 1) : 3)}, 1);
            }
            if (stream.size % 2) append(&stream, "", 1);
        }
        put_head(&d, TAG_ITEM, "", (uint32_t)(sizeof head + stream.size));
        append(&d.all, head, sizeof head);
        append(&d.all, stream.data, stream.size);
        free(stream.data);
    }
    if (ends) put_head(&d, TAG_SEQUENCE_END, "", 0);
    free(noops);
    return d.all;
}

static struct bytes encapsulated(uint32_t frames, uint32_t fragments, bool ends)
{
    return encapsulated_with(frames, fragments, ends, 0);
}

TEST(fragments)
{
    static const uint8_t zeros[10];
    const size_t size = size_of(encapsulated(3, 3, true));
    expect_damage("whole", encapsulated(3, 3, true), NULL);
    expect_damage("zeros behind", with(encapsulated(3, 3, true), zeros, sizeof zeros), NULL);
    expect_damage("no end", encapsulated(3, 3, false), "it ends after fragment 3");
    expect_damage("half an end", cut(encapsulated(3, 3, true), size - 3), "it ends after fragment 3");
    expect_damage("a fragment that is cut", cut(encapsulated(3, 3, true), size - 100), "fragment 3 of its pixel data");
    expect_damage("a fragment missing", encapsulated(3, 2, true), "it has 3 frames, and its pixel data 2 fragments");
    expect_damage("no fragment", encapsulated(1, 0, true), "it has 1 frames, and its pixel data 0 fragments");
    /* A stream that ends before its plane does, in a fragment that is whole: the second segment begins too late. */
    struct bytes short_stream = encapsulated(1, 1, true);
    for (size_t at = 0; at + 72 < short_stream.size; at++) {
        static const uint8_t head[8] = {2, 0, 0, 0, 64};
        if (memcmp(short_stream.data + at, head, sizeof head) != 0) continue;
        memset(short_stream.data + at + 64 + 2 * (ROWS * (COLUMNS + 1)) - 100, 128, 100); /* no operations */
        break;
    }
    expect_damage("a short segment", short_stream, "the stream of frame 1 is damaged: its segment 2");
}

/* Streams of which more would have to be kept than they have: no operations are each a deviation. Their samples are
 * wanted, or not; the claim for those is larger than the one for the streams. */
TEST(samples_alone)
{
    enum { NOTHING = 12000 };
    for (uint32_t frames = 1; frames <= 3; frames += 2) {
        for (int only = 0; only < 2; only++) {
            struct tsr_compress_options options = TSR_COMPRESS_OPTIONS;
            struct tsr_report report = TSR_REPORT;
            struct tsr_error error = {0};
            struct tsr_buffer tsr, back;
            const struct bytes file = encapsulated_with(frames, frames, true, NOTHING);
            const struct tsr_data_source original = tsr_from_memory(file.data, file.size);
            const struct tsr_data_sink to_tsr = tsr_to_memory(&tsr), to_back = tsr_to_memory(&back);
            options.samples_only = only;
            expect(tsr_compress(engine, &original, &to_tsr, &options, &report, &error) == TSR_OK, "%s", error.text);
            expect(report.verified && report.has_image == only &&
                       report.promise == (only ? TSR_PROMISE_SAMPLES : TSR_PROMISE_FILE),
                   "%u frames: %s", frames, report.reason);
            expect(strstr(report.reason, only ? "samples alone" : "cannot be made again"), "%s", report.reason);
            expect(report.damage[0] == '\0', "%s", report.damage);
            const struct tsr_data_source made = tsr_from_memory(tsr.bytes, tsr.count);
            assert_int_equal(tsr_restore(engine, &made, &to_back, NULL, NULL), TSR_OK);
            const size_t plane = (size_t)ROWS * COLUMNS, samples = 2 * plane * frames;
            expect(only ? back.count > samples : back.count == file.size, "%zu bytes come back", back.count);
            for (size_t i = 0; i < plane * frames && only; i++) {
                const uint8_t *const sample = back.bytes + back.count - samples + 2 * i;
                const size_t f = i / plane, row = i % plane / COLUMNS, x = i % COLUMNS;
                expect(sample[1] == 3 && sample[0] == (uint8_t)(row * x * (f + 1)), "sample %zu", i);
            }
            tsr_buffer_free(&tsr);
            tsr_buffer_free(&back);
            free(file.data);
        }
    }
    /* A frame that cannot be decoded: all streams come back, and the other frames are coded as samples. */
    struct tsr_compress_options options = TSR_COMPRESS_OPTIONS;
    struct tsr_report report = TSR_REPORT;
    struct tsr_buffer tsr;
    struct bytes file = encapsulated(3, 3, true);
    size_t at = file.size, found = 0;
    while (found < 2) found += memcmp(file.data + --at, "\2\0\0\0\100\0\0\0", 8) == 0;
    file.data[at] = 3; /* segments of the second frame */
    const struct tsr_data_source original = tsr_from_memory(file.data, file.size);
    const struct tsr_data_sink sink = tsr_to_memory(&tsr);
    options.samples_only = true;
    assert_int_equal(tsr_compress(engine, &original, &sink, &options, &report, NULL), TSR_OK);
    expect(report.has_image && report.promise == TSR_PROMISE_FILE && !report.reason[0], "%s", report.reason);
    const struct tsr_data_source coded = tsr_from_memory(tsr.bytes, tsr.count);
    struct tsr_reader *reader = NULL;
    struct tsr_error error;
    uint8_t raster[2 * ROWS * COLUMNS];
    assert_int_equal(tsr_open(engine, &coded, &reader, NULL), TSR_OK);
    for (uint32_t frame = 0; frame < 3; frame++) {
        const enum tsr_status status = tsr_read_frame(reader, 0, frame, raster, sizeof raster, 0, &error);
        expect(status == (frame == 1 ? TSR_ERROR_CORRUPT : TSR_OK), "frame %u: %s", frame, tsr_status_name(status));
    }
    tsr_close(reader);
    tsr_buffer_free(&tsr);
    free(file.data);
}

/* ---- PNG ---------------------------------------------------------------------------------------------------- */

static void put_big(struct bytes *b, uint32_t value)
{
    const uint8_t word[4] = {(uint8_t)(value >> 24), (uint8_t)(value >> 16), (uint8_t)(value >> 8), (uint8_t)value};
    append(b, word, sizeof word);
}

static void put_chunk(struct bytes *b, const char *type, const void *bytes, size_t size)
{
    put_big(b, (uint32_t)size);
    const size_t at = b->size;
    append(b, type, 4);
    append(b, bytes, size);
    put_big(b, (uint32_t)crc32(0, b->data + at, (uInt)(size + 4)));
}

enum png_fault { NO_FAULT, BAD_ADLER, FEW_ROWS, BAD_FILTER, SPARE_BITS, BAD_CODE, PNG_FAULTS };

/* A grey image of 8 bits a pixel, or of one bit for SPARE_BITS, in two IDAT chunks, with text before and after them. */
static struct bytes make_png(enum png_fault fault)
{
    const bool is_bits = fault == SPARE_BITS;
    const uint8_t ihdr[13] = {0, 0, 0, COLUMNS + 1, 0, 0, 0, ROWS, is_bits ? 1 : 8, 0};
    const size_t row = 1 + (is_bits ? (COLUMNS + 8) / 8 : COLUMNS + 1), rows = ROWS - (fault == FEW_ROWS);
    struct bytes file = copy_bytes("\x89PNG\r\n\x1a\n", 8);
    uint8_t *const plain = must(calloc(rows, row));
    for (size_t i = 0; i < rows * row; i++) plain[i] = i % row == 0 ? 0 : is_bits ? 0x55 : (uint8_t)(i * i >> 6);
    if (fault == BAD_FILTER) plain[3 * row] = 9;
    uint8_t coded[4096];
    uLongf size = sizeof coded;
    assert_int_equal(compress(coded, &size, plain, (uLong)(rows * row)), Z_OK);
    if (fault == BAD_ADLER) coded[size - 1] ^= 1;
    if (fault == BAD_CODE) memset(coded + size / 2, 0xff, 20);
    put_chunk(&file, "IHDR", ihdr, sizeof ihdr);
    put_chunk(&file, "tEXt", "Comment\0before", 14);
    put_chunk(&file, "IDAT", coded, size / 2);
    put_chunk(&file, "IDAT", coded + size / 2, size - size / 2);
    put_chunk(&file, "tEXt", "Comment\0after", 13);
    put_chunk(&file, "IEND", "", 0);
    free(plain);
    return file;
}

TEST(png)
{
    static const char *const words[PNG_FAULTS] = {
        NULL, "wrong check (Adler-32)", "its pixels end early", "unknown filter 9", NULL, ""};
    const size_t size = size_of(make_png(NO_FAULT));
    for (int fault = 0; fault < PNG_FAULTS; fault++)
        expect_damage("a PNG", make_png((enum png_fault)fault), words[fault]);
    expect_damage("bytes behind", with(make_png(NO_FAULT), "more", 4), NULL);
    expect_damage("no IEND", cut(make_png(NO_FAULT), size - 12), "it has no IEND chunk");
    expect_damage("half of IEND", cut(make_png(NO_FAULT), size - 5), "is cut");
    expect_damage("half of a text", cut(make_png(NO_FAULT), size - 20), "is cut");
    expect_damage("a changed header", change(make_png(NO_FAULT), 18), "its chunk at byte 8 has a wrong CRC");
    expect_damage("a changed text", change(make_png(NO_FAULT), 45), "its chunk at byte 33 has a wrong CRC");
    expect_damage("a changed text behind", change(make_png(NO_FAULT), size - 20), "has a wrong CRC");
    expect_damage("changed pixels", change(make_png(NO_FAULT), 90), "its IDAT chunk number 1 has a wrong CRC");
    expect_damage("a changed IEND", change(make_png(NO_FAULT), size - 1), "has a wrong CRC");
    for (size_t at = 8; at < size; at += 29) expect_damage("cut", cut(make_png(NO_FAULT), at), "it ends early");
}

/* ---- gzip, NIfTI, PNM --------------------------------------------------------------------------------------- */

static struct bytes gzip_of(struct bytes plain)
{
    struct bytes file = {must(malloc(plain.size + 4096)), 0};
    z_stream z = {.next_in = plain.data, .avail_in = (uInt)plain.size, .next_out = file.data};
    z.avail_out = (uInt)plain.size + 4096;
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    file.size = z.total_out;
    deflateEnd(&z);
    free(plain.data);
    return file;
}

static struct bytes text_of(size_t size)
{
    struct rng r = {3};
    struct bytes text = {NULL, 0};
    while (text.size < size) append(&text, &(uint8_t){(uint8_t)('a' + rng_below(&r, 8) * rng_below(&r, 3))}, 1);
    return text;
}

TEST(gzip)
{
    static const uint8_t zeros[512];
    const size_t size = size_of(gzip_of(text_of(50000)));
    expect_damage("whole", gzip_of(text_of(50000)), NULL);
    expect_damage("zeros behind", with(gzip_of(text_of(50000)), zeros, sizeof zeros), NULL);
    for (int i = 0; i < 2; i++) { /* members */
        struct bytes second = gzip_of(text_of(30000)), both = with(gzip_of(text_of(50000)), second.data, second.size);
        if (i == 1) both.size -= 5;
        free(second.data);
        expect_damage(i ? "a second member that is cut" : "two members", both, i ? "is damaged: a deflate" : NULL);
    }
    expect_damage("a begun member", with(gzip_of(text_of(50000)), "\x1f\x8b\x08\0\0\0", 6), "is cut");
    expect_damage("wrong CRC", change(gzip_of(text_of(50000)), size - 6), "wrong check (CRC-32 or length)");
    expect_damage("wrong length", change(gzip_of(text_of(50000)), size - 4), "wrong check (CRC-32 or length)");
    for (size_t at = 100; at < size; at += size / 7)
        expect_damage("cut", cut(gzip_of(text_of(50000)), at), "ends too early");
    expect_damage("a small one", gzip_of(text_of(10)), NULL);
    expect_damage("a small one that is cut", cut(gzip_of(text_of(40)), 30), "ends too early");
}

/* NIfTI-1: 10 x 12 x 14 samples of a type, of so many bytes. */
static struct bytes nifti(uint8_t type, size_t bytes)
{
    uint8_t head[352] = {0};
    static const uint8_t sides[8] = {3, 10, 12, 14, 1, 1, 1, 1};
    head[0] = 348 & 255, head[1] = 348 >> 8;
    for (int i = 0; i < 8; i++) head[40 + 2 * i] = sides[i];
    head[70] = type;
    head[110] = 0xb0, head[111] = 0x43; /* 352 */
    memcpy(head + 344, "n+1", 4);
    struct bytes file = copy_bytes(head, sizeof head);
    put_samples(&file, bytes * 10 * 12 * 14);
    return file;
}

TEST(nifti_and_pnm)
{
    enum { INT16 = 4, FLOAT32 = 16, FLOAT64 = 64 };
    static const struct {
        uint8_t type;
        size_t bytes;
    } types[] = {{INT16, 2}, {FLOAT32, 4}, {FLOAT64, 8}};
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        const uint8_t type = types[i].type;
        const size_t bytes = types[i].bytes, size = size_of(nifti(type, bytes));
        expect_damage("a NIfTI", nifti(type, bytes), NULL);
        expect_damage("bytes behind", with(nifti(type, bytes), "more", 4), NULL);
        expect_damage("a NIfTI that is cut", cut(nifti(type, bytes), size - 1), "ends before its last sample");
        expect_damage("its gzip", gzip_of(nifti(type, bytes)), NULL);
        expect_damage("a cut one in gzip", gzip_of(cut(nifti(type, bytes), size - 100)), "ends before its last sample");
        const struct bytes gzip = gzip_of(nifti(type, bytes));
        expect_damage("a gzip that is cut", cut(gzip, gzip.size / 2), "ends too early");
        const struct bytes changed = gzip_of(nifti(type, bytes));
        expect_damage("a gzip with a wrong check", change(changed, changed.size - 7), "wrong check");
    }
    struct rng r = {5};
    expect_damage("a PGM", make_pgm(&r, 20, 20, 255), NULL);
    const struct bytes pgm = make_pgm(&r, 20, 20, 4095);
    expect_damage("a PGM that is cut", cut(pgm, pgm.size - 1), "it ends before its last sample");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(native_dicom),
        cmocka_unit_test(elements_behind),
        cmocka_unit_test(lengths_of_pixels),
        cmocka_unit_test(odd_elements),
        cmocka_unit_test(fragments),
        cmocka_unit_test(samples_alone),
        cmocka_unit_test(png),
        cmocka_unit_test(gzip),
        cmocka_unit_test(nifti_and_pnm),
    };
    return cmocka_run_group_tests(tests, create_engine, destroy_engine);
}
