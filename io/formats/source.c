/* Chooses the format of an input. An input that no format takes becomes a verbatim source. */
#include "source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "packed.h"
#include "io/nodes/deflate/deflate.h"

static enum tsr_status read_verbatim(struct tsr_source *source, enum tsr_blob blob, uint64_t offset, void *buffer,
                                     size_t size, struct tsr_error *error)
{
    (void)blob;
    return tsr_input_read(source->input, offset, buffer, size, error);
}

static enum tsr_status no_frame(struct tsr_source *source, uint32_t frame, uint8_t *raster, struct tsr_error *error)
{
    (void)source;
    (void)raster;
    return tsr_fail(error, TSR_ERROR_INTERNAL, "a verbatim source has no frame %u", frame);
}

static void close_verbatim(struct tsr_source *source)
{
    free(source);
}

static const struct tsr_source_ops verbatim_ops = {read_verbatim, no_frame, NULL, close_verbatim, NULL};

static enum tsr_status open_verbatim(struct tsr_input *input, enum tsr_kind kind, const char *reason,
                                     struct tsr_source **source, struct tsr_error *error)
{
    struct tsr_source *s = calloc(1, sizeof *s);
    *source = s;
    if (!s) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a source");
    s->ops = &verbatim_ops;
    s->header.kind = kind;
    s->header.recipe = TSR_RECIPE_VERBATIM;
    s->header.exact = true;
    snprintf(s->header.reason, sizeof s->header.reason, "%.*s", TSR_REASON_LIMIT, reason);
    s->blob_size[TSR_BLOB_PREFIX] = tsr_input_size(input);
    return TSR_OK;
}

/* Of an input that is stored another way: what looks damaged in it, if that is why. */
static void note_damage(struct tsr_input *input, enum tsr_status status, const struct tsr_error *why)
{
    if (status == TSR_ERROR_CORRUPT && why->offset != TSR_NO_OFFSET) tsr_input_note_damage(input, "%s", why->text);
}

/* Packs an input, or says in the place of the reason why not. What takes too much memory is an error: files must not
 * depend on memory. */
static enum tsr_status open_packed(struct tsr_input *input, enum tsr_kind kind,
                                   const struct tsr_source_options *options, struct tsr_error *reason,
                                   struct tsr_source **source)
{
    const struct tsr_packing packing = {kind, reason->text, options->opened, options->coded};
    struct tsr_error error = {0};
    if (strcmp(reason->text, tsr_deflate_costly) == 0) return TSR_ERROR_CORRUPT; /* it would take as much once more */
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
    header.image = *image;
    const uint64_t bits = tsr_frame_bits(image) * image->frames, bytes = bits / 8 + (bits % 8 != 0);
    if (tsr_input_size(input) != bytes)
        return tsr_fail(error, TSR_ERROR_USAGE, "%s has %llu bytes, and its image %llu", tsr_input_name(input),
                        (unsigned long long)tsr_input_size(input), (unsigned long long)bytes);
    const struct tsr_need need = tsr_splice_need(&header, 0, bytes);
    TSR_TRY(tsr_input_claim(input, &header, &need, error));
    TSR_TRY(tsr_splice_open(input, false, &header, 0, source, error));
    (*source)->input = input;
    return TSR_OK;
}

enum tsr_status tsr_source_open(struct tsr_input *input, const struct tsr_source_options *options,
                                struct tsr_source **source, struct tsr_error *error)
{
    const uint8_t *head;
    const uint64_t file_size = tsr_input_size(input);
    const size_t size = file_size < TSR_HEAD_BYTES ? (size_t)file_size : TSR_HEAD_BYTES;
    enum tsr_status status = TSR_ERROR_CORRUPT;
    struct tsr_error why = {.offset = TSR_NO_OFFSET};
    *source = NULL;
    if (options->raster) return open_raster(input, options->raster, source, error);
    TSR_TRY(tsr_input_hold(input, size, &head, error));
    const struct tsr_format *format = tsr_format_of(head, size);
    const enum tsr_kind kind = format ? format->kind : TSR_KIND_OTHER;
    snprintf(why.text, sizeof why.text, "%s", size == 0 ? "it is empty" : "it is no PNG, PNM, DICOM or NIfTI file");
    if (options->verbatim)
        snprintf(why.text, sizeof why.text, "%s", options->reason);
    else if (format)
        status = format->open(input, options, source, &why);
    note_damage(input, status, &why);
    if (status == TSR_ERROR_CORRUPT && options->packs && (!options->verbatim || kind == TSR_KIND_PNG))
        status = open_packed(input, kind, options, &why, source);
    if (status == TSR_ERROR_CORRUPT)
        status = open_verbatim(input, kind, why.text, source, error);
    else if (status != TSR_OK && error)
        *error = why;
    if (status != TSR_OK) return status;
    (*source)->input = input;
    snprintf((*source)->header.damage, sizeof(*source)->header.damage, "%s", tsr_input_damage(input));
    return TSR_OK;
}

enum tsr_status tsr_source_visit(struct tsr_source *source,
                                 bool (*visit)(void *context, const struct tsr_image *image, const uint8_t *raster),
                                 void *context, struct tsr_error *error)
{
    const struct tsr_image *const image = &source->header.image;
    const size_t bytes = (size_t)((tsr_frame_bits(image) + 7) / 8);
    const uint8_t *const held = source->ops->rasters ? source->ops->rasters(source) : NULL;
    uint8_t *const raster = held ? NULL : malloc(bytes);
    enum tsr_status status = TSR_OK;
    bool goes_on = true;
    if (!held && !raster) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a frame of %zu bytes", bytes);
    for (uint32_t frame = 0; frame < image->frames && goes_on && status == TSR_OK; frame++) {
        if (raster) status = source->ops->read_frame(source, frame, raster, error);
        if (status == TSR_OK) goes_on = visit(context, image, raster ? raster : held + frame * bytes);
    }
    free(raster);
    return status;
}

void tsr_source_close(struct tsr_source *source)
{
    if (!source) return;
    free(source->windows.frame);
    source->ops->close(source);
}
