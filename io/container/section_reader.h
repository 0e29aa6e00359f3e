/* The sections of a .tsr file, found through its index, or its copy, or by walking from one to the next where a file is
 * damaged, and read one at a time. FORMAT.md sections 2, 3 and 5. What they mean to each other is container_reader.c's
 * matter. */
#ifndef TSR_IO_CONTAINER_SECTION_READER_H
#define TSR_IO_CONTAINER_SECTION_READER_H

#include "section.h"

/* A section that the index, or a walk through the file, names. */
struct tsr_place {
    uint64_t offset;
    uint64_t length; /* of the whole section */
    uint8_t type;
};

/* Bytes that a section costs in memory: its place, twice while the list of places grows, and what a reader notes of it.
 */
enum { TSR_INDEX_MEMORY = 2 * sizeof(struct tsr_place) + 25 };

struct tsr_sections {
    struct tsr_input *input;
    const char *damage;      /* the first part that is damaged but stands elsewhere too, as a word; or NULL */
    struct tsr_place *place; /* those between the header and the index */
    size_t count, capacity;
    bool is_walked;  /* they were found without an index, as far as the file is whole */
    uint8_t *buffer; /* a section as it is */
    size_t buffer_capacity;
    uint64_t header_hash; /* what an id begins with: the hash of the header's body, its id counted as 0 */
};

/* Of an input, all else 0: reads the header and finds the places. Errors: TSR_ERROR_NOT_TSR, TSR_ERROR_VERSION,
 * TSR_ERROR_CORRUPT, TSR_ERROR_LIMIT, TSR_ERROR_READ. */
enum tsr_status tsr_find_sections(struct tsr_sections *s, struct tsr_header *header, struct tsr_error *error);

/* Reads the section at offset, which must be of this type and have this seal (tsr_seal), and returns its body, in the
 * buffer, until the next call. */
enum tsr_status tsr_read_section(struct tsr_sections *s, uint64_t offset, enum tsr_section_type type, uint64_t seal,
                                 const uint8_t **body, size_t *size, struct tsr_error *error);

/* The hash of a section that nobody needs, whatever its length: of all before the check, which must hold. */
enum tsr_status tsr_hash_section(struct tsr_sections *s, const struct tsr_place *place, uint64_t seal, uint64_t *hash,
                                 struct tsr_error *error);

/* The body of a section of length bytes, if it is of this type and its check holds; else NULL. *hash (which may be
 * null): of all before the check. */
const uint8_t *tsr_open_section(const uint8_t *section, size_t length, enum tsr_section_type type, uint64_t seal,
                                size_t *body_size, uint64_t *hash);

/* Room for size bytes; what was in it is lost. */
enum tsr_status tsr_grow_buffer(uint8_t **buffer, size_t *capacity, size_t size, struct tsr_error *error);

#endif
