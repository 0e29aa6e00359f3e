/* Fibers, blocks and the runtime calls of the emulated GPU. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <ucontext.h>

#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "cuda_runtime.h"

/* AddressSanitizer's functions, if it is linked: it must know the stack on which a thread runs. */
extern "C" {
__attribute__((weak)) void __sanitizer_start_switch_fiber(void **save, const void *bottom, size_t size);
__attribute__((weak)) void __sanitizer_finish_switch_fiber(void *saved, const void **old_bottom, size_t *old_size);
__attribute__((weak)) void __asan_poison_memory_region(const volatile void *memory, size_t bytes);
__attribute__((weak)) void __asan_unpoison_memory_region(const volatile void *memory, size_t bytes);
__attribute__((weak)) void __asan_get_shadow_mapping(size_t *scale, size_t *offset);
}

namespace
{

enum { STACK_BYTES = 256 << 10, STACK_GUARD = 4 << 10, MULTIPROCESSORS = 2, OS_THREADS = 3, PATIENCE_S = 60 };

double seconds(clockid_t clock)
{
    timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* A stack, and the place where its code goes on. */
struct resting_place {
    void *jump[5]; /* __builtin_setjmp's: longjmp() would make AddressSanitizer forget a stack */
    void *fake_stack;
    const void *bottom;
    size_t bytes;
};

struct fiber {
    ucontext_t context; /* for the start; later the fiber is left and entered by jumps, which need no system calls */
    resting_place inside;
    bool started;
    tsr_emulated_place place;
    unsigned warp, lane;
    bool alive;
};

struct warp {
    uint64_t value[32], result[32];
    unsigned arrived;
    unsigned generation[32];
};

struct block_runner {
    std::vector<fiber> fibers;
    std::vector<warp> warps;
    std::unique_ptr<char[]> stacks;
    unsigned stack_count;
    resting_place scheduler;
    fiber *current;
    unsigned alive, arrived, generation;
    int count, last_count;
    const std::function<void()> *kernel;
    double deadline;
    void *shared; /* an allocation of its own, of the launch's size, so that AddressSanitizer checks it */
};

thread_local block_runner *running;

__attribute__((noinline, noreturn)) void jump(resting_place *to)
{
    __builtin_longjmp(to->jump, 1);
}

/* Leaves one stack for another. Returns when the first stack is entered again. */
__attribute__((noinline)) void go(resting_place *from, resting_place *to, const ucontext_t *begin)
{
    if (__sanitizer_start_switch_fiber) __sanitizer_start_switch_fiber(&from->fake_stack, to->bottom, to->bytes);
    if (__builtin_setjmp(from->jump) == 0) {
        if (begin) setcontext(begin);
        jump(to);
    }
    if (__sanitizer_finish_switch_fiber) __sanitizer_finish_switch_fiber(from->fake_stack, nullptr, nullptr);
}

void start_fiber()
{
    block_runner *b = running;
    if (__sanitizer_finish_switch_fiber)
        __sanitizer_finish_switch_fiber(nullptr, &b->scheduler.bottom, &b->scheduler.bytes);
    (*b->kernel)();
    b->current->alive = false;
    b->alive--;
    if (b->alive > 0 && b->arrived == b->alive) { /* a barrier does not wait for threads that have ended */
        b->arrived = 0;
        b->generation++;
        b->last_count = b->count;
        b->count = 0;
    }
    if (__sanitizer_start_switch_fiber)
        __sanitizer_start_switch_fiber(nullptr, b->scheduler.bottom, b->scheduler.bytes);
    jump(&b->scheduler);
}

/* Allocates a stack for each thread. AddressSanitizer, if linked, reports accesses below a stack. */
void take_stacks(block_runner *b, unsigned threads)
{
    if (b->stack_count >= threads) return;
    b->stacks.reset(new char[(size_t)threads * STACK_BYTES]);
    b->stack_count = threads;
    for (unsigned t = 0; __asan_poison_memory_region && t < threads; t++)
        __asan_poison_memory_region(b->stacks.get() + (size_t)t * STACK_BYTES, STACK_GUARD);
}

void run_block(block_runner *b, dim3 grid, dim3 block, size_t shared_bytes, unsigned index)
{
    const unsigned threads = block.x * block.y * block.z;
    running = b;
    b->alive = threads;
    b->arrived = b->generation = 0;
    b->count = b->last_count = 0;
    b->warps.assign((threads + 31) / 32, warp());
    b->fibers.resize(threads);
    take_stacks(b, threads);
    if (posix_memalign(&b->shared, 16, shared_bytes ? shared_bytes : 1) != 0) abort();
    memset(b->shared, 0xa5, shared_bytes);
    b->deadline = seconds(CLOCK_THREAD_CPUTIME_ID) + PATIENCE_S; /* of work: other programs may need the processors */
    for (unsigned t = 0; t < threads; t++) {
        fiber &f = b->fibers[t];
        f.alive = true;
        f.started = false;
        f.warp = t / 32;
        f.lane = t % 32;
        f.place.thread = {t % block.x, t / block.x % block.y, t / (block.x * block.y)};
        f.place.block = {index % grid.x, index / grid.x % grid.y, index / (grid.x * grid.y)};
        f.place.block_size = block;
        f.place.grid_size = grid;
        getcontext(&f.context);
        f.inside.bottom = b->stacks.get() + (size_t)t * STACK_BYTES + STACK_GUARD;
        f.inside.bytes = STACK_BYTES - STACK_GUARD;
        f.context.uc_stack.ss_sp = const_cast<void *>(f.inside.bottom);
        f.context.uc_stack.ss_size = f.inside.bytes;
        f.context.uc_link = nullptr;
        makecontext(&f.context, start_fiber, 0);
    }
    while (b->alive > 0) {
        for (unsigned t = 0; t < threads; t++) {
            /* odd rounds go backwards, so that kernels cannot rely on an order of threads */
            fiber &f = b->fibers[b->generation & 1u ? threads - 1 - t : t];
            if (!f.alive) continue;
            b->current = &f;
            const ucontext_t *begin = f.started ? nullptr : &f.context;
            f.started = true;
            go(&b->scheduler, &f.inside, begin);
        }
        if (seconds(CLOCK_THREAD_CPUTIME_ID) > b->deadline) {
            fprintf(stderr, "emulation: block %u of a kernel waits for ever\n", index);
            abort();
        }
        sched_yield();
    }
    free(b->shared);
}

struct launch {
    const std::function<void()> *kernel;
    dim3 grid, block;
    size_t shared_bytes;
    std::atomic<unsigned> next;
    unsigned blocks;
};

/* Runners of past launches are kept: their stacks, tens of megabytes, are already allocated. */
pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER;
std::vector<std::unique_ptr<block_runner>> idle;

std::unique_ptr<block_runner> take_runner()
{
    std::unique_ptr<block_runner> runner;
    pthread_mutex_lock(&idle_lock);
    if (!idle.empty()) {
        runner = std::move(idle.back());
        idle.pop_back();
    }
    pthread_mutex_unlock(&idle_lock);
    if (!runner) runner.reset(new block_runner());
    return runner;
}

void *run_blocks(void *argument)
{
    launch *l = static_cast<launch *>(argument);
    std::unique_ptr<block_runner> runner = take_runner();
    runner->kernel = l->kernel;
    for (unsigned i; (i = l->next++) < l->blocks;) run_block(runner.get(), l->grid, l->block, l->shared_bytes, i);
    running = nullptr;
    pthread_mutex_lock(&idle_lock);
    idle.push_back(std::move(runner));
    pthread_mutex_unlock(&idle_lock);
    return nullptr;
}

/* Whether AddressSanitizer would report a copy only because it crosses rooms between arrays (tsr_emulated_array). */
bool crosses_rooms(const void *memory, size_t bytes)
{
    enum { ROOM = 0xf7 /* AddressSanitizer's mark of what the program declared poisoned */ };
    if (!__asan_get_shadow_mapping || bytes == 0) return false;
    size_t scale, offset;
    __asan_get_shadow_mapping(&scale, &offset);
    const uintptr_t first = (uintptr_t)memory >> scale, last = ((uintptr_t)memory + bytes - 1) >> scale;
    bool rooms = false;
    for (uintptr_t at = first; at <= last; at++) {
        const unsigned mark = *reinterpret_cast<const unsigned char *>(at + offset);
        if (mark >= 0x80 && mark != ROOM) return false;
        rooms = rooms || mark == ROOM;
    }
    return rooms;
}

} // namespace

struct CUstream_st {
    int device;
};

namespace
{

thread_local cudaError_t last_error = cudaSuccess;
thread_local int current_device;

/* Device memory: the device of each allocation, and each device's allocated bytes and their peak. */
enum { DEVICES_LIMIT = 8 };
#define DEVICE_BYTES ((size_t)1 << 30)
struct allocation {
    size_t bytes;
    int device;
};
pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;
std::map<void *, allocation> allocations;
size_t taken_bytes[DEVICES_LIMIT], peak_bytes[DEVICES_LIMIT];

/* One device, or as many as TSR_EMULATE_DEVICES says. Threads choose one of them like real ones. */
int device_count()
{
    const char *const devices = getenv("TSR_EMULATE_DEVICES");
    if (getenv("TSR_EMULATE_NO_DEVICE")) return 0;
    const int count = devices ? atoi(devices) : 1;
    return count < DEVICES_LIMIT ? count : DEVICES_LIMIT;
}

cudaError_t done(cudaError_t error)
{
    if (error != cudaSuccess) last_error = error;
    return error;
}

} // namespace

const tsr_emulated_place &tsr_emulated_place_here()
{
    return running->current->place;
}
void *tsr_emulated_shared()
{
    return running->shared;
}

void tsr_emulated_yield()
{
    block_runner *b = running;
    go(&b->current->inside, &b->scheduler, nullptr);
}

int tsr_emulated_count_block(int predicate)
{
    block_runner *b = running;
    const unsigned generation = b->generation;
    b->count += predicate;
    if (++b->arrived == b->alive) {
        b->arrived = 0;
        b->generation++;
        b->last_count = b->count;
        b->count = 0;
    } else {
        while (b->generation == generation) tsr_emulated_yield();
    }
    return b->last_count;
}

void tsr_emulated_sync_block()
{
    tsr_emulated_count_block(0);
}

const uint64_t *tsr_emulated_exchange(unsigned mask, uint64_t value)
{
    block_runner *b = running;
    const fiber *f = b->current;
    warp &w = b->warps[f->warp];
    const unsigned lane = f->lane, generation = w.generation[lane];
    if (!(mask >> lane & 1u)) {
        fprintf(stderr, "emulation: lane %u is not in its mask %08x\n", lane, mask);
        abort();
    }
    w.value[lane] = value;
    w.arrived |= 1u << lane;
    if ((w.arrived & mask) == mask) {
        for (unsigned l = 0; l < 32; l++) {
            if (!(mask >> l & 1u)) continue;
            w.result[l] = w.value[l];
            w.generation[l]++;
        }
        w.arrived &= ~mask;
    } else {
        while (w.generation[lane] == generation) tsr_emulated_yield();
    }
    return w.result;
}

/* With AddressSanitizer a shared variable exists once (__shared__ in cuda_runtime.h), so blocks run one by one. */
static pthread_mutex_t one_by_one = PTHREAD_MUTEX_INITIALIZER;

void tsr_emulated_array(void *array, size_t bytes, size_t room)
{
    if (!__asan_poison_memory_region) return;
    __asan_unpoison_memory_region(array, bytes);
    __asan_poison_memory_region(static_cast<char *>(array) + bytes, room);
}

cudaError_t tsr_emulated_launch(const std::function<void()> &kernel, dim3 grid, dim3 block, size_t shared_bytes,
                                cudaStream_t stream)
{
    if (stream && stream->device != current_device) return done(cudaErrorInvalidResourceHandle);
    const uint64_t threads = (uint64_t)block.x * block.y * block.z, blocks = (uint64_t)grid.x * grid.y * grid.z;
    if (threads == 0 || threads > 1024 || blocks == 0 || blocks > INT32_MAX || shared_bytes > (227u << 10))
        return done(cudaErrorInvalidValue);
    launch l;
    l.kernel = &kernel;
    l.grid = grid;
    l.block = block;
    l.shared_bytes = shared_bytes;
    l.next = 0;
    l.blocks = (unsigned)blocks;
    const bool alone = __sanitizer_start_switch_fiber != nullptr;
    if (alone) pthread_mutex_lock(&one_by_one);
    pthread_t helpers[OS_THREADS];
    unsigned started = 0;
    while (!alone && started + 1 < l.blocks && started < OS_THREADS &&
           pthread_create(&helpers[started], nullptr, run_blocks, &l) == 0)
        started++;
    if (started == 0) {
        pthread_create(&helpers[0], nullptr, run_blocks, &l); /* not on the caller's thread, which may run a fiber */
        started = 1;
    }
    for (unsigned i = 0; i < started; i++) pthread_join(helpers[i], nullptr);
    if (alone) pthread_mutex_unlock(&one_by_one);
    return cudaSuccess;
}

/* ---- Runtime calls ---------------------------------------------------------------------------------------- */

extern "C" {

const char *cudaGetErrorString(cudaError_t error)
{
    return cudaGetErrorName(error);
}
const char *cudaGetErrorName(cudaError_t error)
{
    switch (error) {
    case cudaSuccess:
        return "no error";
    case cudaErrorInvalidValue:
        return "invalid argument";
    case cudaErrorMemoryAllocation:
        return "out of memory";
    case cudaErrorNoDevice:
        return "no device";
    case cudaErrorInvalidDevice:
        return "invalid device";
    case cudaErrorLaunchFailure:
        return "launch failure";
    default:
        return "emulated error";
    }
}
cudaError_t cudaPeekAtLastError(void)
{
    return last_error;
}
cudaError_t cudaGetLastError(void)
{
    const cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}
cudaError_t cudaGetDeviceCount(int *count)
{
    *count = device_count();
    return *count ? cudaSuccess : done(cudaErrorNoDevice);
}
cudaError_t cudaSetDevice(int device)
{
    if (device < 0 || device >= device_count()) return done(cudaErrorInvalidDevice);
    current_device = device;
    return cudaSuccess;
}
cudaError_t cudaGetDevice(int *device)
{
    *device = current_device;
    return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int)
{
    memset(p, 0, sizeof *p);
    strcpy(p->name, "emulated");
    p->totalGlobalMem = (size_t)1 << 30;
    p->sharedMemPerBlock = 48 << 10;
    p->sharedMemPerBlockOptin = 227 << 10;
    p->sharedMemPerMultiprocessor = 228 << 10;
    p->major = 9;
    p->multiProcessorCount = MULTIPROCESSORS;
    p->maxThreadsPerMultiProcessor = 2048;
    p->l2CacheSize = 1 << 20;
    p->regsPerMultiprocessor = 65536;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int)
{
    *value = attribute == cudaDevAttrMultiProcessorCount            ? MULTIPROCESSORS
             : attribute == cudaDevAttrMaxSharedMemoryPerBlockOptin ? 227 << 10
             : attribute == cudaDevAttrComputeCapabilityMajor       ? 9
                                                                    : 0;
    return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int *version)
{
    *version = 0;
    return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = 0;
    return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize(void)
{
    return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    *free_bytes = *total_bytes = DEVICE_BYTES;
    return cudaSuccess;
}
/* New memory holds garbage, as on a GPU. */
cudaError_t cudaMallocHost(void **memory, size_t bytes)
{
    if (bytes > (size_t)1 << 31 || posix_memalign(memory, 256, bytes ? bytes : 1) != 0)
        return done(cudaErrorMemoryAllocation);
    memset(*memory, 0xcd, bytes);
    return cudaSuccess;
}
cudaError_t cudaFreeHost(void *memory)
{
    free(memory);
    return cudaSuccess;
}
cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned)
{
    memset(memory, 0xcd, bytes);
    return cudaSuccess;
}
cudaError_t cudaHostUnregister(void *)
{
    return cudaSuccess;
}
cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    const cudaError_t error = cudaMallocHost(memory, bytes);
    if (error != cudaSuccess) return error;
    pthread_mutex_lock(&memory_lock);
    allocations[*memory] = {bytes, current_device};
    size_t &taken = taken_bytes[current_device], &peak = peak_bytes[current_device];
    taken += bytes;
    if (taken > peak) peak = taken;
    pthread_mutex_unlock(&memory_lock);
    return cudaSuccess;
}
cudaError_t cudaFree(void *memory)
{
    pthread_mutex_lock(&memory_lock);
    const auto found = allocations.find(memory);
    if (found != allocations.end()) {
        taken_bytes[found->second.device] -= found->second.bytes;
        allocations.erase(found);
    }
    pthread_mutex_unlock(&memory_lock);
    free(memory);
    return cudaSuccess;
}
size_t tsr_emulated_peak_bytes(int device)
{
    pthread_mutex_lock(&memory_lock);
    const size_t peak = peak_bytes[device];
    peak_bytes[device] = taken_bytes[device];
    pthread_mutex_unlock(&memory_lock);
    return peak;
}
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind)
{
    if (crosses_rooms(to, bytes) || crosses_rooms(from, bytes)) {
        volatile char *t = static_cast<char *>(to); /* else a compiler makes it memcpy(), which is checked */
        for (size_t i = 0; i < bytes; i++) t[i] = static_cast<const char *>(from)[i];
    } else if (bytes) {
        memmove(to, from, bytes);
    }
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t)
{
    return cudaMemcpy(to, from, bytes, kind);
}
cudaError_t cudaMemset(void *memory, int value, size_t bytes)
{
    if (crosses_rooms(memory, bytes)) {
        volatile char *m = static_cast<char *>(memory);
        for (size_t i = 0; i < bytes; i++) m[i] = (char)value;
    } else if (bytes) {
        memset(memory, value, bytes);
    }
    return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t)
{
    return cudaMemset(memory, value, bytes);
}
cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    *stream = new CUstream_st{current_device};
    return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned)
{
    return cudaStreamCreate(stream);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    delete stream;
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t)
{
    return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void *, cudaFuncAttribute, int)
{
    return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *, int, size_t, unsigned)
{
    *blocks = 2;
    return cudaSuccess;
}
struct CUevent_st {
    double at;
};
cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    *event = new CUevent_st();
    return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
    return cudaEventCreate(event);
}
cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    delete event;
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t)
{
    event->at = seconds(CLOCK_MONOTONIC);
    return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t)
{
    return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
    *milliseconds = (float)(1e3 * (end->at - start->at));
    return cudaSuccess;
}
}
