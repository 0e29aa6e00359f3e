/* Whether a run is well; see verdict.h. */
#include "verdict.h"

#include <stdio.h>
#include <string.h>

static bool is_empty(const struct tally *t)
{
    return t->files == 0 && !t->may_be_empty;
}

enum verdict judge(const struct tally *t)
{
    if (t->ended != TSR_OK || t->failed > 0 || t->left > 0 || is_empty(t) || t->lacks_entries || t->unwritten != TSR_OK)
        return VERDICT_FAIL;
    return t->unproven > 0 ? VERDICT_UNPROVEN : VERDICT_PASS;
}

enum tsr_status verdict_status(const struct tally *t)
{
    if (t->ended != TSR_OK) return t->ended;
    if (is_empty(t)) return TSR_ERROR_NO_INPUT;
    if (t->failed > 0 || t->left > 0) return t->files == 1 && t->only != TSR_OK ? t->only : TSR_ERROR_PARTIAL;
    return t->lacks_entries ? TSR_ERROR_PARTIAL : t->unwritten;
}

const char *verdict_word(enum verdict verdict)
{
    static const char *const words[] = {"PASS", "NOT PROVEN", "FAIL"};
    return words[verdict];
}

const char *verdict_name(enum verdict verdict)
{
    static const char *const names[] = {"pass", "unproven", "fail"};
    return names[verdict];
}

/* One more clause, after a comma. */
static void add_clause(char text[VERDICT_ROOM], const char *clause)
{
    const size_t used = strlen(text);
    snprintf(text + used, VERDICT_ROOM - used, "%s%s", used > 0 ? ", " : "", clause);
}

static void add_count(char text[VERDICT_ROOM], size_t count, const char *one, const char *more)
{
    char clause[80];
    if (count == 0) return;
    snprintf(clause, sizeof clause, "%zu %s", count, count == 1 ? one : more);
    add_clause(text, clause);
}

void explain_verdict(const struct tally *t, char text[VERDICT_ROOM])
{
    text[0] = '\0';
    if (t->ended == TSR_ERROR_NO_INPUT || (t->ended == TSR_OK && is_empty(t)))
        add_clause(text, "no input was found");
    else if (t->ended != TSR_OK)
        add_clause(text, t->files > 0 ? "the run did not come to its end" : "the run did not begin");
    add_count(text, t->failed, "file failed", "files failed");
    add_count(text, t->left, "file is not done", "files are not done");
    if (t->lacks_entries) add_clause(text, "the manifest is not complete");
    if (t->unwritten != TSR_OK) add_clause(text, "the manifest or the report was not written");
    add_count(text, t->unproven, "file was not proven", "files were not proven");
    add_count(text, t->not_taken, "name was not taken", "names were not taken");
    add_count(text, t->damaged, "original looks damaged", "originals look damaged");
    add_count(text, t->kept, "original was kept", "originals were kept");
}

void say_verdict(const struct tally *t, char text[VERDICT_ROOM])
{
    char why[VERDICT_ROOM];
    explain_verdict(t, why);
    snprintf(text, VERDICT_ROOM, "%s%s%.300s", verdict_word(judge(t)), why[0] ? ", " : "", why);
}
