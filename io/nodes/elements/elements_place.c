/* Where a byte stands among the elements of DICOM. ELEMENTS.md 1. */
#include "elements_place.h"

#include <string.h>

#include "io/bytes/mix.h"
#include "io/dicom/dicom_reader.h"

#define CHANNELS 0x003a0005u /* of a waveform */
#define VR(a, b) ((uint32_t)(a) << 8 | (uint32_t)(b))

bool tsr_place_is_vr(uint32_t vr, const char *list)
{
    for (; *list; list += 2)
        if (VR(list[0], list[1]) == vr) return true;
    return false;
}

static bool is_long(uint32_t vr)
{
    return tsr_dicom_is_long_vr((const uint8_t[]){(uint8_t)(vr >> 8), (uint8_t)vr});
}

static bool is_vr(uint32_t vr)
{
    return tsr_dicom_is_vr((const uint8_t[]){(uint8_t)(vr >> 8), (uint8_t)vr});
}

static uint32_t number(const struct tsr_place *p, uint32_t from, uint32_t bytes)
{
    uint32_t value = 0;
    for (uint32_t i = 0; i < bytes; i++) value |= (uint32_t)p->head[from + i] << 8 * (p->is_big ? bytes - 1 - i : i);
    return value;
}

static void push(struct tsr_place *p, uint32_t length, bool holds_items_of_bytes)
{
    if (p->depth + 1 == TSR_PLACE_LEVELS) return;
    struct tsr_place_level *const level = &p->level[++p->depth];
    *level = (struct tsr_place_level){.end = length == TSR_UNDEFINED_LENGTH                 ? TSR_PLACE_OPEN
                                             : length < p->size && p->at < p->size - length ? p->at + length
                                                                                            : p->size,
                                      .tag = p->tag == TSR_TAG_ITEM ? level[-1].tag : p->tag,
                                      .holds_items_of_bytes = holds_items_of_bytes};
}

static void begin_head(struct tsr_place *p)
{
    while (p->depth > 0 && p->at >= p->level[p->depth].end) p->depth--;
    p->part = TSR_PLACE_IN_HEAD;
    p->offset = 0;
    p->head_size = TSR_PLACE_HEAD;
}

/* The tag whose values those of this one resemble. */
static uint32_t like(uint32_t tag)
{
    switch (tag) {
    case 0x00020002:
    case 0x00041510:
    case 0x00081150:
        return 0x00080016; /* class */
    case 0x00020003:
    case 0x00041511:
    case 0x00081155:
        return 0x00080018; /* instance */
    case 0x00041512:
        return 0x00020010; /* transfer syntax */
    default:
        return tag;
    }
}

/* What is known of a tag; if nothing is, the place where it is put. */
static struct tsr_place_known *find(struct tsr_place *p, uint32_t tag)
{
    return &p->known[tsr_mix_hash(0, tag) >> 22];
}

static void end_tag(struct tsr_place *p)
{
    p->tag = number(p, 0, 4);
    /* the group is the first number, whatever the byte order is */
    p->tag = p->is_big ? p->tag : p->tag << 16 | p->tag >> 16;
    const struct tsr_place_known *const known = find(p, p->tag);
    const bool is_known = known->tag == p->tag;
    p->old_length = is_known ? known->length : 0;
    p->vr = is_known ? known->vr : 0;
    p->head_size = p->tag >= TSR_TAG_ITEM && p->tag <= TSR_TAG_SEQUENCE_END ? 8 : TSR_PLACE_HEAD; /* items have no VR */
    p->length_size = 4;
}

static void end_head(struct tsr_place *p)
{
    struct tsr_place_level *const level = &p->level[p->depth];
    p->length = number(p, p->head_size - p->length_size, p->length_size);
    level->earlier = level->before;
    level->before = p->tag;
    struct tsr_place_known *const known = find(p, p->tag), *const old = find(p, like(p->tag));
    p->value = p->total;
    p->old_value = old->tag == like(p->tag) ? old->value : 0;
    *known = (struct tsr_place_known){p->tag, p->vr, p->length, p->value};
    if (old != known) *old = (struct tsr_place_known){like(p->tag), p->vr, p->length, p->value};
    if (p->tag == TSR_TAG_ITEM_END || p->tag == TSR_TAG_SEQUENCE_END) {
        if (p->depth > 0) p->depth--;
        begin_head(p);
    } else if ((p->tag == TSR_TAG_ITEM && !level->holds_items_of_bytes) || p->vr == VR('S', 'Q') ||
               p->length == TSR_UNDEFINED_LENGTH) {
        push(p, p->length, p->tag != TSR_TAG_ITEM && tsr_place_is_vr(p->vr, "OBODOFOLOVOW"));
        begin_head(p);
    } else if (p->length == 0) {
        begin_head(p);
    } else {
        p->part = TSR_PLACE_IN_VALUE;
        p->offset = 0;
    }
}

/* A value without VR that begins as an item does is a sequence. */
static void see_item(struct tsr_place *p, const uint8_t *first)
{
    if (tsr_dicom_tag(first, p->is_big) != TSR_TAG_ITEM) return;
    const uint32_t at = p->at;
    p->at -= 4;
    push(p, p->length, false);
    p->at = at;
    begin_head(p);
    memcpy(p->head, first, 4);
    p->offset = 4;
    end_tag(p);
}

static void take_in_head(struct tsr_place *p, uint8_t byte)
{
    p->head[p->offset++] = byte;
    if (p->offset == 2) p->is_big = (p->form & TSR_PLACE_BIG_ENDIAN) && (p->head[0] != 2 || p->head[1] != 0);
    if (p->offset == 4) end_tag(p);
    if (p->offset == 6 && p->head_size == TSR_PLACE_HEAD) {
        const uint32_t vr = VR(p->head[4], p->head[5]);
        p->is_explicit = is_vr(vr);
        if (p->is_explicit) p->vr = vr;
        if (!is_long(vr)) p->head_size = 8;
        if (p->is_explicit && !is_long(vr)) p->length_size = 2;
    }
    if (p->offset == p->head_size) end_head(p);
}

void tsr_place_begin(struct tsr_place *p, uint32_t size, unsigned form)
{
    p->size = size;
    p->at = 0;
    p->form = form;
    p->part = TSR_PLACE_START;
    p->offset = 0;
    p->depth = 0;
    p->level[0] = (struct tsr_place_level){.end = size};
    p->is_explicit = p->is_big = false;
    p->vr = p->length = p->old_length = p->channels = 0;
    if (form & TSR_PLACE_BARE) begin_head(p);
}

void tsr_place_take(struct tsr_place *p, uint8_t byte)
{
    p->at++;
    p->total++;
    if (p->part == TSR_PLACE_IN_HEAD) {
        take_in_head(p, byte);
    } else if (p->part == TSR_PLACE_START) {
        if (++p->offset == TSR_PLACE_PREAMBLE) begin_head(p);
    } else {
        if (p->offset < 4) p->head[p->offset] = byte;
        if (++p->offset == 2 && p->tag == CHANNELS) p->channels = number(p, 0, 2) & 255;
        if (p->offset == p->length)
            begin_head(p);
        else if (p->offset == 4)
            see_item(p, p->head);
    }
}

unsigned tsr_place_form(const uint8_t *bytes, uint32_t size)
{
    const bool is_bare = size < TSR_PLACE_PREAMBLE || memcmp(bytes + 128, "DICM", 4) != 0;
    unsigned form = is_bare ? TSR_PLACE_BARE : 0;
    uint32_t at = is_bare ? 0 : TSR_PLACE_PREAMBLE;
    /* past the elements of group 2, which have short heads but for one */
    while (size - at > TSR_PLACE_HEAD && tsr_dicom_u16(bytes + at, false) == 2) {
        const bool has_long = tsr_dicom_is_long_vr(bytes + at + 4);
        const uint32_t length = tsr_dicom_u16(bytes + at + 6, false);
        const uint32_t whole = has_long ? 12u + bytes[at + 8] : 8 + length;
        if (whole >= size - at) return form;
        at += whole;
    }
    return size - at > 4 && bytes[at] == 0 && bytes[at + 1] != 0 ? form | TSR_PLACE_BIG_ENDIAN : form;
}
