/* Rivals: HTJ2K, by OpenJPH, with the defaults of ojph_compress. */
#include "rivals.h"

#include <cstdio>
#include <exception>
#include <malloc.h>
#include <openjph/ojph_arch.h>
#include <openjph/ojph_base.h>
#include <openjph/ojph_codestream.h>
#include <openjph/ojph_file.h>
#include <openjph/ojph_mem.h>
#include <openjph/ojph_message.h>
#include <openjph/ojph_params.h>
#include <openjph/ojph_version.h>

namespace
{

void tell_library(char text[64])
{
    std::snprintf(text, 64, "OpenJPH %d.%d.%d", OPENJPH_VERSION_MAJOR, OPENJPH_VERSION_MINOR, OPENJPH_VERSION_PATCH);
}

const char *find_obstacle(const struct codec *codec, const struct picture *p)
{
    return codec->is_lossy ? find_lossy_obstacle(codec, p) : nullptr;
}

/* OpenJPH writes to what has these calls. */
class output : public ojph::outfile_base
{
  public:
    explicit output(struct bytes *to) : bytes(to)
    {
        bytes->count = 0;
    }
    size_t write(const void *data, size_t count) override
    {
        return bytes_append(bytes, data, count) ? count : 0;
    }
    ojph::si64 tell() override
    {
        return (ojph::si64)bytes->count;
    }

  private:
    struct bytes *bytes;
};

/* 5, as ojph_compress has it, but no decomposition of a single row or column, of which OpenJPH 0.9.0 gives other
 * samples back. */
ojph::ui32 decompositions(const struct picture *p)
{
    const int side = p->columns < p->rows ? p->columns : p->rows;
    ojph::ui32 levels = 5;
    while (levels > 0 && 1 << (levels - 1) >= side) levels--;
    return levels;
}

void describe(ojph::codestream &stream, const struct job *job)
{
    const struct picture *const p = job->picture;
    ojph::param_siz size = stream.access_siz();
    size.set_image_extent(ojph::point((ojph::ui32)p->columns, (ojph::ui32)p->rows));
    size.set_num_components((ojph::ui32)p->channels);
    for (int c = 0; c < p->channels; c++)
        size.set_component((ojph::ui32)c, ojph::point(1, 1), (ojph::ui32)p->bits, false);
    ojph::param_cod coding = stream.access_cod();
    coding.set_num_decomposition(decompositions(p));
    coding.set_block_dims(64, 64);
    coding.set_progression_order("RPCL");
    coding.set_color_transform(p->channels >= 3);
    coding.set_reversible(!job->codec->is_lossy);
    if (job->codec->is_lossy) stream.access_qcd().set_irrev_quant((float)job->setting);
    stream.set_planar(false);
}

void encode_rows(struct job *job)
{
    const struct picture *const p = job->picture;
    const size_t columns = (size_t)p->columns, channels = (size_t)p->channels;
    ojph::codestream stream;
    describe(stream, job);
    output to(&job->coded);
    stream.write_headers(&to);
    ojph::ui32 component;
    ojph::line_buf *line = stream.exchange(nullptr, component);
    for (size_t y = 0; y < (size_t)p->rows; y++)
        for (size_t c = 0; c < channels; c++) {
            const size_t first = y * columns * channels + component;
            for (size_t x = 0; x < columns; x++)
                line->i32[x] = (ojph::si32)sample_at(p, p->samples, first + x * channels);
            line = stream.exchange(line, component);
        }
    stream.flush();
    stream.close();
}

void decode_rows(struct job *job)
{
    const struct picture *const p = job->picture;
    const size_t columns = (size_t)p->columns, channels = (size_t)p->channels;
    const ojph::si32 most = (1 << p->bits) - 1;
    ojph::mem_infile from;
    from.open(job->coded.data, job->coded.count);
    ojph::codestream stream;
    stream.read_headers(&from);
    stream.set_planar(false);
    stream.create();
    for (size_t y = 0; y < (size_t)p->rows; y++)
        for (size_t c = 0; c < channels; c++) {
            ojph::ui32 component;
            const ojph::line_buf *const line = stream.pull(component);
            const size_t first = y * columns * channels + component;
            for (size_t x = 0; x < columns; x++) {
                const ojph::si32 value = line->i32[x];
                set_sample(p, job->samples, first + x * channels,
                           (unsigned)(value < 0      ? 0
                                      : value > most ? most
                                                     : value));
            }
        }
    stream.close();
}

/* OpenJPH reports errors by exceptions. */
bool call(void (*what)(struct job *), struct job *job)
{
    try {
        what(job);
        return true;
    } catch (const std::exception &error) {
        std::snprintf(job->note, sizeof job->note, "%s", error.what());
        return false;
    }
}

/* OpenJPH 0.9.0 reads memory that it has not written: what is coded, up to a third of a small picture's bytes, depends
 * on what was in memory before. With zeros it is what ojph_compress writes in its fresh memory. */
bool encode(struct job *job)
{
#ifdef M_PERTURB
    enum { ALLOCATE_ZEROS = 255 }; /* the complement of the byte that malloc() fills with */
    mallopt(M_PERTURB, ALLOCATE_ZEROS);
#endif
    const bool ok = call(encode_rows, job);
#ifdef M_PERTURB
    mallopt(M_PERTURB, 0);
#endif
    return ok;
}

bool decode(struct job *job)
{
    return call(decode_rows, job);
}

} // namespace

const struct codec_calls htj2k_calls = {tell_library, find_obstacle, nullptr, encode, decode, nullptr};
