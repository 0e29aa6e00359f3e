/* Linear predictors with AVX2. Of 18 taps, on an AMD EPYC (Zen 4): costs 23, predictions 13, products 2.7 times as fast
 * as plain C, and each about twice as fast as SSE2. */
#include "kernels/machine/isa_cpu.h"

#if TSR_HAS_VECTOR_FORMS
#define LINEAR_FORM TSR_AVX2
#define LINEAR_INLINE TSR_AVX2_INLINE
#define LANES 16
#define CLASSES 4
#include "linear_vectors.h"

const struct tsr_linear_ops tsr_linear_avx2 = LINEAR_OPS;
#endif
