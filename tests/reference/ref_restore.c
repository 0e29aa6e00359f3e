/* FORMAT.md 4: restores the original. */
#include "ref_deflate.h"

#include <stdlib.h>
#include <string.h>

struct ref_output {
    FILE *file; /* null: nothing is written */
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
    struct ref_bytes records; /* 4.2, 4.3, 4.4 */
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

/* 4.2: writes the bytes before the stream, and keeps the others. */
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
    struct ref_bytes *b = &out->records;
    struct ref_deflate_out stream = {.bits = 0};
    uint64_t tail_size = ref_varint(b);
    const uint8_t *tail = ref_take(b, tail_size);
    if (b->bad) return ref_fail("the residue of a deflated file is corrupt");
    if (out->plain_left > 0) return ref_fail("the deflated part begins behind the end");
    return ref_deflate(out->plain, out->plain_size, b->data + b->at, ref_left(b), &stream) &&
           put(out, stream.bytes, (size_t)(stream.bits / 8)) && put(out, tail, (size_t)tail_size);
}

/* ---- The parts of a file, in order ---- */

static bool begin(struct ref_output *out)
{
    const struct ref_header *h = out->header;
    if (h->restore == REF_ENCAPSULATED && !ref_check_encapsulated(h)) return false;
    if (out->rasters_only) return h->restore != REF_VERBATIM || ref_fail("a verbatim file has no samples");
    if (h->restore == REF_VERBATIM || h->restore == REF_ENCAPSULATED) return true;
    if (h->restore == REF_PNG) return ref_check_png(h);
    struct ref_bytes b = {.data = h->parameters, .size = h->parameter_count};
    if (h->restore == REF_DEFLATED) out->plain_left = ref_varint(&b);
    unsigned used = (unsigned)(ref_frame_bits(h) * h->frames % 8); /* bits that are used of the last byte */
    if (used != 0) out->last_bits = (uint8_t)ref_number(&b, 1);
    return (!b.bad && ref_left(&b) == 0 && out->last_bits >> (8 - used) == 0) || ref_fail("the parameters are corrupt");
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
    if (good) return out;
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

bool ref_output_frame(struct ref_output *out, const uint8_t *raster)
{
    const struct ref_header *h = out->header;
    size_t size = ref_raster_size(h);
    if (out->rasters_only) return put(out, raster, size);
    if (h->restore == REF_PNG) {
        uint8_t *chunks;
        size_t chunks_size;
        return ref_png_chunks(h, raster, out->records.data, out->records.size, &chunks, &chunks_size) &&
               put(out, chunks, chunks_size);
    }
    if (h->restore == REF_ENCAPSULATED) return ref_encapsulate(h, raster, &out->records, put_item, out);
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
    bool good = true;
    if (restored && !out->rasters_only && out->header->restore == REF_DEFLATED) good = put_deflated(out);
    if (good && restored && !out->rasters_only && out->records.size > out->size)
        good = ref_fail("the records are longer than the restored file"); /* 4.4 */
    free(out->plain);
    if (out->file && fclose(out->file) != 0) good = ref_fail("cannot write");
    struct ref_piece end = {.size = out->size};
    ref_hash_end(out->hash, end.hash);
    if (restored) *restored = end;
    return good;
}
