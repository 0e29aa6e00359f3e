/* The range of an image's values, by which its PSNR and its QP count: FORMAT.md 3.9. Bits Stored say what a file could
 * hold, which of a CT in 16 bits is 20 times what it holds. The range is found from all frames, and stored. */
#include "range.h"

#include <stdlib.h>
#include <string.h>

#include "app/library/flow.h"
#include "kernels/measure/difference_cpu.h"
#include "measure.h"
#include "transform/status.h"

enum { IGNORED = 10000 }; /* one sample of so many, at either end, says nothing of the range */

uint32_t tsr_whole_range(const struct tsr_image *image)
{
    return image->bits_stored >= 32 ? UINT32_MAX : ((uint32_t)1 << image->bits_stored) - 1;
}

bool tsr_has_own_range(const struct tsr_image *image)
{
    return image->components == 1 && image->bits_allocated == 16 && image->bits_stored > 8;
}

uint32_t tsr_header_range(const struct tsr_header *header)
{
    return header->range ? header->range : tsr_whole_range(&header->image);
}

/* log2, in 1/65536; -2^20 for 0. */
int64_t tsr_log2_of(uint64_t value)
{
    enum { LOG_SHIFT = 16 };
    if (value == 0) return -((int64_t)16 << LOG_SHIFT);
    int exponent = 63;
    for (; !(value >> 63); value <<= 1) exponent--;
    uint64_t mantissa = value >> 32, log = (uint64_t)exponent;
    for (int bit = 0; bit < LOG_SHIFT; bit++) {
        mantissa = mantissa * mantissa >> 31; /* in 2^31 .. 2^33 */
        log = log << 1 | mantissa >> 32;
        mantissa >>= mantissa >> 32;
    }
    return (int64_t)log;
}

/* 48 log2((R + 1) / 256), rounded: what q has more than eight times the QP. */
static int32_t offset_of(uint32_t range)
{
    const int64_t octaves = tsr_log2_of((uint64_t)range + 1) - 8 * 65536;
    return (int32_t)((octaves * TSR_QP_OCTAVE + 32768) >> 16);
}

int32_t tsr_qp_of_samples(const struct tsr_image *image, uint32_t range, int32_t qp_of_range)
{
    const int32_t lowest = tsr_lowest_qp(image->bits_stored), coarsest = tsr_coarsest_qp(image->bits_stored);
    const int32_t qp = qp_of_range + offset_of(range) + lowest;
    return qp < lowest ? lowest : qp > coarsest ? coarsest : qp;
}

int32_t tsr_qp_of_range(const struct tsr_header *header)
{
    const int32_t q = header->coding.qp_eighths - tsr_lowest_qp(header->image.bits_stored);
    return q - offset_of(tsr_header_range(header));
}

/* ---- Finding it ------------------------------------------------------------------------------------------- */

uint32_t tsr_range_of_counts(const struct tsr_value_counts *counts, uint32_t whole)
{
    const uint64_t ignored = counts->samples / IGNORED;
    uint32_t low = 0, high = TSR_VALUE_COUNTS - 1;
    uint64_t below = counts->count[low], above = counts->count[high];
    if (counts->samples == 0) return whole;
    while (below <= ignored) below += counts->count[++low];
    while (above <= ignored) above += counts->count[--high];
    const uint32_t range = high > low ? high - low : 0;
    return range < TSR_LEAST_RANGE ? TSR_LEAST_RANGE : range > whole ? whole : range;
}

void tsr_add_counts(const struct tsr_image *image, const uint64_t counts[TSR_VALUE_COUNTS], uint32_t weight,
                    struct tsr_value_counts *to)
{
    const int64_t least = image->is_signed ? -((int64_t)1 << (image->bits_stored - 1)) : 0, half = TSR_WHOLE_WEIGHT / 2;
    for (int64_t v = 0; v < TSR_VALUE_COUNTS; v++) {
        if (counts[v] == 0) continue;
        const int64_t raised = (v + least) * weight + half - least * TSR_WHOLE_WEIGHT; /* not negative */
        to->count[raised / TSR_WHOLE_WEIGHT] += counts[v];
        to->samples += counts[v];
    }
}

struct counting {
    struct tsr_measured what;
    const struct tsr_windows *windows;
    uint32_t frame;
    uint64_t *own; /* of frames with one weight, which are not added yet: */
    uint32_t weight;
    struct tsr_value_counts *counts;
};

static void add_own(struct counting *c, const struct tsr_image *image)
{
    tsr_add_counts(image, c->own, c->weight, c->counts);
    memset(c->own, 0, TSR_VALUE_COUNTS * sizeof *c->own);
}

static bool count_frame(void *context, const struct tsr_image *image, const uint8_t *raster)
{
    struct counting *const c = context;
    tsr_measure_frame(c->windows, c->frame++, &c->what);
    if (c->what.weight != c->weight) add_own(c, image);
    c->weight = c->what.weight;
    tsr_count_values(image, &c->what, raster, c->own);
    return true;
}

enum tsr_status tsr_count_source(struct tsr_source *source, struct tsr_value_counts *counts, struct tsr_error *error)
{
    struct counting c = {.what = tsr_measured_of(&source->header.image, &source->header.kept),
                         .windows = &source->windows,
                         .weight = TSR_WHOLE_WEIGHT,
                         .counts = counts};
    c.own = calloc(TSR_VALUE_COUNTS, sizeof *c.own);
    if (!c.own) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to count values");
    const enum tsr_status status = tsr_source_visit(source, count_frame, &c, error);
    if (status == TSR_OK) add_own(&c, &source->header.image);
    free(c.own);
    return status;
}

enum tsr_status tsr_find_range(struct tsr_source *source, uint32_t *range, struct tsr_error *error)
{
    const struct tsr_image *const image = &source->header.image;
    *range = tsr_whole_range(image);
    if (!tsr_has_own_range(image)) return TSR_OK;
    struct tsr_value_counts *const counts = calloc(1, sizeof *counts);
    if (!counts) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to count values");
    const enum tsr_status status = tsr_count_source(source, counts, error);
    if (status == TSR_OK) *range = tsr_range_of_counts(counts, *range);
    free(counts);
    return status;
}
