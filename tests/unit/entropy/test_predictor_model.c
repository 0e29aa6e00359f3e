/* entropy/predictor_model.h: weights, labels' codes, and the model's description. FORMAT.md 7.9. */
#include "tests/unit/support.h"

#include "entropy/predictor_model.h"

static void random_weights(struct rng *r, struct tsr_predictor_shape shape, int16_t *weight)
{
    int16_t of_feature[TSR_FEATURES_LIMIT];
    do {
        const int bits = (int)rng_below(r, 14);
        for (int f = 0; f < tsr_features(shape); f++) {
            const int32_t magnitude = (int32_t)(rng_below(r, 3) ? rng_width(r, bits) : rng_below(r, 1u << bits));
            of_feature[f] = (int16_t)(rng_below(r, 2) ? magnitude : -magnitude);
        }
    } while (!tsr_complete_weights(shape, of_feature, weight));
}

static void random_model(struct rng *r, struct tsr_predictor_model *model)
{
    static struct tsr_huffman_work work;
    memset(model, 0, sizeof *model);
    model->set = (uint8_t)rng_below(r, 4);
    model->shape.neighbours = tsr_neighbours_host[model->set];
    if (model->set == 0) return;
    model->shape.references = (uint8_t)rng_below(r, 3);
    model->anchored = rng_below(r, 2) != 0;
    model->classes = (uint8_t)rng_between(r, 1, TSR_CLASS_LIMIT);
    for (int c = 0; c < model->classes; c++) random_weights(r, model->shape, model->weight[c]);
    int known = 1;
    for (int c = 1; c < model->classes + 2 && c < TSR_LABEL_CELLS; c++) /* gcc for s390x does not see the latter */
        model->label_table_of[c] =
            (uint8_t)(known < TSR_LABEL_TABLES_LIMIT && rng_below(r, 2) ? known++ : (int)rng_below(r, (uint32_t)known));
    model->label_tables = (uint8_t)known;
    for (int t = 0; t < known; t++) {
        uint32_t counts[TSR_LABELS_LIMIT];
        for (int s = 0; s <= model->classes; s++) counts[s] = rng_below(r, 3) ? rng_width(r, 12) : 0;
        counts[rng_below(r, model->classes + 1u)] = 1;
        tsr_huffman_lengths(counts, model->classes + 1, model->label_lengths[t], &work);
    }
}

static uint8_t bytes[1 << 16];

static size_t put(const struct tsr_predictor_model *model)
{
    struct tsr_bit_writer w = tsr_bit_writer(bytes, sizeof bytes);
    tsr_put_predictor_model(&w, model);
    const size_t size = tsr_flush_bits(&w);
    assert_false(w.overflow);
    return size;
}

TEST(models)
{
    static struct tsr_predictor_model model, back;
    struct rng r = {96};
    for (int n = 0; n < 1000; n++) {
        random_model(&r, &model);
        const size_t size = put(&model);
        memset(&back, 0, sizeof back);
        struct tsr_bit_reader reader = tsr_bit_reader(bytes, size);
        assert_true(tsr_get_predictor_model(&reader, &back, model.shape.references));
        assert_true(tsr_bits_ended(&reader));
        assert_memory_equal(&back, &model, sizeof model);
        /* a frame model has room for five bytes per weight */
        assert_true(size <= 4u + 5u * (size_t)model.classes * (size_t)tsr_taps(model.shape) +
                                (size_t)model.label_tables * (TSR_LABELS_LIMIT + 1) + TSR_LABEL_CELLS);
        if (model.shape.references > 0) { /* more references than planes */
            reader = tsr_bit_reader(bytes, size);
            assert_false(tsr_get_predictor_model(&reader, &back, model.shape.references - 1));
        }
        for (size_t cut = 0; cut < size && model.set; cut += 1 + size / 8) {
            reader = tsr_bit_reader(bytes, cut);
            assert_false(tsr_get_predictor_model(&reader, &back, 2));
        }
    }
}

/* FORMAT.md 7.9: u(4) k, then ue and u(k) for each weight but the first of a group. */
TEST(weights_are_those_of_the_format)
{
    struct rng r = {97};
    for (int n = 0; n < 2000; n++) {
        const struct tsr_predictor_shape shape = {(uint8_t)(n % 3 == 0   ? 10
                                                            : n % 3 == 1 ? 18
                                                                         : 30),
                                                  (uint8_t)rng_below(&r, 3)};
        int16_t weight[TSR_TAPS_LIMIT], back[TSR_TAPS_LIMIT];
        random_weights(&r, shape, weight);
        struct tsr_bit_writer w = tsr_bit_writer(bytes, sizeof bytes);
        tsr_put_predictor_weights(&w, shape, weight);
        const size_t size = tsr_flush_bits(&w);
        struct tsr_bit_reader reader = tsr_bit_reader(bytes, size), again = reader;
        const uint32_t k = tsr_get_bits(&reader, 4);
        uint64_t spent = 4, least[13] = {0};
        for (int tap = 1; tap < shape.neighbours + 5 * shape.references; tap++) {
            if (tap >= shape.neighbours && (tap - shape.neighbours) % 5 == 0) continue;
            const uint32_t folded = weight[tap] >= 0 ? 2u * (uint32_t)weight[tap] : 2u * (uint32_t)-weight[tap] - 1u;
            const uint32_t high = tsr_get_ue(&reader);
            assert_int_equal((uint64_t)high << k | tsr_get_bits(&reader, (int)k), folded);
            for (uint32_t other = 0; other < 13; other++)
                least[other] += 2 * (uint64_t)plain_width((folded >> other) + 1) - 1 + other;
        }
        spent = tsr_bits_read(&reader) - spent;
        for (uint32_t other = 0; other < 13; other++) assert_true(spent <= least[other]);
        assert_true(tsr_bits_ended(&reader));
        assert_true(tsr_get_predictor_weights(&again, shape, back));
        assert_memory_equal(back, weight, (size_t)tsr_taps(shape) * sizeof back[0]);
    }
}

/* Folded weights up to 16383. Their sums stay within bounds. */
TEST(weights_out_of_range)
{
    static const struct tsr_predictor_shape shape = {10, 0};
    static const struct {
        int k;
        uint32_t high, low;
        bool good;
    } cases[] = {{0, 16383, 0, true},  {0, 16384, 0, false},  {13, 1, 8191, true},
                 {13, 2, 0, false},    {14, 0, 16383, true},  {14, 1, 0, false},
                 {15, 0, 16383, true}, {15, 0, 16384, false}, {15, 131072, 0, false}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int16_t weight[TSR_TAPS_LIMIT];
        struct tsr_bit_writer w = tsr_bit_writer(bytes, sizeof bytes);
        tsr_put_bits(&w, (uint32_t)cases[i].k, 4);
        for (int f = 0; f < 9; f++) {
            tsr_put_ue(&w, f == 4 ? cases[i].high : 0);
            tsr_put_bits(&w, f == 4 ? cases[i].low : 0, cases[i].k);
        }
        struct tsr_bit_reader reader = tsr_bit_reader(bytes, tsr_flush_bits(&w));
        expect(tsr_get_predictor_weights(&reader, shape, weight) == cases[i].good, "case %zu", i);
        if (cases[i].good) assert_int_equal(weight[5], -8192);
    }
    /* four of -8192: the first weight would be 33792 */
    for (int count = 0; count < 9; count++) {
        int16_t weight[TSR_TAPS_LIMIT];
        struct tsr_bit_writer w = tsr_bit_writer(bytes, sizeof bytes);
        tsr_put_bits(&w, 0, 4);
        for (int f = 0; f < 9; f++) tsr_put_ue(&w, f < count ? 16383 : 0);
        struct tsr_bit_reader reader = tsr_bit_reader(bytes, tsr_flush_bits(&w));
        expect(tsr_get_predictor_weights(&reader, shape, weight) == (count < 4), "%d weights", count);
    }
}

/* A damaged description is refused, or describes a model that is safe to decode with. */
TEST(damaged_models)
{
    static struct tsr_predictor_model model, back;
    struct rng r = {98};
    int taken = 0, refused = 0;
    for (int n = 0; n < 20000; n++) {
        random_model(&r, &model);
        const size_t size = put(&model);
        uint8_t *exact = must(malloc(size));
        memcpy(exact, bytes, size);
        const uint32_t near = n % 2 && size > 8 ? 8 : (uint32_t)size;
        for (uint32_t flips = 1 + rng_below(&r, 3); flips > 0; flips--)
            exact[rng_below(&r, near)] ^= (uint8_t)(1u << rng_below(&r, 8));
        struct tsr_bit_reader reader = tsr_bit_reader(exact, size);
        const int earlier = (int)rng_below(&r, 4);
        const bool good = tsr_get_predictor_model(&reader, &back, earlier);
        free(exact);
        refused += !good;
        if (!good || back.set == 0) continue;
        taken++;
        assert_int_equal(back.shape.neighbours, tsr_neighbours_host[back.set]);
        assert_true(back.shape.references <= 2 && back.shape.references <= earlier);
        assert_in_range(back.classes, 1, TSR_CLASS_LIMIT);
        assert_in_range(back.label_tables, 1, TSR_LABEL_TABLES_LIMIT);
        for (int c = 0; c < back.classes + 2; c++) assert_true(back.label_table_of[c] < back.label_tables);
        for (int t = 0; t < back.label_tables; t++)
            assert_true(tsr_huffman_check(back.label_lengths[t], back.classes + 1) > 0);
        for (int c = 0; c < back.classes; c++) {
            int32_t magnitudes = 0;
            for (int k = 0; k < tsr_taps(back.shape); k++) magnitudes += abs(back.weight[c][k]);
            assert_true(magnitudes <= 65535);
        }
    }
    assert_true(taken > 1000 && refused > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(models), cmocka_unit_test(weights_are_those_of_the_format),
                                       cmocka_unit_test(weights_out_of_range), cmocka_unit_test(damaged_models)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
