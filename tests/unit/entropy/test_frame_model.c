/* entropy/frame_model.h: tiles, plane models and frame models. FORMAT.md 5 and 6. */
#include "tests/unit/images.h"

#include "entropy/frame_model.h"

/* ---- Tiles ------------------------------------------------------------------------------------------------------ */

static int32_t divide_up(int32_t a, int32_t b)
{
    return (a + b - 1) / b;
}

TEST(cutting_tiles)
{
    struct rng r = {70};
    for (int n = 0; n < 20000; n++) {
        struct tsr_image image = {0};
        image.columns = 1 + rng_width(&r, 15) + rng_width(&r, 15);
        image.rows = 1 + rng_width(&r, 15) + rng_width(&r, 15);
        const int32_t align = n % 2 ? 64 : 1, columns = (int32_t)image.columns, rows = (int32_t)image.rows;
        const struct tsr_tiling cut = tsr_cut_tiles(&image, align);
        const int32_t width = cut.tile_width, height = cut.tile_height;
        assert_true(cut.columns == columns && cut.rows == rows);
        /* FORMAT.md 5.2: columns over the number of tiles across, rounded up to a multiple */
        int32_t wanted = divide_up(columns, divide_up(columns, 1024));
        wanted = divide_up(wanted, align) * align;
        assert_int_equal(width, wanted < columns ? wanted : columns);
        assert_in_range(height, 1, rows);
        assert_true(height == rows || height % align == 0);
        assert_true((int64_t)wanted * height <= TSR_TILE_SAMPLES);
        assert_true((int64_t)width * height <= TSR_TILE_SAMPLES_LIMIT);
        /* equal heights, and as few tiles down as the limit allows */
        const int32_t most = TSR_TILE_SAMPLES / wanted / align * align;
        assert_int_equal(divide_up(rows, height) <= divide_up(rows, most), true);
    }
    assert_int_equal(tsr_tile_alignment(TSR_PATH_PREDICT, TSR_CODER_HUFFMAN), 1);
    assert_int_equal(tsr_tile_alignment(TSR_PATH_PREDICT, TSR_CODER_CAVLC), 64);
    assert_int_equal(tsr_tile_alignment(TSR_PATH_TRANSFORM, TSR_CODER_HUFFMAN), 64);
    assert_int_equal(tsr_tile_alignment(TSR_PATH_TRANSFORM, TSR_CODER_CAVLC), 64);
}

/* Tiles of any size cover each sample once. Tiles are numbered along rows. */
TEST(tiles_cover_the_frame)
{
    static uint8_t owner[100 * 100];
    struct rng r = {71};
    for (int n = 0; n < 2000; n++) {
        struct tsr_image image = {0};
        static struct tsr_frame_model model;
        image.columns = (uint32_t)rng_between(&r, 1, 100);
        image.rows = (uint32_t)rng_between(&r, 1, 100);
        model.tile_width = rng_between(&r, 1, (int32_t)image.columns);
        model.tile_height = rng_between(&r, 1, (int32_t)image.rows);
        memset(owner, 0, sizeof owner);
        size_t before = 0;
        const uint32_t tiles = tsr_tile_count(&image, &model);
        for (uint32_t t = 0; t < tiles; t++) {
            const struct tsr_tile tile = tsr_tile_at(&image, &model, t);
            assert_int_equal(tile.stride, image.columns);
            assert_true(t == 0 ? tile.first == 0 : tile.first > before);
            before = tile.first;
            for (int32_t y = 0; y < tile.height; y++)
                for (int32_t x = 0; x < tile.width; x++) {
                    const size_t at = tile.first + (size_t)y * tile.stride + (size_t)x;
                    assert_true(at < (size_t)image.columns * image.rows);
                    owner[at]++;
                }
        }
        for (size_t i = 0; i < (size_t)image.columns * image.rows; i++) assert_int_equal(owner[i], 1);
    }
    assert_int_equal(tsr_raw_tile_bytes(2, 3, 3), 2);
    assert_int_equal(tsr_raw_tile_bytes(3, 3, 3), 3);
    assert_int_equal(tsr_raw_tile_bytes(65536, 1024, 64), 131072);
    assert_int_equal(tsr_raw_tile_bytes(65537 / 2, 1, 1), 2);
}

/* ---- Planes ----------------------------------------------------------------------------------------------------- */

static void set_symbols(uint8_t *lengths, int symbols, struct rng *r)
{
    memset(lengths, 0, (size_t)symbols);
    const int a = (int)rng_below(r, (uint32_t)symbols), b = (int)rng_below(r, (uint32_t)symbols);
    lengths[a] = lengths[b] = 1; /* one symbol or two */
}

static void random_predictors(struct rng *r, struct tsr_predictor_model *model, int earlier)
{
    model->set = (uint8_t)rng_below(r, 4);
    model->shape.neighbours = tsr_neighbours_host[model->set];
    if (model->set == 0) return;
    model->shape.references = (uint8_t)rng_between(r, 0, tsr_min(earlier, TSR_REFERENCES_LIMIT));
    model->anchored = rng_below(r, 2) != 0;
    model->classes = (uint8_t)rng_between(r, 1, TSR_CLASS_LIMIT);
    for (int c = 0; c < model->classes; c++) {
        int16_t of_feature[TSR_FEATURES_LIMIT];
        for (int f = 0; f < tsr_features(model->shape); f++) of_feature[f] = (int16_t)rng_between(r, -800, 800);
        assert_true(tsr_complete_weights(model->shape, of_feature, model->weight[c]));
    }
    model->label_tables = 1;
    set_symbols(model->label_lengths[0], model->classes + 1, r);
}

/* Which of the span's values occur. plane->offset has room for span entries. */
static void random_values(struct rng *r, struct tsr_plane_model *plane)
{
    const uint32_t density = 1 + rng_below(r, 10);
    bool use = true;
    plane->range = 0;
    for (uint32_t v = 0; v < plane->span; v++) {
        if (v > 0 && rng_below(r, density) == 0) use = !use;
        if (use || v == plane->span - 1) plane->offset[plane->range++] = (uint16_t)v;
    }
}

static void random_coefficients(struct rng *r, struct tsr_coefficient_model *of)
{
    of->magnitude_shift = (uint8_t)rng_below(r, 16);
    for (int g = 0; g < TSR_COEFFICIENT_GROUPS; g++) {
        if (rng_below(r, 3) == 0) continue;
        of->tables[g] = 1;
        of->weight[g * TSR_ENERGY_CLASSES][rng_below(r, TSR_COEFFICIENT_SYMBOLS)] = 4096;
    }
}

static void random_pairs(struct rng *r, struct tsr_pair_model *of)
{
    of->magnitude_shift = (uint8_t)rng_below(r, 16);
    for (int g = 0; g < TSR_PAIR_GROUPS; g++) {
        if (rng_below(r, 3) == 0) continue;
        of->tables[g] = 1;
        set_symbols(of->lengths[g * TSR_ENERGY_CLASSES], TSR_PAIR_SYMBOLS, r);
    }
}

static void random_tables(struct rng *r, struct tsr_plane_model *plane)
{
    plane->slice_side = rng_between(r, TSR_SLICE_BLOCKS_LEAST, TSR_SLICE_BLOCKS_LIMIT);
    if (plane->coder == TSR_CODER_RANS) {
        random_coefficients(r, &plane->coefficient);
        if (plane->dc_plane) random_coefficients(r, &plane->dcs.coefficient);
    } else if (plane->pairs) {
        random_pairs(r, &plane->pair);
        if (plane->dc_plane) random_pairs(r, &plane->dcs.pair);
    } else if (plane->coder == TSR_CODER_HUFFMAN) {
        plane->run_level.dc_tables = plane->run_level.ac_tables = 1;
        set_symbols(plane->run_level.dc_lengths[0], TSR_DC_SYMBOLS, r);
        set_symbols(plane->run_level.ac_lengths[0], TSR_AC_SYMBOLS, r);
    }
}

/* A plane of samples of `bits` bits. earlier: the number of planes to which its predictors may refer. */
static void random_plane(struct rng *r, struct tsr_plane_model *plane, int bits, int earlier)
{
    const uint32_t values = 1u << bits;
    plane->span = rng_below(r, 6) ? 1 + rng_below(r, values) : 1;
    plane->minimum = rng_below(r, values - plane->span + 1);
    plane->range = plane->span;
    if (plane->span == 1) return;
    plane->packed = rng_below(r, 2);
    if (plane->packed) random_values(r, plane);
    plane->path = rng_below(r, 2) ? TSR_PATH_TRANSFORM : TSR_PATH_PREDICT;
    plane->drawn = plane->path == TSR_PATH_PREDICT && rng_below(r, 4) == 0;
    if (plane->drawn) return;
    plane->coder = rng_below(r, 2) ? TSR_CODER_CAVLC : TSR_CODER_HUFFMAN;
    if (plane->path == TSR_PATH_TRANSFORM) {
        plane->lossy = rng_below(r, 2);
        plane->qp_index = plane->lossy ? rng_between(r, 0, TSR_QP_INDEX_LIMIT) : 0;
        if (plane->lossy && rng_below(r, 2))
            plane->coarser_by = (uint32_t)rng_between(r, 0, TSR_QP_INDEX_LIMIT - plane->qp_index);
        if (plane->coarser_by > 0) plane->coarser_from = rng_below(r, 1 << 27);
        plane->lapping = plane->lossy && rng_below(r, 2);
        plane->classes = plane->lapping && rng_below(r, 2);
        if (rng_below(r, 3) == 0) plane->coder = TSR_CODER_RANS;
        plane->pairs = plane->coder == TSR_CODER_HUFFMAN && rng_below(r, 2);
        plane->dc_plane = plane->lapping && (plane->pairs || plane->coder == TSR_CODER_RANS) && rng_below(r, 2);
        plane->intra = plane->lapping && rng_below(r, 2);
        if (plane->dc_plane) plane->dc_qp_index = rng_between(r, 0, TSR_QP_INDEX_LIMIT);
    }
    if (plane->path == TSR_PATH_PREDICT && plane->coder == TSR_CODER_HUFFMAN) {
        struct tsr_residual_model *model = &plane->residual;
        random_predictors(r, &plane->predictor, earlier);
        model->lanes = (uint8_t)rng_between(r, 1, 32);
        if (rng_below(r, 2)) {
            plane->coder = TSR_CODER_RANS;
            model->weights[TSR_RUN_TABLE][rng_below(r, TSR_RUN_ALPHABET)] = 4096;
            return;
        }
        model->refill_bits = 32;
        set_symbols(model->lengths[TSR_RUN_TABLE], TSR_RUN_ALPHABET, r);
        return;
    }
    random_tables(r, plane);
}

static struct tsr_frame_model model, back;
static uint16_t offsets[TSR_PLANES_LIMIT][65536], offsets_back[TSR_PLANES_LIMIT][65536];
static uint16_t lists[3][65536], lists_back[3][65536];
static uint8_t bytes[TSR_FRAME_MODEL_LIMIT];

/* One or two values of each component, or one or two colours. */
static void random_packing(struct rng *r, struct tsr_colour_model *colours, uint32_t values)
{
    colours->packing = rng_below(r, 2) ? TSR_COLOURS_PALETTE : TSR_COLOURS_BY_COMPONENT;
    const uint32_t count = 1 + rng_below(r, 2);
    for (int c = 0; c < 3; c++) {
        colours->count[c] = count;
        lists[c][0] = (uint16_t)rng_below(r, values - 1);
        lists[c][1] = (uint16_t)(lists[c][0] + 1 + rng_below(r, values - 1 - lists[c][0]));
    }
}

static size_t put_random_model(struct rng *r, struct tsr_image *image)
{
    *image = random_image(r, 3000);
    memset(&model, 0, sizeof model);
    do {
        model.tile_width = rng_between(r, 1, (int32_t)image->columns);
        model.tile_height = rng_between(r, 1, (int32_t)image->rows);
    } while ((int64_t)model.tile_width * model.tile_height > TSR_TILE_SAMPLES_LIMIT);
    static const enum tsr_colour colours[] = {TSR_COLOUR_NONE, TSR_COLOUR_GREEN, TSR_COLOUR_RCT, TSR_COLOUR_YCOCG};
    if (image->components >= 3) model.colour = colours[rng_below(r, 4)];
    model.extends_sign = tsr_image_outside_bits(image) > 0 && rng_below(r, 2);
    model.max_error = tsr_may_lose(image) && rng_below(r, 2) ? 1 + (rng_below(r, 32767) >> rng_below(r, 15)) : 0;
    for (int c = 0; c < 3; c++) model.colours.list[c] = lists[c];
    if (image->components >= 3 && rng_below(r, 2))
        random_packing(r, &model.colours, 1u << tsr_first_plane_bits(image, model.max_error));
    const bool packed = model.colours.packing != TSR_COLOURS_PLAIN,
               palette = model.colours.packing == TSR_COLOURS_PALETTE;
    if (palette) model.colour = TSR_COLOUR_NONE;
    model.planes = tsr_image_planes(image);
    for (int p = 0; p < model.planes; p++) {
        model.plane[p].offset = offsets[p];
        model.plane[p].present = p < image->components || tsr_has_halves(image) || rng_below(r, 2);
        if (!model.plane[p].present) continue;
        if (palette && (p == 1 || p == 2)) {
            model.plane[p].span = model.plane[p].range = 1;
            continue;
        }
        do { /* planes of packed colours are not lossy */
            const struct tsr_plane_model none = {.offset = offsets[p], .present = true};
            model.plane[p] = none;
            random_plane(r, &model.plane[p], tsr_plane_bits(image, &model, p),
                         tsr_reference_planes(image, &model, p, NULL));
        } while (packed && p < 3 && model.plane[p].lossy);
    }
    struct tsr_bit_writer w = tsr_bit_writer(bytes, sizeof bytes);
    tsr_put_frame_model(&w, image, &model);
    const size_t size = tsr_flush_bits(&w);
    assert_false(w.overflow);
    return size;
}

static bool get_model(const struct tsr_image *image, const uint8_t *from, size_t size)
{
    memset(&back, 0, sizeof back);
    for (int p = 0; p < TSR_PLANES_LIMIT; p++) back.plane[p].offset = offsets_back[p];
    for (int c = 0; c < 3; c++) back.colours.list[c] = lists_back[c];
    struct tsr_bit_reader reader = tsr_bit_reader(from, size);
    return tsr_get_frame_model(&reader, image, &back);
}

/* FORMAT.md 6.2 and 6. */
TEST(bits_of_planes)
{
    struct rng r = {72};
    for (int n = 0; n < 5000; n++) {
        const struct tsr_image image = random_image(&r, 9);
        const bool halves = image.bits_allocated == 32;
        const int first = halves ? 16 : image.bits_stored,
                  second = halves ? 16 : image.bits_allocated - image.bits_stored;
        assert_int_equal(tsr_image_planes(&image), image.components * (second > 0 ? 2 : 1));
        for (int p = 0; p < tsr_image_planes(&image); p++)
            for (int colour = 0; colour < 2; colour++) {
                const struct tsr_frame_model frame = {.colour = colour ? TSR_COLOUR_RCT : TSR_COLOUR_NONE};
                const int difference = first + 1 < 16 ? first + 1 : 16;
                const int bits = p >= image.components ? second : colour && (p == 1 || p == 2) ? difference : first;
                assert_int_equal(tsr_plane_bits(&image, &frame, p), bits);
            }
    }
}

TEST(models_round_trip)
{
    struct rng r = {73};
    for (int n = 0; n < 300; n++) {
        struct tsr_image image;
        const size_t size = put_random_model(&r, &image);
        assert_true(get_model(&image, bytes, size));
        assert_int_equal(back.tile_width, model.tile_width);
        assert_int_equal(back.tile_height, model.tile_height);
        assert_int_equal(back.colour, model.colour);
        assert_int_equal(back.colours.packing, model.colours.packing);
        for (int c = 0; c < 3 && model.colours.packing != TSR_COLOURS_PLAIN; c++)
            assert_memory_equal(back.colours.list[c], lists[c], model.colours.count[c] * sizeof lists[c][0]);
        assert_int_equal(back.extends_sign, model.extends_sign);
        assert_int_equal(back.max_error, model.max_error);
        assert_int_equal(back.planes, model.planes);
        for (int p = 0; p < model.planes; p++) {
            const struct tsr_plane_model *a = &model.plane[p], *b = &back.plane[p];
            assert_int_equal(a->present, b->present);
            if (!a->present) continue;
            assert_int_equal(a->minimum, b->minimum);
            assert_int_equal(a->span, b->span);
            assert_int_equal(a->range, b->range);
            assert_int_equal(a->packed, b->packed);
            if (a->packed) assert_memory_equal(a->offset, b->offset, a->range * sizeof a->offset[0]);
            if (a->span == 1) continue;
            assert_int_equal(a->path, b->path);
            assert_int_equal(a->drawn, b->drawn);
            if (a->drawn) continue;
            assert_int_equal(a->coder, b->coder);
            assert_int_equal(a->lossy, b->lossy);
            assert_int_equal(a->qp_index, b->qp_index);
            assert_int_equal(a->coarser_by, b->coarser_by);
            assert_int_equal(a->coarser_from, b->coarser_from);
            assert_int_equal(a->slice_side, b->slice_side);
            assert_int_equal(a->lapping, b->lapping);
            assert_int_equal(a->classes, b->classes);
            assert_int_equal(a->pairs, b->pairs);
            assert_int_equal(a->dc_plane, b->dc_plane);
            assert_int_equal(a->intra, b->intra);
            assert_int_equal(a->dc_qp_index, b->dc_qp_index);
            if (a->coder == TSR_CODER_CAVLC) continue;
            if (a->dc_plane)
                assert_memory_equal(&a->dcs, &b->dcs, a->pairs ? sizeof a->dcs.pair : sizeof a->dcs.coefficient);
            if (a->coder == TSR_CODER_RANS || a->pairs) {
                assert_memory_equal(&a->coefficient, &b->coefficient,
                                    a->pairs ? sizeof a->pair : sizeof a->coefficient);
                continue;
            }
            if (a->path == TSR_PATH_PREDICT) assert_memory_equal(&a->predictor, &b->predictor, sizeof a->predictor);
            if (a->path == TSR_PATH_PREDICT)
                assert_memory_equal(&a->residual, &b->residual, sizeof a->residual);
            else
                assert_memory_equal(&a->run_level, &b->run_level, sizeof a->run_level);
        }
        assert_false(get_model(&image, bytes, size - 1)); /* cut off */
        bytes[size] = 0;
        if (size < sizeof bytes) assert_false(get_model(&image, bytes, size + 1)); /* followed by more */
    }
}

/* FORMAT.md 6.4: planes without lapping have no classes of steps. */
TEST(classes_without_lapping)
{
    struct rng r = {76};
    int tried = 0;
    while (tried < 40) {
        struct tsr_image image;
        (void)put_random_model(&r, &image);
        struct tsr_plane_model *plane = &model.plane[0];
        if (plane->span == 1 || plane->lapping || plane->path == TSR_PATH_PREDICT) continue;
        plane->classes = true;
        memset(bytes, 0, sizeof bytes);
        struct tsr_bit_writer w = tsr_bit_writer(bytes, sizeof bytes);
        tsr_put_frame_model(&w, &image, &model);
        assert_false(get_model(&image, bytes, tsr_flush_bits(&w)));
        tried++;
    }
}

/* FORMAT.md 6.4: predicted tiles are lapped planes', DC planes those of them with rANS or pairs. The q of DC planes has
 * a limit. */
TEST(wrong_dc_planes)
{
    struct rng r = {77};
    int tried[3] = {0};
    while (tried[0] < 20 || tried[1] < 20 || tried[2] < 20) {
        struct tsr_image image;
        (void)put_random_model(&r, &image);
        struct tsr_plane_model *plane = &model.plane[0];
        if (plane->span == 1 || plane->path == TSR_PATH_PREDICT) continue;
        const int which = plane->dc_plane                                                     ? 0
                          : plane->lapping && !plane->pairs && plane->coder != TSR_CODER_RANS ? 1
                                                                                              : 2;
        if (which == 2 && plane->lapping) continue;
        tried[which]++;
        if (which == 0)
            plane->dc_qp_index = rng_between(&r, TSR_QP_INDEX_LIMIT + 1, 1023);
        else if (which == 1 || rng_below(&r, 2))
            plane->dc_plane = true;
        else
            plane->intra = true;
        memset(bytes, 0, sizeof bytes);
        struct tsr_bit_writer w = tsr_bit_writer(bytes, sizeof bytes);
        tsr_put_frame_model(&w, &image, &model);
        assert_false(get_model(&image, bytes, tsr_flush_bits(&w)));
    }
}

/* A damaged model is refused, or lies within all limits. */
TEST(damaged_models)
{
    struct rng r = {74};
    int taken = 0;
    for (int n = 0; n < 1500; n++) {
        struct tsr_image image;
        const size_t size = put_random_model(&r, &image);
        uint8_t *exact = must(malloc(size));
        memcpy(exact, bytes, size);
        for (uint32_t flips = 1 + rng_below(&r, 3); flips > 0; flips--)
            exact[rng_below(&r, (uint32_t)tsr_min((int32_t)size, n % 2 ? 20 : 1 << 20))] ^=
                (uint8_t)(1u << rng_below(&r, 8));
        const bool good = get_model(&image, exact, size);
        free(exact);
        if (!good) continue;
        taken++;
        assert_in_range(back.tile_width, 1, image.columns);
        assert_in_range(back.tile_height, 1, image.rows);
        assert_true((int64_t)back.tile_width * back.tile_height <= TSR_TILE_SAMPLES_LIMIT);
        for (int p = 0; p < back.planes; p++) {
            const struct tsr_plane_model *plane = &back.plane[p];
            if (!plane->present) continue;
            assert_true(plane->minimum + plane->span <= 1u << tsr_plane_bits(&image, &back, p));
            assert_in_range(plane->range, 1, plane->span);
            for (uint32_t i = 0; plane->packed && i < plane->range; i++)
                assert_true(plane->offset[i] < plane->span && (i == 0 || plane->offset[i] > plane->offset[i - 1]));
            assert_in_range(plane->qp_index, 0, TSR_QP_INDEX_LIMIT - plane->coarser_by);
            assert_true(!plane->classes || plane->range == 1 || plane->lapping);
            assert_true(!plane->dc_plane || plane->range == 1 || plane->lapping);
            assert_true(!plane->intra || plane->range == 1 || plane->lapping);
            assert_in_range(plane->dc_qp_index, 0, TSR_QP_INDEX_LIMIT);
            assert_true(!plane->drawn || plane->range == 1 || plane->path == TSR_PATH_PREDICT);
            if (plane->range > 1 && plane->path == TSR_PATH_PREDICT && !plane->drawn && plane->predictor.set != 0) {
                assert_int_not_equal(plane->coder, TSR_CODER_CAVLC);
                assert_true(plane->predictor.shape.references <= tsr_reference_planes(&image, &back, p, NULL));
                assert_in_range(plane->predictor.classes, 1, TSR_CLASS_LIMIT);
            }
            assert_true(plane->slice_side == 0 ||
                        (plane->slice_side >= TSR_SLICE_BLOCKS_LEAST && plane->slice_side <= TSR_SLICE_BLOCKS_LIMIT));
        }
    }
    assert_true(taken > 0);
}

/* The planes to which a plane's predictors may refer, FORMAT.md 7.1: coded first planes before it, nearest first. */
TEST(planes_to_refer_to)
{
    struct tsr_image image = {0};
    static struct tsr_frame_model frame;
    int number[TSR_PLANES_LIMIT];
    image.components = 4;
    image.bits_allocated = 16;
    image.bits_stored = 12;
    for (int p = 0; p < 8; p++) frame.plane[p].range = p == 1 ? 1 : 5;
    static const int wanted[4][3] = {{0}, {0}, {0}, {2, 0}};
    static const int counts[8] = {0, 1, 1, 2, 0, 0, 0, 0};
    for (int p = 0; p < 8; p++) {
        assert_int_equal(tsr_reference_planes(&image, &frame, p, number), counts[p]);
        for (int i = 0; i < counts[p]; i++) assert_int_equal(number[i], wanted[p][i]);
        assert_int_equal(tsr_reference_planes(&image, &frame, p, NULL), counts[p]);
    }
}

/* FORMAT.md 5.3: no piece is empty or longer than a raw one, and sizes have at most 5 bytes. Raw pieces of 5 x 3
 * samples have 15, 2 and 30 bytes. */
TEST(pieces)
{
    static const struct {
        size_t head, first, second, last; /* bytes of each size, sizes of the pieces */
        bool good;
    } cases[] = {{1, 15, 2, 30, true},  {1, 1, 1, 1, true},    {5, 15, 2, 30, true},  {6, 15, 2, 30, false},
                 {1, 16, 2, 30, false}, {1, 15, 3, 30, false}, {1, 15, 2, 31, false}, {1, 0, 2, 30, false},
                 {1, 15, 0, 30, false}, {1, 15, 2, 0, false}};
    static const uint32_t ranges[4] = {256, 1, 2, 65536};
    struct tsr_piece_place piece[TSR_PLANES_LIMIT];
    memset(&model, 0, sizeof model);
    model.planes = 4;
    for (int p = 0; p < 4; p++) {
        model.plane[p].present = true;
        model.plane[p].range = ranges[p];
    }
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        uint8_t payload[100] = {0};
        const size_t heads = 2 * cases[i].head, sizes[2] = {cases[i].first, cases[i].second};
        for (size_t k = 0; k < heads; k++) payload[k] = k % cases[i].head < cases[i].head - 1 ? 0x80 : 0;
        for (size_t k = 0; k < 2; k++) payload[k * cases[i].head] |= (uint8_t)sizes[k];
        const size_t size = heads + sizes[0] + sizes[1] + cases[i].last;
        expect(tsr_cut_pieces(&model, 5, 3, payload, size, piece) == cases[i].good, "case %zu", i);
        if (!cases[i].good) continue;
        assert_int_equal(piece[0].offset, heads);
        assert_int_equal(piece[2].offset, heads + sizes[0]);
        assert_int_equal(piece[3].size, cases[i].last);
    }
}

/* FORMAT.md 7.9: one class of 10 neighbours, all with weight 0 except W. 7.5: the smallest residual model of each
 * coder. */
#define WEIGHTS "0000 1 1 1 1 1 1 1 1 1 "
#define LABELS "1 1 010 00000001 1 "
#define HUFFMAN_MODEL "00000 000000 011 0001010 00000001 0 0 "
#define RANS_MODEL "00000 000 011 0001010 00000001 0 0 "

/* Planes written by hand, FORMAT.md 6.4. */
TEST(planes_by_hand)
{
    static const struct {
        int earlier;
        const char *bits;
        bool good;
    } cases[] = {
        {0, "1 010 0 0 00 00 " HUFFMAN_MODEL, true},
        {0, "1 010 0 0 10 00 " RANS_MODEL, true},
        {0, "1 010 0 0 11", true},                 /* coder 3: drawn */
        {0, "1 010 0 1 11 00 " RANS_MODEL, false}, /* coder 3 of path T, and nothing of it */
        {0, "1 010 0 0 00 01 00 1 " WEIGHTS LABELS HUFFMAN_MODEL, true},
        {0, "1 010 0 0 10 01 00 1 " WEIGHTS LABELS RANS_MODEL, true},
        {0, "1 010 0 0 01 01 00 1 " WEIGHTS LABELS "00100", false}, /* CAVLC has no predictors */
        {1, "1 010 0 0 00 01 01 1 0000 1 1 1 1 1 1 1 1 1 1 1 1 1 " LABELS HUFFMAN_MODEL, true},
        {0, "1 010 0 0 00 01 01 1 0000 1 1 1 1 1 1 1 1 1 1 1 1 1 " LABELS HUFFMAN_MODEL, false}, /* no plane */
        {3, "1 010 0 0 00 01 10 1 0000 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 " LABELS HUFFMAN_MODEL, true},
        {1, "1 010 0 0 00 01 10 1 0000 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 " LABELS HUFFMAN_MODEL, false},
        {3, "1 010 0 0 00 01 11 1 0000 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 " LABELS HUFFMAN_MODEL, false}, /* 3 */
        {0, "1 1", true},                                       /* minimum 0, span 1: constant */
        {0, "1 010 0 1 01 0 00100", true},                      /* span 2, path T, CAVLC, no loss, slices of 4 */
        {0, "1 010 0 1 01 0 011", false},                       /* slices of 3 */
        {0, "1 010 0 1 01 0 0000001000000", true},              /* slices of 64 */
        {0, "1 010 0 1 01 0 0000001000001", false},             /* slices of 65 */
        {0, "1 010 0 1 10 0 00100 0000 00000", true},           /* path T, rANS, no tables */
        {0, "1 010 0 1 00 0 1 00100 0000 0000000", true},       /* path T, pairs, no tables */
        {0, "1 010 0 0 01 00 00100", true},                     /* path P, CAVLC */
        {0, "1 010 0 1 01 1 1100011000 1 0 00100", true},       /* q 792 */
        {0, "1 010 0 1 01 1 1100011001 1 0 00100", false},      /* q 793 */
        {0, "1 010 0 1 01 1 1100010111 010 011 0 00100", true}, /* q 791, then 792 */
        {0, "1 010 0 1 01 1 1100011000 010 1 0 00100", false},  /* q 792, then 793 */
        {0, "1 011 1 1 1 1 0 01 00 00100", true},               /* span 3: in use, not in use, in use */
        {0, "1 011 1 011 0 01 00 00100", true},                 /* packed, but all three in use */
        {0, "1 011 1 00100 0 01 00 00100", false},              /* 4 of 3 in use */
        {0, "1 011 1 1 010 1 0 01 00 00100", false},            /* the last one not in use */
        {0, "00000000000000001 0000000000000000 1", true},      /* minimum 65535, span 1 */
        {0, "00000000000000001 0000000000000001 1", false},     /* minimum 65536 */
        {0, "00000000000000001 0000000000000000 010", false},   /* minimum 65535, span 2 */
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct tsr_plane_model plane;
        uint8_t string[64];
        plane.offset = offsets[0];
        struct tsr_bit_writer w = tsr_bit_writer(string, sizeof string);
        for (const char *c = cases[i].bits; *c; c++)
            if (*c != ' ') tsr_put_bits(&w, *c == '1', 1);
        const size_t size = tsr_flush_bits(&w);
        struct tsr_bit_reader reader = tsr_bit_reader(string, size);
        expect((tsr_get_plane_head(&reader, &plane, 65536) && tsr_get_plane_model(&reader, &plane, cases[i].earlier)) ==
                   cases[i].good,
               "case %zu", i);
        if (cases[i].good) expect(tsr_bits_ended(&reader), "case %zu", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cutting_tiles),           cmocka_unit_test(tiles_cover_the_frame),
        cmocka_unit_test(bits_of_planes),          cmocka_unit_test(models_round_trip),
        cmocka_unit_test(classes_without_lapping), cmocka_unit_test(wrong_dc_planes),
        cmocka_unit_test(damaged_models),          cmocka_unit_test(pieces),
        cmocka_unit_test(planes_to_refer_to),      cmocka_unit_test(planes_by_hand)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
