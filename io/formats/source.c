/* Chooses the format of an input. An input that no format takes becomes a verbatim source. */
#include "source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gzip_source.h"
#include "packed.h"
#include "values.h"
#include "io/nodes/deflate/deflate.h"

static enum tsr_status open_verbatim(struct tsr_input *input, enum tsr_kind kind, const char *reason,
                                     struct tsr_source **source, struct tsr_error *error)
{
    struct tsr_header header = {.kind = kind, .recipe = TSR_RECIPE_VERBATIM, .exact = true};
    snprintf(header.reason, sizeof header.reason, "%.*s", TSR_REASON_LIMIT, reason);
    *source = tsr_source_create(sizeof **source, input, &header, NULL, error);
    if (!*source) return TSR_ERROR_LIMIT;
    return tsr_source_put_range(*source, TSR_BLOB_PREFIX, 0, tsr_input_size(input), error);
}

void tsr_source_note_damage(struct tsr_input *input, enum tsr_status status, const struct tsr_error *why)
{
    if (status == TSR_DECLINED && why->offset != TSR_NO_OFFSET) tsr_input_note_damage(input, "%s", why->text);
}

/* Packs an input, or says in the place of the reason why not. What takes too much memory is an error: files must not
 * depend on memory. */
static enum tsr_status open_packed(struct tsr_input *input, enum tsr_kind kind,
                                   const struct tsr_source_options *options, struct tsr_error *reason,
                                   struct tsr_source **source)
{
    const struct tsr_packing packing = {kind, reason->text, options->opened, options->coded, options->inner};
    struct tsr_error error = {0};
    if (strcmp(reason->text, tsr_deflate_costly) == 0) return TSR_DECLINED; /* it would take as much once more */
    if (!options->opened) tsr_input_give_back(input); /* the first way took less on some machines, more on others */
    const enum tsr_status status = tsr_packed_open(input, &packing, source, &error);
    if (status != TSR_OK && !options->opened) tsr_input_drop_held(input); /* which is not claimed for verbatim files */
    if (status != TSR_OK) *reason = error;
    return status;
}

/* Samples without a file around them: rasters without prefix and suffix. FORMAT.md 4.1. */
static enum tsr_status open_raster(struct tsr_input *input, const struct tsr_image *image, struct tsr_source **source,
                                   struct tsr_error *error)
{
    struct tsr_header header;
    memset(&header, 0, sizeof header);
    header.kind = TSR_KIND_OTHER;
    header.recipe = TSR_RECIPE_SPLICE;
    header.exact = true;
    const uint64_t bits = tsr_frame_bits(image) * image->frames, bytes = bits / 8 + (bits % 8 != 0);
    if (tsr_input_size(input) != bytes)
        return tsr_fail(error, TSR_ERROR_USAGE, "%s has %llu bytes, and its image %llu", tsr_input_name(input),
                        (unsigned long long)tsr_input_size(input), (unsigned long long)bytes);
    const enum tsr_status status = tsr_find_values(input, &header, image, 0, error);
    if (status == TSR_DECLINED)
        return tsr_fail(error, TSR_ERROR_USAGE,
                        "%s has %u components of 64 bits, which are no multiples of a step: make an image of each",
                        tsr_input_name(input), image->components);
    TSR_TRY(status);
    struct tsr_need need = tsr_splice_need(&header, 0, bytes);
    need.only_lossless = tsr_has_values(&header);
    TSR_TRY(tsr_input_claim(input, &header, &need, error));
    TSR_TRY(tsr_splice_open(input, &header, 0, source, error));
    if (tsr_has_values(&header)) (*source)->only_lossless = tsr_are_values;
    return TSR_OK;
}

enum tsr_status tsr_source_open(struct tsr_input *input, const struct tsr_source_options *options,
                                struct tsr_source **source, struct tsr_error *error)
{
    const uint8_t *head;
    const uint64_t file_size = tsr_input_size(input);
    const size_t size = file_size < TSR_HEAD_BYTES ? (size_t)file_size : TSR_HEAD_BYTES;
    enum tsr_status status = TSR_DECLINED;
    struct tsr_error why = {.offset = TSR_NO_OFFSET};
    *source = NULL;
    if (options->raster) return open_raster(input, options->raster, source, error);
    TSR_TRY(tsr_input_hold(input, size, &head, error));
    const struct tsr_format *const format = tsr_format_of(head, size), *const inner =
                                                                           format ? NULL
                                                                                  : tsr_format_in_gzip(head, size);
    const enum tsr_kind kind = format                    ? format->kind
                               : inner && inner->measure ? inner->kind
                                                         : TSR_KIND_OTHER; /* of what is packed or stored */
    snprintf(why.text, sizeof why.text, "%s",
             size == 0 ? "it is empty" : "it is no PNG, PNM, DICOM, NIfTI or Y4M file");
    if (options->verbatim)
        snprintf(why.text, sizeof why.text, "%s", options->reason);
    else if (format)
        status = format->open(input, options, source, &why);
    else if (inner)
        status = tsr_gzip_open(input, inner, options, source, &why);
    if (status == TSR_ERROR_CORRUPT) status = tsr_decline(&why); /* it is not what its format needs: stored otherwise */
    tsr_source_note_damage(input, status, &why);
    if (status == TSR_DECLINED && options->packs && (!options->verbatim || kind == TSR_KIND_PNG))
        status = open_packed(input, kind, options, &why, source);
    if (status == TSR_DECLINED)
        status = open_verbatim(input, kind, why.text, source, error);
    else if (status != TSR_OK && error)
        *error = why;
    if (status != TSR_OK) return status;
    snprintf((*source)->header.damage, sizeof(*source)->header.damage, "%s", tsr_input_damage(input));
    return TSR_OK;
}

/* A frame's raster: where it lies, in memory; or in *room, which the caller frees. */
static enum tsr_status view_frame(struct tsr_source *source, uint32_t frame, uint8_t **room, const uint8_t **raster,
                                  struct tsr_error *error)
{
    const size_t bytes = tsr_raster_bytes(&source->header.image);
    if (source->rasters && !source->units) { /* a unit has none */
        *raster = source->rasters + frame * bytes;
        return TSR_OK;
    }
    if (source->input_has_rasters)
        return tsr_input_view(source->input, source->first + (uint64_t)bytes * frame, bytes, room, raster, error);
    *raster = *room = malloc(bytes);
    if (!*room) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a frame of %zu bytes", bytes);
    return tsr_source_read_frame(source, frame, *room, error);
}

enum tsr_status tsr_source_visit(struct tsr_source *source,
                                 bool (*visit)(void *context, const struct tsr_image *image, const uint8_t *raster),
                                 void *context, struct tsr_error *error)
{
    const struct tsr_image *const image = &source->header.image;
    enum tsr_status status = TSR_OK;
    bool goes_on = true;
    for (uint32_t frame = 0; frame < image->frames && goes_on && status == TSR_OK; frame++) {
        uint8_t *room = NULL;
        const uint8_t *raster = NULL;
        status = view_frame(source, frame, &room, &raster, error);
        if (status == TSR_OK) goes_on = visit(context, image, raster);
        free(room);
    }
    return status;
}

enum tsr_status tsr_source_hold(struct tsr_source *source, struct tsr_error *error)
{
    const uint64_t size = tsr_input_size(source->input);
    const uint8_t *file;
    if (!source->input_has_rasters || size > TSR_HELD_BYTES) return TSR_OK;
    return tsr_input_hold(source->input, (size_t)size, &file, error);
}
