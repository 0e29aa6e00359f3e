/* Lists of numbers as text, such as the points of contours: each number is like the one before it of the same
 * coordinate, or goes on as the last two do. ELEMENTS.md 6. */
#ifndef TSR_IO_NODES_ELEMENTS_ELEMENTS_DIGITS_H
#define TSR_IO_NODES_ELEMENTS_ELEMENTS_DIGITS_H

#include <stdbool.h>

#include "io/bytes/mix.h"

enum {
    TSR_DIGITS_SETS = 3,   /* of weights */
    TSR_DIGITS_PERIOD = 3, /* coordinates of a point, at most */
    TSR_DIGITS_TEXT = 19,  /* characters of a number that count */
    TSR_DIGITS_OTHER = 15  /* the symbol of bytes that have none: the byte follows */
};

struct tsr_digits_number {
    uint8_t text[TSR_DIGITS_TEXT + 1]; /* zeros follow */
    uint32_t size;
    int64_t value; /* its digits */
    uint32_t decimals;
    bool has_point, is_negative;
    bool is_other; /* it has other characters, or is longer than DICOM's numbers are */
};

struct tsr_digits {
    uint32_t period, phase; /* coordinates, and that of the number */
    struct tsr_digits_number number;
    struct tsr_digits_number last[TSR_DIGITS_PERIOD][2]; /* of each coordinate: the last one, the one before */
    uint8_t guess[TSR_DIGITS_TEXT + 1];                  /* the number on the line of the last two */
    int32_t favour; /* above 0: where the guess and the last number differ, the guess was right more often of late */
    uint32_t from_last, from_guess; /* how the number differs from either so far */
    uint32_t recent;                /* the last three characters */
};

/* A list begins, of points with so many coordinates. */
void tsr_digits_begin(struct tsr_digits *numbers, uint32_t period);
void tsr_digits_take(struct tsr_digits *numbers, uint32_t byte);

/* Codes the symbol of the next byte by sets of weights from this one on. */
uint32_t tsr_digits_code(const struct tsr_digits *numbers, struct tsr_mix *mix, int sets, uint32_t symbol);

uint32_t tsr_digits_symbol(uint32_t byte);
uint32_t tsr_digits_byte(uint32_t symbol); /* not of TSR_DIGITS_OTHER */

#endif
