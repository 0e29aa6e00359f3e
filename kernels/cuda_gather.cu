/* Gathering calls into batches; see the header. */
#include "device.cuh"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cuda_gather.cuh"

namespace
{

double seconds()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

bool same_coding(const tsr_coding &a, const tsr_coding &b)
{
    return a.path == b.path && a.coder == b.coder && a.lossy == b.lossy && a.qp_eighths == b.qp_eighths &&
           a.level == b.level && a.max_error == b.max_error && a.coarser_by == b.coarser_by &&
           a.coarser_frame == b.coarser_frame && a.coarser_from == b.coarser_from;
}

bool same_kind(const tsr_batch_kind &a, const tsr_batch_kind &b)
{
    return a.decodes == b.decodes && tsr_alike_images(&a.image, &b.image) && same_coding(a.coding, b.coding) &&
           a.tile_width == b.tile_width && a.tile_height == b.tile_height;
}

/* ---- With the lock ------------------------------------------------------------------------------------------ */

size_t room(size_t each, uint32_t frames, size_t payload_bytes)
{
    return each * frames + payload_bytes;
}

/* A batch takes more than a slot's share if it is of a single frame. */
bool takes_device(const tsr_gathering *g, const tsr_batch_call *call)
{
    return room(call->each, call->frames, call->payload_bytes) > g->bounds.share;
}

tsr_batch *find_open(tsr_gathering *g, const tsr_batch_kind *kind, const tsr_batch_call *call)
{
    for (tsr_batch *b = g->open; b; b = b->next)
        if (same_kind(b->kind, *kind) &&
            room(call->each, b->frames + call->frames, b->payload_bytes + call->payload_bytes) <= g->bounds.share)
            return b;
    return NULL;
}

void close_batch(tsr_gathering *g, tsr_batch *batch)
{
    tsr_batch **link = &g->open;
    while (*link && *link != batch) link = &(*link)->next;
    if (*link) *link = batch->next;
}

/* Of two batches of a kind only the newer one is joined. */
void close_full_ones(tsr_gathering *g, const tsr_batch_kind *kind)
{
    for (tsr_batch *b = g->open, *next; b; b = next) {
        next = b->next;
        if (same_kind(b->kind, *kind)) close_batch(g, b);
    }
}

void join(tsr_batch *batch, tsr_batch_call *call)
{
    call->first = batch->frames;
    call->payload_at = batch->payload_bytes;
    batch->frames += call->frames;
    batch->payload_bytes += call->payload_bytes;
    batch->has_lanes |= call->has_lanes;
    batch->has_transform |= call->has_transform;
    batch->calls++;
}

/* A free slot of the device with most of them, of these the one with most memory; alone: all of its device must be
 * free, and are taken. */
tsr_slot *take_slot(tsr_gathering *g, bool alone)
{
    tsr_slot *best = NULL;
    int most = alone ? TSR_DEVICE_SLOTS - 1 : 0;
    for (int d = 0; d < g->devices; d++) {
        tsr_slot *const first = g->slots + d * TSR_DEVICE_SLOTS;
        int count = 0;
        for (tsr_slot *s = first; s < first + TSR_DEVICE_SLOTS; s++) count += !s->is_taken;
        if (count <= most) continue;
        most = count;
        best = NULL;
        for (tsr_slot *s = first; s < first + TSR_DEVICE_SLOTS; s++)
            if (!s->is_taken && (!best || s->device_bytes > best->device_bytes)) best = s;
    }
    if (!best) return NULL;
    tsr_slot *const first = g->slots + (best - g->slots) / TSR_DEVICE_SLOTS * TSR_DEVICE_SLOTS;
    best->is_taken = true;
    for (tsr_slot *s = first; alone && s < first + TSR_DEVICE_SLOTS; s++) s->is_taken = true;
    return best;
}

void give_slot(tsr_gathering *g, tsr_slot *slot, bool alone)
{
    tsr_slot *const first = g->slots + (slot - g->slots) / TSR_DEVICE_SLOTS * TSR_DEVICE_SLOTS;
    slot->is_taken = false;
    for (tsr_slot *s = first; alone && s < first + TSR_DEVICE_SLOTS; s++) s->is_taken = false;
    pthread_cond_broadcast(&g->turned);
}

/* ---- A batch's way ------------------------------------------------------------------------------------------ */

void set_state(tsr_gathering *g, tsr_batch *batch, enum tsr_batch_state state, cudaError_t error)
{
    pthread_mutex_lock(&g->lock);
    batch->state = state;
    batch->error = error;
    pthread_cond_broadcast(&batch->moved);
    pthread_mutex_unlock(&g->lock);
}

/* Counts a failed batch and remembers the first one's sentence. */
void note_failure(tsr_gathering *g, cudaError_t error)
{
    pthread_mutex_lock(&g->lock);
    if (g->failures++ == 0) snprintf(g->failure, sizeof g->failure, "the GPU failed: %s", cudaGetErrorString(error));
    pthread_mutex_unlock(&g->lock);
}

cudaError_t fail(tsr_gathering *g, tsr_batch *batch, cudaError_t error)
{
    tsr_slot_empty(batch->slot);
    cudaGetLastError(); /* it has been told */
    note_failure(g, error);
    set_state(g, batch, TSR_BATCH_FAILED, error);
    return error;
}

/* Puts a call's frames in, and tells the leader. */
void stage(tsr_gathering *g, tsr_batch *batch, const tsr_batch_steps *steps, const tsr_batch_call *call, double *copy_s)
{
    const double start = seconds();
    steps->stage(batch, call);
    *copy_s += seconds() - start;
    pthread_mutex_lock(&g->lock);
    if (++batch->staged == batch->calls) pthread_cond_broadcast(&batch->moved);
    pthread_mutex_unlock(&g->lock);
}

void finish(tsr_batch *batch, const tsr_batch_steps *steps, const tsr_batch_call *call, double *copy_s)
{
    const double start = seconds();
    steps->finish(batch, call);
    *copy_s += seconds() - start;
}

/* The leader, with a slot: all others of the batch are in, and have left when it returns. */
cudaError_t lead(tsr_gathering *g, tsr_batch *batch, const tsr_batch_steps *steps, const tsr_batch_call *call,
                 bool alone, double *copy_s)
{
    tsr_slot *const first = g->slots + (batch->slot - g->slots) / TSR_DEVICE_SLOTS * TSR_DEVICE_SLOTS;
    for (tsr_slot *s = first; alone && s < first + TSR_DEVICE_SLOTS; s++)
        if (s != batch->slot) tsr_slot_empty(s);
    batch->device_limit = alone ? g->bounds.all : g->bounds.share;
    cudaError_t error = steps->prepare(batch);
    if (error == cudaSuccess) {
        set_state(g, batch, TSR_BATCH_STAGING, cudaSuccess);
        stage(g, batch, steps, call, copy_s);
        pthread_mutex_lock(&g->lock);
        while (batch->staged < batch->calls) pthread_cond_wait(&batch->moved, &g->lock);
        pthread_mutex_unlock(&g->lock);
        error = steps->run(batch);
    }
    if (error == cudaSuccess) {
        set_state(g, batch, TSR_BATCH_FINISHED, cudaSuccess);
        finish(batch, steps, call, copy_s);
    } else {
        fail(g, batch, error);
    }
    pthread_mutex_lock(&g->lock);
    batch->left++;
    while (batch->left < batch->calls) pthread_cond_wait(&batch->moved, &g->lock);
    tsr_gpu_times *const times = batch->kind.decodes ? &g->times.decode : &g->times.encode;
    if (error == cudaSuccess) {
        times->batches++;
        times->frames += batch->frames;
        times->transfer_s += batch->transfer_s;
        times->kernel_s += batch->kernel_s;
    }
    give_slot(g, batch->slot, alone);
    pthread_mutex_unlock(&g->lock);
    return error;
}

/* Any other caller. */
cudaError_t follow(tsr_gathering *g, tsr_batch *batch, const tsr_batch_steps *steps, const tsr_batch_call *call,
                   double *copy_s)
{
    pthread_mutex_lock(&g->lock);
    while (batch->state == TSR_BATCH_OPEN) pthread_cond_wait(&batch->moved, &g->lock);
    const bool stages = batch->state == TSR_BATCH_STAGING;
    pthread_mutex_unlock(&g->lock);
    if (stages) stage(g, batch, steps, call, copy_s);
    pthread_mutex_lock(&g->lock);
    while (batch->state == TSR_BATCH_STAGING) pthread_cond_wait(&batch->moved, &g->lock);
    const cudaError_t error = batch->error;
    pthread_mutex_unlock(&g->lock);
    if (error == cudaSuccess) finish(batch, steps, call, copy_s);
    pthread_mutex_lock(&g->lock);
    if (++batch->left == batch->calls) pthread_cond_broadcast(&batch->moved); /* the leader may end it now */
    pthread_mutex_unlock(&g->lock);
    return error;
}

/* Opens a batch, waits for a slot while others join, and leads it. Enters with the lock, leaves without. */
cudaError_t open_and_lead(tsr_gathering *g, const tsr_batch_kind *kind, const tsr_batch_steps *steps,
                          tsr_batch_call *call, double *copy_s)
{
    tsr_batch batch;
    memset(&batch, 0, sizeof batch);
    batch.kind = *kind;
    pthread_cond_init(&batch.moved, NULL);
    const bool alone = takes_device(g, call);
    close_full_ones(g, kind);
    if (!alone) {
        batch.next = g->open;
        g->open = &batch;
    }
    join(&batch, call);
    const uint64_t ticket = g->next_ticket++;
    while (ticket != g->turn || !(batch.slot = take_slot(g, alone))) pthread_cond_wait(&g->turned, &g->lock);
    g->turn++;
    pthread_cond_broadcast(&g->turned);
    close_batch(g, &batch);
    pthread_mutex_unlock(&g->lock);
    const cudaError_t error = lead(g, &batch, steps, call, alone, copy_s);
    pthread_cond_destroy(&batch.moved);
    return error;
}

} // namespace

bool tsr_gather_fits(const tsr_gathering *g, size_t frame_device_bytes)
{
    return frame_device_bytes <= g->bounds.all;
}

uint32_t tsr_gather_most(const tsr_gathering *g, size_t each, uint32_t frames)
{
    const size_t most = g->bounds.share / each;
    return most == 0 ? 1 : most < frames ? (uint32_t)most : frames;
}

cudaError_t tsr_gather(tsr_gathering *g, tsr_pool *pool, const tsr_batch_kind *kind, const tsr_batch_steps *steps,
                       tsr_batch_call *call, const char **reason)
{
    double copy_s = 0;
    const double start = seconds();
    tsr_pool_rest(pool, call->frames * 2 * call->frame_bytes); /* a raster, and what it is coded to */
    pthread_mutex_lock(&g->lock);
    tsr_batch *batch = find_open(g, kind, call);
    cudaError_t error;
    if (batch) {
        join(batch, call);
        pthread_mutex_unlock(&g->lock);
        error = follow(g, batch, steps, call, &copy_s);
    } else {
        error = open_and_lead(g, kind, steps, call, &copy_s);
    }
    tsr_pool_resume(pool);
    pthread_mutex_lock(&g->lock);
    tsr_gpu_times *const times = kind->decodes ? &g->times.decode : &g->times.encode;
    times->copy_s += copy_s;
    times->wait_s += seconds() - start - copy_s;
    *reason = g->failure;
    pthread_mutex_unlock(&g->lock);
    return error;
}
