/* Path T on the CPU, and the slices of blocks that CAVLC and run-level Huffman code: one tile of a plane at a time.
 * FORMAT.md sections 8 to 10.
 *
 * Blocks of a tile lie row by row, 16 coefficients each in zigzag order, the first of them the DC's residual. With
 * TSR_BLOCKS_RESIDUAL they are residuals of path P instead, for comparison: predicted, not transformed. */
#ifndef TSR_KERNELS_BLOCKS_BLOCKS_CPU_H
#define TSR_KERNELS_BLOCKS_BLOCKS_CPU_H

#include "kernels/machine/isa_cpu.h"
#include "kernels/residuals/residuals_cpu.h"
#include "entropy/cavlc.h"
#include "entropy/run_level.h"
#include "entropy/slices.h"

enum tsr_block_kind { TSR_BLOCKS_RESIDUAL, TSR_BLOCKS_REVERSIBLE, TSR_BLOCKS_QUANTISED };

/* How a plane's blocks are made and coded. */
struct tsr_block_coding {
    enum tsr_block_kind kind;
    int32_t qp_index;   /* q of transform/block/quantiser.h, of quantised blocks */
    int32_t coarser_by; /* added to q in blocks whose first sample in the plane is coarser_from or a later one */
    uint32_t coarser_from;
    uint32_t range;     /* samples are 0 .. range-1 */
    int32_t slice_side; /* in blocks */
};

/* Symbols of a plane as training wants them; sums over tiles. */
struct tsr_block_counts {
    uint32_t dc[TSR_DC_CELLS][TSR_DC_SYMBOLS];
    uint32_t ac[TSR_AC_CELLS][TSR_AC_SYMBOLS];
};

/* Coefficients of a tile: blocks * 16. */
size_t tsr_tile_coefficients(int32_t width, int32_t height);

/* Samples to coefficients and back. The inverse is false if no tile of such samples has these coefficients. */
void tsr_blocks_forward(const uint16_t *samples, struct tsr_tile tile, struct tsr_block_coding coding,
                        int32_t *coefficients);
bool tsr_blocks_inverse(int32_t *coefficients, struct tsr_block_coding coding, uint16_t *samples, struct tsr_tile tile);

/* DCs to their differences from their predictions, and back, those of all rows or, after the row above it, of one;
 * false where a DC leaves TSR_COEFFICIENT_LIMIT. */
void tsr_difference_dcs(int32_t *coefficients, struct tsr_block_grid grid);
bool tsr_restore_dcs(int32_t *coefficients, struct tsr_block_grid grid);
bool tsr_restore_dc_row(int32_t *coefficients, struct tsr_block_grid grid, int32_t row);

/* Run-level Huffman: counts is added to. */
void tsr_count_blocks(const int32_t *coefficients, struct tsr_tile tile, int32_t slice_side,
                      struct tsr_block_counts *counts);

/* Coefficients to a tile's payload and back; with codes and model null, or decoder and model null, by CAVLC, else by
 * run-level Huffman. The coder returns the payload's bytes, 0 if it would exceed capacity. */
size_t tsr_code_slices(const int32_t *coefficients, struct tsr_tile tile, int32_t slice_side,
                       const struct tsr_run_level_codes *codes, const struct tsr_run_level_model *model,
                       uint8_t *payload, size_t capacity);
bool tsr_decode_slices(const uint8_t *payload, size_t size, struct tsr_tile tile, int32_t slice_side,
                       const struct tsr_run_level_decoder *decoder, const struct tsr_run_level_model *model,
                       const struct tsr_cavlc_reader *cavlc, int32_t *coefficients);

/* The five that have a form for each instruction set; the functions above take that of tsr_isa(). */
struct tsr_block_form {
    void (*forward)(const uint16_t *samples, struct tsr_tile tile, struct tsr_block_coding coding,
                    int32_t *coefficients);
    bool (*inverse)(int32_t *coefficients, struct tsr_block_coding coding, uint16_t *samples, struct tsr_tile tile);
    void (*count)(const int32_t *coefficients, struct tsr_tile tile, int32_t slice_side,
                  struct tsr_block_counts *counts);
    size_t (*code)(const int32_t *coefficients, struct tsr_tile tile, int32_t slice_side,
                   const struct tsr_run_level_codes *codes, const struct tsr_run_level_model *model, uint8_t *payload,
                   size_t capacity);
    bool (*decode)(const uint8_t *payload, size_t size, struct tsr_tile tile, int32_t slice_side,
                   const struct tsr_run_level_decoder *decoder, const struct tsr_run_level_model *model,
                   const struct tsr_cavlc_reader *cavlc, int32_t *coefficients);
};
const struct tsr_block_form *tsr_block_form(enum tsr_isa isa);
extern const struct tsr_block_form tsr_block_form_plain, tsr_block_form_avx2; /* the latter where the compiler has it */

#endif
