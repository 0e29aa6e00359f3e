/* Structural similarity on the CPU: the text of both forms. TSR_FORM is the form's name. transform/planes/ssim.h.
 *
 * A strip of columns is gone through from top to bottom. A row of values is held as four lines, one for each column
 * modulo TSR_SSIM_STEP, so that samples of equal place in their neighbourhoods lie beside each other, and every step is
 * a loop over them. Rows of which no position counts take no time. */
#include "ssim_cpu.h"

#include <string.h>

#include "transform/planes/raster_words.h"

enum {
    LINE = TSR_SSIM_LINE,                               /* samples of a line */
    STRIP = LINE - (TSR_SSIM_SIDE - 1) / TSR_SSIM_STEP, /* positions of a row */
    LINES = TSR_SSIM_STEP,                              /* of a row */
    COLUMNS = LINES * LINE,
    MOMENTS = 4
};

struct row {
    uint16_t value[LINES][LINE];
};

struct strip {
    struct row original[TSR_SSIM_SIDE], decoded[TSR_SSIM_SIDE]; /* row y at y modulo TSR_SSIM_SIDE */
    uint32_t next;                                              /* the first row that is not there */
    uint32_t moment[MOMENTS][LINES][LINE];                      /* down the columns of a neighbourhood */
    uint64_t whole[MOMENTS][STRIP];                             /* and over all of it */
    bool counts[STRIP];
};

/* ---- Rows ------------------------------------------------------------------------------------------------- */

/* The steps of tsr_ssim_value on words of 16 bits: all that the image can have, in the order of its values. */
struct words {
    int low_bit, right;
    uint16_t mask, sign, low, span, factor;
};

static struct words words_of(const struct tsr_image *image, const struct tsr_ssim_scale *scale)
{
    const int64_t half = (int64_t)1 << (image->bits_stored - 1), least = image->is_signed ? -half : 0;
    return (struct words){.low_bit = image->high_bit + 1 - image->bits_stored,
                          .right = scale->right,
                          .mask = (uint16_t)(2 * half - 1),
                          .sign = (uint16_t)(image->is_signed ? half : 0),
                          .low = (uint16_t)(scale->low - least),
                          .span = (uint16_t)(scale->high - scale->low),
                          .factor = (uint16_t)(scale->right > 0 ? 1u << (16 - scale->right) : 1u << scale->left)};
}

static inline __attribute__((always_inline)) void scale_words(struct words w, const uint8_t *restrict from,
                                                              uint32_t count, bool is_wide, uint16_t *restrict value)
{
    for (uint32_t x = 0; x < count; x++) {
        uint16_t word;
        memcpy(&word, from + 2 * x, sizeof word);
        const uint16_t order = (uint16_t)((word >> w.low_bit & w.mask) ^ w.sign),
                       above = order > w.low ? (uint16_t)(order - w.low) : 0, inside = above < w.span ? above : w.span;
        value[x] = (uint16_t)(is_wide ? (uint32_t)inside * w.factor >> 16 : (uint32_t)inside * w.factor);
    }
}

/* Inlined for the usual lowest bit, and for shifts in either direction: vectors have no such shift of 16 bits. */
static void scale_any_words(const struct words *w, const uint8_t *from, uint32_t count, uint16_t *value)
{
    struct words usual = *w;
    usual.low_bit = 0;
    if (w->low_bit > 0)
        scale_words(*w, from, count, w->right > 0, value);
    else if (w->right > 0)
        scale_words(usual, from, count, true, value);
    else
        scale_words(usual, from, count, false, value);
}

#ifndef SSIM_VECTORS
static void split_row(const uint16_t *word, uint16_t *lines)
{
    for (int g = 0; g < LINE; g++)
        for (int line = 0; line < LINES; line++) lines[LINE * line + g] = word[LINES * g + line];
}
#endif

/* Columns beyond the frame are 0: no neighbourhood has them. */
static void load_row(const struct tsr_ssim_plane *plane, const struct words *w, const uint8_t *raster, uint32_t y,
                     uint32_t column, struct row *row)
{
    const struct tsr_image *const image = plane->image;
    const uint32_t left = image->columns - column, count = left < COLUMNS ? left : COLUMNS;
    const size_t first = plane->first + ((size_t)y * image->columns + column) * plane->step;
    uint16_t word[COLUMNS], value[COLUMNS];
    const uint8_t *from = (const uint8_t *)word;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const bool is_usual = image->bits_allocated == 16 && !image->big_endian && plane->step == 1;
#else
    const bool is_usual = false;
#endif
    if (is_usual)
        from = raster + 2 * first;
    else if (image->bits_allocated == 8 && !image->swapped)
        for (uint32_t x = 0; x < count; x++) word[x] = raster[first + x * plane->step];
    else
        for (uint32_t x = 0; x < count; x++)
            word[x] = (uint16_t)tsr_raster_word(image, raster, first + x * plane->step);
    scale_any_words(w, from, count, value);
    if (count < COLUMNS) memset(value + count, 0, (COLUMNS - count) * sizeof *value);
    split_row(value, row->value[0]);
}

static void load_rows(struct strip *s, const struct tsr_ssim_plane *plane, const struct words *w, uint32_t column,
                      uint32_t top)
{
    for (uint32_t y = s->next > top ? s->next : top; y < top + TSR_SSIM_SIDE; y++) {
        load_row(plane, w, plane->original, y, column, &s->original[y % TSR_SSIM_SIDE]);
        load_row(plane, w, plane->decoded, y, column, &s->decoded[y % TSR_SSIM_SIDE]);
    }
    s->next = top + TSR_SSIM_SIDE;
}

/* ---- Moments ---------------------------------------------------------------------------------------------- */

#ifndef SSIM_VECTORS
/* Of the samples first .. end - 1 of a line in the rows of a neighbourhood: 11 bits and 10, products 22 and 10. */
static void sum_columns(const uint16_t *const *original, const uint16_t *const *decoded, int first, int end,
                        uint32_t *const *moment)
{
    for (int g = first; g < end; g++) {
        uint32_t sum[MOMENTS] = {0};
        for (int k = 0; k < TSR_SSIM_SIDE; k++) {
            const int distance = k < TSR_SSIM_REACH ? TSR_SSIM_REACH - k : k - TSR_SSIM_REACH;
            const uint32_t weight = TSR_AT(tsr_ssim_weight)[distance], x = original[k][g], y = decoded[k][g];
            sum[0] += weight * x;
            sum[1] += weight * y;
            sum[2] += weight * (x * y);
            sum[3] += weight * ((x - y) * (x - y));
        }
        for (int m = 0; m < MOMENTS; m++) moment[m][g] = sum[m];
    }
}
#endif

static void sum_all_columns(struct strip *s, uint32_t top, int first, int end)
{
    const uint16_t *original[TSR_SSIM_SIDE], *decoded[TSR_SSIM_SIDE];
    uint32_t *moment[MOMENTS];
    for (int line = 0; line < LINES; line++) {
        for (uint32_t k = 0; k < TSR_SSIM_SIDE; k++) {
            original[k] = s->original[(top + k) % TSR_SSIM_SIDE].value[line];
            decoded[k] = s->decoded[(top + k) % TSR_SSIM_SIDE].value[line];
        }
        for (int m = 0; m < MOMENTS; m++) moment[m] = s->moment[m][line];
        sum_columns(original, decoded, first, end, moment);
    }
}

/* Of the neighbourhoods first .. end - 1. */
static void sum_rows(struct strip *s, int moment, int first, int end)
{
    uint64_t *restrict const whole = s->whole[moment];
    const uint32_t *column[TSR_SSIM_SIDE];
    for (int k = 0; k < TSR_SSIM_SIDE; k++) column[k] = s->moment[moment][k % LINES] + k / LINES;
    for (int g = first; g < end; g++) {
        uint64_t sum = (uint64_t)TSR_AT(tsr_ssim_weight)[0] * column[TSR_SSIM_REACH][g];
        for (int k = 1; k <= TSR_SSIM_REACH; k++)
            sum +=
                TSR_AT(tsr_ssim_weight)[k] * ((uint64_t)column[TSR_SSIM_REACH - k][g] + column[TSR_SSIM_REACH + k][g]);
        whole[g] = sum;
    }
}

/* ---- Positions -------------------------------------------------------------------------------------------- */

/* Whether the original of word number at lies inside, and is not kept. */
static bool does_count(const struct tsr_ssim_plane *plane, const struct words *w, const struct tsr_measured *what,
                       size_t at)
{
    const struct tsr_image *const image = plane->image;
    const uint16_t word = (uint16_t)tsr_raster_word(image, plane->original, at),
                   order = (uint16_t)((word >> w->low_bit & w->mask) ^ w->sign);
    if ((uint16_t)(order - w->low) > w->span) return false;
    for (uint32_t k = 0; k < what->kept; k++)
        if (tsr_in_value_range((int64_t)order - w->sign, what->kept_range[k])) return false;
    return true;
}

/* A row of positions whose neighbourhoods begin with row top and column from. */
static void add_positions(struct strip *s, const struct tsr_ssim_plane *plane, const struct tsr_ssim_scale *scale,
                          const struct words *w, const struct tsr_measured *what, uint32_t top, uint32_t from,
                          int count, struct tsr_ssim_sum *sum)
{
    int first = count, end = 0;
    for (int g = 0; g < count; g++) {
        const size_t at =
            (size_t)(top + TSR_SSIM_REACH) * plane->image->columns + from + TSR_SSIM_REACH + (size_t)g * TSR_SSIM_STEP;
        s->counts[g] = does_count(plane, w, what, plane->first + at * plane->step);
        if (s->counts[g]) end = g + 1;
        if (s->counts[g] && first == count) first = g;
    }
    if (first == count) return;
    load_rows(s, plane, w, from, top);
    sum_all_columns(s, top, first, end + LINE - STRIP);
    for (int moment = 0; moment < MOMENTS; moment++) sum_rows(s, moment, first, end);
    for (int g = first; g < end; g++) {
        const struct tsr_ssim_moments m = {s->whole[0][g], s->whole[1][g], s->whole[2][g], s->whole[3][g]};
        if (!s->counts[g]) continue;
        sum->positions++;
        sum->loss += tsr_ssim_loss(scale, &m);
    }
}

void TSR_FORM(const struct tsr_ssim_plane *plane, const struct tsr_ssim_scale *scale, const struct tsr_measured *what,
              struct tsr_ssim_sum *sum)
{
    const uint32_t across = tsr_ssim_positions(plane->image->columns), down = tsr_ssim_positions(plane->image->rows);
    const struct words w = words_of(plane->image, scale);
    struct strip s;
    for (uint32_t first = 0; first < across; first += STRIP) {
        const uint32_t left = across - first;
        s.next = 0;
        for (uint32_t row = 0; row < down; row++)
            add_positions(&s, plane, scale, &w, what, row * TSR_SSIM_STEP, first * TSR_SSIM_STEP,
                          (int)(left < STRIP ? left : STRIP), sum);
    }
}
