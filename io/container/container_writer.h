/* What the files of the writer share. */
#ifndef TSR_IO_CONTAINER_CONTAINER_WRITER_H
#define TSR_IO_CONTAINER_CONTAINER_WRITER_H

#include "small.h"

/* A section in the index: its type and its whole length. Until the id is known, the section's check is the hash alone;
 * then the section is sealed. */
struct tsr_entry {
    uint64_t length;
    uint64_t hash; /* of all bytes before the check */
    uint8_t type;
    uint8_t distance;  /* of a frame with another frame's model: how many frames before that one stands */
    bool is_shared;    /* in a series: sections of other members need this one */
    bool is_of_member; /* in a series: the section belongs to a member and is sealed */
};

struct tsr_container_writer {
    struct tsr_output *output;
    struct tsr_header header; /* its id is 0 until the end */
    struct tsr_entry *entries;
    size_t entry_count, entry_capacity;
    uint64_t listed_bytes, line_bytes; /* of all entries: their sections, and their lines of the index */
    bool is_trial;                     /* entries are counted, not listed: tsr_container_begin_trial */
    uint64_t blob_bytes;
    uint32_t frames; /* put so far */
    uint32_t tiles;  /* of the last frame, put so far */
    bool in_frame;   /* that frame has tiles */
    /* With an order of tiles: the sections of those that wait for all frames; NULL: there are none yet. */
    struct tsr_output *rest;
    struct tsr_entry *rest_entries;
    size_t rest_count, rest_capacity;
    uint8_t *compressed; /* a chunk of a blob, or a section that is read again */
    size_t compressed_capacity;
    /* Place in the output: of a file its first byte, of a member its first section. */
    uint64_t start;
    struct tsr_small *small; /* the parts so far; NULL: the file does not become a small one */
    struct tsr_output_mark begin;
    /* Of a member: blobs that wait for the content that they are compressed with. */
    bool is_member;
    struct tsr_waiting {
        uint8_t *bytes;
        size_t size;
        bool started; /* the blob has sections already, or waits */
    } waiting[TSR_BLOB_COUNT];
    /* Of a series: members so far, and for each blob the last one that was compressed alone. */
    uint32_t members;
    struct tsr_written_base {
        uint8_t *bytes;
        size_t size;
        uint64_t alone; /* bytes of its section */
        uint32_t member;
        size_t entry; /* number of its section */
    } base[TSR_BLOB_COUNT];
};

/* Lists a section in the index. */
enum tsr_status tsr_add_entry(struct tsr_container_writer *w, struct tsr_entry entry, struct tsr_error *error);

/* Writes a section that the index lists and that is sealed at the end. */
enum tsr_status tsr_put_section(struct tsr_container_writer *w, enum tsr_section_type type,
                                const struct tsr_piece *pieces, int count, struct tsr_error *error);

/* Collects a part, as long as the file may be a small one. */
enum tsr_status tsr_keep_part(struct tsr_container_writer *w, uint8_t type, const struct tsr_piece *pieces, int count,
                              struct tsr_error *error);

/* Seals the section that ends at byte end: adds the seal to its check. */
enum tsr_status tsr_seal_section(struct tsr_output *output, uint64_t end, uint64_t hash, uint64_t seal,
                                 struct tsr_error *error);

/* Computes an id. FORMAT.md 3.1. proof: of a member; NULL for a file, whose proof is a section. */
uint64_t tsr_make_id(const struct tsr_header *header, const struct tsr_entry *entries, size_t count,
                     const struct tsr_proof *proof);

/* Writes a blob in chunks, each compressed alone if that is smaller. */
enum tsr_status tsr_put_alone(struct tsr_container_writer *w, enum tsr_blob blob, const void *bytes, size_t size,
                              struct tsr_error *error);

/* Writes the twins of the sections that several members need. first: where the first section stands. */
enum tsr_status tsr_put_twins(struct tsr_container_writer *w, uint64_t first, struct tsr_error *error);

#endif
