/* The model of a JPEG-LS scan: contexts, and how samples change them. T.87 annex A. JPEG_LS.md 4. */
#ifndef TSR_IO_NODES_JPEG_LS_JPEG_LS_SCAN_H
#define TSR_IO_NODES_JPEG_LS_JPEG_LS_SCAN_H

#include "jpeg_ls.h"

#if defined(__GNUC__)
#define JPEG_LS_INLINE static inline __attribute__((always_inline))
#define JPEG_LS_APART __attribute__((noinline))
#define JPEG_LS_RARE(condition) __builtin_expect(condition, 0)
#else
#define JPEG_LS_INLINE static inline
#define JPEG_LS_APART
#define JPEG_LS_RARE(condition) (condition)
#endif

enum {
    JPEG_LS_CONTEXTS = 365,
    JPEG_LS_WIDEST = 65535, /* difference of two samples */
    JPEG_LS_SHORT = 24      /* zeros of a code that is read or written in one go, with its bits after the one */
};

/* A context of the regular mode. k and flip follow from the others: they are ready before the next sample needs them.
 */
struct jpeg_ls_context {
    uint32_t a;
    int32_t b;
    int16_t c;
    uint16_t n;
    uint8_t k;    /* least k with n * 2^k >= a */
    uint8_t flip; /* 1: k = 0 and 2b <= -n, the codes of errors e and -1 - e change places */
};

/* A context of interrupted runs. */
struct jpeg_ls_run_context {
    uint32_t a, n, negative;
};

struct tsr_jpeg_ls_coder {
    struct tsr_image image;
    const struct tsr_jpeg_ls_headers *headers;
    int32_t maximum, range;
    int32_t near, step; /* T.87's NEAR, and 2 NEAR + 1: 0 and 1 without loss */
    int32_t longest;    /* LIMIT - qbpp - 1: zeros of an escape */
    int32_t brief;      /* codes with fewer zeros are brief: the least of longest and JPEG_LS_SHORT */
    int bits;           /* qbpp */
    uint32_t reset;
    uint32_t run_index[TSR_JPEG_LS_COMPONENTS];
    struct jpeg_ls_context contexts[JPEG_LS_CONTEXTS];
    struct jpeg_ls_run_context runs[2];
    /* Rows of each component of the scan, from a sample before the first to a sample after the last. */
    uint16_t *above[TSR_JPEG_LS_COMPONENTS], *row[TSR_JPEG_LS_COMPONENTS];
    uint16_t *rows;                         /* memory of all rows */
    uint8_t *bytes;                         /* memory of an encoder's bits, NULL before the first */
    int8_t regions[2 * JPEG_LS_WIDEST + 1]; /* the region -4 .. 4 of a difference, T.87 A.3.3 */
};

static const uint8_t jpeg_ls_run_bits[32] = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,  2,  3,  3,  3,  3,
                                             4, 4, 5, 5, 6, 6, 7, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/* The number of zeros before the first one. value is not 0. */
JPEG_LS_INLINE int jpeg_ls_zeros(uint64_t value)
{
#if defined(__GNUC__)
    return __builtin_clzll(value);
#else
    int zeros = 0;
    for (; !(value >> 63); value <<= 1) zeros++;
    return zeros;
#endif
}

/* The least k with n * 2^k >= a. n is at least 1. */
JPEG_LS_INLINE uint32_t jpeg_ls_k(uint32_t a, uint32_t n)
{
    const int more = jpeg_ls_zeros(n) - jpeg_ls_zeros(a | 1);
    const uint32_t shift = more > 0 ? (uint32_t)more : 0;
    return shift + ((uint64_t)n << shift < a);
}

JPEG_LS_INLINE int32_t jpeg_ls_clamp(int32_t value, int32_t low, int32_t high)
{
    value = value < low ? low : value;
    return value > high ? high : value;
}

/* 0, or -1 for negative numbers. */
JPEG_LS_INLINE int32_t jpeg_ls_sign(int32_t value)
{
    return -(int32_t)((uint32_t)value >> 31);
}

/* The median of left, above and left + above - corner: T.87 A.4.1. */
JPEG_LS_INLINE int32_t jpeg_ls_predict(int32_t left, int32_t above, int32_t corner)
{
    const int32_t low = left < above ? left : above, high = left < above ? above : left;
    return jpeg_ls_clamp(left + above - corner, low, high);
}

/* The number of the context, -364 .. 364: its sign is SIGN of T.87 A.3.4. */
JPEG_LS_INLINE int32_t jpeg_ls_number(const int8_t *regions, int32_t left, int32_t corner, int32_t upper)
{
    return upper + regions[corner - left];
}

/* 81 and 9 times the regions of the differences that need no sample of the row: right - above and above - corner. */
JPEG_LS_INLINE int32_t jpeg_ls_upper(int32_t of_right, int32_t of_corner)
{
    return 81 * of_right + 9 * of_corner;
}

/* The numbers of the contexts of interleaved samples. False: all are 0, and a run begins. */
JPEG_LS_INLINE bool jpeg_ls_numbers(const struct tsr_jpeg_ls_coder *coder, uint32_t x, const int components,
                                    int32_t numbers[TSR_JPEG_LS_COMPONENTS])
{
    const int8_t *const regions = coder->regions + JPEG_LS_WIDEST;
    int32_t any = 0;
    for (int c = 0; c < components; c++) {
        const uint16_t *const above = coder->above[c] + x;
        const int32_t upper = jpeg_ls_upper(regions[above[1] - above[0]], regions[above[0] - above[-1]]);
        numbers[c] = jpeg_ls_number(regions, (coder->row[c] + x)[-1], above[-1], upper);
        any |= numbers[c];
    }
    return any != 0;
}

/* T.87 A.6. */
JPEG_LS_INLINE void jpeg_ls_adapt(struct jpeg_ls_context *context, int32_t error, int32_t step, uint32_t reset)
{
    uint32_t a = context->a + (uint32_t)(error < 0 ? -error : error), n = context->n;
    int32_t b = context->b + error * step;
    if (JPEG_LS_RARE(n == reset)) {
        a >>= 1;
        b = b >= 0 ? b / 2 : -((1 - b) / 2);
        n >>= 1;
    }
    n++;
    const int32_t low = b <= -(int32_t)n, high = b > 0;
    context->c = (int16_t)jpeg_ls_clamp(context->c + high - low, -128, 127);
    b = jpeg_ls_clamp(b + (-low & (int32_t)n) - (-high & (int32_t)n), 1 - (int32_t)n, 0);
    const uint32_t k = jpeg_ls_k(a, n);
    context->a = a;
    context->b = b;
    context->n = (uint16_t)n;
    context->k = (uint8_t)k;
    context->flip = (uint8_t)((k == 0) & (2 * b <= -(int32_t)n));
}

/* T.87 A.7.2.1: k of an interruption of type 0 or 1. */
JPEG_LS_INLINE uint32_t jpeg_ls_run_k(const struct jpeg_ls_run_context *context, uint32_t type)
{
    return jpeg_ls_k(context->a + (type ? context->n >> 1 : 0), context->n);
}

/* T.87 A.7.2.2. coded is EMErrval. */
JPEG_LS_INLINE void jpeg_ls_run_adapt(struct jpeg_ls_run_context *context, int32_t error, uint32_t coded, uint32_t type,
                                      uint32_t reset)
{
    context->negative += error < 0;
    context->a += (coded + 1 - type) >> 1;
    if (context->n == reset) {
        context->a >>= 1;
        context->n >>= 1;
        context->negative >>= 1;
    }
    context->n++;
}

/* Begins an interval: contexts, run indices and the row above. */
void jpeg_ls_begin_interval(struct tsr_jpeg_ls_coder *coder);
/* Begins a row: the samples outside of it. T.87 A.2.1. */
void jpeg_ls_begin_row(struct tsr_jpeg_ls_coder *coder);
/* Ends a row: it is the row above of the next. */
void jpeg_ls_end_row(struct tsr_jpeg_ls_coder *coder);

#endif
