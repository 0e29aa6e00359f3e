/* Any bytes through the memory API. A reader that opens gives frames, regions, headers and ranges that agree with each
 * other and with the restored file. Any bytes are compressed to memory as an original, too, and come back. */
#include "fuzz_support.h"

#include <stdlib.h>
#include <string.h>

/* Larger images would take seconds each and show nothing new. */
#define SAMPLES_LIMIT ((uint64_t)1 << 20)
#define ORIGINAL_LIMIT ((uint64_t)1 << 22)

static void check_status(enum tsr_status status, const struct tsr_error *error, const char *what)
{
    switch (status) {
    case TSR_OK:
    case TSR_ERROR_CORRUPT:
    case TSR_ERROR_LIMIT:
    case TSR_ERROR_VERSION:
    case TSR_ERROR_KEY:    /* a signature that was changed to that of encrypted files */
    case TSR_ERROR_VERIFY: /* the PNG that was made is not the one that the file promises */
        return;
    default:
        fuzz_finding("%s: %s, %s", what, tsr_status_name(status), error->text);
    }
}

static size_t raster_bytes(uint64_t bits)
{
    return (size_t)((bits + 7) / 8);
}

/* A region of any size at any place. */
static struct tsr_region any_region(const struct tsr_image *image, struct fuzz_random *random)
{
    struct tsr_region r = {fuzz_below(random, image->columns), fuzz_below(random, image->rows), 1, 1};
    r.columns += fuzz_below(random, image->columns - r.column);
    r.rows += fuzz_below(random, image->rows - r.row);
    return r;
}

static unsigned bit_of(const uint8_t *raster, uint64_t at, bool is_swapped)
{
    return raster[(size_t)(at / 8) ^ (size_t)is_swapped] >> (at % 8) & 1u;
}

static bool is_part(const struct tsr_image *image, const uint8_t *frame, const struct tsr_region *r, const uint8_t *got)
{
    const uint64_t planes = image->planar ? image->components : 1,
                   bits = image->components / planes * image->bits_allocated;
    uint64_t to = 0;
    for (uint64_t p = 0; p < planes; p++)
        for (uint64_t y = 0; y < r->rows; y++) {
            const uint64_t from = ((p * image->rows + r->row + y) * image->columns + r->column) * bits;
            for (uint64_t i = 0; i < r->columns * bits; i++)
                if (bit_of(got, to++, false) != bit_of(frame, from + i, image->swapped)) return false;
        }
    return true;
}

/* A frame that is not coded as samples may have a stream that no codec decodes. */
static bool is_unit(struct tsr_reader *reader, uint32_t member, uint32_t frame, enum tsr_status status)
{
    struct tsr_error error = {TSR_OK, 0, "", 0};
    struct tsr_info info = TSR_INFO;
    size_t size;
    if (status != TSR_ERROR_CORRUPT && status != TSR_ERROR_VERSION) return false;
    if (tsr_read_info(reader, member, &info, &error) != TSR_OK) return false;
    if (info.units == 0) return !info.has_image;
    check_status(tsr_reader_stream(reader, member, frame, NULL, 0, &size, &error), &error, "a stream");
    return true;
}

/* Reads some frames, and a region of each. is_good: the whole member decodes. */
static void read_frames(struct tsr_reader *reader, uint32_t member, bool is_good, struct fuzz_random *random)
{
    struct tsr_error error = {TSR_OK, 0, "", 0};
    struct tsr_image image;
    if (tsr_reader_image(reader, member, &image, &error) != TSR_OK) return;
    const uint64_t samples = (uint64_t)image.columns * image.rows * image.components;
    if (samples > SAMPLES_LIMIT) return;
    const size_t bytes = raster_bytes(tsr_frame_bits(&image));
    uint8_t *frame = fuzz_alloc(bytes), *part = fuzz_alloc(bytes);
    for (int i = 0; i < 4; i++) {
        const uint32_t f = fuzz_below(random, image.frames);
        const struct tsr_region region = any_region(&image, random);
        const enum tsr_status whole = tsr_read_frame(reader, member, f, frame, bytes, 0, &error);
        if (is_unit(reader, member, f, whole)) continue;
        check_status(whole, &error, "a frame");
        const uint64_t bits = (uint64_t)region.columns * region.rows * image.components * image.bits_allocated;
        const enum tsr_status some = tsr_read_region(reader, member, f, &region, part, raster_bytes(bits), 0, &error);
        check_status(some, &error, "a region");
        FUZZ_PROMISE(!is_good || whole == TSR_OK, "a frame of a good file: %s", error.text);
        FUZZ_PROMISE(whole != TSR_OK || some == TSR_OK, "a region of a frame that decodes: %s", error.text);
        FUZZ_PROMISE(whole != TSR_OK || is_part(&image, frame, &region, part), "a region is not part of its frame");
    }
    free(frame);
    free(part);
}

static void read_header(struct tsr_reader *reader, uint32_t member)
{
    struct tsr_error error = {TSR_OK, 0, "", 0};
    struct tsr_metadata *m;
    const enum tsr_status status = tsr_read_header(reader, member, &m, &error);
    FUZZ_PROMISE((status == TSR_OK) == (m != NULL), "a header and %s", tsr_status_name(status));
    if (status != TSR_OK && status != TSR_ERROR_USAGE) check_status(status, &error, "a header");
    unsigned sum = 0;
    for (size_t i = 0; m && i < m->element_count; i++) {
        const struct tsr_element *const e = &m->elements[i];
        const bool is_inside = !e->value || (e->value >= m->bytes && e->value + e->count <= m->bytes + m->byte_count);
        FUZZ_PROMISE(is_inside, "an element reaches out of its header");
        for (size_t k = 0; e->value && k < e->count; k += 64) sum += e->value[k];
    }
    if (sum == 1u << 31) abort(); /* which cannot be; but so all bytes are read */
    tsr_metadata_free(m);
}

/* Compares ranges of the original with the restored file. If original is NULL, only reads them. */
static void read_ranges(struct tsr_reader *reader, uint32_t member, const struct tsr_buffer *original,
                        struct fuzz_random *random)
{
    struct tsr_error error = {TSR_OK, 0, "", 0};
    uint8_t bytes[3000];
    for (int i = 0; i < 6; i++) {
        const size_t limit = original ? original->count + 10 : 1 << 16;
        const size_t offset = i == 0 ? 0 : fuzz_below(random, (uint32_t)limit);
        const size_t count = fuzz_below(random, sizeof bytes);
        size_t got;
        const enum tsr_status status = tsr_read_original(reader, member, offset, bytes, count, &got, &error);
        check_status(status, &error, "a range");
        FUZZ_PROMISE(!original || status == TSR_OK, "a range of a good file: %s", error.text);
        if (!original) continue;
        const size_t left = offset < original->count ? original->count - offset : 0;
        FUZZ_PROMISE(got == (left < count ? left : count), "%zu bytes of %zu, %zu are left", got, count, left);
        FUZZ_PROMISE(got == 0 || memcmp(bytes, original->bytes + offset, got) == 0, "other bytes at %zu", offset);
    }
}

static void read_member(struct tsr_reader *reader, uint32_t member, struct fuzz_random *random)
{
    struct tsr_error error = {TSR_OK, 0, "", 0};
    struct tsr_info info = TSR_INFO;
    struct tsr_buffer original;
    const struct tsr_data_sink sink = tsr_to_memory(&original);
    const enum tsr_status known = tsr_read_info(reader, member, &info, &error);
    check_status(known, &error, "info");
    const uint64_t samples = (uint64_t)info.image.columns * info.image.rows * info.image.components;
    if (known == TSR_OK && (samples > SAMPLES_LIMIT || info.original_bytes > ORIGINAL_LIMIT)) return;
    const enum tsr_status restored = tsr_restore_member(reader, member, &sink, NULL, &error);
    check_status(restored, &error, "restoring");
    FUZZ_PROMISE(restored == TSR_OK || !original.bytes, "bytes of what is not restored");
    if (known == TSR_OK) {
        read_frames(reader, member, restored == TSR_OK, random);
        read_header(reader, member);
        read_ranges(reader, member, restored == TSR_OK ? &original : NULL, random);
    }
    tsr_buffer_free(&original);
}

/* Compresses an original in memory to a .tsr file in memory. */
static struct tsr_buffer compress(const struct tsr_data_source *source, struct fuzz_random *random)
{
    struct tsr_error error = {TSR_OK, 0, "", 0};
    struct tsr_compress_options options = TSR_COMPRESS_OPTIONS;
    struct tsr_buffer tsr;
    const struct tsr_data_sink sink = tsr_to_memory(&tsr);
    options.effort = 1 + 4 * (int)fuzz_below(random, 3);
    options.path = (enum tsr_path)fuzz_below(random, 2);
    options.coder = (enum tsr_coder)fuzz_below(random, 4);
    if (fuzz_below(random, 4) == 0) {
        options.loss = options.path ? TSR_LOSS_QP : TSR_LOSS_MAX_ERROR;
        options.qp_eighths = options.path ? 20 * TSR_QP_UNIT : 0;
        options.max_error = options.path ? 0 : 2;
        options.allow_lossy = true;
    }
    options.samples_only = fuzz_below(random, 2);
    const enum tsr_status status = tsr_compress(fuzz_engine(1), source, &sink, &options, NULL, &error);
    FUZZ_PROMISE(status == TSR_OK || status == TSR_ERROR_LIMIT, "compress: %s, %s", tsr_status_name(status),
                 error.text);
    return tsr;
}

static void open_and_read(const struct tsr_data_source *source, struct fuzz_random *random)
{
    struct tsr_error error = {TSR_OK, 0, "", 0};
    struct tsr_reader *reader;
    const enum tsr_status status = tsr_open(fuzz_engine(1), source, &reader, &error);
    check_status(status, &error, "open");
    FUZZ_PROMISE((status == TSR_OK) == (reader != NULL), "a reader and %s", tsr_status_name(status));
    if (!reader) return;
    if (tsr_reader_content(reader) != TSR_CONTENT_ORIGINAL) {
        for (uint32_t k = 0; k < tsr_reader_members(reader) && k < 20; k++) read_member(reader, k, random);
    } else {
        const struct tsr_buffer whole = {(uint8_t *)source->memory, (size_t)source->byte_count};
        read_frames(reader, 0, false, random);
        read_header(reader, 0);
        read_ranges(reader, 0, &whole, random);
        struct tsr_buffer tsr = compress(source, random);
        const struct tsr_data_source coded = tsr_from_memory(tsr.bytes, tsr.count);
        if (tsr.bytes) open_and_read(&coded, random);
        tsr_buffer_free(&tsr);
    }
    tsr_close(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct tsr_data_source source = tsr_from_memory(data, size);
    struct fuzz_random random = {size};
    for (size_t i = 0; i < size; i += 1 + size / 64) random.state = random.state * 31 + data[i];
    open_and_read(&source, &random);
    return 0;
}
