/* A loss in figures, of what header and proof hold of it: FORMAT.md 3.4 and 3.9. */
#include "figures.h"

#include <math.h>
#include <string.h>

#include "measure.h"
#include "range.h"

void tsr_set_windows(struct tsr_header *header, const struct tsr_windows *windows)
{
    header->windows = (struct tsr_told_windows){.count = windows->count};
    for (uint32_t w = 0; w < windows->count; w++) {
        const struct tsr_value_window *const window = &windows->window[w];
        header->windows.window[w].slope = (float)window->slope;
        header->windows.window[w].center = llround(window->center * TSR_WINDOW_UNIT);
        header->windows.window[w].width = llround(window->width * TSR_WINDOW_UNIT);
    }
}

void tsr_report_loss(const struct tsr_told_loss *loss, struct tsr_report *report)
{
    report->range = loss->range;
    report->psnr_db = loss->psnr_db;
    report->psnr_stored_db = loss->psnr_stored_db;
    report->max_error = loss->max_error;
    report->windows = loss->windows;
    memcpy(report->window, loss->window, sizeof report->window);
}

static uint32_t ssim_loss_of(const struct tsr_ssim_sum *sum)
{
    return tsr_has_ssim(sum) ? 1 + (uint32_t)((sum->loss + sum->positions / 2) / sum->positions) : 0;
}

void tsr_note_difference(const struct tsr_image *image, const struct tsr_difference *found, struct tsr_proof *proof)
{
    proof->max_error = found->max_error;
    proof->squared_error = found->squared_error;
    proof->kept_samples = tsr_all_samples(image) - found->samples;
    for (uint32_t w = 0; w < TSR_MEASURED_WINDOWS; w++) {
        proof->window[w].samples = found->window[w].samples;
        proof->window[w].squared_error = found->window[w].squared_error;
        proof->window[w].max_error = found->window[w].max_error;
        proof->window[w].ssim_loss = ssim_loss_of(&found->window[w].ssim);
    }
}

/* A PSNR over clipped pixels is no measure: nearly all of a CT lies outside of a narrow window, without any error. */
static void tell_windows(const struct tsr_header *header, const struct tsr_proof *proof, uint64_t judged,
                         struct tsr_told_loss *loss)
{
    loss->windows = header->windows.count;
    for (uint32_t w = 0; w < loss->windows; w++) {
        struct tsr_window_loss *const window = &loss->window[w];
        const uint64_t samples = proof->window[w].samples;
        const double error = (double)proof->window[w].squared_error, slope = (double)header->windows.window[w].slope;
        window->center = (double)header->windows.window[w].center / TSR_WINDOW_UNIT;
        window->width = (double)header->windows.window[w].width / TSR_WINDOW_UNIT;
        window->samples = samples;
        window->rmse = window->psnr_db = window->ssim = window->largest_error = -1;
        if (samples == 0) continue;
        window->rmse = sqrt(error / (double)samples) * slope;
        window->psnr_db = error > 0 ? 20 * log10(window->width / window->rmse) : INFINITY;
        window->is_judged = tsr_is_judged(samples, judged);
        window->largest_error = proof->window[w].max_error * slope;
        if (proof->window[w].ssim_loss > 0) window->ssim = 1 - (proof->window[w].ssim_loss - 1.0) / TSR_SSIM_ONE;
    }
}

void tsr_tell_loss(const struct tsr_header *header, const struct tsr_proof *proof, struct tsr_told_loss *loss)
{
    const struct tsr_image *const image = &header->image;
    *loss = (struct tsr_told_loss){.psnr_db = -1, .psnr_stored_db = -1, .max_error = -1};
    if (!tsr_has_frames(header) || !header->coding.lossy) return;
    const uint64_t all = tsr_all_samples(image), samples = all - proof->kept_samples;
    loss->range = tsr_header_range(header);
    loss->psnr_db = tsr_psnr_db(loss->range, samples, proof->squared_error);
    loss->psnr_stored_db = tsr_psnr_db(tsr_whole_range(image), samples, proof->squared_error);
    loss->max_error = proof->max_error;
    tell_windows(header, proof, all, loss);
}
