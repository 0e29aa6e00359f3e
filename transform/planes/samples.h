/* Samples in words: how a stored word splits into the sample that a viewer sees and the bits around it.
 * FORMAT.md section 6.1.
 *
 * A word has bits_allocated (8 or 16) bits. The sample is its field of bits_stored bits that ends at
 * high_bit; the bits above and below are the outside bits. They carry overlays, dirt or the sign
 * extension. A plane keeps samples without a sign: signed ones are biased by 2^(bits_stored-1), so that the
 * order of values survives. Outside bits that are no extension form a second plane, and the word comes back
 * whole. Words of 32 bits are two planes of 16 (high half first, biased where the image is signed), words of
 * one bit are planes of zeros and ones; neither has outside bits. */
#ifndef TSR_TRANSFORM_PLANES_SAMPLES_H
#define TSR_TRANSFORM_PLANES_SAMPLES_H

#include "transform/hd.h"

struct tsr_word_layout {
    uint8_t bits_stored; /* 1..16 */
    uint8_t low_bit;     /* high_bit + 1 - bits_stored */
    uint8_t bits_above;  /* bits_allocated - 1 - high_bit */
    bool is_signed;      /* samples are two's complement: bias them */
    bool extends_sign;   /* the bits above are expected to repeat the sample's top bit, else to be zero */
};

TSR_HD struct tsr_word_layout tsr_word_layout(int bits_allocated, int bits_stored, int high_bit, bool is_signed,
                                              bool extends_sign)
{
    struct tsr_word_layout layout;
    layout.bits_stored = (uint8_t)bits_stored;
    layout.low_bit = (uint8_t)(high_bit + 1 - bits_stored);
    layout.bits_above = (uint8_t)(bits_allocated - 1 - high_bit);
    layout.is_signed = is_signed;
    layout.extends_sign = extends_sign;
    return layout;
}

/* Word to sample, 0 .. 2^bits_stored - 1. */
TSR_HD uint16_t tsr_word_sample(uint32_t word, struct tsr_word_layout layout)
{
    uint32_t field = (word >> layout.low_bit) & ((1u << layout.bits_stored) - 1u);
    return (uint16_t)(layout.is_signed ? field ^ (1u << (layout.bits_stored - 1)) : field);
}

/* The bits above that the layout expects beside this sample. */
TSR_HD uint32_t tsr_expected_above(uint32_t sample, struct tsr_word_layout layout)
{
    uint32_t top = (sample >> (layout.bits_stored - 1)) & 1u;
    if (layout.is_signed) top ^= 1u;
    return layout.extends_sign && top ? (1u << layout.bits_above) - 1u : 0u;
}

/* Word to outside bits, 0 where the word is just the sample and its extension. */
TSR_HD uint16_t tsr_word_outside(uint32_t word, struct tsr_word_layout layout)
{
    uint32_t above = word >> (layout.low_bit + layout.bits_stored);
    uint32_t below = word & ((1u << layout.low_bit) - 1u);
    above ^= tsr_expected_above(tsr_word_sample(word, layout), layout);
    return (uint16_t)(above << layout.low_bit | below);
}

/* Sample and outside bits back to the word. */
TSR_HD uint32_t tsr_join_word(uint32_t sample, uint32_t outside, struct tsr_word_layout layout)
{
    uint32_t field = layout.is_signed ? sample ^ (1u << (layout.bits_stored - 1)) : sample;
    uint32_t above = (outside >> layout.low_bit) ^ tsr_expected_above(sample, layout);
    uint32_t below = outside & ((1u << layout.low_bit) - 1u);
    return above << (layout.low_bit + layout.bits_stored) | field << layout.low_bit | below;
}

#endif
