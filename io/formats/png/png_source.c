/* Reading PNG: IDAT chunks become pixels and a residue; all other chunks are kept as they are. FORMAT.md 4.3. */
#include "io/formats/format.h"

#include <stdlib.h>
#include <string.h>

#include "png_file.h"
#include "io/formats/packed.h"

static bool is_png(const uint8_t *head, size_t size)
{
    return size >= 8 && memcmp(head, "\x89PNG\r\n\x1a\n", 8) == 0;
}

#define FILE_LIMIT ((uint64_t)1 << 31)

struct png_source {
    struct tsr_source base;
    const uint8_t *file;           /* the whole file, held by the input */
    size_t first_idat, after_idat; /* offsets in bytes */
    size_t start;                  /* bytes of the usual start, which are not in the prefix */
    uint8_t *raster;
    struct tsr_bytes residue; /* of the IDAT chunks */
    bool proven;              /* raster and residue give the same chunks */
};

static enum tsr_status read_blob(struct tsr_source *source, enum tsr_blob blob, uint64_t offset, void *buffer,
                                 size_t size, struct tsr_error *error)
{
    struct png_source *s = (struct png_source *)source;
    (void)error;
    const uint8_t *const bytes = blob == TSR_BLOB_PREFIX   ? s->file + s->start
                                 : blob == TSR_BLOB_SUFFIX ? s->file + s->after_idat
                                                           : s->residue.bytes;
    memcpy(buffer, bytes + offset, size);
    return TSR_OK;
}

static size_t raster_bytes(const struct tsr_image *image)
{
    return (size_t)(tsr_frame_bits(image) / 8);
}

static enum tsr_status read_frame(struct tsr_source *source, uint32_t frame, uint8_t *raster, struct tsr_error *error)
{
    struct png_source *s = (struct png_source *)source;
    (void)frame;
    (void)error;
    memcpy(raster, s->raster, raster_bytes(&source->header.image));
    return TSR_OK;
}

static const uint8_t *rasters_of(const struct tsr_source *source)
{
    return ((const struct png_source *)source)->raster;
}

static void close_png(struct tsr_source *source)
{
    struct png_source *s = (struct png_source *)source;
    tsr_bytes_free(&s->residue);
    free(s->raster);
    free(s);
}

static const struct tsr_source_ops png_ops = {read_blob, read_frame, NULL, close_png, rasters_of};

/* The next chunk. Errors: TSR_ERROR_CORRUPT (the file ends before the chunk does). */
static enum tsr_status next_chunk(const uint8_t *file, size_t size, size_t *at, struct tsr_png_chunk *chunk,
                                  struct tsr_error *error)
{
    if (tsr_png_next(file, size, at, chunk)) return TSR_OK;
    if (*at == size)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, *at, "it ends early, at byte %zu: it has no IEND chunk", *at);
    return tsr_fail_at(error, TSR_ERROR_CORRUPT, *at, "it ends early: its chunk at byte %zu is cut", *at);
}

void tsr_png_note_chunks(struct tsr_input *input, const uint8_t *file, size_t size)
{
    struct tsr_png_chunk chunk;
    struct tsr_error error;
    bool ended = size < TSR_PNG_SIGNATURE_BYTES;
    for (size_t at = TSR_PNG_SIGNATURE_BYTES, before = at; !ended; before = at) {
        if (next_chunk(file, size, &at, &chunk, &error) != TSR_OK) {
            tsr_input_note_damage(input, "%s", error.text);
            return;
        }
        if (!tsr_png_is(&chunk, "IDAT") && !tsr_png_checks(&chunk)) /* CRCs of IDAT are looked at with the pixels */
            tsr_input_note_damage(input, "its chunk at byte %zu has a wrong CRC", before);
        ended = tsr_png_is(&chunk, "IEND");
    }
}

/* Finds the IDAT chunks, which must follow each other directly. All bytes after them are the suffix, also those after
 * IEND. */
static enum tsr_status find_chunks(struct png_source *s, size_t size, struct tsr_error *error)
{
    struct tsr_png_chunk chunk;
    size_t at = TSR_PNG_SIGNATURE_BYTES;
    bool ended = false;
    for (size_t before = at; !ended; before = at) {
        TSR_TRY(next_chunk(s->file, size, &at, &chunk, error));
        if (tsr_png_is(&chunk, "IDAT")) {
            if (s->first_idat == 0)
                s->first_idat = before;
            else if (before != s->after_idat)
                return tsr_fail(error, TSR_ERROR_CORRUPT, "its IDAT chunks do not stand together");
            s->after_idat = at;
        }
        if (tsr_png_is(&chunk, "acTL")) return tsr_fail(error, TSR_ERROR_CORRUPT, "it is an animated PNG");
        ended = tsr_png_is(&chunk, "IEND");
    }
    if (s->first_idat == 0) return tsr_fail_at(error, TSR_ERROR_CORRUPT, at, "it has no IDAT chunk");
    return TSR_OK;
}

/* Describes the image of an IHDR chunk (PNG specification, 11.2.2). */
static enum tsr_status describe(const uint8_t *ihdr, struct tsr_header *header, struct tsr_error *error)
{
    const uint8_t depth = ihdr[8], type = ihdr[9];
    struct tsr_image *image = &header->image;
    image->columns = tsr_png_get_u32(ihdr);
    image->rows = tsr_png_get_u32(ihdr + 4);
    image->frames = 1;
    image->components = tsr_png_channels(type);
    image->bits_allocated = depth == 16 ? 16 : 8;
    image->bits_stored = depth;
    image->high_bit = (uint8_t)(depth - 1);
    image->big_endian = depth == 16;
    image->exact_only = type == TSR_PNG_PALETTE || depth == 1;
    header->kind = TSR_KIND_PNG;
    header->recipe = TSR_RECIPE_PNG;
    header->exact = true;
    header->parameters[TSR_PNG_COLOUR_TYPE] = type;
    header->parameters[TSR_PNG_FORM] = ihdr[12];
    header->parameter_count = TSR_PNG_PARAMETERS;
    if (!tsr_png_is_valid(header) || ihdr[10] != 0 || ihdr[11] != 0 || ihdr[12] > TSR_PNG_INTERLACED)
        return tsr_fail(
            error, TSR_ERROR_CORRUPT,
            "it is a PNG of an unknown form: depth %u, colour type %u, compression %u, filter %u, interlace %u", depth,
            type, ihdr[10], ihdr[11], ihdr[12]);
    return tsr_check_image(image, error) == TSR_OK ? TSR_OK : TSR_ERROR_CORRUPT;
}

/* Reads the header, and claims memory for the image and for its chunks. */
static enum tsr_status read_header(struct tsr_input *input, struct tsr_header *header, struct tsr_error *error)
{
    const uint8_t *head;
    if (tsr_input_size(input) < TSR_PNG_START_BYTES)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, tsr_input_size(input),
                           "it ends early: it has no whole IHDR chunk");
    TSR_TRY(tsr_input_hold(input, TSR_PNG_START_BYTES, &head, error));
    if (tsr_png_get_u32(head + TSR_PNG_SIGNATURE_BYTES) != TSR_PNG_IHDR_BYTES ||
        memcmp(head + TSR_PNG_SIGNATURE_BYTES + 4, "IHDR", 4) != 0)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "its first chunk is no IHDR");
    TSR_TRY(describe(head + TSR_PNG_SIGNATURE_BYTES + 8, header, error));
    const uint64_t size = tsr_input_size(input),
                   raster = raster_bytes(&header->image), /* the file, pixels, a residue */
        held = 2 * size + 2 * (uint64_t)header->image.rows + raster,
                   reading = size + raster + tsr_png_idat_memory(tsr_png_rows_of(header), size),
                   packing = held + tsr_packing_read_png_memory(size, tsr_png_plain_bytes(tsr_png_rows_of(header)));
    const struct tsr_need need = {
        .opening = reading > packing ? reading : packing, .held = held, .blob = size, .has_rasters = true};
    return tsr_input_claim(input, header, &need, error);
}

/* Makes the raster and the residue, and sees that they give the same chunks. The chunks of a lossy copy are others. */
static enum tsr_status read_pixels(struct png_source *s, const struct tsr_crew *crew, bool may_lose,
                                   struct tsr_error *error)
{
    const struct tsr_header *header = &s->base.header;
    const uint8_t *const chunks = s->file + s->first_idat;
    const size_t size = s->after_idat - s->first_idat;
    struct tsr_bytes again = {.limit = size};
    s->residue.limit = size + 64 + 2 * (size_t)header->image.rows; /* each row, of each pass, may have its filter */
    s->raster = malloc(raster_bytes(&header->image));
    if (!s->raster) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu bytes", raster_bytes(&header->image));
    TSR_TRY(tsr_png_read_idat(tsr_png_rows_of(header), crew, chunks, size, s->raster, &s->residue, error));
    if (may_lose && !header->image.exact_only) return TSR_OK;
    enum tsr_status status =
        tsr_png_write_idat(tsr_png_rows_of(header), crew, s->raster, s->residue.bytes, s->residue.size, &again, error);
    if (status != TSR_ERROR_LIMIT && (status != TSR_OK || again.size != size || memcmp(again.bytes, chunks, size) != 0))
        status = tsr_fail(error, TSR_ERROR_CORRUPT, "its IDAT chunks do not come back");
    tsr_bytes_free(&again);
    s->proven = status == TSR_OK;
    return status;
}

enum tsr_status tsr_png_chunks_of(const struct tsr_source *source, const struct tsr_crew *crew, struct tsr_bytes *plain,
                                  struct tsr_bytes *residue, struct tsr_error *error)
{
    const struct png_source *const s = (const struct png_source *)source;
    if (!s->proven) return tsr_fail(error, TSR_ERROR_CORRUPT, "its IDAT chunks were read for a lossy copy");
    return tsr_png_rows_to_chunks(tsr_png_rows_of(&source->header), crew, s->raster, s->residue.bytes, s->residue.size,
                                  plain, residue, error);
}

/* The bytes before and after the chunks, without the usual start and end. */
static void set_blobs(struct png_source *s, size_t size)
{
    uint8_t *const form = &s->base.header.parameters[TSR_PNG_FORM];
    uint8_t start[TSR_PNG_START_BYTES];
    size_t end = size;
    tsr_png_start(&s->base.header, start);
    if (memcmp(s->file, start, sizeof start) == 0) {
        *form |= TSR_PNG_USUAL_START;
        s->start = sizeof start;
    }
    if (size - s->after_idat >= TSR_PNG_END_BYTES &&
        memcmp(s->file + size - TSR_PNG_END_BYTES, tsr_png_end, TSR_PNG_END_BYTES) == 0) {
        *form |= TSR_PNG_USUAL_END;
        end -= TSR_PNG_END_BYTES;
    }
    s->base.blob_size[TSR_BLOB_PREFIX] = s->first_idat - s->start;
    s->base.blob_size[TSR_BLOB_RESIDUES] = s->residue.size;
    s->base.blob_size[TSR_BLOB_SUFFIX] = end - s->after_idat;
}

static enum tsr_status open_png(struct tsr_input *input, const struct tsr_source_options *options,
                                struct tsr_source **source, struct tsr_error *error)
{
    const uint64_t size = tsr_input_size(input);
    struct tsr_header header = {0};
    *source = NULL;
    if (size > FILE_LIMIT) return tsr_fail(error, TSR_ERROR_CORRUPT, "it is a PNG of more than 2 GiB");
    TSR_TRY(read_header(input, &header, error));
    struct png_source *s = calloc(1, sizeof *s);
    if (!s) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a source");
    s->base.ops = &png_ops;
    s->base.header = header;
    enum tsr_status status = tsr_input_hold(input, (size_t)size, &s->file, error);
    if (status == TSR_OK) tsr_png_note_chunks(input, s->file, (size_t)size);
    if (status == TSR_OK) status = find_chunks(s, (size_t)size, error);
    const struct tsr_crew crew = tsr_input_crew(input);
    if (status == TSR_OK) status = read_pixels(s, &crew, options->may_lose, error);
    if (status != TSR_OK) {
        close_png(&s->base);
        return status;
    }
    set_blobs(s, (size_t)size);
    *source = &s->base;
    return TSR_OK;
}

const struct tsr_format tsr_png_format = {TSR_KIND_PNG, "png", is_png, open_png};
