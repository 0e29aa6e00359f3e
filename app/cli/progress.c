/* Progress; see progress.h. */
#include "progress.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "app/report/text/text.h"
#include "json.h"

enum style { NOTHING, LINE, LINES, JSON };

static enum style style;
static enum verb verb;
static double start, last;
static bool is_drawn, was_cleared;

static bool is_smart_terminal(void)
{
    const char *const term = getenv("TERM");
    return isatty(STDERR_FILENO) && term && term[0] && strcmp(term, "dumb") != 0;
}

void progress_begin(const struct options *options)
{
    const bool wanted = options->talk.progress != PROGRESS_NONE && options->talk.verbosity >= 0;
    style = options->talk.progress == PROGRESS_JSON ? JSON : !wanted ? NOTHING : is_smart_terminal() ? LINE : LINES;
    verb = options->verb;
    start = last = wall_seconds();
    is_drawn = false;
    was_cleared = style == LINE || style == JSON;
}

bool progress_is_shown(void)
{
    return style != NOTHING;
}

/* Seconds that are left at this rate, by work or bytes where they are known; negative: not known. Work is told in parts
 * that do not take the same time: nothing is known before as much is done as one file takes. */
static double time_left(const struct progress *p, double elapsed)
{
    if (p->all_work > 0 && p->work * (double)p->all_files < p->all_work) return -1;
    const double share = p->all_work > 0    ? p->work / p->all_work
                         : p->all_bytes > 0 ? (double)p->bytes / (double)p->all_bytes
                         : p->all_files > 0 ? (double)p->files / (double)p->all_files
                                            : 0;
    return share > 0 && elapsed > 0 ? fmax(elapsed / share - elapsed, 0) : -1;
}

/* ---- Lines ------------------------------------------------------------------------------------------------- */

/* What a line may say, in its order, and which of it goes last where there is no room for all. */
enum entry { ENTRY_FILES, ENTRY_BYTES, ENTRY_RATE, ENTRY_RATIO, ENTRY_FAILED, ENTRY_LEFT, ENTRY_FILE, ENTRIES };
enum { ENTRY_ROOM = 64, LINE_ROOM = 512 };
static const enum entry by_weight[] = {ENTRY_FILES, ENTRY_LEFT, ENTRY_FAILED, ENTRY_RATE, ENTRY_BYTES, ENTRY_RATIO};

/* "0:05", "59:59", "1:00:00" */
static void write_time(char text[ENTRY_ROOM], double left)
{
    const long long seconds = (long long)(left + 0.5), minutes = seconds / 60;
    if (minutes < 60)
        snprintf(text, ENTRY_ROOM, "%lld:%02lld left", minutes, seconds % 60);
    else
        snprintf(text, ENTRY_ROOM, "%lld:%02lld:%02lld left", minutes / 60, minutes % 60, seconds % 60);
}

static void write_entries(const struct progress *p, double elapsed, char entries[ENTRIES][ENTRY_ROOM])
{
    const double left = time_left(p, elapsed), rate = elapsed > 0 ? (double)p->bytes / 1e6 / elapsed : 0;
    memset(entries, 0, ENTRIES * sizeof *entries);
    snprintf(entries[ENTRY_FILES], ENTRY_ROOM, "%zu/%zu %s", p->files, p->all_files, p->what ? p->what : "files");
    if (p->all_work > 0)
        snprintf(entries[ENTRY_BYTES], ENTRY_ROOM, "%.0f %%", floor(100 * p->work / p->all_work));
    else if (p->all_bytes > 0)
        snprintf(entries[ENTRY_BYTES], ENTRY_ROOM, "%.1f of %.1f MB", (double)p->bytes / 1e6,
                 (double)p->all_bytes / 1e6);
    if (p->bytes > 0 || (p->all_bytes > 0 && p->all_work == 0))
        snprintf(entries[ENTRY_RATE], ENTRY_ROOM, "%.*f MB/s",
                 rate <= 0 || rate >= 9.95 ? 1
                 : rate >= 0.0995          ? 2
                                           : 4,
                 rate);
    if (verb == VERB_COMPRESS && p->bytes_out > 0)
        snprintf(entries[ENTRY_RATIO], ENTRY_ROOM, "ratio %.2f", (double)p->bytes_in / (double)p->bytes_out);
    if (p->failed > 0) snprintf(entries[ENTRY_FAILED], ENTRY_ROOM, "%zu failed", p->failed);
    if (left >= 0) write_time(entries[ENTRY_LEFT], left);
}

/* Columns of a terminal that a character takes, at most: Unicode's wide ones (UAX 11) have two. */
static size_t columns_of(uint32_t code)
{
    const bool is_wide = (code >= 0x1100 && code <= 0x115f) || (code >= 0x2e80 && code <= 0xa4cf) ||
                         (code >= 0xa960 && code <= 0xa97f) || (code >= 0xac00 && code <= 0xd7a3) ||
                         (code >= 0xf900 && code <= 0xfaff) || (code >= 0xfe10 && code <= 0xfe6f) ||
                         (code >= 0xff00 && code <= 0xff60) || (code >= 0xffe0 && code <= 0xffe6) || code >= 0x1f000 ||
                         (code >= 0x231a && code <= 0x27bf);
    return is_wide ? 2 : 1;
}

/* Adds as many characters as there are columns for. Returns the columns that are left. */
static size_t add_columns(char text[LINE_ROOM], const char *more, size_t columns)
{
    size_t used = strlen(text);
    for (uint32_t code; *more; more += text_character(more, &code)) {
        const size_t length = text_character(more, &code), width = columns_of(code); /* what is shown is UTF-8 */
        if (width > columns || used + length >= LINE_ROOM) return 0;
        memcpy(text + used, more, length);
        text[used += length] = '\0';
        columns -= width;
    }
    return columns;
}

/* A line of so many columns at most: whole entries, and of the file's name what there is room for. */
static void describe(const struct progress *p, double elapsed, size_t columns, char text[LINE_ROOM])
{
    enum { LEAST_NAME = 8 };
    char entries[ENTRIES][ENTRY_ROOM];
    bool fits[ENTRIES] = {false};
    size_t left = columns;
    write_entries(p, elapsed, entries);
    for (size_t i = 0; i < sizeof by_weight / sizeof by_weight[0]; i++) {
        const size_t length = strlen(entries[by_weight[i]]), needed = length + (i > 0 ? 2 : 0);
        fits[by_weight[i]] = length > 0 && needed <= left;
        if (fits[by_weight[i]]) left -= needed;
    }
    text[0] = '\0';
    for (enum entry i = 0; i < ENTRIES; i++) {
        if (fits[i] && text[0]) add_columns(text, ", ", 2);
        if (fits[i]) add_columns(text, entries[i], ENTRY_ROOM);
    }
    if (!text[0]) add_columns(text, entries[ENTRY_FILES], columns);
    if (!p->current || left < 2 + LEAST_NAME) return;
    add_columns(text, ", ", 2);
    add_columns(text, shown(p->current), left - 2);
}

static size_t terminal_columns(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/* A line never wraps: it could not be redrawn. */
static void draw_line(const struct progress *p, double elapsed)
{
    char text[LINE_ROOM];
    describe(p, elapsed, terminal_columns() - 1, text);
    fprintf(stderr, "\r%s\033[K", text);
    fflush(stderr);
    is_drawn = true;
}

static void print_json(const struct progress *p, double elapsed)
{
    cJSON *const o = cJSON_CreateObject();
    const double left = time_left(p, elapsed);
    cJSON_AddBoolToObject(o, "progress", true);
    add_number(o, "files", true, (double)p->files);
    add_number(o, "all_files", true, (double)p->all_files);
    add_number(o, "failed", true, (double)p->failed);
    add_number(o, "bytes", true, (double)p->bytes);
    add_number(o, "all_bytes", true, (double)p->all_bytes);
    add_number(o, "bytes_in", true, (double)p->bytes_in);
    add_number(o, "bytes_out", true, (double)p->bytes_out);
    add_number(o, "elapsed_s", true, elapsed);
    add_text(o, "what", p->what ? p->what : "files");
    add_number(o, "share", p->all_work > 0, p->work / p->all_work);
    add_number(o, "left_s", left >= 0, left);
    add_name(o, "file", p->current);
    print_json_to(stderr, o);
}

void progress_show(const struct progress *p)
{
    static const double wait_s[] = {[NOTHING] = 0, [LINE] = 0.1, [LINES] = 30, [JSON] = 1};
    const double now = wall_seconds();
    if (style == NOTHING || (!was_cleared && now - last < wait_s[style])) return;
    last = now;
    was_cleared = false;
    if (style == LINE) {
        draw_line(p, now - start);
    } else if (style == LINES) {
        char text[LINE_ROOM];
        describe(p, now - start, LINE_ROOM, text);
        fprintf(stderr, "tessera: %s\n", text);
    } else {
        print_json(p, now - start);
    }
}

void progress_clear(void)
{
    if (!is_drawn) return;
    fprintf(stderr, "\r\033[K");
    fflush(stderr);
    is_drawn = false;
    was_cleared = true;
}

void progress_end(const struct progress *at_end)
{
    progress_clear();
    if (style == JSON && at_end) print_json(at_end, wall_seconds() - start);
    style = NOTHING;
}
