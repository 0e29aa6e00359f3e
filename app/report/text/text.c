/* Texts and numbers as HTML, SVG and JSON take them. See text.h. */
#include <math.h>
#include <string.h>

#include "text.h"

/* RFC 3629, section 4. */
size_t text_character(const char *text, uint32_t *code)
{
    const unsigned char *const at = (const unsigned char *)text, first = at[0];
    const size_t length = first < 0x80                     ? 1
                          : first >= 0xc2 && first <= 0xdf ? 2
                          : (first & 0xf0) == 0xe0         ? 3
                          : first >= 0xf0 && first <= 0xf4 ? 4
                                                           : 0;
    *code = length > 1 ? first & (0x7fu >> length) : first;
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80) return 0; /* the text's end, too */
        *code = *code << 6 | (at[i] & 0x3f);
    }
    if ((first == 0xe0 && at[1] < 0xa0) || (first == 0xed && at[1] > 0x9f)) return 0;
    if ((first == 0xf0 && at[1] < 0x90) || (first == 0xf4 && at[1] > 0x8f)) return 0;
    return length;
}

int text_is_hidden(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } hidden[] = {{0x00, 0x1f},       {0x7f, 0x9f},       {0xad, 0xad},      {0x034f, 0x034f}, {0x061c, 0x061c},
                  {0x115f, 0x1160},   {0x17b4, 0x17b5},   {0x180b, 0x180f},  {0x200b, 0x200f}, {0x2028, 0x202e},
                  {0x2060, 0x206f},   {0x3164, 0x3164},   {0xfeff, 0xfeff},  {0xffa0, 0xffa0}, {0xfff0, 0xfffb},
                  {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff}};
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++)
        if (code >= hidden[i].first && code <= hidden[i].last) return 1;
    return 0;
}

void text_write_code(char out[TEXT_CODE], uint32_t code)
{
    snprintf(out, TEXT_CODE, code > 0xffff ? "\\U%08lx" : "\\u%04lx", (unsigned long)code);
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
    char escape[TEXT_CODE];
    uint32_t code;
    while (*at) {
        const size_t length = text_character((const char *)at, &code);
        if (*at == '\n' || *at == '\t')
            fputs(*at == '\n' ? "\u21b5" : "\u21e5", f);
        else if (length == 0 || code < 0x20 || code == 0x7f || is_forbidden(at, length))
            fputs("\ufffd", f);
        else if (text_is_hidden(code))
            fputs((text_write_code(escape, code), escape), f);
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
    char escape[TEXT_CODE];
    uint32_t code;
    fputc('"', f);
    while (*at) {
        const size_t length = text_character((const char *)at, &code);
        if (length == 0)
            fputs("\\ufffd", f);
        else if (length == 1 && (*at < 0x20 || *at == 0x7f || strchr("&<>\"'\\", *at)))
            fprintf(f, "\\u%04x", *at);
        else if (text_is_hidden(code)) /* the page shows the escape: so its backslash is escaped */
            fprintf(f, "\\%s", (text_write_code(escape, code), escape));
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
