/* What stands in a long file, and is packed while pieces are written: the members of an archive (ZIP, TAR); the streams
 * in other files; the blocks of a DICOM file's elements. */
#ifndef TSR_IO_FORMATS_PACKED_ARCHIVE_H
#define TSR_IO_FORMATS_PACKED_ARCHIVE_H

#include "io/input.h"

enum { TSR_ARCHIVE_MEMBERS = 1 << 20 }; /* of which more are bytes */

enum tsr_found_kind { TSR_FOUND_JPEG, TSR_FOUND_DEFLATE, TSR_FOUND_FILE, TSR_FOUND_ELEMENTS, TSR_FOUND_KINDS };

struct tsr_archive_member {
    uint64_t start, size; /* bytes of the archive that it takes; at most, where a ZIP or PDF does not tell */
    uint64_t plain;       /* bytes of the file, if the archive tells the truth; 0: it does not tell */
    uint64_t memory;      /* that packing it takes; 0: see lane_memory in packed_members.c */
    enum tsr_found_kind kind;
    unsigned form; /* of elements, as tsr_elements_mix_block takes it */
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

/* Appends a member to the list. Errors: TSR_ERROR_LIMIT. */
enum tsr_status tsr_list_member(struct tsr_input *input, struct tsr_archive *archive,
                                const struct tsr_archive_member *member, struct tsr_error *error);

/* The same of the streams in an AVI, PDF, TIFF or JPEG file, which is read once; and of the elements of a DICOM file.
 * TSR_DECLINED: a block of these that was tried does not become smaller. */
enum tsr_status tsr_list_streams(struct tsr_input *input, struct tsr_archive *archive, struct tsr_error *error);
enum tsr_status tsr_list_elements(struct tsr_input *input, struct tsr_archive *archive, struct tsr_error *error);

#endif
