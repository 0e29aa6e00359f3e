/* Gathering calls into batches; see the header. */
#include "kernels/machine/device.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gather.cuh"
#include "transform/image.h"

namespace
{

uint64_t now_ns()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool same_kind(const tsr_batch_kind &a, const tsr_batch_kind &b)
{
    return a.decodes == b.decodes && tsr_alike_images(&a.image, &b.image) &&
           (a.decodes || tsr_cuda_may_join(&a.image, &a.coding, &b.coding)) && a.launch_policy == b.launch_policy &&
           a.tile_width == b.tile_width && a.tile_height == b.tile_height && a.measures == b.measures &&
           a.on_bases == b.on_bases && a.has_bases == b.has_bases;
}

/* ---- With the lock ------------------------------------------------------------------------------------------ */

/* An area has more bytes if a frame needs more. The first area that has no memory beforehand gets room for some calls
 * like its first one only: pinning memory takes a while, and there may be no second file. */
enum { FIRST_CALLS = 16, AREA_SPARE = 64 };

tsr_area *areas_end(tsr_gathering *g)
{
    return g->areas + (g->devices < g->claimed ? g->devices : g->claimed) * TSR_DEVICE_AREAS;
}

size_t device_room(const tsr_batch_call *call, uint32_t frames, size_t payload_bytes)
{
    return call->each * frames + payload_bytes;
}

size_t host_room(const tsr_batch_call *call, uint32_t frames, size_t payload_bytes)
{
    return call->host_each * frames + payload_bytes + AREA_SPARE;
}

/* Device memory for as many frames like the call's as the area has room for. */
size_t full_room(const tsr_area *area, const tsr_batch_call *call)
{
    const size_t payload_bytes = call->payload_bytes / call->frames;
    return device_room(call, 1, payload_bytes) * (area->bytes / host_room(call, 1, payload_bytes));
}

/* True if the call takes more than a slot's share, as a single frame may: its batch then has a device for itself. */
bool takes_device(const tsr_gathering *g, const tsr_batch_call *call)
{
    return device_room(call, call->frames, call->payload_bytes) > g->bounds.share[call->decodes];
}

/* Returns the area of a batch to join; NULL: there is none. A batch that is too full for the call is closed to all
 * calls: the next one is open soon. */
tsr_area *find_open(tsr_gathering *g, const tsr_batch_kind *kind, const tsr_batch_call *call)
{
    for (tsr_area *a = g->areas; a < areas_end(g); a++) {
        const tsr_batch &b = a->batch;
        if (!a->is_open || !same_kind(b.kind, *kind)) continue;
        const uint32_t frames = b.frames + call->frames;
        const size_t payload_bytes = b.payload_bytes + call->payload_bytes;
        if (host_room(call, frames, payload_bytes) <= a->bytes &&
            device_room(call, frames, payload_bytes) <= g->bounds.share[call->decodes])
            return a;
        a->is_open = false;
        pthread_cond_broadcast(&g->turned); /* its leader need not wait for other calls */
    }
    return NULL;
}

/* Takes the free area with most memory. If it must grow, it is taken only if no other area is growing. That one is open
 * soon. Several that grow at once take as long as one after the other, and hold up every thread that asks the system
 * for memory. */
tsr_area *take_area(tsr_gathering *g, size_t needed)
{
    tsr_area *best = NULL;
    for (tsr_area *a = g->areas; a < areas_end(g); a++)
        if (!a->is_taken && (!best || a->bytes > best->bytes)) best = a;
    if (!best || (best->bytes < needed && g->is_growing)) return NULL;
    best->is_taken = true;
    return best;
}

void give_area(tsr_gathering *g, tsr_area *area)
{
    area->is_taken = false;
    pthread_cond_broadcast(&g->emptied);
}

void join(tsr_batch *batch, tsr_batch_call *call)
{
    call->sleeper = tsr_pool_sleeper();
    call->first = batch->frames;
    call->payload_at = batch->payload_bytes;
    call->next = batch->calls;
    batch->calls = call;
    batch->joined++;
    batch->frames += call->frames;
    batch->payload_bytes += call->payload_bytes;
    batch->has_lanes |= call->has_lanes;
    batch->has_transform |= call->has_transform;
}

/* The slots of a device for batches that decode, or encode; all slots of it. */
struct slot_range {
    tsr_slot *begin, *end;
};

slot_range slots_of(tsr_gathering *g, int device, bool decodes)
{
    tsr_slot *const first = g->slots + device * TSR_DEVICE_SLOTS, *const second = first + TSR_ENCODE_SLOTS;
    return decodes ? slot_range{second, first + TSR_DEVICE_SLOTS} : slot_range{first, second};
}

slot_range device_of(tsr_gathering *g, const tsr_slot *slot)
{
    tsr_slot *const first = g->slots + (slot - g->slots) / TSR_DEVICE_SLOTS * TSR_DEVICE_SLOTS;
    return {first, first + TSR_DEVICE_SLOTS};
}

int count_free(slot_range range)
{
    int count = 0;
    for (const tsr_slot *s = range.begin; s < range.end; s++) count += !s->is_taken;
    return count;
}

/* A batch of few frames gathers more until another one of its kind has ended. */
bool may_start(tsr_gathering *g, const tsr_area *area)
{
    const bool decodes = area->batch.kind.decodes;
    if (!area->is_open || area->batch.frames >= TSR_WORTH_A_SLOT) return true;
    for (int d = 0; d < g->devices; d++)
        if (count_free(slots_of(g, d, decodes)) == (decodes ? TSR_DECODE_SLOTS : TSR_ENCODE_SLOTS)) return true;
    return false;
}

/* Takes a free slot of the device with most free slots of the kind: the one with most memory. alone: all slots of the
 * device must be free, and all are taken. */
tsr_slot *take_slot(tsr_gathering *g, bool decodes, bool alone)
{
    tsr_slot *best = NULL;
    int most = 0;
    if (g->alone > 0 && !alone) return NULL;
    for (int d = 0; d < g->devices; d++) {
        const slot_range own = slots_of(g, d, decodes);
        const int count = count_free(own);
        if (count <= most || (alone && count_free(device_of(g, own.begin)) < TSR_DEVICE_SLOTS)) continue;
        most = count;
        best = NULL;
        for (tsr_slot *s = own.begin; s < own.end; s++)
            if (!s->is_taken && (!best || s->device_bytes > best->device_bytes)) best = s;
    }
    if (!best) return NULL;
    best->is_taken = true;
    const slot_range all = device_of(g, best);
    for (tsr_slot *s = all.begin; alone && s < all.end; s++) s->is_taken = true;
    return best;
}

void give_slot(tsr_gathering *g, tsr_slot *slot, bool alone)
{
    const slot_range all = device_of(g, slot);
    slot->is_taken = false;
    for (tsr_slot *s = all.begin; alone && s < all.end; s++) s->is_taken = false;
    pthread_cond_broadcast(&g->turned);
}

/* Counts a failed batch; keeps the reason of the first one. */
void note_failure(tsr_gathering *g, cudaError_t error)
{
    cudaGetLastError(); /* clears the error, which is reported here */
    if (g->failures++ == 0) snprintf(g->failure, sizeof g->failure, "the GPU failed: %s", cudaGetErrorString(error));
}

/* ---- A batch's way ------------------------------------------------------------------------------------------ */

/* Begins a new batch in an area, gives the area memory for this call and some others, and opens it to them. The caller
 * has the lock, which this function gives up while the area grows. */
cudaError_t open_batch(tsr_gathering *g, tsr_area *area, const tsr_batch_kind *kind, tsr_batch_call *call)
{
    const size_t needed = host_room(call, call->frames, call->payload_bytes);
    size_t wanted = g->opened++ == 0 && FIRST_CALLS * needed < TSR_AREA_BYTES ? FIRST_CALLS * needed : TSR_AREA_BYTES;
    if (wanted < needed) wanted = needed;
    tsr_batch &b = area->batch;
    if (area->bytes < (g->is_growing ? needed : wanted)) {
        g->is_growing = true;
        pthread_mutex_unlock(&g->lock);
        cudaError_t error = cudaSetDevice(g->slots[0].device);
        if (error == cudaSuccess) error = tsr_area_grow(&area->host, &area->bytes, wanted);
        pthread_mutex_lock(&g->lock);
        g->is_growing = false;
        if (error != cudaSuccess) {
            note_failure(g, error);
            give_area(g, area);
            return error;
        }
    }
    memset(&b, 0, sizeof b);
    b.kind = *kind;
    b.host = area->host;
    b.host_end = area->host + area->bytes;
    join(&b, call);
    area->is_open = !takes_device(g, call);
    pthread_cond_broadcast(&g->emptied); /* a call that waits for an area may join */
    return cudaSuccess;
}

/* This number of callers has left the area; the last one frees it. With the lock. */
void leave(tsr_gathering *g, tsr_area *area, uint32_t callers)
{
    area->batch.left += callers;
    if (callers > 0 && area->batch.left == area->batch.joined) give_area(g, area);
}

/* True if callers may keep results in an area until each of them has its seat again and has written them: enough areas
 * are free for batches that gather meanwhile. */
bool has_areas_to_spare(tsr_gathering *g)
{
    enum { GATHERING_AREAS = 2 }; /* of each device */
    int count = 0;
    pthread_mutex_lock(&g->lock);
    for (const tsr_area *a = g->areas; a < areas_end(g); a++) count += !a->is_taken;
    pthread_mutex_unlock(&g->lock);
    return count >= (areas_end(g) - g->areas) / TSR_DEVICE_AREAS * GATHERING_AREAS;
}

/* Takes the results of calls of one frame out of the area, but for those that may stay there; and wakes all callers but
 * the leader. */
void tell_callers(tsr_gathering *g, tsr_pool *pool, tsr_area *area, const tsr_batch_steps *steps,
                  const tsr_batch_call *leader, cudaError_t error)
{
    tsr_batch *const batch = &area->batch;
    tsr_batch_call *calls = NULL; /* the first one first */
    while (batch->calls) {
        tsr_batch_call *const call = batch->calls;
        batch->calls = call->next;
        call->next = calls;
        calls = call;
    }
    const uint64_t start = now_ns();
    uint32_t finished = 0;
    const bool lends = has_areas_to_spare(g);
    for (tsr_batch_call *call = calls; call; call = call->next) {
        call->error = error;
        const bool waits = call->keeps || batch->kind.decodes; /* a decoded raster is hashed where it was copied */
        call->is_finished = error != cudaSuccess || (call->frames == 1 && !(waits && lends));
        if (!call->is_finished) continue;
        if (error == cudaSuccess) steps->finish(batch, call);
        finished++;
    }
    pthread_mutex_lock(&g->lock);
    (batch->kind.decodes ? g->times.decode : g->times.encode).copy_ns += now_ns() - start;
    leave(g, area, finished);
    pthread_mutex_unlock(&g->lock);
    for (tsr_batch_call *call = calls, *next; call; call = next) {
        next = call->next; /* a caller that is awake may have left */
        if (call != leader) tsr_pool_wake(pool, call->sleeper);
    }
}

/* What the leader does, while it rests: it waits for a slot, then for the frames of all calls that joined, and runs the
 * batch. */
void lead(tsr_gathering *g, tsr_pool *pool, tsr_area *area, const tsr_batch_steps *steps, const tsr_batch_call *call)
{
    tsr_batch *batch = &area->batch;
    const bool alone = takes_device(g, call), decodes = call->decodes;
    pthread_mutex_lock(&g->lock);
    auto &queue = g->queue[decodes];
    const uint64_t ticket = queue.next_ticket++;
    while (ticket != queue.turn) pthread_cond_wait(&g->turned, &g->lock);
    g->alone += alone; /* now that no leader before it waits for a slot */
    while (!may_start(g, area) || !(batch->slot = take_slot(g, decodes, alone)))
        pthread_cond_wait(&g->turned, &g->lock);
    queue.turn++;
    g->alone -= alone;
    pthread_cond_broadcast(&g->turned);
    area->is_open = false;
    while (batch->staged < batch->joined) pthread_cond_wait(&area->moved, &g->lock);
    pthread_mutex_unlock(&g->lock);

    const slot_range all = device_of(g, batch->slot);
    for (tsr_slot *s = all.begin; alone && s < all.end; s++)
        if (s != batch->slot) tsr_slot_empty(s);
    batch->device_worth = full_room(area, call);
    batch->device_limit = alone ? g->bounds.all : g->bounds.share[decodes];
    const cudaError_t error = steps->run(batch);
    if (error != cudaSuccess || batch->slot->device_bytes > g->bounds.share[decodes])
        tsr_slot_empty(batch->slot); /* after a failure, or if it has the other slots' shares */

    pthread_mutex_lock(&g->lock);
    tsr_gpu_times *const times = batch->kind.decodes ? &g->times.decode : &g->times.encode;
    if (error == cudaSuccess) {
        times->batches++;
        times->frames += batch->frames;
        times->transfer_ns += batch->transfer_ns;
        times->kernel_ns += batch->kernel_ns;
    } else {
        note_failure(g, error);
    }
    give_slot(g, batch->slot, alone);
    pthread_mutex_unlock(&g->lock);
    tell_callers(g, pool, area, steps, call, error);
}

} // namespace

void tsr_gather_touch(tsr_fresh_areas *fresh, const bool *is_unwanted)
{
    for (uint8_t *&host : fresh->host)
        if (!__atomic_load_n(is_unwanted, __ATOMIC_RELAXED)) host = tsr_area_touch(TSR_AREA_BYTES);
}

void tsr_gather_drop(tsr_fresh_areas *fresh)
{
    for (uint8_t *host : fresh->host) free(host);
}

void tsr_gather_begin(tsr_gathering *g)
{
    tsr_make_lock(&g->lock);
    pthread_cond_init(&g->turned, NULL);
    pthread_cond_init(&g->emptied, NULL);
    for (tsr_area &area : g->areas) pthread_cond_init(&area.moved, NULL);
}

void tsr_gather_pin(tsr_gathering *g, tsr_fresh_areas *fresh)
{
    for (int i = 0; i < TSR_DEVICE_AREAS; i++) {
        if (!fresh->host[i] || tsr_area_pin(fresh->host[i], TSR_AREA_BYTES) != cudaSuccess) continue;
        g->areas[i].host = fresh->host[i];
        g->areas[i].bytes = TSR_AREA_BYTES;
    }
    cudaGetLastError(); /* an area without memory gets some when it is needed, or reports why not */
}

void tsr_gather_end(tsr_gathering *g)
{
    for (int i = 0; i < g->devices * TSR_DEVICE_SLOTS; i++) tsr_slot_empty(&g->slots[i]);
    for (tsr_area &area : g->areas) {
        tsr_area_free(area.host);
        pthread_cond_destroy(&area.moved);
    }
    pthread_cond_destroy(&g->emptied);
    pthread_cond_destroy(&g->turned);
    pthread_mutex_destroy(&g->lock);
}

size_t tsr_gather_area_limit(int claimed, size_t memory_bytes)
{
    const size_t share = memory_bytes / 8 / ((size_t)claimed * TSR_DEVICE_AREAS);
    return share > TSR_AREA_BYTES ? share : TSR_AREA_BYTES;
}

const char *tsr_gather_objection(const tsr_gathering *g, const tsr_batch_call *call, size_t payload_bytes,
                                 size_t memory_bytes)
{
    if (call->each + payload_bytes > g->bounds.all) return tsr_no_device_memory;
    return host_room(call, 1, payload_bytes) > tsr_gather_area_limit(g->claimed, memory_bytes) ? tsr_no_host_memory
                                                                                               : NULL;
}

bool tsr_gather_holds(const tsr_gathering *g, const tsr_batch_call *call)
{
    return host_room(call, call->frames, call->payload_bytes) <= TSR_AREA_BYTES &&
           device_room(call, call->frames, call->payload_bytes) <= g->bounds.share[call->decodes];
}

cudaError_t tsr_gather(tsr_gathering *g, tsr_pool *pool, const tsr_batch_kind *kind, const tsr_batch_steps *steps,
                       tsr_batch_call *call, const char **reason)
{
    const size_t held = call->frames * 2 * call->frame_bytes; /* a raster, and its coded bytes */
    const uint64_t start = now_ns();
    uint64_t waited_ns = 0;
    bool rests = false, leads = false;
    cudaError_t error = cudaSuccess;
    tsr_area *area;
    call->area = NULL;
    pthread_mutex_lock(&g->lock);
    const size_t needed = host_room(call, call->frames, call->payload_bytes);
    while (!(area = find_open(g, kind, call)) && !(leads = (area = take_area(g, needed)) != NULL)) {
        if (!rests) tsr_pool_rest(pool, held);
        rests = true;
        pthread_cond_wait(&g->emptied, &g->lock);
    }
    if (rests) waited_ns = now_ns() - start;
    if (leads)
        error = open_batch(g, area, kind, call);
    else
        join(&area->batch, call);
    if (area->batch.frames >= TSR_WORTH_A_SLOT) pthread_cond_broadcast(&g->turned); /* its leader may wait for that */
    *reason = g->failure;
    pthread_mutex_unlock(&g->lock);

    if (error != cudaSuccess) {
        if (rests) tsr_pool_resume(pool);
        return error;
    }
    tsr_batch *batch = &area->batch;
    steps->stage(batch, call);
    const uint64_t staged = now_ns();
    pthread_mutex_lock(&g->lock);
    if (++batch->staged == batch->joined) pthread_cond_broadcast(&area->moved);
    pthread_mutex_unlock(&g->lock);
    if (leads) {
        tsr_pool_hurry(pool, true);
        if (!rests) tsr_pool_rest(pool, held);
        lead(g, pool, area, steps, call);
        tsr_pool_hurry(pool, false);
        tsr_pool_resume(pool);
    } else {
        tsr_pool_sleep(pool, held);
    }
    waited_ns += now_ns() - staged;
    if (!call->is_finished) steps->finish(batch, call);

    pthread_mutex_lock(&g->lock);
    tsr_gpu_times *const times = kind->decodes ? &g->times.decode : &g->times.encode;
    times->copy_ns += now_ns() - start - waited_ns;
    times->wait_ns += waited_ns;
    call->area = call->keeps && !call->is_finished ? area : NULL;
    leave(g, area, call->is_finished || call->area ? 0 : 1);
    pthread_mutex_unlock(&g->lock);
    return call->error;
}

void tsr_gather_leave(tsr_gathering *g, tsr_area *area)
{
    pthread_mutex_lock(&g->lock);
    leave(g, area, 1);
    pthread_mutex_unlock(&g->lock);
}
