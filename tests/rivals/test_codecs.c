/* Every codec of tessera-rivals that is present: without loss all samples come back, with loss more bytes give a better
 * picture, and what a codec cannot hold it refuses with a reason. */
#include "pictures.h"

#include <math.h>
#include <unistd.h>

#include "tests/unit/support.h"

static struct rivals *rivals;
static struct rival *rival;
static const struct rival_codec *codecs;
static size_t codec_count;

static int set_up(void **state)
{
    struct tsr_error error;
    (void)state;
    unsetenv("TESSERA_RIVALS_FAKE");
    rivals = rivals_find();
    return !rivals || rivals_list(rivals, &codecs, &codec_count, &error) != TSR_OK ||
           rivals_take(rivals, "test", &rival, &error) != TSR_OK;
}

static int tear_down(void **state)
{
    (void)state;
    rivals_give(rivals, rival);
    rivals_close(rivals);
    return 0;
}

static const struct rival_codec *codec_of(const char *key)
{
    for (size_t i = 0; i < codec_count; i++)
        if (!strcmp(codecs[i].key, key)) return &codecs[i];
    fail_msg("the table has no %s", key);
    return NULL;
}

/* Codes the picture that is set. */
static struct rival_result code(const char *key, const char *setting, uint8_t *decoded)
{
    const struct rival_limits limits = {120, 0};
    struct tsr_error error = {0};
    struct rival_result result;
    const enum tsr_status status = rival_code(rival, key, setting, &limits, &result, decoded, &error);
    expect(status == TSR_OK, "%s %s: %s", key, setting, error.text);
    return result;
}

/* ---- The table ----------------------------------------------------------------------------------------------- */

TEST(the_table_says_what_each_codec_is)
{
    static const char *const keys[] = {"tessera",
                                       "tessera-rans",
                                       "tessera-huffman",
                                       "tessera-cavlc",
                                       "tessera-lossy-rans",
                                       "tessera-lossy-cavlc",
                                       "png",
                                       "zstd",
                                       "jpeg-ls",
                                       "jpeg-2000",
                                       "htj2k",
                                       "jxl-1",
                                       "jxl-3",
                                       "jxl-7",
                                       "webp",
                                       "dicom-rle",
                                       "jpeg-lossless",
                                       "tessera-lossy",
                                       "jpeg",
                                       "jpeg-optimised",
                                       "jpeg-420-optimised",
                                       "jpeg-2000-lossy",
                                       "htj2k-lossy",
                                       "jxl-lossy",
                                       "webp-lossy"};
    assert_int_equal(codec_count, COUNT_OF(keys));
    for (size_t i = 0; i < codec_count; i++) {
        const struct rival_codec *const c = codec_of(keys[i]);
        expect(*c->name && *c->options && *c->reason && *c->library, "%s", c->key);
        expect(c->is_ours == (strncmp(c->key, "tessera", 7) == 0), "%s", c->key);
        expect(c->setting_count == (!strcmp(c->key, "tessera") ? 6 : c->is_lossy ? 8 : 1), "%s", c->key);
        expect(!c->is_missing || strncmp(c->library, "lib", 3) == 0, "%s: %s", c->key, c->library);
        expect(c->is_missing || strpbrk(c->library, "0123456789"), "%s: %s has no version", c->key, c->library);
    }
}

TEST(a_missing_codec_names_its_package)
{
    const uint8_t samples[4] = {0};
    const struct rival_picture picture = {2, 2, 1, 8, NULL, samples};
    rival_set_picture(rival, &picture);
    for (size_t i = 0; i < codec_count; i++) {
        if (!codecs[i].is_missing) continue;
        const struct rival_result r = code(codecs[i].key, codecs[i].settings[0], NULL);
        assert_int_equal(r.outcome, RIVAL_CANNOT);
        expect(strstr(r.reason, codecs[i].library), "%s: %s", codecs[i].key, r.reason);
    }
}

/* ---- Lossless ------------------------------------------------------------------------------------------------ */

/* One codec at all of its settings. */
static void check_lossless(const struct rival_codec *codec, const struct rival_picture *p)
{
    const size_t count = (size_t)p->columns * p->rows * (size_t)p->channels;
    uint8_t *const decoded = p->bits <= 8 ? malloc(count) : NULL;
    for (int s = 0; s < codec->setting_count; s++) {
        const struct rival_result r = code(codec->key, codec->settings[s], decoded);
        const char *const setting = codec->settings[s];
        const enum rival_outcome wanted = must_hold(codec, p) ? RIVAL_DONE : RIVAL_CANNOT;
        expect(r.outcome == wanted, "%s %s of %u x %u x %d, %d bits: %s", codec->key, setting, p->columns, p->rows,
               p->channels, p->bits, r.reason);
        expect(r.outcome == RIVAL_DONE || (*r.reason && r.bytes == 0 && r.runs == 0), "%s", codec->key);
        if (r.outcome != RIVAL_DONE) continue;
        expect(r.is_same && r.bytes > 0 && r.runs >= 1 && r.runs <= 7, "%s %s", codec->key, setting);
        expect(r.encode_s > 0 && r.decode_s > 0 && r.encode_spread >= 0 && r.decode_spread >= 0, "%s", codec->key);
        for (size_t i = 0; decoded && i < count; i++)
            expect(decoded[i] == p->words[i], "%s %s: sample %zu", codec->key, setting, i);
    }
    free(decoded);
}

static void check_all_lossless(enum content content, int columns, int rows, int channels, int bits)
{
    uint16_t *const words = make_words(content, columns, rows, channels, bits);
    const struct rival_picture picture = describe_words(words, columns, rows, channels, bits);
    rival_set_picture(rival, &picture);
    for (size_t i = 0; i < codec_count; i++)
        if (!codecs[i].is_lossy) check_lossless(&codecs[i], &picture);
    free(words);
}

TEST(all_samples_come_back_at_each_depth)
{
    static const int depths[] = {1, 2, 5, 7, 8, 9, 10, 12, 14, 15, 16};
    for (size_t d = 0; d < COUNT_OF(depths); d++)
        for (int channels = 1; channels <= 3; channels += 2)
            for (int content = 0; content < CONTENTS; content++)
                check_all_lossless((enum content)content, 67, 41, channels, depths[d]);
}

TEST(all_samples_come_back_at_each_size)
{
    static const int sizes[][2] = {{1, 1}, {1, 9}, {11, 1}, {2, 2}, {3, 5}, {31, 33}, {257, 3}, {5, 300}};
    static const int depths[] = {8, 12, 16};
    for (size_t s = 0; s < COUNT_OF(sizes); s++)
        for (size_t d = 0; d < COUNT_OF(depths); d++)
            for (int channels = 1; channels <= 4; channels++)
                check_all_lossless(NOISE, sizes[s][0], sizes[s][1], channels, depths[d]);
}

/* Coders that were given swapped or shifted samples would still give them back, but in more bytes. The texture's
 * residuals are large: bytes, zstd and CAVLC, whose codes are made for small numbers, save nothing on it. */
TEST(smooth_samples_take_few_bytes)
{
    static const int depths[] = {8, 12, 16};
    for (size_t d = 0; d < COUNT_OF(depths); d++)
        for (int channels = 1; channels <= 3; channels += 2) {
            uint16_t *const words = make_words(TEXTURE, 256, 200, channels, depths[d]);
            const struct rival_picture picture = describe_words(words, 256, 200, channels, depths[d]);
            const double bits = 256.0 * 200 * channels * depths[d];
            rival_set_picture(rival, &picture);
            for (size_t i = 0; i < codec_count; i++) {
                const char *const key = codecs[i].key;
                if (codecs[i].is_lossy || !must_hold(&codecs[i], &picture) || !strcmp(key, "zstd") ||
                    !strcmp(key, "dicom-rle") || !strcmp(key, "png") || !strcmp(key, "tessera-cavlc"))
                    continue;
                const struct rival_result r = code(key, codecs[i].settings[0], NULL);
                expect(8 * (double)r.bytes < 0.83 * bits, "%s: %g of %d bits", key, 8 * (double)r.bytes / bits,
                       depths[d]);
            }
            free(words);
        }
}

/* ---- Lossy --------------------------------------------------------------------------------------------------- */

static double psnr(const uint16_t *words, const uint8_t *decoded, size_t count)
{
    double squares = 0;
    for (size_t i = 0; i < count; i++) squares += pow((double)words[i] - decoded[i], 2);
    return squares > 0 ? 10 * log10(65025.0 * (double)count / squares) : 99;
}

static int compare_points(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

TEST(with_loss_more_bytes_give_a_better_picture)
{
    enum { COLUMNS = 161, ROWS = 123 };
    for (int channels = 1; channels <= 3; channels += 2) {
        const size_t count = (size_t)COLUMNS * ROWS * (size_t)channels;
        uint16_t *const words = make_words(TEXTURE, COLUMNS, ROWS, channels, 8);
        uint8_t *const decoded = malloc(count);
        const struct rival_picture picture = describe_words(words, COLUMNS, ROWS, channels, 8);
        rival_set_picture(rival, &picture);
        for (size_t i = 0; i < codec_count; i++) {
            double points[RIVAL_SETTINGS][2]; /* bytes, PSNR */
            if (!codecs[i].is_lossy || !must_hold(&codecs[i], &picture)) continue;
            for (int s = 0; s < codecs[i].setting_count; s++) {
                const struct rival_result r = code(codecs[i].key, codecs[i].settings[s], decoded);
                expect(r.outcome == RIVAL_DONE, "%s %s: %s", codecs[i].key, codecs[i].settings[s], r.reason);
                points[s][0] = (double)r.bytes;
                points[s][1] = psnr(words, decoded, count);
                assert_int_equal(r.is_same, points[s][1] == 99);
            }
            const int n = codecs[i].setting_count;
            qsort(points, (size_t)n, sizeof *points, compare_points);
            expect(points[0][1] > 25 && points[n - 1][1] > 36, "%s: %g to %g dB", codecs[i].key, points[0][1],
                   points[n - 1][1]);
            for (int s = 1; s < n; s++)
                expect(points[s][1] > points[s - 1][1] - 0.5 && points[s][0] > points[s - 1][0], "%s: point %d",
                       codecs[i].key, s);
        }
        free(decoded);
        free(words);
    }
}

TEST(lossy_codecs_refuse_what_is_not_an_8_bit_grey_or_rgb_picture)
{
    static const int kinds[][2] = {{1, 12}, {3, 16}, {2, 8}, {4, 8}, {1, 7}};
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        uint16_t *const words = make_words(NOISE, 9, 8, kinds[k][0], kinds[k][1]);
        const struct rival_picture picture = describe_words(words, 9, 8, kinds[k][0], kinds[k][1]);
        rival_set_picture(rival, &picture);
        for (size_t i = 0; i < codec_count; i++) {
            if (!codecs[i].is_lossy) continue;
            const struct rival_result r = code(codecs[i].key, codecs[i].settings[0], NULL);
            expect(r.outcome == RIVAL_CANNOT && *r.reason, "%s: %s", codecs[i].key, r.reason);
        }
        free(words);
    }
}

/* ---- Choices ------------------------------------------------------------------------------------------------- */

/* Channels that rise together: CharLS's transforms pay, and the note says which was chosen. */
TEST(jpeg_ls_chooses_a_transform_for_colour)
{
    if (codec_of("jpeg-ls")->is_missing) skip();
    uint16_t *const words = make_words(NOISE, 64, 64, 3, 8);
    for (size_t i = 0; i < 64 * 64; i++) words[3 * i + 1] = words[3 * i + 2] = words[3 * i];
    const struct rival_picture picture = describe_words(words, 64, 64, 3, 8);
    rival_set_picture(rival, &picture);
    const struct rival_result r = code("jpeg-ls", "", NULL);
    assert_int_equal(r.outcome, RIVAL_DONE);
    expect(strstr(r.reason, "transform HP"), "chose %s", r.reason);
    expect(r.bytes < 64 * 64 * 3 / 2, "%llu bytes", (unsigned long long)r.bytes);
    free(words);
}

/* Memory counts whatever codec ran before, and twice the same. */
TEST(memory_is_that_of_the_codec)
{
    enum { SIDE = 1024 };
    if (access("/proc/self/status", R_OK) != 0) skip();
    uint16_t *const words = make_words(TEXTURE, SIDE, SIDE, 1, 12);
    const struct rival_picture picture = describe_words(words, SIDE, SIDE, 1, 12);
    rival_set_picture(rival, &picture);
    const uint64_t first = code("tessera", "-3", NULL).peak_bytes;
    if (!codec_of("zstd")->is_missing) code("zstd", "", NULL);
    const uint64_t second = code("tessera", "-3", NULL).peak_bytes;
    expect(first > 500000 && first < 100000000, "%llu bytes", (unsigned long long)first);
    expect(second > first / 2 && second < 2 * first, "%llu bytes, then %llu", (unsigned long long)first,
           (unsigned long long)second);
    free(words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_says_what_each_codec_is),
        cmocka_unit_test(a_missing_codec_names_its_package),
        cmocka_unit_test(all_samples_come_back_at_each_depth),
        cmocka_unit_test(all_samples_come_back_at_each_size),
        cmocka_unit_test(smooth_samples_take_few_bytes),
        cmocka_unit_test(with_loss_more_bytes_give_a_better_picture),
        cmocka_unit_test(lossy_codecs_refuse_what_is_not_an_8_bit_grey_or_rgb_picture),
        cmocka_unit_test(jpeg_ls_chooses_a_transform_for_colour),
        cmocka_unit_test(memory_is_that_of_the_codec),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
