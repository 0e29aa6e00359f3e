/* Sources: what readers make of an input. A source is blobs of bytes that are kept as they are, and frames of samples
 * that are coded; restore.h puts them together again. FORMAT.md section 4. */
#ifndef TSR_IO_FORMATS_SOURCE_H
#define TSR_IO_FORMATS_SOURCE_H

#include "io/container/container.h"

struct tsr_source;

struct tsr_source_ops {
    /* Bytes offset .. offset+size-1 of a blob. */
    enum tsr_status (*read_blob)(struct tsr_source *source, enum tsr_blob blob, uint64_t offset, void *buffer,
                                 size_t size, struct tsr_error *error);
    /* A frame's raster, from the first bit of the first byte; spare bits of the last byte are 0. */
    enum tsr_status (*read_frame)(struct tsr_source *source, uint32_t frame, uint8_t *raster, struct tsr_error *error);
    /* Makes the prefix that of a lossy copy: afterwards blob_size and read_blob give the new one. original: the hash of
     * the input; ratio: native samples to their payload. NULL: lossy copies have the same prefix. */
    enum tsr_status (*derive)(struct tsr_source *source, const struct tsr_hash128 *original, double ratio,
                              struct tsr_error *error);
    void (*close)(struct tsr_source *source);
};

/* Sources begin with this. Reading the prefix, the frames in their order and the suffix reads the input once, from its
 * start to its end, where that is possible. */
struct tsr_source {
    const struct tsr_source_ops *ops;
    struct tsr_input *input;  /* the caller's */
    struct tsr_header header; /* without the coding */
    uint64_t blob_size[TSR_BLOB_COUNT];
    const char *only_lossless;   /* what is never coded with loss, or NULL */
    bool never_lossy;            /* not without being told so: mammography and the like */
    const char *lossy_objection; /* why not, as half a sentence */
};

/* How an input is to be looked at. */
struct tsr_source_options {
    bool verbatim; /* don't look at the content: reason says why */
    const char *reason;
    bool recode;                    /* encapsulated DICOM: also where the streams will not be reproduced */
    bool may_lose;                  /* it may be coded with loss: claims the memory for that, too */
    const struct tsr_image *raster; /* the input is a raster of this image; NULL: a file */
};

/* A source for any input that can be read: what is no image, or none that can be restored, becomes a verbatim one with
 * the reason. Errors: TSR_ERROR_READ, TSR_ERROR_LIMIT (memory),
 * TSR_ERROR_USAGE (a raster that is longer or shorter than its image). */
enum tsr_status tsr_source_open(struct tsr_input *input, const struct tsr_source_options *options,
                                struct tsr_source **source, struct tsr_error *error);
void tsr_source_close(struct tsr_source *source);

/* What opening the first source would take longest for, and all others wait: the toolkit's dictionary of DICOM, 8 ms.
 * Any thread may do it, any time. */
void tsr_source_prepare(void);

#endif
