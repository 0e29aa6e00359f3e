/* The reversible 5/3 transform. T.800 annex F, J2K.md 5. */
#include "j2k.h"

#include <string.h>

#include "transform/hd.h"

/* Sums are modulo 2^32, so that damaged coefficients do no harm. */
static inline int32_t sum(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a + (uint32_t)b);
}

static inline int32_t difference(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a - (uint32_t)b);
}

/* One lifting step: all samples from first on, every second one, change by their neighbours. Of x[i] there are lanes
 * samples. */
TSR_HD_INLINE void lift(int32_t *x, size_t count, size_t first, bool is_low, bool adds, const size_t lanes)
{
    for (size_t i = first; i < count; i += 2) {
        const int32_t *const left = x + (i > 0 ? i - 1 : 1) * lanes;
        const int32_t *const right = x + (i + 1 < count ? i + 1 : i - 1) * lanes;
        int32_t *const own = x + i * lanes;
        for (size_t k = 0; k < lanes; k++) {
            const int32_t step = is_low ? sum(sum(left[k], right[k]), 2) >> 2 : sum(left[k], right[k]) >> 1;
            own[k] = adds ? sum(own[k], step) : difference(own[k], step);
        }
    }
}

/* is_odd: the first sample is a high one. */
TSR_HD_INLINE void lift_back(int32_t *x, size_t count, size_t is_odd, const size_t lanes)
{
    if (count == 1) {
        for (size_t k = 0; is_odd && k < lanes; k++) x[k] >>= 1;
        return;
    }
    lift(x, count, is_odd, true, false, lanes);
    lift(x, count, 1 - is_odd, false, true, lanes);
}

TSR_HD_INLINE void lift_forth(int32_t *x, size_t count, size_t is_odd, const size_t lanes)
{
    if (count == 1) {
        for (size_t k = 0; is_odd && k < lanes; k++) x[k] = sum(x[k], x[k]);
        return;
    }
    lift(x, count, 1 - is_odd, false, false, lanes);
    lift(x, count, is_odd, true, true, lanes);
}

/* Where sample i of a line stands among the coefficients: low ones first. */
static inline size_t place_of(size_t i, size_t count, size_t is_odd)
{
    const size_t lows = (count + 1 - is_odd) / 2;
    return (i + is_odd) % 2 == 0 ? (i - is_odd) / 2 : lows + (i - (1 - is_odd)) / 2;
}

static void rows_of(int32_t *plane, size_t stride, size_t width, size_t height, size_t is_odd, bool back, int32_t *line)
{
    for (size_t y = 0; y < height; y++) {
        int32_t *const row = plane + y * stride;
        int32_t *const low = row, *const high = row + (width + 1 - is_odd) / 2;
        const size_t lows = (width + 1 - is_odd) / 2, highs = width - lows;
        if (back) {
            for (size_t i = 0; i < lows; i++) line[2 * i + is_odd] = low[i];
            for (size_t i = 0; i < highs; i++) line[2 * i + 1 - is_odd] = high[i];
            lift_back(line, width, is_odd, 1);
            memcpy(row, line, width * sizeof *row);
        } else {
            memcpy(line, row, width * sizeof *row);
            lift_forth(line, width, is_odd, 1);
            for (size_t i = 0; i < lows; i++) low[i] = line[2 * i + is_odd];
            for (size_t i = 0; i < highs; i++) high[i] = line[2 * i + 1 - is_odd];
        }
    }
}

static void columns_of(int32_t *plane, size_t stride, size_t width, size_t height, size_t is_odd, bool back,
                       int32_t *column)
{
    for (size_t x = 0; x < width; x += TSR_J2K_LANES) {
        const size_t lanes = width - x < TSR_J2K_LANES ? width - x : TSR_J2K_LANES;
        for (size_t y = 0; y < height; y++) {
            const size_t from = back ? place_of(y, height, is_odd) : y;
            memcpy(column + y * TSR_J2K_LANES, plane + from * stride + x, lanes * sizeof *plane);
        }
        if (back)
            lift_back(column, height, is_odd, TSR_J2K_LANES);
        else
            lift_forth(column, height, is_odd, TSR_J2K_LANES);
        for (size_t y = 0; y < height; y++) {
            const size_t to = back ? y : place_of(y, height, is_odd);
            memcpy(plane + to * stride + x, column + y * TSR_J2K_LANES, lanes * sizeof *plane);
        }
    }
}

void tsr_j2k_to_wavelet(int32_t *plane, size_t stride, const struct tsr_j2k_rectangle *area, unsigned levels,
                        int32_t *column)
{
    for (unsigned reduce = 0; reduce < levels; reduce++) {
        const struct tsr_j2k_rectangle r = tsr_j2k_resolution(area, reduce);
        if (r.x1 <= r.x0 || r.y1 <= r.y0) return;
        columns_of(plane, stride, r.x1 - r.x0, r.y1 - r.y0, r.y0 & 1, false, column);
        rows_of(plane, stride, r.x1 - r.x0, r.y1 - r.y0, r.x0 & 1, false, column);
    }
}

void tsr_j2k_from_wavelet(int32_t *plane, size_t stride, const struct tsr_j2k_rectangle *area, unsigned levels,
                          int32_t *column)
{
    for (unsigned reduce = levels; reduce-- > 0;) {
        const struct tsr_j2k_rectangle r = tsr_j2k_resolution(area, reduce);
        if (r.x1 <= r.x0 || r.y1 <= r.y0) continue;
        rows_of(plane, stride, r.x1 - r.x0, r.y1 - r.y0, r.x0 & 1, true, column);
        columns_of(plane, stride, r.x1 - r.x0, r.y1 - r.y0, r.y0 & 1, true, column);
    }
}
