/* The making of a series: what the files of this folder share. */
#ifndef TSR_APP_LIBRARY_SERIES_SERIES_H
#define TSR_APP_LIBRARY_SERIES_SERIES_H

#include <pthread.h>

#include "app/library/files.h"

enum { TSR_SERIES_GROUP_FILES = 32 }; /* most members of a group */

struct tsr_series_member {
    uint64_t size;             /* of its file, when groups were formed */
    struct tsr_output *output; /* its own, or the series' */
    struct tsr_written written;
    bool ready;
};

/* Members that are coded together. */
struct tsr_series_group {
    uint32_t first, end;
    size_t room; /* bytes of memory for what its files become */
};

/* A series that is being written. */
struct tsr_series_making {
    struct tsr_engine *engine;
    const struct tsr_series_file *files;
    uint32_t count;
    const struct tsr_wanted *wanted;
    uint32_t *ranges; /* of the values of each, where it is coded with loss */
    struct tsr_report *report;
    const struct tsr_series_options *options;
    struct tsr_output *output;
    struct tsr_output *sealed; /* NULL; or what the output will be encrypted to, with the key */
    struct tsr_key *key;
    struct tsr_container_writer *writer;
    struct tsr_container_reader *reader; /* of what was written */
    struct tsr_series_member *members;
    struct tsr_series_group *groups;
    uint32_t group_count;
    pthread_mutex_t lock;
    pthread_cond_t turned; /* next or roomy has grown, or all is over */
    uint32_t next;         /* file to be added */
    uint32_t roomy, added; /* groups that took room, and of those that gave it back */
    uint64_t bytes_in, bytes_out;
    uint32_t steps;
    uint32_t failed; /* the first file, by number, that failed; count: none */
    enum tsr_status status;
    struct tsr_error error;
};

/* Most bytes that a member in memory has, with its list of sections and its blobs, which wait: what it becomes is
 * hardly longer than what it is. */
static inline size_t tsr_series_output_bytes(uint64_t size)
{
    return (size_t)(size + 2 * TSR_EXCESS_BYTES);
}

/* With the lock: a file has failed. */
void tsr_series_note_failure(struct tsr_series_making *m, uint32_t k, enum tsr_status status,
                             const struct tsr_error *error);

/* models.c: looks for members of a group that follow each other and are alike. */
void tsr_series_share_models(struct tsr_series_making *m, uint32_t first, uint32_t end);

#endif
