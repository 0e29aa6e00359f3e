/* Headers in another transfer syntax; see dicom_rewrite.h. */
#include "dicom_rewrite.h"

#include <stdlib.h>
#include <string.h>

#include "dicom_file.h"

enum {
    META_VERSION = 0x00020001,
    META_CLASS = 0x00020002,
    META_IMPLEMENTATION = 0x00020012,
    SOP_CLASS_UID = 0x00080016,
    SOP_INSTANCE_UID = 0x00080018,
    PHOTOMETRIC = 0x00280004,
    PLANAR = 0x00280006,
    BITS_STORED = 0x00280101,
    HIGH_BIT = 0x00280102,
    PIXEL_GROUP_LENGTH = 0x7fe00000,
    OFFSET_TABLE = 0x7fe00001,
    OFFSET_LENGTHS = 0x7fe00002,
    ENCAPSULATED_LENGTH = 0x7fe00003,
    PREAMBLE = 128,
    EDITS = 12
};

/* Of those who made no meta header themselves: PS3.5 B.2, of a random UUID. */
#define IMPLEMENTATION_UID "2.25.18290645035855917660046070168526168393"

static const struct tsr_dicom_form plain_form = {true, false};

static enum tsr_status no_memory(struct tsr_error *error)
{
    return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a header");
}

/* ---- The meta header ------------------------------------------------------------------------------------- */

/* An element of VR UI with the value of one of the data set's. Where that is missing it is empty. */
static enum tsr_status copy_uid(struct tsr_dicom_elements dataset, uint32_t from, uint32_t to,
                                struct tsr_dicom_edit *edits, int *count, struct tsr_error *error)
{
    char value[TSR_DICOM_VALUE_LIMIT];
    bool has;
    TSR_TRY(tsr_dicom_find_value(dataset, from, value, &has, error));
    return tsr_dicom_set_value(tsr_dicom_add_edit(edits, count, to, "UI"), value, "", "", error);
}

static enum tsr_status put_meta(struct tsr_dicom_text *text, struct tsr_dicom_elements meta,
                                struct tsr_dicom_elements dataset, const char *uid, struct tsr_dicom_edit *edits,
                                struct tsr_error *error)
{
    static const uint8_t version[] = {2, 0, 1, 0, 'O', 'B', 0, 0, 2, 0, 0, 0, 0, 1}, zeros[PREAMBLE] = {0};
    struct tsr_dicom_group group = {2, 0, 0, 0};
    const bool is_new = meta.at == meta.end;
    int count = 0;
    tsr_dicom_put(text, !is_new && meta.at == PREAMBLE + 4 ? meta.bytes : zeros, PREAMBLE);
    tsr_dicom_put(text, "DICM", 4);
    const size_t start = text->size;
    tsr_dicom_add_edit(edits, &count, TSR_TAG_META_LENGTH, "UL")->length = 4; /* set when the group is complete */
    TSR_TRY(tsr_dicom_set_value(tsr_dicom_add_edit(edits, &count, TSR_TAG_TRANSFER_SYNTAX, "UI"), uid, "", "", error));
    if (is_new) {
        TSR_TRY(copy_uid(dataset, SOP_CLASS_UID, META_CLASS, edits, &count, error));
        TSR_TRY(copy_uid(dataset, SOP_INSTANCE_UID, TSR_TAG_MEDIA_STORAGE_UID, edits, &count, error));
        TSR_TRY(tsr_dicom_set_value(tsr_dicom_add_edit(edits, &count, META_IMPLEMENTATION, "UI"), IMPLEMENTATION_UID,
                                    "", "", error));
        meta = (struct tsr_dicom_elements){version, 0, sizeof version, plain_form};
    }
    /* edits are in the order of their tags */
    for (int i = 1; i < count; i++)
        for (int k = i; k > 0 && edits[k].tag < edits[k - 1].tag; k--) {
            const struct tsr_dicom_edit higher = edits[k - 1];
            edits[k - 1] = edits[k];
            edits[k] = higher;
        }
    tsr_dicom_copy_elements(text, meta, edits, count, &group, 1);
    return text->no_memory || text->size == start ? no_memory(error) : TSR_OK;
}

/* ---- The data set ---------------------------------------------------------------------------------------- */

/* A data set's elements, of any form, as elements of explicit VR, little endian. *made: allocated bytes, or NULL. */
static enum tsr_status make_plain(struct tsr_dicom_elements *all, uint8_t **made, struct tsr_error *error)
{
    struct tsr_dicom_made dataset;
    *made = NULL;
    if ((all->form.explicit_vr && !all->form.big_endian) || all->at == all->end) return TSR_OK;
    TSR_TRY(tsr_dicom_make_explicit(all->bytes + all->at, all->end - all->at, all->form, &dataset, error));
    *made = dataset.bytes;
    *all = (struct tsr_dicom_elements){dataset.bytes, 0, dataset.size, plain_form};
    return TSR_OK;
}

/* ---- Pixel data in sequences ------------------------------------------------------------------------------ */

static struct tsr_dicom_elements inside(struct tsr_dicom_elements all, const struct tsr_dicom_element *e)
{
    return (struct tsr_dicom_elements){all.bytes, e->value, e->end, all.form};
}

static bool is_sequence(const struct tsr_dicom_element *e)
{
    return strcmp(e->vr, "SQ") == 0;
}

static bool next_item(struct tsr_dicom_elements *items, struct tsr_dicom_element *item)
{
    return tsr_dicom_next_element(items, item) && item->tag == TSR_TAG_ITEM;
}

/* Whether pixel data in items stands among these elements, and whether in their sequences. */
static void find_streams(struct tsr_dicom_elements all, bool *here, bool *deeper)
{
    struct tsr_dicom_element e, item;
    while (tsr_dicom_next_element(&all, &e)) {
        *here = *here || (e.tag == TSR_TAG_PIXEL_DATA && e.length == TSR_UNDEFINED_LENGTH);
        struct tsr_dicom_elements items = inside(all, &e);
        while (is_sequence(&e) && next_item(&items, &item)) find_streams(inside(all, &item), deeper, deeper);
    }
}

/* The same of the items of a sequence. */
static void find_streams_in(struct tsr_dicom_elements items, bool *here, bool *deeper)
{
    struct tsr_dicom_element item;
    while (next_item(&items, &item)) find_streams(inside(items, &item), here, deeper);
}

/* Copies elements without sequences whose items have pixel data in items, and without lengths of groups, which are
 * retired. The recursion is as deep as the walk allowed. */
static void copy_without_streams(struct tsr_dicom_text *text, struct tsr_dicom_elements all)
{
    struct tsr_dicom_element e, item;
    while (tsr_dicom_next_element(&all, &e)) {
        struct tsr_dicom_elements items = inside(all, &e);
        bool here = false, deeper = false;
        if (is_sequence(&e)) find_streams_in(items, &here, &deeper);
        if (here && text->left_out == 0) text->left_out = e.tag;
        if (here || (e.tag & 0xffff) == 0) continue;
        if (!deeper) {
            tsr_dicom_put(text, all.bytes + e.start, e.end - e.start);
            continue;
        }
        const size_t sequence = tsr_dicom_begin_element(text, e.tag, "SQ", all.form);
        while (next_item(&items, &item)) {
            const size_t value = tsr_dicom_begin_element(text, TSR_TAG_ITEM, "", all.form);
            copy_without_streams(text, inside(items, &item));
            tsr_dicom_set_length(text, value, 4, all.form);
        }
        tsr_dicom_set_length(text, sequence, 4, all.form);
    }
}

/* Elements of explicit VR without such sequences. *made: allocated bytes, or those that it was. */
static enum tsr_status leave_streams_out(struct tsr_dicom_elements *all, struct tsr_dicom_text *text, uint8_t **made,
                                         struct tsr_error *error)
{
    struct tsr_dicom_text kept = {.left_out = text->left_out};
    bool here = false, deeper = false;
    find_streams(*all, &here, &deeper);
    if (!deeper) return TSR_OK;
    copy_without_streams(&kept, *all);
    free(*made);
    *made = kept.bytes;
    text->left_out = kept.left_out;
    *all = (struct tsr_dicom_elements){kept.bytes, 0, kept.size, plain_form};
    return kept.no_memory ? no_memory(error) : TSR_OK;
}

/* ---- Elements that change --------------------------------------------------------------------------------- */

/* Of two bytes, little endian. */
static void set_number(struct tsr_dicom_edit *edit, int number)
{
    edit->value[0] = (char)(number & 255);
    edit->value[1] = (char)(number >> 8);
    edit->length = 2;
}

static enum tsr_status edit_dataset(struct tsr_dicom_elements dataset, const struct tsr_dicom_target *target,
                                    struct tsr_dicom_edit *edits, int *count, struct tsr_error *error)
{
    static const uint32_t dropped[] = {PIXEL_GROUP_LENGTH, OFFSET_TABLE, OFFSET_LENGTHS, ENCAPSULATED_LENGTH};
    char value[TSR_DICOM_VALUE_LIMIT];
    bool has;
    if (target->photometric)
        TSR_TRY(tsr_dicom_set_value(tsr_dicom_add_edit(edits, count, PHOTOMETRIC, "CS"), target->photometric, "", "",
                                    error));
    if (target->interleaved) {
        TSR_TRY(tsr_dicom_find_value(dataset, PLANAR, value, &has, error));
        if (has) set_number(tsr_dicom_add_edit(edits, count, PLANAR, "US"), 0);
    }
    set_number(tsr_dicom_add_edit(edits, count, BITS_STORED, "US"), target->bits_stored);
    set_number(tsr_dicom_add_edit(edits, count, HIGH_BIT, "US"), target->high_bit);
    for (size_t i = 0; i < sizeof dropped / sizeof dropped[0]; i++) tsr_dicom_add_edit(edits, count, dropped[i], "");
    return TSR_OK;
}

static void put_pixel_head(struct tsr_dicom_text *text, const struct tsr_dicom_target *target)
{
    uint8_t head[12] = {0xe0, 0x7f, 0x10, 0x00, 'O', 'B', 0, 0, 0xff, 0xff, 0xff, 0xff};
    if (target->native_bytes > 0) {
        const uint64_t even = target->native_bytes + target->native_bytes % 2;
        if (target->has_words) head[5] = 'W';
        for (int i = 0; i < 4; i++) head[8 + i] = (uint8_t)(even >> 8 * i);
    }
    tsr_dicom_put(text, head, sizeof head);
}

enum tsr_status tsr_dicom_rewrite(const uint8_t *bytes, const struct tsr_dicom_scan *scan,
                                  const struct tsr_dicom_target *target, struct tsr_dicom_text *text,
                                  struct tsr_error *error)
{
    const struct tsr_dicom_elements meta = {bytes, scan->meta_start, scan->meta_end, plain_form};
    struct tsr_dicom_elements dataset = {bytes, scan->meta_end, scan->pixels.start, scan->form};
    struct tsr_dicom_group groups[] = {{0x0028, 0, 0, 0}};
    uint8_t *made;
    int count = 0;
    if (target->native_bytes >= UINT32_MAX - 1)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "its samples have %llu bytes, more than native pixel data can have",
                        (unsigned long long)target->native_bytes);
    TSR_TRY(make_plain(&dataset, &made, error));
    struct tsr_dicom_edit *edits = calloc(EDITS, sizeof *edits);
    enum tsr_status status = edits ? TSR_OK : no_memory(error);
    if (status == TSR_OK && strcmp(scan->syntax_uid, target->syntax_uid) != 0)
        status = leave_streams_out(&dataset, text, &made, error);
    if (status == TSR_OK) status = put_meta(text, meta, dataset, target->syntax_uid, edits, error);
    if (status == TSR_OK) status = edit_dataset(dataset, target, edits, &count, error);
    if (status == TSR_OK) {
        tsr_dicom_copy_elements(text, dataset, edits, count, groups, 1);
        put_pixel_head(text, target);
    }
    free(edits);
    free(made);
    return status == TSR_OK && text->no_memory ? no_memory(error) : status;
}

/* ---- After the pixel data -------------------------------------------------------------------------------- */

size_t tsr_dicom_skip_pixels(const struct tsr_dicom_element *pixels, uint64_t raster_bytes, const uint8_t *suffix,
                             size_t size)
{
    static const uint8_t delimiter[] = {0xfe, 0xff, 0xdd, 0xe0, 0, 0, 0, 0};
    if (pixels->length == TSR_UNDEFINED_LENGTH)
        return size >= sizeof delimiter && memcmp(suffix, delimiter, sizeof delimiter) == 0 ? sizeof delimiter : size;
    const uint64_t more = pixels->length > raster_bytes ? pixels->length - raster_bytes : 0;
    return more < size ? (size_t)more : size;
}

enum tsr_status tsr_dicom_rewrite_rest(const uint8_t *bytes, size_t size, struct tsr_dicom_form form,
                                       struct tsr_dicom_text *text, struct tsr_error *error)
{
    struct tsr_dicom_elements all = {bytes, 0, size, form};
    struct tsr_dicom_element e;
    uint32_t last = TSR_TAG_PIXEL_DATA;
    size_t end = 0;
    uint8_t *made;
    while (all.at < size && tsr_dicom_element_at(bytes, all.at, size, form, &e) && e.tag > last &&
           e.length != TSR_UNDEFINED_LENGTH && e.end <= size) {
        last = e.tag;
        all.at = end = e.end;
    }
    all = (struct tsr_dicom_elements){bytes, 0, end, form};
    TSR_TRY(make_plain(&all, &made, error));
    const enum tsr_status status = leave_streams_out(&all, text, &made, error);
    if (status == TSR_OK) tsr_dicom_put(text, all.bytes + all.at, all.end - all.at);
    free(made);
    if (status != TSR_OK) return status;
    return text->no_memory ? no_memory(error) : TSR_OK;
}
