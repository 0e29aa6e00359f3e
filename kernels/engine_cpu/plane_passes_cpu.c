/* Passes over the tiles of a plane, by several threads. */
#include "plane_passes_cpu.h"

#include <string.h>

/* Takes tiles until none is left: threads that begin late or are slow take fewer. */
static void run_part(void *context, unsigned part)
{
    struct tsr_plane_work *work = context;
    for (uint32_t tile; (tile = atomic_fetch_add(&work->next, 1)) < work->tiles;) work->pass(work, part, tile);
}

void tsr_run_pass(struct tsr_plane_work *work, tsr_tile_pass *pass)
{
    work->pass = pass;
    atomic_store(&work->next, 0);
    tsr_pool_run(work->pool, run_part, work, work->parts);
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
