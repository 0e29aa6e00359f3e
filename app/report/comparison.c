/* The page of tessera compare. See comparison.h. */
#include <stdlib.h>
#include <string.h>

#include "comparison.h"
#include "comparison_parts.h"
#include "origin.h"
#include "page.h"
#include "text/text.h"

/* The CSV is not in the page if it is longer than this. */
enum { CSV_LIMIT = 6 * 1000 * 1000 };

/* ---- How it was made ----------------------------------------------------------------------------------------- */

static void put_codecs(FILE *f, const struct report_comparison *c)
{
    fputs("<h3>Codecs and their options</h3>\n", f);
    page_table(f, "Codecs and their options", "words", NULL);
    fputs("<thead><tr>", f);
    page_head(f, "Codec", false, false);
    page_head(f, "Library", false, false);
    page_head(f, "Options", false, false);
    page_head(f, "Why these", false, false);
    fputs("</tr></thead>\n<tbody>\n", f);
    for (size_t k = 0; k < c->codec_count; k++) {
        if (c->codecs[k].is_missing) continue;
        fputs("<tr><th scope=\"row\">", f);
        text_escape(f, c->codecs[k].name);
        fprintf(f, "%s</th>", c->codecs[k].is_lossy && !strstr(c->codecs[k].name, "lossy") ? " (lossy)" : "");
        page_cell(f, c->codecs[k].library);
        page_cell(f, c->codecs[k].options);
        page_cell(f, c->codecs[k].reason);
        fputs("</tr>\n", f);
    }
    fputs("</tbody>\n", f);
    page_table_end(f);
    size_t missing = 0;
    for (size_t k = 0; k < c->codec_count; k++) {
        if (!c->codecs[k].is_missing) continue;
        fputs(missing++ ? "; " : "<p>Not in this build: ", f);
        text_escape(f, c->codecs[k].name);
        fputs(" (", f);
        text_escape(f, c->codecs[k].library);
        fputs(")", f);
    }
    fputs(missing ? ".</p>\n" : "<p>No codec is missing in this build.</p>\n", f);
}

/* Windows are listed once each, with the number of images. */
static void put_windows(FILE *f, const struct report_comparison *c)
{
    struct {
        const char *text;
        size_t count;
    } *windows = calloc(c->image_count + 1, sizeof *windows);
    size_t count = 0;
    enum { SHOWN = 40 };
    for (size_t i = 0; i < c->image_count && windows; i++) {
        size_t w = 0;
        if (!c->images[i].window[0]) continue;
        while (w < count && w < SHOWN && strcmp(windows[w].text, c->images[i].window) != 0) w++;
        if (w == count) windows[count++].text = c->images[i].window;
        windows[w].count++; /* the last entry counts all others, if there are more */
    }
    if (count > 0) {
        fputs("<h3>How images were shown in 8 bits, for lossy codecs</h3>\n<ul class=\"windows\">\n", f);
        for (size_t w = 0; w < count; w++) {
            fputs("<li>", f);
            text_escape(f, w < SHOWN ? windows[w].text : "other windows; the CSV file has them");
            fprintf(f, ": %zu image%s</li>\n", windows[w].count, windows[w].count == 1 ? "" : "s");
        }
        fputs("</ul>\n", f);
    }
    free(windows);
}

static void put_csv(FILE *f, const char *csv)
{
    char bytes[TEXT_NUMBER];
    const size_t size = csv ? strlen(csv) : 0;
    if (!csv) return;
    if (size > CSV_LIMIT) {
        fprintf(f,
                "<p>The cells as CSV (%s) are too long for this page; the command writes them to a file of their "
                "own.</p>\n",
                text_bytes(bytes, size));
        return;
    }
    fputs("<p><a download=\"tessera-compare.csv\" href=\"data:text/csv;charset=utf-8;base64,", f);
    text_base64(f, csv, size);
    fprintf(f, "\">All cells as CSV</a> (%s)</p>\n", text_bytes(bytes, size));
}

static void put_made(FILE *f, const struct report_comparison *c)
{
    page_section(f, "made", "How it was made");
    origin_write(f, &c->origin);
    put_csv(f, c->csv);
    put_codecs(f, c);
    put_windows(f, c);
    fputs(
        "<h3>How it was measured</h3>\n<p>Every lossless result was decoded and compared sample by sample. Times are "
        "the "
        "CPU time of one thread, the median of warm runs. Sizes are of the codec's stream for one frame; rates count 8 "
        "bits a byte over all samples.</p>\n",
        f);
    origin_write_citation(f, &c->origin);
    page_section_end(f);
}

/* ---- The page ------------------------------------------------------------------------------------------------ */

static void put_before_views(FILE *f, const struct sums *sums)
{
    static const struct page_link links[] = {
        {"main", "Result"},   {"lossless", "Lossless"}, {"lossy", "Lossy"},          {"views", "Views"},
        {"images", "Images"}, {"lists", "Lists"},       {"made", "How it was made"}, {NULL, NULL}};
    page_begin(f, "Tessera: comparison of image codecs", links);
    comparison_write_first(f, sums);
    comparison_write_lossless(f, sums);
    comparison_write_lossy(f, sums);
}

static void put_after_views(FILE *f, const struct sums *sums)
{
    comparison_write_images(f, sums);
    comparison_write_lists(f, sums->c);
    put_made(f, sums->c);
    page_end(f, sums->c->origin.version);
}

/* A text in memory. */
struct text {
    char *bytes;
    size_t count;
};

/* Runs a writer into memory; false: no memory. */
static bool write_part(struct text *text, void (*write)(FILE *f, const struct sums *sums), const struct sums *sums)
{
    FILE *f = open_memstream(&text->bytes, &text->count);
    if (!f) return false;
    write(f, sums);
    const bool good = !ferror(f);
    return fclose(f) == 0 && good;
}

static bool write_view(struct text *text, const struct report_comparison *c, const struct report_view *view)
{
    FILE *f = open_memstream(&text->bytes, &text->count);
    if (!f) return false;
    const bool good = comparison_write_view(f, c, view);
    return fclose(f) == 0 && good;
}

/* Writes as many views as fit, in their order. */
static void put_views(FILE *f, const struct report_comparison *c, size_t room)
{
    struct text *const views = calloc(c->view_count + 1, sizeof *views);
    size_t shown = 0;
    for (size_t i = 0; i < c->view_count && views; i++) {
        struct text *const view = &views[shown];
        if (write_view(view, c, &c->views[i]) && view->count + 2 <= room) {
            room -= view->count + 2;
            shown++;
        } else {
            free(view->bytes);
            *view = (struct text){NULL, 0};
        }
    }
    comparison_begin_views(f, shown, c->view_count - shown);
    for (size_t i = 0; i < shown; i++) {
        if (i > 0) fputs(",\n", f);
        fwrite(views[i].bytes, 1, views[i].count, f);
        free(views[i].bytes);
    }
    comparison_end_views(f, shown);
    free(views);
}

bool report_write_comparison(FILE *f, const struct report_comparison *c)
{
    enum { FRAME = 10000 }; /* of the views' section itself */
    struct sums sums;
    struct text before = {NULL, 0}, after = {NULL, 0};
    bool good = sums_make(&sums, c) && write_part(&before, put_before_views, &sums) &&
                write_part(&after, put_after_views, &sums);
    if (good) {
        const size_t used = before.count + after.count + FRAME;
        fwrite(before.bytes, 1, before.count, f);
        put_views(f, c, used < PAGE_LIMIT ? PAGE_LIMIT - used : 0);
        fwrite(after.bytes, 1, after.count, f);
    }
    free(before.bytes);
    free(after.bytes);
    sums_free(&sums);
    return good && !ferror(f);
}
