/* Sizes and modes of a tile's predicted blocks as a string of the range coder. INTRA.md section 2.
 *
 * A mode is that of the block to the left, or that of the block above, or one of all. */
#ifndef TSR_ENTROPY_INTRA_MODES_H
#define TSR_ENTROPY_INTRA_MODES_H

#include "range_coder.h"
#include "varint.h"
#include "slices.h"
#include "transform/block/intra.h"

enum {
    TSR_INTRA_EIGHT = 16, /* of a block's byte: it is a part of an 8x8 block; the rest is its mode */
    TSR_INTRA_SIZE_BYTES = 3,
    TSR_INTRA_MODE_BITS = 4
};

struct tsr_intra_chances {
    struct tsr_chance eight[3];                          /* by how many of the squares left and above are 8x8 */
    struct tsr_chance is_left[2][2], is_above[2];        /* by size; by whether both are alike */
    struct tsr_chance mode[2][1 << TSR_INTRA_MODE_BITS]; /* by size: a tree */
};

/* Bytes of blocks, columns of them in a row. */
struct tsr_intra_map {
    uint8_t *of;
    int32_t columns, rows;
};

TSR_HD void tsr_init_intra_chances(struct tsr_intra_chances *chances)
{
    tsr_init_chances((struct tsr_chance *)chances, sizeof *chances / sizeof(struct tsr_chance));
}

TSR_HD_INLINE int tsr_intra_size_context(const struct tsr_intra_map *map, int32_t column, int32_t row)
{
    const uint8_t *at = map->of + (size_t)row * (size_t)map->columns + (size_t)column;
    return (column > 0 && *(at - 1) >= TSR_INTRA_EIGHT) + (row > 0 && *(at - map->columns) >= TSR_INTRA_EIGHT);
}

/* Whether a square lies in the tile with all of its blocks; others are 4x4. */
TSR_HD_INLINE bool tsr_is_whole_square(const struct tsr_intra_map *map, int32_t column, int32_t row)
{
    return column + 1 < map->columns && row + 1 < map->rows;
}

/* The modes left and above; TSR_INTRA_MEAN where there is no block. */
struct tsr_intra_beside {
    int left, above;
};

TSR_HD_INLINE struct tsr_intra_beside tsr_intra_beside(const struct tsr_intra_map *map, int32_t column, int32_t row)
{
    const uint8_t *at = map->of + (size_t)row * (size_t)map->columns + (size_t)column;
    struct tsr_intra_beside beside;
    beside.left = column > 0 ? *(at - 1) % TSR_INTRA_EIGHT : TSR_INTRA_MEAN;
    beside.above = row > 0 ? *(at - map->columns) % TSR_INTRA_EIGHT : TSR_INTRA_MEAN;
    return beside;
}

TSR_HD_INLINE void tsr_set_intra(const struct tsr_intra_map *map, int32_t column, int32_t row, bool eight, int mode)
{
    uint8_t *at = map->of + (size_t)row * (size_t)map->columns + (size_t)column;
    at[0] = (uint8_t)(eight ? TSR_INTRA_EIGHT | mode : mode);
    if (!eight) return;
    at[1] = at[map->columns] = at[map->columns + 1] = at[0];
}

TSR_HD void tsr_put_intra_mode(struct tsr_range_writer *w, struct tsr_intra_chances *chances, bool eight,
                               struct tsr_intra_beside beside, int mode)
{
    const bool alike = beside.left == beside.above;
    tsr_range_put_bit(w, &chances->is_left[eight][alike], mode == beside.left);
    if (mode == beside.left) return;
    if (!alike) {
        tsr_range_put_bit(w, &chances->is_above[eight], mode == beside.above);
        if (mode == beside.above) return;
    }
    for (int node = 1, i = TSR_INTRA_MODE_BITS - 1; i >= 0; i--) {
        const uint32_t bit = (uint32_t)mode >> i & 1u;
        tsr_range_put_bit(w, &chances->mode[eight][node], bit);
        node = 2 * node + (int)bit;
    }
}

/* TSR_INTRA_MODES: the bits are no mode. */
TSR_HD int tsr_get_intra_mode(struct tsr_range_reader *r, struct tsr_intra_chances *chances, bool eight,
                              struct tsr_intra_beside beside)
{
    const bool alike = beside.left == beside.above;
    int node = 1;
    if (tsr_range_get_bit(r, &chances->is_left[eight][alike])) return beside.left;
    if (!alike && tsr_range_get_bit(r, &chances->is_above[eight])) return beside.above;
    for (int i = 0; i < TSR_INTRA_MODE_BITS; i++)
        node = 2 * node + (int)tsr_range_get_bit(r, &chances->mode[eight][node]);
    return node - (1 << TSR_INTRA_MODE_BITS);
}

/* A square: its size, if it is whole, and the modes of its blocks. column, row: of its first block. */
TSR_HD void tsr_put_intra_square(struct tsr_range_writer *w, struct tsr_intra_chances *chances,
                                 const struct tsr_intra_map *map, int32_t column, int32_t row)
{
    const uint8_t *at = map->of + (size_t)row * (size_t)map->columns + (size_t)column;
    const bool eight = at[0] >= TSR_INTRA_EIGHT, whole = tsr_is_whole_square(map, column, row);
    if (whole) tsr_range_put_bit(w, &chances->eight[tsr_intra_size_context(map, column, row)], eight);
    for (int i = 0; i < (eight ? 1 : 4); i++) {
        const int32_t c = column + i % 2, r = row + i / 2;
        if (c >= map->columns || r >= map->rows) continue;
        tsr_put_intra_mode(w, chances, eight, tsr_intra_beside(map, c, r),
                           at[(size_t)(i / 2) * (size_t)map->columns + (size_t)(i % 2)] % TSR_INTRA_EIGHT);
    }
}

TSR_HD bool tsr_get_intra_square(struct tsr_range_reader *r, struct tsr_intra_chances *chances,
                                 const struct tsr_intra_map *map, int32_t column, int32_t row)
{
    const bool whole = tsr_is_whole_square(map, column, row);
    const bool eight = whole && tsr_range_get_bit(r, &chances->eight[tsr_intra_size_context(map, column, row)]) != 0;
    for (int i = 0; i < (eight ? 1 : 4); i++) {
        const int32_t x = column + i % 2, y = row + i / 2;
        if (x >= map->columns || y >= map->rows) continue;
        const int mode = tsr_get_intra_mode(r, chances, eight, tsr_intra_beside(map, x, y));
        if (mode >= TSR_INTRA_MODES) return false;
        tsr_set_intra(map, x, y, eight, mode);
    }
    return true;
}

/* The string with its size in front, from payload[at] on. Returns where it ends, 0 if it does not fit. */
TSR_HD size_t tsr_put_intra_string(const struct tsr_intra_map *map, uint8_t *payload, size_t at, size_t capacity)
{
    struct tsr_intra_chances chances;
    uint8_t varint[10];
    if (capacity < at + TSR_INTRA_SIZE_BYTES + 4) return 0;
    struct tsr_range_writer w =
        tsr_range_writer(payload + at + TSR_INTRA_SIZE_BYTES, capacity - at - TSR_INTRA_SIZE_BYTES);
    tsr_init_intra_chances(&chances);
    for (int32_t row = 0; row < map->rows; row += 2)
        for (int32_t column = 0; column < map->columns; column += 2)
            tsr_put_intra_square(&w, &chances, map, column, row);
    const size_t size = tsr_range_end(&w), head = tsr_put_varint(varint, size);
    if (w.overflow || head > TSR_INTRA_SIZE_BYTES) return 0;
    for (size_t i = 0; i < size; i++) payload[at + head + i] = payload[at + TSR_INTRA_SIZE_BYTES + i];
    for (size_t i = 0; i < head; i++) payload[at + i] = varint[i];
    return at + head + size;
}

/* Reads it from payload[*at] on; false if it is not valid. */
TSR_HD bool tsr_get_intra_string(const uint8_t *payload, size_t size, size_t *at, const struct tsr_intra_map *map)
{
    struct tsr_intra_chances chances;
    uint64_t bytes;
    if (!tsr_read_varint(payload, size, at, TSR_INTRA_SIZE_BYTES, &bytes) || bytes > size - *at) return false;
    struct tsr_range_reader r = tsr_range_reader(payload + *at, (size_t)bytes);
    *at += (size_t)bytes;
    tsr_init_intra_chances(&chances);
    for (int32_t row = 0; row < map->rows; row += 2)
        for (int32_t column = 0; column < map->columns; column += 2)
            if (r.overrun || !tsr_get_intra_square(&r, &chances, map, column, row)) return false;
    return !r.overrun && r.at >= bytes;
}

#endif
