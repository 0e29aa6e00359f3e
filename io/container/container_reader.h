/* What the files of the reader share: sections by their places, those of other members, and twins. */
#ifndef TSR_IO_CONTAINER_CONTAINER_READER_H
#define TSR_IO_CONTAINER_CONTAINER_READER_H

#include "section_reader.h"

#define TSR_NOWHERE SIZE_MAX

struct tsr_container_reader {
    struct tsr_sections sections;
    uint64_t file_id;
    /* Of a series, for each member the place of its last section, which describes the member. Twins stand after the
     * last member. NULL: not a series. */
    size_t *member_place;
    uint32_t members, placed; /* placed: the members that were found */
    bool shares;              /* sections.place and member_place belong to another reader */
    /* The chosen member, or the file: its header and its sections, first to end - 1. Name and proof are a member's. */
    uint32_t member;
    struct tsr_member chosen;
    size_t first, end;
    struct tsr_member other; /* a member that has a section which the chosen one needs */
    uint64_t *section_hash;  /* hashes of those sections of the member or file that were opened */
    bool *is_opened;
    const char *repaired; /* as sections.damage, for the chosen member */
    struct listed_twin {
        uint64_t section; /* the section that the twin copies */
        size_t number;    /* number among the twins */
    } * listed;           /* the intact twins, ordered by section; NULL: not listed yet */
    size_t listed_count;
    struct kept_twin *twins; /* the twins that were read */
    size_t *frame_place;     /* by frame: the place of its section */
    uint32_t *frame_tiles;   /* by frame: sections of its tiles */
    size_t *rest_place;      /* with an order of tiles, by frame: the place of the first one that is not among the first
                                tiles, or TSR_NOWHERE; else NULL */
    uint32_t *frame_number;  /* by frame: the number in that section; of an equal one that of the other frame */
    size_t *model_place;     /* by frame: the place of its model; TSR_NOWHERE: it is damaged, or the frame is a unit */
    uint32_t units;          /* frames that are units */
    bool is_searched; /* the sections were found by tsr_search_sections. Then places without bytes stand for those that
                         are lost, of which the last is that of all frames that are lost; and frame_tiles is at least
                         the number of tiles that can be there: no tile has that number or a higher one */
    uint8_t *blob;    /* a decompressed blob */
    size_t blob_capacity;
    struct base { /* for each blob: the content that others are compressed with, and its member */
        uint8_t *bytes;
        size_t size, capacity;
        uint32_t member;
    } base[TSR_BLOB_COUNT];
};

/* ---- Places ----------------------------------------------------------------------------------------------- */

/* The seal of a section of the file or of the chosen member. */
static inline uint64_t tsr_seal_of(const struct tsr_container_reader *r, size_t place)
{
    return tsr_seal(r->chosen.header.id, place - r->first + 1);
}

/* The first section of a member, and the first twin. */
static inline size_t tsr_first_of(const struct tsr_container_reader *r, uint32_t member)
{
    return member == 0 ? 0 : r->member_place[member - 1] + 1;
}
static inline size_t tsr_first_twin(const struct tsr_container_reader *r)
{
    return r->member_place ? tsr_first_of(r, r->placed) : r->sections.count;
}

/* ---- Sections --------------------------------------------------------------------------------------------- */

/* Reads the section that describes a member. */
enum tsr_status tsr_read_member(struct tsr_container_reader *r, uint32_t number, struct tsr_member *member,
                                struct tsr_error *error);

/* Finds the seal of a section that may belong to another member. */
enum tsr_status tsr_find_seal(struct tsr_container_reader *r, size_t place, uint64_t *seal, struct tsr_error *error);

/* Notes the hash of a section that was opened: the hash is part of the id. */
void tsr_note_opened(struct tsr_container_reader *r, size_t place, uint64_t hash);

/* Reads a section of the file or of the chosen member. */
enum tsr_status tsr_read_own(struct tsr_container_reader *r, size_t place, enum tsr_section_type type,
                             const uint8_t **body, size_t *size, struct tsr_error *error);

/* Reads a section of this member or of another one. If the section is damaged, reads its twin. */
enum tsr_status tsr_read_or_twin(struct tsr_container_reader *r, size_t place, enum tsr_section_type type,
                                 const uint8_t **body, size_t *size, struct tsr_error *error);

/* The hash of the section that has this body; the id needs the hash. */
uint64_t tsr_hash_of_section(uint8_t type, const uint8_t *body, size_t size);

/* ---- Twins: FORMAT.md 3.8 --------------------------------------------------------------------------------- */

/* Reads a twin: the number of the section that it copies, and the body of that section. NULL: the twin is damaged. */
const uint8_t *tsr_read_twin(struct tsr_container_reader *r, size_t twin, uint64_t *number, size_t *size,
                             struct tsr_error *error);

/* Finds the twin of a section that several members need. *body: NULL if there is no intact twin; else it is kept until
 * another member is chosen. */
enum tsr_status tsr_find_twin(struct tsr_container_reader *r, size_t place, const uint8_t **body, size_t *size,
                              struct tsr_error *error);
void tsr_forget_twins(struct tsr_container_reader *r);

/* ---- Damage ------------------------------------------------------------------------------------------------ */

/* search_sections.c: finds the sections of a file that is no series without an index, wherever they stand, and the
 * frames that they belong to. Lost sections are no error. Errors: TSR_ERROR_READ, TSR_ERROR_LIMIT. */
enum tsr_status tsr_search_sections(struct tsr_container_reader *r, struct tsr_error *error);

/* Claims and allocates what tells where frames begin, of the sections first to end - 1. Errors: TSR_ERROR_LIMIT. */
enum tsr_status tsr_take_places(struct tsr_container_reader *r, uint32_t frames, struct tsr_error *error);

/* ---- Blobs ------------------------------------------------------------------------------------------------ */

/* A blob section: what it says, and its content as it is stored. */
struct tsr_stored_blob {
    uint8_t blob, method;
    uint8_t distance; /* the blob is compressed with one of the member that stands this number of members before */
    size_t size;      /* bytes of the content; more than TSR_BLOB_CHUNK: it is not valid */
    const uint8_t *bytes;
    size_t stored;
};

enum tsr_status tsr_read_blob(struct tsr_container_reader *r, size_t number, struct tsr_stored_blob *b,
                              struct tsr_error *error);

/* Finds the blob that the one at place is compressed with: the first section of this blob of the member that stands
 * distance members before the chosen one. Skips damaged sections without a twin: a section that others need has one. */
enum tsr_status tsr_find_base(struct tsr_container_reader *r, const struct tsr_place *place, uint8_t blob,
                              uint8_t distance, size_t *number, struct tsr_stored_blob *b, struct tsr_error *error);

#endif
