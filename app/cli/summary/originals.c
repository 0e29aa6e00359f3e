/* May the originals be deleted? verbs/remove.c judges each; the line that answers is made here. */
#include <stdio.h>
#include <string.h>

#include "originals.h"

/* Originals that must stay for one reason, which is static. */
struct stay {
    const char *reason;
    size_t files;
};

enum { STAYS = 16 };

static size_t deletable, stay_count;
static struct stay stays[STAYS]; /* the last one: for other reasons, too */

void add_original(const struct outcome *outcome)
{
    if (!outcome->is_judged || outcome->removed) return;
    if (!outcome->kept) {
        deletable++;
        return;
    }
    size_t i = 0;
    while (i < stay_count && strcmp(stays[i].reason, outcome->kept) != 0) i++;
    if (i == STAYS) i--;
    if (i == stay_count) stays[stay_count++] = (struct stay){outcome->kept, 0};
    stays[i].files++;
}

size_t deletable_originals(void)
{
    return deletable;
}

void forget_originals(void)
{
    deletable = stay_count = 0;
}

bool judges_originals(const struct options *options, const struct tally *tally)
{
    const bool has_failed = tally->ended != TSR_OK || tally->unwritten != TSR_OK || tally->lacks_entries;
    return !has_failed && (options->verb == VERB_COMPRESS || options->verb == VERB_VERIFY);
}

static void say_count(char text[ORIGINALS_ROOM], const char **separator, size_t files, const char *reason)
{
    const size_t length = strlen(text);
    if (files > 0) snprintf(text + length, ORIGINALS_ROOM - length, "%s%zu (%s)", *separator, files, reason);
    if (files > 0) *separator = ", ";
}

void say_originals(const struct options *options, const struct task_list *list, const struct tally *tally,
                   char text[ORIGINALS_ROOM])
{
    const size_t beside = list->tsr_files - list->left_tsr_files; /* the others are among those not taken */
    const size_t others = tally->not_taken + list->excluded + beside;
    const bool is_all = deletable == tally->files && others == 0, is_one = tally->files == 1 && others == 0;
    const char *separator = "; to keep: ";
    text[0] = '\0';
    if (!judges_originals(options, tally) || options->archive.removes || deletable + stay_count == 0) return;
    if (is_one && !is_all)
        snprintf(text, ORIGINALS_ROOM, "the original must stay: %s", stays[0].reason);
    else if (is_one)
        snprintf(text, ORIGINALS_ROOM, "the original can be deleted");
    else if (is_all)
        snprintf(text, ORIGINALS_ROOM, "originals: all %zu can be deleted", deletable);
    else
        snprintf(text, ORIGINALS_ROOM, "originals: %zu of %zu can be deleted", deletable, tally->files);
    if (is_one) return;
    for (size_t i = 0; i < stay_count; i++) say_count(text, &separator, stays[i].files, stays[i].reason);
    say_count(text, &separator, tally->failed + tally->left, "failed, or not done");
    say_count(text, &separator, tally->not_taken, "not taken");
    say_count(text, &separator, beside, ".tsr files");
    say_count(text, &separator, list->excluded, options->in.shards > 0 ? "excluded, or of other shards" : "excluded");
}
