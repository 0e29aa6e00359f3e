/* Compares the header of a lossy copy with the original's; see dicom_derive.h. It lists the elements of both and knows
 * what may differ from DERIVED.md alone: nothing of what derived the copy. */
#include <stdlib.h>
#include <string.h>

#include "dicom_derive.h"

enum {
    SOP_INSTANCE_UID = 0x00080018,
    REFERENCED_SERIES = 0x00081115,
    REFERENCED_INSTANCE = 0x00081155,
    SOURCE_IMAGES = 0x00082112,
    FRAME_TYPE = 0x00089007,
    DERIVATION_IMAGES = 0x00089124,
    SOURCE_EVIDENCE = 0x00089154,
    DERIVATION_CODES = 0x00089215,
    CONCATENATION_SOURCE = 0x00200242,
    FIRST_VALUE = 0x00280106, /* smallest and largest values, of the image, the series and the plane */
    LAST_VALUE = 0x00280111
};

/* One of the two headers. */
struct side {
    const uint8_t *bytes;
    struct tsr_dicom_listing listing;
    struct tsr_dicom_scan scan;
    size_t at; /* in the listing */
    const uint8_t *uid;
    size_t uid_length; /* 0: it has none */
};

struct comparison {
    struct side original, copy;
};

/* Where elements stand. */
struct place {
    uint32_t depth;
    bool in_groups; /* in functional groups of the data set */
    bool is_group;  /* in an item of these, not deeper */
    bool all_stays; /* in private elements and among source images */
};

uint64_t tsr_dicom_compare_memory(uint64_t elements)
{
    enum { LISTS = 2, GROWING = 3 }; /* a list that is full is copied to one of twice its size */
    return LISTS * GROWING * sizeof(struct tsr_dicom_listed) * (elements + 64);
}

/* ---- Elements of a side ------------------------------------------------------------------------------------ */

/* The entry that comes next, if it is of this depth. NULL: the data set or the item ends. */
static const struct tsr_dicom_listed *peek(const struct side *s, uint32_t depth)
{
    if (s->at == s->listing.count || s->listing.entries[s->at].depth != depth) return NULL;
    return &s->listing.entries[s->at];
}

/* Skips the entry that comes next with all that it contains. */
static void skip(struct side *s)
{
    const uint32_t depth = s->listing.entries[s->at++].depth;
    while (s->at < s->listing.count && s->listing.entries[s->at].depth > depth) s->at++;
}

static size_t value_length(const struct side *s, const struct tsr_dicom_element *e)
{
    const uint8_t *const value = s->bytes + e->value;
    size_t length = e->length == TSR_UNDEFINED_LENGTH ? 0 : e->length;
    while (length > 0 && (value[length - 1] == ' ' || value[length - 1] == '\0')) length--;
    return length;
}

/* The number of items of an entry. */
static uint32_t count_items(const struct side *s, size_t at)
{
    const uint32_t depth = s->listing.entries[at].depth;
    uint32_t count = 0;
    for (size_t i = at + 1; i < s->listing.count && s->listing.entries[i].depth > depth; i++)
        count += s->listing.entries[i].depth == depth + 1;
    return count;
}

/* ---- What may differ ---------------------------------------------------------------------------------------- */

static bool is_derived_tag(uint32_t tag)
{
    for (int i = 0; i < tsr_derived_tag_count; i++)
        if (tsr_derived_tags[i] == tag) return true;
    return false;
}

/* Whether a sequence may have one item more in the copy. */
static bool may_grow(uint32_t tag, const struct place *place)
{
    if (place->is_group) return tag == DERIVATION_IMAGES;
    return place->depth == 0 &&
           (tag == REFERENCED_SERIES || tag == SOURCE_IMAGES || tag == SOURCE_EVIDENCE || tag == DERIVATION_CODES);
}

/* Whether an element does not count: lengths of groups, what records the loss, and the smallest and largest values of
 * frames. */
static bool is_left_out(uint32_t tag, const struct place *place)
{
    if (place->all_stays) return false;
    if ((tag & 0xffff) == 0) return true;
    return (place->depth == 0 && is_derived_tag(tag)) || (place->in_groups && tag >= FIRST_VALUE && tag <= LAST_VALUE);
}

/* The next entry that counts. A sequence that may grow does not count while it has at most so many items: in the
 * original none, and in the copy the one by which it grows, unless the original has the sequence, too. */
static const struct tsr_dicom_listed *next_of(struct side *s, const struct place *place, uint32_t items,
                                              const struct tsr_dicom_listed *of_original)
{
    const struct tsr_dicom_listed *entry;
    while ((entry = peek(s, place->depth)) != NULL) {
        const uint32_t tag = entry->element.tag;
        const bool is_there = of_original && of_original->element.tag == tag,
                   is_new = !is_there && may_grow(tag, place) && (entry->has_content || entry->element.length == 0) &&
                            count_items(s, s->at) <= items;
        if (!is_left_out(tag, place) && !is_new) return entry;
        skip(s);
    }
    return NULL;
}

/* ---- Comparing ---------------------------------------------------------------------------------------------- */

/* Whether a value is two texts, one after the other, and what pads them to an even number of bytes. */
static bool is_text(const struct side *s, const struct tsr_dicom_element *e, const void *first, size_t first_size,
                    const void *second, size_t second_size, uint8_t padding)
{
    const size_t length = first_size + second_size;
    const uint8_t *const value = s->bytes + e->value;
    return e->length == length + length % 2 && (first_size == 0 || memcmp(value, first, first_size) == 0) &&
           (second_size == 0 || memcmp(value + first_size, second, second_size) == 0) &&
           (length % 2 == 0 || value[length] == padding);
}

static bool is_same_value(const struct comparison *c, const struct tsr_dicom_element *a,
                          const struct tsr_dicom_element *b, const struct place *place)
{
    const uint8_t *const value = c->original.bytes + a->value;
    const size_t length = value_length(&c->original, a);
    const bool refers = a->tag == REFERENCED_INSTANCE || a->tag == CONCATENATION_SOURCE ||
                        (a->tag == SOP_INSTANCE_UID && place->depth > 0);
    if (refers && !place->all_stays && tsr_dicom_has_vr(a, "UI") && length > 0 && length == c->original.uid_length &&
        memcmp(value, c->original.uid, length) == 0)
        return is_text(&c->copy, b, c->copy.uid, c->copy.uid_length, NULL, 0, '\0');
    if (place->in_groups && !place->all_stays && a->tag == FRAME_TYPE && tsr_dicom_has_vr(a, "CS")) {
        static const char derived[] = "DERIVED";
        const uint8_t *const rest = length > 0 ? memchr(value, '\\', length) : NULL;
        return is_text(&c->copy, b, derived, sizeof derived - 1, rest, rest ? (size_t)(value + length - rest) : 0, ' ');
    }
    if (a->length != b->length) return false;
    return a->length == TSR_UNDEFINED_LENGTH || memcmp(value, c->copy.bytes + b->value, a->length) == 0;
}

static bool has_same_elements(struct comparison *c, struct place place);

/* Compares the items of two sequences, of which the copy's may have a last one more. */
static bool has_same_items(struct comparison *c, const struct tsr_dicom_listed *sequence, const struct place *outer)
{
    const uint32_t tag = sequence->element.tag, depth = outer->depth + 1;
    const bool is_groups = outer->depth == 0 && (tag == TSR_TAG_SHARED_GROUPS || tag == TSR_TAG_FRAME_GROUPS);
    const struct place place = {.depth = depth + 1,
                                .in_groups = outer->in_groups || is_groups,
                                .is_group = is_groups,
                                .all_stays = outer->all_stays || tag == SOURCE_IMAGES || (tag >> 16) % 2 == 1};
    c->original.at++;
    c->copy.at++;
    for (;;) {
        const struct tsr_dicom_listed *const a = peek(&c->original, depth), *const b = peek(&c->copy, depth);
        if (!a && b && may_grow(tag, outer)) {
            skip(&c->copy);
            return peek(&c->copy, depth) == NULL;
        }
        if (!a || !b) return !a && !b;
        if (a->has_content != b->has_content) return false;
        if (!a->has_content && !is_same_value(c, &a->element, &b->element, &place)) return false;
        c->original.at++;
        c->copy.at++;
        if (a->has_content && !has_same_elements(c, place)) return false;
    }
}

/* Compares the elements of the data sets, or of two items. The recursion is as deep as the walk allowed. */
static bool has_same_elements(struct comparison *c, struct place place)
{
    for (;;) {
        const struct tsr_dicom_listed *const a = next_of(&c->original, &place, 0, NULL), *const b = next_of(
                                                                                             &c->copy, &place, 1, a);
        if (!a || !b) return !a && !b;
        if (a->element.tag != b->element.tag || strcmp(a->element.vr, b->element.vr) != 0) return false;
        if (a->has_content != b->has_content) return false;
        if (a->has_content) {
            if (!has_same_items(c, a, &place)) return false;
            continue;
        }
        if (!is_same_value(c, &a->element, &b->element, &place)) return false;
        c->original.at++;
        c->copy.at++;
    }
}

/* ---- Headers ------------------------------------------------------------------------------------------------ */

static enum tsr_status read_side(struct side *s, const struct tsr_dicom_bytes *header, struct tsr_error *error)
{
    struct tsr_input *const input = tsr_input_from_memory(header->bytes, header->size, "it");
    if (!input) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a header");
    enum tsr_status status = tsr_dicom_list_file(input, &s->listing, &s->scan, error);
    const struct tsr_dicom_scan meta = s->scan;
    if (status == TSR_OK && header->is_inflated) {
        status = tsr_dicom_list_dataset(input, header->dataset_offset, &s->listing, &s->scan, error);
        s->scan.meta_start = meta.meta_start;
    }
    tsr_input_close(input);
    TSR_TRY(status);
    s->bytes = header->bytes;
    for (size_t i = 0; i < s->listing.count && s->uid_length == 0; i++) {
        const struct tsr_dicom_listed *const entry = &s->listing.entries[i];
        if (entry->depth > 0 || entry->has_content || entry->element.tag != SOP_INSTANCE_UID) continue;
        s->uid = s->bytes + entry->element.value;
        s->uid_length = value_length(s, &entry->element);
    }
    return TSR_OK;
}

/* What records the loss stands once. */
static bool is_derived_once(const struct side *s)
{
    bool is_there[32] = {false};
    for (size_t i = 0; i < s->listing.count; i++) {
        const struct tsr_dicom_listed *const entry = &s->listing.entries[i];
        for (int k = 0; k < tsr_derived_tag_count && entry->depth == 0; k++) {
            if (entry->element.tag != tsr_derived_tags[k]) continue;
            if (is_there[k]) return false;
            is_there[k] = true;
        }
    }
    return true;
}

/* What stands before and after the elements: the preamble, and the head of the pixel data. */
static bool has_same_ends(const struct side *a, const struct side *b)
{
    const struct tsr_dicom_element *const one = &a->scan.pixels, *const other = &b->scan.pixels;
    return a->scan.meta_start == b->scan.meta_start && memcmp(a->bytes, b->bytes, a->scan.meta_start) == 0 &&
           one->tag == other->tag && one->length == other->length && strcmp(one->vr, other->vr) == 0;
}

enum tsr_status tsr_dicom_compare_headers(const struct tsr_dicom_bytes *original, const struct tsr_dicom_bytes *derived,
                                          struct tsr_error *error)
{
    struct comparison *const c = calloc(1, sizeof *c);
    if (!c) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a header");
    enum tsr_status status = read_side(&c->original, original, error);
    if (status == TSR_OK) status = read_side(&c->copy, derived, error);
    if (status == TSR_OK && !(has_same_ends(&c->original, &c->copy) && is_derived_once(&c->copy) &&
                              has_same_elements(c, (struct place){.depth = 0})))
        status = tsr_fail(error, TSR_ERROR_CORRUPT, "its header does not survive a lossy copy");
    free(c->original.listing.entries);
    free(c->copy.listing.entries);
    free(c);
    return status;
}
