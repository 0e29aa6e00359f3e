/* kernels/residuals/residual_forms_cpu.h and symbol_rows_cpu.h: the plain and the vector code of rows give the same. */
#include "tests/unit/support.h"

#include "kernels/residuals/residual_forms_cpu.h"
#include "kernels/residuals/symbol_rows_cpu.h"

enum { MOST = 300, MARGIN = 64, ROOM = MOST + 2 * MARGIN, NO_VALUE = 0xa5 };

/* Noise, numbers of all sizes, or those at the ends and in the middle of the range. */
static uint32_t some_number(struct rng *r, int content, uint32_t range)
{
    const uint32_t edges[4] = {0, range - 1, range / 2, (range - 1) / 2};
    return content == 0 ? rng_below(r, range) : content == 1 ? edges[rng_below(r, 4)] : rng_width(r, 16) % range;
}

static void compare_residuals(const struct tsr_residual_forms *fast)
{
    static const int32_t ranges[] = {2, 3, 16, 255, 4096, 4097, 32767, 32768, 32769, 40000, 40001, 65535, 65536};
    static int16_t up[ROOM], row[2][ROOM], prediction[2][ROOM], magnitude[2][ROOM], rows[3][ROOM], activity[2][ROOM];
    static int16_t elsewhere[ROOM], fraction[ROOM], anchored_magnitude[2][ROOM];
    static uint16_t folded[2][ROOM], intensity[2][ROOM], anchored[2][ROOM], bin[2][ROOM];
    const struct tsr_residual_forms *forms[2] = {tsr_residual_forms(TSR_ISA_PLAIN), fast};
    struct rng r = {91};
    for (int n = 0; n < 3000; n++) {
        const int32_t width = rng_between(&r, 1, MOST), range = ranges[rng_below(&r, COUNT_OF(ranges))];
        uint16_t *samples = must(malloc((size_t)width * sizeof *samples)); /* nothing after it may be read */
        for (int i = 0; i < ROOM; i++) up[i] = (int16_t)(some_number(&r, n % 3, (uint32_t)range) ^ 0x8000u);
        for (int i = 0; i < width; i++) samples[i] = (uint16_t)some_number(&r, n % 3, (uint32_t)range);
        for (int k = 0; k < 3; k++)
            for (int i = 0; i < ROOM; i++) rows[k][i] = (int16_t)some_number(&r, n % 3, TSR_MAGNITUDE_LIMIT + 1);
        for (int i = 0; i < ROOM; i++) /* predictions that are no neighbour's value, near or far */
            elsewhere[i] = (int16_t)((n % 2 ? samples[i % width] : some_number(&r, n % 3, (uint32_t)range)) ^ 0x8000u);
        for (int i = 0; i < ROOM; i++) fraction[i] = (int16_t)(rng_below(&r, 2) ? rng_between(&r, -32, 31) : 0);
        for (int f = 0; f < 2; f++) {
            row[f][MARGIN - 1] = up[MARGIN];
            forms[f]->predict(samples, up + MARGIN, width, row[f] + MARGIN, prediction[f] + MARGIN);
            if (n % 2) /* as a linear predictor may leave them */
                for (int i = 0; i < width; i++) prediction[f][MARGIN + i] = up[MARGIN + i];
            forms[f]->describe(row[f] + MARGIN, prediction[f] + MARGIN, width, range, magnitude[f] + MARGIN,
                               folded[f] + MARGIN, intensity[f] + MARGIN);
            for (int i = 0; i < width && n % 3 == 0; i++) prediction[f][MARGIN + i] = elsewhere[i];
            forms[f]->anchor(row[f] + MARGIN, up + MARGIN, prediction[f] + MARGIN, fraction + MARGIN, width, range,
                             anchored_magnitude[f] + MARGIN, anchored[f] + MARGIN, bin[f] + MARGIN);
            forms[f]->activity(rows[0] + MARGIN, rows[1] + MARGIN, rows[2] + MARGIN, width, n % 5 == 0,
                               activity[f] + MARGIN);
        }
        const size_t bytes = (size_t)width * sizeof row[0][0];
        assert_memory_equal(row[1] + MARGIN, row[0] + MARGIN, bytes);
        assert_memory_equal(prediction[1] + MARGIN, prediction[0] + MARGIN, bytes);
        assert_memory_equal(magnitude[1] + MARGIN, magnitude[0] + MARGIN, bytes);
        assert_memory_equal(folded[1] + MARGIN, folded[0] + MARGIN, bytes);
        assert_memory_equal(intensity[1] + MARGIN, intensity[0] + MARGIN, bytes);
        assert_memory_equal(activity[1] + MARGIN, activity[0] + MARGIN, bytes);
        assert_memory_equal(anchored_magnitude[1] + MARGIN, anchored_magnitude[0] + MARGIN, bytes);
        assert_memory_equal(anchored[1] + MARGIN, anchored[0] + MARGIN, bytes);
        assert_memory_equal(bin[1] + MARGIN, bin[0] + MARGIN, bytes);
        free(samples);
    }
}

TEST(residuals_of_all_forms_are_equal)
{
    for (int isa = TSR_ISA_PLAIN; isa <= (int)tsr_best_isa(); isa++)
        compare_residuals(tsr_residual_forms((enum tsr_isa)isa));
}

static void compare_symbols(const struct tsr_symbol_rows *fast, bool all)
{
    static uint16_t folded[ROOM];
    static int16_t activity[ROOM];
    static uint8_t symbol[2][ROOM], bin[2][ROOM];
    static uint32_t quiet[2][ROOM / 32];
    static uint8_t small[TSR_SMALL_VALUES];
    const struct tsr_symbol_rows *forms[2] = {tsr_symbol_rows(TSR_ISA_PLAIN), fast};
    struct rng r = {92};
    for (uint32_t v = 0; v < TSR_SMALL_VALUES; v++) small[v] = (uint8_t)tsr_token_symbol(v);
    for (int n = 0; n < (all ? 65536 / MOST + 1 : 2000); n++) {
        const int32_t width = all ? MOST : rng_between(&r, 1, MOST);
        for (int i = 0; i < ROOM; i++) {
            folded[i] = (uint16_t)(all ? (uint32_t)(n * MOST + i) : some_number(&r, n % 3, 65536));
            activity[i] = (int16_t)(folded[i] % (8 * TSR_MAGNITUDE_LIMIT + 1));
            if (!all && rng_below(&r, 3) == 0) activity[i] = 0;
        }
        memset(symbol, NO_VALUE, sizeof symbol);
        memset(bin, NO_VALUE, sizeof bin);
        for (int f = 0; f < 2; f++) forms[f]->find_symbols(small, folded, activity, width, symbol[f], bin[f], quiet[f]);
        assert_memory_equal(symbol[1], symbol[0], sizeof symbol[0]); /* after the row nothing is written */
        assert_memory_equal(bin[1], bin[0], sizeof bin[0]);
        for (int32_t c = 0; c < width; c++)
            expect((quiet[1][c / 32] >> c % 32 & 1u) == (quiet[0][c / 32] >> c % 32 & 1u), "column %d", c);
    }
}

TEST(symbols_of_all_forms_are_equal)
{
    for (int isa = TSR_ISA_PLAIN; isa <= (int)tsr_best_isa(); isa++) {
        compare_symbols(tsr_symbol_rows((enum tsr_isa)isa), true);
        compare_symbols(tsr_symbol_rows((enum tsr_isa)isa), false);
    }
}

static void random_cuts(struct rng *r, uint16_t *cuts, uint8_t *count, int most, int bins)
{
    *count = 0;
    for (int bin = 1 + (int)rng_below(r, 3); bin < bins && *count < most; bin += rng_between(r, 1, 2 * bins / most))
        cuts[(*count)++] = (uint16_t)bin;
    *count = (uint8_t)rng_between(r, 0, *count);
}

static void compare_contexts(const struct tsr_symbol_rows *fast)
{
    static struct tsr_context_map map;
    static struct tsr_residual_model model;
    static uint16_t intensity[TSR_COUNT_COLUMNS], place[2][TSR_COUNT_COLUMNS];
    static uint8_t symbol[TSR_COUNT_COLUMNS], context[2][TSR_COUNT_COLUMNS + 64];
    const struct tsr_symbol_rows *forms[2] = {tsr_symbol_rows(TSR_ISA_PLAIN), fast};
    struct rng r = {93};
    for (int n = 0; n < 2000; n++) {
        const int32_t columns = rng_between(&r, 1, TSR_COUNT_COLUMNS);
        random_cuts(&r, model.activity_cut, &model.activity_cuts, TSR_ACTIVITY_GROUPS - 1, TSR_ACTIVITY_BINS);
        random_cuts(&r, model.intensity_cut, &model.intensity_cuts, TSR_INTENSITY_GROUPS - 1, TSR_INTENSITY_BINS);
        tsr_map_contexts(&map, &model);
        memset(context, NO_VALUE, sizeof context);
        for (int32_t c = 0; c < columns; c++) {
            context[0][c] = context[1][c] = (uint8_t)rng_below(&r, TSR_CONTEXT_BINS);
            symbol[c] = (uint8_t)rng_below(&r, context[0][c] == 0 ? TSR_RUN_ALPHABET : TSR_RESIDUAL_SYMBOLS);
            intensity[c] = (uint16_t)rng_below(&r, TSR_INTENSITY_BINS);
        }
        for (int f = 0; f < 2; f++) forms[f]->find_contexts(&map, symbol, intensity, columns, context[f], place[f]);
        assert_memory_equal(context[1], context[0], sizeof context[0]);
        assert_memory_equal(place[1], place[0], (size_t)columns * sizeof place[0][0]);
    }
}

TEST(contexts_of_all_forms_are_equal)
{
    for (int isa = TSR_ISA_PLAIN; isa <= (int)tsr_best_isa(); isa++)
        compare_contexts(tsr_symbol_rows((enum tsr_isa)isa));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(residuals_of_all_forms_are_equal),
                                       cmocka_unit_test(symbols_of_all_forms_are_equal),
                                       cmocka_unit_test(contexts_of_all_forms_are_equal)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
