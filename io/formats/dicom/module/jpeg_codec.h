/* Lossy JPEG by libjpeg, in the module of DCMTK. */
#ifndef TSR_IO_FORMATS_DICOM_JPEG_CODEC_H
#define TSR_IO_FORMATS_DICOM_JPEG_CODEC_H

#include "io/formats/dicom/dicom_module.h"

/* As tsr_dicom_decode_jpeg. */
tsr_status decode_jpeg(const tsr_image *image, const uint8_t *stream, size_t size, uint8_t *raster, tsr_error *error);

#endif
