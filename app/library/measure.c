/* Differences between rasters. */
#include "measure.h"

#include <math.h>

#include "transform/planes/samples.h"

/* Word number i of a raster, and its sample's order-preserving value. */
static int64_t sample_at(const struct tsr_image *image, const uint8_t *raster, size_t i)
{
    uint32_t word;
    if (image->bits_allocated == 1)
        word = (uint32_t)raster[(i >> 3) ^ (size_t)image->swapped] >> (i & 7) & 1u;
    else if (image->bits_allocated == 8)
        word = raster[i ^ (size_t)image->swapped];
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

uint64_t tsr_frame_blocks(const struct tsr_image *image)
{
    return (uint64_t)((image->columns + 3) / 4) * ((image->rows + 3) / 4);
}

uint32_t tsr_profile_part(uint64_t blocks, uint64_t block)
{
    const uint64_t each = blocks / TSR_PROFILE_PARTS + 1; /* the last parts may be empty */
    return (uint32_t)(block / each);
}

void tsr_add_error_profile(const struct tsr_image *image, uint32_t frame, const uint8_t *a, const uint8_t *b,
                           uint64_t profile[TSR_PROFILE_PARTS])
{
    const size_t columns = image->columns, count = columns * image->rows, components = image->components;
    const uint64_t first = frame * tsr_frame_blocks(image), blocks = image->frames * tsr_frame_blocks(image);
    for (size_t i = 0; i < count; i++) {
        uint64_t error = 0;
        for (size_t c = 0; c < components; c++) {
            const size_t at = image->planar ? c * count + i : i * components + c;
            const int64_t d = sample_at(image, a, at) - sample_at(image, b, at);
            error += (uint64_t)(d * d);
        }
        if (error == 0) continue;
        const uint64_t block = first + i / columns / 4 * ((columns + 3) / 4) + i % columns / 4;
        profile[tsr_profile_part(blocks, block)] += error;
    }
}

void tsr_unpack_samples(const struct tsr_image *image, const uint8_t *raster, uint16_t *samples)
{
    const size_t count = (size_t)image->columns * image->rows, components = image->components;
    for (size_t i = 0; i < count; i++)
        for (size_t c = 0; c < components; c++)
            samples[i * components + c] =
                (uint16_t)sample_at(image, raster, image->planar ? c * count + i : i * components + c);
}

static double window_ssim(const uint8_t *a, const uint8_t *b, int width, int height, size_t step, size_t pitch)
{
    uint64_t sa = 0, sb = 0, saa = 0, sbb = 0, sab = 0;
    for (int y = 0; y < height; y++) {
        for (int x = 0; x < width; x++) {
            const uint64_t p = a[(size_t)y * pitch + (size_t)x * step], q = b[(size_t)y * pitch + (size_t)x * step];
            sa += p;
            sb += q;
            saa += p * p;
            sbb += q * q;
            sab += p * q;
        }
    }
    const double n = (double)width * height, c1 = 0.01 * 255 * 0.01 * 255, c2 = 0.03 * 255 * 0.03 * 255;
    const double ma = (double)sa / n, mb = (double)sb / n;
    const double va = (double)saa / n - ma * ma, vb = (double)sbb / n - mb * mb, cov = (double)sab / n - ma * mb;
    return (2 * ma * mb + c1) * (2 * cov + c2) / ((ma * ma + mb * mb + c1) * (va + vb + c2));
}

double tsr_ssim(const uint8_t *a, const uint8_t *b, int columns, int rows, int channels)
{
    const int width = columns < 8 ? columns : 8, height = rows < 8 ? rows : 8;
    const size_t step = (size_t)channels, pitch = (size_t)columns * step;
    double sum = 0;
    uint64_t windows = 0;
    for (int c = 0; c < channels; c++) {
        for (int y = 0; y + height <= rows; y += 4) {
            for (int x = 0; x + width <= columns; x += 4) {
                const size_t at = (size_t)y * pitch + (size_t)x * step + (size_t)c;
                sum += window_ssim(a + at, b + at, width, height, step, pitch);
                windows++;
            }
        }
    }
    return sum / (double)windows;
}

double tsr_psnr_db(const struct tsr_image *image, uint64_t samples, uint64_t squared_error)
{
    const double peak = ldexp(1.0, image->bits_stored) - 1.0;
    if (squared_error == 0) return INFINITY;
    return 10.0 * log10(peak * peak * (double)samples / (double)squared_error);
}
