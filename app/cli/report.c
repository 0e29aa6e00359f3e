/* What the verbs say of each file, and of all of them: lines for people, JSON for programs. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* Control characters of the terminal's are written as escapes: ASCII's, and those that UTF-8 has as C2 80 .. C2 9F. */
static size_t show_byte(const unsigned char *text, char *out)
{
    const bool is_pair = text[0] == 0xc2 && text[1] >= 0x80 && text[1] <= 0x9f;
    if (text[0] >= ' ' && text[0] != 127 && !is_pair) {
        out[0] = (char)text[0];
        return 1;
    }
    return text[0] == '\n' ? (size_t)snprintf(out, 5, "\\n") : (size_t)snprintf(out, 5, "\\x%02x", text[0]);
}

const char *shown(const char *text)
{
    enum { SHOWN = 4, ROOM = 4 * 4096 + 8 };
    static _Thread_local char room[SHOWN][ROOM];
    static _Thread_local int next;
    char *const out = room[next = (next + 1) % SHOWN];
    size_t used = 0;
    for (; *text && used + 5 < ROOM; text++) used += show_byte((const unsigned char *)text, out + used);
    out[used] = '\0';
    return out;
}

void say_error(const struct tsr_error *error)
{
    fprintf(stderr, "tessera: %s", shown(error->text));
    if (error->offset != TSR_NO_OFFSET) fprintf(stderr, " (byte %llu)", (unsigned long long)error->offset);
    fprintf(stderr, "\n");
}

/* A number, or null where it does not apply. */
static void add_number(cJSON *object, const char *name, bool applies, double value)
{
    if (applies && isfinite(value))
        cJSON_AddNumberToObject(object, name, value);
    else
        cJSON_AddNullToObject(object, name);
}

static void add_text(cJSON *object, const char *name, const char *value)
{
    if (value && value[0])
        cJSON_AddStringToObject(object, name, value);
    else
        cJSON_AddNullToObject(object, name);
}

/* Bytes of the UTF-8 character at text, 0 if there is none. */
static size_t character_bytes(const unsigned char *text)
{
    const size_t size = text[0] < 0x80   ? 1
                        : text[0] < 0xc2 ? 0
                        : text[0] < 0xe0 ? 2
                        : text[0] < 0xf0 ? 3
                        : text[0] < 0xf5 ? 4
                                         : 0;
    for (size_t i = 1; i < size; i++)
        if ((text[i] & 0xc0) != 0x80) return 0;
    return size;
}

void print_json_line(cJSON *object)
{
    char *text = object ? cJSON_PrintUnformatted(object) : NULL;
    /* Names of files need not be UTF-8, JSON does. */
    for (const char *at = text; at && *at;) {
        size_t good = 0, size;
        while (at[good] && (size = character_bytes((const unsigned char *)at + good)) > 0) good += size;
        fwrite(at, 1, good, stdout);
        at += good;
        if (*at) {
            fputs("\\ufffd", stdout);
            at++;
        }
    }
    if (text) putchar('\n');
    fflush(stdout);
    cJSON_free(text);
    cJSON_Delete(object);
}

static const char *status_word(const struct outcome *outcome)
{
    return outcome->status != TSR_OK ? "failed" : outcome->report.verbatim ? "verbatim" : "ok";
}

bool has_qp(const struct tsr_coding *coding)
{
    return coding->lossy && coding->path == TSR_PATH_TRANSFORM;
}

static void print_file_json(const struct options *options, const struct task *task, const struct outcome *outcome)
{
    const struct tsr_file_report *r = &outcome->report;
    const bool ok = outcome->status == TSR_OK, coded = ok && !r->verbatim;
    cJSON *o = cJSON_CreateObject();
    add_text(o, "file", task->input);
    if (task->member) add_text(o, "member", task->member);
    add_text(o, "output", ok ? options->series ? options->series : task->output : NULL);
    add_text(o, "status", status_word(outcome));
    add_text(o, "kind", ok ? tsr_kind_name(r->kind) : NULL);
    add_number(o, "bytes_in", ok, (double)r->bytes_in);
    add_number(o, "bytes_out", ok, (double)r->bytes_out);
    add_number(o, "pixel_bytes", coded, (double)r->pixel_bytes);
    add_number(o, "payload_bytes", coded, (double)r->payload_bytes);
    add_number(o, "ratio", ok && r->bytes_out > 0, (double)r->bytes_in / (double)r->bytes_out);
    add_number(o, "bits_per_sample", coded, 8.0 * (double)r->payload_bytes / (double)r->samples);
    if (ok)
        cJSON_AddBoolToObject(o, "lossless", r->lossless);
    else
        cJSON_AddNullToObject(o, "lossless");
    add_text(o, "path", coded ? tsr_path_name(r->coding.path) : NULL);
    add_text(o, "coder", coded ? tsr_coder_name(r->coding.coder) : NULL);
    add_number(o, "effort", coded && r->coding.effort > 0, r->coding.effort);
    add_number(o, "qp", coded && has_qp(&r->coding), r->coding.qp_eighths / 8.0);
    add_text(o, "engine", ok ? r->engine : NULL);
    add_text(o, "fallback", ok && r->fallback[0] ? r->fallback : NULL);
    add_text(o, "verified_by", ok ? r->verified_by : NULL);
    if (options->verb == VERB_COMPRESS)
        add_text(o, "read_back", ok && r->verified ? r->read_from_disk ? "disk" : "memory" : NULL);
    add_number(o, "encode_s", ok && r->encode_s >= 0, r->encode_s);
    add_number(o, "verify_s", ok && r->verify_s >= 0, r->verify_s);
    add_number(o, "psnr_db", ok && r->psnr_db >= 0, r->psnr_db);
    add_number(o, "max_error", ok && r->max_error >= 0, (double)r->max_error);
    add_number(o, "tries", ok && r->tries > 0, r->tries);
    add_text(o, "error", ok ? r->reason : outcome->error.text);
    add_number(o, "exit", true, outcome->status);
    print_json_line(o);
}

static void print_file_line(const struct options *options, const struct task *task, const struct outcome *outcome)
{
    const struct tsr_file_report *r = &outcome->report;
    if (options->verb == VERB_TEST) {
        printf("ok %s%s%s\n", shown(task->input), task->member ? ": " : "", task->member ? shown(task->member) : "");
        return;
    }
    if (options->series)
        printf("%s -> %s: %s", shown(task->input), shown(options->series), shown(task->member));
    else
        printf("%s%s%s -> %s", shown(task->input), task->member ? ": " : "", task->member ? shown(task->member) : "",
               shown(task->output));
    printf("  %llu -> %llu bytes", (unsigned long long)r->bytes_in, (unsigned long long)r->bytes_out);
    if (r->bytes_out > 0 && options->verb == VERB_COMPRESS)
        printf("  %.3f", (double)r->bytes_in / (double)r->bytes_out);
    if (!r->verbatim && options->verb == VERB_COMPRESS)
        printf("  %.3f bits/sample  %s, %s", 8.0 * (double)r->payload_bytes / (double)r->samples,
               tsr_path_name(r->coding.path), tsr_coder_name(r->coding.coder));
    if (r->psnr_db >= 0 && options->verb == VERB_COMPRESS && has_qp(&r->coding))
        printf("  QP %.3f", r->coding.qp_eighths / 8.0);
    if (r->psnr_db >= 0) printf("  %.2f dB, max error %lld", r->psnr_db, (long long)r->max_error);
    if (r->tries > 0) printf(", found in %d tries", r->tries);
    if (options->verb == VERB_DECOMPRESS && !r->identical)
        printf("  %s", r->lossless ? "pixels identical, file differs" : "lossy");
    if (r->reason[0]) printf("  %s%s", r->verbatim ? "stored as it is: " : "", shown(r->reason));
    if (r->fallback[0]) printf("  by the CPU engine: %s", r->fallback);
    printf("\n");
}

void report_file(const struct options *options, const struct task *task, const struct outcome *outcome)
{
    if (options->json)
        print_file_json(options, task, outcome);
    else if (outcome->status == TSR_OK && options->verbosity > 0)
        print_file_line(options, task, outcome);
    if (outcome->status != TSR_OK) say_error(&outcome->error);
    fflush(stdout);
}

/* ---- Summary ---------------------------------------------------------------------------------------------- */

struct totals {
    size_t files, failed, verbatim, lossy, unverified, different, fallbacks, from_disk;
    const char *engine; /* of all files, "mixed", or NULL */
    uint64_t bytes_in, bytes_out, pixel_bytes, payload_bytes, samples;
    double encode_s, verify_s, read_s, write_s, wait_s;
    int64_t max_error;
    const char *verified_by; /* as engine */
};

static struct totals add_up(const struct task_list *list, const struct outcome *outcomes)
{
    struct totals t = {0};
    t.max_error = -1;
    t.files = list->count;
    for (size_t i = 0; i < list->count; i++) {
        const struct tsr_file_report *r = &outcomes[i].report;
        if (outcomes[i].status != TSR_OK) {
            t.failed++;
            continue;
        }
        t.verbatim += r->verbatim;
        t.from_disk += r->read_from_disk;
        t.fallbacks += r->fallback[0] != '\0';
        if (r->engine) t.engine = !t.engine || strcmp(t.engine, r->engine) == 0 ? r->engine : "mixed";
        if (r->verified_by)
            t.verified_by = !t.verified_by || strcmp(t.verified_by, r->verified_by) == 0 ? r->verified_by : "mixed";
        t.read_s += r->read_s;
        t.write_s += r->write_s;
        t.wait_s += r->wait_s;
        t.lossy += !r->lossless;
        t.unverified += !r->verified;
        t.different += !r->identical;
        t.bytes_in += r->bytes_in;
        t.bytes_out += r->bytes_out;
        t.pixel_bytes += r->pixel_bytes;
        if (!r->verbatim) t.payload_bytes += r->payload_bytes;
        t.samples += r->samples;
        if (r->encode_s > 0) t.encode_s += r->encode_s;
        if (r->verify_s > 0) t.verify_s += r->verify_s;
        if (r->max_error > t.max_error) t.max_error = r->max_error;
    }
    t.bytes_out += list->shared_bytes;
    return t;
}

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

static void print_summary_json(const struct options *options, const struct totals *t, const struct run_times *times)
{
    const bool coded = t->samples > 0;
    cJSON *o = cJSON_CreateObject();
    cJSON_AddBoolToObject(o, "summary", true);
    add_text(o, "status", t->failed ? "failed" : "ok");
    add_number(o, "files", true, (double)t->files);
    add_number(o, "failed", true, (double)t->failed);
    add_number(o, "verbatim", true, (double)t->verbatim);
    add_number(o, "bytes_in", true, (double)t->bytes_in);
    add_number(o, "bytes_out", true, (double)t->bytes_out);
    add_number(o, "pixel_bytes", coded, (double)t->pixel_bytes);
    add_number(o, "payload_bytes", coded, (double)t->payload_bytes);
    add_number(o, "ratio", t->bytes_out > 0, (double)t->bytes_in / (double)t->bytes_out);
    add_number(o, "bits_per_sample", coded, 8.0 * (double)t->payload_bytes / (double)t->samples);
    cJSON_AddBoolToObject(o, "lossless", t->lossy == 0);
    const bool compress = options->verb == VERB_COMPRESS;
    struct tsr_coding coding = options->compress.coding;
    tsr_resolve_coding(&coding, NULL);
    add_text(o, "path", compress && coded ? tsr_path_name(coding.path) : NULL);
    add_text(o, "coder", compress && coded ? tsr_coder_name(coding.coder) : NULL);
    add_number(o, "effort", compress && coded, coding.effort);
    add_text(o, "engine", t->engine);
    add_number(o, "fallbacks", compress, (double)t->fallbacks);
    add_number(o, "encode_s", compress, t->encode_s);
    add_number(o, "verify_s", t->unverified < t->files, t->verify_s);
    add_text(o, "verified_by", t->verified_by);
    add_number(o, "read_s", true, t->read_s);
    add_number(o, "write_s", true, t->write_s);
    add_number(o, "wait_s", true, t->wait_s);
    add_gpu_times(o, "encode", &times->gpu.encode);
    add_gpu_times(o, "decode", &times->gpu.decode);
    add_number(o, "max_error", t->max_error >= 0, (double)t->max_error);
    add_number(o, "start_s", true, times->start_s);
    add_number(o, "wall_s", true, times->wall_s);
    print_json_line(o);
}

/* Files that were stored as they are, grouped by reason; without -v at most this many names. */
enum { NAMES_LIMIT = 40 };

static void print_verbatim(const struct options *options, const struct task_list *list, const struct outcome *outcomes)
{
    bool *is_shown = calloc(list->count, sizeof *is_shown);
    size_t names = 0, hidden = 0;
    if (!is_shown) return;
    for (size_t i = 0; i < list->count; i++) {
        const char *reason = outcomes[i].report.reason;
        if (is_shown[i] || outcomes[i].status != TSR_OK || !reason[0]) continue;
        size_t count = 0;
        for (size_t k = i; k < list->count; k++)
            count += outcomes[k].status == TSR_OK && strcmp(outcomes[k].report.reason, reason) == 0;
        printf("  %zu %s, %s:\n", count, outcomes[i].report.verbatim ? "stored as they are" : "exceptions",
               shown(reason));
        for (size_t k = i; k < list->count; k++) {
            if (outcomes[k].status != TSR_OK || strcmp(outcomes[k].report.reason, reason) != 0) continue;
            is_shown[k] = true;
            if (options->verbosity > 0 || names < NAMES_LIMIT)
                printf("    %s\n", shown(list->tasks[k].input));
            else
                hidden++;
            names++;
        }
    }
    if (hidden > 0) printf("    ... and %zu more; -v names all\n", hidden);
    free(is_shown);
}

static bool has_fallback(const struct outcome *outcome, const char *reason)
{
    return outcome->status == TSR_OK && strcmp(outcome->report.fallback, reason) == 0;
}

/* What the engine that was asked for left to the CPU engine, by reason: counted where it was demanded, or with -v. */
static void print_fallbacks(const struct options *options, const struct task_list *list, const struct outcome *outcomes)
{
    if (options->engine != TSR_ENGINE_CUDA && options->verbosity <= 0) return;
    for (size_t i = 0; i < list->count; i++) {
        const char *reason = outcomes[i].report.fallback;
        size_t first = 0, count = 0;
        if (outcomes[i].status != TSR_OK || !reason[0]) continue;
        while (!has_fallback(&outcomes[first], reason)) first++;
        if (first < i) continue; /* counted there */
        for (size_t k = i; k < list->count; k++) count += has_fallback(&outcomes[k], reason);
        printf("  %zu file%s by the CPU engine: %s\n", count, plural(count), reason);
    }
}

const char *plural(size_t count)
{
    return count == 1 ? "" : "s";
}

/* Where what was written came from when it was verified: the system may hold files in memory. */
static const char *read_back_from(size_t from_disk, size_t files)
{
    static char mixed[120];
    if (from_disk == files) return "from the disk";
    if (from_disk == 0) return "through the system's memory, not from a disk,";
    snprintf(mixed, sizeof mixed, "(%zu from the disk, %zu through the system's memory)", from_disk, files - from_disk);
    return mixed;
}

void report_summary(const struct options *options, const struct task_list *list, const struct outcome *outcomes,
                    const struct run_times *times)
{
    const double wall_s = times->wall_s;
    const struct totals t = add_up(list, outcomes);
    const size_t done = t.files - t.failed;
    if (options->json) {
        print_summary_json(options, &t, times);
        return;
    }
    if (options->verbosity < 0 || done == 0) return;
    switch (options->verb) {
    case VERB_COMPRESS:
        printf("%zu file%s, %llu -> %llu bytes, ratio %.3f", done, plural(done), (unsigned long long)t.bytes_in,
               (unsigned long long)t.bytes_out, (double)t.bytes_in / (double)t.bytes_out);
        if (t.samples > 0) printf(", pixels %.3f bits/sample", 8.0 * (double)t.payload_bytes / (double)t.samples);
        printf(", %.1f s\n", wall_s);
        if (t.unverified == 0)
            printf("  all proven: each file was read back %s and decodes%s to what was read\n",
                   read_back_from(t.from_disk, done),
                   !t.verified_by || !strcmp(t.verified_by, "cpu") ? "" : ", on the GPU,");
        else
            printf("  NOT VERIFIED: %zu file%s, nothing proves what comes back\n", t.unverified, plural(t.unverified));
        if (t.lossy > 0)
            printf("  %zu file%s lossy, max error %lld\n", t.lossy, plural(t.lossy), (long long)t.max_error);
        print_verbatim(options, list, outcomes);
        break;
    case VERB_DECOMPRESS:
        printf("%zu file%s restored, %llu -> %llu bytes, %.1f s\n", done, plural(done), (unsigned long long)t.bytes_in,
               (unsigned long long)t.bytes_out, wall_s);
        printf("  %zu identical to their originals, byte for byte", done - t.different);
        if (t.different > t.lossy) printf("; %zu with identical pixels in a new file", t.different - t.lossy);
        if (t.lossy > 0) printf("; %zu lossy", t.lossy);
        printf("\n");
        break;
    default:
        printf("%zu file%s tested, all checksums hold, %.1f s\n", done, plural(done), wall_s);
        break;
    }
    print_fallbacks(options, list, outcomes);
    if (t.failed > 0) printf("  %zu file%s failed\n", t.failed, plural(t.failed));
    fflush(stdout);
}
