/* The mask of a tile: which of its samples are kept, and their numbers. FORMAT.md section 6.7.
 *
 * Numbers are 0 (not kept) .. most. Which samples are kept is coded row by row: by edges (edge_coder.h), or a group of
 * 16 samples at a time, as here. */
#ifndef TSR_KERNELS_KEPT_MASK_CODER_H
#define TSR_KERNELS_KEPT_MASK_CODER_H

#include "entropy/range_coder.h"

enum { TSR_MASK_GROUP = 16, TSR_MASK_GROUPS_LIMIT = 65536 / TSR_MASK_GROUP, TSR_MASK_TREE_BITS = 8 };

/* The numbers of kept samples. */
struct tsr_mask_numbers {
    uint32_t most, last; /* last: the number of the last kept sample */
    bool has_numbers;    /* else no number is above 1 */
    struct tsr_chance same, tree[1 << TSR_MASK_TREE_BITS];
};

void tsr_numbers_begin(struct tsr_mask_numbers *numbers, uint32_t most, bool has_numbers);

/* Those of count samples that are not 0, from the left. get finds 1 where a sample is kept; it returns false if a
 * number is above most. */
void tsr_numbers_put(struct tsr_mask_numbers *numbers, struct tsr_range_writer *writer, const uint16_t *values,
                     int count);
bool tsr_numbers_get(struct tsr_mask_numbers *numbers, struct tsr_range_reader *reader, uint16_t *values, int count);

struct tsr_mask {
    int columns, groups;
    /* A bit a sample, the first one lowest, of the row and of the two above it: group k at k + 1, between groups that
     * stand for what is beside the tile. */
    uint16_t rows[3][TSR_MASK_GROUPS_LIMIT + 2];
    uint16_t *row, *above, *far_above;
    struct tsr_chance flat[2], pixel[1024];
};

/* Of a tile of so many columns. */
void tsr_mask_begin(struct tsr_mask *mask, int columns);

/* Before the first row of a component; and after each row. */
void tsr_mask_begin_plane(struct tsr_mask *mask);
void tsr_mask_end_row(struct tsr_mask *mask);

/* Samples of a group: 16, or fewer at the end of a row. */
static inline int tsr_mask_samples(const struct tsr_mask *mask, int group)
{
    const int left = mask->columns - group * TSR_MASK_GROUP;
    return left < TSR_MASK_GROUP ? left : TSR_MASK_GROUP;
}

/* A group, of which a bit a sample says whether it is kept. */
void tsr_mask_put(struct tsr_mask *mask, struct tsr_range_writer *writer, int group, uint32_t bits);
uint32_t tsr_mask_get(struct tsr_mask *mask, struct tsr_range_reader *reader, int group);

#endif
