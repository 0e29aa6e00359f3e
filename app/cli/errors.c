/* Errors: of the command line's own, and the library's in its words. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"

/* What the library calls an argument, and the command line a flag. */
static const struct {
    const char *argument, *flag;
} flags[] = {
    {NOT_OVERWRITTEN, " and may be the only copy of what it holds: rename it, or name another output"},
    {"the sink's descriptor", "stdout"},
    {"give a shorter name", "give a shorter name with -o"},
    {"(allow_lossy is not set)", "(--allow-lossy does it)"},
    {"(lossless_rest was not set)", "(--lossless-rest makes one)"},
    {"(roi is set)", "(--roi is given)"},
    {"(first is set)", "(--first is given)"},
    {"memory_bytes of ", "--memory "},
    {"take fewer threads", "lower -T"},
    {"it needs its key", "give its key by --key KEYFILE (compress: --encrypt), or by TESSERA_KEYFILE"},
    {"it needs its passphrase", "give its passphrase by --passphrase-file FILE"},
};

/* What the user can do about a folder that he has not named. */
static void name_folder(struct tsr_error *error)
{
    static const char remedy[] = "; set TMPDIR to another";
    const size_t length = strlen(error->text);
    if (error->status != TSR_ERROR_WRITE || !strstr(error->text, " a temporary file in ")) return;
    if (strstr(error->text, remedy) || length + sizeof remedy > sizeof error->text) return;
    memcpy(error->text + length, remedy, sizeof remedy);
}

/* At the end of a sentence, after the names of files. */
void name_flags(struct tsr_error *error)
{
    name_folder(error);
    char tail[sizeof error->text];
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        char *found = NULL;
        for (char *at = error->text; (at = strstr(at, flags[i].argument)); at++) found = at;
        if (!found) continue;
        snprintf(tail, sizeof tail, "%s%s", flags[i].flag, found + strlen(flags[i].argument));
        snprintf(found, sizeof error->text - (size_t)(found - error->text), "%s", tail);
    }
}

const char *find_name(const char *text, const char *name)
{
    static const char ends[] = " :,;'()";
    const size_t length = strlen(name);
    for (const char *at = text; length > 0 && (at = strstr(at, name)); at++) {
        const bool begins = at == text || strchr(ends, at[-1]);
        if (begins && (!at[length] || strchr(ends, at[length]))) return at;
    }
    return NULL;
}

/* Whether a sentence names a file. What is a word of the sentence may be no name: a name ends with a colon then, or is
 * the first. */
static bool names(const char *text, const char *name)
{
    const char *found = find_name(text, name);
    const size_t length = strlen(name);
    if (strspn(name, "abcdefghijklmnopqrstuvwxyz") < length) return found;
    while (found && found > text && found[length] != ':') found = find_name(found + length, name);
    return found;
}

/* A name in a sentence, of which the rest is escaped when it is said. */
static const char *seen_name(const char *name)
{
    return is_blank(name) ? shown_bare(name) : name;
}

void name_file(struct tsr_error *error, const char *file, const char *member)
{
    char text[sizeof error->text];
    const enum tsr_status status = error->status; /* sentences about outputs name these */
    if (status == TSR_ERROR_EXISTS || status == TSR_ERROR_WRITE || status == TSR_ERROR_SAME_FILE) return;
    const char *const seen = seen_name(file), *const seen_member = member ? seen_name(member) : NULL;
    const size_t length = strlen(file);
    const bool begins = strncmp(error->text, file, length) == 0 && error->text[length] == ' ';
    if (names(error->text, seen) && (!member || names(error->text, seen_member))) return;
    snprintf(text, sizeof text, "%s", error->text);
    if (begins) /* of the file of the series, the sentence says what is true of the member */
        snprintf(error->text, sizeof error->text, "%.100s%s%.100s%.300s", member ? seen_member : "",
                 member ? " in " : "", seen, text + length);
    else if (member)
        snprintf(error->text, sizeof error->text, "%.100s in %.100s: %.300s", seen_member, seen, text);
    else
        snprintf(error->text, sizeof error->text, "%.200s: %.300s", seen, text);
}

bool lacks_module(const struct tsr_error *error)
{
    return strstr(error->text, "needs Tessera's module for DICOM") != NULL;
}

/* What stands behind a sentence: an offset is said once. */
static const char *offset_of(const struct tsr_error *error, char text[48])
{
    snprintf(text, 48, "byte %llu", (unsigned long long)error->offset);
    if (error->offset == TSR_NO_OFFSET || strstr(error->text, text)) return "";
    snprintf(text, 48, " (byte %llu)", (unsigned long long)error->offset);
    return text;
}

void say_error(const struct tsr_error *error)
{
    char offset[48];
    fprintf(stderr, "tessera: %s%s\n", shown(error->text), offset_of(error, offset));
}

void say_failure(const struct outcome *outcome)
{
    char offset[48];
    if (outcome->is_counted)
        log_alone("tessera: %s%s", shown(outcome->error.text), offset_of(&outcome->error, offset));
    else
        say_error(&outcome->error);
}

enum tsr_status refuse(struct tsr_error *error, enum tsr_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    error->status = status;
    error->offset = TSR_NO_OFFSET;
    error->system = 0;
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    return status;
}

enum tsr_status refuse_task(struct tsr_error *error, const struct task *task)
{
    const char *const reason = task->reason ? task->reason : tsr_status_name(task->status);
    const char *const seen = seen_name(task->input);
    return find_name(reason, seen) ? refuse(error, task->status, "%s", reason)
                                   : refuse(error, task->status, "%s: %s", seen, reason);
}
