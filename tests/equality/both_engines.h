/* The CUDA engine and the CPU engine side by side: both must give the same for the same frames. */
#ifndef TSR_TESTS_GPU_BOTH_ENGINES_H
#define TSR_TESTS_GPU_BOTH_ENGINES_H

#include "device.h"

#include "tests/unit/images.h"

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

/* Encodes frames with both engines, which must agree. Returns the number that the CUDA engine did itself. */
static inline uint32_t check_frames(const struct tsr_image *image, const struct tsr_coding *coding,
                                    const uint8_t *rasters, uint32_t frames)
{
    uint32_t done = 0;
    struct tsr_encode_job *jobs[2];
    uint8_t *space[2];
    struct tsr_engine *engines[2] = {cuda, cpu};
    size_t bytes[2];
    for (int e = 0; e < 2; e++) {
        bytes[e] = engines[e]->ops->encode_workspace(engines[e], image, coding, frames);
        jobs[e] = must(calloc(frames, sizeof *jobs[e]));
        space[e] = must(malloc(bytes[e] + GUARD_BYTES));
        memset(space[e], 0xa5, bytes[e] + GUARD_BYTES);
        for (uint32_t f = 0; f < frames; f++) jobs[e][f].raster = rasters + f * raster_bytes(image);
        assert_int_equal(engines[e]->ops->encode(engines[e], image, coding, jobs[e], frames, space[e]), TSR_OK);
        for (int i = 0; i < GUARD_BYTES; i++) assert_int_equal(space[e][bytes[e] + (size_t)i], 0xa5);
    }
    for (uint32_t f = 0; f < frames; f++) {
        const struct tsr_coded_frame *found = &jobs[0][f].coded, *expected = &jobs[1][f].coded;
        const bool is_own = strcmp(jobs[0][f].engine, cuda->ops->name) == 0;
        assert_string_equal(jobs[1][f].engine, "cpu");
        expect(is_own ? jobs[0][f].fallback == NULL : jobs[0][f].fallback != NULL, "engine %s", jobs[0][f].engine);
        done += is_own;
        assert_int_equal(found->tiles, expected->tiles);
        for (uint32_t t = 0; t < found->tiles; t++) {
            const struct tsr_coded_tile *a = &found->tile[t], *b = &expected->tile[t];
            assert_int_equal(a->segments, b->segments);
            for (int s = 0; s < a->segments; s++) same_segment(a->segment[s], b->segment[s], "tile", t);
        }
        same_segment(found->model, expected->model, "model of frame", f);
    }
    for (int e = 0; e < 2; e++) {
        free(space[e]);
        free(jobs[e]);
    }
    return done;
}

#endif
