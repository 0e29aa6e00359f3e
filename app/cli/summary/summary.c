/* What a run as a whole came to: added up file by file, and said at its end. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/cli/cli.h"
#include "app/cli/json.h"
#include "notes.h"
#include "hints.h"
#include "originals.h"

/* The losses of files of one depth: errors of different depths are not comparable. */
struct loss {
    size_t files;
    int64_t max_error;
    double least_psnr_db;
};

/* Files that are coded, or those that are stored. */
struct way {
    size_t files;
    uint64_t bytes_in, bytes_out;
};

enum { DEPTHS = 33 };

struct totals {
    size_t done, failed, lossy, identical, same_samples, unverified, fallbacks, from_disk, current, removed;
    size_t damaged;  /* originals that look so */
    size_t kept;     /* other originals that --rm has left */
    size_t compared; /* with the originals */
    size_t gone;     /* current, and removed by an earlier run */
    struct way ways[TSR_WAY_STORED + 1];
    const char *engine; /* of all files, "mixed", or NULL */
    const char *verified_by;
    uint64_t bytes_in, bytes_out, pixel_bytes, payload_bytes, samples;
    double encode_s, verify_s, read_s, write_s, wait_s;
    struct loss loss[DEPTHS];
    struct tsr_window_loss window; /* the worst one that was judged, and its file */
    size_t referred;               /* lossy files that others of the set refer to */
    size_t windowed, poor;         /* files with judged windows; of these, those with one below the least */
    char window_of[256];
    bool has_ssim;
    double ssim;       /* the least of the files' */
    size_t over_ratio; /* files above the published ratio of their modality; the worst one: */
    double worst_excess, worst_ratio;
    uint32_t ratio_limit;
    char modality[20], ratio_of[256];
};

static struct totals totals;

/* ---- Adding up -------------------------------------------------------------------------------------------- */

double least_window(void)
{
    return tsr_quality_floor(TSR_QUALITY_WEB) / 100.0;
}

static void add_window(const struct task *task, const struct tsr_report *r)
{
    const struct tsr_window_loss *const worst = worst_window(r);
    totals.poor += is_poor(r);
    if (!worst) return;
    if (totals.windowed == 0 || worst->psnr_db < totals.window.psnr_db) {
        totals.window = *worst;
        snprintf(totals.window_of, sizeof totals.window_of, "%s", task->input);
    }
    totals.windowed++;
}

static void add_ratio(const struct task *task, const struct tsr_report *r)
{
    if (!is_over_ratio(r)) return;
    const double ratio = (double)r->pixel_bytes / (double)r->payload_bytes, excess = ratio / r->ratio_limit;
    totals.over_ratio++;
    if (excess <= totals.worst_excess) return;
    totals.worst_excess = excess;
    totals.worst_ratio = ratio;
    totals.ratio_limit = r->ratio_limit;
    snprintf(totals.modality, sizeof totals.modality, "%s", r->modality);
    snprintf(totals.ratio_of, sizeof totals.ratio_of, "%s", task->input);
}

static void add_loss(const struct tsr_report *r)
{
    struct loss *const loss = &totals.loss[r->image.bits_stored < DEPTHS ? r->image.bits_stored : 0];
    if (loss->files == 0 || r->psnr_db < loss->least_psnr_db) loss->least_psnr_db = r->psnr_db;
    if (loss->files == 0 || r->max_error > loss->max_error) loss->max_error = r->max_error;
    const double ssim = least_ssim(r);
    if (has_ssim(ssim) && (!totals.has_ssim || ssim < totals.ssim)) totals.ssim = ssim;
    totals.has_ssim |= has_ssim(ssim);
    loss->files++;
}

static const char *add_name_of(const char *known, const char *name)
{
    return !name ? known : !known || strcmp(known, name) == 0 ? name : "mixed";
}

static void add_way(const struct tsr_report *r)
{
    struct way *const way = &totals.ways[r->way];
    way->files++;
    way->bytes_in += r->bytes_in;
    way->bytes_out += r->bytes_out;
}

static void add_report(const struct tsr_report *r)
{
    add_way(r);
    totals.from_disk += r->read_from_disk;
    totals.fallbacks += r->fallback[0] != '\0';
    totals.engine = add_name_of(totals.engine, r->engine);
    totals.verified_by = add_name_of(totals.verified_by, r->verified_by);
    totals.unverified += !r->verified;
    if (r->promise == TSR_PROMISE_LOSSY) {
        totals.lossy++;
        add_loss(r);
    } else if (r->promise == TSR_PROMISE_FILE) {
        totals.identical++;
    } else {
        totals.same_samples++;
    }
    totals.bytes_in += r->bytes_in;
    totals.bytes_out += r->bytes_out;
    totals.pixel_bytes += r->pixel_bytes;
    if (r->has_image) totals.payload_bytes += r->payload_bytes;
    totals.samples += r->samples;
    totals.read_s += r->read_s;
    totals.write_s += r->write_s;
    totals.wait_s += r->wait_s;
    if (r->encode_s > 0) totals.encode_s += r->encode_s;
    if (r->verify_s > 0) totals.verify_s += r->verify_s;
}

size_t unproven_files(void)
{
    return totals.unverified;
}

size_t damaged_files(void)
{
    return totals.damaged;
}

size_t kept_files(void)
{
    return totals.kept;
}

void add_to_summary(const struct options *options, const struct task *task, const struct outcome *outcome)
{
    const struct tsr_report *const r = &outcome->report;
    if (outcome->status != TSR_OK) {
        totals.failed++;
        return;
    }
    totals.removed += outcome->removed;
    totals.kept += options->archive.removes && outcome->kept && !r->damage[0];
    add_original(outcome);
    totals.compared += outcome->is_compared;
    totals.gone += outcome->is_gone;
    if (r->damage[0]) add_note(NOTE_DAMAGED, task->member ? task->member : task->input, r->damage);
    totals.damaged += r->damage[0] != '\0';
    if (options->archive.removes && outcome->kept) add_note(NOTE_KEPT, task->input, outcome->kept);
    char *const referrers = say_referrers(task, outcome, true);
    if (referrers) add_note(NOTE_REFERRED, task->input, referrers);
    totals.referred += referrers != NULL;
    free(referrers);
    if (outcome->is_current) {
        totals.current++;
        return;
    }
    totals.done++;
    add_window(task, r);
    add_ratio(task, r);
    add_report(r);
    if (r->reason[0])
        add_note(options->verb == VERB_EXPORT ? NOTE_LEFT_OUT
                 : r->has_image               ? NOTE_EXCEPTION
                 : is_stored(r)               ? NOTE_STORED
                 : r->files > 0               ? NOTE_ARCHIVE
                                              : NOTE_CODED,
                 task->input, r->reason);
    if (r->fallback[0]) add_note(NOTE_FALLBACK, task->input, r->fallback);
}

/* ---- JSON ------------------------------------------------------------------------------------------------- */

/* Seconds of callers' threads and of the GPUs' streams, one way. */
static void add_gpu_times(cJSON *o, const char *way, const struct tsr_gpu_times *times)
{
    const struct {
        const char *name;
        double value;
    } fields[] = {{"copy_s", 1e-9 * (double)times->copy_ns},
                  {"wait_s", 1e-9 * (double)times->wait_ns},
                  {"transfer_s", 1e-9 * (double)times->transfer_ns},
                  {"kernel_s", 1e-9 * (double)times->kernel_ns},
                  {"batches", (double)times->batches},
                  {"batch_frames", (double)times->frames}};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s_%s", way, fields[i].name);
        add_number(o, name, times->batches > 0, fields[i].value);
    }
}

/* By depth; and for a set of one depth as fields of the summary. */
static void add_losses(cJSON *o)
{
    size_t depths = 0;
    const struct loss *only = NULL;
    cJSON *const list = cJSON_AddArrayToObject(o, "loss");
    for (int bits = 0; bits < DEPTHS; bits++) {
        const struct loss *const loss = &totals.loss[bits];
        if (loss->files == 0) continue;
        cJSON *const one = cJSON_CreateObject();
        cJSON_AddNumberToObject(one, "bits", bits);
        cJSON_AddNumberToObject(one, "files", (double)loss->files);
        cJSON_AddNumberToObject(one, "max_error", (double)loss->max_error);
        add_number(one, "least_psnr_db", true, loss->least_psnr_db);
        cJSON_AddItemToArray(list, one);
        only = loss;
        depths++;
    }
    add_number(o, "max_error", depths == 1, only ? (double)only->max_error : 0);
    add_number(o, "least_psnr_db", depths == 1, only ? only->least_psnr_db : 0);
    add_number(o, "least_window_db", totals.windowed > 0 && isfinite(totals.window.psnr_db), totals.window.psnr_db);
    add_number(o, "poor_windows", true, (double)totals.poor);
    add_number(o, "referred", true, (double)totals.referred);
    add_number(o, "least_ssim", totals.has_ssim, totals.ssim);
    add_number(o, "over_ratio", true, (double)totals.over_ratio);
}

static void add_options(cJSON *o, const struct options *options, bool coded)
{
    struct tsr_coding coding = {0};
    coding.path = options->coding.compress.path;
    coding.coder = options->coding.compress.coder;
    coding.effort = options->coding.compress.effort;
    tsr_resolve_coding(&coding, NULL);
    const bool compress = options->verb == VERB_COMPRESS;
    add_text(o, "path", compress && coded ? tsr_path_name(coding.path) : NULL);
    add_text(o, "coder", compress && coded ? tsr_coder_name(coding.coder) : NULL);
    add_number(o, "effort", compress && coded, coding.effort);
}

static void add_counts(cJSON *o, const struct options *options, const struct task_list *list, const struct tally *tally)
{
    const struct totals *const t = &totals;
    add_number(o, "files", true, (double)(t->done + t->failed + t->current));
    add_number(o, "failed", true, (double)t->failed);
    add_number(o, "current", options->archive.update != UPDATE_OFF, (double)t->current);
    add_number(o, "compared", options->archive.update != UPDATE_OFF || options->verb == VERB_VERIFY,
               (double)t->compared);
    for (int i = TSR_WAY_CODED; i <= TSR_WAY_STORED; i++) {
        char name[32];
        const struct way *const way = &t->ways[i];
        const char *const word = tsr_way_name((enum tsr_way)i);
        add_number(o, word, true, (double)way->files);
        snprintf(name, sizeof name, "%s_bytes_in", word);
        add_number(o, name, true, (double)way->bytes_in);
        snprintf(name, sizeof name, "%s_bytes_out", word);
        add_number(o, name, true, (double)way->bytes_out);
    }
    add_number(o, "identical", true, (double)t->identical);
    add_number(o, "same_samples", true, (double)t->same_samples);
    add_number(o, "lossy", true, (double)t->lossy);
    add_number(o, "unverified", true, (double)t->unverified);
    add_number(o, "damaged", true, (double)t->damaged);
    add_number(o, "deletable", judges_originals(options, tally), (double)deletable_originals());
    add_number(o, "removed", options->archive.removes, (double)t->removed);
    add_number(o, "kept", options->archive.removes, (double)t->kept);
    add_number(o, "skipped", true, (double)list->skipped_count);
    add_number(o, "skipped_tsr", true, (double)list->tsr_files);
    add_number(o, "other_files", true, (double)list->others);
    add_number(o, "excluded", true, (double)list->excluded);
    add_number(o, "shard", options->in.shards > 0, options->in.shard);
    add_number(o, "shards", options->in.shards > 0, options->in.shards);
    add_number(o, "files_in_set", true, (double)list->in_set);
}

/* sentence: why the run did not begin, or NULL. */
static void print_json(const struct options *options, const struct task_list *list, const struct run_times *times,
                       const struct tally *tally, const char *sentence)
{
    const struct totals *const t = &totals;
    const bool coded = t->samples > 0, compress = options->verb == VERB_COMPRESS;
    cJSON *o = cJSON_CreateObject();
    cJSON_AddBoolToObject(o, "summary", true);
    add_text(o, "verb", verb_name(options->verb));
    add_text(o, "verdict", verdict_name(judge(tally)));
    add_text(o, "status", judge(tally) == VERDICT_FAIL ? "failed" : "ok");
    add_number(o, "exit", true, verdict_status(tally));
    add_text(o, "error", sentence);
    add_counts(o, options, list, tally);
    add_number(o, "left", true, (double)tally->left);
    add_number(o, "not_taken", true, (double)tally->not_taken);
    add_number(o, "bytes_in", true, (double)t->bytes_in);
    add_number(o, "bytes_out", true, (double)t->bytes_out);
    add_number(o, "pixel_bytes", coded, (double)t->pixel_bytes);
    add_number(o, "payload_bytes", coded, (double)t->payload_bytes);
    add_number(o, "ratio", t->bytes_out > 0, (double)t->bytes_in / (double)t->bytes_out);
    add_number(o, "bits_per_sample", coded, 8.0 * (double)t->payload_bytes / (double)t->samples);
    cJSON_AddBoolToObject(o, "lossless", t->lossy == 0);
    add_options(o, options, coded);
    add_text(o, "engine", t->engine);
    add_number(o, "fallbacks", compress, (double)t->fallbacks);
    add_number(o, "encode_s", compress, t->encode_s);
    add_number(o, "verify_s", t->unverified < t->done, t->verify_s);
    add_text(o, "verified_by", t->verified_by);
    add_number(o, "read_s", true, t->read_s);
    add_number(o, "write_s", true, t->write_s);
    add_number(o, "wait_s", true, t->wait_s);
    add_gpu_times(o, "encode", &times->gpu.encode);
    add_gpu_times(o, "decode", &times->gpu.decode);
    add_losses(o);
    add_number(o, "start_s", true, times->start_s);
    add_number(o, "wall_s", true, times->wall_s);
    print_json_line(o);
}

/* ---- Lines ------------------------------------------------------------------------------------------------ */

/* What is not in the totals, in lists before them. */
static void print_lists(const struct options *options, const struct task_list *list)
{
    bool has_link = false;
    for (size_t i = 0; i < list->skipped_count; i++) {
        add_note(NOTE_NOT_TAKEN, list->skipped[i].path, list->skipped[i].reason);
        has_link |= strcmp(list->skipped[i].reason, "symbolic link") == 0;
    }
    print_notes(options);
    if (has_link) talk("  --dereference follows symbolic links\n");
    if (list->tsr_files > 0) talk("  %zu .tsr file%s left as they are\n", list->tsr_files, plural(list->tsr_files));
    if (list->others > 0 && options->talk.verbosity > 0)
        talk("  %zu other file%s not looked at\n", list->others, plural(list->others));
    if (list->unfinished > 0)
        talk("  %zu unfinished output%s of another run\n", list->unfinished, plural(list->unfinished));
}

/* Where what was written came from when it was verified: the system may hold files in memory. */
static const char *read_back_from(void)
{
    static char mixed[120];
    if (totals.from_disk == totals.done) return "from the disk";
    if (totals.from_disk == 0) return "through the system's memory, not from a disk";
    snprintf(mixed, sizeof mixed, "(%zu from the disk, %zu through the system's memory)", totals.from_disk,
             totals.done - totals.from_disk);
    return mixed;
}

/* "2 the same file, 1 the same samples in a new file, 3 lossy" */
static void print_kinds(void)
{
    const char *comma = "";
    if (totals.identical > 0) {
        talk("%zu the same file", totals.identical);
        comma = ", ";
    }
    if (totals.same_samples > 0) {
        talk("%s%zu the same samples in a new file", comma, totals.same_samples);
        comma = ", ";
    }
    if (totals.lossy > 0) talk("%s%zu lossy", comma, totals.lossy);
    talk("\n");
}

static void print_ratios(void)
{
    const struct totals *const t = &totals;
    if (t->over_ratio > 0)
        talk("  WARNING: %s (%s) is compressed %.1f to 1, above %u to 1, the published limit for %s",
             shown(t->ratio_of), shown(t->modality), t->worst_ratio, t->ratio_limit, shown(t->modality));
    if (t->over_ratio > 1)
        talk("; %zu more file%s above that of %s modality", t->over_ratio - 1, t->over_ratio == 2 ? " is" : "s are",
             t->over_ratio == 2 ? "its" : "their");
    if (t->over_ratio > 0) talk("\n");
}

static void print_windows(void)
{
    const struct tsr_window_loss *const worst = &totals.window;
    if (totals.windowed == 0 || !isfinite(worst->psnr_db)) return;
    talk("  in windows: at least %.2f dB (RMSE %.3g), in %g/%g of %s\n", worst->psnr_db, worst->rmse, worst->center,
         worst->width, shown(totals.window_of));
    if (totals.poor > 0)
        talk("  WARNING: %zu file%s less than %.0f dB in a window, which is seen; --quality or --max-error bounds "
             "that\n",
             totals.poor, totals.poor == 1 ? " has" : "s have", least_window());
}

static void print_losses(void)
{
    for (int bits = 0; bits < DEPTHS; bits++) {
        const struct loss *const loss = &totals.loss[bits];
        if (loss->files == 0) continue;
        talk("  %zu lossy of %d bits: largest error %lld, PSNR at least %.2f dB\n", loss->files, bits,
             (long long)loss->max_error, loss->least_psnr_db);
    }
}

/* "all" is said where every name of the set came to a file that this run has proven. */
static bool proves_all(const struct options *options, const struct tally *tally)
{
    const bool has_old = options->verb == VERB_COMPRESS && totals.current > totals.compared + totals.gone;
    return judge(tally) == VERDICT_PASS && tally->not_taken == 0 && !has_old;
}

static void print_proof(const struct options *options, const struct tally *tally)
{
    if (totals.unverified > 0) {
        talk("  NOT VERIFIED: %zu file%s, nothing proves what comes back\n", totals.unverified,
             plural(totals.unverified));
        return;
    }
    const bool by_gpu = totals.verified_by && strcmp(totals.verified_by, "cpu") != 0;
    talk("  %sproven%s, read back %s; what comes back: ", proves_all(options, tally) ? "all " : "",
         by_gpu ? " by the GPU" : "", read_back_from());
    print_kinds();
}

/* Files that --update has found done, and what is known of them. */
static void print_current(const struct options *options)
{
    const struct totals *const t = &totals;
    const size_t rest = t->current - t->compared - t->gone;
    if (t->current == 0) return;
    talk("%s%zu file%s done before\n", t->done > 0 ? "  " : "", t->current, plural(t->current));
    if (t->compared > 0)
        talk("    %zu compared with %s again\n", t->compared, t->compared == 1 ? "its .tsr" : "their .tsr files");
    if (t->gone > 0) talk("    %zu removed by an earlier run; their .tsr files were decoded again\n", t->gone);
    if (rest > 0)
        talk("    %zu by %s; test and verify decode them\n", rest,
             options->archive.update == UPDATE_BY_HASH ? "size and hash" : "size and time");
}

/* "6 coded (792192 -> 203374 bytes), 1 stored (100000 -> 65 bytes)" */
static void print_ways(void)
{
    const char *comma = "  ";
    for (int i = TSR_WAY_CODED; i <= TSR_WAY_STORED; i++) {
        const struct way *const way = &totals.ways[i];
        if (way->files == 0) continue;
        talk("%s%zu %s (%llu -> %llu bytes)", comma, way->files, tsr_way_name((enum tsr_way)i),
             (unsigned long long)way->bytes_in, (unsigned long long)way->bytes_out);
        comma = ", ";
    }
    talk("\n");
}

static void print_originals(const struct options *options, const struct task_list *list, const struct tally *tally)
{
    char text[ORIGINALS_ROOM];
    say_originals(options, list, tally, text);
    if (text[0]) talk("  %s\n", text);
}

static void print_compress(const struct options *options, const struct task_list *list, const struct tally *tally,
                           double wall_s)
{
    const struct totals *const t = &totals;
    if (t->done > 0) {
        talk("%zu file%s, %llu -> %llu bytes, ratio %.3f", t->done, plural(t->done), (unsigned long long)t->bytes_in,
             (unsigned long long)t->bytes_out, (double)t->bytes_in / (double)t->bytes_out);
        if (t->samples > 0) talk(", pixels %.3f bits/sample", 8.0 * (double)t->payload_bytes / (double)t->samples);
        talk(", %.1f s\n", wall_s);
        print_ways();
        print_proof(options, tally);
        print_losses();
        print_windows();
        print_ratios();
    }
    print_current(options);
    print_originals(options, list, tally);
    if (options->archive.removes) talk("  %zu original%s removed\n", t->removed, plural(t->removed));
}

static void print_restored(const struct options *options, double wall_s)
{
    const struct totals *const t = &totals;
    if (t->done == 0) return;
    if (options->picture.is_region) {
        talk("a region of %zu file%s, %llu bytes, %.1f s\n", t->done, plural(t->done), (unsigned long long)t->bytes_out,
             wall_s);
        return;
    }
    talk("%zu file%s restored, %llu -> %llu bytes, %.1f s\n", t->done, plural(t->done), (unsigned long long)t->bytes_in,
         (unsigned long long)t->bytes_out, wall_s);
    talk("  what came back: ");
    print_kinds();
}

static void print_totals(const struct options *options, const struct task_list *list, const struct tally *tally,
                         double wall_s)
{
    const struct totals *const t = &totals;
    switch (options->verb) {
    case VERB_COMPRESS:
        print_compress(options, list, tally, wall_s);
        return;
    case VERB_DECOMPRESS:
        print_restored(options, wall_s);
        print_current(options);
        if (options->picture.is_region) return;
        break;
    case VERB_EXPORT:
        talk("%zu file%s exported to %s, %llu -> %llu bytes, %.1f s\n", t->done, plural(t->done),
             export_word(options->to.syntax), (unsigned long long)t->bytes_in, (unsigned long long)t->bytes_out,
             wall_s);
        break;
    case VERB_VERIFY:
        talk("%zu file%s compared with the originals, %.1f s\n", t->done, plural(t->done), wall_s);
        talk("  %swhat comes back: ", proves_all(options, tally) ? "all proven; " : "");
        print_kinds();
        print_losses();
        print_originals(options, list, tally);
        return;
    default:
        if (judge(tally) == VERDICT_FAIL)
            talk("%zu of %zu files tested: their checksums hold, %.1f s\n", t->done, t->done + t->failed, wall_s);
        else
            talk("%zu file%s tested, all checksums hold, %.1f s\n", t->done, plural(t->done), wall_s);
        if (options->sample.share > 0) talk("  a sample: %zu of %zu files\n", t->done + t->failed, list->in_set);
        return;
    }
    print_losses();
}

/* The last line: nothing scrolls it away. Where one file, or the command, is all that failed, its sentence is enough.
 */
static void print_verdict(const struct tally *tally)
{
    char text[VERDICT_ROOM];
    const bool is_only = tally->files == 1 && tally->failed == 1;
    if (is_only || (tally->files == 0 && tally->ended != TSR_OK && tally->ended != TSR_ERROR_NO_INPUT)) return;
    say_verdict(tally, text);
    talk("%s\n", text);
}

void report_summary(const struct options *options, const struct task_list *list, const struct run_times *times,
                    const struct tally *tally)
{
    totals.bytes_out += list->shared_bytes;
    report_skipped(options, list);
    if (options->talk.json) {
        print_json(options, list, times, tally, NULL);
    } else if (options->talk.verbosity >= 0) {
        print_lists(options, list);
        hint_at_series(options, list);
        if (totals.done + totals.current > 0) print_totals(options, list, tally, times->wall_s);
        print_verdict(tally);
    }
    fflush(stdout);
    free_notes();
    forget_originals();
    memset(&totals, 0, sizeof totals);
}

void report_unbegun(const struct options *options, const struct task_list *list, const struct tally *tally,
                    const char *sentence)
{
    const struct run_times none = {0};
    report_skipped(options, list);
    if (options->talk.json) {
        print_json(options, list, &none, tally, sentence);
    } else if (options->talk.verbosity >= 0) {
        print_lists(options, list);
        print_verdict(tally);
    }
    fflush(stdout);
    free_notes();
}
