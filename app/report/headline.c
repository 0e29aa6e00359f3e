/* The answer of a comparison. See headline.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "headline.h"

const struct headline_level headline_levels[HEADLINE_LEVELS] = {
    {"diagnostic", 45, 0.995}, {"visually-lossless", 40, 0.99}, {"web", 35, 0.97}};

/* The codecs that are named, as people call them. */
static const struct {
    const char *key, *name;
} lossy[] = {{"jpeg-optimised", "JPEG"},
             {"jpeg-2000-lossy", "JPEG 2000"},
             {"jxl-lossy", "JPEG XL"},
             {"webp-lossy", "WebP"},
             {"htj2k-lossy", "HTJ2K"}},
  lossless[] = {
      {"jpeg-ls", "JPEG-LS"}, {"jxl-7", "JPEG XL"}, {"jpeg-2000", "JPEG 2000"}, {"htj2k", "HTJ2K"}, {"png", "PNG"}};
enum { LOSSY = sizeof lossy / sizeof *lossy, LOSSLESS = sizeof lossless / sizeof *lossless };

static size_t find_codec(const struct report_comparison *c, const char *key)
{
    for (size_t k = 0; k < c->codec_count; k++)
        if (strcmp(c->codecs[k].key, key) == 0 && !c->codecs[k].is_missing) return k;
    return SUMS_NONE;
}

/* The bytes that one measure asks for; 0: all settings are better, so it asks for nothing. NaN: none is as good. */
static double bytes_for(const struct curves *curves, size_t image, size_t codec, enum curve_metric metric,
                        double quality, struct rate_point *points)
{
    const double aim = curves_scale(metric, quality);
    const size_t count = curves_of(curves, image, codec, metric, points);
    if (count > 0 && points[0].quality > aim) return 0;
    return rate_bytes_at(points, count, aim);
}

double headline_bytes(const struct curves *curves, size_t image, size_t codec, const struct headline_level *level,
                      struct rate_point *points)
{
    const double by_psnr = bytes_for(curves, image, codec, METRIC_PSNR, level->psnr_db, points);
    const double by_ssim = bytes_for(curves, image, codec, METRIC_SSIM, level->ssim, points);
    if (isnan(by_psnr) || isnan(by_ssim) || (by_psnr <= 0 && by_ssim <= 0)) return NAN;
    return fmax(by_psnr, by_ssim);
}

static void add_lossy(struct headline *h, const struct curves *curves, size_t ours, struct rate_point *points)
{
    const struct headline_level *const level = &headline_levels[HEADLINE_LEVEL];
    for (size_t i = 0; i < curves->c->image_count; i++)
        if (!isnan(headline_bytes(curves, i, ours, level, points))) h->judged++;
    for (size_t n = 0; n < LOSSY; n++) {
        const size_t codec = find_codec(curves->c, lossy[n].key);
        struct headline_codec sum = {lossy[n].name, 0, 0};
        for (size_t i = 0; i < curves->c->image_count && codec != SUMS_NONE; i++) {
            const double ratio =
                headline_bytes(curves, i, codec, level, points) / headline_bytes(curves, i, ours, level, points);
            if (isnan(ratio)) continue;
            sum.ratio += log(ratio);
            sum.images++;
        }
        sum.ratio = exp(sum.ratio / (double)sum.images);
        if (sum.images > 0) h->lossy[h->lossy_count++] = sum;
    }
}

static void add_lossless(struct headline *h, const struct sums *sums)
{
    h->held = sums->codec[sums->ours].held;
    for (size_t n = 0; n < LOSSLESS; n++) {
        const size_t codec = find_codec(sums->c, lossless[n].key);
        const struct codec_sums *const sum = codec == SUMS_NONE ? NULL : &sums->codec[codec];
        if (!sum || sum->pairs == 0 || sum->pair_ours == 0) continue;
        h->lossless[h->lossless_count++] =
            (struct headline_codec){lossless[n].name, (double)sum->pair_bytes / (double)sum->pair_ours, sum->pairs};
    }
}

bool headline_make(struct headline *headline, const struct sums *sums)
{
    struct curves curves;
    *headline = (struct headline){0};
    const bool is_made = curves_make(&curves, sums->c);
    struct rate_point *const points = is_made ? calloc(curves.most + 1, sizeof *points) : NULL;
    if (points && sums->ours_lossy != SUMS_NONE) add_lossy(headline, &curves, sums->ours_lossy, points);
    if (sums->ours != SUMS_NONE) add_lossless(headline, sums);
    const bool good = points != NULL;
    free(points);
    curves_free(&curves);
    return good;
}
