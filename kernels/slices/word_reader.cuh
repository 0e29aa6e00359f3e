/* What readers of blocks on the device share: a string of bits, taken by words, and the coefficients of the block at
 * work. */
#ifndef TSR_KERNELS_SLICES_WORD_READER_CUH
#define TSR_KERNELS_SLICES_WORD_READER_CUH

#include "kernels/machine/device.cuh"

#include <string.h>

#include "transform/block/blocks.h"

/* Words of each thread's string, in shared memory: free of bank conflicts. */
enum { TSR_RING_WORDS = 8 };
template <unsigned THREADS> struct tsr_word_ring {
    uint32_t word[TSR_RING_WORDS][THREADS];
};

/* Reads a string of bytes as tsr_bit_reader does (entropy/bits.h): zeros after its end, and the position tells. Four
 * words are asked for at a time, 16 bytes at a multiple of 16, up to those that hold the last byte; they come while a
 * block is decoded, and wait in the ring. (With a word held ahead in a register a warp waits for memory at almost every
 * symbol: some lane always asks for one, and the register is the warp's.) */
template <unsigned THREADS> struct tsr_word_reader {
    tsr_word_ring<THREADS> &ring;
    const uint4 *from;      /* the next to be asked for */
    uint4 coming;           /* the last that were asked for */
    uint32_t asked, stored; /* words asked for, of which all or all but four are in the ring, or were */
    uint32_t taken;         /* words that have entered the window */
    uint32_t last;          /* word that holds the last byte; words count from the first that is asked for */
    uint32_t last_mask;     /* its bytes */
    uint64_t window;        /* the next bits, left-aligned */
    uint32_t held;          /* how many of them, with those after the end; more than 32 between calls */
    uint32_t start, end;    /* of the string, in bits from the first word on */

    __device__ __forceinline__ explicit tsr_word_reader(tsr_word_ring<THREADS> &own_ring) : ring(own_ring)
    {
    }
    __device__ __forceinline__ void ask()
    {
        coming = asked <= last ? __ldcg(from++) : make_uint4(0, 0, 0, 0);
        asked += 4;
    }
    __device__ __forceinline__ void store()
    {
        const uint32_t at = stored % TSR_RING_WORDS;
        ring.word[at][threadIdx.x] = coming.x;
        ring.word[at + 1][threadIdx.x] = coming.y;
        ring.word[at + 2][threadIdx.x] = coming.z;
        ring.word[at + 3][threadIdx.x] = coming.w;
        stored += 4;
    }
    /* To be called before each block. */
    __device__ __forceinline__ void prepare()
    {
        if (asked != stored) store(); /* they were asked for where there was room */
        if (stored - taken <= TSR_RING_WORDS - 4) ask();
    }
    __device__ __forceinline__ void refill()
    {
        if (held > 32u) return;
        if (taken == stored) {
            if (asked == stored) ask();
            store();
        }
        uint32_t word = tsr_big_endian(ring.word[taken % TSR_RING_WORDS][threadIdx.x]);
        if (taken >= last) word = taken == last ? word & last_mask : 0u;
        taken++;
        window |= (uint64_t)word << (32u - held);
        held += 32u;
    }
    /* size: below 2^29 - 16 */
    __device__ __forceinline__ void begin(const uint8_t *bytes, uint32_t size)
    {
        const uint32_t skipped = (uint32_t)(reinterpret_cast<uintptr_t>(bytes) & 15u), behind = skipped + size;
        from = reinterpret_cast<const uint4 *>(bytes - skipped);
        last = (behind - 1u) / 4u;
        last_mask = behind % 4u ? ~0u << (32u - 8u * (behind % 4u)) : ~0u;
        start = 8u * skipped;
        end = start + 8u * size;
        window = 0;
        held = 0;
        asked = stored = 0;
        taken = skipped / 4u;
        if (size == 0) { /* nothing may be asked for */
            last = 0;
            last_mask = 0;
            asked = stored = 4;
        } else {
            ask();
            store();
        }
        refill();
        refill();
        skip(start % 32u);
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
        return 32u * taken - held - start;
    }
    __device__ __forceinline__ uint32_t unread() const /* bits of the string; wraps after its end */
    {
        return end - (32u * taken - held);
    }
    __device__ __forceinline__ bool overrun() const
    {
        return 32u * taken - held > end;
    }
    /* As tsr_bits_ended: all but the padding is read, and that is zero, as is what lies after the end. */
    __device__ __forceinline__ bool ended() const
    {
        return unread() < 8u && top() >> 24 == 0;
    }
};

/* A block's coefficients of each thread in raster order, in shared memory, two a word where they are narrow: free of
 * bank conflicts. */
template <unsigned THREADS, typename Coefficient> struct tsr_raster_blocks {
    enum { PER_WORD = 4 / sizeof(Coefficient), WORDS = TSR_BLOCK_SAMPLES / PER_WORD };
    uint32_t word[WORDS][THREADS];

    __device__ __forceinline__ void clear(unsigned thread)
    {
#pragma unroll
        for (int w = 0; w < WORDS; w++) word[w][thread] = 0;
    }
    /* place: of the zigzag scan */
    __device__ __forceinline__ void set(unsigned thread, int place, int32_t coefficient)
    {
        const uint32_t raster = (uint32_t)(0xfeb7adc963258410u >> (4 * place)) & 15u;
        const Coefficient own = (Coefficient)coefficient;
        memcpy(reinterpret_cast<char *>(&word[raster / PER_WORD][thread]) + raster % PER_WORD * sizeof own, &own,
               sizeof own);
    }
    __device__ __forceinline__ int32_t dc(unsigned thread) const
    {
        return sizeof(Coefficient) == 2 ? (int32_t)(int16_t)(word[0][thread] & 0xffffu) : (int32_t)word[0][thread];
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
