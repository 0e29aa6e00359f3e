/* The CAVLC family: 4x4 blocks of quantised coefficients to one contiguous bit string (entropy/cavlc.h), and back. All
 * rows write the same bytes.
 *
 * Two orders of blocks share one definition. In memory, blocks lie in the order in which they are coded, each with 16
 * coefficients in raster order.
 *
 *   macroblocks   as in H.264 and the papers: frames of mb_columns x mb_rows macroblocks in raster order, with 16
 *                 blocks each, row by row. Each macroblock names its slice; blocks of another slice or frame are
 *                 unavailable. The DCs of an Intra16x16 macroblock are coded elsewhere: its blocks have 15
 *                 coefficients, and the first of the 16 in memory is skipped.
 *   slices        as in the product's path T: slices of at most 16 x 16 blocks, row by row. The code of each slice
 *                 is filled up to a whole byte. Slice s has 256 places in memory, from 256 s on; the block of row r
 *                 and column c is at 16 r + c. Places outside the slice are not coded.
 *
 * The papers' limit holds: a level_prefix is at most 15, so magnitudes are at most TSR_CAVLC_PAPER_LIMIT, and the code
 * of a block is shorter than 64 bytes. (The engine's coefficients are wider: kernels/slices/cavlc_blocks.cuh.) */
#ifndef TSR_KERNELS_PAPERS_CAVLC_CAVLC_FRAMES_H
#define TSR_KERNELS_PAPERS_CAVLC_CAVLC_FRAMES_H

#include "entropy/cavlc.h"
#include "kernels/papers/phases.h"

#ifdef __cplusplus
extern "C" {
#endif

enum tsr_block_order { TSR_ORDER_MACROBLOCKS, TSR_ORDER_SLICES };

enum {
    TSR_MB_BLOCKS = 16,
    TSR_MB_INTRA16X16 = 1,        /* flag of a macroblock */
    TSR_CAVLC_PAPER_LIMIT = 2047, /* the magnitude that level_prefix 15 reaches with every suffix length */
    TSR_SLICE_PLACES = 256        /* blocks of a slice in memory */
};

/* The size of a slice in blocks. */
struct tsr_slice_size {
    uint8_t columns, rows; /* 1..16 */
};

struct tsr_cavlc_job {
    enum tsr_block_order order;
    const int16_t *coefficients; /* 16 a block, 16-byte aligned */
    uint32_t blocks;             /* in memory: frames * mb_columns * mb_rows * 16, or slices * 256 */

    uint32_t mb_columns, mb_rows, frames; /* in macroblocks */
    const uint8_t *mb_flags;              /* of each macroblock */
    const uint16_t *mb_slices;            /* the slice of each macroblock; does not fall within a frame */

    const struct tsr_slice_size *slice_sizes; /* in slices order: of each of the blocks / 256 slices */

    uint8_t *out;   /* tsr_cavlc_bound() bytes, 16-byte aligned; up to 15 bytes after the string are overwritten */
    uint64_t *bits; /* out: length of the string */
    uint64_t *unit_offsets; /* out: first bit of each unit (a row of macroblocks, or a slice), the decoder's index */
    void *workspace;        /* 256-byte aligned */
    void *stream;           /* a cudaStream_t */
};

struct tsr_cavlc_decode_job {
    struct tsr_cavlc_job shape; /* order, blocks, mb_*, frames, slice_sizes, workspace, stream */
    const uint8_t *in;          /* the string, 16-byte aligned, readable up to 15 bytes after its end */
    uint64_t bits;
    const uint64_t *unit_offsets;
    int16_t *coefficients; /* out; DCs of Intra16x16 macroblocks and places outside slices become 0 */
    uint32_t *error;       /* out: not 0 if the string is invalid */
};

/* nC of a block. totals: total coefficients of each place in memory, valid for all blocks before this one. */
TSR_HD int tsr_cavlc_slice_context(const uint8_t *totals, uint32_t block)
{
    const uint32_t place = block % TSR_SLICE_PLACES;
    return tsr_cavlc_context(place % 16u > 0 ? totals[block - 1u] : -1, place >= 16u ? totals[block - 16u] : -1);
}

TSR_HD int tsr_cavlc_macroblock_context(const struct tsr_cavlc_job *job, const uint8_t *totals, uint32_t block)
{
    const uint32_t macroblock = block / TSR_MB_BLOCKS, place = block % TSR_MB_BLOCKS, columns = job->mb_columns;
    const uint16_t *slice = job->mb_slices + macroblock;
    int left = -1, up = -1;
    if (place % 4u > 0)
        left = totals[block - 1u];
    else if (macroblock % columns > 0 && slice[-1] == slice[0])
        left = totals[block - TSR_MB_BLOCKS + 3u];
    if (place >= 4u)
        up = totals[block - 4u];
    else if (macroblock / columns % job->mb_rows > 0 && *(slice - columns) == slice[0])
        up = totals[block - columns * TSR_MB_BLOCKS + 12u];
    return tsr_cavlc_context(left, up);
}

/* The number of units in the index: rows of macroblocks, or slices. A row of macroblocks needs the totals of the row
 * above, so a decoder walks the rows of a slice in order; slices do not depend on each other. */
uint32_t tsr_cavlc_units(const struct tsr_cavlc_job *job);
/* Bytes that the longest string may take: 64 a block, and 32 more. */
size_t tsr_cavlc_bound(const struct tsr_cavlc_job *job);

const struct tsr_kernel_row *const *tsr_cavlc_encoders(int *count);
const struct tsr_kernel_row *const *tsr_cavlc_decoders(int *count);

extern const struct tsr_kernel_row tsr_cavlc_cpu, tsr_cavlc_decode_cpu;
extern const struct tsr_kernel_row tsr_cavlc_su, tsr_cavlc_cavlcu, tsr_cavlc_single_pass, tsr_cavlc_decode_cuda;

#ifdef __cplusplus
}
#endif

#endif
