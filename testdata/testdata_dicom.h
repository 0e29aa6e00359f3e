/* A writer of DICOM files: usual, rare and broken ones. */
#ifndef TESTDATA_DICOM_H
#define TESTDATA_DICOM_H

#include "testdata_bytes.h"
#include "testdata_shapes.h"

enum dicom_syntax {
    DICOM_EXPLICIT,
    DICOM_IMPLICIT,
    DICOM_BIG_ENDIAN,
    DICOM_DEFLATED,
    DICOM_RLE,
    DICOM_JPEG,
    DICOM_JPEG_LOSSLESS,
    DICOM_JPEG_LS,
    DICOM_DEFLATED_FRAMES,
    DICOM_UNCOMPRESSED_FRAMES,
    DICOM_GE, /* private: implicit, little endian, pixel data big endian */
    DICOM_SYNTAXES
};

/* Oddities of a file. */
enum {
    ODD_BYTES = 1 << 0,           /* the pixel data has the VR OB, not OW, for samples of at most 8 bits */
    ODD_NO_META = 1 << 1,         /* neither preamble nor meta header */
    ODD_PREAMBLE = 1 << 2,        /* a preamble that is not zero, and private meta elements */
    ODD_GROUP_LENGTHS = 1 << 3,   /* the retired elements (gggg,0000) */
    ODD_UNDEFINED = 1 << 4,       /* sequences and items end with delimiters */
    ODD_PADDING = 1 << 5,         /* data set trailing padding after the pixels */
    ODD_BEHIND = 1 << 6,          /* private elements after the pixels */
    ODD_ZEROS = 1 << 7,           /* zeros after the data set, as tapes leave them */
    ODD_SURPLUS = 1 << 8,         /* the pixel data is longer than necessary */
    ODD_SHORT = 1 << 9,           /* the pixel data is too short */
    ODD_TRUNCATED = 1 << 10,      /* the file ends within the pixel data */
    ODD_NO_PIXELS = 1 << 11,      /* no pixel data */
    ODD_STORED = 1 << 12,         /* deflated files: the stream has stored blocks only */
    ODD_UNKNOWN_LENGTH = 1 << 13, /* native pixel data of undefined length, which the standard forbids */
    ODD_GARBAGE = 1 << 14,        /* what is in the items of JPEG is no stream */
    ODD_FRAGMENTS = 1 << 15,      /* a frame has three items, and the table of offsets is empty */
    ODD_FLOAT = 1 << 16,          /* floating point numbers: 32 bits are Float Pixel Data, 64 bits Double Float */
    ODD_PAIRS = 1 << 17,          /* two pixels are Y, Y, Cb, Cr */
    ODD_NO_ROWS = 1 << 18,        /* no element says how many rows there are */
    ODD_UNKNOWN_VR = 1 << 19,     /* native pixel data has the VR UN */
    ODD_NATIVE = 1 << 20          /* native pixel data in a transfer syntax of coded frames */
};

/* An element with its value as text, whatever its VR. Numbers are decimal, with backslashes between them. A sequence
 * has an item, and one more after each DICOM_NEXT_ITEM. The VR DICOM_ITEMS is OB, whose value is in an item. */
#define DICOM_ITEMS "ob"
enum { DICOM_NEXT_ITEM = 1 };
struct dicom_element {
    uint32_t tag;
    const char *vr;
    const char *text;
    const struct dicom_element *item; /* if the VR is SQ; ends with tag 0 */
};

/* What all images of a kind share. */
struct dicom_kind {
    const char *modality, *sop_class, *photometric;
    int components, bits_allocated, bits_stored, high_bit;
    bool is_signed, planar, located;      /* located: slices have a place in the patient */
    const struct dicom_element *elements; /* more elements; ends with tag 0 */
};

struct dicom {
    const struct dicom_kind *kind;
    enum dicom_syntax syntax;
    unsigned oddities;
    int columns, rows, frames;
    unsigned series, instance;
};

/* planes: for each frame, one plane a component. Their shades become the words of the file; bits above bits_allocated
 * are dropped. */
void dicom_put(struct bytes *out, const struct dicom *dicom, const struct canvas *planes);

#endif
