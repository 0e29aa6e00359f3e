/* Decoding: container, engine, frames, restored file. encode.c mirrors it. */
#include <stdlib.h>
#include <string.h>

#include "budget.h"
#include "files.h"
#include "flow.h"
#include "reader.h"
#include "io/recipe/recipe.h"
#include "io/nodes/planes/planes.h"
#include "kernels/kept/kept_frames.h"
#include "io/formats/dicom/dicom_export.h"

/* A batch at work. */
struct decoding {
    struct tsr_engine *engine;
    struct tsr_container_reader *reader;
    const struct tsr_header *header;
    struct tsr_image coded;        /* what frames code: header->image, or patches of it */
    struct tsr_maker *maker;       /* takes the frames; or */
    struct tsr_exporter *exporter; /* takes all, and makes another file of it; else NULL */
    uint64_t cursor[TSR_BLOB_COUNT];
    uint32_t batch;
    struct tsr_decode_job *jobs;
    uint32_t *place;                    /* of the jobs' frames in the batch */
    const char *engine_name, *fallback; /* as in struct tsr_decoded */
    double read_s, write_s;
    uint8_t *rasters;
    /* Of the batch's frames: their sections, and their tiles. Grown as needed. */
    uint8_t *sections;
    struct tsr_piece *pieces;
    struct tsr_segment *tiles;
    size_t sections_capacity, tiles_capacity;
    void *workspace;
    size_t workspace_bytes, most_space; /* most_space: that may be had for several frames */
    struct tsr_hasher frames;
    struct tsr_parts_hash parts; /* of what is restored, where that is not the original */
    struct tsr_hasher spliced;   /* what such a file must be, hashed beside the evaluator: FORMAT.md 4.1, 4.7 */
    struct tsr_hasher frame;     /* of the frame that is taken */
    size_t taken;                /* its bytes so far */
    enum tsr_status take_status; /* of restoring them */
    struct tsr_error *error;
    struct tsr_units *units;      /* of frames that are units */
    struct tsr_base_frames *base; /* NULL: there is none */
    struct tsr_links *links;      /* NULL: frames are not linked; else the rasters are in it */
    /* Of linked frames: jobs that are decoded together, those of each number of links after those of fewer. */
    uint32_t wave[TSR_LINKS_LIMIT + 1];
    bool leaves_pixels; /* as in struct tsr_making */
};

/* The proof of files that are not the original, lossy or of samples alone, is of their parts; that the file is these
 * parts shows in putting them together twice. */
static bool puts_together_twice(const struct decoding *d)
{
    return (tsr_is_spliced(d->header) || tsr_has_planes(d->header)) && !d->header->exact && !d->exporter;
}

static void add_bytes(void *hasher, const uint8_t *bytes, size_t size)
{
    tsr_hasher_add(hasher, bytes, size);
}

/* A frame as the file has it. */
static void add_spliced(struct decoding *d, const uint8_t *raster)
{
    const struct tsr_header *const header = d->header;
    const bool has_planes = tsr_has_planes(header) && header->parameter_count > 0;
    if (has_planes) tsr_hasher_add(&d->spliced, header->parameters + 1, header->parameter_count - 1);
    tsr_planes_each(&header->image, has_planes ? header->parameters[0] : TSR_PLANES_PLAIN, raster, add_bytes,
                    &d->spliced);
}

/* The next bytes of a blob. */
static enum tsr_status read_blob(void *context, enum tsr_blob blob, const uint8_t **bytes, size_t *size,
                                 struct tsr_error *error)
{
    struct decoding *const d = context;
    TSR_TRY(tsr_container_get_blob(d->reader, blob, &d->cursor[blob], bytes, size, error));
    if (*size > 0 && !d->header->exact) tsr_parts_add_blob(&d->parts, blob, *bytes, *size);
    if (*size > 0 && puts_together_twice(d)) tsr_hasher_add(&d->spliced, *bytes, *size);
    return TSR_OK;
}

static enum tsr_status restore_file(void *context, const uint8_t *tsr, size_t size, struct tsr_bytes *plain,
                                    struct tsr_error *error)
{
    struct decoding *const d = context;
    return tsr_restore_inner(d->engine, tsr_container_input(d->reader), tsr, size, plain, error);
}

/* Grows a buffer whose content is not needed any more. */
static void *renew(void *buffer, size_t size)
{
    free(buffer);
    return malloc(size);
}

enum tsr_status tsr_check_frame_sections(const struct tsr_container_reader *reader, uint32_t frame,
                                         struct tsr_error *error)
{
    const struct tsr_header *const header = tsr_container_header(reader);
    const struct tsr_image coded = tsr_coded_image(header), *const image = &coded;
    const struct tsr_kept_ranges *const kept = tsr_kept_of(header, &header->coding);
    const size_t bytes = tsr_container_frame_bytes(reader, frame), tiles = tsr_container_frame_tiles(reader, frame);
    /* A tile has a sample at least; its section's head and check take less than 64 bytes. Between sections that were
     * searched for there may be others, or holes. */
    const bool fits = tsr_container_is_searched(reader) || bytes <= tsr_frame_bound(image, kept) + 64 * (tiles + 1);
    if (fits && tiles <= (uint64_t)image->columns * image->rows) return TSR_OK;
    return tsr_fail(error, TSR_ERROR_CORRUPT, "frame %u has %zu bytes in %zu tiles, more than its samples can need",
                    frame, bytes, tiles);
}

/* Reads a batch's frames and prepares their jobs. */
static enum tsr_status read_batch(struct decoding *d, uint32_t first, uint32_t count, struct tsr_error *error)
{
    const struct tsr_image *const image = &d->coded;
    size_t bytes = 0, tiles = 0;
    for (uint32_t i = 0; i < count; i++) {
        TSR_TRY(tsr_check_frame_sections(d->reader, first + i, error));
        bytes += tsr_container_frame_bytes(d->reader, first + i);
        tiles += tsr_container_frame_tiles(d->reader, first + i);
    }
    if (bytes > d->sections_capacity) {
        d->engine->ops->give_workspace(d->engine, d->sections);
        d->sections = d->engine->ops->take_workspace(d->engine, bytes);
        d->sections_capacity = d->sections ? bytes : 0;
    }
    if (tiles > d->tiles_capacity || !d->tiles) { /* frames may have no tiles at all, in damaged files */
        d->pieces = renew(d->pieces, (tiles + 1) * sizeof *d->pieces);
        d->tiles = renew(d->tiles, (tiles + 1) * sizeof *d->tiles);
        d->tiles_capacity = d->pieces && d->tiles ? tiles : 0;
    }
    if (bytes > d->sections_capacity || tiles > d->tiles_capacity)
        return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu bytes of payload", bytes);

    uint8_t *sections = d->sections;
    size_t tile = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t place = d->place[i], frame = first + place;
        struct tsr_decode_job *job = &d->jobs[i];
        struct tsr_piece model;
        memset(job, 0, sizeof *job);
        TSR_TRY(tsr_container_get_frame(d->reader, frame, sections, &model, d->pieces + tile, error));
        job->model = (struct tsr_segment){model.bytes, model.size};
        job->tile = d->tiles + tile;
        job->tiles = tsr_container_frame_tiles(d->reader, frame);
        job->raster = d->rasters + place * tsr_raster_bytes(image);
        if (d->links) job->base = tsr_link(d->links, place, i >= d->wave[0]);
        if (d->base)
            TSR_TRY(tsr_base_frame(d->base, tsr_container_frame_number(d->reader, frame), i, &job->base, error));
        for (uint32_t t = 0; t < job->tiles; t++, tile++)
            d->tiles[tile] = (struct tsr_segment){d->pieces[tile].bytes, d->pieces[tile].size};
        sections += tsr_container_frame_bytes(d->reader, frame);
    }
    return TSR_OK;
}

/* The sections' checksums hold, so a payload that does not decode was never one. */
enum tsr_status tsr_blame_frame(const struct tsr_decode_job *job, uint32_t frame, struct tsr_error *error)
{
    if (job->status == TSR_OK) return tsr_fail(error, TSR_ERROR_INTERNAL, "the engine fails on frame %u", frame);
    if (job->bad_tile == TSR_BAD_MODEL)
        return tsr_fail(error, job->status, "frame %u has a model that describes no such frame", frame);
    return tsr_fail(error, job->status, "tile %u of frame %u does not decode", job->bad_tile, frame);
}

/* Of count jobs from this one on. */
static enum tsr_status blame(const struct decoding *d, uint32_t first, uint32_t from, uint32_t count,
                             struct tsr_error *error)
{
    uint32_t bad = from;
    while (bad + 1 < from + count && d->jobs[bad].status == TSR_OK) bad++;
    return tsr_blame_frame(&d->jobs[bad], first + d->place[bad], error);
}

/* Takes the next bytes of a frame, of which later ones may still be decoded. */
static void take(void *context, const uint8_t *bytes, size_t size)
{
    struct decoding *const d = context;
    if (d->take_status != TSR_OK) return;
    tsr_hasher_add(&d->frame, bytes, size);
    if (puts_together_twice(d)) tsr_hasher_add(&d->spliced, bytes, size);
    const double start = tsr_seconds();
    d->take_status = tsr_put_part(d->maker, bytes, size, d->error);
    d->write_s += tsr_seconds() - start;
    d->taken += size;
}

/* A large frame that is alone is taken while it is decoded. */
static bool takes_pieces(struct decoding *d, uint32_t count, struct tsr_error *error)
{
    enum { LEAST_BYTES = 1 << 20 };
    if (count > 1 || d->engine != d->engine->cpu || tsr_raster_bytes(&d->header->image) < LEAST_BYTES || d->exporter ||
        d->header->patches.count > 0 || !tsr_puts_parts(d->maker))
        return false;
    tsr_hasher_init(&d->frame);
    d->taken = 0;
    d->error = error;
    d->jobs[0].take = take;
    d->jobs[0].taker = d;
    return true;
}

static enum tsr_status take_rest(struct decoding *d)
{
    const size_t whole = tsr_raster_bytes(&d->header->image);
    if (d->taken < whole) take(d, d->jobs[0].raster + d->taken, whole - d->taken);
    const struct tsr_hash128 hash = tsr_hasher_result128(&d->frame);
    tsr_hasher_add(&d->frames, hash.bytes, sizeof hash.bytes);
    return d->take_status;
}

/* What decoding has taken, but for rasters. */
static void free_space(struct decoding *d)
{
    d->engine->ops->give_workspace(d->engine, d->sections);
    d->engine->ops->give_workspace(d->engine, d->workspace);
    free(d->pieces);
    free(d->tiles);
    d->sections = d->workspace = NULL;
    d->pieces = NULL;
    d->tiles = NULL;
    d->sections_capacity = d->tiles_capacity = d->workspace_bytes = 0;
}

static void free_frames(struct decoding *d)
{
    tsr_units_give(d->units);
    d->units = NULL;
    tsr_base_close(d->base);
    d->base = NULL;
    free_space(d);
    free(d->jobs);
    free(d->place);
    if (!d->links) d->engine->ops->give_workspace(d->engine, d->rasters);
    tsr_links_give(d->links);
    d->links = NULL;
    d->jobs = NULL;
    d->place = NULL;
    d->rasters = NULL;
}

/* Decodes frames of the batch. Those whose models ask for more at once than was claimed are decoded in parts. */
static enum tsr_status decode_some(struct decoding *d, uint32_t first, uint32_t from, uint32_t count,
                                   struct tsr_error *error)
{
    const struct tsr_image *const image = &d->coded;
    const struct tsr_kept_ranges *const kept = tsr_kept_of(d->header, &d->header->coding);
    struct tsr_decode_job *const jobs = d->jobs + from;
    const size_t space = tsr_kept_decode_workspace(d->engine, image, kept, jobs, count);
    if (space == 0) return tsr_fail(error, TSR_ERROR_CORRUPT, "frame %u or a later one has no model", first + from);
    if (count > 1 && space > d->most_space) {
        TSR_TRY(decode_some(d, first, from, count / 2, error));
        return decode_some(d, first, from + count / 2, count - count / 2, error);
    }
    if (space > d->workspace_bytes) {
        d->engine->ops->give_workspace(d->engine, d->workspace);
        d->workspace = d->engine->ops->take_workspace(d->engine, space);
        d->workspace_bytes = d->workspace ? space : 0;
        if (!d->workspace) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu bytes of work space", space);
    }
    return tsr_kept_decode(d->engine, image, kept, jobs, count, d->workspace) == TSR_OK
               ? TSR_OK
               : blame(d, first, from, count, error);
}

/* ---- Linked frames (BASE.md 5) ------------------------------------------------------------------------------ */

static int by_place(const void *a, const void *b)
{
    const uint32_t *const one = a, *const other = b;
    return (*one > *other) - (*one < *other);
}

/* Sorts the frames of a batch by their links. It ends before the next frame that is equal to an earlier one. */
static enum tsr_status sort_batch(struct decoding *d, uint32_t first, uint32_t *count, struct tsr_error *error)
{
    memset(d->wave, 0, sizeof d->wave);
    for (uint32_t i = 0; i < *count; i++) {
        uint32_t links;
        if (tsr_container_frame_number(d->reader, first + i) != first + i) {
            *count = i;
            break;
        }
        TSR_TRY(tsr_count_links(d->reader, first + i, &links, error));
        d->wave[links]++;
        d->place[i] = links * d->batch + i;
    }
    qsort(d->place, *count, sizeof *d->place, by_place);
    for (uint32_t i = 0; i < *count; i++) d->place[i] %= d->batch;
    return TSR_OK;
}

/* Frames of a batch: those that refer to none, then those that refer to these, and so on. */
static enum tsr_status decode_linked(struct decoding *d, uint32_t first, uint32_t *count, struct tsr_error *error)
{
    const double start = tsr_seconds();
    const uint32_t number = tsr_container_frame_number(d->reader, first);
    if (number != first) {
        *count = 1;
        d->jobs[0] = (struct tsr_decode_job){.raster = d->rasters, .engine = d->engine->ops->name};
        if (tsr_container_frame_number(d->reader, first - 1) == number) { /* as the frame before */
            memcpy(d->rasters, tsr_link(d->links, 0, true).raster, tsr_raster_bytes(&d->coded));
            return TSR_OK;
        }
        free_space(d);
        return tsr_decode_frame_of(d->engine, d->reader, first, d->rasters, error);
    }
    TSR_TRY(sort_batch(d, first, count, error));
    TSR_TRY(read_batch(d, first, *count, error));
    d->read_s += tsr_seconds() - start;
    for (uint32_t w = 0, from = 0; w <= TSR_LINKS_LIMIT; from += d->wave[w++])
        if (d->wave[w] > 0) TSR_TRY(decode_some(d, first, from, d->wave[w], error));
    return TSR_OK;
}

static enum tsr_status put_frame(struct decoding *d, const uint8_t *raster, struct tsr_error *error)
{
    if (d->exporter) return tsr_exporter_put_frame(d->exporter, raster, error);
    return tsr_put_frame(d->maker, raster, error);
}

/* *by_pieces: the only frame was taken meanwhile, but for its rest. */
static enum tsr_status decode_alone(struct decoding *d, uint32_t first, uint32_t count, bool *by_pieces,
                                    struct tsr_error *error)
{
    const double start = tsr_seconds();
    TSR_TRY(read_batch(d, first, count, error));
    d->read_s += tsr_seconds() - start;
    *by_pieces = takes_pieces(d, count, error);
    return decode_some(d, first, 0, count, error);
}

/* *count becomes how many frames were decoded. */
static enum tsr_status decode_batch(struct decoding *d, uint32_t first, uint32_t *count, struct tsr_error *error)
{
    const struct tsr_image *image = &d->header->image;
    bool by_pieces = false;
    TSR_TRY(d->links ? decode_linked(d, first, count, error) : decode_alone(d, first, *count, &by_pieces, error));
    if (image->frames == 1) free_space(d); /* what restoring a single frame takes may be as much */
    for (uint32_t i = 0; i < *count; i++) {
        const struct tsr_decode_job *job = &d->jobs[i];
        uint8_t *const own = d->rasters + i * tsr_raster_bytes(&d->coded), *const raster =
                                                                               d->base
                                                                                   ? tsr_base_complete(d->base, i, own)
                                                                                   : own;
        d->engine_name = !d->engine_name || d->engine_name == job->engine ? job->engine : "mixed";
        if (job->fallback) d->fallback = job->fallback;
        if (by_pieces) return take_rest(d);
        tsr_add_frame_hash(&d->frames, image, raster);
        if (puts_together_twice(d)) add_spliced(d, raster);
        const double restoring = tsr_seconds();
        TSR_TRY(put_frame(d, raster, error));
        d->write_s += tsr_seconds() - restoring;
    }
    tsr_keep_linked(d->links, first + *count - 1, *count);
    return TSR_OK;
}

/* ---- All frames --------------------------------------------------------------------------------------------- */

/* Frames from this one on that are alike, units or not, at most so many. */
static uint32_t frames_in_turn(const struct decoding *d, uint32_t first, uint32_t most)
{
    const uint32_t left = d->header->image.frames - first;
    const bool is_unit = tsr_container_is_unit(d->reader, first);
    if (most > left) most = left;
    for (uint32_t i = 1; i < most && tsr_container_units(d->reader) > 0; i++)
        if (tsr_container_is_unit(d->reader, first + i) != is_unit) return i;
    return most;
}

/* Puts frames from this one on, which are units. *count: how many were put. */
static enum tsr_status put_units(struct decoding *d, uint32_t first, uint32_t *count, struct tsr_error *error)
{
    *count = frames_in_turn(d, first, tsr_unit_lanes(d->units));
    TSR_TRY(tsr_open_units(d->units, d->reader, first, count, &d->read_s, error));
    const double start = tsr_seconds();
    for (uint32_t i = 0; i < *count; i++) {
        const struct tsr_bytes *const stream = tsr_made_unit(d->units, i);
        TSR_TRY(tsr_put_stream(d->maker, stream->bytes, stream->size, error));
    }
    d->write_s += tsr_seconds() - start;
    return TSR_OK;
}

static enum tsr_status allocate(struct decoding *d, struct tsr_error *error)
{
    const struct tsr_image *const image = &d->coded;
    if (!tsr_has_samples(d->header)) return TSR_OK;
    d->batch = tsr_decoding_batch(d->engine, d->reader, &d->most_space);
    d->jobs = calloc(d->batch, sizeof *d->jobs);
    d->place = calloc(d->batch, sizeof *d->place);
    for (uint32_t i = 0; d->place && i < d->batch; i++) d->place[i] = i;
    if (d->header->linked) d->links = tsr_links_take(d->engine, image, d->batch, 0);
    if (d->links) d->rasters = tsr_linked_rasters(d->links);
    if (!d->header->linked) d->rasters = d->engine->ops->take_rasters(d->engine, d->batch * tsr_raster_bytes(image));
    if (d->header->has_base) TSR_TRY(tsr_base_of(d->reader, NULL, error));
    if (d->header->has_base)
        TSR_TRY(tsr_base_open(d->engine, d->header, tsr_container_input(d->reader), tsr_container_base(d->reader),
                              d->batch, &d->base, error));
    if (d->jobs && d->place && d->rasters) return TSR_OK;
    return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %u frames of %zu bytes", d->batch, tsr_raster_bytes(image));
}

static enum tsr_status decode_frames(void *context, struct tsr_maker *maker, struct tsr_error *error)
{
    struct decoding *const d = context;
    const struct tsr_image *image = &d->header->image;
    d->maker = maker;
    if (tsr_container_units(d->reader) > 0)
        TSR_TRY(tsr_units_take(d->engine, d->header, tsr_container_input(d->reader), tsr_longest_unit(d->reader),
                               &d->units, error));
    TSR_TRY(allocate(d, error));
    for (uint32_t first = 0, count; first < image->frames; first += count) {
        if (tsr_container_is_unit(d->reader, first)) {
            TSR_TRY(put_units(d, first, &count, error));
        } else {
            count = frames_in_turn(d, first, d->links ? d->batch - first % d->batch : d->batch);
            TSR_TRY(decode_batch(d, first, &count, error));
        }
    }
    free_frames(d); /* a file that is one stream is made of what the maker holds */
    return TSR_OK;
}

static enum tsr_status check_spliced(const struct decoding *d, const struct tsr_output *output, struct tsr_error *error)
{
    if (!puts_together_twice(d)) return TSR_OK;
    const struct tsr_hash128 wanted = tsr_hasher_result128(&d->spliced), found = tsr_output_hash(output);
    return tsr_hash128_equal(&wanted, &found)
               ? TSR_OK
               : tsr_fail(error, TSR_ERROR_CORRUPT, "the restored file is not what was decoded");
}

/* Makes the file. residues: all, or NULL. */
static enum tsr_status make(struct decoding *d, struct tsr_bytes *residues, struct tsr_output *output,
                            struct tsr_error *error)
{
    const struct tsr_blob_sizes blobs = tsr_container_blobs(d->reader);
    struct tsr_input *const input = tsr_container_input(d->reader);
    tsr_input_begin_inner(input, tsr_output_limit_of(output), tsr_input_size(input));
    const struct tsr_making making = {.leaves = {read_blob, decode_frames, restore_file, d},
                                      .crew = tsr_crew_of(d->engine),
                                      .input = input,
                                      .blobs = blobs.bytes[TSR_BLOB_PREFIX] + blobs.bytes[TSR_BLOB_SUFFIX],
                                      .residues = residues,
                                      .leaves_pixels = d->leaves_pixels};
    return tsr_make(d->header, &making, output, error);
}

static enum tsr_status export_blob(struct decoding *d, enum tsr_blob blob, struct tsr_error *error)
{
    for (;;) {
        const uint8_t *bytes;
        size_t size;
        TSR_TRY(read_blob(d, blob, &bytes, &size, error));
        if (size == 0) return TSR_OK;
        TSR_TRY(tsr_exporter_put_blob(d->exporter, blob, bytes, size, error));
    }
}

static enum tsr_status export_all(struct decoding *d, struct tsr_error *error)
{
    TSR_TRY(export_blob(d, TSR_BLOB_PREFIX, error));
    if (tsr_has_frames(d->header)) TSR_TRY(decode_frames(d, NULL, error));
    TSR_TRY(export_blob(d, TSR_BLOB_SUFFIX, error));
    return tsr_exporter_end(d->exporter, error);
}

/* output: of the restored file; else exporter is not NULL. */
static enum tsr_status decode(struct tsr_engine *engine, struct tsr_container_reader *reader,
                              struct tsr_bytes *residues, struct tsr_output *output, bool leaves_pixels,
                              struct tsr_exporter *exporter, struct tsr_decoded *decoded, struct tsr_error *error)
{
    struct decoding d = {.engine = engine, .reader = reader, .exporter = exporter, .leaves_pixels = leaves_pixels};
    d.header = tsr_container_header(reader);
    d.coded = tsr_coded_image(d.header);
    if (d.header->has_base) d.engine = engine->cpu;
    tsr_hasher_init(&d.frames);
    tsr_hasher_init(&d.spliced);
    tsr_parts_begin(&d.parts);
    enum tsr_status status = TSR_ERROR_INTERNAL;
    if (exporter) status = export_all(&d, error);
    if (!exporter) status = make(&d, residues, output, error);
    if (status == TSR_OK) status = check_spliced(&d, output, error);
    if (status == TSR_OK) status = tsr_container_check_id(reader, error);
    *decoded =
        (struct tsr_decoded){.engine = d.engine_name, .fallback = d.fallback, .read_s = d.read_s, .write_s = d.write_s};
    decoded->found.samples = tsr_hasher_result128(&d.frames);
    if (!d.header->exact)
        tsr_parts_end(&d.parts, d.header, &decoded->found.samples, tsr_all_rasters(&d.header->image), &decoded->found);
    free_frames(&d);
    return status;
}

enum tsr_status tsr_decode(struct tsr_engine *engine, struct tsr_container_reader *reader, struct tsr_bytes *residues,
                           struct tsr_output *output, bool leaves_pixels, struct tsr_decoded *decoded,
                           struct tsr_error *error)
{
    return decode(engine, reader, residues, output, leaves_pixels, NULL, decoded, error);
}

enum tsr_status tsr_decode_to_exporter(struct tsr_engine *engine, struct tsr_container_reader *reader,
                                       struct tsr_exporter *exporter, struct tsr_decoded *decoded,
                                       struct tsr_error *error)
{
    return decode(engine, reader, NULL, NULL, false, exporter, decoded, error);
}

enum tsr_status tsr_check_proof(const struct tsr_header *header, const struct tsr_proof *proof,
                                const struct tsr_output *restored, const struct tsr_decoded *decoded, bool *identical,
                                struct tsr_error *error)
{
    const struct tsr_hash128 hash = tsr_output_hash(restored);
    const struct tsr_proof *const found = &decoded->found;
    *identical = tsr_output_size(restored) == proof->original_size && tsr_hash128_equal(&hash, &proof->original);
    if (proof->has_samples && !tsr_hash128_equal(&found->samples, &proof->samples))
        return tsr_fail(error, TSR_ERROR_CORRUPT,
                        "the decoded samples are not those that were encoded: their hash differs");
    if (header->exact && !*identical)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "the restored file is not the original: its hash differs");
    if (!header->exact &&
        (found->restored_size != proof->restored_size || !tsr_hash128_equal(&found->restored, &proof->restored)))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "what is restored is not what was written: its hash differs");
    return TSR_OK;
}
