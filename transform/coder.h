/* Coders as files number them. FORMAT.md 3.1, 6.4. */
#ifndef TSR_TRANSFORM_CODER_H
#define TSR_TRANSFORM_CODER_H

#include "app/tessera.h"
#include "hd.h"

enum { TSR_CODER_NUMBERS = 3 };

/* TSR_CODER_BY_EFFORT, which no file has, comes before those that have numbers. */
TSR_HD uint32_t tsr_coder_number(enum tsr_coder coder)
{
    return (uint32_t)coder - TSR_CODER_HUFFMAN;
}

/* number: below TSR_CODER_NUMBERS. */
TSR_HD enum tsr_coder tsr_coder_of_number(uint32_t number)
{
    return number == 0 ? TSR_CODER_HUFFMAN : number == 1 ? TSR_CODER_CAVLC : TSR_CODER_RANS;
}

#endif
