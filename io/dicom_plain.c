/* DICOM PS3.5 7.1 (elements), 7.5 (sequences), PS3.10 7.1 (meta header), for tsr_dicom_open; see the header. The
 * toolkit builds an object of each element, looks its tag up in a dictionary that all threads share, and opens the file
 * again: it takes 170 us for a header of 25 elements, this 3. It does not forgive what the toolkit may: what is not as
 * it should be is the toolkit's. test_dicom_plain compares the two. */
#include "dicom_plain.h"

#include <string.h>

#include "section.h"

enum {
    PREAMBLE_BYTES = 128,
    DEPTH_LIMIT = 8, /* of sequences in sequences */
    LONG_HEAD = 12,
    SHORT_HEAD = 8,
};
#define UNDEFINED UINT32_MAX

/* Tags as numbers: group, then element. */
enum {
    META_LENGTH = 0x00020000,
    TRANSFER_SYNTAX = 0x00020010,
    SOP_CLASS = 0x00080016,
    MODALITY = 0x00080060,
    SAMPLES = 0x00280002,
    PHOTOMETRIC = 0x00280004,
    PLANAR = 0x00280006,
    FRAMES = 0x00280008,
    ROWS = 0x00280010,
    COLUMNS = 0x00280011,
    BITS_ALLOCATED = 0x00280100,
    BITS_STORED = 0x00280101,
    HIGH_BIT = 0x00280102,
    REPRESENTATION = 0x00280103,
    PIXEL_DATA = 0x7fe00010,
    FIRST_OF_DATASET = 0x00080000,
};
#define ITEM 0xfffee000u
#define ITEM_END 0xfffee00du
#define SEQUENCE_END 0xfffee0ddu

struct reading {
    const uint8_t *bytes;
    size_t size, at;
    enum tsr_plain state;
};

struct element {
    uint32_t tag, length;
    char vr[2];
    const uint8_t *value;
};

static bool is_vr(const struct element *e, const char *vr)
{
    return memcmp(e->vr, vr, 2) == 0;
}

static bool is_one_of(const char vr[2], const char *list)
{
    for (; *list; list += 2)
        if (memcmp(vr, list, 2) == 0) return true;
    return false;
}

static bool stop(struct reading *r, enum tsr_plain why)
{
    r->state = why;
    return false;
}

static bool has(struct reading *r, size_t bytes)
{
    return bytes <= r->size - r->at || stop(r, TSR_PLAIN_LONGER);
}

static uint32_t tag_at(const struct reading *r)
{
    const uint8_t *b = r->bytes + r->at;
    return (uint32_t)(b[1] << 8 | b[0]) << 16 | (uint32_t)(b[3] << 8 | b[2]);
}

/* Tag, VR and length. */
static bool get_head(struct reading *r, struct element *e)
{
    if (!has(r, SHORT_HEAD)) return false;
    const uint8_t *b = r->bytes + r->at;
    e->tag = tag_at(r);
    memcpy(e->vr, b + 4, 2);
    if (is_one_of(e->vr, "OBODOFOLOWSQUCUNURUT")) {
        if (!has(r, LONG_HEAD)) return false;
        if (b[6] || b[7]) return stop(r, TSR_PLAIN_UNUSUAL);
        e->length = tsr_read_u32(b + 8);
        r->at += LONG_HEAD;
    } else if (is_one_of(e->vr, "AEASATCSDADSDTFDFLISLOLTPNSHSLSSSTTMUIULUS")) {
        e->length = (uint32_t)(b[7] << 8 | b[6]);
        r->at += SHORT_HEAD;
    } else {
        return stop(r, TSR_PLAIN_UNUSUAL);
    }
    return true;
}

static bool skip_sequence(struct reading *r, uint32_t length, int depth);

/* A whole element, which must stand behind the one before, and end at the latest at end (SIZE_MAX: nobody knows). */
static bool get_element(struct reading *r, struct element *e, uint32_t *before, size_t end, int depth)
{
    if (!get_head(r, e)) return false;
    if (e->tag <= *before) return stop(r, TSR_PLAIN_UNUSUAL);
    *before = e->tag;
    if (is_vr(e, "SQ")) {
        if (!skip_sequence(r, e->length, depth + 1)) return false;
    } else {
        if (e->length % 2 != 0) return stop(r, TSR_PLAIN_UNUSUAL); /* undefined, too */
        if (!has(r, e->length)) return false;
        e->value = r->bytes + r->at;
        r->at += e->length;
    }
    return r->at <= end || stop(r, TSR_PLAIN_UNUSUAL);
}

/* Tag and length of an item, or of an end. */
static bool get_mark(struct reading *r, uint32_t *tag, uint32_t *length)
{
    if (!has(r, SHORT_HEAD)) return false;
    *tag = tag_at(r);
    *length = tsr_read_u32(r->bytes + r->at + 4);
    r->at += SHORT_HEAD;
    return true;
}

static bool skip_item(struct reading *r, uint32_t length, int depth)
{
    if (length != UNDEFINED && !has(r, length)) return false;
    const size_t end = length == UNDEFINED ? SIZE_MAX : r->at + length;
    uint32_t before = FIRST_OF_DATASET - 1;
    while (r->at < end) {
        struct element e;
        if (!has(r, SHORT_HEAD)) return false;
        if (length == UNDEFINED && tag_at(r) == ITEM_END) {
            uint32_t tag, none;
            return get_mark(r, &tag, &none) && (none == 0 || stop(r, TSR_PLAIN_UNUSUAL));
        }
        if (!get_element(r, &e, &before, end, depth)) return false;
        if (e.tag >= PIXEL_DATA >> 16 << 16) return stop(r, TSR_PLAIN_UNUSUAL); /* an icon's, say */
    }
    return true;
}

static bool skip_sequence(struct reading *r, uint32_t length, int depth)
{
    if (depth > DEPTH_LIMIT) return stop(r, TSR_PLAIN_UNUSUAL);
    if (length != UNDEFINED && !has(r, length)) return false;
    const size_t end = length == UNDEFINED ? SIZE_MAX : r->at + length;
    while (r->at < end) {
        uint32_t tag, item_length;
        if (!get_mark(r, &tag, &item_length)) return false;
        if (length == UNDEFINED && tag == SEQUENCE_END && item_length == 0) return true;
        if (tag != ITEM) return stop(r, TSR_PLAIN_UNUSUAL);
        if (!skip_item(r, item_length, depth)) return false;
        if (r->at > end) return stop(r, TSR_PLAIN_UNUSUAL);
    }
    return true;
}

/* A single text without spaces in front; those behind, or zeros, are padding. */
static bool get_text(struct reading *r, const struct element *e, const char *vr, char *out, size_t out_size)
{
    size_t length = e->length;
    if (!is_vr(e, vr) || length >= out_size || (length > 0 && e->value[0] == ' ')) return stop(r, TSR_PLAIN_UNUSUAL);
    while (length > 0 && (e->value[length - 1] == ' ' || e->value[length - 1] == '\0')) length--;
    for (size_t i = 0; i < length; i++)
        if (e->value[i] < ' ' || e->value[i] > '~' || e->value[i] == '\\') return stop(r, TSR_PLAIN_UNUSUAL);
    memcpy(out, e->value, length);
    out[length] = '\0';
    return true;
}

static bool get_number(struct reading *r, const struct element *e, long *number)
{
    if (!is_vr(e, "US") || e->length != 2) return stop(r, TSR_PLAIN_UNUSUAL);
    *number = e->value[0] | e->value[1] << 8;
    return true;
}

/* A single number in digits. */
static bool get_digits(struct reading *r, const struct element *e, long *number)
{
    size_t length = e->length;
    while (length > 0 && e->value[length - 1] == ' ') length--;
    if (!is_vr(e, "IS") || length < 1 || length > 9) return stop(r, TSR_PLAIN_UNUSUAL);
    *number = 0;
    for (size_t i = 0; i < length; i++) {
        if (e->value[i] < '0' || e->value[i] > '9') return stop(r, TSR_PLAIN_UNUSUAL);
        *number = 10 * *number + (e->value[i] - '0');
    }
    return true;
}

/* Elements of group 2, as long as its first one says. */
static bool get_meta(struct reading *r, struct tsr_dicom *dicom)
{
    struct element e;
    uint32_t before = 0;
    if (!get_element(r, &e, &before, SIZE_MAX, 0)) return false;
    if (e.tag != META_LENGTH || !is_vr(&e, "UL") || e.length != 4) return stop(r, TSR_PLAIN_UNUSUAL);
    const uint32_t length = tsr_read_u32(e.value);
    if (!has(r, length)) return false;
    const size_t end = r->at + length;
    while (r->at < end) {
        if (!get_element(r, &e, &before, end, 0)) return false;
        if (e.tag >> 16 != META_LENGTH >> 16) return stop(r, TSR_PLAIN_UNUSUAL);
        if (e.tag == TRANSFER_SYNTAX && !get_text(r, &e, "UI", dicom->syntax_uid, sizeof dicom->syntax_uid))
            return false;
    }
    return strcmp(dicom->syntax_uid, "1.2.840.10008.1.2.1") == 0 || stop(r, TSR_PLAIN_UNUSUAL);
}

static bool look_at(struct reading *r, const struct element *e, struct tsr_dicom *dicom)
{
    switch (e->tag) {
    case SOP_CLASS:
        return get_text(r, e, "UI", dicom->sop_class, sizeof dicom->sop_class);
    case MODALITY:
        return get_text(r, e, "CS", dicom->modality, sizeof dicom->modality);
    case PHOTOMETRIC:
        return get_text(r, e, "CS", dicom->photometric, sizeof dicom->photometric);
    case FRAMES:
        return get_digits(r, e, &dicom->frames);
    case SAMPLES:
        return get_number(r, e, &dicom->samples);
    case PLANAR:
        return get_number(r, e, &dicom->planar);
    case ROWS:
        return get_number(r, e, &dicom->rows);
    case COLUMNS:
        return get_number(r, e, &dicom->columns);
    case BITS_ALLOCATED:
        return get_number(r, e, &dicom->bits_allocated);
    case BITS_STORED:
        return get_number(r, e, &dicom->bits_stored);
    case HIGH_BIT:
        return get_number(r, e, &dicom->high_bit);
    case REPRESENTATION:
        return get_number(r, e, &dicom->representation);
    default:
        return true;
    }
}

static bool get_dataset(struct reading *r, struct tsr_dicom *dicom)
{
    uint32_t before = FIRST_OF_DATASET - 1;
    for (;;) {
        struct element e;
        if (!has(r, SHORT_HEAD)) return false;
        if (tag_at(r) == PIXEL_DATA) {
            if (!get_head(r, &e)) return false;
            if ((!is_vr(&e, "OB") && !is_vr(&e, "OW")) || e.length == UNDEFINED) return stop(r, TSR_PLAIN_UNUSUAL);
            dicom->value_offset = r->at;
            return true;
        }
        if (tag_at(r) > PIXEL_DATA) return stop(r, TSR_PLAIN_UNUSUAL);
        if (!get_element(r, &e, &before, SIZE_MAX, 0) || !look_at(r, &e, dicom)) return false;
    }
}

enum tsr_plain tsr_dicom_read_plain(const uint8_t *bytes, size_t size, struct tsr_dicom *dicom)
{
    struct reading r = {bytes, size, PREAMBLE_BYTES + 4, TSR_PLAIN_READ};
    memset(dicom, 0, sizeof *dicom);
    if (size < r.at || memcmp(bytes + PREAMBLE_BYTES, "DICM", 4) != 0) return TSR_PLAIN_UNUSUAL;
    dicom->syntax = TSR_DICOM_NATIVE;
    dicom->explicit_vr = true;
    dicom->columns = dicom->rows = dicom->frames = dicom->samples = dicom->planar = -1;
    dicom->bits_allocated = dicom->bits_stored = dicom->high_bit = dicom->representation = -1;
    dicom->slope = 1;
    if (get_meta(&r, dicom)) get_dataset(&r, dicom);
    return r.state;
}
