/* What the stages inside tsr_cuda_decode_transform_tiles (batch_decode_cuda.h) share: pieces of blocks in slices, whose
 * strings become coefficients, and these samples. FORMAT.md sections 8 to 10. */
#ifndef TSR_KERNELS_SLICES_DECODE_SLICES_CUDA_H
#define TSR_KERNELS_SLICES_DECODE_SLICES_CUDA_H

#include "kernels/batch/batch_decode_cuda.h"
#include "transform/block/dc_plane.h"
#include "transform/block/step_classes.h"

/* How the slices of a piece are coded. */
enum tsr_slice_kind { TSR_SLICES_CAVLC, TSR_SLICES_RUN_LEVEL, TSR_SLICES_PAIRS, TSR_SLICES_RANS, TSR_SLICE_KINDS };

struct tsr_sliced_piece {
    uint8_t is_sliced; /* there is something to decode */
    uint8_t kind;      /* enum tsr_slice_kind */
    uint8_t lapped;
    uint8_t is_bad; /* found out by slices or DCs: no samples are made of it */
};

/* Decoding tables of a plane: they lie one after the other. */
enum { TSR_NO_TABLE = 255 };
struct tsr_slice_tables {
    uint32_t first; /* of tables, in 16 bytes */
    uint32_t count;
    uint8_t of_cell[TSR_PAIR_CELLS]; /* TSR_NO_TABLE: of a group without tables */
};
static_assert((int)TSR_PAIR_CELLS >= (int)TSR_COEFFICIENT_CELLS && (int)TSR_PAIR_CELLS >= TSR_DC_CELLS + TSR_AC_CELLS,
              "run-level: DC cells, then AC cells");

/* Strides in elements; arrays on the device. Pieces by plane and tile, twice: after those of all planes come those of
 * their DC planes (FORMAT.md 8.9), which are planes of their own here, numbered from batch.planes on. */
struct tsr_decode_coefficients {
    bool narrow;          /* coefficients are int16_t, else int32_t; a frame with others is decoded elsewhere */
    uint32_t pieces;      /* planes * tiles; there are twice as many */
    uint32_t apart;       /* threads of which the first one decodes a slice */
    uint32_t most_slices; /* of a piece, if a model names the smallest ones */
    uint32_t tile_blocks; /* of a full tile, and of its DC plane */
    uint32_t dc_tile_blocks;
    size_t table_room; /* in 16 bytes */

    struct tsr_sliced_piece *piece;
    uint32_t *start;                /* by piece, most_slices + 1 each: bytes from the piece's first to each string */
    uint32_t *first_slice;          /* by kind, 2 pieces + 1 each: how many slices of this kind come before */
    struct tsr_slice_tables *plane; /* by plane, and then by DC plane */
    uint8_t *tables;
    void *coefficients;    /* by piece, see tsr_first_block: 16 in raster order; blocks row by row */
    uint32_t tile_squares; /* of a full tile */
    uint8_t *classes;      /* of steps, by piece of the first half, tile_squares each; of planes that have them */
    int32_t *dcs;          /* by block: first the DC's difference, then the DC; with a DC plane what it is scaled to */
};

/* The first block of a piece. */
TSR_HD size_t tsr_first_block(const struct tsr_decode_coefficients *w, uint32_t number)
{
    return number < w->pieces ? (size_t)number * w->tile_blocks
                              : (size_t)w->pieces * w->tile_blocks + (size_t)(number - w->pieces) * w->dc_tile_blocks;
}

/* The tile of a piece; of a DC plane its sides alone count. */
TSR_HD struct tsr_tile tsr_piece_tile(const struct tsr_cuda_decode_batch *b, const struct tsr_decode_coefficients *w,
                                      uint32_t number)
{
    const struct tsr_tile tile = tsr_decode_tile_at(b, number % b->tiles);
    return number < w->pieces ? tile : tsr_tile_of_dcs(tile.width, tile.height);
}

/* Columns and rows of a full tile's blocks. */
TSR_HD struct tsr_block_grid tsr_full_tile_blocks(const struct tsr_cuda_decode_batch *b)
{
    return tsr_block_grid(b->tile_width, b->tile_height, TSR_SLICE_BLOCKS);
}

#ifdef __cplusplus
extern "C" {
#endif

/* Coefficients to samples, if the batch's pieces are good. */
int tsr_cuda_inverse(const struct tsr_cuda_decode_batch *batch, const struct tsr_decode_coefficients *coefficients,
                     cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
