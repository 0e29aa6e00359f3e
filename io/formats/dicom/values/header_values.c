/* What a header says of its values; see the header. The elements come in their order from the listing of a scan, which
 * has bounded their number and their depth. */
#include "header_values.h"

#include <stdlib.h>
#include <string.h>

enum {
    PIXEL_REPRESENTATION = 0x00280103,
    WINDOW_CENTER = 0x00281050,
    WINDOW_WIDTH = 0x00281051,
    RESCALE_INTERCEPT = 0x00281052,
    RESCALE_SLOPE = 0x00281053,
    VOI_LUT_FUNCTION = 0x00281056,
    MODALITY_LUTS = 0x00283000,
    LUT_DESCRIPTOR = 0x00283002,
    LUT_DATA = 0x00283006,
    VOI_LUTS = 0x00283010,
    FRAME_VOI = 0x00289132,
    PIXEL_TRANSFORMATION = 0x00289145,
    DEEPEST = 6 /* LUT Data in VOI LUT Sequence in Frame VOI LUT Sequence in functional groups */
};

/* An element whose value may be read; tag 0: there is none. */
typedef struct tsr_dicom_element element;

struct reading {
    const uint8_t *bytes;
    bool big_endian, is_signed;
    struct tsr_header_values *values;
    struct tsr_named_values *groups; /* of the item of functional groups that is read; NULL: none is */
    uint32_t
        sequence[DEEPEST / 2 + 1]; /* the element that is read, or the one that it stands in, at depths 0, 2, 4, 6 */
    /* What makes windows once all of it is there: in the data set, and in an item of a Frame VOI LUT Sequence. */
    struct looks {
        element center, width;
        bool is_linear;
    } of_dataset, of_frame;
    struct table {
        element descriptor, data;
    } table;
    uint32_t table_depth;              /* of its elements */
    struct tsr_named_values *table_of; /* who names the table; NULL: it is the Modality LUT */
    bool has_no_memory;
};

static bool has_value(const element *e)
{
    return e->tag != 0 && e->length != TSR_UNDEFINED_LENGTH;
}

/* Value number k of decimal strings, from 0. */
static bool read_value(const uint8_t *bytes, const element *e, uint32_t k, struct tsr_decimal *number)
{
    if (!has_value(e) || !tsr_dicom_has_vr(e, "DS")) return false;
    const char *text = (const char *)bytes + e->value, *const end = (const char *)bytes + e->end;
    for (; k > 0; k--) {
        text = memchr(text, '\\', (size_t)(end - text));
        if (!text) return false;
        text++;
    }
    const char *const last = memchr(text, '\\', (size_t)(end - text));
    return tsr_read_decimal(text, (size_t)((last ? last : end) - text), number);
}

/* ---- Windows ---------------------------------------------------------------------------------------------- */

static bool same_window(const struct tsr_named_window *a, const struct tsr_named_window *b)
{
    return a->is_linear == b->is_linear && tsr_same_decimal(a->center, b->center) &&
           tsr_same_decimal(a->width, b->width);
}

/* A window is at least one value wide; one that is not LINEAR is wider than nothing. PS3.3, C.11.2.1.2 and C.11.2.1.3.
 */
static void add_window(struct reading *r, struct tsr_named_values *of, const struct tsr_named_window *window)
{
    struct tsr_header_values *const v = r->values;
    const struct tsr_decimal least = {window->is_linear, 0};
    if (window->width.digits <= 0 || tsr_is_larger(least, window->width) || of->windows == TSR_NAMED_WINDOWS) return;
    if (of->windows == 0) of->first = v->window_count;
    if (of->first + of->windows != v->window_count) return; /* the elements of the header stand in disorder */
    for (uint32_t w = of->first; w < v->window_count; w++)
        if (same_window(&v->window[w], window)) return;
    if (v->window_count == v->window_capacity) {
        const uint32_t capacity = v->window_capacity ? 2 * v->window_capacity : 16;
        struct tsr_named_window *const grown = realloc(v->window, capacity * sizeof *grown);
        r->has_no_memory = r->has_no_memory || !grown;
        if (!grown) return;
        v->window = grown;
        v->window_capacity = capacity;
    }
    v->window[v->window_count++] = *window;
    of->windows++;
}

static void end_looks(struct reading *r, struct looks *looks, struct tsr_named_values *of)
{
    struct tsr_named_window window = {.is_linear = looks->is_linear};
    for (uint32_t k = 0; of && k < TSR_NAMED_WINDOWS && read_value(r->bytes, &looks->center, k, &window.center) &&
                         read_value(r->bytes, &looks->width, k, &window.width);
         k++)
        add_window(r, of, &window);
    *looks = (struct looks){.is_linear = true};
}

static void take_looks(const struct reading *r, const element *e, struct looks *looks)
{
    if (e->tag == WINDOW_CENTER) looks->center = *e;
    if (e->tag == WINDOW_WIDTH) looks->width = *e;
    if (e->tag != VOI_LUT_FUNCTION || !has_value(e)) return;
    size_t length = e->length;
    const char *const text = (const char *)r->bytes + e->value;
    while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\0')) length--;
    looks->is_linear =
        !(length == 12 && memcmp(text, "LINEAR_EXACT", 12) == 0) && !(length == 7 && memcmp(text, "SIGMOID", 7) == 0);
}

/* ---- Lookup tables ---------------------------------------------------------------------------------------- */

static uint32_t read_word(const uint8_t *bytes, bool big_endian)
{
    return big_endian ? (uint32_t)bytes[0] << 8 | bytes[1] : (uint32_t)bytes[1] << 8 | bytes[0];
}

uint32_t tsr_lut_entry(const struct tsr_named_lut *lut, uint32_t k)
{
    return lut->bytes == 1 ? lut->data[k] : read_word(lut->data + 2 * (size_t)k, lut->big_endian);
}

/* PS3.3, C.11.1.1.1: number of entries, 0 is 65536; first value; bits of an entry. Entries of 8 bits may stand in bytes
 * or in words. */
static bool read_table(const struct reading *r, const struct table *table, bool is_signed, struct tsr_named_lut *lut)
{
    const element *const d = &table->descriptor, *const data = &table->data;
    *lut = (struct tsr_named_lut){0};
    if (!has_value(d) || !has_value(data) || d->length != 6) return false;
    const bool big_endian = r->big_endian && d->vr[0];
    const uint32_t count = read_word(r->bytes + d->value, big_endian),
                   first = read_word(r->bytes + d->value + 2, big_endian), entries = count ? count : 65536;
    lut->big_endian = r->big_endian && data->vr[0];
    lut->data = r->bytes + data->value;
    lut->bytes = data->length / 2 >= entries ? 2 : 1;
    if (data->length / (unsigned)lut->bytes < entries) return false;
    lut->first = is_signed && first > INT16_MAX ? (int32_t)first - 65536 : (int32_t)first;
    lut->entries = entries;
    return true;
}

/* A table as the window whose slope is as wide as what its output changes in. */
static void add_table(struct reading *r, const struct tsr_named_lut *lut, struct tsr_named_values *of)
{
    uint32_t start = 0, end = lut->entries - 1; /* of the values between which the output changes */
    while (start < end && tsr_lut_entry(lut, start + 1) == tsr_lut_entry(lut, 0)) start++;
    while (end > start && tsr_lut_entry(lut, end - 1) == tsr_lut_entry(lut, lut->entries - 1)) end--;
    if (start == end) return; /* one output */
    const struct tsr_named_window window = {tsr_half(tsr_decimal_of(2 * (int64_t)lut->first + start + end + 1, 0)),
                                            tsr_decimal_of((int64_t)end - start + 1, 0), true};
    add_window(r, of, &window);
}

/* The input of a VOI LUT has a sign if the VR says so; without a VR, if samples have one or the rescale makes one. */
static void end_table(struct reading *r)
{
    const element *const d = &r->table.descriptor;
    struct tsr_named_lut lut;
    struct tsr_named_values *const of = r->table_of;
    const bool may_fall = r->is_signed || (of && (of->intercept.digits < 0 || r->values->dataset.intercept.digits < 0 ||
                                                  r->values->shared.intercept.digits < 0)),
               is_signed = d->vr[0] ? strcmp(d->vr, "SS") == 0 : may_fall;
    if (d->tag != 0 && read_table(r, &r->table, is_signed, &lut)) {
        if (of)
            add_table(r, &lut, of);
        else if (r->values->modality_lut.entries == 0)
            r->values->modality_lut = lut;
    }
    r->table = (struct table){0};
}

static void take_table(struct reading *r, const element *e, uint32_t depth, struct tsr_named_values *of)
{
    r->table_depth = depth;
    r->table_of = of;
    r->values->has_modality_lut = r->values->has_modality_lut || !of;
    if (e->tag == LUT_DESCRIPTOR) r->table.descriptor = *e;
    if (e->tag == LUT_DATA) r->table.data = *e;
}

/* ---- The walk --------------------------------------------------------------------------------------------- */

static void take_rescale(const struct reading *r, const element *e, struct tsr_named_values *of)
{
    if (e->tag != RESCALE_SLOPE && e->tag != RESCALE_INTERCEPT) return;
    struct tsr_decimal *const number = e->tag == RESCALE_SLOPE ? &of->slope : &of->intercept;
    const bool is_good = read_value(r->bytes, e, 0, number) && (e->tag == RESCALE_INTERCEPT || number->digits != 0);
    of->has_rescale = true;
    of->is_bad_rescale = of->is_bad_rescale || !is_good;
}

static void begin_values(struct tsr_named_values *values)
{
    *values = (struct tsr_named_values){.slope = {1, 0}};
}

/* An item of functional groups begins. */
static void begin_groups(struct reading *r, uint32_t limit)
{
    struct tsr_header_values *const v = r->values;
    r->groups = NULL;
    if (r->sequence[0] == TSR_TAG_SHARED_GROUPS) r->groups = &v->shared;
    if (r->sequence[0] == TSR_TAG_FRAME_GROUPS && v->frames < limit) r->groups = &v->frame[v->frames++];
    if (r->groups) begin_values(r->groups);
}

static void take_of_dataset(struct reading *r, const element *e)
{
    struct tsr_named_values *const dataset = &r->values->dataset;
    if (e->tag == VOI_LUTS) end_looks(r, &r->of_dataset, dataset); /* they come before it */
    if (e->tag == PIXEL_REPRESENTATION && e->length == 2)
        r->is_signed = read_word(r->bytes + e->value, r->big_endian) == 1;
    take_looks(r, e, &r->of_dataset);
    take_rescale(r, e, dataset);
}

static void take_element(struct reading *r, const element *e, uint32_t depth)
{
    const uint32_t *const s = r->sequence;
    const bool is_frame_voi = depth >= 4 && r->groups && s[1] == FRAME_VOI;
    if (depth == 0) take_of_dataset(r, e);
    if (depth == 2 && s[0] == VOI_LUTS) take_table(r, e, depth, &r->values->dataset);
    if (depth == 2 && s[0] == MODALITY_LUTS) take_table(r, e, depth, NULL);
    if (depth == 4 && r->groups && s[1] == PIXEL_TRANSFORMATION) take_rescale(r, e, r->groups);
    if (depth == 4 && is_frame_voi) r->groups->has_windows = true;
    if (depth == 4 && is_frame_voi && e->tag == VOI_LUTS) end_looks(r, &r->of_frame, r->groups);
    if (depth == 4 && is_frame_voi) take_looks(r, e, &r->of_frame);
    if (depth == 6 && is_frame_voi && s[2] == VOI_LUTS) take_table(r, e, depth, r->groups);
}

/* An element or an item of the listing. */
static void take_entry(struct reading *r, const struct tsr_dicom_listed *entry, uint32_t limit)
{
    const bool is_item = entry->depth % 2 != 0;
    if (entry->depth > DEEPEST) return;
    if (is_item || entry->depth != r->table_depth) end_table(r);
    if (entry->depth <= 3) end_looks(r, &r->of_frame, r->groups);
    if (entry->depth == 0) r->groups = NULL;
    if (entry->depth == 1) begin_groups(r, limit);
    if (is_item) return;
    r->sequence[entry->depth / 2] = entry->element.tag;
    take_element(r, &entry->element, entry->depth);
}

/* Most headers have neither functional groups nor lookup tables: the facts of their scan tell all. */
static void read_facts(struct reading *r, const struct tsr_dicom_scan *scan)
{
    static const enum tsr_dicom_fact facts[] = {TSR_FACT_CENTER, TSR_FACT_WIDTH, TSR_FACT_INTERCEPT, TSR_FACT_SLOPE,
                                                TSR_FACT_VOI_FUNCTION};
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        if (scan->fact[facts[i]].tag) take_of_dataset(r, &scan->fact[facts[i]]);
}

static enum tsr_status read_listing(struct reading *r, const struct tsr_dicom_scan *scan, struct tsr_error *error)
{
    struct tsr_dicom_listing listing = {0};
    struct tsr_dicom_scan again;
    const uint32_t limit = scan->frame_groups < UINT32_MAX ? (uint32_t)scan->frame_groups : UINT32_MAX;
    struct tsr_input *const input = tsr_input_from_memory(r->bytes, scan->pixels.value, "it");
    r->values->frame = calloc(limit + (size_t)1, sizeof *r->values->frame);
    if (!input || !r->values->frame) {
        tsr_input_close(input);
        return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for the windows of a header");
    }
    enum tsr_status status = scan->is_deflated ? tsr_dicom_list_dataset(input, scan->meta_end, &listing, &again, error)
                                               : tsr_dicom_list_file(input, &listing, &again, error);
    for (size_t i = 0; status == TSR_OK && i < listing.count; i++)
        if (listing.entries[i].element.start >= scan->meta_end) take_entry(r, &listing.entries[i], limit);
    end_table(r);
    end_looks(r, &r->of_frame, r->groups);
    free(listing.entries);
    tsr_input_close(input);
    return status == TSR_ERROR_LIMIT ? status : TSR_OK; /* what cannot be listed was refused already */
}

enum tsr_status tsr_dicom_read_values(const uint8_t *bytes, const struct tsr_dicom_scan *scan,
                                      struct tsr_header_values *values, struct tsr_error *error)
{
    struct reading r = {.bytes = bytes, .big_endian = scan->form.big_endian, .values = values};
    enum tsr_status status = TSR_OK;
    memset(values, 0, sizeof *values);
    begin_values(&values->dataset);
    begin_values(&values->shared);
    r.of_dataset.is_linear = r.of_frame.is_linear = true;
    if (scan->frame_groups > 0 || scan->fact[TSR_FACT_VOI_LUTS].tag || scan->fact[TSR_FACT_MODALITY_LUTS].tag)
        status = read_listing(&r, scan, error);
    else
        read_facts(&r, scan);
    end_looks(&r, &r.of_dataset, &values->dataset);
    if (status == TSR_OK && r.has_no_memory)
        status = tsr_fail(error, TSR_ERROR_LIMIT, "no memory for the windows of a header");
    return status;
}

void tsr_dicom_free_values(struct tsr_header_values *values)
{
    free(values->frame);
    free(values->window);
}

const struct tsr_named_values *tsr_dicom_rescale_of(const struct tsr_header_values *values, uint32_t frame)
{
    if (frame < values->frames && values->frame[frame].has_rescale) return &values->frame[frame];
    return values->shared.has_rescale ? &values->shared : &values->dataset;
}

const struct tsr_named_values *tsr_dicom_windows_of(const struct tsr_header_values *values, uint32_t frame)
{
    if (frame < values->frames && values->frame[frame].has_windows) return &values->frame[frame];
    return values->shared.has_windows ? &values->shared : &values->dataset;
}
