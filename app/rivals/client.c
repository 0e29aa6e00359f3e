/* Starts tessera-rivals and sends requests to it. See client.h and protocol.h.
 *
 * There are as many processes as threads that compare at once, and each thread waits for its process, so codecs are as
 * fast as within the program. */
#include "client.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process.h"

struct rival {
    struct process process;
    const char *path, *name;
    struct rival_picture picture;
    bool has_picture;
    bool is_shown;        /* the process has the picture */
    uint64_t limit_bytes; /* that the process has been told */
    unsigned limit_s;
    struct rival *next;
};

struct rivals {
    char path[PATH_MAX];
    pthread_mutex_t lock;
    struct rival *idle;
    struct rival_codec *codecs; /* NULL: not asked for yet */
    size_t codec_count;
};

/* ---- Finding the program ------------------------------------------------------------------------------------- */

/* Makes the path of the program from a folder and a path below it. False: the path is too long, or there is no such
 * program. */
static bool find_in(const char *folder, const char *below, char path[PATH_MAX])
{
    const int length = snprintf(path, PATH_MAX, "%s/%s/" RIVALS_NAME, folder, below);
    return length > 0 && length < PATH_MAX && access(path, X_OK) == 0;
}

static bool find_program(char path[PATH_MAX])
{
    char folder[PATH_MAX];
    const char *const told = getenv("TESSERA_RIVALS");
    if (told) return snprintf(path, PATH_MAX, "%s", told) < PATH_MAX && access(path, X_OK) == 0;
    const ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
    const char *const started = (const char *)getauxval(AT_EXECFN); /* where there is no /proc */
    folder[length > 0 ? length : 0] = '\0';
    if (length <= 0 && (!started || !realpath(started, folder))) return false;
    char *const slash = strrchr(folder, '/');
    if (slash) *slash = '\0';
    return slash && (find_in(folder, ".", path) || find_in(folder, TSR_LIBEXEC_FROM_PROGRAM, path));
}

struct rivals *rivals_find(void)
{
    struct rivals *rivals = calloc(1, sizeof *rivals);
    if (rivals && find_program(rivals->path)) {
        pthread_mutex_init(&rivals->lock, NULL);
        return rivals;
    }
    free(rivals);
    return NULL;
}

/* ---- Errors -------------------------------------------------------------------------------------------------- */

#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
static enum tsr_status
fail(const struct rival *rival, struct tsr_error *error, enum tsr_status status, const char *format, ...)
{
    va_list arguments;
    char what[128];
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    memset(error, 0, sizeof *error);
    error->status = status;
    error->offset = TSR_NO_OFFSET;
    snprintf(error->text, sizeof error->text, "%.300s: the program " RIVALS_NAME " %s", rival->name, what);
    return status;
}

/* The process has closed its side, or its answer is not valid. */
static enum tsr_status fail_process(struct rival *rival, struct tsr_error *error, const char *said)
{
    const int how = process_end(&rival->process, true);
    if (said) return fail(rival, error, TSR_ERROR_INTERNAL, "answers '%.60s'", said);
    if (WIFEXITED(how) && WEXITSTATUS(how) == TSR_ERROR_LIMIT)
        return fail(rival, error, TSR_ERROR_LIMIT, "ran out of memory");
    if (WIFEXITED(how)) return fail(rival, error, TSR_ERROR_INTERNAL, "ended with status %d", WEXITSTATUS(how));
    return fail(rival, error, TSR_ERROR_INTERNAL, "was ended by signal %d", WTERMSIG(how));
}

/* ---- Processes ----------------------------------------------------------------------------------------------- */

static enum tsr_status start(struct rival *rival, struct tsr_error *error)
{
    char answer[RIVALS_ANSWER];
    const double deadline = rival->process.deadline;
    const int failure = process_start(&rival->process, rival->path);
    rival->process.deadline = deadline;
    rival->is_shown = false;
    rival->limit_bytes = 0;
    rival->limit_s = 0;
    if (failure) return fail(rival, error, TSR_ERROR_LIMIT, "cannot be started: %s", strerror(failure));
    if (!process_send(&rival->process, "version\n", 8) || !process_receive_line(&rival->process, answer, sizeof answer))
        return fail_process(rival, error, NULL);
    return strcmp(answer, RIVALS_VERSION_LINE) != 0 ? fail_process(rival, error, answer) : TSR_OK;
}

enum tsr_status rivals_take(struct rivals *rivals, const char *name, struct rival **taken, struct tsr_error *error)
{
    *taken = NULL;
    if (!rivals) return TSR_OK;
    pthread_mutex_lock(&rivals->lock);
    struct rival *rival = rivals->idle;
    if (rival) rivals->idle = rival->next;
    pthread_mutex_unlock(&rivals->lock);
    const bool is_new = !rival;
    if (is_new) rival = calloc(1, sizeof *rival);
    const struct rival nobody = {.name = name};
    if (!rival) return fail(&nobody, error, TSR_ERROR_LIMIT, "cannot be started: no memory");
    rival->name = name;
    rival->path = rivals->path;
    rival->process.deadline = 0;
    const enum tsr_status status = is_new ? start(rival, error) : TSR_OK;
    if (status == TSR_OK)
        *taken = rival;
    else
        free(rival);
    return status;
}

void rivals_give(struct rivals *rivals, struct rival *rival)
{
    if (!rival) return;
    if (rival->process.socket < 0) {
        free(rival);
        return;
    }
    rival->has_picture = rival->is_shown = false;
    pthread_mutex_lock(&rivals->lock);
    rival->next = rivals->idle;
    rivals->idle = rival;
    pthread_mutex_unlock(&rivals->lock);
}

void rivals_close(struct rivals *rivals)
{
    if (!rivals) return;
    while (rivals->idle) {
        struct rival *rival = rivals->idle;
        rivals->idle = rival->next;
        process_end(&rival->process, false);
        free(rival);
    }
    pthread_mutex_destroy(&rivals->lock);
    free(rivals->codecs);
    free(rivals);
}

/* ---- The table of codecs ------------------------------------------------------------------------------------- */

/* Cuts the text at the next tab. Returns what follows, or NULL: there is no tab. */
static char *cut(char *text)
{
    char *const tab = strchr(text, '\t');
    if (tab) *tab = '\0';
    return tab ? tab + 1 : NULL;
}

/* Takes settings with commas between them. False: they do not fit. */
static bool take_settings(struct rival_codec *codec, char *text)
{
    codec->setting_count = 0;
    for (char *next = text; text; text = next) {
        if ((next = strchr(text, ','))) *next++ = '\0';
        if (codec->setting_count == RIVAL_SETTINGS || strlen(text) >= sizeof codec->settings[0]) return false;
        memcpy(codec->settings[codec->setting_count++], text, strlen(text) + 1);
    }
    return true;
}

/* Takes a line of the table. False: it is not valid, or does not fit. */
static bool take_codec(struct rival_codec *codec, char *line)
{
    const struct {
        char *text;
        size_t size;
    } fields[] = {{codec->key, sizeof codec->key},
                  {codec->name, sizeof codec->name},
                  {codec->library, sizeof codec->library},
                  {codec->options, sizeof codec->options},
                  {codec->reason, sizeof codec->reason}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        char *const rest = cut(line);
        if (!rest || (size_t)snprintf(fields[i].text, fields[i].size, "%s", line) >= fields[i].size) return false;
        line = rest;
    }
    char *const settings = cut(line);
    codec->is_lossy = strchr(line, 'l') != NULL;
    codec->is_ours = strchr(line, 'o') != NULL;
    codec->is_missing = strchr(line, 'm') != NULL;
    return settings && take_settings(codec, settings);
}

static enum tsr_status ask_codecs(struct rivals *rivals, struct rival *rival, struct tsr_error *error)
{
    enum { MOST_CODECS = 100 };
    char line[RIVALS_ANSWER];
    if (!process_send(&rival->process, "codecs\n", 7) || !process_receive_line(&rival->process, line, sizeof line))
        return fail_process(rival, error, NULL);
    const int count = atoi(line);
    if (count < 1 || count > MOST_CODECS) return fail_process(rival, error, line);
    struct rival_codec *const codecs = calloc((size_t)count, sizeof *codecs);
    if (!codecs) return fail(rival, error, TSR_ERROR_LIMIT, "has a table for which there is no memory");
    for (int i = 0; i < count; i++) {
        const bool is_received = process_receive_line(&rival->process, line, sizeof line);
        if (is_received && take_codec(&codecs[i], line)) continue;
        free(codecs);
        return fail_process(rival, error, is_received ? line : NULL);
    }
    rivals->codecs = codecs;
    rivals->codec_count = (size_t)count;
    return TSR_OK;
}

enum tsr_status rivals_list(struct rivals *rivals, const struct rival_codec **codecs, size_t *count,
                            struct tsr_error *error)
{
    struct rival *rival;
    *codecs = NULL;
    *count = 0;
    if (!rivals) return TSR_OK;
    enum tsr_status status = TSR_OK;
    if (!rivals->codecs) {
        status = rivals_take(rivals, "the table of codecs", &rival, error);
        if (status != TSR_OK) return status;
        status = ask_codecs(rivals, rival, error);
        rivals_give(rivals, rival);
    }
    *codecs = rivals->codecs;
    *count = rivals->codec_count;
    return status;
}

/* ---- Pictures ------------------------------------------------------------------------------------------------ */

static bool send_picture(struct rival *rival, const struct rival_picture *p)
{
    enum { PART = 1 << 15 };
    uint8_t part[PART];
    char line[RIVALS_LINE];
    const size_t count = (size_t)p->columns * p->rows * (size_t)p->channels;
    snprintf(line, sizeof line, "picture %u %u %d %d\n", p->columns, p->rows, p->channels, p->bits);
    bool sent = process_send(&rival->process, line, strlen(line));
    if (!p->words) return sent && process_send(&rival->process, p->bytes, count);
    if (p->bits > 8) return sent && process_send(&rival->process, p->words, count * sizeof *p->words);
    for (size_t first = 0, now; first < count && sent; first += now) {
        now = count - first < PART ? count - first : PART;
        for (size_t i = 0; i < now; i++) part[i] = (uint8_t)p->words[first + i];
        sent = process_send(&rival->process, part, now);
    }
    return sent;
}

void rival_set_picture(struct rival *rival, const struct rival_picture *picture)
{
    if (!rival) return;
    rival->picture = *picture;
    rival->has_picture = true;
    rival->is_shown = false;
}

/* ---- Coding -------------------------------------------------------------------------------------------------- */

static bool send_limits(struct rival *rival, const struct rival_limits *limits)
{
    enum { GRACE_S = 10 }; /* the client is first, unless it has ended */
    char line[RIVALS_LINE];
    const unsigned seconds = limits->seconds > 0 && limits->seconds < 1e9 ? (unsigned)limits->seconds + GRACE_S : 0;
    if (limits->bytes == rival->limit_bytes && seconds == rival->limit_s) return true;
    snprintf(line, sizeof line, "limit %llu %u\n", (unsigned long long)limits->bytes, seconds);
    rival->limit_bytes = limits->bytes;
    rival->limit_s = seconds;
    return process_send(&rival->process, line, strlen(line));
}

/* Sends all that the process needs to answer the request, and receives the answer. */
static bool request_code(struct rival *rival, const char *request, const struct rival_limits *limits,
                         char answer[RIVALS_ANSWER])
{
    if (!send_limits(rival, limits)) return false;
    if (!rival->is_shown && !send_picture(rival, &rival->picture)) return false;
    rival->is_shown = true;
    return process_send(&rival->process, request, strlen(request)) &&
           process_receive_line(&rival->process, answer, RIVALS_ANSWER);
}

static bool take_outcome(const char *word, struct rival_result *result)
{
    static const struct {
        const char *word;
        enum rival_outcome outcome;
    } outcomes[] = {{"done", RIVAL_DONE}, {"cannot", RIVAL_CANNOT}, {"wrong", RIVAL_FAILED}, {"failed", RIVAL_FAILED}};
    for (size_t i = 0; i < sizeof outcomes / sizeof *outcomes; i++)
        if (!strcmp(word, outcomes[i].word)) {
            result->outcome = outcomes[i].outcome;
            return true;
        }
    return false;
}

/* Takes the answer. False: it is not valid. */
static bool take_answer(const char *line, struct rival_result *result)
{
    char word[8];
    unsigned long long bytes, peak;
    int is_same, from = 0;
    struct rival_result r = {0};
    if (sscanf(line, "%7s %llu %lf %lf %lf %lf %d %llu %d%n", word, &bytes, &r.encode_s, &r.decode_s, &r.encode_spread,
               &r.decode_spread, &r.runs, &peak, &is_same, &from) != 9 ||
        line[from] != '\t' || !take_outcome(word, &r))
        return false;
    snprintf(r.reason, sizeof r.reason, "%.*s", (int)sizeof r.reason - 1, line + from + 1);
    if (r.outcome != RIVAL_DONE) { /* no numbers are of use then */
        *result = (struct rival_result){.outcome = r.outcome};
        memcpy(result->reason, r.reason, sizeof r.reason);
        return true;
    }
    r.bytes = bytes;
    r.peak_bytes = peak;
    r.is_same = is_same != 0;
    *result = r;
    return true;
}

/* Ends the process and tells in the result why. */
static void fail_result(struct rival *rival, const struct rival_limits *limits, bool is_answer_invalid,
                        struct rival_result *result)
{
    const bool is_late = rival->process.is_late;
    char *const reason = result->reason;
    const size_t size = sizeof result->reason;
    const int how = process_end(&rival->process, true);
    result->outcome = RIVAL_FAILED;
    if (is_answer_invalid)
        snprintf(reason, size, "the helper's answer is not valid");
    else if (is_late)
        snprintf(reason, size, "took more than %g s", limits->seconds);
    else if (WIFEXITED(how) && WEXITSTATUS(how) == TSR_ERROR_LIMIT)
        snprintf(reason, size, "ran out of memory");
    else if (WIFEXITED(how))
        snprintf(reason, size, "the helper ended with status %d", WEXITSTATUS(how));
    else if (WTERMSIG(how) == SIGKILL)
        snprintf(reason, size, "was killed: signal %d, as the system does when its memory ends", SIGKILL);
    else
        snprintf(reason, size, "crashed: signal %d", WTERMSIG(how));
}

/* A key or a setting must leave the request one line, of a length that the helper reads. */
static bool is_word(const char *text)
{
    return strlen(text) < 32 && !text[strcspn(text, "\r\n\t")];
}

enum tsr_status rival_code(struct rival *rival, const char *key, const char *setting, const struct rival_limits *limits,
                           struct rival_result *result, uint8_t *decoded, struct tsr_error *error)
{
    static const struct rival_limits none = {0, 0};
    const struct rival nobody = {.name = "compare"};
    char request[RIVALS_LINE], answer[RIVALS_ANSWER];
    memset(result, 0, sizeof *result);
    if (!limits) limits = &none;
    if (!rival || !rival->has_picture || !is_word(key) || !*key || strchr(key, ' ') || !is_word(setting) ||
        (decoded && rival->picture.bits > 8))
        return fail(rival ? rival : &nobody, error, TSR_ERROR_USAGE, "cannot be asked so");
    rival->process.deadline = limits->seconds > 0 ? process_now() + limits->seconds : 0;
    if (rival->process.socket < 0) {
        const enum tsr_status status = start(rival, error);
        if (status != TSR_OK) return status;
    }
    snprintf(request, sizeof request, "code %s%s%s\n", key, *setting ? " " : "", setting);
    const struct rival_picture *const p = &rival->picture;
    const size_t count = (size_t)p->columns * p->rows * (size_t)p->channels;
    const bool is_answered = request_code(rival, request, limits, answer);
    const bool is_valid = is_answered && take_answer(answer, result);
    const bool wants_samples = is_valid && decoded && result->outcome == RIVAL_DONE;
    const bool is_complete = !wants_samples || (process_send(&rival->process, "decoded\n", 8) &&
                                                process_receive(&rival->process, decoded, count));
    if (!is_valid || !is_complete) {
        memset(result, 0, sizeof *result);
        fail_result(rival, limits, is_answered && !is_valid, result);
    }
    rival->process.deadline = 0;
    return TSR_OK;
}
