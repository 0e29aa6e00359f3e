/* Linear predictors with AVX2. Gain: 1.8 times SSE2 (tests/bench/decisions/032). */
#include "kernels/machine/isa_cpu.h"

#if TSR_HAS_VECTOR_FORMS
#define LINEAR_FORM TSR_AVX2
#define LINEAR_INLINE TSR_AVX2_INLINE
#define LANES 16
#define CLASSES 4
#include "linear_vectors.h"

const struct tsr_linear_ops tsr_linear_avx2 = LINEAR_OPS;
#endif
