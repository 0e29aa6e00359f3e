/* Floating-point numbers of 32 bits that are a n + b, each rounded: VALUES.md 4. */
#ifndef TSR_IO_NODES_VALUES_FIND_SLOPE_H
#define TSR_IO_NODES_VALUES_FIND_SLOPE_H

#include "values.h"

/* The different numbers among values, as far as there are no more than so many. */
enum { TSR_DISTINCT_LIMIT = 1 << 16, TSR_DISTINCT_SLOTS = 1 << 17 };
struct tsr_distinct {
    uint32_t slot[TSR_DISTINCT_SLOTS]; /* their bits + 1; 0: none */
    uint32_t number[TSR_DISTINCT_LIMIT];
    size_t count;
    bool are_more;
};

/* Adds values of 32 bits. Those that are no numbers are listed in seen. Both begin as zeros. */
void tsr_add_distinct(struct tsr_distinct *distinct, struct tsr_values_seen *seen, const uint8_t *bytes, size_t count);

/* Finds a and b. False: these numbers are not so made. Else seen has step, base and exponent, and the range of n. */
bool tsr_find_slope(struct tsr_distinct *distinct, struct tsr_values_seen *seen);

#endif
