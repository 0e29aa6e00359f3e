/* Tiles of drawn planes for AVX2: the text of the plain form, compiled with -mavx2: eight keys at once.
 * Gain: 1.12 to 1.2 times the plain form (tests/bench/decisions/046). */
#include "kernels/machine/isa_cpu.h"

#if TSR_HAS_VECTOR_FORMS
#define TSR_FORM tsr_drawn_avx2
#include "drawn_form.h"
#endif
