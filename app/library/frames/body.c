/* The body, or the tissue, of an image: what stands out from its background. kernels/EFFORT.md. See flow.h. All is
 * decided in integers, by cells of the image. */
#include <stdlib.h>
#include <string.h>

#include "app/library/flow.h"
#include "transform/planes/raster_words.h"

enum {
    CELLS = 256,       /* of the longer side, at most */
    LEVELS = 256,      /* of what is measured */
    SHARE_OF_MOST = 64 /* a part with fewer cells than this share of the largest one is left out */
};

/* Of a component of a cell: samples that are not kept, their sum, and that of all. */
struct sums {
    uint64_t count, own, all;
};

struct cells {
    const struct tsr_kept_ranges *kept;
    uint32_t side, across, down, components;
    struct sums *sums;   /* of the frame at work: of each cell, of each component */
    uint32_t *measure;   /* of each cell, the most of all frames */
    uint32_t *sorted;    /* room for as many numbers */
    uint8_t *set, *mark; /* of each cell; room for as many marks */
    uint32_t *stack;     /* room for cells */
};

/* ---- How much a cell stands out ------------------------------------------------------------------------------ */

static void add_frame(struct cells *c, const struct tsr_image *image, const uint8_t *raster)
{
    const size_t samples = (size_t)image->columns * image->rows, components = image->components;
    const int64_t least = image->is_signed ? -((int64_t)1 << (image->bits_stored - 1)) : 0;
    memset(c->sums, 0, (size_t)c->across * c->down * components * sizeof *c->sums);
    for (uint32_t y = 0; y < image->rows; y++)
        for (uint32_t x = 0; x < image->columns; x++)
            for (size_t k = 0; k < components; k++) {
                const size_t pixel = (size_t)y * image->columns + x,
                             at = image->planar ? k * samples + pixel : pixel * components + k;
                const uint64_t value = (uint64_t)(tsr_raster_value(image, raster, at) - least);
                struct sums *const s = &c->sums[((y / c->side) * c->across + x / c->side) * components + k];
                s->all += value;
                if (components == 1 && tsr_kept_range_of(c->kept, (uint32_t)value) >= 0) continue;
                s->own += value;
                s->count++;
            }
}

static int compare_numbers(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static bool is_at_border(const struct cells *c, uint32_t cell)
{
    const uint32_t x = cell % c->across, y = cell / c->across;
    return x == 0 || y == 0 || x + 1 == c->across || y + 1 == c->down;
}

/* Whether a cell has samples that are not kept, and lies at the border or beside one that has none. */
static bool is_at_rim(const struct cells *c, uint32_t cell, uint32_t k)
{
    const uint32_t n = c->components;
    if (c->sums[cell * n + k].count == 0) return false;
    if (is_at_border(c, cell)) return true;
    return c->sums[(cell - 1) * n + k].count == 0 || c->sums[(cell + 1) * n + k].count == 0 ||
           c->sums[(cell - c->across) * n + k].count == 0 || c->sums[(cell + c->across) * n + k].count == 0;
}

static uint32_t gap(uint32_t a, uint32_t b)
{
    return a < b ? b - a : a - b;
}

/* The median of the means of cells at the border, all of their samples. */
static uint32_t find_border(const struct cells *c, const struct tsr_image *image, uint32_t k)
{
    size_t count = 0;
    for (uint32_t cell = 0; cell < c->across * c->down; cell++) {
        const struct sums *const s = &c->sums[cell * c->components + k];
        const uint32_t x = cell % c->across * c->side, y = cell / c->across * c->side,
                       columns = image->columns - x < c->side ? image->columns - x : c->side,
                       rows = image->rows - y < c->side ? image->rows - y : c->side;
        if (is_at_border(c, cell)) c->sorted[count++] = (uint32_t)(s->all / ((uint64_t)columns * rows));
    }
    qsort(c->sorted, count, sizeof *c->sorted, compare_numbers);
    return c->sorted[count / 2];
}

/* How far the ground at the rim, without kept samples, is from that at the border: air from a CT's padding, where the
 * body may reach the rim, too. So an eighth of the cells is nearer. */
static uint32_t find_rim(const struct cells *c, uint32_t k, uint32_t border)
{
    size_t count = 0;
    for (uint32_t cell = 0; cell < c->across * c->down; cell++) {
        const struct sums *const s = &c->sums[cell * c->components + k];
        if (is_at_rim(c, cell, k)) c->sorted[count++] = gap((uint32_t)(s->own / s->count), border);
    }
    if (count == 0) return 0;
    qsort(c->sorted, count, sizeof *c->sorted, compare_numbers);
    return c->sorted[count / 8];
}

/* The distance of a cell's mean to the border's, or how much that differs from the rim's, if this is less; of all
 * components the largest. Kept samples stand out by nothing. */
static bool measure_frame(void *context, const struct tsr_image *image, const uint8_t *raster)
{
    struct cells *const c = context;
    add_frame(c, image, raster);
    for (uint32_t k = 0; k < c->components; k++) {
        const uint32_t border = find_border(c, image, k), rim = find_rim(c, k, border);
        for (uint32_t cell = 0; cell < c->across * c->down; cell++) {
            const struct sums *const s = &c->sums[cell * c->components + k];
            if (s->count == 0) continue;
            const uint32_t a = gap((uint32_t)(s->own / s->count), border), b = gap(a, rim);
            if ((a < b ? a : b) > c->measure[cell]) c->measure[cell] = a < b ? a : b;
        }
    }
    return true;
}

/* ---- Which cells count -------------------------------------------------------------------------------------- */

/* A quarter of the threshold, as a level, that parts the cells into two classes whose means differ most for their sizes
 * (Otsu, 1979). */
static uint32_t find_threshold(const struct cells *c, uint32_t most)
{
    uint32_t counts[LEVELS] = {0}, found = 0;
    uint64_t all = 0, below = 0, sum_below = 0, best = 0;
    const uint32_t cells = c->across * c->down;
    for (uint32_t i = 0; i < cells; i++) counts[(uint64_t)c->measure[i] * (LEVELS - 1) / most]++;
    for (uint32_t level = 0; level < LEVELS; level++) all += (uint64_t)level * counts[level];
    for (uint32_t level = 0; level + 1 < LEVELS; level++) {
        below += counts[level];
        sum_below += (uint64_t)level * counts[level];
        const uint64_t above = cells - below;
        if (below == 0 || above == 0) continue;
        const uint64_t low = (sum_below << 8) / below, high = ((all - sum_below) << 8) / above,
                       variance = below * above * ((high - low) * (high - low) >> 16);
        if (variance <= best) continue;
        best = variance;
        found = level + 1;
    }
    return found / 4;
}

/* Marks the cells of one value that hang together with one of them, by their sides. Returns how many they are. */
static uint32_t fill(const struct cells *c, uint32_t first, uint8_t mark)
{
    const uint8_t value = c->set[first];
    uint32_t depth = 0, count = 0;
    c->stack[depth++] = first;
    c->mark[first] = mark;
    while (depth > 0) {
        const uint32_t cell = c->stack[--depth], x = cell % c->across, y = cell / c->across;
        const uint32_t near[4] = {x > 0 ? cell - 1 : cell, x + 1 < c->across ? cell + 1 : cell,
                                  y > 0 ? cell - c->across : cell, y + 1 < c->down ? cell + c->across : cell};
        count++;
        for (int i = 0; i < 4; i++) {
            if (c->mark[near[i]] || c->set[near[i]] != value) continue;
            c->mark[near[i]] = mark;
            c->stack[depth++] = near[i];
        }
    }
    return count;
}

/* Leaves small parts out. Twice, since the largest one is to be known first. */
static void drop_small(const struct cells *c)
{
    const uint32_t cells = c->across * c->down;
    uint32_t most = 0;
    memset(c->mark, 0, cells);
    for (uint32_t i = 0; i < cells; i++) {
        const uint32_t count = c->set[i] && !c->mark[i] ? fill(c, i, 1) : 0;
        c->sorted[i] = count; /* of the part that begins here */
        if (count > most) most = count;
    }
    memset(c->mark, 0, cells);
    for (uint32_t i = 0; i < cells; i++)
        if (c->sorted[i] > 0) fill(c, i, c->sorted[i] >= most / SHARE_OF_MOST ? 2 : 1);
    for (uint32_t i = 0; i < cells; i++) c->set[i] = c->mark[i] == 2;
}

/* Takes in what the border is not reached from, and then all cells around. */
static void close_and_grow(const struct cells *c)
{
    const uint32_t cells = c->across * c->down;
    memset(c->mark, 0, cells);
    for (uint32_t i = 0; i < cells; i++)
        if (is_at_border(c, i) && !c->set[i] && !c->mark[i]) fill(c, i, 1);
    for (uint32_t i = 0; i < cells; i++) c->set[i] = !c->mark[i];
    for (uint32_t i = 0; i < cells; i++) {
        const uint32_t x = i % c->across, y = i / c->across;
        c->mark[i] = 0;
        for (uint32_t v = y > 0 ? y - 1 : 0; v <= y + 1 && v < c->down; v++)
            for (uint32_t u = x > 0 ? x - 1 : 0; u <= x + 1 && u < c->across; u++)
                c->mark[i] |= c->set[v * c->across + u];
    }
    memcpy(c->set, c->mark, cells);
}

static void find_cells(struct cells *c)
{
    const uint32_t cells = c->across * c->down;
    uint32_t most = 0;
    for (uint32_t i = 0; i < cells; i++) most = c->measure[i] > most ? c->measure[i] : most;
    if (most == 0) {
        memset(c->set, 1, cells);
        return;
    }
    const uint32_t threshold = find_threshold(c, most);
    for (uint32_t i = 0; i < cells; i++) c->set[i] = (uint64_t)c->measure[i] * (LEVELS - 1) / most > threshold;
    drop_small(c);
    close_and_grow(c);
}

enum tsr_status tsr_find_body(struct tsr_source *source, uint8_t *mask, struct tsr_error *error)
{
    const struct tsr_image *const image = &source->header.image;
    const uint32_t longer = image->columns > image->rows ? image->columns : image->rows;
    struct cells c = {.kept = &source->header.kept, .components = image->components};
    c.side = (longer + CELLS - 1) / CELLS;
    c.across = (image->columns + c.side - 1) / c.side;
    c.down = (image->rows + c.side - 1) / c.side;
    const size_t cells = (size_t)c.across * c.down;
    c.sums = calloc(cells * image->components, sizeof *c.sums);
    c.measure = calloc(cells, sizeof *c.measure);
    c.sorted = calloc(cells, sizeof *c.sorted);
    c.stack = calloc(cells, sizeof *c.stack);
    c.set = calloc(cells, 1);
    c.mark = calloc(cells, 1);
    enum tsr_status status = c.sums && c.measure && c.sorted && c.stack && c.set && c.mark
                                 ? tsr_source_visit(source, measure_frame, &c, error)
                                 : tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu cells of an image", cells);
    if (status == TSR_OK) find_cells(&c);
    for (uint32_t y = 0; y < image->rows && status == TSR_OK; y++)
        for (uint32_t x = 0; x < image->columns; x++)
            mask[(size_t)y * image->columns + x] |= c.set[(y / c.side) * c.across + x / c.side];
    free(c.sums);
    free(c.measure);
    free(c.sorted);
    free(c.stack);
    free(c.set);
    free(c.mark);
    return status;
}
