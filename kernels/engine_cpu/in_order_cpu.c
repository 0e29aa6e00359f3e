/* Pieces in their order; see the header. */
#include "in_order_cpu.h"

void tsr_in_order_init(struct tsr_in_order *order, atomic_uint *left, uint32_t count, unsigned to_be_done)
{
    order->left = left;
    order->count = count;
    atomic_init(&order->given, 0);
    atomic_init(&order->is_giving, false);
    for (uint32_t piece = 0; piece < count; piece++) atomic_init(&left[piece], to_be_done);
}

static bool has_next(struct tsr_in_order *order)
{
    const uint32_t next = atomic_load(&order->given);
    return next < order->count && atomic_load(&order->left[next]) == 0;
}

/* After its turn a thread looks again: another one may have finished the next piece meanwhile, and left it. */
void tsr_give_in_order(struct tsr_in_order *order, void (*give)(void *context, uint32_t piece), void *context)
{
    while (has_next(order)) {
        if (atomic_exchange(&order->is_giving, true)) return;
        while (has_next(order)) {
            give(context, atomic_load(&order->given));
            atomic_fetch_add(&order->given, 1);
        }
        atomic_store(&order->is_giving, false);
    }
}
