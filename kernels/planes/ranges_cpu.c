/* What is chosen for whole planes; see the header. */
#include "ranges_cpu.h"

#include <string.h>

#include "entropy/code_cost.h"
#include "kernels/transform_plan.h"
#include "transform/predict/median_edge.h"

/* Samples that a choice looks at: every step-th row from the second on, without its first column. */
static uint32_t residual_cost(int32_t x, int32_t w, int32_t n, int32_t nw)
{
    return tsr_magnitude_cost((uint32_t)tsr_abs(x - tsr_median_edge(w, n, nw)));
}

/* ---- Colour --------------------------------------------------------------------------------------------- */

/* The three values at a place under a transform. */
static inline void colour_at(uint16_t *const *planes, size_t at, enum tsr_colour colour, int bits, int32_t out[3])
{
    for (int c = 0; c < 3; c++) out[c] = planes[c][at];
    tsr_colour_forward(out, colour, bits);
}

enum { COUNTED = 256 };

/* Adds a residual's cost: small ones are counted by component, others are summed. */
static inline void add_cost(int32_t x, int32_t w, int32_t n, int32_t nw, uint32_t counts[COUNTED], uint64_t *cost)
{
    const uint32_t magnitude = (uint32_t)tsr_abs(x - tsr_median_edge(w, n, nw));
    if (magnitude < COUNTED)
        counts[magnitude]++;
    else
        *cost += tsr_magnitude_cost(magnitude);
}

/* Inlined for each transform: a switch for each sample would take most of the time. */
static inline __attribute__((always_inline)) uint64_t cost_of(uint16_t *const *planes, uint32_t columns, uint32_t rows,
                                                              const enum tsr_colour colour, int bits)
{
    const uint32_t step = tsr_choice_step(columns, rows, TSR_COLOUR_SAMPLES);
    uint32_t counts[3][COUNTED] = {0};
    uint64_t cost = 0;
    for (uint32_t y = 1; y < rows; y += step) {
        const size_t row = (size_t)y * columns, up = row - columns;
        int32_t w[3], nw[3];
        colour_at(planes, row, colour, bits, w);
        colour_at(planes, up, colour, bits, nw);
        for (uint32_t x = 1; x < columns; x++) {
            int32_t here[3], n[3];
            colour_at(planes, row + x, colour, bits, here);
            colour_at(planes, up + x, colour, bits, n);
            for (int c = 0; c < 3; c++) {
                add_cost(here[c], w[c], n[c], nw[c], counts[c], &cost);
                w[c] = here[c];
                nw[c] = n[c];
            }
        }
    }
    for (uint32_t m = 1; m < COUNTED; m++) /* zeros cost nothing */
        cost += ((uint64_t)counts[0][m] + counts[1][m] + counts[2][m]) * tsr_magnitude_cost(m);
    return cost;
}

uint64_t tsr_colour_cost(uint16_t *const *planes, uint32_t columns, uint32_t rows, enum tsr_colour colour, int bits)
{
    switch (colour) {
    case TSR_COLOUR_GREEN:
        return cost_of(planes, columns, rows, TSR_COLOUR_GREEN, bits);
    case TSR_COLOUR_RCT:
        return cost_of(planes, columns, rows, TSR_COLOUR_RCT, bits);
    case TSR_COLOUR_YCOCG:
        return cost_of(planes, columns, rows, TSR_COLOUR_YCOCG, bits);
    default:
        return cost_of(planes, columns, rows, TSR_COLOUR_NONE, bits);
    }
}

/* Differences of 16-bit components may wrap. A wrapped one must not be coded with loss: a small error at the seam would
 * become one of the whole range. */
static bool colour_wraps(uint16_t *const *planes, size_t count, enum tsr_colour colour, int bits)
{
    if (tsr_chroma_bits(bits) > bits) return false;
    for (size_t i = 0; i < count; i++) {
        int32_t v[3];
        colour_at(planes, i, colour, bits, v);
        tsr_colour_inverse(v, colour, bits, true);
        if (v[0] != planes[0][i] || v[1] != planes[1][i] || v[2] != planes[2][i]) return true;
    }
    return false;
}

enum tsr_colour tsr_choose_colour(uint16_t *const *planes, uint32_t columns, uint32_t rows, int bits,
                                  const struct tsr_coding *coding)
{
    const bool lossy = coding->lossy && coding->path == TSR_PATH_TRANSFORM;
    const uint32_t untried = tsr_untried_colours(coding);
    static const enum tsr_colour candidates[] = {TSR_COLOUR_GREEN, TSR_COLOUR_RCT, TSR_COLOUR_YCOCG};
    enum tsr_colour best = TSR_COLOUR_NONE;
    uint64_t least = tsr_colour_cost(planes, columns, rows, best, bits);
    for (size_t i = 0; i < sizeof candidates / sizeof candidates[0]; i++) {
        if (untried >> candidates[i] & 1) continue;
        if (lossy && colour_wraps(planes, (size_t)columns * rows, candidates[i], bits)) continue;
        const uint64_t cost = tsr_colour_cost(planes, columns, rows, candidates[i], bits);
        if (cost < least) {
            least = cost;
            best = candidates[i];
        }
    }
    return best;
}

/* Loops that compilers make vectors of: three planes apart, one transform, one direction. */
#define COLOUR_LOOP static inline __attribute__((always_inline)) void

COLOUR_LOOP apply(uint16_t *restrict a, uint16_t *restrict b, uint16_t *restrict c, size_t count,
                  const enum tsr_colour colour, int bits)
{
    for (size_t i = 0; i < count; i++) {
        int32_t v[3] = {a[i], b[i], c[i]};
        tsr_colour_forward(v, colour, bits);
        a[i] = (uint16_t)v[0];
        b[i] = (uint16_t)v[1];
        c[i] = (uint16_t)v[2];
    }
}

COLOUR_LOOP undo(uint16_t *restrict a, uint16_t *restrict b, uint16_t *restrict c, size_t count,
                 const enum tsr_colour colour, int bits, const bool clamp)
{
    for (size_t i = 0; i < count; i++) {
        int32_t v[3] = {a[i], b[i], c[i]};
        tsr_colour_inverse(v, colour, bits, clamp);
        a[i] = (uint16_t)v[0];
        b[i] = (uint16_t)v[1];
        c[i] = (uint16_t)v[2];
    }
}

void tsr_apply_colour(uint16_t *const *planes, size_t count, enum tsr_colour colour, int bits)
{
    uint16_t *const a = planes[0], *const b = planes[1], *const c = planes[2];
    if (colour == TSR_COLOUR_GREEN) apply(a, b, c, count, TSR_COLOUR_GREEN, bits);
    if (colour == TSR_COLOUR_RCT) apply(a, b, c, count, TSR_COLOUR_RCT, bits);
    if (colour == TSR_COLOUR_YCOCG) apply(a, b, c, count, TSR_COLOUR_YCOCG, bits);
}

COLOUR_LOOP undo_either(uint16_t *const *planes, size_t count, const enum tsr_colour colour, int bits, bool clamp)
{
    if (clamp)
        undo(planes[0], planes[1], planes[2], count, colour, bits, true);
    else
        undo(planes[0], planes[1], planes[2], count, colour, bits, false);
}

void tsr_undo_colour(uint16_t *const *planes, size_t count, enum tsr_colour colour, int bits, bool clamp)
{
    if (colour == TSR_COLOUR_GREEN) undo_either(planes, count, TSR_COLOUR_GREEN, bits, clamp);
    if (colour == TSR_COLOUR_RCT) undo_either(planes, count, TSR_COLOUR_RCT, bits, clamp);
    if (colour == TSR_COLOUR_YCOCG) undo_either(planes, count, TSR_COLOUR_YCOCG, bits, clamp);
}

/* ---- Quantised samples ------------------------------------------------------------------------------------ */

void tsr_quantise_samples(uint16_t *plane, size_t count, struct tsr_near_lossless near)
{
    for (size_t i = 0; i < count; i++) plane[i] = (uint16_t)tsr_near_lossless_index(plane[i], near);
}

void tsr_restore_samples(uint16_t *plane, size_t count, struct tsr_near_lossless near)
{
    for (size_t i = 0; i < count; i++) plane[i] = (uint16_t)tsr_near_lossless_sample(plane[i], near);
}

/* ---- Range ---------------------------------------------------------------------------------------------- */

/* Bits that the description of the packed histogram takes. */
static uint64_t description_bits(const struct tsr_range_work *work, uint32_t span)
{
    uint64_t bits = 0;
    for (uint32_t v = 0; v < span;) {
        uint32_t length = 1;
        while (v + length < span && work->used[v + length] == work->used[v]) length++;
        bits += tsr_ue_bits(length - 1);
        v += length;
    }
    return bits;
}

/* True if half of the values are not in use, and the description takes at most a bit for each that is: a plane of few
 * values whose numbers say little. in_use: how many. */
static bool has_wide_gaps(const struct tsr_range_work *work, uint32_t in_use, uint32_t span)
{
    return in_use <= span / 2 && description_bits(work, span) <= in_use;
}

/* True if indices into the values in use cost less than the values themselves, description included. */
static bool packing_pays(const uint16_t *plane, uint32_t columns, uint32_t rows, uint32_t minimum, uint32_t span,
                         const struct tsr_range_work *work)
{
    const uint32_t step = tsr_choice_step(columns, rows, TSR_PACKING_SAMPLES);
    const uint16_t *const index = work->index;
    uint64_t plain = 0, packed = 0, looked_at = 0;
    for (uint32_t y = 1; y < rows; y += step) {
        const uint16_t *row = plane + (size_t)y * columns, *up = row - columns;
        int32_t w = index[row[0] - minimum], nw = index[up[0] - minimum];
        for (uint32_t x = 1; x < columns; x++) {
            const int32_t here = index[row[x] - minimum], n = index[up[x] - minimum];
            plain += residual_cost(row[x], row[x - 1], up[x], up[x - 1]);
            packed += residual_cost(here, w, n, nw);
            w = here;
            nw = n;
        }
        looked_at += columns - 1;
    }
    if (looked_at == 0 || packed >= plain) return false;
    const uint64_t saved_bits = (plain - packed) / looked_at * ((uint64_t)columns * rows) >> TSR_COST_SHIFT;
    return saved_bits > description_bits(work, span);
}

void tsr_find_extremes(const uint16_t *plane, size_t count, uint16_t *low, uint16_t *high)
{
    int16_t lowest = INT16_MAX, highest = INT16_MIN; /* less 2^15: vectors compare signed numbers */
    for (size_t i = 0; i < count; i++) {
        const int16_t v = (int16_t)(plane[i] ^ 0x8000u);
        lowest = v < lowest ? v : lowest;
        highest = v > highest ? v : highest;
    }
    *low = (uint16_t)(lowest ^ -0x8000);
    *high = (uint16_t)(highest ^ -0x8000);
}

/* Relaxed: threads only ever set these, and are waited for before they are read. */
static int is_used(const uint8_t *used)
{
    return __atomic_load_n(used, __ATOMIC_RELAXED);
}

/* Most values have been seen before: eight of them are looked up at once. */
void tsr_mark_used(const uint16_t *values, size_t count, uint32_t low, uint8_t *used)
{
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const uint16_t *v = values + i;
        int seen = 1;
        for (int k = 0; k < 8; k++) seen &= is_used(&used[v[k] - low]);
        for (int k = 0; k < 8 && !seen; k++) __atomic_store_n(&used[v[k] - low], 1, __ATOMIC_RELAXED);
    }
    for (; i < count; i++) __atomic_store_n(&used[values[i] - low], 1, __ATOMIC_RELAXED);
}

/* A store for each value takes half of the time of the looks above, but the caches of other threads would wait for it.
 */
void tsr_mark_used_alone(const uint16_t *values, size_t count, uint32_t low, uint8_t *used)
{
    for (size_t i = 0; i < count; i++) used[values[i] - low] = 1;
}

static void mark_here(void *context, const uint16_t *values, size_t count, uint32_t low, uint8_t *used)
{
    (void)context;
    tsr_mark_used_alone(values, count, low, used);
}

/* Values to indices, eight at once. */
static void pack(uint16_t *plane, size_t count, uint32_t low, const uint16_t *index)
{
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        uint16_t packed[8];
        for (int k = 0; k < 8; k++) packed[k] = index[plane[i + (size_t)k] - low];
        memcpy(plane + i, packed, sizeof packed);
    }
    for (; i < count; i++) plane[i] = index[plane[i] - low];
}

void tsr_choose_packing(const uint16_t *plane, uint32_t columns, uint32_t rows, uint16_t low, uint16_t high,
                        enum tsr_packing packing, struct tsr_plane_model *model, struct tsr_range_work *work,
                        tsr_marker *mark, void *context)
{
    const size_t count = (size_t)columns * rows;
    model->minimum = low;
    model->span = (uint32_t)(high - low) + 1;
    model->range = model->span;
    model->packed = false;
    if (packing == TSR_PACK_NOTHING || model->span <= 2) return;
    /* A tenth of the values must be unused for the question to be worth its time. */
    bool may_pay = true;
    memset(work->used, 0, model->span);
    for (size_t i = 0, part = 8; part > 0 && may_pay; part /= 2) { /* an eighth, a quarter, half, all */
        mark(context, plane + i, count / part - i, low, work->used);
        i = count / part;
        uint32_t seen = 0;
        for (uint32_t v = 0; v < model->span; v++) seen += work->used[v];
        may_pay = 10 * (uint64_t)seen <= 9 * (uint64_t)model->span;
    }
    uint32_t in_use = 0;
    for (uint32_t v = 0; v < model->span && may_pay; v++) {
        work->index[v] = (uint16_t)in_use;
        if (work->used[v]) model->offset[in_use++] = (uint16_t)v;
    }
    if (!may_pay) return;
    if (!(packing == TSR_PACK_GAPS && has_wide_gaps(work, in_use, model->span)) &&
        !packing_pays(plane, columns, rows, low, model->span, work))
        return;
    model->packed = true;
    model->range = in_use;
}

void tsr_apply_range(uint16_t *plane, size_t count, const struct tsr_plane_model *model,
                     const struct tsr_range_work *work)
{
    const uint32_t low = model->minimum;
    if (model->packed)
        pack(plane, count, low, work->index);
    else if (low > 0)
        for (size_t i = 0; i < count; i++) plane[i] = (uint16_t)(plane[i] - low);
}

void tsr_choose_range(uint16_t *plane, uint32_t columns, uint32_t rows, enum tsr_packing packing,
                      struct tsr_plane_model *model, struct tsr_range_work *work)
{
    const size_t count = (size_t)columns * rows;
    uint16_t low, high;
    tsr_find_extremes(plane, count, &low, &high);
    tsr_choose_packing(plane, columns, rows, low, high, packing, model, work, mark_here, NULL);
    tsr_apply_range(plane, count, model, work);
}

void tsr_undo_range(uint16_t *plane, size_t count, const struct tsr_plane_model *model)
{
    const uint32_t minimum = model->minimum;
    if (model->packed)
        for (size_t i = 0; i < count; i++) plane[i] = (uint16_t)(minimum + model->offset[plane[i]]);
    else if (minimum > 0)
        for (size_t i = 0; i < count; i++) plane[i] = (uint16_t)(minimum + plane[i]);
}
