/* Images and codings: limits, sizes, names. */
#include "image.h"

#include "status.h"
#include "tiling.h"

/* What a later version may know does not count here: it is refused, never ignored. */
static bool is_zero(const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i]) return false;
    return true;
}

uint64_t tsr_frame_bits(const struct tsr_image *image)
{
    return (uint64_t)image->columns * image->rows * image->components * image->bits_allocated;
}

/* takes_values: samples may be floating-point numbers, or have 64 bits. */
static enum tsr_status check_image(const struct tsr_image *image, bool takes_values, struct tsr_error *error)
{
    if (!image) return tsr_fail(error, TSR_ERROR_USAGE, "image is NULL");
    const int bits = image->bits_allocated;
    if (image->columns < 1 || image->columns > 65535 || image->rows < 1 || image->rows > 65535)
        return tsr_fail(error, TSR_ERROR_LIMIT, "an image of %u x %u samples is outside 1 x 1 to 65535 x 65535",
                        image->columns, image->rows);
    if (image->frames < 1 || image->frames > INT32_MAX)
        return tsr_fail(error, TSR_ERROR_LIMIT, "%u frames are outside 1 to %d", image->frames, INT32_MAX);
    if (image->components < 1 || image->components > 4)
        return tsr_fail(error, TSR_ERROR_LIMIT, "%u components are outside 1 to 4", image->components);
    if (bits != 1 && bits != 8 && bits != 16 && bits != 32 && !(takes_values && bits == 64))
        return tsr_fail(error, TSR_ERROR_LIMIT, "%d bits allocated: 1, 8, 16 or 32 are possible", bits);
    if (image->bits_stored < 1 || image->bits_stored > bits || image->high_bit >= bits ||
        image->high_bit + 1 < image->bits_stored)
        return tsr_fail(error, TSR_ERROR_USAGE, "%u bits stored below bit %u do not fit %d bits allocated",
                        image->bits_stored, image->high_bit, bits);
    if ((image->is_float && bits < 32) || ((image->is_float || bits == 64) && image->bits_stored < bits))
        return tsr_fail(error, TSR_ERROR_USAGE, "%u bits stored of %d are not possible for %s", image->bits_stored,
                        bits, image->is_float ? "floating-point samples" : "samples of 64 bits");
    const uint64_t samples = (uint64_t)image->columns * image->rows * image->components;
    if (samples > TSR_FRAME_SAMPLES_LIMIT)
        return tsr_fail(error, TSR_ERROR_LIMIT, "a frame of %llu samples is over the limit of %llu",
                        (unsigned long long)samples, (unsigned long long)TSR_FRAME_SAMPLES_LIMIT);
    if (image->stacked_rows && image->rows % image->stacked_rows != 0)
        return tsr_fail(error, TSR_ERROR_USAGE, "an image of %u x %u samples is not a stack of images of %u rows",
                        image->columns, image->rows, image->stacked_rows);
    if (image->swapped && (bits > 8 || tsr_frame_bits(image) % 16 != 0))
        return tsr_fail(error, TSR_ERROR_USAGE, "a frame of %llu bits cannot be swapped in pairs of bytes",
                        (unsigned long long)tsr_frame_bits(image));
    if (image->tile_side % TSR_TILE_SIDE_STEP != 0 || image->tile_side > TSR_TILE_SIDE_LIMIT)
        return tsr_fail(error, TSR_ERROR_USAGE, "tile_side %u is not 64, 128, 192 or 256", image->tile_side);
    if (!is_zero(image->reserved, sizeof image->reserved))
        return tsr_fail(error, TSR_ERROR_USAGE,
                        "reserved bytes of an image are not 0: begin with a structure of zeros");
    return TSR_OK;
}

enum tsr_status tsr_check_image(const struct tsr_image *image, struct tsr_error *error)
{
    return check_image(image, true, error);
}

enum tsr_status tsr_check_coded_image(const struct tsr_image *image, struct tsr_error *error)
{
    TSR_TRY(check_image(image, false, error));
    if (!image->is_float) return TSR_OK;
    return tsr_fail(error, TSR_ERROR_USAGE, "floating-point samples are coded in files alone");
}

int32_t tsr_lowest_qp(int bits_stored)
{
    return -6 * (bits_stored - 8) * TSR_QP_UNIT;
}

int32_t tsr_coarsest_qp(int bits_stored)
{
    return tsr_lowest_qp(bits_stored) + 99 * TSR_QP_UNIT;
}

/* The coder of an effort: the one place where it is chosen. Efforts below are those that a GPU's encoder is to keep its
 * rate with: rANS codes a lane's symbols one after the other. */
enum { TSR_EFFORT_RANS = 7 };

static enum tsr_coder coder_of_effort(int effort)
{
    return effort >= TSR_EFFORT_RANS ? TSR_CODER_RANS : TSR_CODER_HUFFMAN;
}

enum tsr_status tsr_resolve_coding(struct tsr_coding *coding, struct tsr_error *error)
{
    if (!coding) return tsr_fail(error, TSR_ERROR_USAGE, "coding is NULL");
    if (coding->effort < 0 || coding->effort > 9)
        return tsr_fail(error, TSR_ERROR_USAGE, "effort %d is outside 1 to 9", coding->effort);
    if (coding->path != TSR_PATH_PREDICT && coding->path != TSR_PATH_TRANSFORM)
        return tsr_fail(error, TSR_ERROR_USAGE, "path %d is not known", (int)coding->path);
    if ((int)coding->coder < TSR_CODER_BY_EFFORT || coding->coder > TSR_CODER_RANS)
        return tsr_fail(error, TSR_ERROR_USAGE, "coder %d is not known", (int)coding->coder);
    if (coding->tune > TSR_TUNE_SSIM) return tsr_fail(error, TSR_ERROR_USAGE, "tune %u is not known", coding->tune);
    if (!is_zero(coding->reserved, sizeof coding->reserved))
        return tsr_fail(error, TSR_ERROR_USAGE,
                        "reserved bytes of a coding are not 0: begin with a structure of zeros");
    if (coding->effort == 0) coding->effort = TSR_EFFORT_DEFAULT;
    if (coding->coder == TSR_CODER_BY_EFFORT) coding->coder = coder_of_effort(coding->effort);
    return TSR_OK;
}

const char *tsr_path_name(enum tsr_path path)
{
    return path == TSR_PATH_TRANSFORM ? "transform" : "predict";
}

const char *tsr_coder_name(enum tsr_coder coder)
{
    return coder == TSR_CODER_CAVLC ? "cavlc" : coder == TSR_CODER_RANS ? "rans" : "huffman";
}
