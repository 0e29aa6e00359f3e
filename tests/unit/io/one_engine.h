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

/* Compresses a file with a coding, and restores it: the same bytes come back. */
static inline void check_there_and_back(struct bytes b, const struct tsr_coding *coding, const char *what)
{
    const struct bytes tsr = compress_bytes(engine, b, coding);
    struct bytes restored;
    bool damaged;
    assert_int_equal(restore_bytes(engine, tsr.data, tsr.size, &restored, &damaged), TSR_OK);
    expect(equal(restored, b), "%s", what);
    free(restored.data);
    free(tsr.data);
}

#endif
