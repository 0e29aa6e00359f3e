/* Predicted tiles of path T; see the header. */
#include "intra_cpu.h"

#include <string.h>

#include "blocks_cpu.h"
#include "kernels/blocks/intra_choice.h"
#include "transform/block/core4x4.h"

/* Steps of a square: those of its q and its class. */
struct square_steps {
    int32_t q, step_class;
    int32_t four[TSR_BLOCK_SAMPLES], eight[TSR_EIGHT_SAMPLES]; /* by raster place: steps, or factors of an encoder */
};

/* The tile at work. */
struct intra_tile {
    struct tsr_tile tile;
    struct tsr_block_steps steps;
    struct tsr_intra_map map;
    struct tsr_intra_tile restored;
    struct tsr_magnitudes *seen; /* of blocks, with a row above and a block on either side */
    size_t seen_pitch;
    struct square_steps inverse;
};

size_t tsr_intra_map_bytes(int32_t width, int32_t height)
{
    return tsr_tile_coefficients(width, height) / TSR_BLOCK_SAMPLES;
}

size_t tsr_intra_restored_bytes(int32_t width, int32_t height)
{
    return (tsr_tile_coefficients(width, height) * sizeof(uint16_t) + 63) / 64 * 64;
}

static size_t seen_count(int32_t width, int32_t height)
{
    const struct tsr_block_grid grid = tsr_block_grid(width, height, 1);
    return ((size_t)grid.columns + 2) * ((size_t)grid.rows + 1);
}

size_t tsr_intra_scratch_bytes(int32_t width, int32_t height)
{
    return tsr_intra_restored_bytes(width, height) + seen_count(width, height) * sizeof(struct tsr_magnitudes) + 64;
}

static struct intra_tile begin_tile(struct tsr_tile tile, struct tsr_block_steps steps, uint32_t range, uint8_t *map,
                                    void *scratch)
{
    const struct tsr_block_grid grid = tsr_block_grid(tile.width, tile.height, 1);
    struct intra_tile t = {.tile = tile, .steps = steps};
    t.map = (struct tsr_intra_map){map, grid.columns, grid.rows};
    t.restored = (struct tsr_intra_tile){scratch, 4 * grid.columns, 4 * grid.rows, range};
    t.seen_pitch = (size_t)grid.columns + 2;
    t.seen = (struct tsr_magnitudes *)((uint8_t *)scratch + tsr_intra_restored_bytes(tile.width, tile.height)) +
             t.seen_pitch + 1;
    t.inverse.q = -1;
    return t;
}

/* q and class of the block whose first sample stands at x, y of the tile. */
static int32_t q_at(const struct intra_tile *t, int32_t x, int32_t y)
{
    const size_t first = t->tile.first + (size_t)y * t->tile.stride + (size_t)x;
    return t->steps.q + (first >= t->steps.coarser_from ? t->steps.coarser_by : 0);
}

/* What it is quantised by. */
static int32_t intra_q_at(const struct intra_tile *t, int32_t x, int32_t y)
{
    return tsr_intra_q(q_at(t, x, y));
}

static int32_t class_at(const struct intra_tile *t, int32_t x, int32_t y)
{
    const size_t square =
        (size_t)(y / TSR_CLASS_SIDE) * (size_t)tsr_squares_along(t->tile.width) + (size_t)(x / TSR_CLASS_SIDE);
    return t->steps.classes ? t->steps.classes[square] : TSR_PLAIN_CLASS;
}

static bool is_set(struct square_steps *s, int32_t q, int32_t step_class)
{
    const bool same = s->q == q && s->step_class == step_class;
    s->q = q;
    s->step_class = step_class;
    return same;
}

static void set_inverse(struct square_steps *s, int32_t q, int32_t step_class)
{
    if (is_set(s, q, step_class)) return;
    for (int i = 0; i < TSR_BLOCK_SAMPLES; i++)
        s->four[i] = tsr_class_step(q, tsr_norm_class(i / 4, i % 4), step_class);
    for (int i = 0; i < TSR_EIGHT_SAMPLES; i++) s->eight[i] = tsr_eight_step(q, step_class, tsr_eight_norm(i));
}

/* ---- Restoring ------------------------------------------------------------------------------------------------- */

static void put_samples(const struct intra_tile *t, int32_t x, int32_t y, int side, const int32_t *predicted,
                        const int32_t *rest)
{
    const int32_t top = (int32_t)t->restored.range - 1;
    uint16_t *at = t->restored.samples + (size_t)y * (size_t)t->restored.columns + (size_t)x;
    for (int i = 0; i < side; i++, at += t->restored.columns)
        for (int j = 0; j < side; j++) {
            const int32_t value =
                predicted[i * side + j] + tsr_asr(rest[i * side + j] + (1 << (TSR_FINE_BITS - 1)), TSR_FINE_BITS);
            at[j] = (uint16_t)(value < 0 ? 0 : value > top ? top : value);
        }
}

static void restore_four(struct intra_tile *t, int32_t x, int32_t y, const int32_t *predicted,
                         const int32_t coefficients[TSR_BLOCK_SAMPLES])
{
    int32_t rest[TSR_BLOCK_SAMPLES] = {0}, column[4];
    if (tsr_places_not_zero(coefficients) != 0) {
        set_inverse(&t->inverse, intra_q_at(t, x, y), class_at(t, x, y));
        for (int p = 0; p < TSR_BLOCK_SAMPLES; p++) {
            const int at = tsr_zigzag(p);
            rest[at] = tsr_scale_fine(coefficients[p], t->inverse.four[at], t->inverse.q, at);
        }
        for (int j = 0; j < 4; j++) {
            for (int i = 0; i < 4; i++) column[i] = rest[4 * i + j];
            tsr_core_inverse_32_1d(column);
            for (int i = 0; i < 4; i++) rest[4 * i + j] = column[i];
        }
        for (int i = 0; i < 4; i++) tsr_core_inverse_32_1d(rest + 4 * i);
    }
    put_samples(t, x, y, 4, predicted, rest);
}

/* Where group g of an 8x8 block stands among blocks: at that of its four which it has the place of. */
static size_t group_block(const struct intra_tile *t, int32_t x, int32_t y, int g)
{
    return (size_t)(y / 4 + g / 2) * (size_t)t->map.columns + (size_t)(x / 4 + g % 2);
}

static void restore_eight(struct intra_tile *t, int32_t x, int32_t y, const int32_t *predicted,
                          const int32_t *coefficients)
{
    int32_t rest[TSR_EIGHT_SAMPLES] = {0};
    bool any = false;
    set_inverse(&t->inverse, intra_q_at(t, x, y), class_at(t, x, y));
    for (int g = 0; g < 4; g++) {
        const int32_t *group = coefficients + group_block(t, x, y, g) * TSR_BLOCK_SAMPLES;
        if (tsr_places_not_zero(group) == 0) continue;
        any = true;
        for (int p = 0; p < TSR_BLOCK_SAMPLES; p++) {
            const int at = TSR_AT(tsr_eight_scan)[4 * p + g];
            rest[at] = tsr_eight_scale(group[p], t->inverse.eight[at], t->inverse.q);
        }
    }
    if (any) tsr_eight_inverse(rest);
    put_samples(t, x, y, 8, predicted, rest);
}

void tsr_intra_inverse(const int32_t *coefficients, struct tsr_tile tile, struct tsr_block_steps steps, uint32_t range,
                       uint8_t *map, uint16_t *samples, void *scratch)
{
    struct intra_tile t = begin_tile(tile, steps, range, map, scratch);
    struct tsr_intra_edges edges;
    int32_t predicted[TSR_EIGHT_SAMPLES];
    for (int32_t y = 0; y < t.restored.rows; y += 8)
        for (int32_t x = 0; x < t.restored.columns; x += 8) {
            const uint8_t first = map[group_block(&t, x, y, 0)];
            if (first >= TSR_INTRA_EIGHT) {
                tsr_find_intra_edges(&t.restored, x, y, 8, true, &edges);
                tsr_predict_intra(&edges, 8, first % TSR_INTRA_EIGHT, range, predicted);
                restore_eight(&t, x, y, predicted, coefficients);
                continue;
            }
            for (int i = 0; i < 4; i++) {
                const int32_t u = x + 4 * (i % 2), v = y + 4 * (i / 2);
                if (u >= t.restored.columns || v >= t.restored.rows) continue;
                const size_t block = group_block(&t, u, v, 0);
                tsr_find_intra_edges(&t.restored, u, v, 4, i < 3, &edges);
                tsr_predict_intra(&edges, 4, map[block], range, predicted);
                restore_four(&t, u, v, predicted, coefficients + block * TSR_BLOCK_SAMPLES);
            }
        }
    for (int32_t y = 0; y < tile.height; y++)
        memcpy(samples + tile.first + (size_t)y * tile.stride,
               t.restored.samples + (size_t)y * (size_t)t.restored.columns, (size_t)tile.width * sizeof *samples);
}

/* ---- Encoding -------------------------------------------------------------------------------------------------- */

enum { ROUGH_COSTS = 128 };

struct intra_encoder {
    struct intra_tile t;
    const uint16_t *samples;
    int32_t lambda;
    int32_t *coefficients;
    struct square_steps forward;
    struct tsr_intra_chances chances;
    struct tsr_chance_rates rates;
    struct tsr_range_writer unwritten; /* its bytes are not kept: it adapts the chances */
    uint64_t rate_of_modes;
    uint8_t rough[ROUGH_COSTS];
};

/* A block by one mode. */
struct intra_try {
    int mode;
    int64_t cost;
    int32_t predicted[TSR_EIGHT_SAMPLES], coefficients[TSR_EIGHT_SAMPLES]; /* the latter by groups */
    struct tsr_magnitudes seen[4];
};

static void set_forward(struct square_steps *s, int32_t q, int32_t step_class)
{
    if (is_set(s, q, step_class)) return;
    for (int i = 0; i < TSR_BLOCK_SAMPLES; i++)
        s->four[i] = tsr_class_factor(q, tsr_norm_class(i / 4, i % 4), step_class);
    for (int i = 0; i < TSR_EIGHT_SAMPLES; i++) s->eight[i] = tsr_eight_factor(q, step_class, tsr_eight_norm(i));
}

/* A block's samples; columns and rows beyond the tile repeat its last ones. */
static void take_block(const struct intra_encoder *e, int32_t x, int32_t y, int side, int32_t *block)
{
    const struct tsr_tile tile = e->t.tile;
    for (int i = 0; i < side; i++) {
        const uint16_t *line = e->samples + tile.first + (size_t)tsr_min(y + i, tile.height - 1) * tile.stride;
        for (int j = 0; j < side; j++) block[i * side + j] = line[tsr_min(x + j, tile.width - 1)];
    }
}

/* Units of what a prediction leaves, by groups of places. */
static void units_of(const struct intra_encoder *e, int side, const int32_t *block, const int32_t *predicted,
                     int32_t *units)
{
    int32_t rest[TSR_EIGHT_SAMPLES];
    if (side == 4) {
        for (int i = 0; i < TSR_BLOCK_SAMPLES; i++) rest[i] = (block[i] - predicted[i]) * (1 << TSR_LAP_BITS);
        tsr_core_forward(rest);
        for (int p = 0; p < TSR_BLOCK_SAMPLES; p++) {
            const int at = tsr_zigzag(p);
            units[p] = tsr_units_by_factor(rest[at], e->forward.q, e->forward.four[at]);
        }
        return;
    }
    for (int i = 0; i < TSR_EIGHT_SAMPLES; i++) rest[i] = block[i] - predicted[i];
    tsr_eight_forward(rest);
    for (int k = 0; k < TSR_EIGHT_SAMPLES; k++) {
        const int at = TSR_AT(tsr_eight_scan)[k];
        units[k % 4 * TSR_BLOCK_SAMPLES + k / 4] = tsr_eight_units(rest[at], e->forward.q, e->forward.eight[at]);
    }
}

static uint32_t rough_cost(const struct intra_encoder *e, const int32_t *units, int count)
{
    uint32_t cost = 0;
    for (int i = 0; i < count; i++) {
        const uint32_t magnitude = (uint32_t)tsr_abs(units[i]);
        cost += magnitude >> 4 < ROUGH_COSTS ? e->rough[magnitude >> 4] : tsr_rough_cost(magnitude);
    }
    return cost;
}

/* What is seen of the block c columns and r rows from that at x, y. */
static struct tsr_magnitudes *seen_at(const struct intra_tile *t, int32_t x, int32_t y, int c, int r)
{
    return t->seen + ((y / 4 + r) * (ptrdiff_t)t->seen_pitch + x / 4 + c);
}

/* Chooses the coefficients of a try. has_corner: the block right above is known. */
static void choose_try(const struct intra_encoder *e, int32_t x, int32_t y, int side, bool has_corner,
                       const int32_t *units, struct intra_try *try)
{
    for (int g = 0; g < side * side / TSR_BLOCK_SAMPLES; g++) {
        struct tsr_group_neighbours n = {seen_at(&e->t, x, y, g % 2 - 1, g / 2), seen_at(&e->t, x, y, g % 2, g / 2 - 1),
                                         seen_at(&e->t, x, y, g % 2 - 1, g / 2 - 1),
                                         seen_at(&e->t, x, y, g % 2 + 1, g / 2 - 1)};
        if (g % 2 == 1) n.left = &try->seen[g - 1];
        if (g / 2 == 1) n.above = &try->seen[g - 2];
        if (g == 2) n.corner_right = &try->seen[1];
        if (g == 3) n.corner_left = &try->seen[0];
        if (g == 3 || !has_corner) n.corner_right = n.above;
        try->cost += tsr_choose_group(units + g * TSR_BLOCK_SAMPLES, n, e->lambda,
                                      try->coefficients + g * TSR_BLOCK_SAMPLES, &try->seen[g]);
    }
}

/* The best mode of a block. */
static void try_block(struct intra_encoder *e, int32_t x, int32_t y, int side, bool has_corner, struct intra_try *best)
{
    const int count = side * side;
    const struct tsr_intra_beside beside = tsr_intra_beside(&e->t.map, x / 4, y / 4);
    struct tsr_intra_edges edges;
    struct intra_try other;
    int32_t block[TSR_EIGHT_SAMPLES], predicted[TSR_INTRA_MODES][TSR_EIGHT_SAMPLES],
        units[TSR_INTRA_MODES][TSR_EIGHT_SAMPLES];
    uint32_t rate[TSR_INTRA_MODES], rough[TSR_INTRA_MODES];
    take_block(e, x, y, side, block);
    set_forward(&e->forward, intra_q_at(&e->t, x, y), class_at(&e->t, x, y));
    tsr_find_intra_edges(&e->t.restored, x, y, side, has_corner, &edges);
    for (int mode = 0; mode < TSR_INTRA_MODES; mode++) {
        tsr_predict_intra(&edges, side, mode, e->t.restored.range, predicted[mode]);
        units_of(e, side, block, predicted[mode], units[mode]);
        rate[mode] = tsr_rate_of_intra_mode(&e->rates, &e->chances, side == 8, beside, mode);
        rough[mode] = rate[mode] + rough_cost(e, units[mode], count);
    }
    best->cost = INT64_MAX;
    for (int n = 0; n < TSR_INTRA_TRIES; n++) {
        int mode = 0;
        for (int i = 1; i < TSR_INTRA_MODES; i++)
            if (rough[i] < rough[mode]) mode = i;
        other.mode = mode;
        other.cost = (int64_t)e->lambda * rate[mode];
        choose_try(e, x, y, side, has_corner, units[mode], &other);
        rough[mode] = UINT32_MAX;
        if (other.cost >= best->cost) continue;
        *best = other;
        memcpy(best->predicted, predicted[mode], (size_t)count * sizeof *best->predicted);
    }
}

static void take_try(struct intra_encoder *e, int32_t x, int32_t y, int side, const struct intra_try *try)
{
    struct intra_tile *t = &e->t;
    for (int g = 0; g < side * side / TSR_BLOCK_SAMPLES; g++) {
        memcpy(e->coefficients + group_block(t, x, y, g) * TSR_BLOCK_SAMPLES, try->coefficients + g * TSR_BLOCK_SAMPLES,
               TSR_BLOCK_SAMPLES * sizeof *e->coefficients);
        *seen_at(t, x, y, g % 2, g / 2) = try->seen[g];
    }
    tsr_set_intra(&t->map, x / 4, y / 4, side == 8, try->mode);
    if (side == 8)
        restore_eight(t, x, y, try->predicted, e->coefficients);
    else
        restore_four(t, x, y, try->predicted, try->coefficients);
}

/* What sizes and modes of a square cost that is coded. */
static uint32_t rate_of_square(const struct intra_encoder *e, int32_t column, int32_t row)
{
    const struct tsr_intra_map *map = &e->t.map;
    const uint8_t *at = map->of + (size_t)row * (size_t)map->columns + (size_t)column;
    const bool eight = at[0] >= TSR_INTRA_EIGHT;
    uint32_t rate = 0;
    if (tsr_is_whole_square(map, column, row))
        rate = tsr_rate_of_bit(&e->rates, &e->chances.eight[tsr_intra_size_context(map, column, row)], eight);
    for (int i = 0; i < (eight ? 1 : 4); i++) {
        const int32_t c = column + i % 2, r = row + i / 2;
        if (c >= map->columns || r >= map->rows) continue;
        rate += tsr_rate_of_intra_mode(&e->rates, &e->chances, eight, tsr_intra_beside(map, c, r),
                                       map->of[(size_t)r * (size_t)map->columns + (size_t)c] % TSR_INTRA_EIGHT);
    }
    return rate;
}

static void code_square(struct intra_encoder *e, int32_t x, int32_t y)
{
    const struct tsr_intra_map *map = &e->t.map;
    const bool whole = tsr_is_whole_square(map, x / 4, y / 4);
    const struct tsr_chance *size = &e->chances.eight[tsr_intra_size_context(map, x / 4, y / 4)];
    struct intra_try eight, four;
    int64_t of_fours = 0;
    if (whole) {
        try_block(e, x, y, 8, true, &eight);
        eight.cost += (int64_t)e->lambda * tsr_rate_of_bit(&e->rates, size, 1);
        of_fours = (int64_t)e->lambda * tsr_rate_of_bit(&e->rates, size, 0);
    }
    for (int i = 0; i < 4; i++) {
        const int32_t u = x + 4 * (i % 2), v = y + 4 * (i / 2);
        if (u >= e->t.restored.columns || v >= e->t.restored.rows) continue;
        try_block(e, u, v, 4, i < 3, &four);
        of_fours += four.cost;
        if (whole && of_fours >= eight.cost) break;
        take_try(e, u, v, 4, &four);
    }
    if (whole && of_fours >= eight.cost) take_try(e, x, y, 8, &eight);
    e->rate_of_modes += rate_of_square(e, x / 4, y / 4);
    tsr_put_intra_square(&e->unwritten, &e->chances, map, x / 4, y / 4);
}

uint64_t tsr_intra_forward(const uint16_t *samples, struct tsr_tile tile, struct tsr_block_steps steps, uint32_t range,
                           int32_t lambda, int32_t *coefficients, uint8_t *map, void *scratch)
{
    struct intra_encoder e = {
        .samples = samples, .lambda = lambda * TSR_INTRA_LAMBDA / 4, .coefficients = coefficients};
    e.t = begin_tile(tile, steps, range, map, scratch);
    e.forward.q = -1;
    e.unwritten = tsr_range_writer(NULL, 0);
    tsr_init_intra_chances(&e.chances);
    tsr_fill_chance_rates(&e.rates);
    for (uint32_t t = 0; t < ROUGH_COSTS; t++) e.rough[t] = (uint8_t)tsr_rough_cost(t << 4);
    memset(e.t.seen - e.t.seen_pitch - 1, 0, seen_count(tile.width, tile.height) * sizeof *e.t.seen);
    for (int32_t y = 0; y < e.t.restored.rows; y += 8)
        for (int32_t x = 0; x < e.t.restored.columns; x += 8) code_square(&e, x, y);
    return e.rate_of_modes + tsr_intra_errors_of_tile(samples, tile, steps, lambda, e.t.restored.samples) +
           tsr_intra_rate_of_tile(coefficients, tile,
                                  (uint8_t *)scratch + tsr_intra_restored_bytes(tile.width, tile.height));
}

/* ---- Costs of tiles -------------------------------------------------------------------------------------------- */

uint64_t tsr_intra_rate_of_tile(const int32_t *coefficients, struct tsr_tile tile, void *scratch)
{
    const struct tsr_block_grid grid = tsr_block_grid(tile.width, tile.height, 1);
    const size_t pitch = (size_t)grid.columns + 2;
    struct tsr_magnitudes *above = (struct tsr_magnitudes *)scratch + 1, *here = above + pitch;
    uint64_t rate = 0;
    memset(scratch, 0, 2 * pitch * sizeof *above);
    for (int32_t r = 0; r < grid.rows; r++) {
        for (int32_t c = 0; c < grid.columns; c++, coefficients += TSR_BLOCK_SAMPLES) {
            uint16_t energy[TSR_BLOCK_SAMPLES];
            tsr_see_magnitudes(coefficients, 0, here + c);
            tsr_energies_around(here + c - 1, above + c, above + c - 1, above + c + 1, energy);
            rate += tsr_rate_of_block(here + c, tsr_coded_places(coefficients), energy);
        }
        struct tsr_magnitudes *swap = above;
        above = here;
        here = swap;
    }
    return rate;
}

/* Squared errors to what they are worth: in squared steps, over lambda. restored: rows of whole blocks. */
uint64_t tsr_intra_errors_of_tile(const uint16_t *samples, struct tsr_tile tile, struct tsr_block_steps steps,
                                  int32_t lambda, const uint16_t *restored)
{
    const struct tsr_block_grid grid = tsr_block_grid(tile.width, tile.height, 1);
    const struct intra_tile t = {.tile = tile, .steps = steps};
    const uint64_t worth = (uint64_t)TSR_UNIT * TSR_UNIT * TSR_INTRA_WEIGHT / (uint64_t)lambda;
    uint64_t cost = 0;
    for (int32_t y = 0; y < tile.height; y += 4)
        for (int32_t x = 0; x < tile.width; x += 4) {
            const uint64_t factor = (uint64_t)tsr_class_factor(q_at(&t, x, y), 0, class_at(&t, x, y));
            const int shift = 16 + 2 * (q_at(&t, x, y) / TSR_QP_OCTAVE);
            uint64_t sum = 0;
            for (int32_t i = y; i < tsr_min(y + 4, tile.height); i++)
                for (int32_t j = x; j < tsr_min(x + 4, tile.width); j++) {
                    const int32_t error = samples[tile.first + (size_t)i * tile.stride + (size_t)j] -
                                          restored[(size_t)i * 4 * (size_t)grid.columns + (size_t)j];
                    sum += (uint64_t)((int64_t)error * error);
                }
            cost += sum * (factor * factor >> 20) * worth >> shift;
        }
    return cost;
}
