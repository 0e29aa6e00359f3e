/* Headers of lossy copies; see dicom_derive.h. PS3.3, C.7.6.1.1.2, C.7.6.1.1.5, C.7.6.16.2.6 and C.12.4.1; PS3.10,
 * 7.1; PS3.16, CID 7202 and 7203. */
#include "dicom_derive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dicom_edit.h"

enum {
    CLASS_UID = 0x00080016,
    IMAGE_TYPE = 0x00080008,
    SOP_INSTANCE_UID = 0x00080018,
    CODE_VALUE = 0x00080100,
    CODING_SCHEME = 0x00080102,
    CODE_MEANING = 0x00080104,
    REFERENCED_SERIES = 0x00081115,
    REFERENCED_INSTANCES = 0x0008114a,
    REFERENCED_CLASS = 0x00081150,
    REFERENCED_INSTANCE = 0x00081155,
    REFERENCED_FRAME = 0x00081160,
    REFERENCED_OBJECTS = 0x00081199,
    DERIVATION_DESCRIPTION = 0x00082111,
    SOURCE_IMAGES = 0x00082112,
    FRAME_TYPE = 0x00089007,
    DERIVATION_IMAGES = 0x00089124,
    SOURCE_EVIDENCE = 0x00089154,
    DERIVATION_CODES = 0x00089215,
    STUDY_UID = 0x0020000d,
    SERIES_UID = 0x0020000e,
    CONCATENATION_SOURCE = 0x00200242,
    SMALLEST_VALUE = 0x00280106,
    LARGEST_VALUE = 0x00280107,
    SMALLEST_IN_SERIES = 0x00280108,
    LARGEST_IN_SERIES = 0x00280109,
    SMALLEST_IN_PLANE = 0x00280110,
    LARGEST_IN_PLANE = 0x00280111,
    LOSSY_COMPRESSION = 0x00282110,
    LOSSY_RATIO = 0x00282112,
    LOSSY_METHOD = 0x00282114,
    PURPOSE_OF_REFERENCE = 0x0040a170
};

const uint32_t tsr_derived_tags[] = {TSR_TAG_MEDIA_STORAGE_UID,
                                     TSR_TAG_TRANSFER_SYNTAX,
                                     IMAGE_TYPE,
                                     SOP_INSTANCE_UID,
                                     DERIVATION_DESCRIPTION,
                                     SMALLEST_VALUE,
                                     LARGEST_VALUE,
                                     SMALLEST_IN_SERIES,
                                     LARGEST_IN_SERIES,
                                     SMALLEST_IN_PLANE,
                                     LARGEST_IN_PLANE,
                                     LOSSY_COMPRESSION,
                                     LOSSY_RATIO,
                                     LOSSY_METHOD};
const int tsr_derived_tag_count = sizeof tsr_derived_tags / sizeof tsr_derived_tags[0];

enum { DESCRIPTION_LIMIT = 1024, EDITS_LIMIT = 14, ADDED_LIMIT = 4 };

/* ---- What is in sequences --------------------------------------------------------------------------------- */

/* What refers to the original, or to the copy where the original refers to itself. */
struct references {
    char class_uid[TSR_DICOM_UID_BYTES], old_uid[TSR_DICOM_UID_BYTES], study_uid[TSR_DICOM_UID_BYTES],
        series_uid[TSR_DICOM_UID_BYTES]; /* of the original; empty: it has none */
    const char *new_uid;
    bool was_lossy;
};

/* A copy of the data set with its sequences changed. Elements are taken in the order of the listing. */
struct copy {
    struct tsr_dicom_text *text;
    const uint8_t *bytes;
    const struct tsr_dicom_listed *entries;
    size_t count, next;
    size_t at; /* bytes before it were copied */
    const struct references *references;
    bool derives_shared, derives_frames; /* which functional groups get a derivation */
    enum tsr_status status;
    struct tsr_error *error;
};

/* Where an element stands. */
struct place {
    struct tsr_dicom_form form;
    uint32_t depth;      /* of the elements, as listings have it */
    bool in_groups;      /* in functional groups */
    bool keeps;          /* in private elements and among source images: UIDs stay as they are */
    uint32_t frame;      /* number of the frame whose functional groups these are; 0: it is none's */
    const uint32_t *add; /* sequences that get an item each, in the order of their tags */
    int add_count;
};

static void put_text(struct tsr_dicom_text *t, uint32_t tag, const char *vr, const char *value,
                     struct tsr_dicom_form form)
{
    tsr_dicom_put_element(t, tag, vr, value, strlen(value), form);
}

/* Elements of a code of PS3.16. */
static void put_code(struct tsr_dicom_text *t, const char *code, const char *meaning, struct tsr_dicom_form form)
{
    put_text(t, CODE_VALUE, "SH", code, form);
    put_text(t, CODING_SCHEME, "SH", "DCM", form);
    put_text(t, CODE_MEANING, "LO", meaning, form);
}

/* A reference names both. */
static bool refers_to_original(const struct references *r)
{
    return r->class_uid[0] && r->old_uid[0];
}

static void put_reference(struct tsr_dicom_text *t, const struct references *r, struct tsr_dicom_form form)
{
    put_text(t, REFERENCED_CLASS, "UI", r->class_uid, form);
    put_text(t, REFERENCED_INSTANCE, "UI", r->old_uid, form);
}

/* Elements that refer to the original, or to one of its frames, as to a source image. */
static void put_source(struct tsr_dicom_text *t, const struct references *r, uint32_t frame, struct tsr_dicom_form form)
{
    char number[13];
    put_reference(t, r, form);
    snprintf(number, sizeof number, "%lu", (unsigned long)frame);
    if (frame > 0) put_text(t, REFERENCED_FRAME, "IS", number, form);
    const struct tsr_dicom_opened purpose = tsr_dicom_open_item(t, PURPOSE_OF_REFERENCE, form);
    put_code(t, r->was_lossy ? "121330" : "121320",
             r->was_lossy ? "Lossy compressed predecessor" : "Uncompressed predecessor", form);
    tsr_dicom_close_item(t, purpose, form);
}

/* Elements that refer to the original as to an instance of its series. instances: the sequence of instances. */
static void put_series(struct tsr_dicom_text *t, const struct references *r, uint32_t instances,
                       struct tsr_dicom_form form)
{
    const struct tsr_dicom_opened opened = tsr_dicom_open_item(t, instances, form);
    put_reference(t, r, form);
    tsr_dicom_close_item(t, opened, form);
    put_text(t, SERIES_UID, "UI", r->series_uid, form);
}

/* The elements of a derivation of an image or of a frame. */
static void put_derivation(struct tsr_dicom_text *t, const struct references *r, uint32_t frame,
                           struct tsr_dicom_form form)
{
    struct tsr_dicom_opened opened;
    if (refers_to_original(r)) {
        opened = tsr_dicom_open_item(t, SOURCE_IMAGES, form);
        put_source(t, r, frame, form);
        tsr_dicom_close_item(t, opened, form);
    } else {
        tsr_dicom_set_length(t, tsr_dicom_begin_element(t, SOURCE_IMAGES, "SQ", form), 4, form);
    }
    opened = tsr_dicom_open_item(t, DERIVATION_CODES, form);
    put_code(t, "113040", "Lossy Compression", form);
    tsr_dicom_close_item(t, opened, form);
}

/* The item that a sequence gets. */
static void put_item(struct tsr_dicom_text *t, const struct references *r, uint32_t tag, uint32_t frame,
                     struct tsr_dicom_form form)
{
    const size_t item = tsr_dicom_begin_element(t, TSR_TAG_ITEM, "", form);
    if (tag == REFERENCED_SERIES) put_series(t, r, REFERENCED_INSTANCES, form);
    if (tag == SOURCE_IMAGES) put_source(t, r, frame, form);
    if (tag == DERIVATION_IMAGES) put_derivation(t, r, frame, form);
    if (tag == SOURCE_EVIDENCE) {
        const struct tsr_dicom_opened series = tsr_dicom_open_item(t, REFERENCED_SERIES, form);
        put_series(t, r, REFERENCED_OBJECTS, form);
        tsr_dicom_close_item(t, series, form);
        put_text(t, STUDY_UID, "UI", r->study_uid, form);
    }
    if (tag == DERIVATION_CODES) put_code(t, "113040", "Lossy Compression", form);
    tsr_dicom_set_length(t, item, 4, form);
}

static void copy_to(struct copy *c, size_t end)
{
    tsr_dicom_put(c->text, c->bytes + c->at, end - c->at);
    c->at = end;
}

/* The end of what has a length or a delimiter. */
static void end_content(struct copy *c, const struct tsr_dicom_element *e, size_t value, struct tsr_dicom_form form)
{
    enum { DELIMITER = 8 };
    if (e->length == TSR_UNDEFINED_LENGTH)
        copy_to(c, c->at + DELIMITER);
    else
        tsr_dicom_set_length(c->text, value, 4, form);
}

/* The value of an element without its padding. */
static size_t value_length(const uint8_t *value, size_t length)
{
    while (length > 0 && (value[length - 1] == ' ' || value[length - 1] == '\0')) length--;
    return length;
}

/* Copies an element with another value: two texts, one after the other. */
static void replace_value(struct copy *c, const struct tsr_dicom_element *e, const char *first, const uint8_t *rest,
                          size_t rest_size, struct tsr_dicom_form form)
{
    copy_to(c, e->value);
    const size_t value = c->text->size, size = strlen(first) + rest_size;
    tsr_dicom_put(c->text, first, strlen(first));
    tsr_dicom_put(c->text, rest, rest_size);
    if (size % 2 != 0) tsr_dicom_put(c->text, e->tag == FRAME_TYPE ? " " : "", 1);
    tsr_dicom_set_length(c->text, value, form.explicit_vr ? 2 : 4, form);
    c->at = e->end;
}

/* Copies an element that is no sequence. The original's references to itself become references to the copy. */
static void copy_value(struct copy *c, const struct tsr_dicom_element *e, const struct place *place)
{
    const char *const old = c->references->old_uid;
    const uint8_t *const value = c->bytes + e->value;
    const size_t length = e->length == TSR_UNDEFINED_LENGTH ? 0 : value_length(value, e->length);
    const bool refers = e->tag == REFERENCED_INSTANCE || e->tag == CONCATENATION_SOURCE ||
                        (e->tag == SOP_INSTANCE_UID && place->depth > 0);
    if (place->in_groups && !place->keeps && e->tag >= SMALLEST_VALUE && e->tag <= LARGEST_IN_PLANE) {
        c->at = e->end; /* values of a frame, which may not be true any more */
    } else if (refers && !place->keeps && old[0] && tsr_dicom_has_vr(e, "UI") && length == strlen(old) &&
               memcmp(value, old, length) == 0) {
        replace_value(c, e, c->references->new_uid, value, 0, place->form);
    } else if (place->in_groups && !place->keeps && e->tag == FRAME_TYPE && tsr_dicom_has_vr(e, "CS")) {
        const uint8_t *const rest = memchr(value, '\\', length);
        replace_value(c, e, "DERIVED", rest ? rest : value, rest ? (size_t)(value + length - rest) : 0, place->form);
    } else {
        copy_to(c, e->end);
    }
}

static void copy_elements(struct copy *c, struct place place);

/* Copies the items of a sequence. Those of the functional groups of the data set get a derivation. */
static void copy_items(struct copy *c, const struct tsr_dicom_element *sequence, const struct place *outer)
{
    static const uint32_t derivation[] = {DERIVATION_IMAGES};
    const bool is_shared = outer->depth == 0 && sequence->tag == TSR_TAG_SHARED_GROUPS,
               is_frame = outer->depth == 0 && sequence->tag == TSR_TAG_FRAME_GROUPS,
               is_derived = (is_shared && c->derives_shared) || (is_frame && c->derives_frames);
    struct place place = {.form = tsr_dicom_inner_form(sequence, outer->form), .depth = outer->depth + 2};
    place.in_groups = outer->in_groups || is_shared || is_frame;
    place.keeps = outer->keeps || sequence->tag == SOURCE_IMAGES || (sequence->tag >> 16) % 2 == 1;
    place.add = derivation;
    place.add_count = is_derived;
    while (c->next < c->count && c->entries[c->next].depth == outer->depth + 1) {
        const struct tsr_dicom_listed *const item = &c->entries[c->next++];
        copy_to(c, item->element.value);
        const size_t value = c->text->size;
        if (!item->has_content) { /* a fragment */
            copy_to(c, item->element.end);
            continue;
        }
        place.frame += is_frame;
        copy_elements(c, place);
        end_content(c, &item->element, value, place.form);
    }
}

/* Copies an element with all that it contains. adds: it gets an item. */
static void copy_element(struct copy *c, const struct place *place, bool adds)
{
    const struct tsr_dicom_listed *const listed = &c->entries[c->next++];
    const struct tsr_dicom_element *const e = &listed->element;
    const bool is_empty = e->length == 0 && (!e->vr[0] || strcmp(e->vr, "UN") == 0);
    if (adds && !is_empty && (!listed->has_content || e->vr[0] == 'O'))
        c->status = tsr_fail(c->error, TSR_ERROR_CORRUPT, "its element (%04x,%04x) cannot be changed for a lossy copy",
                             (unsigned)(e->tag >> 16), (unsigned)(e->tag & 0xffff));
    if (!listed->has_content && !adds) {
        copy_value(c, e, place);
        return;
    }
    copy_to(c, e->value);
    const size_t value = c->text->size;
    copy_items(c, e, place);
    if (adds) put_item(c->text, c->references, e->tag, place->frame, tsr_dicom_inner_form(e, place->form));
    end_content(c, e, value, place->form);
}

/* How often the elements that come next, of this depth, have a tag. */
static int count_tag(const struct copy *c, uint32_t depth, uint32_t tag)
{
    int count = 0;
    for (size_t i = c->next; i < c->count && c->entries[i].depth >= depth; i++)
        count += c->entries[i].depth == depth && c->entries[i].element.tag == tag;
    return count;
}

/* The length of a group, which changes as much as the group does. */
struct group {
    uint32_t number;
    size_t length_at, value; /* in the copy; length_at 0: the group has no length */
    size_t start;            /* in the original */
};

static void end_group(struct copy *c, const struct group *g, struct tsr_dicom_form form)
{
    if (g->length_at == 0 || c->text->no_memory) return;
    uint8_t *const length = c->text->bytes + g->length_at;
    const uint32_t more = (uint32_t)(c->text->size - g->value) - (uint32_t)(c->at - g->start);
    uint32_t old = 0;
    for (int i = 0; i < 4; i++) old |= (uint32_t)length[form.big_endian ? 3 - i : i] << 8 * i;
    for (int i = 0; i < 4; i++) length[form.big_endian ? 3 - i : i] = (uint8_t)((old + more) >> 8 * i);
}

static void enter_group(struct copy *c, struct group *g, uint32_t number, struct tsr_dicom_form form)
{
    if (g->number == number) return;
    end_group(c, g, form);
    *g = (struct group){.number = number};
}

/* Copies the elements of the data set or of an item. */
static void copy_elements(struct copy *c, struct place place)
{
    struct group group = {0};
    bool is_missing[ADDED_LIMIT] = {false};
    for (int i = 0; i < place.add_count; i++) is_missing[i] = count_tag(c, place.depth, place.add[i]) == 0;
    for (bool more = true; more && c->status == TSR_OK;) {
        more = c->next < c->count && c->entries[c->next].depth == place.depth;
        const struct tsr_dicom_element *const e = more ? &c->entries[c->next].element : NULL;
        bool adds = false;
        for (int i = 0; i < place.add_count; i++) {
            adds = adds || (more && e->tag == place.add[i]);
            if (!is_missing[i] || (more && e->tag < place.add[i])) continue;
            is_missing[i] = false;
            enter_group(c, &group, place.add[i] >> 16, place.form);
            const size_t value = tsr_dicom_begin_element(c->text, place.add[i], "SQ", place.form);
            put_item(c->text, c->references, place.add[i], place.frame, place.form);
            tsr_dicom_set_length(c->text, value, 4, place.form);
        }
        if (!more) break;
        enter_group(c, &group, e->tag >> 16, place.form);
        copy_element(c, &place, adds);
        if ((e->tag & 0xffff) == 0 && e->length == 4)
            group = (struct group){e->tag >> 16, c->text->size - 4, c->text->size, c->at};
    }
    end_group(c, &group, place.form);
}

/* Which functional groups get a derivation: those of each frame if one of them has one, else the shared ones, if there
 * are any. It must not be in both (PS3.3, C.7.6.16.1.1). */
static void choose_groups(struct copy *c)
{
    uint32_t top = 0;
    bool has_shared = false, has_frames = false, frames_have = false;
    for (size_t i = c->next; i < c->count; i++) {
        const struct tsr_dicom_listed *const l = &c->entries[i];
        if (l->depth == 0) top = l->element.tag;
        has_shared = has_shared || (l->depth == 1 && top == TSR_TAG_SHARED_GROUPS);
        has_frames = has_frames || (l->depth == 1 && top == TSR_TAG_FRAME_GROUPS);
        frames_have =
            frames_have || (l->depth == 2 && top == TSR_TAG_FRAME_GROUPS && l->element.tag == DERIVATION_IMAGES);
    }
    c->derives_frames = frames_have || (has_frames && !has_shared);
    c->derives_shared = !frames_have && has_shared;
}

/* The sequences of the data set that get an item. What functional groups refer to is listed by series, too: of slides
 * in PS3.3, C.12.2, and of the other images in both places (C.8.16.1 and the like). Returns their number. */
static int choose_added(const struct copy *c, uint32_t added[ADDED_LIMIT])
{
    static const char slide[] = "1.2.840.10008.5.1.4.1.1.77.1.6";
    const struct references *const r = c->references;
    const bool has_source = refers_to_original(r), is_listed = has_source && (c->derives_frames || c->derives_shared) &&
                                                               r->study_uid[0] && r->series_uid[0];
    int count = 0;
    if (is_listed) added[count++] = REFERENCED_SERIES;
    if (has_source) added[count++] = SOURCE_IMAGES;
    if (is_listed && strcmp(r->class_uid, slide) != 0) added[count++] = SOURCE_EVIDENCE;
    added[count++] = DERIVATION_CODES;
    return count;
}

uint64_t tsr_derived_bytes(const struct tsr_dicom_scan *scan)
{
    enum { GROUP_BYTES = 512, OTHER_BYTES = 1 << 14 };
    return OTHER_BYTES + GROUP_BYTES * scan->frame_groups;
}

uint64_t tsr_derived_elements(const struct tsr_dicom_scan *scan)
{
    enum { GROUP_ELEMENTS = 20, OTHER_ELEMENTS = 40 };
    return OTHER_ELEMENTS + GROUP_ELEMENTS * scan->frame_groups;
}

/* The elements of the data set up to the pixel data, with the sequences changed. */
static enum tsr_status copy_dataset(const uint8_t *bytes, const struct tsr_dicom_scan *scan,
                                    const struct references *references, struct tsr_dicom_text *text,
                                    struct tsr_error *error)
{
    uint32_t added[ADDED_LIMIT];
    struct tsr_dicom_listing listing = {0};
    struct tsr_dicom_scan again;
    struct tsr_input *const input = tsr_input_from_memory(bytes, scan->pixels.value, "it");
    if (!input) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a header");
    enum tsr_status status = scan->is_deflated ? tsr_dicom_list_dataset(input, scan->meta_end, &listing, &again, error)
                                               : tsr_dicom_list_file(input, &listing, &again, error);
    if (status == TSR_OK) {
        struct copy c = {.text = text,
                         .bytes = bytes,
                         .entries = listing.entries,
                         .count = listing.count,
                         .at = scan->meta_end,
                         .references = references,
                         .error = error};
        while (c.next < c.count && c.entries[c.next].element.start < scan->meta_end) c.next++;
        choose_groups(&c);
        copy_elements(&c, (struct place){.form = scan->form, .add = added, .add_count = choose_added(&c, added)});
        copy_to(&c, scan->pixels.start);
        status = c.status;
    }
    if (status == TSR_OK && text->size > scan->pixels.start - scan->meta_end + tsr_derived_bytes(scan))
        status = tsr_fail(error, TSR_ERROR_CORRUPT, "its header refers to itself too often for a lossy copy");
    free(listing.entries);
    tsr_input_close(input);
    return status;
}

/* ---- Elements of the data set ----------------------------------------------------------------------------- */

static unsigned count_values(const char *values)
{
    unsigned count = values[0] != '\0';
    for (; *values; values++) count += *values == '\\';
    return count;
}

/* Makes value number earlier + 1 of the values of an element. Values that are missing before it become empty. */
static enum tsr_status append_value(struct tsr_dicom_edit *edit, const char *old, unsigned earlier, const char *value,
                                    struct tsr_error *error)
{
    enum { EARLIER_LIMIT = 64 };
    char between[EARLIER_LIMIT + 1] = "";
    unsigned count = count_values(old) > 0 ? count_values(old) : 1, used = 0;
    for (; count <= earlier && used < EARLIER_LIMIT; count++) between[used++] = '\\';
    between[used] = '\0';
    return tsr_dicom_set_value(edit, old, between, value, error);
}

/* The first ratio belongs to the first method, and so on (PS3.3, C.7.6.1.1.5.2). An earlier loss without a ratio or a
 * method keeps its place by an empty value. */
static enum tsr_status edit_loss(const struct tsr_dicom_elements *all, const char *ratio, struct tsr_dicom_edit *edits,
                                 int *count, struct tsr_error *error)
{
    char lossy[TSR_DICOM_VALUE_LIMIT], ratios[TSR_DICOM_VALUE_LIMIT], methods[TSR_DICOM_VALUE_LIMIT];
    bool has;
    TSR_TRY(tsr_dicom_find_value(*all, LOSSY_COMPRESSION, lossy, &has, error));
    TSR_TRY(tsr_dicom_find_value(*all, LOSSY_RATIO, ratios, &has, error));
    TSR_TRY(tsr_dicom_find_value(*all, LOSSY_METHOD, methods, &has, error));
    unsigned earlier = strcmp(lossy, "01") == 0;
    if (count_values(ratios) > earlier) earlier = count_values(ratios);
    if (count_values(methods) > earlier) earlier = count_values(methods);
    TSR_TRY(tsr_dicom_set_value(tsr_dicom_add_edit(edits, count, LOSSY_COMPRESSION, "CS"), "01", "", "", error));
    TSR_TRY(append_value(tsr_dicom_add_edit(edits, count, LOSSY_RATIO, "DS"), ratios, earlier, ratio, error));
    return append_value(tsr_dicom_add_edit(edits, count, LOSSY_METHOD, "CS"), methods, earlier, "TESSERA", error);
}

/* The smallest and the largest sample are those of the copy. What is known of no image alone is left out. */
static enum tsr_status edit_values(const struct tsr_dicom_elements *all, const struct tsr_derivation *derivation,
                                   struct tsr_dicom_edit *edits, int *count, struct tsr_error *error)
{
    const int32_t numbers[] = {derivation->range.low, derivation->range.high};
    char old[TSR_DICOM_VALUE_LIMIT];
    for (uint32_t tag = SMALLEST_VALUE; tag <= LARGEST_IN_PLANE; tag += tag == LARGEST_IN_SERIES ? 7 : 1) {
        bool has;
        TSR_TRY(tsr_dicom_find_value(*all, tag, old, &has, error));
        if (!has) continue;
        struct tsr_dicom_edit *const edit = tsr_dicom_add_edit(edits, count, tag,
                                                               tag > LARGEST_VALUE     ? ""
                                                               : derivation->is_signed ? "SS"
                                                                                       : "US");
        if (tag > LARGEST_VALUE) continue;
        const uint32_t number = (uint32_t)numbers[tag - SMALLEST_VALUE];
        edit->value[!all->form.big_endian] = (char)(number >> 8 & 0xff);
        edit->value[all->form.big_endian] = (char)(number & 0xff);
        edit->length = 2;
    }
    return TSR_OK;
}

static enum tsr_status edit_dataset(const struct tsr_dicom_elements *all, const struct tsr_derivation *derivation,
                                    struct tsr_dicom_edit *edits, int *count, struct tsr_error *error)
{
    char type[TSR_DICOM_VALUE_LIMIT], text[TSR_DICOM_VALUE_LIMIT], ratio[17], added[80 + TSR_EXACT_TEXT];
    bool has;
    snprintf(ratio, sizeof ratio, "%.4g", derivation->ratio);
    snprintf(added, sizeof added, "coded with loss by Tessera, ratio %s%s", ratio, derivation->exact);
    TSR_TRY(tsr_dicom_find_value(*all, IMAGE_TYPE, type, &has, error));
    const char *const rest = strchr(type, '\\'); /* the first value becomes DERIVED, the others stay */
    TSR_TRY(tsr_dicom_set_value(tsr_dicom_add_edit(edits, count, IMAGE_TYPE, "CS"), "DERIVED", "",
                                rest ? rest : "\\SECONDARY", error));
    TSR_TRY(
        tsr_dicom_set_value(tsr_dicom_add_edit(edits, count, SOP_INSTANCE_UID, "UI"), derivation->uid, "", "", error));
    TSR_TRY(tsr_dicom_find_value(*all, DERIVATION_DESCRIPTION, text, &has, error));
    if (strlen(text) + 2 + strlen(added) <= DESCRIPTION_LIMIT)
        TSR_TRY(tsr_dicom_set_value(tsr_dicom_add_edit(edits, count, DERIVATION_DESCRIPTION, "ST"), text,
                                    text[0] ? "; " : "", added, error));
    TSR_TRY(edit_values(all, derivation, edits, count, error));
    return edit_loss(all, ratio, edits, count, error);
}

/* ---- The header ------------------------------------------------------------------------------------------- */

/* A UID of the original; empty if it has none, or one that is too long. */
static enum tsr_status find_uid(struct tsr_dicom_elements all, uint32_t tag, char uid[TSR_DICOM_UID_BYTES],
                                struct tsr_error *error)
{
    char value[TSR_DICOM_VALUE_LIMIT];
    bool has;
    uid[0] = '\0';
    TSR_TRY(tsr_dicom_find_value(all, tag, value, &has, error));
    const size_t length = strlen(value);
    if (length < TSR_DICOM_UID_BYTES) memcpy(uid, value, length + 1);
    return TSR_OK;
}

static enum tsr_status find_references(struct tsr_dicom_elements dataset, struct references *r, struct tsr_error *error)
{
    char lossy[TSR_DICOM_VALUE_LIMIT], methods[TSR_DICOM_VALUE_LIMIT];
    bool has;
    TSR_TRY(find_uid(dataset, CLASS_UID, r->class_uid, error));
    TSR_TRY(find_uid(dataset, SOP_INSTANCE_UID, r->old_uid, error));
    TSR_TRY(find_uid(dataset, STUDY_UID, r->study_uid, error));
    TSR_TRY(find_uid(dataset, SERIES_UID, r->series_uid, error));
    TSR_TRY(tsr_dicom_find_value(dataset, LOSSY_COMPRESSION, lossy, &has, error));
    TSR_TRY(tsr_dicom_find_value(dataset, LOSSY_METHOD, methods, &has, error));
    r->was_lossy = strcmp(lossy, "01") == 0 || methods[0];
    return TSR_OK;
}

/* The meta header: edits is room for them. */
static enum tsr_status derive_meta(const uint8_t *bytes, const struct tsr_dicom_scan *scan,
                                   const struct tsr_derivation *derivation, struct tsr_dicom_edit *edits,
                                   struct tsr_dicom_text *text, struct tsr_error *error)
{
    static const struct tsr_dicom_form meta_form = {true, false};
    const struct tsr_dicom_elements meta = {bytes, scan->meta_start, scan->meta_end, meta_form};
    struct tsr_dicom_group group = {2, 0, 0, 0};
    int count = 0;
    tsr_dicom_put(text, bytes, scan->meta_start);
    if (scan->meta_end == scan->meta_start) return TSR_OK;
    TSR_TRY(tsr_dicom_set_value(tsr_dicom_add_edit(edits, &count, TSR_TAG_MEDIA_STORAGE_UID, "UI"), derivation->uid, "",
                                "", error));
    if (scan->is_deflated)
        TSR_TRY(tsr_dicom_set_value(tsr_dicom_add_edit(edits, &count, TSR_TAG_TRANSFER_SYNTAX, "UI"),
                                    "1.2.840.10008.1.2.1", "", "", error));
    tsr_dicom_copy_elements(text, meta, edits, count, &group, 1);
    return TSR_OK;
}

enum tsr_status tsr_dicom_derive(const uint8_t *bytes, const struct tsr_dicom_scan *scan,
                                 const struct tsr_derivation *derivation, uint8_t **derived, size_t *size,
                                 struct tsr_error *error)
{
    struct tsr_dicom_elements dataset = {bytes, scan->meta_end, scan->pixels.start, scan->form};
    struct tsr_dicom_group groups[] = {{0x0008, 0, 0, 0}, {0x0028, 0, 0, 0}};
    struct tsr_dicom_text t = {0}, copied = {0};
    struct references references = {.new_uid = derivation->uid};
    int count = 0;
    *derived = NULL;
    struct tsr_dicom_edit *edits = calloc(EDITS_LIMIT, sizeof *edits);
    enum tsr_status status = edits ? TSR_OK : tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a header");
    if (status == TSR_OK) status = derive_meta(bytes, scan, derivation, edits, &t, error);
    if (status == TSR_OK) status = find_references(dataset, &references, error);
    if (status == TSR_OK) status = copy_dataset(bytes, scan, &references, &copied, error);
    t.no_memory = t.no_memory || copied.no_memory;
    if (status == TSR_OK && t.no_memory) status = tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a header");
    dataset = (struct tsr_dicom_elements){copied.bytes, 0, copied.size, scan->form};
    if (status == TSR_OK) status = edit_dataset(&dataset, derivation, edits, &count, error);
    if (status == TSR_OK) tsr_dicom_copy_elements(&t, dataset, edits, count, groups, 2);
    tsr_dicom_put(&t, bytes + scan->pixels.start, scan->pixels.value - scan->pixels.start);
    free(edits);
    free(copied.bytes);
    if (status == TSR_OK && t.no_memory) status = tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a header");
    if (status != TSR_OK) {
        free(t.bytes);
        return status;
    }
    *derived = t.bytes;
    *size = t.size;
    return TSR_OK;
}
