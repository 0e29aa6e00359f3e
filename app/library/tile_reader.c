/* Single frames and rectangles of frames, from the sections that they need. */
#include <stdlib.h>
#include <string.h>

#include "io/recipe/unit.h"
#include "kernels/kept/kept_frames.h"
#include "reader.h"
#include "io/formats/dicom/frame_stream.h"

/* Tiles of a frame, with its model, as they were read. */
struct coded {
    uint8_t *bytes;
    struct tsr_piece model;
    struct tsr_piece *pieces;
    struct tsr_segment *tiles;
    uint32_t count;
};

static void free_coded(struct coded *coded)
{
    free(coded->bytes);
    free(coded->pieces);
    free(coded->tiles);
}

static enum tsr_status make_room(struct coded *coded, size_t bytes, uint32_t tiles, struct tsr_error *error)
{
    coded->bytes = malloc(bytes + 1);
    coded->pieces = malloc(((size_t)tiles + 1) * sizeof *coded->pieces);
    coded->tiles = malloc(((size_t)tiles + 1) * sizeof *coded->tiles);
    coded->count = tiles;
    if (coded->bytes && coded->pieces && coded->tiles) return TSR_OK;
    return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu bytes of payload", bytes);
}

/* Decodes to the raster of an image: the frame, or a window of it. */
static enum tsr_status decode(struct tsr_engine *engine, const struct tsr_image *image,
                              const struct tsr_kept_ranges *kept, const struct tsr_window *window, struct tsr_base base,
                              const struct coded *coded, uint32_t frame, uint8_t *raster, struct tsr_error *error)
{
    struct tsr_decode_job job = {
        .tile = coded->tiles, .tiles = coded->count, .window = window, .base = base, .raster = raster};
    job.model = (struct tsr_segment){coded->model.bytes, coded->model.size};
    for (uint32_t t = 0; t < coded->count; t++)
        coded->tiles[t] = (struct tsr_segment){coded->pieces[t].bytes, coded->pieces[t].size};
    const size_t space = tsr_kept_decode_workspace(engine, image, kept, &job, 1);
    if (space == 0) return tsr_fail(error, TSR_ERROR_CORRUPT, "frame %u has no model", frame);
    void *const workspace = engine->ops->take_workspace(engine, space);
    if (!workspace) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu bytes of work space", space);
    const enum tsr_status status = tsr_kept_decode(engine, image, kept, &job, 1, workspace);
    engine->ops->give_workspace(engine, workspace);
    return status == TSR_OK ? TSR_OK : tsr_blame_frame(&job, frame, error);
}

static enum tsr_status open_base(struct tsr_engine *engine, struct tsr_container_reader *container, uint32_t batch,
                                 struct tsr_base_frames **base, struct tsr_error *error)
{
    return tsr_base_open(engine, tsr_container_header(container), tsr_container_input(container),
                         tsr_container_base(container), batch, base, error);
}

/* Decodes a frame that is a unit. */
static enum tsr_status decode_unit(struct tsr_container_reader *container, uint32_t frame, uint8_t *raster,
                                   struct tsr_error *error)
{
    struct tsr_bytes stream = {.limit = SIZE_MAX / 4};
    enum tsr_status status = tsr_read_unit(container, frame, &stream, error);
    if (status == TSR_OK)
        status =
            tsr_dicom_decode_stream(tsr_container_header(container), frame, stream.bytes, stream.size, raster, error);
    tsr_bytes_free(&stream);
    return status;
}

enum tsr_status tsr_decode_frame_of(struct tsr_engine *engine, struct tsr_container_reader *container, uint32_t frame,
                                    uint8_t *raster, struct tsr_error *error)
{
    const struct tsr_header *const header = tsr_container_header(container);
    const struct tsr_image image = tsr_coded_image(header);
    struct tsr_base_frames *base = NULL;
    struct tsr_base of_frame = {NULL, NULL};
    struct coded coded = {0};
    uint8_t *patches = NULL;
    if (tsr_container_is_unit(container, frame)) return decode_unit(container, frame, raster, error);
    if (header->linked) {
        const struct tsr_region whole = {0, 0, image.columns, image.rows};
        return tsr_decode_region_of(engine, container, frame, &whole, raster, error);
    }
    TSR_TRY(tsr_check_frame_sections(container, frame, error));
    enum tsr_status status = make_room(&coded, tsr_container_frame_bytes(container, frame),
                                       tsr_container_frame_tiles(container, frame), error);
    if (status == TSR_OK)
        status = tsr_container_get_frame(container, frame, coded.bytes, &coded.model, coded.pieces, error);
    if (status == TSR_OK && header->has_base) {
        engine = engine->cpu;
        status = open_base(engine, container, 1, &base, error);
        if (status == TSR_OK)
            status = tsr_base_frame(base, tsr_container_frame_number(container, frame), 0, &of_frame, error);
    }
    if (status == TSR_OK && header->patches.count > 0) {
        patches = malloc(tsr_raster_bytes(&image) + 1);
        if (!patches) status = tsr_fail(error, TSR_ERROR_LIMIT, "no memory for patches of a frame");
    }
    if (status == TSR_OK)
        status = decode(engine, &image, tsr_kept_of(header, &header->coding), NULL, of_frame, &coded, frame,
                        patches ? patches : raster, error);
    if (status == TSR_OK && patches)
        memcpy(raster, tsr_base_complete(base, 0, patches), tsr_raster_bytes(&header->image));
    tsr_base_close(base);
    free(patches);
    free_coded(&coded);
    return status;
}

/* ---- Regions ---------------------------------------------------------------------------------------------- */

/* The tiles that a region touches, in columns and rows of tiles; across: columns of the frame. */
struct touched {
    uint32_t first_column, columns, first_row, rows, across;
    uint32_t width, height; /* of a tile */
    struct tsr_window window;
    struct tsr_region all; /* what these tiles have */
    bool refers;           /* the frame is linked, and refers to the frame before */
};

static uint32_t less_of(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* From the tiles' sides, which are the first fields of the frame's model. */
static enum tsr_status find_touched(struct tsr_container_reader *container, uint32_t frame,
                                    const struct tsr_piece *model, const struct tsr_region *region,
                                    struct touched *touched, struct tsr_error *error)
{
    const struct tsr_image coded = tsr_coded_image(tsr_container_header(container)), *const image = &coded;
    struct tsr_tiling cut;
    struct tsr_bit_reader bits = tsr_bit_reader(model->bytes, model->size);
    if (!tsr_get_tiling(&bits, image, &cut))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "frame %u has a model that describes no such frame", frame);
    const uint32_t ordered = tsr_container_header(container)->order.tiles;
    if (ordered > 0 && tsr_tiling_count(cut) != ordered)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "the tiles of frame %u are not those of the header", frame);
    if (tsr_tiling_count(cut) != tsr_container_frame_tiles(container, frame) && !tsr_container_is_searched(container))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "frame %u has %u tiles, and its model %u", frame,
                        tsr_container_frame_tiles(container, frame), tsr_tiling_count(cut));
    const uint32_t width = (uint32_t)cut.tile_width, height = (uint32_t)cut.tile_height;
    touched->width = width;
    touched->height = height;
    touched->across = (image->columns + width - 1) / width;
    touched->first_column = region->column / width;
    touched->first_row = region->row / height;
    touched->columns = (region->column + region->columns - 1) / width - touched->first_column + 1;
    touched->rows = (region->row + region->rows - 1) / height - touched->first_row + 1;
    touched->window =
        (struct tsr_window){touched->first_column * width, touched->first_row * height, image->columns, image->rows};
    touched->all = (struct tsr_region){
        .column = touched->window.column,
        .row = touched->window.row,
        .columns = less_of(touched->columns * width, image->columns - touched->window.column),
        .rows = less_of(touched->rows * height, image->rows - touched->window.row),
    };
    touched->refers = tsr_container_header(container)->linked && tsr_get_bits(&bits, 1) && !bits.overrun;
    return TSR_OK;
}

/* Reads the touched tiles after the model. */
static enum tsr_status read_touched(struct tsr_container_reader *container, uint32_t frame,
                                    const struct touched *touched, struct coded *coded, struct tsr_error *error)
{
    const struct tsr_tile_rows tiles = {touched->first_row * touched->across + touched->first_column, touched->columns,
                                        touched->rows, touched->across};
    const size_t bytes = tsr_container_tiles_bytes(container, frame, &tiles);
    TSR_TRY(make_room(coded, bytes, touched->columns * touched->rows, error));
    return tsr_container_get_tiles(container, frame, &tiles, coded->bytes, coded->pieces, error);
}

/* The base's samples of a part of the image that patches are, by those that the part touches. */
static enum tsr_status read_base_patches(struct tsr_base_frames *base, const struct tsr_header *header, uint32_t frame,
                                         const struct tsr_region *part, uint8_t *raster, struct tsr_error *error)
{
    const uint32_t height = header->patches.height, first = part->row / height,
                   count = (part->row + part->rows - 1) / height - first + 1;
    const struct tsr_region inside = {part->column, part->row - first * height, part->columns, part->rows};
    struct tsr_image all = tsr_coded_image(header);
    all.rows = count * height;
    uint8_t *const samples = malloc(tsr_raster_bytes(&all) + 1);
    if (!samples) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %u patches", count);
    const enum tsr_status status = tsr_base_patches(base, frame, first, count, samples, error);
    if (status == TSR_OK) tsr_cut_region(&all, samples, &inside, raster);
    free(samples);
    return status;
}

/* The base of a part of a frame, in memory that the caller frees, also after an error. */
static enum tsr_status take_base(struct tsr_engine *engine, struct tsr_container_reader *container, uint32_t frame,
                                 const struct tsr_window *window, const struct tsr_image *part, struct tsr_base *base,
                                 struct tsr_error *error)
{
    const struct tsr_header *const header = tsr_container_header(container);
    const struct tsr_region region = {window->column, window->row, part->columns, part->rows};
    const uint32_t number = tsr_container_frame_number(container, frame);
    struct tsr_base_frames *frames = NULL;
    uint8_t *const raster = malloc(tsr_raster_bytes(part) + 1);
    *base = (struct tsr_base){raster, malloc(tsr_base_room(part))};
    if (!raster || !base->room) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a part of a base");
    enum tsr_status status = open_base(engine, container, 0, &frames, error);
    if (status == TSR_OK)
        status = header->patches.count > 0 ? read_base_patches(frames, header, number, &region, raster, error)
                                           : tsr_base_region(frames, number, &region, raster, error);
    tsr_base_close(frames);
    return status;
}

/* Decodes the tiles as an image of their own, and cuts the region out of it. before: as that of decode_region. */
static enum tsr_status decode_touched(struct tsr_engine *engine, struct tsr_container_reader *container,
                                      const struct touched *touched, const struct coded *coded, uint32_t frame,
                                      const struct tsr_region *region, const uint8_t *before, uint8_t *out,
                                      struct tsr_error *error)
{
    const struct tsr_header *const header = tsr_container_header(container);
    const struct tsr_image coded_image = tsr_coded_image(header), *const image = &coded_image;
    const struct tsr_window *const window = &touched->window;
    struct tsr_image part = *image;
    part.frames = 1;
    part.swapped = false;
    part.columns = touched->all.columns;
    part.rows = touched->all.rows;
    const struct tsr_region inside = {region->column - window->column, region->row - window->row, region->columns,
                                      region->rows};
    uint8_t *const raster = malloc(tsr_raster_bytes(&part) + 1);
    struct tsr_base base = {before, header->linked ? malloc(tsr_base_room(&part)) : NULL};
    enum tsr_status status = TSR_OK;
    if (!raster || (header->linked && !base.room))
        status = tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a part of a frame");
    if (status == TSR_OK && header->has_base) status = take_base(engine, container, frame, window, &part, &base, error);
    if (status == TSR_OK)
        status =
            decode(engine->cpu, &part, tsr_kept_of(header, &header->coding), window, base, coded, frame, raster, error);
    if (status == TSR_OK) tsr_cut_region(&part, raster, &inside, out);
    if (header->has_base) free((void *)(uintptr_t)base.raster);
    free(base.room);
    free(raster);
    return status;
}

/* A unit is decoded whole. */
static enum tsr_status cut_unit(struct tsr_container_reader *container, uint32_t frame, const struct tsr_region *region,
                                uint8_t *out, struct tsr_error *error)
{
    const struct tsr_image *const image = &tsr_container_header(container)->image;
    uint8_t *const raster = malloc(tsr_raster_bytes(image) + 1);
    if (!raster) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a frame of %zu bytes", tsr_raster_bytes(image));
    const enum tsr_status status = decode_unit(container, frame, raster, error);
    if (status == TSR_OK) tsr_cut_region(image, raster, region, out);
    free(raster);
    return status;
}

/* A region of what frames code. before: in linked files, the samples of the frame before where the touched tiles are;
 * NULL: the frame refers to none. */
static enum tsr_status decode_region(struct tsr_engine *engine, struct tsr_container_reader *container, uint32_t frame,
                                     const struct tsr_region *region, const uint8_t *before, uint8_t *out,
                                     struct tsr_error *error)
{
    struct coded coded = {0};
    struct touched touched;
    TSR_TRY(tsr_check_frame_sections(container, frame, error));
    uint8_t *const model_bytes = malloc(tsr_container_model_bytes(container, frame) + 1);
    if (!model_bytes) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a frame's model");
    enum tsr_status status = tsr_container_get_model(container, frame, model_bytes, &coded.model, error);
    if (status == TSR_OK) status = find_touched(container, frame, &coded.model, region, &touched, error);
    if (status == TSR_OK) status = read_touched(container, frame, &touched, &coded, error);
    if (status == TSR_OK)
        status = decode_touched(engine, container, &touched, &coded, frame, region, before, out, error);
    free_coded(&coded);
    free(model_bytes);
    return status;
}

/* What a region touches, by the frame's model. */
static enum tsr_status peek_touched(struct tsr_container_reader *container, uint32_t frame,
                                    const struct tsr_region *region, struct touched *touched, struct tsr_error *error)
{
    struct tsr_piece model;
    TSR_TRY(tsr_check_frame_sections(container, frame, error));
    uint8_t *const bytes = malloc(tsr_container_model_bytes(container, frame) + 1);
    if (!bytes) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a frame's model");
    enum tsr_status status = tsr_container_get_model(container, frame, bytes, &model, error);
    if (status == TSR_OK) status = find_touched(container, frame, &model, region, touched, error);
    free(bytes);
    return status;
}

enum tsr_status tsr_read_tiling(struct tsr_container_reader *container, uint32_t frame, uint32_t *width,
                                uint32_t *height, struct tsr_error *error)
{
    const struct tsr_region corner = {0, 0, 1, 1};
    struct touched touched;
    TSR_TRY(peek_touched(container, frame, &corner, &touched, error));
    *width = touched.width;
    *height = touched.height;
    return TSR_OK;
}

/* ---- Linked frames (BASE.md 5) ------------------------------------------------------------------------------ */

/* A frame, and the region of it that is needed. */
struct link {
    uint32_t frame;
    struct tsr_region region;
};

/* The links of a frame, the first of which is the frame's region itself: each frame that refers to the frame before,
 * and at last one that refers to none. Of a frame that another one is equal to, both have the number. */
static enum tsr_status find_links(struct tsr_container_reader *container, uint32_t frame,
                                  const struct tsr_region *region, struct link link[TSR_LINKS_LIMIT + 1],
                                  uint32_t *count, struct tsr_error *error)
{
    link[0] = (struct link){frame, *region};
    for (*count = 1;; ++*count) {
        const struct link *const last = &link[*count - 1];
        const uint32_t number = tsr_container_frame_number(container, last->frame);
        struct touched touched;
        if (tsr_container_is_unit(container, last->frame))
            return tsr_fail(error, TSR_ERROR_CORRUPT, "frame %u has no samples, to which frame %u refers", last->frame,
                            last->frame + 1);
        TSR_TRY(peek_touched(container, last->frame, &last->region, &touched, error));
        if (!touched.refers) return TSR_OK;
        TSR_TRY(tsr_check_link(number, *count, error));
        link[*count] = (struct link){number - 1, touched.all};
    }
}

enum tsr_status tsr_count_links(struct tsr_container_reader *container, uint32_t frame, uint32_t *links,
                                struct tsr_error *error)
{
    const struct tsr_region corner = {0, 0, 1, 1};
    struct link link[TSR_LINKS_LIMIT + 1];
    TSR_TRY(find_links(container, frame, &corner, link, links, error));
    --*links;
    return TSR_OK;
}

/* From the last link on, each from what became of the one after it. */
static enum tsr_status decode_linked(struct tsr_engine *engine, struct tsr_container_reader *container, uint32_t frame,
                                     const struct tsr_region *region, uint8_t *out, struct tsr_error *error)
{
    struct tsr_image part = tsr_container_header(container)->image;
    struct link link[TSR_LINKS_LIMIT + 1];
    uint8_t *before = NULL;
    uint32_t count;
    enum tsr_status status = find_links(container, frame, region, link, &count, error);
    for (uint32_t i = count; status == TSR_OK && i-- > 0;) {
        part.columns = link[i].region.columns;
        part.rows = link[i].region.rows;
        uint8_t *const raster = i > 0 ? malloc(tsr_raster_bytes(&part) + 1) : out;
        status = raster ? decode_region(engine, container, link[i].frame, &link[i].region, before, raster, error)
                        : tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a part of a frame");
        free(before);
        before = i > 0 ? raster : NULL;
    }
    free(before);
    return status;
}

/* The patches that a region touches, and those between them: the number of the first one. Returns how many. */
static uint32_t find_patches(const struct tsr_header *header, const struct tsr_region *region, uint32_t *first)
{
    const struct tsr_patches *const p = &header->patches;
    uint32_t end = 0;
    *first = 0;
    for (uint32_t place = 0, number = 0; place < p->across * p->down; place++) {
        if (!tsr_has_patch(p, place)) continue;
        const struct tsr_region r = tsr_patch_at(p, &header->image, place);
        const bool touches = r.column < region->column + region->columns && region->column < r.column + r.columns &&
                             r.row < region->row + region->rows && region->row < r.row + r.rows;
        if (touches && end == 0) *first = number;
        if (touches) end = number + 1;
        number++;
    }
    return end - *first;
}

/* In a file with patches: the base's samples, and over them those of the patches. */
static enum tsr_status decode_patched(struct tsr_engine *engine, struct tsr_container_reader *container, uint32_t frame,
                                      const struct tsr_region *region, uint8_t *out, struct tsr_error *error)
{
    const struct tsr_header *const header = tsr_container_header(container);
    const struct tsr_patches *const p = &header->patches;
    struct tsr_base_frames *base = NULL;
    uint32_t first;
    enum tsr_status status = open_base(engine, container, 0, &base, error);
    if (status == TSR_OK)
        status = tsr_base_region(base, tsr_container_frame_number(container, frame), region, out, error);
    tsr_base_close(base);
    const uint32_t count = find_patches(header, region, &first);
    if (status != TSR_OK || count == 0) return status;
    struct tsr_image all = tsr_coded_image(header);
    all.rows = count * p->height;
    const struct tsr_region rows = {0, first * p->height, p->width, all.rows};
    uint8_t *const samples = malloc(tsr_raster_bytes(&all) + 1);
    if (!samples) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %u patches", count);
    status = decode_region(engine, container, frame, &rows, NULL, samples, error);
    if (status == TSR_OK) tsr_put_patches(p, &header->image, region, first, count, out, samples);
    free(samples);
    return status;
}

enum tsr_status tsr_decode_region_of(struct tsr_engine *engine, struct tsr_container_reader *container, uint32_t frame,
                                     const struct tsr_region *region, uint8_t *out, struct tsr_error *error)
{
    const struct tsr_header *const header = tsr_container_header(container);
    if (tsr_container_is_unit(container, frame)) return cut_unit(container, frame, region, out, error);
    if (header->linked) return decode_linked(engine, container, frame, region, out, error);
    return header->patches.count > 0 ? decode_patched(engine, container, frame, region, out, error)
                                     : decode_region(engine, container, frame, region, NULL, out, error);
}

/* Bits of a raster, the first of a byte its least significant one, to another; is_swapped: pairs of the first one's
 * bytes are exchanged. */
static void copy_bits(const uint8_t *in, uint64_t from, bool is_swapped, uint8_t *out, uint64_t to, uint64_t count)
{
    if (!is_swapped && from % 8 == 0 && to % 8 == 0 && count % 8 == 0) {
        memcpy(out + to / 8, in + from / 8, (size_t)(count / 8));
        return;
    }
    for (uint64_t i = 0; i < count; i++, from++, to++) {
        const unsigned byte = in[(size_t)(from / 8) ^ (size_t)is_swapped], bit = byte >> (from % 8) & 1u;
        out[to / 8] = (uint8_t)(out[to / 8] | bit << (to % 8));
    }
}

void tsr_cut_region(const struct tsr_image *image, const uint8_t *raster, const struct tsr_region *region, uint8_t *out)
{
    const uint64_t planes = image->planar ? image->components : 1, components = image->components / planes,
                   bits = components * image->bits_allocated, line = region->columns * bits;
    uint64_t to = 0;
    memset(out, 0, (size_t)((planes * region->rows * line + 7) / 8));
    for (uint64_t plane = 0; plane < planes; plane++)
        for (uint64_t y = 0; y < region->rows; y++, to += line) {
            const uint64_t pixel = (plane * image->rows + region->row + y) * image->columns + region->column;
            copy_bits(raster, pixel * bits, image->swapped, out, to, line);
        }
}
