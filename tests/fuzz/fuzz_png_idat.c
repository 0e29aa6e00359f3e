/* IDAT chunks and residues (PNG.md). The first byte chooses: plain bytes that zlib compresses, in calls with
 * random parameters, are read and come back, and their damaged residue does no harm; or any raster and any residue are
 * written and do no harm. */
#include "fuzz_support.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "io/formats/png/png_file.h"
#include "io/nodes/png/png_idat.h"
#include "io/nodes/png/png_rows.h"
#include "tests/unit/io/streams/by_node.h"

enum { LIMIT = 1 << 20, HEAD = 8 };

/* An image of at most 64 x 64 pixels. */
static struct tsr_header header_of(const uint8_t *bytes)
{
    static const uint8_t types[5] = {0, 2, 3, 4, 6}, depths[5] = {1, 2, 4, 8, 16};
    const uint8_t type = types[bytes[2] % 5];
    uint8_t depth = depths[bytes[3] % 5];
    if (type != 0 && depth < 8 && type != TSR_PNG_PALETTE) depth = 8;
    if (type == TSR_PNG_PALETTE && depth == 16) depth = 8;
    struct tsr_header header = {.kind = TSR_KIND_PNG, .recipe = TSR_RECIPE_PNG, .exact = true};
    header.image = (struct tsr_image){.columns = 1 + bytes[0] % 64u,
                                      .rows = 1 + bytes[1] % 64u,
                                      .frames = 1,
                                      .components = tsr_png_channels(type),
                                      .bits_allocated = depth == 16 ? 16 : 8,
                                      .bits_stored = depth,
                                      .high_bit = (uint8_t)(depth - 1),
                                      .big_endian = depth == 16,
                                      .exact_only = type == TSR_PNG_PALETTE || depth == 1};
    header.parameters[TSR_PNG_COLOUR_TYPE] = type;
    header.parameters[TSR_PNG_FORM] = bytes[4] & TSR_PNG_INTERLACED;
    header.parameter_count = TSR_PNG_PARAMETERS;
    FUZZ_PROMISE(tsr_png_is_valid(&header), "not a valid header");
    return header;
}

static void write_chunks(const struct tsr_header *header, const uint8_t *raster, const uint8_t *residue, size_t size,
                         struct tsr_bytes *chunks)
{
    const enum tsr_status status = join_png(tsr_png_rows_of(header), NULL, raster, residue, size, chunks);
    FUZZ_PROMISE(status == TSR_OK || status == TSR_ERROR_CORRUPT, "status %d", (int)status);
    FUZZ_PROMISE(chunks->size <= chunks->limit, "%zu bytes of chunks", chunks->size);
    if (status != TSR_OK) chunks->size = 0;
}

/* Reading the pixels alone takes what the node takes, and gives the same. raster: what the node gives; NULL: nothing.
 */
static void read_pixels(const struct tsr_header *header, const uint8_t *chunks, size_t size, const uint8_t *raster)
{
    const size_t bytes = (size_t)(tsr_frame_bits(&header->image) / 8);
    uint8_t *const pixels = fuzz_alloc(bytes);
    const enum tsr_status status = tsr_png_read_raster(tsr_png_rows_of(header), NULL, chunks, size, pixels, NULL);
    FUZZ_PROMISE(status == TSR_OK || (status == TSR_ERROR_CORRUPT && !raster), "pixels alone: status %d", (int)status);
    FUZZ_PROMISE(!raster || memcmp(pixels, raster, bytes) == 0, "pixels alone are others");
    free(pixels);
}

/* Chunks that can be read can be made again. Returns whether they can be read. random: damages the residue then; may be
 * null. */
static bool read_chunks(const struct tsr_header *header, const uint8_t *chunks, size_t size, struct fuzz_random *random)
{
    struct tsr_bytes residue = {.limit = LIMIT}, again = {.limit = size}, other = {.limit = LIMIT};
    uint8_t *raster = fuzz_alloc((size_t)(tsr_frame_bits(&header->image) / 8));
    const enum tsr_status status = split_png(tsr_png_rows_of(header), chunks, size, raster, &residue);
    FUZZ_PROMISE(status == TSR_OK || status == TSR_ERROR_CORRUPT, "status %d", (int)status);
    read_pixels(header, chunks, size, status == TSR_OK ? raster : NULL);
    if (status == TSR_OK) {
        FUZZ_PROMISE(join_png(tsr_png_rows_of(header), NULL, raster, residue.bytes, residue.size, &again) == TSR_OK,
                     "%zu bytes of chunks do not come back", size);
        FUZZ_PROMISE(again.size == size && memcmp(again.bytes, chunks, size) == 0, "other chunks come back");
        for (uint32_t n = random ? 1 + fuzz_below(random, 3) : 0; n > 0; n--)
            residue.bytes[fuzz_below(random, (uint32_t)residue.size)] ^= (uint8_t)(1u << fuzz_below(random, 8));
        if (random) write_chunks(header, raster, residue.bytes, residue.size, &other);
        if (other.size > 0) read_chunks(header, other.bytes, other.size, NULL);
    }
    free(raster);
    tsr_bytes_free(&residue);
    tsr_bytes_free(&again);
    tsr_bytes_free(&other);
    return status == TSR_OK;
}

/* The plain bytes of an image from any bytes: filter types are 0..4, and bits after rows are 0. */
static struct tsr_bytes plain_of(const struct tsr_header *header, const uint8_t *bytes, size_t size)
{
    struct tsr_bytes plain = {.limit = LIMIT};
    struct tsr_png_pass passes[TSR_PNG_PASSES];
    const int count = tsr_png_passes(&header->image, header->parameters[TSR_PNG_FORM], passes);
    size_t at = 0;
    for (int p = 0; p < count; p++) {
        const size_t bits = (size_t)passes[p].columns * header->image.components * header->image.bits_stored;
        for (uint32_t y = 0; y < passes[p].rows; y++) {
            for (size_t i = 0; i <= passes[p].row_bytes; i++, at++) {
                uint8_t byte = size > 0 ? bytes[at % size] : 0;
                if (i == 0) byte %= TSR_PNG_FILTERS;
                if (i > 0 && 8 * i > bits) byte = 0; /* whatever the filter: those of the row are then few */
                tsr_bytes_put(&plain, &byte, 1, NULL);
            }
        }
    }
    return plain;
}

/* Compresses in a few calls. */
static struct tsr_bytes compress_plain(const struct tsr_bytes *plain, struct fuzz_random *random)
{
    static const int flushes[6] = {Z_NO_FLUSH, Z_NO_FLUSH, Z_PARTIAL_FLUSH, Z_SYNC_FLUSH, Z_FULL_FLUSH, Z_BLOCK};
    struct tsr_bytes stream = {.limit = LIMIT};
    z_stream z = {0};
    uint8_t *out = fuzz_alloc(LIMIT);
    FUZZ_PROMISE(deflateInit2(&z, (int)fuzz_below(random, 10), Z_DEFLATED, 9 + (int)fuzz_below(random, 7),
                              1 + (int)fuzz_below(random, 9), (int)fuzz_below(random, 5)) == Z_OK,
                 "zlib fails");
    z.next_out = out;
    z.avail_out = LIMIT;
    z.next_in = plain->bytes;
    for (size_t left = plain->size; left > 0;) {
        const size_t now = fuzz_below(random, 2) ? left : 1 + fuzz_below(random, (uint32_t)left);
        z.avail_in = (uInt)now;
        left -= now;
        deflate(&z, left > 0 ? flushes[fuzz_below(random, 6)] : Z_FINISH);
        if (fuzz_below(random, 8) == 0 && left > 0)
            deflateParams(&z, (int)fuzz_below(random, 10), (int)fuzz_below(random, 5));
    }
    tsr_bytes_put(&stream, out, LIMIT - z.avail_out, NULL);
    deflateEnd(&z);
    free(out);
    return stream;
}

static void put_chunk(struct tsr_bytes *chunks, const uint8_t *data, size_t size)
{
    uint8_t head[8] = {0, (uint8_t)(size >> 16), (uint8_t)(size >> 8), (uint8_t)size, 'I', 'D', 'A', 'T'}, check[4];
    uLong crc = crc32(0, head + 4, 4);
    if (size > 0) crc = crc32(crc, data, (uInt)size);
    for (int i = 0; i < 4; i++) check[i] = (uint8_t)(crc >> (24 - 8 * i));
    tsr_bytes_put(chunks, head, sizeof head, NULL);
    tsr_bytes_put(chunks, data, size, NULL);
    tsr_bytes_put(chunks, check, sizeof check, NULL);
}

static void read_image(const struct tsr_header *header, const uint8_t *bytes, size_t size, struct fuzz_random *random)
{
    struct tsr_bytes plain = plain_of(header, bytes, size), stream = compress_plain(&plain, random);
    struct tsr_bytes chunks = {.limit = 2 * LIMIT};
    const uint8_t tail[3] = {1, 2, 3};
    tsr_bytes_put(&stream, tail, fuzz_below(random, 8) ? 0 : 1 + fuzz_below(random, 3), NULL);
    const size_t usual = 1 + fuzz_below(random, 3000);
    for (size_t at = 0; at < stream.size;) {
        size_t now = fuzz_below(random, 16) ? usual : fuzz_below(random, 100);
        if (now > stream.size - at) now = stream.size - at;
        put_chunk(&chunks, stream.bytes + at, now);
        at += now;
    }
    FUZZ_PROMISE(read_chunks(header, chunks.bytes, chunks.size, random) || header->image.bits_stored < 8,
                 "an image that zlib wrote is refused");
    tsr_bytes_free(&plain);
    tsr_bytes_free(&stream);
    tsr_bytes_free(&chunks);
}

/* The raster is the bytes over and over; the residue is those after the head. */
static void write_image(const struct tsr_header *header, const uint8_t *bytes, size_t size)
{
    const size_t count = (size_t)(tsr_frame_bits(&header->image) / 8);
    struct tsr_bytes chunks = {.limit = LIMIT};
    uint8_t *raster = fuzz_alloc(count), *residue = fuzz_alloc(size);
    const unsigned most = 255u >> (header->image.bits_stored < 8 ? 8 - header->image.bits_stored : 0);
    for (size_t i = 0; i < count; i++) raster[i] = (uint8_t)(size > 0 ? bytes[i % size] & most : 0);
    if (size > 0) memcpy(residue, bytes, size);
    write_chunks(header, raster, residue, size, &chunks);
    if (chunks.size > 0) read_chunks(header, chunks.bytes, chunks.size, NULL);
    free(raster);
    free(residue);
    tsr_bytes_free(&chunks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < HEAD) return 0;
    const struct tsr_header header = header_of(data + 1);
    struct fuzz_random random = {(uint64_t)data[6] << 8 | data[7]};
    if (data[0] & 1)
        write_image(&header, data + HEAD, size - HEAD);
    else
        read_image(&header, data + HEAD, size - HEAD, &random);
    return 0;
}
