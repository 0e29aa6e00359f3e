/* The option table. See option_table.h. */
#include "option_table.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/cli/words/shown.h"

static bool is_letter(const struct option_row *row)
{
    return row->code < 256;
}

/* Texts of options begin in this column of lines that have at most so many. */
enum { TEXT_COLUMN = 28, COLUMNS = 80 };

/* A text that goes on in further lines below its beginning. column: where the line stands. */
static void print_wrapped(const char *text, size_t column)
{
    if (column + 1 > TEXT_COLUMN) printf("\n"), column = 0;
    printf("%*s", (int)(TEXT_COLUMN - column), "");
    column = TEXT_COLUMN;
    for (size_t length; *text; text += length, text += strspn(text, " ")) {
        length = strcspn(text, " ");
        if (column > TEXT_COLUMN && column + 1 + length > COLUMNS) {
            printf("\n%*s", TEXT_COLUMN, "");
            column = TEXT_COLUMN;
        }
        column += (size_t)printf("%s%.*s", column > TEXT_COLUMN ? " " : "", (int)length, text);
    }
    printf("\n");
}

void print_option_rows(const struct option_row *rows, int count, int verb)
{
    const char *heading = NULL;
    for (const struct option_row *row = rows; row < rows + count; row++) {
        char flags[64];
        if (!row->verbs) heading = row->help;
        if ((row->verbs & verb) != verb) continue;
        if (heading) printf("\n%s\n", heading);
        heading = NULL;
        const bool is_optional = row->argument && row->argument[0] == '[';
        size_t used = (size_t)snprintf(flags, sizeof flags, is_letter(row) ? "  -%c%s" : "      ", row->code,
                                       row->name ? ", " : " ..");
        used += (size_t)snprintf(flags + used, sizeof flags - used, "%s%s%s%s", row->name ? "--" : "",
                                 row->name ? row->name : "", row->argument && !is_optional ? " " : "",
                                 row->argument ? row->argument : "");
        printf("%s", flags);
        print_wrapped(row->help, used);
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
    fprintf(stderr, format, shown(value));
    fprintf(stderr, "\n");
    return TSR_ERROR_USAGE;
}

bool parse_number(const char *text, double low, double high, double *value)
{
    char *end;
    errno = 0;
    *value = strtod(text, &end);
    const bool is_hexadecimal = strpbrk(text, "xX") != NULL;
    return errno == 0 && end != text && *end == '\0' && !is_hexadecimal && *value >= low && *value <= high;
}

bool parse_units(const char *text, size_t suffix, double unit, uint64_t *count)
{
    const double most = 1e18;
    char number[32];
    double value;
    const size_t length = strlen(text) - suffix;
    snprintf(number, sizeof number, "%.*s", (int)length, text);
    if (length >= sizeof number || !parse_number(number, 0, most, &value)) return false;
    if (value * unit > most || llround(value * unit) < 1) return false;
    *count = (uint64_t)llround(value * unit);
    return true;
}

bool parse_bytes(const char *text, uint64_t *bytes)
{
    static const char letters[] = "kmgt";
    const size_t length = strlen(text);
    size_t suffix = length > 0 && (text[length - 1] == 'B' || text[length - 1] == 'b');
    const bool is_binary = length > suffix && (text[length - suffix - 1] == 'i' || text[length - suffix - 1] == 'I');
    suffix += is_binary;
    const int letter = length > suffix ? tolower((unsigned char)text[length - suffix - 1]) : 0;
    const char *const found = letter ? strchr(letters, letter) : NULL;
    if (is_binary && !found) return false;
    const int power = found ? (int)(found - letters) + 1 : 0;
    return parse_units(text, suffix + (found != NULL), pow(is_binary ? 1024 : 1000, power), bytes);
}

enum tsr_status parse_numbers(const char *option, const char *text, double low, double high, struct numbers *numbers)
{
    char *copy = strdup(text), *rest = copy, *word;
    bool good = copy != NULL;
    numbers->count = 0;
    while (good && (word = strsep(&rest, ","))) {
        good = numbers->count < NUMBERS_LIMIT && parse_number(word, low, high, &numbers->value[numbers->count]);
        numbers->count += good;
    }
    free(copy);
    if (good) return TSR_OK;
    fprintf(stderr, "%s: %s wants up to %d numbers, %g to %g, with commas between them, not '%s'\n", program_name,
            option, NUMBERS_LIMIT, low, high, shown(text));
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
    char *copy = strdup(text), *rest = copy, *word;
    enum tsr_status status = copy ? TSR_OK : TSR_ERROR_LIMIT;
    *count = 0;
    while (status == TSR_OK && (word = strsep(&rest, ","))) {
        double number;
        if (*count == QP_LIST_LIMIT || !parse_number(word, -48, 51, &number) || fmod(number * TSR_QP_UNIT, 1) != 0)
            status = usage("--qp wants -48 to 51 in steps of 0.125, not '%s'", word);
        else
            qp[(*count)++] = (int32_t)(number * TSR_QP_UNIT);
    }
    free(copy);
    return status;
}
