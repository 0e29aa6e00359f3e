/* Nodes: each unwraps bytes of one kind into plain bytes and a residue, which is what the plain bytes do not say of
 * them. Both give the same bytes again, whatever libraries are installed. FORMAT.md section 4. */
#ifndef TSR_IO_NODES_NODE_H
#define TSR_IO_NODES_NODE_H

#include "app/tessera.h"
#include "io/bytes/grown.h"
#include "transform/image.h"

struct deflate_coder;
struct tsr_values;

/* What a node has besides the bytes that it works on. */
struct tsr_node_work {
    const struct tsr_image *image;   /* of a node over a raster: FORMAT.md 3.2; its samples are little endian */
    bool interlaced;                 /* of the rows of a PNG */
    unsigned form;                   /* of planes in a raster: PLANES.md */
    const struct tsr_values *values; /* that a raster's samples stand for: VALUES.md; else NULL */
    struct tsr_crew crew;            /* threads that help */
    struct deflate_coder **kept;     /* of deflate streams one after the other: see struct tsr_deflate_way; or NULL */
    bool *guessed;        /* of splitting: tsr_input_set_guessed; of joining: as it was left by that; or NULL */
    bool is_verified;     /* of splitting and joining for a proof: the written file will be made again, too */
    size_t whole;         /* bytes that joining makes, where the node is told; else 0 */
    uint64_t room;        /* what the file says that joining takes; else 0 */
    const uint8_t *known; /* of JPEG streams: a packed head, which theirs may be like; or NULL: JPEG.md 5 */
    size_t known_size;
};

/* Plain bytes and a residue. */
struct tsr_node_parts {
    const uint8_t *plain, *residue;
    size_t plain_size, residue_size;
};

struct tsr_node {
    const char *name;
    /* Unwraps bytes: appends plain bytes and residue. *used: bytes that it has taken, all of them for most nodes. Work
     * and memory are bounded by the bytes and by the limits of plain and residue. A raster has its room beforehand.
     * Errors: TSR_ERROR_CORRUPT (the bytes are not of this kind, or cannot be made again; the text says why, as half a
     * sentence; it has an offset if the bytes look damaged there, after TSR_OK, too), TSR_ERROR_LIMIT (memory). NULL:
     * bytes become parts another way. */
    enum tsr_status (*split)(const struct tsr_node_work *work, const uint8_t *bytes, size_t size, size_t *used,
                             struct tsr_bytes *plain, struct tsr_bytes *residue, struct tsr_error *error);
    /* Makes the bytes again, and appends them. Any parts are taken: what is not valid is TSR_ERROR_CORRUPT. NULL: the
     * bytes are never made again. */
    enum tsr_status (*join)(const struct tsr_node_work *work, const struct tsr_node_parts *parts,
                            struct tsr_bytes *bytes, struct tsr_error *error);
    /* Most bytes of memory that joining, or splitting, so many bytes takes, beside the arguments. NULL: another
     * function tells it. */
    uint64_t (*memory)(const struct tsr_node_work *work, uint64_t bytes, bool joins);
    bool takes_bits; /* a node over rasters: they may have samples of one bit */
    /* Of a node over bytes: what joining these parts takes as the header of a file tells it. limit: most bytes that are
     * made. Parts without bytes: only their sizes are known. */
    uint64_t (*room)(const struct tsr_node_parts *parts, uint64_t limit);
    /* What the head of a piece says besides the size of the plain bytes: PACKED.md. */
    bool has_residue;    /* the residue's size; else there is no residue */
    uint64_t most_plain; /* most plain bytes of a piece, and at least 1; 0: any number */
    uint64_t most_whole; /* the head says how many bytes joining makes: at most so many, at least 1; 0: it does not */
};

/* ---- The nodes: here alone, a node is declared and gets its number ------------------------------------------ */

/* Over rasters. Their numbers in files are the stream kinds of FORMAT.md 4.5; those of PNG, of planes and of values
 * have none. The kind 6 is that of units (io/recipe/header.h): one node more has the number 7. */
enum {
    TSR_NODE_RLE,
    TSR_NODE_JPEG_LOSSLESS,
    TSR_NODE_JPEG_LS,
    TSR_NODE_DEFLATE_FRAME,
    TSR_NODE_J2K,
    TSR_NODE_UNCOMPRESSED,
    TSR_RASTER_NODES
};
extern const struct tsr_node tsr_node_rle;           /* DICOM's RLE: RLE.md */
extern const struct tsr_node tsr_node_jpeg_lossless; /* T.81 process 14: JPEG_LOSSLESS.md */
extern const struct tsr_node tsr_node_jpeg_ls;       /* T.87, lossless: JPEG_LS.md */
extern const struct tsr_node tsr_node_deflate_frame; /* RFC 1951: DEFLATE.md 6 */
extern const struct tsr_node tsr_node_j2k;           /* T.800, lossless: J2K.md */
extern const struct tsr_node tsr_node_uncompressed;  /* the samples themselves: UNCOMPRESSED.md */
extern const struct tsr_node tsr_node_png;           /* IDAT chunks: PNG.md */
extern const struct tsr_node tsr_node_planes;        /* planes of subsampled chroma: PLANES.md */
extern const struct tsr_node tsr_node_values;        /* values of 32 and 64 bits: VALUES.md */

/* The node with a number, NULL: there is none. */
static inline const struct tsr_node *tsr_raster_node(int number)
{
    static const struct tsr_node *const nodes[TSR_RASTER_NODES] = {
        [TSR_NODE_RLE] = &tsr_node_rle,         [TSR_NODE_JPEG_LOSSLESS] = &tsr_node_jpeg_lossless,
        [TSR_NODE_JPEG_LS] = &tsr_node_jpeg_ls, [TSR_NODE_DEFLATE_FRAME] = &tsr_node_deflate_frame,
        [TSR_NODE_J2K] = &tsr_node_j2k,         [TSR_NODE_UNCOMPRESSED] = &tsr_node_uncompressed,
    };
    return number >= 0 && number < TSR_RASTER_NODES ? nodes[number] : NULL;
}

/* Over bytes. Their numbers in files are kinds of pieces, PACKED.md; that of deflated files has none. Pieces of three
 * kinds are made by no node: bytes of the file, and the usual start and end of a PNG. */
enum tsr_piece_kind {
    TSR_PIECE_BYTES,
    TSR_PIECE_JPEG,
    TSR_PIECE_DEFLATE,
    TSR_PIECE_PNG_START,
    TSR_PIECE_PNG_IDAT,
    TSR_PIECE_PNG_END,
    TSR_PIECE_SMALL_PNG, /* a whole file */
    TSR_PIECE_ELEMENTS,
    TSR_PIECE_KINDS
};
extern const struct tsr_node tsr_node_deflate;    /* RFC 1951: DEFLATE.md */
extern const struct tsr_node tsr_node_deflated;   /* deflate streams with bytes around them, as in gzip: GZIP.md */
extern const struct tsr_node tsr_node_png_chunks; /* the zlib stream in IDAT chunks: PNG.md */
extern const struct tsr_node tsr_node_jpeg;       /* lossy JPEG, packed: JPEG.md */
extern const struct tsr_node tsr_node_small_png;  /* whole PNG files, by mixed predictions: SMALL_PNG.md */
extern const struct tsr_node tsr_node_elements;   /* DICOM without pixels, by mixed predictions: ELEMENTS.md */

static inline const struct tsr_node *tsr_piece_node(enum tsr_piece_kind number)
{
    static const struct tsr_node *const nodes[TSR_PIECE_KINDS] = {
        [TSR_PIECE_JPEG] = &tsr_node_jpeg,           [TSR_PIECE_DEFLATE] = &tsr_node_deflate,
        [TSR_PIECE_PNG_IDAT] = &tsr_node_png_chunks, [TSR_PIECE_SMALL_PNG] = &tsr_node_small_png,
        [TSR_PIECE_ELEMENTS] = &tsr_node_elements,
    };
    return number < TSR_PIECE_KINDS ? nodes[number] : NULL;
}

/* ---- Nodes over rasters ------------------------------------------------------------------------------------- */

/* The number of a node, -1: it has none. */
int tsr_raster_node_number(const struct tsr_node *node);

/* Bits of its last byte that belong to samples; 0: all. */
static inline unsigned tsr_node_last_bits(const struct tsr_image *image)
{
    return (unsigned)(tsr_frame_bits(image) % 8);
}

/* Both directions of a node over a raster, which has its bytes. */
enum tsr_status tsr_node_split(const struct tsr_node *node, const struct tsr_image *image, const uint8_t *bytes,
                               size_t size, uint8_t *raster, struct tsr_bytes *residue, struct tsr_error *error);
enum tsr_status tsr_node_join(const struct tsr_node *node, const struct tsr_image *image, const uint8_t *raster,
                              const uint8_t *residue, size_t size, struct tsr_bytes *bytes, struct tsr_error *error);

#endif
