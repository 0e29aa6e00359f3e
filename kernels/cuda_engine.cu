/* The CUDA engine: frames in, batches through the stages of cuda_stages.h, coded frames out. What the stages cannot do,
 * and what a call of CUDA's fails on, goes to the CPU engine inside. */
#include "device.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pthread.h>

#include "block_coder.cuh"
#include "cuda_predictive.h"
#include "cuda_decode.h"
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

/* Path P with CAVLC is coded in path T's slices; for both only p->b is filled in. */
size_t lay_batch_out(tsr_predict_batch *p, const tsr_image *image, const tsr_coding *coding, uint32_t frames,
                     const uint8_t *d_rasters, void *d_base)
{
    if (tsr_cuda_can_predict(image, coding)) return tsr_predict_lay_out(p, image, coding, frames, d_rasters, d_base);
    p->predictor = NULL;
    p->residual = NULL;
    return tsr_cuda_lay_out(&p->b, image, coding, frames, d_rasters, d_base);
}

int run_batch(const tsr_predict_batch *p, cudaStream_t stream)
{
    return tsr_cuda_can_predict(&p->b.image, &p->b.coding) ? tsr_predict_encode_batch(p, stream)
                                                           : tsr_cuda_encode_batch(&p->b, stream);
}

/* ---- Coded frames --------------------------------------------------------------------------------------- */

/* A batch that came back from the device, as the pool's threads see it. */
struct finished_batch {
    cuda_engine *engine;
    tsr_cuda_batch host;                  /* the results, in the lane's memory */
    const tsr_predictor_model *predictor; /* likewise; path P */
    const tsr_residual_model *residual;
    const uint8_t *payloads;
    tsr_encode_job *jobs;
    uint8_t *workspace;
    size_t space;
};

const char *const packed_colours = "the GPU does not pack colours";
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
    const bool whole = is_whole(b, b.frame[index], &extends_sign);
    if (!whole || tsr_may_pack_colours(b.frame[index])) {
        tsr_cpu_encode_frame(f.engine->base.pool, &b.image, &b.coding, job, workspace);
        job->engine = f.engine->base.cpu->ops->name;
        job->fallback = whole ? packed_colours : outside_bits;
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
    finished_batch f = {engine,    results.b, results.predictor, results.residual, l->host + b.result_bytes, jobs,
                        workspace, space};
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
    return engine->cpu->ops->decode_workspace(engine->cpu, image, jobs, frames);
}

void *take_workspace(tsr_engine *engine, size_t bytes)
{
    return engine->cpu->ops->take_workspace(engine->cpu, bytes);
}

void give_workspace(tsr_engine *engine, void *workspace)
{
    engine->cpu->ops->give_workspace(engine->cpu, workspace);
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
    engine->base.cpu->ops->encode(engine->base.cpu, image, coding, jobs, frames, workspace);
    for (uint32_t i = 0; i < frames; i++) jobs[i].fallback = reason;
}

tsr_status encode(tsr_engine *base, const tsr_image *image, const tsr_coding *coding, tsr_encode_job *jobs,
                  uint32_t frames, void *workspace)
{
    cuda_engine *engine = of(base);
    if (!can_encode(image, coding)) {
        encode_on_cpu(engine, image, coding, jobs, frames, workspace,
                      image->bits_allocated % 32 == 0 || image->bits_allocated == 1
                          ? "the GPU does not code samples of 1 or 32 bits"
                          : "the GPU does not code bounded errors");
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

/* ---- Decoding ------------------------------------------------------------------------------------------- */

/* What stands in the lane's host memory, on the way there and back. */
struct decode_staging {
    tsr_decode_job *jobs;
    uint8_t *payloads;      /* each frame's model, then its tiles */
    tsr_cuda_piece *pieces; /* models of all frames, then tiles of all frames */
    uint32_t frames, tiles;
    const tsr_cuda_decode_frame *states; /* the results */
    const uint8_t *rasters;
    size_t frame_bytes;
};

size_t job_bytes(const tsr_decode_job &job)
{
    size_t bytes = job.model.size;
    for (uint32_t t = 0; t < job.tiles; t++) bytes += job.tile[t].size;
    return bytes;
}

void stage_frame(void *context, unsigned index)
{
    const decode_staging &s = *static_cast<decode_staging *>(context);
    const tsr_decode_job &job = s.jobs[index];
    const auto put = [&](tsr_cuda_piece *piece, tsr_segment segment, uint64_t at) {
        *piece = {at, (uint32_t)segment.size, 1};
        if (segment.size) memcpy(s.payloads + at, segment.bytes, segment.size);
        return at + segment.size;
    };
    uint64_t at = put(&s.pieces[index], job.model, s.pieces[index].offset); /* which the caller has set */
    for (uint32_t t = 0; t < s.tiles; t++) at = put(&s.pieces[s.frames + (size_t)index * s.tiles + t], job.tile[t], at);
}

void take_raster(void *context, unsigned index)
{
    const decode_staging &s = *static_cast<decode_staging *>(context);
    if (s.jobs[index].status == TSR_OK && !s.jobs[index].fallback)
        memcpy(s.jobs[index].raster, s.rasters + index * s.frame_bytes, s.frame_bytes);
}

/* What the first frame with coded planes has; model, offsets and lists: room for one. */
void look_ahead(const tsr_image *image, const tsr_decode_job *jobs, uint32_t frames, tsr_frame_model *model,
                uint16_t *offsets, uint16_t *lists, bool *has_lanes, bool *has_transform)
{
    *has_lanes = *has_transform = false;
    for (uint32_t i = 0; i < frames && !*has_lanes && !*has_transform; i++) {
        for (int p = 0; p < TSR_PLANES_LIMIT; p++) model->plane[p].offset = offsets + (size_t)p * 65536;
        for (int c = 0; c < 3; c++) model->colours.list[c] = lists + (size_t)c * 65536;
        struct tsr_bit_reader reader = tsr_bit_reader(jobs[i].model.bytes, jobs[i].model.size);
        if (!tsr_get_frame_model(&reader, image, model)) continue;
        for (int p = 0; p < model->planes; p++)
            if (model->plane[p].present && model->plane[p].range > 1)
                (tsr_is_of_lanes(&model->plane[p]) ? *has_lanes : *has_transform) = true;
    }
}

const char *const other_model = "a frame has lanes, paths or slices that the GPU is not prepared for";

/* Frames of one cut, from payloads to rasters. Waits once. */
cudaError_t decode_batch(cuda_engine *engine, lane *l, const tsr_image *image, const tsr_frame_model &cut,
                         tsr_decode_job *jobs, uint32_t frames, bool has_lanes, bool has_transform)
{
    tsr_cuda_decode_batch b;
    size_t payload_bytes = 0;
    for (uint32_t i = 0; i < frames; i++) payload_bytes += job_bytes(jobs[i]);
    const size_t device_bytes =
        tsr_cuda_decode_lay_out(&b, image, &cut, frames, has_lanes, has_transform, payload_bytes, NULL, NULL, NULL);
    const size_t pieces = frames + (size_t)frames * b.tiles, aligned = (payload_bytes + 15) / 16 * 16;
    const size_t there = aligned + pieces * sizeof(tsr_cuda_piece);
    const size_t state_bytes = (frames * sizeof(tsr_cuda_decode_frame) + 15) / 16 * 16;
    const size_t back = state_bytes + frames * b.frame_bytes;
    TSR_CUDA_TRY(grow_lane(l, device_bytes, there > back ? there : back));
    tsr_cuda_decode_lay_out(&b, image, &cut, frames, has_lanes, has_transform, payload_bytes, NULL, NULL, l->device);

    decode_staging s = {jobs,
                        l->host,
                        reinterpret_cast<tsr_cuda_piece *>(l->host + aligned),
                        frames,
                        b.tiles,
                        reinterpret_cast<const tsr_cuda_decode_frame *>(l->host),
                        l->host + state_bytes,
                        b.frame_bytes};
    uint64_t at = 0;
    for (uint32_t i = 0; i < frames; i++) {
        s.pieces[i].offset = at;
        at += job_bytes(jobs[i]);
    }
    tsr_pool_run(engine->base.pool, stage_frame, &s, frames);
    const auto copy = [&](const void *to, const void *from, size_t bytes) {
        return cudaMemcpyAsync(const_cast<void *>(to), from, bytes, cudaMemcpyHostToDevice, l->stream);
    };
    TSR_CUDA_TRY(copy(b.payloads, s.payloads, payload_bytes));
    TSR_CUDA_TRY(cudaMemsetAsync(const_cast<uint8_t *>(b.payloads) + payload_bytes, 0, TSR_DECODE_SPARE, l->stream));
    TSR_CUDA_TRY(copy(b.model, s.pieces, frames * sizeof *s.pieces));
    TSR_CUDA_TRY(copy(b.tile, s.pieces + frames, (pieces - frames) * sizeof *s.pieces));
    TSR_CUDA_TRY((cudaError_t)tsr_cuda_decode_frames(&b, l->stream));
    TSR_CUDA_TRY(cudaMemcpyAsync(l->host, b.frame, frames * sizeof *b.frame, cudaMemcpyDeviceToHost, l->stream));
    TSR_CUDA_TRY(
        cudaMemcpyAsync(l->host + state_bytes, b.rasters, frames * b.frame_bytes, cudaMemcpyDeviceToHost, l->stream));
    TSR_CUDA_TRY(cudaStreamSynchronize(l->stream));
    for (uint32_t i = 0; i < frames; i++) {
        const tsr_cuda_decode_frame state = s.states[i];
        const bool is_good = state.state == TSR_DECODE_OK && state.bad_tile == TSR_NO_BAD_TILE;
        jobs[i].status = is_good ? TSR_OK : TSR_ERROR_CORRUPT;
        jobs[i].bad_tile = state.state == TSR_DECODE_OK ? state.bad_tile : TSR_BAD_MODEL;
        jobs[i].engine = engine->base.ops->name;
        jobs[i].fallback = state.state == TSR_DECODE_ELSEWHERE ? other_model : NULL;
    }
    tsr_pool_run(engine->base.pool, take_raster, &s, frames);
    return cudaSuccess;
}

void decode_on_cpu(cuda_engine *engine, const tsr_image *image, tsr_decode_job *jobs, uint32_t frames, void *workspace,
                   const char *reason)
{
    engine->base.cpu->ops->decode(engine->base.cpu, image, jobs, frames, workspace);
    for (uint32_t i = 0; i < frames; i++) jobs[i].fallback = reason;
}

/* How a frame is cut; false where that shows that its model is none, or another number of tiles'. */
bool peek_cut(const tsr_image *image, const tsr_decode_job &job, tsr_frame_model *cut)
{
    struct tsr_bit_reader reader = tsr_bit_reader(job.model.bytes, job.model.size);
    return tsr_get_tile_sides(&reader, image, cut) && tsr_tile_count(image, cut) == job.tiles;
}

/* Frames from this one on that are cut alike and fit the memory; 0 if this one has no model. */
uint32_t frames_alike(const cuda_engine *engine, const tsr_image *image, const tsr_decode_job *jobs, uint32_t frames,
                      tsr_frame_model *cut, tsr_frame_model *other)
{
    tsr_cuda_decode_batch b;
    size_t payload_bytes = 0;
    uint32_t count = 0;
    if (!peek_cut(image, jobs[0], cut)) return 0;
    const size_t each = tsr_cuda_decode_lay_out(&b, image, cut, 1, true, true, 0, NULL, NULL, NULL);
    for (; count < frames; count++) {
        payload_bytes += job_bytes(jobs[count]);
        if (count > 0 && (count + 1) * each + payload_bytes > engine->batch_bytes) break;
        if (count > 0 && (!peek_cut(image, jobs[count], other) || other->tile_width != cut->tile_width ||
                          other->tile_height != cut->tile_height))
            break;
    }
    return count;
}

/* Room for what the host reads of models. */
struct peeked_models {
    tsr_frame_model model, other;
    uint16_t offsets[TSR_PLANES_LIMIT * 65536];
    uint16_t lists[3 * 65536];
};

tsr_status decode(tsr_engine *base, const tsr_image *image, tsr_decode_job *jobs, uint32_t frames, void *workspace)
{
    cuda_engine *engine = of(base);
    peeked_models *peeked = tsr_cuda_can_decode(image) ? static_cast<peeked_models *>(malloc(sizeof *peeked)) : NULL;
    if (!peeked) {
        decode_on_cpu(engine, image, jobs, frames, workspace,
                      tsr_cuda_can_decode(image) ? "there is no memory"
                                                 : "the GPU does not decode samples of 1 or 32 bits");
    } else {
        lane *l = take_lane(engine);
        cudaSetDevice(engine->device);
        for (uint32_t first = 0, count; first < frames; first += count) {
            tsr_frame_model &cut = peeked->model;
            count = frames_alike(engine, image, jobs + first, frames - first, &cut, &peeked->other);
            if (count == 0) {
                count = 1;
                jobs[first].status = TSR_ERROR_CORRUPT;
                jobs[first].bad_tile = TSR_BAD_MODEL;
                jobs[first].engine = base->ops->name;
                jobs[first].fallback = NULL;
                continue;
            }
            bool has_lanes, has_transform;
            look_ahead(image, jobs + first, count, &peeked->other, peeked->offsets, peeked->lists, &has_lanes,
                       &has_transform);
            const cudaError_t error =
                decode_batch(engine, l, image, cut, jobs + first, count, has_lanes, has_transform);
            if (error != cudaSuccess) {
                empty_lane(l);
                cudaGetLastError(); /* it has been told */
                decode_on_cpu(engine, image, jobs + first, count, workspace, note_failure(engine, error));
                continue;
            }
            for (uint32_t i = first; i < first + count; i++)
                if (jobs[i].fallback) decode_on_cpu(engine, image, &jobs[i], 1, workspace, jobs[i].fallback);
        }
        give_lane(engine, l);
        free(peeked);
    }
    for (uint32_t i = 0; i < frames; i++)
        if (jobs[i].status != TSR_OK) return jobs[i].status;
    return TSR_OK;
}

void destroy(tsr_engine *base)
{
    cuda_engine *engine = of(base);
    for (int i = 0; i < LANES; i++) empty_lane(&engine->lanes[i]);
    empty_lane(&engine->resident);
    engine->base.cpu->ops->destroy(engine->base.cpu); /* with the pool */
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
    engine->base.cpu = tsr_cpu_engine_create(pool); /* has the pool now, in any case */
    if (!engine->base.cpu) {
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
    engine->base.pool = engine->base.cpu->pool;
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
