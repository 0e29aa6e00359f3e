/* Reading PNG: libpng decodes the pixels; all chunks except IDAT are kept as they are. FORMAT.md 4.3. */
#include "io/formats/format.h"

#include <string.h>

static bool is_png(const uint8_t *head, size_t size)
{
    return size >= 8 && memcmp(head, "\x89PNG\r\n\x1a\n", 8) == 0;
}

#if TSR_WITH_PNG
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include "png_file.h"

enum { SIGNATURE_BYTES = 8, CHUNK_OVERHEAD = 12 };
#define FILE_LIMIT ((uint64_t)1 << 31)

struct png_source {
    struct tsr_source base;
    const uint8_t *file;           /* the whole file, held by the input */
    size_t first_idat, after_idat; /* offsets in bytes */
    uint8_t *raster;
};

static enum tsr_status read_blob(struct tsr_source *source, enum tsr_blob blob, uint64_t offset, void *buffer,
                                 size_t size, struct tsr_error *error)
{
    struct png_source *s = (struct png_source *)source;
    (void)error;
    memcpy(buffer, s->file + (blob == TSR_BLOB_PREFIX ? 0 : s->after_idat) + offset, size);
    return TSR_OK;
}

static size_t raster_bytes(const struct tsr_image *image)
{
    return (size_t)(tsr_frame_bits(image) / 8);
}

static enum tsr_status read_frame(struct tsr_source *source, uint32_t frame, uint8_t *raster, struct tsr_error *error)
{
    struct png_source *s = (struct png_source *)source;
    (void)frame;
    (void)error;
    memcpy(raster, s->raster, raster_bytes(&source->header.image));
    return TSR_OK;
}

static void close_png(struct tsr_source *source)
{
    struct png_source *s = (struct png_source *)source;
    free(s->raster);
    free(s);
}

static const struct tsr_source_ops png_ops = {read_blob, read_frame, NULL, close_png};

static uint32_t read_u32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Finds the IDAT chunks, which must follow each other directly. All bytes after them are the suffix, also those after
 * IEND. */
static enum tsr_status find_chunks(struct png_source *s, size_t size, struct tsr_error *error)
{
    size_t at = SIGNATURE_BYTES;
    bool ended = false;
    while (!ended) {
        if (size - at < CHUNK_OVERHEAD || read_u32(s->file + at) > size - at - CHUNK_OVERHEAD)
            return tsr_fail(error, TSR_ERROR_CORRUPT, "its chunk at byte %zu does not fit the file", at);
        const size_t length = CHUNK_OVERHEAD + (size_t)read_u32(s->file + at);
        const uint8_t *type = s->file + at + 4;
        if (memcmp(type, "IDAT", 4) == 0) {
            if (s->first_idat == 0)
                s->first_idat = at;
            else if (at != s->after_idat)
                return tsr_fail(error, TSR_ERROR_CORRUPT, "its IDAT chunks do not stand together");
            s->after_idat = at + length;
        }
        if (memcmp(type, "acTL", 4) == 0) return tsr_fail(error, TSR_ERROR_CORRUPT, "it is an animated PNG");
        ended = memcmp(type, "IEND", 4) == 0;
        at += length;
    }
    if (s->first_idat == 0) return tsr_fail(error, TSR_ERROR_CORRUPT, "it has no IDAT chunk");
    return TSR_OK;
}

/* State of libpng's callbacks. It lives outside the stack frame that longjmp leaves. */
struct decoding {
    const uint8_t *bytes;
    size_t size, at;
    png_bytep *rows;
    char message[200];
};

static void give_bytes(png_structp png, png_bytep out, size_t size)
{
    struct decoding *d = png_get_io_ptr(png);
    if (size > d->size - d->at) png_error(png, "the file ends early");
    memcpy(out, d->bytes + d->at, size);
    d->at += size;
}

static void keep_message(png_structp png, png_const_charp message)
{
    struct decoding *d = png_get_error_ptr(png);
    snprintf(d->message, sizeof d->message, "%s", message);
    png_longjmp(png, 1);
}

static void ignore_warning(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

/* Describes the image of a header that libpng has read. */
static enum tsr_status describe(struct png_source *s, png_structp png, png_infop info, struct tsr_error *error)
{
    struct tsr_header *header = &s->base.header;
    struct tsr_image *image = &header->image;
    const int depth = png_get_bit_depth(png, info), type = png_get_color_type(png, info);
    image->columns = png_get_image_width(png, info);
    image->rows = png_get_image_height(png, info);
    image->frames = 1;
    image->components = png_get_channels(png, info);
    image->bits_allocated = depth == 16 ? 16 : 8;
    image->bits_stored = (uint8_t)depth;
    image->high_bit = (uint8_t)(depth - 1);
    image->big_endian = depth == 16;
    image->exact_only = type == PNG_COLOR_TYPE_PALETTE || depth == 1;
    header->kind = TSR_KIND_PNG;
    header->restore = TSR_RESTORE_PNG;
    header->parameters[TSR_PNG_COLOUR_TYPE] = (uint8_t)type;
    header->parameters[TSR_PNG_INTERLACE] = png_get_interlace_type(png, info) != PNG_INTERLACE_NONE;
    header->parameter_count = TSR_PNG_PARAMETERS;
    return tsr_check_image(image, error) == TSR_OK ? TSR_OK : TSR_ERROR_CORRUPT;
}

static enum tsr_status decode(struct png_source *s, struct decoding *d, struct tsr_error *error)
{
    enum tsr_status status;
    png_infop info = NULL;
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, d, keep_message, ignore_warning);
    if (png) info = png_create_info_struct(png);
    if (!info) {
        png_destroy_read_struct(&png, NULL, NULL);
        return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for libpng");
    }
    if (setjmp(png_jmpbuf(png))) {
        png_destroy_read_struct(&png, &info, NULL);
        return tsr_fail(error, tsr_png_status(d->message), "libpng: %s", d->message);
    }
    png_set_read_fn(png, d, give_bytes);
    png_set_user_limits(png, 65535, 65535);
    /* Ancillary chunks are kept as bytes, so libpng need not parse them. */
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_read_info(png, info);
    status = describe(s, png, info, error);
    if (status == TSR_OK) {
        if (png_get_bit_depth(png, info) < 8) png_set_packing(png);
        png_set_interlace_handling(png);
        png_read_update_info(png, info);
        const size_t pitch = png_get_rowbytes(png, info), rows = s->base.header.image.rows;
        s->raster = malloc(pitch * rows);
        d->rows = malloc(rows * sizeof *d->rows);
        if (!s->raster || !d->rows) {
            status = tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu bytes of pixels", pitch * rows);
        } else {
            for (size_t y = 0; y < rows; y++) d->rows[y] = s->raster + y * pitch;
            png_read_image(png, d->rows);
            png_read_end(png, NULL);
        }
    }
    png_destroy_read_struct(&png, &info, NULL);
    return status;
}

/* Checks the size of the image in the header before libpng uses it, and claims memory for the image. */
static enum tsr_status claim(struct tsr_input *input, struct tsr_error *error)
{
    enum { HEAD_BYTES = SIGNATURE_BYTES + CHUNK_OVERHEAD + 13, SAMPLE_BYTES = 2, DECODER_BYTES = 1 << 18 };
    static const uint8_t channels[7] = {1, 0, 3, 1, 2, 0, 4};
    const uint8_t *head;
    if (tsr_input_size(input) < HEAD_BYTES) return tsr_fail(error, TSR_ERROR_CORRUPT, "it has no IHDR chunk");
    TSR_TRY(tsr_input_hold(input, HEAD_BYTES, &head, error));
    if (memcmp(head + SIGNATURE_BYTES + 4, "IHDR", 4) != 0)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "its first chunk is no IHDR");
    const uint8_t *const ihdr = head + SIGNATURE_BYTES + 8, depth = ihdr[8], type = ihdr[9];
    struct tsr_image image = {.columns = read_u32(ihdr), .rows = read_u32(ihdr + 4), .frames = 1};
    image.components = type < sizeof channels ? channels[type] : 0;
    image.bits_allocated = image.bits_stored = depth == 16 ? 16 : 8;
    image.high_bit = image.bits_stored - 1;
    if (tsr_check_image(&image, error) != TSR_OK) return TSR_ERROR_CORRUPT;
    const uint64_t row = (uint64_t)image.columns * image.components * SAMPLE_BYTES;
    return tsr_input_claim(
        input, &image,
        tsr_input_size(input) + raster_bytes(&image) + image.rows * sizeof(png_bytep) + 8 * row + DECODER_BYTES, error);
}

static enum tsr_status open_png(struct tsr_input *input, const struct tsr_source_options *options,
                                struct tsr_source **source, struct tsr_error *error)
{
    (void)options;
    const uint64_t size = tsr_input_size(input);
    *source = NULL;
    if (size > FILE_LIMIT) return tsr_fail(error, TSR_ERROR_CORRUPT, "it is a PNG of more than 2 GiB");
    TSR_TRY(claim(input, error));
    struct png_source *s = calloc(1, sizeof *s);
    if (!s) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a source");
    s->base.ops = &png_ops;
    enum tsr_status status = tsr_input_hold(input, (size_t)size, &s->file, error);
    if (status == TSR_OK) status = find_chunks(s, (size_t)size, error);
    if (status == TSR_OK) {
        struct decoding decoding = {s->file, (size_t)size, 0, NULL, ""};
        status = decode(s, &decoding, error);
        free(decoding.rows);
    }
    if (status != TSR_OK) {
        close_png(&s->base);
        return status;
    }
    s->base.blob_size[TSR_BLOB_PREFIX] = s->first_idat;
    s->base.blob_size[TSR_BLOB_SUFFIX] = size - s->after_idat;
    *source = &s->base;
    return TSR_OK;
}

#else

static enum tsr_status open_png(struct tsr_input *input, const struct tsr_source_options *options,
                                struct tsr_source **source, struct tsr_error *error)
{
    (void)options;
    (void)input;
    *source = NULL;
    return tsr_fail(error, TSR_ERROR_CORRUPT, "this build has no libpng");
}

#endif

const struct tsr_format tsr_png_format = {TSR_KIND_PNG, "png", is_png, open_png};
