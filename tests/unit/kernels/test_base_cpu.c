/* Frames with a base (BASE.md), by the CPU engine: they come back, whatever the image, the base and the coding; threads
 * change nothing; and they take no more than without a base but a bit. */
#include "tests/unit/kernels/engines.h"

#include "kernels/engine_cpu/base_cpu.h"

static struct tsr_image image_with_base(struct rng *r, int32_t most)
{
    for (;;) {
        const struct tsr_image image = random_image(r, most);
        if (image.bits_allocated == 8 || image.bits_allocated == 16) return image;
    }
}

/* A base of a raster: near its samples, or of another image. */
static void make_base(struct rng *r, const struct tsr_image *image, const uint8_t *raster, uint8_t *base)
{
    const size_t bytes = raster_bytes(image);
    const uint32_t kind = rng_below(r, 3);
    if (kind == 0) fill_raster(r, image, (int)rng_below(r, CONTENTS), base);
    if (kind > 0) memcpy(base, raster, bytes);
    for (size_t i = 0; i < bytes && kind == 2; i++) base[i] = (uint8_t)(base[i] ^ rng_below(r, 4));
}

struct coded {
    uint8_t *space, *room;
    struct tsr_encode_job job;
};

static struct coded encode_on(struct tsr_engine *engine, const struct tsr_image *image, const struct tsr_coding *coding,
                              const uint8_t *raster, const uint8_t *base)
{
    struct coded c = {.space = must(malloc(engine->ops->encode_workspace(engine, image, coding, 1))),
                      .room = must(malloc(tsr_base_room(image)))};
    c.job.raster = raster;
    if (base) c.job.base = (struct tsr_base){base, c.room};
    assert_int_equal(engine->ops->encode(engine, image, coding, &c.job, 1, c.space), TSR_OK);
    return c;
}

static size_t bytes_of(const struct coded *c)
{
    return c->job.coded.model.size + tsr_tiles_bytes(&c->job.coded);
}

static void free_coded(struct coded *c)
{
    free(c->space);
    free(c->room);
}

/* All of a coded frame in one piece of memory: the model, then the tiles, which are cut there. */
static uint8_t *join(const struct coded *c, struct tsr_segment *tiles)
{
    uint8_t *const all = must(malloc(bytes_of(c) + 1)), *at = all + c->job.coded.model.size;
    memcpy(all, c->job.coded.model.bytes, c->job.coded.model.size);
    for (uint32_t t = 0; t < c->job.coded.tiles; t++) {
        tiles[t] = (struct tsr_segment){at, 0};
        for (int s = 0; s < c->job.coded.tile[t].segments; s++) {
            const struct tsr_segment *const segment = &c->job.coded.tile[t].segment[s];
            if (segment->size > 0) memcpy(at, segment->bytes, segment->size);
            at += segment->size;
            tiles[t].size += segment->size;
        }
    }
    return all;
}

static void check(struct rng *r, const struct tsr_image *image, int effort, enum tsr_coder coder)
{
    struct tsr_coding coding = {.effort = effort, .coder = coder};
    const size_t bytes = raster_bytes(image);
    uint8_t *const raster = must(malloc(bytes)), *const base = must(malloc(bytes)),
                   *const back = must(malloc(bytes + 2));
    assert_int_equal(tsr_resolve_coding(&coding, NULL), TSR_OK);
    fill_raster(r, image, (int)rng_below(r, CONTENTS), raster);
    make_base(r, image, raster, base);
    struct tsr_engine *const engine = any_engine(r), *const other = any_engine(r);
    struct coded c = encode_on(engine, image, &coding, raster, base),
                 d = encode_on(other, image, &coding, raster, base),
                 alone = encode_on(other, image, &coding, raster, NULL);
    struct tsr_segment *const tiles = must(malloc((c.job.coded.tiles + 1) * sizeof *tiles));
    uint8_t *const one = join(&c, tiles), *const two = join(&d, tiles);
    assert_int_equal(bytes_of(&c), bytes_of(&d));
    assert_memory_equal(one, two, bytes_of(&c));
    expect(bytes_of(&c) <= bytes_of(&alone) + 1, "with a base %zu bytes, without %zu", bytes_of(&c), bytes_of(&alone));
    struct tsr_decode_job job = {.model = {two, d.job.coded.model.size},
                                 .tile = tiles,
                                 .tiles = d.job.coded.tiles,
                                 .base = {base, c.room},
                                 .raster = back};
    void *const space = must(malloc(engine->ops->decode_workspace(engine, image, &job, 1)));
    assert_int_equal(engine->ops->decode(engine, image, &job, 1, space), TSR_OK);
    assert_memory_equal(back, raster, bytes);
    free(space);
    free(one);
    free(two);
    free(tiles);
    free_coded(&c);
    free_coded(&d);
    free_coded(&alone);
    free(raster);
    free(base);
    free(back);
}

TEST(any_image)
{
    struct rng r = {481};
    static const enum tsr_coder coders[] = {TSR_CODER_BY_EFFORT, TSR_CODER_HUFFMAN, TSR_CODER_RANS, TSR_CODER_CAVLC};
    for (int number = 0; number < 150; number++) {
        const struct tsr_image image = image_with_base(&r, number % 10 ? 40 : 200);
        check(&r, &image, 1 + number % 9, coders[rng_below(&r, COUNT_OF(coders))]);
    }
}

/* Frames of several tiles. */
TEST(tiles)
{
    struct rng r = {482};
    for (int components = 1; components <= 3; components += 2) {
        struct tsr_image image = {.columns = 1100, .rows = 130, .frames = 1, .bits_allocated = 16, .bits_stored = 12};
        image.high_bit = 11;
        image.components = (uint8_t)components;
        check(&r, &image, 5, TSR_CODER_BY_EFFORT);
    }
}

/* The table of BASE.md 3. */
TEST(indices)
{
    uint16_t offset[] = {0, 1, 5, 9};
    struct tsr_plane_model plane = {.minimum = 10, .span = 10, .range = 10};
    assert_int_equal(tsr_base_index(&plane, 0), 0);
    assert_int_equal(tsr_base_index(&plane, 10), 0);
    assert_int_equal(tsr_base_index(&plane, 13), 3);
    assert_int_equal(tsr_base_index(&plane, 19), 9);
    assert_int_equal(tsr_base_index(&plane, 65535), 9);
    plane.packed = true;
    plane.range = 4;
    plane.offset = offset;
    static const int wanted[] = {0, 1, 1, 1, 1, 2, 2, 2, 2, 3};
    for (uint32_t i = 0; i < 10; i++) assert_int_equal(tsr_base_index(&plane, 10 + i), wanted[i]);
    assert_int_equal(tsr_base_index(&plane, 9), 0);
    assert_int_equal(tsr_base_index(&plane, 20), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_image),
        cmocka_unit_test(tiles),
        cmocka_unit_test(indices),
    };
    return cmocka_run_group_tests(tests, create_engines, destroy_engines);
}
