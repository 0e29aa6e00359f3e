/* The comparison's lossless part: size against speed, distributions, and tables. */
#include <math.h>
#include <stdlib.h>

#include "comparison_parts.h"
#include "page.h"
#include "plot/plot.h"
#include "text/text.h"

/* ---- Size against speed -------------------------------------------------------------------------------------- */

static void put_speeds(FILE *f, const struct sums *sums, const size_t *order, size_t count)
{
    static const char *const titles[] = {"Encoding: ratio against speed", "Decoding: ratio against speed"};
    struct plot plot = {.shares_legend = true};
    for (int side = 0; side < 2; side++) {
        struct plot_panel *panel = plot_panel(&plot, titles[side], "MB/s of samples, one thread (logarithmic)",
                                              "raw bytes / coded bytes", PLOT_SCATTER);
        for (size_t i = 0; i < count && panel; i++) {
            const struct codec_sums *sum = &sums->codec[order[i]];
            const char *name = sums->c->codecs[order[i]].name;
            char tip[160];
            const double seconds = side ? sum->common_decode_s : sum->common_encode_s;
            const double speed = megabytes_per_second(sums->common_raw, seconds);
            if (!sum->is_in_common || speed <= 0 || sum->common_bytes == 0) continue;
            const double ratio = (double)sums->common_raw / (double)sum->common_bytes;
            snprintf(tip, sizeof tip, "%s: ratio %.3f, %.4g MB/s", name, ratio, speed);
            plot_mark(panel, name, speed, ratio, tip);
            struct plot_series *series = plot_series(panel, name);
            if (series) series->is_strong = order[i] == sums->ours;
        }
        if (panel) panel->fits_y = true;
    }
    plot_write_figures(f, &plot);
    plot_free(&plot);
    fputs("<p class=\"small\">Up and right is better. The totals of the common images; the CPU time of one thread, the "
          "median of warm runs. The dashed line joins the codecs than which no other is both smaller and faster.</p>\n",
          f);
}

/* ---- Distributions ------------------------------------------------------------------------------------------- */

/* The fewest bytes among other codecs that hold an image; 0: none does. */
static uint64_t best_other(const struct sums *sums, size_t image)
{
    uint64_t best = 0;
    for (size_t k = 0; k < sums->c->codec_count; k++) {
        const struct report_cell *cell = sums->c->codecs[k].is_ours ? NULL : sums_held(sums, image, k);
        if (cell && (best == 0 || cell->bytes < best)) best = cell->bytes;
    }
    return best;
}

static void put_distributions(FILE *f, const struct sums *sums)
{
    struct plot plot = {.shares_legend = false};
    if (sums->ours == SUMS_NONE) return;
    const char *ours = sums->c->codecs[sums->ours].name;
    struct plot_panel *ratios =
        plot_panel(&plot, "Compression ratio of each image", "raw bytes / coded bytes", "images", PLOT_HISTOGRAM);
    struct plot_panel *against =
        plot_panel(&plot, "The smallest other codec against Tessera, image by image",
                   "smallest other's bytes / Tessera's bytes (right of 1: it needs more)", "images", PLOT_HISTOGRAM);
    size_t drawn = 0;
    for (size_t i = 0; i < sums->c->image_count && ratios && against; i++) {
        const struct report_cell *cell = sums_held(sums, i, sums->ours);
        const struct report_cell *best = sums->best == SUMS_NONE ? NULL : sums_held(sums, i, sums->best);
        const uint64_t other = best_other(sums, i);
        const double raw = (double)sums->c->images[i].raw_bytes;
        if (!cell || cell->bytes == 0) continue;
        drawn++;
        plot_mark(ratios, ours, raw / (double)cell->bytes, 0, NULL);
        if (best && best->bytes)
            plot_mark(ratios, sums->c->codecs[sums->best].name, raw / (double)best->bytes, 0, NULL);
        if (other) plot_mark(against, ours, (double)other / (double)cell->bytes, 0, NULL);
    }
    if (against) against->x_reference = 1;
    if (drawn > 0) {
        fputs("<h3>Distribution over images</h3>\n", f);
        plot_write_figures(f, &plot);
    }
    plot_free(&plot);
}

/* ---- Codec by codec ------------------------------------------------------------------------------------------ */

static void put_speed_cell(FILE *f, uint64_t raw, double seconds)
{
    char text[TEXT_NUMBER];
    const double speed = megabytes_per_second(raw, seconds);
    if (speed > 0)
        page_cell_number(f, speed, text_figure(text, speed), false);
    else
        page_cell_none(f, "not measured");
}

static void put_codec_row(FILE *f, const struct sums *sums, size_t k)
{
    const struct codec_sums *sum = &sums->codec[k];
    char text[TEXT_NUMBER];
    fputs("<tr><th scope=\"row\">", f);
    text_escape(f, sums->c->codecs[k].name);
    fputs("</th>", f);
    page_cell_count(f, sum->held);
    page_cell_count(f, sum->cannot);
    page_cell_count(f, sum->failed);
    if (sum->bytes > 0)
        page_cell_number(f, (double)sum->raw / (double)sum->bytes,
                         (snprintf(text, sizeof text, "%.3f", (double)sum->raw / (double)sum->bytes), text), false);
    else
        page_cell_none(f, "holds no image");
    if (k == sums->ours || sum->pairs == 0) {
        for (int i = 0; i < 4; i++) page_cell_none(f, k == sums->ours ? "Tessera itself" : "no image that both hold");
    } else {
        const double ratio = (double)sum->pair_bytes / (double)sum->pair_ours;
        page_cell_number(f, ratio, text_change(text, ratio), false);
        page_cell_count(f, sum->ours_smaller);
        page_cell_count(f, sum->equal);
        page_cell_count(f, sum->ours_larger);
    }
    put_speed_cell(f, sum->raw, sum->encode_s);
    put_speed_cell(f, sum->raw, sum->decode_s);
    if (sum->peak_bytes)
        page_cell_bytes(f, sum->peak_bytes);
    else
        page_cell_none(f, "not measured");
    fputs("</tr>\n", f);
}

static void put_codecs(FILE *f, const struct sums *sums, const size_t *order, size_t count)
{
    fputs("<h3>Codec by codec, each on the images it holds</h3>\n", f);
    page_table(f, "Lossless codecs, each on the images it holds", "", "codecs");
    fputs("<thead><tr>", f);
    page_head(f, "Codec", false, true);
    page_head(f, "Holds", true, true);
    page_head(f, "Cannot", true, true);
    page_head(f, "Failed", true, true);
    page_head(f, "Ratio", true, true);
    page_head(f, "Bytes against Tessera", true, true);
    page_head(f, "Tessera smaller", true, true);
    page_head(f, "Equal", true, true);
    page_head(f, "Tessera larger", true, true);
    page_head(f, "Encode MB/s", true, true);
    page_head(f, "Decode MB/s", true, true);
    page_head(f, "Memory, highest", true, true);
    fputs("</tr></thead>\n<tbody>\n", f);
    for (size_t i = 0; i < count; i++) put_codec_row(f, sums, order[i]);
    fputs("</tbody>\n", f);
    page_table_end(f);
    fputs("<p class=\"small\">The four columns about Tessera are over the images that the codec and Tessera both hold. "
          "Cannot: the codec "
          "has no such samples. Failed: it crashed, did not end, or did not give the samples back.</p>\n",
          f);
}

/* ---- Groups -------------------------------------------------------------------------------------------------- */

struct group_sum {
    size_t common;
    uint64_t raw, file_bytes, tsr_bytes, stream_bytes, sample_bytes, *bytes;
};

static void sum_group(const struct sums *sums, const size_t *number, size_t g, struct group_sum *sum)
{
    for (size_t i = 0; i < sums->c->image_count; i++) {
        const struct report_image *image = &sums->c->images[i];
        if (number[i] != g) continue;
        if (image->tsr_bytes > 0) {
            sum->file_bytes += image->file_bytes;
            sum->tsr_bytes += image->tsr_bytes;
        }
        if (image->stream_bytes > 0 && image->sample_bytes > 0) {
            sum->stream_bytes += image->stream_bytes;
            sum->sample_bytes += image->sample_bytes;
        }
        if (!sums->is_common[i]) continue;
        sum->common++;
        sum->raw += image->raw_bytes;
        for (size_t k = 0; k < sums->c->codec_count; k++)
            if (sums->codec[k].is_in_common) sum->bytes[k] += sums_held(sums, i, k)->bytes;
    }
}

static void put_change_cell(FILE *f, uint64_t bytes, uint64_t before)
{
    char text[TEXT_NUMBER];
    if (before == 0)
        page_cell_none(f, NULL);
    else
        page_cell_number(f, (double)bytes / (double)before, text_change(text, (double)bytes / (double)before), false);
}

static void put_group_row(FILE *f, const struct sums *sums, const struct sums_group *group, const struct group_sum *sum,
                          const size_t *order, size_t count, bool has_streams)
{
    char text[TEXT_NUMBER];
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < count; i++)
        if (sums->codec[order[i]].is_in_common && sum->bytes[order[i]] < least) least = sum->bytes[order[i]];
    fputs("<tr><th scope=\"row\">", f);
    text_escape(f, group->name);
    fputs("</th>", f);
    page_cell_count(f, group->images);
    page_cell_bytes(f, sum->file_bytes);
    page_cell_bytes(f, sum->tsr_bytes);
    put_change_cell(f, sum->tsr_bytes, sum->file_bytes);
    if (has_streams && sum->stream_bytes > 0) {
        page_cell_bytes(f, sum->stream_bytes);
        page_cell_bytes(f, sum->sample_bytes);
        put_change_cell(f, sum->stream_bytes, sum->sample_bytes);
    } else if (has_streams) {
        for (int i = 0; i < 3; i++) page_cell_none(f, "no compressed pixels that this build decodes");
    }
    page_cell_count(f, sum->common);
    for (size_t i = 0; i < count; i++) {
        if (!sums->codec[order[i]].is_in_common) continue;
        const uint64_t bytes = sum->bytes[order[i]];
        if (sum->common == 0 || bytes == 0) {
            page_cell_none(f, "no common image");
            continue;
        }
        snprintf(text, sizeof text, "%.3f", (double)sum->raw / (double)bytes);
        page_cell_number(f, (double)sum->raw / (double)bytes, text, bytes == least);
    }
    fputs("</tr>\n", f);
}

static void put_groups(FILE *f, const struct sums *sums, enum sums_key key, const size_t *order, size_t count)
{
    static const char *const titles[SUMS_KEYS] = {"By modality", "By transfer syntax", "By bit depth",
                                                  "By series or folder"};
    static const char *const heads[SUMS_KEYS] = {"Modality", "Transfer syntax", "Depth", "Series"};
    size_t groups = 0, *number = calloc(sums->c->image_count + 1, sizeof *number);
    struct sums_group *group = number ? sums_groups(sums->c, key, number, &groups) : NULL;
    fprintf(f, "<h3>%s</h3>\n", titles[key]);
    page_table(f, titles[key], "wide", NULL);
    fputs("<thead><tr>", f);
    page_head(f, heads[key], false, true);
    page_head(f, "Files", true, true);
    page_head(f, "Bytes", true, true);
    page_head(f, "As .tsr", true, true);
    page_head(f, "Change", true, true);
    if (key == KEY_TRANSFER_SYNTAX) {
        page_head(f, "Streams", true, true);
        page_head(f, "Samples alone", true, true);
        page_head(f, "Streams against samples", true, true);
    }
    page_head(f, "Common", true, true);
    for (size_t i = 0; i < count; i++)
        if (sums->codec[order[i]].is_in_common) page_head(f, sums->c->codecs[order[i]].name, true, true);
    fputs("</tr></thead>\n<tbody>\n", f);
    for (size_t g = 0; g < groups; g++) {
        struct group_sum sum = {.bytes = calloc(sums->c->codec_count + 1, sizeof *sum.bytes)};
        if (!sum.bytes) break;
        sum_group(sums, number, g, &sum);
        put_group_row(f, sums, &group[g], &sum, order, count, key == KEY_TRANSFER_SYNTAX);
        free(sum.bytes);
    }
    fputs("</tbody>\n", f);
    page_table_end(f);
    free(group);
    free(number);
}

void comparison_write_lossless(FILE *f, const struct sums *sums)
{
    size_t *const order = calloc(sums->c->codec_count + 1, sizeof *order);
    if (!order) return;
    size_t count = sums_order(sums, order);
    page_section(f, "lossless", "Lossless codecs");
    if (count == 0 || sums->c->image_count == 0) {
        fputs("<p>No lossless codec was compared.</p>\n", f);
        page_section_end(f);
        free(order);
        return;
    }
    put_codecs(f, sums, order, count);
    count = sums_choose(sums, order);
    if (sums->common > 0) put_speeds(f, sums, order, count);
    put_distributions(f, sums);
    for (int key = 0; key < SUMS_KEYS; key++) put_groups(f, sums, (enum sums_key)key, order, count);
    fputs(
        "<p class=\"small\">A codec's column is its ratio (raw bytes / coded bytes) over the common images of the row: "
        "those that every codec holds that holds at least half of all. The highest is bold. Bytes and .tsr are of "
        "whole "
        "files, headers included. Streams are the compressed pixel data of DICOM files that this build decodes; "
        "samples alone are Tessera's bytes for the same samples.</p>\n",
        f);
    page_section_end(f);
    free(order);
}
