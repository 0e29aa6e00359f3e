/* Packed files (io/formats/packed.h): streams in files become pieces, and pieces become the file. PACKED.md. */
#include "tests/unit/support.h"

#include <sys/resource.h>
#include <zlib.h>

#include "io/bytes/crc32.h"
#include "io/container/section.h"
#include "io/formats/packed.h"
#include "io/nodes/gzip/gzip.h"
#include "io/nodes/node.h"
#include "tests/unit/leaves.h"

enum { LIMIT = 1 << 24 };

static void put(struct tsr_bytes *b, const void *bytes, size_t size)
{
    assert_int_equal(tsr_bytes_put(b, bytes, size, NULL), TSR_OK);
}

static void put_u8(struct tsr_bytes *b, unsigned byte)
{
    put(b, &(uint8_t){(uint8_t)byte}, 1);
}

/* ---- Streams ----------------------------------------------------------------------------------------------- */

/* Bits of a scan. */
struct scan {
    struct tsr_bytes *out;
    uint32_t bits;
    int count;
};

static void put_bits(struct scan *s, uint32_t bits, int count)
{
    s->bits = s->bits << count | bits;
    for (s->count += count; s->count >= 8; s->count -= 8) {
        const unsigned byte = s->bits >> (s->count - 8) & 255;
        put_u8(s->out, byte);
        if (byte == 0xff) put_u8(s->out, 0);
    }
}

static uint32_t value_bits(int value)
{
    return (uint32_t)(value < 0 ? value + 15 : value);
}

/* Appends a baseline image of 128 x 8 * rows samples. All values are of category 4: DC differences, whose code is 0,
 * and up to 5 coefficients, whose code is 01. EOB is 00. */
static void put_jpeg(struct tsr_bytes *b, unsigned rows, struct rng *r)
{
    static const uint8_t dc_codes[5 + 16 + 1] = {0xff, 0xc4, 0, 20, 0x00, 1, [21] = 4},
                                           ac_codes[5 + 16 + 2] = {0xff, 0xc4, 0, 21, 0x10, 0, 2, [21] = 0, [22] = 4},
                                           scan[] = {0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0};
    const uint8_t frame[] = {0xff, 0xc0, 0, 11, 8, 0, (uint8_t)(8 * rows), 0, 128, 1, 1, 0x11, 0};
    put(b, "\xff\xd8\xff\xdb\0\x43\0", 7);
    for (int k = 0; k < 64; k++) put_u8(b, 8);
    put(b, frame, sizeof frame);
    put(b, dc_codes, sizeof dc_codes);
    put(b, ac_codes, sizeof ac_codes);
    put(b, scan, sizeof scan);
    struct scan s = {b, 0, 0};
    int dc = 0;
    for (unsigned i = 0; i < 16 * rows; i++) {
        const int step = dc > 0 ? -rng_between(r, 8, 15) : rng_between(r, 8, 15);
        dc += step;
        put_bits(&s, value_bits(step), 5);
        for (uint32_t left = 3; left > 0; left--)
            put_bits(&s, 1u << 4 | value_bits(rng_below(r, 2) ? rng_between(r, 8, 15) : -rng_between(r, 8, 15)), 6);
        put_bits(&s, 0, 2);
    }
    if (s.count > 0) put_bits(&s, (1u << (8 - s.count)) - 1, 8 - s.count);
    put(b, "\xff\xd9", 2);
}

enum { EXTRA = 4, NAME = 8, COMMENT = 16, CHECK = 2 };

/* Appends a member of gzip: digits by chance, of so many kinds. */
static void put_digits(struct tsr_bytes *b, int level, int flags, size_t size, uint32_t kinds, struct rng *r)
{
    uint8_t *const plain = must(malloc(size + 1)), *const coded = must(malloc(size + 4096));
    const uint8_t head[10] = {0x1f, 0x8b, 8, (uint8_t)flags, 1, 2, 3, 4, 0, 3};
    for (size_t i = 0; i < size; i++) plain[i] = (uint8_t)('0' + rng_below(r, kinds));
    z_stream z = {.next_in = plain, .avail_in = (uInt)size, .next_out = coded, .avail_out = (uInt)size + 4096};
    assert_int_equal(deflateInit2(&z, level, Z_DEFLATED, -15, 8, Z_FIXED), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    put(b, head, sizeof head);
    if (flags & EXTRA) put(b, "\3\0abc", 5);
    if (flags & NAME) put(b, "name", 5);
    if (flags & COMMENT) put(b, "a comment", 10);
    if (flags & CHECK) put(b, "xx", 2);
    put(b, coded, z.total_out);
    put(b, "crc?", 4);
    const uint8_t sizes[4] = {(uint8_t)size, (uint8_t)(size >> 8), (uint8_t)(size >> 16), 0};
    put(b, sizes, 4);
    deflateEnd(&z);
    free(plain);
    free(coded);
}

/* The same of ten digits, which zlib makes a third longer than they must be. */
static void put_gzip(struct tsr_bytes *b, int level, int flags, size_t size, struct rng *r)
{
    put_digits(b, level, flags, size, 10, r);
}

static void put_item(struct tsr_bytes *b, const struct tsr_bytes *value)
{
    const uint8_t head[8] = {0xfe, 0xff, 0, 0xe0, (uint8_t)value->size, (uint8_t)(value->size >> 8)};
    put(b, head, sizeof head);
    put(b, value->bytes, value->size);
}

/* What looks like DICOM, with items: of JPEG, of a JPEG that is cut and followed by other bytes, and of neither. */
static void put_dicom(struct tsr_bytes *b, struct rng *r)
{
    static const uint8_t preamble[128] = {0};
    put(b, preamble, sizeof preamble);
    put(b, "DICM and elements \xfe\xff\0\xe0\0\0\0\0", 26);
    for (int i = 0; i < 5; i++) {
        struct tsr_bytes value = {.limit = LIMIT};
        put_jpeg(&value, 30, r);
        if (i == 1) value.size = 300; /* not whole */
        if (i == 3) memcpy(value.bytes, "no", 2);
        put_item(b, &value);
        tsr_bytes_free(&value);
    }
    put(b, "\xfe\xff\xdd\xe0\0\0\0\0", 8);
}

/* ---- There and back ---------------------------------------------------------------------------------------- */

static enum tsr_status open_packed(struct tsr_bytes file, enum tsr_kind kind, struct tsr_input **input,
                                   struct tsr_source **source, struct tsr_error *error)
{
    *input = must(tsr_input_from_memory(file.bytes, file.size, "file"));
    const struct tsr_packing packing = {.kind = kind, .reason = "because"};
    return tsr_packed_open(*input, &packing, source, error);
}

/* The blob of a file that can be packed; counts: pieces of each kind. */
static struct tsr_bytes pack(struct tsr_bytes file, enum tsr_kind kind, struct tsr_header *header,
                             int counts[TSR_PIECE_KINDS])
{
    struct tsr_input *input;
    struct tsr_source *source;
    struct tsr_error error = {0};
    struct tsr_bytes blob = {.limit = LIMIT};
    expect(open_packed(file, kind, &input, &source, &error) == TSR_OK, "%s", error.text);
    *header = source->header;
    assert_true(header->recipe == TSR_RECIPE_PACKED && header->exact && header->kind == kind);
    assert_string_equal(header->reason, "because");
    blob.size = (size_t)source->blob_size[TSR_BLOB_PREFIX];
    blob.bytes = must(malloc(blob.size));
    blob.capacity = blob.size;
    const size_t steps[] = {1, 7, 1000, blob.size};
    for (size_t s = 0; s < COUNT_OF(steps); s++)
        for (size_t at = 0; at < blob.size; at += steps[s]) {
            const size_t now = blob.size - at < steps[s] ? blob.size - at : steps[s];
            uint8_t *const part = must(malloc(now));
            assert_int_equal(tsr_source_read_blob(source, TSR_BLOB_PREFIX, at, part, now, &error), TSR_OK);
            expect(s == 0 || memcmp(part, blob.bytes + at, now) == 0, "steps of %zu", steps[s]);
            memcpy(blob.bytes + at, part, now);
            free(part);
        }
    memset(counts, 0, TSR_PIECE_KINDS * sizeof *counts);
    for (size_t at = 0, used; at < blob.size;) {
        struct tsr_piece_head head;
        assert_int_equal(tsr_get_piece_head(blob.bytes + at, blob.size - at, &head, &used, &error), TSR_OK);
        assert_true(used > 0);
        counts[head.kind]++;
        at += used + (size_t)(head.size + head.residue);
    }
    tsr_source_close(source);
    tsr_input_close(input);
    return blob;
}

/* Makes the file of a blob that comes in steps; on TSR_OK it is the file. */
static enum tsr_status restore(const struct tsr_header *header, struct tsr_bytes blob, size_t step, size_t limit,
                               const struct tsr_bytes *file)
{
    struct tsr_output *output = must(tsr_output_to_memory());
    struct test_leaves leaves = {.blob = {{blob.bytes, blob.size, 0}}, .step = step};
    struct tsr_error error = {0};
    tsr_output_limit(output, limit);
    const enum tsr_status status = make_of(&leaves, header, output, &error);
    expect(status == TSR_OK || (status == TSR_ERROR_CORRUPT && error.text[0]), "%d: %s", (int)status, error.text);
    assert_true(tsr_output_size(output) <= limit);
    if (status == TSR_OK && file)
        expect(tsr_output_size(output) == file->size &&
                   (file->size == 0 || memcmp(tsr_output_bytes(output), file->bytes, file->size) == 0),
               "it comes back as another file");
    tsr_output_close(output);
    return status;
}

static void check(struct tsr_bytes *file, enum tsr_kind kind, int jpegs, int deflates, int bytes)
{
    struct tsr_header header;
    int counts[TSR_PIECE_KINDS];
    struct tsr_bytes blob = pack(*file, kind, &header, counts);
    const int inflated = counts[TSR_PIECE_DEFLATE] + counts[TSR_PIECE_PNG_IDAT];
    expect(counts[TSR_PIECE_BYTES] == bytes && counts[TSR_PIECE_JPEG] == jpegs && inflated == deflates,
           "%d, %d and %d pieces of %zu bytes", counts[TSR_PIECE_BYTES], counts[TSR_PIECE_JPEG], inflated, file->size);
    assert_int_equal(counts[TSR_PIECE_PNG_START], kind == TSR_KIND_PNG);
    assert_int_equal(counts[TSR_PIECE_PNG_END], kind == TSR_KIND_PNG && bytes % 2 == 0);
    assert_true(deflates > 0 || blob.size + 64 <= file->size);
    const size_t steps[] = {1, 3, 1000, blob.size};
    for (size_t i = 0; i < COUNT_OF(steps); i++)
        assert_int_equal(restore(&header, blob, steps[i], file->size, file), TSR_OK);
    assert_int_equal(restore(&header, blob, blob.size, file->size - 1, NULL), TSR_ERROR_CORRUPT);
    header.room--;
    assert_int_equal(restore(&header, blob, blob.size, file->size, NULL), TSR_ERROR_CORRUPT);
    tsr_bytes_free(&blob);
    tsr_bytes_free(file);
    file->limit = LIMIT;
}

TEST(jpeg)
{
    struct rng r = {1};
    struct tsr_bytes file = {.limit = LIMIT};
    for (unsigned rows = 28; rows < 32; rows++) {
        put_jpeg(&file, rows, &r);
        if (rows % 2) put(&file, "after the end", 13);
        check(&file, TSR_KIND_OTHER, 1, 0, 0);
    }
}

/* Damaged JPEG: what is before the fault becomes a piece, and the damage is noted. */
enum { CUT, NO_CODES, ZEROS, SECOND_CUT, SECOND_ALONE, CUT_IN_TIFF, JPEG_FAULTS };
static const char *const jpeg_damage[JPEG_FAULTS] = {
    [CUT] = "its JPEG stream ends within a scan near byte 1000",
    [NO_CODES] = "its JPEG stream has bits that are no code near byte 806",
    [ZEROS] = "its JPEG stream ends within a scan near byte 1000",
    [SECOND_CUT] = "its JPEG stream has no end: the marker EOI is missing",
    [SECOND_ALONE] = "",
    [CUT_IN_TIFF] = "",
};

TEST(jpeg_up_to_a_fault)
{
    static const int pieces[JPEG_FAULTS][2] = {{1, 1}, {1, 1}, {1, 1}, {2, 1}, {2, 2}, {2, 2}}; /* JPEG, bytes */
    struct rng r = {8};
    for (int i = 0; i < JPEG_FAULTS; i++) {
        struct tsr_bytes file = {.limit = LIMIT};
        if (i == CUT_IN_TIFF) put(&file, "II*\0 ", 5);
        put_jpeg(&file, 30, &r);
        if (i == NO_CODES) memset(file.bytes + 800, 0xfe, 20);
        const size_t whole = file.size;
        if (i == SECOND_ALONE) put(&file, "between", 7);
        if (i >= SECOND_CUT) put_jpeg(&file, 30, &r);
        if (i == ZEROS) memset(file.bytes + 1000, 0, file.size - 1000);
        if (i != NO_CODES && i != ZEROS) file.size = i >= SECOND_CUT ? whole + 1000 : 1000;
        struct tsr_input *input = must(tsr_input_from_memory(file.bytes, file.size, "file"));
        const struct tsr_source_options options = {.packs = true};
        struct tsr_source *source;
        assert_int_equal(tsr_source_open(input, &options, &source, NULL), TSR_OK);
        assert_int_equal(source->header.recipe, TSR_RECIPE_PACKED);
        expect(!strcmp(source->header.damage, jpeg_damage[i]), "%d: %s", i, source->header.damage);
        tsr_source_close(source);
        tsr_input_close(input);
        check(&file, TSR_KIND_OTHER, pieces[i][0], 0, pieces[i][1]);
    }
}

static void put_chunk(struct tsr_bytes *b, const char *type, const uint8_t *data, size_t size)
{
    const uint8_t length[4] = {(uint8_t)(size >> 24), (uint8_t)(size >> 16), (uint8_t)(size >> 8), (uint8_t)size};
    put(b, length, 4);
    put(b, type, 4);
    put(b, data, size);
    const uint32_t check = tsr_crc32(b->bytes + b->size - size - 4, size + 4);
    const uint8_t crc[4] = {(uint8_t)(check >> 24), (uint8_t)(check >> 16), (uint8_t)(check >> 8), (uint8_t)check};
    put(b, crc, 4);
}

/* Appends a gray image of 180 columns, too large for a small PNG, in a stream that is spread over chunks. */
static void put_png(struct tsr_bytes *b, unsigned rows, int level, size_t chunks, struct rng *r)
{
    const uint8_t ihdr[13] = {0, 0, 0, 180, 0, 0, 0, (uint8_t)rows, 8};
    uint8_t plain[181 * 255], stream[2 * sizeof plain];
    uLongf size = sizeof stream;
    for (size_t i = 0; i < sizeof plain; i++) plain[i] = (uint8_t)(i % 181 == 0 ? 0 : "aaaaabbbcd"[rng_next(r) % 10]);
    assert_int_equal(compress2(stream, &size, plain, (uLong)rows * 181, level), Z_OK);
    put(b, "\x89PNG\r\n\x1a\n", 8);
    put_chunk(b, "IHDR", ihdr, sizeof ihdr);
    for (size_t i = 0; i < chunks; i++)
        put_chunk(b, "IDAT", stream + size * i / chunks, size * (i + 1) / chunks - size * i / chunks);
    put_chunk(b, "IEND", ihdr, 0);
}

TEST(png)
{
    struct rng r = {5};
    struct tsr_bytes file = {.limit = LIMIT};
    for (unsigned rows = 200; rows < 204; rows++)
        for (int level = 1; level <= 9; level += 4) {
            put_png(&file, rows, level, 1 + (size_t)level / 4, &r);
            if (rows % 2) put(&file, "after the end", 13);
            check(&file, TSR_KIND_PNG, 0, 1, rows % 2);
        }
    for (int damage = 0; damage < 3; damage++) {
        struct tsr_input *input;
        struct tsr_source *source;
        struct tsr_error error = {0};
        put_png(&file, 200, 6, 2, &r);
        if (damage == 0) file.bytes[33 + 8 + (file.bytes[35] << 8 | file.bytes[36])] ^= 1; /* the first IDAT's CRC */
        if (damage == 1) file.bytes[33] = 0xff; /* the size of the IDAT chunk */
        if (damage == 2) file.bytes[23] = 1;    /* one row: the stream has more */
        if (damage == 0) {
            check(&file, TSR_KIND_PNG, 0, 1, 0);
            continue;
        }
        assert_int_equal(open_packed(file, TSR_KIND_PNG, &input, &source, &error), TSR_DECLINED);
        tsr_input_close(input);
        tsr_bytes_free(&file);
        file.limit = LIMIT;
    }
}

/* Appends frames of an animated PNG, of 180 columns, in chunks that have sequence numbers. */
static void put_frames(struct tsr_bytes *b, int frames, size_t chunks, struct rng *r)
{
    uint8_t plain[181 * 200], stream[2 * sizeof plain], part[4 + sizeof stream], number = 0;
    b->size -= 12; /* IEND */
    for (int frame = 0; frame < frames; frame++) {
        uLongf size = sizeof stream;
        const uint8_t fctl[26] = {0, 0, 0, number++, 0, 0, 0, 180, 0, 0, 0, 200};
        for (size_t i = 0; i < sizeof plain; i++)
            plain[i] = (uint8_t)(i % 181 == 0 ? 0 : "aaaaabbbcd"[rng_next(r) % 10]);
        assert_int_equal(compress2(stream, &size, plain, sizeof plain, 6), Z_OK);
        put_chunk(b, "fcTL", fctl, sizeof fctl);
        for (size_t i = 0; i < chunks; i++) {
            const size_t from = size * i / chunks, to = size * (i + 1) / chunks;
            memcpy(part, (const uint8_t[4]){0, 0, 0, number++}, 4);
            memcpy(part + 4, stream + from, to - from);
            put_chunk(b, "fdAT", part, 4 + to - from);
        }
    }
    put_chunk(b, "IEND", part, 0);
}

/* Each frame becomes a piece, if its chunks are in order; one with a wrong check, too. */
TEST(animated_png)
{
    struct rng r = {6};
    struct tsr_bytes file = {.limit = LIMIT};
    for (size_t chunks = 1; chunks < 6; chunks++) {
        put_png(&file, 200, 6, 2, &r);
        put_frames(&file, 2, chunks, &r);
        check(&file, TSR_KIND_PNG, 0, 3, 2);
    }
    put_png(&file, 200, 6, 2, &r);
    put_frames(&file, 2, 3, &r);
    file.bytes[file.size - 12 - 1] ^= 1; /* the last CRC */
    check(&file, TSR_KIND_PNG, 0, 3, 2);
    put_png(&file, 200, 6, 2, &r);
    put_frames(&file, 3, 1, &r);
    file.size -= 12 + 200; /* the last frame is cut */
    check(&file, TSR_KIND_PNG, 0, 3, 3);
    put_png(&file, 200, 6, 2, &r);
    put_frames(&file, 6, 2, &r);
    for (size_t i = file.size - 4, left = 1; left > 0; i--) {
        if (memcmp(file.bytes + i, "fdAT", 4) != 0) continue;
        file.bytes[i + 7]++; /* the last number */
        left = 0;
    }
    check(&file, TSR_KIND_PNG, 0, 6, 6);
}

TEST(gzip)
{
    struct rng r = {2};
    struct tsr_bytes file = {.limit = LIMIT};
    for (int level = 1; level <= 9; level++)
        for (int flags = 0; flags < 32; flags += 2) {
            put_gzip(&file, level, flags, 2000, &r);
            check(&file, TSR_KIND_OTHER, 0, 1, 2);
        }
    for (int members = 2; members < 5; members++) {
        for (int i = 0; i < members; i++) put_gzip(&file, 6, NAME, i == 1 ? 0 : 2000, &r);
        put(&file, "after the end", 13);
        check(&file, TSR_KIND_OTHER, 0, members, members + 1);
    }
    for (int i = 0; i < 5; i++) put_digits(&file, 6, 0, i == 4 ? 250000 : 400000, 2, &r);
    check(&file, TSR_KIND_OTHER, 0, 5, 6);
    put_gzip(&file, 6, 0, 3000, &r);
    const size_t whole = file.size;
    put_gzip(&file, 6, 0, 3000, &r);
    file.size = whole + 1000; /* the second one is cut */
    check(&file, TSR_KIND_OTHER, 0, 2, 3);
    put_gzip(&file, 6, 0, 3000, &r);
    file.size = 1000; /* the only one */
    check(&file, TSR_KIND_OTHER, 0, 1, 2);
    put_gzip(&file, 6, 0, 6000, &r);
    memset(file.bytes + 1500, 0, file.size - 1500);
    check(&file, TSR_KIND_OTHER, 0, 1, 2);
}

/* A stream with empty blocks, which is longer than what its piece takes: the room is as long as it. */
TEST(longer_than_its_piece)
{
    enum { BLOCKS = 4000, HEAD = 10 };
    struct rng r = {3};
    struct tsr_bytes digits = {.limit = LIMIT}, file = {.limit = LIMIT};
    struct tsr_header header;
    int counts[TSR_PIECE_KINDS];
    put_gzip(&digits, 6, 0, 4000, &r);
    put(&file, digits.bytes, HEAD);
    for (int i = 0; i < BLOCKS; i++) put(&file, "\0\0\0\xff\xff", 5);
    put(&file, digits.bytes + HEAD, digits.size - HEAD);
    struct tsr_bytes blob = pack(file, TSR_KIND_OTHER, &header, counts);
    assert_true(header.room == file.size - HEAD - 8);
    tsr_bytes_free(&blob);
    tsr_bytes_free(&digits);
    check(&file, TSR_KIND_OTHER, 0, 1, 2);
}

TEST(dicom)
{
    struct rng r = {3};
    struct tsr_bytes file = {.limit = LIMIT};
    for (int i = 0; i < 10; i++) {
        put_dicom(&file, &r);
        check(&file, TSR_KIND_DICOM, 3, 0, 4);
    }
}

/* Files that are stored as they are, and why. */
enum { ANY, BAD_JPEG, BAD_GZIP, SHORT_GZIP, CUT_GZIP, CUT_JPEG, STORED, ARITHMETIC, BAD_CODE, NO_CODE, BAD_CASES };
static const char *const reasons[BAD_CASES] = {
    [ANY] = "it is no PNG, PNM, DICOM, NIfTI or Y4M file",
    [BAD_JPEG] = "its JPEG stream cannot be coded: it has no scan",
    [BAD_GZIP] = "its gzip stream cannot be coded: its header is not valid",
    [SHORT_GZIP] = "it is not coded: it has only 117 bytes",
    [CUT_GZIP] = "its gzip stream cannot be coded: a deflate stream ends too early",
    [CUT_JPEG] = "its JPEG stream cannot be coded: it ends within a scan near byte 300",
    [STORED] = "coded it would not be smaller by 64 bytes", /* zstd makes as much of it as of plain bytes */
    [ARITHMETIC] = "its JPEG stream cannot be coded: it uses arithmetic coding",
    [BAD_CODE] = "its gzip stream cannot be coded: a deflate stream has a block of an unknown type near its byte 8",
    [NO_CODE] = "its JPEG stream cannot be coded: it has bits that are no code near byte 275",
};

static void put_bad(struct tsr_bytes *file, int which, struct rng *r)
{
    static const char *const begins[] = {[ANY] = "any", [BAD_JPEG] = "\xff\xd8\xff", [BAD_GZIP] = "\x1f\x8b\x07"};
    if (which <= BAD_GZIP) put(file, begins[which], 3);
    for (int k = 0; k < 3000 && which <= BAD_GZIP; k++) put_u8(file, rng_next(r) & 127);
    if (which == SHORT_GZIP) put_gzip(file, 6, 0, 100, r);
    if (which == CUT_GZIP || which == BAD_CODE) put_gzip(file, 6, NAME | EXTRA, 3000, r);
    if (which == CUT_JPEG || which == ARITHMETIC || which == NO_CODE) put_jpeg(file, 30, r);
    if (which == CUT_GZIP || which == CUT_JPEG) file->size = which == CUT_JPEG ? 300 : 260;
    if (which == STORED) put_gzip(file, 0, 0, 3000, r);
    if (which == ARITHMETIC) file->bytes[2 + 69 + 1] = 0xc9;
    if (which == BAD_CODE) file->bytes[10 + 5 + 5] |= 6;
    if (which == NO_CODE) memset(file->bytes + 270, 0xfe, 20);
}

/* What does not become smaller, or has no stream that is whole, is verbatim, and the file says why. */
TEST(not_packed)
{
    struct rng r = {4};
    struct tsr_bytes file = {.limit = LIMIT};
    for (int i = 0; i < BAD_CASES; i++) {
        put_bad(&file, i, &r);
        struct tsr_input *input = must(tsr_input_from_memory(file.bytes, file.size, "file"));
        const struct tsr_source_options options = {.packs = true};
        struct tsr_source *source;
        assert_int_equal(tsr_source_open(input, &options, &source, NULL), TSR_OK);
        assert_int_equal(source->header.recipe, TSR_RECIPE_VERBATIM);
        expect(!strcmp(source->header.reason, reasons[i]), "%d: %s", i, source->header.reason);
        tsr_source_close(source);
        tsr_input_close(input);
        tsr_bytes_free(&file);
    }
}

/* Of DICOM, the reason says what the file is, and why its streams stay, if it has any. */
TEST(dicom_not_packed)
{
    static const char *const wanted[] = {
        "because", "because", "because, and its JPEG stream cannot be coded: it ends within a scan near byte 300",
        "because, and its JPEG stream cannot be coded: it has no scan", "because"};
    struct rng r = {7};
    for (int i = 0; i < 5; i++) {
        struct tsr_bytes file = {.limit = LIMIT}, value = {.limit = LIMIT};
        struct tsr_input *input;
        struct tsr_source *source;
        struct tsr_error error = {0};
        put_jpeg(&value, 30, &r);
        value.size = i == 3 ? 270 : 300;
        if (i == 1) value.bytes[0] = 0;
        if (i == 4) value.bytes[3] = 0xf7;          /* JPEG-LS */
        if (i == 3) value.bytes[2 + 69 + 1] = 0xe0; /* no frame header */
        if (i == 3) memset(value.bytes + 2 + 69 + 2, 0, 100);
        put(&file, "any bytes of a header", 21);
        if (i > 0) put_item(&file, &value);
        for (int k = 0; k < 300; k++) put_u8(&file, rng_next(&r) & 127);
        assert_int_equal(open_packed(file, TSR_KIND_DICOM, &input, &source, &error), TSR_DECLINED);
        expect(!source && !strcmp(error.text, wanted[i]), "%d: %s", i, error.text);
        tsr_input_close(input);
        tsr_bytes_free(&value);
        tsr_bytes_free(&file);
    }
}

/* ---- Sources ----------------------------------------------------------------------------------------------- */

static enum tsr_status grant(struct tsr_memory_account *account, uint64_t bytes, struct tsr_error *error)
{
    (void)account;
    (void)bytes;
    (void)error;
    return TSR_OK;
}

static enum tsr_status refuse(struct tsr_memory_account *account, const struct tsr_header *header,
                              const struct tsr_need *need, struct tsr_error *error)
{
    (void)account;
    (void)header;
    return need->opening > 0 ? tsr_fail(error, TSR_ERROR_LIMIT, "no memory") : TSR_OK;
}

TEST(sources)
{
    struct rng r = {5};
    struct tsr_bytes file = {.limit = LIMIT};
    put_jpeg(&file, 30, &r);
    for (int i = 0; i < 4; i++) {
        struct tsr_memory_account account = {.claim_header = grant, .claim = refuse};
        struct tsr_input *input = must(tsr_input_from_memory(file.bytes, file.size, "file"));
        const struct tsr_source_options options = {
            .packs = i != 1, .verbatim = i == 2, .reason = i == 2 ? "I say so" : NULL};
        struct tsr_source *source;
        if (i == 3) tsr_input_set_account(input, &account);
        const enum tsr_status status = tsr_source_open(input, &options, &source, NULL);
        assert_int_equal(status, i == 3 ? TSR_ERROR_LIMIT : TSR_OK); /* no limit of memory changes what is made */
        if (i == 3) {
            assert_null(source);
            tsr_input_close(input);
            continue;
        }
        const struct tsr_header *const h = &source->header;
        expect(h->recipe == (i == 0 ? TSR_RECIPE_PACKED : TSR_RECIPE_VERBATIM), "case %d", i);
        assert_true(!tsr_has_frames(h) && h->exact && h->image.frames == 0);
        assert_string_equal(h->reason, i == 2 ? "I say so" : "it is no PNG, PNM, DICOM, NIfTI or Y4M file");
        tsr_source_close(source);
        tsr_input_close(input);
    }
    tsr_bytes_free(&file);
}

/* ---- Damage ------------------------------------------------------------------------------------------------ */

TEST(damaged_pieces)
{
    struct rng r = {6};
    int refused = 0;
    for (int i = 0; i < 30; i++) {
        struct tsr_bytes file = {.limit = LIMIT};
        struct tsr_header header;
        int counts[TSR_PIECE_KINDS];
        if (i % 3 == 0) put_jpeg(&file, 30, &r);
        if (i % 3 == 1) put_gzip(&file, 6, NAME, 3000, &r);
        if (i % 3 == 2) put_dicom(&file, &r);
        struct tsr_bytes blob = pack(file, i % 3 == 2 ? TSR_KIND_DICOM : TSR_KIND_OTHER, &header, counts);
        for (int k = 0; k < 200; k++) {
            struct tsr_bytes bad = {.limit = LIMIT};
            put(&bad, blob.bytes, k % 4 ? blob.size : rng_below(&r, (uint32_t)blob.size));
            const size_t near = k % 2 ? 60 : bad.size;
            for (int f = 0; f < k % 3 && bad.size > 0; f++)
                bad.bytes[rng_below(&r, (uint32_t)(near < bad.size ? near : bad.size))] ^=
                    (uint8_t)(1u << rng_below(&r, 8));
            refused += restore(&header, bad, 1 + rng_below(&r, 500), file.size + 100, NULL) != TSR_OK;
            tsr_bytes_free(&bad);
        }
        tsr_bytes_free(&blob);
        tsr_bytes_free(&file);
    }
    expect(refused > 2000, "only %d are refused", refused);
}

/* Sizes that no file has are refused before memory is taken for them. */
TEST(hostile_sizes)
{
    static const struct {
        const char *bytes;
        size_t size;
    } blobs[] = {
        {"\3\1a", 3},                                                                /* unknown kind */
        {"\0\0", 2},                                                                 /* nothing */
        {"\1\0", 2},                                                                 /* an empty JPEG */
        {"\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 11},                            /* 2^64 - 1 bytes */
        {"\1\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\1a", 13},                       /* no varint */
        {"\1\x80\x80\x80\x80\x10zz", 8},                                             /* 4 GiB of packed JPEG */
        {"\2\x80\x80\x80\x80\x10\1zz", 9},                                           /* 4 GiB of plain bytes */
        {"\2\1\x80\x80\x80\x80\x10zz", 9},                                           /* 4 GiB of residue */
        {"\2\xff\xff\xff\xff\xff\xff\xff\x7f\xff\xff\xff\xff\xff\xff\xff\x7fz", 18}, /* sums overflow */
        {"\0\3ab", 4},                                                               /* the end is missing */
        {"\0", 1},                                                                   /* half a head */
        {"\2\0\0", 3},                                                               /* no residue */
        {"\1\1\0", 3},                                                               /* no JPEG */
    };
    const struct tsr_header header = {.recipe = TSR_RECIPE_PACKED, .exact = true, .room = 1 << 20};
    for (size_t i = 0; i < COUNT_OF(blobs); i++)
        for (size_t step = 1; step <= blobs[i].size; step++) {
            const struct tsr_bytes blob = {.bytes = (uint8_t *)(uintptr_t)blobs[i].bytes, .size = blobs[i].size};
            expect(restore(&header, blob, step, 1 << 20, NULL) == TSR_ERROR_CORRUPT, "case %zu", i);
        }
    struct tsr_piece_head head;
    size_t used;
    assert_int_equal(tsr_get_piece_head((const uint8_t *)"\3\1\1", 3, &head, &used, NULL), TSR_ERROR_CORRUPT);
    const struct tsr_bytes empty = {0};
    assert_int_equal(restore(&header, empty, 1, 10, &empty), TSR_OK);
    for (int kind = 0; kind < TSR_PIECE_KINDS; kind++) {
        const struct tsr_node *const node = tsr_piece_node((enum tsr_piece_kind)kind);
        assert_true(tsr_unpacking_memory(UINT64_MAX, 5, node) >= UINT64_MAX / 2);
        assert_true(tsr_unpacking_memory(5, UINT64_MAX, node) >= UINT64_MAX / 2);
    }
}

static void run_all(void *pool, void (*work)(void *context, unsigned index), void *context, unsigned count)
{
    (void)pool;
    for (unsigned i = 0; i < count; i++) work(context, i);
}

/* A head that says half a gibibyte takes no memory by itself: pages are used as bytes come. */
TEST(a_head_alone)
{
    const struct tsr_piece_head head = {.kind = TSR_PIECE_DEFLATE, .size = 1 << 29};
    const struct tsr_header header = {.recipe = TSR_RECIPE_PACKED, .exact = true, .room = 1 << 30};
    uint8_t bytes[TSR_PIECE_HEAD_LIMIT + 8] = {0};
    struct tsr_output *output = must(tsr_output_to_memory());
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    struct test_leaves leaves = {.blob = {{bytes, tsr_put_piece_head(bytes, &head) + 8, 0}}, .step = 1000};
    const struct tsr_making making = {.leaves = {.read = read_test_leaf, .context = &leaves}, .crew = {run_all, NULL}};
    assert_int_equal(tsr_make(&header, &making, output, NULL), TSR_ERROR_CORRUPT);
    free(leaves.part);
    getrusage(RUSAGE_SELF, &after);
    expect(after.ru_maxrss - before.ru_maxrss < 64 << 10, "%ld KiB", after.ru_maxrss - before.ru_maxrss);
    tsr_output_close(output);
}

/* A suffix or residues are not a packed file's. */
TEST(other_blobs)
{
    const struct tsr_header header = {.recipe = TSR_RECIPE_PACKED, .exact = true, .room = 1 << 20};
    for (int blob = TSR_BLOB_SUFFIX; blob < TSR_BLOB_COUNT; blob++) {
        struct tsr_output *output = must(tsr_output_to_memory());
        struct test_leaves leaves = {.step = 1000};
        leaves.blob[blob].bytes = (const uint8_t *)"\0\1a";
        leaves.blob[blob].size = 3;
        assert_int_equal(make_of(&leaves, &header, output, NULL), TSR_ERROR_CORRUPT);
        tsr_output_close(output);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jpeg),
        cmocka_unit_test(jpeg_up_to_a_fault),
        cmocka_unit_test(gzip),
        cmocka_unit_test(longer_than_its_piece),
        cmocka_unit_test(dicom),
        cmocka_unit_test(not_packed),
        cmocka_unit_test(dicom_not_packed),
        cmocka_unit_test(sources),
        cmocka_unit_test(damaged_pieces),
        cmocka_unit_test(hostile_sizes),
        cmocka_unit_test(a_head_alone),
        cmocka_unit_test(other_blobs),
        cmocka_unit_test(png),
        cmocka_unit_test(animated_png),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
