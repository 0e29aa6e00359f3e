/* The CUDA engine against the CPU engine and its functions: single stages, training on random counts, whole frames. */
#include "both_engines.h"

#include <pthread.h>

#include "kernels/effort.h"
#include "kernels/batch/policies_cuda.h"
#include "kernels/batch/batch_predict_cuda.h"
#include "kernels/batch/batch_transform_cuda.h"
#include "kernels/planes/planes_cpu.h"
#include "kernels/planes/ranges_cpu.h"
#include "kernels/blocks/blocks_cpu.h"
#include "kernels/tables/merge_cells_cpu.h"

/* ---- Stages --------------------------------------------------------------------------------------------------- */

static void *copy_of(const void *device, size_t bytes)
{
    void *host = must(malloc(bytes + 1));
    if (bytes) must_cuda(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost));
    return host;
}

/* Copies the coefficients of a tile's blocks from the device's order to the order of tsr_blocks_forward. */
static void gather_coefficients(const struct tsr_cuda_batch *b, const void *coefficients, uint32_t plane, uint32_t tile,
                                int32_t *out)
{
    const struct tsr_tile_place place = tsr_tile_place(b, tile);
    const struct tsr_block_grid grid = tsr_block_grid(place.tile.width, place.tile.height, TSR_SLICE_BLOCKS);
    for (int32_t row = 0; row < grid.rows; row++)
        for (int32_t column = 0; column < grid.columns; column++, out += 16) {
            const uint32_t slice =
                place.first_slice + (uint32_t)(row / 16) * place.slice_columns + (uint32_t)(column / 16);
            for (uint32_t i = 0; i < 16; i++) {
                const size_t at = tsr_coefficient_place((size_t)plane * b->shape.slices + slice, i / 4,
                                                        (uint32_t)(16 * (row % 16) + column % 16)) +
                                  i % 4;
                out[i] =
                    b->transform.narrow ? ((const int16_t *)coefficients)[at] : ((const int32_t *)coefficients)[at];
            }
        }
}

/* The results of the stages, copied to the host. */
struct stage_results {
    struct tsr_cuda_batch b;
    uint16_t *samples;
    void *coefficients;
    struct tsr_frame_state *frame;
    struct tsr_plane_state *state;
    struct tsr_run_level_model *models; /* null: CAVLC */
    uint64_t *offset;
    uint32_t *size;
    uint8_t *payloads;
};

static struct stage_results results_of(const struct tsr_cuda_batch *b)
{
    const struct tsr_batch_shape *shape = &b->shape;
    const size_t tiles = (size_t)shape->planes * shape->tiles;
    struct stage_results got = {.b = *b};
    got.samples = copy_of(b->shared.samples, shape->planes * shape->plane_samples * sizeof(uint16_t));
    got.coefficients =
        copy_of(b->transform.coefficients, (size_t)shape->planes * shape->slices * 4096 *
                                               (b->transform.narrow ? sizeof(int16_t) : sizeof(int32_t)));
    got.frame = copy_of(b->shared.frame, shape->frames * sizeof *got.frame);
    got.state = copy_of(b->shared.plane, shape->planes * sizeof *got.state);
    if (b->transform.model) got.models = copy_of(b->transform.model, shape->planes * sizeof *got.models);
    got.offset = copy_of(b->shared.payload_offset, (tiles + 1) * sizeof *got.offset);
    got.size = copy_of(b->shared.payload_size, tiles * sizeof *got.size);
    assert_true(got.offset[tiles] <= b->shared.payload_bytes);
    got.payloads = copy_of(b->shared.payloads, (size_t)got.offset[tiles]);
    return got;
}

static void free_results(struct stage_results *got)
{
    free(got->payloads);
    free(got->size);
    free(got->offset);
    free(got->models);
    free(got->state);
    free(got->frame);
    free(got->coefficients);
    free(got->samples);
}

/* The codewords of a plane's tables. */
static void codes_of(const struct tsr_run_level_model *model, struct tsr_run_level_codes *codes)
{
    for (int t = 0; t < model->dc_tables; t++)
        tsr_huffman_codewords(model->dc_lengths[t], TSR_DC_SYMBOLS, codes->dc[t]);
    for (int t = 0; t < model->ac_tables; t++)
        tsr_huffman_codewords(model->ac_lengths[t], TSR_AC_SYMBOLS, codes->ac[t]);
}

/* Checks the coefficients and the payload of tile t of plane p, which has these values. */
static void check_stage_tile(const struct stage_results *got, uint32_t p, uint32_t t, struct tsr_tile tile,
                             const uint16_t *values, struct tsr_block_coding blocks,
                             const struct tsr_run_level_codes *codes)
{
    const uint32_t number = p * got->b.shape.tiles + t;
    const size_t places = tsr_tile_coefficients(tile.width, tile.height),
                 raw = tsr_raw_tile_bytes(blocks.range, tile.width, tile.height);
    int32_t *expected = must(malloc(places * sizeof *expected)), *found = must(malloc(places * sizeof *found));
    tsr_blocks_forward(values, tile, blocks, expected);
    gather_coefficients(&got->b, got->coefficients, p, t, found);
    for (size_t i = 0; i < places; i++)
        expect(found[i] == expected[i], "plane %u tile %u: coefficient %zu is %d, not %d", p, t, i, found[i],
               expected[i]);
    uint8_t *payload = must(malloc(raw + 1));
    const size_t coded = tsr_code_slices(expected, tile, TSR_SLICE_BLOCKS, got->models ? codes : NULL,
                                         got->models ? &got->models[p] : NULL, payload, raw - 1);
    assert_int_equal(got->size[number], coded ? coded : raw);
    if (coded) assert_memory_equal(payload, got->payloads + got->offset[number], coded);
    free(payload);
    free(found);
    free(expected);
}

/* Checks plane p of the batch: its values, its range and its tiles. values: the right ones; they are turned into
 * indices. model: has the tiles of its frame. */
static void check_stage_plane(const struct stage_results *got, uint32_t p, uint16_t *values,
                              const struct tsr_frame_model *model)
{
    const struct tsr_cuda_batch *b = &got->b;
    const struct tsr_image *image = &b->shape.image;
    const bool lossy = b->shape.coding.lossy;
    const struct tsr_plane_state state = got->state[p];
    struct tsr_range_work *work = must(malloc(sizeof *work));
    struct tsr_run_level_codes *codes = must(malloc(sizeof *codes));
    struct tsr_plane_model plane = {.offset = must(malloc(65536 * sizeof(uint16_t)))};
    for (size_t i = 0; i < (size_t)image->columns * image->rows; i++)
        expect(got->samples[p * b->shape.plane_samples + i / image->columns * b->shape.pitch + i % image->columns] ==
                   values[i],
               "plane %u, value %zu", p, i);
    tsr_choose_range(values, image->columns, image->rows, lossy ? TSR_PACK_NOTHING : TSR_PACK_IF_IT_PAYS, &plane, work);
    assert_int_equal(plane.minimum, 65535u - state.not_minimum);
    assert_int_equal(plane.span, tsr_state_span(state));
    assert_int_equal(plane.packed, state.packed);
    assert_int_equal(plane.range, state.range);
    const struct tsr_block_coding blocks = {.kind = lossy ? TSR_BLOCKS_QUANTISED : TSR_BLOCKS_REVERSIBLE,
                                            .qp_index = b->transform.plan.qp_index,
                                            .coarser_by = (int32_t)b->transform.plan.coarser_by,
                                            .coarser_from = b->transform.plan.coarser_from,
                                            .range = plane.range,
                                            .slice_side = TSR_SLICE_BLOCKS};
    if (got->models && plane.span > 1) codes_of(&got->models[p], codes);
    for (uint32_t t = 0; t < b->shape.tiles; t++) {
        assert_int_equal(got->offset[p * b->shape.tiles + t] % 16, 0);
        if (plane.span == 1)
            assert_int_equal(got->size[p * b->shape.tiles + t], 0);
        else
            check_stage_tile(got, p, t, tsr_tile_at(image, model, t), values, blocks, codes);
    }
    free(plane.offset);
    free(codes);
    free(work);
}

/* Runs all stages on frames of one image. Checks each against the CPU's function on the stage's right input. */
static void check_stages(const struct tsr_image *image, const struct tsr_coding *coding, const uint8_t *rasters,
                         uint32_t frames)
{
    if (skip_case()) return;
    struct tsr_cuda_batch b;
    const size_t frame_bytes = raster_bytes(image), count = (size_t)image->columns * image->rows;
    struct device_buffer arena = device_buffer(tsr_cuda_lay_out(&b, image, coding, frames, NULL, NULL));
    tsr_cuda_lay_out(&b, image, coding, frames, NULL, arena.bytes);
    must_cuda(cudaMemcpy(arena.bytes, rasters, frames * frame_bytes, cudaMemcpyHostToDevice));
    must_cuda(tsr_cuda_encode_batch(&b, 0));
    must_cuda(cudaDeviceSynchronize());
    struct stage_results got = results_of(&b);
    struct tsr_frame_model *model = must(calloc(1, sizeof *model));
    uint16_t *planes[TSR_PLANES_LIMIT];
    for (int p = 0; p < TSR_PLANES_LIMIT; p++) planes[p] = must(malloc(count * sizeof(uint16_t)));
    model->tile_width = b.shape.tile_width;
    model->tile_height = b.shape.tile_height;
    assert_int_equal(tsr_tile_count(image, model), b.shape.tiles);
    for (uint32_t f = 0; f < frames; f++) {
        tsr_split_raster(image, rasters + f * frame_bytes, planes, model);
        enum tsr_colour colour = TSR_COLOUR_NONE;
        if (image->components >= 3) {
            colour = tsr_choose_colour(planes, image->columns, image->rows, tsr_sample_bits(image), coding);
            tsr_apply_colour(planes, count, colour, tsr_sample_bits(image));
        }
        assert_int_equal(got.frame[f].colour, colour);
        for (uint32_t c = 0; c < b.shape.components; c++)
            check_stage_plane(&got, f * b.shape.components + c, planes[c], model);
    }
    for (int p = 0; p < TSR_PLANES_LIMIT; p++) free(planes[p]);
    free(model);
    free_results(&got);
    device_free(&arena, "the batch's arrays");
}

/* A random image with words of 8 or 16 bits, for which there are stages. */
static struct tsr_image stage_image(struct rng *r, int32_t most)
{
    struct tsr_image image;
    do image = random_image(r, most);
    while (image.bits_allocated != 8 && image.bits_allocated != 16);
    return image;
}

/* Adds loss with a random QP, and sometimes with a second QP from some sample on. */
static void lose(struct rng *r, const struct tsr_image *image, struct tsr_coding *coding)
{
    coding->lossy = true;
    if (tsr_may_have_intra(coding)) coding->effort = 6; /* predicted tiles are the CPU's */
    coding->qp_eighths = rng_between(r, tsr_lowest_qp(image->bits_stored), TSR_HIGHEST_QP);
    if (rng_below(r, 2)) coding->tune = TSR_TUNE_SSIM;
    if (rng_below(r, 3)) return;
    coding->coarser_by = 1 + rng_below(r, 90);
    coding->coarser_from = rng_below(r, image->columns * image->rows);
}

/* A coding of effort 1. */
static struct tsr_coding first_coding(struct rng *r, const struct tsr_image *image, int number)
{
    struct tsr_coding coding = {
        .path = TSR_PATH_TRANSFORM, .coder = number & 1 ? TSR_CODER_CAVLC : TSR_CODER_HUFFMAN, .effort = 1};
    if (number & 2) lose(r, image, &coding);
    return coding;
}

/* Codings of any effort: each coder with and without loss, and CAVLC with path P. */
enum { CODINGS = 7 };

static struct tsr_coding any_coding(struct rng *r, const struct tsr_image *image, int number)
{
    static const enum tsr_coder coders[] = {TSR_CODER_HUFFMAN, TSR_CODER_CAVLC, TSR_CODER_RANS};
    struct tsr_coding coding = {
        .path = TSR_PATH_TRANSFORM, .coder = coders[number % 3], .effort = (int)rng_below(r, 10)};
    if (number % CODINGS == CODINGS - 1) {
        coding.path = TSR_PATH_PREDICT;
        coding.coder = TSR_CODER_CAVLC;
    } else if (number % CODINGS >= 3)
        lose(r, image, &coding);
    return coding;
}

TEST(stages)
{
    struct rng r = {401};
    for (int n = 0; n < 40; n++) {
        struct tsr_image image = stage_image(&r, n % 5 ? 40 : 150);
        if (image.bits_stored < image.bits_allocated && n % CONTENTS != 5 && n % CONTENTS != 1)
            image.high_bit = (uint8_t)((image.bits_stored = image.bits_allocated) - 1);
        const uint32_t frames = (uint32_t)n % 3 + 1;
        uint8_t *rasters = must(malloc(frames * raster_bytes(&image)));
        for (uint32_t f = 0; f < frames; f++) fill_raster(&r, &image, n % CONTENTS, rasters + f * raster_bytes(&image));
        const struct tsr_coding coding = first_coding(&r, &image, n / 2);
        check_stages(&image, &coding, rasters, frames);
        free(rasters);
    }
}

/* ---- Training ------------------------------------------------------------------------------------------------- */

/* Counts, some like those of blocks: few symbols or all, many equal counts, empty cells, huge counts. */
static void fill_counts(struct rng *r, int kind, struct tsr_block_counts *counts)
{
    uint32_t *all = &counts->dc[0][0];
    memset(counts, 0, sizeof *counts);
    for (size_t cell = 0; cell < TSR_DC_CELLS + TSR_AC_CELLS; cell++) {
        const bool is_dc = cell < TSR_DC_CELLS;
        const size_t symbols = is_dc ? TSR_DC_SYMBOLS : TSR_AC_SYMBOLS;
        uint32_t *row = is_dc ? all + cell * symbols : &counts->ac[cell - TSR_DC_CELLS][0];
        if (kind % 4 == 1 && rng_below(r, 3)) continue;
        const uint32_t used = kind % 3 == 0 ? (uint32_t)symbols : 1 + rng_below(r, kind % 3 == 1 ? 12 : 100);
        for (uint32_t i = 0; i < used; i++) {
            const uint32_t symbol =
                kind % 3 == 0 ? i : rng_below(r, (uint32_t)(symbols < 60 ? symbols : 60)) * (uint32_t)(symbols / 60);
            row[symbol] = kind % 5 == 0   ? 1
                          : kind % 5 == 1 ? rng_below(r, 4)
                          : kind % 5 == 2 ? rng_width(r, 17)
                                          : rng_width(r, 9);
        }
    }
    if (kind == 7) memset(counts, 0, sizeof *counts);
    counts->dc[kind % TSR_DC_CELLS][kind % TSR_DC_SYMBOLS] += kind == 7; /* a single symbol */
    counts->ac[kind % TSR_AC_CELLS][kind % TSR_AC_SYMBOLS] += kind == 7;
}

static void check_table(const uint32_t *counts, int symbols, const uint8_t *lengths, const uint16_t *packed,
                        struct tsr_huffman_work *work, const char *what)
{
    uint8_t expected[TSR_ALPHABET_LIMIT];
    struct tsr_codeword words[TSR_ALPHABET_LIMIT];
    tsr_huffman_lengths(counts, symbols, expected, work);
    tsr_huffman_codewords(expected, symbols, words);
    for (int s = 0; s < symbols; s++) {
        expect(lengths[s] == expected[s], "%s: length of %d is %d, not %d", what, s, lengths[s], expected[s]);
        const unsigned word = words[s].length ? (unsigned)(words[s].length << 12 | words[s].bits) : 0u;
        expect(packed[s] == word, "%s: codeword of %d", what, s);
    }
}

/* Trains planes with all kinds of counts in turn. */
static void check_training(uint32_t planes)
{
    enum { KINDS = 24 };
    struct rng r = {402};
    struct tsr_block_counts *counts = must(malloc(planes * sizeof *counts));
    struct tsr_plane_state *states = must(malloc(planes * sizeof *states));
    for (uint32_t p = 0; p < planes; p++) {
        fill_counts(&r, (int)(p % KINDS), &counts[p]);
        states[p] = (struct tsr_plane_state){65535, p == 5 ? 0 : 9, p == 5 ? 1 : 10, 0};
    }
    uint32_t *aligned = must(calloc((size_t)planes * TSR_PLANE_COUNTS, sizeof *aligned));
    for (uint32_t p = 0; p < planes; p++) {
        uint32_t *const own = aligned + (size_t)p * TSR_PLANE_COUNTS;
        memcpy(own, counts[p].dc, sizeof counts[p].dc);
        for (int c = 0; c < TSR_AC_CELLS; c++)
            memcpy(own + TSR_DC_COUNTS + c * TSR_AC_PITCH, counts[p].ac[c], sizeof counts[p].ac[c]);
    }
    const size_t count_bytes = (size_t)planes * TSR_PLANE_COUNTS * sizeof *aligned;
    struct device_buffer d_counts = device_copy(aligned, count_bytes, count_bytes);
    struct device_buffer d_states = device_copy(states, planes * sizeof *states, planes * sizeof *states);
    struct device_buffer d_models = device_buffer(planes * sizeof(struct tsr_run_level_model));
    struct device_buffer d_codes = device_buffer(planes * sizeof(struct tsr_packed_codes));
    must_cuda(tsr_cuda_train((uint32_t *)d_counts.bytes, (struct tsr_plane_state *)d_states.bytes, planes,
                             (struct tsr_run_level_model *)d_models.bytes, (struct tsr_packed_codes *)d_codes.bytes,
                             0));
    must_cuda(cudaDeviceSynchronize());
    struct tsr_run_level_model *models = copy_of(d_models.bytes, d_models.size);
    struct tsr_packed_codes *codes = copy_of(d_codes.bytes, d_codes.size);
    struct tsr_merge_work *merge = must(malloc(sizeof *merge));
    struct tsr_huffman_work *work = must(malloc(sizeof *work));
    for (uint32_t p = 0; p < planes; p++) {
        if (p == 5) { /* a constant plane must stay untouched */
            for (size_t i = 0; i < sizeof models[p]; i++) assert_int_equal(((uint8_t *)&models[p])[i], 0xc3);
            continue;
        }
        uint8_t dc_of[TSR_DC_CELLS], ac_of[TSR_AC_CELLS];
        const int dc = tsr_merge_contexts(&counts[p].dc[0][0], TSR_DC_CELLS, TSR_DC_SYMBOLS, dc_of, merge);
        const int ac = tsr_merge_contexts(&counts[p].ac[0][0], TSR_AC_CELLS, TSR_AC_SYMBOLS, ac_of, merge);
        expect(models[p].dc_tables == dc && models[p].ac_tables == ac, "plane %u: %d and %d tables, not %d and %d", p,
               models[p].dc_tables, models[p].ac_tables, dc, ac);
        assert_memory_equal(models[p].dc_table_of, dc_of, sizeof dc_of);
        assert_memory_equal(models[p].ac_table_of, ac_of, sizeof ac_of);
        for (int t = 0; t < dc; t++)
            check_table(counts[p].dc[t], TSR_DC_SYMBOLS, models[p].dc_lengths[t], codes[p].dc[t], work, "DC");
        for (int t = 0; t < ac; t++)
            check_table(counts[p].ac[t], TSR_AC_SYMBOLS, models[p].ac_lengths[t], codes[p].ac[t], work, "AC");
    }
    free(work);
    free(merge);
    free(codes);
    free(models);
    free(aligned);
    free(states);
    free(counts);
    device_free(&d_codes, "codes");
    device_free(&d_models, "models");
    device_free(&d_states, "states");
    device_free(&d_counts, "counts");
}

/* Few planes, and more planes than multiprocessors. */
TEST(training)
{
    int processors = 0;
    must_cuda(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
    check_training((uint32_t)processors);
    check_training((uint32_t)(processors < 24 ? 24 : processors + 1));
}

/* Counts of cells in groups, one cell per energy class. If not wide, a group's counts add up to less than 2^18. */
static void fill_cells(struct rng *r, int kind, bool wide, uint32_t *counts, int cells, int symbols)
{
    memset(counts, 0, (size_t)(cells * symbols) * sizeof *counts);
    for (int c = 0; c < cells; c++) {
        if (kind % 4 == 1 && rng_below(r, 3)) continue;
        if (kind % 4 == 2 && c / TSR_ENERGY_CLASSES == 2) continue; /* a group that does not occur */
        const uint32_t used = kind % 3 == 0 ? (uint32_t)symbols : 1 + rng_below(r, kind % 3 == 1 ? 12 : 60);
        for (uint32_t i = 0; i < used; i++) {
            const uint32_t symbol = kind % 3 == 0 ? i : rng_below(r, (uint32_t)symbols);
            counts[c * symbols + (int)symbol] = kind % 5 == 0   ? 1
                                                : kind % 5 == 1 ? rng_below(r, 4)
                                                : kind % 5 == 2 ? rng_width(r, wide ? 17 : 6)
                                                                : rng_width(r, wide ? 9 : 6) >> rng_below(r, 9);
        }
    }
}

/* Changes counts[groups][TSR_ENERGY_CLASSES][symbols] to what counting leaves: in_use has the bits of cells with
 * counts, and the rows of other cells hold anything. */
static void forget_unused_cells(uint32_t *counts, size_t groups, int symbols, uint32_t *in_use)
{
    for (size_t g = 0; g < groups; g++) {
        in_use[g] = 0;
        for (int c = 0; c < TSR_ENERGY_CLASSES; c++) {
            uint32_t *row = counts + (g * TSR_ENERGY_CLASSES + (size_t)c) * (size_t)symbols, any = 0;
            for (int s = 0; s < symbols; s++) any |= row[s];
            in_use[g] |= (any ? 1u : 0u) << c;
            for (int s = 0; s < symbols && !any; s++) row[s] = UINT32_MAX / 24;
        }
    }
}

/* A buffer on the device with `times` copies of bytes. */
static struct device_buffer device_copies(const void *bytes, size_t size, size_t times)
{
    uint8_t *all = must(malloc(size * times));
    for (size_t i = 0; i < times; i++) memcpy(all + i * size, bytes, size);
    const struct device_buffer copies = device_copy(all, size * times, size * times);
    free(all);
    return copies;
}

/* Checks a group's table against its counts: weights and symbols of rANS. */
static void check_weights(const uint32_t *counts, const struct tsr_coefficient_model *model, int table,
                          const tsr_coefficient_codes *found)
{
    uint16_t weight[TSR_COEFFICIENT_SYMBOLS];
    tsr_coefficient_codes expected;
    assert_int_equal(model->mantissa[table], tsr_rans_weights(counts, TSR_COEFFICIENT_SYMBOLS, weight));
    assert_memory_equal(model->weight[table], weight, sizeof weight);
    tsr_rans_symbols(weight, TSR_COEFFICIENT_SYMBOLS, expected);
    assert_memory_equal(*found, expected, sizeof expected);
}

/* Checks the model and the codes of plane p, of rANS or of pairs, against its counts. Merges these in place. */
static void check_energy_plane(bool rans, int p, uint32_t *counts, const uint32_t *in_use, const void *model,
                               const void *codes, uint64_t magnitudes, struct tsr_merge_work *merge,
                               struct tsr_huffman_work *work)
{
    const struct tsr_pair_model *pairs = model;
    const struct tsr_coefficient_model *rans_model = model;
    const struct tsr_cell_codes *cell_codes = codes;
    const int symbols = rans ? TSR_COEFFICIENT_SYMBOLS : TSR_PAIR_SYMBOLS,
              groups = rans ? TSR_COEFFICIENT_GROUPS : TSR_PAIR_GROUPS;
    assert_int_equal(rans ? rans_model->magnitude_shift : pairs->magnitude_shift,
                     tsr_magnitude_shift(magnitudes, 1000));
    for (int g = 0; g < groups; g++) {
        uint8_t table_of[TSR_ENERGY_CLASSES];
        const int first = g * TSR_ENERGY_CLASSES;
        uint32_t *group = counts + first * symbols;
        const int tables = tsr_merge_contexts(group, TSR_ENERGY_CLASSES, symbols, table_of, merge);
        expect((rans ? rans_model->tables[g] : pairs->tables[g]) == tables, "kind %d, group %d: not %d tables", p, g,
               tables);
        assert_memory_equal((rans ? rans_model->table_of : pairs->table_of) + first, table_of, sizeof table_of);
        for (int t = 0; t < tables; t++) {
            const uint32_t *own = group + t * symbols;
            if (rans) {
                check_weights(own, rans_model, first + t, (const tsr_coefficient_codes *)codes + first + t);
                continue;
            }
            for (int c = 0; c < TSR_ENERGY_CLASSES; c++)
                if (table_of[c] == t && (in_use[g] >> c & 1u))
                    check_table(own, symbols, pairs->lengths[first + t], cell_codes->cell[first + c], work, "pairs");
        }
    }
}

enum { ENERGY_PLANES = 12, CONSTANT = 5, PAIR_COUNTS = TSR_PAIR_CELLS * TSR_PAIR_SYMBOLS };
enum { COEFFICIENT_COUNTS = TSR_COEFFICIENT_CELLS * TSR_COEFFICIENT_SYMBOLS };

/* Trains planes of random counts, repeated `times` times, and checks them. number: rANS if odd, else pairs; large
 * counts from 2 on. */
static void train_by_energy(struct rng *r, int number, size_t times, struct tsr_cuda_batch *b, uint32_t *counts,
                            const uint64_t *magnitudes)
{
    const size_t planes = ENERGY_PLANES * times;
    struct tsr_merge_work *merge = must(malloc(sizeof *merge));
    struct tsr_huffman_work *work = must(malloc(sizeof *work));
    const bool rans = number % 2, wide = number >= 2;
    const int symbols = rans ? TSR_COEFFICIENT_SYMBOLS : TSR_PAIR_SYMBOLS,
              cells = rans ? TSR_COEFFICIENT_CELLS : TSR_PAIR_CELLS;
    const size_t model_bytes = rans ? sizeof(struct tsr_coefficient_model) : sizeof(struct tsr_pair_model);
    b->transform.plane_counts = rans ? COEFFICIENT_COUNTS : PAIR_COUNTS;
    b->shape.slices = wide ? 1 << 16 : 1 << 6; /* enough for such counts */
    for (int p = 0; p < ENERGY_PLANES; p++)
        fill_cells(r, p, wide, counts + (size_t)p * b->transform.plane_counts, cells, symbols);
    const size_t count_bytes = (size_t)ENERGY_PLANES * b->transform.plane_counts * sizeof *counts;
    const size_t groups = (size_t)(ENERGY_PLANES * cells / TSR_ENERGY_CLASSES);
    uint32_t in_use[ENERGY_PLANES * TSR_PAIR_GROUPS], *counted = must(malloc(count_bytes));
    memcpy(counted, counts, count_bytes);
    forget_unused_cells(counted, groups, symbols, in_use);
    struct device_buffer d_counts = device_copies(counted, count_bytes, times);
    struct device_buffer d_in_use = device_copies(in_use, groups * sizeof *in_use, times);
    b->transform.cells_in_use = (uint32_t *)d_in_use.bytes;
    struct device_buffer d_models = device_buffer(planes * model_bytes);
    const size_t code_bytes =
        rans ? TSR_COEFFICIENT_TABLES * sizeof(tsr_coefficient_codes) : sizeof(struct tsr_cell_codes);
    struct device_buffer d_codes = device_buffer(planes * code_bytes);
    b->transform.counts = (uint32_t *)d_counts.bytes;
    b->transform.pair_model = (struct tsr_pair_model *)d_models.bytes;
    b->transform.coefficient_model = (struct tsr_coefficient_model *)d_models.bytes;
    b->transform.pair_codes = (struct tsr_cell_codes *)d_codes.bytes;
    b->transform.coefficient_codes = (tsr_coefficient_codes *)d_codes.bytes;
    must_cuda(rans ? tsr_cuda_train_coefficients(b, 0) : tsr_cuda_train_pairs(b, 0));
    must_cuda(cudaDeviceSynchronize());
    uint8_t *models = copy_of(d_models.bytes, d_models.size), *codes = copy_of(d_codes.bytes, d_codes.size);
    for (size_t p = ENERGY_PLANES; p < planes; p++) {
        assert_memory_equal(models + p * model_bytes, models + p % ENERGY_PLANES * model_bytes, model_bytes);
        assert_memory_equal(codes + p * code_bytes, codes + p % ENERGY_PLANES * code_bytes, code_bytes);
    }
    for (int p = 0; p < ENERGY_PLANES; p++) {
        if (p == CONSTANT)
            for (size_t i = 0; i < model_bytes; i++) assert_int_equal(models[(size_t)p * model_bytes + i], 0xc3);
        else
            check_energy_plane(rans, p, counts + (size_t)p * b->transform.plane_counts, in_use + p * TSR_PAIR_GROUPS,
                               models + (size_t)p * model_bytes, codes + (size_t)p * code_bytes, magnitudes[p], merge,
                               work);
    }
    free(codes);
    free(models);
    device_free(&d_codes, "codes");
    device_free(&d_models, "models");
    device_free(&d_in_use, "cells in use");
    device_free(&d_counts, "counts");
    free(counted);
    free(work);
    free(merge);
}

/* Pairs and rANS: tables, codes and frequencies of random counts. The planes are repeated until there are so many that
 * a warp each merges groups if their gains are narrow. */
TEST(training_by_energy)
{
    struct rng r = {412};
    int processors = 0;
    must_cuda(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
    const size_t times = (size_t)processors / 2 + 1, planes = ENERGY_PLANES * times;
    uint32_t *counts = must(malloc((size_t)ENERGY_PLANES * PAIR_COUNTS * sizeof *counts));
    struct tsr_plane_state states[ENERGY_PLANES];
    uint64_t magnitudes[ENERGY_PLANES];
    for (int p = 0; p < ENERGY_PLANES; p++) {
        states[p] = (struct tsr_plane_state){65535, p == CONSTANT ? 0 : 9, p == CONSTANT ? 1 : 10, 0};
        magnitudes[p] = rng_width(&r, 30);
    }
    struct tsr_cuda_batch b = {
        .shape.planes = (uint32_t)planes, .shape.components = 1, .transform.magnitude_count = 1000};
    struct device_buffer d_states = device_copies(states, sizeof states, times);
    struct device_buffer d_magnitudes = device_copies(magnitudes, sizeof magnitudes, times);
    b.shared.plane = (struct tsr_plane_state *)d_states.bytes;
    b.transform.magnitudes = (uint64_t *)d_magnitudes.bytes;
    for (int number = 0; number < 4; number++) train_by_energy(&r, number, times, &b, counts, magnitudes);
    device_free(&d_magnitudes, "magnitudes");
    device_free(&d_states, "states");
    free(counts);
}

/* ---- Whole frames --------------------------------------------------------------------------------------------- */

/* Checks one content in all codings. */
static void check_codings(struct rng *r, const struct tsr_image *image, int content, uint32_t frames, bool must_do)
{
    const size_t bytes = raster_bytes(image);
    uint8_t *rasters = must(malloc(frames * bytes));
    for (uint32_t f = 0; f < frames; f++) fill_raster(r, image, content, rasters + f * bytes);
    for (int number = 0; number < CODINGS; number++) {
        if (skip_case()) continue;
        const struct tsr_coding coding = any_coding(r, image, number);
        if (coding.lossy && image->bits_allocated % 32 == 1) continue;
        if (coding.lossy && image->bits_allocated == 32) continue;
        const uint32_t done = check_frames(image, &coding, rasters, frames);
        if (must_do) expect(done == frames, "%u of %u frames on the GPU", done, frames);
    }
    free(rasters);
}

/* Whether every frame of this content has the outside bits that the stages expect. */
static bool is_plain(const struct tsr_image *image, int content)
{
    if (image->bits_allocated == 1 || image->bits_allocated == 32) return false;
    if (image->bits_stored == image->bits_allocated) return true;
    return content == 1 && !image->is_signed;
}

TEST(random_frames)
{
    struct rng r = {403};
    for (int n = 0; n < (small_only() ? 16 : 60); n++) {
        const struct tsr_image image = random_image(&r, 50);
        check_codings(&r, &image, n % CONTENTS, 1 + (uint32_t)n % 3, is_plain(&image, n % CONTENTS));
    }
}

TEST(smallest_frames)
{
    struct rng r = {404};
    for (uint32_t columns = 1; columns <= 5; columns++)
        for (uint32_t rows = 1; rows <= 5; rows += 1 + columns % 2) {
            struct tsr_image image = stage_image(&r, 1);
            image.columns = columns;
            image.rows = rows;
            image.swapped = false;
            check_codings(&r, &image, (int)(columns + 2 * rows) % CONTENTS, 1, false);
        }
}

/* Several tiles, and sizes near those of tiles, slices and blocks. */
TEST(shapes_of_frames)
{
    static const uint32_t shapes[][2] = {{1100, 70}, {1, 1500}, {1500, 1}, {64, 64}, {65, 63}, {257, 300}, {1025, 66}};
    struct rng r = {405};
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        const struct tsr_image image = plain_image(shapes[i][0], shapes[i][1], 1, i % 2 ? 16 : 8);
        check_codings(&r, &image, i % 3 ? 5 : 3, 1, true);
    }
}

/* Saturated colours of 16 bits, whose differences wrap; packed histograms; values at both ends. */
TEST(colours_and_ranges)
{
    struct rng r = {406};
    for (int n = 0; n < 12; n++) {
        const struct tsr_image image = plain_image(70, 40, n % 3 == 2 ? 4 : 3, n % 2 ? 16 : 8);
        check_codings(&r, &image, n % CONTENTS, 2, true);
    }
    struct tsr_image image = plain_image(130, 140, 1, 16); /* every 37th value, smooth: packing pays */
    uint16_t *raster = must(malloc(raster_bytes(&image)));
    for (uint32_t i = 0; i < 130 * 140; i++)
        raster[i] = (uint16_t)(37 * ((i % 130 + i / 130) / 3 + rng_below(&r, 2)) + 1000);
    const struct tsr_coding coding = {.path = TSR_PATH_TRANSFORM, .coder = TSR_CODER_HUFFMAN, .effort = 1};
    assert_int_equal(check_frames(&image, &coding, (uint8_t *)raster, 1), 1);
    check_stages(&image, &coding, (uint8_t *)raster, 1);
    free(raster);
}

/* A picture with something for every tool: flat parts, edges, slopes, texture, noise. top: the largest value. */
static void draw_picture(struct rng *r, const struct tsr_image *image, uint32_t top, uint8_t *raster)
{
    const size_t count = (size_t)image->columns * image->rows;
    memset(raster, 0, raster_bytes(image));
    for (int c = 0; c < image->components; c++)
        for (size_t i = 0; i < count; i++) {
            const uint32_t x = (uint32_t)(i % image->columns), y = (uint32_t)(i / image->columns);
            uint32_t level = top / 8 * ((x / 37 + y / 23 + (uint32_t)c) % 5);
            if (x > image->columns / 2)
                level = (uint32_t)((uint64_t)top * (x + 2 * y) / (3 * image->columns + 2 * image->rows));
            if (x % 50 > 30 && y > image->rows / 2) level += rng_below(r, top / 16 + 1);
            if (y % 64 > 40 && x > 60) level += top / 20 * ((x / 2 + y / 3) % 3);
            if (x < 20 && y < 30) level = rng_below(r, top);
            const int32_t value = (int32_t)(level < top ? level : top) - (image->is_signed ? (int32_t)(top / 2) : 0);
            put_word(image, raster, word_place(image, c, i), (uint32_t)value);
        }
}

/* Each coder at every effort that adds something, with fine and coarse steps. Tiles, slices and large slices that are
 * not whole. */
TEST(efforts)
{
    static const struct {
        uint32_t columns, rows;
        int components, allocated, stored;
        bool is_signed;
    } kinds[] = {
        {150, 140, 1, 8, 8, false}, {200, 70, 1, 16, 12, true}, {90, 150, 1, 16, 16, false}, {140, 70, 3, 8, 8, false}};
    static const int first_efforts[] = {1, 2, 3, 7}, steps[] = {3, 90, 230, 360};
    static const enum tsr_coder coders[] = {TSR_CODER_HUFFMAN, TSR_CODER_CAVLC, TSR_CODER_RANS};
    struct rng r = {411};
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        struct tsr_image image = plain_image(kinds[k].columns, kinds[k].rows, kinds[k].components, kinds[k].allocated);
        image.bits_stored = (uint8_t)kinds[k].stored;
        image.high_bit = (uint8_t)(kinds[k].stored - 1);
        image.is_signed = kinds[k].is_signed;
        uint8_t *raster = must(malloc(raster_bytes(&image)));
        draw_picture(&r, &image, (1u << kinds[k].stored) - 1u, raster);
        for (size_t l = 0; l < COUNT_OF(first_efforts); l++)
            for (size_t c = 0; c < COUNT_OF(coders); c++)
                for (size_t q = 0; q <= COUNT_OF(steps); q++) {
                    if (!(k == 2 && q == 1) && (c != (k + l) % 3 || q != 2) && skip_case()) continue; /* all tools */
                    struct tsr_coding coding = {
                        .path = TSR_PATH_TRANSFORM, .coder = coders[c], .effort = first_efforts[l]};
                    coding.lossy = q < COUNT_OF(steps);
                    if (coding.lossy) coding.qp_eighths = tsr_lowest_qp(image.bits_stored) + steps[q] + (int)(l + c);
                    if (coding.lossy && (l + c + q) % 3 == 0) coding.coarser_by = 10;
                    coding.coarser_from = image.columns * image.rows / 3;
                    if (coding.lossy && (k + l + q) % 2) coding.tune = TSR_TUNE_SSIM;
                    const uint32_t done = check_frames(&image, &coding, raster, 1);
                    expect(done == 1 || tsr_may_have_intra(&coding), "effort %d, coder %d: not on the GPU",
                           coding.effort, (int)coding.coder);
                }
        const struct tsr_coding residuals = {.path = TSR_PATH_PREDICT, .coder = TSR_CODER_CAVLC};
        assert_int_equal(check_frames(&image, &residuals, raster, 1), 1);
        free(raster);
    }
}

/* The choice looks at every fourth row from the second on and at the row above each. These rows suggest the opposite of
 * the other rows. */
TEST(rows_that_choices_see)
{
    struct rng r = {410};
    const struct tsr_coding coding = {.path = TSR_PATH_TRANSFORM, .coder = TSR_CODER_CAVLC, .effort = 1};
    const struct tsr_image gray = plain_image(260, 260, 1, 16), colour = plain_image(260, 260, 3, 8);
    for (uint32_t seen = 0; seen < 2; seen++) {
        if (skip_case()) continue;
        uint16_t *words = must(malloc(raster_bytes(&gray)));
        uint8_t *bytes = must(malloc(raster_bytes(&colour)));
        for (uint32_t i = 0; i < 260 * 260; i++) {
            const bool is_even = (i / 260 % 4 < 2) == (seen == 1);
            const uint8_t gray_value = (uint8_t)rng_next(&r);
            words[i] = (uint16_t)(is_even ? 0 : 64 * rng_below(&r, 200));
            for (uint32_t c = 0; c < 3; c++) bytes[3 * i + c] = is_even ? gray_value : (uint8_t)rng_next(&r);
        }
        assert_int_equal(check_frames(&gray, &coding, (uint8_t *)words, 1), 1);
        assert_int_equal(check_frames(&colour, &coding, bytes, 1), 1);
        free(bytes);
        free(words);
    }
}

/* Frames that are on the device give as many bytes of payloads as the CPU engine, each tile's rounded up to 16. */
TEST(resident)
{
    enum { FRAMES = 3 };
    struct rng r = {408};
    const struct tsr_image image = plain_image(136, 72, 1, 8);
    const size_t bytes = raster_bytes(&image);
    uint8_t *rasters = must(malloc(FRAMES * bytes));
    for (int f = 0; f < FRAMES; f++) fill_raster(&r, &image, f ? 5 : 0, rasters + (size_t)f * bytes);
    struct device_buffer d_rasters = device_copy(rasters, FRAMES * bytes, FRAMES * bytes);
    for (int number = 0; number < CODINGS; number++) {
        if (skip_case()) continue;
        const struct tsr_coding coding = any_coding(&r, &image, number);
        struct tsr_encode_job jobs[FRAMES] = {{0}};
        void *space = must(malloc(cpu->ops->encode_workspace(cpu, &image, &coding, FRAMES)));
        for (int f = 0; f < FRAMES; f++) jobs[f].raster = rasters + (size_t)f * bytes;
        assert_int_equal(cpu->ops->encode(cpu, &image, &coding, jobs, FRAMES, space), TSR_OK);
        uint64_t expected = 0, found = 0;
        for (int f = 0; f < FRAMES; f++)
            for (uint32_t t = 0; t < jobs[f].coded.tiles; t++)
                for (int s = 1; s < jobs[f].coded.tile[t].segments; s++)
                    expected += (jobs[f].coded.tile[t].segment[s].size + 15) / 16 * 16;
        must_cuda(tsr_cuda_encode_resident(cuda, &image, &coding, d_rasters.bytes, FRAMES, &found, NULL));
        assert_int_equal(found, expected);
        free(space);
    }
    device_free(&d_rasters, "rasters");
    free(rasters);
}

/* A thread with images of its own. There are more threads than the engine has lanes. */
struct encoding_thread {
    pthread_t thread;
    uint64_t seed;
    bool is_there, failed;
};

static void *encode_some(void *argument)
{
    struct encoding_thread *own = argument;
    struct rng r = {own->seed};
    for (int n = 0; n < 3; n++) {
        const struct tsr_image image = plain_image((uint32_t)rng_between(&r, 20, 90), 50, 1, n ? 8 : 16);
        uint8_t *raster = must(malloc(raster_bytes(&image)));
        fill_raster(&r, &image, 5, raster);
        const struct tsr_coding coding = any_coding(&r, &image, 4 * n);
        if (check_frames(&image, &coding, raster, 1) != 1) own->failed = true;
        free(raster);
    }
    return NULL;
}

TEST(threads)
{
    struct encoding_thread threads[11];
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        threads[i].is_there = !skip_case();
        if (!threads[i].is_there) continue;
        threads[i].seed = 409 + i;
        threads[i].failed = false;
        assert_int_equal(pthread_create(&threads[i].thread, NULL, encode_some, &threads[i]), 0);
    }
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        if (!threads[i].is_there) continue;
        pthread_join(threads[i].thread, NULL);
        assert_false(threads[i].failed);
    }
}

/* ---- Path P --------------------------------------------------------------------------------------------------- */

static struct tsr_coding predictive(int effort, enum tsr_coder coder)
{
    return (struct tsr_coding){.path = TSR_PATH_PREDICT, .coder = coder, .effort = effort};
}

/* A smooth picture with edges, noise that grows to the right, and a flat border: all kinds of contexts and runs. */
static void fill_scene(struct rng *r, const struct tsr_image *image, uint32_t number, uint8_t *raster)
{
    const uint32_t values = (1u << image->bits_stored) - 1u, columns = image->columns, rows = image->rows;
    const uint32_t step = image->bits_stored > 10 ? 9u : 1u;
    for (uint32_t i = 0; i < columns * rows; i++)
        for (uint32_t c = 0; c < image->components; c++) {
            const uint32_t x = i % columns, y = i / columns;
            uint32_t v = 3 + c;
            if (x > columns / 8 && y > rows / 9 && x + y < columns + rows * 3 / 4) {
                v = step * (x * (3 + c) / 4 + (y + number) / 3) + rng_below(r, 1 + step * x / 16);
                if ((x / 24 + y / 20) % 3 == 1) v += 40 * step;
                if (v > values) v = values;
            }
            if (image->is_signed) v = (v - (values + 1) / 2) & values;
            put_word(image, raster, word_place(image, (int)c, i), v);
        }
}

/* Checks one content at an effort and with a coder: the GPU must do it, with the CPU engine's result. */
static void check_prediction(const struct tsr_image *image, int content, uint32_t frames, int effort,
                             enum tsr_coder coder)
{
    struct rng r = {(uint64_t)(420 + content)};
    const struct tsr_coding coding = predictive(effort, coder);
    uint8_t *rasters = must(calloc(frames, raster_bytes(image)));
    for (uint32_t f = 0; f < frames; f++) {
        uint8_t *raster = rasters + f * raster_bytes(image);
        if (content < CONTENTS)
            fill_raster(&r, image, content, raster);
        else
            fill_scene(&r, image, f, raster);
    }
    const uint32_t done = check_frames(image, &coding, rasters, frames);
    if (is_plain(image, content) || (content == CONTENTS && image->bits_stored == image->bits_allocated))
        expect(done == count_plain(image, &coding, rasters, frames), "effort %d: %u frames on the GPU", effort, done);
    free(rasters);
}

static enum tsr_coder either_coder(int number)
{
    return number % 2 ? TSR_CODER_RANS : TSR_CODER_HUFFMAN;
}

TEST(predicted_efforts)
{
    for (int effort = 1; effort <= 9; effort++)
        for (int coder = 0; coder < 2; coder++) {
            const struct tsr_image image = plain_image((small_only() ? 40u : 190u) + (uint32_t)effort,
                                                       small_only() ? 50 : 160, 1, effort % 3 ? 16 : 8);
            if (coder == effort % 2 || !skip_case()) /* each effort at least once */
                check_prediction(&image, CONTENTS, 2, effort, either_coder(coder));
        }
}

TEST(predicted_depths)
{
    static const int bits[] = {8, 10, 12, 16, 1, 5};
    for (size_t i = 0; i < COUNT_OF(bits); i++)
        for (int is_signed = 0; is_signed < 2; is_signed++) {
            struct tsr_image image = plain_image(70, 50, 1, bits[i] > 8 ? 16 : 8);
            image.bits_stored = (uint8_t)bits[i];
            image.high_bit = (uint8_t)(bits[i] - 1);
            image.is_signed = is_signed;
            if (!skip_case())
                check_prediction(&image, i % 2 ? 5 : CONTENTS, 1, is_signed ? 5 : 3, either_coder((int)i / 2));
        }
}

TEST(predicted_shapes)
{
    static const uint32_t shapes[][2] = {{1, 1},    {2, 1},    {1, 3},   {5, 4},     {17, 33},  {1100, 70},
                                         {1, 1500}, {1500, 1}, {64, 64}, {257, 300}, {40, 1700}};
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        const struct tsr_image image = plain_image(shapes[i][0], shapes[i][1], 1, i % 2 ? 16 : 8);
        if (i == 9 || !skip_case()) check_prediction(&image, CONTENTS, 1, (int)(1 + i % 5), either_coder((int)i / 2));
    }
}

TEST(predicted_contents)
{
    for (int content = 0; content < CONTENTS; content++)
        for (int i = 0; i < 3; i++) {
            const struct tsr_image image = plain_image(130, 60, 1, i ? 16 : 8);
            if (!skip_case())
                check_prediction(&image, content, 1 + (uint32_t)i, i == 2 ? 6 : i + 1, either_coder(content + i));
        }
}

/* At effort 1 only some of the rows of these shapes are counted. */
TEST(predicted_sampled_rows)
{
    static const uint32_t shapes[][2] = {{300, 230}, {1100, 130}, {41, 1700}};
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        const struct tsr_image image = plain_image(shapes[i][0], shapes[i][1], 1, i % 2 ? 8 : 16);
        if (!skip_case()) check_prediction(&image, i == 2 ? 0 : CONTENTS, 1, 1, TSR_CODER_HUFFMAN);
    }
    const struct tsr_image image = plain_image(260, 260, 1, 16);
    if (!skip_case()) check_prediction(&image, 3, 2, 1, TSR_CODER_HUFFMAN);
}

/* All launch policies: with a plane whose rows are sampled, one whose lanes are cut in many ways, and tiles of several
 * sizes. */
TEST(predicted_policies)
{
    static const uint32_t shapes[][2] = {{260, 256}, {40, 1100}, {1030, 90}};
    for (int policy = 0; policy < TSR_LAUNCH_POLICIES; policy++)
        for (size_t i = 0; i < COUNT_OF(shapes); i++) {
            const struct tsr_image image = plain_image(shapes[i][0], shapes[i][1], 1, 16);
            if (skip_case()) continue;
            tsr_cuda_engine_launch_by(cuda, policy);
            check_prediction(&image, CONTENTS, 2, i == 2 ? 2 : 1, TSR_CODER_HUFFMAN);
        }
    tsr_cuda_engine_launch_by(cuda, 0);
}

/* The choice of policies: the work of a plane is cut into parts if there are few planes, and not if there are many. */
TEST(launches_by_size)
{
    const struct tsr_launch_size few = {132, 22, 1, 512, 32, 16}, many = {132, 16384, 1, 512, 32, 16},
                                 small = {132, 16384, 1, 64, 4, 0}, full = {132, 2048, 1, 256, 16, 8};
    const struct tsr_launch_policy by_few = tsr_choose_launches(tsr_launch_policies[0], few),
                                   by_many = tsr_choose_launches(tsr_launch_policies[0], many),
                                   by_small = tsr_choose_launches(tsr_launch_policies[0], small),
                                   by_full = tsr_choose_launches(tsr_launch_policies[0], full);
    assert_int_equal(by_few.code_rows, 16);
    assert_int_equal(by_few.cell_bands, 1);
    assert_int_equal(by_few.length_warps, 16);
    assert_int_equal(by_many.code_rows, 64);
    assert_int_equal(by_many.cell_bands, 2);
    assert_int_equal(by_many.length_warps, 4);
    assert_int_equal(by_few.lane_segments, 8);
    assert_int_equal(by_many.lane_segments, 8);
    assert_int_equal(by_full.lane_segments, 4); /* 31 warps a multiprocessor; with 8 it would be 62 */
    assert_int_equal(by_small.code_rows, 16);   /* it has 4 bands of 16 rows, and a block has 8 warps */
    for (int policy = 1; policy < TSR_LAUNCH_POLICIES; policy++) {
        const struct tsr_launch_policy wanted = tsr_launch_policies[policy], chosen = tsr_choose_launches(wanted, many);
        assert_true(wanted.code_rows == 0 || chosen.code_rows == wanted.code_rows);
        assert_true(wanted.cell_bands == 0 || chosen.cell_bands == wanted.cell_bands);
        assert_true(wanted.lane_segments == 0 || chosen.lane_segments == wanted.lane_segments);
        assert_true(wanted.length_warps == 0 || chosen.length_warps == wanted.length_warps);
    }
}

/* Planes that refer to earlier ones, some of them constant. */
TEST(predicted_colours)
{
    for (int n = 0; n < (small_only() ? 5 : 8); n++) {
        struct tsr_image image = plain_image(small_only() ? 36 : 70, 34, 2 + n % 3, n % 2 ? 16 : 8);
        image.planar = n % 2;
        if (n == 4 || !skip_case())
            check_prediction(&image, n < 5 ? CONTENTS : n == 7 ? 5 : 3, 2, n == 4 ? 8 : 4, either_coder(n / 2));
    }
}

/* A packed histogram. */
TEST(predicted_packed)
{
    struct rng r = {431};
    const struct tsr_image image = plain_image(130, 140, 1, 16);
    uint16_t *raster = must(malloc(raster_bytes(&image)));
    for (uint32_t i = 0; i < 130 * 140; i++)
        raster[i] = (uint16_t)(37 * ((i % 130 + i / 130) / 3 + rng_below(&r, 2)) + 1000);
    for (int effort = 1; effort <= 4; effort++) {
        if (skip_case()) continue;
        const struct tsr_coding coding = predictive(effort, either_coder(effort));
        assert_int_equal(check_frames(&image, &coding, (uint8_t *)raster, 1), 1);
    }
    free(raster);
}

/* A last plane of few values after planes of all 16 bits, whose differences do not fit 16 bits. */
TEST(predicted_behind_wide_planes)
{
    struct rng r = {433};
    struct tsr_image image = plain_image(61, 47, 4, 16);
    image.frames = 2; /* a small one that is alone is tried as a drawing */
    uint16_t *raster = must(malloc(raster_bytes(&image)));
    for (uint32_t i = 0; i < 61 * 47; i++) {
        const uint32_t x = i % 61, y = i / 61, edge = (x / 7 + y / 9) % 2 * 60000;
        for (uint32_t c = 0; c < 3; c++) raster[4 * i + c] = (uint16_t)(edge + 50 * c + rng_below(&r, 4000));
        raster[4 * i + 3] = (uint16_t)(3 * x + 2 * y + edge / 600 + rng_below(&r, 20));
    }
    for (int effort = 3; effort <= 9; effort += 2) {
        if (skip_case()) continue;
        const struct tsr_coding coding = predictive(effort, either_coder(effort));
        assert_int_equal(check_frames(&image, &coding, (uint8_t *)raster, 1), 1);
    }
    free(raster);
}

/* Flat blocks, and runs to the ends of rows, also in earlier planes. With noise, colours are not packed. */
TEST(predicted_screens)
{
    static const uint32_t shapes[][2] = {{91, 60}, {1030, 12}, {64, 64}};
    for (int n = 0; n < (small_only() ? 9 : 27); n++) {
        if (skip_case()) continue;
        struct rng r = {(uint64_t)(440 + n)};
        const uint32_t *const shape = shapes[n % 3];
        const int components = n % 4 == 3 ? 3 : n % 4 == 1 ? 2 : 1;
        const struct tsr_image image = plain_image(shape[0], shape[1], components, n % 2 || n % 4 == 3 ? 8 : 16);
        uint8_t *rasters = must(malloc(2 * raster_bytes(&image)));
        for (int f = 0; f < 2; f++)
            fill_screen(&r, &image, 6, 9 + (uint32_t)n, components == 3 || n % 5 == 4,
                        rasters + (size_t)f * raster_bytes(&image));
        for (int coder = 0; coder < 2; coder++) {
            const struct tsr_coding coding = predictive(1 + n % 9, either_coder(coder));
            assert_int_equal(check_frames(&image, &coding, rasters, 2), count_plain(&image, &coding, rasters, 2));
        }
        free(rasters);
    }
}

/* ---- Path P's tables from counts --------------------------------------------------------------------------------- */

enum { COUNT_KINDS = 7 };

/* Counts of cells, by kind: of all symbols; of the first ones; of every second; of one; none; some large ones; so few
 * that many gains are equal. Their sums are small enough that no table's code weighs 2^32. */
static void fill_context_counts(struct rng *r, int kind, bool wide, int cells, uint32_t *counts)
{
    const uint32_t only = rng_below(r, TSR_RESIDUAL_SYMBOLS);
    for (int c = 0; c < cells; c++) {
        const uint32_t end = kind == 0 ? TSR_RESIDUAL_SYMBOLS : 1 + rng_below(r, TSR_RESIDUAL_SYMBOLS);
        const bool is_empty = kind == 4 || (kind > 0 && rng_below(r, 4) == 0);
        for (uint32_t s = 0; s < TSR_RESIDUAL_SYMBOLS; s++) {
            uint32_t count = rng_below(r, 8);
            if (kind == 2 && s % 2 == 0) count = 0;
            if (kind == 3) count = s == only ? 5 : 0;
            if (kind == 6) count = s < 5 ? count % 2 : 0;
            if (kind == 5 && rng_below(r, 100) == 0) count = wide ? 1u << (rng_below(r, 20)) : 700 + count;
            counts[c * TSR_RESIDUAL_SYMBOLS + (int)s] = is_empty || (s >= end && kind != 3) ? 0 : count;
        }
    }
    if (kind == 5 && wide) counts[1] = 1u << 27;
}

/* Checks the tables that the device made of the counts of COUNT_KINDS planes, repeated, against the definition's.
 * model: room for the expected one. */
static void check_counted_tables(const struct tsr_predict_batch *p, int number, const uint32_t *counts,
                                 struct tsr_residual_model *model, struct tsr_merge_work *merge,
                                 struct tsr_huffman_work *huffman)
{
    const size_t special = TSR_FIRST_RESIDUAL_TABLE * TSR_RUN_ALPHABET, cells = p->cells * TSR_RESIDUAL_SYMBOLS;
    uint32_t *expected = must(malloc(cells * sizeof *expected));
    struct tsr_residual_model *got = copy_of(p->residual, p->b.shape.planes * sizeof *got);
    uint32_t *left = copy_of(p->counts, p->b.shape.planes * p->cell_counts * sizeof *left);
    for (int kind = 0; kind < COUNT_KINDS; kind++) {
        const uint32_t *const own = counts + (size_t)kind * p->cell_counts;
        memcpy(expected, own + special, cells * sizeof *expected);
        const int tables = tsr_merge_contexts(expected, (int)p->cells, TSR_RESIDUAL_SYMBOLS, model->table_of, merge);
        for (int t = 0; t < TSR_FIRST_RESIDUAL_TABLE + tables; t++) {
            const bool is_special = t < TSR_FIRST_RESIDUAL_TABLE;
            tsr_huffman_lengths(is_special ? own + t * TSR_RUN_ALPHABET
                                           : expected + (t - TSR_FIRST_RESIDUAL_TABLE) * TSR_RESIDUAL_SYMBOLS,
                                is_special ? TSR_RUN_ALPHABET : TSR_RESIDUAL_SYMBOLS, model->lengths[t], huffman);
        }
        for (uint32_t plane = (uint32_t)kind; plane < p->b.shape.planes; plane += COUNT_KINDS) {
            expect(got[plane].tables == tables, "%d, kind %d, plane %u: %d tables, not %d", number, kind, plane,
                   got[plane].tables, tables);
            assert_memory_equal(got[plane].table_of, model->table_of, p->cells);
            for (int t = 0; t < TSR_FIRST_RESIDUAL_TABLE + tables; t++)
                assert_memory_equal(got[plane].lengths[t], model->lengths[t],
                                    t < TSR_FIRST_RESIDUAL_TABLE ? TSR_RUN_ALPHABET : TSR_RESIDUAL_SYMBOLS);
            assert_memory_equal(left + plane * p->cell_counts + special, expected,
                                (size_t)tables * TSR_RESIDUAL_SYMBOLS * sizeof *expected);
        }
    }
    free(left);
    free(got);
    free(expected);
}

/* Merging and codes against the definition: for planes with few cells, with effort 1's cells and with all cells, also
 * with this many planes at once that a plane's counts do not all fit its share of shared memory. */
TEST(tables_of_counts)
{
    static const uint8_t groups[][2] = {{8, 3}, {TSR_ACTIVITY_GROUPS, 8}, {TSR_ACTIVITY_GROUPS, TSR_INTENSITY_GROUPS}};
    struct rng r = {408};
    int processors = 0;
    must_cuda(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
    struct tsr_merge_work *merge = must(malloc(sizeof *merge));
    struct tsr_huffman_work *huffman = must(malloc(sizeof *huffman));
    for (int number = 0; number < 12; number++) {
        const uint8_t *const by = groups[number % 3];
        const bool wide = number % 6 >= 3, many = number >= 6;
        if (skip_case()) continue;
        struct tsr_predict_batch p;
        memset(&p, 0, sizeof p);
        p.b.shape.planes = COUNT_KINDS + (many ? 8 * (uint32_t)processors : 0);
        p.b.shape.components = 1;
        p.b.shape.values = 1 << 16;
        p.huffman = true;
        p.b.shape.plane_samples = wide ? 1 << 28 : 1 << 18;
        p.cells = (uint32_t)(by[0] * by[1]);
        const size_t special = TSR_FIRST_RESIDUAL_TABLE * TSR_RUN_ALPHABET;
        p.cell_counts = special + p.cells * TSR_RESIDUAL_SYMBOLS;
        uint32_t *counts = must(calloc(COUNT_KINDS, p.cell_counts * sizeof *counts));
        for (int kind = 0; kind < COUNT_KINDS; kind++) {
            uint32_t *const own = counts + (size_t)kind * p.cell_counts;
            for (size_t i = 0; i < special; i++) own[i] = rng_below(&r, 3) ? 0 : rng_below(&r, 1000);
            fill_context_counts(&r, kind, wide, (int)p.cells, own + special);
        }
        struct device_buffer on_device = device_buffer(p.b.shape.planes * p.cell_counts * sizeof *counts),
                             states = device_buffer(p.b.shape.planes * sizeof *p.b.shared.plane),
                             models = device_buffer(p.b.shape.planes * sizeof *p.residual),
                             codes = device_buffer(p.b.shape.planes * sizeof *p.codes);
        p.counts = (uint32_t *)on_device.bytes;
        p.b.shared.plane = (struct tsr_plane_state *)states.bytes;
        p.residual = (struct tsr_residual_model *)models.bytes;
        p.codes = (struct tsr_device_codes *)codes.bytes;
        struct tsr_plane_state of_plane;
        struct tsr_residual_model model;
        memset(&of_plane, 0, sizeof of_plane);
        memset(&model, 0, sizeof model);
        of_plane.range = 1 << 16;
        model.activity_cuts = (uint8_t)(by[0] - 1);
        model.intensity_cuts = (uint8_t)(by[1] - 1);
        for (uint32_t plane = 0; plane < p.b.shape.planes; plane++) {
            must_cuda(cudaMemcpy(p.counts + plane * p.cell_counts, counts + plane % COUNT_KINDS * p.cell_counts,
                                 p.cell_counts * sizeof *counts, cudaMemcpyHostToDevice));
            must_cuda(cudaMemcpy(p.b.shared.plane + plane, &of_plane, sizeof of_plane, cudaMemcpyHostToDevice));
            must_cuda(cudaMemcpy(p.residual + plane, &model, sizeof model, cudaMemcpyHostToDevice));
        }
        must_cuda(tsr_predict_tables(&p, 0));
        must_cuda(cudaDeviceSynchronize());
        check_counted_tables(&p, number, counts, &model, merge, huffman);
        device_free(&codes, "codes");
        device_free(&models, "models");
        device_free(&states, "states");
        device_free(&on_device, "counts");
        free(counts);
    }
    free(huffman);
    free(merge);
}

/* Samples that are quantised first, with steps from 3 to more than all values, for path P's three coders. */
TEST(bounded_errors)
{
    static const uint32_t errors[] = {1, 2, 7, 40, 1000, TSR_MAX_ERROR_LIMIT};
    static const enum tsr_coder coders[] = {TSR_CODER_HUFFMAN, TSR_CODER_CAVLC, TSR_CODER_RANS};
    struct rng r = {409};
    for (int n = 0; n < 72; n++) {
        if (skip_case()) continue;
        const int bits = 8 + 2 * (n % 5), components = n % 4 == 3 ? 3 : 1;
        struct tsr_image image = plain_image(n % 3 ? 70 : 64, 50, components, bits <= 8 ? 8 : 16);
        image.bits_stored = (uint8_t)bits;
        image.high_bit = (uint8_t)(bits - 1);
        image.is_signed = n % 2 != 0;
        const struct tsr_coding coding = {.path = TSR_PATH_PREDICT,
                                          .coder = coders[n % 3],
                                          .effort = 1 + n % 9,
                                          .lossy = true,
                                          .max_error = errors[n / 3 % (int)COUNT_OF(errors)]};
        uint8_t *rasters = must(malloc(2 * raster_bytes(&image)));
        for (uint32_t f = 0; f < 2; f++) fill_scene(&r, &image, f, rasters + f * raster_bytes(&image));
        const uint32_t done = check_frames(&image, &coding, rasters, 2);
        const bool is_whole = image.bits_stored == image.bits_allocated || !image.is_signed;
        if (is_whole) expect(done == 2, "%d bits, error %u: %u of 2 frames on the GPU", bits, coding.max_error, done);
        free(rasters);
    }
}

/* The CPU engine does samples of 32 bits, which are in two halves. */
TEST(what_the_gpu_does_not_do)
{
    struct rng r = {407};
    struct tsr_image image = plain_image(60, 50, 1, 32);
    image.bits_allocated = 32;
    const struct tsr_coding coding = {.path = TSR_PATH_PREDICT, .coder = TSR_CODER_HUFFMAN};
    uint8_t *raster = must(malloc(raster_bytes(&image)));
    fill_raster(&r, &image, 5, raster);
    assert_int_equal(check_frames(&image, &coding, raster, 1), 0);
    free(raster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(training),
                                       cmocka_unit_test(training_by_energy),
                                       cmocka_unit_test(stages),
                                       cmocka_unit_test(random_frames),
                                       cmocka_unit_test(smallest_frames),
                                       cmocka_unit_test(shapes_of_frames),
                                       cmocka_unit_test(colours_and_ranges),
                                       cmocka_unit_test(efforts),
                                       cmocka_unit_test(rows_that_choices_see),
                                       cmocka_unit_test(resident),
                                       cmocka_unit_test(threads),
                                       cmocka_unit_test(predicted_efforts),
                                       cmocka_unit_test(predicted_depths),
                                       cmocka_unit_test(predicted_shapes),
                                       cmocka_unit_test(predicted_contents),
                                       cmocka_unit_test(predicted_sampled_rows),
                                       cmocka_unit_test(predicted_policies),
                                       cmocka_unit_test(launches_by_size),
                                       cmocka_unit_test(predicted_colours),
                                       cmocka_unit_test(predicted_packed),
                                       cmocka_unit_test(predicted_behind_wide_planes),
                                       cmocka_unit_test(predicted_screens),
                                       cmocka_unit_test(tables_of_counts),
                                       cmocka_unit_test(bounded_errors),
                                       cmocka_unit_test(what_the_gpu_does_not_do)};
    if (getenv("TSR_TEST")) cmocka_set_test_filter(getenv("TSR_TEST"));
    if (!has_device()) return SKIPPED;
    return cmocka_run_group_tests(tests, create_engines, destroy_engines);
}
