/* NIfTI: headers of both versions and byte orders, and gzip files that come back from their plain bytes and a residue.
 * FORMAT.md 4.1 and GZIP.md. */
#include "tests/unit/leaves.h"
#include "one_engine.h"

#include <zlib.h>

#include "io/bytes/crc32.h"
#include "io/nodes/gzip/gzip.h"
#include "streams/by_node.h"

enum { LIMIT = 1 << 24 };

/* ---- Files ------------------------------------------------------------------------------------------------- */

struct nifti {
    int version, type, intent;
    bool big_endian;
    int64_t sides[8]; /* the first is their number */
    int64_t first;    /* byte of the first sample; 0: not said */
    const char *magic;
};

static void store_number(uint8_t *to, int bytes, bool big_endian, uint64_t value)
{
    for (int i = 0; i < bytes; i++) to[i] = (uint8_t)(value >> 8 * (big_endian ? bytes - 1 - i : i));
}

/* The header, up to the first sample; bytes between them are 7. */
static struct bytes head_of(const struct nifti *n)
{
    const bool is_old = n->version == 1, big = n->big_endian;
    const int size = is_old ? 348 : 540, wide = is_old ? 2 : 8;
    uint8_t head[544] = {0};
    store_number(head, 4, big, (uint64_t)size);
    for (int i = 0; i < 8; i++) store_number(head + (is_old ? 40 : 16) + i * wide, wide, big, (uint64_t)n->sides[i]);
    store_number(head + (is_old ? 70 : 12), 2, big, (uint64_t)n->type);
    store_number(head + (is_old ? 68 : 504), is_old ? 2 : 4, big, (uint64_t)n->intent);
    const float single = (float)n->first;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    store_number(head + (is_old ? 108 : 168), wide == 2 ? 4 : 8, big, is_old ? bits : (uint64_t)n->first);
    memcpy(head + (is_old ? 344 : 4), n->magic ? n->magic : is_old ? "n+1" : "n+2\0\r\n\x1a\n", is_old ? 4 : 8);
    struct bytes b = copy_bytes(head, (size_t)size + 4);
    while (n->first > 0 && n->first < 10000 && b.size < (size_t)n->first) append(&b, "\7", 1);
    return b;
}

static void append_samples(struct bytes *b, size_t count, struct rng *r)
{
    uint8_t *const samples = must(malloc(count + 1));
    for (size_t i = 0; i < count; i++) samples[i] = (uint8_t)(i / 64 + rng_below(r, 4));
    append(b, samples, count);
    free(samples);
}

static struct tsr_source *open_source(struct bytes b, struct tsr_input **input)
{
    const struct tsr_source_options options = {0};
    struct tsr_source *source;
    *input = must(tsr_input_from_memory(b.data, b.size, "nifti"));
    assert_int_equal(tsr_source_open(*input, &options, &source, NULL), TSR_OK);
    return source;
}

static void check_paths(struct bytes b, int paths, const char *what)
{
    for (int path = 0; path < paths; path++)
        check_there_and_back(b, &(struct tsr_coding){.path = (enum tsr_path)path}, what);
}

/* ---- Headers ----------------------------------------------------------------------------------------------- */

static const struct sample_type {
    int type, components, bits;
    bool is_signed;
} types[] = {{2, 1, 8, false},   {4, 1, 16, true},    {8, 1, 32, true},    {128, 3, 8, false},
             {256, 1, 8, true},  {512, 1, 16, false}, {768, 1, 32, false}, {2304, 4, 8, false},
             {16, 1, 32, false}, {64, 1, 64, false},  {1024, 1, 64, true}, {1280, 1, 64, false}};

static void check_type(const struct sample_type *t, const struct nifti *n, struct rng *r)
{
    struct bytes b = head_of(n);
    const size_t first = n->first ? (size_t)n->first : b.size;
    append_samples(&b, 130 * 140 * 2 * (size_t)(t->components * t->bits / 8), r);
    append(&b, "suffix", 6);
    struct tsr_input *input;
    struct tsr_source *source = open_source(b, &input);
    const struct tsr_header *const h = &source->header;
    const struct tsr_image image = tsr_original_image(h), *const i = &image;
    const bool has_values = t->type == 16 || t->bits == 64;
    expect(h->kind == TSR_KIND_NIFTI && h->recipe == TSR_RECIPE_SPLICE && h->exact, "type %d, version %d: %s", t->type,
           n->version, h->reason);
    expect(i->columns == 130 && i->rows == 140 && i->frames == 2 && i->components == t->components &&
               i->bits_allocated == t->bits && i->bits_stored == t->bits && i->high_bit == t->bits - 1 &&
               i->is_signed == t->is_signed && !i->planar && i->big_endian == (n->big_endian && t->bits > 8),
           "type %d: %u x %u x %u", t->type, i->columns, i->rows, i->frames);
    expect(source->blob_size[TSR_BLOB_PREFIX] == first && source->blob_size[TSR_BLOB_SUFFIX] == 6, "type %d", t->type);
    expect((source->only_lossless != NULL) == (n->intent == 1002 || has_values) &&
               i->is_float == (has_values && t->type < 1024),
           "type %d, intent %d", t->type, n->intent);
    tsr_source_close(source);
    tsr_input_close(input);
    check_paths(b, 2, "a type");
    free(b.data);
}

TEST(types_and_orders)
{
    struct rng r = {1};
    for (size_t i = 0; i < COUNT_OF(types); i++)
        for (int k = 0; k < 4; k++) {
            const struct nifti n = {.version = 1 + k % 2,
                                    .big_endian = k / 2,
                                    .type = types[i].type,
                                    .intent = i % 2 ? 1002 : 3,
                                    .first = i % 3 == 0   ? 0
                                             : i % 3 == 1 ? 544 + (int64_t)i
                                                          : 9999,
                                    .sides = {4, 130, 140, 1, 2, 9, 0, -1}}; /* only four count */
            check_type(&types[i], &n, &r);
        }
}

/* Slices of a few samples stand below each other. */
TEST(small_slices)
{
    static const struct {
        int64_t sides[8];
        uint32_t columns, rows, frames;
    } cases[] = {
        {{3, 10, 8, 5}, 10, 40, 1},
        {{4, 64, 64, 4, 9}, 64, 256, 9},
        {{4, 64, 64, 5, 9}, 64, 64, 45},
        {{4, 64, 64, 5, 3}, 64, 64, 15},
        {{1, 500}, 500, 1, 1},
        {{2, 300, 200}, 300, 200, 1},
        {{5, 4, 4, 4, 64, 7}, 4, 1024, 7},
        {{5, 2, 1, 1, 200, 200}, 2, 200, 200},
        {{3, 129, 128, 3}, 129, 128, 3},
        {{3, 1, 1, 9000}, 1, 9000, 1},
    };
    struct rng r = {2};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct nifti n = {.version = 1, .type = 2};
        memcpy(n.sides, cases[i].sides, sizeof n.sides);
        struct bytes b = head_of(&n);
        append_samples(&b, (size_t)cases[i].columns * cases[i].rows * cases[i].frames, &r);
        struct tsr_input *input;
        struct tsr_source *source = open_source(b, &input);
        const struct tsr_image *const image = &source->header.image;
        expect(image->columns == cases[i].columns && image->rows == cases[i].rows && image->frames == cases[i].frames,
               "case %zu: %u x %u x %u, %s", i, image->columns, image->rows, image->frames, source->header.reason);
        tsr_source_close(source);
        tsr_input_close(input);
        check_paths(b, 2, "small slices");
        free(b.data);
    }
}

static void check_refused(struct bytes b, enum tsr_kind kind, const char *why)
{
    struct tsr_input *input;
    struct tsr_source *source = open_source(b, &input);
    const struct tsr_header *const h = &source->header;
    expect(h->recipe == TSR_RECIPE_VERBATIM && h->kind == kind && strstr(h->reason, why), "%s: %s", why, h->reason);
    tsr_source_close(source);
    tsr_input_close(input);
}

TEST(refused)
{
    static const struct {
        struct nifti n;
        const char *why;
    } cases[] = {
        {{1, 1536, 0, false, {2, 4, 4}, 0, NULL}, "floating-point"},
        {{1, 32, 0, true, {2, 4, 4}, 0, NULL}, "complex"},
        {{1, 1, 0, false, {2, 4, 4}, 0, NULL}, "1-bit"},
        {{1, 16, 0, false, {2, 4, 4}, 0, NULL}, "ends before its last sample: 64 bytes of samples, 16 are there"},
        {{1, 3, 0, false, {2, 4, 4}, 0, NULL}, "unknown type: 3"},
        {{1, 2, 0, false, {0, 4, 4}, 0, NULL}, "with 0 dimensions"},
        {{1, 2, 0, true, {8, 4, 4, 1, 1, 1, 1, 1}, 0, NULL}, "with 8 dimensions"},
        {{2, 2, 0, true, {-1, 4, 4}, 0, NULL}, "with -1 dimensions"},
        {{1, 2, 0, false, {3, 4, 0, 4}, 0, NULL}, "a size of 0 in dimension 2"},
        {{1, 2, 0, false, {3, -4, 4, 4}, 0, NULL}, "a size of -4 in dimension 1"},
        {{2, 2, 0, false, {3, 4, 4, INT64_MIN}, 0, NULL}, "in dimension 3"},
        {{2, 2, 0, false, {3, (int64_t)1 << 32, 4, 4}, 0, NULL}, "in dimension 1"},
        {{2, 2, 0, false, {3, 4, INT64_MAX, 4}, 0, NULL}, "in dimension 2"},
        {{2, 2, 0, false, {4, 4, 4, 1 << 20, 1 << 20}, 0, NULL}, "in dimension 4"},
        {{1, 2, 0, false, {7, 9999, 9999, 9999, 9999, 9999, 9999, 9999}, 0, NULL}, "in dimension 5"},
        {{2, 2, 0, false, {2, 65536, 4}, 0, NULL}, "65536"},
        {{1, 2, 0, false, {2, 4, 5}, 0, NULL}, "ends before its last sample: 20 bytes of samples, 16 are there"},
        {{1, 2, 0, false, {2, 4, 4}, 353, NULL}, "ends before its last sample"},
        {{1, 2, 0, false, {2, 4, 4}, (int64_t)1 << 32, NULL}, "ends before its last sample"},
        {{1, 2, 0, false, {2, 4, 4}, (int64_t)1 << 40, NULL}, "vox_offset"},
        {{2, 2, 0, true, {2, 4, 4}, INT64_MAX, NULL}, "ends before its last sample"},
        {{2, 2, 0, true, {2, 4, 4}, -1, NULL}, "vox_offset"},
        {{1, 2, 0, true, {2, 4, 4}, -400, NULL}, "vox_offset"},
        {{1, 2, 0, true, {2, 4, 4}, 347, NULL}, "vox_offset"},
        {{2, 2, 0, true, {2, 4, 4}, 539, NULL}, "vox_offset"},
    };
    static const struct nifti no_pairs[] = {{1, 2, 0, false, {2, 4, 4}, 0, "ni1"},
                                            {1, 2, 0, false, {2, 4, 4}, 0, "n+2"}};
    struct rng r = {3};
    for (size_t i = 0; i < COUNT_OF(cases) + COUNT_OF(no_pairs); i++) {
        const bool is_known = i < COUNT_OF(cases);
        struct bytes b = head_of(is_known ? &cases[i].n : &no_pairs[i - COUNT_OF(cases)]);
        append_samples(&b, is_known && cases[i].n.first == 353 ? 15 : 16, &r);
        check_refused(b, is_known ? TSR_KIND_NIFTI : TSR_KIND_OTHER, is_known ? cases[i].why : "no PNG");
        free(b.data);
    }
}

/* A header that is cut, at each byte, and one with each bit flipped. */
TEST(damaged_headers)
{
    struct rng r = {4};
    for (int version = 1; version <= 2; version++) {
        const struct nifti n = {.version = version, .type = 4, .sides = {3, 6, 5, 4}};
        struct bytes b = head_of(&n);
        const size_t head = b.size;
        append_samples(&b, 240, &r);
        for (size_t size = 1; size < b.size; size++) {
            const struct bytes part = copy_bytes(b.data, size);
            check_refused(part, size < head - 4 ? TSR_KIND_OTHER : TSR_KIND_NIFTI, "");
            free(part.data);
        }
        for (size_t bit = 0; bit < 8 * head; bit++) {
            b.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
            struct tsr_input *input;
            tsr_source_close(open_source(b, &input));
            tsr_input_close(input);
            b.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        free(b.data);
    }
}

/* ---- gzip -------------------------------------------------------------------------------------------------- */

struct deflating {
    int level, memory, strategy, window, flags;
};

static void put_member(struct bytes *b, const uint8_t *plain, size_t size, const struct deflating *how)
{
    const uint8_t head[10] = {0x1f, 0x8b, 8, (uint8_t)how->flags, 1, 2, 3, 4, 0, 3};
    const size_t room = size + size / 8 + 4096;
    uint8_t *const coded = must(malloc(room)), tail[8];
    z_stream z = {
        .next_in = (Bytef *)(uintptr_t)plain, .avail_in = (uInt)size, .next_out = coded, .avail_out = (uInt)room};
    assert_int_equal(deflateInit2(&z, how->level, Z_DEFLATED, -how->window, how->memory, how->strategy), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    append(b, head, sizeof head);
    if (how->flags & 4) append(b, "\3\0abc", 5); /* RFC 1952, 2.3: extra bytes, name, comment, check */
    if (how->flags & 8) append(b, "a.nii", 6);
    if (how->flags & 16) append(b, "a comment", 10);
    if (how->flags & 2) append(b, "xx", 2);
    append(b, coded, z.total_out);
    store_number(tail, 4, false, size > 0 ? crc32(0, plain, (uInt)size) : 0);
    store_number(tail + 4, 4, false, size);
    append(b, tail, sizeof tail);
    deflateEnd(&z);
    free(coded);
}

static struct bytes make_volume(struct rng *r, int version, int type, int slices)
{
    const struct nifti n = {
        .version = version, .type = type, .big_endian = version == 2, .sides = {3, 130, 140, slices}};
    struct bytes b = head_of(&n);
    append_samples(&b, (size_t)(130 * 140 * slices * (type == 2 ? 1 : 2)), r);
    append(&b, "suffix", 6);
    return b;
}

static void check_gzip(struct bytes b, uint64_t plain, size_t most, const char *what)
{
    struct tsr_input *input;
    struct tsr_source *source = open_source(b, &input);
    const struct tsr_header *const h = &source->header;
    expect(h->kind == TSR_KIND_NIFTI && tsr_is_in_gzip(h) && h->exact && source->only_lossless, "%s: %s", what,
           h->reason);
    const uint64_t made = tsr_all_rasters(&h->image) + source->blob_size[0] + source->blob_size[1];
    expect(made == plain, "%s: %llu plain bytes", what, (unsigned long long)made);
    expect(source->blob_size[TSR_BLOB_RESIDUES] <= most, "%s: %llu bytes of residues", what,
           (unsigned long long)source->blob_size[TSR_BLOB_RESIDUES]);
    tsr_source_close(source);
    tsr_input_close(input);
    check_paths(b, 1, what);
}

TEST(gzip_of_zlib)
{
    struct rng r = {5};
    for (int i = 0; i < 60; i++) {
        const struct deflating how = {i % 10, 1 + i % 9, i < 40 ? 0 : i % 5, 15 - i % 4, i % 16 * 2};
        struct bytes volume = make_volume(&r, 1 + i % 2, i % 3 ? 4 : 2, 1 + i % 3), b = {NULL, 0};
        char what[80];
        snprintf(what, sizeof what, "level %d, memory %d, strategy %d, window %d", how.level, how.memory, how.strategy,
                 how.window);
        put_member(&b, volume.data, volume.size, &how);
        if (i % 4 == 0) append(&b, "after the end", 13);
        check_gzip(b, volume.size, 2000, what);
        free(volume.data);
        free(b.data);
    }
}

/* How much memory a file claims follows from its header, not from what stands after its members. */
static uint64_t claimed, granted;

static enum tsr_status note_claim(struct tsr_memory_account *account, const struct tsr_header *header,
                                  const struct tsr_need *need, struct tsr_error *error)
{
    (void)account;
    (void)header;
    claimed = need->opening > need->held ? need->opening : need->held;
    return claimed > granted ? tsr_fail(error, TSR_ERROR_LIMIT, "no memory") : TSR_OK;
}

static enum tsr_status grant_header(struct tsr_memory_account *account, uint64_t bytes, struct tsr_error *error)
{
    (void)account;
    (void)bytes;
    (void)error;
    return TSR_OK;
}

TEST(gzip_claims)
{
    struct rng r = {12};
    static const struct deflating how = {6, 8, 0, 15, 0};
    for (int i = 0; i < 5; i++) { /* the last one gets no memory, which does not change what it becomes */
        struct tsr_memory_account account = {.claim_header = grant_header, .claim = note_claim};
        const struct tsr_source_options options = {0};
        struct bytes volume = make_volume(&r, 1, 4, 2), b = {NULL, 0};
        for (int k = 0; (i == 2 || i == 3) && k < (1 << 20) + (i == 3 ? 1 : 0) - 6; k++) append(&volume, "s", 1);
        put_member(&b, volume.data, volume.size, &how);
        if (i == 1) append(&b, "\xff\xff\xff\xff", 4);
        struct tsr_input *input = must(tsr_input_from_memory(b.data, b.size, "nifti"));
        struct tsr_source *source;
        tsr_input_set_account(input, &account);
        granted = i < 4 ? 4 * LIMIT : 1000;
        assert_int_equal(tsr_source_open(input, &options, &source, NULL), i < 4 ? TSR_OK : TSR_ERROR_LIMIT);
        expect(i == 4 || tsr_is_in_gzip(&source->header) == (i < 3), "case %d: %s", i, source->header.reason);
        expect(claimed >= volume.size && claimed < 11 * ((uint64_t)volume.size + (1 << 20)) + 8 * b.size + (4 << 20),
               "case %d claims %llu bytes", i, (unsigned long long)claimed);
        if (i < 4) tsr_source_close(source);
        tsr_input_close(input);
        free(volume.data);
        free(b.data);
    }
}

/* Members of any number. One of few plain bytes is the last; what follows it is bytes, and misses among the samples. */
TEST(gzip_members)
{
    struct rng r = {6};
    static const struct deflating how = {6, 8, 0, 15, 0};
    struct bytes volume = make_volume(&r, 1, 4, 3);
    for (size_t step = 16000; step < 60000; step += 1536) {
        struct bytes b = {NULL, 0};
        for (size_t at = 0; at < volume.size; at += step)
            put_member(&b, volume.data + at, volume.size - at < step ? volume.size - at : step, &how);
        if (step % 3072 < 1536) put_member(&b, volume.data, 0, &how);
        if (step < TSR_GZIP_LEAST)
            check_refused(b, TSR_KIND_NIFTI, "ends before its last sample");
        else
            check_gzip(b, volume.size, b.size / 20, "members");
        free(b.data);
    }
    free(volume.data);
}

TEST(gzip_refused)
{
    struct rng r = {7};
    static const struct deflating how = {6, 8, 0, 15, 8};
    static const struct nifti floats = {.version = 1, .type = 1536, .sides = {2, 100, 100}},
                              far = {.version = 2, .type = 2, .sides = {2, 100, 100}, .first = INT64_MAX},
                              huge = {.version = 2, .type = 8, .sides = {4, 30000, 1000, 100, 10}};
    for (int i = 0; i < 7; i++) {
        static const char *const why[] = {NULL, /* a wrong length, and a wrong CRC-32 */
                                          NULL,
                                          "ends too early",
                                          "last sample",
                                          "floating-point",
                                          "it ends before its last sample",
                                          "it ends before its last sample"};
        struct bytes volume = i == 4   ? head_of(&floats)
                              : i == 5 ? head_of(&far)
                              : i == 6 ? head_of(&huge)
                                       : make_volume(&r, 1, 4, 2);
        struct bytes b = {NULL, 0};
        put_member(&b, volume.data, volume.size - (i == 3 ? 7 : 0), &how);
        if (i < 2) b.data[b.size - 1 - 4 * (size_t)i] ^= 1;
        if (i == 2) b.size -= 1000;
        if (why[i])
            check_refused(b, TSR_KIND_NIFTI, why[i]);
        else
            check_gzip(b, volume.size, b.size / 20, "a wrong check");
        free(volume.data);
        free(b.data);
    }
}

/* ---- Damage ------------------------------------------------------------------------------------------------ */

/* A file that is cut at any byte or has other bits is refused, or comes back. */
TEST(damaged_gzip)
{
    struct rng r = {8};
    int read = 0;
    for (int i = 0; i < 150; i++) {
        const struct deflating how = {1 + i % 9, 8, 0, 15, i % 2 * 8};
        struct bytes volume = make_volume(&r, 1, 2, 1), b = {NULL, 0};
        put_member(&b, volume.data, volume.size, &how);
        put_member(&b, volume.data, volume.size, &how);
        for (int k = 0; k < i % 4; k++) b.data[rng_below(&r, (uint32_t)b.size)] ^= (uint8_t)(1u << rng_below(&r, 8));
        if (i % 3 == 0) b.size = rng_below(&r, (uint32_t)b.size);
        struct tsr_bytes plain = {.limit = 2 * volume.size}, residue = {.limit = LIMIT}, again = {.limit = b.size};
        if (split_by(&tsr_node_deflated, b.data, b.size, &plain, &residue, NULL) == TSR_OK) {
            read++;
            assert_int_equal(join_by(&tsr_node_deflated,
                                     (struct tsr_node_parts){plain.bytes, residue.bytes, plain.size, residue.size}, 0,
                                     &again, NULL),
                             TSR_OK);
            expect(again.size == b.size && memcmp(again.bytes, b.data, b.size) == 0, "file %d comes back as another",
                   i);
        }
        tsr_bytes_free(&plain);
        tsr_bytes_free(&residue);
        tsr_bytes_free(&again);
        free(volume.data);
        free(b.data);
    }
    expect(read > 20 && read < 130, "%d files are read", read);
}

/* Damaged residues, and other plain bytes, give an error or a file below the limit. */
TEST(damaged_residues)
{
    struct rng r = {9};
    struct bytes volume = make_volume(&r, 1, 2, 2), b = {NULL, 0};
    const struct deflating how = {6, 8, 0, 15, 8};
    put_member(&b, volume.data, 20000, &how);
    put_member(&b, volume.data + 20000, volume.size - 20000, &how);
    append(&b, "tail", 4);
    struct tsr_bytes plain = {.limit = LIMIT}, residue = {.limit = LIMIT};
    assert_int_equal(split_by(&tsr_node_deflated, b.data, b.size, &plain, &residue, NULL), TSR_OK);
    assert_int_equal(plain.size, volume.size);
    int refused = 0;
    for (int i = 0; i < 1000; i++) {
        const size_t size = i % 3 == 0 ? rng_below(&r, (uint32_t)residue.size) : residue.size;
        uint8_t *const bad = must(malloc(size + 1));
        struct tsr_bytes again = {.limit = b.size + 100};
        struct tsr_error error = {0};
        memcpy(bad, residue.bytes, size);
        for (int k = 0; k < i % 4 && size > 0; k++)
            bad[rng_below(&r, (uint32_t)size)] ^= (uint8_t)(1u << rng_below(&r, 8));
        const size_t plain_size = i % 5 == 0 ? rng_below(&r, (uint32_t)plain.size) : plain.size;
        const enum tsr_status status =
            join_by(&tsr_node_deflated, (struct tsr_node_parts){plain.bytes, bad, plain_size, size}, 0, &again, &error);
        expect(status == TSR_OK || (status == TSR_ERROR_CORRUPT && error.text[0]), "%d: %s", (int)status, error.text);
        assert_true(again.size <= b.size + 100);
        refused += status != TSR_OK;
        tsr_bytes_free(&again);
        free(bad);
    }
    expect(refused > 300, "only %d are refused", refused);
    tsr_bytes_free(&plain);
    tsr_bytes_free(&residue);
    free(volume.data);
    free(b.data);
}

/* Members of fewer bytes than an encoder makes: each would cost the work of beginning a stream. */
TEST(residue_of_small_members)
{
    struct rng r = {10};
    struct bytes volume = make_volume(&r, 1, 2, 2), b = {NULL, 0};
    const struct deflating how = {6, 8, 0, 15, 0};
    put_member(&b, volume.data, TSR_GZIP_LEAST, &how);
    put_member(&b, volume.data + TSR_GZIP_LEAST, volume.size - TSR_GZIP_LEAST, &how);
    struct tsr_bytes plain = {.limit = LIMIT}, residue = {.limit = LIMIT}, again = {.limit = b.size};
    assert_int_equal(split_by(&tsr_node_deflated, b.data, b.size, &plain, &residue, NULL), TSR_OK);
    assert_int_equal(join_by(&tsr_node_deflated,
                             (struct tsr_node_parts){plain.bytes, residue.bytes, plain.size, residue.size}, 0, &again,
                             NULL),
                     TSR_OK);
    assert_true(residue.bytes[0] == 0x80 && residue.bytes[1] == 0x80 && residue.bytes[2] == 1); /* 16384 */
    residue.bytes[1] = 0xff;
    residue.bytes[2] = 0; /* 16256 */
    again.size = 0;
    assert_int_equal(join_by(&tsr_node_deflated,
                             (struct tsr_node_parts){plain.bytes, residue.bytes, plain.size, residue.size}, 0, &again,
                             NULL),
                     TSR_ERROR_CORRUPT);
    tsr_bytes_free(&plain);
    tsr_bytes_free(&residue);
    tsr_bytes_free(&again);
    free(volume.data);
    free(b.data);
}

TEST(checks)
{
    struct rng r = {11};
    uint8_t bytes[1200]; /* from 1024 on, eight are taken at once */
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)rng_next(&r);
    for (size_t from = 0; from < 8; from++)
        for (size_t size = 0; size < sizeof bytes - from; size++)
            assert_int_equal(tsr_crc32(bytes + from, size), size > 0 ? crc32(0, bytes + from, (uInt)size) : 0);
}

/* From 2^19 bytes on, a crew has parts to check. */
TEST(checks_by_a_crew)
{
    enum { PART = 1 << 18, SIZE = 17 * PART + 5 };
    static const size_t sizes[] = {
        0, 1, PART, 2 * PART - 1, 2 * PART, 2 * PART + 1, 3 * PART - 1, 7 * PART + 3, 16 * PART, SIZE};
    struct rng r = {12};
    uint8_t *const bytes = must(malloc(SIZE));
    for (size_t i = 0; i < SIZE; i++) bytes[i] = (uint8_t)(rng_next(&r) >> 24);
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        unsigned parts = 0;
        const struct tsr_crew crew = {run_backwards, &parts};
        const uint32_t wanted = sizes[i] > 0 ? (uint32_t)crc32(0, bytes, (uInt)sizes[i]) : 0;
        assert_int_equal(tsr_crc32_by(&crew, bytes, sizes[i]), wanted);
        expect(parts == (sizes[i] < 2 * PART    ? 0
                         : sizes[i] / PART < 16 ? sizes[i] / PART
                                                : 16),
               "%u parts of %zu", parts, sizes[i]);
        assert_int_equal(tsr_crc32_by(NULL, bytes, sizes[i]), wanted);
    }
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(types_and_orders),
                                       cmocka_unit_test(small_slices),
                                       cmocka_unit_test(refused),
                                       cmocka_unit_test(damaged_headers),
                                       cmocka_unit_test(gzip_of_zlib),
                                       cmocka_unit_test(checks_by_a_crew),
                                       cmocka_unit_test(gzip_members),
                                       cmocka_unit_test(gzip_claims),
                                       cmocka_unit_test(gzip_refused),
                                       cmocka_unit_test(damaged_gzip),
                                       cmocka_unit_test(damaged_residues),
                                       cmocka_unit_test(checks),
                                       cmocka_unit_test(residue_of_small_members)};
    return cmocka_run_group_tests(tests, create_engine, destroy_engine);
}
