/* Path T with loss and lapping on the CPU: samples of a tile to quantiser units and back. FORMAT.md section 8.7. */
#ifndef TSR_KERNELS_BLOCKS_LAPPED_CPU_H
#define TSR_KERNELS_BLOCKS_LAPPED_CPU_H

#include "entropy/frame_model.h"
#include "kernels/machine/isa_cpu.h"
#include "transform/block/step_classes.h"

enum {
    TSR_CLASSES_MORE = 8, /* bytes after a tile's classes that may be read */
    TSR_TILE_INTRA = 2    /* the lapping byte of predicted tiles */
};

/* q of a plane's blocks; those that begin at this sample of the plane or later have one higher by coarser_by. classes:
 * of the tile's squares, row by row, with room for TSR_CLASSES_MORE; NULL: all have the plane's step. dcs: means of the
 * blocks (transform/block/dc_plane.h), row by row, where they are coded apart; NULL: the DCs have steps as all else. */
struct tsr_block_steps {
    int32_t q, coarser_by;
    size_t coarser_from;
    const uint8_t *classes;
    int32_t *dcs;
    int dc_fraction;
};

/* Work space of both directions for tiles of this width. */
size_t tsr_lapped_scratch_bytes(int32_t tile_width);

/* The texture of each of a tile's squares, row by row: the mean of tsr_texture of its parts that begin in the tile. */
void tsr_tile_textures(const uint16_t *samples, struct tsr_tile tile, uint32_t range, uint32_t *textures);

/* Samples to values in 1/256 of the quantiser's step, in zigzag order, block after block. */
void tsr_lapped_forward(const uint16_t *samples, struct tsr_tile tile, struct tsr_block_steps steps, bool lapped,
                        int32_t *units, void *scratch);

/* The same of the means of a tile's blocks, without lapping. */
void tsr_forward_dcs(const int32_t *dcs, struct tsr_tile tile, int32_t q, int32_t *units, void *scratch);

/* Units, in place, to coefficients, the first of a block the DC's difference: each rounded with a dead zone, or, with
 * lambda (see entropy/rate_distortion.h) above 0, chosen by rate and distortion, with cavlc by the bits of that coder.
 * scratch: tsr_choose_scratch_bytes. */
size_t tsr_choose_scratch_bytes(int32_t tile_width);
void tsr_choose_coefficients(int32_t *units, struct tsr_tile tile, bool lapped, int32_t lambda, bool cavlc,
                             void *scratch);

/* About what the tile would cost, for a choice between lapped and not; and what it would not lapped, from the samples
 * alone, since only some blocks count. */
uint64_t tsr_rough_tile_cost(const int32_t *units, struct tsr_tile tile);
uint64_t tsr_rough_plain_cost(const uint16_t *samples, struct tsr_tile tile, struct tsr_block_steps steps);

/* Coefficients, the first of a block the DC's difference, to samples 0 .. range-1; false where a DC leaves
 * TSR_COEFFICIENT_LIMIT or, with dcs, is not 0. */
bool tsr_lapped_inverse(int32_t *coefficients, struct tsr_tile tile, struct tsr_block_steps steps, bool lapped,
                        uint32_t range, uint16_t *samples, void *scratch);
/* The same to means. */
bool tsr_inverse_dcs(int32_t *coefficients, struct tsr_tile tile, int32_t q, int32_t *dcs, void *scratch);

/* The eight that have a form for each instruction set; the functions above take that of tsr_isa(). */
struct tsr_lapped_form {
    void (*forward)(const uint16_t *samples, struct tsr_tile tile, struct tsr_block_steps steps, bool lapped,
                    int32_t *units, void *scratch);
    void (*forward_dcs)(const int32_t *dcs, struct tsr_tile tile, int32_t q, int32_t *units, void *scratch);
    void (*choose)(int32_t *units, struct tsr_tile tile, bool lapped, int32_t lambda, bool cavlc, void *scratch);
    uint64_t (*rough_tile_cost)(const int32_t *units, struct tsr_tile tile);
    uint64_t (*rough_plain_cost)(const uint16_t *samples, struct tsr_tile tile, struct tsr_block_steps steps);
    bool (*inverse)(int32_t *coefficients, struct tsr_tile tile, struct tsr_block_steps steps, bool lapped,
                    uint32_t range, uint16_t *samples, void *scratch);
    bool (*inverse_dcs)(int32_t *coefficients, struct tsr_tile tile, int32_t q, int32_t *dcs, void *scratch);
    void (*textures)(const uint16_t *samples, struct tsr_tile tile, uint32_t range, uint32_t *textures);
};
const struct tsr_lapped_form *tsr_lapped_form(enum tsr_isa isa);
extern const struct tsr_lapped_form tsr_lapped_form_plain,
    tsr_lapped_form_avx2; /* the latter where the compiler has it */

#endif
