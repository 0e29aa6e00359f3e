/* The header of an ordinary DICOM file, read without the toolkit, some fifty times as fast. */
#ifndef TSR_IO_DICOM_PLAIN_H
#define TSR_IO_DICOM_PLAIN_H

#include "dicom_file.h"

enum tsr_plain {
    TSR_PLAIN_READ,
    TSR_PLAIN_LONGER,  /* the bytes end before the pixel data: more of the file may tell */
    TSR_PLAIN_UNUSUAL, /* the toolkit must say what it is */
};

/* Reads the first bytes of a file with meta header, in explicit VR little endian, whose elements, rising and of even
 * length, have the VRs that they should: what is READ is what tsr_dicom_describe_file says of the file, but for slope
 * and window, which are not looked at and stay as of a file that has none. */
enum tsr_plain tsr_dicom_read_plain(const uint8_t *bytes, size_t size, struct tsr_dicom *dicom);

#endif
