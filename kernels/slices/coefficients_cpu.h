/* Coefficients of path T by energy contexts on the CPU: by rANS or by Huffman codes of pairs, in slices, one tile of a
 * plane at a time. FORMAT.md sections 8.5, 8.6, 10.5, 10.7. Coefficients lie as kernels/blocks/blocks_cpu.h says. */
#ifndef TSR_KERNELS_SLICES_COEFFICIENTS_CPU_H
#define TSR_KERNELS_SLICES_COEFFICIENTS_CPU_H

#include "entropy/frame_model.h"
#include "kernels/machine/isa_cpu.h"

/* How slices are coded: with pairs null by rANS, else by pairs. */
struct tsr_coefficient_coding {
    int32_t slice_side;
    int magnitude_shift;
    bool pairs;
};

/* Work space of a slice. */
size_t tsr_coefficients_scratch_bytes(int32_t slice_side);

/* Symbols as training wants them, by cell; sums over tiles. */
union tsr_entry_counts {
    uint32_t coefficient[TSR_COEFFICIENT_CELLS][TSR_COEFFICIENT_SYMBOLS];
    uint32_t pair[TSR_PAIR_CELLS][TSR_PAIR_SYMBOLS];
};
/* kept: room for room entries, which the coder takes instead of making them once more; a tile's that do not fit are not
 * kept. */
void tsr_count_entries(const int32_t *coefficients, struct tsr_tile tile, struct tsr_coefficient_coding coding,
                       union tsr_entry_counts *counts, uint32_t *kept, size_t room, void *scratch);

/* Coefficients to a payload and back. The coder returns the payload's bytes, 0 if it would exceed capacity. */
struct tsr_coefficient_tables {
    const struct tsr_coefficient_model *coefficient; /* rANS */
    const tsr_coefficient_codes *coefficient_codes;
    const struct tsr_coefficient_decoder *coefficient_decoder;
    const struct tsr_pair_model *pair;
    const tsr_pair_codes *pair_codes;
    const struct tsr_pair_decoder *pair_decoder;
};
size_t tsr_code_coefficients(const int32_t *coefficients, struct tsr_tile tile, struct tsr_coefficient_coding coding,
                             const struct tsr_coefficient_tables *tables, const uint32_t *kept, uint8_t *payload,
                             size_t capacity, void *scratch);
bool tsr_decode_coefficients(const uint8_t *payload, size_t size, struct tsr_tile tile,
                             struct tsr_coefficient_coding coding, const struct tsr_coefficient_tables *tables,
                             int32_t *coefficients);

/* The three that have a form for each instruction set; the functions above take that of tsr_isa(). What one form keeps
 * of a tile no other form takes. */
struct tsr_coefficient_form {
    void (*count)(const int32_t *coefficients, struct tsr_tile tile, struct tsr_coefficient_coding coding,
                  union tsr_entry_counts *counts, uint32_t *kept, size_t room, void *scratch);
    size_t (*code)(const int32_t *coefficients, struct tsr_tile tile, struct tsr_coefficient_coding coding,
                   const struct tsr_coefficient_tables *tables, const uint32_t *kept, uint8_t *payload, size_t capacity,
                   void *scratch);
    bool (*decode)(const uint8_t *payload, size_t size, struct tsr_tile tile, struct tsr_coefficient_coding coding,
                   const struct tsr_coefficient_tables *tables, int32_t *coefficients);
};
const struct tsr_coefficient_form *tsr_coefficient_form(enum tsr_isa isa);
extern const struct tsr_coefficient_form tsr_coefficient_form_plain,
    tsr_coefficient_form_avx2; /* the latter where the compiler has it */

#endif
