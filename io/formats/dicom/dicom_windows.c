/* The windows of a DICOM file. PS3.3, C.7.6.3.1 and C.11.2; decimal strings: PS3.5, 6.2. A file's bytes may depend on
 * the stored values inside a window (--quality). They come of additions, multiplications and divisions of doubles
 * alone, each rounded by itself, so that they are the same on every machine; the build must not contract them. */
#include <math.h>
#include <string.h>

#include "dicom_elements.h"
#include "dicom_file.h"
#include "io/formats/source.h"

/* A decimal string's number, without the caller's locale. False: it is none. */
static bool read_decimal(const char *text, size_t length, double *number)
{
    double value = 0, scale = 1;
    bool negative = false, has_digits = false, is_fraction = false;
    int exponent = 0, sign = 1;
    size_t at = 0;
    while (at < length && text[at] == ' ') at++;
    while (length > at && (text[length - 1] == ' ' || text[length - 1] == '\0')) length--;
    if (at < length && (text[at] == '-' || text[at] == '+')) negative = text[at++] == '-';
    for (; at < length && (text[at] == '.' || (text[at] >= '0' && text[at] <= '9')); at++) {
        if (text[at] == '.' && is_fraction) return false;
        if (text[at] == '.') {
            is_fraction = true;
            continue;
        }
        has_digits = true;
        value = 10 * value + (text[at] - '0');
        if (is_fraction) scale *= 10;
    }
    if (at < length && (text[at] == 'e' || text[at] == 'E')) {
        at++;
        if (at < length && (text[at] == '-' || text[at] == '+')) sign = text[at++] == '-' ? -1 : 1;
        if (at == length) return false;
        for (; at < length && text[at] >= '0' && text[at] <= '9' && exponent < 100; at++)
            exponent = 10 * exponent + (text[at] - '0');
    }
    value /= scale;
    for (; exponent > 0; exponent--) value = sign > 0 ? value * 10 : value / 10;
    *number = negative ? -value : value;
    return has_digits && at == length && isfinite(*number);
}

/* Value number k of an element, from 0. False: it has not so many, or is no decimal string. */
static bool read_value(const uint8_t *bytes, const struct tsr_dicom_element *element, uint32_t k, double *number)
{
    if (element->tag == 0 || element->length == TSR_UNDEFINED_LENGTH) return false;
    if (element->vr[0] && strcmp(element->vr, "DS") != 0) return false;
    const char *text = (const char *)bytes + element->value, *const end = (const char *)bytes + element->end;
    for (; k > 0; k--) {
        text = memchr(text, '\\', (size_t)(end - text));
        if (!text) return false;
        text++;
    }
    const char *const last = memchr(text, '\\', (size_t)(end - text));
    return read_decimal(text, (size_t)((last ? last : end) - text), number);
}

static int32_t to_stored(double value)
{
    return value < -2e9 ? -2000000000 : value > 2e9 ? 2000000000 : (int32_t)value;
}

/* Values x with center - 0.5 - (width - 1)/2 < x <= center - 0.5 + (width - 1)/2 are inside. */
static void add_window(struct tsr_source *source, double slope, double intercept, double center, double width)
{
    if (source->windows == TSR_MEASURED_WINDOWS || width < 1) return;
    const double half = (width - 1) / 2, low = (center - 0.5 - half - intercept) / slope,
                 high = (center - 0.5 + half - intercept) / slope;
    const double first = slope > 0 ? floor(low) + 1 : ceil(high), last = slope > 0 ? floor(high) : ceil(low) - 1;
    source->window[source->windows++] = (struct tsr_value_window){center, width, {to_stored(first), to_stored(last)}};
}

void tsr_dicom_tell_windows(const uint8_t *bytes, const struct tsr_dicom_scan *scan, const struct tsr_dicom *dicom,
                            struct tsr_source *source)
{
    static const double of_ct[2][2] = {{40, 400}, {-600, 1500}};
    double slope = 1, intercept = 0, center, width;
    const bool has_slope = scan->fact[TSR_FACT_SLOPE].tag || scan->fact[TSR_FACT_INTERCEPT].tag;
    source->windows = 0;
    source->slope = 0;
    if (dicom->samples > 1) return;
    if (has_slope && (!read_value(bytes, &scan->fact[TSR_FACT_SLOPE], 0, &slope) ||
                      !read_value(bytes, &scan->fact[TSR_FACT_INTERCEPT], 0, &intercept) || slope == 0))
        return;
    source->slope = fabs(slope);
    for (uint32_t k = 0; read_value(bytes, &scan->fact[TSR_FACT_CENTER], k, &center) &&
                         read_value(bytes, &scan->fact[TSR_FACT_WIDTH], k, &width);
         k++)
        add_window(source, slope, intercept, center, width);
    if (source->windows > 0 || strcmp(dicom->modality, "CT") != 0 || !has_slope) return;
    for (int k = 0; k < 2; k++) add_window(source, slope, intercept, of_ct[k][0], of_ct[k][1]);
}
