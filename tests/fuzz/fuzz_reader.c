/* See the header. */
#include "fuzz_reader.h"

#include <stdlib.h>
#include <string.h>

#include "app/library/flow.h"
#include "tests/large_files.h"

static struct tsr_compress_options options_of(uint8_t choice)
{
    struct tsr_compress_options options = TSR_COMPRESS_OPTIONS;
    options.path = choice & 1 ? TSR_PATH_TRANSFORM : TSR_PATH_PREDICT;
    options.coder = choice & 2 ? TSR_CODER_CAVLC : TSR_CODER_HUFFMAN;
    if ((choice & 5) == 5) {
        options.loss = TSR_LOSS_QP;
        options.qp_eighths = (choice >> 4) * 24;
    }
    options.allow_lossy = choice & 8;
    options.samples_only = choice & 128;
    return options;
}

/* Without loss: the restored file is the original, or, if it was made anew, its samples have the same hash. */
static void check_restored(const char *restored, const uint8_t *data, size_t size, const char *container,
                           const struct tsr_report *report, const char *ending)
{
    size_t restored_size;
    uint8_t *bytes = fuzz_read_file(restored, &restored_size);
    if (report->promise == TSR_PROMISE_FILE) {
        FUZZ_PROMISE(restored_size == size && memcmp(bytes, data, size) == 0, "restored %zu bytes are not the %zu",
                     restored_size, size);
    } else {
        const struct fuzz_path again = fuzz_path("again.tsr");
        const struct tsr_compress_options plain = options_of(128);
        struct tsr_report second;
        struct tsr_error error = {TSR_OK, 0, "", 0};
        struct tsr_info one, other;
        large_files = true; /* a small file would have no hash of the samples */
        enum tsr_status status = compress_path(fuzz_engine(1), restored, again.name, &plain, &second, &error);
        large_files = false;
        FUZZ_PROMISE(status == TSR_OK, "the restored %s: %s, %s", ending, tsr_status_name(status), error.text);
        const bool is_small = !second.has_image && strcmp(second.reason, tsr_smaller_stored) == 0;
        FUZZ_PROMISE(second.has_image || is_small, "the restored %s is none: %s", ending, second.reason);
        status = read_path_info(fuzz_engine(1), container, &one, &error);
        FUZZ_PROMISE(status == TSR_OK, "info: %s", error.text);
        status = read_path_info(fuzz_engine(1), again.name, &other, &error);
        FUZZ_PROMISE(status == TSR_OK, "info: %s", error.text);
        FUZZ_PROMISE(is_small || memcmp(one.samples_hash, other.samples_hash, sizeof one.samples_hash) == 0,
                     "the restored %s has other samples", ending);
    }
    free(bytes);
}

void fuzz_file(const uint8_t *data, size_t size, const char *ending)
{
    const struct fuzz_path input = fuzz_path(ending), container = fuzz_path("tsr"), output = fuzz_path("out");
    const struct tsr_compress_options options = options_of(size > 0 ? data[size - 1] : 0);
    struct tsr_report report, restored;
    struct tsr_error error = {TSR_OK, 0, "", 0};
    fuzz_write_file(input.name, data, size);
    enum tsr_status status = compress_path(fuzz_engine(1), input.name, container.name, &options, &report, &error);
    if (status == TSR_ERROR_USAGE && options.loss && !options.allow_lossy) return;
    if (status == TSR_ERROR_LIMIT) return; /* the header names an image that the engine's memory cannot hold */
    FUZZ_PROMISE(status == TSR_OK, "compress: %s, %s", tsr_status_name(status), error.text);
    FUZZ_PROMISE(report.verified, "compress has not verified");
    status = restore_path(fuzz_engine(1), container.name, output.name, &restored, &error);
    FUZZ_PROMISE(status == TSR_OK, "decompress: %s, %s", tsr_status_name(status), error.text);
    check_restored(output.name, data, size, container.name, &report, ending);
}
