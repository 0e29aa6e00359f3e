/* Decoding calls of the CUDA engine: payloads into a batch, rasters out of its results. */
#include "kernels/machine/device.cuh"

#include <string.h>

#include "calls.cuh"

extern "C" {
#include "kernels/measure/difference_cpu.h"
}

namespace
{

/* A call's frames, as its batch's steps see them. */
struct decoding_call {
    tsr_engine *engine;
    tsr_decode_job *jobs;
};

using shared_frames = tsr_shared_frames<decoding_call>;

const char *const other_model = "a frame has lanes, paths, slices or drawn planes that the GPU is not prepared for";

/* ---- A batch -------------------------------------------------------------------------------------------- */

/* The area on the way to the device: payloads, each frame's model and then its tiles; then the pieces that say where
 * they are, models of all frames, then tiles of all frames; where frames are measured, what is measured of them. At the
 * end of the area stand originals, or bases: no frame has both. The first one is the last. On the way back: states,
 * sums, then rasters. */

/* True if copies between the raster and the device can run without the area. */
bool is_in_stock(const decoding_call &call, const uint8_t *raster)
{
    return tsr_stock_has(&tsr_cuda_engine_of(call.engine)->stock, raster);
}

void stage(tsr_batch *batch, const tsr_batch_call *call)
{
    const decoding_call *frames = static_cast<const decoding_call *>(call->context);
    uint8_t *at = batch->host + call->payload_at;
    const auto put = [&](tsr_segment segment) {
        if (segment.size) memcpy(at, segment.bytes, segment.size);
        at += segment.size;
    };
    for (uint32_t i = 0; i < call->frames; i++) {
        put(frames->jobs[i].model);
        for (uint32_t t = 0; t < frames->jobs[i].tiles; t++) put(frames->jobs[i].tile[t]);
        const tsr_decode_job &job = frames->jobs[i];
        uint8_t *const at_end = tsr_place_at_end(batch, call->first + i, call->frame_bytes);
        if (batch->kind.measures && !is_in_stock(*frames, job.original))
            memcpy(at_end, job.original, call->frame_bytes);
        if (batch->kind.has_bases) memcpy(at_end, job.base.raster, call->frame_bytes);
    }
}

void put_pieces(const tsr_batch *batch, tsr_cuda_piece *pieces)
{
    for (const tsr_batch_call *call = batch->calls; call; call = call->next) {
        uint64_t at = call->payload_at;
        const auto put = [&](tsr_cuda_piece *piece, tsr_segment segment) {
            *piece = {at, (uint32_t)segment.size, 1};
            at += segment.size;
        };
        for (uint32_t i = 0; i < call->frames; i++) {
            const tsr_decode_job &job = static_cast<const decoding_call *>(call->context)->jobs[i];
            const uint32_t number = call->first + i;
            put(&pieces[number], job.model);
            for (uint32_t t = 0; t < job.tiles; t++)
                put(&pieces[batch->frames + (size_t)number * job.tiles + t], job.tile[t]);
        }
    }
}

/* Copies originals, and what is measured of their frames, to the device. measured: room for it in the area. */
cudaError_t copy_originals(const tsr_batch *batch, tsr_measured *measured)
{
    const tsr_measure_batch &m = batch->measure;
    for (const tsr_batch_call *call = batch->calls; call; call = call->next) {
        const decoding_call &frames = *static_cast<const decoding_call *>(call->context);
        for (uint32_t i = 0; i < call->frames; i++) {
            const tsr_decode_job &job = frames.jobs[i];
            const uint32_t number = call->first + i;
            measured[number] = *job.measured;
            TSR_CUDA_TRY(cudaMemcpyAsync(
                m.originals + number * m.frame_bytes,
                is_in_stock(frames, job.original) ? job.original : tsr_place_at_end(batch, number, m.frame_bytes),
                m.frame_bytes, cudaMemcpyHostToDevice, batch->slot->stream));
        }
    }
    return cudaMemcpyAsync(m.measured, measured, m.frames * sizeof *measured, cudaMemcpyHostToDevice,
                           batch->slot->stream);
}

/* Copies bases to the device. */
cudaError_t copy_bases(const tsr_batch *batch)
{
    const tsr_cuda_decode_batch &b = batch->decode;
    for (uint32_t f = 0; f < b.frames; f++)
        TSR_CUDA_TRY(cudaMemcpyAsync(b.bases.rasters + f * b.frame_bytes, tsr_place_at_end(batch, f, b.frame_bytes),
                                     b.frame_bytes, cudaMemcpyHostToDevice, batch->slot->stream));
    return cudaSuccess;
}

/* Copies rasters out: to those in the stock, the others to the area. Where frames are damaged nobody reads them. */
cudaError_t copy_rasters(const tsr_batch *batch, uint8_t *area)
{
    const tsr_cuda_decode_batch &b = batch->decode;
    return tsr_copy_frames<decoding_call>(
        batch,
        [](const decoding_call &call, uint32_t i) {
            return is_in_stock(call, call.jobs[i].raster) ? call.jobs[i].raster : NULL;
        },
        [&](uint8_t *place, uint32_t first, uint32_t frames) {
            return cudaMemcpyAsync(place ? place : area + first * b.frame_bytes, b.rasters + first * b.frame_bytes,
                                   frames * b.frame_bytes, cudaMemcpyDeviceToHost, batch->slot->stream);
        });
}

/* Copies in, runs the stages, and copies states, sums and rasters out. Waits once. */
cudaError_t run(tsr_batch *batch)
{
    tsr_slot *slot = batch->slot;
    tsr_cuda_decode_batch &b = batch->decode;
    const tsr_image *image = &batch->kind.image;
    const uint32_t frames = batch->frames;
    const tsr_tiling cut = {(int32_t)image->columns, (int32_t)image->rows, batch->kind.tile_width,
                            batch->kind.tile_height};
    const bool measures = batch->kind.measures, has_bases = batch->kind.has_bases;
    const size_t decode_bytes = tsr_cuda_decode_lay_out(&b, image, &cut, frames, batch->has_lanes, batch->has_transform,
                                                        has_bases, batch->payload_bytes, NULL, NULL, NULL);
    const size_t bytes =
        decode_bytes + (measures ? tsr_cuda_measure_lay_out(&batch->measure, image, frames, NULL, NULL) : 0);
    if (bytes > batch->device_limit) return cudaErrorMemoryAllocation;
    TSR_CUDA_TRY(tsr_slot_grow(slot, bytes, batch->device_worth, batch->device_limit));
    tsr_cuda_decode_lay_out(&b, image, &cut, frames, batch->has_lanes, batch->has_transform, has_bases,
                            batch->payload_bytes, NULL, NULL, slot->d_bytes);
    b.may_have_base = batch->kind.on_bases;
    if (measures) tsr_cuda_measure_lay_out(&batch->measure, image, frames, b.rasters, slot->d_bytes + decode_bytes);
    const size_t tiles = (size_t)frames * b.tiles, state_bytes = (frames * sizeof *b.frame + 15) / 16 * 16,
                 sum_bytes = measures ? frames * sizeof *batch->host_sums : 0;
    tsr_cuda_piece *const pieces =
        reinterpret_cast<tsr_cuda_piece *>(batch->host + (batch->payload_bytes + 15) / 16 * 16);
    put_pieces(batch, pieces);
    batch->host_states = reinterpret_cast<const tsr_cuda_decode_frame *>(batch->host);
    batch->host_sums = reinterpret_cast<const tsr_frame_sums *>(batch->host + state_bytes);
    batch->host_rasters = batch->host + state_bytes + sum_bytes;

    const auto copy = [&](const void *to, const void *from, size_t size) {
        return cudaMemcpyAsync(const_cast<void *>(to), from, size, cudaMemcpyHostToDevice, slot->stream);
    };
    TSR_CUDA_TRY(tsr_slot_note(slot, TSR_SLOT_BEGIN));
    TSR_CUDA_TRY(copy(b.payloads, batch->host, batch->payload_bytes));
    TSR_CUDA_TRY(
        cudaMemsetAsync(const_cast<uint8_t *>(b.payloads) + batch->payload_bytes, 0, TSR_DECODE_SPARE, slot->stream));
    TSR_CUDA_TRY(copy(b.model, pieces, frames * sizeof *pieces));
    TSR_CUDA_TRY(copy(b.tile, pieces + frames, tiles * sizeof *pieces));
    if (has_bases) TSR_CUDA_TRY(copy_bases(batch));
    if (measures) TSR_CUDA_TRY(copy_originals(batch, reinterpret_cast<tsr_measured *>(pieces + frames + tiles)));
    TSR_CUDA_TRY(tsr_slot_note(slot, TSR_SLOT_COPIED_IN));
    TSR_CUDA_TRY((cudaError_t)tsr_cuda_decode_frames(&b, slot->stream));
    if (measures) TSR_CUDA_TRY((cudaError_t)tsr_cuda_measure(&batch->measure, slot->stream));
    TSR_CUDA_TRY(tsr_slot_note(slot, TSR_SLOT_DONE));
    TSR_CUDA_TRY(cudaMemcpyAsync(batch->host, b.frame, frames * sizeof *b.frame, cudaMemcpyDeviceToHost, slot->stream));
    if (measures)
        TSR_CUDA_TRY(cudaMemcpyAsync(batch->host + state_bytes, batch->measure.sums, sum_bytes, cudaMemcpyDeviceToHost,
                                     slot->stream));
    TSR_CUDA_TRY(copy_rasters(batch, batch->host + state_bytes + sum_bytes));
    TSR_CUDA_TRY(tsr_slot_note(slot, TSR_SLOT_RESULTS));
    TSR_CUDA_TRY(tsr_slot_wait(slot, TSR_SLOT_RESULTS));
    batch->kernel_ns = tsr_slot_ns(slot, TSR_SLOT_COPIED_IN, TSR_SLOT_DONE);
    batch->transfer_ns =
        tsr_slot_ns(slot, TSR_SLOT_BEGIN, TSR_SLOT_COPIED_IN) + tsr_slot_ns(slot, TSR_SLOT_DONE, TSR_SLOT_RESULTS);
    return cudaSuccess;
}

void finish_frame(void *context, unsigned index)
{
    const shared_frames &f = *static_cast<const shared_frames *>(context);
    const uint32_t number = f.call->first + index;
    const tsr_cuda_decode_frame frame = f.batch->host_states[number];
    tsr_decode_job *job = &f.frames->jobs[index];
    const bool is_good = frame.state == TSR_DECODE_OK && frame.bad_tile == TSR_NO_BAD_TILE;
    job->status = is_good ? TSR_OK : TSR_ERROR_CORRUPT;
    job->bad_tile = frame.state == TSR_DECODE_OK ? frame.bad_tile : TSR_BAD_MODEL;
    job->engine = f.frames->engine->ops->name;
    job->fallback = frame.state == TSR_DECODE_ELSEWHERE ? other_model : NULL;
    const size_t bytes = f.call->frame_bytes;
    if (is_good && !is_in_stock(*f.frames, job->raster))
        memcpy(job->raster, f.batch->host_rasters + number * bytes, bytes);
    if (!is_good || !f.batch->kind.measures) return;
    job->difference = {};
    tsr_add_frame_sums(job->measured, &f.batch->host_sums[number].difference, &job->difference);
    job->is_measured = true;
}

void finish(tsr_batch *batch, const tsr_batch_call *call)
{
    tsr_over_pool<decoding_call>(batch, call, finish_frame);
}

const tsr_batch_steps decoding_steps = {stage, finish, run};

/* ---- What batches the frames of a call go to -------------------------------------------------------------- */

/* Finds whether the first coded plane that is not drawn is of lanes, or another: those that differ from it are left to
 * the CPU engine. model, offsets, lists: room for one model. */
void look_ahead(const tsr_image *image, const tsr_decode_job *jobs, uint32_t frames, tsr_frame_model *model,
                uint16_t *offsets, uint16_t *lists, bool *has_lanes, bool *has_transform)
{
    *has_lanes = *has_transform = false;
    for (int p = 0; p < TSR_PLANES_LIMIT; p++) model->plane[p].offset = offsets + (size_t)p * 65536;
    for (int c = 0; c < 3; c++) model->colours.list[c] = lists + (size_t)c * 65536;
    for (uint32_t i = 0; i < frames; i++) {
        struct tsr_bit_reader reader = tsr_bit_reader(jobs[i].model.bytes, jobs[i].model.size);
        if (!tsr_get_frame_head(&reader, image, jobs[i].base.room != NULL, model)) continue;
        for (int p = 0; p < model->planes && tsr_get_plane_start(&reader, image, model, p); p++) {
            const tsr_plane_model *const plane = &model->plane[p];
            if (!tsr_is_coded(plane) || plane->drawn) continue;
            (tsr_is_of_lanes(plane) ? *has_lanes : *has_transform) = true;
            return;
        }
    }
}

size_t job_bytes(const tsr_decode_job &job)
{
    size_t bytes = job.model.size;
    for (uint32_t t = 0; t < job.tiles; t++) bytes += job.tile[t].size;
    return bytes;
}

/* Reads the sides of a frame's tiles; false if its model is not valid, or if the job has another number of tiles. */
bool peek_cut(const tsr_image *image, const tsr_decode_job &job, tsr_tiling *cut)
{
    struct tsr_bit_reader reader = tsr_bit_reader(job.model.bytes, job.model.size);
    return tsr_get_tiling(&reader, image, cut) && tsr_tiling_count(*cut) == job.tiles;
}

/* A frame with a base is measured by the caller. */
bool is_measured(const tsr_decode_job &job)
{
    return job.measured && !job.base.room;
}

/* Can both go into a batch, if their tiles have the same sides? */
bool are_alike(const tsr_decode_job &a, const tsr_decode_job &b)
{
    return is_measured(a) == is_measured(b) && !a.base.room == !b.base.room && !a.base.raster == !b.base.raster;
}

/* Room for what the host reads of models. */
struct peeked_models {
    tsr_frame_model model;
    uint16_t offsets[TSR_PLANES_LIMIT * 65536];
    uint16_t lists[3 * 65536];
};

/* Returns how many frames, from the first of these on, have tiles of the same sides and fit a batch; 0 if the model of
 * the first is not valid. */
uint32_t frames_alike(const tsr_gathering *g, const tsr_image *image, const tsr_decode_job *jobs, uint32_t frames,
                      tsr_tiling *cut, tsr_batch_call *call)
{
    tsr_tiling other;
    tsr_cuda_decode_batch b;
    if (!peek_cut(image, jobs[0], cut)) return 0;
    const bool has_bases = jobs[0].base.raster != NULL;
    call->each = tsr_cuda_decode_lay_out(&b, image, cut, 1, true, true, has_bases, 0, NULL, NULL, NULL);
    call->frame_bytes = b.frame_bytes;
    call->host_each = (1 + b.tiles) * sizeof(tsr_cuda_piece) + sizeof *b.frame + b.frame_bytes; /* there, and back */
    if (has_bases) call->host_each += b.frame_bytes;
    if (is_measured(jobs[0])) {
        tsr_measure_batch m;
        call->each += tsr_cuda_measure_lay_out(&m, image, 1, NULL, NULL);
        call->host_each += b.frame_bytes + sizeof *m.measured + sizeof *m.sums;
    }
    for (call->frames = 1, call->payload_bytes = job_bytes(jobs[0]); call->frames < frames; call->frames++) {
        tsr_batch_call more = *call;
        const tsr_decode_job &job = jobs[call->frames];
        more.frames++;
        more.payload_bytes += job_bytes(job);
        if (!tsr_gather_holds(g, &more)) break;
        if (!peek_cut(image, job, &other) || other.tile_width != cut->tile_width ||
            other.tile_height != cut->tile_height || !are_alike(job, jobs[0]))
            break;
        call->payload_bytes = more.payload_bytes;
    }
    return call->frames;
}

void decode_on_cpu(tsr_engine *engine, const tsr_image *image, tsr_decode_job *jobs, uint32_t frames, void *workspace,
                   const char *reason)
{
    engine->cpu->ops->decode(engine->cpu, image, jobs, frames, workspace);
    for (uint32_t i = 0; i < frames; i++) jobs[i].fallback = reason;
}

/* Decodes the first of these frames, with those that go into a batch with it. Returns how many. */
uint32_t decode_some(tsr_engine *engine, const tsr_image *image, tsr_decode_job *jobs, uint32_t frames, void *workspace)
{
    tsr_gathering *g = &tsr_cuda_engine_of(engine)->gathering;
    peeked_models *peeked = static_cast<peeked_models *>(workspace);
    decoding_call here = {engine, jobs};
    tsr_batch_call call = {};
    call.decodes = true;
    tsr_tiling cut;
    const uint32_t count = frames_alike(g, image, jobs, frames, &cut, &call);
    if (count == 0) {
        jobs->status = TSR_ERROR_CORRUPT;
        jobs->bad_tile = TSR_BAD_MODEL;
        jobs->engine = engine->ops->name;
        jobs->fallback = NULL;
        return 1;
    }
    tsr_batch_kind kind = {};
    kind.decodes = true;
    kind.image = *image;
    kind.tile_width = cut.tile_width;
    kind.tile_height = cut.tile_height;
    kind.measures = is_measured(*jobs);
    kind.on_bases = jobs->base.room != NULL;
    kind.has_bases = jobs->base.raster != NULL;
    call.context = &here;
    look_ahead(image, jobs, count, &peeked->model, peeked->offsets, peeked->lists, &call.has_lanes,
               &call.has_transform);
    const char *reason = tsr_gather_objection(g, &call, call.payload_bytes, engine->memory_bytes);
    const bool failed = reason || tsr_gather(g, engine->pool, &kind, &decoding_steps, &call, &reason) != cudaSuccess;
    if (failed) decode_on_cpu(engine, image, jobs, count, workspace, reason);
    for (uint32_t i = 0; !failed && i < count; i++)
        if (jobs[i].fallback) decode_on_cpu(engine, image, &jobs[i], 1, workspace, jobs[i].fallback);
    return count;
}

} // namespace

size_t tsr_cuda_peeked_bytes(void)
{
    return sizeof(peeked_models);
}

size_t tsr_cuda_decode_space(const tsr_engine *engine, const tsr_image *image, const tsr_decode_job *jobs,
                             uint32_t frames)
{
    const size_t space = engine->cpu->ops->decode_workspace(engine->cpu, image, jobs, frames);
    return space > 0 && space < sizeof(peeked_models) ? sizeof(peeked_models) : space;
}

tsr_status tsr_cuda_decode(tsr_engine *engine, const tsr_image *image, tsr_decode_job *jobs, uint32_t frames,
                           void *workspace)
{
    if (!tsr_cuda_is_awake(tsr_cuda_engine_of(engine)))
        decode_on_cpu(engine, image, jobs, frames, workspace, NULL);
    else if (!tsr_cuda_can_decode(image))
        decode_on_cpu(engine, image, jobs, frames, workspace, "the GPU does not decode samples of 1 or 32 bits");
    else
        for (uint32_t first = 0; first < frames;)
            first += decode_some(engine, image, jobs + first, frames - first, workspace);
    for (uint32_t i = 0; i < frames; i++)
        if (jobs[i].status != TSR_OK) return jobs[i].status;
    return TSR_OK;
}
