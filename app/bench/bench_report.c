/* Prints a table for each workload, or a JSON object for each measurement, and collects the points of the plot.
 *
 *   GB/s      bytes of the coder's uncompressed side in the time of the whole, scans, fills and packing included
 *   kernel    the same in the time of the longest phase
 *   bytes/B   bytes read and written for each of these, at least: input and output once, and nothing in between
 *   copy      the rate of that traffic, as a share of the rate of copying the same number of bytes
 *   ceiling   share of the rate of the limit: looking up each byte (VLE encoders), reading the input (other encoders),
 *             filling the output (decoders)
 *   base      throughput divided by that of the baseline: the papers' first kernel on the GPU, else the CPU row
 */
#include <cjson/cJSON.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app/cli/words/shown.h"
#include "bench.h"

static const char *const kind_names[BENCH_KINDS] = {
    [BENCH_LIMIT] = "limit", [BENCH_ENCODE] = "encode", [BENCH_DECODE] = "decode"};

void bench_stop(enum tsr_status status, const char *format, ...)
{
    va_list arguments;
    char text[1024];
    fflush(stdout);
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "tessera-bench: %s\n", shown(text));
    exit((int)status);
}

void bench_say(const struct bench *bench, const char *format, ...)
{
    va_list arguments;
    if (bench->options->json) return;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
}

/* Writes an object as a line and frees the object. */
static void put_json(const struct bench *bench, cJSON *object)
{
    char *text = object ? cJSON_PrintUnformatted(object) : NULL;
    if (!text) bench_stop(TSR_ERROR_LIMIT, "no memory for JSON");
    fprintf(bench->json, "%s\n", text);
    fflush(bench->json);
    cJSON_free(text);
    cJSON_Delete(object);
}

void bench_report_run(const struct bench *bench)
{
    char date[32];
    const time_t now = time(NULL);
    const char *commit = getenv("TESSERA_COMMIT"); /* tests/equality/run.sh sets it */
    const struct bench_device *device = &bench->device;
    if (!commit) commit = "unknown";
    strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", gmtime(&now));
    if (bench->json) {
        cJSON *o = cJSON_CreateObject();
        cJSON_AddBoolToObject(o, "run", true);
        cJSON_AddStringToObject(o, "version", TSR_VERSION_STRING);
        cJSON_AddStringToObject(o, "family", bench->family);
        cJSON_AddStringToObject(o, "gpu", device->name);
        cJSON_AddStringToObject(o, "driver", device->driver);
        cJSON_AddStringToObject(o, "cuda", device->cuda);
        cJSON_AddStringToObject(o, "commit", commit);
        cJSON_AddStringToObject(o, "date", date);
        put_json(bench, o);
    }
    if (bench->options->json) return;
    printf("tessera-bench %s %s  GPU %s", TSR_VERSION_STRING, bench->family, device->name);
    if (device->is_there) printf(", driver %s, CUDA %s", device->driver, device->cuda);
    printf(", commit %s, %s\n", commit, date);
}

/* ---- Figures ---------------------------------------------------------------------------------------------------- */

/* Figures of a result, for the table and JSON; negative: not applicable. */
struct figures {
    double gbps, kernel_gbps, bytes_per_byte, of_copy, of_ceiling, over_baseline;
};

static int phase_count(const struct bench_result *result)
{
    int count = 0;
    while (count < TSR_PHASES_LIMIT && result->row->phase[count].name) count++;
    return count;
}

static double longest_phase(const struct bench_result *result)
{
    double longest = 0;
    for (int p = 0; p < phase_count(result); p++)
        if (result->phase_us[p] > longest) longest = result->phase_us[p];
    return longest;
}

/* The baseline's time for a byte, in its fastest policy. The top of this file defines the baseline. */
static double baseline_us(const struct bench_workload *workload, enum bench_kind kind)
{
    const struct tsr_kernel_row *baseline = NULL;
    double us = 0;
    for (int i = 0; i < workload->result_count; i++) {
        const struct bench_result *result = &workload->result[i];
        if (result->kind != kind || result->error || result->wrong) continue;
        const bool is_better = kind == BENCH_ENCODE && baseline && !baseline->on_device && result->row->on_device;
        if (!baseline || is_better) {
            baseline = result->row;
            us = result->us / result->in_bytes;
        }
        if (result->row == baseline && result->us / result->in_bytes < us) us = result->us / result->in_bytes;
    }
    return us;
}

static double ceiling_us(const struct bench_workload *workload, enum bench_kind kind)
{
    if (kind == BENCH_DECODE) return workload->fill_us;
    return kind == BENCH_LIMIT ? 0 : workload->look_up_us > 0 ? workload->look_up_us : workload->read_us;
}

static struct figures figures_of(const struct bench_workload *workload, const struct bench_result *result)
{
    struct figures f = {-1, -1, -1, -1, -1, -1};
    if (result->error || result->wrong || result->us <= 0) return f; /* a wrong row has no rate */
    const double bytes = result->in_bytes, longest = longest_phase(result);
    const double baseline = baseline_us(workload, result->kind), ceiling = ceiling_us(workload, result->kind);
    f.gbps = 1e-3 * bytes / result->us;
    if (longest > 0) f.kernel_gbps = 1e-3 * bytes / longest;
    if (bytes > 0) f.bytes_per_byte = result->moved_bytes / bytes;
    if (result->row->on_device && workload->copy_us > 0 && bytes > 0)
        f.of_copy = result->moved_bytes / result->us / (2 * bytes / workload->copy_us);
    if (result->row->on_device && ceiling > 0) f.of_ceiling = ceiling / result->us;
    if (result->kind != BENCH_LIMIT && baseline > 0) f.over_baseline = baseline * bytes / result->us;
    return f;
}

static const char *policy_of(const struct bench_result *result)
{
    return result->row->policy_name ? result->row->policy_name(result->policy) : "";
}

static const char *outcome_of(const struct bench_result *result)
{
    return result->error ? "FAILED" : result->wrong ? "WRONG" : result->kind == BENCH_LIMIT ? "-" : "right";
}

/* ---- Table ------------------------------------------------------------------------------------------------------ */

static void print_figure(double value, int width, int places, double factor, const char *unit)
{
    if (value < 0)
        printf(" %*s%*s", width, "-", (int)strlen(unit), "");
    else
        printf(" %*.*f%s", width, places, value * factor, unit);
}

static void print_row(const struct bench *bench, const struct bench_workload *workload,
                      const struct bench_result *result)
{
    const struct figures f = figures_of(workload, result);
    printf("  %-7s %-28s", kind_names[result->kind], result->row->name);
    print_figure(f.gbps, 8, f.gbps < 10 ? 3 : 1, 1, "");
    print_figure(f.kernel_gbps, 8, f.kernel_gbps < 10 ? 3 : 1, 1, "");
    print_figure(f.bytes_per_byte, 7, 3, 1, "");
    print_figure(f.of_copy, 6, 1, 100, "%");
    print_figure(f.of_ceiling, 6, 1, 100, "%");
    print_figure(f.over_baseline, 7, 2, 1, "x");
    printf("  %-6s %10.1f", outcome_of(result), result->us);
    if (result->error) {
        printf("  %s", bench_error_text(result->error));
    } else if (phase_count(result) > 1) {
        for (int p = 0; p < phase_count(result); p++)
            printf("%s%s %.1f", p == 0 ? "  " : ", ", result->row->phase[p].name, result->phase_us[p]);
    }
    if ((bench->options->policies || result->kind == BENCH_LIMIT) && result->row->policies > 1)
        printf("  [%s]", policy_of(result));
    if (result->in_bytes < workload->in_bytes && result->kind != BENCH_LIMIT)
        printf("  (the first %.1f MiB)", result->in_bytes / (1 << 20));
    printf("\n");
}

static void print_table(const struct bench *bench, const struct bench_workload *workload)
{
    printf("\n%s\n", shown(workload->name));
    if (workload->notes[0]) printf("%s", workload->notes);
    if (workload->look_up_us > 0)
        printf("  limit of looking up each byte and writing the output: %.1f GB/s\n",
               1e-3 * workload->in_bytes / workload->look_up_us);
    printf("  %-7s %-28s %8s %8s %7s %7s %7s %8s  %-6s %10s  %s\n", "", "row", "GB/s", "kernel", "bytes/B", "copy",
           "ceiling", "base", "output", "us", "phases, us");
    for (int kind = 0; kind < BENCH_KINDS; kind++)
        for (int i = 0; i < workload->result_count; i++)
            if ((int)workload->result[i].kind == kind) print_row(bench, workload, &workload->result[i]);
    fflush(stdout);
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

static void add_figure(cJSON *object, const char *name, double value)
{
    if (value < 0)
        cJSON_AddNullToObject(object, name);
    else
        cJSON_AddNumberToObject(object, name, value);
}

static void print_result_json(const struct bench *bench, const struct bench_workload *workload,
                              const struct bench_result *result)
{
    const struct figures f = figures_of(workload, result);
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "family", bench->family);
    cJSON_AddStringToObject(o, "workload", workload->name);
    for (const cJSON *field = workload->fields ? workload->fields->child : NULL; field; field = field->next)
        cJSON_AddItemToObject(o, field->string, cJSON_Duplicate(field, true));
    cJSON_AddNumberToObject(o, "input_bytes", workload->in_bytes);
    cJSON_AddNumberToObject(o, "output_bytes", workload->out_bytes);
    cJSON_AddNumberToObject(o, "row_input_bytes", result->in_bytes); /* a CPU row codes only the first of them */
    cJSON_AddStringToObject(o, "kind", kind_names[result->kind]);
    cJSON_AddStringToObject(o, "row", result->row->name);
    cJSON_AddStringToObject(o, "source", result->row->source ? result->row->source : "");
    cJSON_AddBoolToObject(o, "on_device", result->row->on_device);
    cJSON_AddStringToObject(o, "policy", policy_of(result));
    cJSON_AddBoolToObject(o, "best_policy", result->policy == result->row->best_policy);
    cJSON_AddNumberToObject(o, "repeats", result->repeats);
    add_figure(o, "us", result->error ? -1 : result->us);
    add_figure(o, "least_us", result->error ? -1 : result->least_us);
    cJSON *phases = cJSON_AddObjectToObject(o, "phases_us");
    for (int p = 0; p < phase_count(result) && !result->error; p++) /* two phases may have the same name */
        cJSON_AddNumberToObject(phases, result->row->phase[p].name, result->phase_us[p]);
    add_figure(o, "gb_per_s", f.gbps);
    add_figure(o, "kernel_gb_per_s", f.kernel_gbps);
    add_figure(o, "bytes_per_byte", f.bytes_per_byte);
    add_figure(o, "of_copy", f.of_copy);
    add_figure(o, "of_ceiling", f.of_ceiling);
    add_figure(o, "over_baseline", f.over_baseline);
    cJSON_AddStringToObject(o, "output", result->error ? "failed" : result->wrong ? "wrong" : outcome_of(result));
    if (result->error)
        cJSON_AddStringToObject(o, "error", bench_error_text(result->error));
    else
        cJSON_AddNullToObject(o, "error");
    put_json(bench, o);
}

/* ---- Plot ------------------------------------------------------------------------------------------------------- */

static void add_point(struct plot_panel *panel, const struct bench_workload *workload, const char *series,
                      bool is_limit, double gbps)
{
    const double x = panel->kind == PLOT_BARS ? plot_group(panel, workload->group) : workload->x;
    plot_point(panel, series, is_limit, x, gbps);
}

static void plot_kind(struct bench *bench, const struct bench_workload *workload, enum bench_kind kind)
{
    static const char *const titles[BENCH_KINDS] = {"Limits", "Encoders", "Decoders"};
    char title[PLOT_TEXT];
    snprintf(title, sizeof title, "%s %s", titles[kind], workload->panel);
    struct plot_panel *panel = plot_panel(&bench->plot, title, workload->x_label ? workload->x_label : "",
                                          kind == BENCH_LIMIT ? "GB/s read and written" : "GB/s of uncompressed bytes",
                                          !workload->x_label ? PLOT_BARS
                                          : workload->log_x  ? PLOT_LINES_LOG_X
                                                             : PLOT_LINES);
    double moved = 0;
    if (!panel) return;
    for (int i = 0; i < workload->result_count; i++) {
        const struct bench_result *result = &workload->result[i];
        if (result->kind != kind || result->error || result->wrong) continue;
        if (result->policy != result->row->best_policy) continue;
        if (bench->device.is_there && !result->row->on_device) continue; /* its line would lie on the axis */
        const double bytes = kind == BENCH_LIMIT ? result->moved_bytes : result->in_bytes;
        add_point(panel, workload, result->row->name, false, 1e-3 * bytes / result->us);
        moved = result->moved_bytes;
    }
    if (kind == BENCH_LIMIT || workload->copy_us <= 0 || moved <= 0) return;
    /* The least traffic of a row, at the rate of copying. */
    add_point(panel, workload, "limit: copy's traffic", true,
              1e-3 * workload->in_bytes * 2 * workload->in_bytes / workload->copy_us / moved);
    if (kind == BENCH_ENCODE && workload->look_up_us > 0)
        add_point(panel, workload, "limit: look-up", true, 1e-3 * workload->in_bytes / workload->look_up_us);
}

void bench_report(struct bench *bench, struct bench_workload *workload)
{
    for (int i = 0; i < workload->result_count && bench->json; i++)
        print_result_json(bench, workload, &workload->result[i]);
    if (!bench->options->json) print_table(bench, workload);
    /* Limits are lines in the encoders' panels. Alone, they have a panel of their own. */
    const bool limits_alone = workload->result_count > 0 && workload->out_bytes <= 0;
    for (int kind = limits_alone ? BENCH_LIMIT : BENCH_ENCODE; kind < BENCH_KINDS && workload->panel; kind++) {
        bool any = false;
        for (int i = 0; i < workload->result_count; i++) any |= (int)workload->result[i].kind == kind;
        if (any) plot_kind(bench, workload, (enum bench_kind)kind);
    }
    cJSON_Delete(workload->fields);
    workload->fields = NULL;
    fflush(stdout);
}

void bench_report_end(const struct bench *bench)
{
    if (bench->json) {
        cJSON *o = cJSON_CreateObject();
        cJSON_AddBoolToObject(o, "summary", true);
        cJSON_AddNumberToObject(o, "measured", bench->measured);
        cJSON_AddNumberToObject(o, "wrong", bench->wrong);
        cJSON_AddNumberToObject(o, "failed", bench->failed);
        put_json(bench, o);
    }
    if (bench->options->json) return;
    printf("\n%d measurement%s", bench->measured, plural((size_t)bench->measured));
    if (bench->wrong == 0 && bench->failed == 0)
        printf(", all outputs right\n");
    else
        printf(", %d WRONG, %d failed\n", bench->wrong, bench->failed);
}
