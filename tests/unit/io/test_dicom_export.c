/* io/formats/dicom/dicom_export.h, tsr_exporter_check: an exported file whose samples are not those of the .tsr is
 * refused, in transfer syntaxes with the values of samples and in those with whole cells. */
#include "dicom_bytes.h"
#include "io/formats/dicom/dicom_export.h"

enum { COLUMNS = 13, ROWS = 7, FRAMES = 2, RASTER = 2 * COLUMNS * ROWS, STORED = 12 };

/* The frames of a file of 12 bits in 16, as a .tsr gives them. */
struct frames {
    uint8_t raster[FRAMES][RASTER];
};

static const char *const words[] = {"native", "jpeg-ls", "jpeg-lossless", "rle"};
static const enum tsr_export_syntax syntaxes[] = {TSR_EXPORT_NATIVE, TSR_EXPORT_JPEG_LS, TSR_EXPORT_JPEG_LOSSLESS,
                                                  TSR_EXPORT_RLE};

static struct frames make_frames(struct rng *r, int high_bit)
{
    struct frames frames;
    for (int f = 0; f < FRAMES; f++)
        for (int i = 0; i < COLUMNS * ROWS; i++) {
            const uint32_t cell = rng_below(r, 1 << STORED) << (high_bit + 1 - STORED);
            frames.raster[f][2 * i] = (uint8_t)cell;
            frames.raster[f][2 * i + 1] = (uint8_t)(cell >> 8);
        }
    return frames;
}

/* FORMAT.md 3.4. */
static struct tsr_hash128 hash_of(const struct frames *frames)
{
    struct tsr_hash128 hash[FRAMES];
    for (int f = 0; f < FRAMES; f++) hash[f] = tsr_hash128_of(frames->raster[f], RASTER);
    return tsr_hash128_of(hash, sizeof hash);
}

/* The file up to the value of its pixel data. */
static struct dicom_bytes make_prefix(int high_bit)
{
    struct dicom_bytes d = {.form = explicit_little};
    put_meta(&d, syntax_of(d.form));
    put_text(&d, 0x00080016, "UI", "1.2.840.10008.5.1.4.1.1.2");
    put_text(&d, 0x00080018, "UI", "1.2.3.4.5");
    put_us(&d, 0x00280002, 1);
    put_text(&d, 0x00280004, "CS", "MONOCHROME2");
    put_text(&d, 0x00280008, "IS", "2");
    put_us(&d, 0x00280010, ROWS);
    put_us(&d, 0x00280011, COLUMNS);
    put_us(&d, 0x00280100, 16);
    put_us(&d, 0x00280101, STORED);
    put_us(&d, 0x00280102, (uint32_t)high_bit);
    put_us(&d, 0x00280103, 0);
    put_head(&d, TSR_TAG_PIXEL_DATA, "OW", FRAMES * RASTER);
    return d;
}

/* Exports the frames to a new output in memory. */
static struct tsr_exporter *export_frames(const struct frames *frames, int high_bit, enum tsr_export_syntax to,
                                          struct tsr_output *output)
{
    const struct tsr_header header = {.kind = TSR_KIND_DICOM,
                                      .recipe = TSR_RECIPE_SPLICE,
                                      .image = {.columns = COLUMNS,
                                                .rows = ROWS,
                                                .frames = FRAMES,
                                                .components = 1,
                                                .bits_allocated = 16,
                                                .bits_stored = STORED,
                                                .high_bit = (uint8_t)high_bit}};
    struct tsr_exporter *exporter = NULL;
    struct tsr_error error = {0};
    struct dicom_bytes prefix = make_prefix(high_bit);
    enum tsr_status status = tsr_can_export(&header, to, &error);
    if (status == TSR_OK) status = tsr_exporter_create(&header, to, false, output, &exporter, &error);
    if (status == TSR_OK)
        status = tsr_exporter_put_blob(exporter, TSR_BLOB_PREFIX, prefix.all.data, prefix.all.size, &error);
    for (int f = 0; f < FRAMES && status == TSR_OK; f++)
        status = tsr_exporter_put_frame(exporter, frames->raster[f], &error);
    if (status == TSR_OK) status = tsr_exporter_end(exporter, &error);
    expect(status == TSR_OK, "%s", error.text);
    free_dicom(&prefix);
    return exporter;
}

static void check(const struct tsr_exporter *exporter, const struct tsr_output *written,
                  const struct tsr_hash128 *samples, const char *wanted, const char *what, const char *word)
{
    struct tsr_error error = {0};
    struct tsr_input *input =
        must(tsr_input_from_memory(tsr_output_bytes(written), (size_t)tsr_output_size(written), "it"));
    const enum tsr_status status = tsr_exporter_check(exporter, input, samples, &error);
    expect(status == (wanted ? TSR_ERROR_CORRUPT : TSR_OK) && strcmp(error.text, wanted ? wanted : "") == 0,
           "%s, %s: %s '%s'", what, word, tsr_status_name(status), error.text);
    tsr_input_close(input);
}

/* The damaged file is an export of the frames with the lowest bit of one sample changed. */
static void check_changes(struct rng *r, int high_bit, size_t k)
{
    static const char others[] = "its samples are others";
    struct frames frames = make_frames(r, high_bit), changed = frames;
    const int low_bit = high_bit + 1 - STORED;
    changed.raster[FRAMES - 1][2 * rng_below(r, COLUMNS * ROWS)] ^= (uint8_t)(1 << low_bit);
    const struct tsr_hash128 samples = hash_of(&frames), of_changed = hash_of(&changed);
    struct tsr_output *output = must(tsr_output_to_memory()), *damaged = must(tsr_output_to_memory());
    struct tsr_exporter *exporter = export_frames(&frames, high_bit, syntaxes[k], output);
    tsr_exporter_free(export_frames(&changed, high_bit, syntaxes[k], damaged));
    check(exporter, output, &samples, NULL, "as it was written", words[k]);
    check(exporter, damaged, &samples, others, "a sample of the file differs", words[k]);
    check(exporter, output, &of_changed, others, "the .tsr promises other samples", words[k]);
    tsr_exporter_free(exporter);
    tsr_output_close(output);
    tsr_output_close(damaged);
}

TEST(other_samples_are_refused)
{
    struct rng r = {1};
    for (size_t k = 0; k < COUNT_OF(syntaxes); k++) {
        check_changes(&r, STORED - 1, k);
        check_changes(&r, STORED + 1, k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(other_samples_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
