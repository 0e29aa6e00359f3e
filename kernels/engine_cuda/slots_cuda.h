/* The means of batches of the CUDA engine: slots, each a stream of a device and memory there, and areas of host memory
 * that copies can run to and from. See slots_cuda.cu. */
#ifndef TSR_KERNELS_ENGINE_CUDA_SLOTS_CUDA_H
#define TSR_KERNELS_ENGINE_CUDA_SLOTS_CUDA_H

#include <cuda_runtime_api.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/gpu_load.h"

/* A device's slots: those for encoding come first. */
enum { TSR_DEVICES_LIMIT = 32, TSR_DEVICE_SLOTS = TSR_ENCODE_SLOTS + TSR_DECODE_SLOTS };

/* When a batch's steps ended, on its stream. */
enum tsr_slot_event { TSR_SLOT_BEGIN, TSR_SLOT_COPIED_IN, TSR_SLOT_DONE, TSR_SLOT_RESULTS, TSR_SLOT_EVENTS };

struct tsr_slot {
    int device;          /* as CUDA counts */
    cudaStream_t stream; /* NULL: nothing has been made yet */
    cudaEvent_t event[TSR_SLOT_EVENTS];
    uint8_t *d_bytes;
    size_t device_bytes;
    bool is_taken; /* under the lock of the owner of the slots */
};

/* Device memory that an engine may take of each device: a slot's share, of those for encoding and of those for
 * decoding, and what the slots of a device take together, or one of them that is the only one. */
struct tsr_slot_bounds {
    size_t share[2], all;
};

#ifdef __cplusplus
extern "C" {
#endif

/* Makes the slot's device the calling thread's, and gives the slot at least this number of bytes. A slot that grows
 * loses what it held. Growing holds up all other threads that call CUDA, so the slot grows to worth bytes at once.
 * most: of device memory, not less than bytes. */
cudaError_t tsr_slot_grow(struct tsr_slot *slot, size_t bytes, size_t worth, size_t most);

/* The same of host memory, bytes of it at *host; any device copies to and from it. */
cudaError_t tsr_area_grow(uint8_t **host, size_t *bytes, size_t needed);
void tsr_area_free(uint8_t *host);

/* The two steps of growing an area. One thread can take the first while another wakes CUDA. tsr_area_touch returns
 * memory whose pages are there; NULL: there is no memory. tsr_area_pin pins it; if that fails, it frees the memory.
 * bytes: of whole areas. */
uint8_t *tsr_area_touch(size_t bytes);
cudaError_t tsr_area_pin(uint8_t *host, size_t bytes);

/* Frees what the slot holds. Errors of CUDA are ignored: it may have failed before. */
void tsr_slot_empty(struct tsr_slot *slot);

/* Notes on the stream that a step ends here; tsr_slot_wait waits for it, without keeping a processor busy;
 * tsr_slot_ns is the time between two that have been waited for. */
cudaError_t tsr_slot_note(const struct tsr_slot *slot, enum tsr_slot_event event);
cudaError_t tsr_slot_wait(const struct tsr_slot *slot, enum tsr_slot_event event);
uint64_t tsr_slot_ns(const struct tsr_slot *slot, enum tsr_slot_event from, enum tsr_slot_event to);

#ifdef __cplusplus
}
#endif

#endif
