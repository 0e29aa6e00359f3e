/* Encapsulated DICOM: the streams of the frames become rasters and residues. FORMAT.md 4.4, PS3.5 A.4. */
#include "encapsulated_source.h"

#include <stdlib.h>
#include <string.h>

#include "frame_stream.h"
#include "io/bytes/cursor.h"
#include "io/dicom/fragments.h"
#include "io/recipe/prove.h"
#include "io/recipe/unit.h"

/* Rasters of at most this size are kept from the check of the streams until they are coded. */
#define KEPT_BYTES ((uint64_t)64 << 20)

/* What a stream may unfold to, beside 64 MiB, in bytes for each byte of the file. */
enum { UNFOLD_RATIO = 1024 };

enum {
    RESIDUE_MORE = 4096, /* bytes that a residue may have more than its stream: a longer one is of no use */
    RECORD_BYTES = 16,   /* of a frame's record, besides its residue and the sizes of fragments */
    USUAL_SHARE = 4,     /* of the streams' bytes, which all residues have at most as a rule */
    FEW_BYTES = 1 << 16, /* besides that */
    IN_VAIN = 16         /* frames that cannot be made again before any that can, at most */
};

/* Room for residues: none, as a rule, or all that there may be. */
enum room { NO_ROOM, USUAL_ROOM, ALL_ROOM };

struct encapsulated_source {
    struct tsr_source base;
    const struct tsr_node *kind;
    const uint8_t *file; /* the whole file, held by the input */
    struct tsr_fragments fragments;
    struct tsr_bytes residues, joined;
    bool takes_more; /* residues are longer than their limit */
    uint8_t *units;  /* by frame: 1: its stream stands in the file, and it has no samples */
    uint32_t unit_count;
    bool takes_units;  /* a frame may be one */
    bool samples_only; /* they come back in a native file */
};

/* ---- Streams ----------------------------------------------------------------------------------------------- */

/* A frame's stream: a fragment, or several that are joined. */
static enum tsr_status find_stream(struct encapsulated_source *s, uint32_t frame, const uint8_t **stream, size_t *size,
                                   struct tsr_error *error)
{
    const uint32_t first = s->fragments.first[frame];
    const struct tsr_fragment *const fragment = s->fragments.fragment + first;
    *stream = s->file + fragment->start;
    *size = (size_t)fragment->size;
    if (s->fragments.first[frame + 1] - first == 1) return TSR_OK;
    s->joined.size = 0;
    TSR_TRY(tsr_fragments_read(&s->fragments, s->base.input, frame, &s->joined, error));
    *stream = s->joined.bytes;
    *size = s->joined.size;
    return *stream ? TSR_OK : tsr_fail(error, TSR_ERROR_CORRUPT, "frame %u has no stream", frame + 1);
}

/* Writes the record of a frame: its fragments, and its stream's residue. FORMAT.md 4.4. */
static enum tsr_status put_record(struct encapsulated_source *s, uint32_t frame, const struct tsr_bytes *residue,
                                  struct tsr_error *error)
{
    const uint32_t count = s->fragments.first[frame + 1] - s->fragments.first[frame];
    const uint64_t most = residue->size + TSR_VARINT_LIMIT * ((uint64_t)count + 1);
    s->takes_more = most > s->residues.limit - s->residues.size;
    if (s->takes_more) return tsr_fail(error, TSR_ERROR_CORRUPT, "its streams cannot be made again from few bytes");
    TSR_TRY(tsr_fragments_put_record(&s->fragments, frame, &s->residues, error));
    return tsr_bytes_put_list(&s->residues, residue->bytes, residue->size, 0, error);
}

/* Decodes a frame, makes its stream again, and compares. */
static enum tsr_status take_frame(struct encapsulated_source *s, uint32_t frame, uint8_t *raster,
                                  struct tsr_bytes *residue, struct tsr_bytes *again, struct tsr_error *error)
{
    const struct tsr_image *const image = &s->base.header.image;
    const uint8_t *stream;
    size_t size;
    TSR_TRY(find_stream(s, frame, &stream, &size, error));
    residue->size = 0;
    residue->limit = (s->samples_only ? 4 * size : size) + RESIDUE_MORE;
    struct tsr_error why = {.offset = TSR_NO_OFFSET};
    const enum tsr_status status = tsr_node_split(s->kind, image, stream, size, raster, residue, &why);
    if (status != TSR_OK)
        return tsr_fail_at(error, status, why.offset, "the stream of frame %u cannot be %s: %s", frame + 1,
                           s->samples_only ? "decoded" : "made again", why.text);
    if (why.offset != TSR_NO_OFFSET)
        tsr_input_note_damage(s->base.input, "the stream of frame %u is damaged: %s", frame + 1, why.text);
    if (s->samples_only) return TSR_OK;
    const struct tsr_node_work work = {.image = image};
    const struct tsr_node_parts parts = {raster, residue->bytes, tsr_raster_bytes(image), residue->size};
    const enum tsr_status proven = tsr_prove_parts(s->kind, &work, &parts, stream, size, again, error);
    if (proven == TSR_DECLINED)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "its frame %u does not come back as the same stream", frame + 1);
    return proven == TSR_OK ? put_record(s, frame, residue, error) : proven;
}

/* Makes a unit of a frame whose stream cannot be made again, unless it looks as if none could. first: why the first one
 * is a unit. */
static enum tsr_status take_unit(struct encapsulated_source *s, uint32_t frame, struct tsr_error *first,
                                 struct tsr_error *why)
{
    const uint32_t frames = s->base.header.image.frames;
    const struct tsr_bytes none = {0};
    if (s->unit_count == 0) *first = *why;
    if (frames == 1 || (frame + 1 >= IN_VAIN && s->unit_count == frame)) return TSR_ERROR_CORRUPT;
    if (!s->units) s->units = calloc(frames, sizeof *s->units);
    if (!s->units) return tsr_fail(why, TSR_ERROR_LIMIT, "no memory for %u frames", frames);
    if (why->offset != TSR_NO_OFFSET) tsr_input_note_damage(s->base.input, "%s", why->text);
    s->units[frame] = 1;
    s->unit_count++;
    return put_record(s, frame, &none, why);
}

static enum tsr_status take_frames(struct encapsulated_source *s, uint8_t *rasters, struct tsr_error *error)
{
    const struct tsr_image *const image = &s->base.header.image;
    const size_t raster_bytes = tsr_raster_bytes(image);
    struct tsr_bytes residue = {0}, again = {0};
    struct tsr_error first = {.offset = TSR_NO_OFFSET};
    enum tsr_status status = TSR_OK;
    struct tsr_error why;
    for (uint32_t f = 0; f < image->frames && status == TSR_OK; f++) {
        status = take_frame(s, f, rasters + (s->base.rasters ? f * raster_bytes : 0), &residue, &again, &why);
        if (status == TSR_ERROR_CORRUPT && s->takes_units && !s->takes_more) status = take_unit(s, f, &first, &why);
    }
    if (status == TSR_OK && s->unit_count == image->frames) status = TSR_ERROR_CORRUPT;
    if (status != TSR_OK && error) *error = s->unit_count > 0 && status == TSR_ERROR_CORRUPT ? first : why;
    tsr_bytes_free(&residue);
    tsr_bytes_free(&again);
    return status;
}

/* ---- The source -------------------------------------------------------------------------------------------- */

/* Decodes a frame again. */
static enum tsr_status read_frame(struct tsr_source *source, uint32_t frame, uint8_t *raster, struct tsr_error *error)
{
    struct encapsulated_source *s = (struct encapsulated_source *)source;
    const uint8_t *stream;
    size_t size;
    struct tsr_bytes residue = {.limit = SIZE_MAX};
    enum tsr_status status = find_stream(s, frame, &stream, &size, error);
    if (status == TSR_OK && s->units && s->units[frame])
        status = tsr_dicom_decode_stream(&source->header, frame, stream, size, raster, error);
    else if (status == TSR_OK)
        status = tsr_node_split(s->kind, &source->header.image, stream, size, raster, &residue, error);
    tsr_bytes_free(&residue);
    return status;
}

static void close_encapsulated(struct tsr_source *source)
{
    struct encapsulated_source *s = (struct encapsulated_source *)source;
    tsr_bytes_free(&s->residues);
    tsr_bytes_free(&s->joined);
    tsr_fragments_free(&s->fragments);
    free(s->units);
}

static enum tsr_status read_stream(struct tsr_source *source, uint32_t frame, struct tsr_bytes *stream,
                                   struct tsr_error *error)
{
    struct encapsulated_source *s = (struct encapsulated_source *)source;
    return tsr_fragments_read(&s->fragments, source->input, frame, stream, error);
}

static const struct tsr_source_ops encapsulated_ops = {
    .read_frame = read_frame, .read_stream = read_stream, .close = close_encapsulated};

/* ---- Memory ------------------------------------------------------------------------------------------------ */

/* What reading takes: the file, the list of its fragments, residues; a stream joined and made again, a residue, and
 * what their coder takes; and the rasters that are kept, or one. */
static struct tsr_need need_of(struct tsr_input *input, const struct tsr_image *image, uint64_t value,
                               const struct tsr_node *kind, enum room room, bool takes_units, uint64_t *residues_room)
{
    const struct tsr_items items = tsr_fragments_look(input, value, image->frames);
    const uint64_t raster = tsr_raster_bytes(image), all = raster * image->frames, size = tsr_input_size(input),
                   lists = tsr_fragments_memory(&items, image->frames) + image->frames,
                   most = items.bytes + RECORD_BYTES * (uint64_t)image->frames, usual = most / USUAL_SHARE + FEW_BYTES,
                   residues = room == NO_ROOM                    ? 0
                              : room == ALL_ROOM || usual > most ? most
                                                                 : usual,
                   joined = items.count != image->frames ? items.longest : 0,
                   held = size + lists + residues + joined + (all <= KEPT_BYTES ? all : 0),
                   again = kind->memory(&(struct tsr_node_work){.image = image}, items.longest, false) + items.longest +
                           RESIDUE_MORE;
    *residues_room = residues < most ? residues : 2 * size; /* which no file reaches */
    return (struct tsr_need){
        .opening = held + (all <= KEPT_BYTES ? 0 : raster) + again + (kind->join ? items.longest : 0),
        .held = held + (all <= KEPT_BYTES ? 0 : again),
        .blob = size,
        .unit = takes_units && image->frames > 1 ? items.longest : 0,
        .has_rasters = all <= KEPT_BYTES,
        .only_lossless = true,
    };
}

static enum tsr_status open_streams(struct encapsulated_source *s, size_t size, size_t value, struct tsr_error *error)
{
    const struct tsr_image *const image = &s->base.header.image;
    const uint64_t raster = tsr_raster_bytes(image), all = raster * image->frames;
    if (raster > ((uint64_t)64 << 20) + UNFOLD_RATIO * (uint64_t)size)
        return tsr_fail(error, TSR_ERROR_CORRUPT,
                        "its frames would have %llu bytes each, too many for a file of its size",
                        (unsigned long long)raster);
    TSR_TRY(tsr_fragments_list(s->base.input, value, image->frames, s->kind == &tsr_node_uncompressed ? raster : 0,
                               &s->fragments, error));
    uint8_t *const rasters = calloc(1, (size_t)(all <= KEPT_BYTES ? all : raster)); /* those of units are zeros */
    if (!rasters)
        return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for frames of %llu bytes", (unsigned long long)raster);
    s->base.held[0] = all <= KEPT_BYTES ? rasters : NULL;
    s->base.rasters = s->base.held[0];
    s->joined.limit = 2 * size;
    const enum tsr_status status = take_frames(s, rasters, error);
    if (!s->base.rasters) free(rasters);
    s->base.units = s->units;
    s->base.longest_unit = s->fragments.longest;
    return status;
}

/* A source with all that both functions below share. */
static enum tsr_status create(struct tsr_input *input, const struct tsr_header *header, uint64_t value,
                              const struct tsr_node *kind, enum room room, bool takes_units, uint64_t more,
                              struct encapsulated_source **source, struct tsr_error *error)
{
    const uint64_t size = tsr_input_size(input);
    uint64_t residues;
    struct tsr_need need = need_of(input, &header->image, value, kind, room, takes_units, &residues);
    need.opening += more;
    need.held += more;
    if (size > SIZE_MAX / 4)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "it has %llu bytes of streams", (unsigned long long)size);
    TSR_TRY(tsr_input_claim(input, header, &need, error));
    struct encapsulated_source *const s = *source =
        tsr_source_create(sizeof *s, input, header, &encapsulated_ops, error);
    if (!s) return TSR_ERROR_LIMIT;
    s->base.only_lossless = "samples of encapsulated files";
    s->kind = kind;
    s->takes_units = takes_units;
    s->residues.limit = (size_t)residues;
    return tsr_input_hold(input, (size_t)size, &s->file, error);
}

enum tsr_status tsr_encapsulated_open(struct tsr_input *input, const struct tsr_image *image, size_t value,
                                      const struct tsr_node *kind, bool takes_units, struct tsr_source **source,
                                      struct tsr_error *error)
{
    const uint64_t size = tsr_input_size(input);
    const struct tsr_header header = {.kind = TSR_KIND_DICOM,
                                      .recipe = TSR_RECIPE_ENCAPSULATED,
                                      .exact = true,
                                      .image = *image,
                                      .parameters = {(uint8_t)tsr_raster_node_number(kind)},
                                      .parameter_count = 1};
    struct encapsulated_source *s = NULL;
    enum tsr_status status = TSR_OK;
    *source = NULL;
    for (enum room room = USUAL_ROOM; room <= ALL_ROOM; room++) {
        status = create(input, &header, value, kind, room, takes_units, 0, &s, error);
        if (status == TSR_OK) status = open_streams(s, (size_t)size, value, error);
        if (status == TSR_OK) break;
        const bool goes_on = room == USUAL_ROOM && s && s->takes_more;
        if (s) tsr_source_close(&s->base);
        if (!goes_on) return status;
        s = NULL;
        tsr_input_give_back(input); /* it takes more than it claimed */
    }
    const struct tsr_bytes residues = s->residues;
    s->residues = (struct tsr_bytes){0};
    status = tsr_source_put(&s->base, TSR_BLOB_RESIDUES, residues.bytes, residues.size, true, error);
    const uint64_t before = s->fragments.before, after = s->fragments.after;
    if (status == TSR_OK) status = tsr_source_put(&s->base, TSR_BLOB_PREFIX, s->file, before, false, error);
    if (status == TSR_OK)
        status = tsr_source_put(&s->base, TSR_BLOB_SUFFIX, s->file + size - after, after, false, error);
    return tsr_source_finish(s, status, source);
}

/* The native file around the samples. */
static enum tsr_status make_native(struct encapsulated_source *s, const struct tsr_encapsulated_samples *samples,
                                   size_t size, struct tsr_error *error)
{
    const struct tsr_dicom_scan *const scan = samples->scan;
    const size_t rest = (size_t)s->fragments.after;
    const uint8_t *const suffix = s->file + size - rest;
    const size_t skipped = tsr_dicom_skip_pixels(&scan->pixels, 0, suffix, rest);
    struct tsr_dicom_text before = {0}, after = {0};
    enum tsr_status status = tsr_dicom_rewrite(s->file, scan, &samples->target, &before, error);
    tsr_dicom_put(&after, "", samples->target.native_bytes % 2);
    if (status == TSR_OK) status = tsr_dicom_rewrite_rest(suffix + skipped, rest - skipped, scan->form, &after, error);
    s->base.left_out = before.left_out ? before.left_out : after.left_out;
    const enum tsr_status first = tsr_source_put(&s->base, TSR_BLOB_PREFIX, before.bytes, before.size, true, error),
                          last = tsr_source_put(&s->base, TSR_BLOB_SUFFIX, after.bytes, after.size, true, error);
    return status != TSR_OK ? status : first != TSR_OK ? first : last;
}

enum tsr_status tsr_encapsulated_open_samples(struct tsr_input *input, const struct tsr_image *image,
                                              const struct tsr_node *kind,
                                              const struct tsr_encapsulated_samples *samples,
                                              struct tsr_source **source, struct tsr_error *error)
{
    const size_t header = samples->scan->pixels.value;
    const uint64_t size = tsr_input_size(input), /* and the new header, and its elements */
        more = 4 * (uint64_t)header + tsr_dicom_memory(header, samples->scan->elements);
    const struct tsr_header native = {.kind = TSR_KIND_DICOM, .recipe = TSR_RECIPE_SPLICE, .image = *image};
    struct encapsulated_source *s = NULL;
    *source = NULL;
    enum tsr_status status = create(input, &native, header, kind, NO_ROOM, false, more, &s, error);
    if (status == TSR_OK) {
        s->samples_only = true;
        status = open_streams(s, (size_t)size, header, error);
    }
    if (status == TSR_OK) status = make_native(s, samples, (size_t)size, error);
    return tsr_source_finish(s, status, source);
}
