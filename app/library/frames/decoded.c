/* Frames with loss as they are decoded again, right after they were coded. */
#include <stdlib.h>
#include <string.h>

#include "app/library/flow.h"
#include "kernels/kept/kept_frames.h"
#include "transform/status.h"

/* Puts the payloads of tiles together, each in one piece. */
static void join_tiles(const struct tsr_coded_frame *coded, uint8_t *payload, struct tsr_segment *tiles)
{
    for (uint32_t t = 0; t < coded->tiles; t++) {
        tiles[t] = (struct tsr_segment){payload, 0};
        for (int i = 0; i < coded->tile[t].segments; i++) {
            const struct tsr_segment *const segment = &coded->tile[t].segment[i];
            if (segment->size) memcpy(payload, segment->bytes, segment->size);
            payload += segment->size;
            tiles[t].size += segment->size;
        }
    }
}

void tsr_measure_decoded(const struct tsr_image *image, const struct tsr_measured *measured, const uint8_t *original,
                         const uint8_t *decoded, struct tsr_difference *difference)
{
    *difference = (struct tsr_difference){0};
    tsr_add_difference(image, measured, original, decoded, difference);
    tsr_add_ssim(tsr_isa(), image, measured, original, decoded, difference);
}

enum tsr_status tsr_add_inside(const struct tsr_patches *p, const struct tsr_image *image,
                               const struct tsr_measured *measured, const uint8_t *original, const uint8_t *decoded,
                               struct tsr_difference *sum, struct tsr_error *error)
{
    const size_t most = (size_t)p->width * image->components * (image->bits_allocated / 8);
    uint8_t *const rows = malloc(2 * most);
    if (!rows) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a row of a patch");
    for (uint32_t place = 0; place < p->across * p->down; place++) {
        const struct tsr_region r = tsr_patch_at(p, image, place);
        struct tsr_patches row = {1, r.column, r.row, r.columns, 1, 1, 1, {1}};
        const struct tsr_image of_row = tsr_patches_image(&row, image);
        for (uint32_t y = 0; y < r.rows && tsr_has_patch(p, place); y++, row.top++) {
            tsr_take_patches(&row, image, 0, 1, original, rows);
            tsr_take_patches(&row, image, 0, 1, decoded, rows + most);
            tsr_add_difference(&of_row, measured, rows, rows + most, sum);
        }
    }
    free(rows);
    return TSR_OK;
}

enum tsr_status tsr_decode_coded(struct tsr_engine *engine, const struct tsr_header *header,
                                 const struct tsr_measured *measured, const struct tsr_encode_job *from,
                                 uint8_t *raster, struct tsr_difference *difference, struct tsr_error *error)
{
    const struct tsr_image *const image = &header->image;
    const struct tsr_kept_ranges *const kept = tsr_kept_of(header, &header->coding);
    uint8_t *const payload = malloc(tsr_tiles_bytes(&from->coded) + 1);
    struct tsr_segment *const tiles = malloc(from->coded.tiles * sizeof *tiles);
    struct tsr_decode_job job = {.model = from->coded.model,
                                 .tile = tiles,
                                 .tiles = from->coded.tiles,
                                 .raster = raster,
                                 .original = from->raster,
                                 .measured = measured};
    const size_t space = tsr_kept_decode_workspace(engine, image, kept, &job, 1);
    void *const workspace = space ? engine->ops->take_workspace(engine, space) : NULL;
    enum tsr_status status = TSR_OK;
    if (!payload || !tiles || !workspace) {
        status = tsr_fail(error, TSR_ERROR_LIMIT, "no memory to decode a frame");
    } else {
        join_tiles(&from->coded, payload, tiles);
        status = tsr_kept_decode(engine, image, kept, &job, 1, workspace);
        if (status != TSR_OK) tsr_fail(error, TSR_ERROR_INTERNAL, "an encoded frame does not decode");
    }
    free(payload);
    free(tiles);
    engine->ops->give_workspace(engine, workspace);
    *difference = job.difference;
    if (status == TSR_OK && !job.is_measured) tsr_measure_decoded(image, measured, from->raster, raster, difference);
    return status == TSR_ERROR_CORRUPT ? TSR_ERROR_INTERNAL : status;
}
