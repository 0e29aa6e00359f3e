/* The option table: one list of rows from which options are parsed and --help is printed. The command line and
 * tessera-bench each have one. What a program says of a wrong option goes to stderr, and begins with its name. */
#ifndef TSR_APP_CLI_OPTIONS_OPTION_TABLE_H
#define TSR_APP_CLI_OPTIONS_OPTION_TABLE_H

#include "app/tessera.h"

struct option;

/* Each program defines it. */
extern const char program_name[];

enum { QP_LIST_LIMIT = 16, NUMBERS_LIMIT = 32 };

/* A list of numbers from an option; a count of 0 stands for the default. */
struct numbers {
    int count;
    double value[NUMBERS_LIMIT];
};

/* An option. Without a name it is one of the letters -1 to -9, and its code is '1'. A row without verbs is a heading,
 * its help, of the rows that follow it. */
struct option_row {
    int code;             /* a letter, or a number above all characters for an option without a letter */
    const char *name;     /* long name, or NULL */
    const char *argument; /* the argument's name in the help, or NULL; in brackets: it may be left out */
    int verbs;            /* a bit for each verb that takes the option, and OFTEN */
    const char *help;
};

/* An option that is used much, among the verbs' bits. */
enum { OFTEN = 1 << 24 };

/* The rows of a verb, given by its bit, below their headings; with OFTEN beside that bit, those that are used much. */
void print_option_rows(const struct option_row *rows, int count, int verb);

/* The rows of a verb as getopt_long() wants them. letters has room for 9 + 2 * count characters, longs for count + 1
 * entries. */
void fill_getopt(const struct option_row *rows, int count, int verb, char *letters, struct option *longs);

/* Prints a sentence; format has one %s, for value. Returns TSR_ERROR_USAGE. */
enum tsr_status usage(const char *format, const char *value);

/* The parsers return false, or print a sentence and return TSR_ERROR_USAGE, where the text is not what they parse. */
bool parse_number(const char *text, double low, double high, double *value);
/* A number of units before a suffix of that many letters; false also where it rounds to 0. */
bool parse_units(const char *text, size_t suffix, double unit, uint64_t *count);
/* Bytes: 20000, 500k, 1.5M, 4GB (thousands), 64Ki, 2GiB (1024), in capitals or not. */
#define BYTES_FORMS "500k, 1.5M, 4G or 2GiB"
bool parse_bytes(const char *text, uint64_t *bytes);
enum tsr_status parse_numbers(const char *option, const char *text, double low, double high, struct numbers *numbers);
enum tsr_status parse_threads(const char *text, int *threads);
/* The argument of --qp: QPs with commas between them, here in eighths. */
enum tsr_status parse_qp_list(const char *text, int32_t qp[QP_LIST_LIMIT], int *count);

#endif
