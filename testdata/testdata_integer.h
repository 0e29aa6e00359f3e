/* Arithmetic that decides bytes. It uses integers only, so every machine makes the same set. */
#ifndef TESTDATA_INTEGER_H
#define TESTDATA_INTEGER_H

#include <stdint.h>

static inline int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

static inline int64_t square(int64_t value)
{
    return value * value;
}

/* Rounds to the nearest integer, halves up. C's own division rounds to zero, which would make 0 twice as frequent. */
static inline int64_t divide_rounded(int64_t value, int64_t divisor)
{
    const int64_t shifted = value + divisor / 2, quotient = shifted / divisor;
    return shifted % divisor < 0 ? quotient - 1 : quotient;
}

/* The largest integer whose square is at most value; 0 for negative values. */
static inline int64_t square_root(int64_t value)
{
    int64_t root = 0;
    for (int64_t bit = (int64_t)1 << 30; bit > 0; bit >>= 1)
        if (square(root + bit) <= value) root += bit;
    return root;
}

/* A triangle wave: 0 at 0, peak at half the period, 0 at the period. */
static inline int triangle(int at, int period, int peak)
{
    const int phase = at % period;
    return 2 * peak * (2 * phase < period ? phase : period - phase) / period;
}

#endif
