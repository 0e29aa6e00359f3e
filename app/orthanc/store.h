/* A storage area on a file system: each file as ROOT/aa/bb/ID.tsr, or as ROOT/aa/bb/ID, as Orthanc itself keeps it.
 * aa and bb are the first four digits of ID. All functions but store_open and store_close may be called by several
 * threads at once, which need no more than 64 KiB of stack: the engine's own threads do the work. */
#ifndef TSR_ORTHANC_STORE_H
#define TSR_ORTHANC_STORE_H

#include <stdatomic.h>

#include "app/orthanc/settings.h"

struct store;

enum store_status {
    STORE_OK = 0,
    STORE_BAD_ID,     /* not 36 hexadecimal digits and hyphens */
    STORE_MISSING,    /* there is no such file */
    STORE_DAMAGED,    /* a file cannot be read back as it was */
    STORE_UNREADABLE, /* the system cannot read it */
    STORE_NO_MEMORY,
    STORE_BAD_RANGE,
    STORE_FULL, /* the disk is */
    STORE_UNWRITABLE
};

/* What became of a call: a sentence. Of STORE_OK it is empty, but for a file that is kept as it is. */
struct store_note {
    char text[768];
};

/* Since the store was opened. */
struct store_counts {
    _Atomic uint64_t coded, stored, kept; /* files that are written: as .tsr, coded or stored; as they are */
    _Atomic uint64_t bytes_in, bytes_out; /* of these, before and on the disk */
    _Atomic uint64_t read, ranges, removed;
    _Atomic uint64_t refused, damaged, failed_reads; /* writes that failed; reads: damaged files, and all others */
};

/* NULL: sentence says why. */
struct store *store_open(const struct settings *settings, char sentence[SETTINGS_SENTENCE]);
/* No other call may use the store then. */
void store_close(struct store *store);
struct store_counts *store_counts(struct store *store);
const struct tsr_engine *store_engine(const struct store *store);

/* Writes a file, and returns STORE_OK only when it is on the disk with its name, and a .tsr is proven. What cannot be
 * coded is kept as it is. */
enum store_status store_create(struct store *store, const char *id, const void *bytes, size_t count,
                               struct store_note *note);

/* Reads a file. allocate gives room for all of its bytes, or NULL; it is called when they are proven, or of a file that
 * is kept as it is when its size is known. */
enum store_status store_read(struct store *store, const char *id, void *(*allocate)(void *context, size_t count),
                             void *context, struct store_note *note);

/* Reads count bytes of a file from offset on. */
enum store_status store_read_range(struct store *store, const char *id, uint64_t offset, void *bytes, size_t count,
                                   struct store_note *note);

/* Removes a file in both of its forms. It is no error if there is none. */
enum store_status store_remove(struct store *store, const char *id, struct store_note *note);

#endif
