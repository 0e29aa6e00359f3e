/* Whole frames through the CPU engine (kernels/engine.h, app/library/engines.c) with every layout, coding and number of
 * threads. */
#include "tests/unit/kernels/engines.h"

#include <math.h>

#include "kernels/engine.h"

enum { GUARD_BYTES = 8 };

/* 0..3: paths P and T with Huffman codes and CAVLC; 4 and 5: with rANS. Efforts come in turn. */
enum { CODINGS = 6 };

static struct tsr_coding lossless(int number)
{
    const int kind = number % CODINGS;
    const enum tsr_coder coder = kind >= 4 ? TSR_CODER_RANS : kind & 2 ? TSR_CODER_CAVLC : TSR_CODER_HUFFMAN;
    const struct tsr_coding coding = {
        .path = kind & 1 ? TSR_PATH_TRANSFORM : TSR_PATH_PREDICT, .coder = coder, .effort = number / CODINGS % 10};
    return coding;
}

/* A payload in a buffer of its own; the caller frees it. */
static uint8_t *encode(struct tsr_engine *engine, const struct tsr_image *image, const struct tsr_coding *coding,
                       const uint8_t *raster, size_t *size)
{
    struct tsr_error error = {0};
    uint8_t *room = must(malloc(tsr_encode_bound(image)));
    const enum tsr_status status = tsr_encode_frame(engine, image, coding, raster, room, size, &error);
    expect(status == TSR_OK, "%s: %s", tsr_status_name(status), error.text);
    uint8_t *payload = must(malloc(*size));
    memcpy(payload, room, *size);
    free(room);
    return payload;
}

/* A raster in a buffer of its own, with guard bytes after it. NULL if the payload is refused. */
static uint8_t *decode(struct tsr_engine *engine, const struct tsr_image *image, const uint8_t *payload, size_t size)
{
    const size_t bytes = raster_bytes(image);
    uint8_t *raster = must(malloc(bytes + GUARD_BYTES));
    struct tsr_error error = {0};
    memset(raster, 0xa5, bytes + GUARD_BYTES);
    const enum tsr_status status = tsr_decode_frame(engine, image, payload, size, raster, &error);
    for (size_t i = bytes; i < bytes + GUARD_BYTES; i++) assert_int_equal(raster[i], 0xa5);
    if (status == TSR_OK) return raster;
    assert_int_equal(status, TSR_ERROR_CORRUPT);
    assert_int_equal(error.status, status);
    free(raster);
    return NULL;
}

static void check_lossless(struct rng *r, const struct tsr_image *image, int content)
{
    const size_t bytes = raster_bytes(image);
    uint8_t *raster = must(malloc(bytes));
    fill_raster(r, image, content, raster);
    for (int kind = 0; kind < CODINGS; kind++) {
        const int number = kind + CODINGS * (int)rng_below(r, 10);
        const struct tsr_coding coding = lossless(number);
        size_t size, again;
        uint8_t *payload = encode(any_engine(r), image, &coding, raster, &size);
        uint8_t *other = encode(any_engine(r), image, &coding, raster, &again);
        uint8_t *back = must(decode(any_engine(r), image, payload, size));
        expect(size == again && memcmp(payload, other, size) == 0, "coding %d: not the same bytes", number);
        expect(memcmp(back, raster, bytes) == 0, "coding %d, %u x %u x %d, %d bits of %d to %d, content %d", number,
               image->columns, image->rows, image->components, image->bits_stored, image->bits_allocated,
               image->high_bit, content);
        free(back);
        free(other);
        free(payload);
    }
    free(raster);
}

TEST(random_frames)
{
    struct rng r = {61};
    for (int n = 0; n < 150; n++) {
        const struct tsr_image image = random_image(&r, 60);
        check_lossless(&r, &image, n % CONTENTS);
    }
}

TEST(smallest_frames)
{
    struct rng r = {62};
    for (uint32_t columns = 1; columns <= 6; columns++)
        for (uint32_t rows = 1; rows <= 6; rows++)
            for (int content = 0; content < CONTENTS; content += 1 + (int)(columns + rows) % 3) {
                struct tsr_image image = random_image(&r, 1);
                image.columns = columns;
                image.rows = rows;
                image.swapped = false;
                check_lossless(&r, &image, content);
            }
}

TEST(every_depth)
{
    struct rng r = {63};
    static const uint8_t allocated[] = {1, 8, 16, 32};
    for (size_t a = 0; a < COUNT_OF(allocated); a++)
        for (int stored = 1; stored <= allocated[a]; stored++)
            for (int components = 1; components <= 3; components += 2) {
                struct tsr_image image = random_image(&r, 20);
                image.components = (uint8_t)components;
                image.bits_allocated = allocated[a];
                image.bits_stored = (uint8_t)stored;
                image.high_bit = (uint8_t)rng_between(&r, stored - 1, allocated[a] - 1);
                image.swapped = false;
                check_lossless(&r, &image, (stored + components) % CONTENTS);
            }
}

/* Frames of many tiles, of one column or row, and with sizes near those of tiles, blocks and slices. */
TEST(shapes_of_frames)
{
    static const uint32_t shapes[][2] = {{1100, 70}, {2049, 33}, {1, 3000}, {3000, 1},  {64, 64},
                                         {65, 63},   {257, 300}, {3, 700},  {1025, 64}, {128, 513}};
    struct rng r = {64};
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        struct tsr_image image = {0};
        image.columns = shapes[i][0];
        image.rows = shapes[i][1];
        image.frames = 1;
        image.components = 1;
        image.bits_allocated = i % 2 ? 16 : 8;
        image.bits_stored = i % 2 ? 12 : 8;
        image.high_bit = (uint8_t)(image.bits_stored - 1);
        check_lossless(&r, &image, i % 3 ? 5 : (int)(i % CONTENTS));
    }
}

/* Pieces of noise, stored raw, of about 128 and 16384 bytes: there the field of a piece's size grows by a byte. */
TEST(sizes_of_pieces)
{
    static const uint32_t samples[] = {126, 127, 128, 129, 16383, 16384, 16385};
    struct rng r = {75};
    for (size_t i = 0; i < COUNT_OF(samples); i++) {
        struct tsr_image image = {0};
        image.columns = samples[i];
        image.rows = image.frames = 1;
        image.components = 2;
        image.bits_allocated = image.bits_stored = 8;
        image.high_bit = 7;
        while (image.columns > 1000 && image.columns % 2 == 0) {
            image.columns /= 2;
            image.rows *= 2;
        }
        check_lossless(&r, &image, 0);
    }
}

/* ---- Threads -------------------------------------------------------------------------------------------------- */

/* The same bytes, and the same samples, from 1, 2, 3 and 8 threads. */
TEST(threads_change_nothing)
{
    struct rng r = {65};
    struct tsr_image image = {0};
    image.columns = 12000; /* 12 tiles */
    image.rows = 21;
    image.frames = 1;
    image.bits_allocated = 16;
    for (int number = 0; number < 6; number++) {
        struct tsr_coding coding = lossless(number < 4 ? number : number == 4 ? 1 : 3);
        image.components = number % 2 ? 1 : 3;
        image.bits_stored = number % 3 ? 12 : 16;
        image.high_bit = (uint8_t)(image.bits_stored - 1);
        coding.lossy = number >= 4;
        coding.qp_eighths = number >= 4 ? 20 * TSR_QP_UNIT : 0;
        coding.tune = number == 5 ? TSR_TUNE_SSIM : TSR_TUNE_BY_LOSS;
        const size_t bytes = raster_bytes(&image);
        uint8_t *raster = must(malloc(bytes)), *first = NULL, *first_back = NULL;
        size_t first_size = 0;
        fill_raster(&r, &image, 5, raster);
        for (size_t e = 0; e < COUNT_OF(engines); e++) {
            size_t size;
            assert_int_equal(tsr_engine_threads(engines[e]), thread_counts[e]);
            uint8_t *payload = encode(engines[e], &image, &coding, raster, &size);
            uint8_t *back = must(decode(engines[e], &image, payload, size));
            if (e == 0) {
                first = payload;
                first_size = size;
                first_back = back;
                if (!coding.lossy) assert_memory_equal(back, raster, bytes);
                continue;
            }
            assert_int_equal(size, first_size);
            assert_memory_equal(payload, first, size);
            assert_memory_equal(back, first_back, bytes);
            free(payload);
            free(back);
        }
        free(first);
        free(first_back);
        free(raster);
    }
}

/* Checks that a frame of a batch has the same bytes when it is coded alone. Joins its tile's segments into joined,
 * which has room for 4 rasters. Returns the tile. */
static struct tsr_segment check_alone(struct tsr_engine *engine, const struct tsr_image *image,
                                      const struct tsr_coding *coding, const struct tsr_encode_job *job,
                                      uint8_t *joined)
{
    void *space = must(malloc(engine->ops->encode_workspace(engine, image, coding, 1)));
    struct tsr_encode_job alone = {.raster = job->raster};
    assert_int_equal(engine->ops->encode(engine, image, coding, &alone, 1, space), TSR_OK);
    assert_int_equal(alone.coded.model.size, job->coded.model.size);
    assert_memory_equal(alone.coded.model.bytes, job->coded.model.bytes, alone.coded.model.size);
    assert_int_equal(job->coded.tiles, 1);
    const struct tsr_coded_tile *tile = &job->coded.tile[0];
    struct tsr_segment whole = {.bytes = joined, .size = 0};
    for (int s = 0; s < tile->segments; s++) {
        if (tile->segment[s].size == 0) continue;
        assert_int_equal(tile->segment[s].size, alone.coded.tile[0].segment[s].size);
        assert_memory_equal(tile->segment[s].bytes, alone.coded.tile[0].segment[s].bytes, tile->segment[s].size);
        memcpy(joined + whole.size, tile->segment[s].bytes, tile->segment[s].size);
        whole.size += tile->segment[s].size;
    }
    free(space);
    return whole;
}

TEST(batches)
{
    enum { FRAMES = 5 };
    struct rng r = {66};
    struct tsr_image image = {0};
    image.columns = 90;
    image.rows = 70;
    image.frames = FRAMES;
    image.components = 1;
    image.bits_allocated = image.bits_stored = 16;
    image.high_bit = 15;
    const struct tsr_coding coding = lossless(0);
    const size_t bytes = raster_bytes(&image);
    uint8_t *rasters = must(malloc(FRAMES * bytes)), *back = must(malloc(FRAMES * bytes));
    struct tsr_encode_job jobs[FRAMES] = {{0}};
    struct tsr_decode_job decodes[FRAMES] = {{.status = TSR_OK}};
    struct tsr_segment tiles[FRAMES];
    uint8_t *joined[FRAMES];
    for (int f = 0; f < FRAMES; f++) {
        fill_raster(&r, &image, f == 2 ? 0 : 5, rasters + (size_t)f * bytes);
        jobs[f].raster = rasters + (size_t)f * bytes;
    }
    struct tsr_engine *engine = engines[2];
    void *space = must(malloc(engine->ops->encode_workspace(engine, &image, &coding, FRAMES)));
    assert_int_equal(engine->ops->encode(engine, &image, &coding, jobs, FRAMES, space), TSR_OK);
    for (int f = 0; f < FRAMES; f++) {
        joined[f] = must(malloc(4 * bytes));
        tiles[f] = check_alone(engine, &image, &coding, &jobs[f], joined[f]);
        decodes[f].model = jobs[f].coded.model;
        decodes[f].tile = &tiles[f];
        decodes[f].tiles = 1;
        decodes[f].raster = back + (size_t)f * bytes;
    }
    void *decode_space = must(malloc(engine->ops->decode_workspace(engine, &image, decodes, FRAMES)));
    assert_int_equal(engine->ops->decode(engine, &image, decodes, FRAMES, decode_space), TSR_OK);
    assert_memory_equal(back, rasters, FRAMES * bytes);
    /* one frame is made corrupt: it alone is refused, and its tile is named */
    tiles[3].size -= 2;
    assert_int_equal(engine->ops->decode(engine, &image, decodes, FRAMES, decode_space), TSR_ERROR_CORRUPT);
    for (int f = 0; f < FRAMES; f++) assert_int_equal(decodes[f].status, f == 3 ? TSR_ERROR_CORRUPT : TSR_OK);
    assert_int_equal(decodes[3].bad_tile, 0);
    free(decode_space);
    free(space);
    for (int f = 0; f < FRAMES; f++) free(joined[f]);
    free(back);
    free(rasters);
}

/* What a job has given away while it was worked on. */
struct taken {
    uint8_t *bytes;
    size_t size;
    uint32_t tiles;
};

static void append(struct taken *taken, const void *bytes, size_t size)
{
    if (size > 0) memcpy(taken->bytes + taken->size, bytes, size);
    taken->size += size;
}

static void take_tile(void *taker, const struct tsr_coded_frame *coded, uint32_t tile)
{
    struct taken *const taken = taker;
    if (tile == 0) append(taken, coded->model.bytes, coded->model.size);
    expect(tile == taken->tiles++, "tile %u comes as number %u", tile, taken->tiles - 1);
    for (int s = 0; s < coded->tile[tile].segments; s++)
        append(taken, coded->tile[tile].segment[s].bytes, coded->tile[tile].segment[s].size);
}

static void take_bytes(void *taker, const uint8_t *bytes, size_t size)
{
    append(taker, bytes, size);
}

/* Checks that what was taken is how the whole begins. *all: adds the cases where it is all of it. */
static void check_taken(const struct taken *taken, const uint8_t *whole, size_t size, int *all)
{
    expect(taken->size <= size, "%zu of %zu bytes", taken->size, size);
    assert_memory_equal(taken->bytes, whole, taken->size);
    *all += taken->size == size;
}

static int all_coded, all_decoded; /* cases where all was taken */
static int in_place;               /* cases where the raster stood in the work space */

/* Codes and decodes a frame in work space of exactly the size that the engine asks for, filled with one byte. A
 * sanitizer reports use past its end, and its old contents must not matter. The raster stands there, too, if it may and
 * the byte is not 0. Returns the coded frame in one piece; the caller frees it. */
static uint8_t *code_in_filled_space(struct tsr_engine *engine, const struct tsr_image *image,
                                     const struct tsr_coding *coding, const uint8_t *raster, int filling, size_t *size)
{
    const size_t space_bytes = engine->ops->encode_workspace(engine, image, coding, 1), bytes = raster_bytes(image);
    void *space = must(malloc(space_bytes));
    memset(space, filling, space_bytes);
    struct taken coded = {must(malloc(tsr_encode_bound(image))), 0, 0}, decoded = {must(malloc(bytes)), 0, 0};
    struct tsr_encode_job job = {.raster = raster, .take = take_tile, .taker = &coded};
    const size_t offset = engine->ops->raster_offset ? engine->ops->raster_offset(image, coding) : SIZE_MAX;
    if (filling != 0 && offset != SIZE_MAX) {
        job.raster = memcpy((uint8_t *)space + offset, raster, bytes);
        in_place++;
    }
    assert_int_equal(engine->ops->encode(engine, image, coding, &job, 1, space), TSR_OK);
    uint8_t *joined = must(malloc(tsr_encode_bound(image)));
    struct tsr_segment *tiles = must(malloc(job.coded.tiles * sizeof *tiles));
    memcpy(joined, job.coded.model.bytes, job.coded.model.size);
    *size = job.coded.model.size;
    for (uint32_t t = 0; t < job.coded.tiles; t++) {
        const struct tsr_coded_tile *tile = &job.coded.tile[t];
        tiles[t].bytes = joined + *size;
        for (int s = 0; s < tile->segments; s++) {
            if (tile->segment[s].size) memcpy(joined + *size, tile->segment[s].bytes, tile->segment[s].size);
            *size += tile->segment[s].size;
        }
        tiles[t].size = (size_t)(joined + *size - tiles[t].bytes);
    }
    check_taken(&coded, joined, *size, &all_coded);
    struct tsr_decode_job back = {.model = {joined, job.coded.model.size},
                                  .tile = tiles,
                                  .tiles = job.coded.tiles,
                                  .take = take_bytes,
                                  .taker = &decoded,
                                  .status = TSR_OK};
    free(space);
    back.raster = must(malloc(bytes));
    const size_t decode_bytes = engine->ops->decode_workspace(engine, image, &back, 1);
    space = must(malloc(decode_bytes));
    memset(space, filling, decode_bytes);
    assert_int_equal(engine->ops->decode(engine, image, &back, 1, space), TSR_OK);
    if (!coding->lossy) assert_memory_equal(back.raster, raster, bytes);
    check_taken(&decoded, back.raster, bytes, &all_decoded);
    free(coded.bytes);
    free(decoded.bytes);
    free(space);
    free(back.raster);
    free(tiles);
    return joined;
}

TEST(contents_of_work_space_do_not_matter)
{
    struct rng r = {76};
    for (int n = 0; n < 60; n++) {
        const struct tsr_image image = random_image(&r, n % 10 ? 40 : 300);
        struct tsr_coding coding = lossless(n);
        if (n % 8 >= 4 && image.bits_allocated % 32 > 1) {
            coding.lossy = true;
            coding.max_error = 1 + rng_below(&r, 9);
            coding.qp_eighths = rng_between(&r, tsr_lowest_qp(image.bits_stored), TSR_HIGHEST_QP);
            coding.coarser_by = (uint32_t)rng_between(&r, 0, TSR_HIGHEST_QP - coding.qp_eighths);
            coding.tune = (uint8_t)(rng_below(&r, 2) ? TSR_TUNE_SSIM : TSR_TUNE_PSNR);
            coding.coarser_from = rng_below(&r, image.columns * image.rows);
        }
        uint8_t *raster = must(malloc(raster_bytes(&image)));
        size_t size, again;
        fill_raster(&r, &image, n / 4 % CONTENTS, raster);
        uint8_t *clean = code_in_filled_space(any_engine(&r), &image, &coding, raster, 0, &size);
        uint8_t *dirty = code_in_filled_space(any_engine(&r), &image, &coding, raster, 0xa5, &again);
        assert_int_equal(size, again);
        assert_memory_equal(clean, dirty, size);
        free(dirty);
        free(clean);
        free(raster);
    }
    expect(all_coded > 60 && all_decoded > 40 && in_place > 5,
           "all is taken of %d coded and %d decoded frames; %d were in place", all_coded, all_decoded, in_place);
}

/* Tiles and rows of tiles that several threads finish in any order are given away in their own. */
TEST(many_tiles_are_taken_in_their_order)
{
    struct rng r = {77};
    struct tsr_image image = {.columns = 1500, .rows = 1100, .frames = 1, .components = 1};
    image.bits_allocated = image.bits_stored = 16;
    image.high_bit = 15;
    uint8_t *raster = must(malloc(raster_bytes(&image)));
    for (int n = 0; n < 2 * CODINGS; n++) {
        const struct tsr_coding coding = lossless(n);
        const int coded_before = all_coded, decoded_before = all_decoded;
        size_t size;
        fill_raster(&r, &image, n % CONTENTS, raster);
        free(code_in_filled_space(engines[(size_t)n % COUNT_OF(engines)], &image, &coding, raster, 0xa5, &size));
        assert_int_equal(all_decoded, decoded_before + 1);
        assert_in_range(all_coded, coded_before, coded_before + 1); /* not if the plane has one value */
    }
    free(raster);
}

/* ---- Efforts of path P ------------------------------------------------------------------------------------------- */

static const enum tsr_coder coders[] = {TSR_CODER_HUFFMAN, TSR_CODER_RANS, TSR_CODER_CAVLC};

/* Samples 0 .. range-1 in similar components: one that differs; noise; two ramps; a texture with edges. */
enum { PATTERNS = 5 };

static void fill_pattern(struct rng *r, const struct tsr_image *image, uint32_t range, int pattern, uint8_t *raster)
{
    const uint32_t base = rng_below(r, range), odd = rng_below(r, image->columns * image->rows);
    memset(raster, 0, raster_bytes(image));
    for (uint32_t y = 0, i = 0; y < image->rows; y++)
        for (uint32_t x = 0; x < image->columns; x++, i++) {
            const uint32_t wave = (x * x / 7 + 3 * x * y / 11) % 61 + rng_below(r, 3) + (x / 9 % 2 ? range / 3 : 0);
            const uint32_t value = pattern == 0   ? base + (i == odd)
                                   : pattern == 1 ? rng_below(r, range)
                                   : pattern == 2 ? base + 2 * x + rng_below(r, 2)
                                   : pattern == 3 ? base + 3 * y + x + rng_below(r, 4)
                                                  : base + wave;
            for (int c = 0; c < image->components; c++)
                put_word(image, raster, word_place(image, c, i),
                         (value + (uint32_t)c * (value / 5 + rng_below(r, 2))) % range);
        }
}

static void check_effort(struct rng *r, const struct tsr_image *image, uint32_t range, int effort, enum tsr_coder coder,
                         int pattern)
{
    const struct tsr_coding coding = {.path = TSR_PATH_PREDICT, .coder = coder, .effort = effort};
    uint8_t *raster = must(malloc(raster_bytes(image)));
    size_t size;
    fill_pattern(r, image, range, pattern, raster);
    uint8_t *payload = encode(any_engine(r), image, &coding, raster, &size);
    uint8_t *back = must(decode(any_engine(r), image, payload, size));
    expect(memcmp(back, raster, raster_bytes(image)) == 0, "effort %d, coder %d, %u x %u x %d, range %u, pattern %d",
           effort, (int)coder, image->columns, image->rows, image->components, range, pattern);
    free(back);
    free(payload);
    free(raster);
}

static const uint32_t ranges[] = {2, 3, 4, 5, 17, 255, 256, 257, 4095, 4096, 8193, 65535, 65536};

/* All widths and heights up to 40, with all efforts and coders. */
TEST(efforts_of_small_images)
{
    struct rng r = {77};
    int n = 0;
    for (int effort = 1; effort <= 9; effort++)
        for (size_t c = 0; c < COUNT_OF(coders); c++)
            for (uint32_t side = 1; side <= 40; side++, n++) {
                static const int components[] = {1, 3, 1, 4, 1, 2};
                if (skip_case()) continue;
                const uint32_t other = n % 3 == 0 ? 1 : (uint32_t)rng_between(&r, 1, 40),
                               range = ranges[rng_below(&r, COUNT_OF(ranges))];
                const struct tsr_image image =
                    plain_image(n % 2 ? side : other, n % 2 ? other : side, components[n % 6], plain_width(range - 1));
                check_effort(&r, &image, range, effort, coders[c], n % PATTERNS);
            }
}

/* Several tiles, the last ones of odd sizes, and enough blocks that classes and references pay. */
TEST(efforts_of_tiled_images)
{
    static const uint32_t shapes[][3] = {{1, 1, 1},     {1, 2500, 1},  {2500, 1, 3}, {300, 260, 1},
                                         {1031, 77, 1}, {259, 301, 3}, {150, 170, 4}};
    struct rng r = {78};
    for (int effort = 1; effort <= 9; effort++)
        for (size_t i = 0; i < COUNT_OF(shapes); i++)
            for (size_t c = 0; c < COUNT_OF(coders); c++) {
                if (coders[c] == TSR_CODER_CAVLC && effort != 5) continue; /* the effort does not change it */
                if (skip_case()) continue;
                const uint32_t range = ranges[rng_below(&r, COUNT_OF(ranges))];
                const struct tsr_image image =
                    plain_image(shapes[i][0], shapes[i][1], (int)shapes[i][2], plain_width(range - 1));
                check_effort(&r, &image, range, effort, coders[c], 1 + (int)(i + (size_t)effort) % (PATTERNS - 1));
            }
}

/* More effort gives a smaller file if samples can be predicted, with one component and with three similar ones. */
TEST(efforts_are_worth_it)
{
    struct rng r = {79};
    size_t size[2][10];
    for (int components = 1; components <= 3; components += 2) {
        const struct tsr_image image = plain_image(256, 256, components, 12);
        uint8_t *raster = must(malloc(raster_bytes(&image)));
        fill_pattern(&r, &image, 4096, 3, raster);
        for (int effort = 1; effort <= 9; effort++) {
            const struct tsr_coding coding = {.path = TSR_PATH_PREDICT, .coder = TSR_CODER_RANS, .effort = effort};
            free(encode(engines[1], &image, &coding, raster, &size[components / 2][effort]));
        }
        free(raster);
        expect(size[components / 2][5] < size[components / 2][1], "%zu at effort 5, %zu at effort 1",
               size[components / 2][5], size[components / 2][1]);
        assert_true(size[components / 2][9] < size[components / 2][1]);
    }
}

/* Training gives the same with any number of threads. */
TEST(threads_train_alike)
{
    struct rng r = {80};
    static const int efforts[] = {3, 5, 9}, threads[] = {1, 2, 3, 8};
    struct tsr_engine *of_threads[COUNT_OF(threads)];
    for (size_t t = 0; t < COUNT_OF(threads); t++) of_threads[t] = must(make_engine(TSR_ENGINE_CPU, threads[t]));
    for (int n = 0; n < 2; n++) {
        const struct tsr_image image = n ? plain_image(410, 500, 3, 8) : plain_image(1500, 700, 1, 12);
        uint8_t *raster = must(malloc(raster_bytes(&image)));
        fill_pattern(&r, &image, n ? 256 : 4096, 4, raster);
        for (size_t l = 0; l < COUNT_OF(efforts); l++) {
            const struct tsr_coding coding = {
                .path = TSR_PATH_PREDICT, .coder = l % 2 ? TSR_CODER_RANS : TSR_CODER_HUFFMAN, .effort = efforts[l]};
            size_t first_size, size;
            uint8_t *first = encode(of_threads[0], &image, &coding, raster, &first_size);
            for (size_t t = 1; t < COUNT_OF(threads); t++) {
                uint8_t *payload = encode(of_threads[t], &image, &coding, raster, &size);
                expect(size == first_size && memcmp(payload, first, size) == 0, "effort %d, %d threads", efforts[l],
                       threads[t]);
                free(payload);
            }
            uint8_t *back = must(decode(of_threads[COUNT_OF(threads) - 1], &image, first, first_size));
            assert_memory_equal(back, raster, raster_bytes(&image));
            free(back);
            free(first);
        }
        free(raster);
    }
    for (size_t t = 0; t < COUNT_OF(threads); t++) tsr_engine_destroy(of_threads[t]);
}

/* ---- Loss ----------------------------------------------------------------------------------------------------- */

static uint32_t sample_at(const struct tsr_image *image, const uint8_t *raster, int component, size_t at)
{
    const int low = image->high_bit + 1 - image->bits_stored;
    const uint32_t f =
        get_word(image, raster, word_place(image, component, at)) >> low & ((1u << image->bits_stored) - 1u);
    return image->is_signed ? f ^ (1u << (image->bits_stored - 1)) : f;
}

/* Components without colour transform: at effort 1 the error of a sample is at most 2.54 steps and the tables' share
 * (see test_quantiser). At other efforts the choice of coefficients leaves at most 8 steps. */
TEST(errors_stay_within_the_step)
{
    struct rng r = {67};
    for (int n = 0; n < 240; n++) {
        struct tsr_image image = random_image(&r, 40);
        if (image.bits_allocated == 1 || image.bits_allocated == 32) continue;
        image.components = (uint8_t)(1 + image.components % 2);
        image.swapped = false;
        struct tsr_coding coding = lossless(n % 3 * 2 + 1);
        const int32_t lowest = tsr_lowest_qp(image.bits_stored);
        coding.lossy = true;
        coding.qp_eighths = n % 10 == 0   ? lowest
                            : n % 10 == 1 ? TSR_HIGHEST_QP
                                          : rng_between(&r, lowest, TSR_HIGHEST_QP);
        const double step = pow(2, ((coding.qp_eighths - lowest) / 8.0 - 4) / 6);
        if (coding.coder != TSR_CODER_RANS && n & 4) coding.effort = 1;
        const double allowed = (coding.effort == 1 ? 2.54 : 8) * step + 0.5 + ldexp(1, image.bits_stored) / 2000;
        const size_t bytes = raster_bytes(&image);
        uint8_t *raster = must(malloc(bytes));
        size_t size;
        fill_raster(&r, &image, n % CONTENTS, raster);
        uint8_t *payload = encode(any_engine(&r), &image, &coding, raster, &size);
        uint8_t *back = must(decode(any_engine(&r), &image, payload, size));
        for (int c = 0; c < image.components; c++)
            for (size_t i = 0; i < (size_t)image.columns * image.rows; i++) {
                const double error = (double)sample_at(&image, back, c, i) - sample_at(&image, raster, c, i);
                expect(fabs(error) <= allowed, "QP %d/8, %d bits: error %f, allowed %f", coding.qp_eighths,
                       image.bits_stored, error, allowed);
            }
        free(back);
        free(payload);
        free(raster);
    }
}

/* Red whose 16-bit differences would wrap: a small error must not become one of the whole range. */
TEST(saturated_colours_with_loss)
{
    struct rng r = {68};
    struct tsr_image image = {0};
    image.columns = image.rows = 64;
    image.frames = 1;
    image.components = 3;
    image.bits_allocated = 16;
    for (int bits = 8; bits <= 16; bits++) {
        image.bits_stored = (uint8_t)bits;
        image.high_bit = (uint8_t)(bits - 1);
        struct tsr_coding coding = lossless(1);
        coding.lossy = true;
        coding.qp_eighths = 20 * TSR_QP_UNIT;
        const uint32_t top = (1u << bits) - 1u;
        const size_t bytes = raster_bytes(&image);
        uint8_t *raster = must(malloc(bytes));
        for (size_t i = 0; i < 64 * 64; i++) {
            const uint32_t grey = rng_below(&r, 1 + top / 400);
            put_word(&image, raster, 3 * i, top - grey);
            put_word(&image, raster, 3 * i + 1, grey);
            put_word(&image, raster, 3 * i + 2, grey / 2);
        }
        size_t size;
        uint8_t *payload = encode(engines[0], &image, &coding, raster, &size);
        uint8_t *back = must(decode(engines[0], &image, payload, size));
        for (int c = 0; c < 3; c++)
            for (size_t i = 0; i < 64 * 64; i++) {
                const int64_t error = (int64_t)sample_at(&image, back, c, i) - sample_at(&image, raster, c, i);
                expect(llabs(error) < top / 8, "%d bits: error %lld", bits, (long long)error);
            }
        free(back);
        free(payload);
        free(raster);
    }
}

/* With path P no sample of any component differs by more than the bound, and the bits around the samples do not
 * change. */
TEST(errors_stay_within_the_bound)
{
    struct rng r = {94};
    for (int n = 0; n < 240; n++) {
        const struct tsr_image image = random_image(&r, n % 20 ? 40 : 200);
        if (image.bits_allocated == 1 || image.bits_allocated == 32) continue;
        struct tsr_coding coding = lossless(n & 2);
        coding.lossy = true;
        coding.max_error =
            n % 10 == 0 ? TSR_MAX_ERROR_LIMIT : 1 + (rng_below(&r, TSR_MAX_ERROR_LIMIT) >> rng_below(&r, 15));
        const size_t bytes = raster_bytes(&image);
        uint8_t *raster = must(malloc(bytes));
        size_t size;
        fill_raster(&r, &image, n % CONTENTS, raster);
        uint8_t *payload = encode(any_engine(&r), &image, &coding, raster, &size);
        uint8_t *back = must(decode(any_engine(&r), &image, payload, size));
        const int low = image.high_bit + 1 - image.bits_stored;
        const uint32_t field = ((1u << image.bits_stored) - 1u) << low;
        for (int c = 0; c < image.components; c++)
            for (size_t i = 0; i < (size_t)image.columns * image.rows; i++) {
                const int64_t error = (int64_t)sample_at(&image, back, c, i) - sample_at(&image, raster, c, i);
                const size_t place = word_place(&image, c, i);
                expect(llabs(error) <= coding.max_error, "%d bits, at most %u: error %lld", image.bits_stored,
                       coding.max_error, (long long)error);
                const uint32_t change = get_word(&image, back, place) ^ get_word(&image, raster, place);
                if (change >> image.high_bit & 1u) continue; /* another sign changes the extension, too */
                expect((change & ~field) == 0, "%d bits of %d: bits around a sample", image.bits_stored,
                       image.bits_allocated);
            }
        free(back);
        free(payload);
        free(raster);
    }
}

/* Two QPs in a frame, at effort 1. Away from the place where the QP changes, samples are those of one QP alone. */
TEST(two_steps_in_a_frame)
{
    struct rng r = {95};
    for (int n = 0; n < 40; n++) {
        struct tsr_image image = random_image(&r, 150);
        image.components = 1;
        image.bits_allocated = n % 2 ? 16 : 8;
        image.bits_stored = n % 2 ? 12 : 8;
        image.high_bit = (uint8_t)(image.bits_stored - 1);
        image.swapped = false;
        const size_t bytes = raster_bytes(&image);
        const uint32_t row = 4 * rng_below(&r, (image.rows + 3) / 4),
                       column = 4 * rng_below(&r, (image.columns + 3) / 4);
        uint8_t *raster = must(malloc(bytes)), *back[3];
        fill_raster(&r, &image, 5, raster);
        for (int k = 0; k < 3; k++) {
            struct tsr_coding coding = lossless(n & 2 ? 3 : 1);
            coding.lossy = true;
            coding.effort = 1; /* other efforts choose for whole tiles */
            coding.qp_eighths = 100 + (k == 2 ? 77 : 0);
            coding.coarser_by = k == 1 ? 77 : 0;
            coding.coarser_from = k == 1 ? row * image.columns + column : 0;
            size_t size;
            uint8_t *payload = encode(any_engine(&r), &image, &coding, raster, &size);
            back[k] = must(decode(any_engine(&r), &image, payload, size));
            free(payload);
        }
        for (uint32_t y = 0; y < image.rows; y++)
            for (uint32_t x = 0; x < image.columns; x++) {
                const uint32_t block = y / 4 * 4, from = row + (column > 0 ? 4 : 0);
                if (block + 8 > row && block < from + 8) continue;
                const size_t at = (size_t)y * image.columns + x;
                expect(sample_at(&image, back[1], 0, at) == sample_at(&image, back[block < row ? 0 : 2], 0, at),
                       "%u x %u, from row %u, column %u: row %u", image.columns, image.rows, row, column, y);
            }
        for (int k = 0; k < 3; k++) free(back[k]);
        free(raster);
    }
}

/* A work space that was given back serves for a fourth of its size, not for less, and not for two at once. */
TEST(work_spaces_that_are_kept)
{
    enum { MEBIBYTE = 1 << 20 };
    static const int mebibytes[] = {40, 11, 10, 8, 1};
    for (size_t i = 0; i < COUNT_OF(mebibytes); i++) {
        struct tsr_engine *const engine = make_engine(TSR_ENGINE_CPU, 1);
        void *const large = must(engine->ops->take_workspace(engine, 40 * MEBIBYTE));
        engine->ops->give_workspace(engine, large);
        void *const space = must(engine->ops->take_workspace(engine, (size_t)mebibytes[i] * MEBIBYTE));
        void *const other = must(engine->ops->take_workspace(engine, 10 * MEBIBYTE));
        expect((space == large) == (mebibytes[i] >= 10), "%d MiB", mebibytes[i]);
        assert_ptr_not_equal(other, space);
        engine->ops->give_workspace(engine, other);
        engine->ops->give_workspace(engine, space);
        tsr_engine_destroy(engine);
    }
}

TEST(usage)
{
    struct tsr_image image = {0};
    struct tsr_error error;
    uint8_t raster[16] = {0}, payload[1 << 16];
    size_t size;
    image.columns = image.rows = 2;
    image.frames = 1;
    image.components = 1;
    image.bits_allocated = image.bits_stored = 8;
    image.high_bit = 7;
    struct tsr_coding coding = lossless(0);
    coding.lossy = true; /* but without a bound for path P */
    assert_int_equal(tsr_encode_frame(engines[0], &image, &coding, raster, payload, &size, &error), TSR_ERROR_USAGE);
    coding.max_error = TSR_MAX_ERROR_LIMIT + 1;
    assert_int_equal(tsr_encode_frame(engines[0], &image, &coding, raster, payload, &size, &error), TSR_ERROR_USAGE);
    coding.coder = TSR_CODER_RANS;
    assert_int_equal(tsr_encode_frame(engines[0], &image, &coding, raster, payload, &size, &error), TSR_ERROR_USAGE);
    coding.coder = TSR_CODER_BY_EFFORT;
    coding.max_error = 3;
    assert_int_equal(tsr_encode_frame(engines[0], &image, &coding, raster, payload, &size, &error), TSR_OK);
    coding.path = TSR_PATH_TRANSFORM;
    coding.qp_eighths = TSR_HIGHEST_QP + 1;
    assert_int_equal(tsr_encode_frame(engines[0], &image, &coding, raster, payload, &size, &error), TSR_ERROR_USAGE);
    coding.qp_eighths = tsr_lowest_qp(8) - 1;
    assert_int_equal(tsr_encode_frame(engines[0], &image, &coding, raster, payload, &size, NULL), TSR_ERROR_USAGE);
    coding.qp_eighths = TSR_HIGHEST_QP;
    coding.coarser_by = 1;
    assert_int_equal(tsr_encode_frame(engines[0], &image, &coding, raster, payload, &size, NULL), TSR_ERROR_USAGE);
    coding.qp_eighths = 0;
    coding.coarser_from = 4;
    assert_int_equal(tsr_encode_frame(engines[0], &image, &coding, raster, payload, &size, NULL), TSR_ERROR_USAGE);
    coding.coarser_by = coding.coarser_from = 0;
    coding.tune = TSR_TUNE_SSIM + 1;
    assert_int_equal(tsr_encode_frame(engines[0], &image, &coding, raster, payload, &size, NULL), TSR_ERROR_USAGE);
    coding.tune = TSR_TUNE_BY_LOSS;
    image.exact_only = true;
    assert_int_equal(tsr_encode_frame(engines[0], &image, &coding, raster, payload, &size, &error), TSR_ERROR_USAGE);
    image.exact_only = false;
    image.columns = 0;
    assert_int_equal(tsr_encode_frame(engines[0], &image, &coding, raster, payload, &size, &error), TSR_ERROR_LIMIT);
    assert_int_equal(tsr_decode_frame(engines[0], &image, payload, 0, raster, &error), TSR_ERROR_LIMIT);
    tsr_engine_destroy(NULL);
}

/* Draws on a ground of 0: boxes, lines and single samples of a few values. */
static void fill_sparse(struct rng *r, const struct tsr_image *image, uint8_t *raster)
{
    const uint32_t columns = image->columns, rows = image->rows, values = 1 + rng_below(r, 4);
    const uint32_t most = image->bits_stored == 32 ? UINT32_MAX : (1u << image->bits_stored) - 1u;
    memset(raster, 0, raster_bytes(image));
    for (uint32_t n = 2 + rng_below(r, 12); n > 0; n--) {
        const uint32_t x = rng_below(r, columns), y = rng_below(r, rows), value = most / (1 + rng_below(r, values));
        const uint32_t kind = rng_below(r, 4), width = kind % 2 ? 1 + rng_below(r, columns / 3) : 1,
                       height = kind / 2 ? 1 + rng_below(r, rows / 3) : 1, slant = rng_below(r, 3);
        for (uint32_t v = y; v < y + height && v < rows; v++)
            for (uint32_t u = x + slant * (v - y) / 2; u < x + slant * (v - y) / 2 + width && u < columns; u++)
                for (int c = 0; c < image->components; c++)
                    put_word(image, raster, word_place(image, c, (size_t)v * columns + u), value);
    }
}

/* A sparse frame takes no more bytes at a higher effort, whatever path and coder. */
TEST(sparse_frames)
{
    static const struct tsr_coding codings[] = {{.coder = TSR_CODER_BY_EFFORT},
                                                {.coder = TSR_CODER_HUFFMAN},
                                                {.coder = TSR_CODER_RANS},
                                                {.path = TSR_PATH_TRANSFORM}};
    static const uint16_t sides[] = {33, 64, 130, 256, 300};
    struct rng r = {70};
    int sparse = 0;
    for (int n = 0; n < 40; n++) {
        if (skip_case()) continue;
        struct tsr_image image = {.columns = sides[n % 5], .rows = sides[n / 5 % 5], .frames = 1};
        image.components = n % 4 == 3 ? 3 : 1;
        image.bits_allocated = image.bits_stored = (uint8_t)(n % 8 == 5 ? 32 : n % 2 ? 8 : 16);
        image.high_bit = (uint8_t)(image.bits_stored - 1);
        const uint64_t samples = (uint64_t)image.columns * image.rows * image.components;
        uint8_t *raster = must(malloc(raster_bytes(&image)));
        fill_sparse(&r, &image, raster);
        struct tsr_coding coding = codings[n % 10 < 7 ? 0 : n % 10 - 6];
        size_t before = SIZE_MAX;
        for (coding.effort = 1; coding.effort <= 9; coding.effort++) {
            size_t size;
            uint8_t *payload = encode(any_engine(&r), &image, &coding, raster, &size);
            uint8_t *back = must(decode(any_engine(&r), &image, payload, size));
            expect(memcmp(back, raster, raster_bytes(&image)) == 0, "image %d, effort %d", n, coding.effort);
            if (size * 80 < samples * 3 || before * 80 < samples * 3) {
                expect(size <= before, "image %d, %u x %u x %d of %d bits: %zu bytes at effort %d, %zu below", n,
                       image.columns, image.rows, image.components, image.bits_stored, size, coding.effort, before);
                sparse++;
            }
            before = size;
            free(back);
            free(payload);
        }
        free(raster);
    }
    assert_true(sparse > 200 || getenv("TSR_TEST_SMALL"));
}

/* ---- Corrupt payloads ------------------------------------------------------------------------------------------ */

/* Behind the last tile one byte of value 0 may stand, which DICOM puts behind fragments of odd length. Anything else is
 * refused, before memory is taken for it. */
TEST(bytes_behind_tiles)
{
    struct tsr_image image = {0};
    struct tsr_error error;
    uint8_t raster[4] = {0}, payload[1 << 12] = {0};
    size_t size;
    image.columns = image.rows = 2;
    image.frames = image.components = 1;
    image.bits_allocated = image.bits_stored = 8;
    image.high_bit = 7;
    const struct tsr_coding coding = lossless(0);
    assert_int_equal(tsr_encode_frame(engines[0], &image, &coding, raster, payload, &size, &error), TSR_OK);
    assert_int_equal(tsr_decode_frame(engines[0], &image, payload, size, raster, &error), TSR_OK);
    for (size_t more = 0; more < 6; more++) {
        const enum tsr_status status = tsr_decode_frame(engines[0], &image, payload, size + more, raster, &error);
        expect(status == (more < 2 ? TSR_OK : TSR_ERROR_CORRUPT), "%zu zeros: %s", more, tsr_status_name(status));
        if (more >= 2) assert_non_null(strstr(error.text, "bytes behind its last tile"));
    }
    for (unsigned byte = 1; byte < 256; byte++) {
        payload[size] = (uint8_t)byte;
        assert_int_equal(tsr_decode_frame(engines[0], &image, payload, size + 1, raster, &error), TSR_ERROR_CORRUPT);
    }
    payload[size] = 0x80; /* a zero of two bytes */
    assert_int_equal(tsr_decode_frame(engines[0], &image, payload, size + 2, raster, &error), TSR_ERROR_CORRUPT);
    for (size_t less = 1; less <= size; less++)
        assert_int_equal(tsr_decode_frame(engines[0], &image, payload, size - less, raster, &error), TSR_ERROR_CORRUPT);
}

/* The same for frames of several tiles on every engine, by every path and coder: the padded payload gives the frame. */
TEST(padded_payloads)
{
    struct tsr_image image = {0};
    struct rng r = {70};
    image.columns = 1000;
    image.rows = 700;
    image.frames = image.components = 1;
    image.bits_allocated = 16;
    image.bits_stored = 12;
    image.high_bit = 11;
    const size_t bytes = (size_t)image.columns * image.rows * 2, room = tsr_encode_bound(&image) + 2;
    uint8_t *const raster = malloc(bytes), *const back = malloc(bytes), *const payload = malloc(room);
    assert_true(raster && back && payload);
    for (size_t i = 0; i < bytes; i += 2) {
        const unsigned sample = (unsigned)(i / 2 % image.columns + rng_below(&r, 9)) & 0xfff;
        raster[i] = (uint8_t)sample;
        raster[i + 1] = (uint8_t)(sample >> 8);
    }
    for (int kind = 0; kind < CODINGS; kind++) {
        const struct tsr_coding coding = lossless(kind);
        size_t size;
        assert_int_equal(tsr_encode_frame(engines[0], &image, &coding, raster, payload, &size, NULL), TSR_OK);
        payload[size] = payload[size + 1] = 0;
        for (size_t e = 0; e < COUNT_OF(engines); e++) {
            memset(back, 0xaa, bytes);
            assert_int_equal(tsr_decode_frame(engines[e], &image, payload, size + 1, back, NULL), TSR_OK);
            assert_memory_equal(back, raster, bytes);
            assert_int_equal(tsr_decode_frame(engines[e], &image, payload, size + 2, back, NULL), TSR_ERROR_CORRUPT);
        }
    }
    free(raster);
    free(back);
    free(payload);
}

/* Payloads with flipped bits, replaced bytes or a missing end are refused or give some frame. The sanitizers watch. */
TEST(corrupt_payloads)
{
    struct rng r = {69};
    int refused = 0, taken = 0;
    for (int n = 0; n < 120; n++) {
        const struct tsr_image image = random_image(&r, n % 4 ? 30 : 90);
        struct tsr_coding coding = lossless(n);
        if (n % 8 >= 4 && image.bits_allocated % 32 > 1) {
            coding.lossy = true;
            coding.max_error = 1 + rng_below(&r, 9);
            coding.qp_eighths = rng_between(&r, tsr_lowest_qp(image.bits_stored), TSR_HIGHEST_QP);
            coding.coarser_by = (uint32_t)rng_between(&r, 0, TSR_HIGHEST_QP - coding.qp_eighths);
            coding.tune = (uint8_t)(rng_below(&r, 2) ? TSR_TUNE_SSIM : TSR_TUNE_PSNR);
            coding.coarser_from = rng_below(&r, image.columns * image.rows);
        }
        uint8_t *raster = must(malloc(raster_bytes(&image)));
        size_t size;
        fill_raster(&r, &image, n / 4 % CONTENTS, raster);
        uint8_t *payload = encode(engines[1], &image, &coding, raster, &size);
        for (int k = 0; k < 40; k++) {
            const size_t kept = k % 4 == 3 ? rng_below(&r, (uint32_t)size) : size;
            uint8_t *damaged = must(malloc(kept + !kept));
            memcpy(damaged, payload, kept);
            const size_t near = k % 2 && kept > 40 ? 40 : kept; /* the model comes first */
            for (uint32_t flips = rng_below(&r, 4); flips > 0 && kept > 0; flips--)
                damaged[rng_below(&r, (uint32_t)near)] ^= (uint8_t)(k % 5 ? 1u << rng_below(&r, 8) : rng_next(&r));
            uint8_t *back = decode(any_engine(&r), &image, damaged, kept);
            refused += back == NULL;
            taken += back != NULL;
            free(back);
            free(damaged);
        }
        free(payload);
        free(raster);
    }
    assert_true(refused > 100 && taken > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_frames),
                                       cmocka_unit_test(smallest_frames),
                                       cmocka_unit_test(every_depth),
                                       cmocka_unit_test(shapes_of_frames),
                                       cmocka_unit_test(sizes_of_pieces),
                                       cmocka_unit_test(threads_change_nothing),
                                       cmocka_unit_test(batches),
                                       cmocka_unit_test(contents_of_work_space_do_not_matter),
                                       cmocka_unit_test(many_tiles_are_taken_in_their_order),
                                       cmocka_unit_test(efforts_of_small_images),
                                       cmocka_unit_test(efforts_of_tiled_images),
                                       cmocka_unit_test(efforts_are_worth_it),
                                       cmocka_unit_test(threads_train_alike),
                                       cmocka_unit_test(errors_stay_within_the_step),
                                       cmocka_unit_test(errors_stay_within_the_bound),
                                       cmocka_unit_test(two_steps_in_a_frame),
                                       cmocka_unit_test(saturated_colours_with_loss),
                                       cmocka_unit_test(work_spaces_that_are_kept),
                                       cmocka_unit_test(sparse_frames),
                                       cmocka_unit_test(usage),
                                       cmocka_unit_test(bytes_behind_tiles),
                                       cmocka_unit_test(padded_payloads),
                                       cmocka_unit_test(corrupt_payloads)};
    return cmocka_run_group_tests(tests, create_engines, destroy_engines);
}
