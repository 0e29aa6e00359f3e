/* Which names are taken: --include, --exclude. */
#include <errno.h>
#include <fnmatch.h>
#include <stdatomic.h>
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

/* Rules behind the one that decides are looked at until each has matched something, so that it is known which never do.
 */
bool is_included(const struct input_options *in, const char *name, bool is_folder)
{
    bool is_decided = false, includes = true;
    for (size_t i = 0; i < in->filter_count; i++) {
        struct filter_rule *const rule = &in->filters[i];
        if (is_decided && atomic_load_explicit(&rule->matched, memory_order_relaxed)) continue;
        if (!rule_matches(rule, name, is_folder)) continue;
        atomic_store_explicit(&rule->matched, true, memory_order_relaxed);
        if (!is_decided) includes = rule->includes;
        if (!is_decided) atomic_store_explicit(&rule->decided, true, memory_order_relaxed);
        is_decided = true;
    }
    return includes;
}

/* Behind a folder's name at a glob's beginning, with the slash; NULL: it does not begin so. */
static const char *behind(const char *pattern, const char *folder)
{
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/') length--;
    const bool begins = length > 0 && strncmp(pattern, folder, length) == 0 && pattern[length] == '/';
    return begins && pattern[length + 1] ? pattern + length : NULL;
}

/* Where a glob begins with a folder as it was named, or with its last name, what it would have to be; else NULL. */
static const char *without_folder(const struct input_options *in, const char *pattern)
{
    for (int i = 0; i < in->count; i++) {
        const char *last = in->names[i], *rest = behind(pattern, last);
        for (const char *at = last; *at; at++)
            if (*at == '/' && at[1] && at[1] != '/') last = at + 1;
        if (!rest) rest = behind(pattern, last);
        if (rest) return rest;
    }
    return NULL;
}

/* Rules for all names, which begin and end lists of rules, say nothing of what there is. */
static bool is_for_all(const char *pattern)
{
    return strspn(pattern, "*/") == strlen(pattern);
}

void say_unmatched(const struct input_options *in)
{
    for (size_t i = 0; i < in->filter_count; i++) {
        const struct filter_rule *const rule = &in->filters[i];
        const char *const option = rule->includes ? "--include" : "--exclude", *const rest =
                                                                                   without_folder(in, rule->pattern);
        if (rule->decided || is_for_all(rule->pattern)) continue;
        fprintf(stderr, "tessera: %s '%s' ", option, shown(rule->pattern));
        if (rule->matched)
            fprintf(stderr, "changes nothing: an earlier --include or --exclude matches the same names\n");
        else if (rest)
            fprintf(stderr, "matched nothing; globs are matched below the named folder: did you mean %s '%s'?\n",
                    option, shown(rest));
        else
            fprintf(stderr, "matched nothing\n");
    }
}
