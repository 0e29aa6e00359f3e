/* Passes over the tiles of a plane, by several threads. */
#include "plane_passes_cpu.h"

#include <string.h>

/* The tiles are cut into ranges. A part takes those of its own range, then those that others have left. So threads work
 * far apart: two threads that touch a new large page at once both clear all of it. Threads that begin late or are slow
 * take fewer tiles. */
static void run_part(void *context, unsigned part)
{
    struct tsr_plane_work *const work = context;
    for (uint32_t i = 0; i < work->ranges; i++) {
        const uint32_t range = (part + i) % work->ranges;
        const uint32_t end = (uint32_t)((uint64_t)work->tiles * (range + 1) / work->ranges);
        for (uint32_t tile; (tile = atomic_fetch_add(&work->space->next[range], 1)) < end;)
            work->pass(work, part, tile);
    }
}

static void run_ranges(struct tsr_plane_work *work, tsr_tile_pass *pass, uint32_t ranges)
{
    work->pass = pass;
    work->ranges = ranges;
    for (uint32_t range = 0; range < ranges; range++)
        atomic_store(&work->space->next[range], (unsigned)((uint64_t)work->tiles * range / ranges));
    tsr_pool_run(work->pool, run_part, work, work->parts);
}

void tsr_run_pass(struct tsr_plane_work *work, tsr_tile_pass *pass)
{
    run_ranges(work, pass, work->parts);
}

void tsr_run_pass_in_order(struct tsr_plane_work *work, tsr_tile_pass *pass)
{
    run_ranges(work, pass, 1);
}

void tsr_run_counts(struct tsr_plane_work *work, tsr_tile_pass *pass, size_t bytes)
{
    struct tsr_encode_space *s = work->space;
    uint32_t *sum = (uint32_t *)&s->counts[0];
    for (uint32_t part = 0; part < work->parts; part++) memset(&s->counts[part], 0, bytes);
    tsr_run_pass(work, pass);
    for (uint32_t part = 1; part < work->parts; part++) {
        const uint32_t *counts = (const uint32_t *)&s->counts[part];
        for (size_t i = 0; i < bytes / sizeof *counts; i++) sum[i] += counts[i];
    }
}
