/* The comparison's table of images, and its lists. */
#include <stdlib.h>

#include "comparison_parts.h"
#include "lists.h"
#include "page.h"
#include "text/text.h"

enum { ROWS_LIMIT = 20000 };

static const char *proof_of(const struct report_image *image)
{
    static const char *const names[] = {[PROOF_NONE] = "not proven",
                                        [PROOF_SAME_FILE] = "same file",
                                        [PROOF_SAME_SAMPLES] = "same samples",
                                        [PROOF_LOSSY] = "lossy",
                                        [PROOF_FAILED] = "failed"};
    return (unsigned)image->proof <= PROOF_FAILED ? names[image->proof] : "";
}

static void put_codec_cell(FILE *f, const struct sums *sums, size_t image, size_t codec, uint64_t least)
{
    char text[TEXT_NUMBER];
    const struct report_cell *cell = sums->cell[image * sums->c->codec_count + codec];
    const struct report_cell *held = sums_held(sums, image, codec);
    if (held) {
        page_cell_number(f, (double)held->bytes, text_count(text, held->bytes), held->bytes == least);
    } else if (cell && (cell->outcome == CELL_FAILED || cell->outcome == CELL_DONE)) {
        fputs("<td class=\"n bad\" data-v=\"\" title=\"", f);
        text_escape(f, cell->outcome == CELL_DONE ? "what came back differs" : cell->reason);
        fputs("\">failed</td>", f);
    } else {
        page_cell_none(f, cell ? cell->reason : "not run");
    }
}

static void put_image(FILE *f, const struct sums *sums, size_t i, const size_t *order, size_t count)
{
    const struct report_image *image = &sums->c->images[i];
    const struct report_cell *ours = sums->ours == SUMS_NONE ? NULL : sums_held(sums, i, sums->ours);
    char text[64];
    uint64_t least = 0;
    for (size_t k = 0; k < count; k++) {
        const struct report_cell *held = sums_held(sums, i, order[k]);
        if (held && (least == 0 || held->bytes < least)) least = held->bytes;
    }
    fputs("<tr data-kind=\"", f);
    text_escape(f, image->modality[0] ? image->modality : "not stated");
    fprintf(f, "\"><th scope=\"row\"%s data-v=\"%u\">", image->name ? " class=\"name\"" : "", image->number);
    if (image->name)
        text_escape(f, image->name);
    else
        fprintf(f, "%u", image->number);
    fputs("</th>", f);
    page_cell(f, image->modality);
    const int length = snprintf(text, sizeof text, "%u \u00d7 %u%s", image->columns, image->rows,
                                image->components > 1 ? " colour" : "");
    if (image->frames > 1) snprintf(text + length, sizeof text - (size_t)length, ", %u frames", image->frames);
    page_cell_number(f, (double)image->columns * image->rows, text, false);
    page_cell_count(f, (uint64_t)(image->bits > 0 ? image->bits : 0));
    page_cell_count(f, image->raw_bytes);
    for (size_t k = 0; k < count; k++) put_codec_cell(f, sums, i, order[k], least);
    if (ours && ours->bytes > 0) {
        snprintf(text, sizeof text, "%.3f", (double)image->raw_bytes / (double)ours->bytes);
        page_cell_number(f, (double)image->raw_bytes / (double)ours->bytes, text, false);
    } else {
        page_cell_none(f, image->reason);
    }
    fputs(image->proof == PROOF_FAILED ? "<td class=\"bad\" title=\"" : "<td title=\"", f);
    text_escape(f, image->reason);
    fprintf(f, "\">%s%s</td></tr>\n", proof_of(image), image->is_stored ? ", stored" : ", coded");
}

static void put_heads(FILE *f, const struct sums *sums, const size_t *order, size_t count)
{
    fputs("<thead><tr>", f);
    page_head(f, sums->c->is_identified ? "Image" : "No.", false, true);
    page_head(f, "Modality", false, true);
    page_head(f, "Size", true, true);
    page_head(f, "Bits", true, true);
    page_head(f, "Raw bytes", true, true);
    for (size_t k = 0; k < count; k++) page_head(f, sums->c->codecs[order[k]].name, true, true);
    page_head(f, "Ratio", true, true);
    page_head(f, "Comes back as", false, true);
    fputs("</tr></thead>\n<tbody>\n", f);
}

void comparison_write_images(FILE *f, const struct sums *sums)
{
    const struct report_comparison *c = sums->c;
    size_t groups = 0, *const order = calloc(c->codec_count + 1, sizeof *order);
    size_t *const number = calloc(c->image_count + 1, sizeof *number);
    struct sums_group *const group = number ? sums_groups(c, KEY_MODALITY, number, &groups) : NULL;
    const char **const kinds = calloc(groups + 1, sizeof *kinds);
    const size_t rows = c->image_count < ROWS_LIMIT ? c->image_count : ROWS_LIMIT;
    page_section(f, "images", "Images");
    if (order && kinds && rows > 0) {
        const size_t count = sums_choose(sums, order);
        for (size_t g = 0; g < groups; g++) kinds[g] = group[g].name;
        if (rows < c->image_count)
            fprintf(f, "<p class=\"warning\">The table has the first %zu of %zu images. The CSV file has all.</p>\n",
                    rows, c->image_count);
        page_filters(f, "image-table", "Modality", kinds, groups, rows);
        page_table(f, "Images: bytes of each lossless codec", "tall", "image-table");
        put_heads(f, sums, order, count);
        for (size_t i = 0; i < rows; i++) put_image(f, sums, i, order, count);
        fputs("</tbody>\n", f);
        page_table_end(f);
        fputs("<p class=\"small\">A codec's column is its bytes for the samples of the compared frame; the fewest are "
              "bold. "
              "A dash: the codec cannot hold such samples, or was not run; the reason shows where the pointer rests. "
              "Ratio: raw bytes / Tessera's bytes.</p>\n",
              f);
    } else {
        fputs("<p>There are no images.</p>\n", f);
    }
    page_section_end(f);
    free(kinds);
    free(group);
    free(number);
    free(order);
}

/* ---- Lists --------------------------------------------------------------------------------------------------- */

static bool differs(const struct report_image *image)
{
    return image->proof == PROOF_SAME_SAMPLES || image->proof == PROOF_LOSSY || image->proof == PROOF_NONE;
}

static bool is_stored(const struct report_image *image)
{
    return image->is_stored;
}

static bool has_failed(const struct report_image *image)
{
    return image->proof == PROOF_FAILED;
}

static void put_list(FILE *f, const struct report_comparison *c, const char *id, const char *title,
                     bool (*has)(const struct report_image *image))
{
    size_t count = 0;
    for (size_t i = 0; i < c->image_count; i++) count += has(&c->images[i]);
    list_begin(f, id, title, count);
    for (size_t i = 0; i < c->image_count; i++) {
        if (!has(&c->images[i])) continue;
        list_entry(f, c->images[i].name, c->images[i].number, proof_of(&c->images[i]));
        list_more(f, "", c->images[i].reason);
        fputs("\n", f);
    }
    list_end(f, count);
}

/* Cells of codecs that failed, ours or others. */
static void put_failures(FILE *f, const struct report_comparison *c)
{
    size_t count = 0;
    for (size_t i = 0; i < c->cell_count; i++)
        count += c->cells[i].outcome == CELL_FAILED && c->cells[i].image < c->image_count &&
                 c->cells[i].codec < c->codec_count;
    list_begin(f, "list-codecs", "Codecs that failed on an image", count);
    for (size_t i = 0; i < c->cell_count && count > 0; i++) {
        const struct report_cell *cell = &c->cells[i];
        if (cell->outcome != CELL_FAILED || cell->image >= c->image_count || cell->codec >= c->codec_count) continue;
        list_entry(f, c->images[cell->image].name, c->images[cell->image].number, c->codecs[cell->codec].name);
        list_more(f, "", cell->setting);
        list_more(f, "", cell->reason);
        fputs("\n", f);
    }
    list_end(f, count);
}

void comparison_write_lists(FILE *f, const struct report_comparison *c)
{
    page_section(f, "lists", "Lists");
    put_list(f, c, "list-failed", "Failed", has_failed);
    put_list(f, c, "list-differs", "Not identical as a file", differs);
    put_list(f, c, "list-stored", "Stored", is_stored);
    put_failures(f, c);
    page_section_end(f);
}
