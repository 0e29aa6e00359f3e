/* Frames in memory: the engines that the public interface calls. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "budget.h"
#include "call.h"
#include "entropy/frame_model.h"
#include "entropy/varint.h"
#include "flow.h"
#include "io/bytes/checksum.h"
#include "transform/status.h"
#include "kernels/engine_cuda/engine_cuda.h"
#include "kernels/engine.h"
#include "kernels/gpu_load.h"
#include "kernels/kept/kept_frames.h"
#include "kernels/pool/large_stack.h"
#include "kernels/pool/thread_pool.h"
#include "app/tessera_cli.h"

enum tsr_status tsr_check_coding(const struct tsr_image *image, const struct tsr_coding *coding,
                                 struct tsr_error *error)
{
    if (!coding->lossy) return TSR_OK;
    if (image->exact_only || image->bits_allocated == 1 || image->bits_allocated == 32)
        return tsr_fail(error, TSR_ERROR_USAGE, "palette indices and samples of 1 or 32 bits are not coded with loss");
    if (coding->path == TSR_PATH_PREDICT && (coding->max_error < 1 || coding->max_error > TSR_MAX_ERROR_LIMIT))
        return tsr_fail(error, TSR_ERROR_USAGE, "a largest error of %u is outside 1 to %d", coding->max_error,
                        TSR_MAX_ERROR_LIMIT);
    if (coding->path == TSR_PATH_PREDICT) return TSR_OK;
    if (coding->qp_eighths < tsr_lowest_qp(image->bits_stored) || coding->qp_eighths > TSR_HIGHEST_QP)
        return tsr_fail(error, TSR_ERROR_USAGE, "QP %.3f is outside %d to 51 for samples of %u bits",
                        coding->qp_eighths / 8.0, tsr_lowest_qp(image->bits_stored) / TSR_QP_UNIT, image->bits_stored);
    if (coding->coarser_by > (uint32_t)(TSR_HIGHEST_QP - coding->qp_eighths) ||
        coding->coarser_frame >= image->frames || coding->coarser_from >= (uint64_t)image->columns * image->rows)
        return tsr_fail(error, TSR_ERROR_USAGE, "a QP higher by %u/8 from sample %u of frame %u on cannot be",
                        coding->coarser_by, coding->coarser_from, coding->coarser_frame);
    return TSR_OK;
}

/* ---- Engines --------------------------------------------------------------------------------------------- */

#if TSR_WITH_CUDA
/* CUDA's driver takes more of the stack than callers must have. */
struct creating {
    struct tsr_pool *pool;
    const struct tsr_gpu_choice *gpus;
    char *reason;
    size_t reason_size;
    struct tsr_engine *engine;
};

static void create_with_pool(void *context)
{
    struct creating *const c = context;
    c->engine = tsr_cuda_engine_create(c->pool, c->gpus, c->reason, c->reason_size);
}

static struct tsr_engine *create_cuda(const struct tsr_gpu_choice *gpus, int threads, char *reason, size_t reason_size)
{
    const int wanted = TSR_WAITING_OF_THREAD * threads;
    const int waiting = wanted < TSR_LEAST_WAITING  ? TSR_LEAST_WAITING
                        : wanted > TSR_MOST_WAITING ? TSR_MOST_WAITING
                                                    : wanted;
    struct tsr_pool *pool = tsr_pool_create_resting(threads, waiting, TSR_WAITING_BYTES);
    snprintf(reason, reason_size, "no memory or threads");
    struct tsr_gpu_choice resolved = *gpus;
    struct tsr_coding coding;
    if (resolved.coding) {
        coding = *resolved.coding;
        resolved.coding = tsr_resolve_coding(&coding, NULL) == TSR_OK ? &coding : NULL;
    }
    if (!pool) return NULL;
    struct creating creating = {pool, &resolved, reason, reason_size, NULL};
    if (!tsr_call_with_large_stack(create_with_pool, &creating)) tsr_pool_destroy(pool);
    return creating.engine;
}

/* Whether memory that AUTO may take is enough for a GPU, too: what the engine has for itself is not more than what is
 * left for work. With less the CPU engine may code files that would not fit beside a GPU's memory. */
static bool is_enough_for_gpu(const struct tsr_gpu_choice *gpus, int threads, uint64_t bytes)
{
    const size_t addressed = bytes < SIZE_MAX / 2 ? (size_t)bytes : SIZE_MAX / 2;
    const uint64_t of_cpu = addressed / 8, own = tsr_cuda_pinned_memory(gpus, addressed) + of_cpu;
    return bytes == 0 || tsr_memory_beside(threads, own, addressed) >= own;
}
#else
static bool is_enough_for_gpu(const struct tsr_gpu_choice *gpus, int threads, uint64_t bytes)
{
    (void)gpus;
    (void)threads;
    (void)bytes;
    return true;
}

static struct tsr_engine *create_cuda(const struct tsr_gpu_choice *gpus, int threads, char *reason, size_t reason_size)
{
    (void)gpus;
    (void)threads;
    snprintf(reason, reason_size, "this build has no CUDA engine");
    return NULL;
}
#endif

/* A GPU takes 0.25 s to wake, in which cores go on, and 0.15 s to be left. On an H200's machine, 16 threads compress
 * 1390 MB/s at -1, 940 at -5 and 160 at -9, with the GPU 3300 and at -9 1150: it is ahead after this much for each
 * thread. */
static uint64_t worth_of_thread(const struct tsr_engine_options *options)
{
    enum { QUICK = 4, SLOW = 8, LITTLE = 5000000, USUAL = 40000000, MUCH = 56000000 };
    struct tsr_wanted wanted;
    if (!options->expected || tsr_want(options->expected, &wanted, NULL) != TSR_OK) return USUAL;
    const int effort = wanted.coding.effort ? wanted.coding.effort : TSR_EFFORT_DEFAULT;
    return effort >= SLOW ? LITTLE : effort >= QUICK ? USUAL : MUCH;
}

enum { THREADS_LIMIT = 4096, GPUS_LIMIT = 256 };

static enum tsr_status check_options(const struct tsr_engine_options *options, struct tsr_error *error)
{
    TSR_TRY(tsr_check_sized(options, sizeof *options, "options", error));
    if ((int)options->choice < TSR_ENGINE_AUTO || options->choice > TSR_ENGINE_CUDA)
        return tsr_fail(error, TSR_ERROR_USAGE, "choice %d is not known", (int)options->choice);
    if (options->threads < 0 || options->threads > THREADS_LIMIT)
        return tsr_fail(error, TSR_ERROR_USAGE, "%d threads are outside 1 to %d", options->threads, THREADS_LIMIT);
    if (options->gpu_count < 0 || options->gpu_count > GPUS_LIMIT)
        return tsr_fail(error, TSR_ERROR_USAGE, "%d GPUs are outside 0 to %d", options->gpu_count, GPUS_LIMIT);
    if (options->gpu_count > 0) TSR_TRY(tsr_check_pointer(options->gpus, "options->gpus", error));
    return options->expected ? tsr_check_options(options->expected, error) : TSR_OK;
}

/* The CUDA engine, or NULL and why not. */
static struct tsr_engine *try_cuda(const struct tsr_engine_options *options, int threads, char *reason,
                                   size_t reason_size)
{
    struct tsr_wanted wanted;
    struct tsr_gpu_choice gpus = {.number = options->gpus,
                                  .count = options->gpu_count,
                                  .memory_bytes = options->gpu_memory_bytes,
                                  .wakes_later = options->choice == TSR_ENGINE_AUTO && options->expected_bytes > 0};
    if (options->expected && tsr_want(options->expected, &wanted, NULL) == TSR_OK) {
        gpus.coding = &wanted.coding;
        gpus.decodes = wanted.verify == TSR_VERIFY_ENGINE || wanted.coding.lossy;
    } else {
        gpus.decodes = options->expected_bytes > 0;
    }
    if (options->choice == TSR_ENGINE_AUTO && !is_enough_for_gpu(&gpus, threads, options->memory_bytes)) {
        snprintf(reason, reason_size, "a GPU would take too much of the memory that may be had");
        return NULL;
    }
    return create_cuda(&gpus, threads, reason, reason_size);
}

static enum tsr_engine_choice settle_choice(const struct tsr_engine_options *options, int threads)
{
    const bool pays =
        options->expected_bytes == 0 || options->expected_bytes >= (uint64_t)threads * worth_of_thread(options);
    return options->choice == TSR_ENGINE_AUTO && !pays ? TSR_ENGINE_CPU : options->choice;
}

enum tsr_status tsr_engine_create(const struct tsr_engine_options *options, struct tsr_engine **engine,
                                  struct tsr_error *error)
{
    static const struct tsr_engine_options usual = TSR_ENGINE_OPTIONS;
    char reason[sizeof(*engine)->note] = "";
    TSR_TRY(tsr_check_pointer(engine, "engine", error));
    *engine = NULL;
    if (!options) options = &usual;
    TSR_TRY(check_options(options, error));
    tsr_hash64_of("", 0); /* libxxhash chooses its form when it is called first: not by several threads at once */
    const int threads = options->threads > 0 ? options->threads : tsr_available_threads();
    const enum tsr_engine_choice choice = settle_choice(options, threads);
    struct tsr_engine *e = choice == TSR_ENGINE_CPU ? NULL : try_cuda(options, threads, reason, sizeof reason);
    if (!e && choice == TSR_ENGINE_CUDA) return tsr_fail(error, TSR_ERROR_ENGINE, "no CUDA engine: %s", reason);
    struct tsr_pool *pool = e ? NULL : tsr_pool_create(threads);
    if (pool) e = tsr_cpu_engine_create(pool);
    if (!e) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory or threads for an engine");
    snprintf(e->note, sizeof e->note, "%s", pool ? reason : "");
    const enum tsr_status status = tsr_engine_limit_memory(e, options->memory_bytes, error);
    if (status == TSR_OK)
        *engine = e;
    else
        tsr_engine_destroy(e);
    return status;
}

const char *tsr_engine_note(const struct tsr_engine *engine)
{
    return engine->note;
}

void tsr_engine_tell_times(struct tsr_engine *engine, struct tsr_engine_times *times)
{
    engine->ops->times(engine, times);
}

static void destroy(void *context)
{
    struct tsr_engine *const engine = context;
    engine->ops->destroy(engine);
}

void tsr_engine_destroy(struct tsr_engine *engine)
{
    if (engine && !tsr_call_with_large_stack(destroy, engine)) destroy(engine);
}

const char *tsr_engine_name(const struct tsr_engine *engine)
{
    return engine->ops->name;
}

int tsr_engine_threads(const struct tsr_engine *engine)
{
    return tsr_pool_threads(engine->pool);
}

/* ---- Payloads in memory ---------------------------------------------------------------------------------- */

/* FORMAT.md 5.5 */

uint32_t tsr_coded_tiles(const struct tsr_image *image, const struct tsr_coding *coding)
{
    return tsr_tiling_count(tsr_cut_tiles(image, tsr_tile_alignment(coding->path, coding->coder)));
}

uint64_t tsr_most_tiles(const struct tsr_image *image)
{
    static const struct tsr_coding codings[] = {{.coder = TSR_CODER_HUFFMAN}, {.coder = TSR_CODER_CAVLC}};
    const uint32_t one = tsr_coded_tiles(image, &codings[0]), other = tsr_coded_tiles(image, &codings[1]);
    return one > other ? one : other;
}

size_t tsr_encode_bound(const struct tsr_image *image)
{
    if (!image || tsr_check_coded_image(image, NULL) != TSR_OK) return 0;
    const size_t samples = (size_t)image->columns * image->rows, planes = (size_t)tsr_image_planes(image);
    return planes * 2 * samples + ((size_t)tsr_most_tiles(image) + 1) * 5 * (planes + 1) + TSR_FRAME_MODEL_LIMIT;
}

uint64_t tsr_frame_bound(const struct tsr_image *image, const struct tsr_kept_ranges *kept)
{
    return tsr_encode_bound(image) + (kept->count > 0 ? tsr_mask_bound(image, kept, tsr_most_tiles(image)) : 0);
}

static bool get_size(const uint8_t *in, size_t in_size, size_t *at, size_t *value)
{
    uint64_t read;
    if (!tsr_read_varint(in, in_size, at, TSR_VARINT_LIMIT, &read) || read > in_size - *at) return false;
    *value = (size_t)read;
    return true;
}

static size_t payload_bytes(const struct tsr_coded_frame *coded)
{
    uint8_t varint[TSR_VARINT_LIMIT];
    size_t bytes = tsr_put_varint(varint, coded->model.size) + coded->model.size;
    for (uint32_t t = 0; t < coded->tiles; t++) {
        const size_t tile = tsr_tile_bytes(&coded->tile[t]);
        bytes += tsr_put_varint(varint, tile) + tile;
    }
    return bytes;
}

/* FORMAT.md 5.5. */
static void put_payload(const struct tsr_coded_frame *coded, uint8_t *payload)
{
    size_t used = tsr_put_varint(payload, coded->model.size);
    memcpy(payload + used, coded->model.bytes, coded->model.size);
    used += coded->model.size;
    for (uint32_t t = 0; t < coded->tiles; t++) {
        const struct tsr_coded_tile *tile = &coded->tile[t];
        used += tsr_put_varint(payload + used, tsr_tile_bytes(tile));
        for (int i = 0; i < tile->segments; i++) {
            if (tile->segment[i].size) memcpy(payload + used, tile->segment[i].bytes, tile->segment[i].size);
            used += tile->segment[i].size;
        }
    }
}

/* One coding of a call's raster; the payload changes if that takes less than *call->got. *is_drawn: see engine.h. */
static enum tsr_status try_coding(const struct tsr_call *call, const struct tsr_coding *coding, bool *is_drawn)
{
    const struct tsr_engine_ops *const ops = call->engine->ops;
    const size_t space = ops->encode_workspace(call->engine, call->image, coding, 1);
    void *const workspace = space ? ops->take_workspace(call->engine, space) : NULL;
    if (!workspace) return tsr_fail(call->error, TSR_ERROR_LIMIT, "no memory for %zu bytes of work space", space);
    struct tsr_encode_job job = {.raster = call->in};
    const enum tsr_status status = ops->encode(call->engine, call->image, coding, &job, 1, workspace);
    const size_t bytes = status == TSR_OK ? payload_bytes(&job.coded) : 0;
    assert(bytes <= tsr_encode_bound(call->image));
    *is_drawn = status == TSR_OK && job.coded.is_drawn;
    if (status == TSR_OK && bytes < *call->got) {
        put_payload(&job.coded, call->out);
        *call->got = bytes;
    }
    ops->give_workspace(call->engine, workspace);
    return status;
}

/* options: the coding, resolved; choice: the coder that was asked for; in: the raster; out: the payload. */
static enum tsr_status encode_frame(const struct tsr_call *call)
{
    const struct tsr_coding *const coding = call->options;
    *call->got = SIZE_MAX;
    bool is_drawn;
    enum tsr_status status = try_coding(call, coding, &is_drawn);
    const bool tries = status == TSR_OK && !is_drawn && tsr_is_sparse(call->image, 1, coding, *call->got);
    if (tries && !tsr_counts_sparse(coding->effort)) *call->got = SIZE_MAX;
    for (int effort = 1; tries && effort < coding->effort && status == TSR_OK; effort++) {
        struct tsr_coding lower;
        if (tsr_lower_coding(call->image, coding, (enum tsr_coder)call->choice, effort, &lower))
            status = try_coding(call, &lower, &is_drawn);
    }
    if (status != TSR_OK) *call->got = 0;
    return status;
}

enum tsr_status tsr_encode_frame(struct tsr_engine *engine, const struct tsr_image *image,
                                 const struct tsr_coding *coding, const uint8_t *raster, uint8_t *payload, size_t *size,
                                 struct tsr_error *error)
{
    TSR_TRY(tsr_check_pointer(engine, "engine", error));
    TSR_TRY(tsr_check_pointer(image, "image", error));
    TSR_TRY(tsr_check_pointer(coding, "coding", error));
    TSR_TRY(tsr_check_pointer(raster, "raster", error));
    TSR_TRY(tsr_check_pointer(payload, "payload", error));
    TSR_TRY(tsr_check_pointer(size, "size", error));
    TSR_TRY(tsr_check_coded_image(image, error));
    struct tsr_coding resolved = *coding;
    TSR_TRY(tsr_resolve_coding(&resolved, error));
    TSR_TRY(tsr_check_coding(image, &resolved, error));
    if (resolved.coarser_frame > 0)
        return tsr_fail(error, TSR_ERROR_USAGE, "frame %u of a single one", resolved.coarser_frame);
    const struct tsr_call call = {.run = encode_frame,
                                  .engine = engine,
                                  .image = image,
                                  .options = &resolved,
                                  .choice = (int)coding->coder,
                                  .in = raster,
                                  .out = payload,
                                  .got = size,
                                  .error = error};
    return tsr_run_call(&call);
}

/* Finds the model of a payload, and as many tiles as it describes. *first_tile: the offset of their sizes. Behind the
 * last one may stand the byte that makes the length of a DICOM fragment even: FORMAT.md 5.5. */
static enum tsr_status find_tiles(const struct tsr_image *image, const uint8_t *payload, size_t size,
                                  struct tsr_decode_job *job, size_t *first_tile, struct tsr_error *error)
{
    struct tsr_tiling cut;
    size_t at = 0;
    if (!get_size(payload, size, &at, &job->model.size))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "the payload ends within its model");
    job->model.bytes = payload + at;
    at += job->model.size;
    *first_tile = at;
    struct tsr_bit_reader bits = tsr_bit_reader(job->model.bytes, job->model.size);
    if (!tsr_get_tiling(&bits, image, &cut))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "the payload's model does not fit this image");
    const uint32_t tiles = tsr_tiling_count(cut);
    for (size_t tile; job->tiles < tiles && at < size; at += tile, job->tiles++)
        if (!get_size(payload, size, &at, &tile))
            return tsr_fail(error, TSR_ERROR_CORRUPT, "the payload ends within tile %u", job->tiles);
    if (job->tiles < tiles)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "the payload has %u of the %u tiles of its model", job->tiles, tiles);
    const bool is_padded = size - at == 1 && payload[at] == 0;
    return at == size || is_padded ? TSR_OK
                                   : tsr_fail(error, TSR_ERROR_CORRUPT, "the payload has bytes behind its last tile");
}

/* in: the payload; out: the raster. */
static enum tsr_status decode_frame(const struct tsr_call *call)
{
    struct tsr_engine *const engine = call->engine;
    const struct tsr_image *const image = call->image;
    const uint8_t *const payload = call->in;
    const size_t size = call->count;
    struct tsr_error *const error = call->error;
    struct tsr_decode_job job = {0};
    size_t at = 0;
    TSR_TRY(find_tiles(image, payload, size, &job, &at, error));
    job.raster = call->out;
    const size_t space = engine->ops->decode_workspace(engine, image, &job, 1);
    if (space == 0) return tsr_fail(error, TSR_ERROR_CORRUPT, "the payload's model does not fit this image");
    void *workspace = engine->ops->take_workspace(engine, space);
    struct tsr_segment *tiles = malloc(((size_t)job.tiles + 1) * sizeof *tiles);
    enum tsr_status status = TSR_ERROR_LIMIT;
    if (workspace && tiles) {
        for (uint32_t t = 0; t < job.tiles; t++) {
            get_size(payload, size, &at, &tiles[t].size);
            tiles[t].bytes = payload + at;
            at += tiles[t].size;
        }
        job.tile = tiles;
        status = engine->ops->decode(engine, image, &job, 1, workspace);
        if (status == TSR_ERROR_CORRUPT && job.bad_tile == TSR_BAD_MODEL)
            tsr_fail(error, status, "the payload's model does not fit this image");
        else if (status == TSR_ERROR_CORRUPT)
            tsr_fail(error, status, "tile %u of the payload is corrupt", job.bad_tile);
    } else {
        tsr_fail(error, status, "no memory for %zu bytes of work space", space);
    }
    free(tiles);
    engine->ops->give_workspace(engine, workspace);
    return status;
}

enum tsr_status tsr_decode_frame(struct tsr_engine *engine, const struct tsr_image *image, const uint8_t *payload,
                                 size_t size, uint8_t *raster, struct tsr_error *error)
{
    TSR_TRY(tsr_check_pointer(engine, "engine", error));
    TSR_TRY(tsr_check_pointer(image, "image", error));
    TSR_TRY(tsr_check_pointer(raster, "raster", error));
    if (size > 0) TSR_TRY(tsr_check_pointer(payload, "payload", error));
    TSR_TRY(tsr_check_coded_image(image, error));
    const struct tsr_call call = {.run = decode_frame,
                                  .engine = engine,
                                  .image = image,
                                  .in = payload,
                                  .out = raster,
                                  .count = size,
                                  .error = error};
    return tsr_run_call(&call);
}
