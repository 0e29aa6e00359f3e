/* Which packet an encoder of RLE would write: rules that encoders follow. RLE.md 3. */
#ifndef TSR_IO_NODES_RLE_RLE_RULE_H
#define TSR_IO_NODES_RLE_RLE_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TSR_RLE_NO_OPERATION = 128, TSR_RLE_LONGEST = 128 };

/* A run is bytes of one value, as long as can be. */
struct tsr_rle_rule {
    uint8_t first_run;       /* the shortest run that is written as one where a packet begins: 2 .. 5 */
    uint8_t inner_run;       /* the shortest run that ends a literal: 2 .. 5 */
    bool counts_last_pairs;  /* a run of 2 at the end of a row is written as one and ends literals, too */
    bool crosses_rows;       /* packets go on beyond the end of a row */
    bool joins_rest;         /* what is left of a run after a packet of the longest run is as new bytes */
    bool sees_literal_alone; /* what ends a literal is looked for as if the row ended at the longest literal's end */
    bool takes_first;        /* a literal that a run ends has the run's first byte */
    uint8_t unit;            /* 1; or packets are of so many bytes or a multiple, 2 .. 128 */
    uint8_t longest_literal; /* 1 .. 128 */
    uint8_t longest_run;     /* 2 .. 128 */
};

/* A plane whose packets are planned. */
struct tsr_rle_planner {
    struct tsr_rle_rule rule;
    const uint8_t *plane;
    size_t size, columns;
    size_t row_end; /* of the last packet's row; of the plane if packets cross rows */
};

struct tsr_rle_planner tsr_rle_planner(const struct tsr_rle_rule *rule, const uint8_t *plane, size_t size,
                                       size_t columns);

/* The first byte of the packet that begins at a place below planner->size. last: that of the packet before, or
 * TSR_RLE_NO_OPERATION. Places do not fall from call to call. */
uint8_t tsr_rle_plan(struct tsr_rle_planner *planner, size_t at, uint8_t last);

/* Bytes of the plane that a packet makes. */
static inline size_t tsr_rle_length(uint8_t first)
{
    return first < 128 ? first + (size_t)1 : first == TSR_RLE_NO_OPERATION ? 0 : 257 - (size_t)first;
}

/* Bytes of a packet after its first. */
static inline size_t tsr_rle_more(uint8_t first)
{
    return first < 128 ? first + (size_t)1 : first == TSR_RLE_NO_OPERATION ? 0 : 1;
}

#endif
