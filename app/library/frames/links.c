/* Linked frames, whose predictors may refer to the frame before: BASE.md 5. See flow.h. */
#include <stdlib.h>
#include <string.h>

#include "app/library/flow.h"
#include "transform/hd.h"

size_t tsr_link_bytes(const struct tsr_image *image)
{
    return (tsr_base_room(image) + 63) / 64 * 64;
}

enum tsr_status tsr_check_link(uint32_t frame, uint32_t links, struct tsr_error *error)
{
    if (frame > 0 && links <= TSR_LINKS_LIMIT) return TSR_OK;
    return tsr_fail(error, TSR_ERROR_CORRUPT, "frame %u refers to the frame before it, %s", frame,
                    frame == 0 ? "and is the first one" : "which is not decoded from at most 6 others");
}

/* ---- Batches ------------------------------------------------------------------------------------------------ */

struct tsr_links {
    struct tsr_engine *engine;
    size_t raster_bytes, room_bytes;
    uint8_t *rasters, *rooms; /* the first raster is that of the frame before */
    uint8_t *stacked;         /* rasters of a stack, and of as many frames before; NULL: there are no stacks */
    uint32_t stack;
    uint32_t last;  /* its number */
    uint32_t coded; /* frames that were encoded before the batch */
};

struct tsr_links *tsr_links_take(struct tsr_engine *engine, const struct tsr_image *image, uint32_t batch,
                                 uint32_t stack)
{
    struct tsr_links *const l = calloc(1, sizeof *l);
    if (!l) return NULL;
    l->engine = engine;
    l->raster_bytes = tsr_raster_bytes(image);
    l->room_bytes = tsr_link_bytes(image);
    l->rasters = engine->ops->take_workspace(engine, (batch + (size_t)1) * l->raster_bytes);
    l->rooms = engine->ops->take_workspace(engine, batch * l->room_bytes);
    l->stack = stack;
    if (stack > 0) l->stacked = engine->ops->take_workspace(engine, 2 * stack * l->raster_bytes);
    if (l->rasters && l->rooms && (l->stacked || stack == 0)) return l;
    tsr_links_give(l);
    return NULL;
}

void tsr_links_give(struct tsr_links *links)
{
    if (!links) return;
    links->engine->ops->give_workspace(links->engine, links->rasters);
    links->engine->ops->give_workspace(links->engine, links->rooms);
    links->engine->ops->give_workspace(links->engine, links->stacked);
    free(links);
}

uint8_t *tsr_linked_rasters(struct tsr_links *links)
{
    return links->rasters + links->raster_bytes;
}

struct tsr_base tsr_link(const struct tsr_links *links, uint32_t place, bool refers)
{
    return (struct tsr_base){refers ? links->rasters + place * links->raster_bytes : NULL,
                             links->rooms + place * links->room_bytes};
}

/* ---- Encoding ----------------------------------------------------------------------------------------------- */

/* In groups of TSR_LINKS_LIMIT + 1 frames the first refers to none. Frames that are equal to others are not counted. */
static bool begins_group(const struct tsr_links *links, uint32_t place)
{
    return (links->coded + place) % (TSR_LINKS_LIMIT + 1) == 0;
}

void tsr_link_jobs(struct tsr_links *links, struct tsr_encode_job *jobs, const uint32_t *numbers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t before = i > 0 ? numbers[i - 1] : links->last;
        jobs[i].base = tsr_link(links, i, !begins_group(links, i) && before + 1 == numbers[i]);
    }
}

void tsr_keep_linked(struct tsr_links *links, uint32_t last, uint32_t count)
{
    if (!links || count == 0) return;
    memcpy(links->rasters, links->rasters + count * links->raster_bytes, links->raster_bytes);
    links->last = last;
    links->coded += count;
}

/* Frames of a stack that are alike: they refer, or do not. */
struct alike {
    uint32_t count, number[TSR_STACK_LIMIT];
    struct tsr_coded_frame frame[TSR_STACK_LIMIT];
};

/* Puts their rasters one after the other, and so those that they refer to. */
static void gather(const struct tsr_links *links, const struct tsr_encode_job *jobs, bool refers, struct alike *alike,
                   struct tsr_encode_job *stack)
{
    uint8_t *const rasters = links->stacked, *const before = rasters + links->stack * links->raster_bytes;
    for (uint32_t i = 0; i < alike->count; i++) {
        const struct tsr_encode_job *const job = &jobs[alike->number[i]];
        alike->frame[i] = job->coded;
        memcpy(rasters + i * links->raster_bytes, job->raster, links->raster_bytes);
        if (refers) memcpy(before + i * links->raster_bytes, job->base.raster, links->raster_bytes);
    }
    *stack = (struct tsr_encode_job){.raster = rasters, .only_refers = refers};
    stack->base = (struct tsr_base){refers ? before : NULL, links->rooms};
}

enum tsr_status tsr_stack_linked(const struct tsr_links *links, const struct tsr_image *image,
                                 const struct tsr_coding *coding, const struct tsr_encode_job *jobs, uint32_t count,
                                 void *workspace, struct tsr_coded_frame *frames, uint32_t *distance,
                                 struct tsr_error *error)
{
    struct alike alike[2] = {{.count = 0}, {.count = 0}};
    for (uint32_t i = 0; i < count; i++) {
        struct alike *const a = &alike[jobs[i].saved > 0];
        a->number[a->count++] = i;
    }
    for (int refers = 0; refers < 2; refers++) {
        struct alike *const a = &alike[refers];
        const struct tsr_image all = tsr_stack(image, a->count);
        struct tsr_encode_job stack;
        if (a->count < 2) continue;
        gather(links, jobs, refers, a, &stack);
        const enum tsr_status status = links->engine->ops->encode(links->engine, &all, coding, &stack, 1, workspace);
        if (status != TSR_OK) return tsr_fail(error, status, "the engine fails on %u frames together", a->count);
        workspace = (uint8_t *)workspace + links->engine->ops->encode_workspace(links->engine, &all, coding, 1);
        if (!tsr_take_stack(&stack.coded, a->frame, a->count)) continue;
        for (uint32_t i = 0; i < a->count; i++) {
            frames[a->number[i]] = a->frame[i];
            distance[a->number[i]] = a->number[i] - a->number[0];
        }
    }
    return TSR_OK;
}

/* ---- Whether to link ------------------------------------------------------------------------------------------ */

bool tsr_may_link(const struct tsr_header *header, const struct tsr_coding *coding)
{
    return coding->effort >= 9 && !coding->lossy && coding->path == TSR_PATH_PREDICT &&
           coding->coder != TSR_CODER_CAVLC && tsr_may_be_linked(header);
}

/* What frames take, linked or not. */
static enum tsr_status try_frames(struct tsr_engine *engine, struct tsr_source *source, bool linked, uint64_t *bytes,
                                  struct tsr_error *error)
{
    struct tsr_container_writer *trial = NULL;
    struct tsr_output *const nothing = tsr_output_to_null();
    if (!nothing) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to try whether to link frames");
    tsr_output_forgo_hash(nothing);
    source->header.linked = linked;
    enum tsr_status status = tsr_container_begin(nothing, &source->header, &trial, error);
    if (status == TSR_OK) status = tsr_encode_frames(engine, source, trial, error);
    if (status == TSR_OK) *bytes = tsr_container_payload_bytes(trial);
    tsr_container_writer_free(trial);
    tsr_output_close(nothing);
    return status;
}

/* How many frames in the middle are tried: a group of those that may share a model, else fewer. */
static uint32_t frames_to_try(const struct tsr_header *header)
{
    enum { LARGE_FRAMES = 3 };
    const uint32_t group = TSR_LINKS_LIMIT + 1, frames = header->image.frames,
                   most = tsr_stack_limit(&header->image, &header->coding) >= group ? group : LARGE_FRAMES;
    return most < frames ? most : frames;
}

enum tsr_status tsr_settle_links(struct tsr_engine *engine, struct tsr_source *source, struct tsr_error *error)
{
    enum { LEAST_SHARE = 200 }; /* at least half a percent is saved */
    struct tsr_header *const header = &source->header;
    const uint32_t frames = header->image.frames;
    uint64_t alone = 0, linked = 0;
    header->linked = false;
    for (uint32_t f = 0; source->units && f < frames; f++)
        if (source->units[f]) return TSR_OK;
    if (!tsr_may_link(header, &header->coding)) return TSR_OK;
    const int effort = header->coding.effort;
    header->coding.effort = TSR_EFFORT_DEFAULT; /* which tells, and takes a fifth of the time */
    header->image.frames = frames_to_try(header);
    source->skipped = (frames - header->image.frames) / 2;
    enum tsr_status status = try_frames(engine, source, false, &alone, error);
    if (status == TSR_OK) status = try_frames(engine, source, true, &linked, error);
    header->image.frames = frames;
    header->coding.effort = effort;
    source->skipped = 0;
    header->linked = status == TSR_OK && linked < alone && (alone - linked) * LEAST_SHARE >= alone;
    return status;
}
