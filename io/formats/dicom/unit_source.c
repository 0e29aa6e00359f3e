/* Frames that are not coded as samples; see unit_source.h. */
#include "unit_source.h"

#include <stdlib.h>
#include <string.h>

#include "dicom_image.h"
#include "frame_stream.h"
#include "io/bytes/zstd_contexts.h"
#include "io/dicom/fragments.h"
#include "io/nodes/jpeg/jpeg.h"
#include "io/recipe/unit.h"

enum {
    IN_VAIN = 16,      /* frames that are no JPEG, or cannot be packed, before any that can, at most */
    FEW_SHARE = 3,     /* fewer frames than that share no head: it would take more than they save */
    RECORD_BYTES = 16, /* of a frame of one fragment, at most */
    UNIT_BYTES = 24,   /* that a unit takes besides its stream, at most */
    SMALL = 1 << 20    /* of a larger file the frames are units however short they are */
};

struct unit_source {
    struct tsr_source base;
    struct tsr_fragments fragments;
    uint8_t *units;
    bool are_jpeg; /* of JPEG or JPEG-LS: their ends are looked at */
};

static enum tsr_status read_stream(struct tsr_source *source, uint32_t frame, struct tsr_bytes *stream,
                                   struct tsr_error *error)
{
    return tsr_fragments_read(&((struct unit_source *)source)->fragments, source->input, frame, stream, error);
}

static enum tsr_status read_frame(struct tsr_source *source, uint32_t frame, uint8_t *raster, struct tsr_error *error)
{
    struct tsr_bytes stream = {.limit = SIZE_MAX / 4};
    enum tsr_status status = read_stream(source, frame, &stream, error);
    if (status == TSR_OK)
        status = tsr_dicom_decode_stream(&source->header, frame, stream.bytes, stream.size, raster, error);
    tsr_bytes_free(&stream);
    return status;
}

static void close_units(struct tsr_source *source)
{
    struct unit_source *const s = (struct unit_source *)source;
    tsr_fragments_free(&s->fragments);
    free(s->units);
}

static const struct tsr_source_ops unit_ops = {
    .read_frame = read_frame, .read_stream = read_stream, .close = close_units};

static bool begins_jpeg(const struct tsr_bytes *stream)
{
    return stream->size > 3 && stream->bytes[0] == 0xff && stream->bytes[1] == 0xd8 && stream->bytes[2] == 0xff;
}

/* The head that streams share: that of the first one that can be packed, or what the first two have in common. */
static enum tsr_status share_head(struct unit_source *s, struct tsr_error *error)
{
    struct tsr_header *const header = &s->base.header;
    struct tsr_bytes stream = {.limit = SIZE_MAX / 4}, unit = {.limit = SIZE_MAX / 4}, first = {.limit = SIZE_MAX / 4};
    enum tsr_unit_kind kind = TSR_UNIT_BYTES;
    enum tsr_status status = TSR_OK;
    for (uint32_t k = 0; k < header->image.frames && k < IN_VAIN && status == TSR_OK && kind != TSR_UNIT_JPEG; k++) {
        stream.size = unit.size = 0;
        status = tsr_fragments_read(&s->fragments, s->base.input, k, &stream, error);
        if (status == TSR_OK && begins_jpeg(&stream))
            status = tsr_unit_make(header, stream.bytes, stream.size, &unit, &kind, error);
    }
    const bool is_plain = kind != TSR_UNIT_JPEG; /* the stream is the last that was tried, */
    if (status == TSR_OK) status = tsr_fragments_read(&s->fragments, s->base.input, 0, &first, error);
    if (status == TSR_OK && header->image.frames >= FEW_SHARE) tsr_unit_share_head(&stream, &first, is_plain, header);
    s->are_jpeg = status == TSR_OK && (begins_jpeg(&first) || begins_jpeg(&stream));
    tsr_bytes_free(&stream);
    tsr_bytes_free(&first);
    tsr_bytes_free(&unit);
    return status;
}

/* Notes what looks damaged. */
static enum tsr_status look_at_ends(struct unit_source *s, struct tsr_error *error)
{
    struct tsr_bytes stream = {.limit = SIZE_MAX / 4};
    enum tsr_status status = TSR_OK;
    for (uint32_t k = 0; k < s->base.header.image.frames && s->are_jpeg && status == TSR_OK; k++) {
        stream.size = 0;
        status = tsr_fragments_read(&s->fragments, s->base.input, k, &stream, error);
        if (status == TSR_OK && !tsr_jpeg_has_end(stream.bytes, stream.size))
            tsr_input_note_damage(s->base.input, "the JPEG stream of frame %u has no end: EOI is missing", k + 1);
    }
    tsr_bytes_free(&stream);
    return status;
}

/* Prefix, records and suffix. */
static enum tsr_status put_blobs(struct unit_source *s, struct tsr_error *error)
{
    const struct tsr_fragments *const f = &s->fragments;
    struct tsr_bytes records = {.limit = SIZE_MAX / 4};
    enum tsr_status status = TSR_OK;
    for (uint32_t k = 0; k < s->base.header.image.frames && status == TSR_OK; k++) {
        status = tsr_fragments_put_record(f, k, &records, error);
        if (status == TSR_OK) status = tsr_bytes_put_varint(&records, 0, error);
    }
    if (status != TSR_OK) tsr_bytes_free(&records);
    TSR_TRY(status);
    TSR_TRY(tsr_source_put(&s->base, TSR_BLOB_RESIDUES, records.bytes, records.size, true, error));
    TSR_TRY(tsr_source_put_range(&s->base, TSR_BLOB_PREFIX, 0, f->before, error));
    return tsr_source_put_range(&s->base, TSR_BLOB_SUFFIX, f->size - f->after, f->after, error);
}

static enum tsr_status open_units(struct unit_source *s, uint64_t value, struct tsr_error *error)
{
    const uint32_t frames = s->base.header.image.frames;
    TSR_TRY(tsr_fragments_list(s->base.input, value, frames, 0, &s->fragments, error));
    s->base.longest_unit = s->fragments.longest;
    s->base.only_lossless = "streams that are not decoded";
    TSR_TRY(share_head(s, error));
    s->units = malloc(frames);
    if (!s->units) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %u frames", frames);
    memset(s->units, 1, frames);
    s->base.units = s->units;
    TSR_TRY(look_at_ends(s, error));
    return put_blobs(s, error);
}

/* Chroma may be subsampled in the streams, whose samples are interleaved. */
static enum tsr_status describe(const struct tsr_dicom *said, struct tsr_image *image, struct tsr_error *error)
{
    struct tsr_dicom dicom = *said;
    dicom.photometric[0] = '\0';
    dicom.planar = 0;
    TSR_TRY(tsr_dicom_image(&dicom, image, error));
    if (tsr_check_coded_image(image, error) == TSR_OK && image->bits_allocated > 1 && !image->big_endian) return TSR_OK;
    return tsr_fail(error, TSR_ERROR_CORRUPT, "it has no usual image");
}

/* Packed or stored, a file takes less, and its frames cannot be read alone: of one frame, or of tiny ones in a small
 * file, where that would take more than 1/32 of it. */
static bool is_better_whole(const struct tsr_items *items, uint32_t frames, uint64_t size)
{
    return frames == 1 || (size <= SMALL && UNIT_BYTES * (uint64_t)frames > items->bytes / 32);
}

static enum tsr_status open_source(struct tsr_input *input, const struct tsr_dicom *dicom, uint64_t value, bool is_read,
                                   struct tsr_source **source, struct tsr_error *error)
{
    struct tsr_header header = {.kind = TSR_KIND_DICOM,
                                .recipe = TSR_RECIPE_ENCAPSULATED,
                                .exact = true,
                                .parameters = {TSR_STREAMS_OF_UNITS},
                                .parameter_count = 1};
    TSR_TRY(describe(dicom, &header.image, error));
    const uint64_t size = tsr_input_size(input), frames = header.image.frames;
    const struct tsr_items items = tsr_fragments_look(input, value, header.image.frames);
    if (items.count < frames)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "its %u frames are in %llu fragments", header.image.frames,
                        (unsigned long long)items.count);
    if (!is_read && is_better_whole(&items, header.image.frames, size))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "its transfer syntax is %s", dicom->syntax_uid);
    const uint64_t records = RECORD_BYTES * (frames + items.count), rest = size - items.bytes,
                   held = tsr_fragments_memory(&items, header.image.frames) + frames + 2 * records +
                          tsr_chunk_memory(false, size); /* what the file takes stored is measured */
    const struct tsr_need need = {.opening = held + tsr_unit_memory(&header, items.longest),
                                  .held = held,
                                  .blob = rest > records ? rest : records,
                                  .unit = items.longest,
                                  .only_lossless = true};
    TSR_TRY(tsr_input_claim(input, &header, &need, error));
    struct unit_source *const s = tsr_source_create(sizeof *s, input, &header, &unit_ops, error);
    const enum tsr_status status = s ? open_units(s, value, error) : TSR_ERROR_LIMIT;
    return tsr_source_finish(s, status, source);
}

enum tsr_status tsr_units_open(struct tsr_input *input, const struct tsr_dicom *dicom,
                               const struct tsr_dicom_element *pixels, bool is_read, struct tsr_source **source,
                               struct tsr_error *error)
{
    struct tsr_error why;
    *source = NULL;
    const enum tsr_status status = pixels->length == TSR_UNDEFINED_LENGTH
                                       ? open_source(input, dicom, pixels->value, is_read, source, &why)
                                       : TSR_ERROR_CORRUPT;
    if (status == TSR_ERROR_CORRUPT) return tsr_fail(error, status, "its transfer syntax is %s", dicom->syntax_uid);
    if (status != TSR_OK) *error = why;
    return status;
}
