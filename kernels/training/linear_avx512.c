/* Linear predictors with AVX-512 VNNI, which adds products of pairs to a sum in one instruction. On an AMD EPYC (Zen 4)
 * costs take 0.85 to 0.9 of AVX2's time, predictions 0.75; eight classes at once took longer than four. */
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
