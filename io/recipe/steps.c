/* The steps of a header, and what they take: FORMAT.md 4.1 to 4.4, 4.6, 4.7. */
#include "recipe.h"

#include <string.h>

#include "io/nodes/gzip/gzip.h"
#include "io/nodes/planes/planes.h"
#include "io/nodes/png/png_writer.h"
#include "pieces.h"
#include "png_parameters.h"

bool tsr_has_residues(const struct tsr_header *header)
{
    return header->exact && (header->recipe == TSR_RECIPE_ENCAPSULATED || header->recipe == TSR_RECIPE_PNG ||
                             header->recipe == TSR_RECIPE_DEFLATED);
}

/* ---- Steps -------------------------------------------------------------------------------------------------- */

static struct tsr_step *add(struct tsr_recipe *recipe, enum tsr_step_kind kind)
{
    struct tsr_step *const step = &recipe->step[recipe->count++];
    *step = (struct tsr_step){.kind = kind};
    return step;
}

static void add_bytes(struct tsr_recipe *recipe, enum tsr_blob from, uint64_t size)
{
    struct tsr_step *const step = add(recipe, TSR_STEP_BYTES);
    step->from = from;
    step->size = size;
}

static void add_known(struct tsr_recipe *recipe, const uint8_t *bytes, size_t size)
{
    struct tsr_step *const step = add(recipe, TSR_STEP_BYTES);
    step->bytes = bytes;
    step->size = size;
}

/* The bits after the last sample: the last parameter, if samples have one bit. FORMAT.md 4.1. */
static enum tsr_status get_spare(const struct tsr_header *header, struct tsr_cursor *c, struct tsr_recipe *recipe,
                                 struct tsr_error *error)
{
    const unsigned rest = (unsigned)(tsr_frame_bits(&header->image) * header->image.frames % 8);
    if (header->image.bits_allocated == 1 && rest != 0) recipe->spare = tsr_get_u8(c);
    if (recipe->spare >> (8 - rest) || c->bad || c->at != header->parameter_count)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "the header's %zu bytes of restore parameters are not valid",
                        header->parameter_count);
    return TSR_OK;
}

/* What makes the original's samples of a frame; NULL: they are those of the raster. */
static const struct tsr_node *node_of_values(const struct tsr_header *header)
{
    return tsr_has_values(header) ? &tsr_node_values : NULL;
}

/* Prefix, frames, suffix. */
static void add_parts(struct tsr_recipe *recipe, const struct tsr_node *node)
{
    add_bytes(recipe, TSR_BLOB_PREFIX, TSR_ALL_BYTES);
    add(recipe, TSR_STEP_FRAMES)->node = node;
    add_bytes(recipe, TSR_BLOB_SUFFIX, TSR_ALL_BYTES);
}

static enum tsr_status splice(const struct tsr_header *header, struct tsr_recipe *recipe, struct tsr_error *error)
{
    struct tsr_cursor c = {header->parameters, header->parameter_count, 0, false};
    TSR_TRY(get_spare(header, &c, recipe, error));
    add_parts(recipe, node_of_values(header));
    return TSR_OK;
}

bool tsr_get_record(struct tsr_cursor *c, struct tsr_record *record)
{
    record->fragments = tsr_get_varint(c);
    record->sizes = *c;
    for (uint64_t i = 1; i < record->fragments && !c->bad; i++) tsr_get_varint(c);
    record->residue_size = tsr_get_varint(c);
    return !c->bad && record->fragments > 0;
}

static enum tsr_status encapsulated(const struct tsr_header *header, struct tsr_recipe *recipe, struct tsr_error *error)
{
    const struct tsr_image *const image = &header->image;
    const int kind = header->parameters[0];
    const bool are_units = kind == TSR_STREAMS_OF_UNITS;
    if (header->parameter_count == 1 && !are_units && !tsr_raster_node(kind))
        return tsr_fail(error, TSR_ERROR_VERSION, "the file has streams of kind %d, which this version does not know",
                        kind);
    if (header->parameter_count != 1 || image->big_endian || image->swapped ||
        (image->bits_allocated == 1 && (are_units || !tsr_raster_node(kind)->takes_bits)))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "the header's encapsulation is not valid");
    add_parts(recipe, tsr_raster_node(kind));
    return TSR_OK;
}

size_t tsr_known_start(const struct tsr_header *header, uint8_t start[TSR_START_LIMIT])
{
    if (!tsr_makes_png(header) || !(header->parameters[TSR_PNG_FORM] & TSR_PNG_USUAL_START)) return 0;
    tsr_png_start(header, start);
    return TSR_PNG_START_BYTES;
}

static enum tsr_status png(const struct tsr_header *header, struct tsr_recipe *recipe, struct tsr_error *error)
{
    if (!tsr_png_is_valid(header)) return tsr_fail(error, TSR_ERROR_CORRUPT, "the header does not describe a PNG");
    const size_t start = tsr_known_start(header, recipe->start);
    if (start > 0) add_known(recipe, recipe->start, start);
    add_parts(recipe, &tsr_node_png);
    if (header->parameters[TSR_PNG_FORM] & TSR_PNG_USUAL_END) add_known(recipe, tsr_png_end, TSR_PNG_END_BYTES);
    return TSR_OK;
}

static enum tsr_status deflated(const struct tsr_header *header, uint64_t blobs, struct tsr_recipe *recipe,
                                struct tsr_error *error)
{
    struct tsr_cursor c = {header->parameters, header->parameter_count, 0, false};
    const uint64_t before = tsr_get_varint(&c), plain = tsr_original_rasters(header) + blobs;
    TSR_TRY(get_spare(header, &c, recipe, error));
    struct tsr_step *const open = add(recipe, TSR_STEP_OPEN);
    open->node = &tsr_node_deflated;
    open->before = before;
    open->size = SIZE_MAX / 2;
    open->foreseen = plain > before ? plain - before : 0;
    add_parts(recipe, node_of_values(header));
    add(recipe, TSR_STEP_CLOSE);
    return TSR_OK;
}

/* Before each frame stands the mark. PLANES.md. */
static enum tsr_status planes(const struct tsr_header *header, struct tsr_recipe *recipe, struct tsr_error *error)
{
    const unsigned form = header->parameters[0];
    if (header->parameter_count == 0 || !tsr_planes_fit(&header->image, form))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "the header does not describe planes");
    add_parts(recipe, form == TSR_PLANES_PLAIN ? NULL : &tsr_node_planes);
    struct tsr_step *const frames = &recipe->step[recipe->count - 2];
    frames->bytes = header->parameters + 1;
    frames->size = header->parameter_count - 1;
    return TSR_OK;
}

enum tsr_status tsr_recipe_of(const struct tsr_header *header, uint64_t blobs, struct tsr_recipe *recipe,
                              struct tsr_error *error)
{
    memset(recipe, 0, sizeof *recipe);
    switch (header->recipe) {
    case TSR_RECIPE_SPLICE:
        return splice(header, recipe, error);
    case TSR_RECIPE_PNG:
        return png(header, recipe, error);
    case TSR_RECIPE_DEFLATED:
        return deflated(header, blobs, recipe, error);
    case TSR_RECIPE_ENCAPSULATED:
        return encapsulated(header, recipe, error);
    case TSR_RECIPE_PLANES:
        return planes(header, recipe, error);
    case TSR_RECIPE_VERBATIM:
        add_bytes(recipe, TSR_BLOB_PREFIX, TSR_ALL_BYTES);
        return TSR_OK;
    default:
        return TSR_OK;
    }
}

/* ---- Memory ------------------------------------------------------------------------------------------------- */

uint64_t tsr_usual_stream(const struct tsr_image *image, uint64_t residues)
{
    enum { CODE_BITS = 16, HEAD = 1 << 16 };
    const uint64_t codes = CODE_BITS * (uint64_t)image->columns * image->rows * image->components;
    return (tsr_frame_bits(image) + codes) / 8 + residues + HEAD;
}

static uint64_t encapsulated_work(const struct tsr_header *header, const struct tsr_foreseen *f, uint64_t residues)
{
    const struct tsr_node *const node = tsr_raster_node(header->parameters[0]);
    const uint64_t bound = tsr_usual_stream(&header->image, residues), stream = bound < f->size ? bound : f->size;
    if (tsr_are_units(header)) return 0; /* units have their own: unit.h */
    return stream + (node ? node->memory(&(struct tsr_node_work){.image = &header->image}, stream, true) : 0);
}

/* Bytes of a frame that values are made in. */
static uint64_t frame_of_values(const struct tsr_header *header)
{
    const struct tsr_image image = tsr_original_image(header);
    return tsr_has_values(header) ? tsr_raster_bytes(&image) : 0;
}

struct tsr_restoring tsr_restoring_memory(const struct tsr_header *header, const struct tsr_foreseen *f)
{
    static const uint64_t most = UINT64_MAX / 64;
    const uint64_t most_residues = tsr_are_units(header) && f->blobs < f->size ? f->blobs : f->size, /* records alone */
        residues = !tsr_has_residues(header) ? 0
                   : f->residues             ? f->residues->size
                                             : most_residues;
    struct tsr_restoring r = {.held = residues};
    if (f->size > most || f->blobs > most) return (struct tsr_restoring){.held = UINT64_MAX / 4}; /* no memory has it */
    switch (header->recipe) {
    case TSR_RECIPE_PACKED:
    case TSR_RECIPE_INNER:
        r.held = tsr_unpacking_memory(header->room, f->size < header->room ? f->size : header->room,
                                      f->begin ? tsr_first_node(f->begin->bytes, f->begin->size) : NULL);
        break;
    case TSR_RECIPE_ENCAPSULATED:
        r.work = encapsulated_work(header, f, residues);
        break;
    case TSR_RECIPE_PNG:
        r.work = header->exact ? tsr_png_making_memory(tsr_png_rows_of(header), f->size, f->residues, f->threads)
                               : tsr_png_writing_memory(tsr_png_rows_of(header));
        break;
    case TSR_RECIPE_DEFLATED:
        r.held += tsr_original_rasters(header) + f->blobs + frame_of_values(header);
        r.work = tsr_deflated_memory(tsr_original_rasters(header) + f->blobs, f->size, f->residues, f->threads);
        r.is_at_end = true;
        break;
    case TSR_RECIPE_SPLICE:
        r.work = frame_of_values(header);
        break;
    case TSR_RECIPE_PLANES:
        r.work = tsr_raster_bytes(&header->image);
        break;
    default:
        break;
    }
    return r;
}
