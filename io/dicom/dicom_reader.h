/* The one reader of DICOM's elements and items as bytes (PS3.5, 7.1 to 7.5 and A.4): where they stand, not what they
 * mean. No dictionary is needed, and nothing is allocated. A form that is not known here is no element. */
#ifndef TSR_IO_DICOM_DICOM_READER_H
#define TSR_IO_DICOM_DICOM_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* How elements are encoded. The pixel data of GE's private syntax 1.2.840.113619.5.2 is big endian; its elements are
 * implicit little endian. */
struct tsr_dicom_form {
    bool explicit_vr, big_endian;
};

#define TSR_UNDEFINED_LENGTH UINT32_MAX
#define TSR_TAG_ITEM 0xfffee000u
#define TSR_TAG_ITEM_END 0xfffee00du
#define TSR_TAG_SEQUENCE_END 0xfffee0ddu
#define TSR_TAG_SHARED_GROUPS 0x52009229u /* of functional groups: PS3.3, C.7.6.16 */
#define TSR_TAG_FRAME_GROUPS 0x52009230u

enum {
    TSR_DICOM_HEAD = 8,       /* bytes of an item, and of most elements, before the value */
    TSR_DICOM_LONG_HEAD = 12, /* of elements of explicit VR with a length of four bytes */
    TSR_TAG_FLOAT_PIXELS = 0x7fe00008,
    TSR_TAG_DOUBLE_PIXELS = 0x7fe00009,
    TSR_TAG_PIXEL_DATA = 0x7fe00010
};

struct tsr_dicom_element {
    uint32_t tag;
    char vr[3];               /* empty: the VR is implicit */
    uint32_t length;          /* of the value; TSR_UNDEFINED_LENGTH: a delimiter ends it */
    size_t start, value, end; /* offsets in the bytes; end is valid if the length is defined */
};

/* Numbers in either order of bytes. A tag has the group in its upper 16 bits. */
static inline uint32_t tsr_dicom_u16(const uint8_t *bytes, bool big_endian)
{
    return big_endian ? (uint32_t)bytes[0] << 8 | bytes[1] : (uint32_t)bytes[1] << 8 | bytes[0];
}

static inline uint32_t tsr_dicom_u32(const uint8_t *bytes, bool big_endian)
{
    const uint32_t first = tsr_dicom_u16(bytes, big_endian), second = tsr_dicom_u16(bytes + 2, big_endian);
    return big_endian ? first << 16 | second : second << 16 | first;
}

static inline uint32_t tsr_dicom_tag(const uint8_t *bytes, bool big_endian)
{
    return tsr_dicom_u16(bytes, big_endian) << 16 | tsr_dicom_u16(bytes + 2, big_endian);
}

/* Whether two bytes are a VR; whether that VR has a length of four bytes after two spare bytes (PS3.5, 7.1.2). */
bool tsr_dicom_is_vr(const uint8_t vr[2]);
bool tsr_dicom_is_long_vr(const uint8_t vr[2]);

/* Whether an element may have a VR: it has that one, or none. */
static inline bool tsr_dicom_has_vr(const struct tsr_dicom_element *element, const char *vr)
{
    return element->vr[0] == '\0' || strcmp(element->vr, vr) == 0;
}

/* Whether the element of a tag holds the pixels of an image: whole numbers, or floating point numbers. */
bool tsr_dicom_holds_pixels(uint32_t tag);

/* Reads the tag, VR and length that stand at byte at, all of them before end. The value may lie after end. Items and
 * delimiters have no VR in any form. */
bool tsr_dicom_head_at(const uint8_t *bytes, size_t at, size_t end, struct tsr_dicom_form form,
                       struct tsr_dicom_element *element);

/* The same of a whole element: its value, if it has a length, ends before end, too. */
bool tsr_dicom_element_at(const uint8_t *bytes, size_t at, size_t end, struct tsr_dicom_form form,
                          struct tsr_dicom_element *element);

/* How the items of a sequence are encoded. Items of a sequence of VR UN are implicit little endian (PS3.5, 6.2.2, note
 * 4). */
struct tsr_dicom_form tsr_dicom_inner_form(const struct tsr_dicom_element *sequence, struct tsr_dicom_form outer);

/* The elements of one data set or item, one after the other. A sequence with all its items is one element. Sequences
 * were walked through before (dicom_walk.h): they are well formed. */
struct tsr_dicom_elements {
    const uint8_t *bytes;
    size_t at, end;
    struct tsr_dicom_form form;
};
bool tsr_dicom_next_element(struct tsr_dicom_elements *all, struct tsr_dicom_element *element);

#endif
