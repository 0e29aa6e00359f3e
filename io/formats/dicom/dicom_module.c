/* Loads the module when it is needed, and calls it. */
#define _GNU_SOURCE /* dladdr */
#include "dicom_module.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#define TEXT_OF_2(name) #name
#define TEXT_OF(name) TEXT_OF_2(name)

static const char module_file[] = "tessera-dicom.so";
static const char without_dcmtk[] = "it needs DCMTK, and this build has none";

/* Where the module is: below the folder of the library, or below the library's folder as seen from the program's. Else
 * where this build would install it. */
static const char *const module_folders[] = {"tessera", TSR_LIB_FROM_PROGRAM "/tessera"};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct tsr_dicom_module *loaded; /* NULL: not yet */

/* The program's file. Without /proc it is what the kernel was told to start, which is relative to the folder that the
 * process began in. dladdr knows argv[0] alone. */
static bool find_program(char path[PATH_MAX])
{
    const ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (length >= 0) {
        path[length] = '\0';
        return true;
    }
    const char *const started = (const char *)getauxval(AT_EXECFN);
    return started && realpath(started, path);
}

/* The folder of the file that this code is in: the shared library, or the program. */
static bool find_own_folder(char path[PATH_MAX])
{
    Dl_info own, program;
    if (!dladdr(&module_file, &own)) return false;
    if (dladdr((const void *)getauxval(AT_ENTRY), &program) && program.dli_fbase == own.dli_fbase) {
        if (!find_program(path)) return false;
    } else if (snprintf(path, PATH_MAX, "%s", own.dli_fname) >= PATH_MAX) {
        return false;
    }
    char *const slash = strrchr(path, '/');
    if (slash) *slash = '\0';
    return slash != NULL;
}

bool tsr_dicom_find_beside(const char *file, char path[TSR_MODULE_PATH])
{
    char folder[PATH_MAX];
    const bool has_folder = find_own_folder(folder);
    for (size_t i = 0; has_folder && i < sizeof module_folders / sizeof module_folders[0]; i++) {
        snprintf(path, TSR_MODULE_PATH, "%s/%s/%s", folder, module_folders[i], file);
        if (access(path, F_OK) == 0) return true;
    }
    snprintf(path, TSR_MODULE_PATH, "%s/%s", TSR_INSTALLED_MODULES, file);
    return access(path, F_OK) == 0;
}

/* Opens the module where it is installed, or else where the linker looks: the path in a program that is linked with the
 * static library leads to the module (tessera.pc, tesseraConfig.cmake). */
static void *open_file(void)
{
    char path[TSR_MODULE_PATH];
    const bool is_there = tsr_dicom_find_beside(module_file, path);
    return dlopen(is_there ? path : module_file, RTLD_NOW | RTLD_LOCAL);
}

static enum tsr_status fail_opening(struct tsr_error *error)
{
    const char *const why = dlerror();
    const int another = open("/", O_RDONLY | O_CLOEXEC);
    if (another < 0 && (errno == EMFILE || errno == ENFILE))
        return tsr_fail(error, TSR_ERROR_LIMIT, "too many open files to load %s", module_file);
    if (another >= 0) close(another);
    if (why && (strstr(why, "annot allocate") || strstr(why, "failed to map") || strstr(why, "annot map")))
        return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to load %s", module_file);
    return tsr_fail(error, TSR_ERROR_READ, "it needs Tessera's module for DICOM, which cannot be loaded: %s",
                    why ? why : module_file);
}

/* DCMTK's libraries allocate while they are loaded, and end the process where there is no memory. Its dictionary takes
 * 2 MB in 78,000 blocks, and DCMTK does not check whether it gets each block. So the heap is grown to twice as much
 * before: freed memory below a block in use stays in the heap. Returns the block in use, or NULL. */
static void *fill_heap(void)
{
    enum { BLOCK_BYTES = 1 << 16, BLOCKS = 64 };
    void *block[BLOCKS];
    int count = 0;
    while (count < BLOCKS && (block[count] = malloc(BLOCK_BYTES))) count++;
    void *const above = count == BLOCKS ? block[BLOCKS - 1] : NULL;
    for (int i = 0; i < (above ? BLOCKS - 1 : count); i++) free(block[i]);
    return above;
}

static enum tsr_status load(struct tsr_error *error)
{
    void *const above = fill_heap();
    if (!above) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for DCMTK");
    enum tsr_status status = TSR_OK;
    void *const file = open_file();
    const struct tsr_dicom_module *const module = file ? dlsym(file, TEXT_OF(TSR_DICOM_MODULE)) : NULL;
    if (!module)
        status = fail_opening(error);
    else if (strcmp(module->version, TSR_VERSION_STRING) != 0)
        status = tsr_fail(error, TSR_ERROR_READ, "it needs Tessera's module for DICOM, and %s is of version %s",
                          module_file, module->version);
    else
        module->prepare();
    if (status == TSR_OK) loaded = module;
    free(above);
    return status;
}

enum { HAS_JPEG_2000 = TSR_WITH_OPENJPEG + TSR_WITH_OPENJPH > 0 };

static enum tsr_status need_module(const struct tsr_dicom_module **module, struct tsr_error *error)
{
    *module = NULL;
    pthread_mutex_lock(&lock);
    const enum tsr_status status = loaded ? TSR_OK : load(error);
    *module = loaded;
    pthread_mutex_unlock(&lock);
    return status;
}

enum tsr_status tsr_dicom_make_explicit(const uint8_t *bytes, size_t size, struct tsr_dicom_form form,
                                        struct tsr_dicom_made *made, struct tsr_error *error)
{
    const struct tsr_dicom_module *module;
    *made = (struct tsr_dicom_made){NULL, 0};
    if (!TSR_WITH_DCMTK) return tsr_fail(error, TSR_ERROR_VERSION, without_dcmtk);
    TSR_TRY(need_module(&module, error));
    return module->make_explicit(bytes, size, form, made, error);
}

enum tsr_status tsr_dicom_print(const struct tsr_dicom_bytes *header, bool as_json, struct tsr_dicom_made *made,
                                struct tsr_error *error)
{
    const struct tsr_dicom_module *module;
    *made = (struct tsr_dicom_made){NULL, 0};
    if (!TSR_WITH_DCMTK) return tsr_fail(error, TSR_ERROR_VERSION, without_dcmtk);
    TSR_TRY(need_module(&module, error));
    return module->print(header, as_json, made, error);
}

enum tsr_status tsr_dicom_encode_jpeg_2000(const struct tsr_image *image, const uint8_t *raster, int bits, bool is_ht,
                                           bool is_rgb, struct tsr_dicom_made *made, struct tsr_error *error)
{
    const struct tsr_dicom_module *module;
    *made = (struct tsr_dicom_made){NULL, 0};
    if (!HAS_JPEG_2000) return tsr_fail(error, TSR_ERROR_VERSION, "this build has no libopenjp2 to code JPEG 2000");
    TSR_TRY(need_module(&module, error));
    return module->encode_jpeg_2000(image, raster, bits, is_ht, is_rgb, made, error);
}

enum tsr_status tsr_dicom_decode_jpeg_2000(const struct tsr_image *image, const uint8_t *stream, size_t size,
                                           uint8_t *raster, struct tsr_error *error)
{
    const struct tsr_dicom_module *module;
    if (!HAS_JPEG_2000) return tsr_fail(error, TSR_ERROR_VERSION, "this build has no libopenjp2 to code JPEG 2000");
    TSR_TRY(need_module(&module, error));
    return module->decode_jpeg_2000(image, stream, size, raster, error);
}

enum tsr_status tsr_dicom_decode_jpeg(const struct tsr_image *image, const uint8_t *stream, size_t size,
                                      uint8_t *raster, struct tsr_error *error)
{
    const struct tsr_dicom_module *module;
    if (!TSR_WITH_JPEG)
        return tsr_fail(error, TSR_ERROR_VERSION, "this build has no libjpeg to decode a frame of lossy JPEG");
    TSR_TRY(need_module(&module, error));
    return module->decode_jpeg(image, stream, size, raster, error);
}
