/* Scratches that all frames of a call share: a thread takes one while it works on tiles. So a call needs as many as it
 * has threads, however many frames it has. */
#ifndef TSR_KERNELS_ENGINE_CPU_SCRATCHES_CPU_H
#define TSR_KERNELS_ENGINE_CPU_SCRATCHES_CPU_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/pool/thread_pool.h"

struct tsr_scratches {
    atomic_uint *is_taken; /* by scratch */
    uint8_t *first;
    size_t bytes; /* of each, a multiple of 64 */
    unsigned count;
};

/* Takes the room of count scratches, of so many bytes each, from the space at base + *used, as tsr_take does. The first
 * one begins at a multiple of alignment, wherever base lies. */
struct tsr_scratches tsr_lay_out_scratches(unsigned count, size_t bytes, size_t alignment, void *base, size_t *used);

/* Nobody has taken one yet. */
void tsr_begin_scratches(const struct tsr_scratches *s);

/* Takes a scratch that nobody uses, and gives it back. One is free: only threads with a seat of the pool take one, and
 * none of them waits while it has it, but in the only frame of a call, whose pieces have one each. wanted: the one to
 * look at first. */
void *tsr_take_scratch(const struct tsr_scratches *s, unsigned wanted);
void tsr_give_scratch(const struct tsr_scratches *s, const void *scratch);

#endif
