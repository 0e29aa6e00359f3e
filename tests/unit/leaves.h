/* Leaves of a recipe in memory. */
#ifndef TSR_TESTS_UNIT_LEAVES_H
#define TSR_TESTS_UNIT_LEAVES_H

#include "io/recipe/recipe.h"
#include "tests/unit/support.h"

struct test_leaves {
    struct {
        const uint8_t *bytes;
        size_t size, at;
    } blob[TSR_BLOB_COUNT];
    size_t step; /* bytes of a blob at once */
    const uint8_t *rasters;
    size_t raster_bytes;
    uint32_t frames;
    uint8_t *part; /* what was read last, so that reading past it is found */
};

static inline enum tsr_status read_test_leaf(void *context, enum tsr_blob blob, const uint8_t **bytes, size_t *size,
                                             struct tsr_error *error)
{
    struct test_leaves *const l = context;
    const size_t left = l->blob[blob].size - l->blob[blob].at;
    (void)error;
    *size = left < l->step ? left : l->step;
    free(l->part);
    l->part = must(malloc(*size + !*size));
    if (*size > 0) memcpy(l->part, l->blob[blob].bytes + l->blob[blob].at, *size);
    *bytes = l->part;
    l->blob[blob].at += *size;
    return TSR_OK;
}

static inline enum tsr_status put_test_frames(void *context, struct tsr_maker *maker, struct tsr_error *error)
{
    const struct test_leaves *const l = context;
    for (uint32_t f = 0; f < l->frames; f++) TSR_TRY(tsr_put_frame(maker, l->rasters + f * l->raster_bytes, error));
    return TSR_OK;
}

/* Makes the file of these leaves. */
static inline enum tsr_status make_of(struct test_leaves *leaves, const struct tsr_header *header,
                                      struct tsr_output *output, struct tsr_error *error)
{
    const struct tsr_making making = {.leaves = {read_test_leaf, put_test_frames, NULL, leaves}};
    const enum tsr_status status = tsr_make(header, &making, output, error);
    free(leaves->part);
    leaves->part = NULL;
    return status;
}

#endif
