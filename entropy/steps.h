/* The numbers that describe a table, symbol by symbol: each by its step from the one before, since neighbours are
 * close; a step costs about two bits. FORMAT.md section 7.6: lengths of Huffman codes; 10.6: widths of rANS weights. */
#ifndef TSR_ENTROPY_STEPS_H
#define TSR_ENTROPY_STEPS_H

#include "bits.h"

enum { TSR_FIRST_STEP_FROM = 4 };

/* This many symbols (1 or more) have no number. */
TSR_HD void tsr_put_absent(struct tsr_bit_writer *w, int symbols)
{
    tsr_put_bits(w, 1, 4); /* 0001, ue */
    tsr_put_ue(w, (uint32_t)symbols - 1);
}

/* A number below 16; *previous becomes it. */
TSR_HD void tsr_put_step(struct tsr_bit_writer *w, int number, int *previous)
{
    if (number == *previous)
        tsr_put_bits(w, 1, 1); /* 1: the same */
    else if (number == *previous + 1)
        tsr_put_bits(w, 1, 2); /* 01: one more */
    else if (number == *previous - 1)
        tsr_put_bits(w, 1, 3); /* 001: one less */
    else
        tsr_put_bits(w, (uint32_t)number, 8); /* 0000, u(4): this number */
    *previous = number;
}

/* Reads one of the two: returns how many symbols are absent, or 0 where *previous has become a number. */
TSR_HD uint64_t tsr_get_step(struct tsr_bit_reader *r, int *previous)
{
    const uint32_t head = tsr_peek_bits(r, 4); /* zeros stand after the end */
    tsr_skip_bits(r, head >= 8 ? 1 : head >= 4 ? 2 : head >= 2 ? 3 : 4);
    if (head == 1) return (uint64_t)tsr_get_ue(r) + 1;
    if (head == 0)
        *previous = (int)tsr_get_bits(r, 4);
    else if (head < 8)
        *previous += head >= 4 ? 1 : -1;
    return 0;
}

#endif
