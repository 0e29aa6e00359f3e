/* Path P's predictors, trained on a plane's tiles: classes of blocks, labels and their codes. FORMAT.md section 7.1;
 * what a tile adds and what is done with the sums is in train_cpu.h. */
#ifndef TSR_KERNELS_ENGINE_CPU_TRAIN_PLANE_CPU_H
#define TSR_KERNELS_ENGINE_CPU_TRAIN_PLANE_CPU_H

#include "plane_passes_cpu.h"

/* Linear predictors, as the effort has it, or none where no block prefers one. Of several plans the one whose residuals
 * and weights seem to cost least. */
void tsr_train_predictors(struct tsr_plane_work *work);

/* A tile of the plane and of those that its predictors refer to, once they are trained. */
struct tsr_training_tile tsr_training_tile_at(const struct tsr_plane_work *work, uint32_t number);

#endif
