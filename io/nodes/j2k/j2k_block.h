/* Code blocks: the three passes over each bit plane. T.800 annex D, J2K.md 6. */
#ifndef TSR_IO_NODES_J2K_J2K_BLOCK_H
#define TSR_IO_NODES_J2K_J2K_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TSR_J2K_BLOCK_SAMPLES = 4096,
    TSR_J2K_BLOCK_FLAGS = 1026 * 3, /* the most of (width + 2) x (stripes + 2) */
    TSR_J2K_PLANES = 31,
    TSR_J2K_PASSES = 3 * TSR_J2K_PLANES - 2,
    /* Bits of the styles of code blocks: T.800 table A.19. */
    TSR_J2K_RESET = 2,
    TSR_J2K_CAUSAL = 8,
    TSR_J2K_SEGMENT_SYMBOLS = 32
};
#define TSR_J2K_SIGN 0x80000000u

/* A block at work. Samples are a magnitude and TSR_J2K_SIGN, row by row. */
struct tsr_j2k_block_work {
    uint32_t width, height;
    int band; /* 0 LL, 1 HL, 2 LH, 3 HH */
    uint8_t style;
    uint32_t sample[TSR_J2K_BLOCK_SAMPLES];
    uint32_t flags[TSR_J2K_BLOCK_FLAGS];
    uint32_t end[TSR_J2K_PASSES]; /* of an encoder: the bytes after each pass, not flushed */
};

/* Decodes the first passes of so many planes. bytes are followed by FF FF. Of what a sample lacks, the first bit is 1.
 * False: a segment symbol is wrong. */
bool tsr_j2k_block_decode(struct tsr_j2k_block_work *work, unsigned planes, unsigned passes, uint8_t *bytes);

/* Encodes them. bytes[0] is in front of the first byte. Returns the bytes, flushed as T.800 C.2.9 has it. */
size_t tsr_j2k_block_encode(struct tsr_j2k_block_work *work, unsigned planes, unsigned passes, uint8_t *bytes);

#endif
