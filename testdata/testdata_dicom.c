#include "testdata_dicom.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testdata_deflate.h"
#include "testdata_jpeg.h"
#include "testdata_noise.h"

enum { ELEMENT_LIMIT = 96, UID_LIMIT = 65, TEXT_LIMIT = 128 };
#define TAG_ITEM 0xfffee000u
#define TAG_ITEM_END 0xfffee00du
#define TAG_SEQUENCE_END 0xfffee0ddu
#define UNDEFINED 0xffffffffu

static const char *const syntax_uids[DICOM_SYNTAXES] = {
    [DICOM_EXPLICIT] = "1.2.840.10008.1.2.1",
    [DICOM_IMPLICIT] = "1.2.840.10008.1.2",
    [DICOM_BIG_ENDIAN] = "1.2.840.10008.1.2.2",
    [DICOM_DEFLATED] = "1.2.840.10008.1.2.1.99",
    [DICOM_RLE] = "1.2.840.10008.1.2.5",
    [DICOM_JPEG] = "1.2.840.10008.1.2.4.50",
    [DICOM_JPEG_LOSSLESS] = "1.2.840.10008.1.2.4.70",
    [DICOM_JPEG_LS] = "1.2.840.10008.1.2.4.80",
    [DICOM_DEFLATED_FRAMES] = "1.2.840.10008.1.2.8.1",
    [DICOM_UNCOMPRESSED_FRAMES] = "1.2.840.10008.1.2.1.98",
    [DICOM_GE] = "1.2.840.113619.5.2",
};

/* The output, and how elements are encoded. */
struct writer {
    struct bytes *out;
    bool implicit, big_endian, undefined_lengths, group_lengths;
    uint32_t group;     /* of the last element; valid if group_start is not 0 */
    size_t group_start; /* the first byte after (gggg,0000); 0: no group is open */
};

static void put_tag(struct writer *w, uint32_t tag)
{
    bytes_put_u16(w->out, w->big_endian, tag >> 16);
    bytes_put_u16(w->out, w->big_endian, tag & 0xffff);
}

static bool is_one_of(const char *vr, const char *list)
{
    const char *at = strstr(list, vr);
    return at && (at - list) % 3 == 0;
}

/* Writes tag, VR and length. */
static void put_head(struct writer *w, uint32_t tag, const char *vr, uint32_t length)
{
    put_tag(w, tag);
    if (w->implicit) {
        bytes_put_u32(w->out, w->big_endian, length);
        return;
    }
    bytes_put_text(w->out, vr);
    if (is_one_of(vr, "OB OW SQ UN UT")) {
        bytes_put_u16(w->out, w->big_endian, 0);
        bytes_put_u32(w->out, w->big_endian, length);
    } else {
        bytes_put_u16(w->out, w->big_endian, length);
    }
}

/* Bytes of a number of a binary VR; 0: the VR is text. */
static int number_size(const char *vr)
{
    return is_one_of(vr, "OB UN ob") ? 1 : is_one_of(vr, "US SS OW") ? 2 : is_one_of(vr, "UL SL AT") ? 4 : 0;
}

static void put_numbers(struct writer *w, struct bytes *value, int size, const char *text)
{
    while (*text) {
        char *end;
        const uint32_t number = (uint32_t)strtoll(text, &end, 0);
        if (size == 1)
            bytes_put_u8(value, number & 0xff);
        else if (size == 2)
            bytes_put_u16(value, w->big_endian, number & 0xffff);
        else
            bytes_put_u32(value, w->big_endian, number);
        text = *end == '\\' ? end + 1 : end;
    }
}

/* Writes the length of the group that ends here. */
static void end_group(struct writer *w)
{
    if (w->group_start > 0)
        bytes_patch_u32(w->out, w->group_start - 4, w->big_endian, (uint32_t)(w->out->size - w->group_start));
    w->group_start = 0;
}

static void begin_group(struct writer *w, uint32_t tag)
{
    if (!w->group_lengths || (w->group_start > 0 && tag >> 16 == w->group)) return;
    end_group(w);
    put_head(w, tag & 0xffff0000, "UL", 4);
    bytes_put_u32(w->out, w->big_endian, 0);
    w->group = tag >> 16;
    w->group_start = w->out->size;
}

static void put_item(struct writer *w, const void *data, size_t size)
{
    put_tag(w, TAG_ITEM);
    bytes_put_u32(w->out, false, (uint32_t)size);
    bytes_put(w->out, data, size);
}

static void put_element(struct writer *w, const struct dicom_element *element);

/* Writes the item of elements up to the next one or to the end. Returns where it ends. */
static const struct dicom_element *put_item_of(struct writer *w, const struct dicom_element *e)
{
    struct bytes content = {0};
    struct writer inner = *w;
    inner.out = &content;
    inner.group_lengths = false;
    for (; e->tag != 0 && e->tag != DICOM_NEXT_ITEM; e++) put_element(&inner, e);
    put_tag(w, TAG_ITEM);
    bytes_put_u32(w->out, w->big_endian, w->undefined_lengths ? UNDEFINED : (uint32_t)content.size);
    bytes_put(w->out, content.data, content.size);
    bytes_free(&content);
    if (!w->undefined_lengths) return e;
    put_tag(w, TAG_ITEM_END);
    bytes_put_u32(w->out, w->big_endian, 0);
    return e;
}

static void put_sequence(struct writer *w, const struct dicom_element *element)
{
    struct bytes items = {0};
    struct writer inner = *w;
    inner.out = &items;
    const struct dicom_element *e = put_item_of(&inner, element->item);
    while (e->tag == DICOM_NEXT_ITEM) e = put_item_of(&inner, e + 1);
    put_head(w, element->tag, "SQ", w->undefined_lengths ? UNDEFINED : (uint32_t)items.size);
    bytes_put(w->out, items.data, items.size);
    bytes_free(&items);
    if (!w->undefined_lengths) return;
    put_tag(w, TAG_SEQUENCE_END);
    bytes_put_u32(w->out, w->big_endian, 0);
}

static void put_element(struct writer *w, const struct dicom_element *element)
{
    begin_group(w, element->tag);
    if (strcmp(element->vr, "SQ") == 0) {
        put_sequence(w, element);
        return;
    }
    struct bytes value = {0};
    const int size = number_size(element->vr);
    if (size > 0)
        put_numbers(w, &value, size, element->text);
    else
        bytes_put_text(&value, element->text);
    if (value.size % 2) bytes_put_u8(&value, is_one_of(element->vr, "UI OB UN ob") ? 0 : ' ');
    if (strcmp(element->vr, DICOM_ITEMS) == 0) {
        put_head(w, element->tag, "OB", UNDEFINED);
        put_item(w, "", 0);
        put_item(w, value.data, value.size);
        put_tag(w, TAG_SEQUENCE_END);
        bytes_put_u32(w->out, false, 0);
    } else {
        put_head(w, element->tag, element->vr, (uint32_t)value.size);
        bytes_put(w->out, value.data, value.size);
    }
    bytes_free(&value);
}

/* ---- The data set before the pixels ----------------------------------------------------------------------- */

/* Elements in the order of their tags. An element replaces an earlier one of the same tag. */
struct element_list {
    struct dicom_element elements[ELEMENT_LIMIT];
    int count;
    char texts[ELEMENT_LIMIT][TEXT_LIMIT]; /* texts that are made here */
    int text_count;
};

static void add(struct element_list *list, const struct dicom_element *element)
{
    int at = list->count;
    while (at > 0 && list->elements[at - 1].tag >= element->tag) at--;
    if (at == list->count || list->elements[at].tag != element->tag) {
        if (list->count == ELEMENT_LIMIT) abort();
        memmove(&list->elements[at + 1], &list->elements[at], (size_t)(list->count - at) * sizeof *element);
        list->count++;
    }
    list->elements[at] = *element;
}

static void add_all(struct element_list *list, const struct dicom_element *elements)
{
    for (; elements && elements->tag != 0; elements++) add(list, elements);
}

static void add_text(struct element_list *list, uint32_t tag, const char *vr, const char *text)
{
    const struct dicom_element element = {tag, vr, text, NULL};
    add(list, &element);
}

/* Adds an element whose text is a number after a constant text. */
static void add_number(struct element_list *list, uint32_t tag, const char *vr, const char *before, long number)
{
    char *text = list->texts[list->text_count++];
    snprintf(text, TEXT_LIMIT, "%s%ld", before, number);
    add_text(list, tag, vr, text);
}

static const struct dicom_element common_elements[] = {
    {0x00080005, "CS", "ISO_IR 100", NULL}, {0x00080008, "CS", "ORIGINAL\\PRIMARY", NULL},
    {0x00080020, "DA", "20240229", NULL},   {0x00080030, "TM", "123456", NULL},
    {0x00080050, "SH", "", NULL},           {0x00080070, "LO", "Tessera test data", NULL},
    {0x00080090, "PN", "", NULL},           {0x00100010, "PN", "Phantom^Synthetic", NULL},
    {0x00100020, "LO", "PHANTOM", NULL},    {0x00100030, "DA", "", NULL},
    {0x00100040, "CS", "O", NULL},          {0x0020000d, "UI", "2.25.314159265358979323846264338", NULL},
    {0x00200010, "SH", "1", NULL},          {0},
};

static const struct dicom_element located_elements[] = {
    {0x00180050, "DS", "5", NULL},
    {0x00200037, "DS", "1\\0\\0\\0\\1\\0", NULL},
    {0x00200052, "UI", "2.25.271828182845904523536028747", NULL},
    {0x00280030, "DS", "0.7421875\\0.7421875", NULL},
    {0},
};

static void instance_uid(const struct dicom *dicom, char *uid)
{
    snprintf(uid, UID_LIMIT, "2.25.314159265358979.%u.%u", dicom->series, dicom->instance);
}

static void fill_list(struct element_list *list, const struct dicom *dicom, const char *uid)
{
    const struct dicom_kind *kind = dicom->kind;
    add_all(list, common_elements);
    add_text(list, 0x00080016, "UI", kind->sop_class);
    add_text(list, 0x00080018, "UI", uid);
    add_text(list, 0x00080060, "CS", kind->modality);
    add_number(list, 0x0020000e, "UI", "2.25.314159265358979.", (long)dicom->series);
    add_number(list, 0x00200011, "IS", "", (long)dicom->series);
    add_number(list, 0x00200013, "IS", "", (long)dicom->instance);
    if (kind->located) {
        add_all(list, located_elements);
        add_number(list, 0x00200032, "DS", "-142.5\\-142.5\\", 5 * (long)dicom->instance);
    }
    if (!(dicom->oddities & ODD_NO_PIXELS)) {
        add_number(list, 0x00280002, "US", "", kind->components);
        add_text(list, 0x00280004, "CS", kind->photometric);
        if (kind->components > 1) add_number(list, 0x00280006, "US", "", kind->planar);
        if (dicom->frames > 1) add_number(list, 0x00280008, "IS", "", dicom->frames);
        if (!(dicom->oddities & ODD_NO_ROWS)) add_number(list, 0x00280010, "US", "", dicom->rows);
        add_number(list, 0x00280011, "US", "", dicom->columns);
        add_number(list, 0x00280100, "US", "", kind->bits_allocated);
        add_number(list, 0x00280101, "US", "", kind->bits_stored);
        add_number(list, 0x00280102, "US", "", kind->high_bit);
        add_number(list, 0x00280103, "US", "", kind->is_signed);
    }
    add_all(list, kind->elements);
}

static void put_meta(struct bytes *out, const struct dicom *dicom, const char *uid)
{
    /* The first bytes of a TIFF, since a file can be both DICOM and TIFF. */
    static const uint8_t preamble[] = {'I', 'I', 42, 0, 8, 0, 0, 0};
    const bool odd = dicom->oddities & ODD_PREAMBLE;
    bytes_fill(out, 0, 128);
    if (odd) memcpy(out->data, preamble, sizeof preamble);
    bytes_put_text(out, "DICM");
    struct writer w = {out, false, false, false, true, 0, 0};
    const struct dicom_element elements[] = {
        {0x00020001, "OB", "0\\1", NULL},
        {0x00020002, "UI", dicom->kind->sop_class, NULL},
        {0x00020003, "UI", uid, NULL},
        {0x00020010, "UI", syntax_uids[dicom->syntax], NULL},
        {0x00020012, "UI", "2.25.161803398874989484820458683", NULL},
        {0x00020013, "SH", "TESSERA_TESTDATA", NULL},
        {0x00020016, "AE", "TESSERA", NULL},
        {0x00020100, "UI", "2.25.161803398874989484820458684", NULL},
        {0x00020102, "OB", "1\\2\\3\\4", NULL},
    };
    const size_t count = sizeof elements / sizeof elements[0] - (odd ? 0 : 3);
    for (size_t i = 0; i < count; i++) put_element(&w, &elements[i]);
    end_group(&w);
}

/* ---- Pixels ----------------------------------------------------------------------------------------------- */

/* A sample of a frame by its place in the file. */
static uint32_t sample_at(const struct dicom *dicom, const struct canvas *planes, int frame, long at)
{
    const long components = dicom->kind->components, pixels = (long)dicom->columns * dicom->rows;
    const long component = dicom->kind->planar ? at / pixels : at % components;
    const long pixel = dicom->kind->planar ? at % pixels : at / components;
    return (uint32_t)planes[frame * components + component].shades[pixel];
}

static void put_native(struct bytes *out, const struct dicom *dicom, const struct canvas *planes)
{
    const struct dicom_kind *kind = dicom->kind;
    const bool big = dicom->syntax == DICOM_BIG_ENDIAN || dicom->syntax == DICOM_GE;
    const long samples = (long)dicom->columns * dicom->rows * kind->components;
    unsigned pending = 0, pending_bits = 0;
    for (int frame = 0; frame < dicom->frames; frame++)
        for (long i = 0; i < samples; i++) {
            const uint32_t sample = sample_at(dicom, planes, frame, i);
            if (kind->bits_allocated == 32)
                bytes_put_u32(out, big, sample);
            else if (kind->bits_allocated == 16)
                bytes_put_u16(out, big, sample & 0xffff);
            else if (kind->bits_allocated == 8)
                bytes_put_u8(out, sample & 0xff);
            else
                pending |= (sample & 1) << pending_bits++;
            if (pending_bits == 8) {
                bytes_put_u8(out, pending);
                pending = pending_bits = 0;
            }
        }
    if (pending_bits > 0) bytes_put_u8(out, pending | 0x80); /* spare bits are not always 0 */
}

/* Shades as floating point numbers, which are sixteenths, or as Y, Y, Cb, Cr of two pixels. */
static void put_rare(struct bytes *out, const struct dicom *dicom, const struct canvas *planes)
{
    const long pixels = (long)dicom->columns * dicom->rows;
    for (long i = 0; i < pixels && !(dicom->oddities & ODD_PAIRS); i++) {
        const double wide = planes[0].shades[i] / 16.0;
        const float narrow = (float)wide;
        uint32_t word;
        uint64_t words;
        memcpy(&word, &narrow, sizeof word);
        memcpy(&words, &wide, sizeof words);
        if (dicom->kind->bits_allocated == 32) bytes_put_u32(out, false, word);
        if (dicom->kind->bits_allocated == 64) bytes_put_u32(out, false, (uint32_t)words);
        if (dicom->kind->bits_allocated == 64) bytes_put_u32(out, false, (uint32_t)(words >> 32));
    }
    for (long i = 0; i + 1 < pixels && dicom->oddities & ODD_PAIRS; i += 2) {
        for (long k = i; k < i + 2; k++) bytes_put_u8(out, (unsigned)planes[0].shades[k] & 255);
        for (int c = 1; c < 3; c++) bytes_put_u8(out, (unsigned)planes[c].shades[i] & 255);
    }
}

/* PackBits of one row, since DICOM codes each row on its own. DCMTK's encoder makes runs of 3 and more. */
static void pack_bits(struct bytes *out, const uint8_t *row, int size, int shortest_run)
{
    for (int at = 0; at < size;) {
        int run = 1;
        while (at + run < size && run < 128 && row[at + run] == row[at]) run++;
        if (run >= shortest_run) {
            bytes_put_u8(out, (unsigned)(257 - run));
            bytes_put_u8(out, row[at]);
            at += run;
            continue;
        }
        /* Literals up to the next run of three. */
        int count = 1;
        while (at + count < size && count < 128 &&
               !(at + count + 2 < size && row[at + count] == row[at + count + 1] &&
                 row[at + count] == row[at + count + 2]))
            count++;
        bytes_put_u8(out, (unsigned)(count - 1));
        bytes_put(out, row + at, (size_t)count);
        at += count;
    }
}

/* The bytes of a frame as native pixel data has them. */
static struct bytes native_frame(const struct dicom *dicom, const struct canvas *planes)
{
    struct bytes frame = {0};
    struct dicom one = *dicom;
    one.frames = 1;
    put_native(&frame, &one, planes);
    const long bits = (long)dicom->columns * dicom->rows;
    if (dicom->kind->bits_allocated == 1 && bits % 8) frame.data[frame.size - 1] &= 0x7f; /* its mark in spare bits */
    return frame;
}

/* PackBits of packed bits, columns bytes at a time. */
static void pack_frame(struct bytes *out, const struct dicom *dicom, const struct canvas *planes)
{
    struct bytes frame = native_frame(dicom, planes);
    for (size_t at = 0; at < frame.size; at += (size_t)dicom->columns) {
        const size_t left = frame.size - at;
        pack_bits(out, frame.data + at, left < (size_t)dicom->columns ? (int)left : dicom->columns, 3);
    }
    bytes_free(&frame);
}

/* Writes a frame: a table of offsets, then the byte planes of each component, the most significant byte first. */
static void put_rle_frame(struct bytes *out, const struct dicom *dicom, const struct canvas *planes)
{
    const bool is_bits = dicom->kind->bits_allocated == 1; /* which are packed, and a segment of their own */
    const int bytes = is_bits ? 1 : dicom->kind->bits_allocated / 8, segments = dicom->kind->components * bytes;
    const size_t start = out->size;
    uint8_t *row = allocate((size_t)dicom->columns, 1);
    bytes_fill(out, 0, 64);
    bytes_patch_u32(out, start, false, (uint32_t)segments);
    for (int s = 0; s < segments; s++) {
        const int shift = 8 * (bytes - 1 - s % bytes);
        bytes_patch_u32(out, start + 4 * ((size_t)s + 1), false, (uint32_t)(out->size - start));
        if (is_bits) pack_frame(out, dicom, planes);
        for (int y = 0; y < dicom->rows && !is_bits; y++) {
            for (int x = 0; x < dicom->columns; x++)
                row[x] = (uint8_t)((uint32_t)planes[s / bytes].shades[y * dicom->columns + x] >> shift);
            pack_bits(out, row, dicom->columns, segments == 1 ? 2 : 3);
        }
        if ((out->size - start) % 2) bytes_put_u8(out, 0);
    }
    free(row);
}

/* Writes random bytes between the first and the last bytes of a JPEG. */
static void put_garbage(struct bytes *out, uint64_t seed)
{
    struct random random = {seed};
    bytes_put_u16(out, true, 0xffd8);
    for (int i = 0; i < 600; i++) bytes_put_u8(out, random_below(&random, 256));
    bytes_put_u16(out, true, 0xffd9);
}

static void put_deflated_frame(struct bytes *out, const struct dicom *dicom, const struct canvas *planes)
{
    struct bytes frame = native_frame(dicom, planes);
    deflate_fixed(out, &frame);
    bytes_free(&frame);
}

static void put_uncompressed_frame(struct bytes *out, const struct dicom *dicom, const struct canvas *planes)
{
    struct bytes frame = native_frame(dicom, planes);
    bytes_put(out, frame.data, frame.size);
    bytes_free(&frame);
}

static void put_stream(struct bytes *out, const struct dicom *dicom, const struct canvas *planes, int frame)
{
    if (dicom->oddities & ODD_GARBAGE)
        put_garbage(out, (uint64_t)frame);
    else if (dicom->syntax == DICOM_RLE)
        put_rle_frame(out, dicom, planes);
    else if (dicom->syntax == DICOM_DEFLATED_FRAMES)
        put_deflated_frame(out, dicom, planes);
    else if (dicom->syntax == DICOM_UNCOMPRESSED_FRAMES || dicom->oddities & ODD_UNKNOWN_VR)
        put_uncompressed_frame(out, dicom, planes);
    else if (dicom->syntax == DICOM_JPEG_LS)
        jpeg_put_ls(out, planes, dicom->kind->components, dicom->kind->bits_stored);
    else if (dicom->syntax == DICOM_JPEG)
        jpeg_put_lossy(out, dicom->columns / 8, dicom->rows / 8, (uint64_t)frame);
    else
        jpeg_put_lossless(out, planes, dicom->kind->components, dicom->kind->bits_stored);
    if (out->size % 2) bytes_put_u8(out, 0);
}

static void put_encapsulated(struct writer *w, const struct dicom *dicom, const struct canvas *planes)
{
    struct bytes frames = {0}, offsets = {0};
    struct writer inner = *w;
    inner.out = &frames;
    for (int f = 0; f < dicom->frames; f++) {
        struct bytes frame = {0};
        put_stream(&frame, dicom, planes + f * dicom->kind->components, f);
        if (!(dicom->oddities & ODD_FRAGMENTS)) bytes_put_u32(&offsets, false, (uint32_t)frames.size);
        const size_t part = dicom->oddities & ODD_FRAGMENTS ? frame.size / 6 * 2 : 0;
        for (size_t i = 0; part > 0 && i < 2; i++) put_item(&inner, frame.data + i * part, part);
        put_item(&inner, frame.data + 2 * part, frame.size - 2 * part);
        bytes_free(&frame);
    }
    put_head(w, 0x7fe00010, dicom->oddities & ODD_UNKNOWN_VR ? "UN" : "OB", UNDEFINED);
    put_item(w, offsets.data, offsets.size);
    bytes_put(w->out, frames.data, frames.size);
    put_tag(w, TAG_SEQUENCE_END);
    bytes_put_u32(w->out, false, 0);
    bytes_free(&offsets);
    bytes_free(&frames);
}

static void swap_pairs(struct bytes *b)
{
    for (size_t i = 0; i + 1 < b->size; i += 2) {
        const uint8_t first = b->data[i];
        b->data[i] = b->data[i + 1];
        b->data[i + 1] = first;
    }
}

static void put_pixels(struct writer *w, const struct dicom *dicom, const struct canvas *planes)
{
    const unsigned odd = dicom->oddities;
    const bool is_in_items = odd & ODD_UNKNOWN_VR && odd & ODD_FRAGMENTS;
    struct bytes value = {0};
    begin_group(w, 0x7fe00010);
    if ((dicom->syntax >= DICOM_RLE && dicom->syntax != DICOM_GE && !(odd & ODD_NATIVE)) || is_in_items) {
        put_encapsulated(w, dicom, planes);
        return;
    }
    const bool is_float = odd & ODD_FLOAT, is_double = is_float && dicom->kind->bits_allocated == 64;
    if (odd & (ODD_FLOAT | ODD_PAIRS))
        put_rare(&value, dicom, planes);
    else
        put_native(&value, dicom, planes);
    if (value.size % 2) bytes_put_u8(&value, 0);
    if (odd & ODD_SURPLUS) bytes_fill(&value, 0xa5, 22);
    if (odd & ODD_SHORT) value.size -= 2;
    const bool is_words = !(odd & ODD_BYTES);
    const bool is_big = w->big_endian || dicom->syntax == DICOM_GE;
    if (is_big && is_words && !(odd & ODD_UNKNOWN_VR) && dicom->kind->bits_allocated <= 8) swap_pairs(&value);
    put_head(w,
             is_double  ? 0x7fe00009
             : is_float ? 0x7fe00008
                        : 0x7fe00010,
             is_double              ? "OD"
             : is_float             ? "OF"
             : odd & ODD_UNKNOWN_VR ? "UN"
             : is_words             ? "OW"
                                    : "OB",
             odd & ODD_UNKNOWN_LENGTH ? UNDEFINED : (uint32_t)value.size);
    bytes_put(w->out, value.data, odd & ODD_TRUNCATED ? value.size / 2 : value.size);
    if (odd & ODD_UNKNOWN_LENGTH) {
        put_tag(w, TAG_SEQUENCE_END);
        bytes_put_u32(w->out, w->big_endian, 0);
    }
    bytes_free(&value);
}

static void put_behind(struct writer *w, unsigned oddities)
{
    static const struct dicom_element behind[] = {
        {0x7fe10010, "LO", "TESSERA BEHIND", NULL},
        {0x7fe11001, "OB", "9\\8\\7\\6\\5\\4\\3\\2\\1\\0", NULL},
        {0x7fe11002, "LT", "What stands behind the pixels must come back, too.", NULL},
        {0},
    };
    for (int i = 0; oddities & ODD_BEHIND && behind[i].tag; i++) put_element(w, &behind[i]);
    if (oddities & ODD_PADDING) {
        begin_group(w, 0xfffcfffc);
        put_head(w, 0xfffcfffc, "OB", 200);
        bytes_fill(w->out, 0, 200);
    }
}

void dicom_put(struct bytes *out, const struct dicom *dicom, const struct canvas *planes)
{
    const unsigned odd = dicom->oddities;
    char uid[UID_LIMIT];
    struct element_list *list = allocate(1, sizeof *list);
    struct bytes dataset = {0};
    struct writer w = {&dataset,
                       dicom->syntax == DICOM_IMPLICIT || dicom->syntax == DICOM_GE,
                       dicom->syntax == DICOM_BIG_ENDIAN,
                       odd & ODD_UNDEFINED,
                       odd & ODD_GROUP_LENGTHS,
                       0,
                       0};
    instance_uid(dicom, uid);
    fill_list(list, dicom, uid);
    for (int i = 0; i < list->count; i++) put_element(&w, &list->elements[i]);
    free(list);
    if (!(odd & ODD_NO_PIXELS)) put_pixels(&w, dicom, planes);
    put_behind(&w, odd);
    end_group(&w);
    if (!(odd & ODD_NO_META)) put_meta(out, dicom, uid);
    if (dicom->syntax == DICOM_DEFLATED && odd & ODD_STORED)
        deflate_stored(out, &dataset);
    else if (dicom->syntax == DICOM_DEFLATED)
        deflate_fixed(out, &dataset);
    else
        bytes_put(out, dataset.data, dataset.size);
    if (dicom->syntax == DICOM_DEFLATED && out->size % 2) bytes_put_u8(out, 0);
    if (odd & ODD_ZEROS) bytes_fill(out, 0, 512);
    bytes_free(&dataset);
}
