/* What the choice of a packing (FORMAT.md 6.6) compares, in both engines. Which packings it compares, and in which
 * order, tsr_pack_colours defines. */
#ifndef TSR_KERNELS_PLANES_COLOUR_CHOICE_H
#define TSR_KERNELS_PLANES_COLOUR_CHOICE_H

#include "entropy/code_cost.h"
#include "entropy/frame_model.h"

/* What a plane that is not constant takes besides its residuals, at least: measured on flat screens. A palette leaves
 * one such plane, all else three. */
enum { TSR_PLANE_BITS = 800 };

/* True if a component that uses this number of values leaves at least half of its span unused. */
TSR_HD bool tsr_is_sparse(uint32_t used, uint32_t low, uint32_t high)
{
    return 2 * used <= high - low + 1;
}

/* A grey colour: one plane holds the components of all of these already. */
TSR_HD bool tsr_is_grey(uint64_t key)
{
    const uint16_t first = tsr_key_component(key, 0);
    return first == tsr_key_component(key, 1) && first == tsr_key_component(key, 2);
}

/* The slot at which a set of colours begins to look for one; slots: their number. */
TSR_HD uint32_t tsr_colour_slot(uint64_t key, uint32_t slots)
{
    return (uint32_t)(key * 0x9e3779b97f4a7c15u >> 40) % slots;
}

/* Cost over the rows that choices look at, bits x 4096, to bits of all samples. Of at least two columns and rows. */
TSR_HD uint64_t tsr_bits_of_cost(uint64_t cost, uint32_t columns, uint32_t rows)
{
    const uint32_t step = tsr_choice_step(columns, rows, TSR_COLOUR_SAMPLES);
    const uint64_t looked_at = (uint64_t)((rows - 1 + step - 1) / step) * (columns - 1);
    return cost / looked_at * ((uint64_t)columns * rows) >> TSR_COST_SHIFT;
}

/* Bits of a packing's description, which ends with a whole byte; lists: those that follow its number. */
TSR_HD uint64_t tsr_packing_bits(uint64_t lists)
{
    return (2 + lists + 7) / 8 * 8;
}

#endif
