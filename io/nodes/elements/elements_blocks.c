/* Blocks of elements; see elements_blocks.h. */
#include "elements_blocks.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "elements_place.h"

/* Bytes of a block, about. A file of 2 MB has four. Of 2.0 MB of contours, blocks of this size take 1.7 % more bytes
 * than those of 1 MiB, and half of the time where there are four threads. */
enum { USUAL = 1 << 19 };

struct tsr_elements_cut {
    struct tsr_place place;
    uint64_t size, parts, part; /* part: the one that is read */
    uint64_t at, start;         /* bytes that came; where the block begins */
    uint64_t element;           /* the last one that begins at the end of a part or before it */
    unsigned form;
};

struct tsr_elements_cut *tsr_elements_begin_cut(const uint8_t *first, uint32_t size)
{
    struct tsr_elements_cut *const c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->size = size;
    c->parts = ((uint64_t)size - 1) / USUAL + 1;
    c->part = 1;
    c->form = tsr_place_form(first, size < TSR_ELEMENTS_FIRST ? size : TSR_ELEMENTS_FIRST);
    tsr_place_begin(&c->place, size, c->form);
    return c;
}

void tsr_elements_cut(struct tsr_elements_cut *c, const uint8_t *bytes, size_t count,
                      void (*add)(void *context, uint64_t start, uint64_t end, unsigned form), void *context)
{
    for (const uint8_t *const last = bytes + count; bytes < last; bytes++, c->at++) {
        if (c->place.part == TSR_PLACE_IN_HEAD && c->place.offset == 0) c->element = c->at;
        const uint64_t end = c->size * c->part / c->parts, next = c->size * (c->part + 1) / c->parts;
        if (c->at == end) {
            c->part++;
            const bool is_too_long = next - c->start > TSR_ELEMENTS_PLAIN;
            const uint64_t start = c->start, cut = c->element > start ? c->element : is_too_long ? end : start;
            if (cut > start) add(context, start, cut, start == 0 ? c->form : c->form | TSR_PLACE_BARE);
            c->start = cut;
        }
        tsr_place_take(&c->place, *bytes);
    }
    if (c->at == c->size) add(context, c->start, c->size, c->start == 0 ? c->form : c->form | TSR_PLACE_BARE);
}

struct mixing {
    struct tsr_elements_block *block;
    unsigned count;
    atomic_uint next;
};

static void mix_lane(void *context, unsigned lane)
{
    struct mixing *const m = context;
    (void)lane;
    for (unsigned i; (i = atomic_fetch_add(&m->next, 1)) < m->count;) {
        struct tsr_elements_block *const block = &m->block[i];
        if (block->code.size > 0) continue;
        block->status = tsr_elements_mix_block(block->bytes, block->size, block->form, &block->code, NULL);
        tsr_bytes_fit(&block->code);
    }
}

void tsr_elements_mix_blocks(struct tsr_elements_block *block, unsigned count, const struct tsr_crew *crew,
                             unsigned threads)
{
    struct mixing m = {.block = block, .count = count};
    if (crew->run && threads > 1)
        crew->run(crew->pool, mix_lane, &m, threads);
    else
        mix_lane(&m, 0);
}
