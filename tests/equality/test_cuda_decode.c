/* The CUDA engine's decoder against the CPU engine's, on whole frames that the CPU engine coded, sound and damaged.
 * Anchored residuals both ways. */
#include "kernels/transform_plan.h"
#include "both_engines.h"

/* What a frame's model says: the packing of its colours, and how many of its planes are anchored. */
struct told_by_model {
    enum tsr_colour_packing packing;
    int anchored, dc_planes, coded;
    bool drawn;
};

static struct told_by_model read_model(const struct coded_frames *c, uint32_t frame)
{
    struct tsr_frame_model *model = must(malloc(sizeof *model));
    uint16_t *lists = must(malloc((TSR_PLANES_LIMIT + 3) * 65536 * sizeof *lists));
    struct tsr_bit_reader reader = tsr_bit_reader(c->model[frame].bytes, c->model[frame].size);
    for (int p = 0; p < TSR_PLANES_LIMIT; p++) model->plane[p].offset = lists + (size_t)p * 65536;
    for (int k = 0; k < 3; k++) model->colours.list[k] = lists + (size_t)(TSR_PLANES_LIMIT + k) * 65536;
    assert_true(tsr_get_frame_model(&reader, &c->image, model));
    struct told_by_model told = {model->colours.packing, 0, 0, 0, false};
    for (int p = 0; p < model->planes; p++)
        if (tsr_is_coded(&model->plane[p])) {
            told.coded++;
            told.anchored += tsr_is_of_lanes(&model->plane[p]) && model->plane[p].predictor.anchored;
            told.dc_planes += model->plane[p].dc_plane;
            told.drawn |= model->plane[p].drawn;
        }
    free(lists);
    free(model);
    return told;
}

/* How many frames are no drawn ones, and so are the GPU's. */
static uint32_t count_undrawn(const struct coded_frames *c, const struct tsr_coding *coding)
{
    uint32_t count = c->frames;
    for (uint32_t f = 0; f < c->frames && tsr_tries_drawn(coding); f++) count -= read_model(c, f).drawn;
    return count;
}

/* Codes and decodes frames of this content. The GPU must decode them all if it can decode such frames at all. */
static void check_coding(struct rng *r, const struct tsr_image *image, const struct tsr_coding *coding, int content,
                         uint32_t frames)
{
    if (skip_case()) return;
    const size_t bytes = raster_bytes(image);
    uint8_t *rasters = must(malloc(frames * bytes));
    for (uint32_t f = 0; f < frames; f++) fill_raster(r, image, (content + (int)f) % CONTENTS, rasters + f * bytes);
    struct coded_frames c = code_frames(cpu, image, coding, rasters, frames, NULL);
    const uint32_t done = check_decoding(&c);
    if (!tsr_may_have_intra(coding) && (image->bits_allocated == 8 || image->bits_allocated == 16))
        expect(done == count_undrawn(&c, coding), "%u of %u frames on the GPU", done, frames);
    free_frames(&c);
    free(rasters);
}

static struct tsr_coding predictive(int effort, enum tsr_coder coder)
{
    struct tsr_coding coding = {.path = TSR_PATH_PREDICT, .coder = coder, .effort = effort};
    return coding;
}

/* All efforts, depths and both coders. */
TEST(efforts)
{
    static const int bits[] = {8, 10, 12, 16};
    struct rng r = {501};
    for (int effort = 1; effort <= 9; effort++)
        for (int n = 0; n < 4; n++)
            for (int rans = effort == 1 ? 0 : n & 1; rans < (small_only() ? (n & 1) + 1 : 2); rans++) {
                struct tsr_image image =
                    plain_image(48 + (uint32_t)(9 * n + effort), 44 - (uint32_t)(5 * n), 1, bits[n]);
                image.is_signed = (effort + n) & 1;
                const struct tsr_coding coding = predictive(effort, rans ? TSR_CODER_RANS : TSR_CODER_HUFFMAN);
                check_coding(&r, &image, &coding, 5, 1);
                check_coding(&r, &image, &coding, effort + n, 2);
            }
}

/* The smallest tiles, and tiles whose sides are not multiples of any unit. */
TEST(shapes)
{
    static const uint32_t shapes[][2] = {{1, 1},  {1, 2},  {2, 1},   {3, 3},   {4, 5},     {5, 4},    {7, 9},
                                         {16, 3}, {17, 2}, {1, 300}, {300, 1}, {33, 31},   {64, 64},  {65, 20},
                                         {8, 70}, {12, 9}, {31, 8},  {130, 3}, {1030, 66}, {300, 260}};
    struct rng r = {502};
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        const struct tsr_image image = plain_image(shapes[i][0], shapes[i][1], 1, i % 2 ? 16 : 12);
        for (int effort = 2; effort < 9; effort += 3) {
            const struct tsr_coding coding =
                predictive(effort, (i + (size_t)effort) % 2 ? TSR_CODER_RANS : TSR_CODER_HUFFMAN);
            check_coding(&r, &image, &coding, 5, shapes[i][0] < 100 ? 3 : 1);
        }
    }
}

/* Tiles of 16 lanes, two to a warp. */
TEST(many_lanes)
{
    struct rng r = {503};
    const struct tsr_image image = plain_image(256, 256, 1, 12);
    for (int effort = 5; effort < 9; effort += 3) {
        const struct tsr_coding coding = predictive(effort, effort == 5 ? TSR_CODER_HUFFMAN : TSR_CODER_RANS);
        check_coding(&r, &image, &coding, 5, 2);
    }
}

/* Small frames, several to a warp, each with its own model. */
TEST(many_frames)
{
    struct rng r = {504};
    const struct tsr_image image = plain_image(40, 36, 1, 16);
    for (int effort = 1; effort < 9; effort += 4) {
        const struct tsr_coding coding = predictive(effort, TSR_CODER_HUFFMAN);
        check_coding(&r, &image, &coding, effort, 13);
    }
}

/* Any layout of words: colours, earlier planes as references, second planes, planar, swapped, big endian. */
TEST(random_frames)
{
    struct rng r = {505};
    for (int n = 0; n < (small_only() ? 40 : 200); n++) {
        const struct tsr_image image = random_image(&r, n % 4 ? 30 : 70);
        struct tsr_coding coding =
            predictive(1 + n % 9, n % 9 && rng_below(&r, 2) ? TSR_CODER_RANS : TSR_CODER_HUFFMAN);
        if (n % 5 == 0 && (image.bits_allocated == 8 || image.bits_allocated == 16) && image.bits_stored > 3) {
            coding.lossy = true;
            coding.max_error = 1 + rng_below(&r, 3);
        }
        check_coding(&r, &image, &coding, n % CONTENTS, 1 + (uint32_t)n % 3);
    }
}

/* Flat blocks, and runs to the ends of rows. With three components or more, packed colours. */
TEST(screens)
{
    struct rng r = {511};
    int packings[3] = {0, 0, 0};
    for (int n = 0; n < (small_only() ? 30 : 90); n++) {
        struct tsr_image image = plain_image(60 + (uint32_t)n % 71, 50, 1, n % 3 == 2 ? 16 : 8);
        image.components = (uint8_t)(n % 5 < 2 ? 1 + n % 5 : 3 + n % 2);
        image.planar = n % 4 == 1;
        uint8_t *raster = must(malloc(raster_bytes(&image)));
        fill_screen(&r, &image, n % 2 ? 7 : 250, 1 + (uint32_t)n % 31, n % 5 == 1 || n % 10 == 3, raster);
        if (n % 5 == 4 && image.bits_stored == 8) /* steps in one component only */
            for (size_t i = 0; i < (size_t)image.columns * image.rows; i++)
                for (int c = 0; c < 3; c++)
                    put_word(&image, raster, word_place(&image, c, i),
                             c == 1 ? rng_below(&r, 9) * 16 : 64 + rng_below(&r, 192));
        struct tsr_coding coding = predictive(1 + n % 9, n % 9 && n % 7 < 3 ? TSR_CODER_RANS : TSR_CODER_HUFFMAN);
        if (n % 11 == 3) {
            coding.lossy = true;
            coding.max_error = 1;
        }
        struct coded_frames c = code_frames(cpu, &image, &coding, raster, 1, NULL);
        assert_int_equal(check_decoding(&c), count_undrawn(&c, &coding));
        if (image.components >= 3) packings[read_model(&c, 0).packing]++;
        const struct tsr_segment model = c.model[0];
        uint8_t *copy = must(malloc(model.size));
        for (int damage = 0; damage < 8 && model.size; damage++) { /* damage includes lists with other values */
            if (skip_case()) continue;
            memcpy(copy, model.bytes, model.size);
            copy[rng_below(&r, (uint32_t)(model.size < 40 ? model.size : 40))] ^= (uint8_t)(1u << rng_below(&r, 8));
            c.model[0].bytes = copy;
            check_decoding(&c);
        }
        free(copy);
        free_frames(&c);
        free(raster);
    }
    for (int packing = 0; packing < 3; packing++) expect(packings[packing] > 0, "no frame with packing %d", packing);
}

/* Colours whose differences repeat those of their neighbours, which anchors are for, beside noise, which is not. flat:
 * of this many rows, the last ones are flat. */
static void fill_lattice(struct rng *r, const struct tsr_image *image, uint32_t flat, uint8_t *raster)
{
    enum { MOST_COLUMNS = 1100, COMPONENTS = 4 };
    static uint32_t level[MOST_COLUMNS][COMPONENTS];
    const uint32_t values = 1u << image->bits_stored, step = values / 40 + 1;
    assert_true(image->columns <= MOST_COLUMNS && image->components <= COMPONENTS);
    memset(level, 0, sizeof level);
    for (uint32_t y = 0; y < image->rows; y++)
        for (uint32_t x = 0; x < image->columns; x++) {
            const uint32_t grey = values / 8 + (x * 3 + y * 2) % 97 * (values / 256) + rng_below(r, values / 16);
            for (uint32_t c = 0; c < image->components; c++) {
                if (x > 0 && rng_below(r, 3) == 0) level[x][c] = level[x - 1][c];
                if (rng_below(r, 6) == 0) level[x][c] = rng_below(r, 5) * step;
                const bool is_flat = y + flat >= image->rows;
                put_word(image, raster, word_place(image, (int)c, (size_t)y * image->columns + x),
                         is_flat ? c * step : grey + (c == 1 ? 0 : level[x][c]));
            }
        }
}

/* Codes frames with both engines and decodes them with both, sound and damaged; large ones are only coded. Adds up what
 * their models say. */
static void check_engines(struct rng *r, const struct tsr_image *image, const struct tsr_coding *coding,
                          const uint8_t *rasters, uint32_t frames, struct told_by_model *sum)
{
    const bool is_predicted = tsr_may_have_intra(coding);
    assert_int_equal(check_frames(image, coding, rasters, frames),
                     is_predicted ? 0 : count_plain(image, coding, rasters, frames));
    struct coded_frames c = code_frames(cpu, image, coding, rasters, frames, NULL);
    for (uint32_t f = 0; f < frames; f++) {
        const struct told_by_model told = read_model(&c, f);
        sum->anchored += told.anchored;
        sum->dc_planes += told.dc_planes;
        sum->coded += told.coded;
    }
    const bool is_large = raster_bytes(image) > 1 << 16;
    if (!is_large) {
        const uint32_t done = check_decoding(&c);
        assert_true(is_predicted || done == count_undrawn(&c, coding));
    }
    const struct tsr_segment tile = c.tile[0];
    uint8_t *copy = must(malloc(tile.size));
    for (int damage = 0; damage < 3 && !is_large; damage++) {
        memcpy(copy, tile.bytes, tile.size);
        copy[rng_below(r, (uint32_t)tile.size)] ^= (uint8_t)(1u << rng_below(r, 8));
        c.tile[0].bytes = copy;
        check_decoding(&c);
    }
    free(copy);
    free_frames(&c);
}

static void check_lattices(struct rng *r, const struct tsr_image *image, const struct tsr_coding *coding,
                           uint32_t frames, struct told_by_model *sum)
{
    const size_t bytes = raster_bytes(image);
    uint8_t *rasters = must(malloc(frames * bytes));
    for (uint32_t f = 0; f < frames; f++)
        if (f == 2)
            fill_raster(r, image, coding->coder == TSR_CODER_RANS ? 0 : 5, rasters + f * bytes);
        else
            fill_lattice(r, image, f == 1 ? image->rows / 3 : 0, rasters + f * bytes);
    check_engines(r, image, coding, rasters, frames, sum);
    free(rasters);
}

/* Anchored planes and others, by both coders, with neighbours of three and of four rows; several tiles, some frames a
 * warp, and so many samples that the trial looks at some rows alone. */
TEST(anchors)
{
    static const struct {
        uint32_t columns, rows, frames;
        int components, bits;
    } shapes[] = {{44, 37, 3, 3, 8},  {43, 30, 2, 4, 16}, {1030, 6, 1, 3, 8},
                  {33, 40, 2, 3, 12}, {9, 17, 3, 3, 8},   {1024, 64, 1, 3, 8}};
    struct told_by_model sum = {TSR_COLOURS_PLAIN, 0, 0, 0, false};
    struct rng r = {520};
    for (size_t n = 0; n < COUNT_OF(shapes); n++)
        for (int k = 0; k < (n == 5 ? 1 : 4); k++) {
            if (k > 0 && skip_case()) continue;
            struct tsr_image image =
                plain_image(shapes[n].columns, shapes[n].rows, shapes[n].components, shapes[n].bits);
            image.planar = n % 2;
            const struct tsr_coding coding = predictive(k / 2 ? 9 : 5, k % 2 ? TSR_CODER_RANS : TSR_CODER_HUFFMAN);
            check_lattices(&r, &image, &coding, shapes[n].frames, &sum);
        }
    printf("%d of %d planes are anchored\n", sum.anchored, sum.coded);
    expect(sum.anchored >= 8 && sum.coded - sum.anchored >= 8, "%d of %d planes are anchored", sum.anchored, sum.coded);
}

/* Planes whose DCs are a plane of their own, and others, by both coders: one tile and several, with slices and tiles
 * that are not whole; wide and narrow coefficients; classes of steps, two steps in a frame, colours. */
TEST(dc_planes)
{
    static const struct {
        uint32_t columns, rows;
        int components, bits;
    } shapes[] = {{130, 70, 1, 8},   {17, 16, 1, 12}, {300, 259, 1, 16}, {1100, 70, 1, 8},
                  {70, 1100, 1, 12}, {90, 75, 3, 8},  {16, 15, 1, 8},    {400, 330, 1, 8}};
    struct told_by_model sum = {TSR_COLOURS_PLAIN, 0, 0, 0, false};
    struct rng r = {521};
    for (size_t n = 0; n < COUNT_OF(shapes); n++)
        for (int k = 0; k < 6; k++) {
            if (k > 0 && skip_case()) continue;
            const struct tsr_image image =
                plain_image(shapes[n].columns, shapes[n].rows, shapes[n].components, shapes[n].bits);
            struct tsr_coding coding = {.path = TSR_PATH_TRANSFORM, .lossy = true, .effort = 5 + (k + (int)n) % 5};
            coding.coder = (k + (int)n) % 2 ? TSR_CODER_RANS : TSR_CODER_HUFFMAN;
            coding.tune = k / 2 % 2 ? TSR_TUNE_SSIM : TSR_TUNE_PSNR;
            coding.qp_eighths = TSR_QP_UNIT * (14 + 7 * k);
            if (k % 3 == 2) coding.coarser_by = 9;
            coding.coarser_from = image.columns * image.rows / 3;
            const size_t bytes = raster_bytes(&image);
            const uint32_t frames = 1 + (uint32_t)n % 3;
            uint8_t *rasters = must(malloc(frames * bytes));
            for (uint32_t f = 0; f < frames; f++)
                if (f == 1)
                    fill_raster(&r, &image, (int)n % CONTENTS, rasters + f * bytes);
                else
                    fill_smooth(&r, &image, rasters + f * bytes);
            check_engines(&r, &image, &coding, rasters, frames, &sum);
            free(rasters);
        }
    printf("%d of %d planes have planes of DCs\n", sum.dc_planes, sum.coded);
    expect(sum.dc_planes >= 4 && sum.coded - sum.dc_planes >= 4, "%d of %d planes have planes of DCs", sum.dc_planes,
           sum.coded);
}

/* Path T and CAVLC, which have stages of their own. */
TEST(transform)
{
    struct rng r = {506};
    for (int n = 0; n < (small_only() ? 16 : 60); n++) {
        struct tsr_image image = random_image(&r, 70);
        while (image.bits_allocated != 8 && image.bits_allocated != 16) image = random_image(&r, 70);
        struct tsr_coding coding = {.path = TSR_PATH_TRANSFORM, .coder = (enum tsr_coder)(n % 3), .effort = 1 + n % 9};
        if (coding.coder == TSR_CODER_RANS && coding.effort < 2) coding.effort = 2;
        coding.lossy = n % 2;
        if (coding.lossy) coding.qp_eighths = rng_between(&r, tsr_lowest_qp(image.bits_stored), TSR_HIGHEST_QP);
        if (coding.lossy && n / 2 % 2) coding.tune = TSR_TUNE_SSIM;
        check_coding(&r, &image, &coding, n % CONTENTS, 1 + (uint32_t)n % 2);
    }
}

/* Frames that differ from the first one: other tiles, and other paths than the batch has room for. */
TEST(mixed)
{
    struct rng r = {508};
    const struct tsr_image image = plain_image(128, 64, 1, 12);
    const struct tsr_coding codings[] = {
        predictive(5, TSR_CODER_HUFFMAN), {.path = TSR_PATH_TRANSFORM, .coder = TSR_CODER_HUFFMAN, .effort = 1},
        predictive(2, TSR_CODER_RANS),    predictive(9, TSR_CODER_RANS),
        predictive(3, TSR_CODER_HUFFMAN),
    };
    enum { FRAMES = COUNT_OF(codings) };
    struct coded_frames each[FRAMES], all = {.image = image, .frames = FRAMES, .tiles = 1};
    struct tsr_segment model[FRAMES], tile[FRAMES];
    uint8_t *raster = must(malloc(raster_bytes(&image)));
    for (int i = 0; i < FRAMES; i++) {
        fill_raster(&r, &image, 5, raster);
        each[i] = code_frames(cpu, &image, &codings[i], raster, 1, NULL);
        assert_int_equal(each[i].tiles, 1);
        model[i] = each[i].model[0];
        tile[i] = each[i].tile[0];
    }
    all.model = model;
    all.tile = tile;
    assert_int_equal(check_decoding(&all), FRAMES - 1);
    model[1] = model[0]; /* a tile that is not of path P */
    assert_int_equal(check_decoding(&all), FRAMES);
    all.frames = 3;
    model[0].size = 3; /* a model that is cut off, and one with one byte too few */
    model[2].size--;
    check_decoding(&all);
    for (int i = 0; i < FRAMES; i++) free_frames(&each[i]);
    free(raster);
}

/* Flips the last bits of tiles with long runs. Some runs become longer than the rest of their row, and end with it. */
TEST(runs_beyond_rows)
{
    struct rng r = {509};
    for (int n = 0; n < (small_only() ? 6 : 40); n++) {
        struct tsr_image image = plain_image(20 + (uint32_t)n, 9, 1, 12);
        uint8_t *raster = must(calloc(1, raster_bytes(&image)));
        raster[2 * rng_below(&r, image.columns * 9)] = 1;
        raster[2 * rng_below(&r, image.columns * 9)] = 2;
        const struct tsr_coding coding = predictive(2, TSR_CODER_HUFFMAN);
        struct coded_frames c = code_frames(cpu, &image, &coding, raster, 1, NULL);
        const struct tsr_segment tile = c.tile[0];
        uint8_t *copy = must(malloc(tile.size + 1));
        const uint32_t bits = 8 * (uint32_t)tile.size;
        for (uint32_t bit = bits > 48 ? bits - 48 : 0; bit < bits; bit++) {
            if (skip_case()) continue;
            memcpy(copy, tile.bytes, tile.size);
            copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
            c.tile[0].bytes = copy;
            check_decoding(&c);
        }
        free(copy);
        free_frames(&c);
        free(raster);
    }
}

/* Of several corrupt tiles the first is reported. */
TEST(damaged_tiles)
{
    struct rng r = {510};
    const struct tsr_image image = plain_image(2060, 18, 1, 12); /* three tiles */
    uint8_t *raster = must(malloc(raster_bytes(&image)));
    fill_raster(&r, &image, 5, raster);
    for (int rans = 0; rans < 2; rans++) {
        const struct tsr_coding coding = predictive(5, rans ? TSR_CODER_RANS : TSR_CODER_HUFFMAN);
        struct coded_frames c = code_frames(cpu, &image, &coding, raster, 1, NULL);
        assert_int_equal(c.tiles, 3);
        for (int bad = 1; bad < 8; bad++) { /* these tiles lose their last two bytes */
            if (skip_case()) continue;
            struct tsr_segment tile[3];
            memcpy(tile, c.tile, sizeof tile);
            for (int t = 0; t < 3; t++) c.tile[t].size -= bad >> t & 1 ? 2 : 0;
            check_decoding(&c);
            memcpy(c.tile, tile, sizeof tile);
        }
        free_frames(&c);
    }
    free(raster);
}

/* Flipped bits, pieces cut off and bytes added: both engines find the same, and nothing else happens. */
TEST(damage)
{
    struct rng r = {507};
    uint32_t corrupt = 0;
    for (int n = 0; n < (small_only() ? 30 : 120); n++) {
        struct tsr_image image = plain_image(24 + (uint32_t)n % 40, 20 + (uint32_t)n % 17, 1, n % 3 ? 16 : 12);
        if (n % 6 == 5) image.components = 3;
        const struct tsr_coding coding = predictive(2 + n % 7, n % 2 ? TSR_CODER_RANS : TSR_CODER_HUFFMAN);
        uint8_t *raster = must(malloc(raster_bytes(&image)));
        fill_raster(&r, &image, n % 2 ? 5 : 2, raster);
        struct coded_frames c = code_frames(cpu, &image, &coding, raster, 1, NULL);
        const struct tsr_segment model = c.model[0], tile = c.tile[0];
        for (int damage = 0; damage < 6; damage++) {
            if (skip_case()) continue;
            struct tsr_segment *const victim = damage == 5 ? &c.model[0] : &c.tile[0];
            if (victim->size == 0) continue;
            uint8_t *copy = must(malloc(victim->size + 4));
            memcpy(copy, victim->bytes, victim->size);
            memset(copy + victim->size, n, 4);
            if (damage == 3)
                victim->size = rng_below(&r, (uint32_t)victim->size);
            else if (damage == 4)
                victim->size += 1 + rng_below(&r, 4);
            else
                for (uint32_t flips = 1 + rng_below(&r, 3); flips > 0; flips--)
                    copy[rng_below(&r, (uint32_t)victim->size)] ^= (uint8_t)(1u << rng_below(&r, 8));
            victim->bytes = copy;
            check_decoding(&c);
            c.model[0] = model;
            c.tile[0] = tile;
            free(copy);
            corrupt++;
        }
        free_frames(&c);
        free(raster);
    }
    assert_true(corrupt > 100 || getenv("TSR_TEST_SMALL"));
}

int main(void)
{
    if (!has_device()) return SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(efforts),       cmocka_unit_test(shapes),        cmocka_unit_test(many_lanes),
        cmocka_unit_test(many_frames),   cmocka_unit_test(random_frames), cmocka_unit_test(transform),
        cmocka_unit_test(damage),        cmocka_unit_test(mixed),         cmocka_unit_test(runs_beyond_rows),
        cmocka_unit_test(damaged_tiles), cmocka_unit_test(screens),       cmocka_unit_test(anchors),
        cmocka_unit_test(dc_planes),
    };
    if (getenv("TSR_TEST")) cmocka_set_test_filter(getenv("TSR_TEST"));
    return cmocka_run_group_tests(tests, create_engines, destroy_engines);
}
