/* io/formats/dicom/dicom_describe.c: what is read of a header is what DCMTK reads, if DCMTK reads it to its pixel data.
 */
#include <ftw.h>
#include <sys/stat.h>

#include "witness/dcmtk_witness.h"
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

/* Whether the meta header has another length than it states, where DCMTK takes elements of the data set for the meta
 * header's or the other way round; or a UID with a zero or a backslash in it, of which DCMTK takes one part at one
 * place and all at another. */
static bool has_damaged_meta(const struct dicom_bytes *d, const struct tsr_dicom_scan *scan)
{
    struct tsr_dicom_elements meta = {d->all.data, scan->meta_start, scan->meta_end, explicit_little};
    struct tsr_dicom_element e;
    while (tsr_dicom_next_element(&meta, &e)) {
        const uint8_t *const value = d->all.data + e.value;
        if (e.tag == TSR_TAG_META_LENGTH && e.length == 4 && e.end + tsr_dicom_u32(value, false) != scan->meta_end)
            return true;
        if (e.tag == TSR_TAG_TRANSFER_SYNTAX && e.length > 2 &&
            (memchr(value, '\\', e.length) || memchr(value, '\0', e.length - 1)))
            return true;
    }
    return false;
}

static void show(const char *reader, const struct tsr_dicom *d)
{
    fprintf(stderr,
            "%s: '%s', %ld x %ld, %ld frames, %ld samples, planar %ld, bits %ld %ld %ld %ld, padding %ld %ld, '%s' "
            "'%s'\n",
            reader, d->syntax_uid, d->columns, d->rows, d->frames, d->samples, d->planar, d->bits_allocated,
            d->bits_stored, d->high_bit, d->representation, d->padding, d->padding_limit, d->photometric, d->modality);
}

/* Whether a reader has found fewer elements than another. */
static bool lacks(const struct tsr_dicom *one, const struct tsr_dicom *other)
{
    return (one->columns < 0 && other->columns >= 0) || (one->rows < 0 && other->rows >= 0) ||
           (one->frames < 0 && other->frames >= 0) || (one->samples < 0 && other->samples >= 0) ||
           (one->bits_allocated < 0 && other->bits_allocated >= 0);
}

static const char numeric_vrs[] = "ATFDFLOBODOFOLOVOWSLSSSVULUNUSUV";

/* A word in a VR of numbers, or of bytes, is none. DCMTK writes the number in digits. */
static void forget_digits(const struct tsr_dicom_element *word, char text[20])
{
    for (const char *vr = numeric_vrs; *vr; vr += 2)
        if (memcmp(vr, word->vr, 2) == 0) memset(text, 0, 20);
}

/* Compares both readers. Returns whether DCMTK reads the header, in the form of the scan and to the pixel data. */
static bool is_equal(const struct dicom_bytes *d, const char *what, size_t at)
{
    struct tsr_dicom_scan scan;
    struct tsr_dicom own, full;
    struct tsr_error error, why;
    uint64_t offset = 0;
    if (scan_bytes(d->all.data, d->all.size, &scan, &error) != TSR_OK || scan.is_deflated) return false;
    if (scan.pixels.tag != TSR_TAG_PIXEL_DATA) return false; /* DCMTK reads up to this one */
    const enum tsr_status status = tsr_dicom_describe(d->all.data, &scan, false, &own, &error);
    if (dcmtk_describe(d->all.data, scan.pixels.value, &full, &offset, &why) != TSR_OK) return false;
    if (offset != scan.pixels.value || full.explicit_vr != scan.form.explicit_vr ||
        full.big_endian != scan.form.big_endian)
        return false;
    if (has_damaged_meta(d, &scan)) return false;
    forget_digits(&scan.fact[TSR_FACT_MODALITY], full.modality);
    forget_digits(&scan.fact[TSR_FACT_PHOTOMETRIC], full.photometric);
    /* Only the dictionary knows what is a sequence. In one that is damaged, DCMTK loses elements. */
    if (!scan.form.explicit_vr && (status != TSR_OK || lacks(&full, &own))) return true;
    expect(status == TSR_OK, "%s %zu: %s", what, at, error.text);
    full.has_big_pixels = own.has_big_pixels; /* of GE's syntax, which the witness does not know */
    if (memcmp(&own, &full, sizeof own) != 0) {
        show("read", &own);
        show("DCMTK reads", &full);
        fail_msg("%s %zu", what, at);
    }
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
    struct tsr_dicom own, full;
    struct tsr_error error;
    uint64_t offset;
    const size_t start = make_header(&d, explicit_little, "1.2.840.10008.1.2.1.99", NULL);
    struct tsr_input *const input = must(tsr_input_from_memory(d.all.data, d.all.size, "it"));
    assert_int_equal(tsr_dicom_scan_dataset(input, start, &scan, &error), TSR_OK);
    scan.meta_end = start;
    assert_int_equal(tsr_dicom_describe(d.all.data, &scan, true, &own, &error), TSR_OK);
    assert_int_equal(dcmtk_describe_dataset(d.all.data + start, scan.pixels.value - start, &full, &offset, &error),
                     TSR_OK);
    assert_int_equal(offset, scan.pixels.value - start);
    assert_memory_equal(&own, &full, sizeof own);
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
    size_t read = 0;
    for (size_t f = 0; f < COUNT_OF(forms); f++) {
        for (size_t i = 0; i < COUNT_OF(odds); i++) {
            struct dicom_bytes d;
            make_header(&d, forms[f], syntax_of(forms[f]), &odds[i]);
            read += is_equal(&d, odds[i].value ? odds[i].value : "absent", i);
            free_dicom(&d);
        }
    }
    assert_int_equal(read, COUNT_OF(forms) * COUNT_OF(odds));
}

/* Numbers and words of every VR. */
TEST(every_vr)
{
    static const char texts[] = "AEASCSDADSDTISLOLTPNSHSTTMUCUIURUT";
    static const uint32_t tags[] = {0x00080060, 0x00280002, 0x00280004, 0x00280008, 0x00280010, 0x00280120, 0x00280121};
    static const struct odd values[] = {
        ODD(0, "", "\7\0\0\0\0\0\0\0"), ODD(0, "", "\0\0\0\7"), ODD(0, "", "\xff\xff"), ODD(0, "", "7 "),
        ODD(0, "", " 12\\3 "),          ODD(0, "", "RGB\\MR"),  ODD(0, "", "-80\0"),    ODD(0, "", "")};
    char vrs[sizeof numeric_vrs + sizeof texts];
    size_t read = 0, all = 0;
    snprintf(vrs, sizeof vrs, "%s%s", numeric_vrs, texts);
    for (size_t f = 0; f < COUNT_OF(forms); f++) {
        for (size_t v = 0; vrs[2 * v]; v++) {
            for (size_t i = 0; i < COUNT_OF(tags) * COUNT_OF(values); i++, all++) {
                const char vr[] = {vrs[2 * v], vrs[2 * v + 1], '\0'};
                struct odd odd = values[i % COUNT_OF(values)];
                struct dicom_bytes d;
                odd.tag = tags[i / COUNT_OF(values)];
                odd.vr = vr;
                make_header(&d, forms[f], syntax_of(forms[f]), &odd);
                read += is_equal(&d, vr, i);
                free_dicom(&d);
            }
        }
    }
    assert_int_equal(read, all);
}

/* Whatever one byte of a header is changed to. */
TEST(damaged_headers)
{
    static const uint8_t values[] = {0x00, 0x01, 0x08, 0x20, 0x28, 0x30, 0x41, 0x5c, 0x7f, 0x80, 0xfe, 0xff};
    int read = 0, all = 0;
    for (size_t f = 0; f < COUNT_OF(forms); f++) {
        struct dicom_bytes d;
        make_header(&d, forms[f], syntax_of(forms[f]), NULL);
        for (size_t at = 128; at + 4 < d.all.size; at++) {
            const uint8_t was = d.all.data[at];
            for (size_t v = 0; v < COUNT_OF(values); v++, all++) {
                d.all.data[at] = values[v];
                read += is_equal(&d, "byte", at);
            }
            d.all.data[at] = was;
        }
        free_dicom(&d);
    }
    assert_in_range(read, all / 10, all);
}

/* Headers that break rules, which all readers take. */
TEST(headers_that_break_rules)
{
    struct dicom_bytes d = {.form = explicit_little};
    put_us(&d, 0x00280010, 1); /* no meta header */
    put_head(&d, TSR_TAG_PIXEL_DATA, "OW", 0);
    assert_true(is_equal(&d, "no meta header", 0));
    free_dicom(&d);
    static const uint32_t tags[] = {0x00280010, 0x00280011}; /* twice the same, and one before a lower one */
    for (size_t i = 0; i < COUNT_OF(tags); i++) {
        d = (struct dicom_bytes){.form = explicit_little};
        put_meta(&d, syntax_of(explicit_little));
        put_us(&d, tags[i], 1);
        put_us(&d, 0x00280010, 2);
        put_head(&d, TSR_TAG_PIXEL_DATA, "OW", 0);
        assert_true(is_equal(&d, "order", i));
        free_dicom(&d);
    }
    d = (struct dicom_bytes){.form = explicit_little};
    put_meta(&d, syntax_of(explicit_little));
    put_head(&d, 0x00081140, "UN", TSR_UNDEFINED_LENGTH);
    put_head(&d, TAG_SEQUENCE_END, "", 0);
    put_us(&d, 0x00280010, 2);
    put_head(&d, TSR_TAG_PIXEL_DATA, "OW", 0);
    assert_true(is_equal(&d, "unknown sequence", 0));
    free_dicom(&d);
}

/* Readers stop at the pixel data, or at a higher tag. */
TEST(headers_in_two_ways)
{
    struct dicom_bytes d = {.form = explicit_little};
    struct tsr_dicom_scan scan;
    struct tsr_dicom own;
    struct tsr_error error;
    put_meta(&d, syntax_of(explicit_little));
    put_us(&d, 0x00280010, 2);
    put_text(&d, 0x7fe10010, "LO", "SOMEONE");
    put_head(&d, TSR_TAG_PIXEL_DATA, "OW", 0);
    assert_int_equal(scan_bytes(d.all.data, d.all.size, &scan, &error), TSR_OK);
    assert_int_equal(tsr_dicom_describe(d.all.data, &scan, false, &own, &error), TSR_ERROR_CORRUPT);
    assert_non_null(strstr(error.text, "in two ways"));
    assert_false(is_equal(&d, "a higher tag", 0));
    free_dicom(&d);
}

/* ---- Files -------------------------------------------------------------------------------------------------- */

static int files_read;

static int compare_file(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    struct dicom_bytes d = {.form = explicit_little};
    uint8_t head[132] = {0};
    (void)place;
    FILE *const file = kind == FTW_F && status->st_size > 132 && status->st_size < 1 << 28 ? fopen(path, "rb") : NULL;
    if (!file) return 0;
    const size_t got = fread(head, 1, sizeof head, file);
    if (got == sizeof head && (memcmp(head + 128, "DICM", 4) == 0 || head[0] == 8)) {
        d.all.size = (size_t)status->st_size;
        d.all.data = must(malloc(d.all.size));
        rewind(file);
        assert_int_equal(fread(d.all.data, 1, d.all.size, file), d.all.size);
        files_read += is_equal(&d, path, 0);
        free_dicom(&d);
    }
    fclose(file);
    return 0;
}

static char **folders; /* of files; those that do not exist count as empty */

TEST(files)
{
    for (char **at = folders; *at; at++) nftw(*at, compare_file, 16, FTW_PHYS);
    printf("%d files\n", files_read);
    assert_true(files_read > 0);
}

/* usage: test_dicom_describe [FOLDER...] */
/* Which forms transfer syntaxes have, and how words of their pixel data are ordered. */
TEST(native_syntaxes)
{
    static const struct {
        const char *uid;
        struct tsr_dicom_form form;
        bool is_good, has_big_pixels;
    } cases[] = {{"1.2.840.10008.1.2", {false, false}, true, false},
                 {"1.2.840.10008.1.2.1", {true, false}, true, false},
                 {"1.2.840.10008.1.2.2", {true, true}, true, true},
                 {"1.2.840.113619.5.2", {false, false}, true, true},
                 {"1.2.840.113619.5.2", {false, true}, true, true},
                 {"1.2.840.113619.5.2", {true, false}, false, true},
                 {"1.2.840.10008.1.20", {false, false}, true, false},
                 {"1.2.840.10008.1.20", {true, false}, false, false},
                 {"1.3.46.670589.33.1.4.1", {true, false}, true, false},
                 {"1.3.46.670589.33.1.4.1", {false, false}, false, false}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct dicom_bytes d;
        struct tsr_dicom_scan scan;
        struct tsr_dicom dicom;
        struct tsr_error error = {0};
        make_header(&d, cases[i].form, cases[i].uid, NULL);
        assert_int_equal(scan_bytes(d.all.data, d.all.size, &scan, &error), TSR_OK);
        const enum tsr_status status = tsr_dicom_describe(d.all.data, &scan, false, &dicom, &error);
        expect((status == TSR_OK) == cases[i].is_good, "case %zu: %s", i, error.text);
        expect(dicom.syntax == TSR_DICOM_NATIVE, "case %zu: syntax %d", i, dicom.syntax);
        expect(dicom.has_big_pixels == cases[i].has_big_pixels, "case %zu: the other order", i);
        expect(dicom.columns == 514 && dicom.rows == 513, "case %zu: %ld x %ld", i, dicom.columns, dicom.rows);
        free_dicom(&d);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest of_files[] = {cmocka_unit_test(files)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_headers),
        cmocka_unit_test(syntaxes),
        cmocka_unit_test(data_sets),
        cmocka_unit_test(odd_values),
        cmocka_unit_test(every_vr),
        cmocka_unit_test(damaged_headers),
        cmocka_unit_test(headers_that_break_rules),
        cmocka_unit_test(headers_in_two_ways),
        cmocka_unit_test(native_syntaxes),
    };
    folders = argv + 1;
    return argc > 1 ? cmocka_run_group_tests(of_files, NULL, NULL) : cmocka_run_group_tests(tests, NULL, NULL);
}
