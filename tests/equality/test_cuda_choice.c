/* The choice of coefficients by rate and distortion on the device against the CPU's. The units are such as no picture
 * gives. */
#include "device.h"

#include "tests/plain_image.h"

#include "kernels/batch/batch_transform_cuda.h"
#include "kernels/blocks/lapped_cpu.h"

#include "entropy/rate_distortion.h"

/* Units of all magnitudes below 2^most. In many blocks there is nothing to choose. */
static void fill_units(struct rng *r, int most, int32_t *units, size_t blocks)
{
    for (size_t b = 0; b < blocks; b++) {
        const int width = (int)rng_below(r, 4) ? rng_between(r, 6, 12) : rng_between(r, 1, most);
        const uint32_t rare = 1 + rng_below(r, 12);
        for (int p = 0; p < TSR_BLOCK_SAMPLES; p++) {
            int32_t *at = &units[TSR_BLOCK_SAMPLES * b + (size_t)p];
            *at = (int32_t)rng_width(r, p == 0 || rng_below(r, rare) == 0 ? width : 7);
            if (rng_below(r, 8) == 0) *at = (*at >> 7 << 7) + rng_between(r, -1, 1); /* where rounding changes */
            if (rng_below(r, 2)) *at = -*at;
        }
    }
}

/* The index of coefficient p of a tile's block. */
static size_t place_of(const struct tsr_cuda_batch *b, uint32_t plane, const struct tsr_tile_place *place,
                       int32_t column, int32_t row, uint32_t p)
{
    const uint32_t slice = place->first_slice + (uint32_t)(row / TSR_SLICE_BLOCKS) * place->slice_columns +
                           (uint32_t)(column / TSR_SLICE_BLOCKS);
    const int32_t in_slice = row % TSR_SLICE_BLOCKS * TSR_SLICE_BLOCKS + column % TSR_SLICE_BLOCKS;
    return tsr_coefficient_place((size_t)plane * b->shape.slices + slice, p / 4, (uint32_t)in_slice) + p % 4;
}

/* The input of the choice and the results that it should give, by coefficient of the batch, by tile or by plane. */
struct choice {
    size_t count; /* of coefficients */
    int32_t *units, *expected;
    uint8_t *lapped;
    struct tsr_plane_state *states;
    uint64_t *magnitudes;
};

enum { NO_BLOCK = 0x7abcdef }; /* units of places without blocks */

/* Makes random units for a tile, and the CPU's choice for them. */
static void choose_tile(struct rng *r, const struct tsr_cuda_batch *b, uint32_t plane, uint32_t t,
                        struct choice *choice)
{
    const struct tsr_tile_place place = tsr_tile_place(b, t);
    const struct tsr_block_grid grid = tsr_block_grid(place.tile.width, place.tile.height, 1);
    const size_t blocks = (size_t)grid.columns * (size_t)grid.rows;
    int32_t *own = must(malloc(2 * blocks * TSR_BLOCK_SAMPLES * sizeof *own));
    int32_t *chosen = own + blocks * TSR_BLOCK_SAMPLES;
    void *scratch = must(malloc(tsr_choose_scratch_bytes(place.tile.width)));
    uint8_t *lapped = &choice->lapped[plane * b->shape.tiles + t];
    fill_units(r, b->transform.narrow ? 20 : 28, own, blocks);
    memcpy(chosen, own, blocks * TSR_BLOCK_SAMPLES * sizeof *own);
    *lapped = (uint8_t)rng_below(r, 2);
    tsr_choose_coefficients(chosen, place.tile, *lapped != 0, TSR_RATE_LAMBDA, b->transform.plan.cavlc_bits, scratch);
    for (size_t i = 0; i < blocks; i++)
        for (uint32_t p = 0; p < TSR_BLOCK_SAMPLES; p++) {
            const size_t at = place_of(b, plane, &place, (int32_t)i % grid.columns, (int32_t)i / grid.columns, p);
            const int32_t expected = chosen[TSR_BLOCK_SAMPLES * i + p];
            choice->expected[at] = expected;
            choice->units[at] = p == 0 ? expected : own[TSR_BLOCK_SAMPLES * i + p];
            if (p > 0 && i % TSR_MAGNITUDE_STEP == 0) choice->magnitudes[plane] += (uint32_t)tsr_abs(expected);
        }
    free(scratch);
    free(own);
}

/* Coefficients and magnitudes on the device against the CPU's. */
static void check_chosen(const struct tsr_cuda_batch *b, const struct choice *choice)
{
    const size_t bytes = choice->count * (b->transform.narrow ? sizeof(int16_t) : sizeof(int32_t));
    void *coefficients = must(malloc(bytes));
    must_cuda(cudaMemcpy(coefficients, b->transform.coefficients, bytes, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < choice->count; i++) {
        if (choice->units[i] == NO_BLOCK) continue;
        const int32_t coefficient =
            b->transform.narrow ? ((const int16_t *)coefficients)[i] : ((const int32_t *)coefficients)[i];
        expect(coefficient == choice->expected[i], "%u x %u, coefficient %zu is %d, not %d of %d",
               b->shape.image.columns, b->shape.image.rows, i, coefficient, choice->expected[i], choice->units[i]);
    }
    free(coefficients);
    if (!b->transform.magnitudes) return;
    const uint32_t planes = b->shape.planes;
    uint64_t *found = must(malloc(planes * sizeof *found));
    must_cuda(cudaMemcpy(found, b->transform.magnitudes, planes * sizeof *found, cudaMemcpyDeviceToHost));
    for (uint32_t plane = 0; plane < planes; plane++)
        expect(found[plane] == choice->magnitudes[plane], "plane %u", plane);
    free(found);
}

static void check_choice(struct rng *r, const struct tsr_image *image, const struct tsr_coding *coding, uint32_t frames)
{
    if (skip_case()) return;
    struct tsr_cuda_batch b;
    struct device_buffer arena = device_buffer(tsr_cuda_lay_out(&b, image, coding, frames, NULL, NULL));
    tsr_cuda_lay_out(&b, image, coding, frames, NULL, arena.bytes);
    must_cuda(cudaMemset(b.shared.cleared, 0, b.shared.cleared_bytes));
    const uint32_t planes = b.shape.planes, tiles = planes * b.shape.tiles;
    const size_t count = (size_t)planes * b.shape.slices * TSR_SLICE_PLACE_COUNT * TSR_BLOCK_SAMPLES;
    struct choice choice = {.count = count};
    choice.units = must(malloc(count * sizeof *choice.units));
    choice.expected = must(calloc(count, sizeof *choice.expected));
    choice.lapped = must(malloc(tiles));
    choice.states = must(malloc(planes * sizeof *choice.states));
    choice.magnitudes = must(calloc(planes, sizeof *choice.magnitudes));
    for (size_t i = 0; i < count; i++) choice.units[i] = NO_BLOCK;
    for (uint32_t plane = 0; plane < planes; plane++) {
        choice.states[plane] = (struct tsr_plane_state){65535, 9, 10, 0};
        for (uint32_t t = 0; t < b.shape.tiles; t++) choose_tile(r, &b, plane, t, &choice);
    }
    must_cuda(cudaMemcpy(b.transform.units, choice.units, count * sizeof *choice.units, cudaMemcpyHostToDevice));
    must_cuda(cudaMemcpy(b.transform.lapped, choice.lapped, tiles, cudaMemcpyHostToDevice));
    must_cuda(cudaMemcpy(b.shared.plane, choice.states, planes * sizeof *choice.states, cudaMemcpyHostToDevice));
    must_cuda(tsr_cuda_choose(&b, 0));
    must_cuda(cudaDeviceSynchronize());
    check_chosen(&b, &choice);
    free(choice.magnitudes);
    free(choice.states);
    free(choice.lapped);
    free(choice.expected);
    free(choice.units);
    device_free(&arena, "the batch's arrays");
}

/* Every coder, narrow and wide coefficients, one slice and several, several tiles. */
TEST(choices)
{
    static const enum tsr_coder coders[] = {TSR_CODER_HUFFMAN, TSR_CODER_CAVLC, TSR_CODER_RANS};
    static const int32_t sides[][2] = {{17, 9}, {64, 64}, {65, 70}, {200, 130}, {150, 300}, {1100, 70}};
    struct rng r = {431};
    for (int n = 0; n < 36; n++) {
        const struct tsr_image image =
            plain_image((uint32_t)sides[n % 6][0], (uint32_t)sides[n % 6][1], 1, n % 2 ? 16 : 8);
        const struct tsr_coding coding = {.path = TSR_PATH_TRANSFORM,
                                          .coder = coders[n / 6 % 3],
                                          .lossy = true,
                                          .qp_eighths = 20 * TSR_QP_UNIT,
                                          .effort = n < 18 ? 5 : 7};
        check_choice(&r, &image, &coding, 1 + (uint32_t)n % 2);
    }
}

int main(void)
{
    if (!has_device()) return SKIPPED;
    const struct CMUnitTest tests[] = {cmocka_unit_test(choices)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
