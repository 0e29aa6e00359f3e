/* Scans of DICOM files, and lists of their elements. PS3.5, 7.1 to 7.5 and A; PS3.10, 7.1. */
#include "dicom_elements.h"

#include <stdlib.h>
#include <string.h>

static const uint32_t fact_tags[TSR_FACTS] = {0x00080060,
                                              0x00280002,
                                              0x00280004,
                                              0x00280006,
                                              0x00280008,
                                              0x00280010,
                                              0x00280011,
                                              0x00280100,
                                              0x00280101,
                                              0x00280102,
                                              0x00280103,
                                              TSR_TAG_PADDING,
                                              TSR_TAG_PADDING_LIMIT,
                                              0x0020000e,
                                              0x00281050,
                                              0x00281051,
                                              0x00281052,
                                              0x00281053,
                                              0x00281056,
                                              0x00283010,
                                              0x00283000};

/* A scan that goes on. */
struct scanning {
    struct tsr_dicom_walk walk;
    struct tsr_dicom_scan *scan;
    struct tsr_dicom_listing *listing; /* NULL: it is not wanted */
    struct tsr_dicom_element uneven;   /* the first value of an odd number of bytes; no length: there is none */
    struct tsr_error *error;
};

static void begin(struct scanning *s, struct tsr_input *input, size_t at, struct tsr_dicom_listing *listing,
                  struct tsr_dicom_scan *scan, struct tsr_error *error)
{
    memset(s, 0, sizeof *s);
    memset(scan, 0, sizeof *scan);
    tsr_dicom_begin_walk(&s->walk, input, at, (struct tsr_dicom_form){true, false}, error);
    s->scan = scan;
    s->listing = listing;
    s->error = error;
}

/* ---- What is noted of elements ------------------------------------------------------------------------------ */

static enum tsr_status list(struct scanning *s, const struct tsr_dicom_visit *visit)
{
    struct tsr_dicom_listing *const l = s->listing;
    if (!l) return TSR_OK;
    if (l->count == l->capacity) {
        const size_t capacity = l->capacity ? 2 * l->capacity : 64;
        struct tsr_dicom_listed *const grown = realloc(l->entries, capacity * sizeof *grown);
        if (!grown) return tsr_fail(s->error, TSR_ERROR_LIMIT, "no memory for a list of %zu elements", capacity);
        l->entries = grown;
        l->capacity = capacity;
    }
    l->entries[l->count++] = (struct tsr_dicom_listed){visit->element, visit->depth, visit->has_content};
    return TSR_OK;
}

static void note_fact(struct tsr_dicom_scan *scan, const struct tsr_dicom_element *element)
{
    for (int i = 0; i < TSR_FACTS; i++)
        if (fact_tags[i] == element->tag && (i >= TSR_FACT_SERIES || scan->fact[i].tag == 0)) scan->fact[i] = *element;
    if (element->tag > TSR_TAG_PIXEL_DATA) scan->is_two_ways = true;
}

/* Values have an even number of bytes (PS3.5, 7.1.1). Pixel data that lacks the byte is no rarity, and none is lost. */
static void note_uneven(struct scanning *s, const struct tsr_dicom_element *element)
{
    const bool is_uneven = element->length % 2 != 0 && element->length != TSR_UNDEFINED_LENGTH;
    if (is_uneven && s->uneven.length == 0 && !tsr_dicom_holds_pixels(element->tag)) s->uneven = *element;
}

/* Forgets what was noted of the content of an element that is no sequence. */
static void forget_content(struct scanning *s, const struct tsr_dicom_element *element)
{
    struct tsr_dicom_listing *const l = s->listing;
    if (s->uneven.start > element->start) s->uneven.length = 0;
    while (l && l->entries[l->count - 1].element.start > element->start) l->count--;
    if (l) l->entries[l->count - 1].has_content = false;
}

/* Walks to the pixel data of the data set. */
static enum tsr_status walk_to_pixels(struct scanning *s)
{
    for (;;) {
        struct tsr_dicom_visit visit;
        TSR_TRY(tsr_dicom_walk_on(&s->walk, &visit));
        const struct tsr_dicom_element *const e = &visit.element;
        if (visit.found == TSR_FOUND_END) return tsr_fail(s->error, TSR_ERROR_CORRUPT, "it has no pixel data");
        if (visit.found == TSR_FOUND_NO_SEQUENCE) {
            forget_content(s, e);
            continue;
        }
        if (visit.found == TSR_FOUND_ITEM)
            s->scan->frame_groups +=
                visit.depth == 1 && (visit.sequence == TSR_TAG_SHARED_GROUPS || visit.sequence == TSR_TAG_FRAME_GROUPS);
        else
            note_uneven(s, e);
        if (visit.found == TSR_FOUND_PIXELS) {
            s->scan->pixels = *e;
            return TSR_OK;
        }
        if (visit.found == TSR_FOUND_ELEMENT && visit.depth == 0) note_fact(s->scan, e);
        TSR_TRY(list(s, &visit));
    }
}

/* ---- Files ------------------------------------------------------------------------------------------------ */

/* Copies the value of a UID, or the first of several, without its padding. */
static void take_uid(char uid[65], const uint8_t *value, size_t length)
{
    const uint8_t *const next = length > 0 ? memchr(value, '\\', length) : NULL;
    if (next) length = (size_t)(next - value);
    while (length > 0 && (value[length - 1] == '\0' || value[length - 1] == ' ')) length--;
    if (length > 64) length = 64;
    memcpy(uid, value, length);
    uid[length] = '\0';
}

/* The meta header: elements of group 2, explicit little endian. */
static enum tsr_status scan_meta(struct scanning *s)
{
    static const struct tsr_dicom_form meta_form = {true, false};
    struct tsr_dicom_walk *const w = &s->walk;
    struct tsr_dicom_scan *const scan = s->scan;
    bool has_uid = false;
    scan->meta_start = scan->meta_end = w->at;
    for (;;) {
        struct tsr_dicom_visit visit = {.found = TSR_FOUND_ELEMENT};
        struct tsr_dicom_element *const element = &visit.element;
        TSR_TRY(tsr_dicom_walk_hold(w, w->at + TSR_DICOM_LONG_HEAD));
        if (w->held - w->at < TSR_DICOM_HEAD || tsr_dicom_u16(w->bytes + w->at, false) != 2) return TSR_OK;
        if (tsr_dicom_is_cut_head(w->bytes, w->at, w->size, true)) return tsr_dicom_fail_cut(w, w->size);
        if (!tsr_dicom_head_at(w->bytes, w->at, w->size, meta_form, element) || element->length == TSR_UNDEFINED_LENGTH)
            return tsr_fail(s->error, TSR_ERROR_CORRUPT, "its meta header has an element of an unknown form");
        if (element->length > w->size - element->value) return tsr_dicom_fail_long(w, element);
        element->end += element->length;
        if (element->end > TSR_DICOM_HEADER_LIMIT)
            return tsr_fail(s->error, TSR_ERROR_CORRUPT, "its meta header is too long");
        TSR_TRY(tsr_dicom_walk_hold(w, element->end));
        TSR_TRY(tsr_dicom_walk_count(w, element->tag));
        note_uneven(s, element);
        TSR_TRY(list(s, &visit));
        if (element->tag == TSR_TAG_TRANSFER_SYNTAX && !has_uid) {
            take_uid(scan->syntax_uid, w->bytes + element->value, element->length);
            has_uid = true;
        }
        w->at = scan->meta_end = element->end;
    }
}

bool tsr_dicom_is_implicit(const char *syntax_uid)
{
    static const char *const implicit[] = {"1.2.840.10008.1.2", TSR_GE_UID, TSR_PAPYRUS_UID};
    for (size_t i = 0; i < sizeof implicit / sizeof implicit[0]; i++)
        if (strcmp(syntax_uid, implicit[i]) == 0) return true;
    return false;
}

/* Guesses the form of the data set from its first element, since the transfer syntax may be wrong. */
static struct tsr_dicom_form guess_form(const uint8_t *first)
{
    struct tsr_dicom_form form;
    const uint32_t group = tsr_dicom_u16(first, false);
    form.big_endian = group >= 0x0100 && group % 0x0100 == 0; /* the first group is a small number */
    form.explicit_vr = tsr_dicom_is_vr(first + 4);
    return form;
}

/* Whether the header is that of an image, whose pixels are not only named (JPIP). */
static bool tells_of_pixels(const struct tsr_dicom_scan *scan)
{
    static const char by_reference[] = "1.2.840.10008.1.2.4.9"; /* .94 and .95 */
    const char *const rest = scan->syntax_uid + sizeof by_reference - 1;
    const bool is_named = strncmp(scan->syntax_uid, by_reference, sizeof by_reference - 1) == 0 && *rest >= '4';
    return !is_named && scan->fact[TSR_FACT_ROWS].tag && scan->fact[TSR_FACT_COLUMNS].tag &&
           scan->fact[TSR_FACT_BITS_ALLOCATED].tag;
}

static enum tsr_status end_scan(struct scanning *s)
{
    struct tsr_dicom_walk *const w = &s->walk;
    struct tsr_dicom_scan *const scan = s->scan;
    enum tsr_status status = walk_to_pixels(s);
    scan->elements = w->elements;
    if (w->has_wrong_guess && w->is_disordered) scan->is_two_ways = true;
    scan->has_no_pixels = status == TSR_ERROR_CORRUPT && w->depth == 0 && w->at == w->size;
    if (scan->has_no_pixels && tells_of_pixels(scan))
        status = tsr_fail_at(s->error, status, tsr_dicom_damaged_at(w),
                             "it has no pixel data, and its header is that of an image");
    if ((status == TSR_OK || scan->has_no_pixels) && s->uneven.length > 0 && tsr_dicom_is_surely(w))
        tsr_input_note_damage(w->input, "its element (%04x,%04x) at byte %zu has an odd number of bytes: %lu",
                              (unsigned)(s->uneven.tag >> 16), (unsigned)(s->uneven.tag & 0xffff), s->uneven.start,
                              (unsigned long)s->uneven.length);
    return status;
}

enum tsr_status tsr_dicom_list_file(struct tsr_input *input, struct tsr_dicom_listing *listing,
                                    struct tsr_dicom_scan *scan, struct tsr_error *error)
{
    struct scanning s;
    struct tsr_dicom_walk *const w = &s.walk;
    begin(&s, input, 0, listing, scan, error);
    TSR_TRY(tsr_dicom_walk_hold(w, TSR_DICOM_FIRST_BYTES));
    w->has_preamble = w->held >= 132 && memcmp(w->bytes + 128, "DICM", 4) == 0;
    if (w->has_preamble) w->at = 132;
    TSR_TRY(scan_meta(&s));
    scan->is_deflated = strcmp(scan->syntax_uid, "1.2.840.10008.1.2.1.99") == 0;
    if (scan->is_deflated) return TSR_OK;
    TSR_TRY(tsr_dicom_walk_hold(w, w->at + TSR_DICOM_HEAD));
    if (w->held - w->at < TSR_DICOM_HEAD)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, tsr_dicom_damaged_at(w), "it has no data set");
    scan->form = guess_form(w->bytes + w->at);
    w->is_other_form = scan->syntax_uid[0] && scan->form.explicit_vr == tsr_dicom_is_implicit(scan->syntax_uid);
    w->layer[0] = (struct tsr_dicom_layer){.form = scan->form};
    w->is_disordered = false;
    return end_scan(&s);
}

enum tsr_status tsr_dicom_scan_file(struct tsr_input *input, struct tsr_dicom_scan *scan, struct tsr_error *error)
{
    return tsr_dicom_list_file(input, NULL, scan, error);
}

enum tsr_status tsr_dicom_scan_dataset(struct tsr_input *input, size_t start, struct tsr_dicom_scan *scan,
                                       struct tsr_error *error)
{
    return tsr_dicom_list_dataset(input, start, NULL, scan, error);
}

enum tsr_status tsr_dicom_list_dataset(struct tsr_input *input, size_t start, struct tsr_dicom_listing *listing,
                                       struct tsr_dicom_scan *scan, struct tsr_error *error)
{
    struct scanning s;
    begin(&s, input, start, listing, scan, error);
    scan->form.explicit_vr = true;
    return end_scan(&s);
}
