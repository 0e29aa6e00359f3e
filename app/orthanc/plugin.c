/* The plugin's entry points: what Orthanc calls is answered by the store. This file includes Orthanc's SDK, which is
 * under the GPL, version 3 or later; so the plugin that is built of it is, too (app/orthanc/README.md). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <orthanc/OrthancCPlugin.h>

#include "app/orthanc/store.h"

static OrthancPluginContext *orthanc;
static struct store *store; /* one for all threads of Orthanc, with one engine and its memory */

/* ---- What Orthanc is told --------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    size_t place;
    float unit;
} metrics[] = {
    {"tessera_files_coded", offsetof(struct store_counts, coded), 1},
    {"tessera_files_stored", offsetof(struct store_counts, stored), 1},
    {"tessera_files_kept_as_they_are", offsetof(struct store_counts, kept), 1},
    {"tessera_files_refused", offsetof(struct store_counts, refused), 1},
    {"tessera_files_removed", offsetof(struct store_counts, removed), 1},
    {"tessera_mb_in", offsetof(struct store_counts, bytes_in), 1e-6F},
    {"tessera_mb_out", offsetof(struct store_counts, bytes_out), 1e-6F},
    {"tessera_reads", offsetof(struct store_counts, read), 1},
    {"tessera_range_reads", offsetof(struct store_counts, ranges), 1},
    {"tessera_reads_damaged", offsetof(struct store_counts, damaged), 1},
    {"tessera_reads_failed", offsetof(struct store_counts, failed_reads), 1},
};

static void refresh_metrics(void)
{
    const char *const counts = (const char *)store_counts(store);
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
        const uint64_t value = atomic_load((const _Atomic uint64_t *)(const void *)(counts + metrics[i].place));
        OrthancPluginSetMetricsValue(orthanc, metrics[i].name, (float)value * metrics[i].unit,
                                     OrthancPluginMetricsType_Default);
    }
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

static void tell_time(const char *name, double began)
{
    OrthancPluginSetMetricsValue(orthanc, name, (float)(now() - began), OrthancPluginMetricsType_Timer);
}

static OrthancPluginErrorCode answer(enum store_status status, const struct store_note *note)
{
    static const OrthancPluginErrorCode codes[] = {
        [STORE_OK] = OrthancPluginErrorCode_Success,
        [STORE_BAD_ID] = OrthancPluginErrorCode_ParameterOutOfRange,
        [STORE_MISSING] = OrthancPluginErrorCode_InexistentFile,
        [STORE_DAMAGED] = OrthancPluginErrorCode_CorruptedFile,
        [STORE_UNREADABLE] = OrthancPluginErrorCode_StorageAreaPlugin,
        [STORE_NO_MEMORY] = OrthancPluginErrorCode_NotEnoughMemory,
        [STORE_BAD_RANGE] = OrthancPluginErrorCode_BadRange,
        [STORE_FULL] = OrthancPluginErrorCode_FullStorage,
        [STORE_UNWRITABLE] = OrthancPluginErrorCode_CannotWriteFile,
    };
    char line[sizeof note->text + 16];
    snprintf(line, sizeof line, "Tessera: %s", note->text);
    if (status != STORE_OK)
        OrthancPluginLogError(orthanc, line);
    else if (note->text[0])
        OrthancPluginLogWarning(orthanc, line);
    return codes[status];
}

/* ---- What Orthanc calls ----------------------------------------------------------------------------------- */

static OrthancPluginErrorCode create(const char *id, const void *content, int64_t size, OrthancPluginContentType type)
{
    struct store_note note;
    (void)type;
    if (!id || size < 0 || (size > 0 && !content)) return OrthancPluginErrorCode_ParameterOutOfRange;
    const double began = now();
    const enum store_status status = store_create(store, id, content, (size_t)size, &note);
    tell_time("tessera_create_duration_ms", began);
    return answer(status, &note);
}

static void *allocate(void *context, size_t count)
{
    OrthancPluginMemoryBuffer64 *const target = context;
    if (OrthancPluginCreateMemoryBuffer64(orthanc, target, count) == OrthancPluginErrorCode_Success)
        return target->data;
    target->data = NULL;
    target->size = 0;
    return NULL;
}

static OrthancPluginErrorCode read_whole(OrthancPluginMemoryBuffer64 *target, const char *id,
                                         OrthancPluginContentType type)
{
    struct store_note note;
    (void)type;
    if (!target || !id) return OrthancPluginErrorCode_NullPointer;
    *target = (OrthancPluginMemoryBuffer64){NULL, 0};
    const double began = now();
    const enum store_status status = store_read(store, id, allocate, target, &note);
    if (status != STORE_OK && target->data) {
        OrthancPluginFreeMemoryBuffer64(orthanc, target);
        *target = (OrthancPluginMemoryBuffer64){NULL, 0};
    }
    tell_time("tessera_read_duration_ms", began);
    return answer(status, &note);
}

static OrthancPluginErrorCode read_range(OrthancPluginMemoryBuffer64 *target, const char *id,
                                         OrthancPluginContentType type, uint64_t start)
{
    struct store_note note;
    (void)type;
    if (!target || !id || (target->size > 0 && !target->data)) return OrthancPluginErrorCode_NullPointer;
    const double began = now();
    const enum store_status status = store_read_range(store, id, start, target->data, (size_t)target->size, &note);
    tell_time("tessera_range_duration_ms", began);
    return answer(status, &note);
}

static OrthancPluginErrorCode remove_file(const char *id, OrthancPluginContentType type)
{
    struct store_note note;
    (void)type;
    if (!id) return OrthancPluginErrorCode_NullPointer;
    return answer(store_remove(store, id, &note), &note);
}

/* ---- The plugin ------------------------------------------------------------------------------------------- */

static bool read_settings(struct settings *settings, char sentence[SETTINGS_SENTENCE])
{
    char *const configuration = OrthancPluginGetConfiguration(orthanc);
    char *const place = OrthancPluginGetConfigurationPath(orthanc);
    const bool is_good = settings_read(configuration, place, settings, sentence);
    OrthancPluginFreeString(orthanc, configuration);
    OrthancPluginFreeString(orthanc, place);
    return is_good;
}

/* Orthanc ends where a plugin does not start. */
ORTHANC_PLUGINS_API int32_t OrthancPluginInitialize(OrthancPluginContext *context)
{
    struct settings settings;
    char sentence[SETTINGS_SENTENCE], line[SETTINGS_PATH + SETTINGS_SENTENCE];
    orthanc = context;
    if (!OrthancPluginCheckVersionAdvanced(context, 1, 9, 0)) {
        OrthancPluginLogError(context, "Tessera: Orthanc must be 1.9.0 or later");
        return -1;
    }
    if (!read_settings(&settings, sentence) || !(store = store_open(&settings, sentence))) {
        snprintf(line, sizeof line, "Tessera: %s", sentence);
        OrthancPluginLogError(context, line);
        return -1;
    }
    OrthancPluginSetDescription(context, "Keeps files without loss as .tsr, each proven to come back.");
    OrthancPluginRegisterStorageArea2(context, create, read_whole, read_range, remove_file);
    OrthancPluginRegisterRefreshMetricsCallback(context, refresh_metrics);
    snprintf(line, sizeof line, "Tessera %s keeps files in %s: effort %d, engine %s, %d threads", tsr_version(),
             settings.root, settings.effort, tsr_engine_name(store_engine(store)),
             tsr_engine_threads(store_engine(store)));
    OrthancPluginLogWarning(context, line);
    return 0;
}

ORTHANC_PLUGINS_API void OrthancPluginFinalize(void)
{
    store_close(store);
    store = NULL;
}

ORTHANC_PLUGINS_API const char *OrthancPluginGetName(void)
{
    return "tessera";
}

ORTHANC_PLUGINS_API const char *OrthancPluginGetVersion(void)
{
    return tsr_version();
}
