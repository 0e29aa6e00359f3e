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
/* Bits of cpuid, and of the registers that the system saves. __builtin_cpu_supports is not asked: clang 14 has no name
 * for LZCNT, and in a shared library of zig's it says that there is nothing: coding took 1.6 times as long
 * (tests/bench/decisions/048). */
enum { POPCNT = 1 << 23, OSXSAVE = 1 << 27, LZCNT = 1 << 5, SAVES_AVX = 0x06, SAVES_AVX512 = 0xe6 };
static const unsigned AVX2 = 1 << 5 | 1 << 3 | 1 << 8;                               /* AVX2, BMI1, BMI2 */
static const unsigned AVX512 = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31; /* F, DQ, CD, BW, VL */
static const unsigned AVX512_MORE = 1 << 1 | 1 << 6 | 1 << 11;                       /* VBMI, VBMI2, VNNI */

static unsigned saved_registers(void)
{
    unsigned low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static bool has(unsigned found, unsigned wanted)
{
    return (found & wanted) == wanted;
}
#endif

enum tsr_isa tsr_best_isa(void)
{
#if TSR_HAS_VECTOR_FORMS
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !has(c, POPCNT | OSXSAVE)) return TSR_ISA_PLAIN;
    const unsigned saved = saved_registers();
    if (!__get_cpuid(0x80000001u, &a, &b, &c, &d) || !has(c, LZCNT)) return TSR_ISA_PLAIN;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !has(b, AVX2) || !has(saved, SAVES_AVX)) return TSR_ISA_PLAIN;
    return has(b, AVX512) && has(c, AVX512_MORE) && has(saved, SAVES_AVX512) ? TSR_ISA_AVX512 : TSR_ISA_AVX2;
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
