/* Linear predictors with SSE2, which every x86-64 has: there it stands for plain C. Gain: 6.6 times
 * plain C (tests/bench/decisions/032). */
#if defined(__SSE2__)
#define LINEAR_FORM
#define LINEAR_INLINE static inline __attribute__((always_inline))
#define LANES 8
#define CLASSES 4
#include "linear_vectors.h"

const struct tsr_linear_ops tsr_linear_sse2 = LINEAR_OPS;
#else
typedef int tsr_no_sse2; /* a file is never empty */
#endif
