/* Progress; see progress.h. */
#include "progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "json.h"

enum form { NOTHING, LINE, LINES, JSON };

static enum form form;
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
    const bool wanted = options->progress != PROGRESS_NONE && options->verbosity >= 0;
    form = options->progress == PROGRESS_JSON ? JSON : !wanted ? NOTHING : is_smart_terminal() ? LINE : LINES;
    verb = options->verb;
    start = last = wall_seconds();
    is_drawn = false;
    was_cleared = form == LINE || form == JSON;
}

bool progress_is_shown(void)
{
    return form != NOTHING;
}

/* Seconds that are left at this rate, by bytes where they are known; negative: not known. */
static double time_left(const struct progress *p, double elapsed)
{
    const double share = p->all_bytes > 0   ? (double)p->bytes / (double)p->all_bytes
                         : p->all_files > 0 ? (double)p->files / (double)p->all_files
                                            : 0;
    return share > 0 && elapsed > 0 ? elapsed / share - elapsed : -1;
}

/* The text of a line, at most room - 1 bytes. */
static void describe(const struct progress *p, double elapsed, char *text, size_t room)
{
    const double left = time_left(p, elapsed);
    int used = snprintf(text, room, "%zu/%zu files, %.1f of %.1f MB, %.1f MB/s", p->files, p->all_files,
                        (double)p->bytes / 1e6, (double)p->all_bytes / 1e6,
                        elapsed > 0 ? (double)p->bytes / 1e6 / elapsed : 0);
    if (verb == VERB_COMPRESS && p->bytes_out > 0)
        used += snprintf(text + used, room - (size_t)used, ", ratio %.2f", (double)p->bytes_in / (double)p->bytes_out);
    if (p->failed > 0) used += snprintf(text + used, room - (size_t)used, ", %zu failed", p->failed);
    if (left >= 0) {
        const long long seconds = (long long)(left + 0.5);
        used += snprintf(text + used, room - (size_t)used, ", %lld:%02lld left", seconds / 60, seconds % 60);
    }
    if (p->current) snprintf(text + used, room - (size_t)used, ", %s", shown(p->current));
}

static size_t terminal_columns(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

static void draw_line(const struct progress *p, double elapsed)
{
    char text[512];
    describe(p, elapsed, text, sizeof text);
    const size_t columns = terminal_columns() - 1;
    size_t bytes = 0, shown_columns = 0;
    for (; text[bytes]; bytes++) { /* a line never wraps: it could not be redrawn */
        const bool begins = ((unsigned char)text[bytes] & 0xc0) != 0x80;
        if (begins && shown_columns == columns) break;
        shown_columns += begins;
    }
    fprintf(stderr, "\r%.*s\033[K", (int)bytes, text);
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
    add_number(o, "left_s", left >= 0, left);
    add_name(o, "file", p->current);
    char *const text = cJSON_PrintUnformatted(o);
    if (text) fprintf(stderr, "%s\n", text);
    cJSON_free(text);
    cJSON_Delete(o);
}

void progress_show(const struct progress *p)
{
    static const double wait_s[] = {[NOTHING] = 0, [LINE] = 0.1, [LINES] = 30, [JSON] = 1};
    const double now = wall_seconds();
    if (form == NOTHING || (!was_cleared && now - last < wait_s[form])) return;
    last = now;
    was_cleared = false;
    if (form == LINE) {
        draw_line(p, now - start);
    } else if (form == LINES) {
        char text[512];
        describe(p, now - start, text, sizeof text);
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
    if (form == JSON && at_end) print_json(at_end, wall_seconds() - start);
    form = NOTHING;
}
