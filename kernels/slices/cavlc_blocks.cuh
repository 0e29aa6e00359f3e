/* CAVLC of one block by one thread: the device form of entropy/cavlc.h's put, for kernels that hold a block's
 * coefficients in shared memory. The bits are the definition's (tests/papers hold them equal); the way to them is
 * another: places of coefficients come from a mask by clz, coefficient codewords are computed with a branch for escapes
 * alone, the codewords of total_zeros and all run_before are joined in one register, coeff_token and the trailing ones'
 * signs in another. */
#ifndef TSR_KERNELS_SLICES_CAVLC_BLOCKS_CUH
#define TSR_KERNELS_SLICES_CAVLC_BLOCKS_CUH

#include "block_coder.cuh"
#include "entropy/cavlc.h"

/* Codewords in shared memory. */
struct tsr_cavlc_tables {
    uint16_t token[4 * 68];  /* length << 8 | bits; place: table * 68 + total * 4 + ones */
    uint16_t zeros[15 * 16]; /* length << 8 | bits; place: (total - 1) * 16 + zeros */
    uint8_t run[8 * 16];     /* length << 4 | bits; place: min(zeros left, 7) * 16 + run */

    /* By all threads of the block; a barrier follows. */
    __device__ void fill(unsigned thread, unsigned threads)
    {
        for (unsigned i = thread; i < 4 * 68; i += threads) {
            const int total = (int)(i % 68u / 4u), ones = (int)(i % 4u), context = i < 3 * 68 ? 2 * (int)(i / 68u) : 8;
            uint32_t bits = 0;
            int length = 0;
            if (ones <= total) tsr_coeff_token(context, total, ones, &bits, &length);
            token[i] = (uint16_t)((uint32_t)length << 8 | bits);
        }
        for (unsigned i = thread; i < 15 * 16; i += threads) {
            const uint32_t entry = TSR_AT(tsr_total_zeros_codewords)[i];
            zeros[i] = (uint16_t)((entry >> 4) << 8 | (entry & 15u));
        }
        for (unsigned i = thread; i < 7 * 16; i += threads)
            run[16 + i] =
                i % 16u < 15u ? (uint8_t)TSR_AT(tsr_run_before_codewords)[i / 16u * 15u + i % 16u] : (uint8_t)0;
    }
};

/* Codeword of a coefficient code under a suffix length (tsr_cavlc_emit_coefficient): its bits, at most 32 significant
 * ones, and its length. WIDE: level_prefix may pass 15. */
template <bool WIDE>
static __device__ __forceinline__ void tsr_coefficient_codeword(uint32_t code, uint32_t suffix, uint32_t *bits,
                                                                uint32_t *length)
{
    const uint32_t stop = 1u << suffix;
    *bits = stop | (code & (stop - 1u));
    *length = (code >> suffix) + 1u + suffix;
    if (code < (suffix == 0 ? 14u : 15u << suffix)) return;
    if (suffix == 0 && code < 30u) {
        *bits = 16u | (code - 14u);
        *length = 19;
        return;
    }
    /* Prefix p's stop bit and its p - 3 bits are the number 2^(p-3) + rest: what is left of the code, plus 4096. */
    *bits = code - (suffix == 0 ? 30u : 15u << suffix) + 4096u;
    *length = WIDE ? 2u * tsr_highest_bit(*bits) + 4u : 28u;
}

/* Writes where the zeros are: total_zeros and the runs before the coefficients, total of them. */
template <unsigned THREADS>
static __device__ __forceinline__ void tsr_write_zeros(tsr_code_writer<THREADS> &writer, const tsr_cavlc_tables &tables,
                                                       uint32_t mask, uint32_t total, uint32_t count)
{
    uint32_t place = tsr_highest_bit(mask), zeros = place + 1u - (16u - count) - total;
    uint32_t entry = tables.zeros[16u * (total - 1u) + zeros];
    uint32_t bits = entry & 255u, length = entry >> 8; /* with all run_before, at most 30 bits: every mask was tried */
    uint32_t rest = mask ^ 1u << place;
    while (zeros != 0 && rest != 0) {
        const uint32_t next = tsr_highest_bit(rest), run = place - next - 1u;
        rest ^= 1u << next;
        place = next;
        entry = tables.run[16u * (zeros < 7u ? zeros : 7u) + run];
        bits = bits << (entry >> 4) | (entry & 15u);
        length += entry >> 4;
        zeros -= run;
    }
    writer.put(bits, length);
}

/* Writes a block. mask: bit p is set where the coefficient at place p of the scan is not 0; count: 16, or 15 for a
 * block without the scan's place 0, whose bit is clear then. coefficient_at(p) gives the coefficient at place p, 0..15;
 * it is asked for some places where mask has no bit as well. */
template <bool WIDE, unsigned THREADS, typename CoefficientAt>
static __device__ __forceinline__ void tsr_cavlc_write(tsr_code_writer<THREADS> &writer, const tsr_cavlc_tables &tables,
                                                       uint32_t mask, uint32_t count, int context,
                                                       CoefficientAt coefficient_at)
{
    const uint32_t total = (uint32_t)__popc(mask);
    const uint16_t *token = tables.token + 68 * tsr_coeff_token_table(context) + 4u * total;
    if (total == 0) {
        writer.put(*token & 255u, *token >> 8);
        return;
    }
    uint32_t rest = mask, ones = 0, signs = 0;
    bool trailing = true;
#pragma unroll
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t place = tsr_highest_bit(rest) & 15u;
        const int32_t coefficient = coefficient_at(place);
        /* +1 or -1; the square of no other 24-bit coefficient is 1 modulo 2^32 */
        trailing = trailing && rest != 0 && (uint32_t)coefficient * (uint32_t)coefficient == 1u;
        if (trailing) {
            ones++;
            signs = 2u * signs + ((uint32_t)coefficient >> 31);
            rest ^= 1u << place;
        }
    }
    writer.put((token[ones] & 255u) << ones | signs, (token[ones] >> 8) + ones);

    if (rest != 0) {
        const uint32_t place = tsr_highest_bit(rest);
        const int32_t coefficient = coefficient_at(place);
        const uint32_t code =
            2u * (uint32_t)(coefficient < 0 ? -coefficient : coefficient) - 2u + ((uint32_t)coefficient >> 31);
        uint32_t bits, length;
        tsr_coefficient_codeword<WIDE>(code - (ones < 3u ? 2u : 0u), total > 10u && ones < 3u ? 1u : 0u, &bits,
                                       &length);
        if (WIDE)
            writer.put_wide(bits, length);
        else
            writer.put(bits, length);
        rest ^= 1u << place;
        uint32_t suffix = code >= 6u ? 2u : 1u;
        while (rest != 0) {
            const uint32_t next = tsr_highest_bit(rest);
            rest ^= 1u << next;
            const int32_t value = coefficient_at(next);
            const uint32_t own = 2u * (uint32_t)(value < 0 ? -value : value) - 2u + ((uint32_t)value >> 31);
            const uint32_t prefix = own >> suffix, stop = 1u << suffix;
            bits = stop | (own & (stop - 1u));
            length = prefix + 1u + suffix;
            if (prefix >= 15u) {
                bits = own + 4096u - (15u << suffix); /* see tsr_coefficient_codeword */
                length = WIDE ? 2u * tsr_highest_bit(bits) + 4u : 28u;
                if (WIDE && length > 32u) {
                    writer.put(0, length - 32u);
                    length = 32u;
                }
            }
            writer.put(bits, length);
            if (prefix >= 3u && suffix < 6u) suffix++; /* the magnitude is above 3 << (suffix - 1) */
        }
    }

    if (total != count) tsr_write_zeros(writer, tables, mask, total, count);
}

/* ---- 16-bit coefficients in raster order, as kernels/papers/cavlc/cavlc_frames.h has them
 * ---------------------------------------
 */

/* The words of a block, two coefficients each, brought into the scan's order. */
static __device__ __forceinline__ void tsr_zigzag_pairs(uint4 low, uint4 high, uint32_t pairs[8])
{
    pairs[0] = low.x;                               /*  0  1 */
    pairs[1] = __byte_perm(low.z, high.x, 0x5410);  /*  4  8 */
    pairs[2] = __byte_perm(low.z, low.y, 0x5432);   /*  5  2 */
    pairs[3] = __byte_perm(low.y, low.w, 0x5432);   /*  3  6 */
    pairs[4] = __byte_perm(high.x, high.z, 0x5432); /*  9 12 */
    pairs[5] = __byte_perm(high.z, high.y, 0x5432); /* 13 10 */
    pairs[6] = __byte_perm(low.w, high.y, 0x7632);  /*  7 11 */
    pairs[7] = high.w;                              /* 14 15 */
}

/* 0x8000 in each half of a word that is not 0. */
static __device__ __forceinline__ uint32_t tsr_halves_set(uint32_t pair)
{
    return (((pair & 0x7fff7fffu) + 0x7fff7fffu) | pair) & 0x80008000u;
}

/* Bit p: the coefficient at place p of the scan is not 0. */
static __device__ __forceinline__ uint32_t tsr_nonzero_mask(const uint32_t pairs[8])
{
    uint32_t both = 0; /* even places in the low half, odd ones in the high half, at their place's even bit */
#pragma unroll
    for (int k = 0; k < 8; k++) both |= tsr_halves_set(pairs[k]) >> (15 - 2 * k);
    return (both & 0x5555u) | (both >> 15 & 0xaaaau);
}

/* Coefficients of half a block that are not 0. */
static __device__ __forceinline__ uint32_t tsr_count_half(uint4 half)
{
    const uint32_t flags = tsr_halves_set(half.x) >> 3 | tsr_halves_set(half.y) >> 2 | tsr_halves_set(half.z) >> 1 |
                           tsr_halves_set(half.w);
    return (uint32_t)__popc(flags);
}

#endif
