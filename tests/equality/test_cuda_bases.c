/* Frames with bases (BASE.md 3) by the CUDA engine and the CPU engine: the same bytes, the same choice of which frames
 * refer, and the same samples back. */
#include "both_engines.h"

enum { FRAMES = 3 };

/* Frames of which each is like the one before, but for a shift and noise; their bases, as linked frames have them. The
 * first of each three refers to none. The base of the last one is of another image, which is no use. */
struct volume {
    uint8_t *rasters, *other;
    const uint8_t *bases[FRAMES];
};

/* gap: of this many neighbouring values one is in use. noise: that of a frame beside the one before. */
static struct volume make_volume(struct rng *r, const struct tsr_image *image, uint32_t gap, uint32_t noise)
{
    const size_t bytes = raster_bytes(image), count = (size_t)image->columns * image->rows;
    const uint32_t values = (1u << image->bits_stored) - 1u, levels = values / gap + 1;
    const int low = image->high_bit + 1 - image->bits_stored;
    struct volume v = {must(calloc(FRAMES, bytes)), must(malloc(bytes)), {NULL}};
    uint32_t *level = must(malloc(4 * count * sizeof *level));
    for (size_t i = 0; i < count * image->components; i++)
        level[i] = (uint32_t)((i / image->components % image->columns + i / image->columns) * levels / 300 +
                              rng_below(r, levels / 12 + 2));
    for (uint32_t f = 0; f < FRAMES; f++)
        for (size_t i = 0; i < count * image->components; i++) {
            level[i] += rng_below(r, noise);
            const uint32_t sample = level[i] % levels * gap, sign = image->is_signed ? (values + 1) / 2 : 0;
            uint32_t word = sample ^ sign;
            if (image->is_signed && (word & sign)) word |= ~values;
            put_word(image, v.rasters + f * bytes,
                     word_place(image, (int)(i % image->components), i / image->components), word << low);
        }
    fill_raster(r, image, 0, v.other);
    for (uint32_t f = 0; f < FRAMES; f++) v.bases[f] = f % 3 ? v.rasters + (f - 1) * bytes : NULL;
    v.bases[FRAMES - 1] = v.other;
    free(level);
    return v;
}

static void free_volume(struct volume *v)
{
    free(v->rasters);
    free(v->other);
}

/* How many frames refer to their bases. */
static uint32_t count_referring(const struct coded_frames *c)
{
    uint32_t count = 0;
    for (uint32_t f = 0; f < c->frames; f++) {
        struct tsr_bit_reader reader = tsr_bit_reader(c->model[f].bytes, c->model[f].size);
        struct tsr_tiling tiling;
        assert_true(tsr_get_tiling(&reader, &c->image, &tiling));
        count += tsr_get_bits(&reader, 1);
    }
    return count;
}

/* Damage to models and tiles, and a base that is not there. */
static void check_damage(struct rng *r, struct coded_frames *c)
{
    const uint32_t number = rng_below(r, FRAMES);
    for (int damage = 0; damage < (small_only() ? 1 : 6); damage++) {
        struct tsr_segment *const segment = damage % 2 ? &c->model[number] : &c->tile[number * c->tiles];
        const struct tsr_segment sound = *segment;
        if (sound.size == 0) continue;
        uint8_t *copy = must(malloc(sound.size));
        memcpy(copy, sound.bytes, sound.size);
        copy[rng_below(r, (uint32_t)(sound.size < 60 ? sound.size : 60))] ^= (uint8_t)(1u << rng_below(r, 8));
        segment->bytes = copy;
        check_decoding(c);
        *segment = sound;
        free(copy);
    }
    const uint8_t *none[FRAMES] = {NULL};
    const uint8_t *const *const bases = c->bases;
    c->bases = none;
    check_decoding(c);
    c->bases = bases;
}

/* Returns how many frames refer; adds those that the GPU has coded to *on_gpu. */
static uint32_t check_volume(struct rng *r, const struct tsr_image *image, const struct tsr_coding *coding,
                             uint32_t gap, uint32_t noise, uint32_t *on_gpu)
{
    struct volume v = make_volume(r, image, gap, noise);
    const bool is_plain = image->bits_stored == image->bits_allocated || !image->is_signed;
    const uint32_t own = count_plain(image, coding, v.rasters, FRAMES);
    const uint32_t done = check_frames_on(image, coding, v.rasters, v.bases, false, FRAMES);
    expect(done == own || !is_plain, "%u of %u frames on the GPU", done, own);
    *on_gpu += done;
    if (coding->effort < 8) check_frames_on(image, coding, v.rasters + raster_bytes(image), v.bases + 1, true, 2);
    struct coded_frames c = code_frames_on(cpu, image, coding, v.rasters, v.bases, FRAMES, NULL);
    const uint32_t decoded = check_decoding(&c), referring = count_referring(&c);
    expect(decoded >= own, "%u of %u frames decoded on the GPU", decoded, own);
    check_damage(r, &c);
    free_frames(&c);
    free_volume(&v);
    return referring;
}

/* Any layout of words, efforts with linear predictors and the others, both coders, packed ranges; one tile and several,
 * of which the last ones are not whole. */
TEST(volumes)
{
    struct rng r = {601};
    uint32_t referring = 0, packed = 0, on_gpu = 0, frames = 0;
    for (int n = 0; n < (small_only() ? 8 : 120); n++) {
        struct tsr_image image = random_image(&r, n % 6 == 5 ? 90 : 40);
        while (image.bits_allocated != 8 && image.bits_allocated != 16) image = random_image(&r, 40);
        if (n < 3) image = plain_image(33, 20 + 10 * (uint32_t)n, n == 2 ? 3 : 1, n == 1 ? 12 : 8);
        if (n % 12 == 7) image = plain_image(1030, 7, 1, 16);
        if (n % 12 == 10) image = plain_image(9, 1030, 3, 8);
        if (image.bits_stored < 6) image.bits_stored = 6;
        if (image.high_bit + 1 < image.bits_stored) image.high_bit = (uint8_t)(image.bits_stored - 1);
        if (n > 2 && n % 3) image.bits_stored = image.bits_allocated;
        if (n > 2 && n % 3) image.high_bit = (uint8_t)(image.bits_stored - 1);
        image.frames = FRAMES; /* small frames that are alone may be drawn, and those are the CPU's */
        const bool rans = n % 2;
        struct tsr_coding coding = {.path = TSR_PATH_PREDICT,
                                    .coder = rans ? TSR_CODER_RANS : TSR_CODER_HUFFMAN,
                                    .effort = n % 4 == 0 ? 9
                                              : n < 3    ? 3 + 2 * n
                                                         : 1 + n % 8};
        if (n > 2 && skip_case()) continue;
        const uint32_t gap = n % 5 == 1 ? 7 : 1,
                       found = check_volume(&r, &image, &coding, gap, 2 + (uint32_t)n % 4, &on_gpu);
        frames += FRAMES;
        referring += found;
        if (gap > 1) packed += found;
    }
    printf("%u frames of %u on the GPU; %u refer, %u of few values\n", on_gpu, frames, referring, packed);
    expect(2 * on_gpu > frames, "%u of %u frames on the GPU", on_gpu, frames);
    expect(referring > 1 && packed > 0, "%u frames refer, %u of few values", referring, packed);
}

/* Frames of few colours, whose predictors refer to none, and constant planes before others. */
TEST(colours)
{
    struct rng r = {602};
    for (int n = 0; n < (small_only() ? 2 : 16); n++) {
        struct tsr_image image = plain_image(32, 30, 3, n % 2 ? 16 : 8);
        image.frames = FRAMES;
        const size_t bytes = raster_bytes(&image);
        const struct tsr_coding coding = {
            .path = TSR_PATH_PREDICT, .coder = TSR_CODER_RANS, .effort = n % 4 < 2 ? 6 : 9};
        struct volume v = make_volume(&r, &image, 1, 3);
        for (uint32_t f = 0; f < FRAMES; f++) {
            uint8_t *const raster = v.rasters + f * bytes;
            if (f % 3 == 1) fill_screen(&r, &image, 200, 1, true, raster);
            for (size_t i = 0; f % 3 == 2 && i < bytes; i++) /* the first component, or the second one */
                if (i / (image.bits_allocated / 8u) % 3 == (size_t)n % 2) raster[i] = 5;
        }
        check_frames_on(&image, &coding, v.rasters, v.bases, false, FRAMES);
        struct coded_frames c = code_frames_on(cpu, &image, &coding, v.rasters, v.bases, FRAMES, NULL);
        check_decoding(&c);
        free_frames(&c);
        free_volume(&v);
    }
}

/* What has bases, but no lanes, is the CPU's. */
TEST(blocks)
{
    struct rng r = {603};
    const struct tsr_image image = plain_image(64, 48, 1, 12);
    const struct tsr_coding coding = {.path = TSR_PATH_PREDICT, .coder = TSR_CODER_CAVLC, .effort = 9};
    struct volume v = make_volume(&r, &image, 1, 3);
    assert_int_equal(check_frames_on(&image, &coding, v.rasters, v.bases, false, FRAMES), 0);
    free_volume(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(volumes), cmocka_unit_test(colours), cmocka_unit_test(blocks)};
    if (!has_device()) return SKIPPED;
    return cmocka_run_group_tests(tests, create_engines, destroy_engines);
}
