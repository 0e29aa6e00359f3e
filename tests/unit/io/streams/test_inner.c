/* Files in files: the pieces that hold one, the inputs that stand in each other, and the lists of archives.
 * PACKED.md 2.
 */
#include "io/formats/packed_archive.h"
#include "io/input.h"
#include "io/recipe/pieces.h"
#include "tests/unit/leaves.h"

/* ---- Pieces ------------------------------------------------------------------------------------------------- */

/* Instead of a .tsr: a letter, which fills the file; '!' fails. */
static enum tsr_status fill_file(void *context, const uint8_t *tsr, size_t size, struct tsr_bytes *plain,
                                 struct tsr_error *error)
{
    (void)context;
    if (tsr[0] == '!' || size != 1) return tsr_fail(error, TSR_ERROR_CORRUPT, "a bad file");
    TSR_TRY(tsr_bytes_reserve(plain, plain->limit, error));
    memset(plain->bytes, tsr[0], plain->limit);
    plain->size = plain->limit;
    return TSR_OK;
}

static void run_all(void *pool, void (*work)(void *context, unsigned index), void *context, unsigned count)
{
    (void)pool;
    for (unsigned i = count; i-- > 0;) work(context, i);
}

struct blob_case {
    const char *blob;
    size_t size;
    uint32_t files;
    uint64_t room;
    enum tsr_status status;
    const char *text; /* of TSR_OK: the file */
};

static void check_blob(const struct blob_case *c, size_t number, size_t step, bool has_crew, bool restores)
{
    const struct tsr_header header = {.recipe = TSR_RECIPE_INNER, .exact = true, .room = c->room, .inner = c->files};
    struct tsr_output *const output = must(tsr_output_to_memory());
    struct test_leaves leaves = {.blob = {{(const uint8_t *)c->blob, c->size, 0}}, .step = step};
    struct tsr_making making = {
        .leaves = {.read = read_test_leaf, .file = restores ? fill_file : NULL, .context = &leaves}};
    if (has_crew) making.crew = (struct tsr_crew){run_all, NULL};
    tsr_output_limit(output, 64);
    struct tsr_error error = {0};
    const enum tsr_status status = tsr_make(&header, &making, output, &error),
                          wanted = c->status == TSR_OK && !restores ? TSR_ERROR_VERSION : c->status;
    expect(status == wanted, "case %zu: %s (%s)", number, tsr_status_name(status), error.text);
    if (status == TSR_OK)
        expect(tsr_output_size(output) == strlen(c->text) &&
                   memcmp(tsr_output_bytes(output), c->text, strlen(c->text)) == 0,
               "case %zu: %.*s", number, (int)tsr_output_size(output), (const char *)tsr_output_bytes(output));
    free(leaves.part);
    tsr_output_close(output);
}

TEST(pieces)
{
    static const struct blob_case cases[] = {
        {"\20\3\1a", 4, 1, 4, TSR_OK, "aaa"},
        {"\0\2zz\20\3\1a\0\1y\20\2\1b", 15, 2, 4, TSR_OK, "zzaaaybb"},
        {"\20\3\1a", 4, 2, 4, TSR_ERROR_CORRUPT, NULL},                                   /* fewer files */
        {"\20\3\1a\20\2\1b", 8, 1, 4, TSR_ERROR_CORRUPT, NULL},                           /* more files */
        {"\20\3\1a", 4, 1, 3, TSR_ERROR_CORRUPT, NULL},                                   /* more room */
        {"\20\3\1!", 4, 1, 9, TSR_ERROR_CORRUPT, NULL},                                   /* a bad file */
        {"\20\3\2aa", 5, 1, 9, TSR_ERROR_CORRUPT, NULL},                                  /* the same */
        {"\20\0\1a", 4, 1, 9, TSR_ERROR_CORRUPT, NULL},                                   /* an empty file */
        {"\20\3\0", 3, 1, 9, TSR_ERROR_CORRUPT, NULL},                                    /* nothing of it */
        {"\20\3\2a", 4, 1, 9, TSR_ERROR_CORRUPT, NULL},                                   /* a part of it */
        {"\20\200\1\1a", 5, 1, 999, TSR_ERROR_CORRUPT, NULL},                             /* longer than the file */
        {"\21\3\1a", 4, 1, 9, TSR_ERROR_CORRUPT, NULL},                                   /* JPEG that is a file */
        {"\23\3\1a", 4, 1, 9, TSR_ERROR_CORRUPT, NULL},                                   /* a PNG's start, too */
        {"\20\377\377\377\377\377\377\377\377\20\1a", 11, 1, 9, TSR_ERROR_CORRUPT, NULL}, /* 2^60 bytes, and more */
        {"\22\1\1a\377\377\377\377\377\377\377\377\20", 13, 1, 9, TSR_ERROR_CORRUPT, NULL},
        {"\22\1\1a", 4, 1, 9, TSR_ERROR_CORRUPT, NULL}, /* no residue's size */
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (size_t step = 1; step <= cases[i].size; step++)
            for (int way = 0; way < 4; way++) check_blob(&cases[i], i, step, way & 1, way < 2 || cases[i].status);
    const struct blob_case good = {"\20\3\1a", 4, 1, 4, TSR_OK, "aaa"};
    check_blob(&good, 99, 4, false, false);
    const struct tsr_header packed = {.recipe = TSR_RECIPE_PACKED, .exact = true, .room = 9};
    struct test_leaves leaves = {.blob = {{(const uint8_t *)"\20\3\1a", 4, 0}}, .step = 4};
    struct tsr_output *const output = must(tsr_output_to_memory());
    assert_int_equal(make_of(&leaves, &packed, output, NULL), TSR_ERROR_CORRUPT); /* which has no files in it */
    tsr_output_close(output);
}

/* ---- Inputs ------------------------------------------------------------------------------------------------- */

TEST(inputs)
{
    struct tsr_input *input[TSR_INNER_DEPTH + 2] = {tsr_input_from_memory("outer", 5, "name")};
    uint8_t bytes[2];
    for (int depth = 1; depth <= TSR_INNER_DEPTH; depth++)
        assert_int_equal(tsr_input_open_inner(input[depth - 1], "in", 2, &input[depth], NULL), TSR_OK);
    assert_int_equal(tsr_input_open_inner(input[TSR_INNER_DEPTH], "in", 2, &input[TSR_INNER_DEPTH + 1], NULL),
                     TSR_ERROR_CORRUPT);
    assert_null(input[TSR_INNER_DEPTH + 1]);
    assert_int_equal(tsr_input_read(input[TSR_INNER_DEPTH], 0, bytes, 2, NULL), TSR_OK);
    assert_memory_equal(bytes, "in", 2);
    assert_string_equal(tsr_input_name(input[2]), "name");
    tsr_input_begin_inner(input[0], 5, 1);
    const uint64_t most = TSR_INNER_BYTES + 5 * TSR_INNER_RATIO;
    assert_true(tsr_input_count_inner(input[0], most - 1));
    assert_false(tsr_input_count_inner(input[0], 2));
    assert_false(tsr_input_count_inner(input[0], UINT64_MAX));
    assert_true(tsr_input_count_inner(input[0], 1));
    assert_true(tsr_input_inner_bytes(input[0]) == most);
    tsr_input_begin_inner(input[0], 5, 1);
    assert_true(tsr_input_inner_bytes(input[0]) == 0);
    assert_true(tsr_inner_most(5000, 4) == TSR_INNER_BYTES + 4096 * TSR_INNER_RATIO); /* a .tsr that promises much */
    assert_true(tsr_inner_most(UINT64_MAX, UINT64_MAX) > UINT64_MAX / 4);
    struct tsr_input *inner;
    assert_int_equal(tsr_input_open_inner(input[0], "in", 2, &inner, NULL), TSR_OK);
    tsr_input_begin_inner(inner, UINT64_MAX, UINT64_MAX); /* it has what the outermost one has */
    assert_false(tsr_input_count_inner(inner, most + 1));
    assert_true(tsr_input_count_inner(inner, most));
    tsr_input_close(inner);
    for (int depth = TSR_INNER_DEPTH; depth >= 0; depth--) tsr_input_close(input[depth]);
}

/* ---- Archives ----------------------------------------------------------------------------------------------- */

static void put16(uint8_t *at, unsigned v)
{
    at[0] = (uint8_t)v;
    at[1] = (uint8_t)(v >> 8);
}

static void put32(uint8_t *at, uint32_t v)
{
    put16(at, v & 0xffff);
    put16(at + 2, v >> 16);
}

enum { ZIP_BYTES = 400, DATA = 33, CENTRAL = 100, END = 200 };

/* A ZIP with one member of 60 bytes, "abc" long in name. */
static void make_zip(uint8_t zip[ZIP_BYTES], unsigned method)
{
    memset(zip, 0, ZIP_BYTES);
    memcpy(zip, "PK\3\4", 4);
    put16(zip + 8, method);
    put32(zip + 18, 60);
    put32(zip + 22, 100);
    put16(zip + 26, 3);
    memcpy(zip + CENTRAL, "PK\1\2", 4);
    put16(zip + CENTRAL + 10, method);
    put32(zip + CENTRAL + 20, 60);
    put32(zip + CENTRAL + 24, 100);
    memcpy(zip + END, "PK\5\6", 4);
    put32(zip + END + 16, CENTRAL);
}

/* The list of an archive in memory. */
static struct tsr_archive list_of(const uint8_t *bytes, size_t size)
{
    struct tsr_archive archive;
    struct tsr_input *const input = must(tsr_input_from_memory(bytes, size, "archive"));
    assert_int_equal(tsr_list_archive(input, &archive, NULL), TSR_OK);
    tsr_input_close(input);
    return archive;
}

static void expect_members(const uint8_t *zip, size_t size, size_t count, const char *what)
{
    struct tsr_archive archive = list_of(zip, size);
    expect(archive.count == count, "%s: %zu members", what, archive.count);
    for (size_t i = 0; i < archive.count; i++) {
        const struct tsr_archive_member *const m = &archive.member[i];
        expect(m->start < size && m->size <= size - m->start && (i == 0 || m->start >= archive.member[i - 1].start),
               "%s: member %zu", what, i);
    }
    tsr_forget_archive(&archive);
}

TEST(zip)
{
    uint8_t zip[ZIP_BYTES];
    for (unsigned method = 0; method <= 9; method++) {
        make_zip(zip, method);
        expect_members(zip, END + 22, method == 0 || method == 8, "a method");
    }
    make_zip(zip, 8);
    struct tsr_archive archive = list_of(zip, END + 22);
    assert_true(archive.member[0].start == DATA && archive.member[0].size == 60 && archive.member[0].plain == 100 &&
                archive.member[0].kind == TSR_FOUND_DEFLATE);
    tsr_forget_archive(&archive);
    zip[6] = 1;
    expect_members(zip, END + 22, 0, "encrypted");
    make_zip(zip, 8);
    expect_members(zip, CENTRAL, 1, "without a directory");
    put32(zip + 18, 0);
    expect_members(zip, CENTRAL, 1, "without a size");
    expect_members(zip, END + 22, 1, "with a size in the directory alone");
    put32(zip + CENTRAL + 20, 0xfffffff0);
    expect_members(zip, END + 22, 1, "with a size that is too large");
    make_zip(zip, 0);
    put32(zip + CENTRAL + 20, 0xfffffff0);
    expect_members(zip, END + 22, 1, "stored, with a size that is too large in the directory");
    make_zip(zip, 8);
    put32(zip + CENTRAL + 42, 0xffffffff);
    put32(zip + 18, 0xffffffff);
    expect_members(zip, END + 22, 1, "a directory that leads nowhere");
    make_zip(zip, 8);
    for (size_t size = 0; size <= END + 22; size++) expect_members(zip, size, size > DATA, "cut");
    struct rng r = {7};
    for (int i = 0; i < 20000; i++) {
        make_zip(zip, 8);
        for (int k = 0; k < 4; k++) zip[rng_below(&r, END + 22)] = (uint8_t)rng_next(&r);
        archive = list_of(zip, END + 22);
        for (size_t m = 0; m < archive.count; m++)
            assert_true(archive.member[m].start < END + 22 &&
                        archive.member[m].size <= END + 22 - archive.member[m].start);
        tsr_forget_archive(&archive);
    }
}

/* An archive of which a function gives the bytes: of any size, all zeros but for some. */
struct sparse {
    uint64_t at[6];
    const uint8_t *part[6];
    size_t size[6];
    uint64_t reads; /* bytes */
};

static int64_t read_sparse(void *context, uint64_t offset, void *bytes, size_t count)
{
    struct sparse *const s = context;
    memset(bytes, 0, count);
    s->reads += count;
    for (size_t i = 0; i < COUNT_OF(s->at); i++)
        for (size_t k = 0; k < s->size[i]; k++)
            if (s->at[i] + k >= offset && s->at[i] + k - offset < count)
                ((uint8_t *)bytes)[s->at[i] + k - offset] = s->part[i][k];
    return (int64_t)count;
}

static struct tsr_archive list_sparse(struct sparse *s, uint64_t size)
{
    struct tsr_archive archive;
    const struct tsr_input_calls calls = {read_sparse, s, size};
    struct tsr_input *const input = must(tsr_input_from_calls(&calls, "archive"));
    assert_int_equal(tsr_list_archive(input, &archive, NULL), TSR_OK);
    tsr_input_close(input);
    return archive;
}

static void put64(uint8_t *at, uint64_t v)
{
    put32(at, (uint32_t)v);
    put32(at + 4, (uint32_t)(v >> 32));
}

/* ZIP64: a directory and a member behind 4 GiB, whose sizes and place stand in the extra field. Of the archive little
 * is read. */
TEST(zip64)
{
    static const uint64_t far = (uint64_t)5 << 30, size = far + 2000;
    uint8_t first[30] = "PK\3\4", local[30] = "PK\3\4", entry[46 + 8 + 28] = "PK\1\2", end64[56] = "PK\6\6",
            end[20 + 22] = "PK\6\7";
    put16(local + 8, 8);
    put32(entry + 20, UINT32_MAX);
    put32(entry + 24, UINT32_MAX);
    put16(entry + 30, 8 + 28);
    put32(entry + 42, UINT32_MAX);
    put16(entry + 46, 7); /* another field, of four bytes */
    put16(entry + 48, 4);
    put16(entry + 54, 1);
    put16(entry + 56, 24);
    put64(entry + 58, 1500); /* plain, stored, place */
    put64(entry + 66, 1000);
    put64(entry + 74, far);
    put64(end64 + 48, far + 1100);
    put64(end + 8, far + 1300);
    memcpy(end + 20, "PK\5\6", 4);
    put32(end + 20 + 16, UINT32_MAX);
    struct sparse s = {.at = {0, far, far + 1100, far + 1300, size - sizeof end},
                       .part = {first, local, entry, end64, end},
                       .size = {sizeof first, sizeof local, sizeof entry, sizeof end64, sizeof end}};
    struct tsr_archive archive = list_sparse(&s, size);
    assert_int_equal(archive.count, 1);
    assert_true(archive.member[0].start == far + 30 && archive.member[0].size == 1000 &&
                archive.member[0].plain == 1500 && archive.member[0].kind == TSR_FOUND_DEFLATE);
    assert_true(s.reads < 1 << 20);
    tsr_forget_archive(&archive);
    /* Where the place is not told, or the end of ZIP64 is nowhere, local headers are looked for. */
    const uint64_t near = 1 << 20;
    s.at[1] = near;
    s.at[2] = near + 1100;
    s.at[3] = near + 1300;
    s.at[4] = near + 2000 - sizeof end;
    put64(entry + 74, near);
    put64(end64 + 48, near + 1100);
    put64(end + 8, near + 1300);
    for (int way = 0; way < 3; way++) {
        if (way == 1) put16(entry + 56, 16);
        if (way == 1) put16(entry + 30, 8 + 20);
        if (way == 2) put64(end + 8, UINT64_MAX);
        archive = list_sparse(&s, near + 2000);
        assert_int_equal(archive.count, 1);
        assert_true(archive.member[0].start == near + 30 && archive.member[0].plain == (way == 0 ? 1500 : 0));
        tsr_forget_archive(&archive);
    }
}

/* ZIP64 without a directory, by what the local header tells. */
TEST(zip64_alone)
{
    uint8_t first[30] = "PK\3\4";
    uint8_t alone[30 + 20] = "PK\3\4";
    put32(alone + 18, UINT32_MAX);
    put32(alone + 22, UINT32_MAX);
    put16(alone + 28, 20);
    put16(alone + 30, 1);
    put16(alone + 32, 16);
    put64(alone + 34, 700);
    put64(alone + 42, 600);
    struct sparse s = {.at = {0, 3 << 20}, .part = {first, alone}, .size = {sizeof first, sizeof alone}};
    put16(first + 6, 1); /* encrypted */
    struct tsr_archive archive = list_sparse(&s, 4 << 20);
    assert_int_equal(archive.count, 1);
    assert_true(archive.member[0].start == (3 << 20) + 50 && archive.member[0].size == 600 &&
                archive.member[0].plain == 700 && archive.member[0].kind == TSR_FOUND_FILE);
    tsr_forget_archive(&archive);
}

/* A directory of more members than the old form counts, all of which lead to the same one. */
TEST(many)
{
    enum { MEMBERS = 100000, HEAD = 30 + 400 };
    const size_t size = HEAD + (size_t)MEMBERS * 46 + 22;
    uint8_t *const zip = calloc(1, size);
    assert_non_null(zip);
    memcpy(zip, "PK\3\4", 4);
    for (size_t i = 0; i < MEMBERS; i++) {
        uint8_t *const entry = zip + HEAD + 46 * i;
        memcpy(entry, "PK\1\2", 4);
        put32(entry + 20, 400);
        put32(entry + 24, 400);
    }
    memcpy(zip + size - 22, "PK\5\6", 4);
    put16(zip + size - 14, 0xffff);
    put32(zip + size - 6, HEAD);
    expect_members(zip, size, MEMBERS, "many");
    free(zip);
}

/* A TAR whose first member is longer than octal digits tell. */
TEST(long_tar)
{
    static const uint64_t far = (uint64_t)9 << 30;
    uint8_t first[512] = "a", second[512] = "b";
    memcpy(first + 257, "ustar", 5);
    first[124] = 0x80;
    first[131] = (uint8_t)(far >> 32);
    first[132] = (uint8_t)(far >> 24);
    memcpy(second + 257, "ustar", 5);
    memcpy(second + 124, "00000001000", 11);
    struct sparse s = {.at = {0, far + 512}, .part = {first, second}, .size = {sizeof first, sizeof second}};
    struct tsr_archive archive = list_sparse(&s, far + 512 * 4);
    assert_int_equal(archive.count, 2);
    assert_true(archive.member[0].size == far && archive.member[1].start == far + 1024 &&
                archive.member[1].size == 512);
    assert_true(s.reads < 1 << 12);
    tsr_forget_archive(&archive);
}

TEST(tar)
{
    static uint8_t tar[512 * 8];
    memcpy(tar + 257, "ustar", 5);
    memcpy(tar + 124, "00000001001", 11); /* 513 bytes, two blocks */
    tar[156] = '0';
    memcpy(tar + 512 * 3 + 257, "ustar", 5);
    memcpy(tar + 512 * 3 + 124, "00000000007", 11);
    expect_members(tar, sizeof tar, 2, "two files");
    tar[156] = '5';
    expect_members(tar, sizeof tar, 1, "a folder and a file");
    tar[156] = '0';
    for (size_t size = 0; size <= sizeof tar; size++)
        expect_members(tar, size, size < 512 + 513 ? 0 : size < 512 * 4 + 7 ? 1 : 2, "cut");
    memcpy(tar + 124, "77777777777", 11);
    expect_members(tar, sizeof tar, 0, "a file that is too long");
    tar[124] = 0x80;
    expect_members(tar, sizeof tar, 0, "a size that is not octal");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces),      cmocka_unit_test(inputs), cmocka_unit_test(zip),      cmocka_unit_test(zip64),
        cmocka_unit_test(zip64_alone), cmocka_unit_test(many),   cmocka_unit_test(long_tar), cmocka_unit_test(tar),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
