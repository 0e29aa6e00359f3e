/* The instruction set that the CPU engine's vector forms are chosen by. Every stage with forms for AVX2 or AVX-512 asks
 * here. */
#ifndef TSR_KERNELS_MACHINE_ISA_CPU_H
#define TSR_KERNELS_MACHINE_ISA_CPU_H

/* In the order of preference: a later one includes those before it. TSR_ISA_AVX512 is that of Ice Lake and Zen 4. */
enum tsr_isa { TSR_ISA_PLAIN, TSR_ISA_AVX2, TSR_ISA_AVX512 };

#if defined(__x86_64__) && (defined(__clang__) || __GNUC__ >= 9)
#define TSR_HAS_VECTOR_FORMS 1
#define TSR_AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt")))
#define TSR_AVX512                                                                                         \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512cd,avx512vbmi,avx512vbmi2,avx512vnni," \
                          "avx2,bmi,bmi2,popcnt")))
/* For functions that become part of their callers. */
#define TSR_AVX2_INLINE static inline __attribute__((always_inline)) TSR_AVX2
#define TSR_AVX512_INLINE static inline __attribute__((always_inline)) TSR_AVX512
#else
#define TSR_HAS_VECTOR_FORMS 0
#endif

/* The best one that the machine has. */
enum tsr_isa tsr_best_isa(void);

/* The one with this name (plain, avx2, avx512), but at most the best one; the best one if name is NULL or unknown. */
enum tsr_isa tsr_isa_named(const char *name, enum tsr_isa best);

/* The one to use: TESSERA_ISA of the environment says its name, and is read once. */
enum tsr_isa tsr_isa(void);

#endif
