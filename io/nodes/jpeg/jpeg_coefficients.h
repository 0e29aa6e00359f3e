/* The quantised coefficients of a stream, coded in slices of rows of MCUs. JPEG.md 3. */
#ifndef TSR_IO_NODES_JPEG_JPEG_COEFFICIENTS_H
#define TSR_IO_NODES_JPEG_JPEG_COEFFICIENTS_H

#include "jpeg_head.h"

/* Working memory of a slice's coder. Slices share nothing but the arrays, of which each has its part. */
size_t tsr_jpeg_slice_memory(const struct tsr_jpeg *jpeg);

/* Codes the MCU rows from .. to - 1. coefficients: jpeg->blocks blocks of 64; counts: a byte for each block. The
 * decoder takes any bytes. Errors: TSR_ERROR_LIMIT (memory). */
enum tsr_status tsr_jpeg_put_slice(const struct tsr_jpeg *jpeg, const int16_t *coefficients, uint8_t *counts,
                                   size_t from, size_t to, struct tsr_bytes *slice, struct tsr_error *error);
enum tsr_status tsr_jpeg_get_slice(const struct tsr_jpeg *jpeg, int16_t *coefficients, uint8_t *counts, size_t from,
                                   size_t to, const uint8_t *slice, size_t size, struct tsr_error *error);

#endif
