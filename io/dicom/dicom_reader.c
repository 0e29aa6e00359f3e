/* See dicom_reader.h. */
#include "dicom_reader.h"

#include <string.h>

static bool is_listed(const char *vrs, const uint8_t *vr)
{
    for (; *vrs; vrs += 2)
        if (vrs[0] == (char)vr[0] && vrs[1] == (char)vr[1]) return true;
    return false;
}

bool tsr_dicom_is_long_vr(const uint8_t vr[2])
{
    return is_listed("OBODOFOLOVOWSQSVUCUNURUTUV", vr);
}

bool tsr_dicom_is_vr(const uint8_t vr[2])
{
    return tsr_dicom_is_long_vr(vr) || is_listed("AEASATCSDADSDTFDFLISLOLTPNSHSLSSSTTMUIULUS", vr);
}

bool tsr_dicom_holds_pixels(uint32_t tag)
{
    return tag == TSR_TAG_PIXEL_DATA || tag == TSR_TAG_FLOAT_PIXELS || tag == TSR_TAG_DOUBLE_PIXELS;
}

bool tsr_dicom_head_at(const uint8_t *bytes, size_t at, size_t end, struct tsr_dicom_form form,
                       struct tsr_dicom_element *element)
{
    if (at > end || end - at < TSR_DICOM_HEAD) return false;
    const uint8_t *const head = bytes + at;
    *element = (struct tsr_dicom_element){.tag = tsr_dicom_tag(head, form.big_endian), .start = at};
    size_t size = TSR_DICOM_HEAD;
    const bool has_vr = form.explicit_vr && element->tag >> 16 != TSR_TAG_ITEM >> 16;
    if (!has_vr) {
        element->length = tsr_dicom_u32(head + 4, form.big_endian);
    } else if (tsr_dicom_is_long_vr(head + 4)) {
        size = TSR_DICOM_LONG_HEAD;
        if (end - at < size) return false;
        element->length = tsr_dicom_u32(head + 8, form.big_endian);
    } else if (tsr_dicom_is_vr(head + 4)) {
        element->length = tsr_dicom_u16(head + 6, form.big_endian);
    } else {
        return false;
    }
    if (has_vr) memcpy(element->vr, head + 4, 2);
    element->value = element->end = at + size;
    return true;
}

bool tsr_dicom_element_at(const uint8_t *bytes, size_t at, size_t end, struct tsr_dicom_form form,
                          struct tsr_dicom_element *element)
{
    if (!tsr_dicom_head_at(bytes, at, end, form, element)) return false;
    if (element->length == TSR_UNDEFINED_LENGTH) return true;
    if (element->length > end - element->value) return false;
    element->end += element->length;
    return true;
}

struct tsr_dicom_form tsr_dicom_inner_form(const struct tsr_dicom_element *sequence, struct tsr_dicom_form outer)
{
    const bool is_unknown = sequence->vr[0] == 'U' && sequence->vr[1] == 'N';
    return is_unknown ? (struct tsr_dicom_form){false, false} : outer;
}

/* The end of a value of undefined length. A delimiter has no value, whatever its length says. The recursion is as deep
 * as the walk allowed. */
static size_t skip_undefined(const uint8_t *bytes, size_t at, size_t end, struct tsr_dicom_form form)
{
    struct tsr_dicom_element e;
    while (tsr_dicom_head_at(bytes, at, end, form, &e)) {
        if (e.tag >> 16 == TSR_TAG_ITEM >> 16 && e.tag != TSR_TAG_ITEM) return e.value;
        if (e.length == TSR_UNDEFINED_LENGTH)
            at = skip_undefined(bytes, e.value, end, tsr_dicom_inner_form(&e, form));
        else if (e.length <= end - e.value)
            at = e.value + e.length;
        else
            return end;
    }
    return end;
}

bool tsr_dicom_next_element(struct tsr_dicom_elements *all, struct tsr_dicom_element *e)
{
    if (all->at >= all->end || !tsr_dicom_element_at(all->bytes, all->at, all->end, all->form, e)) return false;
    if (e->length == TSR_UNDEFINED_LENGTH)
        e->end = skip_undefined(all->bytes, e->value, all->end, tsr_dicom_inner_form(e, all->form));
    all->at = e->end;
    return true;
}
