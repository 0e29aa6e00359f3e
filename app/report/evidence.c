/* The page of compress, test and verify. See evidence.h. */
#include <string.h>

#include "evidence.h"
#include "lists.h"
#include "origin.h"
#include "page.h"
#include "text.h"

static const char *const proofs[] = {[PROOF_NONE] = "not proven",
                                     [PROOF_SAME_FILE] = "same file",
                                     [PROOF_SAME_SAMPLES] = "same samples",
                                     [PROOF_LOSSY] = "lossy",
                                     [PROOF_FAILED] = "FAILED"};

static const char *result_of(const struct evidence_file *file)
{
    if (file->is_skipped) return "skipped";
    return (unsigned)file->proof <= PROOF_FAILED ? proofs[file->proof] : "";
}

static const char *plural(size_t count)
{
    return count == 1 ? "" : "s";
}

/* ---- Verdict and counts -------------------------------------------------------------------------------------- */

static void put_verdict(FILE *f, const struct report_evidence *e)
{
    fprintf(f, "<h1 class=\"verdict %s\"><strong>%s</strong> ", e->passes ? "pass" : "fail",
            e->passes ? "PASS" : "FAIL");
    text_escape(f, e->verdict);
    fputs("</h1>\n<p class=\"small\">Record of <code>tessera ", f);
    text_escape(f, e->verb);
    fputs("</code>, ", f);
    text_escape(f, e->origin.started);
    fputs(" to ", f);
    text_escape(f, e->origin.ended);
    fputs(" (UTC).</p>\n", f);
    if (e->is_identified)
        fputs("<p class=\"warning\">This record has the names of files. They may identify patients.</p>\n", f);
}

struct counts {
    size_t proof[PROOF_FAILED + 1], stored, current, skipped;
    uint64_t bytes_in, bytes_out, frames;
};

static struct counts count_files(const struct report_evidence *e)
{
    struct counts counts = {{0}, 0, 0, 0, 0, 0, 0};
    for (size_t i = 0; i < e->file_count; i++) {
        const struct evidence_file *file = &e->files[i];
        counts.skipped += file->is_skipped;
        if (file->is_skipped) continue;
        if ((unsigned)file->proof <= PROOF_FAILED) counts.proof[file->proof]++;
        counts.stored += file->is_stored;
        counts.current += file->is_current;
        counts.bytes_in += file->bytes_in;
        counts.bytes_out += file->bytes_out;
        counts.frames += file->frames;
    }
    return counts;
}

static void put_count(FILE *f, const char *what, uint64_t count, const char *meaning)
{
    char text[TEXT_NUMBER];
    fprintf(f, "<tr><th scope=\"row\">%s</th><td class=\"n\">%s</td><td>%s</td></tr>\n", what, text_count(text, count),
            meaning);
}

static void put_counts(FILE *f, const struct report_evidence *e, const struct counts *n)
{
    page_section(f, "counts", "Result");
    page_table(f, "Numbers of files by result", "words", NULL);
    fputs("<thead><tr>", f);
    page_head(f, "Files", false, false);
    page_head(f, "Number", true, false);
    page_head(f, "Meaning", false, false);
    fputs("</tr></thead>\n<tbody>\n", f);
    put_count(f, "In this record", e->file_count, "all files that the command met");
    put_count(f, "Same file", n->proof[PROOF_SAME_FILE], "reversible (lossless): the restored file has the same bytes");
    put_count(f, "Same samples", n->proof[PROOF_SAME_SAMPLES],
              "reversible (lossless) for the pixel data: all samples are the same, the file around them is not");
    put_count(f, "Lossy", n->proof[PROOF_LOSSY],
              "irreversible: samples differ by no more than the error in the table (DICOM: Lossy Image Compression, "
              "0028,2110)");
    put_count(f, "FAILED", n->proof[PROOF_FAILED],
              "what was restored is not what it has to be, or nothing was restored");
    put_count(f, "Not proven", n->proof[PROOF_NONE], "no comparison was made");
    put_count(f, "Skipped", n->skipped, "not looked at; the list has the reasons");
    if (n->stored)
        put_count(f, "Stored as they are", n->stored, "part of the numbers above: kept byte for byte, not coded");
    if (n->current) put_count(f, "Already done", n->current, "part of the numbers above: an earlier run made the .tsr");
    if (e->removed) put_count(f, "Originals removed", e->removed, "after their .tsr was proven");
    if (e->not_in_set)
        put_count(f, "Not in the set", e->not_in_set, "names that are not regular files, as links or devices");
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
    fprintf(f, "<p>%s</p>\n", comparison_of(e->verb ? e->verb : ""));
    fputs(
        "<ul>\n<li><b>Same file</b>: equal length, and equal bytes from the first to the last. This includes the DICOM "
        "data set, all of its frames, and all private elements.</li>\n"
        "<li><b>Same samples</b>: every sample of every frame is equal at its full depth. Headers or the coded form of "
        "the pixel data may differ.</li>\n"
        "<li><b>Lossy</b>: the largest absolute error and the PSNR over all samples are stated for each file.</li>\n"
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

/* ---- Lists --------------------------------------------------------------------------------------------------- */

static bool differs(const struct evidence_file *file)
{
    return !file->is_skipped &&
           (file->proof == PROOF_SAME_SAMPLES || file->proof == PROOF_LOSSY || file->proof == PROOF_NONE);
}

static bool is_stored(const struct evidence_file *file)
{
    return file->is_stored && !file->is_skipped;
}

static bool has_failed(const struct evidence_file *file)
{
    return file->proof == PROOF_FAILED && !file->is_skipped;
}

static bool is_skipped(const struct evidence_file *file)
{
    return file->is_skipped;
}

static void put_list(FILE *f, const struct report_evidence *e, const char *id, const char *title,
                     bool (*has)(const struct evidence_file *file))
{
    size_t count = 0;
    for (size_t i = 0; i < e->file_count; i++) count += has(&e->files[i]);
    list_begin(f, id, title, count);
    for (size_t i = 0; i < e->file_count && count > 0; i++) {
        const struct evidence_file *file = &e->files[i];
        if (!has(file)) continue;
        list_entry(f, file->name, i + 1, result_of(file));
        list_more(f, "", file->reason);
        list_more(f, "XXH3 of the original ", file->original_xxh3);
        list_more(f, "XXH3 of the restored file ", file->restored_xxh3);
        list_more(f, "XXH3 of the samples ", file->samples_xxh3);
        list_more(f, "SHA-256 of the original ", file->original_sha256);
        list_more(f, "SHA-256 of the restored file ", file->restored_sha256);
        list_more(f, "SHA-256 of the samples ", file->samples_sha256);
        fputs("\n", f);
    }
    list_end(f, count);
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

static void put_file(FILE *f, const struct evidence_file *file, size_t number)
{
    const char *result = result_of(file);
    fputs("<tr data-kind=\"", f);
    text_escape(f, result);
    fprintf(f, "\"><th scope=\"row\"%s data-v=\"%zu\">", file->name ? " class=\"name\"" : "", number);
    if (file->name)
        text_escape(f, file->name);
    else
        fprintf(f, "%zu", number);
    fputs("</th>", f);
    page_cell(f, file->output);
    fprintf(f, "<td class=\"%s\">", file->proof == PROOF_FAILED && !file->is_skipped ? "bad" : "");
    text_escape(f, result);
    fprintf(f, "%s%s%s</td>", file->is_stored ? ", stored" : "", file->is_current ? ", already done" : "",
            file->removed ? ", original removed" : "");
    page_cell(f, file->kind);
    page_cell_count(f, file->bytes_in);
    page_cell_count(f, file->bytes_out);
    page_cell_count(f, file->frames);
    put_optional(f, file->max_error >= 0, (double)file->max_error, NULL);
    put_optional(f, file->psnr_db >= 0 && file->psnr_db < 1e9, file->psnr_db, "2");
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
    page_head(f, "PSNR (dB)", true, true);
    page_head(f, "Hash of the original", false, true);
    page_head(f, "Hash of the restored file", false, true);
    page_head(f, "Engine", false, true);
    page_head(f, "Reason", false, true);
    fputs("</tr></thead>\n<tbody>\n", f);
}

static bool is_in_table(const struct report_evidence *e, const struct evidence_file *file)
{
    return e->file_count <= EVIDENCE_ROWS_LIMIT || file->is_skipped || file->proof != PROOF_SAME_FILE;
}

static void put_files(FILE *f, const struct report_evidence *e)
{
    static const char *const kinds[] = {"same file", "same samples", "lossy", "FAILED", "not proven", "skipped"};
    size_t rows = 0, written = 0;
    char all[TEXT_NUMBER], some[TEXT_NUMBER];
    for (size_t i = 0; i < e->file_count; i++) rows += is_in_table(e, &e->files[i]);
    if (rows > EVIDENCE_ROWS_LIMIT) rows = EVIDENCE_ROWS_LIMIT;
    page_section(f, "files", "Files");
    if (rows < e->file_count)
        fprintf(
            f,
            "<p class=\"warning\">The table has %s of %s files: only those that do not come back as the same file%s. "
            "The counts above are of all.</p>\n",
            text_count(some, rows), text_count(all, e->file_count),
            rows == EVIDENCE_ROWS_LIMIT ? ", and of these the first" : "");
    if (rows == 0) fprintf(f, "<p>There is no file to list.</p>\n");
    if (rows > 0) {
        page_filters(f, "file-table", "Result", kinds, sizeof kinds / sizeof kinds[0], rows);
        page_table(f, "Files", "tall", "file-table");
        put_heads(f, e->is_identified);
        for (size_t i = 0; i < e->file_count && written < rows; i++) {
            if (!is_in_table(e, &e->files[i])) continue;
            put_file(f, &e->files[i], i + 1);
            written++;
        }
        fputs("</tbody>\n", f);
        page_table_end(f);
        fprintf(
            f,
            "<p class=\"small\">%zu row%s. A hash of 64 digits is SHA-256, one of 32 is XXH3. A dash: not known, or "
            "not asked for.</p>\n",
            rows, plural(rows));
    }
    page_section_end(f);
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
    char title[64];
    const struct counts counts = count_files(e);
    snprintf(title, sizeof title, "Tessera %.20s: %s", e->verb ? e->verb : "", e->passes ? "PASS" : "FAIL");
    page_begin(f, title, links);
    put_verdict(f, e);
    put_counts(f, e, &counts);
    put_scope(f, e);
    page_section(f, "lists", "Lists");
    put_list(f, e, "list-failed", "Failed", has_failed);
    put_list(f, e, "list-differs", "Not identical as a file", differs);
    put_list(f, e, "list-stored", "Stored as they are", is_stored);
    put_list(f, e, "list-skipped", "Skipped", is_skipped);
    page_section_end(f);
    put_files(f, e);
    page_section(f, "made", "How it was made");
    origin_write(f, &e->origin);
    page_section_end(f);
    put_signature(f);
    page_end(f, e->origin.version);
    return !ferror(f);
}
