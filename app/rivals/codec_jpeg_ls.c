/* Rivals: JPEG-LS without loss, by CharLS. */
#include "rivals.h"

#include <charls/charls.h>
#include <stdio.h>

struct mode {
    charls_interleave_mode interleave;
    charls_color_transformation transform;
    const char *name;
};

static const struct mode modes[] = {
    {CHARLS_INTERLEAVE_MODE_NONE, CHARLS_COLOR_TRANSFORMATION_NONE, ""}, /* one channel */
    {CHARLS_INTERLEAVE_MODE_SAMPLE, CHARLS_COLOR_TRANSFORMATION_NONE, "interleave sample"},
    {CHARLS_INTERLEAVE_MODE_LINE, CHARLS_COLOR_TRANSFORMATION_NONE, "interleave line"},
    {CHARLS_INTERLEAVE_MODE_SAMPLE, CHARLS_COLOR_TRANSFORMATION_HP1, "interleave sample, transform HP1"},
    {CHARLS_INTERLEAVE_MODE_SAMPLE, CHARLS_COLOR_TRANSFORMATION_HP2, "interleave sample, transform HP2"},
    {CHARLS_INTERLEAVE_MODE_SAMPLE, CHARLS_COLOR_TRANSFORMATION_HP3, "interleave sample, transform HP3"},
    {CHARLS_INTERLEAVE_MODE_LINE, CHARLS_COLOR_TRANSFORMATION_HP1, "interleave line, transform HP1"},
    {CHARLS_INTERLEAVE_MODE_LINE, CHARLS_COLOR_TRANSFORMATION_HP2, "interleave line, transform HP2"},
    {CHARLS_INTERLEAVE_MODE_LINE, CHARLS_COLOR_TRANSFORMATION_HP3, "interleave line, transform HP3"},
};
enum { MODES = sizeof modes / sizeof *modes };

static const struct mode *chosen; /* for the picture of the job */

static void tell_library(char text[64])
{
    snprintf(text, 64, "CharLS %s", charls_get_version_string());
}

static const char *find_obstacle(const struct codec *codec, const struct picture *p)
{
    (void)codec;
    return p->channels == 2 ? "CharLS does not decode two interleaved channels" : NULL;
}

/* Codes in a mode. Returns the error of CharLS; 0: done. */
static int encode_mode(const struct picture *p, const struct mode *mode, struct bytes *coded)
{
    /* 1 bit is coded as 2, the fewest that JPEG-LS has. */
    const charls_frame_info info = {(uint32_t)p->columns, (uint32_t)p->rows, p->bits < 2 ? 2 : p->bits, p->channels};
    coded->count = 0;
    if (!bytes_reserve(coded, 2 * p->bytes + 4096)) return CHARLS_JPEGLS_ERRC_NOT_ENOUGH_MEMORY;
    charls_jpegls_encoder *const encoder = charls_jpegls_encoder_create();
    if (!encoder) return CHARLS_JPEGLS_ERRC_NOT_ENOUGH_MEMORY;
    int error = charls_jpegls_encoder_set_frame_info(encoder, &info);
    if (!error) error = charls_jpegls_encoder_set_interleave_mode(encoder, mode->interleave);
    if (!error) error = charls_jpegls_encoder_set_color_transformation(encoder, mode->transform);
    if (!error) error = charls_jpegls_encoder_set_destination_buffer(encoder, coded->data, coded->capacity);
    if (!error) error = charls_jpegls_encoder_encode_from_buffer(encoder, p->samples, p->bytes, 0);
    if (!error) error = charls_jpegls_encoder_get_bytes_written(encoder, &coded->count);
    charls_jpegls_encoder_destroy(encoder);
    return error;
}

static bool is_done(struct job *job, int error)
{
    if (error) snprintf(job->note, sizeof job->note, "%s", charls_get_error_message(error));
    return !error;
}

/* Whether CharLS has the mode for such a picture. Its transforms are for 3 channels; of 8 or 16 bits, which its encoder
 * checks itself. */
static bool is_possible(const struct picture *p, const struct mode *mode)
{
    if (p->channels == 1) return mode->interleave == CHARLS_INTERLEAVE_MODE_NONE;
    if (mode->interleave == CHARLS_INTERLEAVE_MODE_NONE) return false;
    return p->channels == 3 || mode->transform == CHARLS_COLOR_TRANSFORMATION_NONE;
}

/* Tries all modes and chooses the smallest. */
static bool prepare(struct job *job)
{
    size_t least = SIZE_MAX;
    int error = 0;
    chosen = NULL;
    for (int i = 0; i < MODES; i++) {
        if (!is_possible(job->picture, &modes[i])) continue;
        const int failure = i == 0 ? 0 : encode_mode(job->picture, &modes[i], &job->coded);
        if (failure) error = failure;
        if (failure || (chosen && job->coded.count >= least)) continue;
        chosen = &modes[i];
        least = job->coded.count;
    }
    if (!chosen) return is_done(job, error);
    snprintf(job->note, sizeof job->note, "%s", chosen->name);
    return true;
}

static bool encode(struct job *job)
{
    return is_done(job, encode_mode(job->picture, chosen, &job->coded));
}

static bool decode(struct job *job)
{
    charls_jpegls_decoder *const decoder = charls_jpegls_decoder_create();
    if (!decoder) return is_done(job, CHARLS_JPEGLS_ERRC_NOT_ENOUGH_MEMORY);
    int error = charls_jpegls_decoder_set_source_buffer(decoder, job->coded.data, job->coded.count);
    if (!error) error = charls_jpegls_decoder_read_header(decoder);
    if (!error) error = charls_jpegls_decoder_decode_to_buffer(decoder, job->samples, job->picture->bytes, 0);
    charls_jpegls_decoder_destroy(decoder);
    return is_done(job, error);
}

const struct codec_calls jpeg_ls_calls = {tell_library, find_obstacle, prepare, encode, decode, NULL};
