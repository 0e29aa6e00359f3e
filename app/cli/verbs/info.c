/* tessera info */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/cli/cli.h"
#include "app/cli/json.h"

/* Which part is damaged, and what was read instead. */
static const char *damage_text(const struct tsr_info *info)
{
    static char text[200];
    snprintf(text, sizeof text, "the %s is damaged; what it says was read from its other copy", info->damage);
    return text;
}

/* That the module for DICOM is missing is said of the first file, and of the others their number. */
static size_t without_module;

static void say_once(const struct tsr_error *error)
{
    if (!lacks_module(error) || without_module++ == 0) say_error(error);
}

/* Coded without samples: its streams, or its elements, are modelled. */
static bool is_packed(const struct tsr_info *info)
{
    return info->returns == TSR_RETURNS_STREAMS || info->returns == TSR_RETURNS_FILES;
}

/* Whether a DICOM file's transfer syntax is one of coded frames: PS3.6, table A-1. */
static bool has_coded_frames(struct tsr_reader *reader, uint32_t member)
{
    enum { TRANSFER_SYNTAX = 0x00020010 };
    static const char *const coded[] = {"1.2.840.10008.1.2.4.", "1.2.840.10008.1.2.5", "1.2.840.10008.1.2.1.98"};
    struct tsr_metadata *metadata;
    struct tsr_error ignored;
    bool found = false;
    if (tsr_read_header(reader, member, &metadata, &ignored) != TSR_OK) return false;
    for (size_t i = 0; i < metadata->element_count && !found; i++) {
        const struct tsr_element *const element = &metadata->elements[i];
        if (element->tag != TRANSFER_SYNTAX || element->depth > 0 || !element->value) continue;
        for (size_t k = 0; k < sizeof coded / sizeof coded[0]; k++)
            found |= element->count >= strlen(coded[k]) && !memcmp(element->value, coded[k], strlen(coded[k]));
    }
    tsr_metadata_free(metadata);
    return found;
}

/* What became of a DICOM file's coded frames; NULL: it has none. */
static const char *encapsulated_word(struct tsr_reader *reader, uint32_t member, const struct tsr_info *info)
{
    if (info->kind != TSR_KIND_DICOM) return NULL;
    if (info->returns == TSR_RETURNS_ENCAPSULATED) return "exact";
    if (info->has_image) return info->promise == TSR_PROMISE_SAMPLES ? "samples alone" : NULL;
    if (!has_coded_frames(reader, member)) return NULL;
    return is_packed(info) ? "exact" : "stored";
}

/* Whether no frame is coded as samples. */
static bool are_units(const struct tsr_info *info)
{
    return info->has_image && info->units == info->image.frames;
}

static const char *encapsulated_text(const char *word, const struct tsr_info *info)
{
    return strcmp(word, "stored") == 0           ? "general compression alone"
           : strcmp(word, "samples alone") == 0  ? "a native file comes back"
           : !info->has_image || are_units(info) ? "they come back, and were coded without being decoded"
                                                 : "they come back, made again from their samples";
}

static const char *promise(const struct tsr_info *info)
{
    if (info->promise == TSR_PROMISE_FILE) return "the original file, byte for byte";
    return info->promise == TSR_PROMISE_LOSSY ? "a lossy image" : "pixels identical, file may differ";
}

/* How the windows of a lossy image came through. */
static void print_windows(const struct tsr_info *info)
{
    for (uint32_t w = 0; w < info->windows; w++) {
        const struct tsr_window_loss *const window = &info->window[w];
        printf("  window     %g/%g: ", window->center, window->width);
        if (window->samples == 0) printf("no samples inside\n");
        if (window->samples == 0) continue;
        printf("%llu samples inside, ", (unsigned long long)window->samples);
        if (isfinite(window->psnr_db))
            printf("%.2f dB, RMSE %.3g%s\n", window->psnr_db, window->rmse,
                   window->is_judged ? "" : " (too few samples to judge)");
        else
            printf("nothing lost there\n");
    }
}

static void print_kept(const struct tsr_stored_values *kept, bool is_first)
{
    printf("%s%d", is_first ? "\n  keeps      stored values " : ", ", kept->lowest);
    if (kept->highest > kept->lowest) printf(" to %d", kept->highest);
}

static void print_base(const struct tsr_info *info)
{
    printf("  base       %llu bytes, a file with loss in this one, which --base reads alone",
           (unsigned long long)info->base_bytes);
    if (info->base_max_error >= 0)
        printf(": %.2f dB, max error %lld", info->base_psnr_db, (long long)info->base_max_error);
    printf("\n");
}

/* Where samples are as they were: the first rectangles. */
static void print_exact(const struct tsr_exact *exact, const struct tsr_region *list)
{
    enum { SHOWN = 4 };
    printf("  exact      %llu samples of each frame and component, in", (unsigned long long)exact->samples);
    for (uint32_t i = 0; i < exact->rectangles && i < SHOWN; i++)
        printf("%s %u,%u,%u,%u", i > 0 ? ";" : "", list[i].column, list[i].row, list[i].columns, list[i].rows);
    if (exact->rectangles > SHOWN) printf("; and %u others, which --json lists", exact->rectangles - SHOWN);
    printf("\n");
}

static void print_damage(const struct tsr_info *info)
{
    if (info->original_damage[0]) printf("  original   looks damaged: %s\n", shown(info->original_damage));
    if (info->damage) printf("  DAMAGED    %s\n", damage_text(info));
}

/* "16 bits, signed", or "12 bits (0 to 11 of 16), big endian". */
static void print_bits(const struct tsr_image *image)
{
    printf("%u bit%s", image->bits_stored, image->bits_stored == 1 ? "" : "s");
    if (image->bits_stored < image->bits_allocated)
        printf(" (%d to %u of %u)", image->high_bit + 1 - image->bits_stored, image->high_bit, image->bits_allocated);
    printf("%s%s%s", image->is_float ? ", floating-point" : "", image->is_signed ? ", signed" : "",
           image->big_endian ? ", big endian" : "");
}

/* How samples are coded that are no integers of at most 32 bits. */
static void print_values(const struct tsr_info *info)
{
    if (info->coded_in_order)
        printf("; coded by their bits, in the order of their values");
    else if (info->coded_bits > 0)
        printf("; coded as integers of %u bits", info->coded_bits);
    printf("\n");
}

/* Of a video its own: that of the raster would mislead. */
static void print_size(const struct tsr_info *info)
{
    if (info->video_chroma)
        printf("%u x %u, 4:2:%u", info->video_columns, info->video_rows, info->video_chroma % 10);
    else
        printf("%u x %u", info->image.columns, info->image.rows);
}

static void add_video(cJSON *o, const struct tsr_info *info)
{
    cJSON *const video = cJSON_AddObjectToObject(o, "video");
    cJSON_AddNumberToObject(video, "columns", info->video_columns);
    cJSON_AddNumberToObject(video, "rows", info->video_rows);
    cJSON_AddStringToObject(video, "chroma", info->video_chroma == 420 ? "4:2:0" : "4:2:2");
}

/* Which frames and tiles depend on others, are exact, or come first. */
static void print_parts(const struct tsr_info *info, const struct tsr_region *exact)
{
    if (info->linked)
        printf("  linked     frames are predicted from the one before: reading one decodes up to 8, damage to one may "
               "cost 7 more\n");
    if (info->base_bytes > 0) print_base(info);
    if (exact) print_exact(&info->exact, exact);
    if (info->tiles > 0)
        printf("  order      %u of the %u tiles of each frame come before all others\n", info->first_tiles,
               info->tiles);
}

/* coded: encapsulated_word. */
static void print_text(const char *name, const char *coded, const struct tsr_info *info, const struct tsr_region *exact)
{
    const struct tsr_image *i = &info->image;
    char original[HASH_TEXT], samples[HASH_TEXT];
    write_hash(info->original_hash, original);
    write_hash(info->samples_hash, samples);
    printf("%s\n", shown(name));
    printf("  from       %s, %llu bytes, XXH3-128 %s\n", tsr_kind_name(info->kind),
           (unsigned long long)info->original_bytes, original);
    printf("  size       %llu bytes, ratio %.3f, %llu sections\n", (unsigned long long)info->file_bytes,
           (double)info->original_bytes / (double)info->file_bytes, (unsigned long long)info->sections);
    if (info->encrypted) printf("  encrypted  yes\n");
    printf("  restores   %s (%s)\n", promise(info), tsr_returns_name(info->returns));
    if (coded) printf("  streams    %s: %s\n", coded, encapsulated_text(coded, info));
    if (info->files > 0) {
        printf("  files      %u in it %s coded\n", info->files, info->files == 1 ? "is" : "are");
    } else if (!info->has_image) {
        printf("  %-9s  %s%s%s\n", tsr_way_name(info->way),
               is_packed(info) ? "not as samples" : "general compression alone", info->reason[0] ? ": " : "",
               shown(info->reason));
    } else {
        const double count = (double)i->columns * i->rows * i->components * i->frames;
        printf("  image      ");
        print_size(info);
        printf(", %u frame%s, %u component%s%s, ", i->frames, plural(i->frames), i->components, plural(i->components),
               i->planar ? " planar" : "");
        print_bits(i);
        print_values(info);
        if (info->video_chroma)
            printf("  raster     %u x %u: luma, and below it both planes of chroma\n", i->columns, i->rows);
        if (are_units(info)) {
            printf("  coded      as streams, each of which can be read alone\n");
            printf("  payload    %llu bytes\n", (unsigned long long)info->payload_bytes);
            print_damage(info);
            return;
        }
        if (info->units > 0)
            printf("  units      %u frame%s not coded as samples: the stream%s in the file\n", info->units,
                   info->units == 1 ? " is" : "s are", info->units == 1 ? " stands" : "s stand");
        printf("  coded      path %s, coder %s, %s", tsr_path_name(info->coding.path),
               tsr_coder_name(info->coding.coder), info->coding.lossy ? "" : "lossless");
        if (has_qp(&info->coding)) printf("QP %.3f, ", info->coding.qp_eighths / 8.0);
        if (info->coding.lossy) printf("%.2f dB", info->psnr_db);
        if (info->coding.lossy && is_own_range(i, info->range)) printf(" of a range of %u", info->range);
        if (info->coding.lossy) printf(", max error %lld", (long long)info->max_error);
        for (uint32_t k = 0; k < info->kept_count; k++) print_kept(&info->kept[k], k == 0);
        printf("\n");
        print_windows(info);
        printf("  payload    %llu bytes, %.3f bits/sample\n", (unsigned long long)info->payload_bytes,
               8.0 * (double)info->payload_bytes / count);
        print_parts(info, exact);
        if (info->has_samples_hash) printf("  samples    XXH3-128 of the frames' hashes %s\n", samples);
    }
    print_damage(info);
}

/* What is lost: by the base, and in the whole. */
static void add_loss(cJSON *o, const struct tsr_info *info, const struct tsr_region *exact)
{
    if (info->base_bytes > 0) cJSON_AddNumberToObject(o, "base_bytes", (double)info->base_bytes);
    if (info->base_bytes > 0) add_base_loss(o, info->base_psnr_db, info->base_max_error);
    if (exact) add_exact(o, &info->exact, exact);
    if (!info->coding.lossy) return;
    if (has_qp(&info->coding)) cJSON_AddNumberToObject(o, "qp", info->coding.qp_eighths / 8.0);
    cJSON_AddNumberToObject(o, "max_error", (double)info->max_error);
    add_number(o, "psnr_db", isfinite(info->psnr_db), info->psnr_db);
    add_number(o, "psnr_stored_db", isfinite(info->psnr_stored_db), info->psnr_stored_db);
    add_number(o, "range", true, info->range);
    add_windows(o, info->window, info->windows);
    add_kept(o, info->kept, info->kept_count);
}

/* member: the file's name in a series, or NULL. coded: encapsulated_word. */
static void print_json(const char *name, const char *member, const char *coded, const struct tsr_info *info,
                       const struct tsr_region *exact)
{
    const struct tsr_image *i = &info->image;
    char hash[HASH_TEXT];
    cJSON *o = cJSON_CreateObject();
    add_name(o, "file", name);
    if (member) add_name(o, "member", member);
    cJSON_AddStringToObject(o, "status", "ok");
    cJSON_AddStringToObject(o, "way", tsr_way_name(info->way));
    cJSON_AddStringToObject(o, "kind", tsr_kind_name(info->kind));
    cJSON_AddStringToObject(o, "restore", tsr_returns_name(info->returns));
    cJSON_AddBoolToObject(o, "identical", info->promise == TSR_PROMISE_FILE);
    if (coded) cJSON_AddStringToObject(o, "encapsulated", coded);
    if (info->files > 0) cJSON_AddNumberToObject(o, "files", info->files);
    cJSON_AddNumberToObject(o, "bytes_in", (double)info->original_bytes);
    cJSON_AddNumberToObject(o, "bytes_out", (double)info->file_bytes);
    write_hash(info->original_hash, hash);
    cJSON_AddStringToObject(o, "original_xxh3_128", hash);
    cJSON_AddNumberToObject(o, "sections", (double)info->sections);
    if (info->encrypted) cJSON_AddBoolToObject(o, "encrypted", true);
    if (info->units > 0) cJSON_AddNumberToObject(o, "units", info->units);
    if (info->linked) cJSON_AddBoolToObject(o, "linked", true);
    if (!info->has_image) {
        add_text(o, "reason", info->reason);
    } else {
        cJSON_AddNumberToObject(o, "columns", i->columns);
        cJSON_AddNumberToObject(o, "rows", i->rows);
        if (info->video_chroma) add_video(o, info);
        cJSON_AddNumberToObject(o, "frames", i->frames);
        cJSON_AddNumberToObject(o, "components", i->components);
        cJSON_AddNumberToObject(o, "bits_allocated", i->bits_allocated);
        cJSON_AddNumberToObject(o, "bits_stored", i->bits_stored);
        cJSON_AddNumberToObject(o, "high_bit", i->high_bit);
        cJSON_AddBoolToObject(o, "signed", i->is_signed);
        if (i->is_float) cJSON_AddBoolToObject(o, "float", true);
        if (info->coded_bits > 0) cJSON_AddNumberToObject(o, "coded_bits", info->coded_bits);
        if (info->coded_bits > 0) cJSON_AddBoolToObject(o, "coded_in_order", info->coded_in_order);
        cJSON_AddBoolToObject(o, "big_endian", i->big_endian);
        cJSON_AddBoolToObject(o, "planar", i->planar);
        cJSON_AddStringToObject(o, "path", tsr_path_name(info->coding.path));
        cJSON_AddStringToObject(o, "coder", tsr_coder_name(info->coding.coder));
        cJSON_AddBoolToObject(o, "lossless", !info->coding.lossy);
        cJSON_AddNumberToObject(o, "payload_bytes", (double)info->payload_bytes);
        if (info->tiles > 0) cJSON_AddNumberToObject(o, "tiles", info->tiles);
        if (info->tiles > 0) cJSON_AddNumberToObject(o, "first_tiles", info->first_tiles);
        add_loss(o, info, exact);
        write_hash(info->samples_hash, hash);
        add_text(o, "samples_xxh3_128", info->has_samples_hash ? hash : NULL);
    }
    if (info->original_damage[0]) add_text(o, "original_damage", info->original_damage);
    if (info->damage) cJSON_AddStringToObject(o, "damage", info->damage);
    print_json_line(o);
}

/* ---- Headers of DICOM ----------------------------------------------------------------------------------------- */

static void print_listing(const char *name, const char *member, const struct tsr_buffer *text)
{
    printf("# %s%s%s\n", shown(name), member ? "::" : "", member ? shown(member) : "");
    print_shown_lines(stdout, (const char *)text->bytes, text->count);
}

static enum tsr_status print_object(const char *name, const char *member, const struct tsr_buffer *text,
                                    struct tsr_error *error)
{
    cJSON *const dataset = cJSON_ParseWithOpts((const char *)text->bytes, NULL, true);
    const bool is_object = cJSON_IsObject(dataset);
    cJSON_Delete(dataset);
    if (!is_object) return refuse(error, TSR_ERROR_CORRUPT, "its header cannot be written as JSON");
    cJSON *const o = cJSON_CreateObject();
    add_name(o, "file", name);
    if (member) add_name(o, "member", member);
    cJSON_AddRawToObject(o, "dicom", (const char *)text->bytes); /* numbers keep all their digits */
    print_json_line(o);
    return TSR_OK;
}

/* member: its name in a series, or NULL. */
static enum tsr_status print_dicom(const struct options *options, const char *name, struct tsr_reader *reader,
                                   uint32_t number, const char *member, struct tsr_error *error)
{
    struct tsr_buffer text = {NULL, 0};
    enum tsr_status status =
        tsr_list_header(reader, number, options->talk.json ? TSR_LISTING_JSON : TSR_LISTING_TEXT, &text, error);
    if (status == TSR_OK && options->talk.json)
        status = print_object(name, member, &text, error);
    else if (status == TSR_OK)
        print_listing(name, member, &text);
    tsr_buffer_free(&text);
    return status;
}

/* ---- Series ------------------------------------------------------------------------------------------------ */

static void print_series_text(const char *name, const struct tsr_info *info)
{
    printf("%s\n", shown(name));
    printf("  series     %u file%s, %llu bytes\n", info->members, plural(info->members),
           (unsigned long long)info->original_bytes);
    printf("  size       %llu bytes, ratio %.3f, %llu sections\n", (unsigned long long)info->file_bytes,
           (double)info->original_bytes / (double)info->file_bytes, (unsigned long long)info->sections);
    if (info->encrypted) printf("  encrypted  yes\n");
    if (info->damage) printf("  DAMAGED    %s\n", damage_text(info));
}

static void print_series_json(const char *name, const struct tsr_info *info)
{
    cJSON *o = cJSON_CreateObject();
    add_name(o, "file", name);
    cJSON_AddStringToObject(o, "status", "ok");
    cJSON_AddStringToObject(o, "restore", tsr_returns_name(info->returns));
    cJSON_AddNumberToObject(o, "members", info->members);
    cJSON_AddBoolToObject(o, "identical", info->promise == TSR_PROMISE_FILE);
    cJSON_AddBoolToObject(o, "lossless", !info->coding.lossy);
    cJSON_AddNumberToObject(o, "bytes_in", (double)info->original_bytes);
    cJSON_AddNumberToObject(o, "bytes_out", (double)info->file_bytes);
    cJSON_AddNumberToObject(o, "payload_bytes", (double)info->payload_bytes);
    cJSON_AddNumberToObject(o, "sections", (double)info->sections);
    if (info->encrypted) cJSON_AddBoolToObject(o, "encrypted", true);
    if (info->damage) cJSON_AddStringToObject(o, "damage", info->damage);
    print_json_line(o);
}

/* A line for each file of a series, or all that is known of it with -v and where it is the one that is wanted. */
static void print_member_text(const char *name, const char *member, const char *coded, const struct tsr_info *info,
                              bool in_full)
{
    char title[512];
    if (in_full) {
        snprintf(title, sizeof title, "%.250s: %.250s", name, member);
        print_text(title, coded, info, NULL);
        return;
    }
    printf("  %s  %s, %llu -> %llu bytes", shown(member), tsr_kind_name(info->kind),
           (unsigned long long)info->original_bytes, (unsigned long long)info->file_bytes);
    printf(", %s", tsr_way_name(info->way));
    if (info->has_image) {
        printf(", ");
        print_size(info);
        printf(", %u frame%s%s", info->image.frames, plural(info->image.frames), info->coding.lossy ? ", lossy" : "");
    }
    printf("%s\n", info->original_damage[0] ? ", the original looks damaged" : "");
}

static enum tsr_status print_series(const struct options *options, const char *path, struct tsr_reader *series,
                                    const struct wanted *wanted, const struct tsr_info *whole, struct tsr_error *error)
{
    enum tsr_status status = TSR_OK;
    const bool takes_all = !wanted->exact && !wanted->glob;
    bool found = false;
    if (takes_all && !options->info.dicom) {
        if (options->talk.json)
            print_series_json(path, whole);
        else
            print_series_text(path, whole);
    }
    for (uint32_t k = 0; k < tsr_reader_members(series); k++) {
        const char *name = tsr_reader_name(series, k);
        struct tsr_info info = TSR_INFO;
        if (!is_wanted(wanted, name)) continue;
        found = true;
        const enum tsr_status one = options->info.dicom ? print_dicom(options, path, series, k, name, error)
                                                        : tsr_read_info(series, k, &info, error);
        if (one != TSR_OK) {
            name_file(error, path, name);
            say_once(error);
            status = TSR_ERROR_PARTIAL;
        } else if (options->info.dicom) {
            continue;
        } else if (options->talk.json) {
            print_json(path, name, encapsulated_word(series, k, &info), &info, NULL);
        } else {
            print_member_text(path, name, encapsulated_word(series, k, &info), &info,
                              !takes_all || options->talk.verbosity > 0);
        }
        error->offset = TSR_NO_OFFSET;
    }
    if (!found)
        return refuse(error, TSR_ERROR_NO_INPUT, "%s has no file that is called %s", path,
                      wanted->exact ? wanted->exact : wanted->glob);
    return status;
}

/* What is damaged, and stands elsewhere too, has been shown; the status says that the file is not whole. */
static enum tsr_status check_damage(const char *path, const struct tsr_info *info, struct tsr_error *error)
{
    return info->damage ? refuse(error, TSR_ERROR_CORRUPT, "%s: %s", path, damage_text(info)) : TSR_OK;
}

/* A file that is no series. */
static enum tsr_status print_one(const struct options *options, const char *path, struct tsr_reader *reader,
                                 const struct tsr_info *info, struct tsr_error *error)
{
    const char *const coded = encapsulated_word(reader, 0, info);
    uint32_t count = info->exact.rectangles;
    struct tsr_region *const exact = count > 0 ? calloc(count, sizeof *exact) : NULL;
    if (count > 0 && !exact) return refuse(error, TSR_ERROR_LIMIT, "%s", "no memory for a list of rectangles");
    const enum tsr_status status = count > 0 ? tsr_read_exact(reader, 0, exact, count, &count, error) : TSR_OK;
    if (status == TSR_OK && options->talk.json)
        print_json(path, NULL, coded, info, exact);
    else if (status == TSR_OK)
        print_text(path, coded, info, exact);
    free(exact);
    return status == TSR_OK ? check_damage(path, info, error) : status;
}

/* exact: the file that the input names after ::, or NULL. */
static enum tsr_status print_content(const struct options *options, const char *path, struct tsr_reader *reader,
                                     const char *exact, struct tsr_error *error)
{
    const struct wanted wanted = wanted_of(reader, exact, options->in.member);
    struct tsr_info info = TSR_INFO;
    if (tsr_reader_content(reader) == TSR_CONTENT_ORIGINAL)
        return refuse(error, TSR_ERROR_NOT_TSR, "%s is not a .tsr file", path);
    const enum tsr_status status = tsr_read_info(reader, TSR_ALL_MEMBERS, &info, error);
    if (status != TSR_OK) return status;
    if (info.members > 0) {
        const enum tsr_status listed = print_series(options, path, reader, &wanted, &info, error);
        return listed == TSR_OK ? check_damage(path, &info, error) : listed;
    }
    if (wanted.exact || wanted.glob)
        return refuse(error, TSR_ERROR_USAGE, "%s is not a series, and %s names a file of a series", path,
                      exact ? "what follows ::" : "--member");
    if (options->info.dicom) {
        const enum tsr_status listed = print_dicom(options, path, reader, 0, NULL, error);
        return listed == TSR_OK ? check_damage(path, &info, error) : listed;
    }
    return print_one(options, path, reader, &info, error);
}

static enum tsr_status print_info(const struct options *options, struct tsr_engine *engine, const struct task *task,
                                  struct tsr_error *error)
{
    const char *const path = task->input;
    struct tsr_data_source source = tsr_of(task);
    source.base = options->in.base;
    struct tsr_reader *reader = NULL;
    enum tsr_status status = tsr_open(engine, &source, &reader, error);
    if (status == TSR_OK) status = print_content(options, path, reader, task->member, error);
    if (status != TSR_OK && status != TSR_ERROR_PARTIAL) { /* else each member's was said */
        name_file(error, path, NULL);
        say_once(error);
    }
    tsr_close(reader);
    return status;
}

/* Nothing is coded: one thread will do. */
static struct tsr_engine *start_reading(struct tsr_error *error)
{
    struct tsr_engine_options options = TSR_ENGINE_OPTIONS;
    struct tsr_engine *engine;
    options.choice = TSR_ENGINE_CPU;
    options.threads = 1;
    tsr_engine_create(&options, &engine, error);
    return engine;
}

static int print_all(const struct options *options, struct tsr_engine *engine, const struct task_list *list)
{
    struct tally tally = {.files = list->count};
    for (size_t i = 0; i < list->count; i++) {
        struct tsr_error error = {TSR_OK, TSR_NO_OFFSET, "", 0};
        tally.only = list->tasks[i].status;
        if (tally.only != TSR_OK)
            say_error((refuse_task(&error, &list->tasks[i]), &error));
        else
            tally.only = print_info(options, engine, &list->tasks[i], &error);
        tally.failed += tally.only != TSR_OK;
    }
    if (without_module > 1)
        fprintf(stderr, "tessera: %zu more file%s Tessera's module for DICOM\n", without_module - 1,
                without_module == 2 ? " needs" : "s need");
    return (int)verdict_status(&tally);
}

int info_verb(const struct options *options)
{
    struct task_list list;
    struct tsr_error error = {TSR_OK, TSR_NO_OFFSET, "", 0};
    int status = (int)list_tasks(options, NULL, &list, &error);
    say_unmatched(&options->in);
    struct tsr_engine *const engine = status == TSR_OK ? start_reading(&error) : NULL;
    if (engine)
        status = print_all(options, engine, &list);
    else
        say_error(&error);
    if (status == TSR_OK && !engine) status = (int)error.status;
    tsr_engine_destroy(engine);
    free_tasks(&list);
    return status;
}
