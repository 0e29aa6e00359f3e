/* tessera-rivals: codes pictures with the codecs that Tessera is compared with. See protocol.h. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "rivals.h"

static struct picture picture;
static uint8_t *decoded; /* room for the picture's samples */
static bool is_decoded;
static unsigned limit_s;
static FILE *answers, *sentences; /* see set_up_outputs() */

static int fail(enum tsr_status status, const char *sentence, const char *line)
{
    fprintf(sentences ? sentences : stderr, RIVALS_NAME ": %s: '%s'\n", sentence, line);
    if (sentences) fflush(sentences);
    return (int)status;
}

/* ---- Requests ------------------------------------------------------------------------------------------------ */

/* Reads the samples that follow the line. */
static int take_picture(const char *line)
{
    struct picture p = {0};
    if (sscanf(line, "picture %d %d %d %d", &p.columns, &p.rows, &p.channels, &p.bits) != 4 || p.columns < 1 ||
        p.rows < 1 || p.channels < 1 || p.channels > 4 || p.bits < 1 || p.bits > 16)
        return fail(TSR_ERROR_USAGE, "not a picture", line);
    const double bytes = (double)p.columns * p.rows * p.channels * (p.bits > 8 ? 2 : 1);
    free(picture.samples);
    free(decoded);
    picture.samples = decoded = NULL;
    is_decoded = false;
    if (bytes <= (double)(PTRDIFF_MAX / 4)) {
        p.bytes = (size_t)bytes;
        p.samples = malloc(p.bytes);
        decoded = malloc(p.bytes);
    }
    picture = p;
    if (!p.samples || !decoded) return fail(TSR_ERROR_LIMIT, "no memory for this picture", line);
    if (fread(picture.samples, 1, picture.bytes, stdin) != picture.bytes)
        return fail(TSR_ERROR_USAGE, "the input ends within a picture", line);
    return TSR_OK;
}

static int take_limit(const char *line)
{
    unsigned long long bytes;
    if (sscanf(line, "limit %llu %u", &bytes, &limit_s) != 2) return fail(TSR_ERROR_USAGE, "not a limit", line);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they reserve terabytes */
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) == 0) {
        const rlim_t wanted = bytes ? (rlim_t)bytes : RLIM_INFINITY;
        limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
        setrlimit(RLIMIT_AS, &limit);
    }
#endif
    return TSR_OK;
}

static void answer_codecs(void)
{
    size_t count = 0;
    const struct codec *codec;
    while (codec_at(count)) count++;
    fprintf(answers, "%zu\n", count);
    for (size_t i = 0; (codec = codec_at(i)); i++) {
        char library[64] = "", flags[4] = "-";
        if (codec->calls)
            codec->calls->tell_library(library);
        else
            snprintf(library, sizeof library, "%s", codec->package);
        if (codec->is_lossy || codec->is_ours || !codec->calls)
            snprintf(flags, sizeof flags, "%s%s%s", codec->is_lossy ? "l" : "", codec->is_ours ? "o" : "",
                     codec->calls ? "" : "m");
        fprintf(answers, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", codec->key, codec->name, library, codec->options,
                codec->reason, flags, codec->settings ? codec->settings : "");
    }
}

static int answer_code(char *line)
{
    static const char *const outcomes[] = {"done", "cannot", "wrong", "failed"};
    struct measured m;
    double setting;
    char *const key = line + 5, *text = strchr(key, ' ');
    if (text) *text++ = '\0';
    const struct codec *const codec = codec_by_key(key);
    if (!codec) return fail(TSR_ERROR_USAGE, "not a codec", key);
    if (!parse_setting(codec, text ? text : "", &setting))
        return fail(TSR_ERROR_USAGE, "not a setting of this codec", text ? text : "");
    is_decoded = false;
    errno = 0; /* see give_up() */
    measure(codec, &picture, setting, decoded, &m);
    if (m.outcome == MEASURED_FAILED && errno == ENOMEM) return TSR_ERROR_LIMIT; /* the client says it */
    is_decoded = m.outcome == MEASURED_DONE || m.outcome == MEASURED_WRONG;
    for (char *c = m.note; *c; c++)
        if (*c == '\t' || *c == '\n' || *c == '\r') *c = ' ';
    fprintf(answers, "%s\t%llu\t%.9f\t%.9f\t%.4f\t%.4f\t%d\t%llu\t%d\t%s\n", outcomes[m.outcome],
            (unsigned long long)m.bytes, m.encode_s, m.decode_s, m.encode_spread, m.decode_spread, m.runs,
            (unsigned long long)m.peak_bytes, m.is_same, m.note);
    return TSR_OK;
}

static int answer(char *line)
{
    if (!strcmp(line, "version")) {
        fprintf(answers, "%s\n", RIVALS_VERSION_LINE);
    } else if (!strcmp(line, "codecs")) {
        answer_codecs();
    } else if (!strncmp(line, "limit ", 6)) {
        return take_limit(line);
    } else if (!strncmp(line, "picture ", 8)) {
        return take_picture(line);
    } else if (!picture.samples) {
        return fail(TSR_ERROR_USAGE, "not a request, or one without a picture", line);
    } else if (!strncmp(line, "code ", 5)) {
        return answer_code(line);
    } else if (!strcmp(line, "decoded")) {
        if (!is_decoded) return fail(TSR_ERROR_USAGE, "nothing was decoded", line);
        fwrite(decoded, 1, picture.bytes, answers);
    } else {
        return fail(TSR_ERROR_USAGE, "not a request", line);
    }
    return TSR_OK;
}

/* ---- The process --------------------------------------------------------------------------------------------- */

/* Libraries that do not check their memory crash without it; others abort or trap. malloc() has set errno then, and
 * the status says what a signal would not. */
static void give_up(int signal_number)
{
    if (errno == ENOMEM) _exit(TSR_ERROR_LIMIT); /* NOLINT(bugprone-signal-handler): what malloc() left there */
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

/* The answers and this program's own sentences get descriptors of their own. What libraries print goes nowhere: among
 * the answers it would be taken for one, and the client says in its own words what became of a codec. */
static bool set_up_outputs(void)
{
    const int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0), sentences_to = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    answers = out < 0 ? NULL : fdopen(out, "w");
    sentences = sentences_to < 0 ? NULL : fdopen(sentences_to, "w");
    if (nowhere >= 0 && sentences) dup2(nowhere, STDERR_FILENO);
    if (nowhere > STDERR_FILENO) close(nowhere);
    return answers && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0;
}

/* No core files: they would hold the picture. The environment starts no threads in libraries. */
static void set_up_process(void)
{
    static const int signals[] = {SIGSEGV, SIGABRT, SIGILL, SIGTRAP, SIGBUS, SIGFPE};
    const struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    unsetenv("OPJ_NUM_THREADS");
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) signal(signals[i], give_up);
}

int main(int argc, char **argv)
{
    char line[RIVALS_LINE];
    int status = TSR_OK;
    if (argc > 1) return fail(TSR_ERROR_USAGE, "tessera compare starts this program; it takes no arguments", argv[1]);
    if (!set_up_outputs()) return fail(TSR_ERROR_WRITE, "no output", RIVALS_NAME);
    set_up_process();
    while (status == TSR_OK && fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        alarm(limit_s);
        status = answer(line);
        if (fflush(answers) != 0) status = TSR_ERROR_WRITE; /* the client has gone */
        alarm(0);
    }
    free(picture.samples);
    free(decoded);
    return status;
}
