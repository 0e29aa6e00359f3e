/* Samples as a picture; see picture.h. */
#include "picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/bytes/cursor.h"
#include "io/nodes/png/png_chunks.h"
#include "io/nodes/png/png_writer.h"
#include "transform/planes/raster_words.h"

enum tsr_status tsr_check_picture(enum tsr_picture picture, struct tsr_error *error)
{
    if ((unsigned)picture <= TSR_PICTURE_PNM) return TSR_OK;
    return tsr_fail(error, TSR_ERROR_USAGE, "picture is %d, and no kind of picture", (int)picture);
}

/* The colour type of a PNG, by components. */
static const uint8_t colour_types[] = {0, 0, 4, 2, 6};

static enum tsr_status check(const struct tsr_image *image, uint32_t frames, enum tsr_picture picture,
                             struct tsr_error *error)
{
    const char *const name = picture == TSR_PICTURE_PNG ? "PNG" : "PNM";
    if (picture == TSR_PICTURE_NPY) return TSR_OK;
    if (image->is_float || image->is_signed || image->bits_allocated > 16)
        return tsr_fail(error, TSR_ERROR_USAGE, "a %s has no %s samples%s: .npy has them", name,
                        image->is_float    ? "floating-point"
                        : image->is_signed ? "negative"
                                           : "such large",
                        image->is_signed || image->is_float ? "" : " (over 16 bits)");
    if (picture == TSR_PICTURE_PNM && image->components % 2 == 0)
        return tsr_fail(error, TSR_ERROR_USAGE, "a PNM has one component or three, not %u: .npy and PNG have them",
                        image->components);
    if (picture == TSR_PICTURE_PNG && frames > 1)
        return tsr_fail(error, TSR_ERROR_USAGE,
                        "a PNG has one frame, not %u: choose one, or take .npy or PNM for all of them", frames);
    return TSR_OK;
}

/* The format's version 1.0: a dictionary of Python, filled with spaces so that the data begin at a multiple of 64. */
static enum tsr_status begin_npy(struct tsr_picture_file *f, uint32_t frames, struct tsr_error *error)
{
    enum { HEAD = 10, LINE = 64 };
    char text[3 * LINE], components[16] = "";
    const struct tsr_image *const image = &f->image;
    if (image->components > 1) snprintf(components, sizeof components, ", %u", image->components);
    memset(text, ' ', sizeof text);
    const int used = snprintf(text + HEAD, sizeof text - HEAD,
                              "{'descr': '%c%c%zu', 'fortran_order': False, 'shape': (%u, %u, %u%s), }",
                              f->sample_bytes > 1 ? '<' : '|',
                              image->is_float    ? 'f'
                              : image->is_signed ? 'i'
                                                 : 'u',
                              f->sample_bytes, frames, image->rows, image->columns, components);
    const size_t size = ((size_t)HEAD + (size_t)used + 1 + LINE - 1) / LINE * LINE;
    text[HEAD + used] = ' ';
    text[size - 1] = '\n';
    memcpy(text, "\x93NUMPY\1\0", 8);
    text[8] = (char)((size - HEAD) & 0xff);
    text[9] = (char)((size - HEAD) >> 8);
    return tsr_output_write(f->output, text, size, error);
}

static enum tsr_status begin_pnm(struct tsr_picture_file *f, uint32_t frames, struct tsr_error *error)
{
    char text[80];
    const int used = snprintf(text, sizeof text, "P%c\n%u %llu\n%u\n", f->image.components == 1 ? '5' : '6',
                              f->image.columns, (unsigned long long)f->image.rows * frames,
                              f->image.bits_allocated == 1 ? 1u : (1u << (8 * f->sample_bytes)) - 1);
    return tsr_output_write(f->output, text, (size_t)used, error);
}

static enum tsr_status begin_png(struct tsr_picture_file *f, struct tsr_error *error)
{
    uint8_t ihdr[TSR_PNG_IHDR_BYTES] = {0}, start[TSR_PNG_START_BYTES];
    tsr_put_u32_be(ihdr, f->image.columns);
    tsr_put_u32_be(ihdr + 4, f->image.rows);
    ihdr[8] = (uint8_t)(8 * f->sample_bytes);
    ihdr[9] = colour_types[f->image.components];
    tsr_png_start_of(ihdr, start);
    return tsr_output_write(f->output, start, sizeof start, error);
}

enum tsr_status tsr_picture_begin(struct tsr_picture_file *f, const struct tsr_image *image, uint32_t frames,
                                  enum tsr_picture picture, const struct tsr_data_sink *sink,
                                  const struct tsr_input *source, struct tsr_error *error)
{
    *f = (struct tsr_picture_file){.picture = picture, .image = *image};
    f->image.frames = 1;
    f->image.swapped = false;
    f->sample_bytes = image->bits_allocated < 8 ? 1 : image->bits_allocated / 8u;
    TSR_TRY(check(image, frames, picture, error));
    const size_t row = (size_t)image->columns * image->components * f->sample_bytes;
    f->values = malloc(picture == TSR_PICTURE_PNG ? row * image->rows : row);
    if (!f->values) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a picture of %u rows", image->rows);
    TSR_TRY(tsr_open_sink(sink, true, &f->output, error));
    tsr_output_inherit(f->output, source);
    tsr_output_forgo_hash(f->output);
    return picture == TSR_PICTURE_NPY   ? begin_npy(f, frames, error)
           : picture == TSR_PICTURE_PNM ? begin_pnm(f, frames, error)
                                        : begin_png(f, error);
}

void tsr_picture_close(struct tsr_picture_file *f)
{
    tsr_output_close(f->output);
    free(f->values);
}

/* The value of sample number i of a raster, as the low bytes of a number. */
static uint64_t value_at(const struct tsr_image *image, const uint8_t *raster, size_t i)
{
    if (image->bits_allocated < 64) return (uint64_t)tsr_raster_value(image, raster, i);
    uint64_t value = 0;
    for (size_t k = 0; k < 8; k++) value = value << 8 | raster[8 * i + (image->big_endian ? k : 7 - k)];
    return value;
}

/* Row y of a raster as the picture has it: components together, and the bytes of a value in the picture's order. */
static void take_row(const struct tsr_picture_file *f, const uint8_t *raster, const uint8_t *held, uint32_t y,
                     uint8_t *out)
{
    const struct tsr_image *const image = &f->image;
    const size_t width = f->sample_bytes, components = image->components,
                 plane = image->planar ? (size_t)image->columns * image->rows : 1,
                 step = image->planar ? 1 : components;
    for (size_t x = 0; x < image->columns; x++) {
        const size_t pixel = (size_t)y * image->columns + x;
        for (size_t c = 0; c < components; c++, out += width) {
            const uint64_t value = !held || held[pixel] ? value_at(image, raster, pixel * step + c * plane) : 0;
            for (size_t k = 0; k < width; k++)
                out[f->picture == TSR_PICTURE_NPY ? k : width - 1 - k] = (uint8_t)(value >> (8 * k));
        }
    }
}

static enum tsr_status put_png(struct tsr_picture_file *f, struct tsr_error *error)
{
    struct tsr_image image = {.columns = f->image.columns,
                              .rows = f->image.rows,
                              .frames = 1,
                              .components = f->image.components,
                              .bits_allocated = (uint8_t)(8 * f->sample_bytes)};
    image.bits_stored = image.bits_allocated;
    image.high_bit = (uint8_t)(image.bits_stored - 1);
    TSR_TRY(tsr_png_write_raster((struct tsr_png_rows){&image, false}, colour_types[image.components], NULL, f->values,
                                 f->output, error));
    return tsr_output_write(f->output, tsr_png_end, TSR_PNG_END_BYTES, error);
}

enum tsr_status tsr_picture_put(struct tsr_picture_file *f, const uint8_t *raster, const uint8_t *held,
                                struct tsr_error *error)
{
    const size_t row = (size_t)f->image.columns * f->image.components * f->sample_bytes;
    for (uint32_t y = 0; y < f->image.rows; y++) {
        uint8_t *const values = f->picture == TSR_PICTURE_PNG ? f->values + y * row : f->values;
        take_row(f, raster, held, y, values);
        if (f->picture != TSR_PICTURE_PNG) TSR_TRY(tsr_output_write(f->output, values, row, error));
    }
    return f->picture == TSR_PICTURE_PNG ? put_png(f, error) : TSR_OK;
}

enum tsr_status tsr_picture_end(struct tsr_picture_file *f, struct tsr_engine *engine, struct tsr_report *report,
                                struct tsr_error *error)
{
    TSR_TRY(tsr_finish_file(engine, f->output, report, error));
    report->bytes_out = tsr_output_size(f->output);
    return TSR_OK;
}
