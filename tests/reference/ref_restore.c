/* FORMAT.md 4: restores the original. */
#include "ref.h"

#include <stdlib.h>
#include <string.h>

struct ref_output {
    FILE *file;     /* null: nothing is written */
    bool is_others; /* the file is the caller's */
    const struct ref_header *header;
    bool rasters_only;
    struct ref_hash *hash;
    uint64_t size;
    /* Samples of one bit: the bits of a byte that is not yet full. */
    unsigned bit_count;
    uint8_t bit_byte;
    uint8_t last_bits; /* the parameter of 4.1 */
    /* Deflated, 4.2. */
    uint64_t plain_left;
    uint8_t *plain; /* memory of ref_alloc() would end with its frame */
    size_t plain_size, plain_room;
    struct ref_bytes records; /* PNG.md, 4.4, GZIP.md */
};

/* ---- Bytes of the restored file ---- */

static bool put(struct ref_output *out, const void *data, size_t size)
{
    if (size == 0) return true;
    ref_hash_add(out->hash, data, size);
    out->size += size;
    if (out->file && fwrite(data, 1, size, out->file) != size) return ref_fail("cannot write");
    return true;
}

/* Writes bytes. 4.2: those of deflate streams are kept, but not those before them. */
static bool put_inner(struct ref_output *out, const uint8_t *data, size_t size)
{
    if (out->header->restore != REF_DEFLATED) return put(out, data, size);
    size_t before = size < out->plain_left ? size : (size_t)out->plain_left;
    if (!put(out, data, before)) return false;
    out->plain_left -= before;
    size -= before;
    if (size == 0) return true;
    if (size > out->plain_room - out->plain_size) {
        out->plain_room = 2 * out->plain_room + size;
        uint8_t *grown = realloc(out->plain, out->plain_room);
        if (!grown) return ref_fail("no memory");
        out->plain = grown;
    }
    memcpy(out->plain + out->plain_size, data + before, size);
    out->plain_size += size;
    return true;
}

static bool put_deflated(struct ref_output *out)
{
    uint8_t *bytes;
    size_t size;
    if (out->plain_left > 0) return ref_fail("the deflated part begins behind the end");
    return ref_gzip(out->plain, out->plain_size, out->records, &bytes, &size) && put(out, bytes, size);
}

/* ---- 4.7, PLANES.md ---- */

static bool check_planes(const struct ref_header *h)
{
    if (h->parameter_count < 1 || (h->allocated != 8 && h->allocated != 16)) return ref_fail("planes have no form");
    const unsigned form = h->parameters[0], sampling = form & 3;
    if (form == 0) return true;
    bool good = form <= 6 && h->components == 1 && h->columns % 2 == 0;
    if (sampling == 1) {
        const uint32_t luma = 2 * h->rows / 3;
        good = good && luma > 0 && luma + (luma + 1) / 2 == h->rows;
    } else {
        good = good && sampling == 2 && h->rows % 2 == 0;
    }
    return good || ref_fail("the form of planes is corrupt");
}

/* Writes a part of some rows of a raster. */
static bool put_plane(struct ref_output *out, const uint8_t *raster, uint32_t first, uint32_t end, size_t left,
                      size_t width)
{
    const struct ref_header *h = out->header;
    const size_t sample = h->allocated / 8;
    for (uint32_t y = first; y < end; y++)
        if (!put(out, raster + ((size_t)y * h->columns + left) * sample, width * sample)) return false;
    return true;
}

static bool put_planes(struct ref_output *out, const uint8_t *raster)
{
    const struct ref_header *h = out->header;
    const unsigned form = h->parameters[0];
    if (!put(out, h->parameters + 1, h->parameter_count - 1)) return false;
    if (form == 0) return put(out, raster, ref_raster_size(h));
    const uint32_t luma = (form & 3) == 1 ? 2 * h->rows / 3 : h->rows / 2, half = h->columns / 2;
    return put_plane(out, raster, 0, luma, 0, form & 4 ? h->columns - 1 : h->columns) &&
           put_plane(out, raster, luma, h->rows, 0, half) && put_plane(out, raster, luma, h->rows, half, half);
}

/* ---- The parts of a file, in order ---- */

static bool begin(struct ref_output *out)
{
    const struct ref_header *h = out->header;
    if (h->restore == REF_ENCAPSULATED && !ref_check_encapsulated(h)) return false;
    if (out->rasters_only) return (ref_has_frames(h) && !ref_are_units(h)) || ref_fail("the file has no samples");
    if (!ref_has_frames(h) || h->restore == REF_ENCAPSULATED) return true;
    if (h->restore == REF_PNG) return ref_check_png(h);
    if (h->restore == REF_PLANES) return check_planes(h);
    struct ref_bytes b = {.data = h->parameters, .size = h->parameter_count};
    if (h->restore == REF_DEFLATED) out->plain_left = ref_varint(&b);
    unsigned used = (unsigned)(ref_frame_bits(h) * h->frames % 8); /* bits that are used of the last byte */
    if (used != 0) out->last_bits = (uint8_t)ref_number(&b, 1);
    return (!b.bad && ref_left(&b) == 0 && out->last_bits >> (8 - used) == 0) || ref_fail("the parameters are corrupt");
}

/* PNG.md: the signature and IHDR, if the prefix lacks them. */
static bool put_png_start(struct ref_output *out)
{
    const struct ref_header *h = out->header;
    uint8_t start[33] = {0x89, 'P', 'N', 'G', 13, 10, 26, 10, 0, 0, 0, 13, 'I', 'H', 'D', 'R'};
    if (h->restore != REF_PNG || out->rasters_only || !(h->parameters[1] & 2)) return true;
    for (unsigned i = 0; i < 4; i++) {
        start[16 + i] = (uint8_t)(h->columns >> (24 - 8 * i));
        start[20 + i] = (uint8_t)(h->rows >> (24 - 8 * i));
    }
    start[24] = (uint8_t)h->stored;
    start[25] = h->parameters[0];
    start[28] = h->parameters[1] & 1;
    uint32_t crc = ref_crc32(start + 12, 17);
    for (unsigned i = 0; i < 4; i++) start[29 + i] = (uint8_t)(crc >> (24 - 8 * i));
    return put(out, start, sizeof start);
}

static bool put_png_end(struct ref_output *out)
{
    static const uint8_t end[12] = {0, 0, 0, 0, 'I', 'E', 'N', 'D', 0xae, 0x42, 0x60, 0x82};
    return !(out->header->parameters[1] & 4) || put(out, end, sizeof end);
}

struct ref_output *ref_output_open(const char *path, const struct ref_header *header, bool rasters_only)
{
    struct ref_output *out = ref_alloc(1, sizeof *out);
    out->header = header;
    out->rasters_only = rasters_only;
    out->hash = ref_hash_begin();
    bool good = begin(out);
    if (good && path) {
        out->file = fopen(path, "wb");
        if (!out->file) good = ref_fail("cannot write %s", path);
    }
    if (good && put_png_start(out)) return out;
    ref_output_close(out, NULL);
    return NULL;
}

struct ref_output *ref_output_to(FILE *file, const struct ref_header *header)
{
    struct ref_output *out = ref_alloc(1, sizeof *out);
    out->header = header;
    out->hash = ref_hash_begin();
    out->file = file;
    out->is_others = true;
    if (begin(out) && put_png_start(out)) return out;
    ref_output_close(out, NULL);
    return NULL;
}

bool ref_output_blob(struct ref_output *out, const uint8_t *content, size_t size)
{
    return out->rasters_only || put_inner(out, content, size);
}

void ref_output_records(struct ref_output *out, const uint8_t *records, size_t size)
{
    out->records = (struct ref_bytes){.data = records, .size = size};
}

static bool put_item(void *to, const void *data, size_t size)
{
    return put(to, data, size);
}

bool ref_output_pieces(struct ref_output *out, const uint8_t *pieces, size_t size)
{
    return ref_unpack(pieces, size, out->header->room, out->header->files, put_item, out);
}

bool ref_output_frame(struct ref_output *out, const uint8_t *raster)
{
    const struct ref_header *h = out->header;
    size_t size = ref_raster_size(h);
    if (out->rasters_only) return put(out, raster, size);
    if (h->values.form > 0) {
        raster = ref_values_of(h, raster, &size);
        return put_inner(out, raster, size);
    }
    if (h->restore == REF_PNG) {
        uint8_t *chunks;
        size_t chunks_size;
        if (!ref_png_chunks(h, raster, out->records.data, out->records.size, &chunks, &chunks_size)) return false;
        out->records.at = out->records.size;
        return put(out, chunks, chunks_size);
    }
    if (h->restore == REF_ENCAPSULATED) return ref_encapsulate(h, raster, &out->records, put_item, out);
    if (h->restore == REF_PLANES) return put_planes(out, raster);
    if (h->allocated > 1) return put_inner(out, raster, size);
    /* 3.2: frames of one bit follow each other without padding. */
    uint64_t bits = ref_frame_bits(h);
    for (uint64_t i = 0; i < bits; i++) {
        out->bit_byte |= (uint8_t)((raster[i / 8] >> (i % 8) & 1) << out->bit_count);
        if (++out->bit_count == 8) {
            if (!put_inner(out, &out->bit_byte, 1)) return false;
            out->bit_count = 0;
            out->bit_byte = 0;
        }
    }
    return true;
}

bool ref_output_unit(struct ref_output *out, const uint8_t *unit, size_t size)
{
    return out->rasters_only || ref_put_unit(out->header, unit, size, &out->records, put_item, out);
}

bool ref_output_samples_end(struct ref_output *out)
{
    if (out->rasters_only) return true;
    if (out->header->restore == REF_ENCAPSULATED && ref_left(&out->records) > 0)
        return ref_fail("records go on after the last frame"); /* 4.4 */
    if (out->bit_count == 0) return true;
    out->bit_byte |= (uint8_t)(out->last_bits << out->bit_count); /* 4.1 */
    return put_inner(out, &out->bit_byte, 1);
}

bool ref_output_close(struct ref_output *out, struct ref_piece *restored)
{
    bool good = true, is_all = restored && !out->rasters_only;
    if (is_all && out->header->restore == REF_PNG) good = put_png_end(out);
    if (is_all && out->header->restore == REF_DEFLATED) good = put_deflated(out);
    if (good && is_all && out->records.size > out->size)
        good = ref_fail("the records are longer than the restored file"); /* 4.4 */
    free(out->plain);
    if (out->file && !out->is_others && fclose(out->file) != 0) good = ref_fail("cannot write");
    struct ref_piece end = {.size = out->size};
    ref_hash_end(out->hash, end.hash);
    if (restored) *restored = end;
    return good;
}
