/* Engines, and calls on files by path, for most tests. */
#ifndef TSR_TESTS_PATHS_H
#define TSR_TESTS_PATHS_H

#include <stdio.h>

#include "app/tessera.h"

/* Makes an engine. Returns NULL if there is none of that choice. */
static inline struct tsr_engine *make_engine(enum tsr_engine_choice choice, int threads)
{
    struct tsr_engine_options options = TSR_ENGINE_OPTIONS;
    struct tsr_engine *engine;
    options.choice = choice;
    options.threads = threads;
    return tsr_engine_create(&options, &engine, NULL) == TSR_OK ? engine : NULL;
}

static inline struct tsr_data_sink overwritten(const char *path)
{
    struct tsr_data_sink sink = tsr_to_path(path);
    sink.overwrite = true;
    return sink;
}

static inline enum tsr_status compress_path(struct tsr_engine *engine, const char *input, const char *output,
                                            const struct tsr_compress_options *options, struct tsr_report *report,
                                            struct tsr_error *error)
{
    const struct tsr_data_source source = tsr_from_path(input);
    const struct tsr_data_sink sink = overwritten(output);
    report->size = sizeof *report;
    return tsr_compress(engine, &source, &sink, options, report, error);
}

/* Restores input to output, or tests input if output is NULL. */
static inline enum tsr_status restore_path(struct tsr_engine *engine, const char *input, const char *output,
                                           struct tsr_report *report, struct tsr_error *error)
{
    const struct tsr_data_source source = tsr_from_path(input);
    const struct tsr_data_sink sink = overwritten(output);
    report->size = sizeof *report;
    return output ? tsr_restore(engine, &source, &sink, report, error) : tsr_test(engine, &source, report, error);
}

static inline enum tsr_status restore_member_path(struct tsr_reader *reader, uint32_t member, const char *output,
                                                  struct tsr_report *report, struct tsr_error *error)
{
    const struct tsr_data_sink sink = overwritten(output);
    report->size = sizeof *report;
    return output ? tsr_restore_member(reader, member, &sink, report, error)
                  : tsr_test_member(reader, member, report, error);
}

/* Opens a .tsr. An original gives TSR_ERROR_NOT_TSR. */
static inline enum tsr_status open_tsr(struct tsr_engine *engine, const char *path, struct tsr_reader **reader,
                                       struct tsr_error *error)
{
    const struct tsr_data_source source = tsr_from_path(path);
    const enum tsr_status status = tsr_open(engine, &source, reader, error);
    if (status != TSR_OK || tsr_reader_content(*reader) != TSR_CONTENT_ORIGINAL) return status;
    tsr_close(*reader);
    *reader = NULL;
    error->status = TSR_ERROR_NOT_TSR;
    error->offset = TSR_NO_OFFSET;
    snprintf(error->text, sizeof error->text, "%.400s is not a .tsr file", path);
    return TSR_ERROR_NOT_TSR;
}

/* Opens a series. *reader is NULL if the .tsr is not a series. */
static inline enum tsr_status open_series(struct tsr_engine *engine, const char *path, struct tsr_reader **reader,
                                          struct tsr_error *error)
{
    const enum tsr_status status = open_tsr(engine, path, reader, error);
    if (status != TSR_OK || tsr_reader_content(*reader) == TSR_CONTENT_SERIES) return status;
    tsr_close(*reader);
    *reader = NULL;
    return TSR_OK;
}

static inline enum tsr_status read_member_info(struct tsr_reader *reader, uint32_t member, struct tsr_info *info,
                                               struct tsr_error *error)
{
    info->size = sizeof *info;
    return tsr_read_info(reader, member, info, error);
}

/* Reads what a .tsr says about itself. info->damage stays valid. */
static inline enum tsr_status read_path_info(struct tsr_engine *engine, const char *path, struct tsr_info *info,
                                             struct tsr_error *error)
{
    struct tsr_reader *reader;
    enum tsr_status status = open_tsr(engine, path, &reader, error);
    if (status != TSR_OK) return status;
    status = read_member_info(reader, TSR_ALL_MEMBERS, info, error);
    tsr_close(reader);
    return status;
}

#endif
