/* Path T on the CPU: the plain form, and what chooses a form. FORMAT.md sections 8 to 10; see the header. */
#define TSR_FORM tsr_block_form_plain
#include "blocks_form.h"

const struct tsr_block_form *tsr_block_form(enum tsr_isa isa)
{
#if TSR_HAS_VECTOR_FORMS
    if (isa >= TSR_ISA_AVX2) return &tsr_block_form_avx2;
#endif
    (void)isa;
    return &tsr_block_form_plain;
}

size_t tsr_tile_coefficients(int32_t width, int32_t height)
{
    const struct tsr_block_grid grid = tsr_block_grid(width, height, 1);
    return (size_t)grid.columns * (size_t)grid.rows * TSR_BLOCK_SAMPLES;
}

void tsr_difference_dcs(int32_t *coefficients, struct tsr_block_grid grid)
{
    /* Backwards, so that predictions still find the DCs themselves. */
    const size_t pitch = (size_t)grid.columns * TSR_BLOCK_SAMPLES;
    for (int32_t row = grid.rows - 1; row >= 0; row--) {
        for (int32_t column = grid.columns - 1; column >= 0; column--) {
            int32_t *dc = coefficients + (size_t)row * pitch + (size_t)column * TSR_BLOCK_SAMPLES;
            *dc -= tsr_predict_dc(dc, TSR_BLOCK_SAMPLES, pitch, column == 0, row == 0);
        }
    }
}

bool tsr_restore_dcs(int32_t *coefficients, struct tsr_block_grid grid)
{
    for (int32_t row = 0; row < grid.rows; row++)
        if (!tsr_restore_dc_row(coefficients, grid, row)) return false;
    return true;
}

bool tsr_restore_dc_row(int32_t *coefficients, struct tsr_block_grid grid, int32_t row)
{
    const size_t pitch = (size_t)grid.columns * TSR_BLOCK_SAMPLES;
    int32_t *dc = coefficients + (size_t)row * pitch;
    *dc += tsr_predict_dc(dc, TSR_BLOCK_SAMPLES, pitch, true, row == 0);
    if (tsr_abs(*dc) >= TSR_COEFFICIENT_LIMIT) return false;
    /* Predictions wait for the DC to their left: it stays in a register. In the first row it alone predicts, as the
     * median edge does where the upper one is equal to it. */
    int32_t left = *dc, corner = row > 0 ? *(dc - pitch) : left;
    for (int32_t column = 1; column < grid.columns; column++) {
        dc += TSR_BLOCK_SAMPLES;
        const int32_t up = row > 0 ? *(dc - pitch) : left;
        left = *dc + tsr_median_edge(left, up, corner);
        corner = up;
        if (tsr_abs(left) >= TSR_COEFFICIENT_LIMIT) return false;
        *dc = left;
    }
    return true;
}

/* ---- The form of this machine ---------------------------------------------------------------------------------- */

void tsr_blocks_forward(const uint16_t *samples, struct tsr_tile tile, struct tsr_block_coding coding,
                        int32_t *coefficients)
{
    tsr_block_form(tsr_isa())->forward(samples, tile, coding, coefficients);
}

bool tsr_blocks_inverse(int32_t *coefficients, struct tsr_block_coding coding, uint16_t *samples, struct tsr_tile tile)
{
    return tsr_block_form(tsr_isa())->inverse(coefficients, coding, samples, tile);
}

void tsr_count_blocks(const int32_t *coefficients, struct tsr_tile tile, int32_t slice_side,
                      struct tsr_block_counts *counts)
{
    tsr_block_form(tsr_isa())->count(coefficients, tile, slice_side, counts);
}

size_t tsr_code_slices(const int32_t *coefficients, struct tsr_tile tile, int32_t slice_side,
                       const struct tsr_run_level_codes *codes, const struct tsr_run_level_model *model,
                       uint8_t *payload, size_t capacity)
{
    return tsr_block_form(tsr_isa())->code(coefficients, tile, slice_side, codes, model, payload, capacity);
}

bool tsr_decode_slices(const uint8_t *payload, size_t size, struct tsr_tile tile, int32_t slice_side,
                       const struct tsr_run_level_decoder *decoder, const struct tsr_run_level_model *model,
                       const struct tsr_cavlc_reader *cavlc, int32_t *coefficients)
{
    return tsr_block_form(tsr_isa())->decode(payload, size, tile, slice_side, decoder, model, cavlc, coefficients);
}
