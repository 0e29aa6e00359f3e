/* Which names are taken: --include, --exclude, --files-from. */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inputs.h"

/* A pattern without ** : * and ? do not match a slash. */
static bool matches_whole(const char *pattern, const char *name)
{
    return fnmatch(pattern, name, strstr(pattern, "**") ? 0 : FNM_PATHNAME) == 0;
}

/* A pattern with a slash before its end is matched from the root of the layout if it begins with one, else from any
 * folder on. Another pattern is matched with the last name of the path. */
static bool matches(const char *pattern, const char *name)
{
    const char *const slash = strrchr(name, '/');
    if (pattern[0] == '/') return matches_whole(pattern + 1, name);
    if (!strchr(pattern, '/') && !strstr(pattern, "**")) return matches_whole(pattern, slash ? slash + 1 : name);
    for (const char *at = name; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL)
        if (matches_whole(pattern, at)) return true;
    return false;
}

/* A pattern with a slash at its end is for folders alone. */
static bool rule_matches(const struct filter_rule *rule, const char *name, bool is_folder)
{
    char pattern[4096];
    const size_t length = strlen(rule->pattern);
    const bool wants_folder = length > 1 && rule->pattern[length - 1] == '/';
    if ((wants_folder && !is_folder) || length >= sizeof pattern) return false;
    memcpy(pattern, rule->pattern, length + 1);
    if (wants_folder) pattern[length - 1] = '\0';
    return matches(pattern, name);
}

bool is_included(const struct options *options, const char *name, bool is_folder)
{
    for (size_t i = 0; i < options->filter_count; i++)
        if (rule_matches(&options->filters[i], name, is_folder)) return options->filters[i].includes;
    return true;
}

/* A file to its end, with a zero after it. */
static enum tsr_status read_all(const char *path, char **bytes, size_t *size, struct tsr_error *error)
{
    const bool is_stdin = strcmp(path, "-") == 0;
    FILE *const file = is_stdin ? stdin : fopen(path, "rb");
    if (is_stdin) path = "stdin";
    size_t capacity = 1 << 16;
    if (!file) return refuse(error, TSR_ERROR_READ, "cannot open %s: %s", path, strerror(errno));
    *size = 0;
    *bytes = malloc(capacity);
    for (size_t got = 1; *bytes && got > 0; *size += got) {
        if (capacity - *size < 2) {
            char *const grown = realloc(*bytes, capacity *= 2);
            if (!grown) free(*bytes);
            *bytes = grown;
            if (!grown) break;
        }
        got = fread(*bytes + *size, 1, capacity - *size - 1, file);
    }
    const bool failed = ferror(file);
    if (!is_stdin) fclose(file);
    if (!*bytes) return refuse(error, TSR_ERROR_LIMIT, "no memory for the names in %s", path);
    (*bytes)[*size] = '\0';
    if (!failed) return TSR_OK;
    free(*bytes);
    *bytes = NULL;
    return refuse(error, TSR_ERROR_READ, "cannot read %s: %s", path, strerror(errno));
}

enum tsr_status read_names(const struct options *options, char **names, size_t *size, struct tsr_error *error)
{
    const enum tsr_status status = read_all(options->files_from, names, size, error);
    if (status != TSR_OK) return status;
    if (!options->null_names)
        for (size_t i = 0; i < *size; i++)
            if ((*names)[i] == '\n') (*names)[i] = '\0';
    if (*size > 0 && (*names)[*size - 1] != '\0') ++*size; /* the zero that read_all wrote */
    return TSR_OK;
}
