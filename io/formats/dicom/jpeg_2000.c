/* Streams of JPEG 2000: what their headers say (T.800 annex A), and the way to the libraries. */
#include "jpeg_2000.h"

#include <stdlib.h>
#include <string.h>

enum { SOC = 0x4f, SIZ = 0x51, COD = 0x52, COC = 0x53, SOT = 0x90, SOD = 0x93, EOC = 0xd9, REVERSIBLE = 1 };

static unsigned two(const uint8_t *bytes)
{
    return (unsigned)bytes[0] << 8 | bytes[1];
}

/* What the headers of a stream say. */
struct headers {
    bool has_coding, mixes, loses;
};

/* Reads marker segments from *at up to the marker that ends a header, SOT or SOD. False: they are damaged. */
static bool read_segments(const uint8_t *stream, size_t size, size_t *at, int last, struct headers *headers)
{
    while (size - *at >= 4 && stream[*at] == 0xff && stream[*at + 1] != last) {
        const uint8_t *const segment = stream + *at + 2;
        const size_t length = two(segment);
        if (length < 2 || length > size - *at - 2) return false;
        if (stream[*at + 1] == COD && length >= 12) {
            headers->has_coding = true;
            headers->mixes |= segment[6] != 0;
            headers->loses |= segment[11] != REVERSIBLE;
        }
        if (stream[*at + 1] == COC && length >= 9) headers->loses |= segment[8] != REVERSIBLE;
        *at += 2 + length;
    }
    return size - *at >= 2 && stream[*at] == 0xff && stream[*at + 1] == last;
}

/* The main header and those of all tile-parts. */
static bool read_headers(const uint8_t *stream, size_t size, struct headers *headers)
{
    size_t at = 2;
    *headers = (struct headers){false, false, false};
    if (size < 4 || stream[0] != 0xff || stream[1] != SOC || !read_segments(stream, size, &at, SOT, headers))
        return false;
    while (size - at >= 12 && stream[at] == 0xff && stream[at + 1] == SOT) {
        const size_t start = at, part = (size_t)two(stream + at + 6) << 16 | two(stream + at + 8);
        at += 12;
        if (!read_segments(stream, size, &at, SOD, headers)) return false;
        if (part == 0 || part > size - start) break; /* the last one, or one that is cut */
        if (part < at - start) return false;
        at = start + part;
    }
    return headers->has_coding;
}

bool tsr_jpeg_2000_mixes(const uint8_t *stream, size_t size)
{
    struct headers headers;
    return read_headers(stream, size, &headers) && headers.mixes;
}

const char *tsr_jpeg_2000_lacks(bool is_ht)
{
    if (is_ht) return TSR_WITH_OPENJPH ? NULL : "this build has no libopenjph to code HTJ2K";
    return TSR_WITH_OPENJPEG ? NULL : "this build has no libopenjp2 to code JPEG 2000";
}

static enum tsr_status read_stream(const struct tsr_image *image, const uint8_t *stream, size_t size, bool is_ht,
                                   uint8_t *raster, struct tsr_error *error)
{
    struct headers headers;
    if (tsr_jpeg_2000_lacks(is_ht)) return tsr_fail(error, TSR_ERROR_CORRUPT, "%s", tsr_jpeg_2000_lacks(is_ht));
    if (!read_headers(stream, size, &headers)) return tsr_fail(error, TSR_ERROR_CORRUPT, "it is no JPEG 2000 stream");
    if (headers.loses) return tsr_fail(error, TSR_ERROR_CORRUPT, "it was coded with an irreversible transform");
    if (image->bits_allocated != 8 && image->bits_allocated != 16)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "%d bits are allocated", image->bits_allocated);
    return tsr_dicom_decode_jpeg_2000(image, stream, size, is_ht, raster, error);
}

static enum tsr_status read_jpeg_2000(const struct tsr_image *image, const uint8_t *stream, size_t size,
                                      uint8_t *raster, struct tsr_bytes *residue, struct tsr_error *error)
{
    (void)residue;
    return read_stream(image, stream, size, false, raster, error);
}

static enum tsr_status read_htj2k(const struct tsr_image *image, const uint8_t *stream, size_t size, uint8_t *raster,
                                  struct tsr_bytes *residue, struct tsr_error *error)
{
    (void)residue;
    return read_stream(image, stream, size, true, raster, error);
}

const struct tsr_stream_kind tsr_stream_jpeg_2000 = {"JPEG 2000", read_jpeg_2000, NULL};
const struct tsr_stream_kind tsr_stream_htj2k = {"HTJ2K", read_htj2k, NULL};

enum tsr_status tsr_jpeg_2000_write(const struct tsr_image *image, const uint8_t *raster, int bits, bool is_ht,
                                    bool is_rgb, struct tsr_bytes *stream, struct tsr_error *error)
{
    struct tsr_dicom_made made;
    TSR_TRY(tsr_dicom_encode_jpeg_2000(image, raster, bits, is_ht, is_rgb, &made, error));
    const enum tsr_status status = tsr_bytes_put(stream, made.bytes, made.size, error);
    free(made.bytes);
    return status;
}
