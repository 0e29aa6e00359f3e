/* IEEE 754 numbers of 32 and 64 bits, in integers: VALUES.md 2. No floating point decides a byte. */
#ifndef TSR_IO_NODES_VALUES_FLOAT_BITS_H
#define TSR_IO_NODES_VALUES_FLOAT_BITS_H

#include "values.h"

/* Bits of a significand, the first of which is not written; exponent of the least number; the exponent field of what is
 * no number. */
struct tsr_float_layout {
    int precision, least;
    unsigned special;
};
struct tsr_float_layout tsr_float_layout_of(unsigned bits);

/* (-1)^is_negative * magnitude * 2^exponent: the magnitude is odd or 0. */
struct tsr_number {
    bool is_negative;
    uint64_t magnitude;
    int exponent;
};

/* False: it is no number, infinite or -0. */
bool tsr_take_float(unsigned bits, uint64_t value, struct tsr_number *number);

/* The nearest one, of two the one whose last bit is 0. */
uint64_t tsr_make_float(unsigned bits, bool is_negative, uint64_t magnitude, int exponent);

/* The bits of the value that begins here. */
uint64_t tsr_value_bits(const struct tsr_values *values, const uint8_t *bytes);

#endif
