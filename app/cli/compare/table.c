/* A comparison on the terminal; see compare.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/report/rates.h"
#include "app/report/sums.h"
#include "compare.h"

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
        printf(" %+8.1f%%", 100 * ((double)s->pair_ours / (double)s->pair_bytes - 1));
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
               "codec", "images", "bytes", "ratio", "Tessera", "encode", "decode");
        for (size_t i = 0; i < count; i++) print_codec(sums, order[i]);
        printf("  Tessera: how much smaller (-) or larger (+) %s is, over the images that the codec holds\n",
               sums->c->codecs[sums->ours].name);
    }
    free(order);
}

/* ---- With loss -------------------------------------------------------------------------------------------- */

enum { CURVE_LIMIT = RIVAL_SETTINGS };

/* The curve of one codec on one image. cells: the image's. Returns the number of its points. */
static size_t curve_of(const struct report_cell *cells, size_t count, size_t codec, bool is_ssim,
                       struct rate_point *points)
{
    size_t used = 0;
    for (size_t i = 0; i < count && used < CURVE_LIMIT; i++) {
        const struct report_cell *const cell = &cells[i];
        if (cell->codec != codec || cell->outcome != CELL_DONE || cell->is_check) continue;
        points[used++] = (struct rate_point){(double)cell->bytes, is_ssim ? rate_ssim_db(cell->ssim) : cell->psnr_db};
    }
    return rate_clean(points, used);
}

/* The mean BD-rate of a codec against ours. */
struct difference {
    double log_ratio;
    size_t images;
};

static void add_difference(const struct report_cell *cells, size_t count, size_t ours, size_t codec, bool is_ssim,
                           struct difference *d)
{
    struct rate_point mine[CURVE_LIMIT], theirs[CURVE_LIMIT];
    const double low = is_ssim ? rate_ssim_db(RATE_SSIM_LOW) : RATE_PSNR_LOW,
                 high = is_ssim ? rate_ssim_db(RATE_SSIM_HIGH) : RATE_PSNR_HIGH;
    const size_t my_count = curve_of(cells, count, ours, is_ssim, mine),
                 their_count = curve_of(cells, count, codec, is_ssim, theirs);
    const double ratio = rate_bd(theirs, their_count, mine, my_count, low, high);
    if (!(ratio > 0)) return;
    d->log_ratio += log(ratio);
    d->images++;
}

static void print_difference(const struct difference *d)
{
    if (d->images > 0)
        printf(" %+8.1f%% %7zu", 100 * (exp(d->log_ratio / (double)d->images) - 1), d->images);
    else
        printf(" %9s %7s", "-", "0");
}

static void print_lossy_codec(const struct report_comparison *c, size_t ours, size_t codec)
{
    struct difference psnr = {0}, ssim = {0};
    for (size_t first = 0, end; first < c->cell_count; first = end) {
        end = first + 1;
        while (end < c->cell_count && c->cells[end].image == c->cells[first].image) end++;
        add_difference(&c->cells[first], end - first, ours, codec, false, &psnr);
        add_difference(&c->cells[first], end - first, ours, codec, true, &ssim);
    }
    printf("  %-22.22s", c->codecs[codec].name);
    print_difference(&psnr);
    print_difference(&ssim);
    printf("\n");
}

static void print_lossy(const struct sums *sums)
{
    const struct report_comparison *const c = sums->c;
    bool has_any = false;
    if (sums->ours_lossy == SUMS_NONE) return;
    for (size_t i = 0; i < c->cell_count && !has_any; i++)
        has_any = c->codecs[c->cells[i].codec].is_lossy && c->cells[i].outcome == CELL_DONE;
    if (!has_any) return;
    printf("With loss, 8 bits as shown: Tessera's bytes against the codec's (mean BD-rate)\n"
           "  %-22s %9s %7s %9s %7s\n",
           "codec", "35-45 dB", "images", "SSIM .95-.99", "images");
    for (size_t k = 0; k < c->codec_count; k++)
        if (c->codecs[k].is_lossy && !c->codecs[k].is_missing && k != sums->ours_lossy)
            print_lossy_codec(c, sums->ours_lossy, k);
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
        print_files(&sums);
        print_lossless(&sums);
        print_lossy(&sums);
        if (options->verbosity > 0) print_missing(c);
    }
    sums_free(&sums);
    fflush(stdout);
}
