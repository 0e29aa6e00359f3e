/* The hiding family's definitions, of one block (hiding.h). Places are those of the zigzag scan, in which CAVLC codes a
 * block from the last coefficient to the first. */
#ifndef TSR_KERNELS_PAPERS_HIDING_HIDING_BLOCKS_H
#define TSR_KERNELS_PAPERS_HIDING_HIDING_BLOCKS_H

#include "entropy/cavlc.h"
#include "hiding.h"
#include "kernels/papers/cavlc/cavlc_frames.h"

/* A CPU finds masks and flips signs by SSE2: 218 instructions a block instead of 572, the key stream included
 * (callgrind, tessera-bench hiding --quick --qp 28). Kernels, emulated ones too, have the other form.
 * test_hiding_blocks compares the CPU's form with slow definitions, test_hiding_rows both forms with each other. */
#if defined(__SSE2__) && !defined(__cplusplus)
#define TSR_HIDING_SSE2 1
#include <emmintrin.h>
#else
#define TSR_HIDING_SSE2 0
#endif

/* Where a block has coefficients: bit p is that of place p. */
struct tsr_block_signs {
    uint32_t nonzero, ones, negative; /* ones: of magnitude 1 */
    int first;                        /* the first place: 0, or 1 in blocks of 15 coefficients */
};

/* What a method changes in a block. */
struct tsr_block_change {
    uint32_t flips; /* bit p: the coefficient at place p gets the other sign */
    int place;      /* the coefficient here becomes value; -1: none */
    int value;
};

/* Bit i: the coefficient at raster place i. Bits 0..15 say whether it is not 0, 16..31 whether it is 1 or -1, 32..47
 * whether it is negative. */
TSR_HD_INLINE uint64_t tsr_raster_masks(const int16_t *block)
{
    uint32_t nonzero = 0, ones = 0, negative = 0;
#if TSR_HIDING_SSE2
    const __m128i zero = _mm_setzero_si128(), one = _mm_set1_epi16(1), less = _mm_set1_epi16(-1);
    const __m128i low = _mm_loadu_si128((const __m128i *)block), high = _mm_loadu_si128((const __m128i *)block + 1);
    const __m128i low_ones = _mm_or_si128(_mm_cmpeq_epi16(low, one), _mm_cmpeq_epi16(low, less));
    const __m128i high_ones = _mm_or_si128(_mm_cmpeq_epi16(high, one), _mm_cmpeq_epi16(high, less));
    nonzero =
        0xffffu ^ (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(_mm_cmpeq_epi16(low, zero), _mm_cmpeq_epi16(high, zero)));
    ones = (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(low_ones, high_ones));
    negative = (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(low, high));
#else
    TSR_UNROLL
    for (int i = 0; i < TSR_BLOCK_SAMPLES; i++) {
        nonzero |= (uint32_t)(block[i] != 0) << i;
        ones |= (uint32_t)(block[i] == 1 || block[i] == -1) << i;
        negative |= (uint32_t)(block[i] < 0) << i;
    }
#endif
    return (uint64_t)negative << 32 | ones << 16 | nonzero;
}

/* Brings masks of 16 bits each from the raster's order into the scan's, and back: each place moves by as much as
 * tsr_zigzag_place says. */
TSR_HD_INLINE uint64_t tsr_scan_masks(uint64_t m)
{
    const uint64_t each = 0x0001000100010001u;
    return (m & 0xc003u * each) | (m & 0x000cu * each) << 3 | (m & 0x3000u * each) >> 3 | (m & 0x0010u * each) >> 2 |
           (m & 0x0800u * each) << 2 | (m & 0x0220u * each) >> 1 | (m & 0x0440u * each) << 1 |
           (m & 0x0080u * each) << 5 | (m & 0x0100u * each) >> 5;
}

TSR_HD_INLINE uint32_t tsr_raster_mask(uint32_t m)
{
    return (m & 0xc003u) | (m & 0x0060u) >> 3 | (m & 0x0600u) << 3 | (m & 0x0004u) << 2 | (m & 0x2000u) >> 2 |
           (m & 0x0110u) << 1 | (m & 0x0880u) >> 1 | (m & 0x1000u) >> 5 | (m & 0x0008u) << 5;
}

/* block: 16 coefficients in raster order. */
TSR_HD_INLINE struct tsr_block_signs tsr_signs_of_block(const int16_t *block, int first)
{
    const uint64_t masks = tsr_scan_masks(tsr_raster_masks(block));
    struct tsr_block_signs s;
    s.nonzero = (uint32_t)masks & 0xffffu & 0xffffu << first;
    s.ones = (uint32_t)masks >> 16;
    s.negative = (uint32_t)(masks >> 32);
    s.first = first;
    return s;
}

TSR_HD_INLINE void tsr_change_block(int16_t *block, struct tsr_block_change change)
{
    const uint32_t flips = tsr_raster_mask(change.flips);
#if TSR_HIDING_SSE2
    const __m128i bits = _mm_set1_epi16((int16_t)flips), low = _mm_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128);
    const __m128i high = _mm_slli_epi16(low, 8), low_flips = _mm_cmpeq_epi16(_mm_and_si128(bits, low), low);
    const __m128i high_flips = _mm_cmpeq_epi16(_mm_and_si128(bits, high), high);
    __m128i *const at = (__m128i *)block;
    _mm_storeu_si128(at, _mm_sub_epi16(_mm_xor_si128(_mm_loadu_si128(at), low_flips), low_flips));
    _mm_storeu_si128(at + 1, _mm_sub_epi16(_mm_xor_si128(_mm_loadu_si128(at + 1), high_flips), high_flips));
    if (change.place >= 0) block[tsr_zigzag(change.place)] = (int16_t)change.value;
#else
    const int place = change.place < 0 ? -1 : tsr_zigzag(change.place);
    TSR_UNROLL
    for (int i = 0; i < TSR_BLOCK_SAMPLES; i++) {
        const int value = flips >> i & 1u ? -block[i] : block[i];
        block[i] = (int16_t)(i == place ? change.value : value);
    }
#endif
}

/* How many coefficients of magnitude 1 stand at the block's end, counted up to limit. *rest: the places of the
 * others. With limit 3 these are the trailing ones (H.264 7.4.5.3.2). */
TSR_HD int tsr_last_ones(struct tsr_block_signs s, int limit, uint32_t *rest)
{
    int count = 0;
    *rest = s.nonzero;
    while (count < limit && *rest != 0) {
        const uint32_t last = 1u << tsr_floor_log2(*rest);
        if (!(s.ones & last)) break;
        *rest ^= last;
        count++;
    }
    return count;
}

TSR_HD int tsr_trailing_ones(struct tsr_block_signs s)
{
    uint32_t rest;
    return tsr_last_ones(s, 3, &rest);
}

/* ---- Signs ---------------------------------------------------------------------------------------------------- */

/* The place whose sign changes the length of the block's code; -1: there is none.
 *
 * A sign is a coefficient code's lowest bit, which is a bit of the suffix, of an escape, or a trailing one's own bit.
 * Only with suffix_length 0 and no escape it belongs to the prefix. That happens to the first coefficient after the
 * trailing ones alone (H.264 9.2.2.1). */
TSR_HD int tsr_length_sign(const int16_t *block, struct tsr_block_signs s)
{
    struct tsr_cavlc_sink one = {NULL, 0}, other = {NULL, 0};
    uint32_t rest;
    const int ones = tsr_last_ones(s, 3, &rest);
    int total = ones;
    for (uint32_t left = rest; left != 0; left &= left - 1u) total++;
    if (rest == 0 || (total > 10 && ones < 3)) return -1;
    const int place = tsr_floor_log2(rest);
    const uint32_t code = 2u * (uint32_t)tsr_abs(block[tsr_zigzag(place)]) - 2u - (ones < 3 ? 2u : 0u);
    tsr_cavlc_emit_coefficient(&one, code, 0);
    tsr_cavlc_emit_coefficient(&other, code + 1u, 0);
    return one.bits == other.bits ? -1 : place;
}

/* Block b's bits of the key stream are the low (b even) or the high half of word b / 2; bit p is that of place p. */
TSR_HD uint32_t tsr_sign_bits(uint32_t block, uint32_t word)
{
    return word >> (block % 2u * 16u) & 0xffffu;
}

/* ---- First one ------------------------------------------------------------------------------------------------ */

/* The place of the trailing one whose sign is coded first: the last coefficient of the block. -1: there is none. */
TSR_HD int tsr_first_one(struct tsr_block_signs s)
{
    return tsr_trailing_ones(s) > 0 ? tsr_floor_log2(s.nonzero) : -1;
}

/* ---- Parity --------------------------------------------------------------------------------------------------- */

/* Changes one coefficient so that the parity of the number of trailing ones changes.
 *
 *   3, after another one   the third from the end becomes 2 in magnitude: two are left
 *   1 to 3                 the last becomes 0: one less
 *   none, place 15 free    +1 after the last coefficient (in an empty block, at its first place): one
 *   none, place 15 taken   the last becomes 1 in magnitude: one, or three where two or more stand before it. If one
 *                          stands before it, that would make two: the last becomes 0, and that one is left */
TSR_HD struct tsr_block_change tsr_parity_change(struct tsr_block_signs s)
{
    struct tsr_block_change change = {0, -1, 0};
    uint32_t rest;
    const int run = tsr_last_ones(s, 4, &rest);
    const int last = s.nonzero ? tsr_floor_log2(s.nonzero) : s.first - 1;
    change.place = last;
    if (run == 4) {
        uint32_t third = s.nonzero ^ 1u << last;
        third ^= 1u << tsr_floor_log2(third);
        change.place = tsr_floor_log2(third);
        change.value = s.negative >> change.place & 1u ? -2 : 2;
    } else if (run == 0 && last < TSR_BLOCK_SAMPLES - 1) {
        change.place = last + 1;
        change.value = 1;
    } else if (run == 0) {
        s.nonzero ^= 1u << last;
        if (tsr_trailing_ones(s) != 1) change.value = s.negative >> last & 1u ? -1 : 1;
    }
    return change;
}

/* ---- A block's part of a job ---------------------------------------------------------------------------------- */

/* The word of the key stream that a block uses. */
TSR_HD uint32_t tsr_hiding_word(const struct tsr_hiding_job *job, uint32_t block)
{
    return job->method == TSR_HIDING_PARITY ? block >> job->sparse : block / 2u;
}

TSR_HD bool tsr_hiding_needs_words(const struct tsr_hiding_job *job)
{
    return job->method != TSR_HIDING_FIRST_ONE && !(job->method == TSR_HIDING_PARITY && job->sparse == 0);
}

TSR_HD int tsr_hiding_first_place(const struct tsr_hiding_job *job, uint32_t block)
{
    return job->mb_flags[block / TSR_MB_BLOCKS] & TSR_MB_INTRA16X16 ? 1 : 0;
}

/* Whether a unit is in this block. word: tsr_hiding_word's, where tsr_hiding_needs_words. */
TSR_HD bool tsr_parity_chooses(const struct tsr_hiding_job *job, uint32_t block, uint32_t word)
{
    const uint32_t mask = (1u << job->sparse) - 1u;
    return block >> job->sparse < job->blocks >> job->sparse && ((block ^ word) & mask) == 0;
}

TSR_HD uint32_t tsr_hiding_data(const struct tsr_hiding_job *job, uint32_t unit)
{
    return job->data[unit / 32u] >> unit % 32u & 1u;
}

/* What a job changes in a block. coefficients: the block's 16, in raster order, as the job has them in memory. */
TSR_HD struct tsr_block_change tsr_hiding_change(const struct tsr_hiding_job *job, uint32_t block, uint32_t word,
                                                 const int16_t *coefficients, struct tsr_block_signs s)
{
    struct tsr_block_change change = {0, -1, 0};
    if (job->method == TSR_HIDING_FIRST_ONE) {
        const int place = tsr_first_one(s);
        if (place >= 0) change.flips = ((s.negative >> place & 1u) ^ tsr_hiding_data(job, block)) << place;
    } else if (job->method == TSR_HIDING_PARITY) {
        if (tsr_parity_chooses(job, block, word) &&
            ((uint32_t)tsr_trailing_ones(s) & 1u) != tsr_hiding_data(job, block >> job->sparse))
            change = tsr_parity_change(s);
    } else {
        change.flips = s.nonzero & tsr_sign_bits(block, word);
        const int place = job->method == TSR_HIDING_KEPT_LENGTHS ? tsr_length_sign(coefficients, s) : -1;
        if (place >= 0) change.flips &= ~(1u << place);
    }
    return change;
}

/* What a block carries. */
struct tsr_carried {
    uint32_t unit;
    uint32_t bit, carries; /* 0 or 1; bit is 0 if carries is */
};

TSR_HD struct tsr_carried tsr_hiding_carried(const struct tsr_hiding_job *job, uint32_t block, uint32_t word,
                                             struct tsr_block_signs s)
{
    struct tsr_carried c = {block, 0, 0};
    if (job->method == TSR_HIDING_PARITY) {
        c.unit = block >> job->sparse;
        c.carries = tsr_parity_chooses(job, block, word);
        c.bit = c.carries & (uint32_t)tsr_trailing_ones(s);
    } else if (job->method == TSR_HIDING_FIRST_ONE) {
        const int place = tsr_first_one(s);
        c.carries = place >= 0;
        c.bit = place >= 0 ? s.negative >> place & 1u : 0u;
    }
    return c;
}

#endif
