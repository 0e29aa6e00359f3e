/* Slices: the squares of blocks that path T codes on their own. FORMAT.md section 8.5.
 *
 * A tile's payload is the lengths of its slices' bit strings, in bytes, and the strings. Counts and energies of
 * neighbouring blocks stop at a slice's border, so slices are coded and decoded in parallel. */
#ifndef TSR_ENTROPY_SLICES_H
#define TSR_ENTROPY_SLICES_H

#include "bits.h"
#include "transform/block/blocks.h"

enum {
    TSR_SLICE_BLOCKS = 16,       /* side of a slice in blocks, as the encoder makes them: 64x64 samples */
    TSR_LARGE_SLICE_BLOCKS = 32, /* the same at high coefficients */
    TSR_SLICE_BLOCKS_LEAST = 4,  /* sides that a file may name */
    TSR_SLICE_BLOCKS_LIMIT = 64,
    TSR_RICE_LIMIT = 24 /* lengths are below 2^24 */
};

/* A tile cut into blocks, and these into slices. */
struct tsr_block_grid {
    int32_t columns, rows;             /* of blocks */
    int32_t slice_side;                /* in blocks */
    int32_t slice_columns, slice_rows; /* of slices */
};

TSR_HD struct tsr_block_grid tsr_block_grid(int32_t width, int32_t height, int32_t slice_side)
{
    struct tsr_block_grid grid;
    grid.columns = (width + TSR_BLOCK_SIDE - 1) / TSR_BLOCK_SIDE;
    grid.rows = (height + TSR_BLOCK_SIDE - 1) / TSR_BLOCK_SIDE;
    grid.slice_side = slice_side;
    grid.slice_columns = (grid.columns + slice_side - 1) / slice_side;
    grid.slice_rows = (grid.rows + slice_side - 1) / slice_side;
    return grid;
}

/* The blocks of slice number index, row by row: first block, and how many columns and rows of them. */
struct tsr_slice {
    int32_t column, row, columns, rows;
};

TSR_HD struct tsr_slice tsr_slice_at(struct tsr_block_grid grid, int32_t index)
{
    struct tsr_slice slice;
    slice.column = index % grid.slice_columns * grid.slice_side;
    slice.row = index / grid.slice_columns * grid.slice_side;
    slice.columns = tsr_min(grid.slice_side, grid.columns - slice.column);
    slice.rows = tsr_min(grid.slice_side, grid.rows - slice.row);
    return slice;
}

/* Rice codes: the high part of each length in unary, the low parameter bits as they are. */
TSR_HD uint64_t tsr_rice_bits(const uint32_t *lengths, int32_t count, int parameter)
{
    uint64_t bits = 0;
    for (int32_t i = 0; i < count; i++) bits += (lengths[i] >> parameter) + 1u + (uint32_t)parameter;
    return bits;
}

TSR_HD int tsr_rice_parameter(const uint32_t *lengths, int32_t count)
{
    int best = 0;
    for (int k = 1; k < TSR_RICE_LIMIT; k++)
        if (tsr_rice_bits(lengths, count, k) < tsr_rice_bits(lengths, count, best)) best = k;
    return best;
}

TSR_HD void tsr_put_slice_lengths(struct tsr_bit_writer *w, const uint32_t *lengths, int32_t count)
{
    const int parameter = tsr_rice_parameter(lengths, count);
    tsr_put_bits(w, (uint32_t)parameter, 5);
    for (int32_t i = 0; i < count; i++) {
        for (uint32_t high = lengths[i] >> parameter; high > 0; high--) tsr_put_bits(w, 0, 1);
        tsr_put_bits(w, 1, 1);
        tsr_put_bits(w, lengths[i], parameter);
    }
}

TSR_HD bool tsr_get_slice_lengths(struct tsr_bit_reader *r, uint32_t *lengths, int32_t count)
{
    const int parameter = (int)tsr_get_bits(r, 5);
    if (parameter >= TSR_RICE_LIMIT) return false;
    for (int32_t i = 0; i < count; i++) {
        uint32_t high = 0;
        while (tsr_get_bits(r, 1) == 0) {
            if (r->overrun || ++high >= 1u << (TSR_RICE_LIMIT - parameter)) return false;
        }
        lengths[i] = high << parameter | tsr_get_bits(r, parameter);
    }
    return !r->overrun;
}

/* Moves size bytes of strings up and puts their lengths in front, whose own size is known only then; returns all bytes,
 * 0 if that would exceed capacity. */
TSR_HD size_t tsr_put_lengths_in_front(const uint32_t *lengths, int32_t count, uint8_t *payload, size_t size,
                                       size_t capacity)
{
    const int parameter = tsr_rice_parameter(lengths, count);
    const size_t front = (size_t)((5 + tsr_rice_bits(lengths, count, parameter) + 7) / 8);
    if (front > capacity - size) return 0;
    for (size_t i = size; i > 0; i--) payload[front + i - 1] = payload[i - 1];
    struct tsr_bit_writer writer = tsr_bit_writer(payload, front);
    tsr_put_slice_lengths(&writer, lengths, count);
    const size_t written = tsr_flush_bits(&writer);
    assert(written == front && !writer.overflow);
    return written + size;
}

/* Reads the lengths; returns the bytes that they take, 0 if they are not valid. */
TSR_HD size_t tsr_get_lengths_in_front(const uint8_t *payload, size_t size, uint32_t *lengths, int32_t count)
{
    struct tsr_bit_reader reader = tsr_bit_reader(payload, size);
    if (!tsr_get_slice_lengths(&reader, lengths, count)) return 0;
    const size_t at = (tsr_bits_read(&reader) + 7) / 8;
    return tsr_get_bits(&reader, (int)(8 * at - tsr_bits_read(&reader))) == 0 ? at : 0;
}

#endif
