/* Scratches of a call; see the header. */
#include "scratches_cpu.h"

#include "engine_cpu.h"

struct tsr_scratches tsr_lay_out_scratches(unsigned count, size_t bytes, size_t alignment, void *base, size_t *used)
{
    struct tsr_scratches s = {.bytes = bytes, .count = count};
    s.is_taken = tsr_take(base, used, count * sizeof *s.is_taken);
    uint8_t *const room = tsr_take(base, used, count * bytes + alignment);
    s.first = base ? room + (-(uintptr_t)room & (alignment - 1)) : NULL;
    return s;
}

void tsr_begin_scratches(const struct tsr_scratches *s)
{
    for (unsigned i = 0; i < s->count; i++) atomic_init(&s->is_taken[i], 0);
}

void *tsr_take_scratch(const struct tsr_scratches *s, unsigned wanted)
{
    unsigned at = wanted % s->count;
    while (atomic_exchange(&s->is_taken[at], 1)) at = (at + 1) % s->count;
    return s->first + at * s->bytes;
}

void tsr_give_scratch(const struct tsr_scratches *s, const void *scratch)
{
    atomic_store(&s->is_taken[(size_t)((const uint8_t *)scratch - s->first) / s->bytes], 0);
}
