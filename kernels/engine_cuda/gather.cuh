/* Calls of several threads, gathered into batches of the CUDA engine.
 *
 * A GPU needs hundreds of slices at once. A series is thousands of files of one slice each, and each thread calls the
 * engine with one file. So calls of one kind share a batch as far as it holds their frames. A call that finds no batch
 * of its kind to join opens a batch in a free area of host memory and leads it. Every caller puts its own frames into
 * the area, in its own thread.
 *
 * A batch starts as soon as its leader has a slot of a device. If a slot is free, that is at once, and a single file
 * does not wait. While all slots are busy, more calls gather: no clock is needed. Leaders get slots in the order in
 * which they came. The leader copies in, launches and copies out. The slot is free for the next batch before results
 * are taken from the area.
 *
 * The leader takes the results of calls of one frame, so that the area is free soon and no caller needs a seat to free
 * it. If areas are to spare, such results stay in the area until their callers have written or copied them. Callers of
 * several frames take their own results, over the pool's threads. Only then does a caller wake.
 *
 * Callers rest while they wait (thread_pool.h), so that other threads work on other files. A thread that has a seat
 * never waits here, so there is no deadlock.
 *
 * Frames of a batch are independent of each other, so the gathering of calls never shows in the bytes. */
#ifndef TSR_KERNELS_ENGINE_CUDA_GATHER_CUH
#define TSR_KERNELS_ENGINE_CUDA_GATHER_CUH

#include <pthread.h>

#include "kernels/batch/batch_decode_cuda.h"
#include "kernels/batch/batch_measure_cuda.h"
#include "kernels/batch/batch_predict_cuda.h"
#include "slots_cuda.h"

extern "C" {
#include "kernels/engine.h"
#include "kernels/pool/thread_pool.h"
}

/* What the calls of a batch have in common. */
struct tsr_batch_kind {
    bool decodes;
    tsr_image image;                 /* but for its number of frames */
    tsr_coding coding;               /* encoding: of the call; those of a batch may join by tsr_cuda_may_join */
    int launch_policy;               /* encoding */
    int32_t tile_width, tile_height; /* decoding */
    bool measures;                   /* decoding */
    bool on_bases;                   /* decoding: models say whether frames refer to bases */
    bool has_bases;                  /* there are bases to refer to */
};

struct tsr_area;

/* A call: consecutive frames of one caller. */
struct tsr_batch_call {
    bool decodes;
    uint32_t frames;
    size_t payload_bytes;          /* decoding: of models and tiles */
    bool has_lanes, has_transform; /* decoding: what must be prepared for */
    size_t frame_bytes;            /* of a raster */
    size_t each, host_each;        /* most memory of a frame without payloads, on the device and in an area */
    void *context;                 /* for the steps */
    tsr_sleeper *sleeper;          /* the caller's, which waits for the batch */
    bool keeps;                    /* of one frame: its results may stay in the area until the caller leaves it */
    bool is_finished;              /* out: its results have been taken out of the area */
    tsr_area *area;                /* out, if it keeps its results: where they are, for tsr_gather_leave; else NULL */
    cudaError_t error;             /* out: of the batch */
    uint32_t first;                /* out: number of the first frame in the batch */
    size_t payload_at;             /* out: where its payloads begin */
    struct tsr_batch_call *next;   /* of the batch */
};

struct tsr_batch;

/* The steps of a batch. */
struct tsr_batch_steps {
    /* For each call: stage copies its frames to the area, in its caller's thread. finish takes their results from
     * there, in its caller's or the leader's thread. */
    void (*stage)(tsr_batch *batch, const tsr_batch_call *call);
    void (*finish)(tsr_batch *batch, const tsr_batch_call *call);
    /* Between these, in the leader's thread: all frames from the area to the device and their results back. It grows
     * the batch's slot. */
    cudaError_t (*run)(tsr_batch *batch);
};

struct tsr_batch {
    tsr_batch_kind kind;
    uint32_t frames;
    tsr_batch_call *calls; /* the last one first */
    size_t payload_bytes;
    bool has_lanes, has_transform;
    uint8_t *host, *host_end; /* the area's */
    tsr_slot *slot;
    size_t device_worth, device_limit; /* as tsr_slot_grow has them */
    uint64_t transfer_ns, kernel_ns;   /* set by run */
    /* The layout that run has made, and where in the area the callers find the results. */
    tsr_predict_batch encode, results;
    tsr_cuda_decode_batch decode;
    const uint8_t *host_payloads, *host_rasters;
    const tsr_cuda_decode_frame *host_states;
    tsr_measure_batch measure;
    const tsr_frame_sums *host_sums;
    uint32_t joined, staged, left; /* numbers of calls; under the engine's lock */
};

/* An area of host memory, and the batch in it. */
struct tsr_area {
    bool is_taken, is_open; /* open: calls may join */
    uint8_t *host;
    size_t bytes;
    tsr_batch batch;
    pthread_cond_t moved; /* the last call is staged */
};

/* Slots of all devices, areas, and the calls that wait for them. */
struct tsr_gathering {
    pthread_mutex_t lock;   /* of what follows */
    pthread_cond_t turned;  /* a slot was given back, or it is another leader's turn */
    pthread_cond_t emptied; /* an area was given back, or a batch opened */
    struct {
        uint64_t next_ticket, turn; /* of leaders */
    } queue[2];                     /* of batches to encode; to decode */
    int alone;                      /* leaders who wait for a whole device: no other one takes a slot */
    int devices, claimed;           /* claimed: of how many areas are used, as host memory was claimed */
    tsr_slot slots[TSR_DEVICES_LIMIT * TSR_DEVICE_SLOTS]; /* device by device */
    tsr_slot_bounds bounds;
    tsr_area areas[TSR_DEVICES_LIMIT * TSR_DEVICE_AREAS];
    bool is_growing; /* an area is growing */
    uint32_t opened; /* number of batches so far */
    tsr_engine_times times;
    uint32_t failures; /* batches in which a call of CUDA failed */
    char failure[256]; /* the reason of the first one; written once */
};

/* Memory for the areas of the first device, touched before CUDA has started; NULL: there was no memory. */
struct tsr_fresh_areas {
    uint8_t *host[TSR_DEVICE_AREAS];
};
void tsr_gather_touch(tsr_fresh_areas *fresh, const bool *is_unwanted); /* is_unwanted: another thread may set it */
void tsr_gather_drop(tsr_fresh_areas *fresh);

void tsr_gather_begin(tsr_gathering *g);

/* Call it when devices, slots and bounds are known and the first device is the thread's, before the first call. It pins
 * the memory of fresh for the areas. */
void tsr_gather_pin(tsr_gathering *g, tsr_fresh_areas *fresh);
void tsr_gather_end(tsr_gathering *g);

/* The most bytes of an area, if areas of so many devices are used. memory_bytes: host memory that the process may take;
 * all areas together get an eighth. */
size_t tsr_gather_area_limit(int claimed, size_t memory_bytes);

/* Returns NULL if one such frame may go to a device, else the reason. payload_bytes: of the frame, on its way there. */
const char *tsr_gather_objection(const tsr_gathering *g, const tsr_batch_call *call, size_t payload_bytes,
                                 size_t memory_bytes);

extern const char *const tsr_no_device_memory, *const tsr_no_host_memory;

/* True if a call's frames are not too many for a batch; a single frame never is. */
bool tsr_gather_holds(const tsr_gathering *g, const tsr_batch_call *call);

/* Does a call in a batch with others. If the batch fails, all its callers get the error and *reason, a sentence that
 * lives as long as the engine. */
cudaError_t tsr_gather(tsr_gathering *g, tsr_pool *pool, const tsr_batch_kind *kind, const tsr_batch_steps *steps,
                       tsr_batch_call *call, const char **reason);

/* The caller no longer needs the results that it has kept in its area. */
void tsr_gather_leave(tsr_gathering *g, tsr_area *area);

#endif
