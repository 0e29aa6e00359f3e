/* Packed files: files that are not coded as samples, but whose JPEG and deflate streams are made smaller and come back
 * as they were. PACKED.md. */
#ifndef TSR_IO_FORMATS_PACKED_H
#define TSR_IO_FORMATS_PACKED_H

#include "io/recipe/pieces.h"
#include "source.h"

/* Why an input is packed, and what is known of it. */
struct tsr_packing {
    enum tsr_kind kind;
    const char *reason;              /* why it is not coded as samples */
    const struct tsr_source *opened; /* its source as a PNG, or NULL */
    uint64_t coded; /* of a PNG: bytes that it takes coded as samples; a quick look may tell that packing is no use */
    struct tsr_inner_way inner;
};

/* Opens a source of an input with streams that become smaller and are proven to come back. What that takes is bounded,
 * so that no limit of memory changes what is made. Errors: TSR_DECLINED (there are none: it must be stored
 * verbatim), TSR_ERROR_LIMIT (memory), TSR_ERROR_READ. After TSR_DECLINED, the text is the whole reason: that of
 * packing, and why no stream could be packed, if one was tried. */
enum tsr_status tsr_packed_open(struct tsr_input *input, const struct tsr_packing *packing, struct tsr_source **source,
                                struct tsr_error *error);

/* What packing a PNG takes besides its source, which is open, and its file. */
uint64_t tsr_packing_read_png_memory(uint64_t size, uint64_t plain);

#endif
