/* Finds the sections of a .tsr file and reads them one at a time. Sections are found through the index, through its
 * copy, or in a damaged file by walking from one to the next. GROUND.md and FORMAT.md 3 and 5. container_reader.h knows
 * what the sections mean to each other. */
#ifndef TSR_IO_CONTAINER_SECTION_READER_H
#define TSR_IO_CONTAINER_SECTION_READER_H

#include "section.h"

/* A section that the index names or a walk through the file has found. */
struct tsr_place {
    uint64_t offset;
    uint64_t length; /* of the whole section */
    uint8_t type;
};

/* Bytes of memory that a section costs: its place, twice while the list of places grows, and the notes of a reader. */
enum { TSR_FRAME_MEMORY = 32, TSR_INDEX_MEMORY = 2 * sizeof(struct tsr_place) + TSR_FRAME_MEMORY + 9 };

struct tsr_sections {
    struct tsr_input *input;
    bool salvages;           /* what is damaged is looked for where it is not needed otherwise */
    bool header_alone;       /* places are not wanted; copies are read only if the header is damaged */
    const char *damage;      /* the first part that is damaged and has an intact copy, as a word; or NULL */
    struct tsr_place *place; /* the sections between the header and the index */
    size_t count, capacity;
    uint64_t first;  /* where the first section after the header begins */
    bool is_walked;  /* the sections were found without an index, as far as the file is intact */
    uint8_t *buffer; /* a section as it is stored */
    size_t buffer_capacity;
    /* Of a small file: the file that it stands for; input then is another one, which reads that. Else NULL. */
    struct tsr_output *expanded;
    uint64_t small_bytes, small_payload; /* the small file's; and of them those of frames and tiles */
    uint64_t header_hash;                /* an id begins with it: the hash of the header's body, whose id counts as 0 */
};

/* Reads the header and finds the places. The caller has set input, salvages and header_alone; all else is 0. Errors:
 * TSR_ERROR_NOT_TSR, TSR_ERROR_VERSION, TSR_ERROR_CORRUPT, TSR_ERROR_LIMIT, TSR_ERROR_READ. */
enum tsr_status tsr_find_sections(struct tsr_sections *s, struct tsr_header *header, struct tsr_error *error);

/* Reads type and whole length of the section at offset. Errors: TSR_ERROR_CORRUPT (it does not fit into the file),
 * TSR_ERROR_READ. */
enum tsr_status tsr_read_head(struct tsr_sections *s, uint64_t offset, uint8_t *type, uint64_t *length,
                              struct tsr_error *error);

/* Adds a place behind the others. Errors: TSR_ERROR_LIMIT. */
enum tsr_status tsr_add_place(struct tsr_sections *s, uint64_t offset, uint64_t length, uint8_t type,
                              struct tsr_error *error);

/* Reads the section at offset, which must have this type and this seal (tsr_seal). *body points into the buffer and is
 * valid until the next call. */
enum tsr_status tsr_read_section(struct tsr_sections *s, uint64_t offset, enum tsr_section_type type, uint64_t seal,
                                 const uint8_t **body, size_t *size, struct tsr_error *error);

/* Hashes a section of any length without keeping it: all bytes before the check. The check must hold. */
enum tsr_status tsr_hash_section(struct tsr_sections *s, const struct tsr_place *place, uint64_t seal, uint64_t *hash,
                                 struct tsr_error *error);

/* The body of a section of length bytes; NULL if the section has another type or its check does not hold. *hash: of all
 * bytes before the check; hash may be NULL. */
const uint8_t *tsr_open_section(const uint8_t *section, size_t length, enum tsr_section_type type, uint64_t seal,
                                size_t *body_size, uint64_t *hash);

#endif
