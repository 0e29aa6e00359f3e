/* The engine that all tests of a program share. It has one thread and lives as long as the group of tests. */
#ifndef TSR_TESTS_IO_ONE_ENGINE_H
#define TSR_TESTS_IO_ONE_ENGINE_H

#include "in_memory.h"

static struct tsr_engine *engine;

static int create_engine(void **state)
{
    (void)state;
    engine = make_engine(TSR_ENGINE_CPU, 1);
    return engine ? 0 : -1;
}

static int destroy_engine(void **state)
{
    (void)state;
    tsr_engine_destroy(engine);
    return 0;
}

#endif
