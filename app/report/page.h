/* Pages: one HTML file each, with its style and script in it. Nothing is loaded from elsewhere, and a content security
 * policy in the page has the browser enforce that. Without script a page still shows all but the views. */
#ifndef TSR_APP_REPORT_PAGE_H
#define TSR_APP_REPORT_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* page.css and page.js. */
extern const unsigned char page_css[], page_js[];
extern const size_t page_css_size, page_js_size;

/* No page is longer than this, in bytes. */
enum { PAGE_LIMIT = 20 * 1000 * 1000 };

struct page_link {
    const char *id, *text;
};

/* Everything up to the main part. links end with a NULL id, and lead to sections. */
void page_begin(FILE *f, const char *title, const struct page_link *links);
void page_end(FILE *f, const char *version);

void page_section(FILE *f, const char *id, const char *title);
void page_section_end(FILE *f);

/* A table in a box that scrolls sideways. label: what it is, for readers that hear it. */
void page_table(FILE *f, const char *label, const char *classes, const char *id);
void page_table_end(FILE *f);

/* A column's head. Words go to the left, numbers to the right. sorts: its button sorts the table. */
void page_head(FILE *f, const char *text, bool is_number, bool sorts);

/* Cells. A number's data-v is what it is sorted by. */
void page_cell(FILE *f, const char *text);
void page_cell_count(FILE *f, uint64_t value);
void page_cell_bytes(FILE *f, uint64_t bytes);
void page_cell_number(FILE *f, double sorts_as, const char *text, bool is_best);
void page_cell_none(FILE *f, const char *why);

/* The controls over a table: a filter by words, and one by the values of a row's data-kind. kinds may be NULL. */
void page_filters(FILE *f, const char *table_id, const char *kind_label, const char *const *kinds, size_t kind_count,
                  size_t rows);

/* A block of text with a button that copies it. Its text follows, then page_copied_end. */
void page_copied(FILE *f, const char *id, const char *label, bool wraps);
void page_copied_end(FILE *f);

#endif
