/* The images of --roi and --first: samples that are not 0 count. All frames of an image count together. */
#include <stdlib.h>
#include <string.h>

#include "app/cli/cli.h"

/* Adds a frame. */
static enum tsr_status add_frame(struct tsr_reader *reader, const struct tsr_image *image, uint32_t frame,
                                 uint8_t *raster, uint16_t *samples, uint8_t *mask, struct tsr_error *error)
{
    const size_t bytes = (size_t)((tsr_frame_bits(image) + 7) / 8), count = (size_t)image->columns * image->rows;
    const enum tsr_status status = tsr_read_frame(reader, 0, frame, raster, bytes, 0, error);
    if (status != TSR_OK) return status;
    const enum tsr_status unpacked = tsr_unpack_samples(image, raster, samples, error);
    const uint16_t zero = (uint16_t)(image->is_signed ? 1u << (image->bits_stored - 1) : 0u);
    for (size_t i = 0; i < count && unpacked == TSR_OK; i++)
        for (uint32_t c = 0; c < image->components; c++) mask[i] |= samples[i * image->components + c] != zero;
    return unpacked;
}

static enum tsr_status add_frames(struct tsr_reader *reader, const struct tsr_image *image, uint8_t *mask,
                                  struct tsr_error *error)
{
    const size_t samples = (size_t)image->columns * image->rows * image->components;
    uint8_t *const raster = malloc((size_t)(tsr_frame_bits(image) / 8) + 1);
    uint16_t *const values = malloc(samples * sizeof *values);
    enum tsr_status status = raster && values ? TSR_OK : refuse(error, TSR_ERROR_LIMIT, "%s", "no memory for a mask");
    for (uint32_t f = 0; f < image->frames && status == TSR_OK; f++)
        status = add_frame(reader, image, f, raster, values, mask, error);
    free(raster);
    free(values);
    return status;
}

static enum tsr_status read_mask(struct tsr_engine *engine, const char *name, const char *flag,
                                 struct roi_options *region, struct tsr_error *error)
{
    const struct tsr_data_source source = tsr_from_path(name);
    struct tsr_reader *reader = NULL;
    struct tsr_image image;
    enum tsr_status status = tsr_open(engine, &source, &reader, error);
    if (status == TSR_OK) status = tsr_reader_image(reader, 0, &image, error);
    struct tsr_roi *const roi = &region->roi;
    if (status == TSR_OK && region->mask && (roi->mask_columns != image.columns || roi->mask_rows != image.rows))
        status = refuse(error, TSR_ERROR_USAGE, "the images of %s have different sizes: %s has %u x %u samples", flag,
                        name, image.columns, image.rows);
    if (status == TSR_OK && image.bits_allocated > 16)
        status = refuse(error, TSR_ERROR_USAGE, "%s has samples of %u bits: %s takes images of at most 16", name,
                        image.bits_allocated, flag);
    if (status == TSR_OK && !region->mask) {
        roi->mask = region->mask = calloc((size_t)image.columns * image.rows, 1);
        roi->mask_columns = image.columns;
        roi->mask_rows = image.rows;
        if (!region->mask) status = refuse(error, TSR_ERROR_LIMIT, "no memory for the image %s", name);
    }
    if (status == TSR_OK) status = add_frames(reader, &image, region->mask, error);
    tsr_close(reader);
    return status;
}

struct tsr_compress_options coding_with_region(const struct options *options)
{
    struct tsr_compress_options compress = options->coding.compress;
    compress.roi = options->coding.region ? &options->coding.region->roi : NULL;
    compress.first = options->coding.first ? &options->coding.first->roi : NULL;
    return compress;
}

static enum tsr_status read_masks_of(struct tsr_engine *engine, const char *flag, struct roi_options *region,
                                     struct tsr_error *error)
{
    for (int i = 0; region && i < region->mask_count; i++) {
        const enum tsr_status status = read_mask(engine, region->masks[i], flag, region, error);
        if (status != TSR_OK) return status;
    }
    return TSR_OK;
}

enum tsr_status read_masks(struct tsr_engine *engine, const struct options *options, struct tsr_error *error)
{
    const enum tsr_status status = read_masks_of(engine, "--roi", options->coding.region, error);
    return status == TSR_OK ? read_masks_of(engine, "--first", options->coding.first, error) : status;
}
