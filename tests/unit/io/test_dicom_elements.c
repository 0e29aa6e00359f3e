/* io/dicom/dicom_elements.h: where the elements of a DICOM file stand, in all forms of DICOM. Files that are
 * cut, damaged or made to cost time are refused. */
#include "dicom_bytes.h"
#include "one_engine.h"

static const struct tsr_dicom_form forms[] = {{false, false}, {true, false}, {true, true}};
static const char *const form_names[] = {"implicit little", "explicit little", "explicit big"};

/* ---- Heads -------------------------------------------------------------------------------------------------- */

static const char vrs[][3] = {"AE", "AS", "AT", "CS", "DA", "DS", "DT", "FD", "FL", "IS", "LO", "LT",
                              "OB", "OD", "OF", "OL", "OV", "OW", "PN", "SH", "SL", "SQ", "SS", "ST",
                              "SV", "TM", "UC", "UI", "UL", "UN", "UR", "US", "UT", "UV"};

/* For every VR: the element is found when all of it is there, and not with one byte less. */
TEST(heads)
{
    for (size_t f = 0; f < COUNT_OF(forms); f++) {
        for (size_t v = 0; v < COUNT_OF(vrs); v++) {
            struct dicom_bytes d = {.form = forms[f]};
            struct tsr_dicom_element e;
            append(&d.all, "before", 6);
            put_value(&d, 0x00181020, vrs[v], "some bytes", 10);
            const size_t size = d.all.size, value = size - 10;
            for (size_t end = 6; end < size; end++)
                expect(!tsr_dicom_element_at(d.all.data, 6, end, d.form, &e), "%s %s, %zu of %zu bytes", form_names[f],
                       vrs[v], end, size);
            append(&d.all, "behind", 6);
            assert_true(tsr_dicom_element_at(d.all.data, 6, d.all.size, d.form, &e));
            expect(e.tag == 0x00181020 && e.length == 10 && e.start == 6 && e.value == value && e.end == size,
                   "%s %s: %08x, %u bytes, %zu %zu %zu", form_names[f], vrs[v], e.tag, e.length, e.start, e.value,
                   e.end);
            assert_string_equal(e.vr, f > 0 ? vrs[v] : "");
            free_dicom(&d);
        }
    }
}

TEST(heads_without_length)
{
    for (size_t f = 0; f < COUNT_OF(forms); f++) {
        static const char *const long_vrs[] = {"SQ", "UN", "OB", "OW", "UT"};
        for (size_t v = 0; v < COUNT_OF(long_vrs); v++) {
            struct dicom_bytes d = {.form = forms[f]};
            struct tsr_dicom_element e;
            put_head(&d, 0x00081140, long_vrs[v], TSR_UNDEFINED_LENGTH);
            assert_true(tsr_dicom_element_at(d.all.data, 0, d.all.size, d.form, &e));
            assert_true(e.length == TSR_UNDEFINED_LENGTH && e.value == d.all.size && e.end == e.value);
            free_dicom(&d);
        }
        /* Items and delimiters have no VR. */
        static const uint32_t tags[] = {TAG_ITEM, TAG_ITEM_END, TAG_SEQUENCE_END};
        for (size_t t = 0; t < COUNT_OF(tags); t++) {
            struct dicom_bytes d = {.form = forms[f]};
            struct tsr_dicom_element e;
            put_head(&d, tags[t], "", 0);
            assert_int_equal(d.all.size, 8);
            assert_true(tsr_dicom_element_at(d.all.data, 0, 8, d.form, &e));
            assert_true(e.tag == tags[t] && e.length == 0 && e.value == 8 && e.end == 8 && e.vr[0] == '\0');
            free_dicom(&d);
        }
    }
}

/* Pairs of letters that are not a VR, and lengths that lead out of the file. */
TEST(heads_that_are_none)
{
    int known = 0;
    for (int a = 0; a < 256; a++) {
        for (int b = 0; b < 256; b++) {
            const uint8_t head[12] = {0x08, 0, 0x20, 0, (uint8_t)a, (uint8_t)b};
            struct tsr_dicom_element e;
            known += tsr_dicom_element_at(head, 0, sizeof head, explicit_little, &e);
        }
    }
    assert_int_equal(known, COUNT_OF(vrs));
    for (uint32_t length = 5; length < UINT32_MAX - 4; length = 2 * length + 1) {
        struct dicom_bytes d = {.form = implicit_little};
        struct tsr_dicom_element e;
        put_head(&d, 0x00081140, "", length);
        append(&d.all, "four", 4);
        assert_false(tsr_dicom_element_at(d.all.data, 0, d.all.size, d.form, &e));
        free_dicom(&d);
    }
    struct tsr_dicom_element e;
    assert_false(tsr_dicom_element_at((const uint8_t *)"", 1, 0, implicit_little, &e));
    assert_false(tsr_dicom_element_at((const uint8_t *)"", SIZE_MAX, 0, implicit_little, &e));
}

/* ---- Files -------------------------------------------------------------------------------------------------- */

/* Appends nested items of some elements down to a depth, with all four ways to say where they end. */
static void put_sequence(struct dicom_bytes *d, uint32_t tag, int ways, int depth)
{
    const size_t sequence = begin_sequence(d, tag, "SQ", ways & 1);
    for (int i = 0; i < 2; i++) {
        const size_t item = begin_sequence(d, TAG_ITEM, "", ways & 2);
        put_text(d, 0x00081150, "UI", "1.2.840.10008.5.1.4.1.1.2");
        if (depth > 1) put_sequence(d, 0x00081199, ways ^ (i ? 3 : 1), depth - 1);
        put_us(d, 0x00280010, 7);
        end_sequence(d, item, TAG_ITEM_END, ways & 2);
    }
    end_sequence(d, sequence, TAG_SEQUENCE_END, ways & 1);
}

/* Appends a sequence that the file's writer did not know: its items are of implicit little endian in every file. */
static void put_unknown_sequence(struct dicom_bytes *d, uint32_t tag)
{
    const struct tsr_dicom_form form = d->form;
    put_head(d, tag, "UN", TSR_UNDEFINED_LENGTH);
    d->form = implicit_little;
    put_head(d, TAG_ITEM, "", TSR_UNDEFINED_LENGTH);
    put_text(d, 0x00091001, "", "LOUD"); /* what looks like a VR is part of a length */
    put_sequence(d, 0x00091002, 0, 2);
    put_head(d, TAG_ITEM_END, "", 0);
    put_head(d, TAG_SEQUENCE_END, "", 0);
    d->form = form;
}

static const uint8_t samples[64];

/* Appends something of all that a header may have. */
static void put_dataset(struct dicom_bytes *d)
{
    put_ul(d, 0x00080000, 100); /* a wrong length, which no reader relies on */
    put_text(d, 0x00080005, "CS", "ISO_IR 100");
    put_text(d, 0x00080018, "UI", "1.2.3.4.5");
    put_text(d, 0x00080020, "DA", "");
    for (int ways = 0; ways < 4; ways++) put_sequence(d, 0x00081110 + (uint32_t)ways, ways, 3);
    put_sequence(d, 0x00082112, 0, 1);
    put_text(d, 0x00090010, "LO", "TESSERA TEST");
    put_value(d, 0x00091001, "UN", "\1\2\3\4", 4);
    put_unknown_sequence(d, 0x00091002);
    if (d->form.explicit_vr) { /* in implicit form its bytes would be taken for elements, and then not */
        put_head(d, 0x00091003, "OB", TSR_UNDEFINED_LENGTH);
        put_value(d, TAG_ITEM, "", samples, 6);
        put_head(d, TAG_ITEM, "", 0);
        put_head(d, TAG_SEQUENCE_END, "", 0);
    }
    put_text(d, 0x00104000, "LT", "some remark");
    put_head(d, 0x00201115, "SQ", 0);
    put_head(d, 0x00201116, "SQ", TSR_UNDEFINED_LENGTH);
    put_head(d, TAG_SEQUENCE_END, "", 0);
    put_us(d, 0x00280010, 4);
    put_us(d, 0x00280011, 8);
}

enum parts { NO_PARTS = 0, WITH_META = 1, WITH_REST = 2 };

static struct dicom_bytes make_file(struct tsr_dicom_form form, enum parts parts, struct tsr_dicom_scan *expected)
{
    struct dicom_bytes d = {.form = form};
    *expected = (struct tsr_dicom_scan){.form = form};
    if (parts & WITH_META) {
        put_meta(&d, syntax_of(form));
        strcpy(expected->syntax_uid, syntax_of(form));
        expected->meta_start = 132;
        expected->meta_end = d.all.size;
    }
    put_dataset(&d);
    expected->pixels = (struct tsr_dicom_element){.tag = TSR_TAG_PIXEL_DATA, .length = 64, .start = d.all.size};
    if (form.explicit_vr) strcpy(expected->pixels.vr, "OW");
    put_value(&d, TSR_TAG_PIXEL_DATA, "OW", samples, sizeof samples);
    expected->pixels.end = d.all.size;
    expected->pixels.value = d.all.size - sizeof samples;
    expected->elements = d.elements;
    if (parts & WITH_REST) put_text(&d, 0xfffcfffc, "OB", "padding ");
    return d;
}

static void expect_element(const struct tsr_dicom_element *found, const struct tsr_dicom_element *expected,
                           const char *where)
{
    expect(found->tag == expected->tag && strcmp(found->vr, expected->vr) == 0 && found->length == expected->length &&
               found->start == expected->start && found->value == expected->value && found->end == expected->end,
           "%s: %08x '%s', %u bytes, at %zu, %zu, %zu", where, found->tag, found->vr, found->length, found->start,
           found->value, found->end);
}

TEST(files)
{
    for (size_t f = 0; f < COUNT_OF(forms); f++) {
        for (int parts = 0; parts < 4; parts++) {
            struct tsr_dicom_scan scan, expected;
            struct tsr_error error;
            struct dicom_bytes d = make_file(forms[f], (enum parts)parts, &expected);
            const enum tsr_status status = scan_bytes(d.all.data, d.all.size, &scan, &error);
            expect(status == TSR_OK, "%s: %s at %llu", form_names[f], error.text, (unsigned long long)error.offset);
            assert_string_equal(scan.syntax_uid, expected.syntax_uid);
            expect_element(&scan.pixels, &expected.pixels, form_names[f]);
            expect(scan.elements == expected.elements, "%s: %llu elements, not %llu", form_names[f],
                   (unsigned long long)scan.elements, (unsigned long long)expected.elements);
            assert_true(scan.meta_start == expected.meta_start && scan.meta_end == expected.meta_end);
            assert_true(scan.form.big_endian == forms[f].big_endian && scan.form.explicit_vr == forms[f].explicit_vr);
            assert_false(scan.is_deflated);
            free_dicom(&d);
        }
    }
}

/* Files whose form is not the one that the meta header names: the actual form counts. */
TEST(forms_that_are_not_as_said)
{
    for (size_t f = 0; f < COUNT_OF(forms); f++) {
        for (size_t said = 0; said < COUNT_OF(forms); said++) {
            struct dicom_bytes d = {.form = forms[f]};
            struct tsr_dicom_scan scan;
            struct tsr_error error;
            put_meta(&d, syntax_of(forms[said]));
            put_dataset(&d);
            put_value(&d, TSR_TAG_PIXEL_DATA, "OW", samples, sizeof samples);
            assert_int_equal(scan_bytes(d.all.data, d.all.size, &scan, &error), TSR_OK);
            assert_true(scan.form.big_endian == forms[f].big_endian && scan.form.explicit_vr == forms[f].explicit_vr);
            assert_string_equal(scan.syntax_uid, syntax_of(forms[said]));
            assert_true(scan.pixels.value == d.all.size - sizeof samples && scan.elements == d.elements);
            free_dicom(&d);
        }
    }
}

/* Padding is not part of a UID. A value that is longer than a UID is not a UID. */
TEST(uids)
{
    static const struct {
        const char *value, *uid;
    } cases[] = {{"1.2.840.10008.1.2 ", "1.2.840.10008.1.2"},
                 {"1.2.840.10008.1.2.1.99  ", "1.2.840.10008.1.2.1.99"},
                 {"  ", ""},
                 {"", ""},
                 {"1.2.3456789012345678901234567890123456789012345678901234567890.1", /* 64 */
                  "1.2.3456789012345678901234567890123456789012345678901234567890.1"},
                 {"1.2.3456789012345678901234567890123456789012345678901234567890.1.", /* its first 64 */
                  "1.2.3456789012345678901234567890123456789012345678901234567890.1"},
                 {"1.2.840.10008.1.2\\1.2.3", "1.2.840.10008.1.2"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct dicom_bytes d = {.form = explicit_little};
        struct tsr_dicom_scan scan;
        struct tsr_error error;
        put_meta(&d, cases[i].value);
        put_value(&d, TSR_TAG_PIXEL_DATA, "OW", samples, sizeof samples);
        assert_int_equal(scan_bytes(d.all.data, d.all.size, &scan, &error), TSR_OK);
        assert_string_equal(scan.syntax_uid, cases[i].uid);
        assert_true(scan.is_deflated == (i == 1));
        free_dicom(&d);
    }
}

/* A delimiter has no value, whatever its length says: elements of one level are those of the walk. */
TEST(delimiters_with_lengths)
{
    struct dicom_bytes d = {.form = explicit_little};
    struct tsr_dicom_element e;
    put_head(&d, 0x00081140, "SQ", TSR_UNDEFINED_LENGTH);
    put_head(&d, TAG_ITEM, "", TSR_UNDEFINED_LENGTH);
    put_text(&d, 0x00081150, "UI", "1.2.3.4");
    put_head(&d, TAG_ITEM_END, "", 1000);
    put_head(&d, TAG_SEQUENCE_END, "", 1000);
    const size_t end = d.all.size;
    put_us(&d, 0x00280010, 7);
    struct tsr_dicom_elements all = {d.all.data, 0, d.all.size, explicit_little};
    assert_true(tsr_dicom_next_element(&all, &e));
    assert_int_equal(e.end, end);
    assert_true(tsr_dicom_next_element(&all, &e));
    assert_int_equal(e.tag, 0x00280010);
    assert_false(tsr_dicom_next_element(&all, &e));
    free_dicom(&d);
}

/* What has no length of its own ends within the item that it stands in: that item ends before a delimiter, or within a
 * fragment. Nothing is read behind the file. */
TEST(content_longer_than_its_item)
{
    enum { SEQUENCE = 12, ITEM = 8 }; /* bytes of their heads */
    for (size_t cut = 0; cut <= 24; cut++) {
        struct dicom_bytes d = {.form = explicit_little};
        struct tsr_dicom_scan scan;
        struct tsr_error error;
        const size_t start = d.all.size;
        put_head(&d, 0x00880200, "SQ", 0);
        put_head(&d, TAG_ITEM, "", 0);
        put_us(&d, 0x00280010, 2);
        put_head(&d, TSR_TAG_PIXEL_DATA, "OB", TSR_UNDEFINED_LENGTH);
        put_value(&d, TAG_ITEM, "", samples, 8);
        put_head(&d, TAG_SEQUENCE_END, "", 0);
        const uint32_t item = (uint32_t)(d.all.size - start - SEQUENCE - ITEM - cut);
        tsr_put_u32(d.all.data + start + SEQUENCE - 4, item + ITEM);
        tsr_put_u32(d.all.data + start + SEQUENCE + ITEM - 4, item);
        uint8_t *const exact = must(malloc(d.all.size)); /* reading past it is found under a sanitizer */
        memcpy(exact, d.all.data, d.all.size);
        const enum tsr_status status = scan_bytes(exact, d.all.size, &scan, &error);
        expect(status == TSR_ERROR_CORRUPT, "cut by %zu: %s", cut, tsr_status_name(status));
        expect((cut == 0) == (strstr(error.text, "no pixel data") != NULL), "cut by %zu: %s", cut, error.text);
        free(exact);
        free_dicom(&d);
    }
}

/* Pixel data in items, native or encapsulated, belong to an icon. The data set's come later. */
TEST(icons)
{
    for (size_t f = 0; f < COUNT_OF(forms); f++) {
        struct dicom_bytes d = {.form = forms[f]};
        struct tsr_dicom_scan scan;
        struct tsr_error error;
        put_dataset(&d);
        for (int way = 0; way < 4; way++) {
            const size_t sequence = begin_sequence(&d, 0x00880200, "SQ", way & 1);
            const size_t item = begin_sequence(&d, TAG_ITEM, "", way & 1);
            put_us(&d, 0x00280010, 2);
            if (way < 2 || !d.form.explicit_vr) {
                put_value(&d, TSR_TAG_PIXEL_DATA, "OW", samples, 8);
            } else {
                put_head(&d, TSR_TAG_PIXEL_DATA, "OB", TSR_UNDEFINED_LENGTH);
                put_head(&d, TAG_ITEM, "", 0);
                put_value(&d, TAG_ITEM, "", samples, 8);
                put_head(&d, TAG_SEQUENCE_END, "", 0);
            }
            end_sequence(&d, item, TAG_ITEM_END, way & 1);
            end_sequence(&d, sequence, TAG_SEQUENCE_END, way & 1);
        }
        put_value(&d, TSR_TAG_PIXEL_DATA, "OW", samples, sizeof samples);
        const enum tsr_status status = scan_bytes(d.all.data, d.all.size, &scan, &error);
        expect(status == TSR_OK, "%s: %s", form_names[f], error.text);
        expect(scan.pixels.value == d.all.size - sizeof samples && scan.elements == d.elements,
               "%s: pixels at %zu of %zu", form_names[f], scan.pixels.value, d.all.size);
        free_dicom(&d);
    }
}

/* Of a deflated file only the meta header is read. What it inflates to is a data set without a meta header. */
TEST(deflated)
{
    struct dicom_bytes d = {.form = explicit_little};
    struct tsr_dicom_scan scan;
    struct tsr_error error;
    put_meta(&d, "1.2.840.10008.1.2.1.99");
    const size_t start = d.all.size;
    append(&d.all, "anything", 8);
    assert_int_equal(scan_bytes(d.all.data, d.all.size, &scan, &error), TSR_OK);
    assert_true(scan.is_deflated && scan.meta_end == start);
    d.all.size = start;
    d.elements = 0;
    put_dataset(&d);
    put_value(&d, TSR_TAG_PIXEL_DATA, "OW", samples, sizeof samples);
    struct tsr_input *input = must(tsr_input_from_memory(d.all.data, d.all.size, "it"));
    assert_int_equal(tsr_dicom_scan_dataset(input, start, &scan, &error), TSR_OK);
    assert_true(scan.pixels.value == d.all.size - sizeof samples && scan.elements == d.elements);
    assert_true(scan.form.explicit_vr && !scan.form.big_endian);
    tsr_input_close(input);
    free_dicom(&d);
}

/* ---- Damage ------------------------------------------------------------------------------------------------- */

/* A file that is cut at any byte is refused, unless it ends in the samples. */
TEST(cut_files)
{
    for (size_t f = 0; f < COUNT_OF(forms); f++) {
        for (int parts = 0; parts < 2; parts++) {
            struct tsr_dicom_scan scan, expected;
            struct tsr_error error;
            struct dicom_bytes d = make_file(forms[f], (enum parts)parts, &expected);
            for (size_t size = 0; size <= d.all.size; size++) {
                const enum tsr_status status = scan_bytes(d.all.data, size, &scan, &error);
                const bool is_there = size >= expected.pixels.value;
                expect(status == (is_there ? TSR_OK : TSR_ERROR_CORRUPT), "%s, %zu of %zu bytes: %s %s", form_names[f],
                       size, d.all.size, tsr_status_name(status), error.text);
                if (is_there) expect_element(&scan.pixels, &expected.pixels, form_names[f]);
                if (!is_there) expect(error.text[0] && !strstr(error.text, "(null)"), "'%s'", error.text);
            }
            free_dicom(&d);
        }
    }
}

/* Whatever one byte is changed to: the file is refused, or what is found lies within the file. Nothing is read outside
 * it. */
TEST(damaged_files)
{
    static const uint8_t values[] = {0x00, 0x01, 0x08, 0x7f, 0x80, 0xfe, 0xff};
    int refused = 0;
    for (size_t f = 0; f < COUNT_OF(forms); f++) {
        struct tsr_dicom_scan scan, expected;
        struct tsr_error error;
        struct dicom_bytes d = make_file(forms[f], WITH_META | WITH_REST, &expected);
        for (size_t at = 128; at < expected.pixels.value; at++) {
            const uint8_t was = d.all.data[at];
            for (size_t v = 0; v < COUNT_OF(values); v++) {
                d.all.data[at] = values[v];
                const enum tsr_status status = scan_bytes(d.all.data, d.all.size, &scan, &error);
                expect(status == TSR_OK || status == TSR_ERROR_CORRUPT, "byte %zu: %s", at, tsr_status_name(status));
                refused += status != TSR_OK;
                if (status != TSR_OK || scan.is_deflated) continue;
                expect(scan.meta_start <= scan.meta_end && scan.meta_end <= scan.pixels.start &&
                           scan.pixels.start < scan.pixels.value && scan.pixels.value <= d.all.size &&
                           (scan.pixels.tag == TSR_TAG_PIXEL_DATA || scan.pixels.tag == TSR_TAG_FLOAT_PIXELS),
                       "byte %zu is %d: %zu %zu %zu %zu", at, values[v], scan.meta_start, scan.meta_end,
                       scan.pixels.start, scan.pixels.value);
            }
            d.all.data[at] = was;
        }
        free_dicom(&d);
    }
    assert_true(refused > 500);
}

/* Appends something wrong to a data set of explicit little endian; at: one of several ways. */
typedef void put_wrong(struct dicom_bytes *d);

static void item_end_outside(struct dicom_bytes *d)
{
    put_head(d, TAG_ITEM_END, "", 0);
}

static void sequence_end_outside(struct dicom_bytes *d)
{
    put_head(d, TAG_SEQUENCE_END, "", 0);
}

static void item_outside(struct dicom_bytes *d)
{
    put_head(d, TAG_ITEM, "", 0);
}

static void element_for_item(struct dicom_bytes *d)
{
    const size_t sequence = begin_sequence(d, 0x00200010, "SQ", true);
    put_us(d, 0x00280010, 7);
    set_length(d, sequence);
}

static void sequence_end_in_item(struct dicom_bytes *d)
{
    put_head(d, 0x00200010, "SQ", TSR_UNDEFINED_LENGTH);
    put_head(d, TAG_ITEM, "", TSR_UNDEFINED_LENGTH);
    put_head(d, TAG_SEQUENCE_END, "", 0);
}

static void item_end_in_item_of_length(struct dicom_bytes *d)
{
    put_head(d, 0x00200010, "SQ", TSR_UNDEFINED_LENGTH);
    const size_t item = begin_sequence(d, TAG_ITEM, "", true);
    put_head(d, TAG_ITEM_END, "", 0);
    set_length(d, item);
    put_head(d, TAG_SEQUENCE_END, "", 0);
}

static void item_end_in_sequence(struct dicom_bytes *d)
{
    put_head(d, 0x00200010, "SQ", TSR_UNDEFINED_LENGTH);
    put_head(d, TAG_ITEM_END, "", 0);
    put_head(d, TAG_SEQUENCE_END, "", 0);
}

static void sequence_end_in_sequence_of_length(struct dicom_bytes *d)
{
    const size_t sequence = begin_sequence(d, 0x00200010, "SQ", true);
    put_head(d, TAG_SEQUENCE_END, "", 0);
    set_length(d, sequence);
}

static void item_longer_than_sequence(struct dicom_bytes *d)
{
    const size_t sequence = begin_sequence(d, 0x00200010, "SQ", true);
    put_head(d, TAG_ITEM, "", 12);
    put_us(d, 0x00280010, 7);
    set_length(d, sequence);
    put_us(d, 0x00280010, 7);
}

static void element_longer_than_item(struct dicom_bytes *d)
{
    put_head(d, 0x00200010, "SQ", TSR_UNDEFINED_LENGTH);
    const size_t item = begin_sequence(d, TAG_ITEM, "", true);
    put_head(d, 0x00280010, "LO", 30);
    set_length(d, item);
    put_text(d, 0x00280011, "LO", "some text of some length");
    put_head(d, TAG_SEQUENCE_END, "", 0);
}

static void sequence_longer_than_file(struct dicom_bytes *d)
{
    put_head(d, 0x00200010, "SQ", 100000);
}

static void text_without_length(struct dicom_bytes *d)
{
    put_head(d, 0x00200010, "UT", TSR_UNDEFINED_LENGTH);
    put_head(d, TAG_SEQUENCE_END, "", 0);
}

static void fragment_without_length(struct dicom_bytes *d)
{
    put_head(d, 0x00200010, "OB", TSR_UNDEFINED_LENGTH);
    put_head(d, TAG_ITEM, "", TSR_UNDEFINED_LENGTH);
    put_head(d, TAG_SEQUENCE_END, "", 0);
}

static void no_vr(struct dicom_bytes *d)
{
    put_head(d, 0x00200010, "QQ", 0);
}

static void sequence_without_end(struct dicom_bytes *d)
{
    put_head(d, 0x00200010, "SQ", TSR_UNDEFINED_LENGTH);
}

/* An offset says that the file looks damaged there; else it has a form that is not known. */
TEST(wrong_delimiters)
{
    static const struct {
        put_wrong *put;
        bool is_damage;
    } ways[] = {{item_end_outside, false},
                {sequence_end_outside, false},
                {item_outside, true},
                {element_for_item, false},
                {sequence_end_in_item, false},
                {item_end_in_item_of_length, false},
                {item_end_in_sequence, false},
                {sequence_end_in_sequence_of_length, false},
                {item_longer_than_sequence, true},
                {element_longer_than_item, true},
                {sequence_longer_than_file, true},
                {text_without_length, false},
                {fragment_without_length, false},
                {no_vr, false},
                {sequence_without_end, false}};
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        struct dicom_bytes d = {.form = explicit_little};
        struct tsr_dicom_scan scan;
        struct tsr_error error;
        put_meta(&d, syntax_of(d.form));
        put_text(&d, 0x00080018, "UI", "1.2.3.4.5");
        const size_t start = d.all.size;
        ways[i].put(&d);
        put_us(&d, 0x00280010, 4);
        put_value(&d, TSR_TAG_PIXEL_DATA, "OW", samples, sizeof samples);
        const enum tsr_status status = scan_bytes(d.all.data, d.all.size, &scan, &error);
        expect(status == TSR_ERROR_CORRUPT && error.text[0], "way %zu: %s", i, tsr_status_name(status));
        expect(ways[i].is_damage ? error.offset >= start && error.offset < d.all.size : error.offset == TSR_NO_OFFSET,
               "way %zu: '%s' at %llu", i, error.text, (unsigned long long)error.offset);
        free_dicom(&d);
    }
}

/* Without VRs a reader guesses what is a sequence. What begins like a sequence and is not one is skipped. */
TEST(guesses)
{
    static const uint8_t starts[][20] = {
        {0xfe, 0xff, 0x00, 0xe0, 0xff, 0xff, 0xff, 0xff},                               /* an item that does not end */
        {0xfe, 0xff, 0x00, 0xe0, 0xff, 0x00, 0x00, 0x00},                               /* an item that is too long */
        {0xfe, 0xff, 0x00, 0xe0, 0x0c, 0x00, 0x00, 0x00, 0x28, 0x00, 0x10, 0x00, 0xf0}, /* its element is too long */
        {0xfe, 0xff, 0x00, 0xe0, 0x02, 0x00, 0x00, 0x00},                          /* two bytes are not an element */
        {0xfe, 0xff, 0x00, 0xe0, 0x00, 0x00, 0x00, 0x00, 0x28, 0x00, 0x10, 0x00}}; /* then no item */
    for (size_t i = 0; i < COUNT_OF(starts); i++) {
        struct dicom_bytes d = {.form = implicit_little};
        struct tsr_dicom_scan scan;
        struct tsr_error error;
        put_text(&d, 0x00080018, "UI", "1.2.3.4.5");
        put_value(&d, 0x00091001, "", starts[i], sizeof starts[i]);
        put_sequence(&d, 0x00091002, (int)i % 4, 2);
        put_us(&d, 0x00280010, 4);
        put_value(&d, TSR_TAG_PIXEL_DATA, "", samples, sizeof samples);
        const enum tsr_status status = scan_bytes(d.all.data, d.all.size, &scan, &error);
        expect(status == TSR_OK, "guess %zu: %s", i, error.text);
        assert_int_equal(scan.pixels.value, d.all.size - sizeof samples);
        free_dicom(&d);
    }
}

/* ---- What would cost its reader ----------------------------------------------------------------------------- */

/* Makes sequences within sequences, to any depth. */
static struct dicom_bytes make_nested(int depth)
{
    struct dicom_bytes d = {.form = explicit_little};
    put_text(&d, 0x00080018, "UI", "1.2.3.4.5");
    for (int i = 0; i < depth; i++) {
        put_head(&d, 0x00081140, "SQ", TSR_UNDEFINED_LENGTH);
        put_head(&d, TAG_ITEM, "", TSR_UNDEFINED_LENGTH);
    }
    for (int i = 0; i < depth; i++) {
        put_head(&d, TAG_ITEM_END, "", 0);
        put_head(&d, TAG_SEQUENCE_END, "", 0);
    }
    put_value(&d, TSR_TAG_PIXEL_DATA, "OW", samples, sizeof samples);
    return d;
}

TEST(deep_files)
{
    static const int depths[] = {1, 10, 49, 50, 51, 1000, 100000};
    for (size_t i = 0; i < COUNT_OF(depths); i++) {
        struct tsr_dicom_scan scan;
        struct tsr_error error;
        struct dicom_bytes d = make_nested(depths[i]);
        const enum tsr_status status = scan_bytes(d.all.data, d.all.size, &scan, &error);
        expect(status == (depths[i] < 50 ? TSR_OK : TSR_ERROR_CORRUPT), "%d sequences: %s", depths[i],
               tsr_status_name(status));
        if (status != TSR_OK) assert_non_null(strstr(error.text, "nested too deep"));
        if (status == TSR_OK) assert_int_equal(scan.elements, d.elements);
        free_dicom(&d);
    }
}

enum order { ASCENDING, RANDOM, DESCENDING };

/* Makes count private elements and what makes an image. */
static struct dicom_bytes make_many(struct tsr_dicom_form form, uint32_t count, enum order order)
{
    struct rng r = {count};
    struct dicom_bytes d = {.form = form};
    uint32_t *tags = must(malloc((count + 1) * sizeof *tags));
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t n = order == DESCENDING ? count - 1 - i : i;
        tags[i] = (0x0009 + 2 * (n / 0xe000)) << 16 | (0x1000 + n % 0xe000);
    }
    for (uint32_t i = count; i > 1 && order == RANDOM; i--) {
        const uint32_t k = rng_below(&r, i), tag = tags[k];
        tags[k] = tags[i - 1];
        tags[i - 1] = tag;
    }
    put_meta(&d, syntax_of(form));
    put_text(&d, 0x00080018, "UI", "1.2.3.4.5");
    put_text(&d, 0x00080060, "CS", "CT");
    for (uint32_t i = 0; i < count; i++) put_text(&d, tags[i], "LO", "text");
    static const uint32_t image[][2] = {{0x00280002, 1}, {0x00280010, 40}, {0x00280011, 50}, {0x00280100, 8},
                                        {0x00280101, 8}, {0x00280102, 7},  {0x00280103, 0}};
    for (size_t i = 0; i < COUNT_OF(image); i++) put_us(&d, image[i][0], image[i][1]);
    put_head(&d, TSR_TAG_PIXEL_DATA, "OW", 40 * 50);
    for (int i = 0; i < 40 * 50; i++) append(&d.all, &(uint8_t){(uint8_t)(i / 50 + i % 7)}, 1);
    free(tags);
    return d;
}

/* Sorting the elements takes time for each pair in the wrong order. If there are many such pairs, the walk ends
 * early. */
TEST(elements_in_disorder)
{
    static const struct {
        uint32_t count;
        enum order order;
        bool is_taken;
    } files[] = {{10000, ASCENDING, true}, {100000, ASCENDING, true},  {1000, RANDOM, true},   {1000, DESCENDING, true},
                 {10000, RANDOM, false},   {10000, DESCENDING, false}, {100000, RANDOM, false}};
    for (size_t f = 0; f < COUNT_OF(forms); f++) {
        for (size_t i = 0; i < COUNT_OF(files); i++) {
            struct tsr_dicom_scan scan;
            struct tsr_error error;
            struct dicom_bytes d = make_many(forms[f], files[i].count, files[i].order);
            const enum tsr_status status = scan_bytes(d.all.data, d.all.size, &scan, &error);
            expect(status == (files[i].is_taken ? TSR_OK : TSR_ERROR_CORRUPT), "%s, %u elements in order %d: %s",
                   form_names[f], files[i].count, (int)files[i].order, tsr_status_name(status));
            if (status == TSR_OK) {
                assert_true(scan.elements == d.elements && scan.pixels.value == d.all.size - 2000);
            } else {
                assert_non_null(strstr(error.text, "disorder"));
                expect(scan.elements < 5000, "it was walked through up to element %llu of %llu",
                       (unsigned long long)scan.elements, (unsigned long long)d.elements);
            }
            free_dicom(&d);
        }
    }
}

/* Many short lists in disorder cost no more than short lists. */
TEST(items_in_disorder)
{
    struct dicom_bytes d = {.form = explicit_little};
    struct tsr_dicom_scan scan;
    struct tsr_error error;
    put_head(&d, 0x00081140, "SQ", TSR_UNDEFINED_LENGTH);
    for (int i = 0; i < 3000; i++) {
        put_head(&d, TAG_ITEM, "", TSR_UNDEFINED_LENGTH);
        for (uint32_t k = 10; k > 0; k--) put_us(&d, 0x00280010 + k, k);
        put_head(&d, TAG_ITEM_END, "", 0);
    }
    put_head(&d, TAG_SEQUENCE_END, "", 0);
    put_value(&d, TSR_TAG_PIXEL_DATA, "OW", samples, sizeof samples);
    assert_int_equal(scan_bytes(d.all.data, d.all.size, &scan, &error), TSR_OK);
    assert_int_equal(scan.elements, d.elements);
    free_dicom(&d);
}

/* From end to end: files in order are coded as images, files in disorder are stored, and both come back. */
TEST(many_elements_come_back)
{
    static const struct tsr_coding coding = {.coder = TSR_CODER_RANS, .effort = TSR_EFFORT_DEFAULT};
    for (int order = ASCENDING; order <= DESCENDING; order++) {
        struct dicom_bytes d = make_many(explicit_little, 10000, (enum order)order);
        struct bytes tsr = compress_bytes(engine, d.all, &coding), restored;
        bool damaged;
        assert_int_equal(restore_bytes(engine, tsr.data, tsr.size, &restored, &damaged), TSR_OK);
        assert_true(equal(restored, d.all) && !damaged);
        struct tsr_input *input = must(tsr_input_from_memory(tsr.data, tsr.size, "tsr"));
        struct tsr_container_reader *reader;
        assert_int_equal(tsr_container_open(input, &reader, NULL), TSR_OK);
        const struct tsr_header *header = tsr_container_header(reader);
        assert_int_equal(header->kind, TSR_KIND_DICOM);
        assert_int_equal(header->recipe, order == ASCENDING ? TSR_RECIPE_SPLICE : TSR_RECIPE_VERBATIM);
        const bool is_raw = tsr.size > d.all.size; /* without zstd, the shortest form has no reason */
        expect(order == ASCENDING || is_raw || strstr(header->reason, "disorder"), "%s", header->reason);
        tsr_container_close(reader);
        tsr_input_close(input);
        free(tsr.data);
        free(restored.data);
        free_dicom(&d);
    }
}

/* Empty elements have few bytes, but each takes 300 bytes of a reader's memory. */
TEST(elements_without_number)
{
    enum { ELEMENTS = 3600000 };
    struct tsr_dicom_scan scan;
    struct tsr_error error;
    uint8_t *bytes = must(malloc(ELEMENTS * 8));
    for (size_t i = 0; i < ELEMENTS; i++) memcpy(bytes + 8 * i, "\x09\x00\x10\x00\x00\x00\x00\x00", 8);
    struct tsr_input *input = must(tsr_input_from_memory(bytes, ELEMENTS * 8, "it"));
    assert_int_equal(tsr_dicom_scan_file(input, &scan, &error), TSR_ERROR_CORRUPT);
    assert_non_null(strstr(error.text, "more than 1 GiB of memory"));
    tsr_input_close(input);
    input = must(tsr_input_from_memory(bytes, ELEMENTS * 7, "it"));
    assert_int_equal(tsr_dicom_scan_file(input, &scan, &error), TSR_ERROR_CORRUPT);
    assert_non_null(strstr(error.text, "no pixel data"));
    tsr_input_close(input);
    free(bytes);
}

/* A header may have at most 64 MiB, in the meta header and after it. */
TEST(headers_without_end)
{
    enum { MOST = 64 << 20 };
    for (int way = 0; way < 4; way++) {
        const bool is_meta = way / 2;
        const uint32_t length = way % 2 ? MOST : MOST - 12;
        struct dicom_bytes d = {.form = explicit_little};
        struct tsr_dicom_scan scan;
        struct tsr_error error;
        put_head(&d, is_meta ? 0x00020102 : 0x00091001, "OB", length);
        struct dicom_bytes pixels = {.form = explicit_little};
        put_value(&pixels, TSR_TAG_PIXEL_DATA, "OW", samples, sizeof samples);
        const size_t start = d.all.size + length, size = start + pixels.all.size;
        uint8_t *const bytes = must(calloc(size, 1));
        memcpy(bytes, d.all.data, d.all.size);
        memcpy(bytes + start, pixels.all.data, pixels.all.size);
        struct tsr_input *input = must(tsr_input_from_memory(bytes, size, "it"));
        const enum tsr_status status = tsr_dicom_scan_file(input, &scan, &error);
        expect(status == (way % 2 ? TSR_ERROR_CORRUPT : TSR_OK), "way %d: %s", way, tsr_status_name(status));
        if (status == TSR_OK) assert_int_equal(scan.pixels.value, size - sizeof samples);
        tsr_input_close(input);
        free(bytes);
        free_dicom(&d);
        free_dicom(&pixels);
    }
}

/* ---- Memory ------------------------------------------------------------------------------------------------- */

/* An account that counts claims, and refuses them if refuses is set. */
struct counting {
    struct tsr_memory_account base;
    int claims;
    bool refuses;
};

static enum tsr_status count_claim(struct tsr_memory_account *account, uint64_t bytes, struct tsr_error *error)
{
    struct counting *const c = (struct counting *)account;
    c->claims++;
    assert_true(bytes > TSR_UNCLAIMED_BYTES);
    return c->refuses ? tsr_fail(error, TSR_ERROR_LIMIT, "there never is so much") : TSR_OK;
}

static enum tsr_status no_claim(struct tsr_memory_account *account, const struct tsr_header *header,
                                const struct tsr_need *need, struct tsr_error *error)
{
    (void)account;
    (void)header;
    (void)need;
    return tsr_fail(error, TSR_ERROR_INTERNAL, "a scan is no file");
}

/* A header that is large itself claims memory before it is read. A small one does not, even if it has many samples. */
TEST(large_headers_ask)
{
    for (int large = 0; large < 2; large++) {
        for (int refuses = 0; refuses < 2; refuses++) {
            static const uint8_t many[2000000];
            struct counting counting = {.base = {count_claim, no_claim}, .refuses = refuses};
            struct dicom_bytes d = {.form = explicit_little};
            struct tsr_dicom_scan scan;
            struct tsr_error error;
            put_value(&d, 0x00091001, "OB", many, large ? sizeof many : 1000);
            put_value(&d, TSR_TAG_PIXEL_DATA, "OW", many, sizeof many);
            struct tsr_input *input = must(tsr_input_from_memory(d.all.data, d.all.size, "it"));
            tsr_input_set_account(input, &counting.base);
            const enum tsr_status status = tsr_dicom_scan_file(input, &scan, &error);
            assert_int_equal(status, large && refuses ? TSR_ERROR_LIMIT : TSR_OK);
            assert_true(large ? counting.claims > 0 : counting.claims == 0);
            tsr_input_close(input);
            free_dicom(&d);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(heads),
                                       cmocka_unit_test(heads_without_length),
                                       cmocka_unit_test(heads_that_are_none),
                                       cmocka_unit_test(files),
                                       cmocka_unit_test(forms_that_are_not_as_said),
                                       cmocka_unit_test(uids),
                                       cmocka_unit_test(delimiters_with_lengths),
                                       cmocka_unit_test(content_longer_than_its_item),
                                       cmocka_unit_test(icons),
                                       cmocka_unit_test(deflated),
                                       cmocka_unit_test(cut_files),
                                       cmocka_unit_test(damaged_files),
                                       cmocka_unit_test(wrong_delimiters),
                                       cmocka_unit_test(guesses),
                                       cmocka_unit_test(deep_files),
                                       cmocka_unit_test(elements_in_disorder),
                                       cmocka_unit_test(items_in_disorder),
                                       cmocka_unit_test(many_elements_come_back),
                                       cmocka_unit_test(elements_without_number),
                                       cmocka_unit_test(headers_without_end),
                                       cmocka_unit_test(large_headers_ask)};
    return cmocka_run_group_tests(tests, create_engine, destroy_engine);
}
