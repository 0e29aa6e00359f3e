/* What files.c and series.c share: one file to a container, and back with all checks. */
#ifndef TSR_APP_FILES_H
#define TSR_APP_FILES_H

#include "flow.h"

bool tsr_same_image(const struct tsr_image *a, const struct tsr_image *b);

/* A report of which nothing is known yet. */
void tsr_clear_report(struct tsr_file_report *report);

/* Writes an input's container to the output; a source that turns out to be unreadable is begun again, verbatim. With
 * member it is a series' member that is written, whose writer is the caller's, also on errors. Header and proof are
 * those of what was written. Errors: those of tsr_compress_file. */
enum tsr_status tsr_write_container(struct tsr_engine *engine, struct tsr_input *input, struct tsr_output *output,
                                    const struct tsr_compress_options *options, struct tsr_container_writer **member,
                                    struct tsr_proof *proof, struct tsr_header *header, struct tsr_file_report *report,
                                    struct tsr_error *error);

/* What was written, for its report. */
void tsr_report_written(const struct tsr_compress_options *options, const struct tsr_header *header,
                        const struct tsr_proof *proof, struct tsr_file_report *report);

/* Restores what a reader, opened on the written file, has chosen, by what is to verify it, and compares it with what
 * was read. Says in the report by whom, and why not by the engine that is called. Errors: TSR_ERROR_VERIFY,
 * TSR_ERROR_LIMIT. */
enum tsr_status tsr_verify_written(struct tsr_engine *engine, enum tsr_verify verify,
                                   struct tsr_container_reader *reader, const char *original,
                                   const struct tsr_proof *expected, struct tsr_file_report *report,
                                   struct tsr_error *error);

/* TSR_ERROR_VERIFY with what else went wrong; TSR_ERROR_LIMIT stays. */
enum tsr_status tsr_fail_verify(enum tsr_status status, struct tsr_error *error);

/* Restores what a reader of the input has chosen to the file named output, or tests it (NULL). whole: damage to what
 * the file holds twice makes a test fail. */
enum tsr_status tsr_restore_file(struct tsr_engine *engine, struct tsr_input *input,
                                 struct tsr_container_reader *reader, const char *output, bool overwrite, bool whole,
                                 struct tsr_file_report *report, struct tsr_error *error);

/* What a reader has chosen says of itself. */
enum tsr_status tsr_describe(struct tsr_container_reader *reader, struct tsr_info *info, struct tsr_error *error);

#endif
