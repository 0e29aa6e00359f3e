/* JSON lines; see json.h. */
#include "json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the UTF-8 character at text (RFC 3629), 0 if there is none. */
static size_t character_bytes(const unsigned char *text)
{
    const size_t size = text[0] < 0x80   ? 1
                        : text[0] < 0xc2 ? 0
                        : text[0] < 0xe0 ? 2
                        : text[0] < 0xf0 ? 3
                        : text[0] < 0xf5 ? 4
                                         : 0;
    for (size_t i = 1; i < size; i++)
        if ((text[i] & 0xc0) != 0x80) return 0;
    if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f)) return 0;
    if ((text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f)) return 0;
    return size;
}

/* A copy in UTF-8, with U+FFFD where the text is none. NULL: no memory. */
char *copy_as_utf8(const char *text, bool *changed)
{
    static const char replacement[] = "\xef\xbf\xbd";
    char *const copy = malloc(3 * strlen(text) + 1), *to = copy;
    *changed = false;
    while (copy && *text) {
        const size_t size = character_bytes((const unsigned char *)text);
        memcpy(to, size ? text : replacement, size ? size : sizeof replacement - 1);
        to += size ? size : sizeof replacement - 1;
        text += size ? size : 1;
        *changed |= size == 0;
    }
    if (copy) *to = '\0';
    return copy;
}

void add_text(cJSON *object, const char *field, const char *value)
{
    bool changed;
    char *const text = value && value[0] ? copy_as_utf8(value, &changed) : NULL;
    if (text)
        cJSON_AddStringToObject(object, field, text);
    else
        cJSON_AddNullToObject(object, field);
    free(text);
}

void add_name(cJSON *object, const char *field, const char *name)
{
    bool changed = false;
    char *const text = name ? copy_as_utf8(name, &changed) : NULL;
    add_text(object, field, text);
    free(text);
    if (!changed) return;
    char hex_field[64];
    const size_t length = strlen(name);
    char *const hex = malloc(2 * length + 1);
    snprintf(hex_field, sizeof hex_field, "%s_hex", field);
    for (size_t i = 0; hex && i < length; i++) snprintf(hex + 2 * i, 3, "%02x", (unsigned char)name[i]);
    if (hex) cJSON_AddStringToObject(object, hex_field, hex);
    free(hex);
}

void add_number(cJSON *object, const char *field, bool applies, double value)
{
    if (applies && isfinite(value))
        cJSON_AddNumberToObject(object, field, value);
    else
        cJSON_AddNullToObject(object, field);
}

void print_json_line(cJSON *object)
{
    char *const text = object ? cJSON_PrintUnformatted(object) : NULL;
    if (text) printf("%s\n", text);
    fflush(stdout);
    cJSON_free(text);
    cJSON_Delete(object);
}
