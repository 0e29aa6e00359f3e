/* Drawn planes of a frame; see the header. */
#include "encode_drawn_cpu.h"

#include <string.h>

#include "entropy/drawn.h"
#include "kernels/drawn/drawn_cpu.h"

enum { FEW_VALUES = 16 }; /* of pieces that are coded by value alone */

/* The pieces of drawn tiles: of a tile and a coded plane each, by tile, then by plane. */
struct drawn_work {
    const struct tsr_encode_space *space;
    struct tsr_tiling cut;
    int planes, plane[TSR_PLANES_LIMIT]; /* the coded ones */
    uint32_t pieces;
    atomic_uint next;
    atomic_bool failed, blended; /* blended: a piece is by blend */
};

static struct drawn_work begin_work(const struct tsr_image *image, const struct tsr_encode_space *space)
{
    struct drawn_work work = {.space = space, .cut = tsr_cut_image(image, 1, true)};
    for (int p = 0; p < space->model->planes; p++)
        if (tsr_is_coded(&space->model->plane[p])) work.plane[work.planes++] = p;
    work.pieces = tsr_tiling_count(work.cut) * (uint32_t)work.planes;
    return work;
}

/* Where a piece may stand: a tile has the share of its samples, a piece an equal part of it. */
static uint8_t *room_of(const struct drawn_work *work, struct tsr_tile tile, int plane, size_t *room)
{
    enum { SAMPLE_BYTES = 4 }; /* of symbols */
    const size_t row = tile.first / tile.stride, column = tile.first % tile.stride;
    const size_t before = row * tile.stride + column * (size_t)tile.height;
    *room = SAMPLE_BYTES * (size_t)tile.width * (size_t)tile.height / (size_t)work->planes;
    return (uint8_t *)work->space->symbols.value + SAMPLE_BYTES * before + (size_t)plane * *room;
}

/* Codes a piece of two values, or by residuals or by values, as its range says; else both ways at once, of which the
 * shorter one stays. *others: see tsr_code_drawn_tile. Returns its bytes; 0: it has no room. */
static size_t code_plainly(const uint16_t *samples, struct tsr_tile tile, uint32_t range, uint8_t *bytes, size_t most,
                           size_t room, uint32_t *others, void *scratch)
{
    enum { MANY_VALUES = 1024 };
    const bool both = range > FEW_VALUES && range < MANY_VALUES;
    size_t size = 0;
    if (both)
        size =
            tsr_code_drawn_tile_both(samples, tile, range, bytes, room < 2 * most ? room : 2 * most, others, scratch);
    const int kind = range == 2 ? TSR_DRAWN_OF_TWO : range > FEW_VALUES ? TSR_DRAWN_BY_RESIDUAL : TSR_DRAWN_BY_VALUE;
    return size > 0 ? size : tsr_code_drawn_tile(samples, tile, range, kind, bytes, most, others, scratch);
}

/* Codes a piece by blend where that is shorter: both kinds, each behind the shortest one yet. */
static size_t code_by_blend(const uint16_t *samples, struct tsr_tile tile, uint32_t range, uint8_t *bytes, size_t size,
                            size_t room, void *scratch)
{
    for (int kind = TSR_DRAWN_BY_BLEND; kind <= TSR_DRAWN_BY_BLEND_ALONE; kind++) {
        const size_t left = room - size, most = size > 0 && size - 1 < left ? size - 1 : left;
        uint32_t others;
        const size_t other = tsr_code_drawn_tile(samples, tile, range, kind, bytes + size, most, &others, scratch);
        if (other == 0) continue;
        memmove(bytes, bytes + size, other);
        size = other;
    }
    return size;
}

/* A piece by value or residual, by blend where its other samples take much of it, or raw. Returns its bytes; 0: it has
 * no room. */
static size_t code_piece(const uint16_t *samples, struct tsr_tile tile, uint32_t range, uint8_t *bytes, size_t room,
                         atomic_bool *blended, void *scratch)
{
    const size_t raw = tsr_raw_tile_bytes(range, tile.width, tile.height), most = room < raw - 1 ? room : raw - 1;
    uint32_t others = 0;
    size_t size = code_plainly(samples, tile, range, bytes, most, room, &others, scratch);
    if (range > FEW_VALUES && (uint64_t)others * 4 >= (uint64_t)size * 3) {
        const size_t plain = size;
        size = code_by_blend(samples, tile, range, bytes, size, room < size + most ? room : size + most, scratch);
        if (size != plain) atomic_store(blended, true);
    }
    if (size > 0 || raw > room) return size;
    tsr_put_raw_tile(samples, tile, range, bytes, raw);
    return raw;
}

static void code_pieces(void *context, unsigned part)
{
    struct drawn_work *const work = context;
    const struct tsr_encode_space *const s = work->space;
    void *const scratch = tsr_take_scratch(s->drawn_scratches, part);
    for (uint32_t i; (i = atomic_fetch_add(&work->next, 1)) < work->pieces && !atomic_load(&work->failed);) {
        const uint32_t number = i / (uint32_t)work->planes;
        const int k = (int)(i % (uint32_t)work->planes), p = work->plane[k];
        const struct tsr_tile tile = tsr_tile_numbered(work->cut, number);
        size_t room;
        uint8_t *const bytes = room_of(work, tile, k, &room);
        const size_t size =
            code_piece(s->planes[p], tile, s->model->plane[p].range, bytes, room, &work->blended, scratch);
        s->drawn_sizes[number * TSR_PLANES_LIMIT + (uint32_t)p] = (uint32_t)size;
        if (size == 0) atomic_store(&work->failed, true);
    }
    tsr_give_scratch(s->drawn_scratches, scratch);
}

uint64_t tsr_code_drawn_planes(struct tsr_pool *pool, const struct tsr_image *image,
                               const struct tsr_encode_space *space, bool *blended)
{
    struct drawn_work work = begin_work(image, space);
    const uint32_t parts = tsr_parts_of(pool, tsr_tile_count(image, space->model));
    uint64_t bytes = 0;
    atomic_init(&work.next, 0);
    atomic_init(&work.failed, false);
    atomic_init(&work.blended, false);
    *blended = false;
    if (work.pieces == 0) return UINT64_MAX;
    tsr_pool_run(pool, code_pieces, &work, parts < work.pieces ? parts : work.pieces);
    *blended = atomic_load(&work.blended);
    if (atomic_load(&work.failed)) return UINT64_MAX;
    for (uint32_t i = 0; i < work.pieces; i++) {
        const int k = (int)(i % (uint32_t)work.planes);
        const uint32_t size =
            space->drawn_sizes[i / (uint32_t)work.planes * TSR_PLANES_LIMIT + (uint32_t)work.plane[k]];
        uint8_t varint[TSR_PIECE_SIZE_LIMIT];
        bytes += size + (k < work.planes - 1 ? tsr_put_varint(varint, size) : 0);
    }
    return bytes;
}

/* Piece i, where it was coded; *size: its bytes. */
static uint8_t *piece_of(const struct drawn_work *work, uint32_t i, size_t *size)
{
    const uint32_t number = i / (uint32_t)work->planes;
    const int k = (int)(i % (uint32_t)work->planes);
    size_t room;
    *size = work->space->drawn_sizes[number * TSR_PLANES_LIMIT + (uint32_t)work->plane[k]];
    return room_of(work, tsr_tile_numbered(work->cut, number), k, &room);
}

void tsr_keep_drawn_planes(const struct tsr_image *image, const struct tsr_encode_space *space)
{
    const struct drawn_work work = begin_work(image, space);
    size_t used = 0, size;
    for (uint32_t i = 0; i < work.pieces; i++, used += size) {
        const uint8_t *const bytes = piece_of(&work, i, &size);
        assert(used + size <= space->drawn_room);
        memcpy(space->drawn_pieces + used, bytes, size);
    }
}

void tsr_take_drawn_planes(const struct tsr_image *image, const struct tsr_encode_space *space, bool were_kept)
{
    const struct drawn_work work = begin_work(image, space);
    size_t used = 0, size;
    for (uint32_t i = 0; i < work.pieces; i++, used += size) {
        uint8_t *const bytes = piece_of(&work, i, &size);
        const int p = work.plane[i % (uint32_t)work.planes];
        struct tsr_segment *const segment = &space->tiles[i / (uint32_t)work.planes].segment[1 + p];
        segment->bytes = were_kept ? space->drawn_pieces + used : bytes;
        segment->size = size;
    }
    for (uint32_t t = 0; t < tsr_tiling_count(work.cut); t++)
        tsr_put_tile_sizes(&space->tiles[t], space->model->planes, space->tile_sizes + t * TSR_TILE_SIZES_BYTES);
}
