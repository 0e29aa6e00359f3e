/* How a report was made; see origin.h. */
#include "origin.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "app/cli/json.h"

static double begin_s;

static void write_time(char text[32])
{
    const time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

/* ---- The machine ------------------------------------------------------------------------------------------ */

/* The value of a field of /proc/cpuinfo, of the first processor. To be freed; NULL: there is none. */
static char *cpu_field(const char *field)
{
    FILE *const file = fopen("/proc/cpuinfo", "r");
    char *line = NULL, *value = NULL;
    size_t capacity = 0;
    while (file && !value && getline(&line, &capacity, file) > 0) {
        char *const colon = strchr(line, ':');
        if (strncmp(line, field, strlen(field)) != 0 || !colon) continue;
        colon[strcspn(colon, "\n")] = '\0';
        value = strdup(colon + 1 + strspn(colon + 1, " "));
    }
    free(line);
    if (file) fclose(file);
    return value;
}

/* The instruction sets that have forms of their own here, and that this run may use. */
static const char *instruction_sets(void)
{
    char *const flags = cpu_field("flags");
    const char *const limit = getenv("TESSERA_ISA");
    const bool may_avx2 = !limit || strcmp(limit, "plain") != 0;
    const bool may_avx512 = may_avx2 && (!limit || strcmp(limit, "avx2") != 0);
    const char *name = flags ? "x86-64" : "plain C";
    if (flags && strstr(flags, " avx2") && may_avx2) name = "AVX2";
    if (flags && strstr(flags, " avx512bw") && may_avx512) name = "AVX2, AVX-512";
    free(flags);
    return name;
}

static const char *machine_name(void)
{
    char *const model = cpu_field("model name");
    return model ? model : strdup("unknown processor");
}

/* ---- The command ------------------------------------------------------------------------------------------ */

static bool is_plain(const char *word)
{
    for (; *word; word++)
        if (!isalnum((unsigned char)*word) && !strchr("-_./=,:%+@", *word)) return false;
    return true;
}

/* Adds a word as a shell would take it. */
static void add_word(FILE *text, const char *word)
{
    putc(' ', text);
    if (word[0] && is_plain(word)) {
        fputs(word, text);
        return;
    }
    putc('\'', text);
    for (; *word; word++) {
        if (*word == '\'')
            fputs("'\\''", text);
        else
            putc(*word, text);
    }
    putc('\'', text);
}

/* Whether an option's value is a name, or has names in it: not a number or one of a list of words. */
static bool names_something(const struct option_row *row)
{
    static const char *const plain[] = {"N", "N,N,...", "N%", "N|N%", "DB", "BYTES", "BYTES|N:1", "I/N|auto"};
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        if (strcmp(row->argument, plain[i]) == 0) return false;
    return isupper((unsigned char)row->argument[0]);
}

/* One word of the command; *value: the option whose value the next word is. */
static void add_hidden(FILE *text, const char *word, const struct option_row **value, bool *has_input)
{
    const struct option_row *const before = *value, *const row = word[0] == '-' ? find_option(word) : NULL;
    const char *const equals = strchr(word, '=');
    *value = NULL;
    if (before) {
        add_word(text, names_something(before) ? "..." : word);
    } else if (row && row->argument && (equals || word[1] != '-')) {
        const int head = equals ? (int)(equals - word) + 1 : 2;
        fprintf(text, " %.*s%s", head, word, equals || word[2] ? names_something(row) ? "..." : word + head : "");
        if (!equals && !word[2]) *value = row;
    } else if (row) {
        add_word(text, word);
        if (row->argument && row->argument[0] != '[') *value = row;
    } else if (word[0] == '-' && word[1] && word[1] != '-') {
        add_word(text, word); /* several letters */
    } else if (!*has_input) {
        add_word(text, "IN...");
        *has_input = true;
    }
}

static char *describe_command(const struct options *options, bool is_identified)
{
    char *command = NULL;
    size_t size;
    const struct option_row *value = NULL;
    bool has_input = false;
    FILE *const text = open_memstream(&command, &size);
    if (!text) return NULL;
    fprintf(text, "tessera %s", verb_name(options->verb));
    for (int i = 0; i < options->talk.word_count; i++) {
        if (is_identified)
            add_word(text, options->talk.words[i]);
        else
            add_hidden(text, options->talk.words[i], &value, &has_input);
    }
    if (fclose(text) == 0) return command;
    free(command);
    return NULL;
}

/* ---- Where ------------------------------------------------------------------------------------------------ */

/* A text without bytes that are not UTF-8; to be freed. */
static char *as_text(char *bytes)
{
    bool changed;
    char *const text = bytes ? copy_as_utf8(bytes, &changed) : NULL;
    free(bytes);
    return text;
}

static const char *host_name(void)
{
    char name[256] = "";
    return gethostname(name, sizeof name - 1) == 0 ? as_text(strdup(name)) : NULL;
}

/* The whole path of a name, or the name where it leads nowhere yet. */
static void add_path(FILE *text, const char *name)
{
    char *const whole = realpath(name, NULL);
    fputs(whole ? whole : name, text);
    free(whole);
}

static const char *whole_path(const char *name)
{
    char *path = NULL;
    size_t size;
    FILE *const text = name ? open_memstream(&path, &size) : NULL;
    if (!text) return NULL;
    add_path(text, name);
    fclose(text);
    return as_text(path);
}

static const char *describe_inputs(const struct options *options)
{
    enum { INPUTS_LIMIT = 10 };
    char *paths = NULL;
    size_t size;
    FILE *const text = options->in.count > 0 ? open_memstream(&paths, &size) : NULL;
    if (!text) return NULL;
    for (int i = 0; i < options->in.count && i < INPUTS_LIMIT; i++) {
        if (i > 0) fputs(", ", text);
        add_path(text, options->in.names[i]);
    }
    if (options->in.count > INPUTS_LIMIT) fprintf(text, " and %d more", options->in.count - INPUTS_LIMIT);
    fclose(text);
    return as_text(paths);
}

/* ---- Both ends -------------------------------------------------------------------------------------------- */

void begin_origin(const struct options *options, bool is_identified, struct report_origin *origin)
{
    char *const command = describe_command(options, is_identified);
    *origin = (struct report_origin){.version = tsr_version(), .format_version = tsr_format_version()};
    origin->command = command;
    origin->machine = machine_name();
    origin->instruction_sets = instruction_sets();
    origin->cores = tsr_available_threads();
    write_time(origin->started);
    if (is_identified) { /* folders may be called as patients are */
        origin->host = host_name();
        origin->folder = whole_path(".");
        origin->inputs = describe_inputs(options);
        origin->output = whole_path(options->series.path ? options->series.path : options->out.path);
    }
    begin_s = wall_seconds();
}

void end_origin(struct report_origin *origin)
{
    write_time(origin->ended);
    origin->wall_s = wall_seconds() - begin_s;
}

void free_origin(struct report_origin *origin)
{
    const char *const texts[] = {origin->command, origin->machine, origin->host,
                                 origin->folder,  origin->inputs,  origin->output};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) free((char *)(uintptr_t)texts[i]);
    *origin = (struct report_origin){0};
}
