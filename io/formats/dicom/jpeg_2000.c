/* Streams of JPEG 2000: what their headers say (T.800 annex A), and the way to the libraries. */
#include "jpeg_2000.h"
#include "dicom_module.h"

#include <stdlib.h>
#include <string.h>

enum { SOC = 0x4f, SIZ = 0x51, COD = 0x52, COC = 0x53, SOT = 0x90, SOD = 0x93, EOC = 0xd9, REVERSIBLE = 1 };

/* What the headers of a stream say. */
struct headers {
    bool has_size, is_ht, has_coding, loses;
    uint64_t tiles;
};

static uint64_t parts_of(uint64_t whole, uint64_t part)
{
    return part == 0 || whole == 0 ? UINT64_MAX : (whole - 1) / part + 1;
}

/* SIZ: its capabilities, and how many tiles there are. */
static void take_size(const uint8_t *segment, struct headers *headers)
{
    enum { PART_15 = 0x40 }; /* T.814: blocks of HT */
    uint32_t number[8];      /* the image's end, the image's begin, a tile's sides, the first tile's begin */
    for (int i = 0; i < 8; i++) number[i] = tsr_read_u32_be(segment + 4 + 4 * i);
    const uint64_t across = parts_of((uint64_t)number[0] - number[6], number[4]),
                   down = parts_of((uint64_t)number[1] - number[7], number[5]);
    headers->has_size = number[0] > number[6] && number[1] > number[7] && across <= UINT32_MAX && down <= UINT32_MAX;
    headers->tiles = headers->has_size ? across * down : 0;
    headers->is_ht = segment[2] & PART_15;
}

/* Reads marker segments from *at up to the marker that ends a header, SOT or SOD. False: they are damaged. */
static bool read_segments(const uint8_t *stream, size_t size, size_t *at, int last, struct headers *headers)
{
    while (size - *at >= 4 && stream[*at] == 0xff && stream[*at + 1] != last) {
        const uint8_t *const segment = stream + *at + 2;
        const size_t length = tsr_read_u16_be(segment);
        if (length < 2 || length > size - *at - 2) return false;
        if (stream[*at + 1] == SIZ && length >= 38) take_size(segment, headers);
        if (stream[*at + 1] == COD && length >= 12) {
            headers->has_coding = true;
            headers->loses |= segment[11] != REVERSIBLE;
        }
        if (stream[*at + 1] == COC && length >= 9) headers->loses |= segment[8] != REVERSIBLE;
        *at += 2 + length;
    }
    return size - *at >= 2 && stream[*at] == 0xff && stream[*at + 1] == last;
}

bool tsr_begins_jpeg_2000(const uint8_t *stream, size_t size)
{
    return size > 3 && stream[0] == 0xff && stream[1] == SOC && stream[2] == 0xff && stream[3] == SIZ;
}

/* The main header and those of all tile-parts. */
static bool read_headers(const uint8_t *stream, size_t size, struct headers *headers)
{
    size_t at = 2;
    *headers = (struct headers){0};
    if (!tsr_begins_jpeg_2000(stream, size) || !read_segments(stream, size, &at, SOT, headers)) return false;
    while (size - at >= 12 && stream[at] == 0xff && stream[at + 1] == SOT) {
        const size_t start = at,
                     part = (size_t)tsr_read_u16_be(stream + at + 6) << 16 | tsr_read_u16_be(stream + at + 8);
        at += 12;
        if (!read_segments(stream, size, &at, SOD, headers)) return false;
        if (part == 0 || part > size - start) break; /* the last one, or one that is cut */
        if (part < at - start) return false;
        at = start + part;
    }
    return headers->has_size && headers->has_coding;
}

bool tsr_jpeg_2000_loses(const uint8_t *stream, size_t size)
{
    struct headers headers = {0};
    size_t at = 2;
    return tsr_begins_jpeg_2000(stream, size) && read_segments(stream, size, &at, SOT, &headers) && headers.loses;
}

const char *tsr_jpeg_2000_lacks(bool is_ht)
{
    if (is_ht) return TSR_WITH_OPENJPH ? NULL : "this build has no libopenjph to code HTJ2K";
    return TSR_WITH_OPENJPEG ? NULL : "this build has no libopenjp2 to code JPEG 2000";
}

/* ---- What OpenJPH can read -------------------------------------------------------------------------------- */

/* OpenJPH 0.9 believes headers: a size of 0 divides by 0, levels that the steps do not cover end the process by an
 * assertion, and so does a code that cannot be. So a stream is read only if it is as its encoders write it. What this
 * overlooks ends a process that only decodes (htj2k_process.c). */
enum { QCD = 0x5c, QCC = 0x5d, PLT = 0x58, TLM = 0x55, CAP = 0x50, PRF = 0x56, COM = 0x64, LEVELS_LIMIT = 32 };

/* SIZ of the image: no offsets that leave a tile empty, samples that are not subsampled. */
static bool sizes_are_sound(const struct tsr_image *image, const uint8_t *segment, size_t length)
{
    if (length < 38 || tsr_read_u16_be(segment + 36) != image->components) return false;
    if (length != 38 + 3 * (size_t)image->components) return false;
    for (unsigned axis = 0; axis < 2; axis++) {
        const uint8_t *const at = segment + 4 + 4 * axis;
        const uint32_t end = tsr_read_u32_be(at), begin = tsr_read_u32_be(at + 8), tile = tsr_read_u32_be(at + 16),
                       first = tsr_read_u32_be(at + 24);
        if (begin >= end || end - begin != (axis == 0 ? image->columns : image->rows)) return false;
        if (tile == 0 || first > begin || tile <= begin - first) return false;
    }
    for (unsigned c = 0; c < image->components; c++)
        if (segment[39 + 3 * c] != 1 || segment[40 + 3 * c] != 1) return false;
    return true;
}

/* COD: its levels, or -1. */
static int sound_levels(const uint8_t *segment, size_t length)
{
    if (length < 12 || segment[7] > LEVELS_LIMIT || segment[3] > 4 || tsr_read_u16_be(segment + 4) == 0) return -1;
    if (segment[8] > 8 || segment[9] > 8 || segment[8] + segment[9] > 8) return -1;
    if ((segment[10] & ~8) != 0x40) return -1; /* each block is of HT */
    return length == 12u + (segment[2] & 1 ? segment[7] + 1u : 0) ? segment[7] : -1;
}

/* QCD: the steps of all bands but the first, or -1. Each has a byte, or, quantised, two. */
static int sound_steps(const uint8_t *segment, size_t length)
{
    enum { NONE, EXPOUNDED = 2 };
    const int style = segment[2] & 0x1f;
    if (style == NONE) return (int)length - 4;
    return style == EXPOUNDED && length % 2 == 1 ? (int)length / 2 - 2 : -1;
}

static bool main_header_is_sound(const struct tsr_image *image, const uint8_t *stream, size_t size, size_t *at)
{
    int levels = -1, steps = -1;
    for (*at = 2; size - *at >= 4 && stream[*at] == 0xff && stream[*at + 1] != SOT;) {
        const uint8_t *const segment = stream + *at + 2;
        const int marker = stream[*at + 1];
        const size_t length = tsr_read_u16_be(segment);
        if (length < 4 || length > size - *at - 2 || (marker == SIZ) != (*at == 2)) return false;
        if (marker == SIZ && !sizes_are_sound(image, segment, length)) return false;
        if (marker == COD && (levels >= 0 || (levels = sound_levels(segment, length)) < 0)) return false;
        if (marker == QCD && (steps >= 0 || (steps = sound_steps(segment, length)) < 0)) return false;
        if (marker != SIZ && marker != COD && marker != QCD && marker != CAP && marker != TLM && marker != PRF &&
            marker != COM)
            return false;
        *at += 2 + length;
    }
    return levels >= 0 && steps == 3 * levels;
}

/* Tile-parts hold packets alone, in which no 0xff is followed by more than 0x8f. */
static bool tiles_are_sound(const uint8_t *stream, size_t size, size_t at)
{
    while (size - at >= 14 && stream[at] == 0xff && stream[at + 1] == SOT) {
        const size_t part = tsr_read_u32_be(stream + at + 6), end = part == 0 ? size : at + part;
        if (tsr_read_u16_be(stream + at + 2) != 10 || (part > 0 && part < 14) || part > size - at) return false;
        for (at += 12; size - at >= 4 && stream[at] == 0xff && (stream[at + 1] == PLT || stream[at + 1] == COM);)
            at += 2 + tsr_read_u16_be(stream + at + 2) < size - at ? 2 + tsr_read_u16_be(stream + at + 2) : size - at;
        if (at + 2 > end || stream[at] != 0xff || stream[at + 1] != SOD) return false;
        for (at += 2; at + 1 < end; at++)
            if (stream[at] == 0xff && stream[at + 1] > 0x8f && !(part == 0 && stream[at + 1] == EOC)) return false;
        at = end;
    }
    return true;
}

static bool is_sound(const struct tsr_image *image, const uint8_t *stream, size_t size)
{
    size_t at;
    return main_header_is_sound(image, stream, size, &at) && tiles_are_sound(stream, size, at);
}

/* lossless: what has lost something is refused, and so is what the build cannot read. */
static enum tsr_status read_stream(const struct tsr_image *image, const uint8_t *stream, size_t size, bool lossless,
                                   uint8_t *raster, struct tsr_error *error)
{
    enum { FEW_TILES = 64, TILE_SAMPLES = 256 }; /* OpenJPEG takes some KB for each tile that the header tells of */
    struct headers headers;
    if (!read_headers(stream, size, &headers)) return tsr_fail(error, TSR_ERROR_CORRUPT, "it is no JPEG 2000 stream");
    const char *const lacks = tsr_jpeg_2000_lacks(headers.is_ht);
    if (lacks) return tsr_fail(error, lossless ? TSR_ERROR_CORRUPT : TSR_ERROR_VERSION, "%s", lacks);
    if (lossless && headers.loses)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "it was coded with an irreversible transform");
    if (image->bits_allocated != 8 && image->bits_allocated != 16)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "%d bits are allocated", image->bits_allocated);
    if (headers.tiles > FEW_TILES + (uint64_t)image->columns * image->rows / TILE_SAMPLES)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "it has more tiles than a usual image");
    if (headers.is_ht && !is_sound(image, stream, size))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "it is damaged, or unusual: OpenJPH is not trusted with it");
    return headers.is_ht ? tsr_dicom_decode_htj2k(image, stream, size, raster, error)
                         : tsr_dicom_decode_jpeg_2000(image, stream, size, raster, error);
}

enum tsr_status tsr_jpeg_2000_read(const struct tsr_image *image, const uint8_t *stream, size_t size, uint8_t *raster,
                                   struct tsr_error *error)
{
    return read_stream(image, stream, size, false, raster, error);
}

static enum tsr_status split(const struct tsr_node_work *work, const uint8_t *stream, size_t size, size_t *used,
                             struct tsr_bytes *plain, struct tsr_bytes *residue, struct tsr_error *error)
{
    (void)residue;
    *used = size;
    return read_stream(work->image, stream, size, true, plain->bytes, error);
}

enum { FIXED_MEMORY = 4 << 20 };

static uint64_t samples_of(const struct tsr_image *image)
{
    return (uint64_t)image->columns * image->rows * image->components;
}

static uint64_t raster_bytes(const struct tsr_image *image)
{
    return samples_of(image) * image->bits_allocated / 8;
}

/* OpenJPEG has samples four times in 32 bits: as they come, as an image, transformed, and in blocks. OpenJPH has them
 * once, and a raster, in a process. */
static uint64_t memory(const struct tsr_node_work *work, uint64_t stream_bytes, bool writes)
{
    (void)writes;
    return 4 * sizeof(int32_t) * samples_of(work->image) + 3 * stream_bytes + 2 * (uint64_t)FIXED_MEMORY;
}

uint64_t tsr_jpeg_2000_memory(const struct tsr_image *image, bool is_ht)
{
    const uint64_t room = tsr_jpeg_2000_room(raster_bytes(image));
    return sizeof(int32_t) * samples_of(image) * (is_ht ? 1 : 4) + room * (is_ht ? 2 : 1) + FIXED_MEMORY;
}

const struct tsr_node tsr_node_jpeg_2000 = {.name = "JPEG 2000", .split = split, .memory = memory};

enum tsr_status tsr_jpeg_2000_write(const struct tsr_image *image, const uint8_t *raster, int bits, bool is_ht,
                                    bool is_rgb, struct tsr_bytes *stream, struct tsr_error *error)
{
    struct tsr_dicom_made made;
    TSR_TRY(tsr_dicom_encode_jpeg_2000(image, raster, bits, is_ht, is_rgb, &made, error));
    const enum tsr_status status = tsr_bytes_put(stream, made.bytes, made.size, error);
    free(made.bytes);
    return status;
}
