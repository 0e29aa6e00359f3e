/* Loads Orthanc's plugin without Orthanc: this program is its context. Calls come from threads with a stack of 100 KiB,
 * which is what Orthanc's web server gives its own. usage: orthanc_fake PLUGIN WORK check FILE...          what the
 * storage area promises, with these files orthanc_fake PLUGIN WORK mutants COUNT SEED FILE...  so many mutants of the
 * files are stored, and of their .tsr read WORK: a folder of this program, better in memory. Exit status 1: a check
 * failed; each says so in a line. The program has fsync of its own, which the plugin and the library call: it counts,
 * fails on demand, and does nothing. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <orthanc/OrthancCPlugin.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/tessera.h"
#include "tests/attack/mutants.h"

#if defined(__SANITIZE_ADDRESS__)
enum { STACK_BYTES = 1 << 20 }; /* AddressSanitizer's frames are larger */
#else
enum { STACK_BYTES = 100 << 10 };
#endif

static struct {
    const char *configuration;
    char place[400], said[4096]; /* the folder of the configuration; the last line that was logged */
    OrthancPluginStorageCreate create;
    OrthancPluginStorageReadWhole read;
    OrthancPluginStorageReadRange range;
    OrthancPluginStorageRemove remove;
    OrthancPluginRefreshMetricsCallback refresh;
    char root[512];
} fake;
static int failures;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void bad(const char *what, const char *about)
{
    failures++;
    printf("FAILED: %s (%s)\n", what, about);
    fflush(stdout);
}
#define CHECK(good, about) ((good) ? (void)0 : bad(#good, about))

/* ---- fsync ------------------------------------------------------------------------------------------------ */

static _Atomic int syncs, file_syncs, sync_that_fails = -1; /* of a counted one, from 0 */

__attribute__((visibility("default"))) int fsync(int file);
int fsync(int file)
{
    struct stat status;
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode)) atomic_fetch_add(&file_syncs, 1);
    if (atomic_fetch_add(&syncs, 1) != atomic_load(&sync_that_fails)) return 0;
    errno = EIO;
    return -1;
}

/* ---- The context ------------------------------------------------------------------------------------------ */

static struct {
    char name[64];
    float value;
} metric[32];

static void set_metric(const _OrthancPluginSetMetricsValue *set)
{
    size_t i = 0;
    while (i < 31 && metric[i].name[0] && strcmp(metric[i].name, set->name) != 0) i++;
    snprintf(metric[i].name, sizeof metric[i].name, "%s", set->name);
    metric[i].value = set->value;
}

static OrthancPluginErrorCode serve(OrthancPluginContext *context, _OrthancPluginService service, const void *params)
{
    (void)context;
    OrthancPluginErrorCode code = OrthancPluginErrorCode_Success;
    pthread_mutex_lock(&lock);
    if (service == _OrthancPluginService_LogError || service == _OrthancPluginService_LogWarning) {
        snprintf(fake.said, sizeof fake.said, "%s", (const char *)params);
    } else if (service == _OrthancPluginService_GetConfiguration) {
        *((const _OrthancPluginRetrieveDynamicString *)params)->result = strdup(fake.configuration);
    } else if (service == _OrthancPluginService_GetConfigurationPath) {
        *((const _OrthancPluginRetrieveDynamicString *)params)->result = strdup(fake.place);
    } else if (service == _OrthancPluginService_RegisterStorageArea2) {
        const _OrthancPluginRegisterStorageArea2 *const area = params;
        fake.create = area->create, fake.read = area->readWhole, fake.range = area->readRange;
        fake.remove = area->remove;
    } else if (service == _OrthancPluginService_RegisterRefreshMetricsCallback) {
        fake.refresh = ((const _OrthancPluginRegisterRefreshMetricsCallback *)params)->callback;
    } else if (service == _OrthancPluginService_SetMetricsValue) {
        set_metric(params);
    } else if (service == _OrthancPluginService_CreateMemoryBuffer64) {
        const _OrthancPluginCreateMemoryBuffer64 *const wanted = params;
        wanted->target->data = wanted->size ? malloc(wanted->size) : NULL;
        wanted->target->size = wanted->size;
    } else if (service != _OrthancPluginService_SetPluginProperty) {
        code = OrthancPluginErrorCode_UnknownPluginService;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

static OrthancPluginContext context = {NULL, "1.10.1", free, serve};
static int32_t (*initialize)(OrthancPluginContext *);
static void (*finalize)(void);

static int32_t start(const char *configuration)
{
    fake.configuration = configuration;
    fake.said[0] = '\0';
    return initialize(&context);
}

/* ---- Calls from a small stack ----------------------------------------------------------------------------- */

enum deed { CREATE, READ, RANGE, REMOVE };

struct call {
    enum deed what;
    const char *id;
    struct bytes bytes; /* to create; read */
    uint64_t offset;    /* of a range of bytes.size */
    OrthancPluginErrorCode code;
};

static void *run(void *argument)
{
    struct call *const c = argument;
    OrthancPluginMemoryBuffer64 buffer = {c->bytes.data, c->bytes.size};
    if (c->what == CREATE)
        c->code = fake.create(c->id, c->bytes.data, (int64_t)c->bytes.size, OrthancPluginContentType_Dicom);
    else if (c->what == READ)
        c->code = fake.read(&buffer, c->id, OrthancPluginContentType_Dicom);
    else if (c->what == RANGE)
        c->code = fake.range(&buffer, c->id, OrthancPluginContentType_Dicom, c->offset);
    else
        c->code = fake.remove(c->id, OrthancPluginContentType_Dicom);
    c->bytes = (struct bytes){buffer.data, buffer.size};
    return NULL;
}

static pthread_t begin(struct call *c)
{
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    if (pthread_create(&thread, &attributes, run, c) != 0) exit(2);
    pthread_attr_destroy(&attributes);
    return thread;
}

static bool is_direct; /* calls come from the program's own thread, which is faster */

static OrthancPluginErrorCode call(struct call *c)
{
    if (is_direct)
        run(c);
    else
        pthread_join(begin(c), NULL);
    return c->code;
}

static OrthancPluginErrorCode create(const char *id, struct bytes bytes)
{
    return call(&(struct call){CREATE, id, bytes, 0, 0});
}

/* The file, or a file without bytes (NULL) and the error in *code. */
static struct bytes read_whole(const char *id, OrthancPluginErrorCode *code)
{
    struct call c = {READ, id, {NULL, 0}, 0, 0};
    *code = call(&c);
    if (*code != 0 && c.bytes.data) bad("a read that failed gives no bytes", id);
    return c.bytes;
}

static bool reads_back(const char *id, struct bytes bytes)
{
    OrthancPluginErrorCode code;
    struct bytes got = read_whole(id, &code);
    const bool is_same = code == 0 && equal(got, bytes);
    free(got.data);
    return is_same;
}

static OrthancPluginErrorCode range_code; /* of the last range */

/* Whether the range comes back: 1; with an error: 0; with other bytes: -1. */
static int range_reads_back(const char *id, struct bytes bytes, size_t offset, size_t count)
{
    uint8_t *const room = calloc(1, count + 1);
    struct call c = {RANGE, id, {room, count}, offset, 0};
    const OrthancPluginErrorCode code = range_code = call(&c);
    const bool is_inside = offset <= bytes.size && count <= bytes.size - offset;
    const int result = code != 0 ? 0 : is_inside && memcmp(room, bytes.data + offset, count) == 0 ? 1 : -1;
    free(room);
    return result;
}

static OrthancPluginErrorCode remove_file(const char *id)
{
    return call(&(struct call){REMOVE, id, {NULL, 0}, 0, 0});
}

/* ---- Files ------------------------------------------------------------------------------------------------ */

static struct bytes load(const char *path)
{
    struct bytes b = {NULL, 0};
    struct stat status;
    FILE *const file = fopen(path, "rb");
    if (!file || fstat(fileno(file), &status) != 0 || !S_ISREG(status.st_mode)) {
        if (file) fclose(file);
        return b;
    }
    b.data = malloc((size_t)status.st_size + 1);
    b.size = fread(b.data, 1, (size_t)status.st_size, file);
    fclose(file);
    return b;
}

static void save(const char *path, struct bytes b)
{
    FILE *const file = fopen(path, "wb");
    if (!file || fwrite(b.data, 1, b.size, file) != b.size) exit(2);
    fclose(file);
}

static const char *path_of(const char *id, const char *end)
{
    static char path[2][1024];
    static int which;
    which = !which;
    snprintf(path[which], sizeof path[0], "%s/%.2s/%.2s/%s%s", fake.root, id, id + 2, id, end);
    return path[which];
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* Files below a folder, those without a finished name, too. */
static int files_below(const char *folder)
{
    char path[2048];
    int count = 0;
    DIR *const stream = opendir(folder);
    for (struct dirent *entry; stream && (entry = readdir(stream));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        count += entry->d_type == DT_DIR ? files_below(path) : 1;
    }
    if (stream) closedir(stream);
    return count;
}

static void make_id(char id[37], unsigned number)
{
    snprintf(id, 37, "%02x%02x%04x-1234-4abc-8def-%012x", number / 256 % 256, number % 256, number % 65536, number);
}

/* ---- Checks ----------------------------------------------------------------------------------------------- */

static float metric_of(const char *name)
{
    fake.refresh();
    for (size_t i = 0; i < 32; i++)
        if (strcmp(metric[i].name, name) == 0) return metric[i].value;
    bad("there is such a metric", name);
    return -1;
}

/* What stops the start, and the word that the sentence has. */
static void check_settings(void)
{
    static const char *const wrong[][2] = {
        {"{\"Tessera\":{\"Efort\":5}}", "\"Efort\""},
        {"{\"Tessera\":{\"effort\":5}}", "\"effort\""},
        {"{\"Tessera\":{\"Effort\":0}}", "from 1 to 9"},
        {"{\"Tessera\":{\"Effort\":10}}", "from 1 to 9"},
        {"{\"Tessera\":{\"Effort\":5.5}}", "integer"},
        {"{\"Tessera\":{\"Effort\":1e300}}", "integer"},
        {"{\"Tessera\":{\"Effort\":\"5\"}}", "integer"},
        {"{\"Tessera\":{\"Threads\":0}}", "from 1 to 4096"},
        {"{\"Tessera\":{\"Memory\":512}}", "\"512M\""},
        {"{\"Tessera\":{\"Memory\":\"512\"}}", "\"512M\""},
        {"{\"Tessera\":{\"Memory\":\"-1G\"}}", "\"512M\""},
        {"{\"Tessera\":{\"Memory\":\"99999999999T\"}}", "\"512M\""},
        {"{\"Tessera\":{\"Memory\":\"1K\"}}", "engine does not start"},
        {"{\"Tessera\":{\"Memory\":\"71M\",\"Threads\":1}}", "engine does not start"}, /* it takes 73 MB, 70 MiB */
        {"{\"Tessera\":{\"Engine\":\"gpu\"}}", "\"cuda\""},
        {"{\"Tessera\":7}", "object"},
        {"{\"StorageCompression\":true}", "StorageCompression"},
        {"{\"StorageDirectory\":\"/dev/null\"}", "StorageDirectory"},
        {"{\"StorageDirectory\":7}", "StorageDirectory"},
        {"[", "cannot be read"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const int32_t started = start(wrong[i][0]);
        CHECK(started != 0, wrong[i][0]);
        CHECK(strstr(fake.said, wrong[i][1]) != NULL, wrong[i][0]);
        if (started == 0) finalize();
    }
    context.orthancVersion = "1.8.2";
    CHECK(start("{}") != 0, "an old Orthanc");
    context.orthancVersion = "1.10.1";
}

static void check_file(const char *name, unsigned number)
{
    char id[37];
    const struct bytes bytes = load(name);
    make_id(id, number);
    CHECK(create(id, bytes) == 0, name);
    CHECK(exists(path_of(id, "")) + exists(path_of(id, ".tsr")) == 1, name);
    struct stat status;
    CHECK(stat(path_of(id, exists(path_of(id, "")) ? "" : ".tsr"), &status) == 0 && (status.st_mode & 0777) == 0640,
          name);
    CHECK(reads_back(id, bytes), name);
    for (size_t part = 0; part <= 8; part++) {
        const size_t offset = bytes.size * part / 8, left = bytes.size - offset;
        CHECK(range_reads_back(id, bytes, offset, left / 3) == 1, name);
        CHECK(range_reads_back(id, bytes, offset, left) == 1, name);
        CHECK(range_reads_back(id, bytes, offset, left + 1) == 0, name);
    }
    CHECK(range_reads_back(id, bytes, bytes.size < 3000 ? bytes.size : 3000, 0) == 1, name);
    CHECK(range_reads_back(id, bytes, SIZE_MAX, 2) == 0, name);
    CHECK(create(id, bytes) != 0, "an id that is there");
    CHECK(reads_back(id, bytes), "after a second file of its id was refused");
    CHECK(remove_file(id) == 0, name);
    CHECK(!exists(path_of(id, "")) && !exists(path_of(id, ".tsr")), "removed");
    CHECK(!reads_back(id, bytes), "removed");
    CHECK(remove_file(id) == 0, "removed twice");
    free(bytes.data);
}

static void check_ids(struct bytes bytes)
{
    static const char *const wrong[] = {"",
                                        "..",
                                        "../../../../../../../../tmp/orthanc_fake",
                                        "0123456789abcdef0123456789abcdef0123",
                                        "01234567-1234-4abc-8def-0123456789a",
                                        "01234567-1234-4abc-8def-0123456789abc",
                                        "01234567-1234-4abc-8def-0123456789ag",
                                        "01234567-1234-4abc-8def-01234567/9ab",
                                        "../34567-1234-4abc-8def-0123456789ab",
                                        "0123456--1234-4abc-8def-0123456789ab"};
    OrthancPluginErrorCode code;
    const int files = files_below(fake.root);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK(create(wrong[i], bytes) == OrthancPluginErrorCode_ParameterOutOfRange, wrong[i]);
        free(read_whole(wrong[i], &code).data);
        CHECK(code == OrthancPluginErrorCode_ParameterOutOfRange, wrong[i]);
        CHECK(range_reads_back(wrong[i], bytes, 0, 1) == 0, wrong[i]);
        CHECK(remove_file(wrong[i]) == OrthancPluginErrorCode_ParameterOutOfRange, wrong[i]);
    }
    CHECK(files_below(fake.root) == files, "a refused id leaves nothing");
    CHECK(create("ABCDEF67-1234-4ABC-8DEF-0123456789AB", bytes) == 0, "an id in capitals");
    CHECK(reads_back("ABCDEF67-1234-4ABC-8DEF-0123456789AB", bytes), "an id in capitals");
    CHECK(remove_file("ABCDEF67-1234-4ABC-8DEF-0123456789AB") == 0, "an id in capitals");
}

/* A file that Orthanc wrote before there was a plugin. */
static void check_before(struct bytes bytes)
{
    char id[37];
    make_id(id, 7000);
    CHECK(create(id, bytes) == 0 && remove_file(id) == 0, "its folder");
    save(path_of(id, ""), bytes);
    CHECK(reads_back(id, bytes), "a file from before");
    CHECK(range_reads_back(id, bytes, 5, bytes.size - 5) == 1, "a file from before");
    CHECK(range_reads_back(id, bytes, 5, bytes.size - 4) == 0, "a file from before");
    CHECK(range_code == OrthancPluginErrorCode_BadRange, "a range that ends late");
    CHECK(create(id, bytes) != 0, "a file from before");
    CHECK(remove_file(id) == 0 && !exists(path_of(id, "")), "a file from before");
}

/* Each byte of a .tsr in turn is damaged, and the file ends early: an error, or the right bytes, where it has a part
 * twice. */
static void check_damage(struct bytes bytes)
{
    char id[37];
    int errors = 0;
    make_id(id, 7001);
    CHECK(create(id, bytes) == 0, "to be damaged");
    const struct bytes tsr = load(path_of(id, ".tsr"));
    CHECK(tsr.data != NULL, "it is a .tsr");
    for (size_t at = 0; tsr.data && at < tsr.size; at += 1 + tsr.size / 300) {
        struct bytes wrong = copy_bytes(tsr.data, tsr.size);
        wrong.data[at] ^= 0x10;
        if (at % 7 == 3) wrong.size = at;
        save(path_of(id, ".tsr"), wrong);
        OrthancPluginErrorCode code;
        struct bytes got = read_whole(id, &code);
        CHECK(code != 0 || equal(got, bytes), "damaged");
        errors += code == OrthancPluginErrorCode_CorruptedFile;
        CHECK(range_reads_back(id, bytes, at % bytes.size, (bytes.size - at % bytes.size) / 2) >= 0, "damaged");
        CHECK(range_reads_back(id, bytes, 0, 900) >= 0, "damaged");
        free(got.data);
        free(wrong.data);
    }
    CHECK(errors > 100, "damage is seen");
    CHECK(metric_of("tessera_reads_damaged") >= (float)errors, "counted");
    save(path_of(id, ".tsr"), tsr);
    CHECK(reads_back(id, bytes), "mended");
    CHECK(remove_file(id) == 0, "damaged");
    free(tsr.data);
}

/* A .tsr that restores another file is an error, whoever put it there: one with loss; one of a series. */
static void check_others(const char *name, struct bytes bytes)
{
    char id[37];
    struct tsr_engine *engine = NULL;
    struct tsr_compress_options options = TSR_COMPRESS_OPTIONS;
    const struct tsr_data_source source = tsr_from_path(name);
    make_id(id, 7002);
    CHECK(create(id, bytes) == 0 && remove_file(id) == 0, "its folder");
    const struct tsr_data_sink sink = tsr_to_path(path_of(id, ".tsr"));
    options.loss = TSR_LOSS_MAX_ERROR, options.max_error = 3;
    CHECK(tsr_engine_create(NULL, &engine, NULL) == TSR_OK, "an engine");
    CHECK(tsr_compress(engine, &source, &sink, &options, NULL, NULL) == TSR_OK, name);
    CHECK(!reads_back(id, bytes) && strstr(fake.said, "same file"), fake.said);
    CHECK(range_reads_back(id, bytes, 0, 100) == 0, "lossy");
    CHECK(remove_file(id) == 0, "lossy");
    const struct tsr_series_file one = {source, "one"};
    CHECK(tsr_compress_series(engine, &one, 1, &sink, NULL, NULL, NULL, NULL, NULL) == TSR_OK, name);
    CHECK(!reads_back(id, bytes), fake.said);
    CHECK(range_reads_back(id, bytes, 0, 100) == 0, "a series");
    CHECK(remove_file(id) == 0, "a series");
    tsr_engine_destroy(engine);
}

/* Each fsync of a store fails in turn: then the file is refused, and nothing is left, be it coded or kept as it is. */
static void check_syncs(struct bytes bytes)
{
    char id[37];
    for (int form = 0; form < 2; form++) {
        const struct bytes file = {bytes.data, form == 0 ? bytes.size : 0};
        make_id(id, 7010 + (unsigned)form);
        const int before = atomic_load(&syncs), files = atomic_load(&file_syncs), left = files_below(fake.root);
        CHECK(create(id, file) == 0 && remove_file(id) == 0, "synced");
        const int all = atomic_load(&syncs) - before;
        CHECK(atomic_load(&file_syncs) - files >= 1, "the file is synced");
        CHECK(all - (atomic_load(&file_syncs) - files) >= 3, "its folder, that of the folder, and the root are synced");
        for (int i = 0; i < all; i++) {
            make_id(id, 7100 + (unsigned)(form * 50 + i)); /* in a new folder */
            atomic_store(&sync_that_fails, atomic_load(&syncs) + i);
            const OrthancPluginErrorCode code = create(id, file);
            atomic_store(&sync_that_fails, -1);
            CHECK(code != 0 || reads_back(id, file), "a sync fails");
            /* That of a .tsr, or of its folder in the library, may be made good: the file is kept as it is. */
            if (code == 0) CHECK(form == 0 && exists(path_of(id, "")) && remove_file(id) == 0, "a sync fails");
            CHECK(files_below(fake.root) == left, "nothing is left");
        }
    }
}

/* Limits: of the size of files, as a disk that is full, and of the memory. */
static void check_limits(struct bytes bytes)
{
    char id[37];
    struct rlimit limit, few;
    const int left = files_below(fake.root);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &limit);
    few = limit;
    few.rlim_cur = 1000;
    make_id(id, 7004);
    setrlimit(RLIMIT_FSIZE, &few);
    const OrthancPluginErrorCode code = create(id, bytes);
    setrlimit(RLIMIT_FSIZE, &limit);
    CHECK(code == OrthancPluginErrorCode_CannotWriteFile, fake.said);
    CHECK(files_below(fake.root) == left, "nothing is left");
    CHECK(metric_of("tessera_files_refused") > 0, "counted");
    CHECK(create(id, bytes) == 0 && reads_back(id, bytes) && remove_file(id) == 0, "then there is room");
}

/* A file that the engine's memory does not hold is kept as it is; one that was stored with more memory is read all the
 * same, or says that memory is missing. */
static void check_memory(struct bytes small)
{
    char id[37], other[37], configuration[1200];
    static const char head[] = "P5 3000 3000 255\n"; /* its raster takes 90 MB of memory */
    struct bytes large = copy_bytes(head, sizeof head - 1);
    uint32_t random = 1;
    for (size_t i = 0; i < 3000 * 3000; i++) {
        random = random * 1664525 + 1013904223;
        const uint8_t sample = (uint8_t)(i / 3000 / 16 + (random >> 24 & 3));
        append(&large, &sample, 1);
    }
    make_id(id, 7005);
    make_id(other, 7006);
    CHECK(create(other, large) == 0, "with memory");
    finalize();
    snprintf(configuration, sizeof configuration,
             "{\"StorageDirectory\":\"%s\",\"Tessera\":{\"Memory\":\"80M\",\"Threads\":1}}", fake.root);
    if (start(configuration) != 0) {
        bad("it starts with little memory", fake.said);
        exit(1);
    }
    CHECK(create(id, large) == 0, fake.said);
    CHECK(exists(path_of(id, "")) && strstr(fake.said, "stored as it is"), fake.said);
    CHECK(metric_of("tessera_files_kept_as_they_are") == 1, "counted");
    CHECK(reads_back(id, large), fake.said);
    CHECK(reads_back(other, large) || strstr(fake.said, "memory"), fake.said);
    CHECK(create(id, large) != 0, "it is there");
    CHECK(remove_file(id) == 0 && remove_file(other) == 0, "large");
    CHECK(create(id, small) == 0 && exists(path_of(id, ".tsr")) && reads_back(id, small) && remove_file(id) == 0,
          "a small one is coded");
    /* What is stored takes less memory than its bytes, and is read by a temporary file where these are too many. */
    uint8_t some[1 << 12];
    while (large.size < 48 << 20) {
        for (size_t i = 0; i < sizeof some; i++) some[i] = (uint8_t)((random = random * 1664525 + 1013904223) >> 24);
        append(&large, some, sizeof some);
    }
    large.data[0] = 'Q';
    CHECK(create(id, large) == 0 && exists(path_of(id, ".tsr")), fake.said);
    CHECK(reads_back(id, large) && remove_file(id) == 0, fake.said);
    free(large.data);
}

/* Many at once, through the one engine. */
static void check_threads(char **names, int count)
{
    enum { AT_ONCE = 24 };
    struct call c[AT_ONCE];
    char id[AT_ONCE][37];
    pthread_t thread[AT_ONCE];
    struct bytes bytes[AT_ONCE];
    for (int what = CREATE; what <= REMOVE; what++) {
        for (int i = 0; i < AT_ONCE; i++) {
            make_id(id[i], 8000 + (unsigned)i);
            if (what == CREATE) bytes[i] = load(names[i % count]);
            c[i] = (struct call){(enum deed)what, id[i], what == CREATE ? bytes[i] : (struct bytes){NULL, 0}, 0, 0};
            if (what == RANGE) c[i].bytes = (struct bytes){malloc(400), bytes[i].size < 300 ? 0 : 300};
            thread[i] = begin(&c[i]);
        }
        for (int i = 0; i < AT_ONCE; i++) {
            pthread_join(thread[i], NULL);
            CHECK(c[i].code == 0, names[i % count]);
            if (what == READ) CHECK(equal(c[i].bytes, bytes[i]), names[i % count]);
            if (what == RANGE) CHECK(memcmp(c[i].bytes.data, bytes[i].data, c[i].bytes.size) == 0, names[i % count]);
            if (what == READ || what == RANGE) free(c[i].bytes.data);
            if (what == REMOVE) free(bytes[i].data);
        }
    }
}

static void check_all(char **names, int count)
{
    char configuration[1200];
    const struct bytes first = load(names[0]);
    umask(027);
    check_settings();
    /* A relative folder begins where the configuration is. */
    snprintf(fake.root, sizeof fake.root, "%s/store", fake.place);
    CHECK(
        start("{\"StorageDirectory\":\"store\",\"Tessera\":{\"Effort\":3,\"Threads\":2,\"Memory\":\"512M\",\"Engine\":"
              "\"cpu\"}}") == 0,
        fake.said);
    CHECK(strstr(fake.said, "effort 3, engine cpu, 2 threads"), fake.said);
    for (int i = 0; i < count; i++) check_file(names[i], (unsigned)i);
    CHECK(metric_of("tessera_files_coded") + metric_of("tessera_files_stored") +
                  metric_of("tessera_files_kept_as_they_are") ==
              (float)count,
          "counted");
    CHECK(metric_of("tessera_files_refused") == (float)count, "second files of an id are counted");
    check_ids(first);
    check_before(first);
    check_damage(first);
    check_others(names[0], first);
    check_syncs(first);
    check_limits(first);
    check_threads(names, count);
    check_memory(first);
    CHECK(files_below(fake.root) == 0, "all files are removed");
    finalize();
    snprintf(configuration, sizeof configuration, "{\"StorageDirectory\":\"%s\"}", fake.root);
    CHECK(start(configuration) == 0, fake.said);
    finalize();
    free(first.data);
}

/* ---- Mutants ---------------------------------------------------------------------------------------------- */

static uint64_t random_state;
static size_t below(size_t limit)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return limit ? (size_t)(random_state >> 33) % limit : 0;
}

/* A DICOM file with some of its bytes changed, most of them in its header. */
static struct bytes change(struct bytes original)
{
    struct bytes b = copy_bytes(original.data, original.size);
    for (size_t i = 1 + below(4); i > 0 && b.size > 8; i--) {
        const size_t at = below(below(4) ? b.size < 2000 ? b.size : 2000 : b.size), what = below(7);
        const size_t count = 1 + below(below(4) ? 8 : b.size - at);
        const size_t some = count < b.size - at ? count : b.size - at;
        if (what == 0) b.data[at] ^= (uint8_t)(1u << below(8));
        if (what == 1) b.data[at] = (uint8_t)below(256);
        if (what == 2) memset(b.data + at, below(2) ? 0xff : 0, some);
        if (what == 3) b.size = below(4) ? b.size : at;
        if (what == 4) memmove(b.data + at, b.data + at + some, b.size - at - some), b.size -= some;
        if (what == 5) memmove(b.data + at, b.data + below(b.size - some), some);
        if (what == 6) append(&b, original.data, some < 4000 ? some : 4000);
    }
    return b;
}

static void store_mutant(struct bytes original, const char *about)
{
    const char *const id = "01234567-1234-4abc-8def-0123456789ab";
    struct bytes b = change(original);
    const size_t offset = below(b.size + 1), count = below(b.size - offset + 1);
    CHECK(create(id, b) == 0, about);
    CHECK(reads_back(id, b), about);
    CHECK(range_reads_back(id, b, offset, count) == 1, about);
    CHECK(remove_file(id) == 0, about);
    free(b.data);
}

static bool is_small(const struct seed *seed)
{
    size_t bytes = 0;
    for (int i = 0; i < seed->sections.count; i++) bytes += seed->sections.section[i].body.size + 1 + 8;
    return bytes >= seed->file.size;
}

/* Whether a mutant begins with the header of a file. Where the index is made again, so is the header's copy, which gets
 * a right check whatever it says: another header is then forged, not damaged. */
static bool has_header_of(struct bytes mutant, const struct seed *seed)
{
    const struct bytes body = seed->sections.section[0].body;
    uint8_t number[10];
    const size_t at = 4 + 1 + put_number(number, body.size);
    return mutant.size >= at + body.size && memcmp(mutant.data + at, body.data, body.size) == 0;
}

/* The original, or that of the file whose parts a mutant got, or an error. A file whose checks were made anew is told
 * apart from a right one by the hash of the whole alone, which a range does not ask for. */
static int read_mutant(const struct combination *pair, const struct bytes *originals, long number, const char *about)
{
    const char *const id = "01234567-1234-4abc-8def-0123456789ac";
    enum mutation mutation = (enum mutation)(number % MUTATIONS);
    /* All modes but the last: a file whose proof is made again may be another right file. */
    const long turn = number / MUTATIONS, mode = turn % PROVEN;
    /* A small file (FORMAT.md 3.10) has no sections that could change as they are. */
    if (mode == AS_LEFT && (is_small(&pair->seed[0]) || is_small(&pair->seed[1])))
        mutation = (enum mutation)(mutation % DROP);
    struct mutant m = make_mutant(pair, mutation, below(SIZE_MAX), 0, turn / PROVEN * MODES + mode);
    OrthancPluginErrorCode code;
    save(path_of(id, ".tsr"), m.file);
    struct bytes got = read_whole(id, &code);
    CHECK(code != 0 || equal(got, originals[0]) || equal(got, originals[1]), about);
    const struct bytes own = originals[m.from[0] == &pair->seed[1]], other = originals[m.from[0] == &pair->seed[0]];
    const size_t offset = below(own.size), count = below(own.size - offset) + 1;
    const bool is_right =
        range_reads_back(id, own, offset, count) >= 0 || range_reads_back(id, other, offset, count) >= 0;
    const bool is_known = has_header_of(m.file, &pair->seed[0]) || has_header_of(m.file, &pair->seed[1]);
    if (m.mode == AS_LEFT || (m.mode == INDEXED && is_known)) CHECK(is_right, about);
    free(got.data);
    free(m.file.data);
    return code == 0 ? 0 : 1;
}

static void attack(long count, uint64_t seed, char **names, int files)
{
    char configuration[1200], about[400];
    const char *const id = "01234567-1234-4abc-8def-0123456789ac";
    is_direct = true;
    long outcomes[2] = {0}, stored = 0;
    snprintf(fake.root, sizeof fake.root, "%s/mutants", fake.place);
    snprintf(configuration, sizeof configuration,
             "{\"StorageDirectory\":\"%s\",\"Tessera\":{\"Effort\":2,\"Threads\":1,\"Memory\":\"512M\"}}", fake.root);
    if (start(configuration) != 0) {
        bad("it starts", fake.said);
        return;
    }
    const long each = count / (files / 2);
    for (int i = 0; i + 1 < files; i += 2) {
        const struct bytes originals[2] = {load(names[i]), load(names[i + 1])};
        struct combination pair = {.name = ""};
        for (int which = 0; which < 2; which++) {
            remove_file(id); /* of a run that crashed */
            CHECK(create(id, originals[which]) == 0, names[i + which]);
            pair.seed[which].file = load(path_of(id, ".tsr"));
            CHECK(split_sections(pair.seed[which].file.data, pair.seed[which].file.size, &pair.seed[which].sections),
                  names[i + which]);
            CHECK(remove_file(id) == 0, names[i + which]);
        }
        random_state = seed;
        for (long n = 0; n < each && failures < 20; n++) {
            random_state = (seed << 32) + (uint64_t)n * 2 + 1;
            snprintf(about, sizeof about, "seed %llu, number %ld of %.200s", (unsigned long long)seed, n, names[i]);
            if (n % 2 == 0)
                store_mutant(originals[n / 2 % 2], about), stored++;
            else
                outcomes[read_mutant(&pair, originals, n / 2, about)]++;
        }
        remove_file(id);
        for (int which = 0; which < 2; which++) {
            free(originals[which].data);
            free(pair.seed[which].file.data);
            free_sections(&pair.seed[which].sections);
        }
    }
    finalize();
    printf("%ld mutants stored and read back; %ld mutants of .tsr read: %ld restored, %ld errors\n", stored,
           outcomes[0] + outcomes[1], outcomes[0], outcomes[1]);
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "usage: orthanc_fake PLUGIN WORK check FILE... | mutants COUNT SEED FILE...\n");
        return 2;
    }
    void *const plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!plugin) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    *(void **)&initialize = dlsym(plugin, "OrthancPluginInitialize");
    *(void **)&finalize = dlsym(plugin, "OrthancPluginFinalize");
    snprintf(fake.place, sizeof fake.place, "%s", argv[2]);
    if (strcmp(argv[3], "check") == 0)
        check_all(argv + 4, argc - 4);
    else if (argc > 7)
        attack(atol(argv[4]), strtoull(argv[5], NULL, 10), argv + 6, argc - 6);
    dlclose(plugin);
    if (failures == 0) printf("%s: passed\n", argv[3]);
    return failures > 0;
}
