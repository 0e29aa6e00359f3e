/* The page of compress, test and verify. See evidence.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "evidence.h"
#include "lists.h"
#include "origin.h"
#include "page.h"
#include "text/text.h"

static const char *const proofs[] = {[PROOF_NONE] = "not proven",
                                     [PROOF_SAME_FILE] = "same file",
                                     [PROOF_SAME_SAMPLES] = "same samples",
                                     [PROOF_LOSSY] = "lossy",
                                     [PROOF_FAILED] = "FAILED"};

static const char *result_of(const struct evidence_file *file)
{
    if (file->is_not_taken) return "not taken";
    return (unsigned)file->proof <= PROOF_FAILED ? proofs[file->proof] : "";
}

static const char *plural(size_t count)
{
    return count == 1 ? "" : "s";
}

enum evidence_sort evidence_sort_of(const struct evidence_file *file)
{
    if (file->is_not_taken) return SORT_NOT_TAKEN;
    if (file->proof == PROOF_FAILED) return SORT_FAILED;
    if (file->proof != PROOF_SAME_FILE) return SORT_DIFFERS;
    return file->damage ? SORT_DAMAGED : file->is_stored ? SORT_STORED : SORT_SAME;
}

void evidence_count(struct evidence_counts *counts, const struct evidence_file *file)
{
    counts->not_taken += file->is_not_taken;
    if (file->is_not_taken) return;
    if ((unsigned)file->proof <= PROOF_FAILED) counts->proof[file->proof]++;
    counts->current += file->is_current;
    counts->removed += file->removed;
    counts->damaged += file->damage != NULL;
    counts->poor += file->is_poor;
    counts->over_ratio += file->ratio_limit > 0;
    counts->referred += file->referrers != NULL;
    if (file->proof == PROOF_FAILED) return;
    counts->ways[file->is_stored]++;
    counts->way_in[file->is_stored] += file->bytes_in;
    counts->way_out[file->is_stored] += file->bytes_out;
    counts->bytes_in += file->bytes_in;
    counts->bytes_out += file->bytes_out;
    counts->frames += file->frames;
}

static size_t count_all(const struct evidence_counts *counts)
{
    size_t files = counts->not_taken;
    for (int proof = 0; proof <= PROOF_FAILED; proof++) files += counts->proof[proof];
    return files;
}

/* ---- Verdict and counts -------------------------------------------------------------------------------------- */

/* Where names would stand. */
static void put_hint(FILE *f, const struct report_evidence *e)
{
    if (!e->is_identified)
        fputs("<p class=\"small\">Files are numbered in the order of the run. File names are left out; "
              "<code>--identify</code> shows them.</p>\n",
              f);
}

/* "3 failed: cannot read an input (no. 4, no. 17, no. 23)" */
static void put_reason(FILE *f, const struct evidence_reason *reason)
{
    char number[TEXT_NUMBER];
    fputs("<li>", f);
    if (reason->what) fprintf(f, "<b>%s %s</b>: ", text_count(number, reason->files), reason->what);
    text_escape(f, reason->text);
    for (size_t i = 0; i < EVIDENCE_NAMES && i < reason->files; i++) {
        fputs(i > 0 ? ", " : " (", f);
        if (reason->names[i])
            text_escape(f, reason->names[i]);
        else
            fprintf(f, "no. %zu", reason->numbers[i]);
    }
    if (reason->files > EVIDENCE_NAMES) fprintf(f, " and %s more", text_count(number, reason->files - EVIDENCE_NAMES));
    fputs(reason->files > 0 ? ")</li>\n" : "</li>\n", f);
}

static void put_reasons(FILE *f, const struct report_evidence *e)
{
    char number[TEXT_NUMBER];
    if (e->reason_count == 0) return;
    fputs("<ul class=\"reasons\">\n", f);
    for (size_t i = 0; i < e->reason_count; i++) put_reason(f, &e->reasons[i]);
    if (e->other_files > 0)
        fprintf(f, "<li><b>%s more</b>, for other reasons</li>\n", text_count(number, e->other_files));
    fputs("</ul>\n", f);
    put_hint(f, e);
}

static void put_verdict(FILE *f, const struct report_evidence *e)
{
    fprintf(f, "<h1 class=\"verdict %s\"><strong>%s</strong> ", e->passes ? "pass" : "fail", e->word);
    text_escape(f, e->verdict);
    fputs("</h1>\n", f);
    if (e->originals && e->originals[0]) {
        fputs("<p><strong>", f);
        text_escape(f, e->originals);
        fputs("</strong>. A file can be deleted if its .tsr was proven to restore that same file.</p>\n", f);
    }
    put_reasons(f, e);
    fputs("<p class=\"small\">Record of <code>tessera ", f);
    text_escape(f, e->verb);
    fputs("</code>", f);
    if (e->origin.host) {
        fputs(" on ", f);
        text_escape(f, e->origin.host);
    }
    fputs(", ", f);
    text_escape(f, e->origin.started);
    fputs(" to ", f);
    text_escape(f, e->origin.ended);
    fputs(" (UTC).</p>\n", f);
    if (e->is_identified)
        fputs("<p class=\"warning\">This record has the names of files. They may identify patients.</p>\n", f);
}

static void put_count(FILE *f, const char *what, uint64_t count, const char *meaning)
{
    char text[TEXT_NUMBER];
    fprintf(f, "<tr><th scope=\"row\">%s</th><td class=\"n\">%s</td><td>%s</td></tr>\n", what, text_count(text, count),
            meaning);
}

/* Of the files that are coded, or stored. */
static void put_way(FILE *f, const struct evidence_counts *n, int way, const char *what, const char *meaning)
{
    char text[200], in[TEXT_NUMBER], out[TEXT_NUMBER];
    if (n->ways[way] == 0) return;
    snprintf(text, sizeof text, "part of the numbers above: %s; %s as %s", meaning, text_bytes(in, n->way_in[way]),
             text_bytes(out, n->way_out[way]));
    put_count(f, what, n->ways[way], text);
}

/* What is to be said of some lossy files. */
static void put_lossy(FILE *f, const struct report_evidence *e)
{
    char what[80];
    snprintf(what, sizeof what, "Below %g\u00a0dB", e->poor_db);
    if (e->counts.poor)
        put_count(f, what, e->counts.poor,
                  "part of the lossy ones: the loss can be seen in a window of the file; a list names them");
    if (e->counts.over_ratio)
        put_count(
            f, "Above a published ratio", e->counts.over_ratio,
            "part of the lossy ones: their pixels are compressed further than the limit that is published for their "
            "modality; a list names them");
    if (e->counts.referred)
        put_count(
            f, "Referred to", e->counts.referred,
            "part of the lossy ones: what comes back has a new SOP Instance UID, and other files of the set refer to "
            "the old one; a list names them");
}

static void put_counts(FILE *f, const struct report_evidence *e)
{
    const struct evidence_counts *const n = &e->counts;
    page_section(f, "counts", "Result");
    page_table(f, "Numbers of files by result", "words", NULL);
    fputs("<thead><tr>", f);
    page_head(f, "Files", false, false);
    page_head(f, "Number", true, false);
    page_head(f, "Meaning", false, false);
    fputs("</tr></thead>\n<tbody>\n", f);
    put_count(f, "In this record", count_all(n),
              e->left ? "names that the command met, without those that are not done"
                      : "all names that the command met");
    if (e->left) put_count(f, "Not done", e->left, "the run has ended before them; nothing is known of them");
    put_count(f, "Same file", n->proof[PROOF_SAME_FILE], "reversible (lossless): the restored file has the same bytes");
    put_count(f, "Same samples", n->proof[PROOF_SAME_SAMPLES],
              "reversible (lossless) for the pixel data: all samples are the same, the file around them is not");
    put_count(f, "Lossy", n->proof[PROOF_LOSSY],
              "irreversible: samples differ by no more than the error in the table (DICOM: Lossy Image Compression, "
              "0028,2110)");
    put_lossy(f, e);
    put_count(f, "FAILED", n->proof[PROOF_FAILED],
              "what was restored is not what it has to be, or nothing was restored");
    put_count(f, "Not proven", n->proof[PROOF_NONE], "no comparison was made");
    put_count(f, "Not taken", n->not_taken,
              "names that are no files, as links and devices, and .tsr files that are in no output; the list has the "
              "reasons");
    put_way(f, n, 0, "Coded", "their samples, streams or the files inside are modelled");
    put_way(f, n, 1, "Stored", "general compression alone");
    if (n->damaged)
        put_count(f, "Look damaged", n->damaged,
                  "part of the numbers above: the original looked damaged when it was compressed. It comes back as it "
                  "is; the list says what looks damaged");
    if (n->current) put_count(f, "Already done", n->current, "part of the numbers above: an earlier run made the .tsr");
    if (n->removed) put_count(f, "Originals removed", n->removed, "after their .tsr was proven");
    fputs("</tbody>\n", f);
    page_table_end(f);
    char in[TEXT_NUMBER], out[TEXT_NUMBER], exact_in[TEXT_NUMBER], exact_out[TEXT_NUMBER], frames[TEXT_NUMBER];
    fprintf(f, "<p>Originals: %s (%s bytes)%s%s%s. As .tsr: %s (%s bytes)", text_bytes(in, n->bytes_in),
            text_count(exact_in, n->bytes_in), n->frames ? ", " : "", n->frames ? text_count(frames, n->frames) : "",
            n->frames ? (n->frames == 1 ? " frame" : " frames") : "", text_bytes(out, n->bytes_out),
            text_count(exact_out, n->bytes_out));
    if (n->bytes_in > 0 && n->bytes_out > 0) fprintf(f, "; ratio %.3f", (double)n->bytes_in / (double)n->bytes_out);
    fputs(".</p>\n", f);
    page_section_end(f);
}

/* ---- What was compared --------------------------------------------------------------------------------------- */

static const char *comparison_of(const char *verb)
{
    if (!strcmp(verb, "compress"))
        return "Each .tsr file was decoded after it was written, and what came back was compared with the input. A "
               "file "
               "whose result is \u201cnot proven\u201d was not.";
    if (!strcmp(verb, "test"))
        return "Each .tsr file was decoded, and all checksums in it were checked: of its sections, of the samples, and "
               "of "
               "the restored file. They were made when the file was compressed. The originals were not read.";
    return "Each .tsr file was decoded, and every byte that it restores was compared with the original, which was read "
           "again for this record.";
}

static void put_scope(FILE *f, const struct report_evidence *e)
{
    page_section(f, "scope", "What was compared");
    fprintf(f, "<p>%s</p>\n", comparison_of(e->verb));
    fputs(
        "<ul>\n<li><b>Same file</b>: equal length, and equal bytes from the first to the last. This includes the DICOM "
        "data set, all of its frames, and all private elements.</li>\n"
        "<li><b>Same samples</b>: every sample of every frame is equal at its full depth. Headers or the coded form of "
        "the pixel data may differ.</li>\n"
        "<li><b>Lossy</b>: stated are the largest absolute error and the PSNR over all samples, 20\u00a0log10(range / "
        "RMSE); "
        "and of each window of a DICOM file 20\u00a0log10(width / RMSE) over the samples whose original lies inside. A "
        "window with fewer than 256 samples, or 0.1\u00a0%, is not judged.</li>\n"
        "<li>Hashes are XXH3 (128 bits) and, where a manifest was asked for, SHA-256 (FIPS 180-4). XXH3 detects "
        "accidental change, but no intended one. SHA-256 detects both.</li>\n</ul>\n"
        "<h3>What was not compared</h3>\n<ul>\n"
        "<li>Whether the original was a correct or complete image, or conforms to DICOM.</li>\n"
        "<li>Diagnostic quality. For lossy files, no reader study is implied by the figures here.</li>\n"
        "<li>Storage after this record's end. <code>tessera test</code> tells later whether files are still "
        "whole.</li>\n"
        "<li>Names, dates and permissions of files, unless the table says so.</li>\n</ul>\n",
        f);
    page_section_end(f);
}

/* ---- Rows of files ------------------------------------------------------------------------------------------- */

/* Rows that are written before it is said how many they are. */
struct rows {
    FILE *f;
    char *text;
    size_t size, count;
    bool is_full; /* not all have room */
};

static bool rows_begin(struct rows *rows)
{
    *rows = (struct rows){0};
    rows->f = open_memstream(&rows->text, &rows->size);
    return rows->f != NULL;
}

static void rows_add(struct rows *rows, const struct report_evidence *e, bool (*has)(const struct evidence_file *file),
                     void (*put)(FILE *f, const struct evidence_file *file), long limit)
{
    for (size_t i = 0; i < e->file_count && !rows->is_full; i++) {
        if (has && !has(&e->files[i])) continue;
        rows->is_full = ftell(rows->f) >= limit;
        if (rows->is_full) return;
        put(rows->f, &e->files[i]);
        rows->count++;
    }
}

/* Closes what rows_begin has opened; text is to be freed. */
static bool rows_end(struct rows *rows)
{
    return fclose(rows->f) == 0 && rows->text;
}

/* ---- Lists --------------------------------------------------------------------------------------------------- */

static bool has_failed(const struct evidence_file *file)
{
    return evidence_sort_of(file) == SORT_FAILED;
}

static bool differs(const struct evidence_file *file)
{
    return evidence_sort_of(file) == SORT_DIFFERS;
}

static bool is_not_taken(const struct evidence_file *file)
{
    return file->is_not_taken;
}

static bool is_stored(const struct evidence_file *file)
{
    return file->is_stored && !file->is_not_taken && !has_failed(file);
}

static bool is_poor(const struct evidence_file *file)
{
    return file->is_poor;
}

static bool is_over_ratio(const struct evidence_file *file)
{
    return file->ratio_limit > 0;
}

static bool is_referred_to(const struct evidence_file *file)
{
    return file->referrers != NULL;
}

static bool is_damaged(const struct evidence_file *file)
{
    return file->damage != NULL;
}

static bool is_same(const struct evidence_file *file)
{
    return evidence_sort_of(file) >= SORT_DAMAGED;
}

/* The judged window with the least PSNR, or NULL. */
static const struct evidence_window *worst_window(const struct evidence_file *file)
{
    const struct evidence_window *worst = NULL;
    for (uint32_t w = 0; w < file->window_count; w++)
        if (file->window[w].is_judged && (!worst || file->window[w].psnr_db < worst->psnr_db)) worst = &file->window[w];
    return worst;
}

/* The loss of a file in words: of all its samples, then window by window. */
static void put_loss(FILE *f, const struct evidence_file *file)
{
    char text[300];
    if (file->range == 0) return;
    if (isfinite(file->psnr_db))
        snprintf(text, sizeof text, "PSNR %.2f dB of the range %u, largest error %lld", file->psnr_db, file->range,
                 (long long)file->max_error);
    list_more(f, "", isfinite(file->psnr_db) ? text : "no sample differs");
    if (file->exact_samples > 0) {
        snprintf(text, sizeof text, "%llu samples of each frame and component are as they were, in %u,%u,%u,%u",
                 (unsigned long long)file->exact_samples, file->exact_box[0], file->exact_box[1], file->exact_box[2],
                 file->exact_box[3]);
        list_more(f, "", text);
    }
    if (file->ssim > -1) snprintf(text, sizeof text, "SSIM %.4f", file->ssim);
    if (file->ssim > -1) list_more(f, "", text);
    if (file->ratio_limit > 0) {
        snprintf(text, sizeof text, "%s, pixels %.1f to 1: above %u to 1, the published limit for %s", file->modality,
                 file->ratio, file->ratio_limit, file->modality);
        list_more(f, "", text);
    }
    for (uint32_t w = 0; w < file->window_count; w++) {
        const struct evidence_window *const window = &file->window[w];
        char measured[100] = "", ssim[40] = "", number[TEXT_NUMBER];
        if (window->rmse == 0) snprintf(measured, sizeof measured, "nothing lost, ");
        if (window->rmse > 0)
            snprintf(measured, sizeof measured, "%.2f dB, RMSE %.3g, largest error %.3g, ", window->psnr_db,
                     window->rmse, window->largest_error);
        if (window->ssim > -1) snprintf(ssim, sizeof ssim, "SSIM %.4f, ", window->ssim);
        snprintf(text, sizeof text, "window %g/%g: %s%s%s samples inside%s", window->center, window->width, measured,
                 ssim, text_count(number, window->samples), window->is_judged ? "" : ", too few to judge");
        list_more(f, "", text);
    }
}

static void put_entry(FILE *f, const struct evidence_file *file)
{
    list_entry(f, file->name, file->number, result_of(file));
    list_more(f, "", file->referrers);
    put_loss(f, file);
    list_more(f, "", file->reason);
    list_more(f, "Looks damaged: ", file->damage);
    list_more(f, "XXH3 of the original ", file->original_xxh3);
    list_more(f, "XXH3 of the restored file ", file->restored_xxh3);
    list_more(f, "XXH3 of the samples ", file->samples_xxh3);
    list_more(f, "SHA-256 of the original ", file->original_sha256);
    list_more(f, "SHA-256 of the restored file ", file->restored_sha256);
    list_more(f, "SHA-256 of the samples ", file->samples_sha256);
    fputs("\n", f);
}

/* count: of all files of the list, also those that are not in e->files. */
static void put_list(FILE *f, const struct report_evidence *e, const char *id, const char *title, size_t count,
                     bool (*has)(const struct evidence_file *file))
{
    struct rows rows;
    char number[TEXT_NUMBER];
    list_begin(f, id, title, count);
    if (rows_begin(&rows)) {
        rows_add(&rows, e, has, put_entry, EVIDENCE_LIST_BYTES);
        if (rows_end(&rows)) fwrite(rows.text, 1, rows.size, f);
        free(rows.text);
    }
    list_end(f, count);
    if (rows.count < count)
        fprintf(f, "<p class=\"small\">and %s more; <code>--json</code> names all</p>\n",
                text_count(number, count - rows.count));
}

static void put_lists(FILE *f, const struct report_evidence *e)
{
    const struct evidence_counts *const n = &e->counts;
    page_section(f, "lists", "Lists");
    put_hint(f, e);
    put_list(f, e, "list-failed", "Failed", n->proof[PROOF_FAILED], has_failed);
    put_list(f, e, "list-differs", "Not identical as a file",
             n->proof[PROOF_SAME_SAMPLES] + n->proof[PROOF_LOSSY] + n->proof[PROOF_NONE], differs);
    char poor[80];
    snprintf(poor, sizeof poor, "Less than %g\u00a0dB in a window", e->poor_db);
    if (n->poor > 0) put_list(f, e, "list-poor", poor, n->poor, is_poor);
    if (n->over_ratio > 0) put_list(f, e, "list-ratio", "Above a published ratio", n->over_ratio, is_over_ratio);
    if (n->referred > 0) put_list(f, e, "list-referred", "Lossy, and referred to", n->referred, is_referred_to);
    put_list(f, e, "list-not-taken", "Not taken", n->not_taken, is_not_taken);
    put_list(f, e, "list-damaged", "Originals that look damaged", n->damaged, is_damaged);
    put_list(f, e, "list-stored", "Stored", n->ways[1], is_stored);
    page_section_end(f);
}

/* ---- Table --------------------------------------------------------------------------------------------------- */

static void put_optional(FILE *f, bool is_known, double value, const char *format)
{
    char text[TEXT_NUMBER];
    if (!is_known)
        page_cell_none(f, NULL);
    else
        page_cell_number(f, value, (snprintf(text, sizeof text, "%.*f", format ? 2 : 0, value), text), false);
}

static void put_hash(FILE *f, const char *xxh3, const char *sha256)
{
    const char *hash = *sha256 ? sha256 : xxh3;
    fputs("<td class=\"hash\">", f);
    text_escape(f, *hash ? hash : "\u2013");
    fputs("</td>", f);
}

static void put_file(FILE *f, const struct evidence_file *file)
{
    const char *result = result_of(file);
    const bool has_way = !file->is_not_taken && file->proof != PROOF_FAILED;
    fputs("<tr data-kind=\"", f);
    text_escape(f, result);
    fprintf(f, "\"><th scope=\"row\"%s data-v=\"%zu\">", file->name ? " class=\"name\"" : "", file->number);
    if (file->name)
        text_escape(f, file->name);
    else
        fprintf(f, "%zu", file->number);
    fputs("</th>", f);
    page_cell(f, file->output);
    fprintf(f, "<td class=\"%s\">", has_failed(file) ? "bad" : "");
    text_escape(f, result);
    fprintf(f, "%s%s%s</td>",
            !has_way          ? ""
            : file->is_stored ? ", stored"
                              : ", coded",
            file->is_current ? ", already done" : "", file->removed ? ", original removed" : "");
    page_cell(f, file->kind);
    page_cell_count(f, file->bytes_in);
    page_cell_count(f, file->bytes_out);
    page_cell_count(f, file->frames);
    put_optional(f, file->max_error >= 0, (double)file->max_error, NULL);
    const struct evidence_window *const worst = worst_window(file);
    put_optional(f, file->range > 0, file->range, NULL);
    put_optional(f, file->psnr_db >= 0 && file->psnr_db < 1e9, file->psnr_db, "2");
    put_optional(f, worst && isfinite(worst->psnr_db), worst ? worst->psnr_db : 0, "2");
    put_hash(f, file->original_xxh3, file->original_sha256);
    put_hash(f, file->restored_xxh3, file->restored_sha256);
    page_cell(f, file->engine);
    page_cell(f, file->reason);
    fputs("</tr>\n", f);
}

static void put_heads(FILE *f, bool is_identified)
{
    fputs("<thead><tr>", f);
    page_head(f, is_identified ? "File" : "No.", false, true);
    page_head(f, "Output", false, true);
    page_head(f, "Result", false, true);
    page_head(f, "Kind", false, true);
    page_head(f, "Bytes", true, true);
    page_head(f, ".tsr bytes", true, true);
    page_head(f, "Frames", true, true);
    page_head(f, "Largest error", true, true);
    page_head(f, "Range", true, true);
    page_head(f, "PSNR (dB)", true, true);
    page_head(f, "Least window (dB)", true, true);
    page_head(f, "Hash of the original", false, true);
    page_head(f, "Hash of the restored file", false, true);
    page_head(f, "Engine", false, true);
    page_head(f, "Reason", false, true);
    fputs("</tr></thead>\n<tbody>\n", f);
}

/* All rows by number, or, where not all have room, what did not come back as the same file first. */
static bool make_table(const struct report_evidence *e, struct rows *rows)
{
    if (!rows_begin(rows)) return false;
    rows_add(rows, e, NULL, put_file, EVIDENCE_TABLE_BYTES);
    if (!rows->is_full) return rows_end(rows);
    rows_end(rows);
    free(rows->text);
    if (!rows_begin(rows)) return false;
    rows_add(rows, e, has_failed, put_file, EVIDENCE_TABLE_BYTES);
    rows_add(rows, e, differs, put_file, EVIDENCE_TABLE_BYTES);
    rows_add(rows, e, is_not_taken, put_file, EVIDENCE_TABLE_BYTES);
    rows_add(rows, e, is_same, put_file, EVIDENCE_TABLE_BYTES);
    return rows_end(rows);
}

static void put_table(FILE *f, const struct report_evidence *e, const struct rows *rows)
{
    static const char *const kinds[] = {"same file", "same samples", "lossy", "FAILED", "not proven", "not taken"};
    char all[TEXT_NUMBER], some[TEXT_NUMBER];
    if (rows->count < count_all(&e->counts))
        fprintf(f,
                "<p class=\"warning\">The table has %s of %s names, what failed first. The counts above are of all; "
                "<code>--json</code> names all.</p>\n",
                text_count(some, rows->count), text_count(all, count_all(&e->counts)));
    page_filters(f, "file-table", "Result", kinds, sizeof kinds / sizeof kinds[0], rows->count);
    page_table(f, "Files", "tall", "file-table");
    put_heads(f, e->is_identified);
    fwrite(rows->text, 1, rows->size, f);
    fputs("</tbody>\n", f);
    page_table_end(f);
    fprintf(f,
            "<p class=\"small\">%zu row%s. A hash of 64 digits is SHA-256, one of 32 is XXH3. A dash: not known, or "
            "not asked for.</p>\n",
            rows->count, plural(rows->count));
}

static bool put_files(FILE *f, const struct report_evidence *e)
{
    struct rows rows;
    const bool is_made = make_table(e, &rows);
    page_section(f, "files", "Files");
    put_hint(f, e);
    if (is_made && rows.count > 0)
        put_table(f, e, &rows);
    else
        fputs("<p>There is no file to list.</p>\n", f);
    page_section_end(f);
    free(rows.text);
    return is_made;
}

static void put_signature(FILE *f)
{
    page_section(f, "signature", "Signature");
    fputs("<dl class=\"signature\">\n<div><dt>Checked by</dt><dd></dd></div>\n<div><dt>Function</dt><dd></dd></div>\n"
          "<div><dt>Date</dt><dd></dd></div>\n<div><dt>Signature</dt><dd></dd></div>\n</dl>\n"
          "<p class=\"small\">To be filled in by hand on the printed record. This page holds no electronic signature "
          "(as in "
          "21 CFR Part 11), and is not protected against change; keep its hash with it.</p>\n",
          f);
    page_section_end(f);
}

bool report_write_evidence(FILE *f, const struct report_evidence *e)
{
    static const struct page_link links[] = {{"counts", "Result"}, {"scope", "What was compared"}, {"lists", "Lists"},
                                             {"files", "Files"},   {"made", "How it was made"},    {NULL, NULL}};
    char title[400];
    snprintf(title, sizeof title, "Tessera %.20s: %.340s", e->verb, e->title);
    page_begin(f, title, links);
    put_verdict(f, e);
    put_counts(f, e);
    put_scope(f, e);
    put_lists(f, e);
    const bool is_made = put_files(f, e);
    page_section(f, "made", "How it was made");
    origin_write(f, &e->origin);
    page_section_end(f);
    put_signature(f);
    page_end(f, e->origin.version);
    return is_made && !ferror(f);
}
