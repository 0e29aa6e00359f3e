/* io/formats/dicom/dicom_derive.h, tsr_dicom_compare_headers: the header of a lossy copy is the original's except for
 * the elements that must change. Any other change is noticed. */
#include "witness/dcmtk_witness.h"
#include "dicom_bytes.h"
#include "io/formats/dicom/dicom_derive.h"

/* ---- Headers ------------------------------------------------------------------------------------------------ */

/* The elements that a lossy copy changes; NULL: the element does not exist. */
struct changing {
    const char *syntax, *meta_uid; /* of the meta header; NULL: there is no meta header */
    const char *type, *uid, *description, *lossy, *ratio, *method;
    bool has_range;     /* it names its smallest and its largest sample */
    const char *self;   /* the UID where the image refers to itself */
    bool is_copy;       /* it has what a lossy copy has more: */
    const char *source; /* UID of the original; NULL: it is not referred to */
    bool was_lossy;
    enum { NO_GROUPS, SHARED, BY_FRAME } groups; /* which functional groups have a derivation, if there are any */
};

enum { RANGES_LIMIT = 64 };
#define CLASS_UID "1.2.840.10008.5.1.4.1.1.2"
#define STUDY_UID "1.2.3.10"
#define SERIES_UID "1.2.3.10.1"

/* A header up to the value of its pixel data, and where the elements stand in it that change or follow from these. */
struct header {
    struct dicom_bytes d;
    size_t meta_end;
    struct {
        size_t start, end;
    } range[RANGES_LIMIT];
    int ranges;
};

static void note_range(struct header *h, size_t start)
{
    assert_true(h->ranges < RANGES_LIMIT);
    h->range[h->ranges].start = start;
    h->range[h->ranges++].end = h->d.all.size;
}

static void put_changing(struct header *h, uint32_t tag, const char *vr, const char *text)
{
    const size_t start = h->d.all.size;
    if (!text) return;
    put_text(&h->d, tag, vr, text);
    note_range(h, start);
}

/* Returns where the group begins. */
static size_t put_group_length(struct header *h, uint32_t group)
{
    const size_t start = h->d.all.size;
    put_ul(&h->d, group << 16, 0);
    note_range(h, start);
    return h->d.all.size;
}

static void put_meta_of(struct header *h, const struct changing *c)
{
    static const uint8_t preamble[128] = "what is in front";
    const struct tsr_dicom_form form = h->d.form;
    if (!c->syntax) return;
    append(&h->d.all, preamble, sizeof preamble);
    append(&h->d.all, "DICM", 4);
    h->d.form = explicit_little;
    const size_t start = put_group_length(h, 0x0002);
    put_value(&h->d, 0x00020001, "OB", "\0\1", 2);
    put_text(&h->d, 0x00020002, "UI", "1.2.840.10008.5.1.4.1.1.2");
    put_changing(h, TSR_TAG_MEDIA_STORAGE_UID, "UI", c->meta_uid);
    put_changing(h, TSR_TAG_TRANSFER_SYNTAX, "UI", c->syntax);
    put_text(&h->d, 0x00020012, "UI", "1.2.3.99");
    put_text(&h->d, 0x00020013, "SH", "SOMEONE'S");
    set_length(&h->d, start);
    h->meta_end = h->d.all.size;
    h->d.form = form;
}

/* Appends a sequence of unknown VR, whose items are of implicit little endian. */
static void put_unknown_references(struct dicom_bytes *d, uint32_t tag)
{
    const struct tsr_dicom_form form = d->form;
    put_head(d, tag, "UN", TSR_UNDEFINED_LENGTH);
    d->form = implicit_little;
    put_head(d, TAG_ITEM, "", TSR_UNDEFINED_LENGTH);
    put_text(d, 0x00080018, "UI", "1.2.3.4.5");
    put_head(d, TAG_ITEM_END, "", 0);
    put_head(d, TAG_SEQUENCE_END, "", 0);
    d->form = form;
}

static void put_code(struct dicom_bytes *d, const char *code, const char *meaning)
{
    put_text(d, 0x00080100, "SH", code);
    put_text(d, 0x00080102, "SH", "DCM");
    put_text(d, 0x00080104, "LO", meaning);
}

static void put_reference(struct dicom_bytes *d, const char *uid)
{
    put_text(d, 0x00081150, "UI", CLASS_UID);
    put_text(d, 0x00081155, "UI", uid);
}

/* A sequence of one item, with lengths. */
struct opened {
    size_t sequence, item;
};

static struct opened open_item(struct dicom_bytes *d, uint32_t tag)
{
    const size_t sequence = begin_sequence(d, tag, "SQ", true);
    return (struct opened){sequence, begin_sequence(d, TAG_ITEM, "", true)};
}

static void close_item(struct dicom_bytes *d, struct opened opened)
{
    set_length(d, opened.item);
    set_length(d, opened.sequence);
}

static void put_source(struct dicom_bytes *d, const struct changing *c, const char *frame)
{
    put_reference(d, c->source);
    if (frame) put_text(d, 0x00081160, "IS", frame);
    const struct opened purpose = open_item(d, 0x0040a170);
    put_code(d, c->was_lossy ? "121330" : "121320",
             c->was_lossy ? "Lossy compressed predecessor" : "Uncompressed predecessor");
    close_item(d, purpose);
}

/* The item that a sequence gets in a copy. */
static void put_added(struct header *h, const struct changing *c, uint32_t tag, const char *frame)
{
    struct dicom_bytes *const d = &h->d;
    struct opened opened, inner;
    const size_t start = d->all.size, item = begin_sequence(d, TAG_ITEM, "", true);
    switch (tag) {
    case 0x00081115:
        opened = open_item(d, 0x0008114a);
        put_reference(d, c->source);
        close_item(d, opened);
        put_text(d, 0x0020000e, "UI", SERIES_UID);
        break;
    case 0x00082112:
        put_source(d, c, frame);
        break;
    case 0x00089124:
        opened.sequence = begin_sequence(d, 0x00082112, "SQ", true);
        if (c->source) {
            opened.item = begin_sequence(d, TAG_ITEM, "", true);
            put_source(d, c, frame);
            set_length(d, opened.item);
        }
        set_length(d, opened.sequence);
        opened = open_item(d, 0x00089215);
        put_code(d, "113040", "Lossy Compression");
        close_item(d, opened);
        break;
    case 0x00089154:
        opened = open_item(d, 0x00081115);
        inner = open_item(d, 0x00081199);
        put_reference(d, c->source);
        close_item(d, inner);
        put_text(d, 0x0020000e, "UI", SERIES_UID);
        close_item(d, opened);
        put_text(d, 0x0020000d, "UI", STUDY_UID);
        break;
    case 0x00089215:
        put_code(d, "113040", "Lossy Compression");
        break;
    }
    set_length(d, item);
    note_range(h, start);
}

/* The same in a sequence of its own. */
static void put_new(struct header *h, const struct changing *c, uint32_t tag, const char *frame)
{
    const size_t start = h->d.all.size, sequence = begin_sequence(&h->d, tag, "SQ", true);
    put_added(h, c, tag, frame);
    set_length(&h->d, sequence);
    note_range(h, start);
}

/* Appends items. Of what is in them, only where the image refers to itself changes: not among source images, and not in
 * private elements. */
static void put_references(struct header *h, const struct changing *c, uint32_t tag, bool has_length, bool items_have)
{
    struct dicom_bytes *const d = &h->d;
    const size_t sequence = begin_sequence(d, tag, "SQ", has_length);
    const bool is_source = tag == 0x00082112 || tag == 0x00081199;
    for (int i = 0; i < 2; i++) {
        const size_t item = begin_sequence(d, TAG_ITEM, "", items_have);
        put_text(d, 0x00080008, "CS", "ORIGINAL\\PRIMARY");
        put_text(d, 0x00080018, "UI", is_source || i == 1 ? "1.2.3.4.50" : c->self);
        put_reference(d, tag == 0x00082112 ? "1.2.3.4.5" : c->self);
        if (i == 0 && has_length) put_references(h, c, 0x00081199, false, true);
        if (i == 1) put_unknown_references(d, 0x00091002);
        put_text(d, 0x00282110, "CS", "00");
        end_sequence(d, item, TAG_ITEM_END, items_have);
    }
    const bool is_listed = tag == 0x00081115 && c->groups != NO_GROUPS;
    if (c->is_copy && c->source && (tag == 0x00082112 || is_listed)) put_added(h, c, tag, NULL);
    end_sequence(d, sequence, TAG_SEQUENCE_END, has_length);
}

/* The functional groups of all frames (number 0), or of a frame. */
static void put_functions(struct header *h, const struct changing *c, int number, bool has_length)
{
    static const char *const numbers[] = {NULL, "1", "2"};
    struct dicom_bytes *const d = &h->d;
    const size_t item = begin_sequence(d, TAG_ITEM, "", has_length);
    const bool is_derived = (number > 0) == (c->groups == BY_FRAME);
    const struct opened self = open_item(d, 0x00081140);
    put_reference(d, c->self);
    close_item(d, self);
    if (is_derived && number == 1) { /* it had a derivation already */
        const size_t sequence = begin_sequence(d, 0x00089124, "SQ", has_length);
        const size_t first = begin_sequence(d, TAG_ITEM, "", has_length);
        const struct opened source = open_item(d, 0x00082112);
        put_reference(d, "1.2.3.4.5");
        close_item(d, source);
        end_sequence(d, first, TAG_ITEM_END, has_length);
        if (c->is_copy) put_added(h, c, 0x00089124, numbers[number]);
        end_sequence(d, sequence, TAG_SEQUENCE_END, has_length);
    } else if (is_derived && c->is_copy) {
        put_new(h, c, 0x00089124, numbers[number]);
    }
    const size_t group = put_group_length(h, 0x0018);
    const struct opened type = open_item(d, 0x00189329);
    put_text(d, 0x00089007, "CS", c->is_copy ? "DERIVED\\PRIMARY\\VOLUME" : "ORIGINAL\\PRIMARY\\VOLUME");
    close_item(d, type);
    set_length(d, group);
    const struct opened window = open_item(d, 0x00289132);
    if (!c->is_copy) put_us(d, 0x00280107, 77);
    put_text(d, 0x00281050, "DS", "40");
    close_item(d, window);
    end_sequence(d, item, TAG_ITEM_END, has_length);
}

static void put_groups(struct header *h, const struct changing *c, bool has_lengths)
{
    struct dicom_bytes *const d = &h->d;
    if (c->groups == NO_GROUPS) return;
    const size_t start = has_lengths ? put_group_length(h, 0x5200) : 0;
    size_t sequence = begin_sequence(d, 0x52009229, "SQ", has_lengths);
    put_functions(h, c, 0, !has_lengths);
    end_sequence(d, sequence, TAG_SEQUENCE_END, has_lengths);
    sequence = begin_sequence(d, 0x52009230, "SQ", !has_lengths);
    for (int i = 1; i <= 2; i++) put_functions(h, c, i, has_lengths);
    end_sequence(d, sequence, TAG_SEQUENCE_END, !has_lengths);
    if (start > 0) set_length(d, start);
}

/* The smallest and the largest sample; in the original also those of the series, which are left out. */
static void put_range(struct header *h, const struct changing *c)
{
    const size_t start = h->d.all.size;
    if (!c->has_range) return;
    put_us(&h->d, 0x00280106, c->is_copy ? 17 : 3);
    put_us(&h->d, 0x00280107, c->is_copy ? 3004 : 4);
    if (!c->is_copy) put_us(&h->d, 0x00280108, 3);
    if (!c->is_copy) put_us(&h->d, 0x00280111, 3);
    note_range(h, start);
}

static struct header make_header(struct tsr_dicom_form form, const struct changing *c, bool has_group_lengths)
{
    struct header h = {.d.form = form};
    struct dicom_bytes *const d = &h.d;
    put_meta_of(&h, c);
    size_t start = has_group_lengths ? put_group_length(&h, 0x0008) : 0;
    put_text(d, 0x00080005, "CS", "ISO_IR 100");
    put_changing(&h, 0x00080008, "CS", c->type);
    put_text(d, 0x00080016, "UI", CLASS_UID);
    put_changing(&h, 0x00080018, "UI", c->uid);
    put_text(d, 0x00080020, "DA", "20260102");
    put_text(d, 0x00080060, "CS", "CT");
    put_text(d, 0x00080070, "LO", "A manufacturer");
    put_text(d, 0x00080080, "LO", "An institution");
    put_references(&h, c, 0x00081115, false, false);
    put_references(&h, c, 0x00081140, true, false);
    put_changing(&h, 0x00082111, "ST", c->description);
    put_references(&h, c, 0x00082112, false, true);
    if (c->is_copy && c->source && c->groups != NO_GROUPS) put_new(&h, c, 0x00089154, NULL);
    if (c->is_copy) put_new(&h, c, 0x00089215, NULL);
    if (start > 0) set_length(d, start);
    put_text(d, 0x00090010, "LO", "TESSERA TEST");
    put_value(d, 0x00091001, "UN", "\1\2\3\4\5\6", 6);
    put_unknown_references(d, 0x00091002);
    put_text(d, 0x00100010, "PN", "Doe^Jane");
    put_text(d, 0x00100020, "LO", "4711");
    put_text(d, 0x00180050, "DS", "2.5");
    put_text(d, 0x0020000d, "UI", STUDY_UID);
    put_text(d, 0x0020000e, "UI", SERIES_UID);
    start = has_group_lengths ? put_group_length(&h, 0x0028) : 0;
    put_us(d, 0x00280002, 1);
    put_text(d, 0x00280004, "CS", "MONOCHROME2");
    put_us(d, 0x00280010, 4);
    put_us(d, 0x00280011, 8);
    put_us(d, 0x00280100, 16);
    put_us(d, 0x00280101, 12);
    put_us(d, 0x00280102, 11);
    put_us(d, 0x00280103, 0);
    put_range(&h, c);
    put_text(d, 0x00281053, "DS", "1");
    put_changing(&h, 0x00282110, "CS", c->lossy);
    put_changing(&h, 0x00282112, "DS", c->ratio);
    put_changing(&h, 0x00282114, "CS", c->method);
    if (start > 0) set_length(d, start);
    put_text(d, 0x00321060, "LO", "A procedure");
    put_groups(&h, c, has_group_lengths);
    put_head(d, TSR_TAG_PIXEL_DATA, "OW", 64);
    return h;
}

static void free_header(struct header *h)
{
    free_dicom(&h->d);
}

static bool may_change(const struct header *h, size_t at)
{
    for (int i = 0; i < h->ranges; i++)
        if (at >= h->range[i].start && at < h->range[i].end) return true;
    return false;
}

/* ---- Deriving ----------------------------------------------------------------------------------------------- */

static const struct tsr_derivation derivation = {"2.25.12345678", 12.3456, {17, 3004}, false, ""};
#define REMARK "coded with loss by Tessera, ratio 12.35"

static enum tsr_status derive(const struct header *h, bool is_inflated, struct bytes *derived, struct tsr_error *error)
{
    static const uint8_t samples[64];
    struct tsr_dicom_scan scan;
    struct bytes whole = copy_bytes(h->d.all.data, h->d.all.size);
    append(&whole, samples, sizeof samples);
    struct tsr_input *input = must(tsr_input_from_memory(whole.data, whole.size, "it"));
    if (is_inflated) { /* as io/formats/dicom/dicom_source.c does it */
        assert_int_equal(tsr_dicom_scan_dataset(input, h->meta_end, &scan, error), TSR_OK);
        scan.meta_start = 132;
        scan.meta_end = h->meta_end;
        scan.is_deflated = true;
    } else {
        const enum tsr_status status = tsr_dicom_scan_file(input, &scan, error);
        expect(status == TSR_OK, "%s at %llu", error->text, (unsigned long long)error->offset);
    }
    *derived = (struct bytes){NULL, 0};
    const enum tsr_status status =
        tsr_dicom_derive(whole.data, &scan, &derivation, &derived->data, &derived->size, error);
    tsr_input_close(input);
    free(whole.data);
    return status;
}

static enum tsr_status compare(const struct header *original, bool is_inflated, struct bytes derived,
                               struct tsr_error *error)
{
    const struct tsr_dicom_bytes one = {original->d.all.data, original->d.all.size, original->meta_end, is_inflated},
                                 other = {derived.data, derived.size, 0, false};
    const enum tsr_status status = tsr_dicom_compare_headers(&one, &other, error);
    struct tsr_error ignored;
    const bool is_good =
        dcmtk_compare_headers(&one, &other, tsr_derived_tags, tsr_derived_tag_count, &ignored) == TSR_OK;
    assert_true(is_good == (status == TSR_OK)); /* DCMTK is the witness */
    return status;
}

/* Sets what follows of the copy from the original. */
static void relate(struct changing *before, struct changing *after)
{
    before->self = before->uid ? before->uid : "1.2.3.4.5";
    after->self = before->uid ? derivation.uid : before->self;
    after->uid = derivation.uid;
    after->is_copy = true;
    after->source = before->uid;
    after->was_lossy = (before->lossy && strcmp(before->lossy, "01") == 0) || (before->method && before->method[0]);
    after->groups = before->groups;
    after->has_range = before->has_range;
}

/* The elements before and after the derivation. */
static const struct {
    struct changing before, after;
} cases[] = {
    {{.uid = "1.2.3.4.5"},
     {.type = "DERIVED\\SECONDARY", .description = REMARK, .lossy = "01", .ratio = "12.35", .method = "TESSERA"}},
    {{.type = "ORIGINAL\\PRIMARY\\AXIAL", .uid = "1.2.3.4.5", .description = "sharpened", .lossy = "00"},
     {.type = "DERIVED\\PRIMARY\\AXIAL",
      .description = "sharpened; " REMARK,
      .lossy = "01",
      .ratio = "12.35",
      .method = "TESSERA"}},
    {{.type = "ORIGINAL", .description = "", .lossy = "01", .ratio = "5.2", .method = "ISO_10918_1"},
     {.type = "DERIVED\\SECONDARY",
      .description = REMARK,
      .lossy = "01",
      .ratio = "5.2\\12.35",
      .method = "ISO_10918_1\\TESSERA"}},
    {{.type = "", .uid = "1.2", .lossy = "01"},
     {.type = "DERIVED\\SECONDARY", .description = REMARK, .lossy = "01", .ratio = "\\12.35", .method = "\\TESSERA"}},
    {{.type = "DERIVED\\SECONDARY", .uid = "1.2.30", .ratio = "5.2\\6", .method = "A"},
     {.type = "DERIVED\\SECONDARY",
      .description = REMARK,
      .lossy = "01",
      .ratio = "5.2\\6\\12.35",
      .method = "A\\\\TESSERA"}},
    {{.uid = "1.2.30", .lossy = "01", .ratio = "5", .method = "A\\B"},
     {.type = "DERIVED\\SECONDARY",
      .description = REMARK,
      .lossy = "01",
      .ratio = "5\\\\12.35",
      .method = "A\\B\\TESSERA"}}};

/* Byte for byte, with group lengths: in all forms, with and without a meta header, and inflated. */
TEST(what_becomes_of_a_header)
{
    static const struct tsr_dicom_form forms[] = {{false, false}, {true, false}, {true, true}};
    for (size_t f = 0; f < COUNT_OF(forms); f++) {
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
            for (int way = 0; way < 24; way++) {
                const bool has_meta = way & 1, has_lengths = way & 2, is_inflated = way & 4;
                if (is_inflated && (f != 1 || !has_meta)) continue;
                struct changing before = cases[i].before, after = cases[i].after;
                struct tsr_error error = {0};
                struct bytes derived;
                before.syntax = !has_meta ? NULL : is_inflated ? "1.2.840.10008.1.2.1.99" : syntax_of(forms[f]);
                before.meta_uid = i == 3 ? NULL : "1.2.3.4.5";
                after.syntax = has_meta ? syntax_of(forms[f]) : NULL;
                after.meta_uid = derivation.uid;
                before.groups = way / 8;
                before.has_range = way / 8 != NO_GROUPS;
                relate(&before, &after);
                struct header original = make_header(forms[f], &before, has_lengths),
                              expected = make_header(forms[f], &after, has_lengths);
                assert_int_equal(derive(&original, is_inflated, &derived, &error), TSR_OK);
                expect(equal(derived, expected.d.all), "form %zu, case %zu, way %d: %zu bytes, expected are %zu", f, i,
                       way, derived.size, expected.d.all.size);
                expect(compare(&original, is_inflated, derived, &error) == TSR_OK, "form %zu, case %zu, way %d: %s", f,
                       i, way, error.text);
                free(derived.data);
                free_header(&original);
                free_header(&expected);
            }
        }
    }
}

/* Nothing is appended to a description that has no room for it. */
TEST(full_descriptions)
{
    char description[1025], expected[1100];
    const size_t most = 1024 - strlen("; " REMARK);
    for (size_t length = most - 3; length <= 1024; length += length < most + 3 ? 1 : 40) {
        struct tsr_error error = {0};
        struct bytes derived;
        struct changing before = cases[1].before, after = cases[1].after;
        memset(description, 'd', length);
        description[length] = '\0';
        snprintf(expected, sizeof expected, "%s%s", description, length <= most ? "; " REMARK : "");
        before.description = description;
        after.description = expected;
        relate(&before, &after);
        struct header original = make_header(explicit_little, &before, true),
                      wanted = make_header(explicit_little, &after, true);
        assert_int_equal(derive(&original, false, &derived, &error), TSR_OK);
        expect(equal(derived, wanted.d.all), "a description of %zu bytes", length);
        assert_int_equal(compare(&original, false, derived, &error), TSR_OK);
        free(derived.data);
        free_header(&original);
        free_header(&wanted);
    }
}

/* Elements that must change but cannot. */
TEST(what_cannot_be_changed)
{
    static const uint32_t tags[] = {0x00080008, 0x00080018, 0x00082111, 0x00282110, 0x00282112, 0x00282114};
    static char text[3000];
    memset(text, '7', sizeof text);
    for (size_t t = 0; t < COUNT_OF(tags); t++) {
        for (int way = 0; way < 4; way++) {
            struct header h = {.d.form = way == 3 ? explicit_little : implicit_little};
            struct bytes derived;
            struct tsr_error error = {0};
            for (size_t k = 0; k < COUNT_OF(tags); k++) {
                if (k != t) {
                    put_text(&h.d, tags[k], "CS", "01");
                } else if (way == 0) { /* twice */
                    put_text(&h.d, tags[k], "CS", "01");
                    put_text(&h.d, tags[k], "CS", "01");
                } else if (way == 1) { /* too long */
                    put_value(&h.d, tags[k], "CS", text, 2048);
                } else if (way == 2) { /* too long with what is appended, if anything is */
                    put_value(&h.d, tags[k], "CS", text, 2046);
                } else { /* not a text */
                    put_head(&h.d, tags[k], "SQ", TSR_UNDEFINED_LENGTH);
                    put_head(&h.d, TAG_SEQUENCE_END, "", 0);
                }
            }
            put_head(&h.d, TSR_TAG_PIXEL_DATA, "OW", 64);
            const bool is_appended_to = tags[t] == 0x00282112 || tags[t] == 0x00282114;
            const enum tsr_status wanted = way == 2 && !is_appended_to ? TSR_OK : TSR_ERROR_CORRUPT;
            const enum tsr_status status = derive(&h, false, &derived, &error);
            expect(status == wanted, "%08x, way %d: %s %s", tags[t], way, tsr_status_name(status), error.text);
            if (status != TSR_OK) {
                char name[16];
                snprintf(name, sizeof name, "(%04x,%04x)", tags[t] >> 16, tags[t] & 0xffff);
                expect(strstr(error.text, name) != NULL, "%08x, way %d: %s", tags[t], way, error.text);
                assert_null(derived.data);
            }
            free(derived.data);
            free_header(&h);
        }
    }
}

/* ---- Comparing ---------------------------------------------------------------------------------------------- */

/* Called for each element that holds no others, those in sequences too. Has tag, value and end. */
typedef void visitor(void *context, const struct tsr_dicom_element *element, bool is_inner);

static size_t visit_layer(const uint8_t *bytes, size_t at, size_t end, struct tsr_dicom_form form, bool is_inner,
                          visitor *visit, void *context)
{
    struct tsr_dicom_element e;
    while (at < end && tsr_dicom_element_at(bytes, at, end, form, &e)) {
        if (e.tag == TAG_ITEM_END || e.tag == TAG_SEQUENCE_END) return e.value;
        static const uint32_t sequences[] = {0x00081115, 0x0008114a, 0x00081140, 0x00081199, 0x00082112,
                                             0x00089124, 0x00089154, 0x00089215, 0x00091002, 0x00189329,
                                             0x00289132, 0x0040a170, 0x52009229, 0x52009230};
        const bool is_unknown = e.tag == 0x00091002;
        bool is_sequence = false;
        for (size_t i = 0; i < COUNT_OF(sequences); i++) is_sequence = is_sequence || e.tag == sequences[i];
        if (e.tag == TAG_ITEM || is_sequence) {
            const bool has_end = e.length != TSR_UNDEFINED_LENGTH;
            at = visit_layer(bytes, e.value, has_end ? e.end : end, is_unknown ? implicit_little : form, true, visit,
                             context);
        } else {
            visit(context, &e, is_inner);
            at = e.end;
        }
    }
    return at;
}

static void visit_header(const struct header *h, visitor *visit, void *context)
{
    const uint8_t *const bytes = h->d.all.data;
    const size_t pixels = h->d.all.size - (h->d.form.explicit_vr ? 12 : 8);
    if (h->meta_end > 0) visit_layer(bytes, 132, h->meta_end, explicit_little, false, visit, context);
    visit_layer(bytes, h->meta_end, pixels, h->d.form, false, visit, context);
}

/* An original and its lossy copy, which is then changed. */
struct changed {
    struct header original, derived;
    int changes;
};

static void expect_noticed(struct changed *c, struct bytes copy, const struct tsr_dicom_element *e, const char *what)
{
    struct tsr_error error = {0};
    const enum tsr_status status = compare(&c->original, false, copy, &error);
    expect(status == TSR_ERROR_CORRUPT, "(%04x,%04x) at %zu, %s: %s", e->tag >> 16, e->tag & 0xffff, e->start, what,
           tsr_status_name(status));
    expect(error.text[0] && !strstr(error.text, "(null)"), "'%s'", error.text);
    c->changes++;
}

/* Changes each bit of the element's tag and value. */
static void change_bits(void *context, const struct tsr_dicom_element *e, bool is_inner)
{
    struct changed *c = context;
    uint8_t *const bytes = c->derived.d.all.data;
    (void)is_inner;
    if (may_change(&c->derived, e->start)) return;
    for (size_t at = e->start; at < e->end; at++) {
        if (at >= e->start + 4 && at < e->value) continue; /* VR and length */
        for (int bit = 0; bit < 8; bit++) {
            if (skip_case()) continue;
            bytes[at] ^= (uint8_t)(1 << bit);
            expect_noticed(c, c->derived.d.all, e, at < e->value ? "its tag" : "its value");
            bytes[at] ^= (uint8_t)(1 << bit);
        }
    }
}

static struct bytes replace_bytes(struct bytes b, size_t start, size_t end, const void *by, size_t size)
{
    struct bytes changed = copy_bytes(b.data, start);
    append(&changed, by, size);
    append(&changed, b.data + end, b.size - end);
    return changed;
}

/* The element is removed, is empty, stands twice, has a new one before it. */
static void change_elements(void *context, const struct tsr_dicom_element *e, bool is_inner)
{
    struct changed *c = context;
    const struct bytes all = c->derived.d.all;
    if (is_inner || e->tag >> 16 == 2 || may_change(&c->derived, e->start)) return;
    struct bytes copy = replace_bytes(all, e->start, e->end, "", 0);
    expect_noticed(c, copy, e, "gone");
    free(copy.data);
    struct dicom_bytes other = {.form = c->derived.d.form};
    put_value(&other, e->tag, e->vr, "", 0);
    copy = replace_bytes(all, e->start, e->end, other.all.data, other.all.size);
    expect_noticed(c, copy, e, "empty");
    free(copy.data);
    free_dicom(&other);
    other.form = c->derived.d.form;
    put_value(&other, e->tag, e->vr, "97", 2);
    copy = replace_bytes(all, e->end, e->end, other.all.data, other.all.size);
    expect_noticed(c, copy, e, "twice");
    free(copy.data);
    free_dicom(&other);
    other.form = c->derived.d.form;
    put_value(&other, 0x00190011, "SH", "planted", 7);
    copy = replace_bytes(all, e->start, e->start, other.all.data, other.all.size);
    expect_noticed(c, copy, e, "a new one in front of it");
    free(copy.data);
    free_dicom(&other);
}

static struct changed make_changed(struct tsr_dicom_form form)
{
    struct changing before = cases[1].before, after = cases[1].after;
    before.syntax = after.syntax = syntax_of(form);
    before.meta_uid = "1.2.3.4.5";
    after.meta_uid = derivation.uid;
    before.groups = BY_FRAME;
    before.has_range = true;
    relate(&before, &after);
    return (struct changed){make_header(form, &before, true), make_header(form, &after, true), 0};
}

TEST(other_changes_are_noticed)
{
    static const struct tsr_dicom_form forms[] = {{false, false}, {true, false}, {true, true}};
    for (size_t f = 0; f < COUNT_OF(forms); f++) {
        struct changed c = make_changed(forms[f]);
        struct tsr_error error;
        assert_int_equal(compare(&c.original, false, c.derived.d.all, &error), TSR_OK);
        visit_header(&c.derived, change_bits, &c);
        visit_header(&c.derived, change_elements, &c);
        assert_true(c.changes > 4000 || getenv("TSR_TEST_SMALL"));
        assert_int_equal(compare(&c.original, false, c.derived.d.all, &error), TSR_OK);
        free_header(&c.original);
        free_header(&c.derived);
    }
}

/* The header of another file is refused, even if it has the right changes. */
TEST(another_header_is_noticed)
{
    struct changed c = make_changed(explicit_little), other = make_changed(explicit_little);
    struct tsr_error error = {0};
    uint8_t *const name = memmem(other.derived.d.all.data, other.derived.d.all.size, "Doe^Jane", 8);
    memcpy(must(name), "Doe^John", 8);
    assert_int_equal(compare(&c.original, false, other.derived.d.all, &error), TSR_ERROR_CORRUPT);
    for (size_t size = 132; size < c.derived.d.all.size; size++) { /* cut off */
        const struct tsr_dicom_bytes one = {c.original.d.all.data, c.original.d.all.size, c.original.meta_end, false},
                                     cut = {c.derived.d.all.data, size, 0, false};
        expect(tsr_dicom_compare_headers(&one, &cut, &error) != TSR_OK, "%zu bytes of %zu", size, c.derived.d.all.size);
    }
    free_header(&c.original);
    free_header(&c.derived);
    free_header(&other.original);
    free_header(&other.derived);
}

/* ---- The proof ---------------------------------------------------------------------------------------------- */

#if TSR_CALLS_CAN_FAIL
/* Where the linker can redirect a call, a value in the derived header is changed. */
static const char *planted; /* the value; NULL: nothing is changed */

enum tsr_status __real_tsr_dicom_derive(const uint8_t *bytes, const struct tsr_dicom_scan *scan,
                                        const struct tsr_derivation *derived_from, uint8_t **derived, size_t *size,
                                        struct tsr_error *error);
enum tsr_status __wrap_tsr_dicom_derive(const uint8_t *bytes, const struct tsr_dicom_scan *scan,
                                        const struct tsr_derivation *derived_from, uint8_t **derived, size_t *size,
                                        struct tsr_error *error);

enum tsr_status __wrap_tsr_dicom_derive(const uint8_t *bytes, const struct tsr_dicom_scan *scan,
                                        const struct tsr_derivation *derived_from, uint8_t **derived, size_t *size,
                                        struct tsr_error *error)
{
    const enum tsr_status status = __real_tsr_dicom_derive(bytes, scan, derived_from, derived, size, error);
    uint8_t *const value = status == TSR_OK && planted ? memmem(*derived, *size, planted, strlen(planted)) : NULL;
    if (value) value[0] ^= 1;
    return status;
}

static enum tsr_status encode_with_loss(struct tsr_engine *engine, struct bytes original, struct tsr_error *error)
{
    const struct tsr_source_options options = {.may_lose = true};
    const struct tsr_coding coding = {.path = TSR_PATH_TRANSFORM,
                                      .coder = TSR_CODER_RANS,
                                      .effort = TSR_EFFORT_DEFAULT,
                                      .lossy = true,
                                      .qp_eighths = 24 * TSR_QP_UNIT};
    struct tsr_input *input = must(tsr_input_from_memory(original.data, original.size, "original"));
    struct tsr_output *output = must(tsr_output_to_memory());
    struct tsr_source *source;
    struct tsr_proof proof = {0};
    struct tsr_encoded encoded = {0};
    assert_int_equal(tsr_source_open(input, &options, &source, error), TSR_OK);
    assert_int_equal(source->header.recipe, TSR_RECIPE_SPLICE);
    const struct tsr_header pristine = source->header;
    tsr_set_coding(source, &pristine, &coding);
    const enum tsr_status status = tsr_encode(engine, source, output, &proof, &encoded, error);
    tsr_source_close(source);
    tsr_output_close(output);
    tsr_input_close(input);
    return status;
}

/* No file is made if its header is not exactly the derived one. */
TEST(comparison_is_part_of_the_proof)
{
    struct tsr_engine *engine = must(make_engine(TSR_ENGINE_CPU, 1));
    struct changed c = make_changed(explicit_little);
    struct tsr_error error = {0};
    static const char *const values[] = {"A manufacturer",   "An institution", "Doe^Jane",   "4711",
                                         "\1\2\3\4\5\6",     "A procedure",    "1.2.3.4.50", "DERIVED\\PRIMARY\\VOLUME",
                                         "ORIGINAL\\PRIMARY"};
    static const uint8_t samples[64] = {1, 0, 2, 0, 3};
    append(&c.original.d.all, samples, sizeof samples);
    expect(encode_with_loss(engine, c.original.d.all, &error) == TSR_OK, "%s", error.text);
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        planted = values[i];
        expect(encode_with_loss(engine, c.original.d.all, &error) == TSR_DECLINED, "%s", values[i]);
        assert_non_null(strstr(error.text, "does not survive a lossy copy"));
    }
    planted = NULL;
    free_header(&c.original);
    free_header(&c.derived);
    tsr_engine_destroy(engine);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_becomes_of_a_header),
        cmocka_unit_test(full_descriptions),
        cmocka_unit_test(what_cannot_be_changed),
        cmocka_unit_test(other_changes_are_noticed),
        cmocka_unit_test(another_header_is_noticed),
#if TSR_CALLS_CAN_FAIL
        cmocka_unit_test(comparison_is_part_of_the_proof),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
