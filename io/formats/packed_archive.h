/* The members of archives: ZIP and TAR. */
#ifndef TSR_IO_FORMATS_PACKED_ARCHIVE_H
#define TSR_IO_FORMATS_PACKED_ARCHIVE_H

#include "transform/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TSR_ARCHIVE_MEMBERS = 65535 }; /* of which more are bytes */

struct tsr_archive_member {
    size_t start, size; /* bytes of the archive that it takes; at most, where a ZIP does not tell */
    uint64_t plain;     /* bytes of the file, if the archive tells the truth; 0: it does not tell */
    bool is_deflated;   /* else its bytes are the file */
};
struct tsr_archive {
    struct tsr_archive_member *member; /* in the order of their bytes */
    size_t count;
};

bool tsr_begins_zip(const uint8_t *file, size_t size);
bool tsr_begins_tar(const uint8_t *file, size_t size);

/* The members that are not encrypted and are stored or deflated, none of them empty; of no archive none. Errors:
 * TSR_ERROR_LIMIT (memory). */
enum tsr_status tsr_list_archive(const uint8_t *file, size_t size, struct tsr_archive *archive,
                                 struct tsr_error *error);
void tsr_forget_archive(struct tsr_archive *archive);

#endif
