/* Fragments; see fragments.h. */
#include "fragments.h"

#include <stdlib.h>
#include <string.h>

#include "dicom_reader.h"
#include "dicom_walk.h"

enum { MARKERS = 4 }; /* bytes that are looked at of a fragment */

/* A whole item that stands at a byte, and the first bytes of its value. */
static bool item_at(struct tsr_input *input, uint64_t at, struct tsr_dicom_piece *item)
{
    return tsr_dicom_read_item(input, at, item) && item->head.tag == TSR_TAG_ITEM &&
           item->head.length != TSR_UNDEFINED_LENGTH && item->head.length <= item->left;
}

static enum tsr_status list(struct tsr_input *input, uint64_t value, struct tsr_fragments *f,
                            struct tsr_fragment *table, struct tsr_error *error)
{
    struct tsr_dicom_piece item;
    if (!item_at(input, value, &item)) return tsr_fail(error, TSR_ERROR_CORRUPT, "it has no offset table");
    *table = (struct tsr_fragment){item.value, item.head.length};
    f->size = tsr_input_size(input);
    f->before = table->start + table->size;
    uint64_t end = f->before;
    size_t capacity = 0;
    for (; f->count < UINT32_MAX && item_at(input, end, &item); f->count++) {
        if (f->count == capacity) {
            capacity = capacity ? 2 * capacity : 16;
            struct tsr_fragment *const grown = realloc(f->fragment, capacity * sizeof *grown);
            if (!grown) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu fragments", capacity);
            f->fragment = grown;
        }
        f->fragment[f->count] = (struct tsr_fragment){item.value, item.head.length};
        end = item.value + item.head.length;
    }
    f->after = f->size - end;
    return TSR_OK;
}

/* Whether the basic offset table says where each frame begins: offsets of items, from the first fragment's item. */
static bool follow_table(struct tsr_input *input, struct tsr_fragments *f, const struct tsr_fragment *table,
                         uint32_t frames)
{
    uint32_t frame = 0;
    uint8_t offset[4];
    if (table->size != sizeof offset * (uint64_t)frames) return false;
    for (uint32_t i = 0; i < f->count && frame < frames; i++) {
        if (tsr_input_read(input, table->start + sizeof offset * frame, offset, sizeof offset, NULL) != TSR_OK)
            return false;
        if (f->fragment[i].start - f->fragment[0].start == tsr_read_u32(offset)) f->first[frame++] = i;
    }
    return frame == frames && f->first[0] == 0;
}

/* Whether each frame begins with the marker SOI, or SOC and SIZ of JPEG 2000, and no other fragment does. */
static bool follow_markers(struct tsr_input *input, struct tsr_fragments *f, uint32_t frames)
{
    static const uint8_t soi[] = {0xff, 0xd8}, soc[] = {0xff, 0x4f, 0xff, 0x51};
    uint32_t frame = 0;
    for (uint32_t i = 0; i < f->count; i++) {
        uint8_t bytes[MARKERS] = {0};
        const size_t size = f->fragment[i].size < sizeof bytes ? (size_t)f->fragment[i].size : sizeof bytes;
        if (tsr_input_read(input, f->fragment[i].start, bytes, size, NULL) != TSR_OK) return false;
        if (memcmp(bytes, soi, sizeof soi) != 0 && memcmp(bytes, soc, sizeof soc) != 0) continue;
        if (frame < frames) f->first[frame] = i;
        frame++;
    }
    return frame == frames && f->first[0] == 0;
}

/* Whether the frames of samples end where fragments do. */
static bool follow_sizes(struct tsr_fragments *f, uint32_t frames, uint64_t raster)
{
    uint64_t has = raster;
    uint32_t frame = 0;
    for (uint32_t i = 0; i < f->count; i++) {
        if (has >= raster) {
            if (frame < frames) f->first[frame] = i;
            frame++;
            has = 0;
        }
        has += f->fragment[i].size;
    }
    return frame == frames && has >= raster;
}

/* Says which fragments are a frame's. */
static enum tsr_status assign(struct tsr_input *input, struct tsr_fragments *f, const struct tsr_fragment *table,
                              uint32_t frames, uint64_t raster, struct tsr_error *error)
{
    const uint32_t count = f->count;
    if (count < frames) return tsr_fail(error, TSR_ERROR_CORRUPT, "its %u frames are in %u fragments", frames, count);
    f->first = calloc((size_t)frames + 1, sizeof *f->first);
    if (!f->first) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %u frames", frames);
    const bool is_told =
        count != frames && (follow_table(input, f, table, frames) ||
                            (raster == 0 ? follow_markers(input, f, frames) : follow_sizes(f, frames, raster)));
    if (!is_told && count % frames != 0)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "nothing says which of its %u fragments are a frame's", count);
    for (uint32_t k = 0; k < frames && !is_told; k++) f->first[k] = k * (count / frames); /* each has as many */
    f->first[frames] = count;
    return TSR_OK;
}

/* Bytes of a frame's stream. */
static uint64_t stream_bytes(const struct tsr_fragments *f, uint32_t frame)
{
    uint64_t bytes = 0;
    for (uint32_t i = f->first[frame]; i < f->first[frame + 1]; i++) bytes += f->fragment[i].size;
    return bytes;
}

enum tsr_status tsr_fragments_list(struct tsr_input *input, uint64_t value, uint32_t frames, uint64_t raster,
                                   struct tsr_fragments *f, struct tsr_error *error)
{
    struct tsr_fragment table = {0};
    TSR_TRY(list(input, value, f, &table, error));
    TSR_TRY(assign(input, f, &table, frames, raster, error));
    for (uint32_t k = 0; k < frames; k++)
        if (stream_bytes(f, k) > f->longest) f->longest = stream_bytes(f, k);
    return TSR_OK;
}

void tsr_fragments_free(struct tsr_fragments *f)
{
    free(f->fragment);
    free(f->first);
}

enum tsr_status tsr_fragments_read(const struct tsr_fragments *f, struct tsr_input *input, uint32_t frame,
                                   struct tsr_bytes *stream, struct tsr_error *error)
{
    const uint64_t bytes = stream_bytes(f, frame);
    if (bytes > SIZE_MAX / 4)
        return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a frame of %llu bytes", (unsigned long long)bytes);
    TSR_TRY(tsr_bytes_reserve(stream, (size_t)bytes, error));
    for (uint32_t i = f->first[frame]; i < f->first[frame + 1]; i++) {
        const size_t size = (size_t)f->fragment[i].size;
        if (size > 0) TSR_TRY(tsr_input_read(input, f->fragment[i].start, stream->bytes + stream->size, size, error));
        stream->size += size;
    }
    return TSR_OK;
}

enum tsr_status tsr_fragments_put_record(const struct tsr_fragments *f, uint32_t frame, struct tsr_bytes *records,
                                         struct tsr_error *error)
{
    const uint32_t first = f->first[frame], end = f->first[frame + 1];
    TSR_TRY(tsr_bytes_put_varint(records, end - first, error));
    for (uint32_t i = first; i + 1 < end; i++) TSR_TRY(tsr_bytes_put_varint(records, f->fragment[i].size, error));
    return TSR_OK;
}

struct tsr_items tsr_fragments_look(struct tsr_input *input, uint64_t value, uint32_t frames)
{
    enum { MOST = 1 << 20 };
    const uint64_t size = tsr_input_size(input);
    struct tsr_items items = {0};
    struct tsr_dicom_piece item;
    uint64_t at = value;
    for (bool is_table = true; items.count < MOST && item_at(input, at, &item); is_table = false) {
        const uint64_t bytes = item.head.length;
        at = item.value + bytes;
        if (is_table) continue;
        items.count++;
        items.bytes += bytes;
        if (bytes > items.longest) items.longest = bytes;
    }
    if (items.count == MOST) items = (struct tsr_items){size, size, size / TSR_DICOM_HEAD};
    if (items.count != frames) items.longest = items.bytes; /* a frame has several, or it is no such file */
    return items;
}

uint64_t tsr_fragments_memory(const struct tsr_items *items, uint32_t frames)
{
    enum { GROWTH = 3 }; /* the list, and twice as many while it grows */
    return GROWTH * sizeof(struct tsr_fragment) * (items->count + 16) + sizeof(uint32_t) * (frames + (uint64_t)1);
}
