/* What the tests of streams share: a stream goes through a kind's read and write in memory of exactly its size, so that
 * sanitizers see each byte too many. */
#ifndef TSR_TESTS_UNIT_IO_STREAM_TRIAL_H
#define TSR_TESTS_UNIT_IO_STREAM_TRIAL_H

#include "io/nodes/node.h"
#include "tests/unit/support.h"

/* Bytes that a test puts together. */
struct text {
    uint8_t bytes[1 << 16];
    size_t size;
};

static inline void put(struct text *t, unsigned byte)
{
    assert_true(t->size < sizeof t->bytes);
    t->bytes[t->size++] = (uint8_t)byte;
}

static inline void put_all(struct text *t, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) put(t, ((const uint8_t *)bytes)[i]);
}

static inline uint8_t *copy_of(const void *bytes, size_t size)
{
    uint8_t *copy = must(malloc(size + (size == 0)));
    if (size > 0) memcpy(copy, bytes, size);
    return copy;
}

static inline struct tsr_image image_of(uint32_t columns, uint32_t rows, int components, int bits, bool planar)
{
    return (struct tsr_image){.columns = columns,
                              .rows = rows,
                              .frames = 1,
                              .components = (uint8_t)components,
                              .bits_allocated = (uint8_t)bits,
                              .bits_stored = (uint8_t)bits,
                              .high_bit = (uint8_t)(bits - 1),
                              .planar = planar};
}

static inline size_t raster_bytes(const struct tsr_image *image)
{
    return ((size_t)image->columns * image->rows * image->components * image->bits_allocated + 7) / 8;
}

/* What became of a stream. */
struct trial {
    enum tsr_status status;
    bool is_exact; /* write gave the same stream */
    uint8_t *raster;
    struct tsr_bytes residue;
    struct tsr_error error;
};

static inline struct trial try_stream(const struct tsr_node *kind, const struct tsr_image *image,
                                      const void *stream, size_t size)
{
    struct trial t = {.residue = {.limit = 1 << 24}};
    struct tsr_bytes again = {.limit = size}; /* not a byte more is needed */
    uint8_t *copy = copy_of(stream, size);
    t.raster = must(malloc(raster_bytes(image)));
    memset(t.raster, 0xa5, raster_bytes(image));
    t.status = tsr_node_split(kind, image, copy, size, t.raster, &t.residue, &t.error);
    if (t.status == TSR_OK) {
        uint8_t *residue = copy_of(t.residue.bytes, t.residue.size);
        const enum tsr_status status = tsr_node_join(kind, image, t.raster, residue, t.residue.size, &again, &t.error);
        t.is_exact = status == TSR_OK && again.size == size && memcmp(again.bytes, copy, size) == 0;
        free(residue);
    }
    tsr_bytes_free(&again);
    free(copy);
    return t;
}

static inline void end_trial(struct trial *t)
{
    free(t->raster);
    tsr_bytes_free(&t->residue);
}

/* A stream that must come back, with these samples. most: bytes of the residue. */
static inline void expect_exact(const struct tsr_node *kind, const struct tsr_image *image,
                                const struct text *stream, const void *raster, size_t most, const char *name)
{
    struct trial t = try_stream(kind, image, stream->bytes, stream->size);
    expect(t.status == TSR_OK, "%s: %s", name, t.error.text);
    expect(t.is_exact, "%s: another stream came back", name);
    expect(memcmp(t.raster, raster, raster_bytes(image)) == 0, "%s: other samples", name);
    expect(t.residue.size <= most, "%s: a residue of %zu bytes, over %zu", name, t.residue.size, most);
    end_trial(&t);
}

/* A stream that must be refused, for a reason that has this text. */
static inline void expect_refused(const struct tsr_node *kind, const struct tsr_image *image,
                                  const struct text *stream, const char *why)
{
    struct trial t = try_stream(kind, image, stream->bytes, stream->size);
    expect(t.status == TSR_ERROR_CORRUPT, "a stream was taken, not refused for: %s", why);
    expect(strstr(t.error.text, why) != NULL, "refused for \"%s\", not for \"%s\"", t.error.text, why);
    end_trial(&t);
}

/* Cuts a stream at each byte and flips bits in it. What is read must come back, or be refused. Returns how many damaged
 * streams were read. */
static inline int attack_stream(const struct tsr_node *kind, const struct tsr_image *image,
                                const struct text *stream, bool comes_back, struct rng *r)
{
    int read = 0;
    for (size_t cut = 0; cut < stream->size; cut++) {
        struct trial t = try_stream(kind, image, stream->bytes, cut);
        expect(t.status != TSR_OK || t.is_exact || !comes_back, "cut at %zu: another stream came back", cut);
        read += t.status == TSR_OK;
        end_trial(&t);
    }
    for (int i = 0; i < 400; i++) {
        struct text *damaged = must(malloc(sizeof *damaged));
        *damaged = *stream;
        for (uint32_t flips = 1 + rng_below(r, 3); flips > 0; flips--)
            damaged->bytes[rng_below(r, (uint32_t)stream->size)] ^= (uint8_t)(1u << rng_below(r, 8));
        struct trial t = try_stream(kind, image, damaged->bytes, damaged->size);
        expect(t.status != TSR_OK || t.is_exact || !comes_back, "flip %d: another stream came back", i);
        read += t.status == TSR_OK;
        end_trial(&t);
        free(damaged);
    }
    return read;
}

/* Cuts the residue of a stream at each byte, flips bits in it and in the raster: write gives bytes or an error. */
static inline void attack_residue(const struct tsr_node *kind, const struct tsr_image *image,
                                  const struct text *stream, struct rng *r)
{
    struct trial t = try_stream(kind, image, stream->bytes, stream->size);
    expect(t.status == TSR_OK, "%s", t.error.text);
    const size_t cuts = t.residue.size;
    for (size_t i = 0; i < cuts + 400; i++) {
        const size_t size = i < cuts ? i : cuts;
        uint8_t *residue = copy_of(t.residue.bytes, size);
        if (i >= cuts) residue[rng_below(r, (uint32_t)size)] ^= (uint8_t)(1u << rng_below(r, 8));
        if (i >= cuts && i % 2)
            t.raster[rng_below(r, (uint32_t)raster_bytes(image))] ^= (uint8_t)(1u << rng_below(r, 8));
        struct tsr_bytes again = {.limit = stream->size + rng_below(r, 64)};
        struct tsr_error error;
        const enum tsr_status status = tsr_node_join(kind, image, t.raster, residue, size, &again, &error);
        expect(status == TSR_OK || status == TSR_ERROR_CORRUPT, "residue %zu: status %d", i, status);
        expect(i >= cuts || status != TSR_OK || size == 0 || again.size != stream->size ||
                   memcmp(again.bytes, stream->bytes, stream->size) != 0,
               "a residue cut at %zu of %zu bytes was enough", size, cuts);
        tsr_bytes_free(&again);
        free(residue);
    }
    end_trial(&t);
}

#endif
