/* Manifests: a list of originals with their sizes and hashes.
 *
 *   # tessera manifest 1
 *   # complete 000000000001
 *   # bytes=524288 xxh3-128=00112233445566778899aabbccddeeff restores=file
 *   e3b0c442...  patient/slice_001.dcm
 *
 * The second line counts the entries; it is "# unfinished" while FILE.part is written, which a run at work has locked
 * (flock). A line with bytes= tells of the file in the line after it. restores: file (byte for byte), samples (in a new
 * file), loss. The other lines are those of sha256sum, which takes the whole as its list: `sha256sum -c MANIFEST` in
 * the folder of the originals, or of what was restored. A name with a backslash or a newline is escaped as sha256sum
 * does it. Names are places in the layout: the original's path below what was named. */
#ifndef TSR_APP_CLI_VERBS_MANIFEST_H
#define TSR_APP_CLI_VERBS_MANIFEST_H

#include "app/cli/cli.h"

/* Begins the file that --manifest names, which appears when it is complete; until then it is called FILE.part. With
 * --update an earlier one is read, and one that a killed run has left: their hashes stand for originals that have not
 * changed, and their entries stay of files that this run does not see. Errors: TSR_ERROR_EXISTS (also of another
 * file's that has the name FILE.part), TSR_ERROR_WRITE, TSR_ERROR_READ, TSR_ERROR_LIMIT. */
enum tsr_status begin_manifest(const struct options *options, struct tsr_error *error);

/* Reads the original again, or what an earlier manifest says of it: outcome->sha256, of the very bytes whose XXH3-128
 * the report has. Errors: TSR_ERROR_READ (it has changed), TSR_ERROR_LIMIT. */
enum tsr_status hash_for_manifest(struct tsr_engine *engine, const struct task *task,
                                  const struct tsr_data_source *source, struct outcome *outcome);

/* An entry for what has become of the task; and what is written so far to the disk, before originals go. Errors:
 * TSR_ERROR_WRITE. */
void note_in_manifest(const struct task *task, const struct outcome *outcome);
enum tsr_status sync_manifest(struct tsr_error *error);

/* Writes all entries by name, one for each, and gives the file its name if it is complete; else it stays FILE.part, and
 * says so. Errors: TSR_ERROR_WRITE, TSR_ERROR_READ, TSR_ERROR_LIMIT. */
enum tsr_status end_manifest(bool is_complete, struct tsr_error *error);

/* test --manifest: reads the manifest; lists the .tsr files, and each file of the manifest that has none, as failed. Of
 * a manifest that is not complete it takes the entries that are there, and manifest_is_cut says so: no run passes. */
enum tsr_status list_with_manifest(const struct options *options, struct tsr_engine *engine, struct task_list *list,
                                   struct tsr_error *error);
bool manifest_is_cut(void);

/* Tests a .tsr, and compares it with its entry. Errors: TSR_ERROR_VERIFY, those of tsr_test. */
enum tsr_status test_with_manifest(struct tsr_engine *engine, const struct task *task,
                                   const struct tsr_data_source *source, struct outcome *outcome);

void free_manifest(void);

#endif
