/* What the stages of the CUDA engine share: a batch of frames of one image on the device, path T, from rasters to
 * payloads.
 *
 * All frames of a batch go through a stage at once, so a stage is one or two launches, whatever the number and size of
 * the frames. The planes are one list, frame by frame; the planes' tiles are one list, plane by plane; so are the
 * tiles' slices. Every stage puts its work on a stream and returns a cudaError_t. The host is asked nothing between
 * them. */
#ifndef TSR_KERNELS_BATCH_BATCH_TRANSFORM_CUDA_H
#define TSR_KERNELS_BATCH_BATCH_TRANSFORM_CUDA_H

#include <cuda_runtime_api.h>

#include "kernels/transform_plan.h"

enum {
    TSR_SLICE_SAMPLES = TSR_SLICE_BLOCKS * TSR_BLOCK_SIDE,       /* side of a slice */
    TSR_SLICE_PLACE_COUNT = TSR_SLICE_BLOCKS * TSR_SLICE_BLOCKS, /* of blocks, 16 row + column */
    TSR_TILE_SLICES =
        TSR_TILE_SAMPLES / (TSR_SLICE_SAMPLES * TSR_SLICE_SAMPLES) /* most of a tile as an encoder cuts it */
};

/* Planes of at most TSR_NARROW_BITS bits have coefficients below 2^15: with loss, a value of the transform is below 16,
 * 24 or 36 times 2^bits by its norm class and a coefficient that by the finest step's factor, 0.397, 0.251 or 0.159, so
 * below 6.4 * 2^12; without, a value is below 4.6 * 2^12. A DC lies between 0 and its bound, and so does its
 * prediction. Classes of steps halve the steps at most: with them planes have a bit less. */
enum { TSR_NARROW_BITS = 12 };

/* Counts of a plane's symbols, as training takes them: in the order of struct tsr_block_counts, each cell's aligned to
 * 16 bytes. */
enum {
    TSR_AC_PITCH = (TSR_AC_SYMBOLS + 3) / 4 * 4,
    TSR_DC_COUNTS = TSR_DC_CELLS * TSR_DC_SYMBOLS,
    TSR_AC_COUNTS = TSR_AC_CELLS * TSR_AC_PITCH,
    TSR_PLANE_COUNTS = TSR_DC_COUNTS + TSR_AC_COUNTS
};

/* What is found out about a frame. All zero before the stages. */
struct tsr_frame_state {
    uint32_t unexpected[2]; /* 1: words have outside bits that are not expected: with, and without, extended signs */
    uint32_t wraps;         /* bit c: differences of colour transform c do */
    uint32_t colour;        /* enum tsr_colour */
    uint32_t packing;       /* enum tsr_colour_packing */
    uint32_t leading;       /* of a palette: the component that colours are sorted by first */
    uint32_t colours;       /* of a palette */
    uint64_t colour_cost[TSR_COLOUR_COUNT];
};

/* What the choice of a frame's packing goes by. All zero before the stages. */
struct tsr_packing_state {
    uint32_t is_few;          /* 1: there are at most TSR_PALETTE_LIMIT colours in the rows that are looked at first */
    uint32_t is_sparse;       /* 1: a component leaves half of its span unused there; if neither, all else stays 0 */
    uint32_t colours;         /* if few: of the frame; where they are too many they are not counted to the end */
    uint32_t palette_bits[3]; /* of the palette's list, by leading component; 0: there is no palette */
    uint32_t listed[3];       /* if sparse: values that components use */
    uint32_t list_bits;       /* of the components' lists */
    uint64_t palette_cost[3]; /* as colour_cost */
    uint64_t listed_cost[TSR_COLOUR_COUNT];
};

/* The colours of a frame of few. */
enum { TSR_DEVICE_COLOUR_SLOTS = 2 * TSR_PALETTE_LIMIT };
struct tsr_colour_set {
    unsigned long long slot[TSR_DEVICE_COLOUR_SLOTS]; /* a colour's key, plus 1; 0 where it is free */
    uint16_t rank[3][TSR_DEVICE_COLOUR_SLOTS];        /* by leading component and slot: its number in the palette */
};

/* What is found out about a plane. */
struct tsr_plane_state {
    uint32_t not_minimum; /* 65535 - minimum: grows like maximum */
    uint32_t maximum;
    uint32_t range; /* of x: values in use if packed, else the span */
    uint32_t packed;
};

/* What coefficients are coded by. */
enum tsr_cuda_coder { TSR_BY_CAVLC, TSR_BY_RUN_LEVEL, TSR_BY_PAIRS, TSR_BY_RANS };

/* Codewords of a plane's cells of pairs: length << 12 | bits. */
struct tsr_cell_codes {
    uint16_t cell[TSR_PAIR_CELLS][TSR_PAIR_SYMBOLS];
};

/* Codewords of a plane: length << 12 | bits. */
struct tsr_packed_codes {
    uint16_t dc[TSR_DC_CELLS][TSR_DC_SYMBOLS];
    uint16_t ac[TSR_TABLE_LIMIT][TSR_AC_SYMBOLS + 1];
};

/* The string of a slice by rANS. */
struct tsr_slice_string {
    uint32_t bytes;
    uint32_t state_bytes; /* its first ones, which are the state */
};

/* What a batch is made of: frames, their planes, tiles and slices. Strides are in elements. */
struct tsr_batch_shape {
    struct tsr_image image;
    struct tsr_coding coding;
    uint32_t frames, components;
    uint32_t planes; /* frames * components */
    int32_t tile_width, tile_height;
    uint32_t tiles_across, tiles;                 /* of a plane */
    uint32_t slice_columns, slice_rows, slices;   /* of a plane */
    uint32_t tile_slice_columns, tile_slice_rows; /* of a tile that is not the last of its row or column */
    uint32_t pitch;                               /* of a plane's rows: a multiple of 8 */
    size_t plane_samples;                         /* pitch * rows */
    uint32_t max_error;                           /* of bounded errors; 0: samples are not quantised */
    int bits;                                     /* of first planes' values, before colours are packed */
    int plane_bits;                               /* of the widest plane, without palettes: these leave one plane */
    bool packs_colours;                           /* frames' colours may be packed */
    uint32_t values;                              /* of planes: 2^bits of the widest one, at least 32 */
    size_t frame_bytes;                           /* from raster to raster */
};

/* Device memory that both paths use: from rasters to planes, and payloads. The path's own arrays lie between these. */
struct tsr_batch_planes {
    size_t cleared_bytes; /* from cleared on, all that has to be zero before the first stage */
    size_t result_bytes;  /* from frame on, the results that the host copies */
    size_t payload_bytes; /* room for all payloads */

    const uint8_t *rasters;
    const struct tsr_coding *coding; /* by frame: those of path T may differ in their steps; null: shape.coding is of
                                        all. Not part of the layout */
    uint16_t *samples;               /* one plane after the other */
    uint16_t *index;                 /* by plane and value: x of packed planes, before that, of components; lossless */
    struct tsr_colour_set *colour_set; /* by frame; if packs_colours, as the next three */
    struct tsr_packing_state *packing; /* by frame */
    uint32_t *listed;                  /* by frame and component, tsr_listed_words: a bit for each value in use */
    uint16_t *palette;                 /* by frame and component, TSR_PALETTE_LIMIT: values of the colours */
    uint8_t *payloads;
    uint8_t *cleared;
    struct tsr_frame_state *frame; /* by frame */
    struct tsr_plane_state *plane; /* by plane */
    uint32_t *used;                /* by plane: a bit for each value; lossless */
    uint64_t *payload_offset;      /* by plane and tile, first byte: a multiple of 16; then the end of the last */
    uint32_t *payload_size;        /* in bytes; 0: the plane is constant */
};

struct tsr_dc_costs;

/* DC planes (FORMAT.md 8.9) of a batch: device memory from means to slices. What has a name of tsr_transform_state is
 * the same of DC planes; tsr_batch_of_dcs makes a batch of these. */
struct tsr_dc_state {
    int32_t *means;                /* by plane and tile, tsr_tile_dcs each: of the tile's blocks, row by row */
    struct tsr_dc_costs *costs;    /* by plane */
    struct tsr_plane_state *plane; /* by plane: constant where it has no DC plane */
    int32_t *units, *coefficients;
    uint8_t *strings;
    uint64_t *slice_offsets;
    uint8_t *coder;
    uint64_t *pair_blocks;
    uint32_t *entries, *entry_count;
    struct tsr_slice_string *slice_string;
    uint32_t *counts, *cells_in_use;
    uint64_t *magnitudes;
    struct tsr_pair_model *pair_model;
    struct tsr_coefficient_model *coefficient_model;
    struct tsr_cell_codes *pair_codes;
    tsr_coefficient_codes *coefficient_codes;
};

/* Path T, and path P by CAVLC: how blocks are coded, and device memory from coefficients to slices. */
struct tsr_transform_state {
    bool narrow;                    /* coefficients are int16_t, else int32_t */
    struct tsr_transform_plan plan; /* of first planes; its steps are those of a frame without a colour transform */
    bool chooses;                   /* coefficients of some plane are chosen by rate and distortion */
    bool has_classes;               /* some plane has classes of steps */
    bool has_dcs;                   /* some plane may have a DC plane */
    enum tsr_cuda_coder by;
    uint32_t plane_counts;    /* of symbols, of a plane */
    uint64_t magnitude_count; /* magnitudes of a plane that its shift goes by */
    size_t block_entries;     /* rANS: most entries of a block; each is at most a word of the string */

    void *coefficients;      /* by slice of the batch, quarter of a block, place: 4 coefficients in zigzag order */
    uint8_t *strings;        /* of all slices, one after the other, each filled up to whole bytes */
    uint64_t *slice_offsets; /* first bit of each slice's string, and of what would follow the last */
    uint8_t *coder;          /* work space of the block coder */
    int32_t *units;          /* as coefficients lie, DCs are coefficients already; where coefficients are chosen */
    uint8_t *lapped;         /* by plane and tile; with lapping */
    uint32_t tile_squares;   /* classes of steps (FORMAT.md 8.8): of a full tile; of all tiles of a plane; */
    uint32_t plane_squares;
    uint32_t class_room;    /* and the most bytes of a tile's string. With classes alone, the next five: */
    uint32_t *textures;     /* by plane and tile, tile_squares */
    uint8_t *classes;       /* the same */
    uint64_t *texture_sum;  /* by plane */
    uint8_t *class_strings; /* by plane and tile, class_room */
    uint32_t *class_bytes;  /* by plane and tile: of the string; 0: the plane has none */
    uint64_t *pair_blocks;  /* by slice of the batch and place: see coefficient_pairs_cuda.cu; pairs */
    uint32_t *entries;      /* by room (see tsr_slice_room), in the decoder's order; rANS */
    uint32_t *entry_count;  /* by room; rANS */
    struct tsr_slice_string *slice_string;           /* by room; rANS */
    uint32_t *counts;                                /* by plane, plane_counts each; Huffman, rANS */
    uint32_t *cells_in_use;                          /* by plane and group: bits of cells with counts; pairs, rANS */
    uint64_t *magnitudes;                            /* by plane: see tsr_magnitude_shift; pairs, rANS */
    struct tsr_run_level_model *model;               /* by plane; Huffman of run-level symbols */
    struct tsr_pair_model *pair_model;               /* by plane; pairs */
    struct tsr_coefficient_model *coefficient_model; /* by plane; rANS */
    struct tsr_packed_codes *codes;                  /* by plane; Huffman of run-level symbols */
    struct tsr_cell_codes *pair_codes;               /* by plane; pairs */
    tsr_coefficient_codes *coefficient_codes;        /* by plane and table, TSR_COEFFICIENT_TABLES a plane; rANS */
    struct tsr_dc_state dcs;                         /* if has_dcs */
};

/* A batch; kernels take it by value. Pointers are the device's. Path P by Huffman or rANS keeps its
 * state in tsr_predict_batch and leaves the pointers of transform null. */
struct tsr_cuda_batch {
    struct tsr_batch_shape shape;
    struct tsr_batch_planes shared;
    struct tsr_transform_state transform;
};

/* True for what the stages can do: path T, and path P by CAVLC. */
TSR_HD bool tsr_cuda_can_encode(const struct tsr_image *image, const struct tsr_coding *coding)
{
    if (coding->path == TSR_PATH_PREDICT && coding->coder != TSR_CODER_CAVLC) return false;
    if (tsr_may_have_intra(coding)) return false;
    return (image->bits_allocated == 8 || image->bits_allocated == 16) && image->tile_side == 0;
}

/* True if blocks are lossy: planes then keep values, not indices x. */
TSR_HD bool tsr_loses_coefficients(const struct tsr_coding *coding)
{
    return coding->path == TSR_PATH_TRANSFORM && coding->lossy;
}

/* Words of 32 bits that have a bit for each value of a component. */
TSR_HD uint32_t tsr_listed_words(const struct tsr_cuda_batch *b)
{
    return (1u << tsr_max(5, b->shape.bits)) / 32;
}

/* Plan of a plane whose frame's colour transform is known. */
TSR_HD struct tsr_transform_plan tsr_plane_plan(const struct tsr_cuda_batch *b, uint32_t plane)
{
    const uint32_t frame = plane / b->shape.components;
    return tsr_transform_plan(&b->shape.image, b->shared.coding ? &b->shared.coding[frame] : &b->shape.coding,
                              (enum tsr_colour)b->shared.frame[frame].colour, (int)(plane % b->shape.components));
}

/* A tile of a plane in the flat lists. */
struct tsr_tile_place {
    struct tsr_tile tile; /* first and stride in the plane's samples as they lie on the device */
    uint32_t first_slice; /* within the plane */
    uint32_t slice_columns, slice_rows;
};

TSR_HD struct tsr_tile_place tsr_tile_place(const struct tsr_cuda_batch *b, uint32_t tile)
{
    struct tsr_tile_place place;
    struct tsr_tiling tiling;
    tiling.columns = (int32_t)b->shape.image.columns;
    tiling.rows = (int32_t)b->shape.image.rows;
    tiling.tile_width = b->shape.tile_width;
    tiling.tile_height = b->shape.tile_height;
    const uint32_t x = tile % b->shape.tiles_across, y = tile / b->shape.tiles_across;
    place.slice_columns = b->shape.slice_columns - x * b->shape.tile_slice_columns;
    if (place.slice_columns > b->shape.tile_slice_columns) place.slice_columns = b->shape.tile_slice_columns;
    place.slice_rows = b->shape.slice_rows - y * b->shape.tile_slice_rows;
    if (place.slice_rows > b->shape.tile_slice_rows) place.slice_rows = b->shape.tile_slice_rows;
    place.first_slice =
        y * b->shape.tile_slice_rows * b->shape.slice_columns + place.slice_rows * x * b->shape.tile_slice_columns;
    place.tile = tsr_tile_in(tiling, x, y, b->shape.pitch);
    return place;
}

/* Most blocks of a tile, and so means of a tile's DC plane. */
TSR_HD uint32_t tsr_tile_dcs(const struct tsr_cuda_batch *b)
{
    return (uint32_t)((b->shape.tile_width + 3) / 4) * (uint32_t)((b->shape.tile_height + 3) / 4);
}

/* Columns and rows of blocks in slice number slice of a plane. Slices end at the borders of their tile. */
TSR_HD struct tsr_slice tsr_plane_slice(const struct tsr_cuda_batch *b, uint32_t slice)
{
    const uint32_t y = slice / (b->shape.tile_slice_rows * b->shape.slice_columns);
    uint32_t rest = slice - y * b->shape.tile_slice_rows * b->shape.slice_columns;
    uint32_t rows = b->shape.slice_rows - y * b->shape.tile_slice_rows;
    if (rows > b->shape.tile_slice_rows) rows = b->shape.tile_slice_rows;
    const uint32_t x = rest / (rows * b->shape.tile_slice_columns);
    rest -= x * rows * b->shape.tile_slice_columns;
    uint32_t columns = b->shape.slice_columns - x * b->shape.tile_slice_columns;
    if (columns > b->shape.tile_slice_columns) columns = b->shape.tile_slice_columns;
    const int32_t left = (int32_t)x * b->shape.tile_width, top = (int32_t)y * b->shape.tile_height;
    const int32_t width = tsr_min(b->shape.tile_width, (int32_t)b->shape.image.columns - left),
                  height = tsr_min(b->shape.tile_height, (int32_t)b->shape.image.rows - top);
    const int32_t column = (int32_t)(rest % columns) * TSR_SLICE_BLOCKS,
                  row = (int32_t)(rest / columns) * TSR_SLICE_BLOCKS;
    struct tsr_slice blocks;
    blocks.column = left / 4 + column;
    blocks.row = top / 4 + row;
    blocks.columns = tsr_min(TSR_SLICE_BLOCKS, (width + 3) / 4 - column);
    blocks.rows = tsr_min(TSR_SLICE_BLOCKS, (height + 3) / 4 - row);
    return blocks;
}

/* Place of four coefficients: quarter 0..3 of the block at a place of a slice of the batch. */
TSR_HD size_t tsr_coefficient_place(size_t slice, uint32_t quarter, uint32_t place)
{
    return ((slice * 4 + quarter) * TSR_SLICE_PLACE_COUNT + place) * 4;
}

/* Number of a block's first sample in its plane, counted along rows without gaps, as coarser_from is; tile: as it lies
 * on the device. */
TSR_HD size_t tsr_sample_number(const struct tsr_cuda_batch *b, struct tsr_tile tile, int32_t column, int32_t row)
{
    const size_t y = tile.first / b->shape.pitch + 4 * (size_t)row,
                 x = tile.first % b->shape.pitch + 4 * (size_t)column;
    return y * b->shape.image.columns + x;
}

/* Slices of rANS may be larger: such a one has the room of as many slices of the tile as it covers, in its own order.
 * The room of slice number slice of a tile begins with this one of the tile's. side: of the slices, in blocks. */
TSR_HD uint32_t tsr_slice_room(const struct tsr_tile_place *place, int32_t side, int32_t slice)
{
    const uint32_t each = (uint32_t)(side / TSR_SLICE_BLOCKS), across = (place->slice_columns + each - 1) / each;
    const uint32_t x = (uint32_t)slice % across * each, y = (uint32_t)slice / across * each;
    const uint32_t down = place->slice_rows - y < each ? place->slice_rows - y : each;
    return y * place->slice_columns + down * x;
}

/* Where the string of a slice ends that has this number of entries, at a multiple of 4: each leaves at most a word, and
 * 4 bytes are the state. */
TSR_HD size_t tsr_string_end(const struct tsr_cuda_batch *b, size_t room, uint32_t entries)
{
    return room * TSR_SLICE_PLACE_COUNT * (2 * b->transform.block_entries + 4) + (2 * (size_t)entries + 7) / 4 * 4;
}

TSR_HD uint32_t tsr_state_span(struct tsr_plane_state state)
{
    return state.maximum - (65535u - state.not_minimum) + 1u;
}

#ifdef __cplusplus
extern "C" {
#endif

/* Fills in everything but the arrays. Tiles are those of path T, in slices. */
void tsr_cuda_shape(struct tsr_cuda_batch *batch, const struct tsr_image *image, const struct tsr_coding *coding,
                    uint32_t frames);

/* Most bytes of a plane's payloads, those of its frame shared out evenly: of tiles that are stored raw, each aligned.
 */
size_t tsr_cuda_plane_payload_bytes(const struct tsr_cuda_batch *batch);

/* Whether frames of both codings may be in one batch: they differ in steps alone. */
bool tsr_cuda_may_join(const struct tsr_image *image, const struct tsr_coding *a, const struct tsr_coding *b);

/* The DC planes of a batch that may have them as a batch: each plane's means as its samples, in 32 bits. Its payloads
 * are no tiles' but what stands in front of the slices of the batch's. */
struct tsr_cuda_batch tsr_batch_of_dcs(const struct tsr_cuda_batch *batch);

/* Shapes the batch and lays its arrays out from base on; if base is null, it only counts. Returns the bytes that they
 * take. d_rasters: the frames' rasters, without gaps, or null: a place for them is among the arrays. */
size_t tsr_cuda_lay_out(struct tsr_cuda_batch *batch, const struct tsr_image *image, const struct tsr_coding *coding,
                        uint32_t frames, const uint8_t *d_rasters, void *d_base);
/* All stages, in their order. */
int tsr_cuda_encode_batch(const struct tsr_cuda_batch *batch, cudaStream_t stream);

/* Rasters to planes; counts unexpected outside bits. */
int tsr_cuda_split(const struct tsr_cuda_batch *batch, cudaStream_t stream);
/* If packs_colours: what their packings would be. */
int tsr_cuda_find_packings(const struct tsr_cuda_batch *batch, cudaStream_t stream);
/* Chooses the frames' packings and colour transforms, and applies them. */
int tsr_cuda_colour(const struct tsr_cuda_batch *batch, cudaStream_t stream);
/* Chooses the planes' ranges; the samples stay values, tsr_sample_index below makes x of them. */
int tsr_cuda_ranges(const struct tsr_cuda_batch *batch, cudaStream_t stream);
/* Values to coefficients, without lapping; Huffman of run-level symbols: counts them. */
int tsr_cuda_blocks(const struct tsr_cuda_batch *batch, cudaStream_t stream);
/* If has_classes: classes of the planes' squares; and, from the coefficients, their strings. */
int tsr_cuda_classes(const struct tsr_cuda_batch *batch, cudaStream_t stream);
int tsr_cuda_class_strings(const struct tsr_cuda_batch *batch, cudaStream_t stream);
/* Values to coefficients, with lapping in tiles that seem to cost less with it; to units if coefficients are chosen. */
int tsr_cuda_lapped(const struct tsr_cuda_batch *batch, cudaStream_t stream);
/* If has_dcs: which planes have DC planes; and, dcs being tsr_batch_of_dcs, their means to units. */
int tsr_cuda_choose_dcs(const struct tsr_cuda_batch *batch, cudaStream_t stream);
int tsr_cuda_units_of_dcs(const struct tsr_cuda_batch *batch, const struct tsr_cuda_batch *dcs, cudaStream_t stream);
/* Units to coefficients, where coefficients of some plane are chosen by rate and distortion; sums up their magnitudes.
 */
int tsr_cuda_choose(const struct tsr_cuda_batch *batch, cudaStream_t stream);
/* Sums of magnitudes, which contexts depend on, where coefficients are not chosen. */
int tsr_cuda_magnitudes(const struct tsr_cuda_batch *batch, cudaStream_t stream);
/* Coefficients to counts of pairs' symbols; to rANS entries and their counts. */
int tsr_cuda_count_pairs(const struct tsr_cuda_batch *batch, cudaStream_t stream);
int tsr_cuda_count_entries(const struct tsr_cuda_batch *batch, cudaStream_t stream);
/* Counts to tables, their codes, and their choice by cells; planes: their number. The counts are used up. */
int tsr_cuda_train(uint32_t *d_counts, const struct tsr_plane_state *d_plane, uint32_t planes,
                   struct tsr_run_level_model *d_model, struct tsr_packed_codes *d_codes, cudaStream_t stream);
/* The same for pairs and for rANS, into the batch's models and codes. */
int tsr_cuda_train_pairs(const struct tsr_cuda_batch *batch, cudaStream_t stream);
int tsr_cuda_train_coefficients(const struct tsr_cuda_batch *batch, cudaStream_t stream);
/* Coefficients to slices' bit strings. */
int tsr_cuda_code_slices(const struct tsr_cuda_batch *batch, cudaStream_t stream);
int tsr_cuda_code_pairs(const struct tsr_cuda_batch *batch, cudaStream_t stream);
int tsr_cuda_code_entries(const struct tsr_cuda_batch *batch, cudaStream_t stream);
/* Payloads' sizes to their places. */
int tsr_cuda_scan_payloads(const struct tsr_cuda_batch *batch, cudaStream_t stream);
/* Bit strings to payloads. dcs: tsr_batch_of_dcs if has_dcs, else it is not looked at. */
int tsr_cuda_assemble(const struct tsr_cuda_batch *batch, const struct tsr_cuda_batch *dcs, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#if defined(__cplusplus) && defined(TSR_KERNELS_MACHINE_DEVICE_CUH)
/* x of a plane's value. */
static __device__ __forceinline__ int32_t tsr_sample_index(struct tsr_plane_state state, const uint16_t *index,
                                                           uint32_t value)
{
    return state.packed ? index[value] : (int32_t)(value - (65535u - state.not_minimum));
}
#endif

#endif
