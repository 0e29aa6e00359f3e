/* Codestreams of JPEG 2000 part 1 without loss: what the files of this folder share. T.800, J2K.md. */
#ifndef TSR_IO_NODES_J2K_J2K_H
#define TSR_IO_NODES_J2K_J2K_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/nodes/node.h"
#include "j2k_block.h"

enum {
    TSR_J2K_COMPONENTS = 4,
    TSR_J2K_LEVELS = 32,
    TSR_J2K_BANDS = 3 * TSR_J2K_LEVELS + 1,
    TSR_J2K_SOC = 0xff4f,
    TSR_J2K_SOT = 0xff90,
    TSR_J2K_SOD = 0xff93,
    TSR_J2K_SOT_BYTES = 12
};

/* ---- Headers: J2K.md 2 --------------------------------------------------------------------------------- */

/* The coding of a component of a tile: COD or COC, QCD or QCC. */
struct tsr_j2k_coding {
    bool has_coding, has_exponents;
    uint8_t levels, block_width, block_height; /* of blocks: logarithms */
    uint8_t style;
    uint8_t precinct[TSR_J2K_LEVELS + 1]; /* of each resolution: PPx + 16 PPy */
    uint8_t guard_bits, exponents;
    uint8_t exponent[TSR_J2K_BANDS];
};

struct tsr_j2k_tile_head {
    uint8_t order; /* of progression */
    uint16_t layers;
    bool mixes, may_have_sop, has_eph;
    struct tsr_j2k_coding coding[TSR_J2K_COMPONENTS];
};

struct tsr_j2k_head {
    uint32_t x0, y0, x1, y1; /* of the image on the reference grid */
    uint32_t tile_x0, tile_y0, tile_width, tile_height;
    uint32_t tiles_across, tiles;
    uint8_t components, depth[TSR_J2K_COMPONENTS];
    bool is_signed[TSR_J2K_COMPONENTS];
    struct tsr_j2k_tile_head tile; /* of the main header */
};

/* Reads the main header at the beginning of bytes; *at becomes the place of the first SOT. */
enum tsr_status tsr_j2k_read_head(struct tsr_j2k_head *head, const struct tsr_image *image, const uint8_t *bytes,
                                  size_t size, size_t *at, struct tsr_error *error);

/* A tile-part's header from SOT to SOD: *at becomes the place after it. is_first: may change the tile's coding. */
struct tsr_j2k_part {
    uint32_t tile, size; /* size is Psot */
};
enum tsr_status tsr_j2k_read_part(struct tsr_j2k_tile_head *tile, int components, bool is_first, const uint8_t *bytes,
                                  size_t size, size_t *at, struct tsr_error *error);
/* What SOT says. False: there is none. */
bool tsr_j2k_read_sot(const uint8_t *bytes, size_t size, struct tsr_j2k_part *part);

/* ---- The plan of a tile: J2K.md 3 ---------------------------------------------------------------------- */

struct tsr_j2k_rectangle {
    uint32_t x0, y0, x1, y1;
};

/* What a tag tree says at a node: value is at least low; until it is known, that is all a reader has. */
struct tsr_j2k_tag {
    uint16_t value, low;
    bool is_known;
};

/* The layer of a block's first inclusion, and its zero planes. */
enum tsr_j2k_tree { TSR_J2K_LAYERS, TSR_J2K_ZEROS, TSR_J2K_TREES };

/* A node of the tag trees of a part of a band. */
struct tsr_j2k_node {
    uint32_t parent; /* of itself: the root */
    struct tsr_j2k_tag tag[TSR_J2K_TREES];
};

struct tsr_j2k_block {
    uint32_t at, width, height; /* at: of its first coefficient, in samples of the component's plane */
    uint32_t bytes, sent;       /* of all passes, and in packets so far */
    size_t start;               /* of the bytes; of a reader: the first chunk */
    size_t last;                /* chunk */
    uint32_t node;
    uint8_t component, band, band_planes, planes; /* planes: of the band, and that are coded */
    uint8_t passes, length_bits;                  /* so far; length_bits is Lblock */
    uint8_t cut;                                  /* passes that are missing at the end */
    bool is_included;
    size_t ends; /* of a tile with several layers: the place of the first pass's end */
};

/* The blocks of a precinct in a band. */
struct tsr_j2k_band_part {
    uint32_t first, count;
};

struct tsr_j2k_precinct {
    uint64_t x, y; /* on the reference grid, for the order */
    uint32_t number;
    uint8_t component, resolution, parts;
    struct tsr_j2k_band_part part[3];
};

struct tsr_j2k_tile {
    struct tsr_j2k_tile_head head;
    bool is_open; /* has a header and a plan */
    struct tsr_j2k_rectangle area;
    struct tsr_j2k_precinct *precinct; /* in the order of the progression without layers */
    uint32_t precincts;
    struct tsr_j2k_block *block;
    uint32_t blocks;
    struct tsr_j2k_node *node;
    uint32_t nodes;
    /* The next packet: a layer of a precinct of the run from first to last, all layers of which follow each other. */
    uint32_t first, last, next, layer;
};

/* What a stream may cost, in precincts and blocks. Each plan takes from it. */
struct tsr_j2k_budget {
    uint64_t precincts, blocks, visits;
};

void tsr_j2k_budget(struct tsr_j2k_budget *budget, const struct tsr_image *image, size_t size);

/* Makes the plan of a tile from its head. Of image->columns samples is a row of a plane. */
enum tsr_status tsr_j2k_plan_tile(struct tsr_j2k_tile *tile, const struct tsr_j2k_head *head, uint32_t number,
                                  struct tsr_j2k_budget *budget, struct tsr_error *error);
void tsr_j2k_free_tile(struct tsr_j2k_tile *tile);

/* Begins the packets anew. */
void tsr_j2k_rewind(struct tsr_j2k_tile *tile);

/* The next packet's precinct and *layer; NULL: all packets were there. */
struct tsr_j2k_precinct *tsr_j2k_next_packet(struct tsr_j2k_tile *tile, uint32_t *layer);

/* Of a tile-component: its area, and that of a resolution. */
struct tsr_j2k_rectangle tsr_j2k_resolution(const struct tsr_j2k_rectangle *area, unsigned reduce);

/* ---- Packets: J2K.md 4 --------------------------------------------------------------------------------- */

/* What a packet has of a block. */
struct tsr_j2k_event {
    uint32_t passes, bytes;
};

/* Reads a packet's header: an event for each block of the precinct. Returns the bytes, 0: it is damaged. */
size_t tsr_j2k_read_packet(struct tsr_j2k_tile *tile, const struct tsr_j2k_precinct *precinct, uint32_t layer,
                           const uint8_t *bytes, size_t size, struct tsr_j2k_event *events, bool *is_long);

/* Writes a packet's header. The nodes' values are those of tsr_j2k_set_nodes. */
enum tsr_status tsr_j2k_write_packet(struct tsr_j2k_tile *tile, const struct tsr_j2k_precinct *precinct, uint32_t layer,
                                     const struct tsr_j2k_event *events, bool is_long, struct tsr_bytes *out,
                                     struct tsr_error *error);

uint32_t tsr_j2k_precinct_blocks(const struct tsr_j2k_precinct *precinct);

/* ---- Coefficients: J2K.md 5 ---------------------------------------------------------------------------- */

/* The reversible 5/3 transform of a tile's component in its plane, a row of which has stride samples. column has
 * room for TSR_J2K_LANES x max(width, height) samples. */
enum { TSR_J2K_LANES = 16 };
void tsr_j2k_to_wavelet(int32_t *plane, size_t stride, const struct tsr_j2k_rectangle *area, unsigned levels,
                        int32_t *column);
void tsr_j2k_from_wavelet(int32_t *plane, size_t stride, const struct tsr_j2k_rectangle *area, unsigned levels,
                          int32_t *column);

/* ---- All of a stream ------------------------------------------------------------------------------------------- */

/* A tile-part, in the order of the stream. */
struct tsr_j2k_part_packets {
    uint32_t tile, packets;
};

struct tsr_j2k_codec {
    const struct tsr_image *image;
    struct tsr_j2k_head head;
    struct tsr_j2k_tile *tile;
    struct tsr_j2k_budget budget;
    int32_t *plane[TSR_J2K_COMPONENTS]; /* one allocation; samples, then coefficients */
    struct tsr_bytes events;            /* struct tsr_j2k_event, of all packets in the order of the stream */
    struct tsr_bytes parts;             /* struct tsr_j2k_part_packets */
    struct tsr_bytes coded;             /* of all blocks, by this encoder */
    struct tsr_bytes ends;              /* uint32_t: of passes, see tsr_j2k_block */
    bool long_empties[2];               /* packets without passes: of precincts with blocks, without blocks */
    bool has_sop;
    struct tsr_j2k_block_work *work;
    uint8_t *scratch; /* of a block's bytes */
    int32_t *column;
};

/* The head is known. size bounds the work: bytes of the stream. */
enum tsr_status tsr_j2k_create(struct tsr_j2k_codec *codec, size_t size, struct tsr_error *error);
void tsr_j2k_free(struct tsr_j2k_codec *codec);

/* A part's tile, which becomes open with its first part: its header is read. */
enum tsr_status tsr_j2k_open_part(struct tsr_j2k_codec *codec, uint32_t number, const uint8_t *bytes, size_t size,
                                  size_t *at, struct tsr_error *error);

/* Samples to coefficients, and back. */
enum tsr_status tsr_j2k_take_raster(struct tsr_j2k_codec *codec, const uint8_t *raster, struct tsr_error *error);
enum tsr_status tsr_j2k_give_raster(struct tsr_j2k_codec *codec, uint8_t *raster, struct tsr_error *error);

/* A block's coefficients from and to its plane. planes is set by load. False: it has more than the band. */
bool tsr_j2k_load_block(struct tsr_j2k_codec *codec, const struct tsr_j2k_tile *tile, struct tsr_j2k_block *block);
void tsr_j2k_store_block(struct tsr_j2k_codec *codec, const struct tsr_j2k_block *block);
void tsr_j2k_begin_block(struct tsr_j2k_codec *codec, const struct tsr_j2k_tile *tile,
                         const struct tsr_j2k_block *block);

/* The passes that a stream has of a block whose planes are known. */
static inline unsigned tsr_j2k_all_passes(const struct tsr_j2k_block *block)
{
    if (block->planes == 0) return 0;
    return 3u * block->planes - 2 - block->cut;
}

/* Encodes a block that was loaded: appends its bytes to coded, and its ends if its tile has layers. */
enum tsr_status tsr_j2k_encode_block(struct tsr_j2k_codec *codec, const struct tsr_j2k_tile *tile,
                                     struct tsr_j2k_block *block, struct tsr_error *error);

/* The bytes that a block is expected to have in layers that end with so many of its passes. */
uint32_t tsr_j2k_expect(const struct tsr_j2k_codec *codec, const struct tsr_j2k_block *block, uint32_t passes);

/* What the stream's end is by default, after the last tile-part. */
enum { TSR_J2K_TAILS = 3 };
extern const uint8_t tsr_j2k_tails[TSR_J2K_TAILS][3];
static inline size_t tsr_j2k_tail_size(unsigned number)
{
    return number == 0 ? 2 : 3;
}

/* Bits of a residue's flags, and what bits 3 and 4 say of passes that are missing: none; the last one of all blocks of
 * several planes; a byte for each block. */
enum {
    TSR_J2K_LONG_EMPTIES = 1,
    TSR_J2K_LONG_WITHOUT_BLOCKS = 2,
    TSR_J2K_HAS_SOP = 4,
    TSR_J2K_CUTS_SHIFT = 3,
    TSR_J2K_NO_CUTS = 0,
    TSR_J2K_ALL_CUT = 1,
    TSR_J2K_LISTED_CUTS = 2
};

/* The two halves of tsr_node_j2k. */
enum tsr_status tsr_j2k_join(const struct tsr_node_work *node, const struct tsr_node_parts *parts,
                             struct tsr_bytes *stream, struct tsr_error *error);

#endif
