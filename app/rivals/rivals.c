/* Rivals: sizes of PNG, JPEG-LS and JPEG files. */
#include "rivals.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/formats/png/png_file.h"
#include "app/library/measure.h"

#if TSR_WITH_CHARLS
#include <charls/charls.h>
#endif
#if TSR_WITH_JPEG
#include <setjmp.h>
#include <jpeglib.h>
#endif

/* Samples as bytes: one each up to 8 bits, else two in the machine's order. NULL if there is no memory. */
static uint8_t *as_bytes(const struct picture *p, size_t *size)
{
    const size_t count = (size_t)p->columns * (size_t)p->rows * (size_t)p->channels;
    *size = p->bits > 8 ? 2 * count : count;
    uint8_t *bytes = malloc(*size);
    if (!bytes) return NULL;
    if (p->bits > 8)
        memcpy(bytes, p->samples, *size);
    else
        for (size_t i = 0; i < count; i++) bytes[i] = (uint8_t)p->samples[i];
    return bytes;
}

uint64_t png_bytes(const struct picture *p)
{
    size_t size;
    uint8_t *bytes = as_bytes(p, &size);
    struct tsr_output *output = tsr_output_to_null();
    struct tsr_image image = {0};
    uint64_t result = 0;
    image.columns = (uint32_t)p->columns;
    image.rows = (uint32_t)p->rows;
    image.frames = 1;
    image.components = (uint8_t)p->channels;
    image.bits_allocated = p->bits > 8 ? 16 : 8;
    image.bits_stored = image.bits_allocated;
    if (p->channels == 1 && p->bits <= 4)
        image.bits_stored = p->bits > 2 ? 4 : (uint8_t)p->bits; /* PNG knows 1, 2, 4 */
    image.high_bit = image.bits_stored - 1;
    if (bytes && output && tsr_png_put_file(&image, bytes, output, NULL) == TSR_OK) result = tsr_output_size(output);
    tsr_output_close(output);
    free(bytes);
    return result;
}

#if TSR_WITH_CHARLS
uint64_t jpeg_ls_bytes(const struct picture *p)
{
    size_t size, written = 0;
    uint8_t *bytes = as_bytes(p, &size);
    const size_t room = 2 * size + 4096;
    uint8_t *out = malloc(room);
    charls_jpegls_encoder *encoder = charls_jpegls_encoder_create();
    const charls_frame_info info = {(uint32_t)p->columns, (uint32_t)p->rows, p->bits < 2 ? 2 : p->bits, p->channels};
    bool ok = bytes && out && encoder && charls_jpegls_encoder_set_frame_info(encoder, &info) == 0;
    if (ok && p->channels > 1)
        ok = charls_jpegls_encoder_set_interleave_mode(encoder, CHARLS_INTERLEAVE_MODE_SAMPLE) == 0;
    ok = ok && charls_jpegls_encoder_set_destination_buffer(encoder, out, room) == 0 &&
         charls_jpegls_encoder_encode_from_buffer(encoder, bytes, size, 0) == 0 &&
         charls_jpegls_encoder_get_bytes_written(encoder, &written) == 0;
    charls_jpegls_encoder_destroy(encoder);
    free(bytes);
    free(out);
    return ok ? written : 0;
}
#else
uint64_t jpeg_ls_bytes(const struct picture *p)
{
    (void)p;
    return 0;
}
#endif

#if TSR_WITH_JPEG
/* libjpeg's error handler that comes back. */
struct jpeg_escape {
    struct jpeg_error_mgr manager;
    jmp_buf back;
};

static void escape(j_common_ptr info)
{
    longjmp(((struct jpeg_escape *)info->err)->back, 1);
}

static void say_nothing(j_common_ptr info)
{
    (void)info;
}

/* A JPEG file at a scale of the standard tables in percent; bytes is allocated by libjpeg, free() frees it. */
static bool encode_jpeg(const uint8_t *samples, int columns, int rows, int channels, int scale, bool optimised,
                        unsigned char **bytes, unsigned long *size)
{
    struct jpeg_compress_struct info;
    struct jpeg_escape error;
    *bytes = NULL;
    *size = 0;
    info.err = jpeg_std_error(&error.manager);
    error.manager.error_exit = escape;
    error.manager.output_message = say_nothing;
    if (setjmp(error.back)) {
        jpeg_destroy_compress(&info);
        return false;
    }
    jpeg_create_compress(&info);
    jpeg_mem_dest(&info, bytes, size);
    info.image_width = (JDIMENSION)columns;
    info.image_height = (JDIMENSION)rows;
    info.input_components = channels;
    info.in_color_space = channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
    jpeg_set_defaults(&info);
    jpeg_set_linear_quality(&info, scale, TRUE);
    info.optimize_coding = optimised;
    for (int c = 0; c < info.num_components; c++) info.comp_info[c].h_samp_factor = info.comp_info[c].v_samp_factor = 1;
    jpeg_start_compress(&info, TRUE);
    while (info.next_scanline < info.image_height) {
        JSAMPROW row = (JSAMPROW)(uintptr_t)(samples + (size_t)info.next_scanline * (size_t)columns * (size_t)channels);
        jpeg_write_scanlines(&info, &row, 1);
    }
    jpeg_finish_compress(&info);
    jpeg_destroy_compress(&info);
    return true;
}

static bool decode_jpeg(const unsigned char *bytes, unsigned long size, int columns, int channels, uint8_t *samples)
{
    struct jpeg_decompress_struct info;
    struct jpeg_escape error;
    info.err = jpeg_std_error(&error.manager);
    error.manager.error_exit = escape;
    error.manager.output_message = say_nothing;
    if (setjmp(error.back)) {
        jpeg_destroy_decompress(&info);
        return false;
    }
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, bytes, size);
    jpeg_read_header(&info, TRUE);
    jpeg_start_decompress(&info);
    while (info.output_scanline < info.output_height) {
        JSAMPROW row = samples + (size_t)info.output_scanline * (size_t)columns * (size_t)channels;
        jpeg_read_scanlines(&info, &row, 1);
    }
    jpeg_finish_decompress(&info);
    jpeg_destroy_decompress(&info);
    return true;
}

struct jpeg_search {
    const uint8_t *samples;
    uint8_t *decoded;
    int columns, rows, channels;
};

/* PSNR of the JPEG at a scale, and its size; negative where there is none. */
static double jpeg_psnr(const struct jpeg_search *s, int scale, unsigned long *size)
{
    unsigned char *bytes;
    const size_t count = (size_t)s->columns * (size_t)s->rows * (size_t)s->channels;
    bool ok = encode_jpeg(s->samples, s->columns, s->rows, s->channels, scale, false, &bytes, size);
    ok = ok && decode_jpeg(bytes, *size, s->columns, s->channels, s->decoded);
    free(bytes);
    if (!ok) return -1;
    uint64_t squares = 0;
    for (size_t i = 0; i < count; i++) {
        const int d = s->samples[i] - s->decoded[i];
        squares += (uint64_t)(d * d);
    }
    return squares == 0 ? INFINITY : 10 * log10(255.0 * 255.0 * (double)count / (double)squares);
}

/* Size at a scale with tables made for the picture; 0 where there is none. */
static unsigned long optimised_size(const struct jpeg_search *s, int scale)
{
    unsigned char *bytes;
    unsigned long size;
    const bool ok = encode_jpeg(s->samples, s->columns, s->rows, s->channels, scale, true, &bytes, &size);
    free(bytes);
    return ok ? size : 0;
}

static uint64_t interpolate(double above, double below, double share)
{
    return (uint64_t)llround(exp(log(above) + share * (log(below) - log(above))));
}

struct jpeg_size jpeg_at_psnr(const uint8_t *samples, int columns, int rows, int channels, double psnr_db)
{
    struct jpeg_size result = {0, 0};
    struct jpeg_search search = {samples, malloc((size_t)columns * (size_t)rows * (size_t)channels), columns, rows,
                                 channels};
    unsigned long size = 0, next = 0;
    int low = 1, high = 5000; /* percent: 1 is all ones, 5000 libjpeg's quality 1 */
    if (search.decoded && (channels == 1 || channels == 3) && jpeg_psnr(&search, low, &size) >= psnr_db) {
        while (low < high) { /* the largest scale that still reaches the PSNR */
            const int middle = (low + high + 1) / 2;
            if (jpeg_psnr(&search, middle, &size) >= psnr_db)
                low = middle;
            else
                high = middle - 1;
        }
        const double above = jpeg_psnr(&search, low, &size), below = jpeg_psnr(&search, low + 1, &next);
        const double share =
            isfinite(above) && above > below && below < psnr_db ? (above - psnr_db) / (above - below) : 0;
        result.bytes = interpolate((double)size, (double)next, share);
        const unsigned long optimised = optimised_size(&search, low), next_optimised = optimised_size(&search, low + 1);
        if (optimised && next_optimised)
            result.optimised_bytes = interpolate((double)optimised, (double)next_optimised, share);
    }
    free(search.decoded);
    return result;
}
#else
struct jpeg_size jpeg_at_psnr(const uint8_t *samples, int columns, int rows, int channels, double psnr_db)
{
    const struct jpeg_size none = {0, 0};
    (void)samples;
    (void)columns;
    (void)rows;
    (void)channels;
    (void)psnr_db;
    return none;
}
#endif
