/* JPEG 2000 by OpenJPEG: its defaults for coding without loss. */
#include "jpeg_2000_codecs.h"

#include <cstring>

#if TSR_WITH_OPENJPEG

#include <memory>
#include <openjpeg.h>

namespace
{

struct stream_place {
    std::vector<uint8_t> *bytes;
    size_t next;
};

OPJ_SIZE_T take_bytes(void *buffer, OPJ_SIZE_T count, void *context)
{
    stream_place &s = *static_cast<stream_place *>(context);
    const size_t left = s.bytes->size() - s.next, taken = count < left ? count : left;
    if (taken == 0) return static_cast<OPJ_SIZE_T>(-1);
    std::memcpy(buffer, s.bytes->data() + s.next, taken);
    s.next += taken;
    return taken;
}

/* OpenJPEG goes back in what it writes. */
OPJ_SIZE_T put_bytes(void *buffer, OPJ_SIZE_T count, void *context)
{
    stream_place &s = *static_cast<stream_place *>(context);
    try {
        if (s.next + count > s.bytes->size()) s.bytes->resize(s.next + count);
    } catch (const std::exception &) {
        return static_cast<OPJ_SIZE_T>(-1);
    }
    std::memcpy(s.bytes->data() + s.next, buffer, count);
    s.next += count;
    return count;
}

OPJ_BOOL seek(OPJ_OFF_T offset, void *context)
{
    stream_place &s = *static_cast<stream_place *>(context);
    if (offset < 0 || static_cast<size_t>(offset) > s.bytes->size()) return OPJ_FALSE;
    s.next = static_cast<size_t>(offset);
    return OPJ_TRUE;
}

OPJ_OFF_T skip(OPJ_OFF_T count, void *context)
{
    const stream_place &s = *static_cast<stream_place *>(context);
    return seek(static_cast<OPJ_OFF_T>(s.next) + count, context) ? count : -1;
}

using stream_owner = std::unique_ptr<opj_stream_t, decltype(&opj_stream_destroy)>;
using codec_owner = std::unique_ptr<opj_codec_t, decltype(&opj_destroy_codec)>;
using image_owner = std::unique_ptr<opj_image_t, decltype(&opj_image_destroy)>;

stream_owner open_stream(stream_place &place, bool is_input)
{
    stream_owner stream(opj_stream_default_create(is_input), opj_stream_destroy);
    if (!stream) return stream;
    opj_stream_set_user_data(stream.get(), &place, nullptr);
    opj_stream_set_user_data_length(stream.get(), is_input ? place.bytes->size() : 0);
    opj_stream_set_read_function(stream.get(), take_bytes);
    opj_stream_set_write_function(stream.get(), put_bytes);
    opj_stream_set_seek_function(stream.get(), seek);
    opj_stream_set_skip_function(stream.get(), skip);
    return stream;
}

image_owner make_image(const jpeg_2000_job &job)
{
    const tsr_image &of = *job.image;
    opj_image_cmptparm_t parts[4];
    std::memset(parts, 0, sizeof parts);
    for (int c = 0; c < of.components; c++) {
        parts[c].dx = parts[c].dy = 1;
        parts[c].w = of.columns;
        parts[c].h = of.rows;
        parts[c].prec = static_cast<OPJ_UINT32>(job.bits);
        parts[c].sgnd = of.is_signed;
    }
    image_owner image(opj_image_create(of.components, parts, of.components < 3 ? OPJ_CLRSPC_GRAY : OPJ_CLRSPC_SRGB),
                      opj_image_destroy);
    if (!image) return image;
    image->x1 = of.columns;
    image->y1 = of.rows;
    const size_t count = static_cast<size_t>(of.columns) * of.rows, n = of.components;
    for (size_t c = 0; c < n; c++)
        for (size_t i = 0; i < count; i++) image->comps[c].data[i] = job.samples[i * n + c];
    return image;
}

} // namespace

bool openjpeg_encode(jpeg_2000_job &job)
{
    stream_place place = {&job.stream, 0};
    opj_cparameters_t parameters;
    opj_set_default_encoder_parameters(&parameters);
    parameters.tcp_numlayers = 1;
    parameters.cp_disto_alloc = 1;
    parameters.tcp_mct = job.is_rgb;
    const uint32_t side = job.image->columns < job.image->rows ? job.image->columns : job.image->rows;
    while (UINT32_C(1) << (parameters.numresolution - 1) > side) parameters.numresolution--; /* else it refuses */
    const image_owner image = make_image(job);
    const codec_owner codec(opj_create_compress(OPJ_CODEC_J2K), opj_destroy_codec);
    const stream_owner stream = open_stream(place, false);
    return image && codec && stream && opj_setup_encoder(codec.get(), &parameters, image.get()) &&
           opj_start_compress(codec.get(), image.get(), stream.get()) && opj_encode(codec.get(), stream.get()) &&
           opj_end_compress(codec.get(), stream.get());
}

bool openjpeg_decode(jpeg_2000_job &job)
{
    stream_place place = {&job.stream, 0};
    opj_dparameters_t parameters;
    opj_image_t *found = nullptr;
    const tsr_image &of = *job.image;
    opj_set_default_decoder_parameters(&parameters);
    const codec_owner codec(opj_create_decompress(OPJ_CODEC_J2K), opj_destroy_codec);
    const stream_owner stream = open_stream(place, true);
    if (!codec || !stream || !opj_setup_decoder(codec.get(), &parameters) ||
        !opj_read_header(stream.get(), codec.get(), &found))
        return false;
    const image_owner image(found, opj_image_destroy);
    if (image->numcomps != of.components) return false;
    for (uint32_t c = 0; c < image->numcomps; c++) /* before it takes the memory for them */
        if (image->comps[c].w != of.columns || image->comps[c].h != of.rows ||
            image->comps[c].prec != image->comps[0].prec || image->comps[c].sgnd != image->comps[0].sgnd)
            return false;
    if (!opj_decode(codec.get(), stream.get(), image.get()) || !opj_end_decompress(codec.get(), stream.get()))
        return false;
    const size_t count = static_cast<size_t>(of.columns) * of.rows, n = of.components;
    for (size_t c = 0; c < n; c++) {
        if (!image->comps[c].data || image->comps[c].w != of.columns || image->comps[c].h != of.rows) return false;
        for (size_t i = 0; i < count; i++) job.samples[i * n + c] = image->comps[c].data[i];
    }
    job.bits = static_cast<int>(image->comps[0].prec);
    job.is_signed = image->comps[0].sgnd != 0;
    return true;
}

#else

bool openjpeg_encode(jpeg_2000_job &)
{
    return false;
}

bool openjpeg_decode(jpeg_2000_job &)
{
    return false;
}

#endif
