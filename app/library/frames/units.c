/* Frames that are units; see flow.h. */
#include "app/library/flow.h"

#include <stdlib.h>

#include "io/recipe/unit.h"
#include "kernels/pool/thread_pool.h"

enum { LANES = 64 }; /* at most */

/* in: a stream, or a section, in which the unit is a piece. */
struct lane {
    struct tsr_bytes in, made;
    struct tsr_piece piece;
    enum tsr_status status;
    struct tsr_error error;
};

struct tsr_units {
    struct tsr_engine *engine;
    const struct tsr_header *header;
    struct tsr_input *input;
    uint64_t memory; /* of a lane */
    uint32_t lanes;  /* those that have memory */
    struct lane lane[LANES];
};

enum tsr_status tsr_units_take(struct tsr_engine *engine, const struct tsr_header *header, struct tsr_input *input,
                               uint64_t longest, struct tsr_units **units, struct tsr_error *error)
{
    struct tsr_units *const u = *units = calloc(1, sizeof *u);
    if (!u) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for frames");
    u->engine = engine;
    u->header = header;
    u->input = input;
    u->memory = tsr_unit_memory(header, longest);
    u->lanes = 1;
    return TSR_OK;
}

void tsr_units_give(struct tsr_units *u)
{
    if (!u) return;
    if (u->lanes > 1) tsr_input_return_spare(u->input, (u->lanes - 1) * u->memory);
    for (int i = 0; i < LANES; i++) {
        tsr_bytes_free(&u->lane[i].in);
        tsr_bytes_free(&u->lane[i].made);
    }
    free(u);
}

uint32_t tsr_unit_lanes(const struct tsr_units *u)
{
    const uint32_t threads = (uint32_t)tsr_pool_threads(u->engine->pool);
    return threads < LANES ? threads : LANES;
}

const struct tsr_bytes *tsr_made_unit(const struct tsr_units *u, uint32_t i)
{
    return &u->lane[i].made;
}

/* As many lanes as have memory, at most *count. */
static void take_lanes(struct tsr_units *u, uint32_t *count)
{
    while (u->lanes < *count && tsr_input_take_spare(u->input, u->memory)) u->lanes++;
    if (*count > u->lanes) *count = u->lanes;
}

/* Works on what was read, and returns the first error. */
static enum tsr_status run(struct tsr_units *u, void (*work)(void *context, unsigned lane), uint32_t first,
                           uint32_t count, struct tsr_error *error)
{
    tsr_pool_run(u->engine->pool, work, u, count);
    for (uint32_t i = 0; i < count; i++)
        if (u->lane[i].status != TSR_OK)
            return tsr_fail(error, u->lane[i].status, "frame %u: %s", first + i, u->lane[i].error.text);
    return TSR_OK;
}

static void make_unit(void *context, unsigned i)
{
    struct tsr_units *const u = context;
    struct lane *const lane = &u->lane[i];
    enum tsr_unit_kind kind;
    lane->made.size = 0;
    lane->made.limit = lane->in.size + 1;
    lane->status = tsr_unit_make(u->header, lane->in.bytes, lane->in.size, &lane->made, &kind, &lane->error);
}

enum tsr_status tsr_make_units(struct tsr_units *u, struct tsr_source *source, uint32_t first, uint32_t *count,
                               double *seconds, struct tsr_error *error)
{
    const double start = tsr_seconds();
    take_lanes(u, count);
    for (uint32_t i = 0; i < *count; i++) {
        u->lane[i].in.size = 0;
        u->lane[i].in.limit = SIZE_MAX / 4;
        TSR_TRY(source->ops->read_stream(source, first + i, &u->lane[i].in, error));
    }
    *seconds += tsr_seconds() - start;
    TSR_TRY(run(u, make_unit, first, *count, error));
    for (uint32_t i = 0; i < *count; i++)
        if (u->lane[i].error.offset != TSR_NO_OFFSET)
            tsr_input_note_damage(source->input, "the JPEG stream of frame %u %.100s", first + i + 1,
                                  u->lane[i].error.text);
    return TSR_OK;
}

static void open_unit(void *context, unsigned i)
{
    struct tsr_units *const u = context;
    struct lane *const lane = &u->lane[i];
    lane->made.size = 0;
    lane->made.limit = SIZE_MAX / 4;
    lane->status = tsr_unit_open(u->header, lane->piece.bytes, lane->piece.size, &lane->made, &lane->error);
}

enum tsr_status tsr_open_units(struct tsr_units *u, struct tsr_container_reader *reader, uint32_t first,
                               uint32_t *count, double *seconds, struct tsr_error *error)
{
    const double start = tsr_seconds();
    take_lanes(u, count);
    for (uint32_t i = 0; i < *count; i++) {
        struct lane *const lane = &u->lane[i];
        lane->in.size = 0;
        lane->in.limit = SIZE_MAX / 4;
        TSR_TRY(tsr_bytes_reserve(&lane->in, tsr_container_unit_bytes(reader, first + i), error));
        TSR_TRY(tsr_container_get_unit(reader, first + i, lane->in.bytes, &lane->piece, error));
    }
    *seconds += tsr_seconds() - start;
    return run(u, open_unit, first, *count, error);
}
