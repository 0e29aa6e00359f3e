/* A walk over the elements of a DICOM file, into sequences and their items, in the order of their bytes. The work is
 * bounded: by the bytes of a header, by the depth of sequences, by the number of elements, by their disorder. */
#ifndef TSR_IO_DICOM_DICOM_WALK_H
#define TSR_IO_DICOM_DICOM_WALK_H

#include "dicom_reader.h"
#include "io/input.h"

enum {
    TSR_DICOM_DEPTH = 100,             /* nested sequences, items counted; real files have a dozen */
    TSR_DICOM_FIRST_BYTES = 1 << 14,   /* held at first: most headers have a few kilobytes */
    TSR_DICOM_HEADER_LIMIT = 64 << 20, /* bytes before the pixel data */
    TSR_DICOM_DISORDER = 1 << 22       /* comparisons that it may take to put the elements in order */
};

/* What the walk is in: elements of the data set or an item, items of a sequence, or fragments of pixel data. */
enum tsr_dicom_layer_kind { TSR_LAYER_ELEMENTS, TSR_LAYER_ITEMS, TSR_LAYER_FRAGMENTS };

struct tsr_dicom_layer {
    enum tsr_dicom_layer_kind kind;
    struct tsr_dicom_element sequence; /* of items */
    struct tsr_dicom_form form;
    bool has_end;  /* false: a delimiter ends it */
    bool is_guess; /* the bytes may turn out not to be a sequence */
    size_t end;
    uint64_t count; /* elements of this layer so far */
    uint32_t highest_tag;
};

struct tsr_dicom_walk {
    struct tsr_input *input;
    const uint8_t *bytes; /* the bytes that are held */
    size_t held, size;
    size_t at;
    struct tsr_dicom_layer layer[TSR_DICOM_DEPTH];
    int depth; /* index of the innermost layer: 0 in the data set, 1 in a sequence of it, 2 in an item of that, ... */
    uint64_t elements, disorder; /* elements and items, also those of what turned out to be no sequence */
    bool is_disordered;          /* tags of the data set do not ascend */
    bool has_wrong_guess;        /* a value begins as a sequence and is none */
    bool has_preamble;           /* with DICM */
    bool is_other_form;          /* elements do not have the form that the transfer syntax says */
    struct tsr_error *error;
};

/* What the walk has come to. */
enum tsr_dicom_found {
    TSR_FOUND_ELEMENT,
    TSR_FOUND_ITEM,        /* or a fragment */
    TSR_FOUND_NO_SEQUENCE, /* an earlier element is none, though its value begins as one: its content does not count */
    TSR_FOUND_PIXELS,      /* of the data set: the walk stops there */
    TSR_FOUND_END          /* of the input */
};

struct tsr_dicom_visit {
    enum tsr_dicom_found found;
    struct tsr_dicom_element element;
    uint32_t depth;    /* 0 in the data set, 1 for the items of its sequences, 2 for elements in those, ... */
    uint32_t sequence; /* of an item: the tag that it belongs to */
    bool has_content;  /* a sequence or an item, whose content follows */
};

/* A walk that begins at byte at, in elements of a form. */
void tsr_dicom_begin_walk(struct tsr_dicom_walk *walk, struct tsr_input *input, size_t at, struct tsr_dicom_form form,
                          struct tsr_error *error);

/* The next element or item. Errors: TSR_ERROR_CORRUPT with the reason (an unknown form of DICOM, or a file that was
 * made to take much time; with an offset, an element is cut there), TSR_ERROR_READ, TSR_ERROR_LIMIT. */
enum tsr_status tsr_dicom_walk_on(struct tsr_dicom_walk *walk, struct tsr_dicom_visit *visit);

/* For who reads elements of another form at the place of the walk: holds the input up to byte end, or all of it if it
 * ends before; counts an element; and fails. */
enum tsr_status tsr_dicom_walk_hold(struct tsr_dicom_walk *walk, size_t end);
enum tsr_status tsr_dicom_walk_count(struct tsr_dicom_walk *walk, uint32_t tag);
enum tsr_status tsr_dicom_fail_cut(struct tsr_dicom_walk *walk, size_t end); /* within an element */
enum tsr_status tsr_dicom_fail_long(struct tsr_dicom_walk *walk, const struct tsr_dicom_element *element);

/* Whether so much was read already as elements that what cannot be is damage, and not a file of another kind. Then the
 * offset of damage is the place of the walk; else it is TSR_NO_OFFSET. */
bool tsr_dicom_is_surely(const struct tsr_dicom_walk *walk);
uint64_t tsr_dicom_damaged_at(const struct tsr_dicom_walk *walk);

/* A head that is read where it stands in an input, which need not be held. */
struct tsr_dicom_piece {
    struct tsr_dicom_element head; /* its offsets are from the head on */
    uint64_t value, left;          /* where the value begins; bytes from there to the end of the input */
    uint8_t first[2];              /* of the value, if it has as many */
};

/* False: no head stands there. */
bool tsr_dicom_read_head(struct tsr_input *input, uint64_t at, struct tsr_dicom_form form,
                         struct tsr_dicom_piece *piece);

/* The same of an item of encapsulated pixel data, or what stands in its place. */
bool tsr_dicom_read_item(struct tsr_input *input, uint64_t at, struct tsr_dicom_piece *piece);

/* Whether there are fewer bytes before end than an element's head has. */
bool tsr_dicom_is_cut_head(const uint8_t *bytes, size_t at, size_t end, bool explicit_vr);

/* Bytes of memory that a reader which keeps each element takes for this number of bytes in this number of elements.
 * DCMTK's was measured: 210 to 270 bytes an element. */
uint64_t tsr_dicom_memory(uint64_t bytes, uint64_t elements);

#endif
