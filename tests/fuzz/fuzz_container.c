/* Any bytes as a .tsr file: info and decoding return a documented status, without a crash and within bounds. */
#include "fuzz_support.h"

#include "app/tessera_cli.h"

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
    case TSR_ERROR_KEY: /* encrypted, and there is no key */
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

static void forget_region(void *context, uint32_t frame, const struct tsr_region *region, bool is_held)
{
    uint64_t *const told = context;
    (void)frame;
    (void)is_held;
    *told += (uint64_t)region->columns * region->rows;
}

/* What is left of the file: a documented status. *all: each of its samples is held. */
static void salvage(const uint8_t *data, size_t size, bool *all)
{
    struct tsr_buffer picture = {NULL, 0}, mask = {NULL, 0};
    const struct tsr_data_source source = tsr_from_memory(data, size);
    const struct tsr_data_sink sink = tsr_to_memory(&picture), of_mask = tsr_to_memory(&mask);
    struct tsr_salvage_sinks sinks = TSR_SALVAGE_SINKS;
    struct tsr_salvaged found = TSR_SALVAGED;
    struct tsr_error error = {TSR_OK, 0, "", 0};
    uint64_t told = 0;
    sinks.mask = &of_mask;
    sinks.tell = forget_region;
    sinks.context = &told;
    const enum tsr_status status = tsr_salvage(fuzz_engine(1), &source, 0, &sink, &sinks, &found, &error);
    *all = status == TSR_OK && found.samples_held == found.samples;
    if (status != TSR_ERROR_USAGE) check_status(status, &error, "salvage");
    FUZZ_PROMISE(status == TSR_OK || (!picture.bytes && !mask.bytes), "nothing is salvaged, but %zu bytes",
                 picture.count);
    FUZZ_PROMISE(status != TSR_OK || (found.samples_held > 0 && told >= found.samples_held / found.image.components),
                 "%llu samples, of which %llu are told", (unsigned long long)found.samples_held,
                 (unsigned long long)told);
    tsr_buffer_free(&picture);
    tsr_buffer_free(&mask);
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
    bool all;
    salvage(data, size, &all);

    const enum tsr_status status = restore_path(fuzz_engine(1), input.name, output.name, &report, &error);
    check_status(status, &error, "decompress");
    if (status != TSR_OK) return 0;
    FUZZ_PROMISE(known == TSR_OK, "a file without info decompresses");
    FUZZ_PROMISE(all || !info.has_image || info.members > 0, "a whole file is not salvaged as a whole");
    size_t restored_size;
    free(fuzz_read_file(output.name, &restored_size));
    FUZZ_PROMISE(restored_size == report.bytes_out, "%zu bytes restored, %llu reported", restored_size,
                 (unsigned long long)report.bytes_out);
    const enum tsr_status tested = restore_path(fuzz_engine(2), input.name, NULL, &report, &error);
    FUZZ_PROMISE(tested == (info.damage ? TSR_ERROR_CORRUPT : TSR_OK), "decompresses but tests as %s: %s",
                 tsr_status_name(tested), error.text);
    return 0;
}
