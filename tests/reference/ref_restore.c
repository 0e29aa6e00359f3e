/* FORMAT.md 4: restores the original. */
#include "ref.h"

#include <stdlib.h>
#include <string.h>
#ifdef REF_WITH_ZLIB
#include <zlib.h>
#endif

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
    const uint8_t *tail;
    size_t tail_size;
    struct ref_bytes records; /* 4.3, 4.4, 4.12 */
    /* Gzipped, 4.12. */
    uint8_t *plain;
    size_t plain_size, plain_room;
#ifdef REF_WITH_ZLIB
    bool deflating;
    z_stream stream;
#endif
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

#ifdef REF_WITH_ZLIB
static bool put_deflated(struct ref_output *out, const uint8_t *data, size_t size, int flush)
{
    do {
        size_t part = size < (1u << 20) ? size : (1u << 20);
        out->stream.next_in = (z_const Bytef *)data;
        out->stream.avail_in = (uInt)part;
        data += part;
        size -= part;
        uint8_t buffer[1 << 14];
        do {
            out->stream.next_out = buffer;
            out->stream.avail_out = sizeof buffer;
            if (deflate(&out->stream, size == 0 ? flush : Z_NO_FLUSH) == Z_STREAM_ERROR)
                return ref_fail("zlib's deflate fails");
            if (!put(out, buffer, sizeof buffer - out->stream.avail_out)) return false;
        } while (out->stream.avail_out == 0);
    } while (size > 0);
    return true;
}
#endif

/* Writes bytes, which are deflated if the file is. Those of a gzip file are kept. */
static bool put_inner(struct ref_output *out, const uint8_t *data, size_t size)
{
    if (out->plain) {
        if (size > out->plain_room - out->plain_size) return ref_fail("a gzip file has too many plain bytes");
        if (size > 0) memcpy(out->plain + out->plain_size, data, size);
        out->plain_size += size;
        return true;
    }
#ifdef REF_WITH_ZLIB
    if (out->deflating) {
        size_t plain = size < out->plain_left ? size : (size_t)out->plain_left;
        if (!put(out, data, plain)) return false;
        out->plain_left -= plain;
        return plain == size || put_deflated(out, data + plain, size - plain, Z_NO_FLUSH);
    }
#endif
    return put(out, data, size);
}

/* ---- The parts of a file, in order ---- */

static bool begin(struct ref_output *out)
{
    const struct ref_header *h = out->header;
    if (h->restore == REF_ENCAPSULATED && !ref_check_encapsulated(h)) return false;
    if (out->rasters_only) return ref_has_frames(h) || ref_fail("the file has no samples");
    if (!ref_has_frames(h) || h->restore == REF_ENCAPSULATED) return true;
    if (h->restore == REF_PNG) return ref_check_png(h);
    if (h->restore == REF_GZIPPED) {
        if (!ref_gzip_size(h, &out->plain_room)) return false;
        out->plain = ref_alloc(out->plain_room, 1);
        return true;
    }
    struct ref_bytes b = {.data = h->parameters, .size = h->parameter_count};
    if (h->restore == REF_DEFLATED) {
        out->plain_left = ref_varint(&b);
        unsigned level = (unsigned)ref_number(&b, 1);
        out->tail_size = (size_t)ref_number(&b, 1);
        out->tail = ref_take(&b, out->tail_size);
        if (b.bad || level < 1 || level > 9) return ref_fail("the parameters of deflate are corrupt");
#ifdef REF_WITH_ZLIB
        if (deflateInit2(&out->stream, (int)level, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK)
            return ref_fail("zlib's deflate fails");
        out->deflating = true;
#else
        return ref_fail("this program was built without zlib");
#endif
    }
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

bool ref_output_pieces(struct ref_output *out, const uint8_t *pieces, size_t size)
{
    return ref_unpack(pieces, size, out->header->room, put_item, out);
}

bool ref_output_frame(struct ref_output *out, const uint8_t *raster)
{
    const struct ref_header *h = out->header;
    size_t size = ref_raster_size(h);
    if (out->rasters_only) return put(out, raster, size);
    if (h->restore == REF_PNG) {
        uint8_t *chunks;
        size_t chunks_size;
        if (!ref_png_chunks(h, raster, out->records.data, out->records.size, &chunks, &chunks_size)) return false;
        out->records.at = out->records.size;
        return put(out, chunks, chunks_size);
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
    if (out->plain) return true; /* 4.12: the records are read at the end */
    if (ref_left(&out->records) > 0) return ref_fail("records go on after the last frame"); /* 4.4 */
    if (out->bit_count == 0) return true;
    out->bit_byte |= (uint8_t)(out->last_bits << out->bit_count); /* 4.1 */
    return put_inner(out, &out->bit_byte, 1);
}

/* 4.12 */
static bool put_gzip(struct ref_output *out)
{
    uint8_t *bytes;
    size_t size;
    if (out->plain_size != out->plain_room) return ref_fail("a gzip file has too few plain bytes");
    return ref_gzip(out->plain, out->plain_size, out->records, &bytes, &size) && put(out, bytes, size);
}

bool ref_output_close(struct ref_output *out, struct ref_piece *restored)
{
    bool good = !restored || !out->plain || put_gzip(out);
    if (restored && good && !out->rasters_only && out->records.size > out->size)
        good = ref_fail("the records are longer than the restored file"); /* 4.4 */
#ifdef REF_WITH_ZLIB
    if (out->deflating) {
        if (restored && out->plain_left > 0) good = ref_fail("the deflated part begins behind the end");
        if (restored && good) good = put_deflated(out, NULL, 0, Z_FINISH) && put(out, out->tail, out->tail_size);
        deflateEnd(&out->stream);
        out->deflating = false;
    }
#endif
    if (out->file && fclose(out->file) != 0) good = ref_fail("cannot write");
    struct ref_piece end = {.size = out->size};
    ref_hash_end(out->hash, end.hash);
    if (restored) *restored = end;
    return good;
}
