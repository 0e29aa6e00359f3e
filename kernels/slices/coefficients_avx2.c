/* Coefficients by energy contexts on the CPU for AVX2: the text of the plain form, compiled with -mavx2; see
 * coefficients_form.h. Gain: 1.4 to 1.9 times the plain form (tests/bench/decisions/032). */
#include "kernels/machine/isa_cpu.h"

#if TSR_HAS_VECTOR_FORMS
#define TSR_FORM tsr_coefficient_form_avx2
#define TSR_SLICES_BY_TURNS
#include "coefficients_form.h"
#endif
