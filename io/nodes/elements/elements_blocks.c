/* Blocks of elements; see elements_blocks.h. */
#include "elements_blocks.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "elements_place.h"

/* Bytes of a block, about. A file of 2 MB has four. Of 2.0 MB of contours, blocks of this size take 1.7 % more bytes
 * than those of 1 MiB, and half of the time where there are four threads. */
enum { USUAL = 1 << 19 };

static void add(struct tsr_elements_block *block, unsigned *count, const uint8_t *bytes, size_t start, size_t end,
                unsigned form)
{
    block[(*count)++] = (struct tsr_elements_block){
        .bytes = bytes + start, .size = end - start, .form = start == 0 ? form : form | TSR_PLACE_BARE};
}

enum tsr_status tsr_elements_cut(const uint8_t *bytes, size_t size,
                                 struct tsr_elements_block block[TSR_ELEMENTS_BLOCKS], unsigned *count,
                                 struct tsr_error *error)
{
    const uint64_t parts = (size - 1) / USUAL + 1;
    const unsigned form = tsr_place_form(bytes, (uint32_t)size);
    struct tsr_place *const place = calloc(1, sizeof *place);
    size_t start = 0, element = 0; /* of the block; the last one that begins at the end of a part or before it */
    *count = 0;
    if (!place) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to cut elements");
    tsr_place_begin(place, (uint32_t)size, form);
    for (uint64_t at = 0, part = 1; part < parts; at++) {
        if (place->part == TSR_PLACE_IN_HEAD && place->offset == 0) element = (size_t)at;
        const uint64_t end = size * part / parts, next = size * (part + 1) / parts;
        if (at == end) {
            part++;
            const bool is_too_long = next - start > TSR_ELEMENTS_PLAIN;
            const size_t cut = element > start ? element : is_too_long ? (size_t)end : start;
            if (cut > start) add(block, count, bytes, start, cut, form);
            start = cut;
        }
        tsr_place_take(place, bytes[at]);
    }
    add(block, count, bytes, start, size, form);
    free(place);
    return TSR_OK;
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
