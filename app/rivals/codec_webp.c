/* Rivals: WebP, lossless and lossy. Grey is coded as RGB, since WebP has no grey pictures. */
#include "rivals.h"

#include <stdio.h>
#include <stdlib.h>
#include <webp/decode.h>
#include <webp/encode.h>

enum { LOSSLESS_PRESET = 8, LOSSY_METHOD = 4 };

static void tell_library(char text[64])
{
    const int version = WebPGetEncoderVersion();
    snprintf(text, 64, "libwebp %d.%d.%d", version >> 16, version >> 8 & 255, version & 255);
}

static const char *find_obstacle(const struct codec *codec, const struct picture *p)
{
    if (p->columns > WEBP_MAX_DIMENSION || p->rows > WEBP_MAX_DIMENSION) return "sides are up to 16383";
    if (codec->is_lossy) return find_lossy_obstacle(codec, p);
    if (p->bits > 8) return "samples have up to 8 bits";
    return p->channels == 2 ? "it has no grey with alpha" : NULL;
}

/* Grey as RGB; other pictures as they are. To be freed if it is not the picture's own. */
static uint8_t *colour_samples(const struct picture *p)
{
    if (p->channels != 1) return p->samples;
    uint8_t *const rgb = malloc(3 * p->bytes);
    for (size_t i = 0; rgb && i < p->bytes; i++) rgb[3 * i] = rgb[3 * i + 1] = rgb[3 * i + 2] = p->samples[i];
    return rgb;
}

static bool import(WebPPicture *webp, const struct picture *p, const uint8_t *samples)
{
    webp->width = p->columns;
    webp->height = p->rows;
    return p->channels == 4 ? WebPPictureImportRGBA(webp, samples, 4 * p->columns)
                            : WebPPictureImportRGB(webp, samples, 3 * p->columns);
}

static int append_bytes(const uint8_t *data, size_t size, const WebPPicture *webp)
{
    return bytes_append(webp->custom_ptr, data, size);
}

static bool encode(struct job *job)
{
    const struct picture *const p = job->picture;
    const bool is_lossy = job->codec->is_lossy;
    WebPConfig config;
    WebPPicture webp;
    if (!WebPConfigInit(&config) || !WebPPictureInit(&webp)) return false;
    if (is_lossy) {
        config.method = LOSSY_METHOD;
        config.quality = (float)job->setting;
    } else if (!WebPConfigLosslessPreset(&config, LOSSLESS_PRESET)) {
        return false;
    }
    config.exact = 1; /* colours of transparent pixels stay */
    webp.use_argb = !is_lossy;
    webp.writer = append_bytes;
    webp.custom_ptr = &job->coded;
    job->coded.count = 0;
    uint8_t *const samples = colour_samples(p);
    const bool ok = samples && import(&webp, p, samples) && WebPEncode(&config, &webp);
    if (!ok) snprintf(job->note, sizeof job->note, "libwebp error %d", (int)webp.error_code);
    if (samples != p->samples) free(samples);
    WebPPictureFree(&webp);
    return ok;
}

/* Grey is the luma of what was decoded; without loss its channels must be equal. */
static bool take_grey(struct job *job, const uint8_t *rgb)
{
    for (size_t i = 0; i < job->picture->bytes; i++, rgb += 3) {
        if (!job->codec->is_lossy && (rgb[0] != rgb[1] || rgb[0] != rgb[2])) return false;
        job->samples[i] = (uint8_t)((19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 32768u) >> 16);
    }
    return true;
}

static bool decode(struct job *job)
{
    const struct picture *const p = job->picture;
    const struct bytes *const coded = &job->coded;
    const int pitch = p->columns * (p->channels == 4 ? 4 : 3);
    const size_t bytes = (size_t)pitch * (size_t)p->rows;
    if (p->channels == 4) return WebPDecodeRGBAInto(coded->data, coded->count, job->samples, bytes, pitch) != NULL;
    uint8_t *const rgb = p->channels == 1 ? malloc(bytes) : job->samples;
    bool ok = rgb && WebPDecodeRGBInto(coded->data, coded->count, rgb, bytes, pitch);
    if (p->channels == 1) {
        ok = ok && take_grey(job, rgb);
        free(rgb);
    }
    return ok;
}

const struct codec_calls webp_calls = {tell_library, find_obstacle, NULL, encode, decode, NULL};
