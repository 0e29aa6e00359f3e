/* The header of a file or of a member: what the original is, how it comes back, its image. FORMAT.md 3.1 and 3.9. */
#ifndef TSR_IO_RECIPE_HEADER_H
#define TSR_IO_RECIPE_HEADER_H

#include "io/input.h"
#include "io/nodes/values/values.h"
#include "patches.h"
#include "tile_order.h"
#include "transform/planes/difference.h"
#include "transform/planes/kept_ranges.h"

enum { TSR_FORMAT_VERSION = 4 };

/* The kind of streams of an encapsulated file whose frames all are units: FORMAT.md 4.5. */
enum { TSR_STREAMS_OF_UNITS = 6 };

/* How blobs and frames become the original file again. FORMAT.md section 4. */
enum tsr_recipe_number {
    TSR_RECIPE_VERBATIM = 0,     /* the blob is the file */
    TSR_RECIPE_SPLICE = 1,       /* prefix, rasters, suffix */
    TSR_RECIPE_PNG = 2,          /* prefix, IDAT chunks made from the raster, suffix */
    TSR_RECIPE_DEFLATED = 3,     /* as splice, but deflated from a certain byte on; or the whole of it, in gzip */
    TSR_RECIPE_ENCAPSULATED = 4, /* prefix, each frame's stream made again in its items, suffix */
    TSR_RECIPE_SERIES = 5,       /* several files, each restored in its own way: FORMAT.md 3.7 */
    TSR_RECIPE_PACKED = 6,       /* the blob has pieces of the file, streams of which are unpacked */
    TSR_RECIPE_INNER = 7,        /* as packed, and some pieces are files, each restored in its own way */
    TSR_RECIPE_PLANES = 8        /* prefix, the planes of each frame after the same bytes, suffix */
};

/* Residues: what samples do not say of the streams of encapsulated frames, of the IDAT chunks of a PNG, or of a
 * deflated file. */
enum tsr_blob { TSR_BLOB_PREFIX = 0, TSR_BLOB_SUFFIX = 1, TSR_BLOB_RESIDUES = 2, TSR_BLOB_COUNT = 3 };

#define TSR_WINDOW_LIMIT ((int64_t)1 << 52) /* of a window's center and width, in millionths */
#define TSR_WINDOW_UNIT 1000000
enum { TSR_REASON_LIMIT = 255, TSR_PARAMETERS_LIMIT = 64, TSR_NAME_LIMIT = 4096, TSR_LEAST_RANGE = 255 };
enum { TSR_SHARED_HEAD_LIMIT = 600 };    /* bytes of a packed head */
enum { TSR_MOST_RANGE = (1 << 24) - 1 }; /* in a series whose slopes differ, a range may exceed 16 bits */

/* The windows by which a loss was measured. FORMAT.md 3.9. */
struct tsr_told_windows {
    uint32_t count;
    struct {
        float slope;           /* units of a stored value, the largest of a frame that has the window */
        int64_t center, width; /* millionths of a unit */
    } window[TSR_MEASURED_WINDOWS];
};

/* Reasons that files without frames have most. */
extern const char tsr_smaller_stored[], tsr_no_pixels[], tsr_inner_coded[];

struct tsr_header {
    uint64_t id; /* the sections of this file or member are sealed with it; the writer makes it */
    enum tsr_kind kind;
    enum tsr_recipe_number recipe;
    bool exact;                        /* the restored file is the original, byte for byte */
    char reason[TSR_REASON_LIMIT + 1]; /* verbatim and packed only: why */
    uint64_t room;                     /* packed only: what unpacking a piece takes */
    uint32_t inner;                    /* pieces that are files; else 0 */
    bool grows;                        /* room and inner, when they are known, take the bytes that they take now */
    struct tsr_image image;            /* image, coding and parameters: not if verbatim or packed */
    struct tsr_values values;          /* that samples of the image stand for; form 0: they are the original's */
    struct tsr_coding coding;
    struct tsr_kept_ranges
        kept; /* values that loss does not change; without loss they mean nothing, and are not written */
    uint8_t parameters[TSR_PARAMETERS_LIMIT]; /* of the restore */
    size_t parameter_count;
    struct tsr_told_windows windows;   /* by which the loss was measured; without loss they are not written */
    uint32_t range;                    /* of the values, if lossy, by which PSNR and QP count; 0: 2^bits_stored - 1 */
    uint32_t least_weight;             /* of a frame's errors, if lossy, 1 .. 65535; 0: all frames weigh the same */
    struct tsr_origin origin;          /* of the original, where it is stored */
    char damage[TSR_DAMAGE_LIMIT + 1]; /* what looks damaged in the original; empty: nothing was noticed */
    uint8_t shared_head[TSR_SHARED_HEAD_LIMIT]; /* of streams that are units; 0 bytes: they share none */
    size_t shared_head_size;
    bool has_base;               /* the file begins with its base, to which predictors refer: BASE.md */
    uint64_t base_id;            /* of that base */
    bool linked;                 /* predictors of a frame may refer to the frame before: BASE.md 5 */
    struct tsr_patches patches;  /* of a file with loss that has a base: what comes back as it was; else none */
    struct tsr_tile_order order; /* of the tiles of all frames */
    uint32_t members;            /* files in a series, whose header has only this, id and restore */
};

/* ---- Questions about a recipe: outside of io/recipe and io/formats nothing compares its number --------------- */

/* Whether a file of this number, which may be none, can be exact, or coded with loss, or neither. */
bool tsr_recipe_may_be(enum tsr_recipe_number recipe, bool exact, bool lossy);

bool tsr_is_series(const struct tsr_header *header);

/* Whether the file, which is no series, has frames: it is neither verbatim nor packed. */
bool tsr_has_frames(const struct tsr_header *header);

/* Whether frames may be units, which have no samples: FORMAT.md 4.4; and whether others may have samples. A file
 * without frames has none. */
bool tsr_may_have_units(const struct tsr_header *header);
bool tsr_has_samples(const struct tsr_header *header);
bool tsr_are_units(const struct tsr_header *header); /* there are frames, and none has samples */

/* Whether the file is an image that is stored or packed, so that frames are read from its restored bytes. */
bool tsr_may_hold_frames(const struct tsr_header *header);

/* Whether the blob has pieces of the file, streams of which are unpacked. */
bool tsr_has_pieces(const struct tsr_header *header);

/* Whether some of these pieces are files, each of which is a .tsr. */
bool tsr_has_inner(const struct tsr_header *header);

/* Whether these pieces are rows of a PNG, mostly. */
bool tsr_has_rows(const struct tsr_header *header);

/* Whether samples stand for values: VALUES.md. The image of the original's samples, and the bytes of its frames. set
 * makes image and values of those of an original; seen NULL: nothing is known of its values but their type. */
bool tsr_has_values(const struct tsr_header *header);
bool tsr_may_have_values(const struct tsr_header *header);
void tsr_set_values(struct tsr_header *header, const struct tsr_image *original, const struct tsr_values_seen *seen);
struct tsr_image tsr_original_image(const struct tsr_header *header);
uint64_t tsr_original_rasters(const struct tsr_header *header);

/* The image whose frames are coded: that of the patches, if there are any. */
struct tsr_image tsr_coded_image(const struct tsr_header *header);

/* Whether a file may have patches: prefix, rasters and suffix are the file with loss, or a PNG is written anew. */
bool tsr_may_have_patches(const struct tsr_header *header);

/* Whether predictors of a file's frames may refer to the frame before. */
bool tsr_may_be_linked(const struct tsr_header *header);

/* Whether prefix, rasters and suffix, one after the other, are the file, with loss and without. */
bool tsr_is_spliced(const struct tsr_header *header);

/* Whether prefix, frames and suffix, or the blob, are bytes of the original as they are. */
bool tsr_has_plain_parts(const struct tsr_header *header);

/* Whether prefix, rasters and suffix are deflated in the file, from a certain byte on; and whether all of them are, in
 * a gzip file. */
bool tsr_is_deflated(const struct tsr_header *header);
bool tsr_is_in_gzip(const struct tsr_header *header);

/* Whether the frame becomes the IDAT chunks of a PNG; and whether without a residue, by a writer of ours: the file is
 * not the original then. */
bool tsr_makes_png(const struct tsr_header *header);
bool tsr_has_own_writer(const struct tsr_header *header);

/* Whether the planes of each frame stand after the same bytes: PLANES.md. */
bool tsr_has_planes(const struct tsr_header *header);

/* Makes it the header of a copy with loss: what the samples do not say of the original's streams is not kept. */
void tsr_take_loss(struct tsr_header *header);

/* The reason of a file without frames, in words: also where a small file has no room for it. */
const char *tsr_reason_of(const struct tsr_header *header);

#endif
