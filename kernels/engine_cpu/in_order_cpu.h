/* Pieces of a frame that threads finish in any order, and that are given away in their own order while later ones are
 * still worked on. */
#ifndef TSR_KERNELS_ENGINE_CPU_IN_ORDER_CPU_H
#define TSR_KERNELS_ENGINE_CPU_IN_ORDER_CPU_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tsr_in_order {
    atomic_uint *left; /* by piece: what there is still to be done; 0: the piece is finished */
    uint32_t count;
    atomic_uint given;
    atomic_bool is_giving;
};

/* left: room for count pieces. Each begins with this much to be done. */
void tsr_in_order_init(struct tsr_in_order *order, atomic_uint *left, uint32_t count, unsigned to_be_done);

/* Calls give for the pieces that are finished and follow those that were given, in one thread at a time. A thread calls
 * it after it has finished a piece. If another thread is at it, the piece is left to that one. */
void tsr_give_in_order(struct tsr_in_order *order, void (*give)(void *context, uint32_t piece), void *context);

#endif
