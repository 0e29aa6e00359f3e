/* The CUDA C++ language on host threads: see cuda_runtime_api.h. A thread of a block is a fiber. A block is an OS
 * thread, so blocks really run at the same time. Warps' collectives and barriers wait for their threads. Shared memory
 * belongs to the block's OS thread; dynamic shared memory is filled with garbage before each block. */
#ifndef TSR_EMULATION_CUDA_RUNTIME_H
#define TSR_EMULATION_CUDA_RUNTIME_H

#include <algorithm>
#include <cstring>
#include <functional>

#include "cuda_runtime_api.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
/* AddressSanitizer checks static variables, but not those of threads. So with it, one block runs at a time. */
#if defined(__SANITIZE_ADDRESS__)
#define __shared__ static
#else
#define __shared__ static thread_local
#endif
#define __constant__
#define __launch_bounds__(...)
#define __grid_constant__
#define __restrict__ __restrict
#define __align__(n) __attribute__((aligned(n)))

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
    {
    }
};
struct uint3 {
    unsigned x, y, z;
};
#define TSR_EMULATION_VECTORS(type, name, align)                         \
    struct __attribute__((aligned(align))) name##2                       \
    {                                                                    \
        type x, y;                                                       \
    };                                                                   \
    struct __attribute__((aligned(2 * align))) name##4                   \
    {                                                                    \
        type x, y, z, w;                                                 \
    };                                                                   \
    static inline name##2 make_##name##2(type x, type y)                 \
    {                                                                    \
        return {x, y};                                                   \
    }                                                                    \
    static inline name##4 make_##name##4(type x, type y, type z, type w) \
    {                                                                    \
        return {x, y, z, w};                                             \
    }
TSR_EMULATION_VECTORS(unsigned char, uchar, 2)
TSR_EMULATION_VECTORS(unsigned short, ushort, 4)
TSR_EMULATION_VECTORS(short, short, 4)
TSR_EMULATION_VECTORS(int, int, 8)
TSR_EMULATION_VECTORS(unsigned, uint, 8)
TSR_EMULATION_VECTORS(long long, longlong, 16)
TSR_EMULATION_VECTORS(unsigned long long, ulonglong, 16)
#undef TSR_EMULATION_VECTORS

/* ---- The machine ------------------------------------------------------------------------------------------ */

struct tsr_emulated_place {
    uint3 thread, block;
    dim3 block_size, grid_size;
};
const tsr_emulated_place &tsr_emulated_place_here();
void *tsr_emulated_shared();
void tsr_emulated_yield();
void tsr_emulated_sync_block();
/* Deposits value, waits for all lanes of mask, and returns their values by lane. */
const uint64_t *tsr_emulated_exchange(unsigned mask, uint64_t value);
/* Declares an array in a larger allocation, with unused room after it. AddressSanitizer reports accesses to the room,
 * except whole copies across it. */
void tsr_emulated_array(void *array, size_t bytes, size_t room);
extern "C" cudaError_t tsr_emulated_launch(const std::function<void()> &kernel, dim3 grid, dim3 block,
                                           size_t shared_bytes, cudaStream_t stream);

#define threadIdx (tsr_emulated_place_here().thread)
#define blockIdx (tsr_emulated_place_here().block)
#define blockDim (tsr_emulated_place_here().block_size)
#define gridDim (tsr_emulated_place_here().grid_size)
enum { warpSize = 32 };

static inline unsigned tsr_emulated_lane()
{
    const tsr_emulated_place &p = tsr_emulated_place_here();
    return ((p.thread.z * p.block_size.y + p.thread.y) * p.block_size.x + p.thread.x) & 31u;
}

static inline void __syncthreads()
{
    tsr_emulated_sync_block();
}
static inline void __syncwarp(unsigned mask = 0xffffffffu)
{
    tsr_emulated_exchange(mask, 0);
}
static inline void __threadfence()
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
static inline void __threadfence_block()
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
static inline void __nanosleep(unsigned)
{
    tsr_emulated_yield();
}
static inline unsigned __activemask()
{
    return 0xffffffffu;
}
static inline void __trap()
{
    __builtin_trap();
}

/* ---- Warps ------------------------------------------------------------------------------------------------ */

template <typename T> static inline uint64_t tsr_emulated_pack(T value)
{
    static_assert(sizeof(T) <= 8, "shuffles take at most 8 bytes");
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
}
template <typename T> static inline T tsr_emulated_unpack(uint64_t bits)
{
    T value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}
template <typename T> static inline T __shfl_sync(unsigned mask, T value, int source, int width = 32)
{
    const int lane = (int)tsr_emulated_lane(), base = lane & ~(width - 1);
    const uint64_t *all = tsr_emulated_exchange(mask, tsr_emulated_pack(value));
    return tsr_emulated_unpack<T>(all[base + (source & (width - 1))]);
}
template <typename T> static inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32)
{
    const int lane = (int)tsr_emulated_lane(), base = lane & ~(width - 1), from = lane - (int)delta;
    const uint64_t *all = tsr_emulated_exchange(mask, tsr_emulated_pack(value));
    return from < base ? value : tsr_emulated_unpack<T>(all[from]);
}
template <typename T> static inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32)
{
    const int lane = (int)tsr_emulated_lane(), base = lane & ~(width - 1), from = lane + (int)delta;
    const uint64_t *all = tsr_emulated_exchange(mask, tsr_emulated_pack(value));
    return from >= base + width ? value : tsr_emulated_unpack<T>(all[from]);
}
template <typename T> static inline T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32)
{
    const int lane = (int)tsr_emulated_lane(), base = lane & ~(width - 1), from = lane ^ lanes;
    const uint64_t *all = tsr_emulated_exchange(mask, tsr_emulated_pack(value));
    return from >= base + width ? value : tsr_emulated_unpack<T>(all[from]);
}
static inline unsigned __ballot_sync(unsigned mask, int predicate)
{
    const uint64_t *all = tsr_emulated_exchange(mask, predicate != 0);
    unsigned bits = 0;
    for (unsigned l = 0; l < 32; l++)
        if (mask >> l & 1u && all[l]) bits |= 1u << l;
    return bits;
}
static inline int __any_sync(unsigned mask, int predicate)
{
    return __ballot_sync(mask, predicate) != 0;
}
static inline int __all_sync(unsigned mask, int predicate)
{
    return __ballot_sync(mask, predicate) == mask;
}
static inline unsigned __reduce_or_sync(unsigned mask, unsigned value)
{
    const uint64_t *all = tsr_emulated_exchange(mask, value);
    unsigned bits = 0;
    for (unsigned l = 0; l < 32; l++)
        if (mask >> l & 1u) bits |= (unsigned)all[l];
    return bits;
}
template <typename T> static inline unsigned __match_any_sync(unsigned mask, T value)
{
    const uint64_t mine = tsr_emulated_pack(value), *all = tsr_emulated_exchange(mask, mine);
    unsigned bits = 0;
    for (unsigned l = 0; l < 32; l++)
        if (mask >> l & 1u && all[l] == mine) bits |= 1u << l;
    return bits;
}
int tsr_emulated_count_block(int predicate);
static inline int __syncthreads_count(int predicate)
{
    return tsr_emulated_count_block(predicate != 0);
}
static inline int __syncthreads_or(int predicate)
{
    return tsr_emulated_count_block(predicate != 0) > 0;
}
static inline int __syncthreads_and(int predicate)
{
    return tsr_emulated_count_block(predicate == 0) == 0;
}

/* ---- Integers --------------------------------------------------------------------------------------------- */

static inline int __popc(unsigned v)
{
    return __builtin_popcount(v);
}
static inline int __popcll(unsigned long long v)
{
    return __builtin_popcountll(v);
}
static inline int __clz(int v)
{
    return v == 0 ? 32 : __builtin_clz((unsigned)v);
}
static inline int __clzll(long long v)
{
    return v == 0 ? 64 : __builtin_clzll((unsigned long long)v);
}
static inline int __ffs(int v)
{
    return __builtin_ffs(v);
}
static inline int __ffsll(long long v)
{
    return __builtin_ffsll(v);
}
static inline unsigned __brev(unsigned v)
{
    unsigned r = 0;
    for (int i = 0; i < 32; i++) r |= (v >> i & 1u) << (31 - i);
    return r;
}
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector)
{
    const uint64_t all = (uint64_t)y << 32 | x;
    unsigned r = 0;
    for (int i = 0; i < 4; i++) {
        const unsigned pick = selector >> (4 * i) & 15u;
        unsigned byte = (unsigned)(all >> (8 * (pick & 7u))) & 255u;
        if (pick & 8u) byte = byte & 128u ? 255u : 0u;
        r |= byte << (8 * i);
    }
    return r;
}
static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift)
{
    return (unsigned)((((uint64_t)high << 32 | low) << (shift & 31u)) >> 32);
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift)
{
    return (unsigned)(((uint64_t)high << 32 | low) >> (shift & 31u));
}
static inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift)
{
    return shift >= 32 ? low : __funnelshift_l(low, high, shift);
}
static inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift)
{
    return shift >= 32 ? high : __funnelshift_r(low, high, shift);
}
static inline unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((uint64_t)a * b >> 32);
}
static inline unsigned __vcmpne4(unsigned a, unsigned b)
{
    unsigned r = 0;
    for (int i = 0; i < 32; i += 8)
        if ((a >> i & 255u) != (b >> i & 255u)) r |= 255u << i;
    return r;
}
static inline unsigned __vcmpeq4(unsigned a, unsigned b)
{
    return ~__vcmpne4(a, b);
}
/* Two halves of 16 bits at once. */
template <typename F> static inline unsigned tsr_emulated_halves(F of)
{
    return (uint16_t)of(0) | (unsigned)(uint16_t)of(16) << 16;
}
static inline unsigned __vadd2(unsigned a, unsigned b)
{
    return tsr_emulated_halves([=](int i) { return (a >> i) + (b >> i); });
}
static inline unsigned __vminu2(unsigned a, unsigned b)
{
    return tsr_emulated_halves([=](int i) { return std::min((uint16_t)(a >> i), (uint16_t)(b >> i)); });
}
static inline unsigned __vmaxu2(unsigned a, unsigned b)
{
    return tsr_emulated_halves([=](int i) { return std::max((uint16_t)(a >> i), (uint16_t)(b >> i)); });
}
static inline unsigned __vmins2(unsigned a, unsigned b)
{
    return tsr_emulated_halves([=](int i) { return std::min((int16_t)(a >> i), (int16_t)(b >> i)); });
}
static inline unsigned __viaddmax_s16x2(unsigned a, unsigned b, unsigned c)
{
    return tsr_emulated_halves([=](int i) { return std::max((int16_t)((a >> i) + (b >> i)), (int16_t)(c >> i)); });
}
static inline unsigned __viaddmin_s16x2_relu(unsigned a, unsigned b, unsigned c)
{
    return tsr_emulated_halves(
        [=](int i) { return std::max((int16_t)0, std::min((int16_t)((a >> i) + (b >> i)), (int16_t)(c >> i))); });
}
static inline int __vimin_s32_relu(int a, int b)
{
    return std::max(std::min(a, b), 0);
}
static inline unsigned __sad(int a, int b, unsigned c)
{
    return c + (a > b ? (unsigned)a - (unsigned)b : (unsigned)b - (unsigned)a);
}
static inline unsigned __dp4a(unsigned a, unsigned b, unsigned c)
{
    for (int i = 0; i < 32; i += 8) c += (a >> i & 255u) * (b >> i & 255u);
    return c;
}
/* The halves of a times bytes 0 and 1 of b, or bytes 2 and 3. */
static inline int __dp2a_lo(int a, int b, int c)
{
    return c + (int16_t)a * (int8_t)b + (int16_t)((unsigned)a >> 16) * (int8_t)((unsigned)b >> 8);
}
static inline int __dp2a_hi(int a, int b, int c)
{
    return __dp2a_lo(a, (int)((unsigned)b >> 16), c);
}
using std::max;
using std::min;

/* ---- Memory ----------------------------------------------------------------------------------------------- */

template <typename T> static inline T __ldg(const T *p)
{
    return *p;
}
template <typename T> static inline T __ldcg(const T *p)
{
    return *p;
}
template <typename T> static inline T __ldcs(const T *p)
{
    return *p;
}
template <typename T> static inline void __stcs(T *p, T value)
{
    *p = value;
}
template <typename T> static inline void __stcg(T *p, T value)
{
    *p = value;
}
template <typename T> struct tsr_emulated_same {
    typedef T type;
};
#define TSR_EMULATION_ATOMIC(name, builtin)                                                     \
    template <typename T> static inline T name(T *p, typename tsr_emulated_same<T>::type value) \
    {                                                                                           \
        return builtin(p, value, __ATOMIC_SEQ_CST);                                             \
    }
TSR_EMULATION_ATOMIC(atomicAdd, __atomic_fetch_add)
TSR_EMULATION_ATOMIC(atomicSub, __atomic_fetch_sub)
TSR_EMULATION_ATOMIC(atomicOr, __atomic_fetch_or)
TSR_EMULATION_ATOMIC(atomicAnd, __atomic_fetch_and)
TSR_EMULATION_ATOMIC(atomicXor, __atomic_fetch_xor)
TSR_EMULATION_ATOMIC(atomicExch, __atomic_exchange_n)
#undef TSR_EMULATION_ATOMIC
template <typename T>
static inline T atomicCAS(T *p, typename tsr_emulated_same<T>::type expected, typename tsr_emulated_same<T>::type value)
{
    __atomic_compare_exchange_n(p, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return expected;
}
template <typename T> static inline T atomicMax(T *p, typename tsr_emulated_same<T>::type value)
{
    T now = __atomic_load_n(p, __ATOMIC_SEQ_CST);
    while (now < value && !__atomic_compare_exchange_n(p, &now, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    }
    return now;
}
template <typename T> static inline T atomicMin(T *p, typename tsr_emulated_same<T>::type value)
{
    T now = __atomic_load_n(p, __ATOMIC_SEQ_CST);
    while (value < now && !__atomic_compare_exchange_n(p, &now, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    }
    return now;
}

/* ---- Attributes ------------------------------------------------------------------------------------------- */

template <typename K> static inline cudaError_t cudaFuncSetAttribute(K kernel, cudaFuncAttribute attribute, int value)
{
    return cudaFuncSetAttribute(reinterpret_cast<const void *>(kernel), attribute, value);
}
template <typename K>
static inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, K kernel, int threads,
                                                                        size_t shared_bytes)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, reinterpret_cast<const void *>(kernel),
                                                                  threads, shared_bytes, cudaOccupancyDefault);
}
template <typename T> static inline cudaError_t cudaMalloc(T **memory, size_t bytes)
{
    return cudaMalloc(reinterpret_cast<void **>(memory), bytes);
}

#endif
