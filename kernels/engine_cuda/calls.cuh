/* The CUDA engine's two halves: frames of a call to coded frames, and back. They go through batches that the call
 * shares with others (gather.cuh). The CPU engine codes what a GPU does not do or fails on. See engine.h. */
#ifndef TSR_KERNELS_ENGINE_CUDA_CALLS_CUH
#define TSR_KERNELS_ENGINE_CUDA_CALLS_CUH

#include "gather.cuh"
#include "rasters.cuh"

struct tsr_cuda_engine {
    tsr_engine base;
    tsr_gathering gathering;
    int launch_policy; /* of tsr_launch_policies */
    tsr_raster_stock stock;
    tsr_slot resident; /* of tsr_cuda_encode_resident; its memory has no bound */
    bool is_awake;     /* atomic */
    /* Waking in the background, where the choice stands until then. */
    bool is_waking;
    pthread_t waker;
    tsr_gpu_choice choice;
    tsr_coding coding;
    int numbers[TSR_DEVICES_LIMIT];
};

/* Until it is, all calls are the CPU engine's. */
bool tsr_cuda_is_awake(const tsr_cuda_engine *engine);

/* Work space of a frame, whichever engine codes it. */
size_t tsr_cuda_encode_space(const tsr_engine *engine, const tsr_image *image, const tsr_coding *coding);
size_t tsr_cuda_peeked_bytes(void); /* of a decoding call, at least */
size_t tsr_cuda_decode_space(const tsr_engine *engine, const tsr_image *image, const tsr_decode_job *jobs,
                             uint32_t frames);

tsr_status tsr_cuda_encode(tsr_engine *engine, const tsr_image *image, const tsr_coding *coding, tsr_encode_job *jobs,
                           uint32_t frames, void *workspace);
void tsr_cuda_give_coded(tsr_engine *engine, tsr_encode_job *job);
tsr_status tsr_cuda_decode(tsr_engine *engine, const tsr_image *image, tsr_decode_job *jobs, uint32_t frames,
                           void *workspace);

/* Both paths' batches (batch_transform_cuda.h, batch_predict_cuda.h). Path P with CAVLC is coded in path T's slices;
 * for both only p->b is filled in. */
bool tsr_can_encode(const tsr_image *image, const tsr_coding *coding);
size_t tsr_lay_batch_out(tsr_predict_batch *p, const tsr_image *image, const tsr_coding *coding, uint32_t frames,
                         bool has_bases, const uint8_t *d_rasters, void *d_base);
cudaError_t tsr_run_batch(const tsr_predict_batch *p, cudaStream_t stream);

/* A call's share of a batch, as the pool's threads see it; frames: the call's context, which has its engine. */
template <typename Frames> struct tsr_shared_frames {
    const tsr_batch *batch;
    const tsr_batch_call *call;
    const Frames *frames;
};

/* Calls work for each frame of a call, over the pool. Its context is the share, its index the frame's in the call. */
template <typename Frames> void tsr_over_pool(const tsr_batch *batch, const tsr_batch_call *call, tsr_work *work)
{
    const Frames *frames = static_cast<const Frames *>(call->context);
    tsr_shared_frames<Frames> shared = {batch, call, frames};
    tsr_pool_run(frames->engine->pool, work, &shared, call->frames);
}

/* Copies frames of a batch between its area and the device: those for which apart(context of the call, index) names a
 * place of their own one by one, the ranges between them together. copy(place, or NULL: the area; first; frames). */
template <typename Frames, typename Apart, typename Copy>
cudaError_t tsr_copy_frames(const tsr_batch *batch, Apart apart, Copy copy)
{
    uint32_t end = batch->frames; /* frames from this one on are copied */
    const auto range = [&](uint32_t first) { return first == end ? cudaSuccess : copy(NULL, first, end - first); };
    for (const tsr_batch_call *call = batch->calls; call; call = call->next) { /* the last one first */
        const Frames &frames = *static_cast<const Frames *>(call->context);
        for (uint32_t i = call->frames; i-- > 0;) {
            const auto place = apart(frames, i);
            if (!place) continue;
            const uint32_t number = call->first + i;
            TSR_CUDA_TRY(range(number + 1));
            TSR_CUDA_TRY(copy(place, number, 1));
            end = number;
        }
    }
    return range(0);
}

/* The place of a frame's original, or of its base, at the end of the area: the first one is the last. */
static inline uint8_t *tsr_place_at_end(const tsr_batch *batch, uint32_t number, size_t bytes)
{
    return batch->host_end - (number + 1) * bytes;
}

static inline tsr_cuda_engine *tsr_cuda_engine_of(tsr_engine *engine)
{
    return reinterpret_cast<tsr_cuda_engine *>(engine);
}

static inline const tsr_cuda_engine *tsr_cuda_engine_of(const tsr_engine *engine)
{
    return reinterpret_cast<const tsr_cuda_engine *>(engine);
}

#endif
