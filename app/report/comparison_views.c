/* The comparison's views: pictures as JSON, which page.js draws. */
#include <math.h>

#include "comparison_parts.h"
#include "page.h"
#include "png.h"
#include "text/text.h"

static void put_finite(FILE *f, const char *name, double value)
{
    if (isfinite(value))
        fprintf(f, ",\"%s\":%.6g", name, value);
    else
        fprintf(f, ",\"%s\":null", name);
}

static bool put_decoded(FILE *f, const struct report_comparison *c, const struct report_view *view, int d)
{
    const struct report_decoded *decoded = &view->decoded[d];
    fputs(d > 0 ? ",\n{\"codec\":" : "\n{\"codec\":", f);
    text_json(f, decoded->codec < c->codec_count ? c->codecs[decoded->codec].name : "");
    fputs(",\"setting\":", f);
    text_json(f, decoded->setting);
    fprintf(f, ",\"bytes\":%llu", (unsigned long long)decoded->bytes);
    put_finite(f, "psnr", decoded->psnr_db);
    put_finite(f, "ssim", decoded->ssim);
    fputs(",\"png\":\"", f);
    const bool good = png_write_uri(f, decoded->samples, view->columns, view->rows, view->components);
    fputs("\"}", f);
    return good;
}

bool comparison_write_view(FILE *f, const struct report_comparison *c, const struct report_view *view)
{
    if (view->image >= c->image_count || (view->components != 1 && view->components != 3)) return false;
    const struct report_image *image = &c->images[view->image];
    char number[32];
    fputs("{\"name\":", f);
    text_json(f, sums_name(image, number));
    fputs(",\"modality\":", f);
    text_json(f, image->modality);
    fprintf(
        f,
        ",\"x\":%u,\"y\":%u,\"columns\":%u,\"rows\":%u,\"ofColumns\":%u,\"ofRows\":%u,\"components\":%d,\"bits\":%d,"
        "\"signed\":%s,\"burned\":%s,\"rawBytes\":%llu",
        view->x, view->y, view->columns, view->rows, image->columns, image->rows, view->components, view->bits,
        view->is_signed ? "true" : "false", image->may_show_names ? "true" : "false",
        (unsigned long long)image->raw_bytes);
    put_finite(f, "low", view->window_low);
    put_finite(f, "high", view->window_high);
    fputs(",\"png\":\"", f);
    bool good = png_write_deep_uri(f, view->samples, view->columns, view->rows, view->components);
    fputs("\",\"decoded\":[", f);
    for (int d = 0; d < view->decoded_count && d < 4; d++) good &= put_decoded(f, c, view, d);
    fputs("]}", f);
    return good && !ferror(f);
}

void comparison_begin_views(FILE *f, size_t shown, size_t left_out)
{
    page_section(f, "views", "Views");
    if (left_out > 0)
        fprintf(f,
                "<p class=\"warning\">%zu of %zu views are left out: the page would be longer than %d MB, or the build "
                "has no zlib.</p>\n",
                left_out, shown + left_out, PAGE_LIMIT / 1000000);
    if (shown == 0) {
        fputs("<p>There are no views.</p>\n", f);
        return;
    }
    fputs(
        "<p class=\"small\">A lossy codec's picture beside the original, at about equal size. The window maps the "
        "original's samples at their true depth to grey (DICOM PS3.3 C.11.2.1.2); pictures of the codecs have 8 bits "
        "in "
        "the window that they were coded in, and take the same mapping. The difference is taken in that 8-bit window, "
        "and amplified.</p>\n<div id=\"viewer\"><noscript><p>The views need script. Nothing else on this page "
        "does.</p></noscript></div>\n<script type=\"application/json\" id=\"view-data\">[\n",
        f);
}

void comparison_end_views(FILE *f, size_t shown)
{
    if (shown > 0) fputs("]</script>\n", f);
    page_section_end(f);
}
