/* Headers with some elements changed; see dicom_edit.h. */
#include "dicom_edit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tsr_dicom_put(struct tsr_dicom_text *t, const void *bytes, size_t size)
{
    if (size > t->capacity - t->size) {
        const size_t capacity = 2 * (t->capacity + size) + 256;
        uint8_t *grown = t->no_memory ? NULL : realloc(t->bytes, capacity);
        if (!grown) {
            t->no_memory = true;
            return;
        }
        t->bytes = grown;
        t->capacity = capacity;
    }
    if (size > 0) memcpy(t->bytes + t->size, bytes, size);
    t->size += size;
}

static void put_number(uint8_t *out, uint32_t value, int bytes, bool big_endian)
{
    for (int i = 0; i < bytes; i++) out[i] = (uint8_t)(value >> 8 * (big_endian ? bytes - 1 - i : i));
}

void tsr_dicom_set_length(struct tsr_dicom_text *t, size_t value, int bytes, struct tsr_dicom_form form)
{
    if (t->no_memory) return;
    put_number(t->bytes + value - bytes, (uint32_t)(t->size - value), bytes, form.big_endian);
}

size_t tsr_dicom_begin_element(struct tsr_dicom_text *t, uint32_t tag, const char *vr, struct tsr_dicom_form form)
{
    const bool has_vr = form.explicit_vr && vr[0], is_long = has_vr && strcmp(vr, "SQ") == 0;
    uint8_t head[12] = {0};
    put_number(head, tag >> 16, 2, form.big_endian);
    put_number(head + 2, tag & 0xffff, 2, form.big_endian);
    if (has_vr) memcpy(head + 4, vr, 2);
    tsr_dicom_put(t, head, is_long ? 12 : 8);
    return t->size;
}

void tsr_dicom_put_element(struct tsr_dicom_text *t, uint32_t tag, const char *vr, const void *bytes, size_t size,
                           struct tsr_dicom_form form)
{
    const size_t value = tsr_dicom_begin_element(t, tag, vr, form);
    tsr_dicom_put(t, bytes, size);
    if (size % 2 != 0) tsr_dicom_put(t, strcmp(vr, "UI") == 0 ? "" : " ", 1);
    tsr_dicom_set_length(t, value, form.explicit_vr ? 2 : 4, form);
}

struct tsr_dicom_opened tsr_dicom_open_item(struct tsr_dicom_text *t, uint32_t tag, struct tsr_dicom_form form)
{
    const size_t sequence = tsr_dicom_begin_element(t, tag, "SQ", form);
    return (struct tsr_dicom_opened){sequence, tsr_dicom_begin_element(t, TSR_TAG_ITEM, "", form)};
}

void tsr_dicom_close_item(struct tsr_dicom_text *t, struct tsr_dicom_opened opened, struct tsr_dicom_form form)
{
    tsr_dicom_set_length(t, opened.item, 4, form);
    tsr_dicom_set_length(t, opened.sequence, 4, form);
}

/* ---- Reading the original --------------------------------------------------------------------------------- */

/* The value of a tag as a string without its padding. *has: whether the element exists. Errors: TSR_ERROR_CORRUPT (the
 * element stands twice, or its value has TSR_DICOM_VALUE_LIMIT bytes or more). */
enum tsr_status tsr_dicom_find_value(struct tsr_dicom_elements all, uint32_t tag, char value[TSR_DICOM_VALUE_LIMIT],
                                     bool *has, struct tsr_error *error)
{
    struct tsr_dicom_element e;
    *has = false;
    value[0] = '\0';
    while (tsr_dicom_next_element(&all, &e)) {
        if (e.tag != tag) continue;
        if (*has || e.length >= TSR_DICOM_VALUE_LIMIT)
            return tsr_fail(error, TSR_ERROR_CORRUPT, "its element (%04x,%04x) cannot be changed for a lossy copy",
                            tag >> 16, tag & 0xffff);
        size_t length = e.length;
        memcpy(value, all.bytes + e.value, length);
        while (length > 0 && (value[length - 1] == ' ' || value[length - 1] == '\0')) length--;
        value[length] = '\0';
        *has = true;
    }
    return TSR_OK;
}

/* ---- Edits ------------------------------------------------------------------------------------------------ */

struct tsr_dicom_edit *tsr_dicom_add_edit(struct tsr_dicom_edit *edits, int *count, uint32_t tag, const char *vr)
{
    struct tsr_dicom_edit *edit = &edits[(*count)++];
    memset(edit, 0, sizeof *edit);
    edit->tag = tag;
    if (vr[0] != '\0') memcpy(edit->vr, vr, 2);
    return edit;
}

enum tsr_status tsr_dicom_set_value(struct tsr_dicom_edit *edit, const char *old, const char *between,
                                    const char *added, struct tsr_error *error)
{
    const int length = snprintf(edit->value, sizeof edit->value, "%s%s%s", old, between, added);
    if (length < 0 || (size_t)length >= sizeof edit->value)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "its element (%04x,%04x) is too long for a lossy copy",
                        edit->tag >> 16, edit->tag & 0xffff);
    edit->length = (size_t)length;
    return TSR_OK;
}

/* ---- Writing ---------------------------------------------------------------------------------------------- */

static void note_group(struct tsr_dicom_group *group, uint32_t tag, size_t end)
{
    if (tag >> 16 != group->number) return;
    if ((tag & 0xffff) == 0) {
        group->length_at = end - 4;
        group->start = end;
    }
    group->end = end;
}

/* Copies the elements, replaces or inserts the edits, and corrects the lengths of the groups. */
void tsr_dicom_copy_elements(struct tsr_dicom_text *t, struct tsr_dicom_elements all, struct tsr_dicom_edit *edits,
                             int count, struct tsr_dicom_group *groups, int group_count)
{
    struct tsr_dicom_element e;
    for (bool more = true; more;) {
        more = tsr_dicom_next_element(&all, &e);
        for (int i = 0; i < count; i++) {
            if (edits[i].done || (more && edits[i].tag > e.tag)) continue;
            edits[i].done = true;
            if (!edits[i].vr[0]) continue;
            tsr_dicom_put_element(t, edits[i].tag, edits[i].vr, edits[i].value, edits[i].length, all.form);
            for (int g = 0; g < group_count; g++) note_group(&groups[g], edits[i].tag, t->size);
        }
        bool is_replaced = false;
        for (int i = 0; i < count && more; i++) is_replaced |= edits[i].tag == e.tag;
        if (!more || is_replaced) continue;
        tsr_dicom_put(t, all.bytes + e.start, e.end - e.start);
        for (int g = 0; g < group_count; g++) note_group(&groups[g], e.tag, t->size);
    }
    for (int g = 0; g < group_count && !t->no_memory; g++)
        if (groups[g].length_at > 0)
            put_number(t->bytes + groups[g].length_at, (uint32_t)(groups[g].end - groups[g].start), 4,
                       all.form.big_endian);
}
