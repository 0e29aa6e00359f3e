/* Path T with lapping on the CPU: the plain form, and what chooses a form. FORMAT.md section 8.7; see the header. */
#define TSR_FORM tsr_lapped_form_plain
#include "lapped_form.h"

const struct tsr_lapped_form *tsr_lapped_form(enum tsr_isa isa)
{
#if TSR_HAS_VECTOR_FORMS
    if (isa >= TSR_ISA_AVX2) return &tsr_lapped_form_avx2;
#endif
    (void)isa;
    return &tsr_lapped_form_plain;
}

size_t tsr_lapped_scratch_bytes(int32_t tile_width)
{
    return (ROWS_HELD * 16 + 16) * pitch_of(tile_width) * sizeof(int32_t);
}

/* Two rows of magnitudes as plain rounding gives them, with a block of zeros before and after. choose_avx2.h has three
 * rows of DCs behind them. */
size_t tsr_choose_scratch_bytes(int32_t tile_width)
{
    const size_t columns = (size_t)(tile_width + 3) / 4;
    return 2 * (columns + 2) * sizeof(struct tsr_magnitudes) + 3 * (columns + DC_ROW_MORE) * sizeof(int32_t);
}

/* ---- The form of this machine ---------------------------------------------------------------------------------- */

void tsr_lapped_forward(const uint16_t *samples, struct tsr_tile tile, struct tsr_block_steps steps, bool lapped,
                        int32_t *units, void *scratch)
{
    tsr_lapped_form(tsr_isa())->forward(samples, tile, steps, lapped, units, scratch);
}

void tsr_forward_dcs(const int32_t *dcs, struct tsr_tile tile, int32_t q, int32_t *units, void *scratch)
{
    tsr_lapped_form(tsr_isa())->forward_dcs(dcs, tile, q, units, scratch);
}

void tsr_choose_coefficients(int32_t *units, struct tsr_tile tile, bool lapped, int32_t lambda, bool cavlc,
                             void *scratch)
{
    tsr_lapped_form(tsr_isa())->choose(units, tile, lapped, lambda, cavlc, scratch);
}

uint64_t tsr_rough_tile_cost(const int32_t *units, struct tsr_tile tile)
{
    return tsr_lapped_form(tsr_isa())->rough_tile_cost(units, tile);
}

uint64_t tsr_rough_plain_cost(const uint16_t *samples, struct tsr_tile tile, struct tsr_block_steps steps)
{
    return tsr_lapped_form(tsr_isa())->rough_plain_cost(samples, tile, steps);
}

bool tsr_lapped_inverse(int32_t *coefficients, struct tsr_tile tile, struct tsr_block_steps steps, bool lapped,
                        uint32_t range, uint16_t *samples, void *scratch)
{
    return tsr_lapped_form(tsr_isa())->inverse(coefficients, tile, steps, lapped, range, samples, scratch);
}

bool tsr_inverse_dcs(int32_t *coefficients, struct tsr_tile tile, int32_t q, int32_t *dcs, void *scratch)
{
    return tsr_lapped_form(tsr_isa())->inverse_dcs(coefficients, tile, q, dcs, scratch);
}

void tsr_tile_textures(const uint16_t *samples, struct tsr_tile tile, uint32_t range, uint32_t *textures)
{
    tsr_lapped_form(tsr_isa())->textures(samples, tile, range, textures);
}
