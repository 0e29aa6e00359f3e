/* Streams and files that are found in a file become pieces, several at once. What is made does not depend on how many.
 */
#ifndef TSR_IO_FORMATS_PACKED_LANES_H
#define TSR_IO_FORMATS_PACKED_LANES_H

#include "packed_archive.h"
#include "packed_file.h"

enum { TSR_PACKED_LANES = 16 };

/* A stream that was found, or a file that may be coded. */
struct tsr_found {
    uint64_t start, size; /* bytes of the input; at most, if the end is not known */
    enum tsr_found_kind kind;
    bool has_end;   /* else nothing after it is looked for until it is proven, and all of it from its start on if not */
    uint64_t plain; /* bytes of the file, or plain ones of deflate, at most */
    uint64_t share; /* bytes of the files in it that may be looked at */
    uint64_t memory; /* that a lane takes for it, but for coding a file, which claims its own */
    unsigned form;   /* of elements */
};

/* The byte where the search goes on after what stays bytes. */
static inline uint64_t tsr_search_after(const struct tsr_found *found)
{
    return found->start + (found->has_end ? found->size : found->kind == TSR_FOUND_JPEG);
}

/* Where a search is. */
struct tsr_position {
    uint64_t at;      /* byte of the input */
    uint64_t left;    /* plain bytes that may still be made */
    uint64_t in_vain; /* bytes that were read up to ends of JPEG streams, and are none of theirs */
    uint64_t jpegs_until;
    size_t member; /* of an archive */
};

struct tsr_lanes {
    struct tsr_packed_file *p;
    /* Finds the next one, and goes on to its end. *is_found false: there are no more. Plain bytes of what has an end
     * are no longer left. */
    enum tsr_status (*next)(struct tsr_lanes *lanes, struct tsr_found *found, bool *is_found, struct tsr_error *error);
    struct tsr_position position;
    uint64_t vain_plain; /* most bytes that are no longer left after one without an end that was not proven */
    int most_failures;   /* of a kind: then no more are tried */
    /* Not the caller's, and 0 at first: */
    int failures[TSR_FOUND_KINDS];
    unsigned kinds; /* a bit for each kind that became pieces */
    unsigned fewer; /* lanes that are not used */
    struct tsr_lane {
        const struct tsr_lanes *lanes;
        struct tsr_found found;
        struct tsr_position before, after; /* it was found */
        uint8_t *room;
        const uint8_t *bytes;
        struct tsr_bytes plain, residue;
        struct tsr_inner inner;
        struct deflate_coder *coder; /* which a lane's next stream takes over */
        enum tsr_status status;
        struct tsr_error error;
    } lane[TSR_PACKED_LANES];
};

/* Makes pieces of some more, as many as there is memory for; memory for one is claimed. *is_last: there are no more. */
enum tsr_status tsr_pack_some(struct tsr_lanes *lanes, bool *is_last, struct tsr_error *error);
void tsr_forget_lanes(struct tsr_lanes *lanes);

#endif
