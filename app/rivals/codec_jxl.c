/* Rivals: JPEG XL, by libjxl. Without a parallel runner libjxl has one thread. */
#include "rivals.h"

#include <jxl/decode.h>
#include <jxl/encode.h>
#include <stdio.h>
#include <stdlib.h>

static void tell_library(char text[64])
{
    const uint32_t version = JxlEncoderVersion();
    snprintf(text, 64, "libjxl %u.%u.%u", version / 1000000, version / 1000 % 1000, version % 1000);
}

static const char *find_obstacle(const struct codec *codec, const struct picture *p)
{
    return codec->is_lossy ? find_lossy_obstacle(codec, p) : NULL;
}

static JxlPixelFormat pixel_format(const struct picture *p)
{
    const JxlPixelFormat format = {(uint32_t)p->channels, p->bits > 8 ? JXL_TYPE_UINT16 : JXL_TYPE_UINT8,
                                   JXL_NATIVE_ENDIAN, 0};
    return format;
}

/* ---- Depths between 8 and 16, and below 8 -------------------------------------------------------------------- */

/* libjxl 0.7 takes and gives samples of the full range of their type. Samples of another depth are scaled to it, and
 * libjxl scales them back to the depth of the file, exactly. */
static uint32_t full_range(const struct picture *p)
{
    return p->bits > 8 ? 65535 : 255;
}

static bool needs_scale(const struct picture *p)
{
    return p->bits != 8 && p->bits != 16;
}

static void scale(const struct picture *p, const uint8_t *from, uint8_t *to, uint32_t from_range, uint32_t to_range)
{
    const size_t count = p->bytes / (p->bits > 8 ? 2 : 1);
    for (size_t i = 0; i < count; i++)
        set_sample(p, to, i, (sample_at(p, from, i) * to_range + from_range / 2) / from_range);
}

/* ---- Encoding ------------------------------------------------------------------------------------------------ */

static bool describe(JxlEncoder *encoder, const struct job *job)
{
    const struct picture *const p = job->picture;
    JxlBasicInfo info;
    JxlColorEncoding colour;
    JxlEncoderInitBasicInfo(&info);
    info.xsize = (uint32_t)p->columns;
    info.ysize = (uint32_t)p->rows;
    info.bits_per_sample = (uint32_t)p->bits;
    info.num_color_channels = p->channels < 3 ? 1 : 3;
    info.uses_original_profile = !job->codec->is_lossy;
    if (p->channels % 2 == 0) {
        info.num_extra_channels = 1;
        info.alpha_bits = (uint32_t)p->bits;
    }
    JxlColorEncodingSetToSRGB(&colour, p->channels < 3);
    if (p->channels >= 3) colour.rendering_intent = JXL_RENDERING_INTENT_PERCEPTUAL; /* as cjxl writes it */
    if (JxlEncoderSetBasicInfo(encoder, &info) != JXL_ENC_SUCCESS) return false;
    const int level = JxlEncoderGetRequiredCodestreamLevel(encoder);
    return (level != 10 || JxlEncoderSetCodestreamLevel(encoder, 10) == JXL_ENC_SUCCESS) &&
           JxlEncoderSetColorEncoding(encoder, &colour) == JXL_ENC_SUCCESS;
}

static bool choose_options(JxlEncoder *encoder, const struct job *job, JxlEncoderFrameSettings **settings)
{
    *settings = JxlEncoderFrameSettingsCreate(encoder, NULL);
    if (!*settings) return false;
    const JxlEncoderStatus quality = job->codec->is_lossy ? JxlEncoderSetFrameDistance(*settings, (float)job->setting)
                                                          : JxlEncoderSetFrameLossless(*settings, JXL_TRUE);
    return quality == JXL_ENC_SUCCESS && JxlEncoderFrameSettingsSetOption(*settings, JXL_ENC_FRAME_SETTING_EFFORT,
                                                                          job->codec->variant) == JXL_ENC_SUCCESS;
}

static bool take_output(JxlEncoder *encoder, struct bytes *coded)
{
    JxlEncoderStatus status = JXL_ENC_NEED_MORE_OUTPUT;
    coded->count = 0;
    while (status == JXL_ENC_NEED_MORE_OUTPUT) {
        if (!bytes_reserve(coded, coded->count + coded->count / 2 + 65536)) return false;
        uint8_t *next = coded->data + coded->count;
        size_t left = coded->capacity - coded->count;
        status = JxlEncoderProcessOutput(encoder, &next, &left);
        coded->count = (size_t)(next - coded->data);
    }
    return status == JXL_ENC_SUCCESS;
}

static bool encode(struct job *job)
{
    const struct picture *const p = job->picture;
    const JxlPixelFormat format = pixel_format(p);
    JxlEncoderFrameSettings *settings;
    JxlEncoder *const encoder = JxlEncoderCreate(NULL);
    uint8_t *const scaled = needs_scale(p) ? malloc(p->bytes) : NULL;
    bool ok =
        encoder && (scaled || !needs_scale(p)) && describe(encoder, job) && choose_options(encoder, job, &settings);
    if (ok && scaled) scale(p, p->samples, scaled, (1u << p->bits) - 1, full_range(p));
    ok = ok && JxlEncoderAddImageFrame(settings, &format, scaled ? scaled : p->samples, p->bytes) == JXL_ENC_SUCCESS;
    free(scaled);
    if (ok) {
        JxlEncoderCloseInput(encoder);
        ok = take_output(encoder, &job->coded);
    }
    if (!ok && encoder) snprintf(job->note, sizeof job->note, "libjxl error %d", (int)JxlEncoderGetError(encoder));
    if (encoder) JxlEncoderDestroy(encoder);
    return ok;
}

/* ---- Decoding ------------------------------------------------------------------------------------------------ */

static bool decode_image(JxlDecoder *decoder, struct job *job)
{
    const JxlPixelFormat format = pixel_format(job->picture);
    size_t bytes;
    if (JxlDecoderSubscribeEvents(decoder, JXL_DEC_FULL_IMAGE) != JXL_DEC_SUCCESS ||
        JxlDecoderSetInput(decoder, job->coded.data, job->coded.count) != JXL_DEC_SUCCESS)
        return false;
    JxlDecoderCloseInput(decoder);
    for (;;) {
        const JxlDecoderStatus status = JxlDecoderProcessInput(decoder);
        if (status == JXL_DEC_FULL_IMAGE) return true;
        if (status != JXL_DEC_NEED_IMAGE_OUT_BUFFER) return false;
        if (JxlDecoderImageOutBufferSize(decoder, &format, &bytes) != JXL_DEC_SUCCESS || bytes != job->picture->bytes ||
            JxlDecoderSetImageOutBuffer(decoder, &format, job->samples, bytes) != JXL_DEC_SUCCESS)
            return false;
    }
}

static bool decode(struct job *job)
{
    const struct picture *const p = job->picture;
    JxlDecoder *const decoder = JxlDecoderCreate(NULL);
    const bool ok = decoder && decode_image(decoder, job);
    if (decoder) JxlDecoderDestroy(decoder);
    if (ok && needs_scale(p)) scale(p, job->samples, job->samples, full_range(p), (1u << p->bits) - 1);
    return ok;
}

const struct codec_calls jxl_calls = {tell_library, find_obstacle, NULL, encode, decode, NULL};
