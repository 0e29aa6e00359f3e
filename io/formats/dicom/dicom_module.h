/* The module that holds dicom_dcmtk.cc, the one C++ file, and is linked with DCMTK: tessera-dicom.so. Loading DCMTK and
 * its dictionary takes 15 ms, which files that do not need it shall not pay. */
#ifndef TSR_IO_FORMATS_DICOM_DICOM_MODULE_H
#define TSR_IO_FORMATS_DICOM_DICOM_MODULE_H

#include "dicom_file.h"

/* The module's one symbol is a struct tsr_dicom_module of this name. The functions are those of dicom_file.h. */
#define TSR_DICOM_MODULE tsr_dicom_module_of_dcmtk
struct tsr_dicom_module {
    const char *version;   /* the library's own, or the module is another release's */
    void (*prepare)(void); /* loads DCMTK's dictionary; if that fails, the other functions return a status */
    enum tsr_status (*describe)(const uint8_t *bytes, size_t size, struct tsr_dicom *dicom, struct tsr_error *error);
    enum tsr_status (*describe_dataset)(const uint8_t *bytes, size_t size, struct tsr_dicom *dicom,
                                        struct tsr_error *error);
    enum tsr_status (*compare_headers)(const struct tsr_dicom_bytes *original, const struct tsr_dicom_bytes *derived,
                                       const uint32_t *tags, int tag_count, struct tsr_error *error);
    enum tsr_status (*decode)(const uint8_t *file, size_t size, const struct tsr_dicom *dicom,
                              struct tsr_dicom_decoded *decoded, struct tsr_error *error);
};

#endif
