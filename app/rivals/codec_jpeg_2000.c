/* Rivals: JPEG 2000, by OpenJPEG, with the defaults of opj_compress. */
#include "rivals.h"

#include <openjpeg.h>
#include <stdio.h>
#include <string.h>

static void tell_library(char text[64])
{
    snprintf(text, 64, "OpenJPEG %s", opj_version());
}

static const char *find_obstacle(const struct codec *codec, const struct picture *p)
{
    return codec->is_lossy ? find_lossy_obstacle(codec, p) : NULL;
}

/* ---- Streams in memory --------------------------------------------------------------------------------------- */

struct stream {
    struct bytes *coded;
    size_t next;
};

static OPJ_SIZE_T take_bytes(void *buffer, OPJ_SIZE_T count, void *context)
{
    struct stream *const s = context;
    const size_t left = s->coded->count - s->next, taken = count < left ? count : left;
    if (taken == 0) return (OPJ_SIZE_T)-1;
    memcpy(buffer, s->coded->data + s->next, taken);
    s->next += taken;
    return taken;
}

/* OpenJPEG goes back in what it writes. */
static OPJ_SIZE_T put_bytes(void *buffer, OPJ_SIZE_T count, void *context)
{
    struct stream *const s = context;
    const size_t within = s->coded->count - s->next, over = within < count ? within : count;
    if (over > 0) memcpy(s->coded->data + s->next, buffer, over);
    if (!bytes_append(s->coded, (uint8_t *)buffer + over, count - over)) return (OPJ_SIZE_T)-1;
    s->next += count;
    return count;
}

static OPJ_BOOL seek(OPJ_OFF_T offset, void *context)
{
    struct stream *const s = context;
    if (offset < 0 || (size_t)offset > s->coded->count) return OPJ_FALSE;
    s->next = (size_t)offset;
    return OPJ_TRUE;
}

static OPJ_OFF_T skip(OPJ_OFF_T count, void *context)
{
    struct stream *const s = context;
    return seek((OPJ_OFF_T)s->next + count, context) ? count : -1;
}

static opj_stream_t *open_stream(struct stream *s, bool is_input)
{
    opj_stream_t *const stream = opj_stream_default_create(is_input);
    if (!stream) return NULL;
    opj_stream_set_user_data(stream, s, NULL);
    opj_stream_set_user_data_length(stream, is_input ? s->coded->count : 0);
    opj_stream_set_read_function(stream, take_bytes);
    opj_stream_set_write_function(stream, put_bytes);
    opj_stream_set_seek_function(stream, seek);
    opj_stream_set_skip_function(stream, skip);
    return stream;
}

static void note_error(const char *message, void *context)
{
    struct job *const job = context;
    snprintf(job->note, sizeof job->note, "%.*s", (int)strcspn(message, "\n"), message);
}

/* ---- Encoding ------------------------------------------------------------------------------------------------ */

static opj_image_t *make_image(const struct picture *p)
{
    opj_image_cmptparm_t parts[4];
    memset(parts, 0, sizeof parts);
    for (int c = 0; c < p->channels; c++) {
        parts[c].dx = parts[c].dy = 1;
        parts[c].w = (OPJ_UINT32)p->columns;
        parts[c].h = (OPJ_UINT32)p->rows;
        parts[c].prec = (OPJ_UINT32)p->bits;
    }
    opj_image_t *const image =
        opj_image_create((OPJ_UINT32)p->channels, parts, p->channels < 3 ? OPJ_CLRSPC_GRAY : OPJ_CLRSPC_SRGB);
    if (!image) return NULL;
    image->x1 = (OPJ_UINT32)p->columns;
    image->y1 = (OPJ_UINT32)p->rows;
    const size_t count = (size_t)p->columns * (size_t)p->rows, channels = (size_t)p->channels;
    for (size_t c = 0; c < channels; c++)
        for (size_t i = 0; i < count; i++)
            image->comps[c].data[i] = (OPJ_INT32)sample_at(p, p->samples, i * channels + c);
    return image;
}

static void choose_parameters(const struct job *job, opj_cparameters_t *parameters)
{
    const struct picture *const p = job->picture;
    opj_set_default_encoder_parameters(parameters);
    parameters->tcp_numlayers = 1;
    parameters->tcp_mct = p->channels >= 3 && p->bits > 1; /* OpenJPEG 2.5.0 gives other 1-bit RGB samples back */
    const int side = p->columns < p->rows ? p->columns : p->rows;
    while (1 << (parameters->numresolution - 1) > side) parameters->numresolution--; /* else OpenJPEG refuses */
    if (job->codec->is_lossy) {
        parameters->irreversible = 1;
        parameters->cp_fixed_quality = 1;
        parameters->tcp_distoratio[0] = (float)job->setting;
    } else {
        parameters->cp_disto_alloc = 1;
    }
}

static bool encode(struct job *job)
{
    struct stream memory = {&job->coded, 0};
    opj_cparameters_t parameters;
    choose_parameters(job, &parameters);
    job->coded.count = 0;
    opj_image_t *const image = make_image(job->picture);
    opj_codec_t *const codec = opj_create_compress(OPJ_CODEC_J2K);
    opj_stream_t *const stream = open_stream(&memory, false);
    bool ok = image && codec && stream;
    if (ok) {
        opj_set_error_handler(codec, note_error, job);
        ok = opj_setup_encoder(codec, &parameters, image) && opj_start_compress(codec, image, stream) &&
             opj_encode(codec, stream) && opj_end_compress(codec, stream);
    }
    opj_stream_destroy(stream);
    opj_destroy_codec(codec);
    opj_image_destroy(image);
    return ok;
}

/* ---- Decoding ------------------------------------------------------------------------------------------------ */

static bool take_samples(const opj_image_t *image, const struct picture *p, uint8_t *samples)
{
    const size_t count = (size_t)p->columns * (size_t)p->rows, channels = (size_t)p->channels;
    const OPJ_INT32 most = (1 << p->bits) - 1;
    if (image->numcomps != channels) return false;
    for (size_t c = 0; c < channels; c++) {
        const opj_image_comp_t *const part = &image->comps[c];
        if (part->w != (OPJ_UINT32)p->columns || part->h != (OPJ_UINT32)p->rows || !part->data) return false;
        for (size_t i = 0; i < count; i++) {
            const OPJ_INT32 value = part->data[i];
            set_sample(p, samples, i * channels + c, (unsigned)(value < 0 ? 0 : value > most ? most : value));
        }
    }
    return true;
}

static bool decode(struct job *job)
{
    struct stream memory = {&job->coded, 0};
    opj_dparameters_t parameters;
    opj_image_t *image = NULL;
    opj_set_default_decoder_parameters(&parameters);
    opj_codec_t *const codec = opj_create_decompress(OPJ_CODEC_J2K);
    opj_stream_t *const stream = open_stream(&memory, true);
    bool ok = codec && stream;
    if (ok) {
        opj_set_error_handler(codec, note_error, job);
        ok = opj_setup_decoder(codec, &parameters) && opj_read_header(stream, codec, &image) &&
             opj_decode(codec, stream, image) && opj_end_decompress(codec, stream) &&
             take_samples(image, job->picture, job->samples);
    }
    opj_stream_destroy(stream);
    opj_destroy_codec(codec);
    opj_image_destroy(image);
    return ok;
}

const struct codec_calls jpeg_2000_calls = {tell_library, find_obstacle, NULL, encode, decode, NULL};
