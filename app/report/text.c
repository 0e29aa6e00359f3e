/* Texts and numbers as HTML, SVG and JSON take them. See text.h. */
#include <math.h>
#include <string.h>

#include "text.h"

/* The number of bytes of the UTF-8 character at text, 0: it is not UTF-8. RFC 3629, section 4. */
static size_t utf8_length(const unsigned char *text)
{
    const unsigned char first = text[0];
    if (first < 0x80) return 1;
    const size_t length = first >= 0xc2 && first <= 0xdf ? 2 : (first & 0xf0) == 0xe0 ? 3 : first <= 0xf4 ? 4 : 0;
    if (first < 0xc2 || length == 0) return 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80) return 0; /* the text's end, too */
    if ((first == 0xe0 && text[1] < 0xa0) || (first == 0xed && text[1] > 0x9f)) return 0;
    if ((first == 0xf0 && text[1] < 0x90) || (first == 0xf4 && text[1] > 0x8f)) return 0;
    return length;
}

/* Noncharacters and C1 controls, which HTML forbids. */
static int is_forbidden(const unsigned char *text, size_t length)
{
    if (length == 2) return text[0] == 0xc2 && text[1] < 0xa0;
    if (length == 3 && text[0] == 0xef)
        return (text[1] == 0xbf && text[2] >= 0xbe) || (text[1] == 0xb7 && text[2] >= 0x90 && text[2] <= 0xaf);
    return length == 4 && (text[1] & 0x0f) == 0x0f && text[2] == 0xbf && text[3] >= 0xbe;
}

void text_escape(FILE *f, const char *text)
{
    const unsigned char *at = (const unsigned char *)(text ? text : "");
    while (*at) {
        const size_t length = utf8_length(at);
        if (length == 0 || is_forbidden(at, length))
            fputs("\ufffd", f);
        else if (*at == '\n' || *at == '\t')
            fputs(*at == '\n' ? "\u21b5" : "\u21e5", f);
        else if (*at < 0x20 || *at == 0x7f)
            fputs("\ufffd", f);
        else if (strchr("&<>\"'", *at))
            fprintf(f, "&#%d;", *at);
        else
            fwrite(at, 1, length, f);
        at += length ? length : 1;
    }
}

void text_json(FILE *f, const char *text)
{
    const unsigned char *at = (const unsigned char *)(text ? text : "");
    fputc('"', f);
    while (*at) {
        const size_t length = utf8_length(at);
        if (length == 0)
            fputs("\\ufffd", f);
        else if (length == 1 && (*at < 0x20 || *at == 0x7f || strchr("&<>\"'\\", *at)))
            fprintf(f, "\\u%04x", *at);
        else if (length == 3 && at[0] == 0xe2 && at[1] == 0x80 && (at[2] & 0xfe) == 0xa8)
            fprintf(f, "\\u20%02x", at[2] & 0x3f); /* line ends of older JavaScript */
        else
            fwrite(at, 1, length, f);
        at += length ? length : 1;
    }
    fputc('"', f);
}

void text_base64(FILE *f, const void *bytes, size_t count)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *at = bytes;
    for (; count > 0; at += 3, count -= count < 3 ? count : 3) {
        const unsigned three = (unsigned)at[0] << 16 | (count > 1 ? at[1] : 0u) << 8 | (count > 2 ? at[2] : 0u);
        const char four[4] = {digits[three >> 18], digits[three >> 12 & 63], count > 1 ? digits[three >> 6 & 63] : '=',
                              count > 2 ? digits[three & 63] : '='};
        fwrite(four, 1, 4, f);
    }
}

const char *text_count(char buffer[TEXT_NUMBER], uint64_t value)
{
    char digits[24];
    const int count = snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
    int out = 0;
    for (int i = 0; i < count; i++) {
        if (i > 0 && (count - i) % 3 == 0) buffer[out++] = ',';
        buffer[out++] = digits[i];
    }
    buffer[out] = 0;
    return buffer;
}

const char *text_bytes(char buffer[TEXT_NUMBER], uint64_t bytes)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)bytes;
    int unit = 0;
    for (; value >= 999.5 && unit < 6; unit++) value /= 1000;
    const int decimals = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    snprintf(buffer, TEXT_NUMBER, "%.*f\u00a0%s", decimals, value, bytes == 1 ? "byte" : units[unit]);
    return buffer;
}

const char *text_change(char buffer[TEXT_NUMBER], double ratio)
{
    const double percent = fabs(100 * (ratio - 1));
    if (!isfinite(ratio))
        snprintf(buffer, TEXT_NUMBER, "\u2013");
    else
        snprintf(buffer, TEXT_NUMBER, "%s%.*f\u00a0%%",
                 percent < 0.05 ? "\u00b1"
                 : ratio > 1    ? "+"
                                : "\u2212",
                 percent < 99.95 ? 1 : 0, percent);
    return buffer;
}

const char *text_figure(char buffer[TEXT_NUMBER], double value)
{
    const double size = fabs(value);
    if (!isfinite(value)) {
        snprintf(buffer, TEXT_NUMBER, "\u2013");
    } else if (size >= 999.5 && size < 1e18) {
        buffer[0] = '-';
        text_count(buffer + (value < 0), (uint64_t)llround(size));
    } else {
        snprintf(buffer, TEXT_NUMBER, "%.*f", size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3, value);
    }
    return buffer;
}
