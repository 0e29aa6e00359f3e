/* tessera-bench: the kernel families on the papers' own workloads, row beside row. Every output is proven. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "app/report/page.h"
#include "app/report/text/text.h"

static const struct {
    const char *name;
    void (*run)(struct bench *bench);
    bool takes_files;
} families[] = {
    {"vle", bench_vle, true},       {"rle", bench_rle, true},       {"cavlc", bench_cavlc, true},
    {"hiding", bench_hiding, true}, {"engine", bench_engine, true}, {"limits", bench_limits_alone, false},
};
enum { FAMILIES = sizeof families / sizeof families[0] };

/* The page with the plots. */
static bool write_page(const struct bench *bench, const char *path)
{
    static const struct page_link links[] = {{"plots", "Plots"}, {NULL, NULL}};
    FILE *f = fopen(path, "w");
    if (!f) return false;
    page_begin(f, bench->plot.title, links);
    fputs("<h1>", f);
    text_escape(f, bench->plot.title);
    fputs("</h1>\n<p class=\"small\">", f);
    text_escape(f, bench->plot.subtitle);
    fprintf(f, ". %d measurement%s, %d wrong, %d failed.</p>\n", bench->measured, plural((size_t)bench->measured),
            bench->wrong, bench->failed);
    page_section(f, "plots", "Plots");
    if (bench->plot.panel_count == 0) fputs("<p>This family has no plots.</p>\n", f);
    plot_write_figures(f, &bench->plot);
    page_section_end(f);
    page_end(f, TSR_VERSION_STRING);
    const bool good = !ferror(f);
    return fclose(f) == 0 && good;
}

static int write_plots(struct bench *bench)
{
    const struct bench_options *options = bench->options;
    const char *path = NULL;
    snprintf(bench->plot.title, sizeof bench->plot.title, "tessera-bench %s", bench->family);
    snprintf(bench->plot.subtitle, sizeof bench->plot.subtitle, "GPU: %.90s", bench->device.name);
    if (options->plot && !plot_write(&bench->plot, options->plot)) path = options->plot;
    if (!path && options->html && !write_page(bench, options->html)) path = options->html;
    if (path) fprintf(stderr, "tessera-bench: cannot write %s: %s\n", path, strerror(errno));
    plot_free(&bench->plot);
    return path ? TSR_ERROR_WRITE : TSR_OK;
}

/* Returns the exit status. */
static int run(const struct bench_options *options)
{
    static struct bench bench;
    int family = 0;
    while (family < FAMILIES && strcmp(options->family, families[family].name) != 0) family++;
    if (family == FAMILIES)
        bench_stop(TSR_ERROR_USAGE,
                   "there is no family '%s'; the families are vle, rle, cavlc, hiding, engine and limits",
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
    const int plotted = write_plots(&bench);
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
