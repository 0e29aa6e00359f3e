/* What readers of blocks on the device share: a string of bits taken by words, and the levels of a block at work. */
#ifndef TSR_KERNELS_WORD_READER_CUH
#define TSR_KERNELS_WORD_READER_CUH

#include "device.cuh"

#include "../transform/blocks.h"

/* Reads a string of bytes as tsr_bit_reader does (entropy/bits.h): zeros behind its end, and the position tells. Whole
 * words are read, up to the one that holds the last byte. One word is asked for ahead, so that a thread waits for
 * memory only if that takes longer than it takes to decode 32 bits. */
struct tsr_word_reader {
    const uint32_t *words; /* the next to be asked for */
    uint32_t left;         /* words to be asked for */
    uint32_t last_mask;    /* of the last word */
    uint32_t ahead;        /* the word behind the window */
    uint64_t window;       /* the next bits, left-aligned */
    uint32_t held;         /* how many of them, with those behind the end; more than 32 between calls */
    uint32_t loads;        /* words that have entered the window */
    uint32_t start, end;   /* of the string, in bits from its first word on */

    __device__ __forceinline__ uint32_t fetch()
    {
        if (left == 0) return 0;
        uint32_t word = tsr_big_endian(__ldg(words++));
        if (--left == 0) word &= last_mask;
        return word;
    }
    __device__ __forceinline__ void refill()
    {
        if (held > 32u) return;
        window |= (uint64_t)ahead << (32u - held);
        held += 32u;
        loads++;
        ahead = fetch();
    }
    /* size: below 2^29 - 4 */
    __device__ __forceinline__ void begin(const uint8_t *bytes, uint32_t size)
    {
        const uint32_t skipped = (uint32_t)(reinterpret_cast<uintptr_t>(bytes) & 3u), behind = (skipped + size) & 3u;
        words = reinterpret_cast<const uint32_t *>(bytes - skipped);
        left = size == 0 ? 0u : (skipped + size + 3u) / 4u;
        last_mask = behind ? ~0u << (32u - 8u * behind) : ~0u;
        start = 8u * skipped;
        end = start + 8u * size;
        window = 0;
        held = 0;
        loads = 0;
        ahead = fetch();
        refill();
        refill();
        skip(start);
    }
    __device__ __forceinline__ uint32_t top() const /* the next 32 bits */
    {
        return (uint32_t)(window >> 32);
    }
    __device__ __forceinline__ void skip(uint32_t bits) /* 0..32 */
    {
        window <<= bits;
        held -= bits;
        refill();
    }
    __device__ __forceinline__ uint32_t get(uint32_t bits) /* 0..31 */
    {
        const uint32_t value = top() >> 1 >> (31u - bits);
        skip(bits);
        return value;
    }
    __device__ __forceinline__ uint32_t position() const /* bits read */
    {
        return 32u * loads - held - start;
    }
    __device__ __forceinline__ bool overrun() const
    {
        return 32u * loads - held > end;
    }
    /* Likewise as tsr_bits_ended. */
    __device__ __forceinline__ bool ended() const
    {
        const uint32_t unread = end - (32u * loads - held);
        return unread < 8u && top() >> 24 == 0; /* behind the end are zeros */
    }
};

/* A block's levels of each thread in raster order, in shared memory, two a word where they are narrow: free of bank
 * conflicts. */
template <unsigned THREADS, typename Level> struct tsr_raster_blocks {
    enum { PER_WORD = 4 / sizeof(Level), WORDS = TSR_BLOCK_SAMPLES / PER_WORD };
    uint32_t word[WORDS][THREADS];

    __device__ __forceinline__ void clear(unsigned thread)
    {
#pragma unroll
        for (int w = 0; w < WORDS; w++) word[w][thread] = 0;
    }
    /* place: of the zigzag scan */
    __device__ __forceinline__ void set(unsigned thread, int place, int32_t level)
    {
        const uint32_t raster = (uint32_t)(0xfeb7adc963258410u >> (4 * place)) & 15u;
        reinterpret_cast<Level *>(&word[raster / PER_WORD][thread])[raster % PER_WORD] = (Level)level;
    }
    __device__ __forceinline__ int32_t dc(unsigned thread) const
    {
        return *reinterpret_cast<const Level *>(&word[0][thread]);
    }
    __device__ __forceinline__ void store(unsigned thread, uint32_t *to) const
    {
#pragma unroll
        for (int w = 0; w < WORDS; w += 4)
            reinterpret_cast<uint4 *>(to)[w / 4] =
                make_uint4(word[w][thread], word[w + 1][thread], word[w + 2][thread], word[w + 3][thread]);
    }
    static __device__ __forceinline__ void store_zeros(uint32_t *to)
    {
#pragma unroll
        for (int w = 0; w < WORDS; w += 4) reinterpret_cast<uint4 *>(to)[w / 4] = make_uint4(0, 0, 0, 0);
    }
};

#endif
