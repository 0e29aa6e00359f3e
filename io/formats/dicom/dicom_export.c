/* See dicom_export.h. */
#include "dicom_export.h"

#include <stdlib.h>
#include <string.h>

#include "dicom_rewrite.h"
#include "dicom_file.h"
#include "io/bytes/checksum.h"
#include "io/bytes/cursor.h"
#include "io/formats/source.h"
#include "io/nodes/new_streams/stream_new.h"
#include "jpeg_2000.h"

/* By enum tsr_export_syntax. */
static const struct syntax {
    const char *word, *uid;
    const struct tsr_node *kind; /* of our own; NULL: native, or of a library */
    bool is_jpeg_2000, is_ht;
} syntaxes[] = {
    [TSR_EXPORT_NATIVE] = {"native", TSR_NATIVE_UID, NULL, false, false},
    [TSR_EXPORT_JPEG_LS] = {"jpeg-ls", "1.2.840.10008.1.2.4.80", &tsr_node_jpeg_ls, false, false},
    [TSR_EXPORT_JPEG_LOSSLESS] = {"jpeg-lossless", "1.2.840.10008.1.2.4.70", &tsr_node_jpeg_lossless, false, false},
    [TSR_EXPORT_RLE] = {"rle", "1.2.840.10008.1.2.5", &tsr_node_rle, false, false},
    [TSR_EXPORT_J2K] = {"j2k", "1.2.840.10008.1.2.4.90", NULL, true, false},
    [TSR_EXPORT_HTJ2K] = {"htj2k", "1.2.840.10008.1.2.4.201", NULL, true, true},
};

struct tsr_exporter {
    const struct syntax *syntax;
    struct tsr_output *output;
    struct tsr_image from, to; /* as rasters come, and as they are written */
    int bits;                  /* of samples in streams */
    bool needs_all_bits, is_rgb, is_encapsulated;
    uint32_t left_out;               /* tag of a sequence of the header, or 0 */
    struct tsr_bytes prefix, suffix; /* of the .tsr */
    struct tsr_dicom_scan scan;      /* of the prefix */
    uint32_t frames;                 /* so far */
    uint64_t table, first; /* places in the output: of the offset table's values (0: it is empty), of frame 0 */
    unsigned waiting, waiting_bits; /* of native samples of one bit */
    uint8_t *raster;
    struct tsr_hasher values; /* of all frames, if streams have values instead of cells */
    struct tsr_hasher given;  /* the rasters as they came, as FORMAT.md 3.4 hashes samples */
    struct tsr_bytes residue, stream;
};

/* ---- What can be ----------------------------------------------------------------------------------------- */

enum tsr_status tsr_can_export(const struct tsr_header *header, enum tsr_export_syntax to, struct tsr_error *error)
{
    const struct syntax *const syntax = &syntaxes[to];
    const struct tsr_image *const image = &header->image;
    if (header->kind != TSR_KIND_DICOM)
        return tsr_fail(error, TSR_ERROR_USAGE, "it holds no DICOM file: tessera decompress restores it");
    if (!tsr_has_frames(header))
        return tsr_fail(error, TSR_ERROR_USAGE,
                        "its DICOM file is %s, without decoded samples (%s); tessera decompress restores it",
                        header->recipe == TSR_RECIPE_PACKED ? "coded by its streams" : "stored", tsr_reason_of(header));
    if (syntax->is_jpeg_2000 && tsr_jpeg_2000_lacks(syntax->is_ht))
        return tsr_fail(error, TSR_ERROR_USAGE, "%s", tsr_jpeg_2000_lacks(syntax->is_ht));
    if (to == TSR_EXPORT_NATIVE) return TSR_OK;
    if (image->bits_allocated == 1 || (image->bits_allocated == 32 && to != TSR_EXPORT_RLE))
        return tsr_fail(error, TSR_ERROR_USAGE, "its samples have %d bit%s, which %s cannot have; native can",
                        image->bits_allocated, image->bits_allocated == 1 ? "" : "s", syntax->word);
    if (to == TSR_EXPORT_RLE && image->components * image->bits_allocated / 8 > 15)
        return tsr_fail(error, TSR_ERROR_USAGE, "its pixels have %d bytes, which rle cannot have; native can",
                        image->components * image->bits_allocated / 8);
    return TSR_OK;
}

static uint64_t raster_bytes(const struct tsr_image *image)
{
    return tsr_frame_bits(image) / 8 + 1;
}

/* Bytes of a stream of one of our kinds: RLE is hardly longer than its planes, and a code is hardly longer than the
 * bits of its sample. */
static uint64_t stream_room(const struct tsr_image *image)
{
    enum { CODE_BITS = 6, HEAD = 1 << 16 };
    const uint64_t samples = (uint64_t)image->columns * image->rows * image->components;
    return raster_bytes(image) + CODE_BITS * samples / 8 + HEAD;
}

/* A header's elements are listed, and written anew. */
static uint64_t header_work(uint64_t bytes)
{
    enum { BYTES = 16, FIXED = 1 << 18 };
    return BYTES * bytes + FIXED;
}

struct tsr_restoring tsr_export_memory(const struct tsr_header *header, enum tsr_export_syntax to, uint64_t prefix,
                                       uint64_t suffix)
{
    const struct syntax *const syntax = &syntaxes[to];
    const struct tsr_image *const image = &header->image;
    const uint64_t raster = raster_bytes(image), heads = header_work(prefix > suffix ? prefix : suffix);
    struct tsr_restoring r = {.held = prefix + suffix + raster};
    if (syntax->kind) r.held += stream_room(image);
    if (syntax->kind) r.work = syntax->kind->memory(&(struct tsr_node_work){.image = image}, stream_room(image), true);
    if (syntax->is_jpeg_2000) r.work = tsr_jpeg_2000_memory(image, syntax->is_ht);
    if (r.work < heads) r.work = heads;
    return r;
}

uint64_t tsr_exported_bytes(const struct tsr_header *header, enum tsr_export_syntax to, uint64_t prefix,
                            uint64_t suffix)
{
    enum { MORE = 1 << 16, ITEM_BYTES = 16 };
    const struct tsr_image *const image = &header->image;
    const uint64_t frame = to == TSR_EXPORT_NATIVE ? raster_bytes(image) : stream_room(image);
    return prefix + suffix + image->frames * (frame + ITEM_BYTES) + MORE;
}

/* Whether streams have the values of samples. Native pixels and RLE keep whole cells. */
static bool has_values(const struct tsr_exporter *e)
{
    return (e->syntax->is_jpeg_2000 || (e->syntax->kind && e->syntax->kind != &tsr_node_rle)) &&
           e->from.bits_stored < e->from.bits_allocated;
}

enum tsr_status tsr_exporter_create(const struct tsr_header *header, enum tsr_export_syntax to, bool all_bits,
                                    struct tsr_output *output, struct tsr_exporter **exporter, struct tsr_error *error)
{
    struct tsr_exporter *e = *exporter = calloc(1, sizeof *e);
    const struct tsr_image *const image = &header->image;
    const size_t raster = (size_t)raster_bytes(image);
    if (e) e->raster = malloc(raster);
    if (!e || !e->raster) {
        free(e);
        *exporter = NULL;
        return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to export");
    }
    e->syntax = &syntaxes[to];
    e->output = output;
    e->from = e->to = *image;
    e->is_encapsulated = header->recipe == TSR_RECIPE_ENCAPSULATED;
    e->to.big_endian = e->to.swapped = false;
    if (to != TSR_EXPORT_NATIVE) e->to.planar = false;
    /* GDCM reads neither JPEG-LS nor lossless JPEG of less than 8 bits. */
    const bool has_less = image->bits_stored > (e->syntax->is_jpeg_2000 ? 1 : 8);
    e->bits = all_bits || !has_less ? image->bits_allocated : image->bits_stored;
    if (has_values(e)) e->to.high_bit = (uint8_t)(image->bits_stored - 1);
    tsr_hasher_init(&e->values);
    tsr_hasher_init(&e->given);
    e->prefix.limit = e->suffix.limit = SIZE_MAX / 4;
    e->residue.limit = 1 << 16;
    e->stream.limit = 4 * raster + (1 << 16);
    return e->syntax->kind ? tsr_bytes_reserve(&e->stream, (size_t)stream_room(image), error) : TSR_OK;
}

/* What is of no more use when all is written. */
static void free_parts(struct tsr_exporter *e)
{
    tsr_bytes_free(&e->prefix);
    tsr_bytes_free(&e->suffix);
    tsr_bytes_free(&e->residue);
    tsr_bytes_free(&e->stream);
    free(e->raster);
    e->raster = NULL;
}

void tsr_exporter_free(struct tsr_exporter *e)
{
    if (!e) return;
    free_parts(e);
    free(e);
}

enum tsr_status tsr_exporter_foresee(struct tsr_exporter *e, uint64_t prefix, uint64_t suffix, struct tsr_error *error)
{
    if (prefix > e->prefix.limit || suffix > e->suffix.limit)
        return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a header of %llu bytes", (unsigned long long)prefix);
    TSR_TRY(tsr_bytes_reserve(&e->prefix, (size_t)prefix, error));
    return tsr_bytes_reserve(&e->suffix, (size_t)suffix, error);
}

bool tsr_exporter_needs_all_bits(const struct tsr_exporter *e)
{
    return e->needs_all_bits;
}

uint32_t tsr_exporter_left_out(const struct tsr_exporter *e)
{
    return e->left_out;
}

/* ---- Rasters --------------------------------------------------------------------------------------------- */

/* A raster of one image as that of another one, which differs from it in planes and in the order of bytes alone. */
static void arrange(const struct tsr_image *from, const struct tsr_image *to, const uint8_t *raster, uint8_t *out)
{
    const size_t size = tsr_raster_bytes(from), bytes = from->bits_allocated / 8;
    const size_t pixels = (size_t)from->columns * from->rows, n = from->components;
    if (from->planar != to->planar) {
        for (size_t c = 0; c < n; c++)
            for (size_t i = 0; i < pixels; i++) {
                const size_t by_plane = (c * pixels + i) * bytes, by_pixel = (i * n + c) * bytes;
                memcpy(out + (to->planar ? by_plane : by_pixel), raster + (to->planar ? by_pixel : by_plane), bytes);
            }
    } else {
        memcpy(out, raster, size);
    }
    const size_t unit = from->swapped != to->swapped ? 2 : from->big_endian != to->big_endian ? bytes : 1;
    for (size_t at = 0; unit > 1 && at + unit <= size; at += unit)
        for (size_t i = 0; i < unit / 2; i++) {
            const uint8_t byte = out[at + i];
            out[at + i] = out[at + unit - 1 - i];
            out[at + unit - 1 - i] = byte;
        }
}

static uint32_t get_cell(const uint8_t *raster, int bytes, size_t i)
{
    return bytes == 1 ? raster[i] : raster[2 * i] | (uint32_t)raster[2 * i + 1] << 8;
}

static void put_cell(uint8_t *raster, int bytes, size_t i, uint32_t cell)
{
    raster[(size_t)bytes * i] = (uint8_t)cell;
    if (bytes == 2) raster[2 * i + 1] = (uint8_t)(cell >> 8);
}

/* What the cells of a raster have beside their values. */
struct beside {
    bool signs, others; /* copies of the sign above the value; other bits that are 1 */
};

/* Cells become values, with their sign in all bits: those that readers see. The raster's bytes are in order. */
static struct beside take_values(const struct tsr_image *image, int high_bit, uint8_t *raster)
{
    const size_t samples = (size_t)image->columns * image->rows * image->components;
    const int bytes = image->bits_allocated / 8, stored = image->bits_stored, shift = high_bit + 1 - stored;
    const uint32_t all = image->bits_allocated == 8 ? 0xff : 0xffff, mask = (UINT32_C(1) << stored) - 1;
    struct beside beside = {false, false};
    for (size_t i = 0; i < samples; i++) {
        const uint32_t cell = get_cell(raster, bytes, i), value = cell >> shift & mask;
        const uint32_t with_sign = image->is_signed && value >> (stored - 1) != 0 ? value | (all & ~mask) : value;
        if (cell != value << shift) {
            beside.signs = true;
            beside.others |= cell != (with_sign << shift & all);
        }
        put_cell(raster, bytes, i, with_sign);
    }
    return beside;
}

/* The values of a frame, as the coder takes them. Without signs in other bits a value takes the bits stored. */
static enum tsr_status narrow(struct tsr_exporter *e, struct tsr_error *error)
{
    const struct tsr_image *const image = &e->to;
    const size_t samples = (size_t)image->columns * image->rows * image->components;
    const int bytes = image->bits_allocated / 8;
    const struct beside beside = take_values(image, e->from.high_bit, e->raster);
    if (beside.others)
        return tsr_fail(error, TSR_ERROR_USAGE,
                        "it cannot be exported: frame %u has other bits beside its samples, such as an overlay, which "
                        "%s cannot have; native and rle can",
                        e->frames + 1, e->syntax->word);
    tsr_hasher_add(&e->values, e->raster, samples * (size_t)bytes);
    if (e->syntax->is_jpeg_2000 || e->bits == image->bits_allocated) return TSR_OK;
    if (beside.signs) {
        e->needs_all_bits = true;
        return tsr_fail(error, TSR_ERROR_CORRUPT, "frame %u has bits outside of its samples", e->frames + 1);
    }
    for (size_t i = 0; i < samples; i++)
        put_cell(e->raster, bytes, i, get_cell(e->raster, bytes, i) & ((UINT32_C(1) << image->bits_stored) - 1));
    return TSR_OK;
}

/* ---- The file -------------------------------------------------------------------------------------------- */

/* Scans the prefix, of a deflated file as it is inflated. */
static enum tsr_status scan_prefix(struct tsr_exporter *e, struct tsr_error *error)
{
    struct tsr_input *const input = tsr_input_from_memory(e->prefix.bytes, e->prefix.size, "the header");
    if (!input) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to export");
    enum tsr_status status = tsr_dicom_scan_file(input, &e->scan, error);
    if (status == TSR_OK && e->scan.is_deflated) {
        const struct tsr_dicom_scan meta = e->scan;
        status = tsr_dicom_scan_dataset(input, meta.meta_end, &e->scan, error);
        e->scan.meta_start = meta.meta_start;
        e->scan.meta_end = meta.meta_end;
    }
    tsr_input_close(input);
    return status;
}

/* The photometric interpretation of the .tsr's samples. */
static bool is_rgb(const struct tsr_exporter *e)
{
    const struct tsr_dicom_element *const fact = &e->scan.fact[TSR_FACT_PHOTOMETRIC];
    return fact->tag != 0 && e->from.components == 3 && fact->length >= 3 &&
           memcmp(e->prefix.bytes + fact->value, "RGB", 3) == 0 &&
           (fact->length == 3 || e->prefix.bytes[fact->value + 3] == ' ' || e->prefix.bytes[fact->value + 3] == 0);
}

static uint64_t native_bytes(const struct tsr_exporter *e)
{
    const uint64_t bits = tsr_frame_bits(&e->to) * e->to.frames;
    return bits / 8 + (bits % 8 != 0);
}

static enum tsr_status put_item_head(struct tsr_exporter *e, uint64_t size, struct tsr_error *error)
{
    uint8_t head[8] = {0xfe, 0xff, 0x00, 0xe0};
    tsr_put_u32(head + 4, (uint32_t)size);
    return tsr_output_write(e->output, head, sizeof head, error);
}

/* The basic offset table, whose values come later. It is empty where they may have more than 32 bits. */
static enum tsr_status put_table(struct tsr_exporter *e, struct tsr_error *error)
{
    static const uint8_t zeros[4] = {0};
    const uint64_t most = 2 * native_bytes(e) + 4096 * (uint64_t)e->to.frames;
    if (most > UINT32_MAX) return put_item_head(e, 0, error);
    TSR_TRY(put_item_head(e, 4 * (uint64_t)e->to.frames, error));
    e->table = tsr_output_size(e->output);
    for (uint32_t f = 0; f < e->to.frames; f++) TSR_TRY(tsr_output_write(e->output, zeros, sizeof zeros, error));
    return TSR_OK;
}

/* Whether a number of the header is this one. */
static bool is_number(const struct tsr_exporter *e, enum tsr_dicom_fact fact, unsigned number)
{
    const struct tsr_dicom_element *const element = &e->scan.fact[fact];
    if (element->tag == 0) return fact == TSR_FACT_SAMPLES && number == 1;
    if (element->length != 2) return false;
    const uint8_t *const bytes = e->prefix.bytes + element->value;
    const bool big_endian = e->scan.form.big_endian;
    return number == (unsigned)(bytes[big_endian ? 1 : 0] | bytes[big_endian ? 0 : 1] << 8);
}

static bool has_all_frames(const struct tsr_exporter *e)
{
    const struct tsr_dicom_element *const element = &e->scan.fact[TSR_FACT_FRAMES];
    uint64_t frames = 0;
    for (uint32_t i = 0; element->tag != 0 && i < element->length && frames < UINT32_MAX; i++) {
        const uint8_t digit = e->prefix.bytes[element->value + i];
        if (digit >= '0' && digit <= '9') frames = 10 * frames + (digit - '0');
    }
    return frames == e->from.frames || (frames == 0 && e->from.frames == 1);
}

/* Whether two pixels share their chroma, in native frames. */
static bool is_subsampled(const struct tsr_exporter *e)
{
    static const char name[] = "YBR_FULL_422";
    const struct tsr_dicom_element *const fact = &e->scan.fact[TSR_FACT_PHOTOMETRIC];
    return !e->is_encapsulated && fact->tag != 0 && fact->length >= sizeof name - 1 &&
           memcmp(e->prefix.bytes + fact->value, name, sizeof name - 1) == 0;
}

/* Whether the rasters are the pixel data that the header describes. They may be words of other numbers of bits, or a
 * part of the frames: FORMAT.md 4.1. */
static bool is_usual(const struct tsr_exporter *e)
{
    const uint32_t tag = e->scan.pixels.tag, length = e->scan.pixels.length;
    const bool is_whole = e->is_encapsulated || (length != TSR_UNDEFINED_LENGTH && length >= native_bytes(e));
    return tag == TSR_TAG_PIXEL_DATA && is_whole && !is_subsampled(e) && has_all_frames(e) &&
           is_number(e, TSR_FACT_ROWS, e->from.rows) && is_number(e, TSR_FACT_COLUMNS, e->from.columns) &&
           is_number(e, TSR_FACT_SAMPLES, e->from.components) &&
           is_number(e, TSR_FACT_BITS_ALLOCATED, e->from.bits_allocated);
}

static enum tsr_status begin(struct tsr_exporter *e, struct tsr_error *error)
{
    const bool is_native = e->syntax == &syntaxes[TSR_EXPORT_NATIVE];
    struct tsr_dicom_text text = {0};
    TSR_TRY(scan_prefix(e, error));
    if (!is_usual(e))
        return tsr_fail(error, TSR_ERROR_USAGE,
                        "it cannot be exported: its pixel data is not the image that its header describes; "
                        "tessera decompress restores it");
    if (e->scan.form.big_endian && !e->scan.form.explicit_vr)
        return tsr_fail(error, TSR_ERROR_USAGE,
                        "it cannot be exported: its elements are big endian and have no VR, which DICOM's transfer "
                        "syntaxes do not have; tessera decompress restores it");
    if (e->scan.form.big_endian && e->from.bits_allocated <= 8 && !e->from.swapped &&
        strcmp(e->scan.pixels.vr, "OB") != 0 && strcmp(e->scan.pixels.vr, "UN") != 0)
        return tsr_fail(
            error, TSR_ERROR_USAGE,
            "it cannot be exported: its samples of %d bits are in big-endian words, which its frames do not "
            "fill; tessera decompress restores it",
            e->from.bits_allocated);
    e->is_rgb = is_rgb(e);
    const struct tsr_dicom_target target = {.syntax_uid = e->syntax->uid,
                                            .photometric = e->syntax->is_jpeg_2000 && e->is_rgb ? "YBR_RCT" : NULL,
                                            .interleaved = !is_native && e->to.components > 1,
                                            .native_bytes = is_native ? native_bytes(e) : 0,
                                            .has_words = e->to.bits_allocated > 8,
                                            .bits_stored = e->to.bits_stored,
                                            .high_bit = e->to.high_bit};
    enum tsr_status status = tsr_dicom_rewrite(e->prefix.bytes, &e->scan, &target, &text, error);
    if (status == TSR_OK) status = tsr_output_write(e->output, text.bytes, text.size, error);
    e->left_out = text.left_out;
    free(text.bytes);
    if (status == TSR_OK && !is_native) status = put_table(e, error);
    e->first = tsr_output_size(e->output);
    return status;
}

enum tsr_status tsr_exporter_put_blob(struct tsr_exporter *e, enum tsr_blob blob, const void *bytes, size_t size,
                                      struct tsr_error *error)
{
    return tsr_bytes_put(blob == TSR_BLOB_PREFIX ? &e->prefix : &e->suffix, bytes, size, error);
}

static enum tsr_status make_stream(struct tsr_exporter *e, struct tsr_error *error)
{
    e->residue.size = e->stream.size = 0;
    if (e->syntax->is_jpeg_2000)
        return tsr_jpeg_2000_write(&e->to, e->raster, e->bits, e->syntax->is_ht, e->is_rgb, &e->stream, error);
    if (e->syntax->kind == &tsr_node_rle)
        TSR_TRY(tsr_new_rle(&e->to, &e->residue, error));
    else if (e->syntax->kind == &tsr_node_jpeg_ls)
        TSR_TRY(tsr_new_jpeg_ls(&e->to, e->bits, &e->residue, error));
    else
        TSR_TRY(tsr_new_jpeg_lossless(&e->to, e->raster, e->bits, &e->residue, error));
    return tsr_node_join(e->syntax->kind, &e->to, e->raster, e->residue.bytes, e->residue.size, &e->stream, error);
}

/* A fragment for a frame, of an even number of bytes, and its place in the table. */
static enum tsr_status put_stream(struct tsr_exporter *e, struct tsr_error *error)
{
    if (has_values(e)) TSR_TRY(narrow(e, error));
    TSR_TRY(make_stream(e, error));
    if (e->stream.size % 2 != 0) TSR_TRY(tsr_bytes_put(&e->stream, "", 1, error));
    if (e->stream.size > UINT32_MAX - 1)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "frame %u takes %zu bytes", e->frames + 1, e->stream.size);
    if (e->table > 0) {
        uint8_t offset[4];
        tsr_put_u32(offset, (uint32_t)(tsr_output_size(e->output) - e->first));
        TSR_TRY(tsr_output_patch(e->output, e->table + 4 * (uint64_t)e->frames, offset, sizeof offset, error));
    }
    TSR_TRY(put_item_head(e, e->stream.size, error));
    return tsr_output_write(e->output, e->stream.bytes, e->stream.size, error);
}

/* Frames of single bits follow each other without padding. */
static enum tsr_status put_bits(struct tsr_exporter *e, struct tsr_error *error)
{
    const uint64_t bits = tsr_frame_bits(&e->to);
    size_t used = 0;
    for (uint64_t i = 0; i < bits; i += 8) {
        const unsigned count = bits - i < 8 ? (unsigned)(bits - i) : 8;
        e->waiting |= (e->raster[i / 8] & ((1u << count) - 1)) << e->waiting_bits;
        e->waiting_bits += count;
        if (e->waiting_bits < 8) continue;
        e->raster[used++] = (uint8_t)e->waiting;
        e->waiting >>= 8;
        e->waiting_bits -= 8;
    }
    return tsr_output_write(e->output, e->raster, used, error);
}

enum tsr_status tsr_exporter_put_frame(struct tsr_exporter *e, const uint8_t *raster, struct tsr_error *error)
{
    const size_t size = tsr_raster_bytes(&e->to);
    if (e->frames == 0) TSR_TRY(begin(e, error));
    if (has_values(e)) {
        const struct tsr_hash128 hash = tsr_hash128_of(raster, tsr_raster_bytes(&e->from));
        tsr_hasher_add(&e->given, hash.bytes, sizeof hash.bytes);
    }
    arrange(&e->from, &e->to, raster, e->raster);
    if (e->syntax != &syntaxes[TSR_EXPORT_NATIVE])
        TSR_TRY(put_stream(e, error));
    else if (e->to.bits_allocated == 1)
        TSR_TRY(put_bits(e, error));
    else
        TSR_TRY(tsr_output_write(e->output, e->raster, size, error));
    e->frames++;
    return TSR_OK;
}

enum tsr_status tsr_exporter_end(struct tsr_exporter *e, struct tsr_error *error)
{
    static const uint8_t delimiter[8] = {0xfe, 0xff, 0xdd, 0xe0};
    struct tsr_dicom_text rest = {.left_out = e->left_out};
    if (e->syntax != &syntaxes[TSR_EXPORT_NATIVE]) {
        TSR_TRY(tsr_output_write(e->output, delimiter, sizeof delimiter, error));
    } else {
        const uint8_t last[2] = {(uint8_t)e->waiting, 0};
        if (e->waiting_bits > 0) TSR_TRY(tsr_output_write(e->output, last, 1, error));
        TSR_TRY(tsr_output_write(e->output, last + 1, native_bytes(e) % 2, error));
    }
    const struct tsr_dicom_element *const pixels = &e->scan.pixels;
    const size_t skipped = tsr_dicom_skip_pixels(pixels, native_bytes(e), e->suffix.bytes, e->suffix.size);
    enum tsr_status status = tsr_dicom_rewrite_rest(e->suffix.bytes ? e->suffix.bytes + skipped : e->prefix.bytes,
                                                    e->suffix.size - skipped, e->scan.form, &rest, error);
    if (status == TSR_OK) status = tsr_output_write(e->output, rest.bytes, rest.size, error);
    e->left_out = rest.left_out;
    free(rest.bytes);
    free_parts(e);
    return status;
}

/* ---- The proof ------------------------------------------------------------------------------------------- */

/* Adds a frame that was read again: its values, or what FORMAT.md 3.4 promises of a .tsr's samples. other: room for a
 * raster. */
static void add_frame(const struct tsr_exporter *e, uint8_t *raster, uint8_t *other, size_t size,
                      struct tsr_hasher *frames)
{
    if (has_values(e)) {
        take_values(&e->to, e->to.high_bit, raster);
        tsr_hasher_add(frames, raster, size);
        return;
    }
    arrange(&e->to, &e->from, raster, other);
    const struct tsr_hash128 hash = tsr_hash128_of(other, size);
    tsr_hasher_add(frames, hash.bytes, sizeof hash.bytes);
}

static enum tsr_status compare(const struct tsr_exporter *e, struct tsr_source *source,
                               const struct tsr_hash128 *samples, struct tsr_error *error)
{
    const struct tsr_image *const image = &source->header.image;
    const size_t size = tsr_raster_bytes(&e->to);
    struct tsr_hasher frames;
    tsr_hasher_init(&frames);
    if (!tsr_has_frames(&source->header))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "it cannot be read again: %s", source->header.reason);
    if (!tsr_same_image(image, &e->to)) return tsr_fail(error, TSR_ERROR_CORRUPT, "it is of another image");
    uint8_t *const raster = malloc(2 * size + 1);
    if (!raster) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to read what was written");
    enum tsr_status status = TSR_OK;
    for (uint32_t f = 0; f < image->frames && status == TSR_OK; f++) {
        status = tsr_source_read_frame(source, f, raster, error);
        add_frame(e, raster, raster + size, size, &frames);
    }
    free(raster);
    const struct tsr_hash128 found = tsr_hasher_result128(&frames), values = tsr_hasher_result128(&e->values),
                             given = tsr_hasher_result128(&e->given);
    const bool is_same = has_values(e) ? tsr_hash128_equal(&given, samples) && tsr_hash128_equal(&found, &values)
                                       : tsr_hash128_equal(&found, samples);
    if (status == TSR_OK && !is_same) status = tsr_fail(error, TSR_ERROR_CORRUPT, "its samples are others");
    return status;
}

enum tsr_status tsr_exporter_check(const struct tsr_exporter *e, struct tsr_input *written,
                                   const struct tsr_hash128 *samples, struct tsr_error *error)
{
    const struct tsr_source_options options = {.samples_only = true};
    struct tsr_source *source = NULL;
    enum tsr_status status = tsr_source_open(written, &options, &source, error);
    if (status == TSR_OK) status = compare(e, source, samples, error);
    tsr_source_close(source);
    return status;
}
