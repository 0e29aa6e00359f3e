/* CPU engines of several numbers of threads, for a group of tests. They code and decode the same. */
#ifndef TSR_TESTS_UNIT_KERNELS_ENGINES_H
#define TSR_TESTS_UNIT_KERNELS_ENGINES_H

#include "tests/unit/images.h"

static const int thread_counts[] = {1, 2, 3, 8};
static struct tsr_engine *engines[COUNT_OF(thread_counts)];

static int create_engines(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(engines); i++)
        if (!(engines[i] = make_engine(TSR_ENGINE_CPU, thread_counts[i]))) return -1;
    return 0;
}

static int destroy_engines(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(engines); i++) tsr_engine_destroy(engines[i]);
    return 0;
}

static struct tsr_engine *any_engine(struct rng *r)
{
    return engines[rng_below(r, COUNT_OF(engines))];
}

#endif
