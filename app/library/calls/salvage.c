/* What is left of a damaged file: the samples of the units whose checks hold. */
#define _XOPEN_SOURCE 700 /* realpath */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/library/call.h"
#include "app/library/reader.h"
#include "picture.h"

/* Squares, where tiles are no squares of the image: of files with patches. */
enum { SQUARE = 64 };

struct salvage {
    const struct tsr_call *call;
    struct tsr_container_reader *container;
    const struct tsr_header *header;
    struct tsr_image image; /* of the original */
    struct tsr_salvage_sinks sinks;
    struct tsr_salvaged *found;
    size_t sample_bits;            /* of a pixel of a plane of the raster */
    uint8_t *raster, *part, *held; /* of a frame, of a unit, and where samples are held */
    uint8_t *values;               /* of a frame of floating-point numbers or of 64 bits; else NULL */
};

static bool is_damage(enum tsr_status status)
{
    return status == TSR_ERROR_CORRUPT || status == TSR_ERROR_VERSION;
}

static void tell(const struct salvage *s, uint32_t frame, const struct tsr_region *region, bool is_held)
{
    s->found->regions++;
    if (is_held) s->found->samples_held += (uint64_t)region->columns * region->rows * s->image.components;
    if (s->sinks.tell) s->sinks.tell(s->sinks.context, frame, region, is_held);
}

static void put_bit(uint8_t *raster, size_t at, int bit)
{
    raster[at / 8] = (uint8_t)(raster[at / 8] | bit << at % 8);
}

/* Puts the raster of a region into that of the frame. Rasters of single bits are put bit by bit. */
static void put_part(struct salvage *s, const struct tsr_region *region)
{
    const struct tsr_image *const image = &s->header->image;
    const size_t planes = image->planar ? image->components : 1, bits = s->sample_bits, line = region->columns * bits;
    size_t from = 0;
    for (size_t p = 0; p < planes; p++)
        for (size_t y = 0; y < region->rows; y++, from += line) {
            const size_t to = ((p * image->rows + region->row + y) * image->columns + region->column) * bits;
            if (bits % 8 == 0)
                memcpy(s->raster + to / 8, s->part + from / 8, line / 8);
            else
                for (size_t i = 0; i < line; i++)
                    put_bit(s->raster, to + i, s->part[(from + i) / 8] >> (from + i) % 8 & 1);
        }
    for (size_t y = 0; y < region->rows; y++)
        memset(s->held + (region->row + y) * image->columns + region->column, 255, region->columns);
}

/* Decodes a part of a frame. *is_held: its checks hold. */
static enum tsr_status try_part(struct salvage *s, uint32_t frame, const struct tsr_region *region, bool *is_held)
{
    struct tsr_error why;
    const enum tsr_status status = tsr_decode_region_of(s->call->engine, s->container, frame, region, s->part, &why);
    *is_held = status == TSR_OK;
    if (*is_held) put_part(s, region);
    if (status == TSR_OK || is_damage(status)) return TSR_OK;
    if (s->call->error) *s->call->error = why;
    return status;
}

static uint32_t less_of(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Whether to try a unit: what was not found is not. Patches are no tiles of the frame. */
static bool may_be_there(const struct salvage *s, uint32_t frame, uint32_t tile)
{
    return !tsr_container_is_searched(s->container) || tsr_container_is_unit(s->container, frame) ||
           s->header->patches.count > 0 || tsr_container_may_have_tile(s->container, frame, tile);
}

/* Row of units of a frame, of which only the first present can be there; those alike that follow each other are told
 * together. */
static enum tsr_status take_row(struct salvage *s, uint32_t frame, uint32_t row, uint32_t width, uint32_t height,
                                uint32_t present)
{
    const uint32_t columns = s->image.columns, across = (columns + width - 1) / width;
    struct tsr_region run = {0, row, 0, less_of(height, s->image.rows - row)};
    bool run_held = false;
    for (uint32_t i = 0; i < across; i++) {
        const struct tsr_region unit = {i * width, row, less_of(width, columns - i * width), run.rows};
        bool is_held = false;
        if (i < present && may_be_there(s, frame, row / height * across + i))
            TSR_TRY(try_part(s, frame, &unit, &is_held));
        if (run.columns > 0 && is_held != run_held) {
            tell(s, frame, &run, run_held);
            run.column = unit.column;
            run.columns = 0;
        }
        run_held = is_held;
        run.columns += unit.columns;
        if (i >= present) { /* so are all that follow */
            run.columns = columns - run.column;
            break;
        }
    }
    tell(s, frame, &run, run_held);
    return TSR_OK;
}

/* The sides of a frame's units, and how many of them can be there. False: none can. */
static bool find_units(struct salvage *s, uint32_t frame, uint32_t *width, uint32_t *height, uint32_t *present)
{
    struct tsr_error ignored;
    *present = UINT32_MAX;
    *width = s->image.columns;
    *height = s->image.rows;
    if (tsr_container_is_unit(s->container, frame)) return true;
    if (s->header->patches.count > 0) {
        *width = *height = SQUARE;
        return true;
    }
    if (tsr_container_is_searched(s->container)) *present = tsr_container_frame_tiles(s->container, frame);
    return tsr_read_tiling(s->container, frame, width, height, &ignored) == TSR_OK;
}

static enum tsr_status take_units(struct salvage *s, uint32_t frame)
{
    const struct tsr_region all = {0, 0, s->image.columns, s->image.rows};
    uint32_t width, height, present;
    if (!find_units(s, frame, &width, &height, &present)) {
        tell(s, frame, &all, false);
        return TSR_OK;
    }
    const uint32_t across = (s->image.columns + width - 1) / width;
    for (uint32_t row = 0; row < s->image.rows; row += height) {
        if (present == 0) {
            const struct tsr_region rest = {0, row, s->image.columns, s->image.rows - row};
            tell(s, frame, &rest, false);
            break;
        }
        TSR_TRY(take_row(s, frame, row, width, height, present));
        present -= less_of(present, across);
    }
    return TSR_OK;
}

/* A frame at once, where no unit of it is damaged; else unit by unit. */
static enum tsr_status take_frame(struct salvage *s, uint32_t frame)
{
    const struct tsr_region all = {0, 0, s->image.columns, s->image.rows};
    bool is_held = false;
    memset(s->raster, 0, tsr_raster_bytes(&s->header->image) + 1);
    memset(s->held, 0, (size_t)all.columns * all.rows);
    if (!tsr_container_is_searched(s->container)) TSR_TRY(try_part(s, frame, &all, &is_held));
    if (is_held)
        tell(s, frame, &all, true);
    else
        TSR_TRY(take_units(s, frame));
    return TSR_OK;
}

/* The values that samples stand for. */
static const uint8_t *values_of(struct salvage *s)
{
    const struct tsr_values *const values = &s->header->values;
    const size_t pixels = (size_t)s->image.columns * s->image.rows;
    if (!s->values) return s->raster;
    tsr_values_join(values, &s->header->image, s->raster,
                    values->form == TSR_VALUES_ORDERED && values->bits == 64 ? pixels : pixels * s->image.components,
                    s->values);
    return s->values;
}

/* The frames up to the last one of which something can be there. */
static uint32_t count_frames(const struct salvage *s)
{
    uint32_t frames = s->image.frames;
    while (frames > 0 && !tsr_container_may_have_frame(s->container, frames - 1)) frames--;
    return frames;
}

static enum tsr_status take_room(struct salvage *s, struct tsr_account *account)
{
    const struct tsr_image *const image = &s->header->image;
    const size_t raster = tsr_raster_bytes(image) + 1, pixels = (size_t)image->columns * image->rows,
                 values = tsr_has_values(s->header) ? tsr_raster_bytes(&s->image) + 1 : 0;
    /* A unit that is the whole frame takes its raster once more, and its sections and work space about as much. */
    TSR_TRY(tsr_account_claim(account, tsr_container_memory(s->container) + 5 * (uint64_t)raster + 3 * pixels + values,
                              false, s->call->error));
    s->sample_bits = (image->planar ? 1u : image->components) * (size_t)image->bits_allocated;
    s->raster = malloc(raster);
    s->part = malloc(raster);
    s->held = malloc(pixels);
    if (values > 0) s->values = malloc(values);
    if (s->raster && s->part && s->held && (s->values || values == 0)) return TSR_OK;
    return tsr_fail(s->call->error, TSR_ERROR_LIMIT, "no memory for a frame of %zu bytes", raster);
}

static enum tsr_status put_frames(struct salvage *s, struct tsr_picture_file *picture, struct tsr_picture_file *mask)
{
    for (uint32_t f = 0; f < s->found->frames; f++) {
        TSR_TRY(take_frame(s, f));
        TSR_TRY(tsr_picture_put(picture, values_of(s), s->held, s->call->error));
        TSR_TRY(tsr_picture_put(mask, s->held, NULL, s->call->error));
    }
    const struct tsr_region all = {0, 0, s->image.columns, s->image.rows};
    for (uint32_t f = s->found->frames; f < s->image.frames && f - s->found->frames < TSR_SALVAGE_LOST_FRAMES; f++)
        tell(s, f, &all, false);
    return TSR_OK;
}

/* Removes a file, of a symbolic link what it leads to: that is what is written anew. */
static void remove_old(const char *path)
{
    char *const real = realpath(path, NULL);
    if (real) unlink(real);
    free(real);
}

/* Writes both files, and gives them their names if anything is held. */
static enum tsr_status write_files(struct salvage *s, const struct tsr_input *input)
{
    const struct tsr_call *const call = s->call;
    struct tsr_error *const error = call->error;
    struct tsr_picture_file picture = {.output = NULL}, mask = {.output = NULL};
    const struct tsr_image of_mask = {.columns = s->image.columns,
                                      .rows = s->image.rows,
                                      .frames = 1,
                                      .components = 1,
                                      .bits_allocated = 8,
                                      .bits_stored = 8,
                                      .high_bit = 7};
    struct tsr_report of_the_mask;
    const uint32_t frames = s->found->frames;
    tsr_clear_report(&of_the_mask);
    enum tsr_status status = tsr_picture_begin(&picture, &s->image, frames, s->sinks.picture, call->sink, input, error);
    if (status == TSR_OK)
        status = tsr_picture_begin(&mask, &of_mask, frames, TSR_PICTURE_PNM, s->sinks.mask, input, error);
    if (status == TSR_OK) status = put_frames(s, &picture, &mask);
    if (status == TSR_OK && s->found->samples_held == 0)
        status = tsr_fail(error, TSR_ERROR_CORRUPT, "%s is damaged so that no sample of it can be saved",
                          tsr_input_name(input));
    if (status == TSR_OK) status = tsr_picture_end(&picture, call->engine, call->report, error);
    if (status == TSR_OK) status = tsr_picture_end(&mask, call->engine, &of_the_mask, error);
    /* An old mask goes first: no picture ever stands beside the mask of another one. */
    if (status == TSR_OK && s->sinks.mask->medium == TSR_MEDIUM_PATH && s->sinks.mask->overwrite)
        remove_old(s->sinks.mask->path);
    if (status == TSR_OK) status = tsr_deliver_file(call->sink, picture.output, call->report, error);
    if (status == TSR_OK) status = tsr_deliver_file(s->sinks.mask, mask.output, &of_the_mask, error);
    tsr_picture_close(&picture);
    tsr_picture_close(&mask);
    return status;
}

static enum tsr_status salvage_chosen(const struct tsr_call *call, struct tsr_container_reader *container,
                                      const struct tsr_input *input, struct tsr_account *account)
{
    struct tsr_error *const error = call->error;
    struct salvage s = {.call = call, .container = container, .header = tsr_container_header(container)};
    const struct tsr_salvage_sinks *const sinks = call->options;
    if (!tsr_has_frames(s.header))
        return tsr_fail(error, TSR_ERROR_USAGE,
                        "%s has no image that is coded (%s), and nothing of it can be saved but the whole: take its "
                        "second copy",
                        tsr_input_name(input), tsr_reason_of(s.header));
    s.sinks = *sinks;
    s.found = call->out;
    s.image = tsr_original_image(s.header);
    s.found->image = s.image;
    s.found->lossy = s.header->coding.lossy;
    s.found->is_searched = tsr_container_is_searched(container);
    s.found->samples = tsr_all_samples(&s.image);
    s.found->frames = count_frames(&s);
    call->report->kind = s.header->kind;
    call->report->bytes_in = tsr_input_size(input);
    if (s.found->frames == 0)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "%s is damaged so that no sample of it can be saved",
                        tsr_input_name(input));
    enum tsr_status status = take_room(&s, account);
    if (status == TSR_OK) status = write_files(&s, input);
    free(s.raster);
    free(s.part);
    free(s.held);
    free(s.values);
    return status;
}

static enum tsr_status salvage(const struct tsr_call *call)
{
    struct tsr_input *input = NULL;
    struct tsr_container_reader *container = NULL;
    struct tsr_account account;
    enum tsr_status status = tsr_open_damaged_source(call->source, &input, call->error);
    tsr_account_open(&account, call->engine, input, NULL);
    if (status == TSR_OK) status = tsr_container_open_damaged(input, &container, call->error);
    if (status == TSR_OK && tsr_container_is_series(container))
        status = tsr_container_choose(container, call->member, call->error);
    if (status == TSR_OK) status = salvage_chosen(call, container, input, &account);
    tsr_container_close(container);
    return tsr_account_end(&account, input, status, call->error);
}

enum tsr_status tsr_salvage(struct tsr_engine *engine, const struct tsr_data_source *source, uint32_t member,
                            const struct tsr_data_sink *sink, const struct tsr_salvage_sinks *sinks,
                            struct tsr_salvaged *found, struct tsr_error *error)
{
    struct tsr_error ignored;
    struct tsr_report report;
    if (!error) error = &ignored;
    TSR_TRY(tsr_check_pointer(engine, "engine", error));
    TSR_TRY(tsr_check_source(source, error));
    TSR_TRY(tsr_check_sink(sink, error));
    TSR_TRY(tsr_check_apart(source, sink, error));
    TSR_TRY(tsr_check_sized(sinks, sizeof *sinks, "sinks", error));
    TSR_TRY(tsr_check_sink(sinks->mask, error));
    TSR_TRY(tsr_check_apart(source, sinks->mask, error));
    TSR_TRY(tsr_check_picture(sinks->picture, error));
    TSR_TRY(tsr_check_sized(found, sizeof *found, "found", error));
    *found = (struct tsr_salvaged){.size = sizeof *found};
    tsr_clear_report(&report);
    const struct tsr_call call = {.run = salvage,
                                  .engine = engine,
                                  .source = source,
                                  .sink = sink,
                                  .options = sinks,
                                  .member = member,
                                  .out = found,
                                  .report = &report,
                                  .error = error};
    const enum tsr_status status = tsr_run_call(&call);
    found->bytes = report.bytes_out;
    return status;
}
