/* Lists that grow; and lists that others have written: names, lines of JSON, manifests. They may be endless, or no list
 * at all. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inputs.h"

bool grow_list(void *entries, size_t count, size_t *capacity, size_t size)
{
    void *old;
    if (count < *capacity) return true;
    const size_t wanted = *capacity ? 2 * *capacity : 64;
    memcpy(&old, entries, sizeof old);
    void *const grown = realloc(old, wanted * size);
    if (!grown) return false;
    memcpy(entries, &grown, sizeof grown);
    *capacity = wanted;
    return true;
}

uint64_t memory_limit(const struct machine_options *machine)
{
    return machine->memory > 0 ? machine->memory : tsr_available_memory() / 4;
}

enum tsr_status open_lines(const char *path, size_t most, struct lines *lines, struct tsr_error *error)
{
    const bool is_stdin = strcmp(path, "-") == 0;
    *lines = (struct lines){.path = is_stdin ? "stdin" : path, .most = most, .end = '\n', .advice = "no name has"};
    lines->file = is_stdin ? stdin : fopen(path, "rb");
    if (lines->file) return TSR_OK;
    return refuse(error, TSR_ERROR_READ, "cannot open %s: %s", path, strerror(errno));
}

static bool put_byte(struct lines *lines, char byte)
{
    if (!grow_list(&lines->line, lines->length, &lines->capacity, 1)) return false;
    lines->line[lines->length++] = byte;
    return true;
}

static enum tsr_status fail_length(const struct lines *lines, struct tsr_error *error)
{
    return refuse(error, TSR_ERROR_LIMIT, "line %zu of %s has more than %zu bytes: %s", lines->number, lines->path,
                  lines->most, lines->advice);
}

enum tsr_status next_line(struct lines *lines, bool *is_line, struct tsr_error *error)
{
    int byte = 0;
    lines->length = 0;
    lines->number++;
    lines->has_end = false;
    bool has_memory = true;
    while (has_memory && !lines->has_end && (byte = getc_unlocked(lines->file)) != EOF) {
        lines->has_end = byte == lines->end;
        if (lines->length == lines->most && !lines->has_end) return fail_length(lines, error);
        if (!lines->has_end) has_memory = put_byte(lines, (char)byte);
    }
    *is_line = lines->length > 0 || lines->has_end;
    if (!has_memory || !put_byte(lines, '\0'))
        return refuse(error, TSR_ERROR_LIMIT, "no memory for line %zu of %s", lines->number, lines->path);
    lines->length--;
    return ferror(lines->file) ? refuse(error, TSR_ERROR_READ, "cannot read %s: %s", lines->path, strerror(errno))
                               : TSR_OK;
}

void close_lines(struct lines *lines)
{
    if (lines->file && lines->file != stdin) fclose(lines->file);
    free(lines->line);
    *lines = (struct lines){0};
}

bool take_share(uint64_t *left, uint64_t bytes)
{
    const bool is_there = bytes <= *left;
    *left = is_there ? *left - bytes : 0;
    return is_there;
}

enum tsr_status read_names(const struct options *options, bool (*take)(void *context, const char *name), void *context,
                           struct tsr_error *error)
{
    /* What a name takes until its file is done: names of its input, its output and its place, and numbers. Measured:
     * 776 bytes for a name of one byte, 1113 for 56. */
    enum { NAME_BYTES = 768, COPIES = 6, EMPTY_BYTES = 16 }; /* EMPTY_BYTES: so that an endless list ends soon */
    const uint64_t limit = memory_limit(&options->machine) / 4;
    uint64_t left = limit;
    struct lines lines;
    bool is_line = true, goes_on = true;
    enum tsr_status status = open_lines(options->in.files_from, NAME_LIMIT, &lines, error);
    if (options->in.null_names) lines.end = '\0';
    while (status == TSR_OK && goes_on && (status = next_line(&lines, &is_line, error)) == TSR_OK && is_line) {
        /* a zero ends a name in lines, too */
        for (size_t at = 0; goes_on && status == TSR_OK && at <= lines.length; at += strlen(lines.line + at) + 1) {
            const char *const name = lines.line + at;
            if (!take_share(&left, name[0] ? NAME_BYTES + COPIES * (uint64_t)strlen(name) : EMPTY_BYTES))
                status = refuse(error, TSR_ERROR_LIMIT,
                                "the names in %s take more than %llu MB, a quarter of the memory: give fewer at a "
                                "time, or more --memory",
                                lines.path, (unsigned long long)(limit / 1000000));
            else if (name[0])
                goes_on = take(context, name);
        }
    }
    close_lines(&lines);
    return status;
}
