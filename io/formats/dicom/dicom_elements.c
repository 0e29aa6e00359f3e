/* Walking over the elements of a DICOM file. PS3.5, 7.1 to 7.5 and A. */
#include "dicom_elements.h"

#include <stdlib.h>
#include <string.h>

enum {
    DEPTH_LIMIT = 100,         /* nested sequences, items counted; real files have a dozen */
    FIRST_BYTES = 1 << 14,     /* held at first: most headers have a few kilobytes */
    HEADER_LIMIT = 64 << 20,   /* bytes before the pixel data */
    UNCLAIMED_BYTES = 1 << 20, /* bytes of a header that are held without a claim */
    MEMORY_LIMIT = 1 << 30,    /* that DCMTK may take to read the elements */
    DISORDER_LIMIT = 1 << 22,  /* comparisons that DCMTK may need to put the elements in order */
    ELEMENT_HEAD = 8,
    LONG_HEAD = 12
};

static const uint32_t fact_tags[TSR_FACTS] = {
    0x00080060, 0x00280002, 0x00280004, 0x00280006, 0x00280008, 0x00280010,      0x00280011,
    0x00280100, 0x00280101, 0x00280102, 0x00280103, 0x0020000e, 0x00281050,      0x00281051,
    0x00281052, 0x00281053, 0x00281056, 0x00283010, 0x00283000, TSR_TAG_PADDING, TSR_TAG_PADDING_LIMIT};

#define TAG_SHARED_GROUPS 0x52009229u
#define TAG_FRAME_GROUPS 0x52009230u
#define TAG_ITEM 0xfffee000u
#define TAG_ITEM_END 0xfffee00du
#define TAG_SEQUENCE_END 0xfffee0ddu

static uint32_t read_u16(const uint8_t *bytes, bool big_endian)
{
    return big_endian ? (uint32_t)bytes[0] << 8 | bytes[1] : (uint32_t)bytes[1] << 8 | bytes[0];
}

static uint32_t read_u32(const uint8_t *bytes, bool big_endian)
{
    const uint32_t first = read_u16(bytes, big_endian), second = read_u16(bytes + 2, big_endian);
    return big_endian ? first << 16 | second : second << 16 | first;
}

static uint32_t read_tag(const uint8_t *bytes, bool big_endian)
{
    return read_u16(bytes, big_endian) << 16 | read_u16(bytes + 2, big_endian);
}

static bool is_listed(const char *vrs, const uint8_t *vr)
{
    for (; *vrs; vrs += 2)
        if (vrs[0] == (char)vr[0] && vrs[1] == (char)vr[1]) return true;
    return false;
}

/* VRs with a length of four bytes after two spare bytes, and all other VRs. PS3.5, 7.1.2. */
static const char long_vrs[] = "OBODOFOLOVOWSQSVUCUNURUTUV";
static const char short_vrs[] = "AEASATCSDADSDTFDFLISLOLTPNSHSLSSSTTMUIULUS";

/* Whether the element of a tag holds the pixels of an image: whole numbers, or floating point numbers. */
static bool holds_pixels(uint32_t tag)
{
    return tag == TSR_TAG_PIXEL_DATA || tag == TSR_TAG_FLOAT_PIXELS || tag == TSR_TAG_DOUBLE_PIXELS;
}

/* Reads tag, VR and length, all of them before end. The value may lie after end. */
static bool read_head(const uint8_t *bytes, size_t at, size_t end, struct tsr_dicom_form form,
                      struct tsr_dicom_element *element)
{
    if (at > end || end - at < ELEMENT_HEAD) return false;
    const uint8_t *head = bytes + at;
    *element = (struct tsr_dicom_element){.tag = read_tag(head, form.big_endian), .start = at};
    size_t size = ELEMENT_HEAD;
    const bool has_vr = form.explicit_vr && element->tag >> 16 != 0xfffe;
    if (!has_vr) {
        element->length = read_u32(head + 4, form.big_endian);
    } else if (is_listed(long_vrs, head + 4)) {
        size = LONG_HEAD;
        if (end - at < LONG_HEAD) return false;
        element->length = read_u32(head + 8, form.big_endian);
    } else if (is_listed(short_vrs, head + 4)) {
        element->length = read_u16(head + 6, form.big_endian);
    } else {
        return false;
    }
    if (has_vr) memcpy(element->vr, head + 4, 2);
    element->value = element->end = at + size;
    return true;
}

bool tsr_dicom_element_head(const uint8_t *bytes, size_t size, struct tsr_dicom_form form,
                            struct tsr_dicom_element *element)
{
    return read_head(bytes, 0, size, form, element);
}

bool tsr_dicom_element_at(const uint8_t *bytes, size_t at, size_t end, struct tsr_dicom_form form,
                          struct tsr_dicom_element *element)
{
    if (!read_head(bytes, at, end, form, element)) return false;
    if (element->length == TSR_UNDEFINED_LENGTH) return true;
    if (element->length > end - element->value) return false;
    element->end += element->length;
    return true;
}

/* ---- The walk --------------------------------------------------------------------------------------------- */

/* What the walk is in: elements of the data set or an item, items of a sequence, or fragments of pixel data. */
enum layer_kind { ELEMENTS, ITEMS, FRAGMENTS };

struct layer {
    enum layer_kind kind;
    uint32_t tag; /* of items: their sequence's */
    struct tsr_dicom_form form;
    bool has_end;  /* false: a delimiter ends it */
    bool is_guess; /* the bytes may turn out not to be a sequence */
    size_t start, end;
    uint64_t count; /* elements of this layer so far */
    uint32_t highest_tag;
    size_t listed; /* of a guess: entries of the listing, the last of which is its element */
};

struct walk {
    struct tsr_input *input;
    const uint8_t *bytes; /* the bytes that are held */
    size_t held, size;
    size_t at;
    struct layer layer[DEPTH_LIMIT];
    int depth; /* index of the innermost layer */
    uint64_t elements, frame_groups, disorder;
    bool is_odd;                       /* not plain (struct tsr_dicom_scan) */
    bool has_preamble;                 /* with DICM */
    bool is_other_form;                /* elements do not have the form that the transfer syntax says */
    struct tsr_dicom_element uneven;   /* the first value of an odd number of bytes; no length: there is none */
    struct tsr_dicom_element *fact;    /* of the scan; NULL: they are not wanted */
    struct tsr_dicom_listing *listing; /* NULL: it is not wanted */
    struct tsr_error *error;
};

/* Holds the input up to byte end, or all of it if it ends before. */
static enum tsr_status hold(struct walk *w, size_t end)
{
    if (end <= w->held || w->held == w->size) return TSR_OK;
    size_t wanted = w->held < FIRST_BYTES ? FIRST_BYTES : 2 * w->held;
    if (wanted > HEADER_LIMIT) wanted = HEADER_LIMIT;
    if (wanted < end) wanted = end;
    if (wanted > w->size) wanted = w->size;
    if (wanted > UNCLAIMED_BYTES) TSR_TRY(tsr_input_claim_header(w->input, HEADER_LIMIT, w->error));
    TSR_TRY(tsr_input_hold(w->input, wanted, &w->bytes, w->error));
    w->held = wanted;
    return TSR_OK;
}

static enum tsr_status fail(struct walk *w, const char *reason)
{
    return tsr_fail(w->error, TSR_ERROR_CORRUPT, "%s", reason);
}

/* Whether so much was read already as elements that what cannot be is damage, and not a file of another kind. */
static bool is_surely_dicom(const struct walk *w)
{
    enum { ENOUGH = 4 };
    return !w->is_other_form && (w->has_preamble || w->elements >= ENOUGH);
}

/* Damage at the current place. Where it is not sure that the file is DICOM, it may be undamaged: no offset says that.
 */
static uint64_t damaged_at(const struct walk *w)
{
    return is_surely_dicom(w) ? w->at : TSR_NO_OFFSET;
}

static enum tsr_status fail_element(struct walk *w, const struct tsr_dicom_element *element, const char *what)
{
    if (element->tag == TAG_ITEM)
        return tsr_fail_at(w->error, TSR_ERROR_CORRUPT, damaged_at(w), "its item at byte %zu %s", w->at, what);
    return tsr_fail_at(w->error, TSR_ERROR_CORRUPT, damaged_at(w), "its element (%04x,%04x) at byte %zu %s",
                       (unsigned)(element->tag >> 16), (unsigned)(element->tag & 0xffff), w->at, what);
}

static const char too_long[] = "has more bytes than are there";

static enum tsr_status push(struct walk *w, struct layer layer)
{
    if (w->depth + 1 == DEPTH_LIMIT) return fail(w, "its sequences are nested too deep");
    w->layer[++w->depth] = layer;
    return TSR_OK;
}

/* Whether there are fewer bytes before end than an element's head has. */
static bool is_cut_head(const uint8_t *bytes, size_t at, size_t end, bool explicit_vr)
{
    const size_t left = end - at;
    return left < ELEMENT_HEAD || (explicit_vr && left < LONG_HEAD && is_listed(long_vrs, bytes + at + 4));
}

static enum tsr_status fail_cut(struct walk *w, size_t end)
{
    return tsr_fail_at(w->error, TSR_ERROR_CORRUPT, damaged_at(w), "%s ends within an element, at byte %zu",
                       end == w->size ? "it" : "an item of it", end);
}

static bool is_blank(const uint8_t *bytes, size_t size)
{
    while (size > 0 && bytes[size - 1] == 0) size--;
    return size == 0;
}

/* Reads the head of the element at the current place, in the innermost layer. */
static enum tsr_status read_element(struct walk *w, struct tsr_dicom_element *element)
{
    const struct layer *const layer = &w->layer[w->depth];
    const size_t end = layer->has_end ? layer->end : w->size;
    TSR_TRY(hold(w, end - w->at < LONG_HEAD ? end : w->at + LONG_HEAD));
    if (tsr_dicom_element_at(w->bytes, w->at, end, layer->form, element)) return TSR_OK;
    /* The file may end within its pixel data: tsr_splice_open() detects that. */
    if (w->depth == 0 && read_head(w->bytes, w->at, end, layer->form, element) &&
        tsr_dicom_element_at(w->bytes, w->at, SIZE_MAX, layer->form, element) && holds_pixels(element->tag))
        return TSR_OK;
    if (read_head(w->bytes, w->at, end, layer->form, element)) return fail_element(w, element, too_long);
    if (is_cut_head(w->bytes, w->at, end, layer->form.explicit_vr) &&
        (w->depth > 0 || !is_blank(w->bytes + w->at, end - w->at)))
        return fail_cut(w, end);
    const bool is_wiped = w->depth > 0 && is_blank(w->bytes + w->at, ELEMENT_HEAD); /* amid a sequence: no padding */
    return tsr_fail_at(w->error, TSR_ERROR_CORRUPT, is_wiped ? damaged_at(w) : TSR_NO_OFFSET,
                       "it has no valid element at byte %zu", w->at);
}

static enum tsr_status list(struct walk *w, const struct tsr_dicom_element *element, bool has_content)
{
    struct tsr_dicom_listing *const l = w->listing;
    if (!l) return TSR_OK;
    if (l->count == l->capacity) {
        const size_t capacity = l->capacity ? 2 * l->capacity : 64;
        struct tsr_dicom_listed *const grown = realloc(l->entries, capacity * sizeof *grown);
        if (!grown) return tsr_fail(w->error, TSR_ERROR_LIMIT, "no memory for a list of %zu elements", capacity);
        l->entries = grown;
        l->capacity = capacity;
    }
    l->entries[l->count++] = (struct tsr_dicom_listed){*element, (uint32_t)w->depth, has_content};
    return TSR_OK;
}

/* Enters a value that is a sequence or may be one; skips all other values. */
static enum tsr_status enter_value(struct walk *w, const struct tsr_dicom_element *element)
{
    const struct layer *const outer = &w->layer[w->depth];
    struct layer layer = {.kind = ITEMS,
                          .tag = element->tag,
                          .form = tsr_dicom_inner_form(element, outer->form),
                          .start = element->value,
                          .end = element->end};
    layer.has_end = element->length != TSR_UNDEFINED_LENGTH;
    w->at = layer.has_end ? element->end : element->value;
    const bool is_sequence = strcmp(element->vr, "SQ") == 0;
    if (layer.has_end && !is_sequence) {
        if (element->vr[0] || element->length < ELEMENT_HEAD) return TSR_OK;
        TSR_TRY(hold(w, element->value + 4));
        if (read_tag(w->bytes + element->value, outer->form.big_endian) != TAG_ITEM) return TSR_OK;
        layer.is_guess = true; /* without a VR, only the bytes tell what the value is */
    } else if (element->vr[0] == 'O') {
        layer.kind = FRAGMENTS;
    } else if (element->vr[0] && !is_sequence) {
        if (strcmp(element->vr, "UN") != 0) return fail(w, "an element of it has no length");
        w->is_odd = true;
    }
    w->at = element->value;
    if (w->listing) {
        w->listing->entries[w->listing->count - 1].has_content = true;
        layer.listed = w->listing->count;
    }
    return push(w, layer);
}

uint64_t tsr_dicom_memory(uint64_t bytes, uint64_t elements)
{
    return 3 * bytes + 300 * elements;
}

static enum tsr_status count_item(struct walk *w)
{
    w->elements++;
    if (tsr_dicom_memory(w->at, w->elements) <= MEMORY_LIMIT) return TSR_OK;
    return fail(w, "its elements would take more than 1 GiB of memory");
}

/* Counts an element, and the comparisons that sorting the element by its tag costs. */
static enum tsr_status count_element(struct walk *w, uint32_t tag)
{
    struct layer *const layer = &w->layer[w->depth];
    TSR_TRY(count_item(w));
    if (tag <= layer->highest_tag && layer->count > 0) w->is_odd = true;
    if (tag < layer->highest_tag)
        w->disorder += layer->count;
    else
        layer->highest_tag = tag;
    layer->count++;
    if (w->disorder > DISORDER_LIMIT) return fail(w, "its elements stand in disorder");
    return TSR_OK;
}

static void note_fact(struct walk *w, const struct tsr_dicom_element *element)
{
    for (int i = 0; i < TSR_FACTS; i++)
        if (fact_tags[i] == element->tag) w->fact[i] = *element;
}

/* Values have an even number of bytes (PS3.5, 7.1.1). Pixel data that lacks the byte is no rarity, and none is lost. */
static void note_uneven(struct walk *w, const struct tsr_dicom_element *element)
{
    const bool is_uneven = element->length % 2 != 0 && element->length != TSR_UNDEFINED_LENGTH;
    if (is_uneven && w->uneven.length == 0 && !holds_pixels(element->tag)) w->uneven = *element;
}

static enum tsr_status step_elements(struct walk *w, struct tsr_dicom_element *pixels, bool *is_over)
{
    struct tsr_dicom_element element;
    const bool is_item = w->depth > 0;
    TSR_TRY(read_element(w, &element));
    if (element.tag == TAG_ITEM_END && is_item && !w->layer[w->depth].has_end) {
        w->depth--;
        w->at = element.value;
        return TSR_OK;
    }
    if (element.tag == TAG_ITEM) return fail_element(w, &element, "is in no sequence");
    if (element.tag >> 16 == 0xfffe) return fail(w, "a delimiter stands among its elements");
    TSR_TRY(count_element(w, element.tag));
    note_uneven(w, &element);
    if (pixels && !is_item && holds_pixels(element.tag)) {
        *pixels = element;
        *is_over = true;
        return TSR_OK;
    }
    if (w->fact && !is_item) note_fact(w, &element);
    TSR_TRY(list(w, &element, false));
    return enter_value(w, &element);
}

/* Enters the next item of a sequence, or skips the next fragment. */
static enum tsr_status step_items(struct walk *w)
{
    struct tsr_dicom_element item;
    struct layer *const layer = &w->layer[w->depth];
    TSR_TRY(read_element(w, &item));
    if (item.tag == TAG_SEQUENCE_END && !layer->has_end) {
        w->depth--;
        w->at = item.value;
        return TSR_OK;
    }
    if (item.tag != TAG_ITEM) return fail(w, "a sequence of it has something else than items");
    TSR_TRY(count_item(w));
    w->frame_groups += w->depth == 1 && (layer->tag == TAG_SHARED_GROUPS || layer->tag == TAG_FRAME_GROUPS);
    TSR_TRY(list(w, &item, layer->kind == ITEMS));
    if (layer->kind == FRAGMENTS) {
        if (item.length == TSR_UNDEFINED_LENGTH) return fail(w, "a fragment of it has no length");
        w->at = item.end;
        return TSR_OK;
    }
    w->at = item.value;
    return push(
        w, (struct layer){
               .kind = ELEMENTS, .form = layer->form, .has_end = item.length != TSR_UNDEFINED_LENGTH, .end = item.end});
}

/* Skips the bytes of a value that was taken for a sequence and is not one. False: no value was guessed to be a
 * sequence. */
static bool take_guess_back(struct walk *w)
{
    int depth = w->depth;
    while (depth > 0 && !w->layer[depth].is_guess) depth--;
    if (depth == 0) return false;
    w->at = w->layer[depth].end;
    w->depth = depth - 1;
    w->is_odd = true;
    if (w->uneven.start >= w->layer[depth].start) w->uneven.length = 0;
    if (w->listing) {
        w->listing->count = w->layer[depth].listed;
        w->listing->entries[w->listing->count - 1].has_content = false;
    }
    return true;
}

/* Walks to the pixel data of the data set; if pixels is NULL, to the end of the input. */
static enum tsr_status walk_elements(struct walk *w, struct tsr_dicom_element *pixels)
{
    bool is_over = false;
    while (!is_over) {
        const struct layer *const layer = &w->layer[w->depth];
        if (w->depth == 0 && w->at == w->size)
            return pixels ? tsr_fail(w->error, TSR_ERROR_CORRUPT, "it has no pixel data") : TSR_OK;
        if (pixels && w->at > HEADER_LIMIT)
            return tsr_fail(w->error, TSR_ERROR_CORRUPT, "its header has more than %d MiB", HEADER_LIMIT >> 20);
        if (layer->has_end && w->depth > 0 && w->at == layer->end) {
            w->depth--;
            continue;
        }
        const enum tsr_status status = layer->kind == ELEMENTS ? step_elements(w, pixels, &is_over) : step_items(w);
        if (status == TSR_ERROR_CORRUPT && w->disorder <= DISORDER_LIMIT && take_guess_back(w)) continue;
        TSR_TRY(status);
    }
    return TSR_OK;
}

/* ---- Files ------------------------------------------------------------------------------------------------ */

static struct walk begin_walk(struct tsr_input *input, struct tsr_dicom_listing *listing, struct tsr_error *error)
{
    const uint64_t size = tsr_input_size(input);
    return (struct walk){.input = input,
                         .size = size > SIZE_MAX ? SIZE_MAX : (size_t)size,
                         .listing = listing,
                         .error = error,
                         .layer = {{.kind = ELEMENTS}}};
}

/* Copies the value of a UID without its padding. */
static void take_uid(char uid[65], const uint8_t *value, size_t length)
{
    while (length > 0 && (value[length - 1] == '\0' || value[length - 1] == ' ')) length--;
    if (length > 64) length = 0;
    memcpy(uid, value, length);
    uid[length] = '\0';
}

/* The meta header: elements of group 2, explicit little endian. */
static enum tsr_status scan_meta(struct walk *w, struct tsr_dicom_scan *scan)
{
    static const struct tsr_dicom_form meta_form = {true, false};
    size_t stated_end = 0; /* 0: the first element is not the length */
    scan->meta_start = scan->meta_end = w->at;
    for (;;) {
        struct tsr_dicom_element element;
        TSR_TRY(hold(w, w->at + LONG_HEAD));
        if (w->held - w->at < ELEMENT_HEAD || read_u16(w->bytes + w->at, false) != 2) {
            if (scan->meta_end != stated_end) w->is_odd = true;
            return TSR_OK;
        }
        if (is_cut_head(w->bytes, w->at, w->size, true)) return fail_cut(w, w->size);
        if (!read_head(w->bytes, w->at, w->size, meta_form, &element) || element.length == TSR_UNDEFINED_LENGTH)
            return fail(w, "its meta header has an element of an unknown form");
        if (element.length > w->size - element.value) return fail_element(w, &element, too_long);
        element.end += element.length;
        if (element.end > HEADER_LIMIT) return fail(w, "its meta header is too long");
        TSR_TRY(hold(w, element.end));
        TSR_TRY(count_element(w, element.tag));
        note_uneven(w, &element);
        TSR_TRY(list(w, &element, false));
        if (element.tag == TSR_TAG_META_LENGTH && strcmp(element.vr, "UL") == 0 && element.length == 4)
            stated_end = element.end + read_u32(w->bytes + element.value, false);
        if (element.tag == TSR_TAG_TRANSFER_SYNTAX)
            take_uid(scan->syntax_uid, w->bytes + element.value, element.length);
        w->at = scan->meta_end = element.end;
    }
}

static bool is_implicit(const char *syntax_uid)
{
    return strcmp(syntax_uid, "1.2.840.10008.1.2") == 0;
}

/* Guesses the form of the data set from its first element, since the transfer syntax may be wrong. */
static struct tsr_dicom_form guess_form(const uint8_t *first)
{
    struct tsr_dicom_form form;
    const uint32_t group = read_u16(first, false);
    form.big_endian = group >= 0x0100 && group % 0x0100 == 0; /* the first group is a small number */
    form.explicit_vr = is_listed(long_vrs, first + 4) || is_listed(short_vrs, first + 4);
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

static enum tsr_status end_scan(struct walk *w, struct tsr_dicom_scan *scan)
{
    enum tsr_status status = walk_elements(w, &scan->pixels);
    scan->elements = w->elements;
    scan->frame_groups = w->frame_groups;
    scan->is_plain = status == TSR_OK && !w->is_odd;
    scan->has_no_pixels = status == TSR_ERROR_CORRUPT && w->depth == 0 && w->at == w->size;
    if (scan->has_no_pixels && tells_of_pixels(scan))
        status =
            tsr_fail_at(w->error, status, damaged_at(w), "it has no pixel data, and its header is that of an image");
    if ((status == TSR_OK || scan->has_no_pixels) && w->uneven.length > 0 && is_surely_dicom(w))
        tsr_input_note_damage(w->input, "its element (%04x,%04x) at byte %zu has an odd number of bytes: %lu",
                              (unsigned)(w->uneven.tag >> 16), (unsigned)(w->uneven.tag & 0xffff), w->uneven.start,
                              (unsigned long)w->uneven.length);
    return status;
}

enum tsr_status tsr_dicom_list_file(struct tsr_input *input, struct tsr_dicom_listing *listing,
                                    struct tsr_dicom_scan *scan, struct tsr_error *error)
{
    struct walk w = begin_walk(input, listing, error);
    memset(scan, 0, sizeof *scan);
    TSR_TRY(hold(&w, FIRST_BYTES));
    w.has_preamble = w.held >= 132 && memcmp(w.bytes + 128, "DICM", 4) == 0;
    if (w.has_preamble) w.at = 132;
    TSR_TRY(scan_meta(&w, scan));
    scan->is_deflated = strcmp(scan->syntax_uid, "1.2.840.10008.1.2.1.99") == 0;
    if (scan->is_deflated) return TSR_OK;
    TSR_TRY(hold(&w, w.at + ELEMENT_HEAD));
    if (w.held - w.at < ELEMENT_HEAD)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, damaged_at(&w), "it has no data set");
    scan->form = guess_form(w.bytes + w.at);
    w.is_other_form = scan->syntax_uid[0] && scan->form.explicit_vr == is_implicit(scan->syntax_uid);
    w.layer[0] = (struct layer){.kind = ELEMENTS, .form = scan->form};
    w.fact = scan->fact;
    return end_scan(&w, scan);
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
    struct walk w = begin_walk(input, listing, error);
    memset(scan, 0, sizeof *scan);
    scan->form.explicit_vr = true;
    w.at = start;
    w.layer[0].form = scan->form;
    w.fact = scan->fact;
    return end_scan(&w, scan);
}

enum tsr_status tsr_dicom_scan_rest(struct tsr_input *input, struct tsr_dicom_scan *scan, struct tsr_error *error)
{
    struct walk w = begin_walk(input, NULL, error);
    w.layer[0] = (struct layer){.kind = ELEMENTS, .form = scan->form, .highest_tag = TSR_TAG_PIXEL_DATA};
    w.layer[0].count = scan->elements;
    w.at = scan->pixels.value;
    if (scan->pixels.length != TSR_UNDEFINED_LENGTH)
        w.at = scan->pixels.end;
    else
        TSR_TRY(push(&w, (struct layer){.kind = FRAGMENTS, .form = scan->form}));
    TSR_TRY(walk_elements(&w, NULL));
    scan->elements += w.elements;
    return TSR_OK;
}
