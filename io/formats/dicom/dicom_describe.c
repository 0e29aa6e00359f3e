/* What a plain header says of the samples. PS3.3, C.7.6.3; PS3.5, 6.2. */
#include <string.h>

#include "dicom_elements.h"
#include "dicom_file.h"

/* Whether the element may be read as one of this VR. Where the VR is implicit, it is the dictionary's. */
static bool has_vr(const struct tsr_dicom_element *element, const char *vr)
{
    return element->vr[0] == '\0' || strcmp(element->vr, vr) == 0;
}

/* A number of two bytes; -1: absent. Padding may have a sign, and is taken without it. Returns false if the element has
 * another form. */
static bool take_number(const uint8_t *bytes, const struct tsr_dicom_element *element, bool big_endian, long *number)
{
    const bool is_padding = element->tag == TSR_TAG_PADDING || element->tag == TSR_TAG_PADDING_LIMIT;
    *number = -1;
    if (element->tag == 0) return true;
    if ((!has_vr(element, "US") && !(is_padding && has_vr(element, "SS"))) || element->length != 2) return false;
    const uint8_t *const value = bytes + element->value;
    *number = big_endian ? value[0] << 8 | value[1] : value[1] << 8 | value[0];
    return true;
}

/* Where a text begins and ends between its spaces. */
static void trim(const uint8_t *bytes, const struct tsr_dicom_element *element, size_t *start, size_t *end)
{
    *start = element->value;
    *end = element->end;
    while (*start < *end && bytes[*start] == ' ') ++*start;
    while (*start < *end && bytes[*end - 1] == ' ') --*end;
}

/* A number in decimal digits. */
static bool take_decimal(const uint8_t *bytes, const struct tsr_dicom_element *element, long *number)
{
    enum { DIGITS = 9 };
    size_t at, end;
    *number = -1;
    if (element->tag == 0) return true;
    if (!has_vr(element, "IS") || element->length % 2 != 0) return false;
    trim(bytes, element, &at, &end);
    if (at == end || end - at > DIGITS) return false;
    for (*number = 0; at < end; at++) {
        if (bytes[at] < '0' || bytes[at] > '9') return false;
        *number = 10 * *number + (bytes[at] - '0');
    }
    return true;
}

/* A word of capitals, digits, spaces and underscores. */
static bool take_word(const uint8_t *bytes, const struct tsr_dicom_element *element, char word[20])
{
    enum { MOST = 16 };
    size_t start, end;
    word[0] = '\0';
    if (element->tag == 0) return true;
    if (!has_vr(element, "CS") || element->length % 2 != 0) return false;
    trim(bytes, element, &start, &end);
    if (end - start > MOST) return false;
    for (size_t at = start; at < end; at++) {
        const uint8_t c = bytes[at];
        if (!(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') && c != ' ' && c != '_') return false;
    }
    memcpy(word, bytes + start, end - start);
    word[end - start] = '\0';
    return true;
}

/* Whether the data set has the form that its transfer syntax demands. */
static bool has_form_of(const char *uid, struct tsr_dicom_form form)
{
    const bool is_implicit = strcmp(uid, "1.2.840.10008.1.2") == 0, is_big = strcmp(uid, "1.2.840.10008.1.2.2") == 0;
    return form.explicit_vr == !is_implicit && form.big_endian == is_big;
}

bool tsr_dicom_describe_plain(const uint8_t *bytes, const struct tsr_dicom_scan *scan, bool is_dataset,
                              struct tsr_dicom *dicom)
{
    const struct tsr_dicom_element *const fact = scan->fact;
    const struct {
        enum tsr_dicom_fact fact;
        long *number;
    } numbers[] = {{TSR_FACT_SAMPLES, &dicom->samples},
                   {TSR_FACT_PLANAR, &dicom->planar},
                   {TSR_FACT_ROWS, &dicom->rows},
                   {TSR_FACT_COLUMNS, &dicom->columns},
                   {TSR_FACT_BITS_ALLOCATED, &dicom->bits_allocated},
                   {TSR_FACT_BITS_STORED, &dicom->bits_stored},
                   {TSR_FACT_HIGH_BIT, &dicom->high_bit},
                   {TSR_FACT_REPRESENTATION, &dicom->representation},
                   {TSR_FACT_PADDING, &dicom->padding},
                   {TSR_FACT_PADDING_LIMIT, &dicom->padding_limit}};
    memset(dicom, 0, sizeof *dicom);
    if (!scan->is_plain) return false;
    dicom->explicit_vr = scan->form.explicit_vr;
    dicom->big_endian = scan->form.big_endian;
    dicom->value_offset = scan->pixels.value - (is_dataset ? scan->meta_end : 0);
    if (!is_dataset) {
        const char *const uid = scan->syntax_uid;
        if (uid[0] == '\0' || uid[strspn(uid, "0123456789.")] != '\0' || !has_form_of(uid, scan->form)) return false;
        memcpy(dicom->syntax_uid, scan->syntax_uid, sizeof dicom->syntax_uid);
        dicom->syntax = tsr_dicom_syntax_of(scan->syntax_uid);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (!take_number(bytes, &fact[numbers[i].fact], dicom->big_endian, numbers[i].number)) return false;
    return take_decimal(bytes, &fact[TSR_FACT_FRAMES], &dicom->frames) &&
           take_word(bytes, &fact[TSR_FACT_PHOTOMETRIC], dicom->photometric) &&
           take_word(bytes, &fact[TSR_FACT_MODALITY], dicom->modality);
}

enum tsr_dicom_syntax tsr_dicom_syntax_of(const char *uid)
{
    static const struct {
        const char *uid;
        enum tsr_dicom_syntax syntax;
    } syntaxes[] = {
        {"1.2.840.10008.1.2", TSR_DICOM_NATIVE},        {"1.2.840.10008.1.2.1", TSR_DICOM_NATIVE},
        {"1.2.840.10008.1.2.2", TSR_DICOM_NATIVE},      {"1.2.840.10008.1.2.1.99", TSR_DICOM_DEFLATED},
        {"1.2.840.10008.1.2.5", TSR_DICOM_RLE},         {"1.2.840.10008.1.2.4.57", TSR_DICOM_JPEG_LOSSLESS},
        {"1.2.840.10008.1.2.4.70", TSR_DICOM_JPEG_SV1}, {"1.2.840.10008.1.2.4.80", TSR_DICOM_JPEG_LS},
        {"1.2.840.10008.1.2.4.81", TSR_DICOM_JPEG_LS},  {"1.2.840.10008.1.2.4.90", TSR_DICOM_JPEG_2000},
        {TSR_JPEG_2000_UID, TSR_DICOM_JPEG_2000},       {"1.2.840.10008.1.2.4.201", TSR_DICOM_HTJ2K},
        {"1.2.840.10008.1.2.4.202", TSR_DICOM_HTJ2K},   {"1.2.840.10008.1.2.8.1", TSR_DICOM_DEFLATED_FRAMES}};
    if (uid[0] == '\0') return TSR_DICOM_NATIVE;
    for (size_t i = 0; i < sizeof syntaxes / sizeof syntaxes[0]; i++)
        if (strcmp(syntaxes[i].uid, uid) == 0) return syntaxes[i].syntax;
    return TSR_DICOM_OTHER;
}
