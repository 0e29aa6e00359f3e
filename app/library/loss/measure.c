/* Differences between rasters. */
#include "measure.h"

#include <math.h>

#include "app/library/arguments.h"
#include "transform/planes/samples.h"
#include "transform/status.h"

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

enum tsr_status tsr_unpack_samples(const struct tsr_image *image, const uint8_t *raster, uint16_t *samples,
                                   struct tsr_error *error)
{
    TSR_TRY(tsr_check_pointer(image, "image", error));
    TSR_TRY(tsr_check_pointer(raster, "raster", error));
    TSR_TRY(tsr_check_pointer(samples, "samples", error));
    TSR_TRY(tsr_check_image(image, error));
    if (image->bits_allocated == 32) return tsr_fail(error, TSR_ERROR_USAGE, "samples of 32 bits do not fit into 16");
    const size_t count = (size_t)image->columns * image->rows, components = image->components;
    for (size_t i = 0; i < count; i++)
        for (size_t c = 0; c < components; c++)
            samples[i * components + c] =
                (uint16_t)sample_at(image, raster, image->planar ? c * count + i : i * components + c);
    return TSR_OK;
}

double tsr_psnr_db(uint32_t peak, uint64_t samples, uint64_t squared_error)
{
    if (squared_error == 0) return INFINITY;
    return 10.0 * log10((double)peak * peak * (double)samples / (double)squared_error);
}
