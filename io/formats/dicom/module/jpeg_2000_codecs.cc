/* Rasters as numbers, and the calls of the module. No exception leaves it. */
#include "jpeg_2000_codecs.h"

#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

namespace
{

void take_raster(jpeg_2000_job &job, const uint8_t *raster)
{
    const tsr_image &image = *job.image;
    const size_t count = static_cast<size_t>(image.columns) * image.rows * image.components;
    job.samples.resize(count);
    job.stream.reserve(tsr_jpeg_2000_room(count * image.bits_allocated / 8));
    for (size_t i = 0; i < count; i++) {
        if (image.bits_allocated == 8)
            job.samples[i] = image.is_signed ? static_cast<int8_t>(raster[i]) : raster[i];
        else {
            const uint16_t word = static_cast<uint16_t>(raster[2 * i] | raster[2 * i + 1] << 8);
            job.samples[i] = image.is_signed ? static_cast<int16_t>(word) : word;
        }
    }
}

/* False: a sample does not fit. */
bool give_raster(const jpeg_2000_job &job, uint8_t *raster)
{
    const tsr_image &image = *job.image;
    const int bytes = image.bits_allocated / 8;
    const int32_t most = job.is_signed ? (1 << (image.bits_allocated - 1)) - 1 : (1 << image.bits_allocated) - 1,
                  least = job.is_signed ? -most - 1 : 0;
    for (size_t i = 0; i < job.samples.size(); i++) {
        const int32_t sample = job.samples[i];
        if (sample < least || sample > most) return false;
        for (int b = 0; b < bytes; b++)
            raster[i * static_cast<size_t>(bytes) + static_cast<size_t>(b)] =
                static_cast<uint8_t>(static_cast<uint32_t>(sample) >> 8 * b);
    }
    return true;
}

tsr_status run(bool (*codec)(jpeg_2000_job &), jpeg_2000_job &job, const char *failure, tsr_error *error)
{
    try {
        if (codec(job)) return TSR_OK;
    } catch (const std::bad_alloc &) {
        return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to code JPEG 2000");
    } catch (const std::exception &) {
    }
    return tsr_fail(error, TSR_ERROR_CORRUPT, "%s", failure);
}

} // namespace

tsr_status encode_jpeg_2000(const tsr_image *image, const uint8_t *raster, int bits, bool is_ht, bool is_rgb,
                            tsr_dicom_made *made, tsr_error *error)
{
    jpeg_2000_job job{image, bits, is_rgb, {}, {}, image->is_signed};
    *made = {nullptr, 0};
    try {
        take_raster(job, raster);
    } catch (const std::bad_alloc &) {
        return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to code JPEG 2000");
    }
    TSR_TRY(run(is_ht ? openjph_encode : openjpeg_encode, job, "the library of JPEG 2000 cannot code it", error));
    made->bytes = static_cast<uint8_t *>(std::malloc(job.stream.size() + 1));
    if (!made->bytes) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu bytes", job.stream.size());
    std::memcpy(made->bytes, job.stream.data(), job.stream.size());
    made->size = job.stream.size();
    return TSR_OK;
}

tsr_status decode_jpeg_2000_by(bool (*codec)(jpeg_2000_job &), const tsr_image *image, const uint8_t *stream,
                               size_t size, uint8_t *raster, tsr_error *error)
{
    jpeg_2000_job job{image, 0, false, {}, {}, false};
    try {
        job.stream.assign(stream, stream + size);
        job.samples.resize(static_cast<size_t>(image->columns) * image->rows * image->components);
    } catch (const std::bad_alloc &) {
        return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to decode JPEG 2000");
    }
    TSR_TRY(run(codec, job, "the library of JPEG 2000 cannot decode it", error));
    if (job.bits > image->bits_allocated)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "its samples have %d bits, and %d are allocated", job.bits,
                        image->bits_allocated);
    if (job.is_signed != image->is_signed && job.bits < image->bits_allocated)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "it says of the sign of samples what the header does not");
    if (!give_raster(job, raster)) return tsr_fail(error, TSR_ERROR_CORRUPT, "it has samples that do not fit");
    return TSR_OK;
}

tsr_status decode_jpeg_2000(const tsr_image *image, const uint8_t *stream, size_t size, uint8_t *raster,
                            tsr_error *error)
{
    return decode_jpeg_2000_by(openjpeg_decode, image, stream, size, raster, error);
}
