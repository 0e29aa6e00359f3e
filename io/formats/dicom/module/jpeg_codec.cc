/* Lossy JPEG by libjpeg; see jpeg_codec.h. */
#include "jpeg_codec.h"

#if TSR_WITH_JPEG

#include <csetjmp>
#include <cstdio>
#include <jpeglib.h>
#include <jerror.h>

namespace
{

/* libjpeg's errors end here. */
struct failure {
    jpeg_error_mgr manager;
    jmp_buf back;
    int code; /* libjpeg's, of the error */
};

[[noreturn]] void give_up(j_common_ptr info)
{
    failure &f = *reinterpret_cast<failure *>(info->err);
    f.code = f.manager.msg_code;
    longjmp(f.back, 1);
}

void say_nothing(j_common_ptr)
{
}

void say_less(j_common_ptr, int)
{
}

/* A progressive stream of very many scans takes long. */
void check_scans(j_common_ptr info)
{
    enum { MOST_SCANS = 1024 };
    if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number > MOST_SCANS) info->err->error_exit(info);
}

bool is_of_image(const jpeg_decompress_struct &info, const tsr_image &image)
{
    return info.image_width == image.columns && info.image_height == image.rows &&
           info.num_components == image.components && info.data_precision == 8 && image.bits_allocated == 8;
}

/* 0: decoded; 1: of another image. No object with a destructor lives where longjmp passes. */
int decode(jpeg_decompress_struct &info, const tsr_image &image, const uint8_t *stream, size_t size, uint8_t *raster)
{
    jpeg_mem_src(&info, stream, static_cast<unsigned long>(size));
    jpeg_read_header(&info, TRUE);
    if (!is_of_image(info, image)) return 1;
    if (!jpeg_start_decompress(&info) || info.output_components != image.components) return 1;
    const size_t row = static_cast<size_t>(image.columns) * image.components;
    while (info.output_scanline < info.output_height) {
        JSAMPROW rows[1] = {raster + row * info.output_scanline};
        jpeg_read_scanlines(&info, rows, 1);
    }
    jpeg_finish_decompress(&info);
    return 0;
}

} // namespace

tsr_status decode_jpeg(const tsr_image *image, const uint8_t *stream, size_t size, uint8_t *raster, tsr_error *error)
{
    jpeg_decompress_struct info;
    jpeg_progress_mgr progress;
    failure f;
    info.err = jpeg_std_error(&f.manager);
    f.manager.error_exit = give_up;
    f.manager.output_message = say_nothing;
    f.manager.emit_message = say_less;
    f.code = 0;
    progress.progress_monitor = check_scans;
    if (setjmp(f.back) != 0) {
        jpeg_destroy_decompress(&info);
        if (f.code == JERR_OUT_OF_MEMORY) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to decode JPEG");
        if (f.code == JERR_BAD_PRECISION)
            return tsr_fail(error, TSR_ERROR_VERSION, "libjpeg decodes samples of 8 bits, and its samples have others");
        return tsr_fail(error, TSR_ERROR_CORRUPT, "libjpeg cannot decode it");
    }
    jpeg_create_decompress(&info);
    info.progress = &progress;
    const int found = decode(info, *image, stream, size, raster);
    jpeg_destroy_decompress(&info);
    if (found == 0) return TSR_OK;
    return tsr_fail(error, TSR_ERROR_CORRUPT, "its stream is of another image than the header says");
}

#else

tsr_status decode_jpeg(const tsr_image *, const uint8_t *, size_t, uint8_t *, tsr_error *error)
{
    return tsr_fail(error, TSR_ERROR_VERSION, "this build has no libjpeg to decode a frame of lossy JPEG");
}

#endif
