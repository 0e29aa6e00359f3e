/* Where a byte stands among the elements of DICOM: what the coder of elements knows of it before it comes. Any string
 * of bytes has such places. ELEMENTS.md 1. */
#ifndef TSR_IO_NODES_ELEMENTS_ELEMENTS_PLACE_H
#define TSR_IO_NODES_ELEMENTS_ELEMENTS_PLACE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    TSR_PLACE_LEVELS = 16,
    TSR_PLACE_TAGS = 1 << 10,
    TSR_PLACE_HEAD = 12, /* bytes of an element before its value, at most */
    TSR_PLACE_PREAMBLE = 128 + 4
};

enum tsr_place_part { TSR_PLACE_START, TSR_PLACE_IN_HEAD, TSR_PLACE_IN_VALUE };

/* What of a string its first bits say. */
enum { TSR_PLACE_BARE = 1, TSR_PLACE_BIG_ENDIAN = 2 };

/* Elements of one sequence or item, or of the file. */
struct tsr_place_level {
    uint32_t end;             /* where it ends, or TSR_PLACE_OPEN */
    uint32_t tag;             /* of the sequence */
    uint32_t before, earlier; /* tags of the last element and of the one before it */
    bool holds_items_of_bytes;
};
#define TSR_PLACE_OPEN UINT32_MAX

/* What the last element with a tag was. */
struct tsr_place_known {
    uint32_t tag, vr, length, value; /* value: where it begins, counted from the first byte of all */
};

struct tsr_place {
    uint32_t size, at; /* of the string: bytes, and those that came */
    uint32_t total;    /* bytes that came since tsr_place_create */
    unsigned form;
    enum tsr_place_part part;
    uint32_t offset; /* of the part: bytes that came */
    uint8_t head[TSR_PLACE_HEAD];
    uint32_t head_size, length_size, tag, vr, length;
    bool is_explicit, is_big;
    uint32_t channels;                     /* of the waveform */
    uint32_t value, old_value, old_length; /* where the value begins, and the last one of the tag; 0: there is none */
    int depth;
    struct tsr_place_level level[TSR_PLACE_LEVELS];
    struct tsr_place_known known[TSR_PLACE_TAGS];
};

/* A string of so many bytes begins. */
void tsr_place_begin(struct tsr_place *place, uint32_t size, unsigned form);
void tsr_place_take(struct tsr_place *place, uint8_t byte);

/* Whether a VR is one of a list of two letters each. */
bool tsr_place_is_vr(uint32_t vr, const char *list);

/* The form that an encoder gives a string. */
unsigned tsr_place_form(const uint8_t *bytes, uint32_t size);

#endif
