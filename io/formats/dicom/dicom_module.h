/* The module that holds what is in C++, and is linked with those of DCMTK, OpenJPEG, OpenJPH and libjpeg that the build
 * has: tessera-dicom.so. A build that has none of them has no module.
 * Loading DCMTK and its dictionary takes 15 ms, which only what needs its dictionary shall pay: headers as text,
 * exports of implicit VR or big endian. */
#ifndef TSR_IO_FORMATS_DICOM_DICOM_MODULE_H
#define TSR_IO_FORMATS_DICOM_DICOM_MODULE_H

#include "dicom_file.h"

/* The module's one symbol is a struct tsr_dicom_module of this name. The functions are those of dicom_file.h. */
#define TSR_DICOM_MODULE tsr_dicom_module_of_dcmtk
struct tsr_dicom_module {
    const char *version;   /* the library's own, or the module is another release's */
    void (*prepare)(void); /* loads DCMTK's dictionary; if that fails, the other functions return a status */
    enum tsr_status (*make_explicit)(const uint8_t *bytes, size_t size, struct tsr_dicom_form form,
                                     struct tsr_dicom_made *made, struct tsr_error *error); /* NULL: without DCMTK */
    enum tsr_status (*print)(const struct tsr_dicom_bytes *header, bool as_json, struct tsr_dicom_made *made,
                             struct tsr_error *error); /* NULL: without DCMTK */
    enum tsr_status (*encode_jpeg_2000)(const struct tsr_image *image, const uint8_t *raster, int bits, bool is_ht,
                                        bool is_rgb, struct tsr_dicom_made *made, struct tsr_error *error);
    enum tsr_status (*decode_jpeg_2000)(const struct tsr_image *image, const uint8_t *stream, size_t size,
                                        uint8_t *raster, struct tsr_error *error);
    enum tsr_status (*decode_jpeg)(const struct tsr_image *image, const uint8_t *stream, size_t size, uint8_t *raster,
                                   struct tsr_error *error);
};

/* The path of a file that stands beside the module. False: there is none. */
enum { TSR_MODULE_PATH = 4096 + 256 };
bool tsr_dicom_find_beside(const char *file, char path[TSR_MODULE_PATH]);

/* Room for a stream that is made of a raster of so many bytes. Longer ones are rare. */
static inline uint64_t tsr_jpeg_2000_room(uint64_t raster_bytes)
{
    return raster_bytes + raster_bytes / 8 + (1 << 16);
}

/* The program that decodes HTJ2K. A request is followed by the stream, and the answer, if it is TSR_OK, by the raster.
 * Both sides are of one version. */
#define TSR_HTJ2K_PROGRAM "tessera-htj2k"
struct tsr_htj2k_request {
    struct tsr_image image;
    uint64_t size; /* of the stream */
};
struct tsr_htj2k_answer {
    enum tsr_status status;
    char text[512]; /* of the error */
};

#endif
