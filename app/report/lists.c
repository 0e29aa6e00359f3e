/* Lists of files. See lists.h. */
#include "lists.h"
#include "page.h"
#include "text/text.h"

void list_begin(FILE *f, const char *id, const char *title, size_t count)
{
    char number[TEXT_NUMBER];
    fprintf(f, "<h3>%s: %s</h3>\n", title, count ? text_count(number, count) : "none");
    if (count > 0) page_copied(f, id, title, false);
}

void list_entry(FILE *f, const char *name, uint64_t number, const char *what)
{
    if (name)
        text_escape(f, name);
    else
        fprintf(f, "no. %llu", (unsigned long long)number);
    list_more(f, "", what);
}

void list_more(FILE *f, const char *label, const char *text)
{
    if (!text || !*text) return;
    fprintf(f, "\t%s", label);
    text_escape(f, text);
}

void list_end(FILE *f, size_t count)
{
    if (count > 0) page_copied_end(f);
}
