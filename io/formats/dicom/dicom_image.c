/* Images of pixel data, those of rare or broken headers included. PS3.3, C.7.6.3 and C.7.6.24; PS3.5, 8. */
#include "dicom_image.h"

#include <string.h>

#include "dicom_elements.h"

static bool is_subsampled(const struct tsr_dicom *dicom)
{
    return strncmp(dicom->photometric, "YBR_", 4) == 0 && strstr(dicom->photometric, "_42");
}

enum tsr_status tsr_dicom_image(const struct tsr_dicom *dicom, struct tsr_image *image, struct tsr_error *error)
{
    const long bits = dicom->bits_allocated;
    memset(image, 0, sizeof *image);
    if (dicom->columns < 0 || dicom->rows < 0)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "its header does not say how many %s it has",
                        dicom->columns < 0 ? "columns" : "rows");
    if (dicom->columns < 1 || dicom->rows < 1)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "it has %ld columns and %ld rows", dicom->columns, dicom->rows);
    if (bits != 1 && bits != 8 && bits != 16 && bits != 32)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "it has %ld bits allocated", bits);
    if (is_subsampled(dicom))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "its chroma is subsampled (%s)", dicom->photometric);
    const long samples = dicom->samples > 0 ? dicom->samples : 1;
    if (samples > 4 || (bits == 1 && samples != 1))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "it has %ld samples per pixel of %ld bits", samples, bits);
    image->columns = (uint32_t)dicom->columns;
    image->rows = (uint32_t)dicom->rows;
    image->frames = dicom->frames > 0 ? (uint32_t)dicom->frames : 1;
    image->components = (uint8_t)samples;
    image->bits_allocated = (uint8_t)bits;
    const bool sensible =
        dicom->bits_stored >= 1 && dicom->high_bit < bits && dicom->high_bit + 1 >= dicom->bits_stored;
    image->bits_stored = (uint8_t)(sensible ? dicom->bits_stored : bits);
    image->high_bit = (uint8_t)(sensible ? dicom->high_bit : bits - 1);
    image->is_signed = dicom->representation == 1 && bits > 1;
    image->planar = samples > 1 && dicom->planar == 1;
    image->big_endian = dicom->big_endian && bits > 8;
    image->exact_only = strcmp(dicom->photometric, "PALETTE COLOR") == 0;
    return TSR_OK;
}

/* ---- Native pixel data -------------------------------------------------------------------------------------- */

/* A number of rows or columns, or of bits, that the size of the pixel data tells: how often unit bits fit. Writers pad
 * values to an even number of bytes. 0: the size does not tell. */
static long number_in(uint64_t available, uint64_t unit, uint64_t most)
{
    const uint64_t number = unit > 0 ? 8 * available / unit : 0;
    return number <= most && 8 * available - number * unit < 16 ? (long)number : 0;
}

/* Fills in one attribute that the header lacks. Returns false if nothing was lacking. */
static bool complete(struct tsr_dicom *d, uint64_t available)
{
    const uint64_t frames = (uint64_t)(d->frames > 0 ? d->frames : 1), samples = (uint64_t)d->samples,
                   columns = d->columns > 0 ? (uint64_t)d->columns : 0, rows = d->rows > 0 ? (uint64_t)d->rows : 0,
                   bits = d->bits_allocated > 0 ? (uint64_t)d->bits_allocated : 0;
    if (columns && rows && bits) return false;
    if (columns && bits) d->rows = number_in(available, frames * samples * columns * bits, UINT16_MAX);
    if (rows && bits) d->columns = number_in(available, frames * samples * rows * bits, UINT16_MAX);
    if (rows && columns) d->bits_allocated = number_in(available, frames * samples * rows * columns, 64);
    return true;
}

/* Turns pixels into others: several of them side by side, or one under the other if they are planar. */
static void reshape(struct tsr_dicom *d, long samples, long bits)
{
    if (d->planar == 1)
        d->rows *= d->samples;
    else
        d->columns *= d->samples;
    d->samples = samples;
    d->bits_allocated = bits;
    d->planar = 0;
}

/* Two pixels are Y, Y, Cb, Cr (PS3.3, C.7.6.3.1.2). They become four components, or bytes if columns are odd. */
static void take_subsampled(struct tsr_dicom *d)
{
    d->planar = 0;
    d->samples = d->columns % 2 ? 1 : 4;
    d->columns = d->columns % 2 ? 2 * d->columns : d->columns / 2;
}

/* Samples of 64 bits become four words, those of 24 bits three bytes, and all others the bytes of their rows. */
static void take_odd_bits(struct tsr_dicom *d)
{
    const int64_t bits = (int64_t)d->columns * d->samples * d->bits_allocated;
    if (d->bits_allocated == 64) {
        reshape(d, 4, 16);
    } else if (d->bits_allocated == 24) {
        reshape(d, 3, 8);
    } else if (bits % 8 == 0 && d->planar != 1) {
        d->columns = (long)(bits / 8);
        d->samples = 1;
        d->bits_allocated = 8;
    }
}

static bool is_usual(long bits)
{
    return bits == 1 || bits == 8 || bits == 16 || bits == 32;
}

/* Cuts an image off where its pixel data ends. The bytes after its last row belong to the suffix. */
static bool cut(struct tsr_image *image, uint64_t available)
{
    const uint64_t frame = tsr_frame_bits(image), left = 8 * available;
    if (left >= frame) {
        image->frames = (uint32_t)(left / frame);
        return true;
    }
    if (image->planar) image->components = 1; /* rows of one component after the other */
    image->planar = false;
    image->frames = 1;
    image->rows = (uint32_t)(left / ((uint64_t)image->columns * image->components * image->bits_allocated));
    return image->rows > 0;
}

enum tsr_status tsr_dicom_native_image(const struct tsr_dicom *dicom, uint32_t tag, uint64_t available,
                                       struct tsr_image *image, const char **only_lossless, struct tsr_error *error)
{
    struct tsr_dicom d = *dicom;
    *only_lossless = NULL;
    if (d.samples < 1) d.samples = 1;
    if (tag != TSR_TAG_PIXEL_DATA) {
        d.bits_allocated = tag == TSR_TAG_FLOAT_PIXELS ? 32 : 64;
        *only_lossless = "floating point numbers";
    }
    const bool is_small = d.samples <= 4 && d.columns <= UINT16_MAX && d.rows <= UINT16_MAX && d.bits_allocated <= 64;
    if (is_small && complete(&d, available)) *only_lossless = "images whose size is a guess";
    if (is_small && is_subsampled(&d)) {
        const uint64_t pixels = (uint64_t)d.columns * (uint64_t)d.rows * (uint64_t)(d.frames > 0 ? d.frames : 1);
        const bool is_422 = !strstr(d.photometric, "_420") && d.samples == 3 && d.bits_allocated == 8;
        if (is_422 && available < 3 * pixels) take_subsampled(&d);
        if (is_422) d.photometric[0] = '\0'; /* some writers say so, and write all samples */
        *only_lossless = "images with subsampled chroma";
    }
    if (is_small && d.columns > 0 && d.rows > 0 && d.bits_allocated > 0 && !is_usual(d.bits_allocated)) {
        take_odd_bits(&d);
        *only_lossless = *only_lossless ? *only_lossless : "samples of this number of bits";
    }
    if (*only_lossless) d.bits_stored = d.high_bit = d.representation = -1; /* all bits are samples */
    TSR_TRY(tsr_dicom_image(&d, image, error));
    image->exact_only = image->exact_only || *only_lossless;
    const uint64_t bits = tsr_frame_bits(image) * image->frames, bytes = bits / 8 + (bits % 8 != 0);
    if (bytes <= available) return TSR_OK;
    *only_lossless = "pixel data that is cut short";
    if (cut(image, available)) return TSR_OK;
    return tsr_fail(error, TSR_ERROR_CORRUPT, "its pixel data has %llu bytes and its header speaks of %llu",
                    (unsigned long long)available, (unsigned long long)bytes);
}
