/* Texts that describe strings of elements; see the header. */
#include "elements_spell.h"

#include <pthread.h>
#include <string.h>

#include "elements_place.h"

static uint8_t digit(char c)
{
    return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static uint8_t byte_of_digits(const char *digits)
{
    return (uint8_t)(digit(digits[0]) << 4 | digit(digits[1]));
}

/* The bytes of a value: ~ and two digits are a byte, and so is any other character. Their number becomes even. */
static uint32_t put_value(const char *text, const char *end, uint8_t padding, uint8_t *out)
{
    uint32_t size = 0;
    for (; text < end; text++) {
        const bool is_code = *text == '~';
        out[size++] = is_code ? byte_of_digits(text + 1) : (uint8_t)*text;
        if (is_code) text += 2;
    }
    if (size % 2 > 0) out[size++] = padding;
    return size;
}

/* Makes an element: eight digits of the tag, the VR, and the value or * for a length that is not known. */
static uint32_t put_element(const char *text, const char *end, bool is_implicit, uint8_t *out)
{
    enum { VR_AT = 9, VALUE_AT = 12 };
    static const uint8_t from[4] = {2, 0, 6, 4};
    const uint32_t vr = (uint32_t)text[VR_AT] << 8 | (uint32_t)text[VR_AT + 1];
    const bool is_long = is_implicit || tsr_place_is_vr(vr, "OBOWSQUT");
    const uint32_t size = is_long && !is_implicit ? 12 : 8;
    memset(out, 0, size);
    for (int i = 0; i < 4; i++) out[i] = byte_of_digits(text + from[i]);
    if (!is_implicit) memcpy(out + 4, text + VR_AT, 2);
    if (text[VALUE_AT] == '*') {
        memset(out + size - 4, 255, 4);
        return size;
    }
    const uint32_t length = put_value(text + VALUE_AT, end, tsr_place_is_vr(vr, "UIOBOW") ? 0 : ' ', out + size);
    out[is_implicit ? 4 : is_long ? 8 : 6] = (uint8_t)length; /* which is below 256 */
    return size + length;
}

/* What a part of one character stands for: the begin of a string, by its form; an item or an end. */
static uint32_t put_mark(char mark, uint8_t *out)
{
    static const uint8_t start[TSR_PLACE_PREAMBLE] = {[128] = 'D', 'I', 'C', 'M'},
                         item[8] = {0xfe, 0xff, 0x00, 0xe0, 255, 255, 255, 255}, item_end[8] = {0xfe, 0xff, 0x0d, 0xe0},
                         sequence_end[8] = {0xfe, 0xff, 0xdd, 0xe0};
    const uint8_t *const bytes = mark == '0' ? start : mark == '(' ? item : mark == ')' ? item_end : sequence_end;
    const uint32_t size = mark == '0' ? sizeof start : mark == '1' || mark == '2' ? 0 : sizeof item;
    memcpy(out, bytes, size);
    return size;
}

uint32_t tsr_elements_spell(const char *part, const char *end, bool is_implicit, uint8_t out[TSR_SPELLED_LIMIT])
{
    return end == part + 1 ? put_mark(*part, out) : put_element(part, end, is_implicit, out);
}

/* ---- Known headers ------------------------------------------------------------------------------------------ */

enum { KNOWN_LIMIT = 1 << 14 };

static const char *const lines[] = {
#include "headers_seen.inc"
    NULL};
static uint8_t known[KNOWN_LIMIT + TSR_SPELLED_LIMIT];
static size_t known_size;
static pthread_once_t is_known = PTHREAD_ONCE_INIT;

static void spell_all(void)
{
    bool is_implicit = false;
    for (const char *const *line = lines; *line; line++)
        for (const char *part = *line; *part && known_size < KNOWN_LIMIT;) {
            const char *const end = strchr(part, '|');
            if (end == part + 1 && *part >= '0' && *part <= '2') is_implicit = *part == '2';
            known_size += tsr_elements_spell(part, end, is_implicit, known + known_size);
            part = end + 1;
        }
}

const uint8_t *tsr_known_headers(size_t *size)
{
    (void)pthread_once(&is_known, spell_all);
    *size = known_size;
    return known;
}
