/* Streams of JPEG 2000 (io/nodes/j2k/) become samples and a residue, and come back. The generator makes
 * headers of all parameters, and residues of them; the writer makes their streams, and so does the reference decoder.
 * That these are JPEG 2000 is shown by a stream of OpenJPEG; tests/bench/streams_j2k.py compares many. J2K.md.
 */
#include "stream_trial.h"

#include "entropy/varint.h"
#include "io/nodes/j2k/j2k.h"
#include "tests/reference/streams/ref_streams.h"

enum { STREAM_LIMIT = 1 << 20, STREAMS = 300 };

/* What a stream of the generator is. */
struct made {
    struct tsr_image image;
    uint8_t *raster;
    struct text residue, stream;
    unsigned order, layers, style, flags;
    int levels, depth;
    bool has_sop, has_eph, mixes, is_signed;
};

static void put_number(struct text *t, uint32_t value, int size)
{
    while (size-- > 0) put(t, value >> 8 * size & 255);
}

static void put_varint(struct text *t, uint64_t value)
{
    uint8_t bytes[TSR_VARINT_LIMIT];
    put_all(t, bytes, tsr_put_varint(bytes, value));
}

/* ---- The generator ------------------------------------------------------------------------------------------- */

static void put_size(struct rng *r, struct text *h, const struct made *m)
{
    const uint32_t x0 = rng_below(r, 3) ? 0 : rng_below(r, 40), y0 = rng_below(r, 3) ? 0 : rng_below(r, 40);
    const bool has_tiles = rng_below(r, 3) == 0;
    const uint32_t tx0 = has_tiles ? rng_below(r, x0 + 1) : 0, ty0 = has_tiles ? rng_below(r, y0 + 1) : 0;
    put_number(h, 0xff4fff51, 4);
    put_number(h, 38 + 3u * m->image.components, 2);
    put_number(h, 0, 2);
    put_number(h, x0 + m->image.columns, 4);
    put_number(h, y0 + m->image.rows, 4);
    put_number(h, x0, 4);
    put_number(h, y0, 4);
    put_number(h, has_tiles ? x0 - tx0 + 1 + m->image.columns / (1 + rng_below(r, 3)) : x0 + m->image.columns, 4);
    put_number(h, has_tiles ? y0 - ty0 + 1 + m->image.rows / (1 + rng_below(r, 3)) : y0 + m->image.rows, 4);
    put_number(h, tx0, 4);
    put_number(h, ty0, 4);
    put_number(h, m->image.components, 2);
    for (int i = 0; i < m->image.components; i++)
        put_number(h, (uint32_t)(m->depth - 1 + 128 * m->is_signed) << 16 | 0x0101, 3);
}

/* What COD and COC share: levels, blocks, style, transform, precincts. */
static void put_coding(struct rng *r, struct text *h, const struct made *m, bool has_precincts)
{
    const unsigned width = rng_below(r, 9), height = rng_below(r, 9 - width);
    put(h, (unsigned)m->levels);
    put(h, width);
    put(h, height);
    put(h, m->style);
    put(h, 1);
    for (int i = 0; i <= m->levels && has_precincts; i++) {
        const unsigned x = 3 + rng_below(r, 6), y = 3 + rng_below(r, 6);
        put(h, x + 16 * y);
    }
}

static void put_quantisation(struct text *h, const struct made *m)
{
    put(h, 2 << 5);
    for (int i = 0; i <= 3 * m->levels; i++) put(h, (unsigned)(m->depth + 3) << 3);
}

static void put_head(struct rng *r, struct text *h, const struct made *m)
{
    const bool has_precincts = rng_below(r, 2);
    put_size(r, h, m);
    put_number(h, 0xff52, 2);
    put_number(h, 12 + (has_precincts ? (uint32_t)m->levels + 1 : 0), 2);
    put(h, 1u * has_precincts + 2u * m->has_sop + 4u * m->has_eph);
    put(h, m->order);
    put_number(h, m->layers, 2);
    put(h, m->mixes);
    put_coding(r, h, m, has_precincts);
    put_number(h, 0xff5c, 2);
    put_number(h, 4 + 3 * (uint32_t)m->levels, 2);
    put_quantisation(h, m);
    if (rng_below(r, 3) == 0) {
        put_number(h, 0xff53, 2);
        put_number(h, 9, 2);
        put(h, rng_below(r, m->image.components));
        put(h, 0);
        put_coding(r, h, m, false);
    }
    if (rng_below(r, 3) == 0) put_all(h, "\xff\x64\0\x07\0\1abc", 9);
}

/* Passes and bytes of the layers but the last one: as many passes as there are by chance, and the expected bytes. */
static void put_layers(struct rng *r, struct made *m, const struct text *head, const struct text *parts)
{
    struct tsr_j2k_codec c = {.image = &m->image};
    struct tsr_error error = {0};
    struct text *whole = must(malloc(sizeof *whole));
    size_t at = 0;
    uint32_t layer;
    *whole = *head;
    put_all(whole, parts->bytes, parts->size);
    assert_int_equal(tsr_j2k_read_head(&c.head, &m->image, whole->bytes, whole->size, &at, &error), TSR_OK);
    assert_int_equal(tsr_j2k_create(&c, STREAM_LIMIT, &error), TSR_OK);
    for (uint32_t t = 0; t < c.head.tiles; t++)
        assert_int_equal(tsr_j2k_open_part(&c, t, whole->bytes, whole->size, &at, &error), TSR_OK);
    assert_int_equal(tsr_j2k_take_raster(&c, m->raster, &error), TSR_OK);
    for (uint32_t t = 0; t < c.head.tiles; t++) {
        struct tsr_j2k_tile *const tile = &c.tile[t];
        for (uint32_t i = 0; i < tile->blocks; i++) assert_true(tsr_j2k_load_block(&c, tile, &tile->block[i]));
        const struct tsr_j2k_precinct *p;
        while ((p = tsr_j2k_next_packet(tile, &layer)) != NULL)
            for (int q = 0; q < p->parts; q++)
                for (uint32_t i = 0; i < p->part[q].count && layer + 1 < m->layers; i++) {
                    struct tsr_j2k_block *const b = &tile->block[p->part[q].first + i];
                    if (m->flags >> 3 == 1) b->cut = b->planes > 1;
                    const uint32_t passes = rng_below(r, tsr_j2k_all_passes(b) - b->passes + 1);
                    put_varint(&m->residue, passes);
                    if (passes > 0) put_varint(&m->residue, 0);
                    b->passes = (uint8_t)(b->passes + passes);
                }
    }
    tsr_j2k_free(&c);
    free(whole);
}

static uint32_t tiles_of(const struct text *head, const struct made *m)
{
    struct tsr_j2k_head h;
    struct tsr_error error;
    struct text *whole = must(malloc(sizeof *whole));
    size_t at;
    *whole = *head;
    put_number(whole, 0xff90, 2);
    assert_int_equal(tsr_j2k_read_head(&h, &m->image, whole->bytes, whole->size, &at, &error), TSR_OK);
    free(whole);
    return h.tiles;
}

static void make_residue(struct rng *r, struct made *m)
{
    struct text *head = must(calloc(1, sizeof *head)), *parts = must(calloc(1, sizeof *parts));
    put_head(r, head, m);
    const uint32_t tiles = tiles_of(head, m);
    put(&m->residue, m->flags);
    put_varint(&m->residue, head->size);
    put_all(&m->residue, head->bytes, head->size);
    for (uint32_t t = 0; t < tiles; t++) {
        const size_t start = parts->size;
        const uint32_t numbers[] = {0xff90, 10, t};
        for (int i = 0; i < 3; i++) put_number(parts, numbers[i], 2);
        put_number(parts, 0, 4); /* Psot: it is right */
        put_number(parts, 0x0001, 2);
        put_number(parts, 0xff93, 2);
        put_varint(&m->residue, parts->size - start);
        put_all(&m->residue, parts->bytes + start, parts->size - start);
        put_varint(&m->residue, 0);
    }
    put_varint(&m->residue, 0);
    put_varint(&m->residue, rng_below(r, 3));
    put_varint(&m->residue, 0); /* no deviations */
    put_layers(r, m, head, parts);
    free(head);
    free(parts);
}

static void draw(struct rng *r, struct made *m)
{
    const size_t bytes = m->image.bits_allocated / 8, size = raster_bytes(&m->image);
    const uint32_t range = (uint32_t)1 << m->depth, style = rng_below(r, 4), step = 1 + rng_below(r, range / 8 + 1);
    uint32_t value = rng_below(r, range);
    m->raster = must(malloc(size));
    for (size_t i = 0; i < size; i += bytes) {
        if (style == 0 || rng_below(r, style == 1 ? 8 : 100) == 0) value = (value + rng_below(r, step)) % range;
        if (style == 3) value = rng_below(r, range);
        const uint32_t sample = m->is_signed ? value - range / 2 : value;
        for (size_t b = 0; b < bytes; b++) m->raster[i + b] = (uint8_t)(sample >> 8 * b);
    }
}

/* flags: of the residue, with which the stream is made. */
static struct made *make(struct rng *r, unsigned flags)
{
    struct made *const m = must(calloc(1, sizeof *m));
    const bool is_wide = rng_below(r, 2);
    const int components = rng_between(r, 1, 4);
    const uint32_t columns = 1 + rng_below(r, 90), rows = 1 + rng_below(r, 60);
    m->image = image_of(columns, rows, components, is_wide ? 16 : 8, rng_below(r, 2));
    m->depth = is_wide ? rng_between(r, 2, 16) : rng_between(r, 1, 8);
    m->order = rng_below(r, 5);
    m->layers = rng_below(r, 2) ? 1 : 1 + rng_below(r, 5);
    m->style = rng_below(r, 3) ? 0 : 42 & rng_below(r, 64);
    m->levels = rng_between(r, 0, 6);
    m->has_sop = rng_below(r, 3) == 0;
    m->has_eph = rng_below(r, 3) == 0;
    m->mixes = components >= 3 && rng_below(r, 2);
    m->is_signed = rng_below(r, 3) == 0;
    m->flags = flags | rng_below(r, 4);
    if (m->has_sop && rng_below(r, 2)) m->flags |= TSR_J2K_HAS_SOP;
    draw(r, m);
    make_residue(r, m);
    struct tsr_bytes stream = {.limit = sizeof m->stream.bytes};
    struct tsr_error error = {0};
    const enum tsr_status status =
        tsr_node_join(&tsr_node_j2k, &m->image, m->raster, m->residue.bytes, m->residue.size, &stream, &error);
    expect(status == TSR_OK, "%s", error.text);
    put_all(&m->stream, stream.bytes, stream.size);
    tsr_bytes_free(&stream);
    return m;
}

static void end(struct made *m)
{
    free(m->raster);
    free(m);
}

/* ---- Tests --------------------------------------------------------------------------------------------------- */

static void expect_from_reference(const struct made *m, int number)
{
    const struct tsr_image *const image = &m->image;
    const struct ref_header header = {.columns = image->columns,
                                      .rows = image->rows,
                                      .components = image->components,
                                      .allocated = image->bits_allocated,
                                      .planar = image->planar};
    void *const mark = ref_mark();
    struct ref_stream s = {.header = &header, .raster = m->raster};
    s.residue = (struct ref_bytes){.data = m->residue.bytes, .size = m->residue.size};
    ref_clear();
    const bool good = ref_make_stream(&s, TSR_NODE_J2K);
    expect(good, "trial %d: the reference decoder: %s", number, ref_sentence());
    expect(s.size == m->stream.size && memcmp(s.data, m->stream.bytes, s.size) == 0,
           "trial %d: the reference decoder makes another stream", number);
    ref_release(mark);
}

/* The streams have the bytes that they had when OpenJPEG decoded them (tests/bench/streams_j2k.py). */
TEST(streams_come_back)
{
    struct rng r = {1};
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (int i = 0; i < STREAMS; i++) {
        struct made *const m = make(&r, 0);
        struct trial t = try_stream(&tsr_node_j2k, &m->image, m->stream.bytes, m->stream.size);
        expect(t.status == TSR_OK, "trial %d: %s", i, t.error.text);
        expect(t.is_exact, "trial %d: another stream came back: %s", i, t.error.text);
        expect(memcmp(t.raster, m->raster, raster_bytes(&m->image)) == 0, "trial %d: other samples", i);
        expect_from_reference(m, i);
        for (size_t at = 0; at < m->stream.size; at++) hash = (hash ^ m->stream.bytes[at]) * 0x100000001b3u;
        end_trial(&t);
        end(m);
    }
    expect(hash == 0xf4e043d5a2097580u, "the streams are others: %llx", (unsigned long long)hash);
}

/* The last pass of each block is missing: the samples are others, and may not fit their depth. */
TEST(missing_passes_come_back)
{
    struct rng r = {4};
    int exact = 0;
    for (int i = 0; i < 60; i++) {
        struct made *const m = make(&r, TSR_J2K_ALL_CUT << TSR_J2K_CUTS_SHIFT);
        struct trial t = try_stream(&tsr_node_j2k, &m->image, m->stream.bytes, m->stream.size);
        expect(t.status != TSR_OK || t.is_exact, "trial %d: another stream came back", i);
        expect(t.status == TSR_OK || strstr(t.error.text, "outside of their range"), "trial %d: %s", i, t.error.text);
        exact += t.status == TSR_OK;
        expect_from_reference(m, i);
        end_trial(&t);
        end(m);
    }
    expect(exact > 20, "only %d streams came back", exact);
}

/* Bytes of a stream that are others: the coded bytes of the last block deviate, or it is refused. */
TEST(deviations_come_back)
{
    struct rng r = {5};
    int longer = 0;
    for (int i = 0; i < 200; i++) {
        struct made *const m = make(&r, 0);
        const size_t tail = m->stream.bytes[m->stream.size - 2] == 0xff ? 2 : 3;
        if (m->stream.size > 300 && m->layers == 1) {
            m->stream.bytes[m->stream.size - tail - 1] ^= 1; /* its last bits mean nothing, or little */
            struct trial t = try_stream(&tsr_node_j2k, &m->image, m->stream.bytes, m->stream.size);
            longer += t.status == TSR_OK && t.is_exact;
            end_trial(&t);
        }
        end(m);
    }
    expect(longer > 20, "only %d streams with a deviation came back", longer);
}

static void expect_refusal(const struct made *m, size_t at, uint8_t byte, const char *why)
{
    struct text *const stream = must(malloc(sizeof *stream));
    *stream = m->stream;
    stream->bytes[at] = byte;
    expect_refused(&tsr_node_j2k, &m->image, stream, why);
    free(stream);
}

TEST(refusals_say_why)
{
    struct rng r = {6};
    struct made *m = make(&r, 0);
    const size_t cod = 44 + 3u * m->image.components - 2; /* after SOC and SIZ */
    assert_int_equal(m->stream.bytes[cod + 1], 0x52);
    expect_refusal(m, 1, 0x4e, "no JPEG 2000 stream");
    expect_refusal(m, 3, 0x52, "no size");
    expect_refusal(m, 11, (uint8_t)(m->stream.bytes[11] + 1), "not those of the image");
    expect_refusal(m, cod + 1, 0x5f, "the marker FF5F");
    expect_refusal(m, cod + 13, 0, "irreversible");
    expect_refusal(m, cod + 12, 1, "a style that is not supported");
    expect_refusal(m, cod + 10, 9, "too large");
    m->stream.size = m->stream.size / 2;
    expect_refused(&tsr_node_j2k, &m->image, &m->stream, "cut");
    end(m);
}

TEST(damaged_streams_do_no_harm)
{
    struct rng r = {2};
    for (int i = 0; i < 12; i++) {
        struct made *const m = make(&r, 0);
        if (m->stream.size < 1200) attack_stream(&tsr_node_j2k, &m->image, &m->stream, false, &r);
        end(m);
    }
}

TEST(damaged_residues_do_no_harm)
{
    struct rng r = {3};
    for (int i = 0; i < 30; i++) {
        struct made *const m = make(&r, 0);
        if (m->residue.size < 600) attack_residue(&tsr_node_j2k, &m->image, &m->stream, &r);
        end(m);
    }
}

/* Writes streams and rasters of the generator to files of a folder, for tests/bench/streams_j2k.py. */
static int keep_streams(const char *folder)
{
    struct rng r = {1};
    for (int i = 0; i < STREAMS; i++) {
        struct made *const m = make(&r, 0);
        char path[4096];
        for (int part = 0; part < 2; part++) {
            snprintf(path, sizeof path, "%s/%d_%d_%d.%s", folder, i, m->image.bits_allocated, m->image.planar,
                     part ? "raw" : "j2k");
            FILE *const file = must(fopen(path, "wb"));
            const size_t size = part ? raster_bytes(&m->image) : m->stream.size;
            if (fwrite(part ? m->raster : m->stream.bytes, 1, size, file) != size || fclose(file) != 0) return 1;
        }
        end(m);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2) return keep_streams(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_come_back),          cmocka_unit_test(missing_passes_come_back),
        cmocka_unit_test(deviations_come_back),       cmocka_unit_test(refusals_say_why),
        cmocka_unit_test(damaged_streams_do_no_harm), cmocka_unit_test(damaged_residues_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
