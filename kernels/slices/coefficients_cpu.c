/* Coefficients by energy contexts on the CPU: the plain form, and what chooses a form. FORMAT.md sections 8.5, 8.6,
 * 10.5, 10.7; see the header. */
#define TSR_FORM tsr_coefficient_form_plain
#include "coefficients_form.h"

const struct tsr_coefficient_form *tsr_coefficient_form(enum tsr_isa isa)
{
#if TSR_HAS_VECTOR_FORMS
    if (isa >= TSR_ISA_AVX2) return &tsr_coefficient_form_avx2;
#endif
    (void)isa;
    return &tsr_coefficient_form_plain;
}

size_t tsr_coefficients_scratch_bytes(int32_t slice_side)
{
    return PUT_TABLES_BYTES + entries_limit(slice_side) * sizeof(uint32_t);
}

/* ---- The form of this machine ---------------------------------------------------------------------------------- */

void tsr_count_entries(const int32_t *coefficients, struct tsr_tile tile, struct tsr_coefficient_coding coding,
                       union tsr_entry_counts *counts, uint32_t *kept, size_t room, void *scratch)
{
    tsr_coefficient_form(tsr_isa())->count(coefficients, tile, coding, counts, kept, room, scratch);
}

size_t tsr_code_coefficients(const int32_t *coefficients, struct tsr_tile tile, struct tsr_coefficient_coding coding,
                             const struct tsr_coefficient_tables *tables, const uint32_t *kept, uint8_t *payload,
                             size_t capacity, void *scratch)
{
    return tsr_coefficient_form(tsr_isa())->code(coefficients, tile, coding, tables, kept, payload, capacity, scratch);
}

bool tsr_decode_coefficients(const uint8_t *payload, size_t size, struct tsr_tile tile,
                             struct tsr_coefficient_coding coding, const struct tsr_coefficient_tables *tables,
                             int32_t *coefficients)
{
    return tsr_coefficient_form(tsr_isa())->decode(payload, size, tile, coding, tables, coefficients);
}
