/* Tiles, resolutions, bands, precincts, code blocks, and the order of packets. T.800 annex B, J2K.md 3. */
#include "j2k.h"

#include <stdlib.h>

static uint32_t ceil_shift(uint64_t value, unsigned shift)
{
    return (uint32_t)((value + ((uint64_t)1 << shift) - 1) >> shift);
}

struct tsr_j2k_rectangle tsr_j2k_resolution(const struct tsr_j2k_rectangle *area, unsigned reduce)
{
    return (struct tsr_j2k_rectangle){ceil_shift(area->x0, reduce), ceil_shift(area->y0, reduce),
                                      ceil_shift(area->x1, reduce), ceil_shift(area->y1, reduce)};
}

/* A coordinate of a band: T.800 B-15. */
static uint32_t band_coordinate(uint32_t value, unsigned level, bool is_high)
{
    if (level == 0) return value;
    const uint64_t half = is_high ? (uint64_t)1 << (level - 1) : 0;
    return value <= half ? 0 : ceil_shift(value - half, level);
}

static struct tsr_j2k_rectangle band_of(const struct tsr_j2k_rectangle *area, unsigned level, int band)
{
    return (struct tsr_j2k_rectangle){
        band_coordinate(area->x0, level, band & 1), band_coordinate(area->y0, level, band & 2),
        band_coordinate(area->x1, level, band & 1), band_coordinate(area->y1, level, band & 2)};
}

void tsr_j2k_budget(struct tsr_j2k_budget *budget, const struct tsr_image *image, size_t size)
{
    const uint64_t samples = (uint64_t)image->columns * image->rows * image->components;
    budget->precincts = 4096 + (uint64_t)size / 8;
    budget->blocks = 16384 + samples / 64;
    budget->visits = 65536 + samples + 16 * (uint64_t)size;
}

static bool take(uint64_t *budget, uint64_t amount)
{
    if (amount > *budget) return false;
    *budget -= amount;
    return true;
}

/* A resolution of a component of a tile at work. */
struct place {
    const struct tsr_j2k_tile *tile;
    const struct tsr_j2k_head *head;
    const struct tsr_j2k_coding *coding;
    unsigned component, resolution, levels;
    unsigned px, py; /* logarithms of the precinct */
    struct tsr_j2k_rectangle area;
    uint32_t first_x, first_y, across, down; /* precincts */
};

static void set_place(struct place *p, const struct tsr_j2k_tile *tile, const struct tsr_j2k_head *head,
                      unsigned component, unsigned resolution)
{
    *p = (struct place){.tile = tile, .head = head, .coding = &tile->head.coding[component]};
    p->component = component;
    p->resolution = resolution;
    p->levels = p->coding->levels;
    p->px = p->coding->precinct[resolution] & 15;
    p->py = p->coding->precinct[resolution] >> 4;
    p->area = tsr_j2k_resolution(&tile->area, p->levels - resolution);
    p->first_x = p->area.x0 >> p->px;
    p->first_y = p->area.y0 >> p->py;
    p->across = p->area.x1 > p->area.x0 ? ceil_shift(p->area.x1, p->px) - p->first_x : 0;
    p->down = p->area.y1 > p->area.y0 ? ceil_shift(p->area.y1, p->py) - p->first_y : 0;
    if (p->across == 0 || p->down == 0) p->across = p->down = 0;
}

/* The blocks of a precinct in a band. */
struct blocks {
    struct tsr_j2k_rectangle band, part; /* part: of the band that is in the precinct */
    unsigned bx, by;                     /* logarithms of a block's size */
    uint32_t first_x, first_y, across, down;
};

static void find_blocks(const struct place *p, uint32_t x, uint32_t y, int band, struct blocks *b)
{
    const unsigned level = p->resolution == 0 ? p->levels : p->levels - p->resolution + 1;
    const unsigned less = p->resolution > 0, px = p->px - less, py = p->py - less;
    const uint64_t x0 = (uint64_t)(p->first_x + x) << px, y0 = (uint64_t)(p->first_y + y) << py;
    const uint64_t x1 = x0 + ((uint64_t)1 << px), y1 = y0 + ((uint64_t)1 << py);
    b->band = band_of(&p->tile->area, level, band);
    b->part.x0 = (uint32_t)(x0 > b->band.x0 ? x0 : b->band.x0);
    b->part.y0 = (uint32_t)(y0 > b->band.y0 ? y0 : b->band.y0);
    b->part.x1 = (uint32_t)(x1 < b->band.x1 ? x1 : b->band.x1);
    b->part.y1 = (uint32_t)(y1 < b->band.y1 ? y1 : b->band.y1);
    b->bx = p->coding->block_width < px ? p->coding->block_width : px;
    b->by = p->coding->block_height < py ? p->coding->block_height : py;
    b->first_x = b->part.x0 >> b->bx;
    b->first_y = b->part.y0 >> b->by;
    b->across = b->down = 0;
    if (b->part.x1 <= b->part.x0 || b->part.y1 <= b->part.y0) return;
    b->across = ceil_shift(b->part.x1, b->bx) - b->first_x;
    b->down = ceil_shift(b->part.y1, b->by) - b->first_y;
}

static uint32_t tree_nodes(uint32_t across, uint32_t down)
{
    uint32_t nodes = 0;
    if (across == 0 || down == 0) return 0;
    while (across > 1 || down > 1) {
        nodes += across * down;
        across = (across + 1) / 2;
        down = (down + 1) / 2;
    }
    return nodes + 1;
}

static void plant_tree(struct tsr_j2k_tile *tile, uint32_t across, uint32_t down)
{
    uint32_t first = tile->nodes;
    for (;;) {
        const uint32_t above = first + across * down, up_across = (across + 1) / 2;
        const bool is_root = across == 1 && down == 1;
        for (uint32_t y = 0; y < down; y++)
            for (uint32_t x = 0; x < across; x++)
                tile->node[first + y * across + x] =
                    (struct tsr_j2k_node){.parent = is_root ? first : above + y / 2 * up_across + x / 2,
                                          .tag = {{.value = UINT16_MAX}, {.value = UINT8_MAX}}};
        first = above;
        if (is_root) break;
        down = (down + 1) / 2;
        across = up_across;
    }
    tile->nodes = first;
}

/* Adds the blocks of a precinct in a band to the plan. */
static enum tsr_status add_blocks(struct tsr_j2k_tile *tile, const struct place *p, int band, const struct blocks *b,
                                  struct tsr_error *error)
{
    const unsigned number = p->resolution == 0 ? 0 : 3 * (p->resolution - 1) + (unsigned)band;
    const struct tsr_j2k_rectangle low = p->resolution > 0
                                             ? tsr_j2k_resolution(&tile->area, p->levels - p->resolution + 1)
                                             : (struct tsr_j2k_rectangle){0, 0, 0, 0};
    if (b->across == 0) return TSR_OK;
    if (number >= p->coding->exponents) return tsr_fail(error, TSR_ERROR_CORRUPT, "a band has no quantisation");
    const int planes = p->coding->guard_bits + p->coding->exponent[number] - 1;
    if (planes < 0 || planes > 31) return tsr_fail(error, TSR_ERROR_CORRUPT, "a band has %d bit planes", planes);
    const uint32_t columns = p->head->x1 - p->head->x0, node = tile->nodes;
    const uint32_t left = tile->area.x0 - p->head->x0 + (band & 1 ? low.x1 - low.x0 : 0);
    const uint32_t top = tile->area.y0 - p->head->y0 + (band & 2 ? low.y1 - low.y0 : 0);
    plant_tree(tile, b->across, b->down);
    for (uint32_t i = 0; i < b->across * b->down; i++) {
        const uint64_t x = (uint64_t)(b->first_x + i % b->across) << b->bx, y = (uint64_t)(b->first_y + i / b->across)
                                                                                << b->by;
        const uint64_t x1 = x + ((uint64_t)1 << b->bx), y1 = y + ((uint64_t)1 << b->by);
        const uint32_t x0 = x > b->part.x0 ? (uint32_t)x : b->part.x0, y0 = y > b->part.y0 ? (uint32_t)y : b->part.y0;
        struct tsr_j2k_block *const block = &tile->block[tile->blocks++];
        *block = (struct tsr_j2k_block){.component = (uint8_t)p->component, .band = (uint8_t)band, .length_bits = 3};
        block->band_planes = (uint8_t)planes;
        block->width = (uint32_t)(x1 < b->part.x1 ? x1 : b->part.x1) - x0;
        block->height = (uint32_t)(y1 < b->part.y1 ? y1 : b->part.y1) - y0;
        block->at = (top + y0 - b->band.y0) * columns + left + x0 - b->band.x0;
        block->node = node + i;
    }
    return TSR_OK;
}

/* Where a precinct stands in the orders by position: T.800 B.12.1.3. */
static uint64_t position(uint32_t tile_start, uint32_t start, uint32_t precinct, uint32_t first, unsigned size,
                         unsigned reduce)
{
    if (precinct == first && (start & (((uint64_t)1 << size) - 1)) != 0) return tile_start;
    return ((uint64_t)precinct << size) << reduce;
}

/* Goes through all precincts: counts them, their blocks and nodes, or, if tile->precinct is there, fills them in. */
static enum tsr_status walk(struct tsr_j2k_tile *tile, const struct place *p, struct tsr_j2k_budget *budget,
                            uint64_t *nodes, struct tsr_error *error)
{
    const bool fills = tile->precinct != NULL;
    if (!fills && !take(&budget->precincts, (uint64_t)p->across * p->down))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "it has too many precincts");
    for (uint32_t i = 0; i < p->across * p->down; i++) {
        const uint32_t x = i % p->across, y = i / p->across;
        struct tsr_j2k_precinct precinct = {.number = i};
        precinct.component = (uint8_t)p->component;
        precinct.resolution = (uint8_t)p->resolution;
        precinct.x = position(tile->area.x0, p->area.x0, p->first_x + x, p->first_x, p->px, p->levels - p->resolution);
        precinct.y = position(tile->area.y0, p->area.y0, p->first_y + y, p->first_y, p->py, p->levels - p->resolution);
        for (int band = p->resolution > 0; band <= (p->resolution > 0 ? 3 : 0); band++) {
            struct blocks b;
            find_blocks(p, x, y, band, &b);
            const uint64_t count = (uint64_t)b.across * b.down;
            if (!fills && !take(&budget->blocks, count))
                return tsr_fail(error, TSR_ERROR_CORRUPT, "it has too many blocks");
            precinct.part[precinct.parts].first = tile->blocks;
            precinct.part[precinct.parts++].count = (uint32_t)count;
            if (fills)
                TSR_TRY(add_blocks(tile, p, band, &b, error));
            else
                tile->blocks += (uint32_t)count;
            if (!fills) *nodes += tree_nodes(b.across, b.down);
        }
        if (fills) tile->precinct[tile->precincts] = precinct;
        tile->precincts++;
    }
    return TSR_OK;
}

static enum tsr_status walk_all(struct tsr_j2k_tile *tile, const struct tsr_j2k_head *head,
                                struct tsr_j2k_budget *budget, uint64_t *nodes, struct tsr_error *error)
{
    struct place p;
    tile->precincts = tile->blocks = tile->nodes = 0;
    for (unsigned c = 0; c < head->components; c++)
        for (unsigned r = 0; r <= tile->head.coding[c].levels; r++) {
            set_place(&p, tile, head, c, r);
            TSR_TRY(walk(tile, &p, budget, nodes, error));
        }
    return TSR_OK;
}

/* ---- Order ------------------------------------------------------------------------------------------------- */

static int by_number(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

#define BY(field) \
    if (a->field != b->field) return by_number(a->field, b->field)

/* An order of precincts: by one field after the other. */
#define ORDER(name, field_1, field_2, field_3, field_4)                    \
    static int name(const void *first, const void *second)                 \
    {                                                                      \
        const struct tsr_j2k_precinct *const a = first, *const b = second; \
        BY(field_1);                                                       \
        BY(field_2);                                                       \
        BY(field_3);                                                       \
        BY(field_4);                                                       \
        return by_number(a->number, b->number);                            \
    }
ORDER(by_resolution, resolution, component, number, number) /* LRCP, RLCP: layers are outside, or between resolutions */
ORDER(by_resolution_and_place, resolution, y, x, component)
ORDER(by_place, y, x, component, resolution)
ORDER(by_component, component, y, x, resolution)

enum { LRCP, RLCP };

/* Sets the run of precincts that begins at tile->first: within it, the layers are outside. */
static void set_run(struct tsr_j2k_tile *tile)
{
    tile->next = tile->first;
    tile->layer = 0;
    tile->last = tile->first + (tile->first < tile->precincts);
    if (tile->head.order == LRCP) tile->last = tile->precincts;
    if (tile->head.order == RLCP)
        while (tile->last < tile->precincts &&
               tile->precinct[tile->last].resolution == tile->precinct[tile->first].resolution)
            tile->last++;
}

void tsr_j2k_rewind(struct tsr_j2k_tile *tile)
{
    tile->first = 0;
    set_run(tile);
}

struct tsr_j2k_precinct *tsr_j2k_next_packet(struct tsr_j2k_tile *tile, uint32_t *layer)
{
    if (tile->next == tile->last) {
        tile->next = tile->first;
        tile->layer++;
    }
    if (tile->layer == tile->head.layers) {
        tile->first = tile->last;
        set_run(tile);
    }
    if (tile->first >= tile->precincts) return NULL;
    *layer = tile->layer;
    return &tile->precinct[tile->next++];
}

enum tsr_status tsr_j2k_plan_tile(struct tsr_j2k_tile *tile, const struct tsr_j2k_head *head, uint32_t number,
                                  struct tsr_j2k_budget *budget, struct tsr_error *error)
{
    static int (*const orders[])(const void *, const void *) = {by_resolution, by_resolution, by_resolution_and_place,
                                                                by_place, by_component};
    const uint64_t x = head->tile_x0 + (uint64_t)(number % head->tiles_across) * head->tile_width;
    const uint64_t y = head->tile_y0 + (uint64_t)(number / head->tiles_across) * head->tile_height;
    uint64_t nodes = 0;
    tile->area.x0 = (uint32_t)(x > head->x0 ? x : head->x0);
    tile->area.y0 = (uint32_t)(y > head->y0 ? y : head->y0);
    tile->area.x1 = (uint32_t)(x + head->tile_width < head->x1 ? x + head->tile_width : head->x1);
    tile->area.y1 = (uint32_t)(y + head->tile_height < head->y1 ? y + head->tile_height : head->y1);
    TSR_TRY(walk_all(tile, head, budget, &nodes, error));
    tile->precinct = calloc((size_t)tile->precincts + 1, sizeof *tile->precinct);
    tile->block = calloc((size_t)tile->blocks + 1, sizeof *tile->block);
    tile->node = calloc((size_t)nodes + 1, sizeof *tile->node);
    if (!tile->precinct || !tile->block || !tile->node)
        return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for the plan of a tile");
    TSR_TRY(walk_all(tile, head, budget, &nodes, error));
    qsort(tile->precinct, tile->precincts, sizeof *tile->precinct, orders[tile->head.order]);
    tsr_j2k_rewind(tile);
    return TSR_OK;
}

void tsr_j2k_free_tile(struct tsr_j2k_tile *tile)
{
    free(tile->precinct);
    free(tile->block);
    free(tile->node);
    tile->precinct = NULL;
    tile->block = NULL;
    tile->node = NULL;
}
