/* Encoding calls of the CUDA engine: rasters into a batch, coded frames out of its results. */
#include "kernels/machine/device.cuh"

#include <string.h>

#include "calls.cuh"
#include "kernels/machine/arena.cuh"
#include "kernels/effort.h"
#include "transform/block/dc_plane.h"

extern "C" {
#include "kernels/drawn/drawn_cpu.h"
#include "kernels/engine_cpu/engine_cpu.h"
}

bool tsr_can_encode(const tsr_image *image, const tsr_coding *coding)
{
    return tsr_cuda_can_encode(image, coding) || tsr_cuda_can_predict(image, coding);
}

size_t tsr_lay_batch_out(tsr_predict_batch *p, const tsr_image *image, const tsr_coding *coding, uint32_t frames,
                         bool has_bases, const uint8_t *d_rasters, void *d_base)
{
    if (tsr_cuda_can_predict(image, coding))
        return tsr_predict_lay_out(p, image, coding, frames, has_bases, d_rasters, d_base);
    p->predictor = NULL;
    p->residual = NULL;
    return tsr_cuda_lay_out(&p->b, image, coding, frames, d_rasters, d_base);
}

cudaError_t tsr_run_batch(const tsr_predict_batch *p, cudaStream_t stream)
{
    return (cudaError_t)(tsr_cuda_can_predict(&p->b.shape.image, &p->b.shape.coding)
                             ? tsr_predict_encode_batch(p, stream)
                             : tsr_cuda_encode_batch(&p->b, stream));
}

namespace
{

/* A call's frames, as its batch's steps see them. */
struct encoding_call {
    tsr_engine *engine;
    const tsr_coding *coding;
    tsr_encode_job *jobs;
    uint8_t *workspace;
    size_t space; /* of a frame */
};

using shared_frames = tsr_shared_frames<encoding_call>;

/* ---- Coded frames --------------------------------------------------------------------------------------- */

const char *const outside_bits = "words have bits outside their samples that are not what the header says";

/* False: the frame has second planes, which the stages do not make. */
bool is_whole(const tsr_cuda_batch &b, const tsr_frame_state &frame, bool *extends_sign)
{
    const tsr_image &image = b.shape.image;
    *extends_sign = false;
    if (tsr_image_outside_bits(&image) == 0) return true;
    const uint32_t as_declared = frame.unexpected[image.is_signed ? 0 : 1];
    const uint32_t otherwise = frame.unexpected[image.is_signed ? 1 : 0];
    *extends_sign = image.is_signed;
    if (as_declared == 0) return true;
    *extends_sign = !image.is_signed;
    return otherwise == 0 && image.high_bit + 1 != image.bits_allocated;
}

/* The layout of a frame's work space. */
struct frame_space {
    tsr_frame_model *model;
    uint16_t *offsets, *lists; /* of planes; of colours that are packed by component */
    uint8_t *model_bytes, *tile_sizes, *payloads;
    tsr_coded_tile *tiles;
};

size_t lay_frame_out(frame_space *s, const tsr_cuda_batch &b, void *base)
{
    size_t used = 0;
    s->model = static_cast<tsr_frame_model *>(tsr_take(base, &used, sizeof *s->model));
    s->offsets = static_cast<uint16_t *>(tsr_take(base, &used, b.shape.components * 65536 * sizeof(uint16_t)));
    const size_t listed = b.shape.packs_colours ? 3 * 65536 : 0;
    s->lists = static_cast<uint16_t *>(tsr_take(base, &used, listed * sizeof(uint16_t)));
    s->model_bytes = static_cast<uint8_t *>(tsr_take(base, &used, TSR_FRAME_MODEL_LIMIT));
    s->tiles = static_cast<tsr_coded_tile *>(tsr_take(base, &used, b.shape.tiles * sizeof *s->tiles));
    s->tile_sizes = static_cast<uint8_t *>(tsr_take(base, &used, b.shape.tiles * TSR_TILE_SIZES_BYTES));
    s->payloads = static_cast<uint8_t *>(tsr_take(base, &used, b.shape.components * tsr_cuda_plane_payload_bytes(&b)));
    return used;
}

void put_plane(tsr_plane_model *plane, const tsr_cuda_batch &b, uint32_t number, uint16_t *offsets)
{
    const tsr_plane_state &state = b.shared.plane[number];
    const uint32_t *used = b.shared.used ? b.shared.used + (size_t)number * (b.shape.values / 32) : NULL;
    const struct tsr_transform_plan plan = tsr_plane_plan(&b, number);
    plane->minimum = 65535u - state.not_minimum;
    plane->span = tsr_state_span(state);
    plane->range = state.range;
    plane->packed = state.packed != 0;
    plane->offset = offsets;
    plane->path = b.shape.coding.path;
    plane->coder = tsr_plane_coder(&b.shape.coding, &b.shape.image, (int)(number % b.shape.components));
    tsr_take_plan(plane, &plan);
    if (plane->packed)
        for (uint32_t offset = 0, i = 0; offset < plane->span; offset++) {
            const uint32_t value = plane->minimum + offset;
            if (used[value / 32] >> value % 32 & 1u) offsets[i++] = (uint16_t)offset;
        }
    if (plane->span == 1) return;
    if (b.transform.model) plane->run_level = b.transform.model[number];
    if (b.transform.pair_model) plane->pair = b.transform.pair_model[number];
    if (b.transform.coefficient_model) plane->coefficient = b.transform.coefficient_model[number];
    const tsr_dc_state &dcs = b.transform.dcs;
    plane->dc_plane = plane->dc_plane && tsr_state_span(dcs.plane[number]) > 1;
    if (!plane->dc_plane) return;
    plane->dc_qp_index = tsr_dc_q(plane->qp_index, tsr_dc_fraction(plane->range));
    if (dcs.pair_model) plane->dcs.pair = dcs.pair_model[number];
    if (dcs.coefficient_model) plane->dcs.coefficient = dcs.coefficient_model[number];
}

/* Fills in the colours of a frame. lists: room for the lists of components; a palette's lists stay where they are. */
void put_colours(tsr_colour_model *colours, const tsr_cuda_batch &b, uint32_t frame, uint16_t *lists)
{
    const tsr_frame_state &state = b.shared.frame[frame];
    colours->packing = (tsr_colour_packing)state.packing;
    colours->leading = (uint8_t)state.leading;
    for (uint32_t c = 0; c < 3 && state.packing == TSR_COLOURS_PALETTE; c++) {
        colours->count[c] = state.colours;
        colours->list[c] = b.shared.palette + (3 * (size_t)frame + c) * TSR_PALETTE_LIMIT;
    }
    const uint32_t words = tsr_listed_words(&b);
    for (uint32_t c = 0; c < 3 && state.packing == TSR_COLOURS_BY_COMPONENT; c++) {
        const uint32_t *const listed = b.shared.listed + (3 * (size_t)frame + c) * words;
        uint16_t *const list = colours->list[c] = lists + (size_t)c * 65536;
        for (uint32_t value = 0; value < 32 * words; value++)
            if (listed[value / 32] >> value % 32 & 1u) list[colours->count[c]++] = (uint16_t)value;
    }
}

/* Frame index of a call: takes it from the batch's results to its job. A frame that the GPU cannot code is only noted
 * here: others wait for the slot. */
void finish_frame(void *context, unsigned index)
{
    const shared_frames &f = *static_cast<const shared_frames *>(context);
    const tsr_cuda_batch &b = f.batch->results.b;
    const uint32_t number = f.call->first + index;
    tsr_encode_job *job = &f.frames->jobs[index];
    bool extends_sign;
    const bool whole = is_whole(b, b.shared.frame[number], &extends_sign);
    job->engine = f.frames->engine->ops->name;
    job->fallback = whole ? NULL : outside_bits;
    if (job->fallback) return;
    frame_space s;
    lay_frame_out(&s, b, f.frames->workspace + index * f.frames->space);
    tsr_frame_model *model = s.model;
    const int planes = tsr_image_planes(&b.shape.image);
    memset(model, 0, offsetof(tsr_frame_model, plane));
    for (int p = 0; p < planes; p++) /* the rest, 40 kB a plane, is set before it is read */
        memset(&model->plane[p], 0, offsetof(tsr_plane_model, residual));
    memset(s.tiles, 0, b.shape.tiles * sizeof *s.tiles);
    model->tile_width = b.shape.tile_width;
    model->tile_height = b.shape.tile_height;
    model->colour = (tsr_colour)b.shared.frame[number].colour;
    if (b.shape.packs_colours) put_colours(&model->colours, b, number, s.lists);
    model->extends_sign = extends_sign;
    model->max_error = b.shape.max_error;
    model->planes = planes;
    model->may_have_base = job->base.room != NULL;
    model->has_base = f.batch->kind.has_bases && job->base.raster;
    const uint32_t first_plane = number * b.shape.components, first_tile = first_plane * b.shape.tiles;
    const uint64_t start = b.shared.payload_offset[first_tile];
    const uint8_t *payloads = f.batch->host_payloads + start;
    if (!f.call->keeps || f.call->is_finished) {
        memcpy(s.payloads, payloads,
               (size_t)(b.shared.payload_offset[first_tile + b.shape.components * b.shape.tiles] - start));
        payloads = s.payloads;
    }
    for (uint32_t c = 0; c < b.shape.components; c++) {
        const uint32_t p = first_plane + c;
        model->plane[c].present = true;
        put_plane(&model->plane[c], b, p, s.offsets + (size_t)c * 65536);
        if (f.batch->results.predictor && model->plane[c].span > 1) {
            model->plane[c].predictor = f.batch->results.predictor[p];
            model->plane[c].residual = f.batch->results.residual[p];
        }
        for (uint32_t t = 0; t < b.shape.tiles; t++) {
            tsr_segment *segment = &s.tiles[t].segment[1 + c];
            segment->bytes = payloads + (b.shared.payload_offset[p * b.shape.tiles + t] - start);
            segment->size = b.shared.payload_size[p * b.shape.tiles + t];
        }
    }
    for (uint32_t t = 0; t < b.shape.tiles; t++)
        tsr_put_tile_sizes(&s.tiles[t], model->planes, s.tile_sizes + t * TSR_TILE_SIZES_BYTES);
    struct tsr_bit_writer writer = tsr_bit_writer(s.model_bytes, TSR_FRAME_MODEL_LIMIT);
    tsr_put_frame_model(&writer, &b.shape.image, model);
    job->coded.model.bytes = s.model_bytes;
    job->coded.model.size = tsr_flush_bits(&writer);
    assert(!writer.overflow);
    job->coded.tiles = b.shape.tiles;
    job->coded.is_drawn = false;
    job->coded.tile = s.tiles;
}

/* Bytes of the models of DC planes, which follow the results. */
size_t dc_model_bytes(const tsr_cuda_batch &b)
{
    const size_t each = b.transform.by == TSR_BY_PAIRS ? sizeof(tsr_pair_model) : sizeof(tsr_coefficient_model);
    return b.transform.has_dcs ? b.shape.planes * each : 0;
}

/* Where payloads follow in the area, on the way back. */
size_t payload_place(const tsr_cuda_batch &b)
{
    return b.shared.result_bytes + (dc_model_bytes(b) + 15) / 16 * 16;
}

bool has_dc_planes(const tsr_cuda_batch &results)
{
    for (uint32_t p = 0; results.transform.has_dcs && p < results.shape.planes; p++)
        if (tsr_state_span(results.transform.dcs.plane[p]) > 1) return true;
    return false;
}

/* The results as they lie in host memory, from host on. */
tsr_predict_batch results_at(const tsr_predict_batch &p, uint8_t *host)
{
    const uint8_t *device = reinterpret_cast<const uint8_t *>(p.b.shared.frame);
    const auto move = [&](auto *&array) {
        if (!array) return;
        array = reinterpret_cast<typename std::remove_reference<decltype(array)>::type>(
            host + (reinterpret_cast<const uint8_t *>(array) - device));
    };
    tsr_predict_batch results = p;
    tsr_cuda_batch &r = results.b;
    move(results.predictor);
    move(results.residual);
    move(r.shared.listed);
    move(r.shared.palette);
    move(r.shared.plane);
    move(r.shared.used);
    move(r.transform.model);
    move(r.transform.pair_model);
    move(r.transform.coefficient_model);
    move(r.transform.dcs.plane);
    move(r.transform.dcs.pair_model);
    move(r.transform.dcs.coefficient_model);
    move(r.shared.payload_offset);
    move(r.shared.payload_size);
    move(r.shared.frame);
    return results;
}

/* ---- A batch -------------------------------------------------------------------------------------------- */

/* True if copies to the device can run from where the raster is. */
bool is_in_stock(const encoding_call &call, uint32_t index)
{
    return tsr_stock_has(&tsr_cuda_engine_of(call.engine)->stock, call.jobs[index].raster);
}

void stage_frame(void *context, unsigned index)
{
    const shared_frames &f = *static_cast<const shared_frames *>(context);
    const size_t bytes = f.call->frame_bytes;
    const tsr_base &base = f.frames->jobs[index].base;
    if (f.batch->kind.has_bases && base.raster)
        memcpy(tsr_place_at_end(f.batch, f.call->first + index, bytes), base.raster, bytes);
    if (is_in_stock(*f.frames, index)) return;
    memcpy(f.batch->host + (f.call->first + index) * bytes, f.frames->jobs[index].raster, bytes);
}

void stage(tsr_batch *batch, const tsr_batch_call *call)
{
    tsr_over_pool<encoding_call>(batch, call, stage_frame);
}

/* Copies rasters to the device: those in the stock from there, others from the area. */
cudaError_t copy_in(const tsr_batch *batch)
{
    const size_t bytes = batch->encode.b.shape.frame_bytes;
    uint8_t *const d_rasters = const_cast<uint8_t *>(batch->encode.b.shared.rasters);
    return tsr_copy_frames<encoding_call>(
        batch, [](const encoding_call &call, uint32_t i) { return is_in_stock(call, i) ? call.jobs[i].raster : NULL; },
        [&](const uint8_t *place, uint32_t first, uint32_t frames) {
            return cudaMemcpyAsync(d_rasters + first * bytes, place ? place : batch->host + first * bytes,
                                   frames * bytes, cudaMemcpyHostToDevice, batch->slot->stream);
        });
}

/* Lays a batch out, and behind it a coding for each frame, and whether it refers to a base. Returns the bytes of all.
 */
size_t lay_out(tsr_predict_batch *p, const tsr_image &image, const tsr_coding &coding, uint32_t frames, bool has_bases,
               uint8_t *d_base)
{
    size_t used = tsr_lay_batch_out(p, &image, &coding, frames, has_bases, NULL, d_base);
    tsr_coding *codings;
    uint8_t *refers;
    tsr_take_array(codings, d_base, used, frames);
    p->b.shared.coding = codings;
    if (!has_bases) return used;
    tsr_take_array(refers, d_base, used, frames);
    p->refers = refers;
    return used;
}

/* Puts the codings of the frames at the end of the area, before bases, the first one first. */
const tsr_coding *put_codings(const tsr_batch *batch)
{
    const size_t bases = batch->kind.has_bases ? batch->frames * batch->encode.b.shape.frame_bytes : 0;
    tsr_coding *const codings =
        reinterpret_cast<tsr_coding *>(batch->host_end -
                                       (bases + alignof(tsr_coding) - 1) / alignof(tsr_coding) * alignof(tsr_coding)) -
        batch->frames;
    for (const tsr_batch_call *call = batch->calls; call; call = call->next)
        for (uint32_t i = 0; i < call->frames; i++)
            codings[call->first + i] = *static_cast<const encoding_call *>(call->context)->coding;
    return codings;
}

/* Copies bases to the device, and which frames refer to theirs. before: what is put into the area before this place. */
cudaError_t copy_bases(const tsr_batch *batch, const void *before)
{
    const tsr_predict_batch &p = batch->encode;
    const size_t bytes = p.b.shape.frame_bytes;
    uint8_t *const refers = static_cast<uint8_t *>(const_cast<void *>(before)) - batch->frames;
    for (const tsr_batch_call *call = batch->calls; call; call = call->next)
        for (uint32_t i = 0; i < call->frames; i++) {
            const uint32_t number = call->first + i;
            refers[number] = static_cast<const encoding_call *>(call->context)->jobs[i].base.raster != NULL;
            if (!refers[number]) continue;
            TSR_CUDA_TRY(cudaMemcpyAsync(p.bases.rasters + number * bytes, tsr_place_at_end(batch, number, bytes),
                                         bytes, cudaMemcpyHostToDevice, batch->slot->stream));
        }
    return cudaMemcpyAsync(const_cast<uint8_t *>(p.refers), refers, batch->frames, cudaMemcpyHostToDevice,
                           batch->slot->stream);
}

/* Copies rasters in and runs the stages; results, then payloads, replace the rasters in the area. Waits twice: for the
 * sizes, and for the payloads. */
cudaError_t run(tsr_batch *batch)
{
    tsr_slot *slot = batch->slot;
    const tsr_batch_kind &kind = batch->kind;
    const tsr_cuda_batch &b = batch->encode.b;
    const size_t bytes = lay_out(&batch->encode, kind.image, kind.coding, batch->frames, kind.has_bases, NULL);
    if (bytes > batch->device_limit) return cudaErrorMemoryAllocation;
    TSR_CUDA_TRY(tsr_slot_grow(slot, bytes, batch->device_worth, batch->device_limit));
    lay_out(&batch->encode, kind.image, kind.coding, batch->frames, kind.has_bases, slot->d_bytes);
    batch->encode.launch = tsr_launch_policies[kind.launch_policy];
    batch->results = results_at(batch->encode, batch->host);
    batch->results.b.shared.coding = put_codings(batch);
    uint8_t *const payloads = batch->host + payload_place(b);
    batch->host_payloads = payloads;
    TSR_CUDA_TRY(tsr_slot_note(slot, TSR_SLOT_BEGIN));
    TSR_CUDA_TRY(copy_in(batch));
    if (kind.has_bases) TSR_CUDA_TRY(copy_bases(batch, batch->results.b.shared.coding));
    TSR_CUDA_TRY(cudaMemcpyAsync(const_cast<tsr_coding *>(b.shared.coding), batch->results.b.shared.coding,
                                 batch->frames * sizeof(tsr_coding), cudaMemcpyHostToDevice, slot->stream));
    TSR_CUDA_TRY(tsr_slot_note(slot, TSR_SLOT_COPIED_IN));
    TSR_CUDA_TRY(tsr_run_batch(&batch->encode, slot->stream));
    TSR_CUDA_TRY(tsr_slot_note(slot, TSR_SLOT_DONE));
    TSR_CUDA_TRY(
        cudaMemcpyAsync(batch->host, b.shared.frame, b.shared.result_bytes, cudaMemcpyDeviceToHost, slot->stream));
    TSR_CUDA_TRY(tsr_slot_note(slot, TSR_SLOT_RESULTS));
    TSR_CUDA_TRY(tsr_slot_wait(slot, TSR_SLOT_RESULTS));
    batch->kernel_ns = tsr_slot_ns(slot, TSR_SLOT_COPIED_IN, TSR_SLOT_DONE);
    batch->transfer_ns =
        tsr_slot_ns(slot, TSR_SLOT_BEGIN, TSR_SLOT_COPIED_IN) + tsr_slot_ns(slot, TSR_SLOT_DONE, TSR_SLOT_RESULTS);

    const uint64_t payload_bytes = batch->results.b.shared.payload_offset[b.shape.planes * b.shape.tiles];
    if (payload_bytes > b.shared.payload_bytes) return cudaErrorUnknown; /* never, unless the device is broken */
    TSR_CUDA_TRY(tsr_slot_note(slot, TSR_SLOT_BEGIN));
    if (has_dc_planes(batch->results.b))
        TSR_CUDA_TRY(cudaMemcpyAsync(batch->host + b.shared.result_bytes,
                                     reinterpret_cast<uint8_t *>(b.shared.frame) + b.shared.result_bytes,
                                     dc_model_bytes(b), cudaMemcpyDeviceToHost, slot->stream));
    TSR_CUDA_TRY(
        cudaMemcpyAsync(payloads, b.shared.payloads, (size_t)payload_bytes, cudaMemcpyDeviceToHost, slot->stream));
    TSR_CUDA_TRY(tsr_slot_note(slot, TSR_SLOT_RESULTS));
    TSR_CUDA_TRY(tsr_slot_wait(slot, TSR_SLOT_RESULTS));
    batch->transfer_ns += tsr_slot_ns(slot, TSR_SLOT_BEGIN, TSR_SLOT_RESULTS);
    return cudaSuccess;
}

void finish(tsr_batch *batch, const tsr_batch_call *call)
{
    tsr_over_pool<encoding_call>(batch, call, finish_frame);
}

const tsr_batch_steps encoding_steps = {stage, finish, run};

/* ---- By the CPU engine ---------------------------------------------------------------------------------- */

void encode_on_cpu(tsr_engine *engine, const tsr_image *image, const tsr_coding *coding, tsr_encode_job *jobs,
                   uint32_t frames, void *workspace, const char *reason)
{
    engine->cpu->ops->encode(engine->cpu, image, coding, jobs, frames, workspace);
    for (uint32_t i = 0; i < frames; i++) jobs[i].fallback = reason;
}

/* Returns why the GPU does not encode such a frame; NULL: it does, and *call gets the memory that a frame takes. */
const char *objection(const tsr_engine *engine, const tsr_image *image, const tsr_coding *coding, bool has_bases,
                      tsr_batch_call *call)
{
    tsr_predict_batch one;
    const bool has_samples = image->bits_allocated == 8 || image->bits_allocated == 16;
    if (!tsr_can_encode(image, coding))
        return has_samples ? "the GPU does not predict tiles, as path T does from -8 on"
                           : "the GPU does not code samples of 1 or 32 bits";
    call->each = lay_out(&one, *image, *coding, 1, has_bases, NULL);
    call->frame_bytes = one.b.shape.frame_bytes;
    const size_t back = payload_place(one.b) + one.b.shared.payload_bytes;
    call->host_each = (back > call->frame_bytes ? back : call->frame_bytes) + sizeof *coding;
    if (has_bases) call->host_each += call->frame_bytes + sizeof *one.refers;
    return tsr_gather_objection(&tsr_cuda_engine_of(engine)->gathering, call, 0, engine->memory_bytes);
}

/* Whether a frame is left to the CPU engine, which may code it as drawn planes. */
bool is_tried_as_drawn(const tsr_image *image, const tsr_coding *coding, const tsr_encode_job &job)
{
    return tsr_tries_drawn(coding) && tsr_may_be_drawn(image, coding->effort, job.raster);
}

/* has_bases: predictors of frames may refer to their bases, where they have any. */
void encode_on_gpus(tsr_engine *engine, const tsr_image *image, const tsr_coding *coding, bool has_bases,
                    tsr_encode_job *jobs, uint32_t frames, void *workspace)
{
    tsr_gathering *g = &tsr_cuda_engine_of(engine)->gathering;
    tsr_batch_call call = {};
    const char *const reason = objection(engine, image, coding, has_bases, &call);
    if (reason) {
        encode_on_cpu(engine, image, coding, jobs, frames, workspace, reason);
        return;
    }
    tsr_batch_kind kind = {};
    kind.image = *image;
    kind.coding = *coding;
    kind.launch_policy = tsr_cuda_engine_of(engine)->launch_policy;
    kind.has_bases = has_bases;
    const size_t space = tsr_cuda_encode_space(engine, image, coding);
    for (uint32_t first = 0, count; first < frames; first += count) {
        uint8_t *const there = static_cast<uint8_t *>(workspace) + first * space;
        encoding_call here = {engine, coding, jobs + first, there, space};
        call.context = &here;
        count = 1;
        if (is_tried_as_drawn(image, coding, here.jobs[0])) {
            encode_on_cpu(engine, image, coding, here.jobs, 1, there, "the GPU does not code drawn planes");
            continue;
        }
        for (; count < frames - first && !is_tried_as_drawn(image, coding, here.jobs[count]); count++) {
            call.frames = count + 1;
            if (!tsr_gather_holds(g, &call)) break;
        }
        call.frames = count;
        call.keeps = count == 1 && here.jobs[0].borrows && !here.jobs[0].base.room;
        const char *failure;
        const bool failed = tsr_gather(g, engine->pool, &kind, &encoding_steps, &call, &failure) != cudaSuccess;
        for (uint32_t i = 0; i < count; i++) {
            here.jobs[i].lent = call.area;
            if (!failed && !here.jobs[i].fallback) continue;
            tsr_cuda_give_coded(engine, &here.jobs[i]);
            encode_on_cpu(engine, image, coding, here.jobs + i, 1, there + i * space,
                          failed ? failure : here.jobs[i].fallback);
        }
    }
}

/* Frames with bases, as tsr_cpu_encode_frame does them: without references, then with them, and where these take no
 * less, without them again. What the CPU engine has coded is done. */
void encode_with_bases(tsr_engine *engine, const tsr_image *image, const tsr_coding *coding, tsr_encode_job *jobs,
                       uint32_t frames, void *workspace)
{
    const size_t space = tsr_cuda_encode_space(engine, image, coding);
    /* Those next to each other that are wanted go together. */
    const auto encode = [&](bool has_bases, auto is_wanted) {
        for (uint32_t first = 0, count; first < frames; first += count) {
            const bool wanted = is_wanted(jobs[first]);
            for (count = 1; first + count < frames && is_wanted(jobs[first + count]) == wanted;) count++;
            if (wanted)
                encode_on_gpus(engine, image, coding, has_bases, jobs + first, count,
                               static_cast<uint8_t *>(workspace) + first * space);
        }
    };
    bool refer = false;
    for (uint32_t i = 0; i < frames; i++) {
        jobs[i].saved = 0;
        jobs[i].fallback = NULL;
        refer |= jobs[i].base.raster != NULL;
    }
    encode(false, [](const tsr_encode_job &job) { return !job.base.raster || !job.only_refers; });
    if (!refer) return;
    for (uint32_t i = 0; i < frames; i++)
        if (!jobs[i].fallback && !jobs[i].only_refers) jobs[i].saved = tsr_coded_bytes(&jobs[i].coded);
    encode(true, [](const tsr_encode_job &job) { return !job.fallback; });
    for (uint32_t i = 0; i < frames; i++) {
        if (jobs[i].fallback || jobs[i].only_refers) continue;
        const uint64_t alone = jobs[i].saved, referring = tsr_coded_bytes(&jobs[i].coded);
        jobs[i].saved = alone > referring ? alone - referring : 0;
    }
    encode(false, [](const tsr_encode_job &job) {
        return job.base.raster && !job.only_refers && !job.fallback && job.saved == 0;
    });
}

} // namespace

size_t tsr_cuda_encode_space(const tsr_engine *engine, const tsr_image *image, const tsr_coding *coding)
{
    const size_t by_cpu = tsr_cpu_encode_space(engine->pool, image, coding, 1);
    if (!tsr_can_encode(image, coding)) return by_cpu;
    tsr_predict_batch p;
    frame_space s;
    tsr_lay_batch_out(&p, image, coding, 1, false, NULL, NULL);
    const size_t by_gpu = lay_frame_out(&s, p.b, NULL);
    return by_gpu > by_cpu ? by_gpu : by_cpu;
}

void tsr_cuda_give_coded(tsr_engine *engine, tsr_encode_job *job)
{
    if (job->lent) tsr_gather_leave(&tsr_cuda_engine_of(engine)->gathering, static_cast<tsr_area *>(job->lent));
    job->lent = NULL;
}

tsr_status tsr_cuda_encode(tsr_engine *engine, const tsr_image *image, const tsr_coding *coding, tsr_encode_job *jobs,
                           uint32_t frames, void *workspace)
{
    if (!tsr_cuda_is_awake(tsr_cuda_engine_of(engine)))
        encode_on_cpu(engine, image, coding, jobs, frames, workspace, NULL);
    else if (jobs->base.room && !tsr_cuda_can_predict(image, coding))
        encode_on_cpu(engine, image, coding, jobs, frames, workspace, "the GPU refers to bases by lanes alone");
    else if (jobs->base.room)
        encode_with_bases(engine, image, coding, jobs, frames, workspace);
    else
        encode_on_gpus(engine, image, coding, false, jobs, frames, workspace);
    return TSR_OK;
}
