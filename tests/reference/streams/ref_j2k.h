/* J2K.md: streams of JPEG 2000. */
#ifndef REF_J2K_H
#define REF_J2K_H

#include "ref_streams.h"

/* J2K.md 6: a code block. */
struct ref_j2k_block {
    unsigned component, band, band_planes; /* band: 0 LL, 1 HL, 2 LH, 3 HH */
    uint32_t x, y, width, height;          /* of its coefficients in the component's array */
    unsigned style;
    unsigned planes, passes; /* that it has, and that the stream has */
    uint8_t *bytes;
    uint32_t size;
    uint32_t *written; /* after each pass */
    /* While packets are made. */
    unsigned passes_sent, lblock;
    uint32_t bytes_sent;
};

/* What coding a block needs; all blocks share it. */
enum { REF_J2K_SAMPLES = 4096 };
struct ref_j2k_room {
    int32_t value[REF_J2K_SAMPLES]; /* the block's coefficients, row by row */
    uint8_t significant[REF_J2K_SAMPLES], visited[REF_J2K_SAMPLES], refined[REF_J2K_SAMPLES];
    uint8_t bytes[REF_J2K_SAMPLES * 33 * 8]; /* a symbol shifts by at most 15 bits; a bit has at most three symbols */
};

/* Makes the own bytes of a block. */
void ref_j2k_code_block(struct ref_j2k_block *block, struct ref_j2k_room *room);

#endif
