/* kernels/measure/ssim_cpu.h: the forms against the definition's steps over all layouts, and against SSIM as its paper
 * has it, in floating point. */
#include "tests/unit/images.h"

#include <math.h>

#include "kernels/measure/ssim_cpu.h"

enum { MOST = 300 }; /* columns: more than a strip has */

/* What positions of a component are compared by. */
struct bounds {
    int64_t low, high;
    uint32_t dynamic;
};

static bool is_kept(const struct tsr_measured *what, int64_t value)
{
    for (uint32_t k = 0; k < what->kept; k++)
        if (what->kept_range[k].low <= value && value <= what->kept_range[k].high) return true;
    return false;
}

static struct bounds all_bounds(const struct tsr_image *image, const struct tsr_measured *what, const uint8_t *a)
{
    const int64_t least = image->is_signed ? -((int64_t)1 << (image->bits_stored - 1)) : 0,
                  most = least + ((int64_t)1 << image->bits_stored) - 1;
    int64_t sum = 0, count = 0;
    if (what->range >= most - least) return (struct bounds){least, most, (uint32_t)(most - least)};
    for (uint32_t y = 0; y < image->rows; y += 4)
        for (uint32_t x = 0; x < image->columns; x += 4) {
            const int64_t value = get_value(image, a, (size_t)y * image->columns + x);
            if (!is_kept(what, value)) sum += value;
            if (!is_kept(what, value)) count++;
        }
    const int64_t mean = count ? sum / count : 0, low = mean - what->range, high = mean + what->range;
    return (struct bounds){low < least ? least : low, high > most ? most : high, what->range};
}

/* False: the image has no value inside. */
static bool window_bounds(const struct tsr_image *image, struct tsr_value_range window, struct bounds *bounds)
{
    const int64_t least = image->is_signed ? -((int64_t)1 << (image->bits_stored - 1)) : 0,
                  most = least + ((int64_t)1 << image->bits_stored) - 1, span = (int64_t)window.high - window.low;
    if (window.low > window.high || window.high < least || window.low > most) return false;
    *bounds = (struct bounds){window.low < least ? least : window.low, window.high > most ? most : window.high,
                              (uint32_t)(span < 1              ? 1
                                         : span > most - least ? most - least
                                                               : span)};
    return true;
}

/* The definition's steps, one position after the other. */
static uint64_t exact_loss(const struct tsr_image *image, const struct bounds *b, int component, const uint8_t *a,
                           const uint8_t *d, uint32_t x, uint32_t y)
{
    const struct tsr_ssim_scale scale = tsr_ssim_scale_of(b->low, b->high, b->dynamic);
    struct tsr_ssim_moments m = {0};
    for (int j = -5; j <= 5; j++)
        for (int i = -5; i <= 5; i++) {
            const size_t at =
                word_place(image, component, (size_t)((int64_t)y + j) * image->columns + (size_t)((int64_t)x + i));
            const uint64_t weight = (uint64_t)TSR_AT(tsr_ssim_weight)[abs(i)] * TSR_AT(tsr_ssim_weight)[abs(j)],
                           one = tsr_ssim_value(&scale, get_value(image, a, at)),
                           other = tsr_ssim_value(&scale, get_value(image, d, at));
            m.original += weight * one;
            m.decoded += weight * other;
            m.product += weight * one * other;
            m.difference += weight * (one - other) * (one - other);
        }
    return tsr_ssim_loss(&scale, &m);
}

/* The paper's formula, with a Gaussian as it is. */
static double true_loss(const struct tsr_image *image, const struct bounds *b, int component, const uint8_t *a,
                        const uint8_t *d, uint32_t x, uint32_t y)
{
    const double length = b->dynamic, c1 = 1e-4 * length * length, c2 = 9e-4 * length * length;
    double weights = 0, mx = 0, my = 0, xx = 0, yy = 0, xy = 0;
    for (int j = -5; j <= 5; j++)
        for (int i = -5; i <= 5; i++) {
            const size_t at =
                word_place(image, component, (size_t)((int64_t)y + j) * image->columns + (size_t)((int64_t)x + i));
            const double weight = exp(-(i * i + j * j) / 4.5);
            const double one = (double)(clamp_to(get_value(image, a, at), b->low, b->high) - b->low),
                         other = (double)(clamp_to(get_value(image, d, at), b->low, b->high) - b->low);
            weights += weight;
            mx += weight * one;
            my += weight * other;
            xx += weight * one * one;
            yy += weight * other * other;
            xy += weight * one * other;
        }
    mx /= weights;
    my /= weights;
    return 1 - (2 * mx * my + c1) * (2 * (xy / weights - mx * my) + c2) /
                   ((mx * mx + my * my + c1) * (xx / weights - mx * mx + yy / weights - my * my + c2));
}

static void add_plainly(const struct tsr_image *image, const struct tsr_measured *what, const struct bounds *b,
                        const uint8_t *a, const uint8_t *d, struct tsr_ssim_sum *sum, double *loss)
{
    for (int c = 0; c < image->components; c++)
        for (uint32_t y = 5; y + 5 < image->rows; y += 4)
            for (uint32_t x = 5; x + 5 < image->columns; x += 4) {
                const int64_t value = get_value(image, a, word_place(image, c, (size_t)y * image->columns + x));
                if (value < b->low || value > b->high || is_kept(what, value)) continue;
                sum->positions++;
                sum->loss += exact_loss(image, b, c, a, d, x, y);
                *loss += true_loss(image, b, c, a, d, x, y);
            }
}

/* A smooth image with some noise, and one that differs from it. */
static void fill_pair(struct rng *r, const struct tsr_image *image, int n, uint8_t *a, uint8_t *d)
{
    const size_t words = (size_t)image->columns * image->rows * image->components;
    const uint32_t most = image->bits_allocated == 8 ? 255 : 65535, noise = 1 + (uint32_t)rng_width(r, n % 3 ? 6 : 15),
                   error = 1 + (uint32_t)rng_width(r, n % 4 ? 4 : 14);
    fill_raster(r, image, n % CONTENTS, a);
    for (size_t i = 0; i < words; i++) {
        const uint32_t wave = (uint32_t)((sin((double)i / 9) + sin((double)(i / image->columns) / 7) + 2) / 4.2 * most);
        if (n % 3) put_word(image, a, i, wave + rng_below(r, noise));
        put_word(image, d, i, n % 5 ? get_word(image, a, i) + rng_below(r, error) - error / 2 : get_word(image, a, i));
    }
}

static struct tsr_measured random_what(struct rng *r, const struct tsr_image *image, const uint8_t *a)
{
    const size_t words = (size_t)image->columns * image->rows * image->components;
    struct tsr_measured what = {.weight = TSR_WHOLE_WEIGHT,
                                .range = (1 + (uint32_t)rng_width(r, 16)) | (rng_below(r, 2) ? 0x3fff : 0)};
    what.windows = rng_below(r, TSR_MEASURED_WINDOWS + 1);
    what.kept = rng_below(r, 2) ? rng_below(r, TSR_KEPT_RANGES + 1) : 0;
    for (int i = 0; i < TSR_MEASURED_WINDOWS; i++) {
        const int32_t here = (int32_t)get_value(image, a, rng_below(r, (uint32_t)words));
        what.window[i] = (struct tsr_value_range){here - (int32_t)rng_width(r, 16), here + (int32_t)rng_width(r, 16)};
        what.kept_range[i] = (struct tsr_value_range){here - (int32_t)rng_width(r, 4), here};
    }
    if (rng_below(r, 8) == 0) what.window[0] = (struct tsr_value_range){INT32_MIN, INT32_MAX};
    if (rng_below(r, 8) == 0) what.window[1] = (struct tsr_value_range){5, 4};
    return what;
}

static void expect_sum(const struct tsr_ssim_sum *is, const struct tsr_ssim_sum *wanted, double loss, int n)
{
    expect(is->positions == wanted->positions, "case %d: %llu, %llu", n, (unsigned long long)is->positions,
           (unsigned long long)wanted->positions);
    expect(is->loss == wanted->loss, "case %d: %llu, %llu", n, (unsigned long long)is->loss,
           (unsigned long long)wanted->loss);
    if (is->positions == 0) return;
    /* Weights are rounded, and values of wide windows: 1 % of a mean loss, 3 % of one position's. */
    const double count = (double)is->positions, mean = (double)is->loss / TSR_SSIM_ONE / count, truth = loss / count;
    expect(fabs(mean - truth) < 1e-4 + truth * (0.01 + 0.02 / sqrt(count)), "case %d: %f, %f", n, mean, truth);
}

TEST(forms_are_the_definition)
{
    struct rng r = {301};
    int judged = 0;
    for (int n = 0; n < 400; n++) {
        struct tsr_image image = random_image(&r, n % 20 ? 40 : MOST);
        if (n % 20 == 0 && image.rows > 40) image.rows = 11 + image.rows % 30;
        if (n % 4 == 0) image.components = 1;
        if (image.bits_allocated == 1 || image.bits_allocated == 32) image.bits_allocated = 16;
        if (image.bits_stored > 16) image.bits_stored = 16;
        if (image.high_bit > 15) image.high_bit = 15;
        if (image.swapped && (image.bits_allocated > 8 || tsr_frame_bits(&image) % 16 != 0)) image.swapped = false;
        uint8_t *a = must(malloc(raster_bytes(&image))), *d = must(malloc(raster_bytes(&image)));
        fill_pair(&r, &image, n, a, d);
        const struct tsr_measured what = random_what(&r, &image, a);
        struct tsr_difference wanted = {.ssim = {3, 5}};
        double loss = 0, losses[TSR_MEASURED_WINDOWS] = {0};
        struct bounds bounds = all_bounds(&image, &what, a);
        struct tsr_ssim_sum all = {0};
        add_plainly(&image, &what, &bounds, a, d, &all, &loss);
        for (uint32_t w = 0; w < what.windows; w++)
            if (window_bounds(&image, what.window[w], &bounds))
                add_plainly(&image, &what, &bounds, a, d, &wanted.window[w].ssim, &losses[w]);
        for (int isa = TSR_ISA_PLAIN; isa <= (int)tsr_best_isa(); isa++) {
            struct tsr_difference sum = wanted;
            memset(sum.window, 0, sizeof sum.window);
            tsr_add_ssim((enum tsr_isa)isa, &image, &what, a, d, &sum);
            sum.ssim.positions -= wanted.ssim.positions;
            sum.ssim.loss -= wanted.ssim.loss;
            expect_sum(&sum.ssim, &all, loss, n);
            for (uint32_t w = 0; w < what.windows; w++)
                expect_sum(&sum.window[w].ssim, &wanted.window[w].ssim, losses[w], n);
        }
        judged += all.positions > 0;
        free(a);
        free(d);
    }
    assert_true(judged > 150);
}

/* Frames that are the same lose nothing, frames without a neighbourhood have no positions, and without a range nothing
 * is measured. */
TEST(ends)
{
    static uint8_t a[64 * 64], b[64 * 64];
    struct rng r = {302};
    for (size_t i = 0; i < sizeof a; i++) b[i] = (uint8_t)(255 - (a[i] = (uint8_t)rng_next(&r)));
    for (uint32_t columns = 1; columns < 64; columns++) {
        const struct tsr_image image = plain_image(columns, 20, 1, 8);
        struct tsr_measured what = {.range = 255};
        struct tsr_difference sum = {0}, other = {0}, none = {0};
        tsr_add_ssim(tsr_isa(), &image, &what, a, a, &sum);
        assert_int_equal(sum.ssim.positions, columns < 11 ? 0 : 3 * ((columns - 11) / 4 + 1));
        assert_true(sum.ssim.loss == 0);
        tsr_add_ssim(tsr_isa(), &image, &what, a, b, &other);
        assert_true(columns < 11 || other.ssim.loss > other.ssim.positions * TSR_SSIM_ONE);
        what.range = 0;
        tsr_add_ssim(tsr_isa(), &image, &what, a, b, &none);
        assert_true(none.ssim.positions == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_are_the_definition),
        cmocka_unit_test(ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
