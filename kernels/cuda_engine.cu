/* The CUDA engine: frames in, batches through the stages of cuda_stages.h, coded frames out. What the stages cannot do,
 * and what a call of CUDA's fails on, goes to the CPU engine inside. */
#include "device.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pthread.h>

#include "block_coder.cuh"
#include "cuda_predictive.h"
#include "cuda_stages.h"

extern "C" {
#include "cpu_engine.h"
#include "cuda_engine.h"
}

/* ---- Lanes ---------------------------------------------------------------------------------------------- */

namespace
{

enum { LANES = 8 };
#define BATCH_BYTES ((size_t)2 << 30) /* device memory that a batch may take, if there is so much for each lane */

/* What a call of encode works with: taken and given back under the engine's lock, kept until the end. */
struct lane {
    bool is_taken;
    cudaStream_t stream; /* NULL: none yet */
    uint8_t *device, *host;
    size_t device_bytes, host_bytes;
};

struct cuda_engine {
    tsr_engine base;
    tsr_engine *cpu;
    int device;
    size_t batch_bytes;   /* device memory that a batch of more than one frame may take */
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t given; /* a lane was given back */
    lane lanes[LANES];
    lane resident;     /* of tsr_cuda_encode_resident */
    uint32_t failures; /* batches that a call of CUDA's failed on */
    char failure[256]; /* the first of them; written once */
};

lane *take_lane(cuda_engine *engine)
{
    lane *free_lane = NULL;
    pthread_mutex_lock(&engine->lock);
    for (;;) {
        for (int i = LANES - 1; i >= 0; i--)
            if (!engine->lanes[i].is_taken && (!free_lane || engine->lanes[i].device_bytes >= free_lane->device_bytes))
                free_lane = &engine->lanes[i]; /* the one that has grown most, or the first */
        if (free_lane) break;
        pthread_cond_wait(&engine->given, &engine->lock);
    }
    free_lane->is_taken = true;
    pthread_mutex_unlock(&engine->lock);
    return free_lane;
}

void give_lane(cuda_engine *engine, lane *l)
{
    pthread_mutex_lock(&engine->lock);
    l->is_taken = false;
    pthread_cond_signal(&engine->given);
    pthread_mutex_unlock(&engine->lock);
}

void empty_lane(lane *l)
{
    if (l->device) cudaFree(l->device);
    if (l->host) cudaFreeHost(l->host);
    if (l->stream) cudaStreamDestroy(l->stream);
    const bool is_taken = l->is_taken;
    memset(l, 0, sizeof *l);
    l->is_taken = is_taken;
}

/* Grows by a quarter more than asked for, so that slowly growing images do not pay each time. */
cudaError_t grow_lane(lane *l, size_t device_bytes, size_t host_bytes)
{
    if (!l->stream) TSR_CUDA_TRY(cudaStreamCreateWithFlags(&l->stream, cudaStreamNonBlocking));
    if (l->device_bytes < device_bytes) {
        if (l->device) TSR_CUDA_TRY(cudaFree(l->device));
        l->device = NULL;
        l->device_bytes = 0;
        TSR_CUDA_TRY(cudaMalloc(reinterpret_cast<void **>(&l->device), device_bytes + device_bytes / 4));
        l->device_bytes = device_bytes + device_bytes / 4;
    }
    if (l->host_bytes < host_bytes) {
        if (l->host) TSR_CUDA_TRY(cudaFreeHost(l->host));
        l->host = NULL;
        l->host_bytes = 0;
        TSR_CUDA_TRY(cudaMallocHost(reinterpret_cast<void **>(&l->host), host_bytes + host_bytes / 4));
        l->host_bytes = host_bytes + host_bytes / 4;
    }
    return cudaSuccess;
}

/* ---- Both paths ----------------------------------------------------------------------------------------- */

bool can_encode(const tsr_image *image, const tsr_coding *coding)
{
    return tsr_cuda_can_encode(image, coding) || tsr_cuda_can_predict(image, coding);
}

/* Of path T only p->b is filled in. */
size_t lay_batch_out(tsr_predict_batch *p, const tsr_image *image, const tsr_coding *coding, uint32_t frames,
                     const uint8_t *d_rasters, void *d_base)
{
    if (coding->path == TSR_PATH_PREDICT) return tsr_predict_lay_out(p, image, coding, frames, d_rasters, d_base);
    p->predictor = NULL;
    p->residual = NULL;
    return tsr_cuda_lay_out(&p->b, image, coding, frames, d_rasters, d_base);
}

int run_batch(const tsr_predict_batch *p, cudaStream_t stream)
{
    return p->b.coding.path == TSR_PATH_PREDICT ? tsr_predict_encode_batch(p, stream)
                                                : tsr_cuda_encode_batch(&p->b, stream);
}

/* ---- Coded frames --------------------------------------------------------------------------------------- */

/* A batch that came back from the device, as the pool's threads see it. */
struct finished_batch {
    cuda_engine *engine;
    tsr_cuda_batch host; /* the results, in the lane's memory */
    const tsr_predictor_model *predictor; /* likewise; path P */
    const tsr_residual_model *residual;
    const uint8_t *payloads;
    tsr_encode_job *jobs;
    uint8_t *workspace;
    size_t space;
};

const char *const outside_bits = "words have bits outside their samples that are not what the header says";

/* False: the frame has second planes, which the stages do not make. */
bool is_whole(const tsr_cuda_batch &b, const tsr_frame_state &frame, bool *extends_sign)
{
    const tsr_image &image = b.image;
    *extends_sign = false;
    if (tsr_image_outside_bits(&image) == 0) return true;
    const uint32_t as_declared = frame.unexpected[image.is_signed ? 0 : 1];
    const uint32_t otherwise = frame.unexpected[image.is_signed ? 1 : 0];
    *extends_sign = image.is_signed;
    if (as_declared == 0) return true;
    *extends_sign = !image.is_signed;
    return otherwise == 0 && image.high_bit + 1 != image.bits_allocated;
}

/* What lies in a frame's work space. */
struct frame_space {
    tsr_frame_model *model;
    uint16_t *offsets;
    uint8_t *model_bytes, *tile_sizes, *payloads;
    tsr_coded_tile *tiles;
};

size_t lay_frame_out(frame_space *s, const tsr_cuda_batch &b, void *base)
{
    size_t used = 0;
    s->model = static_cast<tsr_frame_model *>(tsr_take(base, &used, sizeof *s->model));
    s->offsets = static_cast<uint16_t *>(tsr_take(base, &used, b.components * 65536 * sizeof(uint16_t)));
    s->model_bytes = static_cast<uint8_t *>(tsr_take(base, &used, TSR_FRAME_MODEL_LIMIT));
    s->tiles = static_cast<tsr_coded_tile *>(tsr_take(base, &used, b.tiles * sizeof *s->tiles));
    s->tile_sizes = static_cast<uint8_t *>(tsr_take(base, &used, b.tiles * TSR_TILE_SIZES_BYTES));
    s->payloads = static_cast<uint8_t *>(tsr_take(base, &used, b.components * tsr_cuda_plane_payload_bytes(&b)));
    return used;
}

void put_plane(tsr_plane_model *plane, const tsr_cuda_batch &b, uint32_t number, uint16_t *offsets)
{
    const tsr_plane_state &state = b.plane[number];
    const uint32_t *used = b.used ? b.used + (size_t)number * (b.values / 32) : NULL;
    const struct tsr_transform_plan plan = tsr_plane_plan(&b, number);
    plane->minimum = 65535u - state.not_minimum;
    plane->span = tsr_state_span(state);
    plane->range = state.range;
    plane->packed = state.packed != 0;
    plane->offset = offsets;
    plane->path = b.coding.path;
    plane->coder = b.coding.coder;
    plane->lossy = plan.lossy;
    plane->qp_index = plan.qp_index;
    plane->coarser_by = plan.coarser_by;
    plane->coarser_from = plan.coarser_from;
    plane->lapping = plan.lapping;
    plane->pairs = plan.pairs;
    plane->slice_side = plan.slice_side;
    if (plane->packed)
        for (uint32_t offset = 0, i = 0; offset < plane->span; offset++) {
            const uint32_t value = plane->minimum + offset;
            if (used[value / 32] >> value % 32 & 1u) offsets[i++] = (uint16_t)offset;
        }
    if (plane->span == 1) return;
    if (b.model) plane->coefficient = b.model[number];
    if (b.pair_model) plane->pair = b.pair_model[number];
    if (b.level_model) plane->level = b.level_model[number];
}

void finish_frame(void *context, unsigned index)
{
    const finished_batch &f = *static_cast<finished_batch *>(context);
    const tsr_cuda_batch &b = f.host;
    tsr_encode_job *job = &f.jobs[index];
    uint8_t *workspace = f.workspace + index * f.space;
    bool extends_sign;
    if (!is_whole(b, b.frame[index], &extends_sign)) {
        tsr_cpu_encode_frame(f.engine->base.pool, &b.image, &b.coding, job, workspace);
        job->engine = f.engine->cpu->ops->name;
        job->fallback = outside_bits;
        return;
    }
    frame_space s;
    lay_frame_out(&s, b, workspace);
    tsr_frame_model *model = s.model;
    memset(model, 0, sizeof *model);
    memset(s.tiles, 0, b.tiles * sizeof *s.tiles);
    model->tile_width = b.tile_width;
    model->tile_height = b.tile_height;
    model->colour = (tsr_colour)b.frame[index].colour;
    model->extends_sign = extends_sign;
    model->planes = tsr_image_planes(&b.image);

    const uint32_t first_plane = index * b.components, first_tile = first_plane * b.tiles;
    const uint64_t start = b.payload_offset[first_tile];
    memcpy(s.payloads, f.payloads + start, (size_t)(b.payload_offset[first_tile + b.components * b.tiles] - start));
    for (uint32_t c = 0; c < b.components; c++) {
        const uint32_t p = first_plane + c;
        model->plane[c].present = true;
        put_plane(&model->plane[c], b, p, s.offsets + (size_t)c * 65536);
        if (f.predictor && model->plane[c].span > 1) {
            model->plane[c].predictor = f.predictor[p];
            model->plane[c].residual = f.residual[p];
        }
        for (uint32_t t = 0; t < b.tiles; t++) {
            tsr_segment *segment = &s.tiles[t].segment[1 + c];
            segment->bytes = s.payloads + (b.payload_offset[p * b.tiles + t] - start);
            segment->size = b.payload_size[p * b.tiles + t];
        }
    }
    for (uint32_t t = 0; t < b.tiles; t++)
        tsr_put_tile_sizes(&s.tiles[t], model->planes, s.tile_sizes + t * TSR_TILE_SIZES_BYTES);
    struct tsr_bit_writer writer = tsr_bit_writer(s.model_bytes, TSR_FRAME_MODEL_LIMIT);
    tsr_put_frame_model(&writer, &b.image, model);
    job->coded.model.bytes = s.model_bytes;
    job->coded.model.size = tsr_flush_bits(&writer);
    assert(!writer.overflow);
    job->coded.tiles = b.tiles;
    job->coded.tile = s.tiles;
    job->engine = f.engine->base.ops->name;
    job->fallback = NULL;
}

/* The results as they lie behind host. */
tsr_predict_batch results_at(const tsr_predict_batch &p, uint8_t *host)
{
    const uint8_t *device = reinterpret_cast<const uint8_t *>(p.b.frame);
    const auto move = [&](auto *&array) {
        if (!array) return;
        array = reinterpret_cast<typename std::remove_reference<decltype(array)>::type>(
            host + (reinterpret_cast<const uint8_t *>(array) - device));
    };
    tsr_predict_batch results = p;
    tsr_cuda_batch &r = results.b;
    move(results.predictor);
    move(results.residual);
    move(r.plane);
    move(r.used);
    move(r.model);
    move(r.pair_model);
    move(r.level_model);
    move(r.payload_offset);
    move(r.payload_size);
    move(r.frame);
    return results;
}

struct raster_copy {
    const tsr_encode_job *jobs;
    uint8_t *to;
    size_t bytes;
};

void copy_raster(void *context, unsigned index)
{
    const raster_copy *c = static_cast<raster_copy *>(context);
    memcpy(c->to + index * c->bytes, c->jobs[index].raster, c->bytes);
}

/* A batch from rasters to coded frames. Waits twice: for the sizes, and for the payloads. */
cudaError_t encode_batch(cuda_engine *engine, lane *l, const tsr_image *image, const tsr_coding *coding,
                         tsr_encode_job *jobs, uint32_t frames, uint8_t *workspace, size_t space)
{
    tsr_predict_batch p;
    const tsr_cuda_batch &b = p.b;
    const size_t device_bytes = lay_batch_out(&p, image, coding, frames, NULL, NULL);
    const size_t raster_bytes = frames * b.frame_bytes, back = b.result_bytes + b.payload_bytes;
    TSR_CUDA_TRY(grow_lane(l, device_bytes, raster_bytes > back ? raster_bytes : back));
    lay_batch_out(&p, image, coding, frames, NULL, l->device);

    raster_copy copy = {jobs, l->host, b.frame_bytes};
    tsr_pool_run(engine->base.pool, copy_raster, &copy, frames);
    TSR_CUDA_TRY(
        cudaMemcpyAsync(const_cast<uint8_t *>(b.rasters), l->host, raster_bytes, cudaMemcpyHostToDevice, l->stream));
    TSR_CUDA_TRY((cudaError_t)run_batch(&p, l->stream));
    TSR_CUDA_TRY(cudaMemcpyAsync(l->host, b.frame, b.result_bytes, cudaMemcpyDeviceToHost, l->stream));
    TSR_CUDA_TRY(cudaStreamSynchronize(l->stream));

    const tsr_predict_batch results = results_at(p, l->host);
    finished_batch f = {engine, results.b,  results.predictor, results.residual, l->host + b.result_bytes,
                        jobs,   workspace, space};
    const uint64_t payload_bytes = f.host.payload_offset[b.planes * b.tiles];
    if (payload_bytes > b.payload_bytes) return cudaErrorUnknown; /* never, unless the device is broken */
    TSR_CUDA_TRY(cudaMemcpyAsync(l->host + b.result_bytes, b.payloads, (size_t)payload_bytes, cudaMemcpyDeviceToHost,
                                 l->stream));
    TSR_CUDA_TRY(cudaStreamSynchronize(l->stream));
    tsr_pool_run(engine->base.pool, finish_frame, &f, frames);
    return cudaSuccess;
}

/* ---- The engine's operations ---------------------------------------------------------------------------- */

cuda_engine *of(tsr_engine *engine)
{
    return reinterpret_cast<cuda_engine *>(engine);
}

const cuda_engine *of(const tsr_engine *engine)
{
    return reinterpret_cast<const cuda_engine *>(engine);
}

/* A frame has the same work space whichever engine codes it. */
size_t frame_space_bytes(const tsr_engine *engine, const tsr_image *image)
{
    size_t most = tsr_cpu_encode_space(engine->pool, image);
    for (int number = 0; number < 3; number++) {
        tsr_coding coding = {};
        coding.path = number ? TSR_PATH_TRANSFORM : TSR_PATH_PREDICT;
        coding.coder = number == 2 ? TSR_CODER_CAVLC : TSR_CODER_HUFFMAN;
        if (!can_encode(image, &coding)) continue;
        tsr_predict_batch p;
        frame_space s;
        lay_batch_out(&p, image, &coding, 1, NULL, NULL);
        const size_t bytes = lay_frame_out(&s, p.b, NULL);
        if (bytes > most) most = bytes;
    }
    return most;
}

size_t encode_workspace(const tsr_engine *engine, const tsr_image *image, uint32_t frames)
{
    const size_t space = frame_space_bytes(engine, image);
    return frames == 0 || space > SIZE_MAX / frames ? 0 : space * frames;
}

size_t decode_workspace(const tsr_engine *engine, const tsr_image *image, const tsr_decode_job *jobs, uint32_t frames)
{
    return of(engine)->cpu->ops->decode_workspace(of(engine)->cpu, image, jobs, frames);
}

void *take_workspace(tsr_engine *engine, size_t bytes)
{
    return of(engine)->cpu->ops->take_workspace(of(engine)->cpu, bytes);
}

void give_workspace(tsr_engine *engine, void *workspace)
{
    of(engine)->cpu->ops->give_workspace(of(engine)->cpu, workspace);
}

/* Counts a failed batch and remembers the first one's sentence. */
const char *note_failure(cuda_engine *engine, cudaError_t error)
{
    pthread_mutex_lock(&engine->lock);
    if (engine->failures++ == 0)
        snprintf(engine->failure, sizeof engine->failure, "the GPU failed: %s", cudaGetErrorString(error));
    pthread_mutex_unlock(&engine->lock);
    return engine->failure;
}

void encode_on_cpu(cuda_engine *engine, const tsr_image *image, const tsr_coding *coding, tsr_encode_job *jobs,
                   uint32_t frames, void *workspace, const char *reason)
{
    engine->cpu->ops->encode(engine->cpu, image, coding, jobs, frames, workspace);
    for (uint32_t i = 0; i < frames; i++) jobs[i].fallback = reason;
}

tsr_status encode(tsr_engine *base, const tsr_image *image, const tsr_coding *coding, tsr_encode_job *jobs,
                  uint32_t frames, void *workspace)
{
    cuda_engine *engine = of(base);
    if (!can_encode(image, coding)) {
        encode_on_cpu(engine, image, coding, jobs, frames, workspace,
                      coding->path == TSR_PATH_PREDICT ? "the GPU does not code this by prediction"
                      : image->bits_allocated % 32 == 0 || image->bits_allocated == 1
                          ? "the GPU does not code samples of 1 or 32 bits"
                          : "the GPU does not code by prediction");
        return TSR_OK;
    }
    tsr_predict_batch one;
    const size_t space = frame_space_bytes(base, image), each = lay_batch_out(&one, image, coding, 1, NULL, NULL);
    const uint32_t most = each < engine->batch_bytes ? (uint32_t)(engine->batch_bytes / each) : 1;
    lane *l = take_lane(engine);
    cudaSetDevice(engine->device); /* a thread of the caller's may have another; if it fails, what follows does */
    for (uint32_t first = 0; first < frames; first += most) {
        const uint32_t count = frames - first < most ? frames - first : most;
        uint8_t *there = static_cast<uint8_t *>(workspace) + first * space;
        const cudaError_t error = encode_batch(engine, l, image, coding, jobs + first, count, there, space);
        if (error == cudaSuccess) continue;
        empty_lane(l);
        cudaGetLastError(); /* it has been told */
        const char *reason = note_failure(engine, error);
        for (uint32_t i = 0; i < count; i++)
            encode_on_cpu(engine, image, coding, jobs + first + i, 1, there + i * space, reason);
    }
    give_lane(engine, l);
    return TSR_OK;
}

tsr_status decode(tsr_engine *engine, const tsr_image *image, tsr_decode_job *jobs, uint32_t frames, void *workspace)
{
    return of(engine)->cpu->ops->decode(of(engine)->cpu, image, jobs, frames, workspace);
}

void destroy(tsr_engine *base)
{
    cuda_engine *engine = of(base);
    for (int i = 0; i < LANES; i++) empty_lane(&engine->lanes[i]);
    empty_lane(&engine->resident);
    engine->cpu->ops->destroy(engine->cpu); /* with the pool */
    pthread_cond_destroy(&engine->given);
    pthread_mutex_destroy(&engine->lock);
    free(engine);
}

const tsr_engine_ops cuda_engine_ops = {
#if defined(TSR_CUDA_EMULATED)
    "emulated",
#else
    "cuda",
#endif
    encode_workspace, decode_workspace, take_workspace, give_workspace, encode, decode, destroy,
};

/* Shows that there is code for the device. */
__global__ void k_nothing()
{
}

/* NULL if the current device can run the kernels that were built, else why not, in static text. */
const char *device_reason()
{
    int devices = 0, device = 0, major = 0, minor = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        cudaGetLastError();
        return "there is no CUDA device, or no driver for it";
    }
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess ||
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) != cudaSuccess) {
        cudaGetLastError();
        return "the CUDA device does not answer";
    }
    if (10 * major + minor < 75) return "the CUDA device is older than compute capability 7.5";
    if (tsr_launch(k_nothing, 1, TSR_WARP, 0, 0) != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess) {
        cudaGetLastError();
        return "the CUDA device cannot be used: it is busy, its driver is too old, or this build has no code for it";
    }
    return NULL;
}

} // namespace

struct tsr_engine *tsr_cuda_engine_create(struct tsr_pool *pool, const char **reason)
{
    *reason = device_reason();
    cuda_engine *engine = *reason ? NULL : static_cast<cuda_engine *>(calloc(1, sizeof *engine));
    if (!engine) {
        if (!*reason) *reason = "there is no memory";
        tsr_pool_destroy(pool);
        return NULL;
    }
    engine->cpu = tsr_cpu_engine_create(pool); /* has the pool now, in any case */
    if (!engine->cpu) {
        *reason = "there is no memory";
        free(engine);
        return NULL;
    }
    size_t free_bytes = 0, all_bytes = 0;
    cudaGetDevice(&engine->device);
    cudaMemGetInfo(&free_bytes, &all_bytes);
    engine->batch_bytes = free_bytes / (2 * LANES) < BATCH_BYTES ? free_bytes / (2 * LANES) : BATCH_BYTES;
    pthread_mutex_init(&engine->lock, NULL);
    pthread_cond_init(&engine->given, NULL);
    engine->base.ops = &cuda_engine_ops;
    engine->base.pool = engine->cpu->pool;
    return &engine->base;
}

int tsr_cuda_encode_resident(struct tsr_engine *base, const struct tsr_image *image, const struct tsr_coding *coding,
                             const uint8_t *d_rasters, uint32_t frames, uint64_t *payload_bytes, void *stream)
{
    lane *l = &of(base)->resident;
    tsr_predict_batch p;
    const tsr_cuda_batch &b = p.b;
    if (!can_encode(image, coding)) return cudaErrorInvalidValue;
    const size_t device_bytes = lay_batch_out(&p, image, coding, frames, d_rasters, NULL);
    TSR_CUDA_TRY(grow_lane(l, device_bytes, sizeof(uint64_t)));
    lay_batch_out(&p, image, coding, frames, d_rasters, l->device);
    TSR_CUDA_TRY((cudaError_t)run_batch(&p, static_cast<cudaStream_t>(stream)));
    if (!payload_bytes) return cudaSuccess;
    TSR_CUDA_TRY(cudaMemcpyAsync(l->host, b.payload_offset + (size_t)b.planes * b.tiles, sizeof(uint64_t),
                                 cudaMemcpyDeviceToHost, static_cast<cudaStream_t>(stream)));
    TSR_CUDA_TRY(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)));
    memcpy(payload_bytes, l->host, sizeof(uint64_t));
    return cudaSuccess;
}
