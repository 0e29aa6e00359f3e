/* The instruction set that vector forms are chosen by; see the header. */
#include "isa_cpu.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#if TSR_HAS_VECTOR_FORMS
#include <cpuid.h>
#endif

#if TSR_HAS_VECTOR_FORMS
/* Clang 14 has no name for it. */
static bool has_lzcnt(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(0x80000001u, &a, &b, &c, &d) && (c >> 5 & 1u);
}
#endif

enum tsr_isa tsr_best_isa(void)
{
#if TSR_HAS_VECTOR_FORMS
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi") || !__builtin_cpu_supports("bmi2") ||
        !__builtin_cpu_supports("popcnt") || !has_lzcnt())
        return TSR_ISA_PLAIN;
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                   __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512vbmi") &&
                   __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512vnni")
               ? TSR_ISA_AVX512
               : TSR_ISA_AVX2;
#else
    return TSR_ISA_PLAIN;
#endif
}

enum tsr_isa tsr_isa_named(const char *name, enum tsr_isa best)
{
    static const char *const names[] = {"plain", "avx2", "avx512"};
    for (int isa = TSR_ISA_PLAIN; name && isa < (int)best; isa++)
        if (strcmp(name, names[isa]) == 0) return (enum tsr_isa)isa;
    return best;
}

enum tsr_isa tsr_isa(void)
{
    static atomic_int known; /* the set + 1; 0: unknown. Threads that find it out at once find the same */
    int isa = atomic_load_explicit(&known, memory_order_relaxed) - 1;
    if (isa < 0) {
        isa = (int)tsr_isa_named(getenv("TESSERA_ISA"), tsr_best_isa());
        atomic_store_explicit(&known, isa + 1, memory_order_relaxed);
    }
    return (enum tsr_isa)isa;
}
