/* Rivals: JPEG at a PSNR, by libjpeg. */
#include "rivals.h"

#if TSR_WITH_JPEG
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

/* An error handler of libjpeg that returns to the caller. */
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

/* Makes a JPEG file at a scale of the standard tables in percent. libjpeg allocates bytes; the caller frees them with
 * free(). */
static bool encode_jpeg(const struct picture *p, int scale, bool optimised, unsigned char **bytes, unsigned long *size)
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
    info.image_width = (JDIMENSION)p->columns;
    info.image_height = (JDIMENSION)p->rows;
    info.input_components = p->channels;
    info.in_color_space = p->channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
    jpeg_set_defaults(&info);
    jpeg_set_linear_quality(&info, scale, TRUE);
    info.optimize_coding = optimised;
    for (int c = 0; c < info.num_components; c++) info.comp_info[c].h_samp_factor = info.comp_info[c].v_samp_factor = 1;
    jpeg_start_compress(&info, TRUE);
    const size_t pitch = (size_t)p->columns * (size_t)p->channels;
    while (info.next_scanline < info.image_height) {
        JSAMPROW row = p->samples + info.next_scanline * pitch;
        jpeg_write_scanlines(&info, &row, 1);
    }
    jpeg_finish_compress(&info);
    jpeg_destroy_compress(&info);
    return true;
}

static bool decode_jpeg(const unsigned char *bytes, unsigned long size, size_t pitch, uint8_t *samples)
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
        JSAMPROW row = samples + info.output_scanline * pitch;
        jpeg_read_scanlines(&info, &row, 1);
    }
    jpeg_finish_decompress(&info);
    jpeg_destroy_decompress(&info);
    return true;
}

struct jpeg_search {
    const struct picture *picture;
    uint8_t *decoded;
};

/* The PSNR of the JPEG at a scale, and its size; negative: the codec failed. */
static double jpeg_psnr(const struct jpeg_search *s, int scale, unsigned long *size)
{
    unsigned char *bytes;
    const size_t count = s->picture->bytes;
    bool ok = encode_jpeg(s->picture, scale, false, &bytes, size);
    ok = ok && decode_jpeg(bytes, *size, count / (size_t)s->picture->rows, s->decoded);
    free(bytes);
    if (!ok) return -1;
    uint64_t squares = 0;
    for (size_t i = 0; i < count; i++) {
        const int d = s->picture->samples[i] - s->decoded[i];
        squares += (uint64_t)(d * d);
    }
    return squares == 0 ? INFINITY : 10 * log10(255.0 * 255.0 * (double)count / (double)squares);
}

/* The size at a scale with tables made for the picture; 0: the codec failed. */
static unsigned long optimised_size(const struct jpeg_search *s, int scale)
{
    unsigned char *bytes;
    unsigned long size;
    const bool ok = encode_jpeg(s->picture, scale, true, &bytes, &size);
    free(bytes);
    return ok ? size : 0;
}

static uint64_t interpolate(double above, double below, double share)
{
    return (uint64_t)llround(exp(log(above) + share * (log(below) - log(above))));
}

struct jpeg_size jpeg_at_psnr(const struct picture *p, double psnr_db)
{
    struct jpeg_size result = {0, 0};
    if (p->bits > 8 || (p->channels != 1 && p->channels != 3)) return result;
    struct jpeg_search search = {p, malloc(p->bytes)};
    unsigned long size = 0, next = 0;
    int low = 1, high = 5000; /* percent: at 1 all steps are 1; 5000 is libjpeg's quality 1 */
    if (search.decoded && jpeg_psnr(&search, low, &size) >= psnr_db) {
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
struct jpeg_size jpeg_at_psnr(const struct picture *p, double psnr_db)
{
    const struct jpeg_size none = {0, 0};
    (void)p;
    (void)psnr_db;
    return none;
}
#endif
