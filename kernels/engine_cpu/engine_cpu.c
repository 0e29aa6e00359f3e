/* The CPU engine: frames over a pool of threads, tiles of a frame over the same pool. */
#define _GNU_SOURCE /* sched_getcpu */
#include "encode_cpu.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gpu_load.h"

void *tsr_take(void *base, size_t *used, size_t bytes)
{
    void *at = base ? (uint8_t *)base + *used : NULL;
    *used += (bytes + 63) / 64 * 64;
    return at;
}

uint32_t tsr_parts_of(const struct tsr_pool *pool, uint32_t tiles)
{
    uint32_t wanted = (uint32_t)tsr_pool_threads(pool);
    if (wanted > TSR_PARTS_LIMIT) wanted = TSR_PARTS_LIMIT;
    return tiles < wanted ? tiles : wanted;
}

/* ---- Work space ------------------------------------------------------------------------------------------ */

#define KEPT_BYTES ((size_t)256 << 20)

struct block {
    void *memory; /* NULL: an empty place */
    size_t bytes;
    bool is_taken, is_fresh; /* is_fresh: nothing has used it yet, so Linux has its pages to clear */
    int processor;           /* that gave it back last: its cache has the block */
    uint64_t given;          /* when: the number of blocks that had been given back by then */
};

struct cpu_engine {
    struct tsr_engine base;
    pthread_mutex_t lock; /* of all below */
    struct block blocks[TSR_KEPT_BLOCKS];
    int places; /* later places have never held a block */
    size_t kept_bytes, kept_wanted;
    uint64_t given;
};

enum { LARGE_SPACE = 2 * TSR_LARGE_PAGE };

/* Rounds up by a sixteenth at most, so that a block can be used again for a size that is almost the same; small spaces
 * to pages, large ones to large pages. */
uint64_t tsr_cpu_workspace_bytes(uint64_t bytes)
{
    uint64_t step = bytes < LARGE_SPACE ? TSR_SMALL_PAGE : TSR_LARGE_PAGE;
    while (step <= bytes / 32) step *= 2;
    return bytes > UINT64_MAX - step ? bytes : (bytes + step - 1) / step * step;
}

/* The most bytes that the engine keeps, if the process may take this number of bytes. */
static size_t own_memory(const struct tsr_engine *engine, size_t bytes)
{
    const size_t wanted = ((const struct cpu_engine *)engine)->kept_wanted;
    return bytes / 8 < wanted ? bytes / 8 : wanted;
}

/* Notes a new block, so that it is kept when it is given back. It gets an empty place, or the place of the free block
 * that was given back first and is large enough to make room; if there is none, it is not kept. With the lock. */
static void keep(struct cpu_engine *cpu, void *memory, size_t bytes)
{
    struct block *place = NULL;
    const size_t limit = own_memory(&cpu->base, cpu->base.memory_bytes);
    const int places = cpu->places < TSR_KEPT_BLOCKS ? cpu->places + 1 : TSR_KEPT_BLOCKS;
    for (struct block *b = cpu->blocks; b < cpu->blocks + places; b++) {
        const size_t held = b->memory ? b->bytes : 0; /* empty places have given 0: they come first */
        if (b->is_taken || cpu->kept_bytes - held + bytes > limit) continue;
        if (!place || b->given < place->given) place = b;
    }
    if (!place) return;
    if (place == cpu->blocks + cpu->places) cpu->places++;
    if (place->memory) cpu->kept_bytes -= place->bytes;
    free(place->memory);
    *place = (struct block){memory, bytes, true, true, 0, 0};
    cpu->kept_bytes += bytes;
}

/* True if a is a better choice than b: the smaller one, then this processor's, then the one that was in use last. */
static bool is_better(const struct block *a, const struct block *b, int processor)
{
    if (!b || a->bytes != b->bytes) return !b || a->bytes < b->bytes;
    if ((a->processor == processor) != (b->processor == processor)) return a->processor == processor;
    return a->given > b->given;
}

/* Large work spaces have large pages where Linux gives them: a page fault every 4 KiB took a fifth of the time of
 * coding one large image, and threads wait for each other there. But not at their start: of a space for a GPU that is
 * all that is touched, and clearing 2 MiB for it took a twentieth of the time of 2,000 slices. */
static void *allocate(size_t bytes)
{
    if (bytes < LARGE_SPACE) return malloc(bytes);
    void *const memory =
        bytes % TSR_LARGE_PAGE == 0 ? aligned_alloc(TSR_LARGE_PAGE, bytes) : NULL; /* it was too much */
    if (memory) tsr_prefer_large_pages((char *)memory + TSR_LARGE_PAGE, bytes - TSR_LARGE_PAGE);
    return memory;
}

static void *take_workspace(struct tsr_engine *engine, size_t bytes)
{
    struct cpu_engine *cpu = (struct cpu_engine *)engine;
    struct block *best = NULL;
    const int processor = sched_getcpu();
    if (tsr_cpu_workspace_bytes(bytes) > SIZE_MAX / 2) return NULL;
    bytes = (size_t)tsr_cpu_workspace_bytes(bytes);
    pthread_mutex_lock(&cpu->lock);
    for (struct block *b = cpu->blocks; b < cpu->blocks + cpu->places; b++) { /* much larger blocks are for others */
        if (b->is_taken || b->bytes < bytes || b->bytes / 4 > bytes || !b->memory || !is_better(b, best, processor))
            continue;
        best = b;
        if (b->bytes == bytes && b->processor == processor) break; /* as good as any, and others wait for the lock */
    }
    if (best) {
        best->is_taken = true;
        best->is_fresh = false;
    }
    void *memory = best ? best->memory : allocate(bytes);
    if (memory && !best) keep(cpu, memory, bytes);
    pthread_mutex_unlock(&cpu->lock);
    return memory;
}

/* Whether this is the first use of a large space, which begins now, or later. Spaces that are not kept do not count. */
static bool is_first_use(struct tsr_engine *engine, const void *workspace, bool begins)
{
    struct cpu_engine *cpu = (struct cpu_engine *)engine;
    bool is_first = false;
    pthread_mutex_lock(&cpu->lock);
    for (struct block *b = cpu->blocks; b < cpu->blocks + cpu->places && workspace; b++)
        if (b->memory == workspace) {
            is_first = b->is_fresh && b->bytes >= LARGE_SPACE;
            b->is_fresh &= !begins;
        }
    pthread_mutex_unlock(&cpu->lock);
    return is_first;
}

/* Piece n of those that spans are cut into at large pages; bytes 0: there are fewer. */
static struct tsr_span piece_of(const struct tsr_spans *spans, unsigned n)
{
    for (size_t i = 0; i < spans->count; i++) {
        const uintptr_t start = (uintptr_t)spans->span[i].start / TSR_SMALL_PAGE * TSR_SMALL_PAGE,
                        end = (uintptr_t)spans->span[i].start + spans->span[i].bytes, page = start / TSR_LARGE_PAGE;
        const uintptr_t pieces = (end - 1) / TSR_LARGE_PAGE - page + 1;
        if (n < pieces) {
            const uintptr_t from = n == 0 ? start : (page + n) * TSR_LARGE_PAGE, next = (page + n + 1) * TSR_LARGE_PAGE;
            return (struct tsr_span){(uint8_t *)from, (next < end ? next : end) - from};
        }
        n -= (unsigned)pieces;
    }
    return (struct tsr_span){NULL, 0};
}

static unsigned count_pieces(const struct tsr_spans *spans)
{
    unsigned count = 0;
    while (piece_of(spans, count).bytes > 0) count++;
    return count;
}

static void populate(void *context, unsigned index)
{
    const struct tsr_span piece = piece_of(context, index);
    tsr_clear_pages(piece.start, piece.bytes);
}

/* One thread reads a file into them, while the others have nothing to do. So all threads have pages cleared, each far
 * from the others: two that touch a new large page at once both clear all of it. */
static void *take_rasters(struct tsr_engine *engine, size_t bytes)
{
    uint8_t *const memory = take_workspace(engine, bytes);
    struct tsr_spans spans = {{{memory, bytes}}, 1};
    if (is_first_use(engine, memory, true) && tsr_pool_threads(engine->pool) > 1)
        tsr_pool_run(engine->pool, populate, &spans, count_pieces(&spans));
    return memory;
}

static void clear_raster(struct tsr_engine *engine, void *workspace, size_t offset, size_t bytes)
{
    struct tsr_spans spans = {{{(uint8_t *)workspace + offset, bytes}}, 1};
    if (is_first_use(engine, workspace, false) && tsr_pool_threads(engine->pool) > 1)
        tsr_pool_run(engine->pool, populate, &spans, count_pieces(&spans));
}

static void give_workspace(struct tsr_engine *engine, void *workspace)
{
    struct cpu_engine *cpu = (struct cpu_engine *)engine;
    bool is_kept = false;
    if (!workspace) return;
    pthread_mutex_lock(&cpu->lock);
    for (struct block *b = cpu->blocks; b < cpu->blocks + cpu->places && !is_kept; b++) {
        if (b->memory != workspace) continue;
        b->is_taken = false;
        b->processor = sched_getcpu();
        b->given = ++cpu->given;
        is_kept = true;
    }
    pthread_mutex_unlock(&cpu->lock);
    if (!is_kept) free(workspace);
}

/* ---- Batches --------------------------------------------------------------------------------------------- */

/* Frames of a call that encodes, as the pool sees them. */
struct batch {
    struct tsr_encode_call call;
    struct tsr_encode_job *jobs;
    struct tsr_spans spans; /* of one frame in a fresh space */
    atomic_bool is_coded;
};

static size_t encode_workspace(const struct tsr_engine *engine, const struct tsr_image *image,
                               const struct tsr_coding *coding, uint32_t frames)
{
    return tsr_cpu_encode_space(engine->pool, image, coding, frames);
}

static size_t decode_workspace(const struct tsr_engine *engine, const struct tsr_image *image,
                               const struct tsr_decode_job *jobs, uint32_t frames)
{
    return tsr_cpu_decode_space(engine->pool, image, jobs, frames);
}

static size_t decode_bound(const struct tsr_engine *engine, const struct tsr_image *image, uint32_t tiles,
                           uint32_t frames)
{
    return tsr_cpu_decode_bound(engine->pool, image, tiles, frames);
}

static void encode_one(void *context, unsigned index)
{
    struct batch *b = context;
    tsr_cpu_encode_frame(&b->call, &b->jobs[index], index);
}

static void encode_or_populate(void *context, unsigned index)
{
    struct batch *b = context;
    if (index == 0) {
        encode_one(b, 0);
        atomic_store(&b->is_coded, true);
    } else if (!atomic_load(&b->is_coded)) {
        populate(&b->spans, index - 1);
    }
}

/* One frame. Its first stages have little work, and wait for memory; threads that have nothing to do meanwhile have the
 * pages cleared that later stages write. */
static void encode_in_fresh_space(struct batch *b)
{
    tsr_cpu_encode_spans(b->call.pool, b->call.image, b->call.coding, b->call.workspace, &b->spans);
    tsr_pool_run(b->call.pool, encode_or_populate, b, 1 + count_pieces(&b->spans));
}

static enum tsr_status encode(struct tsr_engine *engine, const struct tsr_image *image, const struct tsr_coding *coding,
                              struct tsr_encode_job *jobs, uint32_t frames, void *workspace)
{
    struct batch b = {.call = tsr_cpu_encode_call(engine->pool, image, coding, frames, workspace), .jobs = jobs};
    const bool is_fresh = is_first_use(engine, workspace, true);
    if (is_fresh && frames == 1 && tsr_pool_threads(engine->pool) > 1)
        encode_in_fresh_space(&b);
    else
        tsr_pool_run(engine->pool, encode_one, &b, frames);
    for (uint32_t i = 0; i < frames; i++) {
        jobs[i].engine = engine->ops->name;
        jobs[i].fallback = NULL;
        jobs[i].lent = NULL;
    }
    return TSR_OK;
}

/* Nothing was lent. */
static void give_coded(struct tsr_engine *engine, struct tsr_encode_job *job)
{
    (void)engine;
    (void)job;
}

static enum tsr_status decode(struct tsr_engine *engine, const struct tsr_image *image, struct tsr_decode_job *jobs,
                              uint32_t frames, void *workspace)
{
    /* What a decoder touches first is small, and one thread touches it: clearing a large page for that takes as long
     * as decoding 1 to 3 % of a large image. A fresh space begins at a page. */
    if (is_first_use(engine, workspace, true) && frames == 1)
        tsr_prefer_small_pages(workspace, tsr_cpu_decode_small(engine->pool, image, jobs, workspace));
    tsr_cpu_decode_frames(engine->pool, image, jobs, frames, workspace);
    for (uint32_t i = 0; i < frames; i++) {
        jobs[i].engine = engine->ops->name;
        jobs[i].fallback = NULL;
    }
    for (uint32_t i = 0; i < frames; i++)
        if (jobs[i].status != TSR_OK) return jobs[i].status;
    return TSR_OK;
}

static void times(struct tsr_engine *engine, struct tsr_engine_times *times)
{
    (void)engine;
    memset(times, 0, sizeof *times);
}

static void destroy(struct tsr_engine *engine)
{
    struct cpu_engine *cpu = (struct cpu_engine *)engine;
    tsr_pool_destroy(engine->pool);
    for (int i = 0; i < TSR_KEPT_BLOCKS; i++) free(cpu->blocks[i].memory);
    pthread_mutex_destroy(&cpu->lock);
    free(cpu);
}

static const struct tsr_engine_ops cpu_engine_ops = {
    "cpu",        encode_workspace, decode_workspace,
    decode_bound, take_workspace,   tsr_cpu_workspace_bytes,
    take_rasters, give_workspace,   tsr_cpu_raster_offset,
    clear_raster, encode,           give_coded,
    decode,       own_memory,       times,
    destroy,
};

struct tsr_engine *tsr_cpu_engine_create(struct tsr_pool *pool)
{
    struct cpu_engine *cpu = calloc(1, sizeof *cpu);
    if (!cpu || tsr_make_lock(&cpu->lock) != 0) {
        free(cpu);
        tsr_pool_destroy(pool);
        return NULL;
    }
    cpu->kept_wanted = KEPT_BYTES;
    cpu->base.memory_bytes = SIZE_MAX;
    cpu->base.ops = &cpu_engine_ops;
    cpu->base.pool = pool;
    cpu->base.frames_wanted = 2 * (uint32_t)tsr_pool_threads(pool);
    cpu->base.cpu = &cpu->base;
    return &cpu->base;
}

void tsr_cpu_engine_keep(struct tsr_engine *engine, size_t bytes)
{
    ((struct cpu_engine *)engine)->kept_wanted = bytes;
}

void tsr_cpu_engine_drop(struct tsr_engine *engine)
{
    struct cpu_engine *const cpu = (struct cpu_engine *)engine;
    pthread_mutex_lock(&cpu->lock);
    for (struct block *b = cpu->blocks; b < cpu->blocks + cpu->places; b++) {
        if (!b->memory || b->is_taken) continue;
        cpu->kept_bytes -= b->bytes;
        free(b->memory);
        *b = (struct block){0};
    }
    pthread_mutex_unlock(&cpu->lock);
}
