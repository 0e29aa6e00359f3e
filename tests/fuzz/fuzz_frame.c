/* Frames in memory: any payload is refused, by the reference decoder, too; or it decodes to a raster, to which the
 * reference decoder decodes it, too, and which can be coded again. Any raster comes back from its payload. Payloads
 * with a few wrong bits do no harm.
 *
 * An input is a header of HEAD bytes, then a payload, or edits of a payload and the samples of its raster. */
#include "fuzz_support.h"

#include <stdlib.h>
#include <string.h>

#include "entropy/frame_model.h"
#include "tests/reference/ref.h"

enum {
    MODE, /* bit 0: samples instead of a payload; bits 1, 2: 1 or 3 threads; bits 4..7: edits */
    COLUMNS,
    ROWS = 3,
    DEPTH = 5, /* components - 1: bits 0, 1; bits allocated: bits 2, 3 */
    STORED,
    HIGH,
    LAYOUT, /* ... steps for SSIM: bit 5 */
    CODING, /* path: bit 0; CAVLC: bit 1, rANS: bit 3; loss: bit 2; effort: bits 4..7 */
    QP,
    REPEAT, /* if there are too few samples, they are repeated from here on */
    HEAD,
    EDIT_BYTES = 4
};

#define RASTER_LIMIT ((size_t)1 << 15)

static bool read_image(const uint8_t *head, struct tsr_image *image)
{
    static const uint8_t allocated[] = {8, 16, 1, 32};
    memset(image, 0, sizeof *image);
    image->columns = 1u + (head[COLUMNS] | (head[COLUMNS + 1] & 15u) << 8);
    image->rows = 1u + (head[ROWS] | (head[ROWS + 1] & 15u) << 8);
    image->frames = 1;
    image->components = 1 + (head[DEPTH] & 3);
    image->bits_allocated = allocated[head[DEPTH] >> 2 & 3];
    image->bits_stored = (uint8_t)(1 + head[STORED] % image->bits_allocated);
    image->high_bit = (uint8_t)(image->bits_stored - 1 + head[HIGH] % (image->bits_allocated - image->bits_stored + 1));
    image->is_signed = head[LAYOUT] & 1;
    image->planar = head[LAYOUT] & 2;
    image->big_endian = head[LAYOUT] & 4;
    image->swapped = (head[LAYOUT] & 8) && image->bits_allocated <= 8 && tsr_frame_bits(image) % 16 == 0;
    image->exact_only = head[LAYOUT] & 16;
    return tsr_frame_bits(image) <= 8 * RASTER_LIMIT;
}

static struct tsr_coding read_coding(const uint8_t *head, const struct tsr_image *image)
{
    struct tsr_coding coding;
    memset(&coding, 0, sizeof coding);
    coding.path = head[CODING] & 1 ? TSR_PATH_TRANSFORM : TSR_PATH_PREDICT;
    coding.coder = head[CODING] & 2 ? TSR_CODER_CAVLC : TSR_CODER_HUFFMAN;
    if ((head[CODING] & 10) == 8) coding.coder = TSR_CODER_RANS;
    /* High efforts are rare: they train for a long time. */
    static const int efforts[] = {1, 2, 3, 4, 5, 3, 1, 2, 3, 4, 1, 2, 3, 1, 7, 9};
    coding.effort = efforts[head[CODING] >> 4];
    coding.lossy = (head[CODING] & 5) == 5 && !image->exact_only && image->bits_allocated > 1 &&
                   image->bits_allocated < 32 && image->bits_stored > 1;
    if (!coding.lossy) return coding;
    const int32_t lowest = tsr_lowest_qp(image->bits_stored);
    coding.max_error = 1u + head[QP];
    coding.qp_eighths = lowest + head[QP] * 4 % (TSR_HIGHEST_QP - lowest + 1);
    if (head[CODING] & 8) coding.coarser_by = (uint32_t)(TSR_HIGHEST_QP - coding.qp_eighths) / 2;
    if (head[LAYOUT] & 32) coding.tune = TSR_TUNE_SSIM;
    coding.coarser_from = image->columns * image->rows / 2;
    return coding;
}

static size_t raster_bytes(const struct tsr_image *image)
{
    return (size_t)((tsr_frame_bits(image) + 7) / 8);
}

/* The bits after the last sample, which are 0. */
static uint8_t spare_mask(const struct tsr_image *image)
{
    const unsigned used = (unsigned)(tsr_frame_bits(image) % 8);
    return (uint8_t)(used == 0 ? 0 : 0xffu << used);
}

static uint8_t *encode(const struct tsr_image *image, const struct tsr_coding *coding, const uint8_t *raster,
                       int threads, size_t *size)
{
    struct tsr_error error = {TSR_OK, 0, "", 0};
    uint8_t *room = fuzz_alloc(tsr_encode_bound(image));
    const enum tsr_status status = tsr_encode_frame(fuzz_engine(threads), image, coding, raster, room, size, &error);
    FUZZ_PROMISE(status == TSR_OK, "encode: %s, %s", tsr_status_name(status), error.text);
    uint8_t *payload = fuzz_alloc(*size); /* of the exact size: a read past the end is caught */
    memcpy(payload, room, *size);
    free(room);
    return payload;
}

/* Decodes a frame payload (FORMAT.md 5.5) by the reference decoder. */
static bool refer(const struct tsr_image *image, const uint8_t *payload, size_t size, uint8_t *raster)
{
    const struct ref_header header = {.columns = image->columns,
                                      .rows = image->rows,
                                      .frames = 1,
                                      .components = image->components,
                                      .allocated = image->bits_allocated,
                                      .stored = image->bits_stored,
                                      .high = image->high_bit,
                                      .is_signed = image->is_signed,
                                      .planar = image->planar,
                                      .big_endian = image->big_endian,
                                      .swapped = image->swapped};
    struct ref_frame frame;
    struct ref_bytes b = {.data = payload, .size = size};
    const uint64_t model_size = ref_varint(&b);
    const uint8_t *const model = ref_take(&b, model_size);
    ref_clear();
    if (b.bad || !model) return ref_fail("the payload has no model");
    if (!ref_frame_begin(&frame, &header, model, (size_t)model_size)) return false;
    for (uint32_t t = 0; t < frame.tile_count; t++) {
        const uint64_t tile_size = ref_varint(&b);
        const uint8_t *const tile = ref_take(&b, tile_size);
        if (b.bad || !tile) return ref_fail("a tile is cut");
        if (!ref_frame_tile(&frame, &header, t, tile, (size_t)tile_size)) return false;
    }
    if (ref_left(&b) > 1 || (ref_left(&b) == 1 && payload[size - 1] != 0)) return ref_fail("bytes follow the tiles");
    return ref_frame_end(&frame, &header, raster);
}

/* Both decoders refuse a payload, or give the same raster; NULL: the product refuses it. */
static void compare(const struct tsr_image *image, const uint8_t *payload, size_t size, const uint8_t *raster)
{
    const size_t bytes = raster_bytes(image);
    uint8_t *const other = fuzz_alloc(bytes);
    void *const mark = ref_mark();
    const bool good = refer(image, payload, size, other);
    FUZZ_PROMISE(good || !raster, "the reference decoder refuses what decodes: %s", ref_sentence());
    FUZZ_PROMISE(!good || raster, "the reference decoder takes what is refused");
    FUZZ_PROMISE(!good || memcmp(raster, other, bytes) == 0, "the reference decoder gives another raster");
    ref_release(mark);
    free(other);
}

static bool decode(const struct tsr_image *image, const uint8_t *payload, size_t size, int threads, uint8_t *raster)
{
    struct tsr_error error = {TSR_OK, 0, "", 0};
    const enum tsr_status status = tsr_decode_frame(fuzz_engine(threads), image, payload, size, raster, &error);
    FUZZ_PROMISE(status == TSR_OK || status == TSR_ERROR_CORRUPT, "decode: %s, %s", tsr_status_name(status),
                 error.text);
    if (threads == 1) compare(image, payload, size, status == TSR_OK ? raster : NULL);
    if (status != TSR_OK) return false;
    FUZZ_PROMISE(!(raster[raster_bytes(image) - 1] & spare_mask(image)), "spare bits are set");
    return true;
}

/* Without loss a raster comes back, with loss its payload decodes. Both give the same with any number of threads. */
static void round_trip(const struct tsr_image *image, const struct tsr_coding *coding, const uint8_t *raster,
                       const uint8_t *edits, int edit_count, int threads)
{
    const size_t bytes = raster_bytes(image);
    size_t size, other_size;
    uint8_t *payload = encode(image, coding, raster, 1, &size), *again = fuzz_alloc(bytes);
    FUZZ_PROMISE(decode(image, payload, size, threads, again), "an encoded frame does not decode");
    FUZZ_PROMISE(coding->lossy || memcmp(raster, again, bytes) == 0, "another raster");
    if (threads > 1) {
        uint8_t *other = encode(image, coding, raster, threads, &other_size);
        FUZZ_PROMISE(size == other_size && memcmp(payload, other, size) == 0, "%d threads code otherwise", threads);
        free(other);
    }
    if (coding->lossy) { /* the decoded frame can be coded without loss */
        const struct tsr_coding plain = {.path = coding->path, .coder = coding->coder, .effort = coding->effort};
        round_trip(image, &plain, again, NULL, 0, 1);
    }
    for (int i = 0; i < edit_count; i++, edits += EDIT_BYTES) {
        /* The model and the starts of tiles come early: every second edit is there. */
        const size_t place = (size_t)edits[0] | (size_t)edits[1] << 8 | (size_t)edits[2] << 16;
        payload[place % (i % 2 ? size : size < 64 ? size : 64)] ^= edits[3];
    }
    if (edit_count > 0) decode(image, payload, size, threads, again);
    free(payload);
    free(again);
}

static void fuzz_payload(const struct tsr_image *image, const struct tsr_coding *coding, const uint8_t *data,
                         size_t size, int threads)
{
    const size_t bytes = raster_bytes(image);
    uint8_t *payload = fuzz_alloc(size), *raster = fuzz_alloc(bytes), *again = fuzz_alloc(bytes);
    memcpy(payload, data, size);
    if (decode(image, payload, size, 1, raster)) {
        FUZZ_PROMISE(decode(image, payload, size, threads, again) && memcmp(raster, again, bytes) == 0,
                     "%d threads decode otherwise", threads);
        round_trip(image, coding, raster, NULL, 0, 1);
    }
    free(payload);
    free(raster);
    free(again);
}

/* The samples. If they are too few, those from REPEAT on are repeated. */
static uint8_t *make_raster(const struct tsr_image *image, const uint8_t *data, size_t size, size_t repeat)
{
    const size_t bytes = raster_bytes(image);
    uint8_t *raster = fuzz_alloc(bytes);
    if (repeat >= size) repeat = 0;
    for (size_t i = 0, from = 0; i < bytes; i++) {
        raster[i] = size > 0 ? data[from] : 0;
        if (++from >= size) from = repeat;
    }
    raster[bytes - 1] &= (uint8_t)~spare_mask(image);
    return raster;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tsr_image image;
    if (size < HEAD || !read_image(data, &image)) return 0;
    const struct tsr_coding coding = read_coding(data, &image);
    const int threads = data[MODE] & 6 ? 1 : 3;
    const uint8_t *rest = data + HEAD;
    size_t rest_size = size - HEAD;
    if (!(data[MODE] & 1)) {
        fuzz_payload(&image, &coding, rest, rest_size, threads);
        return 0;
    }
    int edits = data[MODE] >> 4;
    if ((size_t)edits * EDIT_BYTES > rest_size) edits = 0;
    const size_t edit_bytes = (size_t)edits * EDIT_BYTES;
    uint8_t *raster = make_raster(&image, rest + edit_bytes, rest_size - edit_bytes, data[REPEAT]);
    round_trip(&image, &coding, raster, rest, edits, threads);
    free(raster);
    return 0;
}

/* ---- The mutator ----------------------------------------------------------------------------------------- */

/* Now and then replaces samples by their payload. Also mutates single bits of payloads. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    struct fuzz_random random = {seed};
    struct tsr_image image;
    if (size <= HEAD || max_size < HEAD + 64 || !read_image(data, &image))
        return LLVMFuzzerMutate(data, size, max_size);
    if (data[MODE] & 1) {
        if (fuzz_below(&random, 32) == 0) {
            const struct tsr_coding coding = read_coding(data, &image);
            uint8_t *raster = make_raster(&image, data + HEAD, size - HEAD, data[REPEAT]);
            size_t used;
            uint8_t *payload = encode(&image, &coding, raster, 1, &used);
            const bool fits = used <= max_size - HEAD;
            if (fits) memcpy(data + HEAD, payload, used);
            free(raster);
            free(payload);
            if (fits) data[MODE] &= 0xfe;
            if (fits) return HEAD + used;
        }
        return LLVMFuzzerMutate(data, size, max_size);
    }
    /* A place after the model's size, or after the first tile's, where sizes, labels and first states are. */
    size_t at = HEAD, model = 0;
    for (int shift = 0; at < size && shift < 28; shift += 7) {
        model |= (size_t)(data[at] & 127) << shift;
        if (data[at++] < 128) break;
    }
    const uint32_t choice = fuzz_below(&random, 5);
    size_t room = choice == 0 ? 128 : choice == 1 ? size : 40;
    if (choice == 4 && model < size - at) { /* one tile that is cut off, with the right size */
        const size_t first = at + model;
        at = first;
        while (at < size && data[at++] > 127) {
        }
        if (at < size) {
            const size_t kept = fuzz_below(&random, size - at < 127 ? (uint32_t)(size - at) : 127u);
            memmove(data + first + 1, data + at, kept);
            data[first] = (uint8_t)kept;
            return first + 1 + kept;
        }
    }
    if (choice == 2 && model < size - at) {
        at += model;
        while (at < size && data[at++] > 127) {
        }
    }
    if (choice < 3 && at < size) {
        if (room > size - at) room = size - at;
        fuzz_mutate_bits(data + at, room, room, &random);
        return size;
    }
    return LLVMFuzzerMutate(data, size, max_size);
}
