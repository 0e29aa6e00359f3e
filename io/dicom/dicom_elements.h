/* What a DICOM file has up to its pixel data: its form, where the elements stand that describe the image, and a list of
 * all elements where one is wanted. PS3.5, 7; PS3.10, 7.1. */
#ifndef TSR_IO_DICOM_DICOM_ELEMENTS_H
#define TSR_IO_DICOM_DICOM_ELEMENTS_H

#include "dicom_walk.h"

enum {
    TSR_TAG_PADDING = 0x00280120,
    TSR_TAG_PADDING_LIMIT = 0x00280121,
    TSR_TAG_META_LENGTH = 0x00020000,
    TSR_TAG_MEDIA_STORAGE_UID = 0x00020003,
    TSR_TAG_TRANSFER_SYNTAX = 0x00020010
};

/* Elements that describe the samples, and say how they are looked at. */
enum tsr_dicom_fact {
    TSR_FACT_MODALITY,
    TSR_FACT_SAMPLES,
    TSR_FACT_PHOTOMETRIC,
    TSR_FACT_PLANAR,
    TSR_FACT_FRAMES,
    TSR_FACT_ROWS,
    TSR_FACT_COLUMNS,
    TSR_FACT_BITS_ALLOCATED,
    TSR_FACT_BITS_STORED,
    TSR_FACT_HIGH_BIT,
    TSR_FACT_REPRESENTATION,
    TSR_FACT_PADDING,
    TSR_FACT_PADDING_LIMIT,
    TSR_FACT_SERIES, /* of those before it, the first one of a tag counts; of the others the last one */
    TSR_FACT_CENTER,
    TSR_FACT_WIDTH,
    TSR_FACT_INTERCEPT,
    TSR_FACT_SLOPE,
    TSR_FACT_VOI_FUNCTION,
    TSR_FACT_VOI_LUTS,
    TSR_FACT_MODALITY_LUTS,
    TSR_FACTS
};

/* What a scan finds in a file up to its pixel data. */
struct tsr_dicom_scan {
    char syntax_uid[65];         /* empty: there is no meta header */
    size_t meta_start, meta_end; /* the elements of the meta header; equal: there is none */
    struct tsr_dicom_form form;  /* of the data set, unless it is deflated */
    bool is_deflated;            /* nothing after the meta header was scanned */
    struct tsr_dicom_element pixels;
    bool has_no_pixels;    /* the scan has failed for this alone: it came to the end of the file */
    uint64_t elements;     /* number of all elements, those in sequences and items included */
    uint64_t frame_groups; /* items of functional groups, shared ones and those of frames (PS3.3, C.7.6.16) */
    /* Readers may find other elements: some of the data set have higher tags than its pixel data, which readers stop
     * at; or its tags do not ascend, and a value without VR begins as a sequence and goes on as none. */
    bool is_two_ways;
    struct tsr_dicom_element fact[TSR_FACTS]; /* of the data set itself, not of its items; tag 0: absent */
};

/* Private transfer syntaxes. GE's has elements of implicit VR in little endian (with dcm4che, in big endian), and pixel
 * data in big endian. That of Papyrus 3 is implicit VR, little endian; that of Philips explicit VR, little endian. */
#define TSR_GE_UID "1.2.840.113619.5.2"
#define TSR_PAPYRUS_UID "1.2.840.10008.1.20"
#define TSR_PHILIPS_UID "1.3.46.670589.33.1.4.1"

/* Whether the elements of a transfer syntax have no VR. */
bool tsr_dicom_is_implicit(const char *syntax_uid);

/* Scans an input up to the value of its pixel data, and holds the bytes up to there. Errors: TSR_ERROR_CORRUPT with the
 * reason (no pixel data, an unknown form of DICOM, or a file that was made to take much time; with an offset, an
 * element is cut there), TSR_ERROR_READ, TSR_ERROR_LIMIT. */
enum tsr_status tsr_dicom_scan_file(struct tsr_input *input, struct tsr_dicom_scan *scan, struct tsr_error *error);

/* The same for an inflated data set in memory, from byte start: explicit little endian, without a meta header. */
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

/* Scans as the functions above do, and adds the elements and items to a listing. */
enum tsr_status tsr_dicom_list_file(struct tsr_input *input, struct tsr_dicom_listing *listing,
                                    struct tsr_dicom_scan *scan, struct tsr_error *error);
enum tsr_status tsr_dicom_list_dataset(struct tsr_input *input, size_t start, struct tsr_dicom_listing *listing,
                                       struct tsr_dicom_scan *scan, struct tsr_error *error);

#endif
