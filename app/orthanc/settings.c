/* The block "Tessera" of Orthanc's configuration; app/orthanc/README.md describes it. A key that nobody knows ends the
 * start: a misspelt "Memory" would else become the default in silence. */
#include "app/orthanc/settings.h"

#include <cjson/cJSON.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool fail(char sentence[SETTINGS_SENTENCE], const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(char sentence[SETTINGS_SENTENCE], const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, SETTINGS_SENTENCE, format, arguments);
    va_end(arguments);
    return false;
}

static bool read_integer(const cJSON *item, int least, int most, int *value, char sentence[SETTINGS_SENTENCE])
{
    const double number = cJSON_IsNumber(item) ? item->valuedouble : (double)least - 1;
    if (number < least || number > most || number != (double)(int)number)
        return fail(sentence, "\"%s\" of \"Tessera\" in Orthanc's configuration must be an integer from %d to %d",
                    item->string, least, most);
    *value = (int)number;
    return true;
}

/* "512M" or "4G": 1K is 1000 bytes, as for the program's --memory, and in the sentences that say what would do. */
static bool read_memory(const cJSON *item, uint64_t *bytes, char sentence[SETTINGS_SENTENCE])
{
    static const char units[] = "KMGT";
    const char *const text = cJSON_IsString(item) ? item->valuestring : "";
    char *end = NULL;
    const unsigned long long number = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;
    const char *const unit = end && *end ? strchr(units, *end) : NULL;
    uint64_t scale = 1;
    for (const char *u = units; unit && u <= unit; u++) scale *= 1000;
    if (number == 0 || !unit || end[1] || number > UINT64_MAX / scale)
        return fail(sentence,
                    "\"Memory\" of \"Tessera\" in Orthanc's configuration must be a string such as \"512M\" or \"4G\"");
    *bytes = (uint64_t)number * scale;
    return true;
}

static bool read_engine(const cJSON *item, enum tsr_engine_choice *choice, char sentence[SETTINGS_SENTENCE])
{
    static const char *const names[] = {"auto", "cpu", "cuda"};
    static const enum tsr_engine_choice choices[] = {TSR_ENGINE_AUTO, TSR_ENGINE_CPU, TSR_ENGINE_CUDA};
    for (size_t i = 0; cJSON_IsString(item) && i < sizeof names / sizeof *names; i++) {
        if (strcmp(item->valuestring, names[i]) != 0) continue;
        *choice = choices[i];
        return true;
    }
    return fail(sentence, "\"Engine\" of \"Tessera\" in Orthanc's configuration must be \"auto\", \"cpu\" or \"cuda\"");
}

static bool read_block(const cJSON *block, struct settings *settings, char sentence[SETTINGS_SENTENCE])
{
    if (!cJSON_IsObject(block)) return fail(sentence, "\"Tessera\" in Orthanc's configuration must be an object");
    for (const cJSON *item = block->child; item; item = item->next) {
        bool is_good = false;
        if (strcmp(item->string, "Effort") == 0)
            is_good = read_integer(item, 1, 9, &settings->effort, sentence);
        else if (strcmp(item->string, "Threads") == 0)
            is_good = read_integer(item, 1, 4096, &settings->engine.threads, sentence);
        else if (strcmp(item->string, "Memory") == 0)
            is_good = read_memory(item, &settings->engine.memory_bytes, sentence);
        else if (strcmp(item->string, "Engine") == 0)
            is_good = read_engine(item, &settings->engine.choice, sentence);
        else
            fail(sentence,
                 "\"%.100s\" of \"Tessera\" in Orthanc's configuration is unknown: there are Effort, Engine, Memory "
                 "and Threads",
                 item->string);
        if (!is_good) return false;
    }
    return true;
}

/* The folder in which relative names of the configuration begin. */
static bool find_base(const char *place, char base[SETTINGS_PATH])
{
    struct stat status;
    char *end;
    if (!place || !*place || strlen(place) >= SETTINGS_PATH) return getcwd(base, SETTINGS_PATH) != NULL;
    strcpy(base, place);
    if (stat(base, &status) == 0 && S_ISDIR(status.st_mode)) return true;
    if (!(end = strrchr(base, '/'))) return getcwd(base, SETTINGS_PATH) != NULL;
    end[end == base] = '\0';
    return true;
}

static bool find_root(const cJSON *configuration, const char *place, struct settings *settings,
                      char sentence[SETTINGS_SENTENCE])
{
    char base[SETTINGS_PATH];
    const cJSON *const item = cJSON_GetObjectItemCaseSensitive(configuration, "StorageDirectory");
    if (item && (!cJSON_IsString(item) || !*item->valuestring))
        return fail(sentence, "\"StorageDirectory\" in Orthanc's configuration must be the name of a folder");
    const char *const name = item ? item->valuestring : "OrthancStorage"; /* Orthanc's default */
    if (*name != '/' && !find_base(place, base))
        return fail(sentence, "The folder of Orthanc's configuration cannot be found");
    const int length = *name == '/' ? snprintf(settings->root, SETTINGS_PATH, "%s", name)
                                    : snprintf(settings->root, SETTINGS_PATH, "%s/%s", base, name);
    if (length < 0 || length >= SETTINGS_PATH)
        return fail(sentence, "\"StorageDirectory\" in Orthanc's configuration has over %d bytes", SETTINGS_PATH);
    return true;
}

bool settings_read(const char *configuration, const char *place, struct settings *settings,
                   char sentence[SETTINGS_SENTENCE])
{
    *settings = (struct settings){.effort = TSR_EFFORT_DEFAULT, .engine = TSR_ENGINE_OPTIONS};
    cJSON *const all = configuration ? cJSON_Parse(configuration) : NULL;
    if (!cJSON_IsObject(all)) {
        cJSON_Delete(all);
        return fail(sentence, "Orthanc's configuration cannot be read");
    }
    const cJSON *const block = cJSON_GetObjectItemCaseSensitive(all, "Tessera");
    bool is_good = find_root(all, place, settings, sentence);
    if (is_good && cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(all, "StorageCompression")))
        is_good = fail(sentence, "\"StorageCompression\" is true in Orthanc's configuration: files that are deflated "
                                 "before they get here hardly become smaller. Set it to false");
    if (is_good && block) is_good = read_block(block, settings, sentence);
    cJSON_Delete(all);
    return is_good;
}
