/* Differences between rasters; see the header. */
#include "measure.h"

#include <math.h>

#include "io/formats/source.h"
#include "transform/planes/kept_ranges.h"
#include "transform/status.h"

uint64_t tsr_all_samples(const struct tsr_image *image)
{
    return (uint64_t)image->columns * image->rows * image->components * image->frames;
}

uint64_t tsr_frame_blocks(const struct tsr_image *image)
{
    return (uint64_t)((image->columns + 3) / 4) * ((image->rows + 3) / 4);
}

/* Blocks of a part. The last parts may be empty. */
static uint64_t profile_step(uint64_t blocks)
{
    return blocks / TSR_PROFILE_PARTS + 1;
}

uint32_t tsr_profile_part(uint64_t blocks, uint64_t block)
{
    return (uint32_t)(block / profile_step(blocks));
}

/* The blocks of a row of blocks lie in few parts: the samples of a row of samples are measured a part at a time. */
void tsr_add_error_profile(const struct tsr_image *image, const struct tsr_measured *what, uint32_t frame,
                           const uint8_t *a, const uint8_t *b, uint64_t profile[TSR_PROFILE_PARTS])
{
    const size_t columns = image->columns, count = columns * image->rows, components = image->components;
    const uint64_t across = (columns + 3) / 4, first = frame * tsr_frame_blocks(image),
                   each = profile_step(image->frames * tsr_frame_blocks(image));
    if (!what) what = &tsr_measure_all;
    for (size_t y = 0; y < image->rows; y++) {
        const uint64_t row = first + y / 4 * across;
        for (uint64_t block = row, end; block < row + across; block = end) {
            const uint64_t part = block / each;
            end = (part + 1) * each < row + across ? (part + 1) * each : row + across;
            const size_t x = 4 * (size_t)(block - row), next = 4 * (size_t)(end - row),
                         samples = (next < columns ? next : columns) - x, at = y * columns + x;
            struct tsr_difference sum = {0};
            for (size_t c = 0; c < (image->planar ? components : 1); c++)
                tsr_add_words(tsr_isa(), image, what, a, b, image->planar ? c * count + at : at * components,
                              image->planar ? samples : samples * components, &sum);
            profile[part] = tsr_add_saturated(profile[part], tsr_weigh_squares(sum.squared_error, what->weight));
        }
    }
}

struct tsr_measured tsr_measured_of(const struct tsr_image *image, const struct tsr_kept_ranges *kept)
{
    const int32_t least = image->is_signed && kept->count > 0 ? -((int32_t)1 << (image->bits_stored - 1)) : 0;
    struct tsr_measured what = tsr_measure_all;
    what.kept = (uint32_t)kept->count;
    for (int i = 0; i < kept->count; i++)
        what.kept_range[i] =
            (struct tsr_value_range){(int32_t)kept->range[i].lowest + least, (int32_t)kept->range[i].highest + least};
    return what;
}

bool tsr_has_ssim(const struct tsr_ssim_sum *sum)
{
    enum { LEAST = 16 };
    return sum->positions >= LEAST;
}

void tsr_measure_frame(const struct tsr_windows *windows, uint32_t frame, struct tsr_measured *what)
{
    const struct tsr_frame_values *const own = frame < windows->frames ? &windows->frame[frame] : &windows->other_frame;
    what->windows = windows->count;
    if (windows->frames > 0) what->weight = own->weight;
    for (uint32_t w = 0; w < windows->count; w++) {
        what->window[w] = windows->frames > 0 ? own->window[w] : windows->window[w].stored;
        what->window_weight[w] = windows->frames > 0 ? own->window_weight[w] : TSR_WHOLE_WEIGHT;
    }
}

bool tsr_has_own_window(const struct tsr_windows *windows, uint32_t frame, uint32_t number)
{
    const struct tsr_frame_values *const own = frame < windows->frames ? &windows->frame[frame] : &windows->other_frame;
    return windows->frames > 0 && own->own_values[number] > 0;
}

/* Squared error a sample by the square of the width, in 1/2^40. */
static uint64_t noise_of(const struct tsr_own_window *window)
{
    const uint64_t width = (uint64_t)window->values * window->values, error = window->squared_error,
                   each = error >> 40 ? error / window->samples << 24 : (error << 24) / window->samples;
    return each >> 48 ? each / width << 16 : (each << 16) / width;
}

void tsr_add_frame(const struct tsr_windows *windows, uint32_t frame, uint64_t samples,
                   const struct tsr_difference *measured, struct tsr_difference *sum, struct tsr_own_window *worst)
{
    const struct tsr_frame_values *const own = frame < windows->frames ? &windows->frame[frame] : &windows->other_frame;
    if (measured->max_error > sum->max_error) sum->max_error = measured->max_error;
    sum->squared_error = tsr_add_saturated(sum->squared_error, measured->squared_error);
    sum->samples += measured->samples;
    sum->ssim.positions += measured->ssim.positions;
    sum->ssim.loss += measured->ssim.loss;
    for (uint32_t w = 0; w < windows->count; w++) {
        const struct tsr_own_window one = {windows->frames > 0 ? own->own_values[w] : 0, measured->window[w].samples,
                                           measured->window[w].squared_error};
        if (one.values == 0) {
            sum->window[w].samples += one.samples;
            sum->window[w].ssim.positions += measured->window[w].ssim.positions;
            sum->window[w].ssim.loss += measured->window[w].ssim.loss;
            if (measured->window[w].max_error > sum->window[w].max_error)
                sum->window[w].max_error = measured->window[w].max_error;
            sum->window[w].squared_error = tsr_add_saturated(sum->window[w].squared_error, one.squared_error);
        } else if (tsr_is_judged(one.samples, samples) && (worst->values == 0 || noise_of(&one) > noise_of(worst))) {
            *worst = one;
        }
    }
}

bool tsr_is_judged(uint64_t inside, uint64_t samples)
{
    enum { LEAST = 256, ONE_IN = 1000 };
    return inside >= LEAST && inside >= samples / ONE_IN;
}

double tsr_ssim_of(const struct tsr_ssim_sum *sum)
{
    return tsr_has_ssim(sum) ? 1 - (double)sum->loss / TSR_SSIM_ONE / (double)sum->positions : -1;
}

double tsr_psnr_db(uint32_t peak, uint64_t samples, uint64_t squared_error)
{
    if (squared_error == 0) return INFINITY;
    return 10.0 * log10((double)peak * peak * (double)samples / (double)squared_error);
}
