/* Tiles of drawn planes to strings of bytes and back. DRAWN.md; the definition is entropy/drawn.h. */
#ifndef TSR_KERNELS_DRAWN_DRAWN_CPU_H
#define TSR_KERNELS_DRAWN_DRAWN_CPU_H

#include "app/tessera.h"
#include "transform/tiling.h"

/* Whether a frame looks like a drawing: in some of its rows at least three of four words are those of the pixel before
 * or above, or it has few values, as dithered palettes have. All frames of 1 bit do. */
bool tsr_looks_drawn(const struct tsr_image *image, const uint8_t *raster);

/* Whether a frame is worth a trial for its size: at high efforts, and alone in its file. And for either reason. */
bool tsr_is_small_alone(const struct tsr_image *image, int effort);
bool tsr_may_be_drawn(const struct tsr_image *image, int effort, const uint8_t *raster);

/* Bytes of scratch that a tile needs, or any smaller one. */
size_t tsr_drawn_scratch_bytes(int32_t width, int32_t height);

/* Codes a tile of samples below range in at most capacity bytes; returns how many, 0 if they are too few. kind: enum
 * tsr_drawn_kind. *others: samples that are neither remembered nor a neighbour. */
size_t tsr_code_drawn_tile(const uint16_t *samples, struct tsr_tile tile, uint32_t range, int kind, uint8_t *payload,
                           size_t capacity, uint32_t *others, void *scratch);

/* The shorter one by residual and by value, by residual if they are equal. Each has half of capacity. */
size_t tsr_code_drawn_tile_both(const uint16_t *samples, struct tsr_tile tile, uint32_t range, uint8_t *payload,
                                size_t capacity, uint32_t *others, void *scratch);

/* Returns false if the payload is no such tile. */
bool tsr_decode_drawn_tile(const uint8_t *payload, size_t size, uint32_t range, uint16_t *samples, struct tsr_tile tile,
                           void *scratch);

#endif
