/* Differences between two rasters of an image. */
#ifndef TSR_APP_LIBRARY_MEASURE_H
#define TSR_APP_LIBRARY_MEASURE_H

#include "kernels/measure/difference_cpu.h"
#include "kernels/measure/ssim_cpu.h"
#include "tessera_cli.h"

/* Where the squared error of a file is: its 4x4 blocks, frame after frame and row by row, in TSR_PROFILE_PARTS parts as
 * equal as can be. Adds those of one frame, measured as tsr_add_difference does; what: NULL is everything. Weighted
 * squares are rounded a row at a time. */
enum { TSR_PROFILE_PARTS = 4096 };
void tsr_add_error_profile(const struct tsr_image *image, const struct tsr_measured *what, uint32_t frame,
                           const uint8_t *a, const uint8_t *b, uint64_t profile[TSR_PROFILE_PARTS]);

/* Samples of all frames and components. */
uint64_t tsr_all_samples(const struct tsr_image *image);

/* Blocks of a frame, and of a file; the part that a block is in. */
uint64_t tsr_frame_blocks(const struct tsr_image *image);
uint32_t tsr_profile_part(uint64_t blocks, uint64_t block);

/* What is measured of an image but for its windows: all samples that are not kept. */
struct tsr_kept_ranges;
struct tsr_measured tsr_measured_of(const struct tsr_image *image, const struct tsr_kept_ranges *kept);

/* Puts what was lost into a proof. */
struct tsr_proof;
void tsr_note_difference(const struct tsr_image *image, const struct tsr_difference *found, struct tsr_proof *proof);

/* Whether there are positions enough for an SSIM; and their mean, -1 where they are not. */
bool tsr_has_ssim(const struct tsr_ssim_sum *sum);
double tsr_ssim_of(const struct tsr_ssim_sum *sum);

/* The same of one frame: its weight and its windows. what is that of the file. */
struct tsr_windows;
void tsr_measure_frame(const struct tsr_windows *windows, uint32_t frame, struct tsr_measured *what);

/* Whether the frame has a window of its own in the place of one of the file's. */
bool tsr_has_own_window(const struct tsr_windows *windows, uint32_t frame, uint32_t number);

/* Of the windows that are measured in one frame alone, and judged there: the one with most noise for its width. */
struct tsr_own_window {
    uint32_t values; /* its width in stored values; 0: there is none */
    uint64_t samples, squared_error;
};

/* Adds what was measured of a frame of so many samples. */
void tsr_add_frame(const struct tsr_windows *windows, uint32_t frame, uint64_t samples,
                   const struct tsr_difference *measured, struct tsr_difference *sum, struct tsr_own_window *worst);

/* PSNR in dB with this peak; infinity where nothing differs. */
double tsr_psnr_db(uint32_t peak, uint64_t samples, uint64_t squared_error);

#endif
