/* Headers with some elements changed: all others stay as they are, byte for byte. PS3.5, 7. */
#ifndef TSR_IO_FORMATS_DICOM_DICOM_EDIT_H
#define TSR_IO_FORMATS_DICOM_DICOM_EDIT_H

#include "dicom_file.h"
#include "io/dicom/dicom_elements.h"

enum { TSR_DICOM_VALUE_LIMIT = 2048 };

/* An element that replaces the one of its tag, or is inserted before the first one of a higher tag. */
struct tsr_dicom_edit {
    uint32_t tag;
    char vr[3]; /* empty: the element is left out */
    char value[TSR_DICOM_VALUE_LIMIT];
    size_t length;
    bool done;
};

/* The bytes of the new header. */
struct tsr_dicom_text {
    uint8_t *bytes;
    size_t size, capacity;
    bool no_memory;
    uint32_t left_out; /* tag of the first sequence that tsr_dicom_rewrite() left out; 0: none */
};
void tsr_dicom_put(struct tsr_dicom_text *text, const void *bytes, size_t size);

/* An element of a VR with a length of two bytes, with its padding. */
void tsr_dicom_put_element(struct tsr_dicom_text *text, uint32_t tag, const char *vr, const void *bytes, size_t size,
                           struct tsr_dicom_form form);

/* The head of an element whose length is set later: of the VR SQ, of a VR with a length of two bytes, or of an item (vr
 * is empty). Returns where its value begins. tsr_dicom_set_length gives it all that was put since; the length has so
 * many bytes, the last ones before the value. */
size_t tsr_dicom_begin_element(struct tsr_dicom_text *text, uint32_t tag, const char *vr, struct tsr_dicom_form form);
void tsr_dicom_set_length(struct tsr_dicom_text *text, size_t value, int bytes, struct tsr_dicom_form form);

/* Begin and end a sequence of one item. */
struct tsr_dicom_opened {
    size_t sequence, item; /* where their values begin */
};
struct tsr_dicom_opened tsr_dicom_open_item(struct tsr_dicom_text *text, uint32_t tag, struct tsr_dicom_form form);
void tsr_dicom_close_item(struct tsr_dicom_text *text, struct tsr_dicom_opened opened, struct tsr_dicom_form form);

/* The value of a tag as a string without its padding. *has: whether the element exists. Errors: TSR_ERROR_CORRUPT (the
 * element stands twice, or its value has TSR_DICOM_VALUE_LIMIT bytes or more). */
enum tsr_status tsr_dicom_find_value(struct tsr_dicom_elements all, uint32_t tag, char value[TSR_DICOM_VALUE_LIMIT],
                                     bool *has, struct tsr_error *error);

/* Adds an edit without a value; sets its value, of three parts. Errors: TSR_ERROR_CORRUPT (it is too long). */
struct tsr_dicom_edit *tsr_dicom_add_edit(struct tsr_dicom_edit *edits, int *count, uint32_t tag, const char *vr);
enum tsr_status tsr_dicom_set_value(struct tsr_dicom_edit *edit, const char *old, const char *between,
                                    const char *added, struct tsr_error *error);

/* Where the length of a group stands in the new header, and where the group begins and ends there. All 0 but the number
 * at first. */
struct tsr_dicom_group {
    uint32_t number;
    size_t length_at, start, end; /* length_at 0: the group has no length element */
};

/* Copies the elements, replaces or inserts the edits, and corrects the lengths of the groups. */
void tsr_dicom_copy_elements(struct tsr_dicom_text *text, struct tsr_dicom_elements all, struct tsr_dicom_edit *edits,
                             int count, struct tsr_dicom_group *groups, int group_count);

#endif
