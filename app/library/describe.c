/* What a .tsr says of itself. */
#include <stdio.h>
#include <string.h>

#include "files.h"
#include "io/nodes/planes/planes.h"
#include "loss/range.h"

const char *tsr_way_name(enum tsr_way way)
{
    return way == TSR_WAY_CODED ? "coded" : way == TSR_WAY_STORED ? "stored" : "";
}

const char *tsr_returns_name(enum tsr_returns returns)
{
    static const char *const names[] = {"",       "stored",  "splice",  "png",   "deflated", "encapsulated",
                                        "series", "streams", "gzipped", "files", "planes"};
    return (unsigned)returns < sizeof names / sizeof names[0] ? names[returns] : "";
}

static enum tsr_returns returns_of(const struct tsr_header *header)
{
    static const enum tsr_returns returns[] = {[TSR_RECIPE_VERBATIM] = TSR_RETURNS_STORED,
                                               [TSR_RECIPE_SPLICE] = TSR_RETURNS_SPLICED,
                                               [TSR_RECIPE_PNG] = TSR_RETURNS_PNG,
                                               [TSR_RECIPE_DEFLATED] = TSR_RETURNS_DEFLATED,
                                               [TSR_RECIPE_ENCAPSULATED] = TSR_RETURNS_ENCAPSULATED,
                                               [TSR_RECIPE_SERIES] = TSR_RETURNS_SERIES,
                                               [TSR_RECIPE_PACKED] = TSR_RETURNS_STREAMS,
                                               [TSR_RECIPE_INNER] = TSR_RETURNS_FILES,
                                               [TSR_RECIPE_PLANES] = TSR_RETURNS_PLANES};
    if (tsr_has_inner(header) && header->inner == 0) return TSR_RETURNS_STREAMS;
    return tsr_is_in_gzip(header) ? TSR_RETURNS_GZIPPED : returns[header->recipe];
}

enum tsr_way tsr_way_of(const struct tsr_header *header)
{
    return returns_of(header) == TSR_RETURNS_STORED ? TSR_WAY_STORED : TSR_WAY_CODED;
}

enum tsr_promise tsr_promise_of(const struct tsr_header *header)
{
    return header->exact                                    ? TSR_PROMISE_FILE
           : tsr_has_frames(header) && header->coding.lossy ? TSR_PROMISE_LOSSY
                                                            : TSR_PROMISE_SAMPLES;
}

static void describe_video(const struct tsr_header *header, struct tsr_info *info)
{
    const unsigned form = header->parameters[0] & (TSR_PLANES_420 | TSR_PLANES_422);
    if (!tsr_has_planes(header) || form == 0) return;
    tsr_planes_luma(&header->image, header->parameters[0], &info->video_columns, &info->video_rows);
    info->video_chroma = form == TSR_PLANES_420 ? 420 : 422;
}

/* Rectangles as boxes: the smallest one that all lie in. */
static void add_to_box(struct tsr_region *box, const struct tsr_region *r)
{
    const uint32_t right = box->column + box->columns, bottom = box->row + box->rows, ends_at = r->column + r->columns,
                   ends_below = r->row + r->rows;
    if (box->columns == 0) {
        *box = *r;
        return;
    }
    if (r->column < box->column) box->column = r->column;
    if (r->row < box->row) box->row = r->row;
    box->columns = (right > ends_at ? right : ends_at) - box->column;
    box->rows = (bottom > ends_below ? bottom : ends_below) - box->row;
}

void tsr_tell_exact(const struct tsr_header *header, struct tsr_exact *exact)
{
    const struct tsr_patches *const p = &header->patches;
    memset(exact, 0, sizeof *exact);
    if (p->count == 0) return;
    exact->rectangles = (uint32_t)tsr_list_patches(p, &header->image, NULL, 0, &exact->samples);
    for (uint32_t place = 0; place < p->across * p->down; place++) {
        const struct tsr_region r = tsr_patch_at(p, &header->image, place);
        if (tsr_has_patch(p, place)) add_to_box(&exact->box, &r);
    }
}

enum tsr_status tsr_describe(struct tsr_container_reader *reader, struct tsr_info *info, struct tsr_error *error)
{
    const struct tsr_header *header = tsr_container_header(reader);
    struct tsr_told_loss loss;
    struct tsr_proof proof;
    memset(info, 0, sizeof *info);
    info->size = sizeof *info;
    TSR_TRY(tsr_container_get_proof(reader, &proof, error));
    info->kind = header->kind;
    info->way = tsr_way_of(header);
    info->promise = tsr_promise_of(header);
    info->returns = returns_of(header);
    info->has_image = tsr_has_frames(header);
    if (!info->has_image) snprintf(info->reason, sizeof info->reason, "%s", tsr_reason_of(header));
    info->files = tsr_has_inner(header) ? header->inner : 0;
    info->image = tsr_original_image(header);
    info->coded_bits = tsr_has_values(header) ? header->image.bits_allocated : 0;
    info->coded_in_order = header->values.form == TSR_VALUES_ORDERED;
    describe_video(header, info);
    info->units = tsr_container_units(reader);
    info->coding = header->coding;
    info->file_bytes = tsr_container_bytes(reader);
    info->original_bytes = proof.original_size;
    info->payload_bytes = tsr_container_pixel_bytes(reader);
    info->sections = tsr_container_sections(reader);
    memcpy(info->original_hash, proof.original.bytes, sizeof info->original_hash);
    info->has_samples_hash = proof.has_samples;
    memcpy(info->samples_hash, proof.samples.bytes, sizeof info->samples_hash);
    tsr_tell_loss(header, &proof, &loss);
    info->max_error = loss.max_error;
    info->range = loss.range;
    info->psnr_db = loss.psnr_db;
    info->psnr_stored_db = loss.psnr_stored_db;
    info->windows = loss.windows;
    memcpy(info->window, loss.window, sizeof info->window);
    if (header->coding.lossy && header->coding.path == TSR_PATH_TRANSFORM)
        info->coding.qp_eighths = tsr_qp_of_range(header);
    info->kept_count = tsr_kept_stored(header, info->kept);
    info->damage = tsr_container_damage(reader);
    info->has_origin = header->origin.has_time && header->origin.has_permissions;
    info->modified_s = header->origin.seconds;
    info->modified_ns = header->origin.nanoseconds;
    info->permissions = header->origin.permissions;
    info->id = header->id;
    info->base_bytes = tsr_container_base(reader).size;
    tsr_tell_exact(header, &info->exact);
    info->tiles = header->order.tiles;
    info->first_tiles = header->order.first;
    info->linked = header->linked;
    const bool tells_base = info->base_bytes > 0 && tsr_base_of(reader, &loss, NULL) == TSR_OK;
    info->base_psnr_db = tells_base ? loss.psnr_db : -1;
    info->base_max_error = tells_base ? loss.max_error : -1;
    memcpy(info->original_damage, header->damage, sizeof info->original_damage);
    return TSR_OK;
}

enum tsr_status tsr_describe_series(struct tsr_container_reader *reader, uint64_t file_bytes, struct tsr_info *info,
                                    struct tsr_error *error)
{
    memset(info, 0, sizeof *info);
    info->size = sizeof *info;
    info->members = tsr_container_members(reader);
    info->way = TSR_WAY_CODED;
    info->promise = TSR_PROMISE_FILE;
    info->returns = TSR_RETURNS_SERIES;
    info->file_bytes = file_bytes;
    info->sections = tsr_container_sections(reader);
    info->max_error = info->base_max_error = -1;
    info->psnr_db = info->psnr_stored_db = info->base_psnr_db = -1;
    info->damage = tsr_container_damage(reader);
    info->id = tsr_container_id(reader);
    for (uint32_t k = 0; k < tsr_container_choices(reader); k++) {
        struct tsr_info one;
        enum tsr_status status = tsr_container_choose(reader, k, error);
        if (status == TSR_OK) status = tsr_describe(reader, &one, error);
        if (status == TSR_ERROR_READ) return status;
        if (status != TSR_OK) continue;
        info->original_bytes += one.original_bytes;
        info->payload_bytes += one.payload_bytes;
        info->units += one.units;
        if (one.promise > info->promise) info->promise = one.promise;
        info->coding.lossy |= one.coding.lossy;
    }
    return TSR_OK;
}
