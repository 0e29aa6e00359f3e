/* Sources: what a finder (format.h) makes of an input. A source has a header, which names the recipe; blobs of bytes,
 * which general compression shortens; and frames of samples, which are coded. tsr_make (io/recipe/recipe.h) makes the
 * file of header, blobs and frames again. FORMAT.md section 4. */
#ifndef TSR_IO_FORMATS_SOURCE_H
#define TSR_IO_FORMATS_SOURCE_H

#include "io/recipe/pieces.h"
#include "io/recipe/header.h"
#include "transform/planes/difference.h"

struct tsr_source;

/* What a format does for its sources; each may be NULL. */
struct tsr_source_ops {
    /* Reads a frame's raster, from the first bit of the first byte. Spare bits of the last byte are 0. NULL: rasters
     * lie in memory or in the samples. */
    enum tsr_status (*read_frame)(struct tsr_source *source, uint32_t frame, uint8_t *raster, struct tsr_error *error);
    /* Changes the prefix to that of a lossy copy. original: the hash of the input. ratio: bytes of native samples to
     * bytes of their payload. range: of what the samples became, if wants_range is set. NULL: lossy copies have the
     * same prefix. */
    enum tsr_status (*derive)(struct tsr_source *source, const struct tsr_hash128 *original, double ratio,
                              const struct tsr_value_range *range, struct tsr_error *error);
    /* Reads the stream of a frame that is a unit: appends it. NULL: there are none. */
    enum tsr_status (*read_stream)(struct tsr_source *source, uint32_t frame, struct tsr_bytes *stream,
                                   struct tsr_error *error);
    /* Makes the prefix longer, of a source that is made while it is written; *is_last: nothing follows. Then header
     * tells what is known at the end alone. NULL: all is there. */
    enum tsr_status (*extend)(struct tsr_source *source, bool *is_last, struct tsr_error *error);
    void (*close)(struct tsr_source *source); /* frees what the format has besides */
};

/* Bytes of a blob. */
struct tsr_extent {
    uint64_t at, size;    /* in the blob */
    const uint8_t *bytes; /* NULL: of the samples, or else of the input, from an offset on */
    uint64_t offset;
    bool is_owned;                     /* the bytes are freed with the source */
    uint8_t own[TSR_PIECE_HEAD_LIMIT]; /* is_small: these */
    bool is_small;
};
struct tsr_extents {
    struct tsr_extent *extent; /* allocated */
    size_t count, capacity;
};

/* How a file asks to be looked at: a window (PS3.3, C.11.2.1.2) of its values. */
struct tsr_value_window {
    double center, width;          /* in the values' units, after the rescale */
    double slope;                  /* units of a stored value, the largest of a frame that has the window */
    uint32_t values;               /* how wide it is in stored values of this slope, rounded down; at least 1 */
    struct tsr_value_range stored; /* the stored values inside, where all frames have the same */
};

/* What a frame has of its own. */
struct tsr_frame_values {
    uint32_t weight, window_weight[TSR_MEASURED_WINDOWS]; /* as struct tsr_measured has them, not 0 */
    struct tsr_value_range window[TSR_MEASURED_WINDOWS];  /* the stored values inside; none if it does not name it */
    /* Not 0: this is another window, which the frame names and the file's do not have: how wide it is in stored values
     * of the frame. It is measured in this frame alone. */
    uint32_t own_values[TSR_MEASURED_WINDOWS];
};

/* The windows of a file that are measured where it is coded with loss, and the slopes of its frames. */
struct tsr_windows {
    uint32_t count;
    struct tsr_value_window window[TSR_MEASURED_WINDOWS];
    double slope;                                /* units of a stored value, the largest of a frame; 0: not known */
    uint32_t frames;                             /* 0: all frames are alike */
    struct tsr_frame_values *frame, other_frame; /* of the first frames, in memory of the source; of all others */
    uint32_t least_weight;                       /* of a frame; 0: all frames weigh the same */
    uint32_t left_out;                           /* windows that the file names and that are not measured */
    const char *note;                            /* what else there is to know of them; NULL: nothing */
};

/* Every source begins with this structure. Reading the prefix, the frames in their order and the suffix reads the input
 * once, from its start to its end, if the format allows it. */
struct tsr_source {
    const struct tsr_source_ops *ops; /* or NULL */
    struct tsr_input *input;          /* owned by the caller */
    struct tsr_header header;         /* without the coding; with what looks damaged in the input */
    uint64_t blob_size[TSR_BLOB_COUNT];
    struct tsr_extents blob[TSR_BLOB_COUNT];
    /* Where frames are: all in memory; or one after the other in an input, which is the source's or the caller's. */
    const uint8_t *rasters;
    struct tsr_input *samples;
    bool owns_samples;
    bool input_has_rasters; /* byte by byte, from the first sample on */
    uint64_t first;         /* byte of the first sample */
    uint8_t *window;      /* bytes of a raster of single bits, before they are aligned; values, before they are split */
    void *held[2];        /* memory that is freed when the source is closed */
    const uint8_t *units; /* by frame, in memory of the source: 1: it is a unit (io/recipe/unit.h); NULL: none is */
    uint64_t longest_unit;                 /* bytes of a stream, at most */
    char no_samples[TSR_REASON_LIMIT + 1]; /* all frames are units: why; else empty */
    uint32_t left_out;           /* of DICOM: tag of a sequence that does not come back with the samples; 0: none */
    const char *only_lossless;   /* samples that are never coded with loss, in words; NULL: loss is possible */
    bool never_lossy;            /* coded with loss only if the caller insists: mammography and the like */
    const char *lossy_objection; /* why never_lossy is set, as half a sentence */
    struct tsr_windows windows;  /* its frames are freed when the source is closed */
    char modality[20];           /* of DICOM; else, and where it is not coded with loss, empty */
    bool wants_range;            /* derive needs the range of the samples */
    bool is_proven;              /* of a PNG: raster and residue give the same chunks */
    struct {
        const uint8_t *bytes;
        size_t size;
    } base;            /* set by the caller, where the header has one: its .tsr */
    uint32_t skipped;  /* set by the caller: frames before the one that is read as the first; else 0 */
    bool rasters_last; /* set by the caller: rasters stay as they are until tsr_input_hash_read */
};

/* How a file that stands in another one becomes a whole .tsr, which is appended. Errors: TSR_DECLINED (it would be
 * stored), others of compressing. compress NULL: no files in files are looked for. */
struct tsr_inner_way {
    enum tsr_status (*compress)(void *context, struct tsr_input *input, struct tsr_bytes *tsr, struct tsr_error *error);
    void *context;
};

/* How an input is opened. */
struct tsr_source_options {
    bool verbatim; /* the content is not coded as samples: reason says why. Of PNG, it may still be packed */
    const char *reason;
    bool packs;                      /* what must be stored as it is may be packed: PACKED.md */
    const struct tsr_source *opened; /* if verbatim: the input's source as a PNG, which was read already; or NULL */
    uint64_t coded;                  /* if verbatim: bytes that it takes coded as samples; 0: not known */
    bool reads_frames;               /* to read its frames, not to code it: how many bytes that takes does not matter */
    bool samples_only; /* encapsulated DICOM is decoded and coded even if its streams cannot be reproduced */
    bool may_lose;     /* the image may be coded with loss: claims the memory for that, too */
    bool frames_apart; /* small slices of NIfTI are frames, too: a region is of each slice */
    const struct tsr_image *raster; /* the input is a raster of this image; NULL: a file */
    struct tsr_inner_way inner;     /* of what is packed */
};

/* Opens a source for any input that can be read. An input that is not an image, or that cannot be restored, becomes a
 * verbatim source with the reason. Errors: TSR_ERROR_READ, TSR_ERROR_LIMIT (memory),
 * TSR_ERROR_USAGE (a raster that is longer or shorter than its image). */
enum tsr_status tsr_source_open(struct tsr_input *input, const struct tsr_source_options *options,
                                struct tsr_source **source, struct tsr_error *error);
void tsr_source_close(struct tsr_source *source);

/* ---- What finders make sources of --------------------------------------------------------------------------- */

/* A source of so many bytes, which begin with a struct tsr_source. NULL: no memory. */
void *tsr_source_create(size_t bytes, struct tsr_input *input, const struct tsr_header *header,
                        const struct tsr_source_ops *ops, struct tsr_error *error);

/* Gives the source to the caller, or closes it (which may be NULL) after an error. Returns status. */
enum tsr_status tsr_source_finish(void *made, enum tsr_status status, struct tsr_source **source);

/* Appends bytes to a blob. is_owned: they are freed with the source, also after an error. Errors: TSR_ERROR_LIMIT. */
enum tsr_status tsr_source_put(struct tsr_source *source, enum tsr_blob blob, const uint8_t *bytes, uint64_t size,
                               bool is_owned, struct tsr_error *error);
/* The same of a few bytes, which are copied; and of bytes of the samples' input, or else of the input. */
enum tsr_status tsr_source_put_small(struct tsr_source *source, enum tsr_blob blob, const uint8_t *bytes, size_t size,
                                     struct tsr_error *error);
enum tsr_status tsr_source_put_range(struct tsr_source *source, enum tsr_blob blob, uint64_t offset, uint64_t size,
                                     struct tsr_error *error);
void tsr_source_clear(struct tsr_source *source, enum tsr_blob blob);
/* The bytes of a blob before an offset are not read any more. */
void tsr_source_forget(struct tsr_source *source, enum tsr_blob blob, uint64_t offset);

/* Notes what looks damaged in an input, if that is why it was declined. */
void tsr_source_note_damage(struct tsr_input *input, enum tsr_status status, const struct tsr_error *why);

/* ---- Reading ------------------------------------------------------------------------------------------------ */

/* Reads bytes offset to offset + size - 1 of a blob. */
enum tsr_status tsr_source_read_blob(struct tsr_source *source, enum tsr_blob blob, uint64_t offset, void *buffer,
                                     size_t size, struct tsr_error *error);
enum tsr_status tsr_source_read_frame(struct tsr_source *source, uint32_t frame, uint8_t *raster,
                                      struct tsr_error *error);

/* Holds a small input, if its frames are as they lie there: what is read twice is read once. Errors: TSR_ERROR_READ,
 * TSR_ERROR_LIMIT (memory). */
enum { TSR_HELD_BYTES = 4 << 20 };
enum tsr_status tsr_source_hold(struct tsr_source *source, struct tsr_error *error);

/* Shows the raster of each frame, in their order, until visit returns false. Errors: those of read_frame,
 * TSR_ERROR_LIMIT (memory). */
enum tsr_status tsr_source_visit(struct tsr_source *source,
                                 bool (*visit)(void *context, const struct tsr_image *image, const uint8_t *raster),
                                 void *context, struct tsr_error *error);

#endif
