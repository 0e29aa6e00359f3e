/* The fragments of encapsulated pixel data, and which of them are a frame's. PS3.5 A.4. */
#ifndef TSR_IO_DICOM_FRAGMENTS_H
#define TSR_IO_DICOM_FRAGMENTS_H

#include "io/bytes/grown.h"
#include "io/input.h"

/* The value of an item of the pixel data, as offsets in the file. */
struct tsr_fragment {
    uint64_t start, size;
};

struct tsr_fragments {
    struct tsr_fragment *fragment;
    uint32_t count;
    uint32_t *first;              /* of each frame, its first fragment; then the number of all fragments */
    uint64_t before, after, size; /* bytes before the first item, after the last one, and of the input */
    uint64_t longest;             /* bytes of a frame's stream */
};

/* Lists the items from the offset table on, which stands at byte value. raster: bytes of a frame's samples, which are
 * the stream; 0: streams begin with markers. Errors: TSR_ERROR_CORRUPT with the reason, TSR_ERROR_READ,
 * TSR_ERROR_LIMIT. The caller frees what is listed, also after an error. */
enum tsr_status tsr_fragments_list(struct tsr_input *input, uint64_t value, uint32_t frames, uint64_t raster,
                                   struct tsr_fragments *fragments, struct tsr_error *error);
void tsr_fragments_free(struct tsr_fragments *fragments);

/* Appends a frame's stream: its fragments, one after the other. */
enum tsr_status tsr_fragments_read(const struct tsr_fragments *fragments, struct tsr_input *input, uint32_t frame,
                                   struct tsr_bytes *stream, struct tsr_error *error);

/* Puts the record of a frame but its residue: FORMAT.md 4.4. */
enum tsr_status tsr_fragments_put_record(const struct tsr_fragments *fragments, uint32_t frame,
                                         struct tsr_bytes *records, struct tsr_error *error);

/* What the items say of the streams, before anything is held: their bytes, those of the longest, and their number.
 * After very many of them no more is looked at. */
struct tsr_items {
    uint64_t bytes, longest, count;
};
struct tsr_items tsr_fragments_look(struct tsr_input *input, uint64_t value, uint32_t frames);

/* Bytes of memory that the lists take. */
uint64_t tsr_fragments_memory(const struct tsr_items *items, uint32_t frames);

#endif
