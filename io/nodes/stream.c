/* The table of streams; see stream.h. */
#include "stream.h"

const struct tsr_stream_kind *const tsr_stream_kinds[] = {
    [TSR_STREAM_RLE] = &tsr_stream_rle,         [TSR_STREAM_JPEG_LOSSLESS] = &tsr_stream_jpeg_lossless,
    [TSR_STREAM_JPEG_LS] = &tsr_stream_jpeg_ls, [TSR_STREAM_DEFLATE] = &tsr_stream_deflate,
    [TSR_STREAM_J2K] = &tsr_stream_j2k,
};
const int tsr_stream_kind_count = sizeof tsr_stream_kinds / sizeof tsr_stream_kinds[0];

const struct tsr_stream_kind *tsr_stream_kind_of(int number)
{
    return number >= 0 && number < tsr_stream_kind_count ? tsr_stream_kinds[number] : NULL;
}
