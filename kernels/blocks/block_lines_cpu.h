/* Rows of 4x4 blocks as lines: one for each place of the blocks' raster, so that blocks beside each other lie beside
 * each other, and every step of a transform is a loop over them that a compiler turns into vectors. Four blocks at a
 * time change their form by transposing 4x4 values in registers. */
#ifndef TSR_KERNELS_BLOCKS_BLOCK_LINES_CPU_H
#define TSR_KERNELS_BLOCKS_BLOCK_LINES_CPU_H

#include <string.h>

#include "transform/block/blocks.h"

#if defined(__has_builtin) && defined(__BYTE_ORDER__) && (!defined(__i386__) || defined(__SSE2__))
#if __has_builtin(__builtin_shufflevector) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define TSR_LINE_VECTORS 1
#endif
#endif
#if !defined(TSR_LINE_VECTORS)
#define TSR_LINE_VECTORS 0
#endif

#if TSR_LINE_VECTORS
typedef int32_t tsr_line_vector __attribute__((vector_size(16)));
typedef uint32_t tsr_word_vector __attribute__((vector_size(16)));

TSR_HD_INLINE tsr_line_vector tsr_load_vector(const void *at)
{
    tsr_line_vector v;
    memcpy(&v, at, sizeof v);
    return v;
}

TSR_HD_INLINE void tsr_transpose_vectors(tsr_line_vector v[4])
{
    const tsr_line_vector a = __builtin_shufflevector(v[0], v[1], 0, 4, 1, 5);
    const tsr_line_vector b = __builtin_shufflevector(v[0], v[1], 2, 6, 3, 7);
    const tsr_line_vector c = __builtin_shufflevector(v[2], v[3], 0, 4, 1, 5);
    const tsr_line_vector d = __builtin_shufflevector(v[2], v[3], 2, 6, 3, 7);
    v[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
    v[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
    v[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
    v[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}
#endif

/* count blocks of 16 coefficients in the order of the scan to lines in raster order, and back. */
TSR_HD_INLINE void tsr_blocks_to_lines(const int32_t *blocks, size_t count, int32_t *const line[TSR_BLOCK_SAMPLES])
{
    size_t k = 0;
#if TSR_LINE_VECTORS
    for (; k + 4 <= count; k += 4)
        for (int p = 0; p < TSR_BLOCK_SAMPLES; p += 4) {
            tsr_line_vector v[4];
            for (size_t i = 0; i < 4; i++) v[i] = tsr_load_vector(blocks + (k + i) * TSR_BLOCK_SAMPLES + p);
            tsr_transpose_vectors(v);
            for (int i = 0; i < 4; i++) memcpy(line[tsr_zigzag(p + i)] + k, &v[i], sizeof v[i]);
        }
#endif
    for (; k < count; k++)
        for (int p = 0; p < TSR_BLOCK_SAMPLES; p++) line[tsr_zigzag(p)][k] = blocks[k * TSR_BLOCK_SAMPLES + (size_t)p];
}

TSR_HD_INLINE void tsr_lines_to_blocks(int32_t *const line[TSR_BLOCK_SAMPLES], size_t count, int32_t *blocks)
{
    size_t k = 0;
#if TSR_LINE_VECTORS
    for (; k + 4 <= count; k += 4)
        for (int p = 0; p < TSR_BLOCK_SAMPLES; p += 4) {
            tsr_line_vector v[4];
            for (int i = 0; i < 4; i++) v[i] = tsr_load_vector(line[tsr_zigzag(p + i)] + k);
            tsr_transpose_vectors(v);
            for (size_t i = 0; i < 4; i++) memcpy(blocks + (k + i) * TSR_BLOCK_SAMPLES + p, &v[i], sizeof v[i]);
        }
#endif
    for (; k < count; k++)
        for (int p = 0; p < TSR_BLOCK_SAMPLES; p++) blocks[k * TSR_BLOCK_SAMPLES + (size_t)p] = line[tsr_zigzag(p)][k];
}

/* Four samples of each of count blocks, beside each other, to four lines, shifted; and samples, below 2^16, back. */
TSR_HD_INLINE void tsr_samples_to_lines(const uint16_t *samples, size_t count, int shift, int32_t *const line[4])
{
    size_t k = 0;
#if TSR_LINE_VECTORS
    for (; k + 4 <= count; k += 4) {
        const tsr_word_vector low = (tsr_word_vector)tsr_load_vector(samples + 4 * k),
                              high = (tsr_word_vector)tsr_load_vector(samples + 4 * k + 8);
        const tsr_word_vector first = __builtin_shufflevector(low, high, 0, 2, 4, 6),
                              second = __builtin_shufflevector(low, high, 1, 3, 5, 7);
        const tsr_word_vector v[4] = {(first & 0xffffu) << shift, first >> 16 << shift, (second & 0xffffu) << shift,
                                      second >> 16 << shift};
        for (int j = 0; j < 4; j++) memcpy(line[j] + k, &v[j], sizeof v[j]);
    }
#endif
    for (; k < count; k++)
        for (int j = 0; j < 4; j++) line[j][k] = samples[4 * k + (size_t)j] << shift;
}

TSR_HD_INLINE void tsr_lines_to_samples(int32_t *const line[4], size_t count, uint16_t *samples)
{
    size_t k = 0;
#if TSR_LINE_VECTORS
    for (; k + 4 <= count; k += 4) {
        tsr_line_vector v[4];
        for (int j = 0; j < 4; j++) v[j] = tsr_load_vector(line[j] + k);
        const tsr_line_vector first = v[0] | v[1] << 16, second = v[2] | v[3] << 16;
        const tsr_line_vector low = __builtin_shufflevector(first, second, 0, 4, 1, 5),
                              high = __builtin_shufflevector(first, second, 2, 6, 3, 7);
        memcpy(samples + 4 * k, &low, sizeof low);
        memcpy(samples + 4 * k + 8, &high, sizeof high);
    }
#endif
    for (; k < count; k++)
        for (int j = 0; j < 4; j++) samples[4 * k + (size_t)j] = (uint16_t)line[j][k];
}

#endif
