/* The report of compress, test and verify; see evidence.h. */
#include "evidence.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/cli/inputs/inputs.h"
#include "app/cli/json.h"
#include "app/cli/summary/originals.h"
#include "app/report/evidence.h"
#include "origin.h"
#include "page_file.h"

/* Most reasons that are said under the verdict. */
enum { REASONS_LIMIT = 20 };

static struct {
    struct page_file page;
    struct report_origin origin;
    struct evidence_counts counts;
    struct evidence_file *files; /* those of which the page may have a row */
    size_t count, capacity, number;
    size_t kept[EVIDENCE_SORTS];
    struct evidence_reason reasons[REASONS_LIMIT];
    size_t reason_count, other_files;
    bool lost; /* there was no memory for a file */
} evidence;

/* Evidence names files; reports do where that is asked for. */
static bool names_files(const struct options *options)
{
    return options->report.identify || options->verb == VERB_VERIFY;
}

static void free_file(struct evidence_file *file)
{
    free((char *)(uintptr_t)file->name);
    free((char *)(uintptr_t)file->output);
    free((char *)(uintptr_t)file->reason);
    free((char *)(uintptr_t)file->damage);
    free((char *)(uintptr_t)file->referrers);
}

static void free_evidence(void)
{
    for (size_t i = 0; i < evidence.count; i++) free_file(&evidence.files[i]);
    for (size_t i = 0; i < evidence.reason_count; i++) {
        free((char *)(uintptr_t)evidence.reasons[i].text);
        for (size_t k = 0; k < EVIDENCE_NAMES; k++) free((char *)(uintptr_t)evidence.reasons[i].names[k]);
    }
    free(evidence.files);
    free_origin(&evidence.origin);
    memset(&evidence, 0, sizeof evidence);
}

enum tsr_status begin_evidence(const struct options *options, struct tsr_error *error)
{
    free_evidence();
    begin_origin(options, names_files(options), &evidence.origin);
    const enum tsr_status status = open_page(options->report.page, options->out.force, &evidence.page, error);
    if (status != TSR_OK) return status;
    unlink(options->report.page); /* an older page says nothing of this run, which may be killed */
    return tsr_file_set_add(options->out.written, evidence.page.part, NULL, error);
}

/* ---- Files ------------------------------------------------------------------------------------------------ */

static enum file_proof proof_of(const struct options *options, const struct outcome *outcome)
{
    const struct tsr_report *const r = &outcome->report;
    const bool decodes = options->verb != VERB_COMPRESS; /* all of it, or it fails */
    if (outcome->status != TSR_OK) return PROOF_FAILED;
    if (!decodes && !outcome->is_compared && !outcome->is_gone && (outcome->is_current || !r->verified))
        return PROOF_NONE;
    return r->promise == TSR_PROMISE_LOSSY  ? PROOF_LOSSY
           : r->promise == TSR_PROMISE_FILE ? PROOF_SAME_FILE
                                            : PROOF_SAME_SAMPLES;
}

/* A text that may stand in a page; NULL for none, and without memory. */
static char *copy_of(const char *text)
{
    bool changed;
    return text && text[0] ? copy_as_utf8(text, &changed) : NULL;
}

static char *name_of(const struct task *task)
{
    char *name = NULL;
    if (!task->member) return copy_of(task->input);
    if (asprintf(&name, "%s: %s", task->input, task->member) < 0) return NULL;
    char *const copy = copy_of(name);
    free(name);
    return copy;
}

/* A sentence without the name of its file, so that those of several files are the same. To be freed. */
static char *without_name(const char *text, const char *name)
{
    const size_t length = strlen(name);
    const char *const found = find_name(text, name);
    char *result = NULL;
    if (!found) return copy_of(text);
    if (found == text && strncmp(text + length, ": ", 2) == 0) return copy_of(text + length + 2);
    if (asprintf(&result, "%.*sit%s", (int)(found - text), text, found + length) < 0) return NULL;
    char *const copy = copy_of(result);
    free(result);
    return copy;
}

/* Whether a sentence names no file but its own: those about inputs do not, nor does what follows a name and a colon. */
static bool names_only(const struct tsr_error *error, const struct task *task)
{
    const size_t length = strlen(task->input);
    const char *const found = find_name(error->text, task->input);
    const bool begins = found == error->text && found[length] == ':';
    const bool is_of_input = error->status == TSR_ERROR_READ || error->status == TSR_ERROR_NOT_TSR ||
                             error->status == TSR_ERROR_CORRUPT || error->status == TSR_ERROR_VERSION;
    return found && (begins || is_of_input) && !task->member && !strchr(found + length, '/') &&
           !memchr(error->text, '/', (size_t)(found - error->text));
}

/* The name stands in the row's first column, or nowhere. */
static char *reason_of(const struct options *options, const struct task *task, const struct outcome *outcome)
{
    const char *const kept = options->archive.removes ? outcome->kept : NULL;
    if (outcome->status == TSR_OK) return copy_of(outcome->report.reason[0] ? outcome->report.reason : kept);
    if (names_files(options) || names_only(&outcome->error, task))
        return without_name(outcome->error.text, task->input);
    char text[200];
    const int reason = outcome->error.system; /* its words identify nobody */
    snprintf(text, sizeof text, "%s%s%s", tsr_status_name(outcome->status), reason ? ": " : "",
             reason ? strerror(reason) : "");
    return copy_of(text);
}

static void add_hashes(struct evidence_file *file, const struct outcome *outcome)
{
    const struct file_hashes *const hashes = outcome->more;
    if (outcome->status != TSR_OK) return;
    write_hash(outcome->report.original_hash, file->original_xxh3);
    memcpy(file->original_sha256, outcome->sha256, sizeof file->original_sha256);
    if (!hashes) return;
    memcpy(file->original_xxh3, hashes->original_xxh3, sizeof file->original_xxh3);
    memcpy(file->restored_xxh3, hashes->restored_xxh3, sizeof file->restored_xxh3);
    memcpy(file->samples_xxh3, hashes->samples_xxh3, sizeof file->samples_xxh3);
    memcpy(file->original_sha256, hashes->original_sha256, sizeof file->original_sha256);
    memcpy(file->restored_sha256, hashes->restored_sha256, sizeof file->restored_sha256);
    memcpy(file->samples_sha256, hashes->samples_sha256, sizeof file->samples_sha256);
}

/* The text that is kept of a reason, and the names of the first files that have it. */
static void note_reason(const char *what, const char *text, const struct evidence_file *file)
{
    size_t i = 0;
    while (i < evidence.reason_count &&
           (evidence.reasons[i].what != what || strcmp(evidence.reasons[i].text, text) != 0))
        i++;
    char *const copy = i == evidence.reason_count && i < REASONS_LIMIT ? strdup(text) : NULL;
    if (copy) evidence.reasons[evidence.reason_count++] = (struct evidence_reason){.what = what, .text = copy};
    if (i == evidence.reason_count) {
        evidence.other_files++;
        return;
    }
    struct evidence_reason *const reason = &evidence.reasons[i];
    if (reason->files < EVIDENCE_NAMES) {
        reason->numbers[reason->files] = file->number;
        reason->names[reason->files] = file->name ? strdup(file->name) : NULL;
    }
    reason->files++;
}

/* Counts a file, and keeps it if the page has use for it. Takes over its texts. */
static void keep_file(struct evidence_file *file)
{
    static const char failed[] = "failed", unproven[] = "not proven", left_out[] = "not taken", left[] = "kept",
                      poor[] = "lossy", referred[] = "lossy, and referred to", over[] = "lossy, above a ratio",
                      above[] = "pixels are compressed further than the limit that is published for their modality";
    const char *const text = file->reason ? file->reason : "";
    const enum evidence_sort sort = evidence_sort_of(file);
    file->number = ++evidence.number;
    evidence_count(&evidence.counts, file);
    if (file->is_not_taken)
        note_reason(left_out, text, file);
    else if (file->proof == PROOF_FAILED || file->proof == PROOF_NONE)
        note_reason(file->proof == PROOF_FAILED ? failed : unproven, text, file);
    else if (file->kept)
        note_reason(left, file->kept, file);
    char less[80];
    snprintf(less, sizeof less, "less than %g dB in a window, where it is seen", least_window());
    if (file->is_poor) note_reason(poor, less, file);
    if (file->ratio_limit > 0) note_reason(over, above, file);
    if (file->referrers) note_reason(referred, file->referrers, file);
    if (evidence.kept[sort]++ >= EVIDENCE_FILES_LIMIT) {
        free_file(file);
    } else if (grow_list(&evidence.files, evidence.count, &evidence.capacity, sizeof *evidence.files)) {
        evidence.files[evidence.count++] = *file;
    } else {
        free_file(file);
        evidence.lost = true;
    }
}

static void take_loss(const struct tsr_report *r, struct evidence_file *file)
{
    static_assert((int)EVIDENCE_WINDOWS == (int)TSR_REPORTED_WINDOWS, "all windows of a report");
    file->psnr_db = r->psnr_db;
    file->max_error = r->max_error;
    file->range = r->range;
    file->exact_samples = r->exact.samples;
    memcpy(file->exact_box,
           (const uint32_t[4]){r->exact.box.column, r->exact.box.row, r->exact.box.columns, r->exact.box.rows},
           sizeof file->exact_box);
    file->window_count = r->windows;
    for (uint32_t w = 0; w < r->windows; w++) {
        const struct tsr_window_loss *const window = &r->window[w];
        file->window[w] =
            (struct evidence_window){window->center,  window->width,     window->rmse, window->psnr_db,
                                     window->samples, window->is_judged, window->ssim, window->largest_error};
    }
    file->is_poor = is_poor(r);
    file->ssim = has_ssim(r->ssim) ? r->ssim : -1;
    memcpy(file->modality, r->modality, sizeof file->modality);
    if (!is_over_ratio(r)) return;
    file->ratio = (double)r->pixel_bytes / (double)r->payload_bytes;
    file->ratio_limit = r->ratio_limit;
}

void add_evidence(const struct options *options, const struct task *task, const struct outcome *outcome)
{
    const struct tsr_report *const r = &outcome->report;
    const bool is_ok = outcome->status == TSR_OK, names = names_files(options);
    if (!evidence.page.file) return;
    struct evidence_file file = {.proof = proof_of(options, outcome), .psnr_db = -1, .ssim = -1, .max_error = -1};
    file.name = names ? name_of(task) : NULL;
    file.output = names && options->verb == VERB_VERIFY ? copy_of(task->original)
                  : names                               ? copy_of(task->output)
                                                        : NULL;
    file.reason = file.proof == PROOF_NONE ? strdup("--verify none") : reason_of(options, task, outcome);
    file.damage = is_ok ? copy_of(r->damage) : NULL;
    file.is_current = outcome->is_current;
    file.removed = outcome->removed;
    file.kept = is_ok && !r->damage[0] && options->archive.removes ? outcome->kept : NULL;
    file.is_stored = is_ok && is_stored(r);
    snprintf(file.kind, sizeof file.kind, "%s", is_ok ? tsr_kind_name(r->kind) : "");
    const bool is_made = options->verb == VERB_COMPRESS;
    file.bytes_in = is_made ? r->bytes_in : r->bytes_out; /* of the original */
    file.bytes_out = is_made ? r->bytes_out : r->bytes_in;
    file.frames = is_ok && r->has_image ? r->image.frames : 0;
    file.engine = r->engine;
    if (is_ok && r->promise == TSR_PROMISE_LOSSY) take_loss(r, &file);
    char *const referrers = say_referrers(task, outcome, names);
    file.referrers = copy_of(referrers);
    free(referrers);
    add_hashes(&file, outcome);
    keep_file(&file);
}

/* ---- The page --------------------------------------------------------------------------------------------- */

/* Names that came to no file of the set. */
static void add_skipped_names(const struct options *options, const struct task_list *list)
{
    for (size_t i = 0; i < list->skipped_count; i++) {
        struct evidence_file file = {.is_not_taken = true, .psnr_db = -1, .ssim = -1, .max_error = -1};
        file.name = names_files(options) ? copy_of(list->skipped[i].path) : NULL;
        file.reason = copy_of(list->skipped[i].reason);
        keep_file(&file);
    }
}

/* Why there are no files, before any other reason. Its sentence may name files. */
static void add_sentence(const struct options *options, const struct tally *tally, const char *sentence)
{
    const bool may_say = names_files(options) || tally->ended == TSR_ERROR_NO_INPUT;
    if (!sentence || evidence.reason_count == REASONS_LIMIT) return;
    memmove(evidence.reasons + 1, evidence.reasons, evidence.reason_count * sizeof *evidence.reasons);
    evidence.reasons[0] = (struct evidence_reason){.text = copy_of(may_say ? sentence : tsr_status_name(tally->ended))};
    evidence.reason_count++;
}

static void add_clause(FILE *text, const char **separator, size_t count, const char *one, const char *more)
{
    if (count == 0) return;
    fprintf(text, "%s%zu %s", *separator, count, count == 1 ? one : more);
    *separator = ", ";
}

/* What is said beside the word, and what was proven. To be freed. */
static char *say_sentence(const struct tally *tally)
{
    char *sentence = NULL, why[VERDICT_ROOM];
    size_t size;
    const size_t *const proof = evidence.counts.proof;
    const size_t proven = proof[PROOF_SAME_FILE] + proof[PROOF_SAME_SAMPLES] + proof[PROOF_LOSSY];
    const char *separator = "";
    FILE *const text = open_memstream(&sentence, &size);
    if (!text) return NULL;
    explain_verdict(tally, why);
    fprintf(text, "%s%s", why, why[0] && tally->files > 0 ? "; " : "");
    if (tally->files == 0 && judge(tally) == VERDICT_PASS)
        fprintf(text, "%sthis part of the set has no file", why[0] ? "; " : "");
    else if (tally->files > 0 && proven < tally->files)
        fprintf(text, "%zu of %zu files were proven", proven, tally->files);
    else if (tally->files > 0)
        fprintf(text, proven == 1 ? "%zu file was proven" : "all %zu files were proven", proven);
    if (proven > 0) fputs(": ", text);
    add_clause(text, &separator, proof[PROOF_SAME_FILE], "comes back as the same file", "come back as the same files");
    add_clause(text, &separator, proof[PROOF_SAME_SAMPLES], "comes back with the same samples in another file",
               "come back with the same samples in other files");
    add_clause(text, &separator, proof[PROOF_LOSSY], "is lossy, with the error that its .tsr states",
               "are lossy, with the errors that their .tsr files state");
    fclose(text);
    return sentence;
}

enum tsr_status end_evidence(const struct options *options, const struct task_list *list, const struct tally *tally,
                             const char *sentence, struct tsr_error *error)
{
    if (!evidence.page.file) return TSR_OK;
    char title[VERDICT_ROOM], originals[ORIGINALS_ROOM], *const verdict = say_sentence(tally);
    say_verdict(tally, title);
    say_originals(options, list, tally, originals);
    add_skipped_names(options, list);
    add_sentence(options, tally, sentence);
    end_origin(&evidence.origin);
    const struct report_evidence page = {
        .origin = evidence.origin,
        .verb = verb_name(options->verb),
        .is_identified = names_files(options),
        .passes = judge(tally) == VERDICT_PASS,
        .word = verdict_word(judge(tally)),
        .title = title,
        .verdict = verdict ? verdict : "",
        .originals = originals,
        .reasons = evidence.reasons,
        .reason_count = evidence.reason_count,
        .other_files = evidence.other_files,
        .counts = evidence.counts,
        .poor_db = least_window(),
        .left = tally->left,
        .files = evidence.files,
        .file_count = evidence.count,
    };
    const bool written = !evidence.lost && verdict && report_write_evidence(evidence.page.file, &page);
    enum tsr_status status = check_not_written(options, options->report.page, error);
    if (status == TSR_OK)
        status = close_page(&evidence.page, written, error);
    else
        drop_page(&evidence.page);
    free(verdict);
    free_evidence();
    return status;
}

void drop_evidence(void)
{
    drop_page(&evidence.page);
    free_evidence();
}
