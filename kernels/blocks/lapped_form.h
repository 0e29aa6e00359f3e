/* Path T with lapping on the CPU: the text of both forms, which lapped_cpu.c compiles as plain C and lapped_avx2.c for
 * AVX2, where the same loops have twice the lanes. TSR_FORM is the form's name. FORMAT.md section 8.7.
 *
 * A row of blocks is held as 16 lines, one for each place of the block's raster, so that blocks beside each other lie
 * beside each other and every step is a loop over them. */
#include "lapped_cpu.h"

#include "block_lines_cpu.h"
#include "blocks_cpu.h"
#include "kernels/transform_plan.h"

#include <string.h>

#include "transform/block/core4x4.h"
#include "transform/block/dc_plane.h"
#include "entropy/rate_distortion.h"
#include "transform/block/lapping.h"
#include "textures_form.h"

enum { ROWS_HELD = 2, DC_ROW_MORE = 9 /* places of a row of DCs that are no columns */ };

/* Blocks of a row, rounded up so that lines are aligned. */
static size_t pitch_of(int32_t tile_width)
{
    return ((size_t)(tile_width + 3) / 4 + 15) / 16 * 16;
}

/* ---- Lines ------------------------------------------------------------------------------------------------ */

/* Across the borders between blocks k and k + 1 of a row, in one of its four lines of samples; or, with next the row
 * below, between rows. Lines a b c d hold the samples at -2, -1, 0, 1 from the border. */
static void lap_lines_forward(int32_t *restrict a, int32_t *restrict b, int32_t *restrict c, int32_t *restrict d,
                              size_t count)
{
    for (size_t k = 0; k < count; k++) tsr_lap_forward(&a[k], &b[k], &c[k], &d[k]);
}

static void lap_lines_inverse(int32_t *restrict a, int32_t *restrict b, int32_t *restrict c, int32_t *restrict d,
                              size_t count)
{
    for (size_t k = 0; k < count; k++) tsr_lap_inverse(&a[k], &b[k], &c[k], &d[k]);
}

/* Lines of four values, in place: one dimension of the core transform. */
static void core_lines_forward(int32_t *restrict v0, int32_t *restrict v1, int32_t *restrict v2, int32_t *restrict v3,
                               size_t count)
{
    for (size_t k = 0; k < count; k++) {
        int32_t v[4] = {v0[k], v1[k], v2[k], v3[k]};
        tsr_core_forward_1d(v, 1);
        v0[k] = v[0];
        v1[k] = v[1];
        v2[k] = v[2];
        v3[k] = v[3];
    }
}

static void core_lines_inverse(int32_t *restrict v0, int32_t *restrict v1, int32_t *restrict v2, int32_t *restrict v3,
                               size_t count)
{
    for (size_t k = 0; k < count; k++) {
        int32_t v[4] = {v0[k], v1[k], v2[k], v3[k]};
        tsr_core_inverse_32_1d(v);
        v0[k] = v[0];
        v1[k] = v[1];
        v2[k] = v[2];
        v3[k] = v[3];
    }
}

/* Values in 1/256 of the step: tsr_quantiser_units with a sum above 0 (below 2^46 in magnitude before), since
 * AVX2 has no arithmetic shift of 64 bits. */
static void units_of_line(const int32_t *restrict in, size_t count, int32_t q, int32_t factor, int32_t *restrict out)
{
    const int shift = tsr_quantiser_units_shift(q);
    const int64_t above = (int64_t)1 << 50, half = (int64_t)1 << (shift - 1);
    const uint32_t less = (uint32_t)(above >> shift);
    for (size_t k = 0; k < count; k++)
        out[k] = (int32_t)((uint32_t)((uint64_t)((int64_t)in[k] * factor + (above + half)) >> shift) - less);
}

/* The same in places but the first, for blocks of different classes, the first block number from of its row. */
static void units_of_classes(const int32_t *restrict in, size_t from, size_t count, int32_t q, int norm_class,
                             const uint8_t *classes, int32_t *restrict out)
{
    for (size_t k = 0; k < count;) { /* by squares */
        const size_t square = (from + k) / TSR_CLASS_BLOCKS, end = (square + 1) * TSR_CLASS_BLOCKS - from;
        const size_t blocks = (end < count ? end : count) - k;
        units_of_line(in + k, blocks, q, tsr_class_factor(q, norm_class, classes[square]), out + k);
        k += blocks;
    }
}

/* Classes of a row of blocks: of its squares. */
static const uint8_t *classes_of_blocks(const uint8_t *classes, struct tsr_block_grid grid, int32_t row)
{
    const int32_t across = (grid.columns + TSR_CLASS_BLOCKS - 1) / TSR_CLASS_BLOCKS;
    return classes ? classes + (size_t)(row / TSR_CLASS_BLOCKS) * (size_t)across : NULL;
}

/* How many of a row's blocks come before those with coarser steps. */
static size_t finer_blocks(struct tsr_block_steps steps, struct tsr_tile tile, int32_t row, size_t count)
{
    const size_t first = tile.first + 4 * (size_t)row * tile.stride;
    if (steps.coarser_by == 0) return count;
    if (steps.coarser_from <= first) return 0;
    const size_t before = (steps.coarser_from - first + 3) / 4;
    return before < count ? before : count;
}

/* ---- Forward ---------------------------------------------------------------------------------------------- */

struct block_row {
    int32_t *line[16];
};

static struct block_row row_at(void *scratch, size_t pitch, int which)
{
    struct block_row row;
    for (int i = 0; i < 16; i++) row.line[i] = (int32_t *)scratch + ((size_t)which * 16 + (size_t)i) * pitch;
    return row;
}

/* What is transformed: samples, or values that have a fraction already. */
struct row_source {
    const uint16_t *samples;
    const int32_t *values;
};

/* Four values of each of count blocks, beside each other, to four lines. */
static void values_to_lines(const int32_t *values, size_t count, int32_t *const line[4])
{
    for (size_t k = 0; k < count; k++)
        for (int j = 0; j < 4; j++) line[j][k] = values[4 * k + (size_t)j];
}

/* Samples with their fraction; columns and rows beyond the tile repeat its last ones. */
static void load_row(struct row_source from, struct tsr_tile tile, int32_t row, int32_t blocks, struct block_row out)
{
    const int32_t whole = tile.width / 4;
    for (int i = 0; i < 4; i++) {
        const size_t first = tile.first + (size_t)tsr_min(4 * row + i, tile.height - 1) * tile.stride;
        if (from.values) {
            values_to_lines(from.values + first, (size_t)whole, out.line + 4 * i);
            for (int j = 0; j < 4 && whole < blocks; j++)
                out.line[4 * i + j][whole] = from.values[first + (size_t)tsr_min(4 * whole + j, tile.width - 1)];
            continue;
        }
        const uint16_t *line = from.samples + first;
        tsr_samples_to_lines(line, (size_t)whole, TSR_LAP_BITS, out.line + 4 * i);
        if (whole == blocks) continue;
        for (int j = 0; j < 4; j++)
            out.line[4 * i + j][whole] = line[tsr_min(4 * whole + j, tile.width - 1)] << TSR_LAP_BITS;
    }
}

/* Where means of a row's blocks go, in place of their DCs' units. NULL: the DCs are units as all else. */
struct row_means {
    int32_t *mean;
    int fraction;
};

/* Of row number row of blocks. */
static struct row_means means_of_row(struct tsr_block_steps steps, int32_t row, size_t blocks)
{
    const struct row_means means = {steps.dcs ? steps.dcs + (size_t)row * blocks : NULL, steps.dc_fraction};
    return means;
}

#if defined(TSR_EIGHT_BLOCKS)
#include "lapped_eight_avx2.h"
#endif

/* Blocks from .. end - 1 of a row, all of one q: lines, used up, to units. done: lines to work with. */
static void units_of_blocks(struct block_row row, size_t from, size_t end, int32_t q, const uint8_t *classes,
                            struct row_means means, struct block_row done, int32_t *units)
{
    const size_t count = end - from;
    int32_t *line[16], *to[16];
#if defined(TSR_EIGHT_BLOCKS)
    if (count >= EIGHT_BLOCKS && has_eight_units(q)) {
        units_of_eights(row, from, end, q, classes, means, units);
        return;
    }
#endif
    for (int i = 0; i < 16; i++) {
        line[i] = row.line[i] + from;
        to[i] = done.line[i] + from;
    }
    for (int i = 0; i < 4; i++)
        core_lines_forward(line[4 * i], line[4 * i + 1], line[4 * i + 2], line[4 * i + 3], count);
    for (int j = 0; j < 4; j++) core_lines_forward(line[j], line[4 + j], line[8 + j], line[12 + j], count);
    for (size_t k = 0; k < count && means.mean; k++) {
        means.mean[from + k] = tsr_dc_mean(line[0][k], means.fraction);
        to[0][k] = 0;
    }
    for (int i = means.mean ? 1 : 0; i < 16; i++) {
        const int norm_class = tsr_norm_class(i / 4, i % 4);
        if (classes && i > 0)
            units_of_classes(line[i], from, count, q, norm_class, classes, to[i]);
        else
            units_of_line(line[i], count, q, tsr_quantiser_factor(q, norm_class), to[i]);
    }
    tsr_lines_to_blocks(to, count, units + from * TSR_BLOCK_SAMPLES);
}

static void forward(struct row_source from, struct tsr_tile tile, struct tsr_block_steps steps, bool lapped,
                    int32_t *units, void *scratch)
{
    const int32_t blocks = (tile.width + 3) / 4, rows = (tile.height + 3) / 4;
    const size_t pitch = pitch_of(tile.width), count = (size_t)blocks;
    struct block_row now = row_at(scratch, pitch, 0), next = row_at(scratch, pitch, 1);
    const struct block_row done = row_at(scratch, pitch, 2);
    const int32_t q = steps.q + (lapped ? TSR_LAP_QP : 0);
    const struct tsr_block_grid grid = tsr_block_grid(tile.width, tile.height, 1);
    load_row(from, tile, 0, blocks, now);
    for (int32_t row = 0; row < rows; row++) {
        if (row + 1 < rows) {
            load_row(from, tile, row + 1, blocks, next);
            if (lapped)
                for (int j = 0; j < 4; j++)
                    lap_lines_forward(now.line[8 + j], now.line[12 + j], next.line[j], next.line[4 + j], count);
        }
        for (int i = 0; i < 4 && lapped; i++) {
            int32_t **v = now.line + 4 * i;
            lap_lines_forward(v[2], v[3], v[0] + 1, v[1] + 1, count - 1);
        }
        const size_t finer = finer_blocks(steps, tile, row, count);
        int32_t *of_row = units + (size_t)row * count * TSR_BLOCK_SAMPLES;
        const uint8_t *classes = classes_of_blocks(steps.classes, grid, row);
        const struct row_means means = means_of_row(steps, row, count);
        units_of_blocks(now, 0, finer, q, classes, means, done, of_row);
        units_of_blocks(now, finer, count, q + steps.coarser_by, classes, means, done, of_row);
        const struct block_row swap = now;
        now = next;
        next = swap;
    }
}

static void lapped_forward(const uint16_t *samples, struct tsr_tile tile, struct tsr_block_steps steps, bool lapped,
                           int32_t *units, void *scratch)
{
    forward((struct row_source){samples, NULL}, tile, steps, lapped, units, scratch);
}

static void forward_dcs(const int32_t *dcs, struct tsr_tile tile, int32_t q, int32_t *units, void *scratch)
{
    forward((struct row_source){NULL, dcs}, tile, (struct tsr_block_steps){.q = q}, false, units, scratch);
}

#include "choice_form.h"

/* ---- Inverse ---------------------------------------------------------------------------------------------- */

/* factor: the step of the values, tsr_quantiser_step or tsr_class_step. */
static void scale_line(int32_t *line, size_t count, int32_t factor, int32_t q, int raster)
{
    for (size_t k = 0; k < count; k++) line[k] = tsr_scale_fine(line[k], factor, q, raster);
}

/* Likewise where no product leaves 32 bits and none is clamped. */
static void scale_small_line(int32_t *line, size_t count, int32_t factor, int32_t q)
{
    const int shift = TSR_FINE_DROP - q / TSR_QP_OCTAVE;
    const int32_t half = shift > 0 ? 1 << (shift - 1) : 0;
    for (size_t k = 0; k < count; k++) line[k] = (line[k] * factor + half) >> shift;
}

static void settle_line(int32_t *line, size_t count)
{
    for (size_t k = 0; k < count; k++) line[k] = tsr_lap_settle(line[k]);
}

static int32_t largest_magnitude(const int32_t *coefficients, size_t count)
{
    uint32_t all = 0;
    for (size_t i = 0; i < count; i++) all |= (uint32_t)(coefficients[i] < 0 ? -coefficients[i] : coefficients[i]);
    return (int32_t)all;
}

/* Lines 4 i .. 4 i + 3, used up, to samples. */
static void samples_of_lines(int32_t *const line[4], size_t count, int32_t top, uint16_t *samples)
{
    for (int j = 0; j < 4; j++)
        for (size_t k = 0; k < count; k++) line[j][k] = tsr_lap_sample(line[j][k], top);
    tsr_lines_to_samples(line, count, samples);
}

/* What is restored: samples 0 .. range - 1, or values that keep their fraction. */
struct row_sink {
    uint16_t *samples;
    uint32_t range;
    int32_t *values;
};

/* Blocks from this one on. */
static void store_row(struct block_row row, size_t first, int from, int to, struct row_sink sink, struct tsr_tile tile,
                      int32_t at)
{
    const int32_t whole = tile.width / 4, top = (int32_t)sink.range - 1;
    for (int i = from; i < to && 4 * at + i < tile.height; i++) {
        const size_t start = tile.first + (size_t)(4 * at + i) * tile.stride;
        int32_t **v = row.line + 4 * i;
        if (sink.values) {
            for (int32_t x = 0; x < tile.width; x++) sink.values[start + (size_t)x] = tsr_dc_settle(v[x % 4][x / 4]);
            continue;
        }
        uint16_t *line = sink.samples + start;
        int32_t *const rest[4] = {v[0] + first, v[1] + first, v[2] + first, v[3] + first};
        samples_of_lines(rest, (size_t)whole - first, top, line + 4 * first);
        for (int32_t j = 0; 4 * whole + j < tile.width; j++)
            line[4 * whole + j] = (uint16_t)tsr_lap_sample(v[j][whole], top);
    }
}

static void scale_blocks(int32_t *line, size_t count, int32_t factor, int32_t q, int raster, bool small)
{
    if (small)
        scale_small_line(line, count, factor, q);
    else
        scale_line(line, count, factor, q, raster);
}

/* Coefficients of blocks from .. end - 1 of a row, all of one q, to settled lines. */
static void invert_blocks(const int32_t *coefficients, size_t from, size_t end, int32_t q, const uint8_t *classes,
                          struct row_means means, struct block_row row)
{
    const size_t count = end - from;
    const int shift = TSR_FINE_DROP - q / TSR_QP_OCTAVE, step_bits = classes ? TSR_CLASS_STEP_BITS : TSR_STEP_BITS;
#if defined(TSR_EIGHT_BLOCKS)
    if (settle_eights(coefficients, from, end, q, classes, means, row)) return;
#endif
    const int32_t most = largest_magnitude(coefficients + from * TSR_BLOCK_SAMPLES, count * TSR_BLOCK_SAMPLES);
    const bool small =
        shift >= 0 && most < 1 << (30 - step_bits) && ((int64_t)most << step_bits >> shift) < TSR_FINE_LIMIT;
    int32_t *line[16];
    for (int i = 0; i < 16; i++) line[i] = row.line[i] + from;
    tsr_blocks_to_lines(coefficients + from * TSR_BLOCK_SAMPLES, count, line);
    for (int i = 0; i < 16; i++) {
        const int norm_class = tsr_norm_class(i / 4, i % 4);
        if (!classes || i == 0) {
            scale_blocks(line[i], count, tsr_quantiser_step(q, norm_class), q, i, small);
            continue;
        }
        for (size_t k = 0; k < count;) { /* by squares */
            const size_t square = (from + k) / TSR_CLASS_BLOCKS, stop = (square + 1) * TSR_CLASS_BLOCKS - from;
            const size_t blocks = (stop < count ? stop : count) - k;
            scale_blocks(line[i] + k, blocks, tsr_class_step(q, norm_class, classes[square]), q, i, small);
            k += blocks;
        }
    }
    for (size_t k = 0; k < count && means.mean; k++) line[0][k] = tsr_dc_scaled(means.mean[from + k], means.fraction);
    for (int j = 0; j < 4; j++) core_lines_inverse(line[j], line[4 + j], line[8 + j], line[12 + j], count);
    for (int i = 0; i < 4; i++)
        core_lines_inverse(line[4 * i], line[4 * i + 1], line[4 * i + 2], line[4 * i + 3], count);
    for (int i = 0; i < 16; i++) settle_line(line[i], count);
}

/* The lower half of the row before this one and the upper half of this one to samples; their lines are used up. */
static void store_between(struct block_row before, struct block_row now, size_t count, bool lapped,
                          struct row_sink sink, struct tsr_tile tile, int32_t row)
{
    size_t done = 0;
#if defined(TSR_EIGHT_BLOCKS)
    if (!sink.values) done = store_eights(before, now, lapped, sink.samples, tile, row, sink.range);
#endif
    if (lapped)
        for (int j = 0; j < 4; j++)
            lap_lines_inverse(before.line[8 + j] + done, before.line[12 + j] + done, now.line[j] + done,
                              now.line[4 + j] + done, count - done);
    store_row(before, done, 2, 4, sink, tile, row - 1);
    store_row(now, done, 0, 2, sink, tile, row);
}

/* Whether all places of DCs are 0. */
static bool are_dcs_apart(const int32_t *coefficients, size_t blocks)
{
    int32_t any = 0;
    for (size_t k = 0; k < blocks; k++) any |= coefficients[k * TSR_BLOCK_SAMPLES];
    return any == 0;
}

static bool inverse(int32_t *coefficients, struct tsr_tile tile, struct tsr_block_steps steps, bool lapped,
                    struct row_sink sink, void *scratch)
{
    const int32_t blocks = (tile.width + 3) / 4, rows = (tile.height + 3) / 4;
    const size_t pitch = pitch_of(tile.width), count = (size_t)blocks;
    struct block_row before = row_at(scratch, pitch, 0), now = row_at(scratch, pitch, 1);
    const int32_t q = steps.q + (lapped ? TSR_LAP_QP : 0);
    const struct tsr_block_grid grid = tsr_block_grid(tile.width, tile.height, 1);
    for (int32_t row = 0; row < rows; row++) {
        const int32_t *of_row = coefficients + (size_t)row * count * TSR_BLOCK_SAMPLES;
        const struct row_means means = means_of_row(steps, row, count);
        if (means.mean ? !are_dcs_apart(of_row, count) : !tsr_restore_dc_row(coefficients, grid, row)) return false;
        const size_t finer = finer_blocks(steps, tile, row, count);
        const uint8_t *classes = classes_of_blocks(steps.classes, grid, row);
        invert_blocks(of_row, 0, finer, q, classes, means, now);
        invert_blocks(of_row, finer, count, q + steps.coarser_by, classes, means, now);
        if (lapped)
            for (int i = 0; i < 4; i++) {
                int32_t **v = now.line + 4 * i;
                lap_lines_inverse(v[2], v[3], v[0] + 1, v[1] + 1, count - 1);
            }
        if (row > 0)
            store_between(before, now, count, lapped, sink, tile, row);
        else
            store_row(now, 0, 0, 2, sink, tile, row);
        const struct block_row swap = before;
        before = now;
        now = swap;
    }
    store_row(before, 0, 2, 4, sink, tile, rows - 1);
    return true;
}

static bool lapped_inverse(int32_t *coefficients, struct tsr_tile tile, struct tsr_block_steps steps, bool lapped,
                           uint32_t range, uint16_t *samples, void *scratch)
{
    return inverse(coefficients, tile, steps, lapped, (struct row_sink){samples, range, NULL}, scratch);
}

static bool inverse_dcs(int32_t *coefficients, struct tsr_tile tile, int32_t q, int32_t *dcs, void *scratch)
{
    return inverse(coefficients, tile, (struct tsr_block_steps){.q = q}, false, (struct row_sink){NULL, 0, dcs},
                   scratch);
}

const struct tsr_lapped_form TSR_FORM = {lapped_forward,   forward_dcs,    choose_coefficients, rough_tile_cost,
                                         rough_plain_cost, lapped_inverse, inverse_dcs,         tile_textures};
