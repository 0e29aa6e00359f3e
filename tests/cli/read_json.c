/* tsr_read_json: reads JSON lines for shell scripts. Each line of stdin must be one JSON object in UTF-8, parsed
 * strictly.
 *
 *   tsr_read_json FIELD... < lines             the fields of each line except the summary, separated by tabs
 *   tsr_read_json --summary FIELD... < lines   the fields of the summary
 *
 * A field that is null is printed as null, one that is absent as absent. Exit status 1: a line is not such an object.
 */
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Strict UTF-8 (RFC 3629) without control characters. */
static bool is_utf8(const unsigned char *at)
{
    while (*at) {
        static const unsigned least[] = {0, 0x80, 0x800, 0x10000};
        const int more = *at < 0x80 ? 0 : *at < 0xc0 ? -1 : *at < 0xe0 ? 1 : *at < 0xf0 ? 2 : *at < 0xf8 ? 3 : -1;
        if (more < 0 || *at < ' ') return false;
        unsigned value = more == 0 ? *at : *at & (0x3fu >> more);
        at++;
        for (int i = 0; i < more; i++, at++) {
            if ((*at & 0xc0) != 0x80) return false;
            value = value << 6 | (*at & 0x3fu);
        }
        if (value < least[more] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return false;
    }
    return true;
}

static void print_field(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    if (!item)
        printf("absent");
    else if (cJSON_IsString(item))
        printf("%s", item->valuestring);
    else if (cJSON_IsNumber(item))
        printf("%.17g", item->valuedouble);
    else if (cJSON_IsBool(item))
        printf("%s", cJSON_IsTrue(item) ? "true" : "false");
    else
        printf("%s", cJSON_IsNull(item) ? "null" : cJSON_IsArray(item) ? "array" : "object");
}

int main(int argc, char **argv)
{
    const bool summary = argc > 1 && strcmp(argv[1], "--summary") == 0;
    static char line[1 << 20];
    int bad = 0;
    for (int number = 1; fgets(line, sizeof line, stdin); number++) {
        line[strcspn(line, "\n")] = '\0';
        const char *end = NULL;
        cJSON *object = is_utf8((const unsigned char *)line) ? cJSON_ParseWithOpts(line, &end, true) : NULL;
        if (!cJSON_IsObject(object)) {
            fprintf(stderr, "line %d is no JSON object: %s\n", number, line);
            bad = 1;
        } else if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, "summary")) == summary) {
            for (int i = 1 + summary; i < argc; i++) {
                print_field(object, argv[i]);
                putchar(i + 1 < argc ? '\t' : '\n');
            }
        }
        cJSON_Delete(object);
    }
    return bad;
}
