/* Any bytes as a .tsr file: info and decoding return a documented status, without a crash and within bounds. */
#include "fuzz_support.h"

#include <stdlib.h>
#include <string.h>

/* Larger images would take seconds each and show nothing new. */
#define SAMPLES_LIMIT ((uint64_t)1 << 21)

static void check_status(enum tsr_status status, const struct tsr_error *error, const char *what)
{
    switch (status) {
    case TSR_OK:
    case TSR_ERROR_NOT_TSR:
    case TSR_ERROR_CORRUPT:
    case TSR_ERROR_LIMIT:
    case TSR_ERROR_VERSION:
        return;
    case TSR_ERROR_USAGE: /* a series that does not open is not a single file, either */
        if (strstr(error->text, "is a series of")) return;
        /* fallthrough */
    default:
        fuzz_finding("%s of a file that can be read: %s, %s", what, tsr_status_name(status), error->text);
    }
}

/* A member of a series: if its info can be read, it is restored, to as many bytes as reported. */
static void test_member(struct tsr_reader *series, uint32_t k, const char *output)
{
    struct tsr_error error = {TSR_OK, 0, "", 0};
    struct tsr_info info;
    struct tsr_report report;
    const enum tsr_status known = read_member_info(series, k, &info, &error);
    check_status(known, &error, "info of a member");
    FUZZ_PROMISE(known != TSR_OK || tsr_reader_name(series, k), "a member without a name has info");
    const uint64_t samples = (uint64_t)info.image.columns * info.image.rows * info.image.components;
    if (known == TSR_OK && samples > SAMPLES_LIMIT) return;
    const enum tsr_status status = restore_member_path(series, k, output, &report, &error);
    check_status(status, &error, "restoring a member");
    if (status != TSR_OK) return;
    FUZZ_PROMISE(known == TSR_OK, "a member without info is restored");
    size_t restored_size;
    free(fuzz_read_file(output, &restored_size));
    FUZZ_PROMISE(restored_size == report.bytes_out, "%zu bytes restored, %llu reported", restored_size,
                 (unsigned long long)report.bytes_out);
}

static int test_series(const char *input, const char *output, const struct tsr_info *info)
{
    struct tsr_error error = {TSR_OK, 0, "", 0};
    struct tsr_reader *series = NULL;
    const enum tsr_status status = open_series(fuzz_engine(1), input, &series, &error);
    check_status(status, &error, "opening a series");
    if (status != TSR_OK) return 0;
    FUZZ_PROMISE(series && tsr_reader_members(series) <= info->members, "a series of %u files has more", info->members);
    for (uint32_t k = 0; k < tsr_reader_members(series); k++) {
        const char *name = tsr_reader_name(series, k);
        /* The name must stay below its folder, whatever the file says. */
        FUZZ_PROMISE(!name || (name[0] && name[0] != '/' && !strstr(name, "//") && strcmp(name, "..") != 0 &&
                               strncmp(name, "../", 3) != 0 && !strstr(name, "/../")),
                     "a member is called %s", name);
        test_member(series, k, output);
    }
    tsr_close(series);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct fuzz_path input = fuzz_path("tsr"), output = fuzz_path("out");
    struct tsr_error error = {TSR_OK, 0, "", 0};
    struct tsr_info info;
    struct tsr_report report;
    fuzz_write_file(input.name, data, size);
    const enum tsr_status known = read_path_info(fuzz_engine(1), input.name, &info, &error);
    check_status(known, &error, "info");
    if (known == TSR_OK && info.members > 0) return test_series(input.name, output.name, &info);
    const uint64_t samples = (uint64_t)info.image.columns * info.image.rows * info.image.components;
    if (known == TSR_OK && samples > SAMPLES_LIMIT) return 0;

    const enum tsr_status status = restore_path(fuzz_engine(1), input.name, output.name, &report, &error);
    check_status(status, &error, "decompress");
    if (status != TSR_OK) return 0;
    FUZZ_PROMISE(known == TSR_OK, "a file without info decompresses");
    size_t restored_size;
    free(fuzz_read_file(output.name, &restored_size));
    FUZZ_PROMISE(restored_size == report.bytes_out, "%zu bytes restored, %llu reported", restored_size,
                 (unsigned long long)report.bytes_out);
    const enum tsr_status tested = restore_path(fuzz_engine(2), input.name, NULL, &report, &error);
    FUZZ_PROMISE(tested == (info.damage ? TSR_ERROR_CORRUPT : TSR_OK), "decompresses but tests as %s: %s",
                 tsr_status_name(tested), error.text);
    return 0;
}
