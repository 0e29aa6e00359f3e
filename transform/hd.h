/* Shared ground of the definitions: code that gcc (C11) and nvcc (C++17) both compile.
 *
 * Every stage of the codec is written once, as integer functions marked TSR_HD; the engines loop over
 * them. No floating point: what these functions compute reaches the file. */
#ifndef TSR_TRANSFORM_HD_H
#define TSR_TRANSFORM_HD_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__CUDACC__)
#define TSR_HD static __host__ __device__ __forceinline__
#else
#define TSR_HD static inline
#endif

/* Likewise, for what is large and called once a frame: CUDA calls it, which compiles in a tenth of the time. Such a
 * function works on a copy of the structure that it reads from (own), which lies in registers, and gives it back when
 * it succeeds. */
#if defined(__CUDACC__)
#define TSR_HD_CALL static inline __host__ __device__ __noinline__
#else
#define TSR_HD_CALL static inline
#endif

/* Likewise, for what must become part of its caller (which may be compiled for another CPU). */
#if defined(__CUDACC__) || !defined(__GNUC__)
#define TSR_HD_INLINE TSR_HD
#else
#define TSR_HD_INLINE static inline __attribute__((always_inline))
#endif

/* In front of a loop over a block's places: a GPU has arrays in registers where their places are known. */
#if defined(__CUDA_ARCH__)
#define TSR_UNROLL _Pragma("unroll")
#else
#define TSR_UNROLL
#endif

/* A constant table that both sides can read: TSR_TABLE defines it, TSR_AT(name) is the array of the side
 * that the code is compiled for, and in C++ TSR_CONSTANT(name) what the compiler works with. The values are the
 * variadic part, without braces. */
#if defined(__CUDACC__)
#define TSR_TABLE(type, name, count, ...)                     \
    static constexpr type name##_host[count] = {__VA_ARGS__}; \
    static __device__ const type name##_device[count] = {__VA_ARGS__}
#elif defined(__cplusplus)
#define TSR_TABLE(type, name, count, ...) static constexpr type name##_host[count] = {__VA_ARGS__}
#else
#define TSR_TABLE(type, name, count, ...) static const type name##_host[count] = {__VA_ARGS__}
#endif
#if defined(__CUDA_ARCH__)
#define TSR_AT(name) name##_device
#else
#define TSR_AT(name) name##_host
#endif
#define TSR_CONSTANT(name) name##_host

/* Arithmetic shift right: floor(value / 2^shift), also for negative values. C leaves >> of a negative
 * number to the implementation; gcc, clang and nvcc all shift arithmetically, and the static_assert
 * stops a build where that is not so. */
static_assert((-3 >> 1) == -2, "signed >> must be arithmetic");

TSR_HD int32_t tsr_asr(int32_t value, int shift)
{
    return value >> shift;
}

TSR_HD int64_t tsr_asr64(int64_t value, int shift)
{
    return value >> shift;
}

/* floor(log2(value)) for value >= 1. */
TSR_HD int tsr_floor_log2(uint32_t value)
{
#if defined(__CUDA_ARCH__)
    return 31 - __clz((int)value);
#else
    return 31 - __builtin_clz(value);
#endif
}

/* Number of bits needed to write value: 0 for 0, 1 for 1, 2 for 2 and 3, ... */
TSR_HD int tsr_bit_width(uint32_t value)
{
    return value == 0 ? 0 : tsr_floor_log2(value) + 1;
}

TSR_HD int32_t tsr_min(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

TSR_HD int32_t tsr_max(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

TSR_HD uint64_t tsr_min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

TSR_HD uint64_t tsr_max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

TSR_HD int32_t tsr_abs(int32_t value)
{
    return value < 0 ? -value : value;
}

#endif
