/* Path T with lapping on the CPU for AVX2: the text of the plain form, compiled with -mavx2; see lapped_form.h.
 * Gain: 2.8 times the plain form (tests/bench/decisions/032). */
#include "kernels/machine/isa_cpu.h"

#if TSR_HAS_VECTOR_FORMS
#define TSR_FORM tsr_lapped_form_avx2
#define TSR_EIGHT_BLOCKS
#define TSR_CHOOSE_TILE "choose_avx2.h"
#include "lapped_form.h"
#endif
