/* Linear predictors with AVX-512 VNNI, which adds products of pairs to a sum in one instruction. Eight
 * classes at once took longer than four. Gain: 1.04 to 1.09 times AVX2 on a Zen 5, up to 1.3 on a Zen 4
 * (tests/bench/decisions/032). */
#include "kernels/machine/isa_cpu.h"

#if TSR_HAS_VECTOR_FORMS
#define LINEAR_FORM TSR_AVX512
#define LINEAR_INLINE TSR_AVX512_INLINE
#define LANES 16
#define CLASSES 4
#define ADD_PRODUCTS(sum, a, b) _mm256_dpwssd_epi32(sum, a, b)
#include "linear_vectors.h"

const struct tsr_linear_ops tsr_linear_avx512 = LINEAR_OPS;
#endif
