/* The base of a file whose frames are coded with references to it: BASE.md. */
#include <stdlib.h>

#include "app/library/files.h"
#include "app/library/reader.h"

struct tsr_base_frames {
    struct tsr_engine *engine; /* the CPU engine, which alone knows of bases */
    struct tsr_input *input;
    struct tsr_container_reader *container;
    struct tsr_image image;
    struct tsr_patches patches; /* of the file; if there are none, its frames are whole ones */
    size_t raster_bytes, taken_bytes, room_bytes;
    uint8_t *rasters, *taken, *rooms; /* of a batch; taken: the patches of its rasters */
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
    if (tsr_container_is_series(b->container) || !tsr_fits_base(header, tsr_container_header(b->container)))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "its base is of another image, or is none");
    if (tsr_container_id(b->container) == header->base_id) return TSR_OK;
    return tsr_fail(error, TSR_ERROR_CORRUPT, "its base is not the one that it was made with");
}

static enum tsr_status compare_originals(const struct tsr_proof *proof, const struct tsr_proof *of_base,
                                         struct tsr_error *error)
{
    if (proof->original_size == of_base->original_size && tsr_hash128_equal(&proof->original, &of_base->original))
        return TSR_OK;
    return tsr_fail(error, TSR_ERROR_CORRUPT, "its base is of another file");
}

enum tsr_status tsr_base_of(struct tsr_container_reader *whole, struct tsr_told_loss *loss, struct tsr_error *error)
{
    const struct tsr_stretch_of_file stretch = tsr_container_base(whole);
    struct tsr_base_frames b = {.input = NULL};
    struct tsr_proof proof, of_base;
    TSR_TRY(tsr_container_get_proof(whole, &proof, error));
    enum tsr_status status = tsr_input_share(tsr_container_input(whole), &b.input, error);
    if (status == TSR_OK) tsr_input_narrow(b.input, stretch.offset, stretch.size);
    if (status == TSR_OK) status = open_container(&b, tsr_container_header(whole), error);
    if (status == TSR_OK) status = tsr_container_get_proof(b.container, &of_base, error);
    if (status == TSR_OK) status = compare_originals(&proof, &of_base, error);
    if (status == TSR_OK && loss) tsr_tell_loss(tsr_container_header(b.container), &of_base, loss);
    tsr_container_close(b.container);
    tsr_input_close(b.input);
    return status;
}

static enum tsr_status take_room(struct tsr_base_frames *b, const struct tsr_header *header, uint32_t batch,
                                 struct tsr_error *error)
{
    const struct tsr_image coded = tsr_coded_image(header);
    const bool has_patches = header->patches.count > 0;
    b->raster_bytes = (tsr_raster_bytes(&b->image) + 63) / 64 * 64;
    b->taken_bytes = has_patches ? (tsr_raster_bytes(&coded) + 63) / 64 * 64 : 0;
    b->room_bytes = tsr_base_room(&coded);
    b->rasters = b->engine->ops->take_workspace(b->engine, batch * b->raster_bytes);
    if (has_patches) b->taken = b->engine->ops->take_workspace(b->engine, batch * b->taken_bytes);
    b->rooms = b->engine->ops->take_workspace(b->engine, batch * b->room_bytes);
    return b->rasters && b->rooms && (b->taken || !has_patches)
               ? TSR_OK
               : tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %u frames of a base", batch);
}

enum tsr_status tsr_base_open(struct tsr_engine *engine, const struct tsr_header *header, const struct tsr_input *whole,
                              struct tsr_stretch_of_file stretch, uint32_t batch, struct tsr_base_frames **base,
                              struct tsr_error *error)
{
    struct tsr_base_frames *const b = *base = calloc(1, sizeof *b);
    if (!b) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a base");
    b->engine = engine->cpu;
    b->image = header->image;
    b->patches = header->patches;
    TSR_TRY(tsr_input_share(whole, &b->input, error));
    tsr_input_narrow(b->input, stretch.offset, stretch.size);
    TSR_TRY(open_container(b, header, error));
    return batch > 0 ? take_room(b, header, batch, error) : TSR_OK;
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
    base->engine->ops->give_workspace(base->engine, base->taken);
    base->engine->ops->give_workspace(base->engine, base->rooms);
    tsr_container_close(base->container);
    tsr_input_close(base->input);
    free(base);
}

enum tsr_status tsr_base_frame(struct tsr_base_frames *base, uint32_t frame, uint32_t place, struct tsr_base *of_job,
                               struct tsr_error *error)
{
    uint8_t *const raster = base->rasters + place * base->raster_bytes;
    uint8_t *const taken = base->taken ? base->taken + place * base->taken_bytes : NULL;
    *of_job = (struct tsr_base){taken ? taken : raster, base->rooms + place * base->room_bytes};
    TSR_TRY(tsr_decode_frame_of(base->engine, base->container, frame, raster, error));
    if (taken) tsr_take_patches(&base->patches, &base->image, 0, base->patches.count, raster, taken);
    return TSR_OK;
}

uint8_t *tsr_base_complete(struct tsr_base_frames *base, uint32_t place, uint8_t *decoded)
{
    uint8_t *const raster = base->rasters + place * base->raster_bytes;
    if (!base->taken) return decoded;
    tsr_put_patches(&base->patches, &base->image, NULL, 0, base->patches.count, raster, decoded);
    return raster;
}

enum tsr_status tsr_base_region(struct tsr_base_frames *base, uint32_t frame, const struct tsr_region *region,
                                uint8_t *raster, struct tsr_error *error)
{
    return tsr_decode_region_of(base->engine, base->container, frame, region, raster, error);
}

/* One patch, of which the part in the image was read. */
static enum tsr_status take_patch(struct tsr_base_frames *base, uint32_t frame, uint32_t place, uint8_t *samples,
                                  struct tsr_error *error)
{
    const struct tsr_region part = tsr_patch_at(&base->patches, &base->image, place);
    const struct tsr_patches one = {1, 0, 0, base->patches.width, base->patches.height, 1, 1, {1}};
    struct tsr_image image = base->image;
    image.columns = part.columns;
    image.rows = part.rows;
    image.swapped = false;
    uint8_t *const raster = malloc(tsr_raster_bytes(&image) + 1);
    if (!raster) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a part of a base");
    const enum tsr_status status = tsr_base_region(base, frame, &part, raster, error);
    if (status == TSR_OK) tsr_take_patches(&one, &image, 0, 1, raster, samples);
    free(raster);
    return status;
}

enum tsr_status tsr_base_patches(struct tsr_base_frames *base, uint32_t frame, uint32_t first, uint32_t count,
                                 uint8_t *samples, struct tsr_error *error)
{
    const struct tsr_patches *const p = &base->patches;
    const size_t bytes = (size_t)p->width * p->height * base->image.components * (base->image.bits_allocated / 8);
    for (uint32_t place = 0, number = 0; place < p->across * p->down; place++) {
        if (!tsr_has_patch(p, place) || number++ < first) continue;
        if (number > first + count) break;
        TSR_TRY(take_patch(base, frame, place, samples, error));
        samples += bytes;
    }
    return TSR_OK;
}
