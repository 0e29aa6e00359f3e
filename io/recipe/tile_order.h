/* Tiles of each frame that stand before the others of all frames. ORDER.md. */
#ifndef TSR_IO_RECIPE_TILE_ORDER_H
#define TSR_IO_RECIPE_TILE_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TSR_ORDER_RUNS = 64, TSR_ORDER_TILES = 65535 };

struct tsr_tile_order {
    uint32_t tiles; /* of each frame that has any; 0: tiles follow their frame, and nothing else here counts */
    uint32_t first; /* of these, 1 .. tiles - 1: those of all runs */
    uint32_t runs;  /* in ascending order, with a gap between two */
    struct {
        uint16_t begin, count;
    } run[TSR_ORDER_RUNS];
};

/* The place of a tile among the first ones, or among the others. */
static inline uint32_t tsr_order_rank(const struct tsr_tile_order *order, uint32_t tile, bool *is_first)
{
    uint32_t before = 0; /* first tiles */
    *is_first = false;
    for (uint32_t i = 0; i < order->runs && order->run[i].begin <= tile; i++) {
        const uint32_t inside = tile - order->run[i].begin;
        *is_first = inside < order->run[i].count;
        before += *is_first ? inside : order->run[i].count;
    }
    return *is_first ? before : tile - before;
}

/* Adds a run behind the others. False: there is no room for it, or there are not so many tiles. */
static inline bool tsr_order_add(struct tsr_tile_order *order, uint64_t gap, uint64_t count)
{
    const uint32_t end =
        order->runs > 0 ? order->run[order->runs - 1].begin + (uint32_t)order->run[order->runs - 1].count : 0;
    if (order->runs == TSR_ORDER_RUNS || (gap == 0 && order->runs > 0) || count == 0) return false;
    if (gap > order->tiles || count > order->tiles || end + gap + count > order->tiles) return false;
    order->run[order->runs].begin = (uint16_t)(end + gap);
    order->run[order->runs++].count = (uint16_t)count;
    order->first += (uint32_t)count;
    return true;
}

#endif
