/* Memory, streams and clocks of the CUDA engine's slots, and host memory of its areas. */
#include "kernels/machine/device.cuh"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "slots_cuda.h"

namespace
{

/* Pinning large pages takes two thirds of the time of cudaMallocHost; a program of half a second gets 14 % faster. */
enum { PAGE = 4096, HUGE_PAGE = 2 << 20 };

/* The size to grow to: at least twice the size now, and at least worth, for each step waits for the device; at most
 * most, unless more is needed. */
size_t grown(size_t now, size_t needed, size_t worth, size_t most)
{
    size_t wanted = needed + needed / 4 > 2 * now ? needed + needed / 4 : 2 * now;
    if (wanted < worth) wanted = worth;
    return wanted < most ? wanted : needed > most ? needed : most;
}

cudaError_t open_slot(tsr_slot *slot)
{
    if (slot->stream) return cudaSuccess;
    /* Blocking: a thread that spins while it waits would take a processor from threads that code. */
    for (int i = 0; i < TSR_SLOT_EVENTS; i++)
        if (!slot->event[i]) TSR_CUDA_TRY(cudaEventCreateWithFlags(&slot->event[i], cudaEventBlockingSync));
    return cudaStreamCreateWithFlags(&slot->stream, cudaStreamNonBlocking);
}

/* CUDA gives times as fractions of milliseconds, of type T. They become nanoseconds at once, so that nothing else here
 * computes with fractions. 0 if CUDA gives no time. */
template <typename T>
uint64_t elapsed_ns(cudaError_t (*elapsed_ms)(T *, cudaEvent_t, cudaEvent_t), cudaEvent_t from, cudaEvent_t to)
{
    T ms;
    if (elapsed_ms(&ms, from, to) == cudaSuccess) return (uint64_t)(ms * 1000000);
    cudaGetLastError();
    return 0;
}

} // namespace

cudaError_t tsr_slot_grow(struct tsr_slot *slot, size_t bytes, size_t worth, size_t most)
{
    TSR_CUDA_TRY(cudaSetDevice(slot->device)); /* the caller's thread may have another one */
    TSR_CUDA_TRY(open_slot(slot));
    if (slot->device_bytes >= bytes) return cudaSuccess;
    const size_t wanted = grown(slot->device_bytes, bytes, worth, most);
    uint8_t *const old = slot->d_bytes;
    slot->d_bytes = NULL;
    slot->device_bytes = 0;
    if (old) TSR_CUDA_TRY(cudaFree(old));
    TSR_CUDA_TRY(cudaMalloc(reinterpret_cast<void **>(&slot->d_bytes), wanted));
    slot->device_bytes = wanted;
    return cudaSuccess;
}

cudaError_t tsr_area_grow(uint8_t **host, size_t *bytes, size_t needed)
{
    if (*bytes >= needed) return cudaSuccess;
    uint8_t *const old = *host;
    needed = (needed + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    *host = NULL;
    *bytes = 0;
    tsr_area_free(old);
    uint8_t *const memory = tsr_area_touch(needed);
    if (!memory) return cudaErrorMemoryAllocation;
    TSR_CUDA_TRY(tsr_area_pin(memory, needed));
    *host = memory;
    *bytes = needed;
    return cudaSuccess;
}

uint8_t *tsr_area_touch(size_t bytes)
{
    uint8_t *const memory = static_cast<uint8_t *>(aligned_alloc(HUGE_PAGE, bytes));
    if (!memory) return NULL;
    madvise(memory, bytes, MADV_HUGEPAGE);
    /* Five sixths of the time of pinning memory is finding its pages: 7 ms of 32 MiB. While it is pinned no thread of
     * the process gets memory from the system. So its pages are found here, where threads do. */
    for (size_t at = 0; at < bytes; at += PAGE) const_cast<volatile uint8_t *>(memory)[at] = 0;
    return memory;
}

cudaError_t tsr_area_pin(uint8_t *host, size_t bytes)
{
    const cudaError_t error = cudaHostRegister(host, bytes, cudaHostRegisterPortable);
    if (error != cudaSuccess) free(host);
    return error;
}

void tsr_area_free(uint8_t *host)
{
    if (!host) return;
    cudaHostUnregister(host); /* if this fails, CUDA has failed before */
    free(host);
}

void tsr_slot_empty(struct tsr_slot *slot)
{
    if (slot->stream || slot->d_bytes || slot->event[0]) cudaSetDevice(slot->device);
    /* Work of a failed batch may still use this memory and the area's: cudaFree does not wait for it. */
    if (slot->stream) cudaStreamSynchronize(slot->stream);
    if (slot->d_bytes) cudaFree(slot->d_bytes);
    for (int i = 0; i < TSR_SLOT_EVENTS; i++)
        if (slot->event[i]) cudaEventDestroy(slot->event[i]);
    if (slot->stream) cudaStreamDestroy(slot->stream);
    const int device = slot->device;
    const bool is_taken = slot->is_taken;
    memset(slot, 0, sizeof *slot);
    slot->device = device;
    slot->is_taken = is_taken;
}

cudaError_t tsr_slot_note(const struct tsr_slot *slot, enum tsr_slot_event event)
{
    return cudaEventRecord(slot->event[event], slot->stream);
}

cudaError_t tsr_slot_wait(const struct tsr_slot *slot, enum tsr_slot_event event)
{
    return cudaEventSynchronize(slot->event[event]);
}

uint64_t tsr_slot_ns(const struct tsr_slot *slot, enum tsr_slot_event from, enum tsr_slot_event to)
{
    return elapsed_ns(cudaEventElapsedTime, slot->event[from], slot->event[to]);
}
