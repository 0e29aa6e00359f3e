/* Linear predictors with SSE2, which every x86-64 has: there it stands for plain C. Of 18 taps, on an AMD EPYC (Zen 4):
 * costs 10 to 12, predictions 7, products 1.5 times as fast. */
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
