/* io/formats/dicom/dicom_describe.c: what is read of a plain header without DCMTK is what DCMTK reads. */
#include "dicom_bytes.h"
#include "io/formats/dicom/dicom_file.h"

static const struct tsr_dicom_form forms[] = {{false, false}, {true, false}, {true, true}};

/* An element in another form than make_header gives it. */
struct odd {
    uint32_t tag;
    const char *vr, *value;
    size_t size;
};

static void put_fact(struct dicom_bytes *d, const struct odd *odd, uint32_t tag, const char *vr, const char *text,
                     uint32_t number)
{
    if (odd && odd->tag == tag) {
        if (!odd->vr) return; /* absent */
        put_head(d, tag, odd->vr, (uint32_t)odd->size);
        append(&d->all, odd->value, odd->size);
    } else if (text) {
        put_text(d, tag, vr, text);
    } else {
        put_us(d, tag, number);
    }
}

/* A header with sequences, some of whose items have the tags of the image. Returns where the data set begins. */
static size_t make_header(struct dicom_bytes *d, struct tsr_dicom_form form, const char *syntax, const struct odd *odd)
{
    *d = (struct dicom_bytes){.form = form};
    put_meta(d, syntax);
    const size_t start = d->all.size;
    put_text(d, 0x00080005, "CS", "ISO_IR 192");
    put_text(d, 0x00080016, "UI", "1.2.840.10008.5.1.4.1.1.2");
    put_fact(d, odd, 0x00080060, "CS", "MR", 0);
    for (int has_length = 0; has_length < 2; has_length++) {
        const size_t sequence = begin_sequence(d, has_length ? 0x00081140 : 0x00081115, "SQ", has_length);
        const size_t item = begin_sequence(d, TAG_ITEM, "", has_length);
        put_text(d, 0x00081150, "UI", "1.2.3.4");
        put_us(d, 0x00280010, 9999);
        end_sequence(d, item, TAG_ITEM_END, has_length);
        end_sequence(d, sequence, TAG_SEQUENCE_END, has_length);
    }
    put_text(d, 0x00100010, "PN", "Nobody^At All");
    put_fact(d, odd, 0x00280002, "US", NULL, 3);
    put_fact(d, odd, 0x00280004, "CS", "RGB", 0);
    put_fact(d, odd, 0x00280006, "US", NULL, 1);
    put_fact(d, odd, 0x00280008, "IS", "12", 0);
    put_fact(d, odd, 0x00280010, "US", NULL, 513);
    put_fact(d, odd, 0x00280011, "US", NULL, 514);
    put_fact(d, odd, 0x00280100, "US", NULL, 16);
    put_fact(d, odd, 0x00280101, "US", NULL, 12);
    put_fact(d, odd, 0x00280102, "US", NULL, 11);
    put_fact(d, odd, 0x00280103, "US", NULL, 1);
    put_fact(d, odd, 0x00280120, "SS", NULL, 0xf830);
    put_fact(d, odd, 0x00280121, "US", NULL, 0xf900);
    put_text(d, 0x00281050, "DS", "40\\50");
    put_head(d, TSR_TAG_PIXEL_DATA, "OW", 4);
    append(&d->all, "1234", 4);
    return start;
}

/* Compares both readers. Returns whether the header is plain. */
static bool is_equal(const struct dicom_bytes *d, const char *what, size_t at)
{
    struct tsr_dicom_scan scan;
    struct tsr_dicom plain, full;
    struct tsr_error error;
    if (scan_bytes(d->all.data, d->all.size, &scan, &error) != TSR_OK || scan.is_deflated) return false;
    if (scan.pixels.tag != TSR_TAG_PIXEL_DATA) return false; /* DCMTK reads up to this one */
    if (!tsr_dicom_describe_plain(d->all.data, &scan, false, &plain)) return false;
    const enum tsr_status status = tsr_dicom_describe(d->all.data, scan.pixels.value, &full, &error);
    /* Of implicit VR, only the dictionary knows which values are sequences. DCMTK refuses those that are damaged, and
     * the image is the same without them. */
    if (status == TSR_ERROR_CORRUPT && !scan.form.explicit_vr) return true;
    expect(status == TSR_OK, "%s %zu: DCMTK: %s", what, at, error.text);
    expect(memcmp(&plain, &full, sizeof plain) == 0,
           "%s %zu: %ld x %ld, %ld frames, %ld samples, planar %ld, %ld %ld %ld %ld, '%s' '%s', and DCMTK reads %ld x "
           "%ld, %ld frames, %ld samples, planar %ld, %ld %ld %ld %ld, '%s' '%s'",
           what, at, plain.columns, plain.rows, plain.frames, plain.samples, plain.planar, plain.bits_allocated,
           plain.bits_stored, plain.high_bit, plain.representation, plain.photometric, plain.modality, full.columns,
           full.rows, full.frames, full.samples, full.planar, full.bits_allocated, full.bits_stored, full.high_bit,
           full.representation, full.photometric, full.modality);
    return true;
}

TEST(plain_headers)
{
    for (size_t f = 0; f < COUNT_OF(forms); f++) {
        struct dicom_bytes d;
        make_header(&d, forms[f], syntax_of(forms[f]), NULL);
        assert_true(is_equal(&d, "form", f));
        free_dicom(&d);
    }
}

TEST(syntaxes)
{
    static const char *const uids[] = {"1.2.840.10008.1.2.5",    "1.2.840.10008.1.2.4.57", "1.2.840.10008.1.2.4.70",
                                       "1.2.840.10008.1.2.4.90", "1.2.840.10008.1.2.4.80", "1.2.840.10008.1.2.4.50"};
    for (size_t u = 0; u < COUNT_OF(uids); u++) {
        struct dicom_bytes d;
        make_header(&d, explicit_little, uids[u], NULL);
        assert_true(is_equal(&d, uids[u], 0));
        free_dicom(&d);
    }
    /* The transfer syntax says another form than the data set has. */
    for (size_t f = 0; f < COUNT_OF(forms); f++) {
        struct dicom_bytes d;
        make_header(&d, forms[f], syntax_of(forms[(f + 1) % COUNT_OF(forms)]), NULL);
        assert_false(is_equal(&d, "another form", f));
        free_dicom(&d);
    }
}

/* A data set on its own. */
TEST(data_sets)
{
    struct dicom_bytes d;
    struct tsr_dicom_scan scan;
    struct tsr_dicom plain, full;
    struct tsr_error error;
    const size_t start = make_header(&d, explicit_little, "1.2.840.10008.1.2.1.99", NULL);
    struct tsr_input *const input = must(tsr_input_from_memory(d.all.data, d.all.size, "it"));
    assert_int_equal(tsr_dicom_scan_dataset(input, start, &scan, &error), TSR_OK);
    scan.meta_end = start;
    assert_true(tsr_dicom_describe_plain(d.all.data, &scan, true, &plain));
    assert_int_equal(tsr_dicom_describe_dataset(d.all.data + start, scan.pixels.value - start, &full, &error), TSR_OK);
    assert_memory_equal(&plain, &full, sizeof plain);
    tsr_input_close(input);
    free_dicom(&d);
}

#define ODD(tag, vr, value)              \
    {                                    \
        tag, vr, value, sizeof value - 1 \
    }

TEST(odd_values)
{
    static const struct odd odds[] = {
        {0x00080060, NULL, NULL, 0},
        ODD(0x00080060, "CS", ""),
        ODD(0x00080060, "CS", "MR\\CT "),
        ODD(0x00080060, "CS", " MR "),
        ODD(0x00080060, "CS", "MR\0\0"),
        ODD(0x00080060, "LO", "MR"),
        ODD(0x00080060, "CS", "mr"),
        ODD(0x00080060, "CS", "MR\t "),
        ODD(0x00080060, "CS", "   "),
        {0x00280002, NULL, NULL, 0},
        ODD(0x00280002, "US", ""),
        ODD(0x00280002, "US", "\1\0\2\0"),
        ODD(0x00280002, "SS", "\1\0"),
        ODD(0x00280002, "UL", "\1\0\0\0"),
        ODD(0x00280002, "UN", "\1\0"),
        {0x00280004, NULL, NULL, 0},
        ODD(0x00280004, "CS", "YBR_FULL_422"),
        ODD(0x00280004, "SH", "RGB "),
        ODD(0x00280004, "CS", "MONOCHROME2 MONOCHROME2 "),
        ODD(0x00280004, "CS", "RGB"),
        {0x00280006, NULL, NULL, 0},
        ODD(0x00280006, "US", "\1"),
        {0x00280008, NULL, NULL, 0},
        ODD(0x00280008, "IS", ""),
        ODD(0x00280008, "IS", " 7"),
        ODD(0x00280008, "IS", "7 "),
        ODD(0x00280008, "IS", "+7"),
        ODD(0x00280008, "IS", "-7"),
        ODD(0x00280008, "IS", "7\\8 "),
        ODD(0x00280008, "IS", "0x10"),
        ODD(0x00280008, "IS", "010 "),
        ODD(0x00280008, "IS", "7\0"),
        ODD(0x00280008, "IS", "7.5 "),
        ODD(0x00280008, "IS", "4294967296"),
        ODD(0x00280008, "IS", "1 2 "),
        ODD(0x00280008, "US", "\7\0"),
        ODD(0x00280008, "DS", "7 "),
        {0x00280010, NULL, NULL, 0},
        ODD(0x00280010, "OW", "\7\0"),
        ODD(0x00280010, "US", "\xff\xff"),
        {0x00280103, NULL, NULL, 0},
        {0x00280120, NULL, NULL, 0},
        ODD(0x00280120, "US", "\x30\xf8"),
        ODD(0x00280120, "SS", "\1\0\2\0"),
        ODD(0x00280121, "SS", "\xff\xff"),
    };
    int plain = 0;
    for (size_t f = 0; f < COUNT_OF(forms); f++) {
        for (size_t i = 0; i < COUNT_OF(odds); i++) {
            struct dicom_bytes d;
            make_header(&d, forms[f], syntax_of(forms[f]), &odds[i]);
            plain += is_equal(&d, odds[i].value ? odds[i].value : "absent", i);
            free_dicom(&d);
        }
    }
    assert_in_range(plain, 3 * 12, 3 * 28);
}

/* Whatever one byte of a header is changed to. */
TEST(damaged_headers)
{
    static const uint8_t values[] = {0x00, 0x01, 0x08, 0x20, 0x28, 0x30, 0x41, 0x5c, 0x7f, 0x80, 0xfe, 0xff};
    int plain = 0, all = 0;
    for (size_t f = 0; f < COUNT_OF(forms); f++) {
        struct dicom_bytes d;
        make_header(&d, forms[f], syntax_of(forms[f]), NULL);
        for (size_t at = 128; at + 4 < d.all.size; at++) {
            const uint8_t was = d.all.data[at];
            for (size_t v = 0; v < COUNT_OF(values); v++, all++) {
                d.all.data[at] = values[v];
                plain += is_equal(&d, "byte", at);
            }
            d.all.data[at] = was;
        }
        free_dicom(&d);
    }
    assert_in_range(plain, all / 10, all);
}

/* What makes a header one that DCMTK must read. */
TEST(headers_that_are_not_plain)
{
    struct dicom_bytes d = {.form = explicit_little};
    put_us(&d, 0x00280010, 1); /* no meta header */
    put_head(&d, TSR_TAG_PIXEL_DATA, "OW", 0);
    assert_false(is_equal(&d, "no meta header", 0));
    free_dicom(&d);
    static const uint32_t tags[] = {0x00280010, 0x00280011}; /* twice the same, and one before a lower one */
    for (size_t i = 0; i < COUNT_OF(tags); i++) {
        d = (struct dicom_bytes){.form = explicit_little};
        put_meta(&d, syntax_of(explicit_little));
        put_us(&d, tags[i], 1);
        put_us(&d, 0x00280010, 2);
        put_head(&d, TSR_TAG_PIXEL_DATA, "OW", 0);
        assert_false(is_equal(&d, "order", i));
        free_dicom(&d);
    }
    d = (struct dicom_bytes){.form = explicit_little};
    put_meta(&d, syntax_of(explicit_little));
    put_head(&d, 0x00081140, "UN", TSR_UNDEFINED_LENGTH);
    put_head(&d, TAG_SEQUENCE_END, "", 0);
    put_us(&d, 0x00280010, 2);
    put_head(&d, TSR_TAG_PIXEL_DATA, "OW", 0);
    assert_false(is_equal(&d, "unknown sequence", 0));
    free_dicom(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_headers),   cmocka_unit_test(syntaxes),
        cmocka_unit_test(data_sets),       cmocka_unit_test(odd_values),
        cmocka_unit_test(damaged_headers), cmocka_unit_test(headers_that_are_not_plain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
