/* What the module does by OpenJPEG and OpenJPH, and tessera-htj2k by OpenJPH. It is compiled as C++. */
#ifndef TSR_IO_FORMATS_DICOM_JPEG_2000_CODECS_H
#define TSR_IO_FORMATS_DICOM_JPEG_2000_CODECS_H

#include <vector>

#include "io/formats/dicom/dicom_module.h"

/* A raster as numbers, component by component of each pixel, and back. */
struct jpeg_2000_job {
    const tsr_image *image;
    int bits;    /* of a sample in the stream */
    bool is_rgb; /* encoding: colours are mixed */
    std::vector<int32_t> samples;
    std::vector<uint8_t> stream;
    bool is_signed; /* decoding: what the stream says */
};

/* False: the library refuses. It may throw. */
bool openjpeg_encode(jpeg_2000_job &job);
bool openjpeg_decode(jpeg_2000_job &job);
bool openjph_encode(jpeg_2000_job &job);
bool openjph_decode(jpeg_2000_job &job);

tsr_status encode_jpeg_2000(const tsr_image *image, const uint8_t *raster, int bits, bool is_ht, bool is_rgb,
                            tsr_dicom_made *made, tsr_error *error);
tsr_status decode_jpeg_2000_by(bool (*codec)(jpeg_2000_job &), const tsr_image *image, const uint8_t *stream,
                               size_t size, uint8_t *raster, tsr_error *error);
tsr_status decode_jpeg_2000(const tsr_image *image, const uint8_t *stream, size_t size, uint8_t *raster,
                            tsr_error *error);

#endif
