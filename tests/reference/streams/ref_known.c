/* ELEMENTS.md 7: known bytes. */
#include "ref.h"

#include <string.h>

static const char *const lines[] = {
#include "headers_seen.inc"
};

static unsigned digit(char c)
{
    return (unsigned)(c >= 'a' ? c - 'a' + 10 : c - '0');
}

static unsigned two_digits(const char *text)
{
    return 16 * digit(text[0]) + digit(text[1]);
}

static size_t put_little(uint8_t *out, uint32_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) out[i] = (uint8_t)(value >> (8 * i));
    return bytes;
}

/* An element: text is "ggggeeee VR value", of size characters. */
static size_t put_element(uint8_t *out, const char *text, size_t size, bool has_vr)
{
    const bool has_four = !has_vr || strstr("SQ OB OW UT", (const char[]){text[9], text[10], 0}) != NULL,
               is_open = text[12] == '*', is_binary = strstr("UI OB OW", (const char[]){text[9], text[10], 0}) != NULL;
    uint8_t value[256];
    uint32_t length = 0;
    for (const char *c = text + 12; c < text + size && !is_open; c++) {
        value[length++] = (uint8_t)(*c == '~' ? two_digits(c + 1) : (unsigned char)*c);
        if (*c == '~') c += 2;
    }
    if (length % 2 == 1) value[length++] = is_binary ? 0 : ' ';
    size_t used = put_little(out, two_digits(text) << 8 | two_digits(text + 2), 2);
    used += put_little(out + used, two_digits(text + 4) << 8 | two_digits(text + 6), 2);
    if (has_vr) {
        out[used++] = (uint8_t)text[9];
        out[used++] = (uint8_t)text[10];
        if (has_four) used += put_little(out + used, 0, 2);
    }
    used += put_little(out + used, is_open ? UINT32_MAX : length, has_four ? 4 : 2);
    memcpy(out + used, value, length);
    return used + length;
}

const uint8_t *ref_known_bytes(size_t *size)
{
    uint8_t *const known = ref_alloc(1 << 16, 1);
    bool has_vr = true;
    *size = 0;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        for (const char *text = lines[i], *end; *text; text = end + 1) {
            end = strchr(text, '|');
            if (end > text + 1) {
                *size += put_element(known + *size, text, (size_t)(end - text), has_vr);
            } else if (*text == '0' || *text == '1' || *text == '2') {
                has_vr = *text != '2';
                if (*text == '0') memcpy(known + *size + 128, "DICM", 4);
                if (*text == '0') *size += 132;
            } else {
                *size += put_little(known + *size,
                                    0xe000fffeu + (*text == ')'   ? 0xd0000u
                                                   : *text == ']' ? 0xdd0000u
                                                                  : 0),
                                    4);
                *size += put_little(known + *size, *text == '(' ? UINT32_MAX : 0, 4);
            }
        }
    return known;
}
