/* The members of archives: ZIP and TAR. */
#ifndef TSR_IO_FORMATS_PACKED_ARCHIVE_H
#define TSR_IO_FORMATS_PACKED_ARCHIVE_H

#include "io/input.h"

enum { TSR_ARCHIVE_MEMBERS = 1 << 20 }; /* of which more are bytes */

struct tsr_archive_member {
    uint64_t start, size; /* bytes of the archive that it takes; at most, where a ZIP does not tell */
    uint64_t plain;       /* bytes of the file, if the archive tells the truth; 0: it does not tell */
    bool is_deflated;     /* else its bytes are the file */
};
struct tsr_archive {
    struct tsr_archive_member *member; /* in the order of their bytes */
    size_t count, capacity;
};

bool tsr_begins_zip(const uint8_t *file, size_t size);
bool tsr_begins_tar(const uint8_t *file, size_t size);

/* The members that are not encrypted and are stored or deflated, none of them empty; of no archive none. Of the archive
 * only their headers are read. The list is claimed as a header is. Errors: TSR_ERROR_LIMIT (memory), TSR_ERROR_READ. */
enum tsr_status tsr_list_archive(struct tsr_input *input, struct tsr_archive *archive, struct tsr_error *error);
void tsr_forget_archive(struct tsr_archive *archive);

#endif
