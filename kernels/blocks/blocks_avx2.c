/* Path T on the CPU for AVX2: the text of the plain form, compiled with -mavx2; see blocks_form.h.
 * Gain: 1.2 to 1.5 times the plain form (tests/bench/decisions/032). */
#include "kernels/machine/isa_cpu.h"

#if TSR_HAS_VECTOR_FORMS
#define TSR_FORM tsr_block_form_avx2
#define TSR_EIGHT_BLOCKS
#include "blocks_form.h"
#endif
