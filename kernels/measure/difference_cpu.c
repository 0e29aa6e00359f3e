/* Differences between frames, and counts of their values; see the header. */
#include "difference_cpu.h"

#include <assert.h>
#include <string.h>

#include "transform/image.h"

const struct tsr_measured tsr_measure_all = {.weight = TSR_WHOLE_WEIGHT};

/* Inlined for each size of words, and for frames without windows and kept ranges: what is constant leaves the loop,
 * which takes 0.76 of the time. */
static inline __attribute__((always_inline)) void add_samples(struct tsr_image image, int bits,
                                                              const struct tsr_measured *what, const uint8_t *a,
                                                              const uint8_t *b, size_t first, size_t count,
                                                              struct tsr_difference *sum)
{
    struct tsr_difference own = *sum;
    image.bits_allocated = (uint8_t)bits;
    for (size_t i = first; i < first + count; i++)
        tsr_add_sample_difference(what, tsr_raster_value(&image, a, i), tsr_raster_value(&image, b, i), &own);
    *sum = own;
}

/* Every layout, by the definition's steps. */
static void add_plainly(const struct tsr_image *image, const struct tsr_measured *what, const uint8_t *a,
                        const uint8_t *b, size_t first, size_t count, struct tsr_difference *sum)
{
    static const struct tsr_measured all = {0};
    const bool has_ranges = what->windows > 0 || what->kept > 0, is_usual = !image->big_endian;
    struct tsr_image usual = *image;
    usual.big_endian = false;
    if (image->bits_allocated == 16 && is_usual && has_ranges)
        add_samples(usual, 16, what, a, b, first, count, sum);
    else if (image->bits_allocated == 16 && is_usual)
        add_samples(usual, 16, &all, a, b, first, count, sum);
    else if (image->bits_allocated == 8 && !has_ranges)
        add_samples(*image, 8, &all, a, b, first, count, sum);
    else
        add_samples(*image, image->bits_allocated, what, a, b, first, count, sum);
}

#if TSR_HAS_VECTOR_FORMS
/* The part of a range that values of an image can have, above the least of them. False: it is empty. */
static bool order_range(struct tsr_value_range range, int64_t least, int64_t most, uint8_t number,
                        struct tsr_order_range *order)
{
    const int64_t low = range.low > least ? range.low : least, high = range.high < most ? range.high : most;
    if (low > high) return false;
    *order = (struct tsr_order_range){(uint16_t)(low - least), (uint16_t)(high - low), number};
    return true;
}

static struct tsr_difference_plan make_plan(const struct tsr_image *image, const struct tsr_measured *what)
{
    struct tsr_difference_plan plan = {0};
    const int64_t half = (int64_t)1 << (image->bits_stored - 1), least = image->is_signed ? -half : 0,
                  most = least + 2 * half - 1;
    plan.kind = image->bits_allocated == 8 ? TSR_WORDS_OF_8
                : image->big_endian        ? TSR_SWAPPED_WORDS_OF_16
                                           : TSR_WORDS_OF_16;
    plan.low_bit = (uint8_t)(image->high_bit + 1 - image->bits_stored);
    plan.mask = (uint16_t)(2 * half - 1);
    plan.sign = (uint16_t)(image->is_signed ? half : 0);
    for (uint32_t w = 0; w < what->windows; w++)
        plan.windows += order_range(what->window[w], least, most, (uint8_t)w, &plan.window[plan.windows]);
    for (uint32_t k = 0; k < what->kept; k++)
        plan.kept += order_range(what->kept_range[k], least, most, (uint8_t)k, &plan.kept_range[plan.kept]);
    return plan;
}

static const struct tsr_difference_form *form_of(enum tsr_isa isa)
{
    return isa >= TSR_ISA_AVX512 ? &tsr_difference_avx512 : isa >= TSR_ISA_AVX2 ? &tsr_difference_avx2 : NULL;
}

/* As many words as the form takes: whole vectors. Returns their number. */
static size_t add_vectors(const struct tsr_difference_form *form, const struct tsr_image *image,
                          const struct tsr_measured *what, const uint8_t *a, const uint8_t *b, size_t first,
                          size_t count, struct tsr_difference *sum)
{
    const struct tsr_difference_plan plan = make_plan(image, what);
    const size_t bytes = image->bits_allocated / 8, vectors = count / form->lanes;
    for (size_t v = 0; v < vectors; v += TSR_BLOCK_VECTORS) {
        const size_t here = vectors - v < TSR_BLOCK_VECTORS ? vectors - v : TSR_BLOCK_VECTORS,
                     at = first + v * form->lanes;
        if (!form->add_block(&plan, a + at * bytes, b + at * bytes, here, sum))
            add_plainly(image, what, a, b, at, here * form->lanes, sum);
    }
    return vectors * form->lanes;
}
#endif

void tsr_add_words(enum tsr_isa isa, const struct tsr_image *image, const struct tsr_measured *what, const uint8_t *a,
                   const uint8_t *b, size_t first, size_t count, struct tsr_difference *sum)
{
    size_t done = 0;
    if (!what) what = &tsr_measure_all;
    assert(what->windows <= TSR_MEASURED_WINDOWS && what->kept <= TSR_KEPT_RANGES && what->weight <= TSR_WHOLE_WEIGHT);
#if TSR_HAS_VECTOR_FORMS
    const struct tsr_difference_form *const form = form_of(isa);
    const bool is_even = first % 2 == 0 && count % 2 == 0; /* sums do not depend on the order within pairs */
    if (form && count >= form->lanes &&
        (image->bits_allocated == 16 || (image->bits_allocated == 8 && (!image->swapped || is_even))))
        done = add_vectors(form, image, what, a, b, first, count, sum);
#else
    (void)isa;
#endif
    add_plainly(image, what, a, b, first + done, count - done, sum);
}

void tsr_add_frame_sums(const struct tsr_measured *what, const struct tsr_difference *frame, struct tsr_difference *sum)
{
    if (frame->max_error > sum->max_error) sum->max_error = frame->max_error;
    sum->squared_error = tsr_add_saturated(sum->squared_error, tsr_weigh_squares(frame->squared_error, what->weight));
    sum->samples += frame->samples;
    sum->ssim.positions += frame->ssim.positions;
    sum->ssim.loss += frame->ssim.loss;
    for (uint32_t w = 0; w < what->windows; w++) {
        if (frame->window[w].max_error > sum->window[w].max_error)
            sum->window[w].max_error = frame->window[w].max_error;
        sum->window[w].samples += frame->window[w].samples;
        const uint32_t weight = what->window_weight[w] ? what->window_weight[w] : TSR_WHOLE_WEIGHT;
        const uint64_t squares = tsr_weigh_squares(frame->window[w].squared_error, weight);
        sum->window[w].squared_error = tsr_add_saturated(sum->window[w].squared_error, squares);
        sum->window[w].ssim.positions += frame->window[w].ssim.positions;
        sum->window[w].ssim.loss += frame->window[w].ssim.loss;
    }
}

void tsr_add_difference(const struct tsr_image *image, const struct tsr_measured *what, const uint8_t *a,
                        const uint8_t *b, struct tsr_difference *sum)
{
    const size_t words = (size_t)image->columns * image->rows * image->components;
    struct tsr_difference frame = {0};
    if (!what) what = &tsr_measure_all;
    if (what->windows == 0 && what->kept == 0 && memcmp(a, b, tsr_raster_bytes(image)) == 0) {
        sum->samples += words;
        return;
    }
    tsr_add_words(tsr_isa(), image, what, a, b, 0, words, &frame);
    tsr_add_frame_sums(what, &frame, sum);
}
