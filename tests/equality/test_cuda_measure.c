/* What the CUDA engine measures of frames that it decodes, against the sums of difference_cpu.h and ssim_cpu.h. */
#include "both_engines.h"
#include "coded_frames.h"

#include "kernels/measure/difference_cpu.h"
#include "kernels/measure/ssim_cpu.h"

enum { FRAMES = 3 };

static struct tsr_measured draw_measured(struct rng *r, const struct tsr_image *image, const uint8_t *raster)
{
    const size_t words = (size_t)image->columns * image->rows * image->components;
    const uint32_t whole = ((uint32_t)1 << image->bits_stored) - 1;
    struct tsr_measured what = {.windows = rng_below(r, TSR_MEASURED_WINDOWS + 1),
                                .kept = rng_below(r, 2) ? rng_below(r, TSR_KEPT_RANGES + 1) : 0,
                                .weight = rng_below(r, 3) ? TSR_WHOLE_WEIGHT : rng_below(r, TSR_WHOLE_WEIGHT + 1)};
    what.range = rng_below(r, 4) == 0 ? 0 : rng_below(r, 2) ? whole : 1 + rng_below(r, whole);
    for (int i = 0; i < TSR_MEASURED_WINDOWS; i++) {
        const int32_t here = (int32_t)get_value(image, raster, rng_below(r, (uint32_t)words));
        what.window[i] = (struct tsr_value_range){here - (int32_t)rng_width(r, 16), here + (int32_t)rng_width(r, 16)};
        what.window_weight[i] = rng_below(r, 2) ? 0 : rng_below(r, TSR_WHOLE_WEIGHT + 1);
        what.kept_range[i] = (struct tsr_value_range){here - (int32_t)rng_width(r, 4), here};
    }
    if (rng_below(r, 8) == 0) what.window[0] = (struct tsr_value_range){INT32_MIN, INT32_MAX};
    if (rng_below(r, 8) == 0) what.window[1] = (struct tsr_value_range){5, 4};
    return what;
}

static void check_sums(const struct tsr_decode_job *job, const struct tsr_image *image, int n)
{
    struct tsr_difference wanted = {0};
    tsr_add_difference(image, job->measured, job->original, job->raster, &wanted);
    tsr_add_ssim(TSR_ISA_PLAIN, image, job->measured, job->original, job->raster, &wanted);
    const struct tsr_difference *const found = &job->difference;
    expect(found->max_error == wanted.max_error && found->squared_error == wanted.squared_error &&
               found->samples == wanted.samples,
           "image %d: %u, %llu of %llu, not %u, %llu of %llu", n, found->max_error,
           (unsigned long long)found->squared_error, (unsigned long long)found->samples, wanted.max_error,
           (unsigned long long)wanted.squared_error, (unsigned long long)wanted.samples);
    expect(memcmp(&found->ssim, &wanted.ssim, sizeof found->ssim) == 0, "image %d: SSIM %llu of %llu, not %llu of %llu",
           n, (unsigned long long)found->ssim.loss, (unsigned long long)found->ssim.positions,
           (unsigned long long)wanted.ssim.loss, (unsigned long long)wanted.ssim.positions);
    for (uint32_t w = 0; w < job->measured->windows; w++)
        expect(found->window[w].samples == wanted.window[w].samples &&
                   found->window[w].squared_error == wanted.window[w].squared_error &&
                   found->window[w].max_error == wanted.window[w].max_error &&
                   memcmp(&found->window[w].ssim, &wanted.window[w].ssim, sizeof found->window[w].ssim) == 0,
               "image %d: window %u", n, w);
}

/* Decodes frames and measures them against originals that are others, or those that were coded. */
static void check_image(struct rng *r, const struct tsr_image *image, const struct tsr_coding *coding, int n)
{
    const size_t bytes = raster_bytes(image);
    uint8_t *const originals = must(malloc(FRAMES * bytes)), *const rasters = must(malloc(FRAMES * bytes));
    struct tsr_decode_job jobs[FRAMES] = {{.status = TSR_OK}};
    struct tsr_measured measured[FRAMES];
    for (int f = 0; f < FRAMES; f++) fill_raster(r, image, n % CONTENTS, originals + (size_t)f * bytes);
    struct coded_frames c = code_frames(cpu, image, coding, originals, FRAMES, NULL);
    if (n % 3 == 0) fill_raster(r, image, (n + 1) % CONTENTS, originals);
    for (uint32_t f = 0; f < FRAMES; f++) {
        measured[f] = draw_measured(r, image, originals + f * bytes);
        jobs[f] = (struct tsr_decode_job){.model = c.model[f],
                                          .tile = c.tile + (size_t)f * c.tiles,
                                          .tiles = c.tiles,
                                          .raster = rasters + f * bytes,
                                          .original = originals + f * bytes,
                                          .measured = &measured[f]};
    }
    void *const space = must(malloc(cuda->ops->decode_workspace(cuda, image, jobs, FRAMES) + 1));
    assert_int_equal(cuda->ops->decode(cuda, image, jobs, FRAMES, space), TSR_OK);
    for (int f = 0; f < FRAMES; f++) {
        expect(jobs[f].is_measured == !jobs[f].fallback, "image %d: a frame %s", n,
               jobs[f].fallback ? "of the CPU engine is measured" : "is not measured");
        if (jobs[f].is_measured) check_sums(&jobs[f], image, n);
    }
    free(space);
    free_frames(&c);
    free(rasters);
    free(originals);
}

/* Any layout of words. */
TEST(layouts)
{
    struct rng r = {4404};
    for (int n = 0; n < (small_only() ? 40 : 200); n++) {
        const struct tsr_image image = random_image(&r, n % 4 ? 40 : 170);
        const struct tsr_coding coding = {.path = TSR_PATH_PREDICT, .coder = TSR_CODER_HUFFMAN, .effort = 1};
        if (image.bits_allocated == 8 || image.bits_allocated == 16) check_image(&r, &image, &coding, n);
    }
}

/* With loss, several blocks of positions in either direction. */
TEST(with_loss)
{
    struct rng r = {4405};
    for (int n = 0; n < (small_only() ? 3 : 12); n++) {
        const struct tsr_image image = {.columns = 150 + 61 * (uint32_t)n % 90,
                                        .rows = 90 + (uint32_t)n,
                                        .frames = FRAMES,
                                        .components = 1,
                                        .bits_allocated = 16,
                                        .bits_stored = 12,
                                        .high_bit = 11,
                                        .is_signed = n % 2 == 1};
        const struct tsr_coding coding = {.path = TSR_PATH_TRANSFORM,
                                          .coder = n % 3 == 2 ? TSR_CODER_CAVLC : TSR_CODER_HUFFMAN,
                                          .effort = n % 3 == 2 ? 1 : 5,
                                          .lossy = true,
                                          .qp_eighths = 8 * 20};
        check_image(&r, &image, &coding, n);
    }
}

int main(void)
{
    if (!has_device()) return SKIPPED;
    const struct CMUnitTest tests[] = {cmocka_unit_test(layouts), cmocka_unit_test(with_loss)};
    return cmocka_run_group_tests(tests, create_engines, destroy_engines);
}
