/* What a scanned header says of the samples. PS3.3, C.7.6.3; PS3.5, 6.2. Values of other VRs than the standard's are
 * read as DCMTK reads them. */
#include <stdlib.h>
#include <string.h>

#include "io/dicom/dicom_elements.h"
#include "dicom_file.h"

static bool is_listed(const char *vrs, const char *vr)
{
    for (; *vrs; vrs += 2)
        if (memcmp(vrs, vr, 2) == 0) return true;
    return false;
}

/* A text: the first value of an element, without what pads it. Where spaces before it do not count (PS3.5, 6.2), they
 * are left out, too. Returns its length. Elements of other VRs have none. */
static size_t find_text(const uint8_t *bytes, const struct tsr_dicom_element *element, const char **text)
{
    const char *const vr = element->vr[0] ? element->vr : "CS";
    const char *start = (const char *)bytes + element->value, *end = (const char *)bytes + element->end;
    const bool is_trimmed = is_listed("AECSDSISLOSH", vr), is_whole = is_listed("LTSTURUT", vr);
    *text = start;
    if (element->length == TSR_UNDEFINED_LENGTH) return 0;
    if (!is_trimmed && !is_whole && !is_listed("ASDADTPNTMUCUI", vr)) return 0;
    const char *const next = is_whole ? NULL : memchr(start, '\\', (size_t)(end - start));
    if (next) end = next;
    while (is_trimmed && start < end && *start == ' ') start++;
    while (end > start && (end[-1] == ' ' || end[-1] == '\0')) end--;
    *text = start;
    return (size_t)(end - start);
}

/* The number that a text begins with. */
static long read_integer(const char *text, size_t length)
{
    enum { DIGITS = 32 }; /* enough for any number of 32 bits and zeros before it */
    char digits[DIGITS + 1];
    while (length > 0 && (*text == ' ' || (*text >= '\t' && *text <= '\r'))) text++, length--;
    if (length > DIGITS) length = DIGITS;
    memcpy(digits, text, length);
    digits[length] = '\0';
    char *end;
    const long number = (long)(int32_t)strtoll(digits, &end, 10);
    return end == digits ? -1 : number;
}

/* A number; -1: it is absent, or no number. Words of padding may have a sign, and are taken without it. usual: the VR
 * of an element of this tag. */
static long read_number(const uint8_t *bytes, const struct tsr_dicom_element *element, bool big_endian,
                        const char *usual)
{
    const bool is_padding = element->tag == TSR_TAG_PADDING || element->tag == TSR_TAG_PADDING_LIMIT;
    const char *const vr = element->vr[0] ? element->vr : usual;
    const uint8_t *const value = bytes + element->value;
    const char *text;
    if (element->tag == 0 || element->length == TSR_UNDEFINED_LENGTH) return -1;
    if (strcmp(vr, "US") == 0 || strcmp(vr, "OW") == 0 || (is_padding && strcmp(vr, "SS") == 0))
        return element->length >= 2 ? (long)tsr_dicom_u16(value, big_endian) : -1;
    if (is_padding) return -1;
    if (strcmp(vr, "SL") == 0) return element->length >= 4 ? (long)(int32_t)tsr_dicom_u32(value, big_endian) : -1;
    if (strcmp(vr, "IS") != 0) return -1;
    const size_t length = find_text(bytes, element, &text);
    return read_integer(text, length);
}

static void read_word(const uint8_t *bytes, const struct tsr_dicom_element *element, char word[20])
{
    const char *text;
    size_t length = element->tag ? find_text(bytes, element, &text) : 0;
    if (length > 19) length = 19;
    if (length > 0) memcpy(word, text, length);
    while (length > 0 && word[length - 1] == ' ') length--;
    word[length] = '\0';
}

/* Whether the data set has the form that its transfer syntax demands. Of those that are not coded, any will do. */
static bool has_form_of(const struct tsr_dicom *dicom)
{
    const bool is_implicit = tsr_dicom_is_implicit(dicom->syntax_uid),
               is_big = strcmp(dicom->syntax_uid, "1.2.840.10008.1.2.2") == 0,
               is_any = strcmp(dicom->syntax_uid, TSR_GE_UID) == 0; /* order of bytes */
    if (dicom->syntax_uid[0] == '\0' || dicom->syntax == TSR_DICOM_OTHER || dicom->syntax == TSR_DICOM_HTJ2K ||
        dicom->syntax == TSR_DICOM_DEFLATED_FRAMES)
        return true;
    return dicom->explicit_vr == !is_implicit && (dicom->big_endian == is_big || is_any);
}

enum tsr_status tsr_dicom_describe(const uint8_t *bytes, const struct tsr_dicom_scan *scan, bool is_dataset,
                                   struct tsr_dicom *dicom, struct tsr_error *error)
{
    const struct tsr_dicom_element *const fact = scan->fact;
    const struct {
        enum tsr_dicom_fact fact;
        long *number;
    } numbers[] = {{TSR_FACT_SAMPLES, &dicom->samples},
                   {TSR_FACT_PLANAR, &dicom->planar},
                   {TSR_FACT_FRAMES, &dicom->frames},
                   {TSR_FACT_ROWS, &dicom->rows},
                   {TSR_FACT_COLUMNS, &dicom->columns},
                   {TSR_FACT_BITS_ALLOCATED, &dicom->bits_allocated},
                   {TSR_FACT_BITS_STORED, &dicom->bits_stored},
                   {TSR_FACT_HIGH_BIT, &dicom->high_bit},
                   {TSR_FACT_REPRESENTATION, &dicom->representation},
                   {TSR_FACT_PADDING, &dicom->padding},
                   {TSR_FACT_PADDING_LIMIT, &dicom->padding_limit}};
    memset(dicom, 0, sizeof *dicom);
    dicom->explicit_vr = scan->form.explicit_vr;
    dicom->big_endian = scan->form.big_endian;
    if (!is_dataset) {
        memcpy(dicom->syntax_uid, scan->syntax_uid, sizeof dicom->syntax_uid);
        dicom->syntax = tsr_dicom_syntax_of(scan->syntax_uid);
    }
    dicom->has_big_pixels = dicom->big_endian || strcmp(dicom->syntax_uid, TSR_GE_UID) == 0;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        *numbers[i].number = read_number(bytes, &fact[numbers[i].fact], dicom->big_endian,
                                         numbers[i].fact == TSR_FACT_FRAMES ? "IS" : "US");
    read_word(bytes, &fact[TSR_FACT_PHOTOMETRIC], dicom->photometric);
    read_word(bytes, &fact[TSR_FACT_MODALITY], dicom->modality);
    if (scan->is_two_ways || (!is_dataset && !has_form_of(dicom)))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "its header can be read in two ways");
    return TSR_OK;
}

enum tsr_dicom_syntax tsr_dicom_syntax_of(const char *uid)
{
    static const struct {
        const char *uid;
        enum tsr_dicom_syntax syntax;
    } syntaxes[] = {{"1.2.840.10008.1.2", TSR_DICOM_NATIVE},
                    {"1.2.840.10008.1.2.1", TSR_DICOM_NATIVE},
                    {"1.2.840.10008.1.2.2", TSR_DICOM_NATIVE},
                    {"1.2.840.10008.1.2.1.99", TSR_DICOM_DEFLATED},
                    {"1.2.840.10008.1.2.5", TSR_DICOM_RLE},
                    {"1.2.840.10008.1.2.4.57", TSR_DICOM_JPEG_LOSSLESS},
                    {"1.2.840.10008.1.2.4.70", TSR_DICOM_JPEG_SV1},
                    {"1.2.840.10008.1.2.4.80", TSR_DICOM_JPEG_LS},
                    {"1.2.840.10008.1.2.4.81", TSR_DICOM_JPEG_LS},
                    {"1.2.840.10008.1.2.4.90", TSR_DICOM_JPEG_2000},
                    {TSR_JPEG_2000_UID, TSR_DICOM_JPEG_2000},
                    {"1.2.840.10008.1.2.4.201", TSR_DICOM_HTJ2K},
                    {"1.2.840.10008.1.2.4.202", TSR_DICOM_HTJ2K},
                    {"1.2.840.10008.1.2.8.1", TSR_DICOM_DEFLATED_FRAMES},
                    {"1.2.840.10008.1.2.1.98", TSR_DICOM_UNCOMPRESSED_FRAMES},
                    {TSR_GE_UID, TSR_DICOM_NATIVE},
                    {TSR_PAPYRUS_UID, TSR_DICOM_NATIVE},
                    {TSR_PHILIPS_UID, TSR_DICOM_NATIVE}};
    if (uid[0] == '\0') return TSR_DICOM_NATIVE;
    for (size_t i = 0; i < sizeof syntaxes / sizeof syntaxes[0]; i++)
        if (strcmp(syntaxes[i].uid, uid) == 0) return syntaxes[i].syntax;
    return TSR_DICOM_OTHER;
}
