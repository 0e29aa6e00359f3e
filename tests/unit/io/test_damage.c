/* Damage: no changed byte of a .tsr and no missing end goes unnoticed. What stands twice is repaired. FORMAT.md 3.6. */
#include "one_engine.h"

/* Changes every byte of the file's .tsr in turn. least: bytes of all that stands twice, or follows from the rest. */
static void damage_file(const char *what, struct bytes original, int least)
{
    static const struct tsr_coding coding = {.path = TSR_PATH_PREDICT, .coder = TSR_CODER_HUFFMAN};
    const struct bytes tsr = compress_bytes(engine, original, &coding);
    struct bytes whole, restored;
    bool damaged;
    int repaired = 0;
    assert_true(tsr.size < 4000); /* a larger one takes long */
    assert_int_equal(restore_bytes(engine, tsr.data, tsr.size, &whole, &damaged), TSR_OK);
    assert_false(damaged);

    for (size_t at = 0; at < tsr.size; at++) {
        for (int bit = 0; bit < 9; bit++) {
            const uint8_t change = (uint8_t)(bit < 8 ? 1 << bit : 0xff);
            tsr.data[at] = (uint8_t)(tsr.data[at] ^ change);
            const enum tsr_status status = restore_bytes(engine, tsr.data, tsr.size, &restored, &damaged);
            tsr.data[at] = (uint8_t)(tsr.data[at] ^ change);
            expect(status == TSR_OK || status == TSR_ERROR_CORRUPT, "%s, byte %zu ^ %02x: %s", what, at, change,
                   tsr_status_name(status));
            if (status != TSR_OK) continue;
            expect(equal(restored, whole), "%s, byte %zu ^ %02x: other bytes are restored", what, at, change);
            expect(damaged, "%s, byte %zu ^ %02x: nobody notices", what, at, change);
            repaired++;
            free(restored.data);
        }
    }
    expect(repaired >= 9 * least, "%s: only %d changes were repaired", what, repaired);

    for (size_t size = 0; size < tsr.size; size++) {
        uint8_t *cut = must(malloc(size + 1)); /* of exactly this size, for the sanitizer */
        memcpy(cut, tsr.data, size);
        const enum tsr_status status = restore_bytes(engine, cut, size, &restored, &damaged);
        free(cut);
        expect(status == TSR_OK || status == (size < 4 ? TSR_ERROR_NOT_TSR : TSR_ERROR_CORRUPT), "%s, %zu bytes: %s",
               what, size, tsr_status_name(status));
        if (status == TSR_OK) {
            expect(equal(restored, whole), "%s, %zu of %zu bytes: other bytes are restored", what, size, tsr.size);
            expect(damaged, "%s, %zu of %zu bytes: nobody notices", what, size, tsr.size);
            free(restored.data);
        }
    }
    /* Bytes after the end: the footer is not where it should be. */
    for (size_t more = 1; more < 40; more++) {
        struct bytes longer = copy_bytes(tsr.data, tsr.size);
        for (size_t i = 0; i < more; i++) append(&longer, more % 2 ? "\0" : "R", 1);
        const enum tsr_status status = restore_bytes(engine, longer.data, longer.size, &restored, &damaged);
        expect(status == TSR_ERROR_CORRUPT || (status == TSR_OK && damaged && equal(restored, whole)),
               "%s, %zu bytes more: %s", what, more, tsr_status_name(status));
        free(restored.data);
        free(longer.data);
    }
    free(whole.data);
    free(tsr.data);
}

static void damage_all(const char *what, struct bytes original)
{
    tsr_small_files = false;
    damage_file(what, original, 60); /* signature, header, index, copy, footer */
    tsr_small_files = true;
    damage_file(what, original, 4); /* signature */
    free(original.data);
}

TEST(coded)
{
    struct rng r = {21};
    damage_all("PGM", make_pgm(&r, 23, 17, 255));
}

TEST(coded_in_two_tiles)
{
    struct bytes b = {NULL, 0};
    append(&b, "P5 1000 70 255\n", 15);
    for (int i = 0; i < 70000; i++) append(&b, i % 977 == 0 ? "\7" : "\5", 1);
    damage_all("PGM of two tiles", b);
}

TEST(verbatim)
{
    damage_all("text", copy_bytes("Nothing that is an image, but worth keeping: 0123456789 0123456789.", 68));
}

TEST(empty)
{
    damage_all("nothing", copy_bytes("", 0));
}

#if TSR_WITH_PNG
TEST(png)
{
    /* 8 x 4, grey of 4 bits; signature, IHDR, tEXt, IDAT (stored), IEND. */
    static const uint8_t rows[] = {0, 0x01, 0x23, 0x45, 0x67, 0, 0x89, 0xab, 0xcd, 0xef,
                                   0, 0xfe, 0xdc, 0xba, 0x98, 0, 7,    7,    7,    7};
    struct bytes b = {NULL, 0};
    append(&b, "\x89PNG\r\n\x1a\n", 8);
    struct {
        const char *type;
        struct bytes body;
    } chunks[4] = {{"IHDR", {NULL, 0}}, {"tEXt", {NULL, 0}}, {"IDAT", {NULL, 0}}, {"IEND", {NULL, 0}}};
    append(&chunks[0].body, "\0\0\0\10\0\0\0\4\4\0\0\0\0", 13);
    append(&chunks[1].body, "Comment\0kept", 12);
    uint32_t a = 1, s = 0; /* Adler-32 */
    for (size_t i = 0; i < sizeof rows; i++) s = (s + (a = (a + rows[i]) % 65521)) % 65521;
    const uint8_t adler[] = {(uint8_t)(s >> 8), (uint8_t)s, (uint8_t)(a >> 8), (uint8_t)a};
    append(&chunks[2].body, "\x78\x01\x01\x14\x00\xeb\xff", 7);
    append(&chunks[2].body, rows, sizeof rows);
    append(&chunks[2].body, adler, 4);
    for (int i = 0; i < 4; i++) {
        const size_t size = chunks[i].body.size;
        const uint8_t length[] = {0, 0, 0, (uint8_t)size};
        append(&b, length, 4);
        append(&b, chunks[i].type, 4);
        append(&b, chunks[i].body.data, size);
        uint32_t crc = UINT32_MAX;
        for (size_t k = b.size - size - 4; k < b.size; k++) {
            crc ^= b.data[k];
            for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
        }
        const uint8_t check[] = {(uint8_t)(~crc >> 24), (uint8_t)(~crc >> 16), (uint8_t)(~crc >> 8), (uint8_t)~crc};
        append(&b, check, 4);
        free(chunks[i].body.data);
    }
    const struct tsr_source_options options = {0};
    struct tsr_source *source;
    struct tsr_input *input = must(tsr_input_from_memory(b.data, b.size, "png"));
    assert_int_equal(tsr_source_open(input, &options, &source, NULL), TSR_OK);
    expect(source->header.recipe == TSR_RECIPE_PNG, "this test's PNG is none: %s", source->header.reason);
    tsr_source_close(source);
    tsr_input_close(input);
    damage_all("PNG", b);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coded),
        cmocka_unit_test(coded_in_two_tiles),
        cmocka_unit_test(verbatim),
        cmocka_unit_test(empty),
#if TSR_WITH_PNG
        cmocka_unit_test(png)
#endif
    };
    return cmocka_run_group_tests(tests, create_engine, destroy_engine);
}
