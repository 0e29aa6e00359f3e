/* tessera-bench: the kernel families on the papers' own workloads, row beside row. Every output is proven. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"

static const struct {
    const char *name;
    void (*run)(struct bench *bench);
    bool takes_files;
} families[] = {
    {"vle", bench_vle, true},
    {"rle", bench_rle, true},
    {"cavlc", bench_cavlc, true},
    {"engine", bench_engine, true},
    {"limits", bench_limits_alone, false},
};
enum { FAMILIES = sizeof families / sizeof families[0] };

static int write_plot(struct bench *bench)
{
    const char *path = bench->options->plot;
    snprintf(bench->plot.title, sizeof bench->plot.title, "tessera-bench %s", bench->family);
    snprintf(bench->plot.subtitle, sizeof bench->plot.subtitle, "GPU: %.90s", bench->device.name);
    if (bench->plot.left_out > 0) {
        const size_t used = strlen(bench->plot.subtitle);
        snprintf(bench->plot.subtitle + used, sizeof bench->plot.subtitle - used, "; %d more sets of points left out",
                 bench->plot.left_out);
        fprintf(stderr, "tessera-bench: %s has room for %d panels: %d more sets of points are not in it\n", path,
                PLOT_PANELS_LIMIT, bench->plot.left_out);
    }
    if (plot_write(&bench->plot, path)) return TSR_OK;
    fprintf(stderr, "tessera-bench: cannot write %s: %s\n", path, strerror(errno));
    return TSR_ERROR_WRITE;
}

/* Returns the exit status. */
static int run(const struct bench_options *options)
{
    static struct bench bench;
    int family = 0;
    while (family < FAMILIES && strcmp(options->family, families[family].name) != 0) family++;
    if (family == FAMILIES)
        bench_stop(TSR_ERROR_USAGE, "there is no family '%s'; the families are vle, rle, cavlc, engine and limits",
                   options->family);
    if (options->takes_files && !families[family].takes_files)
        bench_stop(TSR_ERROR_USAGE, "%s takes no files", options->family);
    bench.options = options;
    bench.family = families[family].name;
    bench.pool = tsr_pool_create(options->threads ? options->threads : tsr_available_threads());
    if (!bench.pool) bench_stop(TSR_ERROR_LIMIT, "no memory for threads");
    bench.device = bench_find_device();
    bench.json = options->json ? stdout : options->log ? fopen(options->log, "w") : NULL;
    if (options->log && !bench.json) bench_stop(TSR_ERROR_WRITE, "cannot write %s: %s", options->log, strerror(errno));
    bench_report_run(&bench);
    families[family].run(&bench);
    bench_report_end(&bench);
    tsr_pool_destroy(bench.pool);
    if (options->log && !options->json && fclose(bench.json) != 0)
        bench_stop(TSR_ERROR_WRITE, "cannot write %s: %s", options->log, strerror(errno));
    const int plotted = options->plot ? write_plot(&bench) : TSR_OK;
    return bench.wrong || bench.failed ? TSR_ERROR_INTERNAL : plotted;
}

int main(int argc, char **argv)
{
    struct bench_options options;
    bool finished;
    const enum tsr_status status = bench_parse_options(argc, argv, &options, &finished);
    if (finished) return (int)status;
    const int result = run(&options);
    if (fflush(stdout) == 0 && !ferror(stdout)) return result;
    fprintf(stderr, "tessera-bench: cannot write to standard output\n");
    return result ? result : TSR_ERROR_WRITE;
}
