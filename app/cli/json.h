/* JSON lines: one object a line, in UTF-8, on stdout. */
#ifndef TSR_APP_CLI_JSON_H
#define TSR_APP_CLI_JSON_H

#include <cjson/cJSON.h>

#include "tessera.h"
#include <stdbool.h>
#include <stdio.h>

/* Prints the object on a line, and frees it. What no reader sees, as marks that turn the direction, is escaped. */
void print_json_line(cJSON *object);
void print_json_to(FILE *to, cJSON *object);

/* The object as text, to be freed; NULL: no memory. Frees the object. */
char *json_text(cJSON *object);

/* Prints an object whose first fields are a text by json_text and whose others are in rest, which is freed. Both have
 * fields. */
void print_json_joined(const char *first, cJSON *rest);

/* A number, or null where it does not apply. */
void add_number(cJSON *object, const char *field, bool applies, double value);

/* Yes or no, or null where it does not apply. */
void add_truth(cJSON *object, const char *field, bool applies, bool value);

/* A copy of a text in UTF-8, with U+FFFD in the place of each byte that is not; *changed: there was one. To be freed;
 * NULL: no memory. */
char *copy_as_utf8(const char *text, bool *changed);

/* A text, or null where it is NULL or empty. */
void add_text(cJSON *object, const char *field, const char *value);

/* A name of a file: any bytes. Where they are not UTF-8, the field has U+FFFD in their place, and a field of the same
 * name with _hex at its end has all bytes in hexadecimal. */
void add_name(cJSON *object, const char *field, const char *name);

/* How windows came through a loss; null where none was measured. */
void add_windows(cJSON *object, const struct tsr_window_loss *windows, uint32_t count);
/* verbs/report.c: ranges of values, or null if there are none. */
/* The loss of a base, where there is one; and what comes back as it was: list, of exact->rectangles, may be NULL. */
void add_base_loss(cJSON *object, double psnr_db, int64_t max_error);
void add_exact(cJSON *object, const struct tsr_exact *exact, const struct tsr_region *list);
void add_kept(cJSON *object, const struct tsr_stored_values *kept, uint32_t count);

#endif
