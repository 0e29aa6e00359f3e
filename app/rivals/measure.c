/* Rivals: one codec at one setting on the picture: bytes, times, memory, and whether the samples came back. */
#include "rivals.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A run that takes longer than SLOW_S needs no run before it that warms caches. */
#define SLOW_S 0.5
enum { MOST_RUNS = 7 };

/* Runs that follow the first fit in budget_s, but for one; most: of them. */
struct repeats {
    double budget_s;
    int most;
};
/* A lossy codec is timed at eight settings of one picture, which vouch for each other. */
static const struct repeats lossless_repeats = {0.1, MOST_RUNS}, lossy_repeats = {0.03, 3};

bool bytes_reserve(struct bytes *bytes, size_t capacity)
{
    if (capacity <= bytes->capacity) return true;
    uint8_t *const data = realloc(bytes->data, capacity);
    if (!data) return false;
    bytes->data = data;
    bytes->capacity = capacity;
    return true;
}

bool bytes_append(struct bytes *bytes, const void *data, size_t count)
{
    const size_t wanted = bytes->count + count;
    if (wanted > bytes->capacity && !bytes_reserve(bytes, wanted + wanted / 2)) return false;
    if (count) memcpy(bytes->data + bytes->count, data, count);
    bytes->count = wanted;
    return true;
}

/* ---- Memory -------------------------------------------------------------------------------------------------- */

/* A line of /proc/self/status in bytes; 0: not known. */
static uint64_t status_bytes(const char *name)
{
    char line[256];
    unsigned long long kilobytes = 0;
    FILE *const file = fopen("/proc/self/status", "r");
    if (!file) return 0;
    while (fgets(line, sizeof line, file))
        if (!strncmp(line, name, strlen(name)) && sscanf(line + strlen(name), ": %llu", &kilobytes) == 1) break;
    fclose(file);
    return 1024 * (uint64_t)kilobytes;
}

/* Gives free memory back, so that a codec cannot take it without being seen, and sets the peak to what is used now.
 * Returns that. */
static uint64_t reset_peak(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
    FILE *const file = fopen("/proc/self/clear_refs", "w");
    if (file) {
        fputs("5", file);
        fclose(file);
    }
    return status_bytes("VmRSS");
}

/* ---- Time ---------------------------------------------------------------------------------------------------- */

/* CPU seconds of all threads of the process: of codecs with one thread the same as that thread's, and a thread that a
 * library starts unasked is not free of charge. */
static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int compare_seconds(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct timing {
    double median_s, spread;
    int runs;
};

static bool time_once(bool (*call)(struct job *), struct job *job, double *seconds)
{
    const double start = cpu_seconds();
    const bool ok = call(job);
    *seconds = cpu_seconds() - start;
    return ok;
}

static bool time_runs(bool (*call)(struct job *), struct job *job, struct timing *timing)
{
    const struct repeats repeats = job->codec->is_lossy ? lossy_repeats : lossless_repeats;
    double seconds[MOST_RUNS], first, sum = 0;
    if (!time_once(call, job, &first)) return false;
    timing->runs = 0;
    if (first > SLOW_S) {
        seconds[0] = first;
        timing->runs = 1;
    } else {
        while (timing->runs == 0 || (timing->runs < repeats.most && sum + sum / timing->runs <= repeats.budget_s)) {
            if (!time_once(call, job, &seconds[timing->runs])) return false;
            sum += seconds[timing->runs++];
        }
    }
    const int n = timing->runs;
    qsort(seconds, (size_t)n, sizeof *seconds, compare_seconds);
    timing->median_s = n % 2 ? seconds[n / 2] : (seconds[n / 2 - 1] + seconds[n / 2]) / 2;
    timing->spread = timing->median_s > 0 ? (seconds[n - 1] - seconds[0]) / timing->median_s : 0;
    return true;
}

/* ---- A codec ------------------------------------------------------------------------------------------------- */

static bool run(struct job *job, struct measured *result)
{
    struct timing encode, decode;
    /* Nothing of an earlier picture or of another codec may pass for what this codec decodes. */
    for (size_t i = 0; i < job->picture->bytes; i++) job->samples[i] = (uint8_t)~job->picture->samples[i];
    const uint64_t before = reset_peak();
    if (!time_runs(job->codec->calls->encode, job, &encode) || !time_runs(job->codec->calls->decode, job, &decode))
        return false;
    const uint64_t peak = status_bytes("VmHWM");
    result->peak_bytes = peak > before ? peak - before : 0;
    result->bytes = job->coded.count;
    result->encode_s = encode.median_s;
    result->decode_s = decode.median_s;
    result->encode_spread = encode.spread;
    result->decode_spread = decode.spread;
    result->runs = encode.runs < decode.runs ? encode.runs : decode.runs;
    result->is_same = memcmp(job->samples, job->picture->samples, job->picture->bytes) == 0;
    return true;
}

static void answer(struct measured *result, enum measured_outcome outcome, const char *note)
{
    result->outcome = outcome;
    snprintf(result->note, sizeof result->note, "%s", note);
}

void measure(const struct codec *codec, const struct picture *picture, double setting, uint8_t *decoded,
             struct measured *result)
{
    struct job job = {.codec = codec, .picture = picture, .setting = setting, .samples = decoded};
    memset(result, 0, sizeof *result);
    if (!codec->calls) {
        snprintf(job.note, sizeof job.note, "this build is without it: the package is %s", codec->package);
        answer(result, MEASURED_CANNOT, job.note);
        return;
    }
    const char *const obstacle = codec->calls->find_obstacle ? codec->calls->find_obstacle(codec, picture) : NULL;
    if (obstacle) {
        answer(result, MEASURED_CANNOT, obstacle);
        return;
    }
    const bool is_prepared = !codec->calls->prepare || codec->calls->prepare(&job);
    free(job.coded.data); /* its memory counts */
    memset(&job.coded, 0, sizeof job.coded);
    if (!is_prepared || !run(&job, result))
        answer(result, MEASURED_FAILED, job.note[0] ? job.note : "the library reports an error");
    else if (!result->is_same && !codec->is_lossy)
        answer(result, MEASURED_WRONG, "the decoded samples differ");
    else
        answer(result, MEASURED_DONE, job.note);
    if (codec->calls->finish) codec->calls->finish();
    free(job.coded.data);
}
