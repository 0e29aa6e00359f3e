/* Path P with Huffman or rANS: a plane's residuals to contexts and code tables, and its tiles to payloads. FORMAT.md
 * sections 7.2 to 7.6; the passes over a tile are in residuals_cpu.h. */
#ifndef TSR_KERNELS_ENGINE_CPU_ENCODE_RESIDUALS_CPU_H
#define TSR_KERNELS_ENGINE_CPU_ENCODE_RESIDUALS_CPU_H

#include "plane_passes_cpu.h"

/* Symbols, contexts, tables: plane->residual, once plane->predictor is trained. */
void tsr_train_residuals(struct tsr_plane_work *work);

/* Estimates the bytes of the plane with the median edge predictor, from some of its rows. */
uint64_t tsr_estimate_residuals(struct tsr_plane_work *work);

/* A tile's payload: labels, then words. Returns its bytes, 0 if it would exceed capacity. */
size_t tsr_code_residuals(struct tsr_plane_work *work, uint32_t part, uint32_t number, uint8_t *payload,
                          size_t capacity);

#endif
