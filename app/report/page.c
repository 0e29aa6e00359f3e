/* Pages. See page.h. */
#include "page.h"
#include "text/text.h"

void page_begin(FILE *f, const char *title, const struct page_link *links)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
          "script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">\n"
          "<meta name=\"color-scheme\" content=\"light dark\">\n"
          "<meta name=\"generator\" content=\"tessera\">\n<title>",
          f);
    text_escape(f, title);
    fputs("</title>\n<style>\n", f);
    fwrite(page_css, 1, page_css_size, f);
    fputs("</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to the content</a>\n"
          "<header>\n<nav aria-label=\"Sections\"><ul>\n",
          f);
    for (; links->id; links++) {
        fprintf(f, "<li><a href=\"#%s\">", links->id);
        text_escape(f, links->text);
        fputs("</a></li>\n", f);
    }
    fputs("</ul></nav>\n<button type=\"button\" id=\"theme\" class=\"script\" aria-pressed=\"false\">Dark</button>\n"
          "</header>\n<main id=\"main\" tabindex=\"-1\">\n",
          f);
}

void page_end(FILE *f, const char *version)
{
    fputs("</main>\n<footer><p>Tessera ", f);
    text_escape(f, version);
    fputs(". This page is one file. It loads nothing and sends nothing.</p></footer>\n"
          "<div id=\"said\" class=\"unseen\" role=\"status\"></div>\n<script>\n",
          f);
    fwrite(page_js, 1, page_js_size, f);
    fputs("</script>\n</body>\n</html>\n", f);
}

void page_section(FILE *f, const char *id, const char *title)
{
    fprintf(f, "<section id=\"%s\" aria-labelledby=\"%s-title\">\n<h2 id=\"%s-title\">", id, id, id);
    text_escape(f, title);
    fputs("</h2>\n", f);
}

void page_section_end(FILE *f)
{
    fputs("</section>\n", f);
}

void page_table(FILE *f, const char *label, const char *classes, const char *id)
{
    fprintf(f, "<div class=\"box %s\" role=\"region\" tabindex=\"0\" aria-label=\"", classes);
    text_escape(f, label);
    fprintf(f, "\">\n<table%s%s%s>\n<caption class=\"unseen\">", id ? " id=\"" : "", id ? id : "", id ? "\"" : "");
    text_escape(f, label);
    fputs("</caption>\n", f);
}

void page_table_end(FILE *f)
{
    fputs("</table>\n</div>\n", f);
}

void page_head(FILE *f, const char *text, bool is_number, bool sorts)
{
    fprintf(f, "<th scope=\"col\"%s", is_number ? " class=\"n\"" : "");
    if (sorts) { /* printers repeat a table's head without its buttons, and so need the text once more */
        fputs(" aria-sort=\"none\" data-text=\"", f);
        text_escape(f, text);
        fputs("\"><button type=\"button\" class=\"sort\"", f);
    }
    fputs(">", f);
    text_escape(f, text);
    fputs(sorts ? "</button></th>\n" : "</th>\n", f);
}

void page_cell(FILE *f, const char *text)
{
    fputs("<td>", f);
    text_escape(f, text);
    fputs("</td>", f);
}

void page_cell_count(FILE *f, uint64_t value)
{
    char text[TEXT_NUMBER];
    fprintf(f, "<td class=\"n\">%s</td>", text_count(text, value));
}

void page_cell_bytes(FILE *f, uint64_t bytes)
{
    char text[TEXT_NUMBER];
    fprintf(f, "<td class=\"n\" data-v=\"%llu\">%s</td>", (unsigned long long)bytes, text_bytes(text, bytes));
}

void page_cell_number(FILE *f, double sorts_as, const char *text, bool is_best)
{
    fprintf(f, "<td class=\"n%s\" data-v=\"%.9g\">", is_best ? " best" : "", sorts_as);
    text_escape(f, text);
    fputs("</td>", f);
}

void page_cell_none(FILE *f, const char *why)
{
    fputs("<td class=\"n none\" data-v=\"\"", f);
    if (why && *why) {
        fputs(" title=\"", f);
        text_escape(f, why);
        fputs("\"", f);
    }
    fputs(">\u2013</td>", f);
}

void page_filters(FILE *f, const char *table_id, const char *kind_label, const char *const *kinds, size_t kind_count,
                  size_t rows)
{
    fprintf(f,
            "<div class=\"filters script\" data-table=\"%s\">\n<label>Filter <input type=\"search\" "
            "autocomplete=\"off\" spellcheck=\"false\"></label>\n",
            table_id);
    if (kinds) {
        fprintf(f, "<label>%s <select><option value=\"\">all</option>", kind_label);
        for (size_t i = 0; i < kind_count; i++) {
            fputs("<option>", f);
            text_escape(f, kinds[i]);
            fputs("</option>", f);
        }
        fputs("</select></label>\n", f);
    }
    fprintf(f, "<output>%zu of %zu rows</output>\n</div>\n", rows, rows);
}

void page_copied(FILE *f, const char *id, const char *label, bool wraps)
{
    fprintf(
        f, "<div class=\"copied\"><button type=\"button\" class=\"copy script\" data-copies=\"%s\" aria-label=\"Copy: ",
        id);
    text_escape(f, label);
    fprintf(f, "\">Copy</button>\n<pre id=\"%s\" tabindex=\"0\" role=\"region\"%s aria-label=\"", id,
            wraps ? " class=\"wraps\"" : "");
    text_escape(f, label);
    fputs("\">", f);
}

void page_copied_end(FILE *f)
{
    fputs("</pre></div>\n", f);
}
