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
    uint32_t last;            /* its number */
    uint32_t coded;           /* frames that were encoded before the batch */
};

struct tsr_links *tsr_links_take(struct tsr_engine *engine, const struct tsr_image *image, uint32_t batch)
{
    struct tsr_links *const l = calloc(1, sizeof *l);
    if (!l) return NULL;
    l->engine = engine;
    l->raster_bytes = tsr_raster_bytes(image);
    l->room_bytes = tsr_link_bytes(image);
    l->rasters = engine->ops->take_workspace(engine, (batch + (size_t)1) * l->raster_bytes);
    l->rooms = engine->ops->take_workspace(engine, batch * l->room_bytes);
    if (l->rasters && l->rooms) return l;
    tsr_links_give(l);
    return NULL;
}

void tsr_links_give(struct tsr_links *links)
{
    if (!links) return;
    links->engine->ops->give_workspace(links->engine, links->rasters);
    links->engine->ops->give_workspace(links->engine, links->rooms);
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

/* A group of frames is one that refers to none, and those after it. Frames that are equal to others count for nothing,
 * so that batches of whole groups have whole ones. */
static uint32_t place_in_group(const struct tsr_links *links, uint32_t place)
{
    return (links->coded + place) % (TSR_LINKS_LIMIT + 1);
}

void tsr_link_jobs(struct tsr_links *links, struct tsr_encode_job *jobs, const uint32_t *numbers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t before = i > 0 ? numbers[i - 1] : links->last;
        jobs[i].base = tsr_link(links, i, place_in_group(links, i) > 0 && before + 1 == numbers[i]);
    }
}

uint32_t tsr_linked_alike(const struct tsr_links *links, const struct tsr_encode_job *jobs, uint32_t first,
                          uint32_t left)
{
    const uint32_t place = place_in_group(links, first);
    uint32_t count = 1;
    while (jobs[first].base.raster && count < left && place + count <= TSR_LINKS_LIMIT &&
           jobs[first + count].base.raster)
        count++;
    return count;
}

void tsr_keep_linked(struct tsr_links *links, uint32_t last, uint32_t count)
{
    if (!links || count == 0) return;
    memcpy(links->rasters, links->rasters + count * links->raster_bytes, links->raster_bytes);
    links->last = last;
    links->coded += count;
}

/* ---- Whether to link ------------------------------------------------------------------------------------------ */

bool tsr_may_link(const struct tsr_header *header, const struct tsr_coding *coding)
{
    return coding->effort >= 9 && !coding->lossy && coding->path == TSR_PATH_PREDICT &&
           coding->coder != TSR_CODER_CAVLC && tsr_may_be_linked(header);
}

/* Adds what a frame takes, and what it saves by references to the frame before. */
static enum tsr_status try_frame(struct tsr_source *source, uint32_t frame, struct tsr_links *links, void *workspace,
                                 uint64_t *bytes, uint64_t *saved, struct tsr_error *error)
{
    const struct tsr_image *const image = &source->header.image;
    uint8_t *const raster = tsr_linked_rasters(links);
    struct tsr_encode_job job = {.raster = raster, .base = tsr_link(links, 0, true)};
    TSR_TRY(tsr_source_read_frame(source, frame - 1, links->rasters, error));
    TSR_TRY(tsr_source_read_frame(source, frame, raster, error));
    const enum tsr_status status =
        links->engine->ops->encode(links->engine, image, &source->header.coding, &job, 1, workspace);
    if (status != TSR_OK) return tsr_fail(error, status, "the engine fails on frame %u", frame);
    *bytes += job.coded.model.size + tsr_tiles_bytes(&job.coded);
    *saved += job.saved;
    return TSR_OK;
}

/* Two frames are tried: the second, and one in the middle. */
static enum tsr_status try_frames(struct tsr_source *source, struct tsr_links *links, void *workspace,
                                  struct tsr_error *error)
{
    enum { LEAST_SHARE = 200 };
    const uint32_t middle = source->header.image.frames / 2;
    uint64_t bytes = 0, saved = 0;
    TSR_TRY(try_frame(source, 1, links, workspace, &bytes, &saved, error));
    if (middle > 1) TSR_TRY(try_frame(source, middle, links, workspace, &bytes, &saved, error));
    source->header.linked = saved > 0 && saved * LEAST_SHARE >= bytes + saved;
    return TSR_OK;
}

enum tsr_status tsr_settle_links(struct tsr_engine *engine, struct tsr_source *source, struct tsr_error *error)
{
    const struct tsr_image *const image = &source->header.image;
    struct tsr_engine *const cpu = engine->cpu;
    source->header.linked = false;
    for (uint32_t f = 0; source->units && f < image->frames; f++)
        if (source->units[f]) return TSR_OK;
    if (!tsr_may_link(&source->header, &source->header.coding)) return TSR_OK;
    const size_t space = cpu->ops->encode_workspace(cpu, image, &source->header.coding, 1);
    void *const workspace = space > 0 ? cpu->ops->take_workspace(cpu, space) : NULL;
    struct tsr_links *const links = tsr_links_take(cpu, image, 1);
    const enum tsr_status status = workspace && links
                                       ? try_frames(source, links, workspace, error)
                                       : tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a frame and the one before");
    cpu->ops->give_workspace(cpu, workspace);
    tsr_links_give(links);
    return status;
}
