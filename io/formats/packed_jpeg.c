/* Packs JPEG: a file, or the items of DICOM. PACKED.md. */
#include <string.h>

#include "packed_file.h"
#include "io/bytes/zstd_contexts.h"
#include "io/nodes/jpeg/jpeg.h"
#include "io/recipe/prove.h"

enum {
    MOST_FAILURES = 64, /* streams that cannot be packed: then no more are tried, of a file that has many by design */
    ITEM_HEAD = 8       /* of DICOM */
};

enum tsr_status tsr_prove_jpeg(const struct tsr_packed_file *p, const uint8_t *stream, size_t size, size_t *used,
                               struct tsr_bytes *packed, struct tsr_error *error)
{
    const struct tsr_node_work work = {.crew = p->crew};
    struct tsr_bytes none = {0};
    struct tsr_error why;
    packed->limit = size > TSR_PACKED_GAIN ? size - TSR_PACKED_GAIN : 0;
    const enum tsr_status status = tsr_prove(&tsr_node_jpeg, &work, stream, size, used, packed, &none, &why);
    if (status == TSR_OK) *error = why;
    if (status == TSR_OK) return TSR_OK;
    tsr_bytes_free(packed);
    return tsr_pack_refuse(status, tsr_cannot_jpeg, &why, error);
}

enum tsr_status tsr_pack_jpeg(struct tsr_packed_file *p, size_t start, size_t size, struct tsr_error *error)
{
    struct tsr_bytes packed = {0}, none = {0};
    size_t used;
    TSR_TRY(tsr_prove_jpeg(p, p->file + start, size, &used, &packed, error));
    return tsr_pack_stream(p, start, start + used, TSR_PIECE_JPEG, &packed, &none, error);
}

/* The next item of DICOM from a byte on that begins as JPEG does. Where items are is not read from the file's header,
 * which may be one that cannot be read: whatever looks like an item is tried, and proven. */
static bool next_item(const struct tsr_packed_file *p, size_t at, size_t *start, size_t *size)
{
    enum { SOF_JPEG_LS = 0xf7 }; /* with which its streams begin */
    static const uint8_t tag[4] = {0xfe, 0xff, 0x00, 0xe0};
    while (p->size - at > ITEM_HEAD) {
        const uint8_t *const found = memchr(p->file + at, tag[0], p->size - at - ITEM_HEAD);
        if (!found) return false;
        *start = (size_t)(found - p->file) + ITEM_HEAD;
        *size = tsr_read_u32(found + 4);
        if (memcmp(found, tag, sizeof tag) == 0 && *size <= p->size - *start && *size >= TSR_PACKED_STREAM &&
            tsr_begins_jpeg(found + ITEM_HEAD) && found[ITEM_HEAD + 3] != SOF_JPEG_LS)
            return true;
        at = *start - ITEM_HEAD + 1;
    }
    return false;
}

/* Whether an item that begins as JPEG and ends before a byte holds a whole frame: the next one begins another, or there
 * is none. */
static bool is_frame(const struct tsr_packed_file *p, size_t end)
{
    static const uint8_t item[4] = {0xfe, 0xff, 0x00, 0xe0}, last[4] = {0xfe, 0xff, 0xdd, 0xe0};
    const uint8_t *const next = p->file + end;
    if (p->size - end < ITEM_HEAD) return false;
    return memcmp(next, last, sizeof last) == 0 ||
           (memcmp(next, item, sizeof item) == 0 && p->size - end > ITEM_HEAD + 3 && tsr_begins_jpeg(next + ITEM_HEAD));
}

/* TSR_DECLINED: none can be packed. */
static enum tsr_status put_items(struct tsr_packed_file *p, struct tsr_error *error)
{
    size_t start, size;
    int failures = 0;
    for (size_t at = 0; failures < MOST_FAILURES && next_item(p, at, &start, &size); at = start + size) {
        const enum tsr_status status = tsr_pack_jpeg(p, start, size, error);
        if (status == TSR_DECLINED) failures++;
        if (status != TSR_OK && status != TSR_DECLINED) return status;
        if (!is_frame(p, start + size))
            error->offset = TSR_NO_OFFSET; /* a part ends within a scan */
        else if (error->offset != TSR_NO_OFFSET)
            tsr_input_note_damage(p->source->input, "its JPEG stream at byte %zu %.80s", start,
                                  error->text + (status == TSR_OK ? 0 : strlen(tsr_cannot_jpeg)));
        else if (!tsr_jpeg_has_end(p->file + start, size))
            tsr_input_note_damage(p->source->input, "its JPEG stream at byte %zu has no end: EOI is missing", start);
    }
    return p->done > 0 ? TSR_OK : TSR_DECLINED;
}

enum tsr_status tsr_add_jpeg(const uint8_t *stream, size_t size, struct tsr_jpeg_work *work, struct tsr_error *error)
{
    struct tsr_error why;
    uint64_t blocks = 0;
    const enum tsr_status status = tsr_jpeg_memory(stream, size, &blocks, &why);
    if (status != TSR_OK) return tsr_pack_refuse(status, tsr_cannot_jpeg, &why, error);
    const uint64_t memory = blocks + 6 * (uint64_t)size, cost = blocks + 9 * (uint64_t)size + (1 << 18);
    if (memory > work->memory) work->memory = memory;
    if (cost > work->cost) work->cost = cost;
    return TSR_OK;
}

/* Of all streams of a DICOM file. TSR_DECLINED: none can be packed; the text is empty if there is none. */
static enum tsr_status add_items(const struct tsr_packed_file *p, struct tsr_jpeg_work *work, struct tsr_error *error)
{
    enum tsr_status status = tsr_fail(error, TSR_DECLINED, "%s", "");
    for (size_t at = 0, start, size; status != TSR_ERROR_LIMIT && next_item(p, at, &start, &size); at = start + size)
        status = tsr_add_jpeg(p->file + start, size, work, error);
    return status != TSR_ERROR_LIMIT && work->memory > 0 ? TSR_OK : status;
}

/* ---- What that takes ---------------------------------------------------------------------------------------- */

uint64_t tsr_jpeg_cost(uint64_t size, uint64_t work)
{
    const uint64_t room = 2 * size + work + work / 32;
    return tsr_max_u64(5 * size + work, tsr_unpacking_cost(room, size, room / 2));
}

uint64_t tsr_jpeg_memory_of(const struct tsr_packed_file *p, uint64_t work)
{
    return 2 * (uint64_t)p->size + tsr_max_u64(work, tsr_chunk_memory(false, p->size));
}

enum tsr_status tsr_pack_jpegs(struct tsr_packed_file *p, struct tsr_error *error)
{
    const bool is_whole = tsr_begins_jpeg(p->file);
    struct tsr_jpeg_work work = {0};
    TSR_TRY(is_whole ? tsr_add_jpeg(p->file, p->size, &work, error) : add_items(p, &work, error));
    const uint64_t before = is_whole ? work.memory - p->size : work.memory; /* there is no other stream */
    TSR_TRY(tsr_pack_claim(p, tsr_jpeg_cost(p->size, work.cost), tsr_jpeg_memory_of(p, before), 2 * (uint64_t)p->size,
                           error));
    if (!is_whole) return put_items(p, error);
    TSR_TRY(tsr_pack_jpeg(p, 0, p->size, error));
    p->fault = *error;
    p->cannot = tsr_cannot_jpeg;
    p->damaged = "its JPEG stream ";
    return TSR_OK;
}
