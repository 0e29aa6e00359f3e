/* Units; see unit.h. */
#include "unit.h"

#include <string.h>

#include "io/bytes/zstd_contexts.h"
#include "io/nodes/jpeg/jpeg.h"
#include "price.h"
#include "prove.h"
#include "recipe.h"

/* Most blocks of coefficients of a packed stream: those of the image in whole MCUs of 32 x 32 samples, the largest. */
static uint64_t most_blocks(const struct tsr_image *image)
{
    enum { MCU = 32, BLOCKS = 16 };
    return BLOCKS * ((image->columns + (uint64_t)MCU - 1) / MCU) * ((image->rows + (uint64_t)MCU - 1) / MCU) *
           image->components;
}

/* Most bytes of a stream that is longer than its unit. */
static uint64_t most_bytes(const struct tsr_image *image)
{
    return tsr_usual_stream(image, 0);
}

/* A varint and zstd. False: it is not smaller. */
static bool compress(const uint8_t *stream, size_t size, struct tsr_bytes *unit)
{
#if TSR_WITH_ZSTD
    const size_t before = unit->size;
    ZSTD_CCtx *const context = tsr_take_compressor();
    bool is_made = context && size > TSR_VARINT_LIMIT && tsr_bytes_put_u8(unit, TSR_UNIT_ZSTD, NULL) == TSR_OK &&
                   tsr_bytes_put_varint(unit, size, NULL) == TSR_OK && tsr_bytes_reserve(unit, size, NULL) == TSR_OK;
    const size_t head = unit->size - before;
    if (is_made) {
        const size_t made = ZSTD_compressCCtx(context, unit->bytes + unit->size, size - head, stream, size,
                                              tsr_zstd_level(false, size));
        is_made = !ZSTD_isError(made);
        if (is_made) unit->size += made;
    }
    tsr_give_compressor(context);
    if (!is_made) unit->size = before;
    return is_made;
#else
    (void)stream;
    (void)size;
    (void)unit;
    return false;
#endif
}

static bool decompress(const uint8_t *coded, size_t size, uint8_t *stream, size_t whole)
{
#if TSR_WITH_ZSTD
    ZSTD_DCtx *const context = tsr_take_decompressor();
    const size_t made = context ? ZSTD_decompressDCtx(context, stream, whole, coded, size) : 0;
    tsr_give_decompressor(context);
    return context && !ZSTD_isError(made) && made == whole;
#else
    (void)coded;
    (void)size;
    (void)stream;
    (void)whole;
    return false;
#endif
}

static struct tsr_node_work work_of(const struct tsr_header *header)
{
    return (struct tsr_node_work){.known = header->shared_head, .known_size = header->shared_head_size};
}

/* A stream of JPEG, up to a fault in it. TSR_DECLINED: it is none that can be packed, or that takes no more than others
 * of this image. */
static enum tsr_status pack_jpeg(const struct tsr_header *header, const uint8_t *stream, size_t size,
                                 struct tsr_bytes *unit, enum tsr_unit_kind *kind, struct tsr_error *error)
{
    const struct tsr_node_work work = work_of(header);
    struct tsr_bytes none = {0};
    const uint64_t blocks = size <= most_bytes(&header->image) ? tsr_jpeg_stream_blocks(stream, size) : 0;
    size_t used;
    if (blocks == 0 || blocks > most_blocks(&header->image))
        return tsr_fail(error, TSR_DECLINED, "it is no usual JPEG stream");
    struct tsr_bytes packed = {.limit = size > 1 ? size - 1 : 1};
    enum tsr_status status = tsr_prove(&tsr_node_jpeg, &work, stream, size, &used, &packed, &none, error);
    if (status == TSR_OK && used < size && packed.size + TSR_VARINT_LIMIT >= used) status = TSR_DECLINED;
    if (status == TSR_OK) {
        *kind = used < size ? TSR_UNIT_FAULTY_JPEG : TSR_UNIT_JPEG;
        status = tsr_bytes_put_u8(unit, (uint8_t)*kind, error);
        if (status == TSR_OK && used < size) status = tsr_bytes_put_varint(unit, packed.size, error);
        if (status == TSR_OK) status = tsr_bytes_put(unit, packed.bytes, packed.size, error);
        if (status == TSR_OK) status = tsr_bytes_put(unit, stream + used, size - used, error);
    }
    tsr_bytes_free(&packed);
    return status;
}

/* The head that units share, as it was before it was packed. */
static enum tsr_status open_head(const struct tsr_header *header, struct tsr_bytes *head, struct tsr_error *error)
{
    head->limit = SIZE_MAX / 4;
    return header->shared_head_size > 0 ? tsr_jpeg_open_head(header->shared_head, header->shared_head_size, head, error)
                                        : TSR_OK;
}

static size_t common_bytes(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size)
{
    size_t size = 0;
    while (size < a_size && size < b_size && a[size] == b[size]) size++;
    return size;
}

/* A stream that begins as the shared head does. TSR_DECLINED: it does not. */
static enum tsr_status leave_out_head(const struct tsr_header *header, const uint8_t *stream, size_t size,
                                      struct tsr_bytes *unit, struct tsr_error *error)
{
    struct tsr_bytes head = {0};
    enum tsr_status status = open_head(header, &head, error);
    const size_t same = common_bytes(head.bytes, head.size, stream, size), rest = head.size - same;
    if (status == TSR_OK && same <= TSR_VARINT_LIMIT) status = TSR_DECLINED;
    if (status == TSR_OK) status = tsr_bytes_put_u8(unit, TSR_UNIT_HEADED, error);
    if (status == TSR_OK) status = tsr_bytes_put_varint(unit, rest, error);
    if (status == TSR_OK) status = tsr_bytes_put(unit, stream + same, size - same, error);
    tsr_bytes_free(&head);
    return status;
}

/* A stream of any kind. */
static enum tsr_status put_stream(const struct tsr_header *header, const uint8_t *stream, size_t size,
                                  struct tsr_bytes *unit, enum tsr_unit_kind *kind, struct tsr_error *error)
{
    const size_t before = unit->size;
    struct tsr_bytes coded = {.limit = SIZE_MAX / 4};
    enum tsr_status status = leave_out_head(header, stream, size, unit, error);
    *kind = status == TSR_OK ? TSR_UNIT_HEADED : TSR_UNIT_BYTES;
    if (status == TSR_DECLINED) status = tsr_bytes_put_u8(unit, TSR_UNIT_BYTES, error);
    if (status == TSR_OK && *kind == TSR_UNIT_BYTES) status = tsr_bytes_put(unit, stream, size, error);
    if (status == TSR_OK && size <= most_bytes(&header->image) && tsr_is_cheaper(stream, size, unit->size - before) &&
        compress(stream, size, &coded) && coded.size < unit->size - before) {
        *kind = TSR_UNIT_ZSTD;
        unit->size = before;
        status = tsr_bytes_put(unit, coded.bytes, coded.size, error);
    }
    tsr_bytes_free(&coded);
    return status;
}

enum tsr_status tsr_unit_make(const struct tsr_header *header, const uint8_t *stream, size_t size,
                              struct tsr_bytes *unit, enum tsr_unit_kind *kind, struct tsr_error *error)
{
    const size_t before = unit->size;
    struct tsr_error why = {.offset = TSR_NO_OFFSET};
    enum tsr_status status = TSR_DECLINED;
    if (tsr_are_units(header)) status = pack_jpeg(header, stream, size, unit, kind, &why);
    if (error) *error = why;
    if (status == TSR_OK || status == TSR_ERROR_LIMIT) return status;
    unit->size = before;
    return put_stream(header, stream, size, unit, kind, error);
}

void tsr_unit_share_head(const struct tsr_bytes *stream, const struct tsr_bytes *other, bool is_plain,
                         struct tsr_header *header)
{
    struct tsr_bytes head = {.limit = sizeof header->shared_head};
    const size_t common = common_bytes(stream->bytes, stream->size, other->bytes, other->size),
                 plain = common < TSR_JPEG_SHARED ? common : TSR_JPEG_SHARED;
    const enum tsr_status status = is_plain ? tsr_jpeg_share_bytes(stream->bytes, plain, &head, NULL)
                                            : tsr_jpeg_share_head(stream->bytes, stream->size, &head, NULL);
    header->shared_head_size = 0;
    if (status == TSR_OK && (!is_plain || plain > TSR_VARINT_LIMIT)) {
        memcpy(header->shared_head, head.bytes, head.size);
        header->shared_head_size = head.size;
    }
    tsr_bytes_free(&head);
}

static enum tsr_status damaged(struct tsr_error *error)
{
    return tsr_fail(error, TSR_ERROR_CORRUPT, "the stream of a frame is not valid");
}

static enum tsr_status open_jpeg(const struct tsr_header *header, const uint8_t *packed, size_t size,
                                 struct tsr_bytes *stream, struct tsr_error *error)
{
    const struct tsr_node_work work = work_of(header);
    const struct tsr_node_parts parts = {.plain = packed, .plain_size = size};
    const size_t limit = stream->limit, left = limit - stream->size;
    const uint64_t most = most_bytes(&header->image), blocks = tsr_jpeg_blocks(&work, packed, size, most);
    if (!tsr_are_units(header) || blocks == 0 || blocks > most_blocks(&header->image)) return damaged(error);
    if (most < left) stream->limit = stream->size + (size_t)most;
    const enum tsr_status status = tsr_node_jpeg.join(&work, &parts, stream, error);
    stream->limit = limit;
    return status;
}

/* The same, and the bytes from the fault on. */
static enum tsr_status open_faulty_jpeg(const struct tsr_header *header, struct tsr_cursor *c, struct tsr_bytes *stream,
                                        struct tsr_error *error)
{
    size_t size;
    const uint8_t *const packed = tsr_get_list(c, &size);
    if (!packed) return damaged(error);
    TSR_TRY(open_jpeg(header, packed, size, stream, error));
    return tsr_bytes_put(stream, c->bytes + c->at, c->size - c->at, error);
}

static enum tsr_status open_headed(const struct tsr_header *header, struct tsr_cursor *c, struct tsr_bytes *stream,
                                   struct tsr_error *error)
{
    struct tsr_bytes head = {0};
    const uint64_t rest = tsr_get_varint(c);
    enum tsr_status status = open_head(header, &head, error);
    if (status == TSR_OK && (c->bad || rest > head.size)) status = damaged(error);
    if (status == TSR_OK) status = tsr_bytes_put(stream, head.bytes, head.size - (size_t)rest, error);
    if (status == TSR_OK) status = tsr_bytes_put(stream, c->bytes + c->at, c->size - c->at, error);
    tsr_bytes_free(&head);
    return status;
}

enum tsr_status tsr_unit_open(const struct tsr_header *header, const uint8_t *unit, size_t size,
                              struct tsr_bytes *stream, struct tsr_error *error)
{
    struct tsr_cursor c = {unit, size, 0, false};
    const uint8_t kind = tsr_get_u8(&c);
    if (c.bad) return damaged(error);
    if (kind == TSR_UNIT_BYTES) return tsr_bytes_put(stream, unit + c.at, size - c.at, error);
    if (kind == TSR_UNIT_JPEG) return open_jpeg(header, unit + c.at, size - c.at, stream, error);
    if (kind == TSR_UNIT_FAULTY_JPEG) return open_faulty_jpeg(header, &c, stream, error);
    if (kind == TSR_UNIT_HEADED) return open_headed(header, &c, stream, error);
    if (kind != TSR_UNIT_ZSTD)
        return tsr_fail(error, TSR_ERROR_VERSION, "the file has a unit of kind %u, which this version does not know",
                        kind);
    const uint64_t whole = tsr_get_varint(&c);
    if (c.bad || whole == 0 || whole > most_bytes(&header->image)) return damaged(error);
    if (!TSR_WITH_ZSTD)
        return tsr_fail(error, TSR_ERROR_VERSION, "a frame is compressed with zstd, which this build does not have");
    TSR_TRY(tsr_bytes_reserve(stream, (size_t)whole, error));
    if (!decompress(unit + c.at, size - c.at, stream->bytes + stream->size, (size_t)whole)) return damaged(error);
    stream->size += (size_t)whole;
    return TSR_OK;
}

uint64_t tsr_unit_memory(const struct tsr_header *header, uint64_t bytes)
{
    enum { BLOCK_BYTES = 132, COPIES = 4 };
    const struct tsr_image *const image = &header->image;
    const uint64_t whole = most_bytes(image), both = 3 * bytes + whole;
    if (!tsr_are_units(header)) return both + tsr_chunk_memory(false, bytes < whole ? bytes : whole);
    const struct tsr_node_work work = {.room = BLOCK_BYTES * most_blocks(image)};
    return both + COPIES * bytes + tsr_node_jpeg.memory(&work, bytes, true);
}
