/* Headers of lossy copies; see dicom_derive.h. PS3.3, C.7.6.1.1.2 and C.7.6.1.1.5; PS3.10, 7.1. */
#include "dicom_derive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    IMAGE_TYPE = 0x00080008,
    SOP_INSTANCE_UID = 0x00080018,
    DERIVATION_DESCRIPTION = 0x00082111,
    LOSSY_COMPRESSION = 0x00282110,
    LOSSY_RATIO = 0x00282112,
    LOSSY_METHOD = 0x00282114
};

const uint32_t tsr_derived_tags[] = {TSR_TAG_MEDIA_STORAGE_UID, TSR_TAG_TRANSFER_SYNTAX, IMAGE_TYPE,  SOP_INSTANCE_UID,
                                     DERIVATION_DESCRIPTION,    LOSSY_COMPRESSION,       LOSSY_RATIO, LOSSY_METHOD};
const int tsr_derived_tag_count = sizeof tsr_derived_tags / sizeof tsr_derived_tags[0];

enum { VALUE_LIMIT = 2048, DESCRIPTION_LIMIT = 1024, EDITS_LIMIT = 8 };

/* An element that replaces the one of its tag, or is inserted before the first one of a higher tag. */
struct edit {
    uint32_t tag;
    char vr[3];
    char value[VALUE_LIMIT];
    size_t length;
    bool done;
};

/* The bytes of the new header. */
struct text {
    uint8_t *bytes;
    size_t size, capacity;
    bool no_memory;
};

static void put(struct text *t, const void *bytes, size_t size)
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

/* The length of an edit has two bytes in explicit VR: all VRs of edits are short ones. */
static void put_element(struct text *t, const struct edit *edit, struct tsr_dicom_form form)
{
    uint8_t head[8];
    const bool is_odd = edit->length % 2 != 0;
    const uint32_t length = (uint32_t)(edit->length + is_odd);
    put_number(head, edit->tag >> 16, 2, form.big_endian);
    put_number(head + 2, edit->tag & 0xffff, 2, form.big_endian);
    memcpy(head + 4, edit->vr, 2);
    put_number(head + (form.explicit_vr ? 6 : 4), length, form.explicit_vr ? 2 : 4, form.big_endian);
    put(t, head, sizeof head);
    put(t, edit->value, edit->length);
    if (is_odd) put(t, strcmp(edit->vr, "UI") == 0 ? "" : " ", 1);
}

/* ---- Reading the original --------------------------------------------------------------------------------- */

/* Elements of a header or a data set, one after the other. A sequence with all its items is one element. */
struct elements {
    const uint8_t *bytes;
    size_t at, end;
    struct tsr_dicom_form form;
};

/* The end of a value of undefined length. The bytes were scanned, so they are well formed. */
static size_t skip_undefined(const uint8_t *bytes, size_t at, size_t end, struct tsr_dicom_form form)
{
    struct tsr_dicom_element e;
    while (tsr_dicom_element_at(bytes, at, end, form, &e)) {
        if (e.tag >> 16 == 0xfffe && e.tag != 0xfffee000u) return e.value; /* the delimiter that ends the value */
        if (e.length != TSR_UNDEFINED_LENGTH) {
            at = e.end;
            continue;
        }
        at = skip_undefined(bytes, e.value, end, tsr_dicom_inner_form(&e, form));
    }
    return end;
}

static bool next_element(struct elements *all, struct tsr_dicom_element *e)
{
    if (all->at >= all->end || !tsr_dicom_element_at(all->bytes, all->at, all->end, all->form, e)) return false;
    if (e->length == TSR_UNDEFINED_LENGTH)
        e->end = skip_undefined(all->bytes, e->value, all->end, tsr_dicom_inner_form(e, all->form));
    all->at = e->end;
    return true;
}

/* The value of a tag as a string without its padding. *has: whether the element exists. Errors: TSR_ERROR_CORRUPT (the
 * element stands twice, or its value has VALUE_LIMIT bytes or more). */
static enum tsr_status find_value(struct elements all, uint32_t tag, char value[VALUE_LIMIT], bool *has,
                                  struct tsr_error *error)
{
    struct tsr_dicom_element e;
    *has = false;
    value[0] = '\0';
    while (next_element(&all, &e)) {
        if (e.tag != tag) continue;
        if (*has || e.length >= VALUE_LIMIT)
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

static struct edit *add_edit(struct edit *edits, int *count, uint32_t tag, const char *vr)
{
    struct edit *edit = &edits[(*count)++];
    memset(edit, 0, sizeof *edit);
    edit->tag = tag;
    memcpy(edit->vr, vr, 2);
    return edit;
}

static enum tsr_status set_value(struct edit *edit, const char *old, const char *between, const char *added,
                                 struct tsr_error *error)
{
    const int length = snprintf(edit->value, sizeof edit->value, "%s%s%s", old, between, added);
    if (length < 0 || (size_t)length >= sizeof edit->value)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "its element (%04x,%04x) is too long for a lossy copy",
                        edit->tag >> 16, edit->tag & 0xffff);
    edit->length = (size_t)length;
    return TSR_OK;
}

static unsigned count_values(const char *values)
{
    unsigned count = values[0] != '\0';
    for (; *values; values++) count += *values == '\\';
    return count;
}

/* Makes value number earlier + 1 of the values of an element. Values that are missing before it become empty. */
static enum tsr_status append_value(struct edit *edit, const char *old, unsigned earlier, const char *value,
                                    struct tsr_error *error)
{
    enum { EARLIER_LIMIT = 64 };
    char between[EARLIER_LIMIT + 1] = "";
    unsigned count = count_values(old) > 0 ? count_values(old) : 1, used = 0;
    for (; count <= earlier && used < EARLIER_LIMIT; count++) between[used++] = '\\';
    between[used] = '\0';
    return set_value(edit, old, between, value, error);
}

/* The first ratio belongs to the first method, and so on (PS3.3, C.7.6.1.1.5.2). An earlier loss without a ratio or a
 * method keeps its place by an empty value. */
static enum tsr_status edit_loss(const struct elements *all, const char *ratio, struct edit *edits, int *count,
                                 struct tsr_error *error)
{
    char lossy[VALUE_LIMIT], ratios[VALUE_LIMIT], methods[VALUE_LIMIT];
    bool has;
    TSR_TRY(find_value(*all, LOSSY_COMPRESSION, lossy, &has, error));
    TSR_TRY(find_value(*all, LOSSY_RATIO, ratios, &has, error));
    TSR_TRY(find_value(*all, LOSSY_METHOD, methods, &has, error));
    unsigned earlier = strcmp(lossy, "01") == 0;
    if (count_values(ratios) > earlier) earlier = count_values(ratios);
    if (count_values(methods) > earlier) earlier = count_values(methods);
    TSR_TRY(set_value(add_edit(edits, count, LOSSY_COMPRESSION, "CS"), "01", "", "", error));
    TSR_TRY(append_value(add_edit(edits, count, LOSSY_RATIO, "DS"), ratios, earlier, ratio, error));
    return append_value(add_edit(edits, count, LOSSY_METHOD, "CS"), methods, earlier, "TESSERA", error);
}

static enum tsr_status edit_dataset(const struct elements *all, const struct tsr_derivation *derivation,
                                    struct edit *edits, int *count, struct tsr_error *error)
{
    char type[VALUE_LIMIT], old_uid[VALUE_LIMIT], text[VALUE_LIMIT], ratio[17], added[80];
    bool has;
    snprintf(ratio, sizeof ratio, "%.4g", derivation->ratio);
    snprintf(added, sizeof added, "coded with loss by Tessera, ratio %s", ratio);
    TSR_TRY(find_value(*all, IMAGE_TYPE, type, &has, error));
    const char *const rest = strchr(type, '\\'); /* the first value becomes DERIVED, the others stay */
    TSR_TRY(set_value(add_edit(edits, count, IMAGE_TYPE, "CS"), "DERIVED", "", rest ? rest : "\\SECONDARY", error));
    TSR_TRY(find_value(*all, SOP_INSTANCE_UID, old_uid, &has, error));
    TSR_TRY(set_value(add_edit(edits, count, SOP_INSTANCE_UID, "UI"), derivation->uid, "", "", error));
    TSR_TRY(find_value(*all, DERIVATION_DESCRIPTION, text, &has, error));
    if (strlen(text) + 2 + strlen(added) <= DESCRIPTION_LIMIT)
        TSR_TRY(
            set_value(add_edit(edits, count, DERIVATION_DESCRIPTION, "ST"), text, text[0] ? "; " : "", added, error));
    return edit_loss(all, ratio, edits, count, error);
}

/* ---- Writing ---------------------------------------------------------------------------------------------- */

/* Where the length of a group stands in the new header, and where the group begins and ends there. */
struct group {
    uint32_t number;
    size_t length_at, start, end; /* length_at 0: the group has no length element */
};

static void note_group(struct group *group, uint32_t tag, size_t end)
{
    if (tag >> 16 != group->number) return;
    if ((tag & 0xffff) == 0) {
        group->length_at = end - 4;
        group->start = end;
    }
    group->end = end;
}

/* Copies the elements, replaces or inserts the edits, and corrects the lengths of the groups. */
static void copy_elements(struct text *t, struct elements all, struct edit *edits, int count, struct group *groups,
                          int group_count)
{
    struct tsr_dicom_element e;
    for (bool more = true; more;) {
        more = next_element(&all, &e);
        for (int i = 0; i < count; i++) {
            if (edits[i].done || (more && edits[i].tag > e.tag)) continue;
            put_element(t, &edits[i], all.form);
            for (int g = 0; g < group_count; g++) note_group(&groups[g], edits[i].tag, t->size);
            edits[i].done = true;
        }
        bool is_replaced = false;
        for (int i = 0; i < count && more; i++) is_replaced |= edits[i].tag == e.tag;
        if (!more || is_replaced) continue;
        put(t, all.bytes + e.start, e.end - e.start);
        for (int g = 0; g < group_count; g++) note_group(&groups[g], e.tag, t->size);
    }
    for (int g = 0; g < group_count && !t->no_memory; g++)
        if (groups[g].length_at > 0)
            put_number(t->bytes + groups[g].length_at, (uint32_t)(groups[g].end - groups[g].start), 4,
                       all.form.big_endian);
}

enum tsr_status tsr_dicom_derive(const uint8_t *bytes, const struct tsr_dicom_scan *scan,
                                 const struct tsr_derivation *derivation, uint8_t **derived, size_t *size,
                                 struct tsr_error *error)
{
    static const struct tsr_dicom_form meta_form = {true, false};
    const struct elements meta = {bytes, scan->meta_start, scan->meta_end, meta_form},
                          dataset = {bytes, scan->meta_end, scan->pixels.start, scan->form};
    struct group meta_group[] = {{2, 0, 0, 0}}, groups[] = {{0x0008, 0, 0, 0}, {0x0028, 0, 0, 0}};
    struct text t = {0};
    *derived = NULL;
    struct edit *edits = calloc(EDITS_LIMIT, sizeof *edits);
    if (!edits) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a header");
    enum tsr_status status = TSR_OK;
    int count = 0;
    put(&t, bytes, scan->meta_start);
    if (scan->meta_end > scan->meta_start) {
        status = set_value(add_edit(edits, &count, TSR_TAG_MEDIA_STORAGE_UID, "UI"), derivation->uid, "", "", error);
        if (status == TSR_OK && scan->is_deflated)
            status =
                set_value(add_edit(edits, &count, TSR_TAG_TRANSFER_SYNTAX, "UI"), "1.2.840.10008.1.2.1", "", "", error);
        copy_elements(&t, meta, edits, count, meta_group, 1);
    }
    count = 0;
    if (status == TSR_OK) status = edit_dataset(&dataset, derivation, edits, &count, error);
    if (status == TSR_OK) copy_elements(&t, dataset, edits, count, groups, 2);
    put(&t, bytes + scan->pixels.start, scan->pixels.value - scan->pixels.start);
    free(edits);
    if (status == TSR_OK && t.no_memory) status = tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a header");
    if (status != TSR_OK) {
        free(t.bytes);
        return status;
    }
    *derived = t.bytes;
    *size = t.size;
    return TSR_OK;
}
