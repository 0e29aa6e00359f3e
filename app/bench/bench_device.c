/* Memory and clocks of the benchmark. See bench.h. Without CUDA there is only the host. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"

#if TSR_WITH_CUDA
#include <cuda_runtime_api.h>
#include <stdatomic.h>

#include "kernels/papers/limits/limits.h"

static cudaStream_t stream;
static void *staging; /* pinned: copies from it and to it run at the full rate of the bus */
enum { STAGING_BYTES = 16 << 20 };

static void must(cudaError_t error, const char *what)
{
    if (error != cudaSuccess) bench_stop(TSR_ERROR_ENGINE, "CUDA failed (%s): %s", what, cudaGetErrorString(error));
}

/* Reads the version of the driver itself, which CUDA does not tell. */
static void read_driver_version(char *text, size_t size)
{
    FILE *f = fopen("/sys/module/nvidia/version", "r");
    snprintf(text, size, "unknown");
    if (!f) return;
    char line[48];
    if (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        snprintf(text, size, "%s", line);
    }
    fclose(f);
}

struct bench_device bench_find_device(void)
{
    struct bench_device device = {.is_there = false};
    struct cudaDeviceProp properties;
    int count = 0, runtime = 0, interface = 0;
    size_t all;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess || count == 0) {
        snprintf(device.name, sizeof device.name, "none (%s)", error ? cudaGetErrorString(error) : "no device");
        return device;
    }
    must(cudaGetDeviceProperties(&properties, 0), "the GPU's properties");
    must(cudaRuntimeGetVersion(&runtime), "CUDA's version");
    must(cudaDriverGetVersion(&interface), "the driver's version");
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
    must(cudaMallocHost(&staging, STAGING_BYTES), "pinned memory");
    must(cudaMemGetInfo(&device.free_bytes, &all), "the GPU's memory");
    device.is_there = true;
    snprintf(device.name, sizeof device.name, "%s", properties.name);
    read_driver_version(device.driver, sizeof device.driver);
    snprintf(device.cuda, sizeof device.cuda, "%d.%d (driver: %d.%d)", runtime / 1000, runtime % 1000 / 10,
             interface / 1000, interface % 1000 / 10);
    return device;
}

static void *take_on_device(size_t bytes)
{
    void *memory = NULL;
    const cudaError_t error = cudaMalloc(&memory, bytes);
    if (error != cudaSuccess)
        bench_stop(TSR_ERROR_ENGINE, "cannot take %zu bytes of the GPU's memory: %s", bytes, cudaGetErrorString(error));
    return memory;
}

static void give_on_device(void *memory)
{
    must(cudaFree(memory), "giving memory back");
}

static void fill_on_device(void *memory, int byte, size_t bytes)
{
    must(cudaMemsetAsync(memory, byte, bytes, stream), "filling");
    must(cudaStreamSynchronize(stream), "filling");
}

static void copy_across(enum bench_side to_side, void *to, enum bench_side from_side, const void *from, size_t bytes)
{
    for (size_t at = 0, part; at < bytes; at += part) {
        part = bytes - at < STAGING_BYTES ? bytes - at : STAGING_BYTES;
        char *const target = (char *)to + at;
        const char *const origin = (const char *)from + at;
        if (from_side == ON_HOST) memcpy(staging, origin, part);
        must(cudaMemcpyAsync(to_side == ON_HOST ? staging : target, from_side == ON_HOST ? staging : origin, part,
                             cudaMemcpyDefault, stream),
             "copying");
        must(cudaStreamSynchronize(stream), "copying");
        if (to_side == ON_HOST) memcpy(target, staging, part);
    }
}

static bool same_on_device(const void *a, const void *b, size_t bytes)
{
    static uint32_t *d_differs;
    uint32_t differs = 1;
    if (!d_differs) d_differs = take_on_device(sizeof *d_differs);
    must((cudaError_t)tsr_device_differs(a, b, bytes, d_differs, stream), "comparing");
    copy_across(ON_HOST, &differs, ON_DEVICE, d_differs, sizeof differs);
    return differs == 0;
}

void *bench_stream(void)
{
    return stream;
}

const char *bench_error_text(int error)
{
    return cudaGetErrorString((cudaError_t)error);
}

bool bench_is_out_of_memory(int error)
{
    return error == cudaErrorMemoryAllocation;
}

/* Waits for the device. Returns the error of the row's phases, or else that of the device. */
static int wait_for_device(int error)
{
    const cudaError_t waiting = cudaStreamSynchronize(stream), last = cudaGetLastError(); /* also clears it */
    return error ? error : waiting != cudaSuccess ? (int)waiting : (int)last;
}

/* The stream stands still until the gate opens, for at most 100 ms: if the gate is closed for longer, a phase waits for
 * the device. */
static atomic_bool gate_is_open;

#if !defined(TSR_CUDA_EMULATED)
static void CUDART_CB wait_at_gate(void *unused)
{
    const double start = bench_now_us();
    (void)unused;
    while (!atomic_load(&gate_is_open) && bench_now_us() - start < 100e3) {
    }
}
#endif

static void close_gate(void)
{
    atomic_store(&gate_is_open, false);
#if !defined(TSR_CUDA_EMULATED)
    must(cudaLaunchHostFunc(stream, wait_at_gate, NULL), "a function on the stream");
#endif
}

static int time_on_device(const struct tsr_kernel_row *row, const void *job, int policy, bool apart, double *us)
{
    static cudaEvent_t events[TSR_PHASES_LIMIT + 1];
    int error = 0, count = 1;
    if (!events[0])
        for (int i = 0; i <= TSR_PHASES_LIMIT; i++) must(cudaEventCreate(&events[i]), "an event");
    close_gate();
    must(cudaEventRecord(events[0], stream), "an event");
    for (int p = 0; p < TSR_PHASES_LIMIT && row->phase[p].name && !error; p++) {
        error = row->phase[p].run(job, policy);
        if (apart) must(cudaEventRecord(events[count++], stream), "an event");
    }
    if (!apart) must(cudaEventRecord(events[count++], stream), "an event");
    atomic_store(&gate_is_open, true);
    error = wait_for_device(error);
    for (int i = 1; i < count && !error; i++) {
        float ms = 0;
        error = (int)cudaEventElapsedTime(&ms, events[i - 1], events[i]);
        us[i - 1] = 1000.0 * (double)ms;
    }
    return error;
}
#else
struct bench_device bench_find_device(void)
{
    return (struct bench_device){.is_there = false, .name = "none (a build without CUDA)"};
}

void *bench_stream(void)
{
    return NULL;
}

const char *bench_error_text(int error)
{
    return error ? "an error of the row" : "no error";
}
#endif

/* ---- Either side ----------------------------------------------------------------------------------------------- */

double bench_now_us(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

/* Fresh memory costs a page fault for each page, more than most work that is done on it. So memory that is given back
 * is kept for the next request of about the same size. The size of a piece stands before the piece. */
enum { KEPT_LIMIT = 64, HEAD_BYTES = 256, KEPT_BYTES = 64 << 10 };
struct kept {
    size_t bytes;
};
static struct kept *kept[KEPT_LIMIT];
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;

/* The smallest piece that is large enough and at most twice as large; NULL: there is no such piece. */
static struct kept *take_kept(size_t bytes)
{
    int best = -1;
    pthread_mutex_lock(&kept_lock);
    for (int i = 0; i < KEPT_LIMIT; i++)
        if (kept[i] && kept[i]->bytes >= bytes && kept[i]->bytes / 2 <= bytes &&
            (best < 0 || kept[i]->bytes < kept[best]->bytes))
            best = i;
    struct kept *piece = best < 0 ? NULL : kept[best];
    if (piece) kept[best] = NULL;
    pthread_mutex_unlock(&kept_lock);
    return piece;
}

/* Keeps a piece in a free place, or else in the place of the smallest piece. */
static void keep(struct kept *piece)
{
    int place = 0;
    pthread_mutex_lock(&kept_lock);
    for (int i = 0; i < KEPT_LIMIT && kept[place]; i++)
        if (!kept[i] || kept[i]->bytes < kept[place]->bytes) place = i;
    struct kept *smaller = kept[place] && kept[place]->bytes > piece->bytes ? piece : kept[place];
    if (smaller != piece) kept[place] = piece;
    pthread_mutex_unlock(&kept_lock);
    free(smaller);
}

static void *take_on_host(size_t bytes)
{
    struct kept *piece = bytes >= KEPT_BYTES ? take_kept(bytes) : NULL;
    if (!piece) {
        piece = aligned_alloc(HEAD_BYTES, HEAD_BYTES + (bytes + HEAD_BYTES) / HEAD_BYTES * HEAD_BYTES);
        if (!piece) bench_stop(TSR_ERROR_LIMIT, "no memory for %zu bytes", bytes);
        piece->bytes = bytes;
    }
    return (char *)piece + HEAD_BYTES;
}

static void give_on_host(void *memory)
{
    if (!memory) return;
    struct kept *piece = (struct kept *)(void *)((char *)memory - HEAD_BYTES);
    if (piece->bytes >= KEPT_BYTES)
        keep(piece);
    else
        free(piece);
}

void *bench_take(enum bench_side side, size_t bytes)
{
#if TSR_WITH_CUDA
    if (side == ON_DEVICE) return take_on_device(bytes ? bytes : 1);
#endif
    (void)side;
    return take_on_host(bytes);
}

void bench_give(enum bench_side side, void *memory)
{
#if TSR_WITH_CUDA
    if (side == ON_DEVICE) {
        give_on_device(memory);
        return;
    }
#endif
    (void)side;
    give_on_host(memory);
}

void bench_fill(enum bench_side side, void *memory, int byte, size_t bytes)
{
#if TSR_WITH_CUDA
    if (side == ON_DEVICE) {
        fill_on_device(memory, byte, bytes);
        return;
    }
#endif
    (void)side;
    memset(memory, byte, bytes);
}

void bench_copy(enum bench_side to_side, void *to, enum bench_side from_side, const void *from, size_t bytes)
{
#if TSR_WITH_CUDA
    if (to_side == ON_DEVICE || from_side == ON_DEVICE) {
        copy_across(to_side, to, from_side, from, bytes);
        return;
    }
#endif
    (void)to_side;
    (void)from_side;
    if (bytes > 0) memcpy(to, from, bytes);
}

bool bench_same(enum bench_side side, const void *a, const void *b, size_t bytes)
{
#if TSR_WITH_CUDA
    if (side == ON_DEVICE) return same_on_device(a, b, bytes);
#endif
    (void)side;
    return bytes == 0 || memcmp(a, b, bytes) == 0; /* a coder without a third array has no address there */
}

int bench_run(const struct tsr_kernel_row *row, const void *job, int policy)
{
    int error = 0;
    for (int p = 0; p < TSR_PHASES_LIMIT && row->phase[p].name && !error; p++) error = row->phase[p].run(job, policy);
#if TSR_WITH_CUDA
    if (row->on_device) error = wait_for_device(error);
#endif
    return error;
}

int bench_time(const struct tsr_kernel_row *row, const void *job, int policy, bool apart, double *us)
{
#if TSR_WITH_CUDA
    if (row->on_device) return time_on_device(row, job, policy, apart, us);
#endif
    int error = 0;
    const double start = bench_now_us();
    for (int p = 0; p < TSR_PHASES_LIMIT && row->phase[p].name && !error; p++) {
        const double before = bench_now_us();
        error = row->phase[p].run(job, policy);
        if (apart) us[p] = bench_now_us() - before;
    }
    if (!apart) us[0] = bench_now_us() - start;
    return error;
}
