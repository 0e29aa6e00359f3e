/* Products of small matrices of bytes by a warp: the tensor cores' mma.m16n8k32, exact in 32 bits modulo 2^32. Numbers
 * of 16 bits are split into a signed high and an unsigned low byte, and four products put together again.
 *
 * a has 16 rows of 32 columns, b 32 rows of 8 columns. Let g = lane / 4, t = lane % 4. A lane holds of a row g (a0)
 * and row g + 8 (a1), columns 4 t .. 4 t + 3, a byte each, and columns 16 after them (a2, a3); of b column g, rows
 * 4 t .. 4 t + 3 (b0) and 16 below (b1); of c columns 2 t and 2 t + 1 of row g (c[0], c[1]) and of row g + 8 (c[2],
 * c[3]). */
#ifndef TSR_KERNELS_TRAINING_BYTE_PRODUCTS_CUH
#define TSR_KERNELS_TRAINING_BYTE_PRODUCTS_CUH

#include "kernels/machine/device.cuh"

static __device__ __forceinline__ int32_t tsr_byte_of(uint32_t word, int i, bool is_signed)
{
    const uint32_t byte = word >> (8 * i) & 255u;
    return is_signed ? (int32_t)(int8_t)byte : (int32_t)byte;
}

/* c = before + a x b; c and before may be the same. */
template <bool A_SIGNED, bool B_SIGNED>
static __device__ __forceinline__ void tsr_add_products(uint32_t c[4], const uint32_t before[4], uint32_t a0,
                                                        uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1)
{
#if defined(__CUDA_ARCH__)
#define TSR_MMA(a_type, b_type)                                                                          \
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32." a_type "." b_type                              \
                 ".s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"              \
                 : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3])                                        \
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "r"(before[0]), "r"(before[1]), \
                   "r"(before[2]), "r"(before[3]))
    if (A_SIGNED && B_SIGNED)
        TSR_MMA("s8", "s8");
    else if (A_SIGNED)
        TSR_MMA("s8", "u8");
    else if (B_SIGNED)
        TSR_MMA("u8", "s8");
    else
        TSR_MMA("u8", "u8");
#undef TSR_MMA
#elif defined(TSR_CUDA_EMULATED) /* all lanes' words at once: shuffles take their time */
    const int lane = (int)(threadIdx.x % TSR_WARP), g = lane / 4, t = lane % 4;
    const uint32_t a[2][2] = {{a0, a1}, {a2, a3}}, b[2] = {b0, b1};
    for (int i = 0; i < 4; i++) c[i] = before[i];
    for (int half = 0; half < 2; half++) {
        uint64_t all[TSR_WARP];
        memcpy(all, tsr_emulated_exchange(TSR_FULL_WARP, (uint64_t)a[half][1] << 32 | a[half][0]), sizeof all);
        const uint64_t *const all_b = tsr_emulated_exchange(TSR_FULL_WARP, b[half]);
        for (int i = 0; i < 16; i++) {
            const uint64_t rows = all[4 * g + i / 4];
            const int32_t x0 = tsr_byte_of((uint32_t)rows, i % 4, A_SIGNED),
                          x1 = tsr_byte_of((uint32_t)(rows >> 32), i % 4, A_SIGNED);
            const int32_t y0 = tsr_byte_of((uint32_t)all_b[8 * t + i / 4], i % 4, B_SIGNED),
                          y1 = tsr_byte_of((uint32_t)all_b[8 * t + 4 + i / 4], i % 4, B_SIGNED);
            c[0] += (uint32_t)(x0 * y0);
            c[1] += (uint32_t)(x0 * y1);
            c[2] += (uint32_t)(x1 * y0);
            c[3] += (uint32_t)(x1 * y1);
        }
    }
#endif
}

template <bool A_SIGNED, bool B_SIGNED>
static __device__ __forceinline__ void tsr_multiply_bytes(uint32_t c[4], uint32_t a0, uint32_t a1, uint32_t a2,
                                                          uint32_t a3, uint32_t b0, uint32_t b1)
{
    tsr_add_products<A_SIGNED, B_SIGNED>(c, c, a0, a1, a2, a3, b0, b1);
}

/* The same, of sums that begin with first. */
template <bool A_SIGNED, bool B_SIGNED>
static __device__ __forceinline__ void tsr_begin_products(uint32_t c[4], uint32_t first, uint32_t a0, uint32_t a1,
                                                          uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1)
{
    const uint32_t before[4] = {first, first, first, first};
    tsr_add_products<A_SIGNED, B_SIGNED>(c, before, a0, a1, a2, a3, b0, b1);
}

/* Four numbers of 16 bits as their low and high bytes. */
static __device__ __forceinline__ void tsr_split_bytes(const int32_t x[4], uint32_t *low, uint32_t *high)
{
    const uint32_t first = __byte_perm((uint32_t)x[0], (uint32_t)x[1], 0x5140), /* l0 l1 h0 h1 */
        second = __byte_perm((uint32_t)x[2], (uint32_t)x[3], 0x5140);
    *low = __byte_perm(first, second, 0x5410);
    *high = __byte_perm(first, second, 0x7632);
}

/* The sums of products of numbers from those of their bytes: high x high, both crosses, low x low. */
static __device__ __forceinline__ int32_t tsr_join_products(uint32_t high, uint32_t cross, uint32_t low)
{
    return (int32_t)((high << 16) + (cross << 8) + low);
}

#endif
