/* The decoding stages of path T on the device against the CPU engine. They decode its frames, of all coders and
 * efforts, and the same with flipped bits and missing bytes. test_cuda_decode.c tests the engine around them. */
#include "device.h"

#include "tests/unit/images.h"

#include "kernels/batch/batch_decode_cuda.h"
#include "kernels/engine.h"
#include "kernels/transform_plan.h"
#include "kernels/pool/thread_pool.h"
#include "kernels/blocks/blocks_cpu.h"

static struct tsr_engine *cpu;
static uint32_t elsewhere; /* frames that the stages have no code for */

static int create_engine(void **state)
{
    (void)state;
    cpu = tsr_cpu_engine_create(tsr_pool_create(2));
    return cpu ? 0 : -1;
}

static int destroy_engine(void **state)
{
    (void)state;
    cpu->ops->destroy(cpu);
    return 0;
}

/* ---- Coded frames --------------------------------------------------------------------------------------------- */

/* Models and payloads of frames, each in an allocation of its own. They may be damaged. */
struct coded {
    uint32_t frames, tiles;
    struct tsr_decode_job *jobs;
    struct tsr_segment *segments; /* by frame: the model, then tiles */
};

static struct tsr_segment join(const struct tsr_segment *segment, int count)
{
    size_t size = 0, at = 0;
    for (int i = 0; i < count; i++) size += segment[i].size;
    uint8_t *bytes = must(malloc(size + 1));
    for (int i = 0; i < count; i++) {
        if (segment[i].size) memcpy(bytes + at, segment[i].bytes, segment[i].size);
        at += segment[i].size;
    }
    return (struct tsr_segment){bytes, size};
}

static struct coded encode(const struct tsr_image *image, const struct tsr_coding *coding, const uint8_t *rasters,
                           uint32_t frames)
{
    struct coded coded = {.frames = frames};
    struct tsr_encode_job *jobs = must(calloc(frames, sizeof *jobs));
    void *space = must(malloc(cpu->ops->encode_workspace(cpu, image, coding, frames)));
    for (uint32_t f = 0; f < frames; f++) jobs[f].raster = rasters + f * raster_bytes(image);
    assert_int_equal(cpu->ops->encode(cpu, image, coding, jobs, frames, space), TSR_OK);
    coded.tiles = jobs[0].coded.tiles;
    coded.jobs = must(calloc(frames, sizeof *coded.jobs));
    coded.segments = must(calloc((size_t)frames * (coded.tiles + 1), sizeof *coded.segments));
    for (uint32_t f = 0; f < frames; f++) {
        struct tsr_segment *own = coded.segments + (size_t)f * (coded.tiles + 1);
        assert_int_equal(jobs[f].coded.tiles, coded.tiles);
        own[0] = join(&jobs[f].coded.model, 1);
        for (uint32_t t = 0; t < coded.tiles; t++)
            own[1 + t] = join(jobs[f].coded.tile[t].segment, jobs[f].coded.tile[t].segments);
        coded.jobs[f].tile = own + 1;
        coded.jobs[f].tiles = coded.tiles;
    }
    free(space);
    free(jobs);
    return coded;
}

static void free_coded(struct coded *coded)
{
    for (uint32_t i = 0; i < coded->frames * (coded->tiles + 1); i++) free((void *)(uintptr_t)coded->segments[i].bytes);
    free(coded->segments);
    free(coded->jobs);
}

/* ---- Both decoders -------------------------------------------------------------------------------------------- */

static void decode_on_cpu(const struct tsr_image *image, struct coded *coded, uint8_t *rasters)
{
    for (uint32_t f = 0; f < coded->frames; f++) {
        struct tsr_decode_job *job = &coded->jobs[f];
        job->model = coded->segments[(size_t)f * (coded->tiles + 1)];
        job->raster = rasters + f * raster_bytes(image);
        const size_t bytes = cpu->ops->decode_workspace(cpu, image, job, 1);
        if (bytes == 0) {
            job->status = TSR_ERROR_CORRUPT;
            job->bad_tile = TSR_BAD_MODEL;
            continue;
        }
        void *space = must(malloc(bytes));
        cpu->ops->decode(cpu, image, job, 1, space);
        free(space);
    }
}

/* Decodes with both decoders and compares the results. cut: the tiles, from a sound model. */
static void check_decoding(const struct tsr_image *image, const struct tsr_tiling *cut, struct coded *coded)
{
    const size_t frame_bytes = raster_bytes(image);
    const uint32_t frames = coded->frames;
    uint8_t *expected = must(malloc(frames * frame_bytes)), *found = must(malloc(frames * frame_bytes));
    decode_on_cpu(image, coded, expected);

    size_t payload_bytes = 0;
    const uint32_t segments = frames * (coded->tiles + 1);
    for (uint32_t i = 0; i < segments; i++) payload_bytes += coded->segments[i].size;
    struct tsr_cuda_decode_batch b;
    struct device_buffer arena = device_buffer(
        tsr_cuda_decode_lay_out(&b, image, cut, frames, false, true, false, payload_bytes, NULL, NULL, NULL));
    tsr_cuda_decode_lay_out(&b, image, cut, frames, false, true, false, payload_bytes, NULL, NULL, arena.bytes);
    assert_int_equal(b.tiles, coded->tiles);
    struct tsr_cuda_piece *models = must(calloc(frames, sizeof *models));
    struct tsr_cuda_piece *tiles = must(calloc(segments, sizeof *tiles));
    size_t at = 0;
    for (uint32_t i = 0; i < segments; i++) {
        const struct tsr_segment segment = coded->segments[i];
        const uint32_t frame = i / (coded->tiles + 1), number = i % (coded->tiles + 1);
        struct tsr_cuda_piece *piece = number == 0 ? &models[frame] : &tiles[frame * coded->tiles + number - 1];
        piece->offset = at;
        piece->size = (uint32_t)segment.size;
        if (segment.size)
            must_cuda(
                cudaMemcpy((uint8_t *)(uintptr_t)b.payloads + at, segment.bytes, segment.size, cudaMemcpyHostToDevice));
        at += segment.size;
    }
    must_cuda(cudaMemcpy((void *)(uintptr_t)b.model, models, frames * sizeof *models, cudaMemcpyHostToDevice));
    must_cuda(cudaMemcpy((void *)(uintptr_t)b.tile, tiles, (size_t)frames * coded->tiles * sizeof *tiles,
                         cudaMemcpyHostToDevice));
    must_cuda(tsr_cuda_decode_frames(&b, 0));
    must_cuda(cudaDeviceSynchronize());
    struct tsr_cuda_decode_frame *states = must(malloc(frames * sizeof *states));
    must_cuda(cudaMemcpy(states, b.frame, frames * sizeof *states, cudaMemcpyDeviceToHost));
    must_cuda(cudaMemcpy(found, b.rasters, frames * frame_bytes, cudaMemcpyDeviceToHost));
    for (uint32_t f = 0; f < frames; f++) {
        const struct tsr_decode_job *job = &coded->jobs[f];
        if (states[f].state == TSR_DECODE_ELSEWHERE) {
            elsewhere++;
            continue;
        }
        const bool is_bad_model = job->status != TSR_OK && job->bad_tile == TSR_BAD_MODEL;
        expect((states[f].state == TSR_DECODE_BAD) == is_bad_model, "frame %u: state %u", f, states[f].state);
        if (is_bad_model) continue;
        const uint32_t bad_tile = job->status == TSR_OK ? TSR_NO_BAD_TILE : job->bad_tile;
        expect(states[f].bad_tile == bad_tile, "frame %u: bad tile %u, not %u", f, states[f].bad_tile, bad_tile);
        if (job->status != TSR_OK) continue;
        for (size_t i = 0; i < frame_bytes; i++)
            expect(found[f * frame_bytes + i] == expected[f * frame_bytes + i],
                   "frame %u of %u x %u x %u, %u bits: byte %zu is %u, not %u", f, image->columns, image->rows,
                   image->components, image->bits_stored, i, found[f * frame_bytes + i], expected[f * frame_bytes + i]);
    }
    free(states);
    free(tiles);
    free(models);
    device_free(&arena, "the batch's arrays");
    free(found);
    free(expected);
}

/* Flips bits of a tile or, seldom, of a model, or cuts bytes off. */
static void damage(struct rng *r, struct coded *coded)
{
    for (uint32_t f = 0; f < coded->frames; f++) {
        const bool of_model = rng_below(r, 8) == 0;
        const uint32_t number = of_model ? 0 : 1 + rng_below(r, coded->tiles);
        struct tsr_segment *segment = &coded->segments[f * (coded->tiles + 1) + number];
        uint8_t *bytes = (uint8_t *)(uintptr_t)segment->bytes;
        if (segment->size == 0) continue;
        if (!of_model && rng_below(r, 5) == 0) {
            segment->size -= 1 + rng_below(r, (uint32_t)segment->size);
            continue;
        }
        for (uint32_t flips = 1 + rng_below(r, 3); flips > 0; flips--)
            bytes[rng_below(r, (uint32_t)segment->size)] ^= (uint8_t)(1u << rng_below(r, 8));
    }
}

enum { SMOOTH = CONTENTS /* a content more: fill_smooth */ };

/* Codes frames of one content and decodes them, once sound and `damages` times damaged. */
static void check_coding(struct rng *r, const struct tsr_image *image, const struct tsr_coding *coding, int content,
                         uint32_t frames, int damages)
{
    if (skip_case()) return;
    const size_t bytes = raster_bytes(image);
    uint8_t *rasters = must(malloc(frames * bytes));
    for (uint32_t f = 0; f < frames; f++)
        if (content == SMOOTH)
            fill_smooth(r, image, rasters + f * bytes);
        else
            fill_raster(r, image, content, rasters + f * bytes);
    for (int n = 0; n <= damages; n++) {
        struct coded coded = encode(image, coding, rasters, frames);
        struct tsr_tiling cut;
        struct tsr_bit_reader reader = tsr_bit_reader(coded.segments[0].bytes, coded.segments[0].size);
        assert_true(tsr_get_tiling(&reader, image, &cut));
        if (n > 0) damage(r, &coded);
        const uint32_t before = elsewhere;
        check_decoding(image, &cut, &coded);
        if (n == 0) expect(elsewhere == before, "a sound frame is decoded elsewhere");
        free_coded(&coded);
    }
    free(rasters);
}

/* An image that may be coded with loss and whose planes are all of path T. */
static struct tsr_image any_image(struct rng *r, int32_t most)
{
    struct tsr_image image;
    do image = random_image(r, most);
    while (!tsr_cuda_can_decode(&image));
    return image;
}

static struct tsr_coding any_coding(struct rng *r, const struct tsr_image *image, int number)
{
    static const enum tsr_coder coders[] = {TSR_CODER_CAVLC, TSR_CODER_HUFFMAN, TSR_CODER_RANS};
    static const int efforts[] = {1, 5, 2, 9};
    struct tsr_coding coding = {
        .path = TSR_PATH_TRANSFORM, .coder = coders[number % 3], .effort = efforts[number / 6 % 4]};
    coding.lossy = number / 3 % 2;
    if (tsr_may_have_intra(&coding)) coding.effort = 6; /* predicted tiles are the CPU's */
    if (coding.lossy) coding.qp_eighths = rng_between(r, tsr_lowest_qp(image->bits_stored), TSR_HIGHEST_QP);
    if (coding.lossy && rng_below(r, 2)) coding.tune = TSR_TUNE_SSIM;
    return coding;
}

/* ---- Tests ---------------------------------------------------------------------------------------------------- */

TEST(random_frames)
{
    struct rng r = {501};
    for (int n = 0; n < (small_only() ? 96 : 480); n++) {
        const struct tsr_image image = any_image(&r, n % 4 ? 60 : 150);
        const struct tsr_coding coding = any_coding(&r, &image, n);
        check_coding(&r, &image, &coding, n % 5 ? 5 : n / 5 % CONTENTS, 1 + (uint32_t)n % 3, 0);
    }
}

/* Planes whose DCs are a plane of their own, damaged. */
TEST(dc_planes)
{
    struct rng r = {505};
    for (int n = 0; n < (small_only() ? 24 : 160); n++) {
        struct tsr_image image = any_image(&r, 150);
        image.columns += 20;
        image.rows += 20;
        image.swapped = false;
        struct tsr_coding coding = any_coding(&r, &image, n % 2 ? 22 : 23);
        coding.qp_eighths = rng_between(&r, 24 * TSR_QP_UNIT, TSR_HIGHEST_QP);
        check_coding(&r, &image, &coding, SMOOTH, 1, 4);
    }
}

TEST(smallest_frames)
{
    struct rng r = {502};
    for (uint32_t columns = 1; columns <= 9; columns += 1 + columns / 5)
        for (uint32_t rows = 1; rows <= 9; rows += 1 + columns % 2) {
            struct tsr_image image = any_image(&r, 1);
            image.columns = columns;
            image.rows = rows;
            image.swapped = false;
            const struct tsr_coding coding = any_coding(&r, &image, (int)(columns + 5 * rows));
            check_coding(&r, &image, &coding, 5, 2, 1);
        }
}

/* Several tiles, and sizes near those of tiles, slices, blocks and strips. */
TEST(shapes_of_frames)
{
    static const uint32_t shapes[][2] = {{1100, 70}, {1, 1500}, {1500, 1}, {128, 64}, {65, 63}, {257, 300}, {1025, 66}};
    struct rng r = {503};
    for (size_t i = 0; i < COUNT_OF(shapes); i++)
        for (int coder = 0; coder < 6; coder++) {
            const struct tsr_image image = plain_image(shapes[i][0], shapes[i][1], 1, i % 3 == 2 ? 16 : i % 3 ? 12 : 8);
            const struct tsr_coding coding = any_coding(&r, &image, coder + 6 * (int)(i % 4));
            check_coding(&r, &image, &coding, i % 3 ? 5 : 3, 1, 0);
        }
}

/* Steps that change within a frame. */
TEST(two_steps)
{
    struct rng r = {504};
    for (int n = 0; n < 12; n++) {
        const struct tsr_image image = plain_image(200, 90, 1 + 2 * (n % 2), n % 3 ? 8 : 16);
        struct tsr_coding coding = any_coding(&r, &image, n / 3 * 6 + 3 + n % 3);
        coding.coarser_by = 1 + rng_below(&r, 20);
        coding.coarser_from = rng_below(&r, 200 * 90);
        coding.qp_eighths = rng_between(&r, 0, 200);
        check_coding(&r, &image, &coding, 5, 1, 0);
    }
}

/* Slices with sides that a file may have but no encoder makes, from 4 to 64. With 4 a kernel gets more slices than it
 * was launched for. Above 32 the stages have no code for CAVLC. */
TEST(sides_of_slices)
{
    static const int sides[] = {4, 5, 7, 16, 31, 32, 33, 64};
    struct rng r = {507};
    const struct tsr_image image = plain_image(530, 130, 1, 8);
    const struct tsr_coding coding = {
        .path = TSR_PATH_TRANSFORM, .coder = TSR_CODER_CAVLC, .effort = 1, .lossy = true, .qp_eighths = 160};
    uint8_t *raster = must(malloc(raster_bytes(&image)));
    fill_raster(&r, &image, 5, raster);
    struct tsr_frame_model *model = must(calloc(1, sizeof *model));
    struct tsr_cavlc_reader *tables = must(malloc(sizeof *tables));
    model->plane[0].offset = must(malloc(65536 * sizeof(uint16_t)));
    tsr_cavlc_reader_init(tables);
    for (size_t i = 0; i < COUNT_OF(sides); i++) {
        struct coded coded = encode(&image, &coding, raster, 1);
        struct tsr_bit_reader reader = tsr_bit_reader(coded.segments[0].bytes, coded.segments[0].size);
        assert_true(tsr_get_frame_model(&reader, &image, model));
        struct tsr_plane_model *plane = &model->plane[0];
        const int before = plane->slice_side;
        assert_false(plane->lapping);
        plane->slice_side = sides[i];
        for (uint32_t t = 0; t < coded.tiles; t++) {
            struct tsr_segment *segment = &coded.segments[1 + t];
            const struct tsr_tile tile = tsr_tile_at(&image, model, t);
            const size_t raw = tsr_raw_tile_bytes(plane->range, tile.width, tile.height);
            int32_t *coefficients = must(malloc(tsr_tile_coefficients(tile.width, tile.height) * sizeof *coefficients));
            uint8_t *payload = must(malloc(raw));
            assert_true(segment->size < raw);
            assert_true(
                tsr_decode_slices(segment->bytes, segment->size, tile, before, NULL, NULL, tables, coefficients));
            free((void *)(uintptr_t)segment->bytes);
            segment->bytes = payload;
            segment->size = tsr_code_slices(coefficients, tile, sides[i], NULL, NULL, payload, raw - 1);
            assert_true(segment->size > 0);
            free(coefficients);
        }
        uint8_t *bytes = (uint8_t *)(uintptr_t)coded.segments[0].bytes;
        bytes = must(realloc(bytes, coded.segments[0].size + 16));
        struct tsr_bit_writer writer = tsr_bit_writer(bytes, coded.segments[0].size + 16);
        tsr_put_frame_model(&writer, &image, model);
        coded.segments[0] = (struct tsr_segment){bytes, tsr_flush_bits(&writer)};
        assert_false(writer.overflow);
        elsewhere = 0;
        const struct tsr_tiling cut = tsr_frame_tiling(&image, model);
        check_decoding(&image, &cut, &coded);
        assert_int_equal(coded.jobs[0].status, TSR_OK);
        assert_int_equal(elsewhere, sides[i] > TSR_LARGE_SLICE_BLOCKS);
        free_coded(&coded);
    }
    free(model->plane[0].offset);
    free(tables);
    free(model);
    free(raster);
}

/* CAVLC of path P's residuals. */
TEST(residuals)
{
    struct rng r = {505};
    for (int n = 0; n < 12; n++) {
        const struct tsr_image image = any_image(&r, n % 3 ? 70 : 180);
        const struct tsr_coding coding = {.path = TSR_PATH_PREDICT, .coder = TSR_CODER_CAVLC, .effort = 1 + n % 9};
        check_coding(&r, &image, &coding, n % 4 ? 5 : n % CONTENTS, 1 + (uint32_t)n % 2, n % 2);
    }
}

TEST(damaged_frames)
{
    struct rng r = {506};
    for (int n = 0; n < (small_only() ? 72 : 720); n++) {
        const struct tsr_image image = plain_image(66 + rng_below(&r, 60), 30 + rng_below(&r, 50), n % 7 ? 1 : 3,
                                                   n % 4 == 0   ? 16
                                                   : n % 4 == 1 ? 12
                                                                : 8);
        const struct tsr_coding coding = any_coding(&r, &image, n);
        check_coding(&r, &image, &coding, 5, 4, 4);
    }
    print_message("%u frames to be decoded elsewhere\n", elsewhere);
}

int main(void)
{
    if (!has_device()) return SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_frames),  cmocka_unit_test(smallest_frames), cmocka_unit_test(shapes_of_frames),
        cmocka_unit_test(two_steps),      cmocka_unit_test(sides_of_slices), cmocka_unit_test(residuals),
        cmocka_unit_test(damaged_frames), cmocka_unit_test(dc_planes),
    };
    if (getenv("TSR_TEST")) cmocka_set_test_filter(getenv("TSR_TEST"));
    return cmocka_run_group_tests(tests, create_engine, destroy_engine);
}
