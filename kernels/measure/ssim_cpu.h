/* Structural similarity of frames on the CPU. transform/planes/ssim.h.
 *
 * The text of the form is ssim_form.h, which ssim_cpu.c compiles as plain C and ssim_avx2.c for AVX2. test_ssim_cpu
 * holds them equal to the definition's steps. */
#ifndef TSR_KERNELS_MEASURE_SSIM_CPU_H
#define TSR_KERNELS_MEASURE_SSIM_CPU_H

#include "app/tessera.h"
#include "kernels/machine/isa_cpu.h"
#include "transform/planes/difference.h"

/* Adds the SSIM of a frame, over all and in each window, by the form of an instruction set. Nothing is added of images
 * that are not of 8 or 16 bits allocated, or without what->range. a: the original. */
void tsr_add_ssim(enum tsr_isa isa, const struct tsr_image *image, const struct tsr_measured *what, const uint8_t *a,
                  const uint8_t *b, struct tsr_difference *sum);

/* ---- The forms */

/* One component of a frame. */
struct tsr_ssim_plane {
    const struct tsr_image *image;
    const uint8_t *original, *decoded;
    size_t first, step; /* words: the first sample's number, and from a sample to the next of its row */
};

/* Samples that the steps take at once, of each fourth column: a multiple of what vectors hold. */
enum { TSR_SSIM_LINE = 64 };

/* Adds a component. */
typedef void tsr_ssim_form(const struct tsr_ssim_plane *plane, const struct tsr_ssim_scale *scale,
                           const struct tsr_measured *what, struct tsr_ssim_sum *sum);
tsr_ssim_form tsr_ssim_form_plain, tsr_ssim_form_avx2; /* the latter where a compiler for x86-64 makes it */

#endif
