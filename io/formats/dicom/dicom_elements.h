/* The elements of a DICOM file as its bytes have them (PS3.5, 7): where they stand, not what they mean. Needs no
 * dictionary. Where it meets what it does not know, it says so. */
#ifndef TSR_IO_FORMATS_DICOM_DICOM_ELEMENTS_H
#define TSR_IO_FORMATS_DICOM_DICOM_ELEMENTS_H

#include "io/input.h"

enum {
    TSR_TAG_PIXEL_DATA = 0x7fe00010,
    TSR_TAG_META_LENGTH = 0x00020000,
    TSR_TAG_MEDIA_STORAGE_UID = 0x00020003,
    TSR_TAG_TRANSFER_SYNTAX = 0x00020010
};

/* How elements are written. */
struct tsr_dicom_form {
    bool explicit_vr, big_endian;
};

#define TSR_UNDEFINED_LENGTH UINT32_MAX

struct tsr_dicom_element {
    uint32_t tag;
    char vr[3];               /* empty where it is implicit */
    uint32_t length;          /* of the value, TSR_UNDEFINED_LENGTH: it ends with a delimiter */
    size_t start, value, end; /* bytes of the file; end: behind all of it, of pixel data that is unknown */
};

/* What a file is, up to its pixel data, from its bytes. */
struct tsr_dicom_scan {
    char syntax_uid[65];             /* empty without a meta header */
    size_t meta_start, meta_end;     /* the meta header's elements; equal: there is none */
    struct tsr_dicom_form form;      /* of the data set, unless it is deflated */
    bool is_deflated;                /* nothing behind the meta header was looked at */
    struct tsr_dicom_element pixels; /* the pixel data */
    uint64_t elements;               /* all, those in sequences and items too */
};

/* Bytes that the toolkit takes to read so many in so many elements: measured, 210 to 270 an element. */
uint64_t tsr_dicom_memory(uint64_t bytes, uint64_t elements);

/* Scans an input, of which it holds the beginning, up to the pixel data's value. Errors: TSR_ERROR_CORRUPT with the
 * reason (it has no pixel data, or is not DICOM as this page knows it, or is made to cost its reader time),
 * TSR_ERROR_READ, TSR_ERROR_LIMIT. */
enum tsr_status tsr_dicom_scan_file(struct tsr_input *input, struct tsr_dicom_scan *scan, struct tsr_error *error);

/* The same of a data set in memory, of explicit little endian and without a meta header: one that was inflated. */
enum tsr_status tsr_dicom_scan_dataset(struct tsr_input *input, size_t start, struct tsr_dicom_scan *scan,
                                       struct tsr_error *error);

/* The elements and the items of a header in their order, without the pixel data. */
struct tsr_dicom_listing {
    struct tsr_dicom_listed {
        struct tsr_dicom_element element;
        uint32_t depth;   /* 0 in the data set, 1 for the items of its sequences, 2 for elements in those, ... */
        bool has_content; /* a sequence or an item, whose content follows */
    } * entries;          /* to be freed by the caller, also after an error */
    size_t count, capacity;
};

/* Scans as the functions above do, and adds what is met to a listing. */
enum tsr_status tsr_dicom_list_file(struct tsr_input *input, struct tsr_dicom_listing *listing,
                                    struct tsr_dicom_scan *scan, struct tsr_error *error);
enum tsr_status tsr_dicom_list_dataset(struct tsr_input *input, size_t start, struct tsr_dicom_listing *listing,
                                       struct tsr_dicom_scan *scan, struct tsr_error *error);

/* What stands behind encapsulated pixel data: goes on to the end of the input. */
enum tsr_status tsr_dicom_scan_rest(struct tsr_input *input, struct tsr_dicom_scan *scan, struct tsr_error *error);

/* The element at a place of bytes that were scanned; false: there is none before end. */
bool tsr_dicom_element_at(const uint8_t *bytes, size_t at, size_t end, struct tsr_dicom_form form,
                          struct tsr_dicom_element *element);

/* How the items of a sequence are written: those of unknown ones are implicit little endian (PS3.5, 6.2.2, note 4). */
static inline struct tsr_dicom_form tsr_dicom_inner_form(const struct tsr_dicom_element *sequence,
                                                         struct tsr_dicom_form outer)
{
    const bool is_unknown = sequence->vr[0] == 'U' && sequence->vr[1] == 'N';
    return is_unknown ? (struct tsr_dicom_form){false, false} : outer;
}

#endif
