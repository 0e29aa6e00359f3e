/* The CUDA engine: its devices, its creation, and the table of its operations. Encoding and decoding calls stand in
 * encode_calls_cuda.cu and decode_calls_cuda.cu. What the stages cannot do, and frames on which a call of CUDA fails,
 * go to the CPU engine inside. */
#include "kernels/machine/device.cuh"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calls.cuh"

extern "C" {
#include "kernels/engine_cpu/engine_cpu.h"
#include "kernels/pool/large_stack.h"
#include "engine_cuda.h"
}

const char *const tsr_no_device_memory = "a frame takes more of the GPU's memory than may be had";
const char *const tsr_no_host_memory = "a frame takes more memory on its way to the GPU than may be had";

namespace
{

/* ---- The engine's operations ---------------------------------------------------------------------------- */

size_t encode_workspace(const tsr_engine *engine, const tsr_image *image, const tsr_coding *coding, uint32_t frames)
{
    const size_t space = tsr_cuda_encode_space(engine, image, coding);
    return frames == 0 || space > SIZE_MAX / frames ? 0 : space * frames;
}

size_t decode_bound(const tsr_engine *engine, const tsr_image *image, uint32_t tiles, uint32_t frames)
{
    const size_t space = engine->cpu->ops->decode_bound(engine->cpu, image, tiles, frames),
                 least = tsr_cuda_peeked_bytes();
    return space > 0 && space < least ? least : space;
}

void *take_workspace(tsr_engine *engine, size_t bytes)
{
    return engine->cpu->ops->take_workspace(engine->cpu, bytes);
}

void *take_rasters(tsr_engine *engine, size_t bytes)
{
    void *const rasters = tsr_stock_take(&tsr_cuda_engine_of(engine)->stock, bytes);
    return rasters ? rasters : take_workspace(engine, bytes);
}

void give_workspace(tsr_engine *engine, void *workspace)
{
    if (tsr_stock_give(&tsr_cuda_engine_of(engine)->stock, workspace)) return;
    engine->cpu->ops->give_workspace(engine->cpu, workspace);
}

size_t pinned_memory(int devices, size_t bytes)
{
    return TSR_STOCK_BYTES + (size_t)devices * TSR_DEVICE_AREAS * tsr_gather_area_limit(devices, bytes);
}

size_t own_memory(const tsr_engine *engine, size_t bytes)
{
    return engine->cpu->ops->own_memory(engine->cpu, bytes) +
           pinned_memory(tsr_cuda_engine_of(engine)->gathering.claimed, bytes);
}

void times(tsr_engine *engine, tsr_engine_times *times)
{
    tsr_gathering *g = &tsr_cuda_engine_of(engine)->gathering;
    pthread_mutex_lock(&g->lock);
    *times = g->times;
    pthread_mutex_unlock(&g->lock);
}

void destroy(tsr_engine *base)
{
    tsr_cuda_engine *engine = tsr_cuda_engine_of(base);
    if (engine->is_waking) pthread_join(engine->waker, NULL);
    tsr_slot_empty(&engine->resident);
    engine->base.cpu->ops->destroy(engine->base.cpu); /* with the pool */
    tsr_gather_end(&engine->gathering);
    tsr_stock_end(&engine->stock);
    free(engine);
}

const tsr_engine_ops cuda_engine_ops = {
#if defined(TSR_CUDA_EMULATED)
    "emulated",
#else
    "cuda",
#endif
    encode_workspace,    tsr_cuda_decode_space, decode_bound, take_workspace, tsr_cpu_workspace_bytes,
    take_rasters,        give_workspace,        nullptr,      nullptr,        tsr_cuda_encode,
    tsr_cuda_give_coded, tsr_cuda_decode,       own_memory,   times,          destroy,
};

/* ---- Devices -------------------------------------------------------------------------------------------- */

/* Its launch fails if there is no code for the device. */
__global__ void k_nothing()
{
}

/* Returns NULL if the device can run the kernels that were built, else the reason, a static string. */
const char *device_reason(int device)
{
    int major = 0;
    if (cudaSetDevice(device) != cudaSuccess ||
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess) {
        cudaGetLastError();
        return "the CUDA device does not answer";
    }
    if (major < 8) return "the CUDA device is older than compute capability 8.0";
    if (tsr_launch(k_nothing, 1, TSR_WARP, 0, 0) != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess) {
        cudaGetLastError();
        return "the CUDA device cannot be used: it is busy, its driver is too old, or this build has no code for it";
    }
    return NULL;
}

/* Finds the devices of choice, or all that can be used. All get the memory bound of the device with least free memory.
 * Returns false, with the reason, if a device of choice cannot be used, or if no device can. */
bool find_devices(tsr_gathering *g, const tsr_gpu_choice *choice, char *reason, size_t reason_size)
{
    int devices = 0;
    const char *why = "there is no CUDA device, or no driver for it";
    if (cudaGetDeviceCount(&devices) != cudaSuccess) {
        cudaGetLastError();
        devices = 0;
    }
    const int count = choice->count > 0 ? choice->count : devices;
    size_t bound = SIZE_MAX;
    for (int i = 0; i < count && g->devices < TSR_DEVICES_LIMIT; i++) {
        const int device = choice->count > 0 ? choice->number[i] : i;
        size_t free_bytes = 0, all_bytes = 0;
        if (device >= devices && devices > 0) {
            snprintf(reason, reason_size, "there is no GPU %d: they are numbered 0 to %d", device, devices - 1);
            return false;
        }
        const char *const objection = device < devices ? device_reason(device) : why;
        if (!objection && cudaMemGetInfo(&free_bytes, &all_bytes) == cudaSuccess) {
            for (int s = 0; s < TSR_DEVICE_SLOTS; s++) g->slots[g->devices * TSR_DEVICE_SLOTS + s].device = device;
            g->devices++;
            if (free_bytes / 2 < bound) bound = free_bytes / 2;
            continue;
        }
        cudaGetLastError();
        if (objection) why = objection;
        if (choice->count > 0) break;
    }
    snprintf(reason, reason_size, "%s", why);
    if (g->devices < (choice->count > 0 ? choice->count : 1)) return false;
    if (g->claimed == 0) g->claimed = g->devices;
    if (choice->memory_bytes > 0) bound = (size_t)choice->memory_bytes;
    g->bounds.all = bound;
    for (int decodes = 0; decodes < 2; decodes++) { /* half is for either kind of slots */
        const size_t share = bound / 2 / (decodes ? TSR_DECODE_SLOTS : TSR_ENCODE_SLOTS);
        g->bounds.share[decodes] = share < TSR_BATCH_BYTES ? share : TSR_BATCH_BYTES;
    }
    if (cudaSetDevice(g->slots[0].device) == cudaSuccess) return true;
    cudaGetLastError();
    snprintf(reason, reason_size, "the CUDA device does not answer");
    return false;
}

/* Host memory that will be pinned. */
struct fresh_memory {
    tsr_pool *pool;
    tsr_fresh_areas areas;
    uint8_t *stock;
    bool is_unwanted; /* there is no device */
};

/* Starts threads and touches memory for many files at once while CUDA starts, which takes several times as long. */
void *touch_memory(void *context)
{
    fresh_memory *const fresh = static_cast<fresh_memory *>(context);
    if (!tsr_pool_start_resting(fresh->pool)) return NULL;
    tsr_gather_touch(&fresh->areas, &fresh->is_unwanted);
    if (!__atomic_load_n(&fresh->is_unwanted, __ATOMIC_RELAXED)) fresh->stock = tsr_area_touch(TSR_STOCK_BYTES);
    return NULL;
}

struct loading {
    tsr_cuda_engine *engine;
    const tsr_coding *coding;
    bool decodes;
};

/* An image whose batches call the same kernels as those of any other, flat as it is; and slices, which memory of slots
 * is for, as many as an area holds. */
tsr_image small_image(uint32_t side)
{
    tsr_image image = {};
    image.columns = image.rows = side;
    image.frames = image.components = 1;
    image.bits_allocated = image.bits_stored = 16;
    image.high_bit = 15;
    return image;
}

enum { SMALL_SIDE = 64, SLICE_SIDE = 512, SLICES = TSR_AREA_BYTES / (2 * SLICE_SIDE * SLICE_SIDE) };

/* Gives each slot of a kind memory for full batches. False: there is not so much. */
bool reserve_slots(tsr_gathering *g, bool decodes, size_t bytes, size_t worth)
{
    for (int d = 0; d < g->devices; d++)
        for (int i = 0; i < (decodes ? TSR_DECODE_SLOTS : TSR_ENCODE_SLOTS); i++) {
            tsr_slot *const slot = &g->slots[d * TSR_DEVICE_SLOTS + (decodes ? TSR_ENCODE_SLOTS : 0) + i];
            if (bytes > g->bounds.share[decodes] ||
                tsr_slot_grow(slot, bytes, worth, g->bounds.share[decodes]) != cudaSuccess)
                return false;
        }
    return true;
}

/* Encodes an image on a device. */
cudaError_t load_encoder(const tsr_slot *slot, const tsr_image *image, const tsr_coding *coding, size_t bytes)
{
    tsr_predict_batch p;
    TSR_CUDA_TRY(cudaSetDevice(slot->device));
    TSR_CUDA_TRY(cudaMemsetAsync(slot->d_bytes, 0, bytes, slot->stream));
    tsr_lay_batch_out(&p, image, coding, 1, false, NULL, slot->d_bytes);
    TSR_CUDA_TRY(tsr_run_batch(&p, slot->stream));
    return cudaStreamSynchronize(slot->stream);
}

/* Decodes what is no frame, and measures it. */
cudaError_t load_decoder(const tsr_slot *slot, const tsr_image *image, const tsr_tiling *cut, size_t bytes,
                         bool measures)
{
    tsr_cuda_decode_batch b;
    tsr_measure_batch m;
    TSR_CUDA_TRY(cudaSetDevice(slot->device));
    TSR_CUDA_TRY(cudaMemsetAsync(slot->d_bytes, 0, bytes, slot->stream));
    const size_t used = tsr_cuda_decode_lay_out(&b, image, cut, 1, true, true, false, 0, NULL, NULL, slot->d_bytes);
    TSR_CUDA_TRY((cudaError_t)tsr_cuda_decode_frames(&b, slot->stream));
    if (measures) {
        tsr_cuda_measure_lay_out(&m, image, 1, b.rasters, slot->d_bytes + used);
        TSR_CUDA_TRY((cudaError_t)tsr_cuda_measure(&m, slot->stream));
    }
    return cudaStreamSynchronize(slot->stream);
}

/* CUDA loads kernels when they are first called. Those of a coding take 16 ms, in which no other call gets on. So they
 * are loaded here, while memory is pinned, and not when files wait for them; and slots get memory for full areas. What
 * fails here fails again later, where it is reported. */
void *load_kernels(void *context)
{
    const loading *const work = static_cast<const loading *>(context);
    const tsr_coding *const coding = work->coding;
    tsr_gathering *const g = &work->engine->gathering;
    const tsr_image image = small_image(SMALL_SIDE), slice = small_image(SLICE_SIDE);
    const tsr_tiling cut = tsr_cut_tiles(&image, 1), slice_cut = tsr_cut_tiles(&slice, 1);
    const bool measures = coding && coding->lossy;
    tsr_predict_batch p;
    tsr_cuda_decode_batch b;
    tsr_measure_batch m;
    if (coding && tsr_can_encode(&image, coding)) {
        const size_t worth = tsr_lay_batch_out(&p, &slice, coding, SLICES, false, NULL, NULL),
                     bytes = tsr_lay_batch_out(&p, &image, coding, 1, false, NULL, NULL);
        bool goes_on = reserve_slots(g, false, bytes, worth);
        for (int d = 0; d < g->devices && goes_on; d++)
            goes_on = load_encoder(&g->slots[d * TSR_DEVICE_SLOTS], &image, coding, bytes) == cudaSuccess;
    }
    const auto all_bytes = [&](const tsr_image &one, const tsr_tiling &its_cut, uint32_t frames) {
        return tsr_cuda_decode_lay_out(&b, &one, &its_cut, frames, true, true, false, 0, NULL, NULL, NULL) +
               (measures ? tsr_cuda_measure_lay_out(&m, &one, frames, NULL, NULL) : 0);
    };
    if (work->decodes) {
        const size_t bytes = all_bytes(image, cut, 1), worth = all_bytes(slice, slice_cut, SLICES);
        bool goes_on = reserve_slots(g, true, bytes, worth);
        for (int d = 0; d < g->devices && goes_on; d++)
            goes_on = load_decoder(&g->slots[d * TSR_DEVICE_SLOTS + TSR_ENCODE_SLOTS], &image, &cut, bytes, measures) ==
                      cudaSuccess;
    }
    cudaGetLastError();
    return NULL;
}

/* Makes the engine ready to call its devices. Returns false, with the reason, if there are none. */
bool wake(tsr_cuda_engine *engine, const tsr_gpu_choice *choice, char *reason, size_t reason_size)
{
    tsr_gathering *const g = &engine->gathering;
    fresh_memory fresh = {engine->base.pool};
    loading work = {engine, choice->coding, choice->decodes};
    pthread_t toucher, loader;
    const bool touches = tsr_start_thread(&toucher, touch_memory, &fresh) == 0;
    const bool has_device = find_devices(g, choice, reason, reason_size);
    __atomic_store_n(&fresh.is_unwanted, !has_device, __ATOMIC_RELAXED);
    if (touches) pthread_join(toucher, NULL);
    if (!has_device) {
        tsr_gather_drop(&fresh.areas);
        free(fresh.stock);
        return false;
    }
    engine->resident.device = g->slots[0].device;
    const bool loads = (work.coding || work.decodes) && tsr_start_thread(&loader, load_kernels, &work) == 0;
    tsr_gather_pin(g, &fresh.areas);
    tsr_stock_pin(&engine->stock, fresh.stock);
    if (loads) pthread_join(loader, NULL);
    __atomic_store_n(&engine->is_awake, true, __ATOMIC_RELEASE);
    return true;
}

void *wake_later(void *context)
{
    tsr_cuda_engine *const engine = static_cast<tsr_cuda_engine *>(context);
    char reason[256]; /* why the CPU engine goes on: nobody has asked for the GPU */
    wake(engine, &engine->choice, reason, sizeof reason);
    tsr_pool_set_aside(engine->base.pool, false);
    return NULL;
}

/* A copy of the choice, for when it is needed. */
void take_choice(tsr_cuda_engine *engine, const tsr_gpu_choice *choice)
{
    engine->choice = *choice;
    for (int i = 0; i < choice->count; i++) engine->numbers[i] = choice->number[i];
    engine->choice.number = engine->numbers;
    if (!choice->coding) return;
    engine->coding = *choice->coding;
    engine->choice.coding = &engine->coding;
}

/* Whether there may be a device. CUDA is not asked: its first call takes 0.1 s. */
bool has_driver(void)
{
#if defined(TSR_CUDA_EMULATED)
    int devices = 0;
    return cudaGetDeviceCount(&devices) == cudaSuccess;
#else
    return access("/dev/nvidiactl", F_OK) == 0;
#endif
}

/* The devices that memory of the host is claimed for, before they are known: as many as the driver lists. */
int count_claimed(const tsr_gpu_choice *choice)
{
    int count = 0;
    DIR *const list = choice->count > 0 ? NULL : opendir("/proc/driver/nvidia/gpus");
    for (const dirent *entry; list && (entry = readdir(list));) count += entry->d_name[0] != '.';
    if (list) closedir(list);
    if (choice->count > 0) count = choice->count;
    return count < 1 ? 1 : count < TSR_DEVICES_LIMIT ? count : TSR_DEVICES_LIMIT;
}

} // namespace

size_t tsr_cuda_pinned_memory(const struct tsr_gpu_choice *choice, size_t bytes)
{
    return pinned_memory(count_claimed(choice), bytes);
}

bool tsr_cuda_is_awake(const tsr_cuda_engine *engine)
{
    return __atomic_load_n(&engine->is_awake, __ATOMIC_ACQUIRE);
}

struct tsr_engine *tsr_cuda_engine_create(struct tsr_pool *pool, const struct tsr_gpu_choice *choice, char *reason,
                                          size_t reason_size)
{
    static const tsr_gpu_choice any = {};
    if (!choice) choice = &any;
    tsr_cuda_engine *engine = static_cast<tsr_cuda_engine *>(calloc(1, sizeof *engine));
    struct tsr_engine *const cpu = tsr_cpu_engine_create(pool); /* has the pool now, in any case */
    snprintf(reason, reason_size, "there is no memory");
    if (!engine || !cpu) {
        if (cpu) cpu->ops->destroy(cpu);
        free(engine);
        return NULL;
    }
    engine->base.ops = &cuda_engine_ops;
    engine->base.cpu = cpu;
    engine->base.pool = cpu->pool;
    engine->base.frames_wanted = TSR_CUDA_FRAMES;
    engine->base.memory_bytes = SIZE_MAX;
    tsr_cpu_engine_keep(cpu, TSR_KEPT_BYTES);
    tsr_gather_begin(&engine->gathering);
    tsr_stock_begin(&engine->stock);
    if (choice->wakes_later && choice->count <= TSR_DEVICES_LIMIT && has_driver()) {
        take_choice(engine, choice);
        engine->gathering.claimed = count_claimed(choice);
        tsr_pool_set_aside(engine->base.pool, true);
        engine->is_waking = tsr_start_thread(&engine->waker, wake_later, engine) == 0;
        if (!engine->is_waking) tsr_pool_set_aside(engine->base.pool, false);
    }
    if (engine->is_waking || wake(engine, choice, reason, reason_size)) return &engine->base;
    destroy(&engine->base);
    return NULL;
}

void tsr_cuda_engine_launch_by(struct tsr_engine *engine, int policy)
{
    tsr_cuda_engine_of(engine)->launch_policy = policy;
}

int tsr_cuda_encode_resident(struct tsr_engine *base, const struct tsr_image *image, const struct tsr_coding *coding,
                             const uint8_t *d_rasters, uint32_t frames, uint64_t *payload_bytes, void *stream)
{
    tsr_slot *slot = &tsr_cuda_engine_of(base)->resident;
    tsr_predict_batch p;
    const tsr_cuda_batch &b = p.b;
    if (!tsr_can_encode(image, coding)) return cudaErrorInvalidValue;
    const size_t device_bytes = tsr_lay_batch_out(&p, image, coding, frames, false, d_rasters, NULL);
    TSR_CUDA_TRY(tsr_slot_grow(slot, device_bytes, device_bytes, device_bytes));
    tsr_lay_batch_out(&p, image, coding, frames, false, d_rasters, slot->d_bytes);
    p.launch = tsr_launch_policies[tsr_cuda_engine_of(base)->launch_policy];
    TSR_CUDA_TRY(tsr_run_batch(&p, static_cast<cudaStream_t>(stream)));
    if (!payload_bytes) return cudaSuccess;
    TSR_CUDA_TRY(cudaMemcpyAsync(payload_bytes, b.shared.payload_offset + (size_t)b.shape.planes * b.shape.tiles,
                                 sizeof(uint64_t), cudaMemcpyDeviceToHost, static_cast<cudaStream_t>(stream)));
    return cudaStreamSynchronize(static_cast<cudaStream_t>(stream));
}
