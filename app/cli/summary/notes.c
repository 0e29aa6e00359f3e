/* Files of which there is something to say; see notes.h. */
#include "notes.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Most names of a reason, and most reasons of a list, in the short form. */
enum { NAMES_LIMIT = 3, REASONS_LIMIT = 8 };

/* What is said of one file, and of several. */
static const struct list {
    const char *one, *more;
} lists[NOTE_KINDS] = {
    [NOTE_EXCEPTION] = {"coded otherwise", "coded otherwise"},
    [NOTE_LEFT_OUT] = {"exported with less", "exported with less"},
    [NOTE_CODED] = {"coded, but not as samples", "coded, but not as samples"},
    [NOTE_ARCHIVE] = {"archive", "archives"},
    [NOTE_STORED] = {"stored", "stored"},
    [NOTE_FALLBACK] = {"file by the CPU engine", "files by the CPU engine"},
    [NOTE_DAMAGED] = {"original looks damaged", "originals look damaged"},
    [NOTE_KEPT] = {"kept original", "kept originals"},
    [NOTE_REFERRED] = {"lossy original with references", "lossy originals with references"},
    [NOTE_NOT_TAKEN] = {"name not taken", "names not taken"},
};

/* Each reason is kept once. */
struct reason {
    char *text;
    size_t count[NOTE_KINDS];
};

struct note {
    char *file;
    const struct reason *reason;
    enum note_kind kind;
    size_t order;
};

static struct {
    void *reasons; /* a tree, by text */
    struct note *notes;
    size_t count, capacity;
    size_t lost;   /* notes for which there was no memory */
    bool is_short; /* not all names were said */
} gathered;

/* ---- Gathering -------------------------------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct reason *)a)->text, ((const struct reason *)b)->text);
}

static void free_reason(void *reason)
{
    free(((struct reason *)reason)->text);
    free(reason);
}

/* The one that has this text. NULL: no memory. */
static struct reason *find_reason(const char *text)
{
    struct reason *const made = calloc(1, sizeof *made);
    if (!made) return NULL;
    made->text = strdup(text);
    struct reason **const found = made->text ? tsearch(made, &gathered.reasons, by_text) : NULL;
    if (found && *found == made) return made;
    free_reason(made);
    return found ? *found : NULL;
}

void add_note(enum note_kind kind, const char *file, const char *text)
{
    struct reason *const reason = find_reason(text);
    char *const copy = strdup(file);
    if (!reason || !copy || !grow_list(&gathered.notes, gathered.count, &gathered.capacity, sizeof *gathered.notes)) {
        free(copy);
        gathered.lost++;
        return;
    }
    reason->count[kind]++;
    gathered.notes[gathered.count] = (struct note){copy, reason, kind, gathered.count};
    gathered.count++;
}

void free_notes(void)
{
    for (size_t i = 0; i < gathered.count; i++) free(gathered.notes[i].file);
    free(gathered.notes);
    tdestroy(gathered.reasons, free_reason);
    memset(&gathered, 0, sizeof gathered);
}

/* ---- Saying ----------------------------------------------------------------------------------------------- */

/* List by list, in each the reasons of most files first, in each the files in their order. */
static int by_list(const void *a, const void *b)
{
    const struct note *const one = a, *const other = b;
    if (one->kind != other->kind) return one->kind < other->kind ? -1 : 1;
    const size_t count = one->reason->count[one->kind], its = other->reason->count[one->kind];
    if (count != its) return count > its ? -1 : 1;
    const int order = strcmp(one->reason->text, other->reason->text);
    return order ? order : (one->order > other->order) - (one->order < other->order);
}

/* The files of one list that have one reason. */
struct group {
    const struct note *first;
    size_t count;
};

static struct group group_from(size_t i)
{
    struct group group = {&gathered.notes[i], 0};
    group.count = group.first->reason->count[group.first->kind];
    return group;
}

/* Some names of a group, or all, behind its reason. */
static void print_group(const struct options *options, const struct group *group)
{
    const struct list *const list = &lists[group->first->kind];
    const bool in_full = options->talk.verbosity > 0 && group->count > NAMES_LIMIT;
    const size_t named = group->count < NAMES_LIMIT ? group->count : NAMES_LIMIT;
    talk("  %zu %s: %s", group->count, group->count == 1 ? list->one : list->more, shown(group->first->reason->text));
    for (size_t i = 0; i < named && !in_full; i++) talk("%s%s", i > 0 ? ", " : " (", shown_bare(group->first[i].file));
    if (group->count > named && !in_full) talk(" and %zu more", group->count - named);
    talk(in_full ? ":\n" : ")\n");
    for (size_t i = 0; i < group->count && group->count > named; i++) {
        if (in_full)
            talk("    %s\n", shown_bare(group->first[i].file));
        else
            log_alone("    %s", shown_bare(group->first[i].file));
    }
    gathered.is_short |= group->count > named && !in_full;
}

/* Reasons beyond those that the short form has. The log has them in full. */
static void print_rest(const struct group *group)
{
    const struct list *const list = &lists[group->first->kind];
    log_alone("  %zu %s: %s:", group->count, group->count == 1 ? list->one : list->more,
              shown(group->first->reason->text));
    for (size_t i = 0; i < group->count; i++) log_alone("    %s", shown_bare(group->first[i].file));
}

static void print_list(const struct options *options, size_t first, size_t end)
{
    size_t reasons = 0, rest = 0, rest_files = 0;
    for (size_t i = first; i < end;) {
        const struct group group = group_from(i);
        if (options->talk.verbosity > 0 || reasons++ < REASONS_LIMIT) {
            print_group(options, &group);
        } else {
            print_rest(&group);
            rest++;
            rest_files += group.count;
        }
        i += group.count;
    }
    if (rest == 0) return;
    talk("  %zu %s for %zu other reason%s\n", rest_files, lists[gathered.notes[first].kind].more, rest, plural(rest));
    gathered.is_short = true;
}

/* How files were coded is said by the verb that does it. What looks damaged and what an export lacks is always said.
 * What the engine that was asked for left to the CPU engine is said where that engine was demanded, or with -v. */
static bool is_said(const struct options *options, enum note_kind kind)
{
    if (kind == NOTE_FALLBACK) return options->machine.engine == TSR_ENGINE_CUDA || options->talk.verbosity > 0;
    return kind == NOTE_NOT_TAKEN || kind == NOTE_DAMAGED || kind == NOTE_LEFT_OUT || options->verb == VERB_COMPRESS;
}

void print_notes(const struct options *options)
{
    if (gathered.count > 0) qsort(gathered.notes, gathered.count, sizeof *gathered.notes, by_list);
    for (size_t i = 0; i < gathered.count;) {
        size_t end = i;
        const enum note_kind kind = gathered.notes[i].kind;
        while (end < gathered.count && gathered.notes[end].kind == kind) end++;
        if (is_said(options, kind)) print_list(options, i, end);
        i = end;
    }
    if (gathered.is_short)
        talk(options->talk.log ? "  all names are in the log\n"
                               : "  -v names all, and --log FILE writes all names to a log\n");
    if (gathered.lost > 0) talk("  memory ended: these lists lack %zu names\n", gathered.lost);
}
