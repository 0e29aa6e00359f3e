/* HTJ2K by OpenJPH: the defaults of ojph_compress. */
#include "jpeg_2000_codecs.h"

#if TSR_WITH_OPENJPH

#include <cstring>
#include <stdexcept>

#include <openjph/ojph_arch.h>
#include <openjph/ojph_base.h>
#include <openjph/ojph_codestream.h>
#include <openjph/ojph_file.h>
#include <openjph/ojph_mem.h>
#include <openjph/ojph_message.h>
#include <openjph/ojph_params.h>

namespace
{

class output : public ojph::outfile_base
{
  public:
    explicit output(std::vector<uint8_t> &to) : bytes(to)
    {
    }
    size_t write(const void *data, size_t count) override
    {
        const uint8_t *const from = static_cast<const uint8_t *>(data);
        bytes.insert(bytes.end(), from, from + count);
        return count;
    }
    ojph::si64 tell() override
    {
        return static_cast<ojph::si64>(bytes.size());
    }

  private:
    std::vector<uint8_t> &bytes;
};

/* The library would print its messages. Errors are thrown, and nobody hears its warnings. */
class thrown : public ojph::message_error
{
  public:
    void operator()(int, const char *, int, const char *what, ...) override
    {
        throw std::runtime_error(what);
    }
};

class unheard : public ojph::message_warning
{
  public:
    void operator()(int, const char *, int, const char *, ...) override
    {
    }
};

void silence()
{
    static thrown error;
    static unheard warning;
    static const bool is_silent = [] {
        ojph::configure_error(&error);
        ojph::configure_warning(&warning);
        return true;
    }();
    (void)is_silent;
}

/* 5, as ojph_compress has it, but no decomposition of a single row or column, of which OpenJPH 0.9.0 gives other
 * samples back. */
ojph::ui32 decompositions(const tsr_image &image)
{
    const uint32_t side = image.columns < image.rows ? image.columns : image.rows;
    ojph::ui32 levels = 5;
    while (levels > 0 && UINT32_C(1) << (levels - 1) >= side) levels--;
    return levels;
}

void describe(ojph::codestream &stream, const jpeg_2000_job &job)
{
    const tsr_image &image = *job.image;
    ojph::param_siz size = stream.access_siz();
    size.set_image_extent(ojph::point(image.columns, image.rows));
    size.set_num_components(image.components);
    for (ojph::ui32 c = 0; c < image.components; c++)
        size.set_component(c, ojph::point(1, 1), static_cast<ojph::ui32>(job.bits), image.is_signed);
    ojph::param_cod coding = stream.access_cod();
    coding.set_num_decomposition(decompositions(image));
    coding.set_block_dims(64, 64);
    coding.set_progression_order("RPCL");
    coding.set_color_transform(job.is_rgb);
    coding.set_reversible(true);
    stream.set_planar(false);
}

/* Whether the stream is of the image, as its header says. */
bool is_of(ojph::codestream &stream, jpeg_2000_job &job)
{
    const tsr_image &image = *job.image;
    ojph::param_siz size = stream.access_siz();
    if (size.get_num_components() != image.components) return false;
    for (ojph::ui32 c = 0; c < image.components; c++)
        if (size.get_recon_width(c) != image.columns || size.get_recon_height(c) != image.rows ||
            size.get_bit_depth(c) != size.get_bit_depth(0) || size.is_signed(c) != size.is_signed(0))
            return false;
    job.bits = static_cast<int>(size.get_bit_depth(0));
    job.is_signed = size.is_signed(0);
    return true;
}

} // namespace

bool openjph_encode(jpeg_2000_job &job)
{
    const size_t columns = job.image->columns, n = job.image->components;
    silence();
    ojph::codestream stream;
    describe(stream, job);
    output to(job.stream);
    stream.write_headers(&to);
    ojph::ui32 component;
    ojph::line_buf *line = stream.exchange(nullptr, component);
    for (size_t y = 0; y < job.image->rows; y++)
        for (size_t c = 0; c < n; c++) {
            const int32_t *const row = job.samples.data() + y * columns * n + component;
            for (size_t x = 0; x < columns; x++) line->i32[x] = row[x * n];
            line = stream.exchange(line, component);
        }
    stream.flush();
    stream.close();
    return true;
}

bool openjph_decode(jpeg_2000_job &job)
{
    const size_t columns = job.image->columns, n = job.image->components;
    silence();
    ojph::mem_infile from;
    from.open(job.stream.data(), job.stream.size());
    ojph::codestream stream;
    stream.read_headers(&from);
    if (!is_of(stream, job)) return false;
    stream.set_planar(false);
    stream.create();
    const int64_t most = (INT64_C(1) << (job.bits - job.is_signed)) - 1, least = job.is_signed ? -most - 1 : 0;
    for (size_t y = 0; y < job.image->rows; y++)
        for (size_t c = 0; c < n; c++) {
            ojph::ui32 component;
            const ojph::line_buf *const line = stream.pull(component);
            int32_t *const row = job.samples.data() + y * columns * n + component;
            for (size_t x = 0; x < columns; x++) { /* an irreversible transform may exceed the range */
                const int32_t sample = line->i32[x];
                row[x * n] = static_cast<int32_t>(sample < least ? least : sample > most ? most : sample);
            }
        }
    stream.close();
    return true;
}

#else

bool openjph_encode(jpeg_2000_job &)
{
    return false;
}

bool openjph_decode(jpeg_2000_job &)
{
    return false;
}

#endif
