/* Names of inputs, of their places in the layout, and of outputs: what they become, and whether they can be meant. */
#include "names.h"

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char suffix[] = ".tsr";

bool writes(const struct options *options)
{
    return options->verb == VERB_COMPRESS || options->verb == VERB_DECOMPRESS || options->verb == VERB_EXPORT;
}

bool has_tsr_suffix(const char *name)
{
    const size_t length = strlen(name), tail = sizeof suffix - 1;
    return length > tail && strcmp(name + length - tail, suffix) == 0;
}

char *join(const char *folder, const char *name)
{
    char *path = NULL;
    const size_t length = strlen(folder);
    const bool slash = length == 0 || folder[length - 1] == '/';
    return asprintf(&path, "%s%s%s", folder, slash ? "" : "/", name) < 0 ? NULL : path;
}

bool is_same_file(const char *path, const char *other)
{
    struct stat one, two;
    return path && stat(path, &one) == 0 && stat(other, &two) == 0 && one.st_dev == two.st_dev &&
           one.st_ino == two.st_ino && one.st_ino != 0;
}

bool is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

char *last_name(const char *path)
{
    char *copy = strdup(strcmp(path, "-") == 0 ? "stdin" : path), *name = copy ? strdup(basename(copy)) : NULL;
    free(copy);
    return name;
}

char *layout_name(const struct options *options, const char *path)
{
    char *const copy = strdup(path), *const name = calloc(strlen(path) + 2, 1);
    bool keeps = copy && name && path[0] != '/' && strcmp(path, "-") != 0 && !options->out.flat;
    char *rest = copy;
    for (const char *part; keeps && (part = strsep(&rest, "/"));) {
        if (!part[0] || strcmp(part, ".") == 0) continue;
        keeps = strcmp(part, "..") != 0;
        if (name[0]) strcat(name, "/");
        strcat(name, part);
    }
    free(copy);
    if (keeps) return name;
    free(name);
    return last_name(path);
}

char *original_name(const struct options *options, const char *name)
{
    if (options->verb == VERB_COMPRESS || options->verb == VERB_COMPARE) return strdup(name);
    if (has_tsr_suffix(name)) return strndup(name, strlen(name) - (sizeof suffix - 1));
    char *result = NULL;
    return asprintf(&result, "%s.restored", name) < 0 ? NULL : result;
}

char *output_name(const struct options *options, const char *original)
{
    char *result = NULL;
    if (options->picture.is_region) return asprintf(&result, "%s.region.npy", original) < 0 ? NULL : result;
    if (options->picture.salvages) return asprintf(&result, "%s.salvaged.npy", original) < 0 ? NULL : result;
    if (options->verb == VERB_DECOMPRESS) return strdup(original);
    if (options->verb == VERB_EXPORT) { /* never the original's: -f would overwrite that */
        const size_t length = strlen(original), stem = length > 4 && !strcasecmp(original + length - 4, ".dcm") ? 4 : 0;
        const int kept = (int)(length - stem);
        return asprintf(&result, "%.*s.%s.dcm", kept, original, export_word(options->to.syntax)) < 0 ? NULL : result;
    }
    return asprintf(&result, "%s%s", original, suffix) < 0 ? NULL : result;
}

/* Whether a name ends as those of images do; *end is that ending. */
static bool has_image_ending(const char *name, const char **end)
{
    static const char *const endings[] = {".png", ".jpg",  ".jpeg", ".jp2", ".jxl", ".webp", ".avif", ".gif",
                                          ".bmp", ".tiff", ".tif",  ".pgm", ".ppm", ".pnm",  ".dcm",  ".dicom"};
    const char *const last = strrchr(name, '/'), *const dot = strrchr(last ? last : name, '.');
    *end = dot;
    for (size_t i = 0; dot && i < sizeof endings / sizeof endings[0]; i++)
        if (strcasecmp(dot, endings[i]) == 0) return true;
    return false;
}

/* A name that people give to one file. */
static bool looks_like_file(const char *name)
{
    static const char *const endings[] = {suffix, ".zip", ".tar", ".tgz", ".gz", ".zst", ".xz", ".7z", ".nii", ".npy"};
    const char *end;
    const size_t length = strlen(name);
    bool is_one = has_image_ending(name, &end);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        const size_t tail = strlen(endings[i]);
        is_one |= length > tail && strcasecmp(name + length - tail, endings[i]) == 0;
    }
    return is_one;
}

enum tsr_status check_folder(const struct options *o, struct tsr_error *error)
{
    struct stat status;
    if (!o->out.path) return TSR_OK;
    if (strcmp(o->out.path, "-") == 0) return refuse(error, TSR_ERROR_USAGE, "-o - takes one file: name one input");
    if (stat(o->out.path, &status) == 0)
        return S_ISDIR(status.st_mode)
                   ? TSR_OK
                   : refuse(error, TSR_ERROR_WRITE, "%s is not a folder, and several inputs need one", o->out.path);
    if (!looks_like_file(o->out.path)) return TSR_OK;
    if (o->verb == VERB_COMPRESS && has_tsr_suffix(o->out.path))
        return refuse(
            error, TSR_ERROR_USAGE,
            "each input makes a .tsr of its own, and %s would be a folder of them: --series %s makes one file of "
            "all, -o %s/ the folder",
            o->out.path, o->out.path, o->out.path);
    return refuse(error, TSR_ERROR_USAGE, "several files are made, and %s would be a folder of them: -o %s/ makes one",
                  o->out.path, o->out.path);
}

enum tsr_status check_not_original(const struct task *task, const char *path, struct tsr_error *error)
{
    const char *const of = task->member ? task->member : task->input, *const folder = strrchr(of, '/'),
                      *const last = strrchr(path, '/'), *const name = last ? last + 1 : path,
                      *const original = folder ? folder + 1 : of;
    const size_t length = strlen(name);
    const char *const rest = original + length;
    if (strncmp(name, original, length) != 0 || (*rest && strcmp(rest, suffix) != 0)) return TSR_OK;
    return refuse(error, TSR_ERROR_USAGE,
                  "%s is the name of the original, which a picture of its samples never gets: name another one", path);
}

enum tsr_status check_picture_name(const struct task *task, struct tsr_error *error)
{
    static const char *const endings[] = {".npy", ".png", ".pgm", ".ppm", ".pnm"};
    if (task->to_stdout) return TSR_OK;
    const char *const output = task->output, *const last = strrchr(output, '/'),
                      *const dot = strrchr(last ? last : output, '.');
    for (size_t i = 0; dot && i < sizeof endings / sizeof endings[0]; i++)
        if (strcmp(dot, endings[i]) == 0) return check_not_original(task, output, error);
    return refuse(error, TSR_ERROR_USAGE, "%s names no picture that can be written: .npy, .png, .pgm or .ppm ends it",
                  output);
}

enum tsr_status check_ending(const struct options *options, struct tsr_error *error)
{
    const char *end, *original_end;
    const char *const output = options->out.path;
    if (options->picture.is_region || options->picture.salvages) return TSR_OK; /* check_picture_name */
    if (!has_image_ending(output, &end) || is_same_file(options->in.names[0], output)) return TSR_OK;
    if (options->verb == VERB_COMPRESS)
        return refuse(error, TSR_ERROR_USAGE, "compress writes a .tsr file, not %s: name it %s.tsr", output, output);
    char *const original = original_name(options, options->in.names[0]);
    const bool differs = original && has_image_ending(original, &original_end) && strcasecmp(end, original_end) != 0;
    const enum tsr_status status =
        differs ? refuse(error, TSR_ERROR_USAGE,
                         "decompress restores the original, a %s file, and makes no %s of it: name it %.*s%s",
                         original_end + 1, end + 1, (int)(end - output), output, original_end)
                : TSR_OK;
    free(original);
    return status;
}

bool names_one_file(const struct options *o)
{
    const bool several = o->in.count > 1 || o->in.recursive || o->in.files_from;
    if (several || !writes(o) || o->series.path) return false;
    if (!o->out.path) return strcmp(o->in.names[0], "-") == 0;
    const size_t length = strlen(o->out.path);
    return strcmp(o->out.path, "-") == 0 || (!is_folder(o->out.path) && o->out.path[length ? length - 1 : 0] != '/');
}
