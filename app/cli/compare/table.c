/* A comparison on the terminal; see compare.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/report/curves.h"
#include "app/report/headline.h"
#include "app/report/sums.h"
#include "compare.h"

/* ---- The answer ------------------------------------------------------------------------------------------- */

static void print_others(const struct headline_codec *codec, size_t count, size_t images)
{
    for (size_t i = 0; i < count; i++) {
        printf("%s%s %+.1f %%", i > 0 ? ", " : "  ", codec[i].name, 100 * (codec[i].ratio - 1));
        if (codec[i].images < images) printf(" (%zu of %zu images)", codec[i].images, images);
    }
    printf("\n");
}

static void print_answer(const struct sums *sums)
{
    const struct headline_level *const level = &headline_levels[HEADLINE_LEVEL];
    struct headline h;
    if (!headline_make(&h, sums) || (h.lossy_count == 0 && h.lossless_count == 0)) return;
    printf("Bytes of other codecs against Tessera's: + is more, - is less\n");
    if (h.lossy_count > 0) {
        printf(" at equal quality, %g dB and an SSIM of %g as --quality %s:\n", level->psnr_db, level->ssim,
               level->name);
        print_others(h.lossy, h.lossy_count, h.judged);
    }
    if (h.lossless_count > 0) {
        printf(" without loss:\n");
        print_others(h.lossless, h.lossless_count, h.held);
    }
}

/* ---- Without loss ----------------------------------------------------------------------------------------- */

static void print_rate(uint64_t raw, double seconds)
{
    if (seconds > 0)
        printf(" %9.1f", (double)raw / seconds / 1e6);
    else
        printf(" %9s", "-");
}

static void print_codec(const struct sums *sums, size_t k)
{
    const struct codec_sums *const s = &sums->codec[k];
    printf("  %-18.18s", sums->c->codecs[k].name);
    if (s->held == 0) {
        printf("  holds none of these images\n");
        return;
    }
    printf(" %6zu %13llu %7.3f", s->held, (unsigned long long)s->bytes, (double)s->raw / (double)s->bytes);
    if (k != sums->ours && s->pairs > 0)
        printf(" %+7.1f %%", 100 * ((double)s->pair_bytes / (double)s->pair_ours - 1));
    else
        printf(" %9s", "");
    print_rate(s->raw, s->encode_s);
    print_rate(s->raw, s->decode_s);
    if (s->failed > 0) printf("  %zu failed", s->failed);
    printf("\n");
}

static void print_lossless(const struct sums *sums)
{
    size_t *const order = calloc(sums->c->codec_count + 1, sizeof *order);
    const size_t count = order ? sums_order(sums, order) : 0;
    if (sums->compared > 0 && count > 0 && sums->ours != SUMS_NONE) {
        printf("Without loss: the same samples to all codecs, one thread, MB of samples a second of processor time\n"
               "  %-18s %6s %13s %7s %9s %9s %9s\n",
               "codec", "images", "bytes", "ratio", "+ or -", "encode", "decode");
        for (size_t i = 0; i < count; i++) print_codec(sums, order[i]);
        printf("  + or -: its bytes against those of %s, over the images that both hold: + is more, - is less\n",
               sums->c->codecs[sums->ours].name);
    }
    free(order);
}

/* ---- With loss -------------------------------------------------------------------------------------------- */

/* The mean BD-rate of another lossy codec against ours. */
struct difference {
    double log_ratio;
    size_t images;
};

static struct difference sum_differences(const struct curves *curves, size_t ours, size_t codec,
                                         enum curve_metric metric, struct rate_point *points)
{
    struct difference d = {0, 0};
    for (size_t image = 0; image < curves->c->image_count; image++) {
        const double ratio = curves_bd(curves, image, codec, ours, metric, points);
        if (!(ratio > 0)) continue;
        d.log_ratio += log(ratio);
        d.images++;
    }
    return d;
}

static void print_difference(const struct difference *d)
{
    if (d->images > 0)
        printf(" %+7.1f %% %7zu", 100 * (exp(d->log_ratio / (double)d->images) - 1), d->images);
    else
        printf(" %9s %7s", "-", "0");
}

static void print_curves(const struct curves *curves, size_t ours, struct rate_point *points)
{
    const struct report_comparison *const c = curves->c;
    printf("With loss, 8 bits as shown: the codec's bytes against Tessera's (mean BD-rate): + is more, - is less\n"
           "  (a dB is one of compress: of the width of the file's window, over the samples inside; without one, of 8 "
           "bits)\n"
           "  %-22s %9s %7s %9s %7s\n",
           "codec", "35-45 dB", "images", "SSIM .95-.99", "images");
    for (size_t k = 0; k < c->codec_count; k++) {
        if (!c->codecs[k].is_lossy || c->codecs[k].is_missing || k == ours) continue;
        printf("  %-22.22s", c->codecs[k].name);
        for (int m = 0; m < METRICS; m++) {
            const struct difference d = sum_differences(curves, ours, k, (enum curve_metric)m, points);
            print_difference(&d);
        }
        printf("\n");
    }
}

static void print_unjudged(const struct report_comparison *c)
{
    size_t count = 0;
    for (size_t i = 0; i < c->image_count; i++) count += c->images[i].lossy_columns > 0 && !c->images[i].is_judged;
    if (count > 0)
        printf("%zu image%s not judged with loss: too few samples lie inside the window\n", count,
               count == 1 ? " is" : "s are");
}

static void print_lossy(const struct sums *sums)
{
    struct curves curves;
    const bool is_made = curves_make(&curves, sums->c);
    struct rate_point *const points = is_made ? calloc(2 * curves.most + 1, sizeof *points) : NULL;
    if (points && curves.most > 0 && sums->ours_lossy != SUMS_NONE) print_curves(&curves, sums->ours_lossy, points);
    free(points);
    curves_free(&curves);
}

/* ---- The whole -------------------------------------------------------------------------------------------- */

static void print_files(const struct sums *sums)
{
    if (sums->files == 0) return;
    printf("%zu file%s, %llu bytes, as .tsr files %llu: %.1f %% less", sums->files, plural(sums->files),
           (unsigned long long)sums->file_bytes, (unsigned long long)sums->tsr_bytes,
           100 * (1 - (double)sums->tsr_bytes / (double)sums->file_bytes));
    printf("; %zu come back as the same file, %zu with the same samples", sums->proof[PROOF_SAME_FILE],
           sums->proof[PROOF_SAME_SAMPLES]);
    if (sums->proof[PROOF_FAILED] > 0) printf(", %zu FAILED", sums->proof[PROOF_FAILED]);
    printf("; %zu coded, %zu stored", sums->files - sums->stored_files, sums->stored_files);
    printf("\n");
}

static void print_streams(const struct sums *sums)
{
    if (sums->encapsulated == 0) return;
    printf("%zu file%s with compressed pixels", sums->encapsulated, plural(sums->encapsulated));
    if (sums->decoded > 0)
        printf(": %llu bytes as samples alone by Tessera, %llu as they are (%+.1f %%)",
               (unsigned long long)sums->sample_bytes, (unsigned long long)sums->stream_bytes,
               100 * ((double)sums->stream_bytes / (double)sums->sample_bytes - 1));
    printf("; %zu exact, %zu samples alone (--samples-only), %zu stored", sums->exact, sums->samples_alone,
           sums->stored);
    if (sums->decoded < sums->encapsulated)
        printf("; this build does not decode %zu of them", sums->encapsulated - sums->decoded);
    printf("\n");
}

static void print_missing(const struct report_comparison *c)
{
    for (size_t k = 0; k < c->codec_count; k++)
        if (c->codecs[k].is_missing)
            printf("  without %s: this build has no %s\n", c->codecs[k].name, c->codecs[k].library);
}

void print_comparison(const struct report_comparison *c, const struct options *options)
{
    struct sums sums;
    if (sums_make(&sums, c)) {
        if (c->sampled < c->files_in_set)
            printf("a sample of %zu of %zu files by modality and size, seed %llu\n", c->sampled, c->files_in_set,
                   (unsigned long long)c->seed);
        print_answer(&sums);
        print_files(&sums);
        print_streams(&sums);
        print_lossless(&sums);
        print_lossy(&sums);
        print_unjudged(c);
        if (options->talk.verbosity > 0) print_missing(c);
    }
    sums_free(&sums);
    fflush(stdout);
}
