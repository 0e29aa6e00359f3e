/* The range of an image's values, by which its PSNR and its QP count: FORMAT.md 3.9. Bits Stored say what a file could
 * hold, which of a CT in 16 bits is 20 times what it holds. The range is found from all frames, and stored. */
#include "range.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/measure/difference_cpu.h"
#include "measure.h"
#include "transform/block/quantiser.h"
#include "transform/status.h"

enum { IGNORED = 10000 }; /* one sample of so many, at either end, says nothing of the range */
enum { BACKGROUND_SHARE = 16, BACKGROUND_GAP = 32 };

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

/* ---- Kept ranges ------------------------------------------------------------------------------------------ */

/* The least value that an image can have. */
static int64_t least_value(const struct tsr_image *image)
{
    return image->is_signed ? -((int64_t)1 << (image->bits_stored - 1)) : 0;
}

enum tsr_status tsr_keep_wanted(struct tsr_header *header, const struct tsr_stored_values *kept, uint32_t count,
                                const char *name, struct tsr_error *error)
{
    const struct tsr_image *const image = &header->image;
    const int64_t least = least_value(image), most = least + tsr_whole_range(image);
    if (count > 0 && image->components != 1)
        return tsr_fail(error, TSR_ERROR_USAGE,
                        "%s has %u components, and values are kept in images of one alone: compress it without them",
                        name, image->components);
    for (uint32_t i = 0; i < count; i++) {
        const int64_t low = kept[i].lowest > least ? kept[i].lowest : least,
                      high = kept[i].highest < most ? kept[i].highest : most;
        if (low > high ||
            tsr_keep_values(&header->kept, (uint32_t)(low - least), (uint32_t)(high - least), image->bits_stored))
            continue;
        return tsr_fail(error, TSR_ERROR_USAGE,
                        "%s cannot keep the values %d to %d: they make more than four ranges, or leave fewer than two "
                        "values",
                        name, kept[i].lowest, kept[i].highest);
    }
    return TSR_OK;
}

uint32_t tsr_kept_stored(const struct tsr_header *header, struct tsr_stored_values kept[TSR_KEPT_VALUES_LIMIT])
{
    const int64_t least = least_value(&header->image);
    if (!header->coding.lossy) return 0;
    for (int i = 0; i < header->kept.count; i++)
        kept[i] = (struct tsr_stored_values){(int32_t)(header->kept.range[i].lowest + least),
                                             (int32_t)(header->kept.range[i].highest + least)};
    return (uint32_t)header->kept.count;
}

/* ---- Finding it ------------------------------------------------------------------------------------------- */

uint32_t tsr_range_of_counts(const struct tsr_value_counts *counts, uint32_t whole)
{
    const uint64_t ignored = counts->samples / IGNORED;
    uint32_t low = 0, high = whole;
    uint64_t below = counts->count[low], above = counts->count[high];
    if (counts->samples == 0) return whole;
    while (below <= ignored) below += counts->count[++low];
    while (above <= ignored && high > 0) above += counts->count[--high];
    const uint32_t range = high > low ? high - low : 0;
    return range < TSR_LEAST_RANGE ? TSR_LEAST_RANGE : range;
}

void tsr_add_counts(const struct tsr_image *image, const uint64_t counts[TSR_VALUE_COUNTS], uint32_t weight,
                    struct tsr_value_counts *to)
{
    const int64_t least = least_value(image), half = TSR_WHOLE_WEIGHT / 2;
    for (int64_t v = 0; v < TSR_VALUE_COUNTS; v++) {
        if (counts[v] == 0) continue;
        const int64_t raised = (v + least) * weight + half - least * TSR_WHOLE_WEIGHT; /* not negative */
        to->count[raised / TSR_WHOLE_WEIGHT] += counts[v];
        to->samples += counts[v];
    }
}

/* Takes the samples of a value out. */
static uint64_t take_out(struct tsr_value_counts *counts, uint32_t value)
{
    const uint64_t taken = counts->count[value];
    counts->samples -= taken;
    counts->count[value] = 0;
    return taken;
}

bool tsr_find_background(struct tsr_value_counts *counts, uint32_t whole, uint32_t *value)
{
    const uint64_t least = counts->samples / BACKGROUND_SHARE;
    uint32_t low = 0, next;
    if (counts->samples == 0) return false;
    while (counts->count[low] == 0) low++;
    if (counts->count[low] < least || counts->count[low] == counts->samples) return false;
    const uint64_t taken = take_out(counts, low);
    for (next = low + 1; counts->count[next] == 0;) next++;
    const bool is_far = next - low > tsr_range_of_counts(counts, whole) / BACKGROUND_GAP;
    counts->count[low] = taken;
    counts->samples += taken;
    *value = low;
    return is_far;
}

struct counting {
    struct tsr_source *source;
    uint32_t frame, weight;
    struct tsr_value_counts *own, *sum; /* own: of frames with one weight, which are not in the sum yet; or the sum */
};

static void take_kept_out(struct counting *c)
{
    const struct tsr_kept_ranges *const kept = &c->source->header.kept;
    c->sum->all += c->own->samples;
    for (int i = 0; i < kept->count; i++)
        for (uint32_t v = kept->range[i].lowest; v <= kept->range[i].highest; v++) c->sum->named += take_out(c->own, v);
}

static void add_own(struct counting *c)
{
    if (c->own == c->sum) return;
    tsr_add_counts(&c->source->header.image, c->own->count, c->weight, c->sum);
    memset(c->own, 0, sizeof *c->own);
}

static bool count_frame(void *context, const struct tsr_image *image, const uint8_t *raster)
{
    struct counting *const c = context;
    struct tsr_measured what = tsr_measure_all;
    tsr_measure_frame(&c->source->windows, c->frame++, &what);
    if (what.weight != c->weight) {
        take_kept_out(c);
        add_own(c);
    }
    c->weight = what.weight;
    tsr_count_values(image, raster, c->own->count);
    c->own->samples += (uint64_t)image->columns * image->rows;
    return true;
}

/* Where frames weigh differently, no value is looked for as their background. */
static void take_background_out(struct counting *c)
{
    struct tsr_header *const header = &c->source->header;
    uint32_t value;
    if (header->least_weight == 0 && tsr_has_own_range(&header->image) &&
        tsr_find_background(c->own, tsr_whole_range(&header->image), &value) &&
        tsr_keep_values(&header->kept, value, value, header->image.bits_stored))
        take_out(c->own, value);
}

enum tsr_status tsr_count_source(struct tsr_source *source, struct tsr_value_counts *counts, struct tsr_error *error)
{
    struct counting c = {.source = source, .weight = TSR_WHOLE_WEIGHT, .sum = counts};
    c.own = source->header.least_weight ? calloc(1, sizeof *c.own) : counts; /* else all weights are whole */
    if (!c.own) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to count values");
    const enum tsr_status status = tsr_source_visit(source, count_frame, &c, error);
    if (status == TSR_OK) {
        take_kept_out(&c);
        take_background_out(&c);
        add_own(&c);
    }
    if (c.own != counts) free(c.own);
    return status;
}

enum tsr_status tsr_look_at_values(struct tsr_source *source, struct tsr_values_found *found, struct tsr_error *error)
{
    const struct tsr_image *const image = &source->header.image;
    *found = (struct tsr_values_found){.range = tsr_whole_range(image)};
    if (!tsr_has_own_range(image) && source->header.kept.count == 0) return TSR_OK;
    TSR_TRY(tsr_source_hold(source, error)); /* if its values were not looked at before */
    struct tsr_value_counts *const counts = calloc(1, sizeof *counts);
    if (!counts) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to count values");
    const enum tsr_status status = tsr_count_source(source, counts, error);
    if (status == TSR_OK && tsr_has_own_range(image)) found->range = tsr_range_of_counts(counts, found->range);
    found->is_mostly_kept = counts->named > counts->all / 2;
    free(counts);
    return status;
}
