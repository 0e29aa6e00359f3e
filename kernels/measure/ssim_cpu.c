/* Structural similarity of frames; see the header. */
#define TSR_FORM tsr_ssim_form_plain
#include "ssim_form.h"

#include <assert.h>

static tsr_ssim_form *form_of(enum tsr_isa isa)
{
#if TSR_HAS_VECTOR_FORMS
    if (isa >= TSR_ISA_AVX2) return tsr_ssim_form_avx2;
#else
    (void)isa;
#endif
    return tsr_ssim_form_plain;
}

/* The mean of each fourth original in both directions that is not kept; 0 if there is none. */
static int64_t mean_of(const struct tsr_image *image, const struct tsr_measured *what, const uint8_t *raster)
{
    int64_t sum = 0, count = 0;
    for (uint32_t y = 0; y < image->rows; y += TSR_SSIM_STEP)
        for (uint32_t x = 0; x < image->columns; x += TSR_SSIM_STEP) {
            const int64_t value = tsr_raster_value(image, raster, (size_t)y * image->columns + x);
            bool is_kept = false;
            for (uint32_t k = 0; k < what->kept; k++) is_kept |= tsr_in_value_range(value, what->kept_range[k]);
            if (is_kept) continue;
            sum += value;
            count++;
        }
    return count > 0 ? sum / count : 0;
}

static void add_planes(tsr_ssim_form *form, const struct tsr_image *image, const struct tsr_ssim_scale *scale,
                       const struct tsr_measured *what, const uint8_t *a, const uint8_t *b, struct tsr_ssim_sum *sum)
{
    const size_t count = (size_t)image->columns * image->rows;
    for (size_t c = 0; c < image->components; c++) {
        const struct tsr_ssim_plane plane = {image, a, b, image->planar ? c * count : c,
                                             image->planar ? 1 : image->components};
        form(&plane, scale, what, sum);
    }
}

void tsr_add_ssim(enum tsr_isa isa, const struct tsr_image *image, const struct tsr_measured *what, const uint8_t *a,
                  const uint8_t *b, struct tsr_difference *sum)
{
    tsr_ssim_form *const form = form_of(isa);
    if (what->range == 0 || (image->bits_allocated != 8 && image->bits_allocated != 16)) return;
    const int64_t half = (int64_t)1 << (image->bits_stored - 1), least = image->is_signed ? -half : 0,
                  most = least + 2 * half - 1;
    const uint32_t whole = (uint32_t)(most - least), range = what->range < whole ? what->range : whole;
    const int64_t middle = range < whole ? mean_of(image, what, a) : 0;
    struct tsr_ssim_scale scale = tsr_ssim_scale_of(least, most, whole);
    if (range < whole)
        scale = tsr_ssim_scale_of(middle - range < least ? least : middle - range,
                                  middle + range > most ? most : middle + range, range);
    add_planes(form, image, &scale, what, a, b, &sum->ssim);
    for (uint32_t w = 0; w < what->windows; w++) {
        const int64_t low = what->window[w].low, high = what->window[w].high;
        if (low > high || high < least || low > most) continue;
        const int64_t span = high - low < whole ? high - low : whole;
        scale = tsr_ssim_scale_of(low < least ? least : low, high > most ? most : high, span < 1 ? 1 : (uint32_t)span);
        add_planes(form, image, &scale, what, a, b, &sum->window[w].ssim);
    }
}
