/* Recipes: how the bytes and the frames of a .tsr become the file again. FORMAT.md section 4.
 *
 * A recipe is a list of steps. Bytes and frames are put one after the other. What stands between the begin and the end
 * of a node is kept, and the node makes other bytes of it. All that is left in the end is the file. */
#ifndef TSR_IO_RECIPE_RECIPE_H
#define TSR_IO_RECIPE_RECIPE_H

#include "header.h"
#include "io/nodes/node.h"
#include "io/output.h"

enum tsr_step_kind { TSR_STEP_BYTES, TSR_STEP_FRAMES, TSR_STEP_OPEN, TSR_STEP_CLOSE };

#define TSR_ALL_BYTES UINT64_MAX

struct tsr_step {
    enum tsr_step_kind kind;
    /* Of bytes: they themselves, or the blob that has them. The residue of a node that ends is all residues. */
    const uint8_t *bytes;
    enum tsr_blob from;
    /* Of bytes, or TSR_ALL_BYTES: all that are left. At a node's begin: most bytes that it takes. Of frames: of the
     * bytes that stand before each. */
    uint64_t size;
    uint64_t before;             /* at a node's begin: it begins after so many bytes more, which it does not take */
    const struct tsr_node *node; /* that begins, or that each frame goes through; or NULL */
    uint64_t foreseen;           /* bytes that a node will get, for which room is made; 0: they are not known */
};

/* Where the leaves of a recipe come from. */
struct tsr_maker;
struct tsr_leaves {
    /* The next bytes of a blob, as many as there are at once; *size 0: there are no more. They stay until the next
     * call. */
    enum tsr_status (*read)(void *context, enum tsr_blob blob, const uint8_t **bytes, size_t *size,
                            struct tsr_error *error);
    /* Calls tsr_put_frame, tsr_put_part or tsr_put_stream for each frame in order. */
    enum tsr_status (*frames)(void *context, struct tsr_maker *maker, struct tsr_error *error);
    /* Restores the file that a whole .tsr holds: appends just as many bytes as the limit of plain says. NULL: no file
     * in a file is restored. */
    enum tsr_status (*file)(void *context, const uint8_t *tsr, size_t size, struct tsr_bytes *plain,
                            struct tsr_error *error);
    void *context;
};

/* What is known beside the header. */
struct tsr_making {
    struct tsr_leaves leaves;
    struct tsr_crew crew;       /* threads that make long streams again in pieces */
    struct tsr_input *input;    /* of the .tsr: grants memory for streams that are longer than usual; or NULL */
    uint64_t blobs;             /* bytes of prefix and suffix together, as far as they are known */
    struct tsr_bytes *residues; /* all of them, which the maker takes over; NULL: the leaves give them */
    bool leaves_pixels;         /* of a PNG that is written anew: one IDAT chunk has the samples as they are */
    uint64_t enough;            /* ends when the output has as many bytes; 0: makes all */
};

/* Makes the file, and does not close the output. Errors: TSR_ERROR_CORRUPT (also: the header's parameters are not
 * valid), TSR_ERROR_LIMIT (memory), TSR_ERROR_VERSION (this build does not know, or cannot make, such files), those of
 * the leaves and of the output. */
enum tsr_status tsr_make(const struct tsr_header *header, const struct tsr_making *making, struct tsr_output *output,
                         struct tsr_error *error);

/* Puts the next frame; or some of its bytes, if it may come in parts. */
enum tsr_status tsr_put_frame(struct tsr_maker *maker, const uint8_t *raster, struct tsr_error *error);
/* Puts the stream of the next frame, which is a unit: unit.h. */
enum tsr_status tsr_put_stream(struct tsr_maker *maker, const uint8_t *stream, size_t size, struct tsr_error *error);
bool tsr_puts_parts(const struct tsr_maker *maker);
enum tsr_status tsr_put_part(struct tsr_maker *maker, const uint8_t *bytes, size_t size, struct tsr_error *error);

/* ---- Records of encapsulated frames: FORMAT.md 4.4 ------------------------------------------------------------ */

struct tsr_record {
    uint64_t fragments, residue_size;
    struct tsr_cursor sizes; /* of the fragments but the last */
    const uint8_t *residue;  /* not set by tsr_get_record */
};

/* Reads a record up to its residue. False: it is not valid, or ends before that. */
bool tsr_get_record(struct tsr_cursor *cursor, struct tsr_record *record);

/* ---- What making takes -------------------------------------------------------------------------------------- */

/* Whether files of this header have residues. */
bool tsr_has_residues(const struct tsr_header *header);

/* What is known of a file before it is made. */
struct tsr_foreseen {
    uint64_t size;                    /* at most, of what is made, in bytes */
    uint64_t blobs;                   /* at most, of prefix and suffix */
    const struct tsr_bytes *residues; /* all; NULL: not known */
    const struct tsr_bytes *begin;    /* of a packed file, the first bytes of its blob; or NULL */
    unsigned threads;                 /* that may help */
};

/* Most bytes of memory that making takes, beside decoding and the output. */
struct tsr_restoring {
    uint64_t held;  /* from before the first frame on */
    uint64_t work;  /* besides that, when a frame or all of them become a stream */
    bool is_at_end; /* that is done after the last frame; else each frame is a stream of its own */
};
struct tsr_restoring tsr_restoring_memory(const struct tsr_header *header, const struct tsr_foreseen *foreseen);

/* Bytes of a stream of a frame, of which all residues have so many: codes of 16 bits before the bits of each sample,
 * and its residue. A longer one is possible. */
uint64_t tsr_usual_stream(const struct tsr_image *image, uint64_t residues);

/* ---- The steps of a header ---------------------------------------------------------------------------------- */

enum { TSR_STEPS_LIMIT = 8, TSR_START_LIMIT = 64 };
struct tsr_recipe {
    int count; /* 0: the steps are pieces of the prefix (pieces.h) */
    struct tsr_step step[TSR_STEPS_LIMIT];
    uint8_t start[TSR_START_LIMIT]; /* bytes that a step has */
    uint8_t spare;                  /* bits after the last sample of rasters of single bits */
};

/* Bytes of the file that stand before its prefix and follow from the header, of a PNG. Returns their number. */
size_t tsr_known_start(const struct tsr_header *header, uint8_t start[TSR_START_LIMIT]);

/* The steps of a header. blobs: as above. Errors: TSR_ERROR_CORRUPT, TSR_ERROR_VERSION. */
enum tsr_status tsr_recipe_of(const struct tsr_header *header, uint64_t blobs, struct tsr_recipe *recipe,
                              struct tsr_error *error);

#endif
