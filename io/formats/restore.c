/* Restoring files. FORMAT.md section 4. */
#include "restore.h"

#include <stdlib.h>
#include <string.h>

#include "packed.h"
#include "io/formats/png/png_file.h"
#include "io/formats/png/png_idat.h"
#include "io/container/section.h"
#include "io/formats/streams/gzip.h"
#include "io/formats/streams/deflate/deflate.h"
#include "io/formats/streams/stream.h"
#if TSR_WITH_DICOM
#include "io/formats/dicom/dicom_export.h"
#endif

enum { CHUNK = 1 << 14 };

struct tsr_restorer {
    struct tsr_header header;
    struct tsr_output *output;
    struct tsr_crew crew;
    /* Rasters of single bits: the bits of the last byte that are not yet written, and their number. */
    uint8_t waiting;
    int waiting_bits;
    uint8_t spare;          /* bits after the last sample */
    uint64_t plain_left;    /* bytes before the deflate stream that are still to come */
    struct tsr_bytes plain; /* what the deflate stream or the gzip file holds, so far */
    /* Of encapsulated frames, PNG and deflated files: residues, and how many of their bytes are used. */
    uint8_t *residues;
    size_t residues_size, residues_at;
    struct tsr_bytes stream; /* of a frame or a file, or IDAT chunks */
    uint32_t frames_done;
    struct tsr_unpacker *unpacker; /* of a packed file; else NULL */
    struct tsr_exporter *exporter; /* takes all in place of the output; else NULL */
    struct tsr_input *input;       /* of the .tsr, whose account may grant more; or NULL */
    uint64_t spare_bytes;          /* that it has granted */
};

bool tsr_has_residues(const struct tsr_header *header)
{
    return header->exact && (header->restore == TSR_RESTORE_ENCAPSULATED || header->restore == TSR_RESTORE_PNG ||
                             header->restore == TSR_RESTORE_DEFLATED || header->restore == TSR_RESTORE_GZIPPED);
}

/* Bytes of a stream of one of many frames: codes of 16 bits before the bits of each sample, and its residue. A longer
 * one is possible, and takes memory that is spare: see write_stream. */
static uint64_t stream_bound(const struct tsr_header *header, uint64_t residues)
{
    enum { CODE_BITS = 16, HEAD = 1 << 16 };
    const struct tsr_image *const image = &header->image;
    const uint64_t codes = CODE_BITS * (uint64_t)image->columns * image->rows * image->components;
    return (tsr_frame_bits(image) + codes) / 8 + residues + HEAD;
}

static uint64_t encapsulated_work(const struct tsr_header *header, const struct tsr_foreseen *f, uint64_t residues)
{
    const struct tsr_stream_kind *const kind = tsr_stream_kind_of(header->parameters[0]);
    const uint64_t bound = stream_bound(header, residues), stream = bound < f->size ? bound : f->size;
    return stream + (kind ? kind->memory(&header->image, stream, true) : 0);
}

/* libpng's rows, and zlib. */
static uint64_t lossy_png_work(const struct tsr_image *image)
{
    enum { ROWS = 8, FIXED = 1 << 19 };
    return FIXED + sizeof(void *) * (uint64_t)image->rows + ROWS * (tsr_frame_bits(image) / 8 / image->rows + 1);
}

/* Bytes of all rasters. */
static uint64_t all_samples(const struct tsr_header *header)
{
    return (tsr_frame_bits(&header->image) * header->image.frames + 7) / 8;
}

static uint64_t deflated_work(const struct tsr_foreseen *f, uint64_t plain)
{
    struct tsr_cursor c = {f->residues ? f->residues->bytes : NULL, f->residues ? f->residues->size : 0, 0, false};
    const uint64_t tail = tsr_get_varint(&c);
    if (c.bad || tail > c.size - c.at) return f->size + tsr_deflate_memory(plain);
    const uint8_t *const coded = c.bytes + c.at + tail;
    return f->size + tsr_deflate_writing_memory(plain, coded, c.size - c.at - (size_t)tail, f->threads);
}

struct tsr_restoring tsr_restoring_memory(const struct tsr_header *header, const struct tsr_foreseen *f)
{
    static const uint64_t most = UINT64_MAX / 64;
    const uint64_t residues = !tsr_has_residues(header) ? 0 : f->residues ? f->residues->size : f->size;
    struct tsr_restoring r = {.held = residues};
    if (f->size > most || f->blobs > most) return (struct tsr_restoring){.held = UINT64_MAX / 4}; /* no memory has it */
    switch (header->restore) {
    case TSR_RESTORE_PACKED:
        r.held = tsr_unpacking_memory(header->room, f->size,
                                      f->begin ? tsr_first_stream(f->begin->bytes, f->begin->size) : TSR_PIECE_KINDS);
        break;
    case TSR_RESTORE_ENCAPSULATED:
        r.work = encapsulated_work(header, f, residues);
        break;
    case TSR_RESTORE_PNG:
        r.work = header->exact ? tsr_png_making_memory(header, f->size, f->residues, f->threads)
                               : lossy_png_work(&header->image);
        break;
    case TSR_RESTORE_DEFLATED:
        r.held += all_samples(header) + f->blobs;
        r.work = deflated_work(f, all_samples(header) + f->blobs);
        r.is_at_end = true;
        break;
    case TSR_RESTORE_GZIPPED:
        r.held += tsr_gzipped_bytes(header);
        r.work = tsr_gzip_making_memory(tsr_gzipped_bytes(header), f->size, f->residues, f->threads);
        r.is_at_end = true;
        break;
    default:
        break;
    }
    return r;
}

/* Reads the parameters of the deflate stream, if there is one, and then the spare bits. FORMAT.md 4.1 and 4.2. */
static enum tsr_status read_parameters(struct tsr_restorer *r, struct tsr_error *error)
{
    const struct tsr_header *header = &r->header;
    struct tsr_cursor c = {header->parameters, header->parameter_count, 0, false};
    if (header->restore == TSR_RESTORE_DEFLATED) r->plain_left = tsr_get_varint(&c);
    r->plain.limit = SIZE_MAX / 2;
    if (header->image.bits_allocated == 1 && tsr_frame_bits(&header->image) * header->image.frames % 8 != 0)
        r->spare = tsr_get_u8(&c);
    if (r->spare >> (8 - tsr_frame_bits(&header->image) * header->image.frames % 8)) c.bad = true;
    if (c.bad || c.at != header->parameter_count)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "the header's %zu bytes of restore parameters are not valid",
                        header->parameter_count);
    return TSR_OK;
}

static enum tsr_status check_encapsulated(const struct tsr_header *header, struct tsr_error *error)
{
    const struct tsr_image *image = &header->image;
    const int kind = header->parameters[0];
    if (header->parameter_count == 1 && (kind >= tsr_stream_kind_count || !tsr_stream_kinds[kind]))
        return tsr_fail(error, TSR_ERROR_VERSION, "the file has streams of kind %d, which this version does not know",
                        kind);
    const bool may_be_bits = kind == TSR_STREAM_RLE || kind == TSR_STREAM_DEFLATE;
    if (header->parameter_count != 1 || image->big_endian || image->swapped ||
        (image->bits_allocated == 1 && !may_be_bits))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "the header's encapsulation is not valid");
    return TSR_OK;
}

uint64_t tsr_gzipped_bytes(const struct tsr_header *header)
{
    const struct tsr_image *image = &header->image;
    struct tsr_cursor c = {header->parameters, header->parameter_count, 0, false};
    const uint64_t bytes = tsr_get_varint(&c);
    const bool is_valid = !c.bad && c.at == c.size && bytes < (uint64_t)1 << 31 && image->bits_allocated > 1 &&
                          tsr_frame_bits(image) / 8 * image->frames <= bytes;
    return is_valid ? bytes : 0;
}

/* All parts are collected, and become a gzip file at the end. */
static enum tsr_status begin_gzip(struct tsr_restorer *r, struct tsr_error *error)
{
    r->plain.limit = (size_t)tsr_gzipped_bytes(&r->header);
    return r->plain.limit > 0 ? TSR_OK
                              : tsr_fail(error, TSR_ERROR_CORRUPT, "the header's parameters of gzip are not valid");
}

/* FORMAT.md 4.3: what the prefix and the suffix lack. */
static enum tsr_status put_png_start(struct tsr_restorer *r, struct tsr_error *error)
{
    uint8_t start[TSR_PNG_START_BYTES];
    if (!(r->header.parameters[TSR_PNG_FORM] & TSR_PNG_USUAL_START)) return TSR_OK;
    tsr_png_start(&r->header, start);
    return tsr_output_write(r->output, start, sizeof start, error);
}

static enum tsr_status put_png_end(struct tsr_restorer *r, struct tsr_error *error)
{
    if (!(r->header.parameters[TSR_PNG_FORM] & TSR_PNG_USUAL_END)) return TSR_OK;
    return tsr_output_write(r->output, tsr_png_end, sizeof tsr_png_end, error);
}

enum tsr_status tsr_restorer_create(const struct tsr_header *header, struct tsr_output *output,
                                    struct tsr_restorer **restorer, struct tsr_error *error)
{
    struct tsr_restorer *r = calloc(1, sizeof *r);
    *restorer = NULL;
    if (!r) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to restore");
    r->header = *header;
    r->output = output;
    enum tsr_status status = TSR_OK;
    if (header->restore == TSR_RESTORE_SPLICE || header->restore == TSR_RESTORE_DEFLATED)
        status = read_parameters(r, error);
    if (header->restore == TSR_RESTORE_ENCAPSULATED) status = check_encapsulated(header, error);
    if (header->restore == TSR_RESTORE_GZIPPED) status = begin_gzip(r, error);
    if (header->restore == TSR_RESTORE_PNG && !tsr_png_is_valid(header))
        status = tsr_fail(error, TSR_ERROR_CORRUPT, "the header does not describe a PNG");
    if (header->restore == TSR_RESTORE_PNG && status == TSR_OK) status = put_png_start(r, error);
    if (header->restore == TSR_RESTORE_PACKED) {
        r->unpacker = tsr_unpacker_create(header->room, output);
        if (!r->unpacker) status = tsr_fail(error, TSR_ERROR_LIMIT, "no memory to restore");
    }
    if (status != TSR_OK) {
        tsr_restorer_free(r);
        return status;
    }
    *restorer = r;
    return TSR_OK;
}

enum tsr_status tsr_restorer_to_exporter(const struct tsr_header *header, struct tsr_exporter *exporter,
                                         struct tsr_restorer **restorer, struct tsr_error *error)
{
    struct tsr_restorer *r = *restorer = calloc(1, sizeof *r);
    if (!r) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to export");
    r->header = *header;
    r->exporter = exporter;
    return TSR_OK;
}

void tsr_restorer_set_crew(struct tsr_restorer *restorer, struct tsr_crew crew)
{
    restorer->crew = crew;
    if (restorer->unpacker) tsr_unpacker_set_crew(restorer->unpacker, crew);
}

enum tsr_status tsr_restorer_foresee(struct tsr_restorer *r, struct tsr_input *input, uint64_t blobs,
                                     struct tsr_error *error)
{
    const uint64_t plain = all_samples(&r->header) + blobs - r->plain_left;
    r->input = input;
    if (r->header.restore != TSR_RESTORE_DEFLATED || plain > r->plain.limit) return TSR_OK;
    return tsr_bytes_reserve(&r->plain, (size_t)plain, error);
}

void tsr_restorer_free(struct tsr_restorer *restorer)
{
    if (!restorer) return;
    if (restorer->spare_bytes > 0 && restorer->input) tsr_input_return_spare(restorer->input, restorer->spare_bytes);
    tsr_bytes_free(&restorer->plain);
    tsr_bytes_free(&restorer->stream);
    tsr_unpacker_free(restorer->unpacker);
    free(restorer->residues);
    free(restorer);
}

/* Writes bytes of the file. Bytes of a deflate stream come inflated, and are kept until all are there; so are those of
 * a gzip file. */
static enum tsr_status put(struct tsr_restorer *r, const uint8_t *bytes, size_t size, struct tsr_error *error)
{
    if (r->header.restore == TSR_RESTORE_GZIPPED) {
        if (r->plain.capacity == 0) TSR_TRY(tsr_bytes_reserve(&r->plain, r->plain.limit, error));
        return tsr_bytes_put(&r->plain, bytes, size, error);
    }
    if (r->header.restore != TSR_RESTORE_DEFLATED) return tsr_output_write(r->output, bytes, size, error);
    const size_t before = size < r->plain_left ? size : (size_t)r->plain_left;
    TSR_TRY(tsr_output_write(r->output, bytes, before, error));
    r->plain_left -= before;
    return size > before ? tsr_bytes_put(&r->plain, bytes + before, size - before, error) : TSR_OK;
}

static enum tsr_status keep_residues(struct tsr_restorer *r, const void *bytes, size_t size, struct tsr_error *error)
{
    if (!tsr_has_residues(&r->header))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "the file has residues, which it cannot have");
    if (r->residues_size + size > tsr_output_limit_of(r->output))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "the residues are longer than the restored file");
    uint8_t *grown = realloc(r->residues, r->residues_size + size);
    if (!grown) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu bytes of residues", size);
    memcpy(grown + r->residues_size, bytes, size);
    r->residues = grown;
    r->residues_size += size;
    return TSR_OK;
}

enum tsr_status tsr_restore_residues(struct tsr_restorer *r, struct tsr_bytes *residues, struct tsr_error *error)
{
    enum tsr_status status = TSR_OK;
    if (residues->size > 0 && !tsr_has_residues(&r->header))
        status = tsr_fail(error, TSR_ERROR_CORRUPT, "the file has residues, which it cannot have");
    else if (residues->size > tsr_output_limit_of(r->output))
        status = tsr_fail(error, TSR_ERROR_CORRUPT, "the residues are longer than the restored file");
    free(r->residues);
    r->residues = residues->bytes;
    r->residues_size = residues->size;
    *residues = (struct tsr_bytes){.limit = residues->limit};
    return status;
}

/* Writes an item: tag and length, and its value. PS3.5 A.4. */
static enum tsr_status put_item(struct tsr_restorer *r, const uint8_t *bytes, size_t size, struct tsr_error *error)
{
    uint8_t head[8] = {0xfe, 0xff, 0x00, 0xe0};
    if (size > UINT32_MAX) return tsr_fail(error, TSR_ERROR_CORRUPT, "a fragment has %zu bytes", size);
    tsr_put_u32(head + 4, (uint32_t)size);
    TSR_TRY(put(r, head, sizeof head, error));
    return put(r, bytes, size, error);
}

/* Makes the stream of a frame from its residue. */
static enum tsr_status make_stream(struct tsr_restorer *r, const uint8_t *raster, const uint8_t *residue, size_t size,
                                   struct tsr_error *error)
{
    const struct tsr_stream_kind *const kind = tsr_stream_kinds[r->header.parameters[0]];
    const uint64_t output = tsr_output_limit_of(r->output), limit = output < SIZE_MAX / 2 ? output : SIZE_MAX / 2,
                   usual = stream_bound(&r->header, r->residues_size);
    r->stream.size = 0;
    r->stream.limit = (size_t)(usual < limit && r->spare_bytes == 0 ? usual : limit);
    const enum tsr_status status = kind->write(&r->header.image, raster, residue, size, &r->stream, error);
    if (status != TSR_ERROR_CORRUPT || r->stream.limit == limit) return status;
    if (r->input && !tsr_input_take_spare(r->input, 2 * limit))
        return tsr_fail(error, TSR_ERROR_LIMIT,
                        "frame %u becomes a stream of over %llu bytes, for which there is no memory: more of it, or "
                        "fewer threads, would do",
                        r->frames_done, (unsigned long long)usual);
    r->spare_bytes = 2 * limit; /* the stream, and what its coder holds */
    return make_stream(r, raster, residue, size, error);
}

/* Reads a frame's record, makes the stream, and writes the stream in its fragments. FORMAT.md 4.4. */
static enum tsr_status put_encapsulated(struct tsr_restorer *r, const uint8_t *raster, struct tsr_error *error)
{
    struct tsr_cursor c = {r->residues, r->residues_size, r->residues_at, false};
    const uint64_t fragments = tsr_get_varint(&c);
    const size_t sizes_at = c.at;
    r->frames_done++;
    for (uint64_t i = 1; i < fragments && !c.bad; i++) tsr_get_varint(&c);
    const uint64_t size = tsr_get_varint(&c);
    if (c.bad || fragments == 0 || size > c.size - c.at)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "frame %u has no valid residue", r->frames_done);
    r->residues_at = c.at + (size_t)size;
    TSR_TRY(make_stream(r, raster, r->residues + c.at, (size_t)size, error));
    size_t at = 0;
    c.at = sizes_at;
    for (uint64_t i = 1; i < fragments; i++) {
        const uint64_t part = tsr_get_varint(&c);
        if (part > r->stream.size - at)
            return tsr_fail(error, TSR_ERROR_CORRUPT, "the fragments of frame %u exceed its stream", r->frames_done);
        TSR_TRY(put_item(r, r->stream.bytes + at, (size_t)part, error));
        at += (size_t)part;
    }
    return put_item(r, r->stream.bytes + at, r->stream.size - at, error);
}

/* Writes the IDAT chunks of a PNG: the same as in the original, or libpng's if samples were lost. FORMAT.md 4.3. */
static enum tsr_status put_idat(struct tsr_restorer *r, const uint8_t *raster, struct tsr_error *error)
{
    if (!r->header.exact) return tsr_png_put_raster(&r->header, raster, r->output, error);
    const uint64_t limit = tsr_output_limit_of(r->output);
    r->stream.limit = limit < SIZE_MAX / 2 ? (size_t)limit : SIZE_MAX / 2;
    TSR_TRY(tsr_png_write_idat(&r->header, &r->crew, raster, r->residues, r->residues_size, &r->stream, error));
    r->residues_at = r->residues_size;
    return put(r, r->stream.bytes, r->stream.size, error);
}

/* Frames of single bits follow each other without padding: two of them may share a byte. */
static enum tsr_status put_bits(struct tsr_restorer *r, const uint8_t *raster, struct tsr_error *error)
{
    uint8_t chunk[CHUNK];
    const uint64_t bits = tsr_frame_bits(&r->header.image);
    const int shift = r->waiting_bits, rest = (int)(bits % 8);
    size_t used = 0;
    for (uint64_t i = 0; i < bits / 8; i++) {
        chunk[used++] = (uint8_t)(r->waiting | raster[i] << shift);
        r->waiting = (uint8_t)(raster[i] >> (8 - shift));
        if (used < CHUNK) continue;
        TSR_TRY(put(r, chunk, used, error));
        used = 0;
    }
    if (rest > 0) {
        const unsigned last = raster[bits / 8] & ((1u << rest) - 1u);
        const unsigned both = r->waiting | last << shift;
        r->waiting = (uint8_t)both;
        r->waiting_bits = shift + rest;
        if (r->waiting_bits >= 8) {
            chunk[used++] = (uint8_t)both;
            r->waiting = (uint8_t)(both >> 8);
            r->waiting_bits -= 8;
        }
    }
    return put(r, chunk, used, error);
}

enum tsr_status tsr_restore_frame(struct tsr_restorer *r, const uint8_t *raster, struct tsr_error *error)
{
    const struct tsr_image *image = &r->header.image;
#if TSR_WITH_DICOM
    if (r->exporter) return tsr_exporter_put_frame(r->exporter, raster, error);
#endif
    if (r->header.restore == TSR_RESTORE_PNG) return put_idat(r, raster, error);
    if (r->header.restore == TSR_RESTORE_ENCAPSULATED) return put_encapsulated(r, raster, error);
    if (image->bits_allocated == 1) return put_bits(r, raster, error);
    return put(r, raster, (size_t)(tsr_frame_bits(image) / 8), error);
}

bool tsr_restores_pieces(const struct tsr_restorer *r)
{
    return !r->exporter && r->header.restore != TSR_RESTORE_PNG && r->header.restore != TSR_RESTORE_ENCAPSULATED &&
           r->header.image.bits_allocated > 1;
}

enum tsr_status tsr_restore_piece(struct tsr_restorer *r, const uint8_t *bytes, size_t size, struct tsr_error *error)
{
    return put(r, bytes, size, error);
}

/* Writes the last byte of rasters of single bits. */
static enum tsr_status put_waiting(struct tsr_restorer *r, struct tsr_error *error)
{
    if (r->waiting_bits == 0) return TSR_OK;
    const uint8_t last = (uint8_t)(r->waiting | r->spare << r->waiting_bits);
    r->waiting_bits = 0;
    return put(r, &last, 1, error);
}

enum tsr_status tsr_restore_blob(struct tsr_restorer *r, enum tsr_blob blob, const void *bytes, size_t size,
                                 struct tsr_error *error)
{
    if (blob != TSR_BLOB_PREFIX && !tsr_has_frames(&r->header))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "a file without frames has a suffix or residues");
#if TSR_WITH_DICOM
    if (r->exporter) return tsr_exporter_put_blob(r->exporter, blob, bytes, size, error);
#endif
    if (r->unpacker) return tsr_unpacker_put(r->unpacker, bytes, size, error);
    if (blob == TSR_BLOB_RESIDUES) return keep_residues(r, bytes, size, error);
    if (blob == TSR_BLOB_SUFFIX) TSR_TRY(put_waiting(r, error));
    return put(r, bytes, size, error);
}

/* Makes a gzip file of all that was kept. FORMAT.md 4.12. */
static enum tsr_status put_gzip(struct tsr_restorer *r, struct tsr_error *error)
{
    const uint64_t limit = tsr_output_limit_of(r->output);
    if (r->plain.size != r->plain.limit)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "a gzip file has %zu plain bytes, and should have %zu", r->plain.size,
                        r->plain.limit);
    r->stream.limit = limit < SIZE_MAX / 2 ? (size_t)limit : SIZE_MAX / 2;
    TSR_TRY(tsr_gzip_write(&r->crew, r->plain.bytes, r->plain.size, r->residues, r->residues_size, &r->stream, error));
    r->residues_at = r->residues_size;
    return tsr_output_write(r->output, r->stream.bytes, r->stream.size, error);
}

/* Deflates what was kept, and writes the stream and what follows it. FORMAT.md 4.2. */
static enum tsr_status put_deflated(struct tsr_restorer *r, struct tsr_error *error)
{
    struct tsr_cursor c = {r->residues, r->residues_size, 0, false};
    if (r->plain_left > 0)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "the deflate stream begins after the end of the file");
    const uint64_t size = tsr_get_varint(&c);
    if (size > c.size) c.bad = true;
    const uint8_t *const tail = tsr_get_bytes(&c, c.bad ? 0 : (size_t)size);
    if (c.bad) return tsr_fail(error, TSR_ERROR_CORRUPT, "the residue of a deflated file is damaged");
    const uint64_t limit = tsr_output_limit_of(r->output);
    r->stream.limit = limit < SIZE_MAX / 2 ? (size_t)limit : SIZE_MAX / 2;
    const struct tsr_deflate_way way = tsr_deflate_with(&r->crew);
    TSR_TRY(tsr_deflate_write_by(&way, r->plain.bytes ? r->plain.bytes : (const uint8_t *)"", r->plain.size,
                                 c.bytes + c.at, c.size - c.at, &r->stream, error));
    r->residues_at = r->residues_size;
    TSR_TRY(tsr_output_write(r->output, r->stream.bytes, r->stream.size, error));
    return tsr_output_write(r->output, tail, (size_t)size, error);
}

enum tsr_status tsr_restore_end(struct tsr_restorer *r, struct tsr_error *error)
{
#if TSR_WITH_DICOM
    if (r->exporter) return tsr_exporter_end(r->exporter, error);
#endif
    TSR_TRY(put_waiting(r, error));
    if (r->unpacker) TSR_TRY(tsr_unpacker_end(r->unpacker, error));
    if (r->header.restore == TSR_RESTORE_GZIPPED) TSR_TRY(put_gzip(r, error));
    if (r->header.restore == TSR_RESTORE_DEFLATED) TSR_TRY(put_deflated(r, error));
    if (r->header.restore == TSR_RESTORE_PNG) TSR_TRY(put_png_end(r, error));
    if (r->residues_at != r->residues_size)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "%zu bytes of residues belong to no frame",
                        r->residues_size - r->residues_at);
    return TSR_OK;
}
