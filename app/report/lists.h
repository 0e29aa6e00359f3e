/* Lists of files that a reader takes elsewhere: one a line, name and reason with a tabulator between. */
#ifndef TSR_APP_REPORT_LISTS_H
#define TSR_APP_REPORT_LISTS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A heading with the number of entries, then the list. With no entries the list is the word "None". */
void list_begin(FILE *f, const char *id, const char *title, size_t count);
/* Begins a line, which the caller ends. name may be NULL: the number stands for it. what may be NULL. */
void list_entry(FILE *f, const char *name, uint64_t number, const char *what);
/* One more column of the line; nothing if the text is empty. */
void list_more(FILE *f, const char *label, const char *text);
void list_end(FILE *f, size_t count);

#endif
