/* Small files: what becomes one, what comes back, and hostile ones whose check holds. FORMAT.md 3.10. */
#include "one_engine.h"
#include "tests/large_files.h"

static const struct tsr_coding coding = {.path = TSR_PATH_PREDICT, .coder = TSR_CODER_HUFFMAN};

/* Restores a .tsr and compares. */
static void expect_original(struct bytes tsr, struct bytes original, const char *what)
{
    struct bytes restored;
    bool damaged;
    const enum tsr_status status = restore_bytes(engine, tsr.data, tsr.size, &restored, &damaged);
    expect(status == TSR_OK && !damaged, "%s: %s", what, tsr_status_name(status));
    if (status != TSR_OK) return;
    expect(equal(restored, original), "%s: other bytes", what);
    free(restored.data);
}

/* An image, its .tsr as a small file and as one of many sections. Both come back. */
TEST(both_forms)
{
    struct rng r = {31};
    const struct bytes original = make_pgm(&r, 23, 17, 255), small = compress_bytes(engine, original, &coding);
    large_files = true;
    const struct bytes large = compress_bytes(engine, original, &coding);
    large_files = false;
    expect(small.data[4] == TSR_SECTION_SMALL && large.data[4] == TSR_SECTION_HEADER, "the forms");
    expect(small.size + 120 < large.size, "%zu bytes, and %zu", small.size, large.size);
    expect_original(small, original, "small");
    expect_original(large, original, "large");
    free(small.data);
    free(large.data);
    free(original.data);
}

/* What is stored as it is takes 64 bytes more at most, also with a reason, up to the limit of small files. */
TEST(stored)
{
    static const size_t sizes[] = {0, 1, 57, 128, 20000, TSR_SMALL_STORED, TSR_SMALL_STORED + 1};
    struct rng r = {32};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct bytes original = {NULL, 0};
        for (size_t k = 0; k < sizes[i]; k++) {
            const uint8_t byte = (uint8_t)rng_next(&r);
            append(&original, &byte, 1);
        }
        if (sizes[i] == 0) original = copy_bytes("", 0);
        const struct bytes tsr = compress_bytes(engine, original, &coding);
        const bool is_small = sizes[i] <= TSR_SMALL_STORED;
        expect((tsr.data[4] == TSR_SECTION_SMALL) == is_small, "%zu bytes: type %c", sizes[i], tsr.data[4]);
        expect(!is_small || tsr.size <= sizes[i] + TSR_SMALL_EXCESS, "%zu bytes become %zu", sizes[i], tsr.size);
        expect_original(tsr, original, "stored");
        free(tsr.data);
        free(original.data);
    }
}

#if TSR_WITH_PNG
/* The .tsr of a PNG that is packed. */
static struct bytes pack_bytes(struct bytes original)
{
    const struct tsr_source_options options = {
        .verbatim = true, .packs = true, .reason = "coded as samples it would be larger"};
    return compress_bytes_by(engine, original, &options, NULL);
}

/* A PNG of one sample becomes a brief file. All other bytes of it than the signature are checked. */
TEST(brief)
{
    static const uint8_t png[] = {0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48,
                                  0x44, 0x52, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x01, 0x00, 0x00, 0x00,
                                  0x01, 0x40, 0x69, 0xc9, 0xb2, 0x00, 0x00, 0x00, 0x0a, 0x49, 0x44, 0x41, 0x54, 0x78,
                                  0x01, 0x63, 0x60, 0x00, 0x00, 0x00, 0x02, 0x00, 0x01, 0x73, 0x75, 0x01, 0x18, 0x00,
                                  0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};
    const struct bytes original = copy_bytes(png, sizeof png), small = pack_bytes(original);
    expect(small.data[4] == TSR_SECTION_SMALL && small.data[5] == 0, "the form");
    expect(small.size <= 48, "%zu bytes", small.size);
    expect_original(small, original, "brief");
    for (size_t at = TSR_SIGNATURE_BYTES; at < small.size; at++) {
        struct bytes restored = {NULL, 0};
        bool damaged;
        small.data[at] ^= 1;
        expect(restore_bytes(engine, small.data, small.size, &restored, &damaged) != TSR_OK, "byte %zu", at);
        small.data[at] ^= 1;
    }
    /* With the right check, what is restored is still compared with the proof: a size of one byte, and the hash. */
    const size_t end = small.size - TSR_CHECK_BYTES, proof = TSR_SIGNATURE_BYTES + 2;
    for (size_t at = proof; at < proof + 1 + 16; at++) {
        struct bytes restored = {NULL, 0};
        bool damaged;
        small.data[at] ^= 1;
        tsr_put_u64(small.data + end, tsr_hash64_of(small.data, end));
        const enum tsr_status status = restore_bytes(engine, small.data, small.size, &restored, &damaged);
        expect(status == TSR_ERROR_CORRUPT, "proof %zu: %s", at - proof, tsr_status_name(status));
        small.data[at] ^= 1;
        tsr_put_u64(small.data + end, tsr_hash64_of(small.data, end));
    }
    expect_original(small, original, "brief again");
    large_files = true;
    const struct bytes large = pack_bytes(original);
    large_files = false;
    expect(large.data[4] == TSR_SECTION_HEADER, "the large form");
    expect_original(large, original, "large");
    free(large.data);
    free(small.data);
    free(original.data);
}
#endif

/* Bytes with the signature before them and the right check after them. */
static struct bytes sealed(const char *bytes, size_t size)
{
    struct bytes b = {NULL, 0};
    uint8_t check[TSR_CHECK_BYTES];
    append(&b, TSR_SIGNATURE "S", TSR_SIGNATURE_BYTES + 1);
    append(&b, bytes, size);
    tsr_put_u64(check, tsr_hash64_of(b.data, b.size));
    append(&b, check, sizeof check);
    return b;
}

#define IMAGE "\x10\4\2\1\1\1\1\1\1\10\10\7\0\0\0" /* length; PNM, splice, exact; 1 x 1 sample */
#define PROOF "\1xxxxxxxxxxxxxxxx"
#define STORED "\5\4\0\0\1\0" PROOF

TEST(hostile)
{
    static const struct {
        const char *what, *bytes;
        size_t size;
    } cases[] = {
#define CASE(what, bytes) {what, bytes, sizeof bytes - 1}
        CASE("nothing", ""),
        CASE("no header", "\x40"),
        CASE("a header of three bytes", "\3\4\0\0"),
        CASE("a brief file without proof", "\0"),
        CASE("half a proof of a brief file", "\0\1xxx"),
        CASE("a brief file without code", "\0" PROOF),
        CASE("a brief file of any code", "\0" PROOF "any code"),
        CASE("a brief file of elements without proof", "\1"),
        CASE("a brief file of elements without code", "\1" PROOF),
        CASE("a brief file of other elements", "\1" PROOF "any code"),
        CASE("a brief file of another form", "\2" PROOF "any code"),
        CASE("a series", "\5\4\0\5\0\1" PROOF "\0"),
        CASE("no proof", "\5\4\0\0\1\0"),
        CASE("half a proof", "\5\4\0\0\1\0\1xxx"),
        CASE("65 parts", STORED "\x41"),
        CASE("2^63 parts", STORED "\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
        CASE("no parts, but bytes", STORED "\0x"),
        CASE("a part that is too long", STORED "\2\0\0\x7fxx"),
        CASE("parts whose sizes overflow", STORED "\3\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\2x"),
        CASE("an unknown part", STORED "\1Qx"),
        CASE("a blob of another kind", STORED "\1\7x"),
        CASE("a zstd part without a size", STORED "\1\1"),
        CASE("a tile without a frame", STORED "\1Tx"),
        CASE("a tile after a blob", STORED "\3F\0T\0\1xx"),
        CASE("a frame like one before the first", STORED "\1G\1"),
        CASE("a frame like one 300 before", STORED "\1G\xac\2"),
        CASE("a frame like one, and more", STORED "\1G\1\1"),
#undef CASE
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct bytes file = sealed(cases[i].bytes, cases[i].size);
        struct bytes restored = {NULL, 0};
        bool damaged;
        const enum tsr_status status = restore_bytes(engine, file.data, file.size, &restored, &damaged);
        expect(status == TSR_ERROR_CORRUPT, "%s: %s", cases[i].what, tsr_status_name(status));
        free(file.data);
    }
}

/* The type of a large file's first section is damaged: the file is not taken for a small one. */
TEST(a_large_file_that_begins_as_a_small_one)
{
    struct rng r = {33};
    const struct bytes original = make_pgm(&r, 23, 17, 255);
    large_files = true;
    const struct bytes large = compress_bytes(engine, original, &coding);
    large_files = false;
    struct bytes restored;
    bool damaged;
    large.data[4] = TSR_SECTION_SMALL;
    assert_int_equal(restore_bytes(engine, large.data, large.size, &restored, &damaged), TSR_OK);
    expect(damaged && equal(restored, original), "it is repaired by the copy");
    free(restored.data);
    free(large.data);
    free(original.data);
}

/* ---- What a file will take ---------------------------------------------------------------------------------- */

enum { FRAMES_LIMIT = 40, SIDE = 4 };

struct shape {
    uint32_t frames, tiles; /* of a frame */
    uint32_t most;          /* bytes of a part */
    bool has_suffix;
};

/* Frames of random bytes. One frame in four has another one's model. */
static void put_frames(struct tsr_container_writer *writer, const struct shape *shape, struct rng *r)
{
    static uint8_t bytes[4096];
    for (uint32_t f = 0; f < shape->frames; f++) {
        if (f > 0 && rng_below(r, 4) == 0)
            assert_int_equal(tsr_container_put_frame_like(writer, f, NULL), TSR_OK);
        else
            assert_int_equal(tsr_container_put_frame(writer, bytes, rng_below(r, shape->most), NULL), TSR_OK);
        for (uint32_t t = 0; t < shape->tiles; t++) {
            const struct tsr_piece piece = {bytes, rng_below(r, shape->most)};
            assert_int_equal(tsr_container_put_tile(writer, &piece, 1, NULL), TSR_OK);
        }
    }
}

static struct tsr_container_writer *begin_shape(const struct shape *shape, struct tsr_output *output)
{
    struct tsr_container_writer *writer;
    struct tsr_header header = {.recipe = TSR_RECIPE_SPLICE, .exact = true};
    header.coding.coder = TSR_CODER_HUFFMAN;
    header.image = (struct tsr_image){.columns = SIDE, .rows = SIDE, .frames = shape->frames, .components = 1};
    header.image.bits_allocated = header.image.bits_stored = 8;
    header.image.high_bit = 7;
    assert_int_equal(tsr_container_begin(output, &header, &writer, NULL), TSR_OK);
    assert_int_equal(tsr_container_put_blob(writer, TSR_BLOB_PREFIX, "a prefix", 8, NULL), TSR_OK);
    return writer;
}

static void end_shape(struct tsr_container_writer *writer)
{
    const struct tsr_proof proof = {.original_size = 1000000};
    assert_int_equal(tsr_container_end(writer, &proof, NULL), TSR_OK);
    tsr_container_writer_free(writer);
}

/* What is known before the end differs from the file's bytes by the same number whatever the frames are; and a trial
 * says of other frames what a file of them says. */
TEST(bytes_to_be)
{
    struct rng r = {77};
    int small = 0, large = 0;
    for (int n = 0; n < 400; n++) {
        const struct shape shape = {1 + rng_below(&r, n % 2 ? 3 : FRAMES_LIMIT), 1 + rng_below(&r, 3),
                                    n % 3 ? 140 : 4000, n % 4 == 0};
        uint64_t rest[2] = {0, 0}; /* bytes that no frame changes, of large and of small files */
        struct tsr_output *const first_output = must(tsr_output_to_memory());
        struct tsr_container_writer *const first = begin_shape(&shape, first_output);
        put_frames(first, &shape, &r);
        if (shape.has_suffix)
            assert_int_equal(tsr_container_put_blob(first, TSR_BLOB_SUFFIX, "suffix", 6, NULL), TSR_OK);
        for (int k = 0; k < 4; k++) {
            struct tsr_output *const output = must(tsr_output_to_memory()), *const nothing = must(tsr_output_to_null());
            struct tsr_container_writer *const writer = begin_shape(&shape, output), *trial;
            struct rng same = r;
            put_frames(writer, &shape, &r);
            if (shape.has_suffix)
                assert_int_equal(tsr_container_put_blob(writer, TSR_BLOB_SUFFIX, "suffix", 6, NULL), TSR_OK);
            assert_int_equal(tsr_container_begin_trial(first, nothing, &trial, NULL), TSR_OK);
            put_frames(trial, &shape, &same);
            const uint64_t bytes = tsr_container_bytes_to_be(writer), tried = tsr_container_bytes_to_be(trial);
            end_shape(writer);
            const bool is_small = tsr_output_bytes(output)[TSR_SIGNATURE_BYTES] == TSR_SECTION_SMALL;
            const uint64_t now = tsr_output_size(output) - bytes;
            expect(rest[is_small] == 0 || rest[is_small] == now, "case %d: %d too many", n,
                   (int)(now - rest[is_small]));
            expect(tried == bytes || is_small, "case %d: a trial of %d instead of %d bytes", n, (int)tried, (int)bytes);
            rest[is_small] = now;
            small += is_small && tried == bytes; /* a trial of a large file is one of a large file */
            large += !is_small;
            tsr_container_writer_free(trial);
            tsr_output_close(nothing);
            tsr_output_close(output);
        }
        end_shape(first);
        tsr_output_close(first_output);
    }
    expect(small > 300 && large > 200, "%d small files, %d large ones", small, large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#if TSR_WITH_PNG
        cmocka_unit_test(brief),
#endif
        cmocka_unit_test(bytes_to_be),
        cmocka_unit_test(both_forms),
        cmocka_unit_test(stored),
        cmocka_unit_test(hostile),
        cmocka_unit_test(a_large_file_that_begins_as_a_small_one)
    };
    return cmocka_run_group_tests(tests, create_engine, destroy_engine);
}
