/* Packing of a frame's colours: indices into the values that its components use, or into its colours. FORMAT.md section
 * 6.6. */
#ifndef TSR_KERNELS_PLANES_COLOURS_CPU_H
#define TSR_KERNELS_PLANES_COLOURS_CPU_H

#include "entropy/frame_model.h"

enum { TSR_COLOUR_SLOTS = 4 * TSR_PALETTE_LIMIT };

/* Scratch of tsr_pack_colours. */
struct tsr_colour_work {
    uint8_t used[65536];
    uint16_t index[65536];
    struct {
        uint64_t key; /* a colour, plus 1; 0 where the slot is free */
        uint16_t number;
    } slot[TSR_COLOUR_SLOTS];
    uint64_t colour[TSR_PALETTE_LIMIT]; /* by number, in the order in which they are met */
    uint64_t sorted[TSR_PALETTE_LIMIT];
    uint16_t rank[TSR_PALETTE_LIMIT];
    uint32_t colours;
    uint8_t description[TSR_COLOUR_MODEL_LIMIT];
};

/* Packs planes 0..2, of rows x columns values of this number of bits, in place, the way that costs least under the
 * median edge predictor, or not at all. Sets all of colours but its lists, which must have room. */
void tsr_pack_colours(uint16_t *const *planes, uint32_t columns, uint32_t rows, int bits,
                      struct tsr_colour_model *colours, struct tsr_colour_work *work);

/* Indices to values, in place. */
void tsr_unpack_colours(uint16_t *const *planes, size_t count, const struct tsr_colour_model *colours);

#endif
