/* Differences between rasters. */
#include "measure.h"

#include <math.h>

#include "../transform/samples.h"

/* Word number i of a raster, and its sample's order-preserving value. */
static int64_t sample_at(const struct tsr_image *image, const uint8_t *raster, size_t i)
{
    uint32_t word;
    if (image->bits_allocated == 1)
        word = raster[(i >> 3) ^ image->swapped] >> (i & 7) & 1u;
    else if (image->bits_allocated == 8)
        word = raster[i ^ image->swapped];
    else if (image->bits_allocated == 16)
        word = (uint32_t)raster[2 * i + !image->big_endian] << 8 | raster[2 * i + image->big_endian];
    else {
        word = 0;
        for (size_t k = 0; k < 4; k++) word = word << 8 | raster[4 * i + (image->big_endian ? k : 3 - k)];
        return image->is_signed ? (int64_t)(int32_t)word : (int64_t)word;
    }
    return tsr_word_sample(
        word, tsr_word_layout(image->bits_allocated, image->bits_stored, image->high_bit, image->is_signed, false));
}

void tsr_add_difference(const struct tsr_image *image, const uint8_t *a, const uint8_t *b, struct tsr_difference *sum)
{
    const size_t samples = (size_t)image->columns * image->rows * image->components;
    for (size_t i = 0; i < samples; i++) {
        const int64_t d = sample_at(image, a, i) - sample_at(image, b, i);
        const uint64_t magnitude = (uint64_t)(d < 0 ? -d : d);
        if (magnitude == 0) continue;
        if (magnitude > sum->max_error) sum->max_error = (uint32_t)magnitude;
        const uint64_t square = magnitude * magnitude;
        sum->squared_error = square > UINT64_MAX - sum->squared_error ? UINT64_MAX : sum->squared_error + square;
    }
}

double tsr_psnr_db(const struct tsr_image *image, uint64_t samples, uint64_t squared_error)
{
    const double peak = ldexp(1.0, image->bits_stored) - 1.0;
    if (squared_error == 0) return INFINITY;
    return 10.0 * log10(peak * peak * (double)samples / (double)squared_error);
}
