/* Missing memory: each allocation of a run fails in turn, alone or with all that follow. The run ends with
 * TSR_ERROR_LIMIT, or with success if it can do without. It leaves neither a block nor a file.
 *   test_memory DATA      the synthetic set */
#include "in_memory.h"

#include "failing_calls.h"
#include "kernels/pool/large_stack.h"

static const char *data;

struct run {
    const char *input;
    struct tsr_compress_options options;
};

/* An engine, compress with verification, decompress, test, info. */
static enum tsr_status run_all(const struct run *run, struct tsr_error *error)
{
    struct tsr_report report;
    struct tsr_info info;
    struct tsr_engine *engine = make_engine(TSR_ENGINE_CPU, 1);
    if (!engine) return tsr_fail(error, TSR_ERROR_LIMIT, "no engine");
    enum tsr_status status = compress_path(engine, run->input, path_in_folder("tsr"), &run->options, &report, error);
    if (status == TSR_OK) status = restore_path(engine, path_in_folder("tsr"), path_in_folder("out"), &report, error);
    if (status == TSR_OK) status = restore_path(engine, path_in_folder("tsr"), NULL, &report, error);
    if (status == TSR_OK) status = read_path_info(engine, path_in_folder("tsr"), &info, error);
    tsr_engine_destroy(engine);
    return status;
}

static void fail_each_allocation(const struct run *run)
{
    struct tsr_error error = {0};
    empty_folder();
    plan_no_failures();
    enum tsr_status status = run_all(run, &error);
    if (status != TSR_OK) fail_msg("%s: %s", run->input, error.text);
    const long calls = call_plans[CALL_ALLOCATE].count;
    const struct bytes tsr = read_bytes(path_in_folder("tsr")), out = read_bytes(path_in_folder("out"));
    assert_true(calls > 20);
    int did_without = 0;
    for (int lasts = 0; lasts < 2; lasts++) {
        for (long n = 1; n <= calls; n++) {
            empty_folder();
            const long before = live_blocks();
            memset(&error, 0, sizeof error);
            plan_calls(CALL_ALLOCATE, n, lasts, FAULT_ERROR);
            status = run_all(run, &error);
            plan_no_failures();
            expect(live_blocks() == before, "%s, allocation %ld: %ld blocks are left", run->input, n,
                   live_blocks() - before);
            expect(status == TSR_OK || status == TSR_ERROR_LIMIT, "%s, allocation %ld: %s: %s", run->input, n,
                   tsr_status_name(status), error.text);
            if (status == TSR_ERROR_LIMIT)
                expect(error.status == status && error.text[0], "%s, allocation %ld: '%s'", run->input, n, error.text);
            /* The files that exist are whole. */
            int files = 0;
            if (access(path_in_folder("tsr"), F_OK) == 0) {
                const struct bytes b = read_bytes(path_in_folder("tsr"));
                expect(status != TSR_OK || equal(b, tsr), "%s, allocation %ld: another .tsr", run->input, n);
                did_without += !equal(b, tsr);
                free(b.data);
                files++;
            }
            if (access(path_in_folder("out"), F_OK) == 0) {
                const struct bytes b = read_bytes(path_in_folder("out"));
                expect(equal(b, out), "%s, allocation %ld: another file was restored", run->input, n);
                free(b.data);
                files++;
            }
            assert_int_equal(count_files(), files); /* no temporary file */
        }
    }
    expect(did_without == 0, "%s: %d other files", run->input, did_without);
    free(tsr.data);
    free(out.data);
    empty_folder();
}

static const char *in_data(const char *name)
{
    static char path[1024];
    snprintf(path, sizeof path, "%s/%s", data, name);
    return path;
}

static const struct tsr_compress_options lossless = TSR_COMPRESS_OPTIONS;
static const struct tsr_compress_options lossy = {
    .size = sizeof lossy, .loss = TSR_LOSS_QP, .qp_eighths = 24 * TSR_QP_UNIT, .allow_lossy = true};
static const struct tsr_compress_options steered = {
    .size = sizeof steered, .loss = TSR_LOSS_PSNR, .psnr_hundredths = 4000};

TEST(pnm)
{
    fail_each_allocation(&(struct run){in_data("odd/31x33_8bit.pgm"), lossless});
    fail_each_allocation(&(struct run){in_data("pnm/landscape_8bit.ppm"), lossless});
}

TEST(pnm_with_loss)
{
    fail_each_allocation(&(struct run){in_data("odd/31x33_16bit.pgm"), lossy});
    fail_each_allocation(&(struct run){in_data("odd/31x33_16bit.pgm"), steered});
}

TEST(png)
{
    fail_each_allocation(&(struct run){in_data("png/chunks/chunks_rgb.png"), lossless});
    fail_each_allocation(&(struct run){in_data("png/formats/palette4.png"), lossless});
}

TEST(verbatim)
{
    fail_each_allocation(&(struct run){in_data("other/text.txt"), lossless});
    fail_each_allocation(&(struct run){in_data("other/empty"), lossless});
    fail_each_allocation(&(struct run){in_data("png/damaged/bad_data.png"), lossless});
}

TEST(dicom)
{
    static const char *const names[] = {"dicom/samples/1bit_noise.dcm", "dicom/sizes/5x7_frames.dcm",
                                        "dicom/forms/deflated.dcm", "dicom/odd/truncated.dcm"};
    for (size_t i = 0; i < COUNT_OF(names); i++) fail_each_allocation(&(struct run){in_data(names[i]), lossless});
}

TEST(dicom_with_loss)
{
    fail_each_allocation(&(struct run){in_data("dicom/sizes/23x38.dcm"), lossy});
    fail_each_allocation(&(struct run){in_data("dicom/forms/deflated.dcm"), lossy});
}

/* Frames in memory: to payload and back. */
TEST(frames_in_memory)
{
    /* Without /proc it is not known how much is left of this stack: a thread for the call is tried first, and may be
     * missing. */
    if (!tsr_has_large_stack()) skip();
    static const uint8_t raster[64 * 64];
    struct tsr_image image;
    memset(&image, 0, sizeof image);
    image.columns = image.rows = 64;
    image.frames = image.components = 1;
    image.bits_allocated = image.bits_stored = 8;
    image.high_bit = 7;
    uint8_t *payload = must(malloc(tsr_encode_bound(&image)));
    static uint8_t back[64 * 64];
    for (long n = 1, failed = 1; failed; n++) {
        size_t size = 0;
        const struct tsr_coding coding = {.path = TSR_PATH_PREDICT, .coder = TSR_CODER_HUFFMAN};
        plan_no_failures();
        const long before = live_blocks();
        plan_calls(CALL_ALLOCATE, n, false, FAULT_ERROR);
        struct tsr_engine *engine = make_engine(TSR_ENGINE_CPU, 1);
        enum tsr_status status = engine ? TSR_OK : TSR_ERROR_LIMIT;
        if (engine) status = tsr_encode_frame(engine, &image, &coding, raster, payload, &size, NULL);
        if (status == TSR_OK) status = tsr_decode_frame(engine, &image, payload, size, back, NULL);
        tsr_engine_destroy(engine);
        failed = call_plans[CALL_ALLOCATE].failed;
        plan_no_failures();
        expect(status == (failed ? TSR_ERROR_LIMIT : TSR_OK), "allocation %ld: %s", n, tsr_status_name(status));
        expect(live_blocks() == before, "allocation %ld: %ld blocks are left", n, live_blocks() - before);
    }
    free(payload);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pnm),
                                       cmocka_unit_test(pnm_with_loss),
                                       cmocka_unit_test(png),
                                       cmocka_unit_test(verbatim),
                                       cmocka_unit_test(dicom),
                                       cmocka_unit_test(dicom_with_loss),
                                       cmocka_unit_test(frames_in_memory)};
    if (argc != 2) return 2;
    data = argv[1];
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
