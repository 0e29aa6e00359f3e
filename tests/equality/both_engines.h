/* The CUDA engine and the CPU engine side by side: both must give the same for the same frames. */
#ifndef TSR_TESTS_GPU_BOTH_ENGINES_H
#define TSR_TESTS_GPU_BOTH_ENGINES_H

#include "device.h"

#include "coded_frames.h"

#include "kernels/drawn/drawn_cpu.h"
#include "kernels/effort.h"
#include "kernels/engine_cuda/engine_cuda.h"
#include "kernels/pool/thread_pool.h"

enum { GUARD_BYTES = 16 };

static struct tsr_engine *cuda, *cpu;

static inline int create_engines(void **state)
{
    char reason[256];
    (void)state;
    cuda = tsr_cuda_engine_create(tsr_pool_create(2), NULL, reason, sizeof reason);
    cpu = tsr_cpu_engine_create(tsr_pool_create(2));
    if (!cuda) print_error("no CUDA engine: %s\n", reason);
    return cuda && cpu ? 0 : -1;
}

static inline int destroy_engines(void **state)
{
    (void)state;
    cuda->ops->destroy(cuda);
    cpu->ops->destroy(cpu);
    return 0;
}

static inline void same_segment(struct tsr_segment found, struct tsr_segment expected, const char *what,
                                uint32_t number)
{
    expect(found.size == expected.size, "%s %u: %zu bytes, not %zu", what, number, found.size, expected.size);
    expect(found.size == 0 || memcmp(found.bytes, expected.bytes, found.size) == 0, "%s %u: other bytes", what, number);
}

/* How many of some frames are not tried as drawn ones, and so are the GPU's. */
static inline uint32_t count_plain(const struct tsr_image *image, const struct tsr_coding *coding,
                                   const uint8_t *rasters, uint32_t frames)
{
    const uint32_t tried = tsr_tries_drawn(coding) ? frames : 0;
    for (uint32_t f = 0; f < tried; f++)
        frames -= tsr_may_be_drawn(image, coding->effort, rasters + f * raster_bytes(image));
    return frames;
}

/* Encodes frames with both engines, which must agree. bases: as code_frames_on has them; only_refers: as of the job.
 * Returns the number that the CUDA engine did itself. */
static inline uint32_t check_frames_on(const struct tsr_image *image, const struct tsr_coding *coding,
                                       const uint8_t *rasters, const uint8_t *const *bases, bool only_refers,
                                       uint32_t frames)
{
    uint32_t done = 0;
    struct tsr_encode_job *jobs[2];
    uint8_t *space[2];
    struct base_rooms rooms[2];
    struct tsr_engine *engines[2] = {cuda, cpu};
    size_t bytes[2];
    for (int e = 0; e < 2; e++) {
        bytes[e] = engines[e]->ops->encode_workspace(engines[e], image, coding, frames);
        jobs[e] = must(calloc(frames, sizeof *jobs[e]));
        space[e] = must(malloc(bytes[e] + GUARD_BYTES));
        memset(space[e], 0xa5, bytes[e] + GUARD_BYTES);
        rooms[e] = take_rooms(image, frames, bases);
        for (uint32_t f = 0; f < frames; f++) {
            jobs[e][f].raster = rasters + f * raster_bytes(image);
            jobs[e][f].base = base_in(&rooms[e], bases, f);
            jobs[e][f].only_refers = only_refers;
            jobs[e][f].saved = 7;
        }
        assert_int_equal(engines[e]->ops->encode(engines[e], image, coding, jobs[e], frames, space[e]), TSR_OK);
        for (int i = 0; i < GUARD_BYTES; i++) assert_int_equal(space[e][bytes[e] + (size_t)i], 0xa5);
    }
    for (uint32_t f = 0; f < frames; f++) {
        const struct tsr_coded_frame *found = &jobs[0][f].coded, *expected = &jobs[1][f].coded;
        const bool is_own = strcmp(jobs[0][f].engine, cuda->ops->name) == 0;
        assert_string_equal(jobs[1][f].engine, "cpu");
        expect(is_own ? jobs[0][f].fallback == NULL : jobs[0][f].fallback != NULL, "engine %s", jobs[0][f].engine);
        done += is_own;
        if (bases) assert_int_equal(jobs[0][f].saved, jobs[1][f].saved);
        assert_int_equal(found->tiles, expected->tiles);
        for (uint32_t t = 0; t < found->tiles; t++) {
            const struct tsr_coded_tile *a = &found->tile[t], *b = &expected->tile[t];
            assert_int_equal(a->segments, b->segments);
            for (int s = 0; s < a->segments; s++) same_segment(a->segment[s], b->segment[s], "tile", t);
        }
        same_segment(found->model, expected->model, "model of frame", f);
    }
    for (int e = 0; e < 2; e++) {
        free(rooms[e].bytes);
        free(space[e]);
        free(jobs[e]);
    }
    return done;
}

static inline uint32_t check_frames(const struct tsr_image *image, const struct tsr_coding *coding,
                                    const uint8_t *rasters, uint32_t frames)
{
    return check_frames_on(image, coding, rasters, NULL, false, frames);
}

/* Decodes with both engines, which must agree. Returns the number of frames that the CUDA engine did itself. */
static inline uint32_t check_decoding(const struct coded_frames *c)
{
    const size_t bytes = raster_bytes(&c->image);
    struct tsr_engine *engines[2] = {cuda, cpu};
    struct tsr_decode_job *jobs[2];
    uint8_t *rasters[2];
    struct base_rooms rooms[2];
    enum tsr_status status[2];
    uint32_t done = 0;
    for (int e = 0; e < 2; e++) {
        jobs[e] = must(calloc(c->frames, sizeof *jobs[e]));
        rasters[e] = must(malloc(c->frames * bytes + GUARD_BYTES));
        memset(rasters[e], 0xa5, c->frames * bytes + GUARD_BYTES);
        rooms[e] = take_rooms(&c->image, c->frames, c->bases);
        for (uint32_t f = 0; f < c->frames; f++) {
            jobs[e][f].model = c->model[f];
            jobs[e][f].tile = c->tile + (size_t)f * c->tiles;
            jobs[e][f].tiles = c->tiles;
            jobs[e][f].base = base_in(&rooms[e], c->bases, f);
            jobs[e][f].raster = rasters[e] + f * bytes;
        }
        const size_t space_bytes = engines[e]->ops->decode_workspace(engines[e], &c->image, jobs[e], c->frames);
        void *space = must(malloc(space_bytes + 1));
        status[e] =
            space_bytes ? engines[e]->ops->decode(engines[e], &c->image, jobs[e], c->frames, space) : TSR_ERROR_CORRUPT;
        free(space);
        for (int i = 0; i < GUARD_BYTES; i++) assert_int_equal(rasters[e][c->frames * bytes + (size_t)i], 0xa5);
        if (!space_bytes) done = c->frames; /* there are no frames */
    }
    assert_int_equal(status[0], status[1]);
    for (uint32_t f = 0; f < c->frames && done == 0; f++) {
        const struct tsr_decode_job *a = &jobs[0][f], *b = &jobs[1][f];
        expect(a->status == b->status, "frame %u: status %d, not %d", f, a->status, b->status);
        assert_string_equal(b->engine, "cpu");
        if (b->status == TSR_OK) {
            for (size_t i = 0; i < bytes; i++)
                expect(a->raster[i] == b->raster[i], "frame %u, %u x %u: byte %zu is %02x, not %02x", f,
                       c->image.columns, c->image.rows, i, a->raster[i], b->raster[i]);
        } else {
            expect(a->bad_tile == b->bad_tile, "frame %u: tile %u, not %u", f, a->bad_tile, b->bad_tile);
        }
    }
    for (uint32_t f = 0; f < c->frames && done < c->frames; f++) {
        const bool is_own = strcmp(jobs[0][f].engine, cuda->ops->name) == 0;
        expect(is_own ? jobs[0][f].fallback == NULL : jobs[0][f].fallback != NULL, "engine %s", jobs[0][f].engine);
        done += is_own;
    }
    for (int e = 0; e < 2; e++) {
        free(rooms[e].bytes);
        free(rasters[e]);
        free(jobs[e]);
    }
    return done;
}

#endif
