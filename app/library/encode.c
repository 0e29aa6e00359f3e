/* Encoding: source, frames, engine, container. decode.c mirrors it. */
#include <stdlib.h>
#include <string.h>

#include "budget.h"
#include "flow.h"
#include "loss/measure.h"
#include "loss/range.h"
#include "io/formats/values.h"
#include "kernels/kept/kept_frames.h"
#include "kernels/pool/thread_pool.h"

static struct tsr_hash128 frame_hash(const struct tsr_image *image, const uint8_t *raster)
{
    return tsr_hash128_of(raster, tsr_raster_bytes(image));
}

void tsr_add_frame_hash(struct tsr_hasher *frames, const struct tsr_image *image, const uint8_t *raster)
{
    const struct tsr_hash128 hash = frame_hash(image, raster);
    tsr_hasher_add(frames, hash.bytes, sizeof hash.bytes);
}

/* A batch at work. */
struct encoding {
    struct tsr_engine *engine;
    struct tsr_source *source;
    struct tsr_container_writer *writer;
    uint32_t batch;
    struct tsr_encode_job *jobs;
    uint32_t *numbers;          /* of the jobs' frames */
    struct tsr_hash128 *hashes; /* of the batch's rasters */
    bool hashes_later;          /* while the batch is coded */
    bool is_trial;              /* only to see what the frames take */
    uint8_t *rasters;           /* NULL: the source holds all, from here on: */
    bool in_place;              /* the raster stands in the work space, and is used up */
    const uint8_t *held;
    uint8_t *decoded; /* of lossy codings, what the frames have become */
    void *workspace;
    uint32_t stack;        /* frames that may share a model; 0: none may */
    void *stack_workspace; /* for as many */
    struct tsr_hasher frames;
    struct tsr_parts_hash parts; /* of what is restored, where that is not the original */
    uint32_t frames_done;
    struct tsr_measured measured;
    struct tsr_difference difference;
    struct tsr_value_range range; /* of what lossy frames have become, if the source wants it */
    struct tsr_encoded encoded;
    /* Of a frame whose tiles are written while it is coded. */
    uint32_t tiles_taken;
    enum tsr_status take_status;
    struct tsr_error *take_error;
    struct tsr_base_frames *base; /* NULL: there is none */
    struct tsr_links *links;      /* NULL: frames are not linked; else the rasters are in it */
    struct tsr_image coded;       /* what frames code: the image, or patches of it, which are: */
    uint8_t *patches;             /* of the batch's rasters; else NULL */
    const uint8_t **originals;    /* these rasters */
    struct tsr_units *units;      /* of frames that are units */
    struct tsr_repeats *repeats;  /* NULL: no frame is looked for among earlier ones */
};

/* Puts a long blob. Of a file without frames as many chunks are compressed at once as there are threads, and as memory
 * is spare for. */
static enum tsr_status put_long_blob(struct encoding *e, enum tsr_blob blob, uint64_t size,
                                     struct tsr_blob_source source, struct tsr_error *error)
{
    const unsigned threads = (unsigned)tsr_pool_threads(e->engine->pool), most = tsr_has_frames(&e->source->header) ? 1
                                                                                 : threads < TSR_BLOB_LANES
                                                                                     ? threads
                                                                                     : TSR_BLOB_LANES;
    const struct tsr_header *const header = &e->source->header;
    const bool is_rows = tsr_has_rows(header);
    const uint64_t chunks = size / TSR_BLOB_CHUNK,
                   lane = tsr_chunk_memory(is_rows, TSR_BLOB_CHUNK) + 2 * TSR_BLOB_CHUNK;
    unsigned lanes = 1;
    while (lanes < most && lanes < chunks && tsr_input_take_spare(e->source->input, lane)) lanes++;
    const enum tsr_status status =
        tsr_container_put_long_blob(e->writer, blob, size, source, lanes, tsr_crew_of(e->engine), error);
    if (lanes > 1) tsr_input_return_spare(e->source->input, (lanes - 1) * lane);
    return status;
}

/* A blob that is read and hashed. */
struct read_blob {
    struct encoding *encoding;
    enum tsr_blob blob;
    uint64_t start; /* where it begins */
};

static enum tsr_status read_blob(void *context, uint64_t offset, void *buffer, size_t size, struct tsr_error *error)
{
    const struct read_blob *const r = context;
    struct tsr_source *const source = r->encoding->source;
    TSR_TRY(tsr_source_read_blob(source, r->blob, r->start + offset, buffer, size, error));
    if (!source->header.exact) tsr_parts_add_blob(&r->encoding->parts, r->blob, buffer, size);
    return TSR_OK;
}

/* The prefix of a source that is made while it is written: whole chunks of what is there, and in the end the rest. */
static enum tsr_status copy_growing(struct encoding *e, struct tsr_error *error)
{
    struct tsr_source *const source = e->source;
    struct read_blob r = {e, TSR_BLOB_PREFIX, 0};
    for (bool is_last = false; !is_last;) {
        TSR_TRY(source->ops->extend(source, &is_last, error));
        const uint64_t there = source->blob_size[TSR_BLOB_PREFIX] - r.start,
                       size = is_last ? there : there - there % TSR_BLOB_CHUNK;
        if (size > 0) TSR_TRY(put_long_blob(e, TSR_BLOB_PREFIX, size, (struct tsr_blob_source){read_blob, &r}, error));
        r.start += size;
        tsr_source_forget(source, TSR_BLOB_PREFIX, r.start);
    }
    tsr_container_know_pieces(e->writer, &source->header);
    if (tsr_container_written(e->writer) < tsr_input_size(source->input)) return TSR_OK;
    return tsr_fail(error, TSR_DECLINED, "coded, it would be larger");
}

/* Whether the files in the file have no more bytes together than readers take. */
static enum tsr_status check_inner(const struct encoding *e, struct tsr_error *error)
{
    const uint64_t most = tsr_inner_most(tsr_input_size(e->source->input), tsr_container_written(e->writer));
    if (!tsr_has_inner(&e->source->header) || tsr_input_inner_bytes(e->source->input) <= most) return TSR_OK;
    return tsr_fail(error, TSR_DECLINED, "the files in it have too many bytes");
}

static enum tsr_status copy_blob(struct encoding *e, enum tsr_blob blob, struct tsr_error *error)
{
    const uint64_t size = e->source->blob_size[blob];
    struct read_blob r = {e, blob, 0};
    if (blob == TSR_BLOB_PREFIX && e->source->ops && e->source->ops->extend) return copy_growing(e, error);
    if (size == 0) return TSR_OK;
    if (size > TSR_BLOB_CHUNK) return put_long_blob(e, blob, size, (struct tsr_blob_source){read_blob, &r}, error);
    uint8_t *const bytes = malloc((size_t)size);
    if (!bytes) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu bytes of metadata", (size_t)size);
    enum tsr_status status = read_blob(&r, 0, bytes, (size_t)size, error);
    if (status == TSR_OK) status = tsr_container_put_blob(e->writer, blob, bytes, (size_t)size, error);
    free(bytes);
    return status;
}

/* Writes a tile of a frame of which later tiles are still coded. */
static void take_tile(void *context, const struct tsr_coded_frame *coded, uint32_t tile)
{
    struct encoding *const e = context;
    if (e->take_status != TSR_OK) return;
    const double start = tsr_seconds();
    e->take_status = tsr_put_tile(e->writer, coded, tile, 0, e->take_error);
    e->encoded.write_s += tsr_seconds() - start;
    e->tiles_taken = tile + 1;
}

/* Writes a coded frame, but for the tiles that were taken. */
static enum tsr_status put_rest(struct encoding *e, const struct tsr_coded_frame *coded, uint32_t distance,
                                struct tsr_error *error)
{
    const uint32_t taken = e->tiles_taken;
    e->tiles_taken = 0;
    if (taken == 0) return tsr_put_coded(e->writer, coded, distance, error);
    TSR_TRY(e->take_status);
    for (uint32_t t = taken; t < coded->tiles; t++) TSR_TRY(tsr_put_tile(e->writer, coded, t, distance, error));
    return TSR_OK;
}

/* Whether coding is worth its time: what was written is not much more than what it stands for. */
static enum tsr_status check_excess(const struct encoding *e, struct tsr_error *error)
{
    const uint64_t *const blob = e->source->blob_size;
    const uint64_t pixels = tsr_frame_bits(&e->source->header.image) / 8 * e->frames_done,
                   all = tsr_input_size(e->source->input), blobs = blob[TSR_BLOB_PREFIX] + blob[TSR_BLOB_RESIDUES],
                   most = pixels < all ? pixels + blobs : all + blobs;
    if (!e->encoded.stops_if_longer || tsr_container_written(e->writer) <= most + TSR_EXCESS_BYTES) return TSR_OK;
    return tsr_fail(error, TSR_DECLINED, "%s", tsr_smaller_stored);
}

static enum tsr_status give_way(struct encoding *e, struct tsr_error *error)
{
    e->encoded.gives_way = true;
    return tsr_fail(error, TSR_DECLINED, "%s is not coded with loss, which saves too little",
                    tsr_input_name(e->source->input));
}

/* What a frame would take without loss. After the last one it may be clear that the file gives way: before that frame
 * is decoded, and before headers are compressed. */
static enum tsr_status add_estimate(struct encoding *e, const struct tsr_encode_job *job, struct tsr_error *error)
{
    const struct tsr_image *const image = &e->source->header.image;
    TSR_TRY(tsr_estimate_lossless(e->engine, image, &e->source->header.coding, job, &e->encoded.estimate, error));
    const bool is_last = e->frames_done + 1 == image->frames;
    return is_last && tsr_saves_little(e->source, &e->encoded.estimate) ? give_way(e, error) : TSR_OK;
}

/* distance: to the frame whose model it has, if it has none of its own. */
static enum tsr_status put_frame(struct encoding *e, const struct tsr_encode_job *job, uint32_t distance,
                                 struct tsr_error *error)
{
    const struct tsr_image *image = &e->source->header.image;
    if (e->encoded.estimates) TSR_TRY(add_estimate(e, job, error));
    if (e->source->header.coding.lossy) {
        struct tsr_difference measured;
        const uint32_t i = (uint32_t)(job - e->jobs);
        const uint8_t *const original = e->patches ? e->originals[i] : job->raster, *decoded = e->decoded;
        tsr_measure_frame(&e->source->windows, e->frames_done, &e->measured);
        if (e->patches) {
            decoded = tsr_base_complete(e->base, i, e->patches + i * tsr_raster_bytes(&e->coded));
            tsr_measure_decoded(image, &e->measured, original, decoded, &measured);
        } else {
            TSR_TRY(tsr_decode_coded(e->engine, &e->source->header, &e->measured, job, e->decoded, &measured, error));
        }
        if (e->encoded.apart)
            TSR_TRY(
                tsr_add_inside(e->encoded.apart, image, &e->measured, original, decoded, &e->encoded.inside, error));
        tsr_add_frame(&e->source->windows, e->frames_done, (uint64_t)image->columns * image->rows, &measured,
                      &e->difference, &e->encoded.own_window);
        if (e->encoded.profile) {
            const struct tsr_measured all = {.weight = e->measured.weight};
            tsr_add_error_profile(image, &all, e->frames_done, original, decoded, e->encoded.profile);
        }
        tsr_add_frame_hash(&e->frames, image, decoded);
        if (e->source->wants_range) tsr_add_values(image, decoded, &e->range);
    }
    e->frames_done++;
    e->encoded.engine = !e->encoded.engine || e->encoded.engine == job->engine ? job->engine : "mixed";
    if (job->fallback) e->encoded.fallback = job->fallback;
    if (!job->coded.is_drawn) e->encoded.has_others = true;
    const double start = tsr_seconds();
    enum tsr_status status = tsr_put_repeats(e->repeats, e->numbers[job - e->jobs], e->writer, error);
    if (status == TSR_OK) status = put_rest(e, &job->coded, distance, error);
    e->encoded.write_s += tsr_seconds() - start;
    return status == TSR_OK ? check_excess(e, error) : status;
}

/* A frame with its own model; what the engine has lent for it goes back. */
static enum tsr_status put_alone(struct encoding *e, struct tsr_encode_job *job, struct tsr_error *error)
{
    const enum tsr_status status = put_frame(e, job, 0, error);
    e->engine->ops->give_coded(e->engine, job);
    return status;
}

/* Frames first to first + count - 1 of a batch, all coded, with one model where that is smaller. Then as ever. */
static enum tsr_status put_stack(struct encoding *e, uint32_t first, uint32_t count, struct tsr_error *error)
{
    const struct tsr_image *image = &e->source->header.image;
    const struct tsr_image image_of_all = tsr_stack(image, count);
    struct tsr_encode_job stack = {.raster = e->jobs[first].raster};
    struct tsr_coded_frame frames[TSR_STACK_LIMIT];
    uint32_t distance[TSR_STACK_LIMIT];
    for (uint32_t i = 0; i < count; i++) frames[distance[i] = i] = e->jobs[first + i].coded;
    if (e->links)
        TSR_TRY(tsr_stack_linked(e->links, image, &e->source->header.coding, &e->jobs[first], count, e->stack_workspace,
                                 frames, distance, error));
    if (!e->links && count > 1) {
        const enum tsr_status status =
            e->engine->ops->encode(e->engine, &image_of_all, &e->source->header.coding, &stack, 1, e->stack_workspace);
        if (status != TSR_OK) return tsr_fail(error, status, "the engine fails on %u frames together", count);
        tsr_take_stack(&stack.coded, frames, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        e->jobs[first + i].coded = frames[i];
        TSR_TRY(put_frame(e, &e->jobs[first + i], distance[i], error));
    }
    return TSR_OK;
}

/* Frames from this one on that are alike, units or not, at most so many. */
static uint32_t frames_in_turn(const struct encoding *e, uint32_t first, uint32_t most)
{
    const uint8_t *const units = e->source->units;
    const uint32_t left = e->source->header.image.frames - first;
    if (most > left) most = left;
    for (uint32_t i = 1; units && i < most; i++)
        if (units[first + i] != units[first]) return i;
    return most;
}

/* Reads a batch of at most wanted frames, and between them those that are equal to earlier ones. *count: the others;
 * *read: all. Hashes are made now, while a raster is in the cache, or of a large batch later by idle threads. */
static enum tsr_status read_batch(struct encoding *e, uint32_t first, uint32_t wanted, uint32_t *count, uint32_t *read,
                                  struct tsr_error *error)
{
    enum { LEAST_BYTES = 1 << 20 };
    struct tsr_source *source = e->source;
    const struct tsr_image *image = &source->header.image;
    const size_t raster_bytes = tsr_raster_bytes(image);
    const bool has_threads = e->engine == e->engine->cpu && tsr_pool_threads(e->engine->pool) > 1;
    const uint32_t most = frames_in_turn(e, first, e->repeats ? wanted + TSR_EQUAL_LIMIT : wanted);
    const double start = tsr_seconds();
    e->hashes_later = !e->is_trial && has_threads && raster_bytes * (most < wanted ? most : wanted) >= LEAST_BYTES;
    source->rasters_last = e->hashes_later;
    *count = *read = 0;
    for (uint32_t i; *read < most && *count < wanted && !tsr_repeats_are_full(e->repeats); ++*read) {
        const uint32_t frame = first + *read;
        uint8_t *const raster = e->rasters ? e->rasters + *count * raster_bytes : NULL;
        e->jobs[i = *count].raster = raster ? raster : e->held + frame * raster_bytes;
        e->jobs[i].borrows = image->frames == 1 && !source->header.coding.lossy; /* a lossy one is decoded, too */
        e->numbers[i] = frame;
        if (raster && e->held) memcpy(raster, e->held + frame * raster_bytes, raster_bytes);
        if (raster && !e->held) TSR_TRY(tsr_source_read_frame(source, frame, raster, error));
        if (e->repeats && tsr_find_repeat(e->repeats, frame, first, e->jobs, i, raster_bytes)) {
            tsr_input_hash_read(source->input); /* the next raster takes the place of this one */
            continue;
        }
        ++*count;
        if (!e->hashes_later && !source->header.coding.lossy && (!e->is_trial || e->repeats))
            e->hashes[i] = frame_hash(image, e->jobs[i].raster);
    }
    e->encoded.read_s += tsr_seconds() - start;
    return TSR_OK;
}

static enum tsr_status code_batch(struct encoding *e, uint32_t first, uint32_t count, struct tsr_error *error)
{
    for (uint32_t i = 0, alike; i < count; i += alike) {
        struct tsr_coding coding = tsr_coding_of_frames(&e->source->header);
        alike = tsr_frames_alike(&coding, first + i, count - i);
        const enum tsr_status status = tsr_kept_encode(e->engine, &e->coded, tsr_kept_of(&e->source->header, &coding),
                                                       &coding, e->jobs + i, alike, e->workspace);
        if (status != TSR_OK) return tsr_fail(error, status, "the engine fails on frame %u", first + i);
        const uint32_t step = e->stack ? e->stack : 1;
        for (uint32_t k = i; k < i + alike; k += step)
            TSR_TRY(e->stack ? put_stack(e, k, i + alike - k < step ? i + alike - k : step, error)
                             : put_alone(e, &e->jobs[k], error));
    }
    return TSR_OK;
}

/* Coding a batch, and what other threads do meanwhile. */
struct batch_work {
    struct encoding *e;
    uint32_t first, count;
    enum tsr_status status;
    struct tsr_error *error;
};

enum { CODES, HASHES_INPUT, HASHES_FRAMES };

static void do_piece(void *context, unsigned piece)
{
    struct batch_work *const work = context;
    struct encoding *const e = work->e;
    if (piece == CODES)
        work->status = code_batch(e, work->first, work->count, work->error);
    else if (piece == HASHES_INPUT)
        tsr_input_hash_read(e->source->input);
    else
        e->hashes[piece - HASHES_FRAMES] = frame_hash(&e->source->header.image, e->jobs[piece - HASHES_FRAMES].raster);
}

/* The same without the coding, which uses the raster up. */
static void do_hash(void *context, unsigned piece)
{
    do_piece(context, HASHES_INPUT + piece);
}

/* Frames from this one on, which are units. *count: how many were put. */
static enum tsr_status put_units(struct encoding *e, uint32_t first, uint32_t *count, struct tsr_error *error)
{
    *count = frames_in_turn(e, first, tsr_unit_lanes(e->units));
    TSR_TRY(tsr_make_units(e->units, e->source, first, count, &e->encoded.read_s, error));
    const double start = tsr_seconds();
    for (uint32_t i = 0; i < *count; i++) {
        const struct tsr_bytes *const unit = tsr_made_unit(e->units, i);
        TSR_TRY(tsr_container_put_unit(e->writer, unit->bytes, unit->size, error));
    }
    e->encoded.write_s += tsr_seconds() - start;
    e->frames_done += *count;
    return check_excess(e, error);
}

static enum tsr_status keep_raster(struct encoding *e, struct tsr_error *error)
{
    if (!e->encoded.keeps_raster) return TSR_OK;
    const size_t size = tsr_raster_bytes(&e->source->header.image);
    if (!(e->encoded.raster = malloc(size))) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a frame");
    memcpy(e->encoded.raster, e->rasters ? e->rasters : e->held, size);
    return TSR_OK;
}

/* A batch is coded, and written. */
static enum tsr_status encode_batch(struct encoding *e, uint32_t first, uint32_t count, struct tsr_error *error)
{
    const struct tsr_image *const image = &e->source->header.image;
    if (e->links) tsr_link_jobs(e->links, e->jobs, e->numbers, count);
    for (uint32_t i = 0; i < count && e->base; i++)
        TSR_TRY(tsr_base_frame(e->base, e->numbers[i], i, &e->jobs[i].base, error));
    const struct tsr_patches *const p = &e->source->header.patches;
    for (uint32_t i = 0; i < count && e->patches; i++) {
        uint8_t *const patches = e->patches + i * tsr_raster_bytes(&e->coded);
        tsr_take_patches(p, image, 0, p->count, e->originals[i] = e->jobs[i].raster, patches);
        e->jobs[i].raster = patches;
    }
    const uint32_t hashed = e->source->header.coding.lossy ? 0 : count; /* of lossy ones, what they became */
    struct batch_work work = {.e = e, .first = first, .count = count, .error = error};
    if (!e->hashes_later) return code_batch(e, first, count, error);
    if (image->frames == 1 && hashed > 0 && !e->base) { /* a lossy frame is decoded before it is written */
        e->take_error = error;
        e->jobs[0].take = take_tile;
        e->jobs[0].taker = e;
    }
    tsr_pool_run(e->engine->pool, e->in_place ? do_hash : do_piece, &work,
                 (e->in_place ? HASHES_FRAMES - HASHES_INPUT : HASHES_FRAMES) + hashed);
    return e->in_place ? code_batch(e, first, count, error) : work.status;
}

/* Adds the hashes of the frames that were read, in their order. */
static void add_hashes(struct encoding *e, uint32_t first, uint32_t read)
{
    if (e->source->header.coding.lossy || (e->is_trial && !e->repeats)) return;
    if (e->repeats) tsr_know_frames(e->repeats, first, e->hashes);
    for (uint32_t k = 0, i = 0; k < read; k++) {
        const struct tsr_hash128 *const repeat = e->repeats ? tsr_repeat_hash(e->repeats, first + k) : NULL;
        tsr_hasher_add(&e->frames, (repeat ? repeat : &e->hashes[i++])->bytes, sizeof repeat->bytes);
    }
}

static enum tsr_status encode_frames(struct encoding *e, struct tsr_error *error)
{
    const struct tsr_image *image = &e->source->header.image;
    for (uint32_t first = 0, count, read; first < image->frames; first += read) {
        if (e->source->units && e->source->units[first]) {
            TSR_TRY(tsr_put_repeats(e->repeats, first, e->writer, error));
            TSR_TRY(put_units(e, first, &read, error));
            continue;
        }
        TSR_TRY(read_batch(e, first, e->batch, &count, &read, error));
        TSR_TRY(keep_raster(e, error));
        if (count > 0) TSR_TRY(encode_batch(e, first, count, error));
        if (count > 0) tsr_keep_linked(e->links, e->numbers[count - 1], count);
        add_hashes(e, first, read);
        tsr_forget_repeats(e->repeats);
        if (tsr_repeats_are_full(e->repeats)) TSR_TRY(tsr_put_repeats(e->repeats, UINT32_MAX, e->writer, error));
        tsr_forget_repeats(e->repeats);
    }
    TSR_TRY(tsr_put_repeats(e->repeats, UINT32_MAX, e->writer, error));
    return tsr_container_end_frames(e->writer, error);
}

static enum tsr_status allocate(struct encoding *e, struct tsr_error *error)
{
    const struct tsr_header *const header = &e->source->header;
    const struct tsr_image *const image = &header->image;
    const struct tsr_engine_ops *ops = e->engine->ops;
    const bool is_lossy = header->coding.lossy;
    struct tsr_input *const input = e->source->input;
    if (e->source->units) TSR_TRY(tsr_units_take(e->engine, header, input, e->source->longest_unit, &e->units, error));
    if (!tsr_has_samples(header)) return TSR_OK;
    const struct tsr_need need = tsr_input_need(input);
    const struct tsr_plan plan = tsr_plan_encoding(e->engine, header, &header->coding, &need, tsr_input_size(input));
    e->batch = plan.batch;
    e->stack = plan.stack;
    e->jobs = calloc(plan.batch, sizeof *e->jobs);
    e->hashes = calloc(plan.batch, sizeof *e->hashes);
    e->numbers = calloc(plan.batch, sizeof *e->numbers);
    e->coded = tsr_coded_image(header);
    if (header->patches.count > 0) {
        e->originals = calloc(plan.batch, sizeof *e->originals);
        e->patches = ops->take_workspace(e->engine, plan.batch * tsr_raster_bytes(&e->coded));
        if (!e->originals || !e->patches) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for patches of frames");
    }
    if (header->has_base)
        TSR_TRY(tsr_base_open_bytes(e->engine, header, (struct tsr_piece){e->source->base.bytes, e->source->base.size},
                                    plan.batch, &e->base, error));
    const bool looks = tsr_looks_for_repeats(header, is_lossy, e->is_trial);
    if (looks) e->repeats = tsr_repeats_take();
    e->held = e->source->rasters ? e->source->rasters + e->source->skipped * tsr_raster_bytes(image) : NULL;
    e->in_place = !e->held && plan.raster_offset != SIZE_MAX;
    e->links = header->linked ? tsr_links_take(e->engine, image, plan.batch, plan.stack) : NULL;
    if (e->links)
        e->rasters = tsr_linked_rasters(e->links);
    else if (!e->in_place && (!e->held || tsr_copies_rasters(header, is_lossy, plan.stack)))
        e->rasters = ops->take_rasters(e->engine, plan.batch * tsr_raster_bytes(image));
    e->decoded = is_lossy ? ops->take_rasters(e->engine, tsr_raster_bytes(image)) : NULL;
    e->workspace = plan.space ? ops->take_workspace(e->engine, plan.space) : NULL;
    if (e->in_place && e->workspace) {
        e->rasters = (uint8_t *)e->workspace + plan.raster_offset;
        ops->clear_raster(e->engine, e->workspace, plan.raster_offset, tsr_raster_bytes(image));
    }
    e->stack_workspace = plan.stack && plan.stack_space ? ops->take_workspace(e->engine, plan.stack_space) : NULL;
    if (!e->jobs || !e->hashes || !e->numbers || (looks && !e->repeats) || (header->linked && !e->links) ||
        (!e->rasters && !e->held) || (is_lossy && !e->decoded) || !e->workspace || (plan.stack && !e->stack_workspace))
        return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu bytes of work space", plan.space + plan.stack_space);
    return TSR_OK;
}

/* What frames are coded with. */
static void give_room_back(struct encoding *e)
{
    if (!e->in_place && !e->links) e->engine->ops->give_workspace(e->engine, e->rasters);
    tsr_links_give(e->links);
    e->engine->ops->give_workspace(e->engine, e->decoded);
    e->engine->ops->give_workspace(e->engine, e->patches);
    e->engine->ops->give_workspace(e->engine, e->workspace);
    e->engine->ops->give_workspace(e->engine, e->stack_workspace);
    e->links = NULL;
    e->rasters = e->decoded = e->patches = NULL;
    e->workspace = e->stack_workspace = NULL;
}

static void give_back(struct encoding *e)
{
    tsr_units_give(e->units);
    e->units = NULL;
    tsr_base_close(e->base);
    free(e->jobs);
    free(e->hashes);
    free(e->numbers);
    free(e->originals);
    tsr_repeats_give(e->repeats);
    give_room_back(e);
}

enum tsr_status tsr_encode_frames(struct tsr_engine *engine, struct tsr_source *source,
                                  struct tsr_container_writer *writer, struct tsr_error *error)
{
    struct encoding e = {.source = source, .writer = writer, .is_trial = true};
    e.engine = source->header.has_base ? engine->cpu : engine;
    tsr_hasher_init(&e.frames);
    enum tsr_status status = allocate(&e, error);
    if (status == TSR_OK) status = encode_frames(&e, error);
    give_back(&e);
    return status;
}

static enum tsr_status weigh_saving(struct encoding *e, struct tsr_error *error)
{
    bool saves_little = false;
    if (!e->encoded.estimates || !e->jobs) return TSR_OK;
    give_room_back(e);
    TSR_TRY(tsr_measure_saving(e->engine, e->source, e->encoded.coder, e->writer, &e->encoded.estimate, &saves_little,
                               error));
    return saves_little ? give_way(e, error) : TSR_OK;
}

/* A lossy copy says in its header what it has lost, which is known at the end. */
static enum tsr_status put_derived_prefix(struct encoding *e, const struct tsr_hash128 *original,
                                          struct tsr_error *error)
{
    const uint64_t native = tsr_all_rasters(&e->source->header.image);
    const double ratio = (double)native / (double)tsr_container_payload_bytes(e->writer);
    const enum tsr_status status = e->source->ops->derive(e->source, original, ratio, &e->range, error);
    if (status == TSR_ERROR_CORRUPT) return tsr_decline(error); /* of a header that has no lossy copy */
    TSR_TRY(status);
    return copy_blob(e, TSR_BLOB_PREFIX, error);
}

enum tsr_status tsr_encode_contents(struct tsr_engine *engine, struct tsr_source *source,
                                    struct tsr_container_writer *writer, struct tsr_proof *proof,
                                    struct tsr_encoded *encoded, struct tsr_error *error)
{
    struct encoding e = {0};
    e.engine = source->header.has_base ? engine->cpu : engine;
    e.source = source;
    e.writer = writer;
    e.encoded.profile = encoded->profile;
    e.encoded.apart = encoded->apart;
    e.encoded.stops_if_longer = encoded->stops_if_longer;
    e.encoded.estimates = encoded->estimates;
    e.encoded.keeps_raster = encoded->keeps_raster;
    e.encoded.coder = encoded->coder;
    e.measured = tsr_measured_of(&source->header.image, &source->header.kept);
    if (!encoded->skips_ssim) e.measured.range = tsr_header_range(&source->header);
    e.range = TSR_NO_VALUES;
    const bool derived = source->header.coding.lossy && source->ops && source->ops->derive;
    memset(proof, 0, sizeof *proof);
    tsr_hasher_init(&e.frames);
    tsr_parts_begin(&e.parts);
    tsr_input_restart_hash(source->input); /* what is coded now is what counts */
    enum tsr_status status = allocate(&e, error);
    if (status == TSR_OK && source->header.has_base)
        status = tsr_container_put_base(writer, source->base.bytes, source->base.size, error);
    if (status == TSR_OK && !derived) status = copy_blob(&e, TSR_BLOB_PREFIX, error);
    if (status == TSR_OK) status = check_inner(&e, error);
    if (status == TSR_OK && source->header.exact) status = copy_blob(&e, TSR_BLOB_RESIDUES, error);
    if (status == TSR_OK && e.encoded.estimates)
        status = tsr_estimate_around(source, writer, &e.encoded.estimate.around, error);
    if (status == TSR_OK && tsr_has_frames(&source->header)) status = encode_frames(&e, error);
    if (status == TSR_OK) status = weigh_saving(&e, error);
    if (status == TSR_OK) status = copy_blob(&e, TSR_BLOB_SUFFIX, error);
    if (status == TSR_OK) status = tsr_input_hash(source->input, &proof->original, error);
    if (status == TSR_OK && derived) status = put_derived_prefix(&e, &proof->original, error);
    if (status == TSR_OK && source->header.coding.path == TSR_PATH_PREDICT && source->header.coding.lossy &&
        e.difference.max_error > source->header.coding.max_error)
        status = tsr_fail(error, TSR_ERROR_INTERNAL, "a sample differs by %u, over the bound of %u",
                          e.difference.max_error, source->header.coding.max_error);
    if (status == TSR_OK) {
        proof->original_size = tsr_input_size(source->input);
        proof->has_samples = e.jobs != NULL;
        if (!source->header.damage[0]) memcpy(proof->damage, tsr_input_damage(source->input), sizeof proof->damage);
        if (e.jobs) proof->samples = tsr_hasher_result128(&e.frames);
        if (source->header.coding.lossy) tsr_note_difference(&source->header.image, &e.difference, proof);
        if (!source->header.exact)
            tsr_parts_end(&e.parts, &source->header, &proof->samples, tsr_all_rasters(&source->header.image), proof);
    }
    e.encoded.difference = e.difference;
    *encoded = e.encoded;
    give_back(&e);
    return status;
}
