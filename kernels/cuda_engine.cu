/* The CUDA engine: its devices, its creation, and the table of its operations. Encoding and decoding calls stand in
 * cuda_encode_calls.cu and cuda_decode_calls.cu. What the stages cannot do, and what a call of CUDA's fails on, goes to
 * the CPU engine inside. */
#include "device.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_calls.cuh"

extern "C" {
#include "cpu_engine.h"
#include "cuda_engine.h"
}

const char *const tsr_no_device_memory = "a frame takes more of the GPU's memory than may be had";

namespace
{

/* Device memory that a batch may take: more slices than this at once gain nothing. */
#define BATCH_BYTES ((size_t)2 << 30)

/* Work space of files that wait for a GPU: most of it is the CPU engine's, which is never touched, so never there. */
#define KEPT_BYTES ((size_t)2 << 30)

/* ---- The engine's operations ---------------------------------------------------------------------------- */

size_t encode_workspace(const tsr_engine *engine, const tsr_image *image, uint32_t frames)
{
    const size_t space = tsr_cuda_encode_space(engine, image);
    return frames == 0 || space > SIZE_MAX / frames ? 0 : space * frames;
}

void *take_workspace(tsr_engine *engine, size_t bytes)
{
    return engine->cpu->ops->take_workspace(engine->cpu, bytes);
}

void give_workspace(tsr_engine *engine, void *workspace)
{
    engine->cpu->ops->give_workspace(engine->cpu, workspace);
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
    tsr_slot_empty(&engine->resident);
    engine->base.cpu->ops->destroy(engine->base.cpu); /* with the pool */
    tsr_gather_end(&engine->gathering);
    free(engine);
}

const tsr_engine_ops cuda_engine_ops = {
#if defined(TSR_CUDA_EMULATED)
    "emulated",
#else
    "cuda",
#endif
    encode_workspace, tsr_cuda_decode_space, take_workspace, give_workspace,
    tsr_cuda_encode,  tsr_cuda_decode,       times,          destroy,
};

/* ---- Devices -------------------------------------------------------------------------------------------- */

/* Shows that there is code for the device. */
__global__ void k_nothing()
{
}

/* NULL if the device can run the kernels that were built, else why not, in static text. */
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

/* The devices that are wanted, or all that can be used; the bound of the one with least memory to spare is that of all.
 * False, with the reason, if one that is wanted cannot be used, or none can. */
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
    if (choice->memory_bytes > 0) bound = (size_t)choice->memory_bytes;
    g->bounds.all = bound;
    g->bounds.share = bound / TSR_DEVICE_SLOTS < BATCH_BYTES ? bound / TSR_DEVICE_SLOTS : BATCH_BYTES;
    if (cudaSetDevice(g->slots[0].device) == cudaSuccess) return true;
    cudaGetLastError();
    snprintf(reason, reason_size, "the CUDA device does not answer");
    return false;
}

} // namespace

struct tsr_engine *tsr_cuda_engine_create(struct tsr_pool *pool, const struct tsr_gpu_choice *choice, char *reason,
                                          size_t reason_size)
{
    static const tsr_gpu_choice any = {};
    tsr_cuda_engine *engine = static_cast<tsr_cuda_engine *>(calloc(1, sizeof *engine));
    snprintf(reason, reason_size, "there is no memory");
    if (!engine || !find_devices(&engine->gathering, choice ? choice : &any, reason, reason_size)) {
        free(engine);
        tsr_pool_destroy(pool);
        return NULL;
    }
    engine->base.cpu = tsr_cpu_engine_create(pool); /* has the pool now, in any case */
    if (!engine->base.cpu) {
        snprintf(reason, reason_size, "there is no memory");
        free(engine);
        return NULL;
    }
    engine->resident.device = engine->gathering.slots[0].device;
    tsr_gather_begin(&engine->gathering);
    engine->base.ops = &cuda_engine_ops;
    engine->base.pool = engine->base.cpu->pool;
    engine->base.frames_wanted = TSR_CUDA_FRAMES;
    tsr_cpu_engine_keep(engine->base.cpu, KEPT_BYTES);
    return &engine->base;
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
    const size_t device_bytes = tsr_lay_batch_out(&p, image, coding, frames, d_rasters, NULL);
    TSR_CUDA_TRY(tsr_slot_grow(slot, device_bytes, device_bytes));
    tsr_lay_batch_out(&p, image, coding, frames, d_rasters, slot->d_bytes);
    p.launch = tsr_launch_policies[tsr_cuda_engine_of(base)->launch_policy];
    TSR_CUDA_TRY(tsr_run_batch(&p, static_cast<cudaStream_t>(stream)));
    if (!payload_bytes) return cudaSuccess;
    TSR_CUDA_TRY(cudaMemcpyAsync(payload_bytes, b.payload_offset + (size_t)b.planes * b.tiles, sizeof(uint64_t),
                                 cudaMemcpyDeviceToHost, static_cast<cudaStream_t>(stream)));
    return cudaStreamSynchronize(static_cast<cudaStream_t>(stream));
}
