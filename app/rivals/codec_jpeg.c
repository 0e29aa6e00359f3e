/* Rivals: JPEG with loss, by libjpeg-turbo. */
#include "rivals.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

enum { DEFAULT_TABLES, OPTIMISED_444, OPTIMISED_420 };

static void tell_library(char text[64])
{
#ifdef LIBJPEG_TURBO_VERSION
#define AS_TEXT__(x) #x
#define AS_TEXT(x) AS_TEXT__(x)
    snprintf(text, 64, "libjpeg-turbo %s", AS_TEXT(LIBJPEG_TURBO_VERSION));
#else
    snprintf(text, 64, "libjpeg %d", JPEG_LIB_VERSION);
#endif
}

static const char *find_obstacle(const struct codec *codec, const struct picture *p)
{
    if (p->columns > JPEG_MAX_DIMENSION || p->rows > JPEG_MAX_DIMENSION) return "sides are up to 65500";
    if (codec->variant == OPTIMISED_420 && p->channels == 1) return "grey pictures have no chroma to subsample";
    return find_lossy_obstacle(codec, p);
}

/* ---- Calls of libjpeg ---------------------------------------------------------------------------------------- */

/* An error handler that returns to the caller. */
struct escape {
    struct jpeg_error_mgr manager;
    jmp_buf back;
    struct job *job;
};

static void escape(j_common_ptr info)
{
    struct escape *const error = (struct escape *)info->err;
    char text[JMSG_LENGTH_MAX];
    info->err->format_message(info, text);
    snprintf(error->job->note, sizeof error->job->note, "%.*s", (int)sizeof error->job->note - 1, text);
    longjmp(error->back, 1);
}

static void say_nothing(j_common_ptr info)
{
    (void)info;
}

static struct jpeg_error_mgr *set_escape(struct escape *error, struct job *job)
{
    jpeg_std_error(&error->manager);
    error->manager.error_exit = escape;
    error->manager.output_message = say_nothing;
    error->job = job;
    return &error->manager;
}

/* A destination in the bytes of the job; jpeg_mem_dest() would allocate for each run. */
struct destination {
    struct jpeg_destination_mgr manager;
    struct bytes *coded;
};

static void use_rest(struct destination *to)
{
    to->manager.next_output_byte = to->coded->data + to->coded->count;
    to->manager.free_in_buffer = to->coded->capacity - to->coded->count;
}

static void begin(j_compress_ptr info)
{
    use_rest((struct destination *)info->dest);
}

static boolean grow(j_compress_ptr info)
{
    struct destination *const to = (struct destination *)info->dest;
    to->coded->count = to->coded->capacity; /* libjpeg calls this when all of the room is used */
    if (!bytes_reserve(to->coded, 2 * to->coded->capacity)) escape((j_common_ptr)info);
    use_rest(to);
    return TRUE;
}

static void end(j_compress_ptr info)
{
    struct destination *const to = (struct destination *)info->dest;
    to->coded->count = to->coded->capacity - to->manager.free_in_buffer;
}

/* ---- Encoding and decoding ----------------------------------------------------------------------------------- */

static void choose_options(struct jpeg_compress_struct *info, const struct job *job)
{
    const struct picture *const p = job->picture;
    info->image_width = (JDIMENSION)p->columns;
    info->image_height = (JDIMENSION)p->rows;
    info->input_components = p->channels;
    info->in_color_space = p->channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
    jpeg_set_defaults(info);
    jpeg_set_quality(info, (int)job->setting, FALSE);
    info->optimize_coding = job->codec->variant != DEFAULT_TABLES;
    for (int c = 0; c < info->num_components; c++)
        info->comp_info[c].h_samp_factor = info->comp_info[c].v_samp_factor = 1;
    if (job->codec->variant == OPTIMISED_420) info->comp_info[0].h_samp_factor = info->comp_info[0].v_samp_factor = 2;
}

static bool encode(struct job *job)
{
    const struct picture *const p = job->picture;
    struct jpeg_compress_struct info;
    struct escape error;
    struct destination to = {{0}, &job->coded};
    job->coded.count = 0;
    if (!bytes_reserve(&job->coded, 65536)) return false;
    info.err = set_escape(&error, job);
    if (setjmp(error.back)) {
        jpeg_destroy_compress(&info);
        return false;
    }
    jpeg_create_compress(&info);
    to.manager.init_destination = begin;
    to.manager.empty_output_buffer = grow;
    to.manager.term_destination = end;
    info.dest = &to.manager;
    choose_options(&info, job);
    jpeg_start_compress(&info, TRUE);
    const size_t pitch = p->bytes / (size_t)p->rows;
    while (info.next_scanline < info.image_height) {
        JSAMPROW row = p->samples + info.next_scanline * pitch;
        jpeg_write_scanlines(&info, &row, 1);
    }
    jpeg_finish_compress(&info);
    jpeg_destroy_compress(&info);
    return true;
}

static bool decode(struct job *job)
{
    const struct picture *const p = job->picture;
    struct jpeg_decompress_struct info;
    struct escape error;
    info.err = set_escape(&error, job);
    if (setjmp(error.back)) {
        jpeg_destroy_decompress(&info);
        return false;
    }
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, job->coded.data, job->coded.count);
    jpeg_read_header(&info, TRUE);
    jpeg_start_decompress(&info);
    const size_t pitch = p->bytes / (size_t)p->rows;
    const bool fits = info.output_height == (JDIMENSION)p->rows && info.output_width == (JDIMENSION)p->columns &&
                      info.output_components == p->channels;
    while (fits && info.output_scanline < info.output_height) {
        JSAMPROW row = job->samples + info.output_scanline * pitch;
        jpeg_read_scanlines(&info, &row, 1);
    }
    if (fits) jpeg_finish_decompress(&info);
    jpeg_destroy_decompress(&info);
    return fits;
}

const struct codec_calls jpeg_calls = {tell_library, find_obstacle, NULL, encode, decode, NULL};
