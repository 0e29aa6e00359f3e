/* Small files: what becomes one, what comes back, and hostile ones whose check holds. FORMAT.md 3.10. */
#include "one_engine.h"

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
    tsr_small_files = false;
    const struct bytes large = compress_bytes(engine, original, &coding);
    tsr_small_files = true;
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
    tsr_small_files = false;
    const struct bytes large = pack_bytes(original);
    tsr_small_files = true;
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

#define IMAGE "\x10\3\2\1\1\1\1\1\1\10\10\7\0\0\0" /* length; PNM, splice, exact; 1 x 1 sample */
#define PROOF "\1xxxxxxxxxxxxxxxx"
#define STORED "\5\3\0\0\1\0" PROOF

TEST(hostile)
{
    static const struct {
        const char *what, *bytes;
        size_t size;
    } cases[] = {
#define CASE(what, bytes) {what, bytes, sizeof bytes - 1}
        CASE("nothing", ""),
        CASE("no header", "\x40"),
        CASE("a header of three bytes", "\3\3\0\0"),
        CASE("a brief file without proof", "\0"),
        CASE("half a proof of a brief file", "\0\1xxx"),
        CASE("a brief file without code", "\0" PROOF),
        CASE("a brief file of any code", "\0" PROOF "any code"),
        CASE("a brief file of elements without proof", "\1"),
        CASE("a brief file of elements without code", "\1" PROOF),
        CASE("a brief file of other elements", "\1" PROOF "any code"),
        CASE("a brief file of another form", "\2" PROOF "any code"),
        CASE("a series", "\5\3\0\5\0\1" PROOF "\0"),
        CASE("no proof", "\5\3\0\0\1\0"),
        CASE("half a proof", "\5\3\0\0\1\0\1xxx"),
        CASE("65 parts", STORED "\x41"),
        CASE("2^63 parts", STORED "\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
        CASE("no parts, but bytes", STORED "\0x"),
        CASE("a part that is too long", STORED "\2\0\0\x7fxx"),
        CASE("parts whose sizes overflow", STORED "\3\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\2x"),
        CASE("an unknown part", STORED "\1Qx"),
        CASE("a blob of another kind", STORED "\1\6x"),
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
    tsr_small_files = false;
    const struct bytes large = compress_bytes(engine, original, &coding);
    tsr_small_files = true;
    struct bytes restored;
    bool damaged;
    large.data[4] = TSR_SECTION_SMALL;
    assert_int_equal(restore_bytes(engine, large.data, large.size, &restored, &damaged), TSR_OK);
    expect(damaged && equal(restored, original), "it is repaired by the copy");
    free(restored.data);
    free(large.data);
    free(original.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#if TSR_WITH_PNG
        cmocka_unit_test(brief),
#endif
        cmocka_unit_test(both_forms),
        cmocka_unit_test(stored),
        cmocka_unit_test(hostile),
        cmocka_unit_test(a_large_file_that_begins_as_a_small_one)
    };
    return cmocka_run_group_tests(tests, create_engine, destroy_engine);
}
