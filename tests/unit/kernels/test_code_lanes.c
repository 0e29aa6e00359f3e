/* kernels/lanes/code_lanes.h: the plain and the vector code of rows give the same, and effort 1 codes the same with
 * symbols and without. */
#include "tests/unit/support.h"

#include "kernels/lanes/code_lanes.h"
#include "kernels/tables/merge_cells_cpu.h"

enum { MOST = 300, ROOM = MOST + 2 * ROW_MARGIN, WORDS = 8 * 2 * MOST + 2 * ROW_STEP, TICKS = 8 * 1000 };

/* A lane's string and its room. */
struct string_room {
    uint8_t bytes[2 * WORDS + 16];
    uint32_t tick[WORDS];
    uint8_t taken[TICKS];
    struct lane_string lane;
};

static void begin(struct string_room *room)
{
    memset(room, 0, sizeof *room);
    room->lane.bytes = room->bytes;
    room->lane.tick = room->tick;
    room->lane.taken = room->taken;
}

/* Column by column is the definition. */
static void compare_strings(enum tsr_isa isa)
{
    static struct string_room defined, fast;
    static uint32_t code[ROOM], other_code[ROOM];
    const struct row_coder *coder = tsr_row_coder(isa);
    struct rng r = {71};
    for (int n = 0; n < 3000; n++) {
        const int32_t width = rng_between(&r, 1, MOST), rows = rng_between(&r, 1, 8);
        const int most = rng_between(&r, 1, ROW_CODE_LIMIT), refill_bits = rng_between(&r, most, TSR_REFILL_LIMIT);
        begin(&defined);
        begin(&fast);
        for (int32_t y = 0; y < rows; y++) {
            for (int32_t c = 0; c < ROOM; c++) { /* after the width anything may stand */
                const int length = rng_below(&r, 5) ? rng_between(&r, 0, most) : n % 3 ? 0 : most;
                const uint32_t bits = (uint32_t)(rng_next(&r) >> 32) & (uint32_t)((1ull << length) - 1u);
                code[c] = other_code[c] = bits << ROW_LENGTH_BITS | (uint32_t)length;
            }
            append_columns(code, 0, width, refill_bits, (uint32_t)(1000 * y), &defined.lane);
            coder->append(other_code, width, refill_bits, (uint32_t)(1000 * y), &fast.lane);
            assert_memory_equal(other_code + width + ROW_MARGIN, code + width + ROW_MARGIN,
                                (size_t)(ROOM - width - ROW_MARGIN) * sizeof code[0]);
        }
        assert_int_equal(fast.lane.bits, defined.lane.bits);
        assert_int_equal(fast.lane.words, defined.lane.words);
        assert_int_equal(fast.lane.front, defined.lane.front);
        assert_memory_equal(fast.bytes, defined.bytes, defined.lane.bits / 8);
        assert_memory_equal(fast.taken, defined.taken, sizeof fast.taken);
        assert_memory_equal(fast.tick, defined.tick, defined.lane.words * sizeof fast.tick[0]);
    }
}

TEST(strings_of_all_forms_are_as_defined)
{
    for (int isa = TSR_ISA_PLAIN; isa <= (int)tsr_best_isa(); isa++) compare_strings((enum tsr_isa)isa);
}

static void compare_look_ups(enum tsr_isa isa)
{
    static struct tsr_value_codes codes;
    static uint16_t folded[ROOM], intensity[ROOM];
    static int16_t activity[ROOM];
    static uint8_t cell[ROOM], other_cell[ROOM];
    static uint32_t code[ROOM], other_code[ROOM], special[ROOM / 32], other_special[ROOM / 32];
    const struct row_coder *plain = tsr_row_coder(TSR_ISA_PLAIN), *fast = tsr_row_coder(isa);
    struct rng r = {72};
    for (int n = 0; n < 1000; n++) {
        const int32_t width = rng_between(&r, 1, MOST);
        struct cell_cuts cuts = {.activities = rng_between(&r, 0, TSR_ACTIVITY_GROUPS - 1),
                                 .intensities = rng_between(&r, 0, TSR_SAMPLED_INTENSITY_GROUPS - 1)};
        cuts.pitch = (int16_t)(cuts.intensities + 1);
        for (int i = 0; i < cuts.activities; i++)
            cuts.activity[i] = (int16_t)((i ? cuts.activity[i - 1] : 1) + rng_between(&r, 1, 3000));
        for (int i = 0; i < cuts.intensities; i++)
            cuts.intensity[i] = (int16_t)((i ? cuts.intensity[i - 1] : 0) + rng_between(&r, 1, 500));
        for (int i = 0; i < ROOM; i++) {
            folded[i] = (uint16_t)rng_width(&r, n % 4 ? 8 : 16);
            activity[i] = (int16_t)rng_below(&r, n % 4 ? 32761 : 2);
            intensity[i] = (uint16_t)rng_below(&r, TSR_INTENSITY_BINS);
        }
        for (int t = 0; t < TSR_MODEL_TABLES; t++)
            for (int v = 0; v < TSR_CODED_VALUES; v++) codes.code[t][v] = (uint32_t)rng_next(&r);
        for (int i = 0; i < TSR_CONTEXT_PLACES; i++) codes.table_of[i] = (uint8_t)rng_below(&r, TSR_MODEL_TABLES);
        codes.contexts = TSR_FIRST_CELL_CONTEXT + (cuts.activities + 1) * cuts.pitch;
        const struct tsr_residual_rows rows = {
            .tile = {.width = width}, .folded = folded, .intensity = intensity, .activity = activity};
        plain->find_cells(&rows, &cuts, cell, special);
        fast->find_cells(&rows, &cuts, other_cell, other_special);
        assert_memory_equal(other_cell, cell, (size_t)width);
        for (int32_t c = 0; c < width; c++)
            expect((other_special[c / 32] >> c % 32 & 1u) == (special[c / 32] >> c % 32 & 1u), "column %d", c);
        plain->look_up(&codes, cell, folded, width, code);
        fast->look_up(&codes, other_cell, folded, width, other_code);
        assert_memory_equal(other_code, code, (size_t)width * sizeof code[0]);
        codes.contexts = rng_between(&r, 1, TSR_CONTEXT_PLACES);
        for (int32_t c = 0; c < ROOM; c++) cell[c] = (uint8_t)rng_below(&r, (uint32_t)codes.contexts);
        plain->look_up(&codes, cell, folded, width, code);
        fast->look_up(&codes, cell, folded, width, other_code);
        assert_memory_equal(other_code, code, (size_t)width * sizeof code[0]);
    }
}

TEST(look_ups_of_all_forms_are_equal)
{
    for (int isa = TSR_ISA_PLAIN; isa <= (int)tsr_best_isa(); isa++) compare_look_ups((enum tsr_isa)isa);
}

/* Effort 1 codes without symbols. The payload from the symbols of pass 1, with the same model, is the same. */
TEST(codes_without_symbols_are_those_of_symbols)
{
    enum { SIDE = 150, COUNT = SIDE * SIDE };
    static uint16_t samples[COUNT], value[COUNT], intensity[COUNT];
    static uint8_t symbol[COUNT], context[COUNT], once[4 * COUNT], by_symbols[4 * COUNT];
    static struct tsr_bin_counts bins;
    static struct tsr_symbol_counts counts;
    static struct tsr_context_map map;
    static struct tsr_merge_work merge;
    static struct tsr_huffman_work work;
    static struct tsr_value_codes value_codes;
    static tsr_code_table codes[TSR_MODEL_TABLES];
    const struct tsr_symbol_planes planes = {value, symbol, context, intensity, false};
    struct rng r = {73};
    int coded = 0;
    for (int n = 0; n < 60; n++) {
        const struct tsr_tile tile = {
            .width = rng_between(&r, 1, SIDE), .height = rng_between(&r, 1, SIDE), .stride = SIDE, .first = 0};
        const uint32_t range = (uint32_t)rng_between(&r, 2, 65536), noise = 1 + (range >> rng_below(&r, 12));
        struct tsr_residual_model model = {.lanes = (uint8_t)tsr_lanes_for_tile(tile.width, tile.height)};
        for (int i = 0; i < COUNT; i++)
            samples[i] = (uint16_t)(i / 40 % 3 ? (uint32_t)(i % SIDE + i / SIDE) % range
                                               : (range / 2 + rng_below(&r, noise)) % range);
        const size_t bytes =
            tsr_code_scratch_bytes(tile.width, tile.height, model.lanes) + tsr_predict_scratch_bytes(tile.width);
        void *scratch = must(malloc(bytes));
        memset(&bins, 0, sizeof bins);
        memset(&counts, 0, sizeof counts);
        tsr_predict_tile(samples, tile, range, NULL, 0, planes, &bins, scratch);
        bins.activity[1]++;
        bins.intensity[0]++;
        model.activity_cuts =
            (uint8_t)tsr_cut_quantiles(bins.activity, TSR_ACTIVITY_BINS, TSR_ACTIVITY_GROUPS, model.activity_cut);
        model.intensity_cuts = (uint8_t)tsr_cut_quantiles(bins.intensity, TSR_INTENSITY_BINS,
                                                          TSR_SAMPLED_INTENSITY_GROUPS, model.intensity_cut);
        tsr_map_contexts(&map, &model);
        tsr_count_tile(samples, tile, range, NULL, 0, &map, planes, &counts, scratch);
        counts.cell[0][0]++;
        model.tables = (uint8_t)tsr_merge_contexts(&counts.cell[0][0], tsr_model_cells(&model), TSR_RESIDUAL_SYMBOLS,
                                                   model.table_of, &merge);
        tsr_count_unseen(&model, range, tile.width, &counts);
        for (int t = 0; t < TSR_FIRST_RESIDUAL_TABLE; t++)
            tsr_huffman_lengths(counts.special[t], TSR_RUN_ALPHABET, model.lengths[t], &work);
        for (int t = 0; t < model.tables; t++)
            tsr_huffman_lengths(counts.cell[t], TSR_RESIDUAL_SYMBOLS, model.lengths[TSR_FIRST_RESIDUAL_TABLE + t],
                                &work);
        model.refill_bits = (uint8_t)tsr_model_refill_bits(&model);
        tsr_build_codes(codes, &model);
        tsr_build_value_codes(&value_codes, (const tsr_code_table *)codes, &model);
        const size_t size = tsr_code_tile(planes, tile, &model, &value_codes, (const tsr_code_table *)codes, by_symbols,
                                          sizeof by_symbols, scratch);
        assert_int_equal(tsr_code_tile_once(samples, tile, range, &model, &value_codes, (const tsr_code_table *)codes,
                                            once, sizeof once, scratch),
                         size);
        assert_memory_equal(once, by_symbols, size);
        coded += size > 0;
        free(scratch);
    }
    assert_in_range(coded, 50, 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(strings_of_all_forms_are_as_defined),
                                       cmocka_unit_test(look_ups_of_all_forms_are_equal),
                                       cmocka_unit_test(codes_without_symbols_are_those_of_symbols)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
