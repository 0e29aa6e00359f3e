/* The option table. See option_table.h. */
#include "option_table.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_letter(const struct option_row *row)
{
    return row->code < 256;
}

void print_option_rows(const struct option_row *rows, int count, int verb)
{
    for (const struct option_row *row = rows; row < rows + count; row++) {
        char flags[64];
        if (!(row->verbs & verb)) continue;
        if (!row->name) {
            printf("  -%c .. %-26s %s\n", row->code, row->argument, row->help);
            continue;
        }
        const int letter =
            is_letter(row) ? snprintf(flags, sizeof flags, "-%c, ", row->code) : snprintf(flags, sizeof flags, "    ");
        const bool is_optional = row->argument && row->argument[0] == '[';
        snprintf(flags + letter, sizeof flags - (size_t)letter, "--%s%s%s", row->name,
                 row->argument && !is_optional ? " " : "", row->argument ? row->argument : "");
        printf("  %-32s %s\n", flags, row->help);
    }
}

void fill_getopt(const struct option_row *rows, int count, int verb, char *letters, struct option *longs)
{
    size_t used = 0;
    int named = 0;
    for (const struct option_row *row = rows; row < rows + count; row++) {
        if (!(row->verbs & verb)) continue;
        for (char effort = '1'; !row->name && effort <= '9'; effort++) letters[used++] = effort;
        if (is_letter(row) && row->name) {
            letters[used++] = (char)row->code;
            if (row->argument) letters[used++] = ':';
        }
        if (row->name)
            longs[named++] = (struct option){row->name,
                                             !row->argument            ? no_argument
                                             : row->argument[0] == '[' ? optional_argument
                                                                       : required_argument,
                                             NULL, row->code};
    }
    letters[used] = '\0';
    longs[named] = (struct option){NULL, 0, NULL, 0};
}

enum tsr_status usage(const char *format, const char *value)
{
    fprintf(stderr, "%s: ", program_name);
    fprintf(stderr, format, value);
    fprintf(stderr, "\n");
    return TSR_ERROR_USAGE;
}

bool parse_number(const char *text, double low, double high, double *value)
{
    char *end;
    errno = 0;
    *value = strtod(text, &end);
    return errno == 0 && end != text && *end == '\0' && *value >= low && *value <= high;
}

enum tsr_status parse_numbers(const char *option, const char *text, double low, double high, struct numbers *numbers)
{
    char *copy = strdup(text), *rest = copy, *item;
    bool good = copy != NULL;
    numbers->count = 0;
    while (good && (item = strsep(&rest, ","))) {
        good = numbers->count < NUMBERS_LIMIT && parse_number(item, low, high, &numbers->value[numbers->count]);
        numbers->count += good;
    }
    free(copy);
    if (good) return TSR_OK;
    fprintf(stderr, "%s: %s wants up to %d numbers, %g to %g, with commas between them, not '%s'\n", program_name,
            option, NUMBERS_LIMIT, low, high, text);
    return TSR_ERROR_USAGE;
}

enum tsr_status parse_threads(const char *text, int *threads)
{
    double number;
    if (!parse_number(text, 1, 1024, &number) || number != floor(number))
        return usage("-T wants a number of threads, 1 to 1024, not '%s'", text);
    *threads = (int)number;
    return TSR_OK;
}

enum tsr_status parse_qp_list(const char *text, int32_t qp[QP_LIST_LIMIT], int *count)
{
    char *copy = strdup(text), *rest = copy, *item;
    enum tsr_status status = copy ? TSR_OK : TSR_ERROR_LIMIT;
    *count = 0;
    while (status == TSR_OK && (item = strsep(&rest, ","))) {
        double number;
        if (*count == QP_LIST_LIMIT || !parse_number(item, -48, 51, &number) || fmod(number * TSR_QP_UNIT, 1) != 0)
            status = usage("--qp wants -48 to 51 in steps of 0.125, not '%s'", item);
        else
            qp[(*count)++] = (int32_t)(number * TSR_QP_UNIT);
    }
    free(copy);
    return status;
}
