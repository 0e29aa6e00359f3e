/* JSON lines; see json.h. */
#include "json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/report/text/text.h"

/* A copy in UTF-8, with U+FFFD where the text is none. NULL: no memory. */
char *copy_as_utf8(const char *text, bool *changed)
{
    static const char replacement[] = "\xef\xbf\xbd";
    char *const copy = malloc(3 * strlen(text) + 1), *to = copy;
    uint32_t code;
    *changed = false;
    while (copy && *text) {
        const size_t size = text_character(text, &code);
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

void add_truth(cJSON *object, const char *field, bool applies, bool value)
{
    if (applies)
        cJSON_AddBoolToObject(object, field, value);
    else
        cJSON_AddNullToObject(object, field);
}

/* Characters that no reader sees stand in strings alone: there JSON may have them as their UTF-16 code units. Returns
 * the text, or one in its place, which is then freed; NULL: no memory. */
static char *escape_hidden(char *text)
{
    enum { GROWTH = 6, DEL = 0x7f }; /* a byte, DEL, becomes six */
    uint32_t code;
    size_t used = 0, at = 0, length;
    while (text[at] >= ' ' && text[at] < DEL) at++; /* nearly always all of it */
    for (; text[at]; at += length ? length : 1)
        if ((length = text_character(text + at, &code)) > 0 && text_is_hidden(code)) break;
    if (!text[at]) return text;
    char *const out = malloc(GROWTH * strlen(text) + 1);
    for (at = 0; out && text[at]; at += length) {
        length = text_character(text + at, &code);
        if (length == 0) length = 1;
        if (!text_is_hidden(code)) {
            memcpy(out + used, text + at, length);
            used += length;
            continue;
        }
        if (code > 0xffff) used += (size_t)sprintf(out + used, "\\u%04lx", (unsigned long)(0xd7c0 + (code >> 10)));
        if (code > 0xffff) code = 0xdc00 + (code & 0x3ff);
        used += (size_t)sprintf(out + used, "\\u%04lx", (unsigned long)code);
    }
    if (out) out[used] = '\0';
    cJSON_free(text);
    return out;
}

char *json_text(cJSON *object)
{
    char *const text = object ? cJSON_PrintUnformatted(object) : NULL; /* cJSON's hooks are malloc and free */
    cJSON_Delete(object);
    return text ? escape_hidden(text) : NULL;
}

void print_json_to(FILE *to, cJSON *object)
{
    char *const text = json_text(object);
    if (text) fprintf(to, "%s\n", text);
    fflush(to);
    free(text);
}

void print_json_joined(const char *first, cJSON *rest)
{
    char *const second = json_text(rest);
    if (first && second) printf("%.*s,%s\n", (int)strlen(first) - 1, first, second + 1);
    fflush(stdout);
    free(second);
}

void print_json_line(cJSON *object)
{
    print_json_to(stdout, object);
}

void add_windows(cJSON *o, const struct tsr_window_loss *windows, uint32_t count)
{
    if (count == 0) {
        cJSON_AddNullToObject(o, "windows");
        return;
    }
    cJSON *const list = cJSON_AddArrayToObject(o, "windows");
    for (uint32_t w = 0; w < count; w++) {
        const struct tsr_window_loss *const window = &windows[w];
        cJSON *const one = cJSON_CreateObject();
        cJSON_AddNumberToObject(one, "center", window->center);
        cJSON_AddNumberToObject(one, "width", window->width);
        cJSON_AddNumberToObject(one, "samples", (double)window->samples);
        add_number(one, "rmse", window->samples > 0, window->rmse);
        add_number(one, "psnr_db", window->samples > 0 && isfinite(window->psnr_db), window->psnr_db);
        cJSON_AddBoolToObject(one, "judged", window->is_judged);
        add_number(one, "ssim", window->ssim > -1, window->ssim);
        add_number(one, "largest_error", window->largest_error >= 0, window->largest_error);
        cJSON_AddItemToArray(list, one);
    }
}
