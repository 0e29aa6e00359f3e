/* CAVLC: context-adaptive variable length coding of 4x4 blocks (ITU-T H.264, 9.2). CAVLC.md 1.
 *
 * A block of 15 or 16 coefficients in zigzag order becomes, one after the other: coeff_token (how many coefficients are
 * not zero, and how many trailing ones of magnitude 1 stand at their end; the code depends on nC, the counts in the
 * left and upper block), the trailing ones' signs, the other coefficients from the last to the first, total_zeros, and
 * run_before of each coefficient but the first. Coefficients beyond H.264's 15-bit ones continue its escape: a prefix
 * of 16 and more doubles the range each time. */
#ifndef TSR_ENTROPY_CAVLC_H
#define TSR_ENTROPY_CAVLC_H

#include <string.h>

#include "bits.h"
#include "cavlc_tables.h"
#include "transform/block/blocks.h"

#if defined(__SSE2__) && !defined(__CUDACC__)
#include <emmintrin.h>
#endif

/* Magnitudes below TSR_COEFFICIENT_LIMIT need prefixes of at most 26, hence codewords of at most 26 + 1 + 23 = 50 bits.
 */
enum { TSR_CAVLC_PREFIX_LIMIT = 26 };

/* nC from the total coefficients of the left (a) and upper (b) block; -1 where there is none in the slice. */
TSR_HD_INLINE int tsr_cavlc_context(int a, int b)
{
    if (a >= 0 && b >= 0) return (a + b + 1) >> 1;
    return a >= 0 ? a : b >= 0 ? b : 0;
}

/* Place of the table for nC among tsr_coeff_token_codewords; 3: the fixed code. */
TSR_HD_INLINE int tsr_coeff_token_table(int context)
{
    return context < 2 ? 0 : context < 4 ? 1 : context < 8 ? 2 : 3;
}

/* Codeword of coeff_token, its bits and their number. */
TSR_HD_INLINE void tsr_coeff_token(int context, int total, int ones, uint32_t *bits, int *length)
{
    const int table = tsr_coeff_token_table(context);
    if (table == 3) {
        *bits = total == 0 ? 3u : (uint32_t)((total - 1) << 2 | ones);
        *length = 6;
        return;
    }
    const uint16_t entry = TSR_AT(tsr_coeff_token_codewords)[table * 68 + total * 4 + ones];
    *bits = entry & 15u;
    *length = entry >> 4;
}

/* Where codewords go: to a writer, or, with writer null, only into the count of bits. */
struct tsr_cavlc_sink {
    struct tsr_bit_writer *writer;
    uint32_t bits;
};

TSR_HD_INLINE void tsr_cavlc_emit(struct tsr_cavlc_sink *sink, uint32_t bits, int length)
{
    if (sink->writer) tsr_put_bits(sink->writer, bits, length);
    sink->bits += (uint32_t)length;
}

/* One coefficient under suffix_length; code is its coefficient code (H.264 9.2.2.1): 2 |coefficient| - 2, plus 1 if
 * negative, less 2 where the magnitude 1 is excluded. */
TSR_HD_INLINE void tsr_cavlc_emit_coefficient(struct tsr_cavlc_sink *sink, uint32_t code, int suffix_length)
{
    const uint32_t regular = suffix_length == 0 ? 14u : 15u << suffix_length;
    if (code < regular) { /* prefix < 14 or 15, suffix of suffix_length bits */
        tsr_cavlc_emit(sink, 1u << suffix_length | (code & ((1u << suffix_length) - 1u)),
                       (int)(code >> suffix_length) + 1 + suffix_length);
        return;
    }
    if (suffix_length == 0 && code < 30u) { /* prefix 14, suffix of 4 bits */
        tsr_cavlc_emit(sink, 1, 15);
        tsr_cavlc_emit(sink, code - 14u, 4);
        return;
    }
    uint32_t rest = code - (suffix_length == 0 ? 30u : 15u << suffix_length);
    int prefix = 15; /* prefix p, suffix of p - 3 bits */
    while (rest >= 1u << (prefix - 3)) rest -= 1u << (prefix++ - 3);
    tsr_cavlc_emit(sink, 1, prefix + 1);
    tsr_cavlc_emit(sink, rest, prefix - 3);
}

/* The next suffix length after a coefficient of this magnitude. */
TSR_HD_INLINE int tsr_cavlc_next_suffix(int suffix_length, uint32_t magnitude)
{
    if (suffix_length == 0) suffix_length = 1;
    return suffix_length < 6 && magnitude > 3u << (suffix_length - 1) ? suffix_length + 1 : suffix_length;
}

/* Which of count coefficients are not 0: bit i is place i's. */
TSR_HD_INLINE uint32_t tsr_cavlc_places(const int32_t *coefficients, int count)
{
    uint32_t places = 0;
#if defined(__SSE2__) && !defined(__CUDACC__)
    if (count == TSR_BLOCK_SAMPLES) {
        __m128i v[4];
        for (int i = 0; i < 4; i++) v[i] = _mm_loadu_si128((const __m128i *)coefficients + i);
        const __m128i all = _mm_packs_epi16(_mm_packs_epi32(v[0], v[1]), _mm_packs_epi32(v[2], v[3]));
        return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(all, _mm_setzero_si128())) ^ 0xffffu;
    }
#endif
    for (int i = 0; i < count; i++) places |= (uint32_t)(coefficients[i] != 0) << i;
    return places;
}

TSR_HD_INLINE int tsr_cavlc_emit_block(struct tsr_cavlc_sink *sink, const int32_t *coefficients, int count, int context)
{
    uint32_t bits, places = tsr_cavlc_places(coefficients, count);
    int length;
    if (places == 0) {
        tsr_coeff_token(context, 0, 0, &bits, &length);
        tsr_cavlc_emit(sink, bits, length);
        return 0;
    }
    int32_t coefficient[16]; /* the coefficients that are not zero, last first */
    int at[16];              /* their places */
    int total = 0, ones = 0;
    for (uint32_t left = places; left != 0; total++) {
        at[total] = tsr_floor_log2(left);
        coefficient[total] = coefficients[at[total]];
        left ^= 1u << at[total];
    }
    while (ones < total && ones < 3 && (coefficient[ones] == 1 || coefficient[ones] == -1)) ones++;
    tsr_coeff_token(context, total, ones, &bits, &length);
    for (int i = 0; i < ones; i++) bits = bits << 1 | (coefficient[i] < 0);
    tsr_cavlc_emit(sink, bits, length + ones);
    int suffix_length = total > 10 && ones < 3 ? 1 : 0;
    for (int i = ones; i < total; i++) {
        const uint32_t magnitude = (uint32_t)(coefficient[i] < 0 ? -coefficient[i] : coefficient[i]);
        const uint32_t excluded = i == ones && ones < 3 ? 2u : 0u;
        assert(magnitude < TSR_COEFFICIENT_LIMIT);
        tsr_cavlc_emit_coefficient(sink, 2 * magnitude - 2 + (coefficient[i] < 0) - excluded, suffix_length);
        suffix_length = tsr_cavlc_next_suffix(suffix_length, magnitude);
    }
    if (total == count) return total;
    /* Where the zeros are takes at most 30 bits, which are joined. */
    int zeros = at[0] + 1 - total;
    uint16_t entry = TSR_AT(tsr_total_zeros_codewords)[(total - 1) * 16 + zeros];
    bits = entry & 15u;
    length = entry >> 4;
    for (int i = 0; i + 1 < total && zeros > 0; i++) {
        const int run = at[i] - at[i + 1] - 1;
        entry = TSR_AT(tsr_run_before_codewords)[((zeros < 7 ? zeros : 7) - 1) * 15 + run];
        bits = bits << (entry >> 4) | (entry & 15u);
        length += entry >> 4;
        zeros -= run;
    }
    tsr_cavlc_emit(sink, bits, length);
    return total;
}

/* Bits of a block. coefficients: count (15 or 16) coefficients in zigzag order, context: nC. */
TSR_HD uint32_t tsr_cavlc_measure(const int32_t *coefficients, int count, int context)
{
    struct tsr_cavlc_sink sink = {NULL, 0};
    tsr_cavlc_emit_block(&sink, coefficients, count, context);
    return sink.bits;
}

/* Writes a block; returns its total coefficients. */
TSR_HD_INLINE int tsr_cavlc_put(struct tsr_bit_writer *writer, const int32_t *coefficients, int count, int context)
{
    struct tsr_cavlc_sink sink = {writer, 0};
    return tsr_cavlc_emit_block(&sink, coefficients, count, context);
}

/* Look-up tables of the reader, built from the codewords. */
struct tsr_cavlc_reader {
    uint16_t token[3][16][8]; /* by leading zeros and the 3 bits after the first one: length << 8 | total << 2 | ones */
    uint8_t zeros[15][512];   /* by the next 9 bits: length << 4 | zeros */
    uint8_t run[6][8];        /* by the next 3 bits: length << 4 | run */
};

/* Enters one codeword: of table t and this many coefficients, zeros or zeros before a coefficient. */
TSR_HD void tsr_cavlc_enter_token(struct tsr_cavlc_reader *tables, int t, int place)
{
    const uint32_t entry = TSR_AT(tsr_coeff_token_codewords)[t * 68 + place];
    if (entry == 0) return;
    const int value = (int)(entry & 15u), length = (int)(entry >> 4);
    const int significant = tsr_bit_width((uint32_t)value); /* at least 1 */
    const int free_bits = 4 - significant;                  /* of the 3 after the first one */
    const int first = (value << free_bits) & 7;
    for (int i = 0; i < 1 << free_bits; i++)
        tables->token[t][length - significant][first + i] = (uint16_t)(length << 8 | place);
}

TSR_HD void tsr_cavlc_enter_zeros(struct tsr_cavlc_reader *tables, int t, int zeros)
{
    const uint32_t entry = TSR_AT(tsr_total_zeros_codewords)[t * 16 + zeros];
    const int length = (int)(entry >> 4), free_bits = 9 - length;
    for (int i = 0; length > 0 && i < 1 << free_bits; i++)
        tables->zeros[t][((entry & 15u) << free_bits) + (uint32_t)i] = (uint8_t)(length << 4 | zeros);
}

TSR_HD void tsr_cavlc_enter_run(struct tsr_cavlc_reader *tables, int t, int run)
{
    const uint32_t entry = TSR_AT(tsr_run_before_codewords)[t * 15 + run];
    const int length = (int)(entry >> 4), free_bits = 3 - length;
    for (int i = 0; length > 0 && i < 1 << free_bits; i++)
        tables->run[t][((entry & 15u) << free_bits) + (uint32_t)i] = (uint8_t)(length << 4 | run);
}

TSR_HD void tsr_cavlc_reader_init(struct tsr_cavlc_reader *tables)
{
    memset(tables, 0, sizeof *tables);
    for (int i = 0; i < 3 * 68; i++) tsr_cavlc_enter_token(tables, i / 68, i % 68);
    for (int i = 0; i < 15 * 16; i++) tsr_cavlc_enter_zeros(tables, i / 16, i % 16);
    for (int i = 0; i < 6 * 15; i++) tsr_cavlc_enter_run(tables, i / 15, i % 15);
}

/* run_before of up to 6 where more zeros are left, like a row of tsr_cavlc_reader's run. */
TSR_TABLE(uint8_t, tsr_run_of_many, 8, 0, 3 << 4 | 6, 3 << 4 | 5, 3 << 4 | 4, 3 << 4 | 3, 3 << 4 | 2, 3 << 4 | 1,
          3 << 4);

/* One coefficient; excluded: 2 where the magnitude 1 cannot be. Its magnitude, 0 where the bits are invalid. */
TSR_HD_INLINE uint32_t tsr_cavlc_get_coefficient(struct tsr_bit_reader *r, int *suffix_length, uint32_t excluded,
                                                 int32_t *coefficient)
{
    tsr_fill_window(r);
    const uint32_t next = (uint32_t)(r->window >> 32);
    const int length = *suffix_length;
    if (next >> (31 - TSR_CAVLC_PREFIX_LIMIT) == 0) return 0;
    const int prefix = 31 - tsr_floor_log2(next);
    uint32_t code = (uint32_t)tsr_min(15, prefix) << length;
    if (prefix < 14) { /* it is in next as a whole */
        code += next << (prefix + 1) >> 1 >> (31 - length);
        tsr_drop_bits(r, prefix + 1 + length);
    } else {
        const int suffix_bits = prefix >= 15 ? prefix - 3 : length == 0 ? 4 : length;
        tsr_drop_bits(r, prefix + 1);
        code += suffix_bits ? (uint32_t)(r->window >> (64 - suffix_bits)) : 0u; /* both in 50 bits */
        tsr_drop_bits(r, suffix_bits);
        if (prefix >= 15 && length == 0) code += 15;
        if (prefix >= 16) code += (1u << (prefix - 3)) - 4096u;
    }
    code += excluded;
    const uint32_t magnitude = (code >> 1) + 1u;
    const int32_t negative = -(int32_t)(code & 1u);
    *coefficient = ((int32_t)magnitude ^ negative) - negative;
    *suffix_length = tsr_cavlc_next_suffix(length, magnitude);
    return magnitude;
}

/* Reads coeff_token: total coefficients and trailing ones. False where it is not a valid one. */
TSR_HD_INLINE bool tsr_cavlc_get_token(struct tsr_bit_reader *r, const struct tsr_cavlc_reader *tables, int context,
                                       int *total, int *ones)
{
    const int table = tsr_coeff_token_table(context);
    const uint32_t next = (uint32_t)(r->window >> 32);
    if (table == 3) {
        const uint32_t fixed = next >> 26;
        tsr_drop_bits(r, 6);
        *total = fixed == 3 ? 0 : (int)(fixed >> 2) + 1;
        *ones = fixed == 3 ? 0 : (int)(fixed & 3u);
        return *ones <= *total;
    }
    if (next >> 16 == 0) return false;
    const int leading = 31 - tsr_floor_log2(next);
    const uint32_t entry = tables->token[table][leading][next >> (28 - leading) & 7u];
    if (entry == 0) return false;
    tsr_drop_bits(r, (int)(entry >> 8));
    *total = (int)(entry >> 2) & 31;
    *ones = (int)entry & 3;
    return true;
}

/* Reads where the zeros are: from the highest on, each coefficient goes up by the zeros that are left, until none are.
 * last: the highest of total coefficients, which lie beside each other. */
TSR_HD_INLINE bool tsr_cavlc_get_zeros(struct tsr_bit_reader *r, const struct tsr_cavlc_reader *tables, int32_t *last,
                                       int total, int count)
{
    tsr_fill_window(r); /* for all zeros: at most 9 bits, and 3 for each coefficient but for one of 11 */
    uint32_t entry = tables->zeros[total - 1][r->window >> 55];
    if (entry == 0) return false;
    tsr_drop_bits(r, (int)(entry >> 4));
    int zeros = (int)(entry & 15u);
    if (zeros > count - total) return false;
    for (int i = 0; zeros > 0; i++) {
        const int32_t coefficient = last[-i];
        last[-i] = 0;
        last[zeros - i] = coefficient;
        if (i + 1 == total) break;
        const uint8_t *runs = zeros > 6 ? TSR_AT(tsr_run_of_many) : tables->run[zeros - 1];
        entry = runs[r->window >> 61];
        int run = (int)(entry & 15u), length = (int)(entry >> 4);
        if (entry == 0) {
            const uint32_t bits = (uint32_t)(r->window >> 53); /* 11 */
            if (zeros <= 6 || bits == 0) return false;
            run = 14 - tsr_floor_log2(bits);
            length = run - 3;
            if (run > zeros) return false;
        }
        tsr_drop_bits(r, length);
        zeros -= run;
    }
    return true;
}

/* Reads a block into coefficients[count], magnitudes below TSR_COEFFICIENT_LIMIT; returns its total coefficients, -1
 * where the bits are not a valid block of this size. */
TSR_HD_INLINE int tsr_cavlc_get(struct tsr_bit_reader *r, const struct tsr_cavlc_reader *tables, int32_t *coefficients,
                                int count, int context)
{
    int total, ones;
    for (int i = 0; i < count; i++) coefficients[i] = 0;
    tsr_fill_window(r);
    if (!tsr_cavlc_get_token(r, tables, context, &total, &ones) || total > count) return -1;
    if (total == 0) return tsr_dropped_too_much(r) ? -1 : 0;

    /* Coefficients go to the places that they would have without zeros before them. */
    int32_t *last = coefficients + total - 1;
    const uint32_t signs = (uint32_t)(r->window >> 32);
    for (int i = 2; i >= 0; i--) /* all three, since ones cannot be foreseen: what is not one is written over */
        last[-tsr_min(i, total - 1)] = 1 - 2 * (int32_t)(signs >> (31 - i) & 1u);
    tsr_drop_bits(r, ones);
    int suffix_length = total > 10 && ones < 3 ? 1 : 0;
    uint32_t excluded = ones < 3 ? 2u : 0u;
    for (int i = ones; i < total; i++, excluded = 0)
        if (tsr_cavlc_get_coefficient(r, &suffix_length, excluded, &last[-i]) - 1u >= TSR_COEFFICIENT_LIMIT - 1u)
            return -1;
    if (total < count && !tsr_cavlc_get_zeros(r, tables, last, total, count)) return -1;
    return tsr_dropped_too_much(r) ? -1 : total;
}

#endif
