/* Jobs of the hiding family for its two tests: coefficients of several kinds, flags, data. */
#ifndef TSR_TESTS_PAPERS_HIDING_CASES_H
#define TSR_TESTS_PAPERS_HIDING_CASES_H

#include "kernels/papers/cavlc/cavlc_frames.h"
#include "kernels/papers/hiding/hiding.h"
#include "tests/unit/support.h"

#include <stdio.h>

enum hiding_contents { HIDING_EMPTY, HIDING_SPARSE, HIDING_ONES, HIDING_SMALL, HIDING_LARGE, HIDING_CONTENTS };

/* In host memory. */
struct hiding_case {
    struct tsr_hiding_job job; /* without out, found, carries */
    int16_t *coefficients;
    uint8_t *flags;
    uint32_t *data;
    char name[96];
};

static inline int16_t hiding_coefficient(struct rng *r, enum hiding_contents contents)
{
    const int sign = rng_below(r, 2) ? 1 : -1;
    switch (contents) {
    case HIDING_SPARSE:
        return (int16_t)(rng_below(r, 8) ? 0 : sign * (1 + (int)(rng_below(r, 4) == 0)));
    case HIDING_ONES:
        return (int16_t)(rng_below(r, 3) ? sign : 0);
    case HIDING_SMALL:
        return (int16_t)rng_between(r, -3, 3);
    case HIDING_LARGE:
        return (int16_t)(sign * tsr_min((int)rng_width(r, 11) + (int)rng_below(r, 2), TSR_CAVLC_PAPER_LIMIT));
    default:
        return 0;
    }
}

/* flagged: a third of the macroblocks is Intra16x16. Their blocks' first coefficients, which are coded elsewhere, are
 * not 0. */
static inline struct hiding_case hiding_case(enum tsr_hiding_method method, int sparse, uint32_t macroblocks,
                                             enum hiding_contents contents, bool flagged)
{
    struct hiding_case c;
    struct rng r = {macroblocks * 1000003u + (uint32_t)contents * 101u + (uint32_t)method * 7u + (uint32_t)sparse};
    memset(&c, 0, sizeof c);
    c.job.method = method;
    c.job.sparse = sparse;
    c.job.blocks = macroblocks * TSR_MB_BLOCKS;
    for (int i = 0; i < 8; i++) c.job.key.key[i] = (uint32_t)rng_next(&r);
    for (int i = 0; i < 3; i++) c.job.key.nonce[i] = (uint32_t)rng_next(&r);
    c.coefficients = must(calloc((size_t)c.job.blocks * 16 + 1, sizeof *c.coefficients));
    c.flags = must(calloc(macroblocks + 1, 1));
    c.data = must(calloc(c.job.blocks / 32 + 1, sizeof *c.data));
    for (size_t i = 0; i < (size_t)c.job.blocks * 16; i++) c.coefficients[i] = hiding_coefficient(&r, contents);
    for (uint32_t m = 0; m < macroblocks; m++) c.flags[m] = flagged && rng_below(&r, 3) == 0 ? TSR_MB_INTRA16X16 : 0;
    for (uint32_t i = 0; i <= c.job.blocks / 32; i++) c.data[i] = (uint32_t)rng_next(&r);
    c.job.coefficients = c.coefficients;
    c.job.mb_flags = c.flags;
    c.job.data = c.data;
    snprintf(c.name, sizeof c.name, "method %d, sparse %d, %u macroblocks, contents %d%s", (int)method, sparse,
             macroblocks, (int)contents, flagged ? ", Intra16x16" : "");
    return c;
}

static inline void free_hiding_case(struct hiding_case *c)
{
    free(c->coefficients);
    free(c->flags);
    free(c->data);
}

static inline size_t hiding_words(const struct tsr_hiding_job *job)
{
    return ((size_t)tsr_hiding_units(job) + 31) / 32;
}

#endif
