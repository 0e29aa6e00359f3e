/* Finds the image of a PNG: IDAT chunks become a raster and a residue, and all other chunks bytes of prefix and suffix.
 * PNG.md. */
#include "io/formats/format.h"

#include <stdlib.h>
#include <string.h>

#include "io/recipe/prove.h"
#include "png_file.h"
#include "io/formats/packed.h"

static bool is_png(const uint8_t *head, size_t size)
{
    return size >= 8 && memcmp(head, "\x89PNG\r\n\x1a\n", 8) == 0;
}

#define FILE_LIMIT ((uint64_t)1 << 31)

/* Where things are in a file. */
struct png {
    const uint8_t *file;                 /* held by the input */
    size_t size, first_idat, after_idat; /* in bytes */
    bool has_end;                        /* IEND */
};

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

/* Finds the IDAT chunks, which must follow each other directly; the file may end after them, or within the last one.
 * All bytes after them are the suffix, also those after IEND. */
static enum tsr_status find_chunks(struct png *s, struct tsr_error *error)
{
    struct tsr_png_chunk chunk;
    size_t at = TSR_PNG_SIGNATURE_BYTES;
    for (s->has_end = false; !s->has_end;) {
        const enum tsr_status status = next_chunk(s->file, s->size, &at, &chunk, error);
        if (status != TSR_OK && !tsr_png_find_idat(s->file, s->size, &s->first_idat, &s->after_idat)) return status;
        if (status != TSR_OK) return TSR_OK;
        if (tsr_png_is(&chunk, "acTL")) return tsr_fail(error, TSR_ERROR_CORRUPT, "it is an animated PNG");
        s->has_end = tsr_png_is(&chunk, "IEND");
    }
    if (tsr_png_find_idat(s->file, at, &s->first_idat, &s->after_idat)) return TSR_OK;
    return s->first_idat > 0 ? tsr_fail(error, TSR_ERROR_CORRUPT, "its IDAT chunks do not stand together")
                             : tsr_fail_at(error, TSR_ERROR_CORRUPT, at, "it has no IDAT chunk");
}

/* Describes the image of an IHDR chunk (PNG specification, 11.2.2). */
static enum tsr_status describe(const uint8_t *ihdr, struct tsr_header *header, struct tsr_error *error)
{
    const uint8_t depth = ihdr[8], type = ihdr[9];
    struct tsr_image *image = &header->image;
    image->columns = tsr_read_u32_be(ihdr);
    image->rows = tsr_read_u32_be(ihdr + 4);
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
    return tsr_check_coded_image(image, error) == TSR_OK ? TSR_OK : TSR_ERROR_CORRUPT;
}

/* Reads the header, and claims memory for the image and for its chunks. */
static enum tsr_status read_header(struct tsr_input *input, struct tsr_header *header, struct tsr_error *error)
{
    const uint8_t *head;
    if (tsr_input_size(input) < TSR_PNG_START_BYTES)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, tsr_input_size(input),
                           "it ends early: it has no whole IHDR chunk");
    TSR_TRY(tsr_input_hold(input, TSR_PNG_START_BYTES, &head, error));
    if (tsr_read_u32_be(head + TSR_PNG_SIGNATURE_BYTES) != TSR_PNG_IHDR_BYTES ||
        memcmp(head + TSR_PNG_SIGNATURE_BYTES + 4, "IHDR", 4) != 0)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "its first chunk is no IHDR");
    TSR_TRY(describe(head + TSR_PNG_SIGNATURE_BYTES + 8, header, error));
    const uint64_t size = tsr_input_size(input),
                   raster = tsr_raster_bytes(&header->image), /* the file, pixels, a residue */
        held = 2 * size + 2 * (uint64_t)header->image.rows + raster,
                   reading = size + raster + tsr_png_idat_memory(tsr_png_rows_of(header), size),
                   packing = held + tsr_packing_read_png_memory(size, tsr_png_plain_bytes(tsr_png_rows_of(header)));
    const struct tsr_need need = {
        .opening = reading > packing ? reading : packing, .held = held, .blob = size, .has_rasters = true};
    return tsr_input_claim(input, header, &need, error);
}

/* Makes the raster, and the residue, of which it sees that they give the same chunks. is_new: the chunks of the
 * restored file are others. */
static enum tsr_status read_pixels(struct tsr_source *source, const struct png *png, bool is_new,
                                   struct tsr_error *error)
{
    const struct tsr_header *const header = &source->header;
    const struct tsr_node_work work = {.image = &header->image,
                                       .interlaced = tsr_png_rows_of(header).interlaced,
                                       .crew = tsr_input_crew(source->input),
                                       .guessed = tsr_input_guessed(source->input),
                                       .is_verified = tsr_input_is_verified(source->input)};
    const uint8_t *const chunks = png->file + png->first_idat;
    const size_t size = png->after_idat - png->first_idat, bytes = tsr_raster_bytes(&header->image);
    struct tsr_bytes residue = {.limit = size + 64 + 2 * (size_t)header->image.rows}; /* each row may have its filter */
    struct tsr_bytes raster = {.bytes = malloc(bytes), .capacity = bytes, .limit = bytes};
    struct tsr_error why = {.offset = TSR_NO_OFFSET};
    size_t used;
    if (!raster.bytes) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu bytes", bytes);
    source->held[0] = raster.bytes;
    source->rasters = raster.bytes;
    const enum tsr_status status =
        is_new ? tsr_png_read_raster(tsr_png_rows_of(header), &work.crew, chunks, size, raster.bytes, &why)
               : tsr_prove(&tsr_node_png, &work, chunks, size, &used, &raster, &residue, &why);
    source->is_proven = status == TSR_OK && !is_new;
    if (status == TSR_OK && why.offset != TSR_NO_OFFSET) tsr_input_note_damage(source->input, "%s", why.text);
    if (status != TSR_OK) *error = why;
    if (status == TSR_OK && !is_new)
        return tsr_source_put(source, TSR_BLOB_RESIDUES, residue.bytes, residue.size, true, error);
    tsr_bytes_free(&residue);
    return status;
}

enum tsr_status tsr_png_chunks_of(const struct tsr_source *source, const struct tsr_crew *crew, struct tsr_bytes *plain,
                                  struct tsr_bytes *residue, struct tsr_error *error)
{
    const struct tsr_extent *const residues = source->blob[TSR_BLOB_RESIDUES].extent;
    if (!source->is_proven) return tsr_fail(error, TSR_DECLINED, "of its IDAT chunks the pixels alone were read");
    return tsr_png_rows_to_chunks(tsr_png_rows_of(&source->header), crew, source->rasters, residues->bytes,
                                  (size_t)residues->size, plain, residue, error);
}

/* Whether the start and the end are the usual ones. */
static void note_form(const struct png *png, struct tsr_header *header)
{
    uint8_t *const form = &header->parameters[TSR_PNG_FORM], usual[TSR_PNG_START_BYTES];
    tsr_png_start(header, usual);
    if (memcmp(png->file, usual, sizeof usual) == 0) *form |= TSR_PNG_USUAL_START;
    if (png->size - png->after_idat >= TSR_PNG_END_BYTES &&
        memcmp(png->file + png->size - TSR_PNG_END_BYTES, tsr_png_end, TSR_PNG_END_BYTES) == 0)
        *form |= TSR_PNG_USUAL_END;
}

/* The bytes before and after the chunks, without the usual start and end. */
static enum tsr_status put_blobs(struct tsr_source *source, const struct png *png, struct tsr_error *error)
{
    note_form(png, &source->header);
    const uint8_t form = source->header.parameters[TSR_PNG_FORM];
    const size_t start = form & TSR_PNG_USUAL_START ? TSR_PNG_START_BYTES : 0,
                 end = png->size - (form & TSR_PNG_USUAL_END ? TSR_PNG_END_BYTES : 0);
    TSR_TRY(tsr_source_put(source, TSR_BLOB_PREFIX, png->file + start, png->first_idat - start, false, error));
    return tsr_source_put(source, TSR_BLOB_SUFFIX, png->file + png->after_idat, end - png->after_idat, false, error);
}

enum tsr_status tsr_png_check_rest(const struct tsr_header *header, const uint8_t *file, size_t size, size_t at,
                                   struct tsr_error *error)
{
    static const char other[] = "the restored file is not the PNG that the .tsr describes";
    struct tsr_header again = {0};
    struct png png = {.file = file, .size = size};
    if (size < TSR_PNG_START_BYTES || !is_png(file, size) ||
        tsr_read_u32_be(file + TSR_PNG_SIGNATURE_BYTES) != TSR_PNG_IHDR_BYTES ||
        memcmp(file + TSR_PNG_SIGNATURE_BYTES + 4, "IHDR", 4) != 0)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "%s", other);
    TSR_TRY(describe(file + TSR_PNG_SIGNATURE_BYTES + 8, &again, error));
    TSR_TRY(find_chunks(&png, error));
    note_form(&png, &again);
    return png.has_end && png.first_idat == at &&
                   png.after_idat == at + TSR_PNG_CHUNK_BYTES + tsr_raster_bytes(&header->image) &&
                   tsr_same_image(&again.image, &header->image) && again.parameter_count == header->parameter_count &&
                   memcmp(again.parameters, header->parameters, again.parameter_count) == 0
               ? TSR_OK
               : tsr_fail(error, TSR_ERROR_CORRUPT, "%s", other);
}

static enum tsr_status open_png(struct tsr_input *input, const struct tsr_source_options *options,
                                struct tsr_source **source, struct tsr_error *error)
{
    const uint64_t size = tsr_input_size(input);
    struct tsr_header header = {0};
    struct png png = {.size = (size_t)size};
    *source = NULL;
    if (size > FILE_LIMIT) return tsr_fail(error, TSR_ERROR_CORRUPT, "it is a PNG of more than 2 GiB");
    TSR_TRY(read_header(input, &header, error));
    struct tsr_source *const s = tsr_source_create(sizeof *s, input, &header, NULL, error);
    if (!s) return TSR_ERROR_LIMIT;
    enum tsr_status status = tsr_input_hold(input, png.size, &png.file, error);
    if (status == TSR_OK) tsr_png_note_chunks(input, png.file, png.size);
    if (status == TSR_OK) status = find_chunks(&png, error);
    if (status == TSR_OK && !png.has_end) s->only_lossless = "PNG files without an end";
    const bool is_new = png.has_end && (options->samples_only || (options->may_lose && !header.image.exact_only));
    if (status == TSR_OK) s->header.exact = !(options->samples_only && png.has_end);
    if (status == TSR_OK) status = read_pixels(s, &png, is_new, error);
    if (status == TSR_OK) status = put_blobs(s, &png, error);
    if ((status == TSR_ERROR_CORRUPT || status == TSR_DECLINED) && tsr_input_damage(input)[0]) /* is why */
        tsr_fail(error, status, "%s", tsr_input_damage(input));
    return tsr_source_finish(s, status, source);
}

const struct tsr_format tsr_png_format = {TSR_KIND_PNG, "png", is_png, open_png, NULL};
