/* kernels/residuals/residuals_cpu.h: path P of a tile against a literal reading of FORMAT.md 7, and its causality. */
#include "tests/unit/support.h"

#include "kernels/residuals/residuals_cpu.h"
#include "kernels/tables/merge_cells_cpu.h"
#include "transform/predict/median_edge.h"
#include "transform/predict/residual.h"

enum { MOST = 80, STRIDE = MOST + 5, SAMPLES = STRIDE * (MOST + 1), NO_VALUE = 0xa5 };

static uint16_t values[SAMPLES], intensities[SAMPLES];
static uint8_t symbols[SAMPLES], contexts[SAMPLES];
static const struct tsr_symbol_planes out = {values, symbols, contexts, intensities, false};

static struct tsr_tile random_tile(struct rng *r)
{
    struct tsr_tile tile;
    tile.width = rng_below(r, 4) ? rng_between(r, 1, MOST) : rng_between(r, 1, 4);
    tile.height = rng_below(r, 4) ? rng_between(r, 1, MOST) : rng_between(r, 1, 4);
    tile.stride = (size_t)rng_between(r, tile.width, STRIDE);
    tile.first = rng_below(r, 4);
    return tile;
}

static size_t place(struct tsr_tile tile, int32_t row, int32_t column)
{
    return tile.first + (size_t)row * tile.stride + (size_t)column;
}

/* The kinds of samples: noise; smooth with noise; long runs; extremes; all equal. */
enum { CONTENTS = 5 };

static void fill(struct rng *r, uint16_t *samples, struct tsr_tile tile, uint32_t range, int content)
{
    const uint32_t base = rng_below(r, range);
    for (int32_t y = 0; y < tile.height; y++)
        for (int32_t x = 0; x < tile.width; x++) {
            const uint32_t ramp = base + (uint32_t)(x + 2 * y) * (1 + range / 300) + rng_below(r, 1 + range / 100);
            samples[place(tile, y, x)] = (uint16_t)(content == 0   ? rng_below(r, range)
                                                    : content == 1 ? ramp % range
                                                    : content == 2 ? (rng_below(r, 30) ? base : rng_below(r, range))
                                                    : content == 3 ? rng_below(r, 2) * (range - 1)
                                                                   : base);
        }
}

/* ---- Predictors ----------------------------------------------------------------------------------------------- */

enum { ACROSS = (MOST + 15) / 16, PADDED = (MOST + 64) * MOST };

/* A tile's predictors: random classes and labels, and earlier planes as references. */
struct chosen {
    struct tsr_predictor_model model;
    uint8_t label[ACROSS * ACROSS];
    uint16_t earlier[TSR_REFERENCES_LIMIT][SAMPLES];
    int16_t own_room[PADDED], room[TSR_REFERENCES_LIMIT][PADDED];
    struct tsr_tile_predictors predictors;
};

static int32_t blocks_of(struct tsr_tile tile)
{
    return (tile.width + 15) / 16 * ((tile.height + 15) / 16);
}

/* Random weights, small or now and then large, and random labels. */
static void random_classes(struct rng *r, struct chosen *c, struct tsr_tile tile)
{
    struct tsr_predictor_model *model = &c->model;
    memset(model, 0, sizeof *model);
    model->set = (uint8_t)rng_between(r, 1, 3);
    model->shape.neighbours = tsr_neighbours_host[model->set];
    model->shape.references = (uint8_t)rng_below(r, 3);
    model->classes = (uint8_t)rng_between(r, 1, rng_below(r, 3) ? 3 : TSR_CLASS_LIMIT);
    model->anchored = rng_below(r, 2) != 0;
    for (int k = 0; k < model->classes; k++) {
        int16_t of_feature[TSR_FEATURES_LIMIT];
        const int most = rng_below(r, 4) ? 150 : 1500;
        for (int f = 0; f < tsr_features(model->shape); f++) of_feature[f] = (int16_t)rng_between(r, -most, most);
        if (tsr_complete_weights(model->shape, of_feature, model->weight[k])) continue;
        k--;
    }
    for (int32_t i = 0; i < blocks_of(tile); i++) c->label[i] = (uint8_t)rng_below(r, model->classes + 1u);
}

/* Trains codes for the labels as the encoder does. */
static void train_labels(struct chosen *c, struct tsr_tile tile)
{
    static uint32_t counts[TSR_LABEL_CELLS * TSR_LABELS_LIMIT];
    static struct tsr_merge_work merge;
    static struct tsr_huffman_work work;
    struct tsr_predictor_model *model = &c->model;
    const int label_symbols = model->classes + 1;
    memset(counts, 0, sizeof counts);
    tsr_count_labels(model, c->label, tile, counts);
    model->label_tables =
        (uint8_t)tsr_merge_contexts(counts, label_symbols + 1, label_symbols, model->label_table_of, &merge);
    for (int t = 0; t < model->label_tables; t++)
        tsr_huffman_lengths(counts + t * label_symbols, label_symbols, model->label_lengths[t], &work);
}

/* Pads the tile and its earlier planes as the encoder does. */
static void pad(struct chosen *c, const uint16_t *samples, struct tsr_tile tile)
{
    assert_true(tsr_padded_samples(tile.width, tile.height) <= PADDED);
    tsr_pad_tile(samples + tile.first, tile.stride, tile.width, tile.height, c->own_room);
    c->predictors.model = &c->model;
    c->predictors.ops = tsr_linear_ops(tsr_best_isa());
    c->predictors.label = c->label;
    c->predictors.tile.own = tsr_padded_tile(c->own_room, tile.width, tile.height);
    for (int i = 0; i < c->model.shape.references; i++) {
        tsr_pad_tile(c->earlier[i] + tile.first, tile.stride, tile.width, tile.height, c->room[i]);
        c->predictors.tile.earlier[i] = tsr_padded_tile(c->room[i], tile.width, tile.height);
    }
}

/* Makes all of a tile's predictors. samples: those that will be predicted. */
static void choose(struct rng *r, struct chosen *c, const uint16_t *samples, struct tsr_tile tile)
{
    random_classes(r, c, tile);
    for (int i = 0; i < c->model.shape.references; i++)
        fill(r, c->earlier[i], tile, 65536, (int)rng_below(r, CONTENTS));
    pad(c, samples, tile);
    train_labels(c, tile);
}

/* chosen: NULL for the median edge predictor alone. */
static void predict(const uint16_t *samples, struct tsr_tile tile, uint32_t range, const struct chosen *chosen,
                    struct tsr_bin_counts *counts)
{
    void *scratch = must(malloc(tsr_predict_scratch_bytes(tile.width)));
    memset(values, NO_VALUE, sizeof values);
    memset(symbols, NO_VALUE, sizeof symbols);
    memset(contexts, NO_VALUE, sizeof contexts);
    memset(intensities, NO_VALUE, sizeof intensities);
    memset(counts, 0, sizeof *counts);
    tsr_predict_tile(samples, tile, range, chosen ? &chosen->predictors : NULL, 0, out, counts, scratch);
    free(scratch);
}

/* Marks the samples after the first of each run: they have no symbols. */
static void find_runs(struct tsr_tile tile, uint8_t *inside)
{
    memset(inside, 0, SAMPLES);
    for (int32_t y = 0; y < tile.height; y++)
        for (int32_t x = 0; x < tile.width; x++) {
            const size_t at = place(tile, y, x);
            if (symbols[at] < TSR_RUN_SYMBOL) continue;
            assert_in_range(values[at], 1, tile.width - x);
            memset(inside + at + 1, 1, values[at] - 1u);
            x += values[at] - 1;
        }
}

/* ---- The definition ------------------------------------------------------------------------------------------ */

/* Indices, residuals and magnitudes of a tile and the virtual ones around it, FORMAT.md 7.1 and 7.3. */
struct definition {
    struct tsr_tile tile;
    int32_t x[MOST][MOST], e[MOST][MOST], m[MOST][MOST], prediction[MOST][MOST], activity[MOST][MOST];
    int32_t bin[MOST][MOST]; /* of intensity, or of the anchor (7.10) */
};

/* samples: the tile's plane or an earlier one. */
static int32_t index_at(const uint16_t *samples, struct tsr_tile tile, int32_t row, int32_t column)
{
    if (column < 0) return row > 0 ? index_at(samples, tile, row - 1, 0) : samples[place(tile, 0, 0)];
    return samples[place(tile, row, column < tile.width ? column : tile.width - 1)];
}

/* The table of FORMAT.md 7.1: rows up, columns to the right. */
static const int places[30][2] = {{0, -1}, {1, 0},  {1, -1}, {1, 1}, {0, -2}, {2, 0},  {2, 1},  {1, -2},
                                  {2, -1}, {1, 2},  {0, -3}, {3, 0}, {2, 2},  {2, -2}, {1, 3},  {1, -3},
                                  {3, 1},  {3, -1}, {0, -4}, {4, 0}, {0, -5}, {2, 3},  {2, -3}, {3, 2},
                                  {3, -2}, {1, 4},  {1, -4}, {4, 1}, {4, -1}, {0, -6}};

static int64_t linear_sum(const struct chosen *c, const uint16_t *samples, struct tsr_tile tile, const int16_t *weight,
                          int32_t y, int32_t x)
{
    int64_t sum = 0;
    for (int k = 0; k < c->model.shape.neighbours; k++)
        sum += (int64_t)*weight++ * index_at(samples, tile, y > places[k][0] ? y - places[k][0] : 0, x + places[k][1]);
    for (int i = 0; i < c->model.shape.references; i++) {
        sum += (int64_t)*weight++ * index_at(c->earlier[i], tile, y, x - 1);
        sum += (int64_t)*weight++ * index_at(c->earlier[i], tile, y, x);
        sum += (int64_t)*weight++ * index_at(c->earlier[i], tile, y - 1, x);
        sum += (int64_t)*weight++ * index_at(c->earlier[i], tile, y, x + 1);
        sum += (int64_t)*weight++ * index_at(c->earlier[i], tile, y + 1 < tile.height ? y + 1 : y, x);
    }
    return sum + 512;
}

static bool is_linear(const struct chosen *c, struct tsr_tile tile, int32_t y, int32_t x)
{
    return c && y > 0 && c->label[y / 16 * ((tile.width + 15) / 16) + x / 16] < c->model.classes;
}

static int32_t define_prediction(const struct chosen *c, const uint16_t *samples, struct tsr_tile tile, int32_t range,
                                 int32_t y, int32_t x)
{
    if (y == 0) return x == 0 ? 0 : index_at(samples, tile, 0, x - 1);
    const int label = c ? c->label[y / 16 * ((tile.width + 15) / 16) + x / 16] : 0;
    if (is_linear(c, tile, y, x))
        return (int32_t)clamp_to(floor_shift(linear_sum(c, samples, tile, c->model.weight[label], y, x), 10), 0,
                                 range - 1);
    const int32_t w = index_at(samples, tile, y, x - 1), n = index_at(samples, tile, y - 1, x),
                  nw = index_at(samples, tile, y - 1, x - 1);
    const int32_t low = w < n ? w : n, high = w < n ? n : w;
    return (int32_t)clamp_to(w + n - nw, low, high);
}

/* FORMAT.md 7.10: the residual and the bin of a sample whose prediction is known. */
static void define_anchored(struct definition *d, const struct chosen *c, const uint16_t *samples, struct tsr_tile tile,
                            int32_t range, int32_t y, int32_t x)
{
    const int32_t p = d->prediction[y][x];
    int32_t near[5] = {y == 0 && x == 0 ? 0 : index_at(samples, tile, y, x - 1), 0, 0, 0, 0}, f = 0, d_v = 0, a = 0;
    if (y > 0)
        for (int k = 1; k < 4; k++) near[k] = index_at(samples, tile, y - 1, x + (k == 1 ? 0 : k == 2 ? -1 : 1));
    const int32_t w = near[0], n = near[1], low = w < n ? w : n, high = w < n ? n : w;
    near[4] = (int32_t)clamp_to(w + n - near[2], low, high);
    if (is_linear(c, tile, y, x)) {
        const int label = c->label[y / 16 * ((tile.width + 15) / 16) + x / 16];
        const int64_t sum = linear_sum(c, samples, tile, c->model.weight[label], y, x);
        if (floor_shift(sum, 10) == p) f = (int32_t)(floor_shift(sum, 4) & 63) - 32;
    }
    for (int k = 0; k < 5; k++) {
        const int32_t distance = 64 * (int32_t)clamp_to(p - near[k], -2, 2) + f;
        if (k > 0 && abs(distance) >= abs(d_v)) continue;
        d_v = distance;
        a = near[k];
    }
    const int32_t least = abs(d_v);
    if (least >= 96) {
        a = p;
        d_v = f;
    }
    int32_t e = d_v >= 0 ? d->x[y][x] - a : a - d->x[y][x];
    while (e < -(range / 2)) e += range;
    while (e > (range - 1) / 2) e -= range;
    d->e[y][x] = e;
    d->m[y][x] = abs(d->x[y][x] - p) < 4095 ? abs(d->x[y][x] - p) : 4095;
    d->bin[y][x] = 4 * ((least >= 5) + (least >= 16) + (least >= 32) + (least >= 64) + (least >= 96)) + (w == n) +
                   2 * (n == near[3]);
}

static int32_t magnitude_at(const struct definition *d, int32_t row, int32_t column)
{
    if (row < 0) return 0;
    if (column < 0) return row == 0 ? 0 : magnitude_at(d, row - 1, 0);
    if (column == d->tile.width) return d->m[row][column - 1];
    return d->m[row][column];
}

static void define(struct definition *d, const uint16_t *samples, struct tsr_tile tile, int32_t range,
                   const struct chosen *chosen)
{
    d->tile = tile;
    for (int32_t y = 0; y < tile.height; y++)
        for (int32_t x = 0; x < tile.width; x++) {
            d->x[y][x] = samples[place(tile, y, x)];
            d->prediction[y][x] = define_prediction(chosen, samples, tile, range, y, x);
            int32_t e = d->x[y][x] - d->prediction[y][x];
            while (e < -(range / 2)) e += range;
            while (e > (range - 1) / 2) e -= range;
            d->e[y][x] = e;
            d->m[y][x] = abs(e) < 4095 ? abs(e) : 4095;
            d->bin[y][x] = d->prediction[y][x] >>
                           (plain_width((uint32_t)range - 1) > 12 ? plain_width((uint32_t)range - 1) - 12 : 0);
            if (chosen && chosen->model.anchored) define_anchored(d, chosen, samples, tile, range, y, x);
        }
    for (int32_t y = 0; y < tile.height; y++)
        for (int32_t x = 0; x < tile.width; x++) {
            const int32_t w = magnitude_at(d, y, x - 1), ww = magnitude_at(d, y, x - 2);
            if (y == 0) {
                d->activity[y][x] = 6 * w + 2 * ww;
                continue;
            }
            const int32_t nn = y == 1 ? d->m[0][x] : d->m[y - 2][x];
            d->activity[y][x] =
                2 * w + 2 * d->m[y - 1][x] + magnitude_at(d, y - 1, x - 1) + magnitude_at(d, y - 1, x + 1) + ww + nn;
        }
}

TEST(predicting)
{
    static uint16_t samples[SAMPLES];
    static struct definition d;
    static struct chosen chosen;
    static struct tsr_bin_counts counts, plain;
    static const uint32_t ranges[] = {2, 3, 16, 255, 256, 4096, 4097, 65535, 65536};
    struct rng r = {50};
    for (int n = 0; n < 600; n++) {
        const struct tsr_tile tile = random_tile(&r);
        const uint32_t range = ranges[rng_below(&r, COUNT_OF(ranges))];
        fill(&r, samples, tile, range, n % CONTENTS);
        const bool linear = rng_below(&r, 2);
        if (linear) choose(&r, &chosen, samples, tile);
        predict(samples, tile, range, linear ? &chosen : NULL, &counts);
        define(&d, samples, tile, (int32_t)range, linear ? &chosen : NULL);
        memset(&plain, 0, sizeof plain);
        for (int32_t y = 0; y < tile.height; y++) {
            bool after_run = false;
            for (int32_t x = 0; x < tile.width; x++) {
                const size_t at = place(tile, y, x);
                const int32_t e = d.e[y][x], activity = d.activity[y][x];
                assert_int_equal(intensities[at], d.bin[y][x]);
                if (activity == 0 && !after_run && e == 0) { /* FORMAT.md 7.4: a run */
                    int32_t length = 0;
                    while (x + length < tile.width && d.e[y][x + length] == 0) length++;
                    assert_int_equal(values[at], length);
                    assert_int_equal(symbols[at],
                                     x + length == tile.width ? 95 : tsr_run_token((uint32_t)length).symbol);
                    assert_int_equal(contexts[at], 0);
                    for (int32_t k = 1; k < length; k++) assert_int_equal(intensities[at + (size_t)k], d.bin[y][x + k]);
                    x += length - 1;
                    after_run = true;
                    continue;
                }
                const uint32_t folded = e >= 0 ? 2 * (uint32_t)e : 2 * (uint32_t)-e - 1;
                const int bin = activity > 0 ? tsr_token((uint32_t)activity).symbol
                                : after_run  ? TSR_INTERRUPTION_BIN
                                             : 0;
                assert_int_equal(values[at], folded);
                assert_int_equal(symbols[at], tsr_token(folded).symbol);
                assert_int_equal(contexts[at], bin);
                if (activity > 0) {
                    plain.activity[bin]++;
                    plain.intensity[d.bin[y][x]]++;
                }
                after_run = false;
            }
        }
        assert_memory_equal(&counts, &plain, sizeof plain);
        /* nothing outside the tile is written */
        for (int32_t y = 0; y < tile.height; y++) memset(contexts + place(tile, y, 0), NO_VALUE, (size_t)tile.width);
        for (size_t i = 0; i < SAMPLES; i++) assert_int_equal(contexts[i], NO_VALUE);
    }
}

/* ---- Causality ------------------------------------------------------------------------------------------------ */

/* Whether a decoder needs the prediction and the context of (y, x) before it knows sample (cy, cx). A change of that
 * sample must not change them. They are needed before if (y, x) is at or before (cy, cx) in the order of the scan. In
 * the wavefront, lanes are eight columns apart and prepare the four columns of a step at once: in row cy + k they are
 * needed before in a step that begins more than 8 k columns before the end of the sample's own step. With a range of
 * 4096 the intensities are the predictions themselves. */
static bool needed_before(int32_t y, int32_t x, int32_t cy, int32_t cx)
{
    return y < cy || x / 4 * 4 + 8 * (y - cy) < cx / 4 * 4 + 4;
}

TEST(causality)
{
    static uint16_t samples[SAMPLES], intensity[SAMPLES];
    static uint8_t context[SAMPLES], inside[SAMPLES], inside_after[SAMPLES];
    static struct chosen chosen;
    static struct tsr_bin_counts counts;
    struct rng r = {51};
    int moved_next = 0, moved_above_right = 0;
    for (int n = 0; n < 4000; n++) {
        struct tsr_tile tile = random_tile(&r);
        tile.width = 1 + (tile.width - 1) % 24;
        tile.height = 1 + (tile.height - 1) % 12;
        fill(&r, samples, tile, 4096, n % CONTENTS);
        const bool linear = rng_below(&r, 2);
        if (linear) choose(&r, &chosen, samples, tile);
        predict(samples, tile, 4096, linear ? &chosen : NULL, &counts);
        memcpy(intensity, intensities, sizeof intensity);
        memcpy(context, contexts, sizeof context);
        find_runs(tile, inside);
        const int32_t cy = rng_between(&r, 0, tile.height - 1), cx = rng_between(&r, 0, tile.width - 1);
        uint16_t *const sample = &samples[place(tile, cy, cx)];
        *sample = (uint16_t)((*sample + 1u + rng_below(&r, 4095)) % 4096);
        if (linear) pad(&chosen, samples, tile);
        predict(samples, tile, 4096, linear ? &chosen : NULL, &counts);
        find_runs(tile, inside_after);
        for (int32_t y = 0; y < tile.height; y++)
            for (int32_t x = 0; x < tile.width; x++) {
                const size_t at = place(tile, y, x);
                /* inside a run there is no context; only in the encoder, a run's symbol depends on later samples */
                const bool same_context = inside[at] || inside_after[at] || context[at] == contexts[at];
                const bool same = intensity[at] == intensities[at] && same_context;
                if (y == cy ? x <= cx : needed_before(y, x, cy, cx))
                    expect(same, "%d x %d: changing (%d, %d) moves (%d, %d)", tile.width, tile.height, cy, cx, y, x);
                if (y == cy && x < cx) assert_int_equal(inside[at], inside_after[at]);
                moved_next += !same && y == cy && x == cx + 1;
                moved_above_right += !same && y == cy + 1 && x == cx - 1;
            }
    }
    assert_true(moved_next > 1000); /* so the comparison does see changes */
    assert_true(moved_above_right > 100);
}

/* The definition is causal, too: activity and prediction use only neighbours that the decoder has. */
TEST(causality_of_the_definition)
{
    static uint16_t samples[SAMPLES];
    static struct definition before, after;
    static struct chosen chosen;
    struct rng r = {52};
    for (int n = 0; n < 1000; n++) {
        struct tsr_tile tile = random_tile(&r);
        tile.width = 1 + (tile.width - 1) % 20;
        tile.height = 1 + (tile.height - 1) % 10;
        fill(&r, samples, tile, 65536, n % CONTENTS);
        const bool linear = rng_below(&r, 2);
        if (linear) choose(&r, &chosen, samples, tile);
        define(&before, samples, tile, 65536, linear ? &chosen : NULL);
        const int32_t cy = rng_between(&r, 0, tile.height - 1), cx = rng_between(&r, 0, tile.width - 1);
        samples[place(tile, cy, cx)] ^= (uint16_t)(1u << rng_below(&r, 16));
        define(&after, samples, tile, 65536, linear ? &chosen : NULL);
        for (int32_t y = 0; y < tile.height; y++)
            for (int32_t x = 0; x < tile.width; x++)
                if (y == cy ? x <= cx : needed_before(y, x, cy, cx)) {
                    assert_int_equal(before.prediction[y][x], after.prediction[y][x]);
                    assert_int_equal(before.activity[y][x], after.activity[y][x]);
                }
    }
}

/* ---- Codes ---------------------------------------------------------------------------------------------------- */

struct coded {
    bool rans;
    const struct chosen *chosen; /* NULL: the median edge predictor alone */
    struct tsr_residual_model model;
    tsr_code_table codes[TSR_MODEL_TABLES];
    struct tsr_value_codes value_codes;
    tsr_rans_table rans_codes[TSR_MODEL_TABLES];
    struct tsr_plane_decoder decoder;
};

static const struct tsr_predictor_model median_edge_alone;

static void prepare_decoder(struct coded *c)
{
    tsr_plane_decoder_init(&c->decoder, c->chosen ? &c->chosen->model : &median_edge_alone, &c->model, c->rans);
}

/* Turns the bins of a tile to contexts, and counts its symbols. */
static void count_symbols(struct tsr_tile tile, const struct tsr_context_map *map, struct tsr_symbol_counts *counts)
{
    for (int32_t y = 0; y < tile.height; y++)
        for (int32_t x = 0; x < tile.width; x++) {
            const size_t at = place(tile, y, x);
            const int context = map->context[contexts[at]][map->intensity_group[intensities[at]]];
            contexts[at] = (uint8_t)context;
            if (context >= TSR_FIRST_CELL_CONTEXT)
                counts->cell[context - TSR_FIRST_CELL_CONTEXT][symbols[at]]++;
            else
                counts->special[context][symbols[at]]++;
            if (symbols[at] >= TSR_RUN_SYMBOL) x += values[at] - 1;
        }
}

/* Pass 2 against pass 1: what it puts, and what it counts; of all rows, or of some. */
TEST(counting)
{
    static uint16_t samples[SAMPLES], value[SAMPLES];
    static uint8_t symbol[SAMPLES], context[SAMPLES], inside[SAMPLES];
    static struct chosen chosen;
    static struct tsr_bin_counts bins;
    static struct tsr_symbol_counts expected, counts;
    static struct tsr_context_map map;
    static struct tsr_residual_model model;
    static const uint32_t ranges[] = {2, 255, 4096, 40000, 65536};
    struct rng r = {59};
    for (int n = 0; n < 300; n++) {
        const struct tsr_tile tile = random_tile(&r);
        const uint32_t range = ranges[rng_below(&r, COUNT_OF(ranges))];
        const int32_t period = n % 3 ? 0 : 8;
        fill(&r, samples, tile, range, n % CONTENTS);
        const bool linear = rng_below(&r, 2);
        if (linear) choose(&r, &chosen, samples, tile);
        predict(samples, tile, range, linear ? &chosen : NULL, &bins);
        bins.activity[1]++, bins.intensity[0]++;
        model.activity_cuts =
            (uint8_t)tsr_cut_quantiles(bins.activity, TSR_ACTIVITY_BINS, TSR_ACTIVITY_GROUPS, model.activity_cut);
        model.intensity_cuts =
            (uint8_t)tsr_cut_quantiles(bins.intensity, TSR_INTENSITY_BINS, TSR_INTENSITY_GROUPS, model.intensity_cut);
        tsr_map_contexts(&map, &model);
        memset(&expected, 0, sizeof expected);
        memset(&counts, 0, sizeof counts);
        for (int32_t y = 0; y < tile.height; y++) {
            const struct tsr_tile row = {place(tile, y, 0), tile.width, 1, tile.stride};
            if (period == 0 || y % period < 2) count_symbols(row, &map, &expected);
        }
        memset(symbol, NO_VALUE, sizeof symbol);
        void *scratch = must(malloc(tsr_predict_scratch_bytes(tile.width)));
        tsr_count_tile(samples, tile, range, linear ? &chosen.predictors : NULL, period, &map,
                       (struct tsr_symbol_planes){value, symbol, context, NULL, false}, &counts, scratch);
        free(scratch);
        assert_memory_equal(&counts, &expected, sizeof counts);
        find_runs(tile, inside);
        for (int32_t y = 0; y < tile.height; y++)
            for (int32_t x = 0; x < tile.width && (period == 0 || y % period < 2); x++) {
                const size_t at = place(tile, y, x);
                if (inside[at]) continue;
                assert_int_equal(value[at], values[at]);
                assert_int_equal(symbol[at], symbols[at]);
                assert_int_equal(context[at], contexts[at]);
            }
        for (int32_t y = 0; y < tile.height; y++) memset(symbol + place(tile, y, 0), NO_VALUE, (size_t)tile.width);
        for (size_t i = 0; i < SAMPLES; i++) assert_int_equal(symbol[i], NO_VALUE);
    }
}

/* Trains a model for the symbols of a tile as the encoder does, with the given number of lanes. */
static void train(struct coded *c, struct tsr_tile tile, const struct tsr_bin_counts *coefficient_counts, int lanes,
                  const struct chosen *chosen, bool rans)
{
    static struct tsr_symbol_counts counts;
    static struct tsr_context_map map;
    static struct tsr_merge_work merge;
    static struct tsr_huffman_work work;
    struct tsr_residual_model *model = &c->model;
    memset(c, 0, sizeof *c);
    c->chosen = chosen;
    c->rans = rans;
    model->lanes = (uint8_t)lanes;
    model->activity_cuts = (uint8_t)tsr_cut_quantiles(coefficient_counts->activity, TSR_ACTIVITY_BINS,
                                                      TSR_ACTIVITY_GROUPS, model->activity_cut);
    model->intensity_cuts = (uint8_t)tsr_cut_quantiles(coefficient_counts->intensity, TSR_INTENSITY_BINS,
                                                       TSR_INTENSITY_GROUPS, model->intensity_cut);
    tsr_map_contexts(&map, model);
    memset(&counts, 0, sizeof counts);
    count_symbols(tile, &map, &counts);
    model->tables = (uint8_t)tsr_merge_contexts(&counts.cell[0][0], tsr_model_cells(model), TSR_RESIDUAL_SYMBOLS,
                                                model->table_of, &merge);
    for (int t = 0; t < TSR_FIRST_RESIDUAL_TABLE + model->tables; t++) {
        const bool special = t < TSR_FIRST_RESIDUAL_TABLE;
        const uint32_t *of_table = special ? counts.special[t] : counts.cell[t - TSR_FIRST_RESIDUAL_TABLE];
        const int alphabet = special ? TSR_RUN_ALPHABET : TSR_RESIDUAL_SYMBOLS;
        if (rans)
            (void)tsr_rans_weights(of_table, alphabet, model->weights[t]);
        else
            tsr_huffman_lengths(of_table, alphabet, model->lengths[t], &work);
        tsr_rans_symbols(model->weights[t], TSR_RUN_ALPHABET, c->rans_codes[t]);
    }
    model->refill_bits = (uint8_t)tsr_model_refill_bits(model);
    tsr_build_codes(c->codes, model);
    tsr_build_value_codes(&c->value_codes, (const tsr_code_table *)c->codes, model);
    prepare_decoder(c);
}

/* The largest capacity that the encoder gives: that of raw samples. */
static size_t most_bytes(struct tsr_tile tile)
{
    return tsr_raw_tile_bytes(65536, tile.width, tile.height);
}

/* Codes the symbols, without the labels. Returns bytes. */
static size_t code_words(const struct coded *c, struct tsr_tile tile, uint8_t *payload, size_t capacity)
{
    void *scratch = must(malloc(tsr_code_scratch_bytes(tile.width, tile.height, c->model.lanes)));
    const size_t size = c->rans ? tsr_rans_code_tile(out, tile, &c->model, (const tsr_rans_table *)c->rans_codes,
                                                     payload, capacity, scratch)
                                : tsr_code_tile(out, tile, &c->model, &c->value_codes, (const tsr_code_table *)c->codes,
                                                payload, capacity, scratch);
    free(scratch);
    return size;
}

/* Codes labels and symbols. Returns 0 if the words are none or exceed the capacity. */
static size_t code(const struct coded *c, struct tsr_tile tile, uint8_t *payload, size_t capacity)
{
    size_t labels = 0;
    if (c->chosen) labels = tsr_code_labels(&c->chosen->model, c->chosen->label, tile, payload, capacity);
    if (labels == SIZE_MAX) return 0;
    const size_t words = code_words(c, tile, payload + labels, capacity - labels);
    return words ? labels + words : 0;
}

/* Half of the time the encoder's own number of lanes. */
static int random_lanes(struct rng *r, struct tsr_tile tile)
{
    return rng_below(r, 2) ? tsr_lanes_for_tile(tile.width, tile.height) : rng_between(r, 1, TSR_LANE_LIMIT);
}

static bool decode_as_set(const struct coded *c, const uint8_t *payload, size_t size, struct tsr_tile tile,
                          uint32_t range, uint16_t *plane)
{
    uint8_t *exact = must(malloc(size + !size));
    const size_t scratch_bytes = tsr_decode_scratch_bytes(tile.width, tile.height);
    uint8_t *scratch = must(malloc(scratch_bytes));
    uint32_t old = 1;
    for (size_t i = 0; i < scratch_bytes; i++) /* its old contents must not matter */
        scratch[i] = (uint8_t)((old = old * 1664525u + 1013904223u) >> 24);
    memcpy(exact, payload, size);
    memset(plane, NO_VALUE, SAMPLES * sizeof plane[0]);
    const bool good = tsr_decode_tile(&c->decoder, c->chosen ? c->chosen->predictors.tile.earlier : NULL, exact, size,
                                      plane, tile, range, scratch);
    free(scratch);
    free(exact);
    return good;
}

/* Decodes a payload of exactly size bytes into plane: one lane after the other, then with every instruction set that
 * this machine has. Nothing outside the tile may be touched. */
static bool decode(struct coded *c, const uint8_t *payload, size_t size, struct tsr_tile tile, uint32_t range,
                   uint16_t *plane)
{
    static uint16_t other[SAMPLES];
    const int best = (int)tsr_best_isa();
    c->decoder.vector_lanes = TSR_LANE_LIMIT + 1;
    const bool good = decode_as_set(c, payload, size, tile, range, plane);
    c->decoder.vector_lanes = 4; /* the history of ticks is made for four lanes or more */
    for (int isa = TSR_ISA_PLAIN; isa <= best; isa++) {
        c->decoder.isa = (enum tsr_isa)isa;
        expect(decode_as_set(c, payload, size, tile, range, other) == good, "form %d, %d lanes: %s", isa,
               c->model.lanes, good ? "refused" : "accepted");
        if (good) assert_memory_equal(other, plane, sizeof other);
    }
    return good;
}

/* Fills a tile, predicts it, and trains a model for it. */
static void prepare(struct rng *r, int n, uint16_t *samples, struct tsr_tile tile, uint32_t range,
                    struct chosen *chosen, struct coded *c)
{
    static struct tsr_bin_counts counts;
    const bool linear = n / CONTENTS % 2, rans = n / CONTENTS / 2 % 2;
    fill(r, samples, tile, range, n % CONTENTS);
    if (linear) choose(r, chosen, samples, tile);
    predict(samples, tile, range, linear ? chosen : NULL, &counts);
    train(c, tile, &counts, random_lanes(r, tile), linear ? chosen : NULL, rans);
}

TEST(tiles_round_trip)
{
    static uint16_t samples[SAMPLES], back[SAMPLES];
    static uint8_t payload[8 * SAMPLES + 64];
    static struct chosen chosen;
    static struct coded c;
    static const uint32_t ranges[] = {2, 3, 256, 4096, 65535, 65536};
    struct rng r = {53};
    int coded[2] = {0};
    for (int n = 0; n < 1000; n++) {
        const struct tsr_tile tile = random_tile(&r);
        const uint32_t range = ranges[rng_below(&r, COUNT_OF(ranges))];
        prepare(&r, n, samples, tile, range, &chosen, &c);
        if (n % 4 == 0 && !c.rans)
            c.model.refill_bits = (uint8_t)rng_between(&r, c.model.refill_bits, TSR_REFILL_LIMIT);
        const size_t size = code(&c, tile, payload, most_bytes(tile));
        if (size == 0) continue; /* more bytes than raw, or no bits at all: the caller stores raw samples */
        coded[c.rans]++;
        assert_true(decode(&c, payload, size, tile, range, back));
        size_t compared = 0;
        for (int32_t y = 0; y < tile.height; y++) {
            const size_t row = place(tile, y, 0);
            assert_memory_equal(back + row, samples + row, (size_t)tile.width * sizeof back[0]);
        }
        for (size_t i = 0; i < SAMPLES; i++) compared += back[i] != 0xa5a5;
        assert_true(compared <= (size_t)(tile.width * tile.height));

        /* capacity: no word is written past it */
        const size_t words = code_words(&c, tile, payload, most_bytes(tile));
        const size_t capacity = rng_below(&r, (uint32_t)words + 2);
        memset(payload, NO_VALUE, sizeof payload);
        assert_int_equal(code_words(&c, tile, payload, capacity), capacity >= words ? words : 0);
        for (size_t i = capacity; i < sizeof payload; i++) assert_int_equal(payload[i], NO_VALUE);
    }
    assert_true(coded[0] > 250 && coded[1] > 250);
}

/* FORMAT.md 7.9: a label has the code of the label to its left. Zeros fill the last word. */
TEST(labels)
{
    static struct chosen chosen;
    static uint16_t samples[SAMPLES];
    uint8_t bytes[256];
    struct rng r = {57};
    for (int n = 0; n < 500; n++) {
        const struct tsr_tile tile = random_tile(&r);
        fill(&r, samples, tile, 256, 1);
        choose(&r, &chosen, samples, tile);
        const struct tsr_predictor_model *model = &chosen.model;
        memset(bytes, NO_VALUE, sizeof bytes);
        const size_t size = tsr_code_labels(model, chosen.label, tile, bytes, sizeof bytes - 1);
        assert_true(size < sizeof bytes && size % 2 == 0);
        for (size_t i = size; i < sizeof bytes; i++) assert_int_equal(bytes[i], NO_VALUE);
        struct tsr_bit_reader reader = tsr_bit_reader(bytes, size);
        const int32_t across = (tile.width + 15) / 16;
        for (int32_t i = 0; i < blocks_of(tile); i++) {
            struct tsr_codeword words[TSR_LABELS_LIMIT];
            const int cell = i % across == 0 ? 0 : 1 + chosen.label[i - 1];
            tsr_huffman_codewords(model->label_lengths[model->label_table_of[cell]], model->classes + 1, words);
            const struct tsr_codeword word = words[chosen.label[i]];
            assert_int_equal(tsr_get_bits(&reader, word.length), word.bits);
        }
        assert_true(8 * size - tsr_bits_read(&reader) < 16);
        while (tsr_bits_read(&reader) < 8 * size) assert_int_equal(tsr_get_bits(&reader, 1), 0);
        /* the capacity is kept */
        const size_t capacity = rng_below(&r, (uint32_t)size + 3);
        memset(bytes, NO_VALUE, sizeof bytes);
        const size_t again = tsr_code_labels(model, chosen.label, tile, bytes, capacity);
        assert_true(again == size || (again == SIZE_MAX && capacity <= size));
        for (size_t i = capacity; i < sizeof bytes; i++) assert_int_equal(bytes[i], NO_VALUE);
    }
}

/* Bits after the labels that are not 0, and labels that are cut off, are refused. */
TEST(corrupt_labels)
{
    static uint16_t samples[SAMPLES], back[SAMPLES];
    static uint8_t payload[8 * SAMPLES + 64];
    static struct chosen chosen;
    static struct coded c;
    struct rng r = {58};
    int refused = 0;
    for (int n = 0; n < 400; n++) {
        const struct tsr_tile tile = random_tile(&r);
        prepare(&r, n, samples, tile, 4096, &chosen, &c);
        if (!c.chosen) continue;
        const size_t size = code(&c, tile, payload, most_bytes(tile));
        const size_t labels = tsr_code_labels(&chosen.model, chosen.label, tile, payload, most_bytes(tile));
        if (size == 0 || labels == 0) continue;
        size_t bits = 0;
        const int32_t across = (tile.width + 15) / 16;
        for (int32_t i = 0; i < blocks_of(tile); i++) {
            struct tsr_codeword words[TSR_LABELS_LIMIT];
            const int cell = i % across == 0 ? 0 : 1 + chosen.label[i - 1];
            tsr_huffman_codewords(chosen.model.label_lengths[chosen.model.label_table_of[cell]],
                                  chosen.model.classes + 1, words);
            bits += words[chosen.label[i]].length;
        }
        for (; bits < 8 * labels; bits++, refused++) {
            payload[bits / 8] ^= (uint8_t)(0x80u >> bits % 8);
            assert_false(decode(&c, payload, size, tile, 4096, back));
            payload[bits / 8] ^= (uint8_t)(0x80u >> bits % 8);
        }
        assert_true(decode(&c, payload, size, tile, 4096, back));
        for (size_t kept = 0; kept < labels; kept++) assert_false(decode(&c, payload, kept, tile, 4096, back));
    }
    assert_true(refused > 100);
}

/* Payloads that were cut, extended or damaged. The first two kinds are always refused. */
TEST(corrupt_tiles)
{
    static uint16_t samples[SAMPLES], back[SAMPLES];
    static uint8_t payload[8 * SAMPLES + 64];
    static struct chosen chosen;
    static struct coded c;
    struct rng r = {54};
    int refused[2] = {0};
    for (int n = 0; n < 400; n++) {
        const struct tsr_tile tile = random_tile(&r);
        const uint32_t range = n % 2 ? 65536 : 200;
        prepare(&r, n, samples, tile, range, &chosen, &c);
        const size_t size = code(&c, tile, payload, most_bytes(tile));
        if (size == 0) continue;
        assert_false(decode(&c, payload, size - 1, tile, range, back));
        assert_false(decode(&c, payload, size - 2, tile, range, back));
        memset(payload + size, 0, 16);
        assert_false(decode(&c, payload, size + 1, tile, range, back));
        assert_false(decode(&c, payload, size + 2, tile, range, back));
        for (int k = 0; k < 10; k++) {
            const size_t at = rng_below(&r, (uint32_t)size);
            payload[at] ^= (uint8_t)(1u << rng_below(&r, 8));
            const bool good = decode(&c, payload, size, tile, range, back);
            refused[c.rans] += !good;
            for (int32_t y = 0; good && y < tile.height; y++)
                for (int32_t x = 0; x < tile.width; x++) assert_true(back[place(tile, y, x)] < range);
        }
    }
    assert_true(refused[0] > 100 && refused[1] > 100);
}

/* FORMAT.md 7.7: the bits that lanes hold in the end are 0. */
TEST(left_over_bits_are_zeros)
{
    static uint16_t samples[SAMPLES], back[SAMPLES];
    static uint8_t payload[8 * SAMPLES];
    static struct tsr_bin_counts counts;
    static struct coded c;
    struct rng r = {55};
    for (int n = 0; n < 100; n++) {
        const struct tsr_tile tile = random_tile(&r);
        fill(&r, samples, tile, 256, n % CONTENTS);
        predict(samples, tile, 256, NULL, &counts);
        train(&c, tile, &counts, 1, NULL, false);
        c.model.refill_bits = (uint8_t)rng_between(&r, c.model.refill_bits, TSR_REFILL_LIMIT);
        const size_t size = code(&c, tile, payload, most_bytes(tile));
        if (size == 0) continue;
        /* with one lane, its string is the words in their order */
        size_t bits = 0;
        for (int32_t y = 0; y < tile.height; y++)
            for (int32_t x = 0; x < tile.width; x++) {
                const size_t at = place(tile, y, x);
                const struct tsr_symbol_code word = c.codes[tsr_table_of_context(&c.model, contexts[at])][symbols[at]];
                if (symbols[at] >= TSR_RUN_SYMBOL) x += values[at] - 1;
                bits += (size_t)word.length + word.raw_bits;
            }
        for (size_t bit = bits; bit < 8 * size; bit++) {
            uint8_t *byte = &payload[(bit / 8) ^ 1]; /* words are least significant byte first */
            *byte ^= (uint8_t)(0x80u >> bit % 8);
            expect(!decode(&c, payload, size, tile, 256, back), "bit %zu of %zu, %zu used, refill %d", bit, 8 * size,
                   bits, c.model.refill_bits);
            *byte ^= (uint8_t)(0x80u >> bit % 8);
        }
    }
}

/* Runs that are longer than the rest of their row. */
TEST(impossible_runs)
{
    static uint16_t back[SAMPLES];
    static struct coded c;
    static const uint8_t zeros[8];
    const struct tsr_tile tile = {0, 5, 1, 5};
    memset(&c, 0, sizeof c);
    c.model.lanes = 1;
    for (uint32_t run = 4; run <= 8; run += 1) {
        const struct tsr_token token = tsr_run_token(run);
        memset(c.model.lengths, 0, sizeof c.model.lengths);
        c.model.lengths[TSR_RUN_TABLE][token.symbol] = 1; /* the only symbol: no codeword bits, raw bits 0 */
        c.model.refill_bits = 16;
        prepare_decoder(&c);
        /* the tokens of 4, 6 and 8 with raw bits 0 are runs of 4, 6 and 8; one word is taken */
        const uint32_t length = tsr_run_length(token.symbol, 0);
        /* a run of 4 leaves one sample, an interruption, whose table does not exist; longer ones end with the row */
        assert_int_equal(decode(&c, zeros, 2, tile, 16, back), length >= 5);
        const struct tsr_tile fitting = {0, (int32_t)length, 1, length};
        assert_true(decode(&c, zeros, 2, fitting, 16, back));
        for (uint32_t i = 0; i < length; i++) assert_int_equal(back[i], 0);
    }
}

TEST(impossible_symbols)
{
    static uint16_t back[SAMPLES];
    static struct coded c;
    static const uint8_t zeros[8];
    const struct tsr_tile tile = {0, 5, 1, 5};
    memset(&c, 0, sizeof c);
    c.model.lanes = 1;
    c.model.lengths[TSR_RUN_TABLE][TSR_RUN_TO_END] = 1; /* the only symbol: every row is one run, without a bit */
    c.model.refill_bits = 0;
    prepare_decoder(&c);
    const struct tsr_tile silent = {0, 7, 3, 7};
    memset(back, 1, sizeof back);
    assert_true(decode(&c, zeros, 0, silent, 16, back));
    for (uint32_t i = 0; i < 21; i++) assert_int_equal(back[i], 0);
    c.model.refill_bits = 16;
    /* an activity above 0 without residual tables: the first sample is not 0 */
    memset(c.model.lengths, 0, sizeof c.model.lengths);
    c.model.lengths[TSR_RUN_TABLE][2] = 1;
    prepare_decoder(&c);
    assert_false(decode(&c, zeros, 2, tile, 16, back));
    const struct tsr_tile single = {0, 1, 1, 1};
    assert_true(decode(&c, zeros, 2, single, 16, back));
    assert_int_equal(back[0], 1);
    /* a sample outside its range */
    c.model.lengths[TSR_RUN_TABLE][2] = 0;
    c.model.lengths[TSR_RUN_TABLE][62] = 1;
    prepare_decoder(&c);
    assert_false(decode(&c, zeros, 2, single, 16, back));
    /* the same in the first of four rows, as many as vector code needs; residuals of the others are 0 */
    const struct tsr_tile column = {0, 1, 4, 1};
    c.model.lanes = 4;
    c.model.tables = 1;
    c.model.lengths[TSR_FIRST_RESIDUAL_TABLE][0] = 1;
    prepare_decoder(&c);
    assert_false(decode(&c, zeros, 8, column, 16, back));
    assert_true(decode(&c, zeros, 8, column, 65536, back));
    /* an interruption that would be a run */
    memset(c.model.lengths, 0, sizeof c.model.lengths);
    c.model.lengths[TSR_RUN_TABLE][tsr_run_token(4).symbol] = 1;
    c.model.lengths[TSR_INTERRUPTION_TABLE][tsr_run_token(1).symbol] = 1;
    c.model.refill_bits = 8;
    for (int lanes = 1; lanes <= 4; lanes += 3) {
        c.model.lanes = (uint8_t)lanes;
        prepare_decoder(&c);
        for (int32_t width = 4; width <= 5; width++) {
            const struct tsr_tile rows = {0, width, lanes, (size_t)width};
            assert_int_equal(decode(&c, zeros, 2 * (size_t)lanes, rows, 16, back), width == 4);
        }
    }
}

/* FORMAT.md 7.7: the first states of rANS are at least 2^16, the last ones 2^16. And tables that do not exist. */
TEST(states_of_lanes)
{
    static uint16_t back[SAMPLES];
    static struct coded c;
    const struct tsr_tile tile = {0, 5, 2, 5};
    memset(&c, 0, sizeof c);
    c.rans = true;
    c.model.lanes = 3;                                              /* the tile has two rows, hence two states */
    c.model.weights[TSR_RUN_TABLE][tsr_run_token(5).symbol] = 4096; /* two runs of 5, with a raw bit each */
    prepare_decoder(&c);
    /* The state 2^17 + raw bit gives the bit and becomes 2^16; a first state of 2^16 becomes 2^15 and takes a word. */
    const uint8_t good[8] = {1, 0, 2, 0, 1, 0, 2, 0};
    uint8_t bad[10];
    assert_true(decode(&c, good, 8, tile, 16, back));
    for (size_t i = 0; i < 10; i++) assert_int_equal(back[i], 0);
    for (size_t size = 0; size < 8; size++) assert_false(decode(&c, good, size, tile, 16, back));
    memset(bad, 0, sizeof bad);
    memcpy(bad, good, 8);
    assert_false(decode(&c, bad, 10, tile, 16, back)); /* a word too many */
    bad[2] = 0;                                        /* a state of 1 */
    assert_false(decode(&c, bad, 8, tile, 16, back));
    bad[2] = 3; /* a state that ends above 2^16 */
    assert_false(decode(&c, bad, 8, tile, 16, back));
    bad[2] = 2;
    bad[0] = 0; /* a run of 4, then an interruption, whose table does not exist */
    assert_false(decode(&c, bad, 8, tile, 16, back));
    const struct tsr_tile fitting = {0, 4, 1, 4};
    assert_true(decode(&c, bad, 4, fitting, 16, back));
    /* the same in as many lanes as vector code needs; in a bad row a run of 4 and an interruption */
    const struct tsr_tile tall = {0, 5, 4, 5};
    uint8_t states[16];
    c.model.lanes = 4;
    prepare_decoder(&c);
    for (int l = 0; l < 4; l++) memcpy(states + 4 * l, l == 2 ? bad : good, 4);
    assert_false(decode(&c, states, 16, tall, 16, back));
    memcpy(states + 8, good, 4);
    assert_true(decode(&c, states, 16, tall, 16, back));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(predicting),
                                       cmocka_unit_test(causality),
                                       cmocka_unit_test(causality_of_the_definition),
                                       cmocka_unit_test(counting),
                                       cmocka_unit_test(tiles_round_trip),
                                       cmocka_unit_test(labels),
                                       cmocka_unit_test(corrupt_labels),
                                       cmocka_unit_test(corrupt_tiles),
                                       cmocka_unit_test(left_over_bits_are_zeros),
                                       cmocka_unit_test(impossible_runs),
                                       cmocka_unit_test(impossible_symbols),
                                       cmocka_unit_test(states_of_lanes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
