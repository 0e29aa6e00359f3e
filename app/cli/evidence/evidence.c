/* The report of compress, test and verify; see evidence.h. */
#include "evidence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/cli/inputs/inputs.h"
#include "app/cli/json.h"
#include "app/report/evidence.h"
#include "origin.h"
#include "page_file.h"

static struct {
    struct page_file page;
    struct report_origin origin;
    struct evidence_file *files;
    size_t count, capacity;
    size_t failed, unproven, removed; /* unproven: --verify none, or done before and not decoded */
    size_t same_file, same_samples, lossy;
    bool lost; /* there was no memory for a file */
} evidence;

/* Evidence names files; reports do where that is asked for. */
static bool names_files(const struct options *options)
{
    return options->identify || options->verb == VERB_VERIFY;
}

enum tsr_status begin_evidence(const struct options *options, struct tsr_error *error)
{
    memset(&evidence, 0, sizeof evidence);
    begin_origin(options, names_files(options), &evidence.origin);
    const enum tsr_status status = open_page(options->page, options->force, &evidence.page, error);
    if (status != TSR_OK) return status;
    unlink(options->page); /* an older page says nothing of this run, which may be killed */
    return tsr_file_set_add(options->written, evidence.page.part, NULL, error);
}

/* ---- Files ------------------------------------------------------------------------------------------------ */

static enum file_proof proof_of(const struct options *options, const struct outcome *outcome)
{
    const struct tsr_report *const r = &outcome->report;
    const bool decodes = options->verb != VERB_COMPRESS; /* all of it, or it fails */
    if (outcome->status != TSR_OK) return PROOF_FAILED;
    if (!decodes && !outcome->is_compared && !outcome->is_gone && (outcome->is_current || !r->verified))
        return PROOF_NONE;
    return !r->lossless ? PROOF_LOSSY : r->identical ? PROOF_SAME_FILE : PROOF_SAME_SAMPLES;
}

static void count_proof(enum file_proof proof)
{
    evidence.failed += proof == PROOF_FAILED;
    evidence.unproven += proof == PROOF_NONE;
    evidence.same_file += proof == PROOF_SAME_FILE;
    evidence.same_samples += proof == PROOF_SAME_SAMPLES;
    evidence.lossy += proof == PROOF_LOSSY;
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

/* A sentence that names its file, without that name: it stands in the row's first column, or nowhere. */
static char *reason_of(const struct options *options, const struct task *task, const struct outcome *outcome)
{
    if (outcome->status == TSR_OK) return copy_of(outcome->report.reason[0] ? outcome->report.reason : outcome->kept);
    if (names_files(options)) return copy_of(outcome->error.text);
    const size_t length = strlen(task->input);
    const bool begins = strncmp(outcome->error.text, task->input, length) == 0;
    const char *const rest = outcome->error.text + (begins ? length : 0);
    if (begins && rest[0] == ':' && !strchr(rest, '/')) return copy_of(rest + 2);
    return copy_of(tsr_status_name(outcome->status)); /* it may name other files */
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

void add_evidence(const struct options *options, const struct task *task, const struct outcome *outcome)
{
    const struct tsr_report *const r = &outcome->report;
    const bool is_ok = outcome->status == TSR_OK, names = names_files(options);
    if (!evidence.page.file) return;
    if (!grow_list(&evidence.files, evidence.count, &evidence.capacity, sizeof *evidence.files)) {
        evidence.lost = true;
        return;
    }
    struct evidence_file *const file = &evidence.files[evidence.count++];
    *file = (struct evidence_file){.proof = proof_of(options, outcome), .psnr_db = -1, .max_error = -1};
    count_proof(file->proof);
    evidence.removed += outcome->removed;
    file->name = names ? name_of(task) : NULL;
    file->output = names && options->verb == VERB_VERIFY ? copy_of(task->original)
                   : names                               ? copy_of(task->output)
                                                         : NULL;
    file->reason = reason_of(options, task, outcome);
    file->is_current = outcome->is_current;
    file->removed = outcome->removed;
    file->is_stored = is_ok && r->verbatim;
    snprintf(file->kind, sizeof file->kind, "%s", is_ok ? tsr_kind_name(r->kind) : "");
    const bool is_made = options->verb == VERB_COMPRESS;
    file->bytes_in = is_made ? r->bytes_in : r->bytes_out; /* of the original */
    file->bytes_out = is_made ? r->bytes_out : r->bytes_in;
    file->frames = is_ok && !r->verbatim ? r->image.frames : 0;
    file->engine = r->engine;
    if (is_ok && !r->lossless) {
        file->psnr_db = r->psnr_db;
        file->max_error = r->max_error;
    }
    add_hashes(file, outcome);
}

/* ---- The page --------------------------------------------------------------------------------------------- */

/* Names that came to no file of the set. */
static void add_skipped_names(const struct options *options, const struct task_list *list)
{
    for (size_t i = 0; i < list->skipped_count; i++) {
        if (!grow_list(&evidence.files, evidence.count, &evidence.capacity, sizeof *evidence.files)) return;
        struct evidence_file *const file = &evidence.files[evidence.count++];
        *file = (struct evidence_file){.is_skipped = true, .psnr_db = -1, .max_error = -1};
        file->name = names_files(options) ? copy_of(list->skipped[i].path) : NULL;
        file->reason = copy_of(list->skipped[i].reason);
    }
}

static void add_clause(FILE *text, const char **separator, size_t count, const char *one, const char *more)
{
    if (count == 0) return;
    fprintf(text, "%s%zu %s", *separator, count, count == 1 ? one : more);
    *separator = ", ";
}

/* Why the run passes, or not. To be freed. */
static char *say_verdict(const struct task_list *list, bool passes)
{
    char *verdict = NULL;
    size_t size;
    const size_t proven = evidence.same_file + evidence.same_samples + evidence.lossy;
    const char *separator = "";
    FILE *const text = open_memstream(&verdict, &size);
    if (!text) return NULL;
    if (!passes) {
        add_clause(text, &separator, evidence.failed, "file failed", "files failed");
        add_clause(text, &separator, evidence.unproven, "file was not proven", "files were not proven");
        add_clause(text, &separator, list->skipped_count, "name is not a regular file", "names are not regular files");
        add_clause(text, &separator, list->tsr_files, ".tsr file of the set is in no output",
                   ".tsr files of the set are in no output");
        if (evidence.lost) fprintf(text, "%sthere was no memory for a file's result", separator);
        if (evidence.count == 0) fprintf(text, "there was no file");
        fprintf(text, "; %zu of %zu files were proven: ", proven, list->count);
    } else {
        fprintf(text, "all %zu files were proven: ", proven);
    }
    separator = "";
    add_clause(text, &separator, evidence.same_file, "comes back as the same file", "come back as the same files");
    add_clause(text, &separator, evidence.same_samples, "comes back with the same samples in another file",
               "come back with the same samples in other files");
    add_clause(text, &separator, evidence.lossy, "is lossy, with the error that its .tsr states",
               "are lossy, with the errors that their .tsr files state");
    if (proven == 0) fputs("none", text);
    fclose(text);
    return verdict;
}

/* Whether .tsr files of the set have no output: those beside originals are outputs themselves. */
static bool leaves_tsr_files(const struct options *options, const struct task_list *list)
{
    return options->verb == VERB_COMPRESS && options->output && list->tsr_files > list->own_tsr_files;
}

static void free_files(void)
{
    for (size_t i = 0; i < evidence.count; i++) {
        free((char *)(uintptr_t)evidence.files[i].name);
        free((char *)(uintptr_t)evidence.files[i].output);
        free((char *)(uintptr_t)evidence.files[i].reason);
    }
    free(evidence.files);
    evidence.files = NULL;
    evidence.count = evidence.capacity = 0;
}

enum tsr_status end_evidence(const struct options *options, const struct task_list *list, struct tsr_error *error)
{
    if (!evidence.page.file) return TSR_OK;
    const size_t done = evidence.count;
    struct task_list counted = *list;
    if (!leaves_tsr_files(options, list)) counted.tsr_files = 0;
    const bool passes = !evidence.lost && evidence.failed == 0 && evidence.unproven == 0 &&
                        counted.skipped_count == 0 && counted.tsr_files == 0 && done == list->count && done > 0;
    char *const verdict = say_verdict(&counted, passes);
    add_skipped_names(options, list);
    end_origin(&evidence.origin);
    const struct report_evidence page = {
        .origin = evidence.origin,
        .verb = verb_name(options->verb),
        .is_identified = names_files(options),
        .passes = passes,
        .verdict = verdict ? verdict : "no memory for the verdict",
        .files = evidence.files,
        .file_count = evidence.count,
        .removed = evidence.removed,
        .not_in_set = list->skipped_count,
    };
    const bool written = report_write_evidence(evidence.page.file, &page);
    enum tsr_status status = check_not_written(options, options->page, error);
    if (status == TSR_OK)
        status = close_page(&evidence.page, written, error);
    else
        drop_page(&evidence.page);
    free(verdict);
    free_files();
    return status;
}

void drop_evidence(void)
{
    drop_page(&evidence.page);
    free_files();
}
