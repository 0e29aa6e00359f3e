/* One file to a container, and back with all checks. */
#ifndef TSR_APP_LIBRARY_FILES_H
#define TSR_APP_LIBRARY_FILES_H

#include "arguments.h"
#include "budget.h"
#include "flow.h"
#include "loss/figures.h"

/* A report of which nothing is known yet. */
void tsr_clear_report(struct tsr_report *report);

/* What an input has become. */
struct tsr_written {
    struct tsr_header header;
    struct tsr_proof proof;
    struct tsr_container_writer *writer; /* of a series' member: the caller's, also on errors */
    struct tsr_ssim_sum ssim;            /* over all samples of a lossy file */
    char modality[20];                   /* as of the source */
    struct tsr_own_window own_window;    /* as in struct tsr_encoded */
    uint32_t windows_left_out;           /* as in the source's windows, and so is: */
    const char *windows_note;
    uint64_t bytes;               /* of the file; of a member, but for what is compressed with other members, at most */
    struct tsr_estimate estimate; /* as in struct tsr_encoded, and so is: */
    bool gives_way;
    bool tried_loss; /* the samples were coded with loss, whatever became of that */
    uint64_t payload_bytes;
    uint64_t base_bytes; /* 0: it has no base */
    struct tsr_told_loss base_loss;
    uint8_t *raster; /* of a member that may share its model with others: its only frame, the caller's; or NULL */
};

/* Writes an input's container to the output, is_member: that of a series' member. A source that turns out to be
 * unreadable, or coded would be larger than stored, is begun again, verbatim. What it takes of the engine's memory it
 * claims before. Errors: those of tsr_compress. */
enum tsr_status tsr_write_container(struct tsr_engine *engine, struct tsr_input *input, struct tsr_output *output,
                                    const struct tsr_wanted *wanted, bool is_member, struct tsr_written *written,
                                    struct tsr_report *report, struct tsr_error *error);

/* TSR_ERROR_LOSS if more was lost than is wanted. name: the input's. */
enum tsr_status tsr_check_loss(const struct tsr_wanted *wanted, const struct tsr_written *written, const char *name,
                               struct tsr_error *error);

/* The same with the memory claimed, and without a second look at what loss saves: wanted->settled says the coding of a
 * file that is coded again. */
enum tsr_status tsr_write_once(struct tsr_engine *engine, struct tsr_input *input, struct tsr_output *output,
                               const struct tsr_wanted *wanted, bool is_member, struct tsr_written *written,
                               struct tsr_report *report, struct tsr_error *error);

/* trials.c: calls tsr_write_once. A file with loss is written again without, where that takes at most 1.1 times
 * the bytes. */
enum tsr_status tsr_write_smaller(struct tsr_account *account, struct tsr_input *input, struct tsr_output *output,
                                  const struct tsr_wanted *wanted, bool is_member, struct tsr_written *written,
                                  struct tsr_report *report, struct tsr_error *error);

extern const char tsr_not_smaller[]; /* why such a file has no loss */

/* frames/base.c: checks that the base of a .tsr that has one is of the same file, and tells its loss; NULL: does not.
 * Errors: TSR_ERROR_CORRUPT, those of reading a .tsr. */
enum tsr_status tsr_base_of(struct tsr_container_reader *whole, struct tsr_told_loss *loss, struct tsr_error *error);

/* frames/rest.c: files with a base. Whether the source's frames refer to the base that is wanted, and the patches of
 * the region that is. What is not of the same image has none. Errors: those of the two functions below. */
enum tsr_status tsr_settle_base(struct tsr_source *source, const struct tsr_wanted *wanted, struct tsr_error *error);

/* Writes a file without loss whose frames refer to what it becomes with loss, which is written to base first; or one
 * with loss that has a region as it was. What cannot be coded with loss, or is stored, has no base. wanted->base
 * becomes the base. */
enum tsr_status tsr_write_on_base(struct tsr_account *account, struct tsr_input *input, struct tsr_output *output,
                                  struct tsr_wanted *wanted, struct tsr_written *written, struct tsr_report *report,
                                  struct tsr_output *base, struct tsr_error *error);
enum tsr_status tsr_write_with_region(struct tsr_account *account, struct tsr_input *input, struct tsr_output *output,
                                      struct tsr_wanted *wanted, struct tsr_written *written, struct tsr_report *report,
                                      struct tsr_output *base, struct tsr_error *error);

/* What was written, for its report. */
void tsr_report_written(const struct tsr_wanted *wanted, const struct tsr_written *written, struct tsr_report *report);

/* Restores what a reader, opened on the written file, has chosen, by what is to verify it, and compares it with what
 * was read. Says in the report by whom, and why not by the engine that is called. account: the reader's input's.
 * Errors: TSR_ERROR_VERIFY, TSR_ERROR_LIMIT. */
enum tsr_status tsr_verify_written(struct tsr_engine *engine, enum tsr_verify verify,
                                   struct tsr_container_reader *reader, struct tsr_account *account,
                                   const struct tsr_proof *expected, struct tsr_report *report,
                                   struct tsr_error *error);

/* TSR_ERROR_VERIFY with what else went wrong; TSR_ERROR_LIMIT stays. */
enum tsr_status tsr_fail_verify(enum tsr_status status, struct tsr_error *error);

/* The same of an output that is finished, which is read back. source: whose watch is asked. */
enum tsr_status tsr_verify_output(struct tsr_engine *engine, enum tsr_verify verify, struct tsr_output *written,
                                  struct tsr_key *key, const struct tsr_input *source, const struct tsr_proof *expected,
                                  struct tsr_report *report, struct tsr_error *error);

/* Restores what a reader has chosen, and compares it with a proof: also with what was read, not only with what the file
 * says of itself. account: the reader's input's; NULL: nothing is claimed. */
enum tsr_status tsr_restore_and_check(struct tsr_engine *engine, struct tsr_container_reader *reader,
                                      struct tsr_account *account, const struct tsr_proof *proof,
                                      struct tsr_output *restored, struct tsr_decoded *decoded, bool *identical,
                                      struct tsr_error *error);

/* Where a file that is only tested goes; NULL: no memory. */
struct tsr_output *tsr_output_to_test(const struct tsr_header *header);

/* calls/common_range.c: tsr_common_ranges(), from within a call. */
enum tsr_status tsr_find_ranges(struct tsr_engine *engine, const struct tsr_data_source *const *sources, uint32_t count,
                                bool are_one, uint32_t *ranges, struct tsr_error *error);

/* Exports what a reader of the input has chosen: of tsr_run_on_file. */
enum tsr_status tsr_export_file(struct tsr_engine *engine, struct tsr_input *input, struct tsr_container_reader *reader,
                                struct tsr_account *account, const char *name, const struct tsr_data_sink *sink,
                                enum tsr_export_syntax to, struct tsr_report *report, struct tsr_error *error);

/* Restores what a reader of the input has chosen to a call's sink, tests it (no sink), or exports it: the call's choice
 * is a syntax, or this. account: the input's. name: what to call it in sentences. whole: damage to what the file holds
 * twice makes a test fail. */
enum { TSR_NO_EXPORT = -1 };
struct tsr_call;
enum tsr_status tsr_run_on_file(const struct tsr_call *call, struct tsr_input *input,
                                struct tsr_container_reader *reader, struct tsr_account *account, const char *name,
                                bool whole);

/* describe.c: how a file with this header is held, and what it promises. */
enum tsr_way tsr_way_of(const struct tsr_header *header);
enum tsr_promise tsr_promise_of(const struct tsr_header *header);

/* describe.c: what of a file with this header comes back as it was. */
void tsr_tell_exact(const struct tsr_header *header, struct tsr_exact *exact);

/* What was restored, for its report: all but what came back and the output's bytes. */
void tsr_report_restored(struct tsr_container_reader *reader, const struct tsr_proof *proof,
                         const struct tsr_decoded *decoded, struct tsr_report *report);

/* Brings an output to the disk while other threads work; hands it over to its sink. Both add to the report's times. */
enum tsr_status tsr_finish_file(struct tsr_engine *engine, struct tsr_output *output, struct tsr_report *report,
                                struct tsr_error *error);
enum tsr_status tsr_deliver_file(const struct tsr_data_sink *sink, struct tsr_output *output, struct tsr_report *report,
                                 struct tsr_error *error);

/* What a reader has chosen says of itself; and a series as a whole: its files added up, but for those that are
 * damaged. */
enum tsr_status tsr_describe(struct tsr_container_reader *reader, struct tsr_info *info, struct tsr_error *error);
enum tsr_status tsr_describe_series(struct tsr_container_reader *reader, uint64_t file_bytes, struct tsr_info *info,
                                    struct tsr_error *error);

#endif
