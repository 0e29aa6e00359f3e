/* transform/block/intra.h: edges and predictions, sample by sample. INTRA.md 3. */
#include "tests/unit/support.h"

#include "transform/block/intra.h"

enum { SIDE = 32 };

static uint16_t samples[SIDE * SIDE];

/* P[k] of a direction. */
static int32_t edge_at(const int32_t *along, const int32_t *beside, int side, int angle, int k)
{
    if (k >= 0) return along[k < 2 * side ? k : 2 * side];
    int from = 0;
    while (from * -angle <= -32 * k - angle / 2) from++; /* the division, by counting */
    from--;
    return beside[from < 2 * side ? from : 2 * side];
}

static int32_t plainly(const struct tsr_intra_edges *e, int side, int mode, int32_t range, int i, int j)
{
    static const int angles[] = {-26, -13, 13, 26, 32, -26, -13, 13, 26, -32};
    const int32_t *u = e->above, *v = e->left;
    int64_t sum = side;
    if (mode == 0) {
        for (int k = 1; k <= side; k++) sum += u[k] + v[k];
        return (int32_t)floor_shift(sum, side == 4 ? 3 : 4);
    }
    if (mode == 1) return u[j + 1];
    if (mode == 2) return v[i + 1];
    if (mode == 3) return (int32_t)clamp_to(u[j + 1] + v[i + 1] - u[0], 0, range - 1);
    if (mode == 4) {
        sum += (side - 1 - j) * v[i + 1] + (j + 1) * u[side + 1] + (side - 1 - i) * u[j + 1] + (i + 1) * v[side + 1];
        return (int32_t)floor_shift(sum, side == 4 ? 3 : 4);
    }
    const bool down = mode > 9 && mode < 14;
    const int w = angles[mode - 5], f = ((down ? j : i) + 1) * w, d = (int)floor_shift(f, 5), g = f - 32 * d;
    const int k = (down ? i : j) + d + 1;
    const int32_t *along = down ? v : u, *beside = down ? u : v;
    sum = edge_at(along, beside, side, w, k) * (32 - g) + edge_at(along, beside, side, w, k + 1) * g + 16;
    return (int32_t)floor_shift(sum, 5);
}

TEST(predictions)
{
    struct rng r = {411};
    for (int n = 0; n < 3000; n++) {
        struct tsr_intra_edges e;
        int32_t block[64];
        const int side = n % 2 ? 4 : 8, mode = n / 2 % TSR_INTRA_MODES;
        const uint32_t range = n % 3 ? 65536 : 200;
        for (int i = 0; i <= TSR_INTRA_REACH; i++) {
            e.above[i] = (int32_t)rng_below(&r, range);
            e.left[i] = (int32_t)rng_below(&r, range);
        }
        e.left[0] = e.above[0];
        tsr_predict_intra(&e, side, mode, range, block);
        for (int i = 0; i < side * side; i++)
            expect(block[i] == plainly(&e, side, mode, (int32_t)range, i / side, i % side), "mode %d, side %d, %d",
                   mode, side, i);
    }
}

static int32_t sample(const struct tsr_intra_tile *t, int32_t y, int32_t x)
{
    return t->samples[y * t->columns + x];
}

TEST(edges)
{
    struct rng r = {412};
    for (int n = 0; n < 4000; n++) {
        const struct tsr_intra_tile t = {samples, 4 * rng_between(&r, 1, 8), 4 * rng_between(&r, 1, 8),
                                         2 + rng_below(&r, 65535)};
        const int side = n % 2 && t.columns >= 8 && t.rows >= 8 ? 8 : 4;
        const int32_t x = rng_between(&r, 0, t.columns / side - 1) * side,
                      y = rng_between(&r, 0, t.rows / side - 1) * side;
        const bool has_corner = rng_below(&r, 2);
        const int32_t border = has_corner ? t.columns : x + side, middle = (int32_t)(t.range / 2);
        struct tsr_intra_edges e;
        for (int i = 0; i < SIDE * SIDE; i++) samples[i] = (uint16_t)rng_below(&r, t.range);
        tsr_find_intra_edges(&t, x, y, side, has_corner, &e);
        const int32_t none = x > 0 ? sample(&t, y, x - 1) : middle;
        for (int i = 1; i <= 2 * side; i++) {
            const int32_t column = tsr_min(x + i - 1, border - 1), row = y + tsr_min(i, side) - 1;
            assert_int_equal(e.above[i], y > 0 ? sample(&t, y - 1, column) : none);
            assert_int_equal(e.left[i], x > 0 ? sample(&t, row, x - 1) : y > 0 ? sample(&t, y - 1, x) : middle);
        }
        assert_int_equal(e.above[0], x > 0 && y > 0 ? sample(&t, y - 1, x - 1) : x > 0 ? e.left[1] : e.above[1]);
        assert_int_equal(e.left[0], e.above[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(predictions), cmocka_unit_test(edges)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
