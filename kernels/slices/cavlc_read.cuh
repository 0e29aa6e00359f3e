/* CAVLC blocks read by one thread each: the device form of entropy/cavlc.h's get, with its look-up tables and the
 * coefficients at work in shared memory, and a reader that takes words. tests/equality/test_cuda_decode.c holds both
 * forms equal. */
#ifndef TSR_KERNELS_SLICES_CAVLC_READ_CUH
#define TSR_KERNELS_SLICES_CAVLC_READ_CUH

#include "word_reader.cuh"
#include "entropy/cavlc.h"

/* Fills the tables, which are shared, by all threads of the block; a barrier follows. */
static __device__ void tsr_cavlc_fill_reader(tsr_cavlc_reader &tables, unsigned thread, unsigned threads)
{
    static_assert(sizeof tables % 2 == 0 && alignof(tsr_cavlc_reader) == 2, "cleared by halves of words");
    for (unsigned i = thread; i < sizeof tables / 2; i += threads) reinterpret_cast<uint16_t *>(&tables)[i] = 0;
    __syncthreads();
    for (unsigned i = thread; i < 3 * 68; i += threads) tsr_cavlc_enter_token(&tables, (int)(i / 68), (int)(i % 68));
    for (unsigned i = thread; i < 15 * 16; i += threads) tsr_cavlc_enter_zeros(&tables, (int)(i / 16), (int)(i % 16));
    for (unsigned i = thread; i < 6 * 15; i += threads) tsr_cavlc_enter_run(&tables, (int)(i / 15), (int)(i % 15));
}

/* coeff_token: total coefficients, trailing ones in *ones; -1 for none. */
template <typename Reader>
static __device__ __forceinline__ int tsr_cavlc_read_token(Reader &r, const tsr_cavlc_reader &tables, int context,
                                                           uint32_t *ones)
{
    const int table = tsr_coeff_token_table(context);
    if (table == 3) {
        const uint32_t fixed = r.get(6);
        *ones = fixed == 3u ? 0u : fixed & 3u;
        const int total = fixed == 3u ? 0 : (int)(fixed >> 2) + 1;
        return (int)*ones > total ? -1 : total;
    }
    const uint32_t leading = (uint32_t)__clz((int)r.top());
    if (leading > 15u) return -1;
    const uint32_t entry = tables.token[table][leading][r.top() >> (28u - leading) & 7u];
    if (entry == 0) return -1;
    r.skip(entry >> 8);
    *ones = entry & 3u;
    return (int)(entry >> 2 & 31u);
}

/* One coefficient; its magnitude, 0 for none. excluded: 2 where a magnitude of 1 cannot be. */
template <typename Reader>
static __device__ __forceinline__ uint32_t tsr_cavlc_read_coefficient(Reader &r, uint32_t *suffix, uint32_t excluded,
                                                                      int32_t *coefficient)
{
    const uint32_t prefix = (uint32_t)__clz((int)r.top());
    if (prefix > TSR_CAVLC_PREFIX_LIMIT) return 0;
    uint32_t code;
    if (prefix < 14u) { /* as a whole in the next 32 bits */
        code = (prefix << *suffix) + (r.top() << (prefix + 1u) >> 1 >> (31u - *suffix));
        r.skip(prefix + 1u + *suffix);
    } else {
        r.skip(prefix + 1u);
        code = (tsr_min(15, (int)prefix) << *suffix) + r.get(prefix >= 15u ? prefix - 3u : *suffix == 0 ? 4u : *suffix);
        if (prefix >= 15u && *suffix == 0) code += 15u;
        if (prefix >= 16u) code += (1u << (prefix - 3u)) - 4096u;
    }
    code += excluded;
    const uint32_t magnitude = (code >> 1) + 1u;
    *suffix = (uint32_t)tsr_cavlc_next_suffix((int)*suffix, magnitude);
    *coefficient = code & 1u ? -(int32_t)magnitude : (int32_t)magnitude;
    return magnitude;
}

/* run_before; -1 for none. */
template <typename Reader>
static __device__ __forceinline__ int tsr_cavlc_read_run(Reader &r, const tsr_cavlc_reader &tables, int zeros)
{
    if (zeros > 6) {
        const uint32_t leading = (uint32_t)__clz((int)r.top());
        if (leading > 10u) return -1;
        const int run = leading < 3u ? 7 - (int)(r.top() >> 29) : (int)leading + 4;
        r.skip(leading < 3u ? 3u : leading + 1u);
        return run;
    }
    const uint32_t entry = tables.run[zeros - 1][r.top() >> 29];
    r.skip(entry >> 4);
    return entry == 0 ? -1 : (int)(entry & 15u);
}

/* Reads a block of count places into s; its total coefficients, -1 where the string holds none, or a coefficient beyond
 * most. s.block is written unless the total is 0. *seen: bits of all magnitudes are added. */
template <unsigned THREADS, typename Coefficient>
static __device__ __forceinline__ int tsr_cavlc_read_block(tsr_word_reader<THREADS> &r, const tsr_cavlc_reader &tables,
                                                           Coefficient (&coefficients)[16][THREADS],
                                                           tsr_raster_blocks<THREADS, Coefficient> &block, int count,
                                                           int context, uint32_t most, uint32_t *seen)
{
    const unsigned thread = threadIdx.x;
    uint32_t ones = 0;
    r.prepare();
    const int total = tsr_cavlc_read_token(r, tables, context, &ones);
    if (total < 0 || total > count) return -1;
    if (total == 0) return r.overrun() ? -1 : 0;
    block.clear(thread);
    const uint32_t signs = r.top();
    r.skip(ones);
    for (uint32_t i = 0; i < ones; i++) coefficients[i][thread] = signs << i >> 31 ? (Coefficient)-1 : (Coefficient)1;
    uint32_t suffix = total > 10 && ones < 3u ? 1u : 0u, excluded = ones < 3u ? 2u : 0u;
    for (int i = (int)ones; i < total; i++) {
        int32_t coefficient;
        const uint32_t magnitude = tsr_cavlc_read_coefficient(r, &suffix, excluded, &coefficient);
        if (magnitude - 1u >= most) return -1;
        *seen |= magnitude;
        coefficients[i][thread] = (Coefficient)coefficient;
        excluded = 0;
    }
    int zeros = 0;
    if (total < count) {
        const uint32_t entry = tables.zeros[total - 1][r.top() >> 23];
        r.skip(entry >> 4);
        zeros = (int)(entry & 15u);
        if (entry == 0 || zeros > count - total) return -1;
    }
    int place = total + zeros - 1 + 16 - count;
    for (int i = 0;; i++) {
        block.set(thread, place, coefficients[i][thread]);
        if (i + 1 == total) break;
        const int run = zeros > 0 ? tsr_cavlc_read_run(r, tables, zeros) : 0;
        if (run < 0 || run > zeros) return -1;
        zeros -= run;
        place -= run + 1;
    }
    return r.overrun() ? -1 : total;
}

#endif
