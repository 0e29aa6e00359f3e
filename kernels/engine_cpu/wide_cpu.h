/* Functions in a second form for CPUs with AVX2, chosen when the program is loaded: the same code with twice the lanes
 * and newer instructions, so equal by construction. Sanitizers start after the functions have been chosen: there the
 * second form is left out. */
#ifndef TSR_KERNELS_ENGINE_CPU_WIDE_CPU_H
#define TSR_KERNELS_ENGINE_CPU_WIDE_CPU_H

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TSR_WIDE __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define TSR_WIDE
#endif

#endif
