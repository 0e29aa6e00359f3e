/* The mask of a tile: which of its samples are kept, and their numbers. FORMAT.md section 6.7.
 *
 * Numbers are 0 (not kept) .. most. They are coded row by row, a group of 16 samples of a row at a time. */
#ifndef TSR_KERNELS_KEPT_MASK_CODER_H
#define TSR_KERNELS_KEPT_MASK_CODER_H

#include "entropy/range_coder.h"

enum { TSR_MASK_GROUP = 16, TSR_MASK_GROUPS_LIMIT = 65536 / TSR_MASK_GROUP, TSR_MASK_TREE_BITS = 8 };

struct tsr_mask {
    uint32_t most, last; /* last: the number of the last kept sample */
    bool has_numbers;    /* else no number is above 1 */
    int columns, groups;
    /* A bit a sample, the first one lowest, of the row and of the two above it: group k at k + 1, between groups that
     * stand for what is beside the tile. */
    uint16_t rows[3][TSR_MASK_GROUPS_LIMIT + 2];
    uint16_t *row, *above, *far_above;
    struct tsr_chance flat[2], pixel[1024], same, tree[1 << TSR_MASK_TREE_BITS];
};

/* Of a tile of so many columns. has_numbers is coded first: by whom calls. */
void tsr_mask_begin(struct tsr_mask *mask, int columns, uint32_t most, bool has_numbers);

/* Before the first row of a component; and after each row. */
void tsr_mask_begin_plane(struct tsr_mask *mask);
void tsr_mask_end_row(struct tsr_mask *mask);

/* Samples of a group: 16, or fewer at the end of a row. */
static inline int tsr_mask_samples(const struct tsr_mask *mask, int group)
{
    const int left = mask->columns - group * TSR_MASK_GROUP;
    return left < TSR_MASK_GROUP ? left : TSR_MASK_GROUP;
}

/* A group's numbers. get returns false if a number is above most, and sets *any if some are not 0. */
void tsr_mask_put(struct tsr_mask *mask, struct tsr_range_writer *writer, int group, const uint16_t *numbers);
bool tsr_mask_get(struct tsr_mask *mask, struct tsr_range_reader *reader, int group, uint16_t *numbers, bool *any);

#endif
