/* The base of a file whose frames are coded with references to it: BASE.md. */
#include <stdlib.h>

#include "app/library/files.h"
#include "app/library/reader.h"

struct tsr_base_frames {
    struct tsr_engine *engine; /* the CPU engine, which alone knows of bases */
    struct tsr_input *input;
    struct tsr_container_reader *container;
    size_t raster_bytes, room_bytes;
    uint8_t *rasters, *rooms; /* of a batch */
};

bool tsr_fits_base(const struct tsr_header *header, const struct tsr_header *base)
{
    return tsr_has_samples(base) && base->coding.lossy && !base->has_base &&
           tsr_same_image(&header->image, &base->image);
}

static enum tsr_status open_container(struct tsr_base_frames *b, const struct tsr_header *header,
                                      struct tsr_error *error)
{
    const enum tsr_status status = tsr_container_open(b->input, &b->container, error);
    if (status == TSR_ERROR_NOT_TSR) return tsr_fail(error, TSR_ERROR_CORRUPT, "its base is no .tsr");
    TSR_TRY(status);
    return !tsr_container_is_series(b->container) && tsr_fits_base(header, tsr_container_header(b->container))
               ? TSR_OK
               : tsr_fail(error, TSR_ERROR_CORRUPT, "its base is of another image, or is none");
}

static enum tsr_status take_room(struct tsr_base_frames *b, const struct tsr_image *image, uint32_t batch,
                                 struct tsr_error *error)
{
    b->raster_bytes = (tsr_raster_bytes(image) + 63) / 64 * 64;
    b->room_bytes = tsr_base_room(image);
    b->rasters = b->engine->ops->take_workspace(b->engine, batch * b->raster_bytes);
    b->rooms = b->engine->ops->take_workspace(b->engine, batch * b->room_bytes);
    return b->rasters && b->rooms ? TSR_OK
                                  : tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %u frames of a base", batch);
}

enum tsr_status tsr_base_open(struct tsr_engine *engine, const struct tsr_header *header, const struct tsr_input *whole,
                              struct tsr_stretch_of_file stretch, uint32_t batch, struct tsr_base_frames **base,
                              struct tsr_error *error)
{
    struct tsr_base_frames *const b = *base = calloc(1, sizeof *b);
    if (!b) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a base");
    b->engine = engine->cpu;
    TSR_TRY(tsr_input_share(whole, &b->input, error));
    tsr_input_narrow(b->input, stretch.offset, stretch.size);
    TSR_TRY(open_container(b, header, error));
    return batch > 0 ? take_room(b, &header->image, batch, error) : TSR_OK;
}

enum tsr_status tsr_base_open_bytes(struct tsr_engine *engine, const struct tsr_header *header, struct tsr_piece tsr,
                                    uint32_t batch, struct tsr_base_frames **base, struct tsr_error *error)
{
    const struct tsr_stretch_of_file all = {0, tsr.size};
    struct tsr_input *const bytes = tsr_input_from_memory(tsr.bytes, tsr.size, "a base");
    if (!bytes) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a base");
    const enum tsr_status status = tsr_base_open(engine, header, bytes, all, batch, base, error);
    tsr_input_close(bytes); /* what was opened shares its bytes */
    return status;
}

void tsr_base_close(struct tsr_base_frames *base)
{
    if (!base) return;
    base->engine->ops->give_workspace(base->engine, base->rasters);
    base->engine->ops->give_workspace(base->engine, base->rooms);
    tsr_container_close(base->container);
    tsr_input_close(base->input);
    free(base);
}

enum tsr_status tsr_base_frame(struct tsr_base_frames *base, uint32_t frame, uint32_t place, struct tsr_base *of_job,
                               struct tsr_error *error)
{
    uint8_t *const raster = base->rasters + place * base->raster_bytes;
    *of_job = (struct tsr_base){raster, base->rooms + place * base->room_bytes};
    return tsr_decode_frame_of(base->engine, base->container, frame, raster, error);
}

enum tsr_status tsr_base_region(struct tsr_base_frames *base, uint32_t frame, const struct tsr_region *region,
                                uint8_t *raster, struct tsr_error *error)
{
    return tsr_decode_region_of(base->engine, base->container, frame, region, raster, error);
}
