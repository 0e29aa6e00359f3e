/* What the verbs say of each file: a line for people, JSON for programs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app/cli/cli.h"
#include "app/cli/evidence/evidence.h"
#include "app/cli/json.h"

bool has_qp(const struct tsr_coding *coding)
{
    return coding->lossy && coding->path == TSR_PATH_TRANSFORM;
}

static const char *status_word(const struct outcome *outcome)
{
    return outcome->status != TSR_OK ? "failed" : outcome->is_current ? "current" : "ok";
}

static double seconds_since_1970(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-3 * (double)(now.tv_nsec / 1000000);
}

/* How the pixels were coded. */
static void add_coding(cJSON *o, const struct tsr_report *r, bool coded)
{
    add_number(o, "pixel_bytes", coded, (double)r->pixel_bytes);
    add_number(o, "payload_bytes", coded, (double)r->payload_bytes);
    add_number(o, "bits_per_sample", coded && r->samples > 0, 8.0 * (double)r->payload_bytes / (double)r->samples);
    add_text(o, "path", coded ? tsr_path_name(r->coding.path) : NULL);
    add_text(o, "coder", coded ? tsr_coder_name(r->coding.coder) : NULL);
    add_number(o, "effort", coded && r->coding.effort > 0, r->coding.effort);
    add_number(o, "qp", coded && has_qp(&r->coding), r->coding.qp_eighths / 8.0);
}

static bool has_referrers(const struct task *task, const struct outcome *outcome)
{
    return outcome->status == TSR_OK && outcome->report.promise == TSR_PROMISE_LOSSY && task->referrers > 0;
}

char *say_referrers(const struct task *task, const struct outcome *outcome, bool names)
{
    char *text = NULL;
    size_t size;
    const size_t count = task->referrers, named = count < TSR_NAMED_REFERRERS ? count : TSR_NAMED_REFERRERS;
    FILE *const to = has_referrers(task, outcome) ? open_memstream(&text, &size) : NULL;
    if (!to) return NULL;
    for (size_t i = 0; i < named && names; i++)
        fprintf(to, "%s%s", i == 0 ? "" : i + 1 == count ? " and " : ", ", task->referrer[i]);
    if (names && count > named) fprintf(to, " and %zu more", count - named);
    if (!names) fprintf(to, "%zu other file%s of the set", count, plural(count));
    fprintf(to, " refer%s to its old SOP Instance UID", count == 1 ? "s" : "");
    fclose(to);
    return text;
}

/* Null where no file of the set refers to what is lossy now. */
static void add_referrers(cJSON *o, const struct task *task, const struct outcome *outcome)
{
    if (!has_referrers(task, outcome)) {
        cJSON_AddNullToObject(o, "referrers");
        return;
    }
    cJSON *const all = cJSON_AddObjectToObject(o, "referrers");
    cJSON_AddNumberToObject(all, "count", task->referrers);
    cJSON *const first = cJSON_AddArrayToObject(all, "first");
    for (uint32_t i = 0; i < task->referrers && i < TSR_NAMED_REFERRERS; i++) {
        cJSON *const one = cJSON_CreateObject();
        add_name(one, "file", task->referrer[i]);
        cJSON_AddItemToArray(first, one);
    }
}

void add_base_loss(cJSON *o, double psnr_db, int64_t max_error)
{
    if (max_error < 0) return;
    add_number(o, "base_psnr_db", isfinite(psnr_db), psnr_db);
    cJSON_AddNumberToObject(o, "base_max_error", (double)max_error);
}

static void add_rectangle(cJSON *list, const struct tsr_region *r)
{
    const int numbers[4] = {(int)r->column, (int)r->row, (int)r->columns, (int)r->rows};
    cJSON_AddItemToArray(list, cJSON_CreateIntArray(numbers, 4));
}

void add_exact(cJSON *o, const struct tsr_exact *exact, const struct tsr_region *list)
{
    if (exact->samples == 0) return;
    cJSON *const told = cJSON_AddObjectToObject(o, "exact");
    cJSON_AddNumberToObject(told, "samples", (double)exact->samples);
    cJSON_AddNumberToObject(told, "rectangles", exact->rectangles);
    cJSON *const box = cJSON_AddArrayToObject(told, "box");
    const uint32_t sides[4] = {exact->box.column, exact->box.row, exact->box.columns, exact->box.rows};
    for (int i = 0; i < 4; i++) cJSON_AddItemToArray(box, cJSON_CreateNumber(sides[i]));
    if (!list) return;
    cJSON *const all = cJSON_AddArrayToObject(told, "list");
    for (uint32_t i = 0; i < exact->rectangles; i++) add_rectangle(all, &list[i]);
}

void add_kept(cJSON *o, const struct tsr_stored_values *kept, uint32_t count)
{
    if (count == 0) {
        cJSON_AddNullToObject(o, "kept_values");
        return;
    }
    cJSON *const list = cJSON_AddArrayToObject(o, "kept_values");
    for (uint32_t i = 0; i < count; i++) {
        cJSON *const one = cJSON_CreateObject();
        cJSON_AddNumberToObject(one, "lowest", kept[i].lowest);
        cJSON_AddNumberToObject(one, "highest", kept[i].highest);
        cJSON_AddItemToArray(list, one);
    }
}

/* verify: of both sides, and of the samples. */
static void add_hashes(cJSON *o, const struct file_hashes *hashes)
{
    static const struct file_hashes none;
    const struct file_hashes *const h = hashes ? hashes : &none;
    add_text(o, "original_sha256", h->original_sha256);
    add_text(o, "restored_xxh3_128", h->restored_xxh3);
    add_text(o, "restored_sha256", h->restored_sha256);
    add_text(o, "samples_xxh3_128", h->samples_xxh3);
    add_text(o, "samples_sha256", h->samples_sha256);
    add_number(o, "frames", h->frames > 0, h->frames);
}

/* What is known of a task at its end. */
static cJSON *tell_file(const struct options *options, const struct task *task, const struct outcome *outcome)
{
    const struct tsr_report *r = &outcome->report;
    const bool ok = outcome->status == TSR_OK, coded = ok && r->has_image && !outcome->is_current;
    char hash[HASH_TEXT];
    cJSON *o = cJSON_CreateObject();
    add_name(o, "file", task->input);
    if (task->member) add_name(o, "member", task->member);
    if (options->verb == VERB_VERIFY) add_name(o, "original", task->original);
    add_name(o, "output", ok ? options->series.path ? options->series.path : task->output : NULL);
    add_text(o, "status", status_word(outcome));
    add_text(o, "way", ok ? tsr_way_name(r->way) : NULL);
    add_text(o, "kind", ok ? tsr_kind_name(r->kind) : NULL);
    add_number(o, "bytes_in", ok, (double)r->bytes_in);
    add_number(o, "bytes_out", ok, (double)r->bytes_out);
    add_number(o, "ratio", ok && r->bytes_out > 0, (double)r->bytes_in / (double)r->bytes_out);
    write_hash(r->original_hash, hash);
    add_text(o, "original_xxh3_128", ok ? hash : NULL);
    if (outcome->sha256[0]) add_text(o, "original_sha256", outcome->sha256);
    if (options->verb == VERB_VERIFY) add_hashes(o, ok ? outcome->more : NULL);
    add_truth(o, "identical", ok, r->promise == TSR_PROMISE_FILE);
    add_truth(o, "lossless", ok, r->promise != TSR_PROMISE_LOSSY);
    add_truth(o, "verified", ok, outcome->is_current ? outcome->is_compared || outcome->is_gone : r->verified);
    add_coding(o, r, coded);
    add_text(o, "engine", ok ? r->engine : NULL);
    add_text(o, "fallback", ok && r->fallback[0] ? r->fallback : NULL);
    add_text(o, "verified_by", ok ? r->verified_by : NULL);
    if (options->verb == VERB_COMPRESS)
        add_text(o, "read_back", ok && r->verified ? r->read_from_disk ? "disk" : "memory" : NULL);
    add_number(o, "encode_s", ok && r->encode_s >= 0, r->encode_s);
    add_number(o, "verify_s", ok && r->verify_s >= 0, r->verify_s);
    add_number(o, "psnr_db", ok && r->psnr_db >= 0, r->psnr_db);
    add_number(o, "psnr_stored_db", ok && r->psnr_stored_db >= 0, r->psnr_stored_db);
    add_number(o, "range", ok && r->range > 0, r->range);
    add_windows(o, r->window, ok ? r->windows : 0);
    add_number(o, "ssim", ok && has_ssim(r->ssim), r->ssim);
    add_text(o, "modality", ok && r->modality[0] ? r->modality : NULL);
    add_number(o, "ratio_limit", ok && r->ratio_limit > 0, r->ratio_limit);
    add_number(o, "windows_left_out", ok && r->windows_left_out > 0, r->windows_left_out);
    add_number(o, "left_out_psnr_db", ok && r->windows_left_out > 0 && isfinite(r->left_out_psnr_db),
               r->left_out_psnr_db);
    add_text(o, "windows_note", ok && r->windows_note[0] ? r->windows_note : NULL);
    add_kept(o, r->kept, ok ? r->kept_count : 0);
    add_number(o, "max_error", ok && r->max_error >= 0, (double)r->max_error);
    add_referrers(o, task, outcome);
    add_number(o, "tries", ok && r->tries > 0, r->tries);
    add_number(o, "files", ok && r->files > 0, r->files);
    add_number(o, "base_bytes", ok && r->base_bytes > 0, (double)r->base_bytes);
    if (ok && r->base_bytes > 0) add_base_loss(o, r->base_psnr_db, r->base_max_error);
    if (ok) add_exact(o, &r->exact, NULL);
    add_text(o, "reason", ok ? r->reason : NULL);
    add_text(o, "damage", ok ? r->damage : NULL);
    return o;
}

void prepare_file(const struct options *options, const struct task *task, struct outcome *outcome)
{
    if (!options->talk.json) return;
    outcome->line = json_text(tell_file(options, task, outcome));
    outcome->line_status = outcome->status;
}

static void print_file_json(const struct options *options, const struct task *task, const struct outcome *outcome)
{
    const bool ok = outcome->status == TSR_OK, is_ready = outcome->line && outcome->line_status == outcome->status;
    char *const made = is_ready ? NULL : json_text(tell_file(options, task, outcome));
    cJSON *const o = cJSON_CreateObject();
    add_truth(o, "deletable", ok && outcome->is_judged, !outcome->kept && !outcome->removed);
    if (options->archive.removes) add_truth(o, "removed", true, outcome->removed);
    if (options->archive.removes) add_text(o, "kept", outcome->kept);
    add_text(o, "error", ok ? NULL : outcome->error.text);
    add_number(o, "exit", true, outcome->status);
    add_number(o, "at", true, seconds_since_1970());
    print_json_joined(is_ready ? outcome->line : made, o);
    free(made);
}

const struct tsr_window_loss *worst_window(const struct tsr_report *r)
{
    const struct tsr_window_loss *worst = NULL;
    for (uint32_t w = 0; w < r->windows; w++)
        if (r->window[w].is_judged && (!worst || r->window[w].psnr_db < worst->psnr_db)) worst = &r->window[w];
    return worst;
}

bool has_ssim(double ssim)
{
    return ssim > -1;
}

double least_ssim(const struct tsr_report *r)
{
    double least = -1;
    for (uint32_t w = 0; w < r->windows; w++)
        if (r->window[w].is_judged && has_ssim(r->window[w].ssim) && (!has_ssim(least) || r->window[w].ssim < least))
            least = r->window[w].ssim;
    return has_ssim(least) ? least : r->ssim;
}

bool is_poor(const struct tsr_report *r)
{
    const struct tsr_window_loss *const worst = worst_window(r);
    return (worst && worst->psnr_db < least_window()) ||
           (r->windows_left_out > 0 && r->left_out_psnr_db < least_window());
}

bool is_over_ratio(const struct tsr_report *r)
{
    return r->ratio_limit > 0 && r->pixel_bytes > r->ratio_limit * r->payload_bytes;
}

bool is_own_range(const struct tsr_image *image, uint32_t range)
{
    return image->bits_stored <= 16 && range != ((uint32_t)1 << image->bits_stored) - 1;
}

static void print_loss(const struct options *options, const struct tsr_report *r)
{
    if (r->psnr_db < 0) return;
    if (options->verb == VERB_COMPRESS && has_qp(&r->coding)) talk("  QP %.3f", r->coding.qp_eighths / 8.0);
    talk("  %.2f dB", r->psnr_db);
    if (is_own_range(&r->image, r->range)) talk(" of a range of %u", r->range);
    talk(", max error %lld", (long long)r->max_error);
    const struct tsr_window_loss *const worst = worst_window(r);
    if (worst && isfinite(worst->psnr_db))
        talk(", %.2f dB in window %g/%g", worst->psnr_db, worst->center, worst->width);
    if (has_ssim(least_ssim(r))) talk(", SSIM %.4f", least_ssim(r));
    if (is_over_ratio(r)) talk(", above the %u to 1 published for %s", r->ratio_limit, shown(r->modality));
    if (r->windows_left_out > 0)
        talk(", %u other window%s not told", r->windows_left_out, r->windows_left_out == 1 ? " is" : "s are");
    if (r->windows_left_out > 0 && isfinite(r->left_out_psnr_db))
        talk(" (at least %.2f dB in each frame)", r->left_out_psnr_db);
    if (r->windows_note[0]) talk(", %s", r->windows_note);
}

static void print_file_line(const struct options *options, const struct task *task, const struct outcome *outcome)
{
    const struct tsr_report *r = &outcome->report;
    const bool compresses = options->verb == VERB_COMPRESS;
    if (options->verb == VERB_TEST || options->verb == VERB_VERIFY) {
        talk("ok %s%s%s", shown_bare(task->input), task->member ? ": " : "",
             task->member ? shown_bare(task->member) : "");
        if (options->verb == VERB_VERIFY) talk(" = %s", shown_bare(task->original));
        if (options->verb == VERB_VERIFY && r->promise != TSR_PROMISE_FILE)
            talk("  %s", r->promise == TSR_PROMISE_LOSSY ? "lossy" : "same samples");
        if (r->damage[0]) talk("  the original looks damaged: %s", shown(r->damage));
        talk("\n");
        return;
    }
    if (options->series.path)
        talk("%s -> %s: %s", shown_bare(task->input), shown(options->series.path), shown_bare(task->member));
    else
        talk("%s%s%s -> %s", shown_bare(task->input), task->member ? ": " : "",
             task->member ? shown_bare(task->member) : "", task->to_stdout ? "stdout" : shown_bare(task->output));
    talk("  %llu -> %llu bytes", (unsigned long long)r->bytes_in, (unsigned long long)r->bytes_out);
    if (r->bytes_out > 0 && compresses) talk("  %.3f", (double)r->bytes_in / (double)r->bytes_out);
    if (r->has_image && compresses)
        talk("  %.3f bits/sample  %s, %s", 8.0 * (double)r->payload_bytes / (double)r->samples,
             tsr_path_name(r->coding.path), tsr_coder_name(r->coding.coder));
    print_loss(options, r);
    if (r->base_bytes > 0 && compresses) talk("  base of %llu bytes", (unsigned long long)r->base_bytes);
    if (r->base_bytes > 0 && r->base_max_error >= 0 && compresses)
        talk(", %.2f dB, largest error %lld", r->base_psnr_db, (long long)r->base_max_error);
    if (r->exact.samples > 0)
        talk("  exact: %llu samples in %u,%u,%u,%u", (unsigned long long)r->exact.samples, r->exact.box.column,
             r->exact.box.row, r->exact.box.columns, r->exact.box.rows);
    if (r->tries > 0) talk(", found in %d tries", r->tries);
    if (options->verb == VERB_EXPORT) talk("  %s", export_word(options->to.syntax));
    if (options->verb == VERB_DECOMPRESS && !options->picture.is_region && r->promise != TSR_PROMISE_FILE)
        talk("  %s", r->promise == TSR_PROMISE_LOSSY ? "lossy" : "same samples, new file");
    if (!r->has_image && r->files == 0)
        talk("  %s: %s", is_stored(r) ? tsr_way_name(r->way) : "coded, but not as samples", shown(r->reason));
    else if (r->reason[0])
        talk("  %s", shown(r->reason));
    if (r->fallback[0]) talk("  by the CPU engine: %s", r->fallback);
    if (r->damage[0]) talk("  the original looks damaged: %s", shown(r->damage));
    if (outcome->removed) talk("  original removed");
    char *const referrers = say_referrers(task, outcome, true);
    if (referrers) talk("  %s", shown(referrers));
    free(referrers);
    talk("\n");
}

void report_file(const struct options *options, const struct task *task, const struct outcome *outcome)
{
    add_to_summary(options, task, outcome);
    add_evidence(options, task, outcome);
    if (options->talk.json)
        print_file_json(options, task, outcome);
    else if (outcome->status == TSR_OK && options->talk.verbosity > 0 && !outcome->is_current)
        print_file_line(options, task, outcome);
    if (outcome->status != TSR_OK) say_failure(outcome);
    fflush(stdout);
}

/* The names of a shard's files: so it is known which of them a run that was killed has not reported. */
void report_plan(const struct options *options, const struct task_list *list)
{
    if (!options->talk.json || options->in.shards == 0) return;
    cJSON *const o = cJSON_CreateObject();
    cJSON_AddBoolToObject(o, "plan", true);
    add_text(o, "verb", verb_name(options->verb));
    add_number(o, "shard", true, options->in.shard);
    add_number(o, "shards", true, options->in.shards);
    add_number(o, "files_in_set", true, (double)list->in_set);
    cJSON *const planned = cJSON_AddArrayToObject(o, "planned");
    for (size_t i = 0; i < list->count; i++) {
        cJSON *const one = cJSON_CreateObject();
        add_name(one, "file", list->tasks[i].input);
        if (list->tasks[i].member) add_name(one, "member", list->tasks[i].member);
        cJSON_AddItemToArray(planned, one);
    }
    print_json_line(o);
}

void report_skipped(const struct options *options, const struct task_list *list)
{
    for (size_t i = 0; i < list->skipped_count && options->talk.json; i++) {
        cJSON *o = cJSON_CreateObject();
        add_name(o, "file", list->skipped[i].path);
        add_text(o, "status", "skipped");
        add_text(o, "reason", list->skipped[i].reason);
        add_number(o, "at", true, seconds_since_1970());
        print_json_line(o);
    }
}
