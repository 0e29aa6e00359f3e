/* Choices of whole planes before they are coded: colour transform, range, histogram packing.
 * FORMAT.md sections 6.2 and 6.3.
 *
 * Choices compare what the median edge predictor would leave: the sum of log2(1 + 2 |residual|) over a fixed subset of
 * rows, in exact integers. */
#ifndef TSR_KERNELS_PLANES_RANGES_CPU_H
#define TSR_KERNELS_PLANES_RANGES_CPU_H

#include "entropy/frame_model.h"

/* Scratch of tsr_choose_range. */
struct tsr_range_work {
    uint8_t used[65536];
    uint16_t index[65536]; /* of each offset in use */
};

/* The cost of a transform of three planes of rows x columns values; bits: of a value. In bits x 4096 over a subset of
 * the samples. */
uint64_t tsr_colour_cost(uint16_t *const *planes, uint32_t columns, uint32_t rows, enum tsr_colour colour, int bits);

/* The transform of three planes of rows x columns values that costs least of those that the coding tries; if path T
 * loses something, among those whose differences do not wrap. */
enum tsr_colour tsr_choose_colour(uint16_t *const *planes, uint32_t columns, uint32_t rows, int bits,
                                  const struct tsr_coding *coding);

/* Applies it, in place, and its inverse. */
void tsr_apply_colour(uint16_t *const *planes, size_t count, enum tsr_colour colour, int bits);
void tsr_undo_colour(uint16_t *const *planes, size_t count, enum tsr_colour colour, int bits, bool clamp);

/* Whether a plane's histogram is packed: never; if that seems to pay by the median edge predictor; or also if it has
 * wide gaps, of planes that are tried as drawn ones (tests/bench/decisions/071). */
enum tsr_packing { TSR_PACK_NOTHING, TSR_PACK_IF_IT_PAYS, TSR_PACK_GAPS };

/* Finds a plane's minimum and span, packs its histogram or not, and turns its values into x = 0 .. range-1 in place.
 * Sets minimum, span, range, packed, offset[]. */
void tsr_choose_range(uint16_t *plane, uint32_t columns, uint32_t rows, enum tsr_packing packing,
                      struct tsr_plane_model *model, struct tsr_range_work *work);

/* The same in three steps, of which the first and the last may do some values at a time. mark marks all of some values
 * by tsr_mark_used, which threads may call at the same time, or by tsr_mark_used_alone. */
typedef void tsr_marker(void *context, const uint16_t *values, size_t count, uint32_t low, uint8_t *used);
void tsr_mark_used(const uint16_t *values, size_t count, uint32_t low, uint8_t *used);
void tsr_mark_used_alone(const uint16_t *values, size_t count, uint32_t low, uint8_t *used);
void tsr_find_extremes(const uint16_t *plane, size_t count, uint16_t *low, uint16_t *high);
void tsr_choose_packing(const uint16_t *plane, uint32_t columns, uint32_t rows, uint16_t low, uint16_t high,
                        enum tsr_packing packing, struct tsr_plane_model *model, struct tsr_range_work *work,
                        tsr_marker *mark, void *context);
void tsr_apply_range(uint16_t *plane, size_t count, const struct tsr_plane_model *model,
                     const struct tsr_range_work *work);

/* Samples to multiples' numbers, in place, and back. */
void tsr_quantise_samples(uint16_t *plane, size_t count, struct tsr_near_lossless near);
void tsr_restore_samples(uint16_t *plane, size_t count, struct tsr_near_lossless near);

/* x back to values, in place. */
void tsr_undo_range(uint16_t *plane, size_t count, const struct tsr_plane_model *model);

#endif
