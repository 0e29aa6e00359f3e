/* Coded frames as a file has them: models and payloads in memory of their own. */
#ifndef TSR_TESTS_GPU_CODED_FRAMES_H
#define TSR_TESTS_GPU_CODED_FRAMES_H

#include "kernels/engine.h"
#include "tests/unit/images.h"

struct coded_frames {
    struct tsr_image image;
    uint32_t frames, tiles;
    uint8_t *bytes;
    size_t size;
    struct tsr_segment *model, *tile; /* model by frame, tile by frame and tile */
    const uint8_t *const *bases;      /* by frame: a raster, or NULL. NULL: the frames have no bases */
};

/* Rooms for the bases of frames. */
struct base_rooms {
    uint8_t *bytes;
    size_t each;
};

static inline struct base_rooms take_rooms(const struct tsr_image *image, uint32_t frames, const uint8_t *const *bases)
{
    struct base_rooms rooms = {NULL, (tsr_base_room(image) + 63) / 64 * 64};
    if (bases) rooms.bytes = must(malloc(frames * rooms.each));
    return rooms;
}

static inline struct tsr_base base_in(const struct base_rooms *rooms, const uint8_t *const *bases, uint32_t frame)
{
    const struct tsr_base none = {NULL, NULL}, base = {bases ? bases[frame] : NULL, rooms->bytes + frame * rooms->each};
    return bases ? base : none;
}

static inline uint8_t *put_segment(uint8_t *at, struct tsr_segment *to, struct tsr_segment from)
{
    if (from.size) memcpy(at, from.bytes, from.size);
    to->bytes = at - to->size;
    to->size += from.size;
    return at + from.size;
}

/* Codes the frames of an image with an engine. bases: as those of the coded frames, which keep them. told, if not NULL,
 * gets the job of each frame: which engine did it, and why. */
static inline struct coded_frames code_frames_on(struct tsr_engine *engine, const struct tsr_image *image,
                                                 const struct tsr_coding *coding, const uint8_t *rasters,
                                                 const uint8_t *const *bases, uint32_t frames,
                                                 struct tsr_encode_job *told)
{
    struct coded_frames c = {.image = *image, .frames = frames, .bases = bases};
    struct base_rooms rooms = take_rooms(image, frames, bases);
    struct tsr_encode_job *jobs = must(calloc(frames, sizeof *jobs));
    void *space = must(malloc(engine->ops->encode_workspace(engine, image, coding, frames)));
    for (uint32_t f = 0; f < frames; f++) {
        jobs[f].raster = rasters + f * raster_bytes(image);
        jobs[f].base = base_in(&rooms, bases, f);
    }
    assert_int_equal(engine->ops->encode(engine, image, coding, jobs, frames, space), TSR_OK);
    for (uint32_t f = 0; f < frames; f++) {
        c.size += jobs[f].coded.model.size;
        for (uint32_t t = 0; t < jobs[f].coded.tiles; t++)
            for (int s = 0; s < jobs[f].coded.tile[t].segments; s++) c.size += jobs[f].coded.tile[t].segment[s].size;
    }
    c.tiles = jobs[0].coded.tiles;
    c.bytes = must(malloc(c.size + 1));
    c.model = must(calloc(frames, sizeof *c.model));
    c.tile = must(calloc((size_t)frames * c.tiles, sizeof *c.tile));
    uint8_t *at = c.bytes;
    for (uint32_t f = 0; f < frames; f++) {
        at = put_segment(at, &c.model[f], jobs[f].coded.model);
        for (uint32_t t = 0; t < c.tiles; t++)
            for (int s = 0; s < jobs[f].coded.tile[t].segments; s++)
                at = put_segment(at, &c.tile[f * c.tiles + t], jobs[f].coded.tile[t].segment[s]);
    }
    if (told) memcpy(told, jobs, frames * sizeof *jobs);
    free(rooms.bytes);
    free(space);
    free(jobs);
    return c;
}

static inline struct coded_frames code_frames(struct tsr_engine *engine, const struct tsr_image *image,
                                              const struct tsr_coding *coding, const uint8_t *rasters, uint32_t frames,
                                              struct tsr_encode_job *told)
{
    return code_frames_on(engine, image, coding, rasters, NULL, frames, told);
}

static inline void free_frames(struct coded_frames *c)
{
    free(c->bytes);
    free(c->model);
    free(c->tile);
}

#endif
