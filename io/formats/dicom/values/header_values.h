/* What a DICOM header says of the values of an image, frame by frame: rescales, windows, lookup tables. PS3.3,
 * C.7.6.16, C.11.1 and C.11.2. Only what is said: which windows are measured is decided in windows.c. */
#ifndef TSR_IO_FORMATS_DICOM_VALUES_HEADER_VALUES_H
#define TSR_IO_FORMATS_DICOM_VALUES_HEADER_VALUES_H

#include "../dicom_file.h"
#include "io/dicom/dicom_elements.h"
#include "io/formats/decimal.h"

/* A window of values after the rescale or the Modality LUT. */
struct tsr_named_window {
    struct tsr_decimal center, width;
    bool is_linear; /* VOI LUT Function LINEAR, whose slope is one value narrower than the width: PS3.3, C.11.2.1.2.1 */
};

/* Windows that the data set, the shared item or a frame's item names: so many at most, as many as are measured. */
enum { TSR_NAMED_WINDOWS = 4 };

/* What one of them says. */
struct tsr_named_values {
    struct tsr_decimal slope, intercept; /* 1 and 0, if they are not said */
    bool has_rescale, is_bad_rescale;    /* bad: a number is none, or the slope is 0 */
    bool has_windows;                    /* it speaks of windows: those of what is around it do not count */
    uint8_t windows;
    uint32_t first; /* window[first] .. window[first + windows - 1] */
};

/* A lookup table: entry[value - first], at its ends where the value is outside. */
struct tsr_named_lut {
    const uint8_t *data;
    uint32_t entries; /* 0: there is none */
    int32_t first;
    int bytes; /* of an entry */
    bool big_endian;
};

struct tsr_header_values {
    struct tsr_named_values dataset, shared, *frame;
    uint32_t frames; /* items of frames */
    struct tsr_named_window *window;
    uint32_t window_count, window_capacity;
    bool has_modality_lut; /* it may be none that can be read */
    struct tsr_named_lut modality_lut;
};

/* Reads the elements of a scanned header; bytes are those that the scan read. To be freed, also after an error. The
 * time is that of a scan; the memory, at most 128 bytes an element. Errors: TSR_ERROR_LIMIT. */
enum tsr_status tsr_dicom_read_values(const uint8_t *bytes, const struct tsr_dicom_scan *scan,
                                      struct tsr_header_values *values, struct tsr_error *error);
void tsr_dicom_free_values(struct tsr_header_values *values);

/* The rescale and the windows of a frame: those of its item, else of the shared item, else of the data set. */
const struct tsr_named_values *tsr_dicom_rescale_of(const struct tsr_header_values *values, uint32_t frame);
const struct tsr_named_values *tsr_dicom_windows_of(const struct tsr_header_values *values, uint32_t frame);

uint32_t tsr_lut_entry(const struct tsr_named_lut *lut, uint32_t k);

#endif
