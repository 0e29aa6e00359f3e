/* What the unit tests share: cmocka, random numbers with fixed seeds, and failures that name the case of a loop. */
#ifndef TSR_TESTS_UNIT_SUPPORT_H
#define TSR_TESTS_UNIT_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/paths.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#define TEST(name) static void name(__attribute__((unused)) void **state)

__attribute__((format(printf, 4, 5))) static inline void fail_case(const char *file, int line, const char *condition,
                                                                   const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_error("%s:%d: not (%s): ", file, line, condition);
    vprint_error(format, arguments);
    print_error("\n");
    va_end(arguments);
    _fail(file, line);
}

/* Like assert_true; the message names the case. */
#define expect(condition, ...) ((condition) ? (void)0 : fail_case(__FILE__, __LINE__, #condition, __VA_ARGS__))

/* What a crew runs, the last call first, by one thread. calls: an unsigned number to which theirs is added, or NULL. */
static inline void run_backwards(void *calls, void (*work)(void *context, unsigned index), void *context,
                                 unsigned count)
{
    if (calls) *(unsigned *)calls += count;
    while (count > 0) work(context, --count);
}

/* Whether to leave this case of a loop out: with TSR_TEST_SMALL=N in the environment all but one of N are. It is for
 * sanitizers, which make tests slow; for tests of one thread. */
static inline bool skip_case(void)
{
    static int number;
    const char *const step = getenv("TSR_TEST_SMALL");
    if (!step || atoi(step) <= 1) return false;
    return ((uint32_t)number++ * 2654435761u >> 16) % (unsigned)atoi(step) != 0; /* hashed: in step with no loop */
}

/* splitmix64 (Steele, Lea and Flood 2014). Its first state is the seed. */
struct rng {
    uint64_t state;
};

static inline uint64_t rng_next(struct rng *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* A random number of 0 .. limit-1. */
static inline uint32_t rng_below(struct rng *r, uint32_t limit)
{
    return (uint32_t)(((rng_next(r) >> 32) * limit) >> 32);
}

/* A random number of low .. high. */
static inline int32_t rng_between(struct rng *r, int32_t low, int32_t high)
{
    return (int32_t)(low + (int64_t)rng_below(r, (uint32_t)((int64_t)high - low + 1)));
}

/* A number of random width: 0 .. 2^bits - 1, small ones as likely as large ones. */
static inline uint32_t rng_width(struct rng *r, int bits)
{
    const int width = (int)rng_below(r, (uint32_t)bits + 1u);
    return width == 0 ? 0 : (uint32_t)(rng_next(r) >> (64 - width));
}

static inline void *must(void *memory)
{
    assert_non_null(memory);
    return memory;
}

/* floor(value / 2^shift), with divisions of numbers that are not negative. */
static inline int64_t floor_shift(int64_t value, int shift)
{
    const int64_t divisor = (int64_t)1 << shift;
    return value >= 0 ? value / divisor : -1 - (-1 - value) / divisor;
}

static inline int64_t clamp_to(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* The number of bits of v: 0 for 0, 1 for 1, 2 for 2 and 3. */
static inline int plain_width(uint64_t v)
{
    int width = 0;
    for (; v > 0; v /= 2) width++;
    return width;
}

#endif
