/* What files.c and series.c share: one file to a container, and back with all checks. */
#ifndef TSR_APP_LIBRARY_FILES_H
#define TSR_APP_LIBRARY_FILES_H

#include "budget.h"
#include "flow.h"

bool tsr_same_image(const struct tsr_image *a, const struct tsr_image *b);

/* A report of which nothing is known yet. */
void tsr_clear_report(struct tsr_file_report *report);

/* What an input has become. */
struct tsr_written {
    struct tsr_header header;
    struct tsr_proof proof;
    struct tsr_container_writer *writer; /* of a series' member: the caller's, also on errors */
    uint8_t *raster; /* of a member that may share its model with others: its only frame, the caller's; or NULL */
};

/* Writes an input's container to the output, is_member: that of a series' member. A source that turns out to be
 * unreadable, or coded would be larger than stored, is begun again, verbatim. What it takes of the engine's memory it
 * claims before. Errors: those of tsr_compress_file. */
enum tsr_status tsr_write_container(struct tsr_engine *engine, struct tsr_input *input, struct tsr_output *output,
                                    const struct tsr_compress_options *options, bool is_member,
                                    struct tsr_written *written, struct tsr_file_report *report,
                                    struct tsr_error *error);

/* What was written, for its report. */
void tsr_report_written(const struct tsr_compress_options *options, const struct tsr_written *written,
                        struct tsr_file_report *report);

/* Restores what a reader, opened on the written file, has chosen, by what is to verify it, and compares it with what
 * was read. Says in the report by whom, and why not by the engine that is called. account: the reader's input's.
 * Errors: TSR_ERROR_VERIFY, TSR_ERROR_LIMIT. */
enum tsr_status tsr_verify_written(struct tsr_engine *engine, enum tsr_verify verify,
                                   struct tsr_container_reader *reader, struct tsr_account *account,
                                   const struct tsr_proof *expected, struct tsr_file_report *report,
                                   struct tsr_error *error);

/* TSR_ERROR_VERIFY with what else went wrong; TSR_ERROR_LIMIT stays. */
enum tsr_status tsr_fail_verify(enum tsr_status status, struct tsr_error *error);

/* Restores what a reader of the input has chosen to the file named output, or tests it (NULL). account: the input's.
 * whole: damage to what the file holds twice makes a test fail. */
enum tsr_status tsr_restore_file(struct tsr_engine *engine, struct tsr_input *input,
                                 struct tsr_container_reader *reader, struct tsr_account *account, const char *output,
                                 const struct tsr_output_options *options, bool whole, struct tsr_file_report *report,
                                 struct tsr_error *error);

/* What a reader has chosen says of itself. */
enum tsr_status tsr_describe(struct tsr_container_reader *reader, struct tsr_info *info, struct tsr_error *error);

#endif
