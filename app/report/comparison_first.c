/* The comparison's first screen: the answer, three sentences, and a bar a codec. */
#include <stdlib.h>
#include <string.h>

#include "comparison_parts.h"
#include "headline.h"
#include "page.h"
#include "plot/plot.h"
#include "text/text.h"

static void put_strong(FILE *f, const char *text)
{
    fputs("<strong>", f);
    text_escape(f, text);
    fputs("</strong>", f);
}

static size_t others_in_common(const struct sums *sums)
{
    size_t count = 0;
    for (size_t k = 0; k < sums->c->codec_count; k++)
        count += sums->codec[k].is_in_common && !sums->c->codecs[k].is_ours;
    return count;
}

static void put_size(FILE *f, const struct sums *sums)
{
    char number[TEXT_NUMBER], bytes[TEXT_NUMBER];
    fputs("<p>", f);
    if (sums->ours == SUMS_NONE || sums->codec[sums->ours].held == 0) {
        fputs("No image was coded by Tessera, so sizes are not compared.</p>\n", f);
        return;
    }
    const struct codec_sums *ours = &sums->codec[sums->ours];
    if (sums->best == SUMS_NONE || !ours->is_in_common) {
        fprintf(f,
                "Tessera codes the samples of %s image%s in %s. No other lossless codec holds enough of them for a "
                "comparison of totals.</p>\n",
                text_count(number, ours->held), ours->held == 1 ? "" : "s", text_bytes(bytes, ours->bytes));
        return;
    }
    const size_t others = others_in_common(sums);
    const uint64_t best = sums->codec[sums->best].common_bytes;
    fprintf(f, "Tessera codes the samples of %s image%s in %s. ", text_count(number, sums->common),
            sums->common == 1 ? "" : "s", text_bytes(bytes, ours->common_bytes));
    text_escape(f, sums->c->codecs[sums->best].name);
    if (others > 1)
        fprintf(f, ", the smallest of the %zu other lossless codecs, ", others);
    else
        fputs(", the only other lossless codec, ", f);
    fprintf(f, "takes %s, ", text_bytes(bytes, best));
    put_strong(f,
               best == ours->common_bytes ? "as many" : text_change(number, (double)best / (double)ours->common_bytes));
    fputs(".</p>\n", f);
}

static void put_speed(FILE *f, const struct sums *sums)
{
    char encode[TEXT_NUMBER], decode[TEXT_NUMBER];
    if (sums->ours == SUMS_NONE || sums->codec[sums->ours].held == 0) return;
    const struct codec_sums *ours = &sums->codec[sums->ours];
    const double e = megabytes_per_second(ours->raw, ours->encode_s),
                 d = megabytes_per_second(ours->raw, ours->decode_s);
    if (e <= 0 || d <= 0) {
        fputs("<p>Speed was not measured.</p>\n", f);
        return;
    }
    fputs("<p>One thread encodes ", f);
    snprintf(encode, sizeof encode, "%.20s\u00a0MB/s", text_figure(decode, e));
    put_strong(f, encode);
    fputs(" and decodes ", f);
    snprintf(encode, sizeof encode, "%.20s\u00a0MB/s", text_figure(decode, d));
    put_strong(f, encode);
    size_t faster[2] = {0, 0};
    for (size_t k = 0; k < sums->c->codec_count && ours->is_in_common; k++) {
        const struct codec_sums *other = &sums->codec[k];
        if (!other->is_in_common || sums->c->codecs[k].is_ours || other->common_encode_s <= 0) continue;
        faster[0] += other->common_encode_s < ours->common_encode_s;
        faster[1] += other->common_decode_s < ours->common_decode_s;
    }
    fputs(" of samples", f);
    if (ours->is_in_common && sums->best != SUMS_NONE)
        fprintf(f, "; of %zu other codec%s, %zu encode%s faster and %zu decode%s faster", others_in_common(sums),
                others_in_common(sums) == 1 ? "" : "s", faster[0], faster[0] == 1 ? "s" : "", faster[1],
                faster[1] == 1 ? "s" : "");
    fputs(".</p>\n", f);
}

static void put_proof(FILE *f, const struct sums *sums)
{
    static const struct {
        enum file_proof proof;
        const char *text;
    } parts[] = {
        {PROOF_SAME_FILE, "come back byte for byte"},
        {PROOF_SAME_SAMPLES, "come back with all samples, in a file that differs"},
        {PROOF_LOSSY, "come back with a loss"},
        {PROOF_FAILED, "failed"},
        {PROOF_NONE, "were not proven"},
    };
    char digits[TEXT_NUMBER];
    bool is_first = true;
    if (sums->c->image_count == 0) {
        fputs("<p>There is no image in the set, so nothing was proven.</p>\n", f);
        return;
    }
    fprintf(f, "<p>Of %s file%s, ", text_count(digits, sums->c->image_count), sums->c->image_count == 1 ? "" : "s");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const size_t count = sums->proof[parts[i].proof];
        if (count == 0) continue;
        if (!is_first) fputs(", ", f);
        put_strong(f, text_count(digits, count));
        fprintf(f, " %s", parts[i].text);
        is_first = false;
    }
    const bool all_done = sums->proof[PROOF_NONE] == 0 && sums->proof[PROOF_FAILED] == 0;
    fputs(all_done ? "; each was decoded and compared.</p>\n" : ".</p>\n", f);
}

static void put_saving(FILE *f, const struct sums *sums)
{
    char before[TEXT_NUMBER], after[TEXT_NUMBER], saved[TEXT_NUMBER], number[TEXT_NUMBER];
    const bool grows = sums->tsr_bytes > sums->file_bytes;
    const uint64_t difference = grows ? sums->tsr_bytes - sums->file_bytes : sums->file_bytes - sums->tsr_bytes;
    if (sums->files == 0 || sums->file_bytes == 0) return;
    fprintf(f,
            "<dl class=\"saving\"><dt>%s as .tsr files</dt><dd>%s, %.1f\u00a0%%</dd>"
            "<dd class=\"small\">%s file%s, of which %zu %s stored: %s \u2192 %s, headers included</dd></dl>\n",
            grows ? "Added" : "Saved", text_bytes(saved, difference),
            100 * (double)difference / (double)sums->file_bytes, text_count(number, sums->files),
            sums->files == 1 ? "" : "s", sums->stored_files, sums->stored_files == 1 ? "is" : "are",
            text_bytes(before, sums->file_bytes), text_bytes(after, sums->tsr_bytes));
}

/* Whether it pays to convert what is compressed already. */
static void put_streams(FILE *f, const struct sums *sums)
{
    char number[TEXT_NUMBER], before[TEXT_NUMBER], after[TEXT_NUMBER], change[TEXT_NUMBER];
    if (sums->encapsulated == 0) return;
    fprintf(f, "<p class=\"small\">%s DICOM file%s hold%s compressed pixels", text_count(number, sums->encapsulated),
            sums->encapsulated == 1 ? "" : "s", sums->encapsulated == 1 ? "s" : "");
    if (sums->decoded > 0)
        fprintf(f, ": their samples alone as Tessera %s, as they are %s (%s)", text_bytes(after, sums->sample_bytes),
                text_bytes(before, sums->stream_bytes),
                text_change(change, (double)sums->stream_bytes / (double)sums->sample_bytes));
    if (sums->decoded < sums->encapsulated)
        fprintf(f, "%s %s of them are not decoded by this build", sums->decoded > 0 ? ";" : ":",
                text_count(number, sums->encapsulated - sums->decoded));
    fprintf(f,
            ". %zu exact: they come back as the same file; %zu samples alone: with --samples-only, as a native file; "
            "%zu stored",
            sums->exact, sums->samples_alone, sums->stored);
    fputs(".</p>\n", f);
}

static void put_others(FILE *f, const struct headline_codec *codec, size_t count, size_t images)
{
    char change[TEXT_NUMBER];
    fputs("<dd>", f);
    for (size_t i = 0; i < count; i++) {
        fprintf(f, "%s<span>%s ", i > 0 ? " " : "", codec[i].name);
        put_strong(f, text_change(change, codec[i].ratio));
        if (codec[i].images < images) fprintf(f, " <small>(%zu of %zu)</small>", codec[i].images, images);
        fputs("</span>", f);
    }
    fputs(count > 0 ? "</dd>\n" : "<dd>no other codec was compared</dd>\n", f);
}

/* What the reader came to know. */
static void put_answer(FILE *f, const struct sums *sums)
{
    const struct headline_level *const level = &headline_levels[HEADLINE_LEVEL];
    struct headline h;
    if (!headline_make(&h, sums) || (h.lossy_count == 0 && h.lossless_count == 0)) return;
    fputs("<dl class=\"answer\">\n", f);
    if (h.lossy_count > 0) {
        fputs("<dt>At equal quality</dt>", f);
        put_others(f, h.lossy, h.lossy_count, h.judged);
    }
    if (h.lossless_count > 0) {
        fputs("<dt>Without loss</dt>", f);
        put_others(f, h.lossless, h.lossless_count, h.held);
    }
    fputs("</dl>\n<p class=\"small\">Bytes of the others beside Tessera's: with + they need more, with \u2212 fewer. ",
          f);
    if (h.lossy_count > 0)
        fprintf(f,
                "Equal quality is that of <code>--quality %s</code>: a PSNR of %g\u00a0dB and an SSIM of %g, "
                "which a picture must have both; the mean of %zu image%s. In brackets: on how many of them the codec "
                "reaches it.",
                level->name, level->psnr_db, level->ssim, h.judged, h.judged == 1 ? "" : "s");
    fputs("</p>\n", f);
}

static void put_title(FILE *f, const struct report_comparison *c)
{
    char number[TEXT_NUMBER], set[TEXT_NUMBER];
    size_t codecs = 0;
    for (size_t k = 0; k < c->codec_count; k++) codecs += !c->codecs[k].is_missing;
    fprintf(f, "<h1>Tessera compared: %s image%s, %zu codecs and settings</h1>\n<p class=\"small\">",
            text_count(number, c->image_count), c->image_count == 1 ? "" : "s", codecs);
    text_escape(f, c->origin.started);
    if (c->origin.machine && c->origin.started[0]) fputs(". ", f);
    text_escape(f, c->origin.machine);
    if (c->sampled < c->files_in_set)
        fprintf(f, ". A sample of %s of the set's %s files, drawn with seed %llu", text_count(number, c->sampled),
                text_count(set, c->files_in_set), (unsigned long long)c->seed);
    fputs(c->origin.started[0] || c->origin.machine ? ".</p>\n" : "</p>\n", f);
}

/* Chosen codecs that count for the common images, by bytes. Returns their number. */
static size_t order_by_bytes(const struct sums *sums, size_t *order)
{
    const size_t chosen = sums_choose(sums, order);
    size_t count = 0;
    for (size_t i = 0; i < chosen; i++) {
        const size_t k = order[i];
        if (!sums->codec[k].is_in_common) continue;
        size_t at = count++;
        for (; at > 0 && sums->codec[order[at - 1]].common_bytes > sums->codec[k].common_bytes; at--)
            order[at] = order[at - 1];
        order[at] = k;
    }
    return count;
}

static void put_uncompressed(struct plot_panel *panel, const struct sums *sums)
{
    static const char name[] = "Uncompressed";
    char bytes[TEXT_NUMBER];
    plot_mark(panel, name, (double)sums->common_raw, 0, text_bytes(bytes, sums->common_raw));
    struct plot_series *series = plot_series(panel, name);
    if (!series) return;
    free(series->note);
    series->note = strdup(bytes);
}

static void put_bar(struct plot_panel *panel, const struct sums *sums, size_t k)
{
    char bytes[TEXT_NUMBER], change[TEXT_NUMBER] = "", note[3 * TEXT_NUMBER];
    const uint64_t mine = sums->codec[k].common_bytes;
    if (sums->ours != SUMS_NONE && k != sums->ours && sums->codec[sums->ours].is_in_common)
        text_change(change, (double)mine / (double)sums->codec[sums->ours].common_bytes);
    snprintf(note, sizeof note, "%s%s%s", text_bytes(bytes, mine), *change ? ", " : "", change);
    plot_mark(panel, sums->c->codecs[k].name, (double)mine, 0, note);
    struct plot_series *series = plot_series(panel, sums->c->codecs[k].name);
    if (!series) return;
    free(series->note);
    series->note = strdup(note);
    series->is_strong = k == sums->ours;
}

static void put_bars(FILE *f, const struct sums *sums)
{
    struct plot plot = {.shares_legend = false};
    size_t *const order = calloc(sums->c->codec_count + 1, sizeof *order);
    size_t said = 0;
    char title[160], number[TEXT_NUMBER];
    if (!order || sums->common == 0) {
        free(order);
        return;
    }
    snprintf(title, sizeof title, "Bytes of %s image%s that all codecs below hold; samples only",
             text_count(number, sums->common), sums->common == 1 ? "" : "s");
    struct plot_panel *panel = plot_panel(&plot, title, "", "", PLOT_ROWS);
    const size_t count = order_by_bytes(sums, order);
    for (size_t i = 0; i < count && panel; i++) put_bar(panel, sums, order[i]);
    if (panel) put_uncompressed(panel, sums);
    plot_write_figures(f, &plot);
    fputs("<p class=\"small\">Percentages are against Tessera: with + the codec needs more bytes, with \u2212 fewer.",
          f);
    const size_t chosen = sums_choose(sums, order);
    for (size_t i = 0; i < chosen; i++) {
        const size_t k = order[i];
        const struct report_codec *codec = &sums->c->codecs[k];
        if (sums->codec[k].is_in_common) continue;
        fputs(said++ ? ", " : " Left out here, since they hold fewer than half of the images: ", f);
        text_escape(f, codec->name);
        fprintf(f, " (%zu)", sums->codec[k].held);
    }
    fputs(said ? ".</p>\n" : "</p>\n", f);
    plot_free(&plot);
    free(order);
}

void comparison_write_first(FILE *f, const struct sums *sums)
{
    bool may_show_names = false;
    for (size_t i = 0; i < sums->c->view_count; i++)
        may_show_names |=
            sums->c->views[i].image < sums->c->image_count && sums->c->images[sums->c->views[i].image].may_show_names;
    put_title(f, sums->c);
    if (sums->c->is_identified)
        fputs("<p class=\"warning\">This page has the names of files. They may identify patients.</p>\n", f);
    if (may_show_names)
        fputs("<p class=\"warning\">Text may be burned into the pixels of some views (ultrasound, captured screens, "
              "scanned film). Look at each view before you pass this page on.</p>\n",
              f);
    put_answer(f, sums);
    fputs("<div class=\"first\">\n<div class=\"said\">\n", f);
    put_size(f, sums);
    put_speed(f, sums);
    put_proof(f, sums);
    put_saving(f, sums);
    put_streams(f, sums);
    fputs("</div>\n<div>\n", f);
    put_bars(f, sums);
    fputs("</div>\n</div>\n", f);
}
