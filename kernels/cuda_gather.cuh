/* Calls of several threads, gathered into batches of the CUDA engine.
 *
 * A GPU wants hundreds of slices at once, and a series is thousands of files of one slice each, whose threads call the
 * engine one by one. So calls of one kind, whose frames one batch can hold, form one: who finds no batch of its kind to
 * join opens one and leads it. A batch starts as soon as its leader has a slot. While slots are free that is at once,
 * so a single file waits for nobody; while all are busy the calls that come gather, the more the longer it takes: no
 * clock is needed. Leaders get slots in the order in which they came.
 *
 * Every caller puts its own frames into the slot's host memory, and takes its own results from there, in its own
 * thread; the leader does what is between. Callers rest meanwhile (thread_pool.h), so that other threads work on other
 * files. Nobody here waits for a seat while another one waits for it but by running work, which always gets on.
 *
 * Frames of a batch are independent of each other, so how calls are gathered never shows in the bytes. */
#ifndef TSR_KERNELS_CUDA_GATHER_CUH
#define TSR_KERNELS_CUDA_GATHER_CUH

#include <pthread.h>

#include "cuda_decode.h"
#include "cuda_predictive.h"
#include "cuda_slots.h"

extern "C" {
#include "engine.h"
#include "thread_pool.h"
}

/* What the calls of a batch have in common. */
struct tsr_batch_kind {
    bool decodes;
    tsr_image image;                 /* but for its number of frames */
    tsr_coding coding;               /* encoding */
    int32_t tile_width, tile_height; /* decoding */
};

/* Consecutive frames of one caller's. */
struct tsr_batch_call {
    uint32_t frames;
    size_t payload_bytes;          /* decoding: of models and tiles */
    bool has_lanes, has_transform; /* decoding: what must be prepared for */
    size_t frame_bytes;            /* of a raster */
    size_t each;                   /* device memory that a frame takes, at most */
    void *context;                 /* the steps' */
    uint32_t first;                /* out: number of the first frame in the batch */
    size_t payload_at;             /* out: where its payloads begin */
};

struct tsr_batch;

/* The ways there and back. */
struct tsr_batch_steps {
    /* The leader's: lays the batch out, given its slot's bounds, and grows the slot; then all between results and
     * payloads in the slot's host memory. */
    cudaError_t (*prepare)(tsr_batch *batch);
    cudaError_t (*run)(tsr_batch *batch);
    /* Each caller's, before and after run. */
    void (*stage)(tsr_batch *batch, const tsr_batch_call *call);
    void (*finish)(tsr_batch *batch, const tsr_batch_call *call);
};

enum tsr_batch_state { TSR_BATCH_OPEN, TSR_BATCH_STAGING, TSR_BATCH_FINISHED, TSR_BATCH_FAILED };

struct tsr_batch {
    tsr_batch_kind kind;
    uint32_t frames, calls;
    size_t payload_bytes;
    bool has_lanes, has_transform;
    tsr_slot *slot;
    size_t device_limit;
    double transfer_s, kernel_s; /* set by run */
    /* What prepare has laid out, and where in host memory the callers find it. */
    tsr_predict_batch encode, results;
    tsr_cuda_decode_batch decode;
    uint8_t *host_payloads, *host_rasters;
    tsr_cuda_piece *host_pieces;
    const tsr_cuda_decode_frame *host_states;
    /* Under the engine's lock. */
    enum tsr_batch_state state;
    cudaError_t error;
    uint32_t staged, left; /* calls */
    pthread_cond_t moved;
    tsr_batch *next; /* that is open */
};

/* Slots of all devices, and who waits for them. */
struct tsr_gathering {
    pthread_mutex_t lock;  /* of what follows */
    pthread_cond_t turned; /* a slot was given back, or it is another leader's turn */
    uint64_t next_ticket, turn;
    tsr_batch *open; /* that calls may join, one of a kind */
    int devices;
    tsr_slot slots[TSR_DEVICES_LIMIT * TSR_DEVICE_SLOTS]; /* device by device */
    tsr_slot_bounds bounds;
    tsr_engine_times times;
    uint32_t failures; /* batches that a call of CUDA's failed on */
    char failure[256]; /* the first of them; written once */
};

/* False where not even one such frame fits a device's memory. */
bool tsr_gather_fits(const tsr_gathering *g, size_t frame_device_bytes);

/* How many of so many frames, each taking so much of a device's memory, a batch may hold: 1 at least. */
uint32_t tsr_gather_most(const tsr_gathering *g, size_t each, uint32_t frames);

/* Does a call in a batch with others. If it fails, all its callers are told, and the sentence is *reason, which lives
 * as long as the engine. */
cudaError_t tsr_gather(tsr_gathering *g, tsr_pool *pool, const tsr_batch_kind *kind, const tsr_batch_steps *steps,
                       tsr_batch_call *call, const char **reason);

#endif
