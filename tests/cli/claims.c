/* The command line, with all memory counted: what files have claimed of the engine's budget, and what they use. The
 * linker redirects the calls by which memory is claimed (--wrap); the functions of malloc are this program's.
 *
 * TESSERA_CLAIMS names a file. When the engine is destroyed, a line of numbers is written there:
 *
 *   claim    the most bytes that files have claimed at a time, without what they can do without
 *   use      the most bytes that the heap has held at a time, beyond what it held when the engine was made
 *   excess   the most bytes by which the heap has exceeded the claims at a time
 *   resident the most bytes of memory beyond what was resident when the engine was made
 *   promise  the most bytes that a file was said to take before it was begun
 *   child    the most bytes of memory of a process that was started, to decode HTJ2K */
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "app/library/budget.h"
#include "kernels/engine_cpu/engine_cpu.h"

/* ---- The heap ----------------------------------------------------------------------------------------------- */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *memory);

static atomic_llong held, held_most, claimed, spare, claimed_most, excess_most, promised;
static atomic_llong headers; /* bytes of a header that were claimed or need no claim, until the file's own claim */
static long long held_before, resident_before;
static atomic_bool counts;

static void raise_to(atomic_llong *most, long long value)
{
    long long was = atomic_load(most);
    while (value > was && !atomic_compare_exchange_weak(most, &was, value)) {
    }
}

static void note(void)
{
    if (!atomic_load(&counts)) return;
    const long long use = atomic_load(&held) - held_before, files = atomic_load(&claimed);
    raise_to(&held_most, use);
    raise_to(&excess_most, use - (files > 0 ? files : atomic_load(&headers)));
}

static void *taken(void *memory)
{
    if (memory) atomic_fetch_add(&held, (long long)malloc_usable_size(memory));
    note();
    return memory;
}

void *malloc(size_t size)
{
    return taken(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
    return taken(__libc_calloc(count, size));
}

void *realloc(void *memory, size_t size)
{
    const long long before = memory ? (long long)malloc_usable_size(memory) : 0;
    void *const grown = __libc_realloc(memory, size);
    if (grown || size == 0) atomic_fetch_sub(&held, before);
    return grown ? taken(grown) : NULL;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return taken(__libc_memalign(alignment, size));
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    *memory = taken(__libc_memalign(alignment, size));
    return *memory ? 0 : 12; /* ENOMEM */
}

void free(void *memory)
{
    if (memory) atomic_fetch_sub(&held, (long long)malloc_usable_size(memory));
    __libc_free(memory);
}

/* ---- Claims --------------------------------------------------------------------------------------------------- */

bool __real_tsr_pool_reserve(struct tsr_pool *pool, enum tsr_memory_lot lot, size_t bytes);
bool __wrap_tsr_pool_reserve(struct tsr_pool *pool, enum tsr_memory_lot lot, size_t bytes);
bool __wrap_tsr_pool_reserve(struct tsr_pool *pool, enum tsr_memory_lot lot, size_t bytes)
{
    if (!__real_tsr_pool_reserve(pool, lot, bytes)) return false;
    if (lot == TSR_MEMORY_OF_HEADERS) return true;
    raise_to(&claimed_most, atomic_fetch_add(&claimed, (long long)bytes) + (long long)bytes - atomic_load(&spare));
    return true;
}

void __real_tsr_pool_release(struct tsr_pool *pool, enum tsr_memory_lot lot, size_t bytes);
void __wrap_tsr_pool_release(struct tsr_pool *pool, enum tsr_memory_lot lot, size_t bytes);
void __wrap_tsr_pool_release(struct tsr_pool *pool, enum tsr_memory_lot lot, size_t bytes)
{
    __real_tsr_pool_release(pool, lot, bytes);
    if (lot != TSR_MEMORY_OF_HEADERS) atomic_fetch_sub(&claimed, (long long)bytes);
}

bool __real_tsr_pool_try_reserve(struct tsr_pool *pool, enum tsr_memory_lot lot, size_t bytes);
bool __wrap_tsr_pool_try_reserve(struct tsr_pool *pool, enum tsr_memory_lot lot, size_t bytes);
bool __wrap_tsr_pool_try_reserve(struct tsr_pool *pool, enum tsr_memory_lot lot, size_t bytes)
{
    const bool is_had = __real_tsr_pool_try_reserve(pool, lot, bytes);
    if (is_had) atomic_fetch_add(&claimed, (long long)bytes);
    if (is_had) atomic_fetch_add(&spare, (long long)bytes);
    return is_had;
}

void __real_tsr_input_return_spare(const struct tsr_input *input, uint64_t bytes);
void __wrap_tsr_input_return_spare(const struct tsr_input *input, uint64_t bytes);
void __wrap_tsr_input_return_spare(const struct tsr_input *input, uint64_t bytes)
{
    __real_tsr_input_return_spare(input, bytes);
    atomic_fetch_sub(&spare, (long long)bytes);
}

enum tsr_status __real_tsr_input_claim_header(const struct tsr_input *input, uint64_t bytes, struct tsr_error *error);
enum tsr_status __wrap_tsr_input_claim_header(const struct tsr_input *input, uint64_t bytes, struct tsr_error *error);
enum tsr_status __wrap_tsr_input_claim_header(const struct tsr_input *input, uint64_t bytes, struct tsr_error *error)
{
    const enum tsr_status status = __real_tsr_input_claim_header(input, bytes, error);
    if (status == TSR_OK) raise_to(&headers, (long long)bytes);
    return status;
}

uint64_t __real_tsr_encode_memory(const struct tsr_engine *engine, const struct tsr_header *header,
                                  const struct tsr_coding *coding, const struct tsr_need *need, uint64_t input_bytes);
uint64_t __wrap_tsr_encode_memory(const struct tsr_engine *engine, const struct tsr_header *header,
                                  const struct tsr_coding *coding, const struct tsr_need *need, uint64_t input_bytes);
uint64_t __wrap_tsr_encode_memory(const struct tsr_engine *engine, const struct tsr_header *header,
                                  const struct tsr_coding *coding, const struct tsr_need *need, uint64_t input_bytes)
{
    const uint64_t bytes = __real_tsr_encode_memory(engine, header, coding, need, input_bytes);
    raise_to(&promised, (long long)bytes);
    return bytes;
}

uint64_t __real_tsr_verify_memory(const struct tsr_engine *engine, const struct tsr_header *header,
                                  const struct tsr_coding *coding, const struct tsr_need *need, uint64_t input_bytes);
uint64_t __wrap_tsr_verify_memory(const struct tsr_engine *engine, const struct tsr_header *header,
                                  const struct tsr_coding *coding, const struct tsr_need *need, uint64_t input_bytes);
uint64_t __wrap_tsr_verify_memory(const struct tsr_engine *engine, const struct tsr_header *header,
                                  const struct tsr_coding *coding, const struct tsr_need *need, uint64_t input_bytes)
{
    const uint64_t bytes = __real_tsr_verify_memory(engine, header, coding, need, input_bytes);
    raise_to(&promised, (long long)bytes);
    return bytes;
}

/* ---- The engine ----------------------------------------------------------------------------------------------- */

/* A number of kilobytes of /proc/self/status, in bytes. */
static long long of_process(const char *field)
{
    char line[256];
    long long kilobytes = 0;
    FILE *const file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, field, strlen(field)) == 0) kilobytes = atoll(line + strlen(field));
    if (file) fclose(file);
    return 1024 * kilobytes;
}

enum tsr_status __real_tsr_engine_create(const struct tsr_engine_options *options, struct tsr_engine **engine,
                                         struct tsr_error *error);
enum tsr_status __wrap_tsr_engine_create(const struct tsr_engine_options *options, struct tsr_engine **engine,
                                         struct tsr_error *error);
enum tsr_status __wrap_tsr_engine_create(const struct tsr_engine_options *options, struct tsr_engine **engine,
                                         struct tsr_error *error)
{
    const enum tsr_status status = __real_tsr_engine_create(options, engine, error);
    if (status != TSR_OK) return status;
    tsr_cpu_engine_keep((*engine)->cpu, 0); /* what it keeps for the next file is its own */
    atomic_store(&headers, TSR_UNCLAIMED_BYTES);
    resident_before = of_process("VmRSS:");
    held_before = atomic_load(&held);
    atomic_store(&counts, true);
    return status;
}

void __real_tsr_engine_destroy(struct tsr_engine *engine);
void __wrap_tsr_engine_destroy(struct tsr_engine *engine);
void __wrap_tsr_engine_destroy(struct tsr_engine *engine)
{
    const char *const path = getenv("TESSERA_CLAIMS");
    atomic_store(&counts, false);
    FILE *const file = path ? fopen(path, "w") : NULL;
    if (file) {
        struct rusage children;
        getrusage(RUSAGE_CHILDREN, &children);
        fprintf(file, "%lld %lld %lld %lld %lld %lld\n", atomic_load(&claimed_most), atomic_load(&held_most),
                atomic_load(&excess_most), of_process("VmHWM:") - resident_before, atomic_load(&promised),
                1024 * (long long)children.ru_maxrss);
        fclose(file);
    }
    __real_tsr_engine_destroy(engine);
}
