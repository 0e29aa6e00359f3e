/* The CPU engine: frames over a pool of threads, tiles of a frame over the same pool. */
#include "cpu_engine.h"

#include <stdlib.h>

void *tsr_take(void *base, size_t *used, size_t bytes)
{
    void *at = base ? (uint8_t *)base + *used : NULL;
    *used += (bytes + 63) / 64 * 64;
    return at;
}

uint32_t tsr_parts_of(const struct tsr_pool *pool, uint32_t tiles)
{
    uint32_t wanted = 4 * (uint32_t)tsr_pool_threads(pool);
    if (wanted > TSR_PARTS_LIMIT) wanted = TSR_PARTS_LIMIT;
    return tiles < wanted ? tiles : wanted;
}

/* Jobs of one call, as the pool sees them. */
struct batch {
    struct tsr_engine *engine;
    const struct tsr_image *image;
    const struct tsr_coding *coding;
    struct tsr_encode_job *encode;
    struct tsr_decode_job *decode;
    uint8_t *workspace;
    size_t space;
};

static size_t frames_space(size_t space, uint32_t frames)
{
    return frames == 0 || space > SIZE_MAX / frames ? 0 : space * frames;
}

static size_t encode_workspace(const struct tsr_engine *engine, const struct tsr_image *image, uint32_t frames)
{
    return frames_space(tsr_cpu_encode_space(engine->pool, image), frames);
}

/* The same space for each frame: that of the largest. */
static size_t largest_decode_space(const struct tsr_engine *engine, const struct tsr_image *image,
                                   const struct tsr_decode_job *jobs, uint32_t frames)
{
    size_t most = 0;
    for (uint32_t i = 0; i < frames; i++) {
        const size_t space = tsr_cpu_decode_space(engine->pool, image, jobs[i].model);
        if (space > most) most = space;
    }
    return most;
}

static size_t decode_workspace(const struct tsr_engine *engine, const struct tsr_image *image,
                               const struct tsr_decode_job *jobs, uint32_t frames)
{
    return frames_space(largest_decode_space(engine, image, jobs, frames), frames);
}

static void encode_one(void *context, unsigned index)
{
    struct batch *b = context;
    tsr_cpu_encode_frame(b->engine->pool, b->image, b->coding, &b->encode[index], b->workspace + index * b->space);
}

static enum tsr_status encode(struct tsr_engine *engine, const struct tsr_image *image, const struct tsr_coding *coding,
                              struct tsr_encode_job *jobs, uint32_t frames, void *workspace)
{
    struct batch b = {engine, image, coding, jobs, NULL, workspace, tsr_cpu_encode_space(engine->pool, image)};
    tsr_pool_run(engine->pool, encode_one, &b, frames);
    return TSR_OK;
}

static void decode_one(void *context, unsigned index)
{
    struct batch *b = context;
    tsr_cpu_decode_frame(b->engine->pool, b->image, &b->decode[index], b->workspace + index * b->space);
}

static enum tsr_status decode(struct tsr_engine *engine, const struct tsr_image *image, struct tsr_decode_job *jobs,
                              uint32_t frames, void *workspace)
{
    struct batch b = {engine, image, NULL, NULL, jobs, workspace, largest_decode_space(engine, image, jobs, frames)};
    tsr_pool_run(engine->pool, decode_one, &b, frames);
    for (uint32_t i = 0; i < frames; i++)
        if (jobs[i].status != TSR_OK) return jobs[i].status;
    return TSR_OK;
}

static void destroy(struct tsr_engine *engine)
{
    tsr_pool_destroy(engine->pool);
    free(engine);
}

static const struct tsr_engine_ops cpu_engine_ops = {
    "cpu", encode_workspace, decode_workspace, encode, decode, destroy,
};

struct tsr_engine *tsr_cpu_engine_create(struct tsr_pool *pool)
{
    struct tsr_engine *engine = malloc(sizeof *engine);
    if (!engine) {
        tsr_pool_destroy(pool);
        return NULL;
    }
    engine->ops = &cpu_engine_ops;
    engine->pool = pool;
    return engine;
}
