/* Forms of the coder of drawn tiles. */
#ifndef TSR_KERNELS_DRAWN_DRAWN_FORMS_CPU_H
#define TSR_KERNELS_DRAWN_DRAWN_FORMS_CPU_H

#include "drawn_cpu.h"
#include "entropy/drawn.h"
#include "kernels/machine/isa_cpu.h"

enum { TSR_DRAWN_ALIGNMENT = 64 };

static inline size_t tsr_drawn_row_bytes(int32_t width)
{
    return ((size_t)width + TSR_DRAWN_LEFT + TSR_DRAWN_RIGHT) * sizeof(uint16_t);
}

/* A row of what guesses missed. */
static inline size_t tsr_misses_row_bytes(int32_t width)
{
    return tsr_drawn_row_bytes(width) * TSR_BLEND_GUESSES;
}

/* tsr_code_drawn_tile, tsr_code_drawn_tile_both and tsr_decode_drawn_tile. */
struct tsr_drawn_form {
    size_t (*code)(const uint16_t *samples, struct tsr_tile tile, uint32_t range, enum tsr_drawn_kind kind,
                   uint8_t *payload, size_t capacity, uint32_t *others, void *scratch);
    size_t (*code_both)(const uint16_t *samples, struct tsr_tile tile, uint32_t range, uint8_t *payload,
                        size_t capacity, uint32_t *others, void *scratch);
    bool (*decode)(const uint8_t *payload, size_t size, uint32_t range, uint16_t *samples, struct tsr_tile tile,
                   void *scratch);
};
extern const struct tsr_drawn_form tsr_drawn_plain, tsr_drawn_avx2;
const struct tsr_drawn_form *tsr_drawn_form(enum tsr_isa isa);

#endif
